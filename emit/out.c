/* out.c -- writes a file's pieces under a temporary name, then renames. */
#define _GNU_SOURCE
#include "emit/emit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BATCH = 512, ZEROS = 4096, MAX_TRIES = 100 };

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

typedef struct Writer {
    int fd, n;
    bool ok;
    struct iovec iov[BATCH];
} Writer;

static void put(Writer *w, const void *data, int64_t n)
{
    if (n <= 0)
        return;
    if (w->n == BATCH) {
        w->ok = w->ok && write_batch(w->fd, w->iov, w->n);
        w->n = 0;
    }
    w->iov[w->n++] = (struct iovec){(void *)(uintptr_t)data, (size_t)n};
}

static bool write_pieces(const OutFile *f, int fd)
{
    static const uint8_t zeros[ZEROS];
    Writer w = {.fd = fd, .ok = true};
    for (int i = 0; w.ok && i < f->n; i++) {
        put(&w, f->piece[i].data, f->piece[i].n);
        for (int64_t left = f->piece[i].zeros; left > 0; left -= ZEROS)
            put(&w, zeros, left < ZEROS ? left : ZEROS);
    }
    return w.ok && write_batch(fd, w.iov, w.n);
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
    bool ok = write_pieces(f, fd);
    return (close(fd) == 0 && ok) || cannot("write", path, d);
}

/* -- batches --------------------------------------------------------------------------------- */

/* A new file in the folder of `path`, whatever the length of its name; -1: none can be made. */
static int open_temp(OutBatch *b, const char *path, const char **temp)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    for (int i = 0; i < MAX_TRIES; i++) {
        *temp = arena_printf(b->arena, "%.*s.etc-%ld-%d.tmp", folder, path, (long)getpid(),
                             b->n + i);
        int fd = open(*temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool stage_file(OutBatch *b, const OutFile *f, const char *path, Diag *d)
{
    OutStaged s = {.path = path};
    int fd = open_temp(b, path, &s.temp);
    if (fd < 0)
        return cannot("write", path, d);
    PUSH(b->arena, b->file, b->n, s);
    bool ok = write_pieces(f, fd);
    return (close(fd) == 0 && ok) || cannot("write", path, d);
}

bool out_stage(OutBatch *b, const OutFile *f, const char *path, Diag *d)
{
    struct stat st;
    if (!strcmp(path, "-"))
        return write_direct(f, path, d);
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return diag_io(d, (Loc){.file = path}, "cannot write: it is a folder");
    if (exists && !S_ISREG(st.st_mode))
        return write_direct(f, path, d);
    char *real = exists ? realpath(path, NULL) : NULL;
    const char *place = real ? real : path;
    place = arena_str(b->arena, place, strlen(place));
    free(real);
    return stage_file(b, f, place, d);
}

void out_discard(OutBatch *b)
{
    for (int i = 0; i < b->n; i++)
        unlink(b->file[i].temp);
    b->n = 0;
}

bool out_commit(OutBatch *b, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < b->n && ok; i++)
        ok = rename(b->file[i].temp, b->file[i].path) == 0 || cannot("write", b->file[i].path, d);
    out_discard(b); /* temporary names that were renamed exist no more */
    return ok;
}

bool out_write(const OutFile *f, const char *path, Diag *d)
{
    OutBatch b = {.arena = arena_new()};
    bool ok = out_stage(&b, f, path, d);
    if (ok)
        ok = out_commit(&b, d);
    else
        out_discard(&b);
    arena_free(b.arena);
    return ok;
}
