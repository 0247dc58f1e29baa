/* pt2.c -- imports files of torch.export.save as a Program: formats, methods, symbols. */
#define _GNU_SOURCE
#include "compiler/import/internal.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCHEMA_MAJOR = 8 };
static const char old_program[] = "serialized_exported_program.json"; /* until torch 2.7 */

/* -- symbols ----------------------------------------------------------------------------- */

/* Reads an end of a range.  It has no bound if it is null, or one of the large numbers that
 * torch writes instead. */
static bool read_bound(Pt2 *p, const Json *range, const char *key, int64_t unbounded, int64_t *out)
{
    const Json *v = json_get(range, key);
    *out = unbounded;
    if (v && !json_int(v, out))
        return pt2_malformed(p, range, key, "an integer of 64 bits");
    if (*out >= INT64_MAX - 1)
        *out = INT64_MAX;
    return true;
}

/* Returns whether the key of a range is a symbol; other keys are expressions, "2*s52". */
static bool is_symbol(const char *key)
{
    return key && pt2_is_name(key) && !isdigit((unsigned char)*key);
}

static bool read_range(Pt2 *p, const JsonIter *it, int64_t *lo, int64_t *hi)
{
    if (!read_bound(p, it->value, "min_val", INT64_MIN, lo) ||
        !read_bound(p, it->value, "max_val", INT64_MAX, hi))
        return false;
    return *lo <= *hi || diag_error(p->diag, p->loc, "the range of '%s' is empty: %lld..%lld",
                                    it->key ? it->key : "", (long long)*lo, (long long)*hi);
}

/* Returns whether a symbol is unbacked: "u0" or, for a float, "zuf0".  No input defines it. */
static bool is_unbacked(const char *name)
{
    return (name[0] == 'u' && isdigit((unsigned char)name[1])) || !strncmp(name, "zuf", 3);
}

/* Marks the sizes that an expression names. */
static void mark_named(const Json *expression, void *pt2)
{
    const Pt2 *p = pt2;
    const char *s = json_string(expression);
    for (size_t n; s && *s; s += n ? n : 1) {
        for (n = 0; isalnum((unsigned char)s[n]) || s[n] == '_';)
            n++;
        SizeName *size = n ? table_find(&p->symbols, s, n) : NULL;
        if (size)
            size->is_named = true;
    }
}

static bool read_symbols(Pt2 *p)
{
    const Json *ranges = json_get(p->doc.root, "range_constraints");
    bool ok = true, any = false;
    int64_t lo, hi;
    Dim size;
    for (JsonIter it = json_iter(ranges); json_next(&it);) {
        if (!read_range(p, &it, &lo, &hi)) {
            ok = false;
            continue;
        }
        if (!is_symbol(it.key))
            continue;
        SizeName *n = NEW(p->tmp, SizeName, 1);
        *n = (SizeName){.text = it.key, .lo = lo, .hi = hi};
        table_at_text(&p->symbols, it.key)->ptr = n;
        any = true;
    }
    /* The files also have ranges of sizes that torch.export has replaced or that a loop carries.
     * Such a size counts only if an expression names it. */
    if (any)
        json_find(json_get(p->doc.root, "graph_module"), "expr_str", mark_named, p);
    for (JsonIter it = json_iter(ranges); json_next(&it);) {
        SizeName *n = it.key ? table_find_text(&p->symbols, it.key) : NULL;
        if (n && n->is_named && !is_unbacked(it.key))
            pt2_symbol(p, it.key, &size);
    }
    for (JsonIter it = json_iter(ranges); json_next(&it) && ok;)
        if (it.key && !is_symbol(it.key) && read_range(p, &it, &lo, &hi))
            pt2_range_guard(p, it.key, lo, hi);
    return ok;
}

/* -- methods ----------------------------------------------------------------------------- */

