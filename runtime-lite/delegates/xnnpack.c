/* xnnpack.c -- runs XNNPACK blobs through libXNNPACK (Debian 13's, of 2024-11-08).
 *
 * xnn_read.c has proven the graph before the library sees any of it.  Packed weights are shared by
 * named data.  The library finds them by address and a weak sum of the node's parameters, so data
 * that two nodes pack differently would give one of them memory of another size: a delegate with
 * such a node, or with constants in the blob, shares nothing. */
#include "runtime-lite/delegates/xnnpack.h"
#include "runtime-lite/delegates/xnn_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pthreadpool.h>
#include <xnnpack.h>

typedef struct Use { /* all that decides how a filter is packed */
    uint32_t kind, flags, field[XNN_FIELDS], type[4], bias, group, is_set;
    uint32_t rank;
    size_t dim[XNN_RANK];
    float scale[3];
    int32_t zero[3];
    const void *scales;
} Use;

typedef struct Copy { /* a constant at the very end of the file */
    struct Copy *next;
    const uint8_t *of;
    uint64_t n_bytes;
    uint8_t *data;
} Copy;

enum { PACKED_LISTS = 1024, PACKED_ALIGN = 64, FIRST_BLOCK = 512 << 10, NEXT_BLOCK = 32 << 20 };

typedef struct Packed { /* weights as the library packed them */
    struct Packed *next;
    struct xnn_weights_cache_look_up_key key;
    void *data;
    size_t number; /* in `at` */
} Packed;

typedef struct Block { /* that packed weights lie in, one behind the other */
    struct Block *next;
    uint8_t *data;
    size_t n_bytes, used;
} Block;

typedef struct Profile { /* of a runtime, made when it is first asked for */
    char *names;
    EtcPart *part;
    uint64_t *microseconds;
    uint32_t n;
} Profile;

struct EtcXnnpack {
    const uint8_t *file; /* of the program that is served; NULL: none yet */
    size_t file_bytes;
    XnnNames names;
    uint32_t *first; /* by row of names: the first row of the same address */
    Use *use;        /* by such first rows */
    Copy *copies;
    struct xnn_weights_cache_provider cache;
    Packed *packed[PACKED_LISTS];
    Packed **at; /* all of them; the library's offsets count here */
    size_t n_packed;
    Block *blocks; /* the one in use first */
    xnn_workspace_t workspace;
    pthreadpool_t pool; /* NULL: the caller's thread alone */
    uint64_t packed_bytes;
    uint8_t is_packing; /* else packed weights are only read */
    uint8_t is_sharing; /* while packing: by key, with others */
    uint8_t is_profiling;
};

typedef struct State {
    EtcXnnpack *host;
    XnnGraph graph;
    xnn_subgraph_t subgraph; /* while building */
    xnn_runtime_t runtime;
    uint32_t *id;    /* the library's, by place */
    XnnShape *shape; /* of the last call */
    XnnShape *old;   /* of arguments before it */
    struct xnn_external_value *external;
    Profile profile;
    uint64_t packed_bytes; /* that no delegate before had */
    uint8_t is_shaped;
} State;

static EtcStatus fail(EtcError *e, EtcStatus status, const char *what, uint32_t index)
{
    return etc_xnn_fail(e, status, what, index);
}

/* -- packed weights, by the address of what was packed -------------------------------------- */

static Packed **list_of(EtcXnnpack *x, const struct xnn_weights_cache_look_up_key *key)
{
    return &x->packed[((uintptr_t)key->kernel / 64 ^ key->seed) % PACKED_LISTS];
}

static size_t look_up(void *context, const struct xnn_weights_cache_look_up_key *key)
{
    EtcXnnpack *x = context;
    const Packed *first = x->is_sharing ? *list_of(x, key) : NULL;
    for (const Packed *p = first; p != NULL; p = p->next) {
        if ((p->key.seed == key->seed) && (p->key.kernel == key->kernel) &&
            (p->key.bias == key->bias)) {
            return p->number;
        }
    }
    return SIZE_MAX;
}

/* Memory as long as the host lives; of a block, what nobody writes is never backed.  The first is
 * too small for a large page, which would take a small program longer than its packing. */
static void *packed_memory(EtcXnnpack *x, size_t n)
{
    Block *b = x->blocks;
    if (n > SIZE_MAX - XNN_READS_BEHIND - PACKED_ALIGN) {
        return NULL;
    }
    n = (n + XNN_READS_BEHIND + PACKED_ALIGN - 1) / PACKED_ALIGN * PACKED_ALIGN;
    if ((b == NULL) || (n > b->n_bytes - b->used)) {
        b = calloc(1, sizeof *b);
        if (b == NULL) {
            return NULL;
        }
        b->n_bytes = (x->blocks == NULL) ? FIRST_BLOCK : NEXT_BLOCK;
        b->n_bytes = (n > b->n_bytes) ? n : b->n_bytes;
        b->data = etc_xnn_allocate(PACKED_ALIGN, b->n_bytes);
        b->next = x->blocks;
        if (b->data == NULL) {
            free(b);
            return NULL;
        }
        x->blocks = b;
    }
    b->used += n;
    return b->data + b->used - n;
}

