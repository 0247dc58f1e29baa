/* weights.c -- from the name of a parameter to its bytes in the archive.
 *
 * A file holds a whole storage; a tensor is a strided window into it.  Tensors that name the same
 * file share its bytes (tied weights), and their states share a storage number.  Files are read
 * when a state is first used, so what the graph does not use is never touched. */
#include "compiler/import/internal.h"
#include <string.h>

typedef struct Storage {
    uint8_t *data;
    int64_t n;
    EtcDtype dtype;
    const char *fqn; /* of its first user */
    int number;      /* -1 before that one */
    bool is_read;    /* false: reported */
} Storage;

static const char *const folder[2] = {"weights", "constants"};
static const char *const data_folder[2] = {"data/weights/", "data/constants/"};

static bool read_config(Pt2 *p, bool in_constants)
{
    uint8_t *data;
    size_t n;
    JsonDoc *doc = &p->config_doc[in_constants];
    const char *member = arena_printf(p->tmp, "data/%s/%s_%s_config.json", folder[in_constants],
                                      p->method, folder[in_constants]);
    const char *old = arena_printf(p->tmp, "data/%s/%s.pt", folder[in_constants], p->method);
    if (!archive_has(p->archive, member) && archive_has(p->archive, old))
        return diag_unsupported(p->diag, p->loc,
                                "'%s' is a pickle, as torch 2.8 writes it: export "
                                "the model with torch 2.9 or later",
                                old);
    if (!archive_read(p->archive, member, &data, &n) ||
        !json_parse_here(p->tmp, arena_printf(p->tmp, "%s: %s", p->loc.file, member), data, n, p->diag,
                    doc))
        return false;
    const Json *config = json_get(doc->root, "config");
    if (!json_is_object(config))
        return diag_error(p->diag, (Loc){.file = doc->file}, "has no object 'config'");
    Table *entries = &p->config[in_constants];
    table_reserve(entries, (size_t)json_count(config));
    for (JsonIter it = json_iter(config); json_next(&it);)
        if (it.key)
            table_at_text(entries, it.key)->ptr = (void *)(uintptr_t)it.value;
    return true;
}

static const Json *find_entry(Pt2 *p, bool in_constants, const char *fqn)
{
    if (!p->config_read[in_constants]) {
        p->config_read[in_constants] = true;
        p->config_ok[in_constants] = read_config(p, in_constants);
    }
    if (!p->config_ok[in_constants])
        return NULL;
    const Json *entry = table_find_text(&p->config[in_constants], fqn);
    if (!entry)
        diag_error(p->diag, p->loc, "'%s' has no entry in data/%s/%s_%s_config.json", fqn,
                   folder[in_constants], p->method, folder[in_constants]);
    return entry;
}

/* A plain file name: no folder, no "..". */
static bool is_plain(const char *s)
{
    return *s && *s != '.' && strlen(s) < 256 && !strpbrk(s, "/\\:");
}

/* Bytes that lie at odd addresses, in an archive that was packed anew, move to the arena. */
static void align(Arena *a, Storage *s, size_t size)
{
    if ((uintptr_t)s->data % size == 0)
        return;
    uint8_t *copy = NEW(a, uint8_t, s->n);
    s->data = memcpy(copy, s->data, (size_t)s->n);
}

/* NULL: reported, now or at an earlier use. */
static Storage *read_storage(Pt2 *p, bool in_constants, const char *fqn, const char *path,
                             EtcDtype dtype)
{
    const char *name = arena_join(p->tmp, data_folder[in_constants], path);
    TableItem *known = table_at_text(&p->storages, name);
    Storage *s = known->ptr;
    if (!s) {
        size_t n;
        known->ptr = s = NEW(p->tmp, Storage, 1);
        *s = (Storage){.dtype = dtype, .fqn = arena_str(p->tmp, fqn, strlen(fqn)), .number = -1};
        s->is_read = archive_read(p->archive, name, &s->data, &n);
        s->n = (int64_t)n;
        if (s->is_read)
            align(p->program->arena, s, (size_t)dtype_bytes(dtype));
    }
    if (s->is_read && s->dtype != dtype) {
        diag_error(p->diag, p->loc, "'%s' (%s) and '%s' (%s) share the file '%s'", s->fqn,
                   dtype_name(s->dtype), fqn, dtype_name(dtype), name + strlen("data/"));
        return NULL;
    }
    return s->is_read ? s : NULL;
}

/* Whether the window lies in the storage. */
static bool check_window(Diag *d, Loc loc, const char *fqn, Type t, int64_t offset, int64_t bytes)
{
    int64_t size = dtype_bytes(t.dtype), last = offset, step, dense = 1, ignored;
    bool ok = offset >= 0 && mul_ok(offset, size, &ignored), is_empty = false;
    for (int i = t.rank - 1; ok && i >= 0; i--) {
        int64_t n = t.dim[i].value, stride = t.stride ? t.stride[i].value : dense;
        is_empty = is_empty || !n;
        ok = is_empty || (mul_ok(n - 1, stride, &step) && add_ok(last, step, &last) &&
                          mul_ok(dense, n, &dense));
    }
    if (ok && (is_empty ? offset <= bytes / size : last < bytes / size))
        return true;
    return diag_error(d, loc, "'%s' reaches beyond the %lld bytes of its file", fqn,
                      (long long)bytes);
}

