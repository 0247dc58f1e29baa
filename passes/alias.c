/* alias.c -- which values lie in the bytes of others, and copies where they must not.
 *
 * Before planning, after order.  Three things share bytes: a view and its input, a result and the
 * operand that its row's `inplace` column lets it overlay and that dies there, and what a call
 * leaves in a mutable state and that state, when nothing reads the old contents once the new are
 * written.  alias_sets() decides from the graph alone, in one walk, so that plan_memory and others
 * agree without a record.
 *
 * The pass makes the graph fit to be planned: an output that would share bytes with an input, a
 * state or another output is copied, and so is what one state leaves in another.  On the pte tail a
 * view whose sizes are known only at run time becomes executorch_prim.et_view.
 */
#include "passes/internal.h"

typedef struct Sets { /* arrays by value index, those of sets by root */
    const Graph *g;
    AliasSets a;
    const Value **value;
    int *last;        /* last read of any value of the set */
    bool *pinned;     /* inputs and states that a call changes */
    bool *is_in, *is_out;
    const Value **updates; /* the state that the value is the update of, where it may lie there */
    bool *has_out;    /* sets: an output is among them */
    bool *has_offset; /* sets: one starts behind the first byte */
} Sets;

bool *pinned_values(const Graph *g, Arena *tmp)
{
    bool *pinned = NEW(tmp, bool, g->n_values + 1);
    for (int i = 0; i < g->n_updates; i++)
        pinned[g->update[i].target->index] = true;
    for (int i = 0; i < g->n_states; i++)
        if (g->state[i]->state->kind == ST_MUTABLE)
            pinned[g->state[i]->index] = true;
    return pinned;
}

static bool is_tensor(const Value *v)
{
    return v->type.rank != SCALAR && !v->type.is_none;
}

/* -- views --------------------------------------------------------------------------------- */

/* The first byte of a slice or select in its input, where it is one run of bytes. */
static bool run_offset(const Node *n, int64_t *offset)
{
    int64_t axis, start, step = 1, inner = 1;
    Type x = n->in[0]->type;
    if (!arg_int(n, 1, &axis) || axis < 0 || !arg_int(n, 2, &start) || start < 0 ||
        (n->op == OP_SLICE && (!arg_int(n, 4, &step) || step != 1)))
        return false;
    for (int i = 0; i < x.rank; i++) {
        if (i < axis && !dim_equal(x.dim[i], DIM(1)))
            return false;
        if (i > axis && (x.dim[i].expr || !mul_ok(inner, x.dim[i].value, &inner)))
            return false;
    }
    return !x.dim[axis].expr && start <= x.dim[axis].value && mul_ok(start, inner, offset) &&
           mul_ok(*offset, (int64_t)etc_dtype_size((int)x.dtype), offset) &&
           *offset % PLAN_ALIGN == 0;
}

/* Whether the bytes of the node's result are a run of its input's, by the kind of op. */
static bool is_view(const Node *n, int64_t *offset)
{
    bool fixed = type_is_static(n->out[0]->type) && type_is_static(n->in[0]->type);
    *offset = 0;
    switch (n->op) {
    case OP_VIEW:
        return fixed || n->graph->program->tail == TAIL_C;
    case OP_ET_VIEW:
        return true;
    case OP_SLICE:
    case OP_SELECT_INT:
        return fixed && run_offset(n, offset);
    default:
        return false;
    }
}

/* Memory of the caller has no byte offsets on the c tail, and an output there must fill it. */
static bool fits_caller(const Sets *s, int root, const Value *v, int64_t offset)
{
    if (s->g->program->tail == TAIL_PTE)
        return true;
    if (s->is_in[root] || s->has_out[root] || s->is_out[root])
        return !offset;
    return !s->is_out[v->index] ||
           (!s->has_offset[root] && !offset &&
            type_bytes(v->type) == type_bytes(s->value[root]->type));
}

/* Constants have no place that a view could share. */
static bool may_view(const Sets *s, const Node *n, int64_t offset)
{
    int root = s->a.root[n->in[0]->index];
    const State *state = s->value[root]->state;
    return is_tensor(n->in[0]) && (!state || state->kind == ST_MUTABLE) &&
           fits_caller(s, root, n->out[0], offset + s->a.offset[n->in[0]->index]);
}

/* -- in place -------------------------------------------------------------------------------- */

static bool same_sizes(Type a, Type b)
{
    return a.rank == b.rank && dims_equal(a.dim, b.dim, a.rank);
}

/* The column names every argument that v stands for. */
static bool column_has(const Node *n, const Value *v)
{
    int found = 0, reads = 0;
    for (int i = 0; i < n->n_args && i < 32; i++)
        found += op_info[n->op].inplace >> i & 1 && arg_value(n, i) == v;
    for (int i = 0; found && i < n->n_in; i++)
        reads += n->in[i] == v;
    return found && found == reads;
}

