/* grid.h -- sampling of images [n, channels, sizes] at the points of a grid, in 2 or 3 axes:
 * nearest element, linear, and cubic (2 axes only).
 *
 * A vector holds one coordinate of several points.  For each axis, a point has 1, 2 or 4 taps: the
 * indices of elements along the axis, and their weights.  The element at each combination of the
 * axes' taps is read once per channel.  A coordinate that is NaN is treated as in torch: nearest
 * and linear sampling read index 0, unless the border is zeros; then the nearest element is 0 and
 * the linear result is NaN.  The cubic result is NaN.
 */
#ifndef ETC_GRID_H
#define ETC_GRID_H

#include "runtime-lite/kernels/math.h"

typedef struct EtcGrid {
    int64_t n, channels, points;
    int64_t size[3];       /* the sizes of an image; with 2 axes the last is 1 */
    int32_t axes, taps;    /* the taps of an axis: 1, 2 or 4 */
    int32_t border;        /* outside the image: 0: zeros, 1: nearest element, 2: mirror image */
    int32_t align_corners; /* -1 and 1 are the centres of the end elements, not their edges */
} EtcGrid;

/* The elements of a channel that some points read.  The first `count` entries of each array are
 * used: the index, which is 0 along an axis where the element is outside the image, a mask that is
 * 0 there, and the weight. */
typedef struct EtcGridTaps {
    int32_t count;
    EtcI at[16], inside[16];
    EtcF weight[16];
} EtcGridTaps;

/* Clamps x to 0 .. n - 1; NaN becomes 0. */
ETC_INLINE EtcF etc_grid_clip(EtcF x, float n)
{
    const EtcF zero = etc_splat(0.0f);
    return etc_at_most(etc_select((EtcI)(x > zero), x, zero), etc_splat(n - 1.0f));
}

ETC_INLINE EtcF etc_grid_bound(EtcF x, float n, const EtcGrid *g)
{
    if (g->border == 0) {
        return x;
    }
    if (g->border == 2) {
        const EtcF lo = etc_splat((g->align_corners != 0) ? 0.0f : -0.5f);
        const EtcF span = etc_splat((g->align_corners != 0) ? (n - 1.0f) : n);
        const EtcF r = etc_vfmod(etc_vabs(x - lo), span + span);
        x = etc_select((EtcI)(r > span), (span + span) - r, r) + lo;
    }
    return etc_grid_clip(x, n);
}

ETC_INLINE EtcF etc_grid_far(EtcF t)
{
    return (((((etc_k(-0.75) * t) + etc_k(3.75)) * t) - etc_k(6.0)) * t) + etc_k(3.0);
}

ETC_INLINE EtcF etc_grid_near(EtcF t)
{
    return ((((etc_k(1.25) * t) - etc_k(2.25)) * t) * t) + etc_k(1.0);
}

/* Computes the taps of an axis from the coordinates x, which are -1 .. 1 within the image: the
 * elements' indices as whole floats, and their weights. */
ETC_INLINE void etc_grid_axis(EtcF x, int64_t size, const EtcGrid *g, EtcF *at, EtcF *weight)
{
    const EtcF one = etc_k(1.0);
    const float n = (float)size;
    EtcF p = (x + one) * etc_splat((g->align_corners != 0) ? ((n - 1.0f) / 2.0f) : (n / 2.0f));
    p -= etc_splat((g->align_corners != 0) ? 0.0f : 0.5f);
    if (g->taps == 4) {
        const EtcF lo = etc_vfloor(p), t = p - lo;
        for (int k = 0; k < 4; k++) {
            at[k] = etc_grid_bound(lo + etc_splat((float)(k - 1)), n, g);
        }
        weight[0] = etc_grid_far(t + one);
        weight[1] = etc_grid_near(t);
        weight[2] = etc_grid_near(one - t);
        weight[3] = etc_grid_far(etc_k(2.0) - t);
        return;
    }
    p = etc_grid_bound(p, n, g);
    at[0] = (g->taps == 1) ? etc_vround(p) : etc_vfloor(p);
    weight[0] = one;
    if (g->taps == 2) {
        at[1] = at[0] + one;
        weight[1] = p - at[0];
        weight[0] = one - weight[1];
    }
}

/* Combines the taps of all axes, with the last axis fastest. */
ETC_INLINE void etc_grid_cross(EtcF at[3][4], EtcF weight[3][4], const EtcGrid *g, EtcGridTaps *to)
{
    to->count = 1;
    for (int32_t i = 0; i < g->axes; i++) {
        to->count *= g->taps;
    }
    for (int32_t t = 0; t < to->count; t++) {
        EtcI flat = etc_splat_i32(0), inside = etc_splat_i32(-1);
        EtcF w = etc_k(1.0);
        for (int32_t i = 0, over = to->count; i < g->axes; i++) {
            over /= g->taps;
            const int32_t k = (t / over) % g->taps;
            const EtcF p = at[i][k];
            const EtcF last = etc_splat((float)(g->size[i] - 1));
            const EtcI is = etc_mask((EtcI)(p >= etc_k(0.0))) & etc_mask((EtcI)(p <= last));
            const EtcF there = etc_select(is, p, etc_k(0.0));
            flat *= etc_splat_i32((int32_t)g->size[i]);
            flat += __builtin_convertvector(there, EtcI);
            inside &= is;
            w = (i == 0) ? weight[i][k] : (w * weight[i][k]);
        }
        to->at[t] = flat;
        to->inside[t] = inside;
        to->weight[t] = w;
    }
}

