/* gate.c -- `etc gate`: compares the numbers of a .pte with those of an earlier one.  Size, plan
 * and delegation are read from the file itself.  Accuracy comes from the output of
 * `etc verify --json`, and the predicted time from that of `etc compile --json`.  The run time is
 * measured here.  A number may get better by any amount, and worse by no more than its
 * tolerance. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/run.h"
#include "compiler/import/internal.h"
#include "runtime-lite/delegates/xnn_schema.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Kind {
    const char *name;
    int worse; /* 1: a larger number is worse; -1: a smaller one is */
} Kind;

static const Kind kind_row[] = {
    {"bytes", 1},    {"arena", 1},   {"delegates", 1}, {"kernel_calls", 1}, {"delegated_percent", -1},
    {"predicted_seconds", 1},        {"seconds", 1},
    {"max_abs", 1},  {"sqnr_db", -1}, {"cosine", -1},  {"top1", -1},        {"accuracy", -1},
};

enum {
    N_KINDS = sizeof kind_row / sizeof *kind_row,
    MOST = 10000 /* the most numbers of a baseline, far more than any file has */
};

typedef struct Number {
    const char *name; /* what it belongs to, and its kind, such as "forward.arena" */
    const Kind *kind;
    double is, was, slack; /* slack: the amount by which it may get worse */
    bool is_there, was_there, ok;
} Number;

typedef struct Gate {
    const Options *o;
    Arena *arena;
    Diag *diag;
    Number *number; /* the numbers of the file, then those that only the baseline has */
    int n;
} Gate;

/* -- numbers ----------------------------------------------------------------------------------- */

static const Kind *kind_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (int i = 0; i < N_KINDS; i++)
        if (!strcmp(dot ? dot + 1 : name, kind_row[i].name))
            return &kind_row[i];
    return NULL;
}

static Number *find(const Gate *g, const char *name)
{
    for (int i = 0; i < g->n; i++)
        if (!strcmp(g->number[i].name, name))
            return &g->number[i];
    return NULL;
}

static Number *add(Gate *g, const char *of, const char *kind)
{
    const char *name = *of ? arena_printf(g->arena, "%s.%s", of, kind) : kind;
    Number x = {.name = name, .kind = kind_of(name), .ok = true};
    assert(x.kind);
    PUSH(g->arena, g->number, g->n, x);
    return &g->number[g->n - 1];
}

static void add_is(Gate *g, const char *of, const char *kind, double value)
{
    Number *x = add(g, of, kind);
    x->is = value;
    x->is_there = true;
}

/* Counts the nodes that delegates run.  A blob that only its backend can read counts as one. */
static int64_t delegated_nodes(const PteMethod *m)
{
    int64_t n = 0;
    for (int i = 0; i < m->n_delegates; i++) {
        int64_t before = n;
        for (int k = 0; m->delegate[i].is_read && k < XNN_KINDS; k++)
            n += m->delegate[i].n_nodes[k];
        n += n == before;
    }
    return n;
}

static void add_method(Gate *g, const PteMethod *m)
{
    double arena = 0;
    int64_t calls = 0, delegated = delegated_nodes(m);
    for (int i = 0; i < m->n_pools; i++)
        arena += (double)m->pool[i];
    for (int i = 0; i < m->n_ops; i++)
        calls += m->op[i].calls;
    add_is(g, m->name, "arena", arena);
    add_is(g, m->name, "delegates", m->n_delegates);
    add_is(g, m->name, "kernel_calls", (double)calls);
    double all = (double)(calls + delegated);
    add_is(g, m->name, "delegated_percent", all > 0 ? 100 * (double)delegated / all : 0);
}

static bool add_file(Gate *g)
{
    EtcProgram p;
    if (!pte_open(g->o->files, g->o->model, &p, g->diag))
        return false;
    add_is(g, "", "bytes", (double)p.n_bytes);
    for (int i = 0; i < etc_program_n_methods(&p); i++) {
        PteMethod m = pte_method(&p, i, g->arena);
        add_method(g, &m);
    }
    return true;
}

