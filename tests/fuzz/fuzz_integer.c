/* fuzz_integer.c -- libFuzzer target: convolutions, linear layers and pools of 8-bit integers of any
 * geometry, computed by the kernels of every instruction set that this CPU has.  All must give the
 * bits of plain loops, which share no code with the kernels.
 *
 * The first bytes are a seed; those that follow decide first, and random numbers from the seed when
 * they end.  Tensors end where memory ends, so that a sanitizer sees what is read or written beyond.
 * For each build that the CPU cannot run, a line "skip NAME" is printed.
 *
 * That the target finds anything is shown with -DPLANTED_BUG (integer_cores.c).  Without a CPU with
 * VNNI, which alone runs the code with the bug, the program then ends with exit code 77.
 *
 * With -DRUNS=n, the file is a program of its own, which tries n random inputs and prints TAP. */
#include "runtime-lite/kernels/cpu.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/integer_cores.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const IntegerCores integer_sse2, integer_avx2, integer_avx2_reduced, integer_avxvnni,
    integer_avxvnni_emulated, integer_avx512, integer_avx512_emulated, integer_vnni,
    integer_vnni_emulated, integer_vnni_small, integer_vnni_small_emulated, integer_amx,
    integer_amx_small;

enum { MAX_BUILDS = 9, MOST_BYTES = 1 << 18, MOST_REACH = 500, MOST_TAPS = 1000, ANY_BYTE = 256 };

static const IntegerCores *build[MAX_BUILDS], *missing[MAX_BUILDS]; /* filled by LLVMFuzzerInitialize */
static void *work[MAX_BUILDS];
static int n_builds, n_missing;

static void add_build(const IntegerCores *cores, int is_there)
{
    if (!is_there) {
        missing[n_missing++] = cores;
        fprintf(stderr, "skip %s: this CPU lacks it\n", cores->name);
        return;
    }
    work[n_builds] = aligned_alloc(64, cores->work_bytes);
    if (!work[n_builds])
        abort();
    memset(work[n_builds], 0xA5, cores->work_bytes);
    build[n_builds++] = cores;
}

/* Adds a build, or if this CPU lacks its instructions, the one that emulates them with AVX2. */
static void add_either(const IntegerCores *cores, int is_there, const IntegerCores *emulated,
                       int has_avx2)
{
    add_build(is_there ? cores : emulated, has_avx2);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const int has_avx2 = ETC_CPU_HAS("avx2", AVX2) && ETC_CPU_HAS("fma", FMA);
    const int has_avx512 = has_avx2 && ETC_CPU_HAS("avx512f", AVX512F) &&
                           ETC_CPU_HAS("avx512vl", AVX512VL) && ETC_CPU_HAS("avx512bw", AVX512BW) &&
                           ETC_CPU_HAS("avx512dq", AVX512DQ);
#ifdef PLANTED_BUG /* which is in the emulated build */
    const int has_vnni = 0;
#else
    const int has_vnni = has_avx512 && ETC_CPU_HAS("avx512vnni", AVX512_VNNI);
#endif
    (void)argc, (void)argv;
    add_build(&integer_sse2, 1);
    add_build(&integer_avx2, has_avx2);
    add_build(&integer_avx2_reduced, has_avx2);
    add_either(&integer_avxvnni, ETC_CPU_HAS("avxvnni", AVX_VNNI), &integer_avxvnni_emulated, has_avx2);
    add_either(&integer_avx512, has_avx512, &integer_avx512_emulated, has_avx2);
    add_either(&integer_vnni, has_vnni, &integer_vnni_emulated, has_avx2);
    add_either(&integer_vnni_small, has_vnni, &integer_vnni_small_emulated, has_avx2);
    add_build(&integer_amx, has_vnni && ETC_CPU_HAS("amx-int8", AMX_INT8));
    add_build(&integer_amx_small, has_vnni && ETC_CPU_HAS("amx-int8", AMX_INT8));
#ifdef PLANTED_BUG
    if (!has_avx2)
        exit(77);
#endif
    return 0;
}

/* -- tensors and parameters ------------------------------------------------------------------ */

static void *memory(int64_t bytes)
{
    void *p = malloc((size_t)bytes);
    if (!p)
        abort();
    return p;
}

