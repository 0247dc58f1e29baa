/* c_anchor.c -- prints the operators that a group can be built around: their geometry, which is
 * read from the node, and a call of the core that runtime-lite and the evaluator call too. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* -- shared ---------------------------------------------------------------------------------- */

static Dim leading(Function *f, const Value *v, int keep)
{
    assert(keep <= v->type.rank);
    return c_dims_product(f->e, v->type.dim, v->type.rank - keep);
}

/* -- batches with gaps ----------------------------------------------------------------------- */

/* If a concat is written in place, its operands have gaps between images.  A loop over the batch
 * then runs the core on one image at a time. */
typedef struct Batch {
    bool is_split;
    int indent;
    Dim n;
    const char *x, *y;
} Batch;

static const char *image(Function *f, Text *t, const Value *v, const char *b, const char *name)
{
    Dim stride[MAX_RANK];
    const char *at = names_make(f->names, name, "_b");
    type_strides(f->e, value_type(v), stride);
    put(t, "        %sfloat *%s = %s + (%s * ", name[0] == 'x' ? "const " : "", at,
        function_pointer(f, v), b);
    function_dim(f, stride[0]);
    put(t, ");\n");
    return at;
}

static Batch batch_split(Function *f, const Value *x, const Value *y)
{
    Text *t = &f->body;
    Batch b = {.is_split = true, .indent = 8, .n = DIM(1)};
    const char *i = names_make(f->names, "", "b");
    put(t, "    for (int64_t %s = 0; %s < ", i, i);
    function_dim(f, size_of(x, 0));
    put(t, "; %s++) {\n", i);
    b.x = image(f, t, x, i, "x");
    b.y = image(f, t, y, i, "y");
    return b;
}

static Batch batch_open(Function *f, const Value *x, const Value *y)
{
    if (!c_type_is_dense(f->e, value_type(x)) || !c_type_is_dense(f->e, y->type))
        return batch_split(f, x, y);
    return (Batch){.indent = 4, .n = size_of(x, 0), .x = function_pointer(f, x),
                   .y = f->name_of[y->index]};
}

static void batch_close(Function *f, const Batch *b)
{
    if (b->is_split)
        put(&f->body, "    }\n");
}

/* -- convolution ----------------------------------------------------------------------------- */

/* Returns the height (i is 0) or width (i is 1) of an image.  A signal is an image of height 1. */
static Dim spatial_size(const Type *t, int i)
{
    return t->rank == 3 && i == 0 ? DIM(1) : t->dim[t->rank - 2 + i];
}

static bool read_geometry(Function *f, const Node *n, Conv *c)
{
    bool ok = conv_read(n, c) && c->x->type.rank == c->axes + 2 && conv_as_image(c);
    return ok || function_refuse(f, n, "has C for batched 1-d and 2-d convolution only");
}

static bool read_conv(Function *f, const Node *n, Conv *c)
{
    return read_geometry(f, n, c) && check_tensors(f, n, part_axis(f, n->out[0]) == 2 ? 4 : 1);
}

static bool conv_is_blocked(const Function *f, const Conv *c)
{
    return !c->is_transposed && !c->w->type.dim[0].expr &&
           weight_is_blocked(f->e, c->w, c->w->type.dim[0].value / c->groups);
}

/* With fewer input channels, taps are terms like channels: etc_taps_are_terms of
 * kernels/bfloat_tiles.h. */
enum { FEW_CHANNELS = 16 };

static const char *conv_weights(Function *f, const Conv *c, bool is_bfloat)
{
    if (!conv_is_blocked(f, c))
        return function_pointer(f, c->w);
    const int64_t rows = c->w->type.dim[0].value, terms = type_numel(c->w->type) / rows;
    RowBlocks b = {.count = c->groups, .rows = rows / c->groups, .terms = terms, .row = terms, .term = 1};
    int64_t kept = terms;
    if (is_bfloat) {
        const int64_t channels = c->w->type.dim[1].value;
        b.taps = channels < FEW_CHANNELS ? 1 : terms / channels;
        b.words = step_words(terms / b.taps);
        kept = 2 * all_words(terms / b.taps) * b.taps;
    }
    return part_of_array(f, c->w, blocked_weight(f->e, c->w, b), DIM(kept));
}

static const char *conv_form(const Function *f, const Conv *c)
{
    return conv_is_blocked(f, c) ? "ETC_IN_BLOCKS"
           : c->is_transposed    ? "ETC_TRANSPOSED"
                                 : "ETC_FORWARD";
}

/* Prints the fields of an EtcConv: n, groups; ic, ih, iw; oc, oh, ow; kernel, stride, padding,
 * dilation; clamp, form of the weights, planes. */
