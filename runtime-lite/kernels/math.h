/* math.h -- elementary functions on vectors of float, and those in double that some of them use.
 *
 * The stated errors are in units in the last place of the exact result.  They are the largest
 * errors that a sweep of four million floats of all magnitudes shows against float64. */
#ifndef ETC_MATH_H
#define ETC_MATH_H

#include "runtime-lite/kernels/vec.h"

/* Returns c[0] + c[1] x + ... + c[n-1] x^(n-1) by Horner's rule. */
ETC_INLINE EtcF etc_poly(EtcF x, const float *c, int n)
{
    EtcF y = etc_splat(c[n - 1]);
    ETC_UNROLL
    for (int i = n - 2; i >= 0; i--) {
        y = etc_fma(y, x, etc_splat(c[i]));
    }
    return y;
}

/* Splits x into n ln2 + r with |r| <= ln2 / 2.  Returns r, and stores e^r - 1 - r in *rest and
 * n + 1.5 * 2^23 in *power; n is from -150 to 128.  x is in [-104, 89] or NaN. */
ETC_INLINE EtcF etc_exp_reduce(EtcF x, EtcF *rest, EtcF *power)
{
    const float c[5] = {5.000000000e-01f, 1.666657776e-01f, 4.166655615e-02f, 8.363173343e-03f,
                        1.392617589e-03f};
    const EtcF t = etc_fma(x, etc_k(1.44269504), etc_k(12582912.0)); /* 1.5 * 2^23 rounds to n */
    const EtcF n = t - etc_k(12582912.0);
    EtcF r = etc_fma(n, etc_k(-6.9314575195e-01), x); /* exact: the constant has 15 bits */
    r = etc_fma(n, etc_k(-1.4286067653e-06), r);
    *power = t;
    *rest = (r * r) * etc_poly(r, c, 5);
    return r;
}

/* Returns e^x within 0.85 for an x in [-104, 89] or NaN. */
ETC_INLINE EtcF etc_exp_between(EtcF x)
{
    EtcF rest, power;
    const EtcF r = etc_exp_reduce(x, &rest, &power);
    const EtcF sum = etc_k(1.0) + r; /* its rounding error is added to rest */
    const EtcF p = sum + (rest + ((etc_k(1.0) - sum) + r));
    return etc_by_power(p, power);
}

/* Returns e^x within 0.85. */
ETC_INLINE EtcF etc_vexp(EtcF x)
{
    return etc_exp_between(etc_at_most(etc_at_least(x, etc_k(-104.0)), etc_k(89.0)));
}

/* Returns e^x - 1 within 1.1. */
ETC_INLINE EtcF etc_vexpm1(EtcF x)
{
    EtcF rest, power, s1, s2;
    const EtcF z = etc_at_most(etc_at_least(x, etc_k(-104.0)), etc_k(89.0));
    const EtcF r = etc_exp_reduce(z, &rest, &power);
    etc_two_powers(power, &s1, &s2);
    const EtcF p = r + rest;
    EtcF y = etc_fma(p * s1, s2, etc_fma(s1, s2, etc_k(-1.0)));
    y = etc_select((EtcI)(x > etc_k(88.0)), (s1 * (p + etc_k(1.0))) * s2, y);
    return etc_select((EtcI)(etc_vabs(x) < etc_k(1e-10)), x, y);
}

