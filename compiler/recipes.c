/* recipes.c -- reads the file of a recipe into rules; and the presets, which are such files.
 *
 * Maps are read with tables of their keys, in the order of the table.  A mistake is reported
 * with its place, and reading goes on, so that one run lists all mistakes.
 * docs/recipe.schema.json describes the same format. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 1000 };

/* The rows of an embedding are looked up and not summed, so the errors of 4 bits would not average
 * out. */
#define TABLES_OF_INT8 \
    "  - scope: {op: embedding}\n" \
    "    weight: {dtype: int8, granularity: channel, symmetric: true}\n" \
    "    with_samples: []\n"

const RecipePreset recipe_preset[] = {
    {"int8", "static int8: scales from samples; dynamic where such scales are too coarse",
     "rules:\n"
     "  - activation: {dtype: int8, dynamic: auto, symmetric: false, observer: mse}\n"
     "    weight: {dtype: int8, granularity: channel, symmetric: true}\n"
     "    algorithms: [bias_correction]\n"
     "    with_samples: [gptq]\n"},
    {"int8-reduced", "static int8 with weights in -64 .. 64, for x86 CPUs without VNNI",
     "preset: int8\n"
     "rules:\n"
     "  - weight: {dtype: int8, reduce_range: true}\n"},
    {"int8-dynamic", "dynamic int8: activations get their scales at run time",
     "rules:\n"
     "  - activation: {dtype: int8, dynamic: true, symmetric: false}\n"
     "    weight: {dtype: int8, granularity: channel, symmetric: true}\n"},
    {"int8-weight", "weights kept as int8, computed as floats",
     "rules:\n"
     "  - activation: float32\n"
     "    weight: {dtype: int8, granularity: channel, symmetric: true}\n"},
    {"int4-group32", "weights kept as int4 in groups of 32, computed as floats",
     "rules:\n"
     "  - activation: float32\n"
     "    weight: {dtype: int4, granularity: group, group_size: 32, observer: mse}\n"
     "    with_samples: [scale_estimation, gptq]\n" TABLES_OF_INT8},
    {"int4-group128", "weights kept as int4 in groups of 128, computed as floats",
     "rules:\n"
     "  - activation: float32\n"
     "    weight: {dtype: int4, granularity: group, group_size: 128, observer: mse}\n"
     "    with_samples: [scale_estimation, gptq]\n" TABLES_OF_INT8},
    {"8da4w", "int4 weights in groups of 32, activations in dynamic int8",
     "rules:\n"
     "  - activation: {dtype: int8, dynamic: true, symmetric: false}\n"
     "    weight: {dtype: int4, granularity: group, group_size: 32, observer: mse}\n"
     "    with_samples: [scale_estimation, gptq]\n" TABLES_OF_INT8},
    {"fp16", "weights kept as float16",
     "rules:\n"
     "  - activation: float32\n"
     "    weight: float16\n"},
    {"mixed", "static int8, with the fewest float layers that keep the outputs",
     "budget: {metric: cosine, max_drop: 0.001}\n"
     "rules:\n"
     "  - activation: {dtype: int8, dynamic: auto, symmetric: false, observer: mse}\n"
     "    weight: {dtype: int8, granularity: channel, symmetric: true}\n"
     "    algorithms: [bias_correction]\n"},
};
const int n_recipe_presets = sizeof recipe_preset / sizeof *recipe_preset;

typedef struct Reader {
    Arena *a;
    Diag *diag;
    Recipe *out;
    bool is_preset;
} Reader;

/* Reads y, the value of a key, into the member that the key's row names. */
typedef void ReadFn(Reader *r, const Yaml *y, void *to);

typedef struct Key {
    const char *name;
    ReadFn *read;
    size_t at;
} Key;

#define N(table) ((int)(sizeof(table) / sizeof *(table)))

/* -- values ----------------------------------------------------------------------------------- */

