/* onnx_loss.c -- computes losses of ONNX from the elements that targets pick. */
#include "compiler/import/onnx.h"
#include <string.h>

/* -x at the target of each position, and the weight of each position; ignored targets have
 * weight 0. */
typedef struct Loss {
    Value *each, *weight; /* weight NULL: all weights are 1 */
} Loss;

static Value *all_of(OnnxNode *n, OpId op, Value *x)
{
    int64_t axis[MAX_RANK];
    for (int i = 0; x && i < x->type.rank; i++)
        axis[i] = i;
    return !x || !x->type.rank ? x : ON_BUILD(n, op, "vIbt", x, x->type.rank, axis, false,
                                              x->type.dtype);
}

static bool pick(OnnxNode *n, Value *x, Value *at, Value *weight, Loss *l)
{
    EtcDtype t = x->type.dtype;
    Value *ignored = NULL, *zero = on_number(n, 0, t), *table[1] = {NULL};
    if (x->type.rank < 2 || at->type.rank != x->type.rank - 1)
        return onnx_wrong(n, "expects scores of [n, c, ...] and targets of [n, ...]");
    at = on_cast(n, at, ETC_I64);
    if (on_attribute(n, "ignore_index")) {
        ignored = on_scalar(n, OP_EQ_SCALAR, at, (double)on_int(n, "ignore_index", 0));
        at = on_where(n, ignored, on_number(n, 0, ETC_I64), at);
    }
    Value *index = on_insert(n, at, 1);
    Value *got = index ? ON_BUILD(n, OP_GATHER, "viv", x, (int64_t)1, index) : NULL;
    l->each = on_unary(n, OP_NEG, got ? on_view(n, got, at->type.rank, at->type.dim) : NULL);
    table[0] = at;
    if (weight)
        l->weight = at ? ON_BUILD(n, OP_INDEX_TENSOR, "vV", weight, 1, table) : NULL;
    else if (ignored)
        l->weight = on_full(n, at->type.rank, at->type.dim, 1, t);
    if (weight)
        l->each = on_binary(n, OP_MUL_TENSOR, l->each, l->weight);
    if (ignored) {
        l->each = on_where(n, ignored, zero, l->each);
        l->weight = on_where(n, ignored, zero, l->weight);
    }
    return l->each && (!weight || l->weight);
}

static bool define_loss(OnnxNode *n, Value *x)
{
    Loss l = {.each = NULL};
    Value *at = on_value(n, 1), *weight = on_has(n, 2) ? on_value(n, 2) : NULL, *y;
    const char *how = on_text(n, "reduction", "mean");
    if (!x || !at || n->failed || !pick(n, x, at, weight, &l))
        return false;
    if (!strcmp(how, "none"))
        return on_define(n, 0, l.each);
    if (!strcmp(how, "sum"))
        return on_define(n, 0, all_of(n, OP_SUM_DIM, l.each));
    if (strcmp(how, "mean") != 0)
        return onnx_wrong(n, "has the reduction '%s', expected none, sum or mean", how);
    y = all_of(n, l.weight ? OP_SUM_DIM : OP_MEAN_DIM, l.each);
    if (l.weight)
        y = on_binary(n, OP_DIV_TENSOR, y, all_of(n, OP_SUM_DIM, l.weight));
    return on_define(n, 0, y);
}

bool onnx_nll_loss(OnnxNode *n)
{
    return define_loss(n, on_value(n, 0));
}

bool onnx_cross_entropy(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    if (!x || x->type.rank < 2)
        return onnx_wrong(n, "expects scores of [n, c, ...]");
    Value *y = ON_BUILD(n, OP__LOG_SOFTMAX, "vib", x, (int64_t)1, false);
    return y && on_define(n, 1, y) && define_loss(n, y);
}
