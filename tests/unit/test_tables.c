/* test_tables.c -- compares ir/ops.def with runtime-lite/kernels/kernels.def.  For each row, the
 * kernel that a .pte calls by the name in the column `out` must be the function in the column
 * `kernel`, with as many arguments and results as the schema has, and with the same arguments that
 * a result may overlay. */
#include <criterion/criterion.h>
#include <string.h>
#include "ir/ir.h"
#include "runtime-lite/kernels/kernels.h"

#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, ...) \
    EtcKernel etc_##kernel;
#include "ir/ops.def"

static EtcKernel *const kernel_of[N_OPS] = {
#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, ...) \
    [OP_##id] = etc_##kernel,
#include "ir/ops.def"
};

static const EtcKernelRow *row_of(const char *out)
{
    char name[128];
    const char *dot = strrchr(out, '.');
    cr_assert_lt(strlen(out), sizeof name);
    strcpy(name, out);
    if (!dot)
        return etc_kernel_find(name, "");
    name[dot - out] = '\0';
    return etc_kernel_find(name, dot + 1);
}

/* Outs follow the arguments, but where the official schema has the result as its last argument. */
static int n_passed(Program *p, OpId op)
{
    const Schema *s = op_schema(p, op);
    int n = s->n_outs;
    for (int i = 0; i < s->n_args; i++)
        n += schema_is_passed(s, i);
    return n;
}

/* Results that are tensors; several may be one list. */
static int n_written(Program *p, OpId op)
{
    const Schema *s = op_schema(p, op);
    const char *gives = strstr(op_schema_text(p->arena, op), "-> ");
    if (!strcmp(gives, "-> Scalar") || !strcmp(gives, "-> SymInt") || op == OP_ET_VIEW)
        return 0;
    return s->n_outs < 0 ? 1 : s->n_outs;
}

/* The column of ops.def by the arguments that a call passes. */
static unsigned passed_inplace(Program *p, OpId op)
{
    const Schema *s = op_schema(p, op);
    unsigned bits = 0;
    for (int i = 0, k = 0; i < s->n_args; i++)
        if (schema_is_passed(s, i))
            bits |= (unsigned)(op_info[op].inplace >> i & 1) << k++;
    return bits;
}

Test(tables, a_pte_calls_the_kernel_of_the_row)
{
    Arena *a = arena_new();
    Program *p = program_new(a, "tables");
    int n = 0;
    for (int op = 0; op < N_OPS; op++) {
        const OpInfo *info = &op_info[op];
        if (!op_out((OpId)op) || !info->has_kernel)
            continue;
        const EtcKernelRow *row = row_of(op_out((OpId)op));
        cr_assert_not_null(row, "%s: kernels.def has no %s", op_target((OpId)op), op_out((OpId)op));
        cr_expect(row->run == kernel_of[op], "%s: %s is another function than etc_%s",
                  op_target((OpId)op), op_out((OpId)op), op_kernel((OpId)op));
        cr_expect_eq(row->n_args, n_passed(p, (OpId)op), "%s: %s takes %d arguments, the row %d",
                     op_target((OpId)op), op_out((OpId)op), (int)row->n_args, n_passed(p, (OpId)op));
        cr_expect_eq(row->n_outs, n_written(p, (OpId)op), "%s: %s writes %d arguments, the row %d",
                     op_target((OpId)op), op_out((OpId)op), (int)row->n_outs, n_written(p, (OpId)op));
        cr_expect(!row->n_outs || row->first_out + row->n_outs == row->n_args, "%s", op_out((OpId)op));
        cr_expect(!row->n_outs || row->inplace == passed_inplace(p, (OpId)op),
                  "%s: %s may overlay %#x, the row %#x", op_target((OpId)op), op_out((OpId)op),
                  (unsigned)row->inplace, passed_inplace(p, (OpId)op));
        n++;
    }
    cr_expect_gt(n, 50, "only %d rows were compared", n);
    arena_free(a);
}

Test(tables, schemas_are_unpacked_as_they_are_written)
{
    static const char *const schema[N_OPS] = {
#define OP(id, target, out, schema, ...) schema,
#include "ir/ops.def"
    };
    Arena *a = arena_new();
    for (int op = 0; op < N_OPS; op++)
        cr_expect_str_eq(op_schema_text(a, (OpId)op), schema[op], "%s", op_target((OpId)op));
    arena_free(a);
}

/* A row is rewritten, written through its twin, run by a kernel or only a check: nothing is left
 * that no tail could ever take. */
Test(tables, every_row_has_a_way)
{
    for (int op = 0; op < N_OPS; op++) {
        const OpInfo *info = &op_info[op];
        bool is_ours = !strncmp(op_target((OpId)op), "etc.", 4) ||
                       !strncmp(op_target((OpId)op), "higher_order.", 13) ||
                       !strncmp(op_target((OpId)op), "quantized_decomposed.", 21);
        cr_expect(is_ours || info->has_decomp || info->functional != OP_NONE || info->has_kernel ||
                      info->flags & CHECK,
                  "%s has neither decomp, functional twin nor kernel", op_target((OpId)op));
    }
}
