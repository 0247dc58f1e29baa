/* views.h -- what a node says, as a struct: one reader per class of operators, and a builder where
 * passes make such nodes anew.
 *
 * A view holds values of the node's graph and numbers that are known before the model runs; it is
 * taken from the node's arguments by their names, so that all rows of a class read alike: conv2d,
 * convolution and etc.integer_convolution are a Conv.  A reader returns false where the node is of
 * another class, or where an argument that the view holds as a number is open; nothing is reported.
 * Axes are counted from 0.  Views own nothing.
 */
#ifndef ETC_IR_VIEWS_H
#define ETC_IR_VIEWS_H

#include "ir/ir.h"

enum { VIEW_AXES = 3 }; /* of space, at most */

/* -- products ---------------------------------------------------------------------------------- */

/* A convolution: x [n, in, size...], w [out, in / groups, kernel...], or where it is transposed
 * [in, out / groups, kernel...]; bias [out] or NULL.  Numbers are per axis of space; kernel
 * 0: open. */
typedef struct Conv {
    Value *x, *w, *bias;
    int axes;
    int64_t kernel[VIEW_AXES], stride[VIEW_AXES], pad[VIEW_AXES], dilation[VIEW_AXES];
    int64_t out_pad[VIEW_AXES], groups;
    bool is_transposed;
} Conv;

bool conv_read(const Node *n, Conv *c);
/* Over two axes: one of one axis becomes an image of height 1, the axis its width.  False: it has
 * three. */
bool conv_as_image(Conv *c);

/* alpha x w + beta bias, or x w^T + bias where `is_rows`: w is [results, terms], else [terms,
 * results].  x is [..., rows, terms]; with `is_batch` x and w are batches of matrices. */
typedef struct Product {
    Value *x, *w, *bias; /* bias NULL: none */
    bool is_rows, is_batch;
    double alpha, beta;
} Product;

bool product_read(const Node *n, Product *p);

/* A node that sums an axis of an operand with weights: linear, mm, addmm or a convolution. */
typedef struct Weighted {
    Value *x, *w, *bias;             /* bias NULL: none */
    int x_slot, w_slot, bias_slot;   /* in n->in; -1: none */
    int w_axis, y_axis;              /* of w and of the result: along which results lie */
    int x_axis;                      /* that is summed */
    int64_t groups;
    bool is_conv, is_scaled;         /* is_scaled: by an alpha or beta that is not 1 */
} Weighted;

bool weighted_read(const Node *n, Weighted *v);

/* -- attention --------------------------------------------------------------------------------- */

/* softmax(mask(cap(scale q k^T) + bias)) v, as ir.md says. */
typedef struct Attention {
    Value *q, *k, *v, *mask, *bias;      /* mask, bias NULL: none */
    double scale, cap, fill;             /* cap 0: none; fill: where a mask of bools is false */
    double dropout;
    bool is_causal, is_shared, is_empty; /* heads of k and v may be shared; a query without a key
                                            gives 0, not NaN */
} Attention;

bool attention_read(const Node *n, Attention *a); /* false: or its scale is open */
Node *attention_build(Graph *g, Node *before, Loc loc, const Attention *a, Diag *d);

/* -- windows and reductions -------------------------------------------------------------------- */

typedef struct Pool {
    Value *x;
    int axes;
    int64_t kernel[VIEW_AXES], stride[VIEW_AXES], pad[VIEW_AXES], dilation[VIEW_AXES];
    int64_t divisor; /* 0: the elements under the window */
    bool is_max, rounds_up, counts_pad;
} Pool;

bool pool_read(const Node *n, Pool *p);

/* The axes that a reduction goes over: bit i of `axes` stands for axis i of x. */
typedef struct Reduce {
    Value *x;
    uint32_t axes;
    bool keeps; /* reduced axes stay, of size 1 */
} Reduce;

bool reduce_read(const Node *n, Reduce *r);
int reduce_list(const Reduce *r, int64_t axis[MAX_RANK]); /* the axes, rising; their number */
bool reduce_is_space(const Reduce *r); /* of [n, c, h, w], over h and w alone */

/* (x - mean) / sqrt(variance + eps) * weight + bias; weight, bias NULL: none. */
typedef enum NormKind { NORM_LAYER, NORM_RMS, NORM_GROUP, NORM_BATCH } NormKind;

typedef struct Norm {
    NormKind kind;
    Value *x, *weight, *bias;
    Value *mean, *var; /* of batch norm: its statistics */
    int axes;          /* of layer and RMS norm: the last ones that are normalized */
    int64_t groups;    /* of group norm */
    double eps;
} Norm;

bool norm_read(const Node *n, Norm *v);

/* -- moves ------------------------------------------------------------------------------------- */

/* x[start : end : step] along an axis; bounds lie within 0 .. size. */
typedef struct Slice {
    Value *x;
    int axis;
    Dim start, end;
    int64_t step;
} Slice;

