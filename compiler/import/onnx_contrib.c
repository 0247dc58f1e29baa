/* onnx_contrib.c -- reads operators of com.microsoft, which ONNX Runtime's optimizer and tools for
 * it write. */
#include "compiler/import/onnx.h"
#include <math.h>
#include <string.h>

/* -- activations ------------------------------------------------------------------------------- */

/* Defines output 0 as gelu(x + input 1), by tanh or by erf.  Input 1 may be absent. */
static bool gelu_of_sum(OnnxNode *n, const char *how)
{
    Value *x = on_value(n, 0);
    if (on_has(n, 1))
        x = on_binary(n, OP_ADD_TENSOR, x, on_value(n, 1));
    return x && on_define(n, 0, ON_BUILD(n, OP_GELU, "vs", x, how));
}

bool onnx_bias_gelu(OnnxNode *n)
{
    return gelu_of_sum(n, "none");
}

bool onnx_fast_gelu(OnnxNode *n)
{
    return gelu_of_sum(n, "tanh");
}

bool onnx_quick_gelu(OnnxNode *n)
{
    double alpha = on_float(n, "alpha", 1.702);
    Value *x = on_value(n, 0);
    if (alpha == 1)
        return on_define(n, 0, on_unary(n, OP_SILU, x));
    Value *gate = on_unary(n, OP_SIGMOID, on_scalar(n, OP_MUL_SCALAR, x, alpha));
    return on_define(n, 0, on_binary(n, OP_MUL_TENSOR, x, gate));
}

/* -- products ---------------------------------------------------------------------------------- */

bool onnx_fused_conv(OnnxNode *n)
{
    Value *bias = on_has(n, 2) ? on_value(n, 2) : NULL;
    Value *y = n->failed ? NULL : on_conv(n, on_value(n, 0), on_value(n, 1), bias);
    if (on_has(n, 3))
        y = on_binary(n, OP_ADD_TENSOR, y, on_value(n, 3));
    Activation f = {.name = on_text(n, "activation", "")};
    size_t at = 0;
    on_take_parameters(n, &f, "activation_params", &at, "activation_params", &at);
    return on_define(n, 0, on_activated(n, y, &f));
}

bool onnx_fused_gemm(OnnxNode *n)
{
    Activation f = {.name = on_text(n, "activation", "")};
    size_t none = 0;
    on_take_parameters(n, &f, "", &none, "", &none);
    f.a = on_float(n, "activation_alpha", f.a);
    f.b = on_float(n, "activation_beta", f.b);
    return on_define(n, 0, on_activated(n, on_gemm(n), &f));
}

static Value *last_swapped(OnnxNode *n, Value *x)
{
    int64_t order[MAX_RANK];
    int rank = x ? x->type.rank : 0;
    for (int i = 0; i < rank; i++)
        order[i] = rank < 2 || i < rank - 2 ? i : 2 * rank - 3 - i;
    return on_permute(n, x, order);
}

/* Moves the first axis to the place before the last one, after the axes of the batch. */
static Value *batch_first(OnnxNode *n, Value *x)
{
    int64_t order[MAX_RANK];
    int rank = x ? x->type.rank : 0;
    for (int i = 0; i < rank; i++)
        order[i] = rank < 3 || i == rank - 1 ? i : i == rank - 2 ? 0 : i + 1;
    return on_permute(n, x, order);
}

bool onnx_fused_matmul(OnnxNode *n)
{
    Value *a = on_value(n, 0), *b = on_value(n, 1);
    double alpha = on_float(n, "alpha", 1);
    a = on_int(n, "transBatchA", 0) ? batch_first(n, a) : a;
    b = on_int(n, "transBatchB", 0) ? batch_first(n, b) : b;
    a = on_int(n, "transA", 0) ? last_swapped(n, a) : a;
    b = on_int(n, "transB", 0) ? last_swapped(n, b) : b;
    Value *y = on_matmul(n, a, b);
    return on_define(n, 0, alpha == 1 ? y : on_scalar(n, OP_MUL_SCALAR, y, alpha));
}

