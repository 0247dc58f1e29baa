/* decompose.h -- shared by the files of pass decompose: a rule for each name in column `decomp`. */
#ifndef ETC_PASSES_DECOMPOSE_H
#define ETC_PASSES_DECOMPOSE_H

#include "passes/internal.h"

/* Builds nodes before n that compute the same, and replaces n by their result.  Returns false if
 * that fails, which is reported. */
typedef bool DecompFn(Rewrite *r, Node *n);

#define OP(id, target, out, schema, flags, access, functional, inplace, infer, decomp, kernel, expr, \
           c, cost, scratch, quant)                                                                  \
    DecompFn decomp_##decomp;
#include "ir/ops.def"
DecompFn decomp_none;

bool node_stays_whole(const Node *n); /* the pass does not rewrite such a node of the model */
/* Replaces the first result of n by that of `made`, and removes n.  Returns false if `made` is NULL,
 * which was reported. */
bool done(Rewrite *r, Node *n, const Node *made);
/* complex.c: rewrites a node with complex operands or results to nodes that compute with real and
 * imaginary parts.  Results of aten.complex keep the two parts of a value together until the walk
 * is over. */
bool rewrite_complex(Rewrite *r, Node *n);
bool complex_is_pair(const Node *n);
bool complex_stays_within(Graph *g, Diag *d);    /* no input or output is complex */
void complex_remove(Graph *g);                   /* removes the pairs, which nobody reads now */
bool as_recorded(Rewrite *r, Node *n, Value *v); /* replaces n by v under the recorded sizes */

#endif
