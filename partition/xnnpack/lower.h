/* lower.h -- makes XNNPACK values and nodes while a region is walked. */
#ifndef ETC_PARTITION_XNNPACK_LOWER_H
#define ETC_PARTITION_XNNPACK_LOWER_H

#include "partition/xnnpack/internal.h"

/* The layout of a value is that of the graph, or has axis 1 as the last axis. */
typedef enum Layout { AS_IS, CHANNELS_LAST } Layout;

typedef struct Lower {
    Graph *body;
    Arena *tmp;
    Diag *d;
    bool failed;
    XGraph x;
    Uses uses;
    uint32_t *id[2]; /* by layout and value index: the XNNPACK value; XNN_NONE: not made yet */
    int *producer;   /* by XNNPACK value: the node that computes it, or -1 */
    int n_producers;
    uint32_t at;   /* the number of the current node in the body */
    bool integers; /* the current node computes with integers */
    XnnType real;  /* the type of the current node's floats: XNN_F32 or XNN_F16 */
    bool *done;    /* by value index: its node was lowered as a part of another node */
} Lower;

void axes_of(int rank, Layout l, int *axis);
uint32_t x_sized(Lower *w, const XValue *like); /* a value with the same sizes */
XValue x_sizes(Type t, Layout l);
uint32_t x_like(Lower *w, uint32_t id);
void x_define(Lower *w, const Value *v, Layout l, uint32_t id);
uint32_t x_result(Lower *w, const Value *v, Layout l); /* a new value for v, defined at once */
bool x_has(const Lower *w, const Value *v, Layout l);
uint32_t x_use(Lower *w, const Value *v, Layout l);
uint32_t x_packed(Lower *w, const Value *v);
Layout x_prefers(const Lower *w, const Node *n);

XNode *x_node(Lower *w, XnnKind kind, uint32_t output); /* valid until the next one is made */
XNode *x_producer(Lower *w, uint32_t id);
void x_u32(XNode *n, int slot, uint32_t v);
void x_id(XNode *n, int slot, uint32_t id); /* of a value, or XNN_NONE */
void x_f32(XNode *n, int slot, double v);
void x_dims(XNode *n, int slot, const uint32_t *v, int count);
void x_range(XNode *n, double min, double max);
uint32_t x_unary(Lower *w, XnnKind kind, uint32_t in, uint32_t out);
uint32_t x_binary(Lower *w, XnnKind kind, uint32_t a, uint32_t b, uint32_t out);
uint32_t x_reshape(Lower *w, uint32_t in, const XValue *like); /* at most one symbolic size */

uint32_t x_repeated(Lower *w, uint32_t in, const XValue *to, const uint32_t *times);
uint32_t x_slice(Lower *w, uint32_t in, int axis, int64_t from, int64_t n);
uint32_t x_padded(Lower *w, uint32_t in, const uint32_t *before, const uint32_t *after,
                  double with);
void x_concat(Lower *w, const uint32_t *in, int n, int axis, uint32_t out); /* 2 to 5 */

bool x_is_real(XnnType t); /* f32 or f16 */
XnnType x_real(Type t);
size_t x_real_size(XnnType t);

/* Make constants.  `data` must outlive the program. */
uint32_t x_constant(Lower *w, const char *stem, const char *fqn, const void *data, XnnType t,
                    int rank, const uint32_t *dim);
uint32_t x_numbers(Lower *w, const char *stem, const float *data, int rank, const uint32_t *dim);
uint32_t x_number(Lower *w, double v);
/* Combines a with a number.  The result has the sizes of a. */
uint32_t x_by_number(Lower *w, XnnKind kind, uint32_t a, double v);
uint32_t x_filled(Lower *w, double v, int rank, const uint32_t *dim);
/* Returns the value of a named state.  Its sizes may differ from those of the state. */
uint32_t x_named(Lower *w, State *s, int rank, const uint32_t *dim);
uint32_t x_bytes(Lower *w, const char *stem, const char *fqn, const void *data, EtcDtype t,
                 int n_sizes, const Dim *size, int rank, const uint32_t *dim);
void *x_permuted(Lower *w, const void *from, size_t size, int rank, const uint32_t *dim,
                 const int *axis);

/* quant.c */
bool xnn_is_quant(const Node *n);
bool xnn_takes_quant(const Node *n, const Uses *u, Refusal *r);
void xnn_lower_quant(Lower *w, const Node *n);
bool xnn_is_weight(const Value *v); /* it is a constant, or computed from constants */

typedef struct XIntegers {
    const Node *clamp, *quantize; /* the nodes after it; clamp may be NULL */
} XIntegers;
bool xnn_in_integers(const Lower *w, const Node *n, XIntegers *out);
void xnn_declare_integers(Lower *w, const Node *n, const XIntegers *to);

const Value *x_before_dequantize(const Lower *w, const Value *v);
void x_make(Lower *w, const Value *v, Layout l);
void x_declare_input(Lower *w, const Value *v, uint32_t id);
const float *x_floats(Lower *w, const Value *v); /* the floats of a weight */

/* A weight in the form that the operand `in` needs: integers or floats. */
typedef struct XWeight {
    const State *state;
    const void *data;
    size_t size; /* of an element */
    XnnType dtype;
    const Value *of;
} XWeight;
XWeight x_weight(Lower *w, const Value *v, uint32_t in, bool is_linear, int out_axis);
uint32_t x_weight_value(Lower *w, const XWeight *from, int rank, const uint32_t *dim, int axis);
uint32_t x_bias(Lower *w, const Value *v, uint32_t in, uint32_t filter);

uint32_t x_transpose(Lower *w, uint32_t in, const int *axis); /* transpose.c */
uint32_t x_copy(Lower *w, uint32_t in); /* transpose.c */
void x_sweep(Lower *w); /* transpose.c: removes what no result needs */

void xnn_lower_node(Lower *w, const Node *n); /* rows.c */

#endif
