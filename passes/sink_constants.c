/* sink_constants.c -- lets branches and loops read constants themselves, not as operands.
 *
 * Stage aten, after functionalize.  torch.export turns the weights of a branch into operands of its
 * cond or loop.  As states of the program they need no memory of a call, and they fold like
 * others.  Outer graphs come first, so that constants sink through every level.  The time is linear
 * in nodes and operands.
 */
#include "passes/internal.h"

/* Returns the state that operand i is if no call writes it and no iteration of a loop replaces it;
 * else NULL. */
static State *constant_operand(const Node *n, int i)
{
    const Value *v = region_operand(n, i);
    bool is_fixed = value_is_fixed(v) && !region_is_carried(n, i);
    return is_fixed ? v->state : NULL;
}

static void sink_into(Graph *inner, const Node *n, const bool *keep, Arena *tmp)
{
    int room = inner->n_values + inner->n_in + 1;
    Value **with = NEW(tmp, Value *, room);
    for (int i = 0; i < inner->n_in; i++)
        if (!keep[i])
            with[inner->in[i]->index] = graph_state(inner, constant_operand(n, i));
    graph_replace(inner, with);
    graph_keep_inputs(inner, keep);
}

/* Returns a list without the operands that are not kept.  *at is the number of its first operand,
 * and is counted up. */
static Arg kept_operands(Node *to, const Node *n, Arg list, const bool *keep, int *at)
{
    Arg *item = NEW(n->graph->program->arena, Arg, list.list.n + 1);
    int left = 0;
    for (int i = 0; i < list.list.n; i++, (*at)++)
        if (keep[*at])
            item[left++] = arg_moved(to, n, list.list.item[i]);
    list.list.item = item;
    list.list.n = left;
    return list;
}

/* Puts the same node with the operands that are left in the place of n. */
static Node *replace_node(Rewrite *r, Node *n, const bool *keep)
{
    Node *to = node_like(r->g, n);
    int at = 0;
    for (int i = 0; i < n->n_args; i++)
        node_push(to, n->arg[i].kind == ARG_LIST ? kept_operands(to, n, n->arg[i], keep, &at)
                                                 : arg_moved(to, n, n->arg[i]));
    for (int i = 0; i < n->n_out; i++)
        rewrite_value(r, n->out[i], node_add_out(to, n->out[i]->name, n->out[i]->type));
    graph_insert(r->g, n, to);
    graph_remove(r->g, n);
    return to;
}

Node *sink_operands(Rewrite *r, Node *n)
{
    int count = region_n_operands(n), sunk = 0;
    bool *keep = NEW(r->tmp, bool, count + 1);
    for (const Graph *g = NULL; (g = region_next(n, g));)
        if (g->n_in != count)
            return n;
    for (int i = 0; i < count; i++) {
        keep[i] = !constant_operand(n, i);
        sunk += !keep[i];
    }
    if (!sunk)
        return n;
    for (Graph *g = NULL; (g = region_next(n, g));)
        sink_into(g, n, keep, r->tmp);
    return replace_node(r, n, keep);
}

static void sink_graph(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        if (region_has_places(n))
            sink_operands(&r, n);
    }
    rewrite_finish(&r);
    for (const Node *n = g->first; n; n = n->next)
        for (Graph *inner = NULL; (inner = region_planned(n, inner));)
            sink_graph(inner, tmp, d);
}

bool pass_sink_constants(Program *p, Arena *tmp, Diag *d)
{
    for (int i = 0; i < p->n_methods; i++)
        sink_graph(p->method[i], tmp, d);
    return true;
}
