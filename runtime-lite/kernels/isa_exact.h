/* isa_exact.h -- multiply-adds and square roots of one number, rounded once: by an instruction if
 * the CPU has one, otherwise in integers; and the multiply-adds of taps for a Cortex-M's FPU.
 *
 * C libraries are not relied on.  newlib's fmaf rounds twice on CPUs without floats, and compilers
 * call a library beside the instruction for a root, because of errno.  Only glibc, whose functions
 * are right and use instructions that the compiler was not told of, is called; a file for
 * --freestanding defines ETC_FREESTANDING and does not call it either. */
#ifndef ETC_ISA_EXACT_H
#define ETC_ISA_EXACT_H

#include "runtime-lite/kernels/lanes.h"

#if defined(__GLIBC__) && !defined(ETC_FREESTANDING)
#define ETC_LIBRARY_IS_EXACT 1
#else
#define ETC_LIBRARY_IS_EXACT 0
#endif

/* Returns v * 2^e, rounded to the nearest float, halves to even.  v is not 0.  Its last bit may
 * stand for any bits below it. */
ETC_INLINE float etc_nearest_f32(uint64_t v, int e, uint32_t sign)
{
    const int zeros = __builtin_clzll(v);
    v <<= zeros;
    e -= zeros;
    int last = e + 40; /* the exponent of the last bit of the result */
    last = (last < -149) ? -149 : last;
    const int drop = last - e;
    const uint64_t kept = (drop < 64) ? (v >> drop) : 0;
    const uint64_t rest = (drop < 64) ? (v << (64 - drop)) : ((drop == 64) ? v : 1);
    const uint64_t half = UINT64_C(1) << 63;
    uint32_t bits = ((uint32_t)(last + 149) << 23) + (uint32_t)kept;
    bits += ((rest > half) || ((rest == half) && ((kept & 1) != 0))) ? 1u : 0u;
    bits = ((last > 104) || (bits > 0x7f800000u)) ? 0x7f800000u : bits;
    bits |= sign;
    float f;
    __builtin_memcpy(&f, &bits, sizeof f);
    return f;
}

/* Returns a * b + c, rounded once, for the bits of three floats that are neither infinite nor NaN
 * nor 0.  The product and c begin at bit 62; what the smaller one loses becomes its last bit. */
ETC_OUTLINE float etc_fma_bits(uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t ea = (a >> 23) & 255u, eb = (b >> 23) & 255u, ec = (c >> 23) & 255u;
    const uint32_t ma = (a & 0x7fffffu) | ((ea != 0u) ? 0x800000u : 0u);
    const uint32_t mb = (b & 0x7fffffu) | ((eb != 0u) ? 0x800000u : 0u);
    const uint32_t mc = (c & 0x7fffffu) | ((ec != 0u) ? 0x800000u : 0u);
    uint32_t sign = (a ^ b) & 0x80000000u;
    const int is_minus = (((a ^ b ^ c) >> 31) != 0u);
    uint64_t big = (uint64_t)ma * mb, small = mc;
    int up = __builtin_clzll(big) - 1, up_small = __builtin_clzll(small) - 1;
    int e = (int)(ea + (ea == 0u)) + (int)(eb + (eb == 0u)) - 300 - up;
    int e_small = (int)(ec + (ec == 0u)) - 150 - up_small;
    big <<= up;
    small <<= up_small;
    if ((e_small > e) || ((e_small == e) && (small > big))) {
        const uint64_t v = big;
        const int was = e;
        big = small;
        small = v;
        e = e_small;
        e_small = was;
        sign = c & 0x80000000u;
    }
    const int by = e - e_small;
    small = (by == 0) ? small
            : (by < 63) ? ((small >> by) | (((small << (64 - by)) != 0u) ? 1u : 0u)) : 1u;
    big = (is_minus != 0) ? (big - small) : (big + small);
    return (big == 0u) ? 0.0f : etc_nearest_f32(big, e, sign);
}

ETC_INLINE float etc_fma_by_integers(float a, float b, float c)
{
    uint32_t at[3];
    __builtin_memcpy(&at[0], &a, 4);
    __builtin_memcpy(&at[1], &b, 4);
    __builtin_memcpy(&at[2], &c, 4);
    const uint32_t whole = 0x7f800000u;
    if (((at[0] & whole) == whole) || ((at[1] & whole) == whole)) {
        return (a * b) + c;
    }
    if ((at[2] & whole) == whole) {
        return c;
    }
    if (((at[0] << 1) == 0u) || ((at[1] << 1) == 0u)) {
        return (a * b) + c;
    }
    if ((at[2] << 1) == 0u) {
        return a * b; /* a product that is too small for a float keeps its sign */
    }
    return etc_fma_bits(at[0], at[1], at[2]);
}

/* Returns a * b + c, rounded once. */
ETC_INLINE float etc_fused(float a, float b, float c)
{
#if defined(__clang__) && defined(__arm__) && defined(__ARM_FEATURE_FMA)
    __asm__("vfma.f32 %0, %1, %2" : "+t"(c) : "t"(a), "t"(b)); /* clang would call fmaf */
    return c;
#elif ETC_LIBRARY_IS_EXACT || defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    return etc_fma_by_integers(a, b, c);
#endif
}

