/* half.c -- numbers as f16 and bf16, and back, as the
 * kernels cast them; ties go to the even one. */
#include "ir/ir.h"
#include "runtime-lite/kernels/half.h"

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
