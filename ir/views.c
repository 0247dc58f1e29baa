/* views.c -- nodes read as structs, by the names of their arguments. */
#include "ir/views.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* -- arguments --------------------------------------------------------------------------------- */

static bool has(const Node *n, const char *name)
{
    return arg_find(n, name) >= 0;
}

static Value *value_or_null(const Node *n, const char *name)
{
    return has(n, name) ? arg_value(n, name) : NULL;
}

/* Returns the value of the first of two arguments that the row has. */
static Value *either(const Node *n, const char *a, const char *b)
{
    return arg_value(n, has(n, a) ? a : b);
}

static bool number_or(const Node *n, const char *name, double otherwise, double *v)
{
    *v = otherwise;
    return !has(n, name) || arg_get(n, name).kind == ARG_NONE || arg_number(n, name, v);
}

static bool int_or(const Node *n, const char *name, int64_t otherwise, int64_t *v)
{
    *v = otherwise;
    return !has(n, name) || arg_get(n, name).kind == ARG_NONE || arg_int(n, name, v);
}

/* Reads one number per axis.  A list of one number counts for all axes; no list or an empty one
 * means `otherwise`. */
static bool per_axis(const Node *n, const char *name, int axes, const int64_t *otherwise,
                     int64_t v[VIEW_AXES])
{
    int64_t given[VIEW_AXES];
    int count = has(n, name) ? arg_count(n, name) : 0;
    assert(axes <= VIEW_AXES);
    if ((count > 1 && count != axes) || (count && !arg_ints(n, name, given, VIEW_AXES)))
        return false;
    for (int i = 0; i < axes; i++)
        v[i] = count ? given[count == 1 ? 0 : i] : otherwise[i];
    return true;
}

static bool axis_of(const Node *n, const char *name, int rank, int *axis)
{
    int64_t v;
    if (!arg_int(n, name, &v))
        return false;
    v += v < 0 ? rank : 0;
    *axis = (int)v;
    return v >= 0 && v < rank;
}

static bool is_op(const Node *n, const OpId *op, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (n->op == op[i])
            return true;
    return false;
}
#define IS_OP(n, ...) \
    is_op(n, (const OpId[]){__VA_ARGS__}, sizeof((const OpId[]){__VA_ARGS__}) / sizeof(OpId))

static const int64_t zeros[VIEW_AXES] = {0, 0, 0}, ones[VIEW_AXES] = {1, 1, 1};

/* -- products ---------------------------------------------------------------------------------- */

bool conv_read(const Node *n, Conv *c)
{
    *c = (Conv){.groups = 1};
    if (!IS_OP(n, OP_CONVOLUTION, OP_CONV1D, OP_CONV2D, OP_CONV_TRANSPOSE1D, OP_CONV_TRANSPOSE2D,
               OP_INTEGER_CONVOLUTION))
        return false;
    c->x = arg_value(n, "input");
    c->w = arg_value(n, "weight");
    c->bias = arg_value(n, "bias");
    c->axes = c->w ? c->w->type.rank - 2 : 0;
    c->is_transposed = has(n, "transposed") ? arg_bool(n, "transposed") : has(n, "output_padding");
    if (!c->x || c->axes < 1 || c->axes > VIEW_AXES)
        return false;
    for (int i = 0; i < c->axes; i++)
        c->kernel[i] = c->w->type.dim[i + 2].expr ? 0 : c->w->type.dim[i + 2].value;
    return per_axis(n, "stride", c->axes, ones, c->stride) &&
           per_axis(n, "padding", c->axes, zeros, c->pad) &&
           per_axis(n, "dilation", c->axes, ones, c->dilation) &&
           per_axis(n, "output_padding", c->axes, zeros, c->out_pad) &&
           arg_int(n, "groups", &c->groups);
}

bool conv_as_image(Conv *c)
{
    int64_t *list[] = {c->kernel, c->stride, c->dilation, c->pad, c->out_pad};
    assert(c->axes >= 1 && c->axes <= VIEW_AXES);
    if (c->axes == 1)
        for (int i = 0; i < 5; i++) {
            list[i][1] = list[i][0];
            list[i][0] = i < 3;
        }
    c->axes = c->axes == 1 ? 2 : c->axes;
    return c->axes == 2;
}

