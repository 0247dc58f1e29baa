/* matmul.h -- y[m,n] = clamp(start + a[m,k] b, lo, hi).
 *
 * Each sum starts from 0, from the bias of its column or from the value in y.  It adds its terms in
 * order of k by fused multiply-add.  Panels of ETC_KB rows of b are packed into `work`, unless b is
 * stored in blocks.
 */
#ifndef ETC_MATMUL_H
#define ETC_MATMUL_H

#include "runtime-lite/kernels/tile.h"

/* The layout of b. */
typedef enum EtcSide {
    ETC_BY_ROWS,    /* [k,n] */
    ETC_BY_COLUMNS, /* [n,k], like the weight of a linear layer */
    ETC_BY_BLOCKS   /* [blocks][k][ETC_TOGETHER]: blocks of columns; zeros fill the last one */
} EtcSide;

typedef struct EtcMatmul {
    int64_t m, n, k;
    int64_t a_row, b_row; /* floats from a row to the next; the rows of y are n apart */
    float lo, hi;         /* -infinity and infinity: there is no clamp */
    EtcSide b_form;       /* ETC_BY_BLOCKS: b_row is not read */
    int32_t from_y;       /* sums start from y, and bias is not read */
} EtcMatmul;

/* Packs b[n][k] into panel[k][width].  Columns n .. width - 1 become zero. */
ETC_INLINE void etc_pack_columns(const float *b, int64_t b_row, int64_t k, int64_t n, float *panel,
                                 int64_t width)
{
    for (int64_t j = 0; j < width; j += 4) {
        int64_t i = 0;
        for (; ((j + 4) <= n) && ((i + 4) <= k); i += 4) {
            etc_transpose4(b + (j * b_row) + i, b_row, panel + (i * width) + j, width);
        }
        for (; i < k; i++) {
            const int64_t end = (ETC_LANES < 4) ? etc_min_i64(j + 4, width) : (j + 4);
            for (int64_t c = j; c < end; c++) {
                panel[(i * width) + c] = (c < n) ? b[(c * b_row) + i] : 0.0f;
            }
        }
    }
}

/* The columns of b that are taken together if b is in blocks: whole blocks, or a part of a block
 * that divides it evenly. */
#define ETC_BLOCK_PANEL \
    ((ETC_PANEL >= ETC_TOGETHER) ? ((ETC_PANEL / ETC_TOGETHER) * ETC_TOGETHER) \
                                 : ((ETC_PANEL >= 8) ? 8 : ((ETC_PANEL >= 4) ? 4 : 1)))

/* Adds the terms of four columns of b[n][k], which lie at w0 to w3, to their sums. */
ETC_INLINE void etc_four_columns(const float *a, const float *w0, const float *w1, const float *w2,
                                 const float *w3, int32_t k, float s[4])
{
    float s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
    for (int32_t i = 0; i < k; i++) {
        const float v = a[i];
        s0 = etc_fused(v, w0[i], s0);
        s1 = etc_fused(v, w1[i], s1);
        s2 = etc_fused(v, w2[i], s2);
        s3 = etc_fused(v, w3[i], s3);
    }
    s[0] = s0;
    s[1] = s1;
    s[2] = s2;
    s[3] = s3;
}

/* Multiplies a row of a by b[n][k], which is not packed: a row is too little to pack it for.  The
 * last four columns may overlap those before. */
ETC_OUTLINE void etc_row_by_columns(const float *a, const float *b, const float *bias, float *y,
                                    const EtcMatmul *g)
{
    const int32_t n = (int32_t)g->n, last = (n < 4) ? n : 4;
    for (int32_t j = 0; j < n; j += 4) {
        float s[4], *to = y + ((j + 4 <= n) ? j : (n - last));
        const float *w[4];
        for (int32_t c = 0; c < 4; c++) {
            const int64_t at = (to - y) + ((c < last) ? c : 0);
            w[c] = b + (at * g->b_row);
            s[c] = (bias != NULL) ? bias[at] : 0.0f;
        }
        etc_four_columns(a, w[0], w[1], w[2], w[3], (int32_t)g->k, s);
        for (int32_t c = 0; c < last; c++) {
            to[c] = (s[c] < g->lo) ? g->lo : ((s[c] > g->hi) ? g->hi : s[c]);
        }
    }
}

/* The most rows of a for which b is not packed on a CPU without vectors. */
#define ETC_FEW_ROWS 6

/* Multiplies rows of k floats by n columns, both 2 or 4, as many rows at a time as there are lanes.
 * Term i of column j is b[i * down + j * right].  Returns the number of rows that it did. */
