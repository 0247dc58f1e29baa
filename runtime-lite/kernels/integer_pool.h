/* integer_pool.h -- means of windows of 8-bit integers.
 *
 * A sum adds x - zero point of x in 32 bits.  A window has at most ETC_INTEGER_WINDOW pixels, so
 * that the sum is exact, also as a float.  Then, with each step rounded to float:
 *
 *   y = sum / count * (scale of x / scale of y), clamped, rounded half to even, plus the zero point
 *       of y
 *
 * Padding equals the zero point of x, so it adds 0.
 */
#ifndef ETC_INTEGER_POOL_H
#define ETC_INTEGER_POOL_H

#include "runtime-lite/kernels/integer.h"
#include "runtime-lite/kernels/pool.h"
#include "runtime-lite/kernels/quantize.h"

#define ETC_INTEGER_WINDOW 65536

/* The parameters that convert a sum of x's bytes to a mean in y's format. */
typedef struct EtcMean {
    int32_t x_is_signed, zero; /* x is int8, not uint8; x's zero point */
    float by;                  /* scale of x / scale of y */
    int32_t y_zero, y_lo, y_hi;
} EtcMean;

/* 1: etc_dot adds bytes, as products with 1. */
#define ETC_SUMS_BY_DOT ((ETC_TERMS == 4) && (ETC_SIGNED_TERMS == 0) && (ETC_VEC > 16))

/* Returns the sum of n bytes, n at most ETC_INTEGER_WINDOW.  If flip is 0x80, sign bits are
 * flipped. */
ETC_INLINE int32_t etc_byte_sum(const uint8_t *x, int64_t n, uint8_t flip)
{
    int32_t sum = 0;
    if (ETC_SUMS_BY_DOT && (n >= ETC_LANES)) {
        const EtcI ones = etc_splat_i32(0x01010101);
        EtcI sums = etc_splat_i32(0);
        for (int64_t i = 0; i < n; i += ETC_TERM_BYTES) { /* a byte is signed if it is a weight */
            const EtcTermBytes v = etc_term_bytes(x + i, n - i);
            sums = (flip != 0) ? etc_dot(sums, ones, etc_w_terms(v))
                               : etc_dot(sums, etc_x_terms(v), ones);
        }
        for (int lane = 0; lane < ETC_LANES; lane++) {
            sum += sums[lane];
        }
        return sum + ((int32_t)n * flip);
    }
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] ^ flip;
    }
    return sum;
}

/* Converts a sum of x - zero point over `count` pixels to a byte of y. */
ETC_INLINE uint8_t etc_mean_byte(int32_t sum, int64_t count, const EtcMean *q)
{
    const float v = ((float)sum / (float)count) * q->by;
    const float lo = (float)(q->y_lo - q->y_zero), hi = (float)(q->y_hi - q->y_zero);
    const float within = (v > lo) ? ((v < hi) ? v : hi) : lo;
    return (uint8_t)((int32_t)etc_nearest_f64((double)within) + q->y_zero);
}

/* Computes the mean of each window of bytes, int8_t or uint8_t. */
ETC_OUTLINE void etc_avg_pool_i8(const void *x, void *y, const EtcPool *g, const EtcMean *q)
{
    const uint8_t flip = (q->x_is_signed != 0) ? 0x80 : 0;
    const int32_t zero = q->zero + ((q->x_is_signed != 0) ? 128 : 0);
    uint8_t *to = (uint8_t *)y;
    for (int64_t o = 0; o < (g->planes * g->oh * g->ow); o++) {
        const int64_t at = o % (g->oh * g->ow);
        const uint8_t *plane = (const uint8_t *)x + ((o / (g->oh * g->ow)) * g->ih * g->iw);
        const int64_t top = ((at / g->ow) * g->sh) - g->ph, left = ((at % g->ow) * g->sw) - g->pw;
        const int64_t y1 = etc_min_i64(top + g->kh, g->ih + g->ph);
        const int64_t x1 = etc_min_i64(left + g->kw, g->iw + g->pw);
        const int64_t y0 = etc_max_i64(top, 0), x0 = etc_max_i64(left, 0);
        const int64_t rows = etc_max_i64(etc_min_i64(y1, g->ih) - y0, 0);
        const int64_t n = etc_max_i64(etc_min_i64(x1, g->iw) - x0, 0), inside = rows * n;
        const int64_t count = (g->count_pad != 0) ? ((y1 - top) * (x1 - left)) : inside;
        int32_t sum = 0;
        if (n == g->iw) { /* the rows of the window are adjacent in memory */
            sum = etc_byte_sum(plane + (y0 * n), inside, flip);
        } else {
            for (int64_t i = y0; i < (y0 + rows); i++) {
                sum += etc_byte_sum(plane + (i * g->iw) + x0, n, flip);
            }
        }
        sum -= (int32_t)inside * zero;
        to[o] = etc_mean_byte(sum, (inside == 0) ? 1 : ((g->divisor != 0) ? g->divisor : count), q);
    }
}

#endif
