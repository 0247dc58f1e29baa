/* rewrite.c -- replaces values in one walk; has properties of nodes, and builders, for several
 * passes. */
#include "passes/internal.h"
#include "ir/session.h"
#include <string.h>

/* -- walks ------------------------------------------------------------------------------- */

static void make_room(Rewrite *r)
{
    if (r->room > r->g->n_values)
        return;
    Value **old = r->with;
    int n = r->room;
    r->room = 2 * r->g->n_values + 16;
    r->with = NEW(r->tmp, Value *, r->room);
    if (n)
        memcpy(r->with, old, (size_t)n * sizeof *old);
}

Rewrite rewrite_start(Graph *g, Arena *tmp, Diag *d)
{
    return (Rewrite){.g = g, .tmp = tmp, .d = d, .first_new = g->n_values};
}

Value *rewrite_current(const Rewrite *r, Value *v)
{
    while (v->index < r->room && r->with[v->index])
        v = r->with[v->index];
    return v;
}

void rewrite_inputs(Rewrite *r, Node *n)
{
    if (!r->used)
        return;
    for (int i = 0; i < n->n_in; i++) {
        Value *v = rewrite_current(r, n->in[i]);
        if (v != n->in[i])
            node_set_in(n, i, v);
    }
}

void rewrite_value(Rewrite *r, Value *old, Value *v)
{
    if (old == v)
        return;
    make_room(r);
    r->with[old->index] = v;
    r->used = true;
}

void rewrite_result(Rewrite *r, Node *n, int i, Value *v)
{
    assert(i >= 0 && i < n->n_out);
    Value *old = n->out[i];
    if (v->index >= r->first_new && v->def) {
        v->name = old->name;
        if (v->type.dtype == old->type.dtype && v->type.rank == old->type.rank)
            value_set_type(v, old->type);
    }
    rewrite_value(r, old, v);
}

bool rewrite_node(Rewrite *r, Node *n, Value *v)
{
    rewrite_result(r, n, 0, v);
    graph_remove(r->g, n);
    return true;
}

Value *build_weighted(Rewrite *r, Node *n, Value *w, Value *b)
{
    assert(n->n_args == 3 || n->n_args == 9); /* of a linear or a convolution */
    Value *x = arg_value(n, "input");
    const Arg *a = n->arg;
    return node_result(n->op == OP_LINEAR ? build(r->g, n, n->loc, n->op, r->d, "vvv", x, w, b)
                                          : build(r->g, n, n->loc, n->op, r->d, "vvvaaaaaa", x, w, b,
                                                  a[3], a[4], a[5], a[6], a[7], a[8]));
}

bool rewrite_product(Rewrite *r, Node *n, Value *w, Value *b)
{
    Value *y = build_weighted(r, n, w, b);
    return y && rewrite_node(r, n, y);
}

bool owns_weights(const Weighted *v, const int *reads)
{
    assert(v->x && v->w);
    return value_floats(v->w, -1) && type_numel(v->w->type) > 0 &&
           reads[v->w->state->storage] == 1 && (!v->bias || value_floats(v->bias, -1));
}

bool others_are_read(const Uses *u, const Node *n)
{
    for (int i = 1; i < n->n_out; i++) {
        int v = n->out[i]->index;
        if (u->escapes[v] || u->first[v + 1] > u->first[v])
            return true;
    }
    return false;
}

/* Replaces each result by a select or slice.  They follow each other along the axis. */
bool rewrite_pieces(Rewrite *r, Node *n)
{
    Value *x = arg_value(n, "self");
    int64_t axis = 0;
    Dim at = DIM(0), end;
    bool is_unbind = n->op == OP_UNBIND;
    assert(is_unbind || n->n_args == 3);
    if (!arg_int(n, is_unbind ? 1 : 2, &axis))
        return diag_error(r->d, n->loc, "its axis is not a plain integer");
    axis += axis < 0 ? x->type.rank : 0;
    for (int i = 0; i < n->n_out; i++, at = end) {
        end = dim_add(r->g->program, at, is_unbind ? DIM(1) : n->out[i]->type.dim[axis]);
        Value *v = is_unbind ? select_build(r->g, n, n->loc, x, axis, at, r->d)
                             : slice_build(r->g, n, n->loc, x, axis, at, end, r->d);
        if (!v)
            return false;
        rewrite_result(r, n, i, v);
    }
    graph_remove(r->g, n);
    return true;
}

void rewrite_finish(Rewrite *r)
{
    if (!r->used)
        return;
    make_room(r);
    graph_replace(r->g, r->with);
}

bool each_graph(Program *p, GraphPass *pass, Arena *tmp, Diag *d)
{
    bool ok = true;
    for (Graph *g = NULL; (g = program_next_own(p, g));)
        ok = pass(g, tmp, d) && ok;
    return ok;
}

