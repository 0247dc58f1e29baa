/* cut.c -- the minimum cut between a source and a sink, by Dinic's algorithm (1970).
 *
 * Each phase computes distances to the sink by a breadth-first search, then finds augmenting
 * paths along falling distances until there is none; an edge that leads nowhere is looked at
 * once.  Paths of a partition are short, because nodes have edges to the sink, so a few phases
 * are enough.  The work is the number of edges that are looked at; the search ends if it exceeds
 * the limit. */
#include "ir/cut.h"
#include <string.h>

typedef struct Edge {
    int to;
    int64_t room; /* the residual capacity; the reverse edge is at index ^ 1 */
} Edge;

struct Cut {
    Arena *arena;
    int n, n_edges;
    int *from; /* by edge: the node where it starts */
    Edge *edge;
    int *first, *at; /* by node: out[first[v] .. first[v + 1]) are its edges; at: the next */
    int *out;
    int *far;   /* by node: the distance to the sink; -1: it is not reached */
    int *queue; /* of nodes; also the edges of a path */
    int64_t left;
};

int64_t cut_picoseconds(double seconds)
{
    return seconds >= 1 ? INT64_C(1000000000000) : seconds <= 0 ? 0 : (int64_t)(seconds * 1e12);
}

Cut *cut_new(int n, Arena *a)
{
    Cut *c = NEW(a, Cut, 1);
    *c = (Cut){.arena = a, .n = n + 2};
    return c;
}

void cut_edge(Cut *c, int from, int to, int64_t there, int64_t back)
{
    Edge e = {to, there}, twin = {from, back};
    int n = c->n_edges;
    assert(from >= 0 && from < c->n && to >= 0 && to < c->n && there >= 0 && back >= 0);
    if (from == to)
        return;
    PUSH(c->arena, c->edge, c->n_edges, e);
    PUSH(c->arena, c->edge, c->n_edges, twin);
    PUSH(c->arena, c->from, n, from);
    PUSH(c->arena, c->from, n, to);
}

static void index_edges(Cut *c)
{
    size_t n = (size_t)c->n + 1;
    c->first = NEW(c->arena, int, n);
    c->at = NEW(c->arena, int, n);
    c->far = NEW(c->arena, int, n);
    c->queue = NEW(c->arena, int, n);
    c->out = NEW(c->arena, int, c->n_edges + 1);
    for (int i = 0; i < c->n_edges; i++)
        c->first[c->from[i] + 1]++;
    for (int i = 0; i < c->n; i++)
        c->first[i + 1] += c->first[i];
    memcpy(c->at, c->first, n * sizeof *c->at);
    for (int i = 0; i < c->n_edges; i++)
        c->out[c->at[c->from[i]]++] = i;
}

/* Computes distances from `start`, forwards along edges with room, or backwards.  Returns whether
 * `end` is reached. */
static bool search(Cut *c, int start, int end, bool forwards)
{
    int n = 0;
    memset(c->far, 0xff, (size_t)c->n * sizeof *c->far);
    c->far[start] = 0;
    c->queue[n++] = start;
    for (int k = 0; k < n; k++) {
        int v = c->queue[k];
        for (int i = c->first[v]; i < c->first[v + 1]; i++, c->left--) {
            int e = c->out[i], to = c->edge[e].to;
            if (c->far[to] >= 0 || c->edge[forwards ? e : e ^ 1].room <= 0)
                continue;
            c->far[to] = c->far[v] + 1;
            c->queue[n++] = to;
        }
    }
    return c->far[end] >= 0;
}

/* Returns the next edge of v that leads nearer to the sink; -1: there is none. */
static int next_edge(Cut *c, int v)
{
    for (; c->at[v] < c->first[v + 1]; c->at[v]++, c->left--) {
        int e = c->out[c->at[v]];
        if (c->edge[e].room > 0 && c->far[c->edge[e].to] == c->far[v] - 1)
            return e;
    }
    return -1;
}

/* Sends as much flow as fits along a path of n edges.  Returns how many of its first edges still
 * have room. */
static int augment(Cut *c, const int *path, int n)
{
    int64_t flow = INT64_MAX;
    int full = n;
    for (int i = 0; i < n; i++)
        flow = c->edge[path[i]].room < flow ? c->edge[path[i]].room : flow;
    for (int i = n - 1; i >= 0; i--) {
        c->edge[path[i]].room -= flow;
        c->edge[path[i] ^ 1].room += flow;
        full = c->edge[path[i]].room ? full : i;
    }
    assert(full < n);
    c->left -= n;
    return full;
}

static void blocking_flow(Cut *c, int source, int sink)
{
    int *path = c->queue, n = 0, v = source;
    memcpy(c->at, c->first, (size_t)c->n * sizeof *c->at);
    while (c->left > 0) {
        int e = v == sink ? -1 : next_edge(c, v);
        if (e >= 0) {
            path[n++] = e;
            v = c->edge[e].to;
            continue;
        }
        if (v == sink)
            n = augment(c, path, n);
        else if (n)
            c->at[c->from[path[--n]]]++; /* no path to the sink uses this edge */
        else
            return;
        v = n ? c->edge[path[n - 1]].to : source;
    }
}

bool cut_solve(Cut *c, int64_t steps, bool *is_sink)
{
    int source = CUT_SOURCE(c->n - 2), sink = CUT_SINK(c->n - 2);
    assert(!c->first); /* once per cut */
    c->left = steps;
    index_edges(c);
    while (search(c, sink, source, false)) {
        blocking_flow(c, source, sink);
        if (c->left <= 0)
            return false;
    }
    search(c, source, sink, true);
    for (int i = 0; i < c->n - 2; i++)
        is_sink[i] = c->far[i] < 0;
    return true;
}
