/* flat.c -- FlatBuffers writer: children first, the root last, from the end of the buffer down.
 *
 * A FlatRef is an object's distance from the end of the buffer, so it stays true while the buffer
 * grows at its front.  A table's fields are kept until flat_end, which lays them out by falling
 * size: no padding between them, and equal sets of fields give equal vtables, which are shared.
 * Alignment holds from the end; flat_finish makes the whole a multiple of the largest, so that it
 * holds from the start too.  Source: FlatBuffers internals document.
 */
#include "ir/ir.h"
#include <assert.h>
#include <string.h>

enum { MAX_SLOTS = 64, FIRST_CAP = 4096, MAX_BYTES = INT32_MAX - 64 };

typedef struct Field {
    uint64_t bits;
    FlatRef ref; /* not 0: an offset to it is written in place of bits */
    uint16_t slot, size;
} Field;

struct Flat {
    Arena *arena;
    uint8_t *buf; /* bytes from cap - used on are written; those before are zero */
    size_t cap, used, align;
    bool is_too_large;
    int n_slots; /* of the open table; -1: none */
    int n_fields;
    Field field[MAX_SLOTS];
    FlatRef *vtable; /* open addressing, at most half full */
    int n_vtables, cap_vtables;
};

Flat *flat_new(Arena *a)
{
    Flat *f = NEW(a, Flat, 1);
    f->arena = a;
    f->cap = FIRST_CAP;
    f->buf = NEW(a, uint8_t, f->cap);
    f->align = 4;
    f->n_slots = -1;
    f->cap_vtables = 64;
    f->vtable = NEW(a, FlatRef, f->cap_vtables);
    return f;
}

/* -- bytes ------------------------------------------------------------------------------- */

/* Past 2 GiB offsets lose their meaning: what follows is written for nothing, over the old. */
static void reserve(Flat *f, size_t n)
{
    if (n > MAX_BYTES || f->used > MAX_BYTES - n) {
        f->is_too_large = true;
        f->used = 0;
    }
    if (n <= f->cap - f->used)
        return;
    size_t cap = 2 * f->cap > f->used + n ? 2 * f->cap : (f->used + n + 63) / 64 * 64;
    uint8_t *bigger = NEW(f->arena, uint8_t, cap);
    memcpy(bigger + cap - f->used, f->buf + f->cap - f->used, f->used);
    f->buf = bigger;
    f->cap = cap;
}

static uint8_t *at(const Flat *f, FlatRef ref)
{
    return f->buf + f->cap - ref;
}

/* Pads so that what is written last stands at a multiple of `align` after `n` more bytes. */
static void align_after(Flat *f, size_t n, size_t align)
{
    size_t pad = (0 - f->used - n) & (align - 1);
    if (align > f->align)
        f->align = align;
    reserve(f, n + pad);
    f->used += pad;
}

static void push(Flat *f, const void *data, size_t n)
{
    reserve(f, n);
    f->used += n;
    if (n)
        memcpy(f->buf + f->cap - f->used, data, n);
}

static void push_le(Flat *f, uint64_t v, size_t n)
{
    uint8_t b[8];
    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(v >> 8 * i);
    push(f, b, n);
}

static void push_offset(Flat *f, FlatRef to)
{
    push_le(f, f->used + 4 - to, 4);
}

/* -- vectors ----------------------------------------------------------------------------- */

static FlatRef end_vector(Flat *f, size_t n)
{
    push_le(f, n, 4);
    return (FlatRef)f->used;
}

FlatRef flat_bytes(Flat *f, const void *data, size_t n, size_t align)
{
    assert(f->n_slots < 0);
    align_after(f, n, align > 4 ? align : 4);
    push(f, data, n);
    return end_vector(f, n);
}

FlatRef flat_string(Flat *f, const char *s)
{
    size_t n = strlen(s);
    align_after(f, n + 1, 4);
    push(f, s, n + 1);
    return end_vector(f, n);
}

FlatRef flat_vector(Flat *f, const void *items, size_t n, size_t item_size)
{
    const uint8_t *item = items;
    assert(f->n_slots < 0);
    align_after(f, n * item_size, item_size > 4 ? item_size : 4);
    for (size_t i = n; i-- > 0;) {
        uint64_t v = 0;
        switch (item_size) {
        case 1:
            v = item[i];
            break;
        case 2:
            v = ((const uint16_t *)items)[i];
            break;
        case 4:
            v = ((const uint32_t *)items)[i];
            break;
        default:
            v = ((const uint64_t *)items)[i];
        }
        push_le(f, v, item_size);
    }
    return end_vector(f, n);
}

FlatRef flat_refs(Flat *f, const FlatRef *items, size_t n)
{
    assert(f->n_slots < 0);
    align_after(f, 4 * n, 4);
    for (size_t i = n; i-- > 0;)
        push_offset(f, items[i]);
    return end_vector(f, n);
}

/* -- tables ------------------------------------------------------------------------------ */

void flat_begin(Flat *f, int n_slots)
{
    assert(f->n_slots < 0 && n_slots <= MAX_SLOTS);
    f->n_slots = n_slots;
    f->n_fields = 0;
}

