/* partition.c -- gives nodes to backends: regions of a core graph become calls of a delegate.
 *
 * Stage core.  choose.c chooses the backend of each node.  The level of a node is the largest
 * number of changes between backends on a path to it.  So nodes with one level and one backend
 * form a region that no path leaves and enters again.  A region that costs more than it saves,
 * including its call and the values that cross its border, is given back, and levels are
 * computed again, at most ROUNDS times.  Linear in nodes and edges, except for the cut, whose
 * steps are limited. */
#include "partition/internal.h"
#include "ir/session.h"
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8 };

const Refusal region_refusal = {"its region would cost more than it saves",
                                "make the nodes around it fit: a larger region pays for its call"};

const Backend *const all_backends[] = {
#define BACKEND(name) &name##_backend,
#include "partition/backends.def"
    NULL,
};

const Backend *backend_find(const char *name, size_t len)
{
    for (const Backend *const *b = all_backends; *b; b++)
        if (strlen((*b)->name) == len && !memcmp((*b)->name, name, len))
            return *b;
    return NULL;
}

/* -- levels ---------------------------------------------------------------------------------- */

/* Returns whether a node may need a size that an earlier node defines. */
static bool needs_sizes(const Node *n)
{
    bool needs = node_reads_symbols(n);
    for (int i = 0; i < n->n_out && !needs; i++)
        needs = !type_is_static(n->out[i]->type);
    return needs;
}

/* Computes levels.  sizes_level is the highest level so far of a node that defines or checks sizes:
 * a later node that needs sizes has at least this level. */
static void set_levels(Split *s)
{
    int sizes_level = 0;
    for (int i = 0; i < s->n; i++) {
        int level = sizes_level && needs_sizes(s->node[i]) ? sizes_level : 0;
        for (int k = 0; k < s->node[i]->n_in; k++) {
            int from = s->producer[s->node[i]->in[k]->index];
            if (from == NOBODY)
                continue;
            assert(from < i); /* nodes come after what they read */
            bool leaves = s->taker[from] != NOBODY && s->taker[from] != s->taker[i];
            int least = s->level[from] + leaves;
            level = least > level ? least : level;
        }
        s->level[i] = level;
        if (!node_is_pure(s->node[i]) && level > sizes_level)
            sizes_level = level;
    }
}

typedef struct Key {
    int level, taker, at;
} Key;

static int by_level(const void *a, const void *b)
{
    const Key *x = a, *y = b;
    if (x->level != y->level)
        return x->level < y->level ? -1 : 1;
    if (x->taker != y->taker)
        return x->taker < y->taker ? -1 : 1;
    return x->at - y->at;
}

/* Sorts nodes by level; within a level those without a backend come first, then one backend
 * after the other.  Within a level only the same backend reads a backend's results. */
static Key *sorted(const Split *s)
{
    Key *key = NEW(s->tmp, Key, s->n + 1);
    for (int i = 0; i < s->n; i++)
        key[i] = (Key){s->level[i], s->taker[i], i};
    qsort(key, (size_t)s->n, sizeof *key, by_level);
    return key;
}

static void set_regions(Split *s, const Key *key)
{
    s->n_regions = 0;
    for (int i = 0; i < s->n; i++) {
        bool same = i && key[i].level == key[i - 1].level && key[i].taker == key[i - 1].taker;
        s->n_regions += key[i].taker != NOBODY && !same;
        s->region[key[i].at] = key[i].taker == NOBODY ? NOBODY : s->n_regions - 1;
    }
}

/* -- prices ---------------------------------------------------------------------------------- */

static int region_of_value(const Split *s, const Value *v)
{
    return s->producer[v->index] == NOBODY ? NOBODY : s->region[s->producer[v->index]];
}

/* Returns whether v leaves its region: a node of another region, or a node without a backend, reads
 * it. */
