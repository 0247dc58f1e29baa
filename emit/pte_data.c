/* pte_data.c -- writes the parts of a .pte around its FlatBuffer: segments and extended header.
 *
 * Segment 0 has the constants.  Then there is one segment per delegate blob and one per named
 * weight of the delegates.  The last segment has the initial values of mutable states.  A file
 * without segment bytes has no header and is the bare FlatBuffer. */
#include "emit/pte_internal.h"
#include "ir/session.h"
#include <string.h>

enum { SEGMENT_ALIGN = 128, HEADER = 32, IDENT_END = 8, MAX_TABLES = 1000000 };

bool pte_has_bytes(PteFile *e, const State *s, int64_t n)
{
    if (s->data && n <= s->n_bytes)
        return true;
    Loc loc = {.file = e->program->name, .node = s->name};
    e->failed = true;
    return diag_error(e->diag, loc, "the bytes of \"%s\" in \"%s\" are not available", s->fqn,
                      s->file);
}

/* -- the program table ------------------------------------------------------------------- */

static FlatRef data_segment(PteFile *e, int64_t offset, int64_t size)
{
    flat_begin(e->flat, N_SEGMENT_SLOTS);
    flat_u64(e->flat, SEGMENT_OFFSET, (uint64_t)offset);
    flat_u64(e->flat, SEGMENT_SIZE, (uint64_t)size);
    return pte_end(e);
}

/* Returns the table of offsets in a segment.  Entry 0 is reserved: index 0 means "no data". */
static FlatRef subsegments(PteFile *e, const ByteStore *b, int segment)
{
    uint64_t *offset = NEW(e->arena, uint64_t, b->n + 1);
    for (int i = 0; i < b->n; i++)
        offset[i + 1] = (uint64_t)b->item[i].offset;
    FlatRef offsets = shared_vector(e, offset, (size_t)b->n + 1, 8);
    flat_begin(e->flat, N_SUBSEGMENTS_SLOTS);
    flat_u32(e->flat, SUBSEGMENTS_SEGMENT, (uint32_t)segment);
    flat_ref(e->flat, SUBSEGMENTS_OFFSETS, offsets);
    return pte_end(e);
}

/* Returns blob i, or a named weight after the blobs.  Each is a segment. */
static const StoredBytes *segment_item(const PteFile *e, int i)
{
    assert(i >= 0 && i < e->blobs.n + e->named.n);
    return i < e->blobs.n ? &e->blobs.item[i] : &e->named.item[i - e->blobs.n];
}

/* Adds a row of named data; `item` is its index in e->named. */
static FlatRef named_row(PteFile *e, const char *key, int item)
{
    int segment = 1 + e->blobs.n + item;
    FlatRef name = shared_string(e, key);
    flat_begin(e->flat, N_NAMED_SLOTS);
    flat_ref(e->flat, NAMED_KEY, name);
    flat_u32(e->flat, NAMED_SEGMENT, (uint32_t)segment);
    return pte_end(e);
}

static int named_state(PteFile *e, const State *s)
{
    const int64_t n = type_bytes(s->type);
    return s->make ? store_add_made(&e->named, e->arena, s->source, n, s->make)
                   : store_add(&e->named, e->arena, s->data, n);
}

/* Makes the table of named data: the weights of delegates, the name of a library that computed
 * products while ranges were observed, and the data that `etc refit` needs.  The format has no
 * other place for these, and a runtime reads only the data that it is asked for. */
static FlatRef named_data(PteFile *e)
{
    const Program *p = e->program;
    FlatRef *row = NEW(e->arena, FlatRef, p->n_states + 3);
    int n = 0;
    for (int i = 0; i < p->n_states; i++) {
        const State *s = p->state[i];
        if (s->kind == ST_NAMED)
            row[n++] = named_row(e, s->fqn, named_state(e, s));
    }
    if (p->session->fast_library)
        row[n++] = named_row(e, "etc.fast_calibrate",
                             store_add(&e->named, e->arena,
                                      (const uint8_t *)p->session->fast_library,
                                      (int64_t)strlen(p->session->fast_library)));
    if (p->session->record)
        row[n++] = named_row(e, PTE_REFIT_KEY, store_add(&e->named, e->arena, p->session->record,
                                                        p->session->n_record));
    return n ? flat_refs(e->flat, row, (size_t)n) : 0;
}

/* Returns the table of segments.  Sets at[i] to the first byte of segment i, counted from the
 * base. */
static FlatRef segment_table(PteFile *e, int64_t *at)
{
    int n = 0;
    FlatRef *ref = NEW(e->arena, FlatRef, e->blobs.n + e->named.n + 2);
    int64_t end = e->constants.size;
    ref[n++] = data_segment(e, 0, end);
    for (int i = 0; i < e->blobs.n + e->named.n; i++) {
        const StoredBytes *b = segment_item(e, i);
        at[n] = round_up(end, SEGMENT_ALIGN);
        end = at[n] + b->n;
        ref[n] = data_segment(e, at[n], b->n);
        n++;
    }
    if (e->mutables.n) {
        at[n] = round_up(end, SEGMENT_ALIGN);
        end = at[n] + e->mutables.size;
        ref[n] = data_segment(e, at[n], e->mutables.size);
        n++;
    }
    assert(n < e->program->n_states + e->blobs.n + 4); /* pte_finish made room */
    at[n] = end;
    return flat_refs(e->flat, ref, (size_t)n);
}

