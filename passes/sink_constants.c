/* sink_constants.c -- branches read constants themselves instead of being handed them.
 *
 * Stage aten, after functionalize.  torch.export lifts the weights of a branch into operands of its
 * cond; as states of the program they need no memory of a call and fold like others.  Outer graphs
 * first, so that constants sink through every level.  Linear in nodes and operands.
 */
#include "passes/internal.h"

/* The state that operand i of a cond is, where no call writes it. */
static State *constant_operand(const Node *n, int i)
{
    const Value *v = arg_list_value(n, "operands", i);
    return v && v->state && v->state->kind != ST_MUTABLE ? v->state : NULL;
}

static void sink_into(Graph *branch, const Node *n, const bool *keep, Arena *tmp)
{
    int room = branch->n_values + branch->n_in + 1;
    Value **with = NEW(tmp, Value *, room);
    for (int i = 0; i < branch->n_in; i++)
        if (!keep[i])
            with[branch->in[i]->index] = graph_state(branch, constant_operand(n, i));
    graph_replace(branch, with);
    graph_keep_inputs(branch, keep);
}

/* The same node with the operands that are left. */
static void replace_cond(Rewrite *r, Node *n, const bool *keep)
{
    Program *p = r->g->program;
    Node *to = node_new(r->g, n->op, n->loc);
    Arg *item = NEW(p->arena, Arg, arg_count(n, "operands") + 1);
    int left = 0;
    node_push(to, node_use(to, arg_value(n, "pred")));
    node_push(to, arg_get(n, "true_graph"));
    node_push(to, arg_get(n, "false_graph"));
    for (int i = 0; i < arg_count(n, "operands"); i++)
        if (keep[i])
            item[left++] = node_use(to, arg_list_value(n, "operands", i));
    node_push(to, (Arg){.kind = ARG_LIST, .list = {item, left}});
    for (int i = 0; i < n->n_out; i++)
        rewrite_value(r, n->out[i], node_add_out(to, n->out[i]->name, n->out[i]->type));
    graph_insert(r->g, n, to);
    graph_remove(r->g, n);
}

static void sink(Rewrite *r, Node *n)
{
    int count = arg_count(n, "operands"), sunk = 0;
    Graph *yes = arg_get(n, "true_graph").graph,
          *no = arg_get(n, "false_graph").graph;
    bool *keep = NEW(r->tmp, bool, count + 1);
    if (arg_value(n, "pred") == NULL || yes->n_in != count || no->n_in != count)
        return;
    for (int i = 0; i < count; i++) {
        keep[i] = !constant_operand(n, i);
        sunk += !keep[i];
    }
    if (!sunk)
        return;
    sink_into(yes, n, keep, r->tmp);
    sink_into(no, n, keep, r->tmp);
    replace_cond(r, n, keep);
}

static void sink_graph(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        if (n->op == OP_COND)
            sink(&r, n);
    }
    rewrite_finish(&r);
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; n->op == OP_COND && i < n->n_args; i++)
            if (n->arg[i].kind == ARG_GRAPH)
                sink_graph(n->arg[i].graph, tmp, d);
}

bool pass_sink_constants(Program *p, Arena *tmp, Diag *d)
{
    for (int i = 0; i < p->n_methods; i++)
        sink_graph(p->method[i], tmp, d);
    return true;
}
