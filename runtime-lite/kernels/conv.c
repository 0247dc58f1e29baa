/* conv.c -- wrapper of convolution in one and two dimensions, also transposed.  The core computes
 * float; double and integers are computed here, one sum after the other. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include "runtime-lite/kernels/wide.h"
#include <string.h>

/* Reads a stride, padding or dilation at argument i into v, as [h, w].  It has one number or one
 * per spatial dimension. */
static int read_axes(const EtcCall *c, int32_t i, int32_t n_axes, int64_t lo, int64_t dflt,
                     int64_t v[2])
{
    EtcInts ints;
    if (!etc_arg_ints(c, i, &ints) || ((ints.n != 1) && (ints.n != n_axes)) ||
        !etc_arg_pair(c, i, lo, dflt, v)) {
        return 0;
    }
    if (n_axes == 1) {
        v[0] = dflt;
    }
    return 1;
}

/* Reads and checks all arguments that are not tensors. */
static int read_options(const EtcCall *c, int32_t n_axes, EtcConv *g, int64_t output_pad[2])
{
    int64_t s[2], p[2], d[2];
    int transposed;
    if (!read_axes(c, 3, n_axes, 1, 1, s) || !read_axes(c, 4, n_axes, 0, 0, p) ||
        !read_axes(c, 5, n_axes, 1, 1, d) || !etc_arg_bool(c, 6, &transposed) ||
        !etc_arg_int(c, 8, &g->groups)) {
        return 0;
    }
    output_pad[0] = 0;
    output_pad[1] = 0;
    if (transposed && !read_axes(c, 7, n_axes, 0, 0, output_pad)) {
        return 0;
    }
    g->sh = s[0];
    g->sw = s[1];
    g->ph = p[0];
    g->pw = p[1];
    g->dh = d[0];
    g->dw = d[1];
    g->form = transposed ? ETC_TRANSPOSED : ETC_FORWARD;
    g->lo = -__builtin_inff();
    g->hi = __builtin_inff();
    return (g->groups >= 1) && (g->groups <= INT32_MAX) &&
           ((output_pad[0] < s[0]) || (output_pad[0] < d[0])) &&
           ((output_pad[1] < s[1]) || (output_pad[1] < d[1]));
}

/* Returns the size of one axis of the output; it is not positive if there is no output. */
static int64_t out_size(const EtcConv *g, int64_t i, int64_t k, int64_t s, int64_t p, int64_t d,
                        int64_t output_pad)
{
    if (g->form == ETC_TRANSPOSED) {
        return ((i - 1) * s) - (2 * p) + (d * (k - 1)) + output_pad + 1;
    }
    const int64_t room = i + (2 * p) - (d * (k - 1)) - 1;
    return (room < 0) ? 0 : ((room / s) + 1);
}

/* Sets the channels and sizes in g.  Returns 0 if weight, bias and input do not fit together, or if
 * the output is empty. */
static int read_shapes(const EtcTensor *x, const EtcTensor *w, const EtcTensor *bias,
                       const int64_t output_pad[2], EtcConv *g)
{
    const int32_t r = x->rank;
    g->n = x->dim[0];
    g->ih = (r == 4) ? x->dim[2] : 1;
    g->iw = x->dim[r - 1];
    g->kh = (r == 4) ? w->dim[2] : 1;
    g->kw = w->dim[r - 1];
    g->ic = x->dim[1] / g->groups;
    if (g->form == ETC_TRANSPOSED) {
        g->oc = w->dim[1];
    } else {
        g->oc = w->dim[0] / g->groups;
    }
    if (((x->dim[1] % g->groups) != 0) || (g->ic < 1) || (g->kh < 1) || (g->kw < 1) ||
        (g->ih < 1) || (g->iw < 1)) {
        return 0;
    }
    if ((g->form == ETC_TRANSPOSED) ? (w->dim[0] != x->dim[1])
                             : ((w->dim[1] != g->ic) || ((w->dim[0] % g->groups) != 0))) {
        return 0;
    }
    g->oh = out_size(g, g->ih, g->kh, g->sh, g->ph, g->dh, output_pad[0]);
    g->ow = out_size(g, g->iw, g->kw, g->sw, g->pw, g->dw, output_pad[1]);
    return (g->oh > 0) && (g->ow > 0) &&
           ((bias == NULL) || (etc_numel(bias) == (g->oc * g->groups)));
}

/* -- double and integers ------------------------------------------------------------------- */

typedef struct Wide {
    const EtcCall *c;
    const EtcTensor *x, *w;
    EtcKind kind;
    EtcConv g;
} Wide;

/* Returns `sum` plus the terms of one row of taps: the pixels of x's row `iy` from column ix on
 * times the taps of w from `at` on. */
static EtcWide add_row(const Wide *o, EtcWide sum, int64_t plane, int64_t iy, int64_t ix,
                       int64_t at)
{
    const EtcConv *g = &o->g;
    if ((iy < 0) || (iy >= g->ih)) {
        return sum;
    }
    const int64_t from = (ix < 0) ? ((g->dw - 1 - ix) / g->dw) : 0;
    const int64_t to = (ix < g->iw) ? etc_min_i64((g->iw - ix + g->dw - 1) / g->dw, g->kw) : 0;
    const EtcLine pixels = {o->x, (((plane * g->ih) + iy) * g->iw) + ix + (from * g->dw), g->dw};
    const EtcLine taps = {o->w, at + from, 1};
    return etc_wide_dot(o->c, o->kind, sum, pixels, taps, to - from);
}