/* Returns the indices, in the grid, of the coordinates of n points along its first axis.  Lanes
 * beyond them repeat the last one. */
ETC_INLINE EtcI etc_grid_lanes(int64_t n, const EtcGrid *g)
{
    int32_t at[ETC_LANES];
    for (int lane = 0; lane < ETC_LANES; lane++) {
        at[lane] = (int32_t)etc_min_i64(lane, n - 1) * g->axes;
    }
    EtcI v;
    __builtin_memcpy(&v, at, sizeof v);
    return v;
}

/* Samples all channels of one image at n points, at most ETC_LANES, whose etc_grid_lanes are
 * `lanes`. */
ETC_INLINE void etc_grid_places(const float *x, const float *grid, EtcI lanes, float *y, int64_t n,
                                const EtcGrid *g)
{
    const int64_t plane = g->size[0] * g->size[1] * g->size[2];
    EtcF at[3][4], weight[3][4];
    EtcGridTaps taps;
    for (int32_t i = 0; i < g->axes; i++) {
        const EtcF c = etc_vgather(grid + (g->axes - 1 - i), lanes);
        etc_grid_axis(c, g->size[i], g, at[i], weight[i]);
    }
    etc_grid_cross(at, weight, g, &taps);
    for (int64_t c = 0; c < g->channels; c++) {
        const float *from = x + (c * plane);
        EtcF sum = etc_k(0.0);
        for (int32_t t = 0; t < taps.count; t++) {
            const EtcF v = etc_vgather(from, taps.at[t]);
            const EtcF z = etc_select(taps.inside[t], v, etc_k(0.0));
            const EtcF of = z * taps.weight[t];
            sum = (g->taps == 1) ? z : ((t == 0) ? of : (sum + of));
        }
        etc_store(y + (c * g->points), n, sum);
    }
}

/* Does the same with the same bits for two linear axes, if the last has more than one element.
 * The two taps of a row are loaded together.  They are neighbours, unless the first is the row's
 * last element or the second its first one; then the other is outside the image. */
ETC_INLINE void etc_grid_linear(const float *x, const float *grid, EtcI lanes, float *y, int64_t n,
                                const EtcGrid *g)
{
    const EtcF zero = etc_k(0.0);
    EtcF at[2][4], weight[2][4];
    EtcI inside[2][2], place[2][2];
    ETC_UNROLL
    for (int i = 0; i < 2; i++) {
        const EtcF last = etc_splat((float)(g->size[i] - 1));
        etc_grid_axis(etc_vgather(grid + (1 - i), lanes), g->size[i], g, at[i], weight[i]);
        ETC_UNROLL
        for (int k = 0; k < 2; k++) {
            const EtcF p = at[i][k];
            inside[i][k] = etc_mask((EtcI)(p >= zero)) & etc_mask((EtcI)(p <= last));
            place[i][k] = __builtin_convertvector(etc_select(inside[i][k], p, zero), EtcI);
        }
    }
    const EtcI ends = etc_mask((EtcI)(place[1][1] < place[1][0])); /* -1 or 0 */
    const EtcI starts = etc_mask((EtcI)(place[1][1] == place[1][0]));
    for (int64_t c = 0; c < g->channels; c++) {
        const float *from = x + (c * g->size[0] * g->size[1]);
        EtcF sum = zero;
        ETC_UNROLL
        for (int k = 0; k < 2; k++) {
            const EtcI row = place[0][k] * etc_splat_i32((int32_t)g->size[1]);
            EtcF a, b;
            etc_vgather_pairs(from, row + place[1][0] + ends, &a, &b);
            a = etc_select(inside[0][k], a, zero);
            b = etc_select(inside[0][k], b, zero);
            const EtcF first = etc_select(inside[1][0], etc_select(ends, b, a), zero);
            const EtcF of = first * (weight[0][k] * weight[1][0]);
            sum = (k == 0) ? of : (sum + of);
            sum += etc_select(inside[1][1], etc_select(starts, a, b), zero) *
                   (weight[0][k] * weight[1][1]);
        }
        etc_store(y + (c * g->points), n, sum);
    }
}

/* Samples x [n, channels, sizes] into y [n, channels, points].  The grid is [n, points, axes], and
 * the last axis of the image comes first in it. */
ETC_OUTLINE void etc_grid_sample_f32(const float *x, const float *grid, float *y, const EtcGrid *g)
{
    const int64_t image = g->channels * g->size[0] * g->size[1] * g->size[2];
    EtcGrid linear = *g;
    linear.taps = 2; /* which the compiler sees */
    for (int64_t i = 0; i < g->n; i++) {
        const float *from = grid + (i * g->points * g->axes);
        EtcI lanes = etc_grid_lanes(ETC_LANES, g);
        for (int64_t p = 0; p < g->points; p += ETC_LANES) {
            const int64_t n = etc_min_i64(ETC_LANES, g->points - p);
            float *to = y + (i * g->channels * g->points) + p;
            lanes = (n < ETC_LANES) ? etc_grid_lanes(n, g) : lanes;
            if ((g->taps == 2) && (g->axes == 2) && (g->size[1] > 1)) {
                etc_grid_linear(x + (i * image), from + (2 * p), lanes, to, n, &linear);
            } else {
                etc_grid_places(x + (i * image), from + (p * g->axes), lanes, to, n, g);
            }
        }
    }
}

#endif
