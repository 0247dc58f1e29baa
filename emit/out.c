/* out.c -- writes files completely before it puts any of them in its place.
 *
 * If the file system can do it (O_TMPFILE), a file is written without a name, so nothing is left of
 * it however the process ends.  Only a file with a name can be renamed to replace another file, so
 * in the end all files get temporary names, and then their own.
 *
 * In a folder the temporary names of a user's runs are .etc-USER-0.tmp, .etc-USER-1.tmp and so on.
 * Number 0 is created first and removed last, and the run that created it holds a lock on it.  As
 * long as it does, other runs wait, so the files of two runs that write the same files never mix.
 * If a number 0 is not locked, it and the other numbers were left by a run that was killed; the run
 * that finds them removes them.  Folders are taken in the order of device and inode, so that no two
 * runs wait for each other.  If files cannot be locked, the names also contain the process, and no
 * run waits.
 *
 * From the first temporary name to the last rename, signals that would end the process are held
 * back.  The code checks for them between writes, so that they leave only whole files or
 * nothing. */
#define _GNU_SOURCE
#include "emit/emit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 512, ZEROS = 4096, CHUNK = 8 << 20, MAX_TRIES = 100 };

/* Writes all of iov[0..n), and changes its entries. */
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
    sigset_t held, before; /* before: the mask to restore */
} OutSignals;

typedef struct Writer {
    int fd, n;
    int64_t bytes; /* the bytes in iov */
    bool ok;
    const OutSignals *signals; /* NULL: none are held back */
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
        assert(w->n < BATCH && w->bytes < CHUNK);
        int64_t part = n < CHUNK - w->bytes ? n : CHUNK - w->bytes;
        w->iov[w->n++] = (struct iovec){(void *)(uintptr_t)at, (size_t)part};
        w->bytes += part;
        at += part;
        n -= part;
        if (w->n == BATCH || w->bytes == CHUNK)
            flush(w);
    }
}

/* Makes the bytes of a piece in a buffer, which is written before it is filled again. */
static void put_made(Writer *w, const OutPiece *p)
{
    uint8_t made[1 << 14];
    for (int64_t at = 0, n; w->ok && at < p->n; at += n) {
        n = p->n - at < (int64_t)sizeof made ? p->n - at : (int64_t)sizeof made;
        p->make(p->data, at, n, made);
        put(w, made, n);
        flush(w);
    }
}

static bool write_pieces(const OutFile *f, int fd, const OutSignals *signals)
{
    static const uint8_t zeros[ZEROS];
    Writer w = {.fd = fd, .ok = true, .signals = signals};
    for (int i = 0; w.ok && i < f->n; i++) {
        if (f->piece[i].make)
            put_made(&w, &f->piece[i]);
        else
            put(&w, f->piece[i].data, f->piece[i].n);
        for (int64_t left = f->piece[i].zeros; w.ok && left > 0; left -= ZEROS)
            put(&w, zeros, left < ZEROS ? left : ZEROS);
    }
    flush(&w);
    return w.ok;
}

/* Reports the error in errno.  Pieces may be in mapped files, which may become shorter. */
static bool cannot(const char *what, const char *path, Diag *d)
{
    const char *why = errno == EFAULT ? "a file that is read has become shorter" : strerror(errno);
    return diag_io(d, (Loc){.file = path}, "cannot %s: %s", what, why);
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

/* Blocks the signals that would end the process.  Signals that it ignores stay ignored. */
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
    const char *path;       /* the path that the user gave */
    const char *place;      /* the real path; NULL: no regular file, which is written directly */
    const char *temp;       /* its temporary name in the same folder; NULL: it has none */
    uint64_t device, inode; /* the device and inode of the folder */
    int number;             /* its number in the folder, from 0 on */
    int order;              /* its position in the batch */
    int fd;                 /* -1: it is not open */
} Outgoing;

/* Returns the folder of a path, up to and including the slash. */
static const char *folder_of(Arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_str(a, path, (size_t)(slash + 1 - path)) : "./";
}

/* Returns whether the file is another user's in a folder like /tmp, so it cannot be replaced.
 * This is checked before other files of the batch are put in their places. */
static bool is_anothers(const struct stat *folder, const struct stat *file)
{
    const uid_t user = geteuid();
    return folder->st_mode & S_ISVTX && user && folder->st_uid != user && file->st_uid != user;
}

