/* lower.c -- a region of core nodes as an XNNPACK subgraph.
 *
 * A value of rank 3 or more may exist in two layouts, as the graph has it and with its channels
 * (axis 1) last; each is made at most once, by a transpose of the other.  Convolutions and pools
 * make and want the second, matrix products and views the first, all other nodes take the layout of
 * their inputs.  A permutation between the two is no node at all: it renames. */
#include "partition/xnnpack/lower.h"
#include <math.h>
#include <string.h>

/* -- values ---------------------------------------------------------------------------------- */

static Layout plain_rank(const Value *v, Layout l)
{
    return v->type.rank < 3 ? AS_IS : l;
}

void axes_of(int rank, Layout l, int *axis)
{
    assert(rank >= 0 && rank <= XNN_MAX_RANK);
    for (int i = 0; i < rank; i++)
        axis[i] = l == AS_IS || !i ? i : i == rank - 1 ? 1 : i + 1;
}

bool x_is_real(XnnType t)
{
    return t == XNN_F32 || t == XNN_F16;
}

XnnType x_real(Type t)
{
    return t.dtype == ETC_F16 ? XNN_F16 : XNN_F32;
}

size_t x_real_size(XnnType t)
{
    return t == XNN_F16 ? sizeof(uint16_t) : sizeof(float);
}

/* Returns the sizes of a type in a layout.  A tensor without axes becomes one with an axis of
 * size 1. */
XValue x_sizes(Type t, Layout l)
{
    int axis[XNN_MAX_RANK];
    XValue v = {.dtype = x_real(t), .rank = t.rank ? t.rank : 1, .dim = {1}, .external = XNN_NONE};
    v.is_number = !t.rank;
    axes_of(t.rank, l, axis);
    for (int i = 0; i < t.rank; i++) {
        v.dim[i] = (uint32_t)dim_upper(t.dim[axis[i]]);
        v.is_symbolic[i] = t.dim[axis[i]].expr != NULL;
    }
    return v;
}

static uint32_t x_value(Lower *w, int rank, const uint32_t *dim)
{
    assert(rank >= 0 && rank <= XNN_MAX_RANK);
    XValue v = {.dtype = w->real, .rank = rank, .external = XNN_NONE};
    memcpy(v.dim, dim, (size_t)rank * sizeof *dim);
    PUSH(w->x.arena, w->x.value, w->x.n_values, v);
    return (uint32_t)w->x.n_values - 1;
}

uint32_t x_sized(Lower *w, const XValue *like)
{
    XValue v = *like;
    v.dtype = v.dtype ? v.dtype : w->real;
    v.flags = 0;
    v.external = XNN_NONE;
    v.constant = 0;
    PUSH(w->x.arena, w->x.value, w->x.n_values, v);
    return (uint32_t)w->x.n_values - 1;
}

uint32_t x_like(Lower *w, uint32_t id)
{
    assert(id < (uint32_t)w->x.n_values);
    XValue v = w->x.value[id];
    return x_sized(w, &v);
}

void x_define(Lower *w, const Value *v, Layout l, uint32_t id)
{
    assert(id < (uint32_t)w->x.n_values);
    w->id[plain_rank(v, l)][v->index] = id;
}

uint32_t x_result(Lower *w, const Value *v, Layout l)
{
    l = plain_rank(v, l);
    XValue sizes = x_sizes(v->type, l);
    uint32_t id = x_sized(w, &sizes);
    x_define(w, v, l, id);
    return id;
}

bool x_has(const Lower *w, const Value *v, Layout l)
{
    v = x_before_dequantize(w, v);
    return w->id[plain_rank(v, l)][v->index] != XNN_NONE;
}

/* -- nodes ----------------------------------------------------------------------------------- */

XNode *x_node(Lower *w, XnnKind kind, uint32_t output)
{
    XNode n = {.kind = kind, .output = output, .handle = w->at};
    assert(output < (uint32_t)w->x.n_values);
    PUSH(w->x.arena, w->x.node, w->x.n_nodes, n);
    while (w->n_producers <= (int)output)
        PUSH(w->tmp, w->producer, w->n_producers, -1);
    w->producer[output] = w->x.n_nodes - 1;
    return &w->x.node[w->x.n_nodes - 1];
}

