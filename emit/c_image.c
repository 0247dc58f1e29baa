/* c_image.c -- prints normalization in groups, resampling, Fourier transforms, and operators that
 * copy pieces of the input. */
#include "emit/c_emit.h"
#include <string.h>

static Dim mul(Function *f, Dim a, Dim b)
{
    return dim_mul(f->e->method->program, a, b);
}

static Dim add(Function *f, Dim a, Dim b)
{
    return dim_add(f->e->method->program, a, b);
}

static Dim sub(Function *f, Dim a, Dim b)
{
    return dim_sub(f->e->method->program, a, b);
}

/* -- normalization in groups ------------------------------------------------------------------- */

/* Returns the array of result i; "NULL" if there is none. */
static const char *result_or_null(Function *f, const Node *n, int i)
{
    return i < n->n_out && !n->out[i]->type.is_none ? f->name_of[n->out[i]->index] : "NULL";
}

/* Prints group_norm(input, groups, weight, bias, eps) or native_group_norm(input, weight, bias,
 * N, C, HxW, groups, eps). */
bool emit_group_norm(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "input"), *y = n->out[0];
    int is_native = n->op == OP_NATIVE_GROUP_NORM;
    int64_t groups = 1;
    double eps = 0;
    Program *p = f->e->method->program;
    (void)clamp;
    if (!check_tensors(f, n, 0))
        return false;
    if (!arg_int(n, is_native ? 6 : 1, &groups) || !arg_number(n, is_native ? 7 : 4, &eps))
        return function_refuse(f, n, "expects constant groups and eps");
    Dim field[4] = {size_of(x, 0), DIM(groups), dim_floordiv(p, size_of(x, 1), DIM(groups)),
                    c_dims_product(f->e, x->type.dim + 2, x->type.rank - 2)};
    put(&f->body, "    /* n, groups, channels of a group, floats of a channel; eps */\n"
        "    const EtcGroupNorm g = {");
    put_fields(f, field, 4);
    put_float(&f->body, (float)eps);
    const char *from = function_pointer(f, x);
    const char *weight = array_or_null(f, arg_value(n, is_native ? 1 : 2));
    const char *bias = array_or_null(f, arg_value(n, is_native ? 2 : 3));
    put(&f->body, "};\n    etc_group_norm_f32(%s, %s, %s, %s, ", from, weight, bias,
        f->name_of[y->index]);
    put(&f->body, "%s, %s, &g);\n", result_or_null(f, n, 1), result_or_null(f, n, 2));
    return true;
}

/* -- resampling -------------------------------------------------------------------------------- */

/* Prints the number of input elements per output element, which is computed as in
 * kernels/upsample.c. */
static void put_ratio(Function *f, Dim in, Dim out, bool align, double factor)
{
    Text *t = &f->body;
    int less = align ? 1 : 0;
    if (!align && factor > 0) {
        put_float(t, (float)(1.0 / factor));
    } else if (!in.expr && !out.expr) {
        bool is_one = align && out.value <= 1;
        put_float(t, is_one ? 0.0f : (float)(in.value - less) / (float)(out.value - less));
    } else {
        if (align) {
            put(t, "(");
            function_dim(f, out);
            put(t, " <= 1) ? 0.0f : ");
        }
        put(t, "((float)(");
        function_dim(f, sub(f, in, DIM(less)));
        put(t, ") / (float)(");
        function_dim(f, sub(f, out, DIM(less)));
        put(t, "))");
    }
}

/* Makes an array that says which element of image axis i each element of the result copies, as
 * kernels/upsample.h computes it.  If z is linear, the array has the first of two elements, and the
 * weight of the second in parts of 2048.  Returns the name of the array. */
