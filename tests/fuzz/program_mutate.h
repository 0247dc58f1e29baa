/* program_mutate.h -- makes small changes to a program: to sizes, dtypes, symbols, literals and
 * inputs of nodes, and adds nodes.  Most of the results can be compiled.  Types are inferred again
 * after a change.  Names may occur twice and counts may be wrong; the verifier has to report that.
 */
#ifndef TESTS_FUZZ_PROGRAM_MUTATE_H
#define TESTS_FUZZ_PROGRAM_MUTATE_H

#include "ir/ir.h"
#include "tests/fuzz/draw.h"
#include <string.h>

static const EtcDtype mutate_dtypes[] = {ETC_F32,    ETC_F32,  ETC_F32, ETC_I64, ETC_I32, ETC_BOOL,
                                         ETC_F16,    ETC_BF16, ETC_F64, ETC_I8,  ETC_U8,  ETC_I16,
                                         ETC_F8E5M2, ETC_U16,  ETC_U32, ETC_U64};

/* -- picking ---------------------------------------------------------------------------------- */

static inline Node *pick_node(const Graph *g, Draw *r)
{
    int n = 0;
    for (const Node *x = g->first; x; x = x->next)
        n++;
    Node *x = g->first;
    for (int i = n ? (int)draw_below(r, (size_t)n) : 0; i > 0; i--)
        x = x->next;
    return x;
}

/* A value that node `before` may read; NULL: there is none. */
static inline Value *pick_value(const Graph *g, const Node *before, Draw *r)
{
    enum { MOST = 512 };
    Value *v[MOST];
    size_t n = 0;
    for (int i = 0; i < g->n_in && n < MOST; i++)
        v[n++] = g->in[i];
    for (int i = 0; i < g->n_states && n < MOST; i++)
        v[n++] = g->state[i];
    for (const Node *x = g->first; x && x != before; x = x->next)
        for (int i = 0; i < x->n_out && n < MOST; i++)
            v[n++] = x->out[i];
    if (!n)
        return NULL;
    return v[draw_below(r, 2) ? n - 1 - draw_below(r, n < 6 ? n : 6) : draw_below(r, n)];
}

static inline Dim pick_dim(Program *p, Draw *r)
{
    unsigned how = draw_below(r, 8);
    if (how == 0 && p->n_syms)
        return dim_symbol(p, p->sym[draw_below(r, (size_t)p->n_syms)]);
    return DIM(how == 1 ? draw_size(r) : (int64_t)draw_below(r, 10));
}

static inline int64_t pick_int(Draw *r)
{
    return draw_below(r, 4) ? (int64_t)draw_below(r, 7) - 2 : draw_int(r);
}

static inline double pick_float(Draw *r)
{
    return draw_below(r, 4) ? (draw_below(r, 17) - 8.0) / 4 : draw_double(r);
}

/* -- literals --------------------------------------------------------------------------------- */

static inline void change_literal(Program *p, Arg *a, Draw *r, int depth);

static inline void change_items(Program *p, Arg *a, Draw *r, int depth)
{
    int n = a->list.n;
    if (depth > 1 || !n || a->list.item[0].kind == ARG_VALUE)
        return;
    Arg *item = NEW(p->arena, Arg, n + 1);
    memcpy(item, a->list.item, sizeof *item * (size_t)n);
    unsigned how = draw_below(r, 4);
    if (how == 0)
        a->list.n--;
    else if (how == 1)
        item[a->list.n++] = item[n - 1];
    else
        change_literal(p, &item[draw_below(r, (size_t)n)], r, depth + 1);
    a->list.item = item;
}

static inline void change_literal(Program *p, Arg *a, Draw *r, int depth)
{
    switch (a->kind) {
    case ARG_INT:
        a->dim = draw_below(r, 4) ? DIM(pick_int(r)) : pick_dim(p, r);
        break;
    case ARG_FLOAT:
        a->f = pick_float(r);
        break;
    case ARG_BOOL:
        a->b = !a->b;
        break;
    case ARG_DTYPE:
        a->dtype = DRAW_FROM(r, mutate_dtypes);
        break;
    case ARG_NONE:
        *a = (Arg){.kind = ARG_INT, .key = a->key, .dim = DIM(pick_int(r))};
        break;
    case ARG_LIST:
        change_items(p, a, r, depth);
        break;
    default:
        break;
    }
}

/* -- types ------------------------------------------------------------------------------------ */

static inline Type resized(Program *p, Type t, int axis, Dim to)
{
    Dim *dim = NEW(p->arena, Dim, t.rank + 1);
    memcpy(dim, t.dim, sizeof *dim * (size_t)t.rank);
    dim[axis] = to;
    t.dim = dim;
    t.stride = NULL;
    return t;
}

static inline void set_state_type(Program *p, State *s, Type t)
{
    s->type = t;
    for (int i = 0; i < p->n_methods; i++)
        for (int k = 0; k < p->method[i]->n_states; k++)
            if (p->method[i]->state[k]->state == s)
                p->method[i]->state[k]->type = t;
}

