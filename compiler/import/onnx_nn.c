/* onnx_nn.c -- reads ONNX operators of neural networks: convolutions, pools, norms, resizing. */
#include "compiler/import/onnx.h"
#include <math.h>
#include <string.h>

enum { MAX_SPACE = 3 };

/* A window over the last axes of x. */
typedef struct Window {
    int axes;
    int64_t kernel[MAX_SPACE], stride[MAX_SPACE], dilation[MAX_SPACE], before[MAX_SPACE],
        after[MAX_SPACE];
    bool is_even; /* the padding before and after an axis is the same */
    bool is_open;  /* auto_pad pads some axes of symbolic size, such that there are
                    * ceil(size / stride) windows */
    bool is_upper; /* if such padding is odd, the end gets one element more than the start */
} Window;

static bool window_ints(OnnxNode *n, const char *name, int64_t *out, int count, int64_t otherwise)
{
    for (int i = 0; i < count; i++)
        out[i] = otherwise;
    int given = on_ints(n, name, out, count);
    if (given >= 0 && given != count)
        return onnx_wrong(n, "has %d numbers as '%s', expected %d", given, name, count);
    return !n->failed;
}

/* Sets the padding of SAME_UPPER and SAME_LOWER, with which the result has ceil(size / stride)
 * elements. */
static void same_pads(const Value *x, Window *w, bool is_upper)
{
    for (int i = 0; i < w->axes; i++) {
        Dim size = x->type.dim[x->type.rank - w->axes + i];
        w->is_open = w->is_open || (size.expr && w->stride[i] != 1);
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t out = size.expr ? 0 : (size.value + w->stride[i] - 1) / w->stride[i];
        int64_t all = size.expr ? reach - 1 : (out - 1) * w->stride[i] + reach - size.value;
        all = all < 0 ? 0 : all;
        w->before[i] = is_upper ? all / 2 : all - all / 2;
        w->after[i] = all - w->before[i];
    }
    w->is_upper = is_upper;
}

/* Computes the same padding for axes of x whose sizes may be symbolic, as pairs from the last axis
 * on. */
static void open_pads(Program *p, const Value *x, const Window *w, Dim *pair)
{
    for (int i = 0; i < w->axes; i++) {
        Dim size = x->type.dim[x->type.rank - w->axes + i], s = DIM(w->stride[i]);
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        Dim last = dim_mul(p, dim_floordiv(p, dim_sub(p, size, DIM(1)), s), s);
        Dim all = dim_max(p, dim_sub(p, dim_add(p, last, DIM(reach)), size), DIM(0));
        Dim less = dim_floordiv(p, all, DIM(2)), more = dim_sub(p, all, less);
        pair[2 * (w->axes - 1 - i)] = w->is_upper ? less : more;
        pair[2 * (w->axes - 1 - i) + 1] = w->is_upper ? more : less;
    }
}

static bool read_window(OnnxNode *n, const Value *x, Window *w)
{
    enum { MOST = 1 << 24 };
    int64_t pads[2 * MAX_SPACE];
    const char *how = on_text(n, "auto_pad", "NOTSET");
    if (w->axes < 1 || w->axes > MAX_SPACE)
        return onnx_unsupported(n, "has a window over %d axes, expected 1 to 3", w->axes);
    if (!window_ints(n, "strides", w->stride, w->axes, 1) ||
        !window_ints(n, "dilations", w->dilation, w->axes, 1) ||
        !window_ints(n, "pads", pads, 2 * w->axes, 0))
        return false;
    for (int i = 0; i < w->axes; i++) {
        w->before[i] = pads[i];
        w->after[i] = pads[w->axes + i];
        if (w->stride[i] < 1 || w->stride[i] > MOST || w->dilation[i] < 1 || w->dilation[i] > MOST ||
            w->kernel[i] < 1 || w->kernel[i] > MOST || pads[i] < 0 || pads[i] > MOST ||
            pads[w->axes + i] < 0 || pads[w->axes + i] > MOST)
            return onnx_wrong(n, "has a stride, dilation, kernel or padding out of range");
    }
    w->is_open = false;
    if (!strncmp(how, "SAME_", 5))
        same_pads(x, w, !strcmp(how, "SAME_UPPER"));
    w->is_even = !w->is_open;
    for (int i = 0; i < w->axes; i++)
        w->is_even = w->is_even && w->before[i] == w->after[i];
    return !n->failed;
}

