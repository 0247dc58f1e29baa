/* fuse_integers.c -- products between dequantize and quantize are computed in integers, for C.
 *
 * Stage core, after pass quantize.  Two walks in order of the graph, each node looked at once; the
 * last rule is the second's, which also gives each pointwise reader a dequantize of its own, so
 * that loops read bytes:
 *
 *   product(dequantize(x), dequantize(w), b)  ==>  etc.integer_*(x, w, b)      floats result
 *   clamp(etc.integer_*(...))                 ==>  the same with the clamp     read once
 *   quantize(etc.integer_*(...))              ==>  the same with integers      read once
 *   mover(dequantize(x))                      ==>  dequantize(mover(x))        per tensor
 *   quantize(dequantize(x))                   ==>  x                           of the same scale
 *   quantize(clamp(dequantize(etc.integer_*)))  ==>  the same with another range   read once
 *   quantize(mean(dequantize(x)))         ==>  etc.integer_avg_pool2d(x)       read once
 *
 * A product is linear, addmm, mm or a convolution; w is constant, of 8 bits and with zero points 0.
 * x has one scale, known or computed at run time, or for a matrix one per row.  A mean is that of
 * the last axes or of windows, known in size.  Only products and means round otherwise than before.
 * What is dequantized but for nobody goes with dce.
 */
#include "passes/internal.h"
#include <math.h>
#include <string.h>

/* Of a sum that must not leave 32 bits: kernels/integer.h; a mean's, that is exact as a float. */
enum { MOST_TERMS = 65536, MOST_PIXELS = 65536 };

typedef struct Fuse {
    Rewrite r;
    Uses u;
} Fuse;

/* Of the rows that quantize or undo it per tensor by numbers. */
typedef struct Points {
    double scale;
    int64_t zero, lo, hi;
    EtcDtype dtype;
} Points;

/* -- reading --------------------------------------------------------------------------------- */

/* Of a value of the graph as it was. */
static bool is_read_once(const Fuse *f, const Value *v)
{
    return v->index < f->r.first_new && !f->u.escapes[v->index] &&
           f->u.first[v->index + 1] - f->u.first[v->index] == 1;
}

static bool is_byte(EtcDtype t)
{
    return t == ETC_I8 || t == ETC_U8;
}

static int64_t least_of(EtcDtype t)
{
    return t == ETC_U8 ? 0 : -128;
}

/* Scales far from the ends of float, so that scaling there and back is exact; zero points within
 * the dtype. */
static bool read_points(const Node *n, EtcDtype dtype, Points *p)
{
    *p = (Points){.dtype = dtype};
    return is_byte(dtype) && arg_number(n, "scale", &p->scale) &&
           arg_int(n, "zero_point", &p->zero) && arg_int(n, "quant_min", &p->lo) &&
           arg_int(n, "quant_max", &p->hi) && p->scale > 1e-30 && p->scale < 1e30 &&
           p->zero >= least_of(dtype) && p->zero <= least_of(dtype) + 255;
}

/* x of a dequantize(x) to floats, per tensor by numbers; else NULL. */
static Value *read_dequantize(const Value *v, Points *p)
{
    const Node *n = v ? v->def : NULL;
    bool ok = n && n->op == OP_DEQUANTIZE_PER_TENSOR && v->type.dtype == ETC_F32 &&
              read_points(n, arg_value(n, "input")->type.dtype, p);
    return ok ? arg_value(n, "input") : NULL;
}

static bool same_points(const Points *a, const Points *b)
{
    return (float)a->scale == (float)b->scale && a->zero == b->zero && a->dtype == b->dtype;
}

/* A constant's bytes, dense; else NULL. */
static const void *const_data(const Value *v)
{
    bool ok = v && value_is_const(v) && !v->type.stride && type_is_static(v->type) &&
              v->state->n_bytes >= type_bytes(v->type);
    return ok ? v->state->data : NULL;
}

/* Element i of a constant of floats or integers. */
static double number_at(const Value *v, const void *data, int64_t i)
{
    const EtcTensor t = {.dtype = v->type.dtype, .data = (void *)(uintptr_t)data};
    return tensor_number(&t, i);
}

/* -- weights --------------------------------------------------------------------------------- */

typedef struct Weight {
    const Value *v;     /* of 8 bits */
    bool is_transposed; /* [k, channels] */
    int64_t n, k;       /* channels, terms */
    double *scale;      /* per channel */
} Weight;

