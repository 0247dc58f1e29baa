/* weights.c -- weights as integers: symmetric, a scale for all, per result or per group of a row.
 *
 * The range is that of the largest magnitude, or with observer `mse` the one of 64 fractions of it
 * with the least squared error (Choukroun et al. 2019, Low-bit Quantization of Neural Networks for
 * Efficient Inference, 2.2).  Scales of groups are bfloat16, as XNNPACK keeps them.
 */
#include "quant/internal.h"
#include <math.h>
#include <string.h>

Ints ints_new(const QuantFormat *f, const Value *w, int axis, Arena *a)
{
    const Type t = w->type;
    const int64_t all = type_numel(t);
    const int half = 1 << (f->bits - 1);
    Ints k = {.outer = 1, .n = t.dim[axis].value, .inner = 1, .lo = -half, .hi = half - 1};
    k.lo += f->bits == 8; /* products of two such fit 15 bits */
    for (int i = 0; i < axis; i++)
        k.outer *= t.dim[i].value;
    k.inner = all / (k.outer * k.n);
    if (f->granularity == PER_GROUP) {
        k.n = all / f->group;
        k.inner = f->group;
    }
    k.q = NEW(a, int8_t, all + 1);
    k.scale = NEW(a, float, k.n + 1);
    return k;
}

static int to_int(double v, const Ints *k)
{
    v = v < k->lo ? k->lo : v > k->hi ? k->hi : v;
    return (int)((v + 6755399441055744.0) - 6755399441055744.0); /* to nearest, ties to even */
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

static double squared_error(const Ints *k, const float *w, int64_t c, double scale)
{
    double sum = 0;
    for (int64_t o = 0; o < k->outer; o++)
        for (int64_t i = 0; i < k->inner; i++) {
            const double v = (double)w[(o * k->n + c) * k->inner + i];
            const double e = v - scale * to_int(v / scale, k);
            sum += e * e;
        }
    return sum;
}

static float as_bf16(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static float kept(double scale, const QuantFormat *f)
{
    return f->granularity == PER_GROUP ? as_bf16((float)scale) : (float)scale;
}

static float best_scale(const Ints *k, const QuantFormat *f, const float *w, int64_t c, float most)
{
    enum { STEPS = 64 };
    float best = most;
    double least = squared_error(k, w, c, (double)most);
    for (int i = 1; i < STEPS * 3 / 4; i++) {
        const float scale = kept((double)most * (STEPS - i) / STEPS, f);
        const double e = scale > 0 ? squared_error(k, w, c, (double)scale) : INFINITY;
        if (e < least) {
            least = e;
            best = scale;
        }
    }
    return best;
}

/* Runtimes compute with ratios of scales: none is far below the largest. */
static void raise_small(Ints *k)
{
    float most = 0;
    for (int64_t c = 0; c < k->n; c++)
        most = k->scale[c] > most ? k->scale[c] : most;
    const float least = most > 0 ? most * 0x1p-20f : 1;
    for (int64_t c = 0; c < k->n; c++)
        k->scale[c] = k->scale[c] > least ? k->scale[c] : least;
}

void ints_set_scales(Ints *k, const QuantFormat *f, const float *w)
{
    double most = 0, half = (k->hi - k->lo) / 2.0;
    for (int64_t c = 0; c < k->n; c++) {
        const double m = magnitude(k, w, c);
        most = m > most ? m : most;
        k->scale[c] = kept(m / half, f);
    }
    for (int64_t c = 0; c < k->n && f->granularity == PER_TENSOR; c++)
        k->scale[c] = (float)(most / half);
    for (int64_t c = 0; c < k->n && f->observer == OBS_MSE && f->granularity != PER_TENSOR; c++)
        if (k->scale[c] > 0)
            k->scale[c] = best_scale(k, f, w, c, k->scale[c]);
    raise_small(k);
}

void ints_round(Ints *k, const float *w)
{
    for (int64_t i = 0; i < k->outer * k->n * k->inner; i++)
        k->q[i] = (int8_t)to_int((double)w[i] / (double)k->scale[i / k->inner % k->n], k);
}
