/* views.h -- the arguments of a node as a struct: one reader per class of operators, and a builder
 * for classes that passes make.
 *
 * A view holds values of the node's graph, and numbers that are known before the model runs.
 * Readers take arguments by their names, so all operators of a class give the same struct:
 * conv2d, convolution and etc.integer_convolution are a Conv.  A reader returns false if the
 * node belongs to another class, or if an argument that the view holds as a number is symbolic.
 * It reports nothing.  Axes are counted from 0.  Views own nothing. */
#ifndef ETC_IR_VIEWS_H
#define ETC_IR_VIEWS_H

#include "ir/ir.h"

enum { VIEW_AXES = 3 }; /* the most spatial axes of an operator */

/* -- products ---------------------------------------------------------------------------------- */

/* A convolution of x [n, in, size...] by w [out, in / groups, kernel...], which is [in, out /
 * groups, kernel...] if it is transposed.  bias is [out] or NULL.  The arrays have a number per
 * spatial axis; a kernel of 0 has a symbolic size. */
typedef struct Conv {
    Value *x, *w, *bias;
    int axes;
    int64_t kernel[VIEW_AXES], stride[VIEW_AXES], pad[VIEW_AXES], dilation[VIEW_AXES];
    int64_t out_pad[VIEW_AXES], groups;
    bool is_transposed;
} Conv;

bool conv_read(const Node *n, Conv *c);
/* Makes c a convolution of images: a convolution over one axis becomes one over images of height 1.
 * Returns false if c has three axes. */
bool conv_as_image(Conv *c);

/* The product alpha * x w + beta * bias.  x is [..., rows, terms] and w is [terms, results].  With
 * `is_rows`, w is [results, terms] and the product is x w^T + bias.  With `is_batch`, x and w are
 * batches of matrices. */
typedef struct Product {
    Value *x, *w, *bias; /* bias may be NULL */
    bool is_rows, is_batch;
    double alpha, beta;
} Product;

bool product_read(const Node *n, Product *p);

/* A node that sums an axis of an operand with weights: linear, mm, addmm or a convolution. */
typedef struct Weighted {
    Value *x, *w, *bias;           /* bias may be NULL */
    int x_slot, w_slot, bias_slot; /* indices in n->in; -1: there is none */
    int w_axis, y_axis;            /* the axis of the output channels in w and in the result */
    int x_axis;                    /* the axis of x that is summed */
    int64_t groups;
    bool is_conv, is_scaled; /* is_scaled: alpha or beta is not 1 */
} Weighted;

bool weighted_read(const Node *n, Weighted *v);

/* -- attention --------------------------------------------------------------------------------- */

/* softmax(mask(cap(scale q k^T) + bias)) v; ir.md defines it. */
typedef struct Attention {
    Value *q, *k, *v, *mask, *bias; /* mask and bias may be NULL */
    double scale, cap, fill;        /* cap 0: there is none; fill: the score where a mask of
                                            bools is false */
    double dropout;
    bool is_causal, is_shared, is_empty; /* is_shared: several heads of q may share one of k and v;
                                            is_empty: a query without a key gives 0, not NaN */
} Attention;

bool attention_read(const Node *n, Attention *a);
Node *attention_build(Graph *g, Node *before, Loc loc, const Attention *a, Diag *d);

/* -- windows and reductions -------------------------------------------------------------------- */

typedef struct Pool {
    Value *x;
    int axes;
    int64_t kernel[VIEW_AXES], stride[VIEW_AXES], pad[VIEW_AXES], dilation[VIEW_AXES];
    int64_t divisor;                    /* of an average; 0: the number of elements in the window */
    bool is_max, rounds_up, counts_pad; /* ceil_mode, count_include_pad */
} Pool;

bool pool_read(const Node *n, Pool *p);

/* The axes that a reduction reduces: bit i of `axes` stands for axis i of x. */
typedef struct Reduce {
    Value *x;
    uint32_t axes;
    bool keeps; /* keepdim: reduced axes stay, with size 1 */
} Reduce;

bool reduce_read(const Node *n, Reduce *r);
int reduce_list(const Reduce *r, int64_t axis[MAX_RANK]); /* sets the axes, ascending; returns n */
bool reduce_is_space(const Reduce *r); /* x is [n, c, h, w], and the axes are h and w */

/* (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias may be NULL. */
typedef enum NormKind { NORM_LAYER, NORM_RMS, NORM_GROUP, NORM_BATCH } NormKind;

typedef struct Norm {
    NormKind kind;
    Value *x, *weight, *bias;
    Value *mean, *var; /* the statistics of a batch norm */
    int axes;          /* how many of the last axes a layer or RMS norm normalizes */
    int64_t groups;    /* of a group norm */
    double eps;
} Norm;

bool norm_read(const Node *n, Norm *v);

/* -- moves ------------------------------------------------------------------------------------- */

/* x[start : end : step] along an axis, with 0 <= start <= end <= size. */
typedef struct Slice {
    Value *x;
    int axis;
    Dim start, end;
    int64_t step;
} Slice;

bool slice_read(const Node *n, Slice *s);
/* Builds x[start : end] along the axis.  All builders return NULL if they fail, which is
 * reported. */
Value *slice_build(Graph *g, Node *before, Loc loc, Value *x, int64_t axis, Dim start, Dim end,
                   Diag *d);

/* x[index] along an axis, which the result does not have.  The index is not negative. */
typedef struct Select {
    Value *x;
    int axis;
    Dim index;
} Select;

