/* to_edge.c -- what a .pte can call: each op has a kernel in the official runtime.
 *
 * Stage core, pte tail; leaves edge.  Python numbers that a kernel wants as tensors become
 * constants; every op without a kernel is reported, all of them at once.
 */
#include "passes/internal.h"

static bool has_kernel(const Node *n)
{
    return node_row(n)->out || op_is_instruction(n->op);
}

static bool graph_to_edge(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        n = numbers_to_tensors(&r, n);
        if (!has_kernel(n) && n->custom)
            ok = custom_is_not_taken(n, "kernel", d);
        else if (!has_kernel(n))
            ok = diag_unsupported(d, n->loc, "the ExecuTorch runtime has no kernel for it");
    }
    rewrite_finish(&r);
    return ok;
}

bool pass_to_edge(Program *p, Arena *tmp, Diag *d)
{
    if (!each_graph(p, graph_to_edge, tmp, d))
        return false;
    p->stage = STAGE_EDGE;
    p->edits++;
    return true;
}
