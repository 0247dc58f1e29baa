/* diff.c -- `etc diff`: compares two programs on the same inputs, value by value in the evaluator.
 *
 * Both are evaluated as they are, and planned ones in the memory of their plan.  Raw exports are
 * first rewritten into core, which the evaluator has kernels for.  A value of A is paired with the
 * value of B that has the same name.  The other values are paired by order: the k-th result of one
 * op and type in A with the k-th of that op and type in B, if both have equally many.  Such pairs
 * are a guess: they are shown, but only named pairs, outputs and updates decide whether A and B
 * differ.
 */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Side {
    Options o; /* the options of the command, with this side's files */
    Program *program;
    Graph *graph;
    int64_t *symbol;
    int *pair; /* the pair of each value, by value index; -1: none */
    bool is_text;
    EtcTensor **out, **update;
} Side;

/* This says how far b is from a.  The relative error of an element is its error over |a|; 0 if a is 0. */
typedef struct Error {
    bool seen, same_sizes, same;
    double most_abs, most_rel;
    double signal, noise; /* sums of squares */
    int64_t at;           /* the first element that differs, or -1 */
    double was, is;
} Error;

typedef struct Pair {
    const Value *a, *b;
    bool by_order;
    EtcTensor *kept; /* a copy of a's tensor */
    Error error;
} Pair;

typedef struct Count {
    int n, n_differ;
} Count;

typedef struct Diff {
    const Options *o;
    Side side[2];
    Pair *pair; /* the pairs in the order of A's graph */
    int n_pairs, n_calls;
    double atol, rtol;
    const Pair *first; /* the first named pair that differs, over all calls */
    Count named, ordered, outputs, updates;
    Arena *arena, *call; /* call: what lives as long as one call */
    Diag *diag;
    bool failed;
} Diff;

/* -- the two programs ------------------------------------------------------------------------ */

Graph *method_asked(const Options *o, const Program *p, Diag *d)
{
    const char *name = o->method ? o->method : "forward";
    for (int i = 0; i < p->n_methods; i++)
        if (!strcmp(p->method[i]->name, name))
            return p->method[i];
    if (!o->method && p->n_methods == 1)
        return p->method[0];
    diag_error(d, (Loc){.file = o->model}, "has no method '%s'", name);
    return NULL;
}

bool graph_can_run(const Graph *g, Diag *d)
{
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next)
        if (!eval_can(n))
            ok = diag_unsupported(d, n->loc, "the evaluator has no kernel for it");
    return ok;
}

/* Sets the files of side i.  Only an .etir takes --weights and --data.  For B, --weights-b and
 * --data-b take their place. */
static void set_files(Diff *f, int i)
{
    const Options *o = f->o;
    Side *s = &f->side[i];
    s->o = *o;
    s->o.model = i ? o->other : o->model;
    s->is_text = model_kind(&s->o, f->diag) == IMPORT_ETIR;
    s->o.weights = !s->is_text ? NULL : i && o->other_weights ? o->other_weights : o->weights;
    s->o.data = !s->is_text ? NULL : i && o->other_data ? o->other_data : o->data;
}

/* Reports flags for weights and data that neither model takes. */
static bool files_are_taken(const Diff *f)
{
    const Options *o = f->o;
    bool some = f->side[0].is_text || f->side[1].is_text;
    bool ok = some || !(o->weights || o->data) ||
              diag_error(f->diag, (Loc){.file = o->model},
                         "--weights and --data belong to an .etir; neither model is one");
    return (f->side[1].is_text || !(o->other_weights || o->other_data) ||
            diag_error(
                f->diag, (Loc){.file = o->other},
                "--weights-b and --data-b belong to an .etir; this file has its own bytes")) &&
           ok;
}

static bool open_side(Diff *f, int i)
{
    Side *s = &f->side[i];
    s->program = model_evaluable(&s->o, f->arena, f->diag);
    s->graph = s->program ? method_asked(&s->o, s->program, f->diag) : NULL;
    if (!s->graph || !graph_can_run(s->graph, f->diag))
        return false;
    s->symbol = NEW(f->arena, int64_t, s->program->n_syms + 1);
    s->pair = NEW(f->arena, int, s->graph->n_values + 1);
    for (int k = 0; k < s->graph->n_values; k++)
        s->pair[k] = -1;
    return true;
}

static bool same_count(const Diff *f, const char *what, int a, int b)
{
    return a == b || diag_error(f->diag, (Loc){.file = f->side[0].o.model},
                                "has %d %s, '%s' has %d", a, what, f->side[1].o.model, b);
}

