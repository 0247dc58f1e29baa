/* c_integer.c -- prints linear layers, convolutions, softmax, products and norms of 8-bit integers.
 * Their cores are in kernels/integer_*.h and kernels/fixed_*.h. */
#include "emit/c_emit.h"
#include "ir/session.h"
#include <string.h>

static double number(const Node *n, const char *name)
{
    double v = 0;
    arg_number(n, arg_find(n, name), &v);
    return v;
}

static bool check(Function *f, const Node *n)
{
    for (int i = 0; i < n->n_in + 1; i++)
        if (!c_type_is_dense(f->e, value_type(i < n->n_in ? n->in[i] : n->out[0])))
            return function_refuse(f, n, "expects a dense tensor here");
    return true;
}

/* Prints the fields of the input: pointers to scale and zero point if they are tensors, their
 * dtypes, and the known zero point. */
static void put_input(Function *f, const Node *n)
{
    int i = arg_find(n, "input_scale");
    const Value *x = arg_value(n, "input"), *scale = arg_value(n, i), *zero = arg_value(n, i + 1);
    bool has_rows = false;
    if (scale) {
        Dim count = c_dims_product(f->e, scale->type.dim, scale->type.rank);
        has_rows = !dim_equal(count, DIM(1));
    }
    const char *scales = array_or_null(f, scale), *zeros = array_or_null(f, zero);
    put(&f->body, "%s, %s, %d, %d, %d,\n        %d, %d, ", scales, zeros,
        scale ? (int)scale->type.dtype : 0, zero ? (int)zero->type.dtype : 0, has_rows,
        x->type.dtype == ETC_I8, (int)number(n, "zero_point"));
}

static void put_output(Function *f, const Node *n)
{
    bool is_float = n->out[0]->type.dtype == ETC_F32;
    put_float(&f->body, (float)number(n, "lo"));
    put(&f->body, ", ");
    put_float(&f->body, (float)number(n, "hi"));
    put(&f->body, ", %d, ", is_float);
    put_float(&f->body, is_float ? 0.0f : (float)(1 / number(n, "output_scale")));
    put(&f->body, ", %d, %d, %d, %s};\n", (int)number(n, "output_zero"), (int)number(n, "quant_min"),
        (int)number(n, "quant_max"), f->then ? f->then : "NULL");
}

/* Notes whether the weights are in -64 .. 64. */
static void note_range(Emit *e, const Value *w)
{
    const int8_t *data = constant_data(e, w, ETC_I8);
    const int64_t n = data ? type_numel(w->type) : 0;
    bool is_wide = !data;
    for (int64_t i = 0; i < n && !is_wide; i++)
        is_wide = data[i] < -64 || data[i] > 64;
    e->has_bytes = true;
    e->has_wide_bytes |= is_wide;
}

static void put_integer(Function *f, const Node *n)
{
    note_range(f->e, arg_value(n, "weight"));
    const char *sums = function_pointer(f, arg_value(n, "sums"));
    const char *scales = function_pointer(f, arg_value(n, "scales"));
    put(&f->body,
        "    /* sums, scales, bias; scale and zero point of x, their dtypes, has_rows; x_is_signed, "
        "zero;\n     * clamp, is_float, 1 / scale of y; zero point and range of y; then */\n"
        "    const EtcInteger q = {\n        %s, %s, ",
        sums, scales);
    put(&f->body, "%s, ", array_or_null(f, arg_value(n, "bias")));
    put_input(f, n);
    put_output(f, n);
}

