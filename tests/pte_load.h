/* pte_load.h -- puts a method into memory of exactly its size, so that a sanitizer sees an access
 * one byte past it; shared by tests/unit and tests/fuzz. */
#ifndef TESTS_PTE_LOAD_H
#define TESTS_PTE_LOAD_H

#include <stdlib.h>
#include <string.h>
#include "runtime-lite/etc_rt.h"

enum { LOADED_POOLS = 16, LOADED_INPUTS = 64, LOADED_MOST = 64 << 20, READ_BEHIND = 16 };

typedef struct Loaded {
    uint8_t *file; /* 16-byte aligned; owned */
    EtcProgram program;
    EtcMemory memory;
    void *tables, *scratch, *pool[LOADED_POOLS], *input[LOADED_INPUTS];
    EtcMethod *method;
    EtcError e;
    size_t most; /* bytes: limit on all memory but the file, and on each input */
    int behind;  /* bytes behind an input that delegates may read */
} Loaded;

/* Filled with noise: init must not count on zeros.  NULL for no bytes. */
#ifndef LOADED_MEMORY /* a target may bring its own two functions */
static inline void *loaded_memory(size_t align, size_t n)
{
    void *p = NULL;
    if (n && !posix_memalign(&p, align, n))
        memset(p, 0xA5, n);
    return p;
}

static inline void loaded_free(void *p)
{
    free(p);
}
#endif

/* Opens, measures and initialises a method; more than `most` bytes are refused as ETC_NO_MEMORY. */
static inline EtcStatus loaded_start_with(Loaded *l, uint8_t *file, size_t n, int32_t method,
                                          const EtcDelegate *list, int32_t n_list, size_t most)
{
    memset(l, 0, sizeof *l);
    l->file = file;
    l->e.index = -1;
    l->most = most;
    l->behind = n_list ? READ_BEHIND : 0;
    EtcStatus s = etc_program_open(&l->program, file, n, &l->e);
    if (s)
        return s;
    etc_program_offer(&l->program, list, n_list);
    s = etc_program_memory(&l->program, method, &l->memory, &l->e);
    if (s)
        return s;
    for (int32_t i = 0; i <= l->memory.n_pools; i++) {
        size_t bytes = i ? l->memory.pool_bytes[i - 1] : l->memory.table_bytes;
        if (bytes > most)
            return ETC_NO_MEMORY;
        most -= bytes;
    }
    l->tables = loaded_memory(16, l->memory.table_bytes);
    l->scratch = loaded_memory(64, l->memory.scratch_bytes);
    for (int32_t i = 0; i < l->memory.n_pools; i++)
        l->pool[i] = loaded_memory(64, l->memory.pool_bytes[i]);
    return etc_method_init(&l->program, method, l->tables, l->pool, l->scratch, &l->method, &l->e);
}

static inline EtcStatus loaded_start(Loaded *l, uint8_t *file, size_t n, int32_t method)
{
    return loaded_start_with(l, file, n, method, NULL, 0, LOADED_MOST);
}

static inline void loaded_stop(Loaded *l)
{
    etc_method_free(l->method);
    for (int i = 0; i < LOADED_POOLS; i++)
        loaded_free(l->pool[i]);
    for (int i = 0; i < LOADED_INPUTS; i++)
        loaded_free(l->input[i]);
    loaded_free(l->tables);
    loaded_free(l->scratch);
    loaded_free(l->file);
}

/* A byte of a random number: any for floats, 0 or 1 for bools; integers are mostly below 4, so that
 * as indices they are often in range. */
static inline uint8_t loaded_byte(EtcDtype dtype, size_t i, uint32_t random)
{
    int is_float = dtype == ETC_F32 || dtype == ETC_F64 || dtype == ETC_F16 || dtype == ETC_BF16;
    if (dtype == ETC_BOOL)
        return (uint8_t)(random >> 24 & 1);
    if (is_float || random >> 28 == 0)
        return (uint8_t)(random >> 16);
    return (uint8_t)(i % etc_dtype_size((int)dtype) ? 0 : random >> 16 & 3);
}

/* Fills a tensor with zeros where the seed is 0, else with random numbers. */
static inline void loaded_fill(const EtcTensor *t, uint32_t seed)
{
    size_t n = (size_t)etc_numel(t) * etc_dtype_size((int)t->dtype);
    memset(t->data, 0, n);
    for (size_t i = 0; seed && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((uint8_t *)t->data)[i] = loaded_byte(t->dtype, i, seed);
    }
}

/* The sizes of an input in a run: where they are open, those that the file shows, half of them, or
 * one. */
typedef enum LoadedSizes { SIZES_SHOWN, SIZES_HALF, SIZES_ONE } LoadedSizes;

static inline EtcStatus loaded_set_tensor(Loaded *l, int32_t i, LoadedSizes sizes, uint32_t seed)
{
    EtcTensor t = *etc_method_input(l->method, i)->as.tensor;
    int32_t dim[ETC_MAX_RANK];
    for (int32_t k = 0; k < t.rank; k++) {
        int32_t shown = t.dim[k];
        dim[k] = t.is_static || sizes == SIZES_SHOWN ? shown
                 : sizes == SIZES_HALF               ? shown / 2
                                                     : shown > 0;
    }
    t.dim = dim;
    t.capacity = etc_numel(&t) * (int64_t)etc_dtype_size((int)t.dtype);
    if (t.capacity < 0 || (size_t)t.capacity > l->most)
        return ETC_NO_MEMORY;
    size_t room = (size_t)t.capacity + (size_t)(l->behind ? l->behind : !t.capacity);
    loaded_free(l->input[i]);
    t.data = l->input[i] = loaded_memory(64, room);
    if (t.data)
        loaded_fill(&t, seed);
    EtcValue given = {.tag = ETC_TENSOR, .as.tensor = &t};
    return etc_method_set_input(l->method, i, &given, &l->e);
}

/* Inputs that are no tensors get what they are; then one run. */
static inline EtcStatus loaded_run_at(Loaded *l, LoadedSizes sizes, uint32_t seed)
{
    int32_t n = etc_method_n_inputs(l->method);
    for (int32_t i = 0; i < n && i < LOADED_INPUTS; i++) {
        const EtcValue *v = etc_method_input(l->method, i);
        uint32_t own = seed ? seed + (uint32_t)i : 0;
        EtcStatus s = v->tag == ETC_TENSOR ? loaded_set_tensor(l, i, sizes, own)
                                           : etc_method_set_input(l->method, i, v, &l->e);
        if (s && v->tag < ETC_LIST_BOOL)
            return s;
    }
    return etc_method_run(l->method, &l->e);
}

static inline EtcStatus loaded_run_on_zeros(Loaded *l)
{
    return loaded_run_at(l, SIZES_SHOWN, 0);
}

#endif