/* Returns ln x within 0.8. */
ETC_INLINE EtcF etc_vlog(EtcF x)
{
    const float c[9] = {3.333333135e-01f,  -2.499999702e-01f, 2.000071555e-01f,
                        -1.666780263e-01f, 1.424905807e-01f,  -1.242568716e-01f,
                        1.168541983e-01f,  -1.147973388e-01f, 6.971611828e-02f};
    EtcI tiny = etc_mask((EtcI)(etc_vabs(x) < etc_k(1.17549435e-38)));
    /* The bits of a subnormal are its integer times 2^149; some vectors take it for zero. */
    EtcF z = etc_select(tiny, __builtin_convertvector((EtcI)etc_vabs(x), EtcF), x);
    /* z = 2^e m with m in [sqrt(1/2), sqrt(2)) */
    EtcU u = (EtcU)z - 0x3f3504f3u;
    EtcI e = ((EtcI)u >> 23) - (tiny & 149);
    EtcF f = (EtcF)((u & 0x007fffffu) + 0x3f3504f3u) - etc_k(1.0);
    EtcF n = (EtcF)((EtcU)(e + 0x4b400000)) - etc_k(12582912.0);
    EtcF f2 = f * f;
    EtcF y = etc_fma(f * f2, etc_poly(f, c, 9), n * etc_k(1.4286067653e-06));
    y = etc_fma(f2, etc_k(-0.5), y) + f;
    y = etc_fma(n, etc_k(6.9314575195e-01), y);
    y = etc_select((EtcI)(x == etc_splat(__builtin_inff())), x, y);
    y = etc_select((EtcI)(z == etc_k(0.0)), etc_splat(-__builtin_inff()), y);
    /* For NaN, x - x is NaN.  Numbers below zero give 0 / 0. */
    return etc_select((EtcI)(x >= etc_k(0.0)), y, (x - x) / etc_k(0.0));
}

/* Returns 1 / (1 + e^-x) within 2.1, or 0 if that is subnormal. */
ETC_INLINE EtcF etc_vsigmoid(EtcF x)
{
    return etc_k(1.0) / (etc_k(1.0) + etc_vexp(-x));
}

/* Returns tanh x within 0.95. */
ETC_INLINE EtcF etc_vtanh(EtcF x)
{
    const float c[7] = {-3.333333135e-01f, 1.333312839e-01f, -5.393479019e-02f, 2.166011557e-02f,
                        -8.218921721e-03f, 2.510459395e-03f, -4.206954909e-04f};
    const EtcF a = etc_vabs(x), u = a * a;
    const EtcF small = etc_fma(a * u, etc_poly(u, c, 7), a);
    const EtcF big = etc_k(1.0) - (etc_k(2.0) / (etc_vexp(a + a) + etc_k(1.0)));
    const EtcF y = etc_select((EtcI)(a < etc_k(1.0)), small, big);
    return (EtcF)((EtcU)y | ((EtcU)x & 0x80000000u));
}

/* Column n: the polynomial in x - n 529 / 2048 that is the error function near there; for n = 0
 * without x.  From 3.925 on the function is 1. */
static const float etc_erf_near[6][16] = {
    {0.0f, 2.851068974e-01f, 5.349673033e-01f, 7.268675566e-01f, 8.560311794e-01f,
     9.322193265e-01f, 9.716027975e-01f, 9.894435406e-01f, 9.965258837e-01f, 9.989896417e-01f,
     9.997407198e-01f, 9.999413490e-01f, 9.999883175e-01f, 9.999979734e-01f, 9.999997020e-01f,
     9.999999404e-01f},
    {1.283791661e-01f, 1.055551171e+00f, 8.640757203e-01f, 6.189743876e-01f, 3.880091012e-01f,
     2.128430754e-01f, 1.021704972e-01f, 4.291803762e-02f, 1.577620395e-02f, 5.074737128e-03f,
     1.428475953e-03f, 3.518687445e-04f, 7.584672130e-05f, 1.430676002e-05f, 2.361533689e-06f,
     3.465722784e-07f},
    {2.874769223e-07f, -2.726441920e-01f, -4.463833272e-01f, -4.796355665e-01f,
     -4.008967578e-01f, -2.748807371e-01f, -1.583521962e-01f, -7.761282474e-02f,
     -3.260293975e-02f, -1.178802364e-02f, -3.685257398e-03f, -9.950370295e-04f,
     -2.332324511e-04f, -5.629269072e-05f, -1.577236799e-05f, 1.958712346e-05f},
    {-3.761420250e-01f, -3.049291372e-01f, -1.343109608e-01f, 4.145859927e-02f,
     1.467981935e-01f, 1.657331437e-01f, 1.295450628e-01f, 7.923369855e-02f, 3.965157643e-02f,
     1.659195311e-02f, 5.877560936e-03f, 1.776400488e-03f, 4.604795249e-04f, 1.027596227e-04f,
     1.979583249e-05f, 7.136417844e-05f},
    {2.911196789e-04f, 1.292790025e-01f, 1.826831400e-01f, 1.428887546e-01f, 5.819098651e-02f,
     -1.542277355e-02f, -4.684942588e-02f, -4.492659494e-02f, -2.994790301e-02f,
     -1.594391465e-02f, -6.664566696e-03f, -2.487192862e-03f, -7.522297092e-04f,
     3.207734553e-04f, 3.870657238e-04f, -3.772593802e-03f},
    {1.109471023e-01f, 7.913655043e-02f, 3.619683674e-03f, -5.667753890e-02f, -6.760206819e-02f,
     -4.185058549e-02f, -9.448220022e-03f, 9.229855612e-03f, 1.292186696e-02f, 9.293029085e-03f,
     4.824578296e-03f, 1.970597310e-03f, 6.568477256e-04f, 1.822246268e-04f, 4.256902321e-05f,
     -2.439664304e-02f}};

