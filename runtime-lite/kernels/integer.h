/* integer.h -- linear layers and convolutions of 8-bit integers.
 *
 * A sum is that of (x - zero point of x) * w in 32 bits, exact whatever the order, so vector width
 * and instructions do not show in the bits.  Then, per output, each step rounded to float:
 *
 *   v = clamp(float(sum) * (scale of x * scale of its channel) + bias)
 *   y = v, or round half to even of v / scale of y within its range, plus its zero point
 *
 * which is what quantize.h makes of v.  Padding counts as the zero point, that is as nothing.
 * Weights have zero point 0 and lie as the model has them, [channel][k]; k is at most
 * ETC_INTEGER_K, so that no sum leaves 32 bits.
 */
#ifndef ETC_INTEGER_H
#define ETC_INTEGER_H

#include "runtime-lite/kernels/conv.h"
#include "runtime-lite/kernels/quantize.h"

#define ETC_INTEGER_K 65536

/* Terms that one instruction adds to a lane: four bytes, or two numbers of 16 bits. */
#if (ETC_VEC == 64) && defined(__AVX512VNNI__)
#define ETC_TERMS 4
#elif (ETC_VEC == 32) && defined(__AVXVNNI__)
#define ETC_TERMS 4
#elif (ETC_VEC == 32) && defined(__AVX512VNNI__) && defined(__AVX512VL__)
#define ETC_TERMS 4
#elif defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)
#define ETC_TERMS 4
#define ETC_SIGNED_TERMS 1
#else
#define ETC_TERMS 2
#endif

/* Rows of a tile 1, 2, 3 and 4 vectors wide, as in tile.h. */
#if (ETC_VEC == 64) || defined(__aarch64__)
#define ETC_INTEGER_NV 4
#define ETC_INTEGER_MR1 12
#define ETC_INTEGER_MR2 12
#else
#define ETC_INTEGER_NV 2
#define ETC_INTEGER_MR1 8
#define ETC_INTEGER_MR2 4
#endif

typedef uint8_t EtcHalf __attribute__((vector_size(ETC_VEC / 2)));
typedef int8_t EtcSHalf __attribute__((vector_size(ETC_VEC / 2)));
typedef int16_t EtcEight __attribute__((vector_size(16)));
typedef uint8_t EtcWhole __attribute__((vector_size(ETC_VEC)));
typedef int16_t EtcS __attribute__((vector_size(ETC_VEC)));
typedef uint16_t EtcUS __attribute__((vector_size(ETC_VEC)));
typedef int32_t EtcIAnywhere __attribute__((vector_size(ETC_VEC), aligned(4), may_alias));
typedef uint32_t EtcWord __attribute__((aligned(1), may_alias));

/* What a sum becomes, and x's zero point. */
typedef struct EtcInteger {
    const int32_t *sums;          /* of each channel's weights */
    const float *scales, *bias;   /* of channels; bias may be NULL */
    const void *x_scale, *x_zero; /* of x where the run tells them: float or double; integers */
    int32_t scale_dtype, zero_dtype;
    int32_t has_rows;             /* a scale and a zero point per row of x, not one */
    int32_t x_is_signed;          /* int8, not uint8 */
    int32_t zero;                 /* of x, where it is known; it lies within x's range */
    float lo, hi;                 /* clamp of v */
    int32_t is_float;             /* y is v */
    float inverse;                /* 1 / scale of y */
    int32_t y_zero, y_lo, y_hi;
} EtcInteger;

/* -- what x is in a sum ---------------------------------------------------------------------- */

/* Instructions that add four bytes want x without a sign (or with one: ETC_SIGNED_TERMS). */
ETC_INLINE int32_t etc_x_shift(const EtcInteger *q)
{
#if defined(ETC_SIGNED_TERMS)
    return (q->x_is_signed != 0) ? 0 : -128;
#else
    return (q->x_is_signed != 0) ? 128 : 0;
#endif
}

ETC_INLINE uint8_t etc_x_flip(const EtcInteger *q)
{
    return (etc_x_shift(q) != 0) ? 0x80 : 0;
}

/* x's zero point, of row i. */
ETC_INLINE int32_t etc_x_zero(const EtcInteger *q, int64_t i)
{
    const int64_t lo = (q->x_is_signed != 0) ? -128 : 0;
    int64_t at = q->zero;
    if (q->x_zero != NULL) {
        at = etc_q_int(q->x_zero, (q->has_rows != 0) ? i : 0, q->zero_dtype);
    }
    return (int32_t)etc_min_i64(etc_max_i64(at, lo), lo + 255);
}

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

ETC_INLINE EtcI etc_load_ints(const int32_t *p, int64_t n) /* n < ETC_LANES: the rest is zero */
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

/* What does not change from vector to vector. */
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

/* Outputs i .. i + n - 1, a vector at most. */
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

/* Sums and where they go: rows of n outputs, of one channel or of one channel each. */
typedef struct EtcSums {
    const int32_t *sum;
    int64_t rows, n, pitch; /* sums from row to row */
    int64_t channel, step;  /* of the first row, and from row to row: 0 or 1 */
    int64_t at, y_row;      /* outputs before the first, and from row to row */
} EtcSums;

ETC_OUTLINE void etc_integer_rows(const EtcSums *s, void *y, const EtcInteger *q)
{
    EtcFinish f;
    const float *scales = q->scales, *biases = q->bias;
    const float by = etc_x_scale(q, 0);
    etc_finish(q, &f);
    for (int64_t r = 0; r < s->rows; r++) {
        const int64_t channel = s->channel + (r * s->step);
        const int32_t *sum = s->sum + (r * s->pitch);
        const int64_t at = s->at + (r * s->y_row);
        const EtcF scale = etc_splat(by * scales[channel]);
        const EtcF bias = etc_splat((biases != NULL) ? biases[channel] : 0.0f);
        int64_t i = 0;
        for (; (i + ETC_LANES) <= s->n; i += ETC_LANES) {
            etc_integer_put(*(const EtcIAnywhere *)(sum + i), scale, bias, y, at + i, ETC_LANES,
                            &f);
        }
        if (i < s->n) { /* sums have room for whole vectors */
            etc_integer_put(*(const EtcIAnywhere *)(sum + i), scale, bias, y, at + i, s->n - i, &f);
        }
    }
}

