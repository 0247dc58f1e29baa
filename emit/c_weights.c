/* c_weights.c -- writes constants as arrays in the file, or as one blob that the assembler
 * includes. */
#include "emit/c_emit.h"
#include "ir/session.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOB_ALIGN = 64, ARRAY_ALIGN = 16, ARRAY_LIMIT = 256 * 1024 };

static int64_t state_bytes(const State *s)
{
    return type_bytes(s->type);
}

/* -- bytes ----------------------------------------------------------------------------------- */

/* Returns a dense copy of the elements of a tensor that has other strides in the model's file. */
static const uint8_t *dense_copy(Emit *e, const State *s)
{
    Type t = s->type;
    int64_t size = (int64_t)etc_dtype_size((int)t.dtype), n = type_numel(t), index[MAX_RANK] = {0};
    uint8_t *to = arena_alloc(e->a, (size_t)n + 1, (size_t)size);
    assert(t.stride && s->data);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        for (int d = 0; d < t.rank; d++)
            at += index[d] * t.stride[d].value;
        memcpy(to + i * size, s->data + at * size, (size_t)size);
        for (int d = t.rank - 1; d >= 0 && ++index[d] == t.dim[d].value; d--)
            index[d] = 0;
    }
    return to;
}

static const uint8_t *state_data(Emit *e, const State *s)
{
    return !s->data || c_type_is_dense(e, s->type) ? s->data : dense_copy(e, s);
}

static bool have_data(Emit *e)
{
    bool ok = true;
    for (int i = 0; i < e->p->n_states; i++)
        if (e->constant[i] && !e->p->state[i]->data && state_bytes(e->p->state[i]))
            ok = diag_error(e->d, (Loc){.file = e->p->name}, "the bytes of '%s' are not available",
                            e->p->state[i]->fqn);
    return ok;
}

const uint8_t *constant_bytes_of(Emit *e, const Value *v, EtcDtype t)
{
    bool ok = value_is_fixed(v) && v->type.dtype == t && c_type_is_dense(e, v->type);
    return ok ? v->state->data : NULL;
}

const void *constant_data(Emit *e, const Value *v, EtcDtype t)
{
    return constant_bytes_of(e, v, t) ? state_elements(v->state) : NULL;
}

const char *wish_of(const Value *w)
{
    return w->state->fqn && *w->state->fqn ? w->state->fqn : w->state->name;
}

static const char *add_array(Emit *e, const char *wish, const char *what, EtcDtype t, int64_t n,
                             MadeArray m, void *data)
{
    Dim *dim = NEW(e->a, Dim, 1);
    State *s = NEW(e->a, State, 1);
    assert(n > 0);
    const char *name = names_make(e->names, "w_", arena_printf(e->a, "%s_%s", wish, what));
    *dim = DIM(n);
    *s = (State){.kind = ST_CONST, .index = -1, .name = name, .fqn = wish, .data = data,
                 .type = {.dtype = t, .rank = 1, .dim = dim}};
    s->n_bytes = type_bytes(s->type);
    m.state = s;
    m.reads = e->macs;
    e->flash += s->n_bytes;
    PUSH(e->a, e->made, e->n_made, m);
    return name;
}

const char *made_array(Emit *e, const char *wish, const char *what, EtcDtype t, int64_t n,
                       void *data)
{
    assert(data);
    for (int i = 0; i < e->n_made; i++) {
        MadeArray *m = &e->made[i];
        const State *s = m->state;
        if (s->data && s->type.dtype == t && s->type.dim[0].value == n &&
            !memcmp(s->data, data, (size_t)s->n_bytes)) {
            m->reads += e->macs;
            return s->name;
        }
    }
    return add_array(e, wish, what, t, n, (MadeArray){0}, data);
}

const char *made_blocks(Emit *e, const char *wish, const RowBlocks *b)
{
    return add_array(e, wish, "blocks", b->is_quads ? ETC_I8 : b->words ? ETC_BF16 : ETC_F32,
                     blocks_numel(b),
                     (MadeArray){.blocks = b}, NULL);
}

/* -- arrays ---------------------------------------------------------------------------------- */

static void put_item(Text *t, EtcDtype dtype, const uint8_t *p)
{
    float f;
    double d;
    int64_t i = 0;
    switch (dtype) {
    case ETC_F32:
        memcpy(&f, p, sizeof f);
        put_weight(t, f);
        break;
    case ETC_F64:
        memcpy(&d, p, sizeof d);
        put_double(t, d);
        break;
    case ETC_U64:
    case ETC_I64:
        memcpy(&i, p, sizeof i);
        if (dtype == ETC_U64)
            put(t, "UINT64_C(%" PRIu64 ")", (uint64_t)i);
        else
            put_int(t, i);
        break;
    default: /* narrower integers, and raw bits of other dtypes */
        memcpy(&i, p, etc_dtype_size((int)dtype));
        if (dtype == ETC_I8)
            i = (int8_t)i;
        else if (dtype == ETC_I16)
            i = (int16_t)i;
        else if (dtype == ETC_I32)
            i = (int32_t)i;
        put(t, i == INT32_MIN ? "(-2147483647 - 1)" : "%" PRId64 "%s", i,
            dtype == ETC_U32 ? "u" : "");
        break;
    }
}

