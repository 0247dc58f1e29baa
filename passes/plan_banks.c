/* plan_banks.c -- decides which blocks of memory lie in which bank of a device.
 *
 * Banks are filled one after the other, the fastest first.  If a bank has room for all blocks that
 * are left, it takes them.  Otherwise it takes blocks one by one, if they fit: first those that are
 * read and written most often per byte, or the largest, if the session says so.  The last bank
 * takes the rest, whether it has room or not.  The driver knows all scratch, too: it asks for the
 * other order, or reports what does not fit. */
#include "passes/internal.h"
#include <stdlib.h>

typedef struct Split {
    Blocks b;
    const MemoryBanks *bank;
    int *order;       /* the blocks, in the order in which they are placed */
    int *bank_of;     /* by block: its bank; -1: it has none yet */
    int64_t *end;     /* by bank: the bytes that are used */
    bool is_least;    /* one bank takes all blocks, and its end is the lower bound */
    Arena *tmp;
} Split;

/* -- order ------------------------------------------------------------------------------------- */

typedef struct Rank {
    double key;
    int index;
} Rank;

static int descending(const void *a, const void *b)
{
    const Rank *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? 1 : -1;
    return x->index - y->index;
}

static int *order_of(Blocks b, bool by_size, Arena *tmp)
{
    Rank *rank = NEW(tmp, Rank, b.n + 1);
    int *order = NEW(tmp, int, b.n + 1);
    for (int i = 0; i < b.n; i++)
        rank[i] = (Rank){by_size ? (double)b.item[i].bytes : b.item[i].touches, i};
    qsort(rank, (size_t)b.n, sizeof *rank, descending);
    for (int i = 0; i < b.n; i++)
        order[i] = rank[i].index;
    return order;
}

/* -- one bank ---------------------------------------------------------------------------------- */

/* Returns the blocks that no bank has yet, in `order`, or in their own order if it is NULL.  Sets
 * number[i] to the number of the i-th of them. */
static Blocks left_of(const Split *s, const int *order, int *number)
{
    Blocks left = {NEW(s->tmp, Block, s->b.n + 1), 0};
    for (int i = 0; i < s->b.n; i++) {
        int k = order ? order[i] : i;
        if (s->bank_of[k] >= 0)
            continue;
        number[left.n] = k;
        left.item[left.n++] = s->b.item[k];
    }
    return left;
}

static void take(Split *s, int k, Blocks some, const int *number)
{
    for (int i = 0; i < some.n; i++) {
        s->bank_of[number[i]] = k;
        s->b.item[number[i]].offset = some.item[i].offset;
    }
}

/* Packs the blocks again, since only these share the bank, and keeps the layout with the lower
 * end. */
static int64_t pack_tighter(Blocks some, int64_t end, Arena *tmp)
{
    bool is_least;
    Blocks again = {NEW(tmp, Block, some.n + 1), some.n};
    for (int i = 0; i < some.n; i++)
        again.item[i] = some.item[i];
    int64_t lower = pack(again, blocks_bound(again, tmp), &is_least, tmp);
    for (int i = 0; i < some.n && lower < end; i++)
        some.item[i].offset = again.item[i].offset;
    return lower < end ? lower : end;
}

static void fill(Split *s, int k)
{
    int *number = NEW(s->tmp, int, s->b.n + 1), n = 0;
    bool *fits = NEW(s->tmp, bool, s->b.n + 1), is_least;
    Blocks left = left_of(s, NULL, number);
    const int64_t room = s->bank->item[k].bytes, all = left.n;
    int64_t end = pack(left, blocks_bound(left, s->tmp), &is_least, s->tmp);
    if (end > room && k < s->bank->n - 1) {
        left = left_of(s, s->order, number);
        end = pack_below(left, room, fits, s->tmp);
        for (int i = 0; i < left.n; i++)
            if (fits[i]) {
                number[n] = number[i];
                left.item[n++] = left.item[i];
            }
        left.n = n;
        end = pack_tighter(left, end, s->tmp);
    }
    s->is_least = s->is_least || (is_least && all == s->b.n && left.n == all);
    take(s, k, left, number);
    s->end[k] = end;
}

bool plan_banks(Blocks b, const Session *session, int64_t *end, Arena *tmp)
{
    const MemoryBanks *bank = &session->ram;
    Split s = {.b = b, .bank = bank, .end = end, .tmp = tmp};
    assert(bank->n > 0);
    s.order = order_of(b, session->large_first, tmp);
    s.bank_of = NEW(tmp, int, b.n + 1);
    for (int i = 0; i < b.n; i++)
        s.bank_of[i] = -1;
    for (int k = 0; k < bank->n; k++)
        fill(&s, k);
    for (int i = 0; i < b.n; i++) {
        assert(s.bank_of[i] >= 0);
        b.item[i].pool = s.bank_of[i] + 1;
    }
    return s.is_least;
}
