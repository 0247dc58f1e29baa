/* onnx_wire.c -- turns the bytes of an ONNX file into its messages.
 *
 * protobuf-c copies every byte that it reads, follows nested messages without a limit, and makes
 * two hundred bytes of an empty one.  So a walker first writes a copy of the file, which protobuf-c
 * unpacks.  The copy lacks large raw data, whose places are noted, and fields that nobody reads.
 * The walker limits how deep messages nest and how many there are.  Source: the wire format of
 * protocol buffers. */
#include "compiler/import/onnx.h"
#include <string.h>

enum {
    MAX_NESTING = 100,      /* a graph in a graph takes three */
    MAX_MESSAGES = 300000,
    MAPPED_FROM = 64,       /* bytes of raw data that stay where they lie */
    MAX_FIELD = 32
};

typedef enum Kind {
    DROPPED,
    KEPT,
    RAW,
    NOTE, /* an entry that nobody reads unless it tells where a node comes from */
    OPERATOR_SET, /* from here on messages */
    ENTRY,
    DIMENSION,
    SHAPE,
    TENSOR_TYPE,
    TYPE,
    VALUE_INFO,
    TENSOR,
    ATTRIBUTE,
    NODE,
    GRAPH,
    FUNCTION,
    MODEL,
    N_KINDS
} Kind;

static const uint8_t kind_of[N_KINDS][MAX_FIELD] = {
    [OPERATOR_SET] = {[1] = KEPT, [2] = KEPT},
    [ENTRY] = {[1] = KEPT, [2] = KEPT},
    [DIMENSION] = {[1] = KEPT, [2] = KEPT},
    [SHAPE] = {[1] = DIMENSION},
    [TENSOR_TYPE] = {[1] = KEPT, [2] = SHAPE},
    [TYPE] = {[1] = TENSOR_TYPE},
    [VALUE_INFO] = {[1] = KEPT, [2] = TYPE},
    [TENSOR] = {[1] = KEPT, [2] = KEPT, [4] = KEPT, [5] = KEPT, [6] = KEPT, [7] = KEPT, [8] = KEPT,
                [9] = RAW, [10] = KEPT, [11] = KEPT, [13] = ENTRY, [14] = KEPT},
    [ATTRIBUTE] = {[1] = KEPT, [2] = KEPT, [3] = KEPT, [4] = KEPT, [5] = TENSOR, [6] = GRAPH,
                   [7] = KEPT, [8] = KEPT, [9] = KEPT, [20] = KEPT, [21] = KEPT},
    [NODE] = {[1] = KEPT, [2] = KEPT, [3] = KEPT, [4] = KEPT, [5] = ATTRIBUTE, [7] = KEPT,
              [8] = KEPT, [9] = NOTE},
    [GRAPH] = {[1] = NODE, [2] = KEPT, [5] = TENSOR, [11] = VALUE_INFO, [12] = VALUE_INFO,
               [15] = KEPT},
    [FUNCTION] = {[1] = KEPT, [4] = KEPT, [5] = KEPT, [7] = NODE, [9] = OPERATOR_SET, [10] = KEPT,
                  [11] = ATTRIBUTE, [13] = KEPT},
    [MODEL] = {[1] = KEPT, [2] = KEPT, [3] = KEPT, [7] = GRAPH, [8] = OPERATOR_SET,
               [14] = ENTRY, [25] = FUNCTION},
};

typedef struct Walk {
    Arena *tmp;
    Diag *diag;
    Loc loc;
    const uint8_t *start;
    uint8_t *out;     /* NULL: sizes alone are found */
    size_t *size;     /* the sizes of the messages in the copy, in the order in which they begin */
    int n_sizes, at;
    size_t n;         /* how many bytes are written */
} Walk;

static bool refuse(const Walk *w, const uint8_t *at, const char *what)
{
    return diag_error(w->diag, w->loc, "is not an ONNX model: %s at byte %lld", what,
                      (long long)(at - w->start));
}

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    uint64_t v = 0;
    for (int shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        v |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128)) {
            *out = v;
            return true;
        }
    }
    return false;
}

typedef struct Field {
    const uint8_t *tag, *data; /* data: after the length, if there is one */
    uint64_t number, n;        /* n: bytes of the data */
    int wire;
} Field;

#ifndef lies_within /* a fuzzer's planted bug */
static bool lies_within(uint64_t n, const uint8_t *at, const uint8_t *end)
{
    return n <= (uint64_t)(end - at);
}
#endif

static bool read_field(const Walk *w, const uint8_t **at, const uint8_t *end, Field *f)
{
    uint64_t tag, ignored;
    f->tag = *at;
    if (!read_varint(at, end, &tag))
        return refuse(w, f->tag, "a field's tag is cut off");
    f->number = tag >> 3;
    f->wire = (int)(tag & 7);
    f->data = *at;
    if (f->wire == 0) {
        if (!read_varint(at, end, &ignored))
            return refuse(w, f->tag, "a number is cut off");
        f->n = (uint64_t)(*at - f->data);
        return true;
    }
    if (f->wire == 2) {
        if (!read_varint(at, end, &f->n))
            return refuse(w, f->tag, "a length is cut off");
        f->data = *at;
    } else if (f->wire == 1 || f->wire == 5) {
        f->n = f->wire == 1 ? 8 : 4;
    } else {
        return refuse(w, f->tag, "a field has no known wire type");
    }
    if (!lies_within(f->n, f->data, end))
        return refuse(w, f->tag, "a field reaches past the end");
    *at = f->data + f->n;
    return true;
}

