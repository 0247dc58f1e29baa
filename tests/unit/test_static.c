/* test_static.c -- tests the functions with which etc-static replaces those of its C library. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define malloc own_malloc
#define calloc own_calloc
#define realloc own_realloc
#define free own_free
#define aligned_alloc own_aligned_alloc
#define qsort own_qsort
#include "compiler/static_memory.c"
#include "compiler/static_sort.c"

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

enum { PIECES = 64, STEPS = 20000 };

typedef struct Piece {
    unsigned char *at, mark;
    size_t n;
} Piece;

static void check(const Piece *p)
{
    for (size_t i = 0; i < p->n; i++)
        cr_assert_eq(p->at[i], p->mark, "byte %zu of %zu", i, p->n);
}

/* No piece changes another, whatever is freed, grown or shrunk between. */
Test(static, pieces_keep_their_bytes)
{
    Piece piece[PIECES] = {0};
    uint32_t seed = 1;
    for (int step = 0; step < STEPS; step++) {
        Piece *p = &piece[next(&seed) % PIECES];
        size_t n = (size_t)1 << next(&seed) % 16, align = (size_t)16 << next(&seed) % 9;
        n += next(&seed) % n;
        check(p);
        if (p->at && next(&seed) % 2) {
            unsigned char *at = realloc(p->at, n);
            for (size_t i = 0; i < (n < p->n ? n : p->n); i++)
                cr_assert_eq(at[i], p->mark);
            p->at = at;
        } else {
            free(p->at);
            p->at = aligned_alloc(align, n);
            cr_assert_eq((uintptr_t)p->at % align, 0);
        }
        *p = (Piece){.at = p->at, .mark = (unsigned char)step, .n = n};
        memset(p->at, p->mark, n);
    }
}

Test(static, what_was_freed_is_given_again_and_zeroed_where_asked)
{
    unsigned char *a = malloc(1000);
    memset(a, 1, 1000);
    free(a);
    unsigned char *b = calloc(10, 100);
    cr_assert_eq(a, b);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(b[i], 0);
}

Test(static, large_memory_goes_back)
{
    const size_t n = (size_t)3 << 30;
    for (int i = 0; i < 1000; i++) {
        char *a = aligned_alloc(2 * MIB, n);
        cr_assert(a && (uintptr_t)a % (2 * MIB) == 0);
        a[n - 1] = 1;
        free(a);
    }
}

Test(static, too_much_is_refused)
{
    cr_assert_null(malloc(SIZE_MAX));
    cr_assert_eq(errno, ENOMEM);
    cr_assert_null(malloc(SIZE_MAX / 2 - 1));
    cr_assert_null(calloc(SIZE_MAX / 2, 4));
    free(NULL);
}

typedef struct Item {
    int key, at;
    char more[17];
} Item;

static int by_key(const void *a, const void *b)
{
    const int x = ((const Item *)a)->key, y = ((const Item *)b)->key;
    return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

Test(static, qsort_sorts_and_keeps_the_order_of_equal_items)
{
    static Item item[1000];
    static uint64_t value[1000];
    uint32_t seed = 1;
    for (int n = 0; n <= 1000; n += n < 40 ? 1 : 320) {
        uint64_t sum = 0;
        for (int i = 0; i < n; i++) {
            item[i] = (Item){.key = (int)(next(&seed) % 30), .at = i};
            value[i] = (uint64_t)next(&seed) << 32;
            sum += value[i];
        }
        qsort(item, (size_t)n, sizeof *item, by_key);
        qsort(value, (size_t)n, sizeof *value, by_value);
        for (int i = 0; i < n; i++)
            sum -= value[i];
        cr_assert_eq(sum, 0);
        for (int i = 1; i < n; i++) {
            cr_assert(item[i - 1].key < item[i].key ||
                      (item[i - 1].key == item[i].key && item[i - 1].at < item[i].at));
            cr_assert_leq(value[i - 1], value[i]);
        }
    }
}
