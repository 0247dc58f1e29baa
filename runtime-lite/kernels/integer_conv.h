/* integer_conv.h -- convolutions of 8-bit integers as products of weights and panels of pixels. */
#ifndef ETC_INTEGER_CONV_H
#define ETC_INTEGER_CONV_H

#include "runtime-lite/kernels/integer_depthwise.h"
#include "runtime-lite/kernels/integer_panel.h"

/* Describes how sums of a row of pixels become bytes of y. */
typedef struct EtcToBytes {
    uint8_t *y;      /* the byte of the first channel and column */
    int64_t y_plane; /* the bytes from channel to channel */
    int64_t n;       /* the columns that exist */
    const float *scales, *bias; /* those of the first channel */
    EtcF by;                    /* the scale of x */
    EtcF inverse, lo, hi;       /* as in EtcBytesOf; for `then`, lo and hi are the clamp of v */
    int32_t zero, least;        /* y's zero point and lower bound, less 128 if y is unsigned */
    uint8_t flip;               /* the bits that this flips in a byte of y */
    int32_t has_then; /* v is stored where the sums would be, and y is not written */
} EtcToBytes;

/* A block of sums: m channels by `width` pixels, over n_k terms. */
typedef struct EtcIntegerBlock {
    const int8_t *w; /* the weight of the first channel and term */
    int64_t w_row;   /* weights from one channel to the next */
    const uint32_t *panel; /* rows of words: ETC_TERMS terms of a pixel side by side */
    int64_t row, n_rows;   /* words from row to row of the panel; each row is n_rows rows, ... */
    const int64_t *offset; /* ... which are so many words behind it */
    int64_t together; /* rows whose weights for one of the n_rows are side by side */
    int32_t *sums;         /* [channel][width] */
    int64_t m, n_k, width;
    int is_first; /* sums start from the correction for the zero point, else from `sums` */
    const int32_t *of; /* the sum of each channel's weights */
    uint32_t zero;     /* x's zero point, after x is shifted */
    const EtcToBytes *bytes; /* NULL: the sums are stored; else n_k has all terms */
} EtcIntegerBlock;

/* The number of terms whose weights are widened to 16 bits at a time, if ETC_TERMS is 2. */
#define ETC_WIDE 128

/* Multiplies one row of the panel, nv vectors, by a word of each of mr channels' weights, and adds
 * the products to acc.  w_row is the number of bytes from word to word. */
ETC_INLINE void etc_integer_add(const uint32_t *panel, const void *w, int64_t w_row, int mr, int nv,
                                EtcI acc[16][4])
{
    EtcI xv[4];
    ETC_UNROLL
    for (int v = 0; v < nv; v++) {
        xv[v] = *(const EtcIAnywhere *)(const void *)(panel + (v * ETC_LANES));
        xv[v] = (EtcI)etc_kept((EtcF)xv[v]);
    }
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        const EtcWord *word = (const EtcWord *)(const void *)((const int8_t *)w + (r * w_row));
        const EtcI wv = etc_splat_i32((int32_t)*word);
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = etc_dot(acc[r][v], xv[v], wv);
        }
    }
}

#if ETC_DOT_LANES == 1
/* Does so with four rows of the panel, `width` words apart, and 16 weights of each channel. */
ETC_INLINE void etc_integer_add_four(const uint32_t *panel, int64_t width, const int8_t *w,
                                     int64_t w_row, int mr, int nv, EtcI acc[16][4])
{
    EtcI wv[16];
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        wv[r] = *(const EtcIAnywhere *)(const void *)(w + (r * w_row));
    }
    ETC_UNROLL
    for (int lane = 0; lane < 4; lane++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            const EtcI xv = *(const EtcIAnywhere *)(const void *)(panel + (v * ETC_LANES));
            ETC_UNROLL
            for (int r = 0; r < mr; r++) {
                acc[r][v] = etc_dot_lane(acc[r][v], xv, wv[r], lane);
            }
        }
        panel += width;
    }
}
#endif

