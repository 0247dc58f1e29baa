/* mcu_dsp.h -- Cortex-M4, M7 and M33, which have instructions that add two products of 16 bits.
 *
 * Weights are stored as [channels / 2][k / 4][2][4]; zeros stand in the place of a channel that
 * an odd number of channels lacks.  A panel is [k / 4][4 pixels][4 numbers of 16 bits].  The
 * four numbers are those of terms 0, 2, 1, 3, as SXTB16 makes them of four bytes.  Inner steps
 * are assembly, because gcc 12 hoists loads and then spills registers. */
#ifndef ETC_MCU_DSP_H
#define ETC_MCU_DSP_H

#include "runtime-lite/kernels/fixed.h"

typedef int16_t EtcMcuPixel;

#define ETC_MCU_PANEL(k) ((k) * 8)
#define ETC_MCU_FROM_0 0
#define ETC_MCU_TAPS(kh, kw) ((kh) * (((kw) + 1) / 2) * 4)

ETC_INLINE uint32_t etc_mcu_word(const void *p)
{
    uint32_t v;
    __builtin_memcpy(&v, p, 4);
    return v;
}

/* Copies three bytes as four.  The last byte is overwritten later, or its weight is 0. */
ETC_INLINE void etc_mcu_three(const uint8_t *x, uint8_t *to)
{
    __builtin_memcpy(to, x, 4);
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
    return (a & 0xffff) | (b << 16);
}

ETC_INLINE uint32_t etc_mcu_high(uint32_t a, uint32_t b)
{
    return (a >> 16) | (b & 0xffff0000u);
}

ETC_INLINE int8_t etc_mcu_put(int32_t sum, int32_t by, int32_t zero)
{
#if defined(__ARM_FEATURE_DSP)
    int32_t v;
    __asm__("smmlar %0, %1, %2, %3\n\tssat %0, #8, %0" : "=r"(v) : "r"(sum), "r"(by), "r"(zero));
    return (int8_t)v;
#else
    const int32_t v = (int32_t)((((int64_t)sum * by) + 0x80000000ll) >> 32) + zero;
    return (int8_t)etc_min_i32(etc_max_i32(v, -128), 127);
#endif
}

/* Writes n bytes as numbers of 16 bits, in their order. */
ETC_INLINE void etc_mcu_run(const uint8_t *x, int32_t n, uint32_t flip, EtcMcuPixel *to)
{
    const uint8_t *const end = x + n;
    for (; (x + 4) <= end; x += 4) {
        const uint32_t v = etc_mcu_word(x) ^ flip, a = etc_mcu_even(v), b = etc_mcu_odd(v);
        const uint32_t lo = etc_mcu_low(a, b), hi = etc_mcu_high(a, b);
        __builtin_memcpy(to, &lo, 4);
        __builtin_memcpy(to + 2, &hi, 4);
        to += 4;
    }
    for (; x < end; x++) {
        *to++ = etc_mcu_byte(*x ^ flip);
    }
}

ETC_OUTLINE void etc_mcu_planes(const uint8_t *x, int32_t plane, int32_t n_k, int32_t k,
                                uint32_t flip, void *panel)
{
    uint32_t *to = (uint32_t *)panel;
    (void)k;
    for (; n_k > 0; n_k -= 4) { /* Terms past the last have zero weights. */
        const uint8_t *x1 = (n_k > 1) ? (x + plane) : x, *x2 = (n_k > 2) ? (x1 + plane) : x;
        const uint8_t *x3 = (n_k > 3) ? (x2 + plane) : x;
        const uint32_t a = etc_mcu_word(x) ^ flip, b = etc_mcu_word(x1) ^ flip;
        const uint32_t c = etc_mcu_word(x2) ^ flip, d = etc_mcu_word(x3) ^ flip;
        const uint32_t a0 = etc_mcu_even(a), c0 = etc_mcu_even(c);
        const uint32_t b0 = etc_mcu_even(b), d0 = etc_mcu_even(d);
        const uint32_t a1 = etc_mcu_odd(a), c1 = etc_mcu_odd(c);
        const uint32_t b1 = etc_mcu_odd(b), d1 = etc_mcu_odd(d);
        to[0] = etc_mcu_low(a0, c0);
        to[1] = etc_mcu_low(b0, d0);
        to[2] = etc_mcu_low(a1, c1);
        to[3] = etc_mcu_low(b1, d1);
        to[4] = etc_mcu_high(a0, c0);
        to[5] = etc_mcu_high(b0, d0);
        to[6] = etc_mcu_high(a1, c1);
        to[7] = etc_mcu_high(b1, d1);
        to += 8;
        x += 4 * plane;
    }
}

