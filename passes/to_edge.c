/* to_edge.c -- checks that each operator has a kernel in the official runtime.
 *
 * Stage core, pte tail; leaves edge.  Python numbers become constants if the kernel wants
 * tensors.  All operators without a kernel are reported at once. */
#include "ir/session.h"
#include "passes/internal.h"
#include <string.h>

static bool has_kernel(const Node *n)
{
    return session_calls(n->graph->program->session, node_row(n)) || op_is_instruction(n->op);
}

/* Reports a node that computes with a dtype that kernels only move and cast. */
static bool can_compute(const Node *n, Diag *d)
{
    /* names in the column `c` */
    static const char *const families[] = {"pointwise", "compare", "reduce", "order"};
    const char *c = op_c(n->op);
    bool computes = false;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        computes = computes || (!strcmp(c, families[i]) && strcmp(op_expr(n->op), "copy") != 0);
    if (!computes)
        return true;
    for (int i = 0; i < n->n_in; i++) {
        Type t = n->in[i]->type;
        bool is_f8 = dtype_is_float(t.dtype) && etc_dtype_size((int)t.dtype) == 1;
        if (t.dtype == ETC_U64 || is_f8)
            return diag_unsupported(
                d, n->loc,
                "computes with %s, which kernels only move and cast: cast it to %s "
                "before",
                dtype_name(t.dtype), is_f8 ? "f32" : "i64");
    }
    return true;
}

/* Gives types to results that torch left out: the kernel writes them all the same. */
static bool give_types(Node *n, Arena *tmp, Diag *d)
{
    Type *type = NEW(tmp, Type, n->n_out + 1);
    bool has_all = true;
    for (int i = 0; i < n->n_out; i++)
        has_all = has_all && !n->out[i]->type.is_none;
    if (has_all)
        return true;
    if (!node_infer(n, type, d))
        return false;
    for (int i = 0; i < n->n_out; i++)
        n->out[i]->type = n->out[i]->type.is_none ? type[i] : n->out[i]->type;
    return true;
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
        ok = can_compute(n, d) && give_types(n, tmp, d) && ok;
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