static bool is_kind(Reader *r, const Yaml *y, YamlKind kind, const char *want)
{
    return yaml_is(y, kind, want, r->a, r->diag);
}

/* Returns the name of y in messages: its key in quotes, or "an item" for an item of a list. */
static const char *called(const Reader *r, const Yaml *y)
{
    return y->key ? arena_printf(r->a, "'%s'", y->key) : "an item";
}

/* Returns the index of the word y in a list that ends with NULL.  If the list lacks the word, it
 * reports that and returns -1. */
static int choice(Reader *r, const Yaml *y, const char *const *list)
{
    if (!is_kind(r, y, YAML_SCALAR, "one word"))
        return -1;
    const char *all = "";
    Near near = near_word(y->text);
    for (int i = 0; list[i]; i++) {
        if (!strcmp(y->text, list[i]))
            return i;
        near_consider(&near, list[i]);
        all = arena_printf(r->a, "%s%s%s", all, i ? ", " : "", list[i]);
    }
    diag_error(r->diag, yaml_loc(y), "%s must be one of %s, not '%s'%s", called(r, y), all, y->text,
               near_text(r->a, &near));
    return -1;
}

static void read_choice(Reader *r, const Yaml *y, const char *const *list, int *to)
{
    int i = choice(r, y, list);
    *to = i < 0 ? *to : i;
}

static void read_bool(Reader *r, const Yaml *y, void *to)
{
    static const char *const list[] = {"false", "true", NULL};
    if (y->kind == YAML_SCALAR && !y->is_plain)
        diag_error(r->diag, yaml_loc(y), "'%s' must be true or false, without quotes", y->key);
    else
        *(bool *)to = choice(r, y, list) == 1;
}

/* Returns whether s is a decimal number: digits, then optionally a point and digits, then
 * optionally an exponent.  Other bases, signs, separators and leading zeros are not accepted. */
static bool is_decimal(const char *s)
{
    static const char digits[] = "0123456789";
    size_t n = strspn(s, digits), fraction = 0;
    if (!n || (n > 1 && *s == '0'))
        return false;
    s += n;
    if (*s == '.' && (fraction = strspn(s + 1, digits)) == 0)
        return false;
    s += fraction ? fraction + 1 : 0;
    if (*s != 'e' && *s != 'E')
        return !*s;
    s += 1 + (s[1] == '-' || s[1] == '+');
    return *s && !s[strspn(s, digits)];
}

/* Reads a number in [lo, hi], which messages describe with `want`. */
static bool number(Reader *r, const Yaml *y, double lo, double hi, const char *want, double *to)
{
    double v = y->kind == YAML_SCALAR && y->is_plain && is_decimal(y->text) ? strtod(y->text, NULL)
                                                                            : -1;
    if (y->kind == YAML_BROKEN)
        return false;
    if (v < lo || v > hi)
        return diag_error(r->diag, yaml_loc(y), "'%s' must be %s", y->key, want);
    *to = v;
    return true;
}

/* Returns whether another YAML reader may read the word as something other than text. */
static bool is_ambiguous(const char *s)
{
    static const char *const word[] = {"",   "~",   "null", "true", "false", "yes",  "no",
                                       "on", "off", "y",    "n",    ".nan",  ".inf", "-.inf"};
    char lower[8] = "";
    for (size_t i = 0; i < sizeof lower - 1 && s[i]; i++)
        lower[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]);
    for (int i = 0; strlen(s) < sizeof lower && i < N(word); i++)
        if (!strcmp(lower, word[i]))
            return true;
    return *s && !s[strspn(s, "0123456789+-.eExXo_")] && strpbrk(s, "0123456789");
}