/* Returns `sum` plus the terms of output oy, ox of channel `oc`; `plane` is the first input plane
 * of the channel's group. */
static EtcWide sum_taps(const Wide *o, EtcWide sum, int64_t plane, int64_t oc, int64_t oy,
                        int64_t ox)
{
    const EtcConv *g = &o->g;
    for (int64_t i = 0; i < (g->ic * g->kh); i++) {
        const int64_t iy = (oy * g->sh) - g->ph + ((i % g->kh) * g->dh);
        sum = add_row(o, sum, plane + (i / g->kh), iy, (ox * g->sw) - g->pw,
                      ((oc * g->ic * g->kh) + i) * g->kw);
    }
    return sum;
}

/* Does the same for a transposed convolution; `oc` is counted in its group.  A tap counts only if
 * its position is a multiple of the stride and the quotient is a pixel of the image. */
static EtcWide sum_taps_back(const Wide *o, EtcWide sum, int64_t plane, int64_t oc, int64_t oy,
                             int64_t ox)
{
    const EtcConv *g = &o->g;
    const int64_t taps = g->kh * g->kw;
    for (int64_t i = 0; i < (g->ic * taps); i++) {
        const int64_t ky = (i % taps) / g->kw, kx = i % g->kw, ic = plane + (i / taps);
        const int64_t y = oy + g->ph - (ky * g->dh), x = ox + g->pw - (kx * g->dw);
        if ((y < 0) || (x < 0) || ((y % g->sh) != 0) || ((x % g->sw) != 0) ||
            ((y / g->sh) >= g->ih) || ((x / g->sw) >= g->iw)) {
            continue;
        }
        const int64_t in_group = ic % (g->ic * g->groups);
        const EtcLine pixel = {o->x, (((ic * g->ih) + (y / g->sh)) * g->iw) + (x / g->sw), 1};
        const EtcLine tap = {o->w, (((in_group * g->oc) + oc) * taps) + (i % taps), 1};
        sum = etc_wide_dot(o->c, o->kind, sum, pixel, tap, 1);
    }
    return sum;
}

static void convolve_wide(const Wide *o, const EtcTensor *bias, const EtcTensor *y)
{
    const EtcConv *g = &o->g;
    const int64_t pixels = g->oh * g->ow;
    for (int64_t i = 0; i < etc_numel(y); i++) {
        const int64_t channel = (i / pixels) % (g->oc * g->groups), oc = channel % g->oc;
        const int64_t image = i / pixels / (g->oc * g->groups), group = channel / g->oc;
        const int64_t plane = ((image * g->groups) + group) * g->ic;
        const int64_t oy = (i % pixels) / g->ow, ox = i % g->ow;
        const EtcWide start = (bias != NULL) ? etc_wide_get(o->kind, bias, channel)
                                             : etc_wide_zero(o->kind);
        const EtcWide sum = (g->form == ETC_TRANSPOSED) ? sum_taps_back(o, start, plane, oc, oy, ox)
                                          : sum_taps(o, start, plane, channel, oy, ox);
        etc_wide_put(o->kind, sum, y, i);
    }
}

/* ------------------------------------------------------------------------------------------ */

/* Arguments: x, weight, bias, stride, padding, dilation, transposed, output_padding, groups,
 * out. */
EtcStatus etc_convolution(const EtcCall *c)
{
    EtcTensor *x, *w, *bias, *y;
    EtcConv g;
    int64_t output_pad[2], dim[4];
    memset(&g, 0, sizeof g);
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &w) ||
        !etc_arg_opt_tensor(c, 2, &bias) || !etc_arg_tensor(c, 9, &y) || (x->rank != w->rank)) {
        return ETC_BAD_ARG;
    }
    if ((x->rank != 3) && (x->rank != 4)) {
        return ETC_UNSUPPORTED;
    }
    if (!read_options(c, x->rank - 2, &g, output_pad) || !read_shapes(x, w, bias, output_pad, &g)) {
        return ETC_BAD_ARG;
    }
    dim[0] = g.n;
    dim[1] = g.oc * g.groups;
    dim[2] = g.oh;
    dim[x->rank - 1] = g.ow;
    EtcStatus st = etc_resize64(y, dim, x->rank);
    if (st != ETC_OK) {
        return st;
    }
    if ((etc_kind((int)x->dtype) == ETC_KIND_NONE) || (w->dtype != x->dtype) ||
        (y->dtype != x->dtype) || ((bias != NULL) && (bias->dtype != x->dtype)) ||
        !etc_is_plain(x) || !etc_is_plain(w) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if (!etc_may_work(c, etc_numel((g.form == ETC_TRANSPOSED) ? x : y),
                      ((g.form == ETC_TRANSPOSED) ? g.oc : g.ic) * g.kh * g.kw)) {
        return ETC_TOO_MUCH;
    }
    if (ETC_HAS_WIDE && (etc_numel(y) > 0) && (x->dtype != ETC_F32)) {
        const Wide o = {c, x, w, etc_wide_kind((int)x->dtype), g};
        convolve_wide(&o, bias, y);
    } else if (etc_numel(y) > 0) {
        etc_cores_of(c)->conv((const float *)x->data, (const float *)w->data,
                       (bias != NULL) ? (const float *)bias->data : NULL, (float *)y->data, &g,
                       c->scratch);
    }
    return ETC_OK;
}
