/* pool.c -- wrappers of max and average pooling of [channels, h, w] or [n, channels, h, w].  The
 * cores compute float and quantized average pooling; the rest is computed here: maxima of bytes
 * without indices by rows, double and other integers one window after the other. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include "runtime-lite/kernels/wide.h"
#include <string.h>

static int is_byte(const EtcTensor *t)
{
    return (t->dtype == ETC_I8) || (t->dtype == ETC_U8);
}

/* Reads kernel_size, stride and padding, which both have, from argument 1 on. */
static int read_window(const EtcCall *c, EtcPool *g)
{
    int64_t k[2], s[2], p[2];
    EtcInts given;
    memset(g, 0, sizeof *g);
    if (!etc_arg_ints(c, 1, &given) || (given.n < 1) || !etc_arg_pair(c, 1, 1, 1, k) ||
        !etc_arg_pair(c, 3, 0, 0, p) || !etc_arg_ints(c, 2, &given)) {
        return 0;
    }
    memcpy(s, k, sizeof s);
    if ((given.n > 0) && !etc_arg_pair(c, 2, 1, 1, s)) {
        return 0;
    }
    g->kh = k[0];
    g->kw = k[1];
    g->sh = s[0];
    g->sw = s[1];
    g->ph = p[0];
    g->pw = p[1];
    g->dh = 1;
    g->dw = 1;
    return ((2 * p[0]) <= k[0]) && ((2 * p[1]) <= k[1]);
}

/* Returns the number of windows along one axis.  With ceil_mode the last one may extend past the
 * padding, but must start before the end of the image. */
static int64_t windows(int64_t size, int64_t k, int64_t stride, int64_t pad, int64_t dilation,
                       int ceil_mode)
{
    const int64_t room = size + (2 * pad) - (dilation * (k - 1)) - 1;
    if (room < 0) {
        return (ceil_mode && ((room + stride) > 0)) ? 1 : 0;
    }
    int64_t n = ((room + (ceil_mode ? (stride - 1) : 0)) / stride) + 1;
    return (ceil_mode && (((n - 1) * stride) >= (size + pad))) ? (n - 1) : n;
}

