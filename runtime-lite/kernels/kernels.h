/* kernels.h -- the wrappers EtcStatus etc_<kernel>(const EtcCall *c), which etc_rt.h describes. */
#ifndef ETC_KERNELS_H
#define ETC_KERNELS_H

#include "runtime-lite/etc_rt.h"

#define KERNEL(name, function, n_args, n_outs, inplace) EtcKernel etc_##function;
#include "runtime-lite/kernels/kernels.def"

/* Returns a negative number, 0 or a positive number, as strcmp does. */
int etc_compare_text(const char *a, const char *b);

/* Returns the bytes of a tensor.  Returns -1 if a size is negative, or if the bytes or a product
 * of some of the sizes exceed int64_t.  A kernel may multiply any of the sizes, so a size of 0
 * must not hide an overflow. */
int64_t etc_bytes(EtcDtype dtype, const int32_t *dim, int32_t rank);

/* Returns the row with this name in a list of n rows in any order; NULL: there is none. */
const EtcKernelRow *etc_kernel_among(const EtcKernelRow *list, int32_t n, const char *name,
                                     const char *overload);

/* The kernels of rows of ir/ops.def that no .pte calls. */
EtcKernel etc_none; /* refuses every call */
EtcKernel etc_integer_avg_pool2d, etc_integer_convolution, etc_integer_linear, etc_integer_matmul,
    etc_integer_norm, etc_integer_softmax, etc_lookup, etc_packed_attention, etc_packed_linear,
    etc_round_bfloat;

#endif
