/* quantize.c -- wrappers of quantization per tensor, channel and token. */
#include "runtime-lite/kernels/quantize.h"
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

#define FLOAT_EPSILON 1.1920928955078125e-07f

/* The arguments of a call. */
typedef struct Quant {
    EtcQuant g;
    EtcTensor *x, *y;
    const void *scale, *zero;
    double own_scale; /* the scale and zero point, if the call gives numbers */
    int64_t own_zero;
} Quant;

static int is_quantized(int dtype)
{
    return (dtype == ETC_U8) || (dtype == ETC_I8) || (dtype == ETC_I16) || (dtype == ETC_I32);
}

/* Returns whether [lo, hi] lies within the dtype. */
static int range_fits(int64_t lo, int64_t hi, int dtype)
{
    const int64_t bits = 8 * (int64_t)etc_dtype_size(dtype);
    const int64_t half = INT64_C(1) << (bits - 1);
    const int64_t least = (dtype == ETC_U8) ? 0 : -half;
    return (lo <= hi) && (lo >= least) && (hi < (least + (2 * half)));
}

/* Reads the tensors of scales and zero points.  Without zero points, all are 0. */
static EtcStatus read_points(const EtcCall *c, Quant *q)
{
    EtcTensor *scale, *zero;
    if (!etc_arg_tensor(c, 1, &scale) || !etc_arg_opt_tensor(c, 2, &zero) ||
        (etc_numel(scale) != q->g.n) || ((zero != NULL) && (etc_numel(zero) != q->g.n))) {
        return ETC_BAD_ARG;
    }
    if (((scale->dtype != ETC_F32) && (scale->dtype != ETC_F64)) || !etc_is_plain(scale) ||
        ((zero != NULL) && ((etc_is_int((int)zero->dtype) == 0) || (zero->dtype == ETC_BOOL) ||
                            (zero->dtype > ETC_I64) || !etc_is_plain(zero)))) {
        return ETC_UNSUPPORTED;
    }
    q->g.scale = (int32_t)scale->dtype;
    q->g.zero = (zero != NULL) ? (int32_t)zero->dtype : (int32_t)ETC_I64;
    q->scale = scale->data;
    q->zero = (zero != NULL) ? zero->data : NULL;
    return ETC_OK;
}

static EtcStatus read_numbers(const EtcCall *c, Quant *q)
{
    if (!etc_arg_double(c, 1, &q->own_scale) || !etc_arg_int(c, 2, &q->own_zero)) {
        return ETC_BAD_ARG;
    }
    q->g.scale = ETC_F64;
    q->g.zero = ETC_I64;
    q->scale = &q->own_scale;
    q->zero = &q->own_zero;
    return ETC_OK;
}

/* Reads and checks the input, the result at argument `out` and the range at `range` and the next;
 * resizes the result. */