/* What sums of a channel start from, so that terms need no zero point. */
ETC_INLINE int32_t etc_integer_start(const EtcInteger *q, int64_t channel, int64_t row)
{
    const uint32_t zero = (uint32_t)(etc_x_zero(q, row) + etc_x_shift(q));
    return (int32_t)(0u - (zero * (uint32_t)q->sums[channel]));
}

/* -- terms ----------------------------------------------------------------------------------- */

/* c and in each lane two products of 16 bits. */
ETC_INLINE EtcI etc_dot_pairs(EtcI c, EtcI x, EtcI w)
{
#if (ETC_VEC == 64) && defined(__AVX512VNNI__)
    return (EtcI)_mm512_dpwssd_epi32((__m512i)c, (__m512i)x, (__m512i)w);
#elif (ETC_VEC == 64) && defined(__AVX512BW__)
    return (EtcI)((EtcU)c + (EtcU)_mm512_madd_epi16((__m512i)x, (__m512i)w));
#elif ETC_VEC == 32
    return (EtcI)((EtcU)c + (EtcU)_mm256_madd_epi16((__m256i)x, (__m256i)w));
#elif (ETC_VEC == 16) && defined(__SSE2__)
    return (EtcI)((EtcU)c + (EtcU)_mm_madd_epi16((__m128i)x, (__m128i)w));
#elif defined(__aarch64__)
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)x), vget_low_s16((int16x8_t)w));
    const int32x4_t high = vmull_high_s16((int16x8_t)x, (int16x8_t)w);
    return (EtcI)vaddq_s32((int32x4_t)c, vpaddq_s32(low, high));
#else
    const EtcI x0 = (EtcI)((EtcU)x << 16) >> 16, w0 = (EtcI)((EtcU)w << 16) >> 16;
    return (EtcI)((EtcU)c + (EtcU)(x0 * w0) + (EtcU)((x >> 16) * (w >> 16)));
#endif
}

/* c and in each lane ETC_TERMS products. */
ETC_INLINE EtcI etc_dot(EtcI c, EtcI x, EtcI w)
{
#if ETC_TERMS == 2
    return etc_dot_pairs(c, x, w);
#elif ETC_VEC == 64
    return (EtcI)_mm512_dpbusd_epi32((__m512i)c, (__m512i)x, (__m512i)w);
#elif (ETC_VEC == 32) && defined(__AVXVNNI__)
    return (EtcI)_mm256_dpbusd_avx_epi32((__m256i)c, (__m256i)x, (__m256i)w);
#elif ETC_VEC == 32
    return (EtcI)_mm256_dpbusd_epi32((__m256i)c, (__m256i)x, (__m256i)w);
#else
    return (EtcI)vdotq_s32((int32x4_t)c, (int8x16_t)x, (int8x16_t)w);
#endif
}

/* -- linear ---------------------------------------------------------------------------------- */

typedef struct EtcIntegerLinear {
    int64_t m, n, k;
} EtcIntegerLinear;

/* Bytes whose terms one etc_dot adds. */
#define ETC_TERM_BYTES (ETC_LANES * ETC_TERMS)

#if ETC_TERMS == 4
typedef EtcWhole EtcTermBytes;
#else
typedef EtcHalf EtcTermBytes;
#endif

/* n bytes, and zeros up to a step. */
ETC_INLINE EtcTermBytes etc_term_bytes(const void *p, int64_t n)
{
    EtcTermBytes v;
    if (n >= ETC_TERM_BYTES) {
        __builtin_memcpy(&v, p, sizeof v);
    } else {
        uint8_t bytes[ETC_TERM_BYTES] = {0};
        for (int64_t i = 0; i < n; i++) {
            bytes[i] = ((const uint8_t *)p)[i];
        }
        __builtin_memcpy(&v, bytes, sizeof v);
    }
    return v;
}

ETC_INLINE EtcI etc_x_terms(EtcTermBytes v)
{
#if ETC_TERMS == 4
    return (EtcI)v;
#else
    return (EtcI)__builtin_convertvector(v, EtcUS);
#endif
}

ETC_INLINE EtcI etc_w_terms(EtcTermBytes v)
{
#if ETC_TERMS == 4
    return (EtcI)v;
#else
    return (EtcI)__builtin_convertvector((EtcSHalf)v, EtcS);
#endif
}

#if defined(__SSE2__)
/* Of a and b in turn, sums of two of each one's lanes. */
ETC_INLINE EtcI etc_fold_words(EtcI a, EtcI b)
{
#if ETC_VEC == 64
    return (EtcI)((EtcU)_mm512_unpacklo_epi32((__m512i)a, (__m512i)b) +
                  (EtcU)_mm512_unpackhi_epi32((__m512i)a, (__m512i)b));
#elif ETC_VEC == 32
    return (EtcI)((EtcU)_mm256_unpacklo_epi32((__m256i)a, (__m256i)b) +
                  (EtcU)_mm256_unpackhi_epi32((__m256i)a, (__m256i)b));
#else
    return (EtcI)((EtcU)_mm_unpacklo_epi32((__m128i)a, (__m128i)b) +
                  (EtcU)_mm_unpackhi_epi32((__m128i)a, (__m128i)b));
#endif
}