/* Finds the folder of a file.  `there` is the file that will be replaced; NULL: there is none. */
static bool find_folder(OutBatch *b, Outgoing *g, const struct stat *there, Diag *d)
{
    struct stat st;
    if (stat(folder_of(b->arena, g->place), &st))
        return cannot("write", g->path, d);
    if (there && is_anothers(&st, there))
        return diag_io(d, (Loc){.file = g->path}, "cannot write: it is another user's");
    g->device = (uint64_t)st.st_dev;
    g->inode = (uint64_t)st.st_ino;
    return true;
}

bool out_add(OutBatch *b, const OutFile *f, const char *path, Diag *d)
{
    struct stat st;
    Outgoing g = {.file = *f, .path = path, .order = b->n, .fd = -1};
    bool is_stdout = !strcmp(path, "-"), exists = !is_stdout && stat(path, &st) == 0;
    assert(!b->signals); /* no file has a temporary name yet */
    if (exists && S_ISDIR(st.st_mode))
        return diag_io(d, (Loc){.file = path}, "cannot write: it is a folder");
    if (!is_stdout && (!exists || S_ISREG(st.st_mode)))
        g.place = path;
    char *real = exists && g.place ? realpath(path, NULL) : NULL;
    if (real)
        g.place = arena_str(b->arena, real, strlen(real));
    free(real);
    if (g.place && !find_folder(b, &g, exists ? &st : NULL, d))
        return false;
    PUSH(b->arena, b->file, b->n, g);
    return true;
}

static int by_folder(const void *a, const void *b)
{
    const Outgoing *l = a, *r = b;
    if (l->device != r->device)
        return l->device < r->device ? -1 : 1;
    if (l->inode != r->inode)
        return l->inode < r->inode ? -1 : 1;
    return l->order - r->order;
}

static void sort_by_folder(OutBatch *b)
{
    if (b->n > 1)
        qsort(b->file, (size_t)b->n, sizeof *b->file, by_folder);
    for (int i = 1; i < b->n; i++) {
        const Outgoing *last = &b->file[i - 1];
        Outgoing *g = &b->file[i];
        bool is_next = g->device == last->device && g->inode == last->inode;
        g->number = is_next ? last->number + 1 : 0;
    }
}

/* -- temporary names --------------------------------------------------------------------------- */

static const char *temp_name(OutBatch *b, const Outgoing *g, int number)
{
    assert(g->place);
    const char *folder = folder_of(b->arena, g->place);
    const long user = (long)geteuid();
    return b->has_no_locks ? arena_printf(b->arena, "%s.etc-%ld-%ld-%d.tmp", folder, user,
                                          (long)getpid(), number)
                           : arena_printf(b->arena, "%s.etc-%ld-%d.tmp", folder, user, number);
}

/* Returns whether `name` is the name of the open file. */
static bool is_called(int fd, const char *name)
{
    struct stat is, named;
    return fstat(fd, &is) == 0 && lstat(name, &named) == 0 && is.st_dev == named.st_dev &&
           is.st_ino == named.st_ino;
}

/* Removes the files that a run has left.  Number 0 is removed last, so that if this run is killed
 * too, the next run finds the rest. */
static void remove_left(OutBatch *b, const Outgoing *g)
{
    struct stat st;
    int n = 1;
    while (lstat(temp_name(b, g, n), &st) == 0)
        n++;
    while (n-- > 0)
        unlink(temp_name(b, g, n));
}

static bool wait_a_little(OutBatch *b, const char *name, Diag *d)
{
    enum { MILLISECOND = 1000000, LONG = 1000 };
    if (is_interrupted(b->signals))
        return false;
    if (++b->n_waits == LONG)
        diag_note(d, "waits for another run that writes there: %s", name);
    nanosleep(&(struct timespec){0, MILLISECOND}, NULL);
    return true;
}

