/* test_random.c -- runs random well-typed programs through every pass of both tails.
 *
 * A seed gives a raw export: pointwise rows of the op table and their twins that write, reductions,
 * softmax, products, concats, views of views, writes through views into inputs and buffers, and
 * symbolic sizes.  Its results are computed here on strided memory: a view shares the bytes of its
 * base, a write changes them, and kernels get dense copies.  The results must be the same
 *
 *   - after each pass (the runner's own comparison, --verify),
 *   - of the planned program in its planned memory, where dead bytes are NaNs,
 *   - of two calls of the .pte in runtime-lite, to the bit of the planned program, states included.
 *
 * ETC_SEEDS=N tries N programs, and ETC_SEED=K only the program of seed K.  A failure prints the
 * seed, the smallest number of nodes that shows it, and the program as a text for `etc opt`.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "ir/session.h"
#include "tests/pte_load.h"

static FILE *null; /* takes what nobody wants to read */

enum { MAX_NODES = 28, MAX_VALUES = 512, MAX_NUMEL = 512, SEEDS = 400, N_CALLS = 2 };

/* A value and where its elements lie in the storage of its base. */
typedef struct Made {
    Value *value;
    int base; /* index of the value that owns the storage */
    Dim offset, stride[MAX_RANK];
    bool writable;
} Made;

typedef struct Gen {
    Arena *a;
    Program *p;
    Graph *g;
    Diag *d, ignored; /* what does not fit is tried otherwise */
    uint64_t seed;
    Dim open; /* the open size */
    Made made[MAX_VALUES]; /* in order of making */
    int n;
    int at[4 * MAX_VALUES]; /* position in made[] by value index */
} Gen;

static int below(Gen *r, int n)
{
    return (int)(inputs_draw(&r->seed) % (uint64_t)n);
}

/* -- what is there ----------------------------------------------------------------------------- */

static Made *made_of(Gen *r, const Value *v)
{
    return &r->made[r->at[v->index]];
}

static void dense_strides(Program *p, Type t, Dim *stride)
{
    Dim step = DIM(1);
    for (int i = t.rank - 1; i >= 0; i--) {
        stride[i] = step;
        step = dim_mul(p, step, t.dim[i]);
    }
}

static Made *add_made(Gen *r, Value *v)
{
    Made *m = &r->made[r->n];
    *m = (Made){.value = v, .base = r->n, .offset = DIM(0), .writable = true};
    dense_strides(r->p, v->type, m->stride);
    r->at[v->index] = r->n++;
    return m;
}

static bool is_dense(Gen *r, const Made *m)
{
    Dim want[MAX_RANK];
    dense_strides(r->p, m->value->type, want);
    for (int i = 0; i < m->value->type.rank; i++)
        if (!dim_equal(want[i], m->stride[i]))
            return false;
    return true;
}

/* A view's strides are part of what an export records. */
static void record_strides(Gen *r, Made *m)
{
    Type t = m->value->type;
    if (is_dense(r, m))
        return;
    Dim *stride = NEW(r->p->arena, Dim, t.rank + 1);
    memcpy(stride, m->stride, (size_t)t.rank * sizeof *stride);
    t.stride = stride;
    value_set_type(m->value, t);
}

static Value *pick(Gen *r)
{
    int near = r->n < 8 ? r->n : 8; /* mostly what is new */
    return r->made[below(r, 3) ? r->n - 1 - below(r, near) : below(r, r->n)].value;
}

static bool same_sizes(Type a, Type b)
{
    if (a.rank != b.rank)
        return false;
    for (int i = 0; i < a.rank; i++)
        if (!dim_equal(a.dim[i], b.dim[i]))
            return false;
    return true;
}

/* Another value of x's sizes; x itself where there is none. */
static Value *pick_like(Gen *r, const Value *x)
{
    for (int tries = 0; tries < 12; tries++) {
        Value *v = pick(r);
        if (same_sizes(v->type, x->type))
            return v;
    }
    return made_of(r, x)->value;
}

static Loc loc_of(Gen *r)
{
    return (Loc){.file = "random", .node = arena_printf(r->p->arena, "v%d", r->n),
                 .module = "m", .source = "random.py:1"};
}

