/* fixed_conv.h -- convolutions, means and elementwise functions of 8-bit integers for
 * microcontrollers, from the steps of fixed.h. */
#ifndef ETC_FIXED_CONV_H
#define ETC_FIXED_CONV_H

#include "runtime-lite/kernels/mcu_plain.h"

ETC_OUTLINE void etc_mcu_fill(EtcMcuPixel *to, int32_t n, EtcMcuPixel pad)
{
    int32_t i = 0;
    if (sizeof pad == 2) {
        const uint32_t two = (uint16_t)pad * 0x10001u;
        for (; (i + 2) <= n; i += 2) {
            __builtin_memcpy(to + i, &two, 4);
        }
    }
    for (; i < n; i++) {
        to[i] = pad;
    }
}

/* Computes y[oc][oh * ow] of one image for a 1x1 kernel with stride 1 and no padding.  y has at
 * least four pixels.  work: a panel. */
ETC_OUTLINE void etc_mcu_pointwise(const void *x, const int8_t *w, void *y, const EtcMcuConv *g,
                                   const EtcMcu *q, void *work)
{
    const int32_t n = g->oh * g->ow;
    etc_mcu_fill((EtcMcuPixel *)work, ETC_MCU_PANEL(g->k) / (int32_t)sizeof(EtcMcuPixel), 0);
    for (int32_t j = 0; j < n; j += 4) {
        const int32_t p = etc_min_i32(j, n - 4); /* the last four may overlap those before */
        etc_mcu_planes((const uint8_t *)x + p, n, g->ic, g->k, q->x_flip, work);
#if ETC_MCU_SINGLE
        if (j == (n - 1)) {
            etc_mcu_single(work, w, (int8_t *)y + j, n, g->k, g->oc, q);
            break;
        }
#endif
        etc_mcu_tiles(work, w, (int8_t *)y + p, n, g->k, g->oc, q);
    }
}

/* The rows of x that windows of a row of y read, as a ring: row iy is in slot (iy + ph) % kh. */
typedef struct EtcMcuRing {
    EtcMcuPixel *rows; /* [kh][width][wide] */
    int32_t pitch, all; /* the numbers of a row, and of all rows */
    int32_t first; /* the column of x that a row starts with; negative: padding */
    int32_t next;  /* the next row of x to take in */
    int32_t top;   /* where the slot of the windows' upper row begins */
    int32_t kh, run, step; /* rows of a window, numbers of its row, and from window to window */
    uint16_t *places; /* of the pairs of a window's numbers in the rows; NULL: they are not used */
} EtcMcuRing;

/* Takes in the rows of x that windows with the upper row `top` read.  Rows outside x become
 * padding. */
ETC_INLINE void etc_mcu_turn(const uint8_t *x, const EtcMcuConv *g, const EtcMcu *q, int32_t top,
                             EtcMcuRing *r)
{
    const int32_t from = etc_max_i32(0, r->first);
    const int32_t n = etc_min_i32(g->iw, r->first + (r->pitch / g->wide)) - from;
    for (r->next = etc_max_i32(r->next, top); r->next < (top + g->kh); r->next++) {
        EtcMcuPixel *to = r->rows + (((r->next + g->ph) % g->kh) * r->pitch);
        if ((r->next < 0) || (r->next >= g->ih)) {
            etc_mcu_fill(to, r->pitch, etc_mcu_byte((uint32_t)g->pad ^ q->x_flip));
        } else if (n > 0) {
            etc_mcu_pixels(x + (r->next * g->iw) + from, g, n, q->x_flip,
                           to + ((from - r->first) * g->wide));
        }
    }
    const int32_t at = ((top + g->ph) % g->kh) * r->pitch;
#if defined(ETC_MCU_PICKS)
    if (r->places != NULL) {
        etc_mcu_move(r->places, g->k, (at - r->top) + ((at < r->top) ? r->all : 0), r->all);
    }
#endif
    r->top = at;
}

