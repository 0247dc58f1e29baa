/* test_quantize.c -- what the algorithms are for: each lowers the error that it is said to. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "passes/passes.h"
#include "quant/quant.h"

enum { IN = 64, OUT = 16, ROWS = 8, SAMPLES = 16, JUDGED = 8 };

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 4503599627370496.0 - 1;
}

/* -- inputs: what the algorithms make use of --------------------------------------------------- */

typedef enum Kind { CORRELATED, OFFSET, UNEVEN, PLAIN } Kind;

/* The same for the same i: four numbers make a row of CORRELATED, channel 0 and 7 of UNEVEN are
 * large, OFFSET is about 2. */
static void fill(float *x, Kind kind, int i)
{
    uint64_t seed = 1000 + (uint64_t)i, mix = 5;
    for (int r = 0; r < ROWS; r++) {
        double z[4];
        for (int k = 0; k < 4; k++)
            z[k] = uniform(&seed);
        mix = 5;
        for (int c = 0; c < IN; c++) {
            double v = uniform(&seed);
            if (kind == CORRELATED) {
                v *= 0.05;
                for (int k = 0; k < 4; k++)
                    v += z[k] * uniform(&mix);
            }
            v += kind == OFFSET ? 2 : 0;
            v *= kind == UNEVEN && (c == 0 || c == 7) ? 30 : 1;
            x[r * IN + c] = (float)v;
        }
    }
}

static bool read_sample(void *ctx, int i, Arena *a, EtcTensor **in, int64_t *symbol,
                        const char **name, Diag *d)
{
    (void)symbol, (void)d;
    *name = "made";
    in[0] = tensor_new(a, ETC_F32, 2, (const int64_t[]){ROWS, IN});
    fill(in[0]->data, *(const Kind *)ctx, i);
    return true;
}

/* -- programs ---------------------------------------------------------------------------------- */

#define HEAD "program \"m\" stage core\n"
#define LINEAR                                                                                     \
    HEAD "const %w = \"w\" : f32[16,64] in \"-\"+0\n"                                              \
         "const %b = \"b\" : f32[16] in \"-\"+4096\n"                                              \
         "method @forward(%x: f32[8,64]) {\n"                                                      \
         "  %y = aten.linear.default(%x, %w, %b) : f32[8,16]\n"                                    \
         "  return %y\n}\n"
#define NORMED                                                                                     \
    HEAD "const %w = \"w\" : f32[16,64] in \"-\"+0\n"                                              \
         "const %g = \"g\" : f32[64] in \"-\"+4096\n"                                              \
         "const %h = \"h\" : f32[64] in \"-\"+4352\n"                                              \
         "method @forward(%x: f32[8,64]) {\n"                                                      \
         "  %n = aten.layer_norm.default(%x, [64], %g, %h, 1e-05, true) : f32[8,64]\n"             \
         "  %y = aten.linear.default(%n, %w, none) : f32[8,16]\n"                                  \
         "  return %y\n}\n"
#define TWO                                                                                        \
    HEAD "const %w = \"w\" : f32[64,64] in \"-\"+0\n"                                              \
         "const %b = \"b\" : f32[64] in \"-\"+16384\n"                                             \
         "const %v = \"v\" : f32[16,64] in \"-\"+16640\n"                                          \
         "method @forward(%x: f32[8,64]) {\n"                                                      \
         "  %l = aten.linear.default(%x, %w, %b) : f32[8,64]\n"                                    \
         "  %r = aten.relu.default(%l) : f32[8,64]\n"                                              \
         "  %y = aten.linear.default(%r, %v, none) : f32[8,16]\n"                                  \
         "  return %y\n}\n"

/* Rows of %g and %w are uneven where `uneven` says so. */
static Program *model(Arena *a, const char *text, bool uneven)
{
    Source src = {.file = "m.etir", .text = text, .line = 1};
    Program *p = program_parse(a, &src, &(Diag){.out = stderr});
    uint64_t seed = 3;
    cr_assert_not_null(p);
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        const int64_t n = type_numel(s->type), row = n / s->type.dim[0].value;
        float *f = NEW(a, float, n + 1);
        for (int64_t k = 0; k < n; k++) {
            const bool is_large = uneven && (*s->name == 'g' || strstr(text, "%v")) &&
                                  *s->name != 'v' && (k / row == 0 || k / row == 7);
            f[k] = (float)(uniform(&seed) * (is_large ? 30 : 1));
        }
        s->data = (uint8_t *)f;
        s->n_bytes = n * 4;
    }
    return p;
}

static Program *quantized(Arena *a, const char *text, bool uneven, Kind kind, QuantFormat x,
                          QuantFormat w, unsigned algorithms)
{
    Program *p = model(a, text, uneven);
    Diag d = {.out = stderr};
    QuantRule rule = {.has_activation = true, .has_weight = true, .has_algorithms = true,
                      .activation = x, .weight = w, .algorithms = algorithms};
    Recipe r = {.file = "test", .rule = &rule, .n_rules = 1};
    Samples s = {.n = SAMPLES, .read = read_sample, .ctx = &kind};
    QuantJob job = {.recipe = &r, .samples = &s};
    p->quant = &job;
    const char *pass = "quantize";
    PassOptions opt = {.check_ir = true};
    cr_assert(passes_run(p, &pass, 1, opt, &d));
    p->quant = NULL;
    return p;
}

typedef struct Error {
    double square, mean; /* of all results; the largest |mean| of a result */
} Error;