static Value *fresh(Gen *r, Node *n)
{
    if (!n || n->out[0]->type.dtype != ETC_F32)
        return NULL;
    return add_made(r, n->out[0])->value;
}

/* -- nodes ------------------------------------------------------------------------------------- */

/* Rows whose results are no numbers, or far from 1, for some numbers near 1. */
static bool is_wild(OpId op)
{
    return op == OP_LOG || op == OP_SQRT || op == OP_RSQRT || op == OP_RECIPROCAL || op == OP_EXP ||
           op == OP_DIV_TENSOR || op == OP_DIV_SCALAR || op == OP_POW_TENSOR_SCALAR;
}

/* Pointwise with a kernel, `n` tensors first, and nothing else that a default does not fill. */
static bool takes_tensors(Gen *r, OpId op, int n)
{
    const OpInfo *row = &op_info[op];
    const Schema *s = op_schema(r->p, op);
    if (!row->expr || !row->has_kernel || is_wild(op) || s->n_outs != 1)
        return false;
    for (int i = 0; i < s->n_args; i++) {
        const SchemaArg *a = &s->arg[i];
        bool is_tensor = a->type == SCH_TENSOR && !a->is_list && !a->is_optional;
        if (i < n ? !is_tensor : is_tensor || !a->has_default)
            return false;
    }
    return s->n_args >= n;
}

static OpId pick_row(Gen *r, int n, bool writes)
{
    for (int tries = 0; tries < 4000; tries++) {
        OpId op = (OpId)below(r, N_OPS);
        OpId kernel = writes ? op_info[op].functional : op;
        if (kernel != OP_NONE && (writes ? op_mutates(op) : !op_mutates(op)) &&
            kernel != OP_COPY && takes_tensors(r, kernel, n))
            return op;
    }
    return OP_NONE;
}

static Node *build_row(Gen *r, OpId op, Value *x, Value *y)
{
    Loc loc = loc_of(r);
    return y ? build(r->g, NULL, loc, op, r->d, "vv", x, y)
             : build(r->g, NULL, loc, op, r->d, "v", x);
}

static Value *gen_pointwise(Gen *r)
{
    int n = 1 + below(r, 2);
    OpId op = pick_row(r, n, false);
    Value *x = pick(r);
    return op == OP_NONE ? NULL : fresh(r, build_row(r, op, x, n > 1 ? pick_like(r, x) : NULL));
}

static Value *gen_number(Gen *r)
{
    static const OpId op[] = {OP_MUL_TENSOR, OP_ADD_TENSOR, OP_MUL_SCALAR, OP_ADD_SCALAR,
                              OP_RSUB_SCALAR};
    OpId o = op[below(r, 5)];
    return fresh(r, build(r->g, NULL, loc_of(r), o, r->d, "vf", pick(r), (below(r, 9) - 4) * 0.25));
}

/* A write; its result is another name of what it writes. */
static Value *gen_write(Gen *r)
{
    int n = 1 + below(r, 2);
    Value *x = pick(r);
    OpId op = below(r, 4) ? pick_row(r, n, true) : OP_COPY_;
    Made *m = made_of(r, x);
    if (!m->writable || op == OP_NONE)
        return NULL;
    Value *y = n > 1 || op == OP_COPY_ ? pick_like(r, x) : NULL;
    Node *node = build_row(r, op, x, y);
    if (!node)
        return NULL;
    Made *out = add_made(r, node->out[0]);
    Value *v = out->value;
    *out = *m;
    out->value = v;
    record_strides(r, out);
    return v;
}

static int pick_axis(Gen *r, Type t, bool fixed)
{
    for (int tries = 0; tries < 8 && t.rank > 0; tries++) {
        int axis = below(r, t.rank);
        if (!fixed || !t.dim[axis].expr)
            return axis;
    }
    return -1;
}

static Value *gen_reduce(Gen *r)
{
    static const OpId op[] = {OP_MEAN_DIM, OP_SUM_DIM, OP_AMAX};
    Value *x = pick(r);
    int64_t axis = pick_axis(r, x->type, false);
    if (axis < 0)
        return NULL;
    return fresh(r, build(r->g, NULL, loc_of(r), op[below(r, 3)], r->d, "vIb", x, 1, &axis,
                          below(r, 2)));
}

