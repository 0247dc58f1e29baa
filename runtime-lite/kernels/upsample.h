/* upsample.h -- float planes [planes, ih, iw] resampled to [planes, oh, ow], nearest or linear.
 *
 * Elements are placed as torch places them.  The linear kind first interpolates each input row
 * that is needed along its columns, fma(l1, x1, l0 * x0), into one of two rows of `work`.  Then
 * it interpolates an output row between two such rows in the same way.  Wide planes are
 * processed in strips of columns. */
#ifndef ETC_UPSAMPLE_H
#define ETC_UPSAMPLE_H

#include "runtime-lite/kernels/vec.h"

typedef struct EtcUpsample {
    int64_t planes, ih, iw, oh, ow;
    float sh, sw; /* input elements per output element */
    int32_t align_corners;
} EtcUpsample;

/* The most columns of a strip, a multiple of ETC_LANES: its neighbours, weights and two rows take half of
 * the working memory. */
#define ETC_STRIP (ETC_WORK_BYTES / 1024 * 32)

/* Returns the largest integer that is not above v, but at most n - 1.  v is not negative. */
ETC_INLINE int64_t etc_below(float v, int64_t n)
{
    return (v < 9.0e18f) ? etc_min_i64((int64_t)v, n - 1) : (n - 1);
}

/* Returns the index of the input that output o copies.  As in torch, the scale is not used if the
 * sizes are equal or the output has twice the size. */
ETC_INLINE int64_t etc_nearest(int64_t o, float scale, int64_t in, int64_t out)
{
    if (in == out) {
        return o;
    }
    return ((2 * in) == out) ? (o / 2) : etc_below((float)o * scale, in);
}

/* Returns the index of the first input neighbour of output o.  *weight becomes the weight of the
 * second one, which is next to it. */
ETC_INLINE int64_t etc_neighbour(int64_t o, float scale, int align, int64_t in, int64_t out,
                                 float *weight)
{
    *weight = 0.0f;
    if (in == out) {
        return o;
    }
    const EtcF middle = etc_fma(etc_splat(scale), etc_splat((float)o + 0.5f), etc_k(-0.5));
    float at = (align != 0) ? (scale * (float)o) : middle[0];
    at = (at < 0.0f) ? 0.0f : at;
    const int64_t i = etc_below(at, in);
    const float rest = at - (float)i;
    *weight = (rest > 1.0f) ? 1.0f : rest;
    return i;
}

