/* rows.c -- which core ops become XNNPACK nodes, under which conditions, and how. */
#include "partition/internal.h"
#include "partition/xnnpack/lower.h"
#include <math.h>
#include <string.h>

/* Which sizes calls may decide. */
typedef enum Open { ALL_KNOWN, OPEN_BATCH, OPEN_ROWS } Open;

typedef struct Row {
    OpId op;
    bool (*takes)(const Node *n, const char **why); /* NULL: what holds for all is enough */
    void (*lower)(Lower *w, const Node *n);
    XKind kind; /* of rows that share a function */
    Open open;
} Row;

static const Row *row_of(OpId op);

/* -- questions ------------------------------------------------------------------------------- */

static bool no(const char **why, const char *text)
{
    *why = text;
    return false;
}

bool xnn_is_constant(const Value *v)
{
    const State *s = v ? v->state : NULL;
    return s && s->kind != ST_MUTABLE && s->kind != ST_BLOB && s->data && !v->type.stride &&
           s->n_bytes >= type_bytes(v->type);
}

static int64_t size(const Value *v, int axis)
{
    return v->type.dim[axis < 0 ? axis + v->type.rank : axis].value;
}

static int64_t axis_of(const Node *n, int arg, int rank)
{
    int64_t axis = 0;
    arg_int(n, arg, &axis);
    return axis < 0 ? axis + rank : axis;
}

static bool is_float_tensor(const Value *v)
{
    return v->type.dtype == ETC_F32 && v->type.rank >= 0 && v->type.rank <= XNN_MAX_RANK &&
           !v->type.is_none && type_numel(v->type) > 0 && type_numel(v->type) <= UINT32_MAX;
}

/* -- elementwise ----------------------------------------------------------------------------- */

static Layout layout_like(Lower *w, const Node *n)
{
    return n->out[0]->type.rank < 3 ? AS_IS : x_prefers(w, n);
}

static void lower_unary(Lower *w, const Node *n)
{
    Layout l = layout_like(w, n);
    uint32_t in = x_use(w, n->in[0], l);
    x_unary(w, row_of(n->op)->kind, in, x_result(w, n->out[0], l));
}

static bool takes_exact_gelu(const Node *n, const char **why)
{
    return !strcmp(n->arg[1].str, "none") || no(why, "its gelu is not the approximate one");
}

/* Binary nodes broadcast from the last axis; with the channels there, operands of lower rank are
 * given all axes first. */
static bool may_be_last(const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->type.rank != n->out[0]->type.rank && type_numel(n->in[i]->type) != 1 &&
            !xnn_is_constant(n->in[i]))
            return false;
    return true;
}

static uint32_t constant_of_rank(Lower *w, const Value *v, int rank)
{
    uint32_t dim[XNN_MAX_RANK], moved[XNN_MAX_RANK];
    int axis[XNN_MAX_RANK], missing = rank - v->type.rank;
    axes_of(rank, CHANNELS_LAST, axis);
    for (int i = 0; i < rank; i++)
        dim[i] = i < missing ? 1 : (uint32_t)size(v, i - missing);
    for (int i = 0; i < rank; i++)
        moved[i] = dim[axis[i]];
    const float *data = (const float *)(const void *)v->state->data;
    return x_constant(w, v->state->name, v->state->fqn,
                      x_permuted(w, data, sizeof *data, rank, dim, axis), rank, moved);
}

static uint32_t operand(Lower *w, const Value *v, int rank, Layout l)
{
    if (l == CHANNELS_LAST && v->type.rank != rank && type_numel(v->type) != 1)
        return constant_of_rank(w, v, rank);
    return x_use(w, v, v->type.rank == rank ? l : AS_IS);
}

static Layout binary_layout(Lower *w, const Node *n)
{
    return may_be_last(n) ? layout_like(w, n) : AS_IS;
}

static bool takes_alpha_one(const Node *n, const char **why)
{
    double alpha;
    return (arg_number(n, 2, &alpha) && alpha == 1) || no(why, "alpha is not 1");
}

static void lower_binary(Lower *w, const Node *n)
{
    Layout l = binary_layout(w, n);
    int rank = n->out[0]->type.rank;
    uint32_t a = operand(w, arg_value(n, 0), rank, l), b = operand(w, arg_value(n, 1), rank, l);
    x_binary(w, row_of(n->op)->kind, a, b, x_result(w, n->out[0], l));
}

static bool takes_number(const Node *n, const char **why)
{
    double v;
    return arg_number(n, 1, &v) || no(why, "its number is not known");
}

static bool takes_number_alpha_one(const Node *n, const char **why)
{
    return takes_number(n, why) && takes_alpha_one(n, why);
}

static void lower_scalar(Lower *w, const Node *n)
{
    double v = 0;
    Layout l = layout_like(w, n);
    arg_number(n, 1, &v);
    uint32_t a = x_use(w, n->in[0], l), b = x_number(w, v);
    x_binary(w, row_of(n->op)->kind, a, b, x_result(w, n->out[0], l));
}

static void lower_reversed(Lower *w, const Node *n)
{
    double v = 1;
    Layout l = layout_like(w, n);
    if (n->op == OP_RSUB_SCALAR)
        arg_number(n, 1, &v);
    uint32_t a = x_number(w, v), b = x_use(w, n->in[0], l);
    x_binary(w, row_of(n->op)->kind, a, b, x_result(w, n->out[0], l));
}

