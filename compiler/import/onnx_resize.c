/* onnx_resize.c -- reads Resize, Upsample and other operators that interpolate between elements. */
#include "compiler/import/onnx.h"
#include <math.h>
#include <string.h>

/* -- resizing ---------------------------------------------------------------------------------- */

typedef struct Axis {
    int64_t in, out;
    double scale, from, to; /* from, to: the region of tf_crop_and_resize */
    bool is_open;   /* a size is symbolic; `in` and `out` are then 1 */
    bool by_factor; /* the factor is no ratio of the sizes, and positions follow the factor */
    Dim size;       /* of the result */
} Axis;

typedef struct Sampling {
    const char *mode, *transform, *nearest;
    double cubic_a;
    bool excludes, smooths; /* smooths: windows widen where the result is smaller */
    double outside;
} Sampling;

/* Returns the position in x of element i of the result.  It is a float, as in ONNX Runtime, so that
 * most of the positions halfway between two elements are the same. */
static float source(const Sampling *s, Axis a, int64_t i)
{
    const char *t = s->transform;
    float at = (float)i, scale = (float)a.scale, last = (float)(a.in - 1);
    /* The size of the result; by a factor it may be a fraction. */
    float whole = a.by_factor ? (float)((double)a.in * a.scale) : (float)a.out;
    if (!strcmp(t, "align_corners"))
        return whole > 1 ? at * last / (whole - 1) : 0;
    if (!strcmp(t, "asymmetric"))
        return (float)((double)i / a.scale);
    if (!strcmp(t, "pytorch_half_pixel") && a.out == 1)
        return 0;
    if (!strcmp(t, "tf_crop_and_resize")) {
        float from = (float)a.from, wide = (float)(a.to - a.from);
        return from * last + (whole > 1 ? at * wide * last / (whole - 1) : wide * last / 2);
    }
    float shift = 0;
    if (!strcmp(t, "half_pixel_symmetric"))
        shift = (float)a.in / 2 * (1 - (float)a.out / whole);
    return shift + (at + 0.5f) / scale - 0.5f;
}

static int64_t nearest(const Sampling *s, Axis a, float at)
{
    const char *how = s->nearest;
    if (!strcmp(how, "outer")) /* of opset 10 */
        how = a.scale < 1 ? "ceil" : "floor";
    float v = !strcmp(how, "floor")              ? floorf(at)
              : !strcmp(how, "ceil")             ? ceilf(at)
              : !strcmp(how, "round_prefer_ceil") ? floorf(at + 0.5f)
                                                  : ceilf(at - 0.5f);
    return (int64_t)v;
}