/* -- questions --------------------------------------------------------------------------- */

Value *graph_const_part(Graph *g, const Value *v, Type t, int64_t byte)
{
    assert(v->state && byte >= 0 && byte + type_bytes(t) <= type_bytes(v->type));
    Program *p = g->program;
    const State *of = v->state;
    const char *name = program_name(p, arena_numbered(p->arena, of->name, "_p", p->n_ids));
    return graph_state(g, program_state(p, of->kind, name, of->fqn, t, of->file, of->offset + byte,
                                        of->data ? of->data + byte : NULL, type_bytes(t)));
}

bool type_is_dense(Program *p, Type t)
{
    Dim want = DIM(1);
    if (!t.stride)
        return true;
    for (int i = t.rank - 1; i >= 0; i--) {
        if (!dim_equal(t.dim[i], DIM(1)) && !dim_equal(t.stride[i], want))
            return false;
        want = dim_mul(p, want, t.dim[i]);
    }
    return true;
}

bool type_same(Type a, Type b)
{
    if (!type_equal(a, b) || !a.stride != !b.stride)
        return false;
    return !a.stride || dims_equal(a.stride, b.stride, a.rank);
}

Type type_plain(Type t)
{
    t.stride = NULL;
    return t;
}

Dim dims_numel(Program *p, Type t)
{
    Dim n = DIM(1);
    for (int i = 0; i < t.rank; i++)
        n = dim_mul(p, n, t.dim[i]);
    return n;
}

Arg arg_dim_list(Program *p, const Dim *d, int n)
{
    Arg *item = NEW(p->arena, Arg, n ? n : 1);
    for (int i = 0; i < n; i++)
        item[i] = (Arg){.kind = ARG_INT, .dim = d[i]};
    return (Arg){.kind = ARG_LIST, .list = {item, n}};
}

Arg arg_int_list(Program *p, const int64_t *v, int n)
{
    Arg *item = NEW(p->arena, Arg, n ? n : 1);
    for (int i = 0; i < n; i++)
        item[i] = (Arg){.kind = ARG_INT, .dim = DIM(v[i])};
    return (Arg){.kind = ARG_LIST, .list = {item, n}};
}

/* Returns whether the windows of an adaptive pool are not all of one size. */
static bool windows_differ(const Node *n)
{
    const Type x = first_operand(n)->type, y = n->out[0]->type;
    bool ok = false;
    for (int i = 1; x.rank == 4 && y.rank == 4 && type_is_static(x) && i < 3; i++)
        ok = ok || (y.dim[4 - i].value > 0 && x.dim[4 - i].value % y.dim[4 - i].value);
    return ok && arg_find(n, "output_size") >= 0;
}

/* Returns whether C for targets with fixed point has this operator for bytes: padding that repeats
 * elements, a resize (which rounds between two bytes), a maximum along axes. */
static bool keeps_bytes(const Node *n)
{
    const char *c = op_c(n->op);
    const bool shares = !strcmp(op_quant(n->op), "same_scale"),
               is_image = n->out[0]->type.rank == 4;
    return n->graph->program->session->is_fixed_point && type_is_static(n->out[0]->type) &&
           ((shares && (!strcmp(c, "pieces") || !strcmp(c, "reduce"))) ||
            (is_image && !strcmp(c, "upsample")) ||
            (shares && is_image && !strcmp(c, "pool") && windows_differ(n)));
}

bool node_keeps_floats(const Node *n)
{
    return n->n_out == 1 && n->out[0]->type.dtype == ETC_F32 &&
           (node_moves(n) || keeps_bytes(n) || n->op == OP_MAX_POOL2D ||
            n->op == OP_CONSTANT_PAD_ND);
}

/* -- building ---------------------------------------------------------------------------- */

Value *build_view(Rewrite *r, Node *at, Value *x, const Dim *dim, int rank)
{
    if (x->type.rank == rank && dims_equal(x->type.dim, dim, rank))
        return x;
    Node *v = build(r->g, at, at->loc, OP_VIEW, r->d, "vD", x, rank, dim);
    return v ? v->out[0] : NULL;
}

Value *build_pair(Rewrite *r, Node *at, OpId op, Value *a, Value *b)
{
    return a && b ? node_result(build(r->g, at, at->loc, op, r->d, "vv", a, b)) : NULL;
}

Value *build_permute(Rewrite *r, Node *at, Value *x, const int64_t *axis)
{
    return permute_build(r->g, at, at->loc, x, axis, r->d);
}

Value *build_cast(Rewrite *r, Node *at, Value *x, EtcDtype t)
{
    if (!x || x->type.dtype == t)
        return x;
    Node *c = build(r->g, at, at->loc, OP__TO_COPY, r->d, "vt", x, t);
    return c ? c->out[0] : NULL;
}

