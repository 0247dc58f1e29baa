/* group_norm.h -- normalization of groups of channels by each group's mean and deviation, with a
 * weight and a bias per channel.
 *
 * The mean is a sum as in reduce.h, divided by the count.  The variance is the sum of the squares
 * of x - mean, divided by the count.  An element becomes fma(x - mean, weight / deviation, bias).
 */
#ifndef ETC_GROUP_NORM_H
#define ETC_GROUP_NORM_H

#include "runtime-lite/kernels/norm.h"

typedef struct EtcGroupNorm {
    int64_t n, groups, channels,
        inner; /* images, groups, channels of a group, floats of a channel */
    float eps;
} EtcGroupNorm;

/* Computes the mean of n floats, and rstd = 1 / sqrt(variance + eps). */
ETC_INLINE void etc_moments_f32(const float *x, int64_t n, float eps, float *mean, float *rstd)
{
    EtcSum sum;
    etc_sum_start(&sum);
    etc_sum_f32(x, n, &sum);
    *mean = etc_sum_end(&sum) / (float)n;
    etc_sum_start(&sum);
    etc_sum_squares_f32(x, n, *mean, &sum);
    const EtcF s = etc_k(1.0) / etc_vsqrt(etc_splat((etc_sum_end(&sum) / (float)n) + eps));
    *rstd = s[0];
}

/* Computes y = (x - mean) * scale + shift for n floats.  The difference is rounded, then the fused
 * multiply-add. */
ETC_INLINE void etc_centre_f32(const float *x, float mean, float scale, float shift, float *y,
                               int64_t n)
{
    for (int64_t i = 0; i < n; i += ETC_LANES) {
        const EtcF v = etc_load(x + i, n - i) - etc_splat(mean);
        etc_store(y + i, n - i, etc_fma(v, etc_splat(scale), etc_splat(shift)));
    }
}

/* Normalizes each group of each image.  weight and bias have one float per channel, or are NULL.
 * mean and rstd receive one float per image and group, or are NULL. */
ETC_OUTLINE void etc_group_norm_f32(const float *x, const float *weight, const float *bias,
                                    float *y, float *mean, float *rstd, const EtcGroupNorm *g)
{
    for (int64_t i = 0; i < (g->n * g->groups); i++) {
        float m, r;
        etc_moments_f32(x + (i * g->channels * g->inner), g->channels * g->inner, g->eps, &m, &r);
        for (int64_t c = 0; c < g->channels; c++) {
            const int64_t at = (i * g->channels) + c;
            const int64_t channel = (etc_rest(i, g->groups) * g->channels) + c;
            const float scale = (weight != NULL) ? (r * weight[channel]) : r;
            etc_centre_f32(x + (at * g->inner), m, scale, (bias != NULL) ? bias[channel] : 0.0f,
                           y + (at * g->inner), g->inner);
        }
        if (mean != NULL) {
            mean[i] = m;
        }
        if (rstd != NULL) {
            rstd[i] = r;
        }
    }
}

#endif
