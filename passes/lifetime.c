/* lifetime.c -- computes blocks of memory and the live ranges of their bytes from alias sets.
 *
 * The bytes of a set are cut where one of its values begins or ends.  Each piece is live from
 * the birth of the first value that covers it to the last read of any.  Values are visited by
 * birth, and a piece belongs to the first value that reaches it; links skip pieces that are
 * taken.  So a set costs n log n however its values overlap.  Last reads are found in the same
 * way, backwards. */
#include "passes/internal.h"
#include <stdlib.h>

enum { MAX_PARTS = 64 }; /* a set of more is one part */

/* -- values -------------------------------------------------------------------------------- */

static void stretch(Part *p, int from, int to)
{
    p->start = from < p->start ? from : p->start;
    p->end = to > p->end ? to : p->end;
}

/* Marks the values in memory of the caller: borrowed inputs; on the c tail, and in branches, inputs,
 * outputs and states. */
static void mark_callers(const Graph *g, AliasSets a, bool *callers, Arena *tmp)
{
    for (int i = 0; i < g->n_states; i++)
        callers[g->state[i]->index] = g->state[i]->state->kind != ST_MUTABLE;
    const bool *borrowed = borrowed_inputs(g, tmp);
    for (int i = 0; i < g->n_in; i++)
        callers[g->in[i]->index] = borrowed[g->in[i]->index];
    if (graph_owns_io(g))
        return;
    for (int i = 0; i < g->n_states; i++)
        callers[g->state[i]->index] = true;
    for (int i = 0; i < g->n_in; i++)
        callers[g->in[i]->index] = true;
    bool is_of_loop = g->owner && region_kind(g->owner) == REGION_LOOP;
    for (int i = 0; i < g->n_out && !is_of_loop; i++) /* a loop moves them when an iteration ends */
        callers[a.root[g->out[i]->index]] = true;
}

static int64_t round_out(int64_t bytes)
{
    return bytes > INT64_MAX - PLAN_ALIGN ? INT64_MAX : round_up(bytes, PLAN_ALIGN);
}

/* Returns, by index, when each value is in use and which bytes of its set it has. */
static Part *live_values(const Graph *g, AliasSets a, const Value **value, Arena *tmp)
{
    Part *live = NEW(tmp, Part, g->n_values + 1);
    bool *pinned = pinned_values(g, tmp);
    int time = 0;
    for (int i = 0; i < g->n_values; i++) {
        int64_t lo = a.offset[i] / PLAN_ALIGN * PLAN_ALIGN;
        int64_t bytes = value[i] ? type_bytes(value[i]->type) : 0;
        live[i] = (Part){INT32_MAX, -1, lo, INT64_MAX};
        if (bytes < INT64_MAX - PLAN_ALIGN - a.offset[i])
            live[i].hi = round_out(a.offset[i] + bytes);
    }
    for (int i = 0; i < g->n_in; i++)
        stretch(&live[g->in[i]->index], 0, 0);
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        for (int i = 0; i < n->n_in; i++)
            stretch(&live[n->in[i]->index], time, time);
        for (int i = 0; i < n->n_out; i++)
            stretch(&live[n->out[i]->index], time, time);
    }
    for (int i = 0; i < g->n_out; i++)
        stretch(&live[g->out[i]->index], time + 1, time + 1);
    for (int i = 0; i < g->n_updates; i++)
        stretch(&live[g->update[i].value->index], time + 1, time + 1);
    for (int i = 0; i < g->n_values; i++)
        if (pinned[i])
            stretch(&live[i], 0, time + 1);
    return live;
}

/* -- parts of a set ------------------------------------------------------------------------ */

