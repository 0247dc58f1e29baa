/* across.h -- convolutions whose vectors hold output channels.
 *
 * A tile is a few pixels of a row by one to three vectors of channels.  One float of x is broadcast
 * and multiplied by a vector of adjacent weights, so no panel of taps is packed: x is read in
 * place, or its rows are copied once.  The sums of the tiles of some rows are kept pixel by pixel
 * while their terms are added, and then become rows of the channels of y.  If the input channels are
 * added in several lots, the sums are kept in y between the lots.  Each sum adds its terms in the
 * order of conv.h, each with one fused multiply-add.
 */
#ifndef ETC_ACROSS_H
#define ETC_ACROSS_H

#include "runtime-lite/kernels/conv_geometry.h"
#include "runtime-lite/kernels/line.h"

/* -- the tile --------------------------------------------------------------------------------- */

/* The largest number of terms whose places in x are listed. */
#define ETC_PLACES 64

/* The weights are prefetched this many terms before they are used, unless slices (see ETC_SLICE) keep
 * them in the first-level cache. */
#define ETC_WEIGHTS_AHEAD 16

/* The floats of sums that are kept, at the start of the working memory. */
#define ETC_SUMS 2048

/* The floats of weights that all of these sums add before the next ones, so that these floats stay in
 * the first-level cache; half of them if x is read in place and has so few pixels that it may stay
 * there too.  Tiles for 32 registers read weights less often, and add all at once. */
#define ETC_SLICE 4096
#define ETC_SLICE_PIXELS 64

typedef struct EtcAcross {
    const float *w;   /* [terms][ETC_TOGETHER] */
    int64_t w_second; /* floats from w to the weights of the second vector */
    int64_t w_third;  /* and to those of the third */
    const float *x;   /* the input of the first pixel */
    int64_t x_half;   /* floats from x to the input of the first pixel of the tile's second half */
    int64_t steps;    /* how many times the listed terms are added */
    int64_t x_step;   /* floats of x from one step to the next */
    const int64_t *at; /* for each listed term, its offset from x in floats */
    int64_t n_at;      /* the number of listed terms */
    const float *ahead; /* weights that are prefetched into the second-level cache */
    float *sums; /* [pixels][vectors][ETC_LANES]: the initial sums, then the results */
} EtcAcross;

/* The most pixels of a tile of three vectors; 0: there are no such tiles.  If there are 16 registers,
 * widths are divided into such tiles with less waste than into tiles of two vectors. */
#define ETC_PIXELS3 ((ETC_PIXELS == 6) ? 4 : 0)

/* Two terms in one turn of the loop save 2 % of the time. */
#if defined(ETC_WIDE_FMA) && !defined(ETC_ISA_TABLE)
#define ETC_TWO_TERMS ETC_UNROLL_2
#else
#define ETC_TWO_TERMS
#endif

/* Adds all terms of a tile of n pixels by nv vectors.  n and nv are constants after inlining. */
ETC_INLINE void etc_across_tile(const EtcAcross *t, int n, int nv)
{
    EtcF acc[16][3];
    const float *w = t->w, *w2 = t->w + t->w_second, *w3 = t->w + t->w_third, *x = t->x;
    const int64_t *end = t->at + t->n_at;
    const float *ahead = t->ahead;
    const int64_t x_half = t->x_half;
    if (n > ((nv == 3) ? ETC_PIXELS3 : ETC_PIXELS)) {
        return; /* this instruction set has no such tile */
    }
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = etc_loadu(t->sums + (((r * nv) + v) * ETC_LANES));
        }
    }
    for (int64_t s = 0; s < t->steps; s++) {
        ETC_TWO_TERMS
        for (const int64_t *at = t->at; at < end; at++) {
            const float *first = x + *at, *second = first + x_half;
            const EtcF wv = etc_kept(etc_loadu(w)), wv2 = (nv >= 2) ? etc_kept(etc_loadu(w2)) : wv;
            const EtcF wv3 = (nv == 3) ? etc_kept(etc_loadu(w3)) : wv;
            if (ETC_REGISTERS == 32) {
                __builtin_prefetch(w + (ETC_WEIGHTS_AHEAD * ETC_TOGETHER));
                if ((nv == 2) && (ETC_LANES == ETC_TOGETHER)) {
                    __builtin_prefetch(w2 + (ETC_WEIGHTS_AHEAD * ETC_TOGETHER));
                }
                if (ETC_LANES > 4) {
                    __builtin_prefetch(ahead, 0, 2);
                    ahead += ETC_TOGETHER;
                }
            }
            ETC_UNROLL
            for (int r = 0; r < n; r++) {
                const EtcF xv = etc_splat((r < (n / 2)) ? first[r] : second[r - (n / 2)]);
                acc[r][0] = etc_fma(xv, wv, acc[r][0]);
                if (nv >= 2) {
                    acc[r][1] = etc_fma(xv, wv2, acc[r][1]);
                }
                if (nv == 3) {
                    acc[r][2] = etc_fma(xv, wv3, acc[r][2]);
                }
            }
            w += ETC_TOGETHER;
            w2 += ETC_TOGETHER;
            w3 += ETC_TOGETHER;
        }
        x += t->x_step;
    }
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            etc_storeu(t->sums + (((r * nv) + v) * ETC_LANES), acc[r][v]);
        }
    }
}

