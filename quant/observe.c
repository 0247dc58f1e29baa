/* observe.c -- statistics of values, in memory that does not grow with their number.
 *
 * The width w of a histogram's bins is a power of two.  Bin k holds [k w, (k+1) w), or below zero
 * (k w, (k+1) w].  If values no longer fit, neighbouring bins are joined in pairs, which is exact.
 * So w is always the smallest power of two with which all values fit, and the counts depend only on
 * the values, not on their order or on how they were divided into calls.
 *
 * Nothing here uses libm, and sums have one order: the same values give the same range on any
 * machine. */
#include "quant/internal.h"
#include <float.h>
#include <string.h>

enum {
    BINS = 4096, /* for one channel; more than half of them are between the extreme values */
    BINS_OF_CHANNEL = 1024, /* for each of several channels */
    EXPONENT_MIN = -126,    /* of w, so that 1/w is a float */
    MSE_STEPS = 100,        /* how many ends are tried on each side */
    MSE_ROUNDS = 2,
    KL_STEPS = 128
};

typedef struct Range {
    float lo, hi; /* lo > hi: there is no value yet */
} Range;

typedef struct Histogram {
    int exponent; /* bins are 2^exponent wide */
    int32_t base; /* number of bin count[0] */
    uint64_t total;
    uint64_t *count; /* n_bins of the observer */
} Histogram;

struct Observer {
    ObserverKind kind;
    double percentile;
    int channels, n_bins;
    Range *seen;     /* by channel: the range so far, or the moving average */
    Range *now;      /* by channel: the range of the values of one call */
    Histogram *hist; /* by channel; NULL: this kind of observer needs none */
};

static const Range nothing = {1, -1};

/* -- histograms -------------------------------------------------------------------------------- */

