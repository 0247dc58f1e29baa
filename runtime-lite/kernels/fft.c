/* fft.c -- wrapper of Fourier transforms of rows of float along an axis. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"

/* Sets the sizes of the rows of x along axis d in g, and the sizes and rank of the result.  Returns
 * 0 if they do not fit. */
static int read_rows(const EtcTensor *x, int32_t d, EtcFft *g, int64_t *size, int32_t *rank)
{
    const int32_t is_real = (g->form == 1) ? 1 : 0, axes = x->rank - 1 + is_real;
    const int64_t half = (g->n / 2) + 1;
    if ((g->n < 1) || (x->dtype != ETC_F32) || (d < 0) || (x->rank < 1) ||
        (x->rank >= ETC_MAX_RANK) || (d >= axes) || (x->dim[d] != ((g->form == 2) ? half : g->n)) ||
        ((is_real == 0) && (x->dim[axes] != 2))) {
        return 0;
    }
    g->outer = 1;
    g->inner = 1;
    for (int32_t i = 0; i < axes; i++) {
        g->outer *= (i < d) ? x->dim[i] : 1;
        g->inner *= (i > d) ? x->dim[i] : 1;
        size[i] = (i == d) ? ((is_real != 0) ? half : g->n) : x->dim[i];
    }
    *rank = axes + ((g->form == 2) ? 0 : ((g->form == 3) ? 2 : 1));
    for (int32_t i = axes; i < *rank; i++) {
        size[i] = 2;
    }
    return 1;
}

static EtcStatus transform(const EtcCall *c, const EtcTensor *x, int32_t dim, EtcTensor *y,
                           const EtcTensor *work, EtcFft *g)
{
    const int32_t is_complex = (y->dtype == ETC_C64) ? 1 : 0;
    int64_t size[ETC_MAX_RANK];
    int32_t rank;
    if (!read_rows(x, dim, g, size, &rank) || ((is_complex == 0) && (y->dtype != ETC_F32)) ||
        (work->dtype != ETC_F32)) {
        return ETC_BAD_ARG;
    }
    const EtcStatus st = etc_resize64(y, size, rank - is_complex);
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    const int64_t floats = etc_fft_work(g->n, g->outer * g->inner, g->form);
    if (!etc_is_plain(x) || !etc_is_plain(y) || (floats == 0)) {
        return ETC_UNSUPPORTED;
    }
    if (etc_numel(work) < floats) {
        return ETC_NO_MEMORY;
    }
    etc_cores_of(c)->fft((const float *)x->data, (float *)y->data, (float *)work->data, g);
    return ETC_OK;
}

/* Arguments: x, dim, n, form, backward, out, working memory. */
EtcStatus etc_fft(const EtcCall *c)
{
    EtcTensor *x, *y, *work;
    EtcFft g;
    int64_t dim, form;
    int back;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) || !etc_arg_int(c, 2, &g.n) ||
        !etc_arg_int(c, 3, &form) || !etc_arg_bool(c, 4, &back) || !etc_arg_tensor(c, 5, &y) ||
        !etc_arg_tensor(c, 6, &work) || (form < 0) || (form > 2) || (y->dtype != ETC_F32)) {
        return ETC_BAD_ARG;
    }
    g.form = (int32_t)form;
    g.is_backward = back;
    return transform(c, x, etc_dim(dim, x->rank - ((form == 1) ? 0 : 1)), y, work, &g);
}

/* Arguments: x, dim, normalization, onesided, out (complex, or pairs along a further axis), and
 * working memory, which a .pte brings in the place of the return slot.  There is one axis, or there
 * are two, of which the second is the last one and has two elements. */
EtcStatus etc_fft_r2c(const EtcCall *c)
{
    EtcTensor *x, *y, *work;
    EtcInts dim;
    EtcFft g = {.form = 1};
    int64_t norm;
    int is_half;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &dim) || !etc_arg_int(c, 2, &norm) ||
        !etc_arg_bool(c, 3, &is_half) || !etc_arg_tensor(c, 4, &y) ||
        !etc_arg_tensor(c, 5, &work)) {
        return ETC_BAD_ARG;
    }
    if ((dim.n < 1) || (dim.n > 2) || (norm != 0) || (is_half == 0)) {
        return ETC_UNSUPPORTED;
    }
    const int32_t axis = etc_dim(dim.v[0], x->rank);
    if ((axis < 0) || (axis >= x->rank)) { /* a number has axis 0 */
        return ETC_BAD_ARG;
    }
    if (dim.n == 2) {
        if ((etc_dim(dim.v[1], x->rank) != (x->rank - 1)) || (x->dim[x->rank - 1] != 2)) {
            return ETC_UNSUPPORTED;
        }
        g.form = 3;
    }
    g.n = x->dim[axis];
    return transform(c, x, axis, y, work, &g);
}
