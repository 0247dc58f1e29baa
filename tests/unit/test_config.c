/* test_config.c -- tests recipes: their meaning, the line and column of each mistake, and YAML that
 * is meant to do harm.  It also checks that docs/recipe.schema.json accepts and refuses the same
 * files as the reader. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/import/internal.h"

/* -- reading ---------------------------------------------------------------------------------- */

typedef struct Outcome {
    bool ok;
    Recipe recipe;
    char *told;
    Arena *a;
} Outcome;

static Outcome read_bytes(const char *text, size_t n)
{
    Outcome o = {.a = arena_new()};
    size_t len = 0;
    Diag d = {.out = open_memstream(&o.told, &len)};
    o.ok = recipe_parse("r.yaml", (const uint8_t *)text, n, o.a, &o.recipe, &d);
    fclose(d.out);
    cr_expect_eq(o.ok, !diag_errors(&d));
    return o;
}

static Outcome read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

static void drop(Outcome *o)
{
    free(o->told);
    arena_free(o->a);
}

static void expect_told(const char *text, const char *want)
{
    Outcome o = read_text(text);
    cr_expect_str_eq(o.told, want, "%s\ngives\n%sand not\n%s", text, o.told, want);
    drop(&o);
}

static void expect_refused(const char *text, size_t n, const char *part)
{
    clock_t start = clock();
    Outcome o = read_bytes(text, n);
    cr_expect_not(o.ok, "%.200s", text);
    cr_expect_not_null(strstr(o.told, part), "%.200s\ngives\n%.400s", text, o.told);
    cr_expect_lt((double)(clock() - start) / CLOCKS_PER_SEC, 2.0, "%.200s", text);
    drop(&o);
}

Test(config, a_recipe_says_what_it_says)
{
    Outcome o = read_text("preset: int8\n"
                          "objective: latency\n"
                          "budget: {metric: sqnr, max_drop: 1.5e1}\n"
                          "rules:\n"
                          "- scope:\n"
                          "    op: linear\n"
                          "    module: \"encoder.*\"\n"
                          "  activation: {dtype: int8, symmetric: true, observer: percentile, "
                          "percentile: 99.9}\n"
                          "  weight:\n"
                          "    dtype: int4\n"
                          "    granularity: group\n"
                          "    group_size: 64\n"
                          "  algorithms: [awq, gptq]\n"
                          "- {scope: {name: head*, backend: portable}, weight: float16}\n");
    cr_assert(o.ok, "%s", o.told);
    cr_assert_eq(o.recipe.n_rules, 3);
    const QuantRule *preset = &o.recipe.rule[0], *a = preset + 1, *b = preset + 2;
    cr_expect(preset->line == 0 && preset->activation.dtype == ETC_I8 && preset->weight.bits == 8);
    cr_expect(o.recipe.for_latency && o.recipe.metric == METRIC_SQNR && o.recipe.max_drop == 15);
    cr_expect(a->line == 5 && a->column == 3, "%d:%d", a->line, a->column);
    cr_expect_str_eq(a->op, "linear");
    cr_expect_str_eq(a->module, "encoder.*");
    cr_expect(!a->name && !a->backend);
    cr_expect(a->activation.symmetric && a->activation.observer == OBS_PERCENTILE &&
              a->activation.percentile == 99.9 && a->activation.granularity == PER_TENSOR);
    cr_expect(a->weight.bits == 4 && a->weight.granularity == PER_GROUP && a->weight.group == 64 &&
              a->weight.symmetric && a->weight.dtype == ETC_I8);
    cr_expect_eq(a->algorithms, ALG_AWQ | ALG_GPTQ);
    cr_expect(!b->has_activation && b->has_weight && b->weight.dtype == ETC_F16);
    cr_expect_str_eq(b->backend, "portable");
    drop(&o);
}

Test(config, presets_are_recipes)
{
    cr_assert_geq(n_recipe_presets, 8);
    for (int i = 0; i < n_recipe_presets; i++) {
        Outcome o = read_text(recipe_preset[i].text);
        cr_expect(o.ok && o.recipe.n_rules, "%s: %s", recipe_preset[i].name, o.told);
        Diag d = {.out = stderr};
        Recipe named;
        cr_assert(recipe_read(NULL, recipe_preset[i].name, o.a, &named, &d));
        cr_expect_eq(named.n_rules, o.recipe.n_rules);
        for (int k = 0; k < named.n_rules; k++)
            cr_expect_eq(named.rule[k].line, 0);
        drop(&o);
    }
}

