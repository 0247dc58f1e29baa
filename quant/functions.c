/* functions.c -- finds nodes that together compute a function of one value, element by element.
 *
 * A target with fixed point computes a function of bytes by one look-up in a table, however many nodes
 * the function has.  So only its result gets a scale: the values between the nodes are not rounded.
 *
 *   softplus(x) * 2  ==>  quantize(exp, log1p, gt, where and mul of dequantize(x))
 *
 * Each node and each use is looked at twice. */
#include "quant/internal.h"
#include "ir/eval.h"

/* Returns the value that v is a function of; v itself if its node computes anything else. */
static const Value *argument(const Annotation *a, const Value *v)
{
    return a->function_of[v->index] ? a->function_of[v->index] : v;
}

/* Returns the value that n is a function of; NULL: there is none, or more than one. */
static const Value *argument_of(const Annotation *a, const Node *n)
{
    const Value *of = NULL;
    const Type y = n->out[0]->type;
    assert(n->n_out == 1);
    bool ok = node_access(n) == ACCESS_POINTWISE && !node_scales_bytes(n) && eval_can(n) &&
              !node_reads_symbols(n) && type_is_static(y);
    for (int i = 0; ok && i < n->n_in; i++) {
        const Value *x = n->in[i];
        if (value_is_fixed(x)) {
            ok = type_is_static(x->type) && type_numel(x->type) == 1;
            continue;
        }
        ok = x->type.rank == y.rank && dims_equal(x->type.dim, y.dim, y.rank) &&
             (!of || of == argument(a, x));
        of = argument(a, x);
    }
    return ok && of && of->type.dtype == ETC_F32 ? of : NULL;
}

void functions_find(Annotation *a)
{
    a->function_of = NEW(a->arena, const Value *, a->n_values + 1);
    for (const Node *n = a->g->first; n; n = n->next)
        if (n->n_out == 1)
            a->function_of[n->out[0]->index] = argument_of(a, n);
}

bool is_function(const Annotation *a, const Node *n)
{
    return a->function_of && n->n_out == 1 && a->function_of[n->out[0]->index];
}

/* Returns whether t is a node of its own, and a function of the same value as v. */
static bool goes_on(const Annotation *a, const Value *v, const Node *t)
{
    const NodePlan *p = plan_of(a, t);
    return p && !p->head && is_function(a, t) &&
           a->function_of[t->out[0]->index] == a->function_of[v->index];
}

void functions_merge(Annotation *a)
{
    assert(!a->function_of || a->plan);
    const Value **end = NEW(a->arena, const Value *, a->n_values + 1);
    for (const Node *n = a->g->last; a->function_of && n; n = n->prev) {
        NodePlan *p = plan_of(a, n);
        if (!p || p->head || !is_function(a, n))
            continue;
        const Value *v = n->out[0], *to = NULL;
        const int from = a->uses.first[v->index], behind = a->uses.first[v->index + 1];
        bool ok = !a->uses.escapes[v->index] && from < behind;
        for (int i = from; ok && i < behind; i++) {
            const Node *t = a->uses.user[i];
            ok = goes_on(a, v, t) && (!to || to == end[t->out[0]->index]);
            to = ok ? end[t->out[0]->index] : NULL;
        }
        end[v->index] = ok ? to : v;
        if (ok && plan_of(a, to->def)->mode == MODE_STATIC) {
            p->mode = MODE_FLOAT;
            p->is_inner = true;
        }
    }
}
