/* weights.c -- quantizes weights: symmetric, with one scale, a scale per output channel, or a scale
 * per group of a row.
 *
 * The range is the largest magnitude, or with observer `mse` the one of 64 fractions of it with
 * the least squared error (Choukroun et al. 2019, Low-bit Quantization of Neural Networks for
 * Efficient Inference, 2.2).  If each weight has an importance, the mean square of its
 * activations, this is the error of the results.  Scale estimation then alternates between the
 * integers and the scale that fits them best by least squares (Lin et al. 2016, Fixed Point
 * Quantization of Deep Convolutional Networks; NNCF's scale estimation uses such weights).  HQQ
 * does the same without data, with the power 1/2 of the error, so that a few large errors count
 * little (Badri and Shaji 2023, Half-Quadratic Quantization of Large Machine Learning Models;
 * here the scale is searched, and the zero point is 0).  Scales of groups are bfloat16, as
 * XNNPACK stores them. */
#include "quant/internal.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

enum { LANES = 8, N_SCALES = 8 };

Ints ints_new(const QuantFormat *f, const Value *w, int axis, Arena *a)
{
    assert(f->dtype == ETC_I8 && (f->bits == 8 || f->bits == 4) && axis < w->type.rank);
    const Type t = w->type;
    const int64_t all = type_numel(t);
    const int half = 1 << (f->bits - 1);
    Ints k = {.outer = 1, .n = t.dim[axis].value, .inner = 1, .lo = -half, .hi = half - 1};
    k.vector_bytes = cpu_vector_bytes();
    k.lo += f->bits == 8;  /* products of two such fit 15 bits */
    if (f->reduce_range) { /* two products with unsigned bytes add up in 16 bits */
        k.lo = -64;
        k.hi = 64;
    }
    for (int i = 0; i < axis; i++)
        k.outer *= t.dim[i].value;
    k.inner = all / (k.outer * k.n);
    if (f->granularity == PER_GROUP) {
        assert(f->group > 0 && all % f->group == 0);
        k.n = all / f->group;
        k.inner = f->group;
    }
    k.q = NEW(a, int8_t, all + 1);
    k.scale = NEW(a, float, k.n + 1);
    return k;
}

/* A value that is no number becomes the least integer. */
static double nearest(const Ints *k, double v)
{
    v = v > k->lo ? (v > k->hi ? k->hi : v) : k->lo;
    return (v + 6755399441055744.0) - 6755399441055744.0; /* ties to even */
}

int ints_nearest(const Ints *k, double v)
{
    return (int)nearest(k, v);
}

static double magnitude(const Ints *k, const float *w, int64_t c)
{
    double most = 0;
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t i = 0; i < k->inner; i++) {
            const double v = fabs((double)w[(o * k->n + c) * k->inner + i]);
            most = v > most ? v : most;
        }
    return most;
}

/* -- errors ------------------------------------------------------------------------------------
 * A build with weights of few bits spends most of its time here.  The elements of a vector are
 * scales that are tried at once.  The functions for wider vectors give the same bits, because sums
 * have the same lanes and no step is fused. */

typedef double Scales __attribute__((vector_size(8 * N_SCALES)));
typedef int64_t Mask __attribute__((vector_size(8 * N_SCALES)));

/* Adds to sum[i] the errors of weights i, i + LANES .. of a run. */
typedef void Errors(const Ints *k, const float *w, const float *h, int64_t n,
                    const double scale[N_SCALES], double to[LANES][N_SCALES]);