static bool check_bools(Diag *d, Loc loc, const char *fqn, const Storage *s)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->data[i] > 1)
            return diag_error(d, loc, "'%s' is bool, but a byte of it is neither 0 nor 1", fqn);
    return true;
}

static bool check_meta(Pt2 *p, const char *fqn, const Json *meta, Type want, Type *t)
{
    if (!pt2_type(p, p->loc, fqn, meta, t))
        return false;
    if (!type_is_static(*t) ||
        (t->stride && !type_is_static((Type){.rank = t->rank, .dim = t->stride})))
        return diag_error(p->diag, p->loc, "'%s' has symbolic sizes in the config", fqn);
    return type_equal(*t, want) ||
           diag_error(p->diag, p->loc,
                      "'%s' has another dtype or other sizes in the config than in "
                      "the graph",
                      fqn);
}

State *weights_state(Pt2 *p, StateKind kind, bool in_constants, const char *name, const char *fqn,
                     Type type)
{
    const Json *entry = find_entry(p, in_constants, fqn), *meta = json_get(entry, "tensor_meta");
    const char *path = json_string(json_get(entry, "path_name"));
    bool is_pickle = false;
    Type t;
    Dim offset;
    if (!entry)
        return NULL;
    if ((json_bool(json_get(entry, "use_pickle"), &is_pickle) && is_pickle) || !meta) {
        diag_unsupported(p->diag, p->loc,
                         "'%s' is a pickled object or tensor subclass, which is "
                         "never loaded",
                         fqn);
        return NULL;
    }
    if (!path || !is_plain(path)) {
        diag_error(p->diag, p->loc, "'%s' has no plain file name as path_name", fqn);
        return NULL;
    }
    if (!check_meta(p, fqn, meta, type, &t) ||
        !pt2_dim(p, p->loc, json_get(meta, "storage_offset"), &offset))
        return NULL;
    Storage *s = read_storage(p, in_constants, fqn, path, t.dtype);
    if (!s || !check_window(p->diag, p->loc, fqn, t, offset.expr ? -1 : offset.value, s->n) ||
        (t.dtype == ETC_BOOL && !check_bools(p->diag, p->loc, fqn, s)))
        return NULL;
    Arena *a = p->program->arena;
    int64_t start = offset.value * dtype_bytes(t.dtype);
    State *state = program_state(p->program, kind, name, arena_str(a, fqn, strlen(fqn)), t,
                                 arena_str(a, path, strlen(path)), start, s->data + start,
                                 s->n - start);
    if (s->number < 0)
        s->number = state->storage;
    state->storage = s->number;
    return state;
}

/* -- texts ----------------------------------------------------------------------------------- */

/* A text names the file of a storage, not its folder: weights and constants never share a name. */
static Storage *text_storage(Archive *z, Table *known, const State *s, Loc loc, Arena *tmp, Diag *d)
{
    size_t n;
    TableItem *item = table_at_text(known, s->file);
    if (item->ptr)
        return item->ptr;
    Storage *made = item->ptr = NEW(tmp, Storage, 1);
    made->number = -1;
    for (int i = 0; i < 2; i++) {
        const char *member = arena_join(tmp, data_folder[i], s->file);
        if (!archive_has(z, member))
            continue;
        made->is_read = archive_read(z, member, &made->data, &n);
        made->n = (int64_t)n;
        return made;
    }
    diag_error(d, loc, "has no 'data/weights/%s', where the text says that \"%s\" lies", s->file,
               s->fqn);
    return made;
}

static bool take_window(Program *p, State *s, Storage *from, Loc loc, Diag *d)
{
    int64_t size = dtype_bytes(s->type.dtype);
    if (!type_is_static(s->type) || s->offset % size)
        return diag_error(d, loc, "\"%s\" has symbolic sizes or starts within an element", s->fqn);
    if (!check_window(d, loc, s->fqn, s->type, s->offset / size, from->n) ||
        (s->type.dtype == ETC_BOOL && !check_bools(d, loc, s->fqn, from)))
        return false;
    align(p->arena, from, 8);
    s->data = from->data + s->offset;
    s->n_bytes = from->n - s->offset;
    if (from->number < 0)
        from->number = s->storage;
    s->storage = from->number;
    return true;
}

bool weights_of_text(Program *p, Archive *z, Loc loc, Arena *tmp, Diag *d)
{
    Table known = {.arena = tmp};
    bool ok = true;
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        if (s->data || !strcmp(s->file, "-"))
            continue;
        if (!is_plain(s->file)) {
            ok = diag_error(d, loc, "'%s' is no plain file name", s->file);
            continue;
        }
        Storage *from = text_storage(z, &known, s, loc, tmp, d);
        ok = from->is_read && take_window(p, s, from, loc, d) && ok;
    }
    return ok;
}
