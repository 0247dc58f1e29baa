/* check_plan.c -- proves a plan right, or names the two values that clash; always on.
 *
 * Stage planned.  Written without alias.c and plan_memory.c: lives are counted again from the final
 * list, bytes are read from the final places.  Two values live at once may share bytes only where
 * the later is a view of the earlier (nested bytes), or was written over an operand that dies with
 * the node that writes (equal bytes, and the row's `inplace` column allows it).  Values so related
 * form one set; the largest sum of the sets' bytes live at once is the lower bound that reports
 * print beside the pool.
 */
#include "passes/passes.h"
#include <stdlib.h>

typedef struct Live {
    const Value *value;
    int64_t at, bytes; /* as planned, without padding */
    int first, last;
    int set; /* index of the first member of its set */
} Live;

typedef struct Checker {
    const Graph *g;
    Live *live;   /* of values in a pool, by first */
    int n, end;   /* end: position of the call's end */
    int *last;    /* by value index: position of the last direct reader */
    int *number;  /* by value index: in `live`, or -1 */
    Diag *d;      /* NULL: only report */
} Checker;

/* -- lives --------------------------------------------------------------------------------- */

static void add_live(Checker *c, const Value *v, int first, Arena *tmp)
{
    if (v->place.pool <= 0 || v->type.is_none || v->type.rank == SCALAR)
        return;
    Live l = {.value = v, .at = v->place.offset, .bytes = type_bytes(v->type), .first = first,
              .last = c->last[v->index] > first ? c->last[v->index] : first, .set = c->n};
    c->number[v->index] = c->n;
    PUSH(tmp, c->live, c->n, l);
}

static void add_state(Checker *c, const Value *v, Arena *tmp)
{
    if (v->state->place.pool <= 0)
        return;
    Live l = {.value = v, .at = v->state->place.offset, .bytes = type_bytes(v->type),
              .last = c->end, .set = c->n};
    c->number[v->index] = c->n;
    PUSH(tmp, c->live, c->n, l);
}

static void collect(Checker *c, Arena *tmp)
{
    const Graph *g = c->g;
    int at = 1;
    for (const Node *n = g->first; n; n = n->next, at++)
        for (int i = 0; i < n->n_in; i++)
            c->last[n->in[i]->index] = at;
    c->end = at;
    for (int i = 0; i < g->n_out; i++)
        c->last[g->out[i]->index] = at;
    for (int i = 0; i < g->n_updates; i++)
        c->last[g->update[i].value->index] = at;
    for (int i = 0; i <= g->n_values; i++)
        c->number[i] = -1;
    for (int i = 0; i < g->n_states; i++)
        add_state(c, g->state[i], tmp);
    for (int i = 0; i < g->n_in; i++)
        add_live(c, g->in[i], 0, tmp);
    at = 1;
    for (const Node *n = g->first; n; n = n->next, at++)
        for (int i = 0; i < n->n_out; i++)
            add_live(c, n->out[i], at, tmp);
}

/* A view shows its base's bytes, so the base lives as long as its views. */
static void extend_bases(Checker *c)
{
    for (const Node *n = c->g->last; n; n = n->prev) {
        const Value *base = n->n_out ? arg_value(n, 0) : NULL;
        if (!base || !(op_info[n->op].flags & VIEW) || c->number[base->index] < 0 ||
            c->number[n->out[0]->index] < 0)
            continue;
        Live *b = &c->live[c->number[base->index]], *v = &c->live[c->number[n->out[0]->index]];
        bool is_nested = v->at >= b->at && v->at + v->bytes <= b->at + b->bytes &&
                         v->value->place.pool == base->place.pool;
        if (is_nested && v->last > b->last)
            b->last = v->last;
    }
}

/* -- clashes --------------------------------------------------------------------------------- */

