/* isa_gnu.h -- functions on vectors of 16 bytes without intrinsics. */
#ifndef ETC_ISA_GNU_H
#define ETC_ISA_GNU_H

#include "runtime-lite/kernels/lanes.h"

ETC_INLINE EtcF etc_load_part(const float *p, int64_t n)
{
    return etc_load_by_lane(p, n);
}

ETC_INLINE void etc_store_part(float *p, int64_t n, EtcF v)
{
    etc_store_by_lane(p, n, v);
}

/* Replaces the lanes of a that are below lo with lo.  NaN is kept, and so is -0 if lo is 0. */
ETC_INLINE EtcF etc_at_least(EtcF a, EtcF lo)
{
    return etc_select((EtcI)(a < lo), lo, a);
}

/* Replaces the lanes of a that are above hi with hi.  NaN is kept. */
ETC_INLINE EtcF etc_at_most(EtcF a, EtcF hi)
{
    return etc_select((EtcI)(a > hi), hi, a);
}

/* Returns the even lanes of a, then those of b. */
ETC_INLINE EtcF etc_even(EtcF a, EtcF b)
{
    EtcF v = {a[0], a[2], b[0], b[2]};
    return v;
}

/* Returns the odd lanes of a, then those of b. */
ETC_INLINE EtcF etc_odd(EtcF a, EtcF b)
{
    EtcF v = {a[1], a[3], b[1], b[3]};
    return v;
}

/* Returns p[at[i]] in each lane i. */
ETC_INLINE EtcF etc_vgather(const float *p, EtcI at)
{
    EtcF v = {p[at[0]], p[at[1]], p[at[2]], p[at[3]]};
    return v;
}

/* Transposes four rows of four floats. */
ETC_INLINE void etc_transpose4(const float *x, int64_t x_row, float *y, int64_t y_row)
{
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            y[(i * y_row) + j] = x[(j * x_row) + i];
        }
    }
}

/* Does nothing and returns 0: etc_fma is not emulated in double here. */
ETC_INLINE int etc_terms_by_double(const EtcTerms *t, int mr, int nv, EtcF acc[16][4])
{
    (void)t;
    (void)mr;
    (void)nv;
    (void)acc;
    return 0;
}

/* Converts ETC_LANES int8 to lanes. */
ETC_INLINE EtcI etc_widen_i8(const int8_t *p)
{
    EtcI v = {p[0], p[1], p[2], p[3]};
    return v;
}

/* Converts ETC_LANES binary16 to floats. */
ETC_INLINE EtcF etc_widen_half(const uint16_t *p)
{
    const EtcI h = {p[0], p[1], p[2], p[3]};
    return etc_half_by_lane(h);
}

/* Loads n bytes of terms, fewer than a vector; the rest is zero. */
ETC_INLINE EtcTermBytes etc_term_part(const void *p, int64_t n)
{
    return etc_terms_by_byte(p, n);
}

/* Stores the lanes of sums that come from etc_mix in the order of the elements. */
ETC_INLINE void etc_unmix(EtcI low, EtcI high, int32_t *to)
{
    *(EtcIAnywhere *)to = low;
    *(EtcIAnywhere *)(to + ETC_LANES) = high;
}

#endif
