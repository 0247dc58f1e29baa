/* test_observe.c -- compares observers with results that are computed here from all values by
 * sorting, summing and searching. */
#include <criterion/criterion.h>
#include <float.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "quant/quant.h"

enum { N = 20000 };

typedef enum Shape { NORMAL, HALF, OFFSET, OUTLIER, UNIFORM, TWO_HUMPS, N_SHAPES } Shape;
static const char *const shape_name[] = {"normal",  "half normal", "offset",
                                         "outlier", "uniform",     "two humps"};

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

static double normal(uint64_t *seed)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += uniform(seed);
    return sum;
}

static float *draw(Shape shape, int n, uint64_t seed)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int i = 0; i < n; i++) {
        double v = shape == UNIFORM ? uniform(&seed) * 3 - 1 : normal(&seed);
        if (shape == HALF)
            v = v > 0 ? v : 0;
        if (shape == OFFSET)
            v = v * 0.1 + 7;
        if (shape == OUTLIER && i % 5000 == 17)
            v = 60;
        if (shape == TWO_HUMPS)
            v = i % 3 ? v * 0.2 - 3 : v * 0.2 + 5;
        x[i] = (float)v;
    }
    return x;
}

static Observer *seen(Arena *a, ObserverKind kind, double percentile, const float *x, int n)
{
    int64_t bad;
    Observer *o = observer_new(a, kind, percentile, 1);
    cr_assert(observer_add(o, x, n, 1, &bad));
    return o;
}

static void extremes(const float *x, int n, float *lo, float *hi)
{
    *lo = *hi = 0;
    for (int i = 0; i < n; i++) {
        *lo = fminf(*lo, x[i]);
        *hi = fmaxf(*hi, x[i]);
    }
}

Test(observe, least_and_largest_by_channel)
{
    enum { CHANNELS = 3, INNER = 7, CALLS = 5 };
    Arena *a = arena_new();
    Observer *o = observer_new(a, OBS_MINMAX, 0, CHANNELS);
    float want_lo[CHANNELS] = {0}, want_hi[CHANNELS] = {0}, lo, hi;
    int64_t bad;
    for (int call = 0; call < CALLS; call++) {
        float *x = draw(NORMAL, 2 * CHANNELS * INNER, (uint64_t)call);
        for (int i = 0; i < 2 * CHANNELS * INNER; i++) {
            int c = i / INNER % CHANNELS;
            want_lo[c] = fminf(want_lo[c], x[i]);
            want_hi[c] = fmaxf(want_hi[c], x[i]);
        }
        cr_assert(observer_add(o, x, 2 * CHANNELS * INNER, INNER, &bad));
        free(x);
    }
    for (int c = 0; c < CHANNELS; c++) {
        observer_range(o, c, -128, 127, false, &lo, &hi);
        cr_expect_eq(lo, want_lo[c]);
        cr_expect_eq(hi, want_hi[c]);
        observer_range(o, c, -127, 127, true, &lo, &hi);
        cr_expect_eq(hi, fmaxf(-want_lo[c], want_hi[c]));
        cr_expect_eq(lo, -hi);
    }
    arena_free(a);
}

Test(observe, a_range_holds_zero)
{
    static const float high[] = {3, 5}, low[] = {-4, -2};
    Arena *a = arena_new();
    for (int kind = 0; kind < N_OBSERVERS; kind++) {
        float lo, hi;
        observer_range(seen(a, (ObserverKind)kind, 100, high, 2), 0, 0, 255, false, &lo, &hi);
        cr_expect(lo == 0 && hi > 0, "observer %d: %g %g", kind, (double)lo, (double)hi);
        observer_range(seen(a, (ObserverKind)kind, 100, low, 2), 0, 0, 255, false, &lo, &hi);
        cr_expect(lo < 0 && hi == 0, "observer %d: %g %g", kind, (double)lo, (double)hi);
    }
    arena_free(a);
}

