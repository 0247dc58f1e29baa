/* integer.c -- wrappers of linear layers and convolutions of 8-bit integers. */
#include "runtime-lite/kernels/integer_conv.h"
#include "runtime-lite/kernels/integer_linear.h"
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

/* Returns whether t is a plain tensor of this dtype with n elements. */
static int is_vector(const EtcTensor *t, EtcDtype dtype, int64_t n)
{
    return (t->dtype == dtype) && (etc_numel(t) == n) && etc_is_plain(t);
}

/* Returns whether the given sums are those of the weights.  Emitted code does not check this. */
static int sums_fit(const EtcTensor *sums, const EtcTensor *w)
{
    const int64_t n = w->dim[0], k = etc_numel(w) / n;
    const int8_t *at = (const int8_t *)w->data;
    for (int64_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int64_t j = 0; j < k; j++) {
            sum += *at++;
        }
        if (sum != ((const int32_t *)sums->data)[i]) {
            return 0;
        }
    }
    return 1;
}

/* Reads the bias at argument 2, the sums at argument i and the scales at i + 1. */
static EtcStatus read_channels(const EtcCall *c, int32_t i, const EtcTensor *w, EtcInteger *q)
{
    EtcTensor *bias, *sums, *scales;
    if (!etc_arg_opt_tensor(c, 2, &bias) || !etc_arg_tensor(c, i, &sums) ||
        !etc_arg_tensor(c, i + 1, &scales)) {
        return ETC_BAD_ARG;
    }
    const int64_t n = w->dim[0];
    if ((n < 1) || ((etc_numel(w) / n) < 1) || ((etc_numel(w) / n) > ETC_INTEGER_K) ||
        (w->dtype != ETC_I8) || !etc_is_plain(w) || !is_vector(sums, ETC_I32, n) ||
        !is_vector(scales, ETC_F32, n) || ((bias != NULL) && !is_vector(bias, ETC_F32, n)) ||
        !sums_fit(sums, w)) {
        return ETC_BAD_ARG;
    }
    q->sums = (const int32_t *)sums->data;
    q->scales = (const float *)scales->data;
    q->bias = (bias != NULL) ? (const float *)bias->data : NULL;
    return ETC_OK;
}

/* Reads input_scale, input_zero and zero_point from argument i on.  Each of the `rows` of x may
 * have its own scale and zero point. */
static EtcStatus read_input(const EtcCall *c, int32_t i, const EtcTensor *x, int64_t rows,
                            EtcInteger *q)
{
    EtcTensor *scale, *zero;
    int64_t at;
    if (!etc_arg_opt_tensor(c, i, &scale) || !etc_arg_opt_tensor(c, i + 1, &zero) ||
        !etc_arg_int(c, i + 2, &at) || ((scale == NULL) != (zero == NULL))) {
        return ETC_BAD_ARG;
    }
    const int64_t least = (x->dtype == ETC_I8) ? -128 : 0;
    if (((x->dtype != ETC_I8) && (x->dtype != ETC_U8)) || !etc_is_plain(x) || (at < least) ||
        (at > (least + 255))) {
        return ETC_BAD_ARG;
    }
    q->x_is_signed = x->dtype == ETC_I8;
    q->zero = (int32_t)at;
    if (scale == NULL) {
        return ETC_OK;
    }
    const int64_t n = etc_numel(scale);
    if (((scale->dtype != ETC_F32) && (scale->dtype != ETC_F64)) || !etc_is_int((int)zero->dtype) ||
        (zero->dtype > ETC_I64) || ((n != 1) && (n != rows)) || (etc_numel(zero) != n) ||
        !etc_is_plain(scale) || !etc_is_plain(zero)) {
        return ETC_BAD_ARG;
    }
    q->x_scale = scale->data;
    q->x_zero = zero->data;
    q->scale_dtype = (int32_t)scale->dtype;
    q->zero_dtype = (int32_t)zero->dtype;
    q->has_rows = n != 1;
    return ETC_OK;
}

/* Reads lo, hi, output_scale, output_zero, quant_min, quant_max and the result from argument i on.
 * The dtype before the result is not read. */
static EtcStatus read_output(const EtcCall *c, int32_t i, EtcTensor **y, EtcInteger *q)
{
    double lo, hi;
    EtcScalar scale = {0, 0, 0.0, 0};
    int64_t zero, least, most;
    if (!etc_arg_double(c, i, &lo) || !etc_arg_double(c, i + 1, &hi) ||
        !etc_arg_opt_scalar(c, i + 2, &scale) || !etc_arg_int(c, i + 3, &zero) ||
        !etc_arg_int(c, i + 4, &least) || !etc_arg_int(c, i + 5, &most) ||
        !etc_arg_tensor(c, i + 7, y)) {
        return ETC_BAD_ARG;
    }
    q->lo = (float)lo;
    q->hi = (float)hi;
    q->is_float = (*y)->dtype == ETC_F32;
    const int64_t from = ((*y)->dtype == ETC_I8) ? -128 : 0;
    if (((q->is_float == 0) && ((*y)->dtype != ETC_I8) && ((*y)->dtype != ETC_U8)) ||
        ((q->is_float == 0) && (!(scale.d > 0.0) || (least < from) || (most > (from + 255)) ||
                                (least > most) || (zero < from) || (zero > (from + 255))))) {
        return ETC_BAD_ARG;
    }
    if (q->is_float == 0) {
        q->inverse = (float)(1.0 / scale.d);
        q->y_zero = (int32_t)zero;
        q->y_lo = (int32_t)least;
        q->y_hi = (int32_t)most;
    }
    return ETC_OK;
}

