/* pack.c -- chooses the offsets of blocks in a pool, with the best of several packers.
 *
 * Blocks that are live at the same time must not overlap, and the end of the last block should
 * be small.  Each packer takes the blocks in another order and puts each into the lowest gap
 * that holds it.  For a gap only blocks matter that are live at the same time (mates); a sweep
 * finds these pairs once.  Parts of a block that become live later or die earlier leave room for
 * others: a placed part rules out a range of offsets for each part of a mate, and a gap is a
 * range that no part rules out.  If no packer reaches the lower bound, a branch and bound tries
 * all packings (pack_exact.c), and then a descent moves blocks in the order, both within a limit
 * of work.  If there are too many pairs, only the sweep is used, which allocates and frees like
 * a heap. */
#include "passes/internal.h"
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PAIRS = 400000,
    MAX_EXACT = 400,
    RULES_WORK = 4000000,
    EXACT_WORK = 1000000,
    DESCENT_WORK = 1000000
};

typedef struct Range { /* offsets between the two are ruled out */
    int64_t at, end;
} Range;

typedef struct Pack {
    Blocks b;
    Arena *tmp;
    int *first, *mate; /* mates of block i: mate[first[i] .. first[i+1]) */
    int64_t *at, *best;
    int64_t bound, best_end;
    int64_t *pressure; /* by block */
    bool *placed;
    Range *range; /* the offsets that placed mates rule out for one block */
    int64_t work; /* how many mates and ranges may still be looked at */
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

typedef enum Rule {
    BY_SIZE,
    BY_AREA,
    BY_LENGTH,
    BY_PRESSURE,      /* most bytes in use at any of its times, then size */
    BY_PRESSURE_LONG, /* then length */
    BY_START,
    BY_END
} Rule;

static Key key_of(const Pack *p, Rule rule, int index)
{
    const Block *b = &p->b.item[index];
    double size = (double)b->bytes, length = b->end - b->start + 1;
    switch (rule) {
    case BY_SIZE:
        return (Key){size, length, index};
    case BY_AREA:
        return (Key){size * length, size, index};
    case BY_LENGTH:
        return (Key){length, size, index};
    case BY_PRESSURE:
        return (Key){(double)p->pressure[index], size, index};
    case BY_PRESSURE_LONG:
        return (Key){(double)p->pressure[index], length, index};
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
        key[i] = key_of(p, rule, i);
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
    assert(a != b && p->first[a] + fill[a] < p->first[a + 1]);
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

/* Allocates room for all ranges that the mates of one block may rule out. */
static void make_ranges(Pack *p)
{
    int64_t most = 0;
    for (int i = 0; i < p->b.n; i++) {
        int64_t n = 0;
        for (int k = p->first[i]; k < p->first[i + 1]; k++)
            n += p->b.item[p->mate[k]].n_parts;
        n *= p->b.item[i].n_parts;
        most = n > most ? n : most;
    }
    p->range = NEW(p->tmp, Range, most + 1);
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
    make_ranges(p);
    return true;
}

/* -- gaps -------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const Range *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Sorts ranges.  Most blocks have few mates, for which qsort takes three times as long. */
static void sort_ranges(Range *r, int n)
{
    enum { FEW = 32 };
    if (n > FEW) {
        qsort(r, (size_t)n, sizeof *r, ascending);
        return;
    }
    for (int i = 1; i < n; i++) {
        Range moved = r[i];
        int k = i;
        for (; k && r[k - 1].at > moved.at; k--)
            r[k] = r[k - 1];
        r[k] = moved;
    }
}

/* Appends the ranges of offsets that mate m rules out for block i; returns the number of ranges. */
static int add_ranges(Pack *p, int i, int m, int n)
{
    const Block *a = &p->b.item[i], *b = &p->b.item[m];
    for (int k = 0; k < a->n_parts; k++)
        for (int j = 0; j < b->n_parts; j++) {
            const Part *x = &a->part[k], *y = &b->part[j];
            Range r = {p->at[m] + y->lo - x->hi, p->at[m] + y->hi - x->lo};
            if (x->start > y->end || y->start > x->end || r.end <= 0)
                continue;
            p->range[n++] = r;
        }
    return n;
}

/* Collects the ranges that the placed mates of block i rule out, ascending; returns their
 * number. */
static int placed_ranges(Pack *p, int i)
{
    int n = 0;
    for (int k = p->first[i]; k < p->first[i + 1]; k++)
        if (p->placed[p->mate[k]])
            n = add_ranges(p, i, p->mate[k], n);
    p->work += 1 + n + p->first[i + 1] - p->first[i];
    sort_ranges(p->range, n);
    return n;
}

/* Returns the lowest offset at which block i fits. */
static int64_t find_gap(Pack *p, int i)
{
    assert(!p->placed[i]);
    int64_t top = 0;
    int n = placed_ranges(p, i);
    for (int k = 0; k < n && p->range[k].at < top; k++)
        top = p->range[k].end > top ? p->range[k].end : top;
    return top;
}

static void keep(Pack *p, int64_t end)
{
    if (end >= p->best_end)
        return;
    p->best_end = end;
    for (int i = 0; i < p->b.n; i++)
        p->best[i] = p->at[i];
}

/* Returns the end.  If it gets above `limit`, returns how far it had come. */
static int64_t pack_in(Pack *p, const int *order, int64_t limit)
{
    int64_t end = 0;
    memset(p->placed, 0, (size_t)p->b.n * sizeof *p->placed);
    for (int i = 0; i < p->b.n && end <= limit; i++) {
        int b = order[i];
        p->at[b] = find_gap(p, b);
        p->placed[b] = true;
        if (p->at[b] + p->b.item[b].bytes > end)
            end = p->at[b] + p->b.item[b].bytes;
    }
    if (end <= limit)
        keep(p, end);
    return end;
}

/* -- branch and bound -------------------------------------------------------------------------- */

static bool is_rectangular(Blocks b)
{
    for (int i = 0; i < b.n; i++)
        if (b.item[i].n_parts > 1)
            return false;
    return true;
}

/* Tries all packings, and returns whether that proves the best to be the lowest: the search came to
 * its end, and no block has several parts, which count here as one of all their bytes. */
static bool search(Pack *p)
{
    int64_t work = EXACT_WORK;
    if (p->b.n > MAX_EXACT)
        return false;
    p->best_end = pack_exact(p->b, p->bound, p->best_end, p->best, &work, p->tmp);
    return work > 0 && is_rectangular(p->b);
}

/* -- descent ----------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void move_item(int *order, int from, int to)
{
    int b = order[from];
    if (to < from)
        memmove(order + to + 1, order + to, (size_t)(from - to) * sizeof *order);
    else
        memmove(order + from, order + from + 1, (size_t)(to - from) * sizeof *order);
    order[to] = b;
}

/* Moves one block at a time, mostly to the front half, and stays where the end is no higher. */
static void descend(Pack *p, int *order, uint32_t seed)
{
    p->work = 0;
    int64_t end = pack_in(p, order, INT64_MAX);
    uint32_t n = (uint32_t)p->b.n;
    while (n > 1 && p->work < DESCENT_WORK && p->best_end > p->bound) {
        int from = (int)(next_random(&seed) % n), to = (int)(next_random(&seed) % n);
        to = next_random(&seed) % 2 ? to / 2 : to;
        move_item(order, from, to);
        int64_t now = pack_in(p, order, end);
        if (now <= end)
            end = now;
        else
            move_item(order, to, from);
    }
}

/* -- too many pairs ---------------------------------------------------------------------------- */

/* Packs blocks by their start, each into the first gap between the blocks in use.  These are kept
 * sorted by offset. */
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

/* -- pressure ---------------------------------------------------------------------------------- */

static int64_t *bytes_in_use(Blocks b, int *n_times, Arena *tmp)
{
    int n = 1;
    for (int i = 0; i < b.n; i++)
        n = b.item[i].end + 1 > n ? b.item[i].end + 1 : n;
    int64_t *use = NEW(tmp, int64_t, n + 1);
    for (int i = 0; i < b.n; i++)
        for (int k = 0; k < b.item[i].n_parts; k++) {
            const Part *part = &b.item[i].part[k];
            use[part->start] += part->hi - part->lo;
            use[part->end + 1] -= part->hi - part->lo;
        }
    for (int t = 1; t < n; t++)
        use[t] += use[t - 1];
    *n_times = n;
    return use;
}

/* Finds the most bytes that are in use during each block.  most[k][t] is the largest number of the
 * 2^k times from t on; two of these cover any stretch. */
static void find_pressure(Pack *p)
{
    int n, levels = 1;
    int64_t *most[32] = {bytes_in_use(p->b, &n, p->tmp)};
    for (; 1 << levels <= n; levels++) {
        int half = 1 << (levels - 1);
        most[levels] = NEW(p->tmp, int64_t, n + 1);
        for (int t = 0; t + 2 * half <= n; t++)
            most[levels][t] = most[levels - 1][t] > most[levels - 1][t + half]
                                  ? most[levels - 1][t] : most[levels - 1][t + half];
    }
    p->pressure = NEW(p->tmp, int64_t, p->b.n + 1);
    for (int i = 0; i < p->b.n; i++) {
        const Block *b = &p->b.item[i];
        int k = 31 - __builtin_clz((unsigned)(b->end - b->start + 1));
        assert(k < levels);
        int64_t x = most[k][b->start], y = most[k][b->end + 1 - (1 << k)];
        p->pressure[i] = x > y ? x : y;
    }
}

/* -- all packers ------------------------------------------------------------------------------- */

static void pack_by_rules(Pack *p)
{
    static const Rule rule[] = {BY_SIZE, BY_AREA, BY_LENGTH, BY_START, BY_PRESSURE,
                                BY_PRESSURE_LONG};
    enum { N_RULES = sizeof rule / sizeof *rule };
    find_pressure(p);
    p->work = 0;
    for (int i = 0; i < N_RULES && p->best_end > p->bound && p->work < RULES_WORK; i++)
        pack_in(p, order_by(p, rule[i]), p->best_end - 1);
}

int64_t pack_below(Blocks b, int64_t size, bool *fits, Arena *tmp)
{
    Pack p = {.b = b, .tmp = tmp};
    p.at = NEW(tmp, int64_t, b.n + 1);
    p.placed = NEW(tmp, bool, b.n + 1);
    bool has_mates = find_mates(&p);
    int64_t end = 0;
    for (int i = 0; i < b.n; i++) {
        p.at[i] = has_mates ? find_gap(&p, i) : end; /* else no two share bytes */
        fits[i] = p.at[i] <= size - b.item[i].bytes;
        p.placed[i] = fits[i];
        b.item[i].offset = p.at[i];
        if (fits[i] && p.at[i] + b.item[i].bytes > end)
            end = p.at[i] + b.item[i].bytes;
    }
    return end;
}

int64_t pack(Blocks b, int64_t bound, bool *is_least, Arena *tmp)
{
    bool complete = false;
    Pack p = {.b = b, .tmp = tmp, .bound = bound, .best_end = INT64_MAX};
    p.at = NEW(tmp, int64_t, b.n + 1);
    p.best = NEW(tmp, int64_t, b.n + 1);
    p.placed = NEW(tmp, bool, b.n + 1);
    *is_least = true;
    if (!b.n)
        return 0;
    if (total(b) == bound) {
        lay_end_to_end(&p);
    } else if (!find_mates(&p)) {
        pack_as_heap(&p);
    } else {
        pack_by_rules(&p);
        complete = p.best_end > bound && search(&p);
        if (p.best_end > bound && !complete) {
            descend(&p, order_by(&p, BY_PRESSURE), 1);
            descend(&p, order_by(&p, BY_PRESSURE_LONG), 2);
        }
    }
    for (int i = 0; i < b.n; i++)
        b.item[i].offset = p.best[i];
    *is_least = complete || p.best_end == bound;
    return p.best_end;
}