/* Handles a number 0 that exists: waits for its owner, or removes the files of a dead owner. */
static bool outlast(OutBatch *b, const Outgoing *g, Diag *d)
{
    int fd = open(g->temp, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    bool is_dead = flock(fd, LOCK_EX | LOCK_NB) == 0, is_alive = !is_dead && errno == EWOULDBLOCK;
    b->has_no_locks = !is_dead && !is_alive;
    if (is_dead && is_called(fd, g->temp))
        remove_left(b, g);
    close(fd);
    return !is_alive || wait_a_little(b, g->temp, d);
}

/* Handles a temporary name that exists.  Returns whether the caller may try again. */
static bool make_way(OutBatch *b, Outgoing *g, Diag *d)
{
    if (b->has_no_locks)
        return ++g->number < b->n + MAX_TRIES;
    if (g->number) /* number 0 is ours, so nobody owns this one */
        return unlink(g->temp) == 0 || errno == ENOENT;
    return outlast(b, g, d);
}

/* Creates a file with its temporary name, if files cannot be without a name.  A run that found
 * number 0 before it was locked may have removed it; then this fails with EEXIST. */
static bool create(OutBatch *b, Outgoing *g)
{
    g->fd = open(g->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (g->fd < 0)
        return false;
    if (g->number || b->has_no_locks)
        return true;
    b->has_no_locks = flock(g->fd, LOCK_EX) != 0;
    if (!b->has_no_locks && is_called(g->fd, g->temp))
        return true;
    if (b->has_no_locks)
        unlink(g->temp);
    close(g->fd);
    g->fd = -1;
    errno = EEXIST;
    return false;
}

static bool link_open(const Outgoing *g)
{
    char self[32];
    assert(g->fd >= 0 && g->temp);
    snprintf(self, sizeof self, "/proc/self/fd/%d", g->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, g->temp, AT_SYMLINK_FOLLOW) == 0;
}

static bool give_name(OutBatch *b, Outgoing *g, Diag *d)
{
    hold_signals(b);
    do {
        g->temp = temp_name(b, g, g->number);
        if (g->fd >= 0 ? link_open(g) : create(b, g))
            return true;
    } while (errno == EEXIST && make_way(b, g, d));
    g->temp = NULL;
    return cannot("write", g->path, d);
}

/* -- writing ----------------------------------------------------------------------------------- */

/* Opens a file without a name; -1: this is not possible.  Only a file that /proc shows can get a
 * name later. */
static int open_unnamed(const char *folder)
{
    char self[32];
    int fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (fd < 0 || access(self, F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool open_file(OutBatch *b, Outgoing *g, Diag *d)
{
    g->fd = open_unnamed(folder_of(b->arena, g->place));
    if (g->fd >= 0 && !g->number && !b->has_no_locks)
        b->has_no_locks = flock(g->fd, LOCK_EX | LOCK_NB) != 0;
    if (g->fd >= 0)
        return true;
    Outgoing *first = b->has_no_locks ? g : g - g->number;
    return (first == g || first->temp || give_name(b, first, d)) && give_name(b, g, d);
}

/* Closes a file that has a name, unless it has the lock.  For other files, closes a duplicate.
 * Some file systems report only then that a write has failed. */
static bool close_written(const OutBatch *b, Outgoing *g)
{
    assert(g->fd >= 0);
    bool is_done = g->temp && (g->number || b->has_no_locks);
    int fd = is_done ? g->fd : dup(g->fd);
    if (is_done)
        g->fd = -1;
    return fd >= 0 && close(fd) == 0;
}

static bool stage_file(OutBatch *b, Outgoing *g, Diag *d)
{
    if (!open_file(b, g, d))
        return false;
    return (write_pieces(&g->file, g->fd, b->signals) && close_written(b, g)) ||
           cannot("write", g->path, d);
}

/* Raises the limit of open files, because all files may be open at the same time. */
static void raise_limit(int n_files)
{
    enum { FEW = 16 };
    struct rlimit r;
    if (n_files <= FEW || getrlimit(RLIMIT_NOFILE, &r))
        return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

bool out_stage(OutBatch *b, Diag *d)
{
    bool ok = true;
    raise_limit(b->n);
    sort_by_folder(b);
    for (int i = 0; i < b->n && ok; i++)
        ok = !b->file[i].place || stage_file(b, &b->file[i], d);
    for (int i = 0; i < b->n && ok; i++)
        ok = b->file[i].place || write_direct(&b->file[i].file, b->file[i].path, d);
    return ok;
}

/* -- the end ----------------------------------------------------------------------------------- */

static void let_go(Outgoing *g)
{
    if (g->temp)
        unlink(g->temp);
    if (g->fd >= 0)
        close(g->fd);
}

void out_discard(OutBatch *b)
{
    while (b->n > 0)
        let_go(&b->file[--b->n]);
    release_signals(b); /* a signal that was held back ends the process here */
}

static bool put_in_place(Outgoing *g, Diag *d)
{
    assert(!g->place || g->temp);
    if (g->place && rename(g->temp, g->place))
        return cannot("write", g->path, d);
    g->temp = NULL;
    return true;
}

bool out_commit(OutBatch *b, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < b->n && ok; i++)
        ok = !b->file[i].place || b->file[i].temp || give_name(b, &b->file[i], d);
    if (ok && is_interrupted(b->signals))
        ok = cannot("write", b->file[0].path, d);
    for (int i = b->n; i-- > 0 && ok;)
        ok = put_in_place(&b->file[i], d);
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