/* Any bytes, or only such whose products are the largest, or mostly small numbers, as in trained layers. */
static int8_t *draw_bytes(Draw *d, int64_t n)
{
    static const int8_t extreme[] = {0, 127, -128, -1};
    const unsigned kind = draw_below(d, 8);
    int8_t *p = memory(n);
    Draw random = {NULL, 0, (uint64_t)draw_below(d, 65536) << 1 | 1};
    for (int64_t i = 0; i < n; i++) {
        const int8_t any = (int8_t)draw_byte(&random);
        p[i] = kind == 0 ? extreme[any & 3] : kind < 4 ? (int8_t)(any * (int8_t)draw_byte(&random) / 129) : any;
    }
    return p;
}

static float draw_unit(Draw *d) /* from 1/256 to 1 */
{
    return (float)(1 + draw_byte(d)) / 256.0f;
}

/* One number for each channel, mostly below `most`; seldom any number. */
static float *draw_floats(Draw *d, int64_t n, float most)
{
    float *p = memory(n * 4);
    for (int64_t i = 0; i < n; i++) {
        p[i] = most * draw_unit(d) * (draw_below(d, 2) ? 1.0f : -1.0f);
        if (draw_below(d, 64) == 0)
            p[i] = (float)draw_double(d);
    }
    return p;
}

/* The most products of a call.  A few calls are large enough for kernels that work in bands. */
static int64_t draw_work(Draw *d)
{
    return (int64_t)1 << (11 + draw_below(d, 8));
}

/* Sizes that a program would give: mostly small, seldom around the widths of vectors and tiles. */
static int64_t draw_extent(Draw *d)
{
    static const uint16_t wide[] = {7,  8,  9,  15, 16, 17, 24,  31,  32,  33,  47,  48,
                                   49, 63, 64, 65, 77, 96, 100, 127, 129, 200, 257, 300};
    return draw_below(d, 2) ? 1 + (int64_t)draw_below(d, 12) : DRAW_FROM(d, wide);
}

static void draw_range(Draw *d, int is_signed, int32_t *lo, int32_t *hi)
{
    const int32_t least = is_signed ? -128 : 0;
    const int is_whole = draw_below(d, 4) != 0;
    *lo = is_whole ? least : least + (int32_t)draw_below(d, ANY_BYTE);
    *hi = is_whole ? least + 255 : *lo + (int32_t)draw_below(d, (size_t)(least + 256 - *lo));
}

/* One call of a convolution or linear layer needs these beside its geometry. */
typedef struct Layer {
    EtcInteger q;
    int64_t channels, terms; /* those of each channel */
    int is_reduced;          /* weights are in -64 .. 64 */
    int8_t *w;
    int32_t *sums;
    float *scales, *bias, *x_scale;
    int16_t *x_zero;
} Layer;

/* Scales and zero points of x that are known at run time, for all rows or for each.  Zero points may
 * be out of range. */
static void draw_run_time(Layer *l, Draw *d, int64_t rows)
{
    if (draw_below(d, 3))
        return;
    l->q.has_rows = rows > 1 && draw_below(d, 2);
    const int64_t n = l->q.has_rows ? rows : 1;
    l->x_scale = draw_floats(d, n, 2.0f);
    l->x_zero = memory(n * 2);
    for (int64_t i = 0; i < n; i++)
        l->x_zero[i] = (int16_t)(draw_below(d, 600) - 300);
    l->q.x_scale = l->x_scale;
    l->q.x_zero = l->x_zero;
    l->q.scale_dtype = 6; /* any dtype but ETC_Q_F64 */
    l->q.zero_dtype = ETC_Q_I16;
}

/* Rounds to the nearest integer, ties to even, and adds the zero point.  A NaN is lo. */
static uint8_t quantized(float v, int32_t zero, int32_t lo, int32_t hi)
{
    const float least = (float)(lo - zero), most = (float)(hi - zero);
    v = v > least ? v : least;
    v = v < most ? v : most;
    return (uint8_t)((int32_t)rintf(v) + zero);
}

static void bytes_of_squares(const float *v, uint8_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = quantized(v[i] * v[i], -100, -128, 127);
}

static int makes_floats(const EtcInteger *q)
{
    return q->is_float && !q->then;
}