/* Memory that look_up_or_insert is then told of. */
static void *reserve_space(void *context, size_t n)
{
    EtcXnnpack *x = context;
    const size_t k = x->n_packed;
    Packed **at = (k & (k - 1)) ? x->at : realloc(x->at, (k ? 2 * k : 1) * sizeof *at);
    Packed *p = calloc(1, sizeof *p);
    x->at = at ? at : x->at;
    if ((at != NULL) && (p != NULL)) {
        p->data = packed_memory(x, n);
    }
    if ((at == NULL) || (p == NULL) || (p->data == NULL)) {
        free(p);
        return NULL;
    }
    p->number = k;
    x->packed_bytes += n;
    x->at[x->n_packed++] = p;
    return p->data;
}

static size_t look_up_or_insert(void *context, const struct xnn_weights_cache_look_up_key *key,
                                void *data, size_t n)
{
    EtcXnnpack *x = context;
    const size_t known = look_up(context, key); /* some operators ask only now */
    Packed *p = x->n_packed ? x->at[x->n_packed - 1] : NULL;
    (void)n;
    if ((known != SIZE_MAX) || (p == NULL) || (p->data != data)) {
        return known;
    }
    if (x->is_sharing) {
        p->key = *key;
        p->next = *list_of(x, key);
        *list_of(x, key) = p;
    }
    return p->number;
}

static bool is_finalized(void *context)
{
    return !((const EtcXnnpack *)context)->is_packing;
}

static void *offset_to_addr(void *context, size_t offset)
{
    const EtcXnnpack *x = context;
    return (offset < x->n_packed) ? x->at[offset]->data : NULL;
}

static enum xnn_status delete_cache(void *context)
{
    (void)context;
    return xnn_status_success;
}

static void free_packed(EtcXnnpack *x)
{
    for (size_t i = 0; i < x->n_packed; i++) {
        free(x->at[i]);
    }
    free(x->at);
    while (x->blocks != NULL) {
        Block *b = x->blocks;
        x->blocks = b->next;
        free(b->data);
        free(b);
    }
}

/* -- the library's memory ------------------------------------------------------------------ */

static void *allocate_some(void *context, size_t n)
{
    (void)context;
    return etc_xnn_allocate(sizeof(void *), n);
}

static void *reallocate_some(void *context, void *p, size_t n)
{
    (void)context;
    return (p == NULL) ? etc_xnn_allocate(sizeof(void *), n) : realloc(p, n);
}

static void free_some(void *context, void *p)
{
    (void)context;
    free(p);
}

static void *allocate_aligned(void *context, size_t align, size_t n)
{
    (void)context;
    return etc_xnn_allocate(align, n);
}

static const struct xnn_allocator allocator = {
    NULL, allocate_some, reallocate_some, free_some, allocate_aligned, free_some};

/* -- host --------------------------------------------------------------------------------- */

EtcXnnpack *etc_xnnpack_new(int n_threads)
{
    EtcXnnpack *x = calloc(1, sizeof *x);
    if (x == NULL) {
        return NULL;
    }
    struct xnn_weights_cache_provider cache = {
        x, look_up, reserve_space, look_up_or_insert, is_finalized, offset_to_addr, delete_cache};
    x->cache = cache;
    if ((xnn_initialize(&allocator) != xnn_status_success) ||
        (xnn_create_workspace(&x->workspace) != xnn_status_success)) {
        etc_xnnpack_free(x);
        return NULL;
    }
    x->pool = (n_threads > 1) ? pthreadpool_create((size_t)n_threads) : NULL;
    return x;
}

void etc_xnnpack_profile(EtcXnnpack *x)
{
    x->is_profiling = 1;
}

void etc_xnnpack_free(EtcXnnpack *x)
{
    if (x == NULL) {
        return;
    }
    if (x->workspace != NULL) {
        xnn_release_workspace(x->workspace);
    }
    free_packed(x);
    if (x->pool != NULL) {
        pthreadpool_destroy(x->pool);
    }
    while (x->copies != NULL) {
        Copy *c = x->copies;
        x->copies = c->next;
        free(c->data);
        free(c);
    }
    free(x->names.row);
    free(x->first);
    free(x->use);
    free(x);
}

typedef struct Place {
    uintptr_t at;
    uint32_t row;
} Place;

static int by_place(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    int order = (x->at > y->at) - (x->at < y->at);
    return (order != 0) ? order : (x->row > y->row) - (x->row < y->row);
}

/* Several keys may stand for the same bytes, and it is their address that the library looks at. */
static int find_first(EtcXnnpack *x)
{
    const uint32_t n = x->names.n;
    Place *place = calloc((size_t)n + 1, sizeof *place);
    x->first = calloc((size_t)n + 1, sizeof *x->first);
    x->use = calloc((size_t)n + 1, sizeof *x->use);
    const int ok = (place != NULL) && (x->first != NULL) && (x->use != NULL);
    for (uint32_t i = 0; ok && (i < n); i++) {
        place[i].at = (uintptr_t)x->names.row[i].data;
        place[i].row = i;
    }
    if (ok) {
        qsort(place, n, sizeof *place, by_place);
    }
    for (uint32_t i = 0; ok && (i < n); i++) {
        const int same = (i > 0) && (place[i].at == place[i - 1].at);
        x->first[place[i].row] = same ? x->first[place[i - 1].row] : place[i].row;
    }
    free(place);
    return ok;
}

