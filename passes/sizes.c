/* sizes.c -- computes sizes at run time with sym_size and prim ops.
 *
 * A symbol is computed from the first input with a size scale * symbol + offset, or a node
 * defines it as the element of a tensor.  Sizes that depend only on inputs are computed before
 * the graph's first node, so that reading a size keeps no input alive.  Sizes that depend on a
 * node's result are computed where they are first needed.  Each expression is computed once. */
#include "ir/table.h"
#include "passes/internal.h"

typedef struct Operand { /* the operand of a prim op: a value or a number */
    Value *v;
    int64_t i;
} Operand;

struct Sizes {
    Graph *g;
    Arena *tmp;
    Diag *d;
    Node *last;       /* the last node that was put before the graph's first one */
    Value **symbol;   /* by symbol index; NULL: not computed yet */
    bool *is_late;    /* by symbol index: a node defines it */
    Value ***read;    /* by input and axis */
    Table known;      /* from the address of an Expr to its Value */
    Node *use; /* the node that needs the size */
};

Sizes *sizes_new(Graph *g, Arena *tmp, Diag *d)
{
    Sizes *s = NEW(tmp, Sizes, 1);
    *s = (Sizes){.g = g, .tmp = tmp, .d = d, .known = {.arena = tmp}};
    s->symbol = NEW(tmp, Value *, g->program->n_syms + 1);
    s->is_late = NEW(tmp, bool, g->program->n_syms + 1);
    s->read = NEW(tmp, Value **, g->n_in + 1);
    for (int i = 0; i < g->n_in; i++)
        s->read[i] = NEW(tmp, Value *, MAX_RANK);
    return s;
}

/* -- what is known ----------------------------------------------------------------------------- */

/* Returns the value of an expression that was computed before, or NULL.  Equal expressions have the
 * same address. */
static Value *find_known(const Sizes *s, const Expr *e)
{
    return e ? table_find(&s->known, &e, sizeof e) : NULL;
}

static void note_known(Sizes *s, const Expr *e, Value *v)
{
    if (e)
        table_at_copy(&s->known, &e, sizeof e)->ptr = v;
}

static void note_late(const Symbol *symbol, void *sizes)
{
    const Sizes *s = sizes;
    if (s->is_late[symbol->index])
        s->is_late[s->g->program->n_syms] = true;
}

static bool is_late(Sizes *s, Dim d)
{
    bool *any = &s->is_late[s->g->program->n_syms];
    *any = false;
    dim_symbols(d, note_late, s);
    return *any;
}

