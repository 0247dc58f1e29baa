/* mcu_plain.h -- Cortex-M0+, M3 and others without instructions that add pairs of products.
 *
 * The bytes of x have no sign here, because a load of such a byte takes an offset; `start`
 * corrects the sums for that.  Weights of a convolution are stored as [channels][k], and those
 * in a block of a linear layer as [k][4] with 128 added to each.  A panel is [k][4 pixels]. */
#ifndef ETC_MCU_PLAIN_H
#define ETC_MCU_PLAIN_H

#include "runtime-lite/kernels/fixed.h"

typedef uint8_t EtcMcuPixel;

#define ETC_MCU_PANEL(k) ((k) * 4)
#define ETC_MCU_FROM_0 1
#define ETC_MCU_SINGLE 0
#define ETC_MCU_BY_4 0
#define ETC_MCU_SLOT 1
#define ETC_MCU_RUN 1
#define ETC_MCU_TERMS 1
#define ETC_MCU_TAPS(g) 0

ETC_INLINE EtcMcuPixel etc_mcu_byte(uint32_t v)
{
    return (uint8_t)v;
}

#if defined(__ARM_ARCH_PROFILE) && !defined(__ARM_FEATURE_SAT)
/* Scales `sum`; the last carry is the bit behind those that are kept. */
#define ETC_MCU_SCALE(sum, by, low, by_low, part)                                                \
    "uxth " low ", " sum "\n\tasrs " sum ", " sum ", #16\n\tuxth " by_low ", " by "\n\t"         \
    "asrs " by ", " by ", #16\n\tmovs " part ", " low "\n\tmuls " part ", " by_low ", " part       \
    "\n\tlsrs " part ", " part ", #16\n\tmuls " low ", " by ", " low "\n\tadds " part ", " part    \
    ", " low "\n\tmuls " by_low ", " sum ", " by_low "\n\tmuls " sum ", " by ", " sum "\n\t"        \
    "uxth " low ", " part "\n\tadds " by_low ", " by_low ", " low "\n\tlsrs " part ", " part       \
    ", #16\n\tadds " sum ", " sum ", " part "\n\tasrs " by_low ", " by_low ", #16\n\t"             \
    "adcs " sum ", " by_low "\n\t"
#endif

/* Returns sum * by / 2^32, rounded to the nearest integer, halves up.  If the CPU's products
 * have no more than 32 bits, it multiplies halves of 16 bits. */
ETC_INLINE int32_t etc_mcu_scaled(int32_t sum, int32_t by)
{
#if defined(__ARM_ARCH_PROFILE) && !defined(__ARM_FEATURE_SAT)
    int32_t low, by_low, part;
    __asm__(".syntax unified\n" ETC_MCU_SCALE("%[sum]", "%[by]", "%[low]", "%[by_low]", "%[part]")
            : [sum] "+l"(sum), [by] "+l"(by), [low] "=&l"(low), [by_low] "=&l"(by_low),
              [part] "=&l"(part)
            :
            : "cc");
    return sum;
#else
    return (int32_t)((((int64_t)sum * by) + 0x80000000ll) >> 32);
#endif
}

/* Returns v, or the bound of a signed byte that it exceeds. */
ETC_INLINE int8_t etc_mcu_clamp(int32_t v)
{
#if defined(__ARM_ARCH_PROFILE) && !defined(__ARM_FEATURE_SAT)
    return (int8_t)(((uint32_t)(v + 128) > 255) ? ((v >> 31) ^ 127) : v);
#else
    return (int8_t)((v < -128) ? -128 : ((v > 127) ? 127 : v)); /* SSAT, if there is one */
#endif
}

ETC_OUTLINE int8_t etc_mcu_put(int32_t sum, int32_t by, int32_t zero)
{
    return etc_mcu_clamp(etc_mcu_scaled(sum, by) + zero);
}

/* Converts `rows` runs of n bytes, which are `next` apart in x, and `pitch` in `to`. */
ETC_INLINE void etc_mcu_runs(const uint8_t *x, int32_t n, int32_t next, int32_t rows,
                             uint32_t flip, EtcMcuPixel *to, int32_t pitch)
{
    for (; rows > 0; rows--, x += next, to += pitch) {
        for (int32_t i = 0; i < n; i++) {
            to[i] = (uint8_t)(x[i] ^ flip);
        }
    }
}

