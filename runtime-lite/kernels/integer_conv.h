/* integer_conv.h -- convolutions of 8-bit integers, as products of weights and panels. */
#ifndef ETC_INTEGER_CONV_H
#define ETC_INTEGER_CONV_H

#include "runtime-lite/kernels/integer_depthwise.h"
#include "runtime-lite/kernels/integer_panel.h"

/* Sums of some channels by some pixels, over terms k .. k + n_k - 1. */
typedef struct EtcIntegerBlock {
    const int8_t *w; /* of the first channel and term */
    int64_t w_row;
    const uint32_t *panel; /* [n_k / ETC_TERMS][width]: ETC_TERMS terms of a pixel side by side */
    int32_t *sums;         /* [channel][width] */
    int64_t m, n_k, width;
    int is_first;    /* sums start from `start` of their channel, else from what is there */
    int64_t channel; /* the first */
} EtcIntegerBlock;

/* Terms whose weights are widened at a time, where an instruction adds two. */
#define ETC_WIDE 128

/* A row of the panel meets a word of each channel's weights. */
ETC_INLINE void etc_integer_add(const uint32_t *panel, const uint32_t word[16], int mr, int nv,
                                EtcI acc[16][4])
{
    EtcI xv[4];
    ETC_UNROLL
    for (int v = 0; v < nv; v++) {
        xv[v] = *(const EtcIAnywhere *)(const void *)(panel + (v * ETC_LANES));
    }
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        const EtcI wv = etc_splat_i32((int32_t)word[r]);
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = etc_dot(acc[r][v], xv[v], wv);
        }
    }
}

/* Sums of rows i .. and some columns start from what they are, or from `start` of their channel. */
ETC_INLINE void etc_integer_from(const EtcIntegerBlock *t, const int32_t *sums, int64_t i, int mr,
                                 int nv, int is_first, const EtcInteger *q, EtcI acc[16][4])
{
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        const EtcI start = etc_splat_i32(etc_integer_start(q, t->channel + i + r, 0));
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = start;
            if (is_first == 0) {
                acc[r][v] = *(const EtcIAnywhere *)(sums + (r * t->width) + (v * ETC_LANES));
            }
        }
    }
}

ETC_INLINE void etc_integer_to(const EtcIntegerBlock *t, int32_t *sums, int mr, int nv,
                               EtcI acc[16][4])
{
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            *(EtcIAnywhere *)(sums + (r * t->width) + (v * ETC_LANES)) = acc[r][v];
        }
    }
}

#if ETC_TERMS == 4
ETC_INLINE void etc_integer_tile(const EtcIntegerBlock *t, int64_t i, int mr, int nv,
                                 const EtcInteger *q)
{
    const int8_t *w = t->w + (i * t->w_row);
    const uint32_t *panel = t->panel;
    EtcI acc[16][4];
    uint32_t word[16];
    int64_t k = 0;
    etc_integer_from(t, t->sums + (i * t->width), i, mr, nv, t->is_first, q, acc);
    for (; (k + 4) <= t->n_k; k += 4) {
        ETC_UNROLL
        for (int r = 0; r < mr; r++) {
            word[r] = *(const EtcWord *)(const void *)(w + (r * t->w_row) + k);
        }
        etc_integer_add(panel, word, mr, nv, acc);
        panel += t->width;
    }
    if (k < t->n_k) {
        for (int r = 0; r < mr; r++) {
            word[r] = 0;
            for (int64_t b = k; b < t->n_k; b++) {
                word[r] |= (uint32_t)(uint8_t)w[(r * t->w_row) + b] << (8 * (b - k));
            }
        }
        etc_integer_add(panel, word, mr, nv, acc);
    }
    etc_integer_to(t, t->sums + (i * t->width), mr, nv, acc);
}

ETC_INLINE void etc_integer_tiles(const EtcIntegerBlock *t, int mr, int nv, const EtcInteger *q)
{
    int64_t i = 0;
    for (; (i + mr) <= t->m; i += mr) {
        etc_integer_tile(t, i, mr, nv, q);
    }
    for (; (mr > 4) && ((i + 4) <= t->m); i += 4) {
        etc_integer_tile(t, i, 4, nv, q);
    }
    for (; i < t->m; i++) {
        etc_integer_tile(t, i, 1, nv, q);
    }
}

