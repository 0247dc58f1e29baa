/* linalg.h -- LU, Cholesky and QR factors, eigenvalues, singular values, and triangular systems.
 *
 * LU, Cholesky and QR follow LAPACK's getrf, potrf and geqrf, with its choice of pivots and
 * signs.  Eigenvalues and singular values are computed by one-sided Jacobi rotations (Hestenes),
 * which need no memory but that of the results.  Eigenvectors and singular vectors are those of
 * LAPACK up to their signs.  Numbers are stored in the dtype of the matrix; sums and products of
 * them are double. */
#ifndef ETC_LINALG_H
#define ETC_LINALG_H

#include "runtime-lite/kernels/isa.h"

/* The sizes of batches of row-major matrices, which are stored one after the other.  Each function
 * says what m, n, k and flag mean to it. */
typedef struct EtcFactor {
    int32_t is_double, flag; /* is_double 0: numbers are float */
    int64_t batches, m, n, k;
} EtcFactor;

/* A matrix whose rows and columns have any strides.  `to` is NULL if the matrix is only read. */
typedef struct EtcMatrix {
    const void *from;
    void *to;
    int64_t at, row, column; /* element (0, 0), and the steps to the next row and column */
    int32_t is_double;
} EtcMatrix;

ETC_INLINE double etc_real_get(const void *p, int64_t at, int32_t is_double)
{
    return (is_double != 0) ? ((const double *)p)[at] : (double)((const float *)p)[at];
}

ETC_INLINE void etc_real_put(void *p, int64_t at, int32_t is_double, double v)
{
    if (is_double != 0) {
        ((double *)p)[at] = v;
    } else {
        ((float *)p)[at] = (float)v;
    }
}

ETC_INLINE double etc_matrix_get(const EtcMatrix *a, int64_t i, int64_t j)
{
    return etc_real_get(a->from, a->at + (i * a->row) + (j * a->column), a->is_double);
}

ETC_INLINE void etc_matrix_put(const EtcMatrix *a, int64_t i, int64_t j, double v)
{
    etc_real_put(a->to, a->at + (i * a->row) + (j * a->column), a->is_double, v);
}

/* Returns matrix `batch` of a sequence of matrices of m rows and n columns. */
ETC_INLINE EtcMatrix etc_matrix_of(const void *from, void *to, int64_t batch, int64_t m, int64_t n,
                                   int32_t is_double)
{
    const EtcMatrix a = {from, to, batch * m * n, n, 1, is_double};
    return a;
}

ETC_INLINE EtcMatrix etc_matrix_turned(const EtcMatrix *a)
{
    const EtcMatrix t = {a->from, a->to, a->at, a->column, a->row, a->is_double};
    return t;
}

ETC_OUTLINE void etc_matrix_copy(const EtcMatrix *x, const EtcMatrix *y, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            etc_matrix_put(y, i, j, etc_matrix_get(x, i, j));
        }
    }
}

ETC_INLINE double etc_real_abs(double v)
{
    return (v < 0.0) ? -v : v;
}

/* Subtracts row k of b times `by` from row i of a, in columns from .. n - 1. */
ETC_OUTLINE void etc_row_subtract(const EtcMatrix *a, int64_t i, const EtcMatrix *b, int64_t k,
                                 double by, int64_t from, int64_t n)
{
    for (int64_t j = from; j < n; j++) {
        etc_matrix_put(a, i, j, etc_matrix_get(a, i, j) - (by * etc_matrix_get(b, k, j)));
    }
}

ETC_OUTLINE double etc_column_dot(const EtcMatrix *a, int64_t i, int64_t j, int64_t m)
{
    double sum = 0.0;
    for (int64_t r = 0; r < m; r++) {
        sum += etc_matrix_get(a, r, i) * etc_matrix_get(a, r, j);
    }
    return sum;
}

/* Swaps columns i and j of a matrix of m rows.  For a transposed matrix these are rows. */
ETC_OUTLINE void etc_column_swap(const EtcMatrix *a, int64_t i, int64_t j, int64_t m)
{
    for (int64_t r = 0; (i != j) && (r < m); r++) {
        const double v = etc_matrix_get(a, r, i);
        etc_matrix_put(a, r, i, etc_matrix_get(a, r, j));
        etc_matrix_put(a, r, j, v);
    }
}