static void draw_layer(Layer *l, Draw *d, int64_t channels, int64_t terms, int64_t rows)
{
    const float typical = 5000.0f * sqrtf((float)terms); /* a sum */
    memset(l, 0, sizeof *l);
    l->channels = channels;
    l->terms = terms;
    l->w = draw_bytes(d, channels * terms);
    l->is_reduced = draw_below(d, 3) == 0;
    for (int64_t i = 0; l->is_reduced && i < channels * terms; i++)
        l->w[i] = (int8_t)(l->w[i] == 127 ? 64 : l->w[i] / 2);
    l->sums = memory(channels * 4);
    for (int64_t c = 0; c < channels; c++) {
        l->sums[c] = 0;
        for (int64_t k = 0; k < terms; k++)
            l->sums[c] += l->w[c * terms + k];
    }
    l->q.inverse = 64.0f * draw_unit(d);
    l->q.is_float = draw_below(d, 3) == 0;
    l->q.then = l->q.is_float && draw_below(d, 2) ? bytes_of_squares : NULL;
    l->q.x_is_signed = (int32_t)draw_below(d, 2);
    l->q.zero = (l->q.x_is_signed ? -128 : 0) + (int32_t)draw_below(d, ANY_BYTE);
    l->scales = draw_floats(d, channels, 300.0f / typical / l->q.inverse);
    l->bias = draw_below(d, 4) ? draw_floats(d, channels, 100.0f / l->q.inverse) : NULL;
    const int is_clamped = draw_below(d, 4) == 0;
    l->q.lo = is_clamped ? -50.0f * draw_unit(d) / l->q.inverse : -INFINITY;
    l->q.hi = is_clamped ? 50.0f * draw_unit(d) / l->q.inverse : INFINITY;
    draw_range(d, (int)draw_below(d, 2), &l->q.y_lo, &l->q.y_hi);
    l->q.y_zero = (l->q.y_lo < 0 || l->q.y_hi < 128 ? -128 : 0) + (int32_t)draw_below(d, 128);
    l->q.y_zero = l->q.y_lo < 0 ? l->q.y_zero : (int32_t)draw_below(d, ANY_BYTE);
    l->q.sums = l->sums;
    l->q.scales = l->scales;
    l->q.bias = l->bias;
    draw_run_time(l, d, rows);
}

static int can_compute(const IntegerCores *cores, const Layer *l)
{
    return l->is_reduced || !cores->is_reduced;
}

static void free_layer(Layer *l)
{
    void *all[] = {l->w, l->sums, l->scales, l->bias, l->x_scale, l->x_zero};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* -- what outputs must be -------------------------------------------------------------------- */

static int32_t byte_at(const int8_t *x, int64_t i, int is_signed)
{
    return is_signed ? x[i] : (uint8_t)x[i];
}

static int32_t zero_of(const EtcInteger *q, int64_t row)
{
    const int32_t least = q->x_is_signed ? -128 : 0;
    int32_t zero = q->x_zero ? ((const int16_t *)q->x_zero)[q->has_rows ? row : 0] : q->zero;
    zero = zero < least ? least : zero;
    return zero > least + 255 ? least + 255 : zero;
}

static void put_output(void *y, int64_t i, int32_t sum, const EtcInteger *q, int64_t channel,
                       int64_t row)
{
    const float by = q->x_scale ? ((const float *)q->x_scale)[q->has_rows ? row : 0] : 1.0f;
    const float scale = by * q->scales[channel];
    float v = (float)sum * scale;
    v = v + (q->bias ? q->bias[channel] : 0.0f);
    v = v < q->lo ? q->lo : v;
    v = v > q->hi ? q->hi : v;
    if (q->then)
        q->then(&v, (uint8_t *)y + i, 1);
    else if (q->is_float)
        ((float *)y)[i] = v;
    else
        ((uint8_t *)y)[i] = quantized(v * q->inverse, q->y_zero, q->y_lo, q->y_hi);
}

/* The sum of one output of a convolution; i counts images and groups. */
static int32_t conv_sum(const int8_t *x, const int8_t *w, const EtcConv *g, const EtcInteger *q,
                        int64_t i, int64_t oy, int64_t ox)
{
    const int32_t zero = zero_of(q, 0);
    int32_t sum = 0;
    for (int64_t c = 0; c < g->ic; c++) {
        const int8_t *plane = x + (i * g->ic + c) * g->ih * g->iw;
        for (int64_t ky = 0; ky < g->kh; ky++) {
            const int64_t iy = oy * g->sh - g->ph + ky * g->dh;
            for (int64_t kx = 0; kx < g->kw; kx++, w++) {
                const int64_t ix = ox * g->sw - g->pw + kx * g->dw;
                if (iy >= 0 && iy < g->ih && ix >= 0 && ix < g->iw)
                    sum += (byte_at(plane, iy * g->iw + ix, q->x_is_signed) - zero) * *w;
            }
        }
    }
    return sum;
}

static void plain_conv(const int8_t *x, void *y, const EtcConv *g, const Layer *l)
{
    int64_t at = 0;
    for (int64_t i = 0; i < g->n * g->groups; i++)
        for (int64_t c = i % g->groups * g->oc, n = c + g->oc; c < n; c++)
            for (int64_t oy = 0; oy < g->oh; oy++)
                for (int64_t ox = 0; ox < g->ow; ox++)
                    put_output(y, at++, conv_sum(x, l->w + c * l->terms, g, &l->q, i, oy, ox), &l->q,
                               c, 0);
}

static void plain_linear(const int8_t *x, void *y, const EtcIntegerLinear *g, const Layer *l)
{
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t c = 0; c < g->n; c++) {
            int32_t sum = 0;
            for (int64_t k = 0; k < g->k; k++)
                sum += (byte_at(x, i * g->k + k, l->q.x_is_signed) - zero_of(&l->q, i)) *
                       l->w[c * g->k + k];
            put_output(y, i * g->n + c, sum, &l->q, c, i);
        }
    }
}

