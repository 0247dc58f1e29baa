/* quantize.h -- quantization to integers with a scale and a zero point, and dequantization.
 *
 * A tensor is seen as [outer, n, inner]: scale and zero point i belong to all elements whose
 * middle index is i.  So one loop serves qparams per tensor, channel, token and group.  Ties
 * round to even.  A NaN becomes the least integer. */
#ifndef ETC_QUANTIZE_H
#define ETC_QUANTIZE_H

#include "runtime-lite/kernels/vec.h"

/* The numbers that EtcDtype gives to these types. */
#define ETC_Q_U8 0
#define ETC_Q_I8 1
#define ETC_Q_I16 2
#define ETC_Q_I32 3
#define ETC_Q_I64 4
#define ETC_Q_F64 7

typedef struct EtcQuant {
    int64_t outer, n, inner;
    int64_t lo, hi;                  /* the range of quantized numbers */
    int32_t quantized, scale, zero;  /* the dtypes: an integer; f32 or f64; an integer */
    int32_t is_wide;                 /* products are computed in double */
    int32_t adds_first;              /* the zero point is added before rounding */
} EtcQuant;

ETC_INLINE int64_t etc_q_int(const void *p, int64_t i, int32_t dtype)
{
    return (dtype == ETC_Q_U8)    ? ((const uint8_t *)p)[i]
           : (dtype == ETC_Q_I8)  ? ((const int8_t *)p)[i]
           : (dtype == ETC_Q_I16) ? ((const int16_t *)p)[i]
           : (dtype == ETC_Q_I32) ? ((const int32_t *)p)[i]
                                  : ((const int64_t *)p)[i];
}

/* Returns zero point i, or 0 if there are none.  It is clamped to 32 bits, because rounding is not
 * exact beyond them. */
ETC_INLINE int64_t etc_q_zero(const void *zero, int64_t i, const EtcQuant *g)
{
    const int64_t v = (zero != NULL) ? etc_q_int(zero, i, g->zero) : 0;
    return etc_max_i64(etc_min_i64(v, INT32_MAX), INT32_MIN);
}

ETC_INLINE double etc_q_scale(const void *scale, int64_t i, const EtcQuant *g)
{
    return (g->scale == ETC_Q_F64) ? ((const double *)scale)[i]
                                   : (double)((const float *)scale)[i];
}

/* Returns 1 / scale, rounded to the type in which the product is computed. */
ETC_INLINE double etc_q_inverse(double scale, const EtcQuant *g)
{
    if (g->is_wide != 0) {
        return 1.0 / scale;
    }
    return (g->scale == ETC_Q_F64) ? (double)(float)(1.0 / scale) : (double)(1.0f / (float)scale);
}

ETC_INLINE void etc_q_store(void *y, int64_t i, int32_t v, int32_t dtype)
{
    if (dtype == ETC_Q_U8) {
        ((uint8_t *)y)[i] = (uint8_t)v;
    } else if (dtype == ETC_Q_I8) {
        ((int8_t *)y)[i] = (int8_t)v;
    } else if (dtype == ETC_Q_I16) {
        ((int16_t *)y)[i] = (int16_t)v;
    } else {
        ((int32_t *)y)[i] = v;
    }
}

/* Quantizes elements from .. to - 1, which share one scale. */
ETC_INLINE void etc_q_run(void *y, const float *x, int64_t from, int64_t to, double inverse,
                          double zero, const EtcQuant *g)
{
    const double before = (g->adds_first != 0) ? zero : 0.0, behind = zero - before;
    const double lo = (double)g->lo - behind, hi = (double)g->hi - behind;
    const float narrow = (float)inverse;
    for (int64_t i = from; i < to; i++) {
        double v = (g->is_wide != 0) ? (((double)x[i] * inverse) + before)
                                     : (double)((x[i] * narrow) + (float)before);
        v = (v > lo) ? v : lo;
        v = (v < hi) ? v : hi;
        etc_q_store(y, i, (int32_t)(etc_nearest_f64(v) + behind), g->quantized);
    }
}

ETC_INLINE void etc_quantize_f32(void *y, const float *x, const void *scale, const void *zero,
                                 const EtcQuant *g)
{
    for (int64_t i = 0; i < (g->outer * g->n); i++) {
        const double inverse = etc_q_inverse(etc_q_scale(scale, etc_rest(i, g->n), g), g);
        const double at = (double)etc_q_zero(zero, etc_rest(i, g->n), g);
        etc_q_run(y, x, i * g->inner, (i + 1) * g->inner, inverse, at, g);
    }
}

ETC_INLINE void etc_dequantize_f32(float *y, const void *x, const void *scale, const void *zero,
                                   const EtcQuant *g)
{
    for (int64_t i = 0; i < (g->outer * g->n); i++) {
        const double by = etc_q_scale(scale, etc_rest(i, g->n), g);
        const int64_t at = etc_q_zero(zero, etc_rest(i, g->n), g);
        for (int64_t k = i * g->inner; k < ((i + 1) * g->inner); k++) {
            const int64_t v = etc_q_int(x, k, g->quantized) - at;
            y[k] = (g->is_wide != 0) ? (float)((double)v * by) : ((float)v * (float)by);
        }
    }
}

/* -- vectors of bytes, as floats without a fraction ------------------------------------------ */

