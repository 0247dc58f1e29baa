/* pack_exact.c -- finds the lowest end of all packings by branch and bound.
 *
 * Blocks are placed in the order of their offsets.  Then every block rests on blocks that were
 * placed before it: its offset is the largest top among its placed mates, which is updated block by
 * block.  At each time all blocks that are still to come lie above all that are placed.  So the
 * largest sum, over all times, of the top and the bytes to come is a bound for the rest.  A block
 * that would leave room for another one below it need not be tried, because that one could be
 * placed first. Both ideas are those of "MiniMalloc: A Lightweight Memory Allocator for
 * Hardware-Accelerated Machine Learning" (Moffitt, 2023). */
#include "passes/internal.h"
#include <stdlib.h>
#include <string.h>

typedef struct Exact {
    int n, n_times;
    const Block *block;
    int *from, *to;         /* a block's times, numbered by the births of blocks */
    int *first, *mate;
    int64_t *floor;         /* the lowest offset of a block that is not placed */
    int64_t *top, *to_come; /* by time: the end of placed blocks, the bytes of the others */
    bool *placed;
    int64_t *at, *best_at, best, bound, work;
    struct Undo {           /* a change of `floor` */
        int block;
        int64_t floor;
    } *undo;
    int64_t *saved; /* tops that placed blocks have covered */
    int n_undo, n_saved;
    Arena *tmp;
} Exact;

/* -- times and mates --------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int last_not_above(const int *v, int n, int key)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (v[mid] <= key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo - 1;
}

/* Numbers the times by the births of blocks, because live bytes only grow when a block is born. */
static void number_times(Exact *x)
{
    int *birth = NEW(x->tmp, int, x->n + 1), n = 0;
    for (int i = 0; i < x->n; i++)
        birth[i] = x->block[i].start;
    qsort(birth, (size_t)x->n, sizeof *birth, by_number);
    for (int i = 0; i < x->n; i++)
        if (!n || birth[n - 1] != birth[i])
            birth[n++] = birth[i];
    for (int i = 0; i < x->n; i++) {
        x->from[i] = last_not_above(birth, n, x->block[i].start);
        x->to[i] = last_not_above(birth, n, x->block[i].end);
        assert(0 <= x->from[i] && x->from[i] <= x->to[i]);
    }
    x->n_times = n;
}

static bool are_mates(const Exact *x, int i, int k)
{
    return i != k && x->from[i] <= x->to[k] && x->from[k] <= x->to[i];
}

/* Finds the mates of all blocks by looking at each pair; the caller keeps their number small. */
static void find_mates(Exact *x)
{
    int n = 0;
    x->first = NEW(x->tmp, int, x->n + 1);
    for (int i = 0; i < x->n; i++) {
        for (int k = 0; k < x->n; k++)
            if (are_mates(x, i, k))
                PUSH(x->tmp, x->mate, n, k);
        x->first[i + 1] = n;
    }
    x->undo = NEW(x->tmp, struct Undo, n + 1);
}

/* -- the search -------------------------------------------------------------------------------- */

/* Takes block i to where it rests; false: the rest cannot end below the best. */
static bool place(Exact *x, int i)
{
    int64_t top = x->floor[i] + x->block[i].bytes;
    bool ok = top < x->best;
    x->placed[i] = true;
    x->at[i] = x->floor[i];
    for (int t = x->from[i]; t <= x->to[i]; t++) {
        x->saved[x->n_saved++] = x->top[t];
        x->to_come[t] -= x->block[i].bytes;
        x->top[t] = top;
        ok = ok && top + x->to_come[t] < x->best;
    }
    for (int k = x->first[i]; k < x->first[i + 1]; k++) {
        int m = x->mate[k];
        if (x->placed[m] || x->floor[m] >= top)
            continue;
        x->undo[x->n_undo++] = (struct Undo){m, x->floor[m]};
        x->floor[m] = top;
        ok = ok && top + x->block[m].bytes < x->best;
    }
    x->work -= x->to[i] - x->from[i] + x->first[i + 1] - x->first[i];
    return ok;
}

static void take_back(Exact *x, int i, int n_undo)
{
    x->placed[i] = false;
    while (x->n_undo > n_undo) {
        x->n_undo--;
        x->floor[x->undo[x->n_undo].block] = x->undo[x->n_undo].floor;
    }
    for (int t = x->to[i]; t >= x->from[i]; t--) {
        x->to_come[t] += x->block[i].bytes;
        x->top[t] = x->saved[--x->n_saved];
    }
}

typedef struct Choice {
    int64_t at, bytes, length;
    int block;
} Choice;

static int better_first(const void *a, const void *b)
{
    const Choice *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->length != y->length)
        return x->length > y->length ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->block - y->block;
}

/* Lists the blocks that may come next, after one at offset `low`.  Returns their number. */
static int choices(Exact *x, int64_t low, Choice *c)
{
    int n = 0;
    int64_t least_top = INT64_MAX;
    for (int i = 0; i < x->n; i++)
        if (!x->placed[i] && x->floor[i] >= low && x->floor[i] + x->block[i].bytes < least_top)
            least_top = x->floor[i] + x->block[i].bytes;
    for (int i = 0; i < x->n; i++)
        if (!x->placed[i] && x->floor[i] >= low && x->floor[i] < least_top)
            c[n++] = (Choice){x->floor[i], x->block[i].bytes, x->to[i] - x->from[i], i};
    x->work -= x->n;
    qsort(c, (size_t)n, sizeof *c, better_first);
    return n;
}

static bool is_twin(const Exact *x, int i, int k)
{
    return x->from[i] == x->from[k] && x->to[i] == x->to[k] &&
           x->block[i].bytes == x->block[k].bytes;
}

static void search(Exact *x, int depth, int64_t low, Choice *room)
{
    if (depth == x->n) {
        x->best = 0;
        for (int i = 0; i < x->n; i++) {
            int64_t end = x->at[i] + x->block[i].bytes;
            x->best = end > x->best ? end : x->best;
        }
        memcpy(x->best_at, x->at, (size_t)x->n * sizeof *x->at);
        return;
    }
    int n = choices(x, low, room), n_undo = x->n_undo;
    for (int c = 0; c < n && x->work > 0 && x->best > x->bound; c++) {
        int i = room[c].block;
        if (c && is_twin(x, i, room[c - 1].block))
            continue;
        if (place(x, i))
            search(x, depth + 1, x->at[i], room + n);
        take_back(x, i, n_undo);
    }
}

int64_t pack_exact(Blocks b, int64_t bound, int64_t best, int64_t *at, int64_t *work, Arena *tmp)
{
    size_t n = (size_t)b.n + 1;
    Exact x = {.n = b.n, .block = b.item, .from = NEW(tmp, int, n), .to = NEW(tmp, int, n),
               .floor = NEW(tmp, int64_t, n), .top = NEW(tmp, int64_t, n),
               .to_come = NEW(tmp, int64_t, n), .placed = NEW(tmp, bool, n),
               .at = NEW(tmp, int64_t, n), .best_at = at, .best = best, .bound = bound,
               .work = *work, .tmp = tmp};
    int times = 0;
    number_times(&x);
    find_mates(&x);
    for (int i = 0; i < b.n; i++) {
        times += x.to[i] - x.from[i] + 1;
        for (int t = x.from[i]; t <= x.to[i]; t++)
            x.to_come[t] += b.item[i].bytes;
    }
    x.saved = NEW(tmp, int64_t, times + 1);
    search(&x, 0, 0, NEW(tmp, Choice, n * n));
    *work = x.work > 0 ? x.work : 0;
    return x.best;
}