bool product_read(const Node *n, Product *p)
{
    *p = (Product){.alpha = 1, .beta = 1};
    switch ((int)n->op) {
    case OP_LINEAR:
    case OP_INTEGER_LINEAR:
        p->is_rows = true;
        p->x = arg_value(n, "input");
        p->w = arg_value(n, "weight");
        p->bias = arg_value(n, "bias");
        break;
    case OP_MM:
    case OP_BMM:
        p->is_batch = n->op == OP_BMM;
        p->x = arg_value(n, "self");
        p->w = arg_value(n, "mat2");
        break;
    case OP_ADDMM:
        p->x = arg_value(n, "mat1");
        p->w = arg_value(n, "mat2");
        p->bias = arg_value(n, "self");
        break;
    default:
        return false;
    }
    return p->x && p->w && number_or(n, "alpha", 1, &p->alpha) &&
           number_or(n, "beta", 1, &p->beta);
}

static Value *operand_of(const Node *n, const char *name, int *slot)
{
    const Arg a = name ? arg_get(n, name) : (Arg){.kind = ARG_NONE};
    *slot = a.kind == ARG_VALUE ? a.slot : -1;
    return *slot < 0 ? NULL : n->in[*slot];
}

static bool weighted_of(const Node *n, const char *x, const char *w, const char *bias, Weighted *v)
{
    v->x = operand_of(n, x, &v->x_slot);
    v->w = operand_of(n, w, &v->w_slot);
    v->bias = operand_of(n, bias, &v->bias_slot);
    v->x_axis = v->x ? v->x->type.rank - 1 : 0;
    v->y_axis = n->out[0]->type.rank - 1;
    return v->x && v->w;
}

bool weighted_read(const Node *n, Weighted *v)
{
    double alpha, beta;
    *v = (Weighted){.groups = 1};
    switch ((int)n->op) {
    case OP_LINEAR:
        return weighted_of(n, "input", "weight", "bias", v);
    case OP_MM:
        v->w_axis = 1;
        return weighted_of(n, "self", "mat2", NULL, v);
    case OP_ADDMM:
        v->w_axis = 1;
        v->is_scaled = !arg_number(n, "alpha", &alpha) || !arg_number(n, "beta", &beta) ||
                       alpha != 1 || beta != 1;
        return weighted_of(n, "mat1", "mat2", "self", v);
    case OP_CONVOLUTION:
        if (!weighted_of(n, "input", "weight", "bias", v) || !arg_int(n, "groups", &v->groups))
            return false;
        v->is_conv = true;
        v->w_axis = arg_bool(n, "transposed");
        v->x_axis = v->y_axis = 1;
        return true;
    default:
        return false;
    }
}

/* -- attention --------------------------------------------------------------------------------- */

bool attention_read(const Node *n, Attention *a)
{
    *a = (Attention){.fill = -(double)INFINITY};
    if (n->op != OP_SDPA && n->op != OP_SOFTMAX_ATTENTION)
        return false;
    a->q = arg_value(n, "query");
    a->k = arg_value(n, "key");
    a->v = arg_value(n, "value");
    a->mask = arg_value(n, "attn_mask");
    a->is_causal = arg_bool(n, "is_causal");
    a->is_shared = arg_bool(n, "enable_gqa");
    a->is_empty = n->op == OP_SDPA;
    a->bias = value_or_null(n, "bias");
    if (!a->q || a->q->type.rank < 1 || !number_or(n, "cap", 0, &a->cap) ||
        !number_or(n, "fill", a->fill, &a->fill) || !arg_number(n, "dropout_p", &a->dropout))
        return false;
    Dim width = a->q->type.dim[a->q->type.rank - 1];
    if (arg_number(n, "scale", &a->scale))
        return true;
    a->scale = width.expr ? 0 : 1 / sqrt((double)width.value);
    return !width.expr;
}

