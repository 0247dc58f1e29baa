/* bfloat_cores.c -- the cores for products of bfloat16 beside plain loops in double, for random sizes.
 *
 *     bfloat_cores RUNS
 *
 * Operands end where memory ends, so a core that reads or writes past them stops the program.  Prints
 * TAP.  It is built for CPUs with AMX and without. */
#include "runtime-lite/kernels/bfloat.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint32_t state = 1;

static int random_int(int lo, int hi)
{
    state = state * 1664525u + 1013904223u;
    return lo + (int)((state >> 8) % (uint32_t)(hi - lo + 1));
}

/* Returns memory that ends, up to `align`, at a page that nobody may touch. */
static void *room(int64_t bytes, int64_t align)
{
    const int64_t n = (bytes + align - 1) / align * align, pages = (n + 4095) / 4096 * 4096;
    uint8_t *p = mmap(NULL, (size_t)pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + pages, 4096, PROT_NONE))
        abort();
    memset(p, 0xff, (size_t)pages); /* NaN */
    return p + (pages - n);
}

static void leave(void *p, int64_t bytes, int64_t align)
{
    const int64_t n = (bytes + align - 1) / align * align, pages = (n + 4095) / 4096 * 4096;
    munmap((uint8_t *)p - (pages - n), (size_t)pages + 4096);
}

/* A random bfloat16 as a float. */
static float number(void)
{
    return (float)random_int(-128, 128) / (float)(1 << random_int(5, 8));
}

static float *numbers(int64_t n)
{
    float *p = room(4 * n, 4);
    for (int64_t i = 0; i < n; i++)
        p[i] = number();
    return p;
}

static uint16_t top(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)(u >> 16);
}

static float limited(double v, float lo, float hi)
{
    return v < lo ? lo : v > hi ? hi : (float)v;
}

static int is_far(float got, float want, double size)
{
    return !(fabs((double)got - (double)want) <= 1e-6 * size);
}

/* -- linear layers ---------------------------------------------------------------------------- */

static int linear(void)
{
    const int64_t m = random_int(1, 70), n = random_int(1, 100), k = random_int(1, random_int(1, 3000));
    const int64_t words = etc_step_words(k) * etc_steps_of(k), blocks = (n + 15) / 16;
    const int64_t a_row = k + random_int(0, 3), y_row = n + random_int(0, 3);
    float *a = numbers(m * a_row), *w = numbers(n * k), *bias = numbers(n), *y = numbers(m * y_row);
    float *start = malloc(sizeof(float) * (size_t)(m * y_row));
    uint16_t *b = room(blocks * words * 64, 16);
    void *work = room(ETC_WORK_BYTES, 64);
    EtcMatmul g = {m, n, k, a_row, k, -INFINITY, INFINITY, ETC_BY_BLOCKS, random_int(0, 3) == 0};
    const int has_bias = random_int(0, 1);
    int bad = 0;
    if (random_int(0, 1)) {
        g.lo = -1;
        g.hi = 2;
    }
    memset(b, 0, (size_t)(blocks * words * 64));
    for (int64_t i = 0; i < n * k; i++)
        b[((i / k / 16 * words + i % k / 2) * 16 + i / k % 16) * 2 + i % k % 2] = top(w[i]);
    memcpy(start, y, sizeof(float) * (size_t)(m * y_row));
    etc_matmul_bf16(a, b, has_bias && !g.from_y ? bias : NULL, y, &g, y_row, work);
    for (int64_t i = 0; i < m * y_row; i++) {
        const int64_t r = i / y_row, c = i % y_row;
        double sum = g.from_y ? start[i] : has_bias && c < n ? bias[c] : 0, size = fabs(sum) + 1;
        for (int64_t t = 0; c < n && t < k; t++) {
            sum += (double)a[r * a_row + t] * w[c * k + t];
            size += fabs((double)a[r * a_row + t] * w[c * k + t]);
        }
        bad += c < n ? is_far(y[i], limited(sum, g.lo, g.hi), size) : y[i] != start[i];
    }
    if (bad)
        printf("# linear %d x %d x %d: %d wrong\n", (int)m, (int)n, (int)k, bad);
    leave(a, 4 * m * a_row, 4), leave(w, 4 * n * k, 4), leave(bias, 4 * n, 4), leave(y, 4 * m * y_row, 4);
    leave(b, blocks * words * 64, 16), leave(work, ETC_WORK_BYTES, 64);
    free(start);
    return bad;
}