static void read_glob(Reader *r, const Yaml *y, void *to)
{
    if (!is_kind(r, y, YAML_SCALAR, "a text"))
        return;
    if (y->is_plain && is_ambiguous(y->text))
        diag_error(r->diag, yaml_loc(y), "'%s' must be a text: put '%s' in quotes", y->key,
                   y->text);
    else if (!*y->text)
        diag_error(r->diag, yaml_loc(y), "'%s' is an empty text, which matches nothing", y->key);
    else
        *(const char **)to = y->text;
}

/* -- maps ------------------------------------------------------------------------------------- */

/* Reads the values of a map with a table of its keys.  Sets found[i] to the value of key i, or to
 * NULL. */
static bool read_map(Reader *r, const Yaml *map, const Key *key, int n, void *to,
                     const Yaml **found)
{
    const char **name = NEW(r->a, const char *, n + 1);
    for (int i = 0; i < n; i++)
        name[i] = key[i].name;
    if (!yaml_map(map, name, n, found, r->a, r->diag))
        return false;
    for (int i = 0; i < n; i++)
        if (found[i])
            key[i].read(r, found[i], (char *)to + key[i].at);
    return true;
}

/* Reports y, unless it is NULL. */
static void refuse(Reader *r, const Yaml *y, const char *why)
{
    if (y)
        diag_error(r->diag, yaml_key_loc(y), "'%s' %s", y->key, why);
}

static void need(Reader *r, const Yaml *map, const Yaml *y, const char *key)
{
    yaml_need(map, y, key, r->diag);
}

/* -- formats ---------------------------------------------------------------------------------- */

typedef enum DtypeName { FLOAT32, FLOAT16, INT8, INT4 } DtypeName;
typedef enum Dynamic { IS_STATIC, IS_DYNAMIC, IS_AUTO } Dynamic;
static const char *const dtypes[] = {"float32", "float16", "int8", "int4", NULL};
static const char *const granularities[] = {"tensor", "channel", "group", "token", NULL};
static const char *const dynamics[] = {"false", "true", "auto", NULL};
static const char *const observers[] = {"minmax", "moving_average", "percentile", "mse", "kl",
                                        NULL};

typedef struct Format { /* a format as the file writes it; -1: it is not given */
    int dtype, granularity, observer;
    double group, percentile;
    bool symmetric, reduce_range;
    int dynamic; /* an index into `dynamics` */
} Format;

static void read_dtype(Reader *r, const Yaml *y, void *to)
{
    read_choice(r, y, dtypes, to);
}

static void read_dynamic(Reader *r, const Yaml *y, void *to)
{
    if (y->kind == YAML_SCALAR && !y->is_plain)
        diag_error(r->diag, yaml_loc(y), "'%s' must be true, false or auto, without quotes", y->key);
    else
        read_choice(r, y, dynamics, to);
}

static void read_granularity(Reader *r, const Yaml *y, void *to)
{
    read_choice(r, y, granularities, to);
}

static void read_observer(Reader *r, const Yaml *y, void *to)
{
    read_choice(r, y, observers, to);
}

static void read_group(Reader *r, const Yaml *y, void *to)
{
    double v = 0;
    if (!number(r, y, 2, 1 << 20, "a whole number from 2 to 1048576", &v))
        return;
    if (v != floor(v))
        diag_error(r->diag, yaml_loc(y), "'%s' must be a whole number", y->key);
    *(double *)to = v;
}

static void read_percentile(Reader *r, const Yaml *y, void *to)
{
    if (number(r, y, 50, 100, "a number above 50 and up to 100", to) && *(double *)to == 50)
        diag_error(r->diag, yaml_loc(y), "'%s' must be a number above 50 and up to 100", y->key);
}

enum { K_DTYPE, K_GRANULARITY, K_GROUP, K_SYMMETRIC, K_REDUCE, K_DYNAMIC, K_OBSERVER, K_PERCENTILE, N_KEYS };

