/* data.c -- samples of a model's inputs, from .npy and .npz files.
 *
 * data_open() reads the headers of all files, so what does not fit is reported before anything
 * runs.  The bytes of a sample are read when it is asked for.  Of a .npy file only these bytes are
 * read; a .npz file is held in memory while its samples are read.  Nothing is mapped: a file that
 * shrinks meanwhile causes an error, not a signal.  Files are sorted by the bytes of their names,
 * whatever the locale.
 */
#define _GNU_SOURCE
#include "compiler/compiler.h"
#include "compiler/import/internal.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An input's elements in the file that is open. */
typedef struct Array {
    const char *name; /* its name in messages, such as "a.npz: member 'x.npy'" */
    NpyHeader h;
    const uint8_t *bytes; /* the bytes of a member; NULL: they are read from fd */
    int rank;             /* the rank of one sample */
    int64_t dim[ETC_MAX_RANK];
    int64_t n, sample_bytes;
} Array;

typedef struct DataFile {
    const char *path;
    int first, n; /* its first sample, and how many it has */
} DataFile;

struct Data {
    Files *files; /* all files of the run */
    const Graph *g;
    Arena *arena, *held; /* held: what the open file needs */
    DataFile *file;
    int n_files, n;
    uint64_t id;   /* a hash of the names, sizes and times of the files */
    bool is_known; /* the id covers all files */
    int open, fd; /* the file that `array` describes, and its descriptor; -1: none */
    Array *array; /* the array of each input */
};

static bool is_given(const Value *v)
{
    return !v->literal;
}

/* -- arrays that fit an input ----------------------------------------------------------------- */

static bool dims_fit(const int64_t *dim, Type want, int from)
{
    int64_t lo, hi;
    for (int i = from; i < want.rank; i++) {
        dim_range(want.dim[i], &lo, &hi);
        if (dim[i] < lo || dim[i] > hi)
            return false;
    }
    return true;
}

static bool misfit(const Array *r, const Value *v, Arena *a, Diag *d)
{
    EtcTensor got = {.dtype = r->h.dtype, .rank = r->h.rank};
    int32_t dim[ETC_MAX_RANK];
    for (int i = 0; i < r->h.rank; i++)
        dim[i] = (int32_t)r->h.dim[i];
    got.dim = dim;
    return diag_error(d, (Loc){.file = r->name},
                      "is %s, expected %s as input '%s' is, or several of these along a first axis",
                      tensor_shown(a, &got), type_shown(a, v->type), v->name);
}

/* Sets the shape of a sample and the number of samples.  Reports an array that does not fit. */
static bool settle(Array *r, const Value *v, Arena *a, Diag *d)
{
    Type want = v->type;
    const NpyHeader *h = &r->h;
    want.rank = want.rank == SCALAR ? 0 : want.rank;
    r->h.dtype = npy_dtype(h->dtype, want.dtype);
    r->rank = want.rank;
    r->n = -1;
    if (h->rank == want.rank && dims_fit(h->dim, want, 0)) {
        r->n = 1;
    } else if (h->rank == want.rank + 1 && dims_fit(h->dim + 1, want, 0)) {
        r->n = h->dim[0];
    } else if (h->rank == want.rank && want.rank && dims_fit(h->dim, want, 1)) {
        int64_t lo, hi;
        dim_range(want.dim[0], &lo, &hi);
        r->n = lo == hi && lo > 0 && h->dim[0] % lo == 0 ? h->dim[0] / lo : -1;
    }
    if (r->n < 0 || h->dtype != want.dtype)
        return misfit(r, v, a, d);
    if (!r->n)
        return diag_error(d, (Loc){.file = r->name}, "contains no samples");
    for (int i = 0; i < r->rank; i++)
        r->dim[i] = h->dim[h->rank - r->rank + i];
    if (r->rank && h->rank == r->rank)
        r->dim[0] /= r->n;
    r->sample_bytes = h->bytes / r->n;
    return true;
}

/* -- files ------------------------------------------------------------------------------------ */

