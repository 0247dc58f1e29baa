/* mcu_mve.h -- Cortex-M55, which has instructions that add sixteen products of bytes.
 *
 * Weights of a convolution are stored as [channels / 2][k / 16][2][16], and those in a block of a
 * linear layer as [k / 16][4][16].  A panel is [k / 16][4 pixels][16].  Loops over terms
 * are assembly, because gcc 12 spills their sums.  The terms of a convolution are in the order
 * of an image whose pixels hold all channels.  Each row of x is converted once to a row of such
 * an image; then a row of a window is a run of bytes.  A depthwise convolution converts four
 * rows to a strip, in which column follows column. */
#ifndef ETC_MCU_MVE_H
#define ETC_MCU_MVE_H

#include "runtime-lite/kernels/fixed.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

#define ETC_MCU_PANEL(k) ((k) * 4)
#define ETC_MCU_FROM_0 0
#define ETC_MCU_SINGLE 1
#define ETC_MCU_BY_4 1
#define ETC_MCU_PICKS(run, step) ((((run) % 16) != 0) && ((((run) | (step)) % 2) == 0))
#define ETC_MCU_SLOT 16
#define ETC_MCU_RUN 16
#define ETC_MCU_TERMS 16
#define ETC_MCU_TAPS(g) (((g)->wide > 0) ? ((((g)->wide * etc_mcu_pitch(g)) + 32) * 4) : 0)

typedef int8_t EtcMcuPixel;

ETC_INLINE EtcMcuPixel etc_mcu_byte(uint32_t v)
{
    return (int8_t)(uint8_t)v;
}

/* Returns the byte that a sum becomes.  `by` is the factor times 2^31. */
ETC_INLINE int8_t etc_mcu_put(int32_t sum, int32_t by, int32_t zero)
{
    const int32_t v = (int32_t)((((int64_t)sum * by) + 0x40000000) >> 31) + zero;
    return (int8_t)etc_min_i32(etc_max_i32(v, -128), 127);
}

ETC_INLINE void etc_mcu_run(const uint8_t *x, int32_t n, uint32_t flip, int8_t *to)
{
#if defined(__ARM_FEATURE_MVE)
    const uint8x16_t turn = vdupq_n_u8((uint8_t)flip);
    __asm__ volatile("  wlstp.8 lr, %[n], 1f\n2: vldrb.8 q0, [%[x]], #16\n\t"
                     "veor q0, q0, %q[turn]\n\tvstrb.8 q0, [%[to]], #16\n\tletp lr, 2b\n1:\n"
                     : [x] "+l"(x), [to] "+l"(to)
                     : [n] "r"(n), [turn] "t"(turn)
                     : "q0", "lr", "memory");
#else
    for (int32_t i = 0; i < n; i++) {
        to[i] = (int8_t)(uint8_t)(x[i] ^ flip);
    }
#endif
}

/* Converts `rows` runs of n bytes, which are `next` apart in x, and `pitch` in `to`. */
ETC_INLINE void etc_mcu_runs(const uint8_t *x, int32_t n, int32_t next, int32_t rows,
                             uint32_t flip, int8_t *to, int32_t pitch)
{
#if defined(__ARM_FEATURE_MVE)
    if (n <= 16) {
        const uint8x16_t turn = vdupq_n_u8((uint8_t)flip);
        __asm__ volatile("  vctp.8 %[n]\n\tdls lr, %[rows]\n1: vpsttt\n\tvldrbt.8 q0, [%[x]]\n\t"
                         "veort q0, q0, %q[turn]\n\tvstrbt.8 q0, [%[to]]\n\tadd %[x], %[next]\n\t"
                         "add %[to], %[pitch]\n\tle lr, 1b\n"
                         : [x] "+r"(x), [to] "+r"(to)
                         : [n] "r"(n), [rows] "r"(rows), [turn] "t"(turn), [next] "r"(next),
                           [pitch] "r"(pitch)
                         : "q0", "lr", "memory");
        return;
    }
#endif
    for (; rows > 0; rows--, x += next, to += pitch) {
        etc_mcu_run(x, n, flip, to);
    }
}

#if defined(__ARM_FEATURE_MVE)
/* Packs eight channels of four pixels. */
#define ETC_MCU_COLUMNS(a, b, c, d)                                                              \
    "vctp.16 %[n]\n\tvpstttt\n\tvldrbt.u16 q0, [%[x], %q[by]]\n\t"                              \
    "vldrbt.u16 q1, [%[x], %q[next]]\n\tvldrbt.u16 q2, [%[x2], %q[by]]\n\t"                     \
    "vldrbt.u16 q3, [%[x2], %q[next]]\n\tveor q0, q0, %q[turn]\n\tveor q1, q1, %q[turn]\n\t"    \
    "veor q2, q2, %q[turn]\n\tveor q3, q3, %q[turn]\n\tvstrb.16 q0, [%[to], #" #a "]\n\t"       \
    "vstrb.16 q1, [%[to], #" #b "]\n\tvstrb.16 q2, [%[to], #" #c "]\n\t"                        \
    "vstrb.16 q3, [%[to], #" #d "]\n\tadd %[x], %[step]\n\tadd %[x2], %[step]\n\tsubs %[n], #8\n\t"
#endif