/* -- convolutions ------------------------------------------------------------------------------ */

static EtcConv random_conv(void)
{
    EtcConv g = {random_int(1, 2), random_int(1, 2), random_int(1, 70), random_int(1, 40), random_int(1, 40),
                 random_int(1, 70), 0, 0, random_int(1, 5), random_int(1, 5), random_int(1, 3), random_int(1, 3),
                 0, 0, random_int(1, 2), random_int(1, 2), -INFINITY, INFINITY, ETC_IN_BLOCKS, 0, 0};
    if (random_int(0, 2) == 0)
        g.kh = g.kw = g.sh = g.sw = 1;
    if (random_int(0, 5) == 0) {
        g.ih = g.kh = 1;
        g.iw = random_int(1, 3000);
    }
    g.ph = random_int(0, (int)g.kh - 1);
    g.pw = random_int(0, (int)g.kw - 1);
    g.oh = (g.ih + 2 * g.ph - (g.kh - 1) * g.dh - 1) / g.sh + 1;
    g.ow = (g.iw + 2 * g.pw - (g.kw - 1) * g.dw - 1) / g.sw + 1;
    if (g.ih + 2 * g.ph < (g.kh - 1) * g.dh + 1 || g.iw + 2 * g.pw < (g.kw - 1) * g.dw + 1)
        return random_conv();
    if (random_int(0, 1))
        g.lo = 0;
    return g;
}

static float one_output(const EtcConv *g, const float *x, const float *w, const float *bias, int64_t at, double *size)
{
    const int64_t ox = at % g->ow, oy = at / g->ow % g->oh, c = at / g->ow / g->oh % (g->oc * g->groups);
    const int64_t image = at / g->ow / g->oh / g->oc / g->groups, first = c / g->oc * g->ic;
    double sum = bias ? bias[c] : 0;
    *size = fabs(sum) + 1;
    for (int64_t i = 0; i < g->ic * g->kh * g->kw; i++) {
        const int64_t iy = oy * g->sh - g->ph + i / g->kw % g->kh * g->dh, ix = ox * g->sw - g->pw + i % g->kw * g->dw;
        const int64_t plane = image * g->ic * g->groups + first + i / g->kw / g->kh;
        if (iy >= 0 && iy < g->ih && ix >= 0 && ix < g->iw) {
            const double v = (double)x[(plane * g->ih + iy) * g->iw + ix] * w[c * g->ic * g->kh * g->kw + i];
            sum += v;
            *size += fabs(v);
        }
    }
    return limited(sum, g->lo, g->hi);
}

/* Writes the weights as kernels/bfloat.h says. */
static void put_weights(const EtcConv *g, const EtcWeights *of, const float *w, uint16_t *to)
{
    const int64_t depth = g->ic * g->kh * g->kw, blocks = (g->oc + 15) / 16;
    for (int64_t i = 0; i < g->groups * g->oc * depth; i++) {
        const int64_t c = i / depth % g->oc, channel = i % depth / of->taps, tap = i % of->taps, side = 2 * of->words;
        const int64_t block = i / depth / g->oc * blocks + c / 16;
        to[block * of->block + ((channel / side * of->taps + tap) * 16 + c % 16) * side + channel % side] = top(w[i]);
    }
}

