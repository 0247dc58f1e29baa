/* bfloat_tiles.h -- products of bfloat16 by the tile registers of AMX.
 *
 * A step multiplies tiles of 16 rows of up to 16 words, which are pairs of terms, by tiles of so many
 * rows of 16 words.  Sums are floats, to which the CPU adds the terms in an order of its own. */
#ifndef ETC_BFLOAT_TILES_H
#define ETC_BFLOAT_TILES_H

#include "runtime-lite/kernels/attention.h"
#include "runtime-lite/kernels/conv.h"
#include "runtime-lite/kernels/isa_amx.h"
#include "runtime-lite/kernels/matmul.h"

/* Returns how many words of so many terms are multiplied in a step: at most 16, and about the same
 * number in each. */
ETC_INLINE int64_t etc_step_words(int64_t terms)
{
    const int64_t words = (terms + 1) / 2, steps = (words + 15) / 16;
    return (steps > 0) ? ((words + steps - 1) / steps) : 1;
}

/* Returns the number of steps. */
ETC_INLINE int64_t etc_steps_of(int64_t terms)
{
    return ((terms + 1) / 2 + etc_step_words(terms) - 1) / etc_step_words(terms);
}

/* Returns whether the taps of a convolution are terms like its channels, because these are few. */
ETC_INLINE int etc_taps_are_terms(const EtcConv *g)
{
    return g->ic < 16;
}

#if defined(ETC_TILES)
typedef uint16_t EtcBfloats __attribute__((vector_size(ETC_LANES * 2)));

/* How many steps before a tile of a is needed it is fetched into the first-level cache. */
#define ETC_STEPS_AHEAD 4

/* The operands of tiles.  A tile of a and one of b are multiplied for each of the steps and taps. */
typedef struct EtcSteps {
    const uint8_t *a, *b;
    int64_t a_row, a_step, a_tile; /* the bytes from row to row of a tile, from step to step, ... */
    int64_t b_row, b_step, b_tile; /* ... and from a tile to that below it, or right of it */
    int64_t steps, taps;
    const int64_t *offset; /* the bytes from b to what each tap reads; a has a step for each */
} EtcSteps;

/* Where sums go. */
typedef struct EtcSums32 {
    const float *start; /* a row of 32 floats that sums start from; NULL: they start from zero */
    float *to;
    int64_t row; /* bytes from row to row */
} EtcSums32;

/* Computes n_a by n_b tiles of sums, from tile i of a and tile j of b on.  Both numbers are 1 or 2. */
ETC_INLINE void etc_steps_sums(const EtcSteps *t, int64_t i, int64_t j, int n_a, int n_b,
                               const EtcSums32 *sums)
{
    const uint8_t *a = t->a + (i * t->a_tile), *b = t->b + (j * t->b_tile);
    const int64_t a_tile = t->a_tile, b_tile = t->b_tile, a_row = t->a_row, b_row = t->b_row;
    const uint8_t *ahead = a + (ETC_STEPS_AHEAD * t->a_step), *end = a + a_tile;
    if (sums->start != NULL) {
        etc_tiles_rows_of(sums->start);
    } else {
        etc_tiles_zero();
    }
    for (int64_t s = 0; s < t->steps; s++, b += t->b_step) {
        for (int64_t p = 0; p < t->taps; p++, a += t->a_step, ahead += t->a_step) {
            const uint8_t *from = b + t->offset[p];
            const uint8_t *next = ahead + ((ahead >= end) ? ((n_a - 1) * a_tile) : 0);
            for (int64_t line = 0; line < t->a_step; line += 64) {
                __builtin_prefetch(next + line, 0, 3);
                if (n_a > 1) {
                    __builtin_prefetch(next + a_tile + line, 0, 3);
                }
            }
            etc_tiles_add_bfloats(a, a + a_tile, a_row, n_a, from, from + b_tile, b_row, n_b);
        }
    }
    etc_tiles_store(sums->to, sums->row, n_a, n_b);
}

