/* lanes.h -- vector types of GNU C, and steps that work lane by lane without special instructions.
 *
 * Vectors are never passed between functions that are not inlined. */
#ifndef ETC_LANES_H
#define ETC_LANES_H

#include "runtime-lite/kernels/core.h"

#define ETC_LANES (ETC_VEC / 4)

typedef float EtcF __attribute__((vector_size(ETC_VEC)));
typedef int32_t EtcI __attribute__((vector_size(ETC_VEC)));
typedef uint32_t EtcU __attribute__((vector_size(ETC_VEC)));
typedef float EtcFAnywhere __attribute__((vector_size(ETC_VEC), aligned(4), may_alias));

typedef int32_t EtcIAnywhere __attribute__((vector_size(ETC_VEC), aligned(4), may_alias));

typedef uint8_t EtcBytes __attribute__((vector_size(ETC_LANES))); /* one byte for each lane */

typedef int16_t EtcS __attribute__((vector_size(ETC_VEC)));

typedef uint16_t EtcUS __attribute__((vector_size(ETC_VEC)));

/* Four bytes at any address. */
typedef uint32_t EtcWord __attribute__((aligned(1), may_alias));

typedef int16_t EtcEight __attribute__((vector_size(16)));

typedef uint8_t EtcSixteen __attribute__((vector_size(16)));

/* The number of bytes whose products one etc_dot adds up. */
#define ETC_TERM_BYTES (ETC_LANES * ETC_TERMS)
typedef uint8_t EtcTermBytes __attribute__((vector_size(ETC_TERM_BYTES)));

typedef int8_t EtcTermSigned __attribute__((vector_size(ETC_TERM_BYTES)));

/* The operands of k terms of a tile: rows of a and vectors of b. */
typedef struct EtcTerms {
    const float *a, *b;
    int64_t a_row, a_step, b_row, k; /* floats to the next row of a, term of a, row of b; terms */
} EtcTerms;

ETC_INLINE EtcF etc_splat(float f)
{
    EtcF v = ETC_REP(f);
    return v;
}

ETC_INLINE EtcI etc_splat_i32(int32_t i)
{
    EtcI v = ETC_REP(i);
    return v;
}

/* Returns a mask that comparisons made.  If gcc 12 combines masks of floats for the vectors of
 * Cortex-M55, it compares the first lanes only; so it must not see that this is a mask. */
ETC_INLINE EtcI etc_mask(EtcI mask)
{
#if defined(ETC_HIDES_MASKS)
    __asm__("" : "+t"(mask));
#endif
    return mask;
}

/* Returns v, a factor of several products.  gcc 12 loads such a vector once for each product, as an
 * operand in memory, and with 16 registers loads take longer than products; so it must not see that v
 * was loaded. */
ETC_INLINE EtcF etc_kept(EtcF v)
{
#if defined(ETC_REPEATS_LOADS)
    __asm__("" : "+x"(v));
#endif
    return v;
}

/* Returns the lanes of `yes` if those of the mask are set, else the lanes of `no`.  C has no ?: on
 * vectors. */
ETC_INLINE EtcF etc_select(EtcI mask, EtcF yes, EtcF no)
{
    const EtcI m = etc_mask(mask);
    return (EtcF)((m & (EtcI)yes) | (~m & (EtcI)no));
}

/* Returns in *s1 and *s2 two normal floats whose product is 2^n for an integer n from -150 to 128.
 * power is n + 1.5 * 2^23. */
ETC_INLINE void etc_two_powers(EtcF power, EtcF *s1, EtcF *s2)
{
    const EtcI i = (EtcI)((EtcU)power - 0x4b400000u);
    const EtcI half = i >> 1;
    *s1 = (EtcF)(((EtcU)half + 127u) << 23);
    *s2 = (EtcF)((((EtcU)i - (EtcU)half) + 127u) << 23);
}

/* -- lane by lane ---------------------------------------------------------------------------- */

ETC_INLINE EtcF etc_load_by_lane(const float *p, int64_t n)
{
    EtcF v = ETC_REP(0.0f);
    for (int i = 0; i < (ETC_LANES - 1); i++) { /* gcc knows this bound; n may be negative */
        if (i < n) {
            v[i] = p[i];
        }
    }
    return v;
}

ETC_INLINE void etc_store_by_lane(float *p, int64_t n, EtcF v)
{
    for (int i = 0; i < (ETC_LANES - 1); i++) {
        if (i < n) {
            p[i] = v[i];
        }
    }
}

/* Stores the first n bytes, fewer than the lanes, of which there are at most eight. */
ETC_INLINE void etc_store_bytes_by_lane(uint8_t *p, int64_t n, EtcBytes b)
{
    const uint8_t *from = (const uint8_t *)&b;
    if ((n & 4) != 0) {
        __builtin_memcpy(p, from, 4);
        p += 4;
        from += 4;
    }
    if ((n & 2) != 0) {
        __builtin_memcpy(p, from, 2);
        p += 2;
        from += 2;
    }
    if ((n & 1) != 0) {
        *p = *from;
    }
}

ETC_INLINE EtcI etc_slide_by_lane(const uint8_t *x, int step)
{
    EtcI v = ETC_REP(0);
    for (int i = 0; i < ETC_LANES; i++) {
        v[i] = (int32_t) * (const EtcWord *)(const void *)(x + (i * step));
    }
    return v;
}

ETC_INLINE EtcTermBytes etc_terms_by_byte(const void *p, int64_t n)
{
    EtcTermBytes v;
    uint8_t bytes[ETC_TERM_BYTES] = {0};
    for (int64_t i = 0; i < n; i++) {
        bytes[i] = ((const uint8_t *)p)[i];
    }
    __builtin_memcpy(&v, bytes, sizeof v);
    return v;
}

ETC_INLINE EtcI etc_dot_pairs_by_lane(EtcI c, EtcI x, EtcI w)
{
    const EtcI x0 = (EtcI)((EtcU)x << 16) >> 16, w0 = (EtcI)((EtcU)w << 16) >> 16;
    return (EtcI)((EtcU)c + (EtcU)(x0 * w0) + (EtcU)((x >> 16) * (w >> 16)));
}

ETC_INLINE void etc_mix_by_lane(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
    EtcS l = {0}, h = {0};
    for (int i = 0; i < (2 * ETC_LANES); i++) {
        const int from = ((i / 8) * 8) + ((i % 8) / 2);
        l[i] = ((i % 2) == 0) ? a[from] : b[from];
        h[i] = ((i % 2) == 0) ? a[from + 4] : b[from + 4];
    }
    *low = (EtcI)l;
    *high = (EtcI)h;
}

/* Converts the halves in the low 16 bits of the lanes to floats.  The high 16 bits are 0. */
ETC_INLINE EtcF etc_half_by_lane(EtcI h)
{
    const EtcI size = h & 0x7fff;
    const EtcI top = (EtcI)(size > 0x7bff) & 0x38000000; /* set for infinities and NaN */
    const EtcF normal = (EtcF)((size << 13) + 0x38000000 + top);
    const EtcF small = (EtcF)(size + 0x3f000000) - etc_splat(0.5f); /* size is in units of 2^-24 */
    return (EtcF)((EtcI)etc_select((EtcI)(size < 0x400), small, normal) | ((h & 0x8000) << 16));
}

#endif