static inline Type replaced(Program *p, Type t, Dim from, Dim to)
{
    for (int i = 0; i < t.rank; i++)
        if (dim_equal(t.dim[i], from))
            t = resized(p, t, i, to);
    return t;
}

/* Changes a size in all types that have it, so that shapes still match. */
static inline void change_size_everywhere(Graph *g, Draw *r)
{
    Program *p = g->program;
    const Value *v = g->n_in ? g->in[draw_below(r, (size_t)g->n_in)] : NULL;
    if (!v || v->type.rank < 1)
        return;
    Dim from = v->type.dim[draw_below(r, (size_t)v->type.rank)], to = pick_dim(p, r);
    for (int i = 0; i < g->n_in; i++)
        g->in[i]->type = replaced(p, g->in[i]->type, from, to);
    for (int i = 0; i < p->n_states; i++)
        set_state_type(p, p->state[i], replaced(p, p->state[i]->type, from, to));
}

static inline Type change_type(Program *p, Type t, Draw *r)
{
    unsigned how = draw_below(r, 4);
    if (how == 0 || t.rank < 1)
        t.dtype = DRAW_FROM(r, mutate_dtypes);
    else if (how == 1 && t.rank < MAX_RANK) {
        Dim dim[MAX_RANK] = {DIM(1)};
        memcpy(dim + 1, t.dim, sizeof *dim * (size_t)t.rank);
        t = type_tensor(p, t.dtype, t.rank + 1, dim);
    } else
        t = resized(p, t, (int)draw_below(r, (size_t)t.rank), pick_dim(p, r));
    return t;
}

static inline void change_an_end(Graph *g, Draw *r)
{
    Program *p = g->program;
    if (g->n_in && draw_below(r, 3)) {
        Value *v = g->in[draw_below(r, (size_t)g->n_in)];
        v->type = change_type(p, v->type, r);
    } else if (p->n_states) {
        State *s = p->state[draw_below(r, (size_t)p->n_states)];
        set_state_type(p, s, change_type(p, s->type, r));
    }
}

static inline void change_symbol(Program *p, Draw *r)
{
    if (!p->n_syms) {
        program_symbol(p, "s0", (int64_t)draw_below(r, 3), 2 + (int64_t)draw_below(r, 8));
        return;
    }
    Symbol *s = p->sym[draw_below(r, (size_t)p->n_syms)];
    int64_t *end = draw_below(r, 2) ? &s->lo : &s->hi;
    *end = draw_below(r, 2) ? (int64_t)draw_below(r, 20) : draw_int(r);
    if (s->lo > s->hi)
        s->lo = s->hi;
}

/* -- nodes ------------------------------------------------------------------------------------ */

static inline Arg some_list(Program *p, const SchemaArg *s, Draw *r)
{
    int n = s->list_size ? s->list_size : (int)draw_below(r, 5);
    Arg *item = NEW(p->arena, Arg, n + 1);
    for (int i = 0; i < n; i++)
        item[i] = s->type == SCH_FLOAT ? (Arg){.kind = ARG_FLOAT, .f = pick_float(r)}
                                       : (Arg){.kind = ARG_INT, .dim = DIM(pick_int(r))};
    return (Arg){.kind = ARG_LIST, .list = {item, n}};
}

static inline Arg some_literal(Program *p, const SchemaArg *s, Draw *r)
{
    if (s->has_default && draw_below(r, 4))
        return s->fallback;
    if (s->is_list)
        return some_list(p, s, r);
    switch (s->type) {
    case SCH_INT:
        return (Arg){.kind = ARG_INT, .dim = DIM(pick_int(r))};
    case SCH_FLOAT:
        return (Arg){.kind = ARG_FLOAT, .f = pick_float(r)};
    case SCH_BOOL:
        return (Arg){.kind = ARG_BOOL, .b = draw_below(r, 2)};
    case SCH_DTYPE:
        return (Arg){.kind = ARG_DTYPE, .dtype = DRAW_FROM(r, mutate_dtypes)};
    case SCH_SCALAR:
        return draw_below(r, 2) ? (Arg){.kind = ARG_INT, .dim = DIM(pick_int(r))}
                                : (Arg){.kind = ARG_FLOAT, .f = pick_float(r)};
    default:
        return s->fallback;
    }
}

static inline Arg some_tensors(Node *n, const Node *before, Draw *r)
{
    int count = 1 + (int)draw_below(r, 3);
    Arg *item = NEW(n->graph->program->arena, Arg, count);
    for (int i = 0; i < count; i++)
        item[i] = node_use(n, pick_value(n->graph, before, r));
    return (Arg){.kind = ARG_LIST, .list = {item, count}};
}

static inline void push_some(Node *n, const SchemaArg *s, const Node *before, Draw *r)
{
    Arg a;
    if (s->type != SCH_TENSOR)
        a = some_literal(n->graph->program, s, r);
    else if (s->is_list)
        a = some_tensors(n, before, r);
    else if (s->is_optional && draw_below(r, 2))
        a = (Arg){.kind = ARG_NONE};
    else
        a = node_use(n, pick_value(n->graph, before, r));
    a.key = s->is_keyword ? s->name : NULL;
    node_push(n, a);
}