static float power_of_two(int exponent)
{
    assert(exponent > -127 && exponent < 128);
    uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Numbers below zero are counted as if mirrored: halving a bin's number then joins the same
 * pairs on both sides, and the product, being cut towards zero, may underflow. */
static int32_t bin_of(float x, float per_width)
{
    int32_t k = (int32_t)((x < 0 ? -x : x) * per_width);
    return k ^ -(int32_t)(x < 0);
}

static bool fits_in(Range r, int exponent, int n_bins)
{
    float per_width = power_of_two(-exponent), most = r.hi > -r.lo ? r.hi : -r.lo;
    return (double)most * (double)per_width < 1 << 30 &&
           bin_of(r.hi, per_width) - bin_of(r.lo, per_width) < n_bins;
}

static void join_pairs(Histogram *h, int n_bins)
{
    int32_t base = h->base >> 1;
    for (int i = 0; h->total && i < n_bins; i++) {
        uint64_t c = h->count[i];
        h->count[i] = 0;
        h->count[((h->base + i) >> 1) - base] += c;
    }
    h->base = base;
    h->exponent++;
}

/* Makes the histogram cover r, which contains its present range. */
static void hist_cover(Histogram *h, Range r, int n_bins)
{
    while (!fits_in(r, h->exponent, n_bins))
        join_pairs(h, n_bins);
    int32_t base = bin_of(r.lo, power_of_two(-h->exponent));
    assert(!h->total || (h->base >= base && h->base - base < n_bins));
    size_t shift = h->total ? (size_t)(h->base - base) : 0;
    if (shift) {
        memmove(h->count + shift, h->count, ((size_t)n_bins - shift) * sizeof *h->count);
        memset(h->count, 0, shift * sizeof *h->count);
    }
    h->base = base;
}

/* Counts values in four tables in turn.  With one table, a count would have to wait for the one
 * before it whenever neighbouring values fall into the same bin. */
static void count_block(Histogram *h, const float *x, int n, int n_bins)
{
    assert(n_bins <= BINS);
    enum { TABLES = 4, RUN = 256 };
    uint32_t count[TABLES][BINS] = {{0}};
    int32_t bin[RUN];
    const float per_width = power_of_two(-h->exponent);
    const int32_t base = h->base;
    int at = 0;
    for (; at + RUN <= n; at += RUN) {
        for (int i = 0; i < RUN; i++)
            bin[i] = bin_of(x[at + i], per_width) - base;
        for (int i = 0; i < RUN; i += TABLES)
            for (int k = 0; k < TABLES; k++)
                count[k][bin[i + k]]++;
    }
    for (; at < n; at++)
        count[0][bin_of(x[at], per_width) - base]++;
    for (int b = 0; b < n_bins; b++)
        h->count[b] += (uint64_t)count[0][b] + count[1][b] + count[2][b] + count[3][b];
}

static void hist_add(Histogram *h, const float *x, int64_t n, int n_bins)
{
    enum { FEW = 4 * BINS, BLOCK = 1 << 30 };
    const float per_width = power_of_two(-h->exponent);
    h->total += (uint64_t)n;
    for (int64_t at = 0; n >= FEW && at < n; at += BLOCK)
        count_block(h, x + at, (int)(n - at < BLOCK ? n - at : BLOCK), n_bins);
    for (int64_t i = 0; n < FEW && i < n; i++)
        h->count[bin_of(x[i], per_width) - h->base]++;
}

static double left_of(const Histogram *h, int i)
{
    return ((double)h->base + i) * (double)power_of_two(h->exponent);
}

/* Returns the value below which the part q of all values lies, if the values of each bin are spread
 * evenly over it. */
static double quantile(const Histogram *h, int n_bins, double q)
{
    double want = q * (double)h->total, below = 0;
    for (int i = 0; i < n_bins; i++) {
        double c = (double)h->count[i];
        if (h->count[i] && below + c >= want)
            return left_of(h, i) + (double)power_of_two(h->exponent) * ((want - below) / c);
        below += c;
    }
    return left_of(h, n_bins);
}

/* -- observing --------------------------------------------------------------------------------- */

Observer *observer_new(Arena *a, ObserverKind kind, double percentile, int channels)
{
    assert(kind < N_OBSERVERS && channels > 0);
    Observer *o = NEW(a, Observer, 1);
    bool has_hist = kind == OBS_PERCENTILE || kind == OBS_MSE || kind == OBS_KL;
    *o = (Observer){.kind = kind, .percentile = percentile, .channels = channels};
    o->n_bins = channels > 1 ? BINS_OF_CHANNEL : BINS;
    o->seen = NEW(a, Range, channels);
    o->now = NEW(a, Range, channels);
    o->hist = has_hist ? NEW(a, Histogram, channels) : NULL;
    for (int c = 0; c < channels; c++)
        o->seen[c] = nothing;
    for (int c = 0; has_hist && c < channels; c++)
        o->hist[c] = (Histogram){.exponent = EXPONENT_MIN, .count = NEW(a, uint64_t, o->n_bins)};
    return o;
}

/* Returns the index of the first NaN or infinity; n: there is none. */
static int64_t first_bad(const float *x, int64_t n)
{
    enum { BLOCK = 256 };
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t end = n - at < BLOCK ? n : at + BLOCK;
        uint32_t bad = 0;
        for (int64_t i = at; i < end; i++) {
            uint32_t bits;
            memcpy(&bits, x + i, sizeof bits);
            bad |= (bits & 0x7f800000u) == 0x7f800000u;
        }
        for (int64_t i = at; bad && i < end; i++)
            if (x[i] - x[i] != 0)
                return i;
    }
    return n;
}

static Range joined(Range a, Range b)
{
    if (a.lo > a.hi || b.lo > b.hi)
        return a.lo > a.hi ? b : a;
    return (Range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

/* Returns the least and the largest element, found in lanes, which compilers turn into vectors. */
static Range range_of(const float *x, int64_t n)
{
    assert(n > 0);
    enum { LANES = 16 };
    float lo[LANES], hi[LANES];
    int64_t i = 0;
    for (int k = 0; k < LANES; k++)
        lo[k] = hi[k] = x[0];
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            lo[k] = x[i + k] < lo[k] ? x[i + k] : lo[k];
            hi[k] = x[i + k] > hi[k] ? x[i + k] : hi[k];
        }
    Range r = {x[0], x[0]};
    for (int k = 0; k < LANES; k++)
        r = joined(r, (Range){lo[k], hi[k]});
    for (; i < n; i++)
        r = joined(r, (Range){x[i], x[i]});
    return r;
}

static Range averaged(Range before, Range now)
{
    const float weight = 0.01f; /* of the newest range: the default of PyTorch's observer */
    if (before.lo > before.hi)
        return now;
    return (Range){before.lo + weight * (now.lo - before.lo),
                   before.hi + weight * (now.hi - before.hi)};
}

static void update_range(Observer *o, int c)
{
    if (o->now[c].lo > o->now[c].hi)
        return;
    o->seen[c] = o->kind == OBS_MOVING_AVERAGE ? averaged(o->seen[c], o->now[c])
                                               : joined(o->seen[c], o->now[c]);
    if (o->hist)
        hist_cover(&o->hist[c], o->seen[c], o->n_bins);
}

/* Looks for numbers that are not finite and updates the range, in one pass over the memory.
 * Returns false if x[*bad] is not finite. */
static bool range_if_finite(const float *x, int64_t n, Range *r, int64_t *bad)
{
    enum { BLOCK = 4096 };
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t m = n - at < BLOCK ? n - at : BLOCK, k = first_bad(x + at, m);
        *bad = at + k;
        if (k < m)
            return false;
        *r = joined(*r, range_of(x + at, m));
    }
    return true;
}