/* -- weights of few bits ----------------------------------------------------------------------- */

typedef struct Nbits {
    int64_t k, rows, bits, block, blocks; /* k: terms of a row, with whole blocks; blocks: those of
                                           * a row */
} Nbits;

static bool read_nbits(OnnxNode *n, Nbits *w)
{
    *w = (Nbits){.k = on_int(n, "K", 0), .rows = on_int(n, "N", 0), .bits = on_int(n, "bits", 4),
                 .block = on_int(n, "block_size", 0)};
    if (w->bits != 2 && w->bits != 4 && w->bits != 8)
        return onnx_unsupported(n, "has weights of %lld bits, expected 2, 4 or 8", (long long)w->bits);
    if (w->k < 1 || w->k > 1 << 28 || w->rows < 1 || w->rows > 1 << 28 || w->block < 8 ||
        w->block > 1 << 20)
        return onnx_wrong(n, "has a K, N or block_size out of range");
    w->blocks = (w->k + w->block - 1) / w->block;
    w->k = w->blocks * w->block;
    return true;
}

/* Unpacks rows * columns numbers of few bits and subtracts half their range from each.  Each row
 * begins with a byte of its own.  NULL: an error was reported. */
static const int8_t *unpacked(OnnxNode *n, int input, const Nbits *w, int64_t columns)
{
    const OnnxConst *c = on_const(n, input);
    int64_t each = 8 / w->bits, row = (columns + each - 1) / each, bytes, count;
    if (!c || c->type.dtype != ETC_U8) {
        onnx_unsupported(n, "has weights or zero points that are not constant bytes");
        return NULL;
    }
    if (!mul_ok(w->rows, row, &bytes) || bytes != c->n_bytes || !mul_ok(w->rows, columns, &count)) {
        onnx_wrong(n, "input %d has %lld bytes, which are not those of N rows", input,
                   (long long)c->n_bytes);
        return NULL;
    }
    int8_t *to = arena_bytes(n->in->program->arena, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t r = i / columns, at = i % columns;
        int v = c->data[r * row + at / each] >> (at % each * w->bits) & ((1 << w->bits) - 1);
        to[i] = (int8_t)(v - (1 << (w->bits - 1)));
    }
    return to;
}

static Value *integers(OnnxNode *n, const int8_t *data, int64_t rows, int64_t columns)
{
    Dim dim[2] = {DIM(rows), DIM(columns)};
    OnnxConst c = {.type = type_tensor(n->in->program, ETC_I8, 2, dim), .n_bytes = rows * columns,
                   .data = (const uint8_t *)data};
    return data ? onnx_const_value(n->in, "packed", &c) : NULL;
}

/* Builds (q - zero) * scale for zero points that are floats, one for each block of a row. */
static Value *by_floats(OnnxNode *n, const Nbits *w, Value *q, Value *scale)
{
    Dim whole[2] = {DIM(w->rows), DIM(w->k)}, each[3] = {DIM(w->rows), DIM(w->blocks), DIM(1)};
    Dim apart[3] = {DIM(w->rows), DIM(w->blocks), DIM(w->block)};
    Value *z = on_cast(n, on_view(n, on_value(n, 3), 3, each), ETC_F32);
    z = on_scalar(n, OP_SUB_SCALAR, z, (double)(1 << (w->bits - 1)));
    Value *f = on_binary(n, OP_SUB_TENSOR, on_view(n, on_cast(n, q, ETC_F32), 3, apart), z);
    return on_view(n, on_binary(n, OP_MUL_TENSOR, f, on_view(n, scale, 3, each)), 2, whole);
}

