/* pool.h -- max and average pooling of planes [planes, ih, iw], float. */
#ifndef ETC_POOL_H
#define ETC_POOL_H

#include "runtime-lite/kernels/line.h"

typedef struct EtcPool {
    int64_t planes, ih, iw, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw, dh, dw; /* kernel, stride, padding, dilation */
    int64_t divisor;                        /* average: the divisor; 0: the elements are counted */
    int32_t count_pad;                      /* average: the padding counts as part of the window */
    int32_t adaptive; /* average: window o of n spans floor(o i / n) .. ceil((o + 1) i / n) - 1 */
} EtcPool;

/* Plans the rows that etc_border_copy copies for a pool. */
ETC_INLINE EtcBorder etc_pool_border(const EtcPool *g)
{
    return etc_border(g->iw, g->ow, ((g->kw - 1) * g->dw) + 1, g->sw, g->pw);
}

/* 1: vectors of windows are faster than one window at a time. */
#define ETC_POOL_ROWS (ETC_SAVES_FLASH == 0)

/* Computes the outputs of a plane one window at a time.  It is for planes and windows that are too
 * large for etc_max_row, and for CPUs that compute one float at a time. */
ETC_INLINE void etc_max_windows(const float *plane, float *y, int64_t *where, const EtcPool *g)
{
    const ptrdiff_t step = (ptrdiff_t)g->dw;
    for (int64_t oy = 0; oy < g->oh; oy++) {
        int64_t y0 = (oy * g->sh) - g->ph;
        const int64_t y1 = etc_min_i64(y0 + (g->kh * g->dh), g->ih);
        y0 += (y0 < 0) ? (etc_over(g->dh - 1 - y0, g->dh) * g->dh) : 0;
        for (int64_t ox = 0; ox < g->ow; ox++) {
            int64_t x0 = (ox * g->sw) - g->pw;
            const ptrdiff_t x1 = (ptrdiff_t)etc_min_i64(x0 + (g->kw * g->dw), g->iw);
            x0 += (x0 < 0) ? (etc_over(g->dw - 1 - x0, g->dw) * g->dw) : 0;
            float max = -__builtin_inff();
            int64_t at = (y0 * g->iw) + x0;
            for (int64_t i = y0; i < y1; i += g->dh) {
                const float *row = plane + (i * g->iw);
                for (ptrdiff_t j = (ptrdiff_t)x0; j < x1; j += step) {
                    const float v = row[j];
                    if ((v > max) || (v != v)) {
                        max = v;
                        at = (i * g->iw) + j;
                    }
                }
            }
            *y++ = max;
            if (where != NULL) {
                *where++ = at;
            }
        }
    }
}

/* Returns the column that each output from ox on reads first.  It is the column of tap 0; if
 * that is left of the plane, it is moved by whole dilations to the first column inside. */
ETC_INLINE EtcI etc_first_column(const EtcPool *g, int64_t ox)
{
    const EtcI iota = ETC_IOTA;
    EtcI ix = (iota * (int32_t)g->sw) + (int32_t)((ox * g->sw) - g->pw);
    for (int64_t kx = 1; kx < g->kw; kx++) {
        ix += (EtcI)(ix < 0) & (int32_t)g->dw;
    }
    return ix;
}

/* Where the taps of an output are: in one of `stride` lines, `line` floats apart. */
typedef struct EtcTapWalk {
    int64_t stride, line;
    int64_t at, place; /* the line of a tap; how far right of tap 0 of the first output it is */
    int64_t on, over;  /* what is added to `place` and to `at` for the next tap */
} EtcTapWalk;

/* Goes to the next tap, and returns its floats from the first output's tap 0. */
ETC_INLINE int64_t etc_walk_on(EtcTapWalk *w, int64_t first)
{
    w->place += w->on;
    w->at += w->over;
    if (w->at >= w->stride) {
        w->at -= w->stride;
        w->place++;
    }
    return ((w->at - first) * w->line) + w->place;
}

/* Returns the walk along a row of the kernel, from the tap in the first column on. */
ETC_INLINE EtcTapWalk etc_walk_across(const EtcPool *g, const EtcBorder *b)
{
    const int64_t left = (etc_steps_up(g->pw, g->sw) * g->sw) - g->pw;
    const EtcTapWalk w = {g->sw, b->line, left, 0, etc_over(g->dw, g->sw),
                          etc_rest(g->dw, g->sw)};
    return w;
}

