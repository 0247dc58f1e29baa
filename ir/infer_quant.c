/* infer_quant.c -- types of quantized tensors, and of the scales and zero points they come with. */
#include "ir/internal.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

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

/* Checks that integers of dtype t hold all of quant_min .. quant_max. */
static bool range_fits(const Node *n, EtcDtype t, Diag *d)
{
    int64_t lo = 0, hi = 0, half = 0;
    bool is_unsigned = t == ETC_U8 || t == ETC_U16;
    arg_int(n, "quant_min", &lo);
    arg_int(n, "quant_max", &hi);
    if (dtype_is_int(t) && etc_dtype_size((int)t) < sizeof half)
        half = INT64_C(1) << (8 * etc_dtype_size((int)t) - 1);
    int64_t least = is_unsigned ? 0 : -half;
    return (half && lo >= least && hi < least + 2 * half) ||
           diag_error(d, n->loc, "%s does not hold %" PRId64 " to %" PRId64, dtype_name(t), lo, hi);
}

/* -- values of scales and zero points ----------------------------------------------------- */

/* Returns how many numbers of an argument are known at compile time: 1 for a number, or the
 * elements of a constant whose bytes are available. */
static int64_t n_known(const Node *n, int i)
{
    double v;
    const Value *x = arg_value(n, i);
    if (!x)
        return arg_number(n, i, &v);
    return value_is_known(x) ? type_numel(x->type) : 0;
}

static double known(const Node *n, int i, int64_t k)
{
    double v = 0;
    const Value *x = arg_value(n, i);
    if (x)
        return value_number(x, k);
    arg_number(n, i, &v);
    return v;
}

/* Checks that all known scales are finite and above 0. */
static bool check_scales(const Node *n, int i, Diag *d)
{
    for (int64_t k = 0, count = n_known(n, i); k < count; k++) {
        double v = known(n, i, k);
        if (!isfinite(v) || v <= 0)
            return diag_error(d, n->loc, "%s has the value %g, expected one above 0 and finite",
                              arg_name(n, i), v);
    }
    return true;
}

/* Checks that dtype `t` can hold all known zero points. */
static bool check_zeros(const Node *n, int i, EtcDtype t, Diag *d)
{
    const Value *x = arg_value(n, i);
    int bits = 8 * (int)etc_dtype_size((int)t);
    if (!dtype_is_int(t) || bits > 32 || (x && !dtype_is_int(x->type.dtype)))
        return true;
    double least = t == ETC_U8 || t == ETC_U16 || t == ETC_U32 ? 0 : -ldexp(1, bits - 1);
    for (int64_t k = 0, count = n_known(n, i); k < count; k++) {
        double v = known(n, i, k);
        if (v < least || v >= least + ldexp(1, bits))
            return diag_error(d, n->loc, "%s has the value %.0f, which no %s holds", arg_name(n, i),
                              v, dtype_name(t));
    }
    return true;
}

bool check_qparams(const Node *n, int i, EtcDtype t, Diag *d)
{
    return check_scales(n, i, d) && check_zeros(n, i + 1, t, d);
}

/* Infers the result of an operator that quantizes x. */
static bool quantized(const Node *n, Type x, Type *out, Diag *d)
{
    if (!range_fits(n, dtype_or(n, ETC_I8), d))
        return false;
    if (!dtype_is_float(x.dtype))
        return diag_error(d, n->loc, "input has dtype %s, expected a floating-point one",
                          dtype_name(x.dtype));
    if (!check_qparams(n, 1, dtype_or(n, ETC_I8), d))
        return false;
    return set_tensor(n, out, dtype_or(n, ETC_I8), x.rank, x.dim, d);
}

static bool dequantized(const Node *n, Type x, Type *out, Diag *d)
{
    EtcDtype dtype = dtype_of(n, "out_dtype", dtype_of(n, "output_dtype", ETC_F32));
    if (x.dtype != dtype_or(n, x.dtype))
        return diag_error(d, n->loc, "input has dtype %s, expected %s", dtype_name(x.dtype),
                          dtype_name(dtype_or(n, x.dtype)));
    return check_qparams(n, 1, x.dtype, d) && set_tensor(n, out, dtype, x.rank, x.dim, d);
}