ETC_OUTLINE void etc_mcu_planes(const uint8_t *x, int32_t plane, int32_t n_k, int32_t k,
                                uint32_t flip, void *panel)
{
    int8_t *to = (int8_t *)panel;
    (void)k;
#if defined(__ARM_FEATURE_MVE)
    if (plane < 8192) { /* An offset of seven planes and a pixel fits into 16 bits. */
        const uint16x8_t by = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)plane);
        const uint16x8_t next = vaddq_n_u16(by, 1), turn = vdupq_n_u16((uint16_t)(flip & 0xff));
        const uint8_t *x2 = x + 2;
        __asm__ volatile("1: " ETC_MCU_COLUMNS(0, 16, 32, 48) "ble 2f\n\t"
                         ETC_MCU_COLUMNS(8, 24, 40, 56) "add %[to], #64\n\tbgt 1b\n2:\n"
                         : [x] "+r"(x), [x2] "+r"(x2), [to] "+l"(to), [n] "+&r"(n_k)
                         : [step] "r"(8 * plane), [by] "t"(by), [next] "t"(next), [turn] "t"(turn)
                         : "q0", "q1", "q2", "q3", "cc", "memory");
        return;
    }
#endif
    for (int32_t i = 0; i < n_k; i++, x += plane) {
        for (int p = 0; p < 4; p++) {
            to[((i / 16) * 64) + (i % 16) + (16 * p)] = (int8_t)(uint8_t)(x[p] ^ flip);
        }
    }
}

#if defined(__ARM_FEATURE_MVE)
/* Adds the zero point to scaled sums, and saturates each to a byte in the low bits of its lane. */
ETC_INLINE int32x4_t etc_mcu_within(int32x4_t v, int32_t zero)
{
    const int16x8_t half = vqmovnbq_s32(vuninitializedq_s16(), vaddq_n_s32(v, zero));
    return vreinterpretq_s32_s8(vqmovnbq_s16(vuninitializedq_s8(), half));
}
#endif

/* -- channels of a panel ----------------------------------------------------------------------- */

#if defined(__ARM_FEATURE_MVE) && defined(__OPTIMIZE__) /* else gcc keeps a register for frames */
#define ETC_MCU_WIDE_STEP 1
/* Adds up sixteen terms of two channels by four pixels. */
#define ETC_MCU_STEP(mac)                                                                        \
    "vldrb.8 q0, [%[w]], #32\n\tvldrb.8 q1, [%[w], #-16]\n\tvldrb.8 q2, [%[x]], #64\n\t"          \
    mac " r0, q0, q2\n\t" mac " r2, q1, q2\n\tvldrb.8 q3, [%[x], #-48]\n\t"                      \
    mac " r4, q0, q3\n\t" mac " r6, q1, q3\n\tvldrb.8 q2, [%[x], #-32]\n\t"                      \
    mac " r8, q0, q2\n\t" mac " r10, q1, q2\n\tvldrb.8 q3, [%[x], #-16]\n\t"                     \
    mac " r12, q0, q3\n\t" mac " lr, q1, q3\n\t"

/* Adds up n blocks of terms for four pixels and two channels, and returns their bytes: those of the
 * first channel in the low bits of the lanes, those of the second one 16 bits higher.  Moves w,
 * start and by on.  The sums take all registers that such a sum may be in, so the code names
 * them. */
ETC_INLINE int8x16_t etc_mcu_eight(const int8_t *x, const int8_t **w, int32_t n,
                                   const int32_t **start, const int32_t **by, int16x8_t zero)
{
    int8x16_t a, b;
    const int8_t *to_w = *w;
    const int32_t *to_start = *start, *to_by = *by;
    __asm__(ETC_MCU_STEP("vmladav.s8") "subs %[n], #1\n\tbeq 2f\n"
            "1: " ETC_MCU_STEP("vmladava.s8") "subs %[n], #1\n\tbne 1b\n"
            "2: vmov %q[a][2], %q[a][0], r0, r8\n\tvmov %q[a][3], %q[a][1], r4, r12\n\t"
            "vmov %q[b][2], %q[b][0], r2, r10\n\tvmov %q[b][3], %q[b][1], r6, lr\n\t"
            "ldrd r0, r2, [%[start]], #8\n\tldrd r4, r6, [%[by]], #8\n\t"
            "vadd.i32 %q[a], %q[a], r0\n\tvadd.i32 %q[b], %q[b], r2\n\t"
            "vqrdmulh.s32 %q[a], %q[a], r4\n\tvqrdmulh.s32 %q[b], %q[b], r6\n\t"
            "vqmovnb.s32 %q[a], %q[a]\n\tvqmovnt.s32 %q[a], %q[b]\n\t"
            "vqadd.s16 %q[a], %q[a], %q[zero]\n\tvqmovnb.s16 %q[a], %q[a]\n"
            : [a] "=&t"(a), [b] "=&t"(b), [x] "+r"(x), [w] "+r"(to_w), [n] "+r"(n),
              [start] "+r"(to_start), [by] "+r"(to_by)
            : [zero] "t"(zero)
            : "r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr", "q0", "q1", "q2", "q3", "cc",
              "memory");
    *w = to_w;
    *start = to_start;
    *by = to_by;
    return a;
}
#endif

ETC_OUTLINE void etc_mcu_tiles(const void *panel, const int8_t *w, int8_t *y, int32_t plane,
                               int32_t k, int32_t m, const EtcMcu *q)
{
    const int32_t *start = q->start, *by = q->by;
#if defined(ETC_MCU_WIDE_STEP)
    const int16x8_t zero = vdupq_n_s16((int16_t)q->zero);
    const int32_t *const end = by + m;
    do {
        const int8x16_t v = etc_mcu_eight((const int8_t *)panel, &w, k / 16, &start, &by, zero);
        vstrbq_s32(y, vreinterpretq_s32_s8(v));
        y += plane;
        if (by > end) { /* The number of channels is odd. */
            break;
        }
        vstrbq_u32((uint8_t *)y, vshrq_n_u32(vreinterpretq_u32_s8(v), 16));
        y += plane;
    } while (by < end);
#else
    for (int32_t c = 0; c < m; c++, y += plane) {
        const int8_t *row = w + ((c / 2) * 2 * k) + ((c % 2) * 16);
        for (int32_t i = 0; i < 4; i++) {
            const int8_t *x = (const int8_t *)panel + (i * 16);
            int32_t sum = start[c];
            for (int32_t t = 0; t < k; t++) {
                sum += x[((t / 16) * 64) + (t % 16)] * row[((t / 16) * 32) + (t % 16)];
            }
            y[i] = etc_mcu_put(sum, by[c], q->zero);
        }
    }
#endif
}

