/* out.c -- writes a file's pieces under a temporary name, then renames.
 *
 * From the first temporary name to the last rename the signals that would end the process wait;
 * they are asked for between writes, so that what they leave behind is whole files or nothing. */
#define _GNU_SOURCE
#include "emit/emit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BATCH = 512, ZEROS = 4096, CHUNK = 8 << 20, MAX_TRIES = 100 };

/* Writes all of iov[0..n), which it uses up. */
static bool write_batch(int fd, struct iovec *iov, int n)
{
    while (n) {
        ssize_t done = writev(fd, iov, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        for (size_t left = (size_t)done; n && left >= iov->iov_len; iov++, n--)
            left -= iov->iov_len, done -= (ssize_t)iov->iov_len;
        if (n) {
            iov->iov_base = (char *)iov->iov_base + done;
            iov->iov_len -= (size_t)done;
        }
    }
    return true;
}

typedef struct OutSignals {
    sigset_t held, before; /* before: the mask to go back to */
} OutSignals;

typedef struct Writer {
    int fd, n;
    int64_t bytes; /* of iov */
    bool ok;
    const OutSignals *signals; /* NULL: none wait */
    struct iovec iov[BATCH];
} Writer;

static bool is_interrupted(const OutSignals *s)
{
    sigset_t pending;
    if (!s || sigpending(&pending))
        return false;
    for (int sig = 1; sig < 32; sig++)
        if (sigismember(&s->held, sig) == 1 && sigismember(&pending, sig) == 1) {
            errno = EINTR;
            return true;
        }
    return false;
}

static void flush(Writer *w)
{
    w->ok = w->ok && !is_interrupted(w->signals) && write_batch(w->fd, w->iov, w->n);
    w->n = 0;
    w->bytes = 0;
}

static void put(Writer *w, const void *data, int64_t n)
{
    const char *at = data;
    while (w->ok && n > 0) {
        int64_t part = n < CHUNK - w->bytes ? n : CHUNK - w->bytes;
        w->iov[w->n++] = (struct iovec){(void *)(uintptr_t)at, (size_t)part};
        w->bytes += part;
        at += part;
        n -= part;
        if (w->n == BATCH || w->bytes == CHUNK)
            flush(w);
    }
}

static bool write_pieces(const OutFile *f, int fd, const OutSignals *signals)
{
    static const uint8_t zeros[ZEROS];
    Writer w = {.fd = fd, .ok = true, .signals = signals};
    for (int i = 0; w.ok && i < f->n; i++) {
        put(&w, f->piece[i].data, f->piece[i].n);
        for (int64_t left = f->piece[i].zeros; w.ok && left > 0; left -= ZEROS)
            put(&w, zeros, left < ZEROS ? left : ZEROS);
    }
    flush(&w);
    return w.ok;
}

static bool cannot(const char *what, const char *path, Diag *d)
{
    return diag_io(d, (Loc){.file = path}, "cannot %s: %s", what, strerror(errno));
}

static bool write_direct(const OutFile *f, const char *path, Diag *d)
{
    int fd = strcmp(path, "-") ? open(path, O_WRONLY | O_CLOEXEC) : dup(STDOUT_FILENO);
    if (fd < 0)
        return cannot("open for writing", path, d);
    bool ok = write_pieces(f, fd, NULL);
    return (close(fd) == 0 && ok) || cannot("write", path, d);
}

/* -- signals --------------------------------------------------------------------------------- */

/* Those that end the process: not what it was told to ignore. */
static void hold_signals(OutBatch *b)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
    struct sigaction is;
    if (b->signals)
        return;
    b->signals = NEW(b->arena, OutSignals, 1);
    sigemptyset(&b->signals->held);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (sigaction(ending[i], NULL, &is) == 0 && is.sa_handler != SIG_IGN)
            sigaddset(&b->signals->held, ending[i]);
    sigprocmask(SIG_BLOCK, &b->signals->held, &b->signals->before);
}

static void release_signals(OutBatch *b)
{
    if (b->signals)
        sigprocmask(SIG_SETMASK, &b->signals->before, NULL);
    b->signals = NULL;
}

/* -- batches --------------------------------------------------------------------------------- */

typedef struct Outgoing {
    OutFile file;
    const char *path;  /* as the user has it */
    const char *place; /* where that is; NULL: no regular file, which is written as it is */
    const char *temp;  /* its name beside `place` until it is there; NULL: it has none */
} Outgoing;

/* A new file in the folder of `path`, whatever the length of its name; -1: none can be made. */
static int open_temp(OutBatch *b, const char *path, const char **temp)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    for (int i = 0; i < MAX_TRIES; i++) {
        *temp = arena_printf(b->arena, "%.*s.etc-%ld-%d.tmp", folder, path, (long)getpid(), i);
        int fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    *temp = NULL;
    return -1;
}

static bool stage_file(OutBatch *b, Outgoing *f, Diag *d)
{
    hold_signals(b);
    int fd = open_temp(b, f->place, &f->temp);
    if (fd < 0)
        return cannot("write", f->path, d);
    bool ok = write_pieces(&f->file, fd, b->signals);
    return (close(fd) == 0 && ok) || cannot("write", f->path, d);
}

bool out_add(OutBatch *b, const OutFile *f, const char *path, Diag *d)
{
    struct stat st;
    Outgoing g = {.file = *f, .path = path};
    bool is_stdout = !strcmp(path, "-"), exists = !is_stdout && stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return diag_io(d, (Loc){.file = path}, "cannot write: it is a folder");
    if (!is_stdout && (!exists || S_ISREG(st.st_mode)))
        g.place = path;
    char *real = exists && g.place ? realpath(path, NULL) : NULL;
    if (real)
        g.place = arena_str(b->arena, real, strlen(real));
    free(real);
    PUSH(b->arena, b->file, b->n, g);
    return true;
}

bool out_stage(OutBatch *b, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < b->n && ok; i++)
        ok = !b->file[i].place || stage_file(b, &b->file[i], d);
    for (int i = 0; i < b->n && ok; i++)
        ok = b->file[i].place || write_direct(&b->file[i].file, b->file[i].path, d);
    return ok;
}

void out_discard(OutBatch *b)
{
    for (int i = 0; i < b->n; i++)
        if (b->file[i].temp)
            unlink(b->file[i].temp);
    b->n = 0;
    release_signals(b); /* one that waited ends the process here */
}

bool out_commit(OutBatch *b, Diag *d)
{
    bool ok = !is_interrupted(b->signals) || cannot("write", b->file[0].path, d);
    for (int i = 0; i < b->n && ok; i++) {
        Outgoing *f = &b->file[i];
        if (f->temp && rename(f->temp, f->place))
            ok = cannot("write", f->path, d);
        else
            f->temp = NULL;
    }
    out_discard(b);
    return ok;
}

bool out_write(const OutFile *f, const char *path, Diag *d)
{
    OutBatch b = {.arena = arena_new()};
    bool ok = out_add(&b, f, path, d) && out_stage(&b, d);
    if (ok)
        ok = out_commit(&b, d);
    else
        out_discard(&b);
    arena_free(b.arena);
    return ok;
}