/* Checks arguments 1 and 2, the scales and zero points, which have `count` elements each. */
static bool check_points(const Node *n, Dim count, Diag *d)
{
    for (int i = 1; i < 3; i++) {
        Type t;
        if (!get_optional(n, i, &t, d) || (t.is_none && !get_tensor(n, "scales", &t, d)))
            return false;
        if (n->arg[i].kind == ARG_NONE)
            continue;
        Dim have = dims_product(program_of(n), t.dim, t.rank);
        bool fits = i == 1 ? t.dtype == ETC_F32 || t.dtype == ETC_F64 : dtype_is_int(t.dtype);
        if (!fits)
            return diag_error(d, n->loc, "%s has dtype %s", arg_name(n, i), dtype_name(t.dtype));
        if (!dims_agree(n, have, count))
            return diag_error(d, n->loc, "%s has %s elements, expected %s", arg_name(n, i),
                              dim_text(program_of(n), have), dim_text(program_of(n), count));
    }
    return true;
}

bool infer_quantize(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, "input", &x, d) && check_range(n, d) && quantized(n, x, out, d);
}

bool infer_dequantize(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, "input", &x, d) && check_range(n, d) && dequantized(n, x, out, d);
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
    return get_rank(n, "input", 1, MAX_RANK, &x, d) && get_axis(n, "axis", x.rank, &axis, d) &&
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
    return get_rank(n, "input", 1, MAX_RANK, &x, d) &&
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
    if (!get_rank(n, "input", 2, 2, &x, d) || !get_int(n, arg_find(n, "group_size"), &size, d))
        return false;
    if (x.dim[0].expr || x.dim[1].expr || size < 1 || x.dim[1].value % size)
        return diag_error(d, n->loc, "groups of %" PRId64 " do not divide its rows", size);
    return check_points(n, DIM(x.dim[0].value * (x.dim[1].value / size)), d) &&
           infer_dequantize(n, out, d);
}

/* -- qparams that are computed at run time -------------------------------------------- */

bool infer_choose_qparams(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, "input", &x, d) && check_range(n, d) &&
           set_tensor(n, &out[0], ETC_F64, 1, &DIM(1), d) &&
           set_tensor(n, &out[1], ETC_I64, 1, &DIM(1), d);
}

bool infer_choose_per_token(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    if (!get_rank(n, "input", 1, MAX_RANK, &x, d))
        return false;
    for (int i = 0; i < x.rank; i++)
        dim[i] = i < x.rank - 1 ? x.dim[i] : DIM(1);
    return set_tensor(n, &out[0], ETC_F64, x.rank, dim, d) &&
           set_tensor(n, &out[1], ETC_I64, x.rank, dim, d);
}

/* -- torchao's forms: blocks along every axis ------------------------------------------- */

/* Computes the number of blocks along each axis.  Without `keep`, axes with one block are left
 * out. */