/* Rows and columns change places. */
static bool is_transpose(const Node *n)
{
    int64_t axis[2];
    return n->op == OP_PERMUTE && n->out[0]->type.rank == 2 && arg_ints(n, "dims", axis, 2) &&
           (axis[0] & 1) == 1 && (axis[1] & 1) == 0;
}

/* Scale and zero point of channel i, of the node that dequantizes w. */
static bool read_scale(const Node *n, int64_t i, double *scale)
{
    double zero = 0;
    if (n->op == OP_DEQUANTIZE_PER_TENSOR)
        return arg_number(n, "scale", scale) && arg_number(n, "zero_point", &zero) && zero == 0;
    const Value *s = arg_value(n, "scales"), *z = arg_value(n, "zero_points");
    const void *scales = const_data(s), *zeros = const_data(z);
    if (!scales || (arg_get(n, "zero_points").kind != ARG_NONE && !zeros) ||
        i >= type_numel(s->type))
        return false;
    *scale = number_at(s, scales, i);
    return !zeros || (i < type_numel(z->type) && number_at(z, zeros, i) == 0);
}

static bool channels_are(const Node *n, int axis)
{
    int64_t have;
    if (n->op == OP_DEQUANTIZE_PER_TENSOR)
        return true;
    int rank = arg_value(n, "input")->type.rank;
    return arg_int(n, "axis", &have) && (have < 0 ? have + rank : have) == axis;
}

/* What a product reads as its weight, [channels, ...] or where `by_columns` [k, channels]. */
static bool read_weight(const Fuse *f, const Value *v, bool by_columns, Weight *w)
{
    bool turned = by_columns && v && v->def && is_transpose(v->def);
    const Node *n = !v ? NULL : turned ? arg_value(v->def, "self")->def : v->def;
    bool has_scales =
        n && (n->op == OP_DEQUANTIZE_PER_TENSOR || n->op == OP_DEQUANTIZE_PER_CHANNEL);
    if (!has_scales || n->out[0]->type.dtype != ETC_F32)
        return false;
    *w = (Weight){.v = arg_value(n, "input"), .is_transposed = by_columns && !turned};
    int axis = w->is_transposed ? 1 : 0;
    if (!channels_are(n, axis) || w->v->type.dtype != ETC_I8 || !const_data(w->v) ||
        w->v->type.rank < 2)
        return false;
    w->n = w->v->type.dim[axis].value;
    w->k = w->n ? type_numel(w->v->type) / w->n : 0;
    w->scale = NEW(f->r.tmp, double, w->n + 1);
    for (int64_t i = 0; i < w->n; i++)
        if (!read_scale(n, i, &w->scale[i]))
            return false;
    return w->k > 0 && w->k <= MOST_TERMS;
}

static Value *constant(Fuse *f, const Weight *like, Type t, const char *what, void *data)
{
    Program *p = f->r.g->program;
    const char *name = arena_printf(p->arena, "%s_%s", like->v->state->name, what);
    return graph_state(f->r.g, program_const(p, name, like->v->state->fqn, t, data));
}

/* The weight with a row per channel. */
static Value *weight_rows(Fuse *f, const Weight *w)
{
    const int8_t *from = const_data(w->v);
    Program *p = f->r.g->program;
    if (!w->is_transposed)
        return graph_state(f->r.g, w->v->state);
    int8_t *to = arena_bytes(p->arena, (size_t)(w->n * w->k));
    for (int64_t c = 0; c < w->n; c++)
        for (int64_t i = 0; i < w->k; i++)
            to[c * w->k + i] = from[i * w->n + c];
    Dim dim[2] = {DIM(w->n), DIM(w->k)};
    return constant(f, w, type_tensor(p, ETC_I8, 2, dim), "rows", to);
}

static Value *channel_sums(Fuse *f, const Weight *w, const Value *rows)
{
    Program *p = f->r.g->program;
    Dim dim = DIM(w->n);
    const int8_t *at = const_data(rows);
    int32_t *to = NEW(p->arena, int32_t, w->n);
    for (int64_t c = 0; c < w->n; c++)
        for (int64_t i = 0; i < w->k; i++)
            to[c] += *at++;
    return constant(f, w, type_tensor(p, ETC_I32, 1, &dim), "sums", to);
}

