/* weights.c -- finds the bytes of a parameter in the archive by its name.
 *
 * The config that torch 2.9 and later write is JSON, and each storage a member of the archive.  Before,
 * both were a file of torch.save: an archive within the archive, whose config is a pickle.
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
    const char *fqn; /* the name of the first state that uses it */
    int number;      /* -1 before it is used */
    bool is_read;    /* false: an error was reported */
} Storage;

/* The place of a tensor, as the config says it. */
typedef struct Entry {
    Archive *archive;
    const char *member; /* of the archive: a storage's bytes */
    const char *file;   /* the name of that member in textual IR */
    const char *key;    /* the same name, unique among weights and constants */
    Type type;
    int64_t offset;    /* elements; -1: it is symbolic */
    int64_t n_storage; /* elements of the whole storage; -1: not said */
} Entry;

static const char *const folder[2] = {"weights", "constants"};
static const char *const data_folder[2] = {"data/weights/", "data/constants/"};

/* Returns the member in which torch 2.5 to 2.7 wrote the tensors, where it is there, else the one
 * of torch 2.8. */
static const char *pickled_member(Archive *z, bool in_constants, const char *method, Arena *tmp)
{
    static const char *const old[2] = {"serialized_state_dict.pt", "serialized_constants.pt"};
    return archive_has(z, old[in_constants])
               ? old[in_constants]
               : arena_printf(tmp, "data/%s/%s.pt", folder[in_constants], method);
}

static bool read_pickle(Pt2 *p, bool in_constants, const char *member)
{
    uint8_t *data;
    size_t n;
    Archive *z = p->pickled[in_constants] = archive_inside(p->archive, member);
    Loc loc = {.file = arena_printf(p->tmp, "%s: %s", p->loc.file, member)};
    return z && pt2_check_text(p, z, "byteorder", "little", true) &&
           archive_read(z, "data.pkl", &data, &n) &&
           pickle_tensors(p->tmp, loc, data, n, p->diag, &p->config[in_constants]);
}

