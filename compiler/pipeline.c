/* pipeline.c -- the order of all passes of the compiler, with one list for each tail.
 *
 *   aten -> core -> edge -> planned      to a .pte
 *   aten -> core -> grouped -> planned   to C
 */
#include "compiler/compiler.h"
#include <string.h>

#define TO_CORE "resolve_views", "functionalize", "sink_constants", "decompose", "canonicalize"
#define FUSE                                                                                       \
    "read_back", "fold_constants", "dce", "drop_indices", "read_back", "dce", "find_integers",     \
        "fuse_attention", "canonicalize", "dce", "sink_permutes", "dce"
#define SIMPLIFY "fold_constants", "fold_batch_norm", "canonicalize", "cse", "dce", "drop_states"
#define QUANTIZE "quantize", "dce", "integer_io", "dce", "fuse_tables", "dce", "drop_states"
#define TO_PLANNED "alias", "plan_memory", "check_plan"

/* These entries of a list stand for the passes that the chosen backends ask for. */
static const char prepare[N_PREPARES][1];
#define PREPARE(when) prepare[PREPARE_##when]

static const char *const pte_tail[] = {
    TO_CORE, FUSE, PREPARE(FUSED), SIMPLIFY, PREPARE(SIMPLE), QUANTIZE, "split_linear", "dce",
    "partition",
    /* The second decompose rewrites operators that stayed whole for backends and for pass tile. */
    "widen_halves", "conv_to_linear", "tile", "decompose", SIMPLIFY, "tile_rows", "fit_kernels",
    "fold_constants", "guard_sizes", "to_edge", "lower_symint", "dce", "drop_states", "to_out",
    "order", "check_sizes", TO_PLANNED,
};
static const char *const c_tail[] = {
    /* The first alias runs before group, so that copies to outputs become part of groups. */
    TO_CORE, FUSE, SIMPLIFY, "split_transposed", QUANTIZE, "fuse_integers", "dce",
    "fuse_fixed", "tabulate", "dce", "widen_halves", "fold_constants",
    "fuse_weights", "dce", "round_products", "drop_states", "guard_sizes", "alias", "group", "order", TO_PLANNED,
};

static const struct {
    const Tail *tail;
    Pipeline all;
} tail_row[] = {
    {&tail_pte, {pte_tail, sizeof pte_tail / sizeof *pte_tail}},
    {&tail_c, {c_tail, sizeof c_tail / sizeof *c_tail}},
};

enum { N_TAILS = sizeof tail_row / sizeof *tail_row };

static Pipeline passes_of(const Tail *tail)
{
    int i = 0;
    while (i < N_TAILS && tail_row[i].tail != tail)
        i++;
    assert(i < N_TAILS);
    return tail_row[i].all;
}

/* The pass that leads to each stage; passes.def says the same. */
static const char *const pass_to[N_STAGES] = {
    [STAGE_CORE] = "decompose",
    [STAGE_EDGE] = "to_edge",
    [STAGE_GROUPED] = "group",
    [STAGE_PLANNED] = "plan_memory",
};

static int after(const char *pass, Pipeline all)
{
    for (int i = 0; i < all.n; i++)
        if (!strcmp(all.pass[i], pass))
            return i + 1;
    return -1;
}

/* Returns whether the program has groups.  Only these show the tail of a planned program. */
static bool has_groups(const Program *p)
{
    for (int i = 0; i < p->n_methods; i++)
        for (const Node *n = p->method[i]->first; n; n = n->next)
            if (n->op == OP_GROUP)
                return true;
    return false;
}

static bool has_symbol(const Arg *a)
{
    for (int i = 0; a->kind == ARG_LIST && i < a->list.n; i++)
        if (has_symbol(&a->list.item[i]))
            return true;
    return a->kind == ARG_INT && a->dim.expr;
}

static bool reads_symbols(const Graph *g)
{
    for (const Node *n = NULL; (n = walk_next(g, n));)
        for (int i = 0; i < n->n_args; i++)
            if (has_symbol(&n->arg[i]))
                return true;
    return false;
}

/* Returns whether a planned program belongs to this tail.  If nodes call kernels, symbolic
 * numbers are computed by nodes of their own (lower_symint), so no node has an expression as an
 * argument. */
