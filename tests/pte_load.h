/* pte_load.h -- a method in memory of its exact size, so that a sanitizer sees one byte past it;
 * shared by tests/unit/test_runtime.c and tests/fuzz/fuzz_pte.c. */
#ifndef TESTS_PTE_LOAD_H
#define TESTS_PTE_LOAD_H

#include <stdlib.h>
#include <string.h>
#include "runtime-lite/etc_rt.h"

enum { LOADED_POOLS = 16, LOADED_INPUTS = 64, LOADED_MOST = 64 << 20 };

typedef struct Loaded {
    uint8_t *file; /* 16-byte aligned; owned */
    EtcProgram program;
    EtcMemory memory;
    void *tables, *scratch, *pool[LOADED_POOLS], *input[LOADED_INPUTS];
    EtcMethod *method;
    EtcError e;
} Loaded;

/* Filled with noise: init must not count on zeros.  NULL for no bytes. */
static inline void *loaded_memory(size_t align, size_t n)
{
    void *p = NULL;
    if (n && !posix_memalign(&p, align, n))
        memset(p, 0xA5, n);
    return p;
}

/* Opens, measures and initialises a method; more than 64 MB is refused as ETC_NO_MEMORY. */
static inline EtcStatus loaded_start(Loaded *l, uint8_t *file, size_t n, int32_t method)
{
    memset(l, 0, sizeof *l);
    l->file = file;
    l->e.index = -1;
    EtcStatus s = etc_program_open(&l->program, file, n, &l->e);
    if (!s)
        s = etc_program_memory(&l->program, method, &l->memory, &l->e);
    if (s)
        return s;
    size_t left = LOADED_MOST;
    for (int32_t i = 0; i <= l->memory.n_pools; i++) {
        size_t bytes = i ? l->memory.pool_bytes[i - 1] : l->memory.table_bytes;
        if (bytes > left)
            return ETC_NO_MEMORY;
        left -= bytes;
    }
    l->tables = loaded_memory(16, l->memory.table_bytes);
    l->scratch = loaded_memory(64, l->memory.scratch_bytes);
    for (int32_t i = 0; i < l->memory.n_pools; i++)
        l->pool[i] = loaded_memory(64, l->memory.pool_bytes[i]);
    return etc_method_init(&l->program, method, l->tables, l->pool, l->scratch, &l->method, &l->e);
}

static inline void loaded_stop(Loaded *l)
{
    for (int i = 0; i < LOADED_POOLS; i++)
        free(l->pool[i]);
    for (int i = 0; i < LOADED_INPUTS; i++)
        free(l->input[i]);
    free(l->tables);
    free(l->scratch);
    free(l->file);
}

/* Tensor inputs get zeros at the sizes they show, others what they are; then one run. */
static inline EtcStatus loaded_run_on_zeros(Loaded *l)
{
    int32_t n = etc_method_n_inputs(l->method);
    for (int32_t i = 0; i < n && i < LOADED_INPUTS; i++) {
        const EtcValue *v = etc_method_input(l->method, i);
        if (v->tag == ETC_TENSOR) {
            EtcTensor t = *v->as.tensor;
            t.capacity = etc_numel(&t) * (int64_t)etc_dtype_size((int)t.dtype);
            if (t.capacity > LOADED_MOST)
                return ETC_NO_MEMORY;
            free(l->input[i]);
            t.data = l->input[i] = calloc(1, t.capacity ? (size_t)t.capacity : 1);
            EtcValue given = {.tag = ETC_TENSOR, .as.tensor = &t};
            EtcStatus s = etc_method_set_input(l->method, i, &given, &l->e);
            if (s)
                return s;
        } else {
            EtcStatus s = etc_method_set_input(l->method, i, v, &l->e);
            if (s && v->tag < ETC_LIST_BOOL)
                return s;
        }
    }
    return etc_method_run(l->method, &l->e);
}

#endif
