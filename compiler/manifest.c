/* manifest.c -- reads from the files of --manifest what one build of the ExecuTorch runtime has.
 *
 *     operators: [aten::add.out, aten::mul.out]
 *     delegates: [XnnpackBackend]
 *
 * `operators` may also be a map, as in the selected_operators.yaml of ExecuTorch's selective build;
 * the other keys of that file are ignored.  A file may also hold only names, as a list or as words:
 * a name with "::" is a kernel, and any other name is a delegate.  The files are not trusted.
 */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <string.h>

enum { MOST_NAME = 200 };
enum { K_OPERATORS, K_DELEGATES, K_ALL, K_READ };
static const char *const key_name[] = {
    "operators",     "delegates",      "include_all_operators",  "include_all_non_op_selectives",
    "build_features", "custom_classes", "kernel_metadata", "et_kernel_metadata", "debug_info"};
enum { N_KEYS = sizeof key_name / sizeof *key_name };

typedef struct Reader {
    Manifest *to;
    Arena *a;
    Diag *d;
} Reader;

static bool add(const Reader *r, const Yaml *y, const char *name, const char *want)
{
    bool is_kernel = strstr(name, "::") != NULL;
    if (!*name || strlen(name) > MOST_NAME || (want && is_kernel != !strcmp(want, "operators")))
        return diag_error(r->d, yaml_loc(y), "'%.80s' is not a name of %s", name,
                          is_kernel ? "a delegate" : "a kernel, such as aten::add.out");
    assert(r->to->names.arena);
    table_at_copy(&r->to->names, name, strlen(name))->number = 1;
    return true;
}

/* Adds the items of a list or the keys of a map. */
static bool add_all(const Reader *r, const Yaml *of, const char *want)
{
    bool ok = true;
    for (const Yaml *y = of->first; y; y = y->next)
        if (y->key)
            ok = add(r, y, y->key, want) && ok;
        else
            ok = yaml_is(y, YAML_SCALAR, "a name", r->a, r->d) && add(r, y, y->text, want) && ok;
    return ok;
}

static bool is_empty(const Yaml *y)
{
    return y->kind == YAML_SCALAR && y->is_plain &&
           (!*y->text || !strcmp(y->text, "null") || !strcmp(y->text, "~"));
}

static bool add_under(const Reader *r, const Yaml *y, const char *want)
{
    if (!y || is_empty(y))
        return true;
    if (y->kind == YAML_MAP && !strcmp(want, "operators"))
        return add_all(r, y, want);
    return yaml_is(y, YAML_LIST, "a list of names", r->a, r->d) && add_all(r, y, want);
}

static bool read_map(const Reader *r, const Yaml *map)
{
    const Yaml *found[N_KEYS];
    if (!yaml_map(map, key_name, N_KEYS, found, r->a, r->d))
        return false;
    const Yaml *all = found[K_ALL];
    bool ok = !all || yaml_is(all, YAML_SCALAR, "true or false", r->a, r->d);
    if (ok && all && strcmp(all->text, "true") != 0 && strcmp(all->text, "false") != 0)
        ok = diag_error(r->d, yaml_loc(all), "'%s' is neither true nor false", all->text);
    r->to->has_all_kernels = r->to->has_all_kernels || (ok && all && !strcmp(all->text, "true"));
    ok = add_under(r, found[K_OPERATORS], "operators") && ok;
    return add_under(r, found[K_DELEGATES], "delegates") && ok;
}

/* Adds the words of a scalar.  In YAML, plain lines are one scalar. */
static bool read_words(const Reader *r, const Yaml *y)
{
    bool ok = true;
    char *rest = arena_str(r->a, y->text, strlen(y->text)), *word;
    while ((word = strsep(&rest, " \t\n")))
        ok = (!*word || add(r, y, word, NULL)) && ok;
    return ok;
}

bool manifest_parse(const char *file, const uint8_t *data, size_t n, Manifest *to, Diag *d)
{
    const Reader r = {to, to->names.arena, d};
    int errors = diag_errors(d);
    const Yaml *root = yaml_parse(r.a, file, data, n, d);
    if (!root || diag_errors(d) > errors)
        return false;
    bool ok = root->kind == YAML_SCALAR ? read_words(&r, root)
              : root->kind == YAML_LIST ? add_all(&r, root, NULL)
                                        : read_map(&r, root);
    return ok && diag_errors(d) == errors; /* unknown keys are errors too */
}

bool manifest_read(const Options *o, Arena *a, Manifest **out, Diag *d)
{
    bool ok = true;
    *out = o->manifests.n ? NEW(a, Manifest, 1) : NULL;
    for (int i = 0; i < o->manifests.n; i++) {
        const uint8_t *data;
        size_t n;
        const char *file = o->manifests.item[i];
        (*out)->names.arena = a;
        ok = file_map(o->files, file, &data, &n, d) && manifest_parse(file, data, n, *out, d) && ok;
    }
    return ok;
}

bool manifest_has(const Manifest *m, const char *name)
{
    assert(*name);
    return (m->has_all_kernels && strstr(name, "::")) || table_has(&m->names, name, strlen(name));
}