/* -- LU and Cholesky ----------------------------------------------------------------------- */

/* Returns the row of the element with the largest magnitude in column k from row k on. */
ETC_INLINE int64_t etc_lu_pivot(const EtcMatrix *a, int64_t k, int64_t m)
{
    int64_t best = k;
    for (int64_t i = k + 1; i < m; i++) {
        if (etc_real_abs(etc_matrix_get(a, i, k)) > etc_real_abs(etc_matrix_get(a, best, k))) {
            best = i;
        }
    }
    return best;
}

/* Replaces a, m by n, by its LU factors.  Returns the number, from 1, of the first pivot that is
 * 0, or 0 if there is none. */
ETC_INLINE int32_t etc_lu_one(const EtcMatrix *a, int64_t m, int64_t n, int32_t *pivot)
{
    const EtcMatrix turned = etc_matrix_turned(a);
    int32_t info = 0;
    for (int64_t k = 0; k < etc_min_i64(m, n); k++) {
        const int64_t p = etc_lu_pivot(a, k, m);
        const double top = etc_matrix_get(a, p, k);
        pivot[k] = (int32_t)(p + 1);
        etc_column_swap(&turned, k, p, n);
        if (top == 0.0) {
            info = (info == 0) ? (int32_t)(k + 1) : info;
            continue;
        }
        for (int64_t i = k + 1; i < m; i++) {
            etc_matrix_put(a, i, k, etc_matrix_get(a, i, k) / top);
            etc_row_subtract(a, i, a, k, etc_matrix_get(a, i, k), k + 1, n);
        }
    }
    return info;
}

/* Writes the LU factors of x, m by n, to y: L below the diagonal, without its diagonal of ones, and
 * U. */
ETC_OUTLINE void etc_lu_factor(const void *x, void *y, int32_t *pivots, int32_t *info,
                               const EtcFactor *g)
{
    for (int64_t b = 0; b < g->batches; b++) {
        const EtcMatrix from = etc_matrix_of(x, NULL, b, g->m, g->n, g->is_double);
        const EtcMatrix a = etc_matrix_of(y, y, b, g->m, g->n, g->is_double);
        etc_matrix_copy(&from, &a, g->m, g->n);
        info[b] = etc_lu_one(&a, g->m, g->n, pivots + (b * etc_min_i64(g->m, g->n)));
    }
}

/* Writes to p the transpose of the m by m identity after n swaps of its rows. */
ETC_INLINE void etc_lu_order(const int32_t *pivot, int64_t n, const EtcMatrix *p, int64_t m)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < m; j++) {
            etc_matrix_put(p, i, j, (i == j) ? 1.0 : 0.0);
        }
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t to = (int64_t)pivot[k] - 1;
        if ((to >= 0) && (to < m)) {
            etc_column_swap(p, k, to, m);
        }
    }
}

/* Writes p, l and u from the m by n factors x and their k pivots, so that p l u is the factored
 * matrix.  If l and u are NULL, only p is written. */
ETC_OUTLINE void etc_lu_unpack(const void *x, const int32_t *pivots, void *p, void *l, void *u,
                               const EtcFactor *g)
{
    for (int64_t b = 0; b < g->batches; b++) {
        const EtcMatrix from = etc_matrix_of(x, NULL, b, g->m, g->n, g->is_double);
        const EtcMatrix order = etc_matrix_of(p, p, b, g->m, g->m, g->is_double);
        const EtcMatrix low = etc_matrix_of(l, l, b, g->m, g->k, g->is_double);
        const EtcMatrix up = etc_matrix_of(u, u, b, g->k, g->n, g->is_double);
        etc_lu_order(pivots + (b * g->k), g->k, &order, g->m);
        for (int64_t i = 0; (l != NULL) && (i < g->m); i++) {
            for (int64_t j = 0; j < g->k; j++) {
                etc_matrix_put(&low, i, j, (i == j)  ? 1.0
                                           : (i > j) ? etc_matrix_get(&from, i, j)
                                                     : 0.0);
            }
        }
        for (int64_t i = 0; (u != NULL) && (i < g->k); i++) {
            for (int64_t j = 0; j < g->n; j++) {
                etc_matrix_put(&up, i, j, (i <= j) ? etc_matrix_get(&from, i, j) : 0.0);
            }
        }
    }
}

