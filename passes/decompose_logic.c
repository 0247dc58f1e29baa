/* decompose_logic.c -- truth values and ranges: forms of any, all, bitwise ops and arange. */
#include "passes/decompose.h"

/* x & y; a number becomes a tensor later */
bool decomp_bitwise(Rewrite *r, Node *n)
{
    bool is_and = n->op == OP___AND__TENSOR || n->op == OP___AND__SCALAR;
    bool is_or = n->op == OP___OR__TENSOR || n->op == OP___OR__SCALAR;
    OpId op = is_and ? OP_BITWISE_AND_TENSOR : is_or ? OP_BITWISE_OR_TENSOR : OP_BITWISE_XOR_TENSOR;
    if (n->arg[1].kind == ARG_VALUE)
        return done(r, n, build(r->g, n, n->loc, op, r->d, "vv", n->in[0], n->in[1]));
    return done(r, n, build(r->g, n, n->loc, op, r->d, "va", n->in[0], n->arg[1]));
}

/* any over one axis or all, as a list */
static Node *any_of(Rewrite *r, Node *n, Value *x)
{
    int64_t axis[1] = {0};
    if (n->n_args == 1)
        return build(r->g, n, n->loc, OP_ANY_DIMS, r->d, "vnb", x, false);
    if (!arg_int(n, 1, axis))
        return NULL;
    return build(r->g, n, n->loc, OP_ANY_DIMS, r->d, "vIa", x, 1, axis, n->arg[2]);
}

bool decomp_any(Rewrite *r, Node *n)
{
    return done(r, n, any_of(r, n, n->in[0]));
}

/* all(x) ==> not any(not x) */
bool decomp_all(Rewrite *r, Node *n)
{
    if (n->out[0]->type.dtype != ETC_BOOL)
        return diag_unsupported(r->d, n->loc, "gives u8, only bool is supported");
    Node *off = build(r->g, n, n->loc, OP_LOGICAL_NOT, r->d, "v", n->in[0]);
    Node *any = off ? any_of(r, n, off->out[0]) : NULL;
    return any && done(r, n, build(r->g, n, n->loc, OP_LOGICAL_NOT, r->d, "v", any->out[0]));
}

/* arange(end) ==> arange(0, end, 1) */
bool decomp_arange(Rewrite *r, Node *n)
{
    Arg zero = {.kind = ARG_INT, .dim = DIM(0)};
    bool has_start = n->op == OP_ARANGE_START;
    for (int i = 0; i <= has_start; i++)
        if (n->arg[i].kind == ARG_VALUE)
            return diag_unsupported(r->d, n->loc, "its bounds are not known before the call");
    return done(r, n, build(r->g, n, n->loc, OP_ARANGE_START_STEP, r->d, "aait",
                            has_start ? n->arg[0] : zero, n->arg[has_start], (int64_t)1,
                            n->out[0]->type.dtype));
}
