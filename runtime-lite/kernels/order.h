/* order.h -- rows in order: the largest and smallest elements, their places, the first k, sorting.
 *
 * Elements are compared by keys, which are 64-bit integers in the order of the numbers.  -0 is
 * 0, and EtcOrder has the key of a NaN.  Of equal elements the first comes first, so all
 * algorithms give the same result.  Only topk of equal elements finds those that torch's topk finds;
 * see "the order of topk". */
#ifndef ETC_ORDER_H
#define ETC_ORDER_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcOrder {
    int32_t size, form; /* bytes of an element; form 0: unsigned, 1: signed, 2: a float */
    int64_t inf, nan;   /* floats: the bits of infinity; the key of a NaN, already flipped */
    int64_t flip;       /* 0: the largest elements come first; -1: the smallest */
    int64_t outer, n, inner, k; /* rows [outer][n][inner]; how many elements of n are wanted */
    int32_t topk; /* 1: equal elements as topk leaves them; 2: all elements, as it need not sort */
} EtcOrder;

ETC_INLINE int64_t etc_order_load(const unsigned char *p, const EtcOrder *g)
{
    if (g->size == 4) {
        int32_t v;
        __builtin_memcpy(&v, p, sizeof v);
        return (g->form == 0) ? (int64_t)(uint32_t)v : (int64_t)v;
    }
    if (g->size == 8) {
        int64_t v;
        __builtin_memcpy(&v, p, sizeof v);
        return v;
    }
    if (g->size == 2) {
        int16_t v;
        __builtin_memcpy(&v, p, sizeof v);
        return (g->form == 0) ? (int64_t)(uint16_t)v : (int64_t)v;
    }
    return (g->form == 0) ? (int64_t)p[0] : ((p[0] < 128u) ? (int64_t)p[0] : ((int64_t)p[0] - 256));
}

/* Returns the key of element i.  The element with the largest key comes first. */
ETC_INLINE int64_t etc_order_key(const void *x, int64_t i, const EtcOrder *g)
{
    int64_t v = etc_order_load((const unsigned char *)x + (i * g->size), g);
    if (g->form == 2) { /* Floats are sign and magnitude. */
        const int64_t low = (g->size == 8) ? INT64_MAX : (((int64_t)1 << ((8 * g->size) - 1)) - 1);
        const int64_t magnitude = v & low;
        if (magnitude > g->inf) {
            return g->nan;
        }
        v = (v < 0) ? -magnitude : magnitude;
    }
    return v ^ g->flip;
}

/* Finds the first element with the largest key in each row.  Stores its value and its place, each
 * unless NULL. */
ETC_INLINE void etc_order_best(const void *x, void *value, int64_t *place, const EtcOrder *g)
{
    for (int64_t row = 0; row < (g->outer * g->inner); row++) {
        const int64_t from = (etc_over(row, g->inner) * g->n * g->inner) + etc_rest(row, g->inner);
        int64_t best = 0, top = etc_order_key(x, from, g);
        for (int64_t i = 1; i < g->n; i++) {
            const int64_t key = etc_order_key(x, from + (i * g->inner), g);
            best = (key > top) ? i : best;
            top = (key > top) ? key : top;
        }
        if (place != NULL) {
            place[row] = best;
        }
        if (value != NULL) {
            __builtin_memcpy((unsigned char *)value + (row * g->size),
                             (const unsigned char *)x + ((from + (best * g->inner)) * g->size),
                             (size_t)g->size);
        }
    }
}

/* A row of x that starts at element `from`, and the places of its elements, which are `step` apart.
 * Places are read again after they were written, so they are checked. */
typedef struct EtcRanks {
    const void *x;
    int64_t *place;
    int64_t from, step;
    const EtcOrder *g;
} EtcRanks;

