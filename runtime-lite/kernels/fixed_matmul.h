/* fixed_matmul.h -- products of matrices of 8-bit integers, neither of them known beforehand.
 *
 *   y = floor(sum * by / 2^31 + 1/2) + zero point of y, within y's range
 *
 * where sum is exact in 32 bits, as there are at most 32768 terms of two numbers below 256.  That is
 * the arithmetic of fixed.h, whose targets compute the same bits by etc_mcu_matmul. */
#ifndef ETC_FIXED_MATMUL_H
#define ETC_FIXED_MATMUL_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcByteMatmul {
    int32_t batches, m, n, k;     /* y[m][n] = x[m][k] * w[k][n] */
    int32_t step, next;           /* elements of w from a row to the next, from a column to the next */
    int32_t x_turn, w_turn;       /* 0x80 for int8, whose bytes count from -128 */
    int32_t x_zero, w_zero;       /* as bytes count from 0 */
    int32_t by, zero, lo, hi;     /* by: below 2^30; of y */
} EtcByteMatmul;

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
