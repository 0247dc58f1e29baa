/* fixed.h -- products of 8-bit integers for microcontrollers, in fixed point.
 *
 * A sum starts from a number that includes its channel's bias and the correction for x's zero
 * point.  It is exact in 32 bits.  It becomes y with one rounding, halves up:
 *
 *   y = floor(sum * m / 2^31 + 1/2) + zero point of y, clamped to y's range
 *
 * where m, which is below 2^30, is the integer nearest to 2^31 * scale of x * scale of the channel /
 * scale of y.  `by` is m in mcu_mve.h, and 2 m in the others, which shift by 32 bits.  This is
 * TFLite's arithmetic with one rounding instead of two.  All instruction sets give the same bits,
 * and so does the plain C that other machines compile.
 *
 * Each instruction set has a header mcu_*.h, which the target's row names.  Each header defines:
 *
 *   ETC_MCU_PANEL                 the bytes of a panel of four pixels, from the number of terms
 *   ETC_MCU_SLOT                  the bytes from pixel to pixel of a panel
 *   ETC_MCU_RUN                   as many numbers fill a step of a panel
 *   ETC_MCU_FROM_0                1: linear layers read x as unsigned; 0: as signed
 *   EtcMcuPixel, etc_mcu_byte     the type of a number of a picture; converts a byte of x to it
 *   etc_mcu_put                   returns the byte that a sum becomes
 *   etc_mcu_planes                packs a panel of four pixels from planes
 *   etc_mcu_tiles                 computes all channels of a panel
 *   etc_mcu_single                with ETC_MCU_SINGLE, computes those of its last pixel
 *   etc_mcu_pixels                converts a row of x to pixels that hold all channels
 *   etc_mcu_copy                  copies such pixels
 *   etc_mcu_spread                copies them to a pixel of a panel
 *   etc_mcu_spread_4              with ETC_MCU_BY_4, to all pixels of a panel
 *   ETC_MCU_PICKS                 if it is defined, says whether windows whose rows have `run`
 *                                 numbers are copied by a table of the places of pairs of numbers
 *   etc_mcu_move, _pick           turn this table with the ring of rows, and use it
 *   etc_mcu_runs                  converts runs of bytes of x to numbers
 *   etc_mcu_plane                 computes a channel of a depthwise convolution
 *   ETC_MCU_TAPS                  the bytes of EtcMcuBand.taps
 *   ETC_MCU_TERMS                 so many terms of four channels are next to each other in the
 *                                 weights of a linear layer
 *   etc_mcu_weight                writes a weight to such terms
 *   etc_mcu_linear                computes a linear layer
 *   etc_mcu_larger                keeps the larger of each pair of bytes of two rows
 *   etc_mcu_total                 adds up a run of bytes
 *   etc_mcu_quantize              converts floats to bytes: the nearest integer of x * inverse
 *   etc_mcu_dequantize            converts n bytes to floats: (x - zero) * scale; the bytes are int8
 *                                 if is_signed is set, else uint8
 */
#ifndef ETC_FIXED_H
#define ETC_FIXED_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcMcu {
    const int32_t *start, *by; /* for each channel: the initial sum, the factor as above; NULL if
                                  they are between the weights */
    int32_t zero, lo, hi;      /* y's zero point and range, for signed bytes */
    uint32_t x_flip, y_flip;   /* 0, or 0x80808080 to flip the sign bits of the bytes */
} EtcMcu;

typedef struct EtcMcuConv {
    int32_t ic, ih, iw, oc, oh, ow, kh, kw, sh, sw, ph, pw;
    int32_t k;    /* the number of terms with the zeros that fill up the last step */
    int32_t pad;  /* the byte of x that padding consists of */
    int32_t band; /* depthwise: rows of y at a time; windows: columns */
    int32_t wide; /* windows: the numbers of a pixel, those of its channels and zeros;
                     depthwise: rows of y at a time in a strip */
} EtcMcuConv;

/* A picture of a plane, and the rows of y that are computed from it. */
typedef struct EtcMcuBand {
    void *picture, *inner;  /* numbers; inner: where the first row of x is */
    void *taps;             /* ETC_MCU_TAPS bytes */
    int32_t rows;           /* of y */
    int32_t pitch, columns; /* numbers from row to row; columns of x that are shown */
    int32_t first, n_rows;  /* rows of x that are shown */
} EtcMcuBand;

/* Returns the integer nearest to v, with halves to even, if |v| is below 512; otherwise 512 with
 * v's sign; 0 for NaN, as the instructions of an FPU do. */
ETC_INLINE int32_t etc_mcu_nearest(float v)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &v, 4);
    const uint32_t exponent = (bits >> 23) & 255, number = (bits & 0x7fffff) | 0x800000;
    uint32_t r = 0;
    if (exponent > 135) {
        r = ((bits << 1) > 0xff000000u) ? 0 : 512;
    } else if (exponent >= 126) {
        const uint32_t shift = 150 - exponent, part = number << (32 - shift);
        r = number >> shift;
        r += ((part + (r & 1)) > 0x80000000u) ? 1u : 0u;
    }
    return ((bits >> 31) != 0) ? -(int32_t)r : (int32_t)r;
}

/* The bytes of a block of a linear layer's weights: the starts of four channels, their weights of k
 * terms and zeros, their factors. */
#define ETC_MCU_BLOCK(k) ((4 * (k)) + 32)

/* Returns the number at an address that is a multiple of 4. */
ETC_INLINE int32_t etc_mcu_number(const int8_t *p)
{
    int32_t v;
    __builtin_memcpy(&v, __builtin_assume_aligned(p, 4), 4);
    return v;
}

ETC_INLINE int32_t etc_min_i32(int32_t a, int32_t b)
{
    return (a < b) ? a : b;
}

ETC_INLINE int32_t etc_max_i32(int32_t a, int32_t b)
{
    return (a > b) ? a : b;
}

/* Clamps n bytes of y to their range and flips their sign bits.  Nodes whose kernel leaves this to
 * them call it, if either is necessary. */
ETC_OUTLINE void etc_mcu_finish(void *y, int32_t n, const EtcMcu *q)
{
    uint8_t *to = (uint8_t *)y;
    for (const uint8_t *const end = to + n; to < end; to++) {
        const int32_t v = etc_min_i32(etc_max_i32((int8_t)*to, q->lo), q->hi);
        *to = (uint8_t)((uint32_t)v ^ (q->y_flip & 0xff));
    }
}

/* Interpolates linearly in a table whose entries are 128 apart. */
ETC_INLINE int32_t etc_mcu_curve(const int16_t *table, int32_t at)
{
    const int32_t i = at >> 7, y = table[i];
    return y + ((((table[i + 1] - y) * (at & 127)) + 64) >> 7);
}

/* Returns the pixels from one row of a picture to the next.  A picture is a channel's rows with
 * their padding. */
ETC_INLINE int32_t etc_mcu_pitch(const EtcMcuConv *g)
{
    return ((((g->ow - 1) * g->sw) + g->kw + 2) / 2) * 2;
}

#endif
