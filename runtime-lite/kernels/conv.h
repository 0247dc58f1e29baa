/* conv.h -- convolution of [n, groups * ic, ih, iw], forward and transposed.
 *
 * Each sum starts from the bias (or 0) and adds its terms in order of ic, then kh, then kw by fused
 * multiply-add.  A tap outside the image is a term too: weight times zero.  A convolution over one
 * dimension has ih = kh = 1.
 *
 * In a transposed convolution, an output uses a tap only if the output's position plus the
 * padding less the tap's offset is a multiple of the stride.  Outputs whose positions are equal
 * modulo the stride use the same taps.  They form a phase, which is computed as a convolution of
 * stride 1.  Its sums add their terms in order of kh, then kw, then ic. */
#ifndef ETC_CONV_H
#define ETC_CONV_H

#include "runtime-lite/kernels/across.h"
#include "runtime-lite/kernels/along.h"
#include "runtime-lite/kernels/direct.h"
#include "runtime-lite/kernels/line.h"

/* With fewer output channels than this, a 1x1 kernel reads its pixels in place. */
#define ETC_PACK_ROWS 64

/* A run of output pixels in one row, as columns of a panel. */
typedef struct EtcRun {
    int64_t column, columns; /* the first column; their number with zeros that fill a vector */
    int64_t n;               /* the number of pixels */
    int64_t iy, ix;          /* the place in the image that tap 0 of the first pixel reads */
} EtcRun;

/* Splits pixels j .. j + n - 1 into runs.  Returns the number of runs, which is at most n. */
ETC_INLINE int etc_runs(const EtcConv *g, int64_t j, int64_t n, int64_t width, EtcRun *run)
{
    int count = 0;
    for (int64_t done = 0; done < n; count++) {
        const int64_t oy = etc_over(j + done, g->ow), ox = etc_rest(j + done, g->ow);
        EtcRun r = {done, 0, etc_min_i64(g->ow - ox, n - done), (oy * g->sh) - g->ph,
                    (ox * g->sw) - g->pw};
        done += r.n;
        r.columns = (done == n) ? (width - r.column) : r.n;
        run[count] = r;
    }
    return count;
}

/* Writes taps k0 .. k0 + k - 1 of the pixels in the runs into panel[k][width]. */
ETC_INLINE void etc_pack_taps(const float *x, const EtcConv *g, int64_t k0, int64_t k,
                              const EtcRun *run, int n_runs, float *panel, int64_t width)
{
    int64_t kx = etc_rest(k0, g->kw), ky = etc_rest(etc_over(k0, g->kw), g->kh);
    const float *plane = x + (etc_over(k0, g->kw * g->kh) * g->x_plane);
    for (int64_t i = 0; i < k; i++) {
        for (int r = 0; r < n_runs; r++) {
            const int64_t iy = run[r].iy + (ky * g->dh);
            float *to = panel + (i * width) + run[r].column;
            if ((iy < 0) || (iy >= g->ih)) {
                etc_fill(to, run[r].columns, 0.0f);
            } else {
                etc_line(plane + (iy * g->iw), g->iw, run[r].ix + (kx * g->dw), g->sw, 0.0f, to,
                         run[r].n, run[r].columns);
            }
        }
        kx++;
        if (kx == g->kw) {
            kx = 0;
            ky++;
        }
        if (ky == g->kh) {
            ky = 0;
            plane += g->x_plane;
        }
    }
}

/* Adds the terms from term k on to all output channels of a block of pixels.  w: the weights of
 * one group. */