/* The same by two lanes. */
ETC_INLINE EtcI etc_fold_pairs(EtcI a, EtcI b)
{
#if ETC_VEC == 64
    return (EtcI)((EtcU)_mm512_unpacklo_epi64((__m512i)a, (__m512i)b) +
                  (EtcU)_mm512_unpackhi_epi64((__m512i)a, (__m512i)b));
#elif ETC_VEC == 32
    return (EtcI)((EtcU)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b) +
                  (EtcU)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b));
#else
    return (EtcI)((EtcU)_mm_unpacklo_epi64((__m128i)a, (__m128i)b) +
                  (EtcU)_mm_unpackhi_epi64((__m128i)a, (__m128i)b));
#endif
}

#if ETC_VEC > 16
/* The same by four lanes, a's before b's. */
ETC_INLINE EtcI etc_fold_fours(EtcI a, EtcI b)
{
#if ETC_VEC == 64
    return (EtcI)((EtcU)_mm512_shuffle_i32x4((__m512i)a, (__m512i)b, 0x88) +
                  (EtcU)_mm512_shuffle_i32x4((__m512i)a, (__m512i)b, 0xdd));
#else
    return (EtcI)((EtcU)_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x20) +
                  (EtcU)_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x31));
#endif
}
#endif
#endif

/* Lane i: the sum of v[i]'s lanes. */
ETC_INLINE EtcI etc_lane_sums(EtcI v[ETC_LANES])
{
#if defined(__SSE2__)
    ETC_UNROLL
    for (int i = 0; i < ETC_LANES; i += 4) {
        v[i / 4] = etc_fold_pairs(etc_fold_words(v[i], v[i + 1]),
                                  etc_fold_words(v[i + 2], v[i + 3]));
    }
#if ETC_VEC == 64
    return etc_fold_fours(etc_fold_fours(v[0], v[1]), etc_fold_fours(v[2], v[3]));
#elif ETC_VEC == 32
    return etc_fold_fours(v[0], v[1]);
#else
    return v[0];
#endif
#elif defined(__aarch64__)
    return (EtcI)vpaddq_s32(vpaddq_s32((int32x4_t)v[0], (int32x4_t)v[1]),
                            vpaddq_s32((int32x4_t)v[2], (int32x4_t)v[3]));
#else
    EtcI sum = ETC_REP(0);
    for (int i = 0; i < ETC_LANES; i++) {
        uint32_t s = 0;
        for (int k = 0; k < ETC_LANES; k++) {
            s += (uint32_t)v[i][k];
        }
        sum[i] = (int32_t)s;
    }
    return sum;
#endif
}

/* Products of a row of x with ETC_LANES rows of w, of which those past the last are the last. */
ETC_INLINE EtcI etc_integer_dots(const uint8_t *x, const int8_t *const w[ETC_LANES], int64_t k,
                                 EtcTermBytes flip)
{
    EtcI acc[ETC_LANES];
    int64_t i = 0;
    ETC_UNROLL
    for (int c = 0; c < ETC_LANES; c++) {
        acc[c] = etc_splat_i32(0);
    }
    for (; (i + ETC_TERM_BYTES) <= k; i += ETC_TERM_BYTES) {
        const EtcI xv = etc_x_terms(etc_term_bytes(x + i, ETC_TERM_BYTES) ^ flip);
        ETC_UNROLL
        for (int c = 0; c < ETC_LANES; c++) {
            acc[c] = etc_dot(acc[c], xv, etc_w_terms(etc_term_bytes(w[c] + i, ETC_TERM_BYTES)));
        }
    }
    if (i < k) {
        const EtcI xv = etc_x_terms(etc_term_bytes(x + i, k - i) ^ flip);
        ETC_UNROLL
        for (int c = 0; c < ETC_LANES; c++) {
            acc[c] = etc_dot(acc[c], xv, etc_w_terms(etc_term_bytes(w[c] + i, k - i)));
        }
    }
    return etc_lane_sums(acc);
}

/* y[m][n] of x[m][k] and w[n][k]. */
ETC_OUTLINE void etc_linear_i8(const void *x, const int8_t *w, void *y,
                                    const EtcIntegerLinear *g, const EtcInteger *given)
{
    const EtcInteger q = *given;
    EtcTermBytes flip;
    EtcFinish f;
    etc_finish(&q, &f);
    __builtin_memset(&flip, etc_x_flip(&q), sizeof flip);
    for (int64_t j = 0; j < g->n; j += ETC_LANES) {
        const int64_t left = g->n - j;
        const int8_t *row[ETC_LANES];
        for (int c = 0; c < ETC_LANES; c++) {
            row[c] = w + (etc_min_i64(j + c, g->n - 1) * g->k);
        }
        const EtcU sums = (EtcU)etc_load_ints(q.sums + j, left);
        const EtcF scales = etc_load(q.scales + j, left);
        const EtcF bias = (q.bias != NULL) ? etc_load(q.bias + j, left) : etc_splat(0.0f);
        for (int64_t i = 0; i < g->m; i++) {
            const uint32_t zero = (uint32_t)(etc_x_zero(&q, i) + etc_x_shift(&q));
            const EtcU dots = (EtcU)etc_integer_dots((const uint8_t *)x + (i * g->k), row, g->k,
                                                     flip);
            etc_integer_put((EtcI)(dots - ((EtcU)etc_splat_i32((int32_t)zero) * sums)),
                            etc_splat(etc_x_scale(&q, i)) * scales, bias, y, (i * g->n) + j, left,
                            &f);
        }
    }
}

/* -- convolution as a product ------------------------------------------------------------------ */