static bool takes_power(const Node *n, const char **why)
{
    double e = 0;
    arg_number(n, 1, &e);
    return e == 2 || e == 0.5 || e == -0.5 || e == 3 ||
           no(why, "its exponent is none of 2, 3, 0.5, -0.5");
}

static void lower_power(Lower *w, const Node *n)
{
    double e = 0;
    Layout l = layout_like(w, n);
    uint32_t in = x_use(w, n->in[0], l), out = x_result(w, n->out[0], l);
    arg_number(n, 1, &e);
    if (e == 3)
        x_binary(w, X_MULTIPLY, in, x_unary(w, X_SQUARE, in, x_like(w, in)), out);
    else
        x_unary(w, e == 2 ? X_SQUARE : e > 0 ? X_SQRT : X_RSQRT, in, out);
}

static void lower_silu(Lower *w, const Node *n)
{
    Layout l = layout_like(w, n);
    uint32_t in = x_use(w, n->in[0], l), gate = x_unary(w, X_SIGMOID, in, x_like(w, in));
    x_binary(w, X_MULTIPLY, in, gate, x_result(w, n->out[0], l));
}

/* clamp(x / 6 + 0.5, 0, 1) */
static void lower_hardsigmoid(Lower *w, const Node *n)
{
    Layout l = layout_like(w, n);
    uint32_t in = x_use(w, n->in[0], l);
    uint32_t sixth = x_binary(w, X_MULTIPLY, in, x_number(w, 1.0 / 6), x_like(w, in));
    uint32_t out = x_result(w, n->out[0], l);
    x_binary(w, X_ADD, sixth, x_number(w, 0.5), out);
    x_range(x_maker(w, out), 0, 1);
}

static void lower_leaky_relu(Lower *w, const Node *n)
{
    double slope = 0.01;
    Layout l = layout_like(w, n);
    uint32_t in = x_use(w, n->in[0], l), out = x_result(w, n->out[0], l);
    arg_number(n, 1, &slope);
    XNode *x = x_node(w, X_LEAKY_RELU, out);
    x_f32(x, 0, slope);
    x_u32(x, 1, in);
    x_u32(x, 2, out);
}

/* -- clamps ---------------------------------------------------------------------------------- */

void x_limits(const Node *n, double *min, double *max)
{
    *min = -INFINITY;
    *max = INFINITY;
    if (n->op == OP_RELU)
        *min = 0;
    else {
        arg_number(n, 1, min);
        arg_number(n, 2, max);
    }
}

/* The node before may clamp by itself where nobody else reads its result. */
static XNode *clamps_itself(Lower *w, const Node *n, uint32_t in)
{
    const Value *v = n->in[0];
    XNode *from = x_maker(w, in);
    if (!from || !from->has_range || from->min != -INFINITY || from->max != INFINITY ||
        w->uses.first[v->index + 1] - w->uses.first[v->index] != 1 || w->uses.escapes[v->index])
        return NULL;
    return from;
}

static void lower_clamp(Lower *w, const Node *n)
{
    double min, max;
    Layout l = layout_like(w, n);
    uint32_t in = x_use(w, n->in[0], l);
    XNode *from = clamps_itself(w, n, in);
    x_limits(n, &min, &max);
    if (from) {
        x_range(from, min, max);
        x_define(w, n->out[0], l, in);
        return;
    }
    uint32_t out = x_result(w, n->out[0], l);
    x_unary(w, X_CLAMP, in, out);
    x_range(x_maker(w, out), min, max);
}

/* -- products -------------------------------------------------------------------------------- */

static bool takes_linear(const Node *n, const char **why)
{
    int weight = n->op == OP_LINEAR ? 1 : n->op == OP_ADDMM ? 2 : 1;
    const Value *w = arg_value(n, weight), *b = NULL;
    double beta = 1, alpha = 1;
    if (n->op == OP_LINEAR)
        b = arg_value(n, 2);
    if (n->op == OP_ADDMM) {
        b = arg_value(n, 0);
        arg_number(n, 3, &beta);
        arg_number(n, 4, &alpha);
    }
    if (!xnn_is_weight(w))
        return no(why, "its weight is no constant");
    if (b && (!xnn_is_weight(b) || b->type.rank != 1 ||
              size(b, 0) != size(w, n->op == OP_LINEAR ? 0 : 1)))
        return no(why, "its bias is no constant of one number per result");
    return (beta == 1 && alpha == 1) || no(why, "alpha or beta is not 1");
}

static void fully_connected(Lower *w, uint32_t in, uint32_t filter, uint32_t bias, uint32_t out,
                            uint32_t flags)
{
    XNode *x = x_node(w, X_FULLY_CONNECTED, out);
    x_u32(x, 0, in);
    x_u32(x, 1, filter);
    x_u32(x, 2, bias);
    x_u32(x, 3, out);
    x_u32(x, 4, flags);
    x_range(x, -INFINITY, INFINITY);
}