static EtcStatus serve(EtcXnnpack *x, const EtcProgram *p, EtcError *e)
{
    if (x->file != NULL) {
        return (x->file == p->file) ? ETC_OK
                                    : fail(e, ETC_BAD_ARG, "serves another program", XNN_NO_ID);
    }
    EtcStatus status = etc_xnn_names(p, &x->names, e);
    if ((status == ETC_OK) && !find_first(x)) {
        status = fail(e, ETC_NO_MEMORY, "no memory for the names of data", XNN_NO_ID);
    }
    if (status != ETC_OK) {
        free(x->names.row);
        free(x->first);
        free(x->use);
        memset(&x->names, 0, sizeof x->names);
        x->first = NULL;
        x->use = NULL;
        return status;
    }
    x->file = p->file;
    x->file_bytes = p->n_bytes;
    return ETC_OK;
}

/* -- values ------------------------------------------------------------------------------- */

static enum xnn_datatype datatype(XnnType t)
{
    static const enum xnn_datatype of[] = {
        [XNN_F32] = xnn_datatype_fp32,       [XNN_F16] = xnn_datatype_fp16,
        [XNN_QINT8] = xnn_datatype_qint8,    [XNN_QUINT8] = xnn_datatype_quint8,
        [XNN_QINT32] = xnn_datatype_qint32,  [XNN_QCINT8] = xnn_datatype_qcint8,
        [XNN_QCINT32] = xnn_datatype_qcint32, [XNN_QCINT4] = xnn_datatype_qcint4,
        [XNN_QDINT8] = xnn_datatype_qdint8,  [XNN_QBINT4] = xnn_datatype_qbint4,
        [XNN_INT32] = xnn_datatype_int32,
    };
    return of[t];
}

/* The library may read some bytes behind a constant: one at the end of the file is copied.  The
 * host keeps copies, as it knows packed weights by their address. */
static const void *readable(EtcXnnpack *x, const XnnValue *v)
{
    const uint8_t *end = x->file + x->file_bytes;
    if ((v->data == NULL) || (v->n_bytes + XNN_READS_BEHIND <= (size_t)(end - v->data))) {
        return v->data;
    }
    for (const Copy *c = x->copies; c != NULL; c = c->next) {
        if ((c->of == v->data) && (c->n_bytes == v->n_bytes)) {
            return c->data;
        }
    }
    Copy *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->data = calloc(1, v->n_bytes + XNN_READS_BEHIND);
    c->next = x->copies;
    c->of = v->data;
    c->n_bytes = v->n_bytes;
    x->copies = c;
    if (c->data != NULL) {
        memcpy(c->data, v->data, v->n_bytes);
    }
    return c->data;
}

static enum xnn_status define_value(State *s, uint32_t i)
{
    const XnnValue *v = &s->graph.value[i];
    const void *data = readable(s->host, v);
    uint32_t flags = v->is_input    ? XNN_VALUE_FLAG_EXTERNAL_INPUT
                     : v->is_output ? XNN_VALUE_FLAG_EXTERNAL_OUTPUT
                                    : 0;
    const enum xnn_datatype t = datatype(v->type);
    const size_t n = v->shape.rank, *dim = v->shape.dim;
    if ((v->data != NULL) && (data == NULL)) {
        return xnn_status_out_of_memory;
    }
    switch (v->quant) {
    case XNN_PER_TENSOR:
        return xnn_define_quantized_tensor_value(s->subgraph, t, v->zero, v->scale, n, dim, data,
                                                 v->external, flags, &s->id[i]);
    case XNN_PER_CHANNEL:
        return xnn_define_channelwise_quantized_tensor_value_v2(
            s->subgraph, t, v->zero, v->scales, n, v->channel_dim, dim, data, v->external, flags,
            &s->id[i]);
    case XNN_PER_TOKEN:
        return xnn_define_dynamically_quantized_tensor_value(
            s->subgraph, t, n, v->n_token_dims, dim, v->external, flags, &s->id[i]);
    case XNN_PER_GROUP:
        return xnn_define_blockwise_quantized_tensor_value(
            s->subgraph, t, v->zero, v->scales, n, v->channel_dim, v->group, dim, data,
            v->external, flags, &s->id[i]);
    case XNN_PLAIN:
    default:
        return xnn_define_tensor_value(s->subgraph, t, n, dim, data, v->external, flags,
                                       &s->id[i]);
    }
}

/* -- nodes -------------------------------------------------------------------------------- */

typedef struct Ids { /* of one node, as the library has them */
    uint32_t in[XNN_INPUTS], out[2];
} Ids;

static enum xnn_unary_operator unary_operator(XnnKind kind)
{
    switch ((int)kind) {
    case XNN_SIGMOID: return xnn_unary_sigmoid;
    case XNN_CLAMP: return xnn_unary_clamp;
    case XNN_FLOOR: return xnn_unary_floor;
    case XNN_CONVERT: return xnn_unary_convert;
    case XNN_SQRT: return xnn_unary_square_root;
    case XNN_CEILING: return xnn_unary_ceiling;
    case XNN_HARDSWISH: return xnn_unary_hardswish;
    case XNN_LEAKY_RELU: return xnn_unary_leaky_relu;
    case XNN_NEGATE: return xnn_unary_negate;
    case XNN_SQUARE: return xnn_unary_square;
    case XNN_ELU: return xnn_unary_elu;
    case XNN_ABS: return xnn_unary_abs;
    case XNN_RSQRT: return xnn_unary_reciprocal_square_root;
    case XNN_LOG: return xnn_unary_log;
    case XNN_GELU: return xnn_unary_gelu;
    case XNN_TANH: return xnn_unary_tanh;
    case XNN_EXP: return xnn_unary_exp;
    case XNN_SIN: return xnn_unary_sine;
    case XNN_COS: return xnn_unary_cosine;
    default: return xnn_unary_invalid;
    }
}

