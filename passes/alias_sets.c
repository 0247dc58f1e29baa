/* alias_sets.c -- decides which values share bytes.
 *
 * Stages edge and grouped.  There are four cases: a view and its input; a result and an operand
 * that dies at its node, if the row's column `inplace` allows it; a mutable state and the value
 * that updates it, if nobody reads the old contents after the new ones are written; and a concat
 * and each operand that is one run of bytes in the result.  alias_sets() decides this from the
 * graph alone, in one walk, so plan_memory and other passes come to the same sets without a
 * record.  Sets are joined by union-find, with offsets beside the parents. */
#include "passes/internal.h"
#include "ir/session.h"

typedef struct Sets { /* arrays by value index, those of sets by root */
    const Graph *g;
    int *parent;      /* itself for a root */
    int64_t *shift;   /* first byte in the parent's */
    const Value **value;
    int *last;        /* last read of any value of the set */
    bool *pinned;     /* inputs and states that a call changes */
    bool *is_in, *is_out;
    bool *borrowed;   /* inputs that stay in the caller's memory */
    bool *is_part;    /* a concat reads it whose operands may lie in its result */
    const Value **updates; /* the state that the value is the update of, where it may lie there */
    bool *has_out;    /* sets: an output is among them */
    bool *has_offset; /* sets: one starts behind the first byte */
} Sets;

/* Returns the index of the value that holds v's bytes, and makes it the parent of v and of all
 * values on the way. */
static int root_of(Sets *s, const Value *v)
{
    int root = v->index;
    int64_t sum = 0;
    while (s->parent[root] != root) {
        sum += s->shift[root];
        root = s->parent[root];
    }
    for (int i = v->index; i != root;) {
        int up = s->parent[i];
        int64_t step = s->shift[i];
        s->parent[i] = root;
        s->shift[i] = sum;
        sum -= step;
        i = up;
    }
    return root;
}

/* Returns the byte of its root at which v begins; for a root it is 0. */
static int64_t offset_of(Sets *s, const Value *v)
{
    root_of(s, v);
    return s->shift[v->index];
}

bool graph_owns_io(const Graph *g)
{
    const Session *s = g->program->session;
    return (s->tail->plans_ports || s->shares_io) && g->name;
}

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

/* Returns whether n needs its operands in the plan: its nested graphs take over their places, or it
 * keeps bytes of another dtype, for which there is no kernel. */
static bool needs_places(const Node *n)
{
    return region_next(n, NULL) || (node_keeps_bytes(n) && !node_is_view(n));
}

/* Notes that the operands of n, or those that they are views of, are not borrowed. */
static void not_borrowed(const Node *n, bool *borrowed)
{
    for (int i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        while (v->def && op_info[v->def->op].flags & VIEW && first_operand(v->def))
            v = first_operand(v->def);
        borrowed[v->index] = false;
    }
}

bool *borrowed_inputs(const Graph *g, Arena *tmp)
{
    const Session *s = g->program->session;
    bool *borrowed = NEW(tmp, bool, g->n_values + 1);
    if (!s->borrows_inputs || !graph_owns_io(g))
        return borrowed;
    const bool *pinned = pinned_values(g, tmp);
    for (int i = 0; i < g->n_in; i++)
        borrowed[g->in[i]->index] = is_tensor(g->in[i]) && !pinned[g->in[i]->index];
    for (const Node *n = g->first; n; n = n->next)
        if (needs_places(n))
            not_borrowed(n, borrowed);
    return borrowed;
}

/* -- views --------------------------------------------------------------------------------- */

/* Sets *offset to the first byte of a slice or select in its input.  Returns false if it is not one
 * run of bytes there, or does not begin at a known byte. */
static bool run_offset(const Node *n, int64_t *offset)
{
    int64_t inner = 1;
    Narrow p;
    if (!narrow_read(n, &p) || p.start.expr)
        return false;
    Type x = p.x->type;
    for (int i = 0; i < x.rank; i++) {
        if (i < p.axis && !dim_equal(x.dim[i], DIM(1)))
            return false;
        if (i > p.axis && (x.dim[i].expr || !mul_ok(inner, x.dim[i].value, &inner)))
            return false;
    }
    return !x.dim[p.axis].expr && mul_ok(p.start.value, inner, offset) &&
           mul_ok(*offset, (int64_t)etc_dtype_size((int)x.dtype), offset);
}

