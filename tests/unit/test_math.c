/* test_math.c -- tests the elementary functions: their errors against float64 over all magnitudes,
 * the same bits on every instruction set, and their values for infinities, NaN, zeros and the
 * largest and smallest numbers. */
#include "runtime-lite/etc_rt.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/isa.h"
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 4096 };

static double d_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}
static double d_rsqrt(double x)
{
    return 1.0 / sqrt(x);
}
static double d_reciprocal(double x)
{
    return 1.0 / x;
}
static double d_silu(double x)
{
    return x / (1.0 + exp(-x));
}
static double d_elu(double x)
{
    return (x > 0.0) ? x : expm1(x);
}
static double d_pow17(double x)
{
    return pow(x, 1.7);
}
static double d_pow3(double x)
{
    return x * x * x;
}

/* Largest error allowed, in units in the last place of the exact result: what math.h states, and
 * at most twice torch's own on the same sweep (torch 2.13: exp 0.56, log 0.83, tanh 0.51, sigmoid
 * 2.08, silu 2.18, elu 1.00, erf 0.72, sin and cos 0.60, sqrt 0.75, rsqrt 1.48). */
static const struct {
    const char *name;
    EtcRow row;
    double (*exact)(double);
    double bound;
    float p, q, r;
    double from; /* results nearer to zero are not judged */
} functions[] = {
    {"exp", ETC_ROW_exp, exp, 0.85, 0, 0, 0, 0.0},
    {"log", ETC_ROW_log, log, 0.8, 0, 0, 0, 0.0},
    {"tanh", ETC_ROW_tanh, tanh, 0.95, 0, 0, 0, 0.0},
    {"sigmoid", ETC_ROW_sigmoid, d_sigmoid, 2.1, 0, 0, 0, 1.2e-38},
    {"silu", ETC_ROW_silu, d_silu, 2.2, 0, 0, 0, 1.2e-36},
    {"elu", ETC_ROW_elu, d_elu, 1.1, 1, 1, 1, 0.0},
    {"erf", ETC_ROW_erf, erf, 0.9, 0, 0, 0, 0.0},
    {"sin", ETC_ROW_sin, sin, 0.501, 0, 0, 0, 0.0},
    {"cos", ETC_ROW_cos, cos, 0.501, 0, 0, 0, 0.0},
    {"sqrt", ETC_ROW_sqrt, sqrt, 0.5, 0, 0, 0, 0.0},
    {"rsqrt", ETC_ROW_rsqrt, d_rsqrt, 1.5, 0, 0, 0, 0.0},
    {"reciprocal", ETC_ROW_reciprocal, d_reciprocal, 0.5, 0, 0, 0, 0.0},
    {"pow 1.7", ETC_ROW_pow_scalar, d_pow17, 0.501, 1.7f, (float)(1.7 - (double)1.7f), 0, 0.0},
    {"acos", ETC_ROW_acos, acos, 0.501, 0, 0, 0, 0.0},
    {"acosh", ETC_ROW_acosh, acosh, 0.501, 0, 0, 0, 0.0},
    {"asin", ETC_ROW_asin, asin, 0.501, 0, 0, 0, 0.0},
    {"asinh", ETC_ROW_asinh, asinh, 0.501, 0, 0, 0, 0.0},
    {"atan", ETC_ROW_atan, atan, 0.501, 0, 0, 0, 0.0},
    {"atanh", ETC_ROW_atanh, atanh, 0.501, 0, 0, 0, 0.0},
    {"cosh", ETC_ROW_cosh, cosh, 0.501, 0, 0, 0, 0.0},
    {"expm1", ETC_ROW_expm1, expm1, 0.501, 0, 0, 0, 0.0},
    {"log10", ETC_ROW_log10, log10, 0.501, 0, 0, 0, 0.0},
    {"log1p", ETC_ROW_log1p, log1p, 0.501, 0, 0, 0, 0.0},
    {"log2", ETC_ROW_log2, log2, 0.501, 0, 0, 0, 0.0},
    {"sinh", ETC_ROW_sinh, sinh, 0.501, 0, 0, 0, 0.0},
    {"tan", ETC_ROW_tan, tan, 0.501, 0, 0, 0, 0.0},
    {"ceil", ETC_ROW_ceil, ceil, 0.0, 0, 0, 0, 0.0},
    {"floor", ETC_ROW_floor, floor, 0.0, 0, 0, 0, 0.0},
    {"round", ETC_ROW_round, rint, 0.0, 0, 0, 0, 0.0},
    {"trunc", ETC_ROW_trunc, trunc, 0.0, 0, 0, 0, 0.0},
    {"pow 3", ETC_ROW_pow_scalar, d_pow3, 0.501, 3.0f, 0, 0, 0.0},
};
enum { N_FUNCTIONS = (int)(sizeof functions / sizeof functions[0]) };

