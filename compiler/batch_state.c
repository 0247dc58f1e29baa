/* batch_state.c -- what `etc batch` remembers of its outputs, in a file in the output folder.
 *
 * For each entry the file holds the digest of its command's words, the key, and the size, time,
 * inode and digest of each file that was read or written.  Files whose size, time and inode are
 * unchanged are not read again.  If the time or the inode differs, the digest decides, so a cache
 * that restores outputs and a fresh checkout of inputs change nothing.
 *
 * The file is not trusted.  It says which files to look at and never which to write.  What is not a
 * record in it is ignored, and the entry is compiled again.
 */
#define _GNU_SOURCE
#include "compiler/batch.h"
#include "compiler/compiler.h"
#include "compiler/etc_sources.h"
#include "compiler/import/internal.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* -- files ------------------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Computes the digest of the sorted names in a folder. */
static bool digest_folder(const char *path, Arena *a, Digest *out)
{
    Text t;
    const char **name = NULL;
    int n = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    for (const struct dirent *e; (e = readdir(dir));) {
        const char *copy = arena_str(a, e->d_name, strlen(e->d_name));
        PUSH(a, name, n, copy);
    }
    closedir(dir);
    qsort(name, (size_t)n, sizeof *name, by_text);
    if (!text_open(&t))
        return false;
    for (int i = 0; i < n; i++)
        fprintf(t.f, "%s\n", escape(a, ESCAPE_IR, name[i]));
    const char *text = text_close(&t, a);
    if (text)
        *out = digest_bytes(text, t.n);
    return text != NULL;
}

/* Sets the size, time and inode of a file or folder as they are now, but not the digest.
 * Returns false if there is neither a file nor a folder. */
static bool look_at(const char *path, BatchFile *f, bool *is_folder)
{
    struct stat st;
    *f = (BatchFile){.path = path};
    if (stat(path, &st) || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return false;
    *is_folder = S_ISDIR(st.st_mode);
    f->size = *is_folder ? 0 : (int64_t)st.st_size;
    f->seconds = (int64_t)st.st_mtim.tv_sec;
    f->nanoseconds = (int64_t)st.st_mtim.tv_nsec;
    f->inode = (int64_t)st.st_ino;
    return true;
}

static bool read_now(const char *path, BatchFile *f, Arena *a)
{
    File *file;
    bool is_folder;
    return look_at(path, f, &is_folder) &&
           (is_folder ? digest_folder(path, a, &f->digest)
                      : digest_file(files_new(a), path, &f->digest, &file, &(Diag){0}));
}

static bool is_untouched(const BatchFile *f, const char *path)
{
    BatchFile now;
    bool is_folder;
    return look_at(path, &now, &is_folder) && now.size == f->size && now.seconds == f->seconds &&
           now.nanoseconds == f->nanoseconds && now.inode == f->inode;
}

/* Makes the time of a file invalid if the file changed in the last 50 ms.  The clock of a file
 * system is so coarse that the file may change again and keep that time. */
static void doubt_time(BatchFile *f)
{
    enum { TICK = 50000000, SECOND = 1000000000 };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (now.tv_sec - f->seconds < 2 && f->seconds - now.tv_sec < 2)
                      ? (now.tv_sec - f->seconds) * SECOND + now.tv_nsec - f->nanoseconds
                      : SECOND;
    if (age < TICK)
        f->nanoseconds = -1;
}

static const char *place(const char *folder, const BatchFile *f, Arena *a)
{
    assert(f->path);
    return folder ? arena_join(a, folder, f->path) : f->path;
}

static bool all_untouched(const BatchFile *f, int n, const char *folder, Arena *a)
{
    bool ok = true;
    for (int i = 0; i < n && ok; i++)
        ok = is_untouched(&f[i], place(folder, &f[i], a));
    return ok;
}

static bool all_same(BatchFile *f, int n, const char *folder, Arena *a)
{
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        BatchFile now;
        const char *path = place(folder, &f[i], a);
        ok = is_untouched(&f[i], path) ||
             (read_now(path, &now, a) && now.size == f[i].size &&
              !strcmp(now.digest.hex, f[i].digest.hex));
        if (ok && !is_untouched(&f[i], path)) {
            now.path = f[i].path;
            f[i] = now;
        }
    }
    return ok;
}

