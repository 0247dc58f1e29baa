/* verify.c -- `etc verify`: runs a finished .pte with its delegates, or emitted C, and compares
 * its outputs with those of the model in the evaluator, on the same inputs.  If --max-drop gives
 * a budget, this decides whether they are equal enough, else tolerances for each element do. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/quantize.h"
#include "compiler/run.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Output {
    Difference d;
    int64_t n_differ;        /* the number of elements beyond the tolerances */
    int64_t n_rows, n_agree; /* rows of scores; those whose largest elements have equal indices */
} Output;

typedef struct First { /* the first element that differs */
    const char *sample;
    int output;
    int64_t at; /* -1: the sizes differ */
    double was, is;
} First;

typedef struct Verify {
    const Options *o;
    Options model;
    Runner runner;
    CProgram *c; /* NULL: the file is a .pte */
    bool stages; /* inputs are only recorded for a run of the C */
    int at;      /* the call that is compared, among those of one run of the C */
    const Program *program;
    Graph *graph;
    Output *out;
    First first;
    bool differs;
    const int64_t *label;
    int64_t n_labels, right[2]; /* right: correct rows of the first output, by model and by file */
    double atol, rtol;
    int n_samples;
    Arena *arena, *call; /* call: it is freed after each call */
    Diag *diag;
} Verify;

/* -- one sample -------------------------------------------------------------------------------- */

static void note_first(Verify *v, const char *sample, int output, int64_t at, double was, double is)
{
    assert(output >= 0 && output < v->graph->n_out && at >= -1);
    if (!v->differs)
        v->first = (First){arena_str(v->arena, sample, strlen(sample)), output, at, was, is};
    v->differs = true;
}

/* Compares the elements of output i.  Infinities and NaN that are equal count as no error. */
static void add_elements(Verify *v, int i, const EtcTensor *a, const EtcTensor *b, float *as[2],
                         const char *sample)
{
    int64_t n = etc_numel(a);
    assert(n == etc_numel(b));
    for (int64_t k = 0; k < n; k++) {
        double x = tensor_number(a, k), y = tensor_number(b, k);
        bool is_same = x == y || (isnan(x) && isnan(y));
        as[0][k] = is_same && !isfinite(x) ? 0 : (float)x;
        as[1][k] = is_same && !isfinite(x) ? 0 : (float)y;
        if (numbers_agree(x, y, v->atol, v->rtol))
            continue;
        v->out[i].n_differ++;
        note_first(v, sample, i, k, x, y);
    }
    difference_add(&v->out[i].d, as[0], as[1], n);
}

/* Counts the rows of scores of an output, which are its last axis if it is an output of floats. */
static void add_rows(Verify *v, int i, const EtcTensor *t, float *const as[2])
{
    Output *out = &v->out[i];
    if (!dtype_is_float(t->dtype) || !t->rank || t->dim[t->rank - 1] < 2)
        return;
    const int64_t n = t->dim[t->rank - 1], rows = etc_numel(t) / n;
    for (int64_t r = 0; r < rows; r++, out->n_rows++) {
        int64_t best[2] = {largest_of(as[0] + r * n, n), largest_of(as[1] + r * n, n)};
        out->n_agree += best[0] == best[1];
        for (int k = 0; k < 2 && !i && out->n_rows < v->n_labels; k++)
            v->right[k] += best[k] == v->label[out->n_rows];
    }
}

static void compare(Verify *v, int i, const EtcTensor *a, const EtcTensor *b, const char *sample)
{
    if (!tensors_match(a, b)) {
        v->out[i].n_differ++;
        note_first(v, sample, i, -1, 0, 0);
        return;
    }
    float *as[2] = {NEW(v->call, float, etc_numel(a) + 1), NEW(v->call, float, etc_numel(a) + 1)};
    add_elements(v, i, a, b, as, sample);
    add_rows(v, i, a, as);
}

