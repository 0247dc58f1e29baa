/* integer.h -- sums of products of 8-bit integers, and their conversion to outputs.
 *
 * A sum adds the products (x - zero point of x) * w in 32 bits.  It is exact in any order, so
 * vector width and instructions do not affect the bits.  An output is computed from its sum, with
 * each step rounded to float:
 *
 *   v = clamp(float(sum) * (scale of x * scale of its channel) + bias)
 *   y = v, or v / scale of y, clamped, rounded half to even, plus the zero point of y
 *
 * The second line is the quantization of quantize.h.  Padding equals the zero point of x, so it
 * adds 0.  Weights have zero point 0.  Their layout is that of the model, [channel][k], or in C that of
 * ETC_IN_QUADS; k is at most ETC_INTEGER_K, so that no sum overflows 32 bits.
 */
#ifndef ETC_INTEGER_H
#define ETC_INTEGER_H

#include "runtime-lite/kernels/line.h"
#include "runtime-lite/kernels/quantize.h"

#define ETC_INTEGER_K 65536

/* 1: etc_dot_bounded is faster than etc_dot. */
#define ETC_DOTS_BOUNDED ((ETC_VEC == 32) && (ETC_TERMS == 2))

/* 1: `then` of an EtcInteger may be set.  Emitted C defines this if a group needs it. */
#if !defined(ETC_HAS_THEN)
#define ETC_HAS_THEN 0
#endif

/* Makes a byte of each v of a row of n: a function, then a quantization. */
typedef void (*EtcThen)(const float *v, uint8_t *y, int64_t n);

/* The parameters that convert a sum to an output: the zero point and scale of x, the scales and
 * biases of the channels, and the format of y. */
typedef struct EtcInteger {
    const int32_t *sums;          /* the sum of each channel's weights */
    const float *scales, *bias;   /* one per channel; bias may be NULL */
    const void *x_scale, *x_zero; /* run-time qparams of x: float or double, integers; or NULL */
    int32_t scale_dtype, zero_dtype;
    int32_t has_rows;    /* each row of x has its own scale and zero point */
    int32_t x_is_signed; /* x is int8, not uint8 */
    int32_t zero;        /* x's zero point, within x's range, if x_zero is NULL */
    float lo, hi;        /* the clamp of v */
    int32_t is_float;    /* y is v, as float */
    float inverse;       /* 1 / scale of y */
    int32_t y_zero, y_lo, y_hi;
    EtcThen then; /* if it is not NULL, is_float is 1, and y is the bytes that it makes of v */
} EtcInteger;

ETC_INLINE int etc_has_then(const EtcInteger *q)
{
    return (ETC_HAS_THEN != 0) && (q->then != NULL);
}

/* -- what x is in a sum ---------------------------------------------------------------------- */

/* Returns the number that is added to x.  etc_dot reads x as unsigned bytes, or as signed bytes if
 * ETC_SIGNED_TERMS is 1. */
ETC_INLINE int32_t etc_x_shift(const EtcInteger *q)
{
    if (ETC_SIGNED_TERMS != 0) {
        return (q->x_is_signed != 0) ? 0 : -128;
    }
    return (q->x_is_signed != 0) ? 128 : 0;
}

/* Returns the bits to flip in a byte of x, which adds etc_x_shift to it. */
ETC_INLINE uint8_t etc_x_flip(const EtcInteger *q)
{
    return (etc_x_shift(q) != 0) ? 0x80 : 0;
}

/* Returns x's zero point for row i, clamped to x's range. */
ETC_INLINE int32_t etc_x_zero(const EtcInteger *q, int64_t i)
{
    const int64_t lo = (q->x_is_signed != 0) ? -128 : 0;
    int64_t at = q->zero;
    if (q->x_zero != NULL) {
        at = etc_q_int(q->x_zero, (q->has_rows != 0) ? i : 0, q->zero_dtype);
    }
    return (int32_t)etc_min_i64(etc_max_i64(at, lo), lo + 255);
}

/* Returns x's scale for row i if it is computed at run time.  Otherwise returns 1, as the scales of
 * the channels include it. */