bool observer_add(Observer *o, const float *x, int64_t n, int64_t inner, int64_t *bad)
{
    assert(inner > 0);
    int64_t run = o->channels > 1 ? inner : n;
    for (int c = 0; c < o->channels; c++)
        o->now[c] = nothing;
    for (int64_t at = 0, c = 0; at < n; at += run, c = (c + 1) % o->channels) {
        const bool ok = range_if_finite(x + at, n - at < run ? n - at : run, &o->now[c], bad);
        *bad += at;
        if (!ok)
            return false;
    }
    for (int c = 0; c < o->channels; c++)
        update_range(o, c);
    for (int64_t at = 0, c = 0; o->hist && at < n; at += run, c = (c + 1) % o->channels)
        hist_add(&o->hist[c], x + at, n - at < run ? n - at : run, o->n_bins);
    return true;
}

/* -- the range with the least squared error ------------------------------------------------------
 * A value is rounded to the nearest quantization level, and beyond the levels to the outermost one.
 * The values of a bin are assumed to be spread evenly over it, so the error of a bin is a
 * difference of two values of the error's integral. */

typedef struct Levels {
    double first, last, step;
} Levels;

static int64_t floor_of(double x) /* |x| < 2^62 */
{
    int64_t k = (int64_t)x;
    return k - ((double)k > x);
}

static Levels levels_of(double lo, double hi, int quant_min, int quant_max, bool symmetric)
{
    double step = (hi - lo) / ((double)quant_max - quant_min);
    int64_t zero = symmetric ? ((int64_t)quant_min + quant_max + 1) >> 1
                             : quant_min + floor_of(-lo / step + 0.5);
    double first = ((double)quant_min - (double)zero) * step;
    return (Levels){first, first + ((double)quant_max - quant_min) * step, step};
}

/* Returns the integral of the squared error from l->first to x. */
static double error_until(const Levels *l, double x)
{
    double cube = l->step * l->step * l->step / 12; /* from one level to the next */
    double to = x < l->first ? l->first : x > l->last ? l->last : x;
    int64_t k = floor_of((to - l->first) / l->step + 0.5);
    double inside = to - (l->first + (double)k * l->step), outside = x - to;
    return (double)k * cube + inside * inside * inside / 3 + outside * outside * outside / 3;
}

static double squared_error(const Histogram *h, int n_bins, Levels l)
{
    double sum = 0, before = error_until(&l, left_of(h, 0));
    for (int i = 0; i < n_bins; i++) {
        double until = error_until(&l, left_of(h, i + 1));
        sum += (double)h->count[i] * (until - before);
        before = until;
    }
    return sum;
}

typedef struct Search {
    const Histogram *h;
    int used; /* bins up to the last that holds something */
    int quant_min, quant_max;
    bool symmetric;
    double lo, hi, least; /* the best so far */
} Search;

static void try_range(Search *s, double lo, double hi)
{
    Levels l = levels_of(lo, hi, s->quant_min, s->quant_max, s->symmetric);
    double e = squared_error(s->h, s->used, l);
    if (s->least < 0 || e < s->least) {
        s->lo = lo;
        s->hi = hi;
        s->least = e;
    }
}