/* The documentation quotes each, a little to the right. */
Test(config, presets_are_documented)
{
    const uint8_t *data;
    size_t n;
    Diag d = {.out = stderr};
    Arena *a = arena_new();
    cr_assert(file_map(files_new(a), ROOT "/docs/quantization.md", &data, &n, &d));
    const char *docs = arena_str(a, (const char *)data, n);
    for (int i = 0; i < n_recipe_presets; i++) {
        const RecipePreset *p = &recipe_preset[i];
        const char *want = arena_printf(a, "`%s`: %s.\n\n", p->name, p->help);
        for (const char *line = p->text; *line; line += strcspn(line, "\n") + 1)
            want = arena_printf(a, "%s    %.*s\n", want, (int)strcspn(line, "\n"), line);
        cr_expect_not_null(strstr(docs, want), "docs/quantization.md lacks\n%s", want);
    }
    arena_free(a);
}

Test(config, every_mistake_has_its_line_and_column)
{
    expect_told(
        "presett: int8\n"
        "objective: fast\n"
        "budget: {metric: cosin, max_drop: -1}\n"
        "rules:\n"
        "  - scope: {opp: linear}\n"
        "    activation: {dtype: int8, observer: kll, group_size: 3}\n"
        "    weight: int5\n"
        "  - scope: {op: lineer, backend: xnpack}\n"
        "    algorithms: [gptq, gptq, awk]\n"
        "    algorithms: []\n"
        "  - weight: {dtype: int4, granularity: group}\n"
        "  - {}\n",
        "r.yaml:10:5: error: 'algorithms' appears here a second time, first in line 9\n"
        "r.yaml:1:1: error: there is no key 'presett' here; did you mean 'preset'?\n"
        "r.yaml:2:12: error: 'objective' must be one of size, latency, not 'fast'\n"
        "r.yaml:3:18: error: 'metric' must be one of top1, cosine, sqnr, max_abs_error, not 'cosin'; "
        "did you mean 'cosine'?\n"
        "r.yaml:3:35: error: 'max_drop' must be a number from 0 on\n"
        "r.yaml:5:13: error: there is no key 'opp' here; did you mean 'op'?\n"
        "r.yaml:6:41: error: 'observer' must be one of minmax, moving_average, percentile, mse, kl, "
        "not 'kll'; did you mean 'kl'?\n"
        "r.yaml:6:46: error: 'group_size' is only for weights\n"
        "r.yaml:7:13: error: 'weight' must be one of float32, float16, int8, int4, not 'int5'; did "
        "you mean 'int8'?\n"
        "r.yaml:8:17: error: there is no operator 'lineer'; did you mean 'linear'?\n"
        "r.yaml:8:34: error: there is no backend 'xnpack'; did you mean 'xnnpack'?\n"
        "r.yaml:9:24: error: 'gptq' appears here a second time\n"
        "r.yaml:9:30: error: an item must be one of bias_correction, equalization, smoothquant, awq, "
        "scale_estimation, gptq, hqq, not 'awk'; did you mean 'awq'?\n"
        "r.yaml:11:13: error: 'group_size' is missing here\n"
        "r.yaml:12:5: error: a rule must name activation, weight or algorithms\n");
}

/* -- what YAML can be made to do -------------------------------------------------------------- */

static char *repeated(const char *piece, size_t n, const char *end)
{
    size_t len = strlen(piece);
    char *text = malloc(n * len + strlen(end) + 1);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * len, piece, len);
    strcpy(text + n * len, end);
    return text;
}

static void expect_text_refused(const char *text, const char *part)
{
    expect_refused(text, strlen(text), part);
}

