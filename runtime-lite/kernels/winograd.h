/* winograd.h -- convolutions with a kernel of 3x3 and stride 1 by Winograd's F(2x2, 3x3).
 *
 * A tile is 2x2 pixels of y.  The 4x4 pixels d of x that it reads become 16 numbers by sums and
 * differences: v = B'd B.  The weights w were transformed when they were written: u = G w G'.  The
 * sums of v u over the channels of x are 16 matrix products, one for each number of a tile.  The
 * tile is A'm A of its 16 sums m.  So it takes 16 multiply-adds for two channels, not 36.  (Lavin
 * and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, has the matrices.)
 *
 * Some rows of tiles are computed at a time.  Each number is computed in one order, whatever the
 * size of vectors is, and however many rows and channels are computed at a time. */
#ifndef ETC_WINOGRAD_H
#define ETC_WINOGRAD_H

#include "runtime-lite/kernels/across.h"
#include "runtime-lite/kernels/parts.h"

/* The most channels of y whose sums are kept at a time. */
#define ETC_WINOGRAD_CHANNELS 64

/* The most tiles of a row whose pixels are stored at a time. */
#define ETC_WINOGRAD_TILES 8

typedef struct EtcWinograd {
    const EtcConv *g;
    int64_t tiles, rows;      /* the tiles of a row, and the rows of tiles at a time */
    int64_t line;             /* floats from a line to the next */
    int64_t v_plane, u_plane; /* floats from one of the 16 matrices to the next */
    float *lines;             /* [4][line]: four rows of x, added and subtracted */
    float *v;                 /* [16][ic][rows * tiles], with gaps between the matrices */
    float *m;                 /* [16][rows * tiles][channels] */
} EtcWinograd;

/* Adds and subtracts rows iy .. iy + 3 of a channel.  Rows outside of it are zeros. */
ETC_INLINE void etc_winograd_lines(const EtcWinograd *t, const float *x, int64_t iy)
{
    const EtcConv *g = t->g;
    const float *row[4];
    int64_t n[4];
    float *to = t->lines + g->pw;
    for (int64_t r = 0; r < 4; r++) {
        const int is_inside = ((iy + r) >= 0) && ((iy + r) < g->ih);
        row[r] = (is_inside != 0) ? (x + ((iy + r) * g->iw)) : x;
        n[r] = (is_inside != 0) ? g->iw : 0;
    }
    for (int64_t i = 0; i < g->iw; i += ETC_LANES) {
        const EtcF a = etc_load(row[0] + i, n[0] - i), b = etc_load(row[1] + i, n[1] - i);
        const EtcF c = etc_load(row[2] + i, n[2] - i), d = etc_load(row[3] + i, n[3] - i);
        const int64_t left = g->iw - i;
        etc_store(to + i, left, a - c);
        etc_store(to + t->line + i, left, b + c);
        etc_store(to + (2 * t->line) + i, left, c - b);
        etc_store(to + (3 * t->line) + i, left, b - d);
    }
}

/* Does the same along the lines, for a row of tiles. */
ETC_INLINE void etc_winograd_tiles(const EtcWinograd *t, float *v)
{
    for (int64_t i = 0; i < t->tiles; i += ETC_LANES) {
        const int64_t left = t->tiles - i;
        ETC_UNROLL
        for (int r = 0; r < 4; r++) {
            const float *from = t->lines + (r * t->line) + (2 * i);
            float *to = v + (4 * r * t->v_plane) + i;
            const EtcF first = etc_loadu(from), second = etc_loadu(from + ETC_LANES);
            const EtcF third = etc_loadu(from + 2), fourth = etc_loadu(from + 2 + ETC_LANES);
            const EtcF a = etc_even(first, second), b = etc_odd(first, second);
            const EtcF c = etc_even(third, fourth), d = etc_odd(third, fourth);
            etc_store(to, left, a - c);
            etc_store(to + t->v_plane, left, b + c);
            etc_store(to + (2 * t->v_plane), left, c - b);
            etc_store(to + (3 * t->v_plane), left, b - d);
        }
    }
}

/* Computes the pixels of some neighbouring tiles of a row for as many channels as a vector has.  m:
 * the sums of the first tile; pixels: their number in a row of y; n_rows: 1 or 2, those of y. */
