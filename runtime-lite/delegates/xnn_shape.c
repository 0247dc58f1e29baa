/* xnn_shape.c -- computes the sizes of all values of an XNNPACK graph from those of its inputs, and
 * checks them, because the library does not.  This is done at load, and again when the inputs of a
 * call have other sizes. */
#include "runtime-lite/delegates/xnn_graph.h"

#include <string.h>

enum { MOST_FIELD = 1 << 20 }; /* kernels, strides, paddings, channels */

typedef struct Infer {
    const XnnGraph *g;
    const XnnNode *n;
    XnnShape *shape; /* of all values */
    const XnnShape *in[XNN_INPUTS];
    XnnShape out[2];
} Infer;

/* Each of these functions returns NULL, or what is wrong. */

static const char *sizes_as(Infer *f, const XnnShape *s)
{
    f->out[0] = *s;
    return NULL;
}

static const char *broadcast(Infer *f)
{
    const XnnShape *a = f->in[0], *b = f->in[1];
    XnnShape *o = &f->out[0];
    o->rank = (a->rank > b->rank) ? a->rank : b->rank;
    for (uint32_t k = 1; k <= o->rank; k++) { /* from the last */
        size_t x = (k <= a->rank) ? a->dim[a->rank - k] : 1;
        size_t y = (k <= b->rank) ? b->dim[b->rank - k] : 1;
        if ((x != y) && (x != 1) && (y != 1)) {
            return "sizes do not broadcast";
        }
        o->dim[o->rank - k] = (x == 1) ? y : x;
    }
    return NULL;
}

static const char *prelu(Infer *f)
{
    const XnnShape *a = f->in[0], *slope = f->in[1];
    size_t channels = a->rank ? a->dim[a->rank - 1] : 0;
    int64_t n = etc_xnn_count(slope);
    if ((slope->rank == 0) || ((n != 1) && (n != (int64_t)channels)) ||
        (slope->dim[slope->rank - 1] != (size_t)n)) {
        return "slopes are not one, or one for each channel";
    }
    return sizes_as(f, a);
}

static const char *batch_matmul(Infer *f)
{
    const XnnShape *a = f->in[0], *b = f->in[1];
    if ((a->rank != b->rank) || (a->rank < 2)) {
        return "product of matrices of other ranks";
    }
    uint32_t r = a->rank;
    for (uint32_t k = 0; k + 2 < r; k++) {
        if (a->dim[k] != b->dim[k]) {
            return "product of other batches";
        }
    }
    int flip = (f->n->flags & FLAG_TRANSPOSE) != 0;
    if (a->dim[r - 1] != b->dim[flip ? r - 1 : r - 2]) {
        return "product of matrices that do not fit";
    }
    f->out[0] = *a;
    f->out[0].dim[r - 1] = b->dim[flip ? r - 2 : r - 1];
    return NULL;
}

static int is_bias(const Infer *f, size_t channels)
{
    return (f->n->in[2] == XNN_NO_ID) || ((f->in[2]->rank == 1) && (f->in[2]->dim[0] == channels));
}

static int has_channels(const Infer *f, uint32_t dim, size_t channels)
{
    const XnnValue *v = &f->g->value[f->n->in[1]];
    return (v->scales == NULL) || ((v->channel_dim == dim) && (v->shape.dim[dim] == channels));
}

static const char *fully_connected(Infer *f)
{
    const XnnShape *a = f->in[0], *w = f->in[1];
    int flip = (f->n->flags & FLAG_TRANSPOSE) != 0;
    if ((a->rank < 1) || (w->rank != 2) || (a->dim[a->rank - 1] != w->dim[flip ? 0 : 1])) {
        return "weights do not fit the input";
    }
    size_t channels = w->dim[flip ? 1 : 0];
    if ((channels == 0) || (w->dim[flip ? 0 : 1] == 0) || !is_bias(f, channels) ||
        !has_channels(f, flip ? 1 : 0, channels)) {
        return "bias or scales do not fit the weights";
    }
    f->out[0] = *a;
    f->out[0].dim[a->rank - 1] = channels;
    return NULL;
}