static bool blocks(const Node *n, Type x, bool keep, Dim *dim, int *rank, Diag *d)
{
    Dim block[MAX_RANK];
    int count;
    if (!get_sizes(n, "block_size", block, &count, d))
        return false;
    *rank = 0;
    if (count != x.rank)
        return diag_error(d, n->loc, "block_size has %d entries for %d axes", count, x.rank);
    for (int i = 0; i < x.rank; i++) {
        bool is_one = dims_agree(n, block[i], x.dim[i]);
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
    if (!get_tensor(n, "input", &x, d) ||
        !blocks(n, x, arg_bool(n, "keepdim"), dim, &rank, d))
        return false;
    EtcDtype scale = dtype_of(n, "scale_dtype", x.dtype);
    return set_tensor(n, &out[0], scale, rank, dim, d) &&
           set_tensor(n, &out[1], dtype_of(n, "zero_point_dtype", ETC_I32), rank, dim, d);
}

bool infer_affine(const Node *n, Type *out, Diag *d)
{
    Type x, scale, zero;
    Dim dim[MAX_RANK];
    int rank;
    bool undoes = arg_find(n, "input_dtype") >= 0;
    if (!get_tensor(n, "input", &x, d) || !get_tensor(n, "scale", &scale, d) ||
        !get_optional(n, "zero_point", &zero, d) || !blocks(n, x, true, dim, &rank, d))
        return false;
    EtcDtype dtype = undoes ? dtype_of(n, "output_dtype", ETC_F32)
                            : dtype_of(n, "output_dtype", ETC_I8);
    if (!check_qparams(n, 2, undoes ? x.dtype : dtype, d))
        return false;
    return set_tensor(n, out, dtype, x.rank, x.dim, d);
}

/* -- products of integers ----------------------------------------------------------------- */

static bool is_byte(EtcDtype t)
{
    return t == ETC_U8 || t == ETC_I8;
}

/* Checks that an argument is a vector with a number for each channel, or that it is optional and
 * left out. */
static bool check_vector(const Node *n, const char *name, bool is_optional, EtcDtype dtype,
                         Dim channels, Diag *d)
{
    Type t;
    int i = arg_find(n, name);
    if (is_optional && n->arg[i].kind == ARG_NONE)
        return true;
    if (!get_rank(n, i, 1, 1, &t, d))
        return false;
    return (t.dtype == dtype && dims_agree(n, t.dim[0], channels)) ||
           diag_error(d, n->loc, "%s is %s, expected %s[%s]", name, type_text(program_of(n), t),
                      dtype_name(dtype), dim_text(program_of(n), channels));
}

/* Checks the scale and zero point of the input if they are tensors: both or none must be given,
 * with one element, or with `has_rows` one per row. */
static bool check_input(const Node *n, Type x, bool has_rows, Diag *d)
{
    Type scale, zero;
    int i = arg_find(n, "input_scale");
    if (!get_optional(n, i, &scale, d) || !get_optional(n, i + 1, &zero, d))
        return false;
    if (scale.is_none && zero.is_none)
        return true;
    if (scale.is_none || zero.is_none ||
        (scale.dtype != ETC_F32 && scale.dtype != ETC_F64) || !dtype_is_int(zero.dtype) ||
        zero.dtype > ETC_I64)
        return diag_error(d, n->loc, "input_scale and input_zero are not floats and integers");
    Dim one = DIM(1), rows = has_rows ? dims_product(program_of(n), x.dim, x.rank - 1) : one;
    Dim count = dims_product(program_of(n), scale.dim, scale.rank);
    Dim zeros = dims_product(program_of(n), zero.dim, zero.rank);
    return ((dims_agree(n, count, one) || dims_agree(n, count, rows)) &&
            dims_agree(n, count, zeros)) ||
           diag_error(d, n->loc, "input_scale and input_zero have %s and %s elements",
                      dim_text(program_of(n), count), dim_text(program_of(n), zeros));
}

static bool check_number(const Node *n, const char *name, int64_t lo, int64_t hi, Diag *d)
{
    int64_t v;
    return get_int(n, arg_find(n, name), &v, d) &&
           ((v >= lo && v <= hi) ||
            diag_error(d, n->loc, "%s is %" PRId64 ", expected %" PRId64 " to %" PRId64, name, v,
                       lo, hi));
}

/* Checks the arguments about the result, which is floats, or integers with a scale, a zero point
 * and a range. */
static bool check_output(const Node *n, EtcDtype *dtype, Diag *d)
{
    double scale;
    int i = arg_find(n, "output_scale");
    *dtype = dtype_or(n, ETC_F32);
    if (n->arg[i].kind == ARG_NONE)
        return *dtype == ETC_F32 || diag_error(d, n->loc, "has dtype %s without an output_scale",
                                               dtype_name(*dtype));
    if (!is_byte(*dtype))
        return diag_error(d, n->loc, "has dtype %s with an output_scale", dtype_name(*dtype));
    int64_t least = *dtype == ETC_U8 ? 0 : -128;
    if (!arg_number(n, i, &scale))
        return diag_error(d, n->loc, "output_scale is not a number");
    return check_scales(n, i, d) && check_range(n, d) && range_fits(n, *dtype, d) &&
           check_number(n, "output_zero", least, least + 255, d);
}

bool check_integers(const Node *n, Dim channels, Dim k, EtcDtype *dtype, Diag *d)
{
    Type x, w;
    if (!get_tensor(n, "input", &x, d) || !get_tensor(n, "weight", &w, d))
        return false;
    if (!is_byte(x.dtype) || w.dtype != ETC_I8)
        return diag_error(d, n->loc, "multiplies %s with %s, not u8 or i8 with i8",
                          dtype_name(x.dtype), dtype_name(w.dtype));
    if (dim_upper(k) < 1 || dim_upper(k) > 65536)
        return diag_error(d, n->loc, "sums have %s terms, expected 1 to 65536",
                          dim_text(program_of(n), k));
    int64_t least = x.dtype == ETC_U8 ? 0 : -128;
    bool is_linear = n->op == OP_INTEGER_LINEAR;
    return check_vector(n, "bias", true, ETC_F32, channels, d) &&
           check_vector(n, "sums", false, ETC_I32, channels, d) &&
           check_vector(n, "scales", false, ETC_F32, channels, d) &&
           check_input(n, x, is_linear, d) &&
           check_number(n, "zero_point", least, least + 255, d) && check_output(n, dtype, d);
}

/* Infers the mean of a window, which has at most 65536 pixels so that their sum is exact as a
 * float. */
bool infer_integer_avg_pool(const Node *n, Type *out, Diag *d)
{
    double by;
    int64_t kernel[2], size;
    EtcDtype dtype = dtype_or(n, ETC_I8);
    if (!infer_avg_pool(n, out, d))
        return false;
    if (!is_byte(out->dtype) || !is_byte(dtype))
        return diag_error(d, n->loc, "makes %s of %s, not u8 or i8 of u8 or i8", dtype_name(dtype),
                          dtype_name(out->dtype));
    if (!arg_number(n, "scale", &by))
        return diag_error(d, n->loc, "scale is not a number");
    if (!check_scales(n, arg_find(n, "scale"), d))
        return false;
    if (!get_ints(n, "kernel_size", 2, 1, kernel, d) || !mul_ok(kernel[0], kernel[1], &size) ||
        size > 65536)
        return diag_error(d, n->loc, "windows have more than 65536 pixels");
    int64_t least = out->dtype == ETC_U8 ? 0 : -128, y_least = dtype == ETC_U8 ? 0 : -128;
    out->dtype = dtype;
    return check_number(n, "zero_point", least, least + 255, d) && check_range(n, d) &&
           range_fits(n, dtype, d) && check_number(n, "output_zero", y_least, y_least + 255, d);
}

bool infer_integer_linear(const Node *n, Type *out, Diag *d)
{
    Type x, w;
    EtcDtype dtype;
    Dim dim[MAX_RANK];
    if (!get_rank(n, "input", 1, MAX_RANK, &x, d) || !get_rank(n, "weight", 2, 2, &w, d))
        return false;
    if (!dims_agree(n, x.dim[x.rank - 1], w.dim[1]))
        return diag_error(d, n->loc, "rows of input and weight differ in length");
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    dim[x.rank - 1] = w.dim[0];
    return check_integers(n, w.dim[0], w.dim[1], &dtype, d) &&
           set_tensor(n, out, dtype, x.rank, dim, d);
}

/* Checks the table of a softmax.  It must be a constant in which no power is above the first, and
 * the sum of a row must fit into 32 bits. */
static bool check_powers(const Node *n, Dim row, Diag *d)
{
    const int i = arg_find(n, "table");
    const int64_t count = n_known(n, i), most = dim_upper(row);
    const double first = count > 0 ? known(n, i, 0) : 0;
    bool ok = count > 0 && count <= 256 && first >= 32768 && (double)most * first < 4294967296.0;
    for (int64_t k = 1; ok && k < count; k++)
        ok = known(n, i, k) >= 0 && known(n, i, k) <= first;
    if (!ok)
        return diag_error(d, n->loc,
                          "table is not a constant of 1 to 256 numbers, the first at least "
                          "32768 and none larger, or rows of %" PRId64 " could have too large a sum",
                          most);
    int64_t log_by = 0, one = (int64_t)first;
    arg_int(n, "log_by", &log_by);
    return !log_by || !(one & (one - 1)) ||
           diag_error(d, n->loc, "table begins with %" PRId64 ", not with a power of two", one);
}

bool infer_integer_softmax(const Node *n, Type *out, Diag *d)
{
    Type table;
    const EtcDtype dtype = dtype_or(n, ETC_I8);
    const int64_t least = dtype == ETC_U8 ? 0 : -128;
    int axis;
    if (!get_rank(n, "input", 0, MAX_RANK, out, d) || !get_rank(n, "table", 1, 1, &table, d) ||
        !get_axis(n, "dim", out->rank, &axis, d))
        return false;
    const bool is_float = dtype == ETC_F32;
    if (!is_byte(out->dtype) || (!is_byte(dtype) && !is_float) || table.dtype != ETC_I32)
        return diag_error(d, n->loc,
                          "makes %s of %s and a table of %s, not u8, i8 or f32 of u8 or i8 and i32",
                          dtype_name(dtype), dtype_name(out->dtype), dtype_name(table.dtype));
    out->dtype = dtype;
    return (is_float ||
            (check_range(n, d) && range_fits(n, dtype, d) &&
             check_number(n, "output_zero", least, least + 255, d) &&
             check_number(n, "by", 0, 32768, d) && check_number(n, "shift", 1, 30, d))) &&
           check_number(n, "log_by", 0, is_float ? 0 : 1048575, d) &&
           check_powers(n, out->rank ? out->dim[axis] : DIM(1), d);
}

static bool are_bytes(const Node *n, EtcDtype x, EtcDtype y, Diag *d)
{
    return (is_byte(x) && is_byte(y)) ||
           diag_error(d, n->loc, "makes %s of %s, not u8 or i8 of u8 or i8", dtype_name(y),
                      dtype_name(x));
}

/* Checks that an argument is a zero point for values of this dtype. */
static bool check_zero(const Node *n, const char *name, EtcDtype dtype, Diag *d)
{
    const int64_t least = dtype == ETC_U8 ? 0 : -128;
    return check_number(n, name, least, least + 255, d);
}

bool infer_integer_matmul(const Node *n, Type *out, Diag *d)
{
    Type x, w;
    const EtcDtype dtype = dtype_or(n, ETC_I8);
    if (!get_rank(n, "self", 3, 3, &x, d) || !get_rank(n, "mat2", 3, 3, &w, d) ||
        !are_bytes(n, x.dtype, dtype, d) || !are_bytes(n, w.dtype, dtype, d))
        return false;
    const int terms = arg_bool(n, "is_transposed") ? 2 : 1;
    const Dim dim[3] = {x.dim[0], x.dim[1], w.dim[3 - terms]};
    if (dim_upper(x.dim[2]) < 1 || dim_upper(x.dim[2]) > 32768)
        return diag_error(d, n->loc, "sums have %s terms, expected 1 to 32768",
                          dim_text(program_of(n), x.dim[2]));
    if (!dims_agree(n, x.dim[0], w.dim[0]) || !dims_agree(n, x.dim[2], w.dim[terms]))
        return diag_error(d, n->loc, "batches, or rows and columns, differ in length");
    return check_zero(n, "self_zero", x.dtype, d) && check_zero(n, "mat2_zero", w.dtype, d) &&
           check_number(n, "by", 0, 0x3fffffff, d) && check_range(n, d) &&
           range_fits(n, dtype, d) && check_zero(n, "output_zero", dtype, d) &&
           set_tensor(n, out, dtype, 3, dim, d);
}

/* Checks that an argument is a constant with a number for each channel, all within [-most, most].
 */
static bool check_known(const Node *n, const char *name, int64_t count, double most, Diag *d)
{
    const int i = arg_find(n, name);
    bool ok = count > 0 && n_known(n, i) == count;
    for (int64_t k = 0; ok && k < count; k++)
        ok = known(n, i, k) >= -most && known(n, i, k) <= most;
    return ok || diag_error(d, n->loc, "%s is not a constant of numbers up to %.0f, one per channel",
                            name, most);
}

bool infer_lookup(const Node *n, Type *out, Diag *d)
{
    Type table;
    const EtcDtype dtype = dtype_or(n, ETC_I8);
    if (!get_rank(n, "input", 0, MAX_RANK, out, d) || !get_rank(n, "table", 1, 1, &table, d) ||
        !are_bytes(n, out->dtype, dtype, d))
        return false;
    out->dtype = dtype;
    return (table.dtype == ETC_U8 && dim_equal(table.dim[0], DIM(256))) ||
           diag_error(d, n->loc, "expects a table of 256 u8");
}

bool infer_integer_norm(const Node *n, Type *out, Diag *d)
{
    Type factor, offset;
    int64_t row, each;
    const EtcDtype dtype = dtype_or(n, ETC_I8);
    if (!get_rank(n, "input", 1, MAX_RANK, out, d) || !get_rank(n, "factors", 1, 1, &factor, d) ||
        !get_rank(n, "offsets", 1, 1, &offset, d) || !are_bytes(n, out->dtype, dtype, d) ||
        !check_zero(n, "zero_point", out->dtype, d) || !check_number(n, "row", 1, 32768, d) ||
        !check_number(n, "each", 1, 32768, d))
        return false;
    arg_int(n, "row", &row);
    arg_int(n, "each", &each);
    int wide = 0;
    while (1 << wide < row)
        wide++;
    if (factor.dtype != ETC_I32 || offset.dtype != ETC_I32 || row % each ||
        dim_upper(factor.dim[0]) % (row / each))
        return diag_error(d, n->loc, "factors and offsets are not i32 of whole rows of channels");
    out->dtype = dtype;
    const int64_t bits = 14 - (wide + 1) / 2;
    return check_known(n, "factors", dim_upper(factor.dim[0]), 32767, d) &&
           check_known(n, "offsets", dim_upper(factor.dim[0]), 1073741824, d) &&
           check_number(n, "bits", bits, bits, d) && check_number(n, "shift", 1, 30, d) &&
           check_number(n, "eps", 0, (INT64_C(1) << 50) - 1, d) && check_range(n, d) &&
           range_fits(n, dtype, d);
}
