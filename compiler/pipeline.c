/* pipeline.c -- the compiler, top to bottom: the order of the passes, one list per tail.
 *
 *   aten -> core -> edge -> planned      to a .pte
 *   aten -> core -> grouped -> planned   to C
 */
#include "compiler/compiler.h"
#include <string.h>

#define TO_CORE "resolve_views", "functionalize", "sink_constants", "decompose", "canonicalize"
#define FUSE "fold_constants", "dce", "fuse_attention", "canonicalize"
#define SIMPLIFY "fold_constants", "fold_batch_norm", "canonicalize", "cse", "dce", "drop_states"
#define QUANTIZE "quantize", "dce", "fuse_tables", "dce", "drop_states"
#define TO_PLANNED "alias", "plan_memory", "check_plan"

static const char *const pte_tail[] = {
    TO_CORE, FUSE, "pack_heads", SIMPLIFY, "fold_layer_norm", QUANTIZE, "center_norms",
    "split_linear", "fold_scale", "dce", "partition",
    /* the second decompose: what was whole for backends to take and for tile to cut */
    "widen_halves", "conv_to_linear", "tile", "decompose", SIMPLIFY, "tile_rows", "fit_kernels",
    "fold_constants", "guard_sizes", "to_edge", "lower_symint", "dce", "drop_states", "to_out",
    "order", "check_sizes", TO_PLANNED,
};
static const char *const c_tail[] = {
    /* the first alias: copies that outputs need join groups */
    TO_CORE, FUSE, SIMPLIFY, QUANTIZE, "fuse_integers", "dce", "widen_halves", "fold_constants",
    "fuse_weights", "dce", "drop_states", "guard_sizes", "alias", "group", "order", TO_PLANNED,
};

/* The pass that leaves each stage, as passes.def says. */
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

/* A planned program shows its tail by its groups alone. */
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

/* On the way to a .pte, symbolic numbers are computed by nodes of their own (lower_symint). */
static bool is_planned_for_pte(const Program *p)
{
    for (int i = 0; i < p->n_methods; i++)
        if (reads_symbols(p->method[i]))
            return false;
    return !has_groups(p);
}

bool pipeline_of(const Program *p, Pipeline *out, Diag *d)
{
    bool to_pte = p->tail == TAIL_PTE;
    Pipeline all = to_pte ? (Pipeline){pte_tail, sizeof pte_tail / sizeof *pte_tail}
                          : (Pipeline){c_tail, sizeof c_tail / sizeof *c_tail};
    int skip = p->stage == STAGE_ATEN ? 0 : after(pass_to[p->stage], all);
    bool is_planned = p->stage == STAGE_PLANNED && p->n_methods;
    if (skip < 0 || (is_planned && !(to_pte ? is_planned_for_pte(p) : has_groups(p))))
        return diag_error(d, (Loc){.file = p->name}, "is at stage %s of the way to %s, not to %s",
                          stage_name[p->stage], to_pte ? "C" : "a .pte", to_pte ? "a .pte" : "C");
    *out = (Pipeline){all.pass + skip, all.n - skip};
    return true;
}

bool pipeline_to_partition(const Program *p, Pipeline *out, Diag *d)
{
    if (p->stage > STAGE_CORE)
        return diag_error(d, (Loc){.file = p->name}, "is at stage %s: backends are asked at core",
                          stage_name[p->stage]);
    if (!pipeline_of(p, out, d))
        return false;
    out->n = after("partition", *out);
    return true;
}

bool pipeline_to_quantize(const Program *p, Pipeline *out, Diag *d)
{
    if (p->stage > STAGE_CORE)
        return diag_error(d, (Loc){.file = p->name}, "is at stage %s: ranges are of core",
                          stage_name[p->stage]);
    if (!pipeline_of(p, out, d))
        return false;
    out->n = after("quantize", *out);
    return true;
}

Pipeline pipeline_to_core(void)
{
    Pipeline all = {pte_tail, sizeof pte_tail / sizeof *pte_tail};
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
                                "pass '%s' wants a program that is past "
                                "stage aten: run %s before it",
                                pass[i], pass_to[STAGE_CORE]);
    }
    return ok;
}
