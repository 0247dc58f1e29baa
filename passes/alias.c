/* alias.c -- prepares a graph for planning: copies values that must not share bytes.
 *
 * Before planning, after order.  alias_sets.c decides which values share bytes.  An output that
 * would share bytes with an input, a state or another output is copied.  So is a value that updates
 * a state from the bytes of another state, and one that an iteration of a loop would leave in the
 * bytes of another carried value.  On the pte tail a view whose sizes are known only at run time
 * becomes executorch_prim.et_view. */
#include "passes/internal.h"
#include "ir/session.h"

static Arg keyed(const char *key, Arg a)
{
    a.key = key;
    return a;
}

/* Makes a copy of v in a group of its own, as the c tail wants every operator that computes. */
static Value *copy_in_group(Graph *g, Value *v, Loc loc, Diag *d)
{
    Program *p = g->program;
    Graph *body = graph_new(p, NULL);
    Value *x = graph_value(body, v->name, type_plain(v->type));
    graph_add_input(body, x);
    Value *c = clone_build(body, NULL, loc, x, d);
    if (!c)
        return NULL;
    graph_add_output(body, c);
    Node *n = node_new(g, OP_GROUP, loc);
    Arg *item = NEW(p->arena, Arg, 1);
    *item = node_use(n, v);
    node_push(n, (Arg){.kind = ARG_LIST, .list = {item, 1}});
    node_push(n, keyed("anchor", (Arg){.kind = ARG_STRING, .str = "none"}));
    node_push(n, keyed("tile", (Arg){.kind = ARG_LIST}));
    node_push(n, keyed("body", (Arg){.kind = ARG_GRAPH, .graph = body}));
    graph_append(g, n);
    const char *name = arena_numbered(p->arena, v->name, ".", graph_number(g));
    return node_add_out(n, name, type_plain(v->type));
}

static Value *copy_of(Graph *g, Value *v, Diag *d)
{
    Loc loc = v->def ? v->def->loc : (Loc){.file = g->program->name};
    loc.node = v->name;
    if (g->program->stage == STAGE_GROUPED)
        return copy_in_group(g, v, loc, d);
    Value *c = clone_build(g, NULL, loc, v, d);
    if (c)
        value_set_type(c, type_plain(v->type));
    return c;
}

/* Copies outputs.  A value that is no output any more can then share bytes with the state that
 * it updates, and so can its views, which may still be outputs.  Therefore *again is set after a
 * copy, and the caller looks at all outputs once more.  A copy has bytes of its own, so this
 * ends. */
static bool copy_outputs(Graph *g, Arena *tmp, bool *again, Diag *d)
{
    *again = false;
    AliasSets a = alias_sets(g, tmp);
    const Value **value = graph_values(g, tmp);
    bool *taken = NEW(tmp, bool, g->n_values + 1);
    for (int i = 0; i < g->n_out; i++) {
        const Value *root = value[a.root[g->out[i]->index]];
        if (g->out[i]->type.rank == SCALAR) /* it lies in no memory */
            continue;
        if (root->def && !taken[root->index]) {
            taken[root->index] = true;
            continue;
        }
        Value *copy = copy_of(g, g->out[i], d);
        if (!copy)
            return false;
        graph_set_output(g, i, copy);
        *again = true;
    }
    return true;
}

/* Returns whether output i of a loop's body lies at the start of input i, as which it is carried
 * on, and has its type. */
static bool is_carried_there(const Graph *g, int i, AliasSets a)
{
    assert(i < g->n_in);
    const Value *v = g->out[i];
    return a.root[v->index] == g->in[i]->index && !a.offset[v->index] &&
           type_equal(v->type, g->in[i]->type);
}

/* Copies results of an iteration that would lie in the bytes of another carried value.  At the end
 * of an iteration its results are moved to the carried values one after the other, so a move could
 * destroy such a result. */
static bool copy_carried(Graph *g, Arena *tmp, bool *again, Diag *d)
{
    const Node *loop = region_loop(g);
    assert(loop);
    *again = false;
    AliasSets a = alias_sets(g, tmp);
    bool *is_carried = NEW(tmp, bool, g->n_values + 1);
    for (int i = 0; region_is_carried(loop, i); i++)
        is_carried[g->in[i]->index] = true;
    for (int i = 0; i < g->n_out; i++) {
        if (!is_carried[a.root[g->out[i]->index]] || is_carried_there(g, i, a))
            continue;
        Value *copy = copy_of(g, g->out[i], d);
        if (!copy)
            return false;
        graph_set_output(g, i, copy);
        *again = true;
    }
    return true;
}

/* Copies each value that an update writes and that lies in another state or changed input: the
 * update of that one may overwrite it first. */
static bool copy_updates(Graph *g, Arena *tmp, Diag *d)
{
    if (!g->n_updates)
        return true;
    AliasSets a = alias_sets(g, tmp);
    bool *pinned = pinned_values(g, tmp);
    for (int i = 0; i < g->n_updates; i++) {
        Update *u = &g->update[i];
        int root = a.root[u->value->index];
        if (!pinned[root] || (root == u->target->index && type_equal(u->value->type,
                                                                    u->target->type)))
            continue;
        u->value = copy_of(g, u->value, d);
        g->program->edits++;
        if (!u->value)
            return false;
    }
    return true;
}

/* Makes views executorch_prim.et_view whose sizes, or whose input's place, are known only at run
 * time. */
static void run_time_views(Graph *g, Arena *tmp)
{
    bool *borrowed = borrowed_inputs(g, tmp);
    bool *is_out = NEW(tmp, bool, g->n_values + 1);
    for (int i = 0; i < g->n_out; i++)
        is_out[g->out[i]->index] = true;
    for (Node *n = g->first; n; n = n->next) {
        const Value *x = n->op == OP_VIEW ? arg_value(n, "self") : NULL;
        if (!x || x->state || !view_keeps_bounds(n))
            continue;
        bool *is_lent = &borrowed[n->out[0]->index];
        *is_lent = borrowed[x->index];
        if (*is_lent || (!is_out[n->out[0]->index] &&
                         !(type_is_static(n->out[0]->type) && type_is_static(x->type))))
            node_set_op(n, OP_ET_VIEW);
    }
}

bool pass_alias(Graph *g, Arena *tmp, Diag *d)
{
    const Node *loop = region_loop(g);
    if (!g->name && !loop)
        return true; /* a body has no places, a branch those of its node */
    if (g->name && g->program->session->tail->views_when_run)
        run_time_views(g, tmp);
    for (bool again = true; again;)
        if (loop ? !copy_carried(g, tmp, &again, d) : !copy_outputs(g, tmp, &again, d))
            return false;
    return loop || copy_updates(g, tmp, d);
}