bool record_is_untouched(const BatchRecord *r, const char *folder, Arena *a)
{
    return all_untouched(r->in, r->n_in, NULL, a) && all_untouched(r->out, r->n_out, folder, a);
}

bool record_is_same(BatchRecord *r, const char *folder, Arena *a)
{
    return all_same(r->in, r->n_in, NULL, a) && all_same(r->out, r->n_out, folder, a);
}

/* -- records ---------------------------------------------------------------------------------- */

/* Adds a folder to the inputs, because files that appear in it change what is read.  Adds
 * nothing if the path is not a folder. */
static void add_folder(BatchRecord *r, const char *path, Arena *a)
{
    BatchFile f;
    bool is_folder;
    if (!path || !look_at(path, &f, &is_folder) || !is_folder || !digest_folder(path, a, &f.digest))
        return;
    doubt_time(&f);
    PUSH(a, r->in, r->n_in, f);
}

static void add_inputs(const Options *o, const ContentKey *k, BatchRecord *r, Arena *a)
{
    for (int i = 0; i < k->n_files; i++) {
        const File *is = k->file[i].file;
        BatchFile f = {k->file[i].path, is->size, is->seconds, is->nanoseconds, (int64_t)is->inode,
                       k->file[i].digest};
        doubt_time(&f);
        PUSH(a, r->in, r->n_in, f);
    }
    add_folder(r, o->model, a);
    add_folder(r, o->model ? arena_join(a, o->model, "/models") : NULL, a);
    add_folder(r, o->calibrate, a);
    for (int i = 0; i < o->methods.n; i++)
        add_folder(r, strchr(o->methods.item[i], '=') + 1, a);
}

bool record_make(const Options *o, const char *folder, BatchRecord *r, Arena *a, Diag *d)
{
    ContentKey k;
    size_t n = strlen(folder);
    if (!key_of(o, a, &k, d))
        return false;
    r->key = k.digest;
    add_inputs(o, &k, r, a);
    for (int i = 0; i < o->files->n; i++) {
        BatchFile f;
        const File *is = o->files->file[i];
        if (!is->is_taken || strncmp(is->path, folder, n))
            continue;
        if (!read_now(is->path, &f, a))
            return file_unreadable(is->path, d);
        f.path = is->path + n;
        PUSH(a, r->out, r->n_out, f);
    }
    return true;
}

/* -- as JSON ---------------------------------------------------------------------------------- */

static void put_files(const char *key, const BatchFile *f, int n, Arena *a, FILE *out)
{
    fprintf(out, ", \"%s\": [", key);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s[%s, %lld, %lld, %lld, %lld, \"%s\"]", comma(i), json_text(a, f[i].path),
                (long long)f[i].size, (long long)f[i].seconds, (long long)f[i].nanoseconds,
                (long long)f[i].inode, f[i].digest.hex);
    putc(']', out);
}

void record_put(const BatchRecord *r, Arena *a, FILE *out)
{
    fprintf(out,
            "{\"name\": %s, \"words\": \"%s\", \"key\": \"%s\", \"bytes\": %lld, "
            "\"arena\": %lld, \"delegated\": %s, \"predicted\": %s, \"cosine\": %s",
            json_text(a, r->name), r->words.hex, r->key.hex, (long long)r->bytes,
            (long long)r->arena, json_finite(r->delegated, a), json_finite(r->predicted, a),
            json_finite(r->cosine, a));
    put_files("inputs", r->in, r->n_in, a, out);
    put_files("outputs", r->out, r->n_out, a, out);
    fputs("}", out);
}

