/* quantize.c -- pass quantize: what a recipe asks for becomes quantize and dequantize nodes.
 *
 * Stage core.  Without a recipe it does nothing.
 */
#include "quant/internal.h"

static bool quantize_graph(Graph *g, QuantJob *job, Arena *tmp, Diag *d)
{
    Annotation a = annotate(g, job->recipe, tmp);
    return calibrate(&a, job, d) && (job->only_statistics || convert(&a, tmp, d));
}

bool pass_quantize(Program *p, Arena *tmp, Diag *d)
{
    bool ok = true;
    if (!p->quant || !recipe_check_scopes(p->quant->recipe, p, d))
        return !p->quant;
    for (int i = 0; i < p->n_methods; i++) {
        ok = quantize_graph(p->method[i], p->quant, tmp, d) && ok;
        arena_reset(tmp);
    }
    return ok;
}
