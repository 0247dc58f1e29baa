/* wide.c -- arithmetic on doubles and on integers of 64 bits. */
#include "runtime-lite/kernels/wide.h"
#include "runtime-lite/kernels/core.h"

EtcKind etc_wide_kind(int dtype)
{
    const EtcKind kind = etc_kind(dtype);
    return (kind == ETC_KIND_F32) ? ETC_KIND_NONE : kind;
}

EtcWide etc_wide_get(EtcKind kind, const EtcTensor *t, int64_t at)
{
    EtcWide v, buffer;
    const void *from = etc_fetch(kind, (int)t->dtype, etc_at(t, at), 1, 1, &buffer);
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}

void etc_wide_put(EtcKind kind, EtcWide v, const EtcTensor *t, int64_t at)
{
    etc_put(kind, &v, (int)t->dtype, etc_at(t, at), 1, 1);
}

EtcWide etc_wide_zero(EtcKind kind)
{
    EtcWide v;
    if (kind == ETC_KIND_F64) {
        v.f64 = 0.0;
    } else {
        v.i64 = 0u;
    }
    return v;
}

EtcWide etc_wide_sum(EtcKind kind, EtcWide a, EtcWide b)
{
    if (kind == ETC_KIND_F64) {
        a.f64 += b.f64;
    } else {
        a.i64 += b.i64;
    }
    return a;
}

EtcWide etc_wide_product(EtcKind kind, EtcWide a, EtcWide b)
{
    if (kind == ETC_KIND_F64) {
        a.f64 *= b.f64;
    } else {
        a.i64 *= b.i64;
    }
    return a;
}

/* -- sums of products -------------------------------------------------------------------- */

/* Returns n elements of a line from `from` on, in the kind's type.  They are read in place; if
 * their dtype is another, they are converted into `buffer` without gaps.  Sets *step to the
 * distance from one to the next. */
static const void *fetch(EtcKind kind, EtcLine l, int64_t from, int64_t n, void *buffer,
                         int64_t *step)
{
    const void *at = etc_at(l.t, l.at + (from * l.step));
    if ((int)l.t->dtype == etc_kind_dtype(kind)) {
        *step = l.step;
        return at;
    }
    *step = 1;
    return etc_fetch(kind, (int)l.t->dtype, at, l.step, n, buffer);
}

EtcWide etc_wide_dot(const EtcCall *c, EtcKind kind, EtcWide start, EtcLine a, EtcLine b,
                     int64_t n)
{
    enum { CHUNK = ETC_SCRATCH_BYTES / 16 };
    unsigned char *second = (unsigned char *)c->scratch + (8 * CHUNK);
    EtcWide sum = start;
    for (int64_t from = 0; from < n; from += CHUNK) {
        const int64_t m = etc_min_i64(n - from, CHUNK);
        int64_t a_step, b_step;
        const void *x = fetch(kind, a, from, m, c->scratch, &a_step);
        const void *y = fetch(kind, b, from, m, second, &b_step);
        for (int64_t i = 0; (kind == ETC_KIND_F64) && (i < m); i++) {
            sum.f64 += ((const double *)x)[i * a_step] * ((const double *)y)[i * b_step];
        }
        for (int64_t i = 0; (kind == ETC_KIND_I64) && (i < m); i++) {
            sum.i64 += ((const uint64_t *)x)[i * a_step] * ((const uint64_t *)y)[i * b_step];
        }
    }
    return sum;
}

/* -- moments ----------------------------------------------------------------------------- */

/* Returns (x[0] - less)^power + ..., summed in 16 lanes, so that errors grow with a sixteenth of
 * n. */
static double sum_of_powers(const double *x, int64_t n, double less, int power)
{
    double lane[16] = {0.0};
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i] - less;
        lane[i % 16] += (power == 2) ? (d * d) : d;
    }
    for (int w = 8; w > 0; w /= 2) {
        for (int i = 0; i < w; i++) {
            lane[i] += lane[i + w];
        }
    }
    return lane[0];
}

void etc_wide_moments(const double *x, int64_t n, double eps, double *mean, double *rstd)
{
    *mean = sum_of_powers(x, n, 0.0, 1) / (double)n;
    *rstd = 1.0 / __builtin_sqrt((sum_of_powers(x, n, *mean, 2) / (double)n) + eps);
}
