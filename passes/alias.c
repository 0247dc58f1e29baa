/* alias.c -- which values share bytes: views lie in what they view, and an operator may write its
 * result over an operand that dies there.
 *
 * Stages edge and grouped, in their final order.  alias_sets decides, one walk in program order,
 * and plan_memory obeys; the pass itself only turns views of a size known at run time into the
 * .pte's et_view, which shares bytes where a static view is a second tensor at the same place.
 *
 * Invariant: the bytes of a set hold one live value at a time, or views of it.  A result joins the
 * set of an operand only where no member of the set is read later, so a set's life is one interval.
 * Inputs of emitted C belong to the caller, states outlive the call: neither is written over, but
 * for the state that this very result updates.
 */
#include "passes/passes.h"

static bool visit(Graph *g, PlacedFn *fn, Arena *tmp, Diag *d)
{
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; n->op == OP_COND && i < n->n_args; i++)
            if (n->arg[i].kind == ARG_GRAPH && !visit(n->arg[i].graph, fn, tmp, d))
                return false;
    return fn(g, tmp, d);
}

bool for_each_placed(Program *p, PlacedFn *fn, Arena *tmp, Diag *d)
{
    for (int i = 0; i < p->n_methods; i++)
        if (!visit(p->method[i], fn, tmp, d))
            return false;
    return true;
}

/* -- views ------------------------------------------------------------------------------- */

static int64_t product(Type t, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= t.dim[i].value;
    return n;
}

/* First byte of a slice or select along a dimension with nothing but ones before it; -1 where the
 * result is not one run of bytes. */
static int64_t run_offset(const Node *n, const Value *in)
{
    int64_t dim, start, step = 1;
    if (!type_is_static(in->type) || !type_is_static(n->out[0]->type) || in->type.stride ||
        !arg_int(n, 1, &dim) || !arg_int(n, 2, &start))
        return -1;
    if (n->op == OP_SLICE && (!arg_int(n, 4, &step) || step != 1))
        return -1;
    if (dim < 0 || dim >= in->type.rank || start < 0 || start > in->type.dim[dim].value ||
        product(in->type, 0, (int)dim) != 1)
        return -1;
    return start * product(in->type, (int)dim + 1, in->type.rank) *
           (int64_t)etc_dtype_size((int)in->type.dtype);
}

/* Byte of its input where a view starts; -1 where the operator copies. */
static int64_t view_offset(const Node *n, const Value *in)
{
    if (n->op == OP_VIEW || n->op == OP_ET_VIEW)
        return in->type.stride ? -1 : 0;
    return n->op == OP_SLICE || n->op == OP_SELECT_INT ? run_offset(n, in) : -1;
}

/* -- overlays ---------------------------------------------------------------------------- */

static bool same_shape(Type a, Type b)
{
    if (a.is_none || b.is_none || a.rank != b.rank || a.rank == SCALAR || a.stride || b.stride ||
        etc_dtype_size((int)a.dtype) != etc_dtype_size((int)b.dtype))
        return false;
    for (int i = 0; i < a.rank; i++)
        if (!dim_equal(a.dim[i], b.dim[i]))
            return false;
    return true;
}

static bool row_allows(const Node *n, const Value *v)
{
    for (int i = 0; i < n->n_args; i++)
        if (n->arg[i].kind == ARG_VALUE && n->in[n->arg[i].slot] == v &&
            op_info[n->op].inplace >> i & 1)
            return true;
    return false;
}

/* A body without an anchor reads element i of an operand before it writes element i.  One with an
 * anchor writes all of the anchor's result first, so only what the anchor alone reads, and may
 * overlay, will do. */
static bool body_allows(const Graph *body, const Value *v)
{
    const Node *reader = NULL, *anchor = NULL;
    int readers = 0;
    for (const Node *n = body->first; n; n = n->next) {
        if (!(op_info[n->op].flags & POINTWISE))
            anchor = n;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == v) {
                reader = n;
                readers++;
            }
    }
    if (!anchor)
        return body->n_out == 1;
    return reader == anchor && readers == 1 && row_allows(anchor, v) &&
           same_shape(v->type, anchor->out[0]->type);
}

bool node_may_overlay(const Node *n, int slot)
{
    if (n->n_out != 1 || !same_shape(n->in[slot]->type, n->out[0]->type))
        return false;
    if (n->op != OP_GROUP)
        return row_allows(n, n->in[slot]);
    const Graph *body = n->arg[n->n_args - 1].graph;
    return slot < body->n_in && body_allows(body, body->in[slot]);
}

/* -- sets -------------------------------------------------------------------------------- */

typedef struct Builder {
    const Graph *g;
    AliasSets set;
    int *last_use;         /* position, by value; ends at n_nodes + 1 for what escapes */
    const Value **value;   /* by index */
    const Value **updated; /* by index: the mutable that this value is the update of */
    bool *is_output;
} Builder;