static const Key format_key[N_KEYS] = {
    [K_DTYPE] = {"dtype", read_dtype, offsetof(Format, dtype)},
    [K_GRANULARITY] = {"granularity", read_granularity, offsetof(Format, granularity)},
    [K_GROUP] = {"group_size", read_group, offsetof(Format, group)},
    [K_SYMMETRIC] = {"symmetric", read_bool, offsetof(Format, symmetric)},
    [K_REDUCE] = {"reduce_range", read_bool, offsetof(Format, reduce_range)},
    [K_DYNAMIC] = {"dynamic", read_dynamic, offsetof(Format, dynamic)},
    [K_OBSERVER] = {"observer", read_observer, offsetof(Format, observer)},
    [K_PERCENTILE] = {"percentile", read_percentile, offsetof(Format, percentile)},
};

/* Returns whether the observer keeps a histogram, which shows how coarse scales are. */
static bool has_histogram(const Format *f)
{
    return f->observer == OBS_PERCENTILE || f->observer == OBS_MSE || f->observer == OBS_KL;
}

static void check_activation(Reader *r, const Yaml *y, const Format *f, const Yaml **at)
{
    static const char only[] = "has no meaning for dynamic scales";
    const bool is_dynamic = f->dynamic == IS_DYNAMIC;
    if (f->dtype == FLOAT16 || f->dtype == INT4)
        diag_error(r->diag, yaml_loc(at[K_DTYPE] ? at[K_DTYPE] : y),
                   "activations must be float32 or int8, not %s", dtypes[f->dtype]);
    if (f->granularity == PER_CHANNEL || f->granularity == PER_GROUP)
        refuse(r, at[K_GRANULARITY],
               "is for weights; activations have a scale per tensor, or per "
               "token where they are dynamic");
    if (f->granularity == PER_TENSOR && is_dynamic)
        refuse(r, at[K_GRANULARITY], "must be token for dynamic scales");
    if (f->granularity == PER_TOKEN && !is_dynamic)
        refuse(r, at[K_GRANULARITY], "token needs dynamic: true");
    if (f->dynamic == IS_AUTO && !has_histogram(f))
        refuse(r, at[K_DYNAMIC], "auto needs observer: percentile, mse or kl");
    refuse(r, at[K_GROUP], "is only for weights");
    refuse(r, at[K_REDUCE], "is only for weights");
    refuse(r, is_dynamic ? at[K_OBSERVER] : NULL, only);
    refuse(r, is_dynamic ? at[K_PERCENTILE] : NULL, only);
}

static void check_weight(Reader *r, const Yaml *y, const Format *f, const Yaml **at)
{
    refuse(r, at[K_DYNAMIC], "is only for activations");
    if (f->granularity == PER_TOKEN)
        refuse(r, at[K_GRANULARITY], "token is only for activations");
    refuse(r, f->dtype == INT4 ? at[K_REDUCE] : NULL, "needs dtype: int8");
    if (f->granularity == PER_GROUP)
        need(r, y, at[K_GROUP], "group_size");
    else if (f->granularity >= 0 || !at[K_GRANULARITY])
        refuse(r, at[K_GROUP], "needs granularity: group");
}

static void check_format(Reader *r, const Yaml *y, const Format *f, const Yaml **at, bool is_weight)
{
    if (y->kind == YAML_MAP)
        need(r, y, at[K_DTYPE], "dtype");
    for (int k = K_DTYPE + 1; (f->dtype == FLOAT32 || f->dtype == FLOAT16) && k < N_KEYS; k++) {
        refuse(r, at[k], "has no meaning for floats");
        at[k] = NULL;
    }
    if (f->observer >= 0 ? f->observer != OBS_PERCENTILE : !at[K_OBSERVER])
        refuse(r, at[K_PERCENTILE], "needs observer: percentile");
    if (is_weight)
        check_weight(r, y, f, at);
    else
        check_activation(r, y, f, at);
}

