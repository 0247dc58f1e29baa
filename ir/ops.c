/* ops.c -- the op table as data, and look-up in it. */
#include "ir/internal.h"
#include <stdlib.h>
#include <string.h>

/* HAS(none) is 0, HAS(of any other name) is 1. */
#define NOT_none ~, 0
#define SECOND_(a, b, ...) b
#define SECOND(...) SECOND_(__VA_ARGS__)
#define HAS(name) SECOND(NOT_##name, 1, 0)

const OpInfo op_info[N_OPS] = {
#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    [OP_##id] = {target, out, schema, flags, ACCESS_##access, OP_##functional, inplace, infer_##infer,            \
                 cost_##cost, scratch_##scratch, HAS(decomp), HAS(kernel),                \
                 #decomp, #kernel, #expr, #c, #quant},
#include "ir/ops.def"
};

const OpInfo *node_row(const Node *n)
{
    return n->custom ? &n->custom->row : &op_info[n->op];
}

static int by_target(const void *key, const void *row)
{
    return strcmp(key, ((const OpInfo *)row)->target);
}

OpId op_find(const char *target)
{
    const OpInfo *row = bsearch(target, op_info, N_OPS, sizeof *op_info, by_target);
    return row ? (OpId)(row - op_info) : OP_NONE;
}

bool op_mutates(OpId op)
{
    return strchr(op_info[op].schema, '!') != NULL; /* "(a!)": nothing else has one */
}

/* Written by hand, as strspn builds a table of the set at each call and names are asked for by the
 * thousand. */
bool text_is_name(const char *s, char also)
{
    /* bit c % 32 of word c / 32: digits, capital letters and '_', small letters */
    static const uint32_t set[8] = {0, 0x03ff0000, 0x87fffffe, 0x07fffffe};
    if (!*s)
        return false;
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (!(set[c / 32] >> c % 32 & 1) && *s != also)
            return false;
    }
    return true;
}