ETC_INLINE void etc_mcu_slot(const uint8_t *line, int32_t k, uint32_t flip, int32_t i, void *panel)
{
    uint32_t *to = (uint32_t *)panel + (2 * i);
    for (const uint8_t *end = line + k; line < end; line += 8) {
        const uint32_t v = etc_mcu_word(line) ^ flip, u = etc_mcu_word(line + 4) ^ flip;
        to[0] = etc_mcu_even(v);
        to[1] = etc_mcu_odd(v);
        to[8] = etc_mcu_even(u);
        to[9] = etc_mcu_odd(u);
        to += 16;
    }
}

/* -- channels of a panel ----------------------------------------------------------------------- */

typedef struct EtcMcuSums {
    int32_t s00, s01, s10, s11; /* the first digit is the channel, the second one the pixel */
} EtcMcuSums;

#if defined(__ARM_FEATURE_DSP)
/* Adds four terms of two channels by two pixels: 16 products in 15 instructions. */
#define ETC_MCU_STEP                                                                             \
    "ldrd %[u], %[v], [%[w]], #8\n\tsxtb16 %[e], %[u], ror #8\n\tsxtb16 %[u], %[u]\n\t"           \
    "sxtb16 %[f], %[v], ror #8\n\tsxtb16 %[v], %[v]\n\tldrd %[a], %[b], [%[x], #8]\n\t"           \
    "smlad %[s01], %[a], %[u], %[s01]\n\tsmlad %[s11], %[a], %[v], %[s11]\n\t"                    \
    "smlad %[s01], %[b], %[e], %[s01]\n\tsmlad %[s11], %[b], %[f], %[s11]\n\t"                    \
    "ldrd %[a], %[b], [%[x]], #32\n\t"                                                           \
    "smlad %[s00], %[a], %[u], %[s00]\n\tsmlad %[s10], %[a], %[v], %[s10]\n\t"                    \
    "smlad %[s00], %[b], %[e], %[s00]\n\tsmlad %[s10], %[b], %[f], %[s10]\n\t"
#endif

/* Adds k terms to the sums.  Returns the end of their weights. */
ETC_INLINE const int8_t *etc_mcu_add(const uint32_t *x, const int8_t *w, int32_t k, EtcMcuSums *s)
{
    const int8_t *const end = w + (2 * k);
#if defined(__ARM_FEATURE_DSP)
    uint32_t u, v, e, f, a, b;
    do {
        __asm__(ETC_MCU_STEP ETC_MCU_STEP
                : [s00] "+r"(s->s00), [s01] "+r"(s->s01), [s10] "+r"(s->s10), [s11] "+r"(s->s11),
                  [w] "+r"(w), [x] "+r"(x), [u] "=&r"(u), [v] "=&r"(v), [e] "=&r"(e), [f] "=&r"(f),
                  [a] "=&r"(a), [b] "=&r"(b)
                :
                : "memory");
    } while (w < end);
#else
    for (; w < end; w += 8) {
        const int16_t *p = (const int16_t *)(const void *)x;
        for (int t = 0; t < 4; t++) {
            const int at = ((t & 1) * 2) + (t >> 1);
            s->s00 += p[at] * w[t];
            s->s01 += p[at + 4] * w[t];
            s->s10 += p[at] * w[t + 4];
            s->s11 += p[at + 4] * w[t + 4];
        }
        x += 8;
    }
#endif
    return w;
}