static const char *transpose(Infer *f)
{
    const XnnShape *a = f->in[0], *perm = &f->n->a;
    uint32_t seen = 0;
    if ((f->n->field[0] != perm->rank) || (perm->rank != a->rank) || (a->rank == 0)) {
        return "permutation of another rank";
    }
    f->out[0].rank = a->rank;
    for (uint32_t k = 0; k < a->rank; k++) {
        if ((perm->dim[k] >= a->rank) || ((seen >> perm->dim[k] & 1) != 0)) {
            return "not a permutation";
        }
        seen |= 1u << perm->dim[k];
        f->out[0].dim[k] = a->dim[perm->dim[k]];
    }
    return NULL;
}

static const char *check_fields(const XnnNode *n, int count)
{
    for (int k = 0; k < count; k++) {
        if (n->field[k] > MOST_FIELD) {
            return "kernel, stride, padding or channels too large";
        }
    }
    return NULL;
}

/* Returns the number of positions of a window along one axis; 0: there is none. */
static size_t windows(size_t in, size_t pad, size_t kernel, size_t stride, size_t dilation)
{
    size_t reach = (kernel - 1) * dilation + 1;
    return (in + pad >= reach) ? (in + pad - reach) / stride + 1 : 0;
}

static const char *slide(Infer *f, size_t channels)
{
    const uint32_t *u = f->n->field;
    const XnnShape *a = f->in[0];
    XnnShape *o = &f->out[0];
    o->rank = 4;
    o->dim[0] = a->dim[0];
    o->dim[1] = windows(a->dim[1], (size_t)u[F_TOP] + u[F_BOTTOM], u[F_KERNEL_H], u[F_STRIDE_H],
                        u[F_DILATION_H]);
    o->dim[2] = windows(a->dim[2], (size_t)u[F_LEFT] + u[F_RIGHT], u[F_KERNEL_W], u[F_STRIDE_W],
                        u[F_DILATION_W]);
    o->dim[3] = channels;
    return ((o->dim[1] == 0) || (o->dim[2] == 0)) ? "kernel larger than the padded input" : NULL;
}

static int are_positive(const XnnNode *n, int first, int last)
{
    for (int k = first; k <= last; k++) {
        if (n->field[k] == 0) {
            return 0;
        }
    }
    return 1;
}

/* Checks the filter's sizes: [out, kh, kw, in of a group], or [1, kh, kw, out] if it is depthwise.
 */
static const char *check_filter(const Infer *f)
{
    const uint32_t *u = f->n->field;
    const XnnShape *w = f->in[1];
    int is_depthwise = f->n->kind == XNN_DEPTHWISE;
    size_t channels = (size_t)u[F_GROUPS] * u[F_GROUP_OUT];
    if ((w->rank != 4) || (w->dim[1] != u[F_KERNEL_H]) || (w->dim[2] != u[F_KERNEL_W]) ||
        (w->dim[0] != (is_depthwise ? 1 : channels)) ||
        (w->dim[3] != (is_depthwise ? channels : u[F_GROUP_IN]))) {
        return "filter does not have the sizes of its node";
    }
    if (is_depthwise && (u[F_GROUP_IN] != 1)) {
        return "depthwise convolution of more than one channel a group";
    }
    return (is_bias(f, channels) && has_channels(f, is_depthwise ? 3 : 0, channels))
               ? NULL
               : "bias or scales do not fit the filter";
}

static size_t widened(size_t in, size_t pad, size_t kernel, size_t stride, size_t dilation,
                      size_t more)
{
    size_t full = in ? (in - 1) * stride + (kernel - 1) * dilation + 1 + more : 0;
    return (full > pad) ? full - pad : 0;
}

static const char *widen(Infer *f, size_t channels)
{
    const uint32_t *u = f->n->field;
    const XnnShape *a = f->in[0];
    XnnShape *o = &f->out[0];
    if ((u[F_ADJUST_H] >= u[F_STRIDE_H]) || (u[F_ADJUST_W] >= u[F_STRIDE_W])) {
        return "adjustment not below the stride";
    }
    o->rank = 4;
    o->dim[0] = a->dim[0];
    o->dim[1] = widened(a->dim[1], (size_t)u[F_TOP] + u[F_BOTTOM], u[F_KERNEL_H], u[F_STRIDE_H],
                        u[F_DILATION_H], u[F_ADJUST_H]);
    o->dim[2] = widened(a->dim[2], (size_t)u[F_LEFT] + u[F_RIGHT], u[F_KERNEL_W], u[F_STRIDE_W],
                        u[F_DILATION_W], u[F_ADJUST_W]);
    o->dim[3] = channels;
    return ((o->dim[1] == 0) || (o->dim[2] == 0)) ? "paddings leave nothing" : NULL;
}