/* Returns x with the padding of the window, and removes the padding from the window. */
static Value *padded(OnnxNode *n, Value *x, Window *w, double with)
{
    int64_t pair[2 * MAX_SPACE];
    Dim open[2 * MAX_SPACE];
    bool any = false;
    if (w->is_open && x)
        open_pads(n->in->program, x, w, open);
    for (int i = 0; i < w->axes; i++) {
        pair[2 * i] = w->before[w->axes - 1 - i];
        pair[2 * i + 1] = w->after[w->axes - 1 - i];
        any = any || pair[2 * i] || pair[2 * i + 1];
    }
    memset(w->before, 0, sizeof w->before);
    memset(w->after, 0, sizeof w->after);
    w->is_even = true;
    if (w->is_open && x)
        return ON_BUILD(n, OP_CONSTANT_PAD_ND, "vDf", x, 2 * w->axes, open, with);
    return !any || !x ? x : ON_BUILD(n, OP_CONSTANT_PAD_ND, "vIf", x, 2 * w->axes, pair, with);
}

/* -- convolutions ------------------------------------------------------------------------------ */

static bool read_filter(OnnxNode *n, const Value *x, const Value *filter, Window *w)
{
    w->axes = filter->type.rank - 2;
    for (int i = 0; i < w->axes && i < MAX_SPACE; i++) {
        if (filter->type.dim[2 + i].expr)
            return onnx_unsupported(n, "has a filter of symbolic sizes");
        w->kernel[i] = filter->type.dim[2 + i].value;
    }
    return read_window(n, x, w);
}

/* Builds a convolution.  Over three axes torch has operators of their own, so the result is typed
 * like one over fewer axes. */
static Value *convolved(OnnxNode *n, Value *x, Value *filter, Value *bias, const Window *w,
                        const int64_t *pad, const int64_t *more)
{
    static const int64_t none[MAX_SPACE] = {0};
    int64_t groups = on_int(n, "group", 1);
    Value *y = ON_BUILD(n, OP_CONVOLUTION, "vvvIIIbIi", x, filter, bias, w->axes, w->stride, w->axes, pad,
                        w->axes, w->dilation, more != NULL, w->axes, more ? more : none, groups);
    if (!y || w->axes < 3)
        return y;
    Type t = y->type;
    graph_remove(n->in->graph, y->def);
    return more ? ON_GIVEN(n, OP_CONV_TRANSPOSE3D_INPUT, t, "vvvIIIiI", x, filter, bias, 3, w->stride, 3,
                           pad, 3, more, groups, 3, w->dilation)
                : ON_GIVEN(n, OP_CONV3D, t, "vvvIIIi", x, filter, bias, 3, w->stride, 3, pad, 3,
                           w->dilation, groups);
}

Value *on_conv(OnnxNode *n, Value *x, Value *filter, Value *bias)
{
    Window w;
    if (!x || !filter || n->failed || !read_filter(n, x, filter, &w))
        return NULL;
    x = w.is_even ? x : padded(n, x, &w, 0);
    return x ? convolved(n, x, filter, bias, &w, w.before, NULL) : NULL;
}

bool onnx_conv(OnnxNode *n)
{
    Value *bias = on_has(n, 2) ? on_value(n, 2) : NULL;
    return !n->failed && on_define(n, 0, on_conv(n, on_value(n, 0), on_value(n, 1), bias));
}

/* Reads a convolution each tap of which reads x at an offset that an input gives.  The padding
 * after an axis follows from the size of the offsets. */
bool onnx_deform_conv(OnnxNode *n)
{
    Window w;
    Value *x = on_value(n, 0), *filter = on_value(n, 1), *offset = on_value(n, 2);
    Value *bias = on_has(n, 3) ? on_value(n, 3) : NULL, *mask = on_has(n, 4) ? on_value(n, 4) : NULL;
    int64_t groups = on_int(n, "group", 1), offsets = on_int(n, "offset_group", 1);
    if (!x || !filter || !offset || n->failed)
        return false;
    if (x->type.rank != 4 || filter->type.rank != 4 || offset->type.rank != 4)
        return onnx_unsupported(n, "deforms a convolution over other than two axes");
    if (!read_filter(n, x, filter, &w))
        return false;
    Dim size[4] = {x->type.dim[0], filter->type.dim[0], offset->type.dim[2], offset->type.dim[3]};
    Type t = type_tensor(n->in->program, x->type.dtype, 4, size);
    return on_define(n, 0, ON_GIVEN(n, OP_DEFORM_CONV2D, t, "vvvvviiiiiiiib", x, filter, offset,
                                    mask ? mask : offset, bias, w.stride[0], w.stride[1], w.before[0],
                                    w.before[1], w.dilation[0], w.dilation[1], groups, offsets, mask != NULL));
}