Node *attention_build(Graph *g, Node *before, Loc loc, const Attention *a, Diag *d)
{
    assert(!a->is_empty || (!a->bias && a->cap == 0));
    Arg scale = {.kind = ARG_FLOAT, .key = "scale", .f = a->scale};
    Arg shared = {.kind = ARG_BOOL, .key = "enable_gqa", .b = a->is_shared};
    if (a->is_empty)
        return build(g, before, loc, OP_SDPA, d, "vvvvfbaa", a->q, a->k, a->v, a->mask, a->dropout,
                     a->is_causal, scale, shared);
    return build(g, before, loc, OP_SOFTMAX_ATTENTION, d, "vvvvfbfbvff", a->q, a->k, a->v, a->mask,
                 a->dropout, a->is_causal, a->scale, a->is_shared, a->bias, a->cap, a->fill);
}

/* -- windows and reductions -------------------------------------------------------------------- */

bool pool_read(const Node *n, Pool *p)
{
    *p = (Pool){.axes = 2};
    if (!IS_OP(n, OP_MAX_POOL2D, OP_MAX_POOL2D_WITH_INDICES, OP_AVG_POOL2D,
               OP_INTEGER_AVG_POOL2D))
        return false;
    p->is_max = n->op == OP_MAX_POOL2D || n->op == OP_MAX_POOL2D_WITH_INDICES;
    p->x = either(n, "self", "input");
    p->rounds_up = arg_bool(n, "ceil_mode");
    p->counts_pad = !p->is_max && arg_bool(n, "count_include_pad");
    return p->x && per_axis(n, "kernel_size", 2, ones, p->kernel) &&
           per_axis(n, "stride", 2, p->kernel, p->stride) &&
           per_axis(n, "padding", 2, zeros, p->pad) &&
           per_axis(n, "dilation", 2, ones, p->dilation) &&
           int_or(n, "divisor_override", 0, &p->divisor);
}

bool reduce_read(const Node *n, Reduce *r)
{
    int64_t axis[MAX_RANK];
    *r = (Reduce){.axes = 0};
    if (!IS_OP(n, OP_SUM_DIM, OP_MEAN_DIM, OP_AMAX, OP_ANY_DIMS, OP_VAR_CORRECTION))
        return false;
    r->x = arg_value(n, "self");
    r->keeps = arg_bool(n, "keepdim");
    if (!r->x || !arg_ints(n, "dim", axis, MAX_RANK))
        return false;
    int rank = r->x->type.rank, count = arg_count(n, "dim");
    for (int i = 0; i < count; i++) {
        axis[i] += axis[i] < 0 ? rank : 0;
        if (axis[i] < 0 || axis[i] >= (rank > 0 ? rank : 1))
            return false;
        r->axes |= 1u << axis[i];
    }
    if (!count && rank > 0)
        r->axes = (1u << rank) - 1;
    return true;
}

int reduce_list(const Reduce *r, int64_t axis[MAX_RANK])
{
    int n = 0;
    assert(r->x && r->x->type.rank <= MAX_RANK);
    for (int i = 0; i < r->x->type.rank; i++)
        if (r->axes >> i & 1)
            axis[n++] = i;
    return n;
}

bool reduce_is_space(const Reduce *r)
{
    return r->x->type.rank == 4 && r->axes == 0xc;
}

static bool norm_operands(const Node *n, NormKind kind, Norm *v)
{
    v->kind = kind;
    v->x = arg_value(n, "input");
    v->weight = arg_value(n, "weight");
    v->bias = value_or_null(n, "bias");
    v->axes = has(n, "normalized_shape") ? arg_count(n, "normalized_shape") : 0;
    return v->x != NULL;
}

