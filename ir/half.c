/* half.c -- numbers as f16 and bf16, and back; ties go to the even one. */
#include "ir/ir.h"
#include <math.h>
#include <string.h>

uint16_t half_of(float v)
{
    uint32_t b;
    memcpy(&b, &v, sizeof b);
    const uint16_t sign = (uint16_t)(b >> 16 & 0x8000);
    const uint32_t m = b & 0x7fffffff;
    if (m > 0x7f800000)
        return sign | 0x7e00;
    if (m >= 0x477ff000)
        return sign | 0x7c00;
    if (m >= 0x38800000) /* normal */
        return (uint16_t)(sign | ((m - 0x38000000 + 0xfff + (m >> 13 & 1)) >> 13));
    float tiny;
    memcpy(&tiny, &m, sizeof tiny);
    const float sum = tiny + 0.5f; /* its last place is 2^-24, the least half */
    memcpy(&b, &sum, sizeof b);
    return (uint16_t)(sign | (b - 0x3f000000));
}

double half_value(uint16_t h)
{
    int e = h >> 10 & 31, digits = h & 0x3ff;
    double v = e ? ldexp(1024 + digits, e - 25) : ldexp(digits, -24);
    if (e == 31)
        v = digits ? (double)NAN : (double)INFINITY;
    return h >> 15 ? -v : v;
}

uint16_t bfloat_of(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return isnan(v) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
