/* integer_panel.h -- packing of pixels of 8-bit images into the columns of a panel. */
#ifndef ETC_INTEGER_PANEL_H
#define ETC_INTEGER_PANEL_H

#include "runtime-lite/kernels/conv.h"
#include "runtime-lite/kernels/integer.h"

/* The width of a tile in vectors; the rows of a tile that is one, two, three, or
 * ETC_INTEGER_NV vectors wide.  (With ETC_DOT_LANES, a vector of each row's weights needs a
 * register, too.) */
#define ETC_INTEGER_NV ((ETC_REGISTERS == 32) ? 4 : 2)
#define ETC_INTEGER_MR1 ((ETC_REGISTERS == 32) ? 12 : 8)
#define ETC_INTEGER_MR2 ((ETC_REGISTERS == 32) ? ((ETC_DOT_LANES != 0) ? 8 : 12) : 4)
#define ETC_INTEGER_MR3 ((ETC_DOT_LANES != 0) ? 4 : 8)
#define ETC_INTEGER_MR (((ETC_REGISTERS >= 16) && (ETC_DOT_LANES == 0)) ? 6 : 4)

/* LEAST: the pixels of a panel with many terms.  PANEL: the most pixels of a panel with few terms.
 * RUNS: the most image rows that the pixels of a panel come from.  FEW: the bytes of a panel with
 * few terms.  ROOM: the bytes of `work` that a panel may use.  HALF: the bytes of `work` for the
 * panel if not all terms fit; the sums use the rest. */
#define ETC_INTEGER_LEAST ((ETC_VEC == 64) ? 64 : 48)
#define ETC_INTEGER_PANEL 256
#define ETC_INTEGER_RUNS 64
#define ETC_INTEGER_FEW (ETC_WORK_BYTES / 4)
#define ETC_INTEGER_ROOM (ETC_WORK_BYTES / 8 * 7)
#define ETC_INTEGER_HALF (ETC_WORK_BYTES / 2)

ETC_INLINE EtcU etc_line_lanes(const uint8_t *p)
{
    return (EtcU)etc_widen(etc_load_bytes(p, ETC_LANES));
}

/* Returns a word with `byte` in each of its terms. */
ETC_INLINE uint32_t etc_each_term(uint8_t byte, int64_t terms)
{
    return (uint32_t)byte * ((terms == 4) ? 0x01010101u : 0x00010001u);
}

/* Interleaves `terms` lines of bytes, 2 or 4: each word of the result has one pixel's terms.  `flip`
 * flips the bits of each byte. */
ETC_INLINE void etc_interleave(const uint8_t *const line[4], int64_t terms, int64_t width, uint8_t flip,
                               uint32_t *to)
{
    int64_t from = 0;
    for (; (terms == 4) && ((from + 16) <= width); from += 16) {
        if (etc_weave(line, from, flip, to) == 0) {
            break;
        }
    }
    const uint32_t turn = etc_each_term(flip, terms);
    for (int64_t i = from; (terms == 4) && (i < width); i += ETC_LANES) {
        const EtcU low = etc_line_lanes(line[0] + i) | (etc_line_lanes(line[1] + i) << 8);
        const EtcU high = etc_line_lanes(line[2] + i) | (etc_line_lanes(line[3] + i) << 8);
        *(EtcIAnywhere *)(void *)(to + i) = (EtcI)((low | (high << 16)) ^ turn);
    }
    for (int64_t i = from; (terms == 2) && (i < width); i += ETC_LANES) {
        const EtcU v = etc_line_lanes(line[0] + i) | (etc_line_lanes(line[1] + i) << 16);
        *(EtcIAnywhere *)(void *)(to + i) = (EtcI)(v ^ turn);
    }
}

/* The place of a term: its channel, the plane of that, and its row and column in the kernel. */
typedef struct EtcTap {
    const uint8_t *plane;
    int64_t channel, ky, kx;
    int64_t together, left; /* the channels that a tap has side by side, and those from this one on */
} EtcTap;

/* Returns the number of a channel's weights. */
ETC_INLINE int64_t etc_integer_depth(const EtcConv *g)
{
    return ((g->form == ETC_IN_QUADS) ? ((g->ic + 3) / 4 * 4) : g->ic) * g->kh * g->kw;
}

