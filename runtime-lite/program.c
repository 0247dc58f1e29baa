/* program.c -- opens a .pte: extended header, FlatBuffer, segments, and data that all methods
 * share.
 *
 * File: u32 root, "ET12", then, when there are segments, "eh00", u32 header bytes, u64 program
 * bytes, u64 segment base, u64 segment bytes (only if the header has 32).  Without that header
 * the FlatBuffer fills the file. */
#include "runtime-lite/internal.h"
#include "runtime-lite/kernels/kernels.h"

#include <string.h>

enum { MIN_FILE = 64, MAX_METHODS = 1024, HEADER_AT = 8 };

/* -- schema ------------------------------------------------------------------------------ */

/* clang-format off */
#define SLOT(id, what) what,
#define TABLE(id) static const EtcFlatSlot id##_slots[] = {PTE_##id##_SLOTS(SLOT)};
#define EMPTY(id)
PTE_TABLES(TABLE, EMPTY)
#undef TABLE
#undef EMPTY

static const EtcFlatTable schema[] = {
#define TABLE(id) {id##_slots, N_##id##_SLOTS},
#define EMPTY(id) {NULL, 0},
    PTE_TABLES(TABLE, EMPTY)
};
/* clang-format on */

/* -- header ------------------------------------------------------------------------------ */

EtcStatus etc_fail_code(EtcError *e, EtcStatus status, int64_t index)
{
    if (e != NULL) {
        e->status = status;
        e->what = "";
        e->name = NULL;
        e->overload = NULL;
        e->index = index;
    }
    return status;
}

EtcStatus etc_fail_text(EtcError *e, EtcStatus status, const char *what, int64_t index)
{
    etc_fail_code(e, status, index);
    if (e != NULL) {
        e->what = what;
    }
    return status;
}

static uint64_t load_u64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Reads the extended header at h.  Returns NULL, or what is wrong. */
static const char *read_header(EtcProgram *p, const uint8_t *h)
{
    uint32_t length;
    memcpy(&length, h + 4, sizeof length);
    uint64_t program = load_u64(h + 8), base = load_u64(h + 16);
    uint64_t size = (length >= 32) ? load_u64(h + 24) : 0;
    if ((length < 24) || (length > MIN_FILE - HEADER_AT)) {
        return ETC_TEXT("extended header of a wrong length");
    }
    if ((program < MIN_FILE) || (program > p->n_bytes)) {
        return ETC_TEXT("extended header: program larger than the file");
    }
    if ((base != 0) && ((base < program) || (base > p->n_bytes))) {
        return ETC_TEXT(
            "extended header: segments start inside the program or past the end of the file");
    }
    if (size > ((base != 0) ? p->n_bytes - base : 0)) {
        return ETC_TEXT("extended header: segments larger than the file");
    }
    p->flat_bytes = (size_t)program;
    p->segment_base = (size_t)base;
    if ((base != 0) && (size > 0)) {
        p->n_bytes = (size_t)(base + size);
    }
    return NULL;
}

static EtcStatus read_head(EtcProgram *p, EtcError *e)
{
    const uint8_t *h = p->file + HEADER_AT;
    const char *what = NULL;
    if (p->n_bytes < MIN_FILE) {
        return etc_fail(e, ETC_BAD_FILE, "file is shorter than 64 bytes", -1);
    }
    if (memcmp(p->file + 4, "ET12", 4) != 0) {
        return etc_fail(e, ETC_BAD_FILE, "not an ExecuTorch program: identifier is not ET12", -1);
    }
    if (memcmp(h, "eh00", 4) == 0) {
        what = read_header(p, h);
    } else if (memcmp(h, "eh", 2) == 0) { /* a vtable that starts so would have 26,725 bytes */
        return etc_fail(e, ETC_UNSUPPORTED, "extended header of another version than eh00", -1);
    }
    if ((what == NULL) && (p->flat_bytes >= INT32_MAX)) {
        what = ETC_TEXT("FlatBuffer of 2 GiB or more");
    }
    return what ? etc_fail(e, ETC_BAD_FILE, what, -1) : ETC_OK;
}

/* -- segments ---------------------------------------------------------------------------- */

EtcFlat etc_program_flat(const EtcProgram *p)
{
    EtcFlat f = {p->file, (uint32_t)p->flat_bytes};
    return f;
}

static EtcFlatVec root_vec(const EtcProgram *p, int slot)
{
    EtcFlat f = etc_program_flat(p);
    return etc_flat_vec(&f, p->root, slot);
}

