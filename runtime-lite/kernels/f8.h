/* f8.h -- floats of 8 bits: a sign, 4 or 5 bits of exponent, 3 or 2 bits of mantissa.  They are
 * only stored and cast; kernels do not compute in them.  Casts follow PyTorch: they round to
 * nearest, ties to even.  A number that is too large becomes infinity in e5m2, the largest
 * number in e4m3fn, and NaN in the fnuz types.  The fnuz types have no infinity and no -0; the
 * bits of -0 are their NaN.  Their exponent bias is larger by one. */
#ifndef ETC_F8_H
#define ETC_F8_H

#include "runtime-lite/kernels/half.h"

/* Converts 8 bits to a float.  `digits` is the number of bits of the mantissa. */
ETC_INLINE float etc_from_f8(uint8_t b, uint32_t digits, uint32_t is_fnuz)
{
    const uint32_t a = b & 127u, sign = (uint32_t)(b >> 7) << 31;
    const uint32_t bias = ((digits == 2u) ? 15u : 7u) + is_fnuz;
    const uint32_t infinity = (digits == 2u) ? 0x7cu : 0x7fu; /* NaN if there is no infinity */
    if ((is_fnuz != 0u) && (b == 128u)) {
        return etc_half_float(0x7fc00000u);
    }
    if ((is_fnuz == 0u) && (a >= infinity)) {
        return etc_half_float(sign | ((a == 0x7cu) ? 0x7f800000u : 0x7fc00000u));
    }
    if ((a >> digits) == 0u) {
        const float v = (float)a * etc_half_float((128u - bias - digits) << 23);
        return (sign != 0u) ? -v : v;
    }
    return etc_half_float(sign | ((a << (23u - digits)) + ((127u - bias) << 23)));
}

ETC_INLINE uint8_t etc_to_f8(float x, uint32_t digits, uint32_t is_fnuz)
{
    const uint32_t bits = etc_half_bits(x), sign = (bits >> 24) & 128u;
    const uint32_t bias = ((digits == 2u) ? 15u : 7u) + is_fnuz, drop = 23u - digits;
    const uint32_t most = (is_fnuz != 0u) ? 0x7fu : (digits == 2u) ? 0x7bu : 0x7eu;
    uint32_t a = bits & 0x7fffffffu, r;
    if (a < ((128u - bias) << 23)) {
        /* Subnormal: counts units of the smallest number.  Adding 2^23 rounds to an integer. */
        const float units = etc_half_float(a) * etc_half_float((126u + bias + digits) << 23);
        r = etc_half_bits(units + 8388608.0f) & 0xffu;
    } else if (a < 0x48000000u) {
        a += ((1u << (drop - 1u)) - 1u) + ((a >> drop) & 1u);
        r = (a - ((127u - bias) << 23)) >> drop;
    } else {
        r = 0xffu;
    }
    if (r > most) {
        const uint32_t large = (digits == 2u) ? 0x7cu : most;
        return (uint8_t)((is_fnuz != 0u) ? 128u : (sign | ((a > 0x7f800000u) ? 0x7fu : large)));
    }
    return (uint8_t)(((r == 0u) && (is_fnuz != 0u)) ? 0u : (sign | r));
}

ETC_INLINE float etc_from_f8e5m2(uint8_t b)
{
    return etc_from_f8(b, 2u, 0u);
}

ETC_INLINE uint8_t etc_to_f8e5m2(float x)
{
    return etc_to_f8(x, 2u, 0u);
}

ETC_INLINE float etc_from_f8e4m3fn(uint8_t b)
{
    return etc_from_f8(b, 3u, 0u);
}

ETC_INLINE uint8_t etc_to_f8e4m3fn(float x)
{
    return etc_to_f8(x, 3u, 0u);
}

ETC_INLINE float etc_from_f8e5m2fnuz(uint8_t b)
{
    return etc_from_f8(b, 2u, 1u);
}

ETC_INLINE uint8_t etc_to_f8e5m2fnuz(float x)
{
    return etc_to_f8(x, 2u, 1u);
}

ETC_INLINE float etc_from_f8e4m3fnuz(uint8_t b)
{
    return etc_from_f8(b, 3u, 1u);
}

ETC_INLINE uint8_t etc_to_f8e4m3fnuz(float x)
{
    return etc_to_f8(x, 3u, 1u);
}

#endif
