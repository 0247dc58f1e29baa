/* check_plan.c -- checks the memory plan.  It shares no code with plan_memory and alias, and always
 * runs.
 *
 * Stage planned.  It simulates the graph on a memory in which every byte knows which value it
 * holds.  A node paints the bytes of its results; a read checks that all bytes still hold the
 * value.  A view paints nothing: it takes over the contents of its input, whose bytes must
 * enclose its own.  A concat does not paint operands that lie in it already.  A node may paint
 * bytes that it reads itself only if the column `inplace` of its row names that operand and both
 * lie at exactly the same place.  Branches are simulated one after the other from the same
 * memory, and bytes that one of them painted hold nothing after them.  A loop is simulated for
 * two iterations.  Memory is cut at every boundary of a place, so painting and reading touch whole
 * segments.  Every fault that it finds is a bug of etc. */
#include "passes/internal.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct Region { /* an address space: a pool, or one argument of the caller */
    int pool;
    int64_t number; /* the number of the argument, in POOL_IN and POOL_OUT */
} Region;

typedef struct Cut {
    Region region;
    int64_t byte;
} Cut;

enum { MIXED = -1 };

/* The contents of a value whose bytes belong to several values: segment first + i held holds[i] when
 * this was made. */
typedef struct Mix {
    const int *holds;
    int first;
} Mix;

/* The segments that were painted in a branch, and their contents before. */
typedef struct Log {
    struct Painted {
        int segment, held;
    } *item;
    int n;
} Log;

typedef struct Check {
    const Graph *g, *method; /* the method whose pools places speak of */
    Diag *d;
    bool ok;
    Cut *cut; /* sorted, no two alike; segment i is cut[i] .. cut[i + 1] */
    int n_cuts;
    int *holds;    /* by segment: contents + 1, or 0 */
    int *contents; /* by value: its contents; a view has those of its input; MIXED: see `mix` */
    Mix *mix;      /* by value */
    int base, *n_ids; /* value i has contents base + i; *n_ids: how many numbers are in use */
    Log *log;      /* inside a branch: records what is painted */
    int64_t unit;  /* places are rounded to multiples of so many bytes */
    Arena *tmp;
} Check;

/* -- segments ---------------------------------------------------------------------------------- */

static Region region_of(Place at)
{
    bool callers = at.pool == POOL_IN || at.pool == POOL_OUT;
    return (Region){at.pool, callers ? at.offset : 0};
}

static int64_t start_of(const Value *v)
{
    Place at = value_place(v);
    return at.pool == POOL_IN || at.pool == POOL_OUT ? 0 : at.offset;
}

static bool has_place(const Value *v)
{
    return value_place(v).pool != POOL_NONE && v->type.rank != SCALAR && !v->type.is_none;
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

static int64_t first_byte(const Check *c, const Value *v)
{
    return start_of(v) / c->unit * c->unit;
}

static int64_t end_byte(const Check *c, const Value *v)
{
    return round_up(start_of(v) + type_bytes(v->type), c->unit);
}

static void add_cuts(Check *c, const Value *v)
{
    if (!has_place(v))
        return;
    Cut lo = {region_of(value_place(v)), first_byte(c, v)}, hi = lo;
    hi.byte = end_byte(c, v);
    PUSH(c->tmp, c->cut, c->n_cuts, lo);
    PUSH(c->tmp, c->cut, c->n_cuts, hi);
}

static void add_graph_cuts(Check *c, const Graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        add_cuts(c, g->in[i]);
    for (int i = 0; i < g->n_states; i++)
        add_cuts(c, g->state[i]);
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_out; i++)
            add_cuts(c, n->out[i]);
        for (const Graph *inner = NULL; (inner = region_planned(n, inner));)
            add_graph_cuts(c, inner);
    }
}

static void cut_memory(Check *c, const Graph *g)
{
    int n = 0;
    assert(!c->cut);
    add_graph_cuts(c, g);
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
    return segment_at(c, region_of(value_place(v)), first_byte(c, v));
}