/* Computes the m channels of the last pixel of a panel. */
ETC_OUTLINE void etc_mcu_single(const void *panel, const int8_t *w, int8_t *y, int32_t plane,
                                int32_t k, int32_t m, const EtcMcu *q)
{
    const int32_t *start = q->start, *by = q->by, *const end = by + m;
    for (; by < end; by += 2, start += 2) {
        int32_t s0 = start[0], s1 = start[1];
        const int8_t *x = (const int8_t *)panel + 48;
#if defined(__ARM_FEATURE_MVE)
        __asm__("  dls lr, %[n]\n2: vldrb.8 q0, [%[x]], #64\n\t"
                "vldrb.8 q1, [%[w]], #16\n\tvmladava.s8 %[s0], q0, q1\n\t"
                "vldrb.8 q2, [%[w]], #16\n\tvmladava.s8 %[s1], q0, q2\n\tle lr, 2b\n"
                : [w] "+l"(w), [x] "+l"(x), [s0] "+Te"(s0), [s1] "+Te"(s1)
                : [n] "r"(k / 16)
                : "q0", "q1", "q2", "lr", "memory");
#else
        for (int32_t i = 0; i < k; i++) {
            const int32_t v = x[((i / 16) * 64) + (i % 16)];
            s0 += v * w[((i / 16) * 32) + (i % 16)];
            s1 += v * w[((i / 16) * 32) + 16 + (i % 16)];
        }
        w += 2 * k;
#endif
        *y = etc_mcu_put(s0, by[0], q->zero);
        y += plane;
        if ((by + 1) < end) {
            *y = etc_mcu_put(s1, by[1], q->zero);
            y += plane;
        }
    }
}

/* -- sums ------------------------------------------------------------------------------------- */

/* Computes y = (a * by[0] + b * by[1] + by[2]) >> fraction, clamped to y's range.  a, b and
 * y have n bytes. */
ETC_OUTLINE void etc_mcu_sum_4(const void *a, const void *b, void *y, int32_t n, const int32_t *by,
                               int32_t fraction, const EtcMcu *q)
{
    const int8_t *x0 = (const int8_t *)a, *x1 = (const int8_t *)b;
    int8_t *to = (int8_t *)y;
#if defined(__ARM_FEATURE_MVE)
    const int32x4_t lo = vdupq_n_s32(q->lo), hi = vdupq_n_s32(q->hi);
    __asm__ volatile("  wlstp.32 lr, %[n], 1f\n2: vldrb.s32 q0, [%[x0]], #4\n\t"
                     "vldrb.s32 q1, [%[x1]], #4\n\tvmul.i32 q0, q0, %[by0]\n\t"
                     "vmla.s32 q0, q1, %[by1]\n\tvadd.i32 q0, q0, %[from]\n\t"
                     "vshl.s32 q0, %[shift]\n\tvmin.s32 q0, q0, %q[hi]\n\t"
                     "vmax.s32 q0, q0, %q[lo]\n\tvstrb.32 q0, [%[to]], #4\n\tletp lr, 2b\n1:\n"
                     : [x0] "+l"(x0), [x1] "+l"(x1), [to] "+l"(to)
                     : [n] "r"(n), [by0] "r"(by[0]), [by1] "r"(by[1]), [from] "r"(by[2]),
                       [shift] "r"(-fraction), [lo] "t"(lo), [hi] "t"(hi)
                     : "q0", "q1", "lr", "memory");
#else
    for (int32_t i = 0; i < n; i++) {
        const int32_t v = ((x0[i] * by[0]) + (x1[i] * by[1]) + by[2]) >> fraction;
        to[i] = (int8_t)etc_min_i32(etc_max_i32(v, q->lo), q->hi);
    }
#endif
}

/* -- windows ----------------------------------------------------------------------------------- */

/* Writes n columns of a row of x as pixels that hold all channels, to[n][g->wide].  x points to the
 * first column in the plane of channel 0. */
ETC_INLINE void etc_mcu_pixels(const uint8_t *x, const EtcMcuConv *g, int32_t n, uint32_t flip,
                               int8_t *to)
{
    const int32_t wide = g->wide;
#if defined(__ARM_FEATURE_MVE)
    const uint16x8_t by = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)wide);
    const uint16x8_t turn = vdupq_n_u16((uint16_t)(flip & 0xff));
#endif
    for (int32_t c = 0; c < g->ic; c++, x += g->ih * g->iw) {
#if defined(__ARM_FEATURE_MVE)
        const uint8_t *from = x;
        int8_t *at = to + c;
        __asm__ volatile("  wlstp.16 lr, %[n], 1f\n2: vldrb.u16 q0, [%[from]], #8\n\t"
                         "veor q0, q0, %q[turn]\n\tvstrb.16 q0, [%[at], %q[by]]\n\t"
                         "add %[at], %[step]\n\tletp lr, 2b\n1:\n"
                         : [from] "+l"(from), [at] "+r"(at)
                         : [n] "r"(n), [turn] "t"(turn), [by] "t"(by), [step] "r"(8 * wide)
                         : "q0", "lr", "memory");
#else
        for (int32_t i = 0; i < n; i++) {
            to[(i * wide) + c] = (int8_t)(uint8_t)(x[i] ^ flip);
        }
#endif
    }
}