static void lower_linear(Lower *w, const Node *n)
{
    bool is_linear = n->op == OP_LINEAR, is_addmm = n->op == OP_ADDMM;
    const Value *a = arg_value(n, is_addmm ? 1 : 0), *b = arg_value(n, is_addmm ? 2 : 1);
    const Value *bias = is_linear ? arg_value(n, 2) : is_addmm ? arg_value(n, 0) : NULL;
    uint32_t in = x_use(w, a, AS_IS), flags = is_linear ? 0 : X_TRANSPOSE;
    uint32_t dim[2] = {(uint32_t)size(b, 0), (uint32_t)size(b, 1)};
    XWeight k = x_weight(w, b, in, true, is_linear ? 0 : 1);
    if (k.dtype != X_F32 && flags) {
        k.data = x_permuted(w, k.data, k.size, 2, dim, (const int[]){1, 0});
        dim[0] = (uint32_t)size(b, 1);
        dim[1] = (uint32_t)size(b, 0);
        flags = 0;
    }
    uint32_t filter = xnn_is_constant(b) ? x_use(w, b, AS_IS) : x_weight_value(w, &k, 2, dim, 0);
    uint32_t add = x_bias(w, bias, in, filter);
    fully_connected(w, in, filter, add, x_result(w, n->out[0], AS_IS), flags);
}

static void lower_bmm(Lower *w, const Node *n)
{
    uint32_t a = x_use(w, n->in[0], AS_IS), b = x_use(w, arg_value(n, 1), AS_IS);
    x_binary(w, X_BATCH_MATMUL, a, b, x_result(w, n->out[0], AS_IS));
}

/* -- means ----------------------------------------------------------------------------------- */

typedef enum MeanOf { MEAN_OTHER, MEAN_SPACE, MEAN_LAST } MeanOf;

static MeanOf mean_of(const Node *n)
{
    int64_t dim[XNN_MAX_RANK];
    int count = arg_count(n, 1), rank = arg_value(n, 0)->type.rank;
    if (count < 1 || count > 2 || !arg_ints(n, 1, dim, XNN_MAX_RANK))
        return MEAN_OTHER;
    for (int i = 0; i < count; i++)
        dim[i] += dim[i] < 0 ? rank : 0;
    if (count == 1)
        return dim[0] == rank - 1 ? MEAN_LAST : MEAN_OTHER;
    return rank == 4 && dim[0] + dim[1] == 5 && dim[0] >= 2 && dim[0] <= 3 ? MEAN_SPACE
                                                                           : MEAN_OTHER;
}

static bool takes_mean(const Node *n, const char **why)
{
    return mean_of(n) != MEAN_OTHER || no(why, "it is a mean neither of an image nor of the last axis");
}

static bool takes_sum(const Node *n, const char **why)
{
    return mean_of(n) == MEAN_LAST || no(why, "it is no sum over the last axis");
}

/* Each row's product with `factor` everywhere: [..., n] to [..., 1]. */
static uint32_t row_sums(Lower *w, uint32_t in, double factor)
{
    XValue v = w->x.value[in];
    uint32_t filter = x_filled(w, factor, 2, (const uint32_t[]){1, v.dim[v.rank - 1]});
    v.dim[v.rank - 1] = 1;
    uint32_t out = x_sized(w, &v);
    fully_connected(w, in, filter, XNN_NONE, out, 0);
    return out;
}

static void define_reshaped(Lower *w, const Value *v, uint32_t in)
{
    XValue sizes = x_sizes(v->type, AS_IS);
    x_define(w, v, AS_IS, x_reshape(w, in, &sizes));
}

static void mean_of_space(Lower *w, const Node *n)
{
    uint32_t in = x_use(w, n->in[0], CHANNELS_LAST);
    XValue v = w->x.value[in];
    v.dim[1] = v.dim[2] = 1;
    uint32_t out = x_sized(w, &v);
    XNode *x = x_node(w, X_GLOBAL_AVG_POOL, out);
    x_u32(x, 0, in);
    x_u32(x, 1, out);
    x_u32(x, 2, X_KEEP_DIMS);
    x_range(x, -INFINITY, INFINITY);
    if (arg_bool(n, 2))
        x_define(w, n->out[0], CHANNELS_LAST, out);
    else
        define_reshaped(w, n->out[0], out);
}

static void lower_mean(Lower *w, const Node *n)
{
    if (mean_of(n) == MEAN_SPACE) {
        mean_of_space(w, n);
        return;
    }
    uint32_t in = x_use(w, n->in[0], AS_IS);
    double count = (double)size(n->in[0], -1);
    uint32_t sums = row_sums(w, in, n->op == OP_SUM_DIM ? 1 : 1 / count);
    define_reshaped(w, n->out[0], sums);
}

/* -- layer norm ------------------------------------------------------------------------------ */

static bool takes_layer_norm(const Node *n, const char **why)
{
    int64_t width;
    for (int i = 2; i < 4; i++)
        if (arg_value(n, i) && !xnn_is_constant(arg_value(n, i)))
            return no(why, "its weight or bias is no constant");
    const Type t = n->in[0]->type;
    return (arg_count(n, 1) == 1 && arg_ints(n, 1, &width, 1) && !t.dim[t.rank - 1].expr) ||
           no(why, "it is not over the last axis alone, of known size");
}

/* (x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias, row by row */
static void lower_layer_norm(Lower *w, const Node *n)
{
    double eps = 1e-5, count = (double)size(n->in[0], -1);
    uint32_t in = x_use(w, n->in[0], AS_IS), mean = row_sums(w, in, 1 / count);
    arg_number(n, 4, &eps);
    uint32_t x = x_binary(w, X_SUBTRACT, in, mean, x_like(w, in));
    uint32_t var = row_sums(w, x_unary(w, X_SQUARE, x, x_like(w, in)), 1 / count);
    var = x_binary(w, X_ADD, var, x_number(w, eps), x_like(w, var));
    uint32_t y = x_unary(w, X_RSQRT, var, x_like(w, var));
    y = x_binary(w, X_MULTIPLY, x, y, x_like(w, in));
    if (arg_value(n, 2))
        y = x_binary(w, X_MULTIPLY, y, x_use(w, arg_value(n, 2), AS_IS), x_like(w, in));
    if (arg_value(n, 3))
        y = x_binary(w, X_ADD, y, x_use(w, arg_value(n, 3), AS_IS), x_like(w, in));
    x_define(w, n->out[0], AS_IS, y);
}