/* A body without an anchor reads element i of an operand before it writes element i.  One with an
 * anchor writes all of the anchor's result first: what the anchor alone reads may lie there. */
static bool body_allows(const Graph *body, const Value *v)
{
    const Node *anchor = NULL, *reader = NULL;
    int reads = 0;
    for (const Node *n = body->first; n; n = n->next) {
        if (!(op_info[n->op].flags & POINTWISE))
            anchor = n;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == v) {
                reader = n;
                reads++;
            }
    }
    return !anchor || (reader == anchor && reads == 1 && column_has(anchor, v));
}

static bool row_allows(const Node *n, int slot)
{
    if (n->op != OP_GROUP)
        return column_has(n, n->in[slot]);
    const Graph *body = n->arg[n->n_args - 1].graph;
    return n->n_out == 1 && slot < body->n_in && body_allows(body, body->in[slot]);
}

/* Whether the result may be written over operand `slot`: every other operand in the same bytes must
 * be read element for element as it is written. */
static bool may_overlay(const Sets *s, const Node *n, int slot)
{
    const Value *x = n->in[slot], *y = n->out[0];
    if (!row_allows(n, slot) || !is_tensor(x) || x->type.stride || y->type.stride ||
        etc_dtype_size((int)x->type.dtype) != etc_dtype_size((int)y->type.dtype) ||
        !same_sizes(x->type, y->type))
        return false;
    int root = s->a.root[x->index];
    for (int k = 0; k < n->n_in; k++) {
        const Value *v = n->in[k];
        if (s->a.root[v->index] == root &&
            (s->a.offset[v->index] != s->a.offset[x->index] || !same_sizes(v->type, y->type) ||
             !row_allows(n, k)))
            return false;
    }
    return true;
}

/* The operand that dies at this node and whose bytes the result may take, or NULL.  What the caller
 * gave in is never written on the c tail, nor where it would be given back as an output. */
static const Value *dying_operand(const Sets *s, const Node *n, int time)
{
    const Value *y = n->out[0];
    for (int i = 0; i < n->n_in; i++) {
        const Value *x = n->in[i];
        int root = s->a.root[x->index];
        if (s->last[root] != time || !may_overlay(s, n, i))
            continue;
        bool kept = s->is_in[root] &&
                    (s->g->program->tail == TAIL_C || s->is_out[y->index]);
        if (!s->pinned[root] && !s->value[root]->state && !kept &&
            fits_caller(s, root, y, s->a.offset[x->index]))
            return x;
    }
    return NULL;
}

/* -- sets ------------------------------------------------------------------------------------ */

static void join(Sets *s, const Value *v, const Value *to, int64_t offset)
{
    int root = s->a.root[to->index];
    s->a.root[v->index] = root;
    s->a.offset[v->index] = s->a.offset[to->index] + offset;
    if (s->last[v->index] > s->last[root])
        s->last[root] = s->last[v->index];
    s->has_out[root] = s->has_out[root] || s->is_out[v->index];
    s->has_offset[root] = s->has_offset[root] || s->a.offset[v->index];
}

/* A value may be written over the state it updates when the state is read no later than by the node
 * that makes the value, and there only as that node's row allows. */
static bool may_write_state(const Sets *s, const Node *n, int time)
{
    const Value *t = s->updates[n->out[0]->index];
    if (!t || !type_equal(n->out[0]->type, t->type) || s->last[t->index] > time)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (s->a.root[n->in[i]->index] == t->index && !may_overlay(s, n, i))
            return false;
    return true;
}

static void place_result(Sets *s, const Node *n, int time)
{
    int64_t offset;
    if (!n->n_out || !is_tensor(n->out[0]))
        return;
    if (n->n_in && is_view(n, &offset)) {
        if (may_view(s, n, offset))
            join(s, n->out[0], n->in[0], offset);
    } else if (may_write_state(s, n, time)) {
        join(s, n->out[0], s->updates[n->out[0]->index], 0);
    } else {
        const Value *x = dying_operand(s, n, time);
        if (x)
            join(s, n->out[0], x, 0);
    }
}

/* One state per value, one value per state, and no value that is given out as well. */
static void find_updates(Sets *s)
{
    const Graph *g = s->g;
    for (int i = 0; i < g->n_updates; i++) {
        const Value *v = g->update[i].value, *t = g->update[i].target;
        if (t->state && v->def && v == v->def->out[0] && !s->is_out[v->index])
            s->updates[v->index] = t;
    }
}

