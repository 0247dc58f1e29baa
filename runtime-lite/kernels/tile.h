/* tile.h -- the register tile of matmul and convolution.
 *
 * A block is c[m][n] += a[m][k] b[k][n], where n is at most ETC_PANEL floats.  It is computed in
 * tiles of a few rows by 1 .. ETC_NV vectors: a vector of b is multiplied by a broadcast float
 * of a.  Each sum adds its terms in order of k, with one fused multiply-add each.  Between
 * blocks of k it is stored in c, which rounds nothing.  So the results do not depend on the
 * sizes of tiles, blocks and vectors. */
#ifndef ETC_TILE_H
#define ETC_TILE_H

#include "runtime-lite/kernels/vec.h"

/* The most vectors in a row of a tile, and the rows of tiles that are 1, 2, 3 and 4 vectors
 * wide.  The accumulators, a row of b and one broadcast must fit into the vector registers. */
#define ETC_NV ((ETC_REGISTERS == 32) ? 4 : ((ETC_FMA_BY_DOUBLE != 0) ? 2 : 3))
#define ETC_MR1 ((ETC_REGISTERS == 32) ? 12 : ((ETC_FMA_BY_DOUBLE != 0) ? 3 : 8))
#define ETC_MR2 ((ETC_REGISTERS == 32) ? 12 : ((ETC_FMA_BY_DOUBLE != 0) ? 2 : 6))
#define ETC_MR3 ((ETC_REGISTERS == 32) ? 8 : 4)
#define ETC_MR4 6
#define ETC_PANEL (ETC_NV * ETC_LANES)

/* The rows or columns of a block of a weight, if an emitted file stores the weight in blocks. */
#define ETC_TOGETHER 16

/* The terms that are added to a sum before it is stored.  A block of b of this many rows stays
 * in the first-level cache. */
#define ETC_KB 128

typedef enum EtcStart { ETC_FROM_ZERO, ETC_FROM_ROW, ETC_FROM_COLUMN, ETC_FROM_C } EtcStart;

typedef struct EtcBlock {
    const float *a, *b;
    float *c;
    const float *bias; /* [m] for ETC_FROM_ROW, [n] for ETC_FROM_COLUMN */
    int64_t m, n, k;
    int64_t a_row, b_row, c_row; /* floats from a row to the next; rows of b hold whole vectors */
    int64_t a_step;              /* floats from a term to the next in a row of a */
    float lo, hi;                /* the clamp, which is applied if is_last is set */
    EtcStart start;
    int is_last;    /* this block has the last terms of k */
    int64_t b_next; /* floats from ETC_TOGETHER columns of b to the next; ETC_TOGETHER: no gaps */
} EtcBlock;

/* Adds the terms of rows i .. i + mr - 1 to their sums, and prefetches `ahead`.  mr and nv are
 * constants after this function and the next one are inlined. */
ETC_INLINE void etc_tile_terms(const EtcBlock *t, int64_t i, const float *ahead, int mr, int nv,
                               EtcF acc[16][4])
{
    const int64_t step = t->a_row, b_row = t->b_row, a_step = t->a_step;
    const float *a[6]; /* every third row; an index in the address reaches the two after it */
    ETC_UNROLL
    for (int g = 0; g < 6; g++) {
        a[g] = t->a + ((i + ((3 * g < mr) ? (3 * g) : 0)) * step);
    }
    const float *b = t->b;
    for (int64_t k = 0; k < t->k; k++) {
        EtcF bv[4];
        if (ETC_LANES > 4) {
            __builtin_prefetch(ahead, 0, 2);
            ahead += ETC_TOGETHER;
        }
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            const int64_t column = v * ETC_LANES;
            bv[v] = etc_kept(
                etc_loadu(b + ((column / ETC_TOGETHER) * t->b_next) + (column % ETC_TOGETHER)));
        }
        ETC_UNROLL
        for (int r = 0; r < mr; r++) {
            const EtcF av = etc_splat(a[r / 3][(r % 3) * step]);
            ETC_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[r][v] = etc_fma(av, bv[v], acc[r][v]);
            }
        }
        ETC_UNROLL
        for (int g = 0; g < 6; g++) {
            a[g] += a_step;
        }
        b += b_row;
    }
}