/* Copies n windows, the first one at number `column` of the ring's rows, to as many pixels of a
 * panel.  `line` holds a window in between if its rows do not fill whole steps and r->places is
 * NULL. */
ETC_OUTLINE void etc_mcu_gather(const EtcMcuRing *r, int32_t column, int32_t n, int32_t k,
                                EtcMcuPixel *line, uint8_t *panel)
{
    const int32_t run = r->run, step = r->step, pitch = r->pitch, all = r->all, kh = r->kh;
    const EtcMcuPixel *top = r->rows + r->top + column, *end = r->rows + all + column;
#if defined(ETC_MCU_PICKS)
    if (r->places != NULL) {
        etc_mcu_pick(r->places, r->rows + column, step, n, k, panel);
        return;
    }
#endif
    if ((run % ETC_MCU_RUN) == 0) {
        for (int32_t i = kh; i > 0; i--) {
            const EtcMcuPixel *from = top;
            uint8_t *to = panel;
            int32_t left = n;
#if ETC_MCU_BY_4
            if (n == 4) {
                etc_mcu_spread_4(from, step, run, to);
                left = 0;
            }
#endif
            for (; left > 0; left--) {
                etc_mcu_spread(from, run, to);
                from += step;
                to += ETC_MCU_SLOT;
            }
            panel += ETC_MCU_PANEL(run);
            top += pitch;
            top = (top < end) ? top : (top - all); /* the rows are a ring */
        }
        return;
    }
    for (; n > 0; n--, panel += ETC_MCU_SLOT) {
        const EtcMcuPixel *from = top;
        EtcMcuPixel *to = line;
        for (int32_t i = kh; i > 0; i--, to += run) {
            etc_mcu_copy(from, run, to);
            from += pitch;
            from = (from < end) ? from : (from - all);
        }
        etc_mcu_spread(line, k, panel);
        top += step;
        end += step;
    }
}

#if defined(ETC_MCU_PICKS)
/* Writes the places, in bytes, of a window's terms in its rows, which are `pitch` apart: one for each
 * two of the `run` terms of a row, and zeros up to k terms. */
ETC_INLINE void etc_mcu_places(int32_t kh, int32_t run, int32_t pitch, int32_t k, uint16_t *to)
{
    const uint16_t *const end = to + (k / 2);
    for (int32_t row = 0; row < (kh * pitch); row += pitch) {
        for (int32_t t = 0; t < run; t += 2) {
            *to++ = (uint16_t)((int32_t)sizeof(EtcMcuPixel) * (row + t));
        }
    }
    while (to < end) {
        *to++ = 0;
    }
}
#endif

/* Empties the ring for windows of `columns` columns of y, from column ox on. */
ETC_INLINE void etc_mcu_start(int32_t ox, int32_t columns, const EtcMcuConv *g, const EtcMcu *q,
                              EtcMcuPixel *line, EtcMcuRing *r)
{
    r->pitch = (((columns - 1) * g->sw) + g->kw) * g->wide;
    r->first = (ox * g->sw) - g->pw;
    r->next = -g->ph;
    r->all = g->kh * r->pitch;
    r->top = 0;
    r->places = NULL;
#if defined(ETC_MCU_PICKS)
    if (ETC_MCU_PICKS(r->run, r->step) && (r->all <= 16384)) {
        r->places = (uint16_t *)(void *)line;
        etc_mcu_places(g->kh, r->run, r->pitch, g->k, r->places);
    }
#else
    (void)line;
#endif
    etc_mcu_fill(r->rows, r->all, etc_mcu_byte((uint32_t)g->pad ^ q->x_flip));
}

/* Computes y[oc][oh * ow] of one image.  work: a panel, kh rows of the pixels that g->band columns
 * of y read, and 16 numbers; where rows of windows are no whole steps or are picked, k numbers and 16
 * bytes; and where a panel may lack pixels, four bytes for each channel of y. */