static bool read_config(Pt2 *p, bool in_constants)
{
    uint8_t *data;
    size_t n;
    JsonDoc *doc = &p->config_doc[in_constants];
    const char *member = arena_printf(p->tmp, "data/%s/%s_%s_config.json", folder[in_constants],
                                      p->method, folder[in_constants]);
    const char *old = pickled_member(p->archive, in_constants, p->method, p->tmp);
    if (!archive_has(p->archive, member) && archive_has(p->archive, old))
        return read_pickle(p, in_constants, old);
    if (!archive_read(p->archive, member, &data, &n) ||
        !json_parse_here(p->tmp, arena_printf(p->tmp, "%s: %s", p->loc.file, member), data, n, false,
                    p->diag, doc))
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

/* Returns a Json or PickledTensor, or NULL after an error was reported. */
static const void *find_entry(Pt2 *p, bool in_constants, const char *fqn)
{
    if (!p->config_read[in_constants]) {
        p->config_read[in_constants] = true;
        p->config_ok[in_constants] = read_config(p, in_constants);
    }
    if (!p->config_ok[in_constants])
        return NULL;
    const void *entry = table_find_text(&p->config[in_constants], fqn);
    if (!entry && p->pickled[in_constants])
        diag_error(p->diag, p->loc, "'%s' is not in %s", fqn,
                   pickled_member(p->archive, in_constants, p->method, p->tmp));
    else if (!entry)
        diag_error(p->diag, p->loc, "'%s' has no entry in data/%s/%s_%s_config.json", fqn,
                   folder[in_constants], p->method, folder[in_constants]);
    return entry;
}

/* Returns whether s is the plain name of a file: without a folder, and not "..". */
static bool is_plain(const char *s)
{
    return *s && *s != '.' && strlen(s) < 256 && !strpbrk(s, "/\\:");
}

/* Copies bytes to the arena if they are not aligned to an element, as in an archive that was packed
 * again. */
static void align(Arena *a, Storage *s, size_t size)
{
    if ((uintptr_t)s->data % size == 0)
        return;
    uint8_t *copy = NEW(a, uint8_t, s->n);
    s->data = memcpy(copy, s->data, (size_t)s->n);
}

static Storage *read_bytes(Pt2 *p, const char *fqn, const Entry *e)
{
    size_t n;
    Storage *s = NEW(p->tmp, Storage, 1);
    *s = (Storage){.dtype = e->type.dtype, .fqn = arena_str(p->tmp, fqn, strlen(fqn)), .number = -1};
    s->is_read = archive_read(e->archive, e->member, &s->data, &n);
    s->n = (int64_t)n;
    if (s->is_read)
        align(p->program->arena, s, (size_t)dtype_bytes(s->dtype));
    return s;
}

static bool check_storage(Pt2 *p, const char *fqn, const Entry *e, const Storage *s)
{
    EtcDtype dtype = e->type.dtype;
    int64_t size = dtype_bytes(dtype);
    if (s->dtype != dtype)
        return diag_error(p->diag, p->loc, "'%s' (%s) and '%s' (%s) share the file '%s'", s->fqn,
                          dtype_name(s->dtype), fqn, dtype_name(dtype), e->key);
    if (e->n_storage >= 0 && (s->n % size || s->n / size != e->n_storage))
        return diag_error(p->diag, p->loc, "the storage of '%s' has %lld elements, but %lld bytes",
                          fqn, (long long)e->n_storage, (long long)s->n);
    return true;
}

/* Returns NULL after an error, which was reported now or when the storage was first used. */
static Storage *read_storage(Pt2 *p, const char *fqn, const Entry *e)
{
    TableItem *known = table_at_text(&p->storages, e->key);
    Storage *s = known->ptr;
    if (!s)
        known->ptr = s = read_bytes(p, fqn, e);
    return s->is_read && check_storage(p, fqn, e, s) ? s : NULL;
}

/* Checks that a tensor lies within its storage. */
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

static bool refuse_object(Pt2 *p, const char *fqn)
{
    return diag_unsupported(p->diag, p->loc,
                            "'%s' is a pickled object or tensor subclass, which is "
                            "never loaded",
                            fqn);
}

static bool read_entry(Pt2 *p, bool in_constants, const char *fqn, const Json *entry, Entry *e)
{
    const Json *meta = json_get(entry, "tensor_meta");
    bool is_pickle = false;
    Dim offset;
    if ((json_bool(json_get(entry, "use_pickle"), &is_pickle) && is_pickle) || !meta)
        return refuse_object(p, fqn);
    e->file = json_string(json_get(entry, "path_name"));
    if (!e->file || !is_plain(e->file))
        return diag_error(p->diag, p->loc, "'%s' has no plain file name as path_name", fqn);
    if (!pt2_type(p, p->loc, fqn, meta, &e->type) ||
        !pt2_dim(p, p->loc, json_get(meta, "storage_offset"), &offset))
        return false;
    const Type *t = &e->type;
    if (!type_is_static(*t) ||
        (t->stride && !type_is_static((Type){.rank = t->rank, .dim = t->stride})))
        return diag_error(p->diag, p->loc, "'%s' has symbolic sizes in the config", fqn);
    e->offset = offset.expr ? -1 : offset.value;
    e->n_storage = -1;
    e->archive = p->archive;
    e->member = arena_join(p->tmp, data_folder[in_constants], e->file);
    e->key = e->member + strlen("data/");
    return true;
}

/* Reads a tensor of a pickle.  Keys are unique only within one pickle, so the name of the file also
 * contains the name of the pickle. */
static bool read_pickled(Pt2 *p, bool in_constants, const char *fqn, const PickledTensor *t,
                         Entry *e)
{
    if (!t->key)
        return refuse_object(p, fqn);
    if (!is_plain(t->key))
        return diag_error(p->diag, p->loc, "'%s' has no plain file name as its storage's key", fqn);
    if (!pt2_strided(p, p->loc, fqn, t->dtype, t->rank, t->size, t->stride, &e->type))
        return false;
    e->offset = t->offset;
    e->n_storage = t->n_storage;
    e->archive = p->pickled[in_constants];
    e->member = arena_join(p->tmp, "data/", t->key);
    e->key = e->file = arena_printf(p->tmp, "%s.%s.%s", folder[in_constants], p->method, t->key);
    return true;
}

static State *make_state(Pt2 *p, StateKind kind, const char *name, const char *fqn, const Entry *e,
                         Storage *s)
{
    Arena *a = p->program->arena;
    int64_t start = e->offset * dtype_bytes(e->type.dtype);
    State *state = program_state(p->program, kind, name, arena_str(a, fqn, strlen(fqn)), e->type,
                                 arena_str(a, e->file, strlen(e->file)), start, s->data + start,
                                 s->n - start);
    assert(s->is_read && start <= s->n);
    if (s->number < 0)
        s->number = state->storage;
    state->storage = s->number;
    return state;
}

State *weights_state(Pt2 *p, StateKind kind, bool in_constants, const char *name, const char *fqn,
                     Type type)
{
    const void *entry = find_entry(p, in_constants, fqn);
    Entry e;
    if (!entry || !(p->pickled[in_constants] ? read_pickled(p, in_constants, fqn, entry, &e)
                                             : read_entry(p, in_constants, fqn, entry, &e)))
        return NULL;
    if (!type_equal(e.type, type)) {
        diag_error(p->diag, p->loc,
                   "'%s' has another dtype or other sizes in the config than in "
                   "the graph",
                   fqn);
        return NULL;
    }
    Storage *s = read_storage(p, fqn, &e);
    if (!s || !check_window(p->diag, p->loc, fqn, e.type, e.offset, s->n) ||
        (e.type.dtype == ETC_BOOL && !check_bools(p->diag, p->loc, fqn, s)))
        return NULL;
    State *state = make_state(p, kind, name, fqn, &e, s);
    state->is_fixed = in_constants;
    return state;
}

/* -- texts ----------------------------------------------------------------------------------- */

/* Reads "weights.forward.3" as the file data/3 in the archive of a pickle.  Returns NULL if the
 * name is not such a name.  *z is NULL if there is an error, which was reported. */
static const char *pickled_file(Archive **z, const char *file, Arena *tmp)
{
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(folder[i]), n_method;
        if (strncmp(file, folder[i], n) != 0 || file[n] != '.')
            continue;
        const char *method = file + n + 1;
        n_method = strcspn(method, ".");
        const char *old = pickled_member(*z, i, arena_str(tmp, method, n_method), tmp);
        if (!method[n_method] || !archive_has(*z, old))
            continue;
        *z = archive_inside(*z, old);
        return arena_join(tmp, "data/", method + n_method + 1);
    }
    return NULL;
}

/* A text gives the name of a storage's file without its folder, because a weight and a constant
 * never have the same name. */
static Storage *text_storage(Archive *z, Table *known, const State *s, Loc loc, Arena *tmp, Diag *d)
{
    size_t n = 0;
    TableItem *item = table_at_text(known, s->file);
    if (item->ptr)
        return item->ptr;
    Storage *made = item->ptr = NEW(tmp, Storage, 1);
    made->number = -1;
    Archive *from = z;
    const char *member = pickled_file(&from, s->file, tmp);
    for (int i = 0; i < 2 && !member; i++) {
        const char *plain = arena_join(tmp, data_folder[i], s->file);
        member = archive_has(z, plain) ? plain : NULL;
    }
    if (member) {
        made->is_read = from && archive_read(from, member, &made->data, &n);
        made->n = (int64_t)n;
        return made;
    }
    diag_error(d, loc, "has no 'data/weights/%s', where the text places \"%s\"", s->file,
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
            ok = diag_error(d, loc, "'%s' is not a plain file name", s->file);
            continue;
        }
        Storage *from = text_storage(z, &known, s, loc, tmp, d);
        ok = from->is_read && take_window(p, s, from, loc, d) && ok;
    }
    return ok;
}