static void put_conv(Function *f, const Value *y, const Conv *c, Dim images, Clamp clamp,
                     const char *form)
{
    const Value *x = c->x, *w = c->w;
    Program *p = f->e->method->program;
    const bool is_cut = part_axis(f, x) == 1; /* each group has one channel */
    Dim groups = is_cut ? size_of(x, 1) : DIM(c->groups);
    Dim field[16] = {
        images, groups,
        is_cut ? DIM(1) : dim_floordiv(p, size_of(x, 1), groups), spatial_size(&x->type, 0),
        spatial_size(&x->type, 1),
        is_cut ? DIM(1) : dim_floordiv(p, size_of(y, 1), groups),
        spatial_size(part_whole(f, y), 0), spatial_size(&y->type, 1),
        spatial_size(&w->type, 0), spatial_size(&w->type, 1),
        DIM(c->stride[0]), DIM(c->stride[1]), DIM(c->pad[0]), DIM(c->pad[1]),
        DIM(c->dilation[0]), DIM(c->dilation[1]),
    };
    put(&f->body, "{");
    put_fields(f, field, 16);
    put_clamp(f, clamp);
    put(&f->body, ", %s, 0, 0}", form);
}

static const char conv_fields[] =
    "n, groups; ic, ih, iw; oc, oh, ow; kernel, stride, padding, dilation; clamp, form, planes";

/* Returns whether the weights are stored in quads of input channels: for x86 CPUs that add four
 * products of bytes at once, if most of the four exist.  AVX2 does so for some layers only, and if
 * all four exist. */
static bool conv_is_in_quads(Function *f, const Conv *c)
{
    const Type w = c->w->type;
    const Target *t = f->e->target;
    const int64_t ic = type_is_static(w) ? w.dim[1].value : 0;
    assert(w.rank >= 3); /* channels, and at least one axis of taps */
    return t->quad_channels > 0 && ic % t->quad_channels == 0 && !c->is_transposed &&
           type_numel(w) > w.dim[0].value * ic && (ic + 3) / 4 * 12 <= ic * 4 &&
           constant_bytes_of(f->e, c->w, ETC_I8) &&
           f->e->n_readers[c->w->state->storage] == 1;
}

bool put_conv_geometry(Function *f, const Node *n, Conv *c, const char **weights)
{
    if (!read_geometry(f, n, c))
        return false;
    const bool is_in_quads = conv_is_in_quads(f, c);
    if (is_in_quads) {
        f->e->has_quads = true;
        const int64_t rows = c->w->type.dim[0].value, ic = c->w->type.dim[1].value;
        const RowBlocks b = {.count = 1, .rows = rows, .terms = ic,
                             .term = type_numel(c->w->type) / (rows * ic), .is_quads = true};
        *weights = part_of_array(f, c->w, blocked_weight(f->e, c->w, b),
                                 DIM((ic + 3) / 4 * 4 * b.term));
    } else {
        *weights = function_pointer(f, c->w);
    }
    put(&f->body, "    /* %s */\n    const EtcConv g = ", conv_fields);
    put_conv(f, n->out[0], c, size_of(c->x, 0), NO_CLAMP,
             is_in_quads ? "ETC_IN_QUADS" : c->is_transposed ? "ETC_TRANSPOSED" : "ETC_FORWARD");
    put(&f->body, ";\n");
    return true;
}

/* Returns how many floats etc_conv_bf16 may widen at a time, and takes room for them. */
static int64_t take_wide(Function *f, const Conv *c)
{
    enum { WIDE = 1 << 16 };
    const int64_t rows = c->w->type.dim[0].value, depth = type_numel(c->w->type) / rows;
    const int64_t blocks = (rows / c->groups + TOGETHER - 1) / TOGETHER, least = depth * TOGETHER;
    const int64_t all = least * (blocks > 1 ? blocks : 2), most = least > WIDE ? least : WIDE;
    const int64_t n = all < most ? all : most, bytes = n * 4;
    f->e->lines_bytes = bytes > f->e->lines_bytes ? bytes : f->e->lines_bytes;
    return n;
}

/* Prints the call of the core, whose geometry is g. */
static void put_conv_call(Function *f, const Conv *c, const Value *y, const Batch *b)
{
    const bool is_bfloat = conv_is_blocked(f, c) && weight_is_bfloat(f->e, c->w);
    const char *weights = conv_weights(f, c, is_bfloat), *bias = array_or_null(f, c->bias);
    const char *rows = part_of_rows(f, y, NULL);
    if (f->e->is_compact && !rows) {
        f->e->uses_compact = true;
        put(&f->body, "%*setc_compact_%s(%s, %s, %s, %s, &g);\n", b->indent, "",
            c->is_transposed ? "transposed" : "conv", b->x, weights, bias, b->y);
        return;
    }
    put(&f->body, "%*setc_conv_%s(%s, %s, %s, %s, &g, ", b->indent, "",
        rows ? "rows" : is_bfloat ? "bf16" : "f32", b->x, weights, bias, b->y);
    if (is_bfloat)
        put(&f->body, "%" PRId64 ", ", take_wide(f, c));
    if (rows)
        put(&f->body, "0, %s, ", rows);
    put(&f->body, "work);\n");
    f->uses_work = true;
}

