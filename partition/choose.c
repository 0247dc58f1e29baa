/* choose.c -- chooses the backend of each node: for one backend of the chain after the other, by a
 * minimum cut between the kernels and the backend over the nodes that it takes and no earlier
 * backend has.
 *
 * A node costs its time on the side where it is.  A value between the sides costs its bytes,
 * once per direction, and half a call, so that leaving a region and coming back costs a call.
 * In the end the cost of whole regions decides (partition.c).  If the cut takes too many steps,
 * the backend gets all nodes that it takes. */
#include "partition/internal.h"
#include "ir/session.h"

enum {
    CROSSINGS = 2, /* this many values that cross the border cost as much as one call */
    STEPS_OF_NODE = 500
};

typedef struct Choice {
    const Split *s;
    const Backend *b;
    int *at;      /* by node: its number in the cut; NOBODY: it is no candidate */
    int n, n_aux; /* the nodes of the cut: n candidates, then n_aux nodes for values */
    Cut *cut;
} Choice;

/* Returns whether v belongs to a quantization with dynamic scales.  Such a value is computed on the
 * side of its readers. */
static bool is_bound(const Value *v)
{
    static const OpId op[] = {OP_CHOOSE_QPARAMS, OP_CHOOSE_QPARAMS_PER_TOKEN,
                              OP_QUANTIZE_PER_TENSOR_TENSOR, OP_QUANTIZE_PER_TOKEN,
                              OP_DEQUANTIZE_PER_TENSOR_TENSOR, OP_DEQUANTIZE_PER_TOKEN};
    for (size_t i = 0; v->def && i < sizeof op / sizeof *op; i++)
        if (v->def->op == op[i])
            return true;
    return false;
}

static int place(const Choice *c, int node)
{
    assert(node == NOBODY || (node >= 0 && node < c->s->n));
    return node == NOBODY ? NOBODY : c->at[node];
}

static int reader(const Choice *c, int i)
{
    const Node *n = c->s->uses.user[i];
    return n->n_out ? place(c, c->s->producer[n->out[0]->index]) : NOBODY;
}

/* Returns whether v lies between a dequantize and a quantize that belong together.  The node
 * between them is computed in integers only if all three are on one side, so v must not cross. */
static bool is_in_integers(const Choice *c, const Value *v)
{
    const Node *next = value_reader(&c->s->uses, v);
    if (!v->def || place(c, c->s->producer[v->index]) == NOBODY)
        return false;
    if (v->def->op == OP_DEQUANTIZE_PER_TENSOR) {
        bool all = !c->s->uses.escapes[v->index];
        for (int i = c->s->uses.first[v->index]; i < c->s->uses.first[v->index + 1]; i++)
            all = all && reader(c, i) != NOBODY;
        return all;
    }
    if (next && (next->op == OP_RELU || next->op == OP_HARDTANH || next->op == OP_CLAMP) &&
        place(c, c->s->producer[next->out[0]->index]) != NOBODY)
        next = value_reader(&c->s->uses, next->out[0]);
    return next && next->op == OP_QUANTIZE_PER_TENSOR &&
           place(c, c->s->producer[next->out[0]->index]) != NOBODY;
}

static int64_t crossing(const Choice *c, const Value *v)
{
    if (is_bound(v) || is_in_integers(c, v))
        return CUT_NEVER;
    return cut_picoseconds((double)type_bytes(v->type) * c->b->cost_of_byte +
                           c->b->call_cost / (double)CROSSINGS);
}

static int or_source(int at, int n_all)
{
    return at == NOBODY ? CUT_SOURCE(n_all) : at;
}

/* Returns whether the value may cross from one side to the other.  Constants are on both sides, and
 * a value that no candidate makes or reads crosses nothing. */
static bool may_cross(const Choice *c, const Value *v, int made)
{
    bool inside = made != NOBODY;
    for (int i = c->s->uses.first[v->index]; i < c->s->uses.first[v->index + 1]; i++)
        inside = inside || reader(c, i) != NOBODY;
    return inside && !value_is_fixed(v) && !value_is_from_constants(v);
}

/* Adds two nodes for a value.  `in` is on the sink's side if any reader is, and `out` is on the
 * source's side if any reader is.  So the value costs its crossing once per direction, however many
 * readers it has. */