static Value *channel_scales(Fuse *f, const Weight *w, double by)
{
    Program *p = f->r.g->program;
    Dim dim = DIM(w->n);
    float *to = NEW(p->arena, float, w->n);
    for (int64_t c = 0; c < w->n; c++)
        to[c] = (float)(by * w->scale[c]);
    return constant(f, w, type_tensor(p, ETC_F32, 1, &dim), "scales", to);
}

/* -- operands -------------------------------------------------------------------------------- */

typedef struct Input {
    Value *x, *scale, *zero; /* scale and zero point where the run tells them */
    double by;               /* the scale, or 1 */
    int64_t at;              /* the zero point */
} Input;

/* What a product reads as its input; `has_rows`: each row may have a scale. */
static bool read_input(const Value *v, bool has_rows, Input *in)
{
    Points p;
    const Node *n = v ? v->def : NULL;
    *in = (Input){.x = read_dequantize(v, &p), .by = 1};
    if (in->x) {
        in->by = p.scale;
        in->at = p.zero;
        return true;
    }
    if (!n || v->type.dtype != ETC_F32 ||
        (n->op != OP_DEQUANTIZE_PER_TENSOR_TENSOR &&
         !(has_rows && n->op == OP_DEQUANTIZE_PER_TOKEN)))
        return false;
    *in = (Input){arg_value(n, "input"), arg_value(n, 1), arg_value(n, 2), 1, 0};
    in->at = in->x && in->x->type.dtype == ETC_U8 ? 128 : 0; /* not read */
    return in->x && is_byte(in->x->type.dtype) && in->scale && in->zero &&
           (in->scale->type.dtype == ETC_F32 || in->scale->type.dtype == ETC_F64) &&
           dtype_is_int(in->zero->type.dtype) && in->zero->type.dtype <= ETC_I64;
}

/* A bias of one float per channel: as it is, or what a constant of integers stands for. */
static bool read_bias(Fuse *f, Value *v, const Weight *w, Value **bias)
{
    *bias = v;
    if (!v)
        return true;
    if (v->type.dtype != ETC_F32 || v->type.rank != 1 || !dim_equal(v->type.dim[0], DIM(w->n)))
        return false;
    const Node *n = v->def;
    bool undoes = n && (n->op == OP_DEQUANTIZE_PER_TENSOR || n->op == OP_DEQUANTIZE_PER_CHANNEL);
    const void *data = undoes ? const_data(arg_value(n, "input")) : NULL;
    double scale;
    if (!data)
        return true;
    float *to = NEW(f->r.g->program->arena, float, w->n);
    for (int64_t c = 0; c < w->n; c++) {
        if (!read_scale(n, c, &scale))
            return true; /* it stays as it is */
        to[c] = (float)number_at(arg_value(n, "input"), data, c) * (float)scale;
    }
    *bias = constant(f, w, type_plain(v->type), "bias", to);
    return true;
}

/* -- products -------------------------------------------------------------------------------- */

static bool is_one(const Node *n, int i)
{
    double v;
    return arg_number(n, i, &v) && v == 1;
}

/* Position of input, weight and bias; the last -1 where there is none. */
static bool positions(const Node *n, int at[3], bool *by_columns)
{
    *by_columns = n->op == OP_ADDMM || n->op == OP_MM;
    at[0] = n->op == OP_ADDMM ? 1 : 0;
    at[1] = at[0] + 1;
    at[2] = n->op == OP_ADDMM ? 0 : n->op == OP_MM ? -1 : 2;
    switch (n->op) {
    case OP_ADDMM:
        return is_one(n, 3) && is_one(n, 4);
    case OP_CONVOLUTION:
        return !arg_bool(n, "transposed") && arg_value(n, "input")->type.rank <= 4;
    case OP_LINEAR:
        return arg_value(n, "weight") && arg_value(n, "weight")->type.rank == 2;
    default:
        return n->op == OP_MM;
    }
}

