/* norm.h -- batch norm in inference, x * scale + shift for each channel, and layer norm. */
#ifndef ETC_NORM_H
#define ETC_NORM_H

#include "runtime-lite/kernels/reduce.h"

/* Computes scale = weight / sqrt(var + eps) and shift = bias - mean * scale. */
ETC_INLINE void etc_batch_norm_fold(float weight, float bias, float mean, float var, float eps,
                                    float *scale, float *shift)
{
    const EtcF s = etc_splat(weight) / etc_vsqrt(etc_splat(var) + etc_splat(eps));
    const EtcF t = etc_fma(-etc_splat(mean), s, etc_splat(bias));
    *scale = s[0];
    *shift = t[0];
}

/* Computes y = x * scale + shift, rounded once. */
ETC_INLINE void etc_scale_shift_f32(const float *x, float scale, float shift, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += ETC_LANES) {
        const EtcF v = etc_load(x + i, n - i);
        etc_store(y + i, n - i, etc_fma(v, etc_splat(scale), etc_splat(shift)));
    }
}

/* Adds (x - mean)^2 of n floats to a sum, in the order in which etc_sum_f32 adds x. */
ETC_OUTLINE void etc_sum_squares_f32(const float *x, int64_t n, float mean, EtcSum *s)
{
    const EtcI iota = ETC_IOTA;
    for (int64_t from = 0; from < n; from += ETC_SUM_BLOCK) {
        const int64_t to = etc_min_i64(n, from + ETC_SUM_BLOCK);
        EtcF part[16 / ETC_LANES];
        ETC_UNROLL
        for (int v = 0; v < (16 / ETC_LANES); v++) {
            part[v] = etc_splat(0.0f);
        }
        for (int64_t i = from; i < to; i += 16) {
            ETC_UNROLL
            for (int v = 0; v < (16 / ETC_LANES); v++) {
                const int64_t at = i + (v * ETC_LANES), left = etc_min_i64(to - at, ETC_LANES);
                const EtcF d = etc_load(x + at, to - at) - etc_splat(mean);
                const EtcI counts = (EtcI)(iota < etc_splat_i32((int32_t)left));
                part[v] += etc_select(counts, d * d, etc_splat(0.0f));
            }
        }
        ETC_UNROLL
        for (int v = 0; v < (16 / ETC_LANES); v++) {
            float *lane = s->lane + (v * ETC_LANES);
            etc_storeu(lane, etc_loadu(lane) + part[v]);
        }
    }
}

/* Stores y[at ..] = (v - mean) * rstd * weight + bias, at most to y[n - 1]. */
ETC_INLINE void etc_norm_store(EtcF v, float mean, EtcF rstd, const float *weight,
                               const float *bias, float *y, int64_t at, int64_t n)
{
    const EtcF w = (weight != NULL) ? etc_load(weight + at, n - at) : etc_splat(1.0f);
    const EtcF b = (bias != NULL) ? etc_load(bias + at, n - at) : etc_splat(0.0f);
    etc_store(y + at, n - at, etc_fma((v - etc_splat(mean)) * rstd, w, b));
}

/* Computes y = (x - mean) / sqrt(var + eps) * weight + bias for rows of n floats; y may be x.
 * weight, bias, mean and rstd may be NULL.  mean and rstd receive each row's mean and
 * 1 / sqrt(var + eps). */
ETC_OUTLINE void etc_layer_norm_f32(const float *x, const float *weight, const float *bias,
                                    float eps, float *y, int64_t rows, int64_t n, float *mean,
                                    float *rstd)
{
    /* Loads of the next row would wait for the store of a part of a vector, if y is x. */
    const int64_t last = etc_max_i64(n - ETC_LANES, 0);
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        EtcSum sum;
        etc_sum_start(&sum);
        etc_sum_f32(x, n, &sum);
        const float m = etc_sum_end(&sum) / (float)n;
        etc_sum_start(&sum);
        etc_sum_squares_f32(x, n, m, &sum);
        const EtcF var = etc_splat(etc_sum_end(&sum) / (float)n);
        const EtcF by = etc_splat(1.0f) / etc_vsqrt(var + etc_splat(eps));
        const EtcF v = etc_load(x + last, n); /* before a vector of y overlaps it */
        for (int64_t i = 0; i < last; i += ETC_LANES) {
            etc_norm_store(etc_loadu(x + i), m, by, weight, bias, y, i, n);
        }
        etc_norm_store(v, m, by, weight, bias, y, last, n);
        if (mean != NULL) {
            mean[r] = m;
        }
        if (rstd != NULL) {
            rstd[r] = by[0];
        }
    }
}

#endif
