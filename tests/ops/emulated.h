/* emulated.h -- AVX-VNNI, AVX-512 and its VNNI on a CPU with AVX2, to test the kernels that use them.
 *
 * -march=x86-64-v3 -include tests/ops/emulated.h, with -DEMULATE_AVXVNNI, -DEMULATE_AVX512, or
 * -DEMULATE_AVX512 -DEMULATE_VNNI.  SIMDe computes most intrinsics.  Version 0.7.4 lacks those that
 * are loops here, most of them masked.  Lanes whose bit of `m` is 0 are 0, or stay as they are. */
#if !defined(TESTS_OPS_EMULATED_H) && !defined(__ASSEMBLER__)
#define TESTS_OPS_EMULATED_H

#pragma GCC system_header /* SIMDe's macros cause warnings where kernels use them */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

typedef union Emulated {
    __m512 ps;
    __m512d pd;
    __m512i si;
    __m256i half;
    __m128i quarter;
    float f[16];
    double d[8];
    int32_t i[16];
    uint16_t h[32];
    uint8_t b[64];
} Emulated;

#define EMULATED static inline __attribute__((always_inline, unused))
#define EMULATED_LANES(n) for (int i = 0; i < (n); i++) if (((m >> i) & 1) != 0)

EMULATED __m512 emulated_loadu_ps(uint64_t m, const float *p)
{
    Emulated r = {.i = {0}};
    EMULATED_LANES(16) r.f[i] = p[i];
    return r.ps;
}

EMULATED void emulated_storeu_ps(float *p, uint64_t m, __m512 v)
{
    const Emulated a = {.ps = v};
    EMULATED_LANES(16) p[i] = a.f[i];
}

EMULATED __m512i emulated_loadu_epi8(uint64_t m, const void *p)
{
    Emulated r = {.i = {0}};
    EMULATED_LANES(64) r.b[i] = ((const uint8_t *)p)[i];
    return r.si;
}

EMULATED void emulated_storeu_epi8(void *p, uint64_t m, __m512i v)
{
    const Emulated a = {.si = v};
    EMULATED_LANES(64) ((uint8_t *)p)[i] = a.b[i];
}

EMULATED void emulated_cvtepi32_storeu_epi8(void *p, uint64_t m, __m512i v)
{
    const Emulated a = {.si = v};
    EMULATED_LANES(16) ((uint8_t *)p)[i] = (uint8_t)a.i[i];
}

EMULATED __m128i emulated_cvtepi32_epi8(uint64_t m, __m512i v)
{
    const Emulated a = {.si = v};
    Emulated r = {.i = {0}};
    EMULATED_LANES(16) r.b[i] = (uint8_t)a.i[i];
    return r.quarter;
}

EMULATED __m512i emulated_cvtepu8_epi32(uint64_t m, __m128i v)
{
    const Emulated a = {.quarter = v};
    Emulated r = {.i = {0}};
    EMULATED_LANES(16) r.i[i] = a.b[i];
    return r.si;
}

EMULATED __m512i emulated_cvtepi8_epi32(uint64_t m, __m128i v)
{
    const Emulated a = {.quarter = v};
    Emulated r = {.i = {0}};
    EMULATED_LANES(16) r.i[i] = (int8_t)a.b[i];
    return r.si;
}

EMULATED __m512 emulated_cvtph_ps(uint64_t m, __m256i v)
{
    const Emulated a = {.half = v};
    Emulated r = {.i = {0}};
    EMULATED_LANES(16) r.f[i] = _cvtsh_ss(a.h[i]);
    return r.ps;
}

EMULATED __m512i emulated_cvtps_epi32(uint64_t m, __m512 v)
{
    const Emulated a = {.ps = v};
    Emulated r = {.i = {0}};
    EMULATED_LANES(16) r.i[i] = _mm_cvtss_si32(_mm_set_ss(a.f[i]));
    return r.si;
}

