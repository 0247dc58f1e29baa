/* bfloat.h -- products whose weights are stored as bfloat16, in blocks.
 *
 * A word is two terms of a row of weights.  Weights of linear layers lie as [blocks][words][16
 * rows], those of convolutions as [blocks][steps][taps][16 rows][words of a step], where
 * etc_step_words has the words of a step.  Zeros are what fills up blocks and steps.
 *
 * AMX multiplies them as they lie (bfloat_tiles.h).  Else some blocks at a time are widened to
 * floats, which the cores for floats then multiply, so each sum is that of matmul.h or conv.h, to the
 * bit. */
#ifndef ETC_BFLOAT_H
#define ETC_BFLOAT_H

#include "runtime-lite/kernels/bfloat_tiles.h"
#include "runtime-lite/kernels/half.h"
#include "runtime-lite/kernels/parts.h"

/* Widens n terms of a block of a linear layer. */
ETC_INLINE void etc_widen_words(const uint16_t *from, int64_t n, float *to)
{
    for (int64_t k = 0; k < n; k += 2) {
        for (int64_t r = 0; r < ETC_TOGETHER; r += ETC_LANES) {
            EtcU words;
            __builtin_memcpy(&words, from + (k * ETC_TOGETHER) + (2 * r), sizeof words);
            etc_storeu(to + (k * ETC_TOGETHER) + r, (EtcF)(words << 16));
            if ((k + 1) < n) {
                etc_storeu(to + ((k + 1) * ETC_TOGETHER) + r, (EtcF)(words & 0xffff0000u));
            }
        }
    }
}

/* The weights of a convolution: each channel has so many taps. */
typedef struct EtcWeights {
    const uint16_t *from; /* the first block */
    int64_t channels, taps, words, steps;
    int64_t block; /* elements from block to block */
} EtcWeights;

ETC_INLINE EtcWeights etc_weights_of(const uint16_t *w, const EtcConv *g)
{
    EtcWeights of = {w, g->ic, g->kh * g->kw, 0, 0, 0};
    if (etc_taps_are_terms(g) != 0) {
        of.channels *= of.taps;
        of.taps = 1;
    }
    of.words = etc_step_words(of.channels);
    of.steps = etc_steps_of(of.channels);
    of.block = ETC_TOGETHER * of.steps * of.taps * of.words * 2;
    return of;
}

/* Widens terms first .. end - 1 of as many words of as many rows as there are lanes, but of at most n
 * words.  The terms of `width` rows lie side by side in `to`, and `step` floats from term to term. */
ETC_INLINE void etc_widen_square(const uint16_t *from, int64_t row, int64_t n, int64_t first, int64_t end,
                                 float *to, int64_t step, int64_t width)
{
    EtcF v[ETC_LANES];
    ETC_UNROLL
    for (int r = 0; r < ETC_LANES; r++) {
        v[r] = etc_load((const float *)(const void *)(from + (r * row)), n);
    }
    etc_transpose(v);
    ETC_UNROLL
    for (int i = 0; i < ETC_LANES; i++) {
        if (((2 * i) >= first) && ((2 * i) < end)) {
            etc_store(to + (((2 * i) - first) * step), width, (EtcF)((EtcU)v[i] << 16));
        }
        if (((2 * i) + 1) < end) {
            etc_store(to + (((2 * i) + 1 - first) * step), width, (EtcF)((EtcU)v[i] & 0xffff0000u));
        }
    }
}

/* Widens channels from .. from + n - 1 of `rows` rows of a block to to[n][taps][rows]. */
ETC_INLINE void etc_widen_channels(const EtcWeights *w, const uint16_t *block, int64_t from, int64_t n,
                                   int64_t rows, float *to)
{
    const int64_t side = 2 * w->words, step = w->taps * rows;
    for (int64_t c = from, m; c < (from + n); c += m) {
        const int64_t s = c / side, first = c % 2, at = (c % side) - first;
        m = etc_min_i64(etc_min_i64(side - at, 2 * ETC_LANES) - first, from + n - c);
        for (int64_t t = 0; t < w->taps; t++) {
            const uint16_t *tile = block + (((s * w->taps) + t) * ETC_TOGETHER * side) + at;
            for (int64_t r = 0; r < rows; r += ETC_LANES) {
                etc_widen_square(tile + (r * side), side, w->words - (at / 2), first, first + m,
                                 to + (((c - from) * step) + (t * rows) + r), step, rows - r);
            }
        }
    }
}