Test(config, nothing_grows_out_of_a_small_text)
{
    expect_text_refused("a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n",
                        "r.yaml:2:8: error: aliases are not read");
    expect_text_refused("rules: &r\n  - weight: int8\n  - *r\n",
                        "r.yaml:1:8: error: anchors are not read");
    expect_text_refused("<<: *x\n", "r.yaml:1:5: error: ");
    expect_text_refused(
        "rules: !!python/object/apply:os.system ['id']\n",
        "r.yaml:1:8: error: tags are not read: 'tag:yaml.org,2002:python/object/apply");
    expect_text_refused("!<tag:x> rules: []\n", "tags are not read");
    expect_text_refused("preset: !!str int8\n", "r.yaml:1:9: error: tags are not read");
    expect_text_refused("preset: int8\n---\npreset: int8\n",
                        "r.yaml:2:1: error: a second document");
    static const char *const deep[] = {"[", "{a: ", "- ", "? ", "[{"};
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        char *text = repeated(deep[i], 100000, "");
        expect_refused(text, strlen(text), "r.yaml:1:");
        free(text);
    }
    char *text = repeated("#", 1 << 20, "\npreset: int8\n");
    expect_text_refused(text, "is longer than 1 MiB");
    free(text);
    text = repeated("k", 500000, ": 1\n");
    expect_text_refused(text, "r.yaml:1:");
    free(text);
    text = repeated("a: 1\n", 100, "");
    expect_text_refused(text,
                        "r.yaml:100:1: error: 'a' appears here a second time, first in line 1");
    free(text);
    text = repeated("a: 1\n", 20000, "");
    expect_text_refused(text, "r.yaml:10001:1: error: more than 10000 keys");
    free(text);
    text = repeated("- {weight: int8}\n", 2000, "");
    expect_text_refused(text, "a recipe must be a map");
    free(text);
}

Test(config, libyaml_does_not_compare_many_directives)
{
    char text[101 * 16] = "", *at = text;
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "%%TAG !%d! t\n", i);
    strcpy(at, "---\nrules: []\n");
    expect_told(text, "");
    memmove(text + 12, text, strlen(text) + 1);
    memcpy(text, "%TAG !x! t\n\n", 12);
    expect_text_refused(text, "has more than 100 directives");
}

Test(config, many_rules_are_read_and_more_refused)
{
    char *body = repeated("- {weight: int8}\n", 1000, ""), *text = malloc(strlen(body) + 64);
    sprintf(text, "rules:\n%s", body);
    Outcome o = read_text(text);
    cr_expect(o.ok && o.recipe.n_rules == 1000, "%s", o.told);
    drop(&o);
    sprintf(text, "rules:\n%s- {weight: int8}\n", body);
    expect_text_refused(text, "r.yaml:2:1: error: more than 1000 rules");
    free(text);
    free(body);
}

