/* pool.h -- max and average pooling of planes [planes, ih, iw], float. */
#ifndef ETC_POOL_H
#define ETC_POOL_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcPool {
    int64_t planes, ih, iw, oh, ow;
    int64_t kh, kw, sh, sw, ph, pw, dh, dw; /* kernel, stride, padding, dilation */
    int64_t divisor;   /* average: 0 counts the window */
    int32_t count_pad; /* the padding counts as part of the window */
    int32_t adaptive;  /* average: window o spans floor(o i / n) .. ceil((o + 1) i / n) */
} EtcPool;

/* The largest of each window; NaN if it has one.  where, unless NULL, gets the index of the first
 * largest (of NaN the last) in its plane. */
ETC_OUTLINE void etc_max_pool_f32(const float *x, float *y, int64_t *where, const EtcPool *g)
{
    for (int64_t p = 0; p < g->planes; p++) {
        const float *plane = x + (p * g->ih * g->iw);
        for (int64_t oy = 0; oy < g->oh; oy++) {
            for (int64_t ox = 0; ox < g->ow; ox++) {
                int64_t y0 = (oy * g->sh) - g->ph, x0 = (ox * g->sw) - g->pw;
                const int64_t y1 = etc_min_i64(y0 + (g->kh * g->dh), g->ih);
                const int64_t x1 = etc_min_i64(x0 + (g->kw * g->dw), g->iw);
                y0 += (y0 < 0) ? (((g->dh - 1 - y0) / g->dh) * g->dh) : 0;
                x0 += (x0 < 0) ? (((g->dw - 1 - x0) / g->dw) * g->dw) : 0;
                float max = -__builtin_inff();
                int64_t at = (y0 * g->iw) + x0;
                for (int64_t i = y0; i < y1; i += g->dh) {
                    for (int64_t j = x0; j < x1; j += g->dw) {
                        const float v = plane[(i * g->iw) + j];
                        if ((v > max) || (v != v)) {
                            max = v;
                            at = (i * g->iw) + j;
                        }
                    }
                }
                *y = max;
                y++;
                if (where != NULL) {
                    *where = at;
                    where++;
                }
            }
        }
    }
}

/* The mean of each window: a sum in row order, then one division. */
ETC_OUTLINE void etc_avg_pool_f32(const float *x, float *y, const EtcPool *g)
{
    for (int64_t p = 0; p < g->planes; p++) {
        const float *plane = x + (p * g->ih * g->iw);
        for (int64_t oy = 0; oy < g->oh; oy++) {
            for (int64_t ox = 0; ox < g->ow; ox++) {
                int64_t y0 = (oy * g->sh) - g->ph, x0 = (ox * g->sw) - g->pw;
                int64_t y1 = etc_min_i64(y0 + g->kh, g->ih + g->ph);
                int64_t x1 = etc_min_i64(x0 + g->kw, g->iw + g->pw);
                if (g->adaptive != 0) {
                    y0 = (oy * g->ih) / g->oh;
                    x0 = (ox * g->iw) / g->ow;
                    y1 = (((oy + 1) * g->ih) + g->oh - 1) / g->oh;
                    x1 = (((ox + 1) * g->iw) + g->ow - 1) / g->ow;
                }
                const int64_t padded = (y1 - y0) * (x1 - x0);
                y0 = etc_max_i64(y0, 0);
                x0 = etc_max_i64(x0, 0);
                y1 = etc_min_i64(y1, g->ih);
                x1 = etc_min_i64(x1, g->iw);
                float sum = 0.0f;
                for (int64_t i = y0; i < y1; i++) {
                    for (int64_t j = x0; j < x1; j++) {
                        sum += plane[(i * g->iw) + j];
                    }
                }
                const int64_t inside = etc_max_i64(y1 - y0, 0) * etc_max_i64(x1 - x0, 0);
                const int64_t count = (g->count_pad != 0) ? padded : inside;
                *y = (inside == 0) ? 0.0f
                                   : (sum / (float)((g->divisor != 0) ? g->divisor : count));
                y++;
            }
        }
    }
}

#endif
