/* rows.c -- which core ops become XNNPACK nodes, under which conditions, and how. */
#include "ir/session.h"
#include "partition/internal.h"
#include "partition/xnnpack/rows.h"
#include <math.h>

/* Says which sizes may be symbolic: none, the first, all except the channels of images [n, c, ...],
 * any. */
typedef enum Open { ALL_KNOWN, OPEN_BATCH, OPEN_IMAGE, OPEN_ANY } Open;

typedef struct Row {
    OpId op;
    XTakes *takes; /* NULL: the checks for all rows are enough */
    XLower *lower;
    XnnKind kind; /* for rows that share a function */
    Open open;
} Row;

static const Row *row_of(OpId op);

/* -- helpers of the table --------------------------------------------------------------------- */

bool xnn_no(Refusal *r, const char *why, const char *fix)
{
    *r = (Refusal){why, fix};
    return false;
}

/* Returns whether the runtime that p is compiled for has the node. */
static bool runtime_has(const Program *p, XnnKind kind)
{
    int runtime = p->session->runtime, since = 0;
#define X(id, major, minor, patch)              \
    if (kind == XNN_##id)                       \
        since = RUNTIME_VERSION(major, minor, patch);
    XNN_LATER_NODES(X)
#undef X
    return !runtime || runtime >= since;
}

XnnKind xnn_kind(const Node *n)
{
    assert(row_of(n->op));
    return row_of(n->op)->kind;
}

Layout x_layout(const Lower *w, const Node *n)
{
    return n->out[0]->type.rank < 3 ? AS_IS : x_prefers(w, n);
}

void x_define_reshaped(Lower *w, const Value *v, uint32_t in)
{
    XValue sizes = x_sizes(v->type, AS_IS);
    x_define(w, v, AS_IS, x_reshape(w, in, &sizes));
}

int64_t xnn_size(const Value *v, int axis)
{
    axis += axis < 0 ? v->type.rank : 0;
    assert(axis >= 0 && axis < v->type.rank);
    return v->type.dim[axis].value;
}

int xnn_symbolic_sizes(Type t, int from)
{
    int n = 0;
    for (int i = from; i < t.rank; i++)
        n += t.dim[i].expr != NULL;
    return n;
}

int64_t xnn_axis(const Node *n, const char *name, int rank)
{
    int64_t axis = 0;
    arg_int(n, name, &axis);
    return axis < 0 ? axis + rank : axis;
}

static bool is_float_tensor(const Value *v, EtcDtype t)
{
    return v->type.dtype == t && v->type.rank >= 0 && v->type.rank <= XNN_MAX_RANK &&
           !v->type.is_none && type_numel(v->type) > 0 && type_numel(v->type) <= UINT32_MAX;
}

/* -- the table ------------------------------------------------------------------------------- */

static const Row rows[] = {
    {OP__NATIVE_BATCH_NORM, xnn_takes_batch_norm, xnn_lower_batch_norm, XNN_DEPTHWISE, OPEN_IMAGE},
    {OP_ABS, NULL, xnn_lower_unary, XNN_ABS, OPEN_ANY},
    {OP_ADD_SCALAR, xnn_takes_number_alpha_one, xnn_lower_scalar, XNN_ADD, OPEN_ANY},
    {OP_ADD_TENSOR, xnn_takes_alpha_one, xnn_lower_binary, XNN_ADD, OPEN_ANY},
    {OP_ADDMM, xnn_takes_linear, xnn_lower_linear, XNN_FULLY_CONNECTED, OPEN_ANY},
    {OP_AMAX, xnn_takes_amax, xnn_lower_amax, XNN_MAX_POOL, OPEN_BATCH},
    {OP_ATTENTION, xnn_takes_attention, xnn_lower_attention, XNN_BATCH_MATMUL, OPEN_ANY},
    {OP_AVG_POOL2D, xnn_takes_avg_pool, xnn_lower_avg_pool, XNN_AVG_POOL, OPEN_IMAGE},
    {OP_BMM, xnn_takes_bmm, xnn_lower_bmm, XNN_BATCH_MATMUL, OPEN_ANY},
    {OP_CAT, xnn_takes_cat, xnn_lower_cat, XNN_CONCAT2, OPEN_ANY},
    {OP_CLAMP, xnn_takes_clamp, xnn_lower_clamp, XNN_CLAMP, OPEN_ANY},
    {OP_CLONE, xnn_takes_clone, xnn_lower_clone, XNN_TRANSPOSE, OPEN_ANY},
    {OP_CONSTANT_PAD_ND, xnn_takes_pad, xnn_lower_pad, XNN_PAD, OPEN_ANY},
    {OP_CONVOLUTION, xnn_takes_conv, xnn_lower_conv, XNN_CONV, OPEN_IMAGE},
    {OP_COS, NULL, xnn_lower_unary, XNN_COS, OPEN_ANY},
    {OP_DIV_SCALAR, xnn_takes_number, xnn_lower_scalar, XNN_DIV, OPEN_ANY},
    {OP_DIV_TENSOR, NULL, xnn_lower_binary, XNN_DIV, OPEN_ANY},
    {OP_ELU, xnn_takes_elu, xnn_lower_elu, XNN_ELU, OPEN_ANY},
    {OP_EXP, NULL, xnn_lower_unary, XNN_EXP, OPEN_ANY},
    {OP_EXPAND, xnn_takes_expand, xnn_lower_expand, XNN_MULTIPLY, OPEN_ANY},
    {OP_GELU, NULL, xnn_lower_gelu, XNN_GELU, OPEN_ANY},
    {OP_HARDSIGMOID, NULL, xnn_lower_hardsigmoid, XNN_CLAMP, OPEN_ANY},
    {OP_HARDSWISH, NULL, xnn_lower_unary, XNN_HARDSWISH, OPEN_ANY},
    {OP_HARDTANH, xnn_takes_clamp, xnn_lower_clamp, XNN_CLAMP, OPEN_ANY},
    {OP_LAYER_NORM, xnn_takes_layer_norm, xnn_lower_layer_norm, XNN_FULLY_CONNECTED, OPEN_ANY},
    {OP_LEAKY_RELU, NULL, xnn_lower_leaky_relu, XNN_LEAKY_RELU, OPEN_ANY},
    {OP_LINEAR, xnn_takes_linear, xnn_lower_linear, XNN_FULLY_CONNECTED, OPEN_ANY},
    {OP_LOG, NULL, xnn_lower_unary, XNN_LOG, OPEN_ANY},
    {OP_MAX_POOL2D, xnn_takes_max_pool, xnn_lower_max_pool, XNN_MAX_POOL, OPEN_IMAGE},
    {OP_MAX_POOL2D_WITH_INDICES, xnn_takes_max_pool, xnn_lower_max_pool, XNN_MAX_POOL, OPEN_IMAGE},
    {OP_MAXIMUM, NULL, xnn_lower_binary, XNN_MAXIMUM, OPEN_ANY},
    {OP_MEAN_DIM, xnn_takes_mean, xnn_lower_mean, XNN_GLOBAL_POOL, OPEN_IMAGE},
    {OP_MINIMUM, NULL, xnn_lower_binary, XNN_MINIMUM, OPEN_ANY},
    {OP_MM, xnn_takes_linear, xnn_lower_linear, XNN_FULLY_CONNECTED, OPEN_ANY},
    {OP_MUL_SCALAR, xnn_takes_number, xnn_lower_scalar, XNN_MULTIPLY, OPEN_ANY},
    {OP_MUL_TENSOR, NULL, xnn_lower_binary, XNN_MULTIPLY, OPEN_ANY},
    {OP_NATIVE_LAYER_NORM, xnn_takes_layer_norm, xnn_lower_layer_norm, XNN_FULLY_CONNECTED,
     OPEN_ANY},
    {OP_NEG, NULL, xnn_lower_unary, XNN_NEGATE, OPEN_ANY},
    {OP_PERMUTE, NULL, xnn_lower_permute, XNN_TRANSPOSE, OPEN_ANY},
    {OP_POW_TENSOR_SCALAR, xnn_takes_power, xnn_lower_power, XNN_SQUARE, OPEN_ANY},
    {OP_RECIPROCAL, NULL, xnn_lower_reversed, XNN_DIV, OPEN_ANY},
    {OP_RELU, NULL, xnn_lower_clamp, XNN_CLAMP, OPEN_ANY},
    {OP_ROLL, xnn_takes_roll, xnn_lower_roll, XNN_SLICE, OPEN_BATCH},
    {OP_RSQRT, NULL, xnn_lower_unary, XNN_RSQRT, OPEN_ANY},
    {OP_RSUB_SCALAR, xnn_takes_number_alpha_one, xnn_lower_reversed, XNN_SUBTRACT, OPEN_ANY},
    {OP_SDPA, xnn_takes_sdpa, xnn_lower_sdpa, XNN_BATCH_MATMUL, ALL_KNOWN},
    {OP_SELECT_INT, xnn_takes_select, xnn_lower_select, XNN_SLICE, OPEN_BATCH},
    {OP_SIGMOID, NULL, xnn_lower_unary, XNN_SIGMOID, OPEN_ANY},
    {OP_SILU, NULL, xnn_lower_silu, XNN_SIGMOID, OPEN_ANY},
    {OP_SIN, NULL, xnn_lower_unary, XNN_SIN, OPEN_ANY},
    {OP_SLICE, xnn_takes_slice, xnn_lower_slice, XNN_SLICE, OPEN_ANY},
    {OP__SOFTMAX, NULL, xnn_lower_softmax, XNN_SOFTMAX, OPEN_ANY},
    {OP_SOFTMAX_ATTENTION, xnn_takes_sdpa, xnn_lower_sdpa, XNN_BATCH_MATMUL, ALL_KNOWN},
    {OP_SQRT, NULL, xnn_lower_unary, XNN_SQRT, OPEN_ANY},
    {OP_SUB_SCALAR, xnn_takes_number_alpha_one, xnn_lower_scalar, XNN_SUBTRACT, OPEN_ANY},
    {OP_SUB_TENSOR, xnn_takes_alpha_one, xnn_lower_binary, XNN_SUBTRACT, OPEN_ANY},
    {OP_SUM_DIM, xnn_takes_mean, xnn_lower_mean, XNN_FULLY_CONNECTED, OPEN_BATCH},
    {OP_TANH, NULL, xnn_lower_unary, XNN_TANH, OPEN_ANY},
    {OP_UPSAMPLE_BILINEAR2D_VEC, xnn_takes_bilinear, xnn_lower_bilinear, XNN_RESIZE,
     OPEN_BATCH},
    {OP_UPSAMPLE_NEAREST2D_VEC, xnn_takes_nearest, xnn_lower_nearest, XNN_MULTIPLY, OPEN_BATCH},
    {OP_VIEW, xnn_takes_view, xnn_lower_view, XNN_RESHAPE, OPEN_ANY},
};

static const Row *row_of(OpId op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op)
            return &rows[i];
    return NULL;
}