/* -- softmax --------------------------------------------------------------------------------- */

static bool takes_softmax(const Node *n, const char **why)
{
    int rank = arg_value(n, 0)->type.rank;
    return axis_of(n, 1, rank) == rank - 1 || no(why, "it is not along the last axis");
}

static void lower_softmax(Lower *w, const Node *n)
{
    uint32_t in = x_use(w, n->in[0], AS_IS);
    x_unary(w, X_SOFTMAX, in, x_result(w, n->out[0], AS_IS));
}

/* -- convolution ----------------------------------------------------------------------------- */

typedef struct Conv {
    int space; /* 1 or 2 */
    int64_t stride[2], pad[2], dilation[2], extra[2], groups, kernel[2], in, out;
    bool transposed;
} Conv;

/* Lists are of the height first; of one axis, the height is 1. */
static bool read_pair(const Node *n, int arg, int space, int64_t one, int64_t *to)
{
    int64_t v[2];
    int count = arg_count(n, arg);
    if (count < 1 || count > space || !arg_ints(n, arg, v, 2))
        return false;
    to[0] = space == 1 ? one : v[0];
    to[1] = v[count - 1];
    return true;
}

static bool read_conv(const Node *n, Conv *c)
{
    const Value *x = arg_value(n, 0), *f = arg_value(n, 1);
    *c = (Conv){.space = x->type.rank - 2, .transposed = arg_bool(n, 6)};
    if (c->space < 1 || c->space > 2 || f->type.rank != x->type.rank ||
        !arg_int(n, 8, &c->groups) || c->groups < 1)
        return false;
    c->kernel[0] = c->space == 1 ? 1 : size(f, 2);
    c->kernel[1] = size(f, -1);
    c->in = size(x, 1);
    c->out = size(n->out[0], 1);
    return read_pair(n, 3, c->space, 1, c->stride) && read_pair(n, 4, c->space, 0, c->pad) &&
           read_pair(n, 5, c->space, 1, c->dilation) && read_pair(n, 7, c->space, 0, c->extra);
}

static bool takes_conv(const Node *n, const char **why)
{
    Conv c;
    const Value *b = arg_value(n, 2);
    if (!xnn_is_weight(arg_value(n, 1)) || (b && !xnn_is_weight(b)))
        return no(why, "its filter or bias is no constant");
    if (!read_conv(n, &c))
        return no(why, "it is neither over one nor over two axes");
    return (c.pad[0] >= 0 && c.pad[1] >= 0) || no(why, "its padding is negative");
}

static bool is_depthwise(const Conv *c)
{
    return !c->transposed && c->groups > 1 && c->groups == c->in;
}

/* [out, in/g, h, w] to [out, h, w, in/g], of depthwise ones to [1, h, w, out]; a transposed one's
 * [in, out/g, h, w] to [out, h, w, in/g]. */
static uint32_t filter_of(Lower *w, const Node *n, const Conv *c, uint32_t x)
{
    XWeight weight = x_weight(w, arg_value(n, 1), x, false, 0);
    uint32_t g = (uint32_t)c->groups, h = (uint32_t)c->kernel[0], k = (uint32_t)c->kernel[1];
    uint32_t in = (uint32_t)c->in / g, out = (uint32_t)c->out;
    if (c->transposed) {
        uint32_t from[5] = {g, in, out / g, h, k};
        weight.data = x_permuted(w, weight.data, weight.size, 5, from, (const int[]){0, 2, 3, 4, 1});
    } else if (is_depthwise(c)) {
        uint32_t from[4] = {out, 1, h, k};
        weight.data = x_permuted(w, weight.data, weight.size, 4, from, (const int[]){1, 2, 3, 0});
    } else if (in > 1 && h * k > 1) {
        uint32_t from[4] = {out, in, h, k};
        weight.data = x_permuted(w, weight.data, weight.size, 4, from, (const int[]){0, 2, 3, 1});
    }
    uint32_t dim[4] = {out, h, k, in}, depthwise[4] = {1, h, k, out};
    bool last = is_depthwise(c);
    return x_weight_value(w, &weight, 4, last ? depthwise : dim, last ? 3 : 0);
}

static void conv_fields(XNode *x, const Conv *c, uint32_t in, uint32_t filter, uint32_t bias,
                        uint32_t out)
{
    const int64_t v[] = {c->pad[0], c->pad[1], c->pad[0], c->pad[1], c->kernel[0], c->kernel[1],
                         c->stride[0], c->stride[1], c->dilation[0], c->dilation[1],
                         c->in / c->groups, c->out / c->groups, c->groups, c->extra[0],
                         c->extra[1]};
    for (int i = 0; i < 15; i++)
        x_u32(x, i, (uint32_t)v[i]);
    x_u32(x, 15, in);
    x_u32(x, 16, filter);
    x_u32(x, 17, bias);
    x_u32(x, 18, out);
    x_range(x, -INFINITY, INFINITY);
}