/* Resizes y to the leading axes of x followed by oh and ow, and sets the planes of g. */
static EtcStatus shape(const EtcTensor *x, EtcPool *g, EtcTensor *y)
{
    int64_t dim[4];
    const int32_t r = x->rank;
    for (int32_t d = 0; d < (r - 2); d++) {
        dim[d] = x->dim[d];
    }
    dim[r - 2] = g->oh;
    dim[r - 1] = g->ow;
    EtcStatus st = etc_resize64(y, dim, r);
    if (st != ETC_OK) {
        return st;
    }
    if (!etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    g->planes = (r == 4) ? ((int64_t)x->dim[0] * x->dim[1]) : x->dim[0];
    return ETC_OK;
}

static int read_image(const EtcTensor *x, EtcPool *g)
{
    if ((x->rank != 3) && (x->rank != 4)) {
        return 0;
    }
    g->ih = x->dim[x->rank - 2];
    g->iw = x->dim[x->rank - 1];
    return (g->ih > 0) && (g->iw > 0);
}

/* Counts the work of all windows; a window counts at most as many elements as the image has. */
static int may_visit(const EtcCall *c, const EtcTensor *y, const EtcPool *g)
{
    const int64_t h = g->adaptive ? ((g->ih / g->oh) + 2) : g->kh;
    const int64_t w = g->adaptive ? ((g->iw / g->ow) + 2) : g->kw;
    return etc_may_work(c, etc_numel(y), etc_min_i64(h, g->ih) * etc_min_i64(w, g->iw));
}

/* -- double and integers ------------------------------------------------------------------- */

/* Returns whether v replaces the largest element so far: it is larger, or NaN. */
static int is_more(EtcKind kind, EtcWide v, EtcWide max)
{
    return (kind == ETC_KIND_F64) ? ((v.f64 > max.f64) || (v.f64 != v.f64))
                                  : ((int64_t)v.i64 > (int64_t)max.i64);
}

/* Returns the least value of a dtype, which is the result of a window without elements. */
static EtcWide least(int dtype)
{
    const int is_signed = (dtype == ETC_I8) || (dtype == ETC_I16) || (dtype == ETC_I32) ||
                          (dtype == ETC_I64);
    EtcWide v;
    if (dtype == ETC_F64) {
        v.f64 = -__builtin_inf();
    } else {
        v.i64 = is_signed ? (UINT64_MAX << ((8 * etc_dtype_size(dtype)) - 1)) : 0u;
    }
    return v;
}

/* Does what etc_max_windows does, for double and integers. */
static void max_pool_wide(const EtcTensor *x, EtcTensor *y, int64_t *where, const EtcPool *g)
{
    const EtcKind kind = etc_wide_kind((int)x->dtype);
    for (int64_t o = 0; o < etc_numel(y); o++) {
        const int64_t plane = (o / (g->oh * g->ow)) * g->ih * g->iw;
        int64_t y0 = (((o / g->ow) % g->oh) * g->sh) - g->ph, x0 = ((o % g->ow) * g->sw) - g->pw;
        const int64_t y1 = etc_min_i64(y0 + (g->kh * g->dh), g->ih);
        const int64_t x1 = etc_min_i64(x0 + (g->kw * g->dw), g->iw);
        y0 += (y0 < 0) ? (((g->dh - 1 - y0) / g->dh) * g->dh) : 0;
        x0 += (x0 < 0) ? (((g->dw - 1 - x0) / g->dw) * g->dw) : 0;
        EtcWide max = least((int)x->dtype);
        int64_t at = (y0 * g->iw) + x0;
        for (int64_t i = y0; i < y1; i += g->dh) {
            for (int64_t j = x0; j < x1; j += g->dw) {
                const EtcWide v = etc_wide_get(kind, x, plane + (i * g->iw) + j);
                if (is_more(kind, v, max)) {
                    max = v;
                    at = (i * g->iw) + j;
                }
            }
        }
        etc_wide_put(kind, max, y, o);
        if (where != NULL) {
            where[o] = at;
        }
    }
}

/* Sets [at[0], at[1]) to the window of output `o` along an axis, padding included. */
static void span(const EtcPool *g, int64_t o, int64_t size, int64_t out, int64_t k, int64_t stride,
                 int64_t pad, int64_t at[2])
{
    at[0] = g->adaptive ? ((o * size) / out) : ((o * stride) - pad);
    at[1] = g->adaptive ? ((((o + 1) * size) + out - 1) / out)
                        : etc_min_i64(at[0] + k, size + pad);
}

/* Returns the sum divided by a count.  Integers are rounded toward 0, or, if is_near is set, to the
 * nearest integer, halves up; `by` is then positive. */
static EtcWide quotient(EtcKind kind, EtcWide sum, int64_t by, int is_near)
{
    if (kind == ETC_KIND_F64) {
        sum.f64 /= (double)by;
    } else if (is_near) {
        const int64_t v = (int64_t)sum.i64 + (by / 2), rest = v % by;
        sum.i64 = (uint64_t)((v / by) - (rest < 0));
    } else if (by == -1) { /* INT64_MIN / -1 would trap */
        sum.i64 = 0u - sum.i64;
    } else {
        sum.i64 = (uint64_t)((int64_t)sum.i64 / by);
    }
    return sum;
}

/* Does what etc_avg_pool_f32 does, for double and integers, and what etc_mcu_adaptive_bytes
 * does. */
static void avg_pool_wide(const EtcTensor *x, EtcTensor *y, const EtcPool *g)
{
    const EtcKind kind = etc_wide_kind((int)x->dtype);
    for (int64_t o = 0; o < etc_numel(y); o++) {
        const int64_t plane = (o / (g->oh * g->ow)) * g->ih * g->iw;
        int64_t v[2], h[2];
        span(g, (o / g->ow) % g->oh, g->ih, g->oh, g->kh, g->sh, g->ph, v);
        span(g, o % g->ow, g->iw, g->ow, g->kw, g->sw, g->pw, h);
        const int64_t padded = (v[1] - v[0]) * (h[1] - h[0]);
        v[0] = etc_max_i64(v[0], 0);
        h[0] = etc_max_i64(h[0], 0);
        v[1] = etc_min_i64(v[1], g->ih);
        h[1] = etc_min_i64(h[1], g->iw);
        EtcWide sum = etc_wide_zero(kind);
        for (int64_t i = v[0]; i < v[1]; i++) {
            for (int64_t j = h[0]; j < h[1]; j++) {
                const int64_t at = plane + (i * g->iw) + j;
                sum = etc_wide_sum(kind, sum, etc_wide_get(kind, x, at));
            }
        }
        const int64_t inside = etc_max_i64(v[1] - v[0], 0) * etc_max_i64(h[1] - h[0], 0);
        const int64_t count = g->count_pad ? padded : inside;
        if (inside > 0) {
            sum = quotient(kind, sum, (g->divisor != 0) ? g->divisor : count, g->adaptive);
        }
        etc_wide_put(kind, sum, y, o);
    }
}

/* ------------------------------------------------------------------------------------------ */

/* Arguments: x, kernel_size, stride, padding, dilation, ceil_mode, out, and indices if has_where is
 * set. */
static EtcStatus max_pool(const EtcCall *c, int has_where)
{
    EtcTensor *x, *y, *where = NULL;
    EtcPool g;
    int64_t d[2];
    int ceil_mode;
    if (!etc_arg_tensor(c, 0, &x) || !read_window(c, &g) || !etc_arg_pair(c, 4, 1, 1, d) ||
        !etc_arg_bool(c, 5, &ceil_mode) || !etc_arg_tensor(c, 6, &y) ||
        (has_where && !etc_arg_tensor(c, 7, &where)) || !read_image(x, &g)) {
        return ETC_BAD_ARG;
    }
    g.dh = d[0];
    g.dw = d[1];
    g.oh = windows(g.ih, g.kh, g.sh, g.ph, g.dh, ceil_mode);
    g.ow = windows(g.iw, g.kw, g.sw, g.pw, g.dw, ceil_mode);
    if ((g.oh < 1) || (g.ow < 1)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = (x->dtype == y->dtype) ? shape(x, &g, y) : ETC_UNSUPPORTED;
    if ((st == ETC_OK) && has_where) {
        st = etc_resize(where, y->dim, y->rank);
        if ((where->dtype != ETC_I64) || !etc_is_plain(where)) {
            return ETC_BAD_ARG;
        }
    }
    if ((st == ETC_OK) && !has_where && is_byte(x)) {
        etc_max_pool_i8(x->data, y->data, x->dtype == ETC_I8, &g);
        return st;
    }
    st = ((st == ETC_OK) && (etc_kind((int)x->dtype) == ETC_KIND_NONE)) ? ETC_UNSUPPORTED : st;
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    int64_t *at = has_where ? (int64_t *)where->data : NULL;
    if (!may_visit(c, y, &g)) {
        return ETC_TOO_MUCH;
    }
    if (!ETC_HAS_WIDE || (x->dtype == ETC_F32)) {
        etc_rare_cores_of(c)->max_pool((const float *)x->data, (float *)y->data, at, &g, c->scratch);
    } else {
        max_pool_wide(x, y, at, &g);
    }
    return ETC_OK;
}

EtcStatus etc_max_pool2d(const EtcCall *c)
{
    return max_pool(c, 0);
}

EtcStatus etc_max_pool2d_with_indices(const EtcCall *c)
{
    return max_pool(c, 1);
}

static EtcStatus average(const EtcCall *c, const EtcTensor *x, EtcPool *g, EtcTensor *y)
{
    EtcStatus st = (x->dtype == y->dtype) ? shape(x, g, y) : ETC_UNSUPPORTED;
    const int is_known = etc_is_float((int)x->dtype) ||
                         (etc_is_int((int)x->dtype) &&
                          (g->adaptive ? is_byte(x) : (x->dtype != ETC_BOOL)));
    st = ((st == ETC_OK) && !is_known) ? ETC_UNSUPPORTED : st;
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    if (!may_visit(c, y, g)) {
        return ETC_TOO_MUCH;
    }
    if (!ETC_HAS_WIDE || (x->dtype == ETC_F32)) {
        etc_rare_cores_of(c)->avg_pool((const float *)x->data, (float *)y->data, g);
    } else {
        avg_pool_wide(x, y, g);
    }
    return ETC_OK;
}

/* Reads kernel_size, stride, padding, ceil_mode, count_include_pad and divisor_override from
 * argument 1 on, and sets the image and output sizes. */
static int read_average(const EtcCall *c, const EtcTensor *x, EtcPool *g)
{
    int64_t divisor = 0;
    int ceil_mode, count_pad, is_given;
    if (!read_window(c, g) || !etc_arg_bool(c, 4, &ceil_mode) || !etc_arg_bool(c, 5, &count_pad) ||
        !etc_arg_opt_int(c, 6, &divisor, &is_given) || !read_image(x, g) ||
        (is_given && (divisor == 0))) {
        return 0;
    }
    g->divisor = divisor;
    g->count_pad = count_pad;
    g->oh = windows(g->ih, g->kh, g->sh, g->ph, 1, ceil_mode);
    g->ow = windows(g->iw, g->kw, g->sw, g->pw, 1, ceil_mode);
    return (g->oh > 0) && (g->ow > 0);
}

/* Arguments: x, those of read_average, out. */
EtcStatus etc_avg_pool2d(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcPool g;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 7, &y) || !read_average(c, x, &g)) {
        return ETC_BAD_ARG;
    }
    return average(c, x, &g, y);
}