static const struct {
    const char *text, *part;
} word_row[] = {
    {"rules: [{scope: {name: no}, weight: int8}]",
     "r.yaml:1:24: error: 'name' must be a text"},
    {"rules: [{scope: {name: Yes}, weight: int8}]", "in quotes"},
    {"rules: [{scope: {name: 0o17}, weight: int8}]", "in quotes"},
    {"rules: [{scope: {name: 1e400}, weight: int8}]", "in quotes"},
    {"rules: [{scope: {name: ~}, weight: int8}]", "in quotes"},
    {"rules: [{scope: {name: }, weight: int8}]", "in quotes"},
    {"rules: [{scope: {name: ''}, weight: int8}]", "an empty text"},
    {"rules: [{scope: {}, weight: int8}]", "r.yaml:1:17: error: 'scope' is empty"},
    {"rules: [{scope: conv, weight: int8}]", "'scope' must be a map"},
    {"rules: [{scope: {name: [a]}, weight: int8}]", "'name' must be a text"},
    {"rules: [{activation: {dtype: int8, symmetric: no}}]",
     "'symmetric' must be one of false, true, not 'no'"},
    {"rules: [{activation: {dtype: int8, symmetric: 'true'}}]", "without quotes"},
    {"rules: [{activation: {dtype: int8, symmetric: True}}]", "did you mean 'true'?"},
    {"rules: [{weight: {dtype: int8, granularity: group, group_size: 010}}]",
     "a whole number from 2"},
    {"rules: [{weight: {dtype: int8, granularity: group, group_size: 0x20}}]",
     "a whole number from 2"},
    {"rules: [{weight: {dtype: int8, granularity: group, group_size: 3_2}}]",
     "a whole number from 2"},
    {"rules: [{weight: {dtype: int8, granularity: group, group_size: 32.5}}]",
     "must be a whole number"},
    {"rules: [{weight: {dtype: int8, granularity: group, group_size: '32'}}]",
     "a whole number from 2"},
    {"rules: [{weight: {dtype: int8, granularity: group, group_size: 1e400}}]",
     "a whole number from 2"},
    {"rules: [{weight: {dtype: int8, granularity: group, group_size: 1048577}}]",
     "a whole number from 2"},
    {"preset: int8\nbudget: {metric: top1, max_drop: .inf}", "a number from 0 on"},
    {"preset: int8\nbudget: {metric: top1, max_drop: 1e400}", "a number from 0 on"},
    {"preset: int8\nbudget: {metric: top1, max_drop: nan}", "a number from 0 on"},
    {"preset: int8\nbudget: {metric: sqnr, max_drop: 1, output: 1.5}", "must be a whole number"},
    {"preset: int8\nbudget: {metric: sqnr, max_drop: 1, output: -1}", "whole number from 0 on"},
    {"preset: int8\nbudget: {metric: top1, max_drop: 1, output: 0}", "is not for top1"},
    {"preset: int8\nbudget: {metric: top1}", "r.yaml:2:9: error: 'max_drop' is missing here"},
    {"preset: int8\nbudget: 3", "'budget' must be a map"},
    {"preset: [int8]", "'preset' must be one word"},
    {"preset: int-8", "r.yaml:1:9: error: 'preset' must be one of int8, int8-reduced"},
    {"rules: {weight: int8}", "'rules' must be a list"},
    {"rules: [weight]", "an item must be a map"},
    {"rules: [{algorithms: gptq}]", "'algorithms' must be a list"},
    {"objective: size", "a recipe must have a preset or rules"},
    {"", "r.yaml: error: is empty"},
    {"# nothing\n", "is empty"},
    {"int8", "a recipe must be a map"},
    {"[]", "a recipe must be a map"},
    {"rules:\n\t- weight: int8\n", "r.yaml:2:1: error: is not YAML: "},
    {"rules: [", "is not YAML: "},
    {"rules: \"\\0\"\n", "a NUL"},
    {"preset: \"int8", "is not YAML: "},
    {"? [a]\n: b\n", "a key must be a word"},
    {"preset: int8\n\xff\xfe", "r.yaml:2:1: error: is not YAML: invalid leading UTF-8 octet"},
    {"preset: in\x01t8\n", "r.yaml:1:11: error: is not YAML: "},
    {"%YAML 9.9\n---\npreset: int8\n", "is not YAML: "},
};

Test(config, words_mean_one_thing)
{
    for (size_t i = 0; i < sizeof word_row / sizeof *word_row; i++)
        expect_text_refused(word_row[i].text, word_row[i].part);
    expect_refused("preset: int8\0", 13, "is not YAML: ");
}