/* The largest element of a window, or the sum of all and their number. */
static int64_t pool_window(const int8_t *x, const EtcPool *g, int is_signed, int64_t top,
                           int64_t left, int32_t *max, int32_t *sum)
{
    int64_t n = 0;
    *max = is_signed ? -128 : 0;
    *sum = 0;
    for (int64_t ky = 0; ky < g->kh; ky++) {
        for (int64_t kx = 0; kx < g->kw; kx++) {
            const int64_t iy = top + ky * g->dh, ix = left + kx * g->dw;
            if (iy < 0 || iy >= g->ih || ix < 0 || ix >= g->iw)
                continue;
            const int32_t v = byte_at(x, iy * g->iw + ix, is_signed);
            *max = v > *max ? v : *max;
            *sum += v;
            n++;
        }
    }
    return n;
}

/* The elements of a window that reaches at most as far as the padding. */
static int64_t padded_window(const EtcPool *g, int64_t top, int64_t left)
{
    const int64_t under = g->ih + g->ph - top, right = g->iw + g->pw - left;
    return (under < g->kh ? under : g->kh) * (right < g->kw ? right : g->kw);
}

static void plain_pool(const int8_t *x, uint8_t *y, const EtcPool *g, const EtcMean *q, int is_max)
{
    for (int64_t o = 0; o < g->planes * g->oh * g->ow; o++) {
        const int64_t top = o / g->ow % g->oh * g->sh - g->ph, left = o % g->ow * g->sw - g->pw;
        const int8_t *plane = x + o / (g->oh * g->ow) * g->ih * g->iw;
        int32_t max, sum;
        int64_t n = pool_window(plane, g, q->x_is_signed, top, left, &max, &sum);
        sum -= (int32_t)n * q->zero;
        if (n > 0)
            n = g->divisor ? g->divisor : g->count_pad ? padded_window(g, top, left) : n;
        const float mean = (float)sum / (float)(n ? n : 1);
        y[o] = is_max ? (uint8_t)max : quantized(mean * q->by, q->y_zero, q->y_lo, q->y_hi);
    }
}

/* -- comparing ------------------------------------------------------------------------------- */

/* Bits of NaN are not defined. */
static void must_equal(const char *name, const char *what, const void *got, const void *want,
                       int64_t n, int is_float)
{
    for (int64_t i = 0; i < n; i++) {
        const float a = is_float ? ((const float *)got)[i] : ((const uint8_t *)got)[i];
        const float b = is_float ? ((const float *)want)[i] : ((const uint8_t *)want)[i];
        if (memcmp(&a, &b, sizeof a) != 0 && (a == a || b == b)) {
            fprintf(stderr, "%s: output %d of %d of %s is %.9g, expected %.9g\n", name, (int)i,
                    (int)n, what, (double)a, (double)b);
            abort();
        }
    }
}