static enum xnn_status define_unary(xnn_subgraph_t g, const XnnNode *n, const Ids *v)
{
    union xnn_unary_params params;
    memset(&params, 0, sizeof params);
    if (n->kind == XNN_CLAMP) {
        params.clamp.min = n->min;
        params.clamp.max = n->max;
    } else if (n->kind == XNN_ELU) {
        params.elu.alpha = n->number;
    } else if (n->kind == XNN_LEAKY_RELU) {
        params.leaky_relu.negative_slope = n->number;
    }
    const int has_params =
        (n->kind == XNN_CLAMP) || (n->kind == XNN_ELU) || (n->kind == XNN_LEAKY_RELU);
    return xnn_define_unary(g, unary_operator(n->kind), has_params ? &params : NULL, v->in[0],
                            v->out[0], 0);
}

static enum xnn_status define_binary(xnn_subgraph_t g, const XnnNode *n, const Ids *v)
{
    struct xnn_binary_params params;
    params.output_min = (double)n->min;
    params.output_max = (double)n->max;
    enum xnn_binary_operator op = (n->kind == XNN_ADD)        ? xnn_binary_add
                                  : (n->kind == XNN_SUBTRACT) ? xnn_binary_subtract
                                  : (n->kind == XNN_MULTIPLY) ? xnn_binary_multiply
                                  : (n->kind == XNN_DIV)      ? xnn_binary_divide
                                  : (n->kind == XNN_MAXIMUM)  ? xnn_binary_maximum
                                  : (n->kind == XNN_MINIMUM)  ? xnn_binary_minimum
                                                              : xnn_binary_prelu;
    const int has_range = (n->kind != XNN_MAXIMUM) && (n->kind != XNN_MINIMUM) &&
                          (n->kind != XNN_PRELU);
    return xnn_define_binary(g, op, has_range ? &params : NULL, v->in[0], v->in[1], v->out[0], 0);
}

static enum xnn_status define_conv(xnn_subgraph_t g, const XnnNode *n, const Ids *v)
{
    const uint32_t *u = n->field;
    switch ((int)n->kind) {
    case XNN_CONV:
        return xnn_define_convolution_2d(
            g, u[F_TOP], u[F_RIGHT], u[F_BOTTOM], u[F_LEFT], u[F_KERNEL_H], u[F_KERNEL_W],
            u[F_STRIDE_H], u[F_STRIDE_W], u[F_DILATION_H], u[F_DILATION_W], u[F_GROUPS],
            u[F_GROUP_IN], u[F_GROUP_OUT], n->min, n->max, v->in[0], v->in[1], v->in[2], v->out[0],
            0);
    case XNN_DEPTHWISE:
        return xnn_define_depthwise_convolution_2d(
            g, u[F_TOP], u[F_RIGHT], u[F_BOTTOM], u[F_LEFT], u[F_KERNEL_H], u[F_KERNEL_W],
            u[F_STRIDE_H], u[F_STRIDE_W], u[F_DILATION_H], u[F_DILATION_W], u[F_GROUP_OUT],
            u[F_GROUPS], n->min, n->max, v->in[0], v->in[1], v->in[2], v->out[0], 0);
    default:
        return xnn_define_deconvolution_2d(
            g, u[F_TOP], u[F_RIGHT], u[F_BOTTOM], u[F_LEFT], u[F_ADJUST_H], u[F_ADJUST_W],
            u[F_KERNEL_H], u[F_KERNEL_W], u[F_STRIDE_H], u[F_STRIDE_W], u[F_DILATION_H],
            u[F_DILATION_W], u[F_GROUPS], u[F_GROUP_IN], u[F_GROUP_OUT], n->min, n->max, v->in[0],
            v->in[1], v->in[2], v->out[0], 0);
    }
}

static enum xnn_status define_pool(xnn_subgraph_t g, const XnnNode *n, const Ids *v)
{
    const uint32_t *u = n->field;
    if (n->kind == XNN_ARGMAX_POOL) {
        return xnn_define_argmax_pooling_2d(g, u[F_TOP], u[F_RIGHT], u[F_BOTTOM], u[F_LEFT],
                                            u[F_KERNEL_H], u[F_KERNEL_W], v->in[0], v->out[0],
                                            v->out[1], 0);
    }
    if (n->kind == XNN_AVG_POOL) {
        return xnn_define_average_pooling_2d(
            g, u[F_TOP], u[F_RIGHT], u[F_BOTTOM], u[F_LEFT], u[F_KERNEL_H], u[F_KERNEL_W],
            u[F_STRIDE_H], u[F_STRIDE_W], n->min, n->max, v->in[0], v->out[0], 0);
    }
    return xnn_define_max_pooling_2d(g, u[F_TOP], u[F_RIGHT], u[F_BOTTOM], u[F_LEFT],
                                     u[F_KERNEL_H], u[F_KERNEL_W], u[F_STRIDE_H], u[F_STRIDE_W],
                                     u[F_DILATION_H], u[F_DILATION_W], n->min, n->max, v->in[0],
                                     v->out[0], 0);
}