/* Returns a tensor as a value, or its number if the file expects a number. */
static EtcValue value_of(EtcTensor *t, EtcTag want)
{
    EtcValue value = {.tag = ETC_TENSOR, .as.tensor = t};
    bool is_number = want == ETC_INT || want == ETC_DOUBLE || want == ETC_IS_BOOL;
    if (is_number && !t->rank) {
        value = (EtcValue){.tag = want};
        memcpy(&value.as, t->data, etc_dtype_size((int)t->dtype));
    }
    return value;
}

static bool run_file(Verify *v, EtcTensor **in)
{
    const Runner *r = &v->runner;
    bool ok = true;
    assert(!v->c && v->graph->n_in == etc_method_n_inputs(r->method));
    for (int i = 0; i < v->graph->n_in; i++) {
        EtcValue value = value_of(in[i], etc_method_input(r->method, i)->tag);
        ok = runner_set_input(r, i, &value) && ok;
    }
    return ok && runner_call(r);
}

/* Sets *got to output i of the current call; NULL: it is neither a tensor nor a number.  False: an
 * error was reported. */
static bool output_of_file(const Verify *v, int i, const EtcTensor *like, const EtcTensor **got)
{
    const Value *out = v->graph->out[i];
    bool is_told = v->c && !out->literal && !out->type.is_none;
    *got = NULL;
    if (!v->c)
        *got = value_tensor(v->call, etc_method_output(v->runner.method, i));
    else if (is_told)
        *got = c_program_output(v->c, v->at, i, (int)like->dtype, v->call);
    return *got || !is_told;
}

static bool run_sample(Verify *v, EtcTensor **in, const int64_t *symbol, const char *sample)
{
    const Graph *g = v->graph;
    const EtcTensor *got;
    EtcTensor **out = NEW(v->call, EtcTensor *, g->n_out + 1);
    EtcTensor **update = NEW(v->call, EtcTensor *, g->n_updates + 1);
    if (!eval_watched(g, in, symbol, (EvalHow){0}, v->call, out, update, v->diag) ||
        (!v->c && !run_file(v, in)))
        return false;
    for (int i = 0; i < g->n_out; i++) {
        if (!out[i])
            continue;
        if (!output_of_file(v, i, out[i], &got))
            return false;
        if (got)
            compare(v, i, out[i], got, sample);
    }
    states_carry(g, update, v->arena);
    v->n_samples++;
    return true;
}

/* -- samples ----------------------------------------------------------------------------------- */

static bool read_inputs(Verify *v, const Strings *given, EtcTensor **in, int64_t *symbol)
{
    bool ok = true;
    if (given->n != v->graph->n_in)
        return diag_error(v->diag, (Loc){.file = v->model.model}, "%d input%s given, it has %d",
                          given->n, given->n == 1 ? "" : "s", v->graph->n_in);
    for (int i = 0; i < given->n; i++)
        ok = model_input(&v->model, given->item[i], v->graph, i, v->call, &in[i], v->diag) && ok;
    if (ok)
        inputs_read_symbols(v->graph, in, symbol);
    return ok;
}

static bool make_inputs(Verify *v, int which, EtcTensor **in, int64_t *symbol)
{
    uint64_t seed = 1;
    inputs_symbols(v->program, which, symbol);
    return inputs_random(v->graph, symbol, &seed, v->call, in) ||
           diag_error(v->diag, (Loc){.file = v->model.model},
                      "its inputs are too large to be made up: give them with --input or "
                      "--calibrate");
}

/* Runs sample i, which comes from the data or the command line, or is made up. */
static bool run_one(Verify *v, const Samples *s, const Strings *given, int i)
{
    v->call = arena_new();
    EtcTensor **in = NEW(v->call, EtcTensor *, v->graph->n_in + 1);
    int64_t *symbol = NEW(v->call, int64_t, v->program->n_syms + 1);
    const char *name = arena_printf(v->call, "call %d", i);
    bool ok = s       ? s->read(s->ctx, i, v->call, in, symbol, &name, v->diag)
              : given ? read_inputs(v, given, in, symbol)
                      : make_inputs(v, i, in, symbol);
    if (ok && v->stages)
        ok = c_program_stage(v->c, v->graph, in);
    else
        ok = ok && run_sample(v, in, symbol, name);
    arena_free(v->call);
    return ok;
}

