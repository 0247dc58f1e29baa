/* test_runtime_sources.c -- `etc runtime` finds the source of every kernel by its text. */
#include "compiler/compiler.h"
#include "runtime-lite/etc_rt.h"
#include <criterion/criterion.h>

Test(runtime_sources, every_kernel_has_a_source)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Options o = {.runtime_dir = ROOT, .files = files_new(a)};
    SourceFiles s;
    Strings all = {0};
    const char *row, *function;
    cr_assert(source_files_read(&o, &s, a, &d));
    for (int32_t i = 0; etc_kernel_at(i); i++) {
        cr_assert(source_kernel(&s, etc_kernel_at(i)->name, a, &row, &function, &d));
        cr_expect(table_find_text(&s.definer, function), "%s", function);
        PUSH(a, all.item, all.n, function);
    }
    cr_assert_gt(all.n, 150);
    cr_assert(source_files_choose(&s, &all, &d));
    cr_expect(source_file(&s, "runtime-lite/kernels/pointwise_f64.c")->is_wanted);
    arena_free(a);
}

/* One kernel does not want all sources. */
Test(runtime_sources, a_kernel_wants_its_family_alone)
{
    static const char *const absent[] = {"kernels/conv.c", "kernels/logic.c", "kernels/prim.c",
                                         "kernels/attention.c", "kernels/copy.c"};
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Options o = {.runtime_dir = ROOT, .files = files_new(a)};
    SourceFiles s;
    const char *softmax = "etc_softmax";
    cr_assert(source_files_read(&o, &s, a, &d));
    cr_assert(source_files_choose(&s, &(Strings){&softmax, 1}, &d));
    cr_expect(source_file(&s, "runtime-lite/kernels/softmax.c")->is_wanted);
    cr_expect(source_file(&s, "runtime-lite/kernels/softmax.h")->is_wanted);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        cr_expect_not(source_file(&s, arena_printf(a, "runtime-lite/%s", absent[i]))->is_wanted, "%s",
                      absent[i]);
    arena_free(a);
}
