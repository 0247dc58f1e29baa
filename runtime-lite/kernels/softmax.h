/* softmax.h -- softmax and log_softmax along one dimension; y may be x.
 *
 * The results are e^(x - max) / sum and (x - max) - ln sum.  reduce.h defines the order of the sum.
 */
#ifndef ETC_SOFTMAX_H
#define ETC_SOFTMAX_H

#include "runtime-lite/kernels/math.h"
#include "runtime-lite/kernels/reduce.h"

/* Stores the results of m elements from d = x - max and e = e^d.  by: the sum, or its logarithm. */
ETC_INLINE void etc_softmax_put(float *y, int64_t m, EtcF d, EtcF e, EtcF by, int is_log)
{
    etc_store(y, m, (is_log != 0) ? (d - by) : (e / by));
}

/* Computes the softmax of n floats that are next to each other. */
ETC_OUTLINE void etc_softmax_row(const float *x, float *y, int64_t n, int is_log)
{
    const EtcI iota = ETC_IOTA;
    const EtcF top = etc_splat(etc_amax_f32(x, n, -__builtin_inff()));
    EtcSum sum, block;
    etc_sum_start(&sum);
    for (int64_t from = 0; from < n; from += ETC_SUM_BLOCK) {
        const int64_t to = etc_min_i64(n, from + ETC_SUM_BLOCK);
        etc_sum_start(&block);
        for (int64_t i = from; i < to; i += ETC_LANES) {
            float *lane = block.lane + (i % 16);
            EtcF e = etc_exp_below(etc_load(x + i, to - i) - top);
            if ((to - i) < ETC_LANES) {
                e = etc_select((EtcI)(iota < etc_splat_i32((int32_t)(to - i))), e, etc_splat(0.0f));
            }
            etc_storeu(lane, etc_loadu(lane) + e);
            if (is_log == 0) {
                etc_store(y + i, to - i, e);
            }
        }
        for (int i = 0; i < 16; i += ETC_LANES) {
            etc_storeu(sum.lane + i, etc_loadu(sum.lane + i) + etc_loadu(block.lane + i));
        }
    }
    const EtcF all = etc_splat(etc_sum_end(&sum)), by = (is_log != 0) ? etc_vlog(all) : all;
    for (int64_t i = 0; i < n; i += ETC_LANES) {
        const EtcF d = etc_load(x + i, n - i) - top;
        etc_softmax_put(y + i, n - i, d, (is_log != 0) ? d : etc_load(y + i, n - i), by, is_log);
    }
}

/* Computes the softmax of m columns, at most ETC_LANES, of n floats that are `inner` apart. */
ETC_OUTLINE void etc_softmax_columns(const float *x, float *y, int64_t n, int64_t inner, int64_t m,
                                     int is_log)
{
    float unused[ETC_LANES];
    float *to = (is_log != 0) ? unused : y;
    const int64_t step = (is_log != 0) ? 0 : inner;
    EtcF top = etc_splat(-__builtin_inff()), sum[16];
    for (int64_t i = 0; i < n; i++) {
        top = etc_max(top, etc_load(x + (i * inner), m));
    }
    for (int64_t lane = 0; lane < 16; lane++) {
        sum[lane] = etc_splat(0.0f);
        for (int64_t from = lane; from < n; from += ETC_SUM_BLOCK) {
            EtcF part = etc_splat(0.0f);
            for (int64_t i = from; i < etc_min_i64(n, from + ETC_SUM_BLOCK); i += 16) {
                const EtcF e = etc_exp_below(etc_load(x + (i * inner), m) - top);
                etc_store(to + (i * step), m, e);
                part += e;
            }
            sum[lane] += part;
        }
    }
    for (int k = 8; k > 0; k /= 2) { /* the tree of etc_sum_end */
        for (int i = 0; i < k; i++) {
            sum[i] += sum[i + k];
        }
    }
    const EtcF by = (is_log != 0) ? etc_vlog(sum[0]) : sum[0];
    for (int64_t i = 0; i < n; i++) {
        const EtcF d = etc_load(x + (i * inner), m) - top, e = etc_load(to + (i * step), m);
        etc_softmax_put(y + (i * inner), m, d, e, by, is_log);
    }
}

/* Computes the softmax, or with is_log the log_softmax, of each column of x [n][inner]. */
ETC_OUTLINE void etc_softmax_f32(const float *x, float *y, int64_t n, int64_t inner, int is_log)
{
    if (inner == 1) {
        etc_softmax_row(x, y, n, is_log);
        return;
    }
    for (int64_t c = 0; c < inner; c += ETC_LANES) {
        etc_softmax_columns(x + c, y + c, n, inner, inner - c, is_log);
    }
}

#endif