/* Sets the accumulators of mr rows, from row i on, to their initial values: the correction for x's
 * zero point, or the sums of the terms before. */
ETC_INLINE void etc_integer_from(const EtcIntegerBlock *t, const int32_t *sums, int64_t i, int mr,
                                 int nv, int is_first, EtcI acc[16][4])
{
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        const EtcI start = etc_splat_i32((int32_t)(0u - (t->zero * (uint32_t)t->of[i + r])));
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = start;
            if (is_first == 0) {
                acc[r][v] = *(const EtcIAnywhere *)(sums + (r * t->width) + (v * ETC_LANES));
            }
        }
    }
}

#if !defined(ETC_ROUNDS)
/* Rounds nv vectors, at most four, to integers, adds `zero`, replaces what is less than lo by lo, and
 * stores the first n bytes, whose bits in `flip`, 0x80 or none, are flipped.  No number is above
 * 2^21. */
ETC_INLINE void etc_store_rounded(uint8_t *y, int64_t n, int nv, const EtcF v[4], int32_t zero,
                                  int32_t lo, uint8_t flip)
{
    const EtcF least = etc_splat((float)(lo - zero));
    const EtcI add = etc_splat_i32(zero + (int32_t)flip - 0x4b400000); /* the bits of 1.5 * 2^23 */
    for (int k = 0; (k < nv) && (n > (k * ETC_LANES)); k++) {
        const EtcI i = (EtcI)(etc_at_least(v[k], least) + etc_splat(12582912.0f)) + add;
        etc_store_low(y + (k * ETC_LANES), n - (k * ETC_LANES), i);
    }
}
#endif

/* Converts the accumulators of mr rows from row i on, and nv vectors of columns from column c on, to
 * bytes. */
ETC_INLINE void etc_integer_to_bytes(const EtcToBytes *b, int64_t i, int64_t c, int mr, int nv,
                                     EtcI acc[16][4])
{
    const EtcF inverse = b->inverse, hi = b->hi;
    const int32_t zero = b->zero, least = b->least;
    const uint8_t flip = b->flip;
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        const EtcF scale = b->by * etc_splat(b->scales[i + r]);
        const EtcF bias = etc_splat((b->bias != NULL) ? b->bias[i + r] : 0.0f);
        EtcF v[4];
        ETC_UNROLL
        for (int k = 0; k < nv; k++) {
            v[k] = etc_at_most(
                ((__builtin_convertvector(acc[r][k], EtcF) * scale) + bias) * inverse, hi);
        }
        if (b->n > c) {
            etc_store_rounded(b->y + ((i + r) * b->y_plane) + c, b->n - c, nv, v, zero, least, flip);
        }
    }
}

