/* image.c -- XNNPACK nodes of convolutions, pools and resizes. */
#include "partition/xnnpack/rows.h"
#include <math.h>
#include <string.h>

/* -- convolution ----------------------------------------------------------------------------- */

/* A convolution of images: of.pad is the padding before an axis, `after` the padding after it. */
typedef struct Filter {
    Conv of;
    int64_t after[2], in, out;
} Filter;

/* The runtime doubles the sizes, strides and paddings of a kernel, and ceil_mode adds to paddings.
 */
enum { MOST_FIELD = 1 << 19 };

static bool are_fields(const int64_t v[VIEW_AXES])
{
    return v[0] <= MOST_FIELD && v[1] <= MOST_FIELD;
}

static bool read_conv(const Node *n, Filter *c)
{
    Conv *of = &c->of;
    if (!conv_read(n, of) || of->x->type.rank != of->axes + 2 || of->groups < 1 ||
        !conv_as_image(of))
        return false;
    memcpy(c->after, of->pad, sizeof c->after);
    c->in = xnn_size(of->x, 1);
    c->out = xnn_size(n->out[0], 1);
    return are_fields(of->stride) && are_fields(of->pad) && are_fields(of->dilation) &&
           are_fields(of->out_pad);
}

/* Returns whether t is an image, or a signal that can be reshaped to an image and back. */
static bool fits_image(Type t, Refusal *r)
{
    return t.rank == 4 || xnn_symbolic_sizes(t, 0) < 2 ||
           xnn_no(r, "both the batch and the length of its signals are known only at run time",
                  "export with one of them fixed");
}

bool xnn_takes_conv(const Node *n, Refusal *r)
{
    Filter c;
    const Value *b = arg_value(n, "bias");
    if (!xnn_is_weight(arg_value(n, "weight")) || (b && !xnn_is_weight(b)))
        return xnn_no(r, "its filter or bias is not a constant",
                      "make both parameters or buffers that calls do not write");
    if (!read_conv(n, &c))
        return xnn_no(r, "it is not over one or two axes, with strides and paddings up to 2^19",
                      "use a convolution over one or two axes");
    if (!fits_image(c.of.x->type, r))
        return false;
    return (c.of.pad[0] >= 0 && c.of.pad[1] >= 0) || xnn_no(r, "its padding is negative",
                                                      "slice instead");
}

/* Returns a depthwise convolution whose kernel has one element. */
static Filter each_channel(int64_t channels, int64_t down, int64_t right)
{
    return (Filter){.of = {.dilation = {1, 1}, .groups = channels, .kernel = {1, 1},
                           .stride = {down, right}},
                    .in = channels, .out = channels};
}

static bool is_depthwise(const Filter *c)
{
    return !c->of.is_transposed && c->of.groups > 1 && c->of.groups == c->in;
}

/* Returns the weights in XNNPACK's layout.  [out, in/g, h, w] becomes [out, h, w, in/g], or [1, h,
 * w, out] if the convolution is depthwise.  [in, out/g, h, w] of a transposed one becomes [out, h,
 * w, in/g]. */
static XWeight filter_data(Lower *w, const Node *n, const Filter *c, uint32_t x)
{
    XWeight weight = x_weight(w, arg_value(n, "weight"), x, false, 0);
    uint32_t h = (uint32_t)c->of.kernel[0], k = (uint32_t)c->of.kernel[1];
    uint32_t g = (uint32_t)c->of.groups, in = (uint32_t)c->in / g, out = (uint32_t)c->out;
    if (c->of.is_transposed) {
        uint32_t from[5] = {g, in, out / g, h, k};
        weight.data = x_permuted(w, weight.data, weight.size, 5, from,
                                 (const int[]){0, 2, 3, 4, 1});
    } else if (is_depthwise(c)) {
        uint32_t from[4] = {out, 1, h, k};
        weight.data = x_permuted(w, weight.data, weight.size, 4, from, (const int[]){1, 2, 3, 0});
    } else if (in > 1 && h * k > 1) {
        uint32_t from[4] = {out, in, h, k};
        weight.data = x_permuted(w, weight.data, weight.size, 4, from, (const int[]){0, 2, 3, 1});
    }
    return weight;
}