/* Torch 2.5 wrote major version 7, in which sizes are printed differently. */
static bool check_schema(Pt2 *p)
{
    const Json *version = json_get(p->doc.root, "schema_version");
    int64_t minor;
    if (!json_int(json_get(version, "major"), &p->schema) ||
        !json_int(json_get(version, "minor"), &minor))
        return diag_error(p->diag, (Loc){.file = p->doc.file},
                          "has no schema_version: not a program of "
                          "torch.export");
    return p->schema == SCHEMA_MAJOR ||
           (p->schema == SCHEMA_MAJOR - 1 && archive_has(p->archive, old_program)) ||
           diag_unsupported(p->diag, (Loc){.file = p->doc.file},
                            "schema version %lld.%lld, expected %d: export the model with %s",
                            (long long)p->schema, (long long)minor, SCHEMA_MAJOR,
                            p->schema > SCHEMA_MAJOR ? "torch 2.5 to 2.13" : "torch 2.5 or later");
}

static bool read_method(Pt2 *p, const char *method, const char *file, uint8_t *data, size_t n)
{
    p->method = method;
    p->symbols = p->config[0] = p->config[1] = (Table){.arena = p->tmp};
    memset(p->pickled, 0, sizeof p->pickled);
    memset(p->config_read, 0, sizeof p->config_read);
    if (!pt2_is_name(method))
        return diag_error(p->diag, p->loc, "'%s' is not a name for a method", method);
    return json_parse_here(p->tmp, file, data, n, archive_has(p->archive, old_program), p->diag,
                           &p->doc) &&
           check_schema(p) && read_symbols(p) && pt2_method(p);
}

static bool read_member(Pt2 *p, const char *method, const char *member)
{
    uint8_t *data;
    size_t n;
    return archive_read(p->archive, member, &data, &n) &&
           read_method(p, method, arena_printf(p->tmp, "%s: %s", p->loc.file, member), data, n);
}

static bool read_methods(Pt2 *p)
{
    const char **name;
    if (archive_has(p->archive, old_program))
        return read_member(p, "model", old_program);
    int n = archive_models(p->archive, &name);
    bool ok = n > 0;
    if (!n && archive_is_folder(p->archive))
        diag_error(p->diag, p->loc,
                   "is a folder without models/NAME.json: give a .pt2, or the folder into which one "
                   "was unpacked");
    else if (!n)
        diag_error(p->diag, p->loc,
                   "contains no models/NAME.json: not written by torch.export.save "
                   "of torch 2.5 or later");
    if (p->as && n > 1)
        return diag_error(p->diag, p->loc, "contains %d methods, so it cannot be method '%s'", n,
                          p->as);
    for (int i = 0; i < n; i++)
        ok = read_member(p, name[i], arena_printf(p->tmp, "models/%s.json", name[i])) && ok;
    return ok;
}

/* -- format ------------------------------------------------------------------------------ */

/* Checks that the archive is a .pt2 of a supported version.  A folder may lack the files that say
 * so, because somebody may have unpacked only the models. */
static bool check_format(Pt2 *p)
{
    static const struct {
        const char *member, *what;
    } other[] = {
        {"data.pkl", "a pickle of torch.save or TorchScript, which is never loaded"},
        {"constants.pkl", "a TorchScript archive"},
    };
    if (archive_has(p->archive, old_program))
        return true;
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (archive_has(p->archive, other[i].member))
            return diag_error(p->diag, p->loc, "is %s: export the model with torch 2.5 or later",
                              other[i].what);
    bool is_folder = archive_is_folder(p->archive);
    return pt2_check_text(p, p->archive, "archive_format", "pt2", is_folder) &&
           pt2_check_text(p, p->archive, "archive_version", "0", is_folder) &&
           pt2_check_text(p, p->archive, "byteorder", "little", true);
}

/* -- interface --------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    size_t n = strlen(path);
    while (n && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    return path + n;
}

/* Notes the names that other files have brought, which they keep. */
static void take_names(Pt2 *p, const Program *into)
{
    for (int i = 0; i < into->n_states; i++)
        table_at_text(&p->taken, into->state[i]->name)->ptr = into->state[i];
    for (int i = 0; i < into->n_syms; i++)
        table_at_text(&p->taken, into->sym[i]->name)->ptr = into->sym[i];
}