static double cubic(double a, double x)
{
    x = fabs(x);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

static bool is_outside(const Sampling *s, Axis a, int64_t i)
{
    float at = source(s, a, i);
    return !strcmp(s->transform, "tf_crop_and_resize") && (at < 0 || at > (float)(a.in - 1));
}

/* Sets row[] to the weight of each element of x in element i of the result. */
static void weigh(const Sampling *s, Axis a, int64_t i, float *row)
{
    double at = (double)source(s, a, i), whole = 0;
    double narrow = s->smooths && a.scale < 1 ? a.scale : 1;
    bool is_cubic = !strcmp(s->mode, "cubic");
    int64_t first = (int64_t)floor(-(is_cubic ? 2 : 1) / narrow) + 1;
    if (!is_cubic && !s->smooths)
        at = at < 0 ? 0 : at > (double)(a.in - 1) ? (double)(a.in - 1) : at;
    int64_t base = (int64_t)ceil(at) - 1;
    for (int turn = 0; turn < 2; turn++) /* the first turn computes the sum */
        for (int64_t j = base + first; j <= base + 1 - first; j++) {
            double far = (at - (double)j) * narrow;
            double part = is_cubic ? cubic(s->cubic_a, far) : fabs(far) < 1 ? 1 - fabs(far) : 0;
            int64_t k = j < 0 ? 0 : j >= a.in ? a.in - 1 : j;
            if (s->excludes && k != j)
                continue;
            if (turn)
                row[k] += (float)(s->excludes || s->smooths ? part / whole : part);
            whole += turn ? 0 : part;
        }
}

static Value *picked(OnnxNode *n, Value *x, int axis, Axis a, const Sampling *s)
{
    OnnxList *at = on_new_list(n, ETC_I64, 1, (int)a.out);
    for (int64_t i = 0; i < a.out; i++) {
        int64_t k = nearest(s, a, source(s, a, i));
        at->dim[i] = DIM(k < 0 ? 0 : k >= a.in ? a.in - 1 : k);
    }
    Value *index = on_list_value(n, at);
    return index ? ON_BUILD(n, OP_INDEX_SELECT, "viv", x, (int64_t)axis, index) : NULL;
}

static Value *weighted(OnnxNode *n, Value *x, int axis, Axis a, const Sampling *s)
{
    float *matrix = on_table_of(n, a.out, a.in);
    for (int64_t i = 0; matrix && i < a.out; i++)
        if (!is_outside(s, a, i))
            weigh(s, a, i, matrix + i * a.in);
    return on_matrix(n, x, axis, a.out, matrix);
}

/* Replaces elements from outside of the region of tf_crop_and_resize by a number. */
static Value *extrapolated(OnnxNode *n, Value *y, int axis, Axis a, const Sampling *s)
{
    OnnxList *l = on_new_list(n, ETC_BOOL, 1, (int)a.out);
    Dim dim[MAX_RANK];
    bool any = false;
    for (int64_t i = 0; i < a.out; i++) {
        l->dim[i] = DIM(is_outside(s, a, i));
        any = any || l->dim[i].value;
    }
    if (!y || !any)
        return y;
    for (int i = 0; i < y->type.rank; i++)
        dim[i] = DIM(i == axis ? a.out : 1);
    Value *outside = on_view(n, on_list_value(n, l), y->type.rank, dim);
    return on_where(n, outside, on_number(n, s->outside, y->type.dtype), y);
}

static bool is_image(const Value *x, const Axis *a)
{
    return x->type.rank == 4 && a[0].in == a[0].out && a[1].in == a[1].out &&
           !x->type.dim[2].expr && !x->type.dim[3].expr && x->type.dtype == ETC_F32;
}

/* Returns torch's operator that resizes `axes` spatial axes to symbolic sizes; OP_NONE: none
 * computes the same. */
static OpId open_operator(const Axis *a, int axes, const Sampling *s)
{
    static const OpId rows[4][3] = {
        {OP_UPSAMPLE_NEAREST1D_VEC, OP_UPSAMPLE_NEAREST2D_VEC, OP_UPSAMPLE_NEAREST3D_VEC},
        {OP__UPSAMPLE_NEAREST_EXACT1D_VEC, OP__UPSAMPLE_NEAREST_EXACT2D_VEC,
         OP__UPSAMPLE_NEAREST_EXACT3D_VEC},
        {OP_UPSAMPLE_LINEAR1D_VEC, OP_UPSAMPLE_BILINEAR2D_VEC, OP_UPSAMPLE_TRILINEAR3D_VEC},
        {OP_NONE, OP_UPSAMPLE_BICUBIC2D_VEC, OP_NONE}};
    bool aligns = !strcmp(s->transform, "align_corners"),
         is_half = !strcmp(s->transform, "half_pixel");
    bool is_whole = true, is_large = true;
    for (int i = 2; i < axes + 2; i++) {
        int64_t least, most;
        dim_range(a[i].size, &least, &most);
        is_large = is_large && least > 1;
        is_whole = is_whole && !a[i].by_factor;
    }
    is_half = is_half || (is_large && !strcmp(s->transform, "pytorch_half_pixel"));
    if (s->smooths || s->excludes)
        return OP_NONE;
    if (!strcmp(s->mode, "nearest"))
        return !strcmp(s->transform, "asymmetric") && !strcmp(s->nearest, "floor")
                   ? rows[0][axes - 1]
               : is_half && !strcmp(s->nearest, "round_prefer_ceil") ? rows[1][axes - 1]
                                                                     : OP_NONE;
    if (!is_half && !(aligns && is_whole))
        return OP_NONE;
    if (!strcmp(s->mode, "linear"))
        return rows[2][axes - 1];
    return s->cubic_a == -0.75 ? rows[3][axes - 1] : OP_NONE;
}

/* Resizes spatial axes of symbolic sizes, by sizes or by factors. */
static Value *resized_openly(OnnxNode *n, Value *x, const Axis *a, const Sampling *s)
{
    int rank = x->type.rank, axes = rank - 2;
    bool is_space = rank >= 3 && rank <= 5 && !a[0].is_open && !a[1].is_open &&
                    a[0].in == a[0].out && a[1].in == a[1].out;
    OpId op = is_space ? open_operator(a, axes, s) : OP_NONE;
    if (op == OP_NONE) {
        onnx_unsupported(
            n, "resizes axes whose sizes are known only at run time, in a way that torch does "
               "not: fix them with --dim");
        return NULL;
    }
    Arg *item = NEW(n->in->program->arena, Arg, 2 * axes);
    Dim dim[MAX_RANK] = {x->type.dim[0], x->type.dim[1]};
    bool by_factor = false;
    for (int i = 0; i < axes; i++) {
        by_factor = by_factor || a[2 + i].by_factor;
        dim[2 + i] = a[2 + i].size;
        item[i] = (Arg){.kind = ARG_INT, .dim = dim[2 + i]};
        item[axes + i] = (Arg){.kind = ARG_FLOAT, .f = a[2 + i].scale};
    }
    Arg none = {.kind = ARG_NONE};
    Arg given = {.kind = ARG_LIST, .list = {.n = axes, .item = by_factor ? item + axes : item}};
    Arg size = by_factor ? none : given, factor = by_factor ? given : none;
    Type t = type_tensor(n->in->program, x->type.dtype, rank, dim);
    if (!strcmp(s->mode, "nearest"))
        return ON_GIVEN(n, op, t, "vaa", x, size, factor);
    return ON_GIVEN(n, op, t, "vaba", x, size, !strcmp(s->transform, "align_corners"), factor);
}

/* Resizes by a kernel of torch where one computes the same: nearest by a whole factor, and
 * bilinear. */
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
    bool is_open = false;
    for (int i = 0; i < x->type.rank; i++)
        is_open = is_open || a[i].is_open;
    if (is_open)
        return on_define(n, 0, resized_openly(n, x, a, s));
    bool is_plain = !s->smooths && strcmp(s->transform, "tf_crop_and_resize") != 0;
    Value *y = is_plain ? resized_image(n, x, a, s) : NULL;
    if (y || diag_errors(n->in->diag))
        return on_define(n, 0, y);
    y = x;
    for (int i = 0; y && i < x->type.rank; i++) {
        bool is_same = a[i].in == a[i].out && a[i].scale == 1 && a[i].from == 0 && a[i].to == 1;
        if (a[i].out > MAX_LIST || a[i].in > MAX_LIST)
            return onnx_unsupported(n, "resizes an axis of more than 4096 elements");
        if (!is_same)
            y = extrapolated(n, is_nearest ? picked(n, y, i, a[i], s) : weighted(n, y, i, a[i], s), i,
                             a[i], s);
    }
    return on_define(n, 0, y);
}

