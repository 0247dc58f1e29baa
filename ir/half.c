/* half.c -- numbers as f16 and bf16, and back, and those of floats of 8 bits, as the
 * kernels cast them; ties go to the even one. */
#include "ir/ir.h"
#include "runtime-lite/kernels/f8.h"

uint16_t half_of(float v)
{
    return etc_to_half(v);
}

double half_value(uint16_t h)
{
    return (double)etc_from_half(h);
}

uint16_t bfloat_of(float v)
{
    return etc_to_bfloat(v);
}

double bfloat_value(uint16_t h)
{
    return (double)etc_from_bfloat(h);
}

double f8_value(EtcDtype t, uint8_t bits)
{
    switch (t) {
    case ETC_F8E5M2:
        return (double)etc_from_f8e5m2(bits);
    case ETC_F8E4M3FN:
        return (double)etc_from_f8e4m3fn(bits);
    case ETC_F8E5M2FNUZ:
        return (double)etc_from_f8e5m2fnuz(bits);
    case ETC_F8E4M3FNUZ:
        return (double)etc_from_f8e4m3fnuz(bits);
    default:
        UNREACHABLE();
    }
}