void sizes_learn(Sizes *s, Value *v)
{
    const Symbol *symbol;
    int64_t scale, offset;
    if (v->type.rank != SCALAR || v->type.is_none || !v->type.dim ||
        !dim_is_linear(*v->type.dim, &symbol, &scale, &offset) || scale != 1 || offset ||
        s->symbol[symbol->index])
        return;
    s->symbol[symbol->index] = v;
    s->is_late[symbol->index] = true;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static Node *place(Sizes *s, Dim d)
{
    if (is_late(s, d))
        return s->use;
    return s->last ? s->last->next : s->g->first;
}

static Value *made(Sizes *s, Dim d, Node *n)
{
    if (!n)
        return NULL;
    if (!is_late(s, d))
        s->last = n;
    if (d.expr)
        n->out[0]->type = type_size(s->g->program, d);
    return n->out[0];
}

typedef enum Prim { ADD, SUB, MUL, DIV, LEAST, MOST } Prim;

static Value *prim(Sizes *s, Prim what, Dim d, Operand a, Operand b)
{
    static const OpId of[] = {OP_PRIM_ADD, OP_PRIM_SUB, OP_PRIM_MUL, OP_PRIM_FLOORDIV, OP_PRIM_MIN,
                              OP_PRIM_MAX};
    OpId op = of[what];
    Node *at = place(s, d), *n;
    Loc loc = s->use ? s->use->loc : (Loc){.file = s->g->program->name};
    if (a.v && b.v)
        n = build(s->g, at, loc, op, s->d, "vv", a.v, b.v);
    else if (a.v)
        n = build(s->g, at, loc, op, s->d, "vi", a.v, b.i);
    else
        n = build(s->g, at, loc, op, s->d, "iv", a.i, b.v);
    return made(s, d, n);
}

Value *sizes_read(Sizes *s, int input, int axis)
{
    assert(input < s->g->n_in && axis < s->g->in[input]->type.rank);
    Value **at = &s->read[input][axis], *v = s->g->in[input];
    Dim d = v->type.dim[axis];
    Node *before = s->last ? s->last->next : s->g->first;
    Loc loc = {.file = s->g->program->name, .node = v->name};
    if (!*at) {
        Node *n = build(s->g, before, loc, OP_SYM_SIZE, s->d, "vi", v, (int64_t)axis);
        *at = made(s, d, n);
        s->last = n ? n : s->last;
    }
    return *at;
}

/* -- symbols ----------------------------------------------------------------------------------- */

bool sizes_source(const Sizes *s, const Symbol *symbol, int *input, int *axis)
{
    const Graph *g = s->g;
    const Symbol *found;
    int64_t scale, offset, best = INT64_MAX;
    for (int i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i]->type.rank; k++)
            if (dim_is_linear(g->in[i]->type.dim[k], &found, &scale, &offset) && found == symbol &&
                scale < best) {
                best = scale;
                *input = i;
                *axis = k;
            }
    return best != INT64_MAX;
}

static Value *symbol_value(Sizes *s, const Symbol *symbol)
{
    Value **at = &s->symbol[symbol->index];
    int64_t scale, offset;
    int input, axis;
    if (*at || !sizes_source(s, symbol, &input, &axis))
        return *at;
    Program *p = s->g->program;
    Value *v = sizes_read(s, input, axis);
    Dim d = s->g->in[input]->type.dim[axis];
    dim_is_linear(d, &symbol, &scale, &offset);
    if (v && offset)
        v = prim(s, SUB, dim_sub(p, d, DIM(offset)), (Operand){v, 0},
                 (Operand){NULL, offset});
    if (v && scale != 1)
        v = prim(s, DIV, dim_symbol(p, symbol), (Operand){v, 0},
                 (Operand){NULL, scale});
    return *at = v;
}

/* -- expressions ------------------------------------------------------------------------------- */

static Value *value_of(Sizes *s, Dim d);

static bool operand(Sizes *s, Dim d, Operand *out)
{
    *out = (Operand){NULL, d.value};
    if (d.expr)
        out->v = value_of(s, d);
    return !d.expr || out->v;
}

static Dim factor_size(Program *p, Factor f)
{
    switch (f.kind) {
    case F_SYMBOL:
        return dim_symbol(p, f.symbol);
    case F_FLOORDIV:
        return dim_floordiv(p, f.a, f.b);
    case F_MOD:
        return dim_mod(p, f.a, f.b);
    case F_MAX:
        return dim_max(p, f.a, f.b);
    case F_MIN:
        return dim_min(p, f.a, f.b);
    }
    UNREACHABLE();
}

/* Builds a mod b as a - floor(a / b) * b. */
static Value *mod_value(Sizes *s, Factor f, Operand a, Operand b)
{
    Program *p = s->g->program;
    Dim mod = dim_mod(p, f.a, f.b);
    Value *q = prim(s, DIV, dim_floordiv(p, f.a, f.b), a, b);
    Value *m = q ? prim(s, MUL, dim_sub(p, f.a, mod), (Operand){q, 0}, b) : NULL;
    return m ? prim(s, SUB, mod, a, (Operand){m, 0}) : NULL;
}