/* Reads zero_point, scale, output_zero, quant_min and quant_max from argument 7 on. */
static int read_mean(const EtcCall *c, const EtcTensor *x, const EtcTensor *y, EtcMean *q)
{
    int64_t v[4];
    double by;
    const int64_t x_lo = (x->dtype == ETC_I8) ? -128 : 0, y_lo = (y->dtype == ETC_I8) ? -128 : 0;
    if (!is_byte(x) || !is_byte(y) || !etc_arg_int(c, 7, &v[0]) || !etc_arg_double(c, 8, &by) ||
        !etc_arg_int(c, 9, &v[1]) || !etc_arg_int(c, 10, &v[2]) || !etc_arg_int(c, 11, &v[3])) {
        return 0;
    }
    const EtcMean mean = {x->dtype == ETC_I8, (int32_t)v[0],  (float)by,
                          (int32_t)v[1],      (int32_t)v[2], (int32_t)v[3]};
    *q = mean;
    return (by > 0.0) && (v[0] >= x_lo) && (v[0] <= (x_lo + 255)) && (v[1] >= y_lo) &&
           (v[1] <= (y_lo + 255)) && (v[2] >= y_lo) && (v[2] <= v[3]) && (v[3] <= (y_lo + 255));
}

/* Arguments: x, those of read_average, those of read_mean, dtype, out. */
EtcStatus etc_integer_avg_pool2d(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcPool g;
    EtcMean q;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 13, &y) || !read_average(c, x, &g) ||
        !read_mean(c, x, y, &q) || (g.kh > ETC_INTEGER_WINDOW) ||
        (g.kw > ETC_INTEGER_WINDOW) || ((g.kh * g.kw) > ETC_INTEGER_WINDOW)) {
        return ETC_BAD_ARG;
    }
    const EtcStatus st = shape(x, &g, y);
    if ((st == ETC_OK) && !may_visit(c, y, &g)) {
        return ETC_TOO_MUCH;
    }
    if ((st == ETC_OK) && (etc_numel(y) > 0)) {
        etc_rare_cores_of(c)->avg_pool_i8(x->data, y->data, &g, &q);
    }
    return st;
}

/* Arguments: x, output_size, out. */
EtcStatus etc_adaptive_avg_pool2d(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcPool g;
    int64_t size[2];
    memset(&g, 0, sizeof g);
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_pair(c, 1, 0, 1, size) || !etc_arg_tensor(c, 2, &y) ||
        !read_image(x, &g)) {
        return ETC_BAD_ARG;
    }
    g.oh = size[0];
    g.ow = size[1];
    g.adaptive = 1;
    return average(c, x, &g, y);
}
