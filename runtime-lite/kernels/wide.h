/* wide.h -- what wrappers compute where the cores, which know float alone, do not: double, and
 * integers in 64 bits that wrap and are cut when they are stored.
 *
 * One element at a time, in plain C: few models compute so.  Sums take their terms in order; each
 * product and each sum is rounded.  Nothing here reaches emitted C.
 */
#ifndef ETC_WIDE_H
#define ETC_WIDE_H

#include "runtime-lite/kernels/args.h"

typedef union EtcWide { /* by the kind, F64 or I64 */
    double f64;
    uint64_t i64;
} EtcWide;

/* The kind in which a tensor of this dtype is computed here; ETC_KIND_NONE for all others, float
 * among them. */
EtcKind etc_wide_kind(int dtype);

EtcWide etc_wide_get(EtcKind kind, const EtcTensor *t, int64_t at);
void etc_wide_put(EtcKind kind, EtcWide v, const EtcTensor *t, int64_t at);

EtcWide etc_wide_zero(EtcKind kind);
EtcWide etc_wide_sum(EtcKind kind, EtcWide a, EtcWide b);
EtcWide etc_wide_product(EtcKind kind, EtcWide a, EtcWide b);

/* Elements at, at + step, ... of a tensor, in memory order. */
typedef struct EtcLine {
    const EtcTensor *t;
    int64_t at, step;
} EtcLine;

/* start + a[0] b[0] + ... + a[n - 1] b[n - 1].  Uses c->scratch. */
EtcWide etc_wide_dot(const EtcCall *c, EtcKind kind, EtcWide start, EtcLine a, EtcLine b,
                     int64_t n);

/* The mean of n doubles, and 1 / sqrt(variance + eps). */
void etc_wide_moments(const double *x, int64_t n, double eps, double *mean, double *rstd);

#endif