/* Mean over rows and columns, then the range if there is one. */
static enum xnn_status define_global_pool(State *s, const XnnNode *n, const Ids *v)
{
    static const size_t axes[] = {1, 2};
    const XnnValue *out = &s->graph.value[n->out[0]];
    const uint32_t flags = (n->flags & FLAG_KEEP_DIMS) ? XNN_FLAG_KEEP_DIMS : 0;
    uint32_t mean = v->out[0];
    if (isinf(n->min) && isinf(n->max)) {
        return xnn_define_static_reduce(s->subgraph, xnn_reduce_mean, 2, axes, v->in[0], mean,
                                        flags);
    }
    if (out->quant != XNN_PLAIN) {
        return xnn_status_unsupported_parameter;
    }
    enum xnn_status status =
        xnn_define_tensor_value(s->subgraph, datatype(out->type), out->shape.rank, out->shape.dim,
                                NULL, XNN_INVALID_VALUE_ID, 0, &mean);
    if (status == xnn_status_success) {
        status = xnn_define_static_reduce(s->subgraph, xnn_reduce_mean, 2, axes, v->in[0], mean,
                                          flags);
    }
    union xnn_unary_params params;
    params.clamp.min = n->min;
    params.clamp.max = n->max;
    return (status == xnn_status_success)
               ? xnn_define_unary(s->subgraph, xnn_unary_clamp, &params, mean, v->out[0], 0)
               : status;
}

static enum xnn_status define_concat(xnn_subgraph_t g, const XnnNode *n, const Ids *v)
{
    const int32_t axis = (int32_t)n->field[0];
    const uint32_t *in = v->in, out = v->out[0];
    switch (n->n_in) {
    case 2:
        return xnn_define_concatenate2(g, axis, in[0], in[1], out, 0);
    case 3:
        return xnn_define_concatenate3(g, axis, in[0], in[1], in[2], out, 0);
    case 4:
        return xnn_define_concatenate4(g, axis, in[0], in[1], in[2], in[3], out, 0);
    default:
        return xnn_define_concatenate5(g, axis, in[0], in[1], in[2], in[3], in[4], out, 0);
    }
}

static enum xnn_status define_node(State *s, uint32_t i)
{
    xnn_subgraph_t g = s->subgraph;
    const XnnNode *n = &s->graph.node[i];
    const uint32_t flip = (n->flags & FLAG_TRANSPOSE) ? XNN_FLAG_TRANSPOSE_WEIGHTS : 0;
    Ids v;
    for (uint32_t k = 0; k < n->n_in; k++) {
        v.in[k] = (n->in[k] == XNN_NO_ID) ? XNN_INVALID_VALUE_ID : s->id[n->in[k]];
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        v.out[k] = s->id[n->out[k]];
    }
    switch ((int)n->kind) {
    case XNN_ADD: case XNN_SUBTRACT: case XNN_MULTIPLY: case XNN_DIV: case XNN_MAXIMUM:
    case XNN_MINIMUM: case XNN_PRELU:
        return define_binary(g, n, &v);
    case XNN_CONV: case XNN_DEPTHWISE: case XNN_CONV_TRANSPOSE:
        return define_conv(g, n, &v);
    case XNN_AVG_POOL: case XNN_MAX_POOL: case XNN_ARGMAX_POOL:
        return define_pool(g, n, &v);
    case XNN_CONCAT2: case XNN_CONCAT3: case XNN_CONCAT4: case XNN_CONCAT5:
        return define_concat(g, n, &v);
    case XNN_GLOBAL_POOL:
        return define_global_pool(s, n, &v);
    case XNN_FULLY_CONNECTED:
        return xnn_define_fully_connected(g, n->min, n->max, v.in[0], v.in[1], v.in[2], v.out[0],
                                          flip);
    case XNN_BATCH_MATMUL:
        return xnn_define_batch_matrix_multiply(g, v.in[0], v.in[1], v.out[0], flip);
    case XNN_SOFTMAX:
        return xnn_define_softmax(g, v.in[0], v.out[0], 0);
    case XNN_TRANSPOSE:
        return xnn_define_static_transpose(g, n->a.rank, n->a.dim, v.in[0], v.out[0], 0);
    case XNN_RESHAPE:
        return xnn_define_static_reshape(g, n->a.rank, n->a.dim, v.in[0], v.out[0], 0);
    case XNN_SLICE:
        return xnn_define_static_slice(g, n->a.rank, n->a.dim, n->b.dim, v.in[0], v.out[0], 0);
    case XNN_PAD:
        return xnn_define_static_constant_pad(g, n->a.dim, n->b.dim, n->number, v.in[0], v.out[0],
                                              0);
    case XNN_RESIZE:
        return xnn_define_static_resize_bilinear_2d(
            g, n->field[0], n->field[1], v.in[0], v.out[0],
            (n->flags & FLAG_ALIGN_CORNERS) ? XNN_FLAG_ALIGN_CORNERS : 0);
    case XNN_COPY:
        return xnn_define_copy(g, v.in[0], v.out[0], 0);
    default:
        return define_unary(g, n, &v);
    }
}

/* -- packed weights ----------------------------------------------------------------------- */

static int packs(const XnnGraph *g, const XnnNode *n)
{
    const int may = (n->kind == XNN_FULLY_CONNECTED) || (n->kind == XNN_CONV) ||
                    (n->kind == XNN_DEPTHWISE) || (n->kind == XNN_CONV_TRANSPOSE) ||
                    (n->kind == XNN_BATCH_MATMUL);
    return may && (g->value[n->in[1]].data != NULL);
}