bool select_read(const Node *n, Select *s);
Value *select_build(Graph *g, Node *before, Loc loc, Value *x, int64_t axis, Dim index, Diag *d);

/* Neighbouring elements start .. start + count - 1 along an axis: a slice of step 1, or a
 * select. */
typedef struct Narrow {
    Value *x;
    int axis;
    Dim start, count;
    bool drops; /* it is a select: the result does not have the axis */
} Narrow;

bool narrow_read(const Node *n, Narrow *s);

/* Operands that are concatenated along an axis of the result. */
typedef struct Concat {
    Value *const *part;
    int count, axis;
} Concat;

bool concat_read(const Node *n, Concat *c);
Value *concat_build(Graph *g, Node *before, Loc loc, int count, Value *const *part, int64_t axis,
                    Diag *d);
Value *clone_build(Graph *g, Node *before, Loc loc, Value *x, Diag *d);

/* A permute, transpose or t: axis i of the result is axis[i] of x. */
typedef struct Permute {
    Value *x;
    int rank, axis[MAX_RANK];
} Permute;

bool permute_read(const Node *n, Permute *p);
bool permute_swaps_last(const Permute *p); /* it only exchanges the last two axes */
Value *permute_build(Graph *g, Node *before, Loc loc, Value *x, const int64_t *axis, Diag *d);

/* -- pointwise --------------------------------------------------------------------------------- */

/* The elements of `yes` where the condition is true, else those of `no`.  NULL stands for a
 * number. */
typedef struct Where {
    Value *condition, *yes, *no;
} Where;

bool where_read(const Node *n, Where *c);

/* min(max(x, lo), hi): clamp, hardtanh or relu.  A side without a bound is infinite; neither is
 * NaN. */
typedef struct Clamp {
    Value *x;
    double lo, hi;
} Clamp;

bool clamp_read(const Node *n, Clamp *c);

/* -- images ------------------------------------------------------------------------------------ */

typedef struct Resize {
    Value *x;
    bool is_linear, aligns_corners;
    double factor[2]; /* the scale factors of the last two axes; 0: only the size is given */
} Resize;

bool resize_read(const Node *n, Resize *r);

/* -- integers ---------------------------------------------------------------------------------- */

/* A quantize or dequantize with its qparams: real = scale * (integer - zero). */
typedef enum QKind { Q_TENSOR, Q_CHANNEL, Q_TOKEN } QKind;

typedef struct QParams {
    QKind kind;
    bool undoes;           /* it is a dequantize */
    Value *x;              /* the operand */
    Value *scales, *zeros; /* tensors with a number per channel or token, or computed at run time.
                              scales NULL: the numbers below count; zeros NULL: all are 0 */
    double scale;
    int64_t zero, lo, hi; /* integers lie in lo .. hi */
    int axis;             /* the axis of channels */
    EtcDtype dtype;       /* of the integers */
} QParams;

bool qparams_read(const Node *n, QParams *q);
/* Builds the quantize (the dequantize to f32 if q->undoes) of x by the numbers of q, or the dequantize
 * by its channels, before `before`; NULL: at the end of the graph. */
Value *qparams_build(Graph *g, Node *before, Loc loc, Value *x, const QParams *q, Diag *d);
/* Compares scale (as float), zero point and dtype; both must have numbers, not tensors. */
bool qparams_equal(const QParams *a, const QParams *b);

/* -- access.c: how a node moves data ----------------------------------------------------------- */

/* Returns whether argument `dim` names the axes that the node sums, cuts or joins. */
bool access_names_axes(const Node *n);
int access_axes(const Node *n); /* the position of the argument that names axes, or -1 */

/* Returns the axis of the result that has the elements of `axis` of the operand, if n only moves
 * elements and keeps this axis whole; else -1. */
int access_axis(const Node *n, int axis);

/* Returns how many rows of an image are read for `rows` neighbouring rows of windows. */
int64_t access_window(int64_t rows, int64_t kernel, int64_t stride, int64_t dilation);

/* A division of a contiguous tensor of static sizes into equal runs of bytes, its rows: the
 * product of its first `axes` sizes is `each` times the number of rows.  The axes before `lead`
 * have size 1. */
typedef struct RowSplit {
    int axes, lead;
    int64_t each;
} RowSplit;

/* Divides a tensor into `rows` rows.  Returns false if no product of leading sizes is a multiple of
 * `rows`. */
bool rows_split(Type t, int64_t rows, RowSplit *s);

/* Some rows of result 0 need the same rows of an operand (ROWS_CUT), all of it (ROWS_WHOLE), or
 * rows that are unknown (ROWS_NONE). */
typedef enum RowAccess { ROWS_NONE, ROWS_WHOLE, ROWS_CUT } RowAccess;
RowAccess access_rows(const Node *n, int i, RowSplit s); /* s divides result 0 */

/* Returns the axis of operand i along which a range of indices is needed to compute the same range
 * of result 0 along `axis`: the range is as long and begins at the same index.  AXIS_WHOLE: the
 * whole operand is needed; AXIS_AROUND: indices around such a range, as in a convolution; AXIS_NONE: it
 * is unknown.  Sizes may be symbolic. */
enum { AXIS_NONE = -1, AXIS_WHOLE = -2, AXIS_AROUND = -3 };
int access_range(const Node *n, int i, int axis);

/* The operator that takes a tensor, what replaces its view, and the view's arguments; the operator
 * that makes the tensor of its view again.  OP_NONE: there is none. */
OpId view_scatter(OpId view);
OpId view_inverse(OpId view);

#endif