ETC_OUTLINE void etc_mcu_planes(const uint8_t *x, int32_t plane, int32_t n_k, int32_t k,
                                uint32_t flip, void *panel)
{
    uint8_t *to = (uint8_t *)panel;
    (void)k;
    for (; n_k > 0; n_k--) {
        to[0] = (uint8_t)(x[0] ^ flip);
        to[1] = (uint8_t)(x[1] ^ flip);
        to[2] = (uint8_t)(x[2] ^ flip);
        to[3] = (uint8_t)(x[3] ^ flip);
        to += 4;
        x += plane;
    }
}

/* Writes n columns of a row of x as pixels that hold all channels, to[n][g->wide].  x points to the
 * first column in the plane of channel 0. */
ETC_INLINE void etc_mcu_pixels(const uint8_t *x, const EtcMcuConv *g, int32_t n, uint32_t flip,
                               EtcMcuPixel *to)
{
    const int32_t wide = g->wide, plane = g->ih * g->iw;
    for (int32_t c = 0; c < g->ic; c++, x += plane, to++) {
        EtcMcuPixel *at = to;
        for (const uint8_t *p = x, *const end = x + n; p < end; p++, at += wide) {
            *at = (uint8_t)(*p ^ flip);
        }
    }
}

/* Copies n bytes to one pixel of a panel. */
ETC_INLINE void etc_mcu_spread(const EtcMcuPixel *from, int32_t n, void *panel)
{
    uint8_t *to = (uint8_t *)panel;
    for (; n >= 4; n -= 4, from += 4, to += 16) {
        to[0] = from[0];
        to[4] = from[1];
        to[8] = from[2];
        to[12] = from[3];
    }
    for (; n > 0; n--, from++, to += 4) {
        *to = *from;
    }
}

/* Copies n bytes.  It is not called, since a row of a window can begin anywhere in a panel. */
ETC_INLINE void etc_mcu_copy(const EtcMcuPixel *from, int32_t n, EtcMcuPixel *to)
{
    __builtin_memcpy(to, from, (size_t)n);
}

#if defined(__ARM_ARCH_PROFILE) && !defined(__ARM_FEATURE_SAT) && !defined(__OPTIMIZE_SIZE__)
/* Adds a term to the sums of four outputs.  The sums are in the registers that only ADD reaches,
 * so that there are enough others.  gcc 12 would move sums to these registers and back, and does
 * not use them if it optimizes for size. */
#define ETC_MCU_HIGH 1
#define ETC_MCU_MAC(p, i, s) \
    "ldrb %[t], [%[" #p "], #" #i "]\n\tmuls %[t], %[v], %[t]\n\tadd %[" #s "], %[t]\n\t"
#define ETC_MCU_STEP(i, a, b, c, d)                                                              \
    "ldrb %[v], [%[w], #" #i "]\n\tsxtb %[v], %[v]\n\t" ETC_MCU_MAC(x, a, s0)                   \
        ETC_MCU_MAC(x, b, s1) ETC_MCU_MAC(x, c, s2) ETC_MCU_MAC(x, d, s3)
#endif

