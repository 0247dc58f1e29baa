/* flat_read.c -- checked FlatBuffers reader.
 *
 * Layout: a table starts with an int32, its own position minus that of its vtable.  A vtable is
 * a u16 with its own bytes, a u16 with the bytes of the table, and a u16 per slot: the offset
 * from the table, or 0 if the field is absent.  References are u32 and count forward from their
 * own position.  Vectors and strings start with a u32 count.  The walk has its own stack, so
 * hostile nesting uses no C stack. */
#include "runtime-lite/flat_read.h"
#include "runtime-lite/etc_build.h"

#include <string.h>

#if defined(__BYTE_ORDER__) && (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
#error "FlatBuffers and tensor data are read in place: the host must be little-endian"
#endif

static uint16_t load_u16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t load_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* -- verify ------------------------------------------------------------------------------ */

typedef struct Frame {
    uint32_t table;
    uint32_t item, n_left; /* of the vector of tables that is walked */
    uint8_t row, item_row, slot;
} Frame;

typedef struct Walk {
    const EtcFlat *f;
    const EtcFlatTable *schema;
    const char *what;
    uint32_t n_tables;
    int depth;
    Frame stack[ETC_FLAT_MAX_DEPTH];
} Walk;

static int is_inside(const EtcFlat *f, uint64_t at, uint64_t bytes)
{
    return (bytes <= f->size) && (at <= f->size - bytes);
}

/* Keeps the first reason; returns 0. */
static int refuse(Walk *w, const char *what)
{
    w->what = w->what ? w->what : ETC_TEXT(what);
    return 0;
}

/* Returns where the reference at `at` leads, with at least 4 bytes inside the buffer; 0: it is
 * wrong. */
static uint32_t follow(Walk *w, uint32_t at)
{
    uint64_t to = (uint64_t)at + load_u32(w->f->data + at);
    if ((to == at) || ((to & 3) != 0) || !is_inside(w->f, to, 4)) {
        refuse(w, "FlatBuffer: offset outside the buffer or misaligned");
        return 0;
    }
    return (uint32_t)to;
}

static int check_table(Walk *w, uint32_t at)
{
    const EtcFlat *f = w->f;
    if (((at & 3) != 0) || !is_inside(f, at, 4)) {
        return refuse(w, "FlatBuffer: table outside the buffer or misaligned");
    }
    int64_t vtable = (int64_t)at - (int32_t)load_u32(f->data + at);
    if ((vtable < 4) || ((vtable & 1) != 0) || !is_inside(f, (uint64_t)vtable, 4)) {
        return refuse(w, "FlatBuffer: vtable outside the buffer or misaligned");
    }
    uint32_t own = load_u16(f->data + vtable), bytes = load_u16(f->data + vtable + 2);
    if ((own < 4) || ((own & 1) != 0) || !is_inside(f, (uint64_t)vtable, own)) {
        return refuse(w, "FlatBuffer: vtable of a wrong length");
    }
    if ((bytes < 4) || !is_inside(f, at, bytes)) {
        return refuse(w, "FlatBuffer: table of a wrong length");
    }
    if ((vtable + own > at) && (vtable < (int64_t)at + bytes)) {
        return refuse(w, "FlatBuffer: vtable overlaps its table");
    }
    return 1;
}

static void push(Walk *w, uint32_t table, uint8_t row)
{
    if (w->depth == ETC_FLAT_MAX_DEPTH) {
        refuse(w, "FlatBuffer: nested deeper than 64 tables");
    } else if (w->n_tables == ETC_FLAT_MAX_TABLES) {
        refuse(w, "FlatBuffer: more than 1,000,000 tables");
    } else if (check_table(w, table)) {
        Frame top = {table, 0, 0, row, 0, 0};
        w->stack[w->depth++] = top;
        w->n_tables++;
    }
}

/* Returns the field of a checked table, which is aligned and inside the table; 0: it is absent or
 * was refused. */
static uint32_t check_field(Walk *w, uint32_t table, int slot, uint32_t size)
{
    const uint8_t *vtable = w->f->data + table - (int32_t)load_u32(w->f->data + table);
    if (4 + 2 * slot >= load_u16(vtable)) {
        return 0;
    }
    uint32_t offset = load_u16(vtable + 4 + 2 * slot), bytes = load_u16(vtable + 2);
    if (offset == 0) {
        return 0;
    }
    if ((offset < 4) || (offset + size > bytes) || ((table + offset) % size != 0)) {
        refuse(w, "FlatBuffer: field outside its table or misaligned");
        return 0;
    }
    return table + offset;
}

/* Checks a vector that is followed by `extra` bytes.  Returns where its items start, or 0 with a
 * reason. */
static uint32_t check_vector(Walk *w, uint32_t at, uint32_t size, uint32_t extra, uint32_t *n)
{
    uint32_t vector = follow(w, at);
    if (vector == 0) {
        return 0;
    }
    *n = load_u32(w->f->data + vector);
    uint64_t bytes = (uint64_t)*n * size + extra;
    if (!is_inside(w->f, (uint64_t)vector + 4, bytes)) {
        refuse(w, "FlatBuffer: vector longer than the buffer");
        return 0;
    }
    if ((*n > 0) && ((vector + 4) % size != 0)) {
        refuse(w, "FlatBuffer: items of a vector are misaligned");
        return 0;
    }
    return vector + 4;
}