static int by_byte(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int by_start(const void *a, const void *b)
{
    const Part *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int by_end_down(const void *a, const void *b)
{
    const Part *x = a, *y = b;
    return (x->end < y->end) - (x->end > y->end);
}

typedef struct Pieces {
    int64_t *cut; /* sorted; piece i is cut[i] .. cut[i + 1] */
    int n;
    int *next;    /* the first piece from i on that is not taken */
} Pieces;

static int free_piece(Pieces *p, int i)
{
    while (p->next[i] != i)
        i = p->next[i] = p->next[p->next[i]];
    return i;
}

static int piece_at(const Pieces *p, int64_t byte)
{
    int lo = 0, hi = p->n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (p->cut[mid] < byte)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static Pieces pieces_of(const Part *v, int n, Arena *tmp)
{
    Pieces p = {NEW(tmp, int64_t, 2 * n + 1), 0, NEW(tmp, int, 2 * n + 1)};
    for (int i = 0; i < n; i++) {
        p.cut[2 * i] = v[i].lo;
        p.cut[2 * i + 1] = v[i].hi;
    }
    qsort(p.cut, 2 * (size_t)n, sizeof *p.cut, by_byte);
    for (int i = 0; i < 2 * n; i++)
        if (!p.n || p.cut[p.n - 1] != p.cut[i])
            p.cut[p.n++] = p.cut[i];
    p.n--;
    return p;
}

/* Gives each piece to the first of v that covers it.  `end`: notes the last read of that value in
 * it, else the birth. */
static void take_pieces(Pieces *p, const Part *v, int n, bool end, Part *to)
{
    for (int i = 0; i <= p->n; i++)
        p->next[i] = i;
    for (int i = 0; i < n; i++) {
        int last = piece_at(p, v[i].hi);
        assert(p->cut[last] == v[i].hi);
        for (int k = free_piece(p, piece_at(p, v[i].lo)); k < last; k = free_piece(p, k)) {
            if (end)
                to[k].end = v[i].end;
            else
                to[k] = (Part){v[i].start, 0, p->cut[k], p->cut[k + 1]};
            p->next[k] = k + 1;
        }
    }
}

/* Makes one part of neighbours with the same times.  Returns the number of parts. */
static int merge_parts(Part *part, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        Part *to = &part[kept - (kept > 0)];
        if (kept && to->hi == part[i].lo && to->start == part[i].start && to->end == part[i].end)
            to->hi = part[i].hi;
        else
            part[kept++] = part[i];
    }
    return kept;
}

static bool are_alike(const Part *v, int n)
{
    for (int i = 1; i < n; i++)
        if (v[i].lo != v[0].lo || v[i].hi != v[0].hi)
            return false;
    return true;
}

Block block_make(int root, int start, int end, int64_t bytes, Arena *tmp)
{
    assert(start <= end && bytes >= 0);
    Part *part = NEW(tmp, Part, 1);
    *part = (Part){start, end, 0, bytes};
    return (Block){.root = root, .start = start, .end = end, .bytes = bytes, .part = part,
                   .n_parts = 1};
}

/* Returns the block of a set whose values are v, which it sorts. */
static Block block_of(int root, Part *v, int n, Arena *tmp)
{
    assert(n > 0);
    Part all = v[0];
    for (int i = 1; i < n; i++) {
        stretch(&all, v[i].start, v[i].end);
        all.hi = v[i].hi > all.hi ? v[i].hi : all.hi;
    }
    Block b = block_make(root, all.start, all.end, all.hi, tmp);
    if (are_alike(v, n))
        return b;
    Pieces p = pieces_of(v, n, tmp);
    Part *part = NEW(tmp, Part, p.n + 1);
    qsort(v, (size_t)n, sizeof *v, by_start);
    take_pieces(&p, v, n, false, part);
    qsort(v, (size_t)n, sizeof *v, by_end_down);
    take_pieces(&p, v, n, true, part);
    int count = merge_parts(part, p.n);
    if (count <= MAX_PARTS) {
        b.part = part;
        b.n_parts = count;
    }
    return b;
}

/* -- blocks -------------------------------------------------------------------------------- */

/* The live parts of each alias set: those of the set with root r are member[first[r] .. first[r + 1]). */
typedef struct Members {
    int *first;
    Part *member;
} Members;

static Members members_of(const Graph *g, AliasSets a, const Part *live, Arena *tmp)
{
    int n = g->n_values, *fill = NEW(tmp, int, n + 2);
    Members m = {NEW(tmp, int, n + 2), NEW(tmp, Part, n + 1)};
    for (int i = 0; i < n; i++)
        m.first[a.root[i] + 1] += live[i].end >= 0;
    for (int i = 0; i < n; i++)
        m.first[i + 1] += m.first[i];
    for (int i = 0; i < n; i++)
        if (live[i].end >= 0)
            m.member[m.first[a.root[i]] + fill[a.root[i]]++] = live[i];
    return m;
}

/* Adds one block for the graphs of a cond or a loop.  Only one of them runs at a time, so their
 * pools all begin at its first byte. */
static void add_branches(Blocks *b, const Node *n, int time, Arena *tmp)
{
    int64_t bytes = 0;
    for (const Graph *g = NULL; (g = region_planned(n, g));)
        if (g->n_pools && g->pool[0] > bytes)
            bytes = g->pool[0];
    if (!bytes)
        return;
    Block one = block_make(-1, time, time, round_out(bytes), tmp);
    one.node = n;
    PUSH(tmp, b->item, b->n, one);
}

Blocks blocks_of(const Graph *g, AliasSets a, Arena *tmp)
{
    const Value **value = graph_values(g, tmp);
    bool *callers = NEW(tmp, bool, g->n_values + 1);
    Members m = members_of(g, a, live_values(g, a, value, tmp), tmp);
    Blocks b = {0};
    int time = 0;
    mark_callers(g, a, callers, tmp);
    for (int i = 0; i < g->n_values; i++) {
        int n = m.first[i + 1] - m.first[i];
        if (!value[i] || !n || callers[i] || value[i]->type.rank == SCALAR ||
            value[i]->type.is_none)
            continue;
        Block one = block_of(i, m.member + m.first[i], n, tmp);
        PUSH(tmp, b.item, b.n, one);
    }
    for (const Node *n = g->first; n; n = n->next)
        add_branches(&b, n, ++time, tmp);
    return b;
}

int64_t blocks_bound(Blocks b, Arena *tmp)
{
    int end = 0;
    for (int i = 0; i < b.n; i++)
        end = b.item[i].end > end ? b.item[i].end : end;
    int64_t *change = NEW(tmp, int64_t, end + 2), sum = 0, most = 0;
    for (int i = 0; i < b.n; i++)
        for (int k = 0; k < b.item[i].n_parts; k++) {
            const Part *p = &b.item[i].part[k];
            change[p->start] += p->hi - p->lo;
            change[p->end + 1] -= p->hi - p->lo;
        }
    for (int t = 0; t <= end; t++) {
        sum += change[t];
        most = sum > most ? sum : most;
    }
    return most;
}

/* -- what operators need whole ---------------------------------------------------------------- */

typedef struct Touched {
    const Value *v;
    int root;
} Touched;

/* Returns the bytes of the tensors in t.  Of those that share bytes it counts the largest. */
static int64_t bytes_of_roots(const Touched *t, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        int64_t own = type_bytes(t[i].v->type);
        bool is_largest = true;
        for (int k = 0; k < n && is_largest; k++) {
            int64_t other = type_bytes(t[k].v->type);
            is_largest = k == i || t[k].root != t[i].root || own > other || (own == other && i < k);
        }
        sum += is_largest ? round_up(own, PLAN_ALIGN) : 0;
    }
    return sum;
}

int64_t graph_whole_bound(const Graph *g, Arena *tmp)
{
    enum { MOST = 64 };
    AliasSets a = alias_sets(g, tmp);
    int64_t most = 0;
    if (!graph_has_bounds(g))
        return 0;
    for (const Node *n = g->first; n; n = n->next) {
        Touched t[MOST];
        int count = 0;
        for (int i = 0; i < n->n_in + n->n_out && count < MOST; i++) {
            const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
            if (!v->state && !v->type.is_none && v->type.rank != SCALAR)
                t[count++] = (Touched){v, a.root[v->index]};
        }
        int64_t bytes = bytes_of_roots(t, count);
        most = bytes > most ? bytes : most;
    }
    return most;
}
