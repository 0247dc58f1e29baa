/* c_packed.c -- prints products with weights that are stored as integers or halves, and lookups of
 * rows in tables of integers.  Their cores are in kernels/packed.h and kernels/table.h. */
#include "emit/c_emit.h"
#include <inttypes.h>

static bool check_floats(Function *f, const Node *n, const Value *const *v, int count)
{
    for (int i = 0; i < count; i++) {
        if (v[i] && v[i]->type.dtype != ETC_F32)
            return function_refuse(f, n, "has C for float32 only");
        if (v[i] && !c_type_is_dense(f->e, value_type(v[i])))
            return function_refuse(f, n, "expects a dense tensor here");
    }
    return true;
}

static const char *core_of(EtcDtype t)
{
    return t == ETC_F16 ? "f16" : t == ETC_U8 ? "i4" : "i8";
}

bool emit_packed(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "input"), *w = arg_value(n, "weight"),
                *scale = arg_value(n, "scales");
    const Value *zero = arg_value(n, "zero_points"), *bias = arg_value(n, "bias"), *y = n->out[0];
    const Value *const floats[3] = {x, bias, y};
    Dim k = size_of(x, -1), groups = scale ? size_of(scale, 1) : DIM(1);
    Dim field[4] = {c_dims_product(f->e, x->type.dim, x->type.rank - 1), size_of(y, -1), k,
                    dim_floordiv(f->e->method->program, k, groups)};
    if (!check_floats(f, n, floats, 3))
        return false;
    put(&f->body, "    /* m, n, k; group; clamp */\n    const EtcPacked g = {");
    put_fields(f, field, 4);
    put_clamp(f, clamp);
    put(&f->body, "};\n    const EtcPackedWeight weight = {%s, ", function_pointer(f, w));
    put(&f->body, "%s, ", array_or_null(f, scale));
    put(&f->body, "%s};\n", array_or_null(f, zero));
    put(&f->body, "    etc_packed_%s(%s, &weight, ", core_of(w->type.dtype),
        function_pointer(f, x));
    put(&f->body, "%s, %s, &g, work);\n", array_or_null(f, bias), f->name_of[y->index]);
    f->uses_work = true;
    return true;
}

bool emit_table(Function *f, const Node *n, Clamp clamp)
{
    const Value *w = arg_value(n, "weight"), *scale = arg_value(n, "weight_scales"),
                *zero = arg_value(n, "weight_zero_points");
    const Value *index = arg_value(n, "indices"), *y = n->out[0];
    const Value *const floats[3] = {scale, zero, y};
    Program *p = f->e->method->program;
    Dim groups = scale->type.rank == 2 ? size_of(scale, 1) : DIM(1);
    Dim field[4] = {c_dims_product(f->e, index->type.dim, index->type.rank), size_of(w, 0),
                    size_of(y, -1), dim_floordiv(p, size_of(y, -1), groups)};
    (void)clamp;
    if (index->type.dtype != ETC_I64 || !c_type_is_dense(f->e, value_type(index)) ||
        !c_type_is_dense(f->e, value_type(w)))
        return function_refuse(f, n, "expects int64 indices, and no gaps");
    if (!check_floats(f, n, floats, 3))
        return false;
    put(&f->body, "    /* count, rows, n, group; bits, is_u8 */\n    const EtcTable g = {");
    put_fields(f, field, 4);
    put(&f->body, "%d, %d};\n    (void)etc_table_f32(%s, ", n->op == OP_EMBEDDING_4BIT ? 4 : 8,
        w->type.dtype == ETC_U8, function_pointer(f, w));
    put(&f->body, "%s, ", function_pointer(f, scale));
    put(&f->body, "%s, ", array_or_null(f, zero));
    put(&f->body, "%s, %s, &g);\n", function_pointer(f, index), f->name_of[y->index]);
    return true;
}
