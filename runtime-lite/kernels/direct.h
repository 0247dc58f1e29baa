/* direct.h -- depthwise convolutions that read the rows of the image where they are.
 *
 * A tile is up to four output rows by one or two vectors of columns; each vector of an input row is
 * loaded once.  Lanes and rows outside the image are zeros.  Each sum adds its terms in the order of
 * conv.h. */
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

/* Adds the taps of input row i in column kx, whose elements are x, to the sums of n rows in vector
 * v.  k and s: the size of the kernel and the stride. */
ETC_INLINE void etc_direct_taps(EtcF x, const float *w, int i, int kx, int n, int v, int k, int s,
                                EtcF acc[4][2])
{
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        const int ky = i - (r * s);
        if ((ky >= 0) && (ky < k)) {
            acc[r][v] = etc_fma(etc_splat(w[(ky * k) + kx]), x, acc[r][v]);
        }
    }
}

/* Loads a vector of row from column `at` on.  Columns outside of the image are 0; `inside`: there are
 * none. */
ETC_INLINE EtcF etc_direct_load(const float *row, int64_t at, int64_t iw, int inside)
{
    return (inside != 0) ? etc_loadu(row + at) : etc_load_between(row + at, -at, iw - at);
}

/* Computes n rows from oy on of nv vectors of outputs from ox on.  n, nv, k, s and inside are
 * constants after inlining. */
ETC_INLINE void etc_direct_tile(const float *x, const float *w, float bias, float *y,
                                const EtcConv *g, const float *zeros, int64_t oy, int64_t ox, int n,
                                int nv, int k, int s, int inside)
{
    EtcF acc[4][2];
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        acc[r][0] = etc_splat(bias);
        acc[r][1] = acc[r][0];
    }
    ETC_UNROLL
    for (int i = 0; i < (((n - 1) * s) + k); i++) {
        const int64_t iy = (oy * s) - g->ph + i;
        const float *row = ((iy >= 0) && (iy < g->ih)) ? (x + (iy * g->iw)) : zeros;
        ETC_UNROLL
        for (int kx = 0; kx < k; kx += s) {
            ETC_UNROLL
            for (int v = 0; v < nv; v++) {
                const int64_t at = ((ox + (v * ETC_LANES)) * s) - g->pw + kx;
                const EtcF first = etc_direct_load(row, at, g->iw, inside);
                if (s == 1) {
                    etc_direct_taps(first, w, i, kx, n, v, k, s, acc);
                } else {
                    const EtcF second = etc_direct_load(row, at + ETC_LANES, g->iw, inside);
                    etc_direct_taps(etc_even(first, second), w, i, kx, n, v, k, s, acc);
                    if ((kx + 1) < k) {
                        etc_direct_taps(etc_odd(first, second), w, i, kx + 1, n, v, k, s, acc);
                    }
                }
            }
        }
    }
    ETC_UNROLL
    for (int r = 0; r < n; r++) {
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            const int64_t to = ox + (v * ETC_LANES);
            etc_store_within(y + ((oy + r) * g->ow) + to, g->ow - to, &acc[r][v], g->lo, g->hi);
        }
    }
}

/* Computes all rows of nv vectors of outputs from ox on.  The last rows may overlap those before. */
ETC_INLINE void etc_direct_rows(const float *x, const float *w, float bias, float *y,
                                const EtcConv *g, const float *zeros, int64_t ox, int nv, int k,
                                int s, int inside)
{
    if (g->oh >= 4) {
        for (int64_t oy = 0; oy < g->oh; oy += 4) {
            const int64_t at = etc_min_i64(oy, g->oh - 4);
            etc_direct_tile(x, w, bias, y, g, zeros, at, ox, 4, nv, k, s, inside);
        }
        return;
    }
    for (int64_t oy = 0; (g->oh >= 2) && (oy < g->oh); oy += 2) {
        const int64_t at = etc_min_i64(oy, g->oh - 2);
        etc_direct_tile(x, w, bias, y, g, zeros, at, ox, 2, nv, k, s, inside);
    }
    if (g->oh == 1) {
        etc_direct_tile(x, w, bias, y, g, zeros, 0, ox, 1, nv, k, s, inside);
    }
}

/* Computes one channel: the first and the last vector of columns, and between them two vectors at a
 * time whose taps are all inside the image, unless 7 x 7 of them leave too few registers.  Each may
 * overlap the one before. */
ETC_INLINE void etc_direct_plane(const float *x, const float *w, float bias, float *y,
                                 const EtcConv *of, const float *zeros, int k, int s)
{
    const EtcConv g = *of; /* no store to y changes it */
    const int64_t last = etc_max_i64(g.ow - ETC_LANES, 0);
    const int64_t reach = (2 * s * ETC_LANES) + k - 1; /* the columns that two vectors read */
    int64_t ox = 0;
    while (ox < g.ow) {
        const int64_t at = etc_min_i64(ox, g.ow - (2 * ETC_LANES));
        if ((k < 7) && (((at * s) - g.pw) >= 0) && (((at * s) - g.pw + reach) <= g.iw)) {
            etc_direct_rows(x, w, bias, y, &g, zeros, at, 2, k, s, 1);
            ox = at + (2 * ETC_LANES);
        } else {
            etc_direct_rows(x, w, bias, y, &g, zeros, etc_min_i64(ox, last), 1, k, s, 0);
            ox += ETC_LANES;
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
