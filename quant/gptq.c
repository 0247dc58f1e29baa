/* gptq.c -- rounding that makes up for itself: GPTQ (Frantar et al. 2023, GPTQ: Accurate
 * Post-Training Quantization for Generative Pre-trained Transformers, algorithm 1).
 *
 * The columns of a row are rounded one after the other; each one's error is spread over those that
 * are not yet rounded, so that the row's product with the samples changes least.  How much goes
 * where is in the rows of U, the upper Cholesky factor of the inverse of X^T X.  Columns with large
 * operands come first, while there are many to make up for them (the authors' code has that as
 * act-order).  Scales stay.
 */
#include "quant/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Column {
    double power; /* sum of squares of what it is multiplied with */
    int64_t at;
} Column;

static int by_power(const void *a, const void *b)
{
    const Column *x = a, *y = b;
    if (x->power != y->power)
        return x->power > y->power ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static Column *columns_of(const Moments *m, Arena *a)
{
    Column *c = NEW(a, Column, m->n + 1);
    for (int64_t i = 0; i < m->n; i++)
        c[i] = (Column){m->gram[i * m->n + i], i};
    qsort(c, (size_t)m->n, sizeof *c, by_power);
    return c;
}

/* The lower factor of a symmetric matrix's lower triangle, in its place. */
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

/* The inverse of a lower triangle, row by row. */
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

/* Row j of U, from column j on.  With the order of columns reversed, U is the inverse of the lower
 * factor of X^T X: no inverse of the whole is made. */
static double *upper_factor(const Moments *m, const Column *c, Arena *tmp)
{
    const int64_t n = m->n;
    double *a = NEW(tmp, double, n * n), trace = 0;
    for (int64_t i = 0; i < n; i++)
        trace += m->gram[i * n + i];
    const double damp = trace > 0 ? 0.01 * trace / (double)n : 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            const int64_t x = c[n - 1 - i].at, y = c[n - 1 - j].at;
            a[i * n + j] = m->gram[x > y ? x * n + y : y * n + x] + (i == j ? damp : 0);
        }
    if (!cholesky(a, n, tmp))
        return NULL;
    const double *l = inverse(a, n, tmp);
    double *u = NEW(tmp, double, n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            u[i * n + j] = l[(n - 1 - i) * n + n - 1 - j];
    return u;
}

/* Its columns stand in the order in which they are rounded, in `u` too; at j all before it are. */
static void round_column(Ints *k, double *row, const double *u, int64_t j, int64_t n, int64_t at)
{
    const double scale = (double)k->scale[at / k->inner % k->n];
    const int q = ints_nearest(k, row[j] / scale);
    const double e = (row[j] - scale * q) / u[j];
    k->q[at] = (int8_t)q;
    for (int64_t i = j + 1; i < n; i++)
        row[i] -= e * u[i];
}

Gptq gptq_of(const Moments *m, Arena *a)
{
    Arena *tmp = arena_new();
    Gptq g = {.of = m, .order = NEW(a, int64_t, m->n + 1)};
    const Column *c = columns_of(m, tmp);
    const double *u = upper_factor(m, c, tmp);
    for (int64_t i = 0; i < m->n; i++)
        g.order[i] = c[i].at;
    if (u) {
        g.factor = NEW(a, double, m->n * m->n);
        memcpy(g.factor, u, (size_t)(m->n * m->n) * sizeof *u);
    }
    arena_free(tmp);
    return g;
}

void gptq_round(Ints *k, const float *w, const Gptq *g, Arena *tmp)
{
    enum { BLOCK = 8 }; /* rows that share what is read of U */
    const int64_t n = g->of->n, rows = k->outer * k->n * k->inner / n;
    double *row = NEW(tmp, double, BLOCK * n + 1);
    if (!g->factor) {
        ints_round(k, w);
        return;
    }
    for (int64_t o = 0; o < rows; o += BLOCK) {
        const int64_t some = rows - o < BLOCK ? rows - o : BLOCK;
        for (int64_t i = 0; i < some * n; i++)
            row[i] = (double)w[(o + i / n) * n + g->order[i % n]];
        for (int64_t j = 0; j < n; j++)
            for (int64_t r = 0; r < some; r++)
                round_column(k, row + r * n, g->factor + j * n, j, n, (o + r) * n + g->order[j]);
    }
}