const uint8_t *etc_program_segment(const EtcProgram *p, uint32_t index, uint64_t *n_bytes)
{
    EtcFlat f = etc_program_flat(p);
    EtcFlatVec segments = root_vec(p, PROGRAM_SEGMENTS);
    if (index >= segments.n) {
        return NULL;
    }
    uint32_t s = etc_flat_item_table(&f, segments, index);
    *n_bytes = etc_flat_u64(&f, s, SEGMENT_SIZE);
    return p->file + p->segment_base + etc_flat_u64(&f, s, SEGMENT_OFFSET);
}

static EtcStatus check_segments(const EtcProgram *p, EtcError *e)
{
    EtcFlat f = etc_program_flat(p);
    EtcFlatVec segments = root_vec(p, PROGRAM_SEGMENTS);
    uint64_t area = p->segment_base ? p->n_bytes - p->segment_base : 0;
    for (uint32_t i = 0; i < segments.n; i++) {
        uint32_t s = etc_flat_item_table(&f, segments, i);
        uint64_t offset = etc_flat_u64(&f, s, SEGMENT_OFFSET), size = etc_flat_u64(&f, s, SEGMENT_SIZE);
        if ((offset > area) || (size > area - offset)) {
            return etc_fail(e, ETC_BAD_FILE, "segment past the end of the file", i);
        }
    }
    return ETC_OK;
}

/* Returns whether a SubsegmentOffsets with more than the reserved entry 0 names an existing
 * segment. */
static int is_subsegments(const EtcProgram *p, uint32_t table)
{
    EtcFlat f = etc_program_flat(p);
    return (table == 0) || (etc_flat_vec(&f, table, SUBSEGMENTS_OFFSETS).n <= 1) ||
           (etc_flat_u32(&f, table, SUBSEGMENTS_SEGMENT) < root_vec(p, PROGRAM_SEGMENTS).n);
}

static EtcStatus check_users(const EtcProgram *p, EtcError *e)
{
    EtcFlat f = etc_program_flat(p);
    EtcFlatVec named = root_vec(p, PROGRAM_NAMED), mutables = root_vec(p, PROGRAM_MUTABLES);
    uint32_t n_segments = root_vec(p, PROGRAM_SEGMENTS).n;
    uint32_t constants = etc_flat_table(&f, p->root, PROGRAM_CONSTANTS);
    if (!is_subsegments(p, constants)) {
        return etc_fail(e, ETC_BAD_FILE, "constants in a segment that does not exist", -1);
    }
    if ((root_vec(p, PROGRAM_CONSTANT_BUFFER).n > 0) && (constants != 0) &&
        (etc_flat_vec(&f, constants, SUBSEGMENTS_OFFSETS).n > 1)) {
        return etc_fail(e, ETC_BAD_FILE, "constants both inline and in a segment", -1);
    }
    for (uint32_t i = 0; i < mutables.n; i++) {
        if (!is_subsegments(p, etc_flat_item_table(&f, mutables, i))) {
            return etc_fail(e, ETC_BAD_FILE, "initial values in a segment that does not exist", i);
        }
    }
    for (uint32_t i = 0; i < named.n; i++) {
        uint32_t t = etc_flat_item_table(&f, named, i);
        if ((etc_flat_vec(&f, t, NAMED_KEY).item == NULL) || (etc_flat_u32(&f, t, NAMED_SEGMENT) >= n_segments)) {
            return etc_fail(e, ETC_BAD_FILE, "named data without a key or its segment", i);
        }
    }
    return ETC_OK;
}

/* Returns entry `index` of a SubsegmentOffsets.  The file does not store where it ends. */
static const uint8_t *subsegment(const EtcProgram *p, uint32_t table, uint32_t index,
                                 uint64_t n_bytes)
{
    EtcFlat f = etc_program_flat(p);
    EtcFlatVec offsets = etc_flat_vec(&f, table, SUBSEGMENTS_OFFSETS);
    uint64_t size = 0;
    const uint8_t *data = etc_program_segment(p, etc_flat_u32(&f, table, SUBSEGMENTS_SEGMENT), &size);
    if ((data == NULL) || (index >= offsets.n)) {
        return NULL;
    }
    uint64_t offset = (uint64_t)etc_flat_item_i64(offsets, index);
    return ((offset <= size) && (n_bytes <= size - offset)) ? data + offset : NULL;
}

const uint8_t *etc_program_constant(const EtcProgram *p, uint32_t index, uint64_t n_bytes)
{
    EtcFlat f = etc_program_flat(p);
    EtcFlatVec buffers = root_vec(p, PROGRAM_CONSTANT_BUFFER);
    uint32_t constants = etc_flat_table(&f, p->root, PROGRAM_CONSTANTS);
    if (index < buffers.n) { /* files without segments have the bytes in the FlatBuffer */
        EtcFlatVec bytes = etc_flat_vec(&f, etc_flat_item_table(&f, buffers, index), BUFFER_BYTES);
        return (n_bytes <= bytes.n) ? bytes.item : NULL;
    }
    return (constants != 0) ? subsegment(p, constants, index, n_bytes) : NULL;
}