/* Replaces a by its lower factor, with zeros above the diagonal.  Returns the number, from 1, of
 * the first leading part that is not positive definite, or 0 if there is none.  From there on the
 * factor has what the roots and quotients give: NaN, and after a root of 0 infinities. */
ETC_INLINE int32_t etc_cholesky_one(const EtcMatrix *a, int64_t n)
{
    int32_t failed = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++) {
            etc_matrix_put(a, i, j, 0.0);
        }
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            double sum = etc_matrix_get(a, i, j);
            for (int64_t k = 0; k < j; k++) {
                sum -= etc_matrix_get(a, i, k) * etc_matrix_get(a, j, k);
            }
            if ((i == j) && !(sum > 0.0) && (failed == 0)) {
                failed = (int32_t)(j + 1);
            }
            etc_matrix_put(a, i, j, (i == j) ? etc_root_f64(sum) : (sum / etc_matrix_get(a, j, j)));
        }
    }
    return failed;
}

/* Factors x, n by n, into L L^T and writes L to y; the lower triangle of x is read.  With flag it
 * factors x into U^T U and writes U; the upper triangle is read. */
ETC_OUTLINE void etc_cholesky(const void *x, void *y, int32_t *info, const EtcFactor *g)
{
    for (int64_t b = 0; b < g->batches; b++) {
        const EtcMatrix from = etc_matrix_of(x, NULL, b, g->n, g->n, g->is_double);
        const EtcMatrix a = etc_matrix_of(y, y, b, g->n, g->n, g->is_double);
        const EtcMatrix turned = etc_matrix_turned(&a);
        etc_matrix_copy(&from, &a, g->n, g->n);
        info[b] = etc_cholesky_one((g->flag != 0) ? &turned : &a, g->n);
    }
}

/* -- triangular systems -------------------------------------------------------------------- */

enum { ETC_TRIANGLE_UPPER = 1, ETC_TRIANGLE_RIGHT = 2, ETC_TRIANGLE_OF_ONES = 4 };

/* Returns a with its rows in reverse order.  If `columns` is set, its columns are reversed too. */
ETC_INLINE EtcMatrix etc_matrix_reversed(const EtcMatrix *a, int64_t n, int columns)
{
    const EtcMatrix r = {a->from,
                         a->to,
                         a->at + ((n - 1) * (a->row + ((columns != 0) ? a->column : 0))),
                         -a->row,
                         (columns != 0) ? -a->column : a->column,
                         a->is_double};
    return r;
}

/* Computes b = a^-1 b in place, where a is a lower triangle, n by n, and b has k columns.
 * of_ones: the diagonal of a is ones and is not read. */
ETC_INLINE void etc_solve_one(const EtcMatrix *a, const EtcMatrix *b, int64_t n, int64_t k,
                              int of_ones)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            etc_row_subtract(b, i, b, j, etc_matrix_get(a, i, j), 0, k);
        }
        for (int64_t j = 0; (of_ones == 0) && (j < k); j++) {
            etc_matrix_put(b, i, j, etc_matrix_get(b, i, j) / etc_matrix_get(a, i, i));
        }
    }
}

/* Computes y = a^-1 x, or x a^-1 with ETC_TRIANGLE_RIGHT, where x is m by n.  flag: ETC_TRIANGLE_*.
 * The other triangle of a is not read, nor is a diagonal of ones. */
ETC_OUTLINE void etc_solve_triangular(const void *a, const void *x, void *y, const EtcFactor *g)
{
    const int is_right = (g->flag & ETC_TRIANGLE_RIGHT) != 0;
    const int is_upper = ((g->flag & ETC_TRIANGLE_UPPER) != 0) != is_right;
    const int64_t n = is_right ? g->n : g->m, k = is_right ? g->m : g->n;
    for (int64_t b = 0; b < g->batches; b++) {
        const EtcMatrix from = etc_matrix_of(x, NULL, b, g->m, g->n, g->is_double);
        EtcMatrix t = etc_matrix_of(a, NULL, b, n, n, g->is_double);
        EtcMatrix to = etc_matrix_of(y, y, b, g->m, g->n, g->is_double);
        etc_matrix_copy(&from, &to, g->m, g->n);
        if (is_right) {
            t = etc_matrix_turned(&t);
            to = etc_matrix_turned(&to);
        }
        if (is_upper) {
            t = etc_matrix_reversed(&t, n, 1);
            to = etc_matrix_reversed(&to, n, 0);
        }
        etc_solve_one(&t, &to, n, k, g->flag & ETC_TRIANGLE_OF_ONES);
    }
}