static Value *floats_of(OnnxNode *n, const Nbits *w, Value *q, Value *scale)
{
    int64_t lo = -(1 << (w->bits - 1)), hi = -lo - 1;
    const OnnxConst *c = on_has(n, 3) ? on_const(n, 3) : NULL;
    if (on_has(n, 3) && (!c || c->type.dtype != ETC_U8))
        return by_floats(n, w, q, scale);
    Value *zero = c ? integers(n, unpacked(n, 3, w, w->blocks), w->rows, w->blocks) : NULL;
    if (n->failed || !q || !scale)
        return NULL;
    return ON_BUILD(n, OP_DEQUANTIZE_PER_CHANNEL_GROUP, "vvviitit", q, scale, zero, lo, hi, ETC_I8,
                    w->block, ETC_F32);
}

bool onnx_matmul_nbits(OnnxNode *n)
{
    Nbits w;
    Value *x = on_value(n, 0), *bias = on_has(n, 5) ? on_value(n, 5) : NULL;
    if (!x || n->failed || !read_nbits(n, &w))
        return false;
    if (on_has(n, 4))
        return onnx_unsupported(n, "has an order of groups (g_idx), which is not supported");
    Dim dim[2] = {DIM(w.rows), DIM(w.blocks)};
    Value *q = integers(n, unpacked(n, 1, &w, w.k), w.rows, w.k);
    Value *scale = q ? on_cast(n, on_view(n, on_value(n, 2), 2, dim), ETC_F32) : NULL;
    Value *f = floats_of(n, &w, q, scale);
    f = on_cast(n, f, x->type.dtype);
    if (f && w.k != on_int(n, "K", 0))
        f = on_part(n, f, 1, DIM(0), DIM(on_int(n, "K", 0)), 1);
    return f && on_define(n, 0, ON_BUILD(n, OP_LINEAR, "vvv", x, f, bias));
}

/* -- norms ------------------------------------------------------------------------------------- */

static Value *normed(OnnxNode *n, Value *x, Value *scale, Value *shift, bool is_rms)
{
    double eps = on_float(n, "epsilon", 1e-12);
    if (!x || !x->type.rank || n->failed)
        return NULL;
    const Dim *last = x->type.dim + x->type.rank - 1;
    if (is_rms)
        return ON_BUILD(n, OP_RMS_NORM, "vDvf", x, 1, last, scale, eps);
    return ON_BUILD(n, OP_LAYER_NORM, "vDvvf", x, 1, last, scale, shift, eps);
}

/* Defines output 0 as the norm of x + skip + bias, and output 3 as this sum. */
static bool skipped(OnnxNode *n, bool is_rms)
{
    int bias = is_rms ? 3 : 4;
    Value *x = on_binary(n, OP_ADD_TENSOR, on_value(n, 0), on_value(n, 1));
    Value *scale = on_value(n, 2), *shift = !is_rms && on_has(n, 3) ? on_value(n, 3) : NULL;
    if (x && on_has(n, bias))
        x = on_binary(n, OP_ADD_TENSOR, x, on_value(n, bias));
    if (on_wants(n, 1) || on_wants(n, 2))
        return onnx_unsupported(n, "has output 1 or 2 (means, deviations), which is not supported");
    return scale && on_define(n, 0, normed(n, x, scale, shift, is_rms)) && on_define(n, 3, x);
}

bool onnx_skip_layer_norm(OnnxNode *n)
{
    return skipped(n, false);
}

bool onnx_skip_rms_norm(OnnxNode *n)
{
    return skipped(n, true);
}

/* Looks up rows of input `table`. */
static Value *embedded(OnnxNode *n, int table, Value *at)
{
    Value *t = on_value(n, table);
    return t && at ? ON_BUILD(n, OP_EMBEDDING, "vv", t, on_cast(n, at, ETC_I64)) : NULL;
}