ETC_INLINE float etc_x_scale(const EtcInteger *q, int64_t i)
{
    const int64_t at = (q->has_rows != 0) ? i : 0;
    if (q->x_scale == NULL) {
        return 1.0f;
    }
    return (q->scale_dtype == ETC_Q_F64) ? (float)((const double *)q->x_scale)[at]
                                         : ((const float *)q->x_scale)[at];
}

/* -- what a sum becomes ---------------------------------------------------------------------- */

ETC_INLINE EtcI etc_load_ints(const int32_t *p, int64_t n) /* lanes from n on are zero */
{
    EtcI v = ETC_REP(0);
    if (n >= ETC_LANES) {
        return *(const EtcIAnywhere *)p;
    }
    for (int i = 0; i < (ETC_LANES - 1); i++) {
        if (i < n) {
            v[i] = p[i];
        }
    }
    return v;
}

/* The parameters of an EtcInteger that are the same for all vectors. */
typedef struct EtcFinish {
    EtcF lo, hi, inverse, y_lo, y_hi;
    EtcI y_zero;
    int is_float;
} EtcFinish;

ETC_INLINE void etc_finish(const EtcInteger *q, EtcFinish *f)
{
    f->lo = etc_splat(q->lo);
    f->hi = etc_splat(q->hi);
    f->inverse = etc_splat(q->inverse);
    f->y_lo = etc_splat((float)(q->y_lo - q->y_zero));
    f->y_hi = etc_splat((float)(q->y_hi - q->y_zero));
    f->y_zero = etc_splat_i32(q->y_zero - 0x4b400000); /* the bits of 1.5 * 2^23 */
    f->is_float = q->is_float;
}

/* Converts a vector of sums and stores outputs i .. i + n - 1, at most a vector of them. */
ETC_INLINE void etc_integer_put(EtcI sum, EtcF scale, EtcF bias, void *y, int64_t i, int64_t n,
                                const EtcFinish *f)
{
    EtcF v = (__builtin_convertvector(sum, EtcF) * scale) + bias;
    v = etc_at_most(etc_at_least(v, f->lo), f->hi);
    if (f->is_float != 0) {
        etc_store((float *)y + i, n, v);
    } else {
        v = etc_quantize_from_zero(v, f->inverse, f->y_lo, f->y_hi);
        etc_store_low((uint8_t *)y + i, n, (EtcI)v + f->y_zero);
    }
}

/* The parameters of one channel whose outputs are bytes.  If no v is NaN, one clamp suffices for
 * that of v and that of y, since the product with 1 / scale of y keeps the order. */
typedef struct EtcBytesOf {
    EtcF scale, bias, inverse, lo, hi;
    uint8_t y_zero;
} EtcBytesOf;

ETC_INLINE float etc_between(float v, float lo, float hi)
{
    return (v < lo) ? lo : ((v > hi) ? hi : v);
}

/* Sets the parameters of a channel.  `by` is the scale of x.  Returns 0 if a v may be NaN. */
ETC_INLINE int etc_bytes_of(const EtcInteger *q, float by, int64_t channel, EtcBytesOf *f)
{
    const float scale = by * q->scales[channel];
    const float bias = (q->bias != NULL) ? q->bias[channel] : 0.0f;
    const float lo = (float)(q->y_lo - q->y_zero), hi = (float)(q->y_hi - q->y_zero);
    f->scale = etc_splat(scale);
    f->bias = etc_splat(bias);
    f->inverse = etc_splat(q->inverse);
    f->lo = etc_splat(etc_between(q->lo * q->inverse, lo, hi));
    f->hi = etc_splat(etc_between(q->hi * q->inverse, lo, hi));
    f->y_zero = (uint8_t)q->y_zero;
    return ((scale - scale) == 0.0f) && ((bias - bias) == 0.0f);
}

/* Returns whether scales and biases of `count` channels, from `channel` on, are numbers, so that
 * EtcBytesOf can convert their sums. */