static void add_value(Choice *c, const Value *v, int made, int n_all, int *aux)
{
    int64_t cost = crossing(c, v);
    int in = (*aux)++, out = (*aux)++, from = or_source(made, n_all);
    assert(out < n_all); /* each_value counted them */
    cut_edge(c->cut, from, in, cost, 0);
    cut_edge(c->cut, out, from, cost, 0);
    if (c->s->uses.escapes[v->index])
        cut_edge(c->cut, CUT_SOURCE(n_all), out, CUT_NEVER, 0);
    for (int i = c->s->uses.first[v->index]; i < c->s->uses.first[v->index + 1]; i++) {
        int to = or_source(reader(c, i), n_all);
        cut_edge(c->cut, in, to, CUT_NEVER, 0);
        cut_edge(c->cut, to, out, CUT_NEVER, 0);
    }
}

/* Calls add_value for each value; without a cut it only counts the nodes that add_value needs. */
static void each_value(Choice *c, int n_all)
{
    const Split *s = c->s;
    int aux = c->n;
    bool *seen = NEW(s->tmp, bool, s->g->n_values + 1);
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->node[i]->n_in + s->node[i]->n_out; k++) {
            int n_in = s->node[i]->n_in;
            const Value *v = k < n_in ? s->node[i]->in[k] : s->node[i]->out[k - n_in];
            int made = place(c, s->producer[v->index]);
            if (seen[v->index] || v->type.is_none || !may_cross(c, v, made))
                continue;
            seen[v->index] = true;
            if (c->cut)
                add_value(c, v, made, n_all, &aux);
            else
                c->n_aux += 2;
        }
}

static void add_times(Choice *c, int n_all)
{
    for (int i = 0; i < c->s->n; i++) {
        if (c->at[i] == NOBODY)
            continue;
        double more = node_seconds(c->s->node[i]) - c->b->cost(c->s->node[i]);
        if (more >= 0)
            cut_edge(c->cut, c->at[i], CUT_SINK(n_all), cut_picoseconds(more), 0);
        else
            cut_edge(c->cut, CUT_SOURCE(n_all), c->at[i], cut_picoseconds(-more), 0);
    }
}

/* Returns for each candidate whether the backend gets it.  NULL: the cut takes too many steps. */
static bool *cheapest(Choice *c)
{
    each_value(c, 0);
    int n_all = c->n + c->n_aux;
    bool *taken = NEW(c->s->tmp, bool, n_all + 1);
    c->cut = cut_new(n_all, c->s->tmp);
    add_times(c, n_all);
    each_value(c, n_all);
    return cut_solve(c->cut, (int64_t)STEPS_OF_NODE * (n_all + 1000), taken) ? taken : NULL;
}

/* -- the chain --------------------------------------------------------------------------------- */

static bool may_go(const Node *n)
{
    return n->n_out && !op_has_regions(n->op) && node_is_pure(n) &&
           !value_is_from_constants(n->out[0]);
}

/* Records why no backend takes a node.  If there are several backends, each is named with its
 * reason. */
static void refuse(Split *s, int i, const Backend *b, Refusal r)
{
    Refusal *all = &s->refusal[i];
    if (s->p->session->n_backends > 1)
        r.why = arena_printf(s->p->arena, "%s%s%s: %s", all->why ? all->why : "",
                             all->why ? "; " : "", b->name, r.why);
    *all = (Refusal){r.why, all->fix ? all->fix : r.fix};
}

static void give_to(Split *s, int backend)
{
    assert(backend >= 0 && backend < s->p->session->n_backends);
    Choice c = {.s = s, .b = s->p->session->backend[backend], .at = NEW(s->tmp, int, s->n + 1)};
    for (int i = 0; i < s->n; i++) {
        Refusal r = {0};
        c.at[i] = NOBODY;
        if (s->taker[i] != NOBODY || !may_go(s->node[i]))
            continue;
        if (c.b->takes(s->node[i], &s->uses, &r))
            c.at[i] = c.n++;
        else
            refuse(s, i, c.b, r);
    }
    bool *taken = c.n && !s->p->session->delegate_all ? cheapest(&c) : NULL;
    for (int i = 0; i < s->n; i++) {
        if (c.at[i] == NOBODY)
            continue;
        if (!taken || taken[c.at[i]])
            s->taker[i] = backend;
        else
            refuse(s, i, c.b, region_refusal);
    }
}

void choose_takers(Split *s)
{
    for (int i = 0; i < s->n; i++) {
        s->taker[i] = NOBODY;
        if (!may_go(s->node[i]))
            s->refusal[i] = (Refusal){"it has effects or holds graphs", NULL};
    }
    for (int b = 0; b < s->p->session->n_backends; b++)
        give_to(s, b);
}
