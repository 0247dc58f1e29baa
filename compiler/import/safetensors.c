/* safetensors.c -- weights by their names, from a .safetensors file.
 *
 * The file begins with the length of a JSON text, in eight bytes, little-endian.  Then comes the
 * text: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__":
 * {...}}.  The bytes of the tensors follow.  They are dense, and offsets count from the end of the
 * JSON text.  The file is not trusted.  Source: the format's description in
 * github.com/huggingface/safetensors. */
#include "compiler/import/internal.h"
#include <string.h>

enum { LENGTH = 8, MOST_TOLD = 8 };

typedef struct Tensors {
    Program *program;
    Arena *tmp;
    Diag *diag;
    Loc loc;
    JsonDoc doc;
    const Json *same; /* name to name: tensors that were left out, as others have their bytes */
    uint8_t *data;    /* the bytes after the JSON */
    int64_t n;
    Table entries, used; /* the Json of each name; the names that states use */
} Tensors;

typedef struct Entry {
    EtcDtype dtype;
    int rank;
    int64_t dim[MAX_RANK];
    uint8_t *data;
    int64_t n;
} Entry;

/* -- the file -------------------------------------------------------------------------------- */

static bool read_header(Tensors *t, uint8_t *data, size_t n)
{
    uint64_t length = 0;
    for (int i = 0; i < LENGTH && n >= LENGTH; i++)
        length |= (uint64_t)data[i] << 8 * i;
    if (n < LENGTH || length > n - LENGTH)
        return diag_error(t->diag, t->loc,
                          "is not a safetensors file: its header is longer than it");
    t->data = data + LENGTH + length;
    t->n = (int64_t)(n - LENGTH - length);
    if (!json_parse(t->tmp, t->loc.file, data + LENGTH, (size_t)length, t->diag, &t->doc))
        return false;
    t->same = json_get(t->doc.root, "__metadata__");
    for (JsonIter it = json_iter(t->doc.root); json_next(&it);)
        if (it.key && strcmp(it.key, "__metadata__") != 0)
            table_at_text(&t->entries, it.key)->ptr = (void *)(uintptr_t)it.value;
    return true;
}

static bool read_dtype(const char *name, EtcDtype *out)
{
    static const struct {
        const char *name;
        EtcDtype dtype;
    } row[] = {{"F32", ETC_F32},   {"F16", ETC_F16}, {"BF16", ETC_BF16}, {"F64", ETC_F64},
               {"I8", ETC_I8},     {"U8", ETC_U8},   {"I16", ETC_I16},   {"U16", ETC_U16},
               {"I32", ETC_I32},   {"U32", ETC_U32}, {"I64", ETC_I64},   {"U64", ETC_U64},
               {"BOOL", ETC_BOOL}, {"F8_E4M3", ETC_F8E4M3FN}, {"F8_E5M2", ETC_F8E5M2}};
    for (size_t i = 0; name && i < sizeof row / sizeof *row; i++)
        if (!strcmp(row[i].name, name)) {
            *out = row[i].dtype;
            return true;
        }
    return false;
}

static bool read_sizes(const Json *shape, Entry *e, int64_t *bytes)
{
    bool ok = json_is_array(shape) && json_count(shape) <= MAX_RANK;
    *bytes = dtype_bytes(e->dtype);
    for (JsonIter it = json_iter(shape); ok && json_next(&it); e->rank++)
        ok = json_int(it.value, &e->dim[e->rank]) && e->dim[e->rank] >= 0 &&
             mul_ok(*bytes, e->dim[e->rank], bytes);
    return ok;
}

static bool read_entry(const Tensors *t, const char *name, const Json *at, Entry *e)
{
    int64_t bytes, from[2] = {0, 0};
    const Json *offsets = json_get(at, "data_offsets");
    const char *dtype = json_string(json_get(at, "dtype"));
    int i = 0;
    *e = (Entry){0};
    if (!read_dtype(dtype, &e->dtype))
        return diag_error(t->diag, t->loc, "'%s' is of dtype '%s', which is not supported", name,
                          dtype ? dtype : "?");
    bool ok = read_sizes(json_get(at, "shape"), e, &bytes) && json_is_array(offsets) &&
              json_count(offsets) == 2;
    for (JsonIter it = json_iter(offsets); ok && json_next(&it);)
        ok = json_int(it.value, &from[i++]);
    if (!ok || from[0] < 0 || from[1] < from[0] || from[1] > t->n || from[1] - from[0] != bytes)
        return diag_error(t->diag, t->loc, "'%s' has no sizes and offsets that fit the file", name);
    e->data = t->data + from[0];
    e->n = bytes;
    return true;
}

/* -- states ---------------------------------------------------------------------------------- */

static bool same_sizes(const Entry *e, Type t)
{
    bool same = e->dtype == t.dtype && e->rank == t.rank;
    for (int i = 0; same && i < t.rank; i++)
        same = e->dim[i] == t.dim[i].value;
    return same;
}

static const char *entry_text(Arena *a, const Entry *e)
{
    const char *text = arena_printf(a, "%s[", dtype_name(e->dtype));
    for (int i = 0; i < e->rank; i++)
        text = arena_printf(a, "%s%s%lld", text, i ? "," : "", (long long)e->dim[i]);
    return arena_printf(a, "%s]", text);
}