/* etc_verf for one float. */
ETC_OUTLINE float etc_erf_of(float x)
{
    const float step = (float)(529.0 / 2048.0), a = __builtin_fabsf(x), z = (a > 3.925f) ? 3.925f : a;
    const float at = etc_fused(z, (float)(2048.0 / 529.0), 12582912.0f);
    const float t = etc_fused(12582912.0f - at, step, z);
    uint32_t n;
    __builtin_memcpy(&n, &at, sizeof n);
    const float *c = &etc_erf_near[0][n & 15u];
    float y = c[5 * 16];
    for (int i = 4; i > 0; i--) {
        y = etc_fused(y, t, c[i * 16]);
    }
    return __builtin_copysignf(etc_fused(y, t, (t < c[0]) ? c[0] : t), x);
}

/* Returns the error function of x within 1.2. */
ETC_INLINE EtcF etc_verf(EtcF x)
{
    if (ETC_PIXELS == 1) { /* a CPU without vectors */
        EtcF r = x;
        for (int i = 0; i < ETC_LANES; i++) {
            r[i] = etc_erf_of(x[i]);
        }
        return r;
    }
    const EtcF step = etc_k(529.0 / 2048.0), z = etc_at_most(etc_vabs(x), etc_k(3.925));
    const EtcF at = etc_fma(z, etc_k(2048.0 / 529.0), etc_k(12582912.0)); /* 1.5 * 2^23 rounds to n */
    const EtcF t = etc_fma(etc_k(12582912.0) - at, step, z); /* exact */
    EtcF y = etc_of_16(etc_erf_near[5], (EtcI)at);
    ETC_UNROLL
    for (int i = 4; i > 0; i--) {
        y = etc_fma(y, t, etc_of_16(etc_erf_near[i], (EtcI)at));
    }
    y = etc_fma(y, t, etc_at_least(t, etc_of_16(etc_erf_near[0], (EtcI)at)));
    return (EtcF)((EtcU)y | ((EtcU)x & 0x80000000u));
}

/* -- double, lane by lane: what float would make too coarse --------------------------------- */

ETC_INLINE double etc_poly_f64(double x, const double *c, int n)
{
    double y = c[n - 1];
    for (int i = n - 2; i >= 0; i--) {
        y = (y * x) + c[i];
    }
    return y;
}

ETC_INLINE uint64_t etc_bits_f64(double d)
{
    uint64_t u;
    __builtin_memcpy(&u, &d, sizeof u);
    return u;
}

ETC_INLINE double etc_from_bits_f64(uint64_t u)
{
    double d;
    __builtin_memcpy(&d, &u, sizeof d);
    return d;
}

