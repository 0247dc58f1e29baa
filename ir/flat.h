/* flat.h -- writes FlatBuffers; the reader is runtime-lite/flat_read.h. */
#ifndef ETC_IR_FLAT_H
#define ETC_IR_FLAT_H

#include "ir/arena.h"

/* Builds a FlatBuffer from its end to its start, as the format's own builders do.  All offsets
 * count from the end.  Equal vtables are stored once.  Source: the FlatBuffers internals
 * document. */
typedef struct Flat Flat;
typedef uint32_t FlatRef; /* 0: absent */

Flat *flat_new(Arena *a);
FlatRef flat_string(Flat *f, const char *s);
FlatRef flat_bytes(Flat *f, const void *data, size_t n, size_t align);
FlatRef flat_vector(Flat *f, const void *items, size_t n, size_t item_size);
FlatRef flat_refs(Flat *f, const FlatRef *items, size_t n);
void flat_begin(Flat *f, int n_slots);
void flat_u8(Flat *f, int slot, uint8_t v);
void flat_u16(Flat *f, int slot, uint16_t v);
void flat_i32(Flat *f, int slot, int32_t v, int32_t absent); /* `absent` is the schema's default */
void flat_u32(Flat *f, int slot, uint32_t v);
void flat_u64(Flat *f, int slot, uint64_t v);
void flat_f32(Flat *f, int slot, float v);
void flat_f64(Flat *f, int slot, double v);
void flat_ref(Flat *f, int slot, FlatRef v); /* a v of 0 leaves the field out */
FlatRef flat_end(Flat *f);
/* Returns the finished bytes, *n of them, in the arena.  `ident` has 4 characters. */
const uint8_t *flat_finish(Flat *f, FlatRef root, const char *ident, size_t *n);

#endif