/* Searches both ends together first, then each end while the other one is fixed. */
static void search_mse(Search *s)
{
    double lo = s->lo, hi = s->hi;
    for (int i = MSE_STEPS; i > 0; i--)
        try_range(s, lo * i / (double)MSE_STEPS, hi * i / (double)MSE_STEPS);
    for (int round = 0; !s->symmetric && round < MSE_ROUNDS; round++) {
        double other = s->lo;
        for (int i = MSE_STEPS; hi > 0 && i > 0; i--)
            try_range(s, other, hi * i / (double)MSE_STEPS);
        other = s->hi;
        for (int i = MSE_STEPS; lo < 0 && i > 0; i--)
            try_range(s, lo * i / (double)MSE_STEPS, other);
    }
}

/* -- the range with the least divergence ---------------------------------------------------------
 * This is the Kullback-Leibler divergence of the distribution that is clipped to the range from the
 * same distribution after the bins of each level were merged (S. Migacz, 8-bit Inference with
 * TensorRT, GTC 2017). */

/* exp and log of libm differ between machines.  log m of m in [sqrt(1/2), sqrt(2)) is
 * 2 atanh((m-1)/(m+1)), whose series has ended after ten terms. */
double log_of(double x)
{
    assert(x > 0);
    const double ln2 = 0.693147180559945309417;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m /= 2;
        exponent++;
    }
    double r = (m - 1) / (m + 1), sum = 0;
    for (int k = 21; k > 0; k -= 2)
        sum = sum * r * r + 1.0 / k;
    return exponent * ln2 + 2 * r * sum;
}

typedef struct Cells { /* runs of bins that become one level */
    int from, to;      /* bins of the clipped distribution */
    double start, per_step;
    int64_t n;
} Cells;

static int64_t cell_of(const Histogram *h, const Cells *c, int bin)
{
    double centre = (left_of(h, bin) + left_of(h, bin + 1)) / 2;
    int64_t k = floor_of((centre - c->start) * c->per_step);
    return k < 0 ? 0 : k < c->n ? k : c->n - 1;
}

/* Returns the bins whose centres lie in [lo, hi]; from > to: there are none. */
static Cells cells_of(const Histogram *h, int used, double lo, double hi, int64_t n)
{
    assert(lo < hi && n > 0);
    Cells c = {0, used - 1, lo, (double)n / (hi - lo), n};
    while (c.from <= c.to && (left_of(h, c.from) + left_of(h, c.from + 1)) / 2 < lo)
        c.from++;
    while (c.from <= c.to && (left_of(h, c.to) + left_of(h, c.to + 1)) / 2 > hi)
        c.to--;
    return c;
}

static uint64_t count_of(const Histogram *h, int from, int to)
{
    uint64_t sum = 0;
    for (int i = from; i < to; i++)
        sum += h->count[i];
    return sum;
}

/* Returns what the bins [i, end) of one cell add to the divergence.  A bin that has only clipped
 * values counts as one value in the other distribution. */
static double divergence_of_cell(const Histogram *h, const Cells *c, int i, int end, double inside,
                                 uint64_t below, uint64_t above)
{
    uint64_t sum = count_of(h, i, end);
    double all = (double)h->total, filled = 0, d = 0;
    for (int k = i; k < end; k++)
        filled += h->count[k] != 0;
    for (int k = i; k < end; k++) {
        uint64_t p = h->count[k] + (k == c->from ? below : 0) + (k == c->to ? above : 0);
        double q = h->count[k] ? (double)sum / filled / inside : 1 / all;
        if (p)
            d += (double)p / all * log_of((double)p / all / q);
    }
    return d;
}

static double divergence(const Histogram *h, const Cells *c, int used)
{
    uint64_t below = count_of(h, 0, c->from), above = count_of(h, c->to + 1, used);
    double inside = (double)(h->total - below - above), d = 0;
    for (int i = c->from, end; i <= c->to; i = end) {
        int64_t cell = cell_of(h, c, i);
        for (end = i + 1; end <= c->to && cell_of(h, c, end) == cell;)
            end++;
        d += divergence_of_cell(h, c, i, end, inside, below, above);
    }
    return d;
}

/* Zero is always a quantization level, so with any range the many zeros of relu and padding have no
 * error.  In the histogram they would stand out from their neighbours, so finer and finer levels
 * would seem better.  Therefore the bin of zero counts no more than the larger of its neighbours.
 */
