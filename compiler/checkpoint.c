/* checkpoint.c -- FILE.part beside the statistics FILE of `etc quantize`: the state from which an
 * unfinished run continues.
 *
 * It is written every ten seconds, or less often if that takes long, and on SIGHUP, SIGINT and
 * SIGTERM, which wait until the current samples are done.  The signals are blocked and polled
 * between samples, so no handler and no global state is needed.  The id of a run
 * (quant/checkpoint.c) covers the recipe, the samples' files, the backends and this version.
 */
#define _POSIX_C_SOURCE 200809L
#include "compiler/compiler.h"
#include "compiler/quantize.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PERIOD = 10, SHARE = 20 }; /* seconds between two writes, which take at most 1/SHARE */

typedef struct Keeper {
    const Options *o;
    const char *path;
    int n;
    sigset_t watched, before; /* before: the signal mask when it was opened */
    int signal;               /* the signal that came; 0: none */
    double next;              /* the time when the next write is due */
    bool was_there;           /* there was a file, valid or not */
} Keeper;

/* -- signals ---------------------------------------------------------------------------------- */

/* Blocks the signals that would end the process now. */
static void block(Keeper *k)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction is;
    sigemptyset(&k->watched);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (!sigaction(ending[i], NULL, &is) && is.sa_handler == SIG_DFL)
            sigaddset(&k->watched, ending[i]);
    pthread_sigmask(SIG_BLOCK, &k->watched, &k->before);
}

/* Returns whether a signal that ends the process has come.  Takes the signal, because it would
 * also stop the writing of files. */
static bool is_ending(Keeper *k)
{
    const struct timespec at_once = {0, 0};
    const int got = k->signal ? 0 : sigtimedwait(&k->watched, NULL, &at_once);
    k->signal = got > 0 ? got : k->signal;
    return k->signal != 0;
}

/* -- the file --------------------------------------------------------------------------------- */

static bool is_due(void *ctx)
{
    Keeper *k = ctx;
    return is_ending(k) || seconds_now() >= k->next;
}

static bool write_part(const Keeper *k, const Statistics *s, Diag *d)
{
    Text t;
    Arena *a = arena_new();
    if (text_open(&t))
        statistics_write(s, t.f);
    bool ok = text_write(&t, k->path, a, d);
    arena_free(a);
    return ok;
}

static bool keep(void *ctx, const Statistics *s, int done, Diag *d)
{
    Keeper *k = ctx;
    const double start = seconds_now();
    if (!write_part(k, s, d))
        return false;
    k->next = start + (seconds_now() - start) * (double)SHARE + (double)PERIOD;
    if (!is_ending(k))
        return true;
    if (!k->o->quiet)
        say(stderr, "%s: %d of %d samples; the same command goes on there\n", k->path, done,
                k->n);
    pthread_sigmask(SIG_SETMASK, &k->before, NULL);
    raise(k->signal);
    return true;
}

/* Reads the file of an earlier run.  Returns NULL if there is none, or none that can be read. */
static const Statistics *read_part(const Keeper *k, Arena *a)
{
    const uint8_t *data;
    size_t n;
    Diag quiet = {0};
    return file_map(files_new(a), k->path, &data, &n, &quiet) /* not o->files: it is written too */
               ? statistics_read(a, k->path, (const char *)data, n, &quiet)
               : NULL;
}

const char *checkpoint_path(const Options *o, Arena *a)
{
    return arena_printf(a, "%s.part", o->statistics);
}

Checkpoint *checkpoint_open(const Options *o, uint64_t id, int n_samples, Arena *a)
{
    struct stat st;
    if (!strcmp(o->statistics, "-") || (!stat(o->statistics, &st) && !S_ISREG(st.st_mode)))
        return NULL;
    Keeper *k = NEW(a, Keeper, 1);
    Checkpoint *c = NEW(a, Checkpoint, 1);
    *k = (Keeper){.o = o, .path = checkpoint_path(o, a), .n = n_samples};
    k->next = seconds_now() + (double)PERIOD;
    *c = (Checkpoint){.id = id, .is_due = is_due, .keep = keep, .ctx = k};
    k->was_there = file_exists(k->path);
    c->from = k->was_there ? read_part(k, a) : NULL;
    block(k);
    return c;
}

void checkpoint_close(const Checkpoint *c)
{
    const Keeper *k = c ? c->ctx : NULL;
    if (!k)
        return;
    pthread_sigmask(SIG_SETMASK, &k->before, NULL);
    if (k->was_there && !k->o->quiet && c->first)
        say(stderr, "%s: continued after %d of %d samples\n", k->path, c->first, k->n);
    else if (k->was_there && !k->o->quiet)
        say(stderr, "%s: is not of this model, recipe and samples; starting again\n", k->path);
}

void checkpoint_remove(const Options *o)
{
    Arena *a = arena_new();
    unlink(checkpoint_path(o, a));
    arena_free(a);
}
