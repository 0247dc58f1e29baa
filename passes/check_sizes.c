/* check_sizes.c -- makes a .pte check the sizes of its inputs before it computes anything.
 *
 * Stage edge, pte tail, after order.  For an input with symbolic sizes the runtime checks only
 * the number of elements, neither each size nor sizes against each other.  So this pass adds
 * nodes that compare each size of such an input with its range and, unless the symbol is read
 * from it, with its expression.  The guards of the symbols follow.  If a symbol is a number that
 * a node computes, the check comes after that node, also in a branch.  Emitted C checks the
 * same, except for sizes without symbols, which the caller does not pass. */
#include "passes/internal.h"
#include "ir/session.h"
#include <inttypes.h>
#include <stdlib.h>

typedef struct Checks {
    Graph *g;
    Sizes *sizes;
    Diag *d;
    Arena *tmp;
    Node *first; /* the graph's first node; checks at the entry come before it */
    int *when;   /* by symbol: 0 at the entry, k after the k-th node that defines one, -1 never */
    Node **behind; /* by that number: checks come before this node */
    int n_behind;
} Checks;

static Arg bound(int64_t v)
{
    bool is_open = v == INT64_MIN || v == INT64_MAX;
    return (Arg){.kind = is_open ? ARG_NONE : ARG_INT, .dim = DIM(is_open ? 0 : v)};
}

static Node *check_new(Checks *c, Value *v)
{
    Node *n = node_new(c->g, OP_CHECK_RANGE, (Loc){.file = c->g->program->name});
    node_push(n, node_use(n, v));
    return n;
}

static void check_range(Checks *c, Node *at, Value *v, int64_t lo, int64_t hi, const char *text)
{
    Node *n = check_new(c, v);
    node_push(n, bound(lo));
    node_push(n, bound(hi));
    node_push(n, (Arg){.kind = ARG_STRING, .str = text});
    graph_insert(c->g, at, n);
}

static void check_equal(Checks *c, Node *at, Value *v, Value *want, const char *text)
{
    Node *n = check_new(c, v);
    node_push(n, node_use(n, want));
    node_push(n, node_use(n, want));
    node_push(n, (Arg){.kind = ARG_STRING, .str = text});
    graph_insert(c->g, at, n);
}

/* -- texts ------------------------------------------------------------------------------------- */

static const char *range_text(Program *p, int64_t lo, int64_t hi)
{
    if (lo == hi)
        return arena_printf(p->arena, "%" PRId64, lo);
    if (hi == INT64_MAX)
        return arena_printf(p->arena, "%" PRId64 " or more", lo);
    return arena_printf(p->arena, "%" PRId64 " to %" PRId64, lo, hi);
}

/* -- inputs ------------------------------------------------------------------------------------ */

/* Returns whether a symbol is read from this size.  *is_any: every size in the range is a value
 * of the symbol, so nothing else need be checked. */
static bool is_source(const Checks *c, int input, int axis, bool *is_any)
{
    const Symbol *s;
    int64_t scale = 0, offset;
    int from = -1, at = -1;
    bool is_linear = dim_is_linear(c->g->in[input]->type.dim[axis], &s, &scale, &offset);
    bool found = is_linear && sizes_source(c->sizes, s, &from, &at) && from == input && at == axis;
    *is_any = found && scale == 1;
    return found;
}

static void check_size(Checks *c, int input, int axis)
{
    Program *p = c->g->program;
    Dim d = c->g->in[input]->type.dim[axis];
    Value *v = sizes_read(c->sizes, input, axis);
    bool is_any, tells = is_source(c, input, axis, &is_any);
    Value *want = v && d.expr && !is_any ? sizes_computed(c->sizes, d) : NULL;
    int64_t lo, hi;
    const char *where = arena_printf(p->arena, "dimension %d of input '%s'", axis,
                                     c->g->in[input]->name);
    const char *size = size_text(p, d), *name = d.expr ? arena_printf(p->arena, " (%s)", size) : "";
    dim_range(d, &lo, &hi);
    if (v && (!want || tells))
        check_range(c, c->first, v, lo, hi,
                    arena_printf(p->arena, "%s%s must be %s", where, name, range_text(p, lo, hi)));
    if (want && want != v)
        check_equal(c, c->first, v, want, arena_printf(p->arena, "%s must be %s", where, size));
}