Test(config, what_does_not_go_together_is_refused)
{
    static const struct {
        const char *rule, *part;
    } row[] = {
        {"activation: int4", "r.yaml:1:22: error: activations must be float32 or int8, not int4"},
        {"activation: {dtype: float16}", "activations must be float32 or int8, not float16"},
        {"activation: {dtype: int8, granularity: channel}", "'granularity' is for weights"},
        {"activation: {dtype: int8, granularity: token}",
         "'granularity' token needs dynamic: true"},
        {"activation: {dtype: int8, granularity: tensor, dynamic: true}", "must be token"},
        {"activation: {dtype: int8, dynamic: true, observer: mse}",
         "'observer' has no meaning for dynamic scales"},
        {"activation: {dtype: int8, group_size: 32}", "'group_size' is only for weights"},
        {"activation: {dtype: float32, symmetric: true}", "'symmetric' has no meaning for floats"},
        {"activation: {dtype: int8, percentile: 99}", "'percentile' needs observer: percentile"},
        {"activation: {dtype: int8, observer: percentile, percentile: 50}", "above 50"},
        {"activation: {dtype: int8, observer: percentile, percentile: 101}", "above 50"},
        {"activation: {symmetric: true}", "'dtype' is missing here"},
        {"weight: {dtype: int8, dynamic: true}", "'dynamic' is only for activations"},
        {"weight: {dtype: int8, granularity: token}", "'granularity' token is only for activations"},
        {"activation: {dtype: int8, reduce_range: true}", "'reduce_range' is only for weights"},
        {"weight: {dtype: int4, reduce_range: true}", "'reduce_range' needs dtype: int8"},
        {"weight: {dtype: float16, reduce_range: true}", "'reduce_range' has no meaning for floats"},
        {"weight: {dtype: int8, reduce_range: 1}", "'reduce_range' must be one of false, true"},
        {"weight: {dtype: int8, group_size: 32}", "'group_size' needs granularity: group"},
        {"weight: {dtype: float16, granularity: channel}", "'granularity' has no meaning for floats"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[256];
        snprintf(text, sizeof text, "rules: [{%s}]", row[i].rule);
        expect_text_refused(text, row[i].part);
    }
}

/* -- the schema ------------------------------------------------------------------------------- */

static const Json *schema_root;

static bool accepts(const Json *schema, const Yaml *y);

static bool is_number(const Yaml *y, double *v)
{
    char *end;
    *v = y->kind == YAML_SCALAR && y->is_plain ? strtod(y->text, &end) : 0;
    return y->kind == YAML_SCALAR && y->is_plain && end != y->text && !*end;
}

static bool is_type(const char *type, const Yaml *y)
{
    double v;
    bool is_bool = y->kind == YAML_SCALAR && y->is_plain &&
                   (!strcmp(y->text, "true") || !strcmp(y->text, "false"));
    if (!strcmp(type, "object") || !strcmp(type, "array"))
        return y->kind == (*type == 'o' ? YAML_MAP : YAML_LIST);
    if (!strcmp(type, "boolean"))
        return is_bool;
    if (!strcmp(type, "number") || !strcmp(type, "integer"))
        return is_number(y, &v) && (*type == 'n' || v == floor(v));
    cr_assert_str_eq(type, "string");
    return y->kind == YAML_SCALAR && !is_bool && !is_number(y, &v) && (!y->is_plain || *y->text);
}

static bool equals(const Json *v, const Yaml *y)
{
    bool b;
    if (y->kind != YAML_SCALAR)
        return false;
    if (json_bool(v, &b))
        return y->is_plain && !strcmp(y->text, b ? "true" : "false");
    return !strcmp(json_string(v), y->text);
}

static const Yaml *item_of(const Yaml *map, const char *key)
{
    for (const Yaml *y = map->first; y; y = y->next)
        if (!strcmp(y->key, key))
            return y;
    return NULL;
}

static bool any_of(const Json *list, const Yaml *y)
{
    for (JsonIter it = json_iter(list); json_next(&it);)
        if (accepts(it.value, y))
            return true;
    return false;
}

static bool in_enum(const Json *list, const Yaml *y)
{
    for (JsonIter it = json_iter(list); json_next(&it);)
        if (equals(it.value, y))
            return true;
    return false;
}

static const Json *resolve(const char *ref)
{
    cr_assert(!strncmp(ref, "#/$defs/", 8), "%s", ref);
    const Json *to = json_get(json_get(schema_root, "$defs"), ref + 8);
    cr_assert_not_null(to, "%s", ref);
    return to;
}

static bool properties_fit(const Json *schema, const Yaml *y)
{
    const Json *properties = json_get(schema, "properties");
    bool b, closed = json_bool(json_get(schema, "additionalProperties"), &b) && !b;
    for (const Yaml *item = y->first; item; item = item->next) {
        const Json *of = json_get(properties, item->key);
        if ((!of && closed) || (of && !accepts(of, item)))
            return false;
    }
    for (JsonIter it = json_iter(json_get(schema, "required")); json_next(&it);)
        if (!item_of(y, json_string(it.value)))
            return false;
    for (JsonIter it = json_iter(json_get(schema, "dependentSchemas")); json_next(&it);)
        if (item_of(y, it.key) && !accepts(it.value, y))
            return false;
    return true;
}

static bool items_fit(const Json *schema, const Yaml *y)
{
    bool unique = false;
    json_bool(json_get(schema, "uniqueItems"), &unique);
    for (const Yaml *item = y->first; item; item = item->next) {
        if (json_get(schema, "items") && !accepts(json_get(schema, "items"), item))
            return false;
        for (const Yaml *other = y->first; unique && other != item; other = other->next)
            if (!strcmp(other->text, item->text))
                return false;
    }
    return true;
}

static bool bounds_fit(const Json *schema, const Yaml *y)
{
    double v = 0, bound;
    int64_t n;
    bool is = is_number(y, &v);
    if (is && json_float(json_get(schema, "minimum"), &bound) && v < bound)
        return false;
    if (is && json_float(json_get(schema, "maximum"), &bound) && v > bound)
        return false;
    if (is && json_float(json_get(schema, "exclusiveMinimum"), &bound) && v <= bound)
        return false;
    if (json_int(json_get(schema, "maxItems"), &n) && y->kind == YAML_LIST && y->n > n)
        return false;
    if (json_int(json_get(schema, "minProperties"), &n) && y->kind == YAML_MAP && y->n < n)
        return false;
    return !json_int(json_get(schema, "minLength"), &n) || y->kind != YAML_SCALAR ||
           (int64_t)strlen(y->text) >= n;
}

/* The keywords the schema uses, and no other. */
static bool accepts(const Json *schema, const Yaml *y)
{
    static const char *const known[] = {"$schema",
                                        "title",
                                        "description",
                                        "type",
                                        "properties",
                                        "enum",
                                        "required",
                                        "anyOf",
                                        "const",
                                        "items",
                                        "$ref",
                                        "$defs",
                                        "minimum",
                                        "maximum",
                                        "exclusiveMinimum",
                                        "maxItems",
                                        "minProperties",
                                        "minLength",
                                        "uniqueItems",
                                        "dependentSchemas",
                                        "additionalProperties"};
    for (JsonIter it = json_iter(schema); json_next(&it);) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i], it.key) != 0)
            i++;
        cr_assert_lt(i, sizeof known / sizeof *known, "keyword %s", it.key);
    }
    const Json *type = json_get(schema, "type"), *list = json_get(schema, "enum");
    const Json *ref = json_get(schema, "$ref"), *any = json_get(schema, "anyOf");
    const Json *is = json_get(schema, "const");
    return (!ref || accepts(resolve(json_string(ref)), y)) &&
           (!type || is_type(json_string(type), y)) && (!list || in_enum(list, y)) &&
           (!is || equals(is, y)) && (!any || any_of(any, y)) && bounds_fit(schema, y) &&
           (y->kind != YAML_MAP || properties_fit(schema, y)) &&
           (y->kind != YAML_LIST || items_fit(schema, y));
}

