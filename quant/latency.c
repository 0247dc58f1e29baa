/* latency.c -- objective latency: computes in integers only what gets faster.
 *
 * A node has a time in floats and a time in integers.  A value between a float node and an
 * integer node costs the time of its quantize or dequantize, once for all readers.  The minimum
 * cut decides.  Products with dynamic scales quantize their own operands and are decided one by
 * one.  Nodes of the kernels, and of backends without such times, gain nothing.  Nodes that only
 * have smaller weights compute with floats and are not considered. */
#include "ir/cut.h"
#include "quant/internal.h"

enum { NOBODY = -1, STEPS_OF_NODE = 500 };

typedef struct Choice {
    Annotation *a;
    const Backend **taker; /* by value index of a node's first result */
    int *at; /* by value: the node of the cut for its producer; NOBODY: the producer stays float */
    int n, n_aux;
    Cut *cut;
} Choice;

static bool has_times(const Backend *b)
{
    return b && b->cost && b->cost_integers && b->cost_convert;
}

/* -- static scales ----------------------------------------------------------------------------- */

/* Returns the node that n is a part of, or n itself.  Both are on the same side of the cut. */
static const Node *leader(const Choice *c, const Node *n)
{
    const NodePlan *p = plan_of(c->a, n);
    return p && p->head ? p->head : n;
}

static int place(const Choice *c, const Node *n)
{
    const Node *head = n ? leader(c, n) : NULL;
    return head && plan_of(c->a, head) ? c->at[head->out[0]->index] : NOBODY;
}

/* Adds the costs of a value between both sides.  The sink's side computes in integers.  It
 * quantizes a float that it reads, and dequantizes a result that the other side reads. */
static void add_value(Choice *c, const Value *v, const Backend *b, int n_all, int *aux)
{
    const Uses *u = &c->a->uses;
    const int64_t cost = cut_picoseconds(b->cost_convert(v, SPEC_STATIC));
    const int in = (*aux)++, out = (*aux)++, source = CUT_SOURCE(n_all);
    assert(out < n_all);
    const int made = v->def && v == v->def->out[0] ? place(c, v->def) : NOBODY;
    const int from = made == NOBODY ? source : made;
    cut_edge(c->cut, from, in, cost, 0);
    cut_edge(c->cut, out, from, cost, 0);
    if (u->escapes[v->index])
        cut_edge(c->cut, source, out, CUT_NEVER, 0);
    for (int i = u->first[v->index]; i < u->first[v->index + 1]; i++) {
        const int reader = place(c, u->user[i]), to = reader == NOBODY ? source : reader;
        cut_edge(c->cut, in, to, CUT_NEVER, 0);
        cut_edge(c->cut, to, out, CUT_NEVER, 0);
    }
}

/* Calls add_value once for each value that a candidate makes or reads.  Without a cut it only
 * counts them. */
static void each_value(Choice *c, int n_all)
{
    int aux = c->n;
    bool *seen = NEW(c->a->arena, bool, c->a->n_values + 1);
    for (const Node *n = c->a->g->first; n; n = n->next)
        for (int i = 0; place(c, n) != NOBODY && i <= n->n_in; i++) {
            const Value *v = i < n->n_in ? n->in[i] : n->out[0];
            const bool joins = v->def && plan_of(c->a, v->def) && plan_of(c->a, v->def)->tail;
            if (seen[v->index] || !point_of(c->a, v) || joins)
                continue;
            seen[v->index] = true;
            if (c->cut)
                add_value(c, v, c->taker[leader(c, n)->out[0]->index], n_all, &aux);
            else
                c->n_aux += 2;
        }
}

static void add_times(Choice *c, int n_all)
{
    for (const Node *n = c->a->g->first; n; n = n->next) {
        const int at = place(c, n);
        if (at == NOBODY)
            continue;
        const Backend *b = c->taker[n->out[0]->index];
        const double gain = b->cost(n) - b->cost_integers(n, SPEC_STATIC);
        if (gain >= 0)
            cut_edge(c->cut, at, CUT_SINK(n_all), cut_picoseconds(gain), 0);
        else
            cut_edge(c->cut, CUT_SOURCE(n_all), at, cut_picoseconds(-gain), 0);
    }
}

/* Returns which nodes are on the sink's side of the minimum cut.  NULL: the cut takes too many
 * steps. */
static bool *cheapest(Choice *c)
{
    each_value(c, 0);
    const int n_all = c->n + c->n_aux;
    bool *is_sink = NEW(c->a->arena, bool, n_all + 1);
    c->cut = cut_new(n_all, c->a->arena);
    add_times(c, n_all);
    each_value(c, n_all);
    return cut_solve(c->cut, (int64_t)STEPS_OF_NODE * (n_all + 1000), is_sink) ? is_sink : NULL;
}

/* -- dynamic scales ---------------------------------------------------------------------------- */

static int dynamic_readers(const Annotation *a, const Value *v)
{
    int n = 0;
    for (int i = a->uses.first[v->index]; i < a->uses.first[v->index + 1]; i++) {
        const NodePlan *p = plan_of(a, a->uses.user[i]);
        n += p && p->mode == MODE_DYNAMIC;
    }
    return n;
}

static bool pays_alone(const Annotation *a, const Node *n, const Backend *b)
{
    Weighted w;
    assert(has_times(b));
    if (!weighted_read(n, &w))
        return false;
    const Value *v = w.x;
    const int n_readers = dynamic_readers(a, v);
    return b->cost(n) - b->cost_integers(n, SPEC_DYNAMIC) >
           b->cost_convert(v, SPEC_DYNAMIC) / (n_readers ? n_readers : 1);
}

/* -- both -------------------------------------------------------------------------------------- */

static void find_candidates(Choice *c)
{
    for (const Node *n = c->a->g->first; n; n = n->next) {
        const NodePlan *p = plan_of(c->a, n);
        if (!p)
            continue;
        const int v = n->out[0]->index;
        c->taker[v] = taker_of(n, &c->a->uses);
        c->at[v] = NOBODY;
        if (p->mode == MODE_STATIC && !p->head && has_times(c->taker[v]))
            c->at[v] = c->n++;
    }
}

int latency_refuse(Annotation *a, bool *refused)
{
    Choice c = {.a = a, .taker = NEW(a->arena, const Backend *, a->n_values + 1),
                .at = NEW(a->arena, int, a->n_values + 1)};
    int n_refused = 0;
    find_candidates(&c);
    const bool *is_sink = cheapest(&c);
    for (const Node *n = a->g->first; n; n = n->next) {
        const NodePlan *p = plan_of(a, n);
        if (!p || p->head || (p->mode != MODE_STATIC && p->mode != MODE_DYNAMIC))
            continue;
        const int v = n->out[0]->index;
        const bool pays = !has_times(c.taker[v])       ? false
                          : p->mode == MODE_DYNAMIC    ? pays_alone(a, n, c.taker[v])
                                                       : !is_sink || is_sink[c.at[v]];
        refused[v] = refused[v] || !pays;
        n_refused += !pays;
    }
    return n_refused;
}