ETC_INLINE int64_t etc_narrow_product(const float *a, const float *b, int64_t down, int64_t right,
                                      const float *bias, float *y, const EtcMatmul *g, int k, int n)
{
    const EtcF lo = etc_splat(g->lo), hi = etc_splat(g->hi);
    int64_t row = 0;
    for (; (row + ETC_LANES) <= g->m; row += ETC_LANES) {
        EtcF c[4], s[4];
        ETC_UNROLL
        for (int i = 0; i < k; i++) {
            c[i] = etc_loadu(a + (row * k) + (i * ETC_LANES));
        }
        etc_to_columns(c, k);
        ETC_UNROLL
        for (int j = 0; j < n; j++) {
            s[j] = etc_splat((bias != NULL) ? bias[j] : 0.0f);
            ETC_UNROLL
            for (int i = 0; i < k; i++) {
                s[j] = etc_fma(c[i], etc_splat(b[(i * down) + (j * right)]), s[j]);
            }
            s[j] = etc_at_most(etc_at_least(s[j], lo), hi);
        }
        etc_to_rows(s, n);
        ETC_UNROLL
        for (int j = 0; j < n; j++) {
            etc_storeu(y + (row * n) + (j * ETC_LANES), s[j]);
        }
    }
    return row;
}

/* Does the first rows of a product of two or four terms and columns, whose tiles would use few
 * lanes.  Returns the number of rows that it did. */
ETC_OUTLINE int64_t etc_narrow_rows(const float *a, const float *b, const float *bias, float *y,
                                    const EtcMatmul *g)
{
    const int by_columns = g->b_form == ETC_BY_COLUMNS;
    const int64_t row = (g->b_form == ETC_BY_BLOCKS) ? ETC_TOGETHER : g->b_row;
    const int64_t down = (by_columns != 0) ? 1 : row, right = (by_columns != 0) ? row : 1;
    if ((g->from_y != 0) || (g->a_row != g->k) || ((g->k != 2) && (g->k != 4))) {
        return 0;
    }
    if ((g->n == 2) && (g->k == 2)) {
        return etc_narrow_product(a, b, down, right, bias, y, g, 2, 2);
    }
    if (g->n == 2) {
        return etc_narrow_product(a, b, down, right, bias, y, g, 4, 2);
    }
    if ((g->n == 4) && (g->k == 2)) {
        return etc_narrow_product(a, b, down, right, bias, y, g, 2, 4);
    }
    return (g->n == 4) ? etc_narrow_product(a, b, down, right, bias, y, g, 4, 4) : 0;
}

/* Computes y[m][n] as above.  bias: n floats, or NULL.  y overlaps no operand.  work:
 * ETC_WORK_BYTES, which are not used if b is in blocks. */
ETC_OUTLINE void etc_matmul_f32(const float *a, const float *b, const float *bias, float *y,
                                const EtcMatmul *g, void *work)
{
    float *panel = (float *)work;
    const int64_t done = (ETC_LANES > 4) ? etc_narrow_rows(a, b, bias, y, g) : 0;
    a += done * g->a_row;
    y += done * g->n;
    EtcBlock t = {a, panel, y, bias, g->m - done, 0, 0, g->a_row, 0, g->n, 1, g->lo, g->hi,
                  ETC_FROM_ZERO, 0, ETC_TOGETHER};
    const int in_blocks = g->b_form == ETC_BY_BLOCKS;
    if ((ETC_REGISTERS == 8) && (g->b_form == ETC_BY_COLUMNS) && (g->m <= ETC_FEW_ROWS) &&
        (g->from_y == 0)) {
        for (int64_t i = 0; i < g->m; i++) {
            etc_row_by_columns(a + (i * g->a_row), b, bias, y + (i * g->n), g);
        }
        return;
    }
    for (int64_t j = 0; j < g->n; j += t.n) {
        t.n = in_blocks ? etc_min_i64(g->n - j, ETC_BLOCK_PANEL) : etc_panel(g->n - j);
        t.b_row = ((t.n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
        if (in_blocks) {
            t.b_row = ETC_TOGETHER;
            t.b_next = ETC_TOGETHER * g->k;
        }
        t.c = y + j;
        t.bias = (bias != NULL) ? (bias + j) : NULL;
        t.start = (g->from_y != 0) ? ETC_FROM_C
                                   : ((bias != NULL) ? ETC_FROM_COLUMN : ETC_FROM_ZERO);
        int64_t k = 0;
        do { /* The loop runs once even if k is 0. */
            t.k = etc_min_i64(g->k - k, ETC_KB);
            t.a = a + k;
            t.is_last = (k + t.k) == g->k;
            if (in_blocks) {
                t.b = b + ((j / ETC_TOGETHER) * t.b_next) + (k * ETC_TOGETHER) + (j % ETC_TOGETHER);
            } else if (g->b_form == ETC_BY_COLUMNS) {
                etc_pack_columns(b + (j * g->b_row) + k, g->b_row, t.k, t.n, panel, t.b_row);
            } else {
                etc_pack_rows(b + (k * g->b_row) + j, g->b_row, t.k, t.n, panel, t.b_row);
            }
            etc_block(&t);
            t.start = ETC_FROM_C;
            k += t.k;
        } while (k < g->k);
    }
}

#endif
