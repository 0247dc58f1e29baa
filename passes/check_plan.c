/* check_plan.c -- do the places hold?  Written apart from plan_memory and alias, and always on.
 *
 * Stage planned.  The graph is played through on an imaginary memory where every byte knows whose
 * contents it holds: a node paints the bytes of its results, a read finds out whether all bytes
 * still hold what was written.  A view paints nothing: it takes over its input's contents, whose
 * bytes must enclose its own.  A node may paint bytes that it reads itself only where its row's
 * `inplace` column names that operand and both lie exactly alike.  Memory is cut at every boundary
 * of a place, so painting and reading touch whole segments.  Any fault is ours.
 */
#include "passes/internal.h"
#include <inttypes.h>
#include <stdlib.h>

typedef struct Region { /* an address space: a pool, or one argument of the caller */
    int pool;
    int64_t number; /* of POOL_IN and POOL_OUT */
} Region;

typedef struct Cut {
    Region region;
    int64_t byte;
} Cut;

typedef struct Check {
    const Graph *g;
    Diag *d;
    bool ok;
    Cut *cut; /* sorted, no two alike; segment i is cut[i] .. cut[i + 1] */
    int n_cuts;
    int *holds;    /* by segment: contents + 1, or 0 */
    int *contents; /* by value: its own index, or of a view its input's */
} Check;

/* -- segments ---------------------------------------------------------------------------------- */

static Region region_of(Place at)
{
    bool callers = at.pool == POOL_IN || at.pool == POOL_OUT;
    return (Region){at.pool, callers ? at.offset : 0};
}

static Place place_of(const Value *v)
{
    return v->state ? v->state->place : v->place;
}

static int64_t start_of(const Value *v)
{
    Place at = place_of(v);
    return at.pool == POOL_IN || at.pool == POOL_OUT ? 0 : at.offset;
}

static bool has_place(const Value *v)
{
    return place_of(v).pool != POOL_NONE && v->type.rank != SCALAR && !v->type.is_none;
}

static int compare_cuts(const void *a, const void *b)
{
    const Cut *x = a, *y = b;
    if (x->region.pool != y->region.pool)
        return x->region.pool < y->region.pool ? -1 : 1;
    if (x->region.number != y->region.number)
        return x->region.number < y->region.number ? -1 : 1;
    return (x->byte > y->byte) - (x->byte < y->byte);
}

static void add_cuts(Check *c, Arena *tmp, const Value *v)
{
    if (!has_place(v))
        return;
    Cut lo = {region_of(place_of(v)), start_of(v)}, hi = lo;
    hi.byte += type_bytes(v->type);
    PUSH(tmp, c->cut, c->n_cuts, lo);
    PUSH(tmp, c->cut, c->n_cuts, hi);
}

static void cut_memory(Check *c, Arena *tmp)
{
    int n = 0;
    for (int i = 0; i < c->g->n_in; i++)
        add_cuts(c, tmp, c->g->in[i]);
    for (int i = 0; i < c->g->n_states; i++)
        add_cuts(c, tmp, c->g->state[i]);
    for (const Node *node = c->g->first; node; node = node->next)
        for (int i = 0; i < node->n_out; i++)
            add_cuts(c, tmp, node->out[i]);
    if (c->n_cuts)
        qsort(c->cut, (size_t)c->n_cuts, sizeof *c->cut, compare_cuts);
    for (int i = 0; i < c->n_cuts; i++)
        if (!n || compare_cuts(&c->cut[n - 1], &c->cut[i]))
            c->cut[n++] = c->cut[i];
    c->n_cuts = n;
    c->holds = NEW(tmp, int, n + 1);
}

