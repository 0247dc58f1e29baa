/* mcu_mve.h -- Cortex-M55: sums of sixteen products of bytes by an instruction.
 *
 * Weights of a convolution lie as [channels][k], of a linear layer as [channels / 4][k / 16][4][16];
 * a panel is [4 pixels][k].  Loops over terms are assembly, as gcc 12 spills what they add up. */
#ifndef ETC_MCU_MVE_H
#define ETC_MCU_MVE_H

#include "runtime-lite/kernels/fixed.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

typedef int8_t EtcMcuPixel;

#define ETC_MCU_PANEL(k) ((k) * 4)

ETC_INLINE EtcMcuPixel etc_mcu_byte(uint32_t v)
{
    return (int8_t)(uint8_t)v;
}

/* Three bytes, as four: the last is written again or of weight 0. */
ETC_INLINE void etc_mcu_three(const uint8_t *x, uint8_t *to)
{
    __builtin_memcpy(to, x, 4);
}

/* by: times 2^31 */
ETC_INLINE int8_t etc_mcu_put(int32_t sum, int32_t by, int32_t zero)
{
    const int32_t v = (int32_t)((((int64_t)sum * by) + 0x40000000) >> 31) + zero;
    return (int8_t)etc_min_i32(etc_max_i32(v, -128), 127);
}

ETC_INLINE void etc_mcu_run(const uint8_t *x, int32_t n, uint32_t flip, EtcMcuPixel *to)
{
#if defined(__ARM_FEATURE_MVE)
    const uint8x16_t turn = vdupq_n_u8((uint8_t)flip);
    for (int32_t i = 0; i < n; i += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)(n - i));
        vstrbq_p_u8((uint8_t *)to + i, veorq_u8(vldrbq_z_u8(x + i, some), turn), some);
    }
#else
    for (int32_t i = 0; i < n; i++) {
        to[i] = etc_mcu_byte(x[i] ^ flip);
    }
#endif
}

ETC_OUTLINE void etc_mcu_planes(const uint8_t *x, int32_t plane, int32_t n_k, int32_t k,
                                uint32_t flip, void *panel)
{
    int8_t *to = (int8_t *)panel;
#if defined(__ARM_FEATURE_MVE)
    const uint32x4_t by = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)k);
    const int32x4_t turn = vdupq_n_s32((int8_t)(uint8_t)flip);
    for (; n_k > 0; n_k--, x += plane) {
        vstrbq_scatter_offset_s32(to++, by, veorq_s32(vldrbq_s32((const int8_t *)x), turn));
    }
#else
    for (; n_k > 0; n_k--, x += plane, to++) {
        for (int i = 0; i < 4; i++) {
            to[i * k] = etc_mcu_byte(x[i] ^ flip);
        }
    }
#endif
}

ETC_INLINE void etc_mcu_slot(const uint8_t *line, int32_t k, uint32_t flip, int32_t i, void *panel)
{
    etc_mcu_run(line, k, flip, (int8_t *)panel + (i * k));
}