EMULATED __m512 emulated_sqrt_ps(uint64_t m, __m512 v)
{
    const Emulated a = {.ps = v};
    Emulated r = {.i = {0}};
    EMULATED_LANES(16) r.f[i] = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a.f[i])));
    return r.ps;
}

EMULATED __m512 emulated_i32gather_ps(__m512 old, uint64_t m, __m512i at, const void *p, int scale)
{
    const Emulated a = {.si = at};
    Emulated r = {.ps = old};
    EMULATED_LANES(16) memcpy(&r.f[i], (const char *)p + ((int64_t)a.i[i] * scale), sizeof r.f[i]);
    return r.ps;
}

EMULATED __m512d emulated_i32gather_pd(__m512d old, uint64_t m, __m256i at, const void *p, int scale)
{
    const Emulated a = {.half = at};
    Emulated r = {.pd = old};
    EMULATED_LANES(8) memcpy(&r.d[i], (const char *)p + ((int64_t)a.i[i] * scale), sizeof r.d[i]);
    return r.pd;
}

EMULATED __m256i emulated_dpbusd(__m256i c, __m256i x, __m256i w)
{
    const Emulated a = {.half = x}, b = {.half = w};
    Emulated r = {.half = c};
    for (int i = 0; i < 32; i++)
        r.i[i / 4] = (int32_t)((uint32_t)r.i[i / 4] + (uint32_t)(a.b[i] * (int8_t)b.b[i]));
    return r.half;
}

#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_maskz_loadu_epi8
#undef _mm512_mask_storeu_epi8
#undef _mm512_mask_cvtepi32_storeu_epi8
#undef _mm512_maskz_cvtepi32_epi8
#undef _mm512_maskz_cvtepu8_epi32
#undef _mm512_maskz_cvtepi8_epi32
#undef _mm512_maskz_cvtph_ps
#undef _mm512_maskz_cvtps_epi32
#undef _mm512_maskz_sqrt_ps
#undef _mm512_mask_i32gather_ps
#undef _mm512_mask_i32gather_pd
#undef _mm256_dpbusd_avx_epi32
#undef _mm512_maskz_madd_epi16
#undef _mm512_maskz_shuffle_i32x4
#define _mm512_maskz_loadu_ps emulated_loadu_ps
#define _mm512_mask_storeu_ps emulated_storeu_ps
#define _mm512_maskz_loadu_epi8 emulated_loadu_epi8
#define _mm512_mask_storeu_epi8 emulated_storeu_epi8
#define _mm512_mask_cvtepi32_storeu_epi8 emulated_cvtepi32_storeu_epi8
#define _mm512_maskz_cvtepi32_epi8 emulated_cvtepi32_epi8
#define _mm512_maskz_cvtepu8_epi32 emulated_cvtepu8_epi32
#define _mm512_maskz_cvtepi8_epi32 emulated_cvtepi8_epi32
#define _mm512_maskz_cvtph_ps emulated_cvtph_ps
#define _mm512_maskz_cvtps_epi32 emulated_cvtps_epi32
#define _mm512_maskz_sqrt_ps emulated_sqrt_ps
#define _mm512_mask_i32gather_ps emulated_i32gather_ps
#define _mm512_mask_i32gather_pd emulated_i32gather_pd
#define _mm256_dpbusd_avx_epi32 emulated_dpbusd
/* SIMDe gives the first of these too many arguments, and the second no name of its own. */
#define _mm512_maskz_madd_epi16 simde_mm512_maskz_madd_epi16
#define _mm512_maskz_shuffle_i32x4 simde_mm512_maskz_shuffle_i32x4

/* These choose the code of the kernels.  SIMDe would take them for what the CPU has. */
#if defined(EMULATE_AVXVNNI)
#define __AVXVNNI__ 1
#endif
#if defined(EMULATE_AVX512)
#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1
#endif
#if defined(EMULATE_VNNI)
#define __AVX512VNNI__ 1
#endif

#endif