bool norm_read(const Node *n, Norm *v)
{
    *v = (Norm){.groups = 1};
    switch ((int)n->op) {
    case OP_LAYER_NORM:
    case OP_NATIVE_LAYER_NORM:
        return norm_operands(n, NORM_LAYER, v) && arg_number(n, "eps", &v->eps);
    case OP_RMS_NORM:
        return norm_operands(n, NORM_RMS, v) && number_or(n, "eps", 0x1p-23, &v->eps);
    case OP_GROUP_NORM:
        return norm_operands(n, NORM_GROUP, v) && arg_number(n, "eps", &v->eps) &&
               arg_int(n, "num_groups", &v->groups);
    case OP_NATIVE_GROUP_NORM:
        return norm_operands(n, NORM_GROUP, v) && arg_number(n, "eps", &v->eps) &&
               arg_int(n, "group", &v->groups);
    case OP__NATIVE_BATCH_NORM:
        v->mean = arg_value(n, "running_mean");
        v->var = arg_value(n, "running_var");
        return norm_operands(n, NORM_BATCH, v) && v->mean && v->var &&
               arg_number(n, "eps", &v->eps);
    default:
        return false;
    }
}

/* -- moves ------------------------------------------------------------------------------------- */

/* Reads a bound of a slice and moves it into 0 .. size.  A negative bound counts from the end.
 * Returns false if its sign is not known. */
static bool bound(const Node *n, const char *name, Dim size, Dim otherwise, Dim *v)
{
    Program *p = n->graph->program;
    int64_t lo, hi;
    *v = otherwise;
    if (arg_get(n, name).kind == ARG_NONE)
        return true;
    if (!arg_dim(n, name, v))
        return false;
    dim_range(*v, &lo, &hi);
    if (lo < 0 && hi >= 0)
        return false;
    *v = lo == INT64_MAX ? size
         : lo < 0        ? dim_max(p, dim_add(p, size, *v), DIM(0))
                         : dim_min(p, *v, size);
    return true;
}

bool slice_read(const Node *n, Slice *s)
{
    *s = (Slice){.step = 1};
    if (n->op != OP_SLICE || !(s->x = arg_value(n, "self")) ||
        !axis_of(n, "dim", s->x->type.rank, &s->axis))
        return false;
    Dim size = s->x->type.dim[s->axis];
    return arg_int(n, "step", &s->step) && bound(n, "start", size, DIM(0), &s->start) &&
           bound(n, "end", size, size, &s->end);
}

Value *slice_build(Graph *g, Node *before, Loc loc, Value *x, int64_t axis, Dim start, Dim end,
                   Diag *d)
{
    Node *n = build(g, before, loc, OP_SLICE, d, "viddi", x, axis, start, end, (int64_t)1);
    return n ? n->out[0] : NULL;
}

bool select_read(const Node *n, Select *s)
{
    *s = (Select){.axis = 0};
    return n->op == OP_SELECT_INT && (s->x = arg_value(n, "self")) != NULL &&
           axis_of(n, "dim", s->x->type.rank, &s->axis) &&
           bound(n, "index", s->x->type.dim[s->axis], DIM(0), &s->index);
}

Value *select_build(Graph *g, Node *before, Loc loc, Value *x, int64_t axis, Dim index, Diag *d)
{
    Node *n = build(g, before, loc, OP_SELECT_INT, d, "vid", x, axis, index);
    return n ? n->out[0] : NULL;
}

bool where_read(const Node *n, Where *c)
{
    if (n->op != OP_WHERE_SELF)
        return false;
    *c = (Where){arg_value(n, "condition"), arg_value(n, "self"), arg_value(n, "other")};
    return c->condition != NULL;
}

bool narrow_read(const Node *n, Narrow *s)
{
    Slice some;
    Select one;
    if (n->op != OP_SLICE && n->op != OP_SELECT_INT)
        return false;
    if (slice_read(n, &some)) {
        Dim count = dim_sub(n->graph->program, some.end, some.start);
        *s = (Narrow){some.x, some.axis, some.start, count, false};
        return some.step == 1;
    }
    bool is_one = select_read(n, &one);
    *s = (Narrow){one.x, one.axis, one.index, DIM(1), true};
    return is_one;
}

bool concat_read(const Node *n, Concat *c)
{
    if (n->op != OP_CAT)
        return false;
    *c = (Concat){n->in, n->n_in, 0};
    return n->n_in && axis_of(n, "dim", n->out[0]->type.rank, &c->axis);
}