/* The fewest columns whose weights are widened at a time: whole blocks. */
#define ETC_WIDE_COLUMNS ((ETC_BLOCK_PANEL > ETC_TOGETHER) ? ETC_BLOCK_PANEL : ETC_TOGETHER)

/* Fewer rows than this read widened weights so seldom that these should stay in the first-level
 * cache. */
#define ETC_WIDE_ROWS 16

/* Returns the columns for whose weights, `terms` of each, the working memory has room.  The more there
 * are, the less often the rows of a are read. */
ETC_INLINE int64_t etc_wide_columns(int64_t m, int64_t terms)
{
    const int64_t room = ETC_WORK_BYTES / (int64_t)sizeof(float) / etc_max_i64(terms, 1);
    return (m < ETC_WIDE_ROWS) ? ETC_WIDE_COLUMNS : (room / ETC_WIDE_COLUMNS * ETC_WIDE_COLUMNS);
}

/* Does what etc_matmul_part does.  `work` has ETC_WORK_BYTES. */
ETC_OUTLINE void etc_matmul_bf16(const float *a, const uint16_t *b, const float *bias, float *y,
                                 const EtcMatmul *g, int64_t y_row, void *work)
{
    float *panel = (float *)work;
    const int64_t row = 2 * etc_step_words(g->k) * etc_steps_of(g->k);
#if defined(ETC_TILES)
    if (etc_has_tiles() != 0) {
        etc_tiles_matmul(a, b, bias, y, g, y_row, work);
        return;
    }
#endif
    const int64_t columns = etc_wide_columns(g->m, etc_min_i64(g->k, ETC_BLOCK_TERMS));
    for (int64_t j = 0; j < g->n; j += columns) {
        EtcMatmul part = *g;
        int64_t k = 0;
        part.n = etc_min_i64(g->n - j, columns);
        do { /* The loop runs once even if k is 0. */
            const int is_last = (k + ETC_BLOCK_TERMS) >= g->k;
            part.k = etc_min_i64(g->k - k, ETC_BLOCK_TERMS);
            part.lo = (is_last != 0) ? g->lo : -__builtin_inff();
            part.hi = (is_last != 0) ? g->hi : __builtin_inff();
            for (int64_t c = 0; c < part.n; c += ETC_TOGETHER) {
                etc_widen_words(b + ((j + c) * row) + (k * ETC_TOGETHER), part.k, panel + (c * part.k));
            }
            etc_matmul_part(a + k, panel, ((bias != NULL) && (k == 0)) ? (bias + j) : NULL, y + j,
                            &part, y_row);
            part.from_y = 1;
            k += part.k;
        } while (k < g->k);
    }
}

/* The channels whose weights a convolution across channels widens at a time. */
#define ETC_WIDE_CHANNELS ((ETC_LANES == ETC_TOGETHER) ? (2 * ETC_TOGETHER) : ETC_TOGETHER)

/* Does what etc_conv_across does.  `wide` has room for the weights of ETC_WIDE_CHANNELS channels
 * and a lot. */
ETC_INLINE void etc_bfloat_across(const float *x, const EtcWeights *w, const float *bias, float *y,
                                  const EtcConv *g, EtcPlanes *p, float *work, float *wide)
{
    float *planes = work + ETC_SUMS;
    const int64_t taps = g->kh * g->kw, whole = g->oc - (g->oc % ETC_TOGETHER);
    const int64_t terms = taps / w->taps; /* of a channel of x */
    etc_planes_list(g, p);
    for (int64_t oy = 0; oy < p->oh; oy += p->band) {
        const int64_t n = etc_min_i64(p->band, p->oh - oy);
        for (int64_t c = 0; c < g->ic; c += p->lot) {
            const int64_t lot = etc_min_i64(p->lot, g->ic - c), block = lot * taps * ETC_TOGETHER;
            const float *from = (p->in_place != 0) ? (x + (c * g->x_plane)) : planes;
            EtcAcross t = {wide, 0, 0, x, 0, lot / p->group, p->group * p->plane, p->at, p->n_at,
                           wide, NULL};
            t.w_second = (ETC_LANES == ETC_TOGETHER) ? block : ETC_LANES;
            for (int64_t i = 0; (p->in_place == 0) && (i < lot); i++) {
                etc_plane_copy(x + ((c + i) * g->x_plane), g, p, oy, planes + (i * p->plane));
            }
            for (int64_t i = 0, nv; i < whole; i += nv * ETC_LANES) {
                const int64_t at = i % ETC_WIDE_CHANNELS;
                for (int64_t k = i; (at == 0) && (k < etc_min_i64(i + ETC_WIDE_CHANNELS, whole));
                     k += ETC_TOGETHER) {
                    etc_widen_channels(w, w->from + (k / ETC_TOGETHER * w->block), c * terms, lot * terms,
                                       ETC_TOGETHER, wide + (((k - i) / ETC_TOGETHER) * block));
                }
                nv = etc_across_vectors((whole - i) / ETC_LANES, 2);
                t.w = wide + ((at / ETC_TOGETHER) * block) + (at % ETC_TOGETHER);
                const EtcBand b = {from, (bias != NULL) ? (bias + i) : NULL,
                                   y + (i * g->y_plane) + (oy * p->ow), nv, c == 0,
                                   (c + lot) == g->ic, NULL, 0};
                etc_across_band(&t, g, p, &b, n, work);
            }
        }
    }
}