static bool same_interface(const Diff *f)
{
    const Graph *a = f->side[0].graph, *b = f->side[1].graph;
    bool ok = same_count(f, "inputs", a->n_in, b->n_in);
    ok = same_count(f, "outputs", a->n_out, b->n_out) && ok;
    return same_count(f, "updates of states and inputs", a->n_updates, b->n_updates) && ok;
}

/* -- pairs ----------------------------------------------------------------------------------- */

typedef struct Key {
    const char *text;
    const Value *value;
    int at; /* its place in the order of the graph */
} Key;

typedef struct Keys {
    Key *item;
    int n;
} Keys;

static int by_text(const void *a, const void *b)
{
    const Key *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static const char *op_and_type(const Node *n, int k, Arena *a)
{
    return arena_printf(a, "%s %d %s", node_target(n), k,
                        type_shown(a, n->out[k]->type));
}

/* Returns the results that have no partner yet, sorted by name, or by op and type. */
static Keys keys_of(const Side *s, bool by_name, Arena *a)
{
    Keys keys = {0};
    for (const Node *n = s->graph->first; n; n = n->next)
        for (int k = 0; k < n->n_out; k++) {
            const Value *v = n->out[k];
            if (v->type.is_none || s->pair[v->index] >= 0)
                continue;
            Key key = {by_name ? v->name : op_and_type(n, k, a), v, keys.n};
            PUSH(a, keys.item, keys.n, key);
        }
    if (keys.n)
        qsort(keys.item, (size_t)keys.n, sizeof *keys.item, by_text);
    return keys;
}

static int run_length(Keys k, int from)
{
    int to = from + 1;
    while (to < k.n && !strcmp(k.item[to].text, k.item[from].text))
        to++;
    return to - from;
}

static void join(Diff *f, Keys a, Keys b, bool by_order)
{
    for (int i = 0, k = 0; i < a.n && k < b.n;) {
        int order = strcmp(a.item[i].text, b.item[k].text);
        int n = run_length(a, i), m = run_length(b, k);
        for (int j = 0; !order && n == m && j < n; j++) {
            Pair p = {.a = a.item[i + j].value, .b = b.item[k + j].value, .by_order = by_order};
            f->side[0].pair[p.a->index] = f->side[1].pair[p.b->index] = 0;
            PUSH(f->arena, f->pair, f->n_pairs, p);
        }
        i += order <= 0 ? n : 0;
        k += order >= 0 ? m : 0;
    }
}

/* Sorts the pairs in the order of A's graph, and sets the pair of each value. */
static void sort_pairs(Diff *f)
{
    Pair *sorted = NEW(f->arena, Pair, f->n_pairs + 1);
    int n = 0;
    for (int i = 0; i < f->n_pairs; i++)
        f->side[0].pair[f->pair[i].a->index] = i;
    for (const Node *node = f->side[0].graph->first; node; node = node->next)
        for (int k = 0; k < node->n_out; k++) {
            int *at = &f->side[0].pair[node->out[k]->index];
            if (*at < 0)
                continue;
            sorted[n] = f->pair[*at];
            f->side[1].pair[sorted[n].b->index] = *at = n;
            n++;
        }
    f->pair = sorted;
}

static void make_pairs(Diff *f)
{
    Arena *a = arena_new();
    join(f, keys_of(&f->side[0], true, a), keys_of(&f->side[1], true, a), false);
    join(f, keys_of(&f->side[0], false, a), keys_of(&f->side[1], false, a), true);
    sort_pairs(f);
    arena_free(a);
}

/* -- errors ---------------------------------------------------------------------------------- */

bool numbers_agree(double a, double b, double atol, double rtol)
{
    return a == b || (isnan(a) && isnan(b)) ||
           (isfinite(a) && isfinite(b) && fabs(a - b) <= atol + rtol * fabs(a));
}

bool tensors_match(const EtcTensor *a, const EtcTensor *b)
{
    return a->rank == b->rank && !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

static void add_element(const Diff *f, Error *e, int64_t i, double a, double b)
{
    bool both_nan = isnan(a) && isnan(b);
    double off = a == b || both_nan ? 0 : isfinite(a - b) ? fabs(a - b) : INFINITY;
    double rel = off == 0 || a == 0 ? 0 : isfinite(a) ? off / fabs(a) : INFINITY;
    e->most_abs = off > e->most_abs ? off : e->most_abs;
    e->most_rel = rel > e->most_rel ? rel : e->most_rel;
    e->signal += isfinite(a) ? a * a : 0;
    e->noise += off * off;
    if (e->at < 0 && !numbers_agree(a, b, f->atol, f->rtol)) {
        e->at = i;
        e->was = a;
        e->is = b;
    }
}

static Error error_of(const Diff *f, const EtcTensor *a, const EtcTensor *b)
{
    Error e = {.seen = true, .same_sizes = tensors_match(a, b), .at = -1};
    int64_t n = e.same_sizes ? etc_numel(a) : 0;
    for (int64_t i = 0; i < n; i++)
        add_element(f, &e, i, tensor_number(a, i), tensor_number(b, i));
    e.same = e.same_sizes && e.at < 0;
    return e;
}

/* Returns the ratio of signal to noise in decibels.  It is NaN if there is no noise or no
 * signal, or if the noise is infinite. */
static double sqnr_of(const Error *e)
{
    return e->noise > 0 && isfinite(e->noise) && e->signal > 0
               ? difference_sqnr(&(Difference){.signal = e->signal, .noise = e->noise}) : NAN;
}

static void count(Count *c, const Error *e)
{
    c->n++;
    c->n_differ += !e->same;
}

/* -- inputs ---------------------------------------------------------------------------------- */

static bool read_inputs(const Diff *f, const Strings *given, EtcTensor **in)
{
    const Side *s = &f->side[0];
    bool ok = true;
    if (given->n != s->graph->n_in)
        return diag_error(f->diag, (Loc){.file = s->o.model}, "%d input%s given, it has %d",
                          given->n, given->n == 1 ? "" : "s", s->graph->n_in);
    for (int i = 0; i < given->n; i++)
        ok = model_input(&s->o, given->item[i], s->graph, i, f->call, &in[i], f->diag) && ok;
    return ok;
}

static bool make_inputs(const Diff *f, int which, EtcTensor **in)
{
    const Side *s = &f->side[0];
    uint64_t seed = 1;
    inputs_symbols(s->program, which, s->symbol);
    return inputs_random(s->graph, s->symbol, &seed, f->call, in) ||
           diag_error(f->diag, (Loc){.file = s->o.model},
                      "its inputs are too large to be made up: give them with --input");
}

/* Checks that the inputs fit both programs, and sets the symbols of both from them. */
static bool fit_inputs(const Diff *f, EtcTensor **in)
{
    bool ok = true;
    for (int k = 0; k < 2; k++) {
        const Side *s = &f->side[k];
        for (int i = 0; i < s->graph->n_in; i++)
            ok = model_input_fits(&s->o, s->graph, i, in[i], f->call, f->diag) && ok;
        if (ok)
            inputs_read_symbols(s->graph, in, s->symbol);
    }
    return ok;
}

/* -- evaluation ------------------------------------------------------------------------------ */

static void keep_a(const Value *v, EtcTensor *t, void *ctx)
{
    Diff *f = ctx;
    int at = f->side[0].pair[v->index];
    if (at >= 0)
        f->pair[at].kept = tensor_copy(t, f->call);
}

static void compare_b(const Value *v, EtcTensor *t, void *ctx)
{
    Diff *f = ctx;
    int at = f->side[1].pair[v->index];
    if (at < 0)
        return;
    Pair *p = &f->pair[at];
    p->error = error_of(f, p->kept, t);
    count(p->by_order ? &f->ordered : &f->named, &p->error);
}

static bool evaluate(Diff *f, int i, EtcTensor **in)
{
    Side *s = &f->side[i];
    const Graph *g = s->graph;
    s->out = NEW(f->call, EtcTensor *, g->n_out + 1);
    s->update = NEW(f->call, EtcTensor *, g->n_updates + 1);
    const EvalHow how = {.arena_check = true, .visit = i ? compare_b : keep_a, .ctx = f};
    return eval_watched(g, in, s->symbol, how, f->call, s->out, s->update, f->diag);
}

static Error *compare_results(Diff *f, EtcTensor **a, EtcTensor **b, int n, Count *c)
{
    Error *e = NEW(f->call, Error, n + 1);
    for (int i = 0; i < n; i++) {
        e[i] = error_of(f, a[i], b[i]);
        count(c, &e[i]);
    }
    return e;
}

/* -- printing -------------------------------------------------------------------------------- */

static void print_error(const char *name, const Error *e, const char *what)
{
    double sqnr = sqnr_of(e);
    char text[32] = "-";
    if (!isnan(sqnr))
        snprintf(text, sizeof text, "%.1f dB", sqnr);
    if (e->same_sizes)
        say(stdout, "  %-28s %11.3g %11.3g %10s  %s%s\n", name, e->most_abs, e->most_rel, text, what,
               e->same ? "" : "  differs");
    else
        say(stdout, "  %-28s %11s %11s %10s  %s  other sizes\n", name, "-", "-", "-", what);
}

/* Returns the op, module and source line of a pair: "aten.add.Tensor, blocks.0, net.py:12". */
static const char *origin(const Pair *p, Arena *a)
{
    const Node *n = p->a->def->loc.source || p->a->def->loc.module ? p->a->def : p->b->def;
    const char *s = node_target(p->a->def);
    if (n->loc.module && *n->loc.module)
        s = arena_printf(a, "%s, %s", s, n->loc.module);
    return n->loc.source && *n->loc.source ? arena_printf(a, "%s, %s", s, n->loc.source) : s;
}

static const char *names_of(const Pair *p, Arena *a)
{
    return p->by_order ? arena_printf(a, "%s ~ %s", p->a->name, p->b->name) : p->a->name;
}

static void print_results(const Diff *f, const char *what, const Error *e, int n)
{
    for (int i = 0; i < n; i++)
        print_error(arena_printf(f->call, "%s %d", what, i), &e[i], "");
}

static void print_call(const Diff *f, int call, const Error *out, const Error *update)
{
    if (f->n_calls > 1)
        printf("call %d\n", call);
    printf("  %-28s %11s %11s %10s\n", "node", "max abs", "max rel", "SQNR");
    for (int i = 0; i < f->n_pairs; i++) {
        const Pair *p = &f->pair[i];
        if (p->error.seen && (f->o->all || !p->error.same))
            print_error(names_of(p, f->call), &p->error, origin(p, f->call));
    }
    print_results(f, "output", out, f->side[0].graph->n_out);
    print_results(f, "update", update, f->side[0].graph->n_updates);
}

static void json_error(const Error *e, Arena *a)
{
    printf("\"same\": %s, \"max_abs\": %s, \"max_rel\": %s, \"sqnr_db\": %s",
           e->same ? "true" : "false", json_finite(e->same_sizes ? e->most_abs : NAN, a),
           json_finite(e->same_sizes ? e->most_rel : NAN, a), json_finite(sqnr_of(e), a));
}

static const char *json_or_null(const char *s, Arena *a)
{
    return s && *s ? json_text(a, s) : "null";
}

static void json_results(const Diff *f, const char *what, const Error *e, int n)
{
    printf(", \"%s\": [", what);
    for (int i = 0; i < n; i++) {
        printf("%s{", comma(i));
        json_error(&e[i], f->call);
        putchar('}');
    }
    putchar(']');
}

static void json_call(const Diff *f, int call, const Error *out, const Error *update)
{
    int n = 0;
    printf("%s{\"nodes\": [", comma(call));
    for (int i = 0; i < f->n_pairs; i++) {
        const Pair *p = &f->pair[i];
        if (!p->error.seen)
            continue;
        const Node *node = p->a->def;
        printf("%s{\"a\": %s, \"b\": %s, \"by\": \"%s\", \"op\": \"%s\", \"module\": %s, "
               "\"source\": %s, ",
               comma(n++), json_text(f->call, p->a->name), json_text(f->call, p->b->name),
               p->by_order ? "order" : "name", node_target(node),
               json_or_null(node->loc.module, f->call), json_or_null(node->loc.source, f->call));
        json_error(&p->error, f->call);
        putchar('}');
    }
    putchar(']');
    json_results(f, "outputs", out, f->side[0].graph->n_out);
    json_results(f, "updates", update, f->side[0].graph->n_updates);
    putchar('}');
}

static void json_head(const Diff *f)
{
    Arena *a = f->arena;
    printf("{\"schema\": 1, \"a\": %s, \"b\": %s, \"method\": %s, \"atol\": %s, \"rtol\": %s, "
           "\"calls\": [",
           json_text(a, f->o->model), json_text(a, f->o->other),
           json_text(a, f->side[0].graph->name), json_finite(f->atol, a), json_finite(f->rtol, a));
}

/* -- calls ----------------------------------------------------------------------------------- */

static void find_first(Diff *f)
{
    for (int i = 0; i < f->n_pairs && !f->first; i++)
        if (f->pair[i].error.seen && !f->pair[i].error.same && !f->pair[i].by_order) {
            Pair *copy = NEW(f->arena, Pair, 1);
            *copy = f->pair[i];
            f->first = copy;
        }
}

static bool run_call(Diff *f, int call, const Strings *given)
{
    Side *a = &f->side[0], *b = &f->side[1];
    EtcTensor **in = NEW(f->call, EtcTensor *, a->graph->n_in + 1);
    for (int i = 0; i < f->n_pairs; i++)
        f->pair[i].error = (Error){0};
    if (!(given ? read_inputs(f, given, in) : make_inputs(f, call, in)) || !fit_inputs(f, in) ||
        !evaluate(f, 0, in) || !evaluate(f, 1, in))
        return false;
    Error *out = compare_results(f, a->out, b->out, a->graph->n_out, &f->outputs);
    Error *update = compare_results(f, a->update, b->update, a->graph->n_updates, &f->updates);
    states_carry(a->graph, a->update, f->arena);
    states_carry(b->graph, b->update, f->arena);
    find_first(f);
    (f->o->json ? json_call : print_call)(f, call, out, update);
    return true;
}

static bool run_calls(Diff *f)
{
    const Options *o = f->o;
    int n;
    const Strings *given = split_calls(o, f->arena, &n);
    bool made_up = !o->inputs.n && f->side[0].graph->n_in;
    f->n_calls = !made_up ? n : f->side[0].program->n_syms ? 2 : 1;
    bool ok = true;
    for (int k = 0; k < f->n_calls && ok; k++) {
        f->call = arena_new();
        ok = run_call(f, k, made_up ? NULL : &given[k]);
        arena_free(f->call);
    }
    return ok;
}

/* -- the command ----------------------------------------------------------------------------- */

static const char *first_text(const Diff *f)
{
    const Pair *p = f->first;
    if (!p)
        return "no named node does";
    if (!p->error.same_sizes)
        return arena_printf(f->arena, "first node '%s' (%s), which has other sizes", p->a->name,
                            origin(p, f->arena));
    return arena_printf(f->arena, "first node '%s' (%s): element %lld is %.9g, was %.9g",
                        p->a->name, origin(p, f->arena), (long long)p->error.at, p->error.is,
                        p->error.was);
}

static bool conclude(const Diff *f)
{
    int differ = f->named.n_differ + f->outputs.n_differ + f->updates.n_differ;
    if (f->o->json)
        printf("], \"same\": %s, \"first\": %s}\n", differ ? "false" : "true",
               f->first ? json_text(f->arena, f->first->a->name) : "null");
    const char *counts = arena_printf(
        f->arena, "%d of %d outputs, %d of %d updates, %d of %d nodes by name, %d of %d by order",
        f->outputs.n_differ, f->outputs.n, f->updates.n_differ, f->updates.n, f->named.n_differ,
        f->named.n, f->ordered.n_differ, f->ordered.n);
    if (differ)
        return diag_fault(f->diag, FAULT_GATE, (Loc){.file = f->o->other},
                          "differ from '%s': %s; %s", f->o->model, counts, first_text(f));
    if (!f->o->quiet)
        say(stderr, "%s: as '%s' within %g + %g * |a|; differ: %s\n", f->o->other, f->o->model,
                f->atol, f->rtol, counts);
    return true;
}

static bool is_pte(const Options *o, const char *path, Diag *d)
{
    Options one = *o;
    one.model = path;
    return model_kind(&one, d) == IMPORT_PTE;
}

/* Compares a .pte with a model by their outputs: a .pte has no nodes that the evaluator could
 * stop at. */
static bool diff_pte(const Options *o, Arena *a, Diag *d)
{
    Options one = *o;
    if (is_pte(o, o->model, d)) {
        one.model = o->other;
        one.other = o->model;
    }
    if (is_pte(o, one.model, d))
        return diag_error(d, (Loc){.file = o->other}, "two .pte files: one has to be a model");
    const char *file = one.other;
    one.other = one.model;
    one.model = file;
    one.atol = o->atol ? o->atol : "1e-5";
    one.rtol = o->rtol ? o->rtol : "1e-4";
    return command_verify(&one, a, d);
}

bool command_diff(const Options *o, Arena *a, Diag *d)
{
    Diff f = {.o = o, .arena = a, .diag = d};
    if (is_pte(o, o->model, d) || is_pte(o, o->other, d))
        return diff_pte(o, a, d);
    f.atol = o->atol ? strtod(o->atol, NULL) : 1e-5;
    f.rtol = o->rtol ? strtod(o->rtol, NULL) : 1e-4;
    set_files(&f, 0);
    set_files(&f, 1);
    if (diag_errors(d) || !files_are_taken(&f))
        return false;
    bool ok = open_side(&f, 0);
    ok = open_side(&f, 1) && ok;
    if (!ok || !same_interface(&f))
        return false;
    make_pairs(&f);
    if (o->json)
        json_head(&f);
    return run_calls(&f) && conclude(&f);
}
