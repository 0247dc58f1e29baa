/* blob.c -- an XNNPACK subgraph as the bytes its delegate reads: header, then a FlatBuffer.
 *
 * All constants are named data of the program: the runtime keeps pointers to some of them after it
 * has freed the blob.  Source: ExecuTorch 1.4's backends/xnnpack/serialization.
 */
#include "partition/xnnpack/internal.h"
#include "ir/flat.h"
#include <string.h>

enum { HEADER = 32, ALIGN = 16 };

static FlatRef constant(Flat *f, const State *s)
{
    FlatRef key = s ? flat_string(f, s->fqn) : 0;
    flat_begin(f, N_XNN_CONSTANT_SLOTS);
    flat_u64(f, XNN_CONSTANT_OFFSET, s ? UINT64_MAX : 0);
    flat_u64(f, XNN_CONSTANT_SIZE, s ? (uint64_t)type_bytes(s->type) : 0);
    flat_ref(f, XNN_CONSTANT_KEY, key);
    return flat_end(f);
}

/* Writes the rows of constants.  Row 0 means that there is no data. */
static FlatRef constants(Flat *f, const XGraph *x)
{
    FlatRef *row = NEW(x->arena, FlatRef, x->n_constants + 1);
    row[0] = constant(f, NULL);
    for (int i = 0; i < x->n_constants; i++)
        row[i + 1] = constant(f, x->constant[i]);
    return flat_refs(f, row, (size_t)x->n_constants + 1);
}

/* Writes qparams.  Several scales are a row of the constants, and their vector is empty. */
static FlatRef quantization(Flat *f, const XValue *v)
{
    assert(v->quant != XNN_PLAIN);
    FlatRef none = v->n_scales ? flat_vector(f, NULL, 0, 4) : 0;
    flat_begin(f, N_XNN_PER_GROUP_SLOTS);
    if (v->quant == XNN_PER_TENSOR) {
        flat_f32(f, XNN_WHOLE_SCALE, (float)v->scale);
        flat_u32(f, XNN_WHOLE_ZERO, (uint32_t)v->zero);
    } else if (v->quant == XNN_PER_TOKEN) {
        flat_u32(f, XNN_TOKEN_AXES, 1); /* the last axis is no batch */
    } else {
        bool groups = v->quant == XNN_PER_GROUP;
        flat_ref(f, XNN_CHANNEL_SCALES, none);
        flat_u32(f, XNN_CHANNEL_AXIS, (uint32_t)v->channel_axis);
        if (groups)
            flat_u32(f, XNN_GROUP_SIZE, (uint32_t)v->group);
        flat_u32(f, groups ? XNN_GROUP_CONSTANT : XNN_CHANNEL_CONSTANT, (uint32_t)v->scales);
        flat_u32(f, groups ? XNN_GROUP_COUNT : XNN_CHANNEL_COUNT, (uint32_t)v->n_scales);
    }
    return flat_end(f);
}

/* Returns the table of a tensor with its scales, which takes the place of that of a plain tensor.
 */
static FlatRef quantized(Flat *f, const XValue *v, FlatRef tensor)
{
    FlatRef scales = quantization(f, v);
    flat_begin(f, N_XNN_QUANTIZED_SLOTS);
    flat_ref(f, XNN_QUANTIZED_TENSOR, tensor);
    flat_u8(f, XNN_QUANTIZED_TYPE, (uint8_t)v->quant);
    flat_ref(f, XNN_QUANTIZED_TABLE, scales);
    return flat_end(f);
}

static FlatRef value(Flat *f, const XValue *v, int id)
{
    assert(v->rank >= 0 && v->rank <= XNN_MAX_RANK);
    FlatRef dims = flat_vector(f, v->dim, (size_t)v->rank, 4);
    flat_begin(f, N_XNN_TENSOR_SLOTS);
    flat_u16(f, XNN_TENSOR_TYPE, (uint16_t)v->dtype);
    flat_u32(f, XNN_TENSOR_RANK, (uint32_t)v->rank);
    flat_ref(f, XNN_TENSOR_DIMS, dims);
    flat_u32(f, XNN_TENSOR_CONSTANT, (uint32_t)v->constant);
    flat_u32(f, XNN_TENSOR_EXTERNAL, v->external);
    flat_u32(f, XNN_TENSOR_FLAGS, v->flags);
    flat_u32(f, XNN_TENSOR_ID, (uint32_t)id);
    FlatRef tensor = flat_end(f);
    if (v->quant)
        tensor = quantized(f, v, tensor);
    flat_begin(f, N_XNN_VALUE_SLOTS);
    flat_u8(f, XNN_VALUE_TYPE, v->quant ? 2 : 1);
    flat_ref(f, XNN_VALUE_TABLE, tensor);
    return flat_end(f);
}