/* Computes the padding with which the result has the size `shape`, or x's size times the stride. */
static bool pads_of_shape(OnnxNode *n, const Value *x, Window *w, int64_t *more)
{
    int64_t shape[MAX_SPACE];
    const char *how = on_text(n, "auto_pad", "NOTSET");
    bool is_same = !strncmp(how, "SAME_", 5), is_upper = !strcmp(how, "SAME_UPPER");
    int given = on_ints(n, "output_shape", shape, MAX_SPACE);
    if (n->failed || (given < 0 && !is_same))
        return !n->failed;
    if (given >= 0 && given != w->axes)
        return onnx_wrong(n, "has %d sizes as 'output_shape', expected %d", given, w->axes);
    for (int i = 0; i < w->axes; i++) {
        Dim size = x->type.dim[2 + i];
        if (size.expr || size.value < 1 || size.value > INT32_MAX)
            return onnx_unsupported(
                n, "pads by auto_pad an axis whose size is known only at run time");
        int64_t want = given >= 0 ? shape[i] : size.value * w->stride[i];
        int64_t all = w->stride[i] * (size.value - 1) + more[i] + (w->kernel[i] - 1) * w->dilation[i] +
                      1 - want;
        if (want < 1 || want > INT32_MAX)
            return onnx_wrong(n, "has an output_shape that is out of range");
        if (all < 0) {
            more[i] -= all;
            all = 0;
        }
        if (more[i] >= w->stride[i] && more[i] >= w->dilation[i])
            return onnx_unsupported(n, "has an output_shape beyond what windows reach");
        w->before[i] = is_upper ? all / 2 : all - all / 2;
        w->after[i] = all - w->before[i];
        w->is_even = w->is_even && w->before[i] == w->after[i];
    }
    return true;
}

/* Reads a transposed convolution.  If the padding is uneven, the rest is cut off at the end.
 * output_shape, if given, decides it. */
bool onnx_conv_transpose(OnnxNode *n)
{
    Window w;
    int64_t more[MAX_SPACE], none[MAX_SPACE] = {0};
    Value *x = on_value(n, 0), *filter = on_value(n, 1), *bias = on_has(n, 2) ? on_value(n, 2) : NULL;
    if (!x || !filter || n->failed || !read_filter(n, x, filter, &w) ||
        !window_ints(n, "output_padding", more, w.axes, 0) || !pads_of_shape(n, x, &w, more))
        return false;
    Value *y = convolved(n, x, filter, bias, &w, w.is_even ? w.before : none, more);
    for (int i = 0; y && !w.is_even && i < w.axes; i++) {
        Dim end = dim_sub(n->in->program, y->type.dim[2 + i], DIM(w.after[i]));
        y = on_part(n, y, 2 + i, DIM(w.before[i]), end, 1);
    }
    return on_define(n, 0, y);
}

/* Reads a causal depthwise convolution.  Its input is x after the last elements of earlier calls,
 * or after zeros. */
bool onnx_causal_conv(OnnxNode *n)
{
    static const int64_t one[1] = {1}, none[1] = {0};
    Value *x = on_value(n, 0), *filter = on_value(n, 1), *bias = on_has(n, 2) ? on_value(n, 2) : NULL;
    const char *how = on_text(n, "activation", "none");
    if (!x || !filter || n->failed)
        return false;
    if (x->type.rank != 3 || filter->type.rank != 3 || x->type.dim[1].expr || filter->type.dim[2].expr)
        return onnx_wrong(n,
                          "expects [batch, channels, length] and [channels, 1, k] of known sizes");
    Dim dim[3] = {x->type.dim[0], x->type.dim[1], DIM(filter->type.dim[2].value - 1)};
    Value *past = on_has(n, 3) ? on_value(n, 3) : on_full(n, 3, dim, 0, x->type.dtype);
    x = on_cat(n, past, x, 2);
    if (!x)
        return false;
    Value *y = ON_BUILD(n, OP_CONVOLUTION, "vvvIIIbIi", x, filter, bias, 1, one, 1, none, 1, one, false,
                        1, none, dim[1].value);
    if (strcmp(how, "none") != 0 && strcmp(how, "silu") != 0 && strcmp(how, "swish") != 0)
        return onnx_wrong(n, "has the activation '%s', expected none, silu or swish", how);
    y = *how == 'n' ? y : on_unary(n, OP_SILU, y);
    Dim size = x->type.dim[2];
    return on_define(n, 0, y) && (!on_wants(n, 1) ||
           on_define(n, 1, on_part(n, x, 2, dim_sub(n->in->program, size, dim[2]), size, 1)));
}