ETC_OUTLINE void etc_mcu_windows(const void *x, const int8_t *w, void *y, const EtcMcuConv *g,
                                 const EtcMcu *q, void *work)
{
    const int32_t plane = g->oh * g->ow, row = (((g->band - 1) * g->sw) + g->kw) * g->wide;
    const int32_t run = g->kw * g->wide, steps = (run + ETC_MCU_RUN - 1) / ETC_MCU_RUN;
    uint8_t *const panel = (uint8_t *)work;
    EtcMcuRing r;
    r.kh = g->kh;
    r.run = run;
    if (g->k == (g->kh * steps * ETC_MCU_RUN)) { /* Zero weights meet what is behind a row. */
        r.run = steps * ETC_MCU_RUN;
    }
    r.step = g->sw * g->wide;
    r.rows = (EtcMcuPixel *)(void *)(panel + ETC_MCU_PANEL(g->k));
    EtcMcuPixel *line = r.rows + (((g->kh * row) + 31) / 16 * 16);
    int8_t *some = (int8_t *)line;
    etc_mcu_fill((EtcMcuPixel *)work, ETC_MCU_PANEL(g->k) / (int32_t)sizeof(EtcMcuPixel), 0);
    if ((r.run % ETC_MCU_RUN) != 0) {
        etc_mcu_fill(line, g->k, 0);
        some = (int8_t *)(line + g->k) + 16;
    }
#if defined(ETC_MCU_PICKS)
    if (ETC_MCU_PICKS(r.run, r.step)) {
        some = (int8_t *)(line + g->k) + 16;
    }
#endif
    for (int32_t ox = 0; ox < g->ow; ox += g->band) {
        const int32_t columns = etc_min_i32(g->band, g->ow - ox);
        int32_t n = 0; /* the pixels in the panel */
        etc_mcu_start(ox, columns, g, q, line, &r);
        for (int32_t oy = 0; oy < g->oh; oy++) {
            int8_t *to = (int8_t *)y + (oy * g->ow) + ox;
            etc_mcu_turn((const uint8_t *)x, g, q, (oy * g->sh) - g->ph, &r);
            for (int32_t i = 0, more; i < columns; i += more) {
                more = etc_min_i32(4 - n, columns - i);
                etc_mcu_gather(&r, i * r.step, more, g->k, line, panel + (ETC_MCU_SLOT * n));
                n += more;
                const int is_last = ((i + more) == columns) &&
                                    ((columns < g->ow) || (oy == (g->oh - 1)));
                int8_t *const at = to + i + more - n;
                if (n == 4) {
                    etc_mcu_tiles(panel, w, at, plane, g->k, g->oc, q);
                    n = 0;
                } else if (is_last) {
                    etc_mcu_tiles(panel, w, some, 4, g->k, g->oc, q);
                    for (int32_t c = 0; c < g->oc; c++) {
                        for (int32_t t = 0; t < n; t++) {
                            at[(c * plane) + t] = some[(4 * c) + t];
                        }
                    }
                    n = 0;
                }
            }
        }
    }
}

/* Copies the rows of a plane that a picture shows.  The picture is already filled with padding. */
ETC_OUTLINE void etc_mcu_picture(const uint8_t *plane, const EtcMcuBand *b, int32_t iw,
                                 uint32_t flip)
{
    if ((b->columns > 0) && (b->n_rows > 0)) {
        etc_mcu_runs(plane + (b->first * iw), b->columns, iw, b->n_rows, flip,
                     (EtcMcuPixel *)b->inner, b->pitch);
    }
}

/* Computes a convolution with one input channel per group; w has g->k bytes for each channel of y.
 * work: the ETC_MCU_TAPS bytes of etc_mcu_plane, the picture that g->band rows of y read, and some
 * bytes after it. */
