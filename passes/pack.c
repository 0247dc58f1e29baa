/* pack.c -- where blocks lie in a pool: several packers, the best result counts.
 *
 * Blocks in use at the same time must not overlap; the end of the last is to be small.  Each packer
 * takes the blocks in another order and puts each at the lowest gap that holds it, or the tightest.
 * Only blocks that share time matter for a gap; the pairs that do are found once, by a sweep.  When
 * none reaches the lower bound, a branch and bound tries other orders within an amount of work.
 * Too many pairs (more than MAX_PAIRS) leave the sweep alone, which frees and takes as a heap does.
 */
#include "passes/internal.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_PAIRS = 4000000, MAX_WORK = 500000, MAX_SEARCHED = 400 };

typedef struct Pack {
    Blocks b;
    Arena *tmp;
    int *first, *mate; /* mates of block i: mate[first[i] .. first[i+1]) */
    int64_t *at, *best;
    int64_t bound, best_end;
    bool *placed;
    struct Near {
        int64_t at, end;
    } *near; /* placed mates of one block */
    int work; /* of the search: mates looked at */
} Pack;

/* -- order of blocks ------------------------------------------------------------------------- */

typedef struct Key {
    double major, minor;
    int index;
} Key;

static int descending(const void *a, const void *b)
{
    const Key *x = a, *y = b;
    if (x->major != y->major)
        return x->major < y->major ? 1 : -1;
    if (x->minor != y->minor)
        return x->minor < y->minor ? 1 : -1;
    return x->index - y->index;
}

typedef enum Rule { BY_SIZE, BY_AREA, BY_LENGTH, BY_START, BY_END, N_RULES } Rule;

static Key key_of(const Block *b, Rule rule, int index)
{
    double size = (double)b->bytes, length = b->end - b->start + 1;
    switch (rule) {
    case BY_SIZE:
        return (Key){size, length, index};
    case BY_AREA:
        return (Key){size * length, size, index};
    case BY_LENGTH:
        return (Key){length, size, index};
    case BY_START:
        return (Key){-(double)b->start, size, index};
    default:
        return (Key){b->end, size, index};
    }
}

static int *order_by(Pack *p, Rule rule)
{
    Key *key = NEW(p->tmp, Key, p->b.n + 1);
    int *order = NEW(p->tmp, int, p->b.n + 1);
    for (int i = 0; i < p->b.n; i++)
        key[i] = key_of(&p->b.item[i], rule, i);
    qsort(key, (size_t)p->b.n, sizeof *key, descending);
    for (int i = 0; i < p->b.n; i++)
        order[i] = key[i].index;
    return order;
}

/* -- blocks that share time -------------------------------------------------------------------- */

static int64_t count_pairs(Pack *p, const int *by_start, const int *by_end)
{
    int64_t pairs = 0;
    for (int i = 0, gone = 0; i < p->b.n; i++) {
        while (p->b.item[by_end[gone]].end < p->b.item[by_start[i]].start)
            gone++;
        pairs += i - gone;
    }
    return pairs;
}

static void add_mate(Pack *p, int *fill, int a, int b)
{
    p->mate[p->first[a] + fill[a]++] = b;
    p->mate[p->first[b] + fill[b]++] = a;
}

/* Walks blocks by start; `live` holds those not over yet. */
static void sweep(Pack *p, const int *by_start, int *fill, bool only_count)
{
    int *live = NEW(p->tmp, int, p->b.n + 1), n = 0;
    for (int i = 0; i < p->b.n; i++) {
        int a = by_start[i], kept = 0;
        for (int k = 0; k < n; k++) {
            if (p->b.item[live[k]].end < p->b.item[a].start)
                continue;
            live[kept++] = live[k];
            if (only_count) {
                p->first[a + 1]++;
                p->first[live[kept - 1] + 1]++;
            } else {
                add_mate(p, fill, a, live[kept - 1]);
            }
        }
        live[kept++] = a;
        n = kept;
    }
}

static bool find_mates(Pack *p)
{
    int n = p->b.n, *by_start = order_by(p, BY_START), *by_end = order_by(p, BY_END);
    for (int i = 0; i < n / 2; i++) { /* ascending by end */
        int t = by_end[i];
        by_end[i] = by_end[n - 1 - i];
        by_end[n - 1 - i] = t;
    }
    int64_t pairs = count_pairs(p, by_start, by_end);
    if (pairs > MAX_PAIRS)
        return false;
    p->first = NEW(p->tmp, int, n + 2);
    sweep(p, by_start, NULL, true);
    for (int i = 0; i < n; i++)
        p->first[i + 1] += p->first[i];
    p->mate = NEW(p->tmp, int, 2 * pairs + 1);
    sweep(p, by_start, NEW(p->tmp, int, n + 1), false);
    return true;
}

/* -- gaps -------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const struct Near *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* The placed mates of block i, ascending by offset. */
static int placed_mates(Pack *p, int i)
{
    int n = 0;
    for (int k = p->first[i]; k < p->first[i + 1]; k++) {
        int m = p->mate[k];
        if (p->placed[m])
            p->near[n++] = (struct Near){p->at[m], p->at[m] + p->b.item[m].bytes};
    }
    qsort(p->near, (size_t)n, sizeof *p->near, ascending);
    return n;
}