static inline __attribute__((always_inline)) void
errors_of(const Ints *k, const float *w, const float *h, int64_t n, const double scale[N_SCALES],
          double to[LANES][N_SCALES])
{
    const Scales zero = {0}, lo = zero + k->lo, hi = zero + k->hi;
    const Scales even = zero + 6755399441055744.0; /* rounds, ties to even */
    Scales by, sum[LANES];
    memcpy(&by, scale, sizeof by);
    memcpy(sum, to, sizeof sum);
    const Scales inverse = 1 / by;
    for (int64_t at = 0; at < n; at += LANES)
        for (int i = 0; i < LANES && at + i < n; i++) {
            const Scales v = zero + (double)w[at + i];
            Scales q = v * inverse;
            q = (Scales)((Mask)q ^ (((Mask)q ^ (Mask)lo) & (q < lo)));
            q = (Scales)((Mask)q ^ (((Mask)q ^ (Mask)hi) & (q > hi)));
            const Scales e = v - by * ((q + even) - even);
            sum[i] += h ? e * e * (double)h[at + i] : e * e;
        }
    memcpy(to, sum, sizeof sum);
}

#define ADD_ERRORS(name, vectors)                                                               \
    vectors static void name(const Ints *k, const float *w, const float *h, int64_t n,          \
                             const double scale[N_SCALES], double to[LANES][N_SCALES])          \
    {                                                                                           \
        errors_of(k, w, h, n, scale, to);                                                       \
    }

#if defined(__x86_64__)
ADD_ERRORS(add_errors, __attribute__((cold))) /* compiled for size: only old CPUs call it */
ADD_ERRORS(add_errors_avx2, __attribute__((target("avx2"))))
ADD_ERRORS(add_errors_avx512, __attribute__((target("avx512f,avx512dq,avx512vl"))))
#else
ADD_ERRORS(add_errors, )
#define add_errors_avx2 add_errors
#define add_errors_avx512 add_errors
#endif

static Errors *errors_with(int vector_bytes)
{
    return vector_bytes == 64   ? add_errors_avx512
           : vector_bytes == 32 ? add_errors_avx2
                                : add_errors;
}

static void squared_errors(const Ints *k, const float *w, const float *h, int64_t c,
                           const double scale[N_SCALES], double error[N_SCALES])
{
    double sum[LANES][N_SCALES] = {{0}};
    Errors *add = errors_with(k->vector_bytes);
    for (int64_t o = 0; o < k->outer; o++) {
        const int64_t at = (o * k->n + c) * k->inner;
        add(k, w + at, h ? h + at : NULL, k->inner, scale, sum);
    }
    for (int s = 0; s < N_SCALES; s++) {
        error[s] = 0;
        for (int i = 0; i < LANES; i++)
            error[s] += sum[i][s];
    }
}

static double squared_error(const Ints *k, const float *w, const float *h, int64_t c, double scale)
{
    double all[N_SCALES], error[N_SCALES];
    for (int i = 0; i < N_SCALES; i++)
        all[i] = scale;
    squared_errors(k, w, h, c, all, error);
    return error[0];
}

/* -- scales ------------------------------------------------------------------------------------ */

static float as_bf16(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&v, &bits, sizeof v);
    return v;
}

float scale_kept(double scale, const QuantFormat *f)
{
    return f->granularity == PER_GROUP ? as_bf16((float)scale) : (float)scale;
}

/* Returns the index of the weight with the largest magnitude. */
static int64_t extreme(const Ints *k, const float *w, int64_t c)
{
    int64_t best = c * k->inner;
    assert(c >= 0 && c < k->n);
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t i = 0, at = (o * k->n + c) * k->inner; i < k->inner; i++)
            best = fabsf(w[at + i]) > fabsf(w[best]) ? at + i : best;
    return best;
}

/* Returns whether the error of this weight alone is at least `least` with all of these scales.
 * Sums of errors only grow, so none of the scales is better. */
static bool none_is_better(const Ints *k, double v, double weight, const double scale[N_SCALES],
                           double least)
{
    for (int s = 0; s < N_SCALES; s++) {
        const double e = v - scale[s] * nearest(k, v * (1 / scale[s]));
        if (!(e * e * weight >= least))
            return false;
    }
    return true;
}

