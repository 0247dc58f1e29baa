/* rows.h -- the functions that the table of rows.c names, and helpers of several of them. */
#ifndef ETC_PARTITION_XNNPACK_ROWS_H
#define ETC_PARTITION_XNNPACK_ROWS_H

#include "partition/xnnpack/lower.h"

typedef bool XTakes(const Node *n, Refusal *r);
typedef void XLower(Lower *w, const Node *n);

bool xnn_no(Refusal *r, const char *why, const char *fix); /* false */
XnnKind xnn_kind(const Node *n);              /* the kind in its row */
int64_t xnn_size(const Value *v, int axis); /* a negative axis counts from the end */
int xnn_symbolic_sizes(Type t, int from);   /* how many sizes of axes from `from` on are symbolic */
int64_t xnn_axis(const Node *n, const char *name, int rank);
Layout x_layout(const Lower *w, const Node *n); /* that of most operands */
void x_define_reshaped(Lower *w, const Value *v, uint32_t in);

/* attention.c */
XTakes xnn_takes_attention, xnn_takes_sdpa;
XLower xnn_lower_attention, xnn_lower_sdpa;

/* image.c */
XTakes xnn_takes_amax, xnn_takes_bilinear, xnn_takes_nearest, xnn_takes_conv, xnn_takes_max_pool,
    xnn_takes_avg_pool, xnn_takes_batch_norm;
XLower xnn_lower_amax, xnn_lower_bilinear, xnn_lower_nearest, xnn_lower_conv, xnn_lower_max_pool,
    xnn_lower_avg_pool, xnn_lower_batch_norm;

/* move.c */
XTakes xnn_takes_view, xnn_takes_clone, xnn_takes_cat, xnn_takes_slice, xnn_takes_select, xnn_takes_pad,
    xnn_takes_roll, xnn_takes_expand;
XLower xnn_lower_view, xnn_lower_clone, xnn_lower_permute, xnn_lower_cat, xnn_lower_slice,
    xnn_lower_select, xnn_lower_pad, xnn_lower_roll, xnn_lower_expand;

/* pointwise.c */
XTakes xnn_takes_clamp, xnn_takes_elu, xnn_takes_alpha_one, xnn_takes_number,
    xnn_takes_number_alpha_one, xnn_takes_power;
XLower xnn_lower_unary, xnn_lower_gelu, xnn_lower_elu, xnn_lower_binary, xnn_lower_scalar,
    xnn_lower_reversed, xnn_lower_power, xnn_lower_silu, xnn_lower_hardsigmoid,
    xnn_lower_leaky_relu, xnn_lower_clamp;

/* product.c */
bool xnn_is_mean_of_space(const Node *n);
XTakes xnn_takes_linear, xnn_takes_bmm, xnn_takes_mean, xnn_takes_layer_norm;
XLower xnn_lower_linear, xnn_lower_bmm, xnn_lower_mean, xnn_lower_layer_norm, xnn_lower_softmax;

#endif
