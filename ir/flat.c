/* flat.c -- writes FlatBuffers from the end of the buffer to its start: children first, the root
 * last.
 *
 * A FlatRef is an object's distance from the end of the buffer, so it stays valid while the
 * buffer grows at its front.  A table's fields are collected until flat_end, which writes the
 * largest first: so there is no padding between them, and equal sets of fields have equal
 * vtables, which are shared.  Objects are aligned relative to the end.  flat_finish makes the
 * size a multiple of the largest alignment, so that they are aligned relative to the start too.
 * The host is little-endian, as the format is.  Source: the FlatBuffers internals document. */
#include "ir/flat.h"
#include "ir/table.h"

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
    int n_slots; /* of the table that is open; -1: none is */
    int n_fields;
    uint32_t n_used; /* the last slot that is set + 1 */
    unsigned sizes;  /* the sizes of all fields, or-ed */
    Field field[MAX_SLOTS];
    Table vtables; /* from their bytes to FlatRef */
    FlatRef recent[2 + MAX_SLOTS]; /* by the number of words: the last vtable that was shared */
};

Flat *flat_new(Arena *a)
{
    Flat *f = NEW(a, Flat, 1);
    f->arena = a;
    f->cap = FIRST_CAP;
    f->buf = NEW(a, uint8_t, f->cap);
    f->align = 4;
    f->n_slots = -1;
    f->vtables.arena = a;
    return f;
}

/* -- bytes ------------------------------------------------------------------------------- */

/* Makes room for n bytes.  Above 2 GiB offsets overflow: the buffer is then overwritten and
 * useless. */
static void reserve(Flat *f, size_t n)
{
    if (n > MAX_BYTES || f->used > MAX_BYTES - n) {
        f->is_too_large = true;
        f->used = 0;
        f->vtables = (Table){.arena = f->arena};
        memset(f->recent, 0, sizeof f->recent);
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

/* Pads the buffer so that its end is a multiple of `align` after n more bytes. */
static void align_after(Flat *f, size_t n, size_t align)
{
    assert((align & (align - 1)) == 0);
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

static void push_u32(Flat *f, uint32_t v)
{
    push(f, &v, sizeof v);
}

static void push_offset(Flat *f, FlatRef to)
{
    assert(to && (to <= f->used || f->is_too_large));
    push_u32(f, (uint32_t)(f->used + 4 - to));
}

/* -- vectors ----------------------------------------------------------------------------- */

static FlatRef end_vector(Flat *f, size_t n)
{
    push_u32(f, (uint32_t)n);
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
    assert(f->n_slots < 0);
    align_after(f, n + 1, 4);
    push(f, s, n + 1);
    return end_vector(f, n);
}

FlatRef flat_vector(Flat *f, const void *items, size_t n, size_t item_size)
{
    assert(f->n_slots < 0);
    align_after(f, n * item_size, item_size > 4 ? item_size : 4);
    push(f, items, n * item_size);
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
    f->n_used = f->sizes = 0;
}

static void set(Flat *f, int slot, uint64_t bits, FlatRef ref, size_t size)
{
    assert(slot < f->n_slots);
    f->field[f->n_fields++] = (Field){bits, ref, (uint16_t)slot, (uint16_t)size};
    f->sizes |= (unsigned)size;
    if (f->n_used <= (uint32_t)slot)
        f->n_used = (uint32_t)slot + 1;
}

/* Adds a field.  A field of 0 is left out, because 0 is the default. */
static void add(Flat *f, int slot, uint64_t bits, FlatRef ref, size_t size)
{
    if (bits || ref)
        set(f, slot, bits, ref, size);
}

void flat_u8(Flat *f, int slot, uint8_t v)
{
    add(f, slot, v, 0, 1);
}

void flat_u16(Flat *f, int slot, uint16_t v)
{
    add(f, slot, v, 0, 2);
}

void flat_i32(Flat *f, int slot, int32_t v, int32_t absent)
{
    if (v != absent)
        set(f, slot, (uint32_t)v, 0, 4);
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

/* Returns the position of this vtable, which is written now unless an equal one was written
 * before.  It has its own size, the size of its table, and a word for each slot. */
static FlatRef share_vtable(Flat *f, const uint16_t *v)
{
    FlatRef *recent = &f->recent[v[0] / 2 - 1];
    if (*recent && !memcmp(at(f, *recent), v, v[0]))
        return *recent;
    TableItem *known = table_at_copy(&f->vtables, v, v[0]);
    if (!known->number) {
        push(f, v, v[0]);
        known->number = (int64_t)f->used;
    }
    return *recent = (FlatRef)known->number;
}

/* Writes the fields, largest first, and sets where[] to their positions.  Returns where the table
 * ends. */
static FlatRef push_fields(Flat *f, FlatRef where[MAX_SLOTS])
{
    align_after(f, 0, f->sizes & 8 ? 8 : 4);
    FlatRef end = (FlatRef)f->used;
    for (unsigned size = 8; size; size /= 2)
        for (int i = 0; f->sizes & size && i < f->n_fields; i++) {
            const Field *v = &f->field[i];
            if (v->size != size)
                continue;
            if (v->ref)
                push_offset(f, v->ref);
            else
                push(f, &v->bits, size);
            where[v->slot] = (FlatRef)f->used;
        }
    return end;
}

FlatRef flat_end(Flat *f)
{
    FlatRef where[MAX_SLOTS];
    uint16_t vtable[2 + MAX_SLOTS];
    uint32_t n = f->n_used;
    assert(f->n_slots >= 0);
    memset(where, 0, n * sizeof *where);
    FlatRef end = push_fields(f, where);
    align_after(f, 4, 4);
    push_u32(f, 0); /* the distance to the vtable, which is set below */
    FlatRef table = (FlatRef)f->used;
    vtable[0] = (uint16_t)(4 + 2 * n);
    vtable[1] = (uint16_t)(table - end);
    for (uint32_t i = 0; i < n; i++)
        vtable[2 + i] = where[i] ? (uint16_t)(table - where[i]) : 0;
    uint32_t back = share_vtable(f, vtable) - table;
    memcpy(at(f, table), &back, sizeof back);
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
