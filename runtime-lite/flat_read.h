/* flat_read.h -- checked FlatBuffers reader.  One walk verifies a buffer against a schema, which is
 * given as tables.  After that the accessors below are safe for everything that the walk has
 * reached.
 *
 * A position is a byte offset from the start of the buffer.  0 means "absent", because byte 0
 * belongs to the root offset.  The host is little-endian, as the format is. */
#ifndef ETC_FLAT_READ_H
#define ETC_FLAT_READ_H

#include <stddef.h>
#include <stdint.h>

/* -- schema ------------------------------------------------------------------------------ */

enum { ETC_FLAT_MAX_DEPTH = 64, ETC_FLAT_MAX_TABLES = 1000000 };

typedef enum EtcFlatKind {
    ETC_FLAT_SCALAR,  /* size bytes, inline */
    ETC_FLAT_STRING,  /* NUL-terminated */
    ETC_FLAT_SCALARS, /* vector, size bytes each */
    ETC_FLAT_TABLE,   /* of schema row `table` */
    ETC_FLAT_TABLES,  /* vector of those */
    ETC_FLAT_UNION    /* the slot before is its type, 1 .. n; type t is schema row table + t - 1 */
} EtcFlatKind;

typedef struct EtcFlatSlot {
    uint8_t kind, size, table, n;
} EtcFlatSlot;

typedef struct EtcFlatTable { /* a row of a schema; slots past n_slots are ignored */
    const EtcFlatSlot *slot;
    uint8_t n_slots;
} EtcFlatTable;

/* clang-format off */
#define ETC_SLOT_SCALAR(bytes) {ETC_FLAT_SCALAR, (bytes), 0, 0}
#define ETC_SLOT_STRING {ETC_FLAT_STRING, 1, 0, 0}
#define ETC_SLOT_SCALARS(bytes) {ETC_FLAT_SCALARS, (bytes), 0, 0}
#define ETC_SLOT_TABLE(row) {ETC_FLAT_TABLE, 4, (row), 0}
#define ETC_SLOT_TABLES(row) {ETC_FLAT_TABLES, 4, (row), 0}
#define ETC_SLOT_MEMBER(row, members) {ETC_FLAT_UNION, 4, (row), (members)} /* behind its type */
#define ETC_SLOT_UNION(row, members) ETC_SLOT_SCALAR(1), ETC_SLOT_MEMBER(row, members)
/* clang-format on */

/* -- verify ------------------------------------------------------------------------------ */

typedef struct EtcFlat {
    const uint8_t *data; /* aligned to the largest scalar of the schema */
    uint32_t size;       /* below 2^31 */
} EtcFlat;

/* Walks everything that the schema describes, from the table at `root`, which has schema row 0.
 * Checks bounds, alignment, vtables, the NUL of strings, lengths of vectors, union types, depth
 * and the number of tables (a shared table counts once per reference).  A union with a type must
 * have a value, unless its table has no slots.  Returns NULL, or a constant text that says what
 * is wrong. */
const char *etc_flat_verify(const EtcFlat *f, const EtcFlatTable *schema, uint32_t root);

/* -- read: only after etc_flat_verify accepted ------------------------------------------- */

typedef struct EtcFlatVec {
    const uint8_t *item; /* NULL: the vector is absent; never so for an empty one */
    uint32_t n;
} EtcFlatVec;

uint32_t etc_flat_root(const EtcFlat *f);
int etc_flat_has(const EtcFlat *f, uint32_t table, int slot); /* the slot is there */
uint64_t etc_flat_scalar(const EtcFlat *f, uint32_t table, int slot, size_t size); /* absent: 0 */
uint8_t etc_flat_u8(const EtcFlat *f, uint32_t table, int slot);
uint32_t etc_flat_u32(const EtcFlat *f, uint32_t table, int slot);
int32_t etc_flat_i32(const EtcFlat *f, uint32_t table, int slot);
uint64_t etc_flat_u64(const EtcFlat *f, uint32_t table, int slot);
uint32_t etc_flat_table(const EtcFlat *f, uint32_t table, int slot); /* also a union's value */
EtcFlatVec etc_flat_vec(const EtcFlat *f, uint32_t table, int slot);

/* Strings end with a NUL after their n bytes, which may contain further NULs. */
const char *etc_flat_string(const EtcFlat *f, uint32_t table, int slot, uint32_t *n);

/* Returns item i < v.n. */
uint32_t etc_flat_item_table(const EtcFlat *f, EtcFlatVec v, uint32_t i);
int32_t etc_flat_item_i32(EtcFlatVec v, uint32_t i);
int64_t etc_flat_item_i64(EtcFlatVec v, uint32_t i);

#endif