/* Returns the place of weight k of a channel. */
ETC_INLINE EtcTap etc_tap_at(const uint8_t *x, const EtcConv *g, int64_t k)
{
    const int64_t taps = g->kh * g->kw;
    const int64_t n = (g->form == ETC_IN_QUADS) ? (4 * etc_quads_together((g->ic + 3) / 4)) : 1;
    const int64_t channel = (k / (n * taps) * n) + (k % n), at = (k / n) % taps;
    const EtcTap t = {x + (channel * g->x_plane), channel, at / g->kw, at % g->kw, n, n - (k % n)};
    return t;
}

/* Moves to the next weight of the channel. */
ETC_INLINE void etc_tap_next(EtcTap *t, const EtcConv *g)
{
    int64_t step = 1;
    if (g->form == ETC_IN_QUADS) {
        step = t->together;
        t->left--;
        t->channel++;
        t->plane += g->x_plane;
        if (t->left > 0) {
            return;
        }
        t->left = step;
        t->channel -= step;
        t->plane -= step * g->x_plane;
    }
    t->kx++;
    if (t->kx == g->kw) {
        t->kx = 0;
        t->ky++;
    }
    if (t->ky == g->kh) {
        t->ky = 0;
        t->channel += step;
        t->plane += step * g->x_plane;
    }
}

/* Copies one term of the pixels in the runs. */
ETC_INLINE void etc_byte_taps(const EtcTap *t, const EtcConv *g, const EtcRun *run, int n_runs,
                              uint8_t pad, uint8_t *line)
{
    for (int r = 0; r < n_runs; r++) {
        const int64_t iy = run[r].iy + (t->ky * g->dh);
        const int is_inside = (iy >= 0) && (iy < g->ih);
        etc_byte_line(is_inside ? (t->plane + (iy * g->iw)) : t->plane, is_inside ? g->iw : 0,
                      run[r].ix + (t->kx * g->dw), g->sw, pad, line + run[r].column, run[r].n);
    }
}

/* Copies one term of n pixels, which begin at the first run, if x and y have equally wide rows and
 * the stride is 1.  Then the pixels are one run of x, apart from columns outside its rows. */
ETC_INLINE void etc_byte_shift(const EtcTap *t, const EtcConv *g, const EtcRun *run, int64_t n,
                               uint8_t pad, uint8_t *line)
{
    const int64_t dx = (t->kx * g->dw) - g->pw;
    const int64_t at = ((run->iy + (t->ky * g->dh)) * g->iw) + run->ix + (t->kx * g->dw);
    const int64_t from = etc_min_i64(etc_max_i64(-at, 0), n);
    const int64_t to = etc_min_i64(etc_max_i64((g->ih * g->iw) - at, from), n);
    etc_byte_fill(line, pad, from);
    etc_byte_copy(t->plane + at + from, line + from, to - from);
    etc_byte_fill(line + to, pad, n - to);
    const int64_t first = etc_max_i64((dx < 0) ? 0 : (g->iw - dx), 0);
    const int64_t last = etc_min_i64((dx < 0) ? -dx : g->iw, g->iw);
    for (int64_t column = first; column < last; column++) {
        const int64_t i = column - (run->ix + g->pw);
        for (int64_t c = (i < 0) ? (i + g->iw) : i; c < n; c += g->iw) {
            line[c] = pad;
        }
    }
}

