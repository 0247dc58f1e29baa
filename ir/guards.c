/* guards.c -- makes guards of the program from what infer rules assume about symbolic sizes.
 *
 * If a rule needs two sizes to be equal, or one to be at least another, and this does not hold for
 * all values of the symbols, it assumes so.  program_guard runs every rule and records each
 * assumption once, as lo <= sum <= hi; the sum has no constant and its first term is positive.  For
 * each sum there is at most one such guard of each kind: equal, at least, at most.  An assumption
 * that a guard of the export implies is left out.
 *
 * Assumptions of a branch hold for the whole call: a guard is checked as soon as its symbols are
 * known, whichever branch is taken. */
#include "ir/internal.h"
#include <inttypes.h>
#include <string.h>

typedef struct Fact {
    const Expr *sum; /* NULL: an empty row */
    int64_t lo, hi;
    int guard; /* in the program */
} Fact;

struct Assumptions {
    Arena *tmp;
    Diag *d;
    Fact *row; /* open addressing by sum and kind, at most half full */
    int n, cap;
    int n_given; /* the number of guards before program_guard; the later ones were made here */
};

/* -- facts ------------------------------------------------------------------------------------- */

static unsigned kind_of(const Fact *f)
{
    return (unsigned)(f->lo != INT64_MIN) + 2 * (unsigned)(f->hi != INT64_MAX);
}

static Fact *find(const Assumptions *a, const Fact *f)
{
    uint64_t mask = (uint64_t)a->cap - 1,
             i = (((uintptr_t)f->sum >> 4) * 0x9e3779b97f4a7c15u >> 32) + kind_of(f);
    assert(a->n < a->cap);
    while (a->row[i & mask].sum &&
           (a->row[i & mask].sum != f->sum || kind_of(&a->row[i & mask]) != kind_of(f)))
        i++;
    return &a->row[i & mask];
}

static void make_room(Assumptions *a)
{
    if (2 * (a->n + 1) <= a->cap)
        return;
    Assumptions bigger = *a;
    bigger.cap = a->cap ? 2 * a->cap : 32;
    bigger.row = NEW(a->tmp, Fact, bigger.cap);
    for (int i = 0; i < a->cap; i++)
        if (a->row[i].sum)
            *find(&bigger, &a->row[i]) = a->row[i];
    *a = bigger;
}

static void put_fact(Assumptions *a, const Fact *f)
{
    make_room(a);
    Fact *at = find(a, f);
    a->n += !at->sum;
    *at = *f;
}

static bool is_within(const Fact *f, const Fact *wanted)
{
    return f->sum && wanted->lo <= f->lo && f->hi <= wanted->hi;
}

static int64_t shifted(int64_t v, int64_t by)
{
    int64_t sum;
    if (v == INT64_MIN || v == INT64_MAX)
        return v;
    return add_ok(v, by, &sum) ? sum : by < 0 ? INT64_MIN : INT64_MAX;
}

/* Returns lo <= d <= hi as a fact, and sets *d to the sum of that fact. */
static Fact fact_of(Program *p, Dim *d, int64_t lo, int64_t hi)
{
    int64_t constant, first;
    Dim sum = *d;
    assert(d->expr);
    dim_terms(sum, &constant);
    if (constant != INT64_MIN) {
        sum = dim_sub(p, sum, DIM(constant));
        lo = shifted(lo, -constant);
        hi = shifted(hi, -constant);
    }
    dim_term(sum, 0, &first);
    Dim minus = dim_sub(p, DIM(0), sum);
    if (first < 0 && minus.expr && lo != INT64_MIN + 1 && hi != INT64_MIN + 1) {
        int64_t least = hi == INT64_MAX ? INT64_MIN : -hi;
        hi = lo == INT64_MIN ? INT64_MAX : -lo;
        lo = least;
        sum = minus;
    }
    *d = sum;
    return (Fact){.sum = sum.expr, .lo = lo, .hi = hi};
}