static void add_to_id(Data *data, const char *path, const File *f)
{
    const int64_t is[] = {f->size, f->seconds, f->nanoseconds};
    data->id = statistics_hash(data->id, path, strlen(path));
    data->id = statistics_hash(data->id, is, sizeof is);
}

static void close_file(Data *data)
{
    if (data->fd >= 0)
        close(data->fd);
    data->fd = data->open = -1;
    arena_reset(data->held);
}

static int n_given(const Graph *g)
{
    int n = 0;
    for (int i = 0; i < g->n_in; i++)
        n += is_given(g->in[i]);
    return n;
}

static bool open_npy(Data *data, const char *path, int64_t size, Diag *d)
{
    int64_t n = size < NPY_HEADER ? size : NPY_HEADER;
    uint8_t *head = NEW(data->held, uint8_t, n + 1);
    int i = 0;
    while (i < data->g->n_in && !is_given(data->g->in[i]))
        i++;
    if (n_given(data->g) != 1)
        return diag_error(
            d, (Loc){.file = path},
            "is one array, the model has %d inputs: give a .npz with a member for each",
            n_given(data->g));
    Array *r = &data->array[i];
    *r = (Array){.name = path};
    return file_read(data->fd, path, head, n, 0, d) &&
           npy_header(path, head, (size_t)n, size, &r->h, d) &&
           settle(r, data->g->in[i], data->held, d);
}

/* Returns the index of the input that a member holds; -1: none.  The member is called NAME.npy
 * by the input's name, or input_K.npy, or arr_K.npy, which is how NumPy names arrays without a
 * name.  K counts the inputs whose value is not fixed. */
static int input_of(const Graph *g, const char *member, Arena *a)
{
    int k = 0;
    for (int i = 0; i < g->n_in; i++) {
        if (!is_given(g->in[i]))
            continue;
        if (!strcmp(member, arena_printf(a, "%s.npy", g->in[i]->name)) ||
            !strcmp(member, arena_printf(a, "input_%d.npy", k)) ||
            !strcmp(member, arena_printf(a, "arr_%d.npy", k)))
            return i;
        k++;
    }
    return -1;
}

static const char *input_names(const Graph *g, Arena *a)
{
    const char *all = "";
    for (int i = 0; i < g->n_in; i++)
        if (is_given(g->in[i]))
            all = arena_printf(a, "%s%s%s", all, *all ? ", " : "", g->in[i]->name);
    return all;
}

static bool open_member(Data *data, Archive *z, const char *path, const char *member, Diag *d)
{
    Arena *a = data->held;
    int i = input_of(data->g, member, a);
    Loc loc = {.file = path};
    if (i < 0)
        return diag_error(d, loc, "member '%s' is not an input; these are %s", member,
                          input_names(data->g, a));
    Array *r = &data->array[i];
    if (r->bytes)
        return diag_error(d, loc, "member '%s' is input '%s', which another one is too", member,
                          data->g->in[i]->name);
    uint8_t *bytes;
    size_t n;
    *r = (Array){.name = arena_printf(a, "%s: member '%s'", path, member)};
    if (!archive_read(z, member, &bytes, &n))
        return false;
    r->bytes = bytes ? bytes : (const uint8_t *)"";
    return npy_header(r->name, r->bytes, n, (int64_t)n, &r->h, d) &&
           settle(r, data->g->in[i], a, d);
}

static bool open_npz(Data *data, const char *path, int64_t size, Diag *d)
{
    Arena *a = data->held;
    uint8_t *bytes = NEW(a, uint8_t, size + 1);
    const char **member;
    if (!file_read(data->fd, path, bytes, size, 0, d))
        return false;
    Archive *z = archive_bytes(a, path, bytes, (size_t)size, d);
    if (!z)
        return false;
    bool ok = true;
    memset(data->array, 0, (size_t)data->g->n_in * sizeof *data->array);
    for (int i = 0, n = archive_names(z, &member); i < n && ok; i++)
        ok = open_member(data, z, path, member[i], d);
    for (int i = 0; i < data->g->n_in && ok; i++)
        if (is_given(data->g->in[i]) && !data->array[i].bytes)
            ok = diag_error(d, (Loc){.file = path}, "has no member for input '%s'",
                            data->g->in[i]->name);
    return ok;
}

