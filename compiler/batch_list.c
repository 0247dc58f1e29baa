/* batch_list.c -- the list of `etc batch`: which models are compiled, and how.
 *
 * Settings come in layers, and a later layer replaces an earlier one: the defaults of the files,
 * then the settings of the entries that an entry extends, then its own.  Each entry is settled once
 * and has a bounded number of flags, so the cost of entries that extend each other grows only with
 * their text.  A cycle is an error, and the message names the cycle.
 */
#include "compiler/batch.h"
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 64, MAX_CHAIN = 64, MAX_FLAGS = 64 };

enum { MODEL, COMMAND, OUTPUT, MEMORY, N_VALUES };
enum { NAME = N_VALUES, EXTENDS, FLAGS, GATES, N_ENTRY_KEYS };

static const char *const entry_key[N_ENTRY_KEYS] = {"model", "command", "output", "memory",
                                                    "name",  "extends", "flags",  "gates"};

typedef struct Settings {
    const Yaml *value[N_VALUES];
    const Yaml *flag[MAX_FLAGS]; /* the flags' values; their keys are the flags' names */
    int n_flags;
} Settings;

typedef enum Mark { NOT_YET, IN_WORK, SETTLED, FAILED } Mark;

typedef struct Item {
    const char *name;
    Loc loc;
    const Yaml **layer; /* the entry in each file; a later one replaces an earlier one */
    int n_layers;
    Mark mark;
    bool is_extended;
    Settings settings;
} Item;

typedef struct List {
    Files *files;
    Arena *arena;
    Diag *diag;
    Item **item;
    int n, n_files;
    Table by_name, by_path; /* the entries; the files that were read */
    const Yaml **defaults;
    int n_defaults;
    const char *open[MAX_CHAIN]; /* the chain of files or entries, each of which extends the next */
    int n_open;
} List;

static const char *chain(const List *l, const char *last)
{
    const char *s = "";
    for (int i = 0; i < l->n_open; i++)
        s = arena_printf(l->arena, "%s'%s' -> ", s, l->open[i]);
    return arena_printf(l->arena, "%s'%s'", s, last);
}

static bool is_word(const Yaml *y, const char *what, List *l)
{
    return yaml_is(y, YAML_SCALAR, what, l->arena, l->diag) &&
           (*y->text || diag_error(l->diag, yaml_loc(y), "'%s' is empty", y->key ? y->key : what));
}

/* Calls `visit` for a word, or for each word of a list. */
static bool each_word(const Yaml *y, List *l, bool (*visit)(List *l, const Yaml *y))
{
    bool ok = true;
    if (y->kind != YAML_LIST)
        return is_word(y, "a name or a list of names", l) && visit(l, y);
    for (const Yaml *k = y->first; k; k = k->next)
        ok = is_word(k, "a name", l) && visit(l, k) && ok;
    return ok;
}

/* -- entries of a file ------------------------------------------------------------------------ */