/* Does so for as many tiles as rows_left rows and columns_left columns fill. */
ETC_OUTLINE void etc_steps_some(const EtcSteps *t, int64_t i, int64_t j, int64_t rows_left,
                                int64_t columns_left, const EtcSums32 *sums)
{
    if ((rows_left > 16) && (columns_left > 16)) {
        etc_steps_sums(t, i, j, 2, 2, sums);
    } else if (rows_left > 16) {
        etc_steps_sums(t, i, j, 2, 1, sums);
    } else if (columns_left > 16) {
        etc_steps_sums(t, i, j, 1, 2, sums);
    } else {
        etc_steps_sums(t, i, j, 1, 1, sums);
    }
}

/* -- linear layers ---------------------------------------------------------------------------- */

/* Writes m rows of `terms` floats as tiles with rows of 64 bytes, and zeros where there are none. */
ETC_INLINE void etc_rows_to_tiles(const float *a, int64_t a_row, int64_t m, int64_t terms,
                                  int64_t words, int64_t steps, int rounds, uint8_t *to)
{
    for (int64_t i = 0; i < ((m + 15) / 16 * 16); i++) {
        uint8_t *row = to + (((i / 16 * steps * 16) + (i % 16)) * 64);
        const int64_t n = (i < m) ? terms : 0;
        for (int64_t s = 0; s < steps; s++, row += 1024) {
            for (int64_t k = 0; k < 32; k += ETC_LANES) {
                const int64_t at = (s * 2 * words) + k;
                const EtcF v = (n > at) ? etc_load(a + (i * a_row) + at, n - at) : etc_splat(0.0f);
                const EtcU u = (EtcU)((rounds != 0) ? etc_vbfloat(v) : v) >> 16;
                const EtcBfloats h = __builtin_convertvector(u, EtcBfloats);
                __builtin_memcpy(row + (2 * k), &h, sizeof h);
            }
        }
    }
}

/* Stores 32 or fewer rows and columns of sums. */
ETC_INLINE void etc_sums_to_rows(const float *sums, int64_t rows, int64_t columns, const EtcMatmul *g,
                                 float *y, int64_t y_row)
{
    const EtcF lo = etc_splat(g->lo), hi = etc_splat(g->hi);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c += ETC_LANES) {
            float *to = y + (r * y_row) + c;
            EtcF v = etc_loadu(sums + (r * 32) + c);
            if (g->from_y != 0) {
                v += etc_load(to, columns - c);
            }
            etc_store(to, columns - c, etc_at_most(etc_at_least(v, lo), hi));
        }
    }
}

/* Adds the products of some terms, whose words are at b.  b_tile: the bytes to the next 16 columns. */
ETC_INLINE void etc_tiles_terms(const float *a, const uint8_t *b, int64_t b_tile, const float *bias,
                                float *y, const EtcMatmul *g, int64_t y_row, int64_t words,
                                int64_t steps, void *work)
{
    const int64_t none = 0, most = ETC_WORK_BYTES / 1024 / steps * 16; /* the rows at a time */
    const int is_plain = (g->from_y == 0) && (g->lo == -__builtin_inff()) && (g->hi == __builtin_inff());
    float sums[32 * 32] __attribute__((aligned(64))), start[32] __attribute__((aligned(64)));
    const EtcSteps t = {(const uint8_t *)work, b, 64, 1024, steps * 1024, 64, words * 64, b_tile, steps, 1,
                        &none};
    for (int64_t i = 0; i < g->m; i += most) {
        const int64_t m = etc_min_i64(g->m - i, most);
        etc_rows_to_tiles(a + (i * g->a_row), g->a_row, m, g->k, words, steps, 0, (uint8_t *)work);
        for (int64_t j = 0; j < g->n; j += 32) {
            const int64_t columns = etc_min_i64(g->n - j, 32);
            for (int64_t c = 0; c < 32; c += ETC_LANES) {
                const int has_bias = (bias != NULL) && (g->from_y == 0) && (c < columns);
                etc_storeu(start + c, has_bias ? etc_load(bias + j + c, columns - c) : etc_splat(0.0f));
            }
            for (int64_t r = 0; r < m; r += 32) {
                const int64_t rows = etc_min_i64(m - r, 32);
                float *to = y + ((i + r) * y_row) + j;
                const int is_direct = is_plain && ((rows % 16) == 0) && ((columns % 16) == 0);
                const EtcSums32 by = {start, is_direct ? to : sums, is_direct ? (4 * y_row) : 128};
                etc_steps_some(&t, r / 16, j / 16, rows, columns, &by);
                if (!is_direct) {
                    etc_sums_to_rows(sums, rows, columns, g, to, y_row);
                }
            }
        }
    }
}

