/* guard_sizes.c -- makes guards of what the nodes assume about symbolic sizes.
 *
 * Any stage before lower_symint, which replaces sizes by computed numbers.  It changes no node.
 * The guards of the model itself were made when it was loaded (program_guard).  This pass adds
 * those of nodes that passes have made since, before check_sizes or emitted C checks them all.
 *
 * A number that is computed from sizes is refused if it may leave 64 bits within their bounds. */
#include "passes/internal.h"

static void ask_for_bounds(const Symbol *s, void *ctx)
{
    bool *are_bounded = ctx;
    *are_bounded = *are_bounded && s->lo != INT64_MIN && s->hi != INT64_MAX;
}

/* Returns whether n can be computed if all symbols have their least or their greatest values. */
static bool is_computed_at_bounds(const Program *p, Dim n)
{
    Arena *tmp = arena_new();
    int64_t *lo = NEW(tmp, int64_t, p->n_syms + 1), *hi = NEW(tmp, int64_t, p->n_syms + 1), v;
    for (int i = 0; i < p->n_syms; i++) {
        lo[i] = p->sym[i]->lo;
        hi[i] = p->sym[i]->hi;
    }
    bool ok = dim_eval(n, lo, &v) && dim_eval(n, hi, &v);
    arena_free(tmp);
    return ok;
}

static bool fits(Program *p, Dim n, Loc loc, Diag *d)
{
    int64_t lo, hi;
    bool are_bounded = n.expr != NULL;
    dim_symbols(n, ask_for_bounds, &are_bounded);
    dim_range(n, &lo, &hi);
    if (!are_bounded || (lo != INT64_MIN && hi != INT64_MAX) || is_computed_at_bounds(p, n))
        return true;
    return diag_error(d, loc, "%s may need more than 64 bits within the bounds of its sizes", dim_text(p, n));
}

static bool arg_fits(Program *p, const Arg *a, Loc loc, Diag *d)
{
    bool ok = a->kind != ARG_INT || fits(p, a->dim, loc, d);
    for (int i = 0; a->kind == ARG_LIST && i < a->list.n; i++)
        ok = arg_fits(p, &a->list.item[i], loc, d) && ok;
    return ok;
}

static bool graph_fits(const Graph *g, Diag *d)
{
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_args; i++)
            ok = arg_fits(g->program, &n->arg[i], n->loc, d) && ok;
        for (const Graph *inner = NULL; (inner = region_next(n, inner));)
            ok = graph_fits(inner, d) && ok;
    }
    return ok;
}

static bool numbers_fit(Program *p, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < p->n_guards; i++)
        ok = fits(p, p->guard[i].size, (Loc){.file = p->name}, d) && ok;
    for (int i = 0; i < p->n_methods; i++)
        ok = graph_fits(p->method[i], d) && ok;
    return ok;
}

bool pass_guard_sizes(Program *p, Arena *tmp, Diag *d)
{
    (void)tmp;
    return !p->n_syms || (program_guard(p, d) && numbers_fit(p, d));
}
