/* conv.h -- convolution of [n, groups * ic, ih, iw] with weights [groups * oc, ic, kh, kw].
 *
 * Each sum starts from the bias (or 0) and takes its terms in order of ic, then kh, then kw by
 * fused multiply-add.  A tap outside the image is a term too: weight times zero.  One dimension
 * is two with ih = kh = 1.
 */
#ifndef ETC_CONV_H
#define ETC_CONV_H

#include "runtime-lite/kernels/line.h"
#include "runtime-lite/kernels/tile.h"

/* With fewer output channels than this, a 1x1 kernel reads its pixels where they lie. */
#define ETC_PACK_ROWS 64

typedef struct EtcConv {
    int64_t n, groups;
    int64_t ic, ih, iw; /* ic and oc: channels of one group */
    int64_t oc, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw, dh, dw; /* kernel, stride, padding, dilation */
    float lo, hi;                           /* clamp of y; -infinity and infinity: none */
    int32_t
        transposed; /* weights [groups * ic, oc, kh, kw]; stride and padding are the forward's */
} EtcConv;

/* A run of output pixels in one row, as columns of a panel. */
typedef struct EtcRun {
    int64_t column, columns; /* where, and how many with the zeros that fill the last vector */
    int64_t n;               /* pixels */
    int64_t iy, ix;          /* what tap 0 of the first pixel reads */
} EtcRun;

/* Splits pixels j .. j + n - 1 into runs; returns how many (at most n). */
ETC_INLINE int etc_runs(const EtcConv *g, int64_t j, int64_t n, int64_t width, EtcRun *run)
{
    int count = 0;
    for (int64_t done = 0; done < n; count++) {
        const int64_t oy = (j + done) / g->ow, ox = (j + done) % g->ow;
        EtcRun r = {done, 0, etc_min_i64(g->ow - ox, n - done), (oy * g->sh) - g->ph,
                    (ox * g->sw) - g->pw};
        done += r.n;
        r.columns = (done == n) ? (width - r.column) : r.n;
        run[count] = r;
    }
    return count;
}

/* panel[k][width]: taps k0 .. k0 + k - 1 of the pixels in the runs. */
ETC_INLINE void etc_pack_taps(const float *x, const EtcConv *g, int64_t k0, int64_t k,
                              const EtcRun *run, int n_runs, float *panel, int64_t width)
{
    int64_t kx = k0 % g->kw, ky = (k0 / g->kw) % g->kh;
    const float *plane = x + ((k0 / (g->kw * g->kh)) * g->ih * g->iw);
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
            plane += g->ih * g->iw;
        }
    }
}

/* The transposed kind: a pixel under a tap is there where the stride divides its place. */
ETC_INLINE int64_t etc_transposed_from(int64_t o, int64_t k, int64_t stride, int64_t pad,
                                       int64_t dilation, int64_t size)
{
    const int64_t i = o + pad - (k * dilation);
    return ((i >= 0) && ((i % stride) == 0) && ((i / stride) < size)) ? (i / stride) : -1;
}

ETC_INLINE void etc_pack_transposed(const float *x, const EtcConv *g, int64_t k0, int64_t k,
                                    int64_t j, int64_t n, float *panel, int64_t width)
{
    for (int64_t i = 0; i < k; i++) {
        const int64_t tap = k0 + i, kx = tap % g->kw, ky = (tap / g->kw) % g->kh;
        const float *plane = x + ((tap / (g->kw * g->kh)) * g->ih * g->iw);
        for (int64_t c = 0; c < width; c++) {
            const int64_t oy = (j + c) / g->ow, ox = (j + c) % g->ow;
            const int64_t iy = etc_transposed_from(oy, ky, g->sh, g->ph, g->dh, g->ih);
            const int64_t ix = etc_transposed_from(ox, kx, g->sw, g->pw, g->dw, g->iw);
            const int is_in = (c < n) && (iy >= 0) && (ix >= 0);
            panel[(i * width) + c] = is_in ? plane[(iy * g->iw) + ix] : 0.0f;
        }
    }
}