/* Writes one row of the nearest kind.  The common case is twice the size. */
ETC_INLINE void etc_nearest_row(const float *x, float *y, const EtcUpsample *g,
                                const int32_t *column, int64_t n)
{
    if (g->ow == (2 * g->iw)) {
        for (int64_t i = 0; i < g->iw; i++) {
            y[2 * i] = x[i];
            y[(2 * i) + 1] = x[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[column[i]];
    }
}

/* Resamples x to y by the nearest element.  work: ETC_WORK_BYTES. */
ETC_OUTLINE void etc_upsample_nearest_f32(const float *x, float *y, const EtcUpsample *g,
                                          void *work)
{
    int32_t *column = (int32_t *)work;
    const int64_t room = ETC_WORK_BYTES / 4;
    for (int64_t ox = 0; ox < g->ow; ox += room) {
        const int64_t n = etc_min_i64(room, g->ow - ox);
        for (int64_t i = 0; i < n; i++) {
            column[i] = (int32_t)etc_nearest(ox + i, g->sw, g->iw, g->ow);
        }
        for (int64_t p = 0; p < g->planes; p++) {
            int64_t last = -1;
            for (int64_t oy = 0; oy < g->oh; oy++) {
                const int64_t iy = etc_nearest(oy, g->sh, g->ih, g->oh);
                float *to = y + (((p * g->oh) + oy) * g->ow) + ox;
                if (iy == last) {
                    __builtin_memcpy(to, to - g->ow, (size_t)n * sizeof *to);
                } else if (n == g->ow) {
                    etc_nearest_row(x + (((p * g->ih) + iy) * g->iw), to, g, column, n);
                } else {
                    for (int64_t i = 0; i < n; i++) {
                        to[i] = x[(((p * g->ih) + iy) * g->iw) + column[i]];
                    }
                }
                last = iy;
            }
        }
    }
}

/* -- linear --------------------------------------------------------------------------------- */

/* A strip of n columns.  at[i] is the first neighbour of column i and weight[i] is the weight of
 * the second one.  row[k] is input row have[k] (-1: none), interpolated along the columns. */
typedef struct EtcStrip {
    int32_t *at;
    float *weight, *row[2];
    int64_t have[2];
    int64_t n;
} EtcStrip;

ETC_INLINE void etc_strip_start(EtcStrip *s, const EtcUpsample *g, int64_t ox, int64_t n,
                                void *work)
{
    float *room = (float *)work;
    s->at = (int32_t *)work;
    s->weight = room + ETC_STRIP;
    s->row[0] = room + (2 * ETC_STRIP);
    s->row[1] = room + (3 * ETC_STRIP);
    s->n = n;
    for (int64_t i = 0; i < n; i++) {
        s->at[i] = (int32_t)etc_neighbour(ox + i, g->sw, g->align_corners, g->iw, g->ow,
                                          &s->weight[i]);
    }
}

/* Returns input row iy, interpolated along the columns.  If neither row of the strip is that
 * row, it is computed in the place of the row with the smaller index. */
ETC_INLINE const float *etc_strip_row(EtcStrip *s, const float *x, int64_t iw, int64_t iy)
{
    const int to = (s->have[0] <= s->have[1]) ? 0 : 1;
    for (int k = 0; k < 2; k++) {
        if (s->have[k] == iy) {
            return s->row[k];
        }
    }
    const float *from = x + (iy * iw);
    float *y = s->row[to];
    for (int64_t i = 0; i < s->n; i += ETC_LANES) {
        float a[ETC_LANES], b[ETC_LANES];
        for (int64_t k = 0; k < ETC_LANES; k++) {
            const int64_t c = ((i + k) < s->n) ? s->at[i + k] : 0;
            a[k] = from[c];
            b[k] = from[((c + 1) < iw) ? (c + 1) : c];
        }
        const EtcF w = etc_load(s->weight + i, s->n - i);
        etc_storeu(y + i, etc_fma(w, etc_loadu(b), (etc_k(1.0) - w) * etc_loadu(a)));
    }
    s->have[to] = iy;
    return y;
}

ETC_INLINE void etc_blend_rows(const float *a, const float *b, float weight, float *y, int64_t n)
{
    const EtcF w = etc_splat(weight), v = etc_k(1.0) - w;
    for (int64_t i = 0; i < n; i += ETC_LANES) {
        etc_store(y + i, n - i, etc_fma(w, etc_loadu(b + i), v * etc_loadu(a + i)));
    }
}

/* Resamples x to y linearly.  work: ETC_WORK_BYTES. */
ETC_OUTLINE void etc_upsample_linear_f32(const float *x, float *y, const EtcUpsample *g,
                                         void *work)
{
    EtcStrip s;
    for (int64_t ox = 0; ox < g->ow; ox += ETC_STRIP) {
        etc_strip_start(&s, g, ox, etc_min_i64(ETC_STRIP, g->ow - ox), work);
        for (int64_t p = 0; p < g->planes; p++) {
            const float *plane = x + (p * g->ih * g->iw);
            s.have[0] = -1;
            s.have[1] = -1;
            for (int64_t oy = 0; oy < g->oh; oy++) {
                float weight;
                const int64_t iy = etc_neighbour(oy, g->sh, g->align_corners, g->ih, g->oh,
                                                 &weight);
                const float *a = etc_strip_row(&s, plane, g->iw, iy);
                const float *b = etc_strip_row(&s, plane, g->iw, etc_min_i64(iy + 1, g->ih - 1));
                etc_blend_rows(a, b, weight, y + (((p * g->oh) + oy) * g->ow) + ox, s.n);
            }
        }
    }
}

#endif