const uint8_t *etc_program_initial(const EtcProgram *p, uint32_t index, uint64_t n_bytes)
{
    EtcFlat f = etc_program_flat(p);
    EtcFlatVec mutables = root_vec(p, PROGRAM_MUTABLES); /* only entry 0 is used */
    return (mutables.n > 0) ? subsegment(p, etc_flat_item_table(&f, mutables, 0), index, n_bytes)
                            : NULL;
}

uint32_t etc_program_n_named(const EtcProgram *p)
{
    return root_vec(p, PROGRAM_NAMED).n;
}

EtcNamed etc_program_named(const EtcProgram *p, uint32_t i) /* check_users has accepted row i */
{
    EtcFlat f = etc_program_flat(p);
    uint32_t row = etc_flat_item_table(&f, root_vec(p, PROGRAM_NAMED), i);
    EtcNamed named;
    named.key = etc_flat_string(&f, row, NAMED_KEY, &named.n_key);
    named.data = etc_program_segment(p, etc_flat_u32(&f, row, NAMED_SEGMENT), &named.n_bytes);
    return named;
}

/* -- methods ----------------------------------------------------------------------------- */

void etc_program_zeroed(EtcProgram *p)
{
    p->has_zero_pools = 1;
}

void etc_program_offer(EtcProgram *p, const EtcDelegate *list, int32_t n)
{
    p->delegate = list;
    p->n_delegates = n;
}

void etc_program_kernels(EtcProgram *p, const EtcKernelRow *list, int32_t n)
{
    p->kernel = list;
    p->n_kernels = n;
}

int32_t etc_program_n_methods(const EtcProgram *p)
{
    return (int32_t)root_vec(p, PROGRAM_PLANS).n;
}

uint32_t etc_program_plan(const EtcProgram *p, int32_t method)
{
    EtcFlat f = etc_program_flat(p);
    EtcFlatVec plans = root_vec(p, PROGRAM_PLANS);
    return ((method >= 0) && ((uint32_t)method < plans.n))
               ? etc_flat_item_table(&f, plans, (uint32_t)method)
               : 0;
}

const char *etc_program_method_name(const EtcProgram *p, int32_t method)
{
    EtcFlat f = etc_program_flat(p);
    uint32_t plan = etc_program_plan(p, method);
    return plan ? etc_flat_string(&f, plan, PLAN_NAME, NULL) : NULL;
}

int32_t etc_program_find_method(const EtcProgram *p, const char *name)
{
    for (int32_t i = 0; i < etc_program_n_methods(p); i++) {
        if (etc_compare_text(etc_program_method_name(p, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

static EtcStatus check_methods(const EtcProgram *p, EtcError *e)
{
    int32_t n = etc_program_n_methods(p);
    if ((n < 1) || (n > MAX_METHODS)) {
        return etc_fail(e, ETC_BAD_FILE, "no method, or more than 1024", n);
    }
    for (int32_t i = 0; i < n; i++) {
        if (etc_program_method_name(p, i) == NULL) {
            return etc_fail(e, ETC_BAD_FILE, "method without a name", i);
        }
    }
    for (int32_t i = 0; i < n; i++) {
        if (etc_program_find_method(p, etc_program_method_name(p, i)) != i) {
            return etc_fail(e, ETC_BAD_FILE, "two methods of one name", i);
        }
    }
    return ETC_OK;
}

EtcStatus etc_program_open(EtcProgram *p, const void *file, size_t n_bytes, EtcError *e)
{
    memset(p, 0, sizeof *p);
    if ((file == NULL) || ((uintptr_t)file % 16 != 0)) {
        return etc_fail(e, ETC_NO_MEMORY, "the file does not lie at a multiple of 16 bytes", -1);
    }
    p->file = file;
    p->n_bytes = n_bytes;
    p->flat_bytes = n_bytes;
    EtcStatus status = read_head(p, e);
    if (status != ETC_OK) {
        return status;
    }
    EtcFlat f = etc_program_flat(p);
    p->root = etc_flat_root(&f);
    const char *what = etc_flat_verify(&f, schema, p->root);
    if (what != NULL) {
        return etc_fail(e, ETC_BAD_FILE, what, -1);
    }
    if (etc_flat_u32(&f, p->root, PROGRAM_VERSION) != 0) {
        return etc_fail(e, ETC_UNSUPPORTED, "version of the schema is not 0", -1);
    }
    status = check_segments(p, e);
    status = (status == ETC_OK) ? check_users(p, e) : status;
    return (status == ETC_OK) ? check_methods(p, e) : status;
}
