/* along.h -- convolutions of few terms whose vectors hold the pixels of a row.
 *
 * The rows of x are copied into lines with zeros around them.  A tile is a few output channels by one
 * to three vectors of pixels.  Its sums stay in registers until all terms are added, so they need not
 * be transposed, which few terms do not pay for. */
#ifndef ETC_ALONG_H
#define ETC_ALONG_H

#include "runtime-lite/kernels/conv_geometry.h"
#include "runtime-lite/kernels/line.h"

#if defined(ETC_WIDE_FMA) && !defined(ETC_ISA_TABLE)
#define ETC_ALONG 1

/* The most terms.  The weights of a block of channels then stay in the first-level cache. */
#define ETC_ALONG_TERMS 160

/* The floats of lines that are written at a time, if they hold a row of y. */
#define ETC_ALONG_ROOM 6144

/* The channels of a tile; a divisor of ETC_TOGETHER. */
#define ETC_ALONG_CHANNELS ((ETC_REGISTERS == 32) ? 8 : 4)

/* A tile: its first channel and pixel, and what all tiles share. */
typedef struct EtcAlong {
    const float *x;    /* the lines from the first pixel on */
    int64_t x2, x3;    /* floats from x, and from y, to those of the second and third vector */
    const float *w;    /* [terms][ETC_TOGETHER], from the first channel on */
    const float *bias; /* NULL: 0 */
    float *y;
    int64_t y_plane;
    float lo, hi;
    int64_t terms;
    int64_t at[ETC_ALONG_TERMS]; /* for each term, its offset from x in floats */
} EtcAlong;

/* Returns whether a convolution uses these tiles, for all whole blocks of channels. */
ETC_INLINE int etc_is_along(const EtcConv *g)
{
    const int64_t vectors = (g->ow + ETC_LANES - 1) / ETC_LANES;
    if ((g->form != ETC_IN_BLOCKS) || (g->oc < ETC_TOGETHER) || (g->ow < ETC_LANES) || (g->oh < 1) ||
        ((g->ic * g->kh * g->kw) > ETC_ALONG_TERMS) || ((g->kh * g->kw) < 2)) {
        return 0;
    }
    const EtcBorder b = etc_conv_border(g);
    return ((vectors * ETC_LANES * 8) <= (g->ow * 9)) &&
           ((g->ic * etc_conv_reach(g, 1) * g->sw * b.line) <= (ETC_WORK_BYTES / 4));
}

/* Computes a tile of nv vectors, which is a constant after inlining. */
ETC_INLINE void etc_along_tile(const EtcAlong *t, int nv)
{
    EtcF acc[ETC_ALONG_CHANNELS][3];
    const EtcF lo = etc_splat(t->lo), hi = etc_splat(t->hi);
    const float *w = t->w, *x = t->x;
    const int64_t *end = t->at + t->terms;
    const int64_t x2 = t->x2, x3 = t->x3;
    float *y = t->y;
    ETC_UNROLL
    for (int r = 0; r < ETC_ALONG_CHANNELS; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            acc[r][v] = etc_splat((t->bias != NULL) ? t->bias[r] : 0.0f);
        }
    }
    for (const int64_t *at = t->at; at < end; at++) {
        const float *from = x + *at;
        EtcF in[3];
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            in[v] = etc_kept(etc_loadu(from + ((v == 0) ? 0 : ((v == 1) ? x2 : x3))));
        }
        ETC_UNROLL
        for (int r = 0; r < ETC_ALONG_CHANNELS; r++) {
            const EtcF wv = etc_splat(w[r]);
            ETC_UNROLL
            for (int v = 0; v < nv; v++) {
                acc[r][v] = etc_fma(wv, in[v], acc[r][v]);
            }
        }
        w += ETC_TOGETHER;
    }
    ETC_UNROLL
    for (int r = 0; r < ETC_ALONG_CHANNELS; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            float *to = y + ((v == 0) ? 0 : ((v == 1) ? x2 : x3));
            etc_storeu(to, etc_at_most(etc_at_least(acc[r][v], lo), hi));
        }
        y += t->y_plane;
    }
}

ETC_OUTLINE void etc_along_1(const EtcAlong *t)
{
    etc_along_tile(t, 1);
}

ETC_OUTLINE void etc_along_2(const EtcAlong *t)
{
    etc_along_tile(t, 2);
}

ETC_OUTLINE void etc_along_3(const EtcAlong *t)
{
    etc_along_tile(t, 3);
}

/* Computes all whole blocks of channels of a row of y.  The last vector may overlap the one before. */
ETC_INLINE void etc_along_row(EtcAlong *t, const EtcConv *g, const float *x, const float *w,
                              const float *bias, float *y)
{
    const int64_t last = g->ow - ETC_LANES, channels = g->oc - (g->oc % ETC_TOGETHER);
    int64_t left = (g->ow + ETC_LANES - 1) / ETC_LANES;
    for (int64_t ox = 0, nv; left > 0; left -= nv, ox += nv * ETC_LANES) {
        const int64_t from = etc_min_i64(ox, last);
        nv = (left == 4) ? 2 : etc_min_i64(left, 3);
        t->x = x + from;
        t->x2 = etc_min_i64(ETC_LANES, last - from);
        t->x3 = etc_min_i64(2 * ETC_LANES, last - from);
        for (int64_t i = 0; i < channels; i += ETC_ALONG_CHANNELS) {
            t->w = w + ((i - (i % ETC_TOGETHER)) * t->terms) + (i % ETC_TOGETHER);
            t->bias = (bias != NULL) ? (bias + i) : NULL;
            t->y = y + (i * g->y_plane) + from;
            if (nv == 3) {
                etc_along_3(t);
            } else if (nv == 2) {
                etc_along_2(t);
            } else {
                etc_along_1(t);
            }
        }
    }
}

/* Convolves one image and group.  `lines` has ETC_WORK_BYTES. */
ETC_INLINE void etc_conv_along(const float *x, const float *w, const float *bias, float *y,
                               const EtcConv *g, float *lines)
{
    const EtcBorder b = etc_conv_border(g);
    const int64_t next = g->sw * b.line, under = etc_conv_reach(g, 1);
    const int64_t room = etc_max_i64(ETC_ALONG_ROOM / (g->ic * next), under);
    const int64_t band = etc_min_i64(((room - under) / g->sh) + 1, g->oh);
    const int64_t rows = etc_conv_reach(g, band);
    EtcAlong t = {x, 0, 0, w, bias, y, g->y_plane, g->lo, g->hi, 0, {0}};
    for (int64_t c = 0; c < g->ic; c++) {
        for (int64_t ky = 0; ky < g->kh; ky++) {
            for (int64_t kx = 0; kx < g->kw; kx++) {
                t.at[t.terms] = (((c * rows) + (ky * g->dh)) * next) +
                                etc_border_at(&b, (kx * g->dw) - g->pw);
                t.terms++;
            }
        }
    }
    etc_fill(lines, g->ic * rows * next, 0.0f);
    for (int64_t oy = 0; oy < g->oh; oy += band) {
        const int64_t n = etc_min_i64(band, g->oh - oy);
        for (int64_t c = 0; c < g->ic; c++) {
            etc_border_copy(&b, x + (c * g->x_plane), g->ih, g->iw, (oy * g->sh) - g->ph,
                            etc_conv_reach(g, n), 0.0f, band < g->oh, lines + (c * rows * next));
        }
        for (int64_t r = 0; r < n; r++) {
            etc_along_row(&t, g, lines + (r * g->sh * next), w, bias, y + ((oy + r) * g->ow));
        }
    }
}
#endif

#endif
