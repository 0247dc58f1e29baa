/* linalg.c -- wrappers of matrix factorizations, triangular systems, eigenvalues and singular
 * values. */
#include "runtime-lite/kernels/linalg.h"
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

/* Sets the geometry of a batch of matrices that lie one after the other; k is the shorter side. */
static EtcStatus read_matrices(const EtcTensor *x, EtcFactor *g)
{
    memset(g, 0, sizeof *g);
    if (x->rank < 2) {
        return ETC_BAD_ARG;
    }
    const EtcKind kind = etc_kind((int)x->dtype);
    if (((kind != ETC_KIND_F32) && (kind != ETC_KIND_F64)) || !etc_is_plain(x)) {
        return ETC_UNSUPPORTED;
    }
    g->is_double = (kind == ETC_KIND_F64);
    g->batches = 1;
    for (int32_t i = 0; i < (x->rank - 2); i++) {
        g->batches *= x->dim[i];
    }
    g->m = x->dim[x->rank - 2];
    g->n = x->dim[x->rank - 1];
    g->k = etc_min_i64(g->m, g->n);
    return ETC_OK;
}

/* Resizes y to the batch axes of x, followed by the first n of the sizes a and b; checks its
 * dtype. */
static EtcStatus give(EtcTensor *y, const EtcTensor *x, int dtype, int32_t n, int64_t a, int64_t b)
{
    int64_t size[ETC_MAX_RANK];
    const int32_t batch = x->rank - 2;
    const int64_t last[2] = {a, b};
    for (int32_t i = 0; i < (batch + n); i++) {
        size[i] = (i < batch) ? x->dim[i] : last[i - batch];
    }
    if ((int)y->dtype != dtype) {
        return ETC_BAD_ARG;
    }
    const EtcStatus st = etc_resize64(y, size, batch + n);
    return ((st == ETC_OK) && !etc_is_plain(y)) ? ETC_UNSUPPORTED : st;
}

/* Returns whether y has this dtype, and the batch axes of x followed by the first n of a and b. */
static int fits(const EtcTensor *y, int dtype, const EtcTensor *x, int32_t n, int64_t a, int64_t b)
{
    const int32_t batch = x->rank - 2;
    const int64_t last[2] = {a, b};
    int ok = ((int)y->dtype == dtype) && (y->rank == (batch + n));
    for (int32_t i = 0; ok && (i < y->rank); i++) {
        ok = y->dim[i] == ((i < batch) ? x->dim[i] : last[i - batch]);
    }
    return ok;
}

/* Returns ETC_SINGULAR if `checks` is set and an entry of info is not 0. */
static EtcStatus check_all(const EtcTensor *info, int checks)
{
    const int32_t *v = (const int32_t *)info->data;
    for (int64_t i = 0; checks && (i < etc_numel(info)); i++) {
        if (v[i] != 0) {
            return ETC_SINGULAR;
        }
    }
    return ETC_OK;
}

/* Arguments: A, pivot, check_errors, LU, pivots, info. */
EtcStatus etc_matrix_lu(const EtcCall *c)
{
    EtcTensor *x, *y, *pivots, *info;
    EtcFactor g;
    int pivot, checks;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_bool(c, 1, &pivot) || !etc_arg_bool(c, 2, &checks) ||
        !etc_arg_tensor(c, 3, &y) || !etc_arg_tensor(c, 4, &pivots) ||
        !etc_arg_tensor(c, 5, &info)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = pivot ? read_matrices(x, &g) : ETC_UNSUPPORTED;
    st = (st == ETC_OK) ? give(y, x, (int)x->dtype, 2, g.m, g.n) : st;
    st = (st == ETC_OK) ? give(pivots, x, ETC_I32, 1, g.k, 0) : st;
    st = (st == ETC_OK) ? give(info, x, ETC_I32, 0, 0, 0) : st;
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(x), g.k)) {
        st = ETC_TOO_MUCH;
    }
    if (st != ETC_OK) {
        return st;
    }
    etc_lu_factor(x->data, y->data, (int32_t *)pivots->data, (int32_t *)info->data, &g);
    return check_all(info, checks);
}

/* Arguments: LU_data, LU_pivots, unpack_data, unpack_pivots, P, L, U.  Without unpack_data, L and U
 * are empty. */