/* Does what etc_matmul_bf16 does. */
ETC_OUTLINE void etc_tiles_matmul(const float *a, const uint16_t *b, const float *bias, float *y,
                                  const EtcMatmul *g, int64_t y_row, void *work)
{
    const int64_t words = etc_step_words(g->k), steps = etc_steps_of(g->k);
    const int64_t most = ETC_WORK_BYTES / 2048; /* the steps at a time */
    EtcMatmul part = *g;
    etc_tiles_start(words);
    for (int64_t s = 0; s < steps; s += most) {
        const int64_t n = etc_min_i64(steps - s, most), k = s * words * 2;
        const int is_last = (s + n) == steps;
        part.k = etc_min_i64(g->k - k, n * words * 2);
        part.lo = (is_last != 0) ? g->lo : -__builtin_inff();
        part.hi = (is_last != 0) ? g->hi : __builtin_inff();
        etc_tiles_terms(a + k, (const uint8_t *)b + (s * words * 64), steps * words * 64, bias, y, &part,
                        y_row, words, n, work);
        part.from_y = 1;
    }
    etc_tiles_end();
}

/* -- convolutions ------------------------------------------------------------------------------ */

#define ETC_WORD_TAPS 64

/* The bytes of weights that stay in the second-level cache. */
#define ETC_WEIGHTS_NEAR 1400000

/* Rows of an image as pictures (see EtcQuads) of words: a word has a pixel of two channels.  Tap t of
 * output (oy, ox) is offset[t] bytes behind word oy * pitch + ox of each picture. */
typedef struct EtcWords {
    uint32_t *data;             /* [words][phases y][phases x][size] */
    int64_t words;              /* of all steps */
    int64_t down, across;       /* the phases of rows and columns that taps read */
    int64_t pitch, under, size; /* words from row to row; rows and words of a picture */
    int64_t offset[ETC_WORD_TAPS];
} EtcWords;

/* Sets the sizes for so many rows of g->ow outputs.  Returns the words of all pictures and those that
 * tiles read past their end. */
ETC_INLINE int64_t etc_words_of(const EtcConv *g, int64_t rows, EtcWords *p)
{
    const int64_t last_y = (g->kh - 1) * g->dh, last_x = (g->kw - 1) * g->dw;
    p->words = etc_step_words(g->ic) * etc_steps_of(g->ic);
    p->down = etc_min_i64(g->sh, last_y + 1);
    p->across = etc_min_i64(g->sw, last_x + 1);
    p->pitch = g->ow + (last_x / g->sw);
    p->under = rows + (last_y / g->sh);
    /* an odd number of cache lines: then the rows of a tile lie in different sets of a cache */
    p->size = (((p->under * p->pitch) + 31) / 32 * 32) + 16;
    for (int64_t t = 0; t < (g->kh * g->kw); t++) {
        const int64_t y = (t / g->kw) * g->dh, x = (t % g->kw) * g->dw;
        p->offset[t] = 4 * (((((y % g->sh) * p->across) + (x % g->sw)) * p->size) +
                            ((y / g->sh) * p->pitch) + (x / g->sw));
    }
    return (p->words * p->down * p->across * p->size) + 32;
}