/* A signal [n, length, channels] is an image of height 1. */
static uint32_t as_image(Lower *w, uint32_t id)
{
    XValue v = w->x.value[id];
    if (v.rank == 4)
        return id;
    XValue image = {.rank = 4, .dim = {v.dim[0], 1, v.dim[1], v.dim[2]}, .is_open = {v.is_open[0]}};
    return x_reshape(w, id, &image);
}

static void lower_conv(Lower *w, const Node *n)
{
    Conv c;
    read_conv(n, &c);
    const Value *bias = arg_value(n, 2), *v = n->out[0];
    uint32_t in = as_image(w, x_use(w, n->in[0], CHANNELS_LAST));
    uint32_t filter = filter_of(w, n, &c, in), add = x_bias(w, bias, in, filter);
    XValue image = x_sizes(v->type, CHANNELS_LAST), last = image;
    if (c.space == 1) {
        image = (XValue){.rank = 4, .dim = {last.dim[0], 1, last.dim[1], last.dim[2]},
                         .is_open = {last.is_open[0]}};
    }
    uint32_t out = x_sized(w, &image);
    XKind kind = c.transposed ? X_CONV_TRANSPOSE : is_depthwise(&c) ? X_DEPTHWISE : X_CONV2D;
    conv_fields(x_node(w, kind, out), &c, in, filter, add, out);
    if (c.space == 1)
        out = x_reshape(w, out, &last);
    x_define(w, v, CHANNELS_LAST, out);
}

/* -- pools ----------------------------------------------------------------------------------- */

typedef struct Pool {
    int64_t kernel[2], stride[2], pad[2], dilation[2], after[2];
} Pool;

/* Padding behind the image that makes the last window whole where sizes are rounded up. */
static void pad_after(const Node *n, Pool *p)
{
    for (int i = 0; i < 2; i++) {
        int64_t in = size(n->in[0], i + 2), out = size(n->out[0], i + 2);
        int64_t reach = (out - 1) * p->stride[i] + (p->kernel[i] - 1) * p->dilation[i] + 1;
        p->after[i] = reach - in - p->pad[i] > p->pad[i] ? reach - in - p->pad[i] : p->pad[i];
    }
}

static bool read_pool(const Node *n, Pool *p)
{
    *p = (Pool){.dilation = {1, 1}};
    bool is_max = n->op == OP_MAX_POOL2D_WITH_INDICES || n->op == OP_MAX_POOL2D;
    if (n->in[0]->type.rank != 4 || !read_pair(n, 1, 2, 1, p->kernel) ||
        !read_pair(n, 3, 2, 0, p->pad) || (is_max && !read_pair(n, 4, 2, 1, p->dilation)))
        return false;
    if (!arg_count(n, 2))
        memcpy(p->stride, p->kernel, sizeof p->stride);
    else if (!read_pair(n, 2, 2, 1, p->stride))
        return false;
    pad_after(n, p);
    return true;
}

static bool takes_max_pool(const Node *n, const char **why)
{
    Pool p;
    if (!read_pool(n, &p))
        return no(why, "it is not over two axes of four");
    if (p.kernel[0] * p.kernel[1] < 2)
        return no(why, "its window is one element");
    if (n->n_out > 1) {
        for (const Node *m = n->next; m; m = m->next)
            for (int i = 0; i < m->n_in; i++)
                if (m->in[i] == n->out[1])
                    return no(why, "its indices are read");
        for (int i = 0; i < n->graph->n_out; i++)
            if (n->graph->out[i] == n->out[1])
                return no(why, "its indices are read");
    }
    return true;
}

static bool takes_avg_pool(const Node *n, const char **why)
{
    Pool p;
    if (!read_pool(n, &p))
        return no(why, "it is not over two axes of four");
    if (n->arg[6].kind != ARG_NONE)
        return no(why, "its divisor is overridden");
    if (p.after[0] != p.pad[0] || p.after[1] != p.pad[1])
        return no(why, "its size is rounded up");
    return p.kernel[0] * p.kernel[1] > 1 || no(why, "its window is one element");
}

static void pool(Lower *w, const Node *n, XKind kind, const Pool *p, uint32_t in)
{
    uint32_t out = x_result(w, n->out[0], CHANNELS_LAST);
    XNode *x = x_node(w, kind, out);
    const int64_t v[] = {p->pad[0], p->pad[1], p->after[0], p->after[1], p->kernel[0],
                         p->kernel[1], p->stride[0], p->stride[1], p->dilation[0],
                         p->dilation[1]};
    const int slot[] = {0, 3, 2, 1, 4, 5, 6, 7, 8, 9};
    for (int i = 0; i < 10; i++)
        x_u32(x, slot[i], (uint32_t)v[i]);
    x_u32(x, 10, in);
    x_u32(x, 11, out);
    x_range(x, -INFINITY, INFINITY);
}

static void lower_max_pool(Lower *w, const Node *n)
{
    Pool p;
    read_pool(n, &p);
    pool(w, n, X_MAX_POOL, &p, x_use(w, n->in[0], CHANNELS_LAST));
}

static uint32_t padded(Lower *w, uint32_t in, const uint32_t *before, const uint32_t *after,
                       double with)
{
    XValue v = w->x.value[in];
    for (int i = 0; i < v.rank; i++)
        v.dim[i] += before[i] + after[i];
    uint32_t out = x_sized(w, &v);
    XNode *x = x_node(w, X_PAD, out);
    x_dims(x, 0, before, v.rank);
    x_dims(x, 1, after, v.rank);
    x_f32(x, 2, with);
    x_u32(x, 3, in);
    x_u32(x, 4, out);
    return out;
}

