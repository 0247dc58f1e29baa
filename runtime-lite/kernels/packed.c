/* packed.c -- wrapper of linear layers whose weights are stored as integers or halves. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"

typedef char columns_agree[(ETC_PACKED_COLUMNS == ETC_PACKED) ? 1 : -1];

/* Returns whether t is [n / 16][rows][16] of this dtype, with n / 16 rounded up. */
static int is_packed(const EtcTensor *t, int dtype, int64_t n, int64_t rows)
{
    return (t->rank == 3) && (t->dtype == (uint32_t)dtype) && etc_is_plain(t) &&
           (t->dim[0] == ((n + ETC_PACKED - 1) / ETC_PACKED)) && (t->dim[1] == rows) &&
           (t->dim[2] == ETC_PACKED);
}

/* Checks the weight, scales and zero points of n columns of k terms; sets *group to the number of
 * terms that share a scale. */
static EtcStatus check_weight(const EtcTensor *w, const EtcTensor *scale, const EtcTensor *zero,
                              int64_t n, int64_t k, int64_t *group)
{
    const int is_half = w->dtype == ETC_F16, is_i4 = w->dtype == ETC_U8;
    const int64_t rows = is_i4 ? ((k + 1) / 2) : k;
    if ((n < 0) || (n > INT32_MAX) || (k < 1) || !is_packed(w, (int)w->dtype, n, rows) ||
        (is_half != (scale == NULL)) || (is_half && (zero != NULL)) ||
        (!is_half && !is_i4 && (w->dtype != ETC_I8))) {
        return ETC_BAD_ARG;
    }
    const int64_t groups = is_half ? 1 : ((scale->rank == 3) ? scale->dim[1] : 0);
    if ((groups < 1) || ((k % groups) != 0) ||
        (is_i4 && (groups > 1) && (((k / groups) % 2) != 0)) ||
        (!is_half && !is_packed(scale, ETC_F32, n, groups)) ||
        ((zero != NULL) && !is_packed(zero, ETC_I8, n, groups))) {
        return ETC_BAD_ARG;
    }
    *group = k / groups;
    return ETC_OK;
}

/* Arguments: x[..., k], weight, scales or None, zero points or None, bias[n] or None, n,
 * out[..., n]. */
EtcStatus etc_packed_linear(const EtcCall *c)
{
    EtcTensor *x, *w, *scale, *zero, *bias, *y;
    int64_t n, dim[ETC_MAX_RANK];
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &w) ||
        !etc_arg_opt_tensor(c, 2, &scale) || !etc_arg_opt_tensor(c, 3, &zero) ||
        !etc_arg_opt_tensor(c, 4, &bias) || !etc_arg_int(c, 5, &n) || !etc_arg_tensor(c, 6, &y) ||
        (x->rank < 1)) {
        return ETC_BAD_ARG;
    }
    EtcPacked g = {1, n, x->dim[x->rank - 1], 0, -__builtin_inff(), __builtin_inff()};
    EtcStatus st = check_weight(w, scale, zero, n, g.k, &g.group);
    if ((st != ETC_OK) ||
        ((bias != NULL) && ((bias->dtype != ETC_F32) || (etc_numel(bias) != n)))) {
        return ETC_BAD_ARG;
    }
    if ((x->dtype != ETC_F32) || (y->dtype != ETC_F32) || !etc_is_plain(x)) {
        return ETC_UNSUPPORTED;
    }
    for (int32_t d = 0; d < (x->rank - 1); d++) {
        dim[d] = x->dim[d];
        g.m *= x->dim[d];
    }
    dim[x->rank - 1] = n;
    st = etc_resize64(y, dim, x->rank);
    if ((st == ETC_OK) && !etc_is_plain(y)) {
        st = ETC_UNSUPPORTED;
    }
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(y), g.k)) {
        return ETC_TOO_MUCH;
    }
    if ((st == ETC_OK) && (etc_numel(y) > 0)) {
        EtcPackedCore *run = (w->dtype == ETC_F16)  ? etc_cores_of(c)->packed_f16
                             : (w->dtype == ETC_U8) ? etc_cores_of(c)->packed_i4
                                                    : etc_cores_of(c)->packed_i8;
        const EtcPackedWeight weight = {w->data,
                                        (scale != NULL) ? (const float *)scale->data : NULL,
                                        (zero != NULL) ? (const int8_t *)zero->data : NULL};
        run((const float *)x->data, &weight, (bias != NULL) ? (const float *)bias->data : NULL,
            (float *)y->data, &g, c->scratch);
    }
    return st;
}
