/* folder.c -- files beneath a folder.
 *
 * The folder of an unpacked model is not trusted.  No symbolic link in it is followed, because any
 * file that the user can read could then become a weight.  So names are opened component by
 * component, from the folder on.  The folder itself may be reached by any path. */
#define _GNU_SOURCE
#include "compiler/import/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

Folder folder_at(Arena *a, const char *path)
{
    size_t n = strlen(path);
    return (Folder){.path = arena_printf(a, "%s%s", path, n && path[n - 1] == '/' ? "" : "/"),
                    .fd = -1,
                    .last_fd = -1};
}

const char *folder_of_archive(Arena *a, const char *path)
{
    struct stat st;
    const char *only = NULL;
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && n < 2 && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        n++;
        if (strcmp(e->d_name, "models") != 0)
            only = arena_join(a, folder_at(a, path).path, e->d_name);
    }
    if (dir)
        closedir(dir);
    return n == 1 && only && lstat(only, &st) == 0 && S_ISDIR(st.st_mode) ? only : path;
}

static void close_last(Folder *f)
{
    if (f->last_fd >= 0)
        close(f->last_fd);
    f->last_fd = -1;
}

void folder_close(Folder *f)
{
    close_last(f);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

/* Opens one component of a name, which is not "..".  Returns -1 with errno set; ELOOP means a
 * link. */
static int open_part(int in, const char *name, size_t n, int flags)
{
    char part[NAME_MAX + 1] = "";
    struct stat st;
    if (n > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(part, name, n);
    if (!n || !strcmp(part, ".") || !strcmp(part, "..")) {
        errno = EINVAL;
        return -1;
    }
    int fd = openat(in, part, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int failure = errno;
    if (fd < 0 && fstatat(in, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        failure = ELOOP;
    errno = failure;
    return fd;
}

/* Opens the folder name[0..n), which ends with a '/' or is empty.  It stays open until another
 * folder is opened.  -1: errno says why. */
static int open_folder(Folder *f, const char *name, size_t n)
{
    if (f->fd < 0)
        f->fd = open(f->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (f->fd < 0 || !n)
        return f->fd;
    if (f->last_fd >= 0 && f->n_last == n && !memcmp(f->last, name, n))
        return f->last_fd;
    close_last(f);
    for (size_t at = 0, len; at < n; at += len + 1) {
        len = strcspn(name + at, "/");
        int fd = open_part(at ? f->last_fd : f->fd, name + at, len, O_PATH | O_DIRECTORY);
        int failure = errno;
        close_last(f);
        errno = failure;
        f->last_fd = fd;
        if (fd < 0)
            return -1;
    }
    f->last = name;
    f->n_last = n;
    return f->last_fd;
}

static int open_beneath(Folder *f, const char *name, int flags)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    int in = open_folder(f, name, (size_t)(base - name));
    return in < 0 ? -1 : open_part(in, base, strlen(base), flags);
}

int folder_file(Folder *f, const char *name, Files *files, const char *path, File **out,
                Diag *d)
{
    int fd = open_beneath(f, name, O_RDONLY);
    if (fd >= 0 && file_opened(files, fd, path, out, d))
        return fd;
    if (fd < 0 && errno == ELOOP)
        diag_io(
            d, (Loc){.file = path},
            "is a symbolic link, or is reached through one: links in a model's folder are not followed");
    else if (fd < 0)
        file_unreadable(path, d);
    else
        close(fd);
    return -1;
}

DIR *folder_list(Folder *f, const char *name)
{
    int fd = open_beneath(f, name, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    return dir;
}
