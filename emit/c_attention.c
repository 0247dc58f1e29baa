/* c_attention.c -- prints scaled_dot_product_attention, and attention that a model spells out.
 * The code calls the core once per head, in loops over the batch axes.  `work` holds the scores of
 * one tile at a time. */
#include "emit/c_emit.h"
#include "ir/session.h"
#include <string.h>

enum { Q, K, V, MASK, BIAS, Y, N_OPERANDS };

typedef struct Heads {
    const Value *v[N_OPERANDS]; /* v[MASK] and v[BIAS] may be NULL */
    Dim stride[N_OPERANDS][MAX_RANK];
    int64_t groups; /* the number of heads of q that share a head of k and v */
    Attention of;
} Heads;

static Dim axis_size(const Value *v, int from_last)
{
    return from_last < v->type.rank ? v->type.dim[v->type.rank - 1 - from_last] : DIM(1);
}

/* Returns the stride of operand k along an axis that is counted from the last one.  The stride
 * of an axis of size 1 is 0. */
static Dim step_of(const Heads *h, int k, int from_last)
{
    const Type t = h->v[k]->type;
    return from_last >= t.rank || dim_is_one(axis_size(h->v[k], from_last))
               ? DIM(0)
               : h->stride[k][t.rank - 1 - from_last];
}

static bool read_arguments(Function *f, const Node *n, Heads *h)
{
    const Attention *a = &h->of;
    *h = (Heads){.groups = 1};
    if (!attention_read(n, &h->of))
        return function_refuse(f, n, "expects a scale that does not depend on a symbolic size");
    const Value *operand[N_OPERANDS] = {a->q, a->k, a->v, a->mask, a->bias, n->out[0]};
    memcpy(h->v, operand, sizeof operand);
    if (a->dropout != 0)
        return function_refuse(f, n, "has attention without dropout only");
    if (!a->is_shared || dim_equal(axis_size(a->q, 2), axis_size(a->k, 2)))
        return true;
    if (axis_size(a->q, 2).expr || axis_size(a->k, 2).expr || axis_size(a->k, 2).value < 1)
        return function_refuse(f, n, "expects heads counted by plain integers");
    h->groups = axis_size(a->q, 2).value / axis_size(a->k, 2).value;
    return true;
}

static bool check_operand(Function *f, const Node *n, const Heads *h, int k)
{
    const Value *v = h->v[k];
    bool is_mask = k == MASK || k == BIAS;
    if (v->type.dtype != ETC_F32 && !(k == MASK && v->type.dtype == ETC_BOOL))
        return function_refuse(f, n, "has C for float32 only");
    if (!is_mask && v->type.rank < 2)
        return function_refuse(f, n, "expects two axes at least");
    Dim column = step_of(h, k, 0);
    if (!dim_is_one(column) && !dim_is_one(axis_size(v, 0)))
        return function_refuse(f, n, "expects neighbouring columns in attention");
    for (int i = 2; i < v->type.rank; i++) {
        Dim size = axis_size(v, i), want = axis_size(h->v[Y], i);
        bool shares = i == 2 && (k == K || k == V) && h->groups > 1;
        if (shares ? size.expr || size.value * h->groups != want.value
                   : !dim_is_one(size) && !dim_equal(size, want))
            return function_refuse(f, n, "expects batch axes that broadcast");
    }
    return v->type.rank <= h->v[Y]->type.rank ||
           function_refuse(f, n, "expects batch axes that broadcast");
}

/* Returns loops over the batch axes of y.  If heads of q share heads of k and v, a separate loop
 * runs over the heads of q that share one. */
static Nest head_loops(Function *f, const Heads *h)
{
    Type batch = h->v[Y]->type;
    batch.rank -= 2;
    Nest nest = nest_new(f->e, batch, N_OPERANDS);
    bool split = h->groups > 1;
    for (int i = 0; i < batch.rank; i++)
        for (int k = 0; k < N_OPERANDS; k++)
            nest.stride[k][i] = h->v[k] ? step_of(h, k, batch.rank + 1 - i) : DIM(0);
    int last = batch.rank - 1;
    for (int k = 0; split && k < N_OPERANDS; k++) {
        bool is_shared = k == K || k == V;
        Dim step = nest.stride[k][last], by = DIM(is_shared ? 1 : h->groups);
        nest.stride[k][last] = dim_mul(f->e->method->program, step, by);
        nest.stride[k][last + 1] = is_shared ? DIM(0) : step;
    }
    if (split) {
        nest.size[last] = axis_size(h->v[K], 2);
        nest.size[last + 1] = DIM(h->groups);
        nest.rank++;
    }
    nest_collapse(f->e, &nest);
    return nest;
}

static int64_t whole_vectors(int64_t n)
{
    return (n + 15) / 16 * 16;
}

/* Returns the bytes of a large tile of scores and of the panel, if these are more than the target's
 * scratch; else 0.  Keys are packed again for each tile, so tiles with more queries take less time.
 * A tile takes at most half of the bytes of queries and keys.  With --math bf16 it is at least about
 * what etc_tiles_attention takes, if that is below 1 MiB.  If sizes are symbolic, the result is 0.
 * Microcontrollers have less scratch than a panel and a tile take: half of SMALL is for the panel. */