/* Reads a format, which is a map or only a dtype. */
static QuantFormat read_format(Reader *r, const Yaml *y, bool is_weight)
{
    const Yaml *at[N_KEYS] = {0};
    Format f = {-1, -1, -1, 0, 99.99, is_weight, false, IS_STATIC};
    if (y->kind == YAML_SCALAR)
        read_dtype(r, y, &f.dtype);
    else
        read_map(r, y, format_key, N_KEYS, &f, at);
    check_format(r, y, &f, at, is_weight);
    const int granularity = f.dynamic == IS_DYNAMIC ? PER_TOKEN : is_weight ? PER_CHANNEL : PER_TENSOR;
    if (f.dtype == FLOAT32 || f.dtype == FLOAT16 || f.dtype < 0)
        return (QuantFormat){.dtype = f.dtype == FLOAT16 ? ETC_F16 : ETC_F32};
    return (QuantFormat){
        .dtype = ETC_I8,
        .bits = f.dtype == INT4 ? 4 : 8,
        .granularity = (Granularity)(f.granularity < 0 ? granularity : f.granularity),
        .group = (int)f.group,
        .symmetric = f.symmetric,
        .reduce_range = f.reduce_range,
        .dynamic = f.dynamic == IS_DYNAMIC,
        .may_be_dynamic = f.dynamic == IS_AUTO,
        .observer = f.observer < 0 ? OBS_MINMAX : (ObserverKind)f.observer,
        .percentile = f.percentile,
    };
}

/* -- rules ------------------------------------------------------------------------------------ */

static void read_op(Reader *r, const Yaml *y, void *to)
{
    read_glob(r, y, to);
    const char *glob = *(const char **)to;
    if (!glob || glob[strcspn(glob, "*?")])
        return;
    Near near = near_operator(r->a, glob);
    if (near.best && !near.edits)
        return;
    diag_error(r->diag, yaml_loc(y), "there is no operator '%s'%s", glob, near_text(r->a, &near));
}

static void read_backend(Reader *r, const Yaml *y, void *to)
{
    read_glob(r, y, to);
    const char *glob = *(const char **)to;
    if (!glob || glob[strcspn(glob, "*?")] || !strcmp(glob, "portable"))
        return;
    Near near = near_word(glob);
    near_consider(&near, "portable");
    for (const Backend *const *b = all_backends; *b; b++)
        near_consider(&near, (*b)->name);
    if (!backend_find(glob, strlen(glob)))
        diag_error(r->diag, yaml_loc(y), "there is no backend '%s'%s", glob,
                   near_text(r->a, &near));
}

static void read_scope(Reader *r, const Yaml *y, void *to)
{
    static const Key key[] = {{"name", read_glob, offsetof(QuantRule, name)},
                              {"op", read_op, offsetof(QuantRule, op)},
                              {"module", read_glob, offsetof(QuantRule, module)},
                              {"backend", read_backend, offsetof(QuantRule, backend)}};
    const Yaml *found[N(key)];
    if (read_map(r, y, key, N(key), to, found) && !y->n)
        diag_error(r->diag, yaml_loc(y),
                   "'scope' is empty; a rule without one applies to all nodes");
    QuantRule *rule = to;
    rule->line = y->key_line;
    rule->column = y->key_column;
}

static void read_activation(Reader *r, const Yaml *y, void *to)
{
    QuantRule *rule = to;
    rule->activation = read_format(r, y, false);
    rule->has_activation = true;
}

static void read_weight(Reader *r, const Yaml *y, void *to)
{
    QuantRule *rule = to;
    rule->weight = read_format(r, y, true);
    rule->has_weight = true;
}

static unsigned read_algorithm_list(Reader *r, const Yaml *y)
{
    static const char *const list[] = {"bias_correction",  "equalization", "smoothquant", "awq",
                                       "scale_estimation", "gptq",         "hqq",         NULL};
    unsigned found = 0;
    if (!is_kind(r, y, YAML_LIST, "a list"))
        return 0;
    for (const Yaml *item = y->first; item; item = item->next) {
        int i = choice(r, item, list);
        if (i >= 0 && found & 1u << i)
            diag_error(r->diag, yaml_loc(item), "'%s' appears here a second time", list[i]);
        found |= i < 0 ? 0 : 1u << i;
    }
    return found;
}

