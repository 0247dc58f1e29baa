/* math64.h -- elementary functions in double, one number at a time, within a few units of double.
 *
 * The float functions that models seldom call are these, rounded: within 0.501 units of float.
 * "Within 3" means 3 units in the last place of double. */
#ifndef ETC_MATH64_H
#define ETC_MATH64_H

#include "runtime-lite/kernels/math.h"

/* Returns tanh x within 3. */
ETC_OUTLINE double etc_tanh_f64(double x)
{
    static const double c[9] = {
        -3.33333333333333315e-01, 1.33333333333332887e-01,  -5.39682539681238527e-02,
        2.18694885212799665e-02,  -8.86323467687326859e-03, 3.59210050319143208e-03,
        -1.45531059888556378e-03, 5.84181868512977922e-04,  -2.03377539135507696e-04};
    const double a = __builtin_fabs(x), u = x * x;
    if (a < 0.3) {
        return ((x * u) * etc_poly_f64(u, c, 9)) + x;
    }
    const double y = 1.0 - (2.0 / (etc_exp_f64(a + a) + 1.0));
    return (x < 0.0) ? -y : y;
}

/* Returns e^x - 1 within 5.  Near zero it is 2 t / (1 - t) with t = tanh(x / 2). */
ETC_OUTLINE double etc_expm1_f64(double x)
{
    if (__builtin_fabs(x) < 0.5) {
        const double t = etc_tanh_f64(0.5 * x);
        return (2.0 * t) / (1.0 - t);
    }
    return etc_exp_f64(x) - 1.0;
}

/* Returns the error function of x within 2.  It is x + x P(x^2) below 1, then 1 - e^P(|x|) with
 * P in three pieces. */
ETC_OUTLINE double etc_erf_f64(double x)
{
    static const double small[13] = {
        1.28379167095512586e-01,  -3.76126389031837483e-01, 1.12837916709548791e-01,
        -2.68661706450767923e-02, 5.22397762481801448e-03,  -8.54832698083379003e-04,
        1.20553311116427105e-04,  -1.49255952668311818e-05, 1.64610004841213676e-06,
        -1.63503127010546952e-07, 1.46597752740474363e-08,  -1.13728488567916737e-09,
        5.95717614774891131e-11};
    static const double middle[3] = {1.5, 2.75, 4.75};
    static const double ln_erfc[3][15] = {
        {-3.38449208955155267e+00, -3.50880080177952758e+00, -8.92640330615036670e-01,
         -2.58241406336345292e-02, 6.00674638643805894e-03, -1.25721668724495974e-03,
         2.15963305165083855e-04, -2.24736802893688808e-05, -2.64683784334171253e-06,
         2.37076651554336359e-06, -8.18738384532050616e-07, 1.92964072912363913e-07,
         -2.79706634962363213e-08, -2.02250179604919778e-09, 2.64923039471506664e-09},
        {-9.20414041032429608e+00, -5.82653595502502863e+00, -9.51286741280884196e-01,
         -8.93325705116246316e-03, 1.70501579136379420e-03, -3.20659323452907898e-04,
         5.75929733603317749e-05, -9.58075323728459917e-06, 1.40493129539639978e-06,
         -1.59913042521637568e-07, 6.15301983433230281e-09, 3.66105637123724044e-09,
         -1.54306004938189969e-09, 4.45503024632651825e-10, -9.23006912102144968e-11},
        {-2.47140589419103236e+01, -9.70208857697245541e+00, -9.80340637090545530e-01,
         -2.45958799451988491e-03, 3.34241980656772625e-04, -4.67856807410466015e-05,
         6.58285267822327002e-06, -9.17726362851648785e-07, 1.25416830338854799e-07,
         -1.66302552846993534e-08, 2.11336121586300577e-09, -2.52972374224654338e-10,
         2.75614149711565471e-11, -2.37350629453827458e-12, 8.69134448191144315e-14}};
    const double a = __builtin_fabs(x);
    if ((a < 1.0) || (x != x)) {
        return (x * etc_poly_f64(x * x, small, 13)) + x;
    }
    const int i = (a < 2.0) ? 0 : ((a < 3.5) ? 1 : 2);
    const double y = (a > 6.0) ? 1.0
                               : (1.0 - etc_exp_f64(etc_poly_f64(a - middle[i], ln_erfc[i], 15)));
    return (x < 0.0) ? -y : y;
}

/* Multiplies the 53 bits m of a number by the 160 bits of 2/pi, from `bit` on, that matter mod 4
 * at its exponent.  The product counts quarter turns: *q becomes the nearest integer mod 4.
 * Returns the signed rest times pi/2. */
