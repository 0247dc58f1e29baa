/* infer_quant.c -- types of quantized tensors, and of the scales and zero points they come with. */
#include "ir/internal.h"
#include <inttypes.h>

static Program *program_of(const Node *n)
{
    return n->graph->program;
}

static EtcDtype dtype_of(const Node *n, const char *name, EtcDtype otherwise)
{
    int i = arg_find(n, name);
    return i >= 0 && n->arg[i].kind == ARG_DTYPE ? n->arg[i].dtype : otherwise;
}

static bool check_range(const Node *n, Diag *d)
{
    int64_t lo, hi;
    if (!get_int(n, arg_find(n, "quant_min"), &lo, d) ||
        !get_int(n, arg_find(n, "quant_max"), &hi, d))
        return false;
    return lo <= hi ||
           diag_error(d, n->loc, "quant_min is %" PRId64 ", above quant_max %" PRId64, lo, hi);
}

/* Whether the range lies within the integers of the result. */
static bool range_fits(const Node *n, EtcDtype t, Diag *d)
{
    int64_t lo = 0, hi = 0, half = 0;
    bool is_unsigned = t == ETC_U8 || t == ETC_U16;
    arg_int(n, arg_find(n, "quant_min"), &lo);
    arg_int(n, arg_find(n, "quant_max"), &hi);
    if (dtype_is_int(t) && etc_dtype_size((int)t) < sizeof half)
        half = INT64_C(1) << (8 * etc_dtype_size((int)t) - 1);
    int64_t least = is_unsigned ? 0 : -half;
    return (half && lo >= least && hi < least + 2 * half) ||
           diag_error(d, n->loc, "%s does not hold %" PRId64 " to %" PRId64, dtype_name(t), lo, hi);
}

/* The result of a row that quantizes x, or undoes it. */
static bool quantized(const Node *n, Type x, Type *out, Diag *d)
{
    if (!range_fits(n, dtype_or(n, ETC_I8), d))
        return false;
    if (!dtype_is_float(x.dtype))
        return diag_error(d, n->loc, "input has dtype %s, expected a floating-point one",
                          dtype_name(x.dtype));
    return set_tensor(n, out, dtype_or(n, ETC_I8), x.rank, x.dim, d);
}

static bool dequantized(const Node *n, Type x, Type *out, Diag *d)
{
    EtcDtype dtype = dtype_of(n, "out_dtype", dtype_of(n, "output_dtype", ETC_F32));
    if (x.dtype != dtype_or(n, x.dtype))
        return diag_error(d, n->loc, "input has dtype %s, expected %s", dtype_name(x.dtype),
                          dtype_name(dtype_or(n, x.dtype)));
    return set_tensor(n, out, dtype, x.rank, x.dim, d);
}

/* Arguments 1 and 2: scales and zero points, `count` of each. */
static bool check_points(const Node *n, Dim count, Diag *d)
{
    for (int i = 1; i < 3; i++) {
        Type t;
        if (!get_optional(n, i, &t, d) || (t.is_none && !get_tensor(n, 1, &t, d)))
            return false;
        if (n->arg[i].kind == ARG_NONE)
            continue;
        Dim have = dims_product(program_of(n), t.dim, t.rank);
        bool fits = i == 1 ? t.dtype == ETC_F32 || t.dtype == ETC_F64 : dtype_is_int(t.dtype);
        if (!fits)
            return diag_error(d, n->loc, "%s has dtype %s", arg_name(n, i), dtype_name(t.dtype));
        if (!dims_agree(have, count))
            return diag_error(d, n->loc, "%s has %s elements, expected %s", arg_name(n, i),
                              dim_text(program_of(n), have), dim_text(program_of(n), count));
    }
    return true;
}

bool infer_quantize(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, 0, &x, d) && check_range(n, d) && quantized(n, x, out, d);
}

bool infer_dequantize(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, 0, &x, d) && check_range(n, d) && dequantized(n, x, out, d);
}

bool infer_quantize_tensor(const Node *n, Type *out, Diag *d)
{
    return check_points(n, DIM(1), d) && infer_quantize(n, out, d);
}

bool infer_dequantize_tensor(const Node *n, Type *out, Diag *d)
{
    return check_points(n, DIM(1), d) && infer_dequantize(n, out, d);
}

static bool check_channels(const Node *n, Diag *d)
{
    Type x;
    int axis;
    return get_rank(n, 0, 1, MAX_RANK, &x, d) && get_axis(n, 3, x.rank, &axis, d) &&
           check_points(n, x.dim[axis], d);
}

