/* check_sizes.c -- a .pte checks the sizes of its inputs before it computes anything.
 *
 * Stage edge, pte tail, after order.  The runtime holds an input's number of elements against its
 * bound, not each size, nor sizes against one another.  So each open size of an input is held
 * against its range and, where it does not itself tell a symbol, against its expression; what the
 * export assumed of the symbols beside (guards) follows.  Emitted C checks the same at its entry.
 */
#include "passes/internal.h"
#include <inttypes.h>
#include <string.h>

typedef struct Checks {
    Graph *g;
    Sizes *sizes;
    Diag *d;
    Node *first; /* the graph's first node as it came: checks stand before it */
    Node *late;  /* before it every symbol is known that a node tells */
    bool *known; /* by symbol index: this graph can tell it */
    bool *is_late;
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
    if (hi == INT64_MAX)
        return arena_printf(p->arena, "%" PRId64 " or more", lo);
    return arena_printf(p->arena, "%" PRId64 " to %" PRId64, lo, hi);
}

/* A size as the export wrote it, without the IR's '%'. */
static const char *size_text(Program *p, Dim d)
{
    const char *from = dim_text(p, d);
    char *text = NEW(p->arena, char, strlen(from) + 1), *to = text;
    for (; *from; from++)
        if (*from != '%')
            *to++ = *from;
    return text;
}

/* -- inputs ------------------------------------------------------------------------------------ */

/* Whether some symbol is read here; if so, whether any size would do for it. */
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
    Value *want = v && !is_any ? sizes_computed(c->sizes, d) : NULL;
    int64_t lo, hi;
    const char *where = arena_printf(p->arena, "dimension %d of input '%s'", axis,
                                     c->g->in[input]->name);
    const char *size = size_text(p, d);
    dim_range(d, &lo, &hi);
    if (v && (!want || tells))
        check_range(c, c->first, v, lo, hi,
                    arena_printf(p->arena, "%s (%s) must be %s", where, size,
                                 range_text(p, lo, hi)));
    if (want && want != v)
        check_equal(c, c->first, v, want, arena_printf(p->arena, "%s must be %s", where, size));
}

/* -- symbols that nodes tell, guards ----------------------------------------------------------- */

static void find_symbols(Checks *c)
{
    const Program *p = c->g->program;
    const Symbol *s;
    int64_t scale, offset;
    int input, axis;
    for (int i = 0; i < p->n_syms; i++)
        c->known[i] = sizes_source(c->sizes, p->sym[i], &input, &axis);
    for (Node *n = c->g->first; n; n = n->next) {
        Value *v = n->op == OP_LOCAL_SCALAR_DENSE ? n->out[0] : NULL;
        if (!v || !v->type.dim || !dim_is_linear(*v->type.dim, &s, &scale, &offset) || scale != 1 ||
            offset || c->known[s->index])
            continue;
        sizes_learn(c->sizes, v);
        c->known[s->index] = c->is_late[s->index] = true;
        c->late = n->next;
    }
}

static void check_items(Checks *c)
{
    Program *p = c->g->program;
    const Symbol *s;
    int64_t scale, offset;
    for (Node *n = c->g->first, *next; n; n = next) {
        next = n->next;
        Value *v = n->op == OP_LOCAL_SCALAR_DENSE ? n->out[0] : NULL;
        if (v && v->type.dim && dim_is_linear(*v->type.dim, &s, &scale, &offset) && scale == 1 &&
            !offset)
            check_range(c, next, v, s->lo, s->hi,
                        arena_printf(p->arena, "the element of '%s' (%s) must be %s",
                                     n->in[0]->name, s->name, range_text(p, s->lo, s->hi)));
    }
}

typedef struct Asked {
    const Checks *c;
    bool unknown, late;
} Asked;

static void ask(const Symbol *s, void *ctx)
{
    Asked *a = ctx;
    a->unknown = a->unknown || !a->c->known[s->index];
    a->late = a->late || a->c->is_late[s->index];
}

/* A guard whose symbols this graph cannot tell is another method's. */
static void check_guard(Checks *c, const Guard *guard)
{
    Asked a = {.c = c};
    dim_symbols(guard->size, ask, &a);
    if (a.unknown || !guard->size.expr)
        return;
    Node *at = a.late ? c->late : c->first;
    Value *v = sizes_value(c->sizes, at, guard->size);
    if (v)
        check_range(c, at, v, guard->lo, guard->hi,
                    arena_printf(c->g->program->arena, "the model was exported for %s",
                                 guard->text));
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
    if (!g->name || p->tail != TAIL_PTE || !has_symbols(g) || !g->first)
        return true;
    Checks c = {.g = g, .sizes = sizes_new(g, tmp, d), .d = d, .first = g->first,
                .known = NEW(tmp, bool, p->n_syms + 1), .is_late = NEW(tmp, bool, p->n_syms + 1)};
    find_symbols(&c);
    for (int i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i]->type.rank; k++)
            if (g->in[i]->type.dim[k].expr)
                check_size(&c, i, k);
    check_items(&c);
    for (int i = 0; i < p->n_guards; i++)
        check_guard(&c, &p->guard[i]);
    return diag_errors(d) == errors;
}