static float best_scale(const Ints *k, const QuantFormat *f, const float *w, const float *h,
                        int64_t c)
{
    enum { TRIED = 48 };
    const double steps = 64;
    static_assert(TRIED % N_SCALES == 0, "scales are tried by vectors");
    const float most = k->scale[c];
    const int64_t at = extreme(k, w, c);
    float best = most;
    double least = INFINITY;
    for (int i = 0; i < TRIED; i += N_SCALES) {
        double scale[N_SCALES], error[N_SCALES];
        for (int s = 0; s < N_SCALES; s++)
            scale[s] = i + s ? (double)scale_kept((double)most * (steps - i - s) / steps, f)
                             : (double)most;
        if (none_is_better(k, (double)w[at], h ? (double)h[at] : 1, scale, least))
            continue;
        squared_errors(k, w, h, c, scale, error);
        for (int s = 0; s < N_SCALES; s++)
            if (scale[s] > 0 && error[s] < least) {
                least = error[s];
                best = (float)scale[s];
            }
    }
    return best;
}

/* Raises scales that are far below the largest one, because runtimes compute with ratios of scales.
 */
static void raise_small(Ints *k)
{
    float most = 0;
    for (int64_t c = 0; c < k->n; c++)
        most = k->scale[c] > most ? k->scale[c] : most;
    const float least = most > 0 ? most * 0x1p-20f : 1;
    for (int64_t c = 0; c < k->n; c++)
        k->scale[c] = k->scale[c] > least ? k->scale[c] : least;
}

/* -- threads ----------------------------------------------------------------------------------- */

/* The range of scales that one thread works on. */
typedef struct Share {
    Ints *k;
    const QuantFormat *f;
    const float *w, *h;
    int64_t from, to;
    void (*does)(const struct Share *);
    pthread_t thread;
    bool has_thread;
} Share;

static void *run_part(void *part)
{
    const Share *p = part;
    p->does(p);
    return NULL;
}

/* Divides the work among threads.  This thread does the part of each thread that cannot be started.
 */
static void share(Share all)
{
    enum { MOST = 64, WORTH = 1 << 18 };
    Share part[MOST];
    assert(all.does && all.k->n >= 0);
    const int64_t weights = all.k->outer * all.k->n * all.k->inner;
    int n = weights / WORTH < all.k->threads ? (int)(weights / WORTH) : all.k->threads;
    n = n < 1 ? 1 : n > MOST ? MOST : n;
    for (int i = 0; i < n; i++) {
        part[i] = all;
        part[i].from = all.k->n * i / n;
        part[i].to = all.k->n * (i + 1) / n;
        part[i].has_thread = i && !pthread_create(&part[i].thread, NULL, run_part, &part[i]);
    }
    for (int i = 0; i < n; i++)
        if (part[i].has_thread)
            pthread_join(part[i].thread, NULL);
        else
            run_part(&part[i]);
}

static void take_largest(const Share *p)
{
    for (int64_t c = p->from; c < p->to; c++)
        p->k->scale[c] = scale_kept(magnitude(p->k, p->w, c) / ((p->k->hi - p->k->lo) / 2.0), p->f);
}

static void take_best(const Share *p)
{
    for (int64_t c = p->from; c < p->to; c++)
        if (p->k->scale[c] > 0)
            p->k->scale[c] = best_scale(p->k, p->f, p->w, p->h, c);
}

void ints_set_scales(Ints *k, const QuantFormat *f, const float *w, const float *h)
{
    float most = 0;
    share((Share){.k = k, .f = f, .w = w, .does = take_largest});
    for (int64_t c = 0; c < k->n && f->granularity == PER_TENSOR; c++)
        most = k->scale[c] > most ? k->scale[c] : most;
    for (int64_t c = 0; c < k->n && f->granularity == PER_TENSOR; c++)
        k->scale[c] = most;
    if (f->observer == OBS_MSE && f->granularity != PER_TENSOR)
        share((Share){.k = k, .f = f, .w = w, .h = h, .does = take_best});
    raise_small(k);
}