/* -- assumptions ------------------------------------------------------------------------------- */

/* Returns a text such as "s0 == s1 in node 'add' (aten.add.Tensor)". */
static const char *text_of(Program *p, const Node *n, Dim a, bool is_equal, Dim b)
{
    bool is_upper = !is_equal && !a.expr;
    const char *what = arena_printf(p->arena, "%s %s %s", size_text(p, is_upper ? b : a),
                                    is_equal ? "==" : is_upper ? "<=" : ">=",
                                    size_text(p, is_upper ? a : b));
    if (!n)
        return what;
    const char *op = n->loc.op ? n->loc.op : node_target(n);
    return n->loc.node ? arena_printf(p->arena, "%s in node '%s' (%s)", what, n->loc.node, op)
                       : arena_printf(p->arena, "%s in %s", what, op);
}

static bool is_known(const Assumptions *a, const Fact *f)
{
    Fact equal = {.sum = f->sum}; /* lo and hi are 0, so find() looks for the kind `equal` */
    return a->cap && (is_within(find(a, f), f) || is_within(find(a, &equal), f));
}

void program_assume(Program *p, const Node *n, Dim a, bool is_equal, Dim b)
{
    Assumptions *all = p->assumed;
    Dim over = all ? dim_expand(p, dim_sub(p, a, b)) : DIM(0);
    if (!over.expr)
        return;
    Fact f = fact_of(p, &over, 0, is_equal ? 0 : INT64_MAX);
    if (is_known(all, &f))
        return;
    make_room(all);
    const Fact *old = find(all, &f);
    Guard g = {over, f.lo, f.hi, text_of(p, n, a, is_equal, b)};
    Loc loc = n ? n->loc : (Loc){.file = p->name};
    f.guard = p->n_guards;
    if (old->sum && is_equal && old->lo == old->hi) {
        f.guard = old->guard;
        diag_error(all->d, loc, "%s cannot hold where %s does", text_of(p, NULL, a, true, b),
                   p->guard[old->guard].text);
    } else if (old->sum && !is_equal && old->guard >= all->n_given) {
        f.guard = old->guard; /* g implies the old guard and replaces it */
        p->guard[f.guard] = g;
    } else {
        PUSH(p->arena, p->guard, p->n_guards, g);
    }
    put_fact(all, &f);
    p->edits++;
}

/* -- symbols that inputs and nodes define ------------------------------------------------------ */

/* If a node computes a number that is recorded as a size which is already defined, or as an
 * expression, the number gets a new symbol, and a guard says that both are equal. */
static void name_item(Program *p, Value *v, const Node *n, bool *is_defined, int n_syms)
{
    const Symbol *s = NULL;
    int64_t scale = 0, offset = 0, lo, hi;
    if (v->type.rank != SCALAR || v->type.dtype != ETC_I64 || !v->type.dim)
        return;
    Dim d = *v->type.dim;
    bool is_plain = dim_is_linear(d, &s, &scale, &offset) && scale == 1 && !offset;
    if (is_plain && (s->index >= n_syms || !is_defined[s->index])) {
        if (s->index < n_syms)
            is_defined[s->index] = true;
        return;
    }
    dim_range(d, &lo, &hi);
    s = program_symbol(p, arena_printf(p->arena, "%s.element", arg_value(n, "self")->name), lo, hi);
    value_set_type(v, type_size(p, dim_symbol(p, s)));
    program_assume(p, n, dim_symbol(p, s), true, d);
}

static void name_items(Graph *g, bool *is_defined, int n_syms)
{
    for (const Node *n = NULL; (n = walk_next(g, n));)
        if (n->op == OP_LOCAL_SCALAR_DENSE)
            name_item(g->program, n->out[0], n, is_defined, n_syms);
}