/* Counts the samples in the open file.  Reports an error if the inputs do not have equally many. */
static bool count_samples(const Data *data, const char *path, int64_t *n, Diag *d)
{
    const Value *first = NULL;
    *n = 0;
    for (int i = 0; i < data->g->n_in; i++) {
        const Value *v = data->g->in[i];
        if (is_given(v) && first && data->array[i].n != *n)
            return diag_error(d, (Loc){.file = path},
                              "has %lld samples of input '%s', but %lld of '%s'", (long long)*n,
                              first->name, (long long)data->array[i].n, v->name);
        if (is_given(v) && !first) {
            first = v;
            *n = data->array[i].n;
        }
    }
    return true;
}

static bool open_file(Data *data, int file, int64_t *n, Diag *d)
{
    const char *path = data->file[file].path;
    File *f;
    close_file(data);
    data->fd = file_open(data->files, path, &f, d);
    if (data->fd < 0)
        return false;
    if (!data->is_known)
        add_to_id(data, path, f);
    bool ok = ends_in(path, ".npz") ? open_npz(data, path, f->size, d)
                                    : open_npy(data, path, f->size, d);
    if (!ok || !count_samples(data, path, n, d))
        return false;
    data->open = file;
    return true;
}

/* -- folders ---------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return strcmp(((const DataFile *)a)->path, ((const DataFile *)b)->path);
}

static bool is_data(const char *name)
{
    return ends_in(name, ".npy") || ends_in(name, ".npz");
}

static void add_file(Data *data, const char *path)
{
    DataFile f = {.path = path};
    PUSH(data->arena, data->file, data->n_files, f);
}

/* Checks that a folder has no other files than samples.  Reports one error, which names the
 * first of n such files and their number. */
static bool only_samples(const char *other, int n, const Data *data, Diag *d)
{
    if (!n)
        return true;
    const char *rest = n > 1 ? arena_printf(data->arena, ", like %d other file%s of this folder",
                                            n - 1, n > 2 ? "s" : "")
                             : "";
    return diag_error(d, (Loc){.file = other},
                      "is neither .npy nor .npz%s; a folder of samples must hold nothing else",
                      rest);
}

static bool list_folder(Data *data, const char *path, Diag *d)
{
    DIR *dir = opendir(path);
    const char *other = NULL;
    int n_others = 0;
    if (!dir)
        return file_unreadable(path, d);
    const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
    for (struct dirent *e; (e = readdir(dir));) {
        const char *full = arena_printf(data->arena, "%s%s%s", path, slash, e->d_name);
        if (e->d_name[0] == '.')
            continue;
        if (is_data(e->d_name)) {
            add_file(data, full);
            continue;
        }
        other = other && strcmp(other, full) < 0 ? other : full;
        n_others++;
    }
    closedir(dir);
    if (data->n_files)
        qsort(data->file, (size_t)data->n_files, sizeof *data->file, by_path);
    return only_samples(other, n_others, data, d);
}

static bool list_files(Data *data, const char *path, Diag *d)
{
    struct stat st;
    if (!*path || stat(path, &st))
        return file_unreadable(path, d);
    if (S_ISDIR(st.st_mode))
        return list_folder(data, path, d);
    if (!is_data(path))
        return diag_error(d, (Loc){.file = path},
                          "samples are a .npy file, a .npz file, or a folder of such files");
    add_file(data, path);
    return true;
}

/* Counts the samples of every file.  Looks at all files, even if some are wrong. */
static bool survey(Data *data, const char *path, Diag *d)
{
    bool ok = list_files(data, path, d);
    for (int i = 0; i < data->n_files; i++) {
        int64_t n = 0;
        DataFile *f = &data->file[i];
        if (!open_file(data, i, &n, d)) {
            ok = false;
            continue;
        }
        if (n > INT32_MAX - data->n)
            return diag_error(d, (Loc){.file = f->path}, "more samples than can be counted");
        f->first = data->n;
        f->n = (int)n;
        data->n += (int)n;
    }
    data->is_known = true;
    return ok && (data->n || diag_error(d, (Loc){.file = path}, "contains no samples"));
}