/* Computes output row oy from rows that etc_border_copy wrote, a vector of windows at a time. */
ETC_INLINE void etc_max_row(const float *rows, int64_t oy, const EtcBorder *b, float *y, int64_t *where,
                            const EtcPool *g)
{
    const EtcI iota = ETC_IOTA;
    const EtcTapWalk start = etc_walk_across(g, b);
    const float *row = rows + etc_border_at(b, -g->pw);
    int64_t y0 = (oy * g->sh) - g->ph;
    for (int64_t ox = 0; ox < g->ow; ox += ETC_LANES) {
        EtcF max = etc_splat(-__builtin_inff());
        const int64_t in = (y0 < 0) ? (y0 + (etc_over(g->dh - 1 - y0, g->dh) * g->dh)) : y0;
        EtcI at = etc_first_column(g, ox) + (int32_t)(in * g->iw);
        for (int64_t ky = 0; ky < g->kh; ky++) {
            const float *from = row + (ky * g->dh * g->sw * b->line) + ox;
            EtcTapWalk walk = start;
            int64_t tap = 0;
            for (int64_t kx = 0; kx < g->kw; kx++) {
                const int64_t x = kx * g->dw;
                const EtcF v = etc_loadu(from + tap);
                tap = etc_walk_on(&walk, start.at);
                const EtcI more = etc_mask((EtcI)(v > max)) | etc_mask((EtcI)(v != v));
                const int64_t base = ((y0 + (ky * g->dh)) * g->iw) + (ox * g->sw) - g->pw + x;
                max = etc_select(more, v, max);
                at = (more & ((iota * (int32_t)g->sw) + (int32_t)base)) | (~more & at);
            }
        }
        etc_store(y + ox, g->ow - ox, max);
        for (int64_t i = 0; (where != NULL) && (i < etc_min_i64(g->ow - ox, ETC_LANES)); i++) {
            where[ox + i] = at[i];
        }
    }
}

#if defined(ETC_ISA_RARE_TABLE)
#define ETC_MAX_ALONE 0
#else
#define ETC_MAX_ALONE (ETC_REGISTERS != 8)
#endif

/* Returns the larger of a and b, a if they are equal, or NaN if one is. */
ETC_INLINE EtcF etc_first_max(EtcF a, EtcF b)
{
    return etc_select((EtcI)(b != b), b, etc_at_least(a, b));
}

/* Writes the maxima of `count` taps for each of n outputs.  from: tap 0 of the first, which `walk`
 * is at.  The last vector may overlap the one before.  A vector may be written up to `end`. */
ETC_INLINE void etc_max_taps(const float *from, const EtcTapWalk *walk, int64_t count, float *y,
                             int64_t n, const float *end)
{
    EtcTapWalk start = *walk;
    const int64_t last = etc_max_i64(n - ETC_LANES, 0);
    const float *second = from + ((count > 1) ? etc_walk_on(&start, walk->at) : 0);
    const float *third = (count > 2) ? (from + etc_walk_on(&start, walk->at)) : second;
    for (int64_t i = 0; (count <= 3) && (i < n); i += ETC_LANES) {
        const int64_t j = etc_min_i64(i, last);
        const EtcF max = etc_first_max(etc_loadu(from + j), etc_loadu(second + j));
        etc_store(y + j, end - y - j, etc_first_max(max, etc_loadu(third + j)));
    }
    for (int64_t i = 0; (count > 3) && (i < n); i += ETC_LANES) {
        const int64_t j = etc_min_i64(i, last);
        EtcTapWalk w = start;
        EtcF max = etc_first_max(etc_loadu(from + j), etc_loadu(second + j));
        max = etc_first_max(max, etc_loadu(third + j));
        for (int64_t t = 3; t < count; t++) {
            max = etc_first_max(max, etc_loadu(from + etc_walk_on(&w, walk->at) + j));
        }
        etc_store(y + j, end - y - j, max);
    }
}

/* The working memory of etc_max_alone. */
typedef struct EtcMaxPlan {
    EtcBorder border;
    EtcTapWalk across, down;
    int64_t row, maxima; /* floats of a copied row; from one row of maxima to the next */
    int64_t band;        /* output rows that are computed at a time */
    int is_over;         /* maxima lie over the rows that they are of; else behind the last row */
} EtcMaxPlan;