static int segment_at(const Check *c, Region r, int64_t byte)
{
    Cut key = {r, byte};
    int lo = 0, hi = c->n_cuts;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (compare_cuts(&c->cut[mid], &key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int first_segment(const Check *c, const Value *v)
{
    return segment_at(c, region_of(place_of(v)), start_of(v));
}

static int end_segment(const Check *c, const Value *v)
{
    return segment_at(c, region_of(place_of(v)), start_of(v) + type_bytes(v->type));
}

/* -- faults ------------------------------------------------------------------------------------ */

static Loc loc_of(const Check *c, const Value *v, const Node *n)
{
    if (n)
        return n->loc;
    return v->def ? v->def->loc : (Loc){.file = c->g->program->name, .node = v->name};
}

static void check_read(Check *c, const Value *v, const Node *reader)
{
    if (!has_place(v))
        return;
    int end = end_segment(c, v);
    for (int i = first_segment(c, v); i < end; i++)
        if (c->holds[i] != c->contents[v->index] + 1) {
            c->ok = diag_fault(c->d, FAULT_BUG, loc_of(c, v, reader),
                               "plan: %%%s is read after its bytes were written over", v->name);
            return;
        }
}

static void paint(Check *c, const Value *v)
{
    if (!has_place(v))
        return;
    c->contents[v->index] = v->index;
    int end = end_segment(c, v);
    for (int i = first_segment(c, v); i < end; i++)
        c->holds[i] = v->index + 1;
}

/* -- one node ---------------------------------------------------------------------------------- */

static bool is_inside(const Value *in, const Value *out)
{
    Region a = region_of(place_of(in)), b = region_of(place_of(out));
    return has_place(in) && has_place(out) && a.pool == b.pool && a.number == b.number &&
           start_of(out) >= start_of(in) &&
           start_of(out) + type_bytes(out->type) <= start_of(in) + type_bytes(in->type);
}

static bool overlap(const Value *a, const Value *b)
{
    if (!has_place(a) || !has_place(b) || !type_bytes(a->type) || !type_bytes(b->type))
        return false;
    Region x = region_of(place_of(a)), y = region_of(place_of(b));
    return x.pool == y.pool && x.number == y.number &&
           start_of(a) < start_of(b) + type_bytes(b->type) &&
           start_of(b) < start_of(a) + type_bytes(a->type);
}

/* Whether a slice or select takes exactly the elements that lie at its place. */
static bool slice_lies_there(const Node *n)
{
    int64_t axis, at, below = 1;
    const Value *x = n->in[0], *y = n->out[0];
    if (!arg_int(n, 1, &axis) || !arg_int(n, 2, &at) || axis < 0 || axis >= x->type.rank)
        return false;
    for (int i = 0; i < x->type.rank; i++) {
        if (i < axis && !(x->type.dim[i].expr == NULL && x->type.dim[i].value == 1))
            return false;
        if (i > axis && x->type.dim[i].expr)
            return false;
        below *= i > axis ? x->type.dim[i].value : 1;
    }
    int64_t step = 1;
    if (n->op == OP_SLICE && (!arg_int(n, 4, &step) || step != 1))
        return false;
    int64_t skipped = at * below * (int64_t)etc_dtype_size((int)x->type.dtype);
    return start_of(y) - start_of(x) == skipped;
}

/* A result that is its input's bytes: nothing is written. */
static bool is_declared_view(const Node *n)
{
    if (n->n_out != 1 || !n->n_in || !is_inside(n->in[0], n->out[0]))
        return false;
    switch (n->op) {
    case OP_VIEW:
    case OP_ET_VIEW:
        return start_of(n->in[0]) == start_of(n->out[0]) &&
               type_bytes(n->in[0]->type) == type_bytes(n->out[0]->type);
    case OP_SLICE:
    case OP_SELECT_INT:
        return slice_lies_there(n);
    default:
        return false;
    }
}

/* Elements of x and y correspond and lie at the same bytes. */
static bool lies_alike(const Value *x, const Value *y)
{
    return start_of(x) == start_of(y) && x->type.rank == y->type.rank &&
           dims_equal(x->type.dim, y->type.dim, y->type.rank) &&
           etc_dtype_size((int)x->type.dtype) == etc_dtype_size((int)y->type.dtype);
}

/* Whether a row's `inplace` column names v wherever the node reads it. */
static bool column_names(const Node *n, const Value *v)
{
    int slots = 0, named = 0;
    for (int i = 0; i < n->n_in; i++)
        slots += n->in[i] == v;
    for (int i = 0; i < n->n_args && i < 32; i++)
        named += arg_value(n, i) == v && op_info[n->op].inplace >> i & 1;
    return named && named == slots;
}

/* A group of pointwise nodes goes element by element; any other has one node that does not, whose
 * result stands complete in the group's bytes before the rest of the body runs. */
static bool group_allows(const Node *n, int slot)
{
    const Graph *body = n->arg[n->n_args - 1].graph;
    bool pointwise = true, ok = n->n_out == 1 && slot < body->n_in;
    for (const Node *m = body->first; ok && m; m = m->next)
        pointwise = pointwise && op_info[m->op].flags & POINTWISE;
    for (const Node *m = body->first; ok && !pointwise && m; m = m->next)
        for (int i = 0; i < m->n_in; i++)
            if (m->in[i] == body->in[slot])
                ok = ok && !(op_info[m->op].flags & POINTWISE) && column_names(m, m->in[i]);
    return ok;
}

/* Whether the node may write result 0 where its operand `slot` lies. */
static bool allows_overlay(const Node *n, int slot)
{
    return n->op == OP_GROUP ? group_allows(n, slot) : column_names(n, n->in[slot]);
}

static void check_results(Check *c, const Node *n)
{
    for (int k = 0; k < n->n_out; k++) {
        const Value *y = n->out[k];
        for (int i = 0; i < n->n_in; i++)
            if (overlap(n->in[i], y) &&
                (k || !lies_alike(n->in[i], y) || !allows_overlay(n, i)))
                c->ok = diag_fault(c->d, FAULT_BUG, n->loc,
                                   "plan: result %%%s overlaps operand %%%s", y->name,
                                   n->in[i]->name);
        for (int i = 0; i < k; i++)
            if (overlap(n->out[i], y))
                c->ok = diag_fault(c->d, FAULT_BUG, n->loc,
                                   "plan: results %%%s and %%%s overlap", n->out[i]->name, y->name);
        if (place_of(y).pool == POOL_IN)
            c->ok = diag_fault(c->d, FAULT_BUG, n->loc, "plan: result %%%s lies in an input",
                               y->name);
        if (place_of(y).pool > 0 && (place_of(y).pool > c->g->n_pools || place_of(y).offset < 0 ||
                                  place_of(y).offset % PLAN_ALIGN ||
                                  place_of(y).offset > c->g->pool[place_of(y).pool - 1] -
                                                        type_bytes(y->type)))
            c->ok = diag_fault(c->d, FAULT_BUG, n->loc, "plan: result %%%s lies outside its pool",
                               y->name);
    }
}

static void play(Check *c, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        check_read(c, n->in[i], n);
    if (is_declared_view(n)) {
        c->contents[n->out[0]->index] = c->contents[n->in[0]->index];
        return;
    }
    check_results(c, n);
    for (int i = 0; i < n->n_out; i++)
        paint(c, n->out[i]);
}

/* Reads what the call leaves: outputs and updates; a state keeps its own bytes or its update's. */
static void check_end(Check *c)
{
    const Graph *g = c->g;
    for (int i = 0; i < g->n_updates; i++)
        check_read(c, g->update[i].value, NULL);
    for (int i = 0; i < g->n_updates; i++) {
        const Value *v = g->update[i].value, *t = g->update[i].target;
        if (overlap(v, t))
            c->contents[t->index] = c->contents[v->index];
        check_read(c, t, NULL);
    }
    for (int i = 0; i < g->n_out; i++)
        check_read(c, g->out[i], NULL);
    for (int i = 0; i < g->n_out; i++)
        for (int k = 0; k < g->n_updates; k++)
            if (overlap(g->out[i], g->update[k].target))
                c->ok = diag_fault(c->d, FAULT_BUG, loc_of(c, g->out[i], NULL),
                                   "plan: output %%%s lies in a state", g->out[i]->name);
}

static bool check_graph(const Graph *g, Arena *tmp, Diag *d)
{
    Check c = {.g = g, .d = d, .ok = true};
    cut_memory(&c, tmp);
    c.contents = NEW(tmp, int, g->n_values + 1);
    for (int i = 0; i < g->n_values; i++)
        c.contents[i] = i;
    for (int i = 0; i < g->n_in; i++)
        paint(&c, g->in[i]);
    for (int i = 0; i < g->n_states; i++)
        paint(&c, g->state[i]);
    for (int i = 0; i < g->n_in; i++) /* no two of them overlap */
        check_read(&c, g->in[i], NULL);
    for (const Node *n = g->first; n; n = n->next)
        play(&c, n);
    check_end(&c);
    return c.ok;
}

bool pass_check_plan(Program *p, Arena *tmp, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < p->n_methods; i++)
        ok = check_graph(p->method[i], tmp, d) && ok;
    return ok;
}

/* -- the report -------------------------------------------------------------------------------- */

typedef struct Span { /* one run of pool bytes and the time it is in use */
    int start, end;
    int64_t lo, hi;
} Span;

typedef struct Spans {
    const Graph *g;
    Span *span;         /* by root; those of values outside the pools stay empty */
    int *root;          /* by value; -1: none */
    const Value **into; /* by value: the state that it is written over */
    PlanReport *report;
} Spans;

/* Which earlier value y shares bytes with: its view's input, the operand or state it overlays. */
static const Value *shares_with(const Spans *s, const Node *n, const Value *y)
{
    if (s->into[y->index])
        return s->into[y->index];
    for (int i = 0; i < n->n_in; i++)
        if (overlap(n->in[i], y))
            return n->in[i];
    return NULL;
}

static void use(Spans *s, const Value *v, int from, int to)
{
    int r = s->root[v->index];
    if (r < 0)
        return;
    s->span[r].start = from < s->span[r].start ? from : s->span[r].start;
    s->span[r].end = to > s->span[r].end ? to : s->span[r].end;
}

static int64_t padded(int64_t bytes)
{
    return round_up(bytes, PLAN_ALIGN);
}

/* v comes to life, in the bytes of `of` where that is a value of the pools. */
static void open_span(Spans *s, const Value *v, const Value *of, int time)
{
    if (!has_place(v) || place_of(v).pool < 0)
        return;
    int root = of && s->root[of->index] >= 0 ? s->root[of->index] : v->index;
    int64_t lo = place_of(v).offset, bytes = padded(type_bytes(v->type));
    Span *one = &s->span[root];
    s->root[v->index] = root;
    one->lo = lo < one->lo ? lo : one->lo;
    one->hi = lo + bytes > one->hi ? lo + bytes : one->hi;
    use(s, v, time, time);
    s->report->naive += v->def && is_declared_view(v->def) ? 0 : bytes;
    s->report->n_values++;
}

static void open_spans(Spans *s, Arena *tmp)
{
    const Graph *g = s->g;
    s->span = NEW(tmp, Span, g->n_values + 1);
    s->root = NEW(tmp, int, g->n_values + 1);
    s->into = NEW(tmp, const Value *, g->n_values + 1);
    for (int i = 0; i < g->n_values; i++) {
        s->span[i] = (Span){.start = INT32_MAX, .end = -1, .lo = INT64_MAX};
        s->root[i] = -1;
    }
    for (int i = 0; i < g->n_updates; i++)
        if (overlap(g->update[i].value, g->update[i].target))
            s->into[g->update[i].value->index] = g->update[i].target;
    for (int i = 0; i < g->n_in; i++)
        open_span(s, g->in[i], NULL, 0);
    for (int i = 0; i < g->n_states; i++)
        open_span(s, g->state[i], NULL, 0);
}

/* Returns the time at which outputs are read. */
static int fill_spans(Spans *s)
{
    const Graph *g = s->g;
    int time = 0;
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        for (int i = 0; i < n->n_out; i++)
            open_span(s, n->out[i], shares_with(s, n, n->out[i]), time);
        for (int i = 0; i < n->n_in; i++)
            use(s, n->in[i], time, time);
    }
    time++;
    for (int i = 0; i < g->n_out; i++)
        use(s, g->out[i], time, time);
    for (int i = 0; i < g->n_updates; i++) {
        use(s, g->update[i].value, time, time);
        use(s, g->update[i].target, 0, time);
    }
    return time;
}

static int64_t largest_sum(const Graph *g, const Span *s, int times, Arena *tmp)
{
    int64_t *change = NEW(tmp, int64_t, times + 2), sum = 0, most = 0;
    for (int i = 0; i < g->n_values; i++)
        if (s[i].end >= 0) {
            change[s[i].start] += s[i].hi - s[i].lo;
            change[s[i].end + 1] -= s[i].hi - s[i].lo;
        }
    for (int t = 0; t <= times; t++) {
        sum += change[t];
        most = sum > most ? sum : most;
    }
    return most;
}

/* What the largest node needs at once, each run of bytes counted once. */
static int64_t largest_node(const Graph *g, const Span *s, const int *root, Arena *tmp)
{
    int *seen = NEW(tmp, int, g->n_values + 1), time = 0;
    int64_t most = 0;
    for (const Node *n = g->first; n; n = n->next) {
        int64_t sum = 0;
        time++;
        for (int i = 0; i < n->n_in + n->n_out; i++) {
            const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
            int r = root[v->index];
            if (r < 0 || seen[r] == time)
                continue;
            seen[r] = time;
            sum += s[r].hi - s[r].lo;
        }
        most = sum > most ? sum : most;
    }
    return most;
}

PlanReport plan_report(const Graph *g, Arena *tmp)
{
    PlanReport r = {.scratch = g->scratch};
    Spans s = {.g = g, .report = &r};
    open_spans(&s, tmp);
    int times = fill_spans(&s);
    for (int i = 0; i < g->n_pools; i++)
        r.arena += g->pool[i];
    r.bound = largest_sum(g, s.span, times, tmp);
    r.order_free = largest_node(g, s.span, s.root, tmp);
    return r;
}