/* -- QR ------------------------------------------------------------------------------------ */

/* Returns the length of column j from row i on.  No square overflows. */
ETC_OUTLINE double etc_column_norm(const EtcMatrix *a, int64_t i, int64_t j, int64_t m)
{
    double top = 0.0, sum = 0.0;
    for (int64_t r = i; r < m; r++) {
        const double v = etc_real_abs(etc_matrix_get(a, r, j));
        top = ((v > top) || (v != v)) ? v : top;
    }
    for (int64_t r = i; (top > 0.0) && (r < m); r++) {
        const double v = etc_matrix_get(a, r, j) / top;
        sum += v * v;
    }
    return (top > 0.0) ? (top * etc_root_f64(sum)) : top;
}

/* Multiplies column c of y by I - tau v v^T, where v is column j of a from row j on with 1 as
 * its first element. */
ETC_OUTLINE void etc_reflect(const EtcMatrix *a, int64_t j, double tau, const EtcMatrix *y,
                            int64_t c, int64_t m)
{
    double sum = etc_matrix_get(y, j, c);
    for (int64_t r = j + 1; r < m; r++) {
        sum += etc_matrix_get(a, r, j) * etc_matrix_get(y, r, c);
    }
    sum *= tau;
    etc_matrix_put(y, j, c, etc_matrix_get(y, j, c) - sum);
    for (int64_t r = j + 1; r < m; r++) {
        etc_matrix_put(y, r, c, etc_matrix_get(y, r, c) - (sum * etc_matrix_get(a, r, j)));
    }
}

/* Computes the reflector that makes column j zero below the diagonal, and stores it there.  Returns
 * tau. */
ETC_INLINE double etc_reflector(const EtcMatrix *a, int64_t j, int64_t m)
{
    const double first = etc_matrix_get(a, j, j), rest = etc_column_norm(a, j + 1, j, m);
    if (rest == 0.0) {
        return 0.0;
    }
    const double norm = etc_column_norm(a, j, j, m), beta = (first < 0.0) ? norm : -norm;
    for (int64_t r = j + 1; r < m; r++) {
        etc_matrix_put(a, r, j, etc_matrix_get(a, r, j) / (first - beta));
    }
    etc_matrix_put(a, j, j, beta);
    return (beta - first) / beta;
}

/* Writes the QR factors of x, m by n, to y: R, and below it the reflectors, whose factors are
 * written to tau. */
ETC_OUTLINE void etc_geqrf(const void *x, void *y, void *tau, const EtcFactor *g)
{
    const int64_t k = etc_min_i64(g->m, g->n);
    for (int64_t b = 0; b < g->batches; b++) {
        const EtcMatrix from = etc_matrix_of(x, NULL, b, g->m, g->n, g->is_double);
        const EtcMatrix a = etc_matrix_of(y, y, b, g->m, g->n, g->is_double);
        etc_matrix_copy(&from, &a, g->m, g->n);
        for (int64_t j = 0; j < k; j++) {
            const double t = etc_reflector(&a, j, g->m);
            etc_real_put(tau, (b * k) + j, g->is_double, t);
            for (int64_t c = j + 1; c < g->n; c++) {
                etc_reflect(&a, j, t, &a, c, g->m);
            }
        }
    }
}

enum { ETC_REFLECT_RIGHT = 1, ETC_REFLECT_TURNED = 2 };

/* Computes y = Q x, or x Q with ETC_REFLECT_RIGHT, where x is m by n and Q is the product of the
 * reflectors in the k columns of a.  flag: ETC_REFLECT_*; ETC_REFLECT_TURNED takes Q^T. */
