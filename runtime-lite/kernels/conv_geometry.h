/* conv_geometry.h -- what a convolution is told of its image, its kernel and how weights lie. */
#ifndef ETC_CONV_GEOMETRY_H
#define ETC_CONV_GEOMETRY_H

#include "runtime-lite/kernels/tile.h"

/* How weights lie. */
typedef enum EtcForm {
    ETC_FORWARD,    /* [groups * oc, ic, kh, kw] */
    ETC_TRANSPOSED, /* [groups * ic, oc, kh, kw]: stride and padding are those of the forward one */
    ETC_IN_BLOCKS   /* [groups][blocks][ic, kh, kw][ETC_TOGETHER]: a forward one, whose channels
                     * of output stand together; the last block of a group may be narrower */
} EtcForm;

typedef struct EtcConv {
    int64_t n, groups;
    int64_t ic, ih, iw; /* ic and oc: channels of one group */
    int64_t oc, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw, dh, dw; /* kernel, stride, padding, dilation */
    float lo, hi;                           /* clamp of y; -infinity and infinity: none */
    EtcForm form;
    int64_t x_plane, y_plane; /* floats from a channel to the next; 0: no gaps between them */
} EtcConv;

#endif