bool infer_quantize_per_channel(const Node *n, Type *out, Diag *d)
{
    return check_channels(n, d) && infer_quantize(n, out, d);
}

bool infer_dequantize_per_channel(const Node *n, Type *out, Diag *d)
{
    return check_channels(n, d) && infer_dequantize(n, out, d);
}

static bool check_tokens(const Node *n, Diag *d)
{
    Type x;
    return get_rank(n, 0, 1, MAX_RANK, &x, d) &&
           check_points(n, dims_product(program_of(n), x.dim, x.rank - 1), d);
}

bool infer_quantize_per_token(const Node *n, Type *out, Diag *d)
{
    return check_tokens(n, d) && infer_quantize(n, out, d);
}

bool infer_dequantize_per_token(const Node *n, Type *out, Diag *d)
{
    return check_tokens(n, d) && infer_dequantize(n, out, d);
}

/* Groups lie along the last axis of a matrix. */
bool infer_dequantize_group(const Node *n, Type *out, Diag *d)
{
    Type x;
    int64_t size;
    if (!get_rank(n, 0, 2, 2, &x, d) || !get_int(n, arg_find(n, "group_size"), &size, d))
        return false;
    if (x.dim[0].expr || x.dim[1].expr || size < 1 || x.dim[1].value % size)
        return diag_error(d, n->loc, "groups of %" PRId64 " do not divide its rows", size);
    return check_points(n, DIM(x.dim[0].value * (x.dim[1].value / size)), d) &&
           infer_dequantize(n, out, d);
}

/* -- scales of what is there ---------------------------------------------------------- */

bool infer_choose_qparams(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, 0, &x, d) && check_range(n, d) &&
           set_tensor(n, &out[0], ETC_F64, 1, &DIM(1), d) &&
           set_tensor(n, &out[1], ETC_I64, 1, &DIM(1), d);
}

bool infer_choose_per_token(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    if (!get_rank(n, 0, 1, MAX_RANK, &x, d))
        return false;
    for (int i = 0; i < x.rank; i++)
        dim[i] = i < x.rank - 1 ? x.dim[i] : DIM(1);
    return set_tensor(n, &out[0], ETC_F64, x.rank, dim, d) &&
           set_tensor(n, &out[1], ETC_I64, x.rank, dim, d);
}

/* -- torchao's forms: blocks along every axis ------------------------------------------- */

/* Blocks per axis; an axis of one block goes where the scales do not keep it. */
static bool blocks(const Node *n, int arg, Type x, bool keep, Dim *dim, int *rank, Diag *d)
{
    Dim block[MAX_RANK];
    int count;
    if (!get_sizes(n, arg, block, &count, d))
        return false;
    *rank = 0;
    if (count != x.rank)
        return diag_error(d, n->loc, "block_size has %d entries for %d axes", count, x.rank);
    for (int i = 0; i < x.rank; i++) {
        bool is_one = dims_agree(block[i], x.dim[i]);
        bool is_all = dim_equal(block[i], DIM(1));
        bool divides = !block[i].expr && !x.dim[i].expr && block[i].value > 0 &&
                       x.dim[i].value % block[i].value == 0;
        if (!is_one && !is_all && !divides)
            return diag_error(d, n->loc, "blocks of %s do not divide axis %d of size %s",
                              dim_text(program_of(n), block[i]), i,
                              dim_text(program_of(n), x.dim[i]));
        bool goes = is_one && !is_all;
        if (!goes || keep)
            dim[(*rank)++] = goes ? DIM(1) : is_all ? x.dim[i]
                                                    : DIM(x.dim[i].value / block[i].value);
    }
    return true;
}

bool infer_choose_affine(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    int rank;
    if (!get_tensor(n, 0, &x, d) ||
        !blocks(n, 2, x, arg_bool(n, arg_find(n, "keepdim")), dim, &rank, d))
        return false;
    EtcDtype scale = dtype_of(n, "scale_dtype", x.dtype);
    return set_tensor(n, &out[0], scale, rank, dim, d) &&
           set_tensor(n, &out[1], dtype_of(n, "zero_point_dtype", ETC_I32), rank, dim, d);
}

bool infer_affine(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    int rank;
    bool undoes = arg_find(n, "input_dtype") >= 0;
    if (!get_tensor(n, 0, &x, d) || !blocks(n, 1, x, true, dim, &rank, d))
        return false;
    EtcDtype dtype = undoes ? dtype_of(n, "output_dtype", ETC_F32)
                            : dtype_of(n, "output_dtype", ETC_I8);
    return set_tensor(n, out, dtype, x.rank, x.dim, d);
}