/* Returns whether a view has as many bytes as its input at the upper bounds of their sizes.  Sizes
 * that a guard makes equal may have other bounds; such values cannot share a plan. */
bool view_keeps_bounds(const Node *n)
{
    assert(n->n_in && n->n_out);
    return type_bytes(first_operand(n)->type) == type_bytes(n->out[0]->type);
}

static bool is_run_time_view(const Node *n)
{
    return n->op == OP_ET_VIEW;
}

/* Returns whether the bytes of the node's result are a run of its input's, which begins at
 * *offset. */
static bool is_view(const Node *n, int64_t *offset)
{
    bool fixed = type_is_static(n->out[0]->type) && type_is_static(first_operand(n)->type);
    *offset = 0;
    if (is_run_time_view(n))
        return true;
    if (node_is_view(n))
        return (fixed || !n->graph->program->session->tail->views_when_run) && view_keeps_bounds(n);
    if (node_keeps_bytes(n)) /* not in C, whose types may not alias */
        return fixed && n->graph->program->session->tail->views_when_run;
    return fixed && run_offset(n, offset);
}

/* Returns whether v may lie at byte `offset` of a root in memory of the caller.  There are no
 * offsets in such memory, and an output must fill it. */
static bool fits_caller(Sets *s, int root, const Value *v, int64_t offset)
{
    if (graph_owns_io(s->g))
        return true;
    if (s->is_in[root] || s->has_out[root])
        return !offset;
    return !s->is_out[v->index] ||
           (!s->has_offset[root] && !offset &&
            type_bytes(v->type) == type_bytes(s->value[root]->type));
}

/* Returns whether the result of a view may share the bytes of its input.  Constants have no place
 * that it could share.  Only at run time it is known where a borrowed input lies. */
static bool may_view(Sets *s, const Node *n, int64_t offset)
{
    int root = root_of(s, first_operand(n));
    const State *state = s->value[root]->state;
    return is_tensor(first_operand(n)) && (!state || state->kind == ST_MUTABLE) &&
           (!s->borrowed[root] || is_run_time_view(n)) &&
           fits_caller(s, root, n->out[0], offset + offset_of(s, first_operand(n)));
}

/* -- in place -------------------------------------------------------------------------------- */

static bool same_sizes(Type a, Type b)
{
    return a.rank == b.rank && dims_equal(a.dim, b.dim, a.rank);
}

/* Returns whether the column `inplace` allows every argument that is v. */
static bool column_has(const Node *n, const Value *v)
{
    int found = 0, reads = 0;
    for (int i = 0, left = op_info[n->op].inplace; left; i++, left >>= 1)
        found += left & 1 && arg_value(n, i) == v;
    for (int i = 0; found && i < n->n_in; i++)
        reads += n->in[i] == v;
    return found && found == reads;
}

/* Returns whether a group's result may overlay the operand v.  A body without an anchor reads
 * element i of an operand before it writes element i.  A body with an anchor writes the whole
 * result of the anchor first, so only what the anchor alone reads may lie there. */
