/* plan_memory.c -- every tensor gets its place.
 *
 * Stage edge or grouped, after order and alias; leaves planned.  Sizes count at their upper bounds.
 * On the pte tail inputs, outputs, states and results share pool 1, as the official exporter's
 * default has it; states come first, at the same offsets in every method.  On the c tail inputs,
 * outputs and states are the caller's memory, and an output's alias set is written right there.
 */
#include "passes/internal.h"

/* -- what cannot be planned -------------------------------------------------------------------- */

typedef struct Bounds {
    Program *p;
    Diag *d;
    bool *told; /* by symbol */
    bool ok;
} Bounds;

static void check_symbol(const Symbol *s, void *ctx)
{
    Bounds *b = ctx;
    if (s->hi != INT64_MAX || b->told[s->index])
        return;
    b->told[s->index] = true;
    b->ok = diag_error(b->d, (Loc){.file = b->p->name},
                       "size %%%s has no upper bound: give it one with --dim %s=LO..HI", s->name,
                       s->name);
}

static void check_type(Type t, void *ctx)
{
    for (int i = 0; i < t.rank; i++)
        if (dim_upper(t.dim[i]) == INT64_MAX)
            dim_symbols(t.dim[i], check_symbol, ctx);
}

/* Every size has an upper bound, and what it bounds fits into 64 bits. */
static bool is_bounded(const Graph *g, Arena *tmp, Diag *d)
{
    Bounds b = {g->program, d, NEW(tmp, bool, g->program->n_syms + 1), true};
    for (int i = 0; i < g->n_in; i++)
        check_type(g->in[i]->type, &b);
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            check_type(n->out[i]->type, &b);
    for (const Node *n = g->first; b.ok && n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (type_bytes(n->out[i]->type) > INT64_MAX / 4)
                b.ok = diag_error(d, n->loc, "result %%%s is too large for memory",
                                  n->out[i]->name);
    return b.ok;
}

static bool has_no_branches(const Graph *g, Diag *d)
{
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == OP_COND)
            ok = diag_unsupported(d, n->loc, "memory of nested graphs is not planned yet");
    return ok;
}

/* -- places ------------------------------------------------------------------------------------ */

/* The mutable states, one behind the other in the order of the program. */
static int64_t place_states(Program *p)
{
    int64_t end = 0;
    PoolId pool = p->tail == TAIL_PTE ? 1 : POOL_STATE;
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        if (s->kind != ST_MUTABLE)
            continue;
        s->place = (Place){pool, end};
        end += round_up(type_bytes(s->type), PLAN_ALIGN);
    }
    return end;
}

/* Where the roots lie that no packer places: states and memory of the caller. */
static void place_fixed(const Graph *g, AliasSets a, Place *at)
{
    for (int i = 0; i < g->n_states; i++)
        at[g->state[i]->index] = g->state[i]->state->place;
    if (g->program->tail == TAIL_PTE)
        return;
    for (int i = 0; i < g->n_in; i++)
        at[g->in[i]->index] = (Place){POOL_IN, i};
    for (int i = 0; i < g->n_out; i++)
        at[a.root[g->out[i]->index]] = (Place){POOL_OUT, i};
}

static void place_value(Value *v, AliasSets a, const Place *at)
{
    Place to = at[a.root[v->index]];
    if (v->type.rank == SCALAR || v->type.is_none || to.pool == POOL_NONE)
        return;
    to.offset += a.offset[v->index]; /* 0 where the place is a number of an argument */
    value_set_place(v, to);
}

static void place_values(Graph *g, AliasSets a, const Place *at)
{
    for (int i = 0; i < g->n_in; i++)
        place_value(g->in[i], a, at);
    for (int i = 0; i < g->n_states; i++)
        place_value(g->state[i], a, at);
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            place_value(n->out[i], a, at);
}

static void set_scratch(Graph *g)
{
    for (const Node *n = g->first; n; n = n->next) {
        int64_t bytes = op_info[n->op].scratch(n);
        g->scratch = bytes > g->scratch ? bytes : g->scratch;
    }
}

static Blocks without_states(const Graph *g, Blocks all, Arena *tmp)
{
    const Value **value = graph_values(g, tmp);
    Blocks rest = {NEW(tmp, Block, all.n + 1), 0};
    for (int i = 0; i < all.n; i++)
        if (all.item[i].root < 0 || !value[all.item[i].root]->state)
            rest.item[rest.n++] = all.item[i];
    return rest;
}

static void plan_graph(Graph *g, int64_t state_bytes, Arena *tmp)
{
    Program *p = g->program;
    AliasSets a = alias_sets(g, tmp);
    Blocks b = without_states(g, blocks_of(g, a, tmp), tmp);
    Place *at = NEW(tmp, Place, g->n_values + 1);
    int64_t base = p->tail == TAIL_PTE ? state_bytes : 0;
    int64_t bytes = base + pack(b, blocks_bound(b, tmp), &g->plan_is_least, tmp);
    place_fixed(g, a, at);
    for (int i = 0; i < b.n; i++)
        at[b.item[i].root] = (Place){1, base + b.item[i].offset};
    place_values(g, a, at);
    g->n_pools = 0;
    PUSH(p->arena, g->pool, g->n_pools, bytes);
    set_scratch(g);
}

bool pass_plan_memory(Program *p, Arena *tmp, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < p->n_methods; i++)
        ok = has_no_branches(p->method[i], d) && is_bounded(p->method[i], tmp, d) && ok;
    if (!ok)
        return false;
    int64_t state_bytes = place_states(p);
    for (int i = 0; i < p->n_methods; i++)
        plan_graph(p->method[i], state_bytes, tmp);
    p->stage = STAGE_PLANNED;
    p->edits++;
    return true;
}
