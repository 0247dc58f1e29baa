/* fuzz_onnx.c -- libFuzzer target: walks, unpacks and imports any bytes as an ONNX file.  For half
 * of the files --dim gives 'x' a range, whether that is an element or a size.
 *
 * To see that the target finds bugs, build it with -DPLANTED_BUG: a field may then end four bytes
 * past the end of the message that contains it. */
#include "compiler/import/onnx.h"
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED_BUG
#define lies_within(n, at, end) ((n) <= (uint64_t)((end) - (at)) + 4)
#include "compiler/import/onnx_wire.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    uint8_t *copy = malloc(size + !size); /* so that its end is known */
    memcpy(copy, data, size);
    ImportDim dim = {.name = "x", .lo = 1, .hi = 8};
    ImportOptions options = {.dim = &dim, .n_dims = size & 1};
    Program *p = import_onnx_bytes(a, "fuzz.onnx", copy, size, &options, &d);
    if (!p == !diag_errors(&d) || diag_exit_code(&d) == 70) /* one or the other */
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