/* Sets the size of the result for an axis of symbolic size, by a factor. */
static bool open_by_scale(OnnxNode *n, Axis *a, double scale)
{
    const int64_t PARTS = 4096;
    Program *p = n->in->program;
    double parts = scale * (double)PARTS;
    if (!(parts >= 1) || parts > INT32_MAX || floor(parts) != parts)
        return onnx_unsupported(n, "scales a size that is known only at run time by %g", scale);
    a->is_open = true;
    a->by_factor = floor(scale) != scale;
    a->scale = scale;
    a->size = a->by_factor ? dim_floordiv(p, dim_mul(p, a->size, DIM((int64_t)parts)), DIM(PARTS))
                           : dim_mul(p, a->size, DIM((int64_t)scale));
    return true;
}

static bool axis_by_scale(OnnxNode *n, Axis *a, double scale)
{
    if (a->size.expr)
        return scale == 1 || open_by_scale(n, a, scale);
    double size = floor((double)(float)((float)a->in * (float)scale));
    a->scale = scale;
    a->out = scale > 0 && size >= 1 && size < 1e9 ? (int64_t)size : 0;
    a->by_factor = floor(scale) != scale;
    a->size = DIM(a->out);
    return a->out > 0 || onnx_wrong(n, "scales to no elements, or to too many");
}