Value *concat_build(Graph *g, Node *before, Loc loc, int count, Value *const *part, int64_t axis,
                    Diag *d)
{
    assert(count > 0);
    Node *n = build(g, before, loc, OP_CAT, d, "Vi", count, part, axis);
    return n ? n->out[0] : NULL;
}

Value *clone_build(Graph *g, Node *before, Loc loc, Value *x, Diag *d)
{
    Node *n = build(g, before, loc, OP_CLONE, d, "v", x);
    return n ? n->out[0] : NULL;
}

/* Reads the axes of a permute, or the equivalent ones of t and transpose. */
static bool read_dims(const Node *n, int rank, int64_t axis[MAX_RANK])
{
    int a = 0, b = 1;
    if (n->op == OP_PERMUTE)
        return arg_ints(n, "dims", axis, MAX_RANK) && arg_count(n, "dims") == rank;
    for (int i = 0; i < rank; i++)
        axis[i] = i;
    if (rank < 2)
        return n->op == OP_T || n->op == OP_TRANSPOSE_INT;
    if (n->op != OP_T && (n->op != OP_TRANSPOSE_INT || !axis_of(n, "dim0", rank, &a) ||
                          !axis_of(n, "dim1", rank, &b)))
        return false;
    axis[a] = b;
    axis[b] = a;
    return true;
}

bool permute_read(const Node *n, Permute *p)
{
    int64_t axis[MAX_RANK];
    *p = (Permute){.rank = 0};
    if ((n->op != OP_PERMUTE && n->op != OP_T && n->op != OP_TRANSPOSE_INT) ||
        !(p->x = arg_value(n, "self")) || !read_dims(n, p->x->type.rank, axis))
        return false;
    p->rank = p->x->type.rank;
    for (int i = 0; i < p->rank; i++) {
        axis[i] += axis[i] < 0 ? p->rank : 0;
        if (axis[i] < 0 || axis[i] >= p->rank)
            return false;
        p->axis[i] = (int)axis[i];
    }
    return true;
}

bool permute_swaps_last(const Permute *p)
{
    bool ok = p->rank >= 2;
    for (int i = 0; ok && i < p->rank; i++)
        ok = p->axis[i] == (i < p->rank - 2 ? i : 2 * p->rank - 3 - i);
    return ok;
}

Value *permute_build(Graph *g, Node *before, Loc loc, Value *x, const int64_t *axis, Diag *d)
{
    Node *n = build(g, before, loc, OP_PERMUTE, d, "vI", x, x->type.rank, axis);
    return n ? n->out[0] : NULL;
}

/* -- pointwise --------------------------------------------------------------------------------- */

bool clamp_read(const Node *n, Clamp *c)
{
    const double inf = (double)INFINITY;
    *c = (Clamp){.lo = -inf, .hi = inf};
    switch ((int)n->op) {
    case OP_RELU:
        c->lo = 0;
        break;
    case OP_CLAMP:
        if (!number_or(n, "min", -inf, &c->lo) || !number_or(n, "max", inf, &c->hi))
            return false;
        break;
    case OP_HARDTANH:
        if (!arg_number(n, "min_val", &c->lo) || !arg_number(n, "max_val", &c->hi))
            return false;
        break;
    default:
        return false;
    }
    return (c->x = arg_value(n, "self")) != NULL && !isnan(c->lo) && !isnan(c->hi);
}

/* -- images ------------------------------------------------------------------------------------ */

bool resize_read(const Node *n, Resize *r)
{
    *r = (Resize){.is_linear = n->op == OP_UPSAMPLE_BILINEAR2D_VEC};
    if (!IS_OP(n, OP_UPSAMPLE_BILINEAR2D_VEC, OP_UPSAMPLE_NEAREST2D_VEC))
        return false;
    r->x = arg_value(n, "input");
    r->aligns_corners = r->is_linear && arg_bool(n, "align_corners");
    Arg by = arg_get(n, "scale_factors");
    for (int i = 0; by.kind == ARG_LIST && i < by.list.n && i < 2; i++) {
        const Arg *a = &by.list.item[i];
        if (a->kind != ARG_FLOAT && (a->kind != ARG_INT || a->dim.expr))
            return false;
        r->factor[i] = a->kind == ARG_FLOAT ? a->f : (double)a->dim.value;
    }
    return r->x != NULL;
}

