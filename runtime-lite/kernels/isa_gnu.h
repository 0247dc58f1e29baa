/* isa_gnu.h -- functions on vectors of 16 bytes, or of one float, without intrinsics. */
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

#if ETC_LANES == 1
ETC_INLINE EtcF etc_even(EtcF a, EtcF b)
{
    (void)b;
    return a;
}

ETC_INLINE EtcF etc_odd(EtcF a, EtcF b)
{
    (void)a;
    return b;
}

ETC_INLINE EtcF etc_zip_low(EtcF a, EtcF b)
{
    return etc_even(a, b);
}

ETC_INLINE EtcF etc_zip_high(EtcF a, EtcF b)
{
    return etc_odd(a, b);
}

ETC_INLINE EtcF etc_vgather(const float *p, EtcI at)
{
    return etc_splat(p[at[0]]);
}
#else
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

/* Return the lanes of a and b in turn: those of the first halves, and of the second halves. */
ETC_INLINE EtcF etc_zip_low(EtcF a, EtcF b)
{
    EtcF v = {a[0], b[0], a[1], b[1]};
    return v;
}

ETC_INLINE EtcF etc_zip_high(EtcF a, EtcF b)
{
    EtcF v = {a[2], b[2], a[3], b[3]};
    return v;
}

/* Returns p[at[i]] in each lane i. */
ETC_INLINE EtcF etc_vgather(const float *p, EtcI at)
{
    EtcF v = {p[at[0]], p[at[1]], p[at[2]], p[at[3]]};
    return v;
}
#endif

/* Returns p[at[i]] in lane i of *a and p[at[i] + 1] in lane i of *b. */
ETC_INLINE void etc_vgather_pairs(const float *p, EtcI at, EtcF *a, EtcF *b)
{
    *a = etc_vgather(p, at);
    *b = etc_vgather(p + 1, at);
}

/* Returns p[at[i] mod 8] in each lane i. */
ETC_INLINE EtcF etc_of_8(const float *p, EtcI at)
{
    return etc_vgather(p, at & 7);
}

/* Transposes four rows of four floats, or of any other elements of four bytes. */
ETC_INLINE void etc_transpose4(const float *x, int64_t x_row, float *y, int64_t y_row)
{
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            __builtin_memcpy(y + (i * y_row) + j, x + (j * x_row) + i, sizeof *y);
        }
    }
}

#if ETC_REGISTERS == 8
/* Adds all terms to the sums of at most four rows by four columns, which are kept in registers: s0
 * to s15.  Rows beyond mr are one before once more.  Returns 0 if the terms of a row have gaps. */
ETC_OUTLINE int etc_add_terms(const EtcTerms *t, int mr, int nv, EtcF acc[16][4])
{
    const float *a0 = t->a, *a1 = a0 + ((mr > 1) ? t->a_row : 0), *a2 = a0, *a3 = a0, *b = t->b;
    const int32_t row = (int32_t)t->b_row * 4;
    EtcF *sums = acc[0];
    int32_t k = (int32_t)t->k;
    (void)nv;
    if (t->a_step != 1) {
        return 0;
    }
    if (mr > 2) {
        a2 = a1 + t->a_row;
        a3 = a2 + ((mr > 3) ? t->a_row : 0);
    }
    __asm__ volatile(
        "vldmia %[c], {s0-s3}\n\tadd %[c], #64\n\tvldmia %[c], {s4-s7}\n\tadd %[c], #64\n\t"
        "vldmia %[c], {s8-s11}\n\tadd %[c], #64\n\tvldmia %[c], {s12-s15}\n\t"
        "cmp %[k], #0\n\tbeq 2f\n"
        "1:\tvldmia %[b], {s16-s19}\n\tadd %[b], %[row]\n\t"
        "vldmia %[a0]!, {s20}\n\tvldmia %[a1]!, {s21}\n\tvldmia %[a2]!, {s22}\n\t"
        "vldmia %[a3]!, {s23}\n\t"
        "vfma.f32 s0, s20, s16\n\tvfma.f32 s1, s20, s17\n\tvfma.f32 s2, s20, s18\n\t"
        "vfma.f32 s3, s20, s19\n\tvfma.f32 s4, s21, s16\n\tvfma.f32 s5, s21, s17\n\t"
        "vfma.f32 s6, s21, s18\n\tvfma.f32 s7, s21, s19\n\tvfma.f32 s8, s22, s16\n\t"
        "vfma.f32 s9, s22, s17\n\tvfma.f32 s10, s22, s18\n\tvfma.f32 s11, s22, s19\n\t"
        "vfma.f32 s12, s23, s16\n\tvfma.f32 s13, s23, s17\n\tvfma.f32 s14, s23, s18\n\t"
        "vfma.f32 s15, s23, s19\n\tsubs %[k], #1\n\tbne 1b\n"
        "2:\tvstmia %[c], {s12-s15}\n\tsub %[c], #64\n\tvstmia %[c], {s8-s11}\n\t"
        "sub %[c], #64\n\tvstmia %[c], {s4-s7}\n\tsub %[c], #64\n\tvstmia %[c], {s0-s3}"
        : [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3), [b] "+r"(b), [k] "+l"(k),
          [c] "+r"(sums)
        : [row] "r"(row)
        : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
          "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19", "s20", "s21", "s22", "s23");
    return 1;
}
#else
/* Does nothing and returns 0: the compiler keeps the sums of etc_tile_terms in registers. */
ETC_INLINE int etc_add_terms(const EtcTerms *t, int mr, int nv, EtcF acc[16][4])
{
    (void)t;
    (void)mr;
    (void)nv;
    (void)acc;
    return 0;
}
#endif

/* Converts ETC_LANES int8 to lanes. */
ETC_INLINE EtcI etc_widen_i8(const int8_t *p)
{
    EtcI v = ETC_REP(0);
    for (int i = 0; i < ETC_LANES; i++) {
        v[i] = p[i];
    }
    return v;
}

/* Converts ETC_LANES binary16 to floats. */
ETC_INLINE EtcF etc_widen_half(const uint16_t *p)
{
    EtcI h = ETC_REP(0);
    for (int i = 0; i < ETC_LANES; i++) {
        h[i] = p[i];
    }
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
