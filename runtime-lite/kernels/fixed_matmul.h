/* fixed_matmul.h -- products of two matrices of 8-bit integers that are computed at run time.
 *
 *   y = floor(sum * by / 2^31 + 1/2) + zero point of y, clamped to y's range
 *
 * The sum is exact in 32 bits, since it has at most 32768 products of two numbers below 256.  This
 * is the arithmetic of fixed.h, whose targets compute the same bits with etc_mcu_matmul. */
#ifndef ETC_FIXED_MATMUL_H
#define ETC_FIXED_MATMUL_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcByteMatmul {
    int32_t batches, m, n, k;     /* y[m][n] = x[m][k] * w[k][n] */
    int32_t step, next;           /* elements of w from row to row, from column to column */
    int32_t x_turn, w_turn;       /* 0x80 for int8, 0 for uint8 */
    int32_t x_zero, w_zero;       /* zero points; those of int8 plus 128 */
    int32_t by, zero, lo, hi;     /* by: below 2^30; zero, lo, hi: y's zero point and range */
} EtcByteMatmul;

/* Computes all batches, which lie one behind the other in x, w and y.  The bytes of y are int8 or
 * uint8, as lo and hi say. */
ETC_OUTLINE void etc_matmul_i8(const void *x, const void *w, void *y, const EtcByteMatmul *g)
{
    const uint8_t *row = (const uint8_t *)x, *matrix = (const uint8_t *)w;
    uint8_t *to = (uint8_t *)y;
    for (int32_t i = 0; i < (g->batches * g->m); i++, row += g->k) {
        const uint8_t *column = matrix + (((int64_t)(i / g->m) * g->k) * g->n);
        for (int32_t c = 0; c < g->n; c++, column += g->next) {
            int32_t sum = 0;
            for (int32_t t = 0; t < g->k; t++) {
                sum += ((row[t] ^ g->x_turn) - g->x_zero) *
                       ((column[(int64_t)t * g->step] ^ g->w_turn) - g->w_zero);
            }
            const int32_t v = (int32_t)((((int64_t)sum * g->by) + 0x40000000) >> 31) + g->zero;
            *to++ = (uint8_t)((v < g->lo) ? g->lo : ((v > g->hi) ? g->hi : v));
        }
    }
}

#endif
