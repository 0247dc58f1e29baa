/* fuzz_xnn.c -- libFuzzer target: checks any bytes as an XNNPACK blob, without the library.  The
 * sizes of an accepted graph are computed again for half of each size of its inputs.
 *
 *     src="runtime-lite/[a-z]*.c runtime-lite/kernels/[a-hj-z]*.c runtime-lite/kernels/isa_base.c
 *          runtime-lite/delegates/xnn_*.c tests/fuzz/fuzz_xnn.c"
 *     clang-14 -g -O1 -std=c11 -D_DEFAULT_SOURCE -I. \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $src -lm -o fuzz_xnn
 *     ./fuzz_xnn -max_total_time=60 corpus seeds/xnn
 *
 * All named data has the name "w"; tests/fuzz/run.sh makes the seeds accordingly.  To see that the
 * target finds bugs, build it with -DPLANTED_BUG and without delegates/xnn_node.c: a list of a node
 * may then be longer than the array for it, and the target finds a write past that array. */
#include <stdlib.h>
#include "runtime-lite/delegates/xnn_graph.h"
#include "tests/fuzz/flat_mutate.h"

#ifdef PLANTED_BUG
#define XNN_RANK 64
#include "runtime-lite/delegates/xnn_node.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte that a graph claims: a bad claim shows as a report. */
static unsigned sum_of_data(const XnnGraph *g)
{
    unsigned sum = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const XnnValue *v = &g->value[i];
        const uint8_t *scales = v->scales;
        for (uint64_t k = 0; k < v->n_bytes; k++)
            sum += v->data[k];
        for (uint64_t k = 0; scales && k < (uint64_t)v->n_scales * (v->group ? 2 : 4); k++)
            sum += scales[k];
    }
    return sum;
}

static void size_anew(const XnnGraph *g)
{
    EtcError e = {.index = -1};
    XnnShape *shape = calloc((size_t)g->n_values + 1, sizeof *shape);
    for (uint32_t i = 0; i < g->n_values; i++) {
        shape[i] = g->value[i].shape;
        for (uint32_t k = 0; g->value[i].is_input && k < shape[i].rank; k++)
            shape[i].dim[k] = shape[i].dim[k] / 2;
    }
    if (etc_xnn_infer(g, shape, &e) && !e.what)
        __builtin_trap();
    free(shape);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(16) uint8_t weights[1 << 16];
    memset(weights, 0x3F, sizeof weights); /* positive numbers of every width */
    EtcNamed row[] = {{"w", 1, weights, sizeof weights}};
    const XnnNames names = {row, 1};
    XnnGraph g;
    EtcError e = {.index = -1};
    void *copy = NULL;
    if (posix_memalign(&copy, 16, size ? size : 1))
        return 0;
    if (size)
        memcpy(copy, data, size);
    EtcStatus s = etc_xnn_read(copy, size, &names, &g, &e);
    if (s && (!e.what || e.status != s))
        __builtin_trap();
    volatile unsigned sum = s ? 0 : sum_of_data(&g);
    (void)sum;
    if (!s)
        size_anew(&g);
    etc_xnn_free(&g);
    free(copy);
    return 0;
}