/* Packs terms k0 .. k0 + n_k - 1 of pixels j .. j + n - 1 into the panel, `terms` in a word. */
ETC_OUTLINE void etc_integer_pack(const uint8_t *x, const EtcConv *g, int64_t terms, int64_t k0,
                                  int64_t n_k, int64_t j, int64_t n, const EtcInteger *q, uint32_t *panel)
{
    uint8_t bytes[4][ETC_INTEGER_PANEL];
    const uint8_t *line[4];
    EtcRun run[ETC_INTEGER_RUNS];
    const int64_t width = ((n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
    const uint8_t pad = (uint8_t)etc_x_zero(q, 0), flip = etc_x_flip(q);
    const int is_1x1 = ((g->kh * g->kw) == 1) && (g->sh == 1) && (g->sw == 1) && (g->ph == 0) &&
                       (g->pw == 0);
    const int is_even = (g->sh == 1) && (g->sw == 1) && (g->ow == g->iw);
    const int n_runs = is_1x1 ? 0 : etc_runs(g, j, n, width, run);
    for (int t = 0; t < terms; t++) { /* zeros fill up the last vector */
        __builtin_memset(bytes[t] + width - ETC_LANES, 0, ETC_LANES);
    }
    EtcTap tap = etc_tap_at(x, g, k0);
    for (int64_t k = 0; k < n_k; k += terms) {
        for (int64_t t = 0; t < terms; t++) {
            line[t] = bytes[t];
            if (((k + t) >= n_k) || (tap.channel >= g->ic)) { /* w is 0 there */
                __builtin_memset(bytes[t], 0, (size_t)width);
            } else if (is_1x1 && (n == width)) {
                line[t] = tap.plane + j;
            } else if (is_1x1) {
                etc_byte_copy(tap.plane + j, bytes[t], n);
            } else if (is_even) {
                etc_byte_shift(&tap, g, run, n, pad, bytes[t]);
            } else {
                etc_byte_taps(&tap, g, run, n_runs, pad, bytes[t]);
            }
            etc_tap_next(&tap, g);
        }
        etc_interleave(line, terms, width, flip, panel + ((k / terms) * width));
    }
}

/* 1: weights may be in quads.  Emitted C defines this if some are. */
#if !defined(ETC_HAS_QUADS)
#define ETC_HAS_QUADS 0
#endif

/* 1: etc_integer_quads is the fastest way to convolve with weights in quads. */
#define ETC_QUADS (((ETC_TERMS == 4) && (ETC_DOT_LANES == 0)) || (ETC_DOTS_BOUNDED != 0))

#define ETC_QUAD_TAPS 64
#define ETC_QUAD_WORDS 2048

/* Input rows of a band of output rows, as pictures (see integer_depthwise.h) of words: a word has
 * two or four channels of a pixel.  Tap t of output (oy, ox) of the band is the word offset[t] behind word
 * oy * pitch + ox of each picture. */
typedef struct EtcQuads {
    uint32_t *data;             /* [count][phases y][phases x][size] */
    int64_t terms, count;       /* the channels of a word; the words of a pixel */
    int64_t down, across;       /* the phases of rows and columns that taps read */
    int64_t pitch, under, size; /* words from row to row; rows and words of a picture */
    int64_t shared;             /* words of the border that two rows share */
    int64_t width;              /* words of the band's output rows, whole vectors */
    int64_t offset[ETC_QUAD_TAPS];
} EtcQuads;

/* Sets the sizes of bands of `rows` rows.  Returns the words of all pictures, and those that a vector
 * reads past their end.  With a stride of 1, the border right of a row and that left of the next row
 * share their words. */
ETC_INLINE int64_t etc_quads_of(const EtcConv *g, int64_t rows, EtcQuads *b)
{
    const int64_t last_y = (g->kh - 1) * g->dh, last_x = (g->kw - 1) * g->dw;
    const int64_t right = g->ow + last_x - g->pw - g->iw; /* columns of the border, if positive */
    b->shared = (g->sw == 1) ? etc_max_i64(etc_min_i64(g->pw, right), 0) : 0;
    b->count = (g->ic + 3) / 4 * (4 / b->terms);
    b->down = etc_min_i64(g->sh, last_y + 1);
    b->across = etc_min_i64(g->sw, last_x + 1);
    b->pitch = g->ow + (last_x / g->sw) - b->shared;
    b->under = rows + (last_y / g->sh);
    b->size = b->under * b->pitch;
    b->width = ((((rows - 1) * b->pitch) + g->ow + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
    return (b->count * b->down * b->across * b->size) + b->shared + ETC_LANES;
}

/* Sets the offsets of the taps, once the sizes are set. */
ETC_INLINE void etc_quads_offsets(const EtcConv *g, EtcQuads *b)
{
    for (int64_t t = 0; t < (g->kh * g->kw); t++) {
        const int64_t y = (t / g->kw) * g->dh, x = (t % g->kw) * g->dw;
        b->offset[t] = ((((y % g->sh) * b->across) + (x % g->sw)) * b->size) +
                       ((y / g->sh) * b->pitch) + (x / g->sw);
    }
}

ETC_INLINE void etc_fill_words(uint32_t *to, uint32_t word, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        to[i] = word;
    }
}

/* Interleaves n pixels of `terms` channels, which are x_plane apart, or of fewer. */
ETC_INLINE void etc_quads_pixels(const uint8_t *x, int64_t terms, int64_t channels, int64_t x_plane,
                                 int64_t n, uint8_t flip, uint32_t *to)
{
    uint8_t few[4][ETC_LANES] = {{0}};
    const uint8_t *line[4] = {x, x, x, x};
    for (int64_t c = 0; c < terms; c++) {
        line[c] = x + ((c < channels) ? (c * x_plane) : 0);
        if (n < ETC_LANES) {
            etc_byte_copy(line[c], few[c], n);
            line[c] = few[c];
        }
    }
    etc_interleave(line, terms, etc_max_i64(n / ETC_LANES, 1) * ETC_LANES, flip, to);
    if ((n > ETC_LANES) && ((n % ETC_LANES) != 0)) { /* the last vector overlaps that before */
        for (int64_t c = 0; c < terms; c++) {
            line[c] += n - ETC_LANES;
        }
        etc_interleave(line, terms, ETC_LANES, flip, to + n - ETC_LANES);
    }
}

/* Writes a row of a picture, which begins in column ix, from a row of words. */
ETC_INLINE void etc_quads_row(const uint32_t *row, int64_t ix, const EtcConv *g, int64_t pitch,
                              uint32_t border, uint32_t *to)
{
    const int64_t left = (ix < 0) ? etc_min_i64(etc_steps(g->sw - 1 - ix, g->sw), pitch) : 0;
    const int64_t at = ix + (left * g->sw);
    const int64_t inside = (at < g->iw) ? etc_steps(g->iw - at + g->sw - 1, g->sw) : 0;
    const int64_t n = etc_min_i64(inside, pitch - left);
    const float *x = (const float *)(const void *)(row + at);
    float *y = (float *)(void *)(to + left);
    const int64_t reach = ((n - 1) * g->sw) + 1;
    etc_fill_words(to, border, left);
    for (int64_t i = 0; (g->sw <= 2) && (i < n); i += ETC_LANES) {
        EtcF v = etc_load(x + (i * g->sw), reach - (i * g->sw));
        if (g->sw == 2) {
            v = etc_even(v, etc_load(x + (2 * i) + ETC_LANES, reach - (2 * i) - ETC_LANES));
        }
        etc_store(y + i, n - i, v);
    }
    for (int64_t i = 0; (g->sw > 2) && (i < n); i++) {
        to[left + i] = row[at + (i * g->sw)];
    }
    etc_fill_words(to + left + n, border, pitch - left - n);
}

/* Writes the rows of the pictures of a word that are inside the image.  Row `top` of the image
 * is the first of the pictures. */
ETC_INLINE void etc_quads_inside(const uint8_t *x, int64_t channels, int64_t top, const EtcConv *g,
                                 const EtcQuads *b, uint8_t flip, uint32_t border, uint32_t *to)
{
    uint32_t words[ETC_QUAD_WORDS];
    const int64_t first = etc_max_i64(top, 0), last = etc_min_i64(top + (b->under * g->sh), g->ih);
    const int64_t most = (ETC_QUAD_WORDS - ETC_LANES) / g->iw;
    int64_t r = (first - top) / g->sh, py = (first - top) % g->sh;
    for (int64_t iy = first; iy < last; iy += most) {
        const int64_t n = etc_min_i64(last - iy, most);
        etc_quads_pixels(x + (iy * g->iw), b->terms, channels, g->x_plane, n * g->iw, flip, words);
        for (const uint32_t *row = words; row < (words + (n * g->iw)); row += g->iw) {
            for (int64_t px = 0; (py < b->down) && (px < b->across); px++) {
                etc_quads_row(row, px - g->pw, g, b->pitch, border,
                              to + (((py * b->across) + px) * b->size) + (r * b->pitch));
            }
            py++;
            if (py == g->sh) {
                py = 0;
                r++;
            }
        }
    }
}

/* Writes the pictures of the output rows from oy on. */
ETC_OUTLINE void etc_quads_pack(const uint8_t *x, const EtcConv *g, int64_t oy, const EtcInteger *q,
                                const EtcQuads *b)
{
    const uint8_t flip = etc_x_flip(q);
    const uint32_t border = etc_each_term((uint8_t)etc_x_zero(q, 0) ^ flip, b->terms);
    const int64_t top = (oy * g->sh) - g->ph, size = b->across * b->size;
    uint32_t *to = b->data;
    for (int64_t c = 0; c < (b->count * b->terms); c += b->terms, to += b->down * size) {
        const int64_t first = etc_min_i64(c, g->ic - 1); /* weights of other channels are 0 */
        for (int64_t py = 0; py < b->down; py++) {
            for (int64_t r = 0; r < b->under; r++) {
                const int64_t iy = top + (r * g->sh) + py;
                for (int64_t px = 0; ((iy < 0) || (iy >= g->ih)) && (px < b->across); px++) {
                    etc_fill_words(to + (py * size) + (px * b->size) + (r * b->pitch), border,
                                   b->pitch);
                }
            }
        }
        etc_quads_inside(x + (first * g->x_plane), g->ic - first, top, g, b, flip, border, to);
    }
    etc_fill_words(to, border, b->shared); /* no row follows the last */
}

#endif