static const char *convolve(Infer *f)
{
    const XnnNode *n = f->n;
    const uint32_t *u = n->field;
    const char *what = check_fields(n, XNN_FIELDS);
    if (what != NULL) {
        return what;
    }
    if (!are_positive(n, F_KERNEL_H, F_GROUPS)) {
        return "kernel, stride, dilation or group of 0";
    }
    if ((f->in[0]->rank != 4) || (f->in[0]->dim[3] != (size_t)u[F_GROUPS] * u[F_GROUP_IN])) {
        return "channels of the input are not those of the node";
    }
    what = check_filter(f);
    if (what != NULL) {
        return what;
    }
    size_t channels = (size_t)u[F_GROUPS] * u[F_GROUP_OUT];
    return (n->kind == XNN_CONV_TRANSPOSE) ? widen(f, channels) : slide(f, channels);
}

/* A window that lies only in the padding would have no largest element and no mean. */
static int is_window_on_image(const XnnNode *n)
{
    const uint32_t *u = n->field;
    uint64_t high = ((uint64_t)u[F_KERNEL_H] - 1) * u[F_DILATION_H] + 1;
    uint64_t wide = ((uint64_t)u[F_KERNEL_W] - 1) * u[F_DILATION_W] + 1;
    return (u[F_TOP] < high) && (u[F_BOTTOM] < high) && (u[F_LEFT] < wide) && (u[F_RIGHT] < wide);
}

static const char *pool(Infer *f)
{
    const XnnNode *n = f->n;
    const char *what = check_fields(n, 10);
    int last = (n->kind == XNN_MAX_POOL) ? F_DILATION_W : F_STRIDE_W;
    XnnNode plain = *n;
    if (what != NULL) {
        return what;
    }
    if (f->in[0]->rank != 4) {
        return "pooling of no image";
    }
    if (n->kind == XNN_ARGMAX_POOL) {
        plain.field[F_STRIDE_H] = n->field[F_KERNEL_H];
        plain.field[F_STRIDE_W] = n->field[F_KERNEL_W];
    }
    if (n->kind != XNN_MAX_POOL) {
        plain.field[F_DILATION_H] = plain.field[F_DILATION_W] = 1;
    }
    if (!are_positive(&plain, F_KERNEL_H, last)) {
        return "kernel, stride, dilation or group of 0";
    }
    if (!is_window_on_image(&plain)) {
        return "padding as large as the window";
    }
    f->n = &plain;
    what = slide(f, f->in[0]->dim[3]);
    f->n = n;
    f->out[1] = f->out[0];
    return what;
}

static const char *global_pool(Infer *f)
{
    const XnnShape *a = f->in[0];
    XnnShape *o = &f->out[0];
    int keeps = (f->n->flags & FLAG_KEEP_DIMS) != 0;
    if (a->rank != 4) {
        return "pooling of no image";
    }
    o->rank = keeps ? 4 : 2;
    o->dim[0] = a->dim[0];
    o->dim[1] = o->dim[2] = 1;
    o->dim[o->rank - 1] = a->dim[3];
    return NULL;
}

static const char *resize(Infer *f)
{
    const XnnShape *a = f->in[0];
    if ((a->rank != 4) || (a->dim[1] == 0) || (a->dim[2] == 0) || check_fields(f->n, 2) ||
        !are_positive(f->n, 0, 1)) {
        return "resize of no image, or to no size";
    }
    f->out[0] = *a;
    f->out[0].dim[1] = f->n->field[0];
    f->out[0].dim[2] = f->n->field[1];
    return NULL;
}

static const char *pad(Infer *f)
{
    const XnnShape *a = f->in[0], *before = &f->n->a, *after = &f->n->b;
    if ((before->rank != a->rank) || (after->rank != a->rank)) {
        return "paddings of another rank";
    }
    f->out[0] = *a;
    for (uint32_t k = 0; k < a->rank; k++) {
        f->out[0].dim[k] += before->dim[k] + after->dim[k];
    }
    return NULL;
}

