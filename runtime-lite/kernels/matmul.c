/* matmul.c -- wrappers of linear, mm, bmm and addmm of row-major matrices.  The cores compute
 * float; double and integers are computed here, one sum after the other. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include "runtime-lite/kernels/wide.h"

static EtcMatmul geometry(int64_t m, int64_t n, int64_t k)
{
    EtcMatmul g = {.m = m, .n = n, .k = k, .a_row = k, .b_row = n,
                   .lo = -__builtin_inff(), .hi = __builtin_inff(), .b_form = ETC_BY_ROWS};
    return g;
}

static EtcStatus check3(const EtcTensor *a, const EtcTensor *b, const EtcTensor *y)
{
    if ((a->dtype != b->dtype) || (a->dtype != y->dtype)) {
        return ETC_BAD_ARG;
    }
    if ((etc_kind((int)a->dtype) == ETC_KIND_NONE) || !etc_is_plain(a) || !etc_is_plain(b) ||
        !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    return ETC_OK;
}

/* Computes product `batch` of matrices that lie one after the other.  A sum starts from the bias of
 * its column, if there is one. */
static void multiply_wide(const EtcCall *c, const EtcTensor *a, const EtcTensor *b,
                          const EtcTensor *bias, const EtcTensor *y, const EtcMatmul *g,
                          int64_t batch)
{
    const EtcKind kind = etc_wide_kind((int)a->dtype);
    for (int64_t i = 0; i < (g->m * g->n); i++) {
        const int64_t column = i % g->n, at = batch * g->k * g->n;
        const EtcLine row = {a, ((batch * g->m) + (i / g->n)) * g->k, 1};
        const int by_columns = g->b_form == ETC_BY_COLUMNS;
        const EtcLine of_b = {b, at + (column * (by_columns ? g->k : 1)), by_columns ? 1 : g->n};
        const EtcWide start = (bias != NULL) ? etc_wide_get(kind, bias, column)
                                             : etc_wide_zero(kind);
        etc_wide_put(kind, etc_wide_dot(c, kind, start, row, of_b, g->k), y,
                     (batch * g->m * g->n) + i);
    }
}

static EtcStatus multiply(const EtcCall *c, const EtcTensor *a, const EtcTensor *b,
                          const EtcTensor *bias, EtcTensor *y, const EtcMatmul *g)
{
    if (!etc_may_work(c, etc_numel(y), g->k)) {
        return ETC_TOO_MUCH;
    }
    if (ETC_HAS_WIDE && (etc_numel(y) > 0) && (y->dtype != ETC_F32)) {
        multiply_wide(c, a, b, bias, y, g, 0);
    } else if (etc_numel(y) > 0) {
        etc_cores_of(c)->matmul((const float *)a->data, (const float *)b->data,
                         (bias != NULL) ? (const float *)bias->data : NULL, (float *)y->data, g,
                         c->scratch);
    }
    return ETC_OK;
}

/* Arguments: x[..., k], weight[n, k], bias[n] or None, out[..., n].  A weight[k] gives out[...]. */
EtcStatus etc_linear(const EtcCall *c)
{
    EtcTensor *x, *w, *bias, *y;
    int64_t dim[ETC_MAX_RANK], m = 1;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &w) ||
        !etc_arg_opt_tensor(c, 2, &bias) || !etc_arg_tensor(c, 3, &y) || (x->rank < 1) ||
        (w->rank < 1) || (w->rank > 2)) {
        return ETC_BAD_ARG;
    }
    const int64_t k = x->dim[x->rank - 1], n = (w->rank == 2) ? w->dim[0] : 1;
    if ((w->dim[w->rank - 1] != k) ||
        ((bias != NULL) && ((bias->dtype != x->dtype) || (etc_numel(bias) != n)))) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = 0; d < (x->rank - 1); d++) {
        dim[d] = x->dim[d];
        m *= x->dim[d];
    }
    dim[x->rank - 1] = n;
    EtcStatus st = etc_resize64(y, dim, x->rank - ((w->rank == 2) ? 0 : 1));
    st = (st == ETC_OK) ? check3(x, w, y) : st;
    if (st != ETC_OK) {
        return st;
    }
    EtcMatmul g = geometry(m, n, k);
    g.b_row = k;
    g.b_form = ETC_BY_COLUMNS;
    return multiply(c, x, w, bias, y, &g);
}

static EtcStatus mm_shape(const EtcTensor *a, const EtcTensor *b, EtcTensor *y, EtcMatmul *g)
{
    int64_t dim[2];
    if ((a->rank != 2) || (b->rank != 2) || (a->dim[1] != b->dim[0])) {
        return ETC_BAD_ARG;
    }
    dim[0] = a->dim[0];
    dim[1] = b->dim[1];
    *g = geometry(dim[0], dim[1], a->dim[1]);
    EtcStatus st = etc_resize64(y, dim, 2);
    return (st == ETC_OK) ? check3(a, b, y) : st;
}

