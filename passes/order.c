/* order.c -- chooses an order of the nodes with a lower peak of live bytes.
 *
 * Stages edge and grouped.  There are three candidates.  One is the given order.  One is a
 * depth-first walk from the outputs; at each node it first computes the operand whose subtree
 * needs the most memory in addition to its result (Sethi and Ullman's rule, "The Generation of
 * Optimal Code for Arithmetic Expressions", 1970, with bytes for registers; optimal on trees, a
 * heuristic on DAGs).  One always takes the step after which the fewest bytes are live
 * (order_greedy.c).  Each is also improved in windows (order_window.c), within a limit of work.
 * The order whose plan has the lowest peak wins, the earlier one on a tie, so the pass never
 * makes a plan worse. */
#include "passes/order.h"
#include <stdlib.h>
#include <string.h>

enum { WORK_BASE = 100000, WORK_PER_NODE = 500 };

typedef struct Need {
    int64_t peak, rest; /* bytes while the subtree runs, bytes it leaves */
} Need;

typedef struct Walk {
    Node **order;
    int n;
    bool *is_open, *is_done; /* by position in the given order */
    const int *number;       /* position of the node that defines a value; -1: none */
    Need *need;              /* by position */
    Node **stack; /* with room for every operand and one root */
    int depth;
} Walk;

static int64_t out_bytes(const Node *n)
{
    int64_t sum = 0;
    for (int i = 0; i < n->n_out; i++)
        if (!n->out[i]->type.is_none && n->out[i]->type.rank != SCALAR)
            if (!add_ok(sum, type_bytes(n->out[i]->type), &sum))
                return INT64_MAX / 4;
    return sum < INT64_MAX / 4 ? sum : INT64_MAX / 4;
}

/* -- what a subtree needs ------------------------------------------------------------------ */

static int by_gain(const void *a, const void *b)
{
    const Need *x = a, *y = b;
    int64_t p = x->peak - x->rest, q = y->peak - y->rest;
    return (p < q) - (p > q);
}

/* Computes the need of n with its operands in the best order: the one that frees the most goes
 * first. */
static Need need_of(const Node *n, const Walk *w, Arena *tmp)
{
    Need *child = NEW(tmp, Need, n->n_in + 1), sum = {0};
    int n_child = 0;
    for (int i = 0; i < n->n_in; i++)
        if (w->number[n->in[i]->index] >= 0)
            child[n_child++] = w->need[w->number[n->in[i]->index]];
    qsort(child, (size_t)n_child, sizeof *child, by_gain);
    for (int i = 0; i < n_child; i++) {
        int64_t peak = sum.rest + child[i].peak;
        sum.peak = peak > sum.peak ? peak : sum.peak;
        sum.rest += child[i].rest;
    }
    int64_t own = out_bytes(n), peak = sum.rest + own;
    sum.peak = peak > sum.peak ? peak : sum.peak;
    sum.peak = sum.peak < INT64_MAX / 4 ? sum.peak : INT64_MAX / 4;
    return (Need){sum.peak, own};
}

/* -- the walk ------------------------------------------------------------------------------ */

typedef struct Gain {
    int64_t bytes;
    int slot;
} Gain;

static int ascending(const void *a, const void *b)
{
    const Gain *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return y->slot - x->slot;
}

/* Pushes the operands that are not computed yet.  The one that frees most comes on top. */
static void push_operands(Walk *w, const Node *n, Arena *tmp)
{
    Gain *gain = NEW(tmp, Gain, n->n_in + 1);
    int count = 0;
    for (int i = 0; i < n->n_in; i++) {
        int k = w->number[n->in[i]->index];
        if (k >= 0 && !w->is_done[k])
            gain[count++] = (Gain){w->need[k].peak - w->need[k].rest, i};
    }
    qsort(gain, (size_t)count, sizeof *gain, ascending);
    for (int i = 0; i < count; i++)
        w->stack[w->depth++] = n->in[gain[i].slot]->def;
}

static int position(const Node *n, const Walk *w)
{
    assert(n->n_out);
    return w->number[n->out[0]->index];
}

/* Takes all nodes that root needs, operands first.  A node is on top of the stack twice: first its
 * operands are pushed, then, once they are done, it is taken. */
static void visit(Node *root, Walk *w, Arena *tmp)
{
    w->depth = 0;
    w->stack[w->depth++] = root;
    while (w->depth) {
        Node *n = w->stack[w->depth - 1];
        int k = position(n, w);
        if (!w->is_open[k] && !w->is_done[k]) {
            w->is_open[k] = true;
            push_operands(w, n, tmp);
            continue;
        }
        w->depth--;
        if (w->is_done[k])
            continue;
        w->is_done[k] = true;
        w->order[w->n++] = n;
    }
}

/* -- comparing ----------------------------------------------------------------------------- */

static int64_t peak_of(const Graph *g, Arena *tmp)
{
    return blocks_bound(blocks_of(g, alias_sets(g, tmp), tmp), tmp);
}