XNode *x_producer(Lower *w, uint32_t id)
{
    int i = (int)id < w->n_producers ? w->producer[id] : -1;
    return i < 0 ? NULL : &w->x.node[i];
}

void x_u32(XNode *n, int slot, uint32_t v)
{
    assert(n->n_fields < XNN_MAX_FIELDS);
    n->field[n->n_fields++] = (XField){.slot = slot, .type = X_U32, .u = v};
}

void x_id(XNode *n, int slot, uint32_t id)
{
    assert(n->n_fields < XNN_MAX_FIELDS);
    n->field[n->n_fields++] = (XField){.slot = slot, .type = X_ID, .u = id};
}

void x_f32(XNode *n, int slot, double v)
{
    assert(n->n_fields < XNN_MAX_FIELDS);
    n->field[n->n_fields++] = (XField){.slot = slot, .type = X_F32_FIELD, .f = (float)v};
}

void x_dims(XNode *n, int slot, const uint32_t *v, int count)
{
    assert(n->n_fields < XNN_MAX_FIELDS && count <= XNN_MAX_RANK);
    XField *f = &n->field[n->n_fields++];
    *f = (XField){.slot = slot, .type = X_DIMS, .n = count};
    memcpy(f->dim, v, (size_t)count * sizeof *v);
}

uint32_t x_unary(Lower *w, XnnKind kind, uint32_t in, uint32_t out)
{
    XNode *n = x_node(w, kind, out);
    x_id(n, 0, in);
    x_id(n, 1, out);
    return out;
}

uint32_t x_binary(Lower *w, XnnKind kind, uint32_t a, uint32_t b, uint32_t out)
{
    XNode *n = x_node(w, kind, out);
    x_id(n, 0, a);
    x_id(n, 1, b);
    x_id(n, 2, out);
    if (kind == XNN_ADD || kind == XNN_SUBTRACT || kind == XNN_MULTIPLY || kind == XNN_DIV)
        x_range(n, -INFINITY, INFINITY);
    return out;
}

void x_range(XNode *n, double min, double max)
{
    n->has_range = true;
    n->min = (float)min;
    n->max = (float)max;
}

/* Views the bytes of `in` under other sizes.  A reshape of a reshape becomes one reshape. */
uint32_t x_reshape(Lower *w, uint32_t in, const XValue *like)
{
    const XNode *from = x_producer(w, in);
    if (from && from->kind == XNN_RESHAPE)
        in = from->field[2].u;
    const XValue *v = &w->x.value[in];
    size_t rank = (size_t)like->rank;
    if (v->rank == like->rank && v->is_number == like->is_number &&
        !memcmp(v->dim, like->dim, rank * sizeof *v->dim) &&
        !memcmp(v->is_symbolic, like->is_symbolic, rank * sizeof *v->is_symbolic))
        return in;
    XValue to = *v;
    uint32_t dim[XNN_MAX_RANK];
    to.rank = like->rank;
    to.is_number = like->is_number;
    memcpy(to.dim, like->dim, sizeof to.dim);
    memcpy(to.is_symbolic, like->is_symbolic, sizeof to.is_symbolic);
    uint32_t out = x_sized(w, &to);
    for (int i = 0; i < like->rank; i++)
        dim[i] = like->is_symbolic[i] ? 0 : like->dim[i]; /* 0: the remaining elements decide */
    XNode *n = x_node(w, XNN_RESHAPE, out);
    x_u32(n, 0, (uint32_t)rank);
    x_dims(n, 1, dim, (int)rank);
    x_id(n, 2, in);
    x_id(n, 3, out);
    return out;
}

/* -- constants ------------------------------------------------------------------------------- */

uint32_t x_named(Lower *w, State *s, int rank, const uint32_t *dim)
{
    uint32_t id = x_value(w, rank, dim);
    PUSH(w->x.arena, w->x.constant, w->x.n_constants, s);
    w->x.value[id].constant = w->x.n_constants;
    return id;
}