static Use use_of(const EtcXnnpack *x, const XnnGraph *g, const XnnNode *n)
{
    const uint32_t value[] = {n->in[0], n->in[1], n->out[0],
                              (n->n_in > 2) ? n->in[2] : XNN_NO_ID};
    const XnnValue *filter = &g->value[n->in[1]];
    Use u;
    memset(&u, 0, sizeof u);
    u.is_set = 1;
    u.kind = n->kind;
    u.flags = n->flags;
    memcpy(u.field, n->field, sizeof u.field);
    for (int k = 0; k < 4; k++) {
        if (value[k] != XNN_NO_ID) {
            u.type[k] = g->value[value[k]].type;
        }
        if (k < 3) {
            u.scale[k] = g->value[value[k]].scale;
            u.zero[k] = g->value[value[k]].zero;
        }
    }
    const uint32_t bias = (value[3] == XNN_NO_ID) ? XNN_NO_ID : g->value[value[3]].key;
    u.bias = (bias == XNN_NO_ID) ? XNN_NO_ID : x->first[bias];
    u.group = filter->group;
    u.rank = filter->shape.rank;
    memcpy(u.dim, filter->shape.dim, sizeof u.dim);
    u.scales = filter->scales;
    return u;
}

/* Whether every filter is packed as all before it of the same bytes. */
static int may_share(State *s)
{
    const XnnGraph *g = &s->graph;
    int may = !g->has_inline;
    for (uint32_t i = 0; may && (i < g->n_nodes); i++) {
        if (packs(g, &g->node[i])) {
            Use u = use_of(s->host, g, &g->node[i]), *seen;
            seen = &s->host->use[s->host->first[g->value[g->node[i].in[1]].key]];
            may = !seen->is_set || (memcmp(&u, seen, sizeof u) == 0);
            *seen = may ? u : *seen;
        }
    }
    return may;
}

/* -- init --------------------------------------------------------------------------------- */

static void stop(void *state)
{
    State *s = state;
    if (s->runtime != NULL) {
        xnn_delete_runtime(s->runtime);
    }
    if (s->subgraph != NULL) {
        xnn_delete_subgraph(s->subgraph);
    }
    etc_xnn_free(&s->graph);
    free(s->id);
    free(s->shape);
    free(s->old);
    free(s->external);
    free(s->profile.names);
    free(s->profile.part);
    free(s->profile.microseconds);
    free(s);
}

static EtcStatus refused(EtcError *e, enum xnn_status status, const char *what, uint32_t index)
{
    return fail(e, (status == xnn_status_out_of_memory) ? ETC_NO_MEMORY : ETC_UNSUPPORTED, what,
                index);
}

static EtcStatus build(State *s, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    EtcXnnpack *host = s->host;
    enum xnn_status x = xnn_create_subgraph(g->n_externals, 0, &s->subgraph);
    for (uint32_t i = 0; (x == xnn_status_success) && (i < g->n_values); i++) {
        x = define_value(s, i);
        if (x != xnn_status_success) {
            return refused(e, x, "libXNNPACK refuses a value", i);
        }
    }
    for (uint32_t i = 0; (x == xnn_status_success) && (i < g->n_nodes); i++) {
        x = define_node(s, i);
        if (x != xnn_status_success) {
            return refused(e, x, "libXNNPACK refuses a node", i);
        }
    }
    if (x == xnn_status_success) {
        const uint64_t before = host->packed_bytes;
        host->is_packing = 1;
        host->is_sharing = (uint8_t)may_share(s);
        x = xnn_create_runtime_v4(s->subgraph, &host->cache, host->workspace, host->pool,
                                  host->is_profiling ? XNN_FLAG_BASIC_PROFILING : 0, &s->runtime);
        host->is_packing = 0;
        s->packed_bytes = host->packed_bytes - before;
    }
    if (x != xnn_status_success) {
        return refused(e, x, "libXNNPACK refuses the graph", XNN_NO_ID);
    }
    xnn_delete_subgraph(s->subgraph);
    s->subgraph = NULL;
    return ETC_OK;
}

static EtcStatus allocate(State *s, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    s->id = calloc((size_t)g->n_values + 1, sizeof *s->id);
    s->shape = calloc((size_t)g->n_values + 1, sizeof *s->shape);
    s->old = calloc((size_t)g->n_externals + 1, sizeof *s->old);
    s->external = calloc((size_t)g->n_externals + 1, sizeof *s->external);
    if (!s->id || !s->shape || !s->old || !s->external) {
        return fail(e, ETC_NO_MEMORY, "no memory for the graph", XNN_NO_ID);
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        s->shape[i] = g->value[i].shape;
    }
    return ETC_OK;
}

static EtcStatus start(void *host, const EtcBlob *blob, void **state, EtcError *e)
{
    State *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return fail(e, ETC_NO_MEMORY, "no memory for the graph", XNN_NO_ID);
    }
    s->host = host;
    EtcStatus status = serve(s->host, blob->program, e);
    if (status == ETC_OK) {
        status = etc_xnn_read(blob->data, blob->n_bytes, &s->host->names, &s->graph, e);
    }
    status = (status == ETC_OK) ? allocate(s, e) : status;
    status = (status == ETC_OK) ? build(s, e) : status;
    if (status != ETC_OK) {
        stop(s);
        return status;
    }
    *state = s;
    return ETC_OK;
}

/* -- run ---------------------------------------------------------------------------------- */

static int is_type(const XnnValue *v, EtcDtype t)
{
    return (v->type == XNN_F32)      ? t == ETC_F32
           : (v->type == XNN_F16)    ? t == ETC_F16
           : (v->type == XNN_QINT8)  ? t == ETC_I8
           : (v->type == XNN_QUINT8) ? t == ETC_U8
                                     : (t == ETC_I32) || (v->is_output && (t == ETC_I64));
}

