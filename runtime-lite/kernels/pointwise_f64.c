/* pointwise_f64.c -- the rows of pointwise.def for double, one element at a time. */
#include "runtime-lite/kernels/cores.h"

/* These names are what the rows use, for one double. */
#define etc_k(d) (d)
#define etc_select(mask, yes, no) ((mask) ? (yes) : (no))
#define etc_at_least(a, lo) (((a) < (lo)) ? (lo) : (a))
#define etc_at_most(a, hi) (((a) > (hi)) ? (hi) : (a))
#define etc_max(a, b) ((((a) > (b)) || ((a) != (a))) ? (a) : (b))
#define etc_min(a, b) ((((a) < (b)) || ((a) != (a))) ? (a) : (b))
#define etc_vabs(a) __builtin_fabs(a)
#define etc_vbfloat(a) ((double)etc_from_bfloat(etc_to_bfloat((float)(a))))
#define etc_vceil(a) etc_ceil_f64(a)
#define etc_vcos(a) etc_cos_f64(a)
#define etc_vdivisor(b) (b)
#define etc_verf(a) etc_erf_f64(a)
#define etc_vexp(a) etc_exp_f64(a)
#define etc_vexp_and_1(a) (1.0 + etc_exp_f64(a))
#define etc_vexpm1(a) etc_expm1_f64(a)
#define etc_vfloor(a) etc_floor_f64(a)
#define etc_vfloordiv(a, p) etc_floordiv_f64(a, p)
#define etc_vfmod(a, p) etc_fmod_f64(a, p)
#define etc_vlog(a) etc_log_f64(a)
#define etc_vpow(a, p, q) etc_pow_f64(a, p)
#define etc_vpower(a, p) etc_pow_f64(a, p)
#define etc_vrem(a, p) etc_rem_f64(a, p)
#define etc_vround(a) etc_round_f64(a)
#define etc_vsigmoid(a) (1.0 / (1.0 + etc_exp_f64(-(a))))
#define etc_vsign(a) etc_sign_f64(a)
#define etc_vsin(a) etc_sin_f64(a)
#define etc_vsqrt(a) __builtin_sqrt(a)
#define etc_vtanh(a) etc_tanh_f64(a)
#define etc_vtrunc(a) etc_vtrunc_f64(a)
#define etc_vtruncdiv(a, p) etc_truncdiv_f64(a, p)

#define ROW(name, expr, second)                                                                 \
    void etc_row_f64_##name(const void *pa, const void *pb, const EtcPqr *s, void *y, int64_t n) \
    {                                                                                           \
        const double p = s->f64[0], q = s->f64[1], r = s->f64[2];                               \
        (void)p;                                                                                \
        (void)q;                                                                                \
        (void)r;                                                                                \
        (void)pb;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                       \
            const double a = ((const double *)pa)[i];                                           \
            second;                                                                             \
            ((double *)y)[i] = (expr);                                                          \
        }                                                                                       \
    }
#define UNARY(name, expr) ROW(name, expr, )
#define BINARY(name, expr) ROW(name, expr, const double b = ((const double *)pb)[i])
#include "runtime-lite/kernels/pointwise.def"