static void note_uses(Builder *b)
{
    const Graph *g = b->g;
    int at = 1;
    for (const Node *n = g->first; n; n = n->next, at++) {
        for (int i = 0; i < n->n_in; i++) {
            b->last_use[n->in[i]->index] = at;
            b->value[n->in[i]->index] = n->in[i];
        }
        for (int i = 0; i < n->n_out; i++)
            b->value[n->out[i]->index] = n->out[i];
    }
    b->set.n_nodes = at - 1;
    for (int i = 0; i < g->n_in; i++)
        b->value[g->in[i]->index] = g->in[i];
    for (int i = 0; i < g->n_out; i++) {
        b->value[g->out[i]->index] = g->out[i];
        b->is_output[g->out[i]->index] = true;
        b->last_use[g->out[i]->index] = at;
    }
    for (int i = 0; i < g->n_updates; i++) {
        const Value *v = g->update[i].value;
        b->value[v->index] = v;
        b->value[g->update[i].target->index] = g->update[i].target;
        b->updated[v->index] = g->update[i].target;
        b->last_use[v->index] = at;
    }
}

static void join(Builder *b, const Value *v, const Value *to, int64_t offset)
{
    int root = b->set.root[to->index];
    b->set.root[v->index] = root;
    b->set.offset[v->index] = b->set.offset[to->index] + offset;
    if (b->set.last[root] < b->last_use[v->index])
        b->set.last[root] = b->last_use[v->index];
}

static bool is_caller_memory(const Builder *b, const Value *root)
{
    return b->g->program->tail == TAIL_C && !root->def && !root->state;
}

/* A nonzero offset has a place only within a pool. */
static bool may_view(const Builder *b, const Value *in, int64_t offset)
{
    const Value *root = b->value[b->set.root[in->index]];
    if (root->state)
        return false;
    if (offset || b->set.offset[in->index])
        return root->def && (b->g->program->tail == TAIL_PTE || b->set.last[root->index] <=
                                                                    b->set.n_nodes);
    return true;
}

/* Every operand in u's set is u itself, so nothing reads bytes that the result has overwritten. */
static bool reads_only(const Builder *b, const Node *n, const Value *u)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] != u && b->set.root[n->in[i]->index] == b->set.root[u->index])
            return false;
    return true;
}

/* A value read in several slots must be allowed in each. */
static bool all_slots_allow(const Node *n, const Value *u)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] == u && !node_may_overlay(n, i))
            return false;
    return true;
}

static bool may_overlay(const Builder *b, const Node *n, const Value *u, int at)
{
    const Value *out = n->out[0], *root = b->value[b->set.root[u->index]];
    bool is_whole = !b->set.offset[u->index] && type_bytes(u->type) == type_bytes(root->type);
    if (root->state && (root->state->kind != ST_MUTABLE || b->updated[out->index] != root ||
                        root != u || b->is_output[out->index]))
        return false;
    if (root->state ? b->last_use[u->index] > at : b->set.last[root->index] > at)
        return false;
    return is_whole && !is_caller_memory(b, root) && reads_only(b, n, u) && all_slots_allow(n, u);
}

static void place_node(Builder *b, const Node *n, int at)
{
    for (int i = 0; i < n->n_out; i++)
        b->set.first[n->out[i]->index] = at;
    if (!n->n_out || n->out[0]->type.is_none || n->out[0]->type.rank == SCALAR)
        return;
    const Value *in = arg_value(n, 0);
    int64_t offset = op_info[n->op].flags & VIEW && in ? view_offset(n, in) : -1;
    if (offset >= 0 && may_view(b, in, offset)) {
        join(b, n->out[0], in, offset);
        return;
    }
    for (int i = 0; i < n->n_in; i++)
        if (may_overlay(b, n, n->in[i], at)) {
            join(b, n->out[0], n->in[i], 0);
            return;
        }
}

/* What a member reads late keeps the whole set alive: known before the sets are built, so that no
 * result overlays bytes which a view shows later. */
static void note_views(Builder *b)
{
    for (const Node *n = b->g->last; n; n = n->prev) {
        const Value *in = n->n_out ? arg_value(n, 0) : NULL;
        if (!in || !(op_info[n->op].flags & VIEW) || view_offset(n, in) < 0)
            continue;
        int late = b->last_use[n->out[0]->index];
        if (b->last_use[in->index] < late)
            b->last_use[in->index] = late;
    }
}

AliasSets alias_sets(const Graph *g, Arena *tmp)
{
    int n = g->n_values + 1, at = 1;
    Builder b = {.g = g,
                 .set = {.root = NEW(tmp, int, n), .offset = NEW(tmp, int64_t, n),
                         .first = NEW(tmp, int, n), .last = NEW(tmp, int, n)},
                 .last_use = NEW(tmp, int, n), .value = NEW(tmp, const Value *, n),
                 .updated = NEW(tmp, const Value *, n), .is_output = NEW(tmp, bool, n)};
    note_uses(&b);
    note_views(&b);
    for (int i = 0; i < g->n_values; i++) {
        b.set.root[i] = i;
        b.set.last[i] = b.last_use[i];
    }
    for (const Node *node = g->first; node; node = node->next)
        place_node(&b, node, at++);
    return b.set;
}

/* -- the pass ---------------------------------------------------------------------------- */

static bool make_dynamic_views(Graph *g, Arena *tmp, Diag *d)
{
    (void)tmp, (void)d;
    for (Node *n = g->first; n; n = n->next)
        if (n->op == OP_VIEW && !type_is_static(n->out[0]->type))
            node_set_op(n, OP_ET_VIEW);
    return true;
}

bool pass_alias(Program *p, Arena *tmp, Diag *d)
{
    return p->tail != TAIL_PTE || for_each_placed(p, make_dynamic_views, tmp, d);
}
