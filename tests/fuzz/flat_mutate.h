/* flat_mutate.h -- changes to a file of FlatBuffers (.pte or XNNPACK blob) that mostly keep it one:
 * numbers, lengths and offsets are set to edge cases or to values from elsewhere in the file.
 *
 * No schema is needed to find them.  A vtable tells where fields begin, and the distance to the
 * next field how long each is; a field that leads to a possible table or vector counts as an
 * offset. */
#ifndef TESTS_FUZZ_FLAT_MUTATE_H
#define TESTS_FUZZ_FLAT_MUTATE_H

#include "tests/fuzz/draw.h"
#include <stdbool.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

typedef enum SpotKind { SPOT_NUMBER, SPOT_OFFSET, SPOT_LENGTH, SPOT_LAYOUT } SpotKind;

typedef struct Spot {
    uint32_t at;
    uint8_t bytes;
    uint8_t kind;
} Spot;

enum { MOST_SPOTS = 16384, MOST_DEPTH = 10, MOST_ITEMS = 64, MOST_SLOTS = 64 };

typedef struct Spots {
    const uint8_t *data;
    size_t size;
    int n;
    Spot spot[MOST_SPOTS];
} Spots;

static inline uint64_t flat_get(const uint8_t *data, size_t at, unsigned bytes)
{
    uint64_t v = 0;
    memcpy(&v, data + at, bytes);
    return v;
}

static inline void add_spot(Spots *s, size_t at, unsigned bytes, SpotKind kind)
{
    if (s->n < MOST_SPOTS && at + bytes <= s->size)
        s->spot[s->n++] = (Spot){(uint32_t)at, (uint8_t)bytes, (uint8_t)kind};
}

/* Where its vtable lies, or 0. */
static inline size_t vtable_of(const Spots *s, size_t at)
{
    if (at + 4 > s->size)
        return 0;
    int64_t vt = (int64_t)at - (int32_t)flat_get(s->data, at, 4);
    if (vt < 4 || (uint64_t)vt + 4 > s->size)
        return 0;
    uint64_t n = flat_get(s->data, (size_t)vt, 2), bytes = flat_get(s->data, (size_t)vt + 2, 2);
    bool fits = n >= 4 && n % 2 == 0 && n <= 4 + 2 * MOST_SLOTS && (uint64_t)vt + n <= s->size &&
                bytes >= 4 && at + bytes <= s->size;
    return fits ? (size_t)vt : 0;
}

static inline void find_in_table(Spots *s, size_t at, int depth);

static inline void find_in_vector(Spots *s, size_t at, int depth)
{
    uint64_t n = flat_get(s->data, at, 4), first = n ? at + 4 + flat_get(s->data, at + 4, 4) : 0;
    unsigned width = at + 4 + 4 * n <= s->size ? 4 : 1;
    bool has_tables = n && width == 4 && vtable_of(s, first);
    add_spot(s, at, 4, SPOT_LENGTH);
    for (uint64_t i = 0; i < n && i < MOST_ITEMS; i++) {
        size_t item = at + 4 + i * width;
        add_spot(s, item, width, has_tables ? SPOT_OFFSET : SPOT_NUMBER);
        if (has_tables)
            find_in_table(s, item + flat_get(s->data, item, 4), depth + 1);
    }
}

static inline void find_in_field(Spots *s, size_t at, size_t bytes, int depth)
{
    uint64_t to = bytes >= 4 ? at + flat_get(s->data, at, 4) : 0;
    bool is_offset = to > at && to + 8 <= s->size;
    if (is_offset && vtable_of(s, to)) {
        add_spot(s, at, 4, SPOT_OFFSET);
        find_in_table(s, to, depth + 1);
    } else if (is_offset && to + 4 + flat_get(s->data, to, 4) <= s->size) {
        add_spot(s, at, 4, SPOT_OFFSET);
        find_in_vector(s, to, depth);
    } else {
        add_spot(s, at, bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1, SPOT_NUMBER);
    }
}