static bool axis_by_size(OnnxNode *n, Axis *a, Dim size)
{
    if (dim_equal(size, a->size))
        return true;
    if (!size.expr && (size.value < 1 || size.value > INT32_MAX))
        return onnx_wrong(n, "has a size that is not known, or no size");
    a->is_open = size.expr || a->size.expr;
    a->size = size;
    a->out = a->is_open ? a->in : size.value;
    a->scale = (double)a->out / (double)a->in;
    return true;
}

static bool read_sizes(OnnxNode *n, const Value *x, const OnnxList *scales, const OnnxList *sizes,
                       Axis *a)
{
    int64_t at[MAX_RANK];
    int rank = x->type.rank, count = on_ints(n, "axes", at, MAX_RANK), axis;
    const OnnxList *l = sizes ? sizes : scales;
    for (int i = 0; i < rank; i++) {
        Dim d = x->type.dim[i];
        if (!d.expr && d.value < 1)
            return onnx_wrong(n, "resizes a tensor without elements");
        int64_t size = d.expr ? 1 : d.value;
        a[i] = (Axis){.in = size, .out = size, .scale = 1, .to = 1, .size = d};
    }
    if (!l || l->n != (count < 0 ? rank : count))
        return onnx_unsupported(n, "has scales or sizes that are not known, or not one for each axis");
    for (int i = 0; i < l->n; i++) {
        if (!on_axis(n, count < 0 ? i : at[i], rank, &axis))
            return false;
        if (l->number && !axis_by_scale(n, &a[axis], l->number[i]))
            return false;
        if (l->dim && !axis_by_size(n, &a[axis], l->dim[i]))
            return false;
    }
    return true;
}

/* Changes sizes so that they keep the ratio: the least, or the largest, of the scales counts for
 * all axes. */
static bool keep_ratio(OnnxNode *n, Axis *a, int rank, const char *policy)
{
    int64_t at[MAX_RANK];
    int count = on_ints(n, "axes", at, MAX_RANK), axis;
    bool is_least = !strcmp(policy, "not_larger");
    double scale = is_least ? (double)INFINITY : 0;
    if (!strcmp(policy, "stretch"))
        return true;
    if (!is_least && strcmp(policy, "not_smaller") != 0)
        return onnx_wrong(n, "has the keep_aspect_ratio_policy '%s'", policy);
    for (int i = 0; i < (count < 0 ? rank : count); i++) {
        if (!on_axis(n, count < 0 ? i : at[i], rank, &axis))
            return false;
        if (a[axis].is_open || a[axis].size.expr)
            return onnx_unsupported(n, "keeps the ratio of sizes that are known only at run time");
        double is = a[axis].scale;
        scale = is_least == (is < scale) ? is : scale;
    }
    for (int i = 0; i < (count < 0 ? rank : count); i++) {
        if (!on_axis(n, count < 0 ? i : at[i], rank, &axis))
            return false;
        a[axis].scale = scale;
        a[axis].out = (int64_t)floor(scale * (double)a[axis].in + 0.5);
        if (a[axis].out < 1)
            return onnx_wrong(n, "scales to no elements");
    }
    return true;
}

/* Reads the region of each axis; all starts stand before all ends. */
static bool read_region(OnnxNode *n, Axis *a, int rank)
{
    int64_t at[MAX_RANK];
    int count = on_ints(n, "axes", at, MAX_RANK), axis;
    const OnnxList *l = on_list(n, 1);
    count = count < 0 ? rank : count;
    if (!l || !l->number || l->n != 2 * count)
        return onnx_unsupported(n, "crops by a region that is not known");
    for (int i = 0; i < count; i++) {
        if (!on_axis(n, on_attribute(n, "axes") ? at[i] : i, rank, &axis))
            return false;
        a[axis].from = l->number[i];
        a[axis].to = l->number[i + count];
        if (!(fabs(a[axis].from) < 1e6) || !(fabs(a[axis].to) < 1e6))
            return onnx_wrong(n, "crops by a region out of range");
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
                  on_float(n, "cubic_coeff_a", -0.75), on_int(n, "exclude_outside", 0),
                  on_int(n, "antialias", 0), on_float(n, "extrapolation_value", 0)};
    const char *policy = on_text(n, "keep_aspect_ratio_policy", "stretch");
    if (!x || n->failed)
        return false;
    scales = scales && scales->n ? scales : NULL;
    return read_sizes(n, x, scales, scales ? NULL : sizes, a) &&
           (scales || keep_ratio(n, a, x->type.rank, policy)) &&
           (strcmp(s.transform, "tf_crop_and_resize") != 0 || read_region(n, a, x->type.rank)) &&
           resampled(n, x, a, &s);
}