/* Calls etc_across_tile with n as a constant, for n from 1 to ETC_PIXELS. */
ETC_INLINE void etc_across_pixels(const EtcAcross *t, int64_t n, int nv)
{
    switch (n) {
    case 1:
        etc_across_tile(t, 1, nv);
        break;
    case 2:
        etc_across_tile(t, 2, nv);
        break;
    case 3:
        etc_across_tile(t, 3, nv);
        break;
    case 4:
        etc_across_tile(t, 4, nv);
        break;
    case 5:
        etc_across_tile(t, 5, nv);
        break;
    case 6:
        etc_across_tile(t, 6, nv);
        break;
    case 7:
        etc_across_tile(t, 7, nv);
        break;
    case 8:
        etc_across_tile(t, 8, nv);
        break;
    case 9:
        etc_across_tile(t, 9, nv);
        break;
    case 10:
        etc_across_tile(t, 10, nv);
        break;
    case 11:
        etc_across_tile(t, 11, nv);
        break;
    case 12:
        etc_across_tile(t, 12, nv);
        break;
    case 13:
        etc_across_tile(t, 13, nv);
        break;
    case 14:
        etc_across_tile(t, 14, nv);
        break;
    default:
        break;
    }
}

ETC_OUTLINE void etc_across_1(const EtcAcross *t, int64_t n)
{
    etc_across_pixels(t, n, 1);
}

ETC_OUTLINE void etc_across_2(const EtcAcross *t, int64_t n)
{
    etc_across_pixels(t, n, 2);
}

ETC_OUTLINE void etc_across_3(const EtcAcross *t, int64_t n)
{
    etc_across_pixels(t, n, 3);
}

/* Sets the sums of n pixels to the biases of their channels, or to 0 if bias is NULL. */
ETC_OUTLINE void etc_sums_start(const float *bias, int64_t n, int64_t nv, float *sums)
{
    for (int64_t v = 0; v < nv; v++) {
        const EtcF b = (bias != NULL) ? etc_loadu(bias + (v * ETC_LANES)) : etc_splat(0.0f);
        for (int64_t p = 0; p < n; p++) {
            etc_storeu(sums + (((p * nv) + v) * ETC_LANES), b);
        }
    }
}

/* Loads the sums of n pixels from y, whose planes are y_plane floats apart. */
ETC_OUTLINE void etc_sums_load(const float *y, int64_t y_plane, int64_t n, int64_t nv, float *sums)
{
    for (int64_t v = 0; v < nv; v++) {
        for (int64_t p = 0; p < n; p += ETC_LANES) {
            EtcF t[ETC_LANES];
            for (int i = 0; i < ETC_LANES; i++) {
                t[i] = etc_load(y + (((v * ETC_LANES) + i) * y_plane) + p, n - p);
            }
            etc_transpose(t);
            for (int i = 0; i < etc_min_i64(n - p, ETC_LANES); i++) {
                etc_storeu(sums + ((((p + i) * nv) + v) * ETC_LANES), t[i]);
            }
        }
    }
}

/* Clamps the sums of n pixels and stores them into y.  The last vector of pixels may overlap the one
 * before. */
ETC_OUTLINE void etc_sums_store(const float *sums, int64_t n, int64_t nv, float lo, float hi,
                                float *y, int64_t y_plane)
{
    const EtcF low = etc_splat(lo), high = etc_splat(hi);
    for (int64_t v = 0; v < nv; v++) {
        for (int64_t j = 0; j < n; j += ETC_LANES) {
            const int64_t p = etc_max_i64(etc_min_i64(j, n - ETC_LANES), 0);
            const float *from = sums + (((p * nv) + v) * ETC_LANES);
            EtcF t[ETC_LANES];
            for (int i = 0; i < ETC_LANES; i++) { /* lanes past the last pixel repeat it */
                t[i] = etc_at_most(etc_at_least(etc_loadu(from), low), high);
                from += ((p + i + 1) < n) ? (nv * ETC_LANES) : 0;
            }
            etc_transpose(t);
            for (int i = 0; i < ETC_LANES; i++) {
                etc_store(y + (((v * ETC_LANES) + i) * y_plane) + p, n - p, t[i]);
            }
        }
    }
}

