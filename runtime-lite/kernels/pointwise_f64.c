/* pointwise_f64.c -- the rows of pointwise.def for double, one element at a time, and the
 * elementary functions in double that only they need. */
#include "runtime-lite/kernels/cores.h"

/* tanh x within 3. */
static double tanh_f64(double x)
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

/* e^x - 1 within 5: near zero 2 t / (1 - t) with t = tanh(x / 2). */
static double expm1_f64(double x)
{
    if (__builtin_fabs(x) < 0.5) {
        const double t = tanh_f64(0.5 * x);
        return (2.0 * t) / (1.0 - t);
    }
    return etc_exp_f64(x) - 1.0;
}

/* The error function within 2: x + x P(x^2) below 1, then 1 - e^P(|x|) in three pieces. */
static double erf_f64(double x)
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

/* The 53 bits m of a number at exponent e, times the 160 bits of 2/pi that matter mod 4, as a
 * fraction of a turn's quarter: mod 4 in *q, the signed rest times pi/2 returned. */
static double reduce_large(uint64_t m, uint32_t bit, uint32_t *q)
{
    static const uint32_t two_over_pi[39] = {
        0,           0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
        0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu,
        0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u,
        0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu,
        0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u,
        0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u};
    const uint64_t half[2] = {m & 0xffffffffu, m >> 32};
    uint32_t p[5] = {0, 0, 0, 0, 0}; /* lowest word first */
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

/* sin x, or cos x for shift 1, within 2. */
static double sin_shift_f64(double x, uint32_t shift)
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
        const double n = ((x * 0.63661977236758134) + 6755399441055744.0) - 6755399441055744.0;
        const double t = x - (n * 1.57079632673412561e+00);
        r = (t - (n * 6.07710050359346055e-11)) - (n * 2.91273205609335604e-20);
        q = (uint32_t)(int32_t)n;
    } else {
        const uint64_t u = etc_bits_f64(x);
        const uint64_t m = (u & UINT64_C(0xfffffffffffff)) | UINT64_C(0x10000000000000);
        r = reduce_large(m, (uint32_t)((u >> 52) & 0x7ffu) - 1013u, &q);
        r = (x < 0.0) ? -r : r;
        q = (x < 0.0) ? (0u - q) : q;
    }
    q += shift;
    const double u = r * r;
    const double y = ((q & 1u) != 0u) ? ((((u * u) * etc_poly_f64(u, c, 7)) - (0.5 * u)) + 1.0)
                                      : (((r * u) * etc_poly_f64(u, s, 7)) + r);
    return ((q & 2u) != 0u) ? -y : y;
}

/* The names that the rows use, for one double. */
#define etc_k(d) (d)
#define etc_select(mask, yes, no) ((mask) ? (yes) : (no))
#define etc_at_least(a, lo) (((a) < (lo)) ? (lo) : (a))
#define etc_at_most(a, hi) (((a) > (hi)) ? (hi) : (a))
#define etc_max(a, b) ((((a) > (b)) || ((a) != (a))) ? (a) : (b))
#define etc_min(a, b) ((((a) < (b)) || ((a) != (a))) ? (a) : (b))
#define etc_vabs(a) __builtin_fabs(a)
#define etc_vcos(a) sin_shift_f64(a, 1)
#define etc_verf(a) erf_f64(a)
#define etc_vexp(a) etc_exp_f64(a)
#define etc_vexpm1(a) expm1_f64(a)
#define etc_vfmod(a, p) etc_fmod_f64(a, p)
#define etc_vlog(a) etc_log_f64(a)
#define etc_vpow(a, p, q) etc_pow_f64(a, p)
#define etc_vrem(a, p) etc_rem_f64(a, p)
#define etc_vsigmoid(a) (1.0 / (1.0 + etc_exp_f64(-(a))))
#define etc_vsin(a) (((a) == 0.0) ? (a) : sin_shift_f64(a, 0))
#define etc_vsqrt(a) __builtin_sqrt(a)
#define etc_vtanh(a) tanh_f64(a)

#define ROW(name, expr, second)                                                                 \
    static void row_##name(const void *pa, const void *pb, const EtcPqr *s, void *y, int64_t n) \
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

EtcPointwise *const etc_pointwise_f64[ETC_N_ROWS] = {
#define UNARY(name, expr) row_##name,
#define BINARY UNARY
#include "runtime-lite/kernels/pointwise.def"
};
