/* norm.c -- wrappers of batch norm in inference and of layer norm. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include "runtime-lite/kernels/wide.h"

/* Returns whether t is NULL, or has `channels` elements and x's dtype. */
static int is_channel_vector(const EtcTensor *t, const EtcTensor *x, int64_t channels)
{
    return (t == NULL) || ((t->dtype == x->dtype) && (etc_numel(t) == channels));
}

static int is_like(const EtcTensor *t, const EtcTensor *x)
{
    return (t->dtype == x->dtype) && etc_is_plain(t);
}

static void normalize(const EtcCall *c, const EtcTensor *x, const EtcTensor *const p[4], float eps,
                      EtcTensor *y)
{
    const int64_t channels = x->dim[1], rows = (int64_t)x->dim[0] * channels;
    const int64_t plane = etc_numel(x) / rows;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t ch = i % channels;
        float v[4] = {1.0f, 0.0f, 0.0f, 1.0f}, scale, shift;
        for (int k = 0; k < 4; k++) {
            v[k] = (p[k] != NULL) ? ((const float *)p[k]->data)[ch] : v[k];
        }
        etc_batch_norm_fold(v[0], v[1], v[2], v[3], eps, &scale, &shift);
        etc_cores_of(c)->scale_shift((const float *)x->data + (i * plane), scale, shift,
                              (float *)y->data + (i * plane), plane);
    }
}

/* Does what normalize does, in double; p holds weight, bias, mean and variance. */
static void normalize_f64(const EtcTensor *x, const EtcTensor *const p[4], double eps,
                          const EtcTensor *y)
{
    const int64_t channels = x->dim[1], rows = (int64_t)x->dim[0] * channels;
    const int64_t plane = etc_numel(x) / rows;
    for (int64_t i = 0; i < rows; i++) {
        const double *from = (const double *)x->data + (i * plane);
        double *to = (double *)y->data + (i * plane), v[4] = {1.0, 0.0, 0.0, 1.0};
        for (int k = 0; k < 4; k++) {
            v[k] = (p[k] != NULL) ? ((const double *)p[k]->data)[i % channels] : v[k];
        }
        const double scale = v[0] / __builtin_sqrt(v[3] + eps), shift = v[1] - (v[2] * scale);
        for (int64_t k = 0; k < plane; k++) {
            to[k] = (from[k] * scale) + shift;
        }
    }
}

/* Arguments: x[n, channels, ...], weight, bias, mean, var, momentum, eps, out, and two outs that
 * stay empty. */
EtcStatus etc_native_batch_norm(const EtcCall *c)
{
    EtcTensor *x, *weight, *bias, *mean, *var, *y, *empty[2];
    double eps, momentum;
    const int64_t zero = 0;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_opt_tensor(c, 1, &weight) ||
        !etc_arg_opt_tensor(c, 2, &bias) || !etc_arg_tensor(c, 3, &mean) ||
        !etc_arg_tensor(c, 4, &var) || !etc_arg_double(c, 5, &momentum) ||
        !etc_arg_double(c, 6, &eps) || !etc_arg_tensor(c, 7, &y) ||
        !etc_arg_tensor(c, 8, &empty[0]) || !etc_arg_tensor(c, 9, &empty[1]) || (x->rank < 2)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = etc_resize(y, x->dim, x->rank);
    st = (st == ETC_OK) ? etc_resize64(empty[0], &zero, 1) : st;
    st = (st == ETC_OK) ? etc_resize64(empty[1], &zero, 1) : st;
    if (st != ETC_OK) {
        return st;
    }
    if (!etc_is_float((int)x->dtype) || !is_like(x, x) || !is_like(y, x)) {
        return ETC_UNSUPPORTED;
    }
    const int64_t n = x->dim[1];
    if (!is_channel_vector(weight, x, n) || !is_channel_vector(bias, x, n) ||
        !is_channel_vector(mean, x, n) || !is_channel_vector(var, x, n)) {
        return ETC_BAD_ARG;
    }
    const EtcTensor *const p[4] = {weight, bias, mean, var};
    if (ETC_HAS(ETC_F64) && (etc_numel(x) > 0) && (x->dtype == ETC_F64)) {
        normalize_f64(x, p, eps, y);
    } else if (etc_numel(x) > 0) {
        normalize(c, x, p, (float)eps, y);
    }
    return ETC_OK;
}

/* -- layer norm -------------------------------------------------------------------------- */

/* Arguments 0 to 4 of a layer norm, which have been checked; n is the length of a row. */
typedef struct LayerNorm {
    EtcTensor *x, *weight, *bias;
    double eps;
    int32_t axes; /* the number of normalized axes, which are the last */
    int64_t n;
} LayerNorm;

static int has_row_shape(const EtcTensor *t, const LayerNorm *a)
{
    for (int32_t i = 0; (t != NULL) && (i < a->axes); i++) {
        if ((t->rank != a->axes) || (t->dim[i] != a->x->dim[a->x->rank - a->axes + i])) {
            return 0;
        }
    }
    return (t == NULL) || ((t->dtype == a->x->dtype) && (etc_is_plain(t) != 0));
}

