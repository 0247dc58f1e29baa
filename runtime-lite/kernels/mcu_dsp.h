/* mcu_dsp.h -- Cortex-M4, M7 and M33, which have instructions that add two products of 16 bits.
 *
 * Weights of a convolution are stored as [channels][k / 4][4], with terms 0, 2, 1, 3 in this order,
 * so that SXTB16 makes pairs of terms of them.  A channel's start is before them and its factor
 * behind them.  A panel is [k / 2][4 pixels][2 numbers of 16 bits].  The weights in a block of a
 * linear layer are [k / 4][2 pairs of channels][terms 0, 2, 1, 3][2 channels], with 128 added to
 * those of the first channel of a pair; zeros stand in the place of channels that are missing.
 * Inner steps are assembly, because gcc 12 hoists loads and then spills registers. */
#ifndef ETC_MCU_DSP_H
#define ETC_MCU_DSP_H

#include "runtime-lite/kernels/fixed.h"

typedef int16_t EtcMcuPixel;

#define ETC_MCU_PANEL(k) ((k) * 8)
#define ETC_MCU_FROM_0 0
#define ETC_MCU_SINGLE 1
#define ETC_MCU_BY_4 1
#define ETC_MCU_PICKS(run, step) (((run) <= 8) && (((run) % 2) == 0))
#define ETC_MCU_SLOT 4
#define ETC_MCU_RUN 2
#define ETC_MCU_TERMS 4
#define ETC_MCU_TAPS(g) ((g)->kh * (((g)->kw + 1) / 2) * 4)

ETC_INLINE uint32_t etc_mcu_word(const void *p)
{
    uint32_t v;
    __builtin_memcpy(&v, p, 4);
    return v;
}

ETC_INLINE void etc_mcu_set(void *p, uint32_t v)
{
    __builtin_memcpy(p, &v, 4);
}

ETC_INLINE EtcMcuPixel etc_mcu_byte(uint32_t v)
{
    return (int8_t)(uint8_t)v;
}

/* Returns bytes 0 and 2 of a word, sign-extended to halves of 16 bits. */
ETC_INLINE uint32_t etc_mcu_even(uint32_t v)
{
#if defined(__ARM_FEATURE_DSP)
    uint32_t r;
    __asm__("sxtb16 %0, %1" : "=r"(r) : "r"(v));
    return r;
#else
    return ((uint32_t)(int32_t)(int8_t)v & 0xffff) |
           ((uint32_t)(int32_t)(int8_t)(v >> 16) << 16);
#endif
}

ETC_INLINE uint32_t etc_mcu_odd(uint32_t v)
{
#if defined(__ARM_FEATURE_DSP)
    uint32_t r;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(r) : "r"(v));
    return r;
#else
    return etc_mcu_even(v >> 8);
#endif
}

/* Returns the low halves of a and b; etc_mcu_high returns the high ones. */
ETC_INLINE uint32_t etc_mcu_low(uint32_t a, uint32_t b)
{
#if defined(__ARM_FEATURE_DSP)
    uint32_t r;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(r) : "r"(a), "r"(b));
    return r;
#else
    return (a & 0xffff) | (b << 16);
#endif
}

ETC_INLINE uint32_t etc_mcu_high(uint32_t a, uint32_t b)
{
#if defined(__ARM_FEATURE_DSP)
    uint32_t r;
    __asm__("pkhtb %0, %1, %2, asr #16" : "=r"(r) : "r"(b), "r"(a));
    return r;
#else
    return (a >> 16) | (b & 0xffff0000u);
#endif
}

/* Returns v, or the bound of a signed byte that it exceeds. */
ETC_INLINE int8_t etc_mcu_clamp(int32_t v)
{
#if defined(__ARM_FEATURE_DSP)
    __asm__("ssat %0, #8, %0" : "+r"(v));
    return (int8_t)v;
#else
    return (int8_t)etc_min_i32(etc_max_i32(v, -128), 127);
#endif
}

ETC_INLINE int8_t etc_mcu_put(int32_t sum, int32_t by, int32_t zero)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t v;
    __asm__("smmlar %0, %1, %2, %3\n\tssat %0, #8, %0" : "=r"(v) : "r"(sum), "r"(by), "r"(zero));
    return (int8_t)v;
#else
    return etc_mcu_clamp((int32_t)((((int64_t)sum * by) + 0x80000000ll) >> 32) + zero);
#endif
}

/* Returns s plus the two products of the 16-bit halves of x and w. */
ETC_INLINE int32_t etc_mcu_pair(uint32_t x, uint32_t w, int32_t s)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t r;
    __asm__("smlad %0, %1, %2, %3" : "=r"(r) : "r"(x), "r"(w), "r"(s));
    return r;
#else
    return s + ((int16_t)(uint16_t)x * (int16_t)(uint16_t)w) +
           ((int16_t)(uint16_t)(x >> 16) * (int16_t)(uint16_t)(w >> 16));
#endif
}

/* Converts `rows` runs of n bytes, which are `next` apart in x, and `pitch` in `to`. */
ETC_INLINE void etc_mcu_runs(const uint8_t *x, int32_t n, int32_t next, int32_t rows,
                             uint32_t flip, EtcMcuPixel *to, int32_t pitch)
{
#if defined(__ARM_FEATURE_DSP)
    uint32_t a, b, c;
    int32_t left;
    __asm__ volatile("1: subs %[left], %[n], #4\n\tblt 3f\n"
                     "2: ldr %[a], [%[x]], #4\n\tsubs %[left], #4\n\teor %[a], %[flip]\n\t"
                     "sxtb16 %[b], %[a]\n\tsxtb16 %[a], %[a], ror #8\n\t"
                     "pkhbt %[c], %[b], %[a], lsl #16\n\tpkhtb %[a], %[a], %[b], asr #16\n\t"
                     "str %[c], [%[to]], #4\n\tstr %[a], [%[to]], #4\n\tbge 2b\n"
                     "3: adds %[left], #4\n\tble 5f\n"
                     "4: ldrb %[a], [%[x]], #1\n\tsubs %[left], #1\n\teor %[a], %[flip]\n\t"
                     "sxtb %[a], %[a]\n\tstrh %[a], [%[to]], #2\n\tbgt 4b\n"
                     "5: add %[x], %[next]\n\tsubs %[rows], #1\n\tadd %[to], %[pitch]\n\tbgt 1b\n"
                     : [x] "+r"(x), [left] "=&r"(left), [to] "+r"(to), [a] "=&r"(a), [b] "=&r"(b),
                       [c] "=&r"(c), [rows] "+&r"(rows)
                     : [flip] "r"(flip), [n] "r"(n), [next] "r"(next - n),
                       [pitch] "r"(2 * (pitch - n))
                     : "cc", "memory");
#else
    for (; rows > 0; rows--, x += next, to += pitch) {
        for (int32_t i = 0; i < n; i++) {
            to[i] = etc_mcu_byte(x[i] ^ flip);
        }
    }
#endif
}