/* -- integers ---------------------------------------------------------------------------------- */

static bool read_integers(const Node *n, QParams *q)
{
    q->x = arg_value(n, "input");
    const Value *whole = q->undoes ? q->x : n->out[0];
    q->dtype = whole ? whole->type.dtype : ETC_I8;
    return q->x && arg_int(n, "quant_min", &q->lo) && arg_int(n, "quant_max", &q->hi);
}

static bool read_points(const Node *n, const char *scale, const char *zero, QParams *q)
{
    q->scales = arg_value(n, scale);
    q->zeros = arg_value(n, zero);
    return q->scales != NULL;
}

bool qparams_read(const Node *n, QParams *q)
{
    *q = (QParams){.kind = Q_TENSOR};
    q->undoes = IS_OP(n, OP_DEQUANTIZE_PER_TENSOR, OP_DEQUANTIZE_PER_TENSOR_TENSOR,
                      OP_DEQUANTIZE_PER_CHANNEL, OP_DEQUANTIZE_PER_TOKEN);
    switch ((int)n->op) {
    case OP_QUANTIZE_PER_TENSOR:
    case OP_DEQUANTIZE_PER_TENSOR:
        return read_integers(n, q) && arg_number(n, "scale", &q->scale) &&
               arg_int(n, "zero_point", &q->zero);
    case OP_QUANTIZE_PER_TENSOR_TENSOR:
    case OP_DEQUANTIZE_PER_TENSOR_TENSOR:
        return read_integers(n, q) && read_points(n, "scale", "zero_point", q);
    case OP_QUANTIZE_PER_CHANNEL:
    case OP_DEQUANTIZE_PER_CHANNEL:
        q->kind = Q_CHANNEL;
        return read_integers(n, q) && read_points(n, "scales", "zero_points", q) &&
               axis_of(n, "axis", q->x->type.rank, &q->axis);
    case OP_QUANTIZE_PER_TOKEN:
    case OP_DEQUANTIZE_PER_TOKEN:
        q->kind = Q_TOKEN;
        return read_integers(n, q) && read_points(n, "scales", "zero_points", q);
    default:
        return false;
    }
}

Value *qparams_build(Graph *g, Node *before, Loc loc, Value *x, const QParams *q, Diag *d)
{
    assert(x && (q->kind == Q_CHANNEL ? q->undoes && q->scales : q->kind == Q_TENSOR && !q->scales));
    if (q->kind == Q_CHANNEL) {
        Node *rows = build(g, before, loc, OP_DEQUANTIZE_PER_CHANNEL, d, "vvviiit", x, q->scales, q->zeros,
                           (int64_t)q->axis, q->lo, q->hi, q->dtype);
        return rows ? rows->out[0] : NULL;
    }
    const OpId op = q->undoes ? OP_DEQUANTIZE_PER_TENSOR : OP_QUANTIZE_PER_TENSOR;
    Node *n = build(g, before, loc, op, d, q->undoes ? "vfiiitn" : "vfiiit", x, q->scale, q->zero,
                    q->lo, q->hi, q->dtype);
    return n ? n->out[0] : NULL;
}

bool qparams_equal(const QParams *a, const QParams *b)
{
    return a->kind == Q_TENSOR && b->kind == Q_TENSOR && !a->scales && !b->scales &&
           (float)a->scale == (float)b->scale && a->zero == b->zero && a->dtype == b->dtype;
}

OpId view_scatter(OpId view)
{
    if (view == OP_AS_STRIDED)
        return OP_AS_STRIDED_SCATTER;
    return view == OP_DIAGONAL ? OP_DIAGONAL_SCATTER : OP_NONE;
}

OpId view_inverse(OpId view)
{
    if (view == OP_VIEW_AS_COMPLEX)
        return OP_VIEW_AS_REAL;
    return view == OP_VIEW_AS_REAL ? OP_VIEW_AS_COMPLEX : OP_NONE;
}
