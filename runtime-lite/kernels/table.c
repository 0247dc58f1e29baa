/* table.c -- wrappers of embedding_byte and embedding_4bit. */
#include "runtime-lite/kernels/table.h"
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/kernels.h"

/* Checks that there is one scale per row or per group of a row, and that zero points are laid out
 * as scales; sets g->group. */
static EtcStatus check_points(const EtcTensor *w, const EtcTensor *scale, const EtcTensor *zero,
                              EtcTable *g)
{
    const int64_t groups = (scale->rank == 2) ? scale->dim[1] : 1;
    if ((scale->rank < 1) || (scale->rank > 2) || (scale->dim[0] != w->dim[0]) || (groups < 1) ||
        ((g->n % groups) != 0) || (g->n < 1) ||
        ((zero != NULL) && (!etc_same_layout(zero, scale) || (zero->dtype != scale->dtype)))) {
        return ETC_BAD_ARG;
    }
    g->group = g->n / groups;
    return ((scale->dtype == ETC_F32) && etc_is_plain(scale)) ? ETC_OK : ETC_UNSUPPORTED;
}

/* Arguments: weight, scales, zero points or None, quant_min, quant_max, indices, out. */
static EtcStatus look_up(const EtcCall *c, int32_t bits)
{
    EtcTensor *w, *scale, *zero, *t, *y;
    int64_t dim[ETC_MAX_RANK + 1];
    if (!etc_arg_tensor(c, 0, &w) || !etc_arg_tensor(c, 1, &scale) ||
        !etc_arg_opt_tensor(c, 2, &zero) || !etc_arg_tensor(c, 5, &t) ||
        !etc_arg_tensor(c, 6, &y) || (w->rank != 2) ||
        ((w->dtype != ETC_U8) && ((bits == 4) || (w->dtype != ETC_I8))) ||
        ((t->data == NULL) && (etc_numel(t) != 0))) {
        return ETC_BAD_ARG;
    }
    EtcTable g = {etc_numel(t), w->dim[0], (int64_t)w->dim[1] * (8 / bits), 0, bits,
                  w->dtype == ETC_U8};
    for (int32_t d = 0; d < t->rank; d++) {
        dim[d] = t->dim[d];
    }
    dim[t->rank] = g.n;
    EtcStatus st = check_points(w, scale, zero, &g);
    st = (st == ETC_OK) ? etc_resize64(y, dim, t->rank + 1) : st;
    if (st != ETC_OK) {
        return st;
    }
    if ((t->dtype != ETC_I64) || (y->dtype != ETC_F32) || !etc_is_plain(w) || !etc_is_plain(t) ||
        !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if ((g.count > 0) && (g.rows < 1)) {
        return ETC_BAD_ARG;
    }
    return (etc_table_f32(w->data, (const float *)scale->data,
                          (zero != NULL) ? (const float *)zero->data : NULL,
                          (const int64_t *)t->data, (float *)y->data, &g) != 0)
               ? ETC_OK
               : ETC_BAD_ARG;
}

EtcStatus etc_embedding_byte(const EtcCall *c)
{
    return look_up(c, 8);
}

EtcStatus etc_embedding_4bit(const EtcCall *c)
{
    return look_up(c, 4);
}