#if defined(__ARM_FEATURE_DSP)
/* Writes the pairs of terms of four pixels, from words of two planes. */
#define ETC_MCU_TWO_PLANES                                                                       \
    "eor %[a], %[flip]\n\teor %[b], %[flip]\n\tsxtb16 %[c], %[a]\n\tsxtb16 %[d], %[b]\n\t"       \
    "sxtb16 %[a], %[a], ror #8\n\tsxtb16 %[b], %[b], ror #8\n\t"                               \
    "pkhbt %[e], %[c], %[d], lsl #16\n\tpkhbt %[f], %[a], %[b], lsl #16\n\t"                   \
    "strd %[e], %[f], [%[to]], #8\n\tpkhtb %[c], %[d], %[c], asr #16\n\t"                      \
    "pkhtb %[a], %[b], %[a], asr #16\n\tstrd %[c], %[a], [%[to]], #8\n\t"
#endif

ETC_OUTLINE void etc_mcu_planes(const uint8_t *x, int32_t plane, int32_t n_k, int32_t k,
                                uint32_t flip, void *panel)
{
    uint32_t *to = (uint32_t *)panel;
    int32_t p1 = plane, p2 = 2 * plane, p3 = 3 * plane;
    (void)k;
    for (; n_k > 0; n_k -= 4) {
        if (n_k < 4) { /* Terms past the last have zero weights. */
            p1 = (n_k > 1) ? p1 : 0;
            p2 = (n_k > 2) ? p2 : 0;
            p3 = 0;
        }
#if defined(__ARM_FEATURE_DSP)
        uint32_t a, b, c, d, e, f;
        __asm__ volatile("ldr %[a], [%[x]]\n\tldr %[b], [%[x], %[p1]]\n\t" ETC_MCU_TWO_PLANES
                         "ldr %[a], [%[x], %[p2]]\n\tldr %[b], [%[x], %[p3]]\n\t" ETC_MCU_TWO_PLANES
                         : [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d), [e] "=&r"(e),
                           [f] "=&r"(f), [to] "+r"(to)
                         : [x] "r"(x), [p1] "r"(p1), [p2] "r"(p2), [p3] "r"(p3), [flip] "r"(flip)
                         : "memory");
#else
        const uint32_t a = etc_mcu_word(x) ^ flip, b = etc_mcu_word(x + p1) ^ flip;
        const uint32_t a0 = etc_mcu_even(a), b0 = etc_mcu_even(b);
        const uint32_t a1 = etc_mcu_odd(a), b1 = etc_mcu_odd(b);
        to[0] = etc_mcu_low(a0, b0);
        to[1] = etc_mcu_low(a1, b1);
        to[2] = etc_mcu_high(a0, b0);
        to[3] = etc_mcu_high(a1, b1);
        const uint32_t c = etc_mcu_word(x + p2) ^ flip, d = etc_mcu_word(x + p3) ^ flip;
        const uint32_t c0 = etc_mcu_even(c), d0 = etc_mcu_even(d);
        const uint32_t c1 = etc_mcu_odd(c), d1 = etc_mcu_odd(d);
        to[4] = etc_mcu_low(c0, d0);
        to[5] = etc_mcu_low(c1, d1);
        to[6] = etc_mcu_high(c0, d0);
        to[7] = etc_mcu_high(c1, d1);
        to += 8;
#endif
        x += 4 * plane;
    }
}

/* Writes n columns of a row of x as pixels that hold all channels, to[n][g->wide].  x points to the
 * first column in the plane of channel 0.  Zero weights meet what is behind an odd number of
 * channels. */
ETC_INLINE void etc_mcu_pixels(const uint8_t *x, const EtcMcuConv *g, int32_t n, uint32_t flip,
                               EtcMcuPixel *to)
{
    const int32_t wide = g->wide, plane = g->ih * g->iw;
    for (int32_t c = 0; c < g->ic; c += 2, x += 2 * plane, to += 2) {
        const int32_t next = ((c + 1) < g->ic) ? plane : 0, is_pair = (c + 1) < wide;
        const uint8_t *p = x;
        EtcMcuPixel *at = to;
        int32_t left = n;
        for (; (left >= 4) && (is_pair != 0); left -= 4, p += 4) {
            const uint32_t a = etc_mcu_word(p) ^ flip, b = etc_mcu_word(p + next) ^ flip;
            const uint32_t a0 = etc_mcu_even(a), a1 = etc_mcu_odd(a);
            const uint32_t b0 = etc_mcu_even(b), b1 = etc_mcu_odd(b);
            etc_mcu_set(at, etc_mcu_low(a0, b0));
            etc_mcu_set(at + wide, etc_mcu_low(a1, b1));
            at += 2 * wide;
            etc_mcu_set(at, etc_mcu_high(a0, b0));
            etc_mcu_set(at + wide, etc_mcu_high(a1, b1));
            at += 2 * wide;
        }
        for (; left > 0; left--, p++, at += wide) {
            at[0] = etc_mcu_byte(*p ^ flip);
            if (is_pair != 0) {
                at[1] = etc_mcu_byte(p[next] ^ flip);
            }
        }
    }
}

/* Copies n numbers, and one more if n is odd. */
ETC_INLINE void etc_mcu_copy(const EtcMcuPixel *from, int32_t n, EtcMcuPixel *to)
{
#if defined(__ARM_FEATURE_DSP)
    uint32_t a;
    __asm__ volatile("1: ldr %[a], [%[from]], #4\n\tsubs %[n], #2\n\t"
                     "str %[a], [%[to]], #4\n\tbgt 1b"
                     : [from] "+r"(from), [to] "+r"(to), [n] "+r"(n), [a] "=&r"(a)
                     :
                     : "cc", "memory");
#else
    __builtin_memcpy(to, from, (size_t)(((n + 1) / 2) * 4));
#endif
}

/* Copies n numbers, a multiple of 2, to one pixel of a panel. */
ETC_INLINE void etc_mcu_spread(const EtcMcuPixel *from, int32_t n, void *panel)
{
#if defined(__ARM_FEATURE_DSP)
    uint32_t a;
    __asm__ volatile("1: ldr %[a], [%[from]], #4\n\tsubs %[n], #2\n\t"
                     "str %[a], [%[to]], #16\n\tbgt 1b"
                     : [from] "+r"(from), [to] "+r"(panel), [n] "+r"(n), [a] "=&r"(a)
                     :
                     : "cc", "memory");
#else
    for (int32_t i = 0; i < n; i += 2) {
        __builtin_memcpy((EtcMcuPixel *)panel + (4 * i), from + i, 4);
    }
#endif
}

/* Copies n numbers, a multiple of 2, to each pixel of a panel.  The pixels' numbers are `step`
 * apart. */
