/* custom.c -- operators of a user's own, by their targets. */
#include "ir/table.h"

CustomOps *custom_ops_new(Arena *a)
{
    CustomOps *c = NEW(a, CustomOps, 1);
    c->arena = a;
    c->by_target = NEW(a, Table, 1);
    c->by_target->arena = a;
    return c;
}

bool custom_ops_add(CustomOps *c, CustomOp *op)
{
    TableItem *at = table_at_text(c->by_target, op->target);
    if (at->ptr)
        return false;
    at->ptr = op;
    PUSH(c->arena, c->item, c->n, op);
    return true;
}

const CustomOp *custom_ops_find(const CustomOps *c, const char *target)
{
    return c ? table_find_text(c->by_target, target) : NULL;
}

bool namespace_is_taken(const char *name)
{
    static const char *const taken[] = {"aten",     "dim_order_ops", "etc",    "executorch_prim",
                                        "higher_order", "llama",     "math",   "prim",
                                        "prims",    "quantized_decomposed",    "torch"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (!strcmp(taken[i], name))
            return true;
    return *name == '_';
}