ETC_INLINE void etc_winograd_pixels(const float *m, int64_t m_plane, int64_t m_row, EtcF bias,
                                    const EtcConv *g, int64_t pixels, int64_t n_rows, float *y)
{
    float sums[2][2 * ETC_WINOGRAD_TILES * ETC_LANES];
    for (int64_t i = 0; (2 * i) < pixels; i++) {
        EtcF up[4], down[4];
        float *first = sums[0] + (2 * i * ETC_LANES), *second = sums[1] + (2 * i * ETC_LANES);
        ETC_UNROLL
        for (int k = 0; k < 4; k++) {
            const float *from = m + (i * m_row) + (k * m_plane);
            const EtcF a = etc_loadu(from), b = etc_loadu(from + (4 * m_plane));
            const EtcF c = etc_loadu(from + (8 * m_plane)), d = etc_loadu(from + (12 * m_plane));
            up[k] = (a + b) + c;
            down[k] = (b - c) - d;
        }
        etc_storeu(first, ((up[0] + up[1]) + up[2]) + bias);
        etc_storeu(first + ETC_LANES, ((up[1] - up[2]) - up[3]) + bias);
        etc_storeu(second, ((down[0] + down[1]) + down[2]) + bias);
        etc_storeu(second + ETC_LANES, ((down[1] - down[2]) - down[3]) + bias);
    }
    for (int64_t r = 0; r < n_rows; r++) {
        etc_sums_store(sums[r], pixels, 1, g->lo, g->hi, y + (r * g->ow), g->y_plane);
    }
}

/* Computes the pixels of n rows of tiles, from row `first` on, for oc channels. */
ETC_INLINE void etc_winograd_output(const EtcWinograd *t, const float *bias, int64_t first,
                                    int64_t n, int64_t oc, float *y)
{
    const EtcConv *g = t->g;
    for (int64_t r = 0; r < n; r++) {
        const int64_t oy = 2 * (first + r), n_rows = etc_min_i64(2, g->oh - oy);
        for (int64_t c = 0; c < oc; c += ETC_LANES) {
            const EtcF start = (bias != NULL) ? etc_loadu(bias + c) : etc_splat(0.0f);
            for (int64_t i = 0; i < t->tiles; i += ETC_WINOGRAD_TILES) {
                etc_winograd_pixels(t->m + (((r * t->tiles) + i) * oc) + c, n * t->tiles * oc, oc,
                                    start, g, etc_min_i64(2 * ETC_WINOGRAD_TILES, g->ow - (2 * i)),
                                    n_rows, y + (c * g->y_plane) + (oy * g->ow) + (2 * i));
            }
        }
    }
}

/* Convolves one image. */
ETC_INLINE void etc_winograd_image(const EtcWinograd *t, const float *x, const float *u,
                                   const float *bias, float *y)
{
    const EtcConv *g = t->g;
    const int64_t all = (g->oh + 1) / 2;
    for (int64_t first = 0; first < all; first += t->rows) {
        const int64_t n = etc_min_i64(t->rows, all - first), tiles = n * t->tiles;
        for (int64_t i = 0; i < (g->ic * n); i++) {
            etc_winograd_lines(t, x + ((i / n) * g->x_plane), (2 * (first + (i % n))) - g->ph);
            etc_winograd_tiles(t, t->v + (i * t->tiles));
        }
        for (int64_t c = 0; c < g->oc; c += ETC_WINOGRAD_CHANNELS) {
            const int64_t oc = etc_min_i64(ETC_WINOGRAD_CHANNELS, g->oc - c);
            const EtcMatmul p = {tiles, oc, g->ic, 1, 0, -__builtin_inff(), __builtin_inff(),
                                 ETC_BY_BLOCKS, 0};
            for (int64_t k = 0; k < 16; k++) {
                etc_matmul_steps(t->v + (k * t->v_plane), tiles, u + (k * t->u_plane) + (c * g->ic),
                                 NULL, t->m + (k * tiles * oc), &p, oc);
            }
            etc_winograd_output(t, (bias != NULL) ? (bias + c) : NULL, first, n, oc,
                                y + (c * g->y_plane));
        }
    }
}

/* Computes a convolution, `rows` rows of tiles at a time.  oc is a multiple of ETC_TOGETHER.  u has
 * the transformed weights: 16 times [blocks][ic][ETC_TOGETHER], u_plane floats apart.  `work` has
 * ETC_WORK_BYTES, which are enough for the lines, and then room for v and m. */
ETC_OUTLINE void etc_winograd_f32(const float *x, const float *u, const float *bias, float *y,
                                  const EtcConv *geometry, int64_t rows, int64_t u_plane,
                                  void *work)
{
    EtcConv g = *geometry;
    g.x_plane = g.ih * g.iw;
    g.y_plane = g.oh * g.ow;
    const int64_t tiles = (g.ow + 1) / 2, line = (2 * tiles) + 2 + (2 * ETC_LANES);
    const int64_t v_plane = (rows * tiles * g.ic) + ETC_TOGETHER;
    float *v = (float *)(void *)((uint8_t *)work + ETC_WORK_BYTES);
    const EtcWinograd t = {&g, tiles, rows, line, v_plane, u_plane, (float *)work, v,
                           v + (16 * v_plane)};
    etc_fill(t.lines, 4 * line, 0.0f); /* what is left and right of a row stays so */
    for (int64_t i = 0; i < g.n; i++) {
        etc_winograd_image(&t, x + (i * g.ic * g.x_plane), u, bias, y + (i * g.oc * g.y_plane));
    }
}

#endif