/* Returns e^x within 2 units of double. */
ETC_INLINE double etc_exp_f64(double x)
{
    const double c[11] = {5.00000000000000000e-01, 1.66666666666666713e-01, 4.16666666666666713e-02,
                          8.33333333332614105e-03, 1.38888888888837525e-03, 1.98412698748004929e-04,
                          2.48015873255333634e-05, 2.75572554257464351e-06, 2.75572736613486373e-07,
                          2.51052063739570109e-08, 2.09146793765839349e-09};
    if (!(x > -746.0)) {
        return (x != x) ? x : 0.0;
    }
    if (x > 710.0) {
        return __builtin_inf();
    }
    double n = ((x * 1.4426950408889634) + 6755399441055744.0) - 6755399441055744.0;
    double r = (x - (n * 6.93147180369123816e-01)) - (n * 1.90821492927058770e-10);
    int64_t i = (int64_t)n;
    int64_t half = i / 2;
    double p = ((r * r) * etc_poly_f64(r, c, 11)) + r;
    double s1 = etc_from_bits_f64((uint64_t)(half + 1023) << 52);
    double s2 = etc_from_bits_f64((uint64_t)((i - half) + 1023) << 52);
    return ((p + 1.0) * s1) * s2;
}

/* Returns ln x within 2 units of double. */
ETC_INLINE double etc_log_f64(double x)
{
    const double c[8] = {6.66666666666666630e-01, 4.00000000000008793e-01, 2.85714285708036142e-01,
                         2.22222223917139167e-01, 1.81817956401329056e-01, 1.53862397028146580e-01,
                         1.32687731386568863e-01, 1.30866261478401025e-01};
    if (!(x > 0.0) || (x > 1.79769313486231571e308)) {
        return (x == 0.0) ? -__builtin_inf() : ((x > 0.0) ? x : ((x - x) / 0.0));
    }
    int64_t e = 0;
    if (x < 2.2250738585072014e-308) {
        x = x * 18014398509481984.0;
        e = -54;
    }
    uint64_t u = etc_bits_f64(x) - UINT64_C(0x3fe6a09e667f3bcd);
    e += (int64_t)(u >> 52) - (((u >> 63) != 0u) ? 4096 : 0);
    double m = etc_from_bits_f64((u & UINT64_C(0xfffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd));
    double f = m - 1.0, s = f / (2.0 + f), s2 = s * s, n = (double)e;
    double y = ((s * s2) * etc_poly_f64(s2, c, 8)) + (n * 1.90821492927058770e-10);
    /* 2 s is f - s f.  f is exact, so the rounding error of s has less weight. */
    return (n * 6.93147180369123816e-01) + (f - ((s * f) - y));
}

/* Returns x^y as PyTorch computes it.  If y is a small integer, the power is multiplied out; if
 * it is 1/2, the power is the square root.  (Loops of a table of cores share it.) */
#if defined(ETC_ISA_TABLE)
ETC_OUTLINE
#else
ETC_INLINE
#endif
double etc_pow_f64(double x, double y)
{
    double whole = (__builtin_fabs(y) < 9e15) ? (double)(int64_t)y : y; /* huge y are even */
    int is_odd = (whole == y) && (__builtin_fabs(y) < 9e15) && (((int64_t)y & 1) != 0);
    if ((whole == y) && (__builtin_fabs(y) <= 64.0)) {
        double r = 1.0, b = x;
        for (int64_t n = (int64_t)__builtin_fabs(y); n > 0; n >>= 1) {
            r = ((n & 1) != 0) ? (r * b) : r;
            b = b * b;
        }
        return (y < 0.0) ? (1.0 / r) : r;
    }
    if (__builtin_fabs(y) == 0.5) {
        return (y < 0.0) ? (1.0 / etc_root_f64(x)) : etc_root_f64(x);
    }
    double a = __builtin_fabs(x);
    if ((x != x) || (y != y)) {
        return (x == 1.0) ? 1.0 : (x + y);
    }
    if ((x < 0.0) && (whole != y) && (a <= 1.79769313486231571e308)) {
        return (x - x) / 0.0;
    }
    double r = 1.0;
    if (a != 1.0) {
        r = etc_exp_f64(y * etc_log_f64(a));
    }
    return ((x < 0.0) && is_odd) ? -r : r;
}

/* Splits a float x into q pi/2 + r with |r| <= pi/4, and returns q mod 4.  Below 2^20, pi/2 in
 * three pieces is exact enough.  Above, the 24 bits of x are multiplied by the 96 bits of 2/pi
 * that matter mod 4 (Payne and Hanek 1983). */
ETC_INLINE uint32_t etc_reduce_pi(float x, double *r)
{
    const uint32_t two_over_pi[8] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                     0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    double d = (double)x;
    if (__builtin_fabs(d) < 1048576.0) {
        double n = ((d * 0.63661977236758134) + 6755399441055744.0) - 6755399441055744.0;
        double t = d - (n * 1.57079632673412561e+00);
        *r = (t - (n * 6.07710050359346055e-11)) - (n * 2.91273205609335604e-20);
        return (uint32_t)(int32_t)n & 3u;
    }
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    uint64_t m = (u & 0x007fffffu) | 0x00800000u;
    uint32_t bit = ((u >> 23) & 0xffu) - 120u; /* the table's bit of weight 2^1 in the product */
    uint32_t w[3];
    if (bit >= 135u) { /* x is infinite or NaN */
        *r = d - d;
        return 0;
    }
    for (uint32_t i = 0; i < 3u; i++) {
        uint32_t at = (bit >> 5) + i, by = bit & 31u;
        uint64_t two = ((uint64_t)two_over_pi[at] << 32) | two_over_pi[at + 1u];
        w[i] = (uint32_t)(two >> (32u - by));
    }
    uint64_t p1 = (m * w[1]) + ((m * w[2]) >> 32);
    uint64_t p = (m * w[0] << 32) + p1; /* mod 4, in units of 2^-62 */
    uint64_t q = (p + (UINT64_C(1) << 61)) >> 62;
    double f = (double)(int64_t)(p - (q << 62)) * 3.40612158008655459e-19; /* pi/2 * 2^-62 */
    *r = (x < 0.0f) ? -f : f;
    return (uint32_t)((x < 0.0f) ? (0u - q) : q) & 3u;
}

/* Returns sin x, or cos x if shift is 1, within 0.501. */
ETC_INLINE float etc_sin_shift(float x, uint32_t shift)
{
    const double s[7] = {-1.66666666666666657e-01, 8.33333333333333148e-03,
                         -1.98412698412650653e-04, 2.75573192193391672e-06,
                         -2.50521062324475780e-08, 1.60585316189861469e-10,
                         -7.58669711770691831e-13};
    const double c[7] = {4.16666666666666644e-02, -1.38888888888888873e-03,
                         2.48015873015846453e-05, -2.75573192214028242e-07,
                         2.08767557910804218e-09, -1.14704608876099586e-11,
                         4.74587190204329150e-14};
    double r;
    uint32_t q = etc_reduce_pi(x, &r) + shift;
    double u = r * r, y;
    if ((q & 1u) != 0u) {
        y = (((u * u) * etc_poly_f64(u, c, 7)) - (0.5 * u)) + 1.0;
    } else {
        y = ((r * u) * etc_poly_f64(u, s, 7)) + r;
    }
    return (float)(((q & 2u) != 0u) ? -y : y);
}

ETC_INLINE EtcF etc_vsin(EtcF x)
{
    EtcF y = x;
    for (int i = 0; i < ETC_LANES; i++) {
        y[i] = (x[i] == 0.0f) ? x[i] : etc_sin_shift(x[i], 0);
    }
    return y;
}

ETC_INLINE EtcF etc_vcos(EtcF x)
{
    EtcF y = x;
    for (int i = 0; i < ETC_LANES; i++) {
        y[i] = etc_sin_shift(x[i], 1);
    }
    return y;
}

/* Returns the exact remainder of a / b, whose quotient is truncated.  It has the sign of a.  It
 * is NaN if a is infinite or b is 0. */
ETC_INLINE double etc_fmod_f64(double a, double b)
{
    double x = __builtin_fabs(a), y = __builtin_fabs(b), t = y;
    if (((x - x) != 0.0) || (y == 0.0) || (y != y)) {
        return __builtin_nan("");
    }
    while ((y <= x) && (t <= (x * 0.5))) {
        t *= 2.0;
    }
    for (; (y <= x) && (t >= y); t *= 0.5) { /* t is y times a power of two */
        x -= (x >= t) ? t : 0.0;
    }
    return __builtin_copysign(x, a);
}

/* Returns Python's a % b, which has the sign of b. */
ETC_INLINE double etc_rem_f64(double a, double b)
{
    const double r = etc_fmod_f64(a, b);
    return ((r != 0.0) && ((r < 0.0) != (b < 0.0))) ? (r + b) : r;
}

ETC_INLINE double etc_round_f64(double x)
{
    const double a = __builtin_fabs(x), whole = (a + 4503599627370496.0) - 4503599627370496.0;
    return __builtin_copysign((a < 4503599627370496.0) ? whole : a, x);
}

ETC_INLINE double etc_floor_f64(double x)
{
    const double y = etc_round_f64(x);
    return y - ((y > x) ? 1.0 : 0.0);
}

/* Returns the largest integer that is at most a / b, computed from the remainder. */
ETC_INLINE double etc_floordiv_f64(double a, double b)
{
    const double m = etc_fmod_f64(a, b);
    const double q = ((a - m) / b) - (((m != 0.0) && ((b < 0.0) != (m < 0.0))) ? 1.0 : 0.0);
    if (b == 0.0) {
        return a / b;
    }
    return (q == 0.0) ? __builtin_copysign(0.0, a / b) : etc_round_f64(q);
}

/* Returns b.  The variant for integers returns 1 for 0, so that no division traps; kernels refuse 0
 * before. */
ETC_INLINE EtcF etc_vdivisor(EtcF b)
{
    return b;
}

ETC_INLINE EtcF etc_vfloordiv(EtcF x, EtcF p)
{
    EtcF y = x;
    for (int i = 0; i < ETC_LANES; i++) {
        y[i] = (float)etc_floordiv_f64((double)x[i], (double)p[i]);
    }
    return y;
}

ETC_INLINE EtcF etc_vtruncdiv(EtcF x, EtcF p)
{
    return etc_vtrunc(x / p);
}

ETC_INLINE EtcF etc_vfmod(EtcF x, EtcF p)
{
    EtcF y = x;
    for (int i = 0; i < ETC_LANES; i++) {
        y[i] = (float)etc_fmod_f64((double)x[i], (double)p[i]);
    }
    return y;
}

ETC_INLINE EtcF etc_vrem(EtcF x, EtcF p)
{
    EtcF y = x;
    for (int i = 0; i < ETC_LANES; i++) {
        y[i] = (float)etc_rem_f64((double)x[i], (double)p[i]);
    }
    return y;
}

/* Returns x^p within 0.501. */
ETC_INLINE EtcF etc_vpower(EtcF x, EtcF p)
{
    EtcF y = x;
    for (int i = 0; i < ETC_LANES; i++) {
        y[i] = (float)etc_pow_f64((double)x[i], (double)p[i]);
    }
    return y;
}

/* Returns x^(p + q) within 0.501.  All lanes of p are equal, and of q, which is what p lacks of the
 * exponent: models have exponents in double. */
ETC_INLINE EtcF etc_vpow(EtcF x, EtcF p, EtcF q)
{
    EtcF y = x * x;
    if ((p[0] == 2.0f) && (q[0] == 0.0f)) { /* the square has the same bits in double */
        return y;
    }
    for (int i = 0; i < ETC_LANES; i++) {
        y[i] = (float)etc_pow_f64((double)x[i], (double)p[0] + (double)q[0]);
    }
    return y;
}

#endif
