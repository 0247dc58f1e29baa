/* calibrate.c -- observes the ranges of values while the evaluator runs the samples.
 *
 * A thread has one sample at a time and frees its tensors before it reads the next one.  The size
 * of an observer does not depend on the number of samples.  Values that share a scale share an
 * observer.
 * */
#include "quant/internal.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>

typedef struct Range {
    float lo, hi;
} Range;

/* The state of one sample.  A point's number is its place for turn_enter; the places of moments
 * follow those of points. */
typedef struct Observation {
    const struct Walk *walk;
    Turn *turn;
    bool failed;
} Observation;

/* The state that all samples of a run share. */
typedef struct Walk {
    Annotation *a;
    const Blas *blas;
    int *visit; /* by value: how many values with the same point come before it */
    int *n_visits; /* by point: how many values it has */
    int n_samples;
    bool sees_moments;
} Walk;

static Loc loc_of(const Annotation *a, const Value *v)
{
    return v->def ? v->def->loc : (Loc){.file = a->g->program->name, .node = v->name};
}

bool all_finite(const float *x, int64_t n, int64_t *bad)
{
    for (*bad = 0; *bad < n; ++*bad)
        if (!isfinite(x[*bad]))
            return false;
    return true;
}

/* Adds a value to the observer of its point.  Only a moving average depends on the order of the
 * samples. */
static bool observe_point(Observation *l, const Value *v, Point *p, const EtcTensor *t, int64_t n,
                          int64_t *bad)
{
    const Walk *w = l->walk;
    const int place = w->a->point[v->index];
    const bool in_order = p->format.observer == OBS_MOVING_AVERAGE;
    const int64_t at = (int64_t)l->turn->nth * w->n_visits[place] + w->visit[v->index];
    assert(place >= 0 && place < w->a->n_points);
    if (!turn_enter(l->turn, place, in_order ? at : -1))
        return !(l->failed = true);
    const bool ok = observer_add(p->observer, t->data, n, 1, bad);
    turn_leave(l->turn, place);
    return ok;
}

static void observe_moments(Observation *l, const Value *v, Moments *m, const EtcTensor *t)
{
    const int place = l->walk->a->n_points + v->index;
    l->failed = !turn_enter(l->turn, place, l->turn->nth);
    if (l->failed)
        return;
    moments_observe(m, t, l->turn->sample, l->walk->n_samples, l->turn->tmp);
    turn_leave(l->turn, place);
}

static void observe(const Value *v, EtcTensor *t, void *ctx)
{
    Observation *l = ctx;
    const Annotation *a = l->walk->a;
    Point *p = a->observes ? point_of(a, v) : NULL;
    const bool has_moments = l->walk->sees_moments && a->moments && v->index < a->n_values;
    Moments *m = has_moments ? a->moments[v->index] : NULL;
    const int64_t n = etc_numel(t);
    int64_t bad = 0;
    if (l->failed || (!p && !m))
        return;
    assert(t->dtype == ETC_F32);
    if (p ? observe_point(l, v, p, t, n, &bad) : all_finite(t->data, n, &bad)) {
        if (m)
            observe_moments(l, v, m, t);
        return;
    }
    if (l->failed)
        return;
    const float x = ((const float *)t->data)[bad];
    l->failed = !diag_error(l->turn->diag, loc_of(a, v),
                            "sample '%s': %s at element %" PRId64 " of %s", l->turn->name,
                            isnan(x) ? "NaN" : "infinity", bad,
                            v->def ? "its result" : "the input");
}

static bool run_sample(void *ctx, Turn *t, EtcTensor **in, int64_t *symbol)
{
    const Walk *w = ctx;
    const Graph *g = w->a->g;
    Observation l = {.walk = w, .turn = t};
    EtcTensor **out = NEW(t->tmp, EtcTensor *, g->n_out + 1);
    EtcTensor **update = NEW(t->tmp, EtcTensor *, g->n_updates + 1);
    for (int k = 0; k < g->n_in; k++)
        if (in[k])
            observe(g->in[k], in[k], &l);
    const EvalHow how = {.visit = observe, .ctx = &l, .blas = w->blas, .tmp = t->eval};
    return !l.failed && eval_watched(g, in, symbol, how, t->tmp, out, update, t->diag) &&
           !l.failed;
}

static void count_visit(Walk *w, const Value *v)
{
    const Annotation *a = w->a;
    if (a->observes && point_of(a, v))
        w->visit[v->index] = w->n_visits[a->point[v->index]]++;
}