bool emit_conv(Function *f, const Node *n, Clamp clamp)
{
    Conv c;
    if (node_is_wide(n))
        return emit_wide_conv(f, n);
    if (!read_conv(f, n, &c))
        return false;
    Batch b = batch_open(f, c.x, n->out[0]);
    put(&f->body, "%*s/* %s */\n%*sconst EtcConv g = ", b.indent, "", conv_fields, b.indent, "");
    put_conv(f, n->out[0], &c, b.n, clamp, conv_form(f, &c));
    put(&f->body, ";\n");
    const int64_t rows = winograd_rows(f->e, &c, n->out[0]);
    if (rows)
        put_winograd(f, &c, n->out[0], rows, b.x, b.y, b.indent);
    else
        put_conv_call(f, &c, n->out[0], &b);
    batch_close(f, &b);
    return true;
}

bool emit_stage(Function *f, const Node *n, Clamp clamp, int room)
{
    Conv c;
    if (!read_conv(f, n, &c))
        return false;
    const char *weights = conv_weights(f, &c, false), *bias = array_or_null(f, c.bias);
    put(&f->body, "        {%s, %s,\n         ", weights, bias);
    put_conv(f, n->out[0], &c, DIM(1), clamp, conv_form(f, &c));
    put(&f->body, ", %d},\n", room);
    return true;
}

void emit_stream(Function *f, const Value *x, const Value *y, int n, int rows)
{
    Batch b = batch_split(f, x, y);
    put(&f->body, "%*setc_stream_f32(%s, %s, stage, %d, %s, %d,\n%*s(float *)(void *)((uint8_t *)work "
        "+ ETC_WORK_BYTES), work);\n", b.indent, "", b.x, b.y, n, part_of_rows(f, y, "0, INT32_MAX"),
        rows, b.indent + 16, "");
    f->uses_work = true;
    batch_close(f, &b);
}

/* -- matrix products ------------------------------------------------------------------------- */

typedef struct Matmul {
    const char *a, *b, *y;
    const Value *bias;
    Dim m, n, k;
    const char *b_form;
    Dim b_row;
    bool from_y;
    bool is_in_blocks; /* etc_matmul_part computes several rows of y, which are y_row apart, with b
                        * in blocks */
    bool is_bfloat; /* etc_matmul_bf16 computes the same, with blocks of bfloat16 */
    Dim y_row;
} Matmul;

static void put_product(Function *f, const Matmul *p, Clamp clamp, int indent)
{
    Dim field[5] = {p->m, p->n, p->k, p->k, p->b_row};
    put(&f->body, "%*s/* m, n, k; a_row, b_row; clamp; form of b, from_y */\n"
        "%*sconst EtcMatmul g = {", indent, "", indent, "");
    put_first_field(f, field[0]);
    put_fields(f, field + 1, 4);
    put_clamp(f, clamp);
    put(&f->body, ", %s, %d};\n", p->b_form, p->from_y);
    if (p->is_in_blocks || p->is_bfloat) {
        put(&f->body, "%*setc_matmul_%s(%s, %s, %s, %s, &g, ", indent, "",
            p->is_bfloat ? "bf16" : "part", p->a, p->b, array_or_null(f, p->bias), p->y);
        function_dim(f, p->y_row);
        put(&f->body, p->is_bfloat ? ", work);\n" : ");\n");
        f->uses_work = f->uses_work || p->is_bfloat;
        return;
    }
    if (f->e->is_compact) {
        f->e->uses_compact = true;
        put(&f->body, "%*setc_compact_matmul(%s, %s, %s, %s, &g);\n", indent, "", p->a, p->b,
            array_or_null(f, p->bias), p->y);
        return;
    }
    put(&f->body, "%*setc_matmul_f32(%s, %s, %s, %s, &g, work);\n", indent, "", p->a, p->b,
        array_or_null(f, p->bias), p->y);
    f->uses_work = true;
}

static Dim columns_of(const Product *p)
{
    return size_of(p->w, p->is_rows ? 0 : -1);
}

/* Returns whether there is no bias, or it has one number for each column of y.  Otherwise the bias
 * is broadcast into y first, and the sums start from there. */
