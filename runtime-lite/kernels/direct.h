/* direct.h -- depthwise convolutions that read the rows of the image where they are.
 *
 * A tile is four output rows by one vector of columns; each vector of an input row is loaded once.
 * Lanes and rows outside the image are zeros.  Each sum adds its terms in the order of conv.h. */
#ifndef ETC_DIRECT_H
#define ETC_DIRECT_H

#include "runtime-lite/kernels/conv_geometry.h"

#if defined(ETC_BETWEEN) && !defined(ETC_ISA_TABLE)
#define ETC_DIRECT 1

/* Returns whether a convolution uses these tiles. */
ETC_INLINE int etc_is_direct(const EtcConv *g)
{
    const int is_square = (g->kh == g->kw) && (g->sh == g->sw) && (g->dh == 1) && (g->dw == 1);
    return is_square && ((g->kh == 3) || (g->kh == 5) || (g->kh == 7)) &&
           ((g->sh == 1) || ((g->sh == 2) && (g->kh < 7)));
}

/* Adds the taps of input row i in column kx, whose elements are x, to the sums of n rows.  k and s:
 * the size of the kernel and the stride. */
ETC_INLINE void etc_direct_taps(EtcF x, const float *w, int i, int kx, int n, int k, int s,
                                EtcF acc[4])
{
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        const int ky = i - (r * s);
        if ((ky >= 0) && (ky < k)) {
            acc[r] = etc_fma(etc_splat(w[(ky * k) + kx]), x, acc[r]);
        }
    }
}

/* Computes n rows from oy on of the vector of outputs from ox on.  n, k and s are constants after
 * inlining. */
ETC_INLINE void etc_direct_tile(const float *x, const float *w, float bias, float *y,
                                const EtcConv *g, const float *zeros, int64_t oy, int64_t ox, int n,
                                int k, int s)
{
    EtcF acc[4];
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        acc[r] = etc_splat(bias);
    }
    ETC_UNROLL
    for (int i = 0; i < (((n - 1) * s) + k); i++) {
        const int64_t iy = (oy * s) - g->ph + i;
        const float *row = ((iy >= 0) && (iy < g->ih)) ? (x + (iy * g->iw)) : zeros;
        ETC_UNROLL
        for (int kx = 0; kx < k; kx += s) {
            const int64_t at = (ox * s) - g->pw + kx, next = at + ETC_LANES;
            const EtcF first = etc_load_between(row + at, -at, g->iw - at);
            if (s == 1) {
                etc_direct_taps(first, w, i, kx, n, k, s, acc);
            } else {
                const EtcF second = etc_load_between(row + next, -next, g->iw - next);
                etc_direct_taps(etc_even(first, second), w, i, kx, n, k, s, acc);
                if ((kx + 1) < k) {
                    etc_direct_taps(etc_odd(first, second), w, i, kx + 1, n, k, s, acc);
                }
            }
        }
    }
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        etc_store_within(y + ((oy + r) * g->ow) + ox, g->ow - ox, &acc[r], g->lo, g->hi);
    }
}

/* Computes one channel.  The last four rows may overlap the four before. */
ETC_INLINE void etc_direct_plane(const float *x, const float *w, float bias, float *y,
                                 const EtcConv *of, const float *zeros, int k, int s)
{
    const EtcConv g = *of; /* no store to y changes it */
    for (int64_t ox = 0; ox < g.ow; ox += ETC_LANES) {
        for (int64_t oy = 0; (g.oh >= 4) && (oy < g.oh); oy += 4) {
            etc_direct_tile(x, w, bias, y, &g, zeros, etc_min_i64(oy, g.oh - 4), ox, 4, k, s);
        }
        for (int64_t oy = 0; (g.oh < 4) && (oy < g.oh); oy++) {
            etc_direct_tile(x, w, bias, y, &g, zeros, oy, ox, 1, k, s);
        }
    }
}

/* Computes one channel.  zeros: a row of them. */
ETC_OUTLINE void etc_direct(const float *x, const float *w, float bias, float *y, const EtcConv *g,
                            const float *zeros)
{
    if (g->kh == 3) {
        if (g->sh == 1) {
            etc_direct_plane(x, w, bias, y, g, zeros, 3, 1);
        } else {
            etc_direct_plane(x, w, bias, y, g, zeros, 3, 2);
        }
    } else if (g->kh == 5) {
        if (g->sh == 1) {
            etc_direct_plane(x, w, bias, y, g, zeros, 5, 1);
        } else {
            etc_direct_plane(x, w, bias, y, g, zeros, 5, 2);
        }
    } else {
        etc_direct_plane(x, w, bias, y, g, zeros, 7, 1);
    }
}
#endif

#endif