static bool sizes_fit(Type t, Open open)
{
    for (int i = 0; i < t.rank; i++)
        if (t.dim[i].expr && (open == ALL_KNOWN || (open == OPEN_BATCH && i) ||
                              (open == OPEN_IMAGE && i == 1)))
            return false;
    return true;
}

/* Returns whether only the first result is read, because XNNPACK's nodes compute no other. */
static bool others_are_unread(const Node *n, const Uses *u)
{
    for (int i = 1; i < n->n_out; i++) {
        int v = n->out[i]->index;
        if (u->escapes[v] || u->first[v + 1] > u->first[v])
            return false;
    }
    return true;
}

static bool is_half(const Node *n)
{
    return n->n_out && n->out[0]->type.dtype == ETC_F16;
}

static bool takes_types(const Node *n, Refusal *r)
{
    EtcDtype t = is_half(n) ? ETC_F16 : ETC_F32;
    for (int i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!is_float_tensor(v, t))
            return xnn_no(r,
                          "its operands are not all f32, or all f16, of bounded sizes with at most "
                          "6 axes",
                          "export it in float32, with bounds of all sizes and at most 6 axes");
        if (value_is_fixed(v) && !value_is_known(v))
            return xnn_no(r, "the bytes of a constant are not available",
                          "give the model's weights");
    }
    if (n->n_out && !n->out[0]->type.rank) /* the runtime resizes results to XNNPACK's rank, 1 */
        return xnn_no(r, "its result has no axes", "give it one of size 1");
    return (n->n_out && is_float_tensor(n->out[0], t)) ||
           xnn_no(r, "its result is not an f32 or f16 tensor of bounded sizes with at most 6 axes",
                  "export it in float32, with bounds of all sizes and at most 6 axes");
}

