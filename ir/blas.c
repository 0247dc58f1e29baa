/* blas.c -- matrix products and convolutions by OpenBLAS, for --fast-calibrate, which prefers speed
 * to reproducible bits.
 *
 * The library is loaded at the first use, because loading it triples the start-up time.  Its
 * products replace those in the table of cores; the kernels around them, which check and resize,
 * stay the same.  A core gets only its arguments, so the extra data that these functions need lies
 * after the scratch memory of kernels.
 *
 * A convolution writes its windows as columns, a block at a time, and multiplies (im2col).  If a
 * group has few channels this is no faster, and the core of the kernels is used. */
#include "ir/internal.h"
#include "runtime-lite/kernels/cores.h"
#include <dlfcn.h>
#include <math.h>
#include <string.h>

typedef void Gemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                  const float *a, int a_row, const float *b, int b_row, float beta, float *c,
                  int c_row);

enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111, TRANSPOSED = 112 }; /* constants of CBLAS */

struct Blas {
    const char *name;
    Gemm *gemm;
    EtcCores cores;
    const EtcCores *own;
};

enum { COLUMNS = 1 << 20 }; /* floats of a block of windows */

typedef struct Extra { /* it lies after the scratch memory */
    const Blas *blas;
    float columns[COLUMNS];
} Extra;

static Extra *extra(void *scratch)
{
    return (Extra *)((char *)scratch + ETC_SCRATCH_BYTES);
}

static bool fits(int64_t a, int64_t b, int64_t c)
{
    return a <= INT32_MAX && b <= INT32_MAX && c <= INT32_MAX;
}

static bool clamps(float lo, float hi)
{
    return lo > -HUGE_VALF || hi < HUGE_VALF;
}

/* -- matmul ------------------------------------------------------------------------------------ */

static void matmul(const float *a, const float *b, const float *bias, float *y, const EtcMatmul *g,
                   void *work)
{
    const Blas *blas = extra(work)->blas;
    if (!g->m || !g->n || !g->k || clamps(g->lo, g->hi) || !fits(g->m, g->n, g->k) ||
        !fits(g->a_row, g->b_row, 0)) {
        blas->own->matmul(a, b, bias, y, g, work);
        return;
    }
    for (int64_t i = 0; bias && !g->from_y && i < g->m; i++)
        memcpy(y + i * g->n, bias, (size_t)g->n * sizeof *y);
    const int transpose_b = g->b_form == ETC_BY_COLUMNS ? TRANSPOSED : NOT_TRANSPOSED;
    blas->gemm(ROW_MAJOR, NOT_TRANSPOSED, transpose_b, (int)g->m, (int)g->n, (int)g->k, 1, a,
               (int)g->a_row, b, (int)g->b_row, bias || g->from_y ? 1 : 0, y, (int)g->n);
}

/* -- convolution ------------------------------------------------------------------------------- */

/* Writes the elements of one channel that one tap reads for n pixels of y, from pixel `from` on.
 * Padding is 0. */
static void write_tap(const float *x, const EtcConv *g, int64_t ky, int64_t kx, int64_t from,
                      int64_t n, float *to)
{
    int64_t oy = from / g->ow, ox = from % g->ow;
    while (n > 0) {
        const int64_t run = g->ow - ox < n ? g->ow - ox : n;
        const int64_t iy = oy * g->sh - g->ph + ky * g->dh;
        const float *row = x + iy * g->iw;
        int64_t ix = ox * g->sw - g->pw + kx * g->dw;
        for (int64_t i = 0; i < run; i++, ix += g->sw)
            to[i] = iy >= 0 && iy < g->ih && ix >= 0 && ix < g->iw ? row[ix] : 0;
        to += run;
        n -= run;
        ox = 0;
        oy++;
    }
}

static void write_columns(const float *x, const EtcConv *g, int64_t from, int64_t n, float *to)
{
    for (int64_t c = 0; c < g->ic; c++)
        for (int64_t ky = 0; ky < g->kh; ky++)
            for (int64_t kx = 0; kx < g->kw; kx++, to += n)
                write_tap(x + c * g->ih * g->iw, g, ky, kx, from, n, to);
}