/* Adds k terms, a multiple of 4, to the sums of four pixels.  Returns the end of the weights. */
ETC_INLINE const int8_t *etc_mcu_add(const uint8_t *x, const int8_t *w, int32_t k, int32_t s[4])
{
    const int8_t *const end = w + k;
    int32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
#if defined(ETC_MCU_HIGH)
    uint32_t t, v;
    __asm__(".syntax unified\n"
            "1: " ETC_MCU_STEP(0, 0, 1, 2, 3) ETC_MCU_STEP(1, 4, 5, 6, 7)
                ETC_MCU_STEP(2, 8, 9, 10, 11) ETC_MCU_STEP(3, 12, 13, 14, 15)
            "adds %[x], #16\n\tadds %[w], #4\n\tcmp %[w], %[end]\n\tbne 1b\n"
            : [s0] "+h"(s0), [s1] "+h"(s1), [s2] "+h"(s2), [s3] "+h"(s3), [x] "+l"(x),
              [w] "+l"(w), [t] "=&l"(t), [v] "=&l"(v)
            : [end] "l"(end)
            : "cc", "memory");
#else
#define ETC_MCU_STEP(i)                                                                          \
    {                                                                                            \
        const int32_t v = w[i];                                                                  \
        s0 += v * x[4 * (i)];                                                                    \
        s1 += v * x[(4 * (i)) + 1];                                                              \
        s2 += v * x[(4 * (i)) + 2];                                                              \
        s3 += v * x[(4 * (i)) + 3];                                                              \
    }
    do {
        ETC_MCU_STEP(0)
        ETC_MCU_STEP(1)
        ETC_MCU_STEP(2)
        ETC_MCU_STEP(3)
        w += 4;
        x += 16;
    } while (w < end);
#endif
    s[0] = s0;
    s[1] = s1;
    s[2] = s2;
    s[3] = s3;
    return w;
}

/* Computes the m channels of a panel. */
ETC_OUTLINE void etc_mcu_tiles(const void *panel, const int8_t *w, int8_t *y, int32_t plane,
                               int32_t k, int32_t m, const EtcMcu *q)
{
    const int32_t *start = q->start, *by = q->by, zero = q->zero;
    for (const int32_t *const end = by + m; by < end; by++, start++, y += plane) {
        int32_t s[4] = {*start, *start, *start, *start};
        w = etc_mcu_add((const uint8_t *)panel, w, k, s);
        y[0] = etc_mcu_put(s[0], *by, zero);
        y[1] = etc_mcu_put(s[1], *by, zero);
        y[2] = etc_mcu_put(s[2], *by, zero);
        y[3] = etc_mcu_put(s[3], *by, zero);
    }
}

/* Computes a channel with windows of three taps by three.  The taps are copied to words, which one
 * instruction loads. */
ETC_OUTLINE void etc_mcu_nine(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                              const EtcMcu *q, int32_t c, int8_t *y)
{
    const int32_t start = q->start[c], by = q->by[c], zero = q->zero, pitch = b->pitch, sw = g->sw;
    const EtcMcuPixel *picture = (const EtcMcuPixel *)b->picture;
    int32_t tap[9];
    for (int i = 0; i < 9; i++) {
        tap[i] = w[i];
    }
    for (int32_t r = b->rows; r > 0; r--, picture += g->sh * pitch) {
        const EtcMcuPixel *x = picture;
        for (int8_t *const end = y + g->ow; y < end; x += sw) {
            const EtcMcuPixel *p = x;
            int32_t sum = start + (tap[0] * p[0]);
            sum += tap[1] * p[1];
            sum += tap[2] * p[2];
            p += pitch;
            sum += tap[3] * p[0];
            sum += tap[4] * p[1];
            sum += tap[5] * p[2];
            p += pitch;
            sum += tap[6] * p[0];
            sum += tap[7] * p[1];
            sum += tap[8] * p[2];
            *y++ = etc_mcu_put(sum, by, zero);
        }
    }
}

ETC_OUTLINE void etc_mcu_any(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                             const EtcMcu *q, int32_t c, int8_t *y)
{
    const int32_t start = q->start[c], by = q->by[c], zero = q->zero, pitch = b->pitch;
    const EtcMcuPixel *picture = (const EtcMcuPixel *)b->picture;
    for (int32_t r = b->rows; r > 0; r--, picture += g->sh * pitch) {
        const EtcMcuPixel *x = picture;
        for (int8_t *const end = y + g->ow; y < end; x += g->sw) {
            const EtcMcuPixel *p = x;
            const int8_t *at = w;
            int32_t sum = start;
            for (int32_t i = 0; i < g->kh; i++, p += pitch) {
                for (int32_t t = 0; t < g->kw; t++) {
                    sum += *at++ * p[t];
                }
            }
            *y++ = etc_mcu_put(sum, by, zero);
        }
    }
}