/* Returns the scale with which these integers come nearest to w - e; 0: there is none. */
static double fitted(const Ints *k, const float *w, const float *h, int64_t c, double scale,
                     bool shrinks)
{
    double above = 0, below = 0;
    const double inverse = 1 / scale, threshold = scale / 8;
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t i = 0; i < k->inner; i++) {
            const int64_t at = (o * k->n + c) * k->inner + i;
            const double v = (double)w[at], q = ints_nearest(k, v * inverse);
            double e = v - scale * q, size = fabs(e), weight = h ? (double)h[at] : 1;
            /* with exponent 1/2, large errors count little: Badri and Shaji's shrinkage operator */
            size = shrinks && size > 0 ? size - threshold * sqrt(threshold / size) : 0;
            e = size > 0 ? (e < 0 ? -size : size) : 0;
            above += weight * q * (v - e);
            below += weight * q * q;
        }
    return below > 0 ? above / below : 0;
}

static double root_error(const Ints *k, const float *w, int64_t c, double scale)
{
    double sum = 0;
    const double inverse = 1 / scale;
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t i = 0; i < k->inner; i++) {
            const double v = (double)w[(o * k->n + c) * k->inner + i];
            sum += sqrt(fabs(v - scale * ints_nearest(k, v * inverse)));
        }
    return sum;
}

static void fit(Ints *k, const QuantFormat *f, const float *w, const float *h, bool shrinks)
{
    enum { ROUNDS = 20 };
    for (int64_t c = 0; c < k->n && f->granularity != PER_TENSOR; c++) {
        double least = shrinks ? root_error(k, w, c, (double)k->scale[c])
                               : squared_error(k, w, h, c, (double)k->scale[c]);
        for (int i = 0; i < ROUNDS; i++) {
            const float scale = scale_kept(fitted(k, w, h, c, (double)k->scale[c], shrinks), f);
            const double e = !(scale > 0) ? INFINITY
                             : shrinks    ? root_error(k, w, c, (double)scale)
                                          : squared_error(k, w, h, c, (double)scale);
            if (!(e < least))
                break;
            least = e;
            k->scale[c] = scale;
        }
    }
    raise_small(k);
}

void ints_fit_scales(Ints *k, const QuantFormat *f, const float *w, const float *h)
{
    fit(k, f, w, h, false);
}

void ints_shrink_scales(Ints *k, const QuantFormat *f, const float *w)
{
    fit(k, f, w, NULL, true);
}

static void round_part(const Share *p)
{
    const Ints *k = p->k;
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t c = p->from; c < p->to; c++)
            for (int64_t i = 0, at = (o * k->n + c) * k->inner; i < k->inner; i++)
                k->q[at + i] =
                    (int8_t)ints_nearest(k, (double)p->w[at + i] / (double)k->scale[c]);
}

void ints_round(Ints *k, const float *w)
{
    share((Share){.k = k, .w = w, .does = round_part});
}

/* -- the layout of weights --------------------------------------------------------------------- */

bool geometry_of(const Node *n, Geometry *g)
{
    Weighted v;
    if (!weighted_read(n, &v) || (v.is_conv && v.w_axis) || v.groups < 1)
        return false;
    const Value *w = v.w;
    const int64_t all = type_is_static(w->type) ? type_numel(w->type) : 0;
    if (!all)
        return false;
    *g = (Geometry){.results = w->type.dim[v.w_axis].value, .taps = 1, .by_column = v.w_axis};
    for (int i = 2; i < w->type.rank; i++)
        g->taps *= w->type.dim[i].value;
    g->row = all / g->results;
    g->results_of_group = g->results / v.groups;
    g->channels_of_group = g->row / g->taps;
    return true;
}

int64_t result_at(const Geometry *g, int64_t element)
{
    return g->by_column ? element % g->results : element / g->row;
}

int64_t channel_at(const Geometry *g, int64_t element)
{
    if (g->by_column)
        return element / g->results;
    return element / g->row / g->results_of_group * g->channels_of_group +
           element % g->row / g->taps;
}
