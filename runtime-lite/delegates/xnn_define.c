/* xnn_define.c -- a graph that was proven as the library's subgraph. */
#include "runtime-lite/delegates/xnn_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* The library may read some bytes past a constant, so a constant at the end of the file is copied.
 * The host keeps the copies, because it finds packed weights by their address. */
const void *etc_xnn_readable(EtcXnnpack *x, const XnnValue *v)
{
    const uint8_t *end = x->file + x->file_bytes;
    if ((v->data == NULL) || (v->n_bytes + XNN_READS_PAST <= (size_t)(end - v->data))) {
        return v->data;
    }
    for (const XnnCopy *c = x->copies; c != NULL; c = c->next) {
        if ((c->of == v->data) && (c->n_bytes == v->n_bytes)) {
            return c->data;
        }
    }
    XnnCopy *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->data = calloc(1, v->n_bytes + XNN_READS_PAST);
    c->next = x->copies;
    c->of = v->data;
    c->n_bytes = v->n_bytes;
    x->copies = c;
    if (c->data != NULL) {
        memcpy(c->data, v->data, v->n_bytes);
    }
    return c->data;
}

enum xnn_status etc_xnn_define_value(const XnnDraft *d, uint32_t place, const XnnValue *v)
{
    const void *data = etc_xnn_readable(d->host, v);
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
        return xnn_define_quantized_tensor_value(d->subgraph, t, v->zero, v->scale, n, dim, data,
                                                 v->external, flags, &d->id[place]);
    case XNN_PER_CHANNEL:
        return xnn_define_channelwise_quantized_tensor_value_v2(
            d->subgraph, t, v->zero, v->scales, n, v->channel_dim, dim, data, v->external, flags,
            &d->id[place]);
    case XNN_PER_TOKEN:
        return xnn_define_dynamically_quantized_tensor_value(
            d->subgraph, t, n, v->n_token_dims, dim, v->external, flags, &d->id[place]);
    case XNN_PER_GROUP:
        return xnn_define_blockwise_quantized_tensor_value(
            d->subgraph, t, v->zero, v->scales, n, v->channel_dim, v->group, dim, data,
            v->external, flags, &d->id[place]);
    case XNN_PLAIN:
    default:
        return xnn_define_tensor_value(d->subgraph, t, n, dim, data, v->external, flags,
                                       &d->id[place]);
    }
}

/* -- nodes -------------------------------------------------------------------------------- */

typedef struct Ids { /* the library's ids for the operands and results of one node */
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

/* Defines a mean over rows and columns and then, if there is a range, a clamp. */
static enum xnn_status define_global_pool(const XnnDraft *d, const XnnNode *n, const Ids *v)
{
    static const size_t axes[] = {1, 2};
    const XnnValue *out = &d->graph->value[n->out[0]];
    const uint32_t flags = (n->flags & FLAG_KEEP_DIMS) ? XNN_FLAG_KEEP_DIMS : 0;
    uint32_t mean = v->out[0];
    if (isinf(n->min) && isinf(n->max)) {
        return xnn_define_static_reduce(d->subgraph, xnn_reduce_mean, 2, axes, v->in[0], mean,
                                        flags);
    }
    if (out->quant != XNN_PLAIN) {
        return xnn_status_unsupported_parameter;
    }
    enum xnn_status status =
        xnn_define_tensor_value(d->subgraph, datatype(out->type), out->shape.rank, out->shape.dim,
                                NULL, XNN_INVALID_VALUE_ID, 0, &mean);
    if (status == xnn_status_success) {
        status = xnn_define_static_reduce(d->subgraph, xnn_reduce_mean, 2, axes, v->in[0], mean,
                                          flags);
    }
    union xnn_unary_params params;
    params.clamp.min = n->min;
    params.clamp.max = n->max;
    return (status == xnn_status_success)
               ? xnn_define_unary(d->subgraph, xnn_unary_clamp, &params, mean, v->out[0], 0)
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

enum xnn_status etc_xnn_define_node(const XnnDraft *d, uint32_t i)
{
    xnn_subgraph_t g = d->subgraph;
    const XnnNode *n = &d->graph->node[i];
    const uint32_t flip = (n->flags & FLAG_TRANSPOSE) ? XNN_FLAG_TRANSPOSE_WEIGHTS : 0;
    Ids v;
    for (uint32_t k = 0; k < n->n_in; k++) {
        v.in[k] = (n->in[k] == XNN_NO_ID) ? XNN_INVALID_VALUE_ID : d->id[n->in[k]];
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        v.out[k] = d->id[n->out[k]];
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
        return define_global_pool(d, n, &v);
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