ETC_INLINE void etc_mcu_plane(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                              const EtcMcu *q, int32_t c, int8_t *y)
{
    if ((g->kh == 3) && (g->kw == 3)) {
        etc_mcu_nine(b, w, g, q, c, y);
    } else {
        etc_mcu_any(b, w, g, q, c, y);
    }
}

ETC_INLINE void etc_mcu_larger(const int8_t *x, int32_t n, int8_t *y)
{
    for (const int8_t *const end = x + n; x < end; x++, y++) {
        *y = (*x > *y) ? *x : *y;
    }
}

/* Writes the weight v of a channel and a term to their block. */
ETC_INLINE void etc_mcu_weight(int8_t *block, int32_t channel, int32_t term, int32_t v)
{
    block[channel + (4 * term)] = (int8_t)(uint8_t)(v + 128);
}

/* Returns s plus the sum of n bytes, whose sign bits are flipped if flip is set. */
ETC_INLINE int32_t etc_mcu_total(const uint8_t *x, int32_t n, uint32_t flip, int32_t s)
{
    for (; n > 0; n--, x++) {
        s += (int8_t)(uint8_t)(*x ^ flip);
    }
    return s;
}

/* Writes n bytes of x as numbers.  Returns their sum. */
ETC_INLINE int32_t etc_mcu_line(const uint8_t *x, int32_t n, uint32_t flip, uint8_t *to)
{
    int32_t sum = 0;
    x += n;
    to += n;
    for (int32_t i = -n; i < 0; i++) { /* the end of the loop is 0, which needs no register */
        to[i] = (uint8_t)(x[i] ^ flip);
        sum += to[i];
    }
    return sum;
}

#if defined(ETC_MCU_HIGH)
#define ETC_MCU_TIMES(i, s) \
    "ldrb r2, [%[w], #" #i "]\n\tmuls r2, r3, r2\n\tadd " s ", r2\n\t"
#define ETC_MCU_TERM(i, a, b, c, d)                                                              \
    "ldrb r3, [r4, #" #i "]\n\t" ETC_MCU_TIMES(a, "r8") ETC_MCU_TIMES(b, "r9")                   \
        ETC_MCU_TIMES(c, "r10") ETC_MCU_TIMES(d, "r11")
#endif

/* Computes the m outputs of a row of n_k bytes, four at a time, whose sum is `sum`.  The weights
 * have 128 more.  A loop over eight terms is entered so late that it ends with the last term.  The
 * sums are in r8 to r11, and then on the stack, as numbers of `line` are. */