/* -- planes of x ------------------------------------------------------------------------------ */

/* With fewer terms than this, transposing the sums at the start and the end costs more than the
 * tiles save. */
#define ETC_ACROSS_TERMS ((ETC_REGISTERS == 16) ? 24 : 100)

/* Images with at most this many pixels leave many lanes of a vector of pixels unused, and all of
 * their channels fit the second-level cache. */
#define ETC_FEW_PIXELS 256

/* Up to this many floats of weights stay in the second-level cache from one band of rows to the
 * next. */
#define ETC_NEAR_WEIGHTS 262144

/* This says how x is read.  Usually x is copied into one plane per channel, which holds `rows` padded rows
 * for each of the ny x nx phases of the stride.  If `in_place` is set, x is read where it is, and
 * all pixels count as one row. */
typedef struct EtcPlanes {
    int64_t ny, nx, rows, line; /* line: the floats of a row */
    int64_t plane;              /* floats from one channel to the next */
    int64_t lot, band;          /* channels of x and rows of y that are processed at a time */
    int64_t oh, ow;             /* the rows of y, and the pixels of a row */
    int64_t group, n_at;        /* channels whose terms are listed together; their terms */
    int64_t at[ETC_PLACES];
    int in_place;
} EtcPlanes;

/* Plans the planes that x is copied into.  A band has as many rows as the working memory holds for
 * all channels.  If there are more weights than ETC_NEAR_WEIGHTS, a lot may have fewer channels
 * instead, so that the weights are read again for fewer bands.  Returns whether one row fits. */
ETC_INLINE int etc_planes_fit(const EtcConv *g, EtcPlanes *p)
{
    const int64_t down = ((g->kh - 1) * g->dh) / g->sh, taps = g->kh * g->kw;
    const int64_t room = (ETC_WORK_BYTES / 4) - ETC_LANES - ETC_SUMS;
    const int64_t least = ((g->oc * g->ic * taps) <= ETC_NEAR_WEIGHTS) ? g->ic : ((256 / taps) + 1);
    p->ny = etc_min_i64(g->sh, ((g->kh - 1) * g->dh) + 1);
    p->nx = etc_min_i64(g->sw, ((g->kw - 1) * g->dw) + 1);
    p->line = g->ow + (((g->kw - 1) * g->dw) / g->sw);
    const int64_t row = p->ny * p->nx * p->line;
    p->band = (room / (etc_min_i64(least, g->ic) * row)) - down;
    p->band = etc_min_i64(etc_max_i64(p->band, 1), g->oh);
    const int64_t bands = (g->oh + p->band - 1) / p->band;
    p->band = (g->oh + bands - 1) / bands;
    p->rows = p->band + down;
    p->plane = row * p->rows;
    p->lot = etc_min_i64(room / p->plane, g->ic);
    return p->lot > 0;
}

/* Lists the terms of a group of channels.  The group is as large as fits and divides the number of
 * channels, so that each lot has a whole number of groups. */
ETC_INLINE void etc_planes_list(const EtcConv *g, EtcPlanes *p)
{
    const int64_t taps = g->kh * g->kw;
    p->group = etc_min_i64(ETC_PLACES / taps, p->lot);
    while ((g->ic % p->group) != 0) {
        p->group--;
    }
    p->lot -= p->lot % p->group;
    p->n_at = p->group * taps;
    for (int64_t ky = 0; ky < g->kh; ky++) {
        for (int64_t kx = 0; kx < g->kw; kx++) {
            const int64_t y = ky * g->dh, x = kx * g->dw;
            const int64_t phase = ((y % g->sh) * p->nx) + (x % g->sw);
            p->at[(ky * g->kw) + kx] = (((phase * p->rows) + (y / g->sh)) * p->line) + (x / g->sw);
        }
    }
    for (int64_t i = taps; i < p->n_at; i++) {
        p->at[i] = p->at[i - taps] + p->plane;
    }
}

/* Returns whether a convolution uses these tiles.  They compute all whole blocks of ETC_TOGETHER
 * output channels; the remaining channels are left to another kernel. */
