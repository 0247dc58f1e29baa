/* isa_avx512.h -- AVX-512: vectors of 64 bytes; BW and VNNI where the flags allow them.
 *
 * (The masked forms with a full mask spare a false warning of gcc 12 on the unmasked ones.)
 */
#ifndef ETC_ISA_AVX512_H
#define ETC_ISA_AVX512_H

#include <immintrin.h>

#define ETC_VEC 64
#define ETC_REP(f) {f, f, f, f, f, f, f, f, f, f, f, f, f, f, f, f}
#define ETC_IOTA {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

#define ETC_REGISTERS 32
#define ETC_FMA_BY_DOUBLE 0
#define ETC_PIXELS 14

#define ETC_PUT_VECTORS 1
#define ETC_PACKS_BYTES 1

#if defined(__AVX512VNNI__)
#define ETC_TERMS 4
#else
#define ETC_TERMS 2
#endif
#define ETC_SIGNED_TERMS 0

#include "runtime-lite/kernels/lanes.h"
#include "runtime-lite/kernels/isa_x86.h"

/* The first n floats, n < ETC_LANES and maybe negative; the rest is zero. */
ETC_INLINE EtcF etc_load_part(const float *p, int64_t n)
{
    return (EtcF)_mm512_maskz_loadu_ps((__mmask16)((1u << ((n > 0) ? n : 0)) - 1u), p);
}

ETC_INLINE void etc_store_part(float *p, int64_t n, EtcF v)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << ((n > 0) ? n : 0)) - 1u), (__m512)v);
}

/* lo where a < lo; NaN stays, and so does -0 against 0. */
ETC_INLINE EtcF etc_at_least(EtcF a, EtcF lo)
{
    return (EtcF)_mm512_maskz_max_ps(0xffff, (__m512)lo, (__m512)a);
}

/* hi where a > hi; NaN stays. */
ETC_INLINE EtcF etc_at_most(EtcF a, EtcF hi)
{
    return (EtcF)_mm512_maskz_min_ps(0xffff, (__m512)hi, (__m512)a);
}

/* Numbers within lo .. hi; of zeros either sign will do. */
ETC_INLINE EtcF etc_within(EtcF a, EtcF lo, EtcF hi)
{
    return etc_at_most(etc_at_least(a, lo), hi);
}

/* The even lanes of a, then those of b. */
ETC_INLINE EtcF etc_even(EtcF a, EtcF b)
{
    const EtcI at = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    return (EtcF)_mm512_permutex2var_ps((__m512)a, (__m512i)at, (__m512)b);
}

/* The odd lanes of a, then those of b. */
ETC_INLINE EtcF etc_odd(EtcF a, EtcF b)
{
    const EtcI at = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    return (EtcF)_mm512_permutex2var_ps((__m512)a, (__m512i)at, (__m512)b);
}

/* The floats of p that `at` names. */
ETC_INLINE EtcF etc_vgather(const float *p, EtcI at)
{
    const EtcF none = ETC_REP(0.0f);
    return (EtcF)_mm512_mask_i32gather_ps((__m512)none, 0xffff, (__m512i)at, p, 4);
}

/* a * b + c, rounded once. */
ETC_INLINE EtcF etc_fma(EtcF a, EtcF b, EtcF c)
{
    return (EtcF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

/* Not done: multiply-adds are fused. */
ETC_INLINE int etc_terms_by_double(const EtcTerms *t, int mr, int nv, EtcF acc[16][4])
{
    (void)t;
    (void)mr;
    (void)nv;
    (void)acc;
    return 0;
}

ETC_INLINE EtcF etc_vsqrt(EtcF a)
{
    return (EtcF)_mm512_maskz_sqrt_ps(0xffff, (__m512)a);
}

/* -- bytes and halves -------------------------------------------------------------------------- */

/* Lanes of bytes without a sign. */
ETC_INLINE EtcI etc_widen(EtcBytes b)
{
    return (EtcI)_mm512_maskz_cvtepu8_epi32(0xffff, (__m128i)b);
}

/* The low bytes of lanes. */
ETC_INLINE EtcBytes etc_low_bytes(EtcI v)
{
    return (EtcBytes)_mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)v);
}

ETC_INLINE void etc_store_low_part(uint8_t *p, int64_t n, EtcI v)
{
    _mm512_mask_cvtepi32_storeu_epi8(p, (__mmask16)((1u << n) - 1u), (__m512i)v);
}

/* The low bytes of a vector, each with `add`. */
ETC_INLINE void etc_put_bytes(uint8_t *y, int n, const EtcI v[ETC_PUT_VECTORS], uint8_t add)
{
    const EtcBytes b = etc_low_bytes(v[0] + (int32_t)add);
    (void)n;
    __builtin_memcpy(y, &b, sizeof b);
}

/* Integers of 8 bits, a vector of them. */
ETC_INLINE EtcI etc_widen_i8(const int8_t *p)
{
    return (EtcI)_mm512_maskz_cvtepi8_epi32(0xffff,
                                            _mm_loadu_si128((const __m128i *)(const void *)p));
}