/* Weights in quads of channels, as emitted C has them. */
static int8_t *in_quads(const EtcConv *g, const int8_t *w)
{
    const int64_t taps = g->kh * g->kw, four = (g->ic + 3) / 4 * 4, rows = g->groups * g->oc;
    const int64_t side = 4 * etc_quads_together(four / 4);
    int8_t *quads = memory(rows * four * taps);
    memset(quads, 0, (size_t)(rows * four * taps));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < g->ic; c++)
            for (int64_t t = 0; t < taps; t++)
                quads[r * four * taps + c / side * side * taps + t * side + c % side] =
                    w[(r * g->ic + c) * taps + t];
    return quads;
}

static void compare_conv(const EtcConv *g, const int8_t *x, const Layer *l)
{
    const int64_t n = g->n * g->groups * g->oc * g->oh * g->ow, bytes = n * (makes_floats(&l->q) ? 4 : 1);
    void *want = memory(bytes);
    int8_t *quads = g->ic > 1 ? in_quads(g, l->w) : NULL;
    EtcConv changed = *g;
    changed.form = ETC_IN_QUADS;
    plain_conv(x, want, g, l);
    for (int i = 0; i < n_builds; i++) {
        if (!can_compute(build[i], l))
            continue;
        void *y = memory(bytes);
        build[i]->conv(x, l->w, y, g, &l->q, work[i]);
        must_equal(build[i]->name, "a convolution", y, want, n, makes_floats(&l->q));
        if (quads) {
            memset(y, 0xA5, (size_t)bytes);
            build[i]->conv(x, quads, y, &changed, &l->q, work[i]);
            must_equal(build[i]->name, "a convolution in quads", y, want, n, makes_floats(&l->q));
        }
        free(y);
    }
    free(quads);
    free(want);
}

/* -- geometries ------------------------------------------------------------------------------ */

/* Returns 0 if all are 1. */
static int halve_largest(int64_t *const *size, int n)
{
    int largest = 0;
    for (int i = 1; i < n; i++)
        largest = *size[i] > *size[largest] ? i : largest;
    const int64_t was = *size[largest];
    *size[largest] = (was + 1) / 2;
    return was > 1;
}

static void draw_kernel(Draw *d, int64_t *kh, int64_t *kw)
{
    static const uint8_t size[] = {1, 1, 2, 3, 3, 3, 4, 5, 5, 7, 9, 11};
    int64_t *const sizes[] = {kh, kw};
    *kh = draw_below(d, 24) ? DRAW_FROM(d, size) : draw_extent(d);
    *kw = draw_below(d, 2) ? *kh : draw_below(d, 24) ? DRAW_FROM(d, size) : draw_extent(d);
    while (*kh * *kw > MOST_TAPS)
        halve_largest(sizes, 2);
}

static int64_t draw_step(Draw *d) /* a stride or dilation */
{
    static const uint8_t step[] = {1, 1, 1, 1, 2, 2, 2, 3, 4, 5, 8, 9};
    return draw_below(d, 32) ? DRAW_FROM(d, step) : draw_extent(d);
}

static int64_t draw_pad(Draw *d, int64_t reach)
{
    static const uint8_t pad[] = {0, 1, 2, 3, 8, 15, 16, 17, 18, 31, 40};
    const unsigned how = draw_below(d, 8);
    return how < 3 ? 0 : how < 6 ? reach / 2 : how < 7 ? reach - 1 : DRAW_FROM(d, pad);
}

/* A kernel along one axis; each side of the input has its own padding. */
typedef struct Axis {
    int64_t kernel, in, stride, pad, behind, dilation, out;
} Axis;

/* Sets the number of outputs, and makes the input larger if no window fits. */
static void set_outputs(Axis *a)
{
    const int64_t reach = (a->kernel - 1) * a->dilation + 1, more = a->pad + a->behind;
    a->in = a->in + more < reach ? reach - more : a->in;
    a->out = (a->in + more - reach) / a->stride + 1;
}

