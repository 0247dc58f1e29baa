/* isa_avx512.h -- vectors of 64 bytes for AVX-512.  BW and VNNI are used if the compiler's flags
 * allow them.
 *
 * (Masked intrinsics with a full mask avoid a false warning of gcc 12 about the unmasked ones.)
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

#define ETC_WIDE_FMA 1 /* vectors of 8 floats or more, and one instruction for etc_fma */
#define ETC_PUT_VECTORS 1
#define ETC_PACKS_BYTES 1
#define ETC_DOT_LANES 0

#if defined(__AVX512VNNI__)
#define ETC_TERMS 4
#else
#define ETC_TERMS 2
#endif
#define ETC_SIGNED_TERMS 0

#define ETC_ROOT_F64 "sqrtsd %1, %0" /* see etc_root_f64 */
#define ETC_ROOT_IN "x"

#include "runtime-lite/kernels/lanes.h"
#include "runtime-lite/kernels/isa_exact.h"
#include "runtime-lite/kernels/isa_x86.h"
#include "runtime-lite/kernels/isa_amx.h"

/* Loads the first n floats; the rest is zero.  n is below ETC_LANES and may be negative. */
ETC_INLINE EtcF etc_load_part(const float *p, int64_t n)
{
    return (EtcF)_mm512_maskz_loadu_ps((__mmask16)((1u << ((n > 0) ? n : 0)) - 1u), p);
}

ETC_INLINE void etc_store_part(float *p, int64_t n, EtcF v)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << ((n > 0) ? n : 0)) - 1u), (__m512)v);
}

/* Replaces the lanes of a that are below lo with lo.  NaN is kept, and so is -0 if lo is 0. */
ETC_INLINE EtcF etc_at_least(EtcF a, EtcF lo)
{
    return (EtcF)_mm512_maskz_max_ps(0xffff, (__m512)lo, (__m512)a);
}

/* Replaces the lanes of a that are above hi with hi.  NaN is kept. */
ETC_INLINE EtcF etc_at_most(EtcF a, EtcF hi)
{
    return (EtcF)_mm512_maskz_min_ps(0xffff, (__m512)hi, (__m512)a);
}

/* Clamps numbers to lo .. hi.  Zeros may change their sign. */
ETC_INLINE EtcF etc_within(EtcF a, EtcF lo, EtcF hi)
{
    return etc_at_most(etc_at_least(a, lo), hi);
}

/* Returns the even lanes of a, then those of b. */
ETC_INLINE EtcF etc_even(EtcF a, EtcF b)
{
    const EtcI at = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30};
    return (EtcF)_mm512_permutex2var_ps((__m512)a, (__m512i)at, (__m512)b);
}

/* Returns the odd lanes of a, then those of b. */
ETC_INLINE EtcF etc_odd(EtcF a, EtcF b)
{
    const EtcI at = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    return (EtcF)_mm512_permutex2var_ps((__m512)a, (__m512i)at, (__m512)b);
}

/* Return the lanes of a and b in turn: those of the first halves, and of the second halves. */
ETC_INLINE EtcF etc_zip_low(EtcF a, EtcF b)
{
    const EtcI at = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
    return (EtcF)_mm512_permutex2var_ps((__m512)a, (__m512i)at, (__m512)b);
}

ETC_INLINE EtcF etc_zip_high(EtcF a, EtcF b)
{
    const EtcI at = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return (EtcF)_mm512_permutex2var_ps((__m512)a, (__m512i)at, (__m512)b);
}

/* Returns p[at[i]] in each lane i. */
ETC_INLINE EtcF etc_vgather(const float *p, EtcI at)
{
    const EtcF none = ETC_REP(0.0f);
    return (EtcF)_mm512_mask_i32gather_ps((__m512)none, 0xffff, (__m512i)at, p, 4);
}

/* Returns p[at[i]] in lane i of *a and p[at[i] + 1] in lane i of *b. */
ETC_INLINE void etc_vgather_pairs(const float *p, EtcI at, EtcF *a, EtcF *b)
{
    const __m512d none = _mm512_setzero_pd();
    const EtcF low = (EtcF)_mm512_mask_i32gather_pd(
        none, 0xff, _mm512_maskz_extracti64x4_epi64(0xff, (__m512i)at, 0), p, 4);
    const EtcF high = (EtcF)_mm512_mask_i32gather_pd(
        none, 0xff, _mm512_maskz_extracti64x4_epi64(0xff, (__m512i)at, 1), p, 4);
    *a = etc_even(low, high);
    *b = etc_odd(low, high);
}