ETC_OUTLINE void etc_mcu_tiles(const void *panel, const int8_t *weights, int8_t *y, int32_t plane,
                               int32_t k, int32_t m, const EtcMcu *q)
{
    const int32_t zero = q->zero;
    for (int32_t h = 0; h < 2; h++) {
        const uint32_t *x = (const uint32_t *)panel + (4 * h);
        const int8_t *w = weights;
        int8_t *to = y + (2 * h);
        const int32_t *start = q->start, *by = q->by, *const end = by + m;
        do {
            EtcMcuSums s = {start[0], start[0], start[1], start[1]};
            w = etc_mcu_add(x, w, k, &s);
            to[0] = etc_mcu_put(s.s00, by[0], zero);
            to[1] = etc_mcu_put(s.s01, by[0], zero);
            to += plane;
            start += 2;
            by += 2;
            if (by <= end) {
                to[0] = etc_mcu_put(s.s10, by[-1], zero);
                to[1] = etc_mcu_put(s.s11, by[-1], zero);
                to += plane;
            }
        } while (by < end);
    }
}

/* -- depthwise --------------------------------------------------------------------------------- */

#if defined(__ARM_FEATURE_DSP)
/* Adds a row of three taps to two outputs, with a stride of 1 (ETC_MCU_ROW1) or 2
 * (ETC_MCU_ROW2). */
#define ETC_MCU_ROW1                                                                             \
    "ldrd %[u], %[v], [%[p]]\n\tadd %[p], %[pitch]\n\tsmlad %[s0], %[u], %[a], %[s0]\n\t"         \
    "smlatb %[s1], %[u], %[a], %[s1]\n\tsmlabt %[s0], %[v], %[b], %[s0]\n\t"                     \
    "smlad %[s1], %[v], %[b], %[s1]\n\t"

#define ETC_MCU_ROW2                                                                             \
    "ldrd %[u], %[v], [%[p]]\n\tsmlad %[s0], %[u], %[a], %[s0]\n\tldr %[u], [%[p], #8]\n\t"       \
    "add %[p], %[pitch]\n\tsmlabt %[s0], %[v], %[b], %[s0]\n\tsmlad %[s1], %[v], %[a], "         \
    "%[s1]\n\tsmlabt %[s1], %[u], %[b], %[s1]\n\t"

#define ETC_MCU_ROW(row, w01, w12)                                                               \
    __asm__(row : [s0] "+r"(s0), [s1] "+r"(s1), [p] "+r"(p), [u] "=&r"(u), [v] "=&r"(v)          \
            : [pitch] "r"(pitch), [a] "r"(w01), [b] "r"(w12) : "memory")

/* Computes a channel with windows of three taps by three.  `stride` is 1 or 2. */
__attribute__((always_inline)) static inline void etc_mcu_nine(const EtcMcuPixel *picture,
                                                               const int8_t *w,
                                                               const EtcMcuConv *g,
                                    int32_t rows, const EtcMcu *q,
                                                               int32_t c, int8_t *y, int stride)
{
    const int32_t pitch = 2 * etc_mcu_pitch(g); /* in bytes */
    const int32_t start = q->start[c], by = q->by[c], zero = q->zero;
    uint32_t w01[3], w12[3], u, v;
    for (int i = 0; i < 3; i++) {
        w01[i] = (uint16_t)w[3 * i] | ((uint32_t)(uint16_t)w[(3 * i) + 1] << 16);
        w12[i] = (uint16_t)w[(3 * i) + 1] | ((uint32_t)(uint16_t)w[(3 * i) + 2] << 16);
    }
    for (int32_t r = 0; r < rows; r++) {
        const char *p = (const char *)picture;
        int8_t *const end = y + g->ow;
        do {
            int32_t s0 = start, s1 = start;
            if (stride == 1) {
                ETC_MCU_ROW(ETC_MCU_ROW1, w01[0], w12[0]);
                ETC_MCU_ROW(ETC_MCU_ROW1, w01[1], w12[1]);
                ETC_MCU_ROW(ETC_MCU_ROW1, w01[2], w12[2]);
            } else {
                ETC_MCU_ROW(ETC_MCU_ROW2, w01[0], w12[0]);
                ETC_MCU_ROW(ETC_MCU_ROW2, w01[1], w12[1]);
                ETC_MCU_ROW(ETC_MCU_ROW2, w01[2], w12[2]);
            }
            p -= (3 * pitch) - (4 * stride);
            *y++ = etc_mcu_put(s0, by, zero);
            if (y < end) {
                *y++ = etc_mcu_put(s1, by, zero);
            }
        } while (y < end);
        picture += (stride * pitch) / 2;
    }
}

