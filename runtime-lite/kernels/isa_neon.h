/* isa_neon.h -- vectors of 16 bytes for NEON of 64-bit Arm.  Dot products of bytes are used if the
 * compiler's flags allow them. */
#ifndef ETC_ISA_NEON_H
#define ETC_ISA_NEON_H

#include <arm_neon.h>

#define ETC_VEC 16
#define ETC_REP(f) {f, f, f, f}
#define ETC_IOTA {0, 1, 2, 3}

#define ETC_REGISTERS 32
#define ETC_FMA_BY_DOUBLE 0
#define ETC_PIXELS 12

#define ETC_PUT_VECTORS 4
#define ETC_PACKS_BYTES 1

#if defined(__ARM_FEATURE_DOTPROD)
#define ETC_TERMS 4
#define ETC_SIGNED_TERMS 1
#define ETC_DOT_LANES 1
#else
#define ETC_TERMS 2
#define ETC_SIGNED_TERMS 0
#define ETC_DOT_LANES 0
#endif

#define ETC_ROOT_F64 "fsqrt %d0, %d1" /* see etc_root_f64 */
#define ETC_ROOT_IN "w"

#include "runtime-lite/kernels/lanes.h"
#include "runtime-lite/kernels/isa_exact.h"
#include "runtime-lite/kernels/isa_gnu.h"

/* Clamps numbers to lo .. hi.  Zeros may change their sign. */
ETC_INLINE EtcF etc_within(EtcF a, EtcF lo, EtcF hi)
{
    return (EtcF)vminq_f32(vmaxq_f32((float32x4_t)a, (float32x4_t)lo), (float32x4_t)hi);
}

/* Returns a * b + c, rounded once. */
ETC_INLINE EtcF etc_fma(EtcF a, EtcF b, EtcF c)
{
    return (EtcF)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

ETC_INLINE EtcF etc_vsqrt(EtcF a)
{
    return (EtcF)vsqrtq_f32((float32x4_t)a);
}

/* Converts unsigned bytes to lanes.  (gcc 12 widens and narrows vectors lane by lane.) */
ETC_INLINE EtcI etc_widen(EtcBytes b)
{
    uint32_t word;
    __builtin_memcpy(&word, &b, sizeof word);
    return (EtcI)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(word))));
}

/* Returns the low byte of each lane. */
ETC_INLINE EtcBytes etc_low_bytes(EtcI v)
{
    const uint8x16_t pairs = vuzp1q_u8((uint8x16_t)v, (uint8x16_t)v);
    const uint32x4_t low = (uint32x4_t)vuzp1q_u8(pairs, pairs);
    const uint32_t word = vgetq_lane_u32(low, 0);
    EtcBytes b;
    __builtin_memcpy(&b, &word, sizeof b);
    return b;
}

ETC_INLINE void etc_store_low_part(uint8_t *p, int64_t n, EtcI v)
{
    etc_store_bytes_by_lane(p, n, etc_low_bytes(v));
}

/* Stores the low bytes of n of the four vectors, each plus `add`. */
ETC_INLINE void etc_put_bytes(uint8_t *y, int n, const EtcI v[ETC_PUT_VECTORS], uint8_t add)
{
    const uint8x16_t a = vuzp1q_u8((uint8x16_t)v[0], (uint8x16_t)v[1]);
    const uint8x16_t b = vuzp1q_u8((uint8x16_t)v[2], (uint8x16_t)v[3]);
    const uint8x16_t all = vaddq_u8(vuzp1q_u8(a, b), vdupq_n_u8(add));
    __builtin_memcpy(y, &all, (size_t)n * ETC_LANES);
}

/* Converts eight unsigned bytes to 16-bit integers. */
ETC_INLINE EtcEight etc_widen_eight(const uint8_t *x)
{
    return (EtcEight)vmovl_u8(vld1_u8(x));
}

/* Returns the larger of each pair of unsigned bytes. */
ETC_INLINE EtcSixteen etc_max_bytes(EtcSixteen a, EtcSixteen b)
{
    return (EtcSixteen)vmaxq_u8((uint8x16_t)a, (uint8x16_t)b);
}