static Pt2 reader(Arena *a, const char *path, Archive *archive, const ImportOptions *o, Diag *d)
{
    const char *name = base_name(path);
    name = arena_str(a, name, strcspn(name, "/"));
    bool is_more = o && o->into;
    Pt2 p = {.program = is_more ? o->into : program_new(a, name),
             .tmp = arena_within(a),
             .diag = d,
             .archive = archive,
             .loc = {.file = arena_str(a, path, strlen(path))},
             .as = o ? o->as : NULL,
             .dim = o ? o->dim : NULL,
             .n_dims = o ? o->n_dims : 0};
    p.taken = p.storages = p.missing_of = (Table){.arena = p.tmp};
    if (is_more)
        take_names(&p, o->into);
    p.program->stage = STAGE_ATEN;
    p.program->custom = o ? o->custom : NULL;
    return p;
}

static Program *done(Pt2 *p, bool ok)
{
    archive_close(p->archive);
    arena_free(p->tmp);
    return ok ? p->program : NULL;
}

static Program *read_archive(Arena *a, const char *path, Archive *archive, const ImportOptions *o,
                             Diag *d)
{
    if (!archive)
        return NULL;
    Pt2 p = reader(a, path, archive, o, d);
    return done(&p, check_format(&p) && read_methods(&p));
}

static Files *files_of(Arena *a, const ImportOptions *o)
{
    return o && o->files ? o->files : files_new(a);
}

static Archive *folder(Arena *a, const char *path, const ImportOptions *o, Diag *d)
{
    return archive_folder(files_of(a, o), a, path, o ? o->weights_dir : NULL, d);
}

/* The parts of a path ROOT/models/NAME.json, or of a path NAME.json with a folder "data" beside it.
 */
typedef struct JsonPlace {
    const char *root, *member, *method;
} JsonPlace;

static JsonPlace json_place(Arena *a, const char *path)
{
    const char *base = base_name(path), *dot = strrchr(base, '.');
    const char *dir = arena_str(a, path, (size_t)(base - path)), *models = base_name(dir);
    bool in_models = !strcmp(models, "models/");
    const char *root = arena_str(a, path, (size_t)(in_models ? models - dir : base - path));
    return (JsonPlace){.root = *root ? root : ".",
                       .member = arena_printf(a, "%s%s", in_models ? models : "", base),
                       .method = arena_str(a, base, dot ? (size_t)(dot - base) : strlen(base))};
}

static Program *read_json(Arena *a, const char *path, const ImportOptions *o, Diag *d)
{
    JsonPlace at = json_place(a, path);
    Pt2 p = reader(a, path, folder(a, at.root, o, d), o, d);
    uint8_t *data;
    size_t n;
    const char *name = arena_printf(p.tmp, "%s: %s", p.loc.file, at.member);
    return done(&p, check_format(&p) && file_load(files_of(a, o), p.tmp, path, &data, &n, d) &&
                        read_method(&p, at.method, name, data, n));
}

Program *import_pt2(Arena *a, const char *path, const ImportOptions *o, Diag *d)
{
    switch (o && o->kind ? o->kind : import_kind(files_of(a, o), path, d)) {
    case IMPORT_UNKNOWN:
        return NULL;
    case IMPORT_PT2:
        return read_archive(a, path, archive_open(files_of(a, o), a, path, d), o, d);
    case IMPORT_FOLDER:
        return read_archive(a, path, folder(a, folder_of_archive(a, path), o, d), o, d);
    case IMPORT_JSON:
        return read_json(a, path, o, d);
    default:
        diag_error(d, (Loc){.file = path}, "is not a model that torch.export.save wrote");
        return NULL;
    }
}

Program *import_pt2_bytes(Arena *a, const char *name, uint8_t *data, size_t n, Diag *d)
{
    return read_archive(a, name, archive_bytes(a, name, data, n, d), NULL, d);
}