/* The result of a product is floats, without a clamp. */
static Node *build_product(Fuse *f, Node *n, const Input *in, const Weight *w, Value *bias)
{
    int64_t stride[2], pad[2], dilation[2], groups = 1;
    int axes = w->v->type.rank - 2;
    bool is_conv = n->op == OP_CONVOLUTION;
    if (is_conv && (!arg_ints(n, "stride", stride, 2) || !arg_ints(n, "padding", pad, 2) ||
                    !arg_ints(n, "dilation", dilation, 2) || !arg_int(n, "groups", &groups) ||
                    arg_count(n, "stride") != axes || arg_count(n, "padding") != axes ||
                    arg_count(n, "dilation") != axes))
        return n; /* open geometry stays */
    Value *rows = weight_rows(f, w), *sums = channel_sums(f, w, rows);
    Value *scales = channel_scales(f, w, in->by);
    int64_t zero = 0;
    double inf = (double)INFINITY;
    if (is_conv)
        return build(f->r.g, n, n->loc, OP_INTEGER_CONVOLUTION, f->r.d, "vvvIIIivvvviffniiit",
                     in->x, rows, bias, axes, stride, axes, pad, axes, dilation, groups, sums,
                     scales, in->scale, in->zero, in->at, -inf, inf, zero, zero, zero, ETC_F32);
    return build(f->r.g, n, n->loc, OP_INTEGER_LINEAR, f->r.d, "vvvvvvviffniiit", in->x, rows, bias,
                 sums, scales, in->scale, in->zero, in->at, -inf, inf, zero, zero, zero, ETC_F32);
}

static bool fuse_product(Fuse *f, Node *n)
{
    int at[3];
    bool by_columns;
    Input in;
    Weight w;
    Value *bias;
    if (!positions(n, at, &by_columns) ||
        !read_input(arg_value(n, at[0]), n->op != OP_CONVOLUTION, &in) ||
        !read_weight(f, arg_value(n, at[1]), by_columns, &w) ||
        !read_bias(f, at[2] < 0 ? NULL : arg_value(n, at[2]), &w, &bias))
        return true;
    Node *y = build_product(f, n, &in, &w, bias);
    return y && (y == n || rewrite_node(&f->r, n, y->out[0]));
}

/* -- what follows a product ------------------------------------------------------------------ */

static Node *product_of(const Value *v)
{
    bool ok = v && v->def && v->type.dtype == ETC_F32 &&
              (v->def->op == OP_INTEGER_LINEAR || v->def->op == OP_INTEGER_CONVOLUTION);
    return ok ? v->def : NULL;
}

static bool read_clamp(const Node *n, double *lo, double *hi)
{
    const char *expr = op_info[n->op].expr;
    bool is_relu = !strcmp(expr, "relu");
    *lo = is_relu ? 0 : -(double)INFINITY;
    *hi = (double)INFINITY;
    if (is_relu)
        return true;
    if (strcmp(expr, "hardtanh") != 0 && strcmp(expr, "clamp") != 0)
        return false;
    for (int i = 1; i < n->n_args; i++)
        if (n->arg[i].kind != ARG_NONE && !arg_number(n, i, i == 1 ? lo : hi))
            return false;
    return n->n_args <= 3 && *lo <= *hi;
}

static void set_number(Node *n, const char *name, double v)
{
    node_set_arg(n, arg_find(n, name), (Arg){.kind = ARG_FLOAT, .f = v});
}

static void set_int(Node *n, const char *name, int64_t v)
{
    node_set_arg(n, arg_find(n, name), (Arg){.kind = ARG_INT, .dim = DIM(v)});
}

static bool fuse_clamp(Fuse *f, Node *n, Node *product, double lo, double hi)
{
    double had[2] = {0, 0};
    arg_number(product, "lo", &had[0]);
    arg_number(product, "hi", &had[1]);
    if (had[0] != -(double)INFINITY || had[1] != (double)INFINITY)
        return true;
    set_number(product, "lo", lo);
    set_number(product, "hi", hi);
    return rewrite_node(&f->r, n, product->out[0]);
}

static bool fuse_quantize(Fuse *f, Node *n, Node *product, const Points *p)
{
    Value *y = product->out[0];
    Type t = y->type;
    set_number(product, "output_scale", p->scale);
    set_int(product, "output_zero", p->zero);
    set_int(product, "quant_min", p->lo);
    set_int(product, "quant_max", p->hi);
    node_set_arg(product, arg_find(product, "dtype"), (Arg){.kind = ARG_DTYPE, .dtype = p->dtype});
    t.dtype = p->dtype;
    value_set_type(y, t);
    return rewrite_node(&f->r, n, y);
}

/* -- movers ---------------------------------------------------------------------------------- */

