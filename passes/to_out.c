/* to_out.c -- each node is ready to be the call of its row's `out` kernel.
 *
 * Stage edge, pte tail.  Such a call brings every argument of the schema and one tensor per result,
 * read or not, so every result must have a type; strings that are no memory format have no
 * counterpart but as strings.  Reports all nodes that cannot be called.
 */
#include "passes/internal.h"

static bool check(const Node *n, Diag *d)
{
    const Schema *s = node_schema(n);
    bool ok = true;
    if (op_is_instruction(n->op))
        return true;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]->type.is_none)
            ok = diag_fault(d, FAULT_BUG, n->loc, "result %d has no type", i);
    for (int i = 0; i < s->n_args; i++) {
        const Arg *a = &n->arg[i];
        bool number = a->kind == ARG_INT || a->kind == ARG_FLOAT || a->kind == ARG_BOOL;
        if (s->arg[i].type == SCH_TENSOR && !s->arg[i].is_list && number)
            ok = diag_fault(d, FAULT_BUG, n->loc,
                            "'%s' is a number where the kernel expects a tensor", s->arg[i].name);
    }
    return ok;
}

bool pass_to_out(Graph *g, Arena *tmp, Diag *d)
{
    bool ok = true;
    (void)tmp;
    for (const Node *n = g->first; n; n = n->next)
        ok = check(n, d) && ok;
    return ok;
}
