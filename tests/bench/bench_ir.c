/* bench_ir.c -- measures how long it takes to parse, verify, infer, clean up and print 32,000
 * nodes.
 *
 * It prints the best of five rounds per step, in milliseconds of CPU time, and fails if parse,
 * verify and dce together take more than 100 ms. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "passes/passes.h"

enum { N_NODES = 32000, N_ROUNDS = 5 };
static const double limit_ms = 100;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Convolutions with weights of their own, additions, views
 * of symbolic size; every fourth node dead. */
static char *make_text(void)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    fputs("program \"big\" stage core\nsym %n in 1..64\n", f);
    for (int i = 0; i < N_NODES / 4; i++)
        fprintf(f, "param %%w%d = \"blocks.%d.weight\" : f32[8,8,3,3] in \"weight_%d\"+0\n", i, i,
                i);
    fputs(
        "method @forward(%x: f32[%n,8,16,16]) {\n  %a0 = aten.relu.default(%x) : f32[%n,8,16,16]\n",
        f);
    for (int i = 0; i < N_NODES / 4; i++) {
        fprintf(
            f,
            "  %%c%d = aten.convolution.default(%%a%d, %%w%d, none, [1, 1], [1, 1], [1, 1], false, [0, "
            "0], 1) : f32[%%n,8,16,16] from \"blocks.%d\", \"net.py:12\"\n",
            i, i, i, i);
        fprintf(f, "  %%d%d = aten.mul.Tensor(%%c%d, 0.5) : f32[%%n,8,16,16]\n", i, i);
        fprintf(f, "  %%v%d = aten.view.default(%%c%d, [%%n, 8, 16, 16]) : f32[%%n,8,16,16]\n", i,
                i);
        fprintf(f, "  %%a%d = aten.add.Tensor(%%v%d, %%a%d, 1) : f32[%%n,8,16,16]\n", i + 1, i, i);
    }
    fprintf(f, "  return %%a%d\n}\n", N_NODES / 4);
    fclose(f);
    return text;
}

static void keep_best(double *best, double ms)
{
    *best = *best == 0 || ms < *best ? ms : *best;
}

static bool round_of(const char *text, double best[5], Diag *d)
{
    Arena *a = arena_new(), *tmp = arena_new();
    Source src = {.file = "big.etir", .text = text, .line = 1};
    FILE *sink = fopen("/dev/null", "w");
    double t[6] = {now_ms()};
    Program *p = program_parse(a, &src, d);
    t[1] = now_ms();
    bool ok = p && sink && program_verify(p, d);
    t[2] = now_ms();
    ok = ok && pass_dce(p->method[0], tmp, d);
    t[3] = now_ms();
    ok = ok && graph_infer(p->method[0], d);
    t[4] = now_ms();
    if (ok)
        program_print(p, sink);
    t[5] = now_ms();
    for (int i = 0; i < 5; i++)
        keep_best(&best[i], t[i + 1] - t[i]);
    if (sink)
        fclose(sink);
    arena_free(a);
    arena_free(tmp);
    return ok;
}

int main(void)
{
    static const char *const step[5] = {"parse", "verify", "dce", "infer", "print"};
    char *text = make_text();
    double best[5] = {0};
    Diag d = {.out = stderr};
    bool ok = true;
    for (int i = 0; i < N_ROUNDS && ok; i++)
        ok = round_of(text, best, &d);
    for (int i = 0; i < 5; i++)
        printf("%-7s %7.2f ms\n", step[i], best[i]);
    free(text);
    ok = ok && best[0] + best[1] + best[2] <= limit_ms;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
