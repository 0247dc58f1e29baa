/* fuzz_zip.c -- libFuzzer target: reads any bytes as an archive of torch.export.save.
 *
 *     src="compiler/import/[j-z]*.c ir/[a-z]*.c runtime-lite/kernels/[a-z]*.c \
 *         tests/fuzz/fuzz_zip.c"
 *     clang-14 -g -O1 -std=c11 -D_DEFAULT_SOURCE -I. -isystem build/deps/usr/include \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $src -lyyjson -lz -lm
 *     python3 tests/import/make_hostile.py --seeds seeds
 *     ./fuzz_zip -max_total_time=60 -rss_limit_mb=1024 corpus seeds/zip
 *
 * Checksums are taken to be 0, here and in the seeds, so that changed bytes get past them.  To see
 * that the target finds bugs, build it with -DPLANTED_BUG and without compiler/import/zip.c: bounds
 * in that file are then checked with sums of 16 bits, and the target finds a read outside the
 * archive. */
#include "compiler/import/internal.h"
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED_BUG
#define fits(at, n, limit) ((uint16_t)((at) + (n)) <= (limit))
#include "compiler/import/zip.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

uint32_t crc32_of(const uint8_t *data, size_t n)
{
    (void)data, (void)n;
    return 0;
}

/* Reads every byte that a state claims: a bad claim shows as a report. */
static unsigned sum_of_states(const Program *p)
{
    unsigned sum = 0;
    for (int i = 0; i < p->n_states; i++)
        for (int64_t k = 0; k < p->state[i]->n_bytes; k++)
            sum += p->state[i]->data[k];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    uint8_t *copy = malloc(size + !size);
    memcpy(copy, data, size);
    Program *p = import_pt2_bytes(a, "fuzz.pt2", copy, size, &d);
    if (!p == !diag_errors(&d)) /* one or the other */
        __builtin_trap();
    if (p) {
        fprintf(d.out, "%u", sum_of_states(p));
        program_print(p, d.out);
    }
    fclose(d.out);
    arena_free(a);
    free(copy);
    return 0;
}
