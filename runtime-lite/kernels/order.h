/* order.h -- rows in order: the largest and smallest elements, their places, the first k, sorting.
 *
 * Elements are compared by keys, which are 64-bit integers in the order of the numbers.  -0 is
 * 0, and EtcOrder has the key of a NaN.  Of equal elements the first comes first, so all
 * algorithms give the same result. */
#ifndef ETC_ORDER_H
#define ETC_ORDER_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcOrder {
    int32_t size, form; /* bytes of an element; form 0: unsigned, 1: signed, 2: a float */
    int64_t inf, nan;   /* floats: the bits of infinity; the key of a NaN, already flipped */
    int64_t flip;       /* 0: the largest elements come first; -1: the smallest */
    int64_t outer, n, inner, k; /* rows [outer][n][inner]; how many elements of n are wanted */
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
        const int64_t from = ((row / g->inner) * g->n * g->inner) + (row % g->inner);
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

/* Writes the k smallest words of a row to `heap`, in order. */
ETC_INLINE void etc_word_heap(const EtcRanks *r, uint64_t *heap)
{
    enum { BLOCK = 64 };
    const int64_t k = r->g->k;
    uint64_t word = 0;
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
        for (int64_t b = 0; ((uint64_t)least <= (heap[0] >> 32)) && (b < n); b++) {
            word = ((uint64_t)rank[b] << 32) | (uint64_t)(i + b);
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

/* Writes the first k places of a row, which are sorted as words in working memory. */
ETC_INLINE void etc_order_words(const EtcRanks *r, uint64_t *work)
{
    const uint64_t *word = work;
    if (r->g->k < r->g->n) {
        etc_word_heap(r, work);
    } else if (r->g->n < 64) {
        word = etc_word_insert(r, work);
    } else {
        word = etc_word_radix(r, work, work + r->g->n);
    }
    for (int64_t i = 0; i < r->g->k; i++) {
        r->place[i * r->step] = (int64_t)(word[i] & 0xffffffffu);
    }
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

ETC_INLINE void etc_order_row(const EtcRanks *r, void *work)
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
            etc_order_words(&of, (uint64_t *)work);
        } else {
            etc_order_words(r, (uint64_t *)work);
        }
    } else if ((g->k == g->n) && (g->n > 256) && (g->n <= INT32_MAX)) {
        etc_rank_radix(r);
    } else {
        etc_rank_heap(r);
    }
}

/* Writes the first k elements of each row in order: their values to value[outer][k][inner],
 * unless it is NULL, and their places to place[outer][k][inner]. */
ETC_OUTLINE void etc_order_top(const void *x, void *value, int64_t *place, void *work,
                               const EtcOrder *g)
{
    for (int64_t row = 0; row < (g->outer * g->inner); row++) {
        const int64_t from = ((row / g->inner) * g->n * g->inner) + (row % g->inner);
        const int64_t to = ((row / g->inner) * g->k * g->inner) + (row % g->inner);
        const EtcRanks r = {x, place + to, from, g->inner, g};
        etc_order_row(&r, work);
        for (int64_t i = 0; (value != NULL) && (i < g->k); i++) {
            __builtin_memcpy((unsigned char *)value + ((to + (i * g->inner)) * g->size),
                             (const unsigned char *)x +
                                 ((from + (etc_rank_place(&r, i) * g->inner)) * g->size),
                             (size_t)g->size);
        }
    }
}

#endif
