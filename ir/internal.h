/* internal.h -- what the files of ir/ share: the functions that columns of ops.def name. */
#ifndef ETC_IR_INTERNAL_H
#define ETC_IR_INTERNAL_H

#include "ir/ir.h"

#define OP(id, target, out, schema, flags, functional, inplace, infer, decomp, kernel, expr, c,  \
           cost, scratch, quant)                                                                 \
    InferFn infer_##infer;                                                                       \
    CostFn cost_##cost;                                                                          \
    ScratchFn scratch_##scratch;
#include "ir/ops.def"

#endif