#if defined(__ARM_FEATURE_MVE)
/* Copies n bytes.  Each block of sixteen is written `step` bytes behind the one before. */
#define ETC_MCU_COPY(step)                                                                       \
    __asm__ volatile("  wlstp.8 lr, %[n], 1f\n2: vldrb.8 q0, [%[from]], #16\n\t"                  \
                     "vstrb.8 q0, [%[to]], #" #step "\n\tletp lr, 2b\n1:\n"                      \
                     : [from] "+r"(from), [to] "+r"(to)                                          \
                     : [n] "r"(n)                                                                \
                     : "q0", "lr", "memory")
#endif

ETC_INLINE void etc_mcu_copy(const int8_t *from, int32_t n, int8_t *to)
{
#if defined(__ARM_FEATURE_MVE)
    ETC_MCU_COPY(16);
#else
    __builtin_memcpy(to, from, (size_t)n);
#endif
}

/* Copies n bytes, a multiple of 16, to one pixel of a panel. */
ETC_INLINE void etc_mcu_spread(const int8_t *from, int32_t n, void *panel)
{
    int8_t *to = (int8_t *)panel;
#if defined(__ARM_FEATURE_MVE)
    ETC_MCU_COPY(64);
#else
    for (int32_t i = 0; i < n; i++) {
        to[((i / 16) * 64) + (i % 16)] = from[i];
    }
#endif
}

/* Copies n bytes, a multiple of 16, to each pixel of a panel.  The pixels' bytes are `step`
 * apart. */
ETC_INLINE void etc_mcu_spread_4(const int8_t *from, int32_t step, int32_t n, void *panel)
{
    const int8_t *from1 = from + step, *from2 = from1 + step, *from3 = from2 + step;
    int8_t *to = (int8_t *)panel;
#if defined(__ARM_FEATURE_MVE)
    __asm__ volatile("1: vldrb.8 q0, [%[p0]], #16\n\tvldrb.8 q1, [%[p1]], #16\n\t"
                     "vldrb.8 q2, [%[p2]], #16\n\tvldrb.8 q3, [%[p3]], #16\n\t"
                     "vstrb.8 q0, [%[to]], #64\n\tvstrb.8 q1, [%[to], #-48]\n\t"
                     "vstrb.8 q2, [%[to], #-32]\n\tvstrb.8 q3, [%[to], #-16]\n\t"
                     "subs %[n], #16\n\tbgt 1b"
                     : [p0] "+r"(from), [p1] "+r"(from1), [p2] "+r"(from2), [p3] "+r"(from3),
                       [to] "+r"(to), [n] "+r"(n)
                     :
                     : "q0", "q1", "q2", "q3", "cc", "memory");
#else
    for (int32_t i = 0; i < n; i += 16, to += 64) {
        __builtin_memcpy(to, from + i, 16);
        __builtin_memcpy(to + 16, from1 + i, 16);
        __builtin_memcpy(to + 32, from2 + i, 16);
        __builtin_memcpy(to + 48, from3 + i, 16);
    }
#endif
}

/* Moves the places of k terms on by `by` bytes in a ring of `all` bytes, which are at most
 * 32768. */
ETC_INLINE void etc_mcu_move(uint16_t *places, int32_t k, int32_t by, int32_t all)
{
#if defined(__ARM_FEATURE_MVE)
    for (const uint16_t *const end = places + (k / 2); places < end; places += 8) {
        const uint16x8_t at = vaddq_n_u16(vldrhq_u16(places), (uint16_t)by);
        const mve_pred16_t is_past = vcmpcsq_n_u16(at, (uint16_t)all);
        vstrhq_u16(places, vsubq_m_n_u16(at, at, (uint16_t)all, is_past));
    }
#else
    for (int32_t i = 0; i < (k / 2); i++) {
        const int32_t at = places[i] + by;
        places[i] = (uint16_t)((at < all) ? at : (at - all));
    }
#endif
}

/* Copies the k terms of n windows that are at `places` behind `from` to as many pixels of a panel.
 * The windows are `step` bytes apart. */
ETC_INLINE void etc_mcu_pick(const uint16_t *places, const int8_t *from, int32_t step, int32_t n,
                             int32_t k, void *panel)
{
    int8_t *to = (int8_t *)panel;
#if defined(__ARM_FEATURE_MVE)
    if (n == 4) {
        __asm__ volatile("  dls lr, %[n]\n1: vldrh.u16 q0, [%[at]], #16\n\t"
                         "vldrh.u16 q1, [%[p0], q0]\n\tvldrh.u16 q2, [%[p1], q0]\n\t"
                         "vldrh.u16 q3, [%[p2], q0]\n\tvstrb.8 q1, [%[to]], #64\n\t"
                         "vldrh.u16 q1, [%[p3], q0]\n\tvstrb.8 q2, [%[to], #-48]\n\t"
                         "vstrb.8 q3, [%[to], #-32]\n\tvstrb.8 q1, [%[to], #-16]\n\tle lr, 1b\n"
                         : [at] "+r"(places), [to] "+r"(to)
                         : [n] "r"(k / 16), [p0] "r"(from), [p1] "r"(from + step),
                           [p2] "r"(from + (2 * step)), [p3] "r"(from + (3 * step))
                         : "q0", "q1", "q2", "q3", "lr", "memory");
        return;
    }
    for (int8_t *const end = to + (16 * n); to < end; to += 16, from += step) {
        const uint16_t *at = places;
        int8_t *out = to;
        __asm__ volatile("  dls lr, %[n]\n1: vldrh.u16 q0, [%[at]], #16\n\t"
                         "vldrh.u16 q1, [%[from], q0]\n\tvstrb.8 q1, [%[to]], #64\n\tle lr, 1b\n"
                         : [at] "+r"(at), [to] "+r"(out)
                         : [n] "r"(k / 16), [from] "r"(from)
                         : "q0", "q1", "lr", "memory");
    }
#else
    for (int32_t i = 0; i < (n * k); i++) {
        const int32_t pixel = i / k, t = i % k;
        to[(16 * pixel) + (t / 16 * 64) + (t % 16)] = from[(pixel * step) + places[t / 2] + (t % 2)];
    }
#endif
}

