/* test_samples.c -- runs samples in threads and in pieces.  The observations must not depend on
 * either. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "passes/passes.h"
#include "ir/session.h"
#include "quant/quant.h"

enum { N = 23, ROWS = 3, WIDTH = 16 };

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 4503599627370496.0 - 1;
}

/* -- a program: a norm that smoothquant moves scales into,
 * a value whose scale two places share -- */

static const char program_text[] =
    "program \"m\" stage core\n"
    "const %g = \"g\" : f32[16] in \"-\"+0\n"
    "const %w = \"w\" : f32[16,16] in \"-\"+64\n"
    "const %b = \"b\" : f32[16] in \"-\"+1088\n"
    "const %v = \"v\" : f32[8,16] in \"-\"+1152\n"
    "method @forward(%x: f32[3,16]) {\n"
    "  %n = aten.layer_norm.default(%x, [16], %g, %b, 1e-05, true) : f32[3,16]\n"
    "  %l = aten.linear.default(%n, %w, %b) : f32[3,16]\n"
    "  %s = aten.view.default(%l, [6, 8]) : f32[6,8]\n"
    "  %t = aten.view.default(%s, [3, 16]) : f32[3,16]\n"
    "  %z = aten.relu.default(%t) : f32[3,16]\n"
    "  %o = aten.linear.default(%z, %v, none) : f32[3,8]\n"
    "  return %o\n}\n";

static Program *program(Arena *a)
{
    Source s = {.file = "m", .text = program_text, .line = 1};
    Diag d = {.out = stderr};
    Program *p = program_parse(a, &s, &d);
    uint64_t seed = 7;
    cr_assert(p);
    for (int i = 0; i < p->n_states; i++) {
        State *t = p->state[i];
        float *f = NEW(a, float, type_numel(t->type));
        for (int64_t k = 0; k < type_numel(t->type); k++)
            f[k] = (float)uniform(&seed);
        t->data = (uint8_t *)f;
        t->n_bytes = type_bytes(t->type);
    }
    return p;
}

/* Samples from ctx on hold a NaN. */
static bool read_sample(void *ctx, int i, Arena *a, EtcTensor **in, int64_t *symbol,
                        const char **name, Diag *d)
{
    uint64_t seed = 100 + (uint64_t)i;
    (void)symbol, (void)d;
    *name = arena_printf(a, "number %d", i);
    in[0] = tensor_new(a, ETC_F32, 2, (const int64_t[]){ROWS, WIDTH});
    for (int k = 0; k < ROWS * WIDTH; k++)
        ((float *)in[0]->data)[k] = (float)(uniform(&seed) * (k % WIDTH == 3 ? 9 : 1) * (i + 1));
    if (i >= *(const int *)ctx)
        memset((float *)in[0]->data + i % 5, 0xff, sizeof(float));
    return true;
}

/* -- a run ------------------------------------------------------------------------------------- */

typedef struct Case {
    ObserverKind observer;
    bool is_float; /* activations stay floats: moments alone are seen */
    unsigned algorithms;
} Case;

typedef struct Stop {
    int left;    /* samples until it is due */
    char *text;  /* what was kept then; the run ends */
    size_t n;
} Stop;

static bool is_due(void *ctx)
{
    Stop *s = ctx;
    return s->left > 0 && --s->left == 0;
}

static char *written(const Statistics *s, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    statistics_write(s, f);
    fclose(f);
    return text;
}

static bool keep(void *ctx, const Statistics *s, int done, Diag *d)
{
    Stop *stop = ctx;
    (void)done;
    stop->text = written(s, &stop->n);
    return diag_error(d, (Loc){0}, "stopped");
}

/* Returns what is seen, as text, from the sample on that `from` says; NULL: the run failed. */
static char *see(const Case *c, int threads, int bad, Stop *stop, const char *from, int *first,
                 FILE *messages)
{
    Arena *a = arena_new();
    Program *p = program(a);
    Diag d = {.out = messages}, quiet = {.out = messages};
    QuantFormat x = {.dtype = c->is_float ? ETC_F32 : ETC_I8, .bits = 8, .observer = c->observer,
                     .percentile = 99};
    QuantRule rule = {.has_activation = true, .has_weight = true, .has_algorithms = true,
                      .activation = x, .algorithms = c->algorithms,
                      .weight = {.dtype = ETC_I8, .bits = 8, .granularity = PER_CHANNEL,
                                 .symmetric = true}};
    Recipe r = {.file = "test", .rule = &rule, .n_rules = 1};
    Samples s = {.n = N, .read = read_sample, .ctx = &bad, .threads = threads};
    Checkpoint part = {.id = 5, .is_due = is_due, .keep = keep, .ctx = stop};
    part.from = from ? statistics_read(a, "part", from, strlen(from), &quiet) : NULL;
    QuantJob job = {.recipe = &r, .samples = &s, .only_observe = true,
                    .checkpoint = stop ? &part : NULL};
    const char *pass = "quantize";
    size_t n;
    p->session->quant = &job;
    bool ok = passes_run(p, &pass, 1, (PassOptions){.dump = NULL}, &d);
    char *text = ok ? written(job.seen, &n) : NULL;
    if (first)
        *first = part.first;
    arena_free(a);
    return text;
}

