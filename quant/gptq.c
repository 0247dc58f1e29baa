/* gptq.c -- rounds weights by GPTQ (Frantar et al. 2023, GPTQ: Accurate Post-Training Quantization
 * for Generative Pre-trained Transformers, algorithm 1).
 *
 * The columns of a row are rounded one after the other.  The error of each is compensated by the
 * columns that are not rounded yet, such that the row's product with the samples changes least.
 * The factors are in the rows of U, the upper Cholesky factor of the inverse of X^T X.  Columns
 * with large operands come first, while many columns are left to compensate them (act-order in the
 * authors' code).  Scales do not change.
 *
 * With few bits the steps are wide, and two things help.  Ten times the damping gives less
 * weight to correlations that are accidents of the samples.  And a few rounds of coordinate
 * descent with the usual damping follow, which change single integers such that the error of the
 * row's product gets smaller (Behdin et al. 2023, QuantEase). */
#include "quant/internal.h"
#include <math.h>
#include <stdlib.h>

typedef struct Column {
    double power; /* the sum of squares of the activations that it is multiplied with */
    int64_t at;
} Column;

static int by_power(const void *a, const void *b)
{
    const Column *x = a, *y = b;
    if (x->power != y->power)
        return x->power > y->power ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* The state of one block of columns. */
struct GptqBlock {
    int64_t *order; /* the columns in the order in which they are rounded */
    double *u;      /* NULL: the matrix has no Cholesky factor */
    double *h;      /* X^T X; only for few bits, else NULL */
};

static Column *columns_of(const double *gram, int64_t n, Arena *a)
{
    Column *c = NEW(a, Column, n + 1);
    for (int64_t i = 0; i < n; i++)
        c[i] = (Column){gram[i * n + i], i};
    qsort(c, (size_t)n, sizeof *c, by_power);
    return c;
}

/* Replaces the lower triangle of a symmetric matrix by its lower Cholesky factor.  Returns false if
 * there is none. */
static bool cholesky(double *a, int64_t n, Arena *tmp)
{
    double *column = NEW(tmp, double, n + 1);
    for (int64_t k = 0; k < n; k++) {
        if (!(a[k * n + k] > 0))
            return false;
        const double root = sqrt(a[k * n + k]);
        a[k * n + k] = root;
        for (int64_t i = k + 1; i < n; i++)
            column[i] = a[i * n + k] /= root;
        for (int64_t i = k + 1; i < n; i++)
            for (int64_t j = k + 1; j <= i; j++)
                a[i * n + j] -= column[i] * column[j];
    }
    return true;
}

/* Returns the inverse of a lower triangular matrix. */
static double *inverse(const double *l, int64_t n, Arena *tmp)
{
    double *to = NEW(tmp, double, n * n);
    for (int64_t i = 0; i < n; i++) {
        double *row = to + i * n;
        row[i] = 1;
        for (int64_t k = 0; k < i; k++)
            for (int64_t j = 0; j <= k; j++)
                row[j] -= l[i * n + k] * to[k * n + j];
        for (int64_t j = 0; j <= i; j++)
            row[j] /= l[i * n + i];
    }
    return to;
}

/* Returns X^T X with both triangles.  A share of the mean of its diagonal is added to the diagonal.
 */
static double *damped(const double *gram, int64_t n, double share, Arena *to)
{
    double *h = NEW(to, double, n * n), trace = 0;
    for (int64_t i = 0; i < n; i++)
        trace += gram[i * n + i];
    const double damp = trace > 0 ? share * trace / (double)n : 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            h[i * n + j] = h[j * n + i] = gram[i * n + j] + (i == j ? damp : 0);
    return h;
}

/* Computes row j of U from column j on.  With the columns in reverse order, U is the inverse of the
 * lower factor of X^T X, so the inverse of the whole matrix is not needed. */
static double *upper_factor(const double *h, int64_t n, const Column *c, Arena *to, Arena *tmp)
{
    double *a = NEW(tmp, double, n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            a[i * n + j] = h[c[n - 1 - i].at * n + c[n - 1 - j].at];
    if (!cholesky(a, n, tmp))
        return NULL;
    const double *l = inverse(a, n, tmp);
    double *u = NEW(to, double, n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            u[i * n + j] = l[(n - 1 - i) * n + n - 1 - j];
    return u;
}

/* Rounds column j.  Columns of the row and of `u` are in the order in which they are rounded. */
static void round_column(Ints *k, double *row, const double *u, int64_t j, int64_t n, int64_t at)
{
    const double scale = (double)k->scale[at / k->inner % k->n];
    const int q = ints_nearest(k, row[j] / scale);
    const double e = (row[j] - scale * q) / u[j];
    k->q[at] = (int8_t)q;
    for (int64_t i = j + 1; i < n; i++)
        row[i] -= e * u[i];
}

/* The share of the mean of X^T X's diagonal that is added to the diagonal, because there are few
 * samples. */
#define DAMP 0.01

static struct GptqBlock factor_of(const double *gram, int64_t n, bool is_coarse, Arena *a)
{
    Arena *tmp = arena_new();
    struct GptqBlock f = {.order = NEW(a, int64_t, n + 1)};
    const Column *c = columns_of(gram, n, tmp);
    f.u = upper_factor(damped(gram, n, is_coarse ? 10 * DAMP : DAMP, tmp), n, c, a, tmp);
    f.h = is_coarse && f.u ? damped(gram, n, DAMP, a) : NULL;
    for (int64_t i = 0; i < n; i++)
        f.order[i] = c[i].at;
    arena_free(tmp);
    return f;
}

Gptq gptq_of(const Products *p, int bits, Arena *a)
{
    assert(p->gram);
    Gptq g = {p, NEW(a, struct GptqBlock, p->blocks + 1)};
    for (int64_t b = 0; b < p->blocks; b++)
        g.block[b] = factor_of(p->gram + b * p->n * p->n, p->n, bits < 8, a);
    return g;
}

static void add_row(double *to, double by, const double *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += by * row[i];
}

/* Improves the integers of one row in a block after they were rounded.  slope has a number for
 * each: h times the error, which is half of how fast the squared error of the products grows with
 * it. */
static void polish(Ints *k, const float *w, int64_t at, const struct GptqBlock *f, int64_t n,
                   double *slope)
{
    assert(f->u && f->h);
    enum { ROUNDS = 4 };
    for (int64_t i = 0; i < n; i++)
        slope[i] = 0;
    for (int64_t j = 0; j < n; j++) {
        const double scale = (double)k->scale[(at + j) / k->inner % k->n];
        add_row(slope, scale * k->q[at + j] - (double)w[at + j], f->h + j * n, n);
    }
    for (int64_t i = 0; i < ROUNDS * n; i++) {
        const int64_t j = f->order[i % n];
        const double scale = (double)k->scale[(at + j) / k->inner % k->n];
        const int was = k->q[at + j];
        const int q = ints_nearest(k, was - slope[j] / (f->h[j * n + j] * scale));
        k->q[at + j] = (int8_t)q;
        if (q != was)
            add_row(slope, scale * (q - was), f->h + j * n, n);
    }
}

/* Rounds the columns of one block in some rows, which lie `step` apart.  `work` has room for as
 * many numbers. */
static void round_rows(Ints *k, const float *w, int64_t at, int64_t rows, int64_t step,
                       const struct GptqBlock *f, int64_t n, double *work)
{
    for (int64_t i = 0; i < rows * n; i++)
        work[i] = (double)w[at + i / n * step + f->order[i % n]];
    for (int64_t j = 0; j < n; j++)
        for (int64_t r = 0; r < rows; r++)
            round_column(k, work + r * n, f->u + j * n, j, n, at + r * step + f->order[j]);
    for (int64_t r = 0; f->h && r < rows; r++)
        polish(k, w, at + r * step, f, n, work);
}

void gptq_round(Ints *k, const float *w, const Geometry *rows, const Gptq *g, Arena *tmp)
{
    enum { BLOCK = 8 }; /* the rows that are rounded together, for one read of U */
    const int64_t n = g->of->n, parts = rows->row / n;
    double *work = NEW(tmp, double, BLOCK * n + 1);
    assert(rows->row % n == 0 && !rows->by_column);
    ints_round(k, w); /* blocks without a factor keep this rounding */
    for (int64_t o = 0; o < rows->results;) {
        const int64_t group = o / rows->results_of_group;
        const int64_t left = (group + 1) * rows->results_of_group - o;
        const int64_t some = left < BLOCK ? left : BLOCK;
        for (int64_t i = 0; i < parts; i++) {
            const struct GptqBlock *f = &g->block[group * parts + i];
            if (f->u)
                round_rows(k, w, o * rows->row + i * n, some, rows->row, f, n, work);
        }
        o += some;
    }
}
