/* arena.h -- memory that is freed all at once, checked arithmetic, and a store of byte strings that
 * keeps equal ones once. */
#ifndef ETC_IR_ARENA_H
#define ETC_IR_ARENA_H

#include "runtime-lite/etc_rt.h"
#include <stdarg.h>
#include <stdbool.h>

/* -- arena ------------------------------------------------------------------------------- */

typedef struct Arena Arena;

Arena *arena_new(void);
/* Makes an arena in the free rest of the host's newest block.  It must be freed before the host. */
Arena *arena_within(Arena *host);
/* Returns n * size zeroed bytes.  All allocators here end the process if there is no memory; they
 * never return NULL. */
void *arena_alloc(Arena *a, size_t n, size_t size);
/* Returns n zeroed bytes in pages of their own, which take memory when they are first touched. */
void *arena_pages(Arena *a, size_t n);
/* Returns n bytes that are aligned to 64 and not zeroed: the caller writes them at once. */
void *arena_bytes(Arena *a, size_t n);
/* Returns `array`, or a larger copy of it, such that it has room for element n. */
void *arena_grow(Arena *a, void *array, int n, size_t size);
char *arena_str(Arena *a, const char *s, size_t len);
char *arena_join(Arena *a, const char *s, const char *t);
char *arena_numbered(Arena *a, const char *stem, const char *mark, int number); /* number >= 0 */
char *arena_printf(Arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));
char *arena_print(Arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
void arena_reset(Arena *a);
/* Empties the arena, but keeps the blocks that were used since the last rewind, for a caller that
 * fills it again with about as much. */
void arena_rewind(Arena *a);
void arena_free(Arena *a);
/* Returns 2 random words, the key of hash tables.  All arenas within one host have the same. */
const uint64_t *arena_secret(Arena *a);
/* Hints to the system that all n bytes are about to be written. */
void memory_will_change(void *data, size_t n);
#define NEW(arena, T, n) ((T *)arena_alloc((arena), (size_t)(n), sizeof(T)))
#define PUSH(arena, array, n, item) \
    ((array) = arena_grow((arena), (array), (n), sizeof *(array)), (array)[(n)++] = (item))

/* -- checked arithmetic: false on overflow ------------------------------------------------- */

static inline bool add_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool mul_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

int64_t round_up(int64_t n, int64_t align); /* n <= INT64_MAX - align */

/* -- byte strings: byte_store.c ----------------------------------------------------------- */

/* Computes bytes `from` .. `from + n - 1` of the string that `data` describes, and writes them to
 * `to`.  It is called while a file is written, so that the whole string is never in memory.  `from`
 * and `n` are multiples of 4, except that the last call may end anywhere. */
typedef void MakeBytes(const void *data, int64_t from, int64_t n, uint8_t *to);

typedef struct StoredBytes {
    const uint8_t *data;
    int64_t n, offset; /* in bytes */
    MakeBytes *make;   /* not NULL: the bytes are made from `data` */
} StoredBytes;

/* A sequence of byte strings, each at a multiple of `align`.  Equal strings are stored once. */
typedef struct ByteStore {
    int64_t align, size;
    StoredBytes *item;
    int n;
    struct Table *known[2]; /* index of an item + 1, by a part of its bytes and by all of them */
} ByteStore;

/* Returns the index of these bytes in the store.  `data` is not copied and must outlive the store. */
int store_add(ByteStore *b, Arena *a, const uint8_t *data, int64_t n);
/* The same for n bytes that are made from `data`.  They are not compared with others. */
int store_add_made(ByteStore *b, Arena *a, const void *data, int64_t n, MakeBytes *make);

/* -- numbers of 8 and 16 bits: half.c ---------------------------------------------------- */

uint16_t half_of(float v); /* f16 */
double half_value(uint16_t h);
uint16_t bfloat_of(float v);
double bfloat_value(uint16_t h);
double f8_value(EtcDtype t, uint8_t bits);

#endif