static bool body_allows(const Graph *body, const Value *v)
{
    const Node *anchor = NULL, *reader = NULL;
    int reads = 0;
    for (const Node *n = body->first; n; n = n->next) {
        if (!node_is_pointwise(n))
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
    const Graph *body = group_body(n);
    if (!body)
        return column_has(n, n->in[slot]);
    return n->n_out == 1 && slot < body->n_in && body_allows(body, body->in[slot]);
}

bool node_may_overlay(const Node *n, int slot)
{
    assert(slot < n->n_in && n->n_out);
    const Value *x = n->in[slot], *y = n->out[0];
    return row_allows(n, slot) && is_tensor(x) && !x->type.stride && !y->type.stride &&
           etc_dtype_size((int)x->type.dtype) == etc_dtype_size((int)y->type.dtype) &&
           same_sizes(x->type, y->type);
}

/* Returns whether the result may be written over operand `slot`: every other operand in the same
 * bytes must be read element for element as it is written. */
static bool may_overlay(Sets *s, const Node *n, int slot)
{
    const Value *x = n->in[slot], *y = n->out[0];
    if (!node_may_overlay(n, slot))
        return false;
    int root = root_of(s, x);
    for (int k = 0; k < n->n_in; k++) {
        const Value *v = n->in[k];
        if (root_of(s, v) == root &&
            (offset_of(s, v) != offset_of(s, x) || !same_sizes(v->type, y->type) ||
             !row_allows(n, k)))
            return false;
    }
    return true;
}

/* Returns the operand whose bytes the result may take because it dies at this node, or NULL.  An
 * operand that shares its bytes with nobody is preferred, else the first one is taken.  Inputs
 * of the caller are excluded on the c tail, if the result becomes an output, and if a concat
 * needs the result at another place. */
static const Value *dying_operand(Sets *s, const Node *n, int time)
{
    const Value *y = n->out[0], *found = NULL;
    for (int i = 0; i < n->n_in; i++) {
        const Value *x = n->in[i];
        int root = root_of(s, x);
        if (s->last[root] != time || !may_overlay(s, n, i))
            continue;
        bool kept = s->is_in[root] && (!graph_owns_io(s->g) || s->borrowed[root] ||
                                        s->is_out[y->index] || s->is_part[y->index]);
        if (s->pinned[root] || s->value[root]->state || kept ||
            !fits_caller(s, root, y, offset_of(s, x)))
            continue;
        if (type_bytes(s->value[root]->type) == type_bytes(x->type))
            return x;
        found = found ? found : x;
    }
    return found;
}

/* -- sets ------------------------------------------------------------------------------------ */

/* Puts the set of root `of` into that of `to`, from byte `offset` of `to` on. */
static void join(Sets *s, const Value *of, const Value *to, int64_t offset)
{
    int root = root_of(s, to), v = of->index;
    assert(s->parent[v] == v && root != v); /* a root, and no circle */
    s->parent[v] = root;
    s->shift[v] = offset_of(s, to) + offset;
    if (s->last[v] > s->last[root])
        s->last[root] = s->last[v];
    s->has_out[root] = s->has_out[root] || s->has_out[v];
    s->has_offset[root] = s->has_offset[root] || s->has_offset[v] || s->shift[v];
}

/* Returns whether a node's result may be written over the state that it updates.  For this, nothing
 * may read the state after the node, and the node itself only as its row allows. */
static bool may_write_state(Sets *s, const Node *n, int time)
{
    const Value *t = s->updates[n->out[0]->index];
    if (!t || region_has_places(n) || !type_equal(n->out[0]->type, t->type) ||
        s->last[t->index] > time)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (root_of(s, n->in[i]) == t->index && !may_overlay(s, n, i))
            return false;
    return true;
}

/* -- concats --------------------------------------------------------------------------------- */

/* Returns whether each operand of a concat is one run of bytes in its result. */
static bool is_run_of_operands(const Node *n)
{
    Concat c;
    Type y = n->out[0]->type;
    if (!concat_read(n, &c) || !type_is_static(y) || y.stride)
        return false;
    for (int i = 0; i < c.axis; i++)
        if (y.dim[i].value != 1)
            return false;
    for (int i = 0; i < n->n_in; i++) {
        Type x = n->in[i]->type;
        if (x.rank != y.rank || x.dtype != y.dtype || !type_is_static(x) || x.stride)
            return false;
    }
    return true;
}

/* Finds the operands of a concat from i on that are neighbours in one set, as they are in the
 * result.  Returns the number of the first that is not, and sets *bytes to the sum of their
 * bytes. */
static int neighbours(Sets *s, const Node *n, int i, int64_t *bytes)
{
    int root = root_of(s, n->in[i]);
    int64_t first = offset_of(s, n->in[i]);
    *bytes = 0;
    for (; i < n->n_in && root_of(s, n->in[i]) == root &&
           offset_of(s, n->in[i]) == first + *bytes; i++)
        *bytes += type_bytes(n->in[i]->type);
    return i;
}

/* Returns whether a set may become a part of concat result y: nodes of the graph write it, and it
 * may move as a whole. */
static bool may_be_part(const Sets *s, int root, const Value *y)
{
    const Value *v = s->value[root];
    return root != y->index && v->def && !s->has_out[root] && !v->type.stride &&
           type_is_static(v->type);
}

/* Places the operands of a concat in its result where that is possible.  Memory of the caller has
 * to be filled by one value, so it is left alone. */
static void place_parts(Sets *s, const Node *n)
{
    const Value *y = n->out[0];
    int64_t at = 0, bytes;
    if (!is_run_of_operands(n) || (!graph_owns_io(s->g) && s->has_out[y->index]))
        return;
    for (int i = 0; i < n->n_in; at += bytes) {
        int root = root_of(s, n->in[i]);
        bool is_first = !offset_of(s, n->in[i]);
        i = neighbours(s, n, i, &bytes);
        if (is_first && bytes && bytes == type_bytes(s->value[root]->type) &&
            may_be_part(s, root, y))
            join(s, s->value[root], y, at);
    }
}

/* -- the walk -------------------------------------------------------------------------------- */

static void place_result(Sets *s, const Node *n, int time)
{
    int64_t offset;
    if (!n->n_out || !is_tensor(n->out[0]))
        return;
    if (n->n_in && is_view(n, &offset)) {
        if (may_view(s, n, offset))
            join(s, n->out[0], first_operand(n), offset);
    } else if (may_write_state(s, n, time)) {
        join(s, n->out[0], s->updates[n->out[0]->index], 0);
    } else {
        const Value *x = dying_operand(s, n, time);
        if (x)
            join(s, n->out[0], x, 0);
        else
            place_parts(s, n);
    }
}

/* Finds the updates that can share bytes: a value may update one state, a state may have one
 * value, and the value may not be an output.  In a loop, results of an iteration update the carried
 * values. */
static void find_updates(Sets *s)
{
    const Graph *g = s->g;
    for (int i = 0; i < g->n_out && region_loop(g); i++)
        if (g->out[i]->def && g->out[i] == g->out[i]->def->out[0])
            s->updates[g->out[i]->index] = g->in[i];
    for (int i = 0; i < g->n_updates; i++) {
        const Value *v = g->update[i].value, *t = g->update[i].target;
        if (t->state && v->def && v == v->def->out[0] && !s->is_out[v->index])
            s->updates[v->index] = t;
    }
}

/* Notes that a branch reads states, which are no operands of its node. */
static void find_reads_in(Sets *s, const Graph *branch, int time)
{
    for (int i = 0; i < branch->n_states; i++) {
        const Value *v = graph_find_state(s->g, branch->state[i]->state);
        if (v)
            s->last[v->index] = time;
    }
    for (const Node *n = branch->first; n; n = n->next)
        for (const Graph *inner = NULL; (inner = region_planned(n, inner));)
            find_reads_in(s, inner, time);
}

static void find_reads(Sets *s)
{
    const Graph *g = s->g;
    int time = 0;
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        bool holds = n->n_out && is_run_of_operands(n);
        for (int i = 0; i < n->n_in; i++) {
            s->last[n->in[i]->index] = time;
            s->is_part[n->in[i]->index] = s->is_part[n->in[i]->index] || holds;
        }
        for (const Graph *inner = NULL; (inner = region_planned(n, inner));)
            find_reads_in(s, inner, time);
    }
    for (int i = 0; i < g->n_updates; i++)
        s->last[g->update[i].value->index] = time + 1;
    for (int i = 0; i < g->n_out; i++) {
        s->last[g->out[i]->index] = time + 1;
        s->is_out[g->out[i]->index] = s->has_out[g->out[i]->index] = true;
    }
    for (int i = 0; i < g->n_in; i++)
        s->is_in[g->in[i]->index] = true;
    find_updates(s);
}

AliasSets alias_sets(const Graph *g, Arena *tmp)
{
    size_t n = (size_t)g->n_values + 1;
    Sets s = {.g = g, .parent = NEW(tmp, int, n), .shift = NEW(tmp, int64_t, n),
              .value = graph_values(g, tmp), .last = NEW(tmp, int, n),
              .pinned = pinned_values(g, tmp), .is_in = NEW(tmp, bool, n),
              .is_out = NEW(tmp, bool, n), .borrowed = borrowed_inputs(g, tmp),
              .is_part = NEW(tmp, bool, n),
              .updates = NEW(tmp, const Value *, n), .has_out = NEW(tmp, bool, n),
              .has_offset = NEW(tmp, bool, n)};
    int time = 0;
    for (int i = 0; i < g->n_values; i++)
        s.parent[i] = i;
    find_reads(&s);
    for (const Node *node = g->first; node; node = node->next)
        place_result(&s, node, ++time);
    for (int i = 0; i < g->n_values; i++)
        if (s.value[i])
            root_of(&s, s.value[i]);
    return (AliasSets){s.parent, s.shift};
}

