/* decompose_float.c -- activations, norms and statistics as arithmetic and reductions. */
#include "passes/decompose.h"
#include <math.h>
#include <string.h>

/* -- what rules are made of -------------------------------------------------------------------- */

bool as_value(Rewrite *r, Node *n, Value *v)
{
    return v && rewrite_node(r, n, v);
}

Value *build_scalar(Rewrite *r, Node *n, OpId op, Value *a, double number)
{
    Node *m = a ? build(r->g, n, n->loc, op, r->d, "vf", a, number) : NULL;
    return m ? m->out[0] : NULL;
}

Value *build_slice(Rewrite *r, Node *n, Value *x, int64_t axis, Dim from, Dim to)
{
    Node *m = build(r->g, n, n->loc, OP_SLICE, r->d, "viddi", x, axis, from, to, (int64_t)1);
    return m ? m->out[0] : NULL;
}

/* min(x, 0) */
static Value *negative_part(Rewrite *r, Node *n, Value *x)
{
    Node *m = build(r->g, n, n->loc, OP_CLAMP, r->d, "vnf", x, 0.0);
    return m ? m->out[0] : NULL;
}

/* -- activations ------------------------------------------------------------------------------- */

static bool as_elu(Rewrite *r, Node *n, double alpha, double scale, double input_scale)
{
    return done(r, n, build(r->g, n, n->loc, OP_ELU, r->d, "vfff", n->in[0], alpha, scale,
                            input_scale));
}