static int read_layer_norm(const EtcCall *c, LayerNorm *a)
{
    EtcInts shape;
    if (!etc_arg_tensor(c, 0, &a->x) || !etc_arg_ints(c, 1, &shape) ||
        !etc_arg_opt_tensor(c, 2, &a->weight) || !etc_arg_opt_tensor(c, 3, &a->bias) ||
        !etc_arg_double(c, 4, &a->eps) || (shape.n < 1) || (shape.n > a->x->rank)) {
        return 0;
    }
    a->axes = shape.n;
    a->n = 1;
    for (int32_t i = 0; i < shape.n; i++) {
        if (shape.v[i] != a->x->dim[a->x->rank - shape.n + i]) {
            return 0;
        }
        a->n *= shape.v[i];
    }
    return has_row_shape(a->weight, a) && has_row_shape(a->bias, a);
}

static const float *floats(const EtcTensor *t)
{
    return (t != NULL) ? (const float *)t->data : NULL;
}

/* Computes the layer norm in double; mean and rstd are both given or both NULL. */
static void layer_norm_f64(const LayerNorm *a, const EtcTensor *y, const EtcTensor *mean,
                           const EtcTensor *rstd)
{
    const EtcTensor *const p[2] = {a->weight, a->bias};
    for (int64_t r = 0; r < (etc_numel(a->x) / a->n); r++) {
        const double *x = (const double *)a->x->data + (r * a->n);
        double *to = (double *)y->data + (r * a->n), m, by;
        etc_wide_moments(x, a->n, a->eps, &m, &by);
        for (int64_t i = 0; i < a->n; i++) {
            const double w = (p[0] != NULL) ? ((const double *)p[0]->data)[i] : 1.0;
            const double b = (p[1] != NULL) ? ((const double *)p[1]->data)[i] : 0.0;
            to[i] = (((x[i] - m) * by) * w) + b;
        }
        if (mean != NULL) {
            ((double *)mean->data)[r] = m;
            ((double *)rstd->data)[r] = by;
        }
    }
}

/* Computes the layer norm; mean and rstd are both given or both NULL. */
static EtcStatus layer_norm(const EtcCall *c, const LayerNorm *a, EtcTensor *y, EtcTensor *mean,
                            EtcTensor *rstd)
{
    if (!etc_is_float((int)a->x->dtype) || !is_like(a->x, a->x) || !is_like(y, a->x)) {
        return ETC_UNSUPPORTED;
    }
    if (ETC_HAS(ETC_F64) && (etc_numel(a->x) > 0) && (a->x->dtype == ETC_F64)) {
        layer_norm_f64(a, y, mean, rstd);
    } else if (etc_numel(a->x) > 0) {
        etc_cores_of(c)->layer_norm((const float *)a->x->data, floats(a->weight), floats(a->bias),
                             (float)a->eps, (float *)y->data, etc_numel(a->x) / a->n, a->n,
                             (mean != NULL) ? (float *)mean->data : NULL,
                             (rstd != NULL) ? (float *)rstd->data : NULL);
    }
    return ETC_OK;
}

/* Arguments: x, normalized_shape, weight, bias, eps, cudnn_enable, out. */
EtcStatus etc_layer_norm(const EtcCall *c)
{
    LayerNorm a;
    EtcTensor *y;
    if (!read_layer_norm(c, &a) || !etc_arg_tensor(c, 6, &y)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = etc_resize(y, a.x->dim, a.x->rank);
    return (st == ETC_OK) ? layer_norm(c, &a, y, NULL, NULL) : st;
}

/* Arguments: x, normalized_shape, weight, bias, eps, out, mean, rstd.  In mean and rstd, the
 * normalized axes have size 1. */
EtcStatus etc_native_layer_norm(const EtcCall *c)
{
    LayerNorm a;
    EtcTensor *y, *mean, *rstd;
    int32_t dim[ETC_MAX_RANK];
    if (!read_layer_norm(c, &a) || !etc_arg_tensor(c, 5, &y) || !etc_arg_tensor(c, 6, &mean) ||
        !etc_arg_tensor(c, 7, &rstd)) {
        return ETC_BAD_ARG;
    }
    for (int32_t i = 0; i < a.x->rank; i++) {
        dim[i] = (i < (a.x->rank - a.axes)) ? a.x->dim[i] : 1;
    }
    EtcStatus st = etc_resize(y, a.x->dim, a.x->rank);
    st = (st == ETC_OK) ? etc_resize(mean, dim, a.x->rank) : st;
    st = (st == ETC_OK) ? etc_resize(rstd, dim, a.x->rank) : st;
    if (st != ETC_OK) {
        return st;
    }
    if ((mean->dtype != a.x->dtype) || (rstd->dtype != a.x->dtype)) {
        return ETC_UNSUPPORTED;
    }
    return layer_norm(c, &a, y, mean, rstd);
}