/* -- pools ------------------------------------------------------------------------------------- */

static bool read_pool(OnnxNode *n, Value *x, Window *w)
{
    w->axes = x->type.rank - 2;
    if (w->axes < 1 || w->axes > MAX_SPACE)
        return onnx_unsupported(n, "pools over %d axes, expected 1 to 3", w->axes);
    int given = on_ints(n, "kernel_shape", w->kernel, MAX_SPACE);
    return given == w->axes ? read_window(n, x, w) : onnx_wrong(n, "has no kernel_shape of its axes");
}

/* Counts the windows along axis i.  A window that would begin in the padding after the data does
 * not count. */
static Dim count_windows(OnnxNode *n, const Window *w, int i, Dim size)
{
    Program *p = n->in->program;
    int64_t s = w->stride[i], reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    bool ceils = on_int(n, "ceil_mode", 0);
    Dim rest = dim_add(p, size, DIM(w->before[i] + w->after[i] - reach + (ceils ? s - 1 : 0)));
    if (rest.expr && ceils && s > 1)
        return DIM_BAD;
    Dim count = dim_add(p, dim_floordiv(p, rest, DIM(s)), DIM(1));
    if (ceils && !count.expr && (count.value - 1) * s >= size.value + w->before[i])
        count = DIM(count.value - 1);
    return count;
}

/* Returns the sums or maxima of windows of any kind.  It reduces one axis after the other. */
static Value *windowed(OnnxNode *n, Value *x, const Window *w, OpId op, double fill)
{
    Program *p = n->in->program;
    enum { MOST = 64 };
    if (w->is_open) {
        onnx_unsupported(n, "pads by auto_pad an axis whose size is known only at run time");
        return NULL;
    }
    for (int i = 0; x && i < w->axes; i++) {
        int axis = x->type.rank - w->axes + i;
        Dim size = x->type.dim[axis], count = count_windows(n, w, i, size);
        if (w->kernel[i] > MOST || dim_is_bad(count) || (!count.expr && count.value < 1)) {
            onnx_unsupported(n, "has a window of more than 64 elements, or one that does not fit");
            return NULL;
        }
        Dim span = dim_add(p, dim_mul(p, dim_sub(p, count, DIM(1)), DIM(w->stride[i])), DIM(1));
        Dim need = dim_add(p, span, DIM((w->kernel[i] - 1) * w->dilation[i]));
        Dim behind = dim_sub(p, dim_sub(p, need, size), DIM(w->before[i]));
        int64_t pair[2 * MAX_SPACE] = {0};
        pair[2 * (w->axes - 1 - i)] = w->before[i];
        pair[2 * (w->axes - 1 - i) + 1] = behind.expr ? w->after[i] : behind.value > 0 ? behind.value : 0;
        if (pair[2 * (w->axes - 1 - i)] || pair[2 * (w->axes - 1 - i) + 1])
            x = ON_BUILD(n, OP_CONSTANT_PAD_ND, "vIf", x, 2 * (w->axes - i), pair, fill);
        Value *y = NULL;
        for (int64_t k = 0; x && k < w->kernel[i]; k++) {
            Dim from = DIM(k * w->dilation[i]);
            Value *part = on_part(n, x, axis, from, dim_add(p, from, span), w->stride[i]);
            y = k ? on_binary(n, op, y, part) : part;
        }
        x = y;
    }
    return x;
}

/* Returns whether the padding is more than half a window, the most that torch has. */
static bool is_padded_much(const Window *w)
{
    for (int i = 0; i < w->axes; i++)
        if (w->before[i] > w->kernel[i] / 2)
            return true;
    return false;
}

/* Defines maxima and their indices in the whole tensor.  With storage_order 1 the indices count
 * along columns. */
