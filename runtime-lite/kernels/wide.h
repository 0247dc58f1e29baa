/* wide.h -- arithmetic in double and in 64-bit integers, for wrappers whose cores have float alone.
 *
 * Integers wrap, and are truncated when they are stored.  The code is plain C and computes one
 * element at a time, because few models need it.  Sums add their terms in order; each product
 * and each sum is rounded.  Emitted C contains nothing of this. */
#ifndef ETC_WIDE_H
#define ETC_WIDE_H

#include "runtime-lite/kernels/args.h"

typedef union EtcWide { /* the kind, F64 or I64, says which member is valid */
    double f64;
    uint64_t i64;
} EtcWide;

/* Returns the kind in which tensors of this dtype are computed here.  It is ETC_KIND_NONE for all
 * other dtypes and for those that are computed in float. */
EtcKind etc_wide_kind(int dtype);

EtcWide etc_wide_get(EtcKind kind, const EtcTensor *t, int64_t at);
void etc_wide_put(EtcKind kind, EtcWide v, const EtcTensor *t, int64_t at);

EtcWide etc_wide_zero(EtcKind kind);
EtcWide etc_wide_sum(EtcKind kind, EtcWide a, EtcWide b);
EtcWide etc_wide_product(EtcKind kind, EtcWide a, EtcWide b);

/* The elements at, at + step, ... of a tensor, in memory order. */
typedef struct EtcLine {
    const EtcTensor *t;
    int64_t at, step;
} EtcLine;

/* Returns start + a[0] b[0] + ... + a[n - 1] b[n - 1].  Uses c->scratch. */
EtcWide etc_wide_dot(const EtcCall *c, EtcKind kind, EtcWide start, EtcLine a, EtcLine b,
                     int64_t n);

/* Computes the mean of n doubles, and 1 / sqrt(variance + eps). */
void etc_wide_moments(const double *x, int64_t n, double eps, double *mean, double *rstd);

#endif
