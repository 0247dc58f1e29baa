/* config.c -- reads YAML as a tree: the part of it that recipes, lists and files of operators need.
 *
 * The tree has maps, lists and scalars.  Anchors, aliases, tags and a second document are refused,
 * so the tree is no larger than its text, and nesting is bounded.  The reader of a plain scalar
 * decides what it means: no word becomes a number or a boolean by itself.
 */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <string.h>
#include <yaml.h>

enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 16, MAX_KEYS = 10000, MAX_DIRECTIVES = 100 };

typedef struct Builder {
    yaml_parser_t parser;
    yaml_event_t event;
    Arena *a;
    const char *file;
    Diag *diag;
    Yaml *root, *open[MAX_DEPTH];
    Yaml *
        last[MAX_DEPTH]; /* the last item of each open node; a map's key until it has a value */
    bool wants_value[MAX_DEPTH];
    Table keys[MAX_DEPTH]; /* the Yaml of each key */
    int depth, n_documents;
    bool failed; /* parsing stops, because the rest of the text cannot be understood */
} Builder;

static Loc loc_of(const Builder *b, yaml_mark_t at)
{
    return (Loc){.file = b->file, .line = (int)at.line + 1, .column = (int)at.column + 1};
}

Loc yaml_loc(const Yaml *y)
{
    return (Loc){.file = y->file, .line = y->line, .column = y->column};
}

static Yaml *new_node(Builder *b, YamlKind kind)
{
    Yaml *y = NEW(b->a, Yaml, 1);
    *y = (Yaml){.kind = kind,
                .file = b->file,
                .line = (int)b->event.start_mark.line + 1,
                .column = (int)b->event.start_mark.column + 1};
    return y;
}

static void fail(Builder *b, const char *what)
{
    diag_error(b->diag, loc_of(b, b->event.start_mark), "%s", what);
    b->failed = true;
}

static void append(Builder *b, Yaml *y)
{
    Yaml *in = b->open[b->depth - 1], *last = b->last[b->depth - 1];
    if (last)
        last->next = y;
    else
        in->first = y;
    b->last[b->depth - 1] = y;
    in->n++;
}

/* Adds a key to the open map, as the item that its value will fill in. */
static void add_key(Builder *b, Yaml *y)
{
    Yaml *in = b->open[b->depth - 1];
    if (y->kind != YAML_SCALAR) {
        fail(b, "a key must be a word");
        return;
    }
    if (in->n == MAX_KEYS) {
        fail(b, "more than 10000 keys");
        return;
    }
    TableItem *known = table_at_text(&b->keys[b->depth - 1], y->text);
    if (known->ptr)
        diag_error(b->diag, yaml_loc(y), "'%s' appears here a second time, first in line %d",
                   y->text, ((const Yaml *)known->ptr)->key_line);
    else
        known->ptr = y;
    y->key = y->text;
    y->key_line = y->line;
    y->key_column = y->column;
    append(b, y);
    b->wants_value[b->depth - 1] = true;
}

/* Adds y to the tree and returns its place there: y itself, or the item of the key before it. */
static Yaml *add(Builder *b, Yaml *y)
{
    if (!b->depth)
        return b->root = y;
    if (b->open[b->depth - 1]->kind == YAML_LIST) {
        append(b, y);
        return y;
    }
    if (!b->wants_value[b->depth - 1]) {
        add_key(b, y);
        return y;
    }
    Yaml *item = b->last[b->depth - 1];
    y->key = item->key;
    y->key_line = item->key_line;
    y->key_column = item->key_column;
    b->wants_value[b->depth - 1] = false;
    *item = *y;
    return item;
}

/* Reports an anchor or a tag.  Returns the kind of the node, or YAML_BROKEN if it has a tag. */
static YamlKind checked(const Builder *b, YamlKind kind, const yaml_char_t *anchor,
                        const yaml_char_t *tag)
{
    Loc loc = loc_of(b, b->event.start_mark);
    if (anchor)
        diag_error(b->diag, loc, "anchors are not read; write out what '*%s' stands for",
                   (const char *)anchor);
    if (tag)
        diag_error(b->diag, loc, "tags are not read: '%s'", (const char *)tag);
    return tag ? YAML_BROKEN : kind;
}

static void add_scalar(Builder *b)
{
    const char *text = (const char *)b->event.data.scalar.value;
    size_t n = b->event.data.scalar.length;
    Yaml *y = new_node(
        b, checked(b, YAML_SCALAR, b->event.data.scalar.anchor, b->event.data.scalar.tag));
    y->text = arena_str(b->a, text, n);
    y->is_plain = b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    y->has_lines = b->event.data.scalar.style == YAML_LITERAL_SCALAR_STYLE;
    if (strlen(y->text) != n) {
        diag_error(b->diag, yaml_loc(y), "the text contains a NUL byte");
        y->kind = YAML_BROKEN;
    }
    add(b, y);
}

static void open_node(Builder *b, YamlKind kind)
{
    const bool is_list = kind == YAML_LIST;
    const yaml_char_t *anchor = is_list ? b->event.data.sequence_start.anchor
                                        : b->event.data.mapping_start.anchor;
    const yaml_char_t *tag = is_list ? b->event.data.sequence_start.tag
                                     : b->event.data.mapping_start.tag;
    checked(b, kind, anchor, tag);
    if (b->depth == MAX_DEPTH) {
        fail(b, "nested more than 16 deep");
        return;
    }
    Yaml *y = add(b, new_node(b, kind));
    b->open[b->depth] = y;
    b->last[b->depth] = NULL;
    b->keys[b->depth] = (Table){.arena = b->a};
    b->wants_value[b->depth++] = false;
}