static inline void find_in_table(Spots *s, size_t at, int depth)
{
    size_t vt = vtable_of(s, at);
    if (!vt || depth > MOST_DEPTH || s->n == MOST_SPOTS)
        return;
    size_t n = flat_get(s->data, vt, 2) / 2 - 2, end = flat_get(s->data, vt + 2, 2);
    add_spot(s, at, 4, SPOT_LAYOUT);
    add_spot(s, vt, 2, SPOT_LAYOUT);
    add_spot(s, vt + 2, 2, SPOT_LAYOUT);
    for (size_t i = 0; i < n; i++) {
        size_t field = flat_get(s->data, vt + 4 + 2 * i, 2), behind = end;
        add_spot(s, vt + 4 + 2 * i, 2, SPOT_LAYOUT);
        for (size_t k = 0; k < n; k++) {
            size_t other = flat_get(s->data, vt + 4 + 2 * k, 2);
            behind = other > field && other < behind ? other : behind;
        }
        if (field && field < behind)
            find_in_field(s, at + field, behind - field, depth);
    }
}

/* The file's own buffer, and those of the XNNPACK blobs in it, which begin with a header. */
static inline void find_spots(Spots *s, const uint8_t *data, size_t size)
{
    enum { MAGIC = 4, FLAT_AT = 10, FIELDS = 10, HEADER = 30 };
    s->data = data;
    s->size = size;
    s->n = 0;
    if (size >= 8 && memcmp(data + MAGIC, "XH00", 4) != 0)
        find_in_table(s, flat_get(data, 0, 4), 0);
    for (size_t i = 0; i + HEADER <= size; i++) {
        if (data[i + MAGIC] != 'X' || memcmp(data + i + MAGIC, "XH00", 4) != 0)
            continue;
        size_t root = i + flat_get(data, i + FLAT_AT, 4);
        for (size_t k = FIELDS; k < HEADER - 4; k += 4)
            add_spot(s, i + k, 4, SPOT_NUMBER);
        if (root + 8 <= size)
            find_in_table(s, root + flat_get(data, root, 4), 0);
    }
}

/* -- changing --------------------------------------------------------------------------------- */

static inline const Spot *pick_spot(const Spots *s, Draw *r)
{
    const Spot *at = &s->spot[draw_below(r, (size_t)s->n)];
    for (int i = 0; i < 3 && at->kind == SPOT_LAYOUT; i++)
        at = &s->spot[draw_below(r, (size_t)s->n)];
    return at;
}

/* Returns what stands at another spot of its kind; an offset then leads where that one leads. */
static inline uint64_t from_elsewhere(const Spots *s, const Spot *at, uint64_t was, Draw *r)
{
    for (int i = 0; i < 16; i++) {
        const Spot *other = &s->spot[draw_below(r, (size_t)s->n)];
        if (other->kind != at->kind || other->bytes != at->bytes)
            continue;
        uint64_t v = flat_get(s->data, other->at, other->bytes);
        return at->kind == SPOT_OFFSET ? v + other->at - at->at : v;
    }
    return was + 1;
}

static inline uint64_t changed_number(const Spots *s, const Spot *at, uint64_t was, Draw *r)
{
    unsigned how = draw_below(r, 16);
    double d;
    if (how < 5)
        return (uint64_t)draw_int(r);
    if (how < 7)
        return (uint64_t)draw_size(r);
    if (how < 10)
        return was + draw_below(r, 17) - 8;
    if (how < 11)
        return s->size + draw_below(r, 17) - 8;
    if (how < 14)
        return from_elsewhere(s, at, was, r);
    if (how < 15 && at->bytes == 8) {
        d = draw_double(r);
        memcpy(&was, &d, sizeof was);
        return was;
    }
    return (uint64_t)draw_below(r, 65536) << 16 | draw_below(r, 65536);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static Spots s;
    Draw r = {NULL, 0, (uint64_t)seed << 1 | 1};
    find_spots(&s, data, size);
    unsigned how = draw_below(&r, 32);
    if (!s.n || how == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (how == 1)
        return 1 + draw_below(&r, 65536) % size;
    for (unsigned i = 1 + draw_below(&r, 3); i > 0; i--) {
        const Spot *at = pick_spot(&s, &r);
        uint64_t v = changed_number(&s, at, flat_get(data, at->at, at->bytes), &r);
        memcpy(data + at->at, &v, at->bytes);
    }
    return size;
}

#endif