ETC_INLINE void etc_mcu_outputs(const uint8_t *x, const int8_t *w, int32_t n_k, int32_t m,
                                int32_t sum, int32_t zero, int8_t *to)
{
#if defined(ETC_MCU_HIGH)
    const int32_t skipped = -n_k & 7; /* terms, whose code has 26 bytes */
    const int32_t line[8] = {zero + 128, 26 * skipped, (int32_t)(x - skipped), (int32_t)(x + n_k),
                             128 * sum, -4 * skipped, (int32_t)(to + m), (int32_t)to};
    const int32_t *at = line;
    __asm__ volatile(
        ".syntax unified\n"
        "ldm %[to]!, {r2, r3}\n\tmov lr, r2\n\tmov r12, r3\n\tldm %[to]!, {r2, r3, r4, r5, r6}\n\t"
        "push {r2, r3, r4, r5, r6}\n\tldr %[to], [%[to]]\n"
        "1: ldr r6, [sp, #8]\n\tldm %[w]!, {r2, r3, r4, r5}\n\tsubs r2, r6\n\tsubs r3, r6\n\t"
        "subs r4, r6\n\tsubs r5, r6\n\tmov r8, r2\n\tmov r9, r3\n\tmov r10, r4\n\tmov r11, r5\n\t"
        "ldr r4, [sp]\n\tldr r5, [sp, #4]\n\tldr r6, [sp, #12]\n\tadds %[w], %[w], r6\n\t"
        "add pc, r12\n\tnop\n"
        "2: " ETC_MCU_TERM(0, 0, 1, 2, 3) ETC_MCU_TERM(1, 4, 5, 6, 7) ETC_MCU_TERM(2, 8, 9, 10, 11)
            ETC_MCU_TERM(3, 12, 13, 14, 15) ETC_MCU_TERM(4, 16, 17, 18, 19)
            ETC_MCU_TERM(5, 20, 21, 22, 23) ETC_MCU_TERM(6, 24, 25, 26, 27)
            ETC_MCU_TERM(7, 28, 29, 30, 31)
        "adds %[w], #32\n\tadds r4, #8\n\tcmp r4, r5\n\tbne 2b\n\t"
        "ldr r3, [sp, #16]\n\tadds r2, %[to], #4\n\tcmp r2, r3\n\tbls 3f\n\tmovs r2, r3\n"
        "3: mov r3, r8\n\tmov r4, r9\n\tmov r5, r10\n\tmov r6, r11\n\tmov r8, r2\n\tmov r9, sp\n\t"
        "push {r3, r4, r5, r6}\n"
        "4: pop {r2}\n\tldm %[w]!, {r3}\n\t" ETC_MCU_SCALE("r2", "r3", "r4", "r5", "r6")
        "add r2, lr\n\tcmp r2, #255\n\tbls 5f\n\tasrs r2, r2, #31\n\tmvns r2, r2\n"
        "5: subs r2, #128\n\tstrb r2, [%[to]]\n\tadds %[to], #1\n\tcmp %[to], r8\n\tbne 4b\n\t"
        "mov sp, r9\n\tldr r3, [sp, #16]\n\tcmp %[to], r3\n\tbeq 6f\n\tb 1b\n6: add sp, #20\n"
        : [w] "+l"(w), [to] "+l"(at)
        :
        : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
#else
    const uint8_t *const stop = x + n_k;
    for (int8_t *const end = to + m; to < end; w += 16) {
        const int8_t *const last = to + etc_min_i32(4, (int32_t)(end - to)), *by;
        int32_t s0 = etc_mcu_number(w) - (128 * sum), s1 = etc_mcu_number(w + 4) - (128 * sum);
        int32_t s2 = etc_mcu_number(w + 8) - (128 * sum), s3 = etc_mcu_number(w + 12) - (128 * sum);
        const uint8_t *at = x;
        for (w += 16; at < stop; at++, w += 4) {
            const int32_t v = *at;
            s0 += v * (uint8_t)w[0];
            s1 += v * (uint8_t)w[1];
            s2 += v * (uint8_t)w[2];
            s3 += v * (uint8_t)w[3];
        }
        const int32_t s[4] = {s0, s1, s2, s3}, *from = s;
        for (by = w; to < last; by += 4) {
            *to++ = etc_mcu_put(*from++, etc_mcu_number(by), zero);
        }
    }
#endif
}

/* Computes the output of one channel of a block w. */
ETC_INLINE int8_t etc_mcu_output(const uint8_t *x, const int8_t *w, int32_t n_k, int32_t channel,
                                 int32_t sum, int32_t zero)
{
    int32_t s = etc_mcu_number(w + (4 * channel)) - (128 * sum);
    const int8_t *at = w + 16 + channel;
    for (const uint8_t *const end = x + n_k; x < end; x++, at += 4) {
        s += *x * (uint8_t)*at;
    }
    return etc_mcu_put(s, etc_mcu_number(at + (3 * channel)), zero);
}

/* Computes a linear layer from x[rows][n_k] to y[rows][m].  n_k is at most 32768.  work: n_k
 * bytes. */
ETC_OUTLINE void etc_mcu_linear(const void *x, const int8_t *weights, void *y, int32_t rows,
                                int32_t m, int32_t n_k, const EtcMcu *q, void *work)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *line = (uint8_t *)work;
    int8_t *to = (int8_t *)y;
    const int32_t rest = ((m & 3) < 3) ? (m & 3) : 0; /* these are faster one by one */
    const int8_t *const last = weights + ((m >> 2) * ETC_MCU_BLOCK(n_k));
    for (int32_t r = 0; r < rows; r++) {
        const int32_t sum = etc_mcu_line(from, n_k, q->x_flip, line);
        from += n_k;
        if (m > rest) {
            etc_mcu_outputs(line, weights, n_k, m - rest, sum, q->zero, to);
            to += m - rest;
        }
        for (int32_t c = 0; c < rest; c++) {
            *to++ = etc_mcu_output(line, last, n_k, c, sum, q->zero);
        }
    }
}

