/* own_outputs.c -- gives every output bytes of its own, by a clone where it would share them.
 *
 * Stage core, last before the tails.  In emitted C an output is the caller's memory, so it cannot
 * be an input, a state, another output, or a view of one of these.  In a .pte outputs may repeat
 * and may be constants, but not what an update overwrites before the caller sees it.
 */
#include "passes/passes.h"

/* The value whose bytes v may show, as far as views of core tell. */
static Value *base_of(Value *v)
{
    while (v->def && op_info[v->def->op].flags & VIEW && arg_value(v->def, 0))
        v = arg_value(v->def, 0);
    return v;
}

static bool is_updated(const Graph *g, const Value *v)
{
    for (int i = 0; i < g->n_updates; i++)
        if (g->update[i].target == v)
            return true;
    return false;
}

static bool is_update(const Graph *g, const Value *v)
{
    for (int i = 0; i < g->n_updates; i++)
        if (base_of(g->update[i].value) == v)
            return true;
    return false;
}

static bool must_copy(const Graph *g, const Value *base, bool is_taken)
{
    if (g->program->tail == TAIL_PTE && g->name)
        return is_updated(g, base);
    return !base->def || is_taken || is_update(g, base);
}

bool pass_own_outputs(Graph *g, Arena *tmp, Diag *d)
{
    bool *is_taken = NEW(tmp, bool, g->n_values + 1);
    int n_values = g->n_values;
    for (int i = 0; i < g->n_out; i++) {
        Value *v = g->out[i], *base = base_of(v);
        if (v->type.is_none || v->type.rank == SCALAR)
            continue;
        bool taken = base->index < n_values && is_taken[base->index];
        if (base->index < n_values)
            is_taken[base->index] = true;
        if (!must_copy(g, base, taken))
            continue;
        Loc loc = v->def ? v->def->loc : (Loc){.file = g->program->name, .node = v->name};
        Node *n = build(g, NULL, loc, OP_CLONE, d, "v", v);
        if (!n)
            return false;
        graph_set_output(g, i, n->out[0]);
    }
    return true;
}