/* Moves elements, or takes the largest of some; `same_scale` names others too, which compute. */
static bool is_mover(const Node *n)
{
    switch (n->op) {
    case OP_CAT:
    case OP_CLONE:
    case OP_EXPAND:
    case OP_FLIP:
    case OP_MAX_POOL2D:
    case OP_PERMUTE:
    case OP_SELECT_INT:
    case OP_SLICE:
    case OP_UNSQUEEZE:
    case OP_VIEW:
        return n->n_out == 1 && n->out[0]->type.dtype == ETC_F32;
    case OP_CONSTANT_PAD_ND:
        return n->out[0]->type.dtype == ETC_F32;
    default:
        return false;
    }
}

/* The integer that a border's number is, if it is one. */
static bool read_border(const Node *n, const Points *p, int64_t *q)
{
    double v = 0;
    if (!arg_number(n, "value", &v))
        return false;
    double at = v / p->scale + (double)p->zero;
    *q = (int64_t)(at >= -256 && at <= 256 ? at : 512);
    return at == (double)*q && *q >= least_of(p->dtype) && *q <= least_of(p->dtype) + 255;
}

/* All operands are dequantized by the same numbers, and no constants, which stay what they are. */
static bool read_operands(const Node *n, Points *p)
{
    Points other;
    for (int i = 0; i < n->n_in; i++) {
        const Value *x = read_dequantize(n->in[i], i ? &other : p);
        if (!x || value_is_const(x) || (i && !same_points(p, &other)))
            return false;
    }
    return n->n_in > 0;
}

static bool sink_dequantize(Fuse *f, Node *n, const Points *p)
{
    Graph *g = f->r.g;
    int64_t border = 0;
    if (n->op == OP_CONSTANT_PAD_ND && !read_border(n, p, &border))
        return true;
    const Node *from = first_operand(n)->def;
    Node *move = node_new(g, n->op, n->loc);
    for (int i = 0; i < n->n_args; i++)
        node_push(move, arg_moved(move, n, n->arg[i]));
    for (int i = 0; i < n->n_in; i++)
        node_set_in(move, i, arg_value(n->in[i]->def, "input"));
    if (n->op == OP_CONSTANT_PAD_ND)
        node_set_arg(move, arg_of(move, "value"), (Arg){.kind = ARG_INT, .dim = DIM(border)});
    Type t = n->out[0]->type;
    t.dtype = p->dtype;
    const int number = graph_number(g) + 1;
    const char *name = arena_printf(g->program->arena, "%s.%d", n->out[0]->name, number);
    node_add_out(move, name, t);
    graph_insert(g, n, move);
    Node *y = build(g, n, from->loc, OP_DEQUANTIZE_PER_TENSOR, f->r.d, "vfiiitn", move->out[0],
                    p->scale, p->zero, p->lo, p->hi, p->dtype);
    return y && rewrite_node(&f->r, n, y->out[0]);
}

/* -- means ----------------------------------------------------------------------------------- */

/* Windows, and what x and the result are as images. */
typedef struct Mean {
    const Node *node;
    Value *x;
    Dim image[4];
    bool is_viewed; /* x is to become `image` first, and what comes of it the node's result */
    int64_t kernel[2], stride[2], pad[2], divisor;
    bool ceil_mode, count_pad;
} Mean;

static bool sizes_known(Type t, int from)
{
    for (int i = from; i < t.rank; i++)
        if (t.dim[i].expr || t.dim[i].value < 1)
            return false;
    return true;
}

/* The number of last axes whose mean it is; 0: of others. */
static int last_axes(const Node *n)
{
    int64_t axis[MAX_RANK];
    int rank = arg_value(n, "self")->type.rank, count = arg_count(n, "dim");
    unsigned seen = 0;
    if (count < 1 || count > rank || !arg_ints(n, "dim", axis, MAX_RANK) ||
        n->out[0]->type.dtype != ETC_F32)
        return 0;
    for (int i = 0; i < count; i++)
        seen |= 1u << (axis[i] < 0 ? axis[i] + rank : axis[i]);
    return seen == (1u << rank) - (1u << (rank - count)) ? count : 0;
}

/* Over last axes: one window for all of a row of x as [1, rows, 1, row]. */
static bool read_last_axes(const Fuse *f, Mean *m)
{
    const Type t = m->x->type;
    Program *p = f->r.g->program;
    int axes = last_axes(m->node);
    if (!axes || !sizes_known(t, t.rank - axes) || !type_is_dense(p, t))
        return false;
    Type rows = t, row = t;
    rows.rank = t.rank - axes;
    row.rank = axes;
    row.dim += rows.rank;
    m->image[0] = m->image[2] = DIM(1);
    m->image[1] = dims_numel(p, rows);
    m->image[3] = dims_numel(p, row);
    m->is_viewed = true;
    m->kernel[0] = 1;
    m->kernel[1] = m->image[3].value;
    memcpy(m->stride, m->kernel, sizeof m->stride);
    return m->kernel[1] > 0;
}

