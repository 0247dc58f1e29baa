/* fixed.c -- wrappers of matmul, norms and functions of 8-bit integers, in fixed point. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/fixed_matmul.h"
#include "runtime-lite/kernels/fixed_norm.h"
#include "runtime-lite/kernels/kernels.h"

static int is_byte(const EtcTensor *t)
{
    return (t->dtype == ETC_I8) || (t->dtype == ETC_U8);
}

static int32_t turn_of(const EtcTensor *t)
{
    return (t->dtype == ETC_I8) ? 0x80 : 0;
}

/* Reads n integers from argument `from` on into v.  Returns 0 if one is not in lo[i] to hi[i]. */
static int read_ints(const EtcCall *c, int32_t from, int32_t n, const int64_t *lo,
                     const int64_t *hi, int64_t *v)
{
    for (int32_t i = 0; i < n; i++) {
        if (!etc_arg_int(c, from + i, &v[i]) || (v[i] < lo[i]) || (v[i] > hi[i])) {
            return 0;
        }
    }
    return 1;
}

/* Arguments: self, mat2, is_transposed, self_zero, mat2_zero, by, output_zero, quant_min,
 * quant_max, dtype, out. */
EtcStatus etc_integer_matmul(const EtcCall *c)
{
    EtcTensor *x, *w, *y;
    int is_transposed;
    int64_t v[6];
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &w) ||
        !etc_arg_bool(c, 2, &is_transposed) || !etc_arg_tensor(c, 10, &y) || !is_byte(x) ||
        !is_byte(w) || !is_byte(y) || (x->rank != 3) || (w->rank != 3)) {
        return ETC_BAD_ARG;
    }
    const int64_t turn = 128 - turn_of(y), at = 128 - turn_of(x), of = 128 - turn_of(w);
    const int64_t lo[6] = {at - 128, of - 128, 0, turn - 128, turn - 128, turn - 128};
    const int64_t hi[6] = {at + 127, of + 127, 0x3fffffff, turn + 127, turn + 127, turn + 127};
    const int32_t m = x->dim[1], k = x->dim[2], n = w->dim[is_transposed ? 1 : 2];
    const int32_t dim[3] = {x->dim[0], m, n};
    if (!read_ints(c, 3, 6, lo, hi, v) || (v[4] > v[5]) || (k < 1) || (k > 32768) ||
        (w->dim[0] != x->dim[0]) || (w->dim[is_transposed ? 2 : 1] != k) ||
        (etc_resize(y, dim, 3) != ETC_OK)) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_plain(x) || !etc_is_plain(w) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if (!etc_may_work(c, etc_numel(y), k)) {
        return ETC_TOO_MUCH;
    }
    const EtcByteMatmul g = {
        x->dim[0], m, n, k, is_transposed ? 1 : n, is_transposed ? k : 1, turn_of(x), turn_of(w),
        (int32_t)v[0] + turn_of(x), (int32_t)v[1] + turn_of(w), (int32_t)v[2], (int32_t)v[3],
        (int32_t)v[4], (int32_t)v[5]};
    etc_matmul_i8(x->data, w->data, y->data, &g);
    return ETC_OK;
}

/* Sets the factors, offsets and channels of q.  Returns 0 if there is not one factor below 2^15 and
 * one offset up to 2^30 (absolute values) per channel. */
static int points_fit(const EtcTensor *factor, const EtcTensor *offset, EtcByteNorm *q)
{
    if ((factor->dtype != ETC_I32) || (offset->dtype != ETC_I32) || (factor->rank != 1) ||
        (offset->rank != 1) || !etc_is_plain(factor) || !etc_is_plain(offset) ||
        (factor->dim[0] != offset->dim[0]) || (factor->dim[0] < 1)) {
        return 0;
    }
    q->factor = (const int32_t *)factor->data;
    q->offset = (const int32_t *)offset->data;
    q->channels = factor->dim[0];
    for (int32_t i = 0; i < q->channels; i++) {
        if ((q->factor[i] < -32767) || (q->factor[i] > 32767) || (q->offset[i] < -0x40000000) ||
            (q->offset[i] > 0x40000000)) {
            return 0;
        }
    }
    return 1;
}

/* Arguments: input, factors, offsets, row, each, is_centred, zero_point, eps, bits, shift,
 * quant_min, quant_max, dtype, out. */
EtcStatus etc_integer_norm(const EtcCall *c)
{
    EtcTensor *x, *factor, *offset, *y;
    EtcByteNorm q;
    int64_t row[2], v[6];
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &factor) ||
        !etc_arg_tensor(c, 2, &offset) || !etc_arg_bool(c, 5, &q.is_centred) ||
        !etc_arg_tensor(c, 13, &y) || !is_byte(x) || !is_byte(y) || !points_fit(factor, offset, &q)) {
        return ETC_BAD_ARG;
    }
    const int64_t least = 0 - turn_of(x), to = 0 - turn_of(y), size[2] = {1, 1},
                  most[2] = {32768, 32768};
    const int64_t lo[6] = {least, 0, 0, 1, to, to};
    const int64_t hi[6] = {least + 255, (INT64_C(1) << 50) - 1, 14, 30, to + 255, to + 255};
    if (!read_ints(c, 3, 2, size, most, row) || !read_ints(c, 6, 6, lo, hi, v) || (v[4] > v[5]) ||
        ((row[0] % row[1]) != 0) || ((etc_numel(x) % row[0]) != 0) ||
        ((q.channels % (row[0] / row[1])) != 0) ||
        (v[2] != (14 - ((etc_norm_bits((int32_t)row[0]) + 1) / 2))) ||
        ((etc_numel(x) / row[0]) > INT32_MAX) || (etc_resize(y, x->dim, x->rank) != ETC_OK)) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    q.rows = (int32_t)(etc_numel(x) / row[0]);
    q.n = (int32_t)row[0];
    q.each = (int32_t)row[1];
    q.turn = turn_of(x);
    q.x_zero = (int32_t)v[0] + q.turn;
    q.eps = (uint64_t)v[1];
    q.bits = (int32_t)v[2];
    q.shift = (int32_t)v[3];
    q.lo = (int32_t)v[4];
    q.hi = (int32_t)v[5];
    etc_norm_i8(x->data, y->data, &q);
    return ETC_OK;
}

/* Arguments: x, table, dtype, out. */
EtcStatus etc_lookup(const EtcCall *c)
{
    EtcTensor *x, *table, *y;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &table) || !etc_arg_tensor(c, 3, &y) ||
        !is_byte(x) || !is_byte(y) || (table->dtype != ETC_U8) || (table->rank != 1) ||
        (table->dim[0] != 256) || (etc_resize(y, x->dim, x->rank) != ETC_OK)) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_plain(x) || !etc_is_plain(table) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    const uint8_t *from = (const uint8_t *)x->data, *of = (const uint8_t *)table->data;
    for (int64_t i = 0, n = etc_numel(x); i < n; i++) {
        ((uint8_t *)y->data)[i] = of[from[i]];
    }
    return ETC_OK;
}