static void define_by_inputs(const Graph *g, bool *is_defined)
{
    const Symbol *s;
    int64_t scale, offset;
    for (int i = 0; i < g->n_in; i++) {
        const Type *t = &g->in[i]->type;
        int n = t->rank == SCALAR && t->dim ? 1 : t->rank;
        for (int k = 0; k < n; k++)
            if (dim_is_linear(t->dim[k], &s, &scale, &offset))
                is_defined[s->index] = true;
    }
}

static void define_symbol(const Symbol *s, void *is_defined)
{
    ((bool *)is_defined)[s->index] = true;
}

/* Marks the symbols that are data-dependent sizes of results.  Decompose adds nodes that compute
 * them as numbers, so later name_items() finds them. */
static void define_by_results(Graph *g, bool *is_defined)
{
    for (const Node *n = NULL; (n = walk_next(g, n));)
        for (int i = 0; g->program->stage == STAGE_ATEN && i < n->n_out; i++)
            for (int k = 0; op_info[n->op].flags & DATA_SIZES && k < n->out[i]->type.rank; k++)
                dim_symbols(n->out[i]->type.dim[k], define_symbol, is_defined);
}

typedef struct Undefined {
    const bool *is_defined; /* by symbol index: an input or a node defines the symbol */
    int n_syms;
    const Symbol *symbol; /* the first that nothing defines, or NULL */
} Undefined;

static void find_undefined(const Symbol *s, void *ctx)
{
    Undefined *u = ctx;
    if (!u->symbol && s->index < u->n_syms && !u->is_defined[s->index])
        u->symbol = s;
}

/* Reports results with a size that neither an input nor a node defines: no guard could check
 * what the rules assume about it. */
static bool check_defined(const Graph *g, const bool *is_defined, int n_syms, Diag *d)
{
    bool ok = true;
    for (const Node *n = NULL; (n = walk_next(g, n));) {
        Undefined u = {is_defined, n_syms, NULL};
        for (int i = 0; i < n->n_out; i++)
            for (int k = 0; k < n->out[i]->type.rank; k++)
                dim_symbols(n->out[i]->type.dim[k], find_undefined, &u);
        if (u.symbol)
            ok = diag_error(d, n->loc, "no input and no node gives the size %%%s of its result",
                            u.symbol->name);
    }
    return ok;
}

/* -- programs ---------------------------------------------------------------------------------- */

/* Infer rules assume that the sizes of inputs are sizes of tensors, so these are at least 0. */
static void assume_inputs(const Graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i]->type.rank; k++) {
            Dim d = g->in[i]->type.dim[k];
            int64_t lo, hi;
            dim_range(d, &lo, &hi);
            if (lo < 0)
                program_assume(g->program, NULL, d, false, DIM(0));
        }
}

static void take_guards(Program *p)
{
    for (int i = 0; i < p->n_guards; i++) {
        Guard g = p->guard[i];
        if (!g.size.expr)
            continue;
        Fact f = fact_of(p, &g.size, g.lo, g.hi);
        f.guard = i;
        if (f.sum && !is_known(p->assumed, &f))
            put_fact(p->assumed, &f);
    }
}

bool program_guard(Program *p, Diag *d)
{
    int errors = diag_errors(d), n_syms = p->n_syms;
    bool ok = true;
    Arena *tmp = arena_within(p->arena);
    Assumptions all = {.tmp = tmp, .d = d, .n_given = p->n_guards};
    assert(!p->assumed);
    p->assumed = n_syms ? &all : NULL;
    if (n_syms)
        take_guards(p);
    for (int i = 0; i < p->n_methods; i++) {
        bool *is_defined = NEW(tmp, bool, n_syms + 1);
        define_by_inputs(p->method[i], is_defined);
        if (n_syms)
            name_items(p->method[i], is_defined, n_syms);
        define_by_results(p->method[i], is_defined);
        ok = (!n_syms || check_defined(p->method[i], is_defined, n_syms, d)) && ok;
        assume_inputs(p->method[i]);
        ok = graph_infer(p->method[i], d) && ok;
    }
    p->assumed = NULL;
    arena_free(tmp);
    return ok && diag_errors(d) == errors;
}