/* -- depthwise --------------------------------------------------------------------------------- */

#if defined(__ARM_FEATURE_MVE)
/* Computes four outputs from their windows of sixteen bytes. */
#define ETC_MCU_WINDOW(q, load, r) load "\n\tvmladav.s8 " r ", " q ", %q[w]\n\t"
#define ETC_MCU_FOUR(a, b, c, d)                                                                 \
    ETC_MCU_WINDOW("q0", a, "r2") ETC_MCU_WINDOW("q1", b, "r8") ETC_MCU_WINDOW("q2", c, "r10")   \
    ETC_MCU_WINDOW("q3", d, "r12") "vmov q0[2], q0[0], r2, r10\n\tvmov q0[3], q0[1], r8, r12\n\t" \
    "vadd.i32 q0, q0, %q[start]\n\tvqrdmlash.s32 q0, %q[by], %[zero]\n\t"                       \
    "vqmovnb.s32 q0, q0\n\tvqmovnb.s16 q0, q0\n\t"
/* The windows are `step` bytes apart. */
#define ETC_MCU_NEXT_FOUR(step)                                                                  \
    ETC_MCU_FOUR("vldrb.8 q0, [%[p]], #(" #step "*4)", "vldrb.8 q1, [%[p], #(-" #step "*3)]",    \
                 "vldrb.8 q2, [%[p], #(-" #step "*2)]", "vldrb.8 q3, [%[p], #(-" #step ")]")
#define ETC_MCU_LOWER "add %[p], %[next]\n\tvldrb.8 "
#define ETC_MCU_USES                                                                             \
    [zero] "r"(zero), [w] "t"(taps), [start] "t"(starts), [by] "t"(factors)                      \
        : "r2", "r8", "r10", "r12", "lr", "q0", "q1", "q2", "q3", "cc", "memory"

/* Computes rows of ow outputs. */
#define ETC_MCU_ROWS(step)                                                                       \
    __asm__ volatile("1: mov %[n], %[ow]\n2: " ETC_MCU_NEXT_FOUR(step)                           \
                     "vctp.32 %[n]\n\tvpst\n\tvstrbt.32 q0, [%[y]], #4\n\tsubs %[n], #4\n\t"    \
                     "bgt 2b\n\tadd %[y], %[n]\n\tadd %[p], %[next]\n\tsubs %[rows], #1\n\t"     \
                     "bgt 1b\n"                                                                  \
                     : [p] "+r"(p), [y] "+l"(y), [n] "=&r"(n), [rows] "+&r"(rows)                \
                     : [ow] "r"(ow), [next] "r"(next), ETC_MCU_USES)

/* Computes n times four outputs of each row, and skips `skip` behind them. */
#define ETC_MCU_FOURS(step)                                                                      \
    __asm__ volatile("1: dls lr, %[n]\n2: " ETC_MCU_NEXT_FOUR(step)                              \
                     "vstrb.32 q0, [%[y]], #4\n\tle lr, 2b\n\tadd %[y], %[skip]\n\t"            \
                     "add %[p], %[next]\n\tsubs %[rows], #1\n\tbgt 1b\n"                        \
                     : [p] "+r"(p), [y] "+l"(y), [rows] "+&r"(rows)                              \
                     : [n] "r"(n), [next] "r"(next), [skip] "r"(skip), ETC_MCU_USES)

/* Computes the last output of each row, four rows at a time.  It reads up to three rows too many. */
#define ETC_MCU_COLUMN                                                                           \
    __asm__ volatile("1: " ETC_MCU_FOUR("vldrb.8 q0, [%[p]]", ETC_MCU_LOWER "q1, [%[p]]",         \
                                        ETC_MCU_LOWER "q2, [%[p]]", ETC_MCU_LOWER "q3, [%[p]]")  \
                     "vctp.32 %[rows]\n\tvpst\n\tvstrbt.32 q0, [%[y], %q[below]]\n\t"            \
                     "add %[y], %[y], %[ow], lsl #2\n\tadd %[p], %[next]\n\tsubs %[rows], #4\n\t"  \
                     "bgt 1b\n"                                                                  \
                     : [p] "+r"(p), [y] "+l"(last), [rows] "+&r"(rows)                           \
                     : [ow] "r"(ow), [next] "r"(4 * pitch), [below] "t"(below), ETC_MCU_USES)
#endif

/* Writes n pixels of four rows, column by column, to[column][4], and up to fifteen more. */
ETC_INLINE void etc_mcu_strip(const int8_t *row, int32_t pitch, int32_t n, int8_t *to)
{
#if defined(__ARM_FEATURE_MVE)
    const int8_t *r1 = row + pitch, *r2 = r1 + pitch, *r3 = r2 + pitch;
    __asm__ volatile("1: vldrb.8 q0, [%[r0]], #16\n\tvldrb.8 q1, [%[r1]], #16\n\t"
                     "vldrb.8 q2, [%[r2]], #16\n\tvldrb.8 q3, [%[r3]], #16\n\t"
                     "vst40.8 {q0, q1, q2, q3}, [%[to]]\n\tvst41.8 {q0, q1, q2, q3}, [%[to]]\n\t"
                     "vst42.8 {q0, q1, q2, q3}, [%[to]]\n\tvst43.8 {q0, q1, q2, q3}, [%[to]]!\n\t"
                     "subs %[n], #16\n\tbgt 1b\n"
                     : [r0] "+l"(row), [r1] "+l"(r1), [r2] "+l"(r2), [r3] "+l"(r3), [to] "+r"(to),
                       [n] "+r"(n)
                     :
                     : "q0", "q1", "q2", "q3", "cc", "memory");
#else
    for (int32_t i = 0; i < (4 * n); i++) {
        to[i] = row[((i % 4) * pitch) + (i / 4)];
    }
#endif
}

/* Computes a channel with at most four taps by four and a stride of 1 or 2 from column to column.
 * w is [4 columns][4 rows], with zeros behind kh and kw.  A strip holds the columns of g->wide rows
 * of y and 32 more. */
ETC_OUTLINE void etc_mcu_short(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                               const EtcMcu *q, int32_t c, int8_t *y)
{
    const int32_t start = q->start[c], by = q->by[c], zero = q->zero, pitch = b->pitch;
    const int32_t most = g->wide, sw = g->sw, ow = g->ow;
    const int8_t *from = (const int8_t *)b->picture;
    int8_t *const strip = (int8_t *)b->taps;
#if defined(__ARM_FEATURE_MVE)
    const int8x16_t taps = vldrbq_s8(w);
    const int32x4_t starts = vdupq_n_s32(start), factors = vdupq_n_s32(by);
    const int32_t next = 4 * (pitch - ((ow + 3) / 4 * 4 * sw)); /* from row to row */
#endif
    for (int32_t left = b->rows; left > 0; left -= most) {
        const int8_t *p = strip;
        int32_t rows = etc_min_i32(left, most);
        etc_mcu_strip(from, pitch, rows * pitch, strip);
        from += rows * g->sh * pitch;
#if defined(__ARM_FEATURE_MVE)
        int32_t n;
        if (sw == 2) {
            ETC_MCU_ROWS(8);
        } else {
            ETC_MCU_ROWS(4);
        }
#else
        for (; rows > 0; rows--, p += 4 * (pitch - (ow * sw))) {
            for (int32_t j = 0; j < ow; j++, p += 4 * sw) {
                int32_t sum = start;
                for (int32_t t = 0; t < (4 * g->kw); t++) {
                    sum += ((t % 4) < g->kh) ? (p[t] * w[t]) : 0;
                }
                *y++ = etc_mcu_put(sum, by, zero);
            }
        }
#endif
    }
}

/* Does the same for rows of four outputs at a time, and possibly one more.  Outputs that are the
 * last of their rows are computed four rows at a time. */
ETC_OUTLINE void etc_mcu_fours(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                               const EtcMcu *q, int32_t c, int8_t *y)
{
#if defined(__ARM_FEATURE_MVE)
    const int8x16_t taps = vldrbq_s8(w);
    const int32x4_t starts = vdupq_n_s32(q->start[c]), factors = vdupq_n_s32(q->by[c]);
    const int32_t zero = q->zero, pitch = b->pitch, most = g->wide, sw = g->sw, ow = g->ow;
    const int32_t n = ow >> 2, skip = ow & 3, wide = 16 * n * sw, next = (4 * pitch) - wide;
    const int8_t *from = (const int8_t *)b->picture;
    int8_t *const strip = (int8_t *)b->taps;
    for (int32_t left = b->rows; left > 0; left -= most) {
        const int8_t *p = strip;
        int8_t *last = y + ow - 1;
        int32_t rows = etc_min_i32(left, most);
        etc_mcu_strip(from, pitch, rows * pitch, strip);
        from += rows * g->sh * pitch;
        if (sw == 2) {
            ETC_MCU_FOURS(8);
        } else {
            ETC_MCU_FOURS(4);
        }
        if (skip != 0) {
            const uint32x4_t below = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)ow);
            p = strip + wide;
            rows = etc_min_i32(left, most);
            ETC_MCU_COLUMN;
        }
    }
