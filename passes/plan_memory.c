/* plan_memory.c -- gives every tensor its place.
 *
 * Stage edge or grouped, after order and alias; leaves planned.  Sizes count with their upper
 * bounds.  On the pte tail inputs, outputs, states and results share pool 1, as in files of the
 * official exporter; states come first, at the same offsets in every method.  Inputs that are
 * borrowed are memory of the caller.  On the c tail inputs, outputs and states are, and the alias
 * set of an output lies there.  If the session has banks, each of them is a pool.
 *
 * Branches of a cond are planned before the graph around them, as if that graph were their caller:
 * their operands and results have the places of the cond's.  All other values of both branches are
 * one block of the outer graph, live only at the cond, in which both begin at the first byte.  The
 * two graphs of a loop are planned in the same way, with one difference: carried values have the
 * places of the loop's results, from before the first iteration on.  The result of an iteration has
 * bytes of its own until the end of the iteration, unless it may be written over the carried
 * value. */
#include "passes/internal.h"

/* -- what cannot be planned -------------------------------------------------------------------- */

typedef struct Bounds {
    const Program *p;
    Diag *d;
    bool *told; /* by symbol: the missing bound was reported */
    bool ok;
} Bounds;

static void check_symbol(const Symbol *s, void *ctx)
{
    Bounds *b = ctx;
    if (s->hi != INT64_MAX || b->told[s->index])
        return;
    b->told[s->index] = true;
    b->ok = diag_error(b->d, (Loc){.file = b->p->name},
                       "size %%%s%s has no upper bound: give it one with --dim %s=LO..HI", s->name,
                       program_axis(b->p, s), s->name);
}

static void check_type(Type t, void *ctx)
{
    for (int i = 0; i < t.rank; i++)
        if (dim_upper(t.dim[i]) == INT64_MAX)
            dim_symbols(t.dim[i], check_symbol, ctx);
}

static bool check_bytes(Value *const *v, int n, Loc loc, Diag *d)
{
    for (int i = 0; i < n; i++)
        if (type_bytes(v[i]->type) > INT64_MAX / 4)
            return diag_error(d, loc, "%%%s is too large for memory", v[i]->name);
        else if (type_extent(v[i]->type) == INT64_MAX)
            return diag_error(d, loc, "the strides of %%%s are negative or too large", v[i]->name);
    return true;
}

static void check_graph(const Graph *g, Bounds *b)
{
    for (int i = 0; i < g->n_in; i++)
        check_type(g->in[i]->type, b);
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_out; i++)
            check_type(n->out[i]->type, b);
        for (const Graph *inner = NULL; (inner = region_planned(n, inner));)
            check_graph(inner, b);
    }
    b->ok = b->ok && check_bytes(g->in, g->n_in, (Loc){.file = g->program->name}, b->d);
    for (const Node *n = g->first; b->ok && n; n = n->next)
        b->ok = check_bytes(n->out, n->n_out, n->loc, b->d);
}

bool plan_takes_inputs(const Program *p, Arena *tmp, Diag *d)
{
    Bounds b = {p, d, NEW(tmp, bool, p->n_syms + 1), true};
    for (int m = 0; m < p->n_methods; m++)
        for (int i = 0; i < p->method[m]->n_in; i++)
            check_type(p->method[m]->in[i]->type, &b);
    return b.ok;
}

/* Checks that every size has an upper bound, and that the bytes of each value fit into 64 bits. */
static bool is_bounded(const Graph *g, Arena *tmp, Diag *d)
{
    Bounds b = {g->program, d, NEW(tmp, bool, g->program->n_syms + 1), true};
    check_graph(g, &b);
    return b.ok;
}

/* -- places ------------------------------------------------------------------------------------ */

/* Places the mutable states one behind the other, in the order of the program.  Returns their
 * end. */
static int64_t place_states(Program *p)
{
    int64_t end = 0;
    PoolId pool = p->session->tail->plans_states ? 1 : POOL_STATE;
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        if (s->kind != ST_MUTABLE)
            continue;
        s->place = (Place){pool, end};
        end += round_up(type_bytes(s->type), PLAN_ALIGN);
    }
    return end;
}

/* A graph with those of its conds and loops, in the order of the nodes. */
typedef struct Plan {
    Graph *g;
    AliasSets a;
    Blocks b;
    struct Plan *branch;
    int n_branches;
} Plan;