ETC_OUTLINE void etc_ormqr(const void *a, const void *tau, const void *x, void *y,
                           const EtcFactor *g)
{
    const int is_right = (g->flag & ETC_REFLECT_RIGHT) != 0;
    const int is_turned = ((g->flag & ETC_REFLECT_TURNED) != 0) != is_right;
    const int64_t m = is_right ? g->n : g->m, n = is_right ? g->m : g->n;
    for (int64_t b = 0; b < g->batches; b++) {
        const EtcMatrix from = etc_matrix_of(x, NULL, b, g->m, g->n, g->is_double);
        const EtcMatrix v = etc_matrix_of(a, NULL, b, m, g->k, g->is_double);
        EtcMatrix to = etc_matrix_of(y, y, b, g->m, g->n, g->is_double);
        etc_matrix_copy(&from, &to, g->m, g->n);
        to = is_right ? etc_matrix_turned(&to) : to;
        for (int64_t i = 0; i < g->k; i++) {
            const int64_t j = is_turned ? i : (g->k - 1 - i);
            const double t = etc_real_get(tau, (b * g->k) + j, g->is_double);
            for (int64_t c = 0; c < n; c++) {
                etc_reflect(&v, j, t, &to, c, m);
            }
        }
    }
}

/* -- rotations ----------------------------------------------------------------------------- */

/* The most sweeps over all pairs of columns; a dozen are usual. */
enum { ETC_JACOBI_SWEEPS = 60 };

/* Rotates columns i and j of a by the angle that has cosine c and sine s. */
ETC_OUTLINE void etc_column_turn(const EtcMatrix *a, int64_t i, int64_t j, int64_t m, double c,
                                double s)
{
    for (int64_t r = 0; r < m; r++) {
        const double x = etc_matrix_get(a, r, i), y = etc_matrix_get(a, r, j);
        etc_matrix_put(a, r, i, (c * x) - (s * y));
        etc_matrix_put(a, r, j, (s * x) + (c * y));
    }
}

/* Rotates columns i and j of x so that they become orthogonal, and those of v, unless NULL, by
 * the same angle.  Returns 0 if they were orthogonal.  Lengths below `least` count as `least`. */
ETC_INLINE int etc_jacobi_pair(const EtcMatrix *x, int64_t m, const EtcMatrix *v, int64_t n,
                               int64_t i, int64_t j, double tiny, double least)
{
    const double a = etc_column_dot(x, i, i, m), b = etc_column_dot(x, j, j, m);
    const double c = etc_column_dot(x, i, j, m), d = least * least;
    if (!(etc_real_abs(c) >
          (tiny * etc_root_f64((a > d) ? a : d) * etc_root_f64((b > d) ? b : d)))) {
        return 0;
    }
    const double z = (b - a) / (2.0 * c), root = etc_root_f64(1.0 + (z * z));
    const double t = (z < 0.0) ? (-1.0 / (root - z)) : (1.0 / (root + z));
    const double cosine = 1.0 / etc_root_f64(1.0 + (t * t));
    etc_column_turn(x, i, j, m, cosine, cosine * t);
    if (v != NULL) {
        etc_column_turn(v, i, j, n, cosine, cosine * t);
    }
    return 1;
}

/* Rotates pairs of the n columns of x, which has m rows, until all are orthogonal.  The columns
 * of v, which has n rows or is NULL, are rotated by the same angles.  Returns the length below
 * which a column of x is only rounding error. */
ETC_OUTLINE double etc_jacobi(const EtcMatrix *x, int64_t m, const EtcMatrix *v, int64_t n)
{
    const double tiny = ((x->is_double != 0) ? 2.2204460492503131e-16 : 1.1920928955078125e-07) *
                        etc_root_f64((double)m);
    double all = 0.0;
    int turned = 1;
    for (int64_t j = 0; j < n; j++) {
        all += etc_column_dot(x, j, j, m);
    }
    const double least = tiny * etc_root_f64(all);
    for (int32_t sweep = 0; (turned != 0) && (sweep < ETC_JACOBI_SWEEPS); sweep++) {
        turned = 0;
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = i + 1; j < n; j++) {
                turned |= etc_jacobi_pair(x, m, v, n, i, j, tiny, least);
            }
        }
    }
    return least;
}