EtcStatus etc_matrix_lu_unpack(const EtcCall *c)
{
    EtcTensor *x, *pivots, *p, *l, *u;
    EtcFactor g;
    static const int32_t nothing = 0;
    int data, order;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &pivots) ||
        !etc_arg_bool(c, 2, &data) || !etc_arg_bool(c, 3, &order) || !etc_arg_tensor(c, 4, &p) ||
        !etc_arg_tensor(c, 5, &l) || !etc_arg_tensor(c, 6, &u)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = order ? read_matrices(x, &g) : ETC_UNSUPPORTED;
    if ((st == ETC_OK) && !fits(pivots, ETC_I32, x, 1, g.k, 0)) {
        st = ETC_BAD_ARG;
    }
    st = (st == ETC_OK) ? give(p, x, (int)x->dtype, 2, g.m, g.m) : st;
    if (st == ETC_OK) {
        st = data ? give(l, x, (int)x->dtype, 2, g.m, g.k) : etc_resize(l, &nothing, 1);
    }
    if (st == ETC_OK) {
        st = data ? give(u, x, (int)x->dtype, 2, g.k, g.n) : etc_resize(u, &nothing, 1);
    }
    if ((st == ETC_OK) && !etc_is_plain(pivots)) {
        st = ETC_UNSUPPORTED;
    }
    if ((st == ETC_OK) && (etc_numel(p) > 0)) {
        etc_lu_unpack(x->data, (const int32_t *)pivots->data, p->data, data ? l->data : NULL,
                      data ? u->data : NULL, &g);
    }
    return st;
}

/* Arguments: self, upper, check_errors, L, info. */
EtcStatus etc_matrix_cholesky(const EtcCall *c)
{
    EtcTensor *x, *y, *info;
    EtcFactor g;
    int upper, checks;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_bool(c, 1, &upper) || !etc_arg_bool(c, 2, &checks) ||
        !etc_arg_tensor(c, 3, &y) || !etc_arg_tensor(c, 4, &info)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = read_matrices(x, &g);
    st = ((st == ETC_OK) && (g.m != g.n)) ? ETC_BAD_ARG : st;
    st = (st == ETC_OK) ? give(y, x, (int)x->dtype, 2, g.m, g.n) : st;
    st = (st == ETC_OK) ? give(info, x, ETC_I32, 0, 0, 0) : st;
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(x), g.k)) {
        st = ETC_TOO_MUCH;
    }
    if (st != ETC_OK) {
        return st;
    }
    g.flag = upper;
    etc_cholesky(x->data, y->data, (int32_t *)info->data, &g);
    return check_all(info, checks);
}

/* Arguments: self, B, upper, left, unitriangular, out. */
EtcStatus etc_matrix_solve_triangular(const EtcCall *c)
{
    EtcTensor *a, *x, *y;
    EtcFactor g, of_a;
    int upper, left, of_ones;
    if (!etc_arg_tensor(c, 0, &a) || !etc_arg_tensor(c, 1, &x) || !etc_arg_bool(c, 2, &upper) ||
        !etc_arg_bool(c, 3, &left) || !etc_arg_bool(c, 4, &of_ones) || !etc_arg_tensor(c, 5, &y)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = read_matrices(x, &g);
    st = (st == ETC_OK) ? read_matrices(a, &of_a) : st;
    const int64_t n = left ? g.m : g.n;
    st = ((st == ETC_OK) && !fits(a, (int)x->dtype, x, 2, n, n)) ? ETC_BAD_ARG : st;
    st = (st == ETC_OK) ? give(y, x, (int)x->dtype, 2, g.m, g.n) : st;
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(x), n)) {
        st = ETC_TOO_MUCH;
    }
    if ((st != ETC_OK) || (etc_numel(x) == 0)) {
        return st;
    }
    g.flag = (upper ? ETC_TRIANGLE_UPPER : 0) | (left ? 0 : ETC_TRIANGLE_RIGHT) |
             (of_ones ? ETC_TRIANGLE_OF_ONES : 0);
    etc_solve_triangular(a->data, x->data, y->data, &g);
    return ETC_OK;
}

/* Arguments: self, a, tau. */
EtcStatus etc_matrix_geqrf(const EtcCall *c)
{
    EtcTensor *x, *y, *tau;
    EtcFactor g;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &y) || !etc_arg_tensor(c, 2, &tau)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = read_matrices(x, &g);
    st = (st == ETC_OK) ? give(y, x, (int)x->dtype, 2, g.m, g.n) : st;
    st = (st == ETC_OK) ? give(tau, x, (int)x->dtype, 1, g.k, 0) : st;
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(x), 2 * g.k)) {
        st = ETC_TOO_MUCH;
    }
    if ((st == ETC_OK) && (etc_numel(x) > 0)) { /* a batch of empty matrices takes no time */
        etc_geqrf(x->data, y->data, tau->data, &g);
    }
    return st;
}

