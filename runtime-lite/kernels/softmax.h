/* softmax.h -- softmax and log_softmax of one row, whose elements may have a stride; y may be x.
 *
 * The results are e^(x - max) / sum and (x - max) - ln sum.  reduce.h defines the order of the sum.
 */
#ifndef ETC_SOFTMAX_H
#define ETC_SOFTMAX_H

#include "runtime-lite/kernels/math.h"
#include "runtime-lite/kernels/reduce.h"

/* Loads n floats that are `stride` apart, or a whole vector if n is larger.  The other lanes become
 * zero. */
ETC_INLINE EtcF etc_load_apart(const float *x, int64_t stride, int64_t n)
{
    EtcF v = ETC_REP(0.0f);
    if (stride == 1) {
        return etc_load(x, n);
    }
    for (int64_t i = 0; i < etc_min_i64(n, ETC_LANES); i++) {
        v[i] = x[i * stride];
    }
    return v;
}

ETC_INLINE void etc_store_apart(float *y, int64_t stride, int64_t n, EtcF v)
{
    if (stride == 1) {
        etc_store(y, n, v);
        return;
    }
    for (int64_t i = 0; i < etc_min_i64(n, ETC_LANES); i++) {
        y[i * stride] = v[i];
    }
}

/* Computes the softmax, or with is_log the log_softmax, of n floats, which are `stride` floats
 * apart in x and in y. */
ETC_OUTLINE void etc_softmax_f32(const float *x, float *y, int64_t n, int64_t stride, int is_log)
{
    float part[ETC_SUM_BLOCK];
    float max = -__builtin_inff();
    EtcSum sum;
    for (int64_t i = 0; i < n; i++) {
        max = ((max > x[i * stride]) || (max != max)) ? max : x[i * stride];
    }
    const EtcF top = etc_splat(max);
    etc_sum_start(&sum);
    for (int64_t i = 0; i < n; i += ETC_SUM_BLOCK) {
        const int64_t m = etc_min_i64(n - i, ETC_SUM_BLOCK);
        for (int64_t j = 0; j < m; j += ETC_LANES) {
            const EtcF d = etc_load_apart(x + ((i + j) * stride), stride, m - j) - top;
            etc_storeu(part + j, etc_vexp(d));
        }
        etc_sum_f32(part, m, &sum);
    }
    const EtcF by = etc_splat(etc_sum_end(&sum)), log_by = etc_vlog(by);
    for (int64_t i = 0; i < n; i += ETC_LANES) {
        const EtcF d = etc_load_apart(x + (i * stride), stride, n - i) - top;
        const EtcF r = (is_log != 0) ? (d - log_by) : (etc_vexp(d) / by);
        etc_store_apart(y + (i * stride), stride, n - i, r);
    }
}

#endif
