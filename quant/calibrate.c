/* calibrate.c -- the ranges of values over sample inputs, seen by the evaluator.
 *
 * One sample at a time: its tensors go before the next one comes, and an observer's size does not
 * depend on their number.  Values that share a scale share an observer.
 */
#include "quant/internal.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>

typedef struct Look {
    Annotation *a;
    const char *sample;
    Diag *d;
    bool failed;
} Look;

static Loc loc_of(const Annotation *a, const Value *v)
{
    return v->def ? v->def->loc : (Loc){.file = a->g->program->name, .node = v->name};
}

static bool all_finite(const float *x, int64_t n, int64_t *bad)
{
    for (*bad = 0; *bad < n; ++*bad)
        if (!isfinite(x[*bad]))
            return false;
    return true;
}

static void look(const Value *v, EtcTensor *t, void *ctx)
{
    Look *l = ctx;
    const Point *p = l->a->observes ? point_of(l->a, v) : NULL;
    int64_t bad = 0, n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    Moments *m = l->a->moments && v->index < l->a->n_values ? l->a->moments[v->index] : NULL;
    if (l->failed || (!p && !m))
        return;
    if (p ? observer_see(p->observer, t->data, n, 1, &bad) : all_finite(t->data, n, &bad)) {
        if (m)
            moments_see(m, t);
        return;
    }
    const float x = ((const float *)t->data)[bad];
    l->failed = !diag_error(l->d, loc_of(l->a, v),
                            "sample '%s': %s at element %" PRId64 " of %s", l->sample,
                            isnan(x) ? "NaN" : "infinity", bad,
                            v->def ? "its result" : "the input");
}

static bool run_sample(Annotation *a, const Samples *s, int i, Arena *tmp, Diag *d)
{
    const Graph *g = a->g;
    Look l = {.a = a, .sample = "", .d = d};
    EtcTensor **in = NEW(tmp, EtcTensor *, g->n_in + 1);
    EtcTensor **out = NEW(tmp, EtcTensor *, g->n_out + 1);
    EtcTensor **update = NEW(tmp, EtcTensor *, g->n_updates + 1);
    int64_t *symbol = NEW(tmp, int64_t, g->program->n_syms + 1);
    if (!s->read(s->ctx, i, tmp, in, symbol, &l.sample, d))
        return false;
    for (int k = 0; k < g->n_in; k++)
        if (in[k])
            look(g->in[k], in[k], &l);
    return !l.failed && eval_watched(g, in, symbol, false, look, &l, tmp, out, update, d) &&
           !l.failed;
}

static bool run_samples(Annotation *a, const QuantJob *job, Diag *d)
{
    Arena *tmp = arena_new();
    bool ok = true;
    for (int i = 0; ok && i < job->samples->n; i++) {
        ok = run_sample(a, job->samples, i, tmp, d);
        arena_reset(tmp);
        if (ok && job->progress)
            job->progress(job->ctx, i + 1, job->samples->n);
    }
    arena_free(tmp);
    return ok;
}

/* Scale and zero point such that -128 to 127 cover the range, 0 among it; as torch's observers
 * choose them. */
static void set_scale(Point *p)
{
    const double least = (double)FLT_EPSILON;
    double scale = ((double)p->hi - (double)p->lo) / 255;
    if (p->format.symmetric) {
        const double most = -p->lo > p->hi ? (double)-p->lo : (double)p->hi;
        scale = most / 127.5;
    }
    p->scale = (double)(float)(scale > least ? scale : least);
    const double zero = p->format.symmetric ? 0 : -128 - (double)p->lo / p->scale;
    p->zero = (int64_t)((zero + 6755399441055744.0) - 6755399441055744.0);
    p->zero = p->zero < -128 ? -128 : p->zero > 127 ? 127 : p->zero;
}

/* -- ranges ---------------------------------------------------------------------------------- */

static const char *key_of(const Point *p, Arena *a)
{
    static const char *const name[N_OBSERVERS] = {"minmax", "moving_average", "percentile", "mse",
                                                  "kl"};
    const char *kind = p->format.symmetric ? "magnitude" : "range";
    if (p->format.observer == OBS_PERCENTILE)
        return arena_printf(a, "%s.percentile%.9g", kind, p->format.percentile);
    return arena_printf(a, "%s.%s", kind, name[p->format.observer]);
}

static bool read_ranges(const Annotation *a, const Statistics *s, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < a->n_points; i++) {
        Point *p = a->points[i];
        const char *key = key_of(p, a->arena);
        const float *v = statistics_get(s, key, p->name, 2);
        if (v && v[0] <= 0 && v[1] >= 0) {
            p->lo = v[0];
            p->hi = v[1];
        } else {
            ok = diag_error(d, (Loc){.file = statistics_file(s), .node = p->name},
                            "has no '%s' of it: make it with this recipe", key);
        }
    }
    return ok;
}

static void take_ranges(const Annotation *a, Statistics *to)
{
    for (int i = 0; i < a->n_points; i++) {
        Point *p = a->points[i];
        observer_range(p->observer, 0, -128, 127, p->format.symmetric, &p->lo, &p->hi);
        statistics_add(to, key_of(p, a->arena), p->name, 2, (const float[]){p->lo, p->hi});
    }
}

/* -- all of it --------------------------------------------------------------------------------- */

static bool has_samples(const Annotation *a, const QuantJob *job, const char *what, Diag *d)
{
    const Program *p = a->g->program;
    return (a->g == p->method[0] && job->samples && job->samples->n) ||
           diag_error(d, (Loc){.file = p->name},
                      "method '%s': '%s' wants %s: give samples of its inputs (--calibrate), or "
                      "statistics",
                      a->g->name ? a->g->name : "", job->recipe->file, what);
}

static bool get_moments(Annotation *a, QuantJob *job, Diag *d)
{
    if (job->statistics)
        return moments_read(a, job->statistics, d);
    if (!has_samples(a, job, "to know what comes to its weights", d) || !run_samples(a, job, d))
        return false;
    moments_end(a, job->seen);
    return true;
}

static bool get_ranges(Annotation *a, QuantJob *job, Diag *d)
{
    if (job->statistics)
        return read_ranges(a, job->statistics, d);
    if (!has_samples(a, job, "scales that are known beforehand", d))
        return false;
    for (int i = 0; i < a->n_points; i++)
        a->points[i]->observer = observer_new(a->arena, a->points[i]->format.observer,
                                              a->points[i]->format.percentile, 1);
    a->observes = true;
    if (!run_samples(a, job, d))
        return false;
    if (a->moments)
        moments_end(a, job->seen);
    take_ranges(a, job->seen);
    return true;
}

bool calibrate(Annotation *a, QuantJob *job, Diag *d)
{
    const unsigned before = ALG_SMOOTHQUANT | ALG_AWQ,
                   behind = ALG_BIAS_CORRECTION | ALG_SCALE_ESTIMATION | ALG_GPTQ;
    if (moments_ask(a, before, true) && !get_moments(a, job, d))
        return false;
    rescale_all(a);
    const bool wants = moments_ask(a, behind, false);
    if (wants && (job->statistics || !a->n_points) && !get_moments(a, job, d))
        return false;
    if (a->n_points && !get_ranges(a, job, d))
        return false;
    for (int i = 0; i < a->n_points; i++)
        set_scale(a->points[i]);
    return true;
}