static int64_t large_work(const Function *f, const Heads *h)
{
    enum { FULL = 65536, SMALL = 16384 };
    enum { QUERIES = 96, PANEL_BYTES = 32768, KEY_TERMS = 128, MOST = 1 << 20 }; /* as in
                                                              * kernels/attention.h and tile.h */
    const Type q = *part_whole(f, h->v[Q]), k = *part_whole(f, h->v[K]);
    if (f->e->target->work_bytes < FULL)
        return SMALL;
    if (!type_is_static(q) || !type_is_static(k) || f->e->target->mcu)
        return 0;
    const int64_t terms = q.dim[q.rank - 1].value, n = q.dim[q.rank - 2].value;
    const int64_t row = whole_vectors(axis_size(h->v[K], 1).value) + 32 +
                        whole_vectors(terms < KEY_TERMS ? terms : KEY_TERMS);
    const int64_t most = (type_bytes(q) / 2 + type_bytes(k) / 2) / 4 / row;
    int64_t rows = n < QUERIES ? n : QUERIES;
    rows = rows < most ? rows : most;
    int64_t bytes = PANEL_BYTES + 4 * rows * row;
    const int64_t keys = row - 32, tiles = 4 * keys * terms + 256 * keys;
    if (f->e->p->session->rounds_products && tiles > bytes && tiles < MOST)
        bytes = tiles;
    return bytes > f->e->target->work_bytes ? (bytes + 63) / 64 * 64 : 0;
}

static void put_geometry(Function *f, const Heads *h)
{
    const Value *mask = h->v[MASK];
    Dim field[10] = {axis_size(h->v[Q], 1), axis_size(h->v[K], 1), axis_size(h->v[Q], 0),
                     axis_size(h->v[V], 0), step_of(h, Q, 1),    step_of(h, K, 1),
                     step_of(h, V, 1),    step_of(h, Y, 1),    mask ? step_of(h, MASK, 1) : DIM(0),
                     mask ? step_of(h, MASK, 0) : DIM(0)};
    put(&f->body, "    /* queries, keys, floats of a key, of a value; rows of q, k, v, y; row and "
        "column of the\n     * mask; floats of a tile; scale, is_causal; row and column of the "
        "bias; cap of scores, fill,\n     * is_plain */\n"
        "    const EtcAttention g = {");
    for (int i = 0; i < 10; i++) {
        function_dim(f, field[i]);
        put(&f->body, ", ");
    }
    f->work_bytes = large_work(f, h);
    put(&f->body, "ETC_ATTENTION_ROOM, ");
    put_float(&f->body, (float)h->of.scale);
    put(&f->body, ", %d, ", h->of.is_causal);
    for (int i = 1; i >= 0; i--) {
        function_dim(f, h->v[BIAS] ? step_of(h, BIAS, i) : DIM(0));
        put(&f->body, ", ");
    }
    put_float(&f->body, (float)h->of.cap);
    put(&f->body, ", ");
    put_float(&f->body, (float)h->of.fill);
    put(&f->body, ", %d};\n", !h->of.is_empty);
}

static void put_operand(Function *f, const Heads *h, const Nest *nest, int k,
                        const char *const *index)
{
    const char *pointer = k == Y ? f->name_of[h->v[Y]->index] : function_pointer(f, h->v[k]);
    nest_address(f, nest, k, pointer, nest->rank, index);
}

static void put_mask(Function *f, const Heads *h, const Nest *nest, int k,
                     const char *const *index)
{
    if (h->v[k])
        put_operand(f, h, nest, k, index);
    else
        put(&f->body, "NULL");
}

static void put_head(Function *f, const Heads *h, const Nest *nest, const char *const *index,
                     int indent)
{
    Text *t = &f->body;
    const char *mask = names_make(f->names, "", "mask");
    bool is_bool = h->v[MASK] && h->v[MASK]->type.dtype == ETC_BOOL;
    put(t, "%*sconst EtcMask %s = {%s", indent, "", mask, is_bool ? "NULL, " : "");
    put_mask(f, h, nest, MASK, index);
    put(t, is_bool ? ", " : ", NULL, ");
    put_mask(f, h, nest, BIAS, index);
    const Type q = *part_whole(f, h->v[Q]);
    const bool is_few = dim_upper(q.dim[q.rank - 2]) < 16; /* queries, for which nothing is rounded */
    put(t, "};\n%*setc_attention_%s(", indent, "",
        f->e->p->session->rounds_products && !is_few ? "bf16" : "f32");
    for (int k = Q; k <= V; k++) {
        put_operand(f, h, nest, k, index);
        put(t, ", ");
    }
    put(t, "&%s, ", mask);
    put_operand(f, h, nest, Y, index);
    put(t, ", &g, work);\n");
}

bool emit_attention(Function *f, const Node *n, Clamp clamp)
{
    const char *index[MAX_LOOPS];
    Heads h;
    (void)clamp;
    if (!read_arguments(f, n, &h))
        return false;
    for (int k = 0; k < N_OPERANDS; k++) {
        if (!h.v[k])
            continue;
        type_strides(f->e, value_type(h.v[k]), h.stride[k]);
        if (!check_operand(f, n, &h, k))
            return false;
    }
    if (h.v[Y]->type.rank - 1 > MAX_LOOPS)
        return function_refuse(f, n, "has too many batch axes");
    put_geometry(f, &h);
    Nest nest = head_loops(f, &h);
    int indent = nest_open(f, &nest, nest.rank, index);
    put_head(f, &h, &nest, index, indent);
    nest_close(f, nest.rank);
    f->uses_work = true;
    return true;
}
