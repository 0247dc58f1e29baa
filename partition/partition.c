/* partition.c -- gives nodes to backends: regions of a core graph become calls of a delegate.
 *
 * Stage core.  A node goes to the first backend of the chain that takes it.  Its level is the
 * largest number of changes of hands on a path to it, so nodes of one level and one backend form a
 * region that no path leaves and enters again.  A region that costs more than it saves, its call
 * and what crosses its border counted, is given back, and levels are taken anew.  Linear in nodes
 * and edges, at most ROUNDS times.
 */
#include "partition/internal.h"
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8, NOBODY = -1 };

const Backend *const all_backends[] = {
    &xnnpack_backend,
    NULL,
};

const Backend *backend_find(const char *name, size_t len)
{
    for (const Backend *const *b = all_backends; *b; b++)
        if (strlen((*b)->name) == len && !memcmp((*b)->name, name, len))
            return *b;
    return NULL;
}

typedef struct Split {
    Graph *g;
    Program *p;
    Arena *tmp;
    Uses uses;
    int n;         /* nodes */
    Node **node;   /* in the order of the graph */
    int *taker;    /* by node: backend in the program's chain, or NOBODY */
    int *level;    /* by node */
    int *maker;    /* by value index: node, or NOBODY */
    int *region;   /* by node, or NOBODY */
    int n_regions;
} Split;

/* -- who ------------------------------------------------------------------------------------- */

static bool may_go(const Node *n)
{
    return n->n_out && n->op != OP_DELEGATE && n->op != OP_COND && node_is_pure(n);
}

static void note_rejected(Split *s, const Node *n, const char *why)
{
    Rejected r = {n->loc, why};
    PartitionReport *to = s->p->partition;
    PUSH(s->p->arena, to->rejected, to->n_rejected, r);
}

static int taker_of(Split *s, const Node *n)
{
    const char *why = "it has effects or holds graphs";
    if (n->n_out && value_goes_along(n->out[0]))
        return NOBODY;
    for (int i = 0; may_go(n) && i < s->p->n_backends; i++)
        if (s->p->backend[i]->takes(n, &s->uses, &why))
            return i;
    note_rejected(s, n, why);
    return NOBODY;
}

/* -- levels ---------------------------------------------------------------------------------- */