ETC_INLINE int64_t etc_rank_place(const EtcRanks *r, int64_t i)
{
    const int64_t at = r->place[i * r->step];
    return ((at >= 0) && (at < r->g->n)) ? at : 0;
}

/* Returns whether element a comes before element b. */
ETC_INLINE int etc_rank_before(const EtcRanks *r, int64_t a, int64_t b)
{
    const int64_t p = etc_order_key(r->x, r->from + (a * r->g->inner), r->g);
    const int64_t q = etc_order_key(r->x, r->from + (b * r->g->inner), r->g);
    return (p > q) || ((p == q) && (a < b));
}

/* Puts the place `at` at the root `top` of a heap of n places, and restores the heap below it.  The
 * place that comes last is on top of a heap. */
ETC_INLINE void etc_rank_sift(const EtcRanks *r, int64_t top, int64_t at, int64_t n)
{
    int64_t i = top;
    for (int64_t child = (2 * i) + 1; child < n; child = (2 * i) + 1) {
        if (((child + 1) < n) &&
            (etc_rank_before(r, etc_rank_place(r, child), etc_rank_place(r, child + 1)) != 0)) {
            child++;
        }
        const int64_t below = etc_rank_place(r, child);
        if (etc_rank_before(r, at, below) == 0) {
            break;
        }
        r->place[i * r->step] = below;
        i = child;
    }
    r->place[i * r->step] = at;
}

/* Writes the first k places of a row in order.  It collects them in a heap, and then sorts the heap
 * from its end. */
ETC_OUTLINE void etc_rank_heap(const EtcRanks *r)
{
    const int64_t k = r->g->k;
    for (int64_t i = 0; i < k; i++) {
        r->place[i * r->step] = i;
    }
    for (int64_t i = (k / 2) - 1; i >= 0; i--) {
        etc_rank_sift(r, i, etc_rank_place(r, i), k);
    }
    for (int64_t i = k; i < r->g->n; i++) {
        if (etc_rank_before(r, i, etc_rank_place(r, 0)) != 0) {
            etc_rank_sift(r, 0, i, k);
        }
    }
    for (int64_t i = k - 1; i > 0; i--) {
        const int64_t last = etc_rank_place(r, i);
        r->place[i * r->step] = etc_rank_place(r, 0);
        etc_rank_sift(r, 0, last, i);
    }
}

/* Returns half `half` of place i of the row, which is used as two numbers of 32 bits.  A number
 * out of range counts as 0. */
ETC_INLINE uint32_t etc_rank_get(const EtcRanks *r, int half, int64_t i)
{
    uint32_t v;
    __builtin_memcpy(&v, (const unsigned char *)(r->place + (i * r->step)) + (4 * half), sizeof v);
    return ((int64_t)v < r->g->n) ? v : 0u;
}

ETC_INLINE void etc_rank_put(const EtcRanks *r, int half, int64_t i, uint32_t v)
{
    __builtin_memcpy((unsigned char *)(r->place + (i * r->step)) + (4 * half), &v, sizeof v);
}

/* Returns digit d, of 8 bits, of the key of element i, as an unsigned number that grows along the
 * sorted row.  Keys have one digit more than elements, unless elements have 8 bytes. */
ETC_INLINE uint32_t etc_rank_digit(const EtcRanks *r, int64_t i, int32_t d)
{
    const int64_t key = etc_order_key(r->x, r->from + (i * r->g->inner), r->g);
    if (r->g->size == 8) {
        return (uint32_t)((~((uint64_t)key ^ ((uint64_t)1 << 63)) >> (8 * d)) & 255u);
    }
    const int64_t top = (int64_t)1 << (8 * r->g->size);
    const int64_t near = etc_max_i64(-top, etc_min_i64(key, top - 1));
    return (uint32_t)((((top - 1) - near) >> (8 * d)) & 255);
}

/* Sorts the places in half `half` by digit d into the other half.  Returns 0 if all digits are the
 * same; nothing is written then. */