static Value *gen_softmax(Gen *r)
{
    Value *x = pick(r);
    int axis = pick_axis(r, x->type, false);
    return axis < 0 ? NULL : fresh(r, build(r->g, NULL, loc_of(r), OP__SOFTMAX, r->d, "vib", x,
                                            (int64_t)axis, 0));
}

static Value *gen_cat(Gen *r)
{
    Value *x[3];
    x[0] = pick(r);
    int axis = pick_axis(r, x[0]->type, true), n = 2 + below(r, 2);
    for (int i = 1; i < n; i++)
        x[i] = pick_like(r, x[0]);
    if (axis < 0 || type_numel(x[0]->type) * n > MAX_NUMEL)
        return NULL;
    return fresh(r, build(r->g, NULL, loc_of(r), OP_CAT, r->d, "Vi", n, x, (int64_t)axis));
}

/* x times its own transpose, or a row of sums of products. */
static Value *gen_product(Gen *r)
{
    for (int tries = 0; tries < 8; tries++) {
        Value *x = pick(r), *y = pick(r);
        if (x->type.rank == 2 && y->type.rank == 2 && dim_equal(x->type.dim[1], y->type.dim[0]))
            return fresh(r, build(r->g, NULL, loc_of(r), OP_MM, r->d, "vv", x, y));
        if (x->type.rank >= 1 && y->type.rank == 2 && !y->type.dim[0].expr &&
            dim_equal(x->type.dim[x->type.rank - 1], y->type.dim[1]))
            return fresh(r, build(r->g, NULL, loc_of(r), OP_LINEAR, r->d, "vv", x, y));
    }
    return NULL;
}

/* -- views ------------------------------------------------------------------------------------- */

/* The node's result lies in x's storage. */
static Made *view_of(Gen *r, Node *n, const Value *x)
{
    if (!n)
        return NULL;
    Made *m = add_made(r, n->out[0]);
    Value *v = m->value;
    *m = *made_of(r, x);
    m->value = v;
    return m;
}

static Value *view_done(Gen *r, Made *m)
{
    if (m)
        record_strides(r, m);
    return m ? m->value : NULL;
}

static Value *gen_permute(Gen *r)
{
    Value *x = pick(r);
    int rank = x->type.rank;
    int64_t axis[MAX_RANK];
    for (int i = 0; i < rank; i++)
        axis[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int k = below(r, i + 1);
        int64_t t = axis[i];
        axis[i] = axis[k];
        axis[k] = t;
    }
    if (rank < 2)
        return NULL;
    bool swap = below(r, 2);
    Node *n = swap ? build(r->g, NULL, loc_of(r), OP_TRANSPOSE_INT, r->d, "vii", x, (int64_t)0,
                           (int64_t)rank - 1)
                   : build(r->g, NULL, loc_of(r), OP_PERMUTE, r->d, "vI", x, rank, axis);
    Made *m = view_of(r, n, x);
    for (int i = 0; m && i < rank; i++) {
        int from = !swap ? (int)axis[i] : i == 0 ? rank - 1 : i == rank - 1 ? 0 : i;
        m->stride[i] = made_of(r, x)->stride[from];
    }
    return view_done(r, m);
}

static Value *gen_slice(Gen *r)
{
    Value *x = pick(r);
    int axis = pick_axis(r, x->type, true);
    if (axis < 0 || x->type.dim[axis].value < 2)
        return NULL;
    int size = (int)x->type.dim[axis].value, from = below(r, size);
    int to = from + 1 + below(r, size - from), step = 1 + below(r, 4) / 3;
    Made *m = view_of(r, build(r->g, NULL, loc_of(r), OP_SLICE, r->d, "viiii", x,
                               (int64_t)axis, (int64_t)from, (int64_t)to, (int64_t)step), x);
    if (m) {
        m->offset = dim_add(r->p, m->offset, dim_mul(r->p, DIM(from), m->stride[axis]));
        m->stride[axis] = dim_mul(r->p, DIM(step), m->stride[axis]);
        m->writable = m->writable && step == 1; /* a stepped write is refused */
    }
    return view_done(r, m);
}