/* Returns p[at[i] mod 8] in each lane i. */
ETC_INLINE EtcF etc_of_8(const float *p, EtcI at)
{
    const __m512 eight = _mm512_castps256_ps512(_mm256_loadu_ps(p));
    return (EtcF)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)(at & 7), eight);
}

/* Returns whether a lane of a mask is set. */
ETC_INLINE int etc_any_set(EtcI mask)
{
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
}

/* Returns a * b + c, rounded once. */
ETC_INLINE EtcF etc_fma(EtcF a, EtcF b, EtcF c)
{
    return (EtcF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

/* Does nothing and returns 0: the CPU has fused multiply-adds. */
ETC_INLINE int etc_add_terms(const EtcTerms *t, int mr, int nv, EtcF acc[16][4])
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

/* Converts unsigned bytes to lanes. */
ETC_INLINE EtcI etc_widen(EtcBytes b)
{
    return (EtcI)_mm512_maskz_cvtepu8_epi32(0xffff, (__m128i)b);
}

/* Returns the low byte of each lane. */
ETC_INLINE EtcBytes etc_low_bytes(EtcI v)
{
    return (EtcBytes)_mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)v);
}

ETC_INLINE void etc_store_low_part(uint8_t *p, int64_t n, EtcI v)
{
    _mm512_mask_cvtepi32_storeu_epi8(p, (__mmask16)((1u << n) - 1u), (__m512i)v);
}

/* Stores the low bytes of a vector, each plus `add`. */
ETC_INLINE void etc_put_bytes(uint8_t *y, int n, const EtcI v[ETC_PUT_VECTORS], uint8_t add)
{
    const EtcBytes b = etc_low_bytes(v[0] + (int32_t)add);
    (void)n;
    __builtin_memcpy(y, &b, sizeof b);
}

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define ETC_ROUNDS 1

/* Rounds nv vectors, at most four, to integers, adds `zero`, replaces what is less than lo by lo, and
 * stores the first n bytes, whose bits in `flip` are flipped.  No number is above 2^30. */
ETC_INLINE void etc_store_rounded(uint8_t *y, int64_t n, int nv, const EtcF v[4], int32_t zero,
                                  int32_t lo, uint8_t flip)
{
    const EtcI order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    const __m512i add = _mm512_set1_epi16((int16_t)zero);
    __m512i i[4], bytes;
    ETC_UNROLL
    for (int k = 0; k < 4; k++) {
        i[k] = _mm512_maskz_cvtps_epi32(0xffff, (__m512)v[k % nv]);
    }
    i[0] = _mm512_adds_epi16(_mm512_packs_epi32(i[0], i[1]), add);
    i[2] = (nv > 2) ? _mm512_adds_epi16(_mm512_packs_epi32(i[2], i[3]), add) : i[0];
    bytes = _mm512_maskz_permutexvar_epi32(0xffff, (__m512i)order,
                                           _mm512_packs_epi16(i[0], i[2]));
    bytes = _mm512_max_epi8(bytes, _mm512_set1_epi8((int8_t)lo));
    bytes = _mm512_xor_si512(bytes, _mm512_set1_epi8((int8_t)flip));
    if (n >= 64) {
        _mm512_storeu_si512(y, bytes);
    } else {
        _mm512_mask_storeu_epi8(y, (UINT64_C(1) << n) - 1u, bytes);
    }
}

#endif

/* Converts ETC_LANES int8 to lanes. */
ETC_INLINE EtcI etc_widen_i8(const int8_t *p)
{
    return (EtcI)_mm512_maskz_cvtepi8_epi32(0xffff,
                                            _mm_loadu_si128((const __m128i *)(const void *)p));
}