ETC_INLINE void etc_mcu_spread_4(const EtcMcuPixel *from, int32_t step, int32_t n, void *panel)
{
    const EtcMcuPixel *from1 = from + step, *from2 = from1 + step, *from3 = from2 + step;
#if defined(__ARM_FEATURE_DSP)
    __asm__ volatile("1: ldr r8, [%[p0]], #4\n\tldr r9, [%[p1]], #4\n\tldr r10, [%[p2]], #4\n\t"
                     "ldr r12, [%[p3]], #4\n\tsubs %[n], #2\n\t"
                     "stm %[to]!, {r8, r9, r10, r12}\n\tbgt 1b"
                     : [p0] "+r"(from), [p1] "+r"(from1), [p2] "+r"(from2), [p3] "+r"(from3),
                       [to] "+r"(panel), [n] "+r"(n)
                     :
                     : "r8", "r9", "r10", "r12", "cc", "memory");
#else
    const EtcMcuPixel *const pixel[4] = {from, from1, from2, from3};
    for (int32_t i = 0; i < (2 * n); i++) {
        __builtin_memcpy((EtcMcuPixel *)panel + (2 * i), pixel[i % 4] + (i / 4 * 2), 4);
    }
#endif
}

/* Moves the places of k terms on by `by` numbers in a ring of `all` numbers, which are at most
 * 16384. */
ETC_INLINE void etc_mcu_move(uint16_t *places, int32_t k, int32_t by, int32_t all)
{
    for (uint16_t *const end = places + (k / 2); places < end; places++) {
        const int32_t at = *places + (2 * by);
        *places = (uint16_t)((at < (2 * all)) ? at : (at - (2 * all)));
    }
}

/* Copies the k terms of n windows that are at `places` behind `from` to as many pixels of a panel.
 * The windows are `step` numbers apart. */
ETC_INLINE void etc_mcu_pick(const uint16_t *places, const EtcMcuPixel *from, int32_t step,
                             int32_t n, int32_t k, void *panel)
{
#if defined(__ARM_FEATURE_DSP)
    const uint16_t *const end = places + (k / 2);
    uint32_t a, b;
    for (uint8_t *to = (uint8_t *)panel; n > 0; n--, from += step, to += 4) {
        const uint16_t *at = places;
        uint8_t *out = to;
        __asm__ volatile("1: ldrh %[a], [%[at]], #2\n\tldrh %[b], [%[at]], #2\n\t"
                         "ldr %[a], [%[from], %[a]]\n\tldr %[b], [%[from], %[b]]\n\t"
                         "cmp %[at], %[end]\n\tstr %[a], [%[to]], #16\n\t"
                         "str %[b], [%[to]], #16\n\tblo 1b\n"
                         : [a] "=&r"(a), [b] "=&r"(b), [at] "+r"(at), [to] "+r"(out)
                         : [from] "r"(from), [end] "r"(end)
                         : "cc", "memory");
    }
#else
    for (int32_t i = 0; i < (n * k); i += 2) {
        const EtcMcuPixel *at = from + (i / k * step) + (places[i % k / 2] / 2);
        __builtin_memcpy((EtcMcuPixel *)panel + (4 * (i % k)) + (i / k * 2), at, 4);
    }
#endif
}

/* -- channels of a panel ----------------------------------------------------------------------- */

/* A loop over channels has no register left for these, so its code keeps them on the stack. */
typedef struct EtcMcuTiles {
    int32_t plane, zero;
    int8_t *y;
    const int8_t *end;    /* of the weights */
    const void *x;        /* the panel */
    const uint8_t *entry; /* an address in the code */
} EtcMcuTiles;

#if defined(__ARM_FEATURE_DSP) && defined(__OPTIMIZE__) /* else gcc keeps a register for frames */
#define ETC_MCU_WIDE_STEP 1
/* Adds four terms of a channel by four pixels: 16 products in 13 instructions. */
#define ETC_MCU_WEIGHTS                                                                          \
    "ldr %[u], [%[w]], #4\n\tsxtb16 %[e], %[u], ror #8\n\tsxtb16 %[u], %[u]\n\t"
#define ETC_MCU_PAIR(w)                                                                          \
    "ldm %[x]!, {r3, r4, r5, r6}\n\tsmlad %[s0], r3, %[" #w "], %[s0]\n\t"                       \
    "smlad %[s1], r4, %[" #w "], %[s1]\n\tsmlad %[s2], r5, %[" #w "], %[s2]\n\t"                 \
    "smlad %[s3], r6, %[" #w "], %[s3]\n\t"
#define ETC_MCU_STEP ETC_MCU_WEIGHTS ETC_MCU_PAIR(u) ETC_MCU_PAIR(e)
/* The first step makes all sums of the first one. */
#define ETC_MCU_FIRST                                                                            \
    ETC_MCU_WEIGHTS "ldm %[x]!, {r3, r4, r5, r6}\n\tsmlad %[s1], r4, %[u], %[s0]\n\t"            \
    "smlad %[s2], r5, %[u], %[s0]\n\tsmlad %[s3], r6, %[u], %[s0]\n\t"                          \
    "smlad %[s0], r3, %[u], %[s0]\n\t" ETC_MCU_PAIR(e)
#define ETC_MCU_PUT(s, i)                                                                        \
    "smmlar %[" s "], %[" s "], %[u], %[e]\n\tssat %[" s "], #8, %[" s "]\n\t"                  \
    "strb %[" s "], [r3, #" i "]\n\t"
#endif

/* Computes the m channels of a panel.  After the first step of a channel it enters a loop over four
 * steps where as many are left as there are more than a multiple of four, or behind it. */
