/* test_composites.c -- passes/composites.txt: each rule parses, is of an operator, and that operator's
 * row says so.  What rules compute, torch judges in tests/conformance. */
#include <criterion/criterion.h>
#include <string.h>
#include "passes/composite.h"

#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, ...) #decomp,
static const char *const decomp[N_OPS] = {
#include "ir/ops.def"
};

Test(composites, every_rule_parses)
{
    Arena *a = arena_new();
    Program *p = program_new(a, "m");
    Diag d = {.out = stderr};
    cr_assert_gt(composites.n, 0);
    for (int i = 0; i < composites.n; i++)
        cr_expect_not_null(rule_body(p, i, &d), "%s", composite_name(&composites, i));
    arena_free(a);
}

Test(composites, rules_and_rows_belong_together)
{
    Arena *a = arena_new();
    for (int i = 0; i < composites.n; i++) {
        const bool is_kernel = !strncmp(composite_name(&composites, i), "kernel.", 7);
        const bool is_complex = !strncmp(composite_name(&composites, i), "complex.", 8);
        OpId op = op_find(composite_name(&composites, i) + (is_kernel ? 7 : is_complex ? 8 : 0));
        if (is_complex)
            cr_expect_neq(op, OP_NONE, "%s", composite_name(&composites, i));
        else if (is_kernel)
            cr_expect(op != OP_NONE && op_out(op) && op_info[op].flags & FITS, "%s",
                      composite_name(&composites, i));
        else if (*composite_text(a, &composites, i) != '(')
            cr_expect(op != OP_NONE && !strcmp(decomp[op], "text"), "%s", composite_name(&composites, i));
    }
    for (OpId op = 0; op < N_OPS; op++) {
        char kernel[128], complex[128]; /* eig always has complex results */
        snprintf(kernel, sizeof kernel, "kernel.%s", op_target(op));
        snprintf(complex, sizeof complex, "complex.%s", op_target(op));
        if (!strcmp(decomp[op], "text"))
            cr_expect(rule_find(op_target(op)) >= 0 || rule_find(complex) >= 0, "%s", op_target(op));
        if (op_info[op].flags & FITS)
            cr_expect_geq(rule_find(kernel), 0, "%s", kernel);
    }
}
