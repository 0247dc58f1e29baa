/* bench_kernels.c -- GFLOP/s of the layers of resnet18 and mobilenetv2 (224 x 224, batch 1) on the
 * best cores of this CPU, or on those named: bench_kernels [base|avx2|avx512]. */
#include "runtime-lite/etc_rt.h"
#include "runtime-lite/kernels/cores.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Equal layers count once, with how many there are. */
typedef struct Layer {
    int count, ic, size, oc, k, stride, groups;
} Layer;

static const Layer resnet18[] = {
    {1, 3, 224, 64, 7, 2, 1},   {4, 64, 56, 64, 3, 1, 1},   {1, 64, 56, 128, 3, 2, 1},
    {1, 64, 56, 128, 1, 2, 1},  {3, 128, 28, 128, 3, 1, 1}, {1, 128, 28, 256, 3, 2, 1},
    {1, 128, 28, 256, 1, 2, 1}, {3, 256, 14, 256, 3, 1, 1}, {1, 256, 14, 512, 3, 2, 1},
    {1, 256, 14, 512, 1, 2, 1}, {3, 512, 7, 512, 3, 1, 1},
};
static const Layer mobilenetv2[] = {
    {1, 3, 224, 32, 3, 2, 1},     {1, 32, 112, 32, 3, 1, 32},   {1, 32, 112, 16, 1, 1, 1},
    {1, 16, 112, 96, 1, 1, 1},    {1, 96, 112, 96, 3, 2, 96},   {1, 96, 56, 24, 1, 1, 1},
    {2, 24, 56, 144, 1, 1, 1},    {1, 144, 56, 144, 3, 1, 144}, {1, 144, 56, 24, 1, 1, 1},
    {1, 144, 56, 144, 3, 2, 144}, {1, 144, 28, 32, 1, 1, 1},    {3, 32, 28, 192, 1, 1, 1},
    {2, 192, 28, 192, 3, 1, 192}, {2, 192, 28, 32, 1, 1, 1},    {1, 192, 28, 192, 3, 2, 192},
    {1, 192, 14, 64, 1, 1, 1},    {4, 64, 14, 384, 1, 1, 1},    {4, 384, 14, 384, 3, 1, 384},
    {3, 384, 14, 64, 1, 1, 1},    {1, 384, 14, 96, 1, 1, 1},    {3, 96, 14, 576, 1, 1, 1},
    {2, 576, 14, 576, 3, 1, 576}, {2, 576, 14, 96, 1, 1, 1},    {1, 576, 14, 576, 3, 2, 576},
    {1, 576, 7, 160, 1, 1, 1},    {3, 160, 7, 960, 1, 1, 1},    {3, 960, 7, 960, 3, 1, 960},
    {2, 960, 7, 160, 1, 1, 1},    {1, 960, 7, 320, 1, 1, 1},    {1, 320, 7, 1280, 1, 1, 1},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + ((double)t.tv_nsec * 1e-9);
}

static float *numbers(size_t n)
{
    float *p = aligned_alloc(64, ((n * 4) + 127) & ~(size_t)63);
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = (state * 1664525u) + 1013904223u;
        p[i] = ((float)(state >> 8) * 0x1p-24f) - 0.5f;
    }
    return p;
}

/* Seconds of the fastest run among those that fit a short while. */
static double time_conv(const EtcCores *cores, const EtcConv *g, void *work)
{
    float *x = numbers((size_t)(g->groups * g->ic * g->ih * g->iw));
    float *w = numbers((size_t)(g->groups * g->oc * g->ic * g->kh * g->kw));
    float *b = numbers((size_t)(g->groups * g->oc));
    float *y = numbers((size_t)(g->groups * g->oc * g->oh * g->ow));
    double best = 1e9, end = now() + 0.03;
    for (int i = 0; (i < 3) || (now() < end); i++) {
        double t = now();
        cores->conv(x, w, b, y, g, work);
        t = now() - t;
        best = (t < best) ? t : best;
    }
    free(x);
    free(w);
    free(b);
    free(y);
    return best;
}

static void bench_model(const char *name, const Layer *l, int n, const EtcCores *cores, void *work)
{
    double seconds = 0.0, flops = 0.0;
    printf("%s\n", name);
    for (int i = 0; i < n; i++) {
        const int pad = l[i].k / 2, out = ((l[i].size + (2 * pad) - l[i].k) / l[i].stride) + 1;
        EtcConv g;
        memset(&g, 0, sizeof g);
        g.n = 1;
        g.groups = l[i].groups;
        g.ic = l[i].ic / l[i].groups;
        g.oc = l[i].oc / l[i].groups;
        g.ih = g.iw = l[i].size;
        g.oh = g.ow = out;
        g.kh = g.kw = l[i].k;
        g.sh = g.sw = l[i].stride;
        g.ph = g.pw = pad;
        g.dh = g.dw = 1;
        g.lo = 0.0f;
        g.hi = 6.0f;
        double t = time_conv(cores, &g, work);
        double f = 2.0 * (double)(g.groups * g.oc * g.oh * g.ow * g.ic * g.kh * g.kw);
        printf("  %d x %4d, %3d x %3d -> %4d, %dx%d / %d%s  %8.1f us  %6.1f GFLOP/s\n", l[i].count,
               l[i].ic, l[i].size, l[i].size, l[i].oc, l[i].k, l[i].k, l[i].stride,
               (l[i].groups > 1) ? " depthwise" : "          ", t * 1e6, f / t * 1e-9);
        seconds += t * l[i].count;
        flops += f * l[i].count;
    }
    printf("  total %.2f ms, %.1f GFLOP/s\n", seconds * 1e3, flops / seconds * 1e-9);
}

static void bench_linear(const EtcCores *cores, int64_t m, int64_t n, int64_t k, void *work)
{
    float *x = numbers((size_t)(m * k)), *w = numbers((size_t)(n * k));
    float *y = numbers((size_t)(m * n));
    const EtcMatmul g = {m, n, k, k, k, -1e30f, 1e30f, 1, 0};
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        double t = now();
        cores->matmul(x, w, NULL, y, &g, work);
        t = now() - t;
        best = (t < best) ? t : best;
    }
    printf("linear m %d, n %d, k %d  %8.1f us  %6.1f GFLOP/s\n", (int)m, (int)n, (int)k, best * 1e6,
           2.0 * (double)(m * n * k) / best * 1e-9);
    free(x);
    free(w);
    free(y);
}

int main(int argc, char **argv)
{
    const EtcCores *cores = etc_cores();
    void *work = aligned_alloc(64, ETC_SCRATCH_BYTES);
    for (int i = 0; (argc > 1) && (etc_cores_at(i) != NULL); i++) {
        cores = (strcmp(etc_cores_at(i)->name, argv[1]) == 0) ? etc_cores_at(i) : cores;
    }
    printf("cores %s\n", cores->name);
    bench_model("resnet18", resnet18, (int)(sizeof resnet18 / sizeof resnet18[0]), cores, work);
    bench_model("mobilenetv2", mobilenetv2, (int)(sizeof mobilenetv2 / sizeof mobilenetv2[0]),
                cores, work);
    bench_linear(cores, 1, 1000, 512, work);
    bench_linear(cores, 1, 1000, 1280, work);
    bench_linear(cores, 64, 512, 512, work);
    free(work);
    return 0;
}