static uint32_t filter_of(Lower *w, const XWeight *weight, const Filter *c)
{
    uint32_t h = (uint32_t)c->of.kernel[0], k = (uint32_t)c->of.kernel[1], out = (uint32_t)c->out;
    uint32_t dim[4] = {out, h, k, (uint32_t)(c->in / c->of.groups)}, depthwise[4] = {1, h, k, out};
    bool last = is_depthwise(c);
    return x_weight_value(w, weight, 4, last ? depthwise : dim, last ? 3 : 0);
}

static uint32_t convolved(Lower *w, const Filter *c, uint32_t in, uint32_t filter, uint32_t bias,
                          uint32_t out)
{
    const int64_t v[] = {c->of.pad[0], c->of.pad[1], c->after[0], c->after[1], c->of.kernel[0],
                         c->of.kernel[1], c->of.stride[0], c->of.stride[1], c->of.dilation[0],
                         c->of.dilation[1], c->in / c->of.groups, c->out / c->of.groups,
                         c->of.groups, c->of.out_pad[0], c->of.out_pad[1]};
    static const int slot[] = {0, 3, 2, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    XnnKind kind = c->of.is_transposed ? XNN_CONV_TRANSPOSE
                   : is_depthwise(c)   ? XNN_DEPTHWISE
                                       : XNN_CONV;
    XNode *x = x_node(w, kind, out);
    for (int i = 0; i < 15; i++)
        x_u32(x, slot[i], (uint32_t)v[i]);
    x_id(x, 15, in);
    x_id(x, 16, filter);
    x_id(x, 17, bias);
    x_id(x, 18, out);
    x_range(x, -INFINITY, INFINITY);
    return out;
}

/* -- depthwise convolutions of large windows -------------------------------------------------- */

/* The number of elements of the largest window for which XNNPACK has a depthwise kernel.  A window
 * of 10 elements takes as long as one of 25. */
enum { TAPS = 25, FEW_TAPS = 9 };

typedef struct Rows {
    int64_t first, step, n;
} Rows;

/* Returns the number of parts into which a larger window is cut along *axis, which is the height
 * or, if that is 1, the width.  1: the window stays whole. */
static int64_t parts_of(const Filter *c, int *axis)
{
    *axis = c->of.kernel[0] == 1;
    int64_t taps = c->of.kernel[0] * c->of.kernel[1], across = c->of.kernel[1 - *axis];
    if (!is_depthwise(c) || taps <= TAPS || across > TAPS)
        return 1;
    int64_t most = TAPS / across;
    return (c->of.kernel[*axis] + most - 1) / most;
}

/* Returns part i of n of the taps along an axis.  Either each part has the most rows and the
 * first one has the rest, or, if the image has few rows, a part has every nth row. */
static Rows rows_of(const Filter *c, int axis, int64_t i, int64_t n)
{
    int64_t rows = c->of.kernel[axis], across = c->of.kernel[1 - axis], most = TAPS / across;
    int64_t left = rows - (n - 1) * most;
    if (left * across > FEW_TAPS)
        return (Rows){i, n, (rows - 1 - i) / n + 1};
    return i ? (Rows){left + i - 1, n - 1, most} : (Rows){0, 1, left};
}

/* Returns the convolution of some rows of the window.  Its dilation is multiplied by the distance
 * of the rows, and its padding is less by the rows that it leaves out. */
static Filter part_of(const Filter *c, int axis, Rows r)
{
    Filter part = *c;
    int64_t behind = c->of.kernel[axis] - 1 - (r.first + (r.n - 1) * r.step);
    part.of.kernel[axis] = r.n;
    part.of.pad[axis] -= r.first * c->of.dilation[axis];
    part.after[axis] -= behind * c->of.dilation[axis];
    part.of.dilation[axis] *= r.step;
    return part;
}

static int64_t taken(int64_t *pad)
{
    int64_t n = *pad < 0 ? -*pad : 0;
    *pad += n;
    return n;
}

/* Returns whether the windows of the part contain nothing but padding, on images of this size. */
static bool is_outside(const Filter *part, int axis, int64_t size)
{
    int64_t before = part->of.pad[axis], after = part->after[axis];
    return (before < 0 ? before : 0) + (after < 0 ? after : 0) + size <= 0;
}

/* Returns the image without the rows that negative padding removes. */
static uint32_t inside(Lower *w, uint32_t in, Filter *part, int axis)
{
    int64_t before = taken(&part->of.pad[axis]), after = taken(&part->after[axis]);
    int64_t size = w->x.value[in].dim[1 + axis];
    return before + after ? x_slice(w, in, 1 + axis, before, size - before - after) : in;
}

/* Copies the rows of the part from a filter [1, h, w, channels]. */
static XWeight part_data(Lower *w, const XWeight *whole, const Filter *c, int axis, Rows r)
{
    int64_t row = c->out * (axis ? 1 : c->of.kernel[1]);
    size_t bytes = (size_t)row * whole->size;
    uint8_t *to = arena_alloc(w->body->program->arena, (size_t)r.n + 1, bytes);
    const uint8_t *from = whole->data;
    for (int64_t i = 0; i < r.n; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)(r.first + i * r.step) * bytes, bytes);
    XWeight data = *whole;
    data.data = to;
    return data;
}