/* Returns the square root of x, rounded once, for numbers above 0.  The root is found bit by bit;
 * no root is half-way between two doubles. */
ETC_OUTLINE double etc_root_bits(double x)
{
    const int is_tiny = (x < 2.2250738585072014e-308);
    x = (is_tiny != 0) ? (x * 18014398509481984.0) : x; /* 2^54 */
    uint64_t m, root = 0, rest = 0;
    __builtin_memcpy(&m, &x, sizeof m);
    const int e = (int)(m >> 52) - 1023;
    m = ((m & UINT64_C(0xfffffffffffff)) | (UINT64_C(1) << 52)) << (e & 1);
    for (int i = 0; i < 54; i++) {
        rest = (rest << 2) | ((m >> 52) & 3u);
        m <<= 2;
        const uint64_t least = (root << 2) | 1u;
        const int bit = (rest >= least);
        rest -= (bit != 0) ? least : 0u;
        root = (root << 1) | (uint64_t)bit;
    }
    m = ((root + 1u) >> 1) + ((uint64_t)(((e - (e & 1)) / 2) + 1022) << 52);
    __builtin_memcpy(&x, &m, sizeof x);
    return (is_tiny != 0) ? (x * 7.450580596923828125e-9) : x; /* 2^-27 */
}

ETC_INLINE double etc_root_by_integers(double x)
{
    if ((x > 0.0) && (x <= 1.79769313486231571e308)) {
        return etc_root_bits(x);
    }
    return (x >= 0.0) ? x : ((x - x) / 0.0); /* infinity and both zeros; a NaN for all others */
}

ETC_INLINE double etc_root_f64(double x)
{
#if ETC_LIBRARY_IS_EXACT
    return __builtin_sqrt(x);
#elif defined(ETC_ROOT_F64) /* an instruction, and the class of its registers */
    double y;
    __asm__(ETC_ROOT_F64 : "=" ETC_ROOT_IN(y) : ETC_ROOT_IN(x));
    return y;
#else
    return etc_root_by_integers(x);
#endif
}

ETC_INLINE float etc_root_f32(float x)
{
#if ETC_LIBRARY_IS_EXACT
    return __builtin_sqrtf(x);
#elif defined(__arm__) && defined(__ARM_FP) && ((__ARM_FP & 4) != 0)
    float y;
    __asm__("vsqrt.f32 %0, %1" : "=t"(y) : "t"(x));
    return y;
#else
    return (float)etc_root_f64((double)x); /* that double has enough bits to be rounded again */
#endif
}

#if ETC_REGISTERS == 8
/* Adds n taps to the sums of four rows, which are `next` floats apart: w[i] times the vector at
 * x + at[i].  n is at least 1. */
ETC_OUTLINE int etc_add_taps(const float *x, const int64_t *at, int64_t n, int64_t next,
                             const float *w, EtcF acc[4])
{
    const int32_t row = (int32_t)next * 4;
    int32_t k = (int32_t)n;
    const float *p;
    __asm__ volatile(
        "vldmia %[c], {s0-s15}\n"
        "1:\tldr %[p], [%[at]], #8\n\tvldmia %[w]!, {s20}\n\tadd %[p], %[x], %[p], lsl #2\n\t"
        "vldmia %[p], {s16-s19}\n\tadd %[p], %[row]\n\tvfma.f32 s0, s16, s20\n\t"
        "vfma.f32 s1, s17, s20\n\tvfma.f32 s2, s18, s20\n\tvfma.f32 s3, s19, s20\n\t"
        "vldmia %[p], {s16-s19}\n\tadd %[p], %[row]\n\tvfma.f32 s4, s16, s20\n\t"
        "vfma.f32 s5, s17, s20\n\tvfma.f32 s6, s18, s20\n\tvfma.f32 s7, s19, s20\n\t"
        "vldmia %[p], {s16-s19}\n\tadd %[p], %[row]\n\tvfma.f32 s8, s16, s20\n\t"
        "vfma.f32 s9, s17, s20\n\tvfma.f32 s10, s18, s20\n\tvfma.f32 s11, s19, s20\n\t"
        "vldmia %[p], {s16-s19}\n\tvfma.f32 s12, s16, s20\n\tvfma.f32 s13, s17, s20\n\t"
        "vfma.f32 s14, s18, s20\n\tvfma.f32 s15, s19, s20\n\tsubs %[k], #1\n\tbne 1b\n\t"
        "vstmia %[c], {s0-s15}"
        : [p] "=&r"(p), [at] "+r"(at), [w] "+r"(w), [k] "+l"(k)
        : [c] "r"(acc), [x] "r"(x), [row] "r"(row)
        : "cc", "memory", "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
          "s12", "s13", "s14", "s15", "s16", "s17", "s18", "s19", "s20");
    return 1;
}
#else
/* Does nothing and returns 0: the compiler keeps the sums in registers. */
ETC_INLINE int etc_add_taps(const float *x, const int64_t *at, int64_t n, int64_t next,
                            const float *w, EtcF acc[4])
{
    (void)x;
    (void)at;
    (void)n;
    (void)next;
    (void)w;
    (void)acc;
    return 0;
}
#endif

#endif
