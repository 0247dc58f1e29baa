/* softmax.c -- wrappers of softmax and log_softmax along any dimension. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"

/* As softmax.h, in double. */
static void softmax_f64(const double *x, double *y, int64_t n, int64_t stride, int is_log)
{
    double max = -__builtin_inf(), sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        max = ((max > x[i * stride]) || (max != max)) ? max : x[i * stride];
    }
    for (int64_t i = 0; i < n; i++) {
        sum += etc_exp_f64(x[i * stride] - max);
    }
    const double log_sum = etc_log_f64(sum);
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i * stride] - max;
        y[i * stride] = is_log ? (d - log_sum) : (etc_exp_f64(d) / sum);
    }
}

/* x, dim, half_to_float, out */
static EtcStatus run(const EtcCall *c, int is_log)
{
    EtcTensor *x, *y;
    int64_t dim, outer = 1, inner = 1;
    int half_to_float;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) ||
        !etc_arg_bool(c, 2, &half_to_float) || !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    const int32_t d = etc_dim(dim, x->rank);
    EtcStatus st = (d < 0) ? ETC_BAD_ARG : etc_resize(y, x->dim, x->rank);
    if ((st != ETC_OK) || (x->dtype != y->dtype) || half_to_float) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_float((int)x->dtype) || !etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if (etc_numel(x) == 0) {
        return ETC_OK;
    }
    const int64_t n = (x->rank > 0) ? x->dim[d] : 1;
    for (int32_t i = 0; i < x->rank; i++) {
        outer *= (i < d) ? x->dim[i] : 1;
        inner *= (i > d) ? x->dim[i] : 1;
    }
    for (int64_t i = 0; i < outer; i++) {
        for (int64_t j = 0; j < inner; j++) {
            const int64_t at = (i * n * inner) + j;
            if (ETC_HAS(ETC_F64) && (x->dtype == ETC_F64)) {
                softmax_f64((const double *)x->data + at, (double *)y->data + at, n, inner, is_log);
            } else {
                etc_cores_of(c)->softmax((const float *)x->data + at, (float *)y->data + at, n, inner,
                                  is_log);
            }
        }
    }
    return ETC_OK;
}

EtcStatus etc_softmax(const EtcCall *c)
{
    return run(c, 0);
}

EtcStatus etc_log_softmax(const EtcCall *c)
{
    return run(c, 1);
}