/* 1: both accept; 0: both refuse; -1: they differ. */
static int verdict(const char *text)
{
    Arena *a = arena_new();
    Diag d = {.out = fopen("/dev/null", "w")};
    Recipe r;
    const uint8_t *bytes = (const uint8_t *)text;
    bool reads = recipe_parse("r.yaml", bytes, strlen(text), a, &r, &d);
    const Yaml *y = yaml_parse(a, "r.yaml", bytes, strlen(text), &d);
    bool fits_schema = y && accepts(schema_root, y);
    fclose(d.out);
    arena_free(a);
    return reads == fits_schema ? reads : -1;
}

/* Every combination of what a format may say, and everything that the reader has a name for. */
static int compare_formats(const char *side)
{
    static const char *const dtype[] = {"float32", "float16", "int8", "int4", "int2"};
    static const char *const extra[] = {"",
                                        ", granularity: tensor",
                                        ", granularity: channel",
                                        ", granularity: group",
                                        ", granularity: token",
                                        ", granularity: row"};
    static const char *const more[] = {"",
                                       ", dynamic: true",
                                       ", dynamic: false",
                                       ", group_size: 32",
                                       ", group_size: 1",
                                       ", symmetric: true",
                                       ", symmetric: 1"};
    static const char *const seen[] = {"",
                                       ", observer: minmax",
                                       ", observer: moving_average",
                                       ", observer: kl, percentile: 99",
                                       ", observer: percentile, percentile: 99",
                                       ", observer: percentile",
                                       ", observer: mse",
                                       ", percentile: 99",
                                       ", observer: max"};
    int accepted = 0;
    for (int i = 0; i < 5 * 6 * 7 * 9; i++) {
        char text[256];
        snprintf(text, sizeof text, "rules: [{%s: {dtype: %s%s%s%s}}]", side, dtype[i % 5],
                 extra[i / 5 % 6], more[i / 30 % 7], seen[i / 210]);
        int v = verdict(text);
        cr_expect_geq(v, 0, "schema and reader differ: %s", text);
        accepted += v > 0;
    }
    return accepted;
}

