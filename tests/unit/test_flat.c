/* test_flat.c -- compares the FlatBuffers writer with the checked reader and with flatc. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ir/flat.h"
#include "ir/ir.h"
#include "runtime-lite/flat_read.h"

/* -- tests/data/flat.fbs as the reader's rows ------------------------------------------------ */

enum { NODE, LEAF, NODE_AGAIN };
static const EtcFlatSlot node_slot[] = {
    ETC_SLOT_STRING,     ETC_SLOT_SCALARS(1), ETC_SLOT_SCALARS(2),  ETC_SLOT_SCALARS(4),
    ETC_SLOT_SCALARS(8), ETC_SLOT_SCALARS(8), ETC_SLOT_TABLE(LEAF), ETC_SLOT_TABLES(LEAF),
    ETC_SLOT_UNION(LEAF, 2), ETC_SLOT_SCALAR(4), ETC_SLOT_SCALAR(1)};
static const EtcFlatSlot leaf_slot[] = {ETC_SLOT_SCALAR(1), ETC_SLOT_SCALAR(2), ETC_SLOT_SCALAR(4),
                                        ETC_SLOT_SCALAR(8), ETC_SLOT_SCALAR(4), ETC_SLOT_SCALAR(8)};
static const EtcFlatTable schema[] = {{node_slot, 12}, {leaf_slot, 6}, {node_slot, 12}};

enum {
    NAME,
    BYTES,
    SHORTS,
    INTS,
    LONGS,
    DOUBLES,
    THE_LEAF,
    LEAVES,
    EITHER_TYPE,
    EITHER,
    GAP,
    LAST
};

static FlatRef leaf(Flat *f, uint8_t a, uint16_t b, uint32_t c, uint64_t d, float e, double g)
{
    flat_begin(f, 6);
    flat_u8(f, 0, a);
    flat_u16(f, 1, b);
    flat_u32(f, 2, c);
    flat_u64(f, 3, d);
    flat_f32(f, 4, e);
    flat_f64(f, 5, g);
    return flat_end(f);
}

static FlatRef inner(Flat *f)
{
    FlatRef name = flat_string(f, ""), none = flat_refs(f, NULL, 0);
    flat_begin(f, 12);
    flat_ref(f, NAME, name);
    flat_ref(f, LEAVES, none);
    flat_u32(f, GAP, 0);
    return flat_end(f);
}

static const uint8_t *everything(Arena *a, size_t *n)
{
    static const uint8_t bytes[] = {1, 2, 3};
    static const uint16_t shorts[] = {65535};
    static const int32_t ints[] = {-1, 7};
    static const int64_t longs[] = {INT64_MIN, 5};
    static const double doubles[] = {0.5, -0.0};
    Flat *f = flat_new(a);
    FlatRef leaves[] = {leaf(f, 0, 0, 0, 0, 0, 0), leaf(f, 255, 65535, 3, UINT64_MAX, 1.5f, -2.25)};
    FlatRef vector = flat_refs(f, leaves, 2), either = inner(f),
            name = flat_string(f, "n\xc3\xa4me");
    FlatRef b = flat_bytes(f, bytes, 3, 16), s = flat_vector(f, shorts, 1, 2);
    FlatRef i = flat_vector(f, ints, 2, 4), l = flat_vector(f, longs, 2, 8);
    FlatRef d = flat_vector(f, doubles, 2, 8);
    flat_begin(f, 12);
    flat_u8(f, LAST, 9);
    flat_ref(f, NAME, name);
    flat_ref(f, BYTES, b);
    flat_ref(f, SHORTS, s);
    flat_ref(f, INTS, i);
    flat_ref(f, LONGS, l);
    flat_ref(f, DOUBLES, d);
    flat_ref(f, THE_LEAF, 0);
    flat_ref(f, LEAVES, vector);
    flat_u8(f, EITHER_TYPE, 2);
    flat_ref(f, EITHER, either);
    return flat_finish(f, flat_end(f), "TEST", n);
}

static Arena *arena;

static void begin(void)
{
    arena = arena_new();
}

static void end(void)
{
    arena_free(arena);
}

TestSuite(flat, .init = begin, .fini = end);

Test(flat, holds_what_was_written)
{
    size_t n;
    const uint8_t *data = everything(arena, &n);
    EtcFlat f = {data, (uint32_t)n};
    uint32_t root = etc_flat_root(&f), len = 0;
    cr_assert_null(etc_flat_verify(&f, schema, root), "%s", etc_flat_verify(&f, schema, root));
    cr_expect(!memcmp(data + 4, "TEST", 4));
    cr_expect_str_eq(etc_flat_string(&f, root, NAME, &len), "n\xc3\xa4me");
    cr_expect_eq(len, 5u);
    cr_expect_eq(etc_flat_item_i32(etc_flat_vec(&f, root, INTS), 0), -1);
    cr_expect_eq(etc_flat_item_i64(etc_flat_vec(&f, root, LONGS), 0), INT64_MIN);
    cr_expect_eq(etc_flat_u8(&f, root, LAST), 9);
    cr_expect_eq(etc_flat_table(&f, root, THE_LEAF), 0u);
    uint32_t second = etc_flat_item_table(&f, etc_flat_vec(&f, root, LEAVES), 1);
    cr_expect_eq(etc_flat_u64(&f, second, 3), UINT64_MAX);
    cr_expect_eq(etc_flat_scalar(&f, second, 1, 2), 65535u);
}

