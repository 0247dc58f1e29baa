/* fuzz_ops.c -- libFuzzer target: reads any bytes as a file of --ops, and compiles a model that
 * calls the operators which the file may describe, to a .pte and to C.
 *
 * It is linked with everything of `etc` except main.c, and with libyaml.  The planted bug is that
 * of fuzz_recipe.c: long texts are not copied from libyaml's memory. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED_BUG
#define arena_str(a, s, n) ((n) > 40 ? (char *)(uintptr_t)(s) : arena_str(a, s, n))
#include "compiler/config.c"
#undef arena_str
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char model[] =
    "program \"m\" stage aten\nsym %s in 2..8\n"
    "method @forward(%x: f32[%s,3], %i: i64[3]) {\n"
    "  %y = my.f.default(%x) : f32[%s,3]\n"
    "  %z = my.g.default(%x, %i, 2, 1.5, [1, 2]) : f32[%s,3]\n"
    "  return %y, %z\n}\n";

static void make(const CustomOps *ops, const Tail *tail, FILE *out)
{
    Diag d = {.out = out};
    Arena *a = arena_new();
    Source src = {.file = "m", .text = model, .line = 1, .custom = ops};
    Program *p = program_parse(a, &src, &d);
    Pipeline all;
    OutFile f;
    CFiles files = {0};
    PteStats stats = {0};
    COptions c = {.stem = "m"};
    if (p)
        p->session->tail = tail;
    if (p && program_verify(p, &d) && program_guard(p, &d) && pipeline_of(p, &all, &d) &&
        passes_run(p, all.pass, all.n, (PassOptions){.check_ir = true}, &d) &&
        !(tail == &tail_pte ? emit_pte(p, a, &f, &stats, &d) : emit_c(&(CModel){.p = p}, 1, &c, a, &files, &d)) &&
        !diag_errors(&d))
        __builtin_trap(); /* failed without a word */
    if (d.n[FAULT_BUG])
        __builtin_trap();
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    CustomOps *ops = custom_ops_new(a);
    bool ok = custom_parse("fuzz.yaml", data, size, ops, &d) && custom_rules_end(ops, &d);
    if (ok != !diag_errors(&d)) /* one or the other */
        __builtin_trap();
    if (ok) {
        make(ops, &tail_pte, d.out);
        make(ops, &tail_c, d.out);
    }
    fclose(d.out);
    arena_free(a);
    return 0;
}