static void without_zeros(const Histogram *h, int used, Histogram *to)
{
    const int64_t at = -(int64_t)h->base;
    memcpy(to->count, h->count, (size_t)used * sizeof *to->count);
    to->exponent = h->exponent;
    to->base = h->base;
    to->total = h->total;
    if (at < 0 || at >= used)
        return;
    const uint64_t before = at > 0 ? h->count[at - 1] : 0;
    const uint64_t behind = at + 1 < used ? h->count[at + 1] : 0;
    const uint64_t most = before > behind ? before : behind;
    to->count[at] = h->count[at] > most ? most : h->count[at];
    to->total -= h->count[at] - to->count[at];
}

/* Tries thresholds of all sizes.  If all values on one side are below the threshold, that side
 * keeps its end. */
static void search_kl(Search *s)
{
    uint64_t count[BINS];
    Histogram h = {.count = count};
    without_zeros(s->h, s->used, &h);
    double lo = s->lo, hi = s->hi, most = -lo > hi ? -lo : hi, least = 0;
    double width = (double)power_of_two(h.exponent);
    int64_t n = (int64_t)s->quant_max - s->quant_min + 1;
    bool has_any = false;
    for (int i = KL_STEPS; i > 0; i--) {
        double at = most * i / (double)KL_STEPS, l = -at > lo ? -at : lo, r = at < hi ? at : hi;
        if (r - l < width * (double)n)
            return;
        Cells c = cells_of(&h, s->used, l, r, n);
        if (c.from > c.to || !count_of(&h, c.from, c.to + 1))
            continue;
        double d = divergence(&h, &c, s->used);
        if (!has_any || d < least) {
            s->lo = l;
            s->hi = r;
            least = d;
            has_any = true;
        }
    }
}

/* -- ranges ----------------------------------------------------------------------------------- */

static void widen_to_zero(double *lo, double *hi, bool symmetric)
{
    *lo = *lo < 0 ? *lo : 0;
    *hi = *hi > 0 ? *hi : 0;
    if (symmetric) {
        *hi = -*lo > *hi ? -*lo : *hi;
        *lo = -*hi;
    }
}

static void search_range(const Observer *o, int channel, int quant_min, int quant_max,
                         bool symmetric, double *lo, double *hi)
{
    assert(o->hist && quant_min < quant_max);
    Search s = {&o->hist[channel], o->n_bins, quant_min, quant_max, symmetric, *lo, *hi, -1};
    while (s.used > 1 && !s.h->count[s.used - 1])
        s.used--;
    if (o->kind == OBS_MSE)
        search_mse(&s);
    else
        search_kl(&s);
    *lo = s.lo;
    *hi = s.hi;
}

/* Adds the bins outside of the range to the bins at its ends. */
static void clip_histogram(Histogram *h, int n_bins, float lo, float hi)
{
    const float per_width = power_of_two(-h->exponent);
    const double top = (double)hi * (double)per_width, bottom = (double)lo * (double)per_width;
    for (int i = 0; i < n_bins; i++) {
        const double at = (double)h->base + i;
        const double end = at + 1 < bottom ? bottom : at > top ? top : at;
        const int64_t k = floor_of(end) - h->base;
        if (k != i && k >= 0 && k < n_bins) {
            h->count[k] += h->count[i];
            h->count[i] = 0;
        }
    }
}

void observer_clip(Observer *o, float lo, float hi)
{
    assert(lo <= 0 && hi >= 0);
    for (int c = 0; c < o->channels; c++) {
        Range *r = &o->seen[c];
        if (r->lo > r->hi || (r->lo >= lo && r->hi <= hi))
            continue;
        if (o->hist)
            clip_histogram(&o->hist[c], o->n_bins, lo, hi);
        r->lo = r->lo < lo ? lo : r->lo > hi ? hi : r->lo;
        r->hi = r->hi > hi ? hi : r->hi < lo ? lo : r->hi;
    }
}

void observer_range(const Observer *o, int channel, int quant_min, int quant_max, bool symmetric,
                    float *lo, float *hi)
{
    assert(channel >= 0 && channel < o->channels);
    Range r = o->seen[channel];
    double l = r.lo > r.hi ? 0 : (double)r.lo, h = r.lo > r.hi ? 0 : (double)r.hi;
    if (o->kind == OBS_PERCENTILE && r.lo <= r.hi) {
        double q = o->percentile / 100;
        double at_l = quantile(&o->hist[channel], o->n_bins, 1 - q);
        double at_h = quantile(&o->hist[channel], o->n_bins, q);
        l = at_l > l ? at_l : l; /* a bin reaches beyond the outermost value */
        h = at_h < h ? at_h : h;
    }
    widen_to_zero(&l, &h, symmetric);
    if (h > l && (o->kind == OBS_MSE || o->kind == OBS_KL))
        search_range(o, channel, quant_min, quant_max, symmetric, &l, &h);
    *lo = (float)l;
    *hi = (float)h;
}