/* Sizes as they lie in memory; a tensor of rank 0 is one element. */
static XnnShape shape_of(const EtcTensor *t)
{
    XnnShape s = {1, {1}};
    if (t->rank > 0) {
        s.rank = (uint32_t)t->rank;
    }
    for (int32_t k = 0; k < t->rank; k++) {
        s.dim[k] = (size_t)t->dim[t->order ? t->order[k] : k];
    }
    return s;
}

static EtcTensor *tensor_at(const State *s, EtcValue *const *arg, uint32_t k)
{
    const XnnValue *v = &s->graph.value[s->graph.external[k]];
    EtcTensor *t = (arg[k]->tag == ETC_TENSOR) ? arg[k]->as.tensor : NULL;
    return ((t != NULL) && (t->rank <= XNN_RANK) && is_type(v, t->dtype)) ? t : NULL;
}

/* What its sizes ask for is there. */
static int is_backed(const EtcTensor *t, const XnnShape *s)
{
    return etc_xnn_count(s) * (int64_t)etc_dtype_size((int)t->dtype) <= t->capacity;
}

static EtcStatus take_inputs(State *s, EtcValue *const *arg, int32_t n_args, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    if ((uint32_t)n_args < g->n_externals) {
        return fail(e, ETC_BAD_FILE, "call with too few arguments", (uint32_t)n_args);
    }
    for (uint32_t k = 0; k < g->n_externals; k++) {
        uint32_t place = g->external[k];
        if (place == XNN_NO_ID) {
            continue;
        }
        const EtcTensor *t = tensor_at(s, arg, k);
        if (t == NULL) {
            return fail(e, ETC_BAD_FILE, "argument of another kind, dtype or rank", k);
        }
        if (!g->value[place].is_input) {
            continue;
        }
        XnnShape now = shape_of(t);
        if ((now.rank != g->value[place].shape.rank) || (etc_xnn_count(&now) < 0) ||
            !is_backed(t, &now)) {
            return fail(e, ETC_BAD_FILE, "argument of another rank, or without memory", k);
        }
        if (!etc_xnn_same(&now, &s->old[k])) {
            s->is_shaped = 0;
        }
        s->old[k] = s->shape[place] = now;
    }
    return ETC_OK;
}