ETC_INLINE int etc_is_across(const EtcConv *g, EtcPlanes *p)
{
    const int64_t taps = g->kh * g->kw, pixels = g->oh * g->ow;
    if ((ETC_PIXELS == 1) || (g->form != ETC_IN_BLOCKS) || (g->oc < ETC_TOGETHER) ||
        (taps > ETC_PLACES) || (taps < 1) || (g->ic < 1) || (pixels < 1)) {
        return 0;
    }
    p->in_place = (taps == 1) && (g->sh == 1) && (g->sw == 1) && (g->ph == 0) && (g->pw == 0);
    p->oh = g->oh;
    p->ow = g->ow;
    if (!p->in_place) {
        return ((g->ic * taps) >= ETC_ACROSS_TERMS) && etc_planes_fit(g, p);
    }
    p->oh = 1;
    p->ow = pixels;
    p->rows = 0;
    p->line = pixels;
    p->plane = g->x_plane;
    p->lot = g->ic;
    p->band = 1;
    p->ny = 1;
    p->nx = 1;
    return (pixels <= ETC_FEW_PIXELS) && ((4 * g->ic) >= (3 * pixels));
}

/* Copies the part of a channel that output rows oy .. oy + band - 1 read. */
ETC_INLINE void etc_plane_copy(const float *x, const EtcConv *g, const EtcPlanes *p, int64_t oy,
                               float *to)
{
    for (int64_t phase = 0; phase < (p->ny * p->nx); phase++) {
        int64_t iy = (oy * g->sh) - g->ph + (phase / p->nx);
        for (int64_t r = 0; r < p->rows; r++) {
            if ((iy < 0) || (iy >= g->ih)) {
                etc_fill(to, p->line, 0.0f);
            } else {
                etc_line(x + (iy * g->iw), g->iw, (phase % p->nx) - g->pw, g->sw, 0.0f, to, p->line,
                         p->line);
            }
            iy += g->sh;
            to += p->line;
        }
    }
}

/* Returns the vectors of channels of the next tiles, at most `most`, if `left` vectors are left. */
ETC_INLINE int64_t etc_across_vectors(int64_t left, int64_t most)
{
    return ((most == 3) && (left > 2) && (left != 4)) ? 3 : etc_min_i64(left, 2);
}

/* Holds the data that all tiles of some channels of a band share. */
typedef struct EtcBand {
    const float *x, *bias; /* the input of the first pixel; the biases of the channels, or NULL */
    float *y;
    int64_t nv;            /* vectors of channels */
    int is_first, is_last; /* whether the terms are the first, and the last, of the sums */
    const float *next;     /* the first block of weights after these that is far; NULL: none is */
    int64_t block;         /* floats from a block of weights to the next */
} EtcBand;

/* Adds all terms of t to the sums of `rows` rows of n pixels.  A tile covers two rows if these are
 * narrow.  Each of the first tiles prefetches one of the blocks of weights from `next` on. */
ETC_INLINE void etc_across_rows(EtcAcross *t, const EtcPlanes *p, const EtcBand *b, const float *x,
                                int64_t rows, int64_t n, const float *next, float *sums)
{
    const int64_t most = (b->nv == 3) ? ETC_PIXELS3 : ETC_PIXELS, tiles = (n + most - 1) / most;
    int64_t far_blocks = (next != NULL) ? b->nv : 0;
    for (int64_t r = 0, both; r < rows; r += both) {
        both = (((2 * n) <= most) && ((r + 1) < rows)) ? 2 : 1;
        for (int64_t j = 0, left = tiles, width; left > 0; left--, j += width) {
            width = (n - j + left - 1) / left;
            t->x = x + (r * p->line) + j;
            t->x_half = (both == 2) ? p->line : (width / 2);
            t->sums = sums + (((r * n) + j) * b->nv * ETC_LANES);
            t->ahead = t->w;
            if (far_blocks > 0) {
                t->ahead = next;
                next += b->block;
                far_blocks--;
            }
            if ((ETC_PIXELS3 > 0) && (b->nv == 3)) {
                etc_across_3(t, both * width);
            } else if (b->nv == 2) {
                etc_across_2(t, both * width);
            } else {
                etc_across_1(t, both * width);
            }
        }
    }
}

