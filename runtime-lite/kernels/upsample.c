/* upsample.c -- wrappers of resampling images, [n, channels, h, w]: float. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

/* Input elements per output element along one axis; `factor` 0: none was given. */
static float ratio(int64_t in, int64_t out, int align_corners, double factor)
{
    if (align_corners != 0) {
        return (out > 1) ? ((float)(in - 1) / (float)(out - 1)) : 0.0f;
    }
    return (factor > 0.0) ? (float)(1.0 / factor) : ((float)in / (float)out);
}

/* The sizes from output_size or from scale_factors, whichever is given. */
static int read_sizes(const EtcCall *c, int32_t size_at, int32_t scale_at, EtcUpsample *g,
                      double factor[2])
{
    EtcInts size;
    int has_factor;
    factor[0] = 0.0;
    factor[1] = 0.0;
    if (!etc_arg_ints(c, size_at, &size) ||
        !etc_arg_opt_doubles(c, scale_at, 2, factor, &has_factor) ||
        ((size.n >= 0) == (has_factor != 0))) {
        return 0;
    }
    if (size.n >= 0) {
        g->oh = (size.n == 2) ? size.v[0] : 0;
        g->ow = (size.n == 2) ? size.v[1] : 0;
    } else {
        if (!(factor[0] > 0.0) || !(factor[1] > 0.0) ||
            !(((double)g->ih * factor[0]) < 2147483648.0) ||
            !(((double)g->iw * factor[1]) < 2147483648.0)) {
            return 0;
        }
        g->oh = (int64_t)((double)g->ih * factor[0]);
        g->ow = (int64_t)((double)g->iw * factor[1]);
    }
    return (g->oh > 0) && (g->ow > 0);
}

static EtcStatus prepare(const EtcCall *c, int32_t scale_at, EtcUpsample *g, EtcTensor **x,
                         EtcTensor **y)
{
    double factor[2];
    if (!etc_arg_tensor(c, 0, x) || !etc_arg_tensor(c, scale_at + 1, y) || ((*x)->rank != 4)) {
        return ETC_BAD_ARG;
    }
    g->planes = (int64_t)(*x)->dim[0] * (*x)->dim[1];
    g->ih = (*x)->dim[2];
    g->iw = (*x)->dim[3];
    if ((g->ih < 1) || (g->iw < 1) || !read_sizes(c, 1, scale_at, g, factor)) {
        return ETC_BAD_ARG;
    }
    g->sh = ratio(g->ih, g->oh, g->align_corners, factor[0]);
    g->sw = ratio(g->iw, g->ow, g->align_corners, factor[1]);
    const int64_t dim[4] = {(*x)->dim[0], (*x)->dim[1], g->oh, g->ow};
    EtcStatus st = etc_resize64(*y, dim, 4);
    if (st != ETC_OK) {
        return st;
    }
    return (((*x)->dtype == ETC_F32) && ((*y)->dtype == ETC_F32) && etc_is_plain(*x) &&
            etc_is_plain(*y))
               ? ETC_OK
               : ETC_UNSUPPORTED;
}

/* x, output_size or None, scale_factors or None, out */
EtcStatus etc_upsample_nearest2d(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcUpsample g;
    memset(&g, 0, sizeof g);
    EtcStatus st = prepare(c, 2, &g, &x, &y);
    if ((st == ETC_OK) && (etc_numel(y) > 0)) {
        c->cores->upsample_nearest((const float *)x->data, (float *)y->data, &g, c->scratch);
    }
    return st;
}

/* x, output_size or None, align_corners, scale_factors or None, out */
EtcStatus etc_upsample_bilinear2d(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcUpsample g;
    int align;
    memset(&g, 0, sizeof g);
    if (!etc_arg_bool(c, 2, &align)) {
        return ETC_BAD_ARG;
    }
    g.align_corners = align;
    EtcStatus st = prepare(c, 3, &g, &x, &y);
    if ((st == ETC_OK) && (etc_numel(y) > 0)) {
        c->cores->upsample_linear((const float *)x->data, (float *)y->data, &g, c->scratch);
    }
    return st;
}