/* Returns whether v as f16 is 0 or infinite only if v itself is. */
static bool is_half_number(double v)
{
    return v == 0 || (fabs(v) >= ldexp(1, -14) && fabs(v) < 65520);
}

/* Returns whether XNNPACK computes the operator in f16 well enough.  It lacks some of them; its
 * norms and sums would add or square in f16, where torch uses f32; its tanh has three times the
 * error of torch's; and its root of a negative number is -0, that of infinity NaN. */
static bool has_half(OpId op)
{
    switch ((int)op) {
    case OP_COS:
    case OP_EXP:
    case OP_GELU:
    case OP_LOG:
    case OP_SIN:
    case OP_LAYER_NORM:
    case OP_NATIVE_LAYER_NORM:
    case OP_SQRT:
    case OP_SUM_DIM:
    case OP_TANH:
        return false;
    default:
        return true;
    }
}

static bool takes_half(const Node *n, Refusal *r)
{
    Clamp c;
    double v;
    const bool is_root = n->op == OP_POW_TENSOR_SCALAR && arg_number(n, "exponent", &v) && v == 0.5;
    if (!has_half(n->op) || is_root || (n->op == OP_MEAN_DIM && !xnn_is_mean_of_space(n)))
        return xnn_no(r, "XNNPACK has no such operation in f16, or one less exact than torch's",
                      "export it in float32");
    for (int i = 0; i < n->n_in; i++)
        if (value_is_from_constants(n->in[i]))
            return xnn_no(r, "an operand in f16 is computed of constants", "make it a constant");
    if (row_of(n->op)->lower == xnn_lower_clamp) {
        return !clamp_read(n, &c) || half_of((float)c.lo) != half_of((float)c.hi) ||
               xnn_no(r, "its limits are the same in f16", "export it in float32");
    }
    if (n->op == OP__NATIVE_BATCH_NORM) /* its numbers are folded in f32 */
        return true;
    for (int i = 0; i < n->n_args; i++)
        if ((n->arg[i].kind == ARG_FLOAT || n->arg[i].kind == ARG_INT) && arg_number(n, i, &v) &&
            !is_half_number(v))
            return xnn_no(r, "one of its numbers is too large or too small for f16",
                          "export it in float32");
    return true;
}