/* Runs and compares n samples.  One run of the C makes several calls, or all n if the model has
 * states, since each call then depends on those before it. */
static bool run_calls(Verify *v, const Samples *s, const Strings *given, int n)
{
    enum { AT_ONCE = 64 };
    int step = v->graph->n_updates ? n : AT_ONCE;
    bool ok = true;
    for (int from = 0; from < n && ok; from += step) {
        int to = from + step < n ? from + step : n;
        v->stages = true;
        for (int i = from; v->c && i < to && ok; i++)
            ok = run_one(v, s, given ? &given[i] : NULL, i);
        v->stages = false;
        ok = ok && (!v->c || c_program_run(v->c));
        for (int i = from; i < to && ok; i++) {
            v->at = i - from;
            ok = run_one(v, s, given ? &given[i] : NULL, i);
        }
    }
    return ok;
}

static bool run_data(Verify *v)
{
    Data *data = data_open(v->o->files, v->o->calibrate, v->graph, v->arena, v->diag);
    if (!data)
        return false;
    Samples s = data_samples(data);
    bool ok = run_calls(v, &s, NULL, s.n);
    data_close(data);
    return ok;
}

static bool run_all(Verify *v)
{
    int n;
    if (v->o->calibrate)
        return run_data(v);
    const Strings *given = split_calls(v->o, v->arena, &n);
    bool made_up = !v->o->inputs.n && v->graph->n_in;
    n = !made_up ? n : v->program->n_syms ? 2 : 1;
    return run_calls(v, NULL, made_up ? NULL : given, n);
}

/* -- printing ---------------------------------------------------------------------------------- */

static const char *source(const Verify *v)
{
    return v->o->calibrate ? v->o->calibrate : v->o->inputs.n ? "--input" : "made up";
}

static void text_output(const Verify *v, int i)
{
    const Output *x = &v->out[i];
    assert(i >= 0 && i < v->graph->n_out);
    double sqnr = difference_sqnr(&x->d);
    printf("  output %d: ", i);
    if (!x->d.n) {
        puts(x->n_differ ? "has other sizes" : "nothing to compare");
        return;
    }
    printf("max abs %.3g, cosine %.6f, ", x->d.most, difference_cosine(&x->d));
    printf(isinf(sqnr) && sqnr > 0 ? "no noise" : "SQNR %.1f dB", sqnr);
    if (x->n_rows)
        printf(", top-1 agrees in %" PRId64 " of %" PRId64, x->n_agree, x->n_rows);
    if (x->n_differ)
        printf("; %" PRId64 " of %" PRId64 " elements differ", x->n_differ, x->d.n);
    putchar('\n');
}

static const char *first_text(const Verify *v)
{
    const First *f = &v->first;
    if (f->at < 0)
        return arena_printf(v->arena, "output %d of %s has other sizes", f->output, f->sample);
    return arena_printf(v->arena, "output %d of %s, element %" PRId64 " is %.9g instead of %.9g",
                        f->output, f->sample, f->at, f->is, f->was);
}

static void text_all(const Verify *v)
{
    const char *from = v->o->calibrate  ? v->o->calibrate
                       : v->o->inputs.n ? "--input"
                                        : "random numbers";
    say(stdout, "%s compared with '%s' on %d sample%s (%s)\n", v->o->model, v->model.model,
        v->n_samples, v->n_samples == 1 ? "" : "s", from);
    for (int i = 0; i < v->graph->n_out; i++)
        text_output(v, i);
    if (v->n_labels)
        printf("  top-1 by labels: the model %" PRId64 ", the file %" PRId64 " of %" PRId64 "\n",
               v->right[0], v->right[1], v->n_labels);
    if (v->differs)
        say(stdout, "  first difference: %s\n", first_text(v));
}

