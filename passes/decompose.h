/* decompose.h -- what the files of the decompose pass share: one rule per `decomp` column. */
#ifndef ETC_PASSES_DECOMPOSE_H
#define ETC_PASSES_DECOMPOSE_H

#include "passes/internal.h"

/* Builds what the node computes before it, and puts that in its place; false: reported. */
typedef bool DecompFn(Rewrite *r, Node *n);

#define OP(id, target, out, schema, flags, functional, inplace, infer, decomp, kernel, expr, c,  \
           cost, scratch, quant)                                                                 \
    DecompFn decomp_##decomp;
#include "ir/ops.def"
DecompFn decomp_none;

/* The first result of `made` stands for the node's; `made` NULL was reported. */
bool done(Rewrite *r, Node *n, const Node *made);
bool as_value(Rewrite *r, Node *n, Value *v);    /* the same of a value */
bool as_recorded(Rewrite *r, Node *n, Value *v); /* and viewed under the recorded sizes */

/* The first result of an op of one or two operands, built before n; NULL where an operand is NULL
 * or on failure, which was reported. */
Value *build1(Rewrite *r, Node *n, OpId op, Value *a);
Value *build2(Rewrite *r, Node *n, OpId op, Value *a, Value *b);
Value *build_scalar(Rewrite *r, Node *n, OpId op, Value *a, double number);
Value *build_slice(Rewrite *r, Node *n, Value *x, int64_t axis, Dim from, Dim to);

#endif