/* Computes a convolution as a sum of convolutions with smaller windows.  With more than TAPS
 * elements XNNPACK would multiply matrices of one column each, which is many times slower.  At
 * least one of the windows contains elements of the image. */
static uint32_t in_parts(Lower *w, const Filter *c, const XWeight *weight, uint32_t in,
                         uint32_t bias, const XValue *image, int axis, int64_t n)
{
    uint32_t sum = XNN_NONE;
    for (int64_t i = 0; i < n; i++) {
        Rows r = rows_of(c, axis, i, n);
        Filter part = part_of(c, axis, r);
        if (is_outside(&part, axis, w->x.value[in].dim[1 + axis]))
            continue;
        XWeight rows = part_data(w, weight, c, axis, r);
        uint32_t filter = filter_of(w, &rows, &part), from = inside(w, in, &part, axis);
        uint32_t y = convolved(w, &part, from, filter, bias, x_sized(w, image));
        bias = XNN_NONE;
        sum = sum == XNN_NONE ? y : x_binary(w, XNN_ADD, sum, y, x_sized(w, image));
    }
    return sum;
}

/* Returns the sizes of an image.  A signal [n, length, channels] is an image of height 1. */
static XValue image_sizes(const XValue *v)
{
    return v->rank == 4 ? *v
                        : (XValue){.rank = 4,
                                   .dim = {v->dim[0], 1, v->dim[1], v->dim[2]},
                                   .is_symbolic = {v->is_symbolic[0], false, v->is_symbolic[1]}};
}

static uint32_t as_image(Lower *w, uint32_t id)
{
    XValue image = image_sizes(&w->x.value[id]);
    return w->x.value[id].rank == 4 ? id : x_reshape(w, id, &image);
}

void xnn_lower_conv(Lower *w, const Node *n)
{
    Filter c;
    int axis;
    read_conv(n, &c);
    const Value *v = n->out[0];
    uint32_t in = as_image(w, x_use(w, arg_value(n, "input"), CHANNELS_LAST)), out;
    XWeight weight = filter_data(w, n, &c, in);
    XValue last = x_sizes(v->type, CHANNELS_LAST), image = image_sizes(&last);
    bool may_part = x_is_real(weight.dtype) && !xnn_symbolic_sizes(c.of.x->type, 2);
    int64_t parts = may_part ? parts_of(&c, &axis) : 1;
    if (parts > 1) {
        uint32_t bias = x_bias(w, arg_value(n, "bias"), in, XNN_NONE);
        out = in_parts(w, &c, &weight, in, bias, &image, axis, parts);
    } else {
        uint32_t filter = filter_of(w, &weight, &c);
        uint32_t bias = x_bias(w, arg_value(n, "bias"), in, filter);
        out = convolved(w, &c, in, filter, bias, x_sized(w, &image));
    }
    if (v->type.rank == 3)
        out = x_reshape(w, out, &last);
    x_define(w, v, CHANNELS_LAST, out);
}