static bool overlap(const Live *a, const Live *b)
{
    int pa = a->value->state ? a->value->state->place.pool : a->value->place.pool;
    int pb = b->value->state ? b->value->state->place.pool : b->value->place.pool;
    return pa == pb && a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

static bool is_view_of(const Checker *c, const Live *v, const Live *base)
{
    const Node *n = v->value->def;
    while (n && op_info[n->op].flags & VIEW && arg_value(n, 0)) {
        const Value *in = arg_value(n, 0);
        if (in == base->value)
            return v->at >= base->at && v->at + v->bytes <= base->at + base->bytes;
        if (c->number[in->index] < 0 || !overlap(v, &c->live[c->number[in->index]]))
            return false;
        n = in->def;
    }
    return false;
}

/* The operand of v's node that v overwrites, when the node may. */
static const Live *overwritten(const Checker *c, const Live *v)
{
    const Node *n = v->value->def;
    for (int i = 0; n && i < n->n_in; i++) {
        int k = c->number[n->in[i]->index];
        if (k >= 0 && c->live[k].at == v->at && c->live[k].bytes == v->bytes &&
            overlap(v, &c->live[k]) && node_may_overlay(n, i))
            return &c->live[k];
    }
    return NULL;
}

/* A state outlives the call, unless what overwrites it is its update. */
static bool may_end_at(const Checker *c, const Live *old, const Live *v)
{
    if (!old->value->state)
        return old->last <= v->first;
    if (c->last[old->value->index] > v->first)
        return false;
    for (int i = 0; i < c->g->n_updates; i++)
        if (c->g->update[i].target == old->value && c->g->update[i].value == v->value)
            return true;
    return false;
}

/* Views of an overwritten operand, and what it is a view of, die with it. */
static bool same_bytes_dead(const Checker *c, const Live *old, const Live *v)
{
    const Live *operand = overwritten(c, v);
    if (!operand || old->last > v->first || v->value->def == NULL)
        return false;
    const Node *n = v->value->def;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] == old->value && old != operand)
            return false;
    return old == operand || is_view_of(c, old, operand) || is_view_of(c, operand, old);
}

static bool may_share(const Checker *c, const Live *old, const Live *v)
{
    if (is_view_of(c, v, old))
        return true;
    return same_bytes_dead(c, old, v) ||
           (old->value->state && overwritten(c, v) == old && may_end_at(c, old, v));
}

static int set_of(const Checker *c, int k)
{
    while (c->live[k].set != k)
        k = c->live[k].set;
    return k;
}

static bool clash(const Checker *c, const Live *a, const Live *b)
{
    Loc loc = b->value->def ? b->value->def->loc : (Loc){.file = c->g->program->name};
    return c->d && diag_fault(c->d, FAULT_BUG, loc,
                              "memory plan: %%%s (bytes %lld+%lld) overwrites %%%s (%lld+%lld), which "
                              "is read later", b->value->name, (long long)b->at,
                              (long long)b->bytes, a->value->name, (long long)a->at,
                              (long long)a->bytes);
}

static bool fits_pool(const Checker *c, const Live *l)
{
    int pool = l->value->state ? l->value->state->place.pool : l->value->place.pool;
    if (pool <= c->g->n_pools && l->at >= 0 && l->bytes <= c->g->pool[pool - 1] - l->at)
        return true;
    return c->d && diag_fault(c->d, FAULT_BUG, (Loc){.file = c->g->program->name},
                              "memory plan: %%%s lies outside its pool", l->value->name);
}

/* One sweep by start; the dead drop out, so each value meets only those alive with it. */
static bool sweep(Checker *c, Arena *tmp)
{
    int *alive = NEW(tmp, int, c->n + 1), n_alive = 0;
    bool ok = true;
    for (int k = 0; k < c->n; k++) {
        Live *v = &c->live[k];
        int kept = 0;
        for (int i = 0; i < n_alive; i++) {
            Live *old = &c->live[alive[i]];
            if (old->last < v->first)
                continue;
            alive[kept++] = alive[i];
            if (!overlap(old, v))
                continue;
            if (may_share(c, old, v))
                c->live[set_of(c, k)].set = set_of(c, alive[i]);
            else
                ok = clash(c, old, v) && ok;
        }
        n_alive = kept;
        alive[n_alive++] = k;
        ok = fits_pool(c, v) && ok;
    }
    return ok;
}

