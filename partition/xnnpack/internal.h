/* internal.h -- an XNNPACK subgraph as its delegate's schema has it, before it becomes bytes.
 *
 * Source: ExecuTorch 1.4's backends/xnnpack/serialization/schema.fbs. */
#ifndef ETC_PARTITION_XNNPACK_INTERNAL_H
#define ETC_PARTITION_XNNPACK_INTERNAL_H

#include "ir/backend.h"
#include "ir/views.h"

enum { XNN_MAX_RANK = 6, XNN_MAX_FIELDS = 20 };
#define XNN_NONE UINT32_MAX /* no such value */

typedef enum XDtype { /* F32 and F16: what x_is_real() */
    X_F32 = 1, X_F16 = 2, X_QINT8 = 3, X_QCINT8 = 6, X_QCINT32 = 7, X_QCINT4 = 8, X_QDINT8 = 9,
    X_QBINT4 = 10
} XDtype;
/* Codes of the schema's union of scales. */
typedef enum XQuant { X_PLAIN, X_PER_CHANNEL, X_PER_TENSOR, X_PER_TOKEN, X_PER_GROUP } XQuant;
typedef enum XFlag { X_INPUT = 1, X_OUTPUT = 2 } XFlag;

/* Flags of nodes. */
enum { X_TRANSPOSE = 1, X_ALIGN_CORNERS = 8, X_KEEP_DIMS = 0x40 };

/* Codes of the schema's union of nodes. */
typedef enum XKind {
    X_ADD = 1, X_FULLY_CONNECTED, X_SOFTMAX, X_SIGMOID, X_TRANSPOSED, X_CLAMP, X_CONV2D, X_DIV,
    X_RESIZE_BILINEAR, X_PAD, X_AVG_POOL, X_MINIMUM, X_DEPTHWISE, X_MAX_POOL, X_MULTIPLY,
    X_SUBTRACT, X_FLOOR, X_CONVERT, X_GLOBAL_AVG_POOL, X_RESHAPE, X_ARG_MAX_POOL, X_SQRT,
    X_CEILING, X_HARDSWISH, X_LEAKY_RELU, X_MAXIMUM, X_NEGATE, X_SQUARE, X_ELU, X_ABS, X_PRELU,
    X_CONCAT2, X_CONCAT3, X_CONCAT4, X_SLICE, X_SDPA, X_BATCH_MATMUL, X_CONCAT5, X_CONV_TRANSPOSE,
    X_RSQRT, X_LOG, X_GELU, X_TANH, X_EXP, X_SIN, X_COPY, X_COS
} XKind;

typedef struct XValue {
    XDtype dtype;
    int rank;
    uint32_t dim[XNN_MAX_RANK];  /* at the upper bounds */
    bool is_open[XNN_MAX_RANK];  /* sizes that calls decide */
    bool is_unused;              /* by all nodes: not written */
    uint32_t flags, external; /* external: position among the call's arguments, or XNN_NONE */
    int constant;             /* row of the constants, from 1; 0: none */
    XQuant quant;
    double scale;                /* of a tensor */
    int zero;
    int scales, n_scales;        /* row of the constants; of channels or groups */
    int channel_axis, group;
} XValue;

typedef struct XField {
    int slot;
    enum { X_U32, X_F32_FIELD, X_DIMS } type;
    uint32_t u;
    float f;
    uint32_t dim[XNN_MAX_RANK];
    int n;
} XField;

/* cost.c: what a node costs. */
double xnn_cost(const Node *n);
double xnn_cost_integers(const Node *n, unsigned spec);
double xnn_cost_convert(const Value *v, unsigned spec);

typedef struct XNode {
    XKind kind;
    int n_fields;
    XField field[XNN_MAX_FIELDS];
    uint32_t output;     /* its result, of several the first */
    uint32_t handle;     /* for profiles: which node of the region asked for it */
    bool has_range;
    float min, max;
} XNode;

typedef struct XGraph {
    Arena *arena;
    int n_values, n_nodes, n_constants, n_externals;
    XValue *value;
    XNode *node;
    const State **constant;
} XGraph;

void xnn_write(const XGraph *x, Arena *a, Blob *out); /* blob.c */

/* Rows of nodes: rows.c says what is taken, lower.c makes nodes of it. */
bool xnn_takes(const Node *n, const Uses *u, Refusal *r);
bool xnn_keeps_parts(const Node *scores, bool is_masked_by_choice, const Node *n);
unsigned xnn_spec(const Node *n);
bool xnn_lower(Graph *body, Arena *tmp, Diag *d, Blob *out);

#endif