static void read_algorithms(Reader *r, const Yaml *y, void *to)
{
    QuantRule *rule = to;
    rule->has_algorithms = true;
    rule->algorithms = read_algorithm_list(r, y);
}

static void read_with_samples(Reader *r, const Yaml *y, void *to)
{
    QuantRule *rule = to;
    rule->has_with_samples = true;
    rule->with_samples = read_algorithm_list(r, y);
}

static void read_rule(Reader *r, const Yaml *y)
{
    static const Key key[] = {{"scope", read_scope, 0},
                              {"activation", read_activation, 0},
                              {"weight", read_weight, 0},
                              {"algorithms", read_algorithms, 0},
                              {"with_samples", read_with_samples, 0}};
    const Yaml *found[N(key)];
    QuantRule rule = {0};
    if (!read_map(r, y, key, N(key), &rule, found))
        return;
    if (!found[1] && !found[2] && !found[3] && !found[4])
        diag_error(r->diag, yaml_loc(y),
                   "a rule must name activation, weight or algorithms");
    if (r->is_preset)
        rule.line = rule.column = 0;
    PUSH(r->a, r->out->rule, r->out->n_rules, rule);
}

static void read_rules(Reader *r, const Yaml *y, void *to)
{
    (void)to;
    if (!is_kind(r, y, YAML_LIST, "a list"))
        return;
    if (y->n > MAX_RULES) {
        diag_error(r->diag, yaml_loc(y), "more than 1000 rules");
        return;
    }
    for (const Yaml *item = y->first; item; item = item->next)
        read_rule(r, item);
}

/* -- recipes ---------------------------------------------------------------------------------- */

static void read_objective(Reader *r, const Yaml *y, void *to)
{
    static const char *const list[] = {"size", "latency", NULL};
    *(bool *)to = choice(r, y, list) == 1;
}

static void read_metric(Reader *r, const Yaml *y, void *to)
{
    *(Metric *)to = (Metric)(choice(r, y, metric_name) + 1);
}

static void read_drop(Reader *r, const Yaml *y, void *to)
{
    number(r, y, 0, 1e6, "a number from 0 on", to);
}

enum { MOST_OUTPUT = 1 << 20 };

static void read_output(Reader *r, const Yaml *y, void *to)
{
    double v = 0;
    if (number(r, y, 0, MOST_OUTPUT, "a whole number from 0 on", &v) && v != floor(v))
        diag_error(r->diag, yaml_loc(y), "'%s' must be a whole number", y->key);
    *(int *)to = (int)v + 1;
}

static void read_budget(Reader *r, const Yaml *y, void *to)
{
    static const Key key[] = {{"metric", read_metric, offsetof(Recipe, metric)},
                              {"max_drop", read_drop, offsetof(Recipe, max_drop)},
                              {"output", read_output, offsetof(Recipe, output)}};
    const Yaml *found[N(key)];
    r->out->output = 0;
    if (!read_map(r, y, key, N(key), to, found))
        return;
    need(r, y, found[0], "metric");
    need(r, y, found[1], "max_drop");
    if (found[2] && r->out->metric == METRIC_TOP1)
        diag_error(r->diag, yaml_loc(found[2]), "'output' is not for top1, which judges the first output");
}