static const char *put_places(Function *f, const Value *y, const Resize *z, int i, const char *what)
{
    const double PARTS = 2048;
    const int64_t in = z->x->type.dim[2 + i].value, out = y->type.dim[2 + i].value;
    const int each = z->is_linear ? 2 : 1;
    int32_t *at = NEW(f->e->a, int32_t, each * out);
    const double less = z->aligns_corners ? 1 : 0, factor = z->factor[i];
    const float scale = !z->aligns_corners && factor > 0 ? (float)(1.0 / factor)
                        : out > (int64_t)less
                            ? (float)((double)in - less) / (float)((double)out - less)
                            : 0.0f;
    for (int64_t o = 0; o < out; o++) {
        const double middle = z->is_linear && !z->aligns_corners ? 0.5 : 0;
        double v = z->is_linear ? ((double)o + middle) * (double)scale - middle
                                : (double)((float)o * scale);
        if (in == out)
            v = (double)o;
        else if (!z->is_linear && 2 * in == out)
            v = (double)(o / 2);
        else if (v < 0)
            v = 0;
        const int64_t first = v < (double)(in - 1) ? (int64_t)v : in - 1;
        at[each * o] = (int32_t)first;
        if (z->is_linear)
            at[2 * o + 1] = (int32_t)((v - (double)first > 1 ? 1 : v - (double)first) * PARTS +
                                      0.5);
    }
    return made_array(f->e, y->name, what, ETC_I32, each * out, at);
}

static bool emit_bytes_resized(Function *f, const Node *n, const Resize *z)
{
    const Value *x = z->x, *y = n->out[0];
    const Type s = x->type, t = y->type;
    if (!type_is_static(s) || !type_is_static(t) || !c_type_is_dense(f->e, s) ||
        !c_type_is_dense(f->e, t) || type_numel(t) < 1 || type_numel(t) > INT32_MAX)
        return function_refuse(f, n, "expects known sizes of bytes");
    const char *row = put_places(f, y, z, 0, "row"), *column = put_places(f, y, z, 1, "column");
    put(&f->body, "    /* planes, ih, iw, oh, ow; sign of x to turn; rows, columns */\n"
        "    const EtcMcuResize g = {%d, %d, %d, %d, %d, %d, %s, %s};\n"
        "    etc_mcu_%s_bytes(%s, %s, &g);\n", (int)(t.dim[0].value * t.dim[1].value),
        (int)s.dim[2].value, (int)s.dim[3].value, (int)t.dim[2].value, (int)t.dim[3].value,
        s.dtype == ETC_I8 ? 0x80 : 0, row, column, z->is_linear ? "linear" : "nearest",
        function_pointer(f, x), f->name_of[y->index]);
    return true;
}

bool emit_upsample(Function *f, const Node *n, Clamp clamp)
{
    Resize z;
    const Value *x = arg_value(n, "input"), *y = n->out[0];
    (void)clamp;
    if (!resize_read(n, &z))
        return function_refuse(f, n, "expects constant factors");
    if (x->type.rank != 4)
        return function_refuse(f, n, "expects images in a batch");
    if (x->type.dtype == ETC_I8 || x->type.dtype == ETC_U8)
        return emit_bytes_resized(f, n, &z);
    if (!check_tensors(f, n, 0))
        return false;
    Dim field[5] = {mul(f, size_of(x, 0), size_of(x, 1)), size_of(x, 2), size_of(x, 3),
                    size_of(y, 2), size_of(y, 3)};
    put(&f->body, "    /* planes, ih, iw, oh, ow; input per output element; align_corners */\n"
        "    const EtcUpsample g = {");
    put_fields(f, field, 5);
    for (int i = 0; i < 2; i++) {
        put_ratio(f, size_of(x, 2 + i), size_of(y, 2 + i), z.aligns_corners, z.factor[i]);
        put(&f->body, ", ");
    }
    put(&f->body, "%d};\n    etc_upsample_%s_f32(%s, %s, &g, work);\n", z.aligns_corners,
        z.is_linear ? "linear" : "nearest", function_pointer(f, x), f->name_of[y->index]);
    f->uses_work = true;
    return true;
}