static bool is_row(Function *f, const Product *p)
{
    const Type t = p->bias ? p->bias->type : (Type){0};
    return !p->bias || p->is_rows ||
           (t.rank && dim_equal(c_dims_product(f->e, t.dim, t.rank), columns_of(p)) &&
            dim_equal(t.dim[t.rank - 1], columns_of(p)));
}

static void put_bias(Function *f, const Value *bias, const Value *y)
{
    Nest nest = nest_new(f->e, y->type, 1);
    Dim stride[MAX_RANK];
    nest_operand(f->e, &nest, 0, value_type(bias));
    type_strides(f->e, y->type, stride);
    put_copy(f, y->type, function_pointer(f, bias), nest.stride[0], f->name_of[y->index], stride);
}

/* Sets b, its form and its row stride.  A weight that is stored in blocks is taken from there.
 * Returns whether it is. */
static bool set_weight(Function *f, const Product *p, Matmul *m)
{
    const Dim n = columns_of(p);
    m->b_row = p->is_rows ? m->k : n;
    if (n.expr || m->k.expr || !weight_is_blocked(f->e, p->w, n.value)) {
        m->b_form = p->is_rows ? "ETC_BY_COLUMNS" : "ETC_BY_ROWS";
        m->b = function_pointer(f, p->w);
        return false;
    }
    const bool is_rows = p->is_rows;
    m->b_form = "ETC_BY_BLOCKS";
    RowBlocks b = {.count = 1, .rows = n.value, .terms = m->k.value,
                   .row = is_rows ? m->k.value : 1, .term = is_rows ? 1 : n.value,
                   .is_filled = true};
    m->is_bfloat = weight_is_bfloat(f->e, p->w);
    if (m->is_bfloat)
        b.words = b.taps = 1;
    const char *blocks = blocked_weight(f->e, p->w, b);
    m->b = part_of_array(f, p->w, blocks, m->is_bfloat ? DIM(2 * all_words(m->k.value)) : m->k);
    return true;
}

bool emit_fc(Function *f, const Node *n, Clamp clamp)
{
    Product p;
    const Value *y = n->out[0];
    if (!product_read(n, &p))
        return function_refuse(f, n, "expects matrices and numbers that are known");
    if (node_is_wide(n))
        return emit_wide_product(f, n, &p);
    if (!check_tensors(f, n, part_axis(f, y) > 0 ? y->type.rank : 0))
        return false;
    bool is_scaled = p.alpha != 1 || p.beta != 1, from_y = !is_scaled && !is_row(f, &p);
    if (from_y)
        put_bias(f, p.bias, y);
    Matmul m = {.a = function_pointer(f, p.x), .y = f->name_of[y->index],
                .bias = from_y || is_scaled ? NULL : p.bias, .m = leading(f, p.x, 1),
                .n = size_of(y, -1), .k = size_of(p.x, -1), .from_y = from_y};
    const bool is_blocked = set_weight(f, &p, &m);
    const bool is_columns = part_is_columns(f, y, &m.y_row);
    m.is_in_blocks = (is_columns || is_blocked) && dim_upper(m.m) > 1;
    put_product(f, &m, clamp, 4);
    if (is_scaled)
        put_scaled(f, n, &p);
    return true;
}

bool emit_matmul(Function *f, const Node *n, Clamp clamp)
{
    Product p;
    if (!product_read(n, &p) || !p.is_batch)
        return function_refuse(f, n, "expects two batches of matrices");
    if (node_is_wide(n))
        return emit_wide_product(f, n, &p);
    if (!check_tensors(f, n, 0))
        return false;
    const char *i = names_make(f->names, "", "b");
    const Value *operand[3] = {p.x, p.w, n->out[0]};
    const char *at[3];
    put(&f->body, "    for (int64_t %s = 0; %s < ", i, i);
    function_dim(f, size_of(p.x, 0));
    put(&f->body, "; %s++) {\n", i);
    for (int k = 0; k < 3; k++) {
        at[k] = names_make(f->names, k == 0 ? "a" : k == 1 ? "b" : "y", "_b");
        put(&f->body, "        %sfloat *%s = %s + (%s * ", k < 2 ? "const " : "", at[k],
            k < 2 ? function_pointer(f, operand[k]) : f->name_of[operand[k]->index], i);
        function_dim(f, c_dims_product(f->e, operand[k]->type.dim + 1, 2));
        put(&f->body, ");\n");
    }
    Matmul m = {.a = at[0], .b = at[1], .y = at[2], .m = size_of(p.x, 1), .n = size_of(p.w, 2),
                .k = size_of(p.x, 2), .b_row = size_of(p.w, 2), .b_form = "ETC_BY_ROWS"};
    put_product(f, &m, clamp, 8);
    put(&f->body, "    }\n");
    return true;
}

/* -- pools ----------------------------------------------------------------------------------- */

