/* files.c -- files that are read: opened, and mapped. */
#define _GNU_SOURCE
#include "compiler/import/import.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_unreadable(const char *path, Diag *d)
{
    return diag_io(d, (Loc){.file = path}, "cannot be read: %s", strerror(errno));
}

bool file_changed(const char *path, Diag *d)
{
    return diag_io(d, (Loc){.file = path}, "changed while it was read");
}

/* -- opening --------------------------------------------------------------------------------- */

static bool look(const char *path, int fd, File *out, Diag *d)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        return file_unreadable(path, d);
    *out = (File){.size = (int64_t)st.st_size,
                  .seconds = (int64_t)st.st_mtim.tv_sec,
                  .nanoseconds = (int64_t)st.st_mtim.tv_nsec};
    return S_ISREG(st.st_mode) || diag_io(d, (Loc){.file = path}, "is not a regular file");
}

/* Without waiting for a pipe's writer. */
int file_open(const char *path, File *out, Diag *d)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (look(path, fd, out, d))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool file_read(int fd, const char *path, void *to, int64_t n, int64_t at, Diag *d)
{
    while (n > 0) {
        ssize_t got = pread(fd, to, (size_t)n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return file_unreadable(path, d);
        if (!got)
            return file_changed(path, d);
        to = (char *)to + got;
        n -= got;
        at += got;
    }
    return true;
}

bool file_map(const char *path, const uint8_t **data, size_t *n, Diag *d)
{
    File f;
    int fd = file_open(path, &f, d);
    if (fd < 0)
        return false;
    *n = (size_t)f.size;
    void *p = *n ? mmap(NULL, *n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    bool ok = p != MAP_FAILED || file_unreadable(path, d);
    close(fd);
    *data = ok ? p : NULL;
    return ok;
}