ETC_OUTLINE void etc_integer_tiles_1(const EtcIntegerBlock *t, const EtcInteger *q)
{
    etc_integer_tiles(t, ETC_INTEGER_MR1, 1, q);
}

ETC_OUTLINE void etc_integer_tiles_2(const EtcIntegerBlock *t, const EtcInteger *q)
{
    etc_integer_tiles(t, ETC_INTEGER_MR2, 2, q);
}

#if ETC_INTEGER_NV == 4
ETC_OUTLINE void etc_integer_tiles_3(const EtcIntegerBlock *t, const EtcInteger *q)
{
    etc_integer_tiles(t, 8, 3, q);
}

ETC_OUTLINE void etc_integer_tiles_4(const EtcIntegerBlock *t, const EtcInteger *q)
{
    etc_integer_tiles(t, 6, 4, q);
}
#endif

ETC_INLINE void etc_integer_block(const EtcIntegerBlock *t, const EtcInteger *q)
{
    switch (t->width / ETC_LANES) {
    case 1:
        etc_integer_tiles_1(t, q);
        break;
    case 2:
        etc_integer_tiles_2(t, q);
        break;
#if ETC_INTEGER_NV == 4
    case 3:
        etc_integer_tiles_3(t, q);
        break;
    case 4:
        etc_integer_tiles_4(t, q);
        break;
#endif
    default:
        break;
    }
}
#else
/* n terms from k on of rows i .., widened, meet nv vectors of columns from c on. */
ETC_INLINE void etc_integer_tile(const EtcIntegerBlock *t, int16_t wide[16][ETC_WIDE], int64_t k,
                                 int64_t n, int64_t i, int64_t c, int mr, int nv,
                                 const EtcInteger *q)
{
    const uint32_t *panel = t->panel + ((k / 2) * t->width) + c;
    int32_t *sums = t->sums + (i * t->width) + c;
    EtcI acc[16][4];
    uint32_t word[16];
    etc_integer_from(t, sums, i, mr, nv, (t->is_first != 0) && (k == 0), q, acc);
    for (int64_t b = 0; b < n; b += 2) {
        ETC_UNROLL
        for (int r = 0; r < mr; r++) {
            word[r] = *(const EtcWord *)(const void *)&wide[r][b];
        }
        etc_integer_add(panel, word, mr, nv, acc);
        panel += t->width;
    }
    etc_integer_to(t, sums, mr, nv, acc);
}

/* Rows i .. i + mr - 1; what is widened serves all columns. */
ETC_INLINE void etc_integer_row_tiles(const EtcIntegerBlock *t, int64_t i, int mr,
                                      const EtcInteger *q)
{
    int16_t wide[16][ETC_WIDE];
    for (int64_t k = 0; k < t->n_k; k += ETC_WIDE) {
        const int64_t n = etc_min_i64(t->n_k - k, ETC_WIDE);
        for (int r = 0; r < mr; r++) {
            const int8_t *w = t->w + ((i + r) * t->w_row) + k;
            for (int64_t b = 0; b < n; b += ETC_TERM_BYTES) {
                const EtcI v = etc_w_terms(etc_term_bytes(w + b, n - b));
                __builtin_memcpy(&wide[r][b], &v, sizeof v);
            }
        }
        int64_t c = 0;
        for (; (c + (ETC_INTEGER_NV * ETC_LANES)) <= t->width; c += ETC_INTEGER_NV * ETC_LANES) {
            etc_integer_tile(t, wide, k, n, i, c, mr, ETC_INTEGER_NV, q);
        }
        for (; c < t->width; c += ETC_LANES) {
            etc_integer_tile(t, wide, k, n, i, c, mr, 1, q);
        }
    }
}

