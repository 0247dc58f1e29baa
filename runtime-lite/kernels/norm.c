/* norm.c -- wrappers of batch norm in inference and of layer norm. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"

/* NULL, or float of `channels` elements */
static int is_channel_vector(const EtcTensor *t, int64_t channels)
{
    return (t == NULL) || ((t->dtype == ETC_F32) && (etc_numel(t) == channels));
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
        c->cores->scale_shift((const float *)x->data + (i * plane), scale, shift,
                              (float *)y->data + (i * plane), plane);
    }
}

/* x[n, channels, ...], weight, bias, mean, var, momentum, eps, out, and two outs that stay empty */
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
    if ((x->dtype != ETC_F32) || (y->dtype != ETC_F32) || !etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    const int64_t n = x->dim[1];
    if (!is_channel_vector(weight, n) || !is_channel_vector(bias, n) ||
        !is_channel_vector(mean, n) || !is_channel_vector(var, n)) {
        return ETC_BAD_ARG;
    }
    if (etc_numel(x) > 0) {
        const EtcTensor *const p[4] = {weight, bias, mean, var};
        normalize(c, x, p, (float)eps, y);
    }
    return ETC_OK;
}

/* -- layer norm -------------------------------------------------------------------------- */

/* Arguments 0 to 3 and eps of a layer norm, checked; n is the length of a row. */
typedef struct LayerNorm {
    EtcTensor *x, *weight, *bias;
    double eps;
    int32_t axes; /* normalized */
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

static EtcStatus layer_norm(const EtcCall *c, const LayerNorm *a, EtcTensor *y, float *mean,
                            float *rstd)
{
    if ((a->x->dtype != ETC_F32) || (y->dtype != ETC_F32) || !etc_is_plain(a->x) ||
        !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if (etc_numel(a->x) > 0) {
        c->cores->layer_norm((const float *)a->x->data, floats(a->weight), floats(a->bias),
                             (float)a->eps, (float *)y->data, etc_numel(a->x) / a->n, a->n, mean,
                             rstd);
    }
    return ETC_OK;
}

/* x, normalized_shape, weight, bias, eps, cudnn_enable, out */
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

/* x, normalized_shape, weight, bias, eps, out, mean, rstd: the last two keep axes of size 1 */
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
    if ((mean->dtype != ETC_F32) || (rstd->dtype != ETC_F32)) {
        return ETC_UNSUPPORTED;
    }
    return layer_norm(c, &a, y, (float *)mean->data, (float *)rstd->data);
}
