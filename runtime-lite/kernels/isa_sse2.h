/* isa_sse2.h -- vectors of 16 bytes for SSE2.  Without FMA, fused multiply-adds are computed in
 * double. */
#ifndef ETC_ISA_SSE2_H
#define ETC_ISA_SSE2_H

#include <emmintrin.h>
#if defined(__FMA__)
#include <immintrin.h>
#endif

#define ETC_VEC 16
#define ETC_REP(f) {f, f, f, f}
#define ETC_IOTA {0, 1, 2, 3}

#define ETC_REGISTERS 16

#if defined(__FMA__)
#define ETC_FMA_BY_DOUBLE 0
#else
#define ETC_FMA_BY_DOUBLE 1
#endif
#define ETC_PIXELS 1

#define ETC_PUT_VECTORS 4
#define ETC_PACKS_BYTES 1
#define ETC_DOT_LANES 0

#define ETC_TERMS 2
#define ETC_SIGNED_TERMS 0

#define ETC_ROOT_F64 "sqrtsd %1, %0" /* see etc_root_f64 */
#define ETC_ROOT_IN "x"

#include "runtime-lite/kernels/lanes.h"
#include "runtime-lite/kernels/isa_exact.h"
#include "runtime-lite/kernels/isa_x86.h"

ETC_INLINE EtcF etc_load_part(const float *p, int64_t n)
{
    return etc_load_by_lane(p, n);
}

ETC_INLINE void etc_store_part(float *p, int64_t n, EtcF v)
{
    etc_store_by_lane(p, n, v);
}

/* Replaces the lanes of a that are below lo with lo.  NaN is kept, and so is -0 if lo is 0. */
ETC_INLINE EtcF etc_at_least(EtcF a, EtcF lo)
{
    return (EtcF)_mm_max_ps((__m128)lo, (__m128)a);
}

/* Replaces the lanes of a that are above hi with hi.  NaN is kept. */
ETC_INLINE EtcF etc_at_most(EtcF a, EtcF hi)
{
    return (EtcF)_mm_min_ps((__m128)hi, (__m128)a);
}

/* Clamps numbers to lo .. hi.  Zeros may change their sign. */
ETC_INLINE EtcF etc_within(EtcF a, EtcF lo, EtcF hi)
{
    return etc_at_most(etc_at_least(a, lo), hi);
}

/* Returns the even lanes of a, then those of b. */
ETC_INLINE EtcF etc_even(EtcF a, EtcF b)
{
    return (EtcF)_mm_shuffle_ps((__m128)a, (__m128)b, 0x88);
}

/* Returns the odd lanes of a, then those of b. */
ETC_INLINE EtcF etc_odd(EtcF a, EtcF b)
{
    return (EtcF)_mm_shuffle_ps((__m128)a, (__m128)b, 0xdd);
}

/* Return the lanes of a and b in turn: those of the first halves, and of the second halves. */
ETC_INLINE EtcF etc_zip_low(EtcF a, EtcF b)
{
    return (EtcF)_mm_unpacklo_ps((__m128)a, (__m128)b);
}

ETC_INLINE EtcF etc_zip_high(EtcF a, EtcF b)
{
    return (EtcF)_mm_unpackhi_ps((__m128)a, (__m128)b);
}

/* Returns p[at[i]] in each lane i. */
ETC_INLINE EtcF etc_vgather(const float *p, EtcI at)
{
    EtcF v = {p[at[0]], p[at[1]], p[at[2]], p[at[3]]};
    return v;
}

/* Returns p[at[i]] in lane i of *a and p[at[i] + 1] in lane i of *b. */
ETC_INLINE void etc_vgather_pairs(const float *p, EtcI at, EtcF *a, EtcF *b)
{
    *a = etc_vgather(p, at);
    *b = etc_vgather(p + 1, at);
}

/* Returns p[at[i] mod 8] in each lane i. */
ETC_INLINE EtcF etc_of_8(const float *p, EtcI at)
{
    return etc_vgather(p, at & 7);
}

/* -- fused multiply-adds ----------------------------------------------------------------------- */

/* Returns a * b + c in double, where a * b is exact.  If the sum is then rounded to float, the
 * result is the same as with a single rounding.  There are two exceptions: the sum was rounded and
 * is half-way between two floats, or it is in the range of subnormal floats.  Lanes with such sums
 * set bits of *rare, and the caller must compute them again.  The low 29 bits of a lane, and its
 * high half without the sign, are moved so that one signed comparison finds both cases. */