bool slice_read(const Node *n, Slice *s);
/* x[start : end] along the axis; NULL: reported. */
Value *slice_build(Graph *g, Node *before, Loc loc, Value *x, int64_t axis, Dim start, Dim end,
                   Diag *d);

/* x[index] along an axis, which goes; the index counts from 0. */
typedef struct Select {
    Value *x;
    int axis;
    Dim index;
} Select;

bool select_read(const Node *n, Select *s);
Value *select_build(Graph *g, Node *before, Loc loc, Value *x, int64_t axis, Dim index, Diag *d);

/* Elements start .. start + count of an axis, in one run: a slice of step 1, or a select, whose axis
 * goes. */
typedef struct Narrow {
    Value *x;
    int axis;
    Dim start, count;
    bool drops; /* the axis */
} Narrow;

bool narrow_read(const Node *n, Narrow *s);

/* Operands one behind the other along an axis of the result. */
typedef struct Concat {
    Value *const *part;
    int count, axis;
} Concat;

bool concat_read(const Node *n, Concat *c);
/* NULL: reported. */
Value *concat_build(Graph *g, Node *before, Loc loc, int count, Value *const *part, int64_t axis,
                    Diag *d);
Value *clone_build(Graph *g, Node *before, Loc loc, Value *x, Diag *d);

/* Axis i of the result is axis[i] of x: permute, transpose or t. */
typedef struct Permute {
    Value *x;
    int rank, axis[MAX_RANK];
} Permute;

bool permute_read(const Node *n, Permute *p);
bool permute_swaps_last(const Permute *p); /* the last two axes change places, and no others */

/* -- pointwise --------------------------------------------------------------------------------- */

/* yes where the condition holds, else no; NULL: a number. */
typedef struct Where {
    Value *condition, *yes, *no;
} Where;

bool where_read(const Node *n, Where *c);

/* min(max(x, lo), hi): clamp, hardtanh, relu; infinite where a side is open, never NaN. */
typedef struct Clamp {
    Value *x;
    double lo, hi;
} Clamp;

bool clamp_read(const Node *n, Clamp *c);

/* -- images ------------------------------------------------------------------------------------ */

typedef struct Resize {
    Value *x;
    bool is_linear, aligns_corners;
    double factor[2]; /* of the last two axes; 0: not given */
} Resize;

bool resize_read(const Node *n, Resize *r);

/* -- integers ---------------------------------------------------------------------------------- */

/* Scale and zero point between real numbers and integers: real = scale (integer - zero). */
typedef enum QKind { Q_TENSOR, Q_CHANNEL, Q_TOKEN } QKind;

typedef struct QParams {
    QKind kind;
    bool undoes;    /* a dequantize */
    Value *x;       /* what goes in */
    Value *scales, *zeros; /* as tensors: of channels, tokens, or known at run time; NULL: the
                              numbers below, zeros also: all 0 */
    double scale;
    int64_t zero, lo, hi;
    int axis;       /* of channels */
    EtcDtype dtype; /* of the integers */
} QParams;

bool qparams_read(const Node *n, QParams *q);
/* Builds the quantize, or dequantize to f32 if q->undoes, of x by the numbers of q, before a node, or at
 * the end of the graph where that is NULL.  Returns the result; NULL: reported. */
Value *qparams_build(Graph *g, Node *before, Loc loc, Value *x, const QParams *q, Diag *d);
/* Numbers alone: scale as a float, zero point, dtype. */
bool qparams_equal(const QParams *a, const QParams *b);

/* -- access.c: how a node moves data ----------------------------------------------------------- */

/* Returns whether argument `dim` names the axes that the node goes along: those it sums, cuts or
 * joins. */
bool access_names_axes(const Node *n);
int access_axes(const Node *n); /* position of the argument that names axes; -1: there is none */

/* Returns the axis of a move's result that has the elements of `axis` of its operand.  -1: n is no
 * move, or does not keep that axis whole. */
int access_axis(const Node *n, int axis);

/* Returns how many rows of an image `rows` rows of windows read. */
int64_t access_window(int64_t rows, int64_t kernel, int64_t stride, int64_t dilation);

/* How a contiguous tensor of static sizes is `rows` equal runs of bytes: its first `axes` sizes make
 * `each` times as many.  The axes before `lead` are of size 1 where there are no others. */
typedef struct RowSplit {
    int axes, lead;
    int64_t each;
} RowSplit;

/* False: its leading sizes do not make a multiple of `rows`. */
bool rows_split(Type t, int64_t rows, RowSplit *s);

/* What some rows of result 0 of a node need of operand i: the same rows, all of it, or nobody
 * knows. */
typedef enum RowAccess { ROWS_NONE, ROWS_WHOLE, ROWS_CUT } RowAccess;
RowAccess access_rows(const Node *n, int i, RowSplit s); /* s: of result 0 */

#endif
