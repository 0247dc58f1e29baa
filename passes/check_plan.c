/* check_plan.c -- do the places hold?  Written apart from plan_memory and alias, and always on.
 *
 * Stage planned.  The graph is played through on an imaginary memory where every byte knows whose
 * contents it holds: a node paints the bytes of its results, a read finds out whether all bytes
 * still hold what was written.  A view paints nothing: it takes over its input's contents, whose
 * bytes must enclose its own; nor does a concat paint the parts that lie in it already.  A node may paint bytes that it reads itself only where its row's
 * `inplace` column names that operand and both lie exactly alike.  Memory is cut at every boundary
 * of a place, so painting and reading touch whole segments.  Any fault is ours.
 */
#include "passes/internal.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Region { /* an address space: a pool, or one argument of the caller */
    int pool;
    int64_t number; /* of POOL_IN and POOL_OUT */
} Region;

typedef struct Cut {
    Region region;
    int64_t byte;
} Cut;

enum { MIXED = -1 };

/* Contents of more than one value: what the segments from `first` on held when it was made. */
typedef struct Mix {
    const int *holds;
    int first;
} Mix;

typedef struct Check {
    const Graph *g;
    Diag *d;
    bool ok;
    Cut *cut; /* sorted, no two alike; segment i is cut[i] .. cut[i + 1] */
    int n_cuts;
    int *holds;    /* by segment: contents + 1, or 0 */
    int *contents; /* by value: its own index, or of a view its input's; MIXED: see `mix` */
    Mix *mix;      /* by value */
    Arena *tmp;
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

static void add_cuts(Check *c, const Value *v)
{
    if (!has_place(v))
        return;
    Cut lo = {region_of(place_of(v)), start_of(v)}, hi = lo;
    hi.byte += type_bytes(v->type);
    PUSH(c->tmp, c->cut, c->n_cuts, lo);
    PUSH(c->tmp, c->cut, c->n_cuts, hi);
}

static void cut_memory(Check *c)
{
    int n = 0;
    for (int i = 0; i < c->g->n_in; i++)
        add_cuts(c, c->g->in[i]);
    for (int i = 0; i < c->g->n_states; i++)
        add_cuts(c, c->g->state[i]);
    for (const Node *node = c->g->first; node; node = node->next)
        for (int i = 0; i < node->n_out; i++)
            add_cuts(c, node->out[i]);
    if (c->n_cuts)
        qsort(c->cut, (size_t)c->n_cuts, sizeof *c->cut, compare_cuts);
    for (int i = 0; i < c->n_cuts; i++)
        if (!n || compare_cuts(&c->cut[n - 1], &c->cut[i]))
            c->cut[n++] = c->cut[i];
    c->n_cuts = n;
    c->holds = NEW(c->tmp, int, n + 1);
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

static bool still_holds(const Check *c, const Value *v, int segment)
{
    const Mix *m = &c->mix[v->index];
    int contents = c->contents[v->index];
    return c->holds[segment] == (contents == MIXED ? m->holds[segment - m->first] : contents + 1);
}

static void check_read(Check *c, const Value *v, const Node *reader)
{
    if (!has_place(v))
        return;
    int end = end_segment(c, v);
    for (int i = first_segment(c, v); i < end; i++)
        if (!still_holds(c, v, i)) {
            c->ok = diag_fault(c->d, FAULT_BUG, loc_of(c, v, reader),
                               "plan: %%%s is read after its bytes were written over", v->name);
            return;
        }
}

/* Bytes [from, to) of v hold v. */
static void paint_part(Check *c, const Value *v, int64_t from, int64_t to)
{
    Region r = region_of(place_of(v));
    int end = segment_at(c, r, start_of(v) + to);
    for (int i = segment_at(c, r, start_of(v) + from); i < end; i++)
        c->holds[i] = v->index + 1;
}

static void paint(Check *c, const Value *v)
{
    if (!has_place(v))
        return;
    c->contents[v->index] = v->index;
    paint_part(c, v, 0, type_bytes(v->type));
}

/* v holds from now on what `of`, whose bytes enclose its own, holds. */
static void take_over(Check *c, const Value *v, const Value *of)
{
    const Mix *m = &c->mix[of->index];
    int first = first_segment(c, v);
    c->contents[v->index] = c->contents[of->index];
    if (c->contents[of->index] == MIXED)
        c->mix[v->index] = (Mix){m->holds + (first - m->first), first};
}

/* -- one node ---------------------------------------------------------------------------------- */

static bool is_inside(const Value *in, const Value *out)
{
    Region a = region_of(place_of(in)), b = region_of(place_of(out));
    return has_place(in) && has_place(out) && a.pool == b.pool && a.number == b.number &&
           start_of(out) >= start_of(in) &&
           start_of(out) + type_bytes(out->type) <= start_of(in) + type_bytes(in->type);
}

/* Whether a has bytes among [from, to) of b's. */
static bool overlaps(const Value *a, const Value *b, int64_t from, int64_t to)
{
    if (!has_place(a) || !has_place(b) || !type_bytes(a->type) || from == to)
        return false;
    Region x = region_of(place_of(a)), y = region_of(place_of(b));
    return x.pool == y.pool && x.number == y.number && start_of(a) < start_of(b) + to &&
           start_of(b) + from < start_of(a) + type_bytes(a->type);
}

static bool overlap(const Value *a, const Value *b)
{
    return overlaps(a, b, 0, type_bytes(b->type));
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

/* -- concats ----------------------------------------------------------------------------------- */

/* Whether operand k of a concat, `at` bytes behind its first, lies where it is to end up. */
static bool is_part(const Node *n, int k, int64_t at)
{
    int64_t axis;
    const Value *x = n->in[k], *y = n->out[0];
    if (n->op != OP_CAT || !arg_int(n, 1, &axis) || x->type.rank != y->type.rank ||
        x->type.dtype != y->type.dtype || x->type.stride || y->type.stride ||
        !type_is_static(x->type) || !type_is_static(y->type))
        return false;
    for (int i = 0; i < axis; i++)
        if (y->type.dim[i].value != 1)
            return false;
    return is_inside(y, x) && start_of(x) == start_of(y) + at;
}

/* Operands from k on, up to the next that lies in the result already, are moved there together:
 * [from, to) of it.  None may lie where they go. */
static int move_operands(Check *c, const Node *n, int k, int64_t *at)
{
    const Value *y = n->out[0];
    int first = k;
    int64_t from = *at;
    for (; k < n->n_in && !is_part(n, k, *at); k++) {
        check_read(c, n->in[k], n);
        *at += type_bytes(n->in[k]->type);
    }
    for (int i = first; i < k; i++)
        if (overlaps(n->in[i], y, from, *at))
            c->ok = diag_fault(c->d, FAULT_BUG, n->loc,
                               "plan: operand %%%s lies where others are moved", n->in[i]->name);
    paint_part(c, y, from, *at);
    return k;
}

static bool has_parts(const Node *n)
{
    int64_t at = 0;
    for (int k = 0; n->op == OP_CAT && k < n->n_in; at += type_bytes(n->in[k++]->type))
        if (is_part(n, k, at))
            return true;
    return false;
}

/* A concat with operands in their places paints the others; it then holds what all of them hold. */
static void play_concat(Check *c, const Node *n)
{
    const Value *y = n->out[0];
    int64_t at = 0;
    c->contents[y->index] = y->index;
    for (int k = 0; k < n->n_in;) {
        k = move_operands(c, n, k, &at);
        for (; k < n->n_in && is_part(n, k, at); k++) {
            check_read(c, n->in[k], n);
            at += type_bytes(n->in[k]->type);
        }
    }
    int first = first_segment(c, y), count = end_segment(c, y) - first;
    int *holds = NEW(c->tmp, int, count + 1);
    memcpy(holds, c->holds + first, (size_t)count * sizeof *holds);
    c->contents[y->index] = MIXED;
    c->mix[y->index] = (Mix){holds, first};
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

static void check_place(Check *c, const Node *n, const Value *y)
{
    Place at = place_of(y);
    if (at.pool == POOL_IN)
        c->ok = diag_fault(c->d, FAULT_BUG, n->loc, "plan: result %%%s lies in an input", y->name);
    if (at.pool > 0 && (at.pool > c->g->n_pools || at.offset < 0 ||
                        at.offset % (int64_t)etc_dtype_size((int)y->type.dtype) ||
                        at.offset > c->g->pool[at.pool - 1] - type_bytes(y->type)))
        c->ok = diag_fault(c->d, FAULT_BUG, n->loc, "plan: result %%%s lies outside its pool",
                           y->name);
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
        check_place(c, n, y);
    }
}

static void play(Check *c, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        check_read(c, n->in[i], n);
    if (is_declared_view(n)) {
        take_over(c, n->out[0], n->in[0]);
        return;
    }
    if (has_parts(n)) {
        play_concat(c, n);
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
            take_over(c, t, v);
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
    Check c = {.g = g, .d = d, .ok = true, .tmp = tmp};
    cut_memory(&c);
    c.contents = NEW(tmp, int, g->n_values + 1);
    c.mix = NEW(tmp, Mix, g->n_values + 1);
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

typedef struct Span { /* bytes of a pool and the time they are in use */
    int start, end;
    int64_t lo, hi;
} Span;

typedef struct Spans {
    const Graph *g;
    Span *span;         /* by value; of those that share bytes, the first stands for all */
    int *parent;        /* by value: one that it shares bytes with, up to the first; -1: no pool */
    const Value **into; /* by value: the state that it is written over */
    PlanReport *report;
} Spans;

static int span_of(Spans *s, const Value *v)
{
    int i = v->index;
    if (s->parent[i] < 0)
        return -1;
    while (s->parent[i] != i)
        i = s->parent[i] = s->parent[s->parent[i]];
    return i;
}

static void use(Spans *s, const Value *v, int from, int to)
{
    int i = span_of(s, v);
    if (i < 0)
        return;
    s->span[i].start = from < s->span[i].start ? from : s->span[i].start;
    s->span[i].end = to > s->span[i].end ? to : s->span[i].end;
}

static int64_t padded(int64_t bytes)
{
    return round_up(bytes, PLAN_ALIGN);
}

/* v and `of` lie in one run of bytes: they are in use together. */
static void unite(Spans *s, const Value *v, const Value *of)
{
    int a = span_of(s, of), b = span_of(s, v);
    if (a < 0 || b < 0 || a == b)
        return;
    Span *to = &s->span[a], *from = &s->span[b];
    s->parent[b] = a;
    to->lo = from->lo < to->lo ? from->lo : to->lo;
    to->hi = from->hi > to->hi ? from->hi : to->hi;
    use(s, of, from->start, from->end);
    *from = (Span){.end = -1};
}

static void open_span(Spans *s, const Value *v, int time)
{
    if (!has_place(v) || place_of(v).pool < 0)
        return;
    int64_t lo = place_of(v).offset, bytes = type_bytes(v->type);
    s->parent[v->index] = v->index;
    s->span[v->index] = (Span){time, time, lo, lo + bytes};
    s->report->naive += v->def && is_declared_view(v->def) ? 0 : padded(bytes);
    s->report->n_values++;
}

static void open_spans(Spans *s, Arena *tmp)
{
    const Graph *g = s->g;
    s->span = NEW(tmp, Span, g->n_values + 1);
    s->parent = NEW(tmp, int, g->n_values + 1);
    s->into = NEW(tmp, const Value *, g->n_values + 1);
    for (int i = 0; i < g->n_values; i++) {
        s->span[i] = (Span){.end = -1};
        s->parent[i] = -1;
    }
    for (int i = 0; i < g->n_updates; i++)
        if (overlap(g->update[i].value, g->update[i].target))
            s->into[g->update[i].value->index] = g->update[i].target;
    for (int i = 0; i < g->n_in; i++)
        open_span(s, g->in[i], 0);
    for (int i = 0; i < g->n_states; i++)
        open_span(s, g->state[i], 0);
}

/* A result shares bytes with what it is a view of, overlays or joins. */
static void open_result(Spans *s, const Node *n, const Value *y, int time)
{
    open_span(s, y, time);
    if (s->into[y->index])
        unite(s, y, s->into[y->index]);
    for (int i = 0; i < n->n_in; i++)
        if (overlap(n->in[i], y))
            unite(s, y, n->in[i]);
}

/* Returns the time at which outputs are read. */
static int fill_spans(Spans *s)
{
    const Graph *g = s->g;
    int time = 0;
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        for (int i = 0; i < n->n_out; i++)
            open_result(s, n, n->out[i], time);
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
            change[s[i].start] += padded(s[i].hi - s[i].lo);
            change[s[i].end + 1] -= padded(s[i].hi - s[i].lo);
        }
    for (int t = 0; t <= times; t++) {
        sum += change[t];
        most = sum > most ? sum : most;
    }
    return most;
}

static int by_place(const void *a, const void *b)
{
    const Value *const *x = a, *const *y = b;
    Place p = place_of(*x), q = place_of(*y);
    if (p.pool != q.pool)
        return p.pool < q.pool ? -1 : 1;
    return (p.offset > q.offset) - (p.offset < q.offset);
}

/* Bytes of the pools that a node reads or writes, each counted once. */
static int64_t touched(const Node *n, Arena *tmp)
{
    const Value **v = NEW(tmp, const Value *, n->n_in + n->n_out + 1);
    int count = 0;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        v[count] = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        count += has_place(v[count]) && place_of(v[count]).pool > 0;
    }
    qsort(v, (size_t)count, sizeof *v, by_place);
    int64_t sum = 0, end = 0;
    for (int i = 0; i < count; i++) {
        bool is_new = !i || place_of(v[i]).pool != place_of(v[i - 1]).pool;
        int64_t lo = place_of(v[i]).offset, hi = lo + type_bytes(v[i]->type);
        lo = is_new || lo > end ? lo : end;
        sum += hi > lo ? hi - lo : 0;
        end = is_new || hi > end ? hi : end;
    }
    return sum;
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
    for (const Node *n = g->first; n; n = n->next) {
        int64_t bytes = touched(n, tmp);
        r.order_free = bytes > r.order_free ? bytes : r.order_free;
    }
    return r;
}