static void json_output(const Verify *v, int i)
{
    const Output *x = &v->out[i];
    Arena *a = v->arena;
    printf("%s{\"elements\": %" PRId64 ", \"differ\": %" PRId64 ", ", comma(i), x->d.n, x->n_differ);
    printf("\"max_abs\": %s, \"sqnr_db\": %s, \"cosine\": %s, ", json_finite(x->d.most, a),
           json_finite(difference_sqnr(&x->d), a), json_finite(difference_cosine(&x->d), a));
    printf("\"rows\": %" PRId64 ", \"top1_agree\": %" PRId64 "}", x->n_rows, x->n_agree);
}

static void json_first(const Verify *v)
{
    const First *f = &v->first;
    if (!v->differs)
        printf("null");
    else
        printf("{\"output\": %d, \"sample\": %s, \"element\": %" PRId64 ", \"is\": %s, \"was\": %s}",
               f->output, json_text(v->arena, f->sample), f->at, json_finite(f->is, v->arena),
               json_finite(f->was, v->arena));
}

static void json_all(const Verify *v, bool ok)
{
    Arena *a = v->arena;
    printf("{\"schema\": 1, \"file\": %s, \"model\": %s, \"method\": %s, ",
           json_text(a, v->o->model), json_text(a, v->model.model), json_text(a, v->graph->name));
    printf("\"inputs\": %s, \"samples\": %d, \"atol\": %s, \"rtol\": %s, ", json_text(a, source(v)),
           v->n_samples, json_finite(v->atol, a), json_finite(v->rtol, a));
    printf("\"ok\": %s, \"same\": %s, \"first\": ", ok ? "true" : "false",
           v->differs ? "false" : "true");
    json_first(v);
    printf(", \"outputs\": [");
    for (int i = 0; i < v->graph->n_out; i++)
        json_output(v, i);
    printf("], \"labels\": ");
    if (v->n_labels)
        printf("{\"rows\": %" PRId64 ", \"model\": %" PRId64 ", \"file\": %" PRId64 "}}\n",
               v->n_labels, v->right[0], v->right[1]);
    else
        puts("null}");
}

/* -- the judgement ----------------------------------------------------------------------------- */

/* Returns how much worse the file is than the model, by labels or by the model's own answers; for
 * METRIC_SQNR, how good it is. */
static double drop_of(const Verify *v, const Recipe *r, const Output *x)
{
    if (r->metric == METRIC_SQNR)
        return difference_sqnr(&x->d);
    if (r->metric == METRIC_MAX_ABS_ERROR)
        return x->d.most;
    if (r->metric == METRIC_COSINE)
        return 1 - difference_cosine(&x->d);
    if (v->n_labels)
        return (double)(v->right[0] - v->right[1]) / (double)v->n_labels;
    return (double)(x->n_rows - x->n_agree) / (double)x->n_rows;
}

/* Checks that there are outputs to which the budget applies. */
static bool budget_applies(const Verify *v, const Recipe *r)
{
    const Loc loc = {.file = v->model.model};
    if (r->output > v->graph->n_out)
        return diag_error(v->diag, loc, "has no output %d: they count from 0, and their number is %d",
                          r->output - 1, v->graph->n_out);
    int i = r->output ? r->output - 1 : 0;
    if (!v->graph->n_out || !v->out[i].d.n)
        return diag_error(v->diag, loc, "has no output to which a budget applies");
    return r->metric != METRIC_TOP1 || v->out[0].n_rows ||
           diag_error(v->diag, loc, "its first output has no scores to judge");
}

/* Checks that all outputs keep the budget, and reports the first that does not. */
static bool budget_holds(const Verify *v, const Recipe *r)
{
    int from = r->output ? r->output - 1 : 0;
    int to = r->output || r->metric == METRIC_TOP1 ? from + 1 : v->graph->n_out;
    for (int i = from; i < to; i++) {
        double value = drop_of(v, r, &v->out[i]);
        bool is_least = r->metric == METRIC_SQNR;
        if (is_least ? value >= r->max_drop : value <= r->max_drop)
            continue;
        return diag_fault(v->diag, FAULT_GATE, (Loc){.file = v->o->model},
                          "output %d: %s %s %.6g, where --max-drop asks for at %s %.6g", i,
                          metric_name[r->metric - 1], is_least ? "is" : "is off by", value,
                          is_least ? "least" : "most", r->max_drop);
    }
    return true;
}