ETC_INLINE void etc_conv_block(const EtcBlock *pixels, const EtcConv *g, const float *w, int64_t k)
{
    const int64_t depth = g->ic * g->kh * g->kw;
    const int64_t most = (g->form == ETC_IN_BLOCKS) ? ETC_TOGETHER : g->oc;
    for (int64_t i = 0; i < g->oc; i += most) {
        EtcBlock t = *pixels;
        t.m = etc_min_i64(most, g->oc - i);
        t.a = w + (i * depth) + k;
        t.a_row = depth;
        if (g->form == ETC_IN_BLOCKS) {
            t.a = w + (i * depth) + (k * t.m);
            t.a_row = 1;
            t.a_step = t.m;
        }
        t.bias = (t.start == ETC_FROM_ROW) ? (t.bias + i) : NULL;
        t.c += i * t.c_row;
        etc_block(&t);
    }
}

/* Convolves one image and group as a matrix product:
 * y[oc][pixels] = w[oc][taps] panel[taps][pixels]. */
ETC_INLINE void etc_conv_product(const float *x, const float *w, const float *bias, float *y,
                                 const EtcConv *g, float *panel)
{
    const int64_t taps = g->kh * g->kw, depth = g->ic * taps, pixels = g->oh * g->ow;
    const int is_1x1 = (taps == 1) && (g->sh == 1) && (g->sw == 1) && (g->ph == 0) && (g->pw == 0);
    EtcRun run[ETC_PANEL];
    EtcBlock t = {w, panel, y, bias, g->oc, 0, 0, depth, 0, g->y_plane, 1, g->lo, g->hi,
                  ETC_FROM_ZERO, 0, ETC_TOGETHER};
    for (int64_t j = 0; j < pixels; j += t.n) {
        t.n = etc_panel(pixels - j);
        const int64_t width = ((t.n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
        const int n_runs = etc_runs(g, j, t.n, width, run);
        const int in_place = is_1x1 && (t.n == width) && (g->oc < ETC_PACK_ROWS);
        t.c = y + j;
        t.b = panel;
        t.b_row = in_place ? g->x_plane : width;
        t.start = (bias != NULL) ? ETC_FROM_ROW : ETC_FROM_ZERO;
        int64_t k = 0;
        do { /* runs once even if there are no taps */
            t.k = etc_min_i64(depth - k, ETC_KB);
            if (in_place) {
                t.b = x + (k * g->x_plane) + j;
            } else if (is_1x1) {
                etc_pack_rows(x + (k * g->x_plane) + j, g->x_plane, t.k, t.n, panel, width);
            } else {
                etc_pack_taps(x, g, k, t.k, run, n_runs, panel, width);
            }
            t.is_last = (k + t.k) == depth;
            etc_conv_block(&t, g, w, k);
            t.start = ETC_FROM_C;
            k += t.k;
        } while (k < depth);
    }
}

/* -- transposed ----------------------------------------------------------------------------- */

/* The rows of a block of sums in the working memory.  The block follows the panel and the space
 * that lines may write past the panel's end. */
#define ETC_REST_ROWS (((ETC_WORK_BYTES / 4) / ETC_PANEL) - ETC_KB - 1)

/* A phase: the outputs in rows ry, ry + sh, ... and columns rx, rx + sw, ... of one image and
 * group. */
typedef struct EtcPhase {
    int64_t ry, rx;
    EtcConv flat; /* the phase as a convolution: oh x ow outputs, a kernel of one tap, stride 1 */
} EtcPhase;

/* Adds the terms of tap (ky, kx) to the block's sums if the phase uses the tap. */
ETC_INLINE void etc_phase_tap(const float *x, const float *w, const EtcConv *g, EtcPhase *p,
                              int64_t j, int64_t ky, int64_t kx, float *panel, EtcBlock *t)
{
    const int64_t y0 = p->ry + g->ph - (ky * g->dh), x0 = p->rx + g->pw - (kx * g->dw);
    EtcRun run[ETC_PANEL];
    if ((etc_rest(y0, g->sh) != 0) || (etc_rest(x0, g->sw) != 0)) {
        return;
    }
    p->flat.ph = -etc_over(y0, g->sh);
    p->flat.pw = -etc_over(x0, g->sw);
    const int n_runs = etc_runs(&p->flat, j, t->n, t->b_row, run);
    for (int64_t k = 0; k < g->ic; k += t->k) {
        t->k = etc_min_i64(g->ic - k, ETC_KB);
        t->a = w + (k * t->a_step) + (ky * g->kw) + kx;
        etc_pack_taps(x, &p->flat, k, t->k, run, n_runs, panel, t->b_row);
        etc_block(t);
        t->start = ETC_FROM_C;
    }
}

/* Clamps the block's sums, which are outputs j .. j + t->n - 1 of a phase, and stores them in y. */
ETC_INLINE void etc_phase_store(const EtcBlock *t, const EtcConv *g, const EtcPhase *p, int64_t j,
                                float *y)
{
    for (int64_t c = 0; c < t->m; c++) {
        const float *from = t->c + (c * t->c_row);
        float *plane = y + (c * g->y_plane);
        for (int64_t i = 0; i < t->n;) {
            const int64_t py = etc_over(j + i, p->flat.ow), px = etc_rest(j + i, p->flat.ow);
            const int64_t n = etc_min_i64(p->flat.ow - px, t->n - i);
            float *to = plane + ((p->ry + (py * g->sh)) * g->ow) + p->rx + (px * g->sw);
            for (int64_t k = 0; k < n; k++) {
                const float v = from[i + k];
                to[k * g->sw] = (v < g->lo) ? g->lo : ((v > g->hi) ? g->hi : v);
            }
            i += n;
        }
    }
}

/* Computes one phase of one image and group. */
ETC_INLINE void etc_conv_phase(const float *x, const float *w, const float *bias, float *y,
                               const EtcConv *g, EtcPhase *p, float *panel)
{
    const int64_t taps = g->kh * g->kw, pixels = p->flat.oh * p->flat.ow;
    float *rest = panel + ((ETC_KB + 1) * ETC_PANEL);
    for (int64_t j = 0, n = 0; j < pixels; j += n) {
        n = etc_panel(pixels - j);
        const int64_t width = ((n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
        for (int64_t c = 0; c < g->oc; c += ETC_REST_ROWS) {
            EtcBlock t = {w, panel, rest, NULL, etc_min_i64(g->oc - c, ETC_REST_ROWS), n, 0, taps,
                          width, ETC_PANEL, g->oc * taps, g->lo, g->hi, ETC_FROM_ZERO, 0,
                          ETC_TOGETHER};
            if (bias != NULL) {
                t.bias = bias + c;
                t.start = ETC_FROM_ROW;
            }
            etc_block(&t); /* adds no terms; it sets the sums to the bias or 0 */
            t.start = ETC_FROM_C;
            for (int64_t tap = 0; tap < taps; tap++) {
                etc_phase_tap(x, w + (c * taps), g, p, j, etc_over(tap, g->kw),
                              etc_rest(tap, g->kw), panel, &t);
            }
            etc_phase_store(&t, g, p, j, y + (c * g->y_plane));
        }
    }
}

/* Computes a transposed convolution of one image and group. */
ETC_INLINE void etc_conv_transposed(const float *x, const float *w, const float *bias, float *y,
                                    const EtcConv *g, float *panel)
{
    EtcPhase p;
    p.flat = *g;
    p.flat.kh = 1;
    p.flat.kw = 1;
    p.flat.sh = 1;
    p.flat.sw = 1;
    for (p.ry = 0; p.ry < etc_min_i64(g->sh, g->oh); p.ry++) {
        for (p.rx = 0; p.rx < etc_min_i64(g->sw, g->ow); p.rx++) {
            p.flat.oh = etc_over(g->oh - p.ry + g->sh - 1, g->sh);
            p.flat.ow = etc_over(g->ow - p.rx + g->sw - 1, g->sw);
            etc_conv_phase(x, w, bias, y, g, &p, panel);
        }
    }
}

/* -- depthwise ------------------------------------------------------------------------------ */

/* The places in the copied rows that the taps of an output read.  All taps are listed, or only
 * those of one kernel row if there are more than ETC_PLACES. */
typedef struct EtcTaps {
    EtcBorder border;       /* the plan of the copied rows */
    int64_t first;          /* floats from the first row to the place that tap 0 of output 0 reads */
    int64_t at[ETC_PLACES]; /* floats from the place that tap 0 reads */
    int64_t n_at;
    int64_t steps, step; /* how many times the list is used; floats from one time to the next */
    int64_t next;        /* floats from one output row to the next */
} EtcTaps;

ETC_INLINE void etc_taps_list(const EtcConv *g, EtcTaps *t)
{
    t->border = etc_conv_border(g);
    t->first = etc_border_at(&t->border, -g->pw);
    const int64_t down = g->sw * t->border.line;
    const int64_t rows = ((g->kh * g->kw) <= ETC_PLACES) ? g->kh : 1;
    t->n_at = 0;
    t->steps = (rows == g->kh) ? 1 : g->kh;
    t->step = g->dh * down;
    t->next = g->sh * down;
    for (int64_t ky = 0; ky < rows; ky++) {
        for (int64_t kx = 0; kx < g->kw; kx++) {
            const int64_t at = etc_border_at(&t->border, (kx * g->dw) - g->pw);
            t->at[t->n_at] = (ky * t->step) + at - t->first;
            t->n_at++;
        }
    }
}

/* Lists the taps, and fills with zeros the memory that rows will be copied into. */
ETC_INLINE void etc_depthwise_start(const EtcConv *g, float *rows, EtcTaps *t)
{
    etc_taps_list(g, t);
    const int64_t n = etc_conv_reach(g, g->oh) * g->sw * t->border.line;
    etc_fill(rows, etc_min_i64(n, ETC_WORK_BYTES / 4), 0.0f);
}

/* Computes n output rows, and loads each weight once for all of them.  n is constant after
 * inlining. */
ETC_INLINE void etc_depthwise_rows(const float *rows, const EtcTaps *t, const float *w, float bias,
                                   float *y, const EtcConv *g, int n)
{
    const float lo = g->lo, hi = g->hi;
    const int64_t next = t->next, n_at = t->n_at;
    for (int64_t ox = 0; ox < g->ow; ox += ETC_LANES) {
        const float *from = rows + ox, *weight = w;
        EtcF acc[4];
        ETC_UNROLL
        for (int r = 0; r < n; r++) {
            acc[r] = etc_splat(bias);
        }
        for (int64_t s = 0; s < t->steps; s++, from += t->step, weight += n_at) {
            const int is_done = etc_add_taps(from, t->at, n_at, (n > 1) ? next : 0, weight, acc);
            for (int64_t i = 0; (is_done == 0) && (i < n_at); i++) {
                const EtcF wv = etc_splat(weight[i]);
                const float *x = from + t->at[i];
                ETC_UNROLL
                for (int r = 0; r < n; r++) {
                    acc[r] = etc_fma(wv, etc_loadu(x + (r * next)), acc[r]);
                }
            }
        }
        ETC_UNROLL
        for (int r = 0; r < n; r++) {
            etc_store_within(y + (r * g->ow) + ox, g->ow - ox, &acc[r], lo, hi);
        }
    }
}

/* Computes n output rows of one channel, four at a time.  The last four may overlap the four
 * before. */
ETC_OUTLINE void etc_depthwise_band(const float *rows, const EtcTaps *t, const float *w, float bias,
                                   float *y, const EtcConv *g, int64_t n)
{
    for (int64_t i = 0; (n >= 4) && (i < n); i += 4) {
        const int64_t first = etc_min_i64(i, n - 4);
        etc_depthwise_rows(rows + (first * t->next), t, w, bias, y + (first * g->ow), g, 4);
    }
    for (int64_t i = 0; (n < 4) && (i < n); i++) {
        etc_depthwise_rows(rows + (i * t->next), t, w, bias, y + (i * g->ow), g, 1);
    }
}

/* Returns whether a group has one input channel and fewer than four output channels, and the input
 * rows of one output row fit the working memory. */
ETC_INLINE int etc_is_depthwise(const EtcConv *g)
{
    const int64_t line = etc_conv_border(g).line;
    return (g->ic == 1) && (g->oc < 4) && (g->kw <= ETC_PLACES) &&
           /* a product may overflow */
           (etc_conv_reach(g, 1) <= etc_over(etc_over(ETC_WORK_BYTES / 4, line), g->sw));
}

/* Convolves one image and group, which has one input channel.  t: the taps. */
ETC_INLINE void etc_conv_depthwise(const float *x, const float *w, const float *bias, float *y,
                                   const EtcConv *g, const EtcTaps *t, float *rows)
{
    const int64_t room = etc_over(ETC_WORK_BYTES / 4, t->border.line * g->sw); /* the input rows */
    const int64_t more = etc_over(room - etc_conv_reach(g, 1), g->sh);
    const int64_t band = etc_min_i64(more + 1, g->oh); /* output rows */
    for (int64_t oy = 0; oy < g->oh; oy += band) {
        const int64_t n = etc_min_i64(band, g->oh - oy);
        etc_border_copy(&t->border, x, g->ih, g->iw, (oy * g->sh) - g->ph, etc_conv_reach(g, n), 0.0f,
                        band < g->oh, rows);
        for (int64_t c = 0; c < g->oc; c++) {
            etc_depthwise_band(rows + t->first, t, w + (c * g->kh * g->kw),
                               (bias != NULL) ? bias[c] : 0.0f,
                               y + (c * g->y_plane) + (oy * g->ow), g, n);
        }
    }
}

/* The floats of x that the tiles of a part of a row read; they stay in the second-level cache. */
#define ETC_NEAR_PIXELS 49152

/* Returns how many pixels of a convolution over one dimension are computed at a time, so that the
 * tiles add the terms of all channels at once. */
ETC_INLINE int64_t etc_conv_columns(const EtcConv *g)
{
    const int64_t room = etc_min_i64((ETC_WORK_BYTES / 4) - ETC_SUMS - ETC_LANES, ETC_NEAR_PIXELS);
    const int64_t reach = ((g->kw - 1) * g->dw) + 1, phases = etc_min_i64(g->sw, reach);
    if ((g->oh > 1) || (g->ih > 1) || (g->kw == 1) || (g->ic < 1)) {
        return g->ow;
    }
    const int64_t most = etc_over(room, g->ic * phases) - etc_over(reach, g->sw);
    if ((most < (4 * ETC_LANES)) || (most >= g->ow)) {
        return g->ow;
    }
    const int64_t parts = etc_over(g->ow + most - 1, most), n = etc_over(g->ow + parts - 1, parts);
    return etc_min_i64(n + ETC_LANES - 1 - ((n + ETC_LANES - 1) % ETC_LANES), most);
}

/* Computes one image and group of a convolution that is neither depthwise nor transposed.  Changes
 * the number of channels of g meanwhile. */
ETC_INLINE void etc_conv_part(const float *x, const float *w, const float *bias, float *y, EtcConv *g,
                              float *work)
{
    const int64_t whole = g->oc - (g->oc % ETC_TOGETHER);
    EtcPlanes planes;
    int64_t done = 0;
#if defined(ETC_ALONG)
    if (etc_is_along(g)) {
        etc_conv_along(x, w, bias, y, g, work);
        done = whole;
    }
#endif
    if ((done == 0) && etc_is_across(g, &planes)) {
        etc_conv_across(x, w, bias, y, g, &planes, work);
        done = whole;
    }
    g->oc -= done;
    if (g->oc > 0) {
        etc_conv_product(x, w + (done * g->ic * g->kh * g->kw), (bias != NULL) ? (bias + done) : NULL,
                         y + (done * g->y_plane), g, work);
    }
    g->oc += done;
}

/* Does so, some columns at a time if that is faster. */
ETC_INLINE void etc_conv_forward(const float *x, const float *w, const float *bias, float *y,
                                 const EtcConv *g, float *work)
{
    EtcConv part = *g;
    if (ETC_PIXELS == 1) {
        etc_conv_part(x, w, bias, y, &part, work);
        return;
    }
    const int64_t columns = etc_conv_columns(g);
    for (int64_t from = 0; from < g->ow; from += columns) {
        int64_t first = 0;
        if (columns < g->ow) {
            const int64_t left = (from * g->sw) - g->pw;
            first = etc_max_i64(left, 0);
            part.ow = etc_min_i64(columns, g->ow - from);
            part.iw = etc_max_i64(g->iw - first, 0);
            part.pw = first - left;
        }
        etc_conv_part(x + etc_min_i64(first, g->iw), w, bias, y + from, &part, work);
    }
}

/* Computes a convolution of any form.  `work` has ETC_WORK_BYTES. */
ETC_OUTLINE void etc_conv_f32(const float *x, const float *w, const float *bias, float *y,
                              const EtcConv *geometry, void *work)
{
    EtcConv g = *geometry;
    EtcTaps taps;
    const int is_depthwise = (g.form != ETC_TRANSPOSED) && etc_is_depthwise(&g);
    g.x_plane = (g.x_plane != 0) ? g.x_plane : (g.ih * g.iw);
    g.y_plane = (g.y_plane != 0) ? g.y_plane : (g.oh * g.ow);
    const int64_t x_size = g.ic * g.x_plane, y_size = g.oc * g.y_plane;
    const int64_t w_size = g.oc * g.ic * g.kh * g.kw;
#if defined(ETC_DIRECT)
    if (is_depthwise && etc_is_direct(&g)) {
        etc_direct(x, w, bias, y, &g, (float *)work);
        return;
    }
#endif
    if (is_depthwise) {
        etc_depthwise_start(&g, (float *)work, &taps);
    }
    for (int64_t i = 0; i < (g.n * g.groups); i++) {
        const int64_t group = etc_rest(i, g.groups);
        const float *b = (bias != NULL) ? (bias + (group * g.oc)) : NULL;
        const float *xi = x + (i * x_size), *wi = w + (group * w_size);
        if (g.form == ETC_TRANSPOSED) {
            etc_conv_transposed(xi, wi, b, y + (i * y_size), &g, (float *)work);
        } else if (is_depthwise) {
            etc_conv_depthwise(xi, wi, b, y + (i * y_size), &g, &taps, (float *)work);
        } else {
            etc_conv_forward(xi, wi, b, y + (i * y_size), &g, (float *)work);
        }
    }
}

/* Reduces the geometry of a convolution that is not transposed to its rows from .. from + rows - 1.
 * Returns the first row of its input that these read. */
ETC_INLINE int64_t etc_conv_cut(EtcConv *g, int64_t from, int64_t rows)
{
    const int64_t top = (from * g->sh) - g->ph, first = etc_max_i64(top, 0);
    g->ih = etc_max_i64(g->ih - first, 0);
    g->ph = first - top;
    g->oh = rows;
    return first;
}

/* Computes rows from .. from + rows - 1 of a convolution that is not transposed.  x holds the rows
 * of its input from x_from on, and y starts with row `from`. */
ETC_OUTLINE void etc_conv_rows(const float *x, const float *w, const float *bias, float *y,
                               const EtcConv *geometry, int64_t x_from, int64_t from, int64_t rows,
                               void *work)
{
    EtcConv g = *geometry;
    g.x_plane = (g.x_plane != 0) ? g.x_plane : (g.ih * g.iw);
    g.y_plane = (g.y_plane != 0) ? g.y_plane : (g.oh * g.ow);
    const int64_t first = etc_conv_cut(&g, from, rows);
    etc_conv_f32(x + ((first - x_from) * g.iw), w, bias, y, &g, work);
}

#endif
