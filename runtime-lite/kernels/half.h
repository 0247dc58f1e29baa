/* half.h -- floats of 16 bits: IEEE 754's binary16, and bfloat16, the upper half of a float.
 * They are only stored and cast; kernels do not compute in them.  Casts round to nearest, ties to
 * even. */
#ifndef ETC_HALF_H
#define ETC_HALF_H

#include "runtime-lite/kernels/core.h"

ETC_INLINE uint32_t etc_half_bits(float x)
{
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return u;
}

ETC_INLINE float etc_half_float(uint32_t u)
{
    float x;
    __builtin_memcpy(&x, &u, sizeof x);
    return x;
}

ETC_INLINE float etc_from_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h >> 15) << 31, e = (h >> 10) & 31u, m = h & 0x3ffu;
    if (e == 0u) {
        const float v = (float)m * (1.0f / 16777216.0f);
        return (sign != 0u) ? -v : v;
    }
    return etc_half_float(sign | (((e == 31u) ? 255u : (e + 112u)) << 23) | (m << 13));
}

ETC_INLINE uint16_t etc_to_half(float x)
{
    const uint32_t bits = etc_half_bits(x), sign = (bits >> 16) & 0x8000u;
    uint32_t a = bits & 0x7fffffffu;
    if (a > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (a >= 0x477ff000u) { /* 65520 or more */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (a < 0x38800000u) { /* below 2^-14: units of 2^-24; adding 2^23 rounds to an integer */
        const float units = (etc_half_float(a) * 16777216.0f) + 8388608.0f;
        return (uint16_t)(sign | (etc_half_bits(units) & 0x7ffu));
    }
    a += 0xfffu + ((a >> 13) & 1u);
    return (uint16_t)(sign | ((a - 0x38000000u) >> 13));
}

ETC_INLINE float etc_from_bfloat(uint16_t h)
{
    return etc_half_float((uint32_t)h << 16);
}

ETC_INLINE uint16_t etc_to_bfloat(float x)
{
    const uint32_t bits = etc_half_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fc0u;
    }
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