static void put_array_title(Text *t, const State *s)
{
    put(t, "/* ");
    put_comment(t, s->fqn && *s->fqn ? s->fqn : s->name);
    put(t, ": ");
    put_type_comment(t, s->type);
    put(t, " */\n");
}

/* Returns the attribute for an array that the variants for wider vectors do not use: the initial
 * value of a state. */
static const char *unused_mark(const State *s)
{
    return s->kind == ST_MUTABLE ? " __attribute__((unused))" : "";
}

static const char *array_name(const Emit *e, const State *s)
{
    return s->index < 0 ? s->name : e->constant[s->index];
}

/* Returns the state of array i of the file, which belongs to the program or was made here; NULL:
 * the state has no array. */
static const State *array_at(const Emit *e, int i)
{
    const State *s = i < e->p->n_states ? e->p->state[i] : e->made[i - e->p->n_states].state;
    return i >= e->p->n_states || state_is_array(e, s) ? s : NULL;
}

static const RowBlocks *blocks_at(const Emit *e, int i)
{
    return i < e->p->n_states ? NULL : e->made[i - e->p->n_states].blocks;
}

static const uint8_t *array_data(Emit *e, int i)
{
    const State *s = array_at(e, i);
    if (!blocks_at(e, i))
        return state_data(e, s);
    uint8_t *to = arena_alloc(e->a, (size_t)state_bytes(s), sizeof(float));
    blocks_make(blocks_at(e, i), 0, state_bytes(s), to);
    return to;
}

static int n_arrays(const Emit *e)
{
    return e->p->n_states + e->n_made;
}

/* Returns the attributes that put an array into a section.  Its alignment makes sure that the array
 * needs no more room there than was counted. */
static const char *section_mark(const Emit *e, int at)
{
    const char *section = e->rom ? e->rom[e->rom_of[at]].section : NULL;
    return section ? arena_printf(e->a, " __attribute__((section(\"%s\"), aligned(%d)))", section,
                                  ARRAY_ALIGN)
                   : "";
}

/* Prints an array.  C has no empty ones, and gcc 12 warns of loads from an array that is smaller than a
 * vector, even of those in loops that do not run. */
static void put_array(Emit *e, Text *t, int at)
{
    enum { FOR_NONE = 16 };
    const State *s = array_at(e, at);
    const uint8_t *data = array_data(e, at);
    int64_t n = type_numel(s->type), size = (int64_t)etc_dtype_size((int)s->type.dtype);
    put_array_title(t, s);
    put(t, "static const %s %s[%" PRId64 "]%s%s = {", c_type(s->type.dtype), array_name(e, s),
        n ? n : FOR_NONE, s->index < 0 ? " __attribute__((aligned(16)))" : unused_mark(s),
        section_mark(e, at));
    size_t line = 0; /* where the line starts */
    for (int64_t i = 0; i < n; i++) {
        bool is_new = !i || t->n - line > 82;
        put_n(t, is_new ? "\n    " : " ", is_new ? 5 : 1);
        line = is_new ? t->n : line;
        put_item(t, s->type.dtype, data + i * size);
        put_n(t, ",", 1);
    }
    put(t, n ? "\n};\n\n" : "0};\n\n");
}

/* -- blob ------------------------------------------------------------------------------------ */

/* Prints the assembler file that includes the blob.  .incbin searches the folder in which the
 * assembler runs, but not that of the source, so the path comes from __FILE__.  The assembler does
 * not join strings, but it inserts the argument of a macro into a string. */
static void put_assembly(Emit *e, Text *t)
{
    put(t, "/* SPDX-License-Identifier: 0BSD */\n"
        "/* Includes the constants of %s.c from the file %s_WEIGHTS_BIN or, if that is not defined,\n"
        " * from the file with the name of this one and .bin appended. */\n"
        "#ifdef %s_WEIGHTS_BIN\n"
        "    .macro %s_weights_bytes file\n"
        "    .incbin %s_WEIGHTS_BIN\n"
        "    .endm\n"
        "#else\n"
        "    .macro %s_weights_bytes file\n"
        "    .incbin \"\\file\\().bin\"\n"
        "    .endm\n"
        "#endif\n\n", e->file, e->upper, e->upper, e->name, e->upper, e->name);
    put(t, "#if defined(__APPLE__)\n"
        "    .section __TEXT,__const\n"
        "    .p2align 6\n"
        "    .private_extern _%s_weights\n"
        "    .globl _%s_weights\n"
        "_%s_weights:\n"
        "    %s_weights_bytes __FILE__\n"
        "#else\n"
        "    .section .rodata,\"a\"\n"
        "    .p2align 6\n"
        "    .globl %s_weights\n"
        "    .hidden %s_weights\n"
        "    .type %s_weights, %%object\n"
        "%s_weights:\n"
        "    %s_weights_bytes __FILE__\n"
        "    .size %s_weights, . - %s_weights\n"
        "    .section .note.GNU-stack,\"\",%%progbits\n"
        "#endif\n",
        e->name, e->name, e->name, e->name, e->name, e->name, e->name, e->name, e->name, e->name,
        e->name);
}