/* Sizes that those of the result divide, so that windows are alike. */
static bool read_adaptive(Mean *m)
{
    const Type x = m->x->type, y = m->node->out[0]->type;
    if (!sizes_known(x, x.rank - 2) || !sizes_known(y, y.rank - 2))
        return false;
    for (int i = 0; i < 2; i++) {
        int64_t in = x.dim[x.rank - 2 + i].value, out = y.dim[y.rank - 2 + i].value;
        m->kernel[i] = m->stride[i] = in / out;
        if (in % out)
            return false;
    }
    return true;
}

static bool pair(const Node *n, const char *name, int64_t v[2])
{
    int64_t given[2];
    int count = arg_count(n, name);
    if (count < 1 || count > 2 || !arg_ints(n, name, given, 2))
        return false;
    v[0] = given[0];
    v[1] = given[count - 1];
    return true;
}

static bool read_windows(Mean *m)
{
    const Node *n = m->node;
    if (!pair(n, "kernel_size", m->kernel) || !pair(n, "padding", m->pad))
        return false;
    memcpy(m->stride, m->kernel, sizeof m->stride);
    m->ceil_mode = arg_bool(n, "ceil_mode");
    m->count_pad = arg_bool(n, "count_include_pad");
    return (!arg_count(n, "stride") || pair(n, "stride", m->stride)) &&
           (arg_get(n, "divisor_override").kind == ARG_NONE ||
            arg_int(n, "divisor_override", &m->divisor));
}

/* Whether v is a mean of windows of integers. */
static bool read_mean(const Fuse *f, const Value *v, Points *from, Mean *m)
{
    const Node *n = v->def;
    int64_t size;
    if (!n || n->n_in < 1)
        return false;
    *m = (Mean){.node = n, .x = read_dequantize(first_operand(n), from), .count_pad = true};
    if (!m->x || value_is_const(m->x))
        return false;
    bool ok = n->op == OP_MEAN_DIM               ? read_last_axes(f, m)
              : n->op == OP__ADAPTIVE_AVG_POOL2D ? read_adaptive(m)
              : n->op == OP_AVG_POOL2D           ? read_windows(m)
                                                 : false;
    return ok && mul_ok(m->kernel[0], m->kernel[1], &size) && size <= MOST_PIXELS;
}

static bool fuse_mean(Fuse *f, Node *n, const Mean *m, const Points *from, const Points *to)
{
    Graph *g = f->r.g;
    Arg none = {.kind = ARG_NONE}, divisor = {.kind = ARG_INT, .dim = DIM(m->divisor)};
    Value *x = m->is_viewed ? build_view(&f->r, n, m->x, m->image, 4) : m->x;
    if (!x)
        return false;
    Node *y = build(g, n, m->node->loc, OP_INTEGER_AVG_POOL2D, f->r.d, "vIIIbbaifiiit", x, 2,
                    m->kernel, 2, m->stride, 2, m->pad, m->ceil_mode, m->count_pad,
                    m->divisor ? divisor : none, from->zero, from->scale / to->scale, to->zero,
                    to->lo, to->hi, to->dtype);
    if (!y)
        return false;
    Type t = n->out[0]->type;
    Value *v = m->is_viewed ? build_view(&f->r, n, y->out[0], t.dim, t.rank) : y->out[0];
    return v && rewrite_node(&f->r, n, v);
}

/* -- the walk -------------------------------------------------------------------------------- */

/* Whether the range is all of the dtype. */
static bool is_whole(const Points *p)
{
    return p->lo == least_of(p->dtype) && p->hi == p->lo + 255;
}

static bool look_quantize(Fuse *f, Node *n, const Value *given)
{
    Points to, from;
    Mean mean;
    if (arg_value(n, "input")->type.dtype != ETC_F32 || !read_points(n, n->out[0]->type.dtype, &to))
        return true;
    Node *product = product_of(arg_value(n, "input"));
    if (product && is_read_once(f, given))
        return fuse_quantize(f, n, product, &to);
    if (is_read_once(f, given) && read_mean(f, arg_value(n, "input"), &from, &mean))
        return fuse_mean(f, n, &mean, &from, &to);
    Value *x = read_dequantize(arg_value(n, "input"), &from);
    return !x || !is_whole(&to) || !same_points(&to, &from) || rewrite_node(&f->r, n, x);
}