/* One image and group as a product: y[oc][pixels] = w[oc][taps] panel[taps][pixels]. */
ETC_INLINE void etc_conv_product(const float *x, const float *w, const float *bias, float *y,
                                 const EtcConv *g, float *panel)
{
    const int64_t taps = g->kh * g->kw, depth = g->ic * taps, pixels = g->oh * g->ow;
    const int is_1x1 = (taps == 1) && (g->sh == 1) && (g->sw == 1) && (g->ph == 0) && (g->pw == 0);
    EtcRun run[ETC_PANEL];
    EtcBlock t = {w, panel, y, bias, g->oc, 0, 0, depth, 0, pixels, g->lo, g->hi, ETC_FROM_ZERO, 0};
    t.a_row = (g->transposed != 0) ? taps : depth;
    for (int64_t j = 0; j < pixels; j += t.n) {
        t.n = etc_panel(pixels - j);
        const int64_t width = ((t.n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
        const int n_runs = etc_runs(g, j, t.n, width, run);
        const int in_place = is_1x1 && (t.n == width) && (g->oc < ETC_PACK_ROWS);
        t.c = y + j;
        t.b = panel;
        t.b_row = in_place ? pixels : width;
        t.start = (bias != NULL) ? ETC_FROM_ROW : ETC_FROM_ZERO;
        int64_t k = 0;
        do { /* once even where there is no tap */
            t.k = etc_min_i64(depth - k, ETC_KB);
            t.a = w + k;
            if (g->transposed != 0) { /* a block ends with its input channel */
                t.k = etc_min_i64(t.k, taps - (k % taps));
                t.a = w + ((k / taps) * g->oc * taps) + (k % taps);
                etc_pack_transposed(x, g, k, t.k, j, t.n, panel, width);
            } else if (in_place) {
                t.b = x + (k * pixels) + j;
            } else if (is_1x1) {
                etc_pack_rows(x + (k * pixels) + j, pixels, t.k, t.n, panel, width);
            } else {
                etc_pack_taps(x, g, k, t.k, run, n_runs, panel, width);
            }
            t.is_last = (k + t.k) == depth;
            etc_block(&t);
            t.start = ETC_FROM_C;
            k += t.k;
        } while (k < depth);
    }
}

/* -- depthwise ------------------------------------------------------------------------------ */

/* One output row from spread rows; kh and kw are constants where this is inlined with them. */
ETC_INLINE void etc_depthwise_row(const float *rows, const float *w, float bias, float *y,
                                  const EtcConv *g, int64_t line, int64_t kh, int64_t kw)
{
    const EtcF lo = etc_splat(g->lo), hi = etc_splat(g->hi);
    for (int64_t ox = 0; ox < g->ow; ox += ETC_LANES) {
        EtcF acc = etc_splat(bias);
        for (int64_t ky = 0; ky < kh; ky++) {
            for (int64_t kx = 0; kx < kw; kx++) {
                const int64_t at = kx * g->dw;
                const float *from = rows + (((ky * g->dh * g->sw) + (at % g->sw)) * line);
                acc = etc_fma(etc_splat(w[(ky * kw) + kx]), etc_loadu(from + (at / g->sw) + ox),
                              acc);
            }
        }
        etc_store(y + ox, g->ow - ox, etc_at_most(etc_at_least(acc, lo), hi));
    }
}

/* Whether the rows under one output row fit the working memory. */
ETC_INLINE int etc_is_depthwise(const EtcConv *g)
{
    const int64_t rows = ((g->kh - 1) * g->dh) + 1;
    return (g->ic == 1) && (g->oc < 4) && (g->transposed == 0) &&
           ((rows * g->sw) <= (ETC_WORK_BYTES / 4 / etc_spread_line(g->ow, g->kw, g->sw, g->dw)));
}

/* One image and group of one input channel. */
ETC_INLINE void etc_conv_depthwise(const float *x, const float *w, const float *bias, float *y,
                                   const EtcConv *g, float *rows)
{
    const int64_t line = etc_spread_line(g->ow, g->kw, g->sw, g->dw),
                  under = ((g->kh - 1) * g->dh) + 1;
    const int64_t room = ETC_WORK_BYTES / 4 / (line * g->sw);              /* input rows */
    const int64_t band = etc_min_i64(((room - under) / g->sh) + 1, g->oh); /* output rows */
    for (int64_t oy = 0; oy < g->oh; oy += band) {
        const int64_t n = etc_min_i64(band, g->oh - oy);
        etc_spread_rows(x, g->ih, g->iw, (oy * g->sh) - g->ph, ((n - 1) * g->sh) + under, g->sw,
                        g->pw, 0.0f, line, rows);
        for (int64_t c = 0; c < g->oc; c++) {
            const float *wc = w + (c * g->kh * g->kw);
            const float start = (bias != NULL) ? bias[c] : 0.0f;
            for (int64_t i = 0; i < n; i++) {
                const float *from = rows + (i * g->sh * g->sw * line);
                float *to = y + (((c * g->oh) + oy + i) * g->ow);
                if ((g->kh == 3) && (g->kw == 3)) {
                    etc_depthwise_row(from, wc, start, to, g, line, 3, 3);
                } else {
                    etc_depthwise_row(from, wc, start, to, g, line, g->kh, g->kw);
                }
            }
        }
    }
}

/* work: ETC_WORK_BYTES */
ETC_OUTLINE void etc_conv_f32(const float *x, const float *w, const float *bias, float *y,
                              const EtcConv *g, void *work)
{
    const int64_t x_size = g->ic * g->ih * g->iw, y_size = g->oc * g->oh * g->ow;
    const int64_t w_size = g->oc * g->ic * g->kh * g->kw;
    for (int64_t i = 0; i < (g->n * g->groups); i++) {
        const int64_t group = i % g->groups;
        const float *b = (bias != NULL) ? (bias + (group * g->oc)) : NULL;
        const float *xi = x + (i * x_size), *wi = w + (group * w_size);
        if (etc_is_depthwise(g)) {
            etc_conv_depthwise(xi, wi, b, y + (i * y_size), g, (float *)work);
        } else {
            etc_conv_product(xi, wi, b, y + (i * y_size), g, (float *)work);
        }
    }
}

#endif
