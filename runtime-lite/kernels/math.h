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

/* Splits x into n ln2 + r with |r| <= ln2 / 2.  Returns c, where e^r = 1 + r + r^2 c; stores r, and
 * 1.5 * 2^23 + add + n in *power.  n is from -150 to 128; x is in [-104, 89] or NaN. */
ETC_INLINE EtcF etc_exp_reduce(EtcF x, double add, EtcF *r, EtcF *power)
{
    const EtcF start = etc_k(12582912.0 + add); /* t is rounded to an integer */
    const EtcF t = etc_fma(x, etc_k(1.44269504), start), n = t - start;
    const EtcF near = etc_fma(n, etc_k(-6.9314575195e-01), x); /* exact: the constant has 15 bits */
    const EtcF z = etc_fma(n, etc_k(-1.4286067653e-06), near), z2 = z * z;
    const EtcF low = etc_fma(z, etc_k(1.666657776e-01), etc_k(5.000000000e-01));
    const EtcF high = etc_fma(z, etc_k(8.363173343e-03), etc_k(4.166655615e-02));
    *r = z;
    *power = t;
    return etc_fma(z2, etc_fma(z2, etc_k(1.392617589e-03), high), low);
}

/* Returns 1 + r + r^2 c. */
ETC_INLINE EtcF etc_exp_sum(EtcF r, EtcF c)
{
    const EtcF sum = etc_k(1.0) + r; /* its rounding error is added to the rest */
    return sum + etc_fma(r * r, c, (etc_k(1.0) - sum) + r);
}

/* Returns e^x within 0.85. */
ETC_INLINE EtcF etc_vexp(EtcF x)
{
    EtcF r, power, s1, s2;
    const EtcF z = etc_at_most(etc_at_least(x, etc_k(-104.0)), etc_k(89.0));
    const EtcF c = etc_exp_reduce(z, 0.0, &r, &power);
    etc_two_powers(power, &s1, &s2);
    return (etc_exp_sum(r, c) * s1) * s2;
}

/* Returns 2^-up e^x within 0.85, for an x in [-104, 89] or NaN.  The result must be a normal
 * float. */
ETC_INLINE EtcF etc_exp_normal(EtcF x, double up)
{
    EtcF r, power;
    const EtcF c = etc_exp_reduce(x, 127.0 - up, &r, &power);
    return etc_exp_sum(r, c) * (EtcF)((EtcU)power << 23); /* the exponent's bits of 2^(n - up) */
}

/* Returns e^x within 0.85, for an x that is not above 0. */
ETC_INLINE EtcF etc_exp_below(EtcF x)
{
    if (ETC_PIXELS == 1) { /* a CPU without vectors: one function is smaller than two */
        return etc_vexp(x);
    }
    return etc_exp_normal(etc_at_least(x, etc_k(-104.0)), -64.0) * etc_k(5.42101086242752217e-20);
}

/* Returns 1 + e^x within 1.2. */
ETC_INLINE EtcF etc_vexp_and_1(EtcF x)
{
    if (ETC_PIXELS == 1) {
        return etc_k(1.0) + etc_vexp(x);
    }
    const EtcF z = etc_at_most(etc_at_least(x, etc_k(-40.0)), etc_k(89.0));
    return etc_fma(etc_exp_normal(z, 64.0), etc_k(18446744073709551616.0), etc_k(1.0));
}