static void put(Walk *w, const void *data, size_t n)
{
    if (w->out && n)
        memcpy(w->out + w->n, data, n);
    w->n += n;
}

static void put_varint(Walk *w, uint64_t v)
{
    do {
        uint8_t byte = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
        put(w, &byte, 1);
        v >>= 7;
    } while (v);
}

static void put_fixed(Walk *w, uint64_t number, uint64_t v)
{
    put_varint(w, number << 3 | 1);
    for (int i = 0; i < 8; i++)
        put(w, &(uint8_t){(uint8_t)(v >> (8 * i))}, 1);
}

/* Notes where bytes lie in the file. */
static void put_place(Walk *w, const uint8_t *data, uint64_t n)
{
    put_fixed(w, 100, (uint64_t)(data - w->start));
    put_fixed(w, 101, n);
}

/* Notes where the trace of the exporter lies, if this entry is one. */
static void put_note(Walk *w, const Field *f)
{
    static const char key[] = "\n\x1apkg.torch.onnx.stack_trace\x12";
    uint64_t at = sizeof key - 1;
    if (f->n < at || memcmp(f->data, key, sizeof key - 1) != 0)
        return;
    while (at < f->n && f->data[at] & 128)
        at++; /* the length of the text, which ends the entry */
    if (at < f->n)
        put_place(w, f->data + at + 1, f->n - at - 1);
}

static bool walk(Walk *w, Kind kind, const uint8_t *at, const uint8_t *end, int depth);

/* Writes a message, whose length the first walk has found. */
static bool put_message(Walk *w, Kind kind, const Field *f, int depth)
{
    if (w->out) {
        put_varint(w, f->number << 3 | 2);
        put_varint(w, w->size[w->at++]);
        return walk(w, kind, f->data, f->data + f->n, depth);
    }
    int at = w->n_sizes;
    if (at == MAX_MESSAGES)
        return refuse(w, f->tag, "there are more than 300,000 messages");
    PUSH(w->tmp, w->size, w->n_sizes, 0);
    size_t before = w->n;
    if (!walk(w, kind, f->data, f->data + f->n, depth))
        return false;
    w->size[at] = w->n - before;
    put_varint(w, f->number << 3 | 2);
    put_varint(w, w->size[at]);
    return true;
}

static bool walk(Walk *w, Kind kind, const uint8_t *at, const uint8_t *end, int depth)
{
    Field f = {0};
    if (depth > MAX_NESTING)
        return refuse(w, at, "messages nest deeper than 100");
    while (at < end) {
        if (!read_field(w, &at, end, &f))
            return false;
        Kind k = f.number < MAX_FIELD ? (Kind)kind_of[kind][f.number] : DROPPED;
        if (k == DROPPED)
            continue;
        if (k >= RAW && f.wire != 2)
            return refuse(w, f.tag, "a message has another wire type");
        if (k == KEPT || (k == RAW && f.n < MAPPED_FROM)) {
            put(w, f.tag, (size_t)(f.data - f.tag) + (size_t)f.n);
        } else if (k == RAW) {
            put_place(w, f.data, f.n);
        } else if (k == NOTE) {
            put_note(w, &f);
        } else if (!put_message(w, k, &f, depth + 1)) {
            return false;
        }
    }
    return true;
}

/* -- protobuf-c -------------------------------------------------------------------------------- */

typedef struct Budget {
    Arena *arena;
    size_t left;
} Budget;

static void *take(void *data, size_t n)
{
    Budget *b = data;
    if (n > b->left)
        return NULL;
    b->left -= n;
    return arena_bytes(b->arena, n ? n : 1);
}

static void leave(void *data, void *pointer)
{
    (void)data, (void)pointer; /* the arena is freed as a whole */
}

Onnx__Model *onnx_unpack(Arena *a, Loc loc, const uint8_t *data, size_t n, Diag *d)
{
    enum { AT_LEAST = 64 << 20, PER_BYTE = 8 };
    Walk w = {.tmp = arena_within(a), .diag = d, .loc = loc, .start = data};
    Onnx__Model *model = NULL;
    if (walk(&w, MODEL, data, data + n, 0)) {
        size_t size = w.n;
        w.out = arena_bytes(w.tmp, size + 1);
        w.n = 0;
        if (walk(&w, MODEL, data, data + n, 0)) {
            Budget b = {a, AT_LEAST + PER_BYTE * size};
            ProtobufCAllocator allocator = {take, leave, &b};
            model = onnx__model__unpack(&allocator, size, w.out);
            if (!model)
                diag_error(d, loc, "is not an ONNX model: protobuf-c does not read it");
        }
    }
    arena_free(w.tmp);
    return model;
}