static void check_union(Walk *w, uint32_t table, int slot, const EtcFlatSlot *s, uint32_t at)
{
    uint32_t type_at = check_field(w, table, slot - 1, 1);
    uint32_t type = type_at ? w->f->data[type_at] : 0;
    if (type > s->n) {
        refuse(w, "FlatBuffer: unknown type of a union");
    } else if (type == 0) {
        if (at != 0) {
            refuse(w, "FlatBuffer: union with a value but no type");
        }
    } else if (at != 0) {
        uint32_t to = follow(w, at);
        if (to != 0) {
            push(w, to, (uint8_t)(s->table + type - 1));
        }
    } else if (w->schema[s->table + type - 1].n_slots > 0) {
        refuse(w, "FlatBuffer: union without its value");
    }
}

static void check_string(Walk *w, uint32_t at)
{
    uint32_t n = 0, first = check_vector(w, at, 1, 1, &n);
    if ((first != 0) && (w->f->data[first + n] != 0)) {
        refuse(w, "FlatBuffer: string without its NUL");
    }
}

/* Checks one field; the tables it leads to come next on the stack. */
static void check_slot(Walk *w, Frame *top)
{
    int slot = top->slot++;
    const EtcFlatSlot *s = &w->schema[top->row].slot[slot];
    uint32_t n = 0, to, at = check_field(w, top->table, slot, s->kind ? 4 : s->size);
    if ((w->what != NULL) || ((at == 0) && (s->kind != ETC_FLAT_UNION))) {
        return;
    }
    switch ((EtcFlatKind)s->kind) {
    case ETC_FLAT_STRING:
        check_string(w, at);
        break;
    case ETC_FLAT_SCALARS:
        check_vector(w, at, s->size, 0, &n);
        break;
    case ETC_FLAT_TABLES:
        top->item = check_vector(w, at, 4, 0, &n);
        top->n_left = n;
        top->item_row = s->table;
        break;
    case ETC_FLAT_TABLE:
        to = follow(w, at);
        if (to != 0) {
            push(w, to, s->table);
        }
        break;
    case ETC_FLAT_UNION:
        check_union(w, top->table, slot, s, at);
        break;
    case ETC_FLAT_SCALAR:
    default:
        break;
    }
}

const char *etc_flat_verify(const EtcFlat *f, const EtcFlatTable *schema, uint32_t root)
{
    Walk w;
    w.f = f;
    w.schema = schema;
    w.what = NULL;
    w.n_tables = 0;
    w.depth = 0;
    push(&w, root, 0);
    while ((w.what == NULL) && (w.depth > 0)) {
        Frame *top = &w.stack[w.depth - 1];
        if (top->n_left > 0) {
            uint32_t to = follow(&w, top->item);
            top->item += 4;
            top->n_left--;
            if (to != 0) {
                push(&w, to, top->item_row);
            }
        } else if (top->slot < schema[top->row].n_slots) {
            check_slot(&w, top);
        } else {
            w.depth--;
        }
    }
    return w.what;
}

/* -- read -------------------------------------------------------------------------------- */

/* Returns the position of a field; 0: it is absent. */
static uint32_t field(const EtcFlat *f, uint32_t table, int slot)
{
    const uint8_t *vtable = f->data + table - (int32_t)load_u32(f->data + table);
    uint32_t offset = (4 + 2 * slot < load_u16(vtable)) ? load_u16(vtable + 4 + 2 * slot) : 0;
    return offset ? table + offset : 0;
}

uint32_t etc_flat_root(const EtcFlat *f)
{
    return load_u32(f->data);
}

int etc_flat_has(const EtcFlat *f, uint32_t table, int slot)
{
    return field(f, table, slot) != 0;
}

uint64_t etc_flat_scalar(const EtcFlat *f, uint32_t table, int slot, size_t size)
{
    uint64_t v = 0;
    uint32_t at = field(f, table, slot);
    if (at != 0) {
        memcpy(&v, f->data + at, size);
    }
    return v;
}

uint8_t etc_flat_u8(const EtcFlat *f, uint32_t table, int slot)
{
    return (uint8_t)etc_flat_scalar(f, table, slot, 1);
}

uint32_t etc_flat_u32(const EtcFlat *f, uint32_t table, int slot)
{
    return (uint32_t)etc_flat_scalar(f, table, slot, 4);
}

int32_t etc_flat_i32(const EtcFlat *f, uint32_t table, int slot)
{
    return (int32_t)etc_flat_scalar(f, table, slot, 4);
}

uint64_t etc_flat_u64(const EtcFlat *f, uint32_t table, int slot)
{
    return etc_flat_scalar(f, table, slot, 8);
}

uint32_t etc_flat_table(const EtcFlat *f, uint32_t table, int slot)
{
    uint32_t at = field(f, table, slot);
    return at ? at + load_u32(f->data + at) : 0;
}

EtcFlatVec etc_flat_vec(const EtcFlat *f, uint32_t table, int slot)
{
    EtcFlatVec v = {NULL, 0};
    uint32_t at = etc_flat_table(f, table, slot);
    if (at != 0) {
        v.item = f->data + at + 4;
        v.n = load_u32(f->data + at);
    }
    return v;
}

const char *etc_flat_string(const EtcFlat *f, uint32_t table, int slot, uint32_t *n)
{
    EtcFlatVec v = etc_flat_vec(f, table, slot);
    if (n != NULL) {
        *n = v.n;
    }
    return (const char *)v.item;
}

uint32_t etc_flat_item_table(const EtcFlat *f, EtcFlatVec v, uint32_t i)
{
    const uint8_t *at = v.item + (size_t)4 * i;
    return (uint32_t)(at - f->data) + load_u32(at);
}

int32_t etc_flat_item_i32(EtcFlatVec v, uint32_t i)
{
    return (int32_t)load_u32(v.item + (size_t)4 * i);
}

int64_t etc_flat_item_i64(EtcFlatVec v, uint32_t i)
{
    int64_t x;
    memcpy(&x, v.item + (size_t)8 * i, sizeof x);
    return x;
}
