/* table.h -- a hash table from strings of bytes to pointers or numbers.
 *
 * A file can be made so that the hashes of its names collide.  Therefore the hash is keyed
 * (SipHash-1-3) with a random key.  A table has no order and cannot be iterated, so that results do
 * not depend on the key.  Rows lie in the table's arena; keys belong to the caller and must outlive
 * the table.
 */
#ifndef ETC_IR_TABLE_H
#define ETC_IR_TABLE_H

#include "ir/ir.h"
#include <string.h>

typedef union TableItem {
    void *ptr;
    int64_t number;
} TableItem;

typedef struct TableRow {
    const void *key; /* NULL: the row is free */
    TableItem item;
    uint32_t n, hash; /* the lower bits of both */
} TableRow;

typedef struct Table { /* {.arena = a} is an empty table */
    Arena *arena;
    const uint64_t *secret; /* 2 words; NULL: those of the arena, from the first key on */
    TableRow *row;          /* open addressing, at most half full */
    size_t n, cap;          /* cap is 0 or a power of two */
} Table;

/* Returns the item of the key.  A new key is added with an item of zeros.  The pointer is valid
 * until the next key is added. */
TableItem *table_at(Table *t, const void *key, size_t n);
TableItem *table_at_copy(Table *t, const void *key, size_t n); /* copies a new key */
void *table_find(const Table *t, const void *key, size_t n);   /* item.ptr; NULL: no such key */
bool table_has(const Table *t, const void *key, size_t n);
/* Finds a key whose hash is known, for callers that look into several tables with one secret. */
void *table_find_hashed(const Table *t, const void *key, size_t n, uint64_t hash);
void table_reserve(Table *t, size_t n); /* makes room for n keys in all */
uint64_t table_hash(const uint64_t secret[2], const void *key, size_t n); /* SipHash-1-3 */

/* The same with a string as key. */
static inline TableItem *table_at_text(Table *t, const char *s)
{
    return table_at(t, s, strlen(s));
}

static inline void *table_find_text(const Table *t, const char *s)
{
    return t->n ? table_find(t, s, strlen(s)) : NULL;
}

#endif
