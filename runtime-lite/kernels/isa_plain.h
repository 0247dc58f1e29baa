/* isa_plain.h -- vectors for any CPU: 16 bytes, which the compiler splits if necessary, or one float. */
#ifndef ETC_ISA_PLAIN_H
#define ETC_ISA_PLAIN_H

#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ == 2) && !defined(__clang__)
#pragma GCC optimize("float-store") /* the CPU's registers have more bits than a float */
#endif

#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* functions that take or return vectors are static */
#endif

#if defined(ETC_ONE_LANE) /* a file for a CPU that calls functions to compute with floats */
#define ETC_VEC 4
#define ETC_REP(f) {f}
#define ETC_IOTA {0}
#else
#define ETC_VEC 16
#define ETC_REP(f) {f, f, f, f}
#define ETC_IOTA {0, 1, 2, 3}
#endif
#if defined(__ARM_FEATURE_MVE)
#define ETC_HIDES_MASKS 1 /* see etc_mask */
#endif

#if defined(__ARM_FEATURE_FMA) && defined(__ARM_ARCH_PROFILE) && (__ARM_ARCH_PROFILE == 'M')
#define ETC_REGISTERS 8 /* 32 registers of one float: etc_add_terms and etc_add_taps use them */
#else
#define ETC_REGISTERS 16
#endif
#define ETC_FMA_BY_DOUBLE 0
#define ETC_PIXELS 1

#define ETC_PUT_VECTORS 1
#define ETC_PACKS_BYTES 0
#define ETC_DOT_LANES 0

#define ETC_TERMS 2
#define ETC_SIGNED_TERMS 0

#if defined(__ARM_FP) && ((__ARM_FP & 8) != 0)
#define ETC_ROOT_F64 "vsqrt.f64 %P0, %P1" /* see etc_root_f64 */
#define ETC_ROOT_IN "w"
#elif defined(__riscv_flen) && (__riscv_flen >= 64)
#define ETC_ROOT_F64 "fsqrt.d %0, %1" /* see etc_root_f64 */
#define ETC_ROOT_IN "f"
#endif

#include "runtime-lite/kernels/lanes.h"
#include "runtime-lite/kernels/isa_exact.h"
#include "runtime-lite/kernels/isa_gnu.h"

#if defined(__ARM_FEATURE_MVE) && ((__ARM_FEATURE_MVE & 2) != 0)
#include <arm_mve.h>
#define ETC_FLOATS_OF_BYTES 1 /* gcc 12 converts vectors lane by lane */
ETC_INLINE EtcF etc_floats_u8(const uint8_t *p)
{
    return (EtcF)vcvtq_f32_u32(vldrbq_u32(p));
}

ETC_INLINE EtcF etc_floats_i8(const int8_t *p)
{
    return (EtcF)vcvtq_f32_s32(vldrbq_s32(p));
}
#endif

/* Clamps numbers to lo .. hi.  Zeros may change their sign. */
ETC_INLINE EtcF etc_within(EtcF a, EtcF lo, EtcF hi)
{
    return etc_at_most(etc_at_least(a, lo), hi);
}

/* Returns a * b + c, rounded once. */
ETC_INLINE EtcF etc_fma(EtcF a, EtcF b, EtcF c)
{
    EtcF v = c;
    for (int i = 0; i < ETC_LANES; i++) {
        v[i] = etc_fused(a[i], b[i], c[i]);
    }
    return v;
}

ETC_INLINE EtcF etc_vsqrt(EtcF a)
{
    EtcF v = a;
    for (int i = 0; i < ETC_LANES; i++) {
        v[i] = etc_root_f32(a[i]);
    }
    return v;
}

/* Converts unsigned bytes to lanes. */
ETC_INLINE EtcI etc_widen(EtcBytes b)
{
    return __builtin_convertvector(b, EtcI);
}

/* Returns the low byte of each lane. */
ETC_INLINE EtcBytes etc_low_bytes(EtcI v)
{
    return __builtin_convertvector((EtcU)v, EtcBytes);
}

ETC_INLINE void etc_store_low_part(uint8_t *p, int64_t n, EtcI v)
{
    etc_store_bytes_by_lane(p, n, etc_low_bytes(v));
}

/* Stores the low bytes of a vector, each plus `add`. */
ETC_INLINE void etc_put_bytes(uint8_t *y, int n, const EtcI v[ETC_PUT_VECTORS], uint8_t add)
{
    const EtcBytes b = etc_low_bytes(v[0] + (int32_t)add);
    (void)n;
    __builtin_memcpy(y, &b, sizeof b);
}

/* Converts eight unsigned bytes to 16-bit integers. */
ETC_INLINE EtcEight etc_widen_eight(const uint8_t *x)
{
    EtcEight v = {0};
    for (int i = 0; i < 8; i++) {
        v[i] = x[i];
    }
    return v;
}

/* Returns the larger of each pair of unsigned bytes. */
ETC_INLINE EtcSixteen etc_max_bytes(EtcSixteen a, EtcSixteen b)
{
    const EtcSixteen m = (EtcSixteen)(a > b);
    return (a & m) | (b & ~m);
}

/* Copies bytes 0, 2, ... 14 of x. */
ETC_INLINE void etc_every_second(const uint8_t *x, uint8_t *y)
{
    for (int i = 0; i < 8; i++) {
        y[i] = x[2 * i];
    }
}

/* Does nothing and returns 0: ETC_TERMS is 2. */
ETC_INLINE int etc_weave(const uint8_t *const line[4], int64_t i, uint8_t flip, uint32_t *to)
{
    (void)line;
    (void)i;
    (void)flip;
    (void)to;
    return 0;
}

/* Adds two products of 16-bit integers to each lane of c. */
ETC_INLINE EtcI etc_dot_pairs(EtcI c, EtcI x, EtcI w)
{
    return etc_dot_pairs_by_lane(c, x, w);
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

/* Returns in lane i the sum of v[i]'s lanes. */
ETC_INLINE EtcI etc_lane_sums(EtcI v[ETC_LANES])
{
    EtcI sum = ETC_REP(0);
    for (int i = 0; i < ETC_LANES; i++) {
        uint32_t s = 0;
        for (int k = 0; k < ETC_LANES; k++) {
            s += (uint32_t)v[i][k];
        }
        sum[i] = (int32_t)s;
    }
    return sum;
}

/* Interleaves the 16-bit integers of a and b.  Each 16 bytes of low have the first four of a and b
 * in the same 16 bytes, those of high the last four. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
    etc_mix_by_lane(a, b, low, high);
}

#endif
