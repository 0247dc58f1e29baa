/* decompose_attention.c -- scaled_dot_product_attention as products, a mask and a softmax.
 *
 *   softmax(q k^T scale + mask) v
 *
 * etc.softmax_attention is just that, with a cap and a bias on the scores.  Of the other,
 *
 * A query that a mask leaves no key gets 0, as in PyTorch's kernels; whether one is left is seen in
 * the mask alone, which is smaller than the scores and often constant.
 */
#include "passes/decompose.h"
#include <math.h>

typedef struct Attention {
    Value *q, *k, *v, *mask, *bias;
    int64_t group; /* query heads per head of k and v, which share its batch then; else 1 */
    double scale, cap, fill; /* cap 0: none; fill: the score where a bool mask is false */
} Attention;

static Value *first(const Node *n)
{
    return n ? n->out[0] : NULL;
}

/* -- masks --------------------------------------------------------------------------------- */

static Value *positions(Rewrite *r, Node *n, Dim count)
{
    return first(build(r->g, n, n->loc, OP_ARANGE_START_STEP, r->d, "idit", (int64_t)0, count,
                       (int64_t)1, ETC_I64));
}

/* Query i sees keys 0 .. i. */
static Value *causal_mask(Rewrite *r, Node *n, const Attention *a)
{
    Type q = a->q->type, k = a->k->type;
    Dim column[2] = {q.dim[q.rank - 2], DIM(1)};
    Value *i = positions(r, n, column[0]), *j = positions(r, n, k.dim[k.rank - 2]);
    i = i && j ? build_view(r, n, i, column, 2) : NULL;
    return i ? first(build(r->g, n, n->loc, OP_GE_TENSOR, r->d, "vv", i, j)) : NULL;
}

/* Per query: the mask leaves it a key. */
static Value *any_key(Rewrite *r, Node *n, Value *mask)
{
    static const int64_t last = -1;
    if (mask->type.dtype == ETC_BOOL)
        return first(build(r->g, n, n->loc, OP_ANY_DIMS, r->d, "vIb", mask, 1, &last, true));
    Value *top = first(build(r->g, n, n->loc, OP_AMAX, r->d, "vIb", mask, 1, &last, true));
    return top ? first(build(r->g, n, n->loc, OP_NE_SCALAR, r->d, "vf", top, -(double)INFINITY))
               : NULL;
}

static Value *plus(Rewrite *r, Node *n, Value *scores, Value *add)
{
    return scores && add ? first(build(r->g, n, n->loc, OP_ADD_TENSOR, r->d, "vv", scores, add))
                         : scores;
}

