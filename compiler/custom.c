/* custom.c -- reads the user's own operators from the YAML files of --ops.
 *
 *     operators:
 *       - schema: "mylib::swish(Tensor x, float scale=1.0) -> Tensor"
 *         results: [{dtype: dtype(x), sizes: sizes(x)}]
 *         composite: |
 *           return x * sigmoid(x * scale)
 *         kernel: mylib::swish.out
 *         c: mylib_swish
 *
 * The file is not trusted: each text is checked against its grammar before it is used, and all
 * mistakes are reported.
 */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <string.h>

enum { MOST_OPS = 256, MOST_NAME = 200 };
enum { K_SCHEMA, K_RESULTS, K_COMPOSITE, K_KERNEL, K_C, N_KEYS };
static const char *const keys[N_KEYS] = {"schema", "results", "composite", "kernel", "c"};

typedef struct Reader {
    CustomOps *to;
    Arena *a;
    Diag *d;
} Reader;

/* An operator whose names are read, and its texts, which are still to be parsed. */
typedef struct Draft {
    CustomOp *op;
    CustomTexts texts;
} Draft;

static bool is_text(const Reader *r, const Yaml *y)
{
    return yaml_is(y, YAML_SCALAR, "a text", r->a, r->d);
}

/* -- names ------------------------------------------------------------------------------------- */

/* Checks that s is "ns::name" or "ns::name.overload", in letters, digits and '_'. */
static bool is_qualified(Arena *a, const char *s, size_t n)
{
    const char *name = arena_str(a, s, n), *mark = strstr(name, "::");
    size_t space = mark ? (size_t)(mark - name) : 0;
    if (!mark || n > MOST_NAME || !text_is_name(arena_str(a, name, space), '_'))
        return false;
    const char *rest = mark + 2, *dot = strchr(rest, '.');
    size_t stem = dot ? (size_t)(dot - rest) : strlen(rest);
    return text_is_name(arena_str(a, rest, stem), '_') && (!dot || text_is_name(dot + 1, '_'));
}

static bool is_free(const Reader *r, const Yaml *y, const char *name)
{
    const char *space = arena_str(r->a, name, strcspn(name, ":"));
    return !namespace_is_taken(space) ||
           diag_error(r->d, yaml_loc(y), "'%s': the names of %s are torch's or a runtime's; "
                      "operators and kernels of your own have a namespace of their own",
                      y->key, space);
}

/* Returns the target of an operator's name: "mylib.swish.default" for "mylib::swish". */
static const char *target_of(Arena *a, const char *name)
{
    const char *rest = strstr(name, "::") + 2;
    return arena_printf(a, "%.*s.%s%s", (int)(rest - 2 - name), name, rest,
                        strchr(rest, '.') ? "" : ".default");
}

/* -- schema ------------------------------------------------------------------------------------ */

static CustomOp *read_schema(const Reader *r, const Yaml *y)
{
    const char *wrong;
    if (!is_text(r, y))
        return NULL;
    size_t n = strcspn(y->text, "(");
    const char *name = arena_str(r->a, y->text, n);
    if (!is_qualified(r->a, name, n)) {
        diag_error(r->d, yaml_loc(y), "'schema' does not begin with a name such as mylib::swish");
        return NULL;
    }
    const char *target = target_of(r->a, name);
    if (op_find(target) != OP_NONE)
        diag_error(r->d, yaml_loc(y), "'schema': %s is an operator that etc has", target);
    else if (is_free(r, y, name)) {
        CustomOp *op = NEW(r->a, CustomOp, 1);
        op->schema = schema_read(r->a, y->text + n, &wrong);
        op->row = (OpInfo){.functional = OP_NONE};
        op->target = target;
        op->name = name;
        op->at = (Loc){.file = y->file, .line = y->line};
        if (op->schema)
            return op;
        diag_error(r->d, yaml_loc(y), "'schema' of %s %s", name, wrong);
    }
    return NULL;
}

/* -- results ----------------------------------------------------------------------------------- */

static CustomText text_of(const Yaml *y)
{
    return (CustomText){y->text, y->key, yaml_loc(y), y->has_lines};
}

static bool read_result(const Reader *r, const Yaml *map, CustomText *dtype, CustomText *sizes)
{
    static const char *const key[] = {"dtype", "sizes"};
    const Yaml *found[2];
    if (!yaml_map(map, key, 2, found, r->a, r->d))
        return false;
    yaml_need(map, found[0], "dtype", r->d);
    yaml_need(map, found[1], "sizes", r->d);
    if (!found[0] || !found[1] || !is_text(r, found[0]) || !is_text(r, found[1]))
        return false;
    *dtype = text_of(found[0]);
    *sizes = text_of(found[1]);
    return true;
}

static bool read_results(const Reader *r, const Yaml *y, Draft *of)
{
    int n = 0, want = of->op->schema->n_outs;
    bool ok = yaml_is(y, YAML_LIST, "a list of {dtype: ..., sizes: ...}", r->a, r->d);
    if (ok && y->n != want)
        return diag_error(r->d, yaml_loc(y), "there are %d 'results', but the schema of %s has %d", y->n,
                          of->op->name, want);
    for (const Yaml *item = ok ? y->first : NULL; item; item = item->next, n++)
        ok = read_result(r, item, &of->texts.dtype[n], &of->texts.sizes[n]) && ok;
    of->texts.n_results = n;
    return ok;
}

/* -- kernels and functions --------------------------------------------------------------------- */