ETC_OUTLINE void etc_mcu_depthwise(const void *x, const int8_t *w, void *y, const EtcMcuConv *g,
                                   const EtcMcu *q, void *work)
{
    EtcMcuPixel *picture = (EtcMcuPixel *)(void *)((uint8_t *)work + ETC_MCU_TAPS(g));
    const EtcMcuPixel pad = etc_mcu_byte((uint32_t)g->pad ^ q->x_flip);
    const int32_t each = g->oc / g->ic, pitch = etc_mcu_pitch(g), plane = g->oh * g->ow;
    EtcMcuBand b = {picture, picture, work, 0, pitch, etc_min_i32(g->iw, pitch - g->pw), 0, 0};
    for (int32_t oy = 0; oy < g->oh; oy += g->band) {
        const uint8_t *from = (const uint8_t *)x;
        int8_t *to = (int8_t *)y + (oy * g->ow);
        const int8_t *taps = w;
        const int32_t iy = (oy * g->sh) - g->ph, upper = etc_max_i32(0, -iy);
        b.rows = etc_min_i32(g->band, g->oh - oy);
        const int32_t under = ((b.rows - 1) * g->sh) + g->kh;
        b.first = iy + upper;
        b.n_rows = etc_min_i32(under, g->ih - iy) - upper;
        b.inner = picture + (upper * pitch) + g->pw;
        etc_mcu_fill(picture, under * pitch, pad);
        for (int32_t c = 0, left = 0; c < g->oc; c++, left--) {
            if (left == 0) {
                etc_mcu_picture(from, &b, g->iw, q->x_flip);
                from += g->ih * g->iw;
                left = each;
            }
            etc_mcu_plane(&b, taps, g, q, c, to);
            taps += g->k;
            to += plane;
        }
    }
}

/* Computes the maximum of each window of signed bytes.  Padding does not count.  work: a row of
 * x. */
ETC_OUTLINE void etc_mcu_max(const void *x, void *y, const EtcMcuConv *g, void *work)
{
    const int8_t *plane = (const int8_t *)x;
    int8_t *to = (int8_t *)y, *line = (int8_t *)work;
    const int32_t iw = g->iw;
    for (int32_t c = 0; c < g->ic; c++, plane += g->ih * iw) {
        for (int32_t oy = 0; oy < g->oh; oy++) {
            const int32_t iy = (oy * g->sh) - g->ph, end = etc_min_i32(iy + g->kh, g->ih);
            const int8_t *row = plane + (etc_max_i32(iy, 0) * iw);
            __builtin_memcpy(line, row, (size_t)iw);
            for (row += iw; row < (plane + (end * iw)); row += iw) {
                etc_mcu_larger(row, iw, line);
            }
            for (int32_t ix = -g->pw, n = g->ow; n > 0; n--, ix += g->sw) {
                const int8_t *at = line + etc_max_i32(ix, 0);
                const int8_t *const stop = line + etc_min_i32(ix + g->kw, iw);
                int32_t most = *at;
                for (at++; at < stop; at++) {
                    most = (*at > most) ? *at : most;
                }
                *to++ = (int8_t)most;
            }
        }
    }
}

/* Computes y = (a * by[0] + b * by[1] + by[2]) >> fraction, clamped to a signed byte, for n
 * bytes. */
ETC_OUTLINE void etc_mcu_sum(const void *a, const void *b, void *y, int32_t n, const int32_t *by,
                             int32_t fraction, const EtcMcu *q)
{
    const int8_t *x0 = (const int8_t *)a, *x1 = (const int8_t *)b;
    const int32_t by0 = by[0], by1 = by[1], from = by[2];
    int8_t *to = (int8_t *)y;
    for (const int8_t *const end = x0 + n; x0 < end; x0++, x1++, to++) {
        *to = etc_mcu_clamp((from + (*x0 * by0) + (*x1 * by1)) >> fraction);
    }
    (void)q; /* etc_mcu_sum_4 reads the range in it */
}