/* Does so, some terms at a time; see ETC_SLICE. */
ETC_INLINE void etc_across_slices(EtcAcross *t, const EtcPlanes *p, const EtcBand *b, const float *x,
                                  int64_t rows, int64_t n, const float *next, float *sums)
{
    const float *w = t->w;
    const int64_t steps = t->steps, terms = t->n_at * ETC_TOGETHER;
    const int64_t room = ((p->in_place != 0) && (n < ETC_SLICE_PIXELS)) ? (ETC_SLICE / 2) : ETC_SLICE;
    const int64_t slice = etc_max_i64(room / (t->n_at * b->nv * ETC_LANES), 1);
    if (ETC_REGISTERS == 32) {
        etc_across_rows(t, p, b, x, rows, n, next, sums);
        return;
    }
    for (int64_t s = 0; s < steps; s += t->steps) {
        t->steps = etc_min_i64(slice, steps - s);
        t->w = w + (s * terms);
        etc_across_rows(t, p, b, x + (s * t->x_step), rows, n,
                        (next != NULL) ? (next + (s * terms)) : NULL, sums);
    }
    t->w = w;
    t->steps = steps;
}

/* Computes the channels of n rows: as many rows at a time as have their sums in `sums`, or a part of
 * a wide row. */
ETC_OUTLINE void etc_across_band(EtcAcross *t, const EtcConv *g, const EtcPlanes *p, const EtcBand *b,
                                int64_t n, float *sums)
{
    const float lo = (b->is_last != 0) ? g->lo : -__builtin_inff();
    const float hi = (b->is_last != 0) ? g->hi : __builtin_inff();
    const int64_t most = ETC_SUMS / (b->nv * ETC_LANES), parts = (p->ow + most - 1) / most;
    const int64_t rows = etc_max_i64(most / p->ow, 1), width = (p->ow + parts - 1) / parts;
    for (int64_t r = 0; r < n; r += rows) {
        for (int64_t j = 0; j < p->ow; j += width) {
            const int64_t high = etc_min_i64(rows, n - r), wide = etc_min_i64(width, p->ow - j);
            float *to = b->y + (r * p->ow) + j;
            if (b->is_first != 0) {
                etc_sums_start(b->bias, high * wide, b->nv, sums);
            } else {
                etc_sums_load(to, g->y_plane, high * wide, b->nv, sums);
            }
            etc_across_slices(t, p, b, b->x + (r * p->line) + j, high, wide,
                              ((r + j) == 0) ? b->next : NULL, sums);
            etc_sums_store(sums, high * wide, b->nv, lo, hi, to, g->y_plane);
        }
    }
}

/* Convolves one image and group.  `work` has ETC_WORK_BYTES. */
ETC_INLINE void etc_conv_across(const float *x, const float *w, const float *bias, float *y,
                                const EtcConv *g, EtcPlanes *p, float *work)
{
    float *planes = work + ETC_SUMS;
    const int64_t taps = g->kh * g->kw, depth = g->ic * taps;
    const int64_t whole = g->oc - (g->oc % ETC_TOGETHER);
    etc_planes_list(g, p);
    for (int64_t oy = 0; oy < p->oh; oy += p->band) {
        const int64_t n = etc_min_i64(p->band, p->oh - oy);
        for (int64_t c = 0; c < g->ic; c += p->lot) {
            const int64_t lot = etc_min_i64(p->lot, g->ic - c);
            EtcAcross t = {w, 0, ETC_TOGETHER * depth, x, 0, lot / p->group, p->group * p->plane,
                           p->at, p->n_at, w, NULL};
            for (int64_t i = 0; (p->in_place == 0) && (i < lot); i++) {
                etc_plane_copy(x + ((c + i) * g->x_plane), g, p, oy, planes + (i * p->plane));
            }
            for (int64_t i = 0, nv; i < whole; i += nv * ETC_LANES) {
                nv = etc_across_vectors((whole - i) / ETC_LANES, (ETC_PIXELS3 > 0) ? 3 : 2);
                const int64_t next = (i + (nv * ETC_LANES) + ETC_TOGETHER - 1) / ETC_TOGETHER;
                const int is_far = (oy == 0) && ((next * ETC_TOGETHER) < whole);
                const float *lot_w = w + (c * taps * ETC_TOGETHER);
                t.w = lot_w + ((i / ETC_TOGETHER) * t.w_third) + (i % ETC_TOGETHER);
                t.w_second = (((i % ETC_TOGETHER) + ETC_LANES) < ETC_TOGETHER)
                                 ? ETC_LANES
                                 : (t.w_third - (i % ETC_TOGETHER));
                const EtcBand b = {(p->in_place != 0) ? x : planes,
                                   (bias != NULL) ? (bias + i) : NULL,
                                   y + (i * g->y_plane) + (oy * p->ow), nv, c == 0,
                                   (c + lot) == g->ic,
                                   (is_far != 0) ? (lot_w + (next * t.w_third)) : NULL, t.w_third};
                etc_across_band(&t, g, p, &b, n, work);
            }
        }
    }
}

#endif
