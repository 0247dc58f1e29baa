/* fuzz_text.c -- libFuzzer target: parses any bytes as textual IR, verifies, infers and prints the
 * program, and parses what was printed.
 *
 *     src="ir/[a-z]*.c runtime-lite/kernels/[a-z]*.c tests/fuzz/fuzz_text.c"
 *     clang-14 -g -O1 -std=c11 -D_DEFAULT_SOURCE -I. \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $src -lm -o fuzz_text
 *     ./fuzz_text -max_total_time=60 corpus tests/golden/text tests/data
 *
 * To see that the target finds bugs, build it with -DPLANTED_BUG and without ir/parse.c: one
 * character too many is then skipped after a comment, and the target finds a read past a text that
 * ends in a comment. */
#include "ir/ir.h"
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED_BUG
#define strcspn(s, reject) (strcspn(s, reject) + 1)
#include "ir/parse.c"
#undef strcspn
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(const Program *p)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    program_print(p, f);
    fclose(f);
    return text;
}

static void check_fixed_point(const Program *p, Diag *d)
{
    Arena *a = arena_new();
    char *first = text_of(p), *second;
    Source src = {.file = "printed", .text = first, .line = 1};
    Program *again = program_parse(a, &src, d);
    if (!again || *src.text || !program_verify(again, d))
        __builtin_trap();
    second = text_of(again);
    if (strcmp(first, second) != 0)
        __builtin_trap();
    free(first);
    free(second);
    arena_free(a);
}

static void check_program(Program *p, Diag *d)
{
    bool ok = program_verify(p, d), fits = ok;
    for (int i = 0; ok && i < p->n_methods; i++)
        fits = graph_infer(p->method[i], d) && fits;
    if (d->n[FAULT_BUG] || (!fits && !diag_errors(d)))
        __builtin_trap();
    if (!ok)
        return;
    check_fixed_point(p, d);
    for (int i = 0; i < p->n_methods; i++)
        for (const Node *n = p->method[i]->first; n; n = n->next)
            if (node_cost(n) < 0 || node_scratch(n) < 0)
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    if (!text || !d.out)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    Source src = {.file = "fuzz", .text = text, .line = 1};
    for (Program *p; *src.text && (p = program_parse(a, &src, &d));)
        check_program(p, &d);
    arena_free(a);
    fclose(d.out);
    free(text);
    return 0;
}