ETC_INLINE __m128d etc_fma_double(__m128d a, __m128d b, __m128d c, __m128i *rare)
{
    const __m128i mask = _mm_set_epi32(0x7fffffff, 0x1fffffff, 0x7fffffff, 0x1fffffff);
    const __m128i move = _mm_set_epi32(0x7fffffff, 0x70000000, 0x7fffffff, 0x70000000);
    const __m128i end = _mm_set_epi32(-0x47f00001, -0x7fffffff, -0x47f00001, -0x7fffffff);
    const __m128d s = _mm_add_pd(_mm_mul_pd(a, b), c);
    const __m128i at = _mm_add_epi32(_mm_and_si128(_mm_castpd_si128(s), mask), move);
    *rare = _mm_or_si128(*rare, _mm_cmpgt_epi32(end, at));
    return s;
}

/* Returns a * b + c, rounded once.  The sum in double is rounded to odd: if it is not exact, which
 * Knuth's two-sum finds out, and its last bit is 0, it is replaced with its neighbour on the other
 * side of the exact sum.  Then it is not half-way between two floats.  Source: S. Boldo and
 * G. Melquiond, "Emulation of a FMA and Correctly Rounded Sums: Proved Algorithms Using Rounding to
 * Odd", IEEE Transactions on Computers, 2008. */
ETC_INLINE float etc_fma_again(float a, float b, float c)
{
    const double p = (double)a * (double)b, d = (double)c, s = p + d, t = s - p;
    const double lost = (p - (s - t)) + (d - t);
    double odd = s;
    uint64_t bits;
    __builtin_memcpy(&bits, &s, sizeof bits);
    if (((lost < 0.0) || (lost > 0.0)) && ((bits & 1u) == 0u)) {
        bits = ((lost > 0.0) == (s > 0.0)) ? (bits + 1u) : (bits - 1u);
        __builtin_memcpy(&odd, &bits, sizeof odd);
    }
    return (float)odd;
}

/* Returns a * b + c, rounded once. */
ETC_INLINE EtcF etc_fma(EtcF a, EtcF b, EtcF c)
{
#if defined(__FMA__)
    return (EtcF)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
#else
    const __m128 va = (__m128)a, vb = (__m128)b, vc = (__m128)c;
    __m128i rare = _mm_setzero_si128();
    const __m128d low =
        etc_fma_double(_mm_cvtps_pd(va), _mm_cvtps_pd(vb), _mm_cvtps_pd(vc), &rare);
    const __m128d high = etc_fma_double(_mm_cvtps_pd(_mm_movehl_ps(va, va)),
                                        _mm_cvtps_pd(_mm_movehl_ps(vb, vb)),
                                        _mm_cvtps_pd(_mm_movehl_ps(vc, vc)), &rare);
    EtcF v = (EtcF)_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
    if (__builtin_expect(_mm_movemask_epi8(rare), 0)) {
        for (int i = 0; i < 4; i++) {
            v[i] = etc_fma_again(a[i], b[i], c[i]);
        }
    }
    return v;
#endif
}

/* Adds all terms to a tile's sums.  The sums are kept in double, and rounded to float after each
 * term.  Returns 0, with acc unchanged, if a term needs etc_fma_again, or the CPU has FMA. */
ETC_INLINE int etc_add_terms(const EtcTerms *t, int mr, int nv, EtcF acc[16][4])
{
#if defined(__FMA__)
    (void)t;
    (void)mr;
    (void)nv;
    (void)acc;
    return 0;
#else
    __m128d sum[4][4], bv[4];
    __m128i rare = _mm_setzero_si128();
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            const __m128 f = (__m128)acc[r][v];
            sum[r][2 * v] = _mm_cvtps_pd(f);
            sum[r][(2 * v) + 1] = _mm_cvtps_pd(_mm_movehl_ps(f, f));
        }
    }
    for (int64_t k = 0; k < t->k; k++) {
        const float *b = t->b + (k * t->b_row);
        const float *a = t->a + (k * t->a_step);
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            const __m128 f = _mm_loadu_ps(b + (v * ETC_LANES));
            bv[2 * v] = _mm_cvtps_pd(f);
            bv[(2 * v) + 1] = _mm_cvtps_pd(_mm_movehl_ps(f, f));
        }
        ETC_UNROLL
        for (int r = 0; r < mr; r++) {
            const __m128d av = _mm_set1_pd((double)a[r * t->a_row]);
            ETC_UNROLL
            for (int h = 0; h < (2 * nv); h++) {
                const __m128d s = etc_fma_double(av, bv[h], sum[r][h], &rare);
                sum[r][h] = _mm_cvtps_pd(_mm_cvtpd_ps(s));
            }
        }
    }
    if (_mm_movemask_epi8(rare) != 0) {
        return 0;
    }
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = (EtcF)_mm_movelh_ps(_mm_cvtpd_ps(sum[r][2 * v]),
                                            _mm_cvtpd_ps(sum[r][(2 * v) + 1]));
        }
    }
    return 1;
#endif
}

ETC_INLINE EtcF etc_vsqrt(EtcF a)
{
    return (EtcF)_mm_sqrt_ps((__m128)a);
}

/* -- bytes and halves -------------------------------------------------------------------------- */

