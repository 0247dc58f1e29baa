/* fuzz_safetensors.c -- libFuzzer target: reads any bytes as a safetensors file for a textual
 * program, which has weights of several dtypes, two of which share their bytes.
 *
 * It is linked with everything of `etc` except main.c.  To see that the target finds bugs, build it
 * with -DPLANTED_BUG and without compiler/import/safetensors.c: an element is then taken to be one
 * byte, and the target finds a read past the end of the file. */
#include "compiler/import/internal.h"
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED_BUG
#define dtype_bytes(t) ((void)(t), 1)
#include "compiler/import/safetensors.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] = "program \"p\" stage aten\n"
                           "param %w = \"w\" : f32[2,3] in \"0\"+0\n"
                           "param %v = \"v\" : f32[2,3] in \"0\"+0\n"
                           "buffer %b = \"b\" : bool[3] in \"1\"+0\n"
                           "buffer %n = \"n\" : i64[] in \"2\"+0\n"
                           "param %h = \"h\" : f16[0,4] in \"3\"+0\n"
                           "method @forward(%x: f32[2,3]) {\n"
                           "  return %x\n"
                           "}\n";

/* Reads every byte that a state claims, and those that its type asks for. */
static unsigned sum_of_states(const Program *p)
{
    unsigned sum = 0;
    for (int i = 0; i < p->n_states; i++) {
        const State *s = p->state[i];
        int64_t n = s->n_bytes > type_bytes(s->type) ? s->n_bytes : type_bytes(s->type);
        for (int64_t k = 0; k < n; k++)
            sum += s->data[k];
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    Source src = {.file = "fuzz.etir", .text = text, .line = 1};
    Program *p = program_parse(a, &src, &d);
    uint8_t *copy = malloc(size + !size);
    if (!p || !copy)
        abort();
    memcpy(copy, data, size);
    bool ok = import_safetensors_bytes(p, "fuzz", copy, size, &d);
    if (ok != !diag_errors(&d)) /* one or the other */
        __builtin_trap();
    if (ok)
        fprintf(d.out, "%u", sum_of_states(p));
    fclose(d.out);
    arena_free(a);
    free(copy);
    return 0;
}
