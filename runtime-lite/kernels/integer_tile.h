/* integer_tile.h -- products of 8-bit weights and panels of pixels, a tile of channels and columns at
 * a time. */
#ifndef ETC_INTEGER_TILE_H
#define ETC_INTEGER_TILE_H

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
    const uint32_t *panel; /* rows of words: `terms` terms of a pixel side by side */
    int64_t terms;
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

/* The words of a row's weights that an EtcOperands has. */
#define ETC_WORDS 128

/* The runs of an EtcOperands: without quads, all terms are one. */
#define ETC_RUNS ((ETC_HAS_QUADS != 0) ? ETC_WORDS : 1)

/* Multiplies one row of the panel, nv vectors, by a word of each of mr channels' weights, and adds
 * the products to acc.  w_row is the number of bytes from word to word. */
ETC_INLINE void etc_integer_add(const uint32_t *panel, const void *w, int64_t w_row, int64_t terms, int mr,
                                int nv, EtcI acc[16][4])
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
            acc[r][v] = etc_dot_of(terms, acc[r][v], xv[v], wv);
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

/* Sets the accumulators of mr rows, from row i on, to the correction for x's zero point, or to the sums
 * of the terms before. */
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

/* 1: tiles make bytes of their sums.  Without quads, AVX2 gains nothing by it. */
#define ETC_MAKES_BYTES (ETC_QUADS && ((ETC_TERMS == 4) || (ETC_HAS_QUADS != 0)))

/* Writes what becomes of a tile: bytes, floats or sums. */
ETC_INLINE void etc_integer_end(const EtcIntegerBlock *t, int32_t *sums, int64_t i, int64_t c, int mr,
                                int nv, EtcI acc[16][4])
{
    if (ETC_MAKES_BYTES && (ETC_HAS_THEN != 0) && (t->bytes != NULL) && (t->bytes->has_then != 0)) {
        etc_integer_to_floats(t->bytes, i, (float *)(void *)sums, t->width, mr, nv, acc);
    } else if (ETC_MAKES_BYTES && (t->bytes != NULL)) {
        etc_integer_to_bytes(t->bytes, i, c, mr, nv, acc);
    } else {
        etc_integer_to(t, sums, mr, nv, acc);
    }
}