static bool crosses(const Split *s, const Value *v, int region)
{
    if (s->uses.escapes[v->index])
        return true;
    for (int i = s->uses.first[v->index]; i < s->uses.first[v->index + 1]; i++) {
        const Node *user = s->uses.user[i];
        if (!user->n_out || region_of_value(s, user->out[0]) != region)
            return true;
    }
    return false;
}

static int64_t sum(int64_t a, int64_t b)
{
    int64_t c;
    return add_ok(a, b, &c) ? c : INT64_MAX;
}

static void add_border(const Split *s, RegionReport *r, const Value *v, bool is_in)
{
    Arena *a = s->p->arena;
    r->border_bytes = sum(r->border_bytes, type_bytes(v->type));
    if (is_in)
        PUSH(a, r->in, r->n_in, v);
    else
        PUSH(a, r->out, r->n_out, v);
}

static void add_node(const Split *s, RegionReport *r, int i)
{
    const Node *n = s->node[i];
    r->backend = s->p->session->backend[s->taker[i]];
    PUSH(s->p->arena, r->node, r->n_nodes, n);
    r->macs = sum(r->macs, node_cost(n));
    r->seconds += r->backend->cost(n);
    r->seconds_outside += node_seconds(n);
    for (int k = 0; k < n->n_out; k++)
        if (crosses(s, n->out[k], s->region[i]))
            add_border(s, r, n->out[k], false);
}

/* Adds the operands from outside, each once per region: `seen` holds the last region that read a
 * value. */
static void add_inputs(const Split *s, RegionReport *r, int i, int *seen)
{
    const Node *n = s->node[i];
    for (int k = 0; k < n->n_in; k++) {
        const Value *v = n->in[k];
        bool is_const = value_is_fixed(v) || value_is_from_constants(v);
        if (is_const || region_of_value(s, v) == s->region[i] || seen[v->index] == s->region[i] + 1)
            continue;
        seen[v->index] = s->region[i] + 1;
        add_border(s, r, v, true);
    }
}

static RegionReport *prices(const Split *s, const Key *key)
{
    RegionReport *r = NEW(s->tmp, RegionReport, s->n_regions + 1);
    int *seen = NEW(s->tmp, int, s->g->n_values + 1);
    for (int i = 0; i < s->n; i++) {
        int at = key[i].at;
        if (s->region[at] == NOBODY)
            continue;
        add_node(s, &r[s->region[at]], at);
        add_inputs(s, &r[s->region[at]], at, seen);
    }
    for (int i = 0; i < s->n_regions; i++) {
        const Backend *b = r[i].backend;
        r[i].switching = b->call_cost + (double)r[i].border_bytes * b->cost_of_byte;
        r[i].seconds += r[i].switching;
    }
    return r;
}

static bool give_back(Split *s, const RegionReport *r)
{
    bool any = false;
    for (int i = 0; i < s->n; i++) {
        int region = s->region[i];
        if (region == NOBODY || r[region].seconds < r[region].seconds_outside)
            continue;
        s->refusal[i] = region_refusal;
        s->taker[i] = NOBODY;
        any = true;
    }
    return any;
}

/* -- the graph ------------------------------------------------------------------------------- */

static Split split_new(Graph *g, Arena *tmp)
{
    Split s = {.g = g, .p = g->program, .tmp = tmp, .uses = graph_uses(g, tmp)};
    for (const Node *n = g->first; n; n = n->next)
        s.n++;
    size_t n = (size_t)s.n + 1, n_values = (size_t)g->n_values + 1;
    s.node = NEW(tmp, Node *, n);
    s.taker = NEW(tmp, int, n);
    s.level = NEW(tmp, int, n);
    s.region = NEW(tmp, int, n);
    s.refusal = NEW(tmp, Refusal, n);
    s.producer = NEW(tmp, int, n_values);
    memset(s.producer, 0xff, n_values * sizeof *s.producer);
    int i = 0;
    for (Node *at = g->first; at; at = at->next, i++) {
        s.node[i] = at;
        for (int k = 0; k < at->n_out; k++)
            s.producer[at->out[k]->index] = i;
    }
    choose_takers(&s);
    return s;
}