/* Sets the sums of rows i .. i + mr - 1 to what they start from.  c: the first of these rows of t->c;
 * last: the floats in the last vector. */
ETC_INLINE void etc_tile_start(const EtcBlock *t, int64_t i, const float *c, int64_t last, int mr,
                               int nv, EtcF acc[16][4])
{
    ETC_UNROLL
    for (int v = 0; v < nv; v++) {
        const int64_t left = (v == (nv - 1)) ? last : ETC_LANES;
        if (t->start == ETC_FROM_C) {
            ETC_UNROLL
            for (int r = 0; r < mr; r++) {
                acc[r][v] = etc_load(c + (r * t->c_row) + (v * ETC_LANES), left);
            }
        } else if (t->start == ETC_FROM_ROW) {
            ETC_UNROLL
            for (int r = 0; r < mr; r++) {
                acc[r][v] = etc_splat(t->bias[i + r]);
            }
        } else {
            const EtcF first = (t->start == ETC_FROM_COLUMN)
                                   ? etc_load(t->bias + (v * ETC_LANES), left)
                                   : etc_splat(0.0f);
            ETC_UNROLL
            for (int r = 0; r < mr; r++) {
                acc[r][v] = first;
            }
        }
    }
}

/* Computes rows i .. i + mr - 1 of a block that is nv vectors wide. */
ETC_INLINE void etc_tile(const EtcBlock *t, int64_t i, const float *ahead, int mr, int nv)
{
    EtcF acc[16][4];
    float *c = t->c + (i * t->c_row);
    const int64_t last = t->n - ((nv - 1) * ETC_LANES); /* the floats in the last vector */
    etc_tile_start(t, i, c, last, mr, nv, acc);
    const EtcTerms terms = {t->a + (i * t->a_row), t->b, t->a_row, t->a_step, t->b_row, t->k};
    if (etc_add_terms(&terms, mr, nv, acc) == 0) {
        etc_tile_terms(t, i, ahead, mr, nv, acc);
    }
    if (t->is_last != 0) {
        const EtcF lo = etc_splat(t->lo), hi = etc_splat(t->hi);
        ETC_UNROLL
        for (int r = 0; r < mr; r++) {
            ETC_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[r][v] = etc_at_most(etc_at_least(acc[r][v], lo), hi);
            }
        }
    }
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            const int64_t left = (v == (nv - 1)) ? last : ETC_LANES;
            etc_store(c + (r * t->c_row) + (v * ETC_LANES), left, acc[r][v]);
        }
    }
}

/* Does the same for the rows from i on, at most four, and the columns of one vector, on a CPU without
 * vectors: fewer instructions around the terms. */
ETC_OUTLINE void etc_tile_of_floats(const EtcBlock *t, int32_t i, int32_t column)
{
    EtcF acc[16][4];
    const int32_t row = (int32_t)t->c_row, rows = (int32_t)etc_min_i64(t->m - i, 4);
    const int32_t n = (int32_t)etc_min_i64(t->n - column, ETC_LANES);
    const EtcTerms terms = {t->a + (i * t->a_row), t->b + column, t->a_row, t->a_step, t->b_row, t->k};
    float *const c = t->c + (i * row) + column;
    for (int32_t r = 0; r < rows; r++) {
        const float *from = (t->start == ETC_FROM_C)        ? (c + (r * row))
                            : (t->start == ETC_FROM_COLUMN) ? (t->bias + column)
                                                            : NULL;
        acc[r][0] = etc_splat((t->start == ETC_FROM_ROW) ? t->bias[i + r] : 0.0f);
        for (int32_t l = 0; (from != NULL) && (l < n); l++) {
            acc[r][0][l] = from[l];
        }
    }
    if (etc_add_terms(&terms, rows, 1, acc) == 0) {
        EtcBlock part = *t;
        part.b += column;
        etc_tile_terms(&part, i, part.b, rows, 1, acc);
    }
    for (int32_t r = 0; r < rows; r++) {
        if (t->is_last != 0) {
            etc_store_within(c + (r * row), n, &acc[r][0], t->lo, t->hi);
        } else {
            etc_store(c + (r * row), n, acc[r][0]);
        }
    }
}

