/* plan_memory.c -- gives every tensor its bytes: one pool, sizes at the upper bounds of the symbols.
 *
 * Stages edge and grouped in their final order; leaves stage planned.  The alias sets of alias.c are
 * rectangles (life by bytes) to pack with the least height.  Several packers are tried and the best
 * kept; the largest sum of bytes live at once is a lower bound, and reaching it ends the search.
 * Each packer puts items one by one at the lowest (or tightest) gap that is free for their life;
 * they differ in the order, by size, by area, by start, by crowding.  This is Dynamic Storage
 * Allocation (Garey and Johnson, SR2; NP-hard).
 *
 * A .pte plans inputs from the call's start to their last use, outputs to its end and states all
 * along, as the official exporter does.  In emitted C inputs, outputs and states are the caller's.
 * A branch of a cond is planned before the graph around it; its values lie in one block that lives
 * while the cond runs, its inputs on the operands, its outputs on the results.
 */
#include "passes/passes.h"
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, MAX_QUADRATIC = 4096 };

typedef struct Item {
    Value *value;     /* of a root; NULL: the block of a branch */
    Graph *branch[2]; /* of such a block */
    int64_t bytes, at;
    int first, last;
    int id;
} Item;

typedef struct Packing {
    Item **item;
    int n;
    int64_t bound, best;
    int64_t *best_at; /* by item id */
} Packing;

/* -- sizes ------------------------------------------------------------------------------- */

static void name_unbounded(const Symbol *s, void *ctx)
{
    const Symbol **found = ctx;
    if (s->hi == INT64_MAX)
        *found = s;
}

static bool size_of(const Value *v, int64_t *bytes, Diag *d)
{
    const Symbol *s = NULL;
    Loc loc = v->def ? v->def->loc : (Loc){0};
    *bytes = type_bytes(v->type);
    if (*bytes <= INT64_MAX / 1024) {
        *bytes = round_up(*bytes, ALIGN);
        return true;
    }
    for (int i = 0; i < v->type.rank; i++)
        dim_symbols(v->type.dim[i], name_unbounded, &s);
    if (s)
        return diag_error(d, loc, "the size of %%%s has no bound; give one: --dim %s=LO..HI", v->name,
                          s->name);
    return diag_error(d, loc, "the size of %%%s is beyond what memory can hold", v->name);
}

static bool has_bytes(const Value *v)
{
    return !v->type.is_none && v->type.rank != SCALAR;
}

/* -- packing ----------------------------------------------------------------------------- */