#else
    etc_mcu_short(b, w, g, q, c, y);
#endif
}

/* Computes a channel with any windows, four outputs of a row at a time. */
ETC_OUTLINE void etc_mcu_any(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                             const EtcMcu *q, int32_t c, int8_t *y)
{
    const EtcMcuPixel *picture = (const EtcMcuPixel *)b->picture;
    const int32_t pitch = b->pitch, start = q->start[c], by = q->by[c], zero = q->zero;
#if defined(__ARM_FEATURE_MVE)
    const uint32x4_t column = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)g->sw);
#endif
    for (int32_t r = b->rows; r > 0; r--, picture += g->sh * pitch, y += g->ow) {
#if defined(__ARM_FEATURE_MVE)
        for (int32_t i = 0; i < g->ow; i += 4) {
            const int8_t *at = picture + (i * g->sw), *by_tap = w;
            int32x4_t s = vdupq_n_s32(start);
            for (int32_t n = g->kh; n > 0; n--, at += pitch) {
                for (const int8_t *p = at, *const end = at + g->kw; p < end; p++) {
                    s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p, column), *by_tap++);
                }
            }
            s = etc_mcu_within(vqrdmulhq_n_s32(s, by), zero);
            vstrbq_p_s32(y + i, s, vctp32q((uint32_t)(g->ow - i)));
        }
#else
        for (int32_t i = 0; i < g->ow; i++) {
            int32_t sum = start;
            for (int32_t t = 0; t < (g->kh * g->kw); t++) {
                sum += w[t] * picture[((t / g->kw) * pitch) + (i * g->sw) + (t % g->kw)];
            }
            y[i] = etc_mcu_put(sum, by, zero);
        }
