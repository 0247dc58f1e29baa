/* static_sort.c -- qsort of etc-static, which replaces the one of its C library.
 *
 * The C library's qsort needs no memory, but half as many instructions more, and the planner sorts
 * often.  This one is a merge sort, as glibc's is, and stable. */
#include "ir/arena.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct Sort {
    size_t size; /* the bytes of an item */
    int (*compare)(const void *a, const void *b);
    char *room; /* for half of the items */
} Sort;

static char *copy(char *to, const char *from, size_t size)
{
    if (size % sizeof(uint64_t))
        return (char *)memcpy(to, from, size) + size;
    for (size_t i = 0; i < size; i += sizeof(uint64_t))
        memcpy(to + i, from + i, sizeof(uint64_t));
    return to + size;
}

static void insert_each(const Sort *s, char *v, char *end)
{
    for (char *item = v + s->size; item < end; item += s->size) {
        char *to = item;
        while (to > v && s->compare(to - s->size, item) > 0)
            to -= s->size;
        if (to == item)
            continue;
        memcpy(s->room, item, s->size);
        memmove(to + s->size, to, (size_t)(item - to));
        memcpy(to, s->room, s->size);
    }
}

/* Merges two sorted parts.  The first is moved away, to make room for the result. */
static void merge(const Sort *s, char *v, char *middle, char *end)
{
    const char *a = s->room, *end_a = a + (middle - v), *b = middle;
    memcpy(s->room, v, (size_t)(middle - v));
    while (a < end_a && b < end) {
        const char **least = s->compare(a, b) <= 0 ? &a : &b;
        v = copy(v, *least, s->size);
        *least += s->size;
    }
    memcpy(v, a, (size_t)(end_a - a));
}

static void sort(const Sort *s, char *v, size_t n)
{
    enum { FEW = 5 };
    char *end = v + n * s->size, *middle = v + n / 2 * s->size;
    if (n <= FEW) {
        insert_each(s, v, end);
        return;
    }
    sort(s, v, n / 2);
    sort(s, middle, n - n / 2);
    if (s->compare(middle - s->size, middle) > 0)
        merge(s, v, middle, end);
}

void qsort(void *v, size_t n, size_t size, int (*compare)(const void *a, const void *b))
{
    if (n < 2)
        return;
    Arena *tmp = arena_new();
    const Sort s = {.size = size, .compare = compare, .room = arena_bytes(tmp, (n / 2 + 1) * size)};
    sort(&s, v, n);
    arena_free(tmp);
}