Program *import_json_bytes(Arena *a, const char *name, const uint8_t *data, size_t n,
                           const char *dir, Diag *d)
{
    Pt2 p = reader(a, name, archive_folder(files_new(a), a, dir, NULL, d), NULL, d);
    uint8_t *copy = arena_bytes(p.tmp, n + JSON_ROOM);
    return done(&p, read_method(&p, "model", name, memcpy(copy, data, n), n));
}

static Archive *archive_of(Arena *a, const char *path, const ImportOptions *o, Diag *d)
{
    switch (import_kind(files_of(a, o), path, d)) {
    case IMPORT_UNKNOWN:
        return NULL;
    case IMPORT_PT2:
        return archive_open(files_of(a, o), a, path, d);
    case IMPORT_FOLDER:
        return folder(a, folder_of_archive(a, path), o, d);
    case IMPORT_JSON:
        return folder(a, json_place(a, path).root, o, d);
    default:
        diag_error(d, (Loc){.file = path},
                   "is not an archive with weights that torch.export.save wrote");
        return NULL;
    }
}

bool import_weights(Program *p, const char *path, const ImportOptions *o, Diag *d)
{
    Arena *tmp = arena_new();
    Archive *z = archive_of(p->arena, path, o, d);
    bool ok = z && weights_of_text(p, z, (Loc){.file = path}, tmp, d);
    archive_close(z);
    arena_free(tmp);
    return ok;
}

/* -- kinds ------------------------------------------------------------------------------- */

/* Returns whether a FlatBuffers file has an identifier of these two letters and a number. */
static bool is_of(const char *s, const char *letters)
{
    return !memcmp(s + 4, letters, 2) && isdigit((unsigned char)s[6]);
}

static ImportKind kind_of_bytes(const char *s, size_t n)
{
    if (n >= 4 && !memcmp(s, "PK\3\4", 4))
        return IMPORT_PT2;
    if (n >= 8 && is_of(s, "ET"))
        return IMPORT_PTE;
    size_t i = strspn(s, " \t\r\n");
    if (s[i] == '{')
        return IMPORT_JSON;
    return s[i] == ';' || !strncmp(s + i, "program ", 8) ? IMPORT_ETIR : IMPORT_UNKNOWN;
}

static ImportKind kind_of_name(const char *path)
{
    static const struct {
        const char *suffix;
        ImportKind kind;
    } row[] = {{".pt2", IMPORT_PT2},
               {".json", IMPORT_JSON},
               {".etir", IMPORT_ETIR},
               {".pte", IMPORT_PTE},
               {".onnx", IMPORT_ONNX}};
    const char *dot = strrchr(base_name(path), '.');
    for (size_t i = 0; dot && i < sizeof row / sizeof *row; i++)
        if (!strcmp(dot, row[i].suffix))
            return row[i].kind;
    return IMPORT_UNKNOWN;
}

ImportKind import_kind(Files *files, const char *path, Diag *d)
{
    char start[257] = "";
    struct stat s;
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
        return IMPORT_FOLDER;
    int fd = file_open(files, path, &(File *){0}, d);
    if (fd < 0)
        return IMPORT_UNKNOWN;
    ssize_t n = read(fd, start, sizeof start - 1);
    close(fd);
    ImportKind kind = kind_of_bytes(start, n > 0 ? (size_t)n : 0);
    if (kind == IMPORT_UNKNOWN)
        kind = kind_of_name(path);
    if (kind == IMPORT_UNKNOWN)
        diag_error(d, (Loc){.file = path},
                   is_of(start, "BP") ? "is a bundle, for ExecuTorch's tools: without --bundle, "
                                        "etc compile writes a .pte that etc runs"
                   : is_of(start, "ED") || is_of(start + 4, "ED") /* with its size in front */
                       ? "is a profile: etc inspect --etdump reads it"
                       : "is not a .pt2, an unpacked .pt2, a model.json, .onnx, .etir or .pte");
    return kind;
}