/* Convolves one image and group.  `wide` has room for n_wide floats: at least those of a block. */
ETC_INLINE void etc_bfloat_forward(const float *x, const EtcWeights *w, const float *bias, float *y,
                                   const EtcConv *g, int64_t n_wide, float *work, float *wide)
{
    EtcPlanes planes;
    EtcConv part = *g;
    const int64_t taps = g->kh * g->kw, depth = g->ic * taps;
    const int64_t most = etc_max_i64(n_wide / (depth * ETC_TOGETHER), 1) * ETC_TOGETHER;
    int64_t c = 0;
    if (etc_is_across(g, &planes)) {
        c = g->oc - (g->oc % ETC_TOGETHER);
        planes.lot = etc_min_i64(planes.lot, etc_max_i64(n_wide / (taps * ETC_WIDE_CHANNELS), 1));
        etc_bfloat_across(x, w, bias, y, g, &planes, work, wide);
    }
    for (; c < g->oc; c += part.oc) {
        part.oc = etc_min_i64(most, g->oc - c);
        for (int64_t i = 0; i < part.oc; i += ETC_TOGETHER) {
            etc_widen_channels(w, w->from + ((c + i) / ETC_TOGETHER * w->block), 0, w->channels,
                               etc_min_i64(part.oc - i, ETC_TOGETHER), wide + (i * depth));
        }
        etc_conv_product(x, wide, (bias != NULL) ? (bias + c) : NULL, y + (c * g->y_plane), &part,
                         work);
    }
}

/* Does what etc_conv_f32 does, with weights in blocks.  `work` has ETC_WORK_BYTES, and then room
 * for n_wide floats: at least those of two blocks' taps and of one block. */
ETC_OUTLINE void etc_conv_bf16(const float *x, const uint16_t *w, const float *bias, float *y,
                               const EtcConv *geometry, int64_t n_wide, void *work)
{
    EtcConv g = *geometry;
    g.x_plane = (g.x_plane != 0) ? g.x_plane : (g.ih * g.iw);
    g.y_plane = (g.y_plane != 0) ? g.y_plane : (g.oh * g.ow);
    const int64_t x_size = g.ic * g.x_plane, y_size = g.oc * g.y_plane;
    EtcWeights weights = etc_weights_of(w, &g);
    const int64_t w_size = ((g.oc + ETC_TOGETHER - 1) / ETC_TOGETHER) * weights.block;
    float *wide = (float *)(void *)((uint8_t *)work + ETC_WORK_BYTES);
    for (int64_t i = 0; i < (g.n * g.groups); i++) {
        const int64_t group = i % g.groups;
        const float *start = (bias != NULL) ? (bias + (group * g.oc)) : NULL;
        weights.from = w + (group * w_size);
#if defined(ETC_TILES)
        if ((etc_has_tiles() != 0) &&
            (etc_tiles_conv(x + (i * x_size), weights.from, start, y + (i * y_size), &g,
                            ETC_WORK_BYTES + (4 * n_wide), work) != 0)) {
            continue;
        }
#endif
        etc_bfloat_forward(x + (i * x_size), &weights, start, y + (i * y_size), &g, n_wide, (float *)work,
                           wide);
    }
}

/* Does what etc_attention_f32 does.  AMX rounds the scaled queries, the keys, the values and the results
 * of the softmax to bfloat16. */
ETC_INLINE void etc_attention_bf16(const float *q, const float *k, const float *v, const EtcMask *mask,
                                   float *y, const EtcAttention *g, void *work)
{
#if defined(ETC_TILES)
    if ((etc_has_tiles() != 0) && (etc_tiles_attention(q, k, v, mask, y, g, work) != 0)) {
        return;
    }
#endif
    etc_attention_f32(q, k, v, mask, y, g, work);
}

#endif