/* Reads Upsample, and Resize of opset 10. */
bool onnx_upsample(OnnxNode *n)
{
    Axis a[MAX_RANK];
    Value *x = on_value(n, 0);
    const Onnx__Attribute *given = on_attribute(n, "scales");
    const OnnxList *scales = on_has(n, 1) ? on_list(n, 1) : NULL;
    Sampling s = {on_text(n, "mode", "nearest"), "asymmetric", "floor", -0.75, false, false, 0};
    if (!x || n->failed)
        return false;
    if (given && given->n_floats <= MAX_RANK) {
        OnnxList *l = on_new_list(n, ETC_F32, 1, (int)given->n_floats);
        for (int i = 0; i < l->n; i++)
            l->number[i] = (double)given->floats[i];
        scales = l;
    }
    for (int i = 0; scales && scales->number && i < scales->n; i++)
        if (scales->number[i] < 1)
            s.nearest = "outer";
    if (!strcmp(s.mode, "bilinear"))
        s.mode = "linear";
    return read_sizes(n, x, scales, NULL, a) && resampled(n, x, a, &s);
}

/* -- grids ------------------------------------------------------------------------------------- */

/* Returns the index of `name` in a list; -1: it is not there, which is reported. */
static int choice(OnnxNode *n, const char *attribute, const char *const *list, int count)
{
    const char *name = on_text(n, attribute, list[0]);
    for (int i = 0; i < count; i++)
        if (!strcmp(name, list[i]))
            return i % 3;
    onnx_wrong(n, "has the %s '%s'", attribute, name);
    return -1;
}

bool onnx_grid_sample(OnnxNode *n)
{
    static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "nearest", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    int mode = choice(n, "mode", modes, 6), padding = choice(n, "padding_mode", paddings, 3);
    Value *x = on_value(n, 0), *grid = on_value(n, 1);
    Dim dim[MAX_RANK];
    if (!x || !grid || n->failed)
        return false;
    int rank = x->type.rank;
    if ((rank != 4 && rank != 5) || grid->type.rank != rank ||
        !dim_equal(grid->type.dim[rank - 1], DIM(rank - 2)))
        return onnx_wrong(
            n, "expects [n, c, ...] of 2 or 3 axes of space and a grid of [n, ..., axes]");
    if (rank == 5 && mode == 2)
        return onnx_unsupported(n, "samples three axes of space by cubes");
    dim[0] = x->type.dim[0];
    dim[1] = x->type.dim[1];
    for (int i = 2; i < rank; i++)
        dim[i] = grid->type.dim[i - 1];
    Type t = type_tensor(n->in->program, x->type.dtype, rank, dim);
    return on_define(n, 0, ON_GIVEN(n, rank == 4 ? OP_GRID_SAMPLER_2D : OP_GRID_SAMPLER_3D, t, "vviib", x,
                                    grid, (int64_t)mode, (int64_t)padding,
                                    (int)on_int(n, "align_corners", 0)));
}

bool onnx_affine_grid(OnnxNode *n)
{
    Dim size[MAX_RANK], dim[5];
    int count;
    Value *theta = on_value(n, 0);
    if (!theta || !on_dims(n, 1, size, &count))
        return false;
    if ((count != 4 && count != 5) || theta->type.rank != 3)
        return onnx_wrong(n, "expects matrices for each of the batch and 4 or 5 sizes");
    dim[0] = size[0];
    for (int i = 2; i < count; i++)
        dim[i - 1] = size[i];
    dim[count - 1] = DIM(count - 2);
    Type t = type_tensor(n->in->program, theta->type.dtype, count, dim);
    return on_define(n, 0, ON_GIVEN(n, OP_AFFINE_GRID_GENERATOR, t, "vDb", theta, count, size,
                                    (int)on_int(n, "align_corners", 0)));
}