/* Computes all rows of a block that is nv vectors wide: tiles of mr rows, then smaller tiles.  The
 * first tiles prefetch the block of b that is `ahead` floats from this one into the second-level
 * cache, ETC_TOGETHER columns each. */
ETC_INLINE void etc_tiles(const EtcBlock *t, int64_t ahead, int mr, int nv)
{
    const float *next = t->b + ahead;
    int left = (ahead != 0) ? (((nv * ETC_LANES) + ETC_TOGETHER - 1) / ETC_TOGETHER) : 0;
    int64_t i = 0;
    if (ETC_REGISTERS == 8) {
        for (; i < t->m; i += 4) {
            for (int32_t v = 0; v < nv; v++) {
                etc_tile_of_floats(t, (int32_t)i, v * ETC_LANES);
            }
        }
        return;
    }
    for (; (i + mr) <= t->m; i += mr) {
        etc_tile(t, i, (left > 0) ? next : t->b, mr, nv);
        next += t->b_next;
        left--;
    }
    for (; (mr > 4) && ((i + 4) <= t->m); i += 4) {
        etc_tile(t, i, t->b, 4, nv);
    }
    for (; (mr > 2) && ((i + 2) <= t->m); i += 2) {
        etc_tile(t, i, t->b, 2, nv);
    }
    for (; i < t->m; i++) {
        etc_tile(t, i, t->b, 1, nv);
    }
}

ETC_OUTLINE void etc_tiles_1(const EtcBlock *t, int64_t ahead)
{
    etc_tiles(t, ahead, ETC_MR1, 1);
}

ETC_OUTLINE void etc_tiles_2(const EtcBlock *t, int64_t ahead)
{
    etc_tiles(t, ahead, ETC_MR2, 2);
}

ETC_OUTLINE void etc_tiles_3(const EtcBlock *t, int64_t ahead)
{
    etc_tiles(t, ahead, ETC_MR3, 3);
}

ETC_OUTLINE void etc_tiles_4(const EtcBlock *t, int64_t ahead)
{
    etc_tiles(t, ahead, ETC_MR4, 4);
}

/* Computes a block.  `ahead`: the floats from b to that of the next block; 0: it is near. */
ETC_INLINE void etc_block_before(const EtcBlock *t, int64_t ahead)
{
    switch ((t->n + ETC_LANES - 1) / ETC_LANES) {
    case 1:
        etc_tiles_1(t, ahead);
        break;
    case 2:
        etc_tiles_2(t, ahead);
        break;
    case 3:
        if (ETC_NV >= 3) {
            etc_tiles_3(t, ahead);
        }
        break;
    case 4:
        if (ETC_NV == 4) {
            etc_tiles_4(t, ahead);
        }
        break;
    default:
        break;
    }
}

ETC_INLINE void etc_block(const EtcBlock *t)
{
    etc_block_before(t, 0);
}

/* Packs b[k][n] into panel[k][width].  Columns n .. width - 1 become zero. */
ETC_INLINE void etc_pack_rows(const float *b, int64_t b_row, int64_t k, int64_t n, float *panel,
                              int64_t width)
{
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < width; j += ETC_LANES) {
            etc_storeu(panel + (i * width) + j, etc_load(b + (i * b_row) + j, n - j));
        }
    }
}

/* Returns the columns of the next panel if `left` columns are left.  The vectors are divided evenly
 * among the panels. */
ETC_INLINE int64_t etc_panel(int64_t left)
{
    const size_t n = (size_t)left, vectors = (n + ETC_LANES - 1) / ETC_LANES;
    const size_t panels = (vectors + ETC_NV - 1) / ETC_NV;
    const size_t width = ((vectors + panels - 1) / panels) * ETC_LANES;
    return (int64_t)((width < n) ? width : n);
}

#endif
