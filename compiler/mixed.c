/* mixed.c -- mixed precision: finds the fewest layers that must stay float so that the outputs stay
 * within a budget.
 *
 * First everything is quantized as the recipe says, and the report ranks the layers by their
 * damage.  The first k layers stay float; bisection finds the least k that meets the budget.
 * Each trial observes the samples again, since ranges depend on which values share them, and
 * runs both programs. */
#include "compiler/compiler.h"
#include "compiler/quantize.h"
#include <inttypes.h>

typedef struct Search {
    const Options *o;
    const Recipe *recipe;
    const int64_t *label;
    int64_t n_labels;
    const char **layer; /* the names of the layers' results, the worst layer first */
    int n;
    double value; /* the value of the metric in the last trial */
    Arena *arena;
    Diag *diag;
} Search;

/* -- the metric ------------------------------------------------------------------------------- */

bool labels_read(Files *files, const char *path, Arena *a, const int64_t **label, int64_t *n, Diag *d)
{
    const EtcTensor *t = npy_read(files, a, path, ETC_I64, d);
    if (!t)
        return false;
    if (t->dtype != ETC_I64 || t->rank != 1)
        return diag_error(d, (Loc){.file = path}, "is %s: labels are i64[N]", tensor_shown(a, t));
    *label = t->data;
    *n = t->dim[0];
    return true;
}

static bool read_labels(Search *s)
{
    const char *path = s->o->labels;
    const Loc loc = {.file = path ? path : s->o->calibrate};
    if (s->recipe->metric != METRIC_TOP1)
        return !path || diag_error(s->diag, loc, "labels are for a budget of top1 (--max-drop)");
    if (!path)
        return diag_error(s->diag, loc, "a budget of top1 needs --labels");
    return labels_read(s->o->files, path, s->arena, &s->label, &s->n_labels, s->diag);
}

/* Sets s->value to the metric: how much worse the outputs became, or for METRIC_SQNR, how good they
 * are. */
static bool set_value(Search *s, const QuantReport *r)
{
    const Loc loc = {.file = r->model};
    if (s->recipe->metric == METRIC_TOP1) {
        if (r->n_rows != s->n_labels || !r->n_rows)
            return diag_error(s->diag, (Loc){.file = s->o->labels},
                              "%" PRId64 " labels for %" PRId64 " rows of the first output",
                              s->n_labels, r->n_rows);
        s->value = (double)(r->right[0] - r->right[1]) / (double)r->n_rows;
        return true;
    }
    const int one = s->recipe->output;
    if (one > r->n_outputs)
        return diag_error(s->diag, loc, "has no output %d: they count from 0, and their number is %d",
                          one - 1, r->n_outputs);
    const Difference *of = one ? &r->output[one - 1] : &r->outputs;
    if (!of->n)
        return diag_error(s->diag, loc, "has no outputs of floats to which a budget applies");
    s->value = s->recipe->metric == METRIC_SQNR            ? difference_sqnr(of)
               : s->recipe->metric == METRIC_MAX_ABS_ERROR ? of->most
                                                           : 1 - difference_cosine(of);
    return true;
}

/* Returns the metric as --max-drop names it. */
static const char *shown_metric(const Search *s)
{
    assert(s->recipe->metric != METRIC_NONE);
    const char *name = metric_name[s->recipe->metric - 1];
    return s->recipe->output ? arena_printf(s->arena, "%s:%d", name, s->recipe->output - 1) : name;
}

/* Returns whether the last trial is within the budget.  A NaN never is. */
static bool is_within(const Search *s)
{
    return s->recipe->metric == METRIC_SQNR ? s->value >= s->recipe->max_drop
                                            : s->value <= s->recipe->max_drop;
}

/* -- trials ----------------------------------------------------------------------------------- */

static bool measure(Search *s, const Program *p, QuantReport *r, Arena *a)
{
    *r = (QuantReport){.label = s->label, .n_labels = s->n_labels};
    return quant_measure(s->o, p, r, a, s->diag) && set_value(s, r);
}

/* Measures the outputs while the k worst layers stay float. */
static bool try(Search *s, int k)
{
    assert(k >= 0 && k <= s->n);
    QuantReport r;
    Arena *a = arena_new();
    const Program *p = model_observe(s->o, statistics_keeping(a, s->layer, k), a, s->diag);
    const bool ok = p && measure(s, p, &r, a);
    arena_free(a);
    if (ok && s->o->verbose)
        say(stderr, "%d of %d layers in floats: %s %.6g\n", k, s->n,
                shown_metric(s), s->value);
    return ok;
}

/* Returns the least k that meets the budget, if k = n meets it.  Below 0: an error was reported. */
static int bisect(Search *s)
{
    int outside = 0, within = s->n;
    while (within - outside > 1) {
        const int k = outside + (within - outside) / 2;
        if (!try(s, k))
            return -1;
        *(is_within(s) ? &within : &outside) = k;
    }
    return within;
}

/* -- the result -------------------------------------------------------------------------------- */

static void print_result(const Search *s, const QuantReport *r, const LayerDamage *worst, int k,
                         double all)
{
    const char *metric = shown_metric(s);
    const char *what = s->recipe->metric == METRIC_SQNR ? "at least" : "at most";
    if (s->o->quiet)
        return;
    say(stderr, "%s: %.6g with all layers quantized, %s %.6g wanted: %d of %d stay in floats\n",
            metric, all, what, s->recipe->max_drop, k, s->n);
    for (int i = 0; i < k; i++) {
        const LayerReport *l = &r->layer[worst[i].layer];
        say(stderr, "  %s: %s%s%s, damage %.3g, %.1f dB as %s\n",
                l->loc.node ? l->loc.node : l->node->out[0]->name, node_target(l->node),
                l->loc.module ? " in " : "", l->loc.module ? l->loc.module : "", worst[i].damage,
                difference_sqnr(&l->error), l->kept);
    }
}

static void name_layers(Search *s, const QuantReport *r, const LayerDamage *worst)
{
    s->layer = NEW(s->arena, const char *, s->n + 1);
    for (int i = 0; i < s->n; i++)
        s->layer[i] = r->layer[worst[i].layer].node->out[0]->name;
}

bool mixed_search(const Options *o, const Program *p, const Statistics **keep, Arena *a, Diag *d)
{
    Search s = {.o = o, .recipe = p->session->quant->recipe, .arena = a, .diag = d};
    QuantReport r;
    if (!read_labels(&s))
        return false;
    if (!s.recipe->metric)
        return true;
    if (!measure(&s, p, &r, a))
        return false;
    const LayerDamage *worst = report_worst(&r, &s.n, a);
    const double all = s.value;
    int k = 0;
    name_layers(&s, &r, worst);
    if (!is_within(&s)) {
        if (!try(&s, s.n))
            return false;
        if (!is_within(&s))
            return diag_error(d, (Loc){.file = s.recipe->file},
                              "no choice of layers keeps to a budget of %s %.6g: with all in "
                              "floats it is %.6g",
                              shown_metric(&s), s.recipe->max_drop, s.value);
        k = bisect(&s);
    }
    if (k < 0)
        return false;
    print_result(&s, &r, worst, k, all);
    *keep = k ? statistics_keeping(a, s.layer, k) : NULL;
    return true;
}