static bool is_adaptive(const Node *n)
{
    return n->op == OP__ADAPTIVE_AVG_POOL2D;
}

/* Reads the geometry of a pool.  An adaptive pool needs none, because its core computes the
 * windows. */
static bool read_window(const Node *n, Pool *p)
{
    if (!is_adaptive(n))
        return pool_read(n, p);
    *p = (Pool){.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .counts_pad = true};
    return true;
}

static void put_window(Function *f, const Node *n, const Pool *w, Dim images, int indent)
{
    const Value *x = first_operand(n), *y = n->out[0];
    Dim planes = dim_mul(f->e->method->program, images, size_of(x, -3));
    Dim field[14] = {planes, size_of(x, -2), size_of(x, -1), size_of(y, -2), size_of(y, -1),
                     DIM(w->kernel[0]), DIM(w->kernel[1]), DIM(w->stride[0]), DIM(w->stride[1]),
                     DIM(w->pad[0]), DIM(w->pad[1]), DIM(w->dilation[0]), DIM(w->dilation[1]),
                     DIM(w->divisor)};
    put(&f->body, "%*s/* planes, ih, iw, oh, ow; kernel, stride, padding, dilation; divisor, "
        "count_pad, adaptive */\n%*sconst EtcPool g = {", indent, "", indent, "");
    put_fields(f, field, 14);
    put(&f->body, "%d, %d};\n", w->is_max || w->counts_pad, is_adaptive(n));
}

/* Prints the geometry of a pool over images of 8-bit integers. */
static bool put_byte_window(Function *f, const Node *n, const Pool *w)
{
    const Value *x = first_operand(n), *y = n->out[0];
    if (x->type.rank < 3 || x->type.rank > 4)
        return function_refuse(f, n, "expects images with or without a batch");
    if (!c_type_is_dense(f->e, value_type(x)) || !c_type_is_dense(f->e, y->type))
        return function_refuse(f, n, "expects a dense tensor here");
    put_window(f, n, w, x->type.rank == 4 ? size_of(x, 0) : DIM(1), 4);
    return true;
}

static bool emit_byte_pool(Function *f, const Node *n, const Pool *w)
{
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    bool done;
    if (!emit_mcu_max(f, n, w, &done) || done)
        return done;
    if (!put_byte_window(f, n, w))
        return false;
    put(&f->body, "    etc_max_pool_i8(%s, %s, %d, &g);\n", function_pointer(f, x),
        f->name_of[y->index], x->type.dtype == ETC_I8);
    return true;
}

bool emit_integer_pool(Function *f, const Node *n, Clamp clamp)
{
    Pool w;
    double by = 0;
    const Value *x = arg_value(n, "input"), *y = n->out[0];
    (void)clamp;
    if (!read_window(n, &w) || !arg_number(n, "scale", &by))
        return function_refuse(f, n, "expects constant geometry");
    bool done;
    if (!emit_mcu_mean(f, n, &w, by, &done))
        return false;
    if (done)
        return true;
    if (!put_byte_window(f, n, &w))
        return false;
    put(&f->body, "    /* x_is_signed, zero point of x; its scale / that of y, zero point and range "
        "of y */\n    const EtcMean q = {%d, %d, ", x->type.dtype == ETC_I8,
        small_int(n, "zero_point"));
    put_float(&f->body, (float)by);
    put(&f->body, ", %d, %d, %d};\n    etc_avg_pool_i8(%s, %s, &g, &q);\n",
        small_int(n, "output_zero"), small_int(n, "quant_min"), small_int(n, "quant_max"),
        function_pointer(f, x), f->name_of[y->index]);
    return true;
}

/* Prints an adaptive average pool of bytes, whose windows differ in size. */
static bool emit_adaptive_bytes(Function *f, const Node *n)
{
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    const Type s = x->type, t = y->type;
    if (s.rank != 4 || !type_is_static(s) || !type_is_static(t) || !c_type_is_dense(f->e, s) ||
        !c_type_is_dense(f->e, t) || type_bytes(s) > 1 << 22)
        return function_refuse(f, n, "expects images of known sizes");
    put(&f->body, "    /* planes, ih, iw, oh, ow; sign of x to turn */\n"
        "    const EtcMcuResize g = {%d, %d, %d, %d, %d, %d, NULL, NULL};\n"
        "    etc_mcu_adaptive_bytes(%s, %s, &g);\n", (int)(s.dim[0].value * s.dim[1].value),
        (int)s.dim[2].value, (int)s.dim[3].value, (int)t.dim[2].value, (int)t.dim[3].value,
        s.dtype == ETC_I8 ? 0x80 : 0, function_pointer(f, x), f->name_of[y->index]);
    return true;
}