/* Sums of some channels by some pixels, over terms k .. k + n_k - 1. */
typedef struct EtcIntegerBlock {
    const int8_t *w; /* of the first channel and term */
    int64_t w_row;
    const uint32_t *panel; /* [n_k / ETC_TERMS][width]: ETC_TERMS terms of a pixel side by side */
    int32_t *sums;         /* [channel][width] */
    int64_t m, n_k, width;
    int is_first;          /* sums start from `start` of their channel, else from what is there */
    int64_t channel;       /* the first */
} EtcIntegerBlock;

/* Pixels of a panel at most; bytes of `work` for it, and for sums where the terms do not fit. */
#define ETC_INTEGER_PANEL (ETC_INTEGER_NV * ETC_LANES)
#define ETC_INTEGER_ROOM (ETC_WORK_BYTES / 8 * 7)
#define ETC_INTEGER_HALF (ETC_WORK_BYTES / 2)

/* Terms whose weights are widened at a time, where an instruction adds two. */
#define ETC_WIDE 128

/* A row of the panel meets a word of each channel's weights. */
ETC_INLINE void etc_integer_add(const uint32_t *panel, const uint32_t word[16], int mr, int nv,
                                EtcI acc[16][4])
{
    EtcI xv[4];
    ETC_UNROLL
    for (int v = 0; v < nv; v++) {
        xv[v] = *(const EtcIAnywhere *)(const void *)(panel + (v * ETC_LANES));
    }
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        const EtcI wv = etc_splat_i32((int32_t)word[r]);
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = etc_dot(acc[r][v], xv[v], wv);
        }
    }
}

/* Terms of rows i .. i + mr - 1. */
ETC_INLINE void etc_integer_terms(const EtcIntegerBlock *t, int64_t i, int mr, int nv,
                                  EtcI acc[16][4])
{
    const uint32_t *panel = t->panel;
    uint32_t word[16];
#if ETC_TERMS == 4
    const int8_t *w = t->w + (i * t->w_row);
    int64_t k = 0;
    for (; (k + 4) <= t->n_k; k += 4) {
        ETC_UNROLL
        for (int r = 0; r < mr; r++) {
            word[r] = *(const EtcWord *)(const void *)(w + (r * t->w_row) + k);
        }
        etc_integer_add(panel, word, mr, nv, acc);
        panel += t->width;
    }
    if (k < t->n_k) {
        for (int r = 0; r < mr; r++) {
            word[r] = 0;
            for (int64_t b = k; b < t->n_k; b++) {
                word[r] |= (uint32_t)(uint8_t)w[(r * t->w_row) + b] << (8 * (b - k));
            }
        }
        etc_integer_add(panel, word, mr, nv, acc);
    }
#else
    int16_t wide[16][ETC_WIDE + 1];
    for (int64_t k = 0; k < t->n_k; k += ETC_WIDE) {
        const int64_t n = etc_min_i64(t->n_k - k, ETC_WIDE);
        for (int r = 0; r < mr; r++) {
            const int8_t *w = t->w + ((i + r) * t->w_row) + k;
            for (int64_t b = 0; b < n; b++) {
                wide[r][b] = w[b];
            }
            wide[r][n] = 0;
        }
        for (int64_t b = 0; b < n; b += 2) {
            ETC_UNROLL
            for (int r = 0; r < mr; r++) {
                word[r] = *(const EtcWord *)(const void *)&wide[r][b];
            }
            etc_integer_add(panel, word, mr, nv, acc);
            panel += t->width;
        }
    }
#endif
}

ETC_INLINE void etc_integer_tile(const EtcIntegerBlock *t, int64_t i, int mr, int nv,
                                 const EtcInteger *q)
{
    EtcI acc[16][4];
    int32_t *sums = t->sums + (i * t->width);
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        const EtcI start = etc_splat_i32(etc_integer_start(q, t->channel + i + r, 0));
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = start;
            if (t->is_first == 0) {
                acc[r][v] = *(const EtcIAnywhere *)(sums + (r * t->width) + (v * ETC_LANES));
            }
        }
    }
    etc_integer_terms(t, i, mr, nv, acc);
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            *(EtcIAnywhere *)(sums + (r * t->width) + (v * ETC_LANES)) = acc[r][v];
        }
    }
}

ETC_INLINE void etc_integer_tiles(const EtcIntegerBlock *t, int mr, int nv, const EtcInteger *q)
{
    int64_t i = 0;
    for (; (i + mr) <= t->m; i += mr) {
        etc_integer_tile(t, i, mr, nv, q);
    }
    for (; (mr > 4) && ((i + 4) <= t->m); i += 4) {
        etc_integer_tile(t, i, 4, nv, q);
    }
    for (; i < t->m; i++) {
        etc_integer_tile(t, i, 1, nv, q);
    }
}

ETC_OUTLINE void etc_integer_tiles_1(const EtcIntegerBlock *t, const EtcInteger *q)
{
    etc_integer_tiles(t, ETC_INTEGER_MR1, 1, q);
}

ETC_OUTLINE void etc_integer_tiles_2(const EtcIntegerBlock *t, const EtcInteger *q)
{
    etc_integer_tiles(t, ETC_INTEGER_MR2, 2, q);
}

#if ETC_INTEGER_NV == 4
ETC_OUTLINE void etc_integer_tiles_3(const EtcIntegerBlock *t, const EtcInteger *q)
{
    etc_integer_tiles(t, 8, 3, q);
}

ETC_OUTLINE void etc_integer_tiles_4(const EtcIntegerBlock *t, const EtcInteger *q)
{
    etc_integer_tiles(t, 6, 4, q);
}
#endif

ETC_INLINE void etc_integer_block(const EtcIntegerBlock *t, const EtcInteger *q)
{
    switch (t->width / ETC_LANES) {
    case 1:
        etc_integer_tiles_1(t, q);
        break;
    case 2:
        etc_integer_tiles_2(t, q);
        break;
#if ETC_INTEGER_NV == 4
    case 3:
        etc_integer_tiles_3(t, q);
        break;
    case 4:
        etc_integer_tiles_4(t, q);
        break;
#endif
    default:
        break;
    }
}