static bool has_other_sizes(const Verify *v)
{
    return v->differs && v->first.at < 0;
}

static bool judge(const Verify *v)
{
    Recipe r = {.metric = METRIC_NONE};
    if (v->o->max_drop && recipe_set_budget(v->o->max_drop, &r) && !has_other_sizes(v))
        return budget_applies(v, &r) && budget_holds(v, &r);
    if (!v->differs)
        return true;
    diag_fault(v->diag, FAULT_GATE, (Loc){.file = v->o->model},
               "differs from '%s' by more than %g + %g * |x|: %s", v->model.model, v->atol, v->rtol,
               first_text(v));
    if (!v->o->max_drop && !has_other_sizes(v))
        diag_note(v->diag, "a quantized file always differs; judge it with `etc verify --max-drop`, for "
                           "example cosine=0.01");
    return false;
}

static bool labels_fit(const Verify *v)
{
    int64_t rows = v->graph->n_out ? v->out[0].n_rows : 0;
    return !v->label || rows == v->n_labels ||
           diag_error(v->diag, (Loc){.file = v->o->labels},
                      "%" PRId64 " labels for %" PRId64 " rows of the first output", v->n_labels,
                      rows);
}

static bool conclude(Verify *v)
{
    if (!labels_fit(v))
        return false;
    bool ok = judge(v);
    if (v->o->json)
        json_all(v, ok);
    else if (!v->o->quiet)
        text_all(v);
    return ok;
}

/* ---------------------------------------------------------------------------------------------- */

static bool open_model(Verify *v)
{
    v->program = model_evaluable(&v->model, v->arena, v->diag);
    v->graph = v->program ? method_asked(&v->model, v->program, v->diag) : NULL;
    return v->graph && graph_can_run(v->graph, v->diag);
}

static bool is_c(const Options *o)
{
    return ends_in(o->model, ".c");
}

static bool open_file(Verify *v, Options *file)
{
    Runner *r = &v->runner;
    r->o = file;
    if (is_c(file))
        return (v->c = c_program_build(file, v->arena, v->diag)) != NULL;
    if (!runner_load(r))
        return false;
    runner_become_xnn(&r->file, v->o, v->arena);
    return runner_init(r);
}

static bool fits(const Verify *v)
{
    if (v->c) /* the C program checks its inputs itself */
        return true;
    int n_in = etc_method_n_inputs(v->runner.method), n_out = etc_method_n_outputs(v->runner.method);
    Loc loc = {.file = v->o->model};
    const Graph *g = v->graph;
    return (n_in == g->n_in && n_out == g->n_out) ||
           diag_error(v->diag, loc, "inputs: %d, outputs: %d, where '%s' has %d and %d", n_in, n_out,
                      v->model.model, g->n_in, g->n_out);
}

bool command_verify(const Options *o, Arena *a, Diag *d)
{
    Verify v = {.o = o, .model = *o, .runner = {.arena = a, .diag = d}, .arena = a, .diag = d};
    Options file = *o;
    ImportKind kind = is_c(o) ? IMPORT_PTE : model_kind(o, d);
    v.model.model = o->other;
    v.atol = o->atol ? strtod(o->atol, NULL) : 1e-4;
    v.rtol = o->rtol ? strtod(o->rtol, NULL) : 1e-3;
    file.dims = file.ops = (Strings){0}; /* these flags say how the model is read */
    file.data = file.weights = file.weights_dir = NULL;
    if (kind != IMPORT_PTE)
        return kind != IMPORT_UNKNOWN &&
               diag_error(d, (Loc){.file = o->model}, "is neither .pte nor .c; etc diff compares models");
    bool ok = open_file(&v, &file) && open_model(&v) && fits(&v) &&
              (!o->labels || labels_read(o->files, o->labels, a, &v.label, &v.n_labels, d));
    if (ok) {
        v.out = NEW(a, Output, v.graph->n_out + 1);
        ok = run_all(&v) && conclude(&v);
    }
    runner_end(&v.runner);
    c_program_end(v.c);
    return ok;
}