static const char *state_text(Arena *a, const State *s)
{
    Entry e = {.dtype = s->type.dtype, .rank = s->type.rank};
    for (int i = 0; i < e.rank; i++)
        e.dim[i] = s->type.dim[i].value;
    return entry_text(a, &e);
}

static bool check_bools(const Tensors *t, const State *s, const Entry *e)
{
    for (int64_t i = 0; e->dtype == ETC_BOOL && i < e->n; i++)
        if (e->data[i] > 1)
            return diag_error(t->diag, t->loc, "'%s' is bool, but a byte of it is neither 0 nor 1",
                              s->fqn);
    return true;
}

static bool take(const Tensors *t, State *s, const Json *at)
{
    Entry e;
    if (!read_entry(t, s->fqn, at, &e))
        return false;
    if (!same_sizes(&e, s->type))
        return diag_error(t->diag, t->loc, "'%s' is %s, was %s", s->fqn, entry_text(t->tmp, &e),
                          state_text(t->tmp, s));
    if (s->type.stride)
        return diag_error(t->diag, t->loc,
                          "'%s' has strides in the model, which this format cannot tell: give the "
                          "new weights as a .pt2", s->fqn);
    if (!check_bools(t, s, &e))
        return false;
    s->data = e.data;
    if ((uintptr_t)e.data % (size_t)dtype_bytes(e.dtype)) {
        s->data = NEW(t->program->arena, uint8_t, e.n + 1);
        memcpy(s->data, e.data, (size_t)e.n);
    }
    s->n_bytes = e.n;
    return true;
}

/* Takes the bytes of another state that shares them.  Returns false if there is none. */
static bool take_shared(const Tensors *t, State *s, const Table *by_place)
{
    const char *place = arena_printf(t->tmp, "%s+%lld", s->file, (long long)s->offset);
    const State *same = table_find_text(by_place, place);
    if (!same || !type_equal(same->type, s->type))
        return diag_error(t->diag, t->loc, "'%s' (%s) is missing", s->fqn, state_text(t->tmp, s));
    s->data = same->data;
    s->n_bytes = same->n_bytes;
    return true;
}

/* Checks that states which shared bytes in the model have equal bytes in the file. */
static bool note_place(const Tensors *t, State *s, Table *by_place)
{
    const char *place = arena_printf(t->tmp, "%s+%lld", s->file, (long long)s->offset);
    TableItem *item = table_at_text(by_place, place);
    const State *first = item->ptr;
    item->ptr = first ? item->ptr : s;
    if (first && (first->n_bytes != s->n_bytes || memcmp(first->data, s->data, (size_t)s->n_bytes)))
        return diag_error(t->diag, t->loc, "'%s' and '%s' were the same weights, and differ now",
                          first->fqn, s->fqn);
    return true;
}

/* Finds the entry with a name, or with the name that the writer gives as the same.  NULL: there
 * is none. */
static const Json *find_entry(const Tensors *t, const char *name)
{
    const Json *at = table_find_text(&t->entries, name);
    const char *same = at ? NULL : json_string(json_get(t->same, name));
    return same ? table_find_text(&t->entries, same) : at;
}

static bool take_all(Tensors *t)
{
    const Program *p = t->program;
    Table by_place = {.arena = t->tmp};
    bool ok = true;
    for (int i = 0; i < p->n_states; i++) {
        const Json *at = p->state[i]->data ? NULL : find_entry(t, p->state[i]->fqn);
        table_at_text(&t->used, p->state[i]->fqn)->ptr = p->state[i];
        if (at && take(t, p->state[i], at))
            ok = note_place(t, p->state[i], &by_place) && ok;
        else
            ok = ok && !at;
    }
    for (int i = 0; i < p->n_states; i++)
        if (!p->state[i]->data && !find_entry(t, p->state[i]->fqn))
            ok = take_shared(t, p->state[i], &by_place) && ok;
    return ok;
}

/* Warns of tensors that the graph does not read.  A state_dict may have some: counters of batches,
 * or heads that were left out. */
static void warn_of_more(const Tensors *t)
{
    const char *names = "";
    int n = 0;
    for (JsonIter it = json_iter(t->doc.root); json_next(&it);) {
        if (!it.key || !strcmp(it.key, "__metadata__") || table_find_text(&t->used, it.key))
            continue;
        if (n++ < MOST_TOLD)
            names = arena_printf(t->tmp, "%s%s'%s'", names, *names ? ", " : "", it.key);
    }
    if (n)
        diag_warn(t->diag, t->loc, "contains %d tensors that the model does not read: %s%s", n,
                  names, n > MOST_TOLD ? ", ..." : "");
}

bool import_safetensors_bytes(Program *p, const char *name, uint8_t *data, size_t n, Diag *d)
{
    Arena *tmp = arena_new();
    Tensors t = {.program = p, .tmp = tmp, .diag = d, .loc = {.file = name},
                 .entries = {.arena = tmp}, .used = {.arena = tmp}};
    bool ok = read_header(&t, data, n) && take_all(&t);
    if (ok)
        warn_of_more(&t);
    arena_free(tmp);
    return ok;
}

bool import_safetensors(Program *p, const char *path, Files *files, Diag *d)
{
    uint8_t *data;
    size_t n;
    return file_load(files, p->arena, path, &data, &n, d) &&
           import_safetensors_bytes(p, path, data, n, d);
}
