/* fuzz_recipe.c -- libFuzzer target: reads any bytes as a recipe, and compares its scopes with a
 * model.
 *
 * It is linked with everything of `etc` except main.c, and with libyaml.  To see that the target
 * finds bugs, build it with -DPLANTED_BUG and without compiler/config.c: long texts are then not
 * copied from the parser's memory, and the target finds a read after that memory was freed. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED_BUG
#define arena_str(a, s, n) ((n) > 40 ? (char *)(uintptr_t)(s) : arena_str(a, s, n))
#include "compiler/config.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char model[] =
    "program \"m\" stage core\nmethod @f(%x: f32[1,3]) {\n"
    "  %relu = aten.relu.default(%x) : f32[1,3] from \"net.act\", \"m.py:1\"\n"
    "  return %relu\n}\n";

/* Checks what the reader promises of a format. */
static void check_format(const QuantFormat *f)
{
    bool is_int = f->dtype == ETC_I8;
    bool ok = is_int ? f->bits == 8 || f->bits == 4 : f->dtype == ETC_F32 || f->dtype == ETC_F16;
    ok = ok && f->observer < N_OBSERVERS && (f->granularity != PER_GROUP || f->group >= 2);
    ok = ok && (!is_int || (f->percentile > 50 && f->percentile <= 100));
    ok = ok && (f->dynamic == (f->granularity == PER_TOKEN));
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    Recipe r;
    Source src = {.file = "m", .text = model, .line = 1};
    const Program *p = program_parse(a, &src, &d);
    bool ok = recipe_parse("fuzz.yaml", data, size, a, &r, &d);
    if (ok != !diag_errors(&d)) /* one or the other */
        __builtin_trap();
    for (int i = 0; ok && i < r.n_rules; i++) {
        if (r.rule[i].has_activation)
            check_format(&r.rule[i].activation);
        if (r.rule[i].has_weight)
            check_format(&r.rule[i].weight);
    }
    if (ok && recipe_check_scopes(&r, p, &d))
        recipe_choice(&r, p->method[0]->first, NULL);
    fclose(d.out);
    arena_free(a);
    return 0;
}