/* Writes n words of two rows of floats, of which every sw-th counts.  b: NULL if there is one row. */
ETC_INLINE void etc_words_line(const float *a, const float *b, int64_t sw, int64_t n, uint32_t *to)
{
    const int64_t reach = ((n - 1) * sw) + 1, step = (sw <= 2) ? ETC_LANES : 1;
    for (int64_t i = 0; i < n; i += step) {
        const int64_t at = i * sw, left = (sw <= 2) ? (reach - at) : 1;
        EtcF u = etc_load(a + at, left), v = (b != NULL) ? etc_load(b + at, left) : etc_splat(0.0f);
        if (sw == 2) {
            const int64_t more = left - ETC_LANES, from = (more > 0) ? (at + ETC_LANES) : at;
            u = etc_even(u, etc_load(a + from, more));
            v = (b != NULL) ? etc_even(v, etc_load(b + from, more)) : v;
        }
        etc_store((float *)(void *)(to + i), etc_min_i64(n - i, step),
                  (EtcF)(((EtcU)u >> 16) | ((EtcU)v & 0xffff0000u)));
    }
}

/* Writes a row of a picture, which begins in column ix of row iy of two channels. */
ETC_INLINE void etc_words_row(const float *a, const float *b, int64_t iy, int64_t ix, const EtcConv *g,
                              int64_t pitch, uint32_t *to)
{
    const int is_inside = (iy >= 0) && (iy < g->ih);
    const int64_t left = (ix < 0) ? etc_min_i64(etc_steps(g->sw - 1 - ix, g->sw), pitch) : 0;
    const int64_t at = ix + (left * g->sw);
    const int64_t inside = (is_inside && (at < g->iw)) ? etc_steps(g->iw - at + g->sw - 1, g->sw) : 0;
    const int64_t n = etc_min_i64(inside, pitch - left), from = (iy * g->iw) + at;
    etc_fill((float *)(void *)to, left, 0.0f);
    if (n > 0) {
        etc_words_line(a + from, (b != NULL) ? (b + from) : NULL, g->sw, n, to + left);
    }
    etc_fill((float *)(void *)(to + left + n), pitch - left - n, 0.0f);
}

/* Writes the pictures of the outputs from row oy on. */
ETC_OUTLINE void etc_words_pack(const float *x, const EtcConv *g, int64_t oy, const EtcWords *p)
{
    const int64_t top = (oy * g->sh) - g->ph;
    uint32_t *to = p->data;
    for (int64_t c = 0; c < (2 * p->words); c += 2) {
        const float *a = x + (c * g->x_plane), *b = ((c + 1) < g->ic) ? (a + g->x_plane) : NULL;
        for (int64_t i = 0; i < (p->down * p->across); i++, to += p->size) {
            const int64_t py = i / p->across, px = i % p->across;
            for (int64_t r = 0; (c < g->ic) && (r < p->under); r++) {
                etc_words_row(a, b, top + (r * g->sh) + py, px - g->pw, g, p->pitch, to + (r * p->pitch));
            }
            if (c >= g->ic) {
                etc_fill((float *)(void *)to, p->size, 0.0f);
            }
        }
    }
}

/* Some neighbouring sums of a row of a tile that are outputs. */
typedef struct EtcPiece {
    int64_t column, n, at; /* the first sum, their number, and the place of its output in a plane */
} EtcPiece;

/* Lists the outputs of 32 columns from `column` on, and returns their number. */
ETC_INLINE int etc_pieces(int64_t column, int64_t pitch, int64_t ow, int64_t rows, int64_t y_row,
                          EtcPiece piece[32])
{
    int count = 0;
    int64_t row = column / pitch, from = column % pitch, to = 0;
    while ((to < 32) && (row < rows)) {
        const int64_t n = etc_min_i64(ow - from, 32 - to);
        if (n > 0) {
            const EtcPiece p = {to, n, (row * y_row) + from};
            piece[count] = p;
            count++;
        }
        to += pitch - from;
        from = 0;
        row++;
    }
    return count;
}

/* Stores 32 or fewer rows of sums. */
ETC_INLINE void etc_sums_to_planes(const float *sums, int64_t rows, const EtcPiece *piece, int n,
                                   const float *bias, const EtcConv *g, float *y)
{
    const EtcF lo = etc_splat(g->lo), hi = etc_splat(g->hi);
    const int is_whole = (n == 1) && (piece[0].n == 32);
    y += piece[0].at;
    for (int64_t r = 0; r < rows; r++, y += g->y_plane, sums += 32) {
        const EtcF start = etc_splat((bias != NULL) ? bias[r] : 0.0f);
        for (int64_t c = 0; (is_whole != 0) && (c < 32); c += ETC_LANES) {
            etc_storeu(y + c, etc_at_most(etc_at_least(etc_loadu(sums + c) + start, lo), hi));
        }
        for (int i = 0; (is_whole == 0) && (i < n); i++) {
            for (int64_t c = 0; c < piece[i].n; c += ETC_LANES) {
                const int64_t left = piece[i].n - c;
                const EtcF v = etc_load(sums + piece[i].column + c, left) + start;
                etc_store(y + (piece[i].at - piece[0].at) + c, left, etc_at_most(etc_at_least(v, lo), hi));
            }
        }
    }
}