/* Converts unsigned bytes to lanes. */
ETC_INLINE EtcI etc_widen(EtcBytes b)
{
    __m128i v = _mm_setzero_si128();
    __builtin_memcpy(&v, &b, sizeof b);
    v = _mm_unpacklo_epi8(v, _mm_setzero_si128());
    return (EtcI)_mm_unpacklo_epi16(v, _mm_setzero_si128());
}

/* Returns the low byte of each lane.  (gcc 12 narrows vectors lane by lane.) */
ETC_INLINE EtcBytes etc_low_bytes(EtcI v)
{
    const EtcI low = v & 0xff;
    const __m128i c = _mm_packs_epi32((__m128i)low, (__m128i)low);
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
    const __m128i low = _mm_set1_epi32(0xff);
    const __m128i a = _mm_packs_epi32(_mm_and_si128((__m128i)v[0], low),
                                      _mm_and_si128((__m128i)v[1], low));
    const __m128i b = _mm_packs_epi32(_mm_and_si128((__m128i)v[2], low),
                                      _mm_and_si128((__m128i)v[3], low));
    const __m128i all = _mm_add_epi8(_mm_packus_epi16(a, b), _mm_set1_epi8((char)add));
    __builtin_memcpy(y, &all, (size_t)n * ETC_LANES);
}

/* Converts ETC_LANES int8 to lanes. */
ETC_INLINE EtcI etc_widen_i8(const int8_t *p)
{
    int32_t word;
    __builtin_memcpy(&word, p, sizeof word);
    __m128i v = _mm_cvtsi32_si128(word);
    v = _mm_unpacklo_epi8(v, v);
    return (EtcI)_mm_srai_epi32(_mm_unpacklo_epi16(v, v), 24);
}

/* Converts ETC_LANES binary16 to floats. */
ETC_INLINE EtcF etc_widen_half(const uint16_t *p)
{
    return etc_half_by_lane((EtcI)_mm_unpacklo_epi16(
        _mm_loadl_epi64((const __m128i *)(const void *)p), _mm_setzero_si128()));
}

/* -- sums of products of integers -------------------------------------------------------------- */

/* Adds two products of 16-bit integers to each lane of c. */
ETC_INLINE EtcI etc_dot_pairs(EtcI c, EtcI x, EtcI w)
{
    return (EtcI)((EtcU)c + (EtcU)_mm_madd_epi16((__m128i)x, (__m128i)w));
}

ETC_INLINE EtcI etc_dot(EtcI c, EtcI x, EtcI w)
{
    return etc_dot_pairs(c, x, w);
}

ETC_INLINE EtcI etc_slide(const uint8_t *x, int step)
{
    return etc_slide_by_lane(x, step);
}

ETC_INLINE EtcI etc_x_terms(EtcTermBytes v)
{
    return (EtcI) __builtin_convertvector(v, EtcUS);
}

ETC_INLINE EtcI etc_w_terms(EtcTermBytes v)
{
    return (EtcI) __builtin_convertvector((EtcTermSigned)v, EtcS);
}

/* Loads n bytes of terms, fewer than a vector; the rest is zero. */
ETC_INLINE EtcTermBytes etc_term_part(const void *p, int64_t n)
{
    const __m128i both = etc_load_16(p, n);
    EtcTermBytes v;
    __builtin_memcpy(&v, &both, sizeof v);
    return v;
}

/* Adds lanes i and i + 2 of a and of b.  In the result, sums of a and sums of b alternate. */
ETC_INLINE EtcI etc_fold_words(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm_unpacklo_epi32((__m128i)a, (__m128i)b) +
                  (EtcU)_mm_unpackhi_epi32((__m128i)a, (__m128i)b));
}

/* Adds the upper two lanes of a and of b to the lower two.  The sums of a come first. */
ETC_INLINE EtcI etc_fold_pairs(EtcI a, EtcI b)
{
    return (EtcI)((EtcU)_mm_unpacklo_epi64((__m128i)a, (__m128i)b) +
                  (EtcU)_mm_unpackhi_epi64((__m128i)a, (__m128i)b));
}

/* Returns in lane i the sum of v[i]'s lanes. */
ETC_INLINE EtcI etc_lane_sums(EtcI v[ETC_LANES])
{
    return etc_fold_pairs(etc_fold_words(v[0], v[1]), etc_fold_words(v[2], v[3]));
}

/* Interleaves the 16-bit integers of a and b: low has the first four of each, high the last
 * four. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
    *low = (EtcI)_mm_unpacklo_epi16((__m128i)a, (__m128i)b);
    *high = (EtcI)_mm_unpackhi_epi16((__m128i)a, (__m128i)b);
}

/* Stores the lanes of sums that come from etc_mix in the order of the elements. */
ETC_INLINE void etc_unmix(EtcI low, EtcI high, int32_t *to)
{
    *(EtcIAnywhere *)to = low;
    *(EtcIAnywhere *)(to + ETC_LANES) = high;
}

#endif