/* -- numbers from other commands --------------------------------------------------------------- */

/* Reads the JSON file that a command wrote.  Checks that it has `key`: a number for
 * predicted_seconds, else a list or an object. */
static bool read_json(const Gate *g, const char *path, const char *key, const char *command,
                      JsonDoc *doc)
{
    const uint8_t *data;
    double number = -1;
    size_t n;
    if (!file_map(g->o->files, path, &data, &n, g->diag) ||
        !json_parse(g->arena, path, data, n, g->diag, doc))
        return false;
    const Json *v = json_get(doc->root, key);
    bool is_time = !strcmp(key, "predicted_seconds");
    bool ok = is_time ? json_float(v, &number) && number >= 0
                      : json_is_array(v) || json_is_object(v);
    return ok || diag_error(g->diag, (Loc){.file = path},
                            "has no '%s': it is not what etc %s writes", key, command);
}

static void add_output(Gate *g, int i, const Json *v)
{
    static const char *const kind[] = {"max_abs", "sqnr_db", "cosine"};
    const char *of = arena_printf(g->arena, "output_%d", i);
    double value, rows, agree;
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
        if (json_float(json_get(v, kind[k]), &value))
            add_is(g, of, kind[k], value);
    if (json_float(json_get(v, "rows"), &rows) && rows > 0 &&
        json_float(json_get(v, "top1_agree"), &agree))
        add_is(g, of, "top1", agree / rows);
}

static bool add_verified(Gate *g)
{
    JsonDoc doc;
    double rows, right;
    int i = 0;
    if (!g->o->verified)
        return true;
    if (!read_json(g, g->o->verified, "outputs", "verify --json", &doc))
        return false;
    for (JsonIter it = json_iter(json_get(doc.root, "outputs")); json_next(&it);)
        add_output(g, i++, it.value);
    const Json *labels = json_get(doc.root, "labels");
    if (json_is_object(labels) && json_float(json_get(labels, "rows"), &rows) && rows > 0 &&
        json_float(json_get(labels, "file"), &right))
        add_is(g, "", "accuracy", right / rows);
    return true;
}

/* -- time -------------------------------------------------------------------------------------- */

static bool add_predicted(Gate *g)
{
    JsonDoc doc;
    double seconds;
    const char *path = g->o->compiled;
    if (!path)
        return true;
    if (!read_json(g, path, "predicted_seconds", "compile --json", &doc))
        return false;
    if (json_float(json_get(doc.root, "predicted_seconds"), &seconds))
        add_is(g, "", "predicted_seconds", seconds);
    return true;
}

/* Adds the run time of the method that --method names, if --runs is given.  A file that needs
 * XNNPACK is measured in etc-xnn. */
static bool add_measured(Gate *g)
{
    EtcProgram p;
    double seconds;
    if (!g->o->runs)
        return true;
    if (!pte_open(g->o->files, g->o->model, &p, g->diag))
        return false;
    runner_become_xnn(&p, g->o, g->arena);
    if (!bench_median(g->o, g->arena, g->diag, &seconds))
        return false;
    assert(seconds >= 0);
    add_is(g, "", "seconds", seconds);
    return true;
}

/* -- the baseline ------------------------------------------------------------------------------ */

static bool add_was(Gate *g, const char *name, const Json *v)
{
    double value;
    if (!name || !kind_of(name) || !json_float(v, &value))
        return diag_error(g->diag, (Loc){.file = g->o->baseline},
                          "'%s' is not a number that `etc gate` knows", name ? name : "?");
    Number *x = find(g, name);
    x = x ? x : add(g, "", name);
    x->was = value;
    x->was_there = true;
    return true;
}

