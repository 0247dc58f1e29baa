/* files.c -- reads files, and records all files that a run reads and writes. */
#define _GNU_SOURCE
#include "compiler/import/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_unreadable(const char *path, Diag *d)
{
    const Loc loc = {.file = path};
    return errno == ENOMEM ? diag_error(d, loc, "no memory to read it")
                           : diag_io(d, loc, "cannot be read: %s", strerror(errno));
}

bool file_changed(const char *path, Diag *d)
{
    return diag_io(d, (Loc){.file = path}, "changed while it was read");
}

/* -- the table ------------------------------------------------------------------------------- */

/* The key of a file: its device and inode or, if it does not exist yet, those of its folder and its
 * name. */
typedef struct Key {
    char text[NAME_MAX + 64];
} Key;

Files *files_new(Arena *a)
{
    Files *f = NEW(a, Files, 1);
    f->arena = a;
    f->known.arena = a;
    return f;
}

/* Writes v with digits whose order does not matter, and a blank. */
static char *put_number(char *to, uint64_t v)
{
    for (; v; v >>= 5)
        *to++ = (char)('@' + (v & 31));
    *to++ = ' ';
    return to;
}

static void set_key(Key *k, const struct stat *st, const char *name)
{
    char *to = put_number(put_number(k->text, (uint64_t)st->st_dev), (uint64_t)st->st_ino);
    size_t room = (size_t)(k->text + sizeof k->text - to), n = strlen(name);
    n = n < room ? n : room - 1; /* a file with a longer name cannot be created */
    memcpy(to, name, n);
    to[n] = '\0';
}

static File *new_file(Files *f, const char *path)
{
    File *made = NEW(f->arena, File, 1);
    made->path = arena_str(f->arena, path, strlen(path));
    PUSH(f->arena, f->file, f->n, made);
    return made;
}

static File *file_at(Files *f, const Key *k, const char *path)
{
    File *is = table_find_text(&f->known, k->text);
    if (!is) {
        is = new_file(f, path);
        table_at_copy(&f->known, k->text, strlen(k->text))->ptr = is;
    }
    return is;
}

/* Reports one file that is both read and written, with the name that each side uses. */
static bool clash(const char *read, const char *written, Diag *d)
{
    const Loc none = {0};
    return strcmp(read, written)
               ? diag_io(d, none, "'%s' is the file '%s', which is read, so it is not written",
                         written, read)
               : diag_io(d, none, "'%s' is read, so it is not written", read);
}

static bool written_twice(const char *first, const char *second, Diag *d)
{
    const Loc none = {0};
    return strcmp(first, second)
               ? diag_io(d, none, "'%s' and '%s' are the same file, and name two outputs", first,
                         second)
               : diag_io(d, none, "'%s' is the name of two outputs", first);
}

/* -- outputs --------------------------------------------------------------------------------- */

/* Sets the key of a path.  Returns false if it is not a regular file, or cannot be created. */
static bool path_key(const char *path, Key *k, Arena *a)
{
    struct stat st = {0};
    const char *slash = strrchr(path, '/');
    if (!strcmp(path, "-")) { /* standard output, whatever it leads to */
        set_key(k, &st, path);
        return true;
    }
    if (stat(path, &st) == 0) {
        set_key(k, &st, "");
        return S_ISREG(st.st_mode);
    }
    const char *folder = slash ? arena_str(a, path, (size_t)(slash + 1 - path)) : ".";
    if (stat(folder, &st))
        return false;
    set_key(k, &st, slash ? slash + 1 : path);
    return true;
}

static bool add_output(Files *f, const char *path, bool has_content, Diag *d)
{
    Key k;
    if (!path_key(path, &k, f->arena))
        return true;
    File *is = file_at(f, &k, path);
    if (is->is_read)
        return clash(is->path, path, d);
    if (has_content ? is->is_taken : is->is_written)
        return written_twice(is->path, path, d);
    is->is_written = true;
    is->is_taken = has_content;
    return true;
}

bool file_will_be_written(Files *f, const char *path, Diag *d)
{
    return add_output(f, path, false, d);
}

bool file_take(Files *f, const char *path, Diag *d)
{
    return add_output(f, path, true, d);
}

/* -- inputs ---------------------------------------------------------------------------------- */