/* Computes y = ((a + by[0]) * (b + by[1]) * by[2] + by[3]) >> fraction, clamped to y's range, for n
 * bytes of a.  Each byte of b is used for `each` bytes of a. */
ETC_OUTLINE void etc_mcu_product(const void *a, const void *b, void *y, int32_t n, int32_t each,
                                 const int32_t *by, int32_t fraction, const EtcMcu *q)
{
    const int8_t *x = (const int8_t *)a, *factor = (const int8_t *)b;
    const int32_t zero = by[0], from = by[3], lo = q->lo, hi = q->hi;
    int8_t *to = (int8_t *)y;
    for (int8_t *const end = to + n; to < end; factor++) {
        const int32_t times = (*factor + by[1]) * by[2];
        for (const int8_t *const stop = x + each; x < stop; x++, to++) {
            const int32_t v = (((*x + zero) * times) + from) >> fraction;
            *to = (int8_t)((v < lo) ? lo : ((v > hi) ? hi : v));
        }
    }
}

/* Computes y = table[x] for n bytes. */
ETC_OUTLINE void etc_mcu_lookup(const void *x, const uint8_t *table, void *y, int32_t n)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    for (const uint8_t *const end = from + n; from < end; from++, to++) {
        *to = table[*from];
    }
}

typedef struct EtcMcuResize {
    int32_t planes, ih, iw, oh, ow;
    int32_t x_flip;             /* 0x80 for int8, 0 for uint8 */
    /* For each row and column of y, the index in x.  If linear, pairs: the index, and the weight
     * of the next element in units of 1/2048. */
    const int32_t *row, *column;
} EtcMcuResize;

/* Copies to each element of y the element of x that g->row and g->column name. */
ETC_OUTLINE void etc_mcu_nearest_bytes(const void *x, void *y, const EtcMcuResize *g)
{
    const uint8_t *plane = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    for (int32_t p = 0; p < g->planes; p++, plane += g->ih * g->iw) {
        for (int32_t i = 0; i < g->oh; i++) {
            const uint8_t *from = plane + (g->row[i] * g->iw);
            for (int32_t j = 0; j < g->ow; j++) {
                *to++ = from[g->column[j]];
            }
        }
    }
}

/* Interpolates between two elements of a row.  Returns the result times 2048. */
ETC_INLINE int32_t etc_mcu_between(const uint8_t *row, const int32_t *column, int32_t last,
                                   int32_t flip)
{
    const int32_t at = column[0], part = column[1], next = etc_min_i32(at + 1, last);
    return ((row[at] ^ flip) * (2048 - part)) + ((row[next] ^ flip) * part);
}

/* Interpolates each element of y between four of x, and rounds halves up. */
ETC_OUTLINE void etc_mcu_linear_bytes(const void *x, void *y, const EtcMcuResize *g)
{
    const uint8_t *plane = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    for (int32_t p = 0; p < g->planes; p++, plane += g->ih * g->iw) {
        for (int32_t i = 0; i < g->oh; i++) {
            const int32_t at = g->row[2 * i], part = g->row[(2 * i) + 1];
            const uint8_t *row = plane + (at * g->iw);
            const uint8_t *next = ((at + 1) < g->ih) ? (row + g->iw) : row;
            for (int32_t j = 0; j < g->ow; j++) {
                const int32_t *column = g->column + (2 * j);
                const int32_t a = etc_mcu_between(row, column, g->iw - 1, g->x_flip);
                const int32_t b = etc_mcu_between(next, column, g->iw - 1, g->x_flip);
                const int32_t v = (a * (2048 - part)) + (b * part) + (1 << 21);
                *to++ = (uint8_t)((v >> 22) ^ g->x_flip);
            }
        }
    }
}

/* Computes adaptive average pooling.  Element (oy, ox) of y is the mean of the rows from
 * floor(oy * ih / oh) up to, but without, ceil((oy + 1) * ih / oh), and of the columns likewise.
 * g->row and g->column are not read. */