static bool read_baseline(Gate *g)
{
    JsonDoc doc;
    if (!read_json(g, g->o->baseline, "numbers", "gate --write-baseline", &doc)) {
        if (!file_exists(g->o->baseline))
            diag_note(g->diag, "--write-baseline makes it, from the numbers of this file");
        return false;
    }
    const Json *all = json_get(doc.root, "numbers");
    bool ok = json_count(all) <= MOST || diag_error(g->diag, (Loc){.file = g->o->baseline},
                                                    "contains more than %d numbers", MOST);
    for (JsonIter it = json_iter(all); ok && json_next(&it);)
        ok = add_was(g, it.key, it.value);
    return ok;
}

static const char *json_number(bool is_there, double v, Arena *a)
{
    return is_there ? arena_printf(a, "%.17g", v) : "null";
}

static void print_json(const Gate *g, const Number *first)
{
    Arena *a = g->arena;
    printf("{\"schema\": 1, \"file\": %s, \"baseline\": %s, \"ok\": %s, \"first\": %s, \"numbers\": [",
           json_text(a, g->o->model), json_text(a, g->o->baseline), first ? "false" : "true",
           first ? json_text(a, first->name) : "null");
    for (int i = 0; i < g->n; i++) {
        const Number *x = &g->number[i];
        printf("%s{\"name\": %s, \"was\": %s, \"is\": %s, \"slack\": %.17g, \"ok\": %s}", comma(i),
               json_text(a, x->name), json_number(x->was_there, x->was, a),
               json_number(x->is_there, x->is, a), x->slack, x->ok ? "true" : "false");
    }
    puts("]}");
}

static bool write_baseline(const Gate *g)
{
    Text t;
    OutBatch b = {.arena = g->arena};
    if (text_open(&t)) {
        fprintf(t.f, "{\"schema\": 1, \"numbers\": {");
        for (int i = 0; i < g->n; i++)
            fprintf(t.f, "%s\n  %s: %.17g", i ? "," : "", json_text(g->arena, g->number[i].name),
                    g->number[i].is);
        fprintf(t.f, "\n}}\n");
    }
    bool ok = output_text(g->o, &b, &t, g->o->baseline, g->diag) && out_stage(&b, g->diag);
    if (ok && g->o->json)
        print_json(g, NULL);
    ok = ok && finish_files(g->o, &b, g->diag);
    out_discard(&b);
    if (ok && !g->o->quiet)
        say(stderr, "%s: %d numbers of '%s'\n", g->o->baseline, g->n, g->o->model);
    return ok;
}

/* -- tolerances -------------------------------------------------------------------------------- */

/* Reads a tolerance: an amount such as "1024", or a percentage of the baseline's number such as
 * "2%". */
static bool read_slack(const Yaml *y, double *slack, bool *is_percent)
{
    char *end;
    *slack = strtod(y->text, &end);
    *is_percent = *end == '%';
    return end != y->text && !end[*is_percent] && *slack >= 0 && isfinite(*slack);
}

static bool unknown(const Gate *g, const Yaml *y)
{
    Near near = near_word(y->key);
    for (int i = 0; i < N_KINDS; i++)
        near_consider(&near, kind_row[i].name);
    for (int i = 0; i < g->n; i++)
        near_consider(&near, g->number[i].name);
    return diag_error(g->diag, yaml_key_loc(y), "there is no number '%s'%s", y->key,
                      near_text(g->arena, &near));
}

/* Sets the tolerance of a number, or of all numbers of a kind.  Those of kinds are set first, so
 * they hold for the numbers that have none of their own. */
static bool set_slack(Gate *g, const Yaml *y, bool by_kind)
{
    double slack;
    bool is_percent, known = false;
    if (!read_slack(y, &slack, &is_percent))
        return diag_error(g->diag, yaml_loc(y), "'%s': a tolerance is a number or a percentage",
                          y->text);
    for (int i = 0; i < g->n; i++) {
        Number *x = &g->number[i];
        if (strcmp(by_kind ? x->kind->name : x->name, y->key) != 0)
            continue;
        known = true;
        x->slack = is_percent ? fabs(x->was) * slack / 100 : slack;
    }
    return known || by_kind || unknown(g, y);
}

