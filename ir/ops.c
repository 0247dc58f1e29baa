/* ops.c -- look-up in the op table. */
#include "ir/internal.h"
#include <string.h>

char *text_unpack(Arena *a, const PackedTexts *t, size_t at)
{
    size_t n = 0;
    for (const uint8_t *code = t->byte + at; *code; code++)
        n += (size_t)(t->place[*code + 1] - t->place[*code]);
    char *s = arena_alloc(a, n + 1, 1), *to = s;
    for (const uint8_t *code = t->byte + at; *code; code++) {
        size_t length = (size_t)(t->place[*code + 1] - t->place[*code]);
        memcpy(to, t->text + t->place[*code], length);
        to += length;
    }
    assert(to == s + n);
    return s;
}

const char *op_target(OpId op)
{
    return row_text + op_info[op].target;
}

const char *op_out(OpId op)
{
    return op_info[op].has_out ? row_text + op_info[op].out : NULL;
}

const char *op_schema_text(Arena *a, OpId op)
{
    return text_unpack(a, &row_schemas, op_info[op].schema);
}

const char *op_kernel(OpId op)
{
    return row_text + op_info[op].kernel;
}

const char *op_expr(OpId op)
{
    return row_text + op_info[op].expr;
}

const char *op_c(OpId op)
{
    return row_text + op_info[op].c;
}

const char *op_quant(OpId op)
{
    return row_text + op_info[op].quant;
}

InferFn *op_infer(OpId op)
{
    return row_infer[op_info[op].infer];
}

int64_t node_cost(const Node *n)
{
    return row_cost[op_info[n->op].cost](n);
}

int64_t node_scratch(const Node *n)
{
    return row_scratch[op_info[n->op].scratch](n);
}

const OpInfo *node_row(const Node *n)
{
    return n->custom ? &n->custom->row : &op_info[n->op];
}

const char *node_target(const Node *n)
{
    return n->custom ? n->custom->target : op_target(n->op);
}

const char *node_out(const Node *n)
{
    return n->custom ? n->custom->out : op_out(n->op);
}

OpId op_find(const char *target)
{
    int lo = 0, hi = N_OPS;
    while (lo < hi) {
        int at = (lo + hi) / 2, order = strcmp(target, op_target((OpId)at));
        if (!order)
            return (OpId)at;
        if (order > 0)
            lo = at + 1;
        else
            hi = at;
    }
    return OP_NONE;
}

bool op_mutates(OpId op)
{
    return op_info[op].mutates;
}

/* This is written by hand, because strspn builds a table of the set at each call, and thousands of
 * names are checked. */
bool text_is_name(const char *s, char also)
{
    /* bit c % 32 of word c / 32 stands for c: digits, capital letters and '_', small letters */
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
