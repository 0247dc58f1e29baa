/* conv.h -- convolution of [n, groups * ic, ih, iw] with weights [groups * oc, ic, kh, kw].
 *
 * Each sum starts from the bias (or 0) and takes its terms in order of ic, then kh, then kw by
 * fused multiply-add.  A tap outside the image is a term too: weight times zero.  One dimension
 * is two with ih = kh = 1.
 */
#ifndef ETC_CONV_H
#define ETC_CONV_H

#include "runtime-lite/kernels/tile.h"

typedef struct EtcConv {
    int64_t n, groups;
    int64_t ic, ih, iw; /* ic and oc: channels of one group */
    int64_t oc, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw, dh, dw; /* kernel, stride, padding, dilation */
    float lo, hi;                           /* clamp of y; -infinity and infinity: none */
    int32_t transposed; /* weights [groups * ic, oc, kh, kw]; stride and padding are the forward's */
} EtcConv;

/* The row or column of the input under output o and tap k; -1 outside. */
ETC_INLINE int64_t etc_conv_from(int64_t o, int64_t k, int64_t stride, int64_t pad, int64_t dilation,
                                 int64_t size, int32_t transposed)
{
    int64_t i = (o * stride) - pad + (k * dilation);
    if (transposed != 0) {
        i = o + pad - (k * dilation);
        i = ((i >= 0) && ((i % stride) == 0)) ? (i / stride) : -1;
    }
    return (i < size) ? i : -1;
}

/* panel[k][width]: taps k0 .. k0 + k - 1 of output pixels j .. j + n - 1 of one image and group. */
ETC_INLINE void etc_pack_taps(const float *x, const EtcConv *g, int64_t k0, int64_t k, int64_t j,
                              int64_t n, float *panel, int64_t width)
{
    for (int64_t i = 0; i < k; i++) {
        const int64_t tap = k0 + i, kx = tap % g->kw, ky = (tap / g->kw) % g->kh;
        const float *plane = x + ((tap / (g->kw * g->kh)) * g->ih * g->iw);
        for (int64_t c = 0; c < width; c++) {
            const int64_t p = j + c;
            const int64_t iy = etc_conv_from(p / g->ow, ky, g->sh, g->ph, g->dh, g->ih, g->transposed);
            const int64_t ix = etc_conv_from(p % g->ow, kx, g->sw, g->pw, g->dw, g->iw, g->transposed);
            const int is_in = (c < n) && (iy >= 0) && (ix >= 0);
            panel[(i * width) + c] = is_in ? plane[(iy * g->iw) + ix] : 0.0f;
        }
    }
}

ETC_OUTLINE void etc_conv_f32(const float *x, const float *w, const float *bias, float *y,
                              const EtcConv *g, void *work)
{
    float *panel = (float *)work;
    const int64_t taps = g->kh * g->kw, depth = g->ic * taps, pixels = g->oh * g->ow;
    const int64_t a_row = (g->transposed != 0) ? taps : depth;
    const int64_t k_block = (g->transposed != 0) ? taps : ETC_KB;
    EtcBlock t = {w, panel, y, bias, g->oc, 0, 0, a_row, 0, pixels, g->lo, g->hi, ETC_FROM_ZERO, 0};
    for (int64_t i = 0; i < (g->n * g->groups); i++) {
        const int64_t group = i % g->groups;
        const float *xi = x + (i * g->ic * g->ih * g->iw), *wi = w + (group * g->oc * depth);
        t.bias = (bias != NULL) ? (bias + (group * g->oc)) : NULL;
        for (int64_t j = 0; j < pixels; j += t.n) {
            t.n = etc_panel(pixels - j);
            t.b_row = ((t.n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
            t.c = y + (i * g->oc * pixels) + j;
            t.start = (bias != NULL) ? ETC_FROM_ROW : ETC_FROM_ZERO;
            int64_t k = 0;
            do { /* once even where there is no tap */
                t.k = etc_min_i64(depth - k, k_block);
                t.k = etc_min_i64(t.k, ETC_KB - ((k % k_block) % ETC_KB));
                t.a = wi + k;
                t.is_last = (k + t.k) == depth;
                etc_pack_taps(xi, g, k, t.k, j, t.n, panel, t.b_row);
                etc_block(&t);
                t.start = ETC_FROM_C;
                k += t.k;
            } while (k < depth);
        }
    }
}

#endif