static Error error_of(const Program *q, const char *text, bool uneven, Kind kind)
{
    Arena *a = arena_new();
    const Program *p = model(a, text, uneven);
    Diag d = {.out = stderr};
    Error e = {0};
    double sum[OUT] = {0};
    for (int i = 0; i < JUDGED; i++) {
        EtcTensor *in, *want, *got;
        const char *name;
        read_sample(&kind, SAMPLES + i, a, &in, NULL, &name, &d);
        cr_assert(eval_graph(p->method[0], &in, NULL, false, a, &want, NULL, &d));
        cr_assert(eval_graph(q->method[0], &in, NULL, false, a, &got, NULL, &d));
        for (int k = 0; k < ROWS * OUT; k++) {
            const double v = tensor_number(got, k) - tensor_number(want, k);
            e.square += v * v;
            sum[k % OUT] += v / (JUDGED * ROWS);
        }
    }
    for (int k = 0; k < OUT; k++)
        e.mean = fabs(sum[k]) > e.mean ? fabs(sum[k]) : e.mean;
    arena_free(a);
    return e;
}

/* -- the tests --------------------------------------------------------------------------------- */

static const QuantFormat floats = {.dtype = ETC_F32},
                         i8 = {.dtype = ETC_I8, .bits = 8},
                         w8 = {.dtype = ETC_I8, .bits = 8, .granularity = PER_CHANNEL,
                               .symmetric = true},
                         w8_whole = {.dtype = ETC_I8, .bits = 8, .symmetric = true},
                         w4 = {.dtype = ETC_I8, .bits = 4, .granularity = PER_GROUP, .group = 32,
                               .symmetric = true},
                         w4_best = {.dtype = ETC_I8, .bits = 4, .granularity = PER_GROUP,
                                    .group = 32, .symmetric = true, .observer = OBS_MSE};

/* The squared error with the algorithm is below `part` of that without. */
static void expect_less(const char *text, bool uneven, Kind kind, const QuantFormat *x,
                        const QuantFormat *w, unsigned algorithm, double part)
{
    Arena *a = arena_new();
    Error without = error_of(quantized(a, text, uneven, kind, *x, *w, 0), text, uneven, kind);
    Error with = error_of(quantized(a, text, uneven, kind, *x, *w, algorithm), text, uneven, kind);
    cr_expect(without.square > 0 && with.square < part * without.square,
              "algorithm %#x: %g, without %g", algorithm, with.square, without.square);
    arena_free(a);
}

Test(quantize, gptq_makes_up_for_what_it_rounds)
{
    expect_less(LINEAR, false, CORRELATED, &floats, &w4, ALG_GPTQ, 0.2);
}

Test(quantize, the_best_range_of_weights_is_not_the_largest)
{
    Arena *a = arena_new();
    Error whole = error_of(quantized(a, LINEAR, false, PLAIN, floats, w4, 0), LINEAR, false, PLAIN);
    Error best = error_of(quantized(a, LINEAR, false, PLAIN, floats, w4_best, 0), LINEAR, false,
                          PLAIN);
    cr_expect_lt(best.square, whole.square);
    arena_free(a);
}

Test(quantize, scale_estimation_weighs_channels)
{
    expect_less(LINEAR, false, UNEVEN, &floats, &w4_best, ALG_SCALE_ESTIMATION, 0.7);
}

Test(quantize, bias_correction_takes_the_mean_away)
{
    Arena *a = arena_new();
    Error without = error_of(quantized(a, LINEAR, false, OFFSET, floats, w4, 0), LINEAR, false,
                             OFFSET);
    Error with = error_of(quantized(a, LINEAR, false, OFFSET, floats, w4, ALG_BIAS_CORRECTION),
                          LINEAR, false, OFFSET);
    cr_expect_lt(with.mean, 0.1 * without.mean, "%g, without %g", with.mean, without.mean);
    arena_free(a);
}

Test(quantize, smoothquant_moves_outliers_into_weights)
{
    expect_less(NORMED, true, PLAIN, &i8, &w8, ALG_SMOOTHQUANT, 0.5);
}

Test(quantize, awq_spares_what_counts)
{
    expect_less(NORMED, true, PLAIN, &floats, &w4, ALG_AWQ, 0.8);
}

Test(quantize, equalization_evens_out_rows)
{
    expect_less(TWO, true, PLAIN, &i8, &w8_whole, ALG_EQUALIZATION, 0.8);
}

/* HQQ's own measure: the sum of the roots of the errors of weights. */
static double root_error(const Program *q, const float *w)
{
    const int8_t *ints = NULL;
    const float *scale = NULL;
    double sum = 0;
    for (int i = 0; i < q->n_states; i++) {
        const State *s = q->state[i];
        ints = s->type.dtype == ETC_I8 ? (const int8_t *)s->data : ints;
        scale = strstr(s->fqn, "_scale") ? (const float *)(const void *)s->data : scale;
    }
    cr_assert(ints && scale);
    for (int i = 0; i < OUT * IN; i++)
        sum += sqrt(fabs((double)w[i] - (double)scale[i / 32] * ints[i]));
    return sum;
}

Test(quantize, hqq_needs_no_samples)
{
    Arena *a = arena_new();
    const Program *p = model(a, LINEAR, false);
    const float *w = (const float *)(const void *)p->state[0]->data;
    double without = root_error(quantized(a, LINEAR, false, PLAIN, floats, w4, 0), w);
    double with = root_error(quantized(a, LINEAR, false, PLAIN, floats, w4, ALG_HQQ), w);
    cr_expect_lt(with, 0.99 * without, "%g, without %g", with, without);
    arena_free(a);
}