ETC_OUTLINE void etc_mcu_adaptive_bytes(const void *x, void *y, const EtcMcuResize *g)
{
    const uint8_t *plane = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    for (int32_t p = 0; p < g->planes; p++, plane += g->ih * g->iw) {
        for (int32_t i = 0; i < (g->oh * g->ow); i++) {
            const int32_t oy = i / g->ow, ox = i - (oy * g->ow);
            const int32_t y0 = (oy * g->ih) / g->oh, y1 = (((oy + 1) * g->ih) + g->oh - 1) / g->oh;
            const int32_t x0 = (ox * g->iw) / g->ow, x1 = (((ox + 1) * g->iw) + g->ow - 1) / g->ow;
            const int32_t area = (y1 - y0) * (x1 - x0);
            int32_t sum = area / 2;
            for (int32_t r = y0; r < y1; r++) {
                for (int32_t c = x0; c < x1; c++) {
                    sum += plane[(r * g->iw) + c] ^ g->x_flip;
                }
            }
            *to++ = (uint8_t)((sum / area) ^ g->x_flip);
        }
    }
}

typedef struct EtcMcuMatmul {
    int32_t batches, m, n, k; /* y[m][n] = x[m][k] * w[k][n] */
    int32_t wide;             /* k with the zeros that fill up the last step */
    int32_t step, next;       /* bytes of w from row to row, from column to column */
    int32_t w_flip;           /* 0x80 if w is uint8 */
    int32_t x_zero, w_zero;   /* x's zero point as linear layers read x; w's for signed bytes */
    int32_t by;               /* the factor of fixed.h */
} EtcMcuMatmul;

/* Packs w at `to` as the weights of a linear layer, without the starts.  Sets start to the initial
 * sum of each column. */
ETC_OUTLINE void etc_mcu_weights(const uint8_t *w, const EtcMcuMatmul *g, int32_t *start, int8_t *to)
{
    for (int32_t c = 0; c < g->n; c++, w += g->next) {
        const uint8_t *from = w;
        int8_t *block = to + (c / 4 * ETC_MCU_BLOCK(g->wide)) + 16;
        int32_t sum = 0;
        for (int32_t left = g->k; left > 0; left -= ETC_MCU_TERMS, block += 4 * ETC_MCU_TERMS) {
            const int32_t n = etc_min_i32(left, ETC_MCU_TERMS);
            for (int32_t t = 0; t < n; t++, from += g->step) {
                const int32_t v = (int8_t)(uint8_t)(*from ^ g->w_flip);
                sum += v;
                etc_mcu_weight(block, c % 4, t, v);
            }
        }
        ((int32_t *)(void *)block)[c % 4] = g->by;
        start[c] = ((g->k * g->w_zero) - sum) * g->x_zero;
    }
}

/* Computes y[m][n] = x[m][k] * w[k][n] for each batch, as a linear layer whose weights are w.  If
 * w has a zero point, the initial sums also depend on the sum of the row of x.  work: an int32 for
 * each column, with the columns rounded up to a multiple of four, the blocks of weights, and the
 * working memory of etc_mcu_linear. */
