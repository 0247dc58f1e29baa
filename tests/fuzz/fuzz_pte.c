/* fuzz_pte.c -- libFuzzer target: opens, plans (up to 64 MB), initialises and runs any bytes.
 *
 *     src="runtime-lite/[a-z]*.c runtime-lite/kernels/[a-hj-z]*.c
 *          runtime-lite/kernels/isa_base.c tests/fuzz/fuzz_pte.c"
 *     clang-14 -g -O1 -std=c11 -D_DEFAULT_SOURCE -I. \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $src -lm -o fuzz_pte
 *     mkdir -p corpus && ./fuzz_pte -max_total_time=60 -rss_limit_mb=1024 corpus tests/import/pte
 *
 * That the target finds anything is shown with -DPLANTED_BUG and without runtime-lite/flat_read.c:
 * the reader then believes every offset to lie inside the file, and a read past its end is found. */
#include <stdint.h>
#include "tests/pte_load.h"

#ifdef PLANTED_BUG
#include "runtime-lite/flat_read.h"
static const EtcFlat endless = {.size = INT32_MAX}, *const f = &endless;
#define is_inside(f, at, bytes) is_inside(at, bytes)
#include "runtime-lite/flat_read.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Loaded l;
    uint8_t *file = loaded_memory(16, size);
    if (size)
        memcpy(file, data, size);
    EtcStatus s = loaded_start(&l, file, size, 0);
    if (!s)
        s = loaded_run_on_zeros(&l);
    if (!s) /* state, and views left behind by the first run */
        s = loaded_run_on_zeros(&l);
    if (s && s != ETC_NO_MEMORY && (!l.e.what || l.e.status != s))
        __builtin_trap();
    loaded_stop(&l);
    return 0;
}