/* Returns x * by, where by is positive.  Where floats are computed by functions, |x * by| must not
 * be below 1/4, and may be 512 if it is larger.  The product of the two mantissas is then made of
 * that of their upper and lower 12 bits: high * 2^24 + low. */
ETC_INLINE float etc_mcu_times(float x, float by)
{
#if defined(__ARM_ARCH_PROFILE) && !defined(__ARM_FP)
    uint32_t a, b, r;
    __builtin_memcpy(&a, &x, 4);
    __builtin_memcpy(&b, &by, 4);
    const uint32_t of_x = (a >> 23) & 255, exponent = of_x + ((b >> 23) & 255);
    if (of_x == 255) {
        return x;
    }
    if (exponent > (135 + 127)) {
        r = 136u << 23;
    } else {
        const uint32_t a1 = ((a >> 12) & 0x7ff) | 0x800, a0 = a & 0xfff;
        const uint32_t b1 = ((b >> 12) & 0x7ff) | 0x800, b0 = b & 0xfff;
        const uint32_t middle = (a1 * b0) + (a0 * b1), first = (a0 * b0) + ((middle & 0xfff) << 12);
        uint32_t high = (a1 * b1) + (middle >> 12) + (first >> 24), low = first << 8;
        r = (exponent - 127) << 23;
        if (high < 0x800000) {
            high = (high << 1) | (low >> 31);
            low <<= 1;
        } else {
            r += 1u << 23;
        }
        r += high - 0x800000; /* rounded to the nearest, halves to even */
        r += ((low > 0x80000000u) || ((low == 0x80000000u) && ((high & 1) != 0))) ? 1u : 0u;
    }
    r |= a & 0x80000000u;
    __builtin_memcpy(&x, &r, 4);
    return x;
#else
    return x * by;
#endif
}

/* Where floats are computed by functions, the upper 16 bits of the mantissas of a float and of
 * `inverse` have the product p.  In units of 2^-shift, the rounded product of the floats is between
 * p / 2 - 2^8 and p / 2 + 2^16 + 2^8.  If as many halves are below both bounds, the integer is known.
 * The loop over such numbers, and those below 1/4, ends at others. */