#if defined(__ARM_FEATURE_MVE)
ETC_INLINE int32x4_t etc_mcu_four(const int32_t s[4])
{
    int32x4_t v;
    __asm__("vmov %q0[2], %q0[0], %1, %3\n\tvmov %q0[3], %q0[1], %2, %4"
            : "=&t"(v) : "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]));
    return v;
}

ETC_INLINE int32x4_t etc_mcu_within(int32x4_t v, int32_t zero)
{
    return vmaxq_s32(vminq_s32(vaddq_n_s32(v, zero), vdupq_n_s32(127)), vdupq_n_s32(-128));
}
#endif

/* s[i] += the sum of x[i * x_row ..] * w[i * w_row ..], k terms; of rows the one or the other has
 * one, of which all have blocks of 16 behind the others where `is_linear`. */
ETC_INLINE const int8_t *etc_mcu_dots(const int8_t *x, const int8_t *w, int32_t k, int is_linear,
                                      int32_t s[4])
{
#if defined(__ARM_FEATURE_MVE)
    int32_t s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    if (is_linear != 0) {
        __asm__("  dls lr, %[n]\n"
                "2: vldrb.8 q0, [%[x]], #16\n"
                "  vldrb.8 q1, [%[w]], #16\n  vmladava.s8 %[s0], q0, q1\n"
                "  vldrb.8 q2, [%[w]], #16\n  vmladava.s8 %[s1], q0, q2\n"
                "  vldrb.8 q3, [%[w]], #16\n  vmladava.s8 %[s2], q0, q3\n"
                "  vldrb.8 q1, [%[w]], #16\n  vmladava.s8 %[s3], q0, q1\n"
                "  le lr, 2b\n"
                : [w] "+r"(w), [x] "+r"(x), [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2),
                  [s3] "+Te"(s3)
                : [n] "r"(k / 16)
                : "q0", "q1", "q2", "q3", "lr", "memory");
    } else {
        const int8_t *x1 = x + k, *x2 = x1 + k, *x3 = x2 + k;
        __asm__("  dls lr, %[n]\n"
                "2: vldrb.8 q0, [%[w]], #16\n"
                "  vldrb.8 q1, [%[x]], #16\n  vmladava.s8 %[s0], q0, q1\n"
                "  vldrb.8 q2, [%[x1]], #16\n  vmladava.s8 %[s1], q0, q2\n"
                "  vldrb.8 q3, [%[x2]], #16\n  vmladava.s8 %[s2], q0, q3\n"
                "  vldrb.8 q1, [%[x3]], #16\n  vmladava.s8 %[s3], q0, q1\n"
                "  le lr, 2b\n"
                : [w] "+r"(w), [x] "+r"(x), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3),
                  [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3)
                : [n] "r"(k / 16)
                : "q0", "q1", "q2", "q3", "lr", "memory");
    }
    s[0] = s0;
    s[1] = s1;
    s[2] = s2;
    s[3] = s3;
    return w;
#else
    for (int32_t i = 0; i < (4 * k); i++) {
        const int32_t at = i % k;
        s[i / k] += (is_linear != 0) ? (x[at] * w[((at / 16) * 64) + ((i / k) * 16) + (at % 16)])
                                     : (x[i] * w[at]);
    }
    return w + ((is_linear != 0) ? (4 * k) : k);
#endif
}

ETC_OUTLINE void etc_mcu_tiles(const void *panel, const int8_t *w, int8_t *y, int32_t plane,
                               int32_t k, int32_t m, const EtcMcu *q)
{
    const int32_t zero = q->zero;
    const int32_t *start = q->start, *by = q->by;
    for (const int32_t *const end = by + m; by < end; by++, start++, y += plane) {
        int32_t s[4] = {*start, *start, *start, *start};
        w = etc_mcu_dots((const int8_t *)panel, w, k, 0, s);
#if defined(__ARM_FEATURE_MVE)
        vstrbq_s32(y, etc_mcu_within(vqrdmulhq_n_s32(etc_mcu_four(s), *by), zero));
#else
        for (int i = 0; i < 4; i++) {
            y[i] = etc_mcu_put(s[i], *by, zero);
        }
#endif
    }
}

/* -- depthwise --------------------------------------------------------------------------------- */

#if defined(__ARM_FEATURE_MVE)
/* Three taps of a row, of four outputs beside each other. */
#define ETC_MCU_THREE(p, at)                                                                     \
    "ldrsb %[a], [%[w], #" #at "]\n\tldrsb %[b], [%[w], #" #at "+1]\n\t"                           \
    "ldrsb %[c], [%[w], #" #at "+2]\n\tvldrb.s32 q1, [%[" #p "]]\n\tvmla.s32 %q[s], q1, %[a]\n\t"  \
    "vldrb.s32 q2, [%[" #p "], #1]\n\tvmla.s32 %q[s], q2, %[b]\n\t"                               \
    "vldrb.s32 q1, [%[" #p "], #2]\n\tvmla.s32 %q[s], q1, %[c]\n\t"

ETC_INLINE int32x4_t etc_mcu_nine(const int8_t *p0, const int8_t *w, int32_t pitch, int32x4_t s)
{
    const int8_t *p1 = p0 + pitch, *p2 = p1 + pitch;
    int32_t a, b, c;
    __asm__(ETC_MCU_THREE(p0, 0) ETC_MCU_THREE(p1, 3) ETC_MCU_THREE(p2, 6)
            : [s] "+t"(s), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c)
            : [w] "r"(w), [p0] "r"(p0), [p1] "r"(p1), [p2] "r"(p2)
            : "q1", "q2", "memory");
    return s;
}