bool emit_pool(Function *f, const Node *n, Clamp clamp)
{
    Pool w;
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    (void)clamp;
    if (is_adaptive(n) && (x->type.dtype == ETC_I8 || x->type.dtype == ETC_U8))
        return emit_adaptive_bytes(f, n);
    if (!read_window(n, &w))
        return function_refuse(f, n, "expects constant geometry");
    if (n->op == OP_MAX_POOL2D && (x->type.dtype == ETC_I8 || x->type.dtype == ETC_U8))
        return emit_byte_pool(f, n, &w);
    if (node_is_wide(n) && !is_adaptive(n))
        return emit_wide_pool(f, n);
    if (x->type.rank < 3 || x->type.rank > 4 || !check_tensors(f, n, 1))
        return x->type.rank >= 3 && x->type.rank <= 4
                   ? false
                   : function_refuse(f, n, "expects images with or without a batch");
    Batch b = x->type.rank == 4 ? batch_open(f, x, y)
                                : (Batch){false, 4, DIM(1), function_pointer(f, x),
                                          f->name_of[y->index]};
    const Value *where = n->n_out > 1 && !n->out[1]->type.is_none ? n->out[1] : NULL;
    if (b.is_split && where)
        return function_refuse(f, n, "takes no gaps where indices are wanted");
    put_window(f, n, &w, b.n, b.indent);
    put(&f->body, "%*setc_%s_pool_f32(%s, %s, ", b.indent, "", w.is_max ? "max" : "avg", b.x, b.y);
    if (w.is_max)
        put(&f->body, "%s, ", where ? f->name_of[where->index] : "NULL");
    put(&f->body, w.is_max ? "&g, work);\n" : "&g);\n");
    f->uses_work = f->uses_work || w.is_max;
    batch_close(f, &b);
    return true;
}

/* -- softmax, norms, reductions -------------------------------------------------------------- */

static int axis(int64_t d, int rank)
{
    return (int)(d < 0 ? d + rank : d);
}

bool emit_softmax(Function *f, const Node *n, Clamp clamp)
{
    const char *index[MAX_LOOPS];
    Dim row[MAX_RANK];
    int64_t d = -1;
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    (void)clamp;
    if (node_is_wide(n))
        return emit_wide_softmax(f, n);
    if (!check_tensors(f, n, 0) || !arg_int(n, "dim", &d))
        return false;
    Nest nest = nest_new(f->e, y->type, 2);
    nest_operand(f->e, &nest, 0, value_type(x));
    nest_operand(f->e, &nest, 1, y->type);
    int at = axis(d, y->type.rank);
    Dim count = y->type.rank ? size_of(y, at) : DIM(1);
    type_strides(f->e, y->type, row);
    Dim inner = y->type.rank ? row[at] : DIM(1);
    for (int i = at; i >= 0 && i < y->type.rank; i++)
        nest.size[i] = DIM(1);
    nest_collapse(f->e, &nest);
    int indent = nest_open(f, &nest, nest.rank, index);
    const bool is_row = dim_is_one(inner);
    put(&f->body, "%*setc_softmax_%s(", indent, "", is_row ? "row" : "f32");
    nest_address(f, &nest, 0, function_pointer(f, x), nest.rank, index);
    put(&f->body, ", ");
    nest_address(f, &nest, 1, f->name_of[y->index], nest.rank, index);
    put(&f->body, ", ");
    put_field(f, count, false);
    if (!is_row)
        put_field(f, inner, false);
    put(&f->body, "%d);\n", n->op == OP__LOG_SOFTMAX);
    nest_close(f, nest.rank);
    return true;
}

static void put_at(Function *f, const Value *v, const char *fallback, const char *index)
{
    if (v)
        put(&f->body, "%s[%s], ", function_pointer(f, v), index);
    else
        put(&f->body, "%s, ", fallback);
}

/* Marks the results after the first as unused: statistics, which have no elements in inference.
 * Results that torch left out have no parameter. */
static void put_unused(Function *f, const Node *n)
{
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i]->type.rank != SCALAR)
            put(&f->body, "    (void)%s;\n", f->name_of[n->out[i]->index]);
}

