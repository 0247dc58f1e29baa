/* test_hash.c -- tests the hash of the hash table, and keys that were made to collide. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ir/table.h"

static const uint64_t no_secret[2] = {0, 0};

/* Compares with hash(bytes) of CPython from 3.11 on with PYTHONHASHSEED=0. */
Test(hash, is_siphash_1_3)
{
    static const struct {
        const char *key;
        uint64_t hash;
    } row[] = {{"a", 4644417185603328019u},
               {"abc", 13851880170939887858u},
               {"abcdefg", 7904145750247929094u},
               {"abcdefgh", 4574395652268504554u},
               {"abcdefghi", 17913969820989044453u},
               {"blocks.0.conv.weight", 1617952779515838204u}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        cr_assert_eq(table_hash(no_secret, row[i].key, strlen(row[i].key)), row[i].hash, "%s",
                     row[i].key);
}

Test(hash, secrets_differ_from_arena_to_arena_but_not_within_one)
{
    Arena *a = arena_new(), *b = arena_new(), *within = arena_within(a);
    const uint64_t *secret = arena_secret(within);
    cr_assert_eq(secret, arena_secret(a));
    cr_assert_neq(memcmp(secret, arena_secret(b), 16), 0);
    cr_assert_neq(memcmp(secret, no_secret, 16), 0);
    arena_free(within);
    arena_free(b);
    arena_free(a);
}

Test(hash, a_table_gives_what_was_put)
{
    Arena *a = arena_new();
    Table t = {.arena = a};
    cr_assert_null(table_find_text(&t, "0"));
    for (int64_t i = 0; i < 5000; i++) {
        TableItem *item = table_at_text(&t, arena_printf(a, "%d", (int)i));
        cr_assert_eq(item->number, 0);
        item->number = i + 1;
    }
    for (int64_t i = 0; i < 5000; i++)
        cr_assert_eq(table_at_text(&t, arena_printf(a, "%d", (int)i))->number, i + 1);
    cr_assert_eq(t.n, 5000);
    cr_assert_null(table_find_text(&t, "5000"));
    arena_free(a);
}

Test(hash, keys_are_bytes_and_may_be_copied)
{
    Arena *a = arena_new();
    Table t = {.arena = a};
    char key[4] = {0, 'x', 0, 'y'};
    table_at_copy(&t, key, 4)->ptr = a;
    table_at_copy(&t, key, 2)->ptr = &t;
    table_at_copy(&t, key, 0)->ptr = key;
    key[3] = 'z';
    cr_assert_null(table_find(&t, key, 4));
    cr_assert_eq(table_find(&t, "\0x\0y", 4), a);
    cr_assert_eq(table_find(&t, key, 2), &t);
    cr_assert_eq(table_find(&t, "", 0), key);
    arena_free(a);
}

/* -- keys that collide ------------------------------------------------------------------------- */

static const uint64_t odd = 0x9e3779b97f4a7c15u;

/* Rows that a look-up of every key passes, the one it ends at included. */
static size_t steps(const Table *t)
{
    size_t sum = 0;
    for (size_t i = 0; i < t->cap; i++)
        if (t->row[i].key)
            sum += ((i - t->row[i].hash) & (t->cap - 1)) + 1;
    return sum;
}

/* A key that an unkeyed hash of words gives 20 equal low bits: h = (h ^ word) * odd; h ^= h >> 32;
 * h * odd >> 32.  Each of its steps can be undone, so such keys cost their maker nothing. */
static uint64_t colliding(uint64_t *seed, uint64_t inverse)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    uint64_t h = (*seed & ~(uint64_t)0xfffff00000000) * inverse;
    return (h ^ h >> 32) * inverse ^ 8;
}

Test(hash, keys_made_to_collide_do_not)
{
    enum { N = 50000 };
    Arena *a = arena_new();
    Table t = {.arena = a};
    uint64_t inverse = odd, seed = 88172645463325252u;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - odd * inverse;
    for (int i = 0; i < N; i++) {
        uint64_t key = colliding(&seed, inverse), h = (8 ^ key) * odd;
        h ^= h >> 32;
        cr_assert_eq(h * odd >> 32 & 0xfffff, 0);
        table_at_copy(&t, &key, sizeof key);
    }
    cr_assert_eq(t.n, N);
    cr_assert_lt(steps(&t), 4 * N);
    arena_free(a);
}

/* Keys that collide under one secret do not under another. */
Test(hash, collisions_depend_on_the_secret)
{
    enum { N = 1000, MASK = 0x3ff };
    Arena *a = arena_new();
    Table known = {.arena = a, .secret = no_secret}, drawn = {.arena = a};
    for (uint64_t key = 0; known.n < N; key++)
        if (!(table_hash(no_secret, &key, sizeof key) & MASK)) {
            table_at_copy(&known, &key, sizeof key);
            table_at_copy(&drawn, &key, sizeof key);
        }
    cr_assert_gt(steps(&known), 100 * N);
    cr_assert_lt(steps(&drawn), 10 * N);
    arena_free(a);
}