/* Sets the places of the roots that no packer places: states and memory of the caller. */
static void place_fixed(const Graph *g, AliasSets a, Place *at, Arena *tmp)
{
    const bool *borrowed = borrowed_inputs(g, tmp);
    for (int i = 0; i < g->n_states; i++)
        at[g->state[i]->index] = g->state[i]->state->place;
    for (int i = 0; i < g->n_in; i++)
        if (borrowed[g->in[i]->index] || (!graph_owns_io(g) && g->name))
            at[g->in[i]->index] = (Place){POOL_IN, i};
    if (graph_owns_io(g) || !g->name)
        return;
    for (int i = 0; i < g->n_out; i++)
        at[a.root[g->out[i]->index]] = (Place){POOL_OUT, i};
}

/* Sets the places of a nested graph's inputs and outputs: those of the operands and results of a
 * cond; carried values have the places of the loop's results. */
static void place_branch_io(const Graph *g, AliasSets a, Place *at)
{
    const Node *n = g->owner;
    assert(n);
    for (int i = 0; i < g->n_out && region_kind(n) == REGION_ONE_OF; i++) {
        Place *to = &at[a.root[g->out[i]->index]];
        if (to->pool == POOL_NONE)
            *to = n->out[i]->place;
    }
    for (int i = 0; i < g->n_in; i++) {
        const Value *v = region_input(n, i);
        if (v && value_place(v).pool != POOL_NONE)
            at[g->in[i]->index] = value_place(v);
    }
}