ETC_OUTLINE void etc_mcu_nine_1(const EtcMcuPixel *picture, const int8_t *w, const EtcMcuConv *g,
                                int32_t rows, const EtcMcu *q, int32_t c, int8_t *y)
{
    etc_mcu_nine(picture, w, g, rows, q, c, y, 1);
}

ETC_OUTLINE void etc_mcu_nine_2(const EtcMcuPixel *picture, const int8_t *w, const EtcMcuConv *g,
                                int32_t rows, const EtcMcu *q, int32_t c, int8_t *y)
{
    etc_mcu_nine(picture, w, g, rows, q, c, y, 2);
}
#endif

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

/* Computes two outputs at a time.  Each row of a window has `pairs` pairs of taps. */
ETC_INLINE void etc_mcu_windows_2(const EtcMcuPixel *picture, const uint32_t *taps,
                                  const EtcMcuConv *g, int32_t rows, const EtcMcu *q, int32_t c,
                                  int8_t *y, int32_t pairs)
{
    const int32_t pitch = etc_mcu_pitch(g), start = q->start[c], by = q->by[c], zero = q->zero;
    const uint32_t *const last = taps + (g->kh * pairs);
    for (int32_t r = 0; r < rows; r++, picture += g->sh * pitch) {
        const EtcMcuPixel *at = picture;
        for (int8_t *const end = y + g->ow; y < end; at += 2 * g->sw) {
            const EtcMcuPixel *p = at, *next = ((y + 1) < end) ? (at + g->sw) : at;
            int32_t s0 = start, s1 = start;
            for (const uint32_t *w = taps; w < last; p += pitch, next += pitch) {
                const EtcMcuPixel *p0 = p, *p1 = next;
                for (const uint32_t *const stop = w + pairs; w < stop; w++, p0 += 2, p1 += 2) {
                    s0 = etc_mcu_pair(etc_mcu_word(p0), *w, s0);
                    s1 = etc_mcu_pair(etc_mcu_word(p1), *w, s1);
                }
            }
            *y++ = etc_mcu_put(s0, by, zero);
            if (y < end) {
                *y++ = etc_mcu_put(s1, by, zero);
            }
        }
    }
}