static void handle_event(Builder *b)
{
    switch (b->event.type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->n_documents++)
            fail(b, "a second document starts here; a file must hold only one");
        break;
    case YAML_ALIAS_EVENT:
        diag_error(b->diag, loc_of(b, b->event.start_mark),
                   "aliases are not read; write out what '*%s' stands for",
                   (const char *)b->event.data.alias.anchor);
        add(b, new_node(b, YAML_BROKEN));
        break;
    case YAML_SCALAR_EVENT:
        add_scalar(b);
        break;
    case YAML_SEQUENCE_START_EVENT:
        open_node(b, YAML_LIST);
        break;
    case YAML_MAPPING_START_EVENT:
        open_node(b, YAML_MAP);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        break;
    default:
        break;
    }
}

static void tell_syntax(Builder *b, const uint8_t *data)
{
    const yaml_parser_t *p = &b->parser;
    Loc loc = loc_of(b, p->problem_mark);
    if (p->error == YAML_READER_ERROR) { /* it gives a byte offset, not a line */
        loc.line = 1;
        loc.column = 1;
        for (size_t i = 0; i < p->problem_offset; i++) {
            loc.column = data[i] == '\n' ? 1 : loc.column + 1;
            loc.line += data[i] == '\n';
        }
    }
    diag_error(b->diag, loc, "is not YAML: %s%s%s", p->problem ? p->problem : "no memory",
               p->context ? ", " : "", p->context ? p->context : "");
}

/* Runs the parser to its end, or to the first error that stops it. */
static bool build_tree(Builder *b, const uint8_t *data)
{
    for (bool more = true; more && !b->failed;) {
        if (!yaml_parser_parse(&b->parser, &b->event)) {
            tell_syntax(b, data);
            return false;
        }
        more = b->event.type != YAML_STREAM_END_EVENT;
        handle_event(b);
        yaml_event_delete(&b->event);
    }
    if (!b->failed && !b->root)
        diag_error(b->diag, (Loc){.file = b->file}, "is empty");
    return !b->failed && b->root;
}

/* Returns whether libyaml may find too many %TAG directives: it compares each with all before.  A
 * line of YAML ends with a control character, or with U+0085, U+2028 or U+2029. */
static bool has_directives(const uint8_t *data, size_t n)
{
    int count = data[0] == '%';
    for (size_t i = 1; i < n; i++)
        count += data[i] == '%' && (data[i - 1] < ' ' || strchr("\x85\xA8\xA9", data[i - 1]));
    return count > MAX_DIRECTIVES;
}

const Yaml *yaml_parse(Arena *a, const char *file, const uint8_t *data, size_t n, Diag *d)
{
    Builder b = {.a = a, .file = file, .diag = d};
    if (n > MAX_BYTES) {
        diag_error(d, (Loc){.file = file}, "is longer than 1 MiB");
        return NULL;
    }
    if (n >= 3 && !memcmp(data, "\xEF\xBB\xBF", 3)) {
        data += 3;
        n -= 3;
    }
    if (!n) {
        diag_error(d, (Loc){.file = file}, "is empty");
        return NULL;
    }
    if (has_directives(data, n)) {
        diag_error(d, (Loc){.file = file}, "has more than 100 directives");
        return NULL;
    }
    if (!yaml_parser_initialize(&b.parser)) {
        diag_io(d, (Loc){.file = file}, "no memory to read it");
        return NULL;
    }
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, data, n);
    bool ok = build_tree(&b, data);
    yaml_parser_delete(&b.parser);
    return ok ? b.root : NULL;
}

/* -- maps ------------------------------------------------------------------------------------- */

Loc yaml_key_loc(const Yaml *y)
{
    return (Loc){.file = y->file, .line = y->key_line, .column = y->key_column};
}

bool yaml_is(const Yaml *y, YamlKind kind, const char *want, Arena *a, Diag *d)
{
    if (y->kind == YAML_BROKEN)
        return false;
    const char *called = y->key ? arena_printf(a, "'%s'", y->key) : "an item";
    return y->kind == kind || diag_error(d, yaml_loc(y), "%s must be %s", called, want);
}

static void unknown_key(const Yaml *y, const char *const *key, int n, Arena *a, Diag *d)
{
    const char *all = "";
    Near near = near_word(y->key);
    for (int i = 0; i < n; i++) {
        near_consider(&near, key[i]);
        all = arena_printf(a, "%s%s%s", all, i ? ", " : "", key[i]);
    }
    diag_error(d, yaml_key_loc(y), "there is no key '%s' here%s", y->key,
               near.best ? near_text(a, &near) : arena_printf(a, "; there are %s", all));
}

bool yaml_map(const Yaml *map, const char *const *key, int n, const Yaml **found, Arena *a, Diag *d)
{
    if (!yaml_is(map, YAML_MAP, "a map of keys and values", a, d))
        return false;
    memset(found, 0, (size_t)n * sizeof *found);
    for (const Yaml *y = map->first; y; y = y->next) {
        int i = 0;
        while (i < n && strcmp(key[i], y->key) != 0)
            i++;
        if (i == n)
            unknown_key(y, key, n, a, d);
        else if (!found[i])
            found[i] = y;
    }
    return true;
}

void yaml_need(const Yaml *map, const Yaml *y, const char *key, Diag *d)
{
    if (!y)
        diag_error(d, yaml_loc(map), "'%s' is missing here", key);
}