Test(flat, aligns_vectors_from_the_start_of_the_file)
{
    size_t n;
    const uint8_t *data = everything(arena, &n);
    EtcFlat f = {data, (uint32_t)n};
    uint32_t root = etc_flat_root(&f);
    cr_expect_eq(n % 16, 0u);
    cr_expect_eq((uintptr_t)data % 16, 0u);
    cr_expect_eq((etc_flat_vec(&f, root, BYTES).item - data) % 16, 0);
    cr_expect_eq((etc_flat_vec(&f, root, LONGS).item - data) % 8, 0);
    cr_expect_eq((etc_flat_vec(&f, root, DOUBLES).item - data) % 8, 0);
}

Test(flat, gives_the_same_bytes_again)
{
    size_t n, m;
    const uint8_t *a = everything(arena, &n), *b = everything(arena, &m);
    cr_assert_eq(n, m);
    cr_expect(!memcmp(a, b, n));
}

static size_t size_of_leaves(int n, bool is_alternating)
{
    Flat *f = flat_new(arena);
    FlatRef *ref = NEW(arena, FlatRef, n);
    for (int i = 0; i < n; i++)
        ref[i] = leaf(f, 0, 0, 1, is_alternating && i % 2, 0, 0);
    size_t bytes;
    FlatRef leaves = flat_refs(f, ref, (size_t)n);
    flat_begin(f, 12);
    flat_ref(f, LEAVES, leaves);
    const uint8_t *data = flat_finish(f, flat_end(f), "TEST", &bytes);
    EtcFlat r = {data, (uint32_t)bytes};
    cr_assert_null(etc_flat_verify(&r, schema, etc_flat_root(&r)));
    return bytes;
}

Test(flat, shares_equal_vtables)
{
    cr_expect_eq(size_of_leaves(1002, false) - size_of_leaves(2, false), 1000u * (8 + 4));
    cr_expect_eq(size_of_leaves(1002, true) - size_of_leaves(2, true), 500u * (8 + 4 + 16 + 4) );
}

Test(flat, keeps_more_vtables_than_its_first_table_holds)
{
    Flat *f = flat_new(arena);
    FlatRef ref[256];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 64; i++)
            ref[64 * round + i] = leaf(f, i & 1, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0,
                                       (i & 16) != 0, (i & 32) != 0);
    size_t bytes;
    FlatRef leaves = flat_refs(f, ref, 128);
    flat_begin(f, 12);
    flat_ref(f, LEAVES, leaves);
    const uint8_t *data = flat_finish(f, flat_end(f), "TEST", &bytes);
    EtcFlat r = {data, (uint32_t)bytes};
    cr_assert_null(etc_flat_verify(&r, schema, etc_flat_root(&r)));
    EtcFlatVec v = etc_flat_vec(&r, etc_flat_root(&r), LEAVES);
    for (uint32_t i = 0; i < 128; i++) {
        uint32_t t = etc_flat_item_table(&r, v, i);
        cr_expect_eq(etc_flat_u8(&r, t, 0), i & 1);
        cr_expect_eq(etc_flat_u32(&r, t, 2), (i & 4) != 0);
        cr_expect_eq(etc_flat_u64(&r, t, 3), (i & 8) != 0);
    }
}

/* -- flatc ------------------------------------------------------------------------------- */

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "flatc wrote no %s", path);
    char *text = NEW(arena, char, 4096);
    text[fread(text, 1, 4095, f)] = '\0';
    fclose(f);
    return text;
}

static void remove_spaces(char *s)
{
    char *to = s;
    for (; *s; s++)
        if (*s != ' ' && *s != '\n')
            *to++ = *s;
    *to = '\0';
}

Test(flat, is_read_by_flatc)
{
    if (system("flatc --version > /dev/null 2>&1"))
        cr_skip("flatc is not installed");
    char dir[] = "/tmp/test_flat_XXXXXX";
    size_t n;
    const uint8_t *data = everything(arena, &n);
    cr_assert_not_null(mkdtemp(dir));
    const char *bin = arena_printf(arena, "%s/a.bin", dir);
    FILE *f = fopen(bin, "wb");
    cr_assert_eq(fwrite(data, 1, n, f), n);
    fclose(f);
    int failed = system(arena_printf(arena, "flatc --json --strict-json -o %s %s -- %s", dir,
                                     ROOT "/tests/data/flat.fbs", bin));
    char *json = failed ? NULL : slurp(arena_printf(arena, "%s/a.json", dir));
    cr_expect_eq(system(arena_printf(arena, "rm -r %s", dir)), 0);
    cr_assert_eq(failed, 0);
    remove_spaces(json);
    cr_expect_str_eq(
        json,
        "{\"name\":\"n\\u00E4me\",\"bytes\":[1,2,3],\"shorts\":[65535],\"ints\":[-1,7],"
        "\"longs\":[-9223372036854775808,5],\"doubles\":[0.5,-0.0],"
        "\"leaves\":[{},{\"u8\":255,\"u16\":65535,\"u32\":3,"
        "\"u64\":18446744073709551615,\"f32\":1.5,\"f64\":-2.25}],"
        "\"either_type\":\"Node\",\"either\":{\"name\":\"\",\"leaves\":[]},\"last\":9}",
        "got %s", json);
}
