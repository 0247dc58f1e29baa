/* quantize.c -- `etc quantize`, and the flags --recipe, --calibrate and --statistics of a build. */
#define _GNU_SOURCE /* CPU_COUNT */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/quantize.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- progress --------------------------------------------------------------------------------- */

typedef struct Progress {
    const char *what;
    double start, shown; /* shown: the time of the last line; 0: none was printed yet */
} Progress;

static void print_left(double seconds)
{
    const int s = (int)(seconds + 0.5);
    if (s < 100)
        fprintf(stderr, "%d s left", s);
    else if (s < 6000)
        fprintf(stderr, "%d min left", (s + 30) / 60);
    else
        fprintf(stderr, "%d h %d min left", s / 3600, s / 60 % 60);
}

static void show(void *ctx, int first, int done, int n)
{
    Progress *p = ctx;
    const double now = seconds_now();
    if (done < 0 && p->shown > 0)
        fputs("\r\033[K", stderr);
    if (done < 0 || done == first) {
        p->start = now;
        p->shown = 0;
    }
    if (done <= first || now - p->shown < 0.2)
        return;
    p->shown = now;
    fputc('\r', stderr);
    say(stderr, "%s: sample %d of %d, ", p->what, done, n);
    print_left((now - p->start) / (done - first) * (n - done));
    fputs("\033[K", stderr);
}

/* -- the job ---------------------------------------------------------------------------------- */

/* Returns how many cores this process may run on. */
static int n_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

static int n_threads(const Options *o)
{
    return o->threads ? atoi(o->threads) : n_cores();
}

Samples quant_samples(const Options *o, Data *data, const char *what, Arena *a)
{
    Samples s = data_samples(data);
    s.threads = n_threads(o);
    if (!o->quiet && isatty(fileno(stderr))) {
        Progress *shown = NEW(a, Progress, 1);
        shown->what = what;
        s.progress = show;
        s.progress_ctx = shown;
    }
    return s;
}

static const Statistics *read_statistics(const Options *o, Arena *a, Diag *d)
{
    const uint8_t *data;
    size_t n;
    return file_map(o->files, o->statistics, &data, &n, d)
               ? statistics_read(a, o->statistics, (const char *)data, n, d)
               : NULL;
}

bool quant_prepare(const Options *o, Program *p, const Statistics *known, Arena *a, Diag *d)
{
    if (!o->recipe)
        return true;
    QuantJob *job = NEW(a, QuantJob, 1);
    Recipe *r = NEW(a, Recipe, 1);
    if (!recipe_read(o->files, o->recipe, a, r, d))
        return false;
    if (o->objective)
        r->for_latency = !strcmp(o->objective, "latency");
    if (o->max_drop)
        recipe_set_budget(o->max_drop, r);
    *job = (QuantJob){
        .recipe = r, .statistics = known, .threads = n_threads(o), .is_refit = o->is_refit,
        .only_observe = o->command == CMD_QUANTIZE && !known};
    if (o->command != CMD_QUANTIZE && o->statistics &&
        !(job->statistics = read_statistics(o, a, d)))
        return false;
    if (o->calibrate && job->statistics && !known) { /* only the float layers come from the file */
        job->keep = job->statistics;
        job->statistics = NULL;
    }
    if (o->calibrate && !known) {
        Data *data = data_open(o->files, o->calibrate, p->method[0], a, d);
        if (!data)
            return false;
        Samples *s = NEW(a, Samples, 1);
        *s = quant_samples(o, data, "calibrating", a);
        job->samples = s;
        job->blas = o->fast_calibrate ? blas_open(a, d) : NULL;
        if (o->fast_calibrate && !job->blas)
            return false;
    }
    p->session->quant = job;
    return true;
}

void quant_keep(const Options *o, const Program *p, Arena *a)
{
    QuantJob *job = p->session->quant;
    const Session *s = p->session;
    const uint64_t of[] = {job->recipe->id, data_id(job->samples->ctx), s->tail->id, s->is_fixed_point,
                           s->has_io, (uint64_t)s->io};
    uint64_t id = statistics_hash(0, of, sizeof of);
    id = statistics_hash(id, ETC_VERSION, sizeof ETC_VERSION);
    if (job->blas)
        id = statistics_hash(id, blas_name(job->blas), strlen(blas_name(job->blas)));
    for (int i = 0; i < p->session->n_backends; i++) {
        const char *name = p->session->backend[i]->name;
        id = statistics_hash(id, name, strlen(name));
    }
    job->checkpoint = checkpoint_open(o, id, job->samples->n, a);
}