static void add(Flat *f, int slot, uint64_t bits, FlatRef ref, size_t size)
{
    assert(slot < f->n_slots);
    if (bits || ref)
        f->field[f->n_fields++] = (Field){bits, ref, (uint16_t)slot, (uint16_t)size};
}

void flat_u8(Flat *f, int slot, uint8_t v)
{
    add(f, slot, v, 0, 1);
}

void flat_u16(Flat *f, int slot, uint16_t v)
{
    add(f, slot, v, 0, 2);
}

void flat_u32(Flat *f, int slot, uint32_t v)
{
    add(f, slot, v, 0, 4);
}

void flat_u64(Flat *f, int slot, uint64_t v)
{
    add(f, slot, v, 0, 8);
}

void flat_f32(Flat *f, int slot, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    add(f, slot, bits, 0, 4);
}

void flat_f64(Flat *f, int slot, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    add(f, slot, bits, 0, 8);
}

void flat_ref(Flat *f, int slot, FlatRef v)
{
    add(f, slot, 0, v, 4);
}

static uint32_t hash_vtable(const uint8_t *b)
{
    uint32_t h = 2166136261u;
    for (int n = b[0] | b[1] << 8, i = 0; i < n; i++)
        h = (h ^ b[i]) * 16777619u;
    return h ^ h >> 15;
}

static size_t vtable_bytes(const uint8_t *b)
{
    return (size_t)(b[0] | b[1] << 8);
}

static bool same_vtable(const uint8_t *a, const uint8_t *b)
{
    return vtable_bytes(a) == vtable_bytes(b) && !memcmp(a, b, vtable_bytes(a));
}

static FlatRef *vtable_slot(const Flat *f, const uint8_t *b)
{
    uint32_t mask = (uint32_t)f->cap_vtables - 1, i = hash_vtable(b) & mask;
    while (f->vtable[i] && !same_vtable(at(f, f->vtable[i]), b))
        i = (i + 1) & mask;
    return &f->vtable[i];
}

static void enlarge_vtables(Flat *f)
{
    FlatRef *old = f->vtable;
    int n = f->cap_vtables;
    f->cap_vtables = 2 * n;
    f->vtable = NEW(f->arena, FlatRef, f->cap_vtables);
    for (int i = 0; i < n; i++)
        if (old[i])
            *vtable_slot(f, at(f, old[i])) = old[i];
}

/* The place of these vtable bytes, written now unless an equal one was before. */
static FlatRef share_vtable(Flat *f, const uint8_t *b)
{
    if (2 * (f->n_vtables + 1) > f->cap_vtables)
        enlarge_vtables(f);
    FlatRef *known = vtable_slot(f, b);
    if (!*known) {
        push(f, b, vtable_bytes(b));
        *known = (FlatRef)f->used;
        f->n_vtables++;
    }
    return *known;
}

/* Writes the fields, largest first, and notes where each lies; returns where the table ends. */
static FlatRef push_fields(Flat *f, FlatRef where[MAX_SLOTS])
{
    unsigned sizes = 0;
    for (int i = 0; i < f->n_fields; i++)
        sizes |= f->field[i].size;
    align_after(f, 0, sizes & 8 ? 8 : 4);
    FlatRef end = (FlatRef)f->used;
    for (unsigned size = 8; size; size /= 2)
        for (int i = 0; sizes & size && i < f->n_fields; i++) {
            const Field *v = &f->field[i];
            if (v->size != size)
                continue;
            if (v->ref)
                push_offset(f, v->ref);
            else
                push_le(f, v->bits, size);
            where[v->slot] = (FlatRef)f->used;
        }
    return end;
}

static void put_u16(uint8_t *b, uint32_t v)
{
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
}

FlatRef flat_end(Flat *f)
{
    FlatRef where[MAX_SLOTS] = {0};
    uint8_t vtable[4 + 2 * MAX_SLOTS];
    uint32_t n = 0;
    for (int i = 0; i < f->n_fields; i++)
        if (f->field[i].slot >= n)
            n = f->field[i].slot + 1u;
    FlatRef end = push_fields(f, where);
    align_after(f, 4, 4);
    push_le(f, 0, 4); /* the way to the vtable, known below */
    FlatRef table = (FlatRef)f->used;
    put_u16(vtable, 4 + 2 * n);
    put_u16(vtable + 2, table - end);
    for (uint32_t i = 0; i < n; i++)
        put_u16(vtable + 4 + 2 * i, where[i] ? table - where[i] : 0);
    uint32_t back = share_vtable(f, vtable) - table;
    for (int i = 0; i < 4; i++)
        at(f, table)[i] = (uint8_t)(back >> 8 * i);
    f->n_slots = -1;
    return table;
}

const uint8_t *flat_finish(Flat *f, FlatRef root, const char *ident, size_t *n)
{
    assert(f->n_slots < 0);
    align_after(f, 8, f->align);
    push(f, ident, 4);
    push_offset(f, root);
    *n = f->used;
    return f->is_too_large ? NULL : at(f, (FlatRef)f->used);
}
