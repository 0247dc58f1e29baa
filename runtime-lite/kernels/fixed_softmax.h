/* fixed_softmax.h -- softmax and log_softmax of 8-bit integers in fixed point.
 *
 * table[d] is e^(-d * scale of x) as an integer, for an element that is d below the largest one of
 * its row.  After the table's end the entries are 0.  table[0] is the largest entry; it is at least
 * 2^15, and n * table[0] is below 2^32, so that the sum of a row is exact in 32 bits.  Then, with
 * the smallest h for which sum / 2^h is below 2^16:
 *
 *   share = floor(table[d] / 2^h) * floor(2^31 / floor(sum / 2^h)) / 2^15, in units of 2^-16
 *   y = floor((share * by + 2^(shift - 1)) / 2^shift) + zero point of y, clamped to y's range
 *
 * If y is float, it is table[d] / sum.  The logarithm of a share is -(d * scale of x + log(sum / table[0])),
 * for which table[0] is a power of two.  With log2(sum / table[0]) in units of 2^-13, which is odd:
 *
 *   log = floor(log2 * floor(log_by / 2^8) / 2^5) + floor(log2 * (log_by mod 2^8) / 2^13)
 *   y = zero point of y - floor((d * by + log + 2^(shift - 1)) / 2^shift), clamped to y's range
 *
 * All machines give the same bits.
 */
#ifndef ETC_FIXED_SOFTMAX_H
#define ETC_FIXED_SOFTMAX_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcByteSoftmax {
    const int32_t *table;
    int32_t count;        /* the number of the table's entries */
    uint32_t by;          /* at most 2^15 */
    int32_t shift;        /* 1 to 30 */
    int32_t zero, lo, hi; /* the zero point and the range of y */
    int32_t x_flip;       /* 0x80 for int8, 0 for uint8 */
} EtcByteSoftmax;

/* Returns the entry for an element that is `below` less than the largest one of its row. */
ETC_INLINE uint32_t etc_byte_power(const EtcByteSoftmax *q, int32_t below)
{
    return (below < q->count) ? (uint32_t)q->table[below] : 0;
}

/* Returns the largest element of a row, after x_flip.  Sets *sum to the sum of the elements'
 * powers. */
ETC_OUTLINE int32_t etc_byte_powers(const uint8_t *x, int32_t n, int32_t stride,
                                    const EtcByteSoftmax *q, uint32_t *sum)
{
    int32_t most = 0;
    *sum = 0;
    for (int32_t i = 0; i < n; i++) {
        const int32_t v = x[i * stride] ^ q->x_flip;
        most = (v > most) ? v : most;
    }
    for (int32_t i = 0; i < n; i++) {
        *sum += etc_byte_power(q, most - (x[i * stride] ^ q->x_flip));
    }
    return most;
}

/* Computes the softmax of one row as floats.  The elements are `stride` apart. */
ETC_OUTLINE void etc_softmax_i8_f32(const void *x, float *y, int32_t n, int32_t stride,
                                    const EtcByteSoftmax *q)
{
    const uint8_t *from = (const uint8_t *)x;
    uint32_t sum;
    const int32_t most = etc_byte_powers(from, n, stride, q, &sum);
    const float inverse = 1.0f / (float)sum;
    for (int32_t i = 0; i < n; i++) {
        const uint32_t power = etc_byte_power(q, most - (from[i * stride] ^ q->x_flip));
        y[i * stride] = (float)power * inverse;
    }
}

/* Computes the softmax of one row as bytes.  The elements are `stride` apart; y may be x. */
ETC_OUTLINE void etc_softmax_i8(const void *x, void *y, int32_t n, int32_t stride,
                                const EtcByteSoftmax *q)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    int32_t h = 0;
    uint32_t sum;
    const int32_t most = etc_byte_powers(from, n, stride, q, &sum);
    while ((sum >> h) > 65535) {
        h++;
    }
    const uint32_t inverse = 0x80000000u / (sum >> h), half = 1u << (q->shift - 1);
    for (int32_t i = 0; i < n; i++) {
        const uint32_t power = etc_byte_power(q, most - (from[i * stride] ^ q->x_flip)) >> h;
        const int32_t v = (int32_t)(((((power * inverse) >> 15) * q->by) + half) >> q->shift) +
                          q->zero;
        to[i * stride] = (uint8_t)((v < q->lo) ? q->lo : ((v > q->hi) ? q->hi : v));
    }
}

/* Returns log2(v / one) in units of 2^-13: the middle of two even numbers between which it lies.  v is at
 * least `one`, a power of two from 2^15 to 2^30, and at most 2^16 times as large. */
ETC_INLINE uint32_t etc_log2_fixed(uint32_t v, uint32_t one)
{
    uint32_t log = 0;
    while (v >= (one << 1)) {
        v >>= 1;
        log++;
    }
    while (one > 32768u) {
        one >>= 1;
        v >>= 1;
    }
    for (int32_t bit = 0; bit < 12; bit++) { /* v is v / 2^15, from 1 to 2; its square has the next bit */
        v = (v * v) >> 15;
        log <<= 1;
        if (v > 65535u) {
            v >>= 1;
            log++;
        }
    }
    return (log << 1) | 1u;
}

/* Computes the log_softmax of one row as bytes.  log_by is below 2^20.  The elements are `stride` apart; y
 * may be x. */
ETC_OUTLINE void etc_log_softmax_i8(const void *x, void *y, int32_t n, int32_t stride,
                                    uint32_t log_by, const EtcByteSoftmax *q)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    uint32_t sum;
    const int32_t most = etc_byte_powers(from, n, stride, q, &sum);
    const uint32_t log2 = etc_log2_fixed(sum, (uint32_t)q->table[0]);
    const uint32_t plus = ((log2 * (log_by >> 8)) >> 5) + ((log2 * (log_by & 255u)) >> 13) +
                          (1u << (q->shift - 1));
    for (int32_t i = 0; i < n; i++) {
        const uint32_t below = (uint32_t)(most - (from[i * stride] ^ q->x_flip));
        const int32_t v = q->zero - (int32_t)(((below * q->by) + plus) >> q->shift);
        to[i * stride] = (uint8_t)((v < q->lo) ? q->lo : ((v > q->hi) ? q->hi : v));
    }
}

#endif