static Value *gen_select(Gen *r)
{
    Value *x = pick(r);
    int axis = pick_axis(r, x->type, true), rank = x->type.rank;
    if (axis < 0 || x->type.dim[axis].value < 1)
        return NULL;
    int at = below(r, (int)x->type.dim[axis].value);
    Made *m = view_of(r, build(r->g, NULL, loc_of(r), OP_SELECT_INT, r->d, "vii", x, (int64_t)axis,
                               (int64_t)at), x);
    if (m) {
        m->offset = dim_add(r->p, m->offset, dim_mul(r->p, DIM(at), m->stride[axis]));
        memmove(&m->stride[axis], &m->stride[axis + 1],
                (size_t)(rank - axis - 1) * sizeof *m->stride);
    }
    return view_done(r, m);
}

static Value *gen_unsqueeze(Gen *r)
{
    Value *x = pick(r);
    int rank = x->type.rank, axis = below(r, rank + 1);
    if (rank > 3)
        return NULL;
    Made *m = view_of(r, build(r->g, NULL, loc_of(r), OP_UNSQUEEZE, r->d, "vi", x, (int64_t)axis),
                      x);
    if (m) {
        Dim below_it = axis < rank ? dim_mul(r->p, m->stride[axis], x->type.dim[axis]) : DIM(1);
        memmove(&m->stride[axis + 1], &m->stride[axis], (size_t)(rank - axis) * sizeof *m->stride);
        m->stride[axis] = below_it;
    }
    return view_done(r, m);
}

/* Two axes as one, of what is dense. */
static Value *gen_view(Gen *r)
{
    Value *x = pick(r);
    Type t = x->type;
    Dim size[MAX_RANK];
    if (t.rank < 2 || !is_dense(r, made_of(r, x)))
        return NULL;
    int k = below(r, t.rank - 1);
    for (int i = 0; i < t.rank - 1; i++)
        size[i] = i < k ? t.dim[i] : i > k ? t.dim[i + 1] : dim_mul(r->p, t.dim[k], t.dim[k + 1]);
    OpId op = below(r, 2) ? OP_VIEW : OP_RESHAPE;
    Made *m = view_of(r, build(r->g, NULL, loc_of(r), op, r->d, "vD", x, t.rank - 1, size), x);
    if (m)
        dense_strides(r->p, m->value->type, m->stride);
    return view_done(r, m);
}

/* Gives a dense value another name and copies all others; a size of 1 leaves open which it is, so
 * none is taken here. */
static Value *gen_contiguous(Gen *r)
{
    Value *x = pick(r);
    Made *m = made_of(r, x);
    for (int i = 0; i < x->type.rank; i++)
        if (x->type.dim[i].expr || x->type.dim[i].value == 1)
            return NULL;
    Node *n = build(r->g, NULL, loc_of(r), OP_CONTIGUOUS, r->d, "v", x);
    return is_dense(r, m) ? view_done(r, view_of(r, n, x)) : fresh(r, n);
}

/* The last axis of size 1 repeated; nobody may write what is there several times. */
static Value *gen_expand(Gen *r)
{
    Value *x = pick(r);
    Dim size[MAX_RANK];
    int rank = x->type.rank;
    if (!rank || x->type.dim[rank - 1].expr || x->type.dim[rank - 1].value != 1)
        return NULL;
    memcpy(size, x->type.dim, (size_t)rank * sizeof *size);
    size[rank - 1] = DIM(2 + below(r, 3));
    Made *m = view_of(r, build(r->g, NULL, loc_of(r), OP_EXPAND, r->d, "vD", x, rank, size), x);
    if (m) {
        m->stride[rank - 1] = DIM(0);
        m->writable = false;
    }
    return view_done(r, m);
}

/* -- programs ---------------------------------------------------------------------------------- */

static Type random_type(Gen *r)
{
    Dim dim[3];
    int rank = 1 + below(r, 3);
    for (int i = 0; i < rank; i++)
        dim[i] = DIM(1 + below(r, 4));
    if (below(r, 3) == 0)
        dim[below(r, rank)] = r->open;
    return type_tensor(r->p, ETC_F32, rank, dim);
}

static void add_input(Gen *r, int i)
{
    Value *v = graph_value(r->g, arena_printf(r->p->arena, "x%d", i), random_type(r));
    graph_add_input(r->g, v);
    add_made(r, v);
}