/* Prints grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners). */
bool emit_grid_sampler(Function *f, const Node *n, Clamp clamp)
{
    static const int taps[] = {2, 1, 4};
    const Value *x = arg_value(n, "input"), *grid = arg_value(n, "grid"), *y = n->out[0];
    int64_t kind = 0, border = 0;
    int axes = x->type.rank - 2;
    (void)clamp;
    if (!check_tensors(f, n, 0))
        return false;
    if (!arg_int(n, "interpolation_mode", &kind) || !arg_int(n, "padding_mode", &border) ||
        kind < 0 || kind > 2 || border < 0 || border > 2 || (kind == 2 && axes == 3))
        return function_refuse(f, n, "expects a known way of sampling");
    Dim field[3] = {size_of(x, 0), size_of(x, 1), c_dims_product(f->e, y->type.dim + 2, axes)};
    put(&f->body,
        "    /* n, channels, places; sizes; axes, taps of each, border, align_corners */\n"
        "    const EtcGrid g = {");
    put_fields(f, field, 3);
    put(&f->body, "{");
    for (int i = 0; i < 3; i++)
        put_field(f, i < axes ? size_of(x, 2 + i) : DIM(1), i == 2);
    const char *from = function_pointer(f, x), *at = function_pointer(f, grid);
    put(&f->body, "}, %d, %d, %d, %d};\n    etc_grid_sample_f32(%s, %s, %s, &g);\n", axes,
        taps[kind], (int)border, arg_bool(n, "align_corners"), from, at, f->name_of[y->index]);
    return true;
}

/* -- Fourier transforms ------------------------------------------------------------------------ */

/* Prints fft(self, dim, n, form, backward).  Its second result is scratch. */
bool emit_fft(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "self");
    int64_t d = 0, form = 0;
    Dim field[3] = {arg_get(n, "n").dim, DIM(1), DIM(1)};
    (void)clamp;
    if (!arg_int(n, "dim", &d) || !arg_int(n, "form", &form) || !check_tensors(f, n, 0))
        return false;
    int axes = x->type.rank - (form != 1);
    d += d < 0 ? axes : 0;
    for (int i = 0; i < axes; i++)
        if (i != d)
            field[1 + (i > d)] = mul(f, field[1 + (i > d)], size_of(x, i));
    put(&f->body,
        "    /* n, outer, inner; of complex numbers, of real ones or to them; backward */\n"
        "    const EtcFft g = {");
    put_fields(f, field, 3);
    put(&f->body, "%d, %d};\n    etc_fft_f32(%s, %s, %s, &g);\n", (int)form,
        arg_bool(n, "backward"), function_pointer(f, x), f->name_of[n->out[0]->index],
        f->name_of[n->out[1]->index]);
    return true;
}

/* -- pieces ------------------------------------------------------------------------------------ */

/* Elements to .. to + n - 1 along an axis of the result are elements from, from + step, ... of the
 * input. */
typedef struct Piece {
    Dim to, from, n;
    int64_t step;
} Piece;

typedef struct Cut {
    int count[MAX_RANK];
    Piece piece[MAX_RANK][3];
} Cut;

static int64_t wrapped(int64_t axis, int rank)
{
    return axis < 0 ? axis + rank : axis;
}

static bool cut_flip(Function *f, const Node *n, Cut *c)
{
    int64_t axis[MAX_RANK];
    Type t = arg_value(n, "self")->type;
    if (!arg_ints(n, "dims", axis, MAX_RANK))
        return function_refuse(f, n, "expects constant dims");
    for (int i = 0; i < arg_count(n, "dims") && t.rank; i++) {
        int64_t d = wrapped(axis[i], t.rank);
        c->piece[d][0] = (Piece){DIM(0), sub(f, t.dim[d], DIM(1)), t.dim[d], -1};
    }
    return true;
}

