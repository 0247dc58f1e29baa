/* fuzz_pte.c -- libFuzzer target: opens, plans (up to 1 MB), initialises and runs any bytes as a
 * .pte. The mutator knows FlatBuffers (flat_mutate.h).
 *
 *     src="runtime-lite/[a-z]*.c runtime-lite/kernels/[a-hj-z]*.c
 *          runtime-lite/kernels/isa_base.c tests/fuzz/fuzz_pte.c"
 *     clang-14 -g -O1 -std=c11 -D_DEFAULT_SOURCE -I. \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $src -lm -o fuzz_pte
 *     mkdir -p corpus && ./fuzz_pte -max_total_time=60 -rss_limit_mb=1024 corpus tests/import/pte
 *
 * To see that the target finds bugs, build it with -DPLANTED_BUG and without
 * runtime-lite/flat_read.c: the reader then accepts every offset, and the target finds a read past
 * the end of the file. */
#include "tests/fuzz/flat_mutate.h"
#include "tests/fuzz/pte_runs.h"

#ifdef PLANTED_BUG
#include "runtime-lite/flat_read.h"
static const EtcFlat endless = {.size = INT32_MAX}, *const f = &endless;
#define is_inside(f, at, bytes) is_inside(at, bytes)
#include "runtime-lite/flat_read.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int32_t n = 1;
    for (int32_t i = 0; i < n && i < RUN_METHODS; i++)
        n = run_method(data, size, i, NULL, 0);
    return 0;
}