ETC_OUTLINE int etc_rank_round(const EtcRanks *r, int half, int32_t d)
{
    int64_t at[256] = {0}, sum = 0;
    const int64_t n = r->g->n;
    for (int64_t i = 0; i < n; i++) {
        at[etc_rank_digit(r, i, d)]++;
    }
    for (int32_t i = 0; i < 256; i++) {
        const int64_t count = at[i];
        if (count == n) {
            return 0;
        }
        at[i] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint32_t place = etc_rank_get(r, half, i);
        int64_t *to = &at[etc_rank_digit(r, (int64_t)place, d)];
        etc_rank_put(r, 1 - half, (*to < n) ? *to : 0, place);
        (*to)++;
    }
    return 1;
}

/* Writes all places of a row in order.  It sorts by the digits of the keys, from the lowest up. */
ETC_OUTLINE void etc_rank_radix(const EtcRanks *r)
{
    const int64_t n = r->g->n;
    int half = 0;
    for (int64_t i = 0; i < n; i++) {
        etc_rank_put(r, 0, i, (uint32_t)i);
    }
    for (int32_t d = 0; d <= etc_min_i64(r->g->size, 7); d++) {
        half = (etc_rank_round(r, half, d) != 0) ? (1 - half) : half;
    }
    for (int64_t i = 0; i < n; i++) {
        r->place[i * r->step] = (int64_t)etc_rank_get(r, half, i);
    }
}

/* -- words: of elements of up to 4 bytes, a key of 32 bits above the place -----------------------
 * The word of an element that comes first is the smallest, and no two are the same. */

ETC_INLINE uint32_t etc_order_rank(const EtcRanks *r, int64_t i)
{
    const EtcOrder *g = r->g;
    const int64_t top = etc_max_i64(INT32_MIN, etc_min_i64(g->nan, INT32_MAX));
    if ((g->size == 4) && (g->form == 2)) { /* This is etc_order_key in 32 bits. */
        uint32_t v;
        const int64_t at = r->from + (i * g->inner);
        __builtin_memcpy(&v, (const unsigned char *)r->x + (4 * at), sizeof v);
        const uint32_t sign = 0u - (v >> 31), magnitude = v & 0x7fffffffu;
        const uint32_t key = ((magnitude ^ sign) - sign) ^ (uint32_t)g->flip;
        return ~(((magnitude > 0x7f800000u) ? (uint32_t)top : key) ^ 0x80000000u);
    }
    const int64_t key = etc_order_key(r->x, r->from + (i * g->inner), g);
    const int64_t near = etc_max_i64(INT32_MIN, etc_min_i64(key, INT32_MAX));
    return ~((g->form == 0) ? (uint32_t)key : ((uint32_t)near ^ 0x80000000u));
}

ETC_INLINE uint64_t etc_order_word(const EtcRanks *r, int64_t i)
{
    return ((uint64_t)etc_order_rank(r, i) << 32) | (uint64_t)i;
}

/* Puts `word` at the root `top` of a heap of n words, and restores the heap below it.  The
 * largest word is on top of a heap. */