static void add_state(Gen *r, StateKind kind, int i)
{
    Dim dim[2] = {DIM(1 + below(r, 4)), DIM(1 + below(r, 4))};
    Type t = type_tensor(r->p, ETC_F32, 1 + below(r, 2), dim);
    float *data = NEW(r->p->arena, float, type_numel(t));
    for (int64_t k = 0; k < type_numel(t); k++)
        data[k] = (float)(below(r, 17) - 8) / 8;
    const char *name = arena_printf(r->p->arena, "%c%d", kind == ST_PARAM ? 'p' : 'b', i);
    State *s = program_state(r->p, kind, name, name, t, "-", r->p->side_bytes, (uint8_t *)data,
                             type_bytes(t));
    r->p->side_bytes += round_up(type_bytes(t), 16);
    add_made(r, graph_state(r->g, s))->writable = kind == ST_BUFFER;
}

static void add_node(Gen *r)
{
    static Value *(*const gen[])(Gen *) = {
        gen_pointwise, gen_pointwise, gen_pointwise, gen_number, gen_write, gen_write,
        gen_write, gen_reduce, gen_softmax, gen_cat, gen_cat, gen_product, gen_permute,
        gen_slice, gen_slice, gen_select, gen_unsqueeze, gen_view, gen_view, gen_contiguous,
        gen_expand};
    int n_kinds = sizeof gen / sizeof *gen;
    for (int tries = 0; tries < 20; tries++)
        if (gen[below(r, n_kinds)](r))
            return;
}

/* The same seed with fewer nodes gives the beginning of the program. */
static void generate(Gen *r, uint64_t seed, int n_nodes)
{
    r->p = program_new(r->a, "random");
    r->p->stage = STAGE_ATEN;
    r->g = graph_new(r->p, "forward");
    PUSH(r->p->arena, r->p->method, r->p->n_methods, r->g);
    r->d = &r->ignored;
    r->ignored.out = null;
    r->seed = seed * 2654435761u + 12345;
    inputs_draw(&r->seed);
    r->open = dim_symbol(r->p, program_symbol(r->p, "n", 1, 5));
    for (int i = 0; i < 1 + (int)(seed % 3); i++)
        add_input(r, i);
    for (int i = 0; i < (int)(seed / 3 % 3); i++)
        add_state(r, ST_BUFFER, i);
    for (int i = 0; i < (int)(seed / 9 % 2); i++)
        add_state(r, ST_PARAM, i);
    for (int i = 0; i < n_nodes && r->n < MAX_VALUES - 1; i++)
        add_node(r);
    uint64_t kept = r->seed;
    r->seed = seed;
    int n_out = 1 + below(r, 3);
    for (int i = 0; i < n_out; i++)
        graph_add_output(r->g, i ? pick(r) : r->made[r->n - 1].value);
    r->seed = kept;
}

/* -- the play on strided memory ---------------------------------------------------------------- */

typedef struct Play {
    Gen *r;
    Arena *a;
    const int64_t *symbol;
    float **storage; /* by position in made[], of bases */
    Diag *d;
} Play;

static int64_t at_symbols(const Play *p, Dim d)
{
    int64_t v = 0;
    cr_assert(dim_eval(d, p->symbol, &v));
    return v;
}

