/* norm.h -- batch norm in inference: each channel becomes x * scale + shift. */
#ifndef ETC_NORM_H
#define ETC_NORM_H

#include "runtime-lite/kernels/vec.h"

/* scale = weight / sqrt(var + eps), shift = bias - mean * scale. */
ETC_INLINE void etc_batch_norm_fold(float weight, float bias, float mean, float var, float eps,
                                    float *scale, float *shift)
{
    const EtcF s = etc_splat(weight) / etc_vsqrt(etc_splat(var) + etc_splat(eps));
    const EtcF t = etc_fma(-etc_splat(mean), s, etc_splat(bias));
    *scale = s[0];
    *shift = t[0];
}

/* y = x * scale + shift, rounded once. */
ETC_INLINE void etc_scale_shift_f32(const float *x, float scale, float shift, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += ETC_LANES) {
        const EtcF v = etc_load(x + i, n - i);
        etc_store(y + i, n - i, etc_fma(v, etc_splat(scale), etc_splat(shift)));
    }
}

#endif