static bool read_kernel(const Reader *r, const Yaml *y, CustomOp *op)
{
    if (!is_text(r, y))
        return false;
    if (!is_qualified(r->a, y->text, strlen(y->text)))
        return diag_error(r->d, yaml_loc(y), "'kernel' is not a name such as mylib::swish.out");
    op->out = y->text;
    op->row.has_out = true;
    op->row.flags |= KEEP;
    return is_free(r, y, y->text);
}

static bool takes_optional(const SchemaArg *arg)
{
    return arg->type != SCH_TENSOR && arg->is_optional;
}

/* Checks that a function of C can take every argument.  It cannot take a list of tensors or
 * bools, nor an optional argument that is no tensor. */
static bool has_parameters(const Reader *r, const Yaml *y, const CustomOp *op)
{
    bool ok = true;
    for (int i = 0; i < op->schema->n_args; i++) {
        const SchemaArg *arg = &op->schema->arg[i];
        bool is_list = arg->is_list && (arg->type == SCH_TENSOR || arg->type == SCH_BOOL);
        if (is_list || takes_optional(arg))
            ok = diag_error(r->d, yaml_loc(y), "'c': %s of %s cannot be handed to a function of C: "
                            "lists of tensors or bools, and numbers that may be None",
                            arg->text, op->name);
    }
    return ok;
}

static bool read_function(const Reader *r, const Yaml *y, CustomOp *op)
{
    const char *wrong;
    if (!is_text(r, y))
        return false;
    if (!c_name_is_free(y->text, &wrong))
        return diag_error(r->d, yaml_loc(y), "'c': '%s' %s", y->text, wrong);
    for (int i = 0; i < r->to->n; i++)
        if (r->to->item[i]->function && !strcmp(r->to->item[i]->function, y->text))
            return diag_error(r->d, yaml_loc(y), "'c': %s computes %s already", y->text,
                              r->to->item[i]->name);
    op->function = y->text;
    op->row.has_template = true;
    op->row.flags |= KEEP;
    return has_parameters(r, y, op);
}

/* -- operators --------------------------------------------------------------------------------- */

static bool has_way(const Reader *r, const Yaml *map, const Yaml *const *found)
{
    return found[K_COMPOSITE] || found[K_KERNEL] || found[K_C] ||
           diag_error(r->d, yaml_loc(map), "says nothing that computes it: composite, kernel or c");
}

static bool read_operator(const Reader *r, const Yaml *map, Draft *draft)
{
    const Yaml *found[N_KEYS];
    if (!yaml_map(map, keys, N_KEYS, found, r->a, r->d))
        return false;
    yaml_need(map, found[K_SCHEMA], "schema", r->d);
    yaml_need(map, found[K_RESULTS], "results", r->d);
    bool ok = has_way(r, map, found);
    CustomOp *op = found[K_SCHEMA] ? read_schema(r, found[K_SCHEMA]) : NULL;
    if (!op)
        return false;
    draft->op = op;
    ok = found[K_RESULTS] && read_results(r, found[K_RESULTS], draft) && ok;
    ok = (!found[K_KERNEL] || read_kernel(r, found[K_KERNEL], op)) && ok;
    ok = (!found[K_C] || read_function(r, found[K_C], op)) && ok;
    if (found[K_COMPOSITE] && is_text(r, found[K_COMPOSITE]))
        draft->texts.composite = text_of(found[K_COMPOSITE]);
    const CustomOp *other = custom_ops_find(r->to, op->target);
    if (!custom_ops_add(r->to, op))
        ok = diag_error(r->d, op->at, "%s is described a second time, first in %s:%d", op->name,
                        other->at.file, other->at.line);
    return ok;
}

static bool read_operators(const Reader *r, const Yaml *list)
{
    if (!yaml_is(list, YAML_LIST, "a list of operators", r->a, r->d))
        return false;
    if (list->n + r->to->n > MOST_OPS)
        return diag_error(r->d, yaml_loc(list), "more than %d operators", MOST_OPS);
    Draft *draft = NEW(r->a, Draft, list->n + 1);
    bool ok = true;
    int n = 0;
    for (const Yaml *y = list->first; y; y = y->next, n++)
        ok = read_operator(r, y, &draft[n]) && ok;
    for (int i = 0; i < n; i++) /* last: a composite may call a later operator */
        if (draft[i].op)
            ok = custom_rules_read(r->to, draft[i].op, &draft[i].texts, r->d) && ok;
    return ok;
}

bool custom_parse(const char *file, const uint8_t *data, size_t n, CustomOps *to, Diag *d)
{
    static const char *const key[] = {"operators"};
    const Reader r = {to, to->arena, d};
    int errors = diag_errors(d);
    const Yaml *found[1], *root = yaml_parse(r.a, file, data, n, d);
    if (!root || !yaml_map(root, key, 1, found, r.a, d))
        return false;
    yaml_need(root, found[0], *key, d);
    return found[0] && read_operators(&r, found[0]) && diag_errors(d) == errors;
}

bool custom_read(const Options *o, Arena *a, const CustomOps **out, Diag *d)
{
    CustomOps *all = o->ops.n ? custom_ops_new(a) : NULL;
    bool ok = true;
    for (int i = 0; i < o->ops.n; i++) {
        const uint8_t *data;
        size_t n;
        const char *file = o->ops.item[i];
        ok = file_map(o->files, file, &data, &n, d) && custom_parse(file, data, n, all, d) && ok;
    }
    *out = all;
    return ok && (!all || custom_rules_end(all, d));
}