static bool takes_sizes(const Node *n, Open open, Refusal *r)
{
    bool fit = sizes_fit(n->out[0]->type, open);
    for (int i = 0; i < n->n_in; i++)
        fit = fit && sizes_fit(n->in[i]->type, open);
    return fit || xnn_no(r, "XNNPACK needs a known size that is symbolic here",
                         open == ALL_KNOWN    ? "export with all of its sizes fixed"
                         : open == OPEN_BATCH ? "export with all sizes but the first fixed"
                                              : "export with the number of channels fixed");
}

/* -- sizes at their bounds -------------------------------------------------------------------- */

static Dim at_bound(Dim d)
{
    return d.expr ? DIM(dim_upper(d)) : d;
}

static Type type_at_bounds(Program *p, Type t)
{
    Dim dim[MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dim[i] = at_bound(t.dim[i]);
    return t.rank > 0 ? type_tensor(p, t.dtype, t.rank, dim) : t;
}

static Arg arg_at_bounds(Program *p, Arg a)
{
    if (a.kind == ARG_INT)
        a.dim = at_bound(a.dim);
    if (a.kind != ARG_LIST)
        return a;
    Arg *item = NEW(p->arena, Arg, a.list.n + 1);
    for (int i = 0; i < a.list.n; i++)
        item[i] = arg_at_bounds(p, a.list.item[i]);
    a.list.item = item;
    return a;
}

/* The runtime sizes a blob from the bounds of its inputs.  Two sizes that a guard makes equal may
 * have different bounds, and it would refuse the blob. */
static bool agrees_at_bounds(const Node *n)
{
    Program *p = n->graph->program;
    Diag d = {0};
    Node at = *n;
    Value *in = NEW(p->arena, Value, n->n_in + 1);
    Type *out = NEW(p->arena, Type, n->n_out + 1);
    at.in = NEW(p->arena, Value *, n->n_in + 1);
    at.arg = NEW(p->arena, Arg, n->n_args + 1);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = *n->in[i];
        in[i].type = type_at_bounds(p, in[i].type);
        at.in[i] = &in[i];
    }
    for (int i = 0; i < n->n_args; i++)
        at.arg[i] = arg_at_bounds(p, n->arg[i]);
    return node_infer(&at, out, &d) && type_equal(out[0], type_at_bounds(p, n->out[0]->type));
}

static bool takes_bounds(const Node *n, Refusal *r)
{
    return !n->graph->program->n_syms || agrees_at_bounds(n) ||
           xnn_no(r, "two of its sizes are equal by a guard, but have different bounds",
                  "export it with one symbol for both, or the same bounds");
}

bool xnn_takes(const Node *n, const Uses *u, Refusal *r)
{
    const Row *row = row_of(n->op);
    if (xnn_is_quant(n))
        return xnn_takes_quant(n, u, r) && takes_bounds(n, r);
    if (!row)
        return xnn_no(r, "XNNPACK has no such operation", NULL);
    if (!runtime_has(n->graph->program, row->kind))
        return xnn_no(r, "XNNPACK of the version in --target-runtime has no such node",
                      "give a later runtime");
    if (!others_are_unread(n, u))
        return xnn_no(r, "results after its first are read", "read only the first one");
    return takes_types(n, r) && (!is_half(n) || takes_half(n, r)) && takes_sizes(n, row->open, r) &&
           takes_bounds(n, r) && (!row->takes || row->takes(n, r));
}

void xnn_lower_node(Lower *w, const Node *n)
{
    XIntegers to;
    if (w->done[n->out[0]->index] || value_is_from_constants(n->out[0]))
        return;
    if (xnn_is_quant(n)) {
        xnn_lower_quant(w, n);
    } else {
        w->integers = xnn_in_integers(w, n, &to);
        w->real = x_real(n->out[0]->type);
        row_of(n->op)->lower(w, n);
        if (w->integers)
            xnn_declare_integers(w, n, &to);
        w->integers = false;
    }
}