ETC_INLINE EtcU etc_line_lanes(const uint8_t *p)
{
    return (EtcU)etc_widen(etc_load_bytes(p, ETC_LANES));
}

/* ETC_TERMS lines of bytes side by side. */
ETC_INLINE void etc_interleave(const uint8_t *const line[4], int64_t width, uint8_t flip,
                               uint32_t *to)
{
    for (int64_t i = 0; i < width; i += ETC_LANES) {
#if ETC_TERMS == 4
        const EtcU v = (etc_line_lanes(line[0] + i) | (etc_line_lanes(line[1] + i) << 8) |
                        (etc_line_lanes(line[2] + i) << 16) | (etc_line_lanes(line[3] + i) << 24)) ^
                       ((uint32_t)flip * 0x01010101u);
#else
        const EtcU v = (etc_line_lanes(line[0] + i) | (etc_line_lanes(line[1] + i) << 16)) ^
                       ((uint32_t)flip * 0x00010001u);
#endif
        *(EtcIAnywhere *)(void *)(to + i) = (EtcI)v;
    }
}

/* a / b; a division is dear and strides are mostly 1. */
ETC_INLINE int64_t etc_steps(int64_t a, int64_t b)
{
    return (b == 1) ? a : (a / b);
}

/* n bytes, `stride` apart. */
ETC_INLINE void etc_byte_every(const uint8_t *x, int64_t stride, uint8_t *y, int64_t n)
{
    int64_t i = 0;
    if (stride == 1) {
        __builtin_memcpy(y, x, (size_t)n);
        return;
    }
#if defined(__SSE2__)
    for (; (stride == 2) && ((i + 16) < n); i += 16) { /* of 32 bytes the last is not asked for */
        const __m128i low = _mm_set1_epi16(0xff);
        __m128i a, b;
        __builtin_memcpy(&a, x + (2 * i), sizeof a);
        __builtin_memcpy(&b, x + (2 * i) + 16, sizeof b);
        a = _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low));
        __builtin_memcpy(y + i, &a, sizeof a);
    }
#endif
    for (; i < n; i++) {
        y[i] = x[i * stride];
    }
}

/* n bytes of a row from column ix on, `stride` apart; `pad` outside [0, size). */
ETC_INLINE void etc_byte_line(const uint8_t *x, int64_t size, int64_t ix, int64_t stride,
                              uint8_t pad, uint8_t *y, int64_t n)
{
    int64_t from = 0, to = 0; /* those inside */
    if (ix < 0) {
        from = etc_min_i64(etc_steps(stride - 1 - ix, stride), n);
    }
    if (ix < size) {
        to = etc_min_i64(etc_steps(size - ix + stride - 1, stride), n);
    }
    to = etc_max_i64(from, to);
    for (int64_t i = 0; i < from; i++) {
        y[i] = pad;
    }
    if (to > from) {
        etc_byte_every(x + ix + (from * stride), stride, y + from, to - from);
    }
    for (int64_t i = to; i < n; i++) {
        y[i] = pad;
    }
}

/* A term's place: in which channel, and where in the kernel. */
typedef struct EtcTap {
    const uint8_t *plane;
    int64_t ky, kx;
} EtcTap;

ETC_INLINE void etc_tap_next(EtcTap *t, const EtcConv *g)
{
    t->kx++;
    if (t->kx == g->kw) {
        t->kx = 0;
        t->ky++;
    }
    if (t->ky == g->kh) {
        t->ky = 0;
        t->plane += g->x_plane;
    }
}

/* A term of the pixels in the runs. */
ETC_INLINE void etc_byte_taps(const EtcTap *t, const EtcConv *g, const EtcRun *run, int n_runs,
                              uint8_t pad, uint8_t *line)
{
    for (int r = 0; r < n_runs; r++) {
        const int64_t iy = run[r].iy + (t->ky * g->dh);
        const int is_inside = (iy >= 0) && (iy < g->ih);
        etc_byte_line(is_inside ? (t->plane + (iy * g->iw)) : t->plane, is_inside ? g->iw : 0,
                      run[r].ix + (t->kx * g->dw), g->sw, pad, line + run[r].column, run[r].n);
    }
}