static const char *reshape(Infer *f)
{
    const XnnShape *to = &f->n->a;
    XnnShape *o = &f->out[0], known = *to;
    int32_t open = -1;
    if (f->n->field[0] != to->rank) {
        return "number of dimensions differs from that of the sizes";
    }
    for (uint32_t k = 0; k < to->rank; k++) {
        if ((to->dim[k] == 0) && (open >= 0)) {
            return "more than one size left open";
        }
        open = (to->dim[k] == 0) ? (int32_t)k : open;
        known.dim[k] = to->dim[k] ? to->dim[k] : 1;
    }
    int64_t n = etc_xnn_count(f->in[0]), m = etc_xnn_count(&known);
    if ((m < 0) || (open >= 0 ? n % m != 0 : n != m)) {
        return "other sizes do not hold as many elements";
    }
    *o = known;
    if (open >= 0) {
        o->dim[open] = (size_t)(n / m);
    }
    return NULL;
}

static const char *slice(Infer *f)
{
    const XnnShape *a = f->in[0], *from = &f->n->a, *size = &f->n->b;
    XnnShape *o = &f->out[0];
    if ((f->n->field[0] != a->rank) || (from->rank != a->rank) || (size->rank != a->rank)) {
        return "slice of another rank";
    }
    o->rank = a->rank;
    for (uint32_t k = 0; k < a->rank; k++) {
        if ((from->dim[k] > a->dim[k]) || (size->dim[k] > a->dim[k] - from->dim[k])) {
            return "slice past the end";
        }
        o->dim[k] = size->dim[k] ? size->dim[k] : a->dim[k] - from->dim[k]; /* 0: up to the end */
    }
    return NULL;
}

static const char *concatenate(Infer *f)
{
    uint32_t axis = f->n->field[0];
    XnnShape *o = &f->out[0];
    *o = *f->in[0];
    if (axis >= o->rank) {
        return "axis out of range";
    }
    for (uint32_t i = 1; i < f->n->n_in; i++) {
        if (f->in[i]->rank != o->rank) {
            return "concatenation of other ranks";
        }
        for (uint32_t k = 0; k < o->rank; k++) {
            if ((k != axis) && (f->in[i]->dim[k] != o->dim[k])) {
                return "concatenation of other sizes";
            }
        }
        o->dim[axis] += f->in[i]->dim[axis];
    }
    return NULL;
}

static const char *infer_node(Infer *f)
{
    switch ((int)f->n->kind) {
    case XNN_ADD: case XNN_DIV: case XNN_MINIMUM: case XNN_MULTIPLY: case XNN_SUBTRACT:
    case XNN_MAXIMUM:
        return broadcast(f);
    case XNN_PRELU:
        return prelu(f);
    case XNN_BATCH_MATMUL:
        return batch_matmul(f);
    case XNN_FULLY_CONNECTED:
        return fully_connected(f);
    case XNN_TRANSPOSE:
        return transpose(f);
    case XNN_CONV: case XNN_DEPTHWISE: case XNN_CONV_TRANSPOSE:
        return convolve(f);
    case XNN_AVG_POOL: case XNN_MAX_POOL: case XNN_ARGMAX_POOL:
        return pool(f);
    case XNN_GLOBAL_POOL:
        return global_pool(f);
    case XNN_RESIZE:
        return resize(f);
    case XNN_PAD:
        return pad(f);
    case XNN_RESHAPE:
        return reshape(f);
    case XNN_SLICE:
        return slice(f);
    case XNN_CONCAT2: case XNN_CONCAT3: case XNN_CONCAT4: case XNN_CONCAT5:
        return concatenate(f);
    case XNN_SOFTMAX:
        return f->in[0]->rank ? sizes_as(f, f->in[0]) : "softmax of no dimension";
    default:
        return sizes_as(f, f->in[0]);
    }
}

int etc_xnn_same(const XnnShape *a, const XnnShape *b)
{
    return (a->rank == b->rank) && (memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0);
}

EtcStatus etc_xnn_infer(const XnnGraph *g, XnnShape *shape, EtcError *e)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        Infer f;
        memset(&f, 0, sizeof f);
        f.g = g;
        f.n = &g->node[i];
        f.shape = shape;
        for (uint32_t k = 0; k < f.n->n_in; k++) {
            f.in[k] = (f.n->in[k] == XNN_NO_ID) ? NULL : &shape[f.n->in[k]];
        }
        const char *what = infer_node(&f);
        for (uint32_t k = 0; (what == NULL) && (k < f.n->n_out); k++) {
            what = (etc_xnn_count(&f.out[k]) < 0) ? "sizes of a value are too large" : NULL;
            shape[f.n->out[k]] = f.out[k];
        }
        if (what != NULL) {
            return etc_xnn_fail(e, ETC_BAD_FILE, what, i);
        }
    }
    return ETC_OK;
}