static void place_value(Value *v, AliasSets a, const Place *at)
{
    Place to = at[a.root[v->index]];
    if (v->type.rank == SCALAR || v->type.is_none || to.pool == POOL_NONE)
        return;
    assert((to.pool != POOL_IN && to.pool != POOL_OUT) || !a.offset[v->index]);
    to.offset += a.offset[v->index]; /* it is 0 if the place is the number of an argument */
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

static int64_t largest_scratch(const Graph *g)
{
    int64_t most = 0;
    for (const Node *n = g->first; n; n = n->next) {
        int64_t bytes = node_scratch(n);
        for (const Graph *inner = NULL; (inner = region_planned(n, inner));) {
            int64_t within = largest_scratch(inner);
            bytes = within > bytes ? within : bytes;
        }
        most = bytes > most ? bytes : most;
    }
    return most;
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

/* Adds blocks for inputs of a branch that are constants.  These have no place from which a branch
 * could take them, so it gets copies. */
static void add_copied_inputs(const Plan *p, Blocks *b, Arena *tmp)
{
    int end = 1;
    for (const Node *n = p->g->first; n; n = n->next)
        end++;
    for (int i = 0; i < p->g->n_in; i++) {
        const Value *v = region_input(p->g->owner, i), *in = p->g->in[i];
        if (!value_is_fixed(v) || in->type.rank == SCALAR)
            continue;
        Block one = block_make(in->index, 0, end, round_up(type_bytes(in->type), PLAN_ALIGN), tmp);
        PUSH(tmp, b->item, b->n, one);
    }
}

/* Adds up the bytes that the nodes of a graph read and write, by the root of the set; if `sum` is
 * not NULL, all in *sum. */
static void count_touches(const Graph *g, const AliasSets *a, double *by_root, double *sum,
                          Arena *tmp)
{
    for (const Node *n = g->first; n; n = n->next) {
        int64_t *reads = NEW(tmp, int64_t, n->n_in + 1);
        node_reads(n, reads, tmp);
        for (int i = 0; i < n->n_in + n->n_out; i++) {
            const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
            double times = (double)(i < n->n_in ? reads[i] : type_numel(v->type));
            *(sum ? sum : &by_root[a->root[v->index]]) +=
                times * (double)etc_dtype_size((int)v->type.dtype);
        }
        for (const Graph *inner = NULL; sum && (inner = region_planned(n, inner));)
            count_touches(inner, a, by_root, sum, tmp);
    }
}

static void set_touches(const Plan *p, Arena *tmp)
{
    double *by_root = NEW(tmp, double, p->g->n_values + 1);
    count_touches(p->g, &p->a, by_root, NULL, tmp);
    for (int i = 0; i < p->b.n; i++) {
        Block *b = &p->b.item[i];
        double bytes = b->root < 0 ? 0 : by_root[b->root];
        for (const Graph *inner = NULL; b->root < 0 && (inner = region_planned(b->node, inner));)
            count_touches(inner, &p->a, NULL, &bytes, tmp);
        b->touches = b->bytes ? bytes / (double)b->bytes : 0;
    }
}

/* Places the blocks in the banks, or in one pool of any size; returns whether that is the least. */
static bool pack_pools(Plan *p, Arena *tmp)
{
    Graph *g = p->g;
    const Session *s = g->program->session;
    bool is_least, has_banks = s->ram.n && !g->owner;
    int n = has_banks ? s->ram.n : 1;
    int64_t *end = NEW(tmp, int64_t, n + 1);
    g->n_pools = 0;
    if (has_banks) {
        set_touches(p, tmp);
        is_least = plan_banks(p->b, s, end, tmp);
    } else {
        end[0] = pack(p->b, blocks_bound(p->b, tmp), &is_least, tmp);
    }
    for (int i = 0; i < p->b.n && !has_banks; i++)
        p->b.item[i].pool = 1;
    for (int i = 0; i < n; i++)
        PUSH(g->program->arena, g->pool, g->n_pools, end[i]);
    return is_least;
}

/* Finds pools and offsets, those of branches first, and the bytes of pools from 0 on. */
static Plan pack_graph(Graph *g, Arena *tmp)
{
    Plan p = {.g = g, .a = alias_sets(g, tmp)};
    bool all_least = true;
    for (const Node *n = g->first; n; n = n->next)
        for (Graph *inner = NULL; (inner = region_planned(n, inner));) {
            Plan branch = pack_graph(inner, tmp);
            all_least = all_least && branch.g->plan_is_least;
            PUSH(tmp, p.branch, p.n_branches, branch);
        }
    p.b = without_states(g, blocks_of(g, p.a, tmp), tmp);
    if (g->owner)
        add_copied_inputs(&p, &p.b, tmp);
    g->plan_is_least = pack_pools(&p, tmp) && all_least;
    return p;
}

/* Returns the place of a block in the method.  `base` is the place of byte 0 of the graph. */
static Place place_block(const Plan *p, const Block *b, Place base)
{
    return (Place){p->g->owner ? base.pool : b->pool, base.offset + b->offset};
}

static void place_graph(const Plan *p, Place base, Arena *tmp)
{
    Graph *g = p->g;
    Place *at = NEW(tmp, Place, g->n_values + 1);
    Place *branch_base = NEW(tmp, Place, p->n_branches + 1);
    int k = 0;
    assert(g->n_pools == 1 || !g->owner);
    place_fixed(g, p->a, at, tmp);
    if (g->owner)
        place_branch_io(g, p->a, at);
    for (int i = 0; i < p->b.n; i++)
        if (p->b.item[i].root >= 0)
            at[p->b.item[i].root] = place_block(p, &p->b.item[i], base);
    place_values(g, p->a, at);
    for (int i = 0; i < p->b.n; i++) /* in the order of the nodes, as the branches are */
        if (p->b.item[i].root < 0)
            branch_base[k++] = place_block(p, &p->b.item[i], base);
    k = 0;
    int next = 0;
    for (const Node *n = g->first; n; n = n->next) {
        bool has_bytes = false;
        int first = k;
        for (const Graph *inner = NULL; (inner = region_planned(n, inner));)
            has_bytes = p->branch[k++].g->pool[0] > 0 || has_bytes;
        for (int i = first; i < k; i++)
            place_graph(&p->branch[i], has_bytes ? branch_base[next] : base, tmp);
        next += has_bytes;
    }
    if (g->owner)
        g->n_pools = 0; /* the method's pools include its own */
}

static void plan_graph(Graph *g, int64_t state_bytes, Arena *tmp)
{
    Plan p = pack_graph(g, tmp);
    int64_t base = g->program->session->tail->plans_states ? state_bytes : 0;
    g->pool[0] += base;
    place_graph(&p, (Place){1, base}, tmp);
    g->scratch = largest_scratch(g);
}

bool pass_plan_memory(Program *p, Arena *tmp, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < p->n_methods; i++)
        ok = is_bounded(p->method[i], tmp, d) && ok;
    if (!ok)
        return false;
    int64_t state_bytes = place_states(p);
    for (int i = 0; i < p->n_methods; i++)
        plan_graph(p->method[i], state_bytes, tmp);
    p->stage = STAGE_PLANNED;
    p->edits++;
    return true;
}
