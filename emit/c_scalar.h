/* c_scalar.h -- the functions that rows of pointwise.def use, for one double or one integer that
 * wraps; and functions that compute sizes as the compiler does. */
#ifndef ETC_C_SCALAR_H
#define ETC_C_SCALAR_H

ETC_INLINE double etc_k_f64(double d)
{
    return d;
}

ETC_INLINE double etc_select_f64(int mask, double yes, double no)
{
    return (mask != 0) ? yes : no;
}

ETC_INLINE double etc_vabs_f64(double a)
{
    return __builtin_fabs(a);
}

ETC_INLINE double etc_at_least_f64(double a, double lo)
{
    return (a < lo) ? lo : a;
}

ETC_INLINE double etc_at_most_f64(double a, double hi)
{
    return (a > hi) ? hi : a;
}

ETC_INLINE double etc_max_f64(double a, double b)
{
    return ((a > b) || (a != a)) ? a : b;
}

ETC_INLINE double etc_min_f64(double a, double b)
{
    return ((a < b) || (a != a)) ? a : b;
}

ETC_INLINE double etc_vsqrt_f64(double a)
{
    return etc_root_f64(a);
}

ETC_INLINE double etc_vsigmoid_f64(double a)
{
    return 1.0 / (1.0 + etc_exp_f64(-a));
}

ETC_INLINE double etc_vexp_f64(double a)
{
    return etc_exp_f64(a);
}

ETC_INLINE double etc_vexp_and_1_f64(double a)
{
    return 1.0 + etc_exp_f64(a);
}

ETC_INLINE double etc_vlog_f64(double a)
{
    return etc_log_f64(a);
}

ETC_INLINE double etc_vpow_f64(double x, double p, double q)
{
    return etc_pow_f64(x, p + q);
}

ETC_INLINE uint64_t etc_k_wrap(double d)
{
    return (uint64_t)(int64_t)d;
}

ETC_INLINE uint64_t etc_vabs_wrap(uint64_t a)
{
    return ((int64_t)a < 0) ? (0u - a) : a;
}

ETC_INLINE uint64_t etc_at_least_wrap(uint64_t a, uint64_t lo)
{
    return ((int64_t)a < (int64_t)lo) ? lo : a;
}

ETC_INLINE uint64_t etc_at_most_wrap(uint64_t a, uint64_t hi)
{
    return ((int64_t)a > (int64_t)hi) ? hi : a;
}

ETC_INLINE uint64_t etc_max_wrap(uint64_t a, uint64_t b)
{
    return ((int64_t)a > (int64_t)b) ? a : b;
}

ETC_INLINE uint64_t etc_min_wrap(uint64_t a, uint64_t b)
{
    return ((int64_t)a < (int64_t)b) ? a : b;
}

ETC_INLINE uint64_t etc_vpow_wrap(uint64_t x, uint64_t p, uint64_t q)
{
    (void)q;
    uint64_t y = 1;
    for (; p > 0u; p >>= 1) {
        y = ((p & 1u) != 0u) ? (y * x) : y;
        x *= x;
    }
    return y;
}

ETC_INLINE double etc_vfmod_f64(double a, double p)
{
    return etc_fmod_f64(a, p);
}

ETC_INLINE uint64_t etc_vfmod_wrap(uint64_t a, uint64_t p)
{
    return ((int64_t)p == -1) ? 0u : (uint64_t)((int64_t)a % (int64_t)p);
}

ETC_INLINE uint64_t etc_vtruncdiv_wrap(uint64_t a, uint64_t p)
{
    const int64_t b = (int64_t)p;
    return (b == -1) ? (0u - a) : (uint64_t)((int64_t)a / b);
}

ETC_INLINE double etc_vrem_f64(double a, double p)
{
    return etc_rem_f64(a, p);
}

ETC_INLINE uint64_t etc_vrem_wrap(uint64_t a, uint64_t p)
{
    int64_t b = (int64_t)p, r = (b == -1) ? 0 : ((int64_t)a % b);
    return (uint64_t)(((r != 0) && ((r < 0) != (b < 0))) ? (r + b) : r);
}

ETC_INLINE uint64_t etc_vdivisor_wrap(uint64_t b)
{
    return (b == 0u) ? 1u : b;
}

ETC_INLINE uint64_t etc_vpower_wrap(uint64_t x, uint64_t p)
{
    if ((int64_t)p < 0) {
        return ((x == 1u) || ((int64_t)x == -1)) ? (((p & 1u) != 0u) ? x : 1u) : 0u;
    }
    return etc_vpow_wrap(x, p, 0u);
}

ETC_INLINE uint64_t etc_vfloordiv_wrap(uint64_t a, uint64_t p)
{
    return etc_vtruncdiv_wrap(a - etc_vrem_wrap(a, p), p);
}

ETC_INLINE uint64_t etc_vround_wrap(uint64_t a)
{
    return a;
}

ETC_INLINE uint64_t etc_vfloor_wrap(uint64_t a)
{
    return a;
}

ETC_INLINE uint64_t etc_vceil_wrap(uint64_t a)
{
    return a;
}

ETC_INLINE uint64_t etc_vtrunc_wrap(uint64_t a)
{
    return a;
}

ETC_INLINE uint64_t etc_vsign_wrap(uint64_t a)
{
    return ((int64_t)a < 0) ? UINT64_MAX : ((a != 0u) ? 1u : 0u);
}

/* Truncates d.  A number that no int64 can hold becomes INT64_MIN. */
ETC_INLINE int64_t etc_trunc_f64(double d)
{
    return ((d >= -9223372036854775808.0) && (d < 9223372036854775808.0)) ? (int64_t)d : INT64_MIN;
}

/* Returns a / b, rounded towards minus infinity. */
ETC_INLINE int64_t etc_floordiv(int64_t a, int64_t b)
{
    return (a / b) - ((((a % b) != 0) && ((a < 0) != (b < 0))) ? 1 : 0);
}

/* Returns the remainder of a / b, with the sign of b. */
ETC_INLINE int64_t etc_mod(int64_t a, int64_t b)
{
    return a - (etc_floordiv(a, b) * b);
}

#endif
