/* quantize.c -- pass quantize: inserts quantize and dequantize nodes as the recipe asks.
 *
 * Stage core.  Without a recipe it does nothing.
 */
#include "quant/internal.h"
#include "ir/session.h"
#include <math.h>

/* Warns that gptq is left out, because files of statistics do not contain what it needs. */
static void warn_of_gptq(const Annotation *a, const QuantJob *job, Diag *d)
{
    int n_without = 0;
    const bool is_file = job->statistics && statistics_is_file(job->statistics);
    for (const Node *n = a->g->first; n && is_file; n = n->next) {
        const NodePlan *p = plan_of(a, n);
        n_without += p && p->mode != MODE_FLOAT && p->choice.weight.dtype == ETC_I8 &&
                     (p->choice.with_samples & ~p->choice.algorithms & ALG_GPTQ) &&
                     products_fit(n);
    }
    if (n_without)
        diag_warn(d, (Loc){.file = statistics_file(job->statistics)},
                  "has no products of operands: %d node%s rounded without gptq, for which a compile "
                  "needs samples (--calibrate)",
                  n_without, n_without == 1 ? " is" : "s are");
}

enum { MOST_NAMED = 6 };

/* Returns whether this run prints warnings.  The trials of a search print none. */
static bool prints_warnings(const QuantJob *job)
{
    return job->only_observe ? !job->keep
                             : !job->statistics || statistics_is_file(job->statistics);
}

/* Warns of the nodes whose weights the recipe asked for in a form that they cannot have: `what`,
 * then their names. */
static void warn_of_weights(const Annotation *a, const QuantJob *job, bool left, const char *what,
                            Diag *d)
{
    int n_met = 0;
    const char *names = "";
    for (const Node *n = a->g->first; n && prints_warnings(job); n = n->next) {
        const NodePlan *p = plan_of(a, n);
        if (!p || !(left ? p->is_left : p->is_coarser))
            continue;
        const char *name = n->loc.node ? n->loc.node : n->out[0]->name;
        if (n_met++ < MOST_NAMED)
            names = arena_printf(a->arena, "%s%s%s", names, *names ? ", " : "", name);
    }
    if (n_met > MOST_NAMED)
        names = arena_printf(a->arena, "%s and %d more", names, n_met - MOST_NAMED);
    if (n_met)
        diag_warn(d, (Loc){.file = job->recipe->file}, "%s: %s", what, names);
}

static bool weight_is_finite(const Node *n, const NodePlan *p, Diag *d)
{
    Weighted v;
    const Value *w = weights_of(n, &v) ? v.w : NULL;
    int64_t bad;
    if (!p || p->mode == MODE_FLOAT || p->choice.weight.dtype != ETC_I8 || !is_weight(w))
        return true;
    const float *x = state_elements(w->state);
    return all_finite(x, type_numel(w->type), &bad) ||
           diag_error(d, n->loc, "weight '%s': %s at element %lld, which cannot become an integer; "
                      "leave the node in floats",
                      w->state->fqn, isnan(x[bad]) ? "NaN" : "infinity", (long long)bad);
}

static bool weights_are_finite(const Annotation *a, Diag *d)
{
    bool ok = true;
    for (const Node *n = a->g->first; n; n = n->next)
        ok = weight_is_finite(n, plan_of(a, n), d) && ok;
    return ok;
}

static bool quantize_graph(Graph *g, QuantJob *job, Arena *tmp, Diag *d)
{
    job->dynamic = NULL;
    Annotation a = annotate(g, job, tmp);
    if (!weights_are_finite(&a, d) || !calibrate(&a, job, d))
        return false;
    annotation_record(&a, job);
    warn_of_gptq(&a, job, d);
    warn_of_weights(&a, job, true,
                    "weights stay floats where the backend or kernel of a node cannot compute with "
                    "such integers",
                    d);
    warn_of_weights(&a, job, false,
                    "weights become int8 with a scale per output channel where their rows cannot "
                    "be divided into such groups",
                    d);
    return job->only_observe || convert(&a, tmp, d);
}

/* Quantizes branches and bodies of loops: weights become integers, and activations get their
 * scales at run time. */
static bool quantize_nested(const Graph *g, const QuantJob *job, Arena *tmp, Diag *d)
{
    QuantJob own = {.recipe = job->recipe, .seen = job->seen, .is_nested = true};
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next)
        for (Graph *inner = NULL; (inner = region_next(n, inner));)
            ok = quantize_graph(inner, &own, tmp, d) && quantize_nested(inner, job, tmp, d) && ok;
    return ok;
}

/* Checks that a search was made if the recipe has a budget.  Only trials can tell which layers must
 * stay float. */
static bool budget_is_met(const QuantJob *job, Diag *d)
{
    const Statistics *found = job->keep ? job->keep : job->statistics;
    return !job->recipe->metric || job->only_observe || (found && statistics_has_budget(found)) ||
           diag_error(
               d, (Loc){.file = job->recipe->file},
               "has a budget, which needs samples: give --calibrate, or --statistics that `etc "
               "quantize` wrote with a budget");
}

bool pass_quantize(Program *p, Arena *tmp, Diag *d)
{
    bool ok = true;
    QuantJob *job = p->session->quant;
    if (!job)
        return true;
    if (!recipe_check_scopes(job->recipe, p, d) ||
        (job->statistics && !job->is_refit && !statistics_fit(job->statistics, p, d)) ||
        (job->keep && !job->only_observe && !statistics_fit(job->keep, p, d)) ||
        !budget_is_met(job, d))
        return false;
    job->seen = statistics_new(p->arena, statistics_model(p));
    if (job->recipe->metric)
        statistics_set_budget(job->seen, job->recipe);
    if (job->samples && job->blas)
        statistics_set_library(job->seen, blas_name(job->blas));
    p->session->fast_library = statistics_library(job->statistics ? job->statistics : job->seen);
    for (int i = 0; i < p->n_methods; i++) {
        ok = quantize_graph(p->method[i], job, tmp, d) && ok;
        ok = (job->only_observe || quantize_nested(p->method[i], job, tmp, d)) && ok;
        arena_reset(tmp);
    }
    statistics_sort(job->seen);
    return ok;
}