static int has_empty(const State *s)
{
    for (uint32_t i = 0; i < s->graph.n_values; i++) {
        if (etc_xnn_count(&s->shape[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

/* The library's sizes are to be those worked out here. */
static EtcStatus reshape(State *s, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    enum xnn_status x = xnn_status_success;
    for (uint32_t k = 0; (x == xnn_status_success) && (k < g->n_externals); k++) {
        uint32_t place = g->external[k];
        if ((place != XNN_NO_ID) && g->value[place].is_input) {
            x = xnn_reshape_external_value(s->runtime, k, s->shape[place].rank,
                                           s->shape[place].dim);
        }
    }
    x = (x == xnn_status_success) ? xnn_reshape_runtime(s->runtime) : x;
    if (x != xnn_status_success) {
        return refused(e, x, "libXNNPACK refuses the sizes of a call", XNN_NO_ID);
    }
    for (uint32_t k = 0; k < g->n_externals; k++) {
        uint32_t place = g->external[k];
        size_t rank = 0;
        XnnShape out;
        if ((place == XNN_NO_ID) || !g->value[place].is_output) {
            continue;
        }
        x = xnn_get_external_value_shape(s->runtime, k, &rank, out.dim);
        out.rank = (uint32_t)rank;
        if ((x != xnn_status_success) || !etc_xnn_same(&out, &s->shape[place])) {
            return fail(e, ETC_UNSUPPORTED, "libXNNPACK makes other sizes", k);
        }
    }
    s->is_shaped = 1;
    return ETC_OK;
}

static EtcStatus size_outputs(const State *s, EtcValue *const *arg, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    for (uint32_t k = 0; k < g->n_externals; k++) {
        uint32_t place = g->external[k];
        if ((place == XNN_NO_ID) || !g->value[place].is_output) {
            continue;
        }
        EtcTensor *t = arg[k]->as.tensor;
        const XnnShape *shape = &s->shape[place];
        int32_t dim[XNN_RANK];
        if ((shape->rank != (uint32_t)t->rank) && ((t->rank != 0) || (etc_xnn_count(shape) != 1))) {
            return fail(e, ETC_BAD_FILE, "output of another rank", k);
        }
        for (int32_t i = 0; i < t->rank; i++) {
            if (shape->dim[i] > INT32_MAX) {
                return fail(e, ETC_BAD_FILE, "size of an output is too large", k);
            }
            dim[t->order ? t->order[i] : i] = (int32_t)shape->dim[i];
        }
        EtcStatus status = etc_resize(t, dim, t->rank);
        if (status != ETC_OK) {
            return fail(e, status, "output does not take its sizes", k);
        }
    }
    return ETC_OK;
}

/* A tensor may be more than one argument: only now are all sizes what they will be. */
static EtcStatus set_up(State *s, EtcValue *const *arg, EtcError *e)
{
    const XnnGraph *g = &s->graph;
    size_t n = 0;
    for (uint32_t k = 0; k < g->n_externals; k++) {
        if (g->external[k] == XNN_NO_ID) {
            continue;
        }
        const EtcTensor *t = arg[k]->as.tensor;
        const uint8_t *end = s->host->file + s->host->file_bytes, *data = t->data;
        XnnShape now = shape_of(t);
        if ((etc_xnn_count(&now) != etc_xnn_count(&s->shape[g->external[k]])) ||
            !is_backed(t, &now)) {
            return fail(e, ETC_BAD_FILE, "tensor is two arguments of different sizes", k);
        }
        if (t->is_const && (t->capacity + XNN_READS_BEHIND > end - data)) {
            return fail(e, ETC_UNSUPPORTED, "argument at the very end of the file", k);
        }
        s->external[n].id = k;
        s->external[n].data = t->data;
        n++;
    }
    enum xnn_status x = xnn_setup_runtime_v2(s->runtime, n, s->external);
    x = (x == xnn_status_success) ? xnn_invoke_runtime(s->runtime) : x;
    return (x == xnn_status_success) ? ETC_OK
                                     : refused(e, x, "libXNNPACK fails to run", XNN_NO_ID);
}

/* The library's indices have 32 bits; where the program has 64, from the last to the first. */
static void widen_indices(const State *s, EtcValue *const *arg)
{
    for (uint32_t k = 0; k < s->graph.n_externals; k++) {
        uint32_t place = s->graph.external[k];
        if ((place == XNN_NO_ID) || (arg[k]->as.tensor->dtype != ETC_I64)) {
            continue;
        }
        uint8_t *data = arg[k]->as.tensor->data;
        for (int64_t i = etc_xnn_count(&s->shape[place]); i-- > 0;) {
            int32_t narrow;
            memcpy(&narrow, data + 4 * i, sizeof narrow);
            int64_t wide = narrow;
            memcpy(data + 8 * i, &wide, sizeof wide);
        }
    }
}

static EtcStatus run(void *state, EtcValue *const *arg, int32_t n_args, EtcError *e)
{
    State *s = state;
    EtcStatus status = take_inputs(s, arg, n_args, e);
    if ((status == ETC_OK) && !s->is_shaped) {
        status = etc_xnn_infer(&s->graph, s->shape, e);
        if (status == ETC_OK) {
            status = has_empty(s) ? fail(e, ETC_UNSUPPORTED, "empty tensor", XNN_NO_ID)
                                  : reshape(s, e);
        }
    }
    status = (status == ETC_OK) ? size_outputs(s, arg, e) : status;
    if (status != ETC_OK) {
        return status;
    }
    status = set_up(s, arg, e);
    if (status == ETC_OK) {
        widen_indices(s, arg);
    }
    return status;
}

/* -- profile ------------------------------------------------------------------------------ */

/* What the library tells of one kind, `size` bytes; NULL: nothing. */
static void *told(xnn_runtime_t runtime, enum xnn_profile_info what, size_t *size)
{
    size_t all = 0;
    *size = 0;
    if (xnn_get_runtime_profiling_info(runtime, what, 0, NULL, &all) != xnn_status_out_of_memory) {
        return NULL;
    }
    void *to = malloc(all + 1);
    if ((to != NULL) &&
        (xnn_get_runtime_profiling_info(runtime, what, all, to, size) != xnn_status_success)) {
        free(to);
        return NULL;
    }
    *size = all;
    return to;
}

static int name_parts(State *s, uint32_t n, size_t n_names)
{
    Profile *p = &s->profile;
    const char **name = calloc(n, sizeof *name);
    uint32_t *node = calloc(n, sizeof *node), found = 0;
    if ((name != NULL) && (node != NULL)) {
        for (size_t at = 0; (at < n_names) && (found < n); at += strlen(p->names + at) + 1) {
            name[found++] = p->names + at;
        }
        etc_xnn_match(&s->graph, name, found, node);
        for (uint32_t i = 0; i < found; i++) {
            p->part[i].name = name[i];
            p->part[i].handle =
                (node[i] == XNN_NO_ID) ? -1 : (int64_t)s->graph.node[node[i]].handle;
        }
    }
    free(name);
    free(node);
    return found == n;
}

/* Names once; the times of the last run each time. */
static int read_profile(State *s)
{
    Profile *p = &s->profile;
    size_t size, n_names = 0;
    free(p->microseconds);
    p->microseconds = told(s->runtime, xnn_profile_info_operator_timing, &size);
    if (p->microseconds == NULL) {
        return 0;
    }
    const uint32_t n = (uint32_t)(size / sizeof *p->microseconds);
    if (p->part == NULL) {
        p->names = told(s->runtime, xnn_profile_info_operator_name, &n_names);
        p->part = calloc((size_t)n + 1, sizeof *p->part);
        p->n = ((p->names != NULL) && (p->part != NULL) && (n > 0) && name_parts(s, n, n_names))
                   ? n
                   : 0;
    }
    for (uint32_t i = 0; (i < n) && (i < p->n); i++) {
        p->part[i].nanoseconds = (int64_t)p->microseconds[i] * 1000;
    }
    return 1;
}

static int32_t parts(void *state, EtcPart *to, int32_t room)
{
    State *s = state;
    if (!s->host->is_profiling || !read_profile(s)) {
        return 0;
    }
    const uint32_t n = s->profile.n;
    if (room > 0) {
        memcpy(to, s->profile.part, (((uint32_t)room < n) ? (uint32_t)room : n) * sizeof *to);
    }
    return (int32_t)n;
}

static int64_t held_bytes(const void *state)
{
    return (int64_t)((const State *)state)->packed_bytes;
}

EtcDelegate etc_xnnpack_delegate(EtcXnnpack *x)
{
    EtcDelegate d = {"XnnpackBackend", x, start, run, stop, parts, held_bytes};
    return d;
}