/* Stores the v of mr rows from row i on, and nv vectors of columns. */
ETC_INLINE void etc_integer_to_floats(const EtcToBytes *b, int64_t i, float *v, int64_t width, int mr,
                                      int nv, EtcI acc[16][4])
{
    const EtcF lo = b->lo, hi = b->hi;
    ETC_UNROLL
    for (int r = 0; r < mr; r++) {
        const EtcF scale = b->by * etc_splat(b->scales[i + r]);
        const EtcF bias = etc_splat((b->bias != NULL) ? b->bias[i + r] : 0.0f);
        ETC_UNROLL
        for (int c = 0; c < nv; c++) {
            const EtcF by = (__builtin_convertvector(acc[r][c], EtcF) * scale) + bias;
            etc_store(v + (r * width) + (c * ETC_LANES), ETC_LANES,
                      etc_at_most(etc_at_least(by, lo), hi));
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

/* Sets what does not depend on the place.  Returns 0 if sums of the `count` channels from `channel` on
 * do not become bytes by EtcToBytes. */
ETC_INLINE int etc_to_bytes_of(const EtcInteger *q, int64_t channel, int64_t count, EtcToBytes *b)
{
    EtcBytesOf one;
    const float by = etc_x_scale(q, 0);
    (void)etc_bytes_of(q, by, channel, &one);
    b->scales = q->scales + channel;
    b->bias = (q->bias != NULL) ? (q->bias + channel) : NULL;
    b->by = etc_splat(by);
    b->inverse = one.inverse;
    b->has_then = etc_has_then(q);
    b->lo = (b->has_then != 0) ? etc_splat(q->lo) : one.lo;
    b->hi = (b->has_then != 0) ? etc_splat(q->hi) : one.hi;
    b->flip = (q->y_hi > 127) ? 0x80 : 0;
    b->zero = q->y_zero - (int32_t)b->flip;
    b->least = ((EtcI)(one.lo + etc_splat(12582912.0f)))[0] - 0x4b400000 + b->zero;
    return (b->has_then != 0) ||
           ((q->is_float == 0) && (etc_are_numbers(q, channel, count) != 0));
}

/* Writes what becomes of a tile: bytes, floats or sums. */
ETC_INLINE void etc_integer_end(const EtcIntegerBlock *t, int32_t *sums, int64_t i, int64_t c, int mr,
                                int nv, EtcI acc[16][4])
{
    if (ETC_QUADS && (ETC_HAS_THEN != 0) && (t->bytes != NULL) && (t->bytes->has_then != 0)) {
        etc_integer_to_floats(t->bytes, i, (float *)(void *)sums, t->width, mr, nv, acc);
    } else if (ETC_QUADS && (t->bytes != NULL)) {
        etc_integer_to_bytes(t->bytes, i, c, mr, nv, acc);
    } else {
        etc_integer_to(t, sums, mr, nv, acc);
    }
}

/* Computes a tile of mr rows and nv vectors of columns if ETC_TERMS is 4.  A word of the weights,
 * in the model's layout, has four terms. */
ETC_INLINE void etc_four_tile(const EtcIntegerBlock *t, int64_t i, int64_t c, int mr, int nv)
{
    const int8_t *w = t->w + (i * t->w_row);
    const uint32_t *panel = t->panel + c;
    int32_t *sums = t->sums + (i * t->width) + c;
    EtcI acc[16][4];
    uint32_t word[16];
    int64_t k = 0;
    etc_integer_from(t, sums, i, mr, nv, t->is_first, acc);
#if ETC_DOT_LANES == 1
    for (; (k + 16) <= t->n_k; k += 16) {
        etc_integer_add_four(panel, t->width, w + k, t->w_row, mr, nv, acc);
        panel += 4 * t->width;
    }
#endif
    const int8_t *ahead = w + (mr * t->w_row); /* the weights of the tile after this */
    for (; (t->n_rows == 1) && ((k + 4) <= t->n_k); k += 4, panel += t->row) {
        if (ETC_QUADS) {
            __builtin_prefetch(ahead + (mr * k), 0, 2);
        }
        etc_integer_add(panel, w + k, t->w_row, mr, nv, acc);
    }
    for (; ETC_QUADS && ((k + (4 * t->n_rows)) <= t->n_k); panel += t->together * t->row) {
        for (int64_t p = 0; p < t->n_rows; p++) {
            const uint32_t *x = panel + t->offset[p];
            for (int64_t j = 0; j < t->together; j++, k += 4, x += t->row) {
                __builtin_prefetch(ahead + (mr * k), 0, 2);
                etc_integer_add(x, w + k, t->w_row, mr, nv, acc);
            }
        }
    }
    if (k < t->n_k) {
        for (int r = 0; r < mr; r++) {
            word[r] = 0;
            for (int64_t b = k; b < t->n_k; b++) {
                word[r] |= (uint32_t)(uint8_t)w[(r * t->w_row) + b] << (8 * (b - k));
            }
        }
        etc_integer_add(panel, word, sizeof word[0], mr, nv, acc);
    }
    etc_integer_end(t, sums, i, c, mr, nv, acc);
}

/* Computes all rows of nv vectors of columns from c on. */
ETC_INLINE void etc_four_tiles(const EtcIntegerBlock *t, int64_t c, int mr, int nv)
{
    int64_t i = 0;
    for (; (i + mr) <= t->m; i += mr) {
        etc_four_tile(t, i, c, mr, nv);
    }
    for (; (mr > 4) && ((i + 4) <= t->m); i += 4) {
        etc_four_tile(t, i, c, 4, nv);
    }
    for (; i < t->m; i++) {
        etc_four_tile(t, i, c, 1, nv);
    }
}

ETC_OUTLINE void etc_four_tiles_1(const EtcIntegerBlock *t, int64_t c)
{
    etc_four_tiles(t, c, ETC_INTEGER_MR1, 1);
}

ETC_OUTLINE void etc_four_tiles_2(const EtcIntegerBlock *t, int64_t c)
{
    etc_four_tiles(t, c, ETC_INTEGER_MR2, 2);
}

ETC_OUTLINE void etc_four_tiles_3(const EtcIntegerBlock *t, int64_t c)
{
    etc_four_tiles(t, c, ETC_INTEGER_MR3, 3);
}

ETC_OUTLINE void etc_four_tiles_4(const EtcIntegerBlock *t, int64_t c)
{
    etc_four_tiles(t, c, ETC_INTEGER_MR, 4);
}

ETC_INLINE void etc_four_block(const EtcIntegerBlock *t)
{
    int64_t c = 0;
    for (; (c + (ETC_INTEGER_NV * ETC_LANES)) <= t->width; c += ETC_INTEGER_NV * ETC_LANES) {
        if (ETC_INTEGER_NV == 4) {
            etc_four_tiles_4(t, c);
        } else {
            etc_four_tiles_2(t, c);
        }
    }
    switch ((t->width - c) / ETC_LANES) {
    case 1:
        etc_four_tiles_1(t, c);
        break;
    case 2:
        if (ETC_INTEGER_NV == 4) {
            etc_four_tiles_2(t, c);
        }
        break;
    case 3:
        if (ETC_INTEGER_NV == 4) {
            etc_four_tiles_3(t, c);
        }
        break;
    default:
        break;
    }
}

#if defined(ETC_TILES)
/* Returns whether AMX computes the block.  A block whose rows do not fill the last tile computes some
 * rows twice, so their sums must not be added to others. */
ETC_INLINE int etc_is_for_tiles(const EtcIntegerBlock *t)
{
    return (t->n_k >= 64) && (t->together >= 4) && (t->m >= 16) && ((t->n_k % (4 * t->together * t->n_rows)) == 0) &&
           (((t->m % 16) == 0) || (t->is_first != 0)) && (etc_has_tiles() != 0);
}

/* Adds the sums of 16 rows from row i on, and nv vectors of columns, to their initial values. */
ETC_INLINE void etc_tiles_put(const EtcIntegerBlock *t, const int32_t *sum, int64_t i, int64_t c, int nv)
{
    for (int64_t r = 0; r < 16; r += 4) {
        EtcI acc[16][4];
        int32_t *sums = t->sums + ((i + r) * t->width) + c;
        etc_integer_from(t, sums, i + r, 4, nv, t->is_first, acc);
        ETC_UNROLL
        for (int k = 0; k < 4; k++) {
            ETC_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[k][v] += *(const EtcIAnywhere *)(sum + ((r + k) * 32) + (v * ETC_LANES));
            }
        }
        etc_integer_end(t, sums, i + r, c, 4, nv, acc);
    }
}

/* Computes 16 rows from row i on, and 16 from row j on if n is 2, and nv vectors of columns. */
ETC_INLINE void etc_tiles_rows(const EtcIntegerBlock *t, int64_t i, int64_t j, int n, int64_t c, int nv)
{
    int32_t sum[32 * 32] __attribute__((aligned(64)));
    const int8_t *w = t->w + (i * t->w_row), *below = t->w + (j * t->w_row);
    const uint32_t *panel = t->panel + c;
    const int64_t step = 4 * t->together;
    etc_tiles_zero();
    for (int64_t k = 0; k < t->n_k; panel += t->together * t->row) {
        for (int64_t p = 0; p < t->n_rows; p++, k += step) {
            etc_tiles_add(w + k, below + k, t->w_row, n, panel + t->offset[p], 4 * t->row, nv);
        }
    }
    etc_tiles_store(sum, 128, n, nv);
    etc_tiles_put(t, sum, i, c, nv);
    if (n > 1) {
        etc_tiles_put(t, sum + (16 * 32), j, c, nv);
    }
}

/* Computes all rows of nv vectors of columns from c on. */
ETC_INLINE void etc_tiles_columns(const EtcIntegerBlock *t, int64_t c, int nv)
{
    for (int64_t i = 0; i < t->m; i += 32) {
        const int64_t last = t->m - 16;
        etc_tiles_rows(t, etc_min_i64(i, last), etc_min_i64(i + 16, last), ((i + 16) < t->m) ? 2 : 1, c,
                       nv);
    }
}

ETC_OUTLINE void etc_tiles_block(const EtcIntegerBlock *t)
{
    int64_t c = 0;
    etc_tiles_start(t->together);
    for (; (c + (2 * ETC_LANES)) <= t->width; c += 2 * ETC_LANES) {
        etc_tiles_columns(t, c, 2);
    }
    if (c < t->width) {
        etc_tiles_columns(t, c, 1);
    }
    etc_tiles_end();
}
#endif

/* Adds n terms, from k on, to a tile of mr rows from i on and nv vectors of columns from c on.
 * `wide` has the rows' weights, widened. */
ETC_INLINE void etc_wide_tile(const EtcIntegerBlock *t, int16_t wide[16][ETC_WIDE], int64_t k,
                              int64_t n, int64_t i, int64_t c, int mr, int nv)
{
    const uint32_t *panel = t->panel + ((k / 2) * t->width) + c;
    int32_t *sums = t->sums + (i * t->width) + c;
    EtcI acc[16][4];
    etc_integer_from(t, sums, i, mr, nv, (t->is_first != 0) && (k == 0), acc);
    for (int64_t b = 0; b < n; b += 2) {
        uint32_t word[16]; /* registers */
        ETC_UNROLL
        for (int r = 0; r < mr; r++) {
            word[r] = *(const EtcWord *)(const void *)&wide[r][b];
        }
        etc_integer_add(panel, word, sizeof word[0], mr, nv, acc);
        panel += t->width;
    }
    etc_integer_to(t, sums, mr, nv, acc);
}

/* Computes rows i .. i + mr - 1.  The widened weights are used for all columns. */
ETC_INLINE void etc_wide_rows(const EtcIntegerBlock *t, int64_t i, int mr)
{
    int16_t wide[16][ETC_WIDE];
    for (int64_t k = 0; k < t->n_k; k += ETC_WIDE) {
        const int64_t n = etc_min_i64(t->n_k - k, ETC_WIDE);
        for (int r = 0; r < mr; r++) {
            const int8_t *w = t->w + ((i + r) * t->w_row) + k;
            int64_t b = 0;
            for (; (b + ETC_TERM_BYTES) <= n; b += ETC_TERM_BYTES) {
                const EtcI v = etc_w_terms(etc_term_bytes(w + b, ETC_TERM_BYTES));
                __builtin_memcpy(&wide[r][b], &v, sizeof v);
            }
            if (b < n) {
                const EtcI v = etc_w_terms(etc_term_bytes(w + b, n - b));
                __builtin_memcpy(&wide[r][b], &v, sizeof v);
            }
        }
        int64_t c = 0;
        for (; (c + (ETC_INTEGER_NV * ETC_LANES)) <= t->width; c += ETC_INTEGER_NV * ETC_LANES) {
            etc_wide_tile(t, wide, k, n, i, c, mr, ETC_INTEGER_NV);
        }
        for (; c < t->width; c += ETC_LANES) {
            etc_wide_tile(t, wide, k, n, i, c, mr, 1);
        }
    }
}

ETC_OUTLINE void etc_wide_block(const EtcIntegerBlock *t)
{
    int64_t i = 0;
    for (; (i + ETC_INTEGER_MR) <= t->m; i += ETC_INTEGER_MR) {
        etc_wide_rows(t, i, ETC_INTEGER_MR);
    }
    for (; i < t->m; i++) {
        etc_wide_rows(t, i, 1);
    }
}

ETC_INLINE void etc_integer_block(const EtcIntegerBlock *t)
{
#if defined(ETC_TILES)
    if (etc_is_for_tiles(t) != 0) {
        etc_tiles_block(t);
        return;
    }
#endif
    if (ETC_TERMS == 4) {
        etc_four_block(t);
    } else {
        etc_wide_block(t);
    }
}

/* Returns the vectors per row of a panel of `rows` rows.  With few terms a panel is wide, which
 * reduces the work that is done once per panel and row of sums. */
ETC_INLINE int64_t etc_integer_vectors(const EtcConv *g, int64_t rows)
{
    const int64_t tile = ETC_INTEGER_NV, least = ETC_INTEGER_LEAST / ETC_LANES;
    const int64_t runs = g->ow * (ETC_INTEGER_RUNS - 2) / ETC_LANES;
    int64_t n = etc_min_i64(ETC_INTEGER_FEW / ETC_VEC / rows, ETC_INTEGER_PANEL / ETC_LANES);
    n = etc_max_i64((etc_min_i64(n, runs) / tile) * tile, least);
    const int64_t all = ((g->oh * g->ow) + ETC_LANES - 1) / ETC_LANES, panels = (all + n - 1) / n;
    const int64_t even = (all + panels - 1) / panels;
    return etc_min_i64(((even + tile - 1) / tile) * tile, n);
}

/* Convolves one image and group.  `at` is the index of its first element in y. */
ETC_INLINE void etc_integer_product(const uint8_t *x, const int8_t *w, void *y, int64_t at,
                                    int64_t channel, const EtcConv *g, const EtcInteger *q,
                                    void *work)
{
    const int64_t depth = etc_integer_depth(g), pixels = g->oh * g->ow, none = 0;
    const int64_t rows = (depth + ETC_TERMS - 1) / ETC_TERMS; /* the rows of the panel */
    const int64_t vectors = etc_integer_vectors(g, rows), most = vectors * ETC_LANES;
    const int fits = (rows * vectors) <= (ETC_INTEGER_ROOM / ETC_VEC);
    const int64_t block = fits ? depth : ((ETC_INTEGER_HALF / ETC_VEC / vectors) * ETC_TERMS);
    uint32_t *panel = (uint32_t *)work;
    EtcToBytes bytes;
    EtcIntegerBlock t = {w, depth, panel, 0, 1, &none, 1, NULL, 0, 0, 0, 1, NULL, 0, NULL};
    if (ETC_QUADS && fits && (etc_to_bytes_of(q, channel, g->oc, &bytes) != 0)) {
        bytes.y_plane = g->y_plane;
        t.bytes = &bytes;
    }
    t.zero = (uint32_t)(etc_x_zero(q, 0) + etc_x_shift(q));
    for (int64_t j = 0; j < pixels; j += most) {
        const int64_t n = etc_min_i64(pixels - j, most);
        t.width = ((n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
        t.row = t.width;
        const int64_t used = (block < depth) ? ETC_INTEGER_HALF : (rows * t.width * 4);
        t.sums = (int32_t *)(void *)((uint8_t *)work + used);
        const int64_t room = (ETC_WORK_BYTES - used) / (t.width * 4);
        const int is_stored = (t.bytes == NULL) || (bytes.has_then != 0); /* what tiles make */
        const int64_t channels = is_stored ? room : g->oc;                 /* channels at a time */
        if (block >= depth) {
            etc_integer_pack(x, g, 0, depth, j, n, q, panel);
        }
        for (int64_t c = 0; c < g->oc; c += channels) {
            t.m = etc_min_i64(g->oc - c, channels);
            t.of = q->sums + channel + c;
            bytes.y = (uint8_t *)y + at + j;
            bytes.n = n;
            bytes.scales = q->scales + channel + c;
            bytes.bias = (q->bias != NULL) ? (q->bias + channel + c) : NULL;
            for (int64_t k = 0; k < depth; k += block) {
                t.n_k = etc_min_i64(depth - k, block);
                t.together = etc_quads_together((t.n_k + 3) / 4);
                t.w = w + (c * depth) + k;
                t.is_first = k == 0;
                if (block < depth) {
                    etc_integer_pack(x, g, k, t.n_k, j, n, q, panel);
                }
                etc_integer_block(&t);
            }
            for (int64_t i = 0; (t.bytes != NULL) && (bytes.has_then != 0) && (i < t.m); i++) {
                q->then((const float *)(const void *)t.sums + (i * t.width),
                        bytes.y + ((c + i) * g->y_plane), n);
            }
            if (t.bytes == NULL) {
                const EtcSums done = {t.sums,      t.m, n, t.width,
                                      channel + c, 1,   at + (c * g->y_plane) + j, g->y_plane};
                etc_integer_rows(&done, y, q);
            }
        }
    }
}

/* Returns the rows of a band, or 0 if etc_integer_quads cannot convolve.  The pictures get half of
 * `work`, and the sums of at least 12 channels the rest. */
ETC_INLINE int64_t etc_quads_rows(const EtcConv *g)
{
    EtcQuads b;
    int64_t rows = g->oh;
    if ((g->form != ETC_IN_QUADS) || ((g->kh * g->kw) > ETC_QUAD_TAPS) ||
        (g->iw > (ETC_QUAD_WORDS - ETC_LANES)) || (g->ow > ETC_WORK_BYTES)) {
        return 0;
    }
    while ((rows > 0) && ((etc_quads_of(g, rows, &b) > (ETC_WORK_BYTES / 8)) ||
                          (((b.width * 12) + ETC_LANES) > (ETC_WORK_BYTES / 8)))) {
        rows = (rows > 16) ? (rows / 2) : (rows - 1);
    }
    const int64_t bands = (rows > 0) ? ((g->oh + rows - 1) / rows) : 1;
    return (rows > 0) ? ((g->oh + bands - 1) / bands) : 0;
}

/* Writes the outputs of the block's channels, of which the tiles made sums or bytes.  `first` has the
 * rows of the first channel. */
ETC_INLINE void etc_quads_put(const EtcIntegerBlock *t, const EtcSums *first, void *y, int64_t y_plane,
                              const EtcInteger *q)
{
    for (int64_t i = 0; i < t->m; i++) {
        EtcSums s = *first;
        s.channel += i;
        s.at += i * y_plane;
        if (t->bytes == NULL) {
            s.sum = t->sums + (i * t->width);
            etc_integer_short_rows(&s, t->sums + (i * t->width), y, q);
        }
        const uint8_t *from = NULL;
        if ((t->bytes != NULL) && (t->bytes->has_then != 0)) { /* bytes never overtake floats */
            int32_t *row = t->sums + (i * t->width);
            q->then((const float *)(const void *)row, (uint8_t *)row, ((s.rows - 1) * s.pitch) + s.n);
            from = (const uint8_t *)row;
        } else if (t->bytes != NULL) {
            from = t->bytes->y + (i * t->width);
        }
        for (int64_t r = 0; (from != NULL) && (r < s.rows); r++) {
            etc_byte_copy(from + (r * s.pitch), (uint8_t *)y + s.at + (r * s.y_row), s.n);
        }
    }
}

/* Convolves one image and group whose weights are in quads, `most` rows at a time.  Nothing is
 * copied per tap. */
ETC_INLINE void etc_integer_quads(const uint8_t *x, const int8_t *w, void *y, int64_t at,
                                  int64_t channel, int64_t most, const EtcConv *g,
                                  const EtcInteger *q, void *work)
{
    EtcQuads b;
    EtcToBytes bytes;
    const int64_t depth = etc_integer_depth(g);
    EtcIntegerBlock t = {w, depth, (uint32_t *)work, 0, g->kh * g->kw, b.offset,
                         etc_quads_together((g->ic + 3) / 4), NULL, 0, depth, 0, 1, NULL, 0, NULL};
    t.zero = (uint32_t)(etc_x_zero(q, 0) + etc_x_shift(q));
    t.bytes = (etc_to_bytes_of(q, channel, g->oc, &bytes) != 0) ? &bytes : NULL;
    b.data = (uint32_t *)work;
    for (int64_t oy = 0; oy < g->oh; oy += most) {
        const int64_t n = etc_min_i64(g->oh - oy, most), used = etc_quads_of(g, n, &b) * 4;
        const int is_byte = (t.bytes != NULL) && (bytes.has_then == 0);
        const int64_t size = is_byte ? 1 : 4; /* the bytes of what tiles make */
        /* the last row's last vector may be read past its sums */
        const int64_t channels = (ETC_WORK_BYTES - ETC_VEC - used) / size / b.width / 12 * 12;
        etc_quads_offsets(g, &b);
        t.row = b.down * b.across * b.size;
        t.sums = (int32_t *)(void *)((uint8_t *)work + used);
        t.width = b.width;
        bytes.y = (uint8_t *)work + used;
        bytes.y_plane = b.width;
        bytes.n = b.width;
        etc_quads_pack(x, g, oy, q, &b);
        for (int64_t c = 0; c < g->oc; c += channels) {
            const int64_t to = at + (c * g->y_plane) + (oy * g->ow);
            const EtcSums first = {NULL, n, g->ow, b.pitch, channel + c, 0, to, g->ow};
            t.m = etc_min_i64(g->oc - c, channels);
            t.of = q->sums + channel + c;
            t.w = w + (c * depth);
            bytes.scales = q->scales + channel + c;
            bytes.bias = (q->bias != NULL) ? (q->bias + channel + c) : NULL;
            etc_integer_block(&t);
            etc_quads_put(&t, &first, y, g->y_plane, q);
        }
    }
}

/* Computes y[n][groups * oc][oh][ow] from x and weights in the form ETC_FORWARD or ETC_IN_QUADS.  The
 * geometry's clamp is not read.  `work` has ETC_WORK_BYTES. */
ETC_OUTLINE void etc_conv_i8(const void *x, const int8_t *w, void *y, const EtcConv *geometry,
                             const EtcInteger *q, void *work)
{
    EtcConv g = *geometry;
    g.x_plane = (g.x_plane != 0) ? g.x_plane : (g.ih * g.iw);
    g.y_plane = (g.y_plane != 0) ? g.y_plane : (g.oh * g.ow);
    const int64_t x_size = g.ic * g.x_plane, y_size = g.oc * g.y_plane;
    const int64_t w_size = g.oc * etc_integer_depth(&g);
    if (etc_is_integer_depthwise(&g)) {
        etc_integer_depthwise((const uint8_t *)x, w, y, &g, q, work);
        return;
    }
    const int64_t rows = ETC_QUADS ? etc_quads_rows(&g) : 0;
    for (int64_t i = 0; i < (g.n * g.groups); i++) {
        const int64_t group = i % g.groups;
        if (rows > 0) {
            etc_integer_quads((const uint8_t *)x + (i * x_size), w + (group * w_size), y, i * y_size,
                              group * g.oc, rows, &g, q, work);
            continue;
        }
        etc_integer_product((const uint8_t *)x + (i * x_size), w + (group * w_size), y, i * y_size,
                            group * g.oc, &g, q, work);
    }
}

#endif
