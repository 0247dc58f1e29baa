/* upsample.c -- wrappers of resampling images, [n, channels, h, w].  The cores compute float;
 * double and interpolated bytes are computed here, one element after the other, and so is the
 * nearest element of any other dtype. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include "runtime-lite/kernels/wide.h"
#include <string.h>

/* Returns the number of input elements per output element along one axis; `factor` 0: none was
 * given. */
static float ratio(int64_t in, int64_t out, int align_corners, double factor)
{
    if (align_corners != 0) {
        return (out > 1) ? ((float)(in - 1) / (float)(out - 1)) : 0.0f;
    }
    return (factor > 0.0) ? (float)(1.0 / factor) : ((float)in / (float)out);
}

static double ratio_f64(int64_t in, int64_t out, int align_corners, double factor)
{
    if (align_corners != 0) {
        return (out > 1) ? ((double)(in - 1) / (double)(out - 1)) : 0.0;
    }
    return (factor > 0.0) ? (1.0 / factor) : ((double)in / (double)out);
}

/* Sets the output sizes from output_size or from scale_factors, whichever is given.  Returns 0 if
 * they are not valid. */
static int read_sizes(const EtcCall *c, int32_t size_at, int32_t scale_at, EtcUpsample *g,
                      double factor[2])
{
    EtcInts size;
    int has_factor;
    factor[0] = 0.0;
    factor[1] = 0.0;
    if (!etc_arg_ints(c, size_at, &size) ||
        !etc_arg_opt_doubles(c, scale_at, 2, factor, &has_factor) ||
        ((size.n >= 0) == (has_factor != 0))) {
        return 0;
    }
    if (size.n >= 0) {
        g->oh = (size.n == 2) ? size.v[0] : 0;
        g->ow = (size.n == 2) ? size.v[1] : 0;
    } else {
        if (!(factor[0] > 0.0) || !(factor[1] > 0.0) ||
            !(((double)g->ih * factor[0]) < 2147483648.0) ||
            !(((double)g->iw * factor[1]) < 2147483648.0)) {
            return 0;
        }
        g->oh = (int64_t)((double)g->ih * factor[0]);
        g->ow = (int64_t)((double)g->iw * factor[1]);
    }
    return (g->oh > 0) && (g->ow > 0);
}

static EtcStatus prepare(const EtcCall *c, int32_t scale_at, EtcUpsample *g, double factor[2],
                         EtcTensor **x, EtcTensor **y)
{
    if (!etc_arg_tensor(c, 0, x) || !etc_arg_tensor(c, scale_at + 1, y) || ((*x)->rank != 4)) {
        return ETC_BAD_ARG;
    }
    g->planes = (int64_t)(*x)->dim[0] * (*x)->dim[1];
    g->ih = (*x)->dim[2];
    g->iw = (*x)->dim[3];
    if ((g->ih < 1) || (g->iw < 1) || !read_sizes(c, 1, scale_at, g, factor)) {
        return ETC_BAD_ARG;
    }
    g->sh = ratio(g->ih, g->oh, g->align_corners, factor[0]);
    g->sw = ratio(g->iw, g->ow, g->align_corners, factor[1]);
    const int64_t dim[4] = {(*x)->dim[0], (*x)->dim[1], g->oh, g->ow};
    EtcStatus st = etc_resize64(*y, dim, 4);
    if (st != ETC_OK) {
        return st;
    }
    if ((*x)->dtype != (*y)->dtype) {
        return ETC_BAD_ARG;
    }
    return (etc_is_plain(*x) && etc_is_plain(*y)) ? ETC_OK : ETC_UNSUPPORTED;
}

/* Does what etc_upsample_nearest_f32 does, for elements of other dtypes. */
static void nearest(const EtcTensor *x, EtcTensor *y, const EtcUpsample *g)
{
    const int64_t size = (int64_t)etc_dtype_size((int)x->dtype);
    unsigned char *to = (unsigned char *)y->data;
    for (int64_t row = 0; row < (g->planes * g->oh); row++) {
        const int64_t iy = etc_nearest(row % g->oh, g->sh, g->ih, g->oh);
        const unsigned char *from = (const unsigned char *)x->data +
                                    ((((row / g->oh) * g->ih) + iy) * g->iw * size);
        for (int64_t ox = 0; ox < g->ow; ox++, to += size) {
            memcpy(to, from + (etc_nearest(ox, g->sw, g->iw, g->ow) * size), (size_t)size);
        }
    }
}

/* Returns the first neighbour of output o, and sets the weight of the second one.  It does what
 * etc_neighbour does, in double. */