/* Computes a tile of mr rows and nv vectors of columns if ETC_TERMS is 4.  A word of weights has four
 * terms. */
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
        etc_integer_add(panel, w + k, t->w_row, 4, mr, nv, acc);
    }
    for (; ETC_QUADS && ((k + (4 * t->n_rows)) <= t->n_k); panel += t->together * t->row) {
        for (int64_t p = 0; p < t->n_rows; p++) {
            const uint32_t *x = panel + t->offset[p];
            for (int64_t j = 0; j < t->together; j++, k += 4, x += t->row) {
                __builtin_prefetch(ahead + (mr * k), 0, 2);
                etc_integer_add(x, w + k, t->w_row, 4, mr, nv, acc);
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
        etc_integer_add(panel, word, sizeof word[0], 4, mr, nv, acc);
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

/* The operands of a tile: ETC_WORDS words of each row's weights.  A word has two weights, widened, or
 * four that are bounded; `rest` has what bounds left of some words.  Terms of a run are t->row words
 * apart in the panel. */
typedef struct EtcOperands {
    int32_t w[ETC_INTEGER_MR][ETC_WORDS];
    int64_t run[ETC_RUNS]; /* the words of the panel before those of a run's first term */
    int64_t end[ETC_RUNS]; /* the index of its last term, plus 1 */
    int n_runs;
#if ETC_DOTS_BOUNDED == 1
    int32_t rest[4][ETC_WORDS + 1]; /* the last word is 0 */
    uint8_t word[4][ETC_WORDS + 1]; /* which words have a rest, then the last word ... */
    int n_words;                    /* ... until each row has so many */
    int64_t at[ETC_WORDS + 1];      /* the words of the panel before those of each term */
#endif
} EtcOperands;

/* Sets the places of n words of terms, from word k on. */
ETC_INLINE void etc_operands_at(const EtcIntegerBlock *t, int64_t k, int64_t n, EtcOperands *o)
{
    int64_t side = k + n, j = k, p = 0, from = 0;
    if ((ETC_HAS_QUADS != 0) && (t->n_rows > 1)) {
        side = t->together * 4 / t->terms;
        j = k % side;
        p = (k / side) % t->n_rows;
        from = ((k / side) / t->n_rows) * side;
    }
    o->n_runs = 0;
    for (int64_t b = 0; b < n; o->n_runs++) {
        const int64_t some = etc_min_i64(n - b, side - j), at = ((from + j) * t->row) + t->offset[p];
        o->run[o->n_runs] = at;
        o->end[o->n_runs] = b + some;
#if ETC_DOTS_BOUNDED == 1
        for (int64_t i = 0; i < some; i++) {
            o->at[b + i] = at + (i * t->row);
        }
#endif
        b += some;
        j = 0;
        p++;
        if (p == t->n_rows) {
            p = 0;
            from += side;
        }
    }
}

/* Widens n weights. */
ETC_INLINE void etc_widen_row(const int8_t *w, int64_t n, int32_t *to)
{
    for (; n > 0; n -= ETC_TERM_BYTES) {
        *(EtcIAnywhere *)to = etc_w_terms(etc_term_bytes(w, etc_min_i64(n, ETC_TERM_BYTES)));
        w += ETC_TERM_BYTES;
        to += ETC_LANES;
    }
}

#if ETC_DOTS_BOUNDED == 1
/* Bounds n weights of row r, and prefetches those at `ahead`.  Returns the number of words that have a
 * rest. */
ETC_INLINE int etc_bound_row(const int8_t *w, const int8_t *ahead, int64_t n, int r, EtcOperands *o)
{
    union {
        uint8_t byte[ETC_WORDS / 8];
        uint64_t word[ETC_WORDS / 64];
    } set = {{0}}; /* a bit for each word that has a rest */
    int count = 0;
    for (int64_t b = 0; b < n; b += ETC_VEC) {
        EtcI v = ETC_REP(0), rest;
        __builtin_prefetch(ahead + b, 0, 2);
        if ((n - b) >= ETC_VEC) {
            __builtin_memcpy(&v, w + b, sizeof v);
        } else {
            __builtin_memcpy(&v, w + b, (size_t)(n - b));
        }
        *(EtcIAnywhere *)&o->w[r][b / 4] = etc_bound(v, &rest);
        *(EtcIAnywhere *)&o->rest[r][b / 4] = rest;
        set.byte[b / ETC_VEC] = (uint8_t)etc_set_lanes(rest);
    }
    for (int k = 0; k < (ETC_WORDS / 64); k++) {
        for (; set.word[k] != 0; set.word[k] &= set.word[k] - 1) {
            o->word[r][count] = (uint8_t)((64 * k) + __builtin_ctzll(set.word[k]));
            count++;
        }
    }
    return count;
}

/* Bounds n weights of rows i .. i + mr - 1, from weight k on. */
ETC_INLINE void etc_bound_rows(const EtcIntegerBlock *t, int64_t k, int64_t n, int64_t i, int mr,
                               EtcOperands *o)
{
    int count[4] = {0};
    o->n_words = 0;
    o->at[ETC_WORDS] = 0;
    for (int r = 0; r < mr; r++) {
        const int8_t *w = t->w + ((i + r) * t->w_row) + k;
        count[r] = etc_bound_row(w, w + (mr * t->w_row), n, r, o);
        o->n_words = (count[r] > o->n_words) ? count[r] : o->n_words;
    }
    for (int r = 0; r < mr; r++) {
        o->rest[r][ETC_WORDS] = 0;
        for (; count[r] < o->n_words; count[r]++) {
            o->word[r][count[r]] = ETC_WORDS;
        }
    }
}
#endif

/* Adds the operands' products to a tile of mr rows from i on and nv vectors of columns from c on.  The
 * panel has `terms` terms in a word. */
ETC_INLINE void etc_operands_tile(const EtcIntegerBlock *t, const EtcOperands *o, int is_first, int64_t i,
                                  int64_t c, int64_t terms, int mr, int nv)
{
    const uint32_t *panel = t->panel + c;
    const int32_t *w = o->w[0];
    const int64_t row = t->row;
    int32_t *sums = t->sums + (i * t->width) + c;
    EtcI acc[16][4];
    etc_integer_from(t, sums, i, mr, nv, is_first, acc);
#if ETC_DOTS_BOUNDED == 1
    for (int k = 0; (terms == 4) && (k < o->n_words); k++) {
        ETC_UNROLL
        for (int r = 0; r < mr; r++) {
            const int b = o->word[r][k];
            etc_integer_add(panel + o->at[b], &o->rest[r][b], 0, terms, 1, nv, &acc[r]);
        }
    }
#endif
    const int n_runs = (ETC_HAS_QUADS != 0) ? o->n_runs : 1;
    for (int k = 0; k < n_runs; k++) {
        const uint32_t *x = panel + o->run[k];
        const int32_t *end = o->w[0] + o->end[k];
        for (; w < end; w++, x += row) {
            etc_integer_add(x, w, ETC_WORDS * 4, terms, mr, nv, acc);
        }
    }
    if (terms == 4) {
        etc_integer_end(t, sums, i, c, mr, nv, acc);
    } else {
        etc_integer_to(t, sums, mr, nv, acc);
    }
}

/* Adds n words of terms, from word k on, to rows i .. i + mr - 1.  The operands serve all columns. */
ETC_INLINE void etc_operands_rows(const EtcIntegerBlock *t, EtcOperands *o, int64_t k, int64_t n, int64_t i,
                                  int64_t terms, int mr)
{
    const int is_first = (t->is_first != 0) && (k == 0);
    const int64_t from = k * terms, n_w = etc_min_i64(n * terms, t->n_k - from);
    int64_t c = 0;
#if ETC_DOTS_BOUNDED == 1
    if (terms == 4) {
        etc_bound_rows(t, from, n_w, i, mr, o);
    }
#endif
    for (int r = 0; (terms == 2) && (r < mr); r++) {
        etc_widen_row(t->w + ((i + r) * t->w_row) + from, n_w, o->w[r]);
    }
    for (; (c + (ETC_INTEGER_NV * ETC_LANES)) <= t->width; c += ETC_INTEGER_NV * ETC_LANES) {
        etc_operands_tile(t, o, is_first, i, c, terms, mr, ETC_INTEGER_NV);
    }
    for (; c < t->width; c += ETC_LANES) {
        etc_operands_tile(t, o, is_first, i, c, terms, mr, 1);
    }
}

/* Does so mr rows at a time, from row i on, while there are as many.  Returns the next row. */
ETC_INLINE int64_t etc_operands_all(const EtcIntegerBlock *t, EtcOperands *o, int64_t k, int64_t n, int64_t i,
                                    int64_t terms, int mr)
{
    while ((i + mr) <= t->m) {
        etc_operands_rows(t, o, k, n, i, terms, mr);
        i += mr;
    }
    return i;
}

ETC_OUTLINE void etc_wide_block(const EtcIntegerBlock *t)
{
    EtcOperands o;
    const int64_t words = (t->n_k + 1) / 2;
    for (int64_t k = 0; k < words; k += ETC_WORDS) {
        const int64_t n = etc_min_i64(words - k, ETC_WORDS);
        int64_t i = 0;
        etc_operands_at(t, k, n, &o);
        i = etc_operands_all(t, &o, k, n, i, 2, ETC_INTEGER_MR);
        if ((ETC_DOTS_BOUNDED != 0) && (ETC_HAS_QUADS != 0)) {
            i = etc_operands_all(t, &o, k, n, i, 2, 4);
        }
        (void)etc_operands_all(t, &o, k, n, i, 2, 1);
    }
}

#if ETC_DOTS_BOUNDED == 1
ETC_OUTLINE void etc_bounded_block(const EtcIntegerBlock *t)
{
    EtcOperands o;
    const int64_t words = (t->n_k + 3) / 4;
    for (int64_t k = 0; k < words; k += ETC_WORDS) {
        const int64_t n = etc_min_i64(words - k, ETC_WORDS);
        etc_operands_at(t, k, n, &o);
        (void)etc_operands_all(t, &o, k, n, 0, 4, 4);
    }
}

/* Returns whether products by bounded weights are faster: rows fill tiles, there are enough terms and
 * pixels, and bounds leave rests of few words.  Eight rows tell the last. */
ETC_OUTLINE int etc_is_for_bounded(const int8_t *w, int64_t depth, int64_t rows, int64_t pixels)
{
    int64_t words = 0, rests = 0;
    if ((depth < 128) || (pixels < 100) || ((rows % 4) != 0)) {
        return 0;
    }
    for (int64_t i = 0; i < rows; i += (rows + 7) / 8) {
        for (int64_t k = 0; (k + ETC_VEC) <= depth; k += ETC_VEC) {
            EtcI v, rest;
            __builtin_memcpy(&v, w + (i * depth) + k, sizeof v);
            (void)etc_bound(v, &rest);
            rests += __builtin_popcount(etc_set_lanes(rest));
            words += ETC_LANES;
        }
    }
    return (rests * 8) <= words;
}
#endif

/* Returns how many terms a word of the panel has. */
ETC_INLINE int64_t etc_integer_terms(const int8_t *w, int64_t depth, int64_t rows, int64_t pixels)
{
#if ETC_DOTS_BOUNDED == 1
    return (etc_is_for_bounded(w, depth, rows, pixels) != 0) ? 4 : 2;
#else
    (void)w;
    (void)depth;
    (void)rows;
    (void)pixels;
    return ETC_TERMS;
#endif
}

ETC_INLINE void etc_integer_block(const EtcIntegerBlock *t)
{
#if defined(ETC_TILES)
    if (etc_is_for_tiles(t) != 0) {
        etc_tiles_block(t);
        return;
    }
#endif
#if ETC_DOTS_BOUNDED == 1
    if (t->terms == 4) {
        etc_bounded_block(t);
        return;
    }
#endif
    if (ETC_TERMS == 4) {
        etc_four_block(t);
    } else {
        etc_wide_block(t);
    }
}

#endif