/* Computes `rows` rows of g->ow outputs.  y_row: from row to row of y. */
ETC_OUTLINE void etc_words_product(const uint16_t *w, const float *bias, float *y, const EtcConv *g,
                                   const EtcWords *p, int64_t rows, int64_t y_row)
{
    const int64_t n = etc_step_words(g->ic), taps = g->kh * g->kw, picture = 4 * p->down * p->across * p->size;
    const int64_t width = ((rows - 1) * p->pitch) + g->ow;
    float sums[32 * 32] __attribute__((aligned(64)));
    EtcPiece piece[32];
    const EtcSums32 by = {NULL, sums, 128};
    const EtcSteps t = {(const uint8_t *)w, (const uint8_t *)p->data, 4 * n, 64 * n, 64 * p->words * taps,
                        picture, n * picture, 64, p->words / n, taps, p->offset};
    /* few channels at a time if they have few terms, or if the weights come from memory anyway */
    const int64_t most = ((taps == 1) || ((g->oc * t.a_tile / 16) > ETC_WEIGHTS_NEAR)) ? 32 : g->oc;
    for (int64_t from = 0; from < g->oc; from += most) {
        for (int64_t j = 0; j < width; j += 32) {
            const int pieces = etc_pieces(j, p->pitch, g->ow, rows, y_row, piece);
            for (int64_t i = from; i < etc_min_i64(from + most, g->oc); i += 32) {
                etc_steps_some(&t, i / 16, j / 16, g->oc - i, width - j, &by);
                etc_sums_to_planes(sums, etc_min_i64(g->oc - i, 32), piece, pieces,
                                   (bias != NULL) ? (bias + i) : NULL, g, y + (i * g->y_plane));
            }
        }
    }
}

/* Writes the words of n outputs from output j on. */
ETC_OUTLINE void etc_taps_pack(const float *x, const EtcConv *g, int64_t j, int64_t n, const EtcWords *p)
{
    float line[4 * ETC_PANEL];
    EtcRun run[ETC_PANEL];
    const int64_t depth = g->ic * g->kh * g->kw;
    for (int64_t i = 0; i < n; i += ETC_PANEL) {
        const int64_t m = etc_min_i64(n - i, ETC_PANEL);
        const int n_runs = etc_runs(g, j + i, m, ETC_PANEL, run);
        for (int64_t k = 0; k < (2 * p->words); k += 2) {
            uint32_t *to = p->data + (k / 2 * p->size) + i;
            if (k < depth) {
                etc_pack_taps(x, g, k, etc_min_i64(depth - k, 2), run, n_runs, line, ETC_PANEL);
                etc_words_line(line, ((k + 1) < depth) ? (line + ETC_PANEL) : NULL, 1, m, to);
            } else {
                etc_fill((float *)(void *)to, m, 0.0f);
            }
        }
    }
}

/* Returns the geometry of a 1x1 kernel with one row of outputs. */
ETC_INLINE EtcConv etc_flat(const EtcConv *g)
{
    EtcConv flat = *g;
    flat.ic = g->ic * g->kh * g->kw;
    flat.iw = g->ih * g->iw;
    flat.ow = g->oh * g->ow;
    flat.ih = flat.oh = flat.kh = flat.kw = flat.sh = flat.sw = flat.dh = flat.dw = 1;
    flat.ph = flat.pw = 0;
    return flat;
}

/* Convolves one image and group, as many rows or columns at a time as fit `room` bytes of work, or
 * returns 0. */