/* Adds checks for the sizes of inputs that have open ones.  The runtime itself checks all
 * others. */
static void check_inputs(Checks *c)
{
    for (int i = 0; i < c->g->n_in; i++)
        for (int k = 0; k < c->g->in[i]->type.rank && !type_is_static(c->g->in[i]->type); k++)
            check_size(c, i, k);
}

/* -- symbols that nodes tell ------------------------------------------------------------------- */

static const Symbol *told_by(const Node *n)
{
    const Symbol *s;
    int64_t scale, offset;
    const Dim *d = n->op == OP_LOCAL_SCALAR_DENSE ? n->out[0]->type.dim : NULL;
    return d && dim_is_linear(*d, &s, &scale, &offset) && scale == 1 && !offset ? s : NULL;
}

static void find_symbols(Checks *c)
{
    const Program *p = c->g->program;
    int input, axis;
    PUSH(c->tmp, c->behind, c->n_behind, c->first);
    for (int i = 0; i < p->n_syms; i++)
        c->when[i] = sizes_source(c->sizes, p->sym[i], &input, &axis) ? 0 : -1;
    for (Node *n = c->g->first; n; n = n->next) {
        const Symbol *s = told_by(n);
        if (!s || c->when[s->index] >= 0)
            continue;
        sizes_learn(c->sizes, n->out[0]);
        c->when[s->index] = c->n_behind;
        PUSH(c->tmp, c->behind, c->n_behind, n->next);
    }
}

static void check_items(Checks *c)
{
    Program *p = c->g->program;
    for (Node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        const Symbol *s = told_by(n);
        if (s)
            check_range(c, next, n->out[0], s->lo, s->hi,
                        arena_printf(p->arena, "the element of '%s' (%s) must be %s",
                                     arg_value(n, "self")->name, s->name,
                                     range_text(p, s->lo, s->hi)));
    }
}

/* -- guards ------------------------------------------------------------------------------------ */

typedef struct Asked {
    const Checks *c;
    int when; /* from when on all symbols are known; -1: never */
} Asked;

static void ask(const Symbol *s, void *ctx)
{
    Asked *a = ctx;
    int when = a->c->when[s->index];
    a->when = when < 0 || a->when < 0 ? -1 : when > a->when ? when : a->when;
}

typedef struct Due {
    int when, guard;
} Due;

static int compare_due(const void *a, const void *b)
{
    const Due *x = a, *y = b;
    return x->when != y->when ? (x->when > y->when) - (x->when < y->when)
                              : (x->guard > y->guard) - (x->guard < y->guard);
}

/* Adds the guards whose symbols this graph defines; a branch adds those that only it can check.
 * They are added in the order of the graph, because one can use what was computed for another. */
static void check_guards(Checks *c)
{
    const Program *p = c->g->program;
    Due *due = NEW(c->tmp, Due, p->n_guards + 1);
    int n = 0;
    for (int i = 0; i < p->n_guards; i++) {
        Asked a = {.c = c};
        dim_symbols(p->guard[i].size, ask, &a);
        if (p->guard[i].size.expr && a.when >= (c->g->name ? 0 : 1))
            due[n++] = (Due){a.when, i};
    }
    qsort(due, (size_t)n, sizeof *due, compare_due);
    for (int i = 0; i < n; i++) {
        const Guard *guard = &p->guard[due[i].guard];
        Node *at = c->behind[due[i].when];
        Value *v = sizes_value(c->sizes, at, guard->size);
        if (v)
            check_range(c, at, v, guard->lo, guard->hi,
                        arena_printf(p->arena, "the model was exported for %s", guard->text));
    }
}

static bool has_symbols(const Graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        if (!type_is_static(g->in[i]->type))
            return true;
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == OP_LOCAL_SCALAR_DENSE)
            return true;
    return false;
}

bool pass_check_sizes(Graph *g, Arena *tmp, Diag *d)
{
    const Program *p = g->program;
    int errors = diag_errors(d);
    if (!p->session->tail->checks_when_run || !has_symbols(g) || !g->first)
        return true;
    Checks c = {.g = g, .sizes = sizes_new(g, tmp, d), .tmp = tmp, .first = g->first,
                .when = NEW(tmp, int, p->n_syms + 1)};
    find_symbols(&c);
    if (g->name)
        check_inputs(&c);
    check_items(&c);
    check_guards(&c);
    return diag_errors(d) == errors;
}
