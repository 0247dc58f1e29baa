/* guard_sizes.c -- makes guards of what the nodes assume about symbolic sizes.
 *
 * Any stage before lower_symint, which replaces sizes by computed numbers.  It changes no node.
 * The guards of the model itself were made when it was loaded (program_guard).  This pass adds
 * those of nodes that passes have made since, before check_sizes or emitted C checks them all.
 *
 * A number that is computed from sizes is refused if it may leave 64 bits within their bounds. */
#include "passes/internal.h"

enum { MOST_SYMBOLS = 10 }; /* of one number: it is computed once for each choice of their bounds */

typedef struct Bounds {
    const Symbol *sym[MOST_SYMBOLS];
    int n;
    bool are_known; /* each symbol has both */
} Bounds;

/* Notes s, and counts it even where there is no room for it. */
static void ask_for_bounds(const Symbol *s, void *ctx)
{
    Bounds *b = ctx;
    for (int i = 0; i < b->n && i < MOST_SYMBOLS; i++)
        if (b->sym[i] == s)
            return;
    b->are_known = b->are_known && s->lo != INT64_MIN && s->hi != INT64_MAX;
    if (b->n < MOST_SYMBOLS)
        b->sym[b->n] = s;
    b->n++;
}

/* Returns whether n can be computed whenever each symbol has its least or its greatest value; those
 * before sym[k] have theirs in `value`. */
static bool is_computed_at_bounds(const Bounds *b, int k, int64_t *value, Dim n)
{
    int64_t v;
    if (k == b->n)
        return dim_eval(n, value, &v);
    const Symbol *s = b->sym[k];
    value[s->index] = s->lo;
    if (!is_computed_at_bounds(b, k + 1, value, n))
        return false;
    value[s->index] = s->hi;
    return is_computed_at_bounds(b, k + 1, value, n);
}

static bool fits(Program *p, Dim n, Loc loc, Diag *d)
{
    int64_t lo, hi;
    Bounds b = {.are_known = n.expr != NULL};
    dim_symbols(n, ask_for_bounds, &b);
    dim_range(n, &lo, &hi);
    if (!b.are_known || (lo != INT64_MIN && hi != INT64_MAX))
        return true;
    Arena *tmp = arena_new();
    bool ok = b.n <= MOST_SYMBOLS &&
              is_computed_at_bounds(&b, 0, NEW(tmp, int64_t, p->n_syms + 1), n);
    arena_free(tmp);
    return ok || diag_error(d, loc, "%s may need more than 64 bits within the bounds of its sizes",
                            dim_text(p, n));
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
    for (const Node *n = NULL; (n = walk_next(g, n));)
        for (int i = 0; i < n->n_args; i++)
            ok = arg_fits(g->program, &n->arg[i], n->loc, d) && ok;
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