static FlatRef program_table(PteFile *e, const FlatRef *plan, int n_plans, int64_t *at)
{
    Flat *f = e->flat;
    FlatRef plans = flat_refs(f, plan, (size_t)n_plans), none = flat_refs(f, NULL, 0);
    FlatRef named = named_data(e);
    FlatRef segments = segment_table(e, at), constants = subsegments(e, &e->constants, 0);
    FlatRef mutables = 0;
    if (e->mutables.n) {
        FlatRef one = subsegments(e, &e->mutables, 1 + e->blobs.n + e->named.n);
        mutables = flat_refs(f, &one, 1);
    }
    flat_begin(f, N_PROGRAM_SLOTS);
    flat_ref(f, PROGRAM_PLANS, plans);
    flat_ref(f, PROGRAM_CONSTANT_BUFFER, none);
    flat_ref(f, PROGRAM_INLINE_DELEGATES, none);
    flat_ref(f, PROGRAM_SEGMENTS, segments);
    flat_ref(f, PROGRAM_CONSTANTS, constants);
    flat_ref(f, PROGRAM_MUTABLES, mutables);
    flat_ref(f, PROGRAM_NAMED, named);
    return pte_end(e);
}

/* -- the file ---------------------------------------------------------------------------- */

typedef struct Pieces {
    OutFile *out;
    Arena *arena;
    int64_t end;
} Pieces;

static void made_piece(Pieces *p, int64_t at, const void *data, int64_t n, MakeBytes *make)
{
    OutPiece one = {.data = data, .n = n, .make = make};
    assert(at >= p->end && n >= 0);
    if (p->out->n)
        p->out->piece[p->out->n - 1].zeros = at - p->end;
    PUSH(p->arena, p->out->piece, p->out->n, one);
    p->end = at + n;
}

static void piece(Pieces *p, int64_t at, const void *data, int64_t n)
{
    made_piece(p, at, data, n, NULL);
}

static void item_piece(Pieces *p, const StoredBytes *i, int64_t at)
{
    made_piece(p, at, i->data, i->n, i->make);
}

static void store_pieces(Pieces *p, const ByteStore *b, int64_t base)
{
    for (int i = 0; i < b->n; i++)
        item_piece(p, &b->item[i], base + b->item[i].offset);
}

static void put_le(uint8_t *to, uint64_t v, int n)
{
    assert(n <= (int)sizeof v);
    for (int i = 0; i < n; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get_le32(const uint8_t *b)
{
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Returns the first bytes of the file with the header, which follows the identifier.  Of the
 * FlatBuffer's offsets only that of the root crosses this point, so only it changes. */
static const uint8_t *header(PteFile *e, const uint8_t *flat, int64_t flat_bytes, int64_t base,
                             int64_t segment_bytes)
{
    uint8_t *h = NEW(e->arena, uint8_t, IDENT_END + HEADER);
    put_le(h, get_le32(flat) + HEADER, 4);
    memcpy(h + 4, flat + 4, 4);
    memcpy(h + 8, "eh00", 4);
    put_le(h + 12, HEADER, 4);
    put_le(h + 16, (uint64_t)flat_bytes, 8);
    put_le(h + 24, (uint64_t)base, 8);
    put_le(h + 32, (uint64_t)segment_bytes, 8);
    return h;
}

static void assemble(PteFile *e, const uint8_t *flat, int64_t n, const int64_t *at, OutFile *out)
{
    Pieces p = {.out = out, .arena = e->arena};
    int last = 1 + e->blobs.n + e->named.n, has_mutables = e->mutables.n > 0;
    int64_t segment_bytes = at[last + has_mutables], flat_bytes = n + HEADER;
    int64_t base = round_up(flat_bytes, SEGMENT_ALIGN);
    if (!segment_bytes) {
        piece(&p, 0, flat, n);
        e->stats->flat_bytes = n;
    } else {
        piece(&p, 0, header(e, flat, flat_bytes, base, segment_bytes), IDENT_END + HEADER);
        piece(&p, IDENT_END + HEADER, flat + IDENT_END, n - IDENT_END);
        store_pieces(&p, &e->constants, base);
        for (int i = 0; i < e->blobs.n + e->named.n; i++)
            item_piece(&p, segment_item(e, i), base + at[1 + i]);
        store_pieces(&p, &e->mutables, base + at[last]);
        e->stats->flat_bytes = flat_bytes;
    }
    e->stats->file_bytes = p.end;
    e->stats->constant_bytes = e->constants.size;
}

bool pte_finish(PteFile *e, const FlatRef *plan, int n_plans, OutFile *out)
{
    int64_t *at = NEW(e->arena, int64_t, e->program->n_states + e->blobs.n + 4);
    size_t n;
    FlatRef root = program_table(e, plan, n_plans, at);
    const uint8_t *flat = flat_finish(e->flat, root, "ET12", &n);
    Loc loc = {.file = e->program->name};
    if (e->n_tables > MAX_TABLES)
        return diag_unsupported(e->diag, loc,
                                "the .pte would hold %d tables, its runtime accepts %d at most",
                                e->n_tables, MAX_TABLES);
    if (!flat)
        return diag_unsupported(e->diag, loc, "the .pte would need a FlatBuffer over 2 GiB");
    assemble(e, flat, (int64_t)n, at, out);
    return true;
}