Data *data_open(Files *files, const char *path, const Graph *g, Arena *a, Diag *d)
{
    Data *data = NEW(a, Data, 1);
    *data = (Data){.files = files, .g = g, .arena = a, .held = arena_new(), .open = -1, .fd = -1};
    data->array = NEW(a, Array, g->n_in + 1);
    if (!n_given(g))
        diag_error(d, (Loc){.file = path}, "the model has no inputs, so it needs no samples");
    else if (survey(data, path, d))
        return data;
    data_close(data);
    return NULL;
}

void data_close(Data *data)
{
    if (!data)
        return;
    close_file(data);
    arena_free(data->held);
    data->held = NULL;
}

/* -- samples ---------------------------------------------------------------------------------- */

static int file_of(const Data *data, int sample)
{
    int lo = 0, hi = data->n_files - 1;
    assert(sample >= 0 && sample < data->n);
    while (lo < hi) {
        int middle = (lo + hi + 1) / 2;
        if (data->file[middle].first <= sample)
            lo = middle;
        else
            hi = middle - 1;
    }
    return lo;
}

static bool is_finite(const EtcTensor *t, int64_t *at)
{
    int64_t n = dtype_is_float(t->dtype) ? etc_numel(t) : 0;
    for (*at = 0; *at < n; ++*at) {
        double v = tensor_number(t, *at);
        if (v - v != 0)
            return false;
    }
    return true;
}

static EtcTensor *read_array(Data *data, int input, int64_t k, const char *name, Arena *a, Diag *d)
{
    assert(k >= 0 && k < data->array[input].n);
    const Array *r = &data->array[input];
    const Value *v = data->g->in[input];
    EtcTensor *t = tensor_new(a, v->type.dtype, r->rank, r->dim);
    const int64_t from = r->h.start + k * r->sample_bytes;
    int64_t at;
    if (r->bytes && r->sample_bytes)
        memcpy(t->data, r->bytes + from, (size_t)r->sample_bytes);
    else if (!file_read(data->fd, r->name, t->data, r->sample_bytes, from, d))
        return NULL;
    if (!npy_check(t, r->name, d))
        return NULL;
    if (is_finite(t, &at))
        return t;
    diag_error(d, (Loc){.file = name}, "element %lld of input '%s' is %s", (long long)at, v->name,
               tensor_number(t, at) == tensor_number(t, at) ? "infinite" : "not a number (NaN)");
    return NULL;
}

/* Makes file f the open one.  Reports an error if its number of samples has changed. */
static bool turn_to(Data *data, int f, Diag *d)
{
    int64_t n = 0;
    if (data->open == f)
        return true;
    if (!open_file(data, f, &n, d))
        return false;
    data->open = n == data->file[f].n ? f : -1;
    return data->open == f || diag_io(d, (Loc){.file = data->file[f].path},
                                      "changed while its samples were read");
}

static bool read_sample(void *ctx, int i, Arena *a, EtcTensor **in, int64_t *symbol,
                        const char **name, Diag *d)
{
    Data *data = ctx;
    const DataFile *f = &data->file[file_of(data, i)];
    const int k = i - f->first;
    *name = f->n > 1 ? arena_printf(a, "%s, sample %d", f->path, k) : f->path;
    bool ok = turn_to(data, (int)(f - data->file), d);
    for (int j = 0; j < data->g->n_in && ok; j++) {
        const Value *v = data->g->in[j];
        in[j] = is_given(v) ? read_array(data, j, k, *name, a, d)
                            : tensor_new(a, v->type.dtype, 0, NULL);
        ok = in[j] != NULL;
    }
    if (ok)
        inputs_read_symbols(data->g, in, symbol);
    return ok;
}

uint64_t data_id(const Data *data)
{
    return data->id;
}

Samples data_samples(Data *data)
{
    return (Samples){.n = data->n, .read = read_sample, .ctx = data};
}