/* Arguments: input, weight, bias, and from 3 on those that read_channels, read_input and
 * read_output read. */
EtcStatus etc_integer_linear(const EtcCall *c)
{
    EtcTensor *x, *w, *y;
    EtcInteger q;
    EtcIntegerLinear g;
    int64_t dim[ETC_MAX_RANK];
    memset(&q, 0, sizeof q);
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &w) || (x->rank < 1) ||
        (w->rank != 2) || (w->dim[1] != x->dim[x->rank - 1]) || (w->dim[1] < 1)) {
        return ETC_BAD_ARG;
    }
    g.n = w->dim[0];
    g.k = w->dim[1];
    g.m = etc_numel(x) / g.k;
    EtcStatus st = read_channels(c, 3, w, &q);
    st = (st == ETC_OK) ? read_input(c, 5, x, g.m, &q) : st;
    st = (st == ETC_OK) ? read_output(c, 8, &y, &q) : st;
    if (st != ETC_OK) {
        return st;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        dim[i] = (i < (x->rank - 1)) ? x->dim[i] : g.n;
    }
    st = etc_resize64(y, dim, x->rank);
    if ((st == ETC_OK) && !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(y), g.k)) {
        return ETC_TOO_MUCH;
    }
    if ((st == ETC_OK) && (etc_numel(y) > 0)) {
        etc_cores_of(c)->linear_i8(x->data, (const int8_t *)w->data, y->data, &g, &q);
    }
    return st;
}

/* Reads one number per axis of an image, that of the rows first; if there is one axis, v[0] is
 * `none`. */
static int read_pair(const EtcCall *c, int32_t i, int32_t axes, int64_t lo, int64_t none,
                     int64_t v[2])
{
    EtcInts ints;
    if (!etc_arg_ints(c, i, &ints) || (ints.n != axes)) {
        return 0;
    }
    v[0] = (axes == 2) ? ints.v[0] : none;
    v[1] = ints.v[axes - 1];
    return (v[0] >= lo) && (v[1] >= lo) && (v[0] <= INT32_MAX) && (v[1] <= INT32_MAX);
}

static int64_t out_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation)
{
    const int64_t room = size + (2 * pad) - (dilation * (kernel - 1)) - 1;
    return (room < 0) ? 0 : ((room / stride) + 1);
}

static int read_conv(const EtcCall *c, const EtcTensor *x, const EtcTensor *w, EtcConv *g)
{
    const int32_t r = x->rank, axes = r - 2;
    int64_t s[2], p[2], d[2];
    memset(g, 0, sizeof *g);
    if (!read_pair(c, 3, axes, 1, 1, s) || !read_pair(c, 4, axes, 0, 0, p) ||
        !read_pair(c, 5, axes, 1, 1, d) || !etc_arg_int(c, 6, &g->groups) || (g->groups < 1) ||
        (g->groups > INT32_MAX) || ((w->dim[0] % g->groups) != 0) ||
        (x->dim[1] != ((int64_t)w->dim[1] * g->groups))) {
        return 0;
    }
    const EtcConv all = {.n = x->dim[0], .groups = g->groups,
                         .ic = w->dim[1], .ih = (r == 4) ? x->dim[2] : 1, .iw = x->dim[r - 1],
                         .oc = w->dim[0] / g->groups,
                         .kh = (r == 4) ? w->dim[2] : 1, .kw = w->dim[r - 1],
                         .sh = s[0], .sw = s[1], .ph = p[0], .pw = p[1], .dh = d[0], .dw = d[1]};
    *g = all;
    g->oh = out_size(g->ih, g->kh, g->sh, g->ph, g->dh);
    g->ow = out_size(g->iw, g->kw, g->sw, g->pw, g->dw);
    return (g->ic > 0) && (g->ih > 0) && (g->iw > 0) && (g->kh > 0) && (g->kw > 0) &&
           (g->oh > 0) && (g->ow > 0);
}

/* Arguments: input, weight, bias, stride, padding, dilation, groups, and from 7 on those that
 * read_channels, read_input and read_output read. */
EtcStatus etc_integer_convolution(const EtcCall *c)
{
    EtcTensor *x, *w, *y;
    EtcInteger q;
    EtcConv g;
    int64_t dim[4];
    memset(&q, 0, sizeof q);
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &w) || (x->rank < 3) || (x->rank > 4) ||
        (w->rank != x->rank) || !read_conv(c, x, w, &g)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = read_channels(c, 7, w, &q);
    st = (st == ETC_OK) ? read_input(c, 9, x, 1, &q) : st;
    st = (st == ETC_OK) ? read_output(c, 12, &y, &q) : st;
    if (st != ETC_OK) {
        return st;
    }
    dim[0] = g.n;
    dim[1] = g.oc * g.groups;
    dim[2] = g.oh;
    dim[x->rank - 1] = g.ow;
    st = etc_resize64(y, dim, x->rank);
    if ((st == ETC_OK) && !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(y), g.ic * g.kh * g.kw)) {
        return ETC_TOO_MUCH;
    }
    if ((st == ETC_OK) && (etc_numel(y) > 0)) {
        etc_cores_of(c)->conv_i8(x->data, (const int8_t *)w->data, y->data, &g, &q, c->scratch);
    }
    return st;
}
