/* fuzz_xnn_run.c -- libFuzzer target: does what fuzz_pte.c does, but runs parts that are delegated
 * to XNNPACK in the real library.  The mutator also changes the blobs in a file (flat_mutate.h).
 *
 * The library is not built with sanitizers.  Therefore the memory that it gets (pools, inputs, the
 * file) ends at a page that faults.
 *
 * To see that the target finds bugs, build it with -DPLANTED_BUG: a result is then taken to have more
 * memory than the file says, and the library writes past its end.  Each tensor of a call is moved to
 * memory that ends near such a page. */
#define _GNU_SOURCE
#include "runtime-lite/delegates/xnn_graph.h"
#include "runtime-lite/delegates/xnn_host.h"
#include "runtime-lite/delegates/xnnpack.h"
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define LOADED_MEMORY
enum { PAGE = 4096 };

/* A page with the length of the mapping, n bytes up to the end of a page, a page that faults. */
static inline void *loaded_memory(size_t align, size_t n)
{
    size_t bytes = (n + align - 1) / align * align, data = (bytes + PAGE - 1) / PAGE * PAGE;
    size_t all = data + 2 * PAGE;
    if (!n)
        return NULL;
    uint8_t *base = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + PAGE + data, PAGE, PROT_NONE))
        return NULL;
    memcpy(base, &all, sizeof all);
    return memset(base + PAGE + data - bytes, 0xA5, bytes);
}

static inline void loaded_free(void *p)
{
    size_t all;
    if (!p)
        return;
    uint8_t *base = (uint8_t *)p - (uintptr_t)p % PAGE - PAGE;
    memcpy(&all, base, sizeof all);
    munmap(base, all);
}

#include "tests/fuzz/flat_mutate.h"
#include "tests/fuzz/pte_runs.h"

#ifdef PLANTED_BUG
enum { MOST_MOVED = 256 };

static EtcStatus (*sound_run)(void *state, EtcValue *const *arg, int32_t n_args, EtcError *e);
static void *moved[MOST_MOVED]; /* freed when the next file is run */
static int n_moved;

static EtcTensor *tensor_of(EtcValue *v)
{
    return v->tag == ETC_TENSOR ? v->as.tensor : NULL;
}

static EtcStatus larger_run(void *state, EtcValue *const *arg, int32_t n_args, EtcError *e)
{
    for (int32_t i = 0; i < n_args && n_moved < MOST_MOVED; i++) {
        EtcTensor *t = tensor_of(arg[i]);
        if (!t || t->capacity <= 0 || t->capacity >= RUN_MEMORY)
            continue;
        void *p = loaded_memory(16, (size_t)t->capacity + XNN_READS_PAST);
        if (!p)
            continue;
        moved[n_moved++] = p;
        t->data = memcpy(p, t->data, (size_t)t->capacity);
        t->capacity += RUN_MEMORY;
        t->is_static = 0;
    }
    EtcStatus s = sound_run(state, arg, n_args, e);
    for (int32_t i = 0; i < n_args; i++) {
        EtcTensor *t = tensor_of(arg[i]);
        if (!t || t->capacity <= RUN_MEMORY)
            continue;
        t->capacity -= RUN_MEMORY;
        for (int k = 0; k < XNN_READS_PAST; k++) /* what may be read, but not written */
            if (((const uint8_t *)t->data)[t->capacity + k] != 0xA5)
                __builtin_trap();
    }
    return s;
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t n = 1;
#ifdef PLANTED_BUG
    while (n_moved > 0)
        loaded_free(moved[--n_moved]);
#endif
    for (int32_t i = 0; i < n && i < RUN_METHODS; i++) {
        EtcXnnpack *x = etc_xnnpack_new(1);
        if (!x)
            __builtin_trap();
        EtcDelegate d = etc_xnnpack_delegate(x);
#ifdef PLANTED_BUG
        sound_run = d.run;
        d.run = larger_run;
#endif
        n = run_method(data, size, i, &d, 1);
        etc_xnnpack_free(x);
    }
    return 0;
}
