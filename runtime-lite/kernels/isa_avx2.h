/* isa_avx2.h -- vectors of 32 bytes for AVX2 and FMA.  F16C and VNNI (AVX or AVX-512) are used if
 * the compiler's flags allow them. */
#ifndef ETC_ISA_AVX2_H
#define ETC_ISA_AVX2_H

#include <immintrin.h>

#define ETC_VEC 32
#define ETC_REP(f) {f, f, f, f, f, f, f, f}
#define ETC_IOTA {0, 1, 2, 3, 4, 5, 6, 7}

#define ETC_REGISTERS 16
#define ETC_FMA_BY_DOUBLE 0
#define ETC_PIXELS 6

#define ETC_WIDE_FMA 1 /* vectors of 8 floats or more, and one instruction for etc_fma */
#define ETC_SPLITS_LOADS 1 /* see etc_load_split */
#define ETC_REPEATS_LOADS 1 /* see etc_kept */
#define ETC_PUT_VECTORS 4
#define ETC_PACKS_BYTES 1
#define ETC_DOT_LANES 0

#if defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__)) || \
    defined(ETC_REDUCED_WEIGHTS) /* weights are in -64 .. 64 */
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

/* Loads the first n floats; the rest is zero.  n is below ETC_LANES and may be negative. */
ETC_INLINE EtcF etc_load_part(const float *p, int64_t n)
{
    EtcI iota = ETC_IOTA;
    return (EtcF)_mm256_maskload_ps(p, (__m256i)(EtcI)(iota < etc_splat_i32((int32_t)n)));
}

/* Stores the first n floats, fewer than ETC_LANES; n may be negative.  A store with a mask takes 12
 * cycles on Zen 3. */
ETC_OUTLINE void etc_store_part(float *p, int64_t n, EtcF v)
{
    __m128 left = _mm256_castps256_ps128((__m256)v);
    if (n <= 0) {
        return;
    }
    if ((n & 4) != 0) {
        _mm_storeu_ps(p, left);
        left = _mm256_extractf128_ps((__m256)v, 1);
        p += 4;
    }
    if ((n & 2) != 0) {
        _mm_storel_pi((__m64 *)(void *)p, left);
        left = _mm_movehl_ps(left, left);
        p += 2;
    }
    if ((n & 1) != 0) {
        _mm_store_ss(p, left);
    }
}

/* Replaces the lanes of a that are below lo with lo.  NaN is kept, and so is -0 if lo is 0. */
ETC_INLINE EtcF etc_at_least(EtcF a, EtcF lo)
{
    return (EtcF)_mm256_max_ps((__m256)lo, (__m256)a);
}

/* Replaces the lanes of a that are above hi with hi.  NaN is kept. */
ETC_INLINE EtcF etc_at_most(EtcF a, EtcF hi)
{
    return (EtcF)_mm256_min_ps((__m256)hi, (__m256)a);
}

/* Clamps numbers to lo .. hi.  Zeros may change their sign. */
ETC_INLINE EtcF etc_within(EtcF a, EtcF lo, EtcF hi)
{
    return etc_at_most(etc_at_least(a, lo), hi);
}

/* Returns the even lanes of a, then those of b. */
ETC_INLINE EtcF etc_even(EtcF a, EtcF b)
{
    const __m256 pairs = _mm256_shuffle_ps((__m256)a, (__m256)b, 0x88);
    return (EtcF)_mm256_permute4x64_pd((__m256d)pairs, 0xd8);
}

/* Returns the odd lanes of a, then those of b. */
ETC_INLINE EtcF etc_odd(EtcF a, EtcF b)
{
    const __m256 pairs = _mm256_shuffle_ps((__m256)a, (__m256)b, 0xdd);
    return (EtcF)_mm256_permute4x64_pd((__m256d)pairs, 0xd8);
}

/* Loads 2 ETC_LANES floats, and returns those with even and with odd indices. */
ETC_INLINE void etc_load_split(const float *p, EtcF *even, EtcF *odd)
{
    const __m256 a = _mm256_loadu2_m128(p + 8, p), b = _mm256_loadu2_m128(p + 12, p + 4);
    *even = (EtcF)_mm256_shuffle_ps(a, b, 0x88);
    *odd = (EtcF)_mm256_shuffle_ps(a, b, 0xdd);
}

/* Return the lanes of a and b in turn: those of the first halves, and of the second halves. */
ETC_INLINE EtcF etc_zip_low(EtcF a, EtcF b)
{
    return (EtcF)_mm256_permute2f128_ps(_mm256_unpacklo_ps((__m256)a, (__m256)b),
                                        _mm256_unpackhi_ps((__m256)a, (__m256)b), 0x20);
}