ETC_INLINE int etc_are_numbers(const EtcInteger *q, int64_t channel, int64_t count)
{
    const float by = etc_x_scale(q, 0);
    int all = 1;
    for (int64_t c = channel; c < (channel + count); c++) {
        const float scale = by * q->scales[c], bias = (q->bias != NULL) ? q->bias[c] : 0.0f;
        all &= ((scale - scale) == 0.0f) & ((bias - bias) == 0.0f);
    }
    return all;
}

/* Returns sums as outputs less y's zero point, plus the bits of 1.5 * 2^23. */
ETC_INLINE EtcI etc_integer_low(EtcI sum, EtcF scale, EtcF bias, EtcF inverse, EtcF lo, EtcF hi)
{
    const EtcF by = ((__builtin_convertvector(sum, EtcF) * scale) + bias) * inverse;
    return (EtcI)(etc_within(by, lo, hi) + etc_splat(12582912.0f));
}

/* Converts n vectors of sums to bytes, n at most ETC_PUT_VECTORS, and stores them. */
ETC_INLINE void etc_integer_bytes(const int32_t *sum, int n, uint8_t *y, const EtcBytesOf *f)
{
    EtcI v[ETC_PUT_VECTORS];
    ETC_UNROLL
    for (int i = 0; i < ETC_PUT_VECTORS; i++) {
        const EtcI s = *(const EtcIAnywhere *)(sum + ((i % n) * ETC_LANES));
        v[i] = etc_integer_low(s, f->scale, f->bias, f->inverse, f->lo, f->hi);
    }
    etc_put_bytes(y, n, v, f->y_zero);
}

/* Converts a row of n sums to bytes; n is at least ETC_LANES.  The last vector may overlap the one
 * before. */
ETC_INLINE void etc_integer_row(const int32_t *sum, int64_t n, uint8_t *y, const EtcBytesOf *f)
{
    int64_t i = 0;
    for (; (i + (ETC_PUT_VECTORS * ETC_LANES)) <= n; i += ETC_PUT_VECTORS * ETC_LANES) {
        etc_integer_bytes(sum + i, ETC_PUT_VECTORS, y + i, f);
    }
    if ((ETC_PUT_VECTORS > 2) && ((i + (2 * ETC_LANES)) <= n)) {
        etc_integer_bytes(sum + i, 2, y + i, f);
        i += 2 * ETC_LANES;
    }
    if ((ETC_PUT_VECTORS > 1) && ((i + ETC_LANES) <= n)) {
        etc_integer_bytes(sum + i, 1, y + i, f);
        i += ETC_LANES;
    }
    if (i < n) {
        etc_integer_bytes(sum + n - ETC_LANES, 1, y + n - ETC_LANES, f);
    }
}

/* Rows of n sums and the place of their outputs.  All rows belong to one channel, or each row to a
 * channel of its own. */
typedef struct EtcSums {
    const int32_t *sum;
    int64_t rows, n, pitch; /* pitch: the sums from one row to the next */
    int64_t channel, step;  /* the first row's channel; channels from row to row: 0 or 1 */
    int64_t at, y_row;      /* the index of the first output in y; outputs from row to row */
} EtcSums;

/* The most numbers that `then` gets at a time. */
#define ETC_THEN_ROW 512

/* Converts rows of sums to bytes by q->then.  Rows whose outputs are adjacent become one row. */
ETC_OUTLINE void etc_integer_then(const EtcSums *s, uint8_t *y, const EtcInteger *q)
{
    float v[ETC_THEN_ROW];
    EtcFinish f;
    const float by = etc_x_scale(q, 0);
    int64_t n = 0, to = s->at; /* v has n numbers, whose bytes begin at y[to] */
    etc_finish(q, &f);
    f.is_float = 1; /* so that compilers know it, too */
    for (int64_t r = 0; r < s->rows; r++) {
        const int64_t channel = s->channel + (r * s->step), at = s->at + (r * s->y_row);
        const EtcF scale = etc_splat(by * q->scales[channel]);
        const EtcF bias = etc_splat((q->bias != NULL) ? q->bias[channel] : 0.0f);
        for (int64_t i = 0, some = 0; i < s->n; i += some, n += some) {
            if (((n + ETC_LANES) > ETC_THEN_ROW) || ((to + n) != (at + i))) {
                q->then(v, y + to, n);
                n = 0;
                to = at + i;
            }
            const int32_t *sum = s->sum + (r * s->pitch) + i;
            some = etc_min_i64(s->n - i, ((ETC_THEN_ROW - n) / ETC_LANES) * ETC_LANES);
            for (int64_t k = 0; k < some; k += ETC_LANES) {
                etc_integer_put(*(const EtcIAnywhere *)(sum + k), scale, bias, v, n + k, ETC_LANES,
                                &f);
            }
        }
    }
    q->then(v, y + to, n);
}