bool decomp_selu(Rewrite *r, Node *n)
{
    return as_elu(r, n, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}

/* max(x, 0) + min(alpha (e^(x / alpha) - 1), 0) */
bool decomp_celu(Rewrite *r, Node *n)
{
    double alpha = 1;
    if (!arg_number(n, 1, &alpha) || alpha == 0)
        return diag_unsupported(r->d, n->loc, "alpha is not a constant other than 0");
    return as_elu(r, n, alpha, 1, 1 / alpha);
}

/* x - clamp(x, -lambd, lambd) */
bool decomp_softshrink(Rewrite *r, Node *n)
{
    double lambd = 0.5;
    if (!arg_number(n, 1, &lambd))
        return diag_unsupported(r->d, n->loc, "lambd is not a constant");
    Value *x = n->in[0];
    Node *c = build(r->g, n, n->loc, OP_CLAMP, r->d, "vff", x, -lambd, lambd);
    return c && as_value(r, n, build2(r, n, OP_SUB_TENSOR, x, c->out[0]));
}

/* max(x, 0) + weight min(x, 0), with a weight of its own for each channel, axis 1 */
bool decomp_prelu(Rewrite *r, Node *n)
{
    Value *x = n->in[0], *w = n->in[1];
    Dim dim[MAX_RANK];
    int rank = x->type.rank;
    for (int i = 0; i < rank; i++)
        dim[i] = i == 1 && w->type.rank ? w->type.dim[0] : DIM(1);
    if (w->type.rank && rank > 1)
        w = build_view(r, n, w, dim, rank);
    Value *up = build1(r, n, OP_RELU, x), *down = negative_part(r, n, x);
    return as_value(r, n, build2(r, n, OP_ADD_TENSOR, up, build2(r, n, OP_MUL_TENSOR, w, down)));
}

bool decomp_clamp_max(Rewrite *r, Node *n)
{
    if (n->arg[1].kind == ARG_VALUE)
        return diag_unsupported(r->d, n->loc, "its bound is not a constant");
    return done(r, n, build(r->g, n, n->loc, OP_CLAMP, r->d, "vna", n->in[0], n->arg[1]));
}

/* -- norms ------------------------------------------------------------------------------------- */

/* group_norm(input, num_groups, weight, bias, eps) */
bool decomp_group_norm(Rewrite *r, Node *n)
{
    Program *p = r->g->program;
    Type t = n->in[0]->type, rest = t;
    rest.rank -= 2;
    rest.dim += 2;
    return done(r, n, build(r->g, n, n->loc, OP_NATIVE_GROUP_NORM, r->d, "vvvdddaa", n->in[0],
                            arg_value(n, 2), arg_value(n, 3), t.dim[0], t.dim[1],
                            dims_numel(p, rest), n->arg[1], n->arg[4]));
}

/* -- variance ---------------------------------------------------------------------------------- */

/* The argument `name` of the node, or what stands for one that its row lacks. */
static Arg arg_named(const Node *n, const char *name, Arg otherwise)
{
    int i = arg_find(n, name);
    return i < 0 ? otherwise : n->arg[i];
}

/* What is taken off the count: a number, or 1 where `unbiased`. */
static Arg correction(const Node *n)
{
    static const Arg one = {.kind = ARG_INT, .dim = {NULL, 1}}, zero = {.kind = ARG_INT};
    Arg unbiased = arg_named(n, "unbiased", (Arg){.kind = ARG_NONE});
    if (unbiased.kind == ARG_BOOL)
        return unbiased.b ? one : zero;
    Arg given = arg_named(n, "correction", one);
    return given.kind == ARG_NONE ? one : given;
}

static Arg axes_of(const Node *n)
{
    Arg axes = arg_named(n, "dim", (Arg){.kind = ARG_LIST});
    axes.key = NULL;
    return axes;
}

static Arg keepdim_of(const Node *n)
{
    Arg keep = arg_named(n, "keepdim", (Arg){.kind = ARG_BOOL});
    keep.key = NULL;
    return keep;
}

static Value *variance(Rewrite *r, Node *n)
{
    Arg axes = axes_of(n);
    if (axes.kind == ARG_NONE)
        axes = (Arg){.kind = ARG_LIST};
    Node *m = build(r->g, n, n->loc, OP_VAR_CORRECTION, r->d, "vaaa", n->in[0], axes,
                    correction(n), keepdim_of(n));
    return m ? m->out[0] : NULL;
}

bool decomp_var(Rewrite *r, Node *n)
{
    return as_value(r, n, variance(r, n));
}

bool decomp_std(Rewrite *r, Node *n)
{
    return as_value(r, n, build1(r, n, OP_SQRT, variance(r, n)));
}

bool decomp_var_mean(Rewrite *r, Node *n)
{
    Value *v = variance(r, n);
    Arg axes = axes_of(n);
    if (axes.kind == ARG_NONE)
        axes = (Arg){.kind = ARG_LIST};
    Node *m = v ? build(r->g, n, n->loc, OP_MEAN_DIM, r->d, "vaa", n->in[0], axes, keepdim_of(n))
                : NULL;
    if (!m)
        return false;
    rewrite_value(r, n->out[1], m->out[0]);
    return rewrite_node(r, n, v);
}

/* Elements behind one result; false where a size is symbolic. */
static bool reduced_count(const Node *n, int64_t *count)
{
    Type x = n->in[0]->type;
    int64_t axis[MAX_RANK];
    int n_axes = arg_count(n, 1);
    *count = 1;
    if (!arg_ints(n, 1, axis, MAX_RANK))
        return false;
    for (int i = 0; i < (n_axes ? n_axes : x.rank); i++) {
        int64_t at = n_axes ? axis[i] : i;
        Dim size = x.rank ? x.dim[at < 0 ? at + x.rank : at] : DIM(1);
        if (size.expr || !mul_ok(*count, size.value, count))
            return false;
    }
    return true;
}

/* sum((x - mean)^2) / (count - correction), where nothing takes it whole */
bool decomp_var_correction(Rewrite *r, Node *n)
{
    Value *x = n->in[0];
    double less = 1;
    int64_t count;
    Arg axes = n->arg[1], keep = n->arg[3];
    keep.key = NULL;
    if (n->arg[2].kind != ARG_NONE && !arg_number(n, 2, &less))
        return diag_unsupported(r->d, n->loc, "its correction is not a constant");
    bool is_known = reduced_count(n, &count);
    if (!is_known && less != 0)
        return diag_unsupported(r->d, n->loc, "the variance of a symbolic number of elements");
    Node *mean = build(r->g, n, n->loc, OP_MEAN_DIM, r->d, "vab", x, axes, true);
    Value *off = mean ? build2(r, n, OP_SUB_TENSOR, x, mean->out[0]) : NULL;
    Value *square = build2(r, n, OP_MUL_TENSOR, off, off);
    if (!square)
        return false;
    if (!is_known)
        return done(r, n, build(r->g, n, n->loc, OP_MEAN_DIM, r->d, "vaa", square, axes, keep));
    Node *sum = build(r->g, n, n->loc, OP_SUM_DIM, r->d, "vaa", square, axes, keep);
    double by = (double)count - less;
    return sum && as_value(r, n, build_scalar(r, n, OP_DIV_SCALAR, sum->out[0], by > 0 ? by : 0));
}