ETC_INLINE EtcF etc_zip_high(EtcF a, EtcF b)
{
    return (EtcF)_mm256_permute2f128_ps(_mm256_unpacklo_ps((__m256)a, (__m256)b),
                                        _mm256_unpackhi_ps((__m256)a, (__m256)b), 0x31);
}

#define ETC_TRANSPOSES 1

/* Transposes a square of ETC_LANES vectors: first each 16 bytes of four vectors, then those. */
ETC_INLINE void etc_transpose(EtcF *t)
{
    ETC_UNROLL
    for (int i = 0; i < 8; i += 4) {
        const __m256 a = _mm256_unpacklo_ps((__m256)t[i], (__m256)t[i + 1]);
        const __m256 b = _mm256_unpackhi_ps((__m256)t[i], (__m256)t[i + 1]);
        const __m256 c = _mm256_unpacklo_ps((__m256)t[i + 2], (__m256)t[i + 3]);
        const __m256 d = _mm256_unpackhi_ps((__m256)t[i + 2], (__m256)t[i + 3]);
        t[i] = (EtcF)_mm256_unpacklo_pd((__m256d)a, (__m256d)c);
        t[i + 1] = (EtcF)_mm256_unpackhi_pd((__m256d)a, (__m256d)c);
        t[i + 2] = (EtcF)_mm256_unpacklo_pd((__m256d)b, (__m256d)d);
        t[i + 3] = (EtcF)_mm256_unpackhi_pd((__m256d)b, (__m256d)d);
    }
    ETC_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256 a = (__m256)t[i], b = (__m256)t[i + 4];
        t[i] = (EtcF)_mm256_permute2f128_ps(a, b, 0x20);
        t[i + 4] = (EtcF)_mm256_permute2f128_ps(a, b, 0x31);
    }
}

/* Returns p[at[i]] in each lane i. */
ETC_INLINE EtcF etc_vgather(const float *p, EtcI at)
{
    const EtcF none = ETC_REP(0.0f);
    const EtcI all = ETC_REP(-1);
    return (EtcF)_mm256_mask_i32gather_ps((__m256)none, p, (__m256i)at, (__m256)all, 4);
}

/* Returns p[at[i]] in lane i of *a and p[at[i] + 1] in lane i of *b. */
ETC_INLINE void etc_vgather_pairs(const float *p, EtcI at, EtcF *a, EtcF *b)
{
    const double *from = (const double *)(const void *)p;
    const __m256d none = _mm256_setzero_pd(), all = (__m256d)_mm256_set1_epi64x(-1);
    const EtcF low = (EtcF)_mm256_mask_i32gather_pd(
        none, from, _mm256_castsi256_si128((__m256i)at), all, 4);
    const EtcF high = (EtcF)_mm256_mask_i32gather_pd(
        none, from, _mm256_extracti128_si256((__m256i)at, 1), all, 4);
    *a = etc_even(low, high);
    *b = etc_odd(low, high);
}

/* Returns p[at[i] mod 8] in each lane i. */
ETC_INLINE EtcF etc_of_8(const float *p, EtcI at)
{
    return (EtcF)_mm256_permutevar8x32_ps(_mm256_loadu_ps(p), (__m256i)at);
}

/* Returns whether a lane of a mask is set. */
ETC_INLINE int etc_any_set(EtcI mask)
{
    return _mm256_movemask_ps((__m256)mask) != 0;
}

/* Returns a * b + c, rounded once. */
ETC_INLINE EtcF etc_fma(EtcF a, EtcF b, EtcF c)
{
    return (EtcF)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
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
    return (EtcF)_mm256_sqrt_ps((__m256)a);
}

/* -- bytes and halves -------------------------------------------------------------------------- */

/* Converts unsigned bytes to lanes. */
ETC_INLINE EtcI etc_widen(EtcBytes b)
{
    __m128i v = _mm_setzero_si128();
    __builtin_memcpy(&v, &b, sizeof b);
    return (EtcI)_mm256_cvtepu8_epi32(v);
}

/* Returns the low byte of each lane.  (gcc 12 narrows vectors lane by lane.) */
ETC_INLINE EtcBytes etc_low_bytes(EtcI v)
{
    const EtcI low = v & 0xff;
    const __m128i a = _mm256_castsi256_si128((__m256i)low);
    const __m128i c = _mm_packs_epi32(a, _mm256_extracti128_si256((__m256i)low, 1));
    const __m128i d = _mm_packus_epi16(c, c);
    EtcBytes b;
    __builtin_memcpy(&b, &d, sizeof b);
    return b;
}

ETC_INLINE void etc_store_low_part(uint8_t *p, int64_t n, EtcI v)
{
    etc_store_bytes_by_lane(p, n, etc_low_bytes(v));
}