/* XNNPACK divides by the elements of the image under the window; where the padding is to count, it
 * is put in first. */
static void lower_avg_pool(Lower *w, const Node *n)
{
    Pool p;
    read_pool(n, &p);
    uint32_t in = x_use(w, n->in[0], CHANNELS_LAST);
    if (arg_bool(n, 5) && (p.pad[0] || p.pad[1])) {
        uint32_t pad[4] = {0, (uint32_t)p.pad[0], (uint32_t)p.pad[1], 0};
        in = padded(w, in, pad, pad, 0);
        memset(p.pad, 0, sizeof p.pad);
        memset(p.after, 0, sizeof p.after);
    }
    pool(w, n, X_AVG_POOL, &p, in);
}

/* -- moves ----------------------------------------------------------------------------------- */

static void lower_view(Lower *w, const Node *n)
{
    define_reshaped(w, n->out[0], x_use(w, n->in[0], AS_IS));
}

static void lower_clone(Lower *w, const Node *n)
{
    for (int l = 0; l < 2; l++)
        if (x_has(w, n->in[0], (Layout)l))
            x_define(w, n->out[0], (Layout)l, x_use(w, n->in[0], (Layout)l));
    if (n->in[0]->state)
        x_define(w, n->out[0], AS_IS, x_use(w, n->in[0], AS_IS));
}

static bool takes_clone(const Node *n, const char **why)
{
    return !xnn_is_constant(n->in[0]) || no(why, "it copies a constant");
}

/* To the channels-last order, or back: then it is a name for what is there. */
static void lower_permute(Lower *w, const Node *n)
{
    int64_t dim[XNN_MAX_RANK];
    int axis[XNN_MAX_RANK], last[XNN_MAX_RANK], rank = n->in[0]->type.rank;
    arg_ints(n, 1, dim, XNN_MAX_RANK);
    for (int i = 0; i < rank; i++)
        axis[i] = (int)(dim[i] < 0 ? dim[i] + rank : dim[i]);
    axes_of(rank, CHANNELS_LAST, last);
    bool to_last = rank >= 3, from_last = rank >= 3;
    for (int i = 0; i < rank; i++) {
        to_last = to_last && axis[i] == last[i];
        from_last = from_last && axis[last[i]] == i;
    }
    if (to_last)
        x_define(w, n->out[0], AS_IS, x_use(w, n->in[0], CHANNELS_LAST));
    else if (from_last)
        x_define(w, n->out[0], CHANNELS_LAST, x_use(w, n->in[0], AS_IS));
    else
        x_define(w, n->out[0], AS_IS, x_transpose(w, x_use(w, n->in[0], AS_IS), axis));
}

static int place_of_axis(int rank, int axis, Layout l)
{
    int axes[XNN_MAX_RANK], at = 0;
    axes_of(rank, l, axes);
    while (axes[at] != axis)
        at++;
    return at;
}

void x_concat(Lower *w, const uint32_t *in, int n, int axis, uint32_t out)
{
    static const XKind kind[] = {X_CONCAT2, X_CONCAT3, X_CONCAT4, X_CONCAT5};
    static const int slot[] = {1, 2, 3, 4, 7};
    XNode *x = x_node(w, kind[n - 2], out);
    x_u32(x, 0, (uint32_t)axis);
    for (int i = 0; i < 5; i++)
        x_u32(x, slot[i], i < n ? in[i] : XNN_NONE);
    x_u32(x, 5, out);
}

/* Up to five at a time, from the left. */
static void lower_cat(Lower *w, const Node *n)
{
    int count = arg_count(n, 0), rank = n->out[0]->type.rank;
    Layout l = layout_like(w, n);
    int axis = place_of_axis(rank, (int)axis_of(n, 1, rank), l);
    uint32_t part[5] = {x_use(w, arg_list_value(n, 0, 0), l)};
    for (int i = 1; i < count;) {
        int k = 1;
        XValue sum = w->x.value[part[0]];
        for (; k < 5 && i < count; k++, i++) {
            part[k] = x_use(w, arg_list_value(n, 0, i), l);
            sum.dim[axis] += w->x.value[part[k]].dim[axis];
        }
        uint32_t out = i == count ? x_result(w, n->out[0], l) : x_sized(w, &sum);
        x_concat(w, part, k, axis, out);
        part[0] = out;
    }
}

static bool takes_cat(const Node *n, const char **why)
{
    for (int i = 0; i < arg_count(n, 0); i++)
        if (arg_list_value(n, 0, i)->type.rank != n->out[0]->type.rank)
            return no(why, "its operands are of different ranks");
    return arg_count(n, 0) > 1 || no(why, "it joins fewer than two tensors");
}

uint32_t x_slice(Lower *w, uint32_t in, int axis, int64_t from, int64_t n)
{
    XValue v = w->x.value[in];
    uint32_t at[XNN_MAX_RANK] = {0};
    at[axis] = (uint32_t)from;
    v.dim[axis] = (uint32_t)n;
    uint32_t out = x_sized(w, &v);
    XNode *x = x_node(w, X_SLICE, out);
    for (int i = 0; i < v.rank; i++)
        v.dim[i] = v.is_open[i] ? 0 : v.dim[i]; /* 0: all there is */
    x_u32(x, 0, (uint32_t)v.rank);
    x_dims(x, 1, at, v.rank);
    x_dims(x, 2, v.dim, v.rank);
    x_u32(x, 3, in);
    x_u32(x, 4, out);
    return out;
}