ETC_INLINE void etc_word_sift(uint64_t *heap, int64_t top, uint64_t word, int64_t n)
{
    int64_t i = top;
    for (int64_t child = (2 * i) + 1; child < n; child = (2 * i) + 1) {
        child += (((child + 1) < n) && (heap[child + 1] > heap[child])) ? 1 : 0;
        if (heap[child] <= word) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = word;
}

/* Writes the k smallest words of a row to `heap`, in order.  Returns the smallest key of the words
 * that are left. */
ETC_INLINE uint32_t etc_word_heap(const EtcRanks *r, uint64_t *heap)
{
    enum { BLOCK = 64 };
    const int64_t k = r->g->k;
    uint64_t word = 0, left = UINT64_MAX;
    for (int64_t i = 0; i < k; i++) {
        heap[i] = etc_order_word(r, i);
    }
    for (int64_t i = (k / 2) - 1; i >= 0; i--) {
        etc_word_sift(heap, i, heap[i], k);
    }
    for (int64_t i = k; i < r->g->n; i += BLOCK) { /* Most blocks add no word to the heap. */
        const int64_t n = etc_min_i64(BLOCK, r->g->n - i);
        uint32_t rank[BLOCK], least = UINT32_MAX;
        for (int64_t b = 0; b < n; b++) {
            rank[b] = etc_order_rank(r, i + b);
            least = (rank[b] < least) ? rank[b] : least;
        }
        if ((uint64_t)least > (heap[0] >> 32)) {
            left = ((uint64_t)least < (left >> 32)) ? ((uint64_t)least << 32) : left;
            continue;
        }
        for (int64_t b = 0; b < n; b++) {
            word = ((uint64_t)rank[b] << 32) | (uint64_t)(i + b);
            const uint64_t out = (word < heap[0]) ? heap[0] : word;
            left = (out < left) ? out : left;
            if (word < heap[0]) {
                etc_word_sift(heap, 0, word, k);
            }
        }
    }
    for (int64_t i = k - 1; i > 0; i--) {
        word = heap[i];
        heap[i] = heap[0];
        etc_word_sift(heap, 0, word, i);
    }
    return (uint32_t)(left >> 32);
}

/* Sorts all words of a row by the four digits of their keys.  `a` and `b` have room for n words
 * each.  Returns the one that has the words in order. */
ETC_INLINE uint64_t *etc_word_radix(const EtcRanks *r, uint64_t *a, uint64_t *b)
{
    const int64_t n = r->g->n;
    uint32_t at[4][256] = {{0}};
    uint64_t *from = a, *to = b;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t word = etc_order_word(r, i);
        a[i] = word;
        for (int d = 0; d < 4; d++) {
            at[d][(word >> (32 + (8 * d))) & 255u]++;
        }
    }
    for (int d = 0; d < 4; d++) {
        uint32_t sum = 0;
        if ((int64_t)at[d][(from[0] >> (32 + (8 * d))) & 255u] == n) {
            continue;
        }
        for (int i = 0; i < 256; i++) {
            const uint32_t count = at[d][i];
            at[d][i] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++) {
            to[at[d][(from[i] >> (32 + (8 * d))) & 255u]++] = from[i];
        }
        uint64_t *const t = from;
        from = to;
        to = t;
    }
    return from;
}

/* Sorts all words of a row by insertion, in `a`.  Returns `a`.  It is for few words. */
ETC_INLINE uint64_t *etc_word_insert(const EtcRanks *r, uint64_t *a)
{
    for (int64_t i = 0; i < r->g->n; i++) {
        const uint64_t word = etc_order_word(r, i);
        int64_t k = i;
        for (; (k > 0) && (a[k - 1] > word); k--) {
            a[k] = a[k - 1];
        }
        a[k] = word;
    }
    return a;
}

/* Writes the first k places of a row, which are sorted as words in working memory.  Returns whether
 * equal elements could have other places. */
ETC_INLINE int etc_order_words(const EtcRanks *r, uint64_t *work)
{
    const uint64_t *word = work;
    int tied = 0;
    if (r->g->k < r->g->n) {
        const uint32_t left = etc_word_heap(r, work);
        tied = ((uint64_t)left == (work[r->g->k - 1] >> 32)) ? 1 : 0;
    } else if (r->g->n < 64) {
        word = etc_word_insert(r, work);
    } else {
        word = etc_word_radix(r, work, work + r->g->n);
    }
    for (int64_t i = 0; i < r->g->k; i++) {
        r->place[i * r->step] = (int64_t)(word[i] & 0xffffffffu);
        tied = ((i > 0) && ((word[i] >> 32) == (word[i - 1] >> 32))) ? 1 : tied;
    }
    return tied;
}