ETC_OUTLINE void etc_mcu_matmul(const void *x, const void *w, void *y, const EtcMcuMatmul *g,
                                const EtcMcu *q, void *work)
{
    const uint8_t *row = (const uint8_t *)x, *matrix = (const uint8_t *)w;
    const int32_t n = (g->n + 3) / 4, block = ETC_MCU_BLOCK(g->wide), bytes = n * block;
    int32_t *base = (int32_t *)work;
    int8_t *weights = (int8_t *)(base + (4 * n)), *to = (int8_t *)y;
    __builtin_memset(weights, 0, (size_t)bytes);
    for (int32_t b = 0; b < g->batches; b++, matrix += g->k * g->n) {
        const int32_t rows = (g->w_zero == 0) ? g->m : 1;
        etc_mcu_weights(matrix, g, base, weights);
        for (int32_t r = 0; r < g->m; r += rows, row += rows * g->k, to += rows * g->n) {
            int32_t sum = 0;
            for (int32_t t = 0; (rows == 1) && (t < g->k); t++) {
                const uint32_t v = (row[t] ^ q->x_flip) & 0xff;
                sum += (ETC_MCU_FROM_0 != 0) ? (int32_t)v : (int32_t)(int8_t)(uint8_t)v;
            }
            for (int32_t c = 0; c < g->n; c++) {
                int32_t *start = (int32_t *)(void *)(weights + (c / 4 * block));
                start[c % 4] = base[c] - (sum * g->w_zero);
            }
            etc_mcu_linear(row, weights, to, rows, g->n, g->k, q, weights + bytes);
        }
    }
}

/* Computes the means of windows that are within x.  q->start and q->by have one entry, and q->by
 * applies to sums times 2^g->pad. */
ETC_OUTLINE void etc_mcu_means(const void *x, void *y, const EtcMcuConv *g, const EtcMcu *q)
{
    const uint8_t *plane = (const uint8_t *)x;
    const int32_t is_one_run = (g->kw == g->iw), run = is_one_run ? (g->kh * g->kw) : g->kw;
    const int32_t start = q->start[0], by = q->by[0];
    int8_t *to = (int8_t *)y;
    for (int32_t c = 0; c < g->ic; c++, plane += g->ih * g->iw) {
        for (int32_t oy = 0; oy < g->oh; oy++) {
            const uint8_t *at = plane + (oy * g->sh * g->iw);
            for (int32_t ox = 0; ox < g->ow; ox++, at += g->sw) {
                const uint8_t *row = at;
                int32_t sum = start;
                for (int32_t r = is_one_run ? 1 : g->kh; r > 0; r--, row += g->iw) {
                    sum = etc_mcu_total(row, run, q->x_flip, sum);
                }
                *to++ = etc_mcu_put(sum * (1 << g->pad), by, q->zero);
            }
        }
    }
}

/* The same of windows some of which padding or an end of x cuts off.  q->start has minus the zero point of x,
 * and q->by[n] is for windows that count n elements: those within x, and if g->k is not 0, padding too. */
ETC_OUTLINE void etc_mcu_cut_means(const void *x, void *y, const EtcMcuConv *g, const EtcMcu *q)
{
    const uint8_t *plane = (const uint8_t *)x;
    int8_t *to = (int8_t *)y;
    for (int32_t c = 0; c < g->ic; c++, plane += g->ih * g->iw) {
        for (int32_t o = 0; o < (g->oh * g->ow); o++) {
            const int32_t top = ((o / g->ow) * g->sh) - g->ph, left = ((o % g->ow) * g->sw) - g->pw;
            const int32_t y1 = etc_min_i32(top + g->kh, g->ih + g->ph);
            const int32_t x1 = etc_min_i32(left + g->kw, g->iw + g->pw);
            const int32_t y0 = etc_max_i32(top, 0), x0 = etc_max_i32(left, 0);
            const int32_t rows = etc_max_i32(etc_min_i32(y1, g->ih) - y0, 0);
            const int32_t run = etc_max_i32(etc_min_i32(x1, g->iw) - x0, 0);
            const int32_t count = (g->k != 0) ? ((y1 - top) * (x1 - left)) : (rows * run);
            int32_t sum = q->start[0] * rows * run;
            for (int32_t r = 0; (r < rows) && (run > 0); r++) {
                sum = etc_mcu_total(plane + ((y0 + r) * g->iw) + x0, run, q->x_flip, sum);
            }
            *to++ = etc_mcu_put(sum * (1 << g->pad), q->by[count], q->zero);
        }
    }
}

#endif