ETC_OUTLINE void etc_integer_block(const EtcIntegerBlock *t, const EtcInteger *q)
{
    int64_t i = 0;
    for (; (i + ETC_INTEGER_MR) <= t->m; i += ETC_INTEGER_MR) {
        etc_integer_row_tiles(t, i, ETC_INTEGER_MR, q);
    }
    for (; i < t->m; i++) {
        etc_integer_row_tiles(t, i, 1, q);
    }
}
#endif

/* One image and group; `at`: its first element in y. */
ETC_INLINE void etc_integer_product(const uint8_t *x, const int8_t *w, void *y, int64_t at,
                                    int64_t channel, const EtcConv *g, const EtcInteger *q,
                                    void *work)
{
    const int64_t depth = g->ic * g->kh * g->kw, pixels = g->oh * g->ow;
    const int64_t rows = (depth + ETC_TERMS - 1) / ETC_TERMS; /* of the panel */
    const int64_t all = (pixels + ETC_LANES - 1) / ETC_LANES;
    const int64_t vectors = etc_max_i64(etc_min_i64(all, ETC_INTEGER_VECTORS), 1);
    const int fits = (rows * vectors) <= (ETC_INTEGER_ROOM / ETC_VEC);
    const int64_t block = fits ? depth : ((ETC_INTEGER_HALF / ETC_VEC / vectors) * ETC_TERMS);
    uint32_t *panel = (uint32_t *)work;
    const int64_t panels = (all + vectors - 1) / vectors; /* evened out */
    const int64_t most = ((all + panels - 1) / panels) * ETC_LANES;
    for (int64_t j = 0; j < pixels; j += most) {
        const int64_t n = etc_min_i64(pixels - j, most);
        EtcIntegerBlock t = {w, depth, panel, NULL, 0, 0, 0, 1, 0};
        t.width = ((n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
        const int64_t used = (block < depth) ? ETC_INTEGER_HALF : (rows * t.width * 4);
        t.sums = (int32_t *)(void *)((uint8_t *)work + used);
        const int64_t channels = (ETC_WORK_BYTES - used) / (t.width * 4); /* at a time */
        if (block >= depth) {
            etc_integer_pack(x, g, 0, depth, j, n, q, panel);
        }
        for (int64_t c = 0; c < g->oc; c += channels) {
            t.m = etc_min_i64(g->oc - c, channels);
            t.channel = channel + c;
            for (int64_t k = 0; k < depth; k += block) {
                t.n_k = etc_min_i64(depth - k, block);
                t.w = w + (c * depth) + k;
                t.is_first = k == 0;
                if (block < depth) {
                    etc_integer_pack(x, g, k, t.n_k, j, n, q, panel);
                }
                etc_integer_block(&t, q);
            }
            const EtcSums done = {
                t.sums, t.m, n, t.width, t.channel, 1, at + (c * g->y_plane) + j, g->y_plane};
            etc_integer_rows(&done, y, q);
        }
    }
}

/* y[n][groups * oc][oh][ow] of x and w[groups * oc][ic][kh][kw]; g's clamp is not read.
 * work: ETC_WORK_BYTES */
ETC_OUTLINE void etc_conv_i8(const void *x, const int8_t *w, void *y, const EtcConv *geometry,
                             const EtcInteger *q, void *work)
{
    EtcConv g = *geometry;
    g.x_plane = (g.x_plane != 0) ? g.x_plane : (g.ih * g.iw);
    g.y_plane = (g.y_plane != 0) ? g.y_plane : (g.oh * g.ow);
    const int64_t x_size = g.ic * g.x_plane, y_size = g.oc * g.y_plane;
    const int64_t w_size = g.oc * g.ic * g.kh * g.kw;
    if (etc_is_integer_depthwise(&g)) {
        etc_integer_depthwise((const uint8_t *)x, w, y, &g, q, work);
        return;
    }
    for (int64_t i = 0; i < (g.n * g.groups); i++) {
        const int64_t group = i % g.groups;
        etc_integer_product((const uint8_t *)x + (i * x_size), w + (group * w_size), y, i * y_size,
                            group * g.oc, &g, q, work);
    }
}

#endif
