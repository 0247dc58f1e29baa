/* xnn_schema.h -- the tables of an XNNPACK blob, for the compiler that writes it, the delegate that
 * reads it, `etc inspect` and tests.
 *
 * A blob is 4 zeros, "XH00", a u16 with the bytes of this header, a u32 offset and the bytes of
 * a FlatBuffer "XN01", a u32 offset and the u64 bytes of inline constants.  A table is a list of
 * slots in the order of the format: SLOT(id, its kind in the terms of flat_read.h).  The enums
 * below number the slots.  xnn_node.c makes the schema that it verifies blobs against from the
 * same lists; for the table of a node it knows only the slots.  Source: ExecuTorch 1.4's
 * backends/xnnpack/serialization/schema.fbs. */
#ifndef ETC_DELEGATES_XNN_SCHEMA_H
#define ETC_DELEGATES_XNN_SCHEMA_H

#include "runtime-lite/flat_read.h"

/* -- header ------------------------------------------------------------------------------- */

enum { /* first bytes of its fields; and of all of them */
       XNN_AT_MAGIC = 4,
       XNN_AT_HEADER_BYTES = 8,
       XNN_AT_GRAPH = 10,
       XNN_AT_GRAPH_BYTES = 14,
       XNN_AT_DATA = 18,
       XNN_AT_DATA_BYTES = 22,
       XNN_HEADER_BYTES = 30
};
#define XNN_MAGIC "XH00"
#define XNN_GRAPH_ID "XN01"

/* -- numbers ------------------------------------------------------------------------------ */

/* The numbers of the schema, which differ from those of the library. */
typedef enum XnnType {
    XNN_F32 = 1, XNN_F16, XNN_QINT8, XNN_QUINT8, XNN_QINT32, XNN_QCINT8, XNN_QCINT32, XNN_QCINT4,
    XNN_QDINT8, XNN_QBINT4, XNN_QPINT8, XNN_INT32, XNN_PFP32, XNN_BF16
} XnnType;

typedef enum XnnQuant { /* types of the schema's union */
    XNN_PLAIN = 0, XNN_PER_CHANNEL, XNN_PER_TENSOR, XNN_PER_TOKEN, XNN_PER_GROUP
} XnnQuant;

/* The schema's union of nodes, and their names. */
/* clang-format off */
#define XNN_NODES(X) \
    X(ADD, "add") X(FULLY_CONNECTED, "fully_connected") X(SOFTMAX, "softmax") \
    X(SIGMOID, "sigmoid") X(TRANSPOSE, "static_transpose") X(CLAMP, "clamp") X(CONV, "conv_2d") \
    X(DIV, "div") X(RESIZE, "resize_bilinear_2d") X(PAD, "constant_pad") \
    X(AVG_POOL, "avg_pool_2d") X(MINIMUM, "minimum") X(DEPTHWISE, "depthwise_conv_2d") \
    X(MAX_POOL, "max_pool_2d") X(MULTIPLY, "multiply") X(SUBTRACT, "subtract") X(FLOOR, "floor") \
    X(CONVERT, "convert") X(GLOBAL_POOL, "global_avg_pool_2d") X(RESHAPE, "static_reshape") \
    X(ARGMAX_POOL, "argmax_pool_2d") X(SQRT, "sqrt") X(CEILING, "ceiling") \
    X(HARDSWISH, "hardswish") X(LEAKY_RELU, "leaky_relu") X(MAXIMUM, "maximum") \
    X(NEGATE, "negate") X(SQUARE, "square") X(ELU, "elu") X(ABS, "abs") X(PRELU, "prelu") \
    X(CONCAT2, "concat_2") X(CONCAT3, "concat_3") X(CONCAT4, "concat_4") \
    X(SLICE, "static_slice") X(SDPA, "scaled_dot_product_attention") \
    X(BATCH_MATMUL, "batch_matmul") X(CONCAT5, "concat_5") \
    X(CONV_TRANSPOSE, "conv_transpose_2d") X(RSQRT, "rsqrt") X(LOG, "log") X(GELU, "gelu") \
    X(TANH, "tanh") X(EXP, "exp") X(SIN, "sin") X(COPY, "copy") X(COS, "cos")
/* The nodes that ExecuTorch 1.0 does not have: X(id, the version that brought it). */
#define XNN_LATER_NODES(X) X(SIN, 1, 2, 0) X(COPY, 1, 2, 0) X(COS, 1, 2, 0)
/* clang-format on */

#define XNN_KIND(id, name) XNN_##id,
typedef enum XnnKind { XNN_NO_KIND, XNN_NODES(XNN_KIND) XNN_KINDS } XnnKind;
#undef XNN_KIND

enum { /* fields of convolutions and of poolings: slots of the schema */
       F_TOP,
       F_RIGHT,
       F_BOTTOM,
       F_LEFT,
       F_KERNEL_H,
       F_KERNEL_W,
       F_STRIDE_H,
       F_STRIDE_W,
       F_DILATION_H,
       F_DILATION_W,
       F_GROUP_IN,
       F_GROUP_OUT,
       F_GROUPS,
       F_ADJUST_H,
       F_ADJUST_W
};

enum { /* flags of nodes, and of values */
       FLAG_TRANSPOSE = 1,
       FLAG_ALIGN_CORNERS = 8,
       FLAG_KEEP_DIMS = 0x40
};
typedef enum XnnFlag { XNN_IS_INPUT = 1, XNN_IS_OUTPUT = 2 } XnnFlag;

/* -- tables -------------------------------------------------------------------------------- */