/* Prints native_batch_norm(input, weight, bias, mean, var, momentum, eps). */
bool emit_norm(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "input"), *y = n->out[0];
    double eps = 0;
    (void)clamp;
    if (!check_tensors(f, n, 0) || !arg_number(n, "eps", &eps))
        return false;
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i]->type.rank != SCALAR && type_numel(n->out[i]->type))
            return function_refuse(f, n, "gives no statistics");
    Dim inner = c_dims_product(f->e, x->type.dim + 2, x->type.rank - 2);
    Text *t = &f->body;
    const char *c = names_make(f->names, "", "c"), *i = names_make(f->names, "", "i");
    put_unused(f, n);
    put(t, "    for (int64_t %s = 0; %s < ", c, c);
    function_dim(f, size_of(x, 1));
    put(t, "; %s++) {\n        float scale, shift;\n        etc_batch_norm_fold(", c);
    put_at(f, arg_value(n, "weight"), "1.0f", c);
    put_at(f, arg_value(n, "bias"), "0.0f", c);
    put_at(f, arg_value(n, "running_mean"), "0.0f", c);
    put_at(f, arg_value(n, "running_var"), "1.0f", c);
    put_float(t, (float)eps);
    put(t, ", &scale, &shift);\n        for (int64_t %s = 0; %s < ", i, i);
    function_dim(f, size_of(x, 0));
    put(t, "; %s++) {\n            const int64_t at = ((%s * ", i, i);
    function_dim(f, size_of(x, 1));
    put(t, ") + %s) * ", c);
    function_dim(f, inner);
    put(t, ";\n            etc_scale_shift_f32(%s + at, scale, shift, %s + at, ",
        function_pointer(f, x), f->name_of[y->index]);
    function_dim(f, inner);
    put(t, ");\n        }\n    }\n");
    return true;
}

/* Sets is_reduced[i] for the axes in argument `dim`, or for all axes if it is empty.  Returns false
 * if they are no known numbers. */
static bool reduced(const Node *n, int rank, bool *is_reduced)
{
    int64_t list[MAX_RANK];
    int count = arg_count(n, "dim");
    if (!arg_ints(n, "dim", list, MAX_RANK))
        return false;
    for (int i = 0; i < rank; i++)
        is_reduced[i] = count == 0;
    for (int i = 0; i < count; i++)
        if (rank)
            is_reduced[axis(list[i], rank)] = true;
    return true;
}

/* Prints code that passes the row at `x` to `core`.  Elements that are no neighbours are first
 * copied into blocks of ETC_SUM_BLOCK. */
static void put_row(Function *f, const Nest *row, const char *x, const char *core, const char *tail,
                    int indent)
{
    const char *index[MAX_LOOPS];
    Text *t = &f->body;
    if (row->rank == 1 && !row->stride[0][0].expr && row->stride[0][0].value == 1) {
        put(t, "%*s%s(%s, ", indent, "", core, x);
        function_dim(f, row->size[0]);
        put(t, ", %s);\n", tail);
        return;
    }
    put(t, "%*sfloat part[ETC_SUM_BLOCK];\n%*sint64_t filled = 0;\n", indent, "", indent, "");
    for (int i = 0; i < row->rank; i++) {
        index[i] = names_make(f->names, "", "r");
        put(t, "%*sfor (int64_t %s = 0; %s < ", indent + 4 * i, "", index[i], index[i]);
        function_dim(f, row->size[i]);
        put(t, "; %s++) {\n", index[i]);
    }
    int in = indent + 4 * row->rank;
    put(t, "%*spart[filled] = *(", in, "");
    nest_address(f, row, 0, x, row->rank, index);
    put(t,
        ");\n%*sfilled++;\n%*sif (filled == ETC_SUM_BLOCK) {\n%*s%s(part, filled, %s);\n%*sfilled = 0;\n%*s}\n",
        in, "", in, "", in + 4, "", core, tail, in + 4, "", in, "");
    for (int i = row->rank - 1; i >= 0; i--)
        put(t, "%*s}\n", indent + 4 * i, "");
    put(t, "%*sif (filled > 0) {\n%*s%s(part, filled, %s);\n%*s}\n", indent, "", indent + 4, "",
        core, tail, indent, "");
}

/* The loops of a reduction: over the axes that stay, and over the row of elements along the others,
 * whose number is `count`. */
typedef struct Reduction {
    Nest stay, row;
    Dim count;
} Reduction;

enum { SHORT = 8 }; /* sums of so few elements are printed as expressions */
enum { SUM_BLOCK = 512 }; /* ETC_SUM_BLOCK of kernels/reduce.h */

static bool is_short(const Nest *row)
{
    return row->rank == 1 && !row->size[0].expr && row->size[0].value > 0 && row->size[0].value <= SHORT &&
           !row->stride[0][0].expr;
}

/* Prints the sum of elements i, i + apart and so on, in the order of etc_sum_end.  Adding 0 makes -0 a 0, as it
 * does there. */
static void put_tree(Text *t, const Nest *row, const char *x, int64_t i, int64_t apart)
{
    if (apart == SHORT) {
        put(t, "(%s[%lld] + 0.0f)", x, (long long)(i * row->stride[0][0].value));
    } else if (i + apart >= row->size[0].value) {
        put_tree(t, row, x, i, apart * 2);
    } else {
        put(t, "(");
        put_tree(t, row, x, i, apart * 2);
        put(t, " + ");
        put_tree(t, row, x, i + apart, apart * 2);
        put(t, ")");
    }
}