static FlatRef range(Flat *f, const XNode *n)
{
    flat_begin(f, N_XNN_RANGE_SLOTS);
    flat_f32(f, XNN_RANGE_LO, n->min);
    flat_f32(f, XNN_RANGE_HI, n->max);
    return flat_end(f);
}

static FlatRef node(Flat *f, const XNode *n)
{
    assert(n->n_fields <= XNN_MAX_FIELDS);
    FlatRef dims[XNN_MAX_FIELDS] = {0}, limits = n->has_range ? range(f, n) : 0;
    for (int i = 0; i < n->n_fields; i++)
        if (n->field[i].type == X_DIMS)
            dims[i] = flat_vector(f, n->field[i].dim, (size_t)n->field[i].n, 4);
    flat_begin(f, XNN_MAX_FIELDS);
    for (int i = 0; i < n->n_fields; i++) {
        const XField *at = &n->field[i];
        if (at->type == X_DIMS)
            flat_ref(f, at->slot, dims[i]);
        else if (at->type == X_F32_FIELD)
            flat_f32(f, at->slot, at->f);
        else
            flat_u32(f, at->slot, at->u);
    }
    FlatRef table = flat_end(f);
    flat_begin(f, N_XNN_NODE_SLOTS);
    flat_u8(f, XNN_NODE_KIND, (uint8_t)n->kind);
    flat_ref(f, XNN_NODE_TABLE, table);
    flat_u32(f, XNN_NODE_HANDLE, n->handle);
    flat_ref(f, XNN_NODE_RANGE, limits);
    return flat_end(f);
}

static FlatRef externals(Flat *f, const XGraph *x, XnnFlag flag)
{
    uint32_t *id = NEW(x->arena, uint32_t, x->n_values + 1);
    int n = 0;
    for (int i = 0; i < x->n_values; i++)
        if (x->value[i].flags & flag)
            id[n++] = (uint32_t)i;
    return flat_vector(f, id, (size_t)n, 4);
}

static FlatRef graph(Flat *f, const XGraph *x)
{
    FlatRef *values = NEW(x->arena, FlatRef, x->n_values + 1);
    FlatRef *nodes = NEW(x->arena, FlatRef, x->n_nodes + 1);
    FlatRef version = flat_string(f, "0"), data = constants(f, x);
    for (int i = 0; i < x->n_values; i++)
        values[i] = value(f, &x->value[i], i);
    for (int i = 0; i < x->n_nodes; i++)
        nodes[i] = node(f, &x->node[i]);
    FlatRef all_values = flat_refs(f, values, (size_t)x->n_values);
    FlatRef all_nodes = flat_refs(f, nodes, (size_t)x->n_nodes);
    FlatRef in = externals(f, x, XNN_IS_INPUT), out = externals(f, x, XNN_IS_OUTPUT);
    flat_begin(f, N_XNN_GRAPH_SLOTS);
    flat_ref(f, XNN_GRAPH_VERSION, version);
    flat_ref(f, XNN_GRAPH_NODES, all_nodes);
    flat_ref(f, XNN_GRAPH_VALUES, all_values);
    flat_u32(f, XNN_GRAPH_EXTERNALS, (uint32_t)x->n_externals);
    flat_ref(f, XNN_GRAPH_INPUTS, in);
    flat_ref(f, XNN_GRAPH_OUTPUTS, out);
    flat_ref(f, XNN_GRAPH_CONSTANTS, data);
    return flat_end(f);
}

static void put_le(uint8_t *to, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

void xnn_write(const XGraph *x, Arena *a, Blob *out)
{
    size_t n;
    Flat *f = flat_new(x->arena);
    const uint8_t *flat = flat_finish(f, graph(f, x), XNN_GRAPH_ID, &n);
    *out = (Blob){0};
    if (!flat)
        return;
    out->n = HEADER + (n + ALIGN - 1) / ALIGN * ALIGN;
    out->data = NEW(a, uint8_t, out->n);
    memcpy(out->data + XNN_AT_MAGIC, XNN_MAGIC, 4);
    put_le(out->data + XNN_AT_HEADER_BYTES, XNN_HEADER_BYTES, 2);
    put_le(out->data + XNN_AT_GRAPH, HEADER, 4);
    put_le(out->data + XNN_AT_GRAPH_BYTES, n, 4);
    put_le(out->data + XNN_AT_DATA, out->n, 4);
    memcpy(out->data + HEADER, flat, n);
}