ETC_OUTLINE int etc_tiles_conv(const float *x, const uint16_t *w, const float *bias, float *y,
                               const EtcConv *g, int64_t room, void *work)
{
    const int64_t taps = g->kh * g->kw;
    const int is_1x1 = (taps == 1) && (g->sh == 1) && (g->sw == 1) && (g->ph == 0) && (g->pw == 0);
    const int is_packed = (taps > 1) && (etc_taps_are_terms(g) != 0);
    const EtcConv whole = (is_1x1 || is_packed) ? etc_flat(g) : *g;
    EtcConv part = whole;
    EtcWords p;
    int64_t rows = whole.oh;
    if ((whole.kh * whole.kw) > ETC_WORD_TAPS) {
        return 0;
    }
    while ((etc_words_of(&part, rows, &p) * 4) > room) {
        if ((rows == 1) && (part.ow <= 16)) {
            return 0;
        }
        part.ow = (rows == 1) ? ((part.ow + 1) / 2) : part.ow;
        rows = (rows + 1) / 2;
    }
    part.ow = ((part.ow < whole.ow) && (part.ow >= 32)) ? (part.ow / 32 * 32) : part.ow;
    p.data = (uint32_t *)work;
    etc_tiles_start(etc_step_words(whole.ic));
    for (int64_t ox = 0, most = part.ow; ox < whole.ow; ox += most) {
        part.ow = etc_min_i64(whole.ow - ox, most);
        part.pw = whole.pw - (ox * whole.sw);
        for (int64_t oy = 0; oy < whole.oh; oy += rows) {
            const int64_t n = etc_min_i64(whole.oh - oy, rows);
            (void)etc_words_of(&part, n, &p);
            if (is_packed) {
                etc_taps_pack(x, g, ox, part.ow, &p);
            } else {
                etc_words_pack(x, &part, oy, &p);
            }
            etc_words_product(w, bias, y + (oy * whole.ow) + ox, &part, &p, n, whole.ow);
        }
    }
    etc_tiles_end();
    return 1;
}
/* -- attention --------------------------------------------------------------------------------- */

/* The parts of `work`.  Numbers of keys and terms are multiples of 32. */
typedef struct EtcHeadTiles {
    int64_t keys, terms, bytes;
    uint8_t *k, *v, *q, *p; /* words of keys, values, 32 queries and 32 rows of scores */
    float *s;               /* 32 rows of scores */
} EtcHeadTiles;

ETC_INLINE EtcHeadTiles etc_head_tiles(const EtcAttention *g, void *work)
{
    EtcHeadTiles t;
    t.keys = (g->n_k + 31) / 32 * 32;
    t.terms = (g->d + 31) / 32 * 32;
    t.k = (uint8_t *)work;
    t.v = t.k + (t.keys * t.terms * 2);
    t.q = t.v + (t.keys * ((g->d_v + 31) / 32 * 32) * 2);
    t.p = t.q + (t.terms * 64);
    t.s = (float *)(void *)(t.p + (t.keys * 64));
    t.bytes = ((uint8_t *)(t.s + (32 * etc_max_i64(t.keys, t.terms)))) - (uint8_t *)work;
    return t;
}

/* Writes the keys as tiles of 16 words of 16 keys. */
ETC_INLINE void etc_keys_to_tiles(const float *k, const EtcAttention *g, const EtcHeadTiles *t)
{
    const int64_t steps = t->terms / 32;
    etc_rows_to_tiles(k, g->k_row, g->n_k, g->d, 16, steps, 1, t->k);
    for (uint8_t *tile = t->k; tile < (t->k + ((g->n_k + 15) / 16 * steps * 1024)); tile += 1024) {
        EtcF v[ETC_LANES];
        ETC_UNROLL
        for (int i = 0; i < ETC_LANES; i++) {
            v[i] = etc_loadu((const float *)(const void *)(tile + (64 * i)));
        }
        etc_transpose(v);
        ETC_UNROLL
        for (int i = 0; i < ETC_LANES; i++) {
            etc_storeu((float *)(void *)(tile + (64 * i)), v[i]);
        }
    }
}

