/* fixed_norm.h -- layer norm, group norm and RMS norm of 8-bit integers in fixed point.
 *
 * For a row of n elements, with x' = x - zero point, these are exact:
 *
 *   d = n * x' - sum of x' (RMS norm: d = n * x')
 *   v = n * sum of x'^2 - (sum of x')^2, that is n^2 times the variance (RMS norm: no second term)
 *
 * Then, with v + eps = m * 4^e, m at least 2^30 and below 2^32, and s = floor(sqrt(m)):
 *
 *   z = d * floor(2^30 / s) / 2^(30 + e), with `bits` fraction bits
 *   y = floor((z * factor + offset) / 2^shift), clamped to y's range
 *
 * d keeps its upper 15 bits, and z is at most sqrt(n), so that nothing overflows 32 bits.  Factor
 * and offset are those of the element's channel.  The offset includes half a step, for rounding,
 * and the zero point of y.  All machines give the same bits. */
#ifndef ETC_FIXED_NORM_H
#define ETC_FIXED_NORM_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcByteNorm {
    const int32_t *factor, *offset; /* one per channel; below 2^15 and up to 2^30 in magnitude */
    int32_t rows, n, each;          /* n: elements of a row, at most 2^15; each: of a channel */
    int32_t channels;
    int32_t is_centred;             /* the mean is subtracted */
    int32_t turn, x_zero;           /* int8: 0x80, the zero point + 128; uint8: 0, zero point */
    int32_t bits, shift;            /* the fraction bits of z; the shift of y */
    int32_t lo, hi;                 /* the range of y */
    uint64_t eps;                   /* epsilon in units of v, below 2^50 */
} EtcByteNorm;

/* Returns the number of bits of n - 1, at most 15. */
ETC_INLINE int32_t etc_norm_bits(int32_t n)
{
    int32_t bits = 0;
    while ((bits < 15) && ((1 << bits) < n)) {
        bits++;
    }
    return bits;
}

/* Returns floor(sqrt(v)). */
ETC_INLINE uint32_t etc_root(uint32_t v)
{
    uint32_t root = 0;
    for (uint32_t bit = 0x8000; bit > 0; bit >>= 1) {
        const uint32_t at = root | bit;
        root = ((at * at) <= v) ? at : root;
    }
    return root;
}

/* Returns floor(2^30 / floor(sqrt(m))), and sets *e, for v = m * 4^e with m as above.  v is not
 * 0. */
ETC_INLINE int32_t etc_inverse_root(uint64_t v, int32_t *e)
{
    int32_t by = 0;
    while (v >= 0x100000000ull) {
        v >>= 2;
        by++;
    }
    uint32_t m = (uint32_t)v;
    while (m < 0x40000000u) {
        m <<= 2;
        by--;
    }
    *e = by;
    return (int32_t)(0x40000000u / etc_root(m));
}

/* Returns a * b + c.  It overflows only if a result was written over a factor or over x; then the
 * number does not matter. */
ETC_INLINE int32_t etc_sum_of_product(int32_t a, int32_t b, int32_t c)
{
    return (int32_t)(((uint32_t)a * (uint32_t)b) + (uint32_t)c);
}

/* Computes a row.  sum, by: the sum of x' and floor(2^30 / s), see above.  d is shifted right by
 * `less`, its product with `by` by `down`.  channel: the channel of the first element. */
ETC_INLINE void etc_norm_row(const uint8_t *x, uint8_t *y, const EtcByteNorm *q, int32_t sum,
                             int32_t by, int32_t less, int32_t down, int32_t channel)
{
    const int32_t n = q->n, turn = q->turn, half = 1 << (down - 1), shift = q->shift;
    const int32_t lo = q->lo, hi = q->hi, each = q->each, from = sum + (n * q->x_zero);
    const int32_t *factor = q->factor + channel, *offset = q->offset + channel;
    for (const uint8_t *const end = x + n; x < end; factor++, offset++) {
        const int32_t times = *factor, start = *offset;
        for (const uint8_t *const stop = x + each; x < stop; x++, y++) {
            const int32_t d = (n * (*x ^ turn)) - from;
            const int32_t z = etc_sum_of_product(d >> less, by, half) >> down;
            const int32_t v = etc_sum_of_product(z, times, start) >> shift;
            *y = (uint8_t)((v < lo) ? lo : ((v > hi) ? hi : v));
        }
    }
}

/* Normalizes q->rows rows of q->n bytes.  The channels of a row follow those of the row before, and
 * begin again after the last one. */
ETC_OUTLINE void etc_norm_i8(const void *x, void *y, const EtcByteNorm *q)
{
    const uint8_t *row = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    const int32_t wide = etc_norm_bits(q->n), less = (wide > 7) ? (wide - 7) : 0;
    int32_t channel = 0;
    for (int32_t r = 0; r < q->rows; r++, row += q->n, to += q->n) {
        const int32_t turn = q->turn, zero = q->x_zero;
        int32_t sum = 0, e;
        uint32_t squares = 0;
        for (const uint8_t *x1 = row, *const end = row + q->n; x1 < end; x1++) {
            const int32_t v = (*x1 ^ turn) - zero;
            sum += v;
            squares += (uint32_t)(v * v);
        }
        sum = (q->is_centred != 0) ? sum : 0;
        const uint64_t square = (uint64_t)((int64_t)sum * sum);
        const uint64_t v = (((uint64_t)(uint32_t)q->n * squares) - square) + q->eps;
        const int32_t by = etc_inverse_root((v > 0) ? v : 1, &e);
        channel = (channel < q->channels) ? channel : 0;
        etc_norm_row(row, to, q, sum, by, less, (30 + e) - (q->bits + less), channel);
        channel += q->n / q->each;
    }
}

#endif