#endif
    }
}

ETC_INLINE void etc_mcu_plane(const EtcMcuBand *b, const int8_t *w, const EtcMcuConv *g,
                              const EtcMcu *q, int32_t c, int8_t *y)
{
    if ((g->kh <= 4) && (g->kw <= 4) && (g->sw <= 2)) {
        if ((g->ow >= 4) && ((g->ow & 3) < 2)) {
            etc_mcu_fours(b, w, g, q, c, y);
        } else {
            etc_mcu_short(b, w, g, q, c, y);
        }
    } else {
        etc_mcu_any(b, w, g, q, c, y);
    }
}

/* Sets each of n bytes of y to the larger of the bytes of x and y. */
ETC_INLINE void etc_mcu_larger(const int8_t *x, int32_t n, int8_t *y)
{
#if defined(__ARM_FEATURE_MVE)
    for (; n > 0; n -= 16, x += 16, y += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)n);
        vstrbq_p_s8(y, vmaxq_s8(vldrbq_z_s8(x, some), vldrbq_z_s8(y, some)), some);
    }
#else
    for (const int8_t *const end = x + n; x < end; x++, y++) {
        *y = (*x > *y) ? *x : *y;
    }
#endif
}

/* Returns s plus the sum of n bytes, whose sign bits are flipped if flip is set. */
ETC_INLINE int32_t etc_mcu_total(const uint8_t *x, int32_t n, uint32_t flip, int32_t s)
{
#if defined(__ARM_FEATURE_MVE)
    const uint8x16_t turn = vdupq_n_u8((uint8_t)flip);
    __asm__ volatile("  wlstp.8 lr, %[n], 1f\n2: vldrb.8 q0, [%[x]], #16\n\t"
                     "veor q0, q0, %q[turn]\n\tvaddva.s8 %[s], q0\n\tletp lr, 2b\n1:\n"
                     : [x] "+l"(x), [s] "+Te"(s)
                     : [n] "r"(n), [turn] "t"(turn)
                     : "q0", "lr", "memory");
#else
    for (; n > 0; n--, x++) {
        s += (int8_t)(uint8_t)(*x ^ flip);
    }
#endif
    return s;
}

/* Writes the weight v of a channel and a term to their block. */
ETC_INLINE void etc_mcu_weight(int8_t *block, int32_t channel, int32_t term, int32_t v)
{
    block[(channel * 16) + term] = (int8_t)v;
}

#if defined(ETC_MCU_WIDE_STEP)
#define ETC_MCU_BY(x)                                                                            \
    "vldrb.8 q1, [%[w]], #64\n\tvmladava.s8 %[s0], " x ", q1\n\t"                               \
    "vldrb.8 q2, [%[w], #-48]\n\tvmladava.s8 %[s1], " x ", q2\n\t"                              \
    "vldrb.8 q3, [%[w], #-32]\n\tvmladava.s8 %[s2], " x ", q3\n\t"                              \
    "vldrb.8 q1, [%[w], #-16]\n\tvmladava.s8 %[s3], " x ", q1\n\t"
#endif

/* Computes m outputs of a linear layer from a row of n_k bytes, four at a time.  The last four
 * steps of x stay in q4 to q7; a loop is for the steps before them.  If there are fewer, the code of
 * the four steps, with 32 bytes for each, is entered at the first that there is. */
ETC_INLINE void etc_mcu_outputs(const int8_t *x, const int8_t *w, int32_t n_k, int32_t m,
                                int32_t zero, int8_t *to)
{
#if defined(ETC_MCU_WIDE_STEP)
    int32_t last = (n_k - 1) & ~15, s0 = n_k - last, s1, s2, s3, n = last >> 4;
    const int8_t *e = x + last;
    __asm__ volatile(
        ".p2align 2\n\tvctp.8 %[s0]\n\tvpst\n\tvldrbt.8 q7, [%[e]]\n\t" /* ADR needs it */
        "cmp %[n], #1\n\tblt 1f\n\tvldrb.8 q6, [%[e], #-16]\n\tbeq 1f\n\t"
        "vldrb.8 q5, [%[e], #-32]\n\tcmp %[n], #2\n\tbeq 1f\n\tvldrb.8 q4, [%[e], #-48]\n"
        "1: adr %[e], 5f\n\tsub %[e], %[e], %[n], lsl #5\n\tsubs %[n], #3\n\tit gt\n\t"
        "adrgt %[e], 3f\n\torr %[e], #1\n"
        "2: ldrd %[s0], %[s1], [%[w]], #16\n\tldrd %[s2], %[s3], [%[w], #-8]\n\tbx %[e]\n"
        "3: dls lr, %[n]\n"
        "4: vldrb.8 q0, [%[x]], #16\n\t" ETC_MCU_BY("q0") "le lr, 4b\n\t"
        "sub %[x], %[x], %[n], lsl #4\n\t"
        ETC_MCU_BY("q4") ETC_MCU_BY("q5") ETC_MCU_BY("q6") "\n5: " ETC_MCU_BY("q7")
        "vmov q0[2], q0[0], %[s0], %[s2]\n\tvmov q0[3], q0[1], %[s1], %[s3]\n\t"
        "vldrw.32 q1, [%[w]], #16\n\tvqrdmlash.s32 q0, q1, %[zero]\n\t"
        "vqmovnb.s32 q0, q0\n\tvqmovnb.s16 q0, q0\n\tsubs %[left], #4\n\tblt 6f\n\t"
        "vstrb.32 q0, [%[to]], #4\n\tbgt 2b\n\tb 7f\n"
        "6: adds %[left], #4\n\tvctp.32 %[left]\n\tvpst\n\tvstrbt.32 q0, [%[to]]\n7:\n"
        : [w] "+&r"(w), [n] "+&r"(n), [x] "+&r"(x), [to] "+&l"(to), [e] "+&r"(e),
          [s0] "+&Te"(s0), [s1] "=&Te"(s1), [s2] "=&Te"(s2), [s3] "=&Te"(s3), [left] "+&r"(m)
        : [zero] "r"(zero)
        : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "lr", "cc", "memory");
#else
    for (int32_t c = 0; c < m; c++) {
        const int32_t k = (n_k + 15) / 16 * 16;
        const int8_t *start = w + (c / 4 * ETC_MCU_BLOCK(k)) + (c % 4 * 4);
        const int8_t *row = w + (c / 4 * ETC_MCU_BLOCK(k)) + 16 + (c % 4 * 16);
        int32_t sum = etc_mcu_number(start);
        for (int32_t i = 0; i < n_k; i++) {
            sum += x[i] * row[((i / 16) * 64) + (i % 16)];
        }
        to[c] = etc_mcu_put(sum, etc_mcu_number(start + 16 + (4 * k)), zero);
    }
#endif
}