/* Returns the entry of an input under exactly this name. */
static File *input_at(Files *f, const Key *k, const char *path, Diag *d)
{
    File *is = file_at(f, k, path);
    if (is->is_written) {
        clash(path, is->path, d);
        return NULL;
    }
    is->is_read = true;
    for (; strcmp(is->path, path) != 0; is = is->other)
        if (!is->other)
            is->other = new_file(f, path);
    return is;
}

/* The file may not exist yet, and yet be an output. */
bool file_will_be_read(Files *f, const char *path, Diag *d)
{
    Key k;
    return !strcmp(path, "-") || !path_key(path, &k, f->arena) || input_at(f, &k, path, d);
}

static bool is_as_read(const File *f, const struct stat *st)
{
    return f->size == (int64_t)st->st_size && f->seconds == (int64_t)st->st_mtim.tv_sec &&
           f->nanoseconds == (int64_t)st->st_mtim.tv_nsec;
}

bool file_opened(Files *f, int fd, const char *path, File **out, Diag *d)
{
    struct stat st;
    Key k;
    if (fstat(fd, &st))
        return file_unreadable(path, d);
    if (!S_ISREG(st.st_mode))
        return diag_io(d, (Loc){.file = path}, "is not a regular file");
    set_key(&k, &st, "");
    File *is = input_at(f, &k, path, d);
    if (!is)
        return false;
    if (is->is_kept && !is_as_read(is, &st))
        return file_changed(path, d);
    is->is_opened = true;
    is->inode = (uint64_t)st.st_ino;
    is->size = (int64_t)st.st_size;
    is->seconds = (int64_t)st.st_mtim.tv_sec;
    is->nanoseconds = (int64_t)st.st_mtim.tv_nsec;
    *out = is;
    return true;
}

/* Opens a file without waiting for a pipe's writer. */
int file_open(Files *f, const char *path, File **out, Diag *d)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        file_unreadable(path, d);
    else if (!file_opened(f, fd, path, out, d)) {
        close(fd);
        fd = -1;
    }
    return fd;
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

void file_give(Files *f, const char *path, const uint8_t *data, size_t n)
{
    File *is = new_file(f, path);
    is->given = data;
    is->size = (int64_t)n;
    f->n_given++;
}

static File *find_given(const Files *f, const char *path)
{
    for (int i = 0; f->n_given && i < f->n; i++)
        if (f->file[i]->given && !strcmp(f->file[i]->path, path))
            return f->file[i];
    return NULL;
}

/* Reads standard input to its end.  Returns its entry, which is called "-", or NULL. */
static File *give_stdin(Files *f, Diag *d)
{
    enum { MOST = 1 << 30 };
    char *text = NEW(f->arena, char, 1);
    size_t n = 0, room = 0, got;
    do {
        if (n == room) {
            room = room ? 2 * room : 65536;
            text = memcpy(NEW(f->arena, char, room), text, n);
        }
        got = fread(text + n, 1, room - n, stdin);
        n += got;
    } while (got && n < MOST);
    if (ferror(stdin) || n >= MOST) {
        diag_io(d, (Loc){.file = "-"}, "cannot be read, or is larger than 1 GiB");
        return NULL;
    }
    file_give(f, "-", (const uint8_t *)text, n);
    f->file[f->n - 1]->is_opened = true; /* keys cover it */
    return f->file[f->n - 1];
}

File *file_map(Files *f, const char *path, const uint8_t **data, size_t *n, Diag *d)
{
    bool is_stdin = !strcmp(path, "-");
    File *is = find_given(f, path);
    if (!is && is_stdin)
        is = give_stdin(f, d);
    if (is) {
        *data = is->given;
        *n = (size_t)is->size;
        return is;
    }
    int fd = is_stdin ? -1 : file_open(f, path, &is, d);
    if (fd < 0)
        return NULL;
    *n = (size_t)is->size;
    void *p = *n ? mmap(NULL, *n, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    bool ok = p != MAP_FAILED || file_unreadable(path, d);
    close(fd);
    *data = ok ? p : NULL;
    return ok ? is : NULL;
}

/* -- changes --------------------------------------------------------------------------------- */

/* Reports each mapped file that has changed since it was opened.  If another file has taken its
 * name, the mapped one may be unchanged. */
void files_check(const Files *f, Diag *d)
{
    struct stat st;
    for (int i = 0; i < f->n; i++) {
        File *is = f->file[i];
        if (!is->is_kept || stat(is->path, &st) || is->inode != (uint64_t)st.st_ino ||
            is_as_read(is, &st))
            continue;
        is->is_kept = false;
        file_changed(is->path, d);
    }
}