static int end_segment(const Check *c, const Value *v)
{
    return segment_at(c, region_of(value_place(v)), end_byte(c, v));
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

static void hold(Check *c, int segment, int contents)
{
    struct Painted p = {segment, c->holds[segment]};
    if (c->log)
        PUSH(c->tmp, c->log->item, c->log->n, p);
    c->holds[segment] = contents;
}

/* Lets bytes [from, to) of v hold v. */
static void paint_part(Check *c, const Value *v, int64_t from, int64_t to)
{
    Region r = region_of(value_place(v));
    int end = segment_at(c, r, start_of(v) + to);
    for (int i = segment_at(c, r, start_of(v) + from); i < end; i++)
        hold(c, i, c->base + v->index + 1);
}

static void paint(Check *c, const Value *v)
{
    if (!has_place(v))
        return;
    c->contents[v->index] = c->base + v->index;
    paint_part(c, v, 0, type_bytes(v->type));
}

/* Lets v hold what `of` holds, a value of this graph or of the one around it whose bytes enclose
 * those of v. */
static void take_over(Check *c, const Value *v, const Check *around, const Value *of)
{
    const Mix *m = &around->mix[of->index];
    int first = first_segment(c, v);
    c->contents[v->index] = around->contents[of->index];
    assert(c->contents[v->index] != MIXED || first >= m->first);
    if (c->contents[v->index] == MIXED)
        c->mix[v->index] = (Mix){m->holds + (first - m->first), first};
}

/* -- one node ---------------------------------------------------------------------------------- */

static bool is_inside(const Value *in, const Value *out)
{
    Region a = region_of(value_place(in)), b = region_of(value_place(out));
    return has_place(in) && has_place(out) && a.pool == b.pool && a.number == b.number &&
           start_of(out) >= start_of(in) &&
           start_of(out) + type_bytes(out->type) <= start_of(in) + type_bytes(in->type);
}

/* Returns whether a has bytes among [from, to) of b's. */
static bool overlaps(const Value *a, const Value *b, int64_t from, int64_t to)
{
    if (!has_place(a) || !has_place(b) || !type_bytes(a->type) || from == to)
        return false;
    Region x = region_of(value_place(a)), y = region_of(value_place(b));
    return x.pool == y.pool && x.number == y.number && start_of(a) < start_of(b) + to &&
           start_of(b) + from < start_of(a) + type_bytes(a->type);
}

static bool overlap(const Value *a, const Value *b)
{
    return overlaps(a, b, 0, type_bytes(b->type));
}

/* Returns whether a slice or select takes exactly the elements that lie at its place. */
static bool slice_lies_there(const Node *n)
{
    int64_t below = 1;
    Narrow p;
    if (!narrow_read(n, &p) || p.start.expr)
        return false;
    const Type x = p.x->type;
    for (int i = 0; i < x.rank; i++) {
        if (i < p.axis && !dim_equal(x.dim[i], DIM(1)))
            return false;
        if (i > p.axis && x.dim[i].expr)
            return false;
        below *= i > p.axis ? x.dim[i].value : 1;
    }
    int64_t skipped = p.start.value * below * (int64_t)etc_dtype_size((int)x.dtype);
    return start_of(n->out[0]) - start_of(p.x) == skipped;
}

/* Returns whether the result is a part of its input's bytes, so that nothing is written. */
static bool is_declared_view(const Node *n)
{
    if (n->n_out != 1 || !n->n_in || !is_inside(first_operand(n), n->out[0]))
        return false;
    if (node_keeps_bytes(n))
        return start_of(first_operand(n)) == start_of(n->out[0]) &&
               type_bytes(first_operand(n)->type) == type_bytes(n->out[0]->type);
    return slice_lies_there(n);
}

/* -- concats ----------------------------------------------------------------------------------- */

/* Returns whether operand k of a concat lies where it is to end up: `at` bytes behind the first of
 * the result. */
static bool is_part(const Node *n, int k, int64_t at)
{
    Concat c;
    const Value *x = n->in[k], *y = n->out[0];
    if (!concat_read(n, &c) || x->type.rank != y->type.rank ||
        x->type.dtype != y->type.dtype || x->type.stride || y->type.stride ||
        !type_is_static(x->type) || !type_is_static(y->type))
        return false;
    for (int i = 0; i < c.axis; i++)
        if (y->type.dim[i].value != 1)
            return false;
    return is_inside(y, x) && start_of(x) == start_of(y) + at;
}

/* Moves the operands from k on, up to the next that lies in the result already, to their bytes in
 * the result.  No operand may lie where they go. */
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
    Concat c;
    int64_t at = 0;
    for (int k = 0, count = concat_read(n, &c) ? c.count : 0; k < count;
         at += type_bytes(c.part[k++]->type))
        if (is_part(n, k, at))
            return true;
    return false;
}