/* Stores the low bytes of n of the four vectors, each plus `add`. */
ETC_INLINE void etc_put_bytes(uint8_t *y, int n, const EtcI v[ETC_PUT_VECTORS], uint8_t add)
{
    const __m256i low = _mm256_set1_epi32(0xff);
    const __m256i a = _mm256_packs_epi32(_mm256_and_si256((__m256i)v[0], low),
                                         _mm256_and_si256((__m256i)v[1], low));
    const __m256i b = _mm256_packs_epi32(_mm256_and_si256((__m256i)v[2], low),
                                         _mm256_and_si256((__m256i)v[3], low));
    const __m256i bytes = _mm256_add_epi8(_mm256_packus_epi16(a, b), _mm256_set1_epi8((char)add));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i all = _mm256_permutevar8x32_epi32(bytes, order);
    __builtin_memcpy(y, &all, (size_t)n * ETC_LANES);
}

/* Stores the first n bytes of v, at most 15. */
ETC_OUTLINE void etc_store_few(uint8_t *y, int64_t n, __m128i v)
{
    if ((n & 8) != 0) {
        _mm_storel_epi64((__m128i *)(void *)y, v);
        v = _mm_srli_si128(v, 8);
        y += 8;
    }
    const uint64_t word = (uint64_t)_mm_cvtsi128_si64(v);
    for (int64_t i = 0; i < (n & 7); i++) {
        y[i] = (uint8_t)(word >> (8 * i));
    }
}

#define ETC_ROUNDS 1

/* Rounds nv vectors, one or two, to integers, adds `zero`, replaces what is less than lo by lo, and
 * stores the first n bytes, whose bits in `flip` are flipped.  No number is above 2^30. */
ETC_INLINE void etc_store_rounded(uint8_t *y, int64_t n, int nv, const EtcF v[4], int32_t zero,
                                  int32_t lo, uint8_t flip)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
    n = etc_min_i64(n, nv * ETC_LANES);
    __m256i bytes = _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)v[0]),
                                       _mm256_cvtps_epi32((__m256)v[nv - 1]));
    bytes = _mm256_adds_epi16(bytes, _mm256_set1_epi16((int16_t)zero));
    bytes = _mm256_packs_epi16(bytes, bytes);
    bytes = _mm256_max_epi8(bytes, _mm256_set1_epi8((int8_t)lo));
    bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8((int8_t)flip));
    bytes = _mm256_permutevar8x32_epi32(bytes, order);
    if (n >= 16) {
        _mm_storeu_si128((__m128i *)(void *)y, _mm256_castsi256_si128(bytes));
    } else {
        etc_store_few(y, n, _mm256_castsi256_si128(bytes));
    }
}

/* Converts ETC_LANES int8 to lanes. */
ETC_INLINE EtcI etc_widen_i8(const int8_t *p)
{
    return (EtcI)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

/* Converts ETC_LANES binary16 to floats. */
ETC_INLINE EtcF etc_widen_half(const uint16_t *p)
{
    const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
#if defined(__F16C__)
    return (EtcF)_mm256_cvtph_ps(h);
#else
    return etc_half_by_lane((EtcI)_mm256_cvtepu16_epi32(h));
#endif
}

/* -- sums of products of integers -------------------------------------------------------------- */

/* Adds two products of 16-bit integers to each lane of c. */
ETC_INLINE EtcI etc_dot_pairs(EtcI c, EtcI x, EtcI w)
{
    return (EtcI)((EtcU)c + (EtcU)_mm256_madd_epi16((__m256i)x, (__m256i)w));
}

/* Adds four products of bytes to each lane of c.  Pairs are added in 16 bits, which is exact if the sum of
 * their weights is in -128 .. 128. */
ETC_INLINE EtcI etc_dot_bounded(EtcI c, EtcI x, EtcI w)
{
    const __m256i sums = _mm256_maddubs_epi16((__m256i)x, (__m256i)w);
    return (EtcI)((EtcU)c + (EtcU)_mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
}

/* Adds ETC_TERMS products to each lane of c. */
ETC_INLINE EtcI etc_dot(EtcI c, EtcI x, EtcI w)
{
#if ETC_TERMS == 2
    return etc_dot_pairs(c, x, w);
#elif defined(__AVXVNNI__)
    return (EtcI)_mm256_dpbusd_avx_epi32((__m256i)c, (__m256i)x, (__m256i)w);
#elif defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return (EtcI)_mm256_dpbusd_epi32((__m256i)c, (__m256i)x, (__m256i)w);
#else
    return etc_dot_bounded(c, x, w);
#endif
}

#if ETC_TERMS == 2
/* Returns weights for etc_dot_bounded, which with *rest add up to w. */
ETC_INLINE EtcI etc_bound(EtcI w, EtcI *rest)
{
    const __m256i sums = _mm256_maddubs_epi16(_mm256_set1_epi8(1), (__m256i)w);
    const __m256i most = _mm256_min_epi16(sums, _mm256_set1_epi16(128));
    const __m256i bounded = _mm256_max_epi16(most, _mm256_set1_epi16(-128));
    const __m256i left = _mm256_slli_epi16(_mm256_sub_epi16(sums, bounded), 8);
    *rest = (EtcI)left;
    return (EtcI)_mm256_sub_epi16((__m256i)w, left);
}

/* Returns a bit for each lane, which is set if the lane is not 0. */
ETC_INLINE uint32_t etc_set_lanes(EtcI v)
{
    return (uint32_t)_mm256_movemask_ps((__m256)(v != 0));
}
#endif

/* Loads bytes i * step to i * step + 3 for lane i; step is 1 or 2.  First each 128 bits get the words
 * that their four lanes need. */
ETC_INLINE EtcI etc_slide(const uint8_t *x, int step)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)x);
    const __m256i word = _mm256_setr_epi32(0, 1, 2, 3, 1, 2, 3, 4);
    const __m256i four = _mm256_setr_epi32(0, 1, 2, 3, 2, 3, 4, 5);
    const __m256i one = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6));
    const __m256i two = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9));
    return (EtcI)_mm256_shuffle_epi8(
        _mm256_permutevar8x32_epi32(v, (step == 1) ? word : four), (step == 1) ? one : two);
}