static bool pool_with_places(OnnxNode *n, Value *x, const Window *w)
{
    Program *p = n->in->program;
    if (w->axes > 2 || !w->is_even || is_padded_much(w) || !type_is_static(x->type))
        return onnx_unsupported(
            n,
            "returns indices with uneven padding, over 3 axes or for symbolic sizes, which is not "
            "supported");
    OpId op = w->axes == 1 ? OP_MAX_POOL1D_WITH_INDICES : OP_MAX_POOL2D_WITH_INDICES;
    bool ceils = on_int(n, "ceil_mode", 0), is_by_column = on_int(n, "storage_order", 0);
    const Dim *d = x->type.dim;
    Dim dim[4] = {d[0], d[1], DIM(1), DIM(1)}, plane = d[2];
    Type type[2];
    for (int i = 0; i < w->axes; i++)
        dim[2 + i] = count_windows(n, w, i, d[2 + i]);
    type[0] = type_tensor(p, x->type.dtype, x->type.rank, dim);
    type[1] = type_tensor(p, ETC_I64, x->type.rank, dim);
    Node *m = op == OP_MAX_POOL1D_WITH_INDICES
                  ? build_given(n->in->graph, NULL, n->loc, op, type, n->in->diag, "vIIIIb", x, 1,
                                w->kernel, 1, w->stride, 1, w->before, 1, w->dilation, (int)ceils)
                  : build(n->in->graph, NULL, n->loc, op, n->in->diag, "vIIIIb", x, 2, w->kernel, 2,
                          w->stride, 2, w->before, 2, w->dilation, (int)ceils);
    Value *at = m ? m->out[1] : NULL;
    if (at && is_by_column && w->axes == 2) {
        Value *row = ON_BUILD(n, OP_FLOOR_DIVIDE_SCALAR, "vi", at, d[3].value);
        Value *column = ON_BUILD(n, OP_REMAINDER_SCALAR, "vi", at, d[3].value);
        at = on_binary(n, OP_ADD_TENSOR, on_scalar(n, OP_MUL_SCALAR, column, (double)d[2].value), row);
    }
    plane = w->axes == 2 ? dim_mul(p, d[2], d[3]) : plane;
    dim[2] = dim[3] = DIM(1);
    Value *first = on_arange(n, DIM(0), dim_mul(p, d[0], d[1]));
    first = on_scalar(n, OP_MUL_SCALAR, on_view(n, first, x->type.rank, dim), (double)plane.value);
    return m && on_define(n, 0, m->out[0]) && on_define(n, 1, on_binary(n, OP_ADD_TENSOR, at, first));
}

static Value *greatest(OnnxNode *n, Value *x, Window *w)
{
    if (w->axes == 3)
        return windowed(n, x, w, OP_MAXIMUM, -(double)INFINITY);
    if (!w->is_even || is_padded_much(w))
        x = padded(n, x, w, -(double)INFINITY);
    OpId op = w->axes == 1 ? OP_MAX_POOL1D : OP_MAX_POOL2D;
    return x ? ON_BUILD(n, op, "vIIIIb", x, w->axes, w->kernel, w->axes, w->stride, w->axes, w->before,
                        w->axes, w->dilation, (int)on_int(n, "ceil_mode", 0))
             : NULL;
}

bool onnx_max_pool(OnnxNode *n)
{
    Window w;
    Value *x = on_value(n, 0);
    if (!x || !read_pool(n, x, &w))
        return false;
    return on_wants(n, 1) ? pool_with_places(n, x, &w) : on_define(n, 0, greatest(n, x, &w));
}

