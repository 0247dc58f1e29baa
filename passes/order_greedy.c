/* order_greedy.c -- orders steps: of all steps that can run, it takes the one after which the
 * fewest bytes are live.
 *
 * The gain of a step changes only when the step becomes the last reader of a chunk.  The step is
 * then put into the heap again, and older entries, whose gain is too small, are skipped.  If gains
 * are equal, the earlier step of the given order is taken.  The time is n log n. */
#include "passes/order.h"

typedef struct Entry {
    int64_t growth;
    int step;
} Entry;

typedef struct Greedy {
    const Model *m;
    Entry *heap;
    int n_heap;
    int *left;       /* by chunk: how many readers are left */
    int *last;       /* by chunk: the xor of their steps; of one reader, its step */
    int *waits;      /* by step: how many operands are not computed yet */
    bool *is_done;
} Greedy;

static bool comes_first(const Entry *a, const Entry *b)
{
    return a->growth != b->growth ? a->growth < b->growth : a->step < b->step;
}

static void heap_push(Greedy *g, Entry e)
{
    g->heap[g->n_heap++] = e;
    for (int i = g->n_heap - 1; i && comes_first(&g->heap[i], &g->heap[(i - 1) / 2]);) {
        Entry up = g->heap[(i - 1) / 2];
        g->heap[(i - 1) / 2] = g->heap[i];
        g->heap[i] = up;
        i = (i - 1) / 2;
    }
}

static Entry heap_pop(Greedy *g)
{
    assert(g->n_heap > 0);
    Entry top = g->heap[0], last = g->heap[--g->n_heap];
    int i = 0;
    for (int k = 1; k < g->n_heap; k = 2 * i + 1) {
        if (k + 1 < g->n_heap && comes_first(&g->heap[k + 1], &g->heap[k]))
            k++;
        if (!comes_first(&g->heap[k], &last))
            break;
        g->heap[i] = g->heap[k];
        i = k;
    }
    g->heap[i] = last;
    return top;
}

/* Returns how many bytes more are live after step k than before. */
static int64_t growth(const Greedy *g, int k)
{
    const Step *s = &g->m->step[k];
    int64_t bytes = 0;
    for (int i = s->first_made; i < s->first_made + s->n_made; i++)
        bytes += g->left[i] || g->m->chunk[i].kept ? g->m->chunk[i].bytes : 0;
    for (int i = s->first_read; i < s->first_read + s->n_reads; i++) {
        int c = g->m->read[i];
        bytes -= g->left[c] == 1 && !g->m->chunk[c].kept ? g->m->chunk[c].bytes : 0;
    }
    return bytes;
}

static void offer(Greedy *g, int k)
{
    if (!g->waits[k] && !g->is_done[k])
        heap_push(g, (Entry){growth(g, k), k});
}

static void finish(Greedy *g, int k)
{
    const Step *s = &g->m->step[k];
    assert(!g->is_done[k] && !g->waits[k]);
    g->is_done[k] = true;
    for (int i = s->first_read; i < s->first_read + s->n_reads; i++) {
        int c = g->m->read[i];
        g->left[c]--;
        g->last[c] ^= k;
        if (g->left[c] == 1)
            offer(g, g->last[c]);
    }
}

static Greedy greedy_new(const Model *m, Node *const *node, Arena *tmp)
{
    Greedy g = {.m = m, .left = NEW(tmp, int, m->n_chunks + 1),
                .last = NEW(tmp, int, m->n_chunks + 1), .waits = NEW(tmp, int, m->n_steps + 1),
                .is_done = NEW(tmp, bool, m->n_steps + 1),
                .heap = NEW(tmp, Entry, 2 * m->n_steps + m->n_chunks + 1)}; /* offers at most */
    for (int k = 0; k < m->n_steps; k++) {
        for (int i = 0; i < node[k]->n_in; i++)
            g.waits[k] += m->number[node[k]->in[i]->index] >= 0;
        for (int i = 0; i < m->step[k].n_reads; i++) {
            g.left[m->read[m->step[k].first_read + i]]++;
            g.last[m->read[m->step[k].first_read + i]] ^= k;
        }
    }
    return g;
}

void order_greedily(const Graph *graph, const Model *m, Node *const *node, int *order, Arena *tmp)
{
    Greedy g = greedy_new(m, node, tmp);
    Uses uses = graph_uses(graph, tmp);
    int n = 0;
    for (int k = 0; k < m->n_steps; k++)
        offer(&g, k);
    while (g.n_heap) {
        int k = heap_pop(&g).step;
        if (g.is_done[k])
            continue;
        order[n++] = k;
        finish(&g, k);
        for (int i = 0; i < node[k]->n_out; i++) {
            int v = node[k]->out[i]->index;
            for (int u = uses.first[v]; u < uses.first[v + 1]; u++) {
                int user = m->number[uses.user[u]->out[0]->index];
                g.waits[user]--;
                offer(&g, user);
            }
        }
    }
}