/* Converts bytes of x to the operand of etc_dot.  (gcc 12 compiles __builtin_convertvector to five
 * instructions.) */
ETC_INLINE EtcI etc_x_terms(EtcTermBytes v)
{
#if ETC_TERMS == 4
    return (EtcI)v;
#else
    return (EtcI)_mm256_cvtepu8_epi16((__m128i)v);
#endif
}

ETC_INLINE EtcI etc_w_terms(EtcTermBytes v)
{
#if ETC_TERMS == 4
    return (EtcI)v;
#else
    return (EtcI)_mm256_cvtepi8_epi16((__m128i)v);
#endif
}

/* Loads n bytes of terms, fewer than a vector; the rest is zero. */
ETC_INLINE EtcTermBytes etc_term_part(const void *p, int64_t n)
{
#if ETC_TERMS == 4
    return etc_terms_by_byte(p, n);
#else
    return (EtcTermBytes)etc_load_16(p, n);
#endif
}

/* Adds lanes i and i + 2 of each 16 bytes of a and of b.  Sums of a and sums of b alternate. */
ETC_INLINE EtcI etc_fold_words(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm256_unpacklo_epi32((__m256i)a, (__m256i)b) +
                  (EtcU)_mm256_unpackhi_epi32((__m256i)a, (__m256i)b));
}

/* Adds the upper two lanes of each 16 bytes of a and of b to the lower two.  In each 16 bytes of
 * the result, the sums of a come first. */
ETC_INLINE EtcI etc_fold_pairs(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm256_unpacklo_epi64((__m256i)a, (__m256i)b) +
                  (EtcU)_mm256_unpackhi_epi64((__m256i)a, (__m256i)b));
}

/* Adds the upper four lanes of a and of b to the lower four.  The sums of a come first. */
ETC_INLINE EtcI etc_fold_fours(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x20) +
                  (EtcU)_mm256_permute2x128_si256((__m256i)a, (__m256i)b, 0x31));
}

/* Returns in lane i the sum of v[i]'s lanes. */
ETC_INLINE EtcI etc_lane_sums(EtcI v[ETC_LANES])
{
    ETC_UNROLL
    for (int i = 0; i < ETC_LANES; i += 4) {
        v[i / 4] = etc_fold_pairs(etc_fold_words(v[i], v[i + 1]),
                                  etc_fold_words(v[i + 2], v[i + 3]));
    }
    return etc_fold_fours(v[0], v[1]);
}

/* Interleaves the 16-bit integers of a and b.  Each 16 bytes of low have the first four of a and b
 * in the same 16 bytes, those of high the last four. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
    *low = (EtcI)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
    *high = (EtcI)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b);
}

/* Stores the lanes of sums that come from etc_mix in the order of the elements. */
ETC_INLINE void etc_unmix(EtcI low, EtcI high, int32_t *to)
{
    *(EtcIAnywhere *)to = (EtcI)_mm256_permute2x128_si256((__m256i)low, (__m256i)high, 0x20);
    *(EtcIAnywhere *)(to + ETC_LANES) = (EtcI)_mm256_permute2x128_si256((__m256i)low, (__m256i)high,
                                                                        0x31);
}

#endif
