/* grid.c -- wrapper of sampling float images at the positions that a grid names. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"

/* Sets the sizes of image and grid in g, and those of the result in dim.  Returns 0 if they do not
 * fit. */
static int read_sizes(const EtcTensor *x, const EtcTensor *grid, EtcGrid *g, int64_t *dim)
{
    int64_t plane = 1;
    if ((x->rank < 4) || (x->rank > 5) || (grid->rank != x->rank) || (grid->dim[0] != x->dim[0]) ||
        (grid->dim[x->rank - 1] != (x->rank - 2))) {
        return 0;
    }
    g->axes = x->rank - 2;
    g->n = x->dim[0];
    g->channels = x->dim[1];
    g->points = 1;
    g->size[2] = 1;
    dim[0] = g->n;
    dim[1] = g->channels;
    for (int32_t i = 0; i < g->axes; i++) {
        g->size[i] = x->dim[2 + i];
        plane *= g->size[i];
        dim[2 + i] = grid->dim[1 + i];
        g->points *= dim[2 + i];
        if ((plane < 1) || (plane > INT32_MAX)) {
            return 0;
        }
    }
    return 1;
}

/* Arguments: x, grid, interpolation, padding, align_corners, out. */
EtcStatus etc_grid_sampler(const EtcCall *c)
{
    EtcTensor *x, *grid, *y;
    EtcGrid g;
    int64_t kind, border, dim[5];
    int align;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &grid) || !etc_arg_int(c, 2, &kind) ||
        !etc_arg_int(c, 3, &border) || !etc_arg_bool(c, 4, &align) || !etc_arg_tensor(c, 5, &y) ||
        (kind < 0) || (kind > 2) || (border < 0) || (border > 2) || !read_sizes(x, grid, &g, dim) ||
        ((kind == 2) && (g.axes == 3)) || (x->dtype != grid->dtype) || (x->dtype != y->dtype)) {
        return ETC_BAD_ARG;
    }
    g.taps = (kind == 0) ? 2 : ((kind == 1) ? 1 : 4);
    g.border = (int32_t)border;
    g.align_corners = align;
    const EtcStatus st = etc_resize64(y, dim, x->rank);
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    if ((x->dtype != ETC_F32) || !etc_is_plain(x) || !etc_is_plain(grid) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    etc_rare_cores_of(c)->grid_sample((const float *)x->data, (const float *)grid->data,
                                 (float *)y->data, &g);
    return ETC_OK;
}