static void draw_axis(Draw *d, Axis *a, int64_t kernel)
{
    a->kernel = kernel;
    a->in = draw_extent(d);
    a->stride = draw_step(d);
    a->dilation = draw_step(d);
    while ((kernel - 1) * a->dilation > MOST_REACH && a->dilation > 1)
        a->dilation /= 2;
    a->pad = draw_pad(d, (kernel - 1) * a->dilation + 1);
    a->behind = a->pad;
    if (kernel > 1 && draw_below(d, 4) == 0)
        a->behind = draw_pad(d, (kernel - 1) * a->dilation + 1);
    set_outputs(a);
}

static void put_axes(EtcConv *g, const Axis *y, const Axis *x)
{
    const EtcConv all = {g->n, g->groups, g->ic, y->in, x->in, g->oc, y->out, x->out,
                         y->kernel, x->kernel, y->stride, x->stride, y->pad, x->pad, y->dilation,
                         x->dilation, 0.0f, 0.0f, ETC_FORWARD, 0, 0};
    *g = all;
}

/* Has at most about `most` products, where channels and sizes can be smaller. */
static void limit_conv(EtcConv *g, Axis *y, Axis *x, int64_t most)
{
    int64_t *const channels[] = {&g->oc, &g->ic, &g->groups, &g->n};
    int64_t *const sizes[] = {&y->in, &x->in};
    for (int i = 0; i < 40; i++) {
        const int64_t pixels = y->out * x->out, terms = g->ic * g->kh * g->kw;
        const int64_t images = g->n * g->groups;
        if (images * g->oc * pixels * terms <= most && g->groups * g->oc * terms <= MOST_BYTES &&
            images * g->ic * y->in * x->in <= MOST_BYTES)
            return;
        if (images * g->oc * g->ic > 16 || i > 20)
            halve_largest(channels, 4);
        else
            halve_largest(sizes, 2);
        set_outputs(y);
        set_outputs(x);
    }
}

static void draw_conv(Draw *d, EtcConv *g)
{
    const int64_t most = draw_work(d);
    const int is_depthwise = draw_below(d, 3) == 0;
    Axis y, x;
    memset(g, 0, sizeof *g);
    g->n = 1 + draw_below(d, 3) / 2;
    g->groups = is_depthwise ? draw_extent(d) : draw_below(d, 4) ? 1 : 1 + draw_below(d, 5);
    g->ic = is_depthwise ? 1 : draw_extent(d);
    g->oc = is_depthwise ? 1 + draw_below(d, 4) : draw_extent(d);
    draw_kernel(d, &g->kh, &g->kw);
    draw_axis(d, &y, g->kh);
    draw_axis(d, &x, g->kw);
    if (draw_below(d, 2)) { /* as most models have it */
        x.stride = y.stride;
        y.dilation = x.dilation = 1;
        y.behind = y.pad;
        x.behind = x.pad;
        set_outputs(&y);
        set_outputs(&x);
    }
    limit_conv(g, &y, &x, most);
    put_axes(g, &y, &x);
}

static void try_conv(Draw *d)
{
    EtcConv g;
    Layer l;
    draw_conv(d, &g);
    int8_t *x = draw_bytes(d, g.n * g.groups * g.ic * g.ih * g.iw);
    draw_layer(&l, d, g.groups * g.oc, g.ic * g.kh * g.kw, 1);
    compare_conv(&g, x, &l);
    free_layer(&l);
    free(x);
}

static void try_linear(Draw *d)
{
    EtcIntegerLinear g = {draw_extent(d), draw_extent(d), draw_extent(d) * (1 + draw_below(d, 9))};
    const int64_t most = draw_work(d);
    Layer l;
    while (g.m * g.n * g.k > most && halve_largest((int64_t *const[]){&g.m, &g.n}, 2)) {
    }
    int8_t *x = draw_bytes(d, g.m * g.k);
    draw_layer(&l, d, g.n, g.k, g.m);
    const int64_t n = g.m * g.n, bytes = n * (makes_floats(&l.q) ? 4 : 1);
    void *want = memory(bytes);
    plain_linear(x, want, &g, &l);
    for (int i = 0; i < n_builds; i++) {
        if (!can_compute(build[i], &l))
            continue;
        void *y = memory(bytes);
        build[i]->linear(x, l.w, y, &g, &l.q);
        must_equal(build[i]->name, "a linear layer", y, want, n, makes_floats(&l.q));
        free(y);
    }
    free(want);
    free_layer(&l);
    free(x);
}

