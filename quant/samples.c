/* samples.c -- runs samples in threads such that the results do not depend on the threads.
 *
 * Each thread takes the next sample, reads it while no other thread reads, and evaluates it.  A
 * place is a mutex for one sum over the samples: only one sample at a time is in it.  Where the
 * order of the additions matters, samples enter a place in their own order.  A sample waits only
 * for earlier ones, so the earliest one can always go on and there is no deadlock.
 *
 * If a sample fails, earlier samples run to their end and later ones stop; the first that failed is
 * reported. */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "quant/internal.h"
#include <pthread.h>
#include <stdlib.h>

typedef struct Spot {
    int64_t n; /* how many visits it has had */
    bool is_taken;
} Spot;

struct Turns {
    const SampleRun *run;
    pthread_mutex_t reading, lock; /* each guards the fields after it */
    int next;                      /* the sample that is read next */
    bool is_over;
    pthread_cond_t moved;
    Spot *place;
    int n_waiting, failed; /* the first sample that failed, or past all */
    int n_done;
};

typedef struct Worker {
    Turn turn;
    pthread_t thread;
    bool has_thread;
    int failed; /* the sample in which it ended, or -1 */
    Diag diag;
    char *text; /* its messages */
    size_t n_text;
} Worker;

/* -- places ------------------------------------------------------------------------------------ */

bool turn_enter(Turn *t, int place, int64_t at)
{
    Turns *all = t->turns;
    Spot *p = &all->place[place];
    assert(place >= 0 && place < all->run->n_places);
    pthread_mutex_lock(&all->lock);
    all->n_waiting++;
    while (all->failed > t->sample && (p->is_taken || (at >= 0 && p->n != at)))
        pthread_cond_wait(&all->moved, &all->lock);
    all->n_waiting--;
    const bool may = all->failed > t->sample;
    p->is_taken = p->is_taken || may;
    pthread_mutex_unlock(&all->lock);
    return may;
}

void turn_leave(Turn *t, int place)
{
    Turns *all = t->turns;
    pthread_mutex_lock(&all->lock);
    assert(all->place[place].is_taken);
    all->place[place].n++;
    all->place[place].is_taken = false;
    if (all->n_waiting)
        pthread_cond_broadcast(&all->moved);
    pthread_mutex_unlock(&all->lock);
}

/* -- samples ----------------------------------------------------------------------------------- */

/* Reads the next sample.  Returns false if there is none. */
static bool take_sample(Worker *w, EtcTensor ***in, int64_t **symbol, bool *ok)
{
    Turns *all = w->turn.turns;
    const SampleRun *r = all->run;
    const Samples *s = r->samples;
    *in = NEW(w->turn.tmp, EtcTensor *, r->graph->n_in + 1);
    *symbol = NEW(w->turn.tmp, int64_t, r->graph->program->n_syms + 1);
    pthread_mutex_lock(&all->reading);
    all->is_over = all->is_over || all->next >= s->n ||
                   (all->next > r->first && r->is_due && r->is_due(r->due_ctx));
    const bool has = !all->is_over;
    if (has) {
        w->turn.sample = all->next++;
        w->turn.nth = w->turn.sample - r->first;
        *ok = s->read(s->ctx, w->turn.sample, w->turn.tmp, *in, *symbol, &w->turn.name,
                      w->turn.diag);
        all->is_over = !*ok;
    }
    pthread_mutex_unlock(&all->reading);
    return has;
}

static void succeed(Turns *all)
{
    const Samples *s = all->run->samples;
    pthread_mutex_lock(&all->lock);
    all->n_done++;
    if (s->progress)
        s->progress(s->progress_ctx, all->run->first, all->run->first + all->n_done, s->n);
    pthread_mutex_unlock(&all->lock);
}

static void fail(Worker *w)
{
    Turns *all = w->turn.turns;
    w->failed = w->turn.sample;
    pthread_mutex_lock(&all->reading);
    all->is_over = true;
    pthread_mutex_unlock(&all->reading);
    pthread_mutex_lock(&all->lock);
    all->failed = w->failed < all->failed ? w->failed : all->failed;
    pthread_cond_broadcast(&all->moved);
    pthread_mutex_unlock(&all->lock);
}