/* The lowest offset where block i fits, or the start of the smallest gap that holds it. */
static int64_t find_gap(Pack *p, int i, bool tightest)
{
    int64_t bytes = p->b.item[i].bytes, top = 0, best = -1, best_gap = INT64_MAX;
    int n = placed_mates(p, i);
    for (int k = 0; k < n; k++) {
        int64_t gap = p->near[k].at - top;
        if (gap >= bytes && gap < best_gap) {
            best = top;
            best_gap = gap;
            if (!tightest)
                return best;
        }
        top = p->near[k].end > top ? p->near[k].end : top;
    }
    return best >= 0 ? best : top;
}

static void keep(Pack *p, int64_t end)
{
    if (end >= p->best_end)
        return;
    p->best_end = end;
    memcpy(p->best, p->at, (size_t)p->b.n * sizeof *p->at);
}

static void pack_in(Pack *p, const int *order, bool tightest)
{
    int64_t end = 0;
    memset(p->placed, 0, (size_t)p->b.n * sizeof *p->placed);
    for (int i = 0; i < p->b.n && end < p->best_end; i++) {
        int b = order[i];
        p->at[b] = find_gap(p, b, tightest);
        p->placed[b] = true;
        if (p->at[b] + p->b.item[b].bytes > end)
            end = p->at[b] + p->b.item[b].bytes;
    }
    keep(p, end);
}

/* -- branch and bound -------------------------------------------------------------------------- */

/* Places the rest of the blocks, in every order, nearest to `order` first; cuts what is no better
 * than the best. */
static void search(Pack *p, const int *order, int depth, int64_t end)
{
    if (depth == p->b.n) {
        keep(p, end);
        return;
    }
    for (int i = 0, tried = 0; i < p->b.n && tried < 3; i++) {
        int b = order[i];
        if (p->placed[b])
            continue;
        p->work += 1 + p->first[b + 1] - p->first[b];
        if (p->work > MAX_WORK || p->best_end == p->bound)
            return;
        tried++;
        int64_t at = find_gap(p, b, false), top = at + p->b.item[b].bytes;
        if (top >= p->best_end)
            continue;
        p->at[b] = at;
        p->placed[b] = true;
        search(p, order, depth + 1, top > end ? top : end);
        p->placed[b] = false;
    }
}

static void search_from(Pack *p, Rule rule)
{
    memset(p->placed, 0, (size_t)p->b.n * sizeof *p->placed);
    p->work = 0;
    search(p, order_by(p, rule), 0, 0);
}

/* -- too many pairs ---------------------------------------------------------------------------- */

/* First fit by start over the blocks in use, kept ascending by offset. */
static void pack_as_heap(Pack *p)
{
    int *order = order_by(p, BY_START), *live = NEW(p->tmp, int, p->b.n + 1), n = 0;
    int64_t end = 0;
    for (int i = 0; i < p->b.n; i++) {
        const Block *b = &p->b.item[order[i]];
        int kept = 0, slot = -1;
        int64_t top = 0;
        for (int k = 0; k < n; k++) {
            const Block *m = &p->b.item[live[k]];
            if (m->end < b->start)
                continue;
            if (slot < 0 && p->at[live[k]] - top >= b->bytes)
                slot = kept;
            if (slot < 0)
                top = p->at[live[k]] + m->bytes;
            live[kept++] = live[k];
        }
        slot = slot < 0 ? kept : slot;
        memmove(live + slot + 1, live + slot, (size_t)(kept - slot) * sizeof *live);
        live[slot] = order[i];
        n = kept + 1;
        p->at[order[i]] = top;
        end = top + b->bytes > end ? top + b->bytes : end;
    }
    keep(p, end);
}

/* -- all in use at once ------------------------------------------------------------------------ */

static int64_t total(Blocks b)
{
    int64_t sum = 0;
    for (int i = 0; i < b.n; i++)
        sum += b.item[i].bytes;
    return sum;
}

static void lay_end_to_end(Pack *p)
{
    int64_t at = 0;
    for (int i = 0; i < p->b.n; i++) {
        p->at[i] = at;
        at += p->b.item[i].bytes;
    }
    keep(p, at);
}

int64_t pack(Blocks b, int64_t bound, Arena *tmp)
{
    static const Rule rule[] = {BY_SIZE, BY_AREA, BY_LENGTH, BY_START};
    Pack p = {.b = b, .tmp = tmp, .bound = bound, .best_end = INT64_MAX};
    p.at = NEW(tmp, int64_t, b.n + 1);
    p.best = NEW(tmp, int64_t, b.n + 1);
    p.placed = NEW(tmp, bool, b.n + 1);
    p.near = NEW(tmp, struct Near, b.n + 1);
    if (!b.n)
        return 0;
    if (total(b) == bound) {
        lay_end_to_end(&p);
    } else if (!find_mates(&p)) {
        pack_as_heap(&p);
    } else {
        for (int i = 0; i < 8 && p.best_end > bound; i++)
            pack_in(&p, order_by(&p, rule[i / 2]), i % 2);
        for (int i = 0; i < 2 && p.best_end > bound && b.n <= MAX_SEARCHED; i++)
            search_from(&p, rule[i]);
    }
    for (int i = 0; i < b.n; i++)
        b.item[i].offset = p.best[i];
    return p.best_end;
}
