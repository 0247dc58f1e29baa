/* order.c -- puts nodes in an order that lowers the peak of live bytes.
 *
 * Stages edge and grouped.  One candidate is tried against the given order: a depth-first walk from
 * the outputs which, at each node, first computes the operand whose subtree needs most memory
 * beyond what it leaves (Sethi and Ullman's rule, "The Generation of Optimal Code for Arithmetic
 * Expressions", 1970, with bytes for registers; optimal on trees, a heuristic on DAGs).  The order
 * with the lower peak stays, the given one on a tie, so the pass never makes a plan worse.
 */
#include "passes/passes.h"
#include <stdlib.h>

typedef struct Need {
    int64_t peak, rest; /* bytes while the subtree runs, bytes it leaves */
} Need;

typedef struct Walk {
    Node **order;
    int n;
    bool *is_done;     /* by position in the given order */
    const int *number; /* position of the node that defines a value; -1: none */
    Need *need;        /* by position */
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

/* Operands in the best order: the one that frees most goes first. */
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

/* The operand to compute next: of those not yet done, the one that frees most. */
static Node *next_operand(const Node *n, const Walk *w)
{
    Node *best = NULL;
    int64_t most = -1;
    for (int i = 0; i < n->n_in; i++) {
        int k = w->number[n->in[i]->index];
        if (k < 0 || w->is_done[k])
            continue;
        int64_t gain = w->need[k].peak - w->need[k].rest;
        if (gain > most) {
            most = gain;
            best = n->in[i]->def;
        }
    }
    return best;
}

static int position(const Node *n, const Walk *w)
{
    return w->number[n->out[0]->index];
}

static void visit(Node *root, Walk *w, Node **stack)
{
    int depth = 0;
    if (w->is_done[position(root, w)])
        return;
    stack[depth++] = root;
    while (depth) {
        Node *n = stack[depth - 1], *operand = next_operand(n, w);
        if (operand) {
            stack[depth++] = operand;
            continue;
        }
        w->is_done[position(n, w)] = true;
        w->order[w->n++] = n;
        depth--;
    }
}

/* -- comparing ----------------------------------------------------------------------------- */

/* Largest sum of bytes of alias sets live at once, in the order of the list. */
static int64_t peak_of(const Graph *g, Arena *tmp)
{
    AliasSets s = alias_sets(g, tmp);
    int64_t *change = NEW(tmp, int64_t, s.n_nodes + 3), live = 0, peak = 0;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++) {
            int v = n->out[i]->index;
            if (s.root[v] != v || n->out[i]->type.is_none || n->out[i]->type.rank == SCALAR)
                continue;
            int64_t bytes = type_bytes(n->out[i]->type);
            bytes = bytes < INT64_MAX / 1024 ? bytes : 0; /* unbounded: plan_memory reports it */
            change[s.first[v]] += bytes;
            change[(s.last[v] > s.first[v] ? s.last[v] : s.first[v]) + 1] -= bytes;
        }
    for (int i = 0; i < s.n_nodes + 2; i++) {
        live += change[i];
        peak = live > peak ? live : peak;
    }
    return peak;
}

static bool reorder(Graph *g, Arena *tmp, Diag *d)
{
    (void)d;
    int count = 0, *number = NEW(tmp, int, g->n_values + 1);
    for (int i = 0; i <= g->n_values; i++)
        number[i] = -1;
    for (const Node *n = g->first; n; n = n->next, count++) {
        if (!node_is_pure(n) || !n->n_out)
            return true; /* what only checks must stay where it is */
        for (int i = 0; i < n->n_out; i++)
            number[n->out[i]->index] = count;
    }
    Walk w = {.order = NEW(tmp, Node *, count + 1), .is_done = NEW(tmp, bool, count + 1),
              .number = number, .need = NEW(tmp, Need, count + 1)};
    Node **given = NEW(tmp, Node *, count + 1), **stack = NEW(tmp, Node *, count + 1);
    int k = 0;
    for (Node *n = g->first; n; n = n->next, k++) {
        given[k] = n;
        w.need[k] = need_of(n, &w, tmp);
    }
    for (int i = 0; i < g->n_out; i++)
        if (g->out[i]->def)
            visit(g->out[i]->def, &w, stack);
    for (int i = 0; i < g->n_updates; i++)
        if (g->update[i].value->def)
            visit(g->update[i].value->def, &w, stack);
    for (int i = 0; i < count; i++)
        visit(given[i], &w, stack);
    int64_t before = peak_of(g, tmp);
    graph_reorder(g, w.order, count);
    if (peak_of(g, tmp) >= before)
        graph_reorder(g, given, count);
    return true;
}

bool pass_order(Program *p, Arena *tmp, Diag *d)
{
    return for_each_placed(p, reorder, tmp, d);
}