static float from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Every 1021st float there is, from the given one on. */
static uint32_t fill_block(float *x, uint32_t at)
{
    for (int i = 0; i < BLOCK; i++) {
        x[i] = from_bits(at);
        at += 1021u;
    }
    return at;
}

static double unit(double exact)
{
    int e;
    frexp(exact, &e);
    return ldexp(1.0, (e < -125) ? -149 : (e - 24));
}

static double error_of(float got, double exact)
{
    if (isnan(exact) || isnan(got)) {
        return (isnan(exact) && isnan(got)) ? 0.0 : INFINITY;
    }
    if (isinf(got) || (fabs(exact) > (double)FLT_MAX)) {
        double limit = (double)FLT_MAX * (1.0 + 0x1p-25);
        return (((double)got > 0.0) == (exact > 0.0)) && (isinf(got) || (fabs(exact) < limit)) &&
                       (fabs(exact) >= (double)FLT_MAX * (1.0 - 0x1p-22))
                   ? 0.0
                   : INFINITY;
    }
    return fabs((double)got - exact) / unit(exact);
}

static EtcPqr scalars(int f)
{
    EtcPqr s;
    memset(&s, 0, sizeof s);
    s.f32[0] = functions[f].p;
    s.f32[1] = functions[f].q;
    s.f32[2] = functions[f].r;
    return s;
}

Test(math, errors_are_as_stated)
{
    static float x[BLOCK], y[BLOCK];
    for (int f = 0; f < N_FUNCTIONS; f++) {
        const EtcPqr s = scalars(f);
        double worst = 0.0;
        float where = 0.0f;
        uint32_t at = 0;
        for (int b = 0; b < 1028; b++) { /* 2^32 / 1021 / 4096 */
            at = fill_block(x, at);
            etc_row_f32(etc_cores(), functions[f].row)(x, x, &s, y, BLOCK);
            for (int i = 0; i < BLOCK; i++) {
                double exact = functions[f].exact((double)x[i]);
                double e = (fabs(exact) < functions[f].from) ? 0.0 : error_of(y[i], exact);
                if (e > worst) {
                    worst = e;
                    where = x[i];
                }
            }
        }
        printf("# %-10s %.3f units at %.9g\n", functions[f].name, worst, (double)where);
        cr_expect_leq(worst, functions[f].bound, "%s: %.3f units in the last place at %.9g",
                      functions[f].name, worst, (double)where);
    }
}

Test(math, bits_are_the_same_on_every_instruction_set)
{
    static float x[BLOCK], y[BLOCK], z[BLOCK];
    for (int f = 0; f < N_FUNCTIONS; f++) {
        const EtcPqr s = scalars(f);
        uint32_t at = 7;
        for (int b = 0; b < 1028; b += 8) {
            at = fill_block(x, at) + (7u * 1021u * BLOCK);
            etc_row_f32(etc_cores_at(0), functions[f].row)(x, x, &s, y, BLOCK - 3);
            for (int t = 1; etc_cores_at(t) != NULL; t++) {
                etc_row_f32(etc_cores_at(t), functions[f].row)(x, x, &s, z, BLOCK - 3);
                for (int i = 0; i < (BLOCK - 3); i++) {
                    cr_assert((memcmp(&y[i], &z[i], sizeof y[i]) == 0) ||
                                  (isnan(y[i]) && isnan(z[i])),
                              "%s(%.9g): %.9g on base, %.9g on %s", functions[f].name, (double)x[i],
                              (double)y[i], (double)z[i], etc_cores_at(t)->name);
                }
            }
        }
    }
}

/* The fused multiply-add of the base table goes through double, that of CPUs without floats through
 * integers: against fmaf, on sums that fall half-way between floats or leave few bits, subnormal
 * ones, and all magnitudes. */