ETC_OUTLINE double etc_reduce_large(uint64_t m, uint32_t bit, uint32_t *q)
{
    static const uint32_t two_over_pi[39] = {
        0,           0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
        0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu,
        0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u,
        0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu,
        0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u,
        0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u};
    const uint64_t half[2] = {m & 0xffffffffu, m >> 32};
    uint32_t p[5] = {0, 0, 0, 0, 0}; /* the lowest word first */
    for (int h = 0; h < 2; h++) {
        uint64_t carry = 0;
        for (int j = 0; (h + j) < 5; j++) {
            const uint32_t at = (bit >> 5) + (uint32_t)(4 - j);
            const uint64_t two = ((uint64_t)two_over_pi[at] << 32) | two_over_pi[at + 1u];
            carry += (half[h] * (uint32_t)(two >> (32u - (bit & 31u)))) + p[h + j];
            p[h + j] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    const uint64_t top = ((uint64_t)p[4] << 32) | p[3], low = ((uint64_t)p[2] << 32) | p[1];
    const uint64_t turns = (top + (UINT64_C(1) << 61)) >> 62;
    const double f = (double)(int64_t)(top - (turns << 62)) * 2.16840434497100887e-19; /* 2^-62 */
    *q = (uint32_t)turns & 3u;
    return (f + ((double)low * 1.17549435082228751e-38)) * 1.57079632679489662; /* low: 2^-126 */
}

/* Returns sin x, or cos x if shift is 1, within 2. */
ETC_OUTLINE double etc_sin_shift_f64(double x, uint32_t shift)
{
    static const double s[7] = {-1.66666666666666657e-01, 8.33333333333333148e-03,
                                -1.98412698412650653e-04, 2.75573192193391672e-06,
                                -2.50521062324475780e-08, 1.60585316189861469e-10,
                                -7.58669711770691831e-13};
    static const double c[7] = {4.16666666666666644e-02, -1.38888888888888873e-03,
                                2.48015873015846453e-05, -2.75573192214028242e-07,
                                2.08767557910804218e-09, -1.14704608876099586e-11,
                                4.74587190204329150e-14};
    uint32_t q = 0;
    double r;
    if (!(__builtin_fabs(x) <= 1.79769313486231571e308)) {
        return x - x;
    }
    if (__builtin_fabs(x) < 1048576.0) {
        const double n = etc_nearest_f64(x * 0.63661977236758134);
        const double t = x - (n * 1.57079632673412561e+00);
        r = (t - (n * 6.07710050359346055e-11)) - (n * 2.91273205609335604e-20);
        q = (uint32_t)(int32_t)n;
    } else {
        const uint64_t u = etc_bits_f64(x);
        const uint64_t m = (u & UINT64_C(0xfffffffffffff)) | UINT64_C(0x10000000000000);
        r = etc_reduce_large(m, (uint32_t)((u >> 52) & 0x7ffu) - 1013u, &q);
        r = (x < 0.0) ? -r : r;
        q = (x < 0.0) ? (0u - q) : q;
    }
    q += shift;
    const double u = r * r;
    const double y = ((q & 1u) != 0u) ? ((((u * u) * etc_poly_f64(u, c, 7)) - (0.5 * u)) + 1.0)
                                      : (((r * u) * etc_poly_f64(u, s, 7)) + r);
    return ((q & 2u) != 0u) ? -y : y;
}

/* -- the rows' names ------------------------------------------------------------------ */

ETC_INLINE double etc_sin_f64(double x)
{
    return (x == 0.0) ? x : etc_sin_shift_f64(x, 0);
}

ETC_INLINE double etc_cos_f64(double x)
{
    return etc_sin_shift_f64(x, 1);
}

ETC_INLINE double etc_ceil_f64(double x)
{
    return -etc_floor_f64(-x);
}

ETC_INLINE double etc_divisor_f64(double b)
{
    return b;
}

ETC_INLINE double etc_power_f64(double x, double p)
{
    return etc_pow_f64(x, p);
}

ETC_INLINE double etc_vtrunc_f64(double x)
{
    return __builtin_copysign(etc_floor_f64(__builtin_fabs(x)), x);
}

ETC_INLINE double etc_sign_f64(double x)
{
    return ((x > 0.0) ? 1.0 : 0.0) - ((x < 0.0) ? 1.0 : 0.0);
}

ETC_INLINE double etc_truncdiv_f64(double a, double b)
{
    return etc_vtrunc_f64(a / b);
}

/* -- logarithms ----------------------------------------------------------------------- */

/* Returns ln (1 + x).  The rounding error of the sum corrects the logarithm. */
ETC_OUTLINE double etc_log1p_f64(double x)
{
    const double u = 1.0 + x;
    if (!(x > -1.0) || (u > 1.79769313486231571e308)) {
        return etc_log_f64(u);
    }
    if (x == 0.0) {
        return x;
    }
    return etc_log_f64(u) - (((u - 1.0) - x) / u);
}

/* Returns log2 x, which is exact for powers of two. */
ETC_OUTLINE double etc_log2_f64(double x)
{
    const int is_tiny = x < 2.2250738585072014e-308;
    const double z = (is_tiny != 0) ? (x * 18014398509481984.0) : x;
    if (!(z > 0.0) || (z > 1.79769313486231571e308)) {
        return etc_log_f64(x);
    }
    const uint64_t u = etc_bits_f64(z) - UINT64_C(0x3fe6a09e667f3bcd);
    const double e = (double)((int64_t)(u >> 52) - (((u >> 63) != 0u) ? 4096 : 0));
    const double m =
        etc_from_bits_f64((u & UINT64_C(0xfffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd));
    return (e - ((is_tiny != 0) ? 54.0 : 0.0)) + (etc_log_f64(m) * 1.44269504088896341);
}

ETC_INLINE double etc_log10_f64(double x)
{
    return etc_log2_f64(x) * 0.301029995663981195;
}

/* -- hyperbolic functions ------------------------------------------------------------- */

ETC_OUTLINE double etc_sinh_f64(double x)
{
    const double a = __builtin_fabs(x), t = etc_expm1_f64((a > 709.0) ? (0.5 * a) : a);
    if (!(a <= 709.0)) {
        return __builtin_copysign((0.5 * t) * t, x);
    }
    return __builtin_copysign(0.5 * (t + (t / (t + 1.0))), x);
}

ETC_OUTLINE double etc_cosh_f64(double x)
{
    const double a = __builtin_fabs(x), e = etc_exp_f64((a > 709.0) ? (0.5 * a) : a);
    return (a > 709.0) ? ((0.5 * e) * e) : (0.5 * (e + (1.0 / e)));
}

ETC_OUTLINE double etc_asinh_f64(double x)
{
    const double a = __builtin_fabs(x), b = a * a;
    const double y = (a > 1e9) ? (etc_log_f64(a) + 0.693147180559945309)
                               : etc_log1p_f64(a + (b / (1.0 + etc_root_f64(b + 1.0))));
    return __builtin_copysign(y, x);
}

ETC_OUTLINE double etc_acosh_f64(double x)
{
    const double t = (x < 1.0) ? __builtin_nan("") : (x - 1.0);
    return (x > 1e9) ? (etc_log_f64(x) + 0.693147180559945309)
                     : etc_log1p_f64(t + etc_root_f64(t * (t + 2.0)));
}

ETC_OUTLINE double etc_atanh_f64(double x)
{
    const double a = __builtin_fabs(x);
    return __builtin_copysign(0.5 * etc_log1p_f64((a + a) / (1.0 - a)), x);
}

/* -- angles --------------------------------------------------------------------------- */

ETC_OUTLINE double etc_tan_f64(double x)
{
    return (x == 0.0) ? x : (etc_sin_shift_f64(x, 0) / etc_sin_shift_f64(x, 1));
}

/* Returns atan x as c + atan t, where c is 0, pi/4 or pi/2 and |t| < 0.4143. */
ETC_OUTLINE double etc_atan_f64(double x)
{
    static const double c[11] = {
        -3.33333333333333315e-01, 1.99999999999955186e-01,  -1.42857142846661844e-01,
        1.11111110152275719e-01,  -9.09090457695411747e-02, 7.69218316365089388e-02,
        -6.66451106459937104e-02, 5.85814558762820167e-02,  -5.08543233769907649e-02,
        3.92311556198723030e-02,  -1.91762715175263394e-02};
    const double a = __builtin_fabs(x);
    const int is_far = a > 2.4142135623730950, is_middle = (a > 0.41421356237309505) && !is_far;
    const double t = is_far ? (-1.0 / a) : (is_middle ? ((a - 1.0) / (a + 1.0)) : a), u = t * t;
    const double base = is_far ? 1.57079632679489662 : (is_middle ? 0.785398163397448310 : 0.0);
    const double lost = base * 3.89817183251937553e-17; /* the rounding error of base */
    return __builtin_copysign(base + (t + (((t * u) * etc_poly_f64(u, c, 11)) + lost)), x);
}

/* Returns the angle of the point (x, y), from -pi to pi. */
ETC_OUTLINE double etc_atan2_f64(double y, double x)
{
    const double a = __builtin_fabs(y), b = __builtin_fabs(x);
    const double q = ((a == b) && (a == a)) ? ((a == 0.0) ? 0.0 : 1.0) : (a / b);
    const double r = etc_atan_f64(q);
    const int is_left = (etc_bits_f64(x) >> 63) != 0u;
    const double left = 3.14159265358979312 - (r - 1.22464679914735318e-16);
    return __builtin_copysign(is_left ? left : r, y);
}

ETC_INLINE double etc_asin_f64(double x)
{
    return etc_atan2_f64(x, etc_root_f64((1.0 - x) * (1.0 + x)));
}

ETC_INLINE double etc_acos_f64(double x)
{
    return etc_atan2_f64(etc_root_f64((1.0 - x) * (1.0 + x)), x);
}

#endif