/* Plans; returns whether one output row fits. */
ETC_INLINE int etc_max_plan(const EtcPool *g, EtcMaxPlan *p)
{
    const int64_t under = ((g->kh - 1) * g->dh) + 1, room = ETC_WORK_BYTES / 4;
    const EtcTapWalk down = {1, 0, 0, 0, 0, 0};
    p->border = etc_pool_border(g);
    if ((p->border.line > room) || (g->sw > room) || (under > room)) { /* products may overflow */
        return 0;
    }
    p->row = p->border.line * g->sw;
    p->maxima = ((g->ow + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
    p->is_over = (under * (p->row + p->maxima)) > room;
    const int64_t rows = etc_over(room, p->row + ((p->is_over != 0) ? 0 : p->maxima));
    p->maxima = (p->is_over != 0) ? p->row : p->maxima;
    p->band = etc_min_i64(etc_over(rows - under, g->sh) + 1, g->oh);
    p->across = etc_walk_across(g, &p->border);
    p->down = down;
    p->down.on = g->dh * p->maxima;
    return rows >= under;
}

/* Computes all planes without places: the maxima of rows of windows, and of these the maxima of
 * columns. */
ETC_INLINE void etc_max_alone(const float *x, float *y, const EtcPool *g, const EtcMaxPlan *p,
                              float *work)
{
    const float inf = __builtin_inff();
    const int64_t first = etc_border_at(&p->border, -g->pw), more = (g->kh - 1) * g->dh;
    const int64_t most = ((p->band - 1) * g->sh) + more + 1;
    const int64_t width = ((g->ow + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
    float *maxima = work + ((p->is_over != 0) ? 0 : (most * p->row));
    etc_fill(work, most * p->row, -inf);
    for (int64_t i = 0; i < g->planes; i++) {
        float *to = y + (i * g->oh * g->ow), *end = to + (g->oh * g->ow);
        for (int64_t oy = 0; oy < g->oh; oy += p->band) {
            const int64_t n = etc_min_i64(p->band, g->oh - oy), rows = ((n - 1) * g->sh) + more + 1;
            if ((p->is_over != 0) && ((i + oy) > 0)) {
                etc_fill(work, most * p->row, -inf);
            }
            etc_border_copy(&p->border, x + (i * g->ih * g->iw), g->ih, g->iw, (oy * g->sh) - g->ph,
                            rows, -inf, p->band < g->oh, work);
            for (int64_t r = 0; r < rows; r++) {
                float *row = maxima + (r * p->maxima);
                etc_max_taps(work + first + (r * p->row), &p->across, g->kw, row, width,
                             row + width);
            }
            for (int64_t r = 0; r < n; r++) {
                etc_max_taps(maxima + (r * g->sh * p->maxima), &p->down, g->kh, to, g->ow, end);
                to += g->ow;
            }
        }
    }
}

/* Writes the largest element of each window to y, or NaN if the window has one.  `where`, unless
 * NULL, receives the index of that element in its plane: the first of the largest, or the last
 * NaN.  work: ETC_WORK_BYTES. */
ETC_OUTLINE void etc_max_pool_f32(const float *x, float *y, int64_t *where, const EtcPool *g,
                                  void *work)
{
    const EtcBorder b = etc_pool_border(g);
    const int64_t under = ((g->kh - 1) * g->dh) + 1, outs = g->oh * g->ow;
    /* the input rows that fit in `work` */
    const int64_t room = etc_over(etc_over(ETC_WORK_BYTES / 4, b.line), g->sw);
    const int64_t row = (room > 0) ? (b.line * g->sw) : 0;
    const int has_room = (ETC_POOL_ROWS != 0) && (room >= under) &&
                         ((g->ih + g->kh) < etc_over(INT32_MAX / 2, g->iw + g->kw));
    const int64_t band = has_room ? etc_min_i64(etc_over(room - under, g->sh) + 1, g->oh) : g->oh;
    float *rows = (float *)work;
    EtcMaxPlan plan;
    if ((ETC_MAX_ALONE != 0) && (ETC_POOL_ROWS != 0) && (where == NULL) && etc_max_plan(g, &plan)) {
        etc_max_alone(x, y, g, &plan, rows);
        return;
    }
    if (has_room) {
        etc_fill(rows, (((band - 1) * g->sh) + under) * row, -__builtin_inff());
    }
    for (int64_t p = 0; p < g->planes; p++) {
        const float *plane = x + (p * g->ih * g->iw);
        if (!has_room) {
            etc_max_windows(plane, y + (p * outs), (where != NULL) ? (where + (p * outs)) : NULL,
                            g);
        }
        for (int64_t oy = 0; has_room && (oy < g->oh); oy++) {
            const int64_t i = etc_rest(oy, band), n = etc_min_i64(band, g->oh - oy);
            const int64_t at = (p * outs) + (oy * g->ow);
            if (i == 0) {
                etc_border_copy(&b, plane, g->ih, g->iw, (oy * g->sh) - g->ph,
                                ((n - 1) * g->sh) + under, -__builtin_inff(), band < g->oh, rows);
            }
            etc_max_row(rows + (i * g->sh * row), oy, &b, y + at,
                        (where != NULL) ? (where + at) : NULL, g);
        }
    }
}

/* The bytes of a buffer of columns, and the most columns whose maxima are computed at a time. */
#define ETC_MAX_BYTES ((ETC_POOL_ROWS != 0) ? 2048 : 64)
#define ETC_MAX_COLUMNS ((ETC_POOL_ROWS != 0) ? 512 : 64)

/* Writes to each of n bytes of y the maximum of `count` bytes of x that are `step` apart, and of the
 * byte of y if is_more is set.  `flip` flips bits of x before. */
ETC_INLINE void etc_max_lines(const uint8_t *x, int64_t step, int64_t count, uint8_t flip,
                              int is_more, uint8_t *y, int64_t n)
{
    int64_t i = 0;
#if ETC_POOL_ROWS != 0
    while ((n >= 16) && (i < n)) {
        EtcSixteen a, b = {0};
        if (is_more != 0) {
            __builtin_memcpy(&b, y + i, sizeof b);
        }
        for (int64_t k = 0; k < count; k++) {
            __builtin_memcpy(&a, x + (k * step) + i, sizeof a);
            b = etc_max_bytes(a ^ flip, b);
        }
        __builtin_memcpy(y + i, &b, sizeof b);
        i = ((i + 16) < n) ? etc_min_i64(i + 16, n - 16) : n; /* the last 16 may overlap others */
    }
#endif
    for (; i < n; i++) {
        uint8_t max = (is_more != 0) ? y[i] : 0;
        for (int64_t k = 0; k < count; k++) {
            const uint8_t v = x[(k * step) + i] ^ flip;
            max = (v > max) ? v : max;
        }
        y[i] = max;
    }
}

/* A block of windows: `rows` rows of `n` windows.  The first begins in row iy and column ix. */
typedef struct EtcWindows {
    int64_t iy, ix, rows, n;
} EtcWindows;

/* Writes to row r of `down` the maxima of each of `columns` columns, from ix on, over the rows of
 * windows r.  Outside of the plane they have the least value, 0. */
ETC_INLINE void etc_max_columns(const uint8_t *plane, const EtcWindows *b, int64_t ix, uint8_t flip,
                                uint8_t *down, int64_t columns, const EtcPool *g)
{
    const int64_t from = etc_min_i64(etc_max_i64(-ix, 0), columns);
    const int64_t to = etc_min_i64(etc_max_i64(g->iw - ix, from), columns);
    for (int64_t r = 0; r < b->rows; r++, down += columns) {
        const int64_t top = b->iy + (r * g->sh);
        const int64_t skip = (top < 0) ? etc_min_i64(etc_over(g->dh - 1 - top, g->dh), g->kh) : 0;
        const int64_t under = (top < g->ih) ? etc_over(g->ih - top + g->dh - 1, g->dh) : 0;
        const int64_t count = etc_max_i64(etc_min_i64(under, g->kh) - skip, 0);
        const uint8_t *x = plane + ((top + (skip * g->dh)) * g->iw) + ix + from;
        etc_byte_fill(down, 0, from);
        etc_max_lines(x, g->dh * g->iw, count, flip, 0, down + from, to - from);
        etc_byte_fill(down + to, 0, columns - to);
    }
}

/* Computes a block of windows.  Each of its buffers is written before the next is, since a load
 * waits for stores that it overlaps in part. */
ETC_INLINE void etc_max_block(const uint8_t *plane, const EtcWindows *b, uint8_t flip, uint8_t *y,
                              const EtcPool *g)
{
    uint8_t down[ETC_MAX_BYTES], across[ETC_MAX_BYTES];
    const int64_t width = ((b->n - 1) * g->sw) + 1;
    const int64_t most = 1 + etc_over(ETC_MAX_COLUMNS - width, g->dw); /* taps at a time */
    for (int64_t kx = 0; kx < g->kw; kx += most) {
        const int64_t taps = etc_min_i64(g->kw - kx, most), columns = width + ((taps - 1) * g->dw);
        etc_max_columns(plane, b, b->ix + (kx * g->dw), flip, down, columns, g);
        for (int64_t r = 0; r < b->rows; r++) {
            etc_max_lines(down + (r * columns), g->dw, taps, 0, kx > 0, across + (r * width), width);
        }
    }
    for (int64_t i = 0; i < (b->rows * width); i++) {
        across[i] ^= flip;
    }
    for (int64_t r = 0; r < b->rows; r++) {
        etc_byte_every(across + (r * width), g->sw, y + (r * g->ow), b->n);
    }
}

/* Writes the largest byte of each window to y.  The bytes are int8_t if is_signed is set, else
 * uint8_t. */
ETC_OUTLINE void etc_max_pool_i8(const void *x, void *y, int is_signed, const EtcPool *g)
{
    const int64_t reach = etc_min_i64((g->kw - 1) * g->dw, ETC_MAX_COLUMNS / 2);
    const int64_t n = etc_min_i64(etc_over(ETC_MAX_COLUMNS - reach - 1, g->sw) + 1, g->ow);
    const int64_t columns = ((n - 1) * g->sw) + 1 + ((g->kw - 1) * g->dw);
    const int64_t rows = etc_over(ETC_MAX_BYTES, etc_min_i64(columns, ETC_MAX_COLUMNS));
    const uint8_t flip = (is_signed != 0) ? 0x80 : 0;
    for (int64_t p = 0; p < g->planes; p++) {
        const uint8_t *plane = (const uint8_t *)x + (p * g->ih * g->iw);
        uint8_t *to = (uint8_t *)y + (p * g->oh * g->ow);
        for (int64_t oy = 0; oy < g->oh; oy += rows) {
            for (int64_t ox = 0; ox < g->ow; ox += n) {
                const EtcWindows b = {(oy * g->sh) - g->ph, (ox * g->sw) - g->pw,
                                      etc_min_i64(g->oh - oy, rows), etc_min_i64(g->ow - ox, n)};
                etc_max_block(plane, &b, flip, to + (oy * g->ow) + ox, g);
            }
        }
    }
}

/* Where a window of an adaptive pool begins: at floor(o size / n) for window o of n; `rest` is the
 * remainder. */
typedef struct EtcShare {
    int64_t at, rest;
} EtcShare;

/* Goes to the next window.  Returns the end of this one, ceil((o + 1) size / n). */
ETC_INLINE int64_t etc_share_on(EtcShare *s, int64_t size, int64_t n)
{
    s->at += etc_over(size, n);
    s->rest += etc_rest(size, n);
    if (s->rest >= n) {
        s->rest -= n;
        s->at++;
    }
    return s->at + ((s->rest > 0) ? 1 : 0);
}

/* Writes the mean of each window to y: it adds the elements in row order, then divides once. */
ETC_OUTLINE void etc_avg_pool_f32(const float *x, float *y, const EtcPool *g)
{
    for (int64_t p = 0; p < g->planes; p++) {
        const float *plane = x + (p * g->ih * g->iw);
        EtcShare down = {0, 0};
        for (int64_t oy = 0; oy < g->oh; oy++) {
            EtcShare across = {0, 0};
            const int64_t top = (g->adaptive != 0) ? down.at : ((oy * g->sh) - g->ph);
            const int64_t under = (g->adaptive != 0) ? etc_share_on(&down, g->ih, g->oh)
                                                     : etc_min_i64(top + g->kh, g->ih + g->ph);
            const int64_t y0 = etc_max_i64(top, 0), y1 = etc_min_i64(under, g->ih);
            for (int64_t ox = 0; ox < g->ow; ox++) {
                int64_t x0 = (g->adaptive != 0) ? across.at : ((ox * g->sw) - g->pw);
                int64_t x1 = (g->adaptive != 0) ? etc_share_on(&across, g->iw, g->ow)
                                                : etc_min_i64(x0 + g->kw, g->iw + g->pw);
                const int64_t padded = (under - top) * (x1 - x0);
                x0 = etc_max_i64(x0, 0);
                x1 = etc_min_i64(x1, g->iw);
                float sum = 0.0f;
                for (int64_t i = y0; i < y1; i++) {
                    for (int64_t j = x0; j < x1; j++) {
                        sum += plane[(i * g->iw) + j];
                    }
                }
                const int64_t inside = etc_max_i64(y1 - y0, 0) * etc_max_i64(x1 - x0, 0);
                const int64_t count = (g->count_pad != 0) ? padded : inside;
                *y = (inside == 0) ? 0.0f : (sum / (float)((g->divisor != 0) ? g->divisor : count));
                y++;
            }
        }
    }
}

#endif
