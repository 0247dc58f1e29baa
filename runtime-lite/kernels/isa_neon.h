/* isa_neon.h -- NEON of 64-bit Arm: vectors of 16 bytes, and dot products of bytes where the flags
 * allow them. */
#ifndef ETC_ISA_NEON_H
#define ETC_ISA_NEON_H

#include <arm_neon.h>

#define ETC_VEC 16
#define ETC_REP(f) {f, f, f, f}
#define ETC_IOTA {0, 1, 2, 3}

#define ETC_REGISTERS 32
#define ETC_FMA_BY_DOUBLE 0
#define ETC_PIXELS 12

#define ETC_PUT_VECTORS 1
#define ETC_PACKS_BYTES 0

#if defined(__ARM_FEATURE_DOTPROD)
#define ETC_TERMS 4
#define ETC_SIGNED_TERMS 1
#else
#define ETC_TERMS 2
#define ETC_SIGNED_TERMS 0
#endif

#include "runtime-lite/kernels/lanes.h"
#include "runtime-lite/kernels/isa_gnu.h"

/* a * b + c, rounded once. */
ETC_INLINE EtcF etc_fma(EtcF a, EtcF b, EtcF c)
{
    return (EtcF)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

ETC_INLINE EtcF etc_vsqrt(EtcF a)
{
    return (EtcF)vsqrtq_f32((float32x4_t)a);
}

/* c and in each lane two products of 16 bits. */
ETC_INLINE EtcI etc_dot_pairs(EtcI c, EtcI x, EtcI w)
{
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)x), vget_low_s16((int16x8_t)w));
    const int32x4_t high = vmull_high_s16((int16x8_t)x, (int16x8_t)w);
    return (EtcI)vaddq_s32((int32x4_t)c, vpaddq_s32(low, high));
}

/* c and in each lane ETC_TERMS products. */
ETC_INLINE EtcI etc_dot(EtcI c, EtcI x, EtcI w)
{
#if ETC_TERMS == 4
    return (EtcI)vdotq_s32((int32x4_t)c, (int8x16_t)x, (int8x16_t)w);
#else
    return etc_dot_pairs(c, x, w);
#endif
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

/* Lane i: the sum of v[i]'s lanes. */
ETC_INLINE EtcI etc_lane_sums(EtcI v[ETC_LANES])
{
    return (EtcI)vpaddq_s32(vpaddq_s32((int32x4_t)v[0], (int32x4_t)v[1]),
                            vpaddq_s32((int32x4_t)v[2], (int32x4_t)v[3]));
}

/* Numbers of 16 bits of a and b in turn: in each 16 bytes the first four of either, or the last. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
    *low = (EtcI)vzip1q_s16((int16x8_t)a, (int16x8_t)b);
    *high = (EtcI)vzip2q_s16((int16x8_t)a, (int16x8_t)b);
}

#endif