static EtcTensor *blank(const Play *p, Type t)
{
    int64_t dim[MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dim[i] = at_symbols(p, t.dim[i]);
    return tensor_new(p->a, ETC_F32, t.rank, dim);
}

/* Copies between the value's elements in its storage and a dense tensor. */
static void move(const Play *p, const Made *m, EtcTensor *t, bool store)
{
    int64_t index[MAX_RANK] = {0};
    float *dense = t->data, *base = p->storage[m->base];
    for (int64_t i = 0; i < etc_numel(t); i++) {
        int64_t at = at_symbols(p, m->offset);
        for (int k = 0; k < t->rank; k++)
            at += index[k] * at_symbols(p, m->stride[k]);
        if (store)
            base[at] = dense[i];
        else
            dense[i] = base[at];
        for (int k = t->rank - 1; k >= 0 && ++index[k] == t->dim[k]; k--)
            index[k] = 0;
    }
}

static EtcTensor *gather(const Play *p, const Value *v)
{
    const Made *m = made_of(p->r, v);
    EtcTensor *t = blank(p, v->type);
    move(p, m, t, false);
    return t;
}

static void own(Play *p, const Value *v, const EtcTensor *t)
{
    int i = p->r->at[v->index];
    p->storage[i] = NEW(p->a, float, etc_numel(t) + 1);
    memcpy(p->storage[i], t->data, (size_t)etc_numel(t) * sizeof(float));
}

static bool play_node(Play *p, const Node *n)
{
    const Value *v = n->out[0];
    Made *m = made_of(p->r, v);
    bool writes = op_mutates(n->op);
    EtcTensor *in[8], *out = NULL;
    Node twin = *n;
    if (m->base != p->r->at[v->index] && !writes)
        return true; /* a view */
    for (int i = 0; i < n->n_in; i++)
        in[i] = gather(p, n->in[i]);
    twin.op = writes ? op_info[n->op].functional : n->op;
    if (n->op == OP_CONTIGUOUS)
        out = in[0];
    else if (n->op == OP_COPY_)
        out = in[1];
    else if (!eval_node(&twin, in, p->symbol, p->a, &out, p->d))
        return false;
    if (writes)
        move(p, m, out, true);
    else
        own(p, v, out);
    return true;
}

/* Outputs, and then what inputs and buffers hold, in the order of made[]. */
static bool play(Play *p, EtcTensor *const *in, EtcTensor **out)
{
    const Graph *g = p->r->g;
    p->storage = NEW(p->a, float *, p->r->n);
    for (int i = 0; i < g->n_in; i++)
        own(p, g->in[i], in[i]);
    for (int i = 0; i < g->n_states; i++) {
        EtcTensor *t = blank(p, g->state[i]->type);
        memcpy(t->data, g->state[i]->state->data, (size_t)etc_numel(t) * sizeof(float));
        own(p, g->state[i], t);
    }
    for (const Node *n = g->first; n; n = n->next)
        if (!play_node(p, n))
            return false;
    for (int i = 0; i < g->n_out; i++)
        out[i] = gather(p, g->out[i]);
    for (int i = 0; i < g->n_in + g->n_states; i++)
        out[g->n_out + i] = gather(p, i < g->n_in ? g->in[i] : g->state[i - g->n_in]);
    return true;
}

/* -- comparing --------------------------------------------------------------------------------- */

typedef struct Case {
    Gen *r;
    Program *p; /* r->p again, through the passes of one tail */
    int64_t symbol[2];
    EtcTensor **in, **want;
    Diag *d;
    Arena *a;
} Case;

static bool said(const Case *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool said(const Case *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(c->d->out, fmt, ap);
    fputc('\n', c->d->out);
    va_end(ap);
    return false;
}

static bool is_near(const Case *c, const EtcTensor *got, const EtcTensor *want, double most,
                    const char *what)
{
    if (got->rank != want->rank ||
        memcmp(got->dim, want->dim, (size_t)want->rank * sizeof *want->dim) != 0)
        return said(c, "%s has other sizes", what);
    double size = 1;
    for (int64_t i = 0; i < etc_numel(want); i++)
        size = fmax(size, fabs((double)((const float *)want->data)[i]));
    for (int64_t i = 0; i < etc_numel(want); i++) {
        double a = (double)((const float *)want->data)[i],
               b = (double)((const float *)got->data)[i];
        if (!(a == b || fabs(a - b) <= most * size || (isnan(a) && isnan(b))))
            return said(c, "%s: element %lld is %.9g, expected %.9g", what, (long long)i, b, a);
    }
    return true;
}

static const EtcTensor *wanted_of(const Case *c, const Value *target)
{
    const Graph *g = c->r->g;
    for (int i = 0; i < g->n_in; i++)
        if (!strcmp(g->in[i]->name, target->name))
            return c->want[g->n_out + i];
    for (int i = 0; i < g->n_states; i++)
        if (!strcmp(g->state[i]->name, target->name))
            return c->want[g->n_out + g->n_in + i];
    return NULL;
}

/* The planned program in its memory.  `out` keeps what it gives. */
static bool planned_is_right(const Case *c, EtcTensor **out, EtcTensor **update)
{
    const Graph *g = c->p->method[0];
    bool ok = eval_graph(g, c->in, c->symbol, true, c->a, out, update, c->d) ||
              said(c, "the planned program cannot be evaluated");
    for (int i = 0; i < g->n_out && ok; i++)
        ok = is_near(c, out[i], c->want[i], 1e-5, arena_printf(c->a, "output %d", i));
    for (int i = 0; i < g->n_updates && ok; i++) {
        const EtcTensor *want = wanted_of(c, g->update[i].target);
        ok = want ? is_near(c, update[i], want, 1e-5,
                            arena_printf(c->a, "update of '%s'", g->update[i].target->name))
                  : said(c, "an update of '%s', which nobody has", g->update[i].target->name);
    }
    return ok;
}

/* -- runtime-lite ------------------------------------------------------------------------------ */

static bool lite_call(const Case *c, Loaded *l, EtcTensor *const *out)
{
    const Graph *g = c->p->method[0];
    bool ok = true;
    for (int i = 0; i < g->n_in; i++) {
        EtcTensor copy = *tensor_copy(c->in[i], c->a);
        EtcValue v = {.tag = ETC_TENSOR, .as.tensor = &copy};
        if (etc_method_set_input(l->method, i, &v, &l->e))
            return said(c, "runtime-lite: input %d: %s", i, l->e.what);
    }
    if (etc_method_run(l->method, &l->e))
        return said(c, "runtime-lite: %s", l->e.what);
    for (int i = 0; i < g->n_out && ok; i++)
        ok = is_near(c, etc_method_output(l->method, i)->as.tensor, out[i], 0,
                     arena_printf(c->a, "output %d in runtime-lite", i));
    return ok;
}

static uint8_t *pte_bytes(const Case *c, size_t *n)
{
    OutFile f;
    PteStats stats;
    if (!emit_pte(c->p, c->a, &f, &stats, c->d))
        return NULL;
    const uint8_t *joined = join_pieces(&f, c->a, n);
    uint8_t *file = loaded_memory(64, *n);
    memcpy(file, joined, *n);
    return file;
}

/* -- one program ------------------------------------------------------------------------------- */

typedef enum Verdict { FINE, REFUSED, WRONG } Verdict;

/* Hands the buffers that a call has written to the next one, in the play and in the evaluator. */
static void carry(const Case *c, EtcTensor **update)
{
    const Graph *g = c->p->method[0], *raw = c->r->g;
    for (int i = 0; i < g->n_updates; i++)
        if (g->update[i].target->state)
            g->update[i].target->state->data = tensor_copy(update[i], c->r->a)->data;
    for (int i = 0; i < raw->n_states; i++)
        raw->state[i]->state->data =
            tensor_copy(c->want[raw->n_out + raw->n_in + i], c->r->a)->data;
}

static bool run_calls(Case *c, int which, const Tail *tail)
{
    uint64_t seed = 1 + (uint64_t)which;
    const Graph *g = c->r->g;
    Loaded l = {0};
    size_t n = 0;
    uint8_t *file = tail == &tail_pte ? pte_bytes(c, &n) : NULL;
    bool ok = tail == &tail_c || (file && !loaded_start(&l, file, n, 0)) ||
              said(c, "runtime-lite does not load it: %s", l.e.what ? l.e.what : "no file");
    inputs_symbols(c->r->p, which, c->symbol);
    for (int call = 0; call < N_CALLS && ok; call++) {
        c->in = NEW(c->a, EtcTensor *, g->n_in + 1);
        c->want = NEW(c->a, EtcTensor *, g->n_out + g->n_in + g->n_states + 1);
        Play p = {.r = c->r, .a = c->a, .symbol = c->symbol, .d = c->d};
        EtcTensor **out = NEW(c->a, EtcTensor *, g->n_out + 1);
        EtcTensor **update = NEW(c->a, EtcTensor *, g->n_in + g->n_states + 1);
        ok = inputs_random(g, c->symbol, &seed, c->a, c->in) && play(&p, c->in, c->want) &&
             planned_is_right(c, out, update) && (tail == &tail_c || lite_call(c, &l, out));
        if (ok)
            carry(c, update);
    }
    if (l.file)
        loaded_stop(&l);
    return ok;
}

static bool refused_only(const Diag *d)
{
    return d->n[FAULT_UNSUPPORTED] > 0 && diag_errors(d) == d->n[FAULT_UNSUPPORTED];
}

static char *text_of(const Program *p)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    program_print(p, f);
    fclose(f);
    return text;
}

/* The program through one tail, at one value of its symbol.  It is made anew: passes change it. */
static Verdict try_tail(Gen *raw, uint64_t seed, int n_nodes, const Tail *tail, int which, Diag *d)
{
    Gen *r = NEW(raw->a, Gen, 1);
    *r = (Gen){.a = raw->a};
    generate(r, seed, n_nodes);
    generate(raw, seed, n_nodes); /* states of its own */
    r->p->session->tail = tail;
    Case c = {.r = raw, .p = r->p, .d = d, .a = raw->a};
    Pipeline all;
    PassOptions opt = {.verify = true, .check_ir = true};
    COptions co = {.stem = "m"};
    CFiles files;
    bool ok = program_verify(r->p, d) && program_guard(r->p, d) && pipeline_of(r->p, &all, d) &&
              passes_run(r->p, all.pass, all.n, opt, d) &&
              (tail == &tail_pte || emit_c(&(CModel){.p = r->p}, 1, &co, raw->a, &files, d));
    if (!ok)
        return refused_only(d) ? REFUSED : WRONG;
    return run_calls(&c, which, tail) ? FINE : WRONG;
}

static Verdict try_seed(uint64_t seed, int n_nodes, FILE *out)
{
    Verdict worst = FINE;
    for (int k = 0; k < 4 && worst != WRONG; k++) {
        Arena *a = arena_new();
        Diag d = {.out = out};
        Gen *r = NEW(a, Gen, 1);
        *r = (Gen){.a = a};
        Verdict v = try_tail(r, seed, n_nodes, k & 1 ? &tail_c : &tail_pte, k / 2, &d);
        worst = v > worst ? v : worst;
        arena_free(a);
    }
    return worst;
}

/* The fewest nodes with which it still goes wrong, what is said then, and the program. */
static void tell(uint64_t seed, int n_nodes)
{
    char *message = NULL;
    size_t size = 0;
    int n = 1;
    while (n < n_nodes && try_seed(seed, n, null) != WRONG)
        n++;
    FILE *f = open_memstream(&message, &size);
    try_seed(seed, n, f);
    fclose(f);
    Arena *a = arena_new();
    Gen *r = NEW(a, Gen, 1);
    *r = (Gen){.a = a};
    generate(r, seed, n);
    char *text = text_of(r->p);
    cr_expect(false, "ETC_SEED=%llu, %d nodes:\n%s%s", (unsigned long long)seed, n, message, text);
    fprintf(stderr, "ETC_SEED=%llu, %d nodes:\n%s%s", (unsigned long long)seed, n, message, text);
    free(text);
    free(message);
    arena_free(a);
}

static char current[64]; /* for a death that prints nothing */

static void on_death(int signal_number)
{
    ssize_t done = write(2, current, strlen(current));
    (void)done;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static long from_environment(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s && *s ? atol(s) : otherwise;
}

Test(random, programs_survive_all_passes, .timeout = 3600)
{
    long only = from_environment("ETC_SEED", -1), n = from_environment("ETC_SEEDS", SEEDS);
    long refused = 0, wrong = 0, first = only < 0 ? 0 : only, end = only < 0 ? n : only + 1;
    null = fopen("/dev/null", "w");
    signal(SIGABRT, on_death);
    signal(SIGSEGV, on_death);
    for (long seed = first; seed < end && wrong < 5; seed++) {
        int n_nodes = 4 + (int)(seed % (MAX_NODES - 4));
        snprintf(current, sizeof current, "died at ETC_SEED=%ld\n", seed);
        Verdict v = try_seed((uint64_t)seed, n_nodes, null);
        refused += v == REFUSED;
        wrong += v == WRONG;
        if (v == WRONG)
            tell((uint64_t)seed, n_nodes);
    }
    fclose(null);
    cr_expect(only >= 0 || refused * 5 < n, "%ld of %ld programs were refused", refused, n);
    if (getenv("ETC_SEEDS"))
        fprintf(stderr, "%ld programs: %ld wrong, %ld refused\n", end - first, wrong, refused);
}