/* clang-format off */
#define XNN_GRAPH_SLOTS(SLOT) \
    SLOT(XNN_GRAPH_VERSION, ETC_SLOT_STRING) \
    SLOT(XNN_GRAPH_NODES, ETC_SLOT_TABLES(XNN_TABLE_NODE)) \
    SLOT(XNN_GRAPH_VALUES, ETC_SLOT_TABLES(XNN_TABLE_VALUE)) \
    SLOT(XNN_GRAPH_EXTERNALS, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_GRAPH_INPUTS, ETC_SLOT_SCALARS(4)) \
    SLOT(XNN_GRAPH_OUTPUTS, ETC_SLOT_SCALARS(4)) \
    SLOT(XNN_GRAPH_BUFFERS, ETC_SLOT_TABLES(XNN_TABLE_BUFFER)) /* deprecated: constants */ \
    SLOT(XNN_GRAPH_BUFFER_SIZES, ETC_SLOT_SCALARS(4)) \
    SLOT(XNN_GRAPH_CONSTANTS, ETC_SLOT_TABLES(XNN_TABLE_CONSTANT))
#define XNN_VALUE_SLOTS(SLOT) \
    SLOT(XNN_VALUE_TYPE, ETC_SLOT_SCALAR(1)) /* 1: a tensor, 2: a quantized one */ \
    SLOT(XNN_VALUE_TABLE, ETC_SLOT_MEMBER(XNN_TABLE_TENSOR, 2))
#define XNN_NODE_SLOTS(SLOT) \
    SLOT(XNN_NODE_KIND, ETC_SLOT_SCALAR(1)) /* XnnKind */ \
    SLOT(XNN_NODE_TABLE, ETC_SLOT_MEMBER(N_XNN_TABLES, XNN_KINDS - 1)) \
    SLOT(XNN_NODE_HANDLE, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_NODE_RANGE, ETC_SLOT_TABLE(XNN_TABLE_RANGE))
#define XNN_CONSTANT_SLOTS(SLOT) \
    SLOT(XNN_CONSTANT_OFFSET, ETC_SLOT_SCALAR(8)) \
    SLOT(XNN_CONSTANT_SIZE, ETC_SLOT_SCALAR(8)) \
    SLOT(XNN_CONSTANT_KEY, ETC_SLOT_STRING)
#define XNN_RANGE_SLOTS(SLOT) \
    SLOT(XNN_RANGE_LO, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_RANGE_HI, ETC_SLOT_SCALAR(4))
#define XNN_TENSOR_SLOTS(SLOT) \
    SLOT(XNN_TENSOR_TYPE, ETC_SLOT_SCALAR(2)) /* XnnType */ \
    SLOT(XNN_TENSOR_RANK, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_TENSOR_DIMS, ETC_SLOT_SCALARS(4)) \
    SLOT(XNN_TENSOR_CONSTANT, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_TENSOR_EXTERNAL, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_TENSOR_FLAGS, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_TENSOR_ID, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_TENSOR_ORDER, ETC_SLOT_SCALAR(2))
#define XNN_QUANTIZED_SLOTS(SLOT) \
    SLOT(XNN_QUANTIZED_TENSOR, ETC_SLOT_TABLE(XNN_TABLE_TENSOR)) \
    SLOT(XNN_QUANTIZED_TYPE, ETC_SLOT_SCALAR(1)) /* XnnQuant */ \
    SLOT(XNN_QUANTIZED_TABLE, ETC_SLOT_MEMBER(XNN_TABLE_PER_CHANNEL, 4))
#define XNN_PER_CHANNEL_SLOTS(SLOT) \
    SLOT(XNN_CHANNEL_SCALES, ETC_SLOT_SCALARS(4)) /* or where that is empty: */ \
    SLOT(XNN_CHANNEL_AXIS, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_CHANNEL_CONSTANT, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_CHANNEL_COUNT, ETC_SLOT_SCALAR(4))
#define XNN_PER_TENSOR_SLOTS(SLOT) \
    SLOT(XNN_WHOLE_SCALE, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_WHOLE_ZERO, ETC_SLOT_SCALAR(4))
#define XNN_PER_TOKEN_SLOTS(SLOT) SLOT(XNN_TOKEN_AXES, ETC_SLOT_SCALAR(4))
#define XNN_PER_GROUP_SLOTS(SLOT) \
    SLOT(XNN_GROUP_SCALES, ETC_SLOT_SCALARS(4)) /* or one of the next: */ \
    SLOT(XNN_GROUP_AXIS, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_GROUP_SIZE, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_GROUP_HALVES, ETC_SLOT_SCALARS(2)) \
    SLOT(XNN_GROUP_CONSTANT, ETC_SLOT_SCALAR(4)) \
    SLOT(XNN_GROUP_COUNT, ETC_SLOT_SCALAR(4))
#define XNN_BUFFER_SLOTS(SLOT) SLOT(XNN_BUFFER_BYTES, ETC_SLOT_SCALARS(1))

/* The rows of the schema, the graph first and nodes last; the scales of quantized tensors are in
 * the order of XnnQuant. */
#define XNN_TABLES(TABLE) \
    TABLE(GRAPH) TABLE(VALUE) TABLE(NODE) TABLE(CONSTANT) TABLE(RANGE) TABLE(TENSOR) \
    TABLE(QUANTIZED) TABLE(PER_CHANNEL) TABLE(PER_TENSOR) TABLE(PER_TOKEN) TABLE(PER_GROUP) \
    TABLE(BUFFER)

#define XNN_ID(id) XNN_TABLE_##id,
enum { XNN_TABLES(XNN_ID) N_XNN_TABLES };
#undef XNN_ID

#define XNN_SLOT(id, what) id,
#define XNN_ENUM(id) enum { XNN_##id##_SLOTS(XNN_SLOT) N_XNN_##id##_SLOTS };
XNN_TABLES(XNN_ENUM)
#undef XNN_SLOT
#undef XNN_ENUM
/* clang-format on */

#endif
