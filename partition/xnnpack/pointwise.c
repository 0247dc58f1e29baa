/* pointwise.c -- XNNPACK nodes for pointwise operators. */
#include "partition/xnnpack/rows.h"
#include <math.h>
#include <string.h>

/* -- elementwise ----------------------------------------------------------------------------- */

void xnn_lower_unary(Lower *w, const Node *n)
{
    Layout l = x_layout(w, n);
    uint32_t in = x_use(w, arg_value(n, "self"), l);
    x_unary(w, xnn_kind(n), in, x_result(w, n->out[0], l));
}

static uint32_t times(Lower *w, uint32_t x, double by)
{
    return x_by_number(w, XNN_MULTIPLY, x, by);
}

static uint32_t plus(Lower *w, uint32_t x, double more)
{
    return x_by_number(w, XNN_ADD, x, more);
}

/* Computes x / 2 * (1 + tanh(x (c + 0.044715 c x^2))) with c = sqrt(2 / pi). */
static void tanh_gelu(Lower *w, uint32_t in, uint32_t out)
{
    const double c = 0.79788456080286535588;
    uint32_t t = x_unary(w, XNN_SQUARE, in, x_like(w, in));
    t = plus(w, times(w, t, 0.044715 * c), c);
    t = x_binary(w, XNN_MULTIPLY, t, in, x_like(w, in));
    t = plus(w, x_unary(w, XNN_TANH, t, x_like(w, in)), 1);
    x_binary(w, XNN_MULTIPLY, times(w, in, 0.5), t, out);
}

void xnn_lower_gelu(Lower *w, const Node *n)
{
    Layout l = x_layout(w, n);
    uint32_t in = x_use(w, arg_value(n, "self"), l), out = x_result(w, n->out[0], l);
    if (strcmp(arg_get(n, "approximate").str, "tanh") != 0)
        x_unary(w, XNN_GELU, in, out);
    else
        tanh_gelu(w, in, out);
}

/* Returns whether a binary node can compute with channels last.  Operands are broadcast from the
 * last axis on, so one of lower rank needs all axes first, which only constants get. */
static bool may_be_last(const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->type.rank != n->out[0]->type.rank && type_numel(n->in[i]->type) != 1 &&
            !value_is_known(n->in[i]))
            return false;
    return true;
}

static uint32_t constant_of_rank(Lower *w, const Value *v, int rank)
{
    uint32_t dim[XNN_MAX_RANK], moved[XNN_MAX_RANK];
    int axis[XNN_MAX_RANK], missing = rank - v->type.rank;
    axes_of(rank, CHANNELS_LAST, axis);
    for (int i = 0; i < rank; i++)
        dim[i] = i < missing ? 1 : (uint32_t)xnn_size(v, i - missing);
    for (int i = 0; i < rank; i++)
        moved[i] = dim[axis[i]];
    XnnType t = x_real(v->type);
    return x_constant(w, v->state->name, v->state->fqn,
                      x_permuted(w, v->state->data, x_real_size(t), rank, dim, axis), t, rank,
                      moved);
}

static uint32_t operand(Lower *w, const Value *v, int rank, Layout l)
{
    if (l == CHANNELS_LAST && v->type.rank != rank && type_numel(v->type) != 1)
        return constant_of_rank(w, v, rank);
    return x_use(w, v, v->type.rank == rank ? l : AS_IS);
}

static Layout binary_layout(Lower *w, const Node *n)
{
    return may_be_last(n) ? x_layout(w, n) : AS_IS;
}

bool xnn_takes_alpha_one(const Node *n, Refusal *r)
{
    double alpha;
    return (arg_number(n, "alpha", &alpha) && alpha == 1) || xnn_no(r, "alpha is not 1",
                                                              "multiply the operand beforehand");
}

void xnn_lower_binary(Lower *w, const Node *n)
{
    Layout l = binary_layout(w, n);
    int rank = n->out[0]->type.rank;
    uint32_t a = operand(w, arg_value(n, "self"), rank, l),
             b = operand(w, arg_value(n, "other"), rank, l);
    x_binary(w, xnn_kind(n), a, b, x_result(w, n->out[0], l));
}

bool xnn_takes_number(const Node *n, Refusal *r)
{
    double v;
    return arg_number(n, "other", &v) || xnn_no(r, "its number is not known",
                                          "make the number a constant of the model");
}

bool xnn_takes_number_alpha_one(const Node *n, Refusal *r)
{
    return xnn_takes_number(n, r) && xnn_takes_alpha_one(n, r);
}

void xnn_lower_scalar(Lower *w, const Node *n)
{
    double v = 0;
    Layout l = x_layout(w, n);
    arg_number(n, "other", &v);
    uint32_t a = x_use(w, arg_value(n, "self"), l), b = x_number(w, v);
    x_binary(w, xnn_kind(n), a, b, x_result(w, n->out[0], l));
}