static void report_rejected(const Split *s, int i, const char *method)
{
    const Node *n = s->node[i];
    PartitionReport *to = s->p->session->partition;
    Rejected r = {n->loc, n->op, method, s->refusal[i], node_cost(n),
                  node_seconds(n)};
    to->macs = sum(to->macs, r.macs);
    to->seconds += r.seconds;
    to->seconds_outside += r.seconds;
    PUSH(s->p->arena, to->rejected, to->n_rejected, r);
}

static void report(const Split *s, RegionReport *r, const char *method)
{
    PartitionReport *to = s->p->session->partition;
    for (int i = 0; i < s->n; i++) {
        const Node *n = s->node[i];
        if (n->n_out && value_is_from_constants(n->out[0]))
            continue; /* each region that reads it has a copy */
        to->n_nodes++;
        if (s->region[i] == NOBODY)
            report_rejected(s, i, method);
    }
    for (int i = 0; i < s->n_regions; i++) {
        r[i].method = method;
        to->n_taken += r[i].n_nodes;
        to->macs = sum(to->macs, r[i].macs);
        to->macs_taken = sum(to->macs_taken, r[i].macs);
        to->seconds += r[i].seconds;
        to->seconds_outside += r[i].seconds_outside;
        PUSH(s->p->arena, to->region, to->n_regions, r[i]);
    }
}

/* Makes a call of each region; `of` has their reports. */
static bool extract_all(Split *s, const Key *key, RegionReport *of, Diag *d)
{
    Graph *g = s->g;
    int n_values = g->n_values, *region_of = NEW(s->tmp, int, n_values + 1);
    Value **with = NEW(s->tmp, Value *, 2 * n_values + s->n_regions + 1);
    Value **inner = NEW(s->tmp, Value *, n_values + 1);
    Node **order = NEW(s->tmp, Node *, s->n + 1);
    bool ok = true;
    for (int i = 0; i < s->n; i++)
        order[i] = s->node[key[i].at];
    for (int i = 0; i < n_values; i++)
        region_of[i] = s->producer[i] == NOBODY ? NOBODY : s->region[s->producer[i]];
    graph_reorder(g, order, s->n);
    for (int i = 0, n; i < s->n; i += n) {
        int region = s->region[key[i].at];
        for (n = 1; i + n < s->n && s->region[key[i + n].at] == region; n++)
            continue;
        if (region == NOBODY)
            continue;
        of[region].body = extract_region(g, order + i, n, &s->uses, region_of, of[region].backend,
                                         inner, with, s->tmp, d);
        ok = of[region].body && ok;
    }
    for (int i = 0; ok && i < s->n; i++)
        if (s->region[key[i].at] != NOBODY)
            graph_remove(g, order[i]);
    graph_replace(g, with);
    return ok;
}

static bool partition_graph(Graph *g, const char *method, Arena *tmp, Diag *d)
{
    Split s = split_new(g, tmp);
    Key *key;
    RegionReport *r;
    int round = 0;
    do {
        set_levels(&s);
        key = sorted(&s);
        set_regions(&s, key);
        r = prices(&s, key);
    } while (!s.p->session->delegate_all && round++ < ROUNDS && give_back(&s, r));
    report(&s, r, method);
    PartitionReport *all = g->program->session->partition;
    RegionReport *mine = s.n_regions ? all->region + all->n_regions - s.n_regions : NULL;
    return extract_all(&s, key, mine, d);
}

bool pass_partition(Program *p, Arena *tmp, Diag *d)
{
    bool ok = true;
    if (!p->session->n_backends)
        return true;
    p->session->partition = NEW(p->arena, PartitionReport, 1);
    for (Graph *g = NULL; (g = program_next_own(p, g));)
        ok = partition_graph(g, graph_method(g)->name, tmp, d) && ok;
    p->edits++;
    return ok;
}
