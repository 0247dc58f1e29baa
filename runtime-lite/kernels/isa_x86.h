/* isa_x86.h -- functions on 16 bytes in SSE2, which all instruction sets of x86 share. */
#ifndef ETC_ISA_X86_H
#define ETC_ISA_X86_H

#include "runtime-lite/kernels/lanes.h"
#include <emmintrin.h>

/* Transposes four rows of four floats, or of any other elements of four bytes. */
ETC_INLINE void etc_transpose4(const float *x, int64_t x_row, float *y, int64_t y_row)
{
    __m128 r0 = _mm_loadu_ps(x), r1 = _mm_loadu_ps(x + x_row);
    __m128 r2 = _mm_loadu_ps(x + (2 * x_row)), r3 = _mm_loadu_ps(x + (3 * x_row));
    __m128 a = _mm_unpacklo_ps(r0, r1), b = _mm_unpacklo_ps(r2, r3);
    __m128 c = _mm_unpackhi_ps(r0, r1), d = _mm_unpackhi_ps(r2, r3);
    _mm_storeu_ps(y, _mm_movelh_ps(a, b));
    _mm_storeu_ps(y + y_row, _mm_movehl_ps(b, a));
    _mm_storeu_ps(y + (2 * y_row), _mm_movelh_ps(c, d));
    _mm_storeu_ps(y + (3 * y_row), _mm_movehl_ps(d, c));
}

/* Does nothing and returns 0: shifts and ors of wide vectors are as fast. */
ETC_INLINE int etc_weave(const uint8_t *const line[4], int64_t i, uint8_t flip, uint32_t *to)
{
    (void)line;
    (void)i;
    (void)flip;
    (void)to;
    return 0;
}

/* Converts eight unsigned bytes to 16-bit integers. */
ETC_INLINE EtcEight etc_widen_eight(const uint8_t *x)
{
    const __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)x);
    return (EtcEight)_mm_unpacklo_epi8(b, _mm_setzero_si128());
}

/* Returns the larger of each pair of unsigned bytes. */
ETC_INLINE EtcSixteen etc_max_bytes(EtcSixteen a, EtcSixteen b)
{
    return (EtcSixteen)_mm_max_epu8((__m128i)a, (__m128i)b);
}

/* Copies bytes 0, 2, ... 14 of x. */
ETC_INLINE void etc_every_second(const uint8_t *x, uint8_t *y)
{
    __m128i first = _mm_loadl_epi64((const __m128i *)(const void *)x);
    const __m128i last = _mm_loadl_epi64((const __m128i *)(const void *)(x + 7));
    first = _mm_unpacklo_epi64(_mm_and_si128(first, _mm_set1_epi16(0xff)), _mm_srli_epi16(last, 8));
    first = _mm_packus_epi16(first, first);
    __builtin_memcpy(y, &first, 8);
}

/* Returns n < 8 bytes as an integer, with the first byte as the lowest. */
ETC_INLINE uint64_t etc_few_bytes(const uint8_t *p, int64_t n)
{
    uint64_t v = 0;
    if (n >= 4) { /* the last four may overlap the first four */
        v = (uint64_t) * (const EtcWord *)(const void *)p;
        return v | ((uint64_t) * (const EtcWord *)(const void *)(p + n - 4) << (8 * (n - 4)));
    }
    for (int64_t i = 0; i < n; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

/* Loads n < 16 bytes, then zeros.  It combines words, since a load that follows stores of single
 * bytes would stall. */
ETC_OUTLINE __m128i etc_load_16(const void *p, int64_t n)
{
    uint64_t part[2] = {0, 0};
    if (n >= 8) {
        __builtin_memcpy(&part[0], p, 8);
        part[1] = etc_few_bytes((const uint8_t *)p + 8, n - 8);
    } else {
        part[0] = etc_few_bytes((const uint8_t *)p, n);
    }
    return _mm_set_epi64x((int64_t)part[1], (int64_t)part[0]);
}

#endif