Test(observe, an_average_moves_a_hundredth_of_the_way)
{
    Arena *a = arena_new();
    Observer *o = observer_new(a, OBS_MOVING_AVERAGE, 0, 1);
    double want_lo = 0, want_hi = 0;
    float lo, hi;
    int64_t bad;
    for (int call = 0; call < 40; call++) {
        float *x = draw(NORMAL, 100, (uint64_t)call), l, h;
        extremes(x, 100, &l, &h);
        want_lo = call ? want_lo + 0.01 * (l - want_lo) : l;
        want_hi = call ? want_hi + 0.01 * (h - want_hi) : h;
        cr_assert(observer_add(o, x, 100, 1, &bad));
        free(x);
    }
    observer_range(o, 0, -128, 127, false, &lo, &hi);
    cr_expect_float_eq(lo, want_lo, 1e-5);
    cr_expect_float_eq(hi, want_hi, 1e-5);
    arena_free(a);
}

Test(observe, what_is_no_number_is_told_by_index_and_not_counted)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    static const int at[] = {0, 255, 256, 999};
    Arena *a = arena_new();
    float *x = draw(NORMAL, 1000, 1), lo, hi, lo_after, hi_after;
    for (int kind = 0; kind < N_OBSERVERS; kind++)
        for (int i = 0; i < 12; i++) {
            int64_t bad = -1;
            Observer *o = seen(a, (ObserverKind)kind, 99, x, 1000);
            observer_range(o, 0, -128, 127, false, &lo, &hi);
            float kept = x[at[i / 3]];
            x[at[i / 3]] = wrong[i % 3];
            cr_expect_not(observer_add(o, x, 1000, 1, &bad));
            cr_expect_eq(bad, at[i / 3]);
            x[at[i / 3]] = kept;
            observer_range(o, 0, -128, 127, false, &lo_after, &hi_after);
            cr_expect(lo == lo_after && hi == hi_after, "observer %d has seen a part", kind);
        }
    free(x);
    arena_free(a);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

Test(observe, percentiles_are_those_of_the_sorted_values)
{
    static const double percent[] = {75, 99, 99.9, 99.99, 100};
    Arena *a = arena_new();
    for (int shape = 0; shape < N_SHAPES; shape++) {
        float *x = draw((Shape)shape, N, 3), lo, hi;
        Observer *o[5];
        for (int i = 0; i < 5; i++)
            o[i] = seen(a, OBS_PERCENTILE, percent[i], x, N);
        qsort(x, N, sizeof *x, by_value);
        for (int i = 0; i < 5; i++) {
            double tail = (1 - percent[i] / 100) * (double)N, width = (x[N - 1] - x[0]) / 2048.0;
            int k = (int)fmin(N - 1, ceil((double)N - tail)) - (percent[i] < 100);
            observer_range(o[i], 0, -128, 127, false, &lo, &hi);
            /* between neighbours in order, or a bin away from them */
            cr_expect(hi >= fmaxf(0, x[k > 1 ? k - 2 : 0]) - width &&
                          hi <= fmaxf(0, x[k + (k < N - 1)]) + width,
                      "%s %g%%: %g, not %g", shape_name[shape], percent[i], (double)hi,
                      (double)x[k]);
            k = N - 1 - k;
            cr_expect(lo >= fminf(0, x[k ? k - 1 : 0]) - width && lo <= fminf(0, x[k + 2]) + width,
                      "%s %g%%: %g, not %g", shape_name[shape], percent[i], (double)lo,
                      (double)x[k]);
        }
        free(x);
    }
    arena_free(a);
}

/* -- the least squared error ------------------------------------------------------------------ */

static double real_error(const float *x, double lo, double hi, int quant_min, int quant_max,
                         bool symmetric)
{
    double step = (hi - lo) / (quant_max - quant_min), sum = 0;
    double zero = symmetric ? floor((quant_min + quant_max + 1) / 2.0)
                            : floor(quant_min - lo / step + 0.5);
    for (int i = 0; i < N; i++) {
        double q = fmin(fmax(nearbyint(x[i] / step) + zero, quant_min), quant_max);
        double e = x[i] - (q - zero) * step;
        sum += e * e;
    }
    return sum;
}

