/* bfloat.h -- products whose weights are stored as bfloat16, in blocks.
 *
 * Some blocks at a time are widened to floats, which the cores for floats then multiply.  So each
 * sum is that of matmul.h or conv.h, to the bit. */
#ifndef ETC_BFLOAT_H
#define ETC_BFLOAT_H

#include "runtime-lite/kernels/conv.h"
#include "runtime-lite/kernels/half.h"
#include "runtime-lite/kernels/parts.h"

typedef uint16_t EtcBfloats __attribute__((vector_size(ETC_LANES * 2)));

ETC_INLINE void etc_widen_bfloats(const uint16_t *from, int64_t n, float *to)
{
    int64_t i = 0;
    for (; (i + ETC_LANES) <= n; i += ETC_LANES) {
        EtcBfloats h;
        __builtin_memcpy(&h, from + i, sizeof h);
        etc_storeu(to + i, (EtcF)(__builtin_convertvector(h, EtcU) << 16));
    }
    for (; i < n; i++) {
        to[i] = etc_from_bfloat(from[i]);
    }
}

/* The columns whose weights are widened at a time: whole blocks. */
#define ETC_WIDE_COLUMNS ((ETC_BLOCK_PANEL > ETC_TOGETHER) ? ETC_BLOCK_PANEL : ETC_TOGETHER)

/* Does what etc_matmul_part does.  `work` has ETC_WORK_BYTES. */
ETC_OUTLINE void etc_matmul_bf16(const float *a, const uint16_t *b, const float *bias, float *y,
                                 const EtcMatmul *g, int64_t y_row, void *work)
{
    float *panel = (float *)work;
    for (int64_t j = 0; j < g->n; j += ETC_WIDE_COLUMNS) {
        EtcMatmul part = *g;
        int64_t k = 0;
        part.n = etc_min_i64(g->n - j, ETC_WIDE_COLUMNS);
        do { /* The loop runs once even if k is 0. */
            const int is_last = (k + ETC_KB) >= g->k;
            part.k = etc_min_i64(g->k - k, ETC_KB);
            part.lo = (is_last != 0) ? g->lo : -__builtin_inff();
            part.hi = (is_last != 0) ? g->hi : __builtin_inff();
            for (int64_t c = 0; c < part.n; c += ETC_TOGETHER) {
                etc_widen_bfloats(b + ((j + c) * g->k) + (k * ETC_TOGETHER), part.k * ETC_TOGETHER,
                                  panel + (c * part.k));
            }
            etc_matmul_part(a + k, panel, ((bias != NULL) && (k == 0)) ? (bias + j) : NULL, y + j,
                            &part, y_row);
            part.from_y = 1;
            k += part.k;
        } while (k < g->k);
    }
}

/* The channels whose weights a convolution across channels widens at a time. */
#define ETC_WIDE_CHANNELS ((ETC_LANES == ETC_TOGETHER) ? (2 * ETC_TOGETHER) : ETC_TOGETHER)

/* Does what etc_conv_across does.  `wide` has room for the weights of ETC_WIDE_CHANNELS channels
 * and a lot. */
