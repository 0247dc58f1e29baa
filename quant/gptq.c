/* gptq.c -- rounding that makes up for itself: GPTQ (Frantar et al. 2023, GPTQ: Accurate
 * Post-Training Quantization for Generative Pre-trained Transformers, algorithm 1).
 *
 * The columns of a row are rounded one after the other; each one's error is spread over those that
 * are not yet rounded, so that the row's product with the samples changes least.  How much goes
 * where is in the rows of U, the upper Cholesky factor of the inverse of X^T X.  Scales stay.
 */
#include "quant/internal.h"
#include <math.h>

/* The lower factor of a symmetric matrix's lower triangle, in its place. */
static bool cholesky(double *a, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > 0))
                return false;
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
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
static double *upper_factor(const Moments *m, Arena *tmp)
{
    const int64_t n = m->n;
    double *a = NEW(tmp, double, n * n), trace = 0;
    for (int64_t i = 0; i < n; i++)
        trace += m->gram[i * n + i];
    const double damp = trace > 0 ? 0.01 * trace / (double)n : 1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) /* reversed: element (n-1-j, n-1-i), which is lower */
            a[i * n + j] = m->gram[(n - 1 - j) * n + n - 1 - i] + (i == j ? damp : 0);
    if (!cholesky(a, n))
        return NULL;
    const double *l = inverse(a, n, tmp);
    double *u = NEW(tmp, double, n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            u[i * n + j] = l[(n - 1 - i) * n + n - 1 - j];
    return u;
}

void gptq_round(Ints *k, const float *w, const Moments *m, Arena *tmp)
{
    const int64_t n = m->n, rows = k->outer * k->n * k->inner / n;
    const double *u = upper_factor(m, tmp);
    double *row = NEW(tmp, double, n + 1);
    if (!u) {
        ints_round(k, w);
        return;
    }
    for (int64_t o = 0; o < rows; o++) {
        for (int64_t j = 0; j < n; j++)
            row[j] = (double)w[o * n + j];
        for (int64_t j = 0; j < n; j++) {
            const double scale = (double)k->scale[(o * n + j) / k->inner % k->n];
            const int q = ints_nearest(k, row[j] / scale);
            const double e = (row[j] - scale * q) / u[j * n + j];
            k->q[o * n + j] = (int8_t)q;
            for (int64_t i = j + 1; i < n; i++)
                row[i] -= e * u[j * n + i];
        }
    }
}