bool onnx_embed_layer_norm(OnnxNode *n)
{
    Value *at = on_value(n, 0);
    if (!at || at->type.rank != 2)
        return at && onnx_wrong(n, "expects word ids of [batch, steps]");
    Value *place = on_has(n, 8) ? on_value(n, 8)
                                : on_insert(n, on_arange(n, DIM(0), at->type.dim[1]), 0);
    Value *x = on_binary(n, OP_ADD_TENSOR, embedded(n, 2, at), embedded(n, 3, place));
    if (x && on_has(n, 1) && on_has(n, 4))
        x = on_binary(n, OP_ADD_TENSOR, x, embedded(n, 4, on_value(n, 1)));
    Value *count = on_full(n, 1, at->type.dim, 0, ETC_I32);
    if (on_has(n, 7))
        count = on_cast(n, on_sum(n, OP_SUM_DIM, on_value(n, 7), 1, false), ETC_I32);
    Value *scale = on_value(n, 5), *shift = on_value(n, 6);
    return scale && shift && on_define(n, 0, normed(n, x, scale, shift, false)) &&
           on_define(n, 1, count) && on_define(n, 2, x);
}

/* -- others ------------------------------------------------------------------------------------ */

bool onnx_expand_dims(OnnxNode *n)
{
    int64_t axis[MAX_RANK];
    int count, at;
    Value *x = on_value(n, 0);
    if (!x || !on_numbers(n, 1, axis, &count))
        return false;
    if (count != 1)
        return onnx_wrong(n, "has %d axes, expected 1", count);
    return on_axis(n, axis[0], x->type.rank + 1, &at) && on_define(n, 0, on_insert(n, x, at));
}

/* Defines output 0 as the distances between the rows of two matrices, or their squares. */
bool onnx_cdist(OnnxNode *n)
{
    const char *metric = on_text(n, "metric", "sqeuclidean");
    bool is_root = !strcmp(metric, "euclidean");
    Value *a = on_value(n, 0), *b = on_value(n, 1);
    if (!a || !b || a->type.rank != 2 || b->type.rank != 2)
        return a && b && onnx_wrong(n, "expects two matrices");
    if (!is_root && strcmp(metric, "sqeuclidean") != 0)
        return onnx_unsupported(n, "has the metric '%s'", metric);
    Value *d = on_binary(n, OP_SUB_TENSOR, on_insert(n, a, 1), on_insert(n, b, 0));
    d = on_sum(n, OP_SUM_DIM, on_binary(n, OP_MUL_TENSOR, d, d), 2, false);
    return on_define(n, 0, is_root ? on_unary(n, OP_SQRT, d) : d);
}

/* Makes the windows of an axis a new last axis. */
bool onnx_unfold_tensor(OnnxNode *n)
{
    int axis;
    Dim dim[MAX_RANK + 1];
    Value *x = on_value(n, 0);
    int64_t size = on_int(n, "size", 0), step = on_int(n, "step", 1);
    if (!x || !on_axis(n, on_int(n, "dim", -1), x->type.rank, &axis))
        return false;
    Dim all = x->type.dim[axis];
    if (all.expr || size < 1 || step < 1 || size > all.value || x->type.rank == MAX_RANK)
        return onnx_unsupported(n,
                                "unfolds an axis of symbolic size, or by windows that do not fit");
    for (int i = 0; i < x->type.rank; i++)
        dim[i] = i == axis ? DIM((all.value - size) / step + 1) : x->type.dim[i];
    dim[x->type.rank] = DIM(size);
    Type t = type_tensor(n->in->program, x->type.dtype, x->type.rank + 1, dim);
    return on_define(n, 0, ON_GIVEN(n, OP_UNFOLD, t, "viii", x, (int64_t)axis, size, step));
}

/* Unpacks the integers of `bits` bits in each byte, the lowest bits first, so that they are
 * neighbours along the last axis. */
