/* table.h -- a hash table: what keys of bytes stand for.
 *
 * Names come from files, which may be made so that their hashes collide.  So the hash is keyed,
 * SipHash-1-3, and the key is drawn at random.  No order comes of it: tables are asked, never
 * walked.  Rows lie in the table's arena; keys are the caller's and outlive the table.
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

typedef struct Table { /* {.arena = a} is an empty one */
    Arena *arena;
    const uint64_t *secret; /* of 2 words; NULL: the arena's, from the first key on */
    TableRow *row;          /* open addressing, at most half full; a power of two, or none */
    size_t n, cap;
} Table;

/* Returns the item of the key.  A new key gets an item of zeros.  The pointer is valid until the
 * next key is added. */
TableItem *table_at(Table *t, const void *key, size_t n);
TableItem *table_at_copy(Table *t, const void *key, size_t n); /* a new key is copied */
void *table_find(const Table *t, const void *key, size_t n);   /* item.ptr; NULL: no such key */
bool table_has(const Table *t, const void *key, size_t n);
/* Finds a key by its hash, for who looks in several tables with one secret. */
void *table_find_hashed(const Table *t, const void *key, size_t n, uint64_t hash);
void table_reserve(Table *t, size_t n); /* room for n keys in all */
uint64_t table_hash(const uint64_t secret[2], const void *key, size_t n); /* SipHash-1-3 */

/* These take a string as key. */
static inline TableItem *table_at_text(Table *t, const char *s)
{
    return table_at(t, s, strlen(s));
}

static inline void *table_find_text(const Table *t, const char *s)
{
    return t->n ? table_find(t, s, strlen(s)) : NULL;
}

#endif
