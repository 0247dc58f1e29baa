/* decompose.h -- what the files of the decompose pass share: one rule per `decomp` column. */
#ifndef ETC_PASSES_DECOMPOSE_H
#define ETC_PASSES_DECOMPOSE_H

#include "passes/internal.h"

/* Builds what the node computes before it, and puts that in its place; false: reported. */
typedef bool DecompFn(Rewrite *r, Node *n);

#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    DecompFn decomp_##decomp;
#include "ir/ops.def"
DecompFn decomp_none;

bool node_stays_whole(const Node *n); /* the pass leaves one that the model has */
/* The first result of `made` stands for the node's; `made` NULL was reported. */
bool done(Rewrite *r, Node *n, const Node *made);
/* complex.c: a node with complex operands or results becomes nodes of their parts, which pairs, the
 * results of aten.complex, hold together until the walk is over. */
bool rewrite_complex(Rewrite *r, Node *n);
bool complex_is_pair(const Node *n);
bool complex_stays_within(Graph *g, Diag *d);    /* no input or output is complex */
void complex_remove(Graph *g);                   /* the pairs, which nobody reads any more */
bool as_recorded(Rewrite *r, Node *n, Value *v); /* viewed under the recorded sizes */

#endif