ETC_OUTLINE void etc_mcu_plane(const EtcMcuPixel *picture, const int8_t *w, const EtcMcuConv *g,
                               int32_t rows, const EtcMcu *q, int32_t c, int8_t *y, void *taps)
{
    uint32_t *to = (uint32_t *)taps;
#if defined(__ARM_FEATURE_DSP)
    const int is_nine = (g->kh == 3) && (g->kw == 3);
    if (is_nine && (g->sh == 1) && (g->sw == 1)) {
        etc_mcu_nine_1(picture, w, g, rows, q, c, y);
        return;
    }
    if (is_nine && (g->sh == 2) && (g->sw == 2)) {
        etc_mcu_nine_2(picture, w, g, rows, q, c, y);
        return;
    }
#endif
    for (int32_t i = 0; i < g->kh; i++, w += g->kw) {
        for (int32_t t = 0; t < g->kw; t += 2) {
            const int32_t other = ((t + 1) < g->kw) ? w[t + 1] : 0;
            *to++ = (uint16_t)w[t] | ((uint32_t)other << 16);
        }
    }
    etc_mcu_windows_2(picture, (const uint32_t *)taps, g, rows, q, c, y, (g->kw + 1) / 2);
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

/* -- linear ------------------------------------------------------------------------------------ */

/* Computes a linear layer from x[rows][n_k] to y[rows][m].  Weights are stored as those of a
 * convolution.  k is a multiple of 8.  work: 2 * k bytes. */
ETC_OUTLINE void etc_mcu_linear(const void *x, const int8_t *weights, void *y, int32_t rows,
                                int32_t m, int32_t n_k, int32_t k, const EtcMcu *q, void *work)
{
    int8_t *to = (int8_t *)y;
    for (int32_t r = 0; r < rows; r++) {
        const uint8_t *from = (const uint8_t *)x + (r * n_k);
        const int8_t *w = weights;
        uint32_t *pair = (uint32_t *)work;
        __builtin_memset((uint8_t *)work + (2 * (k - 8)), 0, 16);
        for (int32_t i = 0; i < n_k; i += 4) {
            uint32_t v = 0;
            if ((i + 4) <= n_k) {
                v = etc_mcu_word(from + i);
            } else {
                __builtin_memcpy(&v, from + i, (size_t)(n_k - i));
            }
            v ^= q->x_flip;
            *pair++ = etc_mcu_even(v);
            *pair++ = etc_mcu_odd(v);
        }
        for (int32_t c = 0; c < m; c += 2) {
            int32_t s0 = q->start[c], s1 = q->start[c + 1];
            const uint32_t *p = (const uint32_t *)work;
            const int8_t *const end = w + (2 * k);
#if defined(__ARM_FEATURE_DSP)
            uint32_t u, v, e, a, b;
#define ETC_MCU_DOT                                                                              \
    "ldrd %[u], %[v], [%[w]], #8\n\tldrd %[a], %[b], [%[x]], #8\n\tsxtb16 %[e], %[u], ror #8\n\t"  \
    "sxtb16 %[u], %[u]\n\tsmlad %[s0], %[b], %[e], %[s0]\n\tsmlad %[s0], %[a], %[u], %[s0]\n\t"    \
    "sxtb16 %[e], %[v], ror #8\n\tsxtb16 %[v], %[v]\n\tsmlad %[s1], %[b], %[e], %[s1]\n\t"         \
    "smlad %[s1], %[a], %[v], %[s1]\n\t"
            do {
                __asm__(ETC_MCU_DOT ETC_MCU_DOT
                        : [s0] "+r"(s0), [s1] "+r"(s1), [w] "+r"(w), [x] "+r"(p), [u] "=&r"(u),
                          [v] "=&r"(v), [e] "=&r"(e), [a] "=&r"(a), [b] "=&r"(b)
                        :
                        : "memory");
            } while (w < end);
#else
            for (; w < end; w += 8) {
                const int16_t *h = (const int16_t *)(const void *)p;
                for (int t = 0; t < 4; t++) {
                    s0 += h[((t & 1) * 2) + (t >> 1)] * w[t];
                    s1 += h[((t & 1) * 2) + (t >> 1)] * w[t + 4];
                }
                p += 2;
            }
#endif
            *to++ = etc_mcu_put(s0, q->by[c], q->zero);
            if ((c + 1) < m) {
                *to++ = etc_mcu_put(s1, q->by[c + 1], q->zero);
            }
        }
    }
    etc_mcu_finish((uint8_t *)y, rows * m, q);
}

ETC_OUTLINE void etc_mcu_quantize(const float *x, void *y, int32_t n, float inverse,
                                  const EtcMcu *q)
{
    int8_t *to = (int8_t *)y;
    for (const float *const end = x + n; x < end; x++) {
#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FP)
        float by = *x * inverse;
        int32_t v;
        __asm__("vcvtr.s32.f32 %0, %0" : "+t"(by));
        __asm__("vmov %0, %1\n\tqadd %0, %0, %2\n\tssat %0, #8, %0"
                : "=&r"(v) : "t"(by), "r"(q->zero));
        *to++ = (int8_t)v;
#else
        const int32_t v = etc_mcu_nearest(*x * inverse) + q->zero;
        *to++ = (int8_t)etc_min_i32(etc_max_i32(v, -128), 127);
#endif
    }
    etc_mcu_finish((uint8_t *)y, n, q);
}

#endif