ETC_INLINE void etc_bfloat_across(const float *x, const uint16_t *w, const float *bias, float *y,
                                  const EtcConv *g, EtcPlanes *p, float *work, float *wide)
{
    float *planes = work + ETC_SUMS;
    const int64_t taps = g->kh * g->kw, whole = g->oc - (g->oc % ETC_TOGETHER);
    etc_planes_list(g, p);
    for (int64_t oy = 0; oy < p->oh; oy += p->band) {
        const int64_t n = etc_min_i64(p->band, p->oh - oy);
        for (int64_t c = 0; c < g->ic; c += p->lot) {
            const int64_t lot = etc_min_i64(p->lot, g->ic - c), block = lot * taps * ETC_TOGETHER;
            const float *from = (p->in_place != 0) ? (x + (c * g->x_plane)) : planes;
            EtcAcross t = {wide, 0, 0, x, 0, lot / p->group, p->group * p->plane, p->at, p->n_at,
                           wide, NULL};
            t.w_second = (ETC_LANES == ETC_TOGETHER) ? block : ETC_LANES;
            for (int64_t i = 0; (p->in_place == 0) && (i < lot); i++) {
                etc_plane_copy(x + ((c + i) * g->x_plane), g, p, oy, planes + (i * p->plane));
            }
            for (int64_t i = 0, nv; i < whole; i += nv * ETC_LANES) {
                const int64_t at = i % ETC_WIDE_CHANNELS;
                for (int64_t k = i; (at == 0) && (k < etc_min_i64(i + ETC_WIDE_CHANNELS, whole));
                     k += ETC_TOGETHER) {
                    etc_widen_bfloats(w + (((k * g->ic) + (c * ETC_TOGETHER)) * taps), block,
                                      wide + (((k - i) / ETC_TOGETHER) * block));
                }
                nv = etc_across_vectors((whole - i) / ETC_LANES, 2);
                t.w = wide + ((at / ETC_TOGETHER) * block) + (at % ETC_TOGETHER);
                const EtcBand b = {from, (bias != NULL) ? (bias + i) : NULL,
                                   y + (i * g->y_plane) + (oy * p->ow), nv, c == 0,
                                   (c + lot) == g->ic, NULL, 0};
                etc_across_band(&t, g, p, &b, n, work);
            }
        }
    }
}

/* Convolves one image and group.  `wide` has room for n_wide floats: at least those of a block. */
ETC_INLINE void etc_bfloat_forward(const float *x, const uint16_t *w, const float *bias, float *y,
                                   const EtcConv *g, int64_t n_wide, float *work, float *wide)
{
    EtcPlanes planes;
    EtcConv part = *g;
    const int64_t taps = g->kh * g->kw, depth = g->ic * taps;
    const int64_t most = etc_max_i64(n_wide / (depth * ETC_TOGETHER), 1) * ETC_TOGETHER;
    int64_t c = 0;
    if (etc_is_across(g, &planes)) {
        c = g->oc - (g->oc % ETC_TOGETHER);
        planes.lot = etc_min_i64(planes.lot, etc_max_i64(n_wide / (taps * ETC_WIDE_CHANNELS), 1));
        etc_bfloat_across(x, w, bias, y, g, &planes, work, wide);
    }
    for (; c < g->oc; c += part.oc) {
        part.oc = etc_min_i64(most, g->oc - c);
        etc_widen_bfloats(w + (c * depth), part.oc * depth, wide);
        etc_conv_product(x, wide, (bias != NULL) ? (bias + c) : NULL, y + (c * g->y_plane), &part,
                         work);
    }
}

/* Does what etc_conv_f32 does, with weights in blocks.  `work` has ETC_WORK_BYTES, and then room
 * for n_wide floats: at least those of two blocks' taps and of one block. */
ETC_OUTLINE void etc_conv_bf16(const float *x, const uint16_t *w, const float *bias, float *y,
                               const EtcConv *geometry, int64_t n_wide, void *work)
{
    EtcConv g = *geometry;
    g.x_plane = (g.x_plane != 0) ? g.x_plane : (g.ih * g.iw);
    g.y_plane = (g.y_plane != 0) ? g.y_plane : (g.oh * g.ow);
    const int64_t x_size = g.ic * g.x_plane, y_size = g.oc * g.y_plane;
    const int64_t w_size = g.oc * g.ic * g.kh * g.kw;
    float *wide = (float *)(void *)((uint8_t *)work + ETC_WORK_BYTES);
    for (int64_t i = 0; i < (g.n * g.groups); i++) {
        const int64_t group = i % g.groups;
        etc_bfloat_forward(x + (i * x_size), w + (group * w_size),
                           (bias != NULL) ? (bias + (group * g.oc)) : NULL, y + (i * y_size), &g,
                           n_wide, (float *)work, wide);
    }
}

#endif
