/* infer_linalg.c -- types of factors of matrices, triangular systems, eigenvalues and singular
 * values.  Matrices are the last two axes.  The axes before them are the batch, which is the same
 * in all operands. */
#include "ir/internal.h"
#include <string.h>

/* Reads a matrix of floats, or a batch of them.  Its last two sizes go to *rows and *columns. */
static bool get_matrix(const Node *n, const char *name, Type *x, Dim *rows, Dim *columns, Diag *d)
{
    if (!get_rank(n, arg_find(n, name), 2, MAX_RANK, x, d))
        return false;
    *rows = x->dim[x->rank - 2];
    *columns = x->dim[x->rank - 1];
    return x->dtype == ETC_F32 || x->dtype == ETC_F64 ||
           diag_error(d, n->loc, "%s has dtype %s, expected f32 or f64", name,
                      dtype_name(x->dtype));
}

static bool get_square(const Node *n, const char *name, Type *x, Dim *size, Diag *d)
{
    Dim rows;
    if (!get_matrix(n, name, x, &rows, size, d))
        return false;
    return dims_agree(n, rows, *size) ||
           diag_error(d, n->loc, "%s has %s rows and %s columns, expected a square matrix", name,
                      dim_text(n->graph->program, rows), dim_text(n->graph->program, *size));
}

/* Sets a result with the batch of x, followed by the first `count` of the sizes a and b. */
static bool set_batch(const Node *n, Type x, EtcDtype dtype, int count, Dim a, Dim b, Type *out,
                      Diag *d)
{
    Dim dim[MAX_RANK], last[2] = {a, b};
    assert(x.rank >= 2 && count <= 2);
    for (int i = 0; i < x.rank - 2 + count; i++)
        dim[i] = i < x.rank - 2 ? x.dim[i] : last[i - x.rank + 2];
    return set_tensor(n, out, dtype, x.rank - 2 + count, dim, d);
}

/* Checks that y has the dtype and the batch of x, followed by the first `count` of the sizes a and
 * b. */
static bool check_batch(const Node *n, const char *name, Type y, Type x, int count, Dim a, Dim b,
                        Diag *d)
{
    Dim last[2] = {a, b};
    if (y.dtype != x.dtype)
        return diag_error(d, n->loc, "operands have dtypes %s and %s, expected equal ones",
                          dtype_name(x.dtype), dtype_name(y.dtype));
    if (y.rank != x.rank - 2 + count)
        return diag_error(d, n->loc, "%s has rank %d, expected %d", name, y.rank,
                          x.rank - 2 + count);
    for (int i = 0; i < y.rank; i++) {
        Dim want = i < x.rank - 2 ? x.dim[i] : last[i - x.rank + 2];
        if (!dims_agree(n, y.dim[i], want))
            return diag_error(d, n->loc, "axis %d of %s has size %s, expected %s", i, name,
                              dim_text(n->graph->program, y.dim[i]),
                              dim_text(n->graph->program, want));
    }
    return true;
}

bool infer_lu_factor(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim rows, columns;
    if (!get_matrix(n, "A", &x, &rows, &columns, d))
        return false;
    if (!arg_bool(n, "pivot"))
        return diag_unsupported(d, n->loc, "has pivot=False, which torch does not support on CPUs");
    Dim least = dim_min(n->graph->program, rows, columns);
    return set_batch(n, x, x.dtype, 2, rows, columns, &out[0], d) &&
           set_batch(n, x, ETC_I32, 1, least, DIM(0), &out[1], d) &&
           set_batch(n, x, ETC_I32, 0, DIM(0), DIM(0), &out[2], d);
}

/* Infers P, L and U.  The last two are empty if they are not asked for. */
bool infer_lu_unpack(const Node *n, Type *out, Diag *d)
{
    Type x, pivots;
    Dim rows, columns, none = DIM(0);
    if (!get_matrix(n, "LU_data", &x, &rows, &columns, d) ||
        !get_tensor(n, "LU_pivots", &pivots, d))
        return false;
    if (pivots.dtype != ETC_I32 || !arg_bool(n, "unpack_pivots"))
        return diag_error(d, n->loc, "LU_pivots has dtype %s, expected i32, to be unpacked",
                          dtype_name(pivots.dtype));
    Dim least = dim_min(n->graph->program, rows, columns);
    pivots.dtype = x.dtype;
    if (!check_batch(n, "LU_pivots", pivots, x, 1, least, none, d) ||
        !set_batch(n, x, x.dtype, 2, rows, rows, &out[0], d))
        return false;
    if (!arg_bool(n, "unpack_data"))
        return set_tensor(n, &out[1], x.dtype, 1, &none, d) &&
               set_tensor(n, &out[2], x.dtype, 1, &none, d);
    return set_batch(n, x, x.dtype, 2, rows, least, &out[1], d) &&
           set_batch(n, x, x.dtype, 2, least, columns, &out[2], d);
}

bool infer_cholesky(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim size;
    return get_square(n, "self", &x, &size, d) &&
           set_batch(n, x, x.dtype, 2, size, size, &out[0], d) &&
           set_batch(n, x, ETC_I32, 0, DIM(0), DIM(0), &out[1], d);
}

bool infer_solve_triangular(const Node *n, Type *out, Diag *d)
{
    Type a, x;
    Dim size, rows, columns;
    if (!get_square(n, "self", &a, &size, d) || !get_matrix(n, "B", &x, &rows, &columns, d))
        return false;
    Dim want = arg_bool(n, "left") ? rows : columns;
    return check_batch(n, "self", a, x, 2, want, want, d) &&
           set_tensor(n, out, x.dtype, x.rank, x.dim, d);
}

bool infer_geqrf(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim rows, columns;
    return get_matrix(n, "self", &x, &rows, &columns, d) &&
           set_batch(n, x, x.dtype, 2, rows, columns, &out[0], d) &&
           set_batch(n, x, x.dtype, 1, dim_min(n->graph->program, rows, columns), DIM(0), &out[1],
                     d);
}

bool infer_ormqr(const Node *n, Type *out, Diag *d)
{
    Type a, tau, x;
    Dim a_rows, reflectors, rows, columns;
    if (!get_matrix(n, "self", &a, &a_rows, &reflectors, d) || !get_tensor(n, "tau", &tau, d) ||
        !get_matrix(n, "other", &x, &rows, &columns, d))
        return false;
    if (!dim_at_least(n, a_rows, reflectors))
        return diag_error(d, n->loc, "self has more reflectors than rows");
    return check_batch(n, "self", a, x, 2, arg_bool(n, "left") ? rows : columns, reflectors, d) &&
           check_batch(n, "tau", tau, x, 1, reflectors, DIM(0), d) &&
           set_tensor(n, out, x.dtype, x.rank, x.dim, d);
}

bool infer_eigh(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim size;
    return get_square(n, "self", &x, &size, d) &&
           set_batch(n, x, x.dtype, 1, size, DIM(0), &out[0], d) &&
           set_batch(n, x, x.dtype, 2, size, size, &out[1], d);
}

bool infer_svd(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim rows, columns;
    if (!get_matrix(n, "A", &x, &rows, &columns, d))
        return false;
    Dim least = dim_min(n->graph->program, rows, columns);
    bool is_full = arg_bool(n, "full_matrices");
    return set_batch(n, x, x.dtype, 2, rows, is_full ? rows : least, &out[0], d) &&
           set_batch(n, x, x.dtype, 1, least, DIM(0), &out[1], d) &&
           set_batch(n, x, x.dtype, 2, is_full ? columns : least, columns, &out[2], d);
}
