/* quantize.c -- pass quantize: what a recipe asks for becomes quantize and dequantize nodes.
 *
 * Stage core.  Without a recipe it does nothing.
 */
#include "quant/internal.h"

static bool quantize_graph(Graph *g, QuantJob *job, Arena *tmp, Diag *d)
{
    Annotation a = annotate(g, job->recipe, tmp);
    return calibrate(&a, job, d) && (job->only_observe || convert(&a, tmp, d));
}

bool pass_quantize(Program *p, Arena *tmp, Diag *d)
{
    bool ok = true;
    QuantJob *job = p->quant;
    if (!job)
        return true;
    if (!recipe_check_scopes(job->recipe, p, d) ||
        (job->statistics && !statistics_fit(job->statistics, p, d)))
        return false;
    job->seen = statistics_new(p->arena, statistics_model(p));
    for (int i = 0; i < p->n_methods; i++) {
        ok = quantize_graph(p->method[i], job, tmp, d) && ok;
        arena_reset(tmp);
    }
    statistics_sort(job->seen);
    return ok;
}