static bool read_digest(const Json *v, Digest *out)
{
    const char *s = json_string(v);
    bool ok = s && strlen(s) == sizeof out->hex - 1 &&
              strspn(s, "0123456789abcdef") == sizeof out->hex - 1;
    if (ok)
        memcpy(out->hex, s, sizeof out->hex);
    return ok;
}

static bool read_one(const Json *v, BatchFile *f)
{
    int64_t *const number[] = {&f->size, &f->seconds, &f->nanoseconds, &f->inode};
    JsonIter it = json_iter(v);
    if (!json_is_array(v) || json_count(v) != 6 || !json_next(&it) ||
        !(f->path = json_string(it.value)))
        return false;
    for (int i = 0; i < 4; i++)
        if (!json_next(&it) || !json_int(it.value, number[i]))
            return false;
    return json_next(&it) && read_digest(it.value, &f->digest);
}

static bool read_files(const Json *v, Arena *a, BatchFile **out, int *n)
{
    if (!json_is_array(v))
        return false;
    for (JsonIter it = json_iter(v); json_next(&it);) {
        BatchFile f;
        if (!read_one(it.value, &f))
            return false;
        PUSH(a, *out, *n, f);
    }
    return true;
}

bool record_read(const Json *v, Arena *a, BatchRecord *r)
{
    *r = (BatchRecord){.name = json_string(json_get(v, "name")), .delegated = json_float_at(v, "delegated"),
                       .predicted = json_float_at(v, "predicted"), .cosine = json_float_at(v, "cosine")};
    return r->name && read_digest(json_get(v, "words"), &r->words) &&
           read_digest(json_get(v, "key"), &r->key) && json_int(json_get(v, "bytes"), &r->bytes) &&
           json_int(json_get(v, "arena"), &r->arena) &&
           read_files(json_get(v, "inputs"), a, &r->in, &r->n_in) &&
           read_files(json_get(v, "outputs"), a, &r->out, &r->n_out);
}

/* -- the file --------------------------------------------------------------------------------- */

static void find_records(const Json *entries, Batch *b, Arena *a)
{
    Table by_name = {.arena = a};
    for (int i = 0; i < b->n; i++)
        table_at_text(&by_name, b->entry[i].name)->ptr = &b->entry[i];
    for (JsonIter it = json_iter(entries); json_is_array(entries) && json_next(&it);) {
        BatchRecord *r = NEW(a, BatchRecord, 1);
        BatchEntry *e = record_read(it.value, a, r) ? table_find_text(&by_name, r->name) : NULL;
        bool may_change = e && e->options.fast_calibrate; /* it depends on the installed library */
        if (e && !may_change && !strcmp(r->words.hex, e->words_digest.hex))
            e->known = r;
    }
}

void state_read(const char *path, Batch *b, Arena *a, Diag *d)
{
    const uint8_t *data;
    size_t n;
    JsonDoc doc;
    Diag quiet = {0};
    if (!file_exists(path))
        return;
    bool ok = file_map(files_new(a), path, &data, &n, &quiet) &&
              json_parse(a, path, data, n, &quiet, &doc);
    if (!ok) {
        diag_warn(d, (Loc){.file = path}, "is not the state that `etc batch` wrote; "
                                          "all models are compiled again");
        return;
    }
    const char *by = json_string(json_get(doc.root, "etc"));
    if (by && !strcmp(by, ETC_SOURCES))
        find_records(json_get(doc.root, "entries"), b, a);
}

bool state_write(const char *path, const Batch *b, Diag *d)
{
    Text t;
    Arena *a = arena_new();
    if (text_open(&t)) {
        fputs("{\"schema\": 1, \"etc\": \"" ETC_SOURCES "\", \"entries\": [", t.f);
        for (int i = 0, n = 0; i < b->n; i++)
            if (b->entry[i].known) {
                fputs(n++ ? ",\n" : "\n", t.f);
                record_put(b->entry[i].known, a, t.f);
            }
        fputs("]}\n", t.f);
    }
    bool ok = text_write(&t, path, a, d);
    arena_free(a);
    return ok;
}
