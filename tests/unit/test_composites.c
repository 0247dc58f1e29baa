/* test_composites.c -- checks passes/composites.txt: each rule parses and belongs to an operator
 * whose row says that it has a rule.  tests/conformance compares the results of the rules with
 * torch. */
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
    for (int i = 0; i < composites.n; i++) {
        const RuleKind kind = (RuleKind)(composites.row[i].of / N_OPS);
        const OpId op = (OpId)(composites.row[i].of % N_OPS);
        if (kind == RULE_OF_KERNEL)
            cr_expect(op_out(op) && op_info[op].flags & FITS, "%s", op_target(op));
        else if (kind == RULE_OF_NODE) /* a function of the row may leave nodes to the rule */
            cr_expect_neq(strcmp(decomp[op], "none"), 0, "%s", op_target(op));
        cr_expect_eq(kind == RULE_FUNCTION ? rule_find(composite_name(&composites, i)) : rule_of(kind, op),
                     i, "%s", composite_name(&composites, i));
    }
    for (OpId op = 0; op < N_OPS; op++) {
        if (!strcmp(decomp[op], "text")) /* eig always has complex results */
            cr_expect(rule_of(RULE_OF_NODE, op) >= 0 || rule_of(RULE_OF_COMPLEX, op) >= 0, "%s",
                      op_target(op));
        if (op_info[op].flags & FITS)
            cr_expect_geq(rule_of(RULE_OF_KERNEL, op), 0, "%s", op_target(op));
    }
}