/* The padding of a pool is at most half of the window.  With ceil_mode, a last window may begin in
 * the input and end behind it. */
static void draw_pool_axis(Draw *d, Axis *a, int64_t kernel, int is_max)
{
    draw_axis(d, a, kernel);
    a->dilation = is_max ? a->dilation : 1;
    a->pad = a->behind = draw_below(d, 2) ? 0 : draw_below(d, (size_t)(kernel / 2 + 1));
    set_outputs(a);
}

static void draw_pool(Draw *d, EtcPool *g, int is_max)
{
    const int64_t most = draw_work(d);
    int64_t kh, kw, planes = draw_extent(d);
    Axis y, x;
    draw_kernel(d, &kh, &kw);
    draw_pool_axis(d, &y, kh, is_max);
    draw_pool_axis(d, &x, kw, is_max);
    while (planes > 1 &&
           (planes * y.out * x.out * kh * kw > most || planes * y.in * x.in > MOST_BYTES))
        planes = (planes + 1) / 2;
    y.out += draw_below(d, 4) == 0 && y.out * y.stride < y.in + y.pad;
    x.out += draw_below(d, 4) == 0 && x.out * x.stride < x.in + x.pad;
    const EtcPool all = {planes, y.in, x.in, y.out, x.out, kh, kw, y.stride, x.stride, y.pad, x.pad,
                         y.dilation, x.dilation, 0, 0, 0};
    *g = all;
    g->count_pad = (int32_t)draw_below(d, 2);
    g->divisor = draw_below(d, 8) ? 0 : 1 + draw_below(d, 100);
}

static void try_pool(Draw *d)
{
    EtcPool g;
    EtcMean q;
    const int is_max = (int)draw_below(d, 2);
    draw_pool(d, &g, is_max);
    q.x_is_signed = (int32_t)draw_below(d, 2);
    q.zero = (q.x_is_signed ? -128 : 0) + (int32_t)draw_below(d, ANY_BYTE);
    q.by = 4.0f * draw_unit(d);
    draw_range(d, q.x_is_signed, &q.y_lo, &q.y_hi);
    q.y_zero = (q.x_is_signed ? -128 : 0) + (int32_t)draw_below(d, ANY_BYTE);
    int8_t *x = draw_bytes(d, g.planes * g.ih * g.iw);
    const int64_t n = g.planes * g.oh * g.ow;
    uint8_t *want = memory(n);
    plain_pool(x, want, &g, &q, is_max);
    for (int i = 0; i < n_builds; i++) {
        uint8_t *y = memory(n);
        if (is_max)
            build[i]->max_pool(x, y, q.x_is_signed, &g);
        else
            build[i]->avg_pool(x, y, &g, &q);
        must_equal(build[i]->name, is_max ? "a max pool" : "a mean", y, want, n, 0);
        free(y);
    }
    free(want);
    free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t seed = 0;
    const size_t n = size < sizeof seed ? size : sizeof seed;
    memcpy(&seed, data, n);
    Draw d = {data + n, size - n, (uint64_t)seed << 1 | 1};
    const unsigned which = draw_below(&d, 8);
    if (which < 5)
        try_conv(&d);
    else if (which < 6)
        try_linear(&d);
    else
        try_pool(&d);
    return 0;
}

#ifdef RUNS
int main(int argc, char **argv)
{
    const uint32_t runs = argc > 1 ? (uint32_t)atoi(argv[1]) : RUNS;
    LLVMFuzzerInitialize(&argc, &argv);
    for (uint32_t i = 0; i < runs; i++)
        LLVMFuzzerTestOneInput((const uint8_t *)&i, sizeof i);
    printf("1..%d\n", n_builds + n_missing);
    for (int i = 0; i < n_builds; i++)
        printf("ok %d - %s: %u inputs\n", i + 1, build[i]->name, (unsigned)runs);
    for (int i = 0; i < n_missing; i++)
        printf("ok %d - %s # SKIP this CPU lacks it\n", n_builds + i + 1, missing[i]->name);
    return 0;
}
#endif