static void *work(void *worker)
{
    Worker *w = worker;
    const SampleRun *r = w->turn.turns->run;
    EtcTensor **in;
    int64_t *symbol;
    bool ok = true;
    while (ok && take_sample(w, &in, &symbol, &ok)) {
        ok = ok && r->run(r->ctx, &w->turn, in, symbol);
        if (ok)
            succeed(w->turn.turns);
        else
            fail(w);
        arena_rewind(w->turn.tmp);
    }
    return NULL;
}

/* -- threads ----------------------------------------------------------------------------------- */

/* Starts a worker.  If the system has no more threads, the other workers do its part. */
static bool start(Worker *w, Turns *all, bool is_this, const Diag *d)
{
    *w = (Worker){.turn = {.turns = all, .tmp = arena_new(), .eval = arena_new()}, .failed = -1};
    w->turn.diag = &w->diag;
    w->diag.is_json = d->is_json;
    w->diag.out = open_memstream(&w->text, &w->n_text);
    w->has_thread = w->diag.out && !is_this && !pthread_create(&w->thread, NULL, work, w);
    return w->diag.out != NULL;
}

static void end(Worker *w)
{
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    if (w->diag.out)
        fclose(w->diag.out);
    arena_free(w->turn.tmp);
    arena_free(w->turn.eval);
}

static void tell(const Worker *w, Diag *d)
{
    fwrite(w->text, 1, w->n_text, d->out);
    for (int f = 0; f < N_FAULTS; f++)
        d->n[f] += w->diag.n[f];
}

/* Returns whether threads may evaluate the graph at once.  Results that torch left out are inferred
 * when they are evaluated, and with symbols that makes expressions of the program.  Schemas are
 * read beforehand, since the first look at one makes it. */
static bool is_shared(const Graph *g)
{
    bool is = true;
    for (const Node *n = NULL; (n = walk_next(g, n));) {
        op_schema(g->program, n->op); /* is read on first use */
        for (int i = 0; i < n->n_out; i++)
            is = is && !(n->out[i]->type.is_none && g->program->n_syms);
    }
    return is;
}

static int threads_of(const SampleRun *r)
{
    const int left = r->samples->n - r->first;
    bool may = is_shared(r->graph);
    if (r->beside)
        may = is_shared(r->beside) && may;
    const int n = may && r->samples->threads > 1 ? r->samples->threads : 1;
    return n < left ? n : left;
}

static void turns_end(Turns *all)
{
    const Samples *s = all->run->samples;
    if (s->progress)
        s->progress(s->progress_ctx, all->run->first, -1, s->n);
    pthread_cond_destroy(&all->moved);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->reading);
}

bool samples_run(const SampleRun *r, int *done, Diag *d)
{
    Arena *a = arena_new();
    const int n = threads_of(r);
    Turns all = {.run = r, .next = r->first, .failed = INT32_MAX,
                 .place = NEW(a, Spot, r->n_places + 1)};
    Worker *w = NEW(a, Worker, n + 1);
    bool ok = true;
    program_align(r->graph->program); /* threads read it */
    if (r->beside)
        program_align(r->beside->program);
    pthread_mutex_init(&all.reading, NULL);
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.moved, NULL);
    if (r->samples->progress)
        r->samples->progress(r->samples->progress_ctx, r->first, r->first, r->samples->n);
    for (int i = 0; i < n; i++)
        ok = (start(&w[i], &all, i == 0, d) || diag_io(d, (Loc){0}, "no memory for threads")) && ok;
    if (n && ok)
        work(&w[0]);
    for (int i = 0; i < n; i++)
        end(&w[i]);
    for (int i = 0; i < n; i++) {
        if (w[i].failed >= 0 && w[i].failed == all.failed)
            tell(&w[i], d);
        free(w[i].text);
    }
    turns_end(&all);
    arena_free(a);
    *done = r->first + all.n_done;
    return ok && all.failed == INT32_MAX;
}
