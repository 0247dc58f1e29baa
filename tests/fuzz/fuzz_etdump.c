/* fuzz_etdump.c -- libFuzzer target: reads any bytes as an ETDump, with or without its size in
 * front. The mutator knows FlatBuffers (flat_mutate.h).
 *
 * To see that the target finds bugs, build it with -DPLANTED_BUG and without compiler/etdump.c:
 * events are then counted by vectors that were not verified. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "tests/fuzz/flat_mutate.h"
#include <stdlib.h>

#ifdef PLANTED_BUG
#include "runtime-lite/flat_read.h"
#define etc_flat_verify(f, schema, root) ((root) + 4 > (f)->size ? "outside" : NULL)
#include "compiler/etdump.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    EtDump dump;
    Arena *a = arena_new();
    uint8_t *aligned = aligned_alloc(64, (size + 64) / 64 * 64); /* as a mapped file is */
    memcpy(aligned, data, size);
    if (!etdump_read(aligned, size, a, &dump))
        for (int i = 0; i < dump.n; i++) {
            const EtEvent *e = &dump.event[i];
            if (!e->name || e->calls < 1 || e->least > e->most || e->most > e->ticks ||
                (i && e[-1].instruction > e->instruction))
                __builtin_trap();
        }
    free(aligned);
    arena_free(a);
    return 0;
}