ETC_OUTLINE void etc_mcu_quantize(const float *x, void *y, int32_t n, float inverse,
                                  const EtcMcu *q)
{
    int8_t *to = (int8_t *)y;
    const float *const end = x + n;
#if defined(__ARM_ARCH_PROFILE) && !defined(__ARM_FP)
    uint32_t by;
    __builtin_memcpy(&by, &inverse, 4);
    const uint32_t upper = ((by >> 8) & 0x7fff) | 0x8000;
    uint32_t c[7] = {156 + 127 - 22 - ((by >> 23) & 255), (upper << 15) - 0x200, 0x10200,
                     (uint32_t)q->zero + 128, (uint32_t)end, upper, 0};
#endif
    while (x < end) {
#if defined(__ARM_ARCH_PROFILE) && !defined(__ARM_FP)
        uint32_t *at = c;
        c[6] = (uint32_t)to;
        __asm__ volatile(
            ".syntax unified\n"
            "ldm %[y]!, {r2, r3, r4, r5, r6}\n\tmov r8, r2\n\tmov r9, r3\n\tmov r10, r4\n\t"
            "mov r11, r5\n\tmov r12, r6\n\tldm %[y]!, {r6}\n\tldr %[y], [%[y]]\n"
            "1: ldm %[x]!, {r2}\n\tlsls r4, r2, #1\n\tlsrs r4, r4, #24\n\tmov r3, r8\n\t"
            "subs r3, r3, r4\n\tcmp r3, #9\n\tbhi 4f\n\tadds r3, #21\n\t" /* shift - 1 */
            "lsls r4, r2, #9\n\tlsrs r4, r4, #17\n\tmuls r4, r6, r4\n\tadd r4, r9\n\t"
            "lsrs r4, r4, #1\n\tmovs r5, r4\n\tadd r5, r10\n\tlsrs r4, r4, r3\n\t"
            "lsrs r5, r5, r3\n\tcmp r4, r5\n\tbne 5f\n\tadds r4, #1\n\tlsrs r4, r4, #1\n\t"
            "asrs r2, r2, #31\n\teors r4, r2\n\tsubs r4, r4, r2\n2: add r4, r11\n\t"
            "cmp r4, #255\n\tbls 3f\n\tasrs r4, r4, #31\n\tmvns r4, r4\n"
            "3: subs r4, #128\n\tstrb r4, [%[y]]\n\tadds %[y], #1\n\tcmp %[x], r12\n\tbne 1b\n\t"
            "b 6f\n4: ble 5f\n\tmovs r4, #0\n\tb 2b\n5: subs %[x], #4\n6:\n"
            : [x] "+l"(x), [y] "+l"(at)
            :
            : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
        to = (int8_t *)at;
        if (x == end) {
            break;
        }
#endif
        *to++ = etc_mcu_clamp(etc_mcu_nearest(etc_mcu_times(*x++, inverse)) + q->zero);
    }
}

/* Computes y = (x - zero) * scale.  The scale is positive, and not close to the ends of what floats
 * represent.  Where floats are computed by functions, it is the product of |x - zero| and the 24
 * bits of the scale, shifted until its first bit is bit 31.  The upper 24 bits are kept; the carry
 * is the one behind them, or, if no other is set, the last that is kept. */
ETC_OUTLINE void etc_mcu_dequantize(const void *x, float *y, int32_t n, int32_t is_signed,
                                    int32_t zero, float scale)
{
    const uint8_t *from = (const uint8_t *)x, *const end = from + n;
    const int32_t turn = (is_signed != 0) ? 128 : 0, least = turn + zero;
#if defined(__ARM_ARCH_PROFILE) && !defined(__ARM_FP)
    uint32_t by;
    __builtin_memcpy(&by, &scale, 4);
    const uint32_t c[6] = {(uint32_t)turn, (uint32_t)-least, (by >> 23) + 7, (uint32_t)end,
                           (by & 0x7fffff) | 0x800000, (uint32_t)y}, *to = c;
    if (n <= 0) {
        return;
    }
    __asm__ volatile(
        ".syntax unified\n"
        "ldm %[y]!, {r2, r3, r4, r5, r6}\n\tmov r8, r2\n\tmov r9, r3\n\tmov r10, r4\n\t"
        "mov r11, r5\n\tldr %[y], [%[y]]\n"
        "1: ldrb r2, [%[x]]\n\tadds %[x], #1\n\tmov r4, r8\n\teors r2, r4\n\tadd r2, r9\n\t"
        "asrs r3, r2, #31\n\teors r2, r3\n\tsubs r2, r2, r3\n\tmov r4, r10\n\t"
        "muls r2, r6, r2\n\tbeq 6f\n\tbmi 3f\n"
        "2: subs r4, #1\n\tlsls r2, r2, #1\n\tbpl 2b\n"
        "3: lsls r4, r4, #23\n\tlsls r5, r2, #25\n\tbeq 7f\n"
        "4: lsrs r2, r2, #8\n5: adcs r2, r4\n\tlsls r3, r3, #31\n\torrs r2, r3\n"
        "6: stm %[y]!, {r2}\n\tcmp %[x], r11\n\tbne 1b\n\tb 8f\n"
        "7: lsls r5, r2, #24\n\tbpl 4b\n\tlsrs r2, r2, #8\n\tlsrs r5, r2, #1\n\tb 5b\n8:\n"
        : [x] "+l"(from), [y] "+l"(to)
        :
        : "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "cc", "memory");
#else
    for (; from < end; from++, y++) {
        *y = (float)((*from ^ turn) - least) * scale;
    }
#endif
}

#endif
