/* integer_conv.h -- convolutions of 8-bit integers as products of weights and panels of pixels. */
#ifndef ETC_INTEGER_CONV_H
#define ETC_INTEGER_CONV_H

#include "runtime-lite/kernels/integer_depthwise.h"
#include "runtime-lite/kernels/integer_tile.h"

/* Returns the vectors per row of a panel of `rows` rows.  With few terms a panel is wide, which
 * reduces the work that is done once per panel and row of sums. */
ETC_INLINE int64_t etc_integer_vectors(const EtcConv *g, int64_t rows, int64_t few)
{
    const int64_t tile = ETC_INTEGER_NV, least = ETC_INTEGER_LEAST / ETC_LANES;
    const int64_t runs = g->ow * (ETC_INTEGER_RUNS - 2) / ETC_LANES;
    int64_t n = etc_min_i64(few / ETC_VEC / rows, ETC_INTEGER_PANEL / ETC_LANES);
    n = etc_max_i64((etc_min_i64(n, runs) / tile) * tile, least);
    const int64_t all = ((g->oh * g->ow) + ETC_LANES - 1) / ETC_LANES, panels = (all + n - 1) / n;
    const int64_t even = (all + panels - 1) / panels;
    return etc_min_i64(((even + tile - 1) / tile) * tile, n);
}

/* Returns whether tiles make bytes of their sums: a tile adds all terms at once. */
ETC_INLINE int etc_makes_bytes(int64_t depth, int64_t terms)
{
    return ETC_MAKES_BYTES && (terms == 4) && ((ETC_TERMS == 4) || (depth <= (4 * ETC_WORDS)));
}

/* Convolves one image and group.  `at` is the index of its first element in y. */
ETC_INLINE void etc_integer_product(const uint8_t *x, const int8_t *w, void *y, int64_t at,
                                    int64_t channel, const EtcConv *g, const EtcInteger *q,
                                    void *work)
{
    const int64_t depth = etc_integer_depth(g), pixels = g->oh * g->ow, none = 0;
    const int64_t terms = etc_integer_terms(w, depth, g->oc, pixels);
    const int64_t rows = (depth + terms - 1) / terms; /* the rows of the panel */
    const int64_t few = (terms > ETC_TERMS) ? ETC_INTEGER_HALF : ETC_INTEGER_FEW;
    const int64_t vectors = etc_integer_vectors(g, rows, few), most = vectors * ETC_LANES;
    const int fits = (rows * vectors) <= (ETC_INTEGER_ROOM / ETC_VEC);
    const int64_t block = fits ? depth : ((ETC_INTEGER_HALF / ETC_VEC / vectors) * terms);
    uint32_t *panel = (uint32_t *)work;
    EtcToBytes bytes;
    EtcIntegerBlock t = {w, depth, panel, terms, 0, 1, &none, 1, NULL, 0, 0, 0, 1, NULL, 0, NULL};
    if (fits && (etc_makes_bytes(depth, terms) != 0) &&
        (etc_to_bytes_of(q, channel, g->oc, &bytes) != 0)) {
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
            etc_integer_pack(x, g, terms, 0, depth, j, n, q, panel);
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
                    etc_integer_pack(x, g, terms, k, t.n_k, j, n, q, panel);
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

/* Returns the rows of a band whose words have `terms` terms, or 0 if etc_integer_quads cannot convolve.
 * The pictures get half of `work`, and the sums of at least 12 channels the rest. */
ETC_INLINE int64_t etc_quads_rows(const EtcConv *g, int64_t terms)
{
    EtcQuads b;
    int64_t rows = g->oh;
    b.terms = terms;
    if (((g->kh * g->kw) > ETC_QUAD_TAPS) ||
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

/* Convolves one image and group whose weights are in quads, some rows at a time.  Nothing is copied per
 * tap, so that fewer pixels are worth products by bounded weights.  Returns 0, and does nothing, if it
 * cannot. */
ETC_INLINE int etc_integer_quads(const uint8_t *x, const int8_t *w, void *y, int64_t at, int64_t channel,
                                 const EtcConv *g, const EtcInteger *q, void *work)
{
    EtcQuads b;
    EtcToBytes bytes;
    if ((ETC_HAS_QUADS == 0) || (g->form != ETC_IN_QUADS)) {
        return 0;
    }
    const int64_t depth = etc_integer_depth(g), pixels = 3 * g->oh * g->ow;
    const int64_t terms = etc_integer_terms(w, depth, g->oc, pixels);
    const int64_t most = etc_quads_rows(g, terms);
    if (most == 0) {
        return 0;
    }
    EtcIntegerBlock t = {w, depth, (uint32_t *)work, terms, 0, g->kh * g->kw, b.offset,
                         etc_quads_together((g->ic + 3) / 4), NULL, 0, depth, 0, 1, NULL, 0, NULL};
    t.zero = (uint32_t)(etc_x_zero(q, 0) + etc_x_shift(q));
    const int is_for_bytes = etc_makes_bytes(depth, terms);
    t.bytes = (is_for_bytes && (etc_to_bytes_of(q, channel, g->oc, &bytes) != 0)) ? &bytes : NULL;
    b.terms = terms;
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
    return 1;
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
    for (int64_t i = 0; i < (g.n * g.groups); i++) {
        const int64_t group = i % g.groups;
        const uint8_t *image = (const uint8_t *)x + (i * x_size);
        const int8_t *weights = w + (group * w_size);
        const int64_t at = i * y_size, channel = group * g.oc;
        if (!ETC_QUADS || (etc_integer_quads(image, weights, y, at, channel, &g, q, work) == 0)) {
            etc_integer_product(image, weights, y, at, channel, &g, q, work);
        }
    }
}

#endif