/* Arguments: a[m, k], b[k, n], out[m, n]. */
EtcStatus etc_mm(const EtcCall *c)
{
    EtcTensor *a, *b, *y;
    EtcMatmul g;
    if (!etc_arg_tensor(c, 0, &a) || !etc_arg_tensor(c, 1, &b) || !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = mm_shape(a, b, y, &g);
    return (st == ETC_OK) ? multiply(c, a, b, NULL, y, &g) : st;
}

/* Arguments: a[batch, m, k], b[batch, k, n], out[batch, m, n]. */
EtcStatus etc_bmm(const EtcCall *c)
{
    EtcTensor *a, *b, *y;
    int64_t dim[3];
    if (!etc_arg_tensor(c, 0, &a) || !etc_arg_tensor(c, 1, &b) || !etc_arg_tensor(c, 2, &y) ||
        (a->rank != 3) || (b->rank != 3) || (a->dim[0] != b->dim[0]) || (a->dim[2] != b->dim[1])) {
        return ETC_BAD_ARG;
    }
    dim[0] = a->dim[0];
    dim[1] = a->dim[1];
    dim[2] = b->dim[2];
    EtcStatus st = etc_resize64(y, dim, 3);
    st = (st == ETC_OK) ? check3(a, b, y) : st;
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    const EtcMatmul g = geometry(dim[1], dim[2], a->dim[2]);
    if (!etc_may_work(c, etc_numel(y), g.k)) {
        return ETC_TOO_MUCH;
    }
    for (int64_t i = 0; i < dim[0]; i++) {
        if (ETC_HAS_WIDE && (y->dtype != ETC_F32)) {
            multiply_wide(c, a, b, NULL, y, &g, i);
            continue;
        }
        etc_cores_of(c)->matmul((const float *)a->data + (i * g.m * g.k),
                         (const float *)b->data + (i * g.k * g.n), NULL,
                         (float *)y->data + (i * g.m * g.n), &g, c->scratch);
    }
    return ETC_OK;
}

/* Returns the position of element i, j of self, which is broadcast to two dimensions. */
static int64_t place_in(const EtcTensor *self, int64_t i, int64_t j)
{
    const int64_t cols = (self->rank > 0) ? self->dim[self->rank - 1] : 1;
    const int64_t rows = (self->rank > 1) ? self->dim[0] : 1;
    return (((rows == 1) ? 0 : i) * cols) + ((cols == 1) ? 0 : j);
}

static float self_at(const EtcTensor *self, int64_t i, int64_t j)
{
    return ((const float *)self->data)[place_in(self, i, j)];
}

static int can_spread(const EtcTensor *self, const EtcTensor *y)
{
    const int64_t cols = (self->rank > 0) ? self->dim[self->rank - 1] : 1;
    const int64_t rows = (self->rank > 1) ? self->dim[0] : 1;
    return (self->rank <= 2) && ((cols == y->dim[1]) || (cols == 1)) &&
           ((rows == y->dim[0]) || (rows == 1));
}

/* Multiplies y, which holds the product, by alpha, and adds beta times self unless beta is 0.  As
 * in torch, integers are multiplied by the integer parts of the factors. */
static void add_self_wide(const EtcTensor *self, const EtcScalar *beta, const EtcScalar *alpha,
                          const EtcTensor *y)
{
    const EtcKind kind = etc_wide_kind((int)y->dtype);
    const int is_f64 = kind == ETC_KIND_F64;
    const EtcWide by = is_f64 ? (EtcWide){.f64 = alpha->d} : (EtcWide){.i64 = (uint64_t)alpha->i};
    const EtcWide of = is_f64 ? (EtcWide){.f64 = beta->d} : (EtcWide){.i64 = (uint64_t)beta->i};
    for (int64_t i = 0; i < etc_numel(y); i++) {
        EtcWide sum = etc_wide_product(kind, etc_wide_get(kind, y, i), by);
        if (beta->d != 0.0) {
            const int64_t at = place_in(self, i / y->dim[1], i % y->dim[1]);
            const EtcWide s = etc_wide_product(kind, etc_wide_get(kind, self, at), of);
            sum = etc_wide_sum(kind, sum, s);
        }
        etc_wide_put(kind, sum, y, i);
    }
}

/* Arguments: self, a[m, k], b[k, n], beta, alpha, out = beta self + alpha (a b).  In float, if both
 * factors are 1, the sums start from self; else the sum of a b, the two products and their sum are
 * rounded one by one. */
EtcStatus etc_addmm(const EtcCall *c)
{
    EtcTensor *self, *a, *b, *y;
    EtcScalar beta, alpha;
    EtcMatmul g;
    if (!etc_arg_tensor(c, 0, &self) || !etc_arg_tensor(c, 1, &a) || !etc_arg_tensor(c, 2, &b) ||
        !etc_arg_scalar(c, 3, &beta) || !etc_arg_scalar(c, 4, &alpha) ||
        !etc_arg_tensor(c, 5, &y)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = mm_shape(a, b, y, &g);
    if ((st == ETC_OK) && ((self->dtype != y->dtype) || !can_spread(self, y))) {
        st = ETC_BAD_ARG;
    }
    if ((st == ETC_OK) && !etc_is_plain(self)) {
        st = ETC_UNSUPPORTED;
    }
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    if (ETC_HAS_WIDE && (y->dtype != ETC_F32)) {
        st = multiply(c, a, b, NULL, y, &g);
        if (st == ETC_OK) {
            add_self_wide(self, &beta, &alpha, y);
        }
        return st;
    }
    const int is_plain_sum = (alpha.d == 1.0) && (beta.d == 1.0);
    float *to = (float *)y->data;
    if (is_plain_sum && (etc_numel(self) == g.n) && (self->dim[self->rank - 1] == g.n)) {
        return multiply(c, a, b, self, y, &g);
    }
    for (int64_t i = 0; is_plain_sum && (i < etc_numel(y)); i++) {
        to[i] = self_at(self, i / g.n, i % g.n);
    }
    g.from_y = is_plain_sum;
    st = multiply(c, a, b, NULL, y, &g);
    for (int64_t i = 0; (st == ETC_OK) && !is_plain_sum && (i < etc_numel(y)); i++) {
        const float s = (beta.d == 0.0) ? 0.0f : (self_at(self, i / g.n, i % g.n) * (float)beta.d);
        to[i] = s + (to[i] * (float)alpha.d);
    }
    return st;
}