static void put_call(Function *f, const Node *n, const char *core, const char *w, const char *work)
{
    const char *x = function_pointer(f, arg_value(n, "input"));
    put(&f->body, "    etc_%s_i8(%s, %s, %s, &g, &q%s);\n", core, x, w,
        f->name_of[n->out[0]->index], work);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns the scratch of a depthwise convolution: some rows as pictures, and their sums.  This is
 * what etc_picture_bytes returns with the widest vectors. */
static int64_t picture_bytes(const Conv *c, const Type y)
{
    enum { ROWS = 8, LANES = 16 };
    int64_t height = y.rank == 4 ? dim_upper(y.dim[2]) : 1, size, data, sums;
    int64_t rows = least(height, ROWS), sh = c->stride[0], sw = c->stride[1];
    int64_t under = rows + (c->kernel[0] - 1) * c->dilation[0] / sh;
    int64_t pitch = dim_upper(y.dim[y.rank - 1]) + (c->kernel[1] - 1) * c->dilation[1] / sw;
    bool ok = mul_ok(under + 1, pitch, &size) && mul_ok(size + 2 * LANES + 1, 2 * sh, &data) &&
              mul_ok(data, sw, &data) && mul_ok(rows, pitch, &sums);
    return ok && data < INT32_MAX && sums < INT32_MAX ? data + (sums + 2 * LANES) * 4 : INT32_MAX;
}

/* Returns the bytes of a panel of all terms, two to a word, and of the sums of some channels, which
 * follow it. */
static int64_t panel_bytes(const Type w)
{
    enum { PIXELS = 64, CHANNELS = 16 };
    int64_t terms = type_numel(w) / w.dim[0].value;
    int64_t panel = (terms + 1) / 2 * PIXELS * 4, sums = CHANNELS * PIXELS * 4;
    return panel + (panel / 7 > sums ? panel / 7 : sums);
}

/* Returns the scratch with which a convolution can use the shapes of tiles that are fast, but at
 * most `most` bytes.  The sums of the convolution do not depend on it. */
static int64_t conv_bytes(const Conv *c, const Type y, int64_t most)
{
    const Type w = c->w->type;
    int64_t bytes = panel_bytes(w);
    bool is_depthwise = w.dim[1].value == 1 && w.dim[0].value / c->groups < 4;
    if (is_depthwise && picture_bytes(c, y) > bytes)
        bytes = picture_bytes(c, y);
    return bytes < most ? (bytes + 1023) / 1024 * 1024 : most;
}

bool emit_integer_conv(Function *f, const Node *n, Clamp clamp)
{
    Conv c;
    const char *w;
    bool done;
    (void)clamp;
    if (!check(f, n) || !emit_mcu_conv(f, n, &done))
        return false;
    if (done)
        return true;
    if (!put_conv_geometry(f, n, &c, &w))
        return false;
    put_integer(f, n);
    put_call(f, n, "conv", w, ", work");
    f->uses_work = true;
    int64_t bytes = conv_bytes(&c, n->out[0]->type, f->e->target->work_bytes);
    f->work_bytes = bytes > f->work_bytes ? bytes : f->work_bytes;
    return true;
}

bool emit_integer_fc(Function *f, const Node *n, Clamp clamp)
{
    const Type x = arg_value(n, "input")->type;
    Dim field[3] = {c_dims_product(f->e, x.dim, x.rank - 1), size_of(n->out[0], -1),
                    size_of(arg_value(n, "input"), -1)};
    bool done;
    (void)clamp;
    if (!check(f, n) || !emit_mcu_linear(f, n, &done))
        return false;
    if (done)
        return true;
    put(&f->body, "    const EtcIntegerLinear g = {");
    put_first_field(f, field[0]);
    put_field(f, field[1], false);
    put_field(f, field[2], true);
    put(&f->body, "}; /* m, n, k */\n");
    put_integer(f, n);
    put_call(f, n, "linear", function_pointer(f, arg_value(n, "weight")), "");
    return true;
}

bool emit_integer_softmax(Function *f, const Node *n, Clamp clamp)
{
    const char *index[MAX_LOOPS];
    Dim step[MAX_RANK];
    const Value *x = arg_value(n, "input"), *table = arg_value(n, "table"), *y = n->out[0];
    const int rank = y->type.rank, at = rank ? (small_int(n, "dim") + rank) % rank : 0;
    const int log_by = small_int(n, "log_by");
    (void)clamp;
    if (!value_is_fixed(table) || !c_type_is_dense(f->e, value_type(x)) ||
        !c_type_is_dense(f->e, y->type) || !type_is_static(y->type) ||
        type_bytes(y->type) > INT32_MAX)
        return function_refuse(f, n, "expects a constant table and known sizes without gaps");
    Nest nest = nest_new(f->e, y->type, 2);
    nest_operand(f->e, &nest, 0, value_type(x));
    nest_operand(f->e, &nest, 1, y->type);
    type_strides(f->e, y->type, step);
    if (rank)
        nest.size[at] = DIM(1);
    nest_collapse(f->e, &nest);
    put(&f->body,
        "    /* table, its numbers; factor, shift; zero point and range of y; sign of x to turn */\n"
        "    const EtcByteSoftmax q = {%s, %d, %d, %d, %d, %d, %d, %d};\n",
        function_pointer(f, table), (int)type_numel(table->type), small_int(n, "by"),
        small_int(n, "shift"), small_int(n, "output_zero"), small_int(n, "quant_min"),
        small_int(n, "quant_max"), x->type.dtype == ETC_I8 ? 0x80 : 0);
    int indent = nest_open(f, &nest, nest.rank, index);
    put(&f->body, "%*setc_%ssoftmax_i8%s(", indent, "", log_by ? "log_" : "",
        y->type.dtype == ETC_F32 ? "_f32" : "");
    nest_address(f, &nest, 0, function_pointer(f, x), nest.rank, index);
    put(&f->body, ", ");
    nest_address(f, &nest, 1, f->name_of[y->index], nest.rank, index);
    put(&f->body, ", %d, %d, ", rank ? (int)y->type.dim[at].value : 1,
        rank ? (int)step[at].value : 1);
    if (log_by)
        put(&f->body, "%dU, ", log_by);
    put(&f->body, "&q);\n");
    nest_close(f, nest.rank);
    return true;
}

static int turn_of(const Value *v)
{
    return v->type.dtype == ETC_I8 ? 0x80 : 0;
}

bool emit_integer_matmul(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "self"), *w = arg_value(n, "mat2"), *y = n->out[0];
    bool done;
    (void)clamp;
    if (!type_is_static(x->type) || !type_is_static(w->type) || !check(f, n) ||
        type_bytes(y->type) > INT32_MAX || type_bytes(x->type) > INT32_MAX ||
        type_bytes(w->type) > INT32_MAX)
        return function_refuse(f, n, "expects known sizes without gaps");
    const bool is_turned = arg_bool(n, "is_transposed");
    const int m = (int)x->type.dim[1].value, k = (int)x->type.dim[2].value,
              cols = (int)y->type.dim[2].value;
    if (!emit_mcu_matmul(f, n, &done) || done)
        return done;
    put(&f->body,
        "    /* batches, m, n, k; elements of the second from row to row and column to column; signs "
        "to\n     * turn, zero points as bytes count from 0; factor, zero point and range of y */\n"
        "    const EtcByteMatmul g = {%d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d};\n"
        "    etc_matmul_i8(",
        (int)x->type.dim[0].value, m, cols, k, is_turned ? 1 : cols, is_turned ? k : 1, turn_of(x),
        turn_of(w), small_int(n, "self_zero") + turn_of(x), small_int(n, "mat2_zero") + turn_of(w),
        small_int(n, "by"), small_int(n, "output_zero"), small_int(n, "quant_min"),
        small_int(n, "quant_max"));
    put(&f->body, "%s, ", function_pointer(f, x));
    put(&f->body, "%s, %s, &g);\n", function_pointer(f, w), f->name_of[y->index]);
    return true;
}

