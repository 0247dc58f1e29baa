/* checkpoint.c -- saves the state of observers in the middle of a run over the samples, as
 * statistics, so that a later run can continue there and give the same bytes.
 *
 * Beside the results of earlier runs over the samples, the file has these lines for the run that
 * was stopped:
 *
 *     part.RUN 1 DONE ID          how many samples were evaluated, and an id of everything that matters
 *     part.point N ... NAME       the state of a point's observer
 *     part.moments, part.products the sums of a value's channels
 *
 * Nothing in the file is trusted: a state that does not fit is ignored. */
#include "quant/internal.h"
#include <inttypes.h>

static const char *const run_key[N_PARTS] = {"part.before", "part.behind", "part.ranges", "part.again"};

static const char *id_text(const QuantJob *job, Arena *a)
{
    return arena_printf(a, "%016" PRIx64, job->checkpoint->id);
}

/* Returns how many samples of that run were evaluated; a negative number: the checkpoint belongs to
 * another run. */
static int samples_of(const QuantJob *job, Part part)
{
    const Checkpoint *c = job->checkpoint;
    if (!c || !c->from || statistics_of(c->from) != statistics_of(job->seen))
        return -1;
    Arena *a = arena_new();
    const double *done = statistics_get_exact(c->from, run_key[part], id_text(job, a), 1);
    arena_free(a);
    return done && *done >= 1 && *done <= job->samples->n ? (int)*done : -1;
}

bool checkpoint_is_past(const QuantJob *job, Part part)
{
    bool is = false;
    for (int i = (int)part + 1; i < N_PARTS; i++)
        is = is || samples_of(job, (Part)i) > 0;
    return is;
}

static void renew(const Annotation *a)
{
    for (int i = 0; a->observes && i < a->n_points; i++) {
        const QuantFormat *f = &a->points[i]->format;
        a->points[i]->observer = observer_new(a->arena, f->observer, f->percentile, 1);
    }
    if (a->moments)
        moments_clear(a);
}

int checkpoint_take(const Annotation *a, const QuantJob *job, Part part)
{
    const int done = samples_of(job, part);
    const Statistics *from = done > 0 ? job->checkpoint->from : NULL;
    bool ok = from && (!a->moments || moments_take(a, from));
    for (int i = 0; ok && a->observes && i < a->n_points; i++) {
        const Point *p = a->points[i];
        const double *v = statistics_get_exact(from, "part.point", p->name,
                                               observer_size(p->observer));
        ok = v && observer_take(p->observer, v);
    }
    if (from && !ok)
        renew(a);
    if (ok)
        job->checkpoint->first = done;
    return ok ? done : 0;
}

bool checkpoint_keep(const Annotation *a, const QuantJob *job, Part part, int done, Diag *d)
{
    Arena *tmp = arena_new();
    Statistics *s = statistics_new(tmp, statistics_of(job->seen));
    statistics_copy(s, job->seen);
    *statistics_add_exact(s, run_key[part], id_text(job, tmp), 1) = done;
    if (a->moments)
        moments_keep(a, s);
    for (int i = 0; a->observes && i < a->n_points; i++) {
        const Point *p = a->points[i];
        observer_keep(p->observer, statistics_add_exact(s, "part.point", p->name,
                                                        observer_size(p->observer)));
    }
    statistics_sort(s);
    const bool ok = job->checkpoint->keep(job->checkpoint->ctx, s, done, d);
    arena_free(tmp);
    return ok;
}