Test(math, fused_multiply_add_is_exact)
{
    uint32_t state = 1;
    for (int i = 0; i < 3000000; i++) {
        float v[3];
        for (int k = 0; k < 3; k++) {
            state = (state * 1664525u) + 1013904223u;
            uint32_t u = state ^ (state >> 16);
            /* near each other in size, with few bits: ties are frequent */
            v[k] = from_bits((u & 0x807ff000u) | ((100u + (u % 40u)) << 23));
            if ((i % 3) == 0) {
                v[k] = from_bits(u);
            } else if ((i % 3) == 1) {
                v[k] = from_bits((u & 0x807fffffu) | ((50u + (u % 20u)) << 23));
            }
        }
        v[2] = ((i % 16) == 5) ? nextafterf(-v[0] * v[1], v[2]) : ((i % 64) == 7) ? -0.0f : v[2];
        EtcF got = etc_fma(etc_splat(v[0]), etc_splat(v[1]), etc_splat(v[2]));
        float want = fmaf(v[0], v[1], v[2]);
        for (int l = -1; l < ETC_LANES; l++) {
            float g = (l < 0) ? etc_fma_by_integers(v[0], v[1], v[2]) : got[l];
            cr_assert((memcmp(&g, &want, sizeof g) == 0) || (isnan(g) && isnan(want)),
                      "%.9g * %.9g + %.9g is %.9g, not %.9g", (double)v[0], (double)v[1],
                      (double)v[2], (double)want, (double)g);
        }
    }
}

/* Square roots in integers against those of the CPU, subnormal numbers and squares among them. */
Test(math, roots_are_exact_without_an_instruction)
{
    uint64_t state = 1;
    for (int i = 0; i < 1000000; i++) {
        double x, got, want;
        state = (state * UINT64_C(6364136223846793005)) + UINT64_C(1442695040888963407);
        uint64_t u = state ^ (state >> 31);
        u = ((i % 3) == 0) ? (u & UINT64_C(0x800fffffffffffff)) : ((i % 3) == 1) ? (u << 1 >> 1) : u;
        memcpy(&x, &u, sizeof x);
        x = ((i % 5) == 0) ? (double)(u >> 32) * (double)(u >> 32) : x;
        got = etc_root_by_integers(x);
        want = sqrt(x);
        cr_assert((memcmp(&got, &want, sizeof got) == 0) || (isnan(got) && isnan(want)),
                  "the root of %.17g is %.17g, not %.17g", x, want, got);
    }
}

typedef EtcF Function(EtcF x);
static EtcF call_exp(EtcF x)
{
    return etc_vexp(x);
}
static EtcF call_log(EtcF x)
{
    return etc_vlog(x);
}
static EtcF call_tanh(EtcF x)
{
    return etc_vtanh(x);
}
static EtcF call_expm1(EtcF x)
{
    return etc_vexpm1(x);
}

Test(math, ends_of_the_line)
{
    static const struct {
        Function *f;
        float x, y;
    } cases[] = {
        {call_exp, 0.0f, 1.0f},         {call_exp, -INFINITY, 0.0f},
        {call_exp, INFINITY, INFINITY}, {call_exp, -104.0f, 0.0f},
        {call_exp, 88.8f, INFINITY},    {call_log, 1.0f, 0.0f},
        {call_log, 0.0f, -INFINITY},    {call_log, -0.0f, -INFINITY},
        {call_log, INFINITY, INFINITY}, {call_tanh, INFINITY, 1.0f},
        {call_tanh, -INFINITY, -1.0f},  {call_expm1, INFINITY, INFINITY},
        {call_expm1, -INFINITY, -1.0f}, {call_expm1, 1e-40f, 1e-40f},
    };
    for (size_t i = 0; i < (sizeof cases / sizeof cases[0]); i++) {
        EtcF y = cases[i].f(etc_splat(cases[i].x));
        cr_expect_eq(y[0], cases[i].y, "case %zu: %.9g gives %.9g", i, (double)cases[i].x,
                     (double)y[0]);
    }
    EtcF minus_zero = call_tanh(etc_splat(-0.0f));
    cr_expect(signbit(minus_zero[0]));
    EtcF below = call_log(etc_splat(-1.0f));
    cr_expect(isnan(below[0]));
}

/* Clamps keep NaN, as torch does; max and min spread it. */
Test(math, clamps_and_maxima_keep_nan)
{
    const EtcF nan = etc_splat(NAN), one = etc_splat(1.0f);
    EtcF v[6] = {etc_at_least(nan, one), etc_at_most(nan, one), etc_max(nan, one),
                 etc_max(one, nan),      etc_min(nan, one),     etc_min(one, nan)};
    for (int i = 0; i < 6; i++) {
        cr_expect(isnan(v[i][0]) && isnan(v[i][ETC_LANES - 1]), "%d", i);
    }
}
