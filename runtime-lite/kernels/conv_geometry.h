/* conv_geometry.h -- the sizes of a convolution and the layout of its weights. */
#ifndef ETC_CONV_GEOMETRY_H
#define ETC_CONV_GEOMETRY_H

#include "runtime-lite/kernels/line.h"
#include "runtime-lite/kernels/tile.h"

/* The layout of the weights. */
typedef enum EtcForm {
    ETC_FORWARD,    /* [groups * oc, ic, kh, kw] */
    ETC_TRANSPOSED, /* [groups * ic, oc, kh, kw]; stride and padding are those of the forward
                     * convolution that this one transposes */
    ETC_IN_BLOCKS,  /* [groups][blocks][ic, kh, kw][ETC_TOGETHER]: forward, with the output
                     * channels in blocks; the last block of a group may be narrower */
    ETC_IN_QUADS    /* [groups * oc][(ic + 3) / 4 / n][kh, kw][n][4], with n of etc_quads_together:
                     * bytes of four input channels side by side; those of channels that do not
                     * exist are zeros */
} EtcForm;

/* Returns how many of the quads of a tap are side by side: at most 16, and a divisor of their number. */
ETC_INLINE int64_t etc_quads_together(int64_t quads)
{
    int64_t n = 16;
    while ((quads % n) != 0) {
        n--;
    }
    return n;
}

typedef struct EtcConv {
    int64_t n, groups;
    int64_t ic, ih, iw; /* ic and oc: the channels of one group */
    int64_t oc, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw, dh, dw; /* kernel, stride, padding, dilation */
    float lo, hi;                           /* the clamp of y; -infinity and infinity: none */
    EtcForm form;
    int64_t x_plane, y_plane; /* floats from one channel to the next; 0: there are no gaps */
} EtcConv;

/* Returns the input rows, some of which may be outside x, that n output rows read. */
ETC_INLINE int64_t etc_conv_reach(const EtcConv *g, int64_t n)
{
    return ((n - 1) * g->sh) + ((g->kh - 1) * g->dh) + 1;
}

/* Plans the rows that etc_border_copy copies for a convolution. */
ETC_INLINE EtcBorder etc_conv_border(const EtcConv *g)
{
    return etc_border(g->iw, g->ow, ((g->kw - 1) * g->dw) + 1, g->sw, g->pw);
}

#endif