static bool takes_slice(const Node *n, const char **why)
{
    int64_t v;
    return (arg_int(n, 4, &v) && v == 1 && (n->arg[2].kind == ARG_NONE || arg_int(n, 2, &v))) ||
           no(why, "its step is not 1");
}

static void lower_slice(Lower *w, const Node *n)
{
    int rank = n->in[0]->type.rank, axis = (int)axis_of(n, 1, rank);
    int64_t from = 0, size_in = size(n->in[0], axis);
    Layout l = layout_like(w, n);
    arg_int(n, 2, &from);
    from += from < 0 ? size_in : 0;
    from = from < 0 ? 0 : from > size_in ? size_in : from;
    uint32_t in = x_use(w, n->in[0], l);
    x_define(w, n->out[0], l,
             x_slice(w, in, place_of_axis(rank, axis, l), from, size(n->out[0], axis)));
}

static bool takes_select(const Node *n, const char **why)
{
    int64_t v;
    return arg_int(n, 2, &v) || no(why, "its index is not known");
}

static void lower_select(Lower *w, const Node *n)
{
    int rank = n->in[0]->type.rank, axis = (int)axis_of(n, 1, rank);
    int64_t at = axis_of(n, 2, (int)size(n->in[0], axis));
    define_reshaped(w, n->out[0], x_slice(w, x_use(w, n->in[0], AS_IS), axis, at, 1));
}

static bool takes_pad(const Node *n, const char **why)
{
    int64_t v[2 * XNN_MAX_RANK];
    if (!arg_ints(n, 1, v, 2 * XNN_MAX_RANK))
        return no(why, "its padding is not known");
    for (int i = 0; i < arg_count(n, 1); i++)
        if (v[i] < 0)
            return no(why, "its padding is negative");
    return true;
}

static void lower_pad(Lower *w, const Node *n)
{
    int64_t v[2 * XNN_MAX_RANK];
    double with = 0;
    int rank = n->in[0]->type.rank;
    uint32_t before[XNN_MAX_RANK] = {0}, after[XNN_MAX_RANK] = {0};
    Layout l = layout_like(w, n);
    arg_ints(n, 1, v, 2 * XNN_MAX_RANK);
    arg_number(n, 2, &with);
    for (int i = 0; i < arg_count(n, 1) / 2; i++) {
        int at = place_of_axis(rank, rank - 1 - i, l);
        before[at] = (uint32_t)v[2 * i];
        after[at] = (uint32_t)v[2 * i + 1];
    }
    x_define(w, n->out[0], l, padded(w, x_use(w, n->in[0], l), before, after, with));
}

/* -- the table ------------------------------------------------------------------------------- */