/* Returns whether a row is already in order. */
ETC_INLINE int etc_order_is_done(const EtcRanks *r)
{
    int64_t last = INT64_MAX, i = 0;
    for (; i < r->g->n; i++) {
        const int64_t key = etc_order_key(r->x, r->from + (i * r->g->inner), r->g);
        if (key > last) {
            break;
        }
        last = key;
    }
    return i == r->g->n;
}

/* Returns whether equal elements could have other places than those written. */
ETC_OUTLINE int etc_rank_is_tied(const EtcRanks *r)
{
    const EtcOrder *g = r->g;
    int64_t last = 0, count = 0;
    for (int64_t i = 0; i < g->k; i++) {
        const int64_t key = etc_order_key(r->x, r->from + (etc_rank_place(r, i) * g->inner), g);
        if ((i > 0) && (key == last)) {
            return 1;
        }
        last = key;
    }
    for (int64_t i = 0; (g->k < g->n) && (i < g->n); i++) {
        count += (etc_order_key(r->x, r->from + (i * g->inner), g) == last) ? 1 : 0;
    }
    return count > 1;
}

/* Writes the first k places of a row.  Returns whether equal elements could have other places. */
ETC_INLINE int etc_order_row(const EtcRanks *r, void *work)
{
    const EtcOrder *g = r->g;
    const int64_t words = (g->k < g->n) ? g->k : (2 * g->n);
    if ((g->k == g->n) && (etc_order_is_done(r) != 0)) {
        for (int64_t i = 0; i < g->n; i++) {
            r->place[i * r->step] = i;
        }
    } else if ((g->size <= 4) && (g->n <= INT32_MAX) && ((8 * words) <= ETC_WORK_BYTES)) {
        EtcOrder f = *g; /* Most rows are floats: with constants the loops check nothing. */
        const EtcRanks of = {r->x, r->place, r->from, r->step, &f};
        if ((g->size == 4) && (g->form == 2) && (g->inner == 1)) {
            f.size = 4;
            f.form = 2;
            f.inner = 1;
            return etc_order_words(&of, (uint64_t *)work);
        }
        return etc_order_words(r, (uint64_t *)work);
    } else if ((g->k == g->n) && (g->n > 256) && (g->n <= INT32_MAX)) {
        etc_rank_radix(r);
    } else {
        etc_rank_heap(r);
    }
    return etc_rank_is_tied(r);
}

/* -- the order of topk ----------------------------------------------------------------------------
 * torch calls functions of the C++ library with keys that do not tell equal elements apart.  Which of
 * them come first, and in which order, depends on each comparison and swap: those of libstdc++.  Here
 * q has the places of a row, or of a part of it. */

/* The most elements of a row whose places are all in q. */
#define ETC_TOPK_ROW 4096

ETC_OUTLINE int etc_topk_before(const EtcRanks *r, uint32_t a, uint32_t b)
{
    return etc_order_key(r->x, r->from + ((int64_t)a * r->g->inner), r->g) >
           etc_order_key(r->x, r->from + ((int64_t)b * r->g->inner), r->g);
}

ETC_INLINE void etc_topk_swap(uint32_t *q, int32_t a, int32_t b)
{
    const uint32_t t = q[a];
    q[a] = q[b];
    q[b] = t;
}

/* Moves the middle one of the second, the middle and the last place to the first.  Then moves places
 * before it to the front, and returns where the others begin. */