/* Writes the values as tiles of words of two keys, 16 of them by 16 values. */
ETC_INLINE void etc_values_to_tiles(const float *v, const EtcAttention *g, const EtcHeadTiles *t)
{
    for (int64_t i = 0; i < t->keys; i += 2) {
        const float *row = v + (i * g->v_row);
        for (int64_t c = 0; c < g->d_v; c += ETC_LANES) {
            EtcF a = etc_splat(0.0f), b = etc_splat(0.0f);
            if (i < g->n_k) {
                a = etc_vbfloat(etc_load(row + c, g->d_v - c));
            }
            if ((i + 1) < g->n_k) {
                b = etc_vbfloat(etc_load(row + g->v_row + c, g->d_v - c));
            }
            uint8_t *to = t->v + (((c / 16 * (t->keys / 2)) + (i / 2)) * 64);
            etc_storeu((float *)(void *)to, (EtcF)(((EtcU)a >> 16) | (EtcU)b));
        }
    }
}

/* Computes y for the rows of the tile. */
ETC_INLINE void etc_tiles_queries(const float *q, const EtcMask *mask, float *y, const EtcAttention *g,
                                  const EtcHeadTiles *t, const EtcScores *tile)
{
    const int64_t none = 0, steps = t->terms / 32, key_steps = (tile->n_key + 31) / 32;
    float sums[32 * 32] __attribute__((aligned(64)));
    const EtcMatmul plain = {0, 0, 0, 0, 0, -__builtin_inff(), __builtin_inff(), ETC_BY_ROWS, 0};
    const EtcSteps scores = {t->q, t->k, 64, 1024, steps * 1024, 64, 1024, steps * 1024, steps, 1, &none};
    const EtcSteps values = {t->p, t->v, 64, 1024, key_steps * 1024, 64, 1024, t->keys * 32, key_steps, 1, &none};
    etc_scale_rows(q + (tile->query * g->q_row), g->q_row, t->s, t->terms, tile->n, g->d, g->scale);
    etc_rows_to_tiles(t->s, t->terms, tile->n, g->d, 16, steps, 1, t->q);
    for (int64_t j = 0; j < tile->n_key; j += 32) {
        const EtcSums32 by = {NULL, t->s + j, 4 * t->keys};
        etc_steps_some(&scores, 0, j / 16, tile->n, tile->n_key - j, &by);
    }
    for (int64_t i = 0; i < tile->n; i++) {
        etc_scores_mask(g, mask, tile, i, t->s + (i * t->keys));
        etc_scores_softmax(t->s + (i * t->keys), tile->n_key, g->is_plain);
    }
    etc_rows_to_tiles(t->s, t->keys, tile->n, tile->n_key, 16, key_steps, 1, t->p);
    for (int64_t c = 0; c < g->d_v; c += 32) {
        const EtcSums32 by = {NULL, sums, 128};
        etc_steps_some(&values, 0, c / 16, tile->n, g->d_v - c, &by);
        etc_sums_to_rows(sums, tile->n, etc_min_i64(g->d_v - c, 32), &plain,
                         y + (tile->query * g->y_row) + c, g->y_row);
    }
}

/* Returns 0 if the head is too small or too large. */
ETC_OUTLINE int etc_tiles_attention(const float *q, const float *k, const float *v, const EtcMask *mask,
                                    float *y, const EtcAttention *g, void *work)
{
    const EtcHeadTiles t = etc_head_tiles(g, work);
    EtcScores tile;
    if ((g->n_k < 16) || (g->d < 16) || (t.bytes > ETC_WORK_BYTES)) {
        return 0;
    }
    __builtin_memset(&tile, 0, sizeof tile);
    etc_tiles_start(16);
    etc_keys_to_tiles(k, g, &t);
    etc_values_to_tiles(v, g, &t);
    for (; tile.query < g->n_q; tile.query += 32) {
        tile.n = etc_min_i64(g->n_q - tile.query, 32);
        tile.n_key = (g->is_causal != 0) ? etc_min_i64(g->n_k, tile.query + tile.n) : g->n_k;
        etc_tiles_queries(q, mask, y, g, &t, &tile);
    }
    etc_tiles_end();
    return 1;
}
#endif

#endif