/* -- batch norm in f16 ------------------------------------------------------------------------ */

/* Takes batch norms of halves; those of f32 were folded before. */
bool xnn_takes_batch_norm(const Node *n, Refusal *r)
{
    Norm v;
    bool is_read = norm_read(n, &v);
    const Value *of[] = {v.weight, v.bias, v.mean, v.var};
    for (int i = 0; i < 4; i++)
        if (of[i] && !value_is_known(of[i]))
            return xnn_no(r, "its weight, bias or statistics are not constants",
                          "make them parameters or buffers that calls do not write");
    if (!is_read || (v.x->type.rank != 3 && v.x->type.rank != 4) || v.eps <= 0)
        return xnn_no(r, "it is neither over signals nor over images", NULL);
    return fits_image(v.x->type, r);
}

/* Computes x * scale + shift as a depthwise convolution of one element, whose filter is in f32. */
void xnn_lower_batch_norm(Lower *w, const Node *n)
{
    Norm v;
    norm_read(n, &v);
    uint32_t channels = (uint32_t)xnn_size(v.x, 1);
    const float *by = v.weight ? x_floats(w, v.weight) : NULL;
    const float *plus = v.bias ? x_floats(w, v.bias) : NULL;
    const float *mean = x_floats(w, v.mean), *var = x_floats(w, v.var);
    float *scale = NEW(w->body->program->arena, float, channels + 1);
    float *shift = NEW(w->body->program->arena, float, channels + 1);
    for (uint32_t i = 0; i < channels; i++) {
        double s = (by ? (double)by[i] : 1) / sqrt((double)var[i] + v.eps);
        scale[i] = (float)s;
        shift[i] = (float)((plus ? (double)plus[i] : 0) - s * (double)mean[i]);
    }
    Filter c = each_channel(channels, 1, 1);
    uint32_t last = x_use(w, v.x, CHANNELS_LAST), in = as_image(w, last);
    uint32_t filter = x_constant(w, "scale", "", scale, XNN_F32, 4,
                                 (const uint32_t[]){1, 1, 1, channels});
    uint32_t bias = x_constant(w, "shift", "", shift, XNN_F32, 1, &channels);
    XValue sizes = w->x.value[last];
    uint32_t out = convolved(w, &c, in, filter, bias, x_like(w, in));
    x_define(w, n->out[0], CHANNELS_LAST, x_reshape(w, out, &sizes));
}

/* -- pools ----------------------------------------------------------------------------------- */

/* A pool: of.pad is the padding before an axis, `after` the padding after it, which with
 * ceil_mode makes the last window whole. */
typedef struct Windows {
    Pool of;
    int64_t after[2];
} Windows;

static void pad_after(const Node *n, Windows *w)
{
    const Pool *p = &w->of;
    memcpy(w->after, p->pad, sizeof w->after);
    for (int i = 0; i < 2 && p->rounds_up; i++) {
        int64_t in = xnn_size(p->x, i + 2), out = xnn_size(n->out[0], i + 2);
        int64_t reach = access_window(out, p->kernel[i], p->stride[i], p->dilation[i]);
        w->after[i] = reach - in - p->pad[i] > p->pad[i] ? reach - in - p->pad[i] : p->pad[i];
    }
}

#define WHY_NO_POOL                                                                     \
    "it is not over two axes of four, with strides and paddings up to 2^19, or rounds " \
    "symbolic sizes up"

static bool read_pool(const Node *n, Windows *w)
{
    const Pool *p = &w->of;
    if (!pool_read(n, &w->of) || p->x->type.rank != 4 || !are_fields(p->kernel) ||
        !are_fields(p->pad) || !are_fields(p->dilation) || !are_fields(p->stride) ||
        (p->rounds_up && xnn_symbolic_sizes(p->x->type, 2)))
        return false;
    pad_after(n, w);
    return true;
}

bool xnn_takes_max_pool(const Node *n, Refusal *r)
{
    Windows p;
    if (!read_pool(n, &p))
        return xnn_no(r, WHY_NO_POOL,
                      "give the input the form [n, c, h, w]");
    return p.of.kernel[0] * p.of.kernel[1] > 1 ||
           xnn_no(r, "its window is one element", "slice with steps instead");
}