ETC_OUTLINE void etc_mcu_tiles(const void *panel, const int8_t *w, int8_t *y, int32_t plane,
                               int32_t k, int32_t m, const EtcMcu *q)
{
#if defined(ETC_MCU_WIDE_STEP)
    const EtcMcuTiles t = {plane, q->zero, y, w + (m * (k + 8)), panel, NULL};
    const void *e = &t;
    int32_t s0, s1, s2, s3;
    uint32_t u = (uint32_t)etc_min_i32(k / 4, ((k / 4) & 3) + 4); /* an index of the table */
    const uint8_t *x;
    __asm__ volatile(
        "ldm %[e]!, {r3, r4, r5, r6}\n\tpush {r3, r4, r5, r6}\n\tldm %[e], {r3, r4}\n\t"
        "push {r3, r4}\n\tb 6f\n\t.p2align 2\n"
        "0: .byte 0, (5f - 0b) / 2, (4f - 0b) / 2, (3f - 0b) / 2\n\t"
        ".byte (2f - 0b) / 2, (1f - 0b) / 2, (4f - 0b) / 2, (3f - 0b) / 2\n6: adr %[e], 0b\n\t"
        "ldrb %[u], [%[e], %[u]]\n\tadd %[e], %[e], %[u], lsl #1\n\tadd %[e], #1\n\t"
        "str %[e], [sp, #4]\n"
        "7: ldr %[s0], [%[w]], #4\n\tldr %[x], [sp]\n\t" ETC_MCU_FIRST "ldr pc, [sp, #4]\n"
        "1: " ETC_MCU_STEP "\n2: " ETC_MCU_STEP "\n3: " ETC_MCU_STEP "\n4: " ETC_MCU_STEP
        "cmp %[x], %[stop]\n\tblo 1b\n"
        "5: ldr %[u], [%[w]], #4\n\tldrd %[x], %[e], [sp, #8]\n\tldrd r3, r4, [sp, #16]\n\t"
        ETC_MCU_PUT("s0", "0") ETC_MCU_PUT("s1", "1") ETC_MCU_PUT("s2", "2") ETC_MCU_PUT("s3", "3")
        "cmp %[w], r4\n\tadd r3, %[x]\n\tstr r3, [sp, #16]\n\tblo 7b\n\tadd sp, #24\n"
        : [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [w] "+r"(w),
          [x] "=&r"(x), [u] "+r"(u), [e] "+r"(e)
        : [stop] "r"((const uint8_t *)panel + ETC_MCU_PANEL(k))
        : "r3", "r4", "r5", "r6", "cc", "memory");
#else
    for (; m > 0; m--, w += 4, y += plane) {
        const int32_t start = (int32_t)etc_mcu_word(w);
        int32_t s[4] = {start, start, start, start};
        const int16_t *p = (const int16_t *)panel;
        w += 4;
        for (const int8_t *const end = w + k; w < end; w += 4, p += 16) {
            for (int t = 0; t < 16; t++) { /* weight t is that of term 0, 2, 1 or 3 */
                const int term = t / 4;
                s[t % 4] += p[((term & 1) * 8) + (2 * (t % 4)) + (term >> 1)] * w[term];
            }
        }
        for (int i = 0; i < 4; i++) {
            y[i] = etc_mcu_put(s[i], (int32_t)etc_mcu_word(w), q->zero);
        }
    }
#endif
}

/* Computes the m channels of the last pixel of a panel. */
ETC_OUTLINE void etc_mcu_single(const void *panel, const int8_t *w, int8_t *y, int32_t plane,
                                int32_t k, int32_t m, const EtcMcu *q)
{
    const int32_t zero = q->zero;
    for (const int8_t *const end = w + (m * (k + 8)); w < end; w += 4, y += plane) {
        const uint32_t *x = (const uint32_t *)panel + 3;
        int32_t sum = (int32_t)etc_mcu_word(w);
        w += 4;
#if defined(__ARM_FEATURE_DSP)
        int32_t n = k;
        uint32_t u, e, v;
#define ETC_MCU_ONE                                                                              \
    "ldr %[u], [%[w]], #4\n\tldr %[v], [%[x]], #16\n\tsxtb16 %[e], %[u], ror #8\n\t"            \
    "sxtb16 %[u], %[u]\n\tsmlad %[sum], %[v], %[u], %[sum]\n\tldr %[v], [%[x]], #16\n\t"        \
    "smlad %[sum], %[v], %[e], %[sum]\n\t"
        __asm__("lsls %[u], %[n], #29\n\tbmi 2f\n"
                "1: " ETC_MCU_ONE "\n2: " ETC_MCU_ONE "subs %[n], #8\n\tbgt 1b"
                : [sum] "+r"(sum), [w] "+r"(w), [x] "+r"(x), [n] "+r"(n), [u] "=&r"(u),
                  [e] "=&r"(e), [v] "=&r"(v)
                :
                : "cc", "memory");
#else
        for (const int8_t *const stop = w + k; w < stop; w += 4, x += 8) {
            const uint32_t v = etc_mcu_word(w);
            sum = etc_mcu_pair(x[0], etc_mcu_even(v), sum);
            sum = etc_mcu_pair(x[4], etc_mcu_odd(v), sum);
        }
#endif
        *y = etc_mcu_put(sum, (int32_t)etc_mcu_word(w), zero);
    }
}

/* -- depthwise --------------------------------------------------------------------------------- */

#if defined(__ARM_FEATURE_DSP)
/* Each adds a row of three taps to four outputs or to two, with a stride of 1 or 2.  The taps of
 * row i are a, the first two, and b, the last two. */
#define ETC_MCU_ROW4_1(i)                                                                        \
    "ldrd %[a], %[b], [%[w], #(8*" #i ")]\n\tldrd %[u], %[v], [%[p]]\n\t"                        \
    "smlad %[s0], %[u], %[a], %[s0]\n\tsmlabt %[s0], %[v], %[b], %[s0]\n\t"                     \
    "smlatb %[s1], %[u], %[a], %[s1]\n\tldr %[u], [%[p], #8]\n\tadd %[p], %[pitch]\n\t"         \
    "smlad %[s1], %[v], %[b], %[s1]\n\tsmlad %[s2], %[v], %[a], %[s2]\n\t"                      \
    "smlabt %[s2], %[u], %[b], %[s2]\n\tsmlatb %[s3], %[v], %[a], %[s3]\n\t"                    \
    "smlad %[s3], %[u], %[b], %[s3]\n\t"

#define ETC_MCU_ROW4_2(i)                                                                        \
    "ldrd %[a], %[b], [%[w], #(8*" #i ")]\n\tldrd %[u], %[v], [%[p]]\n\t"                        \
    "smlad %[s0], %[u], %[a], %[s0]\n\tsmlabt %[s0], %[v], %[b], %[s0]\n\t"                     \
    "smlad %[s1], %[v], %[a], %[s1]\n\tldrd %[u], %[v], [%[p], #8]\n\t"                         \
    "smlabt %[s1], %[u], %[b], %[s1]\n\tsmlad %[s2], %[u], %[a], %[s2]\n\t"                     \
    "ldr %[u], [%[p], #16]\n\tadd %[p], %[pitch]\n\tsmlabt %[s2], %[v], %[b], %[s2]\n\t"       \
    "smlad %[s3], %[v], %[a], %[s3]\n\tsmlabt %[s3], %[u], %[b], %[s3]\n\t"

#define ETC_MCU_ROW2_1(i)                                                                        \
    "ldrd %[a], %[b], [%[w], #(8*" #i ")]\n\tldrd %[u], %[v], [%[p]]\n\tadd %[p], %[pitch]\n\t"  \
    "smlad %[s0], %[u], %[a], %[s0]\n\tsmlabt %[s0], %[v], %[b], %[s0]\n\t"                     \
    "smlatb %[s1], %[u], %[a], %[s1]\n\tsmlad %[s1], %[v], %[b], %[s1]\n\t"

#define ETC_MCU_ROW2_2(i)                                                                        \
    "ldrd %[a], %[b], [%[w], #(8*" #i ")]\n\tldrd %[u], %[v], [%[p]]\n\t"                        \
    "smlad %[s0], %[u], %[a], %[s0]\n\tsmlabt %[s0], %[v], %[b], %[s0]\n\t"                     \
    "ldr %[u], [%[p], #8]\n\tadd %[p], %[pitch]\n\t"                                           \
    "smlad %[s1], %[v], %[a], %[s1]\n\tsmlabt %[s1], %[u], %[b], %[s1]\n\t"

#define ETC_MCU_END(s, at)                                                                       \
    "smmlar %[" #s "], %[" #s "], %[a], %[b]\n\tssat %[" #s "], #8, %[" #s "]\n\t"                \
    "strb %[" #s "], [%[y]" at "\n\t"

/* Computes rows of outputs, four at a time and the last two or one.  w: EtcMcuNine. */
#define ETC_MCU_NINE(row4, row2)                                                                 \
    __asm__ volatile(                                                                            \
        "1: ldr %[s0], [%[w], #24]\n\tcmp %[n], #2\n\tmov %[s1], %[s0]\n\tble 2f\n\t"            \
        "mov %[s2], %[s0]\n\tmov %[s3], %[s0]\n\t" row4(0) row4(1) row4(2)                      \
        "ldrd %[v], %[a], [%[w], #28]\n\tldr %[b], [%[w], #36]\n\tadd %[p], %[v]\n\t"           \
        "subs %[n], #4\n\t" ETC_MCU_END(s0, "], #4") ETC_MCU_END(s1, ", #-3]")                   \
        ETC_MCU_END(s2, ", #-2]") "blt 4f\n\t" ETC_MCU_END(s3, ", #-1]") "bgt 1b\n"               \
        "3: ldrd %[p], %[a], [%[w], #40]\n\tldrd %[n], %[b], [%[w], #48]\n\tadd %[p], %[a]\n\t"   \
        "ldr %[a], [%[w], #56]\n\tadd %[y], %[b]\n\tstr %[p], [%[w], #40]\n\tcmp %[y], %[a]\n\t" \
        "blo 1b\n\tb 5f\n4: sub %[y], #1\n\tb 3b\n"                                             \
        "2: " row2(0) row2(1) row2(2) "ldrd %[a], %[b], [%[w], #32]\n\tcmp %[n], #2\n\t"         \
        ETC_MCU_END(s0, "], #1") "blt 3b\n\t" ETC_MCU_END(s1, "], #1") "b 3b\n5:\n"             \
        : [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [p] "+r"(p),           \
          [y] "+r"(y), [n] "+&r"(n), [u] "=&r"(u), [v] "=&r"(v), [a] "=&r"(a0), [b] "=&r"(a1)    \
        : [pitch] "r"(pitch), [w] "r"(&nine)                                                     \
        : "cc", "memory")
#endif

/* A channel with windows of three by three taps, as the code of its loop reads it. */
typedef struct EtcMcuNine {
    uint32_t taps[6]; /* of each row the first two and the last two, as halves of 16 bits */
    int32_t start, next, by, zero; /* next: bytes from the last row of a window back to the first
                                      row, four outputs later */
    const EtcMcuPixel *row; /* of the picture */
    int32_t down; /* bytes from there to the row of the next outputs */
    int32_t n, skip; /* outputs of a row, and those behind them */
    const int8_t *end; /* of the rows of y */
} EtcMcuNine;

#if defined(ETC_MCU_WIDE_STEP)
#define ETC_MCU_ADD_ROW(s, a, b)                                                                 \
    "smlad %[" s "], %[u], %[" a "], %[" s "]\n\tsmlabt %[" s "], %[v], %[" b "], %[" s "]\n\t"
#define ETC_MCU_LOAD_ROW "ldrd %[u], %[v], [%[p]]\n\t"

/* Computes outputs that are below each other, two at a time, until `y` is nine->end.  The stride is
 * 1.  Rows of y have n outputs, and those of the picture `pitch` bytes.  The stack holds `by`,
 * `zero`, `start`, `end` and n. */
ETC_INLINE void etc_mcu_column(const EtcMcuNine *nine, const EtcMcuPixel *p, int32_t pitch,
                               int8_t *y, int32_t n)
{
    int32_t s0, s1;
    uint32_t t0, t1, t2, t3, t4, t5;
    __asm__ volatile(
        "sub sp, #24\n\tstr %[v], [sp, #16]\n\tldrd %[t0], %[t1], [%[u], #32]\n\t"
        "strd %[t0], %[t1], [sp]\n\tldr %[t0], [%[u], #24]\n\tldr %[t1], [%[u], #56]\n\t"
        "strd %[t0], %[t1], [sp, #8]\n\tldrd %[t0], %[t1], [%[u]]\n\t"
        "ldrd %[t2], %[t3], [%[u], #8]\n\tldrd %[t4], %[t5], [%[u], #16]\n"
        "1: ldr %[s0], [sp, #8]\n\tmov %[s1], %[s0]\n\t" ETC_MCU_LOAD_ROW "add %[p], %[pitch]\n\t"
        ETC_MCU_ADD_ROW("s0", "t0", "t1") ETC_MCU_LOAD_ROW "add %[p], %[pitch]\n\t"
        ETC_MCU_ADD_ROW("s0", "t2", "t3") ETC_MCU_ADD_ROW("s1", "t0", "t1") ETC_MCU_LOAD_ROW
        ETC_MCU_ADD_ROW("s0", "t4", "t5") ETC_MCU_ADD_ROW("s1", "t2", "t3")
        "add %[p], %[pitch]\n\t" ETC_MCU_LOAD_ROW "sub %[p], %[pitch]\n\t"
        ETC_MCU_ADD_ROW("s1", "t4", "t5") "ldrd %[u], %[v], [sp]\n\t"
        "smmlar %[s0], %[s0], %[u], %[v]\n\tsmmlar %[s1], %[s1], %[u], %[v]\n\t"
        "ldrd %[v], %[u], [sp, #12]\n\tssat %[s0], #8, %[s0]\n\tssat %[s1], #8, %[s1]\n\t"
        "strb %[s0], [%[y]]\n\tadd %[y], %[u]\n\tstrb %[s1], [%[y]]\n\tadd %[y], %[u]\n\t"
        "cmp %[y], %[v]\n\tblo 1b\n\tadd sp, #24\n"
        : [s0] "=&r"(s0), [s1] "=&r"(s1), [u] "+r"(nine), [v] "+&r"(n), [p] "+r"(p), [y] "+r"(y),
          [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4),
          [t5] "=&r"(t5)
        : [pitch] "r"(pitch)
        : "cc", "memory");
}
#endif

/* Computes a channel with windows of three taps by three.  Row i of its weights is the bytes 0, 1,
 * 1, 2 of the taps' numbers.  `stride` is 1 or 2. */
ETC_INLINE void etc_mcu_nine(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                             const EtcMcu *q, int32_t c, int8_t *y, int stride)
    __attribute__((always_inline));
ETC_INLINE void etc_mcu_nine(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                             const EtcMcu *q, int32_t c, int8_t *y, int stride)
{
    const int32_t pitch = 2 * b->pitch; /* in bytes */
    const EtcMcuPixel *p = (const EtcMcuPixel *)b->picture;
    int8_t *const end = y + (b->rows * g->ow);
    EtcMcuNine nine;
    for (int i = 0; i < 3; i++) {
        const uint32_t v = etc_mcu_word(w + (4 * i));
        nine.taps[2 * i] = etc_mcu_even(v);
        nine.taps[(2 * i) + 1] = etc_mcu_odd(v);
    }
    nine.start = q->start[c];
    nine.next = (8 * stride) - (3 * pitch);
    nine.by = q->by[c];
    nine.zero = q->zero;
    nine.row = p;
    nine.down = stride * pitch;
    nine.n = g->ow;
    nine.skip = 0;
    nine.end = end;
#if defined(ETC_MCU_WIDE_STEP)
    if ((stride == 1) && (nine.n > 4) && ((nine.n & 3) == 1) && (b->rows > 1)) {
        nine.n--;
        nine.skip = 1;
        nine.end -= (b->rows & 1) * g->ow;
        etc_mcu_column(&nine, p + nine.n, pitch, y + nine.n, g->ow);
    }
#endif
#if defined(__ARM_FEATURE_DSP)
    for (int32_t n = nine.n; y < end; n = g->ow) {
        int32_t s0, s1, s2, s3;
        uint32_t u, v, a0, a1;
        if (stride == 1) {
            ETC_MCU_NINE(ETC_MCU_ROW4_1, ETC_MCU_ROW2_1);
        } else {
            ETC_MCU_NINE(ETC_MCU_ROW4_2, ETC_MCU_ROW2_2);
        }
        nine.n = g->ow; /* A row that is left has all outputs. */
        nine.skip = 0;
        nine.end = end;
    }
#else
    for (; y < end; p += (stride * pitch) / 2) {
        for (int32_t j = 0; j < nine.n; j++) {
            int32_t sum = nine.start;
            for (int i = 0; i < 9; i++) {
                const int at = ((i / 3) * 4) + (((i % 3) * 3) / 2);
                sum += p[((i / 3) * (pitch / 2)) + (stride * j) + (i % 3)] * w[at];
            }
            *y++ = etc_mcu_put(sum, nine.by, nine.zero);
        }
    }
#endif
}

ETC_OUTLINE void etc_mcu_nine_1(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                                const EtcMcu *q, int32_t c, int8_t *y)
{
    etc_mcu_nine(b, w, g, q, c, y, 1);
}

ETC_OUTLINE void etc_mcu_nine_2(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                                const EtcMcu *q, int32_t c, int8_t *y)
{
    etc_mcu_nine(b, w, g, q, c, y, 2);
}

/* Computes a channel with any windows, two outputs at a time. */
ETC_OUTLINE void etc_mcu_any(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                             const EtcMcu *q, int32_t c, int8_t *y)
{
    const int32_t start = q->start[c], by = q->by[c], zero = q->zero, pitch = b->pitch;
    const int32_t pairs = (g->kw + 1) / 2; /* of taps of a row */
    const EtcMcuPixel *picture = (const EtcMcuPixel *)b->picture;
    uint32_t *const taps = (uint32_t *)b->taps, *last = taps;
    for (int32_t i = 0; i < g->kh; i++, w += g->kw) {
        for (int32_t t = 0; t < g->kw; t += 2) {
            const int32_t other = ((t + 1) < g->kw) ? w[t + 1] : 0;
            *last++ = (uint16_t)w[t] | ((uint32_t)other << 16);
        }
    }
    for (int32_t r = 0; r < b->rows; r++, picture += g->sh * pitch) {
        const EtcMcuPixel *at = picture;
        for (int8_t *const end = y + g->ow; y < end; at += 2 * g->sw) {
            const EtcMcuPixel *p = at, *next = ((y + 1) < end) ? (at + g->sw) : at;
            int32_t s0 = start, s1 = start;
            for (const uint32_t *v = taps; v < last; p += pitch, next += pitch) {
                const EtcMcuPixel *p0 = p, *p1 = next;
                for (const uint32_t *const stop = v + pairs; v < stop; v++, p0 += 2, p1 += 2) {
                    s0 = etc_mcu_pair(etc_mcu_word(p0), *v, s0);
                    s1 = etc_mcu_pair(etc_mcu_word(p1), *v, s1);
                }
            }
            *y++ = etc_mcu_put(s0, by, zero);
            if (y < end) {
                *y++ = etc_mcu_put(s1, by, zero);
            }
        }
    }
}

ETC_INLINE void etc_mcu_plane(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                              const EtcMcu *q, int32_t c, int8_t *y)
{
    const int is_nine = (g->kh == 3) && (g->kw == 3) && (g->sh == g->sw);
    if (is_nine && (g->sw == 1)) {
        etc_mcu_nine_1(b, w, g, q, c, y);
    } else if (is_nine && (g->sw == 2)) {
        etc_mcu_nine_2(b, w, g, q, c, y);
    } else {
        etc_mcu_any(b, w, g, q, c, y);
    }
}

/* Sets each of n bytes of y to the larger of the bytes of x and y. */
ETC_INLINE void etc_mcu_larger(const int8_t *x, int32_t n, int8_t *y)
{
    const int8_t *const end = x + n;
#if defined(__ARM_FEATURE_DSP)
    for (; (x + 4) <= end; x += 4, y += 4) {
        uint32_t a = etc_mcu_word(x), b = etc_mcu_word(y);
        __asm__("ssub8 %1, %2, %0\n\tsel %0, %2, %0" : "+r"(b), "=&r"(a) : "r"(a) : "cc");
        __builtin_memcpy(y, &b, 4);
    }
#endif
    for (; x < end; x++, y++) {
        *y = (*x > *y) ? *x : *y;
    }
}

/* Returns s plus the sum of n bytes, whose sign bits are flipped if flip is set. */
ETC_INLINE int32_t etc_mcu_total(const uint8_t *x, int32_t n, uint32_t flip, int32_t s)
{
#if defined(__ARM_FEATURE_DSP)
    flip ^= 0x80808080u;
    s -= 128 * n;
    for (; n > 3; n -= 4, x += 4) {
        const uint32_t v = etc_mcu_word(x) ^ flip;
        __asm__("usada8 %0, %1, %2, %0" : "+r"(s) : "r"(v), "r"(0));
    }
    for (; n > 0; n--, x++) {
        s += (int32_t)((*x ^ flip) & 0xff);
    }
#else
    for (; n > 0; n--, x++) {
        s += (int8_t)(uint8_t)(*x ^ flip);
    }
#endif
    return s;
}

/* -- linear ------------------------------------------------------------------------------------ */

/* Writes the weight v of a channel and a term to their block. */
ETC_INLINE void etc_mcu_weight(int8_t *block, int32_t channel, int32_t term, int32_t v)
{
    const int32_t at = (channel / 2 * 8) + (term % 2 * 4) + (term / 2 * 2) + (channel % 2);
    block[at] = (int8_t)(uint8_t)(((channel % 2) == 0) ? (v + 128) : v);
}

/* A row of a linear layer, as the code of its loop reads it. */
typedef struct EtcMcuLine {
    const uint32_t *x;
    int32_t k, turn; /* the terms with their zeros; 128 times the sum of the row */
    int32_t code;    /* where the first step is in the code, from the loop on, and 1 for Thumb */
    int32_t zero;
    int8_t *to;        /* the next outputs */
    const int8_t *end; /* of the outputs */
} EtcMcuLine;

#if defined(ETC_MCU_WIDE_STEP)
#define ETC_MCU_BOTH(x, w, s, t)                                                                 \
    "smlad " s ", %[" x "], " w ", " s "\n\tsxtb16 " w ", " w ", ror #8\n\t"                       \
    "smlad " t ", %[" x "], " w ", " t "\n\t"
#define ETC_MCU_DOTS                                                                             \
    "ldrd %[a], %[b], [%[x]], #8\n\tldm.w %[w]!, {r3, r4, r5, r6}\n\t"                          \
    ETC_MCU_BOTH("a", "r3", "r8", "r9") ETC_MCU_BOTH("b", "r4", "r8", "r9")                       \
    ETC_MCU_BOTH("a", "r5", "r10", "r11") ETC_MCU_BOTH("b", "r6", "r10", "r11")
#define ETC_MCU_END_OF(s, w)                                                                     \
    "smmlar " s ", " s ", " w ", %[a]\n\tssat " s ", #8, " s "\n\tstrb " s ", [%[b]], #1\n\t"
#endif

/* Computes outputs of a row, four at a time, until the next is p->end.  Returns the end of their
 * weights.
 * The weights of the first output of a pair are those that are stored, from 0 to 255.  Read as 16
 * bits, two weights are the second one times 256 plus the first one.  So a word adds two terms of
 * both to one sum, from which the sum of the second output is subtracted at the end; all is modulo
 * 2^32.  A loop over four steps, of 56 bytes each, is entered so late that it ends with the last.
 * The sums are in r8 to r11.  The stack holds *p. */
ETC_INLINE const int8_t *etc_mcu_outputs(const int8_t *w, EtcMcuLine *p)
{
#if defined(ETC_MCU_WIDE_STEP)
    int32_t n;
    uint32_t a, b;
    const void *x = p;
    __asm__ volatile(
        ".p2align 2\n\t" /* ADR needs it */
        "ldm %[x], {r3, r4, r5, r6, r8, r9, r10}\n\tadr %[a], 2f\n\tadd r6, %[a]\n\t"
        "push {r3, r4, r5, r6, r8, r9, r10}\n"
        "1: ldm %[w]!, {r8, r9, r10, r11}\n\tldrd %[x], %[n], [sp]\n\tldr %[a], [sp, #8]\n\t"
        "sub r8, %[a]\n\tsub r10, %[a]\n\tadd r8, r8, r9, lsl #8\n\t"
        "add r10, r10, r11, lsl #8\n\tldr pc, [sp, #12]\n"
        "2: " ETC_MCU_DOTS ETC_MCU_DOTS ETC_MCU_DOTS ETC_MCU_DOTS "subs %[n], #16\n\tbgt 2b\n\t"
        "sub r8, r8, r9, lsl #8\n\tsub r10, r10, r11, lsl #8\n\t"
        "ldm %[w]!, {r3, r4, r5, r6}\n\tldrd %[a], %[b], [sp, #16]\n\t"
        ETC_MCU_END_OF("r8", "r3") ETC_MCU_END_OF("r9", "r4") ETC_MCU_END_OF("r10", "r5")
        ETC_MCU_END_OF("r11", "r6")
        "ldr %[n], [sp, #24]\n\tstr %[b], [sp, #20]\n\tcmp %[b], %[n]\n\tblo 1b\n\tadd sp, #28\n"
        : [w] "+r"(w), [x] "+r"(x), [n] "=&r"(n), [a] "=&r"(a), [b] "=&r"(b)
        :
        : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "cc", "memory");
#else
    for (; p->to < p->end; p->to += 4, w += 16) {
        int32_t s[4];
        const int16_t *x = (const int16_t *)(const void *)p->x;
        for (int i = 0; i < 4; i++, w += 4) {
            s[i] = etc_mcu_number(w) - (((i % 2) == 0) ? p->turn : 0);
        }
        for (const int8_t *const end = w + (4 * p->k); w < end; x += 4) {
            for (int i = 0; i < 16; i += 2, w += 2) {
                const int at = i / 8 * 2;
                s[at] += x[(i / 2) % 4] * (uint8_t)w[0];
                s[at + 1] += x[(i / 2) % 4] * w[1];
            }
        }
        for (int i = 0; i < 4; i++) {
            p->to[i] = etc_mcu_put(s[i], etc_mcu_number(w + (4 * i)), p->zero);
        }
    }
#endif
    return w;
}

/* Computes the first two outputs of a block. */
ETC_INLINE void etc_mcu_two(const int8_t *w, const EtcMcuLine *p, int8_t *to)
{
    int32_t s0 = (int32_t)etc_mcu_word(w) - p->turn, s1 = (int32_t)etc_mcu_word(w + 4);
    const int8_t *at = w + 16;
#if defined(ETC_MCU_WIDE_STEP)
    const uint32_t *x = p->x;
    int32_t n = p->k;
    uint32_t a, b, u, v;
    __asm__("add %[s0], %[s0], %[s1], lsl #8\n"
            "1: ldrd %[a], %[b], [%[x]], #8\n\tldrd %[u], %[v], [%[at]], #16\n\t"
            ETC_MCU_BOTH("a", "%[u]", "%[s0]", "%[s1]") ETC_MCU_BOTH("b", "%[v]", "%[s0]", "%[s1]")
            "subs %[n], #4\n\tbgt 1b\n\tsub %[s0], %[s0], %[s1], lsl #8\n"
            : [s0] "+&r"(s0), [s1] "+&r"(s1), [at] "+&r"(at), [x] "+&r"(x), [n] "+&r"(n),
              [u] "=&r"(u), [v] "=&r"(v), [a] "=&r"(a), [b] "=&r"(b)
            :
            : "cc", "memory");
#else
    const int16_t *x = (const int16_t *)(const void *)p->x;
    for (int32_t i = 0; i < p->k; i++, at += ((i % 4) == 0) ? 10 : 2) {
        s0 += x[i] * (uint8_t)at[0];
        s1 += x[i] * at[1];
    }
#endif
    to[0] = etc_mcu_put(s0, (int32_t)etc_mcu_word(at), p->zero);
    to[1] = etc_mcu_put(s1, (int32_t)etc_mcu_word(at + 4), p->zero);
}

/* Writes a word of x as two pairs of numbers.  Returns sum plus these numbers. */
ETC_INLINE int32_t etc_mcu_pairs(uint32_t v, uint32_t *to, int32_t sum)
{
    to[0] = etc_mcu_even(v);
    to[1] = etc_mcu_odd(v);
    return etc_mcu_pair(to[1], 0x10001, etc_mcu_pair(to[0], 0x10001, sum));
}

/* Writes n bytes of x as pairs of numbers, with zeros up to a multiple of 4.  Returns their sum. */
ETC_INLINE int32_t etc_mcu_line(const uint8_t *x, int32_t n, uint32_t flip, uint32_t *to)
{
    const uint8_t *const end = x + (n / 4 * 4);
    int32_t sum = 0;
    for (; x < end; x += 4, to += 2) {
        sum = etc_mcu_pairs(etc_mcu_word(x) ^ flip, to, sum);
    }
    if ((n % 4) != 0) {
        uint32_t v = flip;
        __builtin_memcpy(&v, x, (size_t)(n % 4));
        sum = etc_mcu_pairs(v ^ flip, to, sum);
    }
    return sum;
}

/* Computes a linear layer from x[rows][n_k] to y[rows][m].  work: two bytes for each term of a row,
 * up to a multiple of 4.  The last outputs, if they are fewer than four, go by way of `some`. */
ETC_OUTLINE void etc_mcu_linear(const void *x, const int8_t *weights, void *y, int32_t rows,
                                int32_t m, int32_t n_k, const EtcMcu *q, void *work)
{
    const uint8_t *from = (const uint8_t *)x;
    int8_t *to = (int8_t *)y;
    const int32_t rest = m % 4, k = (n_k + 3) / 4 * 4;
    for (int32_t r = 0; r < rows; r++, from += n_k, to += m) {
        const int32_t sum = etc_mcu_line(from, n_k, q->x_flip, (uint32_t *)work);
        EtcMcuLine line = {(uint32_t *)work, k, 128 * sum, (56 * ((-k / 4) & 3)) + 1, q->zero, to,
                           to + m - rest};
        const int8_t *w = weights;
        int8_t some[4];
        for (int32_t left = m; left > 2; left = (left > 3) ? rest : 0) {
            if (left == 3) {
                line.to = some;
                line.end = some + 4;
            }
            w = etc_mcu_outputs(w, &line);
        }
        if ((rest == 1) || (rest == 2)) {
            etc_mcu_two(w, &line, some);
        }
        for (int32_t i = 0; i < rest; i++) {
            to[m - rest + i] = some[i];
        }
    }
}

ETC_OUTLINE void etc_mcu_quantize(const float *x, void *y, int32_t n, float inverse,
                                  const EtcMcu *q)
{
    int8_t *to = (int8_t *)y;
    const float *const end = x + n;
#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FP)
#define ETC_MCU_NEAREST(s) "vmul.f32 " s ", " s ", %[by]\n\tvcvtr.s32.f32 " s ", " s "\n\t"
#define ETC_MCU_BYTE(v, at)                                                                      \
    "qadd %[" #v "], %[" #v "], %[zero]\n\tssat %[" #v "], #8, %[" #v "]\n\t"                      \
    "strb %[" #v "], [%[to]" at "\n\t"
    int32_t a, b;
    while ((x + 4) <= end) {
        __asm__ volatile("vldmia %[x]!, {s0-s3}\n\t" ETC_MCU_NEAREST("s0") ETC_MCU_NEAREST("s1")
                         ETC_MCU_NEAREST("s2") ETC_MCU_NEAREST("s3")
                         "vmov %[a], %[b], s0, s1\n\t" ETC_MCU_BYTE(a, "], #4")
                         ETC_MCU_BYTE(b, ", #-3]") "vmov %[a], %[b], s2, s3\n\t"
                         ETC_MCU_BYTE(a, ", #-2]") ETC_MCU_BYTE(b, ", #-1]")
                         : [x] "+r"(x), [to] "+r"(to), [a] "=&r"(a), [b] "=&r"(b)
                         : [by] "t"(inverse), [zero] "r"(q->zero)
                         : "s0", "s1", "s2", "s3", "memory");
    }
    while (x < end) {
        __asm__ volatile("vldmia %[x]!, {s0}\n\t" ETC_MCU_NEAREST("s0") "vmov %[a], s0\n\t"
                         ETC_MCU_BYTE(a, "], #1")
                         : [x] "+r"(x), [to] "+r"(to), [a] "=&r"(a)
                         : [by] "t"(inverse), [zero] "r"(q->zero)
                         : "s0", "memory");
    }
#else
    for (; x < end; x++) {
        const int32_t v = etc_mcu_nearest(*x * inverse) + q->zero;
        *to++ = (int8_t)etc_min_i32(etc_max_i32(v, -128), 127);
    }
#endif
}

ETC_OUTLINE void etc_mcu_dequantize(const void *x, float *y, int32_t n, int32_t is_signed,
                                    int32_t zero, float scale)
{
    const uint8_t *from = (const uint8_t *)x;
    const int32_t turn = (is_signed != 0) ? 128 : 0, least = turn + zero;
    const uint8_t *const end = from + n;
#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FP)
#define ETC_MCU_FLOAT(s) "vcvt.f32.s32 " s ", " s "\n\tvmul.f32 " s ", " s ", %[by]\n\t"
    const uint32_t flip = (is_signed != 0) ? 0 : 0x80808080u; /* Then bytes have signs. */
    while ((from + 4) <= end) {
        uint32_t v;
        int32_t a, b;
        __asm__ volatile("ldr %[v], [%[from]], #4\n\teor %[v], %[flip]\n\t"
                         "sxtab %[a], %[more], %[v]\n\tsxtab %[b], %[more], %[v], ror #8\n\t"
                         "vmov s0, s1, %[a], %[b]\n\tsxtab %[a], %[more], %[v], ror #16\n\t"
                         "sxtab %[b], %[more], %[v], ror #24\n\tvmov s2, s3, %[a], %[b]\n\t"
                         ETC_MCU_FLOAT("s0") ETC_MCU_FLOAT("s1") ETC_MCU_FLOAT("s2")
                         ETC_MCU_FLOAT("s3") "vstmia %[y]!, {s0-s3}\n\t"
                         : [from] "+r"(from), [y] "+r"(y), [v] "=&r"(v), [a] "=&r"(a), [b] "=&r"(b)
                         : [flip] "r"(flip), [more] "r"(128 - least), [by] "t"(scale)
                         : "s0", "s1", "s2", "s3", "memory");
    }
#endif
    for (; from < end; from++, y++) {
        *y = (float)((*from ^ turn) - least) * scale;
    }
}

#endif