static const Row rows[] = {
    {OP_ABS, NULL, lower_unary, X_ABS, OPEN_ROWS},
    {OP_ADD_SCALAR, takes_number_alpha_one, lower_scalar, X_ADD, OPEN_ROWS},
    {OP_ADD_TENSOR, takes_alpha_one, lower_binary, X_ADD, OPEN_ROWS},
    {OP_ADDMM, takes_linear, lower_linear, X_FULLY_CONNECTED, OPEN_ROWS},
    {OP_ATTENTION, xnn_takes_attention, xnn_lower_attention, X_BATCH_MATMUL, OPEN_ROWS},
    {OP_AVG_POOL2D, takes_avg_pool, lower_avg_pool, X_AVG_POOL, OPEN_BATCH},
    {OP_BMM, NULL, lower_bmm, X_BATCH_MATMUL, OPEN_ROWS},
    {OP_CAT, takes_cat, lower_cat, X_CONCAT2, OPEN_BATCH},
    {OP_CLAMP, NULL, lower_clamp, X_CLAMP, OPEN_ROWS},
    {OP_CLONE, takes_clone, lower_clone, X_COPY, OPEN_ROWS},
    {OP_CONSTANT_PAD_ND, takes_pad, lower_pad, X_PAD, OPEN_BATCH},
    {OP_CONVOLUTION, takes_conv, lower_conv, X_CONV2D, OPEN_BATCH},
    {OP_COS, NULL, lower_unary, X_COS, OPEN_ROWS},
    {OP_DIV_SCALAR, takes_number, lower_scalar, X_DIV, OPEN_ROWS},
    {OP_DIV_TENSOR, NULL, lower_binary, X_DIV, OPEN_ROWS},
    {OP_EXP, NULL, lower_unary, X_EXP, OPEN_ROWS},
    {OP_GELU, takes_exact_gelu, lower_unary, X_GELU, OPEN_ROWS},
    {OP_HARDSIGMOID, NULL, lower_hardsigmoid, X_CLAMP, OPEN_ROWS},
    {OP_HARDSWISH, NULL, lower_unary, X_HARDSWISH, OPEN_ROWS},
    {OP_HARDTANH, NULL, lower_clamp, X_CLAMP, OPEN_ROWS},
    {OP_LAYER_NORM, takes_layer_norm, lower_layer_norm, X_FULLY_CONNECTED, OPEN_ROWS},
    {OP_LEAKY_RELU, NULL, lower_leaky_relu, X_LEAKY_RELU, OPEN_ROWS},
    {OP_LINEAR, takes_linear, lower_linear, X_FULLY_CONNECTED, OPEN_ROWS},
    {OP_LOG, NULL, lower_unary, X_LOG, OPEN_ROWS},
    {OP_MAX_POOL2D, takes_max_pool, lower_max_pool, X_MAX_POOL, OPEN_BATCH},
    {OP_MAX_POOL2D_WITH_INDICES, takes_max_pool, lower_max_pool, X_MAX_POOL, OPEN_BATCH},
    {OP_MAXIMUM, NULL, lower_binary, X_MAXIMUM, OPEN_ROWS},
    {OP_MEAN_DIM, takes_mean, lower_mean, X_GLOBAL_AVG_POOL, OPEN_BATCH},
    {OP_MINIMUM, NULL, lower_binary, X_MINIMUM, OPEN_ROWS},
    {OP_MM, takes_linear, lower_linear, X_FULLY_CONNECTED, OPEN_ROWS},
    {OP_MUL_SCALAR, takes_number, lower_scalar, X_MULTIPLY, OPEN_ROWS},
    {OP_MUL_TENSOR, NULL, lower_binary, X_MULTIPLY, OPEN_ROWS},
    {OP_NEG, NULL, lower_unary, X_NEGATE, OPEN_ROWS},
    {OP_PERMUTE, NULL, lower_permute, X_TRANSPOSED, OPEN_ROWS},
    {OP_POW_TENSOR_SCALAR, takes_power, lower_power, X_SQUARE, OPEN_ROWS},
    {OP_RECIPROCAL, NULL, lower_reversed, X_DIV, OPEN_ROWS},
    {OP_RELU, NULL, lower_clamp, X_CLAMP, OPEN_ROWS},
    {OP_RSQRT, NULL, lower_unary, X_RSQRT, OPEN_ROWS},
    {OP_RSUB_SCALAR, takes_number_alpha_one, lower_reversed, X_SUBTRACT, OPEN_ROWS},
    {OP_SDPA, xnn_takes_sdpa, xnn_lower_sdpa, X_BATCH_MATMUL, ALL_KNOWN},
    {OP_SELECT_INT, takes_select, lower_select, X_SLICE, OPEN_BATCH},
    {OP_SIGMOID, NULL, lower_unary, X_SIGMOID, OPEN_ROWS},
    {OP_SILU, NULL, lower_silu, X_SIGMOID, OPEN_ROWS},
    {OP_SIN, NULL, lower_unary, X_SIN, OPEN_ROWS},
    {OP_SLICE, takes_slice, lower_slice, X_SLICE, OPEN_BATCH},
    {OP__SOFTMAX, takes_softmax, lower_softmax, X_SOFTMAX, OPEN_ROWS},
    {OP_SQRT, NULL, lower_unary, X_SQRT, OPEN_ROWS},
    {OP_SUB_SCALAR, takes_number_alpha_one, lower_scalar, X_SUBTRACT, OPEN_ROWS},
    {OP_SUB_TENSOR, takes_alpha_one, lower_binary, X_SUBTRACT, OPEN_ROWS},
    {OP_SUM_DIM, takes_sum, lower_mean, X_FULLY_CONNECTED, OPEN_BATCH},
    {OP_TANH, NULL, lower_unary, X_TANH, OPEN_ROWS},
    {OP_VIEW, NULL, lower_view, X_RESHAPE, OPEN_BATCH},
};

static const Row *row_of(OpId op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op)
            return &rows[i];
    return NULL;
}

/* The last axis of a tensor is always known where rows may be open: products run along it. */
static bool sizes_fit(Type t, Open open)
{
    for (int i = 0; i < t.rank; i++)
        if (t.dim[i].expr &&
            (open == ALL_KNOWN || (open == OPEN_BATCH && i)))
            return false;
    return true;
}

bool xnn_takes(const Node *n, const Uses *u, const char **why)
{
    const Row *row = row_of(n->op);
    if (xnn_is_quant(n->op))
        return xnn_takes_quant(n, u, why);
    if (!row)
        return no(why, "XNNPACK has no such operation");
    for (int i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!is_float_tensor(v))
            return no(why, "an operand is no f32 tensor of bounded sizes with at most 6 axes");
        if (v->state && v->state->kind != ST_MUTABLE && !xnn_is_constant(v))
            return no(why, "the bytes of a constant are not at hand");
    }
    if (n->n_out < 1 || !is_float_tensor(n->out[0]))
        return no(why, "its result is no f32 tensor of bounded sizes with at most 6 axes");
    for (int i = 0; i < n->n_in; i++)
        if (!sizes_fit(n->in[i]->type, row->open))
            return no(why, "XNNPACK fixes sizes that are open here");
    if (!sizes_fit(n->out[0]->type, row->open))
        return no(why, "XNNPACK fixes sizes that are open here");
    return !row->takes || row->takes(n, why);
}

void xnn_lower_node(Lower *w, const Node *n)
{
    XIntegers to;
    if (w->done[n->out[0]->index] || value_goes_along(n->out[0]))
        return;
    if (xnn_is_quant(n->op)) {
        xnn_lower_quant(w, n);
    } else {
        w->integers = xnn_in_integers(w, n, &to);
        row_of(n->op)->lower(w, n);
        if (w->integers)
            xnn_declare_integers(w, n, &to);
        w->integers = false;
    }
}