/* A later node reads the result of the new node, or the graph returns it. */
static inline void use_results(Node *n, Draw *r)
{
    Graph *g = n->graph;
    for (int tries = 0; tries < 6; tries++) {
        Node *user = pick_node(g, r);
        bool is_behind = false;
        for (const Node *x = n->next; x && !is_behind; x = x->next)
            is_behind = x == user;
        if (is_behind && user->n_in) {
            unsigned slot = draw_below(r, (size_t)user->n_in);
            if (draw_below(r, 4) == 0 || type_equal(user->in[slot]->type, n->out[0]->type)) {
                node_set_in(user, (int)slot, n->out[0]);
                return;
            }
        }
    }
    for (int i = 0; i < n->n_out; i++)
        graph_add_output(g, n->out[i]);
}

static inline void add_node(Graph *g, Draw *r, Diag *d)
{
    enum { MOST_OUTS = 4 };
    OpId op = (OpId)draw_below(r, N_OPS);
    Type type[MOST_OUTS] = {{0}};
    Node *before = draw_below(r, 2) ? pick_node(g, r) : NULL, *n = node_new(g, op, (Loc){0});
    if (op == OP_CUSTOM) /* has a row of its own, or is none */
        return;
    const Schema *s = op_schema(g->program, op);
    int n_outs = s->n_outs < 0 ? 2 : s->n_outs;
    for (int i = 0; i < s->n_args; i++)
        push_some(n, &s->arg[i], before, r);
    for (int i = 0; i < n_outs && i < MOST_OUTS; i++) /* where no rule infers, types stay these */
        node_add_out(n, arena_printf(g->program->arena, "new%u.%d", draw_below(r, 65536), i),
                     n->n_in ? n->in[0]->type : type_tensor(g->program, ETC_F32, 0, NULL));
    if (!n_outs || n_outs > MOST_OUTS || !schema_check(n, d) || !op_infer(op)(n, type, d))
        return;
    for (int i = 0; i < n_outs; i++)
        n->out[i]->type = type[i];
    graph_insert(g, before, n);
    use_results(n, r);
}

static inline void rewire(Graph *g, Draw *r)
{
    Node *n = pick_node(g, r);
    Value *v = n && n->n_in ? pick_value(g, n, r) : NULL;
    if (v)
        node_set_in(n, (int)draw_below(r, (size_t)n->n_in), v);
}

static inline void change_output(Graph *g, Draw *r)
{
    Value *v = pick_value(g, NULL, r);
    if (!v)
        return;
    if (g->n_out && draw_below(r, 2))
        graph_set_output(g, (int)draw_below(r, (size_t)g->n_out), v);
    else
        graph_add_output(g, v);
}

static inline void swap_op(Graph *g, Draw *r)
{
    Node *n = pick_node(g, r);
    OpId op = (OpId)draw_below(r, N_OPS);
    if (n && op != OP_CUSTOM && op_schema(g->program, op)->n_args == n->n_args &&
        op_schema(g->program, op)->n_outs == n->n_out)
        node_set_op(n, op);
}

/* -- all of it -------------------------------------------------------------------------------- */

static inline void change_once(Graph *g, Draw *r, Diag *d)
{
    Node *n = pick_node(g, r);
    switch (draw_below(r, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (n && n->n_args)
            change_literal(g->program, &n->arg[draw_below(r, (size_t)n->n_args)], r, 0);
        break;
    case 4:
    case 5:
        change_size_everywhere(g, r);
        break;
    case 6:
        change_an_end(g, r);
        break;
    case 7:
        rewire(g, r);
        break;
    case 8:
        change_output(g, r);
        break;
    case 9:
        swap_op(g, r);
        break;
    default:
        add_node(g, r, d);
    }
}

/* Infers the types of all results; false where one cannot be. */
static inline bool retype(Graph *g, Diag *d)
{
    for (Node *n = g->first; n; n = n->next) {
        Type *out = NEW(g->program->arena, Type, n->n_out + 1);
        if (!schema_check(n, d) || !op_infer(n->op)(n, out, d))
            return false;
        for (int i = 0; i < n->n_out; i++)
            if (!n->out[i]->type.is_none)
                n->out[i]->type = out[i];
    }
    return true;
}

/* False where types of the changed program cannot be inferred. */
static inline bool program_change(Program *p, Draw *r, Diag *d)
{
    if (!p->n_methods)
        return false;
    Graph *g = p->method[draw_below(r, (size_t)p->n_methods)];
    for (unsigned i = 1 + draw_below(r, 3); i > 0; i--)
        change_once(g, r, d);
    bool ok = retype(g, d);
    if (draw_below(r, 4) == 0)
        change_symbol(p, r); /* last: sizes of the program may divide by what its range excludes */
    return ok;
}

#endif