static bool is_kind(const char *name)
{
    return !strchr(name, '.') && kind_of(name);
}

static bool read_tolerances(Gate *g)
{
    const uint8_t *data;
    size_t n;
    const char *path = g->o->tolerances;
    if (!path)
        return true;
    const Yaml *root = file_map(g->o->files, path, &data, &n, g->diag)
                           ? yaml_parse(g->arena, path, data, n, g->diag) : NULL;
    if (!root || !yaml_is(root, YAML_MAP, "a map of numbers to tolerances", g->arena, g->diag))
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (const Yaml *y = root->first; y; y = y->next)
            if (is_kind(y->key) == !pass &&
                (!yaml_is(y, YAML_SCALAR, "a number or a percentage", g->arena, g->diag) ||
                 !set_slack(g, y, !pass)))
                return false;
    return true;
}

/* -- the judgement ----------------------------------------------------------------------------- */

/* Returns whether a number is within its tolerance.  Rounding of decimal numbers does not count
 * as a change. */
static bool holds(const Number *x)
{
    double worse = (x->is - x->was) * x->kind->worse, rounding = 1e-12 * fabs(x->was);
    return !x->was_there || (x->is_there && worse <= x->slack + rounding);
}

/* Returns the end of a message, which names the flag that gives a number of this kind; "": the flag
 * was given. */
static const char *advice_for(const Gate *g, const char *kind)
{
    if (!strcmp(kind, "seconds"))
        return g->o->runs ? "" : " (--runs N measures it)";
    if (!strcmp(kind, "predicted_seconds"))
        return g->o->compiled ? "" : " (--compiled FILE.json adds it)";
    return g->o->verified ? "" : " (--verified FILE.json adds accuracy)";
}

static const char *moved(const Gate *g, const Number *x)
{
    assert(x->was_there);
    if (!x->is_there)
        return arena_printf(g->arena, "%s: was %.9g, is not known any more%s", x->name, x->was,
                            advice_for(g, x->kind->name));
    return arena_printf(g->arena, "%s: is %.9g, was %.9g, may be %s %.9g", x->name, x->is, x->was,
                        x->kind->worse > 0 ? "at most" : "at least",
                        x->was + x->kind->worse * x->slack);
}

static void print_text(const Gate *g)
{
    say(stdout, "  %-32s %16s %16s\n", "number", "baseline", "this file");
    for (int i = 0; i < g->n; i++) {
        const Number *x = &g->number[i];
        say(stdout, "  %-32s %16s %16s%s\n", x->name,
            x->was_there ? arena_printf(g->arena, "%.9g", x->was) : "-",
            x->is_there ? arena_printf(g->arena, "%.9g", x->is) : "-", x->ok ? "" : "  worse");
    }
}

static bool judge(Gate *g)
{
    const Number *first = NULL;
    for (int i = 0; i < g->n; i++) {
        Number *x = &g->number[i];
        x->ok = holds(x);
        first = !first && !x->ok ? x : first;
    }
    if (g->o->json)
        print_json(g, first);
    else if (!g->o->quiet)
        print_text(g);
    if (!first)
        return true;
    diag_fault(g->diag, FAULT_GATE, (Loc){.file = g->o->model}, "%s", moved(g, first));
    for (const Number *x = first + 1; x < g->number + g->n; x++)
        if (!x->ok)
            diag_note(g->diag, "%s", moved(g, x));
    return false;
}

bool command_gate(const Options *o, Arena *a, Diag *d)
{
    Gate g = {.o = o, .arena = a, .diag = d};
    ImportKind kind = model_kind(o, d);
    if (kind != IMPORT_PTE)
        return kind != IMPORT_UNKNOWN &&
               diag_error(d, (Loc){.file = o->model}, "is not a .pte; etc compile writes one");
    if (!add_file(&g) || !add_predicted(&g) || !add_measured(&g) || !add_verified(&g))
        return false;
    if (o->write_baseline)
        return write_baseline(&g);
    return read_baseline(&g) && read_tolerances(&g) && judge(&g);
}