/* Returns the name of a model's entry: "model" for "dir/model.pt2". */
static const char *name_of_model(const char *path, Arena *a)
{
    const char *slash = strrchr(path, '/'), *base = slash && slash[1] ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return arena_str(a, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static bool same_file(const Loc *a, const Yaml *b)
{
    return !strcmp(a->file, b->file);
}

/* Adds y as a layer of the entry `name`.  A further file may add to an entry; a second entry of
 * that name in the same file is an error. */
static bool add_item(List *l, const char *name, const Yaml *y)
{
    Item *is = table_find_text(&l->by_name, name);
    Loc loc = y->key ? yaml_key_loc(y) : yaml_loc(y);
    if (is && same_file(&is->loc, y))
        return diag_error(l->diag, loc,
                          "a second entry is called '%s', the first is in line %d; give it a "
                          "'name'", name, is->loc.line);
    if (!is) {
        is = NEW(l->arena, Item, 1);
        is->name = name;
        table_at_text(&l->by_name, name)->ptr = is;
        PUSH(l->arena, l->item, l->n, is);
    }
    is->loc = loc;
    PUSH(l->arena, is->layer, is->n_layers, y);
    return true;
}

/* Adds an item of a list.  Its name is given, or else it is the name of its model. */
static bool add_listed(List *l, const Yaml *y)
{
    const Yaml *name = NULL, *model = NULL;
    if (y->kind == YAML_SCALAR)
        return is_word(y, "a model", l) && add_item(l, name_of_model(y->text, l->arena), y);
    if (!yaml_is(y, YAML_MAP, "a model, or a map of keys and values", l->arena, l->diag))
        return false;
    for (const Yaml *k = y->first; k; k = k->next) {
        name = strcmp(k->key, "name") ? name : k;
        model = strcmp(k->key, "model") ? model : k;
    }
    if (!name && !model)
        return diag_error(l->diag, yaml_loc(y),
                          "an entry has a 'model', or a 'name' by which others extend it");
    if (!is_word(name ? name : model, "a name", l))
        return false;
    return add_item(l, name ? name->text : name_of_model(model->text, l->arena), y);
}

static bool add_models(List *l, const Yaml *models)
{
    bool ok = true;
    if (models->kind != YAML_LIST &&
        !yaml_is(models, YAML_MAP, "a list, or a map of names and entries", l->arena, l->diag))
        return false;
    for (const Yaml *y = models->first; y; y = y->next)
        ok = (models->kind == YAML_LIST ? add_listed(l, y) : add_item(l, y->key, y)) && ok;
    return ok;
}

/* -- files ------------------------------------------------------------------------------------ */

static bool read_file(List *l, const char *path, Loc loc);

static bool read_extended(List *l, const Yaml *y)
{
    return read_file(l, y->text, yaml_loc(y));
}

static bool read_parts(List *l, const Yaml *root)
{
    enum { FILE_EXTENDS, DEFAULTS, MODELS, N };
    static const char *const key[N] = {"extends", "defaults", "models"};
    const Yaml *part[N];
    if (!yaml_map(root, key, N, part, l->arena, l->diag))
        return false;
    bool ok = !part[FILE_EXTENDS] || each_word(part[FILE_EXTENDS], l, read_extended);
    if (part[DEFAULTS])
        PUSH(l->arena, l->defaults, l->n_defaults, part[DEFAULTS]);
    return (!part[MODELS] || add_models(l, part[MODELS])) && ok;
}

static bool enters(List *l, const char *name, Loc loc)
{
    for (int i = 0; i < l->n_open; i++)
        if (!strcmp(l->open[i], name))
            return diag_error(l->diag, loc, "extends itself: %s", chain(l, name));
    if (l->n_open == MAX_CHAIN)
        return diag_error(l->diag, loc, "extends more than %d others, one by one", MAX_CHAIN);
    l->open[l->n_open++] = name;
    return true;
}

static bool read_file(List *l, const char *path, Loc loc)
{
    const uint8_t *data;
    size_t n;
    if (!enters(l, path, loc))
        return false;
    TableItem *read = table_at_text(&l->by_path, path);
    if (read->number++) { /* another file extends it too and has read it */
        l->n_open--;
        return true;
    }
    if (++l->n_files > MAX_FILES)
        return diag_error(l->diag, loc, "more than %d files", MAX_FILES);
    int errors = diag_errors(l->diag);
    bool ok = file_map(l->files, path, &data, &n, l->diag) != NULL;
    const Yaml *root = ok ? yaml_parse(l->arena, path, data, n, l->diag) : NULL;
    ok = root && diag_errors(l->diag) == errors && read_parts(l, root);
    l->n_open--;
    return ok;
}

/* -- settings --------------------------------------------------------------------------------- */

/* Returns whether y is YAML's null.  A null flag takes back the value of an earlier layer. */
static bool is_null(const Yaml *y)
{
    return y->kind == YAML_SCALAR && y->is_plain &&
           (!*y->text || !strcmp(y->text, "~") || !strcmp(y->text, "null"));
}

static bool set_one(Settings *to, const Yaml *y, List *l)
{
    int i = 0;
    while (i < to->n_flags && strcmp(to->flag[i]->key, y->key) != 0)
        i++;
    if (i == MAX_FLAGS)
        return diag_error(l->diag, yaml_key_loc(y), "more than %d flags", MAX_FLAGS);
    to->flag[i] = y;
    to->n_flags += i == to->n_flags;
    return true;
}

static bool set_flags(Settings *to, const Yaml *map, List *l)
{
    bool ok = true;
    if (!map || is_null(map))
        return true;
    if (!yaml_is(map, YAML_MAP, "a map of flags and values", l->arena, l->diag))
        return false;
    for (const Yaml *y = map->first; y && ok; y = y->next)
        ok = set_one(to, y, l);
    return ok;
}

static Settings *settle(List *l, Item *is);

/* Copies all settings of the entry `name` but its output into *to. */
static bool lay_base(List *l, const Yaml *name, Settings *to)
{
    Item *base = table_find_text(&l->by_name, name->text);
    if (!base)
        return diag_error(l->diag, yaml_loc(name), "there is no entry '%s' to extend", name->text);
    base->is_extended = true;
    if (!enters(l, base->name, yaml_loc(name)))
        return false;
    const Settings *from = settle(l, base);
    l->n_open--;
    if (!from)
        return false;
    for (int i = 0; i < N_VALUES; i++)
        if (from->value[i] && i != OUTPUT)
            to->value[i] = from->value[i];
    bool ok = true;
    for (int i = 0; i < from->n_flags && ok; i++)
        ok = set_one(to, from->flag[i], l);
    return ok;
}

static bool lay_bases(List *l, const Yaml *names, Settings *to)
{
    bool ok = true;
    if (names->kind != YAML_LIST)
        return is_word(names, "a name or a list of names", l) && lay_base(l, names, to);
    for (const Yaml *y = names->first; y; y = y->next)
        ok = is_word(y, "a name", l) && lay_base(l, y, to) && ok;
    return ok;
}

static bool lay(List *l, const Yaml *layer, bool is_entry, Settings *to)
{
    const Yaml *v[N_ENTRY_KEYS];
    bool ok = true;
    if (layer->kind == YAML_SCALAR) { /* the layer is only a model */
        to->value[MODEL] = layer;
        return true;
    }
    if (!yaml_map(layer, entry_key, N_ENTRY_KEYS, v, l->arena, l->diag))
        return false;
    for (int i = 0; i < N_VALUES; i++)
        if (v[i]) {
            ok = is_word(v[i], "a word", l) && ok;
            to->value[i] = v[i];
        }
    if (!is_entry && (v[MODEL] || v[OUTPUT] || v[NAME] || v[EXTENDS]))
        return diag_error(l->diag, yaml_loc(layer),
                          "defaults cannot have a model, output, name or extends");
    return set_flags(to, v[FLAGS], l) && set_flags(to, v[GATES], l) && ok;
}

static const Yaml *extends_of(const Yaml *layer)
{
    const Yaml *y = layer->kind == YAML_MAP ? layer->first : NULL;
    while (y && strcmp(y->key, "extends") != 0)
        y = y->next;
    return y;
}

/* Returns the settings of an entry from all its layers.  Returns NULL if an error was reported. */
static Settings *settle(List *l, Item *is)
{
    bool ok = true;
    if (is->mark == SETTLED || is->mark == FAILED)
        return is->mark == SETTLED ? &is->settings : NULL;
    is->mark = IN_WORK;
    for (int i = 0; i < l->n_defaults; i++)
        ok = lay(l, l->defaults[i], false, &is->settings) && ok;
    for (int i = 0; i < is->n_layers && ok; i++)
        if (extends_of(is->layer[i]))
            ok = lay_bases(l, extends_of(is->layer[i]), &is->settings);
    for (int i = 0; i < is->n_layers && ok; i++)
        ok = lay(l, is->layer[i], true, &is->settings);
    is->mark = ok ? SETTLED : FAILED;
    return ok ? &is->settings : NULL;
}

/* -- words of a command ----------------------------------------------------------------------- */

/* Returns whether an entry may set a flag.  It may not set a flag that batch itself handles, or
 * one that would print between its lines. */
static bool may_be_set(const char *flag)
{
    static const char *const own[] = {"output", "json",    "quiet",        "verbose", "help",
                                      "dry-run", "dump-ir", "error-format", "h",       ""};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(flag, own[i]))
            return false;
    return strspn(flag, "abcdefghijklmnopqrstuvwxyz-") == strlen(flag) && *flag != '-';
}

static void push_word(List *l, BatchEntry *e, const char *word, const char *plain)
{
    PUSH(l->arena, e->words.item, e->words.n, word);
    PUSH(l->arena, e->plain.item, e->plain.n, plain);
}

static bool push_value(List *l, BatchEntry *e, const Yaml *flag, const Yaml *y)
{
    if (y->kind != YAML_SCALAR)
        return yaml_is(y, YAML_SCALAR, "a value, or a list of values", l->arena, l->diag);
    bool is_true = y->is_plain && !strcmp(y->text, "true");
    if (is_null(y) || (y->is_plain && !strcmp(y->text, "false")))
        return true;
    const char *place = options_writes(e->command, flag->key) ? e->folder : "";
    const char *word = is_true ? arena_printf(l->arena, "--%s", flag->key)
                               : arena_printf(l->arena, "--%s=%s%s", flag->key, place, y->text);
    push_word(l, e, word, arena_printf(l->arena, "--%s=%s", flag->key, y->text));
    return true;
}

static bool push_flag(List *l, BatchEntry *e, const Yaml *flag)
{
    bool ok = true;
    if (!may_be_set(flag->key))
        return diag_error(l->diag, yaml_key_loc(flag), "'%s' is not a flag that an entry may set",
                          flag->key);
    if (flag->kind != YAML_LIST)
        return push_value(l, e, flag, flag);
    for (const Yaml *y = flag->first; y; y = y->next)
        ok = push_value(l, e, flag, y) && ok;
    return ok;
}

static int by_name(const void *a, const void *b)
{
    const Yaml *const *l = a, *const *r = b;
    return strcmp((*l)->key, (*r)->key);
}

/* Checks that an output lies beneath the output folder, wherever the list comes from: the path
 * has no component that is empty, "." or "..". */
static bool lies_beneath(const char *path)
{
    for (const char *s = path; *s; s += strcspn(s, "/"), s += *s == '/') {
        size_t n = strcspn(s, "/");
        if (n == 0 || (n == 1 && *s == '.') || (n == 2 && !strncmp(s, "..", 2)))
            return false;
    }
    return *path && path[strlen(path) - 1] != '/';
}

static bool set_output(List *l, const Item *is, BatchEntry *e)
{
    const Yaml *y = is->settings.value[OUTPUT];
    const char *end = e->command == CMD_EMIT_C ? ".c" : ".pte";
    e->output = y ? y->text : arena_join(l->arena, e->name, end);
    e->path = arena_join(l->arena, e->folder, e->output);
    return lies_beneath(e->output) ||
           diag_error(l->diag, y ? yaml_loc(y) : e->loc,
                      "the output '%s' is not a path beneath the output folder", e->output);
}

static bool set_command(List *l, const Settings *s, BatchEntry *e)
{
    const Yaml *y = s->value[COMMAND];
    e->command = y && !strcmp(y->text, "emit-c") ? CMD_EMIT_C : CMD_COMPILE;
    return !y || e->command == CMD_EMIT_C || !strcmp(y->text, "compile") ||
           diag_error(l->diag, yaml_loc(y), "the command is compile or emit-c, not '%s'", y->text);
}

static bool set_memory(List *l, const Settings *s, BatchEntry *e)
{
    const Yaml *y = s->value[MEMORY];
    return !y || (parse_amount(y->text, 1024, &e->memory) && e->memory > 0) ||
           diag_error(
               l->diag, yaml_loc(y),
               "'memory' is a number of bytes, optionally with K, M, G or T after it, not '%s'",
               y->text);
}

/* Makes the words of an entry.  Its flags are sorted by name, so their order in the list changes
 * nothing. */
static bool make_entry(List *l, Item *is, BatchEntry *e)
{
    Settings *s = &is->settings;
    bool ok = set_command(l, s, e) && set_memory(l, s, e) && set_output(l, is, e);
    qsort(s->flag, (size_t)s->n_flags, sizeof(const Yaml *), by_name);
    const char *command = e->command == CMD_EMIT_C ? "emit-c" : "compile";
    const char *model = s->value[MODEL]->text;
    push_word(l, e, "etc", "etc");
    push_word(l, e, command, command);
    for (int i = 0; i < s->n_flags && ok; i++)
        ok = push_flag(l, e, s->flag[i]);
    push_word(l, e, "--", "--");
    push_word(l, e, model, model);
    return ok;
}

/* Adds an entry to the batch.  An entry without a model is not added, and another entry must
 * extend it. */
static bool add_entry(List *l, Item *is, const char *folder, Batch *to)
{
    const Settings *s = settle(l, is);
    if (!s)
        return false;
    if (!s->value[MODEL])
        return is->is_extended || diag_error(l->diag, is->loc, "'%s' has no 'model', and no entry "
                                                               "extends it", is->name);
    BatchEntry e = {.name = is->name, .loc = is->loc, .folder = folder};
    bool ok = make_entry(l, is, &e);
    PUSH(l->arena, to->entry, to->n, e);
    return ok;
}

static bool same_outputs(List *l, const Batch *b)
{
    Table by_output = {.arena = l->arena};
    bool ok = true;
    for (int i = 0; i < b->n; i++) {
        BatchEntry *e = &b->entry[i];
        TableItem *is = table_at_text(&by_output, e->path);
        const BatchEntry *other = is->ptr;
        if (other)
            ok = diag_error(l->diag, e->loc, "the entries '%s' and '%s' have one output, '%s'",
                            other->name, e->name, e->output);
        is->ptr = e;
    }
    return ok;
}

bool batch_read(Files *files, const char *path, const char *folder, Arena *a, Batch *out, Diag *d)
{
    List l = {.files = files, .arena = a, .diag = d, .by_name.arena = a, .by_path.arena = a};
    bool ok = read_file(&l, path, (Loc){.file = path});
    for (int i = 0; i < l.n && ok; i++) { /* add_entry needs is_extended, which settle sets */
        l.open[0] = l.item[i]->name;
        l.n_open = 1;
        settle(&l, l.item[i]);
    }
    ok = ok && !diag_errors(d);
    for (int i = 0; i < l.n && ok; i++)
        ok = add_entry(&l, l.item[i], folder, out);
    if (ok && !out->n)
        return diag_error(d, (Loc){.file = path}, "there are no models in it");
    return ok && same_outputs(&l, out);
}
