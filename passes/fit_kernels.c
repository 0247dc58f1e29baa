/* fit_kernels.c -- rewrites nodes that the official kernels refuse, or compute differently from
 * torch, for a .pte.
 *
 * Stage core, pte tail, after the passes that make nodes.  No rule here makes a node that
 * another rule here rewrites. */
#include "passes/composite.h"

/* -- operands of unlike rank ----------------------------------------------------------------- */

/* Returns whether the official kernels use the shortcut for an operand that broadcasts along one
 * axis: for operands of one dtype that are no halves.  They then give the result the rank of the
 * other operand, which fails if the result has a higher rank. */
static bool is_planned(const Node *n)
{
    switch (n->op) {
    case OP_ADD_TENSOR:
    case OP_SUB_TENSOR:
    case OP_MUL_TENSOR:
    case OP_DIV_TENSOR: {
        EtcDtype t = n->out[0]->type.dtype;
        return n->n_in == 2 && arg_value(n, "self")->type.dtype == t &&
               arg_value(n, "other")->type.dtype == t && !dtype_is_half(t);
    }
    default:
        return false;
    }
}

static int leading_ones(Type t)
{
    int n = 0;
    while (n < t.rank && dim_is_one(t.dim[n]))
        n++;
    return n;
}

/* Returns whether the shortcut would (with symbolic sizes: could) give a result the rank of `whole`
 * although its rank is that of `part`. */
static bool loses_rank(Type whole, Type part)
{
    int more = part.rank - whole.rank, spread = 0, ones = 0;
    if (leading_ones(part) < more)
        return false;
    int whole_rank = whole.rank - leading_ones(whole), part_rank = part.rank - leading_ones(part);
    for (int i = 0; i < whole.rank; i++) {
        bool is_part = dim_is_one(part.dim[more + i]), is_whole = dim_is_one(whole.dim[i]);
        if (is_whole && !is_part)
            return false;
        spread += is_part && !is_whole;
        ones += is_part && i > whole.rank - whole_rank;
    }
    if (!type_is_static(whole))
        return spread > 0;
    return spread == 1 && ((whole_rank == part_rank && ones == 1) ||
                           (whole_rank == 2 && part_rank == 1));
}

static void level_ranks(Rewrite *r, Node *n)
{
    Type a = arg_value(n, "self")->type, b = arg_value(n, "other")->type, t = n->out[0]->type;
    int low = a.rank > b.rank;
    if (a.rank == b.rank || !loses_rank(low ? b : a, low ? a : b))
        return;
    Value *v = build_view(r, n, n->in[low], t.dim, t.rank);
    if (v)
        node_set_in(n, low, v);
}

/* -- self + alpha other ------------------------------------------------------------------------ */

/* Returns whether the official kernel would (with symbolic sizes: could) multiply `self` by alpha
 * instead of `other`: it exchanges the two if `self` has one element. */
static bool misplaces_alpha(const Node *n)
{
    double alpha;
    const Type t = arg_value(n, "self")->type;
    return !(arg_number(n, "alpha", &alpha) && alpha == 1) &&
           (!type_is_static(t) || type_numel(t) == 1);
}

/* -- the walk ---------------------------------------------------------------------------------- */

bool pass_fit_kernels(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    int errors = diag_errors(d);
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        if (is_planned(n))
            level_ranks(&r, n);
        if (op_info[n->op].flags & FITS && (n->op != OP_ADD_TENSOR || misplaces_alpha(n)))
            ok = rewrite_by_rule(&r, n, RULE_OF_KERNEL) && ok;
    }
    rewrite_finish(&r);
    return ok && diag_errors(d) == errors;
}