Value *on_channels_first(OnnxNode *n, Value *x)
{
    int64_t order[MAX_RANK];
    int rank = x ? x->type.rank : 0;
    for (int i = 0; i < rank; i++)
        order[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
    return rank > 2 ? on_permute(n, x, order) : x;
}

Value *on_channels_last(OnnxNode *n, Value *x)
{
    int64_t order[MAX_RANK];
    int rank = x ? x->type.rank : 0;
    for (int i = 0; i < rank; i++)
        order[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    return rank > 2 ? on_permute(n, x, order) : x;
}

/* Takes maxima of bytes whose channels are last. */
bool onnx_nhwc_max_pool(OnnxNode *n)
{
    Window w;
    Value *bytes = on_value(n, 0), *x = on_channels_first(n, on_cast(n, bytes, ETC_F32));
    if (!x || !read_pool(n, x, &w))
        return false;
    return on_define(n, 0, on_cast(n, on_channels_last(n, greatest(n, x, &w)), bytes->type.dtype));
}

/* Puts elements at the given indices.  All other elements are 0. */
bool onnx_max_unpool(OnnxNode *n)
{
    Window w;
    Dim dim[MAX_RANK], want[MAX_RANK], all = DIM(1);
    int count = 0;
    int64_t pair[2 * MAX_SPACE] = {0};
    Program *p = n->in->program;
    Value *x = on_value(n, 0), *at = on_value(n, 1);
    if (!x || !at || !read_pool(n, x, &w) || (on_has(n, 2) && !on_dims(n, 2, want, &count)))
        return false;
    if (!type_is_static(x->type) || (on_has(n, 2) && count != x->type.rank))
        return onnx_unsupported(n, "has sizes known only at run time, or not a size for each axis");
    for (int i = 0; i < x->type.rank; i++) {
        int k = i - 2;
        dim[i] = x->type.dim[i];
        if (k >= 0)
            dim[i] = DIM((dim[i].value - 1) * w.stride[k] - w.before[k] - w.after[k] + w.kernel[k]);
        if (dim[i].value < 1)
            return onnx_wrong(n, "has more padding than elements");
        all = dim_mul(p, all, dim[i]);
    }
    Dim flat = DIM(1);
    for (int i = 0; i < x->type.rank; i++)
        flat = dim_mul(p, flat, x->type.dim[i]);
    Value *from = on_view(n, x, 1, &flat), *index = on_view(n, on_cast(n, at, ETC_I64), 1, &flat);
    Value *y = on_full(n, 1, &all, 0, x->type.dtype);
    y = from && index && y ? ON_BUILD(n, OP_SCATTER_SRC, "vivv", y, (int64_t)0, index, from) : NULL;
    y = on_view(n, y, x->type.rank, dim);
    for (int k = 0; k < w.axes && on_has(n, 2); k++) {
        if (want[2 + k].expr || want[2 + k].value < dim[2 + k].value || want[2 + k].value > INT32_MAX)
            return onnx_wrong(n, "has an output_shape that is less than what windows reach");
        pair[2 * (w.axes - 1 - k) + 1] = want[2 + k].value - dim[2 + k].value;
    }
    return on_define(n, 0, on_has(n, 2) && y ? ON_BUILD(n, OP_CONSTANT_PAD_ND, "vIf", y, 2 * w.axes, pair,
                                                        0.0)
                                             : y);
}

/* Returns the sums of windows, each divided by the number of elements of its window. */
static Value *means(OnnxNode *n, Value *x, const Window *w, bool counts)
{
    Value *y = windowed(n, x, w, OP_ADD_TENSOR, 0);
    for (int i = 0; y && i < w->axes; i++) {
        Dim size = x->type.dim[2 + i], dim[MAX_RANK];
        int64_t out = y->type.dim[2 + i].value, lo = counts ? -w->before[i] : 0;
        if (size.expr || y->type.dim[2 + i].expr || out > INT32_MAX) {
            onnx_unsupported(n, "averages over dilated windows, or over 3 axes of symbolic sizes");
            return NULL;
        }
        int64_t hi = size.value + (counts ? w->after[i] : 0);
        float *share = arena_bytes(n->in->program->arena, (size_t)out * sizeof *share + 1);
        for (int64_t j = 0; j < out; j++) {
            share[j] = 0;
            for (int64_t k = 0; k < w->kernel[i]; k++) {
                int64_t at = j * w->stride[i] - w->before[i] + k * w->dilation[i];
                share[j] += at >= lo && at < hi ? 1 : 0;
            }
        }
        for (int k = 0; k < w->axes; k++)
            dim[k] = DIM(k == i ? out : 1);
        y = on_binary(n, OP_DIV_TENSOR, y, on_cast(n, on_floats(n, w->axes, dim, share),
                                                   x->type.dtype));
    }
    return y;
}

/* Returns |x|^p, whose sums over windows are those of a norm. */
static Value *power_of(OnnxNode *n, Value *x, int64_t p)
{
    x = p == 2 ? on_binary(n, OP_MUL_TENSOR, x, x) : on_unary(n, OP_ABS, x);
    return p < 3 || !x ? x : ON_BUILD(n, OP_POW_TENSOR_SCALAR, "vi", x, p);
}

static Value *root_of(OnnxNode *n, Value *x, int64_t p)
{
    if (p < 3)
        return p == 2 ? on_unary(n, OP_SQRT, x) : x;
    return x ? ON_BUILD(n, OP_POW_TENSOR_SCALAR, "vf", x, 1.0 / (double)p) : NULL;
}

static bool read_power(OnnxNode *n, int64_t *p)
{
    *p = on_int(n, "p", 2);
    return *p >= 1 && *p <= 64 ? true : onnx_unsupported(n, "has a norm of an order beyond 1 to 64");
}

bool onnx_lp_pool(OnnxNode *n)
{
    Window w;
    int64_t p;
    Value *x = on_value(n, 0);
    if (!x || !read_pool(n, x, &w) || !read_power(n, &p))
        return false;
    return on_define(n, 0, root_of(n, windowed(n, power_of(n, x, p), &w, OP_ADD_TENSOR, 0), p));
}

bool onnx_global_lp_pool(OnnxNode *n)
{
    int64_t p;
    Value *x = on_value(n, 0), *y;
    if (!x || !read_power(n, &p))
        return false;
    y = power_of(n, x, p);
    for (int i = 2; i < x->type.rank; i++)
        y = on_sum(n, OP_SUM_DIM, y, i, true);
    return on_define(n, 0, root_of(n, y, p));
}

static Value *averaged(OnnxNode *n, Value *x, const Window *w, bool counts)
{
    OpId op = w->axes == 1 ? OP_AVG_POOL1D : OP_AVG_POOL2D;
    return x ? ON_BUILD(n, op, "vIIIbb", x, w->axes, w->kernel, w->axes, w->stride, w->axes, w->before,
                        (int)on_int(n, "ceil_mode", 0), (int)counts)
             : NULL;
}

/* Builds an average pool.  If the padding is uneven, x is padded first, and averages are divided by
 * the share of elements that are no padding. */
Value *on_average_pool(OnnxNode *n, Value *x)
{
    Window w;
    Dim dim[MAX_RANK];
    bool counts = on_int(n, "count_include_pad", 0);
    if (!x || !read_pool(n, x, &w))
        return NULL;
    for (int i = 0; i < w.axes; i++)
        if (w.dilation[i] != 1 || w.axes == 3)
            return means(n, x, &w, counts);
    if (w.is_even && !is_padded_much(&w))
        return averaged(n, x, &w, counts);
    Window same = w;
    Value *y = averaged(n, padded(n, x, &w, 0), &w, true);
    if (!y || counts)
        return y;
    for (int i = 0; i < x->type.rank; i++)
        dim[i] = i < 2 ? DIM(1) : x->type.dim[i];
    Value *ones = ON_BUILD(n, OP_FULL, "Dft", x->type.rank, dim, 1.0, x->type.dtype);
    return on_binary(n, OP_DIV_TENSOR, y, averaged(n, padded(n, ones, &same, 0), &same, true));
}

bool onnx_average_pool(OnnxNode *n)
{
    return on_define(n, 0, on_average_pool(n, on_value(n, 0)));
}

bool onnx_global_pool(OnnxNode *n)
{
    int64_t axis[MAX_RANK];
    Value *x = on_value(n, 0);
    for (int i = 2; x && i < x->type.rank; i++)
        axis[i - 2] = i;
    return x && on_define(n, 0, ON_BUILD(n, n->row->op, "vIb", x, x->type.rank - 2, axis, true));
}

/* Divides by a power of the sum of squares of neighbouring channels.  A pool computes this sum,
 * with the channels as a spatial axis. */
bool onnx_lrn(OnnxNode *n)
{
    int64_t size = on_int(n, "size", 1);
    double alpha = on_float(n, "alpha", 0.0001), beta = on_float(n, "beta", 0.75);
    Value *x = on_value(n, 0);
    if (!x || x->type.rank < 3 || size < 1 || size > 1 << 20)
        return onnx_wrong(n, "expects [n, c, ...] and a size from 1 on");
    Program *p = n->in->program;
    Dim space = DIM(1);
    for (int i = 2; i < x->type.rank; i++)
        space = dim_mul(p, space, x->type.dim[i]);
    Dim flat[4] = {x->type.dim[0], DIM(1), x->type.dim[1], space};
    Window w = {.axes = 2, .kernel = {size, 1}, .stride = {1, 1}, .dilation = {1, 1},
                .before = {(size - 1) / 2, 0}, .after = {size / 2, 0}};
    Value *square = ON_BUILD(n, OP_MUL_TENSOR, "vv", x, x);
    Value *y = averaged(n, padded(n, on_view(n, square, 4, flat), &w, 0), &w, true);
    y = on_view(n, y, x->type.rank, x->type.dim);
    y = y ? ON_BUILD(n, OP_MUL_SCALAR, "vf", y, alpha) : NULL;
    y = y ? ON_BUILD(n, OP_ADD_SCALAR, "vf", y, on_float(n, "bias", 1)) : NULL;
    y = y ? ON_BUILD(n, OP_POW_TENSOR_SCALAR, "vf", y, beta) : NULL;
    return y && on_define(n, 0, ON_BUILD(n, OP_DIV_TENSOR, "vv", x, y));
}

/* -- norms ------------------------------------------------------------------------------------- */

bool onnx_batch_norm(OnnxNode *n)
{
    Value *v[5];
    for (int i = 0; i < 5; i++)
        if (!(v[i] = on_value(n, i)))
            return false;
    if (on_int(n, "training_mode", 0) || on_wants(n, 1))
        return onnx_unsupported(n, "computes statistics: export the model in eval mode");
    if (on_int(n, "spatial", 1) == 0)
        return onnx_unsupported(n, "has statistics for each element");
    return on_define(n, 0, ON_BUILD(n, OP_BATCH_NORM, "vvvvvbffb", v[0], v[1], v[2], v[3], v[4], false,
                                    0.1, on_float(n, "epsilon", 1e-5), false));
}

static bool grouped(OnnxNode *n, int64_t groups, Value *scale, Value *shift)
{
    Value *x = on_value(n, 0);
    return x && scale && shift &&
           on_define(n, 0, ON_BUILD(n, OP_GROUP_NORM, "vivvf", x, groups, scale, shift,
                                    on_float(n, "epsilon", 1e-5)));
}

bool onnx_instance_norm(OnnxNode *n)
{
    Value *scale = on_value(n, 1);
    if (scale && (scale->type.rank != 1 || scale->type.dim[0].expr))
        return onnx_unsupported(n, "has a symbolic number of channels");
    return scale && grouped(n, scale->type.dim[0].value, scale, on_value(n, 2));
}

/* Returns input i, a number for each group, as a number for each channel. */
static Value *for_channels(OnnxNode *n, int i, int64_t groups)
{
    Value *x = on_value(n, 0), *v = on_value(n, i);
    if (!x || !v || x->type.rank < 2 || v->type.rank != 1 || groups < 1)
        return NULL;
    Dim each = dim_floordiv(n->in->program, x->type.dim[1], DIM(groups));
    Dim both[2] = {v->type.dim[0], each};
    v = on_insert(n, v, 1);
    v = v ? ON_BUILD(n, OP_EXPAND, "vD", v, 2, both) : NULL;
    return on_view(n, v, 1, x->type.dim + 1);
}

/* Until opset 20 each group has one scale and one shift. */
bool onnx_group_norm(OnnxNode *n)
{
    int64_t groups = on_int(n, "num_groups", 1);
    bool is_old = n->in->opset < 21;
    Value *scale = is_old ? for_channels(n, 1, groups) : on_value(n, 1);
    return grouped(n, groups, scale, is_old ? for_channels(n, 2, groups) : on_value(n, 2));
}

/* Returns input i, the factors of a norm, with the sizes of the axes of x that are normalized.  In
 * the file it may have fewer axes, or axes of size 1. */
static Value *factor(OnnxNode *n, int i, const Value *x, int axis)
{
    Value *v = on_has(n, i) ? on_value(n, i) : NULL;
    int rank = x->type.rank - axis;
    bool is_same = v && v->type.rank == rank;
    for (int k = 0; is_same && k < rank; k++)
        is_same = dim_equal(v->type.dim[k], x->type.dim[axis + k]);
    if (!v || is_same)
        return v;
    if (v->type.rank > rank)
        return onnx_unsupported(n, "has factors of more axes than are normalized"), NULL;
    return ON_BUILD(n, OP_EXPAND, "vD", v, rank, x->type.dim + axis);
}

bool onnx_layer_norm(OnnxNode *n)
{
    int axis;
    Value *x = on_value(n, 0);
    if (!x || !on_axis(n, on_int(n, "axis", -1), x->type.rank, &axis))
        return false;
    Value *scale = factor(n, 1, x, axis), *shift = factor(n, 2, x, axis);
    int rank = x->type.rank - axis;
    double eps = on_float(n, "epsilon", 1e-5);
    if (n->failed)
        return false;
    if (n->row->op == OP_RMS_NORM)
        return on_define(n, 0, ON_BUILD(n, OP_RMS_NORM, "vDvf", x, rank, x->type.dim + axis, scale, eps));
    if (on_wants(n, 1) || on_wants(n, 2)) {
        Node *m = build(n->in->graph, NULL, n->loc, OP_NATIVE_LAYER_NORM, n->in->diag, "vDvvf", x, rank,
                        x->type.dim + axis, scale, shift, eps);
        return m && on_define(n, 0, m->out[0]) && on_define(n, 1, m->out[1]) &&
               on_define(n, 2, m->out[2]);
    }
    return on_define(n, 0, ON_BUILD(n, OP_LAYER_NORM, "vDvvf", x, rank, x->type.dim + axis, scale, shift,
                                    eps));
}