void xnn_lower_reversed(Lower *w, const Node *n)
{
    double v = 1;
    Layout l = x_layout(w, n);
    if (n->op == OP_RSUB_SCALAR)
        arg_number(n, "other", &v);
    uint32_t a = x_number(w, v), b = x_use(w, arg_value(n, "self"), l);
    x_binary(w, xnn_kind(n), a, b, x_result(w, n->out[0], l));
}

bool xnn_takes_power(const Node *n, Refusal *r)
{
    double e = 0;
    arg_number(n, "exponent", &e);
    return e == 2 || e == 0.5 || e == -0.5 || e == 3 ||
           xnn_no(r, "its exponent is not one of 2, 3, 0.5, -0.5", "write the power as products");
}

void xnn_lower_power(Lower *w, const Node *n)
{
    double e = 0;
    Layout l = x_layout(w, n);
    uint32_t in = x_use(w, arg_value(n, "self"), l), out = x_result(w, n->out[0], l);
    arg_number(n, "exponent", &e);
    if (e == 3)
        x_binary(w, XNN_MULTIPLY, in, x_unary(w, XNN_SQUARE, in, x_like(w, in)), out);
    else
        x_unary(w, e == 2 ? XNN_SQUARE : e > 0 ? XNN_SQRT : XNN_RSQRT, in, out);
}

void xnn_lower_silu(Lower *w, const Node *n)
{
    Layout l = x_layout(w, n);
    uint32_t in = x_use(w, arg_value(n, "self"), l),
             gate = x_unary(w, XNN_SIGMOID, in, x_like(w, in));
    x_binary(w, XNN_MULTIPLY, in, gate, x_result(w, n->out[0], l));
}

/* Computes clamp(x / 6 + 0.5, 0, 1). */
void xnn_lower_hardsigmoid(Lower *w, const Node *n)
{
    Layout l = x_layout(w, n);
    uint32_t in = x_use(w, arg_value(n, "self"), l);
    uint32_t sixth = times(w, in, 1.0 / 6);
    uint32_t out = x_result(w, n->out[0], l);
    x_binary(w, XNN_ADD, sixth, x_number(w, 0.5), out);
    x_range(x_producer(w, out), 0, 1);
}

void xnn_lower_leaky_relu(Lower *w, const Node *n)
{
    double slope = 0.01;
    Layout l = x_layout(w, n);
    uint32_t in = x_use(w, arg_value(n, "self"), l), out = x_result(w, n->out[0], l);
    arg_number(n, "negative_slope", &slope);
    XNode *x = x_node(w, XNN_LEAKY_RELU, out);
    x_f32(x, 0, slope);
    x_id(x, 1, in);
    x_id(x, 2, out);
}

bool xnn_takes_elu(const Node *n, Refusal *r)
{
    double alpha, scale, in;
    return (arg_number(n, "alpha", &alpha) && arg_number(n, "scale", &scale) &&
            arg_number(n, "input_scale", &in) && alpha > 0 && scale == 1 && in == 1) ||
           xnn_no(r, "its scales are not 1 or alpha is not positive", "use elu with alpha > 0");
}

void xnn_lower_elu(Lower *w, const Node *n)
{
    double alpha = 1;
    Layout l = x_layout(w, n);
    uint32_t in = x_use(w, arg_value(n, "self"), l), out = x_result(w, n->out[0], l);
    arg_number(n, "alpha", &alpha);
    XNode *x = x_node(w, XNN_ELU, out);
    x_f32(x, 0, alpha);
    x_id(x, 1, in);
    x_id(x, 2, out);
}

/* -- clamps ---------------------------------------------------------------------------------- */

/* The runtime refuses other bounds. */
bool xnn_takes_clamp(const Node *n, Refusal *r)
{
    Clamp c;
    bool is_read = clamp_read(n, &c);
    float lo = (float)c.lo, hi = (float)c.hi;
    return (is_read && lo <= hi && lo < INFINITY && hi > -INFINITY) ||
           xnn_no(r, "no finite number is between its limits", "use a constant instead");
}

/* Returns the node before a clamp if it can clamp its result itself, which nobody else may read;
 * else NULL. */
static XNode *clamps_itself(Lower *w, const Value *v, uint32_t in)
{
    XNode *from = x_producer(w, in);
    if (!from || !from->has_range || from->min != -INFINITY || from->max != INFINITY ||
        !value_is_read_once(&w->uses, v))
        return NULL;
    return from;
}

void xnn_lower_clamp(Lower *w, const Node *n)
{
    Clamp c;
    Layout l = x_layout(w, n);
    clamp_read(n, &c);
    uint32_t in = x_use(w, c.x, l);
    XNode *from = clamps_itself(w, c.x, in);
    if (from) {
        x_range(from, c.lo, c.hi);
        x_define(w, n->out[0], l, in);
        return;
    }
    uint32_t out = x_result(w, n->out[0], l);
    x_unary(w, XNN_CLAMP, in, out);
    x_range(x_producer(w, out), c.lo, c.hi);
}