/* Makes a named constant of the bytes and returns its value, which has the sizes `dim`. */
uint32_t x_bytes(Lower *w, const char *stem, const char *fqn, const void *data, EtcDtype t,
                 int n_sizes, const Dim *size, int rank, const uint32_t *dim)
{
    Program *p = w->body->program;
    Type type = type_tensor(p, t, n_sizes, size);
    return x_named(w, program_named(p, stem, fqn, type, data), rank, dim);
}

uint32_t x_constant(Lower *w, const char *stem, const char *fqn, const void *data, XnnType t,
                    int rank, const uint32_t *dim)
{
    Dim size[XNN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        size[i] = DIM(dim[i]);
    EtcDtype as = t == XNN_F16 ? ETC_F16 : ETC_F32;
    uint32_t id = x_bytes(w, stem, fqn, data, as, rank, size, rank, dim);
    w->x.value[id].dtype = t;
    return id;
}

/* Makes a constant of numbers that the backend chose, in the dtype of the current node. */
uint32_t x_numbers(Lower *w, const char *stem, const float *data, int rank, const uint32_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    if (w->real == XNN_F32)
        return x_constant(w, stem, "", data, XNN_F32, rank, dim);
    uint16_t *half = NEW(w->body->program->arena, uint16_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        half[i] = half_of(data[i]);
    return x_constant(w, stem, "", half, XNN_F16, rank, dim);
}

uint32_t x_number(Lower *w, double v)
{
    float *data = NEW(w->body->program->arena, float, 1);
    *data = (float)v;
    return x_numbers(w, "number", data, 1, (const uint32_t[]){1});
}

uint32_t x_by_number(Lower *w, XnnKind kind, uint32_t a, double v)
{
    uint32_t out = x_like(w, a);
    return x_binary(w, kind, a, x_number(w, v), out);
}

uint32_t x_filled(Lower *w, double v, int rank, const uint32_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    float *data = NEW(w->body->program->arena, float, n);
    for (int64_t i = 0; i < n; i++)
        data[i] = (float)v;
    return x_numbers(w, "filled", data, rank, dim);
}

/* Returns `from` with its axes in another order: axis k of the result is axis[k] of `from`. */
void *x_permuted(Lower *w, const void *from, size_t size, int rank, const uint32_t *dim,
                 const int *axis)
{
    assert(rank >= 0 && rank <= XNN_MAX_RANK);
    const uint8_t *bytes = from;
    int64_t stride[XNN_MAX_RANK], n = 1, at[XNN_MAX_RANK] = {0}, k = 0;
    for (int i = rank - 1; i >= 0; i--) {
        stride[i] = n;
        n *= dim[i];
    }
    uint8_t *to = arena_alloc(w->body->program->arena, (size_t)n + 1, size);
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + (size_t)i * size, bytes + (size_t)k * size, size);
        for (int j = rank - 1; j >= 0; j--) {
            k += stride[axis[j]];
            if (++at[j] < dim[axis[j]])
                break;
            k -= at[j] * stride[axis[j]];
            at[j] = 0;
        }
    }
    return to;
}

static uint32_t constant_of(Lower *w, const Value *v, Layout l)
{
    assert(value_is_known(v));
    const State *s = v->state;
    uint32_t *dim = (XValue[]){x_sizes(v->type, AS_IS)}->dim, moved[XNN_MAX_RANK];
    int axis[XNN_MAX_RANK], rank = v->type.rank ? v->type.rank : 1;
    XnnType t = x_real(v->type);
    axes_of(rank, l, axis);
    for (int i = 0; i < rank; i++)
        moved[i] = dim[axis[i]];
    return x_constant(w, s->name, s->fqn,
                      l == AS_IS ? s->data
                                 : x_permuted(w, s->data, x_real_size(t), rank, dim, axis),
                      t, rank, moved);
}

/* XNNPACK gives up a constant that a product has packed, so no other node may read this value. */
uint32_t x_packed(Lower *w, const Value *v)
{
    return v->state ? constant_of(w, v, AS_IS) : x_use(w, v, AS_IS);
}

/* -- layouts --------------------------------------------------------------------------------- */