/* Arguments: self, tau, other, left, transpose, out.  self has as many columns as tau has
 * factors. */
EtcStatus etc_matrix_ormqr(const EtcCall *c)
{
    EtcTensor *a, *tau, *x, *y;
    EtcFactor g, of_a;
    int left, turned;
    if (!etc_arg_tensor(c, 0, &a) || !etc_arg_tensor(c, 1, &tau) || !etc_arg_tensor(c, 2, &x) ||
        !etc_arg_bool(c, 3, &left) || !etc_arg_bool(c, 4, &turned) || !etc_arg_tensor(c, 5, &y)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = read_matrices(x, &g);
    st = (st == ETC_OK) ? read_matrices(a, &of_a) : st;
    if ((st == ETC_OK) && (!fits(a, (int)x->dtype, x, 2, left ? g.m : g.n, of_a.n) || (of_a.n > of_a.m) ||
                           !fits(tau, (int)x->dtype, x, 1, of_a.n, 0))) {
        st = ETC_BAD_ARG;
    }
    st = ((st == ETC_OK) && !etc_is_plain(tau)) ? ETC_UNSUPPORTED : st;
    st = (st == ETC_OK) ? give(y, x, (int)x->dtype, 2, g.m, g.n) : st;
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(x), 2 * of_a.n)) {
        st = ETC_TOO_MUCH;
    }
    if ((st != ETC_OK) || (etc_numel(x) == 0)) {
        return st;
    }
    g.k = of_a.n;
    g.flag = (left ? 0 : ETC_REFLECT_RIGHT) | (turned ? ETC_REFLECT_TURNED : 0);
    etc_ormqr(a->data, tau->data, x->data, y->data, &g);
    return ETC_OK;
}

/* Arguments: self, UPLO, eigvals, eigvecs. */
EtcStatus etc_matrix_eigh(const EtcCall *c)
{
    EtcTensor *x, *values, *vectors;
    EtcFactor g;
    const EtcValue *which = (c->n_args > 1) ? c->arg[1] : NULL;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 2, &values) ||
        !etc_arg_tensor(c, 3, &vectors) || (which == NULL) || (which->tag != ETC_STRING) ||
        (which->as.str.text == NULL)) {
        return ETC_BAD_ARG;
    }
    const char triangle = which->as.str.text[0];
    EtcStatus st = read_matrices(x, &g);
    st = ((st == ETC_OK) && (g.m != g.n)) ? ETC_BAD_ARG : st;
    st = (st == ETC_OK) ? give(values, x, (int)x->dtype, 1, g.n, 0) : st;
    st = (st == ETC_OK) ? give(vectors, x, (int)x->dtype, 2, g.n, g.n) : st;
    if ((st == ETC_OK) && !etc_may_work(c, etc_numel(x), 3 * ETC_JACOBI_SWEEPS * g.n)) {
        st = ETC_TOO_MUCH;
    }
    if ((st == ETC_OK) && (etc_numel(x) > 0)) {
        g.flag = (triangle == 'U') || (triangle == 'u');
        etc_eigh(x->data, values->data, vectors->data, &g);
    }
    return st;
}

/* Arguments: A, full_matrices, driver, U, S, Vh. */
EtcStatus etc_matrix_svd(const EtcCall *c)
{
    EtcTensor *x, *u, *s, *v;
    EtcFactor g;
    int full;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_bool(c, 1, &full) || !etc_arg_tensor(c, 3, &u) ||
        !etc_arg_tensor(c, 4, &s) || !etc_arg_tensor(c, 5, &v)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = read_matrices(x, &g);
    st = (st == ETC_OK) ? give(u, x, (int)x->dtype, 2, g.m, full ? g.m : g.k) : st;
    st = (st == ETC_OK) ? give(s, x, (int)x->dtype, 1, g.k, 0) : st;
    st = (st == ETC_OK) ? give(v, x, (int)x->dtype, 2, full ? g.n : g.k, g.n) : st;
    const int64_t each = 3 * ETC_JACOBI_SWEEPS * etc_max_i64(g.k, 1);
    if ((st == ETC_OK) && (!etc_may_work(c, etc_numel(x), each) ||
                           !etc_may_work(c, etc_numel(u), 3 * g.m) ||
                           !etc_may_work(c, etc_numel(v), 3 * g.n))) {
        st = ETC_TOO_MUCH;
    }
    if ((st == ETC_OK) && ((etc_numel(u) > 0) || (etc_numel(v) > 0))) {
        g.flag = full;
        etc_svd(x->data, u->data, s->data, v->data, &g);
    }
    return st;
}