/* Any taps, of four outputs `by` apart. */
ETC_INLINE int32x4_t etc_mcu_taps(const int8_t *p, const int8_t *w, const EtcMcuConv *g,
                                  uint32x4_t by, int32x4_t s)
{
    for (int32_t i = 0; i < g->kh; i++) {
        for (int32_t t = 0; t < g->kw; t++) {
            s = vmlaq_n_s32(s, vldrbq_gather_offset_s32(p + t, by), *w++);
        }
        p += etc_mcu_pitch(g);
    }
    return s;
}
#endif

ETC_OUTLINE void etc_mcu_plane(const EtcMcuPixel *picture, const int8_t *w, const EtcMcuConv *g,
                               int32_t rows, const EtcMcu *q, int32_t c, int8_t *y)
{
    const int32_t pitch = etc_mcu_pitch(g), start = q->start[c], by = q->by[c], zero = q->zero;
#if defined(__ARM_FEATURE_MVE)
    const int is_nine = (g->kh == 3) && (g->kw == 3) && (g->sw == 1);
    const uint32x4_t apart = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)g->sw);
    for (int32_t r = 0; r < rows; r++) {
        const int8_t *p = picture + (r * g->sh * pitch);
        for (int32_t n = g->ow; n > 0; n -= 4) {
            const int32x4_t from = vdupq_n_s32(start);
            const int32x4_t s = (is_nine != 0) ? etc_mcu_nine(p, w, pitch, from)
                                               : etc_mcu_taps(p, w, g, apart, from);
            vstrbq_p_s32(y, etc_mcu_within(vqrdmulhq_n_s32(s, by), zero), vctp32q((uint32_t)n));
            y += etc_min_i32(n, 4);
            p += 4 * g->sw;
        }
    }
#else
    for (int32_t o = 0; o < (rows * g->ow); o++) {
        const EtcMcuPixel *p = picture + ((o / g->ow) * g->sh * pitch) + ((o % g->ow) * g->sw);
        int32_t sum = start;
        for (int32_t t = 0; t < (g->kh * g->kw); t++) {
            sum += w[t] * p[((t / g->kw) * pitch) + (t % g->kw)];
        }
        *y++ = etc_mcu_put(sum, by, zero);
    }
#endif
}

/* y[rows][m] of x[rows][n_k]; k is a multiple of 16; work: k bytes. */
ETC_OUTLINE void etc_mcu_linear(const void *x, const int8_t *weights, void *y, int32_t rows,
                                int32_t m, int32_t n_k, int32_t k, const EtcMcu *q, void *work)
{
    int8_t *to = (int8_t *)y;
    __builtin_memset((uint8_t *)work + k - 16, 0, 16);
    for (int32_t r = 0; r < rows; r++) {
        const int8_t *w = weights;
        etc_mcu_run((const uint8_t *)x + (r * n_k), n_k, q->x_flip, (int8_t *)work);
        for (int32_t c = 0; c < m; c += 4) {
            int32_t s[4] = {q->start[c], q->start[c + 1], q->start[c + 2], q->start[c + 3]};
            const int32_t n = etc_min_i32(m - c, 4);
            w = etc_mcu_dots((const int8_t *)work, w, k, 1, s);
#if defined(__ARM_FEATURE_MVE)
            const int32x4_t v = vqrdmulhq_s32(etc_mcu_four(s), vldrwq_s32(q->by + c));
            vstrbq_p_s32(to, etc_mcu_within(v, q->zero), vctp32q((uint32_t)n));
#else
            for (int32_t i = 0; i < n; i++) {
                to[i] = etc_mcu_put(s[i], q->by[c + i], q->zero);
            }
#endif
            to += n;
        }
    }
    etc_mcu_finish((uint8_t *)y, rows * m, q);
}

ETC_OUTLINE void etc_mcu_quantize(const float *x, void *y, int32_t n, float inverse,
                                  const EtcMcu *q)
{
    int8_t *to = (int8_t *)y;
    const float *const end = x + n;
#if defined(__ARM_FEATURE_MVE)
    for (; (x + 4) <= end; x += 4, to += 4) {
        const int32x4_t v = vcvtnq_s32_f32(vmulq_n_f32(vldrwq_f32(x), inverse));
        vstrbq_s32(to, vmaxq_s32(vminq_s32(vqaddq_n_s32(v, q->zero), vdupq_n_s32(127)),
                                 vdupq_n_s32(-128)));
    }
#endif
    for (; x < end; x++) {
        const int32_t v = etc_mcu_nearest(*x * inverse) + q->zero;
        *to++ = (int8_t)etc_min_i32(etc_max_i32(v, -128), 127);
    }
    etc_mcu_finish((uint8_t *)y, n, q);
}

#endif