static double least_error(const float *x, int quant_min, int quant_max, bool symmetric)
{
    enum { STEPS = 40 };
    float lo, hi;
    extremes(x, N, &lo, &hi);
    double least = -1, most = fmax(-lo, hi);
    for (int i = 1; i <= STEPS; i++)
        for (int j = symmetric ? i : 1; j <= (symmetric ? i : STEPS); j++) {
            double part = i / (double)STEPS, other = j / (double)STEPS;
            double l = symmetric ? -most * part : (double)lo * part;
            double h = symmetric ? most * part : (double)hi * other;
            double e = h > l ? real_error(x, l, h, quant_min, quant_max, symmetric) : -1;
            least = e >= 0 && (least < 0 || e < least) ? e : least;
        }
    return least;
}

static void check_least_error(Shape shape, int quant_min, int quant_max, bool symmetric)
{
    Arena *a = arena_new();
    float *x = draw(shape, N, 5), lo, hi;
    Observer *o = seen(a, OBS_MSE, 0, x, N);
    observer_range(o, 0, quant_min, quant_max, symmetric, &lo, &hi);
    double got = real_error(x, lo, hi, quant_min, quant_max, symmetric);
    double least = least_error(x, quant_min, quant_max, symmetric);
    cr_expect_leq(got, 1.03 * least, "%s, %d..%d%s: range %g..%g has error %g, one has %g",
                  shape_name[shape], quant_min, quant_max, symmetric ? " symmetric" : "",
                  (double)lo, (double)hi, got, least);
    free(x);
    arena_free(a);
}

Test(observe, no_other_range_has_less_squared_error)
{
    for (int shape = 0; shape < N_SHAPES; shape++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            check_least_error((Shape)shape, -128, 127, symmetric);
            check_least_error((Shape)shape, -8, 7, symmetric);
        }
}

/* -- the least divergence --------------------------------------------------------------------- */

enum { REFERENCE_BINS = 1 << 16 };

typedef struct Reference { /* what observe.c says it counts, counted another way */
    double count[REFERENCE_BINS], width, total;
    int half;
} Reference;

static int bin_at(const Reference *r, float x)
{
    return (int)floor(x / r->width) + r->half;
}