static EtcStatus read_tensors(const EtcCall *c, int32_t range, int32_t out, int quantizes, Quant *q)
{
    memset(q, 0, sizeof *q);
    if (!etc_arg_tensor(c, 0, &q->x) || !etc_arg_tensor(c, out, &q->y) ||
        !etc_arg_int(c, range, &q->g.lo) || !etc_arg_int(c, range + 1, &q->g.hi)) {
        return ETC_BAD_ARG;
    }
    const EtcTensor *real = quantizes ? q->x : q->y, *whole = quantizes ? q->y : q->x;
    if ((real->dtype != ETC_F32) || !is_quantized((int)whole->dtype)) {
        return ETC_UNSUPPORTED;
    }
    if (quantizes && !range_fits(q->g.lo, q->g.hi, (int)whole->dtype)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = etc_resize(q->y, q->x->dim, q->x->rank);
    if ((st == ETC_OK) && !etc_same_layout(q->x, q->y)) {
        st = ETC_UNSUPPORTED;
    }
    q->g.quantized = (int32_t)whole->dtype;
    q->g.outer = 1;
    q->g.n = 1;
    q->g.inner = etc_numel(q->x);
    return st;
}

static EtcStatus run(Quant *q, int quantizes)
{
    if (etc_numel(q->x) == 0) { /* an empty tensor may have very many rows */
        return ETC_OK;
    }
    if (quantizes) {
        etc_quantize_f32(q->y->data, (const float *)q->x->data, q->scale, q->zero, &q->g);
    } else {
        etc_dequantize_f32((float *)q->y->data, q->x->data, q->scale, q->zero, &q->g);
    }
    return ETC_OK;
}

/* -- one scale for all ------------------------------------------------------------------- */

static EtcStatus per_tensor(const EtcCall *c, int32_t out, int quantizes, int is_tensor)
{
    Quant q;
    EtcStatus st = read_tensors(c, 3, out, quantizes, &q);
    if (st == ETC_OK) {
        st = is_tensor ? read_points(c, &q) : read_numbers(c, &q);
    }
    if (is_tensor && (st == ETC_OK) && (q.zero == NULL)) {
        st = ETC_BAD_ARG;
    }
    return (st == ETC_OK) ? run(&q, quantizes) : st;
}

/* Arguments: x, scale, zero point, min, max, dtype, out. */
EtcStatus etc_quantize_per_tensor(const EtcCall *c)
{
    return per_tensor(c, 6, 1, 0);
}

EtcStatus etc_quantize_per_tensor_tensor(const EtcCall *c)
{
    return per_tensor(c, 6, 1, 1);
}

/* Arguments: x, scale, zero point, min, max, dtype, out_dtype, out. */
EtcStatus etc_dequantize_per_tensor(const EtcCall *c)
{
    return per_tensor(c, 7, 0, 0);
}

EtcStatus etc_dequantize_per_tensor_tensor(const EtcCall *c)
{
    return per_tensor(c, 7, 0, 1);
}

/* -- one scale per channel or token ------------------------------------------------------ */

static EtcStatus run_points(const EtcCall *c, int quantizes, Quant *q)
{
    if (!etc_is_plain(q->x)) {
        return ETC_UNSUPPORTED;
    }
    EtcStatus st = read_points(c, q);
    q->g.is_wide = q->g.scale == (int32_t)ETC_F64;
    return (st == ETC_OK) ? run(q, quantizes) : st;
}

/* Arguments: x, scales, zero points, axis, min, max, dtype, out_dtype if it dequantizes, out. */
static EtcStatus per_channel(const EtcCall *c, int32_t out, int quantizes)
{
    Quant q;
    int64_t axis;
    EtcStatus st = read_tensors(c, 4, out, quantizes, &q);
    if ((st == ETC_OK) && !etc_arg_int(c, 3, &axis)) {
        st = ETC_BAD_ARG;
    }
    if (st != ETC_OK) {
        return st;
    }
    const int32_t d = etc_dim(axis, q.x->rank);
    if ((d < 0) || (q.x->rank == 0)) {
        return ETC_BAD_ARG;
    }
    q.g.inner = 1;
    for (int32_t i = 0; i < q.x->rank; i++) {
        q.g.outer *= (i < d) ? q.x->dim[i] : 1;
        q.g.inner *= (i > d) ? q.x->dim[i] : 1;
    }
    q.g.n = q.x->dim[d];
    return run_points(c, quantizes, &q);
}

EtcStatus etc_quantize_per_channel(const EtcCall *c)
{
    return per_channel(c, 7, 1);
}

EtcStatus etc_dequantize_per_channel(const EtcCall *c)
{
    return per_channel(c, 8, 0);
}

/* Arguments: x, scales, zero points, min, max, dtype, output_dtype if it dequantizes, out.  There
 * is one scale per row. */
static EtcStatus per_token(const EtcCall *c, int32_t out, int quantizes)
{
    Quant q;
    EtcStatus st = read_tensors(c, 3, out, quantizes, &q);
    if ((st == ETC_OK) && (q.x->rank == 0)) {
        st = ETC_BAD_ARG;
    }
    if (st != ETC_OK) {
        return st;
    }
    q.g.inner = q.x->dim[q.x->rank - 1];
    for (int32_t i = 0; i < (q.x->rank - 1); i++) {
        q.g.n *= q.x->dim[i];
    }
    q.g.adds_first = 1;
    return run_points(c, quantizes, &q);
}

EtcStatus etc_quantize_per_token(const EtcCall *c)
{
    return per_token(c, 6, 1);
}

EtcStatus etc_dequantize_per_token(const EtcCall *c)
{
    return per_token(c, 7, 0);
}

/* -- scales of what is there ------------------------------------------------------------- */

static EtcStatus choose(const EtcTensor *x, int64_t rows, int64_t lo, int64_t hi, float eps,
                        int by_error, EtcTensor *scale, EtcTensor *zero)
{
    if ((scale->dtype != ETC_F64) || (zero->dtype != ETC_I64) || !etc_is_plain(scale) ||
        !etc_is_plain(zero) || !etc_is_plain(x) || (x->dtype != ETC_F32)) {
        return ETC_UNSUPPORTED;
    }
    const int64_t n = (rows > 0) ? (etc_numel(x) / rows) : 0;
    if ((rows > 0) && (n == 0)) {
        return ETC_BAD_ARG;
    }
    for (int64_t i = 0; i < rows; i++) {
        etc_choose_f32((const float *)x->data + (i * n), n, lo, hi, eps, by_error,
                       (double *)scale->data + i, (int64_t *)zero->data + i);
    }
    return ETC_OK;
}

/* Arguments: x, min, max, eps, dtype, scale, zero point. */
EtcStatus etc_choose_qparams(const EtcCall *c)
{
    EtcTensor *x, *scale, *zero;
    int64_t lo, hi;
    const int64_t one = 1;
    double eps;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &lo) || !etc_arg_int(c, 2, &hi) ||
        !etc_arg_double(c, 3, &eps) || !etc_arg_tensor(c, 5, &scale) ||
        !etc_arg_tensor(c, 6, &zero) || (lo >= hi) || !range_fits(lo, hi, ETC_I32) ||
        !(eps > 0.0)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = etc_resize64(scale, &one, 1);
    st = (st == ETC_OK) ? etc_resize64(zero, &one, 1) : st;
    return (st == ETC_OK) ? choose(x, 1, lo, hi, (float)eps, 0, scale, zero) : st;
}

/* Arguments: x, dtype, scales, zero points.  There is one scale and one zero point per row. */
EtcStatus etc_choose_qparams_per_token(const EtcCall *c)
{
    EtcTensor *x, *scale, *zero;
    int32_t dim[ETC_MAX_RANK];
    int64_t rows = 1;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 2, &scale) ||
        !etc_arg_tensor(c, 3, &zero) || (x->rank == 0)) {
        return ETC_BAD_ARG;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        dim[i] = (i < (x->rank - 1)) ? x->dim[i] : 1;
        rows *= dim[i];
    }
    EtcStatus st = etc_resize(scale, dim, x->rank);
    st = (st == ETC_OK) ? etc_resize(zero, dim, x->rank) : st;
    return (st == ETC_OK) ? choose(x, rows, -128, 127, FLOAT_EPSILON, 1, scale, zero) : st;
}
