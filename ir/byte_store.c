/* byte_store.c -- stores byte strings, and keeps equal ones once.
 *
 * Weights are large and mostly differ.  So the first table has a few words of each string as its
 * key.  Only strings that agree in these words go into the second table, whose key is all their
 * bytes. */
#include "ir/table.h"

enum { SAMPLES = 16, BY_SAMPLES = 0, BY_ALL = 1 };

static Table *known_by(ByteStore *b, Arena *a, int what)
{
    if (!b->known[what]) {
        b->known[what] = NEW(a, Table, 1);
        b->known[what]->arena = a;
    }
    return b->known[what];
}

/* Returns the first item of the same length whose samples are equal.  NULL: there are too few bytes
 * to take samples from. */
static TableItem *by_samples(ByteStore *b, Arena *a, const uint8_t *data, int64_t n)
{
    uint64_t key[1 + SAMPLES] = {(uint64_t)n}, size = sizeof *key;
    int64_t step = (n - (int64_t)size) / (SAMPLES - 1);
    if (step < (int64_t)size)
        return NULL;
    for (int i = 0; i < SAMPLES; i++)
        memcpy(&key[1 + i], data + i * step, size);
    return table_at_copy(known_by(b, a, BY_SAMPLES), key, sizeof key);
}

static bool differs(const ByteStore *b, const TableItem *known, const uint8_t *data, int64_t n)
{
    const StoredBytes *i = known->number ? &b->item[known->number - 1] : NULL;
    return i && i->data != data && memcmp(i->data, data, (size_t)n);
}

int store_add_made(ByteStore *b, Arena *a, const void *data, int64_t n, MakeBytes *make)
{
    assert(n >= 0 && b->align > 0);
    StoredBytes item = {data, n, round_up(b->size, b->align), make};
    PUSH(a, b->item, b->n, item);
    b->size = item.offset + n;
    return b->n - 1;
}

int store_add(ByteStore *b, Arena *a, const uint8_t *data, int64_t n)
{
    TableItem *known = by_samples(b, a, data, n);
    if (!known || differs(b, known, data, n))
        known = table_at(known_by(b, a, BY_ALL), n ? data : (const uint8_t *)"", (size_t)n);
    if (!known->number)
        known->number = store_add_made(b, a, data, n, NULL) + 1;
    return (int)known->number - 1;
}