void quant_finish(const Program *p)
{
    if (p->session->quant)
        checkpoint_close(p->session->quant->checkpoint);
    if (p->session->quant && p->session->quant->samples)
        data_close(p->session->quant->samples->ctx);
}

/* -- the command ------------------------------------------------------------------------------ */

static bool add_statistics(const Options *o, const Program *p, OutBatch *out, Diag *d)
{
    Text t;
    if (text_open(&t))
        statistics_write(p->session->quant->seen, t.f);
    return output_text(o, out, &t, o->statistics, d);
}

bool quant_measure(const Options *o, const Program *p, QuantReport *r, Arena *a, Diag *d)
{
    Program *after = model_quantize(o, p->session->quant->seen, a, d);
    Data *data = after ? data_open(o->files, o->calibrate, p->method[0], a, d) : NULL;
    if (!data)
        return false;
    r->model = p->name;
    r->recipe = p->session->quant->recipe->file;
    r->library = p->session->fast_library;
    Samples s = quant_samples(o, data, "comparing", a);
    bool ok = report_measure(p->method[0], after->method[0], &s, a, r, d);
    data_close(data);
    return ok;
}

/* Writes the reports of --report and --json.  JSON is printed when all files are staged. */
static bool report(const Options *o, const Program *p, OutBatch *out, Arena *a, Diag *d)
{
    QuantReport r = {.model = p->name};
    if ((o->report || o->json) && !quant_measure(o, p, &r, a, d))
        return false;
    if ((o->report && !quant_report_add(o, &r, out, a, d)) || !out_stage(out, d))
        return false;
    if (o->json)
        quant_report_json(&r, a, stdout);
    return true;
}

/* Observes the samples, and keeps those layers float that the budget asks for.  Returns the program
 * whose job has the observations; NULL: an error was reported. */
static Program *search(const Options *o, Arena *a, Diag *d)
{
    const Statistics *keep = NULL;
    Program *p = model_observe(o, NULL, a, d);
    if (!p || !mixed_search(o, p, &keep, a, d))
        return NULL;
    return keep ? model_observe(o, keep, a, d) : p;
}

/* Returns the options for `etc quantize` that belong to those of a compile. */
static Options as_quantize(const Options *o, const Program *p)
{
    Options q = *o;
    q.command = CMD_QUANTIZE;
    q.tail = p->session->tail->name;
    q.dump_ir = q.statistics = NULL;
    q.verify = q.check_ir = false;
    return q;
}

bool quant_remeasure(const Options *o, const Program *p, QuantReport *r, Arena *a, Diag *d)
{
    const Options q = as_quantize(o, p);
    assert(p->session->quant && o->calibrate);
    const Program *seen = model_observe(&q, p->session->quant->keep, a, d);
    return seen && quant_measure(&q, seen, r, a, d);
}

bool quant_meet_budget(const Options *o, Program *p, Arena *a, Diag *d)
{
    QuantJob *job = p->session->quant;
    if (!job || !job->recipe->metric || !job->samples || job->keep)
        return true;
    const Options q = as_quantize(o, p);
    const Program *found = search(&q, a, d);
    if (found)
        job->keep = found->session->quant->seen;
    return found != NULL;
}

bool command_quantize(const Options *o, Arena *a, Diag *d)
{
    OutBatch out = {.arena = a};
    Program *p = search(o, a, d);
    bool ok = p && add_statistics(o, p, &out, d) && report(o, p, &out, a, d) &&
              finish_files(o, &out, d);
    if (ok)
        checkpoint_remove(o);
    if (ok && !o->quiet)
        say(stderr, "%s: ranges of %d values over %d sample%s\n", o->statistics,
            statistics_count(p->session->quant->seen), p->session->quant->samples->n,
            p->session->quant->samples->n == 1 ? "" : "s");
    out_discard(&out);
    return ok;
}