bool xnn_takes_avg_pool(const Node *n, Refusal *r)
{
    Windows p;
    if (!read_pool(n, &p))
        return xnn_no(r, WHY_NO_POOL,
                      "give the input the form [n, c, h, w]");
    if (p.of.divisor)
        return xnn_no(r, "its divisor is overridden",
                      "scale after a pool without divisor_override");
    if (p.after[0] != p.of.pad[0] || p.after[1] != p.of.pad[1])
        return xnn_no(r, "its size is rounded up",
                      "pad the input so that windows fit, with ceil_mode=False");
    return true;
}

static void pool(Lower *w, XnnKind kind, const Windows *p, uint32_t in, uint32_t out)
{
    XNode *x = x_node(w, kind, out);
    const int64_t v[] = {p->of.pad[0], p->of.pad[1], p->after[0], p->after[1], p->of.kernel[0],
                         p->of.kernel[1], p->of.stride[0], p->of.stride[1], p->of.dilation[0],
                         p->of.dilation[1]};
    const int slot[] = {0, 3, 2, 1, 4, 5, 6, 7, 8, 9};
    for (int i = 0; i < 10; i++)
        x_u32(x, slot[i], (uint32_t)v[i]);
    x_id(x, 10, in);
    x_id(x, 11, out);
    x_range(x, -INFINITY, INFINITY);
}

void xnn_lower_max_pool(Lower *w, const Node *n)
{
    Windows p;
    read_pool(n, &p);
    uint32_t in = x_use(w, arg_value(n, "self"), CHANNELS_LAST);
    pool(w, XNN_MAX_POOL, &p, in, x_result(w, n->out[0], CHANNELS_LAST));
}

/* Lowers a pool with a window of one element, which takes every stride-th element.  XNNPACK has no
 * such pool, but a convolution does the same. */
static void steps(Lower *w, const Node *n, const Windows *p, uint32_t in)
{
    uint32_t channels = (uint32_t)xnn_size(p->of.x, 1);
    Filter c = each_channel(channels, p->of.stride[0], p->of.stride[1]);
    w->real = XNN_F32; /* filters are in f32, also for f16 */
    uint32_t filter = x_filled(w, 1, 4, (const uint32_t[]){1, 1, 1, channels});
    convolved(w, &c, in, filter, XNN_NONE, x_result(w, n->out[0], CHANNELS_LAST));
}

/* XNNPACK divides by the number of elements of the image under the window.  If the padding counts
 * too, a node adds it to the image first. */
void xnn_lower_avg_pool(Lower *w, const Node *n)
{
    Windows p;
    read_pool(n, &p);
    uint32_t in = x_use(w, arg_value(n, "self"), CHANNELS_LAST);
    if (p.of.kernel[0] * p.of.kernel[1] == 1) {
        steps(w, n, &p, in);
        return;
    }
    if (p.of.counts_pad && (p.of.pad[0] || p.of.pad[1])) {
        uint32_t pad[4] = {0, (uint32_t)p.of.pad[0], (uint32_t)p.of.pad[1], 0};
        in = x_padded(w, in, pad, pad, 0);
        memset(p.of.pad, 0, sizeof p.of.pad);
        memset(p.after, 0, sizeof p.after);
    }
    pool(w, XNN_AVG_POOL, &p, in, x_result(w, n->out[0], CHANNELS_LAST));
}

/* -- the largest of an image ------------------------------------------------------------------- */

bool xnn_takes_amax(const Node *n, Refusal *r)
{
    Reduce a;
    return (reduce_read(n, &a) && reduce_is_space(&a) &&
            xnn_size(a.x, 2) * xnn_size(a.x, 3) > 1) ||
           xnn_no(r, "it is not over the space of [n, c, h, w]", "take it over both h and w");
}

