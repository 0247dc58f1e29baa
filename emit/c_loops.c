/* c_loops.c -- prints nested loops over shapes with strides, as few as the strides allow. */
#include "emit/c_emit.h"
#include <string.h>

static bool is_value(Dim d, int64_t v)
{
    return !d.expr && d.value == v;
}

Nest nest_new(Emit *e, Type shape, int n_operands)
{
    assert(shape.rank <= MAX_LOOPS);
    Nest nest = {.rank = shape.rank < 0 ? 0 : shape.rank, .n = n_operands};
    nest.stride = arena_alloc(e->a, (size_t)n_operands + 1, sizeof *nest.stride);
    for (int i = 0; i < nest.rank; i++)
        nest.size[i] = shape.dim[i];
    return nest;
}

void nest_operand(Emit *e, Nest *nest, int k, Type t)
{
    Dim stride[MAX_LOOPS];
    int lead = nest->rank - t.rank;
    assert(k < nest->n && lead >= 0);
    type_strides(e, t, stride);
    for (int i = 0; i < nest->rank; i++) {
        bool repeats = i < lead || (is_value(t.dim[i - lead], 1) && !is_value(nest->size[i], 1));
        nest->stride[k][i] = repeats ? DIM(0) : stride[i - lead];
    }
}

static void drop(Nest *nest, int at)
{
    assert(at < nest->rank);
    for (int i = at; i + 1 < nest->rank; i++) {
        nest->size[i] = nest->size[i + 1];
        for (int k = 0; k < nest->n; k++)
            nest->stride[k][i] = nest->stride[k][i + 1];
    }
    nest->rank--;
}

/* Returns whether loops i and i + 1 can be one loop: for each operand, the stride of loop i is the
 * size of loop i + 1 times its stride. */
static bool may_join(Emit *e, const Nest *nest, int i)
{
    for (int k = 0; k < nest->n; k++) {
        Dim whole = dim_mul(e->method->program, nest->size[i + 1], nest->stride[k][i + 1]);
        if (!dim_equal(nest->stride[k][i], whole))
            return false;
    }
    return true;
}

static void join(Emit *e, Nest *nest, int i)
{
    nest->size[i + 1] = dim_mul(e->method->program, nest->size[i], nest->size[i + 1]);
    drop(nest, i);
}

void nest_collapse(Emit *e, Nest *nest)
{
    for (int i = nest->rank - 1; i >= 0; i--)
        if (is_value(nest->size[i], 1))
            drop(nest, i);
    for (int i = nest->rank - 2; i >= 0; i--)
        if (may_join(e, nest, i))
            join(e, nest, i);
    if (!nest->rank) {
        nest->size[0] = DIM(1);
        for (int k = 0; k < nest->n; k++)
            nest->stride[k][0] = DIM(1);
        nest->rank = 1;
    }
}

int nest_open(Function *f, const Nest *nest, int n, const char **index)
{
    assert(n <= nest->rank);
    static const char *const letter[] = {"i", "j", "k", "l"};
    for (int i = 0; i < n; i++) {
        index[i] = names_make(f->names, "", i < 4 ? letter[i] : "m");
        put(&f->body, "%*sfor (int64_t %s = 0; %s < ", 4 * i + 4, "", index[i], index[i]);
        function_dim(f, nest->size[i]);
        put(&f->body, "; %s++) {\n", index[i]);
    }
    return 4 * n + 4;
}

void nest_close(Function *f, int n)
{
    while (n-- > 0)
        put(&f->body, "%*s}\n", 4 * n + 4, "");
}

void nest_address(Function *f, const Nest *nest, int k, const char *pointer, int n,
                  const char *const *index)
{
    assert(k < nest->n && n <= nest->rank);
    put(&f->body, "%s", pointer);
    for (int i = 0; i < n; i++) {
        Dim stride = nest->stride[k][i];
        if (is_value(stride, 0))
            continue;
        if (is_value(stride, 1)) {
            put(&f->body, " + %s", index[i]);
            continue;
        }
        put(&f->body, " + (%s * ", index[i]);
        function_dim(f, stride);
        put(&f->body, ")");
    }
}

void put_copy(Function *f, Type shape, const char *x, const Dim *x_stride, const char *y,
              const Dim *y_stride)
{
    const char *index[MAX_LOOPS];
    Nest nest = nest_new(f->e, shape, 2);
    for (int i = 0; i < nest.rank; i++) {
        nest.stride[0][i] = x_stride[i];
        nest.stride[1][i] = y_stride[i];
    }
    nest_collapse(f->e, &nest);
    int indent = nest_open(f, &nest, nest.rank, index);
    put(&f->body, "%*s*(", indent, "");
    nest_address(f, &nest, 1, y, nest.rank, index);
    put(&f->body, ") = *(");
    nest_address(f, &nest, 0, x, nest.rank, index);
    put(&f->body, ");\n");
    nest_close(f, nest.rank);
}