/* Computes a linear layer from x[rows][n_k] to y[rows][m].  work: n_k bytes if signs of x are
 * turned, else it is not used. */
ETC_OUTLINE void etc_mcu_linear(const void *x, const int8_t *weights, void *y, int32_t rows,
                                int32_t m, int32_t n_k, const EtcMcu *q, void *work)
{
    const int8_t *from = (const int8_t *)x;
    int8_t *to = (int8_t *)y;
    for (int32_t r = 0; r < rows; r++, from += n_k, to += m) {
        const int8_t *row = from;
        if (q->x_flip != 0) {
            etc_mcu_run((const uint8_t *)from, n_k, q->x_flip, (int8_t *)work);
            row = (const int8_t *)work;
        }
        etc_mcu_outputs(row, weights, n_k, m, q->zero, to);
    }
}

ETC_OUTLINE void etc_mcu_quantize(const float *x, void *y, int32_t n, float inverse,
                                  const EtcMcu *q)
{
    int8_t *to = (int8_t *)y;
#if defined(__ARM_FEATURE_MVE)
    uint32_t by;
    __builtin_memcpy(&by, &inverse, 4);
    if (n >= 8) {
        const int16x8_t zero = vdupq_n_s16((int16_t)q->zero);
        __asm__ volatile("  dls lr, %[n]\n1: vld20.32 {q0, q1}, [%[x]]\n\t"
                         "vld21.32 {q0, q1}, [%[x]]!\n\tvmul.f32 q0, q0, %[by]\n\t"
                         "vmul.f32 q1, q1, %[by]\n\tvcvtn.s32.f32 q0, q0\n\t"
                         "vcvtn.s32.f32 q1, q1\n\tvqmovnb.s32 q0, q0\n\tvqmovnt.s32 q0, q1\n\t"
                         "vqadd.s16 q0, q0, %q[zero]\n\tvqmovnb.s16 q0, q0\n\t"
                         "vstrb.16 q0, [%[to]], #8\n\tle lr, 1b\n"
                         : [x] "+&r"(x), [to] "+&l"(to)
                         : [n] "r"(n >> 3), [by] "r"(by), [zero] "t"(zero)
                         : "q0", "q1", "lr", "memory");
        n &= 7;
    }
    __asm__ volatile("  wlstp.32 lr, %[n], 1f\n2: vldrw.u32 q0, [%[x]], #16\n\t"
                     "vmul.f32 q0, q0, %[by]\n\tvcvtn.s32.f32 q0, q0\n\t"
                     "vqadd.s32 q0, q0, %[zero]\n\tvqmovnb.s32 q0, q0\n\t"
                     "vqmovnb.s16 q0, q0\n\tvstrb.32 q0, [%[to]], #4\n\tletp lr, 2b\n1:\n"
                     : [x] "+l"(x), [to] "+l"(to)
                     : [n] "r"(n), [by] "r"(by), [zero] "r"(q->zero)
                     : "q0", "lr", "memory");
#else
    for (const float *const end = x + n; x < end; x++) {
        const int32_t v = etc_mcu_nearest(*x * inverse) + q->zero;
        *to++ = (int8_t)etc_min_i32(etc_max_i32(v, -128), 127);
    }
#endif
}

ETC_OUTLINE void etc_mcu_dequantize(const void *x, float *y, int32_t n, int32_t is_signed,
                                    int32_t zero, float scale)
{
    const uint8_t *from = (const uint8_t *)x;
#if defined(__ARM_FEATURE_MVE)
#define ETC_MCU_FLOATS(load)                                                                     \
    __asm__ volatile("  wlstp.32 lr, %[n], 1f\n2: " load " q0, [%[x]], #4\n\t"                   \
                     "vsub.i32 q0, q0, %[zero]\n\tvcvt.f32.s32 q0, q0\n\t"                      \
                     "vmul.f32 q0, q0, %[by]\n\tvstrw.32 q0, [%[y]], #16\n\tletp lr, 2b\n1:\n"  \
                     : [x] "+&l"(from), [y] "+&l"(y)                                             \
                     : [n] "r"(n), [zero] "r"(zero), [by] "r"(by)                                \
                     : "q0", "lr", "memory")
    uint32_t by;
    __builtin_memcpy(&by, &scale, 4);
    if (is_signed != 0) {
        ETC_MCU_FLOATS("vldrb.s32");
    } else {
        ETC_MCU_FLOATS("vldrb.u32");
    }
#else
    for (const uint8_t *const end = from + n; from < end; from++, y++) {
        *y = (float)(((is_signed != 0) ? (int8_t)*from : *from) - zero) * scale;
    }
#endif
}

#endif
