/* order.c -- wrappers of the largest and the least elements, their indices, topk and sort. */
#include "runtime-lite/kernels/order.h"
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

/* -- rows -------------------------------------------------------------------------------- */

/* Sets how elements of a dtype become keys; `nan` is the key of a NaN.  Returns 0 if the dtype is
 * not supported. */
static int read_dtype(uint32_t dtype, int least, int64_t nan, EtcOrder *g)
{
    const int is_signed = (dtype == ETC_I8) || (dtype == ETC_I16) || (dtype == ETC_I32) ||
                          (dtype == ETC_I64);
    const int is_float = (dtype == ETC_F16) || (dtype == ETC_BF16) || etc_is_float((int)dtype);
    memset(g, 0, sizeof *g);
    g->size = (int32_t)etc_dtype_size((int)dtype);
    g->form = is_float ? 2 : is_signed;
    g->flip = least ? -1 : 0;
    g->nan = nan;
    g->inf = (dtype == ETC_F16)    ? 0x7c00
             : (dtype == ETC_BF16) ? 0x7f80
             : (dtype == ETC_F32)  ? 0x7f800000
                                   : 0x7ff0000000000000;
    return is_float || (etc_kind((int)dtype) == ETC_KIND_I64);
}

/* Sets the rows along axis d of x, or one row of all its elements if d is below 0. */
static void read_rows(const EtcTensor *x, int32_t d, EtcOrder *g)
{
    g->outer = g->inner = g->n = 1;
    for (int32_t i = 0; i < x->rank; i++) {
        g->n *= ((d < 0) || (i == d)) ? x->dim[i] : 1;
        g->outer *= (i < d) ? x->dim[i] : 1;
        g->inner *= ((d >= 0) && (i > d)) ? x->dim[i] : 1;
    }
}

/* Resizes y to x without axis d, or with size 1 there if `keep` is set; d below 0 means all
 * axes. */
static EtcStatus resize(EtcTensor *y, const EtcTensor *x, int32_t d, int keep)
{
    int64_t size[ETC_MAX_RANK] = {0};
    int32_t n = 0;
    for (int32_t i = 0; i < x->rank; i++) {
        if ((d >= 0) && (i != d)) {
            size[n++] = x->dim[i];
        } else if (keep) {
            size[n++] = 1;
        }
    }
    return etc_resize64(y, size, n);
}

/* Finds the largest or, if `least` is set, the least element along axis d, and its index; value or
 * place may be NULL. */
static EtcStatus best(const EtcTensor *x, int32_t d, int keep, int least, EtcTensor *value,
                      EtcTensor *place)
{
    EtcOrder g;
    if (((value != NULL) && (value->dtype != x->dtype)) ||
        ((place != NULL) && (place->dtype != ETC_I64))) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = (value != NULL) ? resize(value, x, d, keep) : ETC_OK;
    st = ((st == ETC_OK) && (place != NULL)) ? resize(place, x, d, keep) : st;
    if (st != ETC_OK) {
        return st;
    }
    if (!read_dtype(x->dtype, least, INT64_MAX, &g) || !etc_is_plain(x) ||
        ((value != NULL) && !etc_is_plain(value)) || ((place != NULL) && !etc_is_plain(place))) {
        return ETC_UNSUPPORTED;
    }
    read_rows(x, d, &g);
    if ((g.outer * g.inner) == 0) {
        return ETC_OK;
    }
    if (g.n == 0) {
        return ETC_BAD_ARG;
    }
    etc_order_best(x->data, (value != NULL) ? value->data : NULL,
                   (place != NULL) ? (int64_t *)place->data : NULL, &g);
    return ETC_OK;
}

/* Arguments: x, dim or None, keepdim, out. */
static EtcStatus place_of_best(const EtcCall *c, int least)
{
    EtcTensor *x, *y;
    int64_t dim = 0;
    int keep, is_given;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_opt_int(c, 1, &dim, &is_given) ||
        !etc_arg_bool(c, 2, &keep) || !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    const int32_t d = is_given ? etc_dim(dim, x->rank) : -1;
    return (is_given && (d < 0)) ? ETC_BAD_ARG : best(x, d, keep, least, NULL, y);
}

EtcStatus etc_argmax(const EtcCall *c)
{
    return place_of_best(c, 0);
}

EtcStatus etc_argmin(const EtcCall *c)
{
    return place_of_best(c, 1);
}

