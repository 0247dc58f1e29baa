/* direct.h -- depthwise convolutions with square kernels of 3, 5 or 7 and stride 1 or 2.
 *
 * The rows of a channel are copied into lines with zeros around them, so that no tap needs a test.
 * A tile is a few output rows by one or two vectors of columns; each vector of a line is loaded
 * once.  Each sum adds its terms in the order of conv.h. */
#ifndef ETC_DIRECT_H
#define ETC_DIRECT_H

#include "runtime-lite/kernels/conv_geometry.h"
#include "runtime-lite/kernels/line.h"

#if defined(ETC_WIDE_FMA) && !defined(ETC_ISA_TABLE)
#define ETC_DIRECT 1

/* The most taps whose weights stay in registers beside the sums of a tile. */
#define ETC_NEAR_TAPS 9

/* The floats of lines that are written at a time, unless a tile needs more.  They and the rows of y
 * stay in the first-level cache. */
#define ETC_DIRECT_ROOM 2048

/* Returns the output rows of a tile.  k: the size of the kernel. */
ETC_INLINE int etc_direct_height(int64_t k)
{
    return ((ETC_REGISTERS == 32) || (k > 3)) ? 4 : 2;
}

/* Returns whether a depthwise convolution uses these tiles. */
ETC_INLINE int etc_is_direct(const EtcConv *g)
{
    const int is_square = (g->kh == g->kw) && (g->sh == g->sw) && (g->dh == 1) && (g->dw == 1);
    const int is_small = (g->kh == 3) || (g->kh == 5) || (g->kh == 7);
    const EtcBorder b = etc_conv_border(g);
    return is_square && is_small && ((g->sh == 1) || ((g->sh == 2) && (g->kh < 7))) &&
           ((etc_conv_reach(g, etc_direct_height(g->kh)) * g->sh * b.line) <=
            (ETC_WORK_BYTES / 4));
}

/* Holds what the tiles of all channels share. */
typedef struct EtcDirect {
    float lo, hi;
    int64_t odd;  /* if the stride is 2: floats from what tap 0 of an output reads to tap 1's */
    int64_t next; /* floats from one input row to the next */
    int64_t ow;
} EtcDirect;

/* Returns w.  gcc 12 would load each weight once for all rows of a tile, and keep the vectors on
 * the stack; so it must not see that the rows read the same weights. */
ETC_INLINE const float *etc_direct_weights(const float *w)
{
    __asm__("" : "+r"(w));
    return w;
}

/* Adds the taps of input row i in column kx, whose elements are x, to the sums of n rows.  near:
 * the weights in all lanes if there are at most ETC_NEAR_TAPS.  k and s: the size of the kernel and
 * the stride. */
ETC_INLINE void etc_direct_taps(EtcF x, const float *w, const EtcF *near, int i, int kx, int n,
                                int k, int s, EtcF acc[4])
{
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        const int ky = i - (r * s), tap = (ky * k) + kx;
        if ((ky >= 0) && (ky < k)) {
            const EtcF weight = ((k * k) <= ETC_NEAR_TAPS) ? near[tap] : etc_splat(w[tap]);
            acc[r] = etc_kept(etc_fma(weight, x, acc[r]));
        }
    }
}

/* Computes n rows of nv vectors of outputs.  from: what the first vector reads; x2 and y2: the
 * floats from there, and from y, to those of the second vector.  If rows are narrow, a vector may
 * end in the next row, which is stored after it, but not behind `end`.  n, nv, k, s and is_narrow
 * are constants after inlining. */
ETC_INLINE void etc_direct_tile(const EtcDirect *d, const float *from, const float *w, EtcF bias,
                                const EtcF *near, float *y, const float *end, int64_t x2,
                                int64_t y2, int n, int nv, int k, int s, int is_narrow)
{
    const EtcF lo = etc_splat(d->lo), hi = etc_splat(d->hi);
    const int64_t next = d->next, odd = d->odd;
    EtcF acc[2][4];
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        acc[0][r] = bias;
        acc[1][r] = bias;
    }
    ETC_UNROLL
    for (int i = 0; i < (((n - 1) * s) + k); i++) {
        w = etc_direct_weights(w);
        ETC_UNROLL
        for (int kx = 0; kx < k; kx++) {
            const float *at = from + (((kx % s) == 0) ? 0 : odd) + (kx / s);
            etc_direct_taps(etc_kept(etc_loadu(at)), w, near, i, kx, n, k, s, acc[0]);
            if (nv == 2) {
                etc_direct_taps(etc_kept(etc_loadu(at + x2)), w, near, i, kx, n, k, s, acc[1]);
            }
        }
        from += next;
    }
    ETC_UNROLL
    for (int v = 0; v < nv; v++) {
        float *to = y + ((v == 0) ? 0 : y2);
        ETC_UNROLL
        for (int r = 0; r < n; r++) {
            const EtcF out = etc_at_most(etc_at_least(acc[v][r], lo), hi);
            if (is_narrow != 0) {
                etc_store(to, end - to, out);
            } else {
                etc_storeu(to, out);
            }
            to += d->ow;
        }
    }
}

/* Computes oh rows of a channel, n at a time, or twice as many if a vector holds a row.  The last
 * rows, and the last vector of a row, may overlap those before.  from: what the first output reads
 * for tap 0. */
