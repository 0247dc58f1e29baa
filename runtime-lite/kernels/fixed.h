/* fixed.h -- products of 8-bit integers for microcontrollers, in fixed point.
 *
 * A sum starts from what its channel's bias and x's zero point stand for, and is exact in 32 bits.
 * Then, with one rounding, halves up:
 *
 *   y = floor(sum * by / 2^32 + 1/2) + zero point of y, within y's range
 *
 * where by is scale of x * scale of the channel / scale of y, times 2^32, an even number below
 * 2^31.  That is TFLite's arithmetic with one rounding in the place of two.  The same bits come
 * from each set of instructions, and from the plain C beside it that other machines compile.
 *
 * A set has a header mcu_*.h, which the target's row names, with the same steps in each:
 *
 *   ETC_MCU_PANEL                 bytes of a panel of four pixels, by terms
 *   ETC_MCU_FROM_0                whether linear layers count x from 0 up, not with a sign
 *   etc_mcu_put                   the byte that a sum becomes
 *   etc_mcu_planes                makes a panel of four pixels that lie in planes
 *   etc_mcu_tiles                 all channels of a panel
 *   etc_mcu_linear                a linear layer
 *   etc_mcu_larger                the larger of each two bytes
 *   etc_mcu_quantize              floats as bytes: the nearest integer of x * inverse
 *
 * Convolutions over windows are etc_mcu_windows and etc_mcu_strips where a set has them, else those of
 * fixed_conv.h, which take:
 *
 *   EtcMcuPixel, etc_mcu_byte     a pixel of a picture; x as such a pixel
 *   etc_mcu_run                   a run of x as such pixels
 *   etc_mcu_plane                 a channel of a depthwise convolution
 *   ETC_MCU_TAPS                  bytes that it works with
 *   etc_mcu_three                 three bytes of a row
 *   etc_mcu_slot                  makes of one pixel's terms a quarter of a panel
 */
#ifndef ETC_FIXED_H
#define ETC_FIXED_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcMcu {
    const int32_t *start, *by; /* of channels */
    int32_t zero, lo, hi;      /* of y, whose bytes have a sign */
    uint32_t x_flip, y_flip;   /* 0, or 0x80808080: signs of bytes to turn */
} EtcMcu;

typedef struct EtcMcuConv {
    int32_t ic, ih, iw, oc, oh, ow, kh, kw, sh, sw, ph, pw;
    int32_t k;    /* terms, with zeros behind */
    int32_t pad;  /* byte of x that padding is */
    int32_t band; /* depthwise: rows of y at a time; of windows: columns; of strips: bytes of one */
} EtcMcuConv;

/* The nearest integer, halves to the even one, of v within 256; beyond, one as far out. */
ETC_INLINE int32_t etc_mcu_nearest(float v)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &v, 4);
    const uint32_t exponent = (bits >> 23) & 255, number = (bits & 0x7fffff) | 0x800000;
    uint32_t r = 0;
    if (exponent > 135) {
        r = 512;
    } else if (exponent >= 126) {
        const uint32_t shift = 150 - exponent, part = number << (32 - shift);
        r = number >> shift;
        r += ((part + (r & 1)) > 0x80000000u) ? 1u : 0u;
    }
    return ((bits >> 31) != 0) ? -(int32_t)r : (int32_t)r;
}

/* Brings y within its range where that is not all of it, and to the signs that it has. */
ETC_OUTLINE void etc_mcu_finish(uint8_t *y, int32_t n, const EtcMcu *q)
{
    if ((q->lo == -128) && (q->hi == 127) && (q->y_flip == 0)) {
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        const int32_t v = (int8_t)y[i], least = (v < q->lo) ? q->lo : v;
        y[i] = (uint8_t)((uint32_t)((least > q->hi) ? q->hi : least) ^ (q->y_flip & 0xff));
    }
}

ETC_INLINE int32_t etc_min_i32(int32_t a, int32_t b)
{
    return (a < b) ? a : b;
}

ETC_INLINE int32_t etc_max_i32(int32_t a, int32_t b)
{
    return (a > b) ? a : b;
}

/* Between the entries of a table, 128 steps from one to the next. */
ETC_INLINE int32_t etc_mcu_curve(const int16_t *table, int32_t at)
{
    const int32_t i = at >> 7, y = table[i];
    return y + ((((table[i + 1] - y) * (at & 127)) + 64) >> 7);
}

/* Numbers from row to row of a picture: a channel's rows, padded. */
ETC_INLINE int32_t etc_mcu_pitch(const EtcMcuConv *g)
{
    return ((((g->ow - 1) * g->sw) + g->kw + 2) / 2) * 2;
}

#endif