static Value *factor_value(Sizes *s, Factor f, Dim size)
{
    Operand a, b;
    if (f.kind == F_SYMBOL)
        return symbol_value(s, f.symbol);
    Value *known = find_known(s, size.expr);
    if (known)
        return known;
    if (!operand(s, f.a, &a) || !operand(s, f.b, &b))
        return NULL;
    Prim what = f.kind == F_MAX ? MOST : f.kind == F_MIN ? LEAST : DIV;
    Value *v = f.kind == F_MOD ? mod_value(s, f, a, b) : prim(s, what, size, a, b);
    if (v)
        note_known(s, size.expr, v);
    return v;
}

/* Builds the product of n factors of a term, without its coefficient. */
static Value *product(Sizes *s, Dim d, int term, int n, Dim *size)
{
    Program *p = s->g->program;
    Value *all = NULL;
    *size = DIM(1);
    for (int k = 0; k < n; k++) {
        Factor f = dim_factor(d, term, k);
        Dim one = factor_size(p, f);
        Value *v = factor_value(s, f, one);
        *size = dim_mul(p, *size, one);
        if (v && all)
            v = prim(s, MUL, *size, (Operand){all, 0}, (Operand){v, 0});
        if (!(all = v))
            return NULL;
    }
    return all;
}

static Value *sum(Sizes *s, Dim d)
{
    Program *p = s->g->program;
    int64_t constant, c;
    int n_terms = dim_terms(d, &constant);
    Value *all = NULL;
    Dim size = DIM(0), part;
    for (int i = 0; i < n_terms; i++) {
        int n = dim_term(d, i, &c);
        Value *v = product(s, d, i, n, &part);
        part = dim_mul(p, part, DIM(c));
        size = dim_add(p, size, part);
        bool minus = c == -1 && all;
        if (v && c != 1 && !minus)
            v = prim(s, MUL, part, (Operand){v, 0}, (Operand){NULL, c});
        if (v && all)
            v = prim(s, minus ? SUB : ADD, size, (Operand){all, 0},
                     (Operand){v, 0});
        if (!(all = v))
            return NULL;
    }
    return constant ? prim(s, ADD, d, (Operand){all, 0}, (Operand){NULL, constant}) : all;
}

/* Reads a size from an input that has exactly this size; NULL: there is none. */
static Value *read_whole(Sizes *s, Dim d)
{
    for (int i = 0; i < s->g->n_in; i++)
        for (int k = 0; k < s->g->in[i]->type.rank; k++)
            if (dim_equal(s->g->in[i]->type.dim[k], d))
                return sizes_read(s, i, k);
    return NULL;
}

/* Returns the value of d, or NULL if no input defines its symbols. */
static Value *value_of(Sizes *s, Dim d)
{
    Value *known = find_known(s, d.expr);
    if (known)
        return known;
    Value *v = is_late(s, d) ? NULL : read_whole(s, d);
    v = v ? v : sum(s, d);
    if (v)
        note_known(s, d.expr, v);
    return v;
}

Value *sizes_computed(Sizes *s, Dim d)
{
    return sum(s, d);
}

/* Reads the size from an operand of the node that needs it, since no input defines it. */
static Value *read_operand(Sizes *s, Dim d)
{
    assert(s->use);
    for (int i = 0; i < s->use->n_in; i++)
        for (int k = 0; k < s->use->in[i]->type.rank; k++)
            if (dim_equal(s->use->in[i]->type.dim[k], d)) {
                Node *n = build(s->g, s->use, s->use->loc, OP_SYM_SIZE, s->d, "vi", s->use->in[i],
                                (int64_t)k);
                return n ? n->out[0] : NULL;
            }
    return NULL;
}

Value *sizes_value(Sizes *s, Node *use, Dim d)
{
    int errors = diag_errors(s->d);
    s->use = use;
    Value *v = value_of(s, d);
    v = v || !use ? v : read_operand(s, d);
    if (!v && diag_errors(s->d) == errors)
        diag_unsupported(s->d, use ? use->loc : (Loc){.file = s->g->program->name},
                         "no input gives the size %s", dim_text(s->g->program, d));
    return v;
}