/* Simulates a concat: paints the operands that are not in their places yet. */
static void play_concat(Check *c, const Node *n)
{
    const Value *y = n->out[0];
    int64_t at = 0;
    c->contents[y->index] = c->base + y->index;
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

/* Returns whether x and y have the same elements at the same bytes. */
static bool lies_alike(const Value *x, const Value *y)
{
    return start_of(x) == start_of(y) && x->type.rank == y->type.rank &&
           dims_equal(x->type.dim, y->type.dim, y->type.rank) &&
           etc_dtype_size((int)x->type.dtype) == etc_dtype_size((int)y->type.dtype);
}

/* Returns whether a row's `inplace` column names v wherever the node reads it. */
static bool column_names(const Node *n, const Value *v)
{
    int slots = 0, named = 0;
    for (int i = 0; i < n->n_in; i++)
        slots += n->in[i] == v;
    for (int i = 0; i < n->n_args && i < 32; i++)
        named += arg_value(n, i) == v && op_info[n->op].inplace >> i & 1;
    return named && named == slots;
}

/* Returns whether the result of a group may lie at its operand.  A group of pointwise nodes
 * works element by element.  Any other group has an anchor, whose whole result is written before
 * the rest of the body runs. */
static bool group_allows(const Node *n, int slot)
{
    const Graph *body = n->arg[n->n_args - 1].graph;
    bool pointwise = true, ok = n->n_out == 1 && slot < body->n_in;
    for (const Node *m = body->first; ok && m; m = m->next)
        pointwise = pointwise && node_is_pointwise(m);
    for (const Node *m = body->first; ok && !pointwise && m; m = m->next)
        for (int i = 0; i < m->n_in; i++)
            if (m->in[i] == body->in[slot])
                ok = ok && !node_is_pointwise(m) && column_names(m, m->in[i]);
    return ok;
}

/* Returns whether the node may write result 0 where its operand `slot` lies. */
static bool allows_overlay(const Node *n, int slot)
{
    return group_body(n) ? group_allows(n, slot) : column_names(n, n->in[slot]);
}

static void check_place(Check *c, const Node *n, const Value *y)
{
    Place at = value_place(y);
    if (at.pool == POOL_IN)
        c->ok = diag_fault(c->d, FAULT_BUG, n->loc, "plan: result %%%s lies in an input", y->name);
    if (at.pool > 0 && (at.pool > c->method->n_pools || at.offset < 0 ||
                        at.offset % (int64_t)etc_dtype_size((int)y->type.dtype) ||
                        at.offset > c->method->pool[at.pool - 1] - type_bytes(y->type)))
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

/* -- branches ---------------------------------------------------------------------------------- */

static void play(Check *c, const Node *n);

static Check check_branch(const Check *around, const Graph *g, Log *log)
{
    Check c = *around;
    c.g = g;
    c.base = *around->n_ids;
    *c.n_ids += g->n_values;
    c.log = log;
    c.contents = NEW(c.tmp, int, g->n_values + 1);
    c.mix = NEW(c.tmp, Mix, g->n_values + 1);
    for (int i = 0; i < g->n_values; i++)
        c.contents[i] = c.base + i;
    return c;
}

/* Starts a branch or body: operands and carried values are read at their places, or moved to
 * those that the branch has for them.  States have the places of the graph around it. */
static void enter_branch(Check *c, const Check *around, const Node *n)
{
    for (int i = 0; i < c->g->n_in; i++) {
        const Value *v = region_input(n, i), *in = c->g->in[i];
        if (v && is_inside(v, in) && start_of(v) == start_of(in))
            take_over(c, in, around, v);
        else
            paint(c, in);
    }
    for (int i = 0; i < c->g->n_states; i++) {
        const Value *v = c->g->state[i], *same = graph_find_state(around->g, v->state);
        if (same)
            take_over(c, v, around, same);
        else
            paint(c, v);
    }
}

/* Moves the results of a branch one after the other to those of the cond. */
static void leave_branch(Check *c, const Node *n)
{
    for (int i = 0; i < c->g->n_out && i < n->n_out; i++) {
        const Value *v = c->g->out[i], *y = n->out[i];
        check_read(c, v, n);
        if (overlap(v, y) && start_of(v) == start_of(y))
            continue;
        if (overlap(v, y))
            c->ok = diag_fault(c->d, FAULT_BUG, n->loc, "plan: %%%s overlaps result %%%s, where it "
                               "is moved", v->name, y->name);
        if (has_place(y))
            for (int k = first_segment(c, y); k < end_segment(c, y); k++)
                hold(c, k, 0);
    }
}

static void play_body(Check *c, const Check *around, const Node *n)
{
    enter_branch(c, around, n);
    for (const Node *m = c->g->first; m; m = m->next)
        play(c, m);
}

/* Plays both branches from the same memory.  Whatever either has painted holds nothing after
 * them. */
static void play_cond(Check *c, const Node *n)
{
    Log log = {0};
    int done = 0;
    for (const Graph *g = NULL; (g = region_next(n, g));) {
        Check branch = check_branch(c, g, &log);
        play_body(&branch, c, n);
        leave_branch(&branch, n);
        c->ok = branch.ok && c->ok;
        for (int k = log.n - 1; k >= done; k--)
            c->holds[log.item[k].segment] = log.item[k].held;
        done = log.n;
    }
    for (int k = 0; k < log.n; k++)
        hold(c, log.item[k].segment, 0);
}

/* -- loops ------------------------------------------------------------------------------------- */

/* Moves operand i, or the result of an iteration, to the carried value.  No value that is moved
 * later may lie there.  If the value lies exactly there itself, nothing is moved. */
static void carry(Check *c, const Node *n, int i, const Value *v)
{
    const Value *y = n->out[i];
    check_read(c, v, n);
    if (has_place(y) && is_inside(v, y) && start_of(v) == start_of(y) &&
        type_bytes(v->type) == type_bytes(y->type))
        return;
    if (overlap(v, y))
        c->ok = diag_fault(c->d, FAULT_BUG, n->loc, "plan: %%%s overlaps result %%%s, where it is "
                           "moved", v->name, y->name);
    if (has_place(y))
        for (int k = first_segment(c, y); k < end_segment(c, y); k++)
            hold(c, k, 0);
}

/* Simulates one iteration, from the condition to the carried values. */
static void play_iteration(Check *c, const Node *n)
{
    for (const Graph *g = NULL; (g = region_next(n, g));) {
        Check inner = check_branch(c, g, c->log);
        play_body(&inner, c, n);
        if (region_decides(n, g))
            check_read(&inner, g->out[0], n);
        for (int i = 0; i < n->n_out && !region_decides(n, g); i++)
            carry(&inner, n, i, g->out[i]);
        c->ok = inner.ok && c->ok;
    }
    for (int i = 0; i < n->n_out; i++)
        paint(c, n->out[i]);
}

/* Simulates a loop.  In the second iteration, operands and states must still hold what the first
 * one needs. */
static void play_loop(Check *c, const Node *n)
{
    for (int i = 0; i < n->n_out; i++)
        carry(c, n, i, region_operand(n, i));
    for (int i = 0; i < n->n_out; i++)
        paint(c, n->out[i]);
    play_iteration(c, n);
    play_iteration(c, n);
}

static void play(Check *c, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        check_read(c, n->in[i], n);
    if (is_declared_view(n)) {
        take_over(c, n->out[0], c, arg_value(n, "self"));
        return;
    }
    if (has_parts(n)) {
        play_concat(c, n);
        return;
    }
    check_results(c, n);
    if (region_kind(n) == REGION_ONE_OF)
        play_cond(c, n);
    else if (region_kind(n) == REGION_LOOP)
        play_loop(c, n);
    for (int i = 0; i < n->n_out; i++)
        paint(c, n->out[i]);
}

/* Checks outputs and updates at the end: a state must hold its own contents or those of its
 * update. */
static void check_end(Check *c)
{
    const Graph *g = c->g;
    for (int i = 0; i < g->n_updates; i++)
        check_read(c, g->update[i].value, NULL);
    for (int i = 0; i < g->n_updates; i++) {
        const Value *v = g->update[i].value, *t = g->update[i].target;
        if (is_inside(v, t))
            take_over(c, t, c, v);
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

/* Checks that each pool fits its bank.  The last pool may be too large: the driver tells how much
 * it would take. */
static void check_banks(Check *c)
{
    const MemoryBanks *ram = &c->g->program->session->ram;
    for (int i = 0; i < ram->n - 1 && i < c->g->n_pools; i++)
        if (c->g->pool[i] > ram->item[i].bytes)
            c->ok = diag_fault(c->d, FAULT_BUG, (Loc){.file = c->g->program->name},
                               "plan: pool %d is larger than bank '%s'", i + 1,
                               ram->item[i].name);
}

static bool check_graph(const Graph *g, Arena *tmp, Diag *d)
{
    int n_ids = g->n_values;
    Check c = {.g = g, .method = g, .d = d, .ok = true, .tmp = tmp, .unit = 1,
               .n_ids = &n_ids};
    check_banks(&c);
    cut_memory(&c, g);
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

/* The bytes of pools that live values cover, in units of PLAN_ALIGN.  A byte counts once, even if
 * several values lie there. */
typedef struct Live {
    const Check *c;
    int *covered; /* by segment: values there */
    int64_t bytes;
} Live;

static Live live_new(const Check *c)
{
    return (Live){.c = c, .covered = NEW(c->tmp, int, c->n_cuts + 1)};
}

static void live_add(Live *l, const Value *v, int step)
{
    if (!has_place(v) || value_place(v).pool < 0)
        return;
    int end = end_segment(l->c, v);
    for (int i = first_segment(l->c, v); i < end; i++) {
        bool was = l->covered[i] > 0;
        l->covered[i] += step;
        assert(l->covered[i] >= 0);
        if (was != (l->covered[i] > 0))
            l->bytes += (was ? -1 : 1) * (l->c->cut[i + 1].byte - l->c->cut[i].byte);
    }
}

enum { FOREVER = INT32_MAX };

/* Returns, by value, the last node that touches it, counted from 1. */
static int *last_touches(const Graph *g, Arena *tmp)
{
    int *last = NEW(tmp, int, g->n_values + 1), time = 0;
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        for (int i = 0; i < n->n_in; i++)
            last[n->in[i]->index] = time;
        for (int i = 0; i < n->n_out; i++)
            last[n->out[i]->index] = time;
    }
    for (int i = 0; i < g->n_out; i++)
        last[g->out[i]->index] = FOREVER;
    for (int i = 0; i < g->n_updates; i++) {
        last[g->update[i].value->index] = FOREVER;
        last[g->update[i].target->index] = FOREVER;
    }
    for (int i = 0; i < g->n_states; i++)
        last[g->state[i]->index] = FOREVER;
    return last;
}

/* Ends the lives of those touched last at `time`. */
static void live_cut(Live *l, Value *const *v, int n, int *last, int time)
{
    for (int i = 0; i < n; i++)
        if (last[v[i]->index] == time) {
            live_add(l, v[i], -1);
            last[v[i]->index] = -1;
        }
}

static int64_t touched(Live *l, const Node *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++)
        live_add(l, i < n->n_in ? n->in[i] : n->out[i - n->n_in], 1);
    int64_t bytes = l->bytes;
    for (int i = 0; i < n->n_in + n->n_out; i++)
        live_add(l, i < n->n_in ? n->in[i] : n->out[i - n->n_in], -1);
    return bytes;
}

static void add_value(PlanReport *r, const Value *v)
{
    if (!has_place(v) || value_place(v).pool < 0)
        return;
    r->naive += v->def && is_declared_view(v->def) ? 0 : round_up(type_bytes(v->type), PLAN_ALIGN);
    r->n_values++;
}

/* Computes the bounds of a graph: `all` for the values that are live at once, `one` for those of
 * one node. */
static void report_graph(const Graph *g, Live *all, Live *one, PlanReport *r)
{
    int time = 0, *last = last_touches(g, all->c->tmp);
    for (int i = 0; i < g->n_in + g->n_states; i++) {
        const Value *v = i < g->n_in ? g->in[i] : g->state[i - g->n_in];
        live_add(all, v, 1);
        add_value(r, v);
    }
    r->bound = all->bytes > r->bound ? all->bytes : r->bound;
    live_cut(all, g->in, g->n_in, last, 0);
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        for (int i = 0; i < n->n_out; i++) {
            live_add(all, n->out[i], 1);
            add_value(r, n->out[i]);
        }
        int64_t bytes = touched(one, n);
        r->bound = all->bytes > r->bound ? all->bytes : r->bound;
        r->order_free = bytes > r->order_free ? bytes : r->order_free;
        for (const Graph *inner = NULL; (inner = region_planned(n, inner));)
            report_graph(inner, all, one, r);
        live_cut(all, n->in, n->n_in, last, time);
        live_cut(all, n->out, n->n_out, last, time);
    }
    live_cut(all, g->in, g->n_in, last, FOREVER);
    live_cut(all, g->state, g->n_states, last, FOREVER);
    for (const Node *n = g->first; n; n = n->next)
        live_cut(all, n->out, n->n_out, last, FOREVER);
}

PlanReport plan_sizes(const Graph *g)
{
    PlanReport r = {.scratch = g->scratch, .whole = g->whole};
    for (int i = 0; i < g->n_pools; i++)
        r.arena += g->pool[i];
    return r;
}

PlanReport plan_report(const Graph *g, Arena *tmp)
{
    PlanReport r = plan_sizes(g);
    Check c = {.g = g, .tmp = tmp, .unit = PLAN_ALIGN};
    cut_memory(&c, g);
    Live all = live_new(&c), one = live_new(&c);
    report_graph(g, &all, &one, &r);
    r.is_least = r.arena == r.bound || g->plan_is_least;
    return r;
}