/* Divides column j of x by `by`. */
ETC_OUTLINE void etc_column_divide(const EtcMatrix *x, int64_t j, int64_t m, double by)
{
    for (int64_t r = 0; r < m; r++) {
        etc_matrix_put(x, r, j, etc_matrix_get(x, r, j) / by);
    }
}

/* -- eigenvalues --------------------------------------------------------------------------- */

/* Returns element (i, j) of a symmetric matrix, of which only one triangle is read. */
ETC_INLINE double etc_symmetric_get(const EtcMatrix *a, int64_t i, int64_t j, int is_upper)
{
    return ((i > j) == (is_upper != 0)) ? etc_matrix_get(a, j, i) : etc_matrix_get(a, i, j);
}

/* Returns the largest sum of the absolute elements of a row.  No eigenvalue is larger. */
ETC_INLINE double etc_symmetric_bound(const EtcMatrix *a, int64_t n, int is_upper)
{
    double top = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (int64_t j = 0; j < n; j++) {
            sum += etc_real_abs(etc_symmetric_get(a, i, j, is_upper));
        }
        top = ((sum > top) || (sum != sum)) ? sum : top;
    }
    return top;
}

/* Returns v^T a v, where v is column j of x. */
ETC_INLINE double etc_rayleigh(const EtcMatrix *a, const EtcMatrix *x, int64_t j, int64_t n,
                               int is_upper)
{
    double sum = 0.0;
    for (int64_t r = 0; r < n; r++) {
        double row = 0.0;
        for (int64_t c = 0; c < n; c++) {
            row += etc_symmetric_get(a, r, c, is_upper) * etc_matrix_get(x, c, j);
        }
        sum += etc_matrix_get(x, r, j) * row;
    }
    return sum;
}

/* Sorts n values, and with them the columns of x and, unless it is NULL, of y.  down: the
 * largest comes first, else the smallest. */
ETC_INLINE void etc_columns_order(void *values, int64_t at, int64_t n, int down, const EtcMatrix *x,
                                  int64_t x_rows, const EtcMatrix *y)
{
    const EtcMatrix row = {values, values, at, 0, 1, x->is_double};
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < n; j++) {
            const double v = etc_matrix_get(&row, 0, j), w = etc_matrix_get(&row, 0, best);
            best = ((down != 0) ? (v > w) : (v < w)) ? j : best;
        }
        etc_column_swap(&row, i, best, 1);
        etc_column_swap(x, i, best, x_rows);
        if (y != NULL) {
            etc_column_swap(y, i, best, n);
        }
    }
}

/* Computes the eigenvalues of a symmetric matrix, and its eigenvectors as the columns of x.  The
 * matrix a / bound + 2 I is positive definite, because its eigenvalues are from 1 to 3.  The
 * columns that rotations make of it are the eigenvectors, each multiplied by its eigenvalue in
 * that matrix. */
ETC_INLINE void etc_eigh_one(const EtcMatrix *a, const EtcMatrix *x, void *values, int64_t at,
                             int64_t n, int is_upper)
{
    const double bound = etc_symmetric_bound(a, n, is_upper);
    const double unit = (bound == 0.0) ? 1.0 : bound;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            const double v = etc_symmetric_get(a, i, j, is_upper) / unit;
            etc_matrix_put(x, i, j, v + ((i == j) ? 2.0 : 0.0));
        }
    }
    (void)etc_jacobi(x, n, NULL, n);
    for (int64_t j = 0; j < n; j++) {
        etc_column_divide(x, j, n, etc_column_norm(x, 0, j, n));
        etc_real_put(values, at + j, a->is_double, etc_rayleigh(a, x, j, n, is_upper));
    }
    etc_columns_order(values, at, n, 0, x, n, NULL);
}

/* Computes the eigenvalues of a symmetric matrix x, n by n, the smallest first, and the
 * eigenvectors as columns.  flag: the upper triangle is read, else the lower one. */
ETC_OUTLINE void etc_eigh(const void *x, void *values, void *vectors, const EtcFactor *g)
{
    for (int64_t b = 0; b < g->batches; b++) {
        const EtcMatrix a = etc_matrix_of(x, NULL, b, g->n, g->n, g->is_double);
        const EtcMatrix v = etc_matrix_of(vectors, vectors, b, g->n, g->n, g->is_double);
        etc_eigh_one(&a, &v, values, b * g->n, g->n, g->flag);
    }
}

