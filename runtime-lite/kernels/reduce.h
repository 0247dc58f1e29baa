/* reduce.h -- sums and maxima of rows of floats.
 *
 * Term i of a sum goes to lane i % 16 of block i / 512.  A lane of a block adds its terms in
 * order of i.  Blocks are added lane by lane, in their order.  At the end the 16 lanes are added
 * as a tree: first those 8 apart, then 4, 2 and 1 apart. */
#ifndef ETC_REDUCE_H
#define ETC_REDUCE_H

#include "runtime-lite/kernels/vec.h"

#define ETC_SUM_BLOCK 512

typedef struct EtcSum {
    float lane[16];
} EtcSum;

ETC_INLINE void etc_sum_start(EtcSum *s)
{
    for (int i = 0; i < 16; i++) {
        s->lane[i] = 0.0f;
    }
}

/* Adds n floats to a sum.  If a caller adds a sum in parts, all but the last must be whole
 * blocks. */
ETC_OUTLINE void etc_sum_f32(const float *x, int64_t n, EtcSum *s)
{
    for (int64_t from = 0; from < n; from += ETC_SUM_BLOCK) {
        const int64_t to = etc_min_i64(n, from + ETC_SUM_BLOCK);
        EtcF part[16 / ETC_LANES];
        ETC_UNROLL
        for (int v = 0; v < (16 / ETC_LANES); v++) {
            part[v] = etc_splat(0.0f);
        }
        for (int64_t i = from; i < to; i += 16) {
            ETC_UNROLL
            for (int v = 0; v < (16 / ETC_LANES); v++) {
                const int64_t at = i + (v * ETC_LANES);
                part[v] += etc_load(x + at, to - at);
            }
        }
        ETC_UNROLL
        for (int v = 0; v < (16 / ETC_LANES); v++) {
            float *lane = s->lane + (v * ETC_LANES);
            etc_storeu(lane, etc_loadu(lane) + part[v]);
        }
    }
}

ETC_INLINE float etc_sum_end(const EtcSum *s)
{
    float t[8];
    for (int i = 0; i < 8; i++) {
        t[i] = s->lane[i] + s->lane[i + 8];
    }
    for (int i = 0; i < 4; i++) {
        t[i] = t[i] + t[i + 4];
    }
    return (t[0] + t[2]) + (t[1] + t[3]);
}

/* Returns the largest of start and n floats, or NaN if one of them is NaN. */
ETC_OUTLINE float etc_amax_f32(const float *x, int64_t n, float start)
{
    EtcF m = etc_splat(start);
    const int64_t whole = n - (n % ETC_LANES);
    for (int64_t i = 0; i < whole; i += ETC_LANES) {
        m = etc_max(m, etc_loadu(x + i));
    }
    float y = start;
    for (int v = 0; v < ETC_LANES; v++) {
        y = ((y > m[v]) || (y != y)) ? y : m[v];
    }
    for (int64_t i = whole; i < n; i++) {
        y = ((y > x[i]) || (y != y)) ? y : x[i];
    }
    return y;
}

/* Computes cumulative sums of x [outer][n][inner] along the axis of n, in double.  Rows are
 * independent.  Several are added side by side, because each sum of a row waits for the one
 * before. */
ETC_OUTLINE void etc_cumsum_f32(const float *x, float *y, int64_t outer, int64_t n, int64_t inner)
{
    enum { ROWS = 4, COLUMNS = 256 };
    int64_t row = 0;
    for (; (inner == 1) && ((row + ROWS) <= outer); row += ROWS) {
        double sum[ROWS] = {0.0};
        const float *from = x + (row * n);
        float *to = y + (row * n);
        for (int64_t i = 0; i < n; i++) {
            ETC_UNROLL
            for (int r = 0; r < ROWS; r++) {
                sum[r] += (double)from[(r * n) + i];
                to[(r * n) + i] = (float)sum[r];
            }
        }
    }
    for (; row < outer; row++) {
        for (int64_t c = 0; c < inner; c += COLUMNS) {
            double sum[COLUMNS] = {0.0};
            const int64_t count = etc_min_i64(COLUMNS, inner - c);
            for (int64_t i = 0; i < n; i++) {
                const float *from = x + (((row * n) + i) * inner) + c;
                float *to = y + (((row * n) + i) * inner) + c;
                for (int64_t k = 0; k < count; k++) {
                    sum[k] += (double)from[k];
                    to[k] = (float)sum[k];
                }
            }
        }
    }
}

#endif
