/* internal.h -- an XNNPACK subgraph as its delegate's schema has it, before it becomes bytes.
 *
 * Source: ExecuTorch 1.4's backends/xnnpack/serialization/schema.fbs. */
#ifndef ETC_PARTITION_XNNPACK_INTERNAL_H
#define ETC_PARTITION_XNNPACK_INTERNAL_H

#include "ir/backend.h"
#include "runtime-lite/delegates/xnn_schema.h"
#include "ir/views.h"

enum { XNN_MAX_RANK = 6, XNN_MAX_FIELDS = 20 };
#define XNN_NONE UINT32_MAX /* no such value */

typedef struct XValue {
    XnnType dtype;
    int rank;
    uint32_t dim[XNN_MAX_RANK];  /* at the upper bounds */
    bool is_symbolic[XNN_MAX_RANK]; /* the size may differ from call to call */
    bool is_number;                 /* the tensor has no axes */
    uint32_t flags, external; /* external: its position among the call's arguments, or XNN_NONE */
    int constant;             /* its row of the constants, from 1 on; 0: it is no constant */
    XnnQuant quant;
    double scale; /* the one scale of the tensor */
    int zero;
    int scales, n_scales; /* the row of the constants with the scales of channels or groups */
    int channel_axis, group;
} XValue;

typedef struct XField {
    int slot;
    enum { X_U32, X_ID, X_F32_FIELD, X_DIMS } type; /* X_ID: names a value */
    uint32_t u;
    float f;
    uint32_t dim[XNN_MAX_RANK];
    int n;
} XField;

/* cost.c: estimates of the time of a node. */
double xnn_cost(const Node *n);
double xnn_cost_integers(const Node *n, unsigned spec);
double xnn_cost_convert(const Value *v, unsigned spec);

typedef struct XNode {
    XnnKind kind;
    int n_fields;
    XField field[XNN_MAX_FIELDS];
    uint32_t output;     /* its result, or the first of several results */
    uint32_t handle;     /* for profiles: the node of the region that it was made for */
    bool has_range;
    float min, max;
} XNode;

typedef struct XGraph {
    Arena *arena;
    int n_values, n_nodes, n_constants, n_externals;
    XValue *value;
    XNode *node;
    State **constant;
} XGraph;

void xnn_write(const XGraph *x, Arena *a, Blob *out); /* blob.c */

/* The functions of a Backend: rows.c decides what is taken, lower.c makes XNNPACK nodes. */
bool xnn_takes(const Node *n, const Uses *u, Refusal *r);
bool xnn_keeps_parts(const Node *scores, bool is_masked_by_choice, const Node *n);
unsigned xnn_spec(const Node *n);
bool xnn_lower(Graph *body, Arena *tmp, Diag *d, Blob *out);

#endif
