/* table.c -- hash tables with keyed hashes.
 *
 * The hash is SipHash with one round for each word and three at the end, which is enough where
 * nobody sees the hashes.  Words are read as the machine has them.
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012. */
#include "ir/table.h"

/* -- the hash ---------------------------------------------------------------------------- */

typedef struct Sip {
    uint64_t a, b, c, d;
} Sip;

static inline uint64_t rotate(uint64_t v, int bits)
{
    return v << bits | v >> (64 - bits);
}

static inline void sip_round(Sip *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32) + s->d;
    s->c += s->b;
    s->b = rotate(s->b, 17) ^ s->c;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c = rotate(s->c, 32);
}

static inline void sip_word(Sip *s, uint64_t word)
{
    s->d ^= word;
    sip_round(s);
    s->a ^= word;
}

/* Returns the last n bytes, less than 8, as the lower bytes of a word. */
static inline uint64_t last_bytes(const uint8_t *p, size_t n)
{
    uint64_t word = 0;
    uint32_t four;
    uint16_t two;
    if (n & 1)
        word = p[n - 1];
    if (n & 2) {
        memcpy(&two, p + (n & 4), sizeof two);
        word = word << 16 | two;
    }
    if (n & 4) {
        memcpy(&four, p, sizeof four);
        word = word << 32 | four;
    }
    return word;
}

uint64_t table_hash(const uint64_t secret[2], const void *key, size_t n)
{
    const uint8_t *p = key;
    Sip s = {secret[0] ^ 0x736f6d6570736575, secret[1] ^ 0x646f72616e646f6d,
             secret[0] ^ 0x6c7967656e657261, secret[1] ^ 0x7465646279746573};
    uint64_t word;
    for (size_t left = n; left >= sizeof word; left -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        sip_word(&s, word);
    }
    sip_word(&s, (uint64_t)n << 56 | last_bytes(p, n % sizeof word));
    s.c ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

/* -- rows -------------------------------------------------------------------------------- */

/* Returns the row of the key, or the free row that it would take. */
static inline TableRow *find_row(const Table *t, const void *key, size_t n, uint32_t hash)
{
    size_t mask = t->cap - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        TableRow *r = &t->row[i];
        if (!r->key || (r->hash == hash && r->n == (uint32_t)n && !memcmp(r->key, key, r->n)))
            return r;
    }
}

static void enlarge(Table *t, size_t cap)
{
    assert(cap > t->n && (cap & (cap - 1)) == 0);
    Table old = *t;
    if (!t->secret)
        t->secret = arena_secret(t->arena);
    t->cap = cap;
    t->row = NEW(t->arena, TableRow, cap);
    for (size_t k = 0; k < old.cap; k++) {
        const TableRow *r = &old.row[k];
        size_t i = r->hash & (cap - 1);
        while (r->key && t->row[i].key)
            i = (i + 1) & (cap - 1);
        if (r->key)
            t->row[i] = *r;
    }
}

void table_reserve(Table *t, size_t n)
{
    size_t cap = t->cap ? t->cap : 16;
    while (cap < 2 * n)
        cap *= 2;
    if (cap > t->cap)
        enlarge(t, cap);
}

static inline TableRow *row_at(Table *t, const void *key, size_t n)
{
    if (2 * (t->n + 1) > t->cap)
        enlarge(t, t->cap ? 2 * t->cap : 16);
    uint32_t hash = (uint32_t)table_hash(t->secret, key, n);
    TableRow *r = find_row(t, key, n, hash);
    if (!r->key) {
        *r = (TableRow){.key = key, .n = (uint32_t)n, .hash = hash};
        t->n++;
    }
    return r;
}

TableItem *table_at(Table *t, const void *key, size_t n)
{
    return &row_at(t, key, n)->item;
}

TableItem *table_at_copy(Table *t, const void *key, size_t n)
{
    TableRow *r = row_at(t, key, n);
    if (r->key == key)
        r->key = arena_str(t->arena, key, n);
    return &r->item;
}

void *table_find(const Table *t, const void *key, size_t n)
{
    return t->n ? table_find_hashed(t, key, n, table_hash(t->secret, key, n)) : NULL;
}

bool table_has(const Table *t, const void *key, size_t n)
{
    return t->n && find_row(t, key, n, (uint32_t)table_hash(t->secret, key, n))->key;
}

void *table_find_hashed(const Table *t, const void *key, size_t n, uint64_t hash)
{
    return t->n ? find_row(t, key, n, (uint32_t)hash)->item.ptr : NULL;
}