static int64_t neighbour_f64(int64_t o, double scale, int align, int64_t in, int64_t out,
                             double *weight)
{
    *weight = 0.0;
    if (in == out) {
        return o;
    }
    double at = align ? (scale * (double)o) : ((scale * ((double)o + 0.5)) - 0.5);
    at = (at < 0.0) ? 0.0 : at;
    const int64_t i = (at < 9.0e18) ? etc_min_i64((int64_t)at, in - 1) : (in - 1);
    const double rest = at - (double)i;
    *weight = (rest > 1.0) ? 1.0 : rest;
    return i;
}

static double element(EtcKind kind, const EtcTensor *x, int64_t i)
{
    const EtcWide v = etc_wide_get(kind, x, i);
    return (kind == ETC_KIND_F64) ? v.f64 : (double)(int64_t)v.i64;
}

static void put_element(EtcKind kind, double at, EtcTensor *y, int64_t i)
{
    EtcWide v;
    if (kind == ETC_KIND_F64) {
        v.f64 = at;
    } else {
        v.i64 = (uint64_t)((int64_t)(at + 256.5) - 256); /* halves up */
    }
    etc_wide_put(kind, v, y, i);
}

/* Rounds the weight of a neighbour to a multiple of 1/2048. */
static double rounded(double weight)
{
    return (double)(int32_t)((weight * 2048.0) + 0.5) / 2048.0;
}

/* Interpolates doubles, or bytes as etc_mcu_linear_bytes does: weights are multiples of 1/2048, and
 * halves are rounded up.  For bytes every sum is exact. */
static void linear_wide(const EtcTensor *x, EtcTensor *y, const EtcUpsample *g,
                        const double scale[2])
{
    const EtcKind kind = etc_wide_kind((int)x->dtype);
    for (int64_t i = 0; i < (g->planes * g->oh * g->ow); i++) {
        double v, h;
        const int64_t y0 = neighbour_f64((i / g->ow) % g->oh, scale[0], g->align_corners, g->ih,
                                         g->oh, &v);
        const int64_t x0 = neighbour_f64(i % g->ow, scale[1], g->align_corners, g->iw, g->ow, &h);
        const int64_t y1 = etc_min_i64(y0 + 1, g->ih - 1), x1 = etc_min_i64(x0 + 1, g->iw - 1);
        const int64_t plane = (i / (g->oh * g->ow)) * g->ih * g->iw;
        const int64_t above = plane + (y0 * g->iw), below = plane + (y1 * g->iw);
        v = (kind == ETC_KIND_F64) ? v : rounded(v);
        h = (kind == ETC_KIND_F64) ? h : rounded(h);
        const double a = ((1.0 - h) * element(kind, x, above + x0)) +
                         (h * element(kind, x, above + x1));
        const double b = ((1.0 - h) * element(kind, x, below + x0)) +
                         (h * element(kind, x, below + x1));
        put_element(kind, ((1.0 - v) * a) + (v * b), y, i);
    }
}

/* Arguments: x, output_size or None, scale_factors or None, out. */
EtcStatus etc_upsample_nearest2d(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcUpsample g;
    double factor[2];
    memset(&g, 0, sizeof g);
    EtcStatus st = prepare(c, 2, &g, factor, &x, &y);
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    if (!ETC_HAS_WIDE || (x->dtype == ETC_F32)) {
        etc_rare_cores_of(c)->upsample_nearest((const float *)x->data, (float *)y->data, &g, c->scratch);
    } else {
        nearest(x, y, &g);
    }
    return ETC_OK;
}

/* Arguments: x, output_size or None, align_corners, scale_factors or None, out. */
EtcStatus etc_upsample_bilinear2d(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcUpsample g;
    double factor[2];
    int align;
    memset(&g, 0, sizeof g);
    if (!etc_arg_bool(c, 2, &align)) {
        return ETC_BAD_ARG;
    }
    g.align_corners = align;
    EtcStatus st = prepare(c, 3, &g, factor, &x, &y);
    const int is_byte = (st == ETC_OK) && etc_is_int((int)x->dtype) &&
                        ((x->dtype == ETC_I8) || (x->dtype == ETC_U8));
    if ((st == ETC_OK) && !is_byte && !etc_is_float((int)x->dtype)) {
        return ETC_UNSUPPORTED;
    }
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    if (!ETC_HAS_WIDE || (x->dtype == ETC_F32)) {
        etc_rare_cores_of(c)->upsample_linear((const float *)x->data, (float *)y->data, &g, c->scratch);
    } else {
        const double scale[2] = {is_byte ? (double)g.sh : ratio_f64(g.ih, g.oh, align, factor[0]),
                                 is_byte ? (double)g.sw : ratio_f64(g.iw, g.ow, align, factor[1])};
        linear_wide(x, y, &g, scale);
    }
    return ETC_OK;
}