ETC_OUTLINE int32_t etc_topk_split(const EtcRanks *r, uint32_t *q, int32_t first, int32_t last)
{
    const int32_t a = first + 1, b = first + ((last - first) / 2), c = last - 1;
    const int ab = etc_topk_before(r, q[a], q[b]), bc = etc_topk_before(r, q[b], q[c]);
    const int ac = etc_topk_before(r, q[a], q[c]);
    const int32_t rising = (bc != 0) ? b : ((ac != 0) ? c : a);
    const int32_t falling = (ac != 0) ? a : ((bc != 0) ? c : b);
    etc_topk_swap(q, first, (ab != 0) ? rising : falling);
    int32_t i = first + 1, k = last;
    for (;;) {
        while (etc_topk_before(r, q[i], q[first]) != 0) {
            i++;
        }
        do {
            k--;
        } while (etc_topk_before(r, q[first], q[k]) != 0);
        if (i >= k) {
            return i;
        }
        etc_topk_swap(q, i, k);
        i++;
    }
}

/* Sorts places first .. last - 1 by insertion. */
ETC_OUTLINE void etc_topk_insert(const EtcRanks *r, uint32_t *q, int32_t first, int32_t last)
{
    for (int32_t i = first + 1; i < last; i++) {
        const uint32_t at = q[i];
        int32_t k = i;
        for (; (k > first) && (etc_topk_before(r, at, q[k - 1]) != 0); k--) {
            q[k] = q[k - 1];
        }
        q[k] = at;
    }
}

/* Fills the hole at the root `top` of a heap of n places with `at`: moves the hole down to a leaf,
 * and then moves `at` up from there. */