/* Copies bytes 0, 2, ... 14 of x. */
ETC_INLINE void etc_every_second(const uint8_t *x, uint8_t *y)
{
    const uint8x8_t last = (uint8x8_t)vshr_n_u16((uint16x4_t)vld1_u8(x + 7), 8);
    vst1_u8(y, vuzp1_u8(vld1_u8(x), last));
}

/* Interleaves bytes i .. i + 15 of four lines, with the bits of `flip` flipped.  Returns 1. */
ETC_INLINE int etc_weave(const uint8_t *const line[4], int64_t i, uint8_t flip, uint32_t *to)
{
    const uint8x16_t turn = vdupq_n_u8(flip);
    uint8x16x4_t v;
    v.val[0] = veorq_u8(vld1q_u8(line[0] + i), turn);
    v.val[1] = veorq_u8(vld1q_u8(line[1] + i), turn);
    v.val[2] = veorq_u8(vld1q_u8(line[2] + i), turn);
    v.val[3] = veorq_u8(vld1q_u8(line[3] + i), turn);
    vst4q_u8((uint8_t *)(to + i), v);
    return 1;
}

/* Adds two products of 16-bit integers to each lane of c.  x is the result of etc_mix; its first
 * four integers are multiplied by the first integer of w, the last four by the second. */
ETC_INLINE EtcI etc_dot_pairs(EtcI c, EtcI x, EtcI w)
{
    const int16x8_t v = (int16x8_t)x, by = (int16x8_t)w;
    const int32x4_t first = vmlal_laneq_s16((int32x4_t)c, vget_low_s16(v), by, 0);
    return (EtcI)vmlal_high_laneq_s16(first, v, by, 1);
}

/* Adds the products of two adjacent 16-bit integers to each lane of c. */
ETC_INLINE EtcI etc_dot_neighbours(EtcI c, EtcI x, EtcI w)
{
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)x), vget_low_s16((int16x8_t)w));
    const int32x4_t high = vmull_high_s16((int16x8_t)x, (int16x8_t)w);
    return (EtcI)vaddq_s32((int32x4_t)c, vpaddq_s32(low, high));
}

/* Adds ETC_TERMS products to each lane of c. */
ETC_INLINE EtcI etc_dot(EtcI c, EtcI x, EtcI w)
{
#if ETC_TERMS == 4
    return (EtcI)vdotq_s32((int32x4_t)c, (int8x16_t)x, (int8x16_t)w);
#else
    return etc_dot_neighbours(c, x, w);
#endif
}

/* Loads bytes i * step to i * step + 3 for lane i; step is 1 or 2. */
ETC_INLINE EtcI etc_slide(const uint8_t *x, int step)
{
    const uint8x16_t one = {0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6};
    const uint8x16_t two = {0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9};
    return (EtcI)vqtbl1q_u8(vld1q_u8(x), (step == 1) ? one : two);
}

#if ETC_DOT_LANES == 1
/* Does so with the bytes in one lane of w for each lane of x. */
ETC_INLINE EtcI etc_dot_lane(EtcI c, EtcI x, EtcI w, int lane)
{
    const int32x4_t sum = (int32x4_t)c;
    switch (lane) {
    case 0:
        return (EtcI)vdotq_laneq_s32(sum, (int8x16_t)x, (int8x16_t)w, 0);
    case 1:
        return (EtcI)vdotq_laneq_s32(sum, (int8x16_t)x, (int8x16_t)w, 1);
    case 2:
        return (EtcI)vdotq_laneq_s32(sum, (int8x16_t)x, (int8x16_t)w, 2);
    default:
        return (EtcI)vdotq_laneq_s32(sum, (int8x16_t)x, (int8x16_t)w, 3);
    }
}
#endif

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

/* Returns in lane i the sum of v[i]'s lanes. */
ETC_INLINE EtcI etc_lane_sums(EtcI v[ETC_LANES])
{
    return (EtcI)vpaddq_s32(vpaddq_s32((int32x4_t)v[0], (int32x4_t)v[1]),
                            vpaddq_s32((int32x4_t)v[2], (int32x4_t)v[3]));
}

/* Sets low to the first four 16-bit integers of a and those of b, high to the last four of each. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
    *low = (EtcI)vzip1q_s64((int64x2_t)a, (int64x2_t)b);
    *high = (EtcI)vzip2q_s64((int64x2_t)a, (int64x2_t)b);
}

#endif