/* About a third of them right. */
static const char *const odd_text[] = {
    "preset: int8",
    "preset: int9",
    "preset: 8",
    "objective: size",
    "preset: fp16\nobjective: latency",
    "preset: mixed\nobjective: fast",
    "rules: []",
    "rules: {}",
    "rules: [{}]",
    "rules: [{weight: int8}]",
    "rules: [{weight: int3}]",
    "rules: [{activation: int8}]",
    "rules: [{activation: int4}]",
    "rules: [{scope: {name: x}}]",
    "rules: [{scope: {name: x}, weight: int8}]",
    "rules: [{scope: {name: ''}, weight: int8}]",
    "rules: [{scope: {name: 3}, weight: int8}]",
    "rules: [{scope: {name: '3'}, weight: int8}]",
    "rules: [{scope: {}, weight: int8}]",
    "rules: [{scope: {nam: x}, weight: int8}]",
    "rules: [{algorithms: []}]",
    ("rules: [{algorithms: [gptq, hqq, awq, smoothquant, equalization, bias_correction, "
     "scale_estimation]}]"),
    "rules: [{algorithms: [gptq, gptq]}]",
    "rules: [{algorithms: gptq}]",
    "rules: [{algorithms: [x]}]",
    "preset: int8\nbudget: {metric: top1, max_drop: 0.3}",
    "preset: int8\nbudget: {metric: sqnr, max_drop: 40, output: 0}",
    "preset: int8\nbudget: {metric: sqnr, max_drop: 40, output: -1}",
    "preset: int8\nbudget: {metric: sqnr, max_drop: 40, output: 0.5}",
    "preset: int8\nbudget: {metric: top1}",
    "preset: int8\nbudget: {max_drop: 1}",
    "preset: int8\nbudget: {metric: x, max_drop: 1}",
    "preset: int8\nbudget: {metric: cosine, max_drop: -1}",
    "preset: int8\nbudget: {metric: sqnr, max_drop: 1000001}",
    "preset: int8\nbudget: {metric: sqnr, max_drop: x}",
    "preset: int8\nmore: 1",
    "[]",
    "x",
    "rules: [{weight: {dtype: int4, granularity: group, group_size: 32}}]",
    "rules: [{weight: {dtype: int4, granularity: group, group_size: 2.5}}]",
    "rules: [{weight: {dtype: int4, granularity: group, group_size: 1048577}}]",
    "rules: [{weight: {granularity: channel}}]",
    "rules: [{weight: []}]",
};

Test(config, schema_and_reader_agree)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    const uint8_t *data;
    size_t n;
    JsonDoc doc;
    cr_assert(file_map(files_new(a), ROOT "/docs/recipe.schema.json", &data, &n, &d));
    cr_assert(json_parse(a, "recipe.schema.json", data, n, &d, &doc));
    schema_root = doc.root;
    int accepted = 0;
    for (int i = 0; i < n_recipe_presets; i++)
        cr_expect_eq(verdict(recipe_preset[i].text), 1, "%s", recipe_preset[i].name);
    for (int i = 0; i < n_recipe_presets; i++) {
        char line[64];
        snprintf(line, sizeof line, "preset: %s", recipe_preset[i].name);
        cr_expect_eq(verdict(line), 1, "%s", line);
    }
    for (size_t i = 0; i < sizeof odd_text / sizeof *odd_text; i++) {
        int v = verdict(odd_text[i]);
        cr_expect_geq(v, 0, "schema and reader differ: %s", odd_text[i]);
        accepted += v > 0;
    }
    cr_expect(accepted > 8 && accepted < 20, "%d", accepted);
    cr_expect_gt(compare_formats("activation"), 10);
    cr_expect_gt(compare_formats("weight"), 40);
    arena_free(a);
}