bool graph_has_bounds(const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (type_bytes(n->out[i]->type) > INT64_MAX / (1 << 20))
                return false; /* plan_memory will report it */
    for (int i = 0; i < g->n_in; i++)
        if (type_bytes(g->in[i]->type) > INT64_MAX / (1 << 20))
            return false;
    return true;
}

/* Sets, by value, the number of the node that computes it; -1: no node does.  Returns how many
 * nodes there are, or -1 if one of them must stay where it is, so that no other order is
 * possible. */
static int number_nodes(const Graph *g, int *number)
{
    int count = 0;
    for (int i = 0; i <= g->n_values; i++)
        number[i] = -1;
    for (const Node *n = g->first; n; n = n->next, count++) {
        if (!node_is_pure(n) || !n->n_out)
            return -1;
        for (int i = 0; i < n->n_out; i++)
            number[n->out[i]->index] = count;
    }
    return count;
}

static void walk_from_results(Graph *g, Walk *w, Node **given, int count, Arena *tmp)
{
    for (int i = 0; i < g->n_out; i++)
        if (g->out[i]->def)
            visit(g->out[i]->def, w, tmp);
    for (int i = 0; i < g->n_updates; i++)
        if (g->update[i].value->def)
            visit(g->update[i].value->def, w, tmp);
    for (int i = 0; i < count; i++)
        visit(given[i], w, tmp);
}

typedef struct Candidate {
    Node **node;
    int64_t peak;
} Candidate;

/* Keeps an order if it is better than the best. */
static void try_order(Graph *g, Node **node, int n, Candidate *best, Arena *tmp)
{
    if (!memcmp(node, best->node, (size_t)n * sizeof *node))
        return;
    graph_reorder(g, node, n);
    int64_t peak = peak_of(g, tmp);
    if (peak < best->peak)
        *best = (Candidate){node, peak};
}

/* Returns the nodes in an order whose step i is node order[i], after windows of it have lowered its
 * peak. */
static Node **lowered(const Model *m, Node *const *node, int *order, Arena *tmp)
{
    int64_t work = WORK_BASE + (int64_t)WORK_PER_NODE * m->n_steps;
    Node **to = NEW(tmp, Node *, m->n_steps + 1);
    order_windows(m, node, order, &work, tmp);
    for (int i = 0; i < m->n_steps; i++)
        to[i] = node[order[i]];
    return to;
}

static void search_orders(Graph *g, const int *number, Node **given, Node **walked, int n,
                          Candidate *best, Arena *tmp)
{
    Model m;
    int *order = NEW(tmp, int, n + 1);
    graph_reorder(g, given, n);
    if (!model_of(g, number, n, &m, tmp) || best->peak <= model_floor(&m))
        return;
    for (int i = 0; i < n; i++)
        order[i] = i;
    try_order(g, lowered(&m, given, order, tmp), n, best, tmp);
    for (int i = 0; i < n; i++)
        order[i] = number[walked[i]->out[0]->index];
    try_order(g, lowered(&m, given, order, tmp), n, best, tmp);
    graph_reorder(g, given, n);
    order_greedily(g, &m, given, order, tmp);
    try_order(g, lowered(&m, given, order, tmp), n, best, tmp);
}

/* Returns whether each node reads the one before it, so that there is no other order. */
static bool is_chain(const Graph *g)
{
    for (const Node *n = g->first; n && n->next; n = n->next) {
        bool is_read = false;
        for (int i = 0; i < n->next->n_in; i++)
            is_read = is_read || n->next->in[i]->def == n;
        if (!is_read)
            return false;
    }
    return true;
}

bool pass_order(Graph *g, Arena *tmp, Diag *d)
{
    (void)d;
    int k = 0, operands = 0, *number = NEW(tmp, int, g->n_values + 1);
    int count = number_nodes(g, number);
    bool has_places = g->name || region_has_places(g->owner);
    if (!has_places || count < 3 || is_chain(g) || !graph_has_bounds(g))
        return true;
    Walk w = {.order = NEW(tmp, Node *, count + 1), .is_open = NEW(tmp, bool, count + 1),
              .is_done = NEW(tmp, bool, count + 1), .number = number,
              .need = NEW(tmp, Need, count + 1)};
    Node **given = NEW(tmp, Node *, count + 1);
    for (Node *n = g->first; n; n = n->next, k++) {
        given[k] = n;
        w.need[k] = need_of(n, &w, tmp);
        operands += n->n_in;
    }
    w.stack = NEW(tmp, Node *, operands + 1);
    walk_from_results(g, &w, given, count, tmp);
    assert(w.n == count);
    Candidate best = {given, peak_of(g, tmp)};
    try_order(g, w.order, count, &best, tmp);
    search_orders(g, number, given, w.order, count, &best, tmp);
    graph_reorder(g, best.node, count);
    return true;
}