/* Returns whether one call returns the sum of a row. */
static bool is_compact_row(const Function *f, const Nest *row)
{
    return f->e->is_compact && row->rank == 1 && !row->size[0].expr && row->size[0].value <= SUM_BLOCK &&
           !row->stride[0][0].expr && row->stride[0][0].value == 1;
}

/* Returns whether the sum of a row is a number, and not an EtcSum. */
static bool sum_is_number(const Function *f, const Nest *row)
{
    return is_short(row) || is_compact_row(f, row);
}

/* Prints the sum of a row, which will be `sum`. */
static void put_sum(Function *f, const Nest *row, const char *x, int indent)
{
    if (is_short(row)) {
        put(&f->body, "%*sconst float sum = ", indent, "");
        put_tree(&f->body, row, x, 0, 1);
        put(&f->body, ";\n");
        return;
    }
    if (is_compact_row(f, row)) {
        put(&f->body, "%*sconst float sum = etc_compact_sum(%s, %" PRId64 ");\n", indent, "", x,
            row->size[0].value);
        return;
    }
    put(&f->body, "%*sEtcSum sum;\n%*setc_sum_start(&sum);\n", indent, "", indent, "");
    put_row(f, row, x, "etc_sum_f32", "&sum", indent);
}

static void put_result(Function *f, const Node *n, const char *y, const Reduction *r, int indent)
{
    Text *t = &f->body;
    if (n->op == OP_AMAX) {
        put(t, "%*s*(%s) = max;\n", indent, "", y);
        return;
    }
    put(t, "%*s*(%s) = %s", indent, "", y, sum_is_number(f, &r->row) ? "sum" : "etc_sum_end(&sum)");
    if (n->op == OP_MEAN_DIM) {
        put(t, " / (float)");
        function_dim(f, r->count);
    }
    put(t, ";\n");
}

static Reduction reduction_of(Function *f, const Node *n, const bool *goes)
{
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    Dim x_stride[MAX_RANK], y_stride[MAX_RANK];
    const bool keepdim = arg_bool(n, "keepdim");
    Reduction r = {nest_new(f->e, x->type, 2), nest_new(f->e, x->type, 1), DIM(1)};
    type_strides(f->e, value_type(x), x_stride);
    type_strides(f->e, y->type, y_stride);
    for (int i = 0, k = 0; i < x->type.rank; i++) {
        const Dim size = x->type.dim[i];
        r.stay.stride[0][i] = r.row.stride[0][i] = x_stride[i];
        r.stay.stride[1][i] = goes[i] ? DIM(0) : y_stride[k];
        r.count = goes[i] ? dim_mul(f->e->method->program, r.count, size) : r.count;
        r.stay.size[i] = goes[i] ? DIM(1) : size;
        r.row.size[i] = goes[i] ? size : DIM(1);
        k += !goes[i] || keepdim;
    }
    nest_collapse(f->e, &r.stay);
    nest_collapse(f->e, &r.row);
    return r;
}

/* Prints loops over the axes that stay.  Inside them, a core reduces the row of elements along the
 * other axes. */
bool emit_reduce(Function *f, const Node *n, Clamp clamp)
{
    const char *index[MAX_LOOPS];
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    bool goes[MAX_RANK], is_amax = n->op == OP_AMAX;
    (void)clamp;
    if ((!dtype_is_float(x->type.dtype) && !dtype_is_float(y->type.dtype)) || n->op == OP_AMIN ||
        n->op == OP_PROD || n->op == OP_PROD_DIM || (x->type.dtype == ETC_F64 && y->type.dtype == ETC_F64))
        return emit_any(f, n, clamp);
    if (!check_tensors(f, n, 0) || !reduced(n, x->type.rank, goes))
        return false;
    const Reduction r = reduction_of(f, n, goes);
    const int depth = r.stay.rank, indent = nest_open(f, &r.stay, depth, index);
    const char *from = names_make(f->names, "", "row");
    put(&f->body, "%*sconst float *%s = ", indent, "", from);
    nest_address(f, &r.stay, 0, function_pointer(f, x), depth, index);
    put(&f->body, ";\n");
    if (is_amax) {
        put(&f->body, "%*sfloat max = -__builtin_inff();\n", indent, "");
        put_row(f, &r.row, from, "max = etc_amax_f32", "max", indent);
    } else {
        put_sum(f, &r.row, from, indent);
    }
    Text address = {.a = f->e->a}, body = f->body;
    f->body = address;
    nest_address(f, &r.stay, 1, f->name_of[y->index], depth, index);
    address = f->body;
    f->body = body;
    put_result(f, n, address.s, &r, indent);
    nest_close(f, depth);
    return true;
}