/* -- singular values ----------------------------------------------------------------------- */

/* Returns the row of x whose first j elements are the shortest vector. */
ETC_INLINE int64_t etc_shortest_row(const EtcMatrix *x, int64_t j, int64_t m)
{
    double least = 0.0;
    int64_t best = 0;
    for (int64_t r = 0; r < m; r++) {
        double sum = 0.0;
        for (int64_t c = 0; c < j; c++) {
            sum += etc_matrix_get(x, r, c) * etc_matrix_get(x, r, c);
        }
        best = ((r == 0) || (sum < least)) ? r : best;
        least = (best == r) ? sum : least;
    }
    return best;
}

/* Replaces column j of x by a unit vector that is orthogonal to all columns before it.  It takes
 * the axis that is farthest from them, and subtracts its projections on them (Gram and Schmidt,
 * twice). */
ETC_INLINE void etc_column_complete(const EtcMatrix *x, int64_t j, int64_t m)
{
    const int64_t axis = etc_shortest_row(x, j, m);
    for (int64_t r = 0; r < m; r++) {
        etc_matrix_put(x, r, j, (r == axis) ? 1.0 : 0.0);
    }
    for (int64_t i = 0; i < (2 * j); i++) {
        const int64_t c = (i < j) ? i : (i - j);
        const double dot = etc_column_dot(x, c, j, m);
        for (int64_t r = 0; r < m; r++) {
            etc_matrix_put(x, r, j, etc_matrix_get(x, r, j) - (dot * etc_matrix_get(x, r, c)));
        }
    }
    etc_column_divide(x, j, m, etc_column_norm(x, 0, j, m));
}

/* Factors a into x diag(s) v^T for m >= n.  x has m rows and `columns` columns, and v is n by n. */
ETC_INLINE void etc_svd_one(const EtcMatrix *a, const EtcMatrix *x, const EtcMatrix *v, void *s,
                            int64_t at, int64_t m, int64_t n, int64_t columns)
{
    etc_matrix_copy(a, x, m, n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            etc_matrix_put(v, i, j, (i == j) ? 1.0 : 0.0);
        }
    }
    const double least = etc_jacobi(x, m, v, n);
    for (int64_t j = 0; j < n; j++) {
        etc_real_put(s, at + j, a->is_double, etc_column_norm(x, 0, j, m));
    }
    etc_columns_order(s, at, n, 1, x, m, v);
    for (int64_t j = 0; j < columns; j++) {
        const double norm = (j < n) ? etc_real_get(s, at + j, a->is_double) : 0.0;
        if ((j < n) && !(norm <= least)) {
            etc_column_divide(x, j, m, norm);
        } else {
            etc_column_complete(x, j, m);
        }
    }
}

/* Factors x, m by n, into u diag(s) v, with the largest of s first.  u has min(m, n) columns and
 * v has as many rows.  With flag, u has m columns and v has n rows. */
ETC_OUTLINE void etc_svd(const void *x, void *u, void *s, void *v, const EtcFactor *g)
{
    const int is_wide = g->m < g->n;
    const int64_t least = etc_min_i64(g->m, g->n), most = etc_max_i64(g->m, g->n);
    const int64_t u_columns = (g->flag != 0) ? g->m : least, v_rows = (g->flag != 0) ? g->n : least;
    for (int64_t b = 0; b < g->batches; b++) {
        const EtcMatrix a = etc_matrix_of(x, NULL, b, g->m, g->n, g->is_double);
        const EtcMatrix left = etc_matrix_of(u, u, b, g->m, u_columns, g->is_double);
        const EtcMatrix right = etc_matrix_of(v, v, b, v_rows, g->n, g->is_double);
        const EtcMatrix a_turned = etc_matrix_turned(&a), turned = etc_matrix_turned(&right);
        etc_svd_one(is_wide ? &a_turned : &a, is_wide ? &turned : &left, is_wide ? &left : &turned,
                    s, b * least, most, least, is_wide ? v_rows : u_columns);
    }
}

#endif
