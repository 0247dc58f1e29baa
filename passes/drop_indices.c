/* drop_indices.c -- y, i = max_pool2d_with_indices(x) ==> y = max_pool2d(x), if nobody reads i.
 *
 * Stage core, for C and runtime-lite, which have kernels of pools without indices.
 * Linear in nodes.  dce comes before it, because a dead node counts as a reader. */
#include "passes/internal.h"
#include "ir/session.h"
#include <string.h>

/* Finds the operator of the same name without "_with_indices".  Returns false if there is none. */
static bool without_indices(const Node *n, Arena *tmp, OpId *op)
{
    static const char end[] = "_with_indices.default";
    const char *name = op_target(n->op);
    const char *at = n->n_args == 6 && n->n_out == 2 ? strstr(name, end) : NULL;
    if (at)
        *op = op_find(arena_printf(tmp, "%.*s.default", (int)(at - name), name));
    return at && *op != OP_NONE;
}

bool pass_drop_indices(Graph *g, Arena *tmp, Diag *d)
{
    const Session *s = g->program->session;
    Rewrite r = rewrite_start(g, tmp, d);
    const Uses u = graph_uses(g, tmp);
    const int errors = diag_errors(d);
    for (Node *n = g->first, *next; n; n = next) {
        OpId op;
        next = n->next;
        rewrite_inputs(&r, n);
        if (!without_indices(n, tmp, &op) || !session_takes(s, op) || others_are_read(&u, n))
            continue;
        const Arg *a = n->arg;
        const Node *y = build(g, n, n->loc, op, d, "vaaaaa", first_operand(n), a[1], a[2], a[3],
                              a[4], a[5]);
        if (y)
            rewrite_node(&r, n, y->out[0]);
    }
    rewrite_finish(&r);
    return diag_errors(d) == errors;
}