static Checker check(const Graph *g, Arena *tmp, Diag *d, bool *ok)
{
    Checker c = {.g = g, .last = NEW(tmp, int, g->n_values + 1),
                 .number = NEW(tmp, int, g->n_values + 1), .d = d};
    collect(&c, tmp);
    extend_bases(&c);
    *ok = sweep(&c, tmp);
    return c;
}

/* -- the report ------------------------------------------------------------------------------ */

typedef struct Extent {
    int64_t lo, hi;
    int first, last;
} Extent;

/* The hull of each set: its bytes, from its first birth to its last death. */
static Extent *extents(const Checker *c, Arena *tmp)
{
    Extent *e = NEW(tmp, Extent, c->n + 1);
    for (int k = 0; k < c->n; k++) {
        const Live *l = &c->live[k];
        Extent *s = &e[set_of(c, k)];
        bool is_new = s->hi == s->lo && !s->last;
        s->lo = is_new || l->at < s->lo ? l->at : s->lo;
        s->hi = is_new || l->at + l->bytes > s->hi ? l->at + l->bytes : s->hi;
        s->first = is_new || l->first < s->first ? l->first : s->first;
        s->last = is_new || l->last > s->last ? l->last : s->last;
    }
    return e;
}

static int64_t bound_of(const Checker *c, const Extent *e, int64_t *naive, Arena *tmp)
{
    int64_t *change = NEW(tmp, int64_t, c->end + 2), live = 0, most = 0;
    for (int k = 0; k < c->n; k++) {
        int64_t bytes = round_up(e[k].hi - e[k].lo, 16);
        *naive += round_up(c->live[k].bytes, 16);
        if (set_of(c, k) != k)
            continue;
        change[e[k].first] += bytes;
        change[e[k].last + 1] -= bytes;
    }
    for (int i = 0; i <= c->end; i++) {
        live += change[i];
        most = live > most ? live : most;
    }
    return most;
}

static int64_t around(const Checker *c, const Node *n, const Extent *e, int *seen, int stamp)
{
    int64_t sum = 0;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        int k = c->number[(i < n->n_in ? n->in[i] : n->out[i - n->n_in])->index];
        if (k < 0 || seen[set_of(c, k)] == stamp)
            continue;
        seen[set_of(c, k)] = stamp;
        sum += round_up(e[set_of(c, k)].hi - e[set_of(c, k)].lo, 16);
    }
    return sum;
}

PlanReport plan_report(const Graph *g, Arena *tmp)
{
    bool ok;
    int stamp = 1;
    PlanReport r = {.scratch = g->scratch};
    Checker c = check(g, tmp, NULL, &ok);
    Extent *e = extents(&c, tmp);
    int *seen = NEW(tmp, int, c.n + 1);
    for (int i = 0; i < g->n_pools; i++)
        r.arena += g->pool[i];
    r.n_values = c.n;
    r.bound = bound_of(&c, e, &r.naive, tmp);
    for (const Node *n = g->first; n; n = n->next, stamp++) {
        int64_t bytes = around(&c, n, e, seen, stamp);
        r.order_free = bytes > r.order_free ? bytes : r.order_free;
    }
    return r;
}

static bool check_graph(Graph *g, Arena *tmp, Diag *d)
{
    bool ok;
    if (g->name)
        check(g, tmp, d, &ok);
    else
        ok = true; /* a branch lies in its method's pool: its pool is checked as a block there */
    return ok;
}

bool pass_check_plan(Program *p, Arena *tmp, Diag *d)
{
    return for_each_placed(p, check_graph, tmp, d);
}