/* Converts ETC_LANES binary16 to floats. */
ETC_INLINE EtcF etc_widen_half(const uint16_t *p)
{
    return (EtcF)_mm512_maskz_cvtph_ps(0xffff,
                                       _mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* -- sums of products of integers -------------------------------------------------------------- */

/* Adds two products of 16-bit integers to each lane of c. */
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

/* Adds ETC_TERMS products to each lane of c. */
ETC_INLINE EtcI etc_dot(EtcI c, EtcI x, EtcI w)
{
#if ETC_TERMS == 4
    return (EtcI)_mm512_dpbusd_epi32((__m512i)c, (__m512i)x, (__m512i)w);
#else
    return etc_dot_pairs(c, x, w);
#endif
}

/* Loads bytes i * step to i * step + 3 for lane i; step is 1 or 2.  First each 128 bits get the words
 * that their four lanes need. */
ETC_INLINE EtcI etc_slide(const uint8_t *x, int step)
{
    const __m512i v = _mm512_loadu_si512((const void *)x);
    const __m512i word = _mm512_setr_epi32(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
    const __m512i four = _mm512_setr_epi32(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9);
    const __m512i one = _mm512_set4_epi32(0x06050403, 0x05040302, 0x04030201, 0x03020100);
    const __m512i two = _mm512_set4_epi32(0x09080706, 0x07060504, 0x05040302, 0x03020100);
    const __m512i near = /* without a mask, g++ warns of an unset vector */
        _mm512_maskz_permutexvar_epi32((__mmask16)-1, (step == 1) ? word : four, v);
    return (EtcI)_mm512_shuffle_epi8(near, (step == 1) ? one : two);
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

/* Loads n bytes of terms, fewer than a vector; the rest is zero. */
ETC_INLINE EtcTermBytes etc_term_part(const void *p, int64_t n)
{
#if defined(__AVX512BW__)
    const __m512i v = _mm512_maskz_loadu_epi8(((__mmask64)1 << n) - 1u, p);
    EtcTermBytes part;
    __builtin_memcpy(&part, &v, sizeof part);
    return part;
#else
    return etc_terms_by_byte(p, n);
#endif
}

/* Adds lanes i and i + 2 of each 16 bytes of a and of b.  Sums of a and sums of b alternate. */
ETC_INLINE EtcI etc_fold_words(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm512_maskz_unpacklo_epi32(0xffff, (__m512i)a, (__m512i)b) +
                  (EtcU)_mm512_maskz_unpackhi_epi32(0xffff, (__m512i)a, (__m512i)b));
}

/* Adds the upper two lanes of each 16 bytes of a and of b to the lower two.  In each 16 bytes of
 * the result, the sums of a come first. */
ETC_INLINE EtcI etc_fold_pairs(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm512_maskz_unpacklo_epi64(0xff, (__m512i)a, (__m512i)b) +
                  (EtcU)_mm512_maskz_unpackhi_epi64(0xff, (__m512i)a, (__m512i)b));
}

/* Adds each two adjacent groups of four lanes of a and of b.  The sums of a come first. */
ETC_INLINE EtcI etc_fold_fours(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm512_maskz_shuffle_i32x4(0xffff, (__m512i)a, (__m512i)b, 0x88) +
                  (EtcU)_mm512_maskz_shuffle_i32x4(0xffff, (__m512i)a, (__m512i)b, 0xdd));
}

/* Returns in lane i the sum of v[i]'s lanes. */
ETC_INLINE EtcI etc_lane_sums(EtcI v[ETC_LANES])
{
    ETC_UNROLL
    for (int i = 0; i < ETC_LANES; i += 4) {
        v[i / 4] = etc_fold_pairs(etc_fold_words(v[i], v[i + 1]),
                                  etc_fold_words(v[i + 2], v[i + 3]));
    }
    return etc_fold_fours(etc_fold_fours(v[0], v[1]), etc_fold_fours(v[2], v[3]));
}

/* Interleaves the 16-bit integers of a and b.  Each 16 bytes of low have the first four of a and b
 * in the same 16 bytes, those of high the last four. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
#if defined(__AVX512BW__)
    *low = (EtcI)_mm512_maskz_unpacklo_epi16(0xffffffff, (__m512i)a, (__m512i)b);
    *high = (EtcI)_mm512_maskz_unpackhi_epi16(0xffffffff, (__m512i)a, (__m512i)b);
#else
    etc_mix_by_lane(a, b, low, high);
#endif
}

/* Stores the lanes of sums that come from etc_mix in the order of the elements. */
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