bool emit_integer_norm(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "input"), *factor = arg_value(n, "factors"),
                *offset = arg_value(n, "offsets"), *y = n->out[0];
    int64_t eps = 0;
    (void)clamp;
    arg_int(n, "eps", &eps);
    if (!value_is_fixed(factor) || !value_is_fixed(offset) || !check(f, n) ||
        !type_is_static(x->type) || type_bytes(x->type) > INT32_MAX)
        return function_refuse(f, n, "expects constants and known sizes without gaps");
    const int row = small_int(n, "row"), turn = turn_of(x);
    put(&f->body, "    /* factors, offsets; rows, elements of a row, of a channel; channels, whether "
        "the mean is\n     * subtracted; sign of x to turn, its zero point; bits; range of y; eps */\n"
        "    const EtcByteNorm q = {%s, ", function_pointer(f, factor));
    put(&f->body, "%s, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %d, %lluu};\n",
        function_pointer(f, offset), (int)(type_numel(x->type) / row), row, small_int(n, "each"),
        (int)type_numel(factor->type), arg_bool(n, "is_centred"), turn,
        small_int(n, "zero_point") + turn, small_int(n, "bits"), small_int(n, "shift"),
        small_int(n, "quant_min"), small_int(n, "quant_max"), (unsigned long long)eps);
    put(&f->body, "    etc_norm_i8(%s, %s, &q);\n", function_pointer(f, x), f->name_of[y->index]);
    return true;
}

bool program_multiplies_bytes(const Program *p)
{
    bool any = p->session->rounds_products;
    for (const Node *n = NULL; !any && (n = walk_next(p->method[0], n));)
        any = !strcmp(op_c(n->op), "integer_conv") || !strcmp(op_c(n->op), "integer_fc");
    return any;
}
