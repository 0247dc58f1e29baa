/* compact.h -- convolutions, products and sums of floats as plain loops, for networks of so few
 * multiply-adds that the memory for the code of conv.h, matmul.h and reduce.h is worth more than the
 * time that it saves.  Terms are added in the same order.  Sizes have 31 bits, and are constants that
 * the compiler puts into the loops. */
#ifndef ETC_COMPACT_H
#define ETC_COMPACT_H

#include "runtime-lite/kernels/conv_geometry.h"
#include "runtime-lite/kernels/matmul.h"
#include "runtime-lite/kernels/reduce.h"

/* Is for functions that gcc and clang are to optimize for size. */
#define ETC_COLD __attribute__((cold))

/* Clamps v.  NaN is kept, and -0 if it equals a bound.  Constant bounds of infinity cost nothing. */
ETC_INLINE float etc_compact_clamp(float v, float lo, float hi)
{
    if ((lo > -__builtin_inff()) && (v < lo)) {
        return lo;
    }
    return ((hi < __builtin_inff()) && (v > hi)) ? hi : v;
}

/* Computes what etc_conv_f32 does with weights of ETC_FORWARD. */
ETC_INLINE void etc_compact_conv(const float *x, const float *w, const float *bias, float *y,
                                 const EtcConv *g)
{
    const int32_t ic = (int32_t)g->ic, ih = (int32_t)g->ih, iw = (int32_t)g->iw;
    const int32_t oc = (int32_t)g->oc, ow = (int32_t)g->ow, pixels = (int32_t)g->oh * ow;
    const int32_t dh = (int32_t)g->dh, dw = (int32_t)g->dw;
    const int32_t high = (int32_t)g->kh * dh, wide = (int32_t)g->kw * dw;
    const int32_t channels = (int32_t)g->groups * oc, planes = (int32_t)g->n * channels;
    for (int32_t plane = 0; plane < planes; plane++) {
        const int32_t c = plane % channels;
        const float *from = x + (plane / oc * ic * ih * iw);
        for (int32_t at = 0; at < pixels; at++) {
            const int32_t top = (at / ow * (int32_t)g->sh) - (int32_t)g->ph;
            const int32_t left = (at % ow * (int32_t)g->sw) - (int32_t)g->pw;
            const float *tap = w + (c * ic * (int32_t)(g->kh * g->kw));
            float sum = (bias != NULL) ? bias[c] : 0.0f;
            for (int32_t k = 0; k < ic; k++) {
                for (int32_t iy = top; iy < (top + high); iy += dh) {
                    for (int32_t ix = left; ix < (left + wide); ix += dw) {
                        __asm__("" : "+r"(iy)); /* otherwise gcc keeps more sums in registers than there are */
                        const int is_inside = ((uint32_t)iy < (uint32_t)ih) && ((uint32_t)ix < (uint32_t)iw);
                        sum = (is_inside != 0) ? etc_fused(from[(((k * ih) + iy) * iw) + ix], *tap, sum) : sum;
                        tap++;
                    }
                }
            }
            *y = etc_compact_clamp(sum, g->lo, g->hi);
            y++;
        }
    }
}

/* Adds to `sum` the terms of a tap of a transposed convolution.  y, x: the place of the output, plus the
 * padding, less the offset of the tap.  w: the weight of the tap for the first input channel. */
ETC_INLINE float etc_compact_tap(const float *from, const float *w, float sum, int32_t y, int32_t x,
                                 const EtcConv *g)
{
    const int32_t iy = y / (int32_t)g->sh, ix = x / (int32_t)g->sw;
    const int32_t next = (int32_t)(g->oc * g->kh * g->kw), plane = (int32_t)(g->ih * g->iw);
    const int is_used = ((iy * (int32_t)g->sh) == y) && ((ix * (int32_t)g->sw) == x);
    if ((is_used == 0) || ((uint32_t)iy >= (uint32_t)g->ih) || ((uint32_t)ix >= (uint32_t)g->iw)) {
        return sum;
    }
    from += (iy * (int32_t)g->iw) + ix;
    for (int32_t k = 0; k < (int32_t)g->ic; k++) {
        sum = etc_fused(from[k * plane], w[k * next], sum);
    }
    return sum;
}

/* Computes what etc_conv_f32 does with weights of ETC_TRANSPOSED. */
ETC_INLINE void etc_compact_transposed(const float *x, const float *w, const float *bias, float *y,
                                       const EtcConv *g)
{
    const int32_t ic = (int32_t)g->ic, oc = (int32_t)g->oc;
    const int32_t kw = (int32_t)g->kw, n_taps = (int32_t)g->kh * kw;
    const int32_t ow = (int32_t)g->ow, pixels = (int32_t)g->oh * ow;
    const int32_t channels = (int32_t)g->groups * oc, planes = (int32_t)g->n * channels;
    for (int32_t plane = 0; plane < planes; plane++) {
        const int32_t c = plane % channels;
        const float *from = x + (plane / oc * ic * (int32_t)(g->ih * g->iw));
        const float *taps = w + (((c / oc * ic * oc) + (c % oc)) * n_taps);
        for (int32_t at = 0; at < pixels; at++) {
            const int32_t top = (at / ow) + (int32_t)g->ph, left = (at % ow) + (int32_t)g->pw;
            float sum = (bias != NULL) ? bias[c] : 0.0f;
            for (int32_t k = 0; k < n_taps; k++) {
                sum = etc_compact_tap(from, taps + k, sum, top - (k / kw * (int32_t)g->dh),
                                      left - (k % kw * (int32_t)g->dw), g);
            }
            *y = etc_compact_clamp(sum, g->lo, g->hi);
            y++;
        }
    }
}

/* Computes what etc_matmul_f32 does with b in rows or columns. */
ETC_INLINE void etc_compact_matmul(const float *a, const float *b, const float *bias, float *y,
                                   const EtcMatmul *g)
{
    const int32_t n = (int32_t)g->n, terms = (int32_t)g->k, row = (int32_t)g->b_row;
    const int32_t down = (g->b_form == ETC_BY_COLUMNS) ? 1 : row;
    const int32_t right = (g->b_form == ETC_BY_COLUMNS) ? row : 1;
    for (int32_t i = 0; i < (int32_t)g->m; i++) {
        for (int32_t j = 0; j < n; j++) {
            float sum = (bias != NULL) ? bias[j] : 0.0f;
            sum = (g->from_y != 0) ? *y : sum;
            for (int32_t k = 0; k < terms; k++) {
                sum = etc_fused(a[(i * (int32_t)g->a_row) + k], b[(k * down) + (j * right)], sum);
            }
            *y = etc_compact_clamp(sum, g->lo, g->hi);
            y++;
        }
    }
}

/* Returns the sum of n floats, at most ETC_SUM_BLOCK, which is that of etc_sum_f32. */
ETC_INLINE float etc_compact_sum(const float *x, int32_t n)
{
    float lane[16];
    for (int32_t i = 0; i < 16; i++) {
        float sum = 0.0f;
        for (int32_t k = i; k < n; k += 16) {
            sum += x[k];
        }
        lane[i] = sum;
    }
    for (uint32_t apart = 8u; apart != 0u; apart >>= 1) {
        for (uint32_t i = 0u; i < apart; i++) {
            lane[i] += lane[i + apart];
        }
    }
    return lane[0];
}

#endif
