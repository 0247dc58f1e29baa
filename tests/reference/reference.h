/* reference.h -- the core operators once more, naively, in float64: a second opinion on kernels.
 *
 * It shares no code with runtime-lite/kernels and takes no care of speed.  Inputs are row-major
 * float32, outputs float64 of the caller's, whose size follows from the shapes.  Arguments are
 * trusted.  A tap of a convolution outside the image counts as nothing here (the kernels multiply
 * it by zero): the two differ only where a weight is NaN or infinite.
 */
#ifndef ETC_REFERENCE_H
#define ETC_REFERENCE_H

#include <stdint.h>

enum { REF_MAX_RANK = 8 };

typedef struct RefTensor {
    int rank;
    int64_t dim[REF_MAX_RANK];
    const float *data;
} RefTensor;

int64_t ref_numel(const RefTensor *t);

typedef double RefUnary(double a, const double *number);
typedef double RefBinary(double a, double b);

/* y has x's shape, or that of a and b broadcast, which shape receives. */
void ref_unary(RefUnary *f, const RefTensor *x, const double *number, double *y);
void ref_binary(RefBinary *f, const RefTensor *a, const RefTensor *b, RefTensor *shape, double *y);

/* y[..., n] = x[..., k] weight[n, k]^T + bias[n]; bias may be NULL */
void ref_linear(const RefTensor *x, const RefTensor *weight, const float *bias, double *y);
void ref_mm(const RefTensor *a, const RefTensor *b, double *y); /* [m, k] [k, n] */

typedef struct RefConv {
    int64_t stride[2], pad[2], dilation[2], output_pad[2], groups;
    int is_transposed;
} RefConv;

/* x[n, c, h, w], weight as PyTorch has it; shape receives y's. */
void ref_conv(const RefTensor *x, const RefTensor *weight, const float *bias, const RefConv *g,
              RefTensor *shape, double *y);

typedef struct RefPool {
    int64_t kernel[2], stride[2], pad[2], dilation[2], divisor; /* divisor 0: none */
    int ceil_mode, count_pad;
} RefPool;

/* x[n, c, h, w]; where, unless NULL, receives the places of the maxima. */
void ref_max_pool(const RefTensor *x, const RefPool *g, RefTensor *shape, double *y,
                  int64_t *where);
void ref_avg_pool(const RefTensor *x, const RefPool *g, RefTensor *shape, double *y);
void ref_adaptive_avg_pool(const RefTensor *x, int64_t oh, int64_t ow, double *y);

void ref_softmax(const RefTensor *x, int dim, int is_log, double *y);

typedef enum RefReduce { REF_SUM, REF_MEAN, REF_AMAX } RefReduce;

/* Over the dimensions whose bit is set in `dims`. */
void ref_reduce(RefReduce op, const RefTensor *x, unsigned dims, double *y);

/* x[n, c, ...]; weight and bias may be NULL */
void ref_batch_norm(const RefTensor *x, const float *weight, const float *bias, const float *mean,
                    const float *var, double eps, double *y);

#endif
