/* crc32.c -- the checksum of zip, as fast as memory where the CPU multiplies without carry.
 *
 * A CRC is linear: 16 bytes of a message may be replaced by their product with a power of x modulo
 * the polynomial, added to 16 bytes further on.  So four blocks of 16 bytes are folded forward 64
 * bytes at a time, then into one, whose CRC zlib finishes.  Constants are x^n mod P, bit-reflected,
 * for n = 512 + 32, 512 - 32, 128 + 32, 128 - 32.
 * Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction", Intel 2009. */
#include "compiler/import/internal.h"
#include "runtime-lite/kernels/cpu.h"
#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define CLMUL __attribute__((target("pclmul,sse2")))

CLMUL static __m128i load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* Moves x forward by the distance that k stands for, and adds `next`. */
CLMUL static __m128i fold(__m128i x, __m128i k, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(x, k, 0x00), high = _mm_clmulepi64_si128(x, k, 0x11);
    return _mm_xor_si128(next, _mm_xor_si128(low, high));
}

/* Computes the CRC of n bytes; n is a positive multiple of 64. */
CLMUL static uint32_t crc32_folded(const uint8_t *p, size_t n)
{
    assert(n > 0 && n % 64 == 0);
    const __m128i by64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i a = _mm_xor_si128(load(p), _mm_cvtsi32_si128(-1)), b = load(p + 16);
    __m128i c = load(p + 32), d = load(p + 48);
    for (const uint8_t *end = p + n; (p += 64) < end;) {
        a = fold(a, by64, load(p));
        b = fold(b, by64, load(p + 16));
        c = fold(c, by64, load(p + 32));
        d = fold(d, by64, load(p + 48));
    }
    a = fold(fold(fold(a, by16, b), by16, c), by16, d);
    uint8_t last[16];
    _mm_storeu_si128((__m128i *)(void *)last, a);
    return (uint32_t)crc32_z(0xffffffff, last, sizeof last); /* the initial bits are in `a` */
}

static uint32_t crc32_blocks(const uint8_t *data, size_t n)
{
    return ETC_CPU_HAS("pclmul", PCLMULQDQ) ? crc32_folded(data, n) : (uint32_t)crc32_z(0, data, n);
}
#else
static uint32_t crc32_blocks(const uint8_t *data, size_t n)
{
    return (uint32_t)crc32_z(0, data, n);
}
#endif

uint32_t crc32_of(const uint8_t *data, size_t n)
{
    size_t blocks = n / 64 * 64;
    uint32_t crc = blocks ? crc32_blocks(data, blocks) : 0;
    return (uint32_t)crc32_z(crc, data + blocks, n - blocks);
}