static bool live_together(const Item *a, const Item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int by_place(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : x->id - y->id;
}

/* The gap among `n` items that stand in the way: the lowest that fits, or the tightest. */
static int64_t find_gap(Item **way, int n, int64_t bytes, bool tightest)
{
    int64_t at = 0, best = -1, least = INT64_MAX;
    qsort(way, (size_t)n, sizeof *way, by_place);
    for (int i = 0; i < n; i++) {
        int64_t gap = way[i]->at - at;
        if (gap >= bytes && gap - bytes < least) {
            best = at;
            least = tightest ? gap - bytes : -1;
        }
        if (way[i]->at + way[i]->bytes > at)
            at = way[i]->at + way[i]->bytes;
    }
    return best >= 0 ? best : at;
}

/* Packs in the order of the list; by_start: items come by first, so dead ones drop out. */
static void pack(Packing *p, bool by_start, bool tightest, Arena *tmp)
{
    Item **way = NEW(tmp, Item *, p->n + 1), **placed = NEW(tmp, Item *, p->n + 1);
    int n_placed = 0;
    int64_t top = 0;
    for (int i = 0; i < p->n; i++) {
        Item *it = p->item[i];
        int n_way = 0, kept = 0;
        for (int k = 0; k < n_placed; k++) {
            if (by_start && placed[k]->last < it->first)
                continue;
            if (live_together(placed[k], it))
                way[n_way++] = placed[k];
            placed[kept++] = placed[k];
        }
        n_placed = kept;
        it->at = find_gap(way, n_way, it->bytes, tightest);
        placed[n_placed++] = it;
        top = it->at + it->bytes > top ? it->at + it->bytes : top;
    }
    if (top >= p->best)
        return;
    p->best = top;
    for (int i = 0; i < p->n; i++)
        p->best_at[p->item[i]->id] = p->item[i]->at;
}

static int by_size(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : x->id - y->id;
}

static double area(const Item *x)
{
    return (double)x->bytes * (x->last - x->first + 1);
}

static int by_area(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return area(x) != area(y) ? (area(x) < area(y)) - (area(x) > area(y)) : x->id - y->id;
}

static int by_start(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->first != y->first ? x->first - y->first : by_size(a, b);
}

static int by_end(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    return x->last != y->last ? y->last - x->last : by_size(a, b);
}

static int by_life(const void *a, const void *b)
{
    const Item *x = *(Item *const *)a, *y = *(Item *const *)b;
    int p = x->last - x->first, q = y->last - y->first;
    return p != q ? q - p : by_size(a, b);
}

static int64_t lower_bound(const Packing *p, int end, Arena *tmp)
{
    int64_t *change = NEW(tmp, int64_t, end + 2), live = 0, most = 0;
    for (int i = 0; i < p->n; i++) {
        change[p->item[i]->first] += p->item[i]->bytes;
        change[p->item[i]->last + 1] -= p->item[i]->bytes;
    }
    for (int i = 0; i <= end; i++) {
        live += change[i];
        most = live > most ? live : most;
    }
    return most;
}

static void pack_best(Packing *p, int end, Arena *tmp)
{
    typedef int Order(const void *, const void *);
    static Order *const order[] = {by_start, by_size, by_area, by_life, by_end};
    p->bound = lower_bound(p, end, tmp);
    p->best = INT64_MAX;
    p->best_at = NEW(tmp, int64_t, p->n + 1);
    int n_orders = p->n > MAX_QUADRATIC ? 1 : (int)(sizeof order / sizeof *order);
    for (int i = 0; i < 2 * n_orders && p->best > p->bound; i++) {
        qsort(p->item, (size_t)p->n, sizeof *p->item, order[i / 2]);
        pack(p, order[i / 2] == by_start, i % 2, tmp);
    }
    for (int i = 0; i < p->n; i++)
        p->item[i]->at = p->best_at[p->item[i]->id];
    if (!p->n)
        p->best = 0;
}

/* -- what is to be packed ------------------------------------------------------------------ */

typedef struct Plan {
    Graph *g;
    AliasSets set;
    Packing packing;
    Value **root;  /* by index, of every value with bytes */
    bool *outside; /* by index of a root: its place is not in the pool */
    bool is_branch;
    Arena *tmp;
    Diag *d;
} Plan;

static void add_item(Plan *p, Item item)
{
    Item *copy = NEW(p->tmp, Item, 1);
    *copy = item;
    copy->id = p->packing.n;
    PUSH(p->tmp, p->packing.item, p->packing.n, copy);
}

static bool add_value(Plan *p, Value *v, int first, int last)
{
    int64_t bytes;
    if (!has_bytes(v) || p->set.root[v->index] != v->index || p->outside[v->index])
        return true;
    if (!size_of(v, &bytes, p->d))
        return false;
    add_item(p, (Item){.value = v, .bytes = bytes, .first = first, .last = last > first ? last : first});
    return true;
}

/* A set that holds something of the caller's lies there. */
static void put_outside(Plan *p, Value *v, Place at)
{
    Value *root = p->root[p->set.root[v->index]];
    p->outside[root->index] = true;
    value_set_place(root, at);
}

static void note_roots(Plan *p)
{
    Graph *g = p->g;
    for (int i = 0; i < g->n_in; i++)
        p->root[g->in[i]->index] = g->in[i];
    for (int i = 0; i < g->n_states; i++)
        p->root[g->state[i]->index] = g->state[i];
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            p->root[n->out[i]->index] = n->out[i];
}

/* The caller's memory: of emitted C, and of a branch, whose inputs and outputs the cond places. */
static void place_ends(Plan *p)
{
    Graph *g = p->g;
    bool is_c = g->program->tail == TAIL_C;
    for (int i = 0; i < g->n_states; i++)
        put_outside(p, g->state[i], g->state[i]->state->place);
    for (int i = 0; i < g->n_in && (is_c || p->is_branch); i++)
        if (has_bytes(g->in[i]))
            put_outside(p, g->in[i], p->is_branch ? (Place){0} : (Place){POOL_IN, i});
    for (int i = 0; i < g->n_out && (is_c || p->is_branch); i++)
        if (has_bytes(g->out[i]))
            put_outside(p, g->out[i], p->is_branch ? (Place){0} : (Place){POOL_OUT, i});
}

static bool add_branches(Plan *p, Node *n, int at)
{
    Item block = {.first = at, .last = at};
    int n_branch = 0;
    for (int i = 0; n->op == OP_COND && i < n->n_args; i++)
        if (n->arg[i].kind == ARG_GRAPH && n_branch < 2) {
            Graph *b = n->arg[i].graph;
            block.branch[n_branch++] = b;
            for (int k = 0; k < b->n_pools; k++)
                block.bytes = b->pool[k] > block.bytes ? b->pool[k] : block.bytes;
        }
    if (n_branch)
        add_item(p, block);
    return true;
}

static bool collect(Plan *p)
{
    Graph *g = p->g;
    int at = 1, *last = p->set.last;
    bool ok = true;
    for (int i = 0; i < g->n_in; i++)
        ok = add_value(p, g->in[i], 0, last[g->in[i]->index]) && ok;
    for (Node *n = g->first; n; n = n->next, at++) {
        for (int i = 0; i < n->n_out; i++)
            ok = add_value(p, n->out[i], at, last[n->out[i]->index]) && ok;
        ok = add_branches(p, n, at) && ok;
    }
    return ok;
}

/* -- places -------------------------------------------------------------------------------- */

static void shift_place(Value *v, int64_t by)
{
    if (v->place.pool > 0)
        value_set_place(v, (Place){v->place.pool, v->place.offset + by});
}

static void shift_graph(Graph *g, int64_t by)
{
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            shift_place(n->out[i], by);
}

/* Every value lies where its root lies, plus its offset in it. */
static void spread(Plan *p, Value *v)
{
    if (!has_bytes(v) || v->state)
        return;
    Place at = p->root[p->set.root[v->index]]->place;
    if (at.pool > 0)
        at.offset += p->set.offset[v->index];
    value_set_place(v, at);
}

static void place_values(Plan *p)
{
    for (int i = 0; i < p->packing.n; i++) {
        Item *it = p->packing.item[i];
        if (it->value)
            value_set_place(it->value, (Place){1, it->at});
        for (int k = 0; k < 2 && it->branch[k]; k++)
            shift_graph(it->branch[k], it->at);
    }
    for (int i = 0; i < p->g->n_in; i++)
        spread(p, p->g->in[i]);
    for (Node *n = p->g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            spread(p, n->out[i]);
}

/* What a branch reads lies on the operands, what it returns on the results of the cond. */
static void bind_branch(Node *n, Graph *b, Arena *tmp)
{
    AliasSets set = alias_sets(b, tmp);
    Value **end = NEW(tmp, Value *, b->n_values + 1);
    for (int i = 0; i < b->n_in; i++) {
        Value *operand = arg_list_value(n, n->n_args - 1, i);
        end[set.root[b->in[i]->index]] = operand;
    }
    for (int i = 0; i < b->n_out && i < n->n_out; i++)
        end[set.root[b->out[i]->index]] = n->out[i];
    for (int i = 0; i < b->n_in; i++)
        if (end[set.root[b->in[i]->index]])
            value_set_place(b->in[i], end[set.root[b->in[i]->index]]->place);
    for (Node *m = b->first; m; m = m->next)
        for (int i = 0; i < m->n_out; i++)
            if (has_bytes(m->out[i]) && end[set.root[m->out[i]->index]])
                value_set_place(m->out[i], end[set.root[m->out[i]->index]]->place);
}

static void bind_branches(Graph *g, Arena *tmp)
{
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; n->op == OP_COND && i < n->n_args; i++)
            if (n->arg[i].kind == ARG_GRAPH) {
                bind_branch(n, n->arg[i].graph, tmp);
                bind_branches(n->arg[i].graph, tmp);
            }
}

static int64_t scratch_of(const Graph *g)
{
    int64_t most = 0;
    for (const Node *n = g->first; n; n = n->next) {
        int64_t bytes = op_info[n->op].scratch(n);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static bool plan_graph(Graph *g, bool is_branch, Arena *tmp, Diag *d)
{
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; n->op == OP_COND && i < n->n_args; i++)
            if (n->arg[i].kind == ARG_GRAPH && !plan_graph(n->arg[i].graph, true, tmp, d))
                return false;
    Plan p = {.g = g, .set = alias_sets(g, tmp), .root = NEW(tmp, Value *, g->n_values + 1),
              .outside = NEW(tmp, bool, g->n_values + 1), .is_branch = is_branch, .tmp = tmp,
              .d = d};
    note_roots(&p);
    place_ends(&p);
    if (!collect(&p))
        return false;
    pack_best(&p.packing, p.set.n_nodes + 1, tmp);
    place_values(&p);
    int64_t bytes = p.packing.best;
    g->n_pools = 0;
    g->pool = NULL;
    if (bytes)
        PUSH(g->program->arena, g->pool, g->n_pools, bytes);
    g->scratch = scratch_of(g);
    return true;
}

/* -- states ---------------------------------------------------------------------------------- */

/* Mutable states outlive the call: at the end of the pool in a .pte, in a block of their own in C. */
static bool place_states(Program *p, int64_t *bytes, Diag *d)
{
    *bytes = 0;
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        if (s->kind != ST_MUTABLE)
            continue;
        int64_t size = type_bytes(s->type);
        if (size > INT64_MAX / 1024)
            return diag_error(d, (Loc){.file = p->name}, "state %s has no bounded size", s->fqn);
        s->place = (Place){p->tail == TAIL_C ? POOL_STATE : 1, *bytes};
        *bytes += round_up(size, ALIGN);
    }
    return true;
}

/* In a .pte the states of all methods lie behind the largest pool, at equal offsets. */
static void append_states(Program *p, int64_t bytes)
{
    int64_t base = 0;
    for (int i = 0; i < p->n_methods; i++)
        if (p->method[i]->n_pools && p->method[i]->pool[0] > base)
            base = p->method[i]->pool[0];
    for (int i = 0; i < p->n_states; i++)
        if (p->state[i]->kind == ST_MUTABLE)
            p->state[i]->place.offset += base;
    for (int i = 0; i < p->n_methods; i++) {
        Graph *g = p->method[i];
        if (!g->n_pools)
            PUSH(p->arena, g->pool, g->n_pools, (int64_t){0});
        g->pool[0] = base + bytes;
    }
}

/* Values that lie over a state were placed before the states moved. */
static void follow_states(Graph *g, Arena *tmp)
{
    AliasSets set = alias_sets(g, tmp);
    Value **state = NEW(tmp, Value *, g->n_values + 1);
    for (int i = 0; i < g->n_states; i++)
        state[g->state[i]->index] = g->state[i];
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (has_bytes(n->out[i]) && state[set.root[n->out[i]->index]])
                value_set_place(n->out[i], state[set.root[n->out[i]->index]]->state->place);
}

bool pass_plan_memory(Program *p, Arena *tmp, Diag *d)
{
    int64_t state_bytes;
    if (!place_states(p, &state_bytes, d))
        return false;
    for (int i = 0; i < p->n_methods; i++)
        if (!plan_graph(p->method[i], false, tmp, d))
            return false;
    if (p->tail == TAIL_PTE && state_bytes)
        append_states(p, state_bytes);
    for (int i = 0; i < p->n_methods; i++) {
        follow_states(p->method[i], tmp);
        bind_branches(p->method[i], tmp);
    }
    p->stage = STAGE_PLANNED;
    return true;
}