/* Arguments: x, dim, keepdim, values, indices. */
static EtcStatus best_and_place(const EtcCall *c, int least)
{
    EtcTensor *x, *y, *at;
    int64_t dim;
    int keep;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) || !etc_arg_bool(c, 2, &keep) ||
        !etc_arg_tensor(c, 3, &y) || !etc_arg_tensor(c, 4, &at)) {
        return ETC_BAD_ARG;
    }
    const int32_t d = etc_dim(dim, x->rank);
    return (d < 0) ? ETC_BAD_ARG : best(x, d, keep, least, y, at);
}

EtcStatus etc_max_dim(const EtcCall *c)
{
    return best_and_place(c, 0);
}

EtcStatus etc_min_dim(const EtcCall *c)
{
    return best_and_place(c, 1);
}

/* Arguments: x, out. */
static EtcStatus best_of_all(const EtcCall *c, int least)
{
    EtcTensor *x, *y;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &y)) {
        return ETC_BAD_ARG;
    }
    return best(x, -1, 0, least, y, NULL);
}

EtcStatus etc_max_all(const EtcCall *c)
{
    return best_of_all(c, 0);
}

EtcStatus etc_min_all(const EtcCall *c)
{
    return best_of_all(c, 1);
}

/* -- the first k, in order --------------------------------------------------------------- */

/* Finds the first k elements in order along axis d, and their indices.  A NaN counts as the
 * largest.  topk: see EtcOrder. */
static EtcStatus top(const EtcCall *c, const EtcTensor *x, int32_t d, int64_t k, int least,
                     int32_t topk, EtcTensor *values, EtcTensor *places)
{
    int64_t size[ETC_MAX_RANK], levels = 1;
    EtcOrder g;
    if ((d < 0) || (k < 0) || (k > ((x->rank > 0) ? x->dim[d] : 1)) ||
        (values->dtype != x->dtype) || (places->dtype != ETC_I64)) {
        return ETC_BAD_ARG;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        size[i] = (i == d) ? k : x->dim[i];
    }
    EtcStatus st = etc_resize64(values, size, x->rank);
    st = (st == ETC_OK) ? etc_resize64(places, size, x->rank) : st;
    if (st != ETC_OK) {
        return st;
    }
    if (!read_dtype(x->dtype, least, least ? INT64_MIN : INT64_MAX, &g) || !etc_is_plain(x) ||
        !etc_is_plain(values) || !etc_is_plain(places)) {
        return ETC_UNSUPPORTED;
    }
    read_rows(x, d, &g);
    g.k = k;
    g.topk = topk;
    for (int64_t i = k; i > 1; i /= 2) {
        levels += 2;
    }
    if ((k == 0) || (etc_numel(x) == 0)) {
        return ETC_OK;
    }
    if (!etc_may_work(c, etc_numel(x), levels)) {
        return ETC_TOO_MUCH;
    }
    etc_order_top(x->data, values->data, (int64_t *)places->data, c->scratch, &g);
    return ETC_OK;
}

/* Arguments: x, k, dim, largest, sorted, values, indices. */
EtcStatus etc_topk(const EtcCall *c)
{
    EtcTensor *x, *values, *places;
    int64_t k, dim;
    int largest, sorted;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &k) || !etc_arg_int(c, 2, &dim) ||
        !etc_arg_bool(c, 3, &largest) || !etc_arg_bool(c, 4, &sorted) || !etc_arg_tensor(c, 5, &values) ||
        !etc_arg_tensor(c, 6, &places)) {
        return ETC_BAD_ARG;
    }
    return top(c, x, etc_dim(dim, x->rank), k, !largest, sorted ? 1 : 2, values, places);
}

/* Arguments: x, stable, dim, descending, values, indices.  The order is always stable. */
EtcStatus etc_sort(const EtcCall *c)
{
    EtcTensor *x, *values, *places;
    int64_t dim;
    int descending;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 2, &dim) ||
        !etc_arg_bool(c, 3, &descending) || !etc_arg_tensor(c, 4, &values) ||
        !etc_arg_tensor(c, 5, &places)) {
        return ETC_BAD_ARG;
    }
    const int32_t d = etc_dim(dim, x->rank);
    return top(c, x, d, ((x->rank > 0) && (d >= 0)) ? x->dim[d] : 1, !descending, 0, values,
               places);
}