static const Case case_of[] = {
    {OBS_MINMAX, false, 0},
    {OBS_MOVING_AVERAGE, false, ALG_BIAS_CORRECTION},
    {OBS_PERCENTILE, false, ALG_GPTQ},
    {OBS_MSE, false, ALG_SMOOTHQUANT | ALG_BIAS_CORRECTION},
    {OBS_KL, false, ALG_AWQ | ALG_GPTQ},
    {OBS_MINMAX, true, ALG_AWQ | ALG_SCALE_ESTIMATION},
};

enum { N_CASES = sizeof case_of / sizeof *case_of };

Test(samples, threads_change_nothing)
{
    for (int i = 0; i < N_CASES; i++) {
        char *one = see(&case_of[i], 1, N, NULL, NULL, NULL, stderr);
        cr_assert(one && strstr(one, case_of[i].is_float ? "mean" : "range."));
        for (int threads = 2; threads < 40; threads = threads * 2 + 1) {
            char *many = see(&case_of[i], threads, N, NULL, NULL, NULL, stderr);
            cr_expect_str_eq(many, one, "case %d, %d threads", i, threads);
            free(many);
        }
        free(one);
    }
}

Test(samples, the_first_bad_one_is_told)
{
    for (int threads = 1; threads < 20; threads = threads * 2 + 1) {
        char *text = NULL;
        size_t n;
        FILE *f = open_memstream(&text, &n);
        char *seen = see(&case_of[3], threads, 6, NULL, NULL, NULL, f);
        fclose(f);
        cr_expect_null(seen);
        cr_expect_str_eq(text, "m:7: error: node 'n' (aten.layer_norm.default): sample 'number "
                               "6': NaN at element 0 of its result\n");
        free(text);
    }
}

/* -- in pieces --------------------------------------------------------------------------------- */

/* Stops when `left` samples were asked about, in whichever run over them that is; what was kept. */
static char *stopped(const Case *c, int threads, int left)
{
    FILE *none = fopen("/dev/null", "w");
    Stop s = {.left = left};
    char *seen = see(c, threads, N, &s, NULL, NULL, none);
    fclose(none);
    cr_assert(!seen == !!s.text, "after %d", left);
    free(seen);
    return s.text;
}

Test(samples, a_run_goes_on_where_it_was_stopped)
{
    for (int i = 0; i < N_CASES; i++) {
        char *want = see(&case_of[i], 1, N, NULL, NULL, NULL, stderr);
        const bool is_twice = case_of[i].algorithms & (ALG_SMOOTHQUANT | ALG_AWQ);
        int n_stops = 0;
        for (int left = 1; left < 3 * N; left += 5) {
            char *part = stopped(&case_of[i], 1 + left % 3, left);
            Stop none = {0};
            int first = 0;
            if (!part)
                break;
            char *got = see(&case_of[i], 2, N, &none, part, &first, stderr);
            cr_expect_str_eq(got, want, "case %d, after %d", i, left);
            cr_expect(first == (left <= N ? left : left - N), "case %d, after %d: at %d", i, left,
                      first);
            n_stops++;
            free(got);
            free(part);
        }
        cr_expect_eq(n_stops, is_twice ? 2 * N / 5 + 1 : N / 5 + 1, "case %d: %d", i, n_stops);
        free(want);
    }
}

static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    cr_assert(at, "no '%s' in\n%.600s", from, text);
    size_t n = strlen(text) + strlen(to) + 1, before = (size_t)(at - text);
    char *s = malloc(n);
    snprintf(s, n, "%.*s%s%s", (int)before, text, to, at + strlen(from));
    return s;
}

Test(samples, what_does_not_fit_is_as_good_as_none)
{
    static const char *const change[][2] = {
        {"model ", "model 0"},                        /* no file of statistics any more */
        {" 0000000000000005\n", " 0000000000000006\n"}, /* of something else */
        {"part.ranges 1 7 ", "part.ranges 1 24 "},      /* more than there are */
        {"part.ranges 1 7 ", "part.ranges 1 0.5 "},
        {"part.ranges 1 7 ", "part.behind 1 7 "},
        {"part.point 4100 -", "part.point 4100 1e39 -"},
        {"part.point 4100 -", "part.point 4100 -9"},     /* base lies elsewhere */
        {" 1 0 ", " -1 2 "},
        {" 1 0 ", " 0.5 0.5 "},
        {" 1 0 ", " 1e300 0 "},
        {"part.moments 49 ", "part.moments 49 0 "},
        {"part.moments 49 ", "part.moment 49 "},
    };
    char *want = see(&case_of[3], 1, N, NULL, NULL, NULL, stderr);
    char *part = stopped(&case_of[3], 1, N + 7);
    FILE *none = fopen("/dev/null", "w");
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        char *other = replaced(part, change[i][0], change[i][1]);
        Stop stop = {0};
        int first = 0;
        char *got = see(&case_of[3], 2, N, &stop, other, &first, none);
        cr_expect_str_eq(got, want, "'%s'", change[i][1]);
        cr_expect_eq(first, 0, "'%s'", change[i][1]);
        free(got);
        free(other);
    }
    fclose(none);
    free(part);
    free(want);
}