static Value *unpacked_bytes(OnnxNode *n, Value *q, int64_t bits)
{
    enum { MOST = 4 };
    int64_t each = 8 / bits, mask = ((int64_t)1 << bits) - 1;
    Value *part[MOST];
    Dim dim[MAX_RANK];
    if (!q || each == 1)
        return q;
    int last = q->type.rank - 1;
    for (int i = 0; i < each; i++) {
        Value *v = i ? ON_BUILD(n, OP_FLOOR_DIVIDE_SCALAR, "vi", q, (int64_t)1 << (i * bits)) : q;
        v = v ? ON_GIVEN(n, OP_BITWISE_AND_SCALAR, v->type, "vi", v, mask) : NULL;
        if (!(part[i] = on_insert(n, v, last + 1)))
            return NULL;
    }
    for (int i = 0; i <= last; i++)
        dim[i] = i == last ? dim_mul(n->in->program, q->type.dim[i], DIM(each)) : q->type.dim[i];
    q = ON_BUILD(n, OP_CAT, "Vi", (int)each, part, (int64_t)(last + 1));
    return on_view(n, q, last + 1, dim);
}

/* Looks up rows of the matrix of input i, and unpacks them if their bytes hold several integers of
 * `bits` bits. */
static Value *rows_at(OnnxNode *n, int i, Value *at, int64_t bits)
{
    Value *t = on_value(n, i);
    if (!t || !at)
        return NULL;
    bool is_packed = t->type.dtype == ETC_U8 && !on_bits(n, i);
    if (!dtype_is_float(t->type.dtype))
        t = on_cast(n, t, ETC_I32);
    t = t ? ON_BUILD(n, OP_EMBEDDING, "vv", t, at) : NULL;
    return is_packed ? unpacked_bytes(n, t, bits) : t;
}

/* Looks up rows of a matrix of integers, which have a scale for each block of a row: an
 * embedding. */
bool onnx_gather_block_quantized(OnnxNode *n)
{
    int64_t bits = on_int(n, "bits", 4), block = on_int(n, "block_size", 128);
    int64_t along = on_int(n, "quantize_axis", 1);
    Value *table = on_value(n, 0), *at = on_cast(n, on_value(n, 1), ETC_I64);
    if (!table || !at)
        return false;
    if (table->type.rank != 2 || on_int(n, "gather_axis", 0) != 0 || (along != 1 && along != -1) ||
        (bits != 2 && bits != 4 && bits != 8) || block < 16 || block > 1 << 20)
        return onnx_unsupported(n, "gathers other than rows of a matrix whose blocks lie along rows");
    Value *q = rows_at(n, 0, at, bits), *scale = q ? rows_at(n, 2, at, bits) : NULL;
    Value *zero = scale && on_has(n, 3) ? rows_at(n, 3, at, bits) : NULL;
    if (!scale || n->failed)
        return false;
    int rank = q->type.rank;
    Dim whole = q->type.dim[rank - 1], blocks = scale->type.dim[rank - 1], dim[MAX_RANK + 1];
    if (rank == MAX_RANK || !dim_equal(whole, dim_mul(n->in->program, blocks, DIM(block))))
        return onnx_unsupported(n, "has rows that are no whole blocks, or too many axes");
    memcpy(dim, q->type.dim, (size_t)rank * sizeof *dim);
    dim[rank - 1] = blocks;
    dim[rank] = DIM(block);
    bool is_packed = table->type.dtype == ETC_U8 && !on_bits(n, 0);
    Value *f = on_cast(n, on_view(n, q, rank + 1, dim), ETC_F32);
    dim[rank] = DIM(1);
    if (zero) {
        zero = on_part(n, zero, rank - 1, DIM(0), blocks, 1); /* the last byte may have more of them */
        f = on_binary(n, OP_SUB_TENSOR, f, on_view(n, on_cast(n, zero, ETC_F32), rank + 1, dim));
    } else if (is_packed) {
        f = on_scalar(n, OP_SUB_SCALAR, f, (double)(1 << (bits - 1)));
    }
    EtcDtype t = scale->type.dtype;
    f = on_binary(n, OP_MUL_TENSOR, f, on_view(n, on_cast(n, scale, ETC_F32), rank + 1, dim));
    dim[rank - 1] = whole;
    return on_define(n, 0, on_cast(n, on_view(n, f, rank, dim), t));
}