static void set_levels(Split *s)
{
    for (int i = 0; i < s->n; i++) {
        int level = 0;
        for (int k = 0; k < s->node[i]->n_in; k++) {
            int from = s->maker[s->node[i]->in[k]->index];
            if (from == NOBODY)
                continue;
            bool leaves = s->taker[from] != NOBODY && s->taker[from] != s->taker[i];
            int least = s->level[from] + leaves;
            level = least > level ? least : level;
        }
        s->level[i] = level;
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

/* Nodes nobody takes first, then one backend after the other: within a level nobody reads what a
 * backend of that level makes but that backend. */
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
    return s->maker[v->index] == NOBODY ? NOBODY : s->region[s->maker[v->index]];
}

/* The bytes of a result count once where another region or nobody's node reads it. */
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

static void add_node(const Split *s, RegionReport *r, int i)
{
    const Node *n = s->node[i];
    r->backend = s->p->backend[s->taker[i]];
    r->n_nodes++;
    r->macs += op_info[n->op].cost(n);
    r->seconds += r->backend->cost(n);
    r->seconds_outside += r->backend->cost_outside(n);
    for (int k = 0; k < n->n_out; k++)
        if (crosses(s, n->out[k], s->region[i])) {
            r->n_out++;
            r->border_bytes += type_bytes(n->out[k]->type);
        }
}

/* Operands from outside, each once per region: `seen` holds the last region that read a value. */
static void add_inputs(const Split *s, RegionReport *r, int i, int *seen)
{
    const Node *n = s->node[i];
    for (int k = 0; k < n->n_in; k++) {
        const Value *v = n->in[k];
        bool is_const = (v->state && v->state->kind != ST_MUTABLE) || value_goes_along(v);
        if (is_const || region_of_value(s, v) == s->region[i] || seen[v->index] == s->region[i] + 1)
            continue;
        seen[v->index] = s->region[i] + 1;
        r->n_in++;
        r->border_bytes += type_bytes(v->type);
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
    for (int i = 0; i < s->n_regions; i++)
        r[i].seconds += r[i].backend->call_cost +
                        (double)r[i].border_bytes * r[i].backend->cost_of_byte;
    return r;
}

static bool give_back(Split *s, const RegionReport *r)
{
    bool any = false;
    for (int i = 0; i < s->n; i++) {
        int region = s->region[i];
        if (region == NOBODY || r[region].seconds < r[region].seconds_outside)
            continue;
        note_rejected(s, s->node[i], "its region would cost more than it saves");
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
    s.maker = NEW(tmp, int, n_values);
    memset(s.maker, 0xff, n_values * sizeof *s.maker);
    int i = 0;
    for (Node *at = g->first; at; at = at->next, i++) {
        s.node[i] = at;
        s.taker[i] = taker_of(&s, at);
        for (int k = 0; k < at->n_out; k++)
            s.maker[at->out[k]->index] = i;
    }
    return s;
}

static void report(Split *s, const RegionReport *r)
{
    PartitionReport *to = s->p->partition;
    to->n_nodes += s->n;
    for (int i = 0; i < s->n; i++)
        to->macs += op_info[s->node[i]->op].cost(s->node[i]);
    for (int i = 0; i < s->n_regions; i++) {
        to->n_taken += r[i].n_nodes;
        to->macs_taken += r[i].macs;
        PUSH(s->p->arena, to->region, to->n_regions, r[i]);
    }
}

static bool extract_all(Split *s, const Key *key, Diag *d)
{
    Graph *g = s->g;
    int n_values = g->n_values, *region_of = NEW(s->tmp, int, n_values + 1);
    Value **with = NEW(s->tmp, Value *, 2 * n_values + s->n_regions + 1);
    Node **order = NEW(s->tmp, Node *, s->n + 1);
    bool ok = true;
    for (int i = 0; i < s->n; i++)
        order[i] = s->node[key[i].at];
    for (int i = 0; i < n_values; i++)
        region_of[i] = s->maker[i] == NOBODY ? NOBODY : s->region[s->maker[i]];
    graph_reorder(g, order, s->n);
    for (int i = 0, n; i < s->n; i += n) {
        int region = s->region[key[i].at];
        for (n = 1; i + n < s->n && s->region[key[i + n].at] == region; n++)
            continue;
        if (region != NOBODY)
            ok = extract_region(g, order + i, n, &s->uses, region_of,
                                s->p->backend[key[i].taker], with, s->tmp, d) && ok;
    }
    for (int i = 0; ok && i < s->n; i++)
        if (s->region[key[i].at] != NOBODY)
            graph_remove(g, order[i]);
    graph_replace(g, with);
    return ok;
}

static bool partition_graph(Graph *g, Arena *tmp, Diag *d)
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
    } while (round++ < ROUNDS && give_back(&s, r));
    report(&s, r);
    return extract_all(&s, key, d);
}

static bool with_nested(Graph *g, Arena *tmp, Diag *d)
{
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_args; i++)
            if (n->arg[i].kind == ARG_GRAPH && n->op != OP_DELEGATE)
                ok = with_nested(n->arg[i].graph, tmp, d) && ok;
    return partition_graph(g, tmp, d) && ok;
}

bool pass_partition(Program *p, Arena *tmp, Diag *d)
{
    bool ok = true;
    if (!p->n_backends)
        return true;
    p->partition = NEW(p->arena, PartitionReport, 1);
    for (int i = 0; i < p->n_methods; i++)
        ok = with_nested(p->method[i], tmp, d) && ok;
    p->edits++;
    return ok;
}
