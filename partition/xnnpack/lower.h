/* lower.h -- making XNNPACK values and nodes while a region is walked. */
#ifndef ETC_PARTITION_XNNPACK_LOWER_H
#define ETC_PARTITION_XNNPACK_LOWER_H

#include "partition/xnnpack/internal.h"

/* As the graph has it, or with axis 1 last. */
typedef enum Layout { AS_IS, CHANNELS_LAST } Layout;

typedef struct Lower {
    Graph *body;
    Arena *tmp;
    XGraph x;
    Uses uses;
    uint32_t *id[2]; /* by layout and value index; XNN_NONE: not made */
    int *maker;      /* by XNNPACK value: the node that makes it, or -1 */
    int n_makers;
} Lower;

void axes_of(int rank, Layout l, int *axis);
uint32_t x_value(Lower *w, int rank, const uint32_t *dim);
uint32_t x_sized(Lower *w, const XValue *like); /* of its sizes, open ones too */
XValue x_sizes(Type t, Layout l);
uint32_t x_like(Lower *w, uint32_t id);
void x_define(Lower *w, const Value *v, Layout l, uint32_t id);
uint32_t x_result(Lower *w, const Value *v, Layout l); /* a new value, defined as v's */
bool x_has(const Lower *w, const Value *v, Layout l);
uint32_t x_use(Lower *w, const Value *v, Layout l);
Layout x_prefers(const Lower *w, const Node *n);

XNode *x_node(Lower *w, XKind kind, uint32_t output); /* good until the next */
XNode *x_maker(Lower *w, uint32_t id);
void x_u32(XNode *n, int slot, uint32_t v);
void x_f32(XNode *n, int slot, double v);
void x_dims(XNode *n, int slot, const uint32_t *v, int count);
void x_range(XNode *n, double min, double max);
uint32_t x_unary(Lower *w, XKind kind, uint32_t in, uint32_t out);
uint32_t x_binary(Lower *w, XKind kind, uint32_t a, uint32_t b, uint32_t out);
uint32_t x_transpose(Lower *w, uint32_t in, const int *axis);
uint32_t x_reshape(Lower *w, uint32_t in, const XValue *like); /* one open size at most */

uint32_t x_slice(Lower *w, uint32_t in, int axis, int64_t from, int64_t n);
uint32_t x_padded(Lower *w, uint32_t in, const uint32_t *before, const uint32_t *after,
                  double with);
void x_concat(Lower *w, const uint32_t *in, int n, int axis, uint32_t out); /* 2 to 5 */

/* Constants; `data` must outlive the program. */
uint32_t x_constant(Lower *w, const char *stem, const char *fqn, const void *data, int rank,
                    const uint32_t *dim);
uint32_t x_number(Lower *w, double v);
uint32_t x_filled(Lower *w, double v, int rank, const uint32_t *dim);
float *x_permuted(Lower *w, const float *from, int rank, const uint32_t *dim, const int *axis);

bool xnn_is_constant(const Value *v);

void xnn_lower_node(Lower *w, const Node *n); /* rows.c */

#endif