static void count_values(Reference *r, const float *x)
{
    float lo = x[0], hi = x[0];
    for (int i = 0; i < N; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    r->half = REFERENCE_BINS / 2;
    for (r->width = ldexp(1, -40); floor(hi / r->width) - floor(lo / r->width) >= 4096 ||
                                   fmaxf(-lo, hi) / r->width >= 1 << 30;)
        r->width *= 2;
    for (int i = 0; i < N; i++)
        r->count[bin_at(r, x[i])]++;
    /* zero is a level itself: its bin has no more than the larger of its neighbours */
    r->total = (double)N - r->count[r->half];
    r->count[r->half] = fmin(r->count[r->half], fmax(r->count[r->half - 1], r->count[r->half + 1]));
    r->total += r->count[r->half];
}

/* Infinite where no value lies in [lo, hi]. */
static double divergence_of(const Reference *r, double lo, double hi, int levels)
{
    static double p[REFERENCE_BINS], sum[1 << 8], filled[1 << 8];
    int first = -1, last = -1, seen_first = -1, seen_last = -1;
    double inside = 0, d = 0;
    memset(p, 0, sizeof p);
    memset(sum, 0, sizeof sum);
    memset(filled, 0, sizeof filled);
    for (int i = 0; i < REFERENCE_BINS; i++)
        if (r->count[i] > 0) {
            seen_first = seen_first < 0 ? i : seen_first;
            seen_last = i;
        }
    for (int i = seen_first; i <= seen_last; i++) {
        double centre = (i - r->half + 0.5) * r->width;
        if (centre < lo || centre > hi)
            continue;
        first = first < 0 ? i : first;
        last = i;
        int cell = (int)fmin(levels - 1, floor((centre - lo) / (hi - lo) * levels));
        p[i] = r->count[i];
        sum[cell] += p[i];
        filled[cell] += p[i] > 0;
        inside += p[i];
    }
    for (int i = 0; first >= 0 && i < REFERENCE_BINS; i++)
        if (i < first || i > last)
            p[i < first ? first : last] += r->count[i];
    for (int i = first; inside > 0 && i <= last; i++) {
        double centre = (i - r->half + 0.5) * r->width;
        int cell = (int)fmin(levels - 1, floor((centre - lo) / (hi - lo) * levels));
        double q = r->count[i] > 0 ? sum[cell] / filled[cell] / inside : 1.0 / r->total;
        if (p[i] > 0)
            d += p[i] / r->total * log(p[i] / r->total / q);
    }
    return inside > 0 ? d : HUGE_VAL;
}

static void check_least_divergence(Shape shape, int quant_min, int quant_max, bool symmetric)
{
    Arena *a = arena_new();
    float *x = draw(shape, N, 9), least, most, lo, hi;
    Reference *r = calloc(1, sizeof *r);
    count_values(r, x);
    extremes(x, N, &least, &most);
    if (symmetric) {
        most = fmaxf(-least, most);
        least = -most;
    }
    int levels = quant_max - quant_min + 1;
    double d = HUGE_VAL, want_lo = least, want_hi = most, end = fmax(-least, most);
    for (int i = 128; i > 0; i--) {
        double l = fmax(least, -end * i / 128), h = fmin(most, end * i / 128);
        if (h - l < r->width * levels)
            break;
        double now = divergence_of(r, l, h, levels);
        if (now < d) {
            d = now;
            want_lo = l;
            want_hi = h;
        }
    }
    observer_range(seen(a, OBS_KL, 0, x, N), 0, quant_min, quant_max, symmetric, &lo, &hi);
    cr_expect(fabs(lo - want_lo) < 1e-6 && fabs(hi - want_hi) < 1e-6,
              "%s %d..%d: %g..%g, not %g..%g", shape_name[shape], quant_min, quant_max, (double)lo,
              (double)hi, want_lo, want_hi);
    if (shape == OUTLIER && quant_max == 127)
        cr_expect_lt(hi, most / 2, "the outliers are not clipped");
    free(r);
    free(x);
    arena_free(a);
}

Test(observe, no_other_range_diverges_less)
{
    for (int shape = 0; shape < N_SHAPES; shape++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            check_least_divergence((Shape)shape, -128, 127, symmetric);
            check_least_divergence((Shape)shape, -8, 7, symmetric);
        }
}

/* -- memory, order, ends ---------------------------------------------------------------------- */

static void ranges(const Observer *o, float r[4])
{
    observer_range(o, 0, -128, 127, false, &r[0], &r[1]);
    observer_range(o, 0, -8, 7, true, &r[2], &r[3]);
}

/* Small ones first, large ones first, one by one: bins are then joined at other times. */
Test(observe, a_histogram_does_not_know_the_order)
{
    static const ObserverKind kinds[] = {OBS_PERCENTILE, OBS_MSE, OBS_KL};
    Arena *a = arena_new();
    for (int shape = 0; shape < N_SHAPES; shape++)
        for (int k = 0; k < 3; k++) {
            float *x = draw((Shape)shape, N, 11), want[4], got[4];
            int64_t bad;
            ranges(seen(a, kinds[k], 99.9, x, N), want);
            for (int way = 0; way < 2; way++) {
                Observer *o = observer_new(a, kinds[k], 99.9, 1);
                qsort(x, N, sizeof *x, by_value);
                for (int i = 0; i < N; i++)
                    cr_assert(observer_add(o, x + (way ? i : N - 1 - i), 1, 1, &bad));
                ranges(o, got);
                cr_expect_arr_eq(got, want, sizeof want, "%s, observer %d", shape_name[shape],
                                 kinds[k]);
            }
            free(x);
        }
    arena_free(a);
}

Test(observe, memory_does_not_grow)
{
    Arena *a = arena_new();
    float *x = draw(NORMAL, N, 13);
    for (int kind = 0; kind < N_OBSERVERS; kind++) {
        Observer *o = observer_new(a, (ObserverKind)kind, 99, 4);
        size_t before = mallinfo2().uordblks;
        int64_t bad;
        for (int call = 0; call < 200; call++) {
            x[call] *= 3; /* wider at each call */
            cr_assert(observer_add(o, x, N, 5, &bad));
        }
        cr_expect_eq(mallinfo2().uordblks, before);
    }
    free(x);
    arena_free(a);
}

Test(observe, the_ends_of_floats)
{
    static const float ends[][4] = {
        {FLT_MAX, -FLT_MAX, 1, -1},
        {FLT_MIN, -FLT_MIN, 0, 0},
        {0x1p-149f, -0x1p-149f, 0, -0.0f},
        {0, -0.0f, 0, 0},
        {FLT_MAX, 0x1p-149f, -0.0f, 0},
        {-FLT_MAX, -1, -1, -0x1p-149f},
        {1, 1, 1, 1},
        {-0x1p-149f, -0x1p-149f, -0x1p-149f, -0x1p-149f},
    };
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (int kind = 0; kind < N_OBSERVERS; kind++) {
            float least, most, lo, hi;
            extremes(ends[i], 4, &least, &most);
            for (int symmetric = 0; symmetric < 2; symmetric++) {
                Observer *o = seen(a, (ObserverKind)kind, 100, ends[i], 4);
                observer_range(o, 0, -128, 127, symmetric, &lo, &hi);
                cr_expect(isfinite(lo) && isfinite(hi) && lo <= 0 && hi >= 0, "%zu: %g %g", i,
                          (double)lo, (double)hi);
                cr_expect(symmetric || (lo >= least && hi <= most), "%zu, observer %d: %g %g", i,
                          kind, (double)lo, (double)hi);
                cr_expect((least == 0 && most == 0) == (lo == 0 && hi == 0), "%zu, observer %d", i,
                          kind);
            }
        }
    Observer *none = observer_new(a, OBS_MSE, 0, 1);
    float lo = 1, hi = 1;
    observer_range(none, 0, -128, 127, false, &lo, &hi);
    cr_expect(lo == 0 && hi == 0);
    arena_free(a);
}

Test(observe, bars_count_every_value)
{
    enum { BARS = 24 };
    Arena *a = arena_new();
    for (int shape = 0; shape < N_SHAPES; shape++) {
        float *x = draw((Shape)shape, N, 17), lo, hi;
        uint64_t bar[BARS];
        cr_assert(observer_bars(seen(a, OBS_MSE, 0, x, N), 0, BARS, bar, &lo, &hi));
        double off = 0, at_edge = 0; /* only values within a bin's width of an edge may be off */
        for (int b = 0; b < BARS; b++) {
            double left = lo + (hi - lo) * (double)b / (double)BARS,
                   right = lo + (hi - lo) * (b + 1.0) / (double)BARS;
            int n = 0;
            for (int i = 0; i < N; i++) {
                n += x[i] >= left && (x[i] < right || (b == BARS - 1 && x[i] <= hi));
                at_edge += fabs(x[i] - left) < (hi - lo) / 2048;
            }
            off += fabs((double)bar[b] - n);
        }
        cr_expect_leq(off, 2 * at_edge, "%s: %g values in other bars", shape_name[shape], off);
        uint64_t sum = 0;
        for (int b = 0; b < BARS; b++)
            sum += bar[b];
        cr_expect_eq(sum, N);
        free(x);
    }
    cr_expect_not(observer_bars(observer_new(a, OBS_MSE, 0, 1), 0, 1, &(uint64_t){0}, &(float){0},
                                &(float){0}));
    arena_free(a);
}

/* As if each value beyond had been seen as the end. */
Test(observe, what_lies_beyond_counts_as_the_end)
{
    static const ObserverKind kind[] = {OBS_MINMAX, OBS_MSE, OBS_KL};
    float *x = draw(NORMAL, N, 5), *y = draw(NORMAL, N, 5);
    for (int i = 0; i < N; i++)
        y[i] = x[i] < -0.5f ? -0.5f : x[i] > 2 ? 2 : x[i];
    for (int k = 0; k < 3; k++) {
        Arena *a = arena_new();
        Observer *o = seen(a, kind[k], 0, x, N), *want = seen(a, kind[k], 0, y, N);
        float lo, hi, l, h;
        observer_clip(o, -0.5f, 2);
        observer_range(o, 0, -128, 127, false, &lo, &hi);
        observer_range(want, 0, -128, 127, false, &l, &h);
        cr_expect(fabsf(lo - l) < 0.01f && fabsf(hi - h) < 0.01f, "%g %g, not %g %g", (double)lo,
                  (double)hi, (double)l, (double)h);
        arena_free(a);
    }
    free(x);
    free(y);
}