static Value *masked(Rewrite *r, Node *n, const Attention *a, Value *scores)
{
    if (!scores || !a->mask || a->mask->type.dtype != ETC_BOOL)
        return plus(r, n, scores, a->mask);
    return first(build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vvf", a->mask, scores, a->fill));
}

/* cap * tanh(scores) */
static Value *capped(Rewrite *r, Node *n, const Attention *a, Value *scores)
{
    if (!scores || a->cap == 0)
        return scores;
    Value *t = first(build(r->g, n, n->loc, OP_TANH, r->d, "v", scores));
    return t ? first(build(r->g, n, n->loc, OP_MUL_SCALAR, r->d, "vf", t, a->cap)) : NULL;
}

/* -- products ------------------------------------------------------------------------------ */

/* x of [..., heads, rows, columns] with the query heads of one key head as rows of it, or back. */
static Value *regroup(Rewrite *r, Node *n, Value *x, int64_t group, bool back)
{
    Program *p = r->g->program;
    Dim dim[MAX_RANK], by = DIM(group);
    int rank = x->type.rank;
    for (int i = 0; i < rank; i++)
        dim[i] = x->type.dim[i];
    if (group == 1)
        return x;
    dim[rank - 3] = back ? dim_mul(p, dim[rank - 3], by) : dim_floordiv(p, dim[rank - 3], by);
    dim[rank - 2] = back ? dim_floordiv(p, dim[rank - 2], by) : dim_mul(p, dim[rank - 2], by);
    return build_view(r, n, x, dim, rank);
}

static Value *product(Rewrite *r, Node *n, const Attention *a, Value *x, Value *y)
{
    x = x && y ? regroup(r, n, x, a->group, false) : NULL;
    x = x ? first(build(r->g, n, n->loc, OP_MATMUL, r->d, "vv", x, y)) : NULL;
    return x ? regroup(r, n, x, a->group, true) : NULL;
}

static Value *swap_last(Rewrite *r, Node *n, Value *x)
{
    return first(build(r->g, n, n->loc, OP_TRANSPOSE_INT, r->d, "vii", x, (int64_t)-2,
                       (int64_t)-1));
}

static Value *attend(Rewrite *r, Node *n, const Attention *a)
{
    Value *q = first(build(r->g, n, n->loc, OP_MUL_SCALAR, r->d, "vf", a->q, a->scale));
    Value *scores = q ? product(r, n, a, q, swap_last(r, n, a->k)) : NULL;
    scores = masked(r, n, a, plus(r, n, capped(r, n, a, scores), a->bias));
    scores = scores ? first(build(r->g, n, n->loc, OP__SOFTMAX, r->d, "vib", scores, (int64_t)-1,
                                  false))
                    : NULL;
    return product(r, n, a, scores, a->v);
}

/* -- the rule ------------------------------------------------------------------------------ */

static bool read_arguments(Rewrite *r, Node *n, Attention *a)
{
    double p = 0;
    *a = (Attention){.q = arg_value(n, 0), .k = arg_value(n, 1), .v = arg_value(n, 2),
                     .mask = arg_value(n, 3), .group = 1, .fill = -INFINITY};
    Type q = a->q->type, k = a->k->type;
    if (!arg_number(n, 4, &p) || p != 0)
        return diag_unsupported(r->d, n->loc,
                                "drops elements at random: export the model in eval mode");
    Dim width = q.dim[q.rank - 1], heads = q.dim[q.rank - 3 > 0 ? q.rank - 3 : 0];
    if (!arg_number(n, 6, &a->scale)) {
        if (width.expr)
            return diag_unsupported(r->d, n->loc, "its scale depends on a symbolic size");
        a->scale = 1 / sqrt((double)width.value);
    }
    if (!arg_bool(n, 7) || q.rank < 3 || dim_equal(heads, k.dim[k.rank - 3]))
        return true;
    Dim group = dim_floordiv(r->g->program, heads, k.dim[k.rank - 3]);
    if (group.expr)
        return diag_unsupported(r->d, n->loc, "its heads are not counted by plain integers");
    a->group = group.value;
    return true;
}

bool decomp_attention(Rewrite *r, Node *n)
{
    Attention a;
    if (!read_arguments(r, n, &a))
        return false;
    Value *given = a.mask;
    if (arg_bool(n, 5) && !(a.mask = causal_mask(r, n, &a)))
        return false;
    Value *y = attend(r, n, &a);
    if (!y || !given)
        return y && rewrite_node(r, n, y);
    Value *any = any_key(r, n, given);
    return any && done(r, n, build(r->g, n, n->loc, OP_WHERE_SELF, r->d, "vvf", any, y, 0.0));
}

bool decomp_softmax_attention(Rewrite *r, Node *n)
{
    Attention a;
    if (!read_arguments(r, n, &a))
        return false;
    a.bias = arg_value(n, 8);
    arg_number(n, 9, &a.cap);
    arg_number(n, 10, &a.fill);
    Value *y = attend(r, n, &a);
    return y && rewrite_node(r, n, y);
}

/* [b, s, h * w] as [b, h, s, w] */
static Value *split_heads(Rewrite *r, Node *n, Value *x, int64_t heads)
{
    static const int64_t swap[] = {0, 2, 1, 3};
    Dim width = dim_floordiv(r->g->program, x->type.dim[2], DIM(heads));
    Dim dim[4] = {x->type.dim[0], x->type.dim[1], DIM(heads), width};
    Value *v = build_view(r, n, x, dim, 4);
    return v ? build_permute(r, n, v, swap) : NULL;
}

bool decomp_packed_attention(Rewrite *r, Node *n)
{
    static const int64_t swap[] = {0, 2, 1, 3};
    int64_t heads = 1, kv_heads = 1;
    double scale = 0;
    arg_int(n, 4, &heads);
    arg_int(n, 5, &kv_heads);
    arg_number(n, 7, &scale);
    Value *q = split_heads(r, n, arg_value(n, 0), heads);
    Value *k = split_heads(r, n, arg_value(n, 1), kv_heads);
    Value *v = split_heads(r, n, arg_value(n, 2), kv_heads);
    Value *mask = arg_value(n, 3);
    if (mask && mask->type.rank == 3) {
        const Dim *d = mask->type.dim;
        mask = build_view(r, n, mask, (Dim[]){d[0], DIM(1), d[1], d[2]}, 4);
    }
    Node *y = q && k && v ? build(r->g, n, n->loc, OP_SDPA, r->d, "vvvvfbab", q, k, v,
                                  mask, 0.0, arg_bool(n, 6),
                                  scale ? n->arg[7] : (Arg){.kind = ARG_NONE}, heads != kv_heads)
                          : NULL;
    Value *rows = y ? build_permute(r, n, y->out[0], swap) : NULL;
    Value *out = rows ? build_view(r, n, rows, n->out[0]->type.dim, 3) : NULL;
    return out && rewrite_node(r, n, out);
}