static OutPiece piece_of(Emit *e, int i, int64_t n, int64_t zeros)
{
    const RowBlocks *b = blocks_at(e, i);
    if (b)
        return (OutPiece){.data = b, .n = n, .zeros = zeros, .make = blocks_make};
    return (OutPiece){.data = state_data(e, array_at(e, i)), .n = n, .zeros = zeros};
}

static void put_blob(Emit *e, Text *t, CFiles *out)
{
    Text assembly = {.a = e->a};
    int64_t at = 0;
    put_assembly(e, &assembly);
    c_file(e->a, out, arena_printf(e->a, "%s_weights.S", e->part), &assembly);
    c_file(e->a, out, arena_printf(e->a, "%s_weights.S.bin", e->part), NULL);
    put(t, "/* %s%s_weights.S holds the constants, each 64-byte aligned. */\n"
        "extern const uint8_t %s_weights[] __attribute__((visibility(\"hidden\")));\n\n",
        e->file, e->part, e->name);
    for (int i = 0; i < n_arrays(e); i++) {
        const State *s = array_at(e, i);
        if (!s)
            continue;
        assert(at % BLOB_ALIGN == 0);
        int64_t n = state_bytes(s), end = round_up(at + n, BLOB_ALIGN);
        c_file_piece(e->a, out, out->n - 1, piece_of(e, i, n, end - at - n));
        put_array_title(t, s);
        put(t, "static const %s *const %s%s =\n    (const %s *)(const void *)(%s_weights + %" PRId64
            ");\n\n", c_type(s->type.dtype), array_name(e, s), unused_mark(s), c_type(s->type.dtype),
            e->name, at);
        at = end;
    }
}

int64_t constant_bytes(const Emit *e)
{
    int64_t n = 0;
    for (int i = 0; i < n_arrays(e); i++) {
        const State *s = array_at(e, i);
        n += s ? state_bytes(s) : 0;
    }
    return n;
}

/* -- banks of constants ------------------------------------------------------------------------ */

typedef struct Hot {
    double reads; /* the reads per byte */
    int64_t bytes;
    int array;
} Hot;

static int hottest_first(const void *a, const void *b)
{
    const Hot *x = a, *y = b;
    if (x->reads != y->reads)
        return x->reads < y->reads ? 1 : -1;
    return x->array - y->array;
}

static int hot_arrays(const Emit *e, Hot *hot)
{
    int n = 0;
    for (int i = 0; i < n_arrays(e); i++) {
        const State *s = array_at(e, i);
        if (!s)
            continue;
        int64_t reads = i < e->p->n_states ? e->reads[i] : e->made[i - e->p->n_states].reads;
        int64_t bytes = state_bytes(s);
        double each = bytes ? (double)reads / (double)bytes : 0;
        hot[n++] = (Hot){each, round_up(bytes, ARRAY_ALIGN), i};
    }
    qsort(hot, (size_t)n, sizeof *hot, hottest_first);
    return n;
}

static void open_banks(Emit *e)
{
    const MemoryBanks *rom = &e->p->session->rom;
    e->rom_of = NEW(e->a, int, n_arrays(e) + 1);
    e->rom = NEW(e->a, CBank, rom->n);
    for (int k = 0; k < rom->n; k++)
        e->rom[k] = (CBank){.name = rom->item[k].name, .section = rom->item[k].section,
                            .is_const = true, .size = rom->item[k].bytes};
}

/* Puts each array into the first bank that has room, or else into the last.  Arrays with the most
 * reads per byte come first. */
static void fill_banks(Emit *e)
{
    const int last = e->p->session->rom.n - 1;
    Hot *hot = NEW(e->a, Hot, n_arrays(e) + 1);
    int n = hot_arrays(e, hot);
    open_banks(e);
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < last && e->rom[k].bytes + hot[i].bytes > e->rom[k].size)
            k++;
        CBank *b = &e->rom[k];
        const State *s = array_at(e, hot[i].array);
        const char *text = arena_printf(e->a, "constant '%s', %" PRId64 " bytes",
                                        s->fqn && *s->fqn ? s->fqn : array_name(e, s),
                                        hot[i].bytes);
        e->rom_of[hot[i].array] = k;
        b->bytes += hot[i].bytes;
        if (b->bytes > b->size)
            PUSH(e->a, b->missed, b->n_missed, text);
    }
}

bool emit_constants(Emit *e, Text *t, CFiles *out)
{
    int64_t bytes = constant_bytes(e);
    const bool has_banks = e->p->session->rom.n > 0;
    bool as_arrays = e->o->weights == WEIGHTS_ARRAY || has_banks ||
                     (e->o->weights == WEIGHTS_AUTO && bytes < ARRAY_LIMIT);
    if (!have_data(e))
        return false;
    if (has_banks)
        fill_banks(e);
    if (!as_arrays && bytes) {
        put_blob(e, t, out);
        return true;
    }
    for (int i = 0; i < n_arrays(e); i++)
        if (array_at(e, i))
            put_array(e, t, i);
    return true;
}
