/* norm.c -- wrapper of batch norm in inference. */
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