/* Returns whether a change of layout leaves every byte where it is. */
static bool is_only_reshape(const XValue *v, Layout to)
{
    int64_t channels = v->dim[to == AS_IS ? v->rank - 1 : 1], space = 1;
    for (int i = 1; i < v->rank; i++) {
        space *= v->dim[i];
        if (v->is_symbolic[i])
            return false;
    }
    return channels == 1 || space == channels;
}

static uint32_t relaid(Lower *w, uint32_t in, Layout to)
{
    XValue v = w->x.value[in], moved = v;
    int axis[XNN_MAX_RANK], back[XNN_MAX_RANK];
    assert(v.rank >= 3);
    axes_of(v.rank, CHANNELS_LAST, axis);
    for (int i = 0; i < v.rank; i++)
        back[axis[i]] = i;
    const int *perm = to == CHANNELS_LAST ? axis : back;
    for (int i = 0; i < v.rank; i++) {
        moved.dim[i] = v.dim[perm[i]];
        moved.is_symbolic[i] = v.is_symbolic[perm[i]];
    }
    return is_only_reshape(&v, to) ? x_reshape(w, in, &moved) : x_transpose(w, in, perm);
}

uint32_t x_use(Lower *w, const Value *v, Layout l)
{
    l = plain_rank(v, l);
    v = w->integers ? x_before_dequantize(w, v) : v;
    uint32_t *id = &w->id[l][v->index];
    if (*id == XNN_NONE && !v->state && w->id[!l][v->index] == XNN_NONE)
        x_make(w, v, l);
    if (*id == XNN_NONE)
        *id = v->state ? constant_of(w, v, l) : relaid(w, w->id[!l][v->index], l);
    return *id;
}

/* Returns the layout that most bytes of the operands have already. */
Layout x_prefers(const Lower *w, const Node *n)
{
    int64_t bytes[2] = {0};
    for (int i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!v->state && v->type.rank >= 3)
            bytes[x_has(w, v, CHANNELS_LAST)] += type_bytes(v->type);
    }
    return bytes[1] > bytes[0] || (bytes[1] && bytes[1] == bytes[0]) ? CHANNELS_LAST : AS_IS;
}

/* -- the region ------------------------------------------------------------------------------ */

static void define_inputs(Lower *w)
{
    for (int i = 0; i < w->body->n_in; i++) {
        uint32_t id = x_result(w, w->body->in[i], AS_IS);
        w->x.value[id].flags = XNN_IS_INPUT;
        w->x.value[id].external = (uint32_t)w->x.n_externals++;
        x_declare_input(w, w->body->in[i], id);
    }
}

/* Makes sure that each result is a value of its own, which a node computes. */
static void define_outputs(Lower *w)
{
    for (int i = 0; i < w->body->n_out; i++) {
        uint32_t id = x_use(w, w->body->out[i], AS_IS);
        if (w->x.value[id].flags || w->x.value[id].constant || !x_producer(w, id))
            id = x_copy(w, id);
        w->x.value[id].flags = XNN_IS_OUTPUT;
        w->x.value[id].external = (uint32_t)w->x.n_externals++;
    }
}

bool xnn_lower(Graph *body, Arena *tmp, Diag *d, Blob *out)
{
    Lower w = {.body = body, .tmp = tmp, .d = d, .x.arena = tmp, .uses = graph_uses(body, tmp),
               .real = XNN_F32};
    size_t n = (size_t)body->n_values + 1;
    w.done = NEW(tmp, bool, n);
    for (int l = 0; l < 2; l++) {
        w.id[l] = NEW(tmp, uint32_t, n);
        memset(w.id[l], 0xff, n * sizeof *w.id[l]);
    }
    define_inputs(&w);
    for (const Node *node = body->first; node; node = node->next, w.at++)
        xnn_lower_node(&w, node);
    w.at -= w.at > 0; /* nodes for outputs belong to the last node */
    define_outputs(&w);
    if (w.failed)
        return false;
    x_sweep(&w);
    xnn_write(&w.x, body->program->arena, out);
    return out->data ||
           diag_unsupported(d, (Loc){.file = body->program->name}, "a region's blob is too large");
}
