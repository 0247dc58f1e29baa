/* group_norm.c -- wrappers of normalization in groups: float and double. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include "runtime-lite/kernels/wide.h"
#include <string.h>

typedef struct Norm {
    EtcTensor *x, *weight, *bias, *y, *mean, *rstd; /* all but x and y may be NULL */
    int64_t groups;
    double eps;
} Norm;

static int is_like(const EtcTensor *t, const EtcTensor *x)
{
    return (t == NULL) || ((t->dtype == x->dtype) && etc_is_plain(t));
}

static int is_channel_vector(const EtcTensor *t, const EtcTensor *x)
{
    return (t == NULL) || (is_like(t, x) && (t->rank == 1) && (t->dim[0] == x->dim[1]));
}

static EtcStatus resize(const Norm *a)
{
    const int64_t stat[2] = {a->x->dim[0], a->groups};
    EtcStatus st = etc_resize(a->y, a->x->dim, a->x->rank);
    if ((st == ETC_OK) && (a->mean != NULL)) {
        st = etc_resize64(a->mean, stat, 2);
    }
    if ((st == ETC_OK) && (a->rstd != NULL)) {
        st = etc_resize64(a->rstd, stat, 2);
    }
    return st;
}

static void fill(EtcTensor *t, double value)
{
    for (int64_t i = 0; (t != NULL) && (i < etc_numel(t)); i++) {
        etc_put(ETC_KIND_F64, &value, (int)t->dtype, etc_at(t, i), 1, 1);
    }
}

static float *data_of(const EtcTensor *t)
{
    return (t != NULL) ? (float *)t->data : NULL;
}

static double double_at(const EtcTensor *t, int64_t i, double otherwise)
{
    return (t != NULL) ? ((const double *)t->data)[i] : otherwise;
}

/* Does what the core of group_norm.h does, in double. */
static void normalize_f64(const Norm *a, const EtcGroupNorm *g)
{
    const int64_t each = g->channels * g->inner;
    for (int64_t i = 0; i < (g->n * g->groups); i++) {
        const double *x = (const double *)a->x->data + (i * each);
        double *y = (double *)a->y->data + (i * each), m, r;
        etc_wide_moments(x, each, a->eps, &m, &r);
        for (int64_t k = 0; k < each; k++) {
            const int64_t channel = ((i % g->groups) * g->channels) + (k / g->inner);
            y[k] = ((x[k] - m) * (r * double_at(a->weight, channel, 1.0))) +
                   double_at(a->bias, channel, 0.0);
        }
        if (a->mean != NULL) {
            ((double *)a->mean->data)[i] = m;
        }
        if (a->rstd != NULL) {
            ((double *)a->rstd->data)[i] = r;
        }
    }
}

static EtcStatus normalize(const EtcCall *c, const Norm *a)
{
    EtcGroupNorm g;
    if ((a->x->rank < 2) || (a->groups < 1) || ((a->x->dim[1] % a->groups) != 0) ||
        !is_channel_vector(a->weight, a->x) || !is_channel_vector(a->bias, a->x)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = resize(a);
    if (st != ETC_OK) {
        return st;
    }
    if (!etc_is_float((int)a->x->dtype) || !is_like(a->x, a->x) || !is_like(a->y, a->x) ||
        !is_like(a->mean, a->x) || !is_like(a->rstd, a->x)) {
        return ETC_UNSUPPORTED;
    }
    if (etc_numel(a->x) == 0) { /* without elements, mean is 0 and rstd is NaN */
        fill(a->mean, 0.0);
        fill(a->rstd, __builtin_nan(""));
        return ETC_OK;
    }
    memset(&g, 0, sizeof g);
    g.n = a->x->dim[0];
    g.groups = a->groups;
    g.channels = a->x->dim[1] / a->groups;
    g.inner = etc_numel(a->x) / g.n / a->x->dim[1];
    g.eps = (float)a->eps;
    if (ETC_HAS(ETC_F64) && (a->x->dtype == ETC_F64)) {
        normalize_f64(a, &g);
        return ETC_OK;
    }
    etc_cores_of(c)->group_norm(data_of(a->x), data_of(a->weight), data_of(a->bias), data_of(a->y),
                         data_of(a->mean), data_of(a->rstd), &g);
    return ETC_OK;
}

/* Arguments: x, groups, weight, bias, eps, cudnn_enabled, out. */
EtcStatus etc_group_norm(const EtcCall *c)
{
    Norm a = {NULL, NULL, NULL, NULL, NULL, NULL, 0, 0.0};
    if (!etc_arg_tensor(c, 0, &a.x) || !etc_arg_int(c, 1, &a.groups) ||
        !etc_arg_opt_tensor(c, 2, &a.weight) || !etc_arg_opt_tensor(c, 3, &a.bias) ||
        !etc_arg_double(c, 4, &a.eps) || !etc_arg_tensor(c, 6, &a.y)) {
        return ETC_BAD_ARG;
    }
    return normalize(c, &a);
}

/* Arguments: x, weight, bias, N, C, HxW, groups, eps, out, mean, rstd. */
EtcStatus etc_native_group_norm(const EtcCall *c)
{
    Norm a = {NULL, NULL, NULL, NULL, NULL, NULL, 0, 0.0};
    int64_t n, channels, inner;
    if (!etc_arg_tensor(c, 0, &a.x) || !etc_arg_opt_tensor(c, 1, &a.weight) ||
        !etc_arg_opt_tensor(c, 2, &a.bias) || !etc_arg_int(c, 3, &n) ||
        !etc_arg_int(c, 4, &channels) || !etc_arg_int(c, 5, &inner) ||
        !etc_arg_int(c, 6, &a.groups) || !etc_arg_double(c, 7, &a.eps) ||
        !etc_arg_tensor(c, 8, &a.y) || !etc_arg_tensor(c, 9, &a.mean) ||
        !etc_arg_tensor(c, 10, &a.rstd) || (a.x->rank < 2)) {
        return ETC_BAD_ARG;
    }
    int64_t rest = 1;
    for (int32_t d = 2; d < a.x->rank; d++) {
        rest *= a.x->dim[d];
    }
    return ((n == a.x->dim[0]) && (channels == a.x->dim[1]) && (inner == rest))
               ? normalize(c, &a)
               : ETC_BAD_ARG;
}