static bool is_pointwise(const EtcConv *g)
{
    return g->kh == 1 && g->kw == 1 && g->sh == 1 && g->sw == 1 && !g->ph && !g->pw;
}

/* Computes one group of one image. */
static void conv_group(const float *x, const float *w, float *y, const EtcConv *g, bool has_bias,
                       Extra *t)
{
    const int64_t k = g->ic * g->kh * g->kw, pixels = g->oh * g->ow;
    const int64_t block = is_pointwise(g) ? pixels : COLUMNS / k;
    for (int64_t at = 0; at < pixels; at += block) {
        const int64_t n = pixels - at < block ? pixels - at : block;
        if (!is_pointwise(g))
            write_columns(x, g, at, n, t->columns);
        t->blas->gemm(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, (int)g->oc, (int)n, (int)k, 1, w,
                      (int)k, is_pointwise(g) ? x : t->columns, (int)n, has_bias ? 1 : 0, y + at,
                      (int)pixels);
    }
}

static bool gains(const EtcConv *g)
{
    const int64_t k = g->ic * g->kh * g->kw;
    return g->form != ETC_TRANSPOSED && !clamps(g->lo, g->hi) && !g->x_plane && !g->y_plane &&
           g->oc >= 8 && g->ic >= 2 && k <= COLUMNS / 64 && fits(g->oc, g->oh * g->ow, k);
}

static void conv(const float *x, const float *w, const float *bias, float *y, const EtcConv *g,
                 void *work)
{
    Extra *t = extra(work);
    const int64_t k = g->ic * g->kh * g->kw, pixels = g->oh * g->ow;
    if (!gains(g)) {
        t->blas->own->conv(x, w, bias, y, g, work);
        return;
    }
    for (int64_t i = 0; i < g->n * g->groups; i++) {
        const int64_t group = i % g->groups;
        float *out = y + i * g->oc * pixels;
        for (int64_t c = 0; bias && c < g->oc; c++)
            for (int64_t p = 0; p < pixels; p++)
                out[c * pixels + p] = bias[group * g->oc + c];
        conv_group(x + i * g->ic * g->ih * g->iw, w + group * g->oc * k, out, g, bias != NULL, t);
    }
}

/* -- the library ------------------------------------------------------------------------------- */

/* ISO C has no cast from a pointer to data to a pointer to a function.  So this stores the result
 * of dlsym through a pointer to void *. */
#define FIND(library, name, to) (*(void **)(to) = dlsym(library, name))

const Blas *blas_open(Arena *a, Diag *d)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    Blas *b = NEW(a, Blas, 1);
    void (*set_threads)(int) = NULL;
    char *(*config)(void) = NULL;
    if (library) {
        FIND(library, "cblas_sgemm", &b->gemm);
        FIND(library, "openblas_set_num_threads", &set_threads);
        FIND(library, "openblas_get_config", &config);
    }
    if (!b->gemm || !set_threads || !config) {
        diag_error(d, (Loc){0},
                   "OpenBLAS cannot be used (%s); Debian's packages of it are "
                   "libopenblas0-pthread and libopenblas0-serial",
                   library ? "libopenblas.so.0 lacks its functions" : dlerror());
        return NULL;
    }
    set_threads(1); /* samples have threads */
    const char *name = config();
    b->name = arena_str(a, name, strcspn(name, "\n"));
    b->own = etc_cores();
    b->cores = *b->own;
    b->cores.matmul = matmul;
    b->cores.conv = conv;
    return b;
}

const char *blas_name(const Blas *b)
{
    return b->name;
}

const EtcCores *blas_cores(const Blas *b, Arena *a, void **scratch)
{
    *scratch = arena_bytes(a, ETC_SCRATCH_BYTES + sizeof(Extra));
    extra(*scratch)->blas = b;
    return &b->cores;
}