static bool look(Fuse *f, Node *n)
{
    Points p;
    double lo, hi;
    const Value *given = first_operand(n);
    rewrite_inputs(&f->r, n);
    if (n->op == OP_QUANTIZE_PER_TENSOR)
        return look_quantize(f, n, given);
    Node *product = n->n_in == 1 ? product_of(first_operand(n)) : NULL;
    if (product && is_read_once(f, given) && read_clamp(n, &lo, &hi))
        return fuse_clamp(f, n, product, lo, hi);
    if (is_mover(n))
        return !read_operands(n, &p) || sink_dequantize(f, n, &p);
    return fuse_product(f, n);
}

/* -- the second walk -------------------------------------------------------------------------- */

/* To the nearest integer, halves to the even one; |v| < 2^51.  libm would have to be loaded. */
static int64_t nearest(double v)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: sums have no bits below 1 */
    return (int64_t)(v + shift - shift);
}

/* The integer that a number becomes. */
static int64_t quantized(double v, const Points *p)
{
    float by = (float)v * (float)(1 / p->scale);
    double lo = (double)(p->lo - p->zero), hi = (double)(p->hi - p->zero);
    double at = by > lo ? (double)by : lo;
    return nearest(at < hi ? at : hi) + p->zero;
}

static bool narrow(Fuse *f, Node *n, Node *product, const Points *p, double lo, double hi)
{
    int64_t least = quantized(lo, p), most = quantized(hi, p), had[2];
    if (!arg_int(product, "quant_min", &had[0]) ||
        !arg_int(product, "quant_max", &had[1]) || least > had[1] ||
        most < had[0])
        return true;
    set_int(product, "quant_min", least > had[0] ? least : had[0]);
    set_int(product, "quant_max", most < had[1] ? most : had[1]);
    return rewrite_node(&f->r, n, product->out[0]);
}

/* quantize(clamp(dequantize(product))) of one scale ==> the product with another range */
static bool look_range(Fuse *f, Node *n)
{
    Points to, from;
    double lo, hi;
    const Value *v = arg_value(n, "input");
    if (!read_points(n, n->out[0]->type.dtype, &to) || !is_whole(&to) || !v->def ||
        !is_read_once(f, v) || !read_clamp(v->def, &lo, &hi) ||
        !is_read_once(f, arg_value(v->def, "self")))
        return true;
    Value *y = read_dequantize(arg_value(v->def, "self"), &from);
    bool is_product = y && y->def && is_read_once(f, y) && same_points(&to, &from) &&
                      (y->def->op == OP_INTEGER_LINEAR || y->def->op == OP_INTEGER_CONVOLUTION);
    return !is_product || narrow(f, n, y->def, &to, lo, hi);
}

/* A loop that is to read bytes dequantizes them itself, though another reads the floats too. */
static bool own_dequantize(Fuse *f, Node *n)
{
    Points p;
    for (int i = 0; i < n->n_in; i++) {
        Value *v = n->in[i], *x = read_dequantize(v, &p);
        if (!x || is_read_once(f, v) || value_is_const(x))
            continue;
        Node *own = build(f->r.g, n, v->def->loc, OP_DEQUANTIZE_PER_TENSOR, f->r.d, "vfiiitn", x,
                          p.scale, p.zero, p.lo, p.hi, p.dtype);
        if (!own)
            return false;
        node_set_in(n, i, own->out[0]);
    }
    return true;
}

static bool look_again(Fuse *f, Node *n)
{
    rewrite_inputs(&f->r, n);
    if (n->op == OP_QUANTIZE_PER_TENSOR && !look_range(f, n))
        return false;
    return !n->n_in || !node_is_pointwise(n) || own_dequantize(f, n);
}

static bool walk(Graph *g, Arena *tmp, Diag *d, bool visit(Fuse *f, Node *n))
{
    Fuse f = {rewrite_start(g, tmp, d), graph_uses(g, tmp)};
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        ok = visit(&f, n) && ok;
    }
    rewrite_finish(&f.r);
    return ok;
}

bool pass_fuse_integers(Graph *g, Arena *tmp, Diag *d)
{
    return walk(g, tmp, d, look) && walk(g, tmp, d, look_again);
}
