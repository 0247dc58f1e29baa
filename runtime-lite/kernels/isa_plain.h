/* isa_plain.h -- any CPU: vectors of 16 bytes, which the compiler splits where it must. */
#ifndef ETC_ISA_PLAIN_H
#define ETC_ISA_PLAIN_H

#define ETC_VEC 16
#define ETC_REP(f) {f, f, f, f}
#define ETC_IOTA {0, 1, 2, 3}

#define ETC_REGISTERS 16
#define ETC_FMA_BY_DOUBLE 0
#define ETC_PIXELS 1

#define ETC_PUT_VECTORS 1
#define ETC_PACKS_BYTES 0

#define ETC_TERMS 2
#define ETC_SIGNED_TERMS 0

#include "runtime-lite/kernels/lanes.h"
#include "runtime-lite/kernels/isa_gnu.h"

/* a * b + c, rounded once. */
ETC_INLINE EtcF etc_fma(EtcF a, EtcF b, EtcF c)
{
    EtcF v = c;
    for (int i = 0; i < ETC_LANES; i++) {
        v[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
    return v;
}

ETC_INLINE EtcF etc_vsqrt(EtcF a)
{
    EtcF v = a;
    for (int i = 0; i < ETC_LANES; i++) {
        v[i] = __builtin_sqrtf(a[i]);
    }
    return v;
}

/* c and in each lane two products of 16 bits. */
ETC_INLINE EtcI etc_dot_pairs(EtcI c, EtcI x, EtcI w)
{
    return etc_dot_pairs_by_lane(c, x, w);
}

ETC_INLINE EtcI etc_dot(EtcI c, EtcI x, EtcI w)
{
    return etc_dot_pairs(c, x, w);
}

ETC_INLINE EtcI etc_x_terms(EtcTermBytes v)
{
    return (EtcI) __builtin_convertvector(v, EtcUS);
}

ETC_INLINE EtcI etc_w_terms(EtcTermBytes v)
{
    return (EtcI) __builtin_convertvector((EtcTermSigned)v, EtcS);
}

/* Lane i: the sum of v[i]'s lanes. */
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

/* Numbers of 16 bits of a and b in turn: in each 16 bytes the first four of either, or the last. */
ETC_INLINE void etc_mix(EtcS a, EtcS b, EtcI *low, EtcI *high)
{
    etc_mix_by_lane(a, b, low, high);
}

#endif