static int conv(void)
{
    const EtcConv g = random_conv();
    const EtcWeights of = etc_weights_of(NULL, &g);
    const int64_t n_x = g.n * g.groups * g.ic * g.ih * g.iw, n_y = g.n * g.groups * g.oc * g.oh * g.ow;
    const int64_t depth = g.ic * g.kh * g.kw, n_w = g.groups * g.oc * depth, wide = depth * (g.oc > 16 ? 32 : 16) + 32 * g.kh * g.kw;
    const int64_t w_bytes = g.groups * ((g.oc + 15) / 16) * of.block * 2;
    float *x = numbers(n_x), *w = numbers(n_w), *bias = numbers(g.groups * g.oc), *y = numbers(n_y);
    uint16_t *b = room(w_bytes, 16);
    void *work = room(ETC_WORK_BYTES + 4 * wide, 64);
    const int has_bias = random_int(0, 1);
    int bad = 0;
    memset(b, 0, (size_t)w_bytes);
    put_weights(&g, &of, w, b);
    etc_conv_bf16(x, b, has_bias ? bias : NULL, y, &g, wide, work);
    for (int64_t i = 0; i < n_y; i++) {
        double size;
        const float want = one_output(&g, x, w, has_bias ? bias : NULL, i, &size);
        bad += is_far(y[i], want, size);
    }
    if (bad)
        printf("# conv %d groups, %d x %d x %d -> %d, %d x %d, stride %d %d, padding %d %d, dilation %d %d: %d wrong\n",
               (int)g.groups, (int)g.ic, (int)g.ih, (int)g.iw, (int)g.oc, (int)g.kh, (int)g.kw, (int)g.sh, (int)g.sw,
               (int)g.ph, (int)g.pw, (int)g.dh, (int)g.dw, bad);
    leave(x, 4 * n_x, 4), leave(w, 4 * n_w, 4), leave(bias, 4 * g.groups * g.oc, 4), leave(y, 4 * n_y, 4);
    leave(b, w_bytes, 16), leave(work, ETC_WORK_BYTES + 4 * wide, 64);
    return bad;
}

/* -- attention --------------------------------------------------------------------------------- */

/* Compares with the core for floats: operands are rounded by 2^-9 of their size. */
static int attention(void)
{
    const int64_t n_q = random_int(1, 80), n_k = random_int(1, 300), d = random_int(1, 70), d_v = random_int(1, 70);
    float *q = numbers(n_q * d), *k = numbers(n_k * d), *v = numbers(n_k * d_v), *y = numbers(n_q * d_v), *want = numbers(n_q * d_v);
    float *add = numbers(n_q * n_k);
    uint8_t *keep = room(n_q * n_k, 1);
    void *work = room(ETC_WORK_BYTES, 64);
    const int kind = random_int(0, 3);
    const EtcAttention g = {n_q, n_k, d, d_v, d, d, d_v, d_v, n_k, 1, ETC_ATTENTION_ROOM, 0.1f, kind == 3, n_k, 1,
                            random_int(0, 1) ? 0.0f : 2.0f, -INFINITY, random_int(0, 1)};
    const EtcMask mask = {kind == 1 ? add : NULL, kind == 2 ? keep : NULL, random_int(0, 1) ? add : NULL};
    int bad = 0;
    for (int64_t i = 0; i < n_q * n_k; i++)
        keep[i] = (uint8_t)(random_int(0, 3) && i / n_k != 3); /* query 3 sees no key */
    etc_attention_f32(q, k, v, &mask, want, &g, work);
    etc_attention_bf16(q, k, v, &mask, y, &g, work);
    for (int64_t i = 0; i < n_q * d_v; i++)
        bad += !(fabsf(y[i] - want[i]) <= 0.06f) && !(isnan(y[i]) && isnan(want[i]));
    if (bad)
        printf("# attention of %d queries, %d keys, %d and %d floats: %d wrong\n", (int)n_q, (int)n_k, (int)d, (int)d_v, bad);
    leave(q, 4 * n_q * d, 4), leave(k, 4 * n_k * d, 4), leave(v, 4 * n_k * d_v, 4), leave(y, 4 * n_q * d_v, 4);
    leave(want, 4 * n_q * d_v, 4), leave(add, 4 * n_q * n_k, 4), leave(keep, n_q * n_k, 1), leave(work, ETC_WORK_BYTES, 64);
    return bad;
}

int main(int argc, char **argv)
{
    static int (*const core[])(void) = {linear, conv, attention};
    static const char *const name[] = {"linear", "conv", "attention"};
    const int runs = argc > 1 ? atoi(argv[1]) : 200;
    int failed = 0;
    printf("1..3\n");
    for (int c = 0; c < 3; c++) {
        int bad = 0;
        for (int i = 0; i < runs; i++)
            bad += core[c]() != 0;
        printf("%s %d - %s: %d sizes\n", bad ? "not ok" : "ok", c + 1, name[c], runs);
        failed += bad != 0;
    }
    return failed != 0;
}