/* Lowers a maximum over an image as a pool whose window is the image. */
void xnn_lower_amax(Lower *w, const Node *n)
{
    const Value *x = arg_value(n, "self");
    Windows p = {.of = {.kernel = {xnn_size(x, 2), xnn_size(x, 3)}, .stride = {1, 1},
                        .dilation = {1, 1}}};
    uint32_t in = x_use(w, x, CHANNELS_LAST);
    XValue v = w->x.value[in];
    v.dim[1] = v.dim[2] = 1;
    uint32_t out = x_sized(w, &v);
    pool(w, XNN_MAX_POOL, &p, in, out);
    if (arg_bool(n, "keepdim"))
        x_define(w, n->out[0], CHANNELS_LAST, out);
    else
        x_define_reshaped(w, n->out[0], out);
}

/* -- resizing -------------------------------------------------------------------------------- */

/* Returns whether the given factors equal the ratios of the sizes.  Torch computes positions from
 * the factors, XNNPACK from the sizes. */
static bool factors_give_sizes(const Resize *z, const Node *n)
{
    bool ok = true;
    for (int i = 0; i < 2; i++)
        ok = ok && (z->factor[i] == 0 || (double)xnn_size(z->x, 2 + i) * z->factor[i] ==
                                             (double)xnn_size(n->out[0], 2 + i));
    return ok;
}

bool xnn_takes_bilinear(const Node *n, Refusal *r)
{
    Resize z;
    if (!resize_read(n, &z) || (!z.aligns_corners && !factors_give_sizes(&z, n)))
        return xnn_no(r, "its factors do not give whole sizes", "give the output's size");
    return z.x->type.rank == 4 || xnn_no(r, "it is not over two axes of four", NULL);
}

void xnn_lower_bilinear(Lower *w, const Node *n)
{
    uint32_t in = x_use(w, arg_value(n, "input"), CHANNELS_LAST),
             out = x_result(w, n->out[0], CHANNELS_LAST);
    XNode *x = x_node(w, XNN_RESIZE, out);
    x_u32(x, 0, (uint32_t)xnn_size(n->out[0], 2));
    x_u32(x, 1, (uint32_t)xnn_size(n->out[0], 3));
    x_id(x, 2, in);
    x_id(x, 3, out);
    x_u32(x, 4, arg_bool(n, "align_corners") ? FLAG_ALIGN_CORNERS : 0);
}

/* Returns whether all elements along the axis are repeated equally often.  Torch finds the nearest
 * element with floats, so rounding could make some of them occur more often. */
static bool repeats_evenly(const Node *n, int axis)
{
    int64_t in = xnn_size(arg_value(n, "input"), axis), out = xnn_size(n->out[0], axis),
            by = out / in;
    float step = (float)in / (float)out;
    if (by * in != out)
        return false;
    for (int64_t i = 0; i < out; i++)
        if ((int64_t)((float)i * step) != i / by)
            return false;
    return true;
}

bool xnn_takes_nearest(const Node *n, Refusal *r)
{
    Resize z;
    if (arg_value(n, "input")->type.rank != 4)
        return xnn_no(r, "it is not over two axes of four", NULL);
    return (resize_read(n, &z) && factors_give_sizes(&z, n) && repeats_evenly(n, 2) &&
            repeats_evenly(n, 3)) ||
           xnn_no(r, "its factors are not whole numbers", "scale by whole numbers");
}

/* Expands [n, h, 1, w, 1, c] to [n, h, factor, w, factor, c]. */
void xnn_lower_nearest(Lower *w, const Node *n)
{
    uint32_t in = x_use(w, arg_value(n, "input"), CHANNELS_LAST);
    XValue v = w->x.value[in], out = x_sizes(n->out[0]->type, CHANNELS_LAST);
    uint32_t times[6] = {1, 1, out.dim[1] / v.dim[1], 1, out.dim[2] / v.dim[2], 1};
    XValue apart = {.rank = 6,
                    .dim = {v.dim[0], v.dim[1], 1, v.dim[2], 1, v.dim[3]},
                    .is_symbolic = {v.is_symbolic[0]}};
    in = x_reshape(w, in, &apart);
    apart.dim[2] = times[2];
    apart.dim[4] = times[4];
    uint32_t whole = x_repeated(w, in, &apart, times);
    x_define(w, n->out[0], CHANNELS_LAST, x_reshape(w, whole, &out));
}