/* Numbers the visits to each point in the order in which a sample sees values. */
static Walk walk_of(Annotation *a, const Blas *blas, Arena *tmp)
{
    Walk w = {.a = a,
              .blas = blas,
              .visit = NEW(tmp, int, a->g->n_values + 1),
              .n_visits = NEW(tmp, int, a->n_points + 1)};
    for (int i = 0; i < a->g->n_in; i++)
        count_visit(&w, a->g->in[i]);
    for (const Node *n = a->g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            count_visit(&w, n->out[i]);
    return w;
}

/* Runs the samples, beginning where an earlier run was stopped.  It runs them in pieces and
 * saves the state after each piece. */
static bool run_samples(Annotation *a, const QuantJob *job, Part part, Diag *d)
{
    Arena *tmp = arena_new();
    Walk w = walk_of(a, job->blas, tmp);
    const Checkpoint *c = job->checkpoint;
    moments_begin(a);
    int done = checkpoint_take(a, job, part);
    w.n_samples = job->samples->n;
    w.sees_moments = !a->has_sums && (part != PART_AGAIN || !done);
    bool ok = true;
    do {
        const SampleRun run = {.samples = job->samples,
                               .graph = a->g,
                               .first = done,
                               .n_places = a->n_points + a->n_values,
                               .run = run_sample,
                               .ctx = &w,
                               .is_due = c ? c->is_due : NULL,
                               .due_ctx = c ? c->ctx : NULL};
        ok = samples_run(&run, &done, d);
        if (ok && c && (done < job->samples->n || c->is_due(c->ctx)))
            ok = checkpoint_keep(a, job, part, done, d);
    } while (ok && done < job->samples->n);
    arena_free(tmp);
    return ok;
}

/* Sets scale and zero point such that -128 to 127 cover the range and 0 is exact, as torch's
 * observers do. */
static void set_scale(Point *p)
{
    assert(p->lo <= 0 && p->hi >= 0);
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

/* Sets the bounds beyond which n's result is constant or its operand is not clamped: an operand
 * beyond a bound gives the same result as the bound. */
static void flat_ends(const Node *n, float *lo, float *hi)
{
    const bool is_hard = n->op == OP_HARDSWISH || n->op == OP_HARDSIGMOID;
    *lo = is_hard ? -3.0f : n->op == OP_RELU ? 0.0f : -FLT_MAX;
    *hi = n->op == OP_HARDSIGMOID ? 3.0f : FLT_MAX;
}

/* Sets *lo and *hi to the range outside of which all readers clamp the values of v.  It is
 * unbounded if v is an output or an update. */
static void ends_of(const Annotation *a, const Value *v, float *lo, float *hi)
{
    const int *first = a->uses.first + v->index;
    *lo = a->uses.escapes[v->index] ? -FLT_MAX : 0;
    *hi = a->uses.escapes[v->index] ? FLT_MAX : 0;
    for (int i = first[0]; i < first[1]; i++) {
        float l, h;
        flat_ends(a->uses.user[i], &l, &h);
        *lo = l < *lo ? l : *lo;
        *hi = h > *hi ? h : *hi;
    }
}

static void widen(const Annotation *a, const Value *v, Range *of)
{
    const Point *p = point_of(a, v);
    float lo, hi;
    if (!p)
        return;
    ends_of(a, v, &lo, &hi);
    Range *r = &of[a->point[v->index]];
    *r = (Range){lo < r->lo ? lo : r->lo, hi > r->hi ? hi : r->hi};
}

/* Clips the range of each point to the values that readers distinguish, so that no integers are
 * wasted on others. */
static void clip(const Annotation *a)
{
    Range *r = NEW(a->arena, Range, a->n_points + 1);
    for (int i = 0; i < a->g->n_in; i++)
        widen(a, a->g->in[i], r);
    for (const Node *n = a->g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            widen(a, n->out[i], r);
    for (int i = 0; i < a->n_points; i++)
        observer_clip(a->points[i]->observer, r[i].lo, r[i].hi);
}

static void find_ranges(const Annotation *a)
{
    clip(a);
    for (int i = 0; i < a->n_points; i++) {
        Point *p = a->points[i];
        assert(p->observer);
        observer_range(p->observer, 0, -128, 127, p->format.symmetric, &p->lo, &p->hi);
    }
}

static void take_ranges(const Annotation *a, Statistics *to)
{
    for (int i = 0; i < a->n_points; i++) {
        const Point *p = a->points[i];
        statistics_add(to, key_of(p, a->arena), p->name, 2, (const float[]){p->lo, p->hi});
    }
}

/* -- values whose static scales would be too coarse -------------------------------------------- */

/* The lowest SQNR with which a static scale is good enough.  A normal distribution that is
 * covered to its ends has about 40 dB, a uniform one 48.  Outliers in channels and tokens, which
 * transformers have, cost as many dB as they are above the other values. */
enum { COARSE_DB = 30 };

static bool is_coarse(const Annotation *a, const Value *v)
{
    const Point *p = point_of(a, v);
    return p && p->hi > p->lo &&
           observer_sqnr(p->observer, 0, -128, 127, p->format.symmetric, p->lo, p->hi) <
               (double)COARSE_DB;
}

/* Returns the nodes that read or compute a value with a coarse scale and may have dynamic scales.
 * NULL: there are none. */
static Statistics *find_dynamic(const Annotation *a)
{
    Statistics *s = statistics_new(a->g->program->arena, 0);
    int n_dynamic = 0;
    for (const Node *n = a->g->first; n; n = n->next) {
        Weighted w;
        const NodePlan *p = plan_of(a, n);
        if (!p || p->mode != MODE_STATIC || !p->may_be_dynamic || !weighted_read(n, &w) ||
            !(is_coarse(a, w.x) ||
              is_coarse(a, p->tail ? p->tail->out[0] : n->out[0])))
            continue;
        statistics_add_dynamic(s, n->out[0]->name);
        n_dynamic++;
    }
    statistics_sort(s);
    return n_dynamic ? s : NULL;
}

/* -- the runs over the samples ----------------------------------------------------------------- */

/* The algorithms that need moments before channels are rescaled, and those that need them after. */
enum {
    BEFORE = ALG_SMOOTHQUANT | ALG_AWQ,
    AFTER = ALG_BIAS_CORRECTION | ALG_SCALE_ESTIMATION | ALG_GPTQ
};

static bool has_samples(const Annotation *a, const QuantJob *job, const char *what, Diag *d)
{
    const Program *p = a->g->program;
    return (a->g == p->method[0] && job->samples && job->samples->n) ||
           diag_error(d, (Loc){.file = p->name},
                      "method '%s': '%s' needs %s: give samples of its inputs (--calibrate), or "
                      "statistics",
                      a->g->name ? a->g->name : "", job->recipe->file, what);
}

/* Reads the moments of an earlier run.  Returns false if they do not fit; then the samples are run
 * again. */
static bool restore_moments(const Annotation *a, QuantJob *job)
{
    const bool ok = moments_read(a, job->checkpoint->from, &(Diag){0});
    if (!ok) {
        job->checkpoint->from = NULL;
        moments_clear(a);
    }
    return ok;
}

static bool get_moments(Annotation *a, QuantJob *job, Part part, Diag *d)
{
    if (job->statistics)
        return moments_read(a, job->statistics, d);
    if (!has_samples(a, job, "statistics of the operands of its weights", d))
        return false;
    if (checkpoint_is_past(job, part) && restore_moments(a, job)) {
        moments_add(a, job->seen);
        return true;
    }
    if (!run_samples(a, job, part, d))
        return false;
    moments_end(a, job->seen);
    return true;
}

static bool observe_ranges(Annotation *a, QuantJob *job, Part part, Diag *d)
{
    for (int i = 0; i < a->n_points; i++)
        a->points[i]->observer = observer_new(a->arena, a->points[i]->format.observer,
                                              a->points[i]->format.percentile, 1);
    a->observes = true;
    if (!run_samples(a, job, part, d))
        return false;
    find_ranges(a);
    return true;
}

/* Observes the ranges again without the nodes that became dynamic, which share no scales any
 * more.  The moments of the weights' operands do not change. */
static bool observe_again(Annotation *a, QuantJob *job, bool has_sums, Diag *d)
{
    Moments **moments = a->moments;
    for (const Node *n = a->g->first; n; n = n->next)
        if (plan_of(a, n) && statistics_is_dynamic(job->dynamic, n->out[0]->name))
            statistics_add_dynamic(job->seen, n->out[0]->name);
    *a = annotate(a->g, job, a->arena);
    a->has_sums = has_sums;
    if (has_sums)
        a->moments = moments;
    else
        moments_ask(a, AFTER, false);
    return observe_ranges(a, job, PART_AGAIN, d);
}

static bool get_ranges(Annotation *a, QuantJob *job, Diag *d)
{
    if (job->statistics)
        return read_ranges(a, job->statistics, d);
    if (!has_samples(a, job, "static scales", d))
        return false;
    const bool is_past = checkpoint_is_past(job, PART_RANGES);
    if (!is_past && !observe_ranges(a, job, PART_RANGES, d))
        return false;
    job->dynamic = is_past ? job->checkpoint->from : find_dynamic(a);
    if (job->dynamic && !observe_again(a, job, !is_past, d))
        return false;
    if (a->moments)
        moments_end(a, job->seen);
    take_ranges(a, job->seen);
    return true;
}

bool calibrate(Annotation *a, QuantJob *job, Diag *d)
{
    if (moments_ask(a, BEFORE, true) && !get_moments(a, job, PART_BEFORE, d))
        return false;
    rescale_all(a);
    const bool wants = moments_ask(a, AFTER, false);
    if (wants && (job->statistics || !a->n_points) && !get_moments(a, job, PART_AFTER, d))
        return false;
    if (a->n_points && !get_ranges(a, job, d))
        return false;
    for (int i = 0; i < a->n_points; i++)
        set_scale(a->points[i]);
    return true;
}