/* Terms k0 .. k0 + n_k - 1 of pixels j .. j + n - 1. */
ETC_INLINE void etc_integer_pack(const uint8_t *x, const EtcConv *g, int64_t k0, int64_t n_k,
                                 int64_t j, int64_t n, const EtcInteger *q, uint32_t *panel)
{
    uint8_t bytes[4][ETC_INTEGER_PANEL] = {{0}};
    const uint8_t *line[4];
    EtcRun run[ETC_INTEGER_PANEL];
    const int64_t width = ((n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
    const uint8_t pad = (uint8_t)etc_x_zero(q, 0), flip = etc_x_flip(q);
    const int is_1x1 = ((g->kh * g->kw) == 1) && (g->sh == 1) && (g->sw == 1) && (g->ph == 0) &&
                       (g->pw == 0);
    const int n_runs = is_1x1 ? 0 : etc_runs(g, j, n, width, run);
    EtcTap tap = {x + ((k0 / (g->kw * g->kh)) * g->x_plane), (k0 / g->kw) % g->kh, k0 % g->kw};
    for (int64_t k = 0; k < n_k; k += ETC_TERMS) {
        for (int64_t t = 0; t < ETC_TERMS; t++) {
            line[t] = bytes[t];
            if ((k + t) >= n_k) { /* w is 0 there */
                continue;
            }
            if (is_1x1 && (n == width)) {
                line[t] = tap.plane + j;
            } else if (is_1x1) {
                __builtin_memcpy(bytes[t], tap.plane + j, (size_t)n);
            } else {
                etc_byte_taps(&tap, g, run, n_runs, pad, bytes[t]);
            }
            etc_tap_next(&tap, g);
        }
        etc_interleave(line, width, flip, panel + ((k / ETC_TERMS) * width));
    }
}

/* One image and group; `at`: its first element in y. */
ETC_INLINE void etc_integer_product(const uint8_t *x, const int8_t *w, void *y, int64_t at,
                                    int64_t channel, const EtcConv *g, const EtcInteger *q,
                                    void *work)
{
    const int64_t depth = g->ic * g->kh * g->kw, pixels = g->oh * g->ow;
    const int64_t rows = (depth + ETC_TERMS - 1) / ETC_TERMS; /* of the panel */
    int64_t vectors = etc_min_i64(ETC_INTEGER_ROOM / ETC_VEC / etc_max_i64(rows, 1),
                                  ETC_INTEGER_NV);
    const int64_t block = (vectors == 0) ? ((ETC_INTEGER_HALF / ETC_VEC) * ETC_TERMS) : depth;
    vectors = etc_max_i64(vectors, 1);
    uint32_t *panel = (uint32_t *)work;
    const int64_t all = (pixels + ETC_LANES - 1) / ETC_LANES;
    const int64_t panels = (all + vectors - 1) / vectors; /* evened out */
    const int64_t most = ((all + panels - 1) / panels) * ETC_LANES;
    for (int64_t j = 0; j < pixels; j += most) {
        const int64_t n = etc_min_i64(pixels - j, most);
        EtcIntegerBlock t = {w, depth, panel, NULL, 0, 0, 0, 1, 0};
        t.width = ((n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
        const int64_t used = (block < depth) ? ETC_INTEGER_HALF : (rows * t.width * 4);
        t.sums = (int32_t *)(void *)((uint8_t *)work + used);
        const int64_t channels = (ETC_WORK_BYTES - used) / (t.width * 4); /* at a time */
        if (block >= depth) {
            etc_integer_pack(x, g, 0, depth, j, n, q, panel);
        }
        for (int64_t c = 0; c < g->oc; c += channels) {
            t.m = etc_min_i64(g->oc - c, channels);
            t.channel = channel + c;
            for (int64_t k = 0; k < depth; k += block) {
                t.n_k = etc_min_i64(depth - k, block);
                t.w = w + (c * depth) + k;
                t.is_first = k == 0;
                if (block < depth) {
                    etc_integer_pack(x, g, k, t.n_k, j, n, q, panel);
                }
                etc_integer_block(&t, q);
            }
            const EtcSums done = {t.sums, t.m, n, t.width, t.channel, 1,
                                  at + (c * g->y_plane) + j, g->y_plane};
            etc_integer_rows(&done, y, q);
        }
    }
}

/* -- depthwise --------------------------------------------------------------------------------- */

/* An image of one channel, padded and less its zero point, as sh * sw pictures: picture (py, px)
 * has the pixels of rows py, py + sh .. and columns px, px + sw ..  Tap (y, x) of output (oy, ox)
 * then lies in picture (y % sh, x % sw) at row oy + y / sh, column ox + x / sw: the same way from
 * every output, so that rows of outputs are one run. */
typedef struct EtcPictures {
    int16_t *data;
    int64_t pitch, size; /* numbers from row to row, from picture to picture */
    int32_t *sums;       /* [output rows][pitch] */
} EtcPictures;

ETC_INLINE int64_t etc_picture_pitch(const EtcConv *g)
{
    return g->ow + (((g->kw - 1) * g->dw) / g->sw);
}

/* Numbers of one picture under `rows` output rows, and what a vector reads past the last. */
ETC_INLINE int64_t etc_picture_size(const EtcConv *g, int64_t rows)
{
    const int64_t under = rows + (((g->kh - 1) * g->dh) / g->sh);
    const int64_t n = ((under + 1) * etc_picture_pitch(g)) + (2 * ETC_LANES);
    return n + (n % 2); /* what lies behind wants words */
}

ETC_INLINE int64_t etc_picture_bytes(const EtcConv *g, int64_t rows)
{
    return (g->sh * g->sw * etc_picture_size(g, rows) * 2) +
           (((rows * etc_picture_pitch(g)) + (2 * ETC_LANES)) * 4);
}

ETC_INLINE int etc_is_integer_depthwise(const EtcConv *g)
{
    return (g->ic == 1) && (g->oc < 4) && (g->kh <= 255) && (g->kw <= 255) && (g->sh <= 8) &&
           (g->sw <= 8) && (etc_picture_pitch(g) < ETC_WORK_BYTES) &&
           (etc_picture_bytes(g, 1) <= ETC_WORK_BYTES);
}

/* Eight bytes, less their zero point. */
ETC_INLINE void etc_picture_eight(const uint8_t *x, uint8_t flip, int32_t zero, int16_t *to)
{
    EtcEight v;
#if defined(__SSE2__)
    __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)x);
    v = (EtcEight)_mm_unpacklo_epi8(b, _mm_setzero_si128());
#else
    for (int i = 0; i < 8; i++) {
        v[i] = x[i];
    }
#endif
    v = (v ^ (int16_t)flip) - (int16_t)zero;
    __builtin_memcpy(to, &v, sizeof v);
}

/* n bytes, `stride` apart, less their zero point. */
ETC_INLINE void etc_picture_run(const uint8_t *x, int64_t stride, uint8_t flip, int32_t zero,
                                int16_t *to, int64_t n)
{
    int64_t i = 0;
    for (; (stride == 1) && ((i + 8) <= n); i += 8) {
        etc_picture_eight(x + i, flip, zero, to + i);
    }
    if ((i > 0) && (i < n)) { /* the last eight, some of them again */
        etc_picture_eight(x + n - 8, flip, zero, to + n - 8);
        i = n;
    }
#if defined(__BYTE_ORDER__) && (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
    for (; (stride == 2) && ((i + 8) < n); i += 8) { /* of 16 bytes the last is not asked for */
        EtcEight v;
        __builtin_memcpy(&v, x + (2 * i), sizeof v);
        v = ((v & 0xff) ^ (int16_t)flip) - (int16_t)zero;
        __builtin_memcpy(to + i, &v, sizeof v);
    }
#endif
    for (; i < n; i++) {
        to[i] = (int16_t)((int32_t)(uint8_t)(x[i * stride] ^ flip) - zero);
    }
}

/* Columns px, px + sw .. of padded rows iy, iy + sh .. */
ETC_INLINE void etc_picture(const uint8_t *plane, const EtcConv *g, int64_t iy, int64_t px,
                            int64_t rows, const EtcInteger *q, int64_t pitch, int16_t *to)
{
    const uint8_t flip = (q->x_is_signed != 0) ? 0x80 : 0;
    const int32_t zero = etc_x_zero(q, 0) + ((q->x_is_signed != 0) ? 128 : 0);
    const int64_t ix = px - g->pw;
    const int64_t from = (ix < 0) ? etc_min_i64(etc_steps(g->sw - 1 - ix, g->sw), pitch) : 0;
    const int64_t all =
        (ix < g->iw) ? etc_min_i64(etc_steps(g->iw - ix + g->sw - 1, g->sw), pitch) : 0;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t y = iy + (r * g->sh);
        const int64_t end = ((y >= 0) && (y < g->ih)) ? etc_max_i64(all, from) : from;
        for (int64_t i = 0; i < from; i++) {
            to[i] = 0;
        }
        if (end > from) {
            etc_picture_run(plane + (y * g->iw) + ix + (from * g->sw), g->sw, flip, zero, to + from,
                            end - from);
        }
        for (int64_t i = end; i < pitch; i++) {
            to[i] = 0;
        }
        to += pitch;
    }
}

ETC_INLINE void etc_picture_all(const uint8_t *plane, const EtcConv *g, int64_t oy, int64_t rows,
                                const EtcInteger *q, const EtcPictures *p)
{
    const int64_t under = rows + (((g->kh - 1) * g->dh) / g->sh);
    for (int64_t py = 0; py < g->sh; py++) {
        for (int64_t px = 0; px < g->sw; px++) {
            etc_picture(plane, g, (oy * g->sh) + py - g->ph, px, under, q, p->pitch,
                        p->data + (((py * g->sw) + px) * p->size));
        }
    }
}

/* Numbers of 16 bits of a and b in turn: in each 16 bytes the first four of either, or the last. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
#if (ETC_VEC == 64) && defined(__AVX512BW__)
    *low = (EtcI)_mm512_unpacklo_epi16((__m512i)a, (__m512i)b);
    *high = (EtcI)_mm512_unpackhi_epi16((__m512i)a, (__m512i)b);
#elif ETC_VEC == 32
    *low = (EtcI)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
    *high = (EtcI)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b);
#elif (ETC_VEC == 16) && defined(__SSE2__)
    *low = (EtcI)_mm_unpacklo_epi16((__m128i)a, (__m128i)b);
    *high = (EtcI)_mm_unpackhi_epi16((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
    *low = (EtcI)vzip1q_s16((int16x8_t)a, (int16x8_t)b);
    *high = (EtcI)vzip2q_s16((int16x8_t)a, (int16x8_t)b);
#else
    EtcS l = {0}, h = {0};
    for (int i = 0; i < (2 * ETC_LANES); i++) {
        const int from = ((i / 8) * 8) + ((i % 8) / 2);
        l[i] = ((i % 2) == 0) ? a[from] : b[from];
        h[i] = ((i % 2) == 0) ? a[from + 4] : b[from + 4];
    }
    *low = (EtcI)l;
    *high = (EtcI)h;
#endif
}

/* Lanes as etc_mix left them, in order. */
ETC_INLINE void etc_unmix(EtcI low, EtcI high, int32_t *to)
{
#if ETC_VEC == 64
    const EtcI first = {0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23};
    const EtcI last = {8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31};
    *(EtcIAnywhere *)to =
        (EtcI)_mm512_permutex2var_epi32((__m512i)low, (__m512i)first, (__m512i)high);
    *(EtcIAnywhere *)(to + ETC_LANES) =
        (EtcI)_mm512_permutex2var_epi32((__m512i)low, (__m512i)last, (__m512i)high);
#elif ETC_VEC == 32
    *(EtcIAnywhere *)to = (EtcI)_mm256_permute2x128_si256((__m256i)low, (__m256i)high, 0x20);
    *(EtcIAnywhere *)(to + ETC_LANES) =
        (EtcI)_mm256_permute2x128_si256((__m256i)low, (__m256i)high, 0x31);
#else
    *(EtcIAnywhere *)to = low;
    *(EtcIAnywhere *)(to + ETC_LANES) = high;
#endif
}

ETC_INLINE EtcS etc_load_shorts(const int16_t *p)
{
    EtcS v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

/* Sums of n outputs in a run; offset and w of each pair of taps. */
ETC_INLINE void etc_depthwise_sums(const int16_t *data, const int64_t *offset, const uint32_t *w,
                                   int pairs, int32_t *sums, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2 * ETC_LANES) {
        EtcI low = etc_splat_i32(0), high = etc_splat_i32(0);
        ETC_UNROLL
        for (int t = 0; t < pairs; t++) {
            EtcI l, h;
            const EtcI wv = etc_splat_i32((int32_t)w[t]);
            etc_mix(etc_load_shorts(data + offset[2 * t] + i),
                    etc_load_shorts(data + offset[(2 * t) + 1] + i), &l, &h);
            low = etc_dot_pairs(low, l, wv);
            high = etc_dot_pairs(high, h, wv);
        }
        etc_unmix(low, high, sums + i);
    }
}

/* Some taps; more of them are added up.  An odd last one has a partner of weight 0. */
#define ETC_TAPS 32

/* Where taps t .. t + count - 1 of the first output lie, and again the first of them. */
ETC_INLINE void etc_tap_offsets(const EtcConv *g, const EtcPictures *p, int64_t t, int count,
                                int64_t *offset)
{
    for (int k = 0; k < count; k++) {
        const int64_t y = ((t + k) / g->kw) * g->dh, x = ((t + k) % g->kw) * g->dw;
        offset[k] = ((((y % g->sh) * g->sw) + (x % g->sw)) * p->size) + ((y / g->sh) * p->pitch) +
                    (x / g->sw);
    }
    offset[count] = offset[0];
}

ETC_INLINE void etc_tap_pairs(const int8_t *w, int count, uint32_t pair[(ETC_TAPS / 2) + 1])
{
    for (int k = 0; k < count; k += 2) {
        pair[k / 2] = (uint32_t)(uint16_t)w[k];
        if ((k + 1) < count) {
            pair[k / 2] |= (uint32_t)(uint16_t)w[k + 1] << 16;
        }
    }
}

/* The sums of n outputs in a run, some taps at a time; `first`: offsets of the first of them. */
ETC_INLINE void etc_depthwise_channel(const int8_t *w, const EtcConv *g, const EtcPictures *p,
                                      const int64_t *first, int64_t n)
{
    const int64_t taps = g->kh * g->kw;
    int32_t more[2 * ETC_LANES];
    int64_t offset[ETC_TAPS + 1];
    uint32_t pair[(ETC_TAPS / 2) + 1];
    const int count = (int)etc_min_i64(taps, ETC_TAPS);
    etc_tap_pairs(w, count, pair);
    if (count == 9) {
        etc_depthwise_sums(p->data, first, pair, 5, p->sums, n);
    } else {
        etc_depthwise_sums(p->data, first, pair, (count + 1) / 2, p->sums, n);
    }
    for (int64_t t = count; t < taps; t += ETC_TAPS) {
        const int left = (int)etc_min_i64(taps - t, ETC_TAPS);
        etc_tap_offsets(g, p, t, left, offset);
        etc_tap_pairs(w + t, left, pair);
        for (int64_t i = 0; i < n; i += 2 * ETC_LANES) {
            etc_depthwise_sums(p->data + i, offset, pair, (left + 1) / 2, more, 1);
            for (int64_t k = 0; k < (2 * ETC_LANES); k++) {
                p->sums[i + k] += more[k];
            }
        }
    }
}

/* All images and groups, of one input channel each. */
ETC_INLINE void etc_integer_depthwise(const uint8_t *x, const int8_t *w, void *y, const EtcConv *g,
                                      const EtcInteger *q, void *work)
{
    EtcPictures p = {(int16_t *)work, etc_picture_pitch(g), 0, NULL};
    int64_t offset[ETC_TAPS + 1], band = g->oh;
    while ((band > 1) && (etc_picture_bytes(g, band) > ETC_WORK_BYTES)) {
        band = (band + 1) / 2;
    }
    for (int64_t oy = 0; oy < g->oh; oy += band) {
        const int64_t rows = etc_min_i64(band, g->oh - oy);
        p.size = etc_picture_size(g, rows);
        p.sums = (int32_t *)(void *)(p.data + (g->sh * g->sw * p.size));
        etc_tap_offsets(g, &p, 0, (int)etc_min_i64(g->kh * g->kw, ETC_TAPS), offset);
        for (int64_t i = 0; i < (g->n * g->groups); i++) {
            const int64_t channel = (i % g->groups) * g->oc;
            etc_picture_all(x + (i * g->x_plane), g, oy, rows, q, &p);
            for (int64_t c = 0; c < g->oc; c++) {
                etc_depthwise_channel(w + ((channel + c) * g->kh * g->kw), g, &p, offset,
                                      rows * p.pitch);
                const EtcSums done = {p.sums, rows, g->ow, p.pitch, channel + c, 0,
                                      (((i * g->oc) + c) * g->y_plane) + (oy * g->ow), g->ow};
                etc_integer_rows(&done, y, q);
            }
        }
    }
}

/* y[n][groups * oc][oh][ow] of x and w[groups * oc][ic][kh][kw]; g's clamp is not read.
 * work: ETC_WORK_BYTES */
ETC_OUTLINE void etc_conv_i8(const void *x, const int8_t *w, void *y, const EtcConv *geometry,
                                  const EtcInteger *q, void *work)
{
    EtcConv g = *geometry;
    g.x_plane = (g.x_plane != 0) ? g.x_plane : (g.ih * g.iw);
    g.y_plane = (g.y_plane != 0) ? g.y_plane : (g.oh * g.ow);
    const int64_t x_size = g.ic * g.x_plane, y_size = g.oc * g.y_plane;
    const int64_t w_size = g.oc * g.ic * g.kh * g.kw;
    if (etc_is_integer_depthwise(&g)) {
        etc_integer_depthwise((const uint8_t *)x, w, y, &g, q, work);
        return;
    }
    for (int64_t i = 0; i < (g.n * g.groups); i++) {
        const int64_t group = i % g.groups;
        etc_integer_product((const uint8_t *)x + (i * x_size), w + (group * w_size), y, i * y_size,
                            group * g.oc, &g, q, work);
    }
}

#endif