/* Dequantizes integers with one scale, with the results of etc_dequantize_f32. */
ETC_INLINE EtcF etc_dequantize_lanes(EtcF a, EtcF zero, EtcF scale)
{
    return (a - zero) * scale;
}

/* Quantizes to integers less their zero point, with the rounding of etc_quantize_f32; lo and hi are
 * less the zero point too.  A NaN becomes lo.  The result is the integer plus 1.5 * 2^23. */
ETC_INLINE EtcF etc_quantize_from_zero(EtcF a, EtcF inverse, EtcF lo, EtcF hi)
{
    return etc_at_most(etc_at_least(lo, a * inverse), hi) +
           etc_splat(12582912.0f); /* 1.5 * 2^23: the low bits of the sum are an integer */
}

/* Quantizes to integers from lo to hi. */
ETC_INLINE EtcI etc_quantize_lanes(EtcF a, EtcF inverse, int32_t zero, float lo, float hi)
{
    const float at = (float)zero;
    const EtcF v = etc_quantize_from_zero(a, inverse, etc_splat(lo - at), etc_splat(hi - at));
    return (EtcI)v + etc_splat_i32(zero - 0x4b400000); /* the bits of 1.5 * 2^23 */
}

/* Loads n bytes, n < ETC_LANES.  The rest becomes zero. */
ETC_INLINE EtcBytes etc_load_byte_part(const void *p, int64_t n)
{
    EtcBytes b = {0};
    for (int i = 0; i < (ETC_LANES - 1); i++) {
        if (i < n) {
            b[i] = ((const uint8_t *)p)[i];
        }
    }
    return b;
}

ETC_INLINE EtcBytes etc_load_bytes(const void *p, int64_t n)
{
    EtcBytes b;
    if (n < ETC_LANES) {
        return etc_load_byte_part(p, n);
    }
    __builtin_memcpy(&b, p, sizeof b);
    return b;
}

ETC_INLINE EtcF etc_load_u8(const uint8_t *p, int64_t n)
{
#if defined(ETC_FLOATS_OF_BYTES)
    if (n >= ETC_LANES) {
        return etc_floats_u8(p);
    }
#endif
    return __builtin_convertvector(etc_widen(etc_load_bytes(p, n)), EtcF);
}

ETC_INLINE EtcF etc_load_i8(const int8_t *p, int64_t n)
{
#if defined(ETC_FLOATS_OF_BYTES)
    if (n >= ETC_LANES) {
        return etc_floats_i8(p);
    }
#endif
    const EtcI v = (EtcI)((EtcU)etc_widen(etc_load_bytes(p, n)) << 24) >> 24;
    return __builtin_convertvector(v, EtcF);
}

ETC_INLINE EtcF etc_load_u8_apart(const uint8_t *p, int64_t stride, int64_t n)
{
    EtcF v = ETC_REP(0.0f);
    for (int i = 0; i < ETC_LANES; i++) {
        v[i] = (i < n) ? (float)p[i * stride] : 0.0f;
    }
    return v;
}

ETC_INLINE EtcF etc_load_i8_apart(const int8_t *p, int64_t stride, int64_t n)
{
    EtcF v = ETC_REP(0.0f);
    for (int i = 0; i < ETC_LANES; i++) {
        v[i] = (i < n) ? (float)p[i * stride] : 0.0f;
    }
    return v;
}

/* Stores the low bytes of n lanes, or of all if n is larger.  The bytes may be signed or not,
 * because -1 and 255 are the same byte. */
ETC_INLINE void etc_store_low(uint8_t *p, int64_t n, EtcI v)
{
    if (n >= ETC_LANES) {
        const EtcBytes b = etc_low_bytes(v);
        __builtin_memcpy(p, &b, sizeof b);
    } else {
        etc_store_low_part(p, n, v);
    }
}

ETC_INLINE void etc_store_bytes(void *y, int64_t n, EtcI v)
{
    etc_store_low((uint8_t *)y, n, v);
}

ETC_INLINE void etc_store_bytes_apart(void *y, int64_t stride, int64_t n, EtcI v)
{
    for (int i = 0; i < ETC_LANES; i++) {
        if (i < n) {
            ((uint8_t *)y)[i * stride] = (uint8_t)v[i];
        }
    }
}

/* Chooses the scale and the zero point with which [lo, hi] holds the n numbers at x and 0.  The
 * scale is at least eps.  The zero point is computed from the lower end of the range, or with
 * by_error from the end whose error is smaller. */
ETC_INLINE void etc_choose_f32(const float *x, int64_t n, int64_t lo, int64_t hi, float eps,
                               int32_t by_error, double *scale, int64_t *zero)
{
    float min = 0.0f, max = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        min = (x[i] < min) ? x[i] : min;
        max = (x[i] > max) ? x[i] : max;
    }
    const float span = (max - min) / (float)(hi - lo), by = (span > eps) ? span : eps;
    const float low = min / by, high = max / by;
    float at = (float)lo - (float)etc_nearest_f64((double)low);
    if (by_error != 0) {
        const float error = ((float)lo + low) + ((float)hi + high);
        at = (error > 0.0f) ? ((float)lo - low) : ((float)hi - high);
    }
    at = (at > (float)lo) ? at : (float)lo;
    at = (at < (float)hi) ? at : (float)hi;
    *scale = (double)by;
    *zero = (int64_t)etc_nearest_f64((double)at);
}

#endif
