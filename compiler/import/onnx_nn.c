/* onnx_nn.c -- ONNX operators of neural networks: convolutions, pools, norms, resizing. */
#include "compiler/import/onnx.h"
#include <math.h>
#include <string.h>

enum { MAX_SPACE = 3 };

/* A window over the last axes of x. */
typedef struct Window {
    int axes;
    int64_t kernel[MAX_SPACE], stride[MAX_SPACE], dilation[MAX_SPACE], before[MAX_SPACE],
        after[MAX_SPACE];
    bool is_even; /* as much padding behind as before */
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

/* SAME_UPPER and SAME_LOWER: the result has ceil(size / stride) elements. */
static bool same_pads(OnnxNode *n, const Value *x, Window *w, bool is_upper)
{
    for (int i = 0; i < w->axes; i++) {
        Dim size = x->type.dim[x->type.rank - w->axes + i];
        if (size.expr && w->stride[i] != 1)
            return onnx_unsupported(n, "pads by auto_pad an axis whose size calls decide");
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t out = size.expr ? 0 : (size.value + w->stride[i] - 1) / w->stride[i];
        int64_t all = size.expr ? reach - 1 : (out - 1) * w->stride[i] + reach - size.value;
        all = all < 0 ? 0 : all;
        w->before[i] = is_upper ? all / 2 : all - all / 2;
        w->after[i] = all - w->before[i];
    }
    return true;
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
    if (!strncmp(how, "SAME_", 5) && !same_pads(n, x, w, !strcmp(how, "SAME_UPPER")))
        return false;
    w->is_even = true;
    for (int i = 0; i < w->axes; i++)
        w->is_even = w->is_even && w->before[i] == w->after[i];
    return !n->failed;
}

/* x with the window's padding, which the window then lacks. */
static Value *padded(OnnxNode *n, Value *x, Window *w, double with)
{
    int64_t pair[2 * MAX_SPACE];
    bool any = false;
    for (int i = 0; i < w->axes; i++) {
        pair[2 * i] = w->before[w->axes - 1 - i];
        pair[2 * i + 1] = w->after[w->axes - 1 - i];
        any = any || pair[2 * i] || pair[2 * i + 1];
    }
    memset(w->before, 0, sizeof w->before);
    memset(w->after, 0, sizeof w->after);
    w->is_even = true;
    return !any || !x ? x : ON_BUILD(n, OP_CONSTANT_PAD_ND, "vIf", x, 2 * w->axes, pair, with);
}

/* -- convolutions ------------------------------------------------------------------------------ */

static bool read_filter(OnnxNode *n, const Value *x, const Value *filter, Window *w)
{
    w->axes = filter->type.rank - 2;
    for (int i = 0; i < w->axes && i < MAX_SPACE; i++) {
        if (filter->type.dim[2 + i].expr)
            return onnx_unsupported(n, "has a filter of open sizes");
        w->kernel[i] = filter->type.dim[2 + i].value;
    }
    return read_window(n, x, w);
}

bool onnx_conv(OnnxNode *n)
{
    Window w;
    static const int64_t none[MAX_SPACE] = {0};
    Value *x = on_value(n, 0), *filter = on_value(n, 1), *bias = on_has(n, 2) ? on_value(n, 2) : NULL;
    if (!x || !filter || n->failed || !read_filter(n, x, filter, &w))
        return false;
    x = w.is_even ? x : padded(n, x, &w, 0);
    return x && on_define(n, 0, ON_BUILD(n, OP_CONVOLUTION, "vvvIIIbIi", x, filter, bias, w.axes,
                                         w.stride, w.axes, w.before, w.axes, w.dilation, false,
                                         w.axes, none, on_int(n, "group", 1)));
}

/* Uneven padding is cut off behind; what output_shape asks for decides the padding. */
bool onnx_conv_transpose(OnnxNode *n)
{
    Window w;
    int64_t more[MAX_SPACE], shape[MAX_SPACE], none[MAX_SPACE] = {0};
    Value *x = on_value(n, 0), *filter = on_value(n, 1), *bias = on_has(n, 2) ? on_value(n, 2) : NULL;
    if (!x || !filter || n->failed || !read_filter(n, x, filter, &w) ||
        !window_ints(n, "output_padding", more, w.axes, 0))
        return false;
    if (on_ints(n, "output_shape", shape, MAX_SPACE) >= 0 ||
        strcmp(on_text(n, "auto_pad", "NOTSET"), "NOTSET") != 0)
        return onnx_unsupported(n, "has an output_shape or auto_pad");
    Value *y = ON_BUILD(n, OP_CONVOLUTION, "vvvIIIbIi", x, filter, bias, w.axes, w.stride, w.axes,
                        w.is_even ? w.before : none, w.axes, w.dilation, true, w.axes, more,
                        on_int(n, "group", 1));
    for (int i = 0; y && !w.is_even && i < w.axes; i++) {
        Dim end = dim_sub(n->in->program, y->type.dim[2 + i], DIM(w.after[i]));
        y = ON_BUILD(n, OP_SLICE, "viddi", y, (int64_t)2 + i, DIM(w.before[i]), end, (int64_t)1);
    }
    return on_define(n, 0, y);
}

/* -- pools ------------------------------------------------------------------------------------- */

static bool read_pool(OnnxNode *n, Value *x, Window *w)
{
    w->axes = x->type.rank - 2;
    if (w->axes < 1 || w->axes > 2)
        return onnx_unsupported(n, "pools over %d axes, expected 1 or 2", w->axes);
    int given = on_ints(n, "kernel_shape", w->kernel, MAX_SPACE);
    return given == w->axes ? read_window(n, x, w) : onnx_wrong(n, "has no kernel_shape of its axes");
}

/* torch pads by half a window at most. */
static bool is_padded_much(const Window *w)
{
    for (int i = 0; i < w->axes; i++)
        if (w->before[i] > w->kernel[i] / 2)
            return true;
    return false;
}

bool onnx_max_pool(OnnxNode *n)
{
    Window w;
    Value *x = on_value(n, 0);
    if (!x || !read_pool(n, x, &w))
        return false;
    if (on_wants(n, 1))
        return onnx_unsupported(n, "gives the places of its elements");
    if (!w.is_even || is_padded_much(&w))
        x = padded(n, x, &w, -(double)INFINITY);
    OpId op = w.axes == 1 ? OP_MAX_POOL1D : OP_MAX_POOL2D;
    return x && on_define(n, 0, ON_BUILD(n, op, "vIIIIb", x, w.axes, w.kernel, w.axes, w.stride, w.axes,
                                         w.before, w.axes, w.dilation,
                                         (int)on_int(n, "ceil_mode", 0)));
}

static Value *averaged(OnnxNode *n, Value *x, const Window *w, bool counts)
{
    OpId op = w->axes == 1 ? OP_AVG_POOL1D : OP_AVG_POOL2D;
    return x ? ON_BUILD(n, op, "vIIIbb", x, w->axes, w->kernel, w->axes, w->stride, w->axes, w->before,
                        (int)on_int(n, "ceil_mode", 0), (int)counts)
             : NULL;
}

/* Where the padding is uneven, sums over it are divided by the share of elements that are none. */
bool onnx_average_pool(OnnxNode *n)
{
    Window w;
    Dim dim[MAX_RANK];
    Value *x = on_value(n, 0);
    bool counts = on_int(n, "count_include_pad", 0);
    if (!x || !read_pool(n, x, &w))
        return false;
    for (int i = 0; i < w.axes; i++)
        if (w.dilation[i] != 1)
            return onnx_unsupported(n, "averages a dilated window");
    if (w.is_even && !is_padded_much(&w))
        return on_define(n, 0, averaged(n, x, &w, counts));
    Window same = w;
    Value *y = averaged(n, padded(n, x, &w, 0), &w, true);
    if (!y || counts)
        return on_define(n, 0, y);
    for (int i = 0; i < x->type.rank; i++)
        dim[i] = i < 2 ? DIM(1) : x->type.dim[i];
    Value *ones = ON_BUILD(n, OP_FULL, "Dft", x->type.rank, dim, 1.0, x->type.dtype);
    Value *share = averaged(n, padded(n, ones, &same, 0), &same, true);
    return share && on_define(n, 0, ON_BUILD(n, OP_DIV_TENSOR, "vv", y, share));
}

bool onnx_global_pool(OnnxNode *n)
{
    int64_t axis[MAX_RANK];
    Value *x = on_value(n, 0);
    for (int i = 2; x && i < x->type.rank; i++)
        axis[i - 2] = i;
    return x && on_define(n, 0, ON_BUILD(n, n->row->op, "vIb", x, x->type.rank - 2, axis, true));
}

/* Sums of squares over channels that are near, by a pool over channels as an axis of space. */
bool onnx_lrn(OnnxNode *n)
{
    int64_t size = on_int(n, "size", 1);
    double alpha = on_float(n, "alpha", 0.0001), beta = on_float(n, "beta", 0.75);
    Value *x = on_value(n, 0);
    if (!x || x->type.rank < 3 || size < 1 || size > 1 << 20)
        return onnx_wrong(n, "wants [n, c, ...] and a size from 1 on");
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

static bool grouped(OnnxNode *n, int64_t groups)
{
    Value *x = on_value(n, 0), *scale = on_value(n, 1), *shift = on_value(n, 2);
    return x && scale && shift &&
           on_define(n, 0, ON_BUILD(n, OP_GROUP_NORM, "vivvf", x, groups, scale, shift,
                                    on_float(n, "epsilon", 1e-5)));
}

bool onnx_instance_norm(OnnxNode *n)
{
    Value *scale = on_value(n, 1);
    if (scale && (scale->type.rank != 1 || scale->type.dim[0].expr))
        return onnx_unsupported(n, "has an open number of channels");
    return scale && grouped(n, scale->type.dim[0].value);
}

bool onnx_group_norm(OnnxNode *n)
{
    return grouped(n, on_int(n, "num_groups", 1));
}

/* Factors may have fewer axes than are normalized. */
static Value *factor(OnnxNode *n, int i, const Value *x, int axis)
{
    Value *v = on_has(n, i) ? on_value(n, i) : NULL;
    int rank = x->type.rank - axis;
    if (!v || v->type.rank == rank)
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

/* -- resizing ---------------------------------------------------------------------------------- */

typedef struct Axis {
    int64_t in, out;
    double scale;
} Axis;

typedef struct Sampling {
    const char *mode, *transform, *nearest;
    double cubic_a;
    bool excludes;
} Sampling;

/* Where in x the element i of the result lies. */
static double source(const Sampling *s, Axis a, int64_t i)
{
    const char *t = s->transform;
    if (!strcmp(t, "align_corners")) {
        double whole = (double)a.in * a.scale - 1; /* which need not be a whole number */
        return whole > 0 ? (double)i * (double)(a.in - 1) / whole : 0;
    }
    if (!strcmp(t, "asymmetric"))
        return (double)i / a.scale;
    if (!strcmp(t, "pytorch_half_pixel") && a.out == 1)
        return 0;
    double shift = 0;
    if (!strcmp(t, "half_pixel_symmetric")) {
        double whole = (double)a.in * a.scale, ratio = (double)a.out / whole;
        shift = (double)a.in / 2 * (1 - ratio);
    }
    return shift + ((double)i + 0.5) / a.scale - 0.5;
}

static int64_t nearest(const Sampling *s, double at)
{
    const char *how = s->nearest;
    double v = !strcmp(how, "floor")              ? floor(at)
               : !strcmp(how, "ceil")             ? ceil(at)
               : !strcmp(how, "round_prefer_ceil") ? floor(at + 0.5)
                                                   : ceil(at - 0.5);
    return (int64_t)v;
}

static double cubic(double a, double x)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

/* How much each element of x counts in element i of the result. */
static void weigh(const Sampling *s, Axis a, int64_t i, float *row)
{
    double at = source(s, a, i), whole = 0, part[4];
    bool is_cubic = !strcmp(s->mode, "cubic");
    int taps = is_cubic ? 4 : 2, first = is_cubic ? -1 : 0;
    if (!is_cubic)
        at = at < 0 ? 0 : at > (double)(a.in - 1) ? (double)(a.in - 1) : at;
    int64_t base = (int64_t)floor(at);
    for (int k = 0; k < taps; k++) {
        int64_t j = base + first + k;
        double far = at - (double)j;
        part[k] = is_cubic ? cubic(s->cubic_a, far) : 1 - fabs(far);
        if (s->excludes && (j < 0 || j >= a.in))
            part[k] = 0;
        whole += part[k];
    }
    for (int k = 0; k < taps; k++) {
        int64_t j = base + first + k;
        j = j < 0 ? 0 : j >= a.in ? a.in - 1 : j;
        row[j] += (float)(s->excludes ? part[k] / whole : part[k]);
    }
}

static Value *picked(OnnxNode *n, Value *x, int axis, Axis a, const Sampling *s)
{
    OnnxList *at = on_new_list(n, ETC_I64, 1, (int)a.out);
    for (int64_t i = 0; i < a.out; i++) {
        int64_t k = nearest(s, source(s, a, i));
        at->dim[i] = DIM(k < 0 ? 0 : k >= a.in ? a.in - 1 : k);
    }
    Value *index = onnx_list_value(n, at);
    return index ? ON_BUILD(n, OP_INDEX_SELECT, "viv", x, (int64_t)axis, index) : NULL;
}

/* A product with the matrix of weights along one axis, which is the last meanwhile. */
static Value *weighted(OnnxNode *n, Value *x, int axis, Axis a, const Sampling *s)
{
    int rank = x->type.rank;
    int64_t swap[MAX_RANK];
    Dim dim[2] = {DIM(a.out), DIM(a.in)};
    OnnxConst c = {.type = type_tensor(n->in->program, ETC_F32, 2, dim)};
    c.n_bytes = type_bytes(c.type);
    float *matrix = arena_bytes(n->in->program->arena, (size_t)c.n_bytes + 1);
    memset(matrix, 0, (size_t)c.n_bytes);
    for (int64_t i = 0; i < a.out; i++)
        weigh(s, a, i, matrix + i * a.in);
    c.data = (const uint8_t *)matrix;
    for (int i = 0; i < rank; i++)
        swap[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    Value *w = on_cast(n, onnx_const_value(n->in, "weights", &c), x->type.dtype);
    Value *y = axis == rank - 1 ? x : ON_BUILD(n, OP_PERMUTE, "vI", x, rank, swap);
    y = y && w ? ON_BUILD(n, OP_LINEAR, "vv", y, w) : NULL;
    return !y || axis == rank - 1 ? y : ON_BUILD(n, OP_PERMUTE, "vI", y, rank, swap);
}

static bool is_image(const Value *x, const Axis *a)
{
    return x->type.rank == 4 && a[0].in == a[0].out && a[1].in == a[1].out &&
           x->type.dtype == ETC_F32;
}

/* Kernels of torch where they do just that: nearest by a whole factor, and bilinear. */
static Value *resized_image(OnnxNode *n, Value *x, const Axis *a, const Sampling *s)
{
    int64_t size[2] = {a[2].out, a[3].out};
    bool is_whole = a[2].out % a[2].in == 0 && a[3].out % a[3].in == 0;
    bool is_floor = !strcmp(s->transform, "asymmetric") && !strcmp(s->nearest, "floor");
    bool is_linear = !strcmp(s->mode, "linear"), aligns = !strcmp(s->transform, "align_corners");
    bool is_half = !strcmp(s->transform, "half_pixel") || !strcmp(s->transform, "pytorch_half_pixel");
    bool is_by_size = (double)a[2].in * a[2].scale == (double)a[2].out &&
                      (double)a[3].in * a[3].scale == (double)a[3].out && size[0] > 1 && size[1] > 1;
    if (!is_image(x, a))
        return NULL;
    if (!strcmp(s->mode, "nearest") && is_floor && is_whole && is_by_size)
        return ON_BUILD(n, OP_UPSAMPLE_NEAREST2D_VEC, "vIn", x, 2, size);
    if (is_linear && is_by_size && (aligns || is_half) && !s->excludes)
        return ON_BUILD(n, OP_UPSAMPLE_BILINEAR2D_VEC, "vIbn", x, 2, size, aligns);
    return NULL;
}

static bool resampled(OnnxNode *n, Value *x, const Axis *a, const Sampling *s)
{
    bool is_nearest = !strcmp(s->mode, "nearest");
    if (!is_nearest && strcmp(s->mode, "linear") != 0 && strcmp(s->mode, "cubic") != 0)
        return onnx_unsupported(n, "resizes in mode '%s'", s->mode);
    if (!strcmp(s->transform, "tf_crop_and_resize"))
        return onnx_unsupported(n, "crops by a region");
    Value *y = resized_image(n, x, a, s);
    if (y || diag_errors(n->in->diag))
        return on_define(n, 0, y);
    y = x;
    for (int i = 0; y && i < x->type.rank; i++) {
        bool is_same = a[i].in == a[i].out && a[i].scale == 1;
        if (a[i].out > MAX_LIST || a[i].in > MAX_LIST)
            return onnx_unsupported(n, "resizes an axis of more than 4096 elements");
        if (!is_same)
            y = is_nearest ? picked(n, y, i, a[i], s) : weighted(n, y, i, a[i], s);
    }
    return on_define(n, 0, y);
}

static bool axis_by_scale(OnnxNode *n, Axis *a, double scale)
{
    double size = floor((double)(float)((float)a->in * (float)scale));
    a->scale = scale;
    a->out = scale > 0 && size >= 1 && size < 1e9 ? (int64_t)size : 0;
    return a->out > 0 || onnx_wrong(n, "scales to no elements, or to too many");
}

static bool read_sizes(OnnxNode *n, const Value *x, const OnnxList *scales, const OnnxList *sizes,
                       Axis *a)
{
    int64_t at[MAX_RANK];
    int rank = x->type.rank, count = on_ints(n, "axes", at, MAX_RANK), axis;
    const OnnxList *l = sizes ? sizes : scales;
    for (int i = 0; i < rank; i++) {
        if (x->type.dim[i].expr && !(l && l->n == rank && l->number && l->number[i] == 1))
            return onnx_unsupported(n, "resizes a tensor whose sizes calls decide");
        if (!x->type.dim[i].expr && x->type.dim[i].value < 1)
            return onnx_wrong(n, "resizes a tensor without elements");
        a[i] = (Axis){x->type.dim[i].value, x->type.dim[i].value, 1};
    }
    if (!l || l->n != (count < 0 ? rank : count))
        return onnx_unsupported(n, "has scales or sizes that are not known, or not one for each axis");
    for (int i = 0; i < l->n; i++) {
        if (!on_axis(n, count < 0 ? i : at[i], rank, &axis))
            return false;
        if (l->number && !axis_by_scale(n, &a[axis], l->number[i]))
            return false;
        if (l->dim && (l->dim[i].expr || l->dim[i].value < 1 || l->dim[i].value > INT32_MAX))
            return onnx_wrong(n, "has a size that is not known, or no size");
        if (l->dim) {
            a[axis].out = l->dim[i].value;
            a[axis].scale = (double)a[axis].out / (double)a[axis].in;
        }
    }
    return true;
}

bool onnx_resize(OnnxNode *n)
{
    Axis a[MAX_RANK];
    Value *x = on_value(n, 0);
    const OnnxList *sizes = on_has(n, 3) ? on_list(n, 3) : NULL;
    const OnnxList *scales = on_has(n, 2) ? on_list(n, 2) : NULL;
    Sampling s = {on_text(n, "mode", "nearest"),
                  on_text(n, "coordinate_transformation_mode", "half_pixel"),
                  on_text(n, "nearest_mode", "round_prefer_floor"),
                  on_float(n, "cubic_coeff_a", -0.75), on_int(n, "exclude_outside", 0)};
    if (!x || n->failed)
        return false;
    if (on_int(n, "antialias", 0) ||
        strcmp(on_text(n, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return onnx_unsupported(n, "smooths, or keeps the ratio of sizes");
    scales = scales && scales->n ? scales : NULL;
    return read_sizes(n, x, scales, scales ? NULL : sizes, a) && resampled(n, x, a, &s);
}

bool onnx_upsample(OnnxNode *n)
{
    Axis a[MAX_RANK];
    Value *x = on_value(n, 0);
    const Onnx__Attribute *given = on_attribute(n, "scales");
    const OnnxList *scales = on_has(n, 1) ? on_list(n, 1) : NULL;
    Sampling s = {on_text(n, "mode", "nearest"), "asymmetric", "floor", -0.75, false};
    if (!x || n->failed)
        return false;
    if (given && given->n_floats <= MAX_RANK) {
        OnnxList *l = on_new_list(n, ETC_F32, 1, (int)given->n_floats);
        for (int i = 0; i < l->n; i++)
            l->number[i] = (double)given->floats[i];
        scales = l;
    }
    if (!strcmp(s.mode, "bilinear"))
        s.mode = "linear";
    return read_sizes(n, x, scales, NULL, a) && resampled(n, x, a, &s);
}