/* Returns e^x - 1 within 1.7. */
ETC_INLINE EtcF etc_vexpm1(EtcF x)
{
    EtcF r, power, s1, s2;
    const EtcF z = etc_at_most(etc_at_least(x, etc_k(-104.0)), etc_k(89.0));
    const EtcF c = etc_exp_reduce(z, 0.0, &r, &power);
    etc_two_powers(power, &s1, &s2);
    const EtcF p = etc_fma(r * r, c, r);
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

/* Returns 1 / (1 + e^-x) within 2.3, or 0 if that is subnormal. */
ETC_INLINE EtcF etc_vsigmoid(EtcF x)
{
    return etc_k(1.0) / etc_vexp_and_1(-x);
}

/* Returns tanh x within 0.95. */
ETC_INLINE EtcF etc_vtanh(EtcF x)
{
    const float c[7] = {-3.333333135e-01f, 1.333312839e-01f, -5.393479019e-02f, 2.166011557e-02f,
                        -8.218921721e-03f, 2.510459395e-03f, -4.206954909e-04f};
    const EtcF a = etc_vabs(x), u = a * a;
    const EtcF small = etc_fma(a * u, etc_poly(u, c, 7), a);
    const EtcF big = etc_k(1.0) - (etc_k(2.0) / etc_vexp_and_1(a + a));
    const EtcF y = etc_select((EtcI)(a < etc_k(1.0)), small, big);
    return (EtcF)((EtcU)y | ((EtcU)x & 0x80000000u));
}

/* Column n: the polynomial in x - n 67 / 128 that is the error function near there; for n = 0
 * without x.  From 3.925 on the function is 1. */
static const float etc_erf_near[8][8] = {
    {0.0f, 5.408531427e-01f, 8.612614274e-01f, 9.736325741e-01f, 9.969336987e-01f,
     9.997854829e-01f, 9.999910593e-01f, 9.999997616e-01f},
    {1.283791661e-01f, 8.579541445e-01f, 3.771301210e-01f, 9.583770484e-02f, 1.407990325e-02f,
     1.195861842e-03f, 5.871923713e-05f, 1.666828666e-06f},
    {2.505109364e-07f, -4.490832686e-01f, -3.948088288e-01f, -1.504908055e-01f, -2.948532999e-02f,
     -3.133026417e-03f, -1.824013016e-04f, -1.351055062e-06f},
    {-3.761370480e-01f, -1.292667091e-01f, 1.498317569e-01f, 1.256039441e-01f, 3.645547852e-02f,
     5.062203389e-03f, 3.665477561e-04f, 1.435099512e-05f},
    {1.648908656e-04f, 1.834172159e-01f, 5.321941152e-02f, -4.861671850e-02f, -2.812841907e-02f,
     -5.456218962e-03f, -5.917145754e-04f, -2.081599814e-04f},
    {1.117070541e-01f, 1.683641021e-04f, -6.717011333e-02f, -7.265275344e-03f, 1.280104183e-02f,
     4.325175658e-03f, 5.357518094e-04f, 3.233681491e-05f},
    {3.404309973e-03f, -4.714871198e-02f, 8.398414589e-03f, 1.818625629e-02f, -3.286608029e-03f,
     -3.492257558e-03f, 3.204370150e-04f, 1.750444528e-03f},
    {-3.014005907e-02f, 8.700447157e-03f, 1.271399390e-02f, -5.439770874e-03f, -2.291105688e-03f,
     6.545195938e-04f, 2.563481685e-04f, 1.032503769e-05f}};

/* etc_verf for one float. */
ETC_OUTLINE float etc_erf_of(float x)
{
    const float step = (float)(67.0 / 128.0), a = __builtin_fabsf(x), z = (a > 3.925f) ? 3.925f : a;
    const float at = etc_fused(z, (float)(128.0 / 67.0), 12582912.0f);
    const float t = etc_fused(12582912.0f - at, step, z);
    uint32_t n;
    __builtin_memcpy(&n, &at, sizeof n);
    const float *c = &etc_erf_near[0][n & 7u];
    float y = c[7 * 8];
    for (int i = 6; i > 0; i--) {
        y = etc_fused(y, t, c[i * 8]);
    }
    return __builtin_copysignf(etc_fused(y, t, (t < c[0]) ? c[0] : t), x);
}

/* Returns the error function of x within 0.9. */
ETC_INLINE EtcF etc_verf(EtcF x)
{
    if (ETC_PIXELS == 1) { /* a CPU without vectors */
        EtcF r = x;
        for (int i = 0; i < ETC_LANES; i++) {
            r[i] = etc_erf_of(x[i]);
        }
        return r;
    }
    const EtcF step = etc_k(67.0 / 128.0), z = etc_at_most(etc_vabs(x), etc_k(3.925));
    const EtcF at = etc_fma(z, etc_k(128.0 / 67.0), etc_k(12582912.0)); /* 1.5 * 2^23 rounds to n */
    const EtcF t = etc_fma(etc_k(12582912.0) - at, step, z); /* exact */
    const EtcI column = (EtcI)at;
    EtcF y = etc_of_8(etc_erf_near[7], column);
    ETC_UNROLL
    for (int i = 6; i > 0; i--) {
        y = etc_fma(y, t, etc_of_8(etc_erf_near[i], column));
    }
    y = etc_fma(y, t, etc_at_least(t, etc_of_8(etc_erf_near[0], column)));
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
    double n = etc_nearest_f64(x * 1.4426950408889634);
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
        double n = etc_nearest_f64(d * 0.63661977236758134);
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