ETC_INLINE void etc_direct_rows(const EtcDirect *d, const float *from, const float *w, float first,
                                float *y, int64_t oh, int n, int k, int s)
{
    const int64_t ow = d->ow, last = ow - ETC_LANES, down = s * d->next;
    const float *end = y + (oh * ow);
    const EtcF bias = etc_splat(first);
    EtcF near[ETC_NEAR_TAPS];
    ETC_UNROLL
    for (int i = 0; i < ETC_NEAR_TAPS; i++) {
        near[i] = etc_splat(w[i]);
    }
    if (last <= 0) {
        const int64_t second = etc_min_i64(n, oh - n);
        for (int64_t i = 0; i < oh; i += 2 * n) {
            const int64_t oy = etc_min_i64(i, oh - n - second);
            etc_direct_tile(d, from + (oy * down), w, bias, near, y + (oy * ow), end, second * down,
                            second * ow, n, 2, k, s, 1);
        }
        return;
    }
    for (int64_t i = 0; i < oh; i += n) {
        const int64_t oy = etc_min_i64(i, oh - n);
        const float *row = from + (oy * down);
        float *to = y + (oy * ow);
        int64_t ox = 0;
        for (; (ox + ETC_LANES) < ow; ox += 2 * ETC_LANES) {
            const int64_t second = etc_min_i64(ETC_LANES, last - ox);
            etc_direct_tile(d, row + ox, w, bias, near, to + ox, end, second, second, n, 2, k, s,
                            0);
        }
        if (ox < ow) {
            etc_direct_tile(d, row + last, w, bias, near, to + last, end, 0, 0, n, 1, k, s, 0);
        }
    }
}

/* Does so, row by row if there are fewer than a tile has. */
ETC_INLINE void etc_direct_some(const EtcDirect *d, const float *from, const float *w, float bias,
                                float *y, int64_t oh, int k, int s)
{
    if (oh >= etc_direct_height(k)) {
        etc_direct_rows(d, from, w, bias, y, oh, etc_direct_height(k), k, s);
    } else {
        etc_direct_rows(d, from, w, bias, y, oh, 1, k, s);
    }
}

ETC_OUTLINE void etc_direct_3(const EtcDirect *d, const float *from, const float *w, float bias,
                              float *y, int64_t oh)
{
    etc_direct_some(d, from, w, bias, y, oh, 3, 1);
}

ETC_OUTLINE void etc_direct_3_2(const EtcDirect *d, const float *from, const float *w, float bias,
                                float *y, int64_t oh)
{
    etc_direct_some(d, from, w, bias, y, oh, 3, 2);
}

ETC_OUTLINE void etc_direct_5(const EtcDirect *d, const float *from, const float *w, float bias,
                              float *y, int64_t oh)
{
    etc_direct_some(d, from, w, bias, y, oh, 5, 1);
}

ETC_OUTLINE void etc_direct_5_2(const EtcDirect *d, const float *from, const float *w, float bias,
                                float *y, int64_t oh)
{
    etc_direct_some(d, from, w, bias, y, oh, 5, 2);
}

ETC_OUTLINE void etc_direct_7(const EtcDirect *d, const float *from, const float *w, float bias,
                              float *y, int64_t oh)
{
    etc_direct_some(d, from, w, bias, y, oh, 7, 1);
}

ETC_INLINE void etc_direct_part(const EtcDirect *d, const float *from, const float *w, float bias,
                                float *y, int64_t oh, int64_t k, int64_t s)
{
    if ((k == 3) && (s == 1)) {
        etc_direct_3(d, from, w, bias, y, oh);
    } else if (k == 3) {
        etc_direct_3_2(d, from, w, bias, y, oh);
    } else if ((k == 5) && (s == 1)) {
        etc_direct_5(d, from, w, bias, y, oh);
    } else if (k == 5) {
        etc_direct_5_2(d, from, w, bias, y, oh);
    } else {
        etc_direct_7(d, from, w, bias, y, oh);
    }
}

/* Computes all channels of all images, some rows at a time.  `lines` has ETC_WORK_BYTES. */
ETC_OUTLINE void etc_direct(const float *x, const float *w, const float *bias, float *y,
                            const EtcConv *g, float *lines)
{
    const EtcBorder b = etc_conv_border(g);
    const int64_t k = g->kh, s = g->sh, next = s * b.line, channels = g->groups * g->oc;
    const int64_t least = etc_conv_reach(g, etc_direct_height(k)) * next;
    const int64_t room = etc_max_i64(least, ETC_DIRECT_ROOM);
    const int64_t band = etc_min_i64((((room / next) - k) / s) + 1, g->oh);
    const int64_t first = etc_border_at(&b, -g->pw), second = etc_border_at(&b, 1 - g->pw);
    const EtcDirect d = {g->lo, g->hi, second - first, next, g->ow};
    etc_fill(lines, etc_conv_reach(g, band) * next, 0.0f);
    for (int64_t i = 0; i < (g->n * channels); i++) {
        const int64_t c = (i < channels) ? i : (i % channels);
        const float *plane = x + (((g->oc == 1) ? i : (i / g->oc)) * g->x_plane);
        const float start = (bias != NULL) ? bias[c] : 0.0f;
        float *to = y + (i * g->y_plane);
        for (int64_t oy = 0; oy < g->oh; oy += band) {
            const int64_t n = etc_min_i64(band, g->oh - oy);
            etc_border_copy(&b, plane, g->ih, g->iw, (oy * s) - g->ph, etc_conv_reach(g, n), 0.0f,
                            band < g->oh, lines);
            etc_direct_part(&d, lines + first, w + (c * k * k), start, to + (oy * g->ow), n, k, s);
        }
    }
}
#endif

#endif