double observer_sqnr(const Observer *o, int channel, int quant_min, int quant_max, bool symmetric,
                     float lo, float hi)
{
    if (!o->hist || !(hi > lo))
        return 0;
    const Histogram *h = &o->hist[channel];
    const double width = (double)power_of_two(h->exponent);
    const Levels l = levels_of((double)lo, (double)hi, quant_min, quant_max, symmetric);
    double signal = 0, noise = squared_error(h, o->n_bins, l) / width;
    for (int i = 0; i < o->n_bins; i++) {
        const double centre = (left_of(h, i) + left_of(h, i + 1)) / 2;
        signal += (double)h->count[i] * centre * centre;
    }
    return signal > 0 && noise > 0 ? 10 / log_of(10) * log_of(signal / noise) : 0;
}

bool observer_bars(const Observer *o, int channel, int n, uint64_t *bar, float *lo, float *hi)
{
    assert(channel >= 0 && channel < o->channels && n > 0);
    Range r = o->seen[channel];
    if (!o->hist || r.lo > r.hi)
        return false;
    const Histogram *h = &o->hist[channel];
    double per_value = r.hi > r.lo ? n / ((double)r.hi - (double)r.lo) : 0;
    memset(bar, 0, (size_t)n * sizeof *bar);
    for (int i = 0; i < o->n_bins; i++) {
        double centre = (left_of(h, i) + left_of(h, i + 1)) / 2;
        int64_t k = floor_of((centre - (double)r.lo) * per_value);
        bar[k < 0 ? 0 : k < n ? k : n - 1] += h->count[i];
    }
    *lo = r.lo;
    *hi = r.hi;
    return true;
}

/* -- to and from numbers ----------------------------------------------------------------------- */

int observer_size(const Observer *o)
{
    return o->hist ? 4 + o->n_bins : 2;
}

void observer_keep(const Observer *o, double *v)
{
    assert(o->channels == 1);
    v[0] = (double)o->seen->lo;
    v[1] = (double)o->seen->hi;
    if (!o->hist)
        return;
    v[2] = o->hist->exponent;
    v[3] = o->hist->base;
    for (int i = 0; i < o->n_bins; i++)
        v[4 + i] = (double)o->hist->count[i];
}

/* Returns whether v is a whole number in [lo, hi]. */
static bool is_whole(double v, double lo, double hi)
{
    return v >= lo && v <= hi && (double)(int64_t)v == v;
}

static bool take_histogram(Histogram *h, Range r, int n_bins, const double *v)
{
    const double most = 9007199254740992.0; /* 2^53: all below are doubles */
    double total = 0;
    if (!is_whole(v[0], EXPONENT_MIN, 126) || !is_whole(v[1], INT32_MIN, INT32_MAX))
        return false;
    for (int i = 0; i < n_bins; i++) {
        if (!is_whole(v[2 + i], 0, most))
            return false;
        h->count[i] = (uint64_t)v[2 + i];
        total += v[2 + i];
    }
    h->exponent = (int)v[0];
    h->base = (int32_t)v[1];
    h->total = (uint64_t)total;
    if (r.lo > r.hi)
        return total == 0 && h->base == 0 && h->exponent == EXPONENT_MIN;
    return total > 0 && total <= most && fits_in(r, h->exponent, n_bins) &&
           h->base == bin_of(r.lo, power_of_two(-h->exponent));
}

bool observer_take(Observer *o, const double *v)
{
    const double most = (double)FLT_MAX;
    if (!(v[0] >= -most && v[0] <= most && v[1] >= -most && v[1] <= most))
        return false;
    *o->seen = (Range){(float)v[0], (float)v[1]};
    if (o->seen->lo > o->seen->hi && (v[0] != (double)nothing.lo || v[1] != (double)nothing.hi))
        return false;
    return !o->hist || take_histogram(o->hist, *o->seen, o->n_bins, v + 2);
}