static double as_double(const Arg *a)
{
    return a->kind == ARG_FLOAT ? a->f : a->kind == ARG_BOOL ? a->b : (double)a->dim.value;
}

/* Writes a number as one element; false where no exact rule exists for the dtype. */
static bool store_number(const Arg *a, EtcDtype t, void *to)
{
    int64_t i = a->kind == ARG_INT ? a->dim.value : a->kind == ARG_BOOL && a->b;
    double f = as_double(a);
    switch (t) {
    case ETC_F32:
        *(float *)to = (float)f;
        return true;
    case ETC_F64:
        *(double *)to = f;
        return true;
    case ETC_I64:
    case ETC_U64:
        *(int64_t *)to = i;
        return true;
    case ETC_I32:
    case ETC_U32:
        *(int32_t *)to = (int32_t)i;
        return true;
    case ETC_I16:
    case ETC_U16:
        *(int16_t *)to = (int16_t)i;
        return true;
    case ETC_I8:
    case ETC_U8:
        *(int8_t *)to = (int8_t)i;
        return true;
    case ETC_BOOL:
        *(uint8_t *)to = f != 0;
        return true;
    case ETC_F16:
        *(uint16_t *)to = half_of((float)f);
        return true;
    case ETC_BF16:
        *(uint16_t *)to = bfloat_of((float)f);
        return true;
    default:
        return false;
    }
}

/* Makes a constant of a number beside a tensor of type `other`.  `wraps`: the kernel takes a number
 * in f32 beside floats of 16 bits and computes with all of it. */
static Value *number_const(Graph *g, const Arg *number, Type other, bool wraps)
{
    Program *p = g->program;
    EtcDtype t = dtype_of_number(number->kind, other.dtype);
    void *data = arena_alloc(p->arena, 1, 8);
    if ((wraps && dtype_is_half(t)) || !store_number(number, t, data)) {
        t = ETC_F32;
        store_number(number, t, data);
    }
    State *s = program_const(p, "number", "", type_tensor(p, t, 0, NULL), data);
    return graph_state(g, s);
}

static bool is_number(const Schema *s, const Node *n, int i)
{
    const Arg *a = &n->arg[i];
    return s->arg[i].type == SCH_TENSOR && !s->arg[i].is_list &&
           (a->kind == ARG_FLOAT || a->kind == ARG_BOOL || a->kind == ARG_INT);
}

/* Builds a size that is known at run time only, as a tensor of rank 0. */
static Value *number_computed(Rewrite *r, Node *at, Dim size, Type other)
{
    Arg number = {.kind = ARG_INT, .dim = size};
    Arg none = {.kind = ARG_LIST};
    Node *n = build(r->g, at, at->loc, OP_FULL, r->d, "aat", none, number,
                    dtype_of_number(ARG_INT, other.dtype));
    return n ? n->out[0] : NULL;
}

static Value *number_value(Rewrite *r, Node *at, const Arg *number, Type other)
{
    return number->kind == ARG_INT && number->dim.expr
               ? number_computed(r, at, number->dim, other)
               : number_const(r->g, number, other, at->op != OP_WHERE_SELF);
}

Arg arg_moved(Node *to, const Node *from, Arg a)
{
    if (a.kind == ARG_VALUE) {
        Arg use = node_use(to, from->in[a.slot]);
        use.key = a.key;
        return use;
    }
    if (a.kind != ARG_LIST)
        return a;
    Arg *item = NEW(to->graph->program->arena, Arg, a.list.n ? a.list.n : 1);
    for (int i = 0; i < a.list.n; i++)
        item[i] = arg_moved(to, from, a.list.item[i]);
    a.list.item = item;
    return a;
}

Node *numbers_to_tensors(Rewrite *r, Node *n)
{
    const Schema *s = node_schema(n);
    Type other = {.dtype = ETC_F32};
    bool any = false;
    for (int i = 0; i < s->n_args; i++) {
        any = any || is_number(s, n, i);
        if (s->arg[i].type == SCH_TENSOR && arg_value(n, i))
            other = arg_value(n, i)->type;
    }
    if (!any)
        return n;
    Node *copy = node_like(r->g, n);
    for (int i = 0; i < s->n_args; i++)
        node_push(copy, is_number(s, n, i)
                            ? node_use(copy, number_value(r, n, &n->arg[i], other))
                            : arg_moved(copy, n, n->arg[i]));
    for (int i = 0; i < n->n_out; i++)
        rewrite_value(r, n->out[i], node_add_out(copy, n->out[i]->name, n->out[i]->type));
    graph_insert(r->g, n, copy);
    graph_remove(r->g, n);
    return copy;
}