static void find_reads(Sets *s)
{
    const Graph *g = s->g;
    int time = 0;
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        for (int i = 0; i < n->n_in; i++)
            s->last[n->in[i]->index] = time;
    }
    for (int i = 0; i < g->n_updates; i++)
        s->last[g->update[i].value->index] = time + 1;
    for (int i = 0; i < g->n_out; i++) {
        s->last[g->out[i]->index] = time + 1;
        s->is_out[g->out[i]->index] = true;
    }
    for (int i = 0; i < g->n_in; i++)
        s->is_in[g->in[i]->index] = true;
    find_updates(s);
}

AliasSets alias_sets(const Graph *g, Arena *tmp)
{
    size_t n = (size_t)g->n_values + 1;
    Sets s = {.g = g, .value = graph_values(g, tmp), .last = NEW(tmp, int, n),
              .pinned = pinned_values(g, tmp), .is_in = NEW(tmp, bool, n),
              .is_out = NEW(tmp, bool, n), .updates = NEW(tmp, const Value *, n),
              .has_out = NEW(tmp, bool, n),
              .has_offset = NEW(tmp, bool, n)};
    int time = 0;
    s.a = (AliasSets){.root = NEW(tmp, int, n), .offset = NEW(tmp, int64_t, n)};
    for (int i = 0; i < g->n_values; i++)
        s.a.root[i] = i;
    find_reads(&s);
    for (const Node *node = g->first; node; node = node->next)
        place_result(&s, node, ++time);
    return s.a;
}

/* -- the pass -------------------------------------------------------------------------------- */

static Arg keyed(const char *key, Arg a)
{
    a.key = key;
    return a;
}

/* The copy as a group of its own, as the c tail wants every op that computes. */
static Value *copy_in_group(Graph *g, Value *v, Loc loc, Diag *d)
{
    Program *p = g->program;
    Graph *body = graph_new(p, NULL);
    Value *x = graph_value(body, v->name, type_plain(v->type));
    graph_add_input(body, x);
    Node *c = build(body, NULL, loc, OP_CLONE, d, "v", x);
    if (!c)
        return NULL;
    graph_add_output(body, c->out[0]);
    Node *n = node_new(g, OP_GROUP, loc);
    Arg *item = NEW(p->arena, Arg, 1);
    *item = node_use(n, v);
    node_push(n, (Arg){.kind = ARG_LIST, .list = {item, 1}});
    node_push(n, keyed("anchor", (Arg){.kind = ARG_STRING, .str = "none"}));
    node_push(n, keyed("layout", (Arg){.kind = ARG_STRING, .str = ""}));
    node_push(n, keyed("tile", (Arg){.kind = ARG_LIST}));
    node_push(n, keyed("body", (Arg){.kind = ARG_GRAPH, .graph = body}));
    graph_append(g, n);
    const char *name = arena_printf(p->arena, "%s.%d", v->name, g->n_values);
    return node_add_out(n, name, type_plain(v->type));
}

static Value *copy_of(Graph *g, Value *v, Diag *d)
{
    Loc loc = v->def ? v->def->loc : (Loc){.file = g->program->name};
    loc.node = v->name;
    if (g->program->stage == STAGE_GROUPED)
        return copy_in_group(g, v, loc, d);
    Node *n = build(g, NULL, loc, OP_CLONE, d, "v", v);
    if (n)
        value_set_type(n->out[0], type_plain(v->type));
    return n ? n->out[0] : NULL;
}

static bool copy_outputs(Graph *g, Arena *tmp, Diag *d)
{
    AliasSets a = alias_sets(g, tmp);
    const Value **value = graph_values(g, tmp);
    bool *taken = NEW(tmp, bool, g->n_values + 1);
    for (int i = 0; i < g->n_out; i++) {
        const Value *root = value[a.root[g->out[i]->index]];
        if (root->def && !taken[root->index]) {
            taken[root->index] = true;
            continue;
        }
        Value *copy = copy_of(g, g->out[i], d);
        if (!copy)
            return false;
        graph_set_output(g, i, copy);
    }
    return true;
}

/* What one state or changed input held when the call began, and another is to hold at its end, may
 * be overwritten first: it is copied. */
static bool copy_updates(Graph *g, Arena *tmp, Diag *d)
{
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

static void run_time_views(Graph *g, Arena *tmp)
{
    bool *is_out = NEW(tmp, bool, g->n_values + 1);
    for (int i = 0; i < g->n_out; i++)
        is_out[g->out[i]->index] = true;
    for (Node *n = g->first; n; n = n->next)
        if (n->op == OP_VIEW && !is_out[n->out[0]->index] && !n->in[0]->state &&
            !(type_is_static(n->out[0]->type) && type_is_static(n->in[0]->type)))
            node_set_op(n, OP_ET_VIEW);
}

bool pass_alias(Graph *g, Arena *tmp, Diag *d)
{
    if (!g->name)
        return true; /* a body has no places */
    if (g->program->tail == TAIL_PTE)
        run_time_views(g, tmp);
    return copy_outputs(g, tmp, d) && copy_updates(g, tmp, d);
}