/* Halves, a vector of them. */
ETC_INLINE EtcF etc_widen_half(const uint16_t *p)
{
    return (EtcF)_mm512_maskz_cvtph_ps(0xffff,
                                       _mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* -- sums of products of integers -------------------------------------------------------------- */

/* c and in each lane two products of 16 bits. */
ETC_INLINE EtcI etc_dot_pairs(EtcI c, EtcI x, EtcI w)
{
#if defined(__AVX512VNNI__)
    return (EtcI)_mm512_dpwssd_epi32((__m512i)c, (__m512i)x, (__m512i)w);
#elif defined(__AVX512BW__)
    return (EtcI)((EtcU)c + (EtcU)_mm512_maskz_madd_epi16(0xffff, (__m512i)x, (__m512i)w));
#else
    return etc_dot_pairs_by_lane(c, x, w);
#endif
}

/* c and in each lane ETC_TERMS products. */
ETC_INLINE EtcI etc_dot(EtcI c, EtcI x, EtcI w)
{
#if ETC_TERMS == 4
    return (EtcI)_mm512_dpbusd_epi32((__m512i)c, (__m512i)x, (__m512i)w);
#else
    return etc_dot_pairs(c, x, w);
#endif
}

ETC_INLINE EtcI etc_x_terms(EtcTermBytes v)
{
#if ETC_TERMS == 4
    return (EtcI)v;
#else
    return (EtcI) __builtin_convertvector(v, EtcUS);
#endif
}

ETC_INLINE EtcI etc_w_terms(EtcTermBytes v)
{
#if ETC_TERMS == 4
    return (EtcI)v;
#else
    return (EtcI) __builtin_convertvector((EtcTermSigned)v, EtcS);
#endif
}

/* n bytes of terms, fewer than a vector; the rest is zero. */
ETC_INLINE EtcTermBytes etc_term_part(const void *p, int64_t n)
{
#if (ETC_TERMS == 4) && defined(__AVX512BW__)
    return (EtcTermBytes)_mm512_maskz_loadu_epi8(((__mmask64)1 << n) - 1u, p);
#else
    return etc_terms_by_byte(p, n);
#endif
}

/* Adds lanes of a and b two by two: sums of a and sums of b stand in turn. */
ETC_INLINE EtcI etc_fold_words(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm512_maskz_unpacklo_epi32(0xffff, (__m512i)a, (__m512i)b) +
                  (EtcU)_mm512_maskz_unpackhi_epi32(0xffff, (__m512i)a, (__m512i)b));
}

/* The same by two lanes. */
ETC_INLINE EtcI etc_fold_pairs(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm512_maskz_unpacklo_epi64(0xff, (__m512i)a, (__m512i)b) +
                  (EtcU)_mm512_maskz_unpackhi_epi64(0xff, (__m512i)a, (__m512i)b));
}

/* The same by four lanes, a's before b's. */
ETC_INLINE EtcI etc_fold_fours(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm512_maskz_shuffle_i32x4(0xffff, (__m512i)a, (__m512i)b, 0x88) +
                  (EtcU)_mm512_maskz_shuffle_i32x4(0xffff, (__m512i)a, (__m512i)b, 0xdd));
}

/* Lane i: the sum of v[i]'s lanes. */
ETC_INLINE EtcI etc_lane_sums(EtcI v[ETC_LANES])
{
    ETC_UNROLL
    for (int i = 0; i < ETC_LANES; i += 4) {
        v[i / 4] = etc_fold_pairs(etc_fold_words(v[i], v[i + 1]),
                                  etc_fold_words(v[i + 2], v[i + 3]));
    }
    return etc_fold_fours(etc_fold_fours(v[0], v[1]), etc_fold_fours(v[2], v[3]));
}

/* Numbers of 16 bits of a and b in turn: in each 16 bytes the first four of either, or the last. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
#if defined(__AVX512BW__)
    *low = (EtcI)_mm512_maskz_unpacklo_epi16(0xffffffff, (__m512i)a, (__m512i)b);
    *high = (EtcI)_mm512_maskz_unpackhi_epi16(0xffffffff, (__m512i)a, (__m512i)b);
#else
    etc_mix_by_lane(a, b, low, high);
#endif
}

/* Lanes as etc_mix left them, in order. */
ETC_INLINE void etc_unmix(EtcI low, EtcI high, int32_t *to)
{
    const EtcI first = {0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23};
    const EtcI last = {8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31};
    *(EtcIAnywhere *)to = (EtcI)_mm512_permutex2var_epi32((__m512i)low, (__m512i)first,
                                                          (__m512i)high);
    *(EtcIAnywhere *)(to + ETC_LANES) = (EtcI)_mm512_permutex2var_epi32((__m512i)low, (__m512i)last,
                                                                        (__m512i)high);
}

#endif