ETC_OUTLINE void etc_integer_rows(const EtcSums *s, void *y, const EtcInteger *q)
{
    EtcFinish f;
    EtcBytesOf b;
    const float *scales = q->scales, *biases = q->bias;
    const float by = etc_x_scale(q, 0);
    int is_finite = etc_bytes_of(q, by, s->channel, &b);
    if (etc_has_then(q) != 0) {
        etc_integer_then(s, (uint8_t *)y, q);
        return;
    }
    etc_finish(q, &f);
    for (int64_t r = 0; r < s->rows; r++) {
        const int64_t channel = s->channel + (r * s->step);
        const int32_t *sum = s->sum + (r * s->pitch);
        const int64_t at = s->at + (r * s->y_row);
        const float scale = by * scales[channel], bias = (biases != NULL) ? biases[channel] : 0.0f;
        if ((r > 0) && (s->step != 0)) {
            is_finite = etc_bytes_of(q, by, channel, &b);
        }
        if ((s->n >= ETC_LANES) && (q->is_float == 0) && (is_finite != 0)) {
            etc_integer_row(sum, s->n, (uint8_t *)y + at, &b);
            continue;
        }
        for (int64_t i = 0; i < s->n; i += ETC_LANES) { /* whole vectors of sums can be read */
            etc_integer_put(*(const EtcIAnywhere *)(sum + i), etc_splat(scale), etc_splat(bias), y,
                            at + i, etc_min_i64(s->n - i, ETC_LANES), &f);
        }
    }
}

/* Does the same as etc_integer_rows for short rows of one channel.  The sums of all rows are
 * converted as one row, in place: the bytes never overtake the sums that are still to be read.
 * Then the bytes of each row are copied to y.  With vectors of 64 bytes, storing parts of vectors
 * is faster. */
ETC_INLINE void etc_integer_short_rows(const EtcSums *s, int32_t *sums, void *y,
                                       const EtcInteger *q)
{
    if ((ETC_VEC == 64) || (q->is_float != 0) || (s->n >= (8 * ETC_LANES))) {
        etc_integer_rows(s, y, q);
        return;
    }
    EtcSums run = *s;
    run.rows = 1;
    run.n = (((s->rows - 1) * s->pitch) + s->n + ETC_LANES - 1) / ETC_LANES * ETC_LANES;
    run.at = 0;
    etc_integer_rows(&run, sums, q);
    for (int64_t r = 0; r < s->rows; r++) {
        etc_byte_copy((const uint8_t *)sums + (r * s->pitch), (uint8_t *)y + s->at + (r * s->y_row),
                      s->n);
    }
}

/* -- terms ----------------------------------------------------------------------------------- */

/* Loads n bytes of terms, at most ETC_TERM_BYTES; the rest is zero. */
ETC_INLINE EtcTermBytes etc_term_bytes(const void *p, int64_t n)
{
    EtcTermBytes v;
    if (n >= ETC_TERM_BYTES) {
        __builtin_memcpy(&v, p, sizeof v);
        return v;
    }
    return etc_term_part(p, n);
}

/* Adds `terms` products to each lane of c: ETC_TERMS, or four with bounded weights. */
ETC_INLINE EtcI etc_dot_of(int64_t terms, EtcI c, EtcI x, EtcI w)
{
#if ETC_DOTS_BOUNDED == 1
    if (terms == 4) {
        return etc_dot_bounded(c, x, w);
    }
#endif
    (void)terms;
    return etc_dot(c, x, w);
}

#endif
