/* pointwise_f64.c -- the rows of pointwise.def for double, one element at a time. */
#include "runtime-lite/kernels/cores.h"

/* The names that the rows use, for one double. */
#define etc_k(d) (d)
#define etc_vabs(a) __builtin_fabs(a)
#define etc_at_least(a, lo) (((a) < (lo)) ? (lo) : (a))
#define etc_at_most(a, hi) (((a) > (hi)) ? (hi) : (a))
#define etc_max(a, b) ((((a) > (b)) || ((a) != (a))) ? (a) : (b))
#define etc_min(a, b) ((((a) < (b)) || ((a) != (a))) ? (a) : (b))
#define etc_vpow(a, p) etc_pow_f64(a, p)

#define ROW(name, expr, second)                                                               \
    static void row_##name(const void *pa, const void *pb, const EtcPqr *s, void *y, int64_t n) \
    {                                                                                         \
        const double p = s->f64[0], q = s->f64[1], r = s->f64[2];                             \
        (void)p;                                                                              \
        (void)q;                                                                              \
        (void)r;                                                                              \
        (void)pb;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                     \
            const double a = ((const double *)pa)[i];                                         \
            second;                                                                           \
            ((double *)y)[i] = (expr);                                                        \
        }                                                                                     \
    }
#define UNARY(name, expr) ROW(name, expr, )
#define BINARY(name, expr) ROW(name, expr, const double b = ((const double *)pb)[i])
#define REAL(name, expr)
#include "runtime-lite/kernels/pointwise.def"

EtcPointwise *const etc_pointwise_f64[ETC_N_ROWS] = {
#define UNARY(name, expr) row_##name,
#define BINARY UNARY
#define REAL(name, expr) NULL,
#include "runtime-lite/kernels/pointwise.def"
};