ETC_OUTLINE void etc_topk_sift(const EtcRanks *r, uint32_t *heap, int32_t top, uint32_t at,
                               int32_t n)
{
    int32_t hole = top, child = 2 * (top + 1);
    for (; child <= n; child = 2 * (hole + 1)) {
        if ((child == n) || (etc_topk_before(r, heap[child], heap[child - 1]) != 0)) {
            child--;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    for (int32_t up = (hole - 1) / 2; (hole > top) && (etc_topk_before(r, heap[up], at) != 0);
         up = (hole - 1) / 2) {
        heap[hole] = heap[up];
        hole = up;
    }
    heap[hole] = at;
}

/* Collects the first k of n places in a heap.  Unless q is a part of the row, the place that leaves
 * the heap takes that of the one that enters. */
ETC_OUTLINE void etc_topk_collect(const EtcRanks *r, uint32_t *q, int32_t k, int64_t n, int is_part)
{
    for (int32_t i = (k / 2) - 1; i >= 0; i--) {
        etc_topk_sift(r, q, i, q[i], k);
    }
    for (int64_t i = k; i < n; i++) {
        const uint32_t at = (is_part != 0) ? (uint32_t)i : q[i];
        if (etc_topk_before(r, at, q[0]) != 0) {
            if (is_part == 0) {
                q[i] = q[0];
            }
            etc_topk_sift(r, q, 0, at, k);
        }
    }
}

ETC_OUTLINE void etc_topk_sort_heap(const EtcRanks *r, uint32_t *heap, int32_t n)
{
    for (int32_t i = n - 1; i > 0; i--) {
        const uint32_t at = heap[i];
        heap[i] = heap[0];
        etc_topk_sift(r, heap, 0, at, i);
    }
}

/* Returns how often n places are split before a heap takes them. */
ETC_INLINE int32_t etc_topk_depth(int32_t n)
{
    int32_t depth = 0;
    for (int32_t i = n; i > 1; i /= 2) {
        depth += 2;
    }
    return depth;
}

/* Moves the place that is number `nth` in order there, and those before it to the front. */
ETC_OUTLINE void etc_topk_select(const EtcRanks *r, uint32_t *q, int32_t nth, int32_t n)
{
    int32_t first = 0, last = n;
    for (int32_t depth = etc_topk_depth(n); (last - first) > 3; depth--) {
        if (depth == 0) {
            etc_topk_collect(r, q + first, nth + 1 - first, last - first, 0);
            etc_topk_swap(q, first, nth);
            return;
        }
        const int32_t cut = etc_topk_split(r, q, first, last);
        first = (cut <= nth) ? cut : first;
        last = (cut <= nth) ? last : cut;
    }
    etc_topk_insert(r, q, first, last);
}

typedef struct EtcTopkPart {
    int32_t first, last, depth; /* depth: how often it may be split */
} EtcTopkPart;

/* Sorts n places: splits them until parts have at most 16, and then inserts each. */
ETC_OUTLINE void etc_topk_sort(const EtcRanks *r, uint32_t *q, int32_t n)
{
    enum { FEW = 16, MOST = 32 };
    EtcTopkPart part[MOST] = {{0, n, etc_topk_depth(n)}};
    int32_t parts = 1;
    while (parts > 0) {
        parts--;
        const int32_t first = part[parts].first, depth = part[parts].depth;
        int32_t last = part[parts].last;
        if ((last - first) <= FEW) {
            continue;
        }
        if ((depth == 0) || (parts > (MOST - 2))) {
            etc_topk_collect(r, q + first, last - first, last - first, 0);
            etc_topk_sort_heap(r, q + first, last - first);
            continue;
        }
        const int32_t cut = etc_topk_split(r, q, first, last);
        part[parts].last = cut;
        part[parts].depth = depth - 1;
        part[parts + 1].first = cut;
        part[parts + 1].last = last;
        part[parts + 1].depth = depth - 1;
        parts += 2;
    }
    etc_topk_insert(r, q, 0, n);
}

/* Writes the first k places of a row as torch's topk, if there is room for them. */
ETC_INLINE void etc_topk_row(const EtcRanks *r, uint32_t *q)
{
    const int64_t n = r->g->n, k = r->g->k;
    const int is_part = (n / 64) >= k;
    const int64_t room = is_part ? k : n;
    if ((room > ETC_TOPK_ROW) || (n > INT32_MAX) || ((room * 4) > ETC_WORK_BYTES)) {
        return;
    }
    for (int64_t i = 0; i < room; i++) {
        q[i] = (uint32_t)i;
    }
    if (is_part) {
        etc_topk_collect(r, q, (int32_t)k, n, 1);
        etc_topk_sort_heap(r, q, (int32_t)k);
    } else {
        etc_topk_select(r, q, (int32_t)k - 1, (int32_t)n);
        if (r->g->topk == 1) {
            etc_topk_sort(r, q, (int32_t)k - 1);
        }
    }
    for (int64_t i = 0; i < k; i++) {
        r->place[i * r->step] = (int64_t)q[i];
    }
}

ETC_INLINE void etc_order_copy(unsigned char *to, const unsigned char *from, int32_t size)
{
    if (size == 4) { /* most are, and then this is no call */
        __builtin_memcpy(to, from, 4);
    } else {
        __builtin_memcpy(to, from, (size_t)size);
    }
}

/* Writes the first k elements of each row in order: their values to value[outer][k][inner],
 * unless it is NULL, and their places to place[outer][k][inner]. */
ETC_OUTLINE void etc_order_top(const void *x, void *value, int64_t *place, void *work,
                               const EtcOrder *g)
{
    for (int64_t row = 0; row < (g->outer * g->inner); row++) {
        const int64_t from = (etc_over(row, g->inner) * g->n * g->inner) + etc_rest(row, g->inner);
        const int64_t to = (etc_over(row, g->inner) * g->k * g->inner) + etc_rest(row, g->inner);
        const EtcRanks r = {x, place + to, from, g->inner, g};
        if (((etc_order_row(&r, work) != 0) && (g->topk == 1)) || (g->topk == 2)) {
            etc_topk_row(&r, (uint32_t *)work);
        }
        for (int64_t i = 0; (value != NULL) && (i < g->k); i++) {
            etc_order_copy((unsigned char *)value + ((to + (i * g->inner)) * g->size),
                           (const unsigned char *)x +
                               ((from + (etc_rank_place(&r, i) * g->inner)) * g->size),
                           g->size);
        }
    }
}

#endif