/* Cuts each axis that is rolled into two pieces. */
static bool cut_roll(Function *f, const Node *n, Cut *c)
{
    Program *p = f->e->method->program;
    int64_t axis[MAX_RANK];
    Dim shift[MAX_RANK], all[MAX_RANK] = {DIM(0)};
    Type t = arg_value(n, "self")->type;
    if (!arg_dims(n, "shifts", shift, MAX_RANK) || !arg_ints(n, "dims", axis, MAX_RANK) ||
        arg_count(n, "shifts") != arg_count(n, "dims") || !t.rank)
        return function_refuse(f, n, "expects shifts that follow from sizes, and constant dims");
    for (int i = 0; i < arg_count(n, "shifts"); i++) {
        Dim *by = &all[wrapped(axis[i], t.rank)];
        *by = add(f, *by, shift[i]);
    }
    for (int d = 0; d < t.rank; d++) {
        Dim first = dim_mod(p, all[d], dim_max(p, t.dim[d], DIM(1)));
        Dim rest = sub(f, t.dim[d], first);
        c->count[d] = 2;
        c->piece[d][0] = (Piece){DIM(0), rest, first, 1};
        c->piece[d][1] = (Piece){first, DIM(0), rest, 1};
    }
    return true;
}

static bool cut_borders(Function *f, const Node *n, bool is_reflection, Cut *c)
{
    Program *p = f->e->method->program;
    Dim pad[6];
    Type t = arg_value(n, "self")->type;
    if (!arg_dims(n, "padding", pad, 6))
        return function_refuse(f, n, "expects padding that follows from sizes");
    for (int i = 0; i < arg_count(n, "padding") / 2; i++) {
        int d = t.rank - 1 - i, step = -is_reflection;
        Dim lo = pad[2 * i], hi = pad[2 * i + 1];
        Dim before = dim_max(p, lo, DIM(0)), after = dim_max(p, hi, DIM(0));
        Dim kept = sub(f, sub(f, n->out[0]->type.dim[d], before), after);
        Dim last = sub(f, t.dim[d], DIM(1 + is_reflection));
        c->count[d] = 3;
        c->piece[d][0] = (Piece){DIM(0), is_reflection ? before : DIM(0), before, step};
        c->piece[d][1] = (Piece){before, sub(f, before, lo), kept, 1};
        c->piece[d][2] = (Piece){add(f, before, kept), last, after, step};
    }
    return true;
}

/* Prints the copy of one block: piece which[d] of each axis d. */
static void put_block(Function *f, const Node *n, const Cut *c, const int *which)
{
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    Dim x_stride[MAX_RANK], y_stride[MAX_RANK], dim[MAX_RANK], from = DIM(0), to = DIM(0);
    Type t = y->type;
    type_strides(f->e, value_type(x), x_stride);
    type_strides(f->e, y->type, y_stride);
    for (int d = 0; d < t.rank; d++) {
        const Piece *p = &c->piece[d][which[d]];
        if (!p->n.expr && p->n.value <= 0)
            return;
        from = add(f, from, mul(f, p->from, x_stride[d]));
        to = add(f, to, mul(f, p->to, y_stride[d]));
        x_stride[d] = mul(f, x_stride[d], DIM(p->step));
        dim[d] = p->n;
    }
    t.dim = dim;
    t.stride = NULL;
    put_copy(f, t, offset_by(f, function_pointer(f, x), from), x_stride,
             offset_by(f, f->name_of[y->index], to), y_stride);
}

bool emit_pieces(Function *f, const Node *n, Clamp clamp)
{
    Cut c = {0};
    int which[MAX_RANK] = {0};
    Type t = arg_value(n, "self")->type;
    (void)clamp;
    for (int d = 0; d < t.rank; d++) {
        c.count[d] = 1;
        c.piece[d][0] = (Piece){DIM(0), DIM(0), t.dim[d], 1};
    }
    bool is_reflection = n->op == OP_REFLECTION_PAD1D || n->op == OP_REFLECTION_PAD2D ||
                         n->op == OP_REFLECTION_PAD3D;
    if (!(n->op == OP_FLIP   ? cut_flip(f, n, &c)
          : n->op == OP_ROLL ? cut_roll(f, n, &c)
                             : cut_borders(f, n, is_reflection, &c)))
        return false;
    for (int d = 0; d >= 0;) {
        put_block(f, n, &c, which);
        for (d = t.rank - 1; d >= 0 && ++which[d] == c.count[d]; d--)
            which[d] = 0;
    }
    return true;
}