static bool is_planned_for(const Program *p, const Tail *tail)
{
    for (int i = 0; i < p->n_methods; i++)
        if (!tail->has_groups && reads_symbols(p->method[i]))
            return false;
    return tail->has_groups == has_groups(p);
}

/* Returns how many passes of the pipeline have run on a program at this stage; -1: the pipeline has
 * no such stage. */
static int passed(Stage s, Pipeline all)
{
    assert(s < N_STAGES);
    return s == STAGE_ATEN ? 0 : after(pass_to[s], all);
}

static bool is_on_the_way(const Program *p, const Tail *tail)
{
    bool is_planned = p->stage == STAGE_PLANNED && p->n_methods;
    return (!is_planned || is_planned_for(p, tail)) && passed(p->stage, passes_of(tail)) >= 0;
}

/* -- passes of backends ------------------------------------------------------------------------ */

static bool has_pass(Pipeline all, int from, const char *pass)
{
    for (int i = from; i < all.n; i++)
        if (!strcmp(all.pass[i], pass))
            return true;
    return false;
}

/* Appends the passes that backends ask for here, in the order of the chain.  A pass that several
 * backends ask for is appended once. */
static void put_prepare(const Program *p, int when, const char ***pass, int *n)
{
    const int from = *n;
    assert(when < N_PREPARES);
    for (int b = 0; b < p->session->n_backends; b++) {
        const char *const *want = p->session->backend[b]->prepare[when];
        for (; want && *want; want++)
            if (!has_pass((Pipeline){*pass, *n}, from, *want))
                PUSH(p->arena, *pass, *n, *want);
    }
}

static Pipeline with_prepares(const Program *p, Pipeline all)
{
    const char **pass = NULL;
    int n = 0;
    for (int i = 0; i < all.n; i++) {
        int when = 0;
        while (when < N_PREPARES && all.pass[i] != prepare[when])
            when++;
        if (when == N_PREPARES)
            PUSH(p->arena, pass, n, all.pass[i]);
        else
            put_prepare(p, when, &pass, &n);
    }
    return (Pipeline){pass, n};
}

bool pipeline_of(const Program *p, Pipeline *out, Diag *d)
{
    const Tail *tail = p->session->tail;
    Pipeline all = with_prepares(p, passes_of(tail));
    const char *other = "something else";
    for (int i = 0; i < N_TAILS; i++)
        if (is_on_the_way(p, tail_row[i].tail))
            other = tail_row[i].tail->what;
    if (!is_on_the_way(p, tail))
        return diag_error(d, (Loc){.file = p->name}, "is at stage %s of the way to %s, not to %s",
                          stage_name[p->stage], other, tail->what);
    int skip = passed(p->stage, all);
    *out = (Pipeline){all.pass + skip, all.n - skip};
    return true;
}

bool pipeline_to_partition(const Program *p, Pipeline *out, Diag *d)
{
    assert(p->session->tail->has_backends);
    if (p->stage > STAGE_CORE)
        return diag_error(d, (Loc){.file = p->name},
                          "is at stage %s: backends choose nodes at core", stage_name[p->stage]);
    if (!pipeline_of(p, out, d))
        return false;
    out->n = after("partition", *out);
    return true;
}

bool pipeline_to_quantize(const Program *p, Pipeline *out, Diag *d)
{
    if (p->stage > STAGE_CORE)
        return diag_error(d, (Loc){.file = p->name}, "is at stage %s: ranges are observed at core",
                          stage_name[p->stage]);
    if (!pipeline_of(p, out, d))
        return false;
    out->n = after("quantize", *out);
    return true;
}

Pipeline pipeline_to_core(void)
{
    Pipeline all = passes_of(&tail_pte);
    return (Pipeline){all.pass, after(pass_to[STAGE_CORE], all)};
}

bool passes_follow(const Program *p, const char *const *pass, int n, Diag *d)
{
    bool is_aten = p->stage == STAGE_ATEN, ok = true;
    for (int i = 0; i < n; i++) {
        is_aten = is_aten && strcmp(pass[i], pass_to[STAGE_CORE]) != 0;
        for (int s = STAGE_EDGE; is_aten && s < N_STAGES; s++)
            if (!strcmp(pass[i], pass_to[s]))
                ok = diag_error(d, (Loc){.file = p->name},
                                "pass '%s' needs a program that is past "
                                "stage aten: run %s before it",
                                pass[i], pass_to[STAGE_CORE]);
    }
    return ok;
}