bool recipe_set_budget(const char *text, Recipe *out)
{
    const size_t n = strcspn(text, ":=");
    char *end = NULL;
    out->metric = METRIC_NONE;
    out->output = 0;
    for (int i = 0; metric_name[i]; i++)
        if (strlen(metric_name[i]) == n && !strncmp(metric_name[i], text, n))
            out->metric = (Metric)(i + 1);
    text += n;
    if (*text == ':' && out->metric != METRIC_TOP1) {
        const size_t digits = strspn(text + 1, "0123456789");
        out->output = digits && digits < 7 ? atoi(text + 1) + 1 : 0;
        text += out->output ? digits + 1 : 0;
    }
    out->max_drop = *text == '=' ? strtod(text + 1, &end) : -1;
    return out->metric && end && end != text + 1 && !*end && out->max_drop >= 0 &&
           out->max_drop <= 1e6;
}

static ReadFn read_preset;

static void read_recipe(Reader *r, const Yaml *root)
{
    static const Key key[] = {{"preset", read_preset, 0},
                              {"objective", read_objective, offsetof(Recipe, for_latency)},
                              {"budget", read_budget, 0},
                              {"rules", read_rules, 0}};
    const Yaml *found[N(key)];
    if (root->kind != YAML_MAP)
        diag_error(r->diag, yaml_loc(root),
                   "a recipe must be a map of preset, objective, budget, rules");
    else if (read_map(r, root, key, N(key), r->out, found) && !found[0] && !found[3])
        diag_error(r->diag, yaml_loc(root), "a recipe must have a preset or rules");
}

static const RecipePreset *preset_find(const char *name)
{
    for (int i = 0; i < n_recipe_presets; i++)
        if (!strcmp(recipe_preset[i].name, name))
            return &recipe_preset[i];
    return NULL;
}

bool recipe_is_preset(const char *name)
{
    return preset_find(name) != NULL;
}

static void start_from(Reader *r, const RecipePreset *p)
{
    Reader inner = *r;
    inner.is_preset = true;
    const char *file = arena_printf(r->a, "preset %s", p->name);
    r->out->id = statistics_hash(r->out->id, p->text, strlen(p->text));
    const Yaml *root = yaml_parse(r->a, file, (const uint8_t *)p->text, strlen(p->text), r->diag);
    if (root)
        read_recipe(&inner, root);
}

static void read_preset(Reader *r, const Yaml *y, void *to)
{
    const char *name[32] = {NULL};
    (void)to;
    for (int i = 0; i < n_recipe_presets && i < 31; i++)
        name[i] = recipe_preset[i].name;
    int i = choice(r, y, name);
    if (i >= 0)
        start_from(r, &recipe_preset[i]);
}

bool recipe_parse(const char *file, const uint8_t *data, size_t n, Arena *a, Recipe *out, Diag *d)
{
    int before = diag_errors(d);
    *out = (Recipe){.file = file, .id = statistics_hash(0, data, n)};
    Reader r = {.a = a, .diag = d, .out = out};
    const Yaml *root = yaml_parse(a, file, data, n, d);
    if (root)
        read_recipe(&r, root);
    return diag_errors(d) == before;
}

/* Reports a word that is no preset and names no file. */
static bool no_such_recipe(const char *name, Arena *a, Diag *d)
{
    const char *all = "";
    Near near = near_word(name);
    for (int i = 0; i < n_recipe_presets; i++) {
        near_consider(&near, recipe_preset[i].name);
        all = arena_printf(a, "%s%s%s", all, i ? ", " : "", recipe_preset[i].name);
    }
    return diag_error(d, (Loc){0}, "there is no recipe '%s'%s; the presets are %s", name,
                      near_text(a, &near), all);
}

bool recipe_read(Files *files, const char *name, Arena *a, Recipe *out, Diag *d)
{
    const RecipePreset *preset = preset_find(name);
    const uint8_t *data;
    size_t n;
    if (preset) {
        Reader r = {.a = a, .diag = d, .out = out};
        *out = (Recipe){.file = preset->name};
        start_from(&r, preset);
        return true;
    }
    if (!strpbrk(name, "/.") && !file_exists(name))
        return no_such_recipe(name, a, d);
    return file_map(files, name, &data, &n, d) && recipe_parse(name, data, n, a, out, d);
}
