/* onnx_math.c -- ONNX operators that compute elements: pointwise ones, reductions, products. */
#include "compiler/import/onnx.h"
#include "ir/views.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* -- pointwise --------------------------------------------------------------------------------- */

bool onnx_unary(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    return x && on_define(n, 0, ON_BUILD(n, n->row->op, "v", x));
}

/* Reads an operator whose result has the type of its operand. */
bool onnx_same_type(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    return x && on_define(n, 0, on_given(n, n->row->op, x->type, x));
}

static bool is_true_of(OnnxNode *n, Value *x, OpId op)
{
    Type t = type_tensor(n->in->program, ETC_BOOL, x->type.rank, x->type.dim);
    return on_define(n, 0, on_given(n, op, t, x));
}

bool onnx_is_nan(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    return x && is_true_of(n, x, n->row->op);
}

bool onnx_is_inf(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    bool below = on_int(n, "detect_negative", 1), above = on_int(n, "detect_positive", 1);
    if (x && below && above)
        return is_true_of(n, x, n->row->op);
    double end = above ? (double)INFINITY : below ? -(double)INFINITY : (double)NAN;
    return x && on_define(n, 0, ON_BUILD(n, OP_EQ_SCALAR, "vf", x, end));
}

/* Returns b with axes of size 1 after its own, so that its axes are the axes of a from attribute
 * `axis` on.  Only files before opset 7 have this attribute. */
static Value *aligned(OnnxNode *n, Value *a, Value *b)
{
    Dim dim[MAX_RANK];
    int axis = 0;
    if (n->in->opset >= 7 || !on_attribute(n, "axis") || !a || !b)
        return b;
    if (!on_axis(n, on_int(n, "axis", 0), a->type.rank, &axis) || axis + b->type.rank > a->type.rank)
        return NULL;
    for (int i = 0; i < a->type.rank - axis; i++)
        dim[i] = i < b->type.rank ? b->type.dim[i] : DIM(1);
    return on_view(n, b, a->type.rank - axis, dim);
}

/* Builds the operator with input i as a Python number, as torch's exports have it.  NULL: input i
 * is not a constant of one element. */
static Value *with_number(OnnxNode *n, int i)
{
    const OnnxList *l = on_list(n, i);
    Value *x = l && l->n == 1 ? on_value(n, 1 - i) : NULL;
    if (!x || l->rank > x->type.rank || l->dtype != x->type.dtype || (l->dim && l->dim[0].expr))
        return NULL;
    if (l->dtype == ETC_F32 || dtype_is_half(l->dtype))
        return ON_BUILD(n, n->row->op, "vf", x, l->number[0]);
    return l->dtype == ETC_I64 ? ON_BUILD(n, n->row->op, "vi", x, l->dim[0].value) : NULL;
}

/* Returns whether input i is a constant of ones, by which exporters multiply the rows of a table that
 * have no weights. */
static bool is_ones(OnnxNode *n, int i)
{
    const OnnxConst *c = on_const(n, i);
    float v = 1;
    if (!c || c->type.dtype != ETC_F32)
        return false;
    for (int64_t k = 0; v == 1 && k < c->n_bytes; k += (int64_t)sizeof v)
        memcpy(&v, c->data + k, sizeof v);
    return v == 1;
}

/* Returns looked-up rows that are multiplied by ones which do not make them larger; NULL: the product
 * is another one.  (The weights of a norm may be ones too, and read_back needs their product.) */
static Value *times_ones(OnnxNode *n)
{
    Dim dim[MAX_RANK];
    if (n->row->op != OP_MUL_TENSOR || n->in->opset < 7 || !is_ones(n, 1))
        return NULL;
    Value *x = on_value(n, 0);
    if (!x || !x->def || x->def->op != OP_EMBEDDING)
        return NULL;
    const Type t = x->type, ones = on_const(n, 1)->type;
    int rank = on_broadcast(n, t, ones, dim);
    return rank == t.rank && t.dtype == ETC_F32 && dims_equal(dim, t.dim, rank) ? x : NULL;
}

bool onnx_binary(OnnxNode *n)
{
    Value *y = with_number(n, 1);
    if (!y && !n->failed)
        y = times_ones(n);
    if (!y && !n->failed && op_info[n->row->op].flags & COMMUTES)
        y = with_number(n, 0);
    if (y || n->failed)
        return on_define(n, 0, y);
    Value *a = on_value(n, 0), *b = aligned(n, a, on_value(n, 1));
    return a && b && on_define(n, 0, ON_BUILD(n, n->row->op, "vv", a, b));
}

/* Divides.  Quotients of integers are cut toward 0. */
bool onnx_div(OnnxNode *n)
{
    Dim dim[MAX_RANK];
    Value *a = on_value(n, 0);
    if (!a)
        return false;
    if (dtype_is_float(a->type.dtype))
        return onnx_binary(n);
    Value *b = aligned(n, a, on_value(n, 1));
    if (!b)
        return false;
    int rank = on_broadcast(n, a->type, b->type, dim);
    if (rank < 0)
        return false;
    Type t = type_tensor(n->in->program, a->type.dtype, rank, dim);
    return on_define(n, 0, ON_GIVEN(n, OP_DIV_TENSOR_MODE, t, "vvs", a, b, "trunc"));
}

bool onnx_mod(OnnxNode *n)
{
    Value *a = on_value(n, 0), *b = on_value(n, 1);
    OpId op = on_int(n, "fmod", 0) ? OP_FMOD_TENSOR : OP_REMAINDER_TENSOR;
    return a && b && on_define(n, 0, ON_BUILD(n, op, "vv", a, b));
}

bool onnx_power(OnnxNode *n)
{
    const OnnxList *e = on_list(n, 1);
    Value *x = on_value(n, 0);
    if (!x)
        return false;
    if (e && e->n == 1 && e->rank == 0 && (e->number || !e->dim[0].expr)) {
        double by = e->number ? e->number[0] : (double)e->dim[0].value;
        Value *y = floor(by) == by && fabs(by) < 1e9
                       ? ON_BUILD(n, OP_POW_TENSOR_SCALAR, "vi", x, (int64_t)by)
                       : ON_BUILD(n, OP_POW_TENSOR_SCALAR, "vf", x, by);
        return on_define(n, 0, on_cast(n, y, x->type.dtype));
    }
    Value *by = aligned(n, x, on_value(n, 1));
    if (by && dtype_is_float(x->type.dtype) &&
        (by->type.dtype == ETC_U32 || by->type.dtype == ETC_U64))
        by = on_cast(n, by, x->type.dtype);
    return by && on_define(n, 0, on_cast(n, ON_BUILD(n, OP_POW_TENSOR_TENSOR, "vv", x, by),
                                         x->type.dtype));
}

static Value *chained(OnnxNode *n)
{
    Value *y = on_value(n, 0);
    for (int i = 1; y && i < (int)n->node->n_input; i++) {
        Value *x = on_value(n, i);
        y = x ? ON_BUILD(n, n->row->op, "vv", y, x) : NULL;
    }
    return y;
}

bool onnx_chain(OnnxNode *n)
{
    return on_define(n, 0, chained(n));
}

bool onnx_mean(OnnxNode *n)
{
    Value *sum = chained(n);
    return sum && on_define(n, 0, ON_BUILD(n, OP_DIV_SCALAR, "vf", sum, (double)n->node->n_input));
}

/* Wraps integers of fewer than 8 bits, which have a byte each, to their bits. */
static Value *wrapped(OnnxNode *n, Value *x, EtcDtype t, int bits)
{
    int half = 1 << (bits - 1);
    x = on_cast(n, x, ETC_I32);
    x = on_scalar(n, OP_REMAINDER_SCALAR, x, 2 * half);
    if (t == ETC_I8)
        x = on_where(n, on_scalar(n, OP_GE_SCALAR, x, half), on_scalar(n, OP_SUB_SCALAR, x, 2 * half), x);
    return on_cast(n, x, t);
}

bool onnx_is_f8(EtcDtype t)
{
    return dtype_is_float(t) && etc_dtype_size((int)t) == 1;
}

Value *on_f8(OnnxNode *n, Value *x, EtcDtype t)
{
    double most = t == ETC_F8E4M3FN ? 448 : t == ETC_F8E4M3FNUZ ? 240 : 57344;
    if (!x || x->type.dtype == t)
        return x;
    if (!dtype_is_float(x->type.dtype) || onnx_is_f8(x->type.dtype))
        x = on_cast(n, x, ETC_F32);
    if (on_int(n, "saturate", 1)) {
        x = x ? ON_BUILD(n, OP_CLAMP, "vff", x, -most, most) : NULL;
    } else if (t == ETC_F8E4M3FN) {
        /* torch's cast gives the largest number for larger ones; ONNX gives NaN from half a step
         * on */
        Value *is_more = on_scalar(n, OP_GT_SCALAR, on_unary(n, OP_ABS, x), most + 16);
        x = on_where(n, is_more, on_number(n, (double)NAN, x ? x->type.dtype : ETC_F32), x);
    }
    return on_cast(n, x, t);
}

static bool cast_to(OnnxNode *n, EtcDtype t, int bits)
{
    Value *x = on_value(n, 0);
    if (onnx_is_f8(t))
        return on_define(n, 0, on_f8(n, x, t));
    if (bits && (on_bits(n, 0) != bits || t != x->type.dtype))
        x = x ? wrapped(n, x, t, bits) : NULL;
    return on_define_bits(n, 0, on_cast(n, x, t), bits);
}

bool onnx_cast(OnnxNode *n)
{
    EtcDtype t;
    int64_t code = on_int(n, "to", 0);
    if (code < 0 || code > INT32_MAX || !onnx_dtype((int32_t)code, &t))
        return onnx_unsupported(n, "casts to ONNX's element type %lld", (long long)code);
    return cast_to(n, t, onnx_bits((int32_t)code));
}

/* Casts integers to others of the same width, which keeps their bits. */
bool onnx_bit_cast(OnnxNode *n)
{
    EtcDtype t;
    int64_t code = on_int(n, "to", 0);
    Value *x = on_value(n, 0);
    if (!x)
        return false;
    if (code < 0 || code > INT32_MAX || !onnx_dtype((int32_t)code, &t) || dtype_is_float(t) ||
        dtype_is_float(x->type.dtype) || t == ETC_BOOL ||
        etc_dtype_size((int)t) != etc_dtype_size((int)x->type.dtype) ||
        onnx_bits((int32_t)code) || on_bits(n, 0))
        return onnx_unsupported(n, "takes bits of %s as ONNX's element type %lld, only integers of one "
                                   "width are read so",
                                dtype_name(x->type.dtype), (long long)code);
    return on_define(n, 0, on_cast(n, x, t));
}

bool onnx_cast_like(OnnxNode *n)
{
    Value *like = on_value(n, 1);
    return like && cast_to(n, like->type.dtype, on_bits(n, 1));
}

bool onnx_where(OnnxNode *n)
{
    Value *c = on_value(n, 0), *a = on_value(n, 1), *b = on_value(n, 2);
    return c && a && b && on_define(n, 0, ON_BUILD(n, OP_WHERE_SELF, "vvv", c, a, b));
}

/* -- activations ------------------------------------------------------------------------------- */

bool onnx_leaky_relu(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    return x && on_define(n, 0, ON_BUILD(n, OP_LEAKY_RELU, "vf", x, on_float(n, "alpha", 0.01)));
}

bool onnx_elu(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    return x && on_define(n, 0, ON_BUILD(n, OP_ELU, "vf", x, on_float(n, "alpha", 1)));
}

bool onnx_celu(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    return x && on_define(n, 0, ON_BUILD(n, OP_CELU, "vf", x, on_float(n, "alpha", 1)));
}

bool onnx_selu(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    double alpha = on_float(n, "alpha", 1.67326319217681884765625);
    double gamma = on_float(n, "gamma", 1.05070102214813232421875);
    return x && on_define(n, 0, ON_BUILD(n, OP_ELU, "vff", x, alpha, gamma));
}

bool onnx_gelu(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    return x && on_define(n, 0, ON_BUILD(n, OP_GELU, "vs", x, on_text(n, "approximate", "none")));
}

bool onnx_hard_sigmoid(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    double alpha = on_float(n, "alpha", 0.2), beta = on_float(n, "beta", 0.5);
    if (x && fabs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5)
        return on_define(n, 0, ON_BUILD(n, OP_HARDSIGMOID, "v", x));
    Value *y = x ? ON_BUILD(n, OP_MUL_SCALAR, "vf", x, alpha) : NULL;
    y = y ? ON_BUILD(n, OP_ADD_SCALAR, "vf", y, beta) : NULL;
    return y && on_define(n, 0, ON_BUILD(n, OP_CLAMP, "vff", y, 0.0, 1.0));
}

bool onnx_softsign(OnnxNode *n)
{
    Value *x = on_value(n, 0), *y = x ? ON_BUILD(n, OP_ABS, "v", x) : NULL;
    y = y ? ON_BUILD(n, OP_ADD_SCALAR, "vf", y, 1.0) : NULL;
    return y && on_define(n, 0, ON_BUILD(n, OP_DIV_TENSOR, "vv", x, y));
}

static Value *zero(OnnxNode *n, EtcDtype t)
{
    return ON_BUILD(n, OP_FULL, "Dft", 0, (const Dim *)NULL, 0.0, t);
}

bool onnx_thresholded_relu(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    Value *c = x ? ON_BUILD(n, OP_GT_SCALAR, "vf", x, on_float(n, "alpha", 1)) : NULL;
    Value *none = c ? zero(n, x->type.dtype) : NULL;
    return none && on_define(n, 0, ON_BUILD(n, OP_WHERE_SELF, "vvv", c, x, none));
}

/* Before opset 7 several slopes belong to the channels, axis 1; they broadcast since. */
bool onnx_prelu(OnnxNode *n)
{
    Value *x = on_value(n, 0), *slope = on_value(n, 1);
    Dim dim[MAX_RANK];
    if (n->in->opset < 7 && x && slope && slope->type.rank == 1 && x->type.rank > 2) {
        dim[0] = slope->type.dim[0];
        for (int i = 1; i < x->type.rank - 1; i++)
            dim[i] = DIM(1);
        slope = on_view(n, slope, x->type.rank - 1, dim);
    }
    Value *scaled = x && slope ? ON_BUILD(n, OP_MUL_TENSOR, "vv", x, slope) : NULL;
    Value *c = scaled ? ON_BUILD(n, OP_GE_SCALAR, "vf", x, 0.0) : NULL;
    return c && on_define(n, 0, ON_BUILD(n, OP_WHERE_SELF, "vvv", c, x, scaled));
}

static bool clipped(OnnxNode *n, Value *x, double lo, double hi)
{
    Arg none = {.kind = ARG_NONE}, min = {.kind = ARG_FLOAT, .f = lo};
    Arg max = {.kind = ARG_FLOAT, .f = hi};
    return on_define(n, 0, ON_BUILD(n, OP_CLAMP, "vaa", x, lo == -(double)INFINITY ? none : min,
                                    hi == (double)INFINITY ? none : max));
}

bool onnx_clip_old(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    bool any = on_attribute(n, "min") || on_attribute(n, "max");
    if (!x || !any)
        return on_define(n, 0, x);
    return clipped(n, x, on_float(n, "min", -(double)INFINITY), on_float(n, "max", (double)INFINITY));
}

/* Reads input i, a bound of floats.  Returns whether it is a constant of one element, or absent. */
static bool closed_bound(OnnxNode *n, int i, double *v)
{
    const OnnxList *l = on_has(n, i) ? on_list(n, i) : NULL;
    if (l && l->n == 1 && l->number)
        *v = l->number[0];
    return !on_has(n, i) || (l && l->n == 1 && l->number);
}

bool onnx_clip(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    double lo = -(double)INFINITY, hi = (double)INFINITY;
    if (!x || (!on_has(n, 1) && !on_has(n, 2)))
        return on_define(n, 0, x);
    if (closed_bound(n, 1, &lo) && closed_bound(n, 2, &hi))
        return clipped(n, x, lo, hi);
    for (int i = 1; i < 3 && x; i++) {
        Value *bound = on_value(n, i);
        if (on_has(n, i))
            x = bound ? ON_BUILD(n, i == 1 ? OP_MAXIMUM : OP_MINIMUM, "vv", x, bound) : NULL;
    }
    return on_define(n, 0, x);
}

/* -- softmax ----------------------------------------------------------------------------------- */

static Value *softmax(OnnxNode *n, Value *x, int axis)
{
    return x ? ON_BUILD(n, n->row->op, "vib", x, (int64_t)axis, false) : NULL;
}

bool onnx_softmax(OnnxNode *n)
{
    int axis;
    Value *x = on_value(n, 0);
    return x && on_axis(n, on_int(n, "axis", -1), x->type.rank, &axis) &&
           on_define(n, 0, softmax(n, x, axis));
}

/* Reads a softmax of opset 12 or before, which takes all axes from `axis` on for one. */
bool onnx_softmax_old(OnnxNode *n)
{
    int axis;
    Value *x = on_value(n, 0);
    Dim flat[2] = {DIM(1), DIM(1)};
    if (!x || !on_axis(n, on_int(n, "axis", 1), x->type.rank, &axis))
        return false;
    if (axis == x->type.rank - 1)
        return on_define(n, 0, softmax(n, x, axis));
    for (int i = 0; i < x->type.rank; i++)
        flat[i >= axis] = dim_mul(n->in->program, flat[i >= axis], x->type.dim[i]);
    Value *y = softmax(n, on_view(n, x, 2, flat), 1);
    return on_define(n, 0, on_view(n, y, x->type.rank, x->type.dim));
}

/* -- reductions -------------------------------------------------------------------------------- */

typedef struct Axes {
    int64_t axis[MAX_RANK];
    int n;
    bool keeps, is_nothing; /* is_nothing: the operand is the result */
} Axes;

static bool read_axes(OnnxNode *n, const Value *x, Axes *a)
{
    a->keeps = on_int(n, "keepdims", 1);
    a->n = on_ints(n, "axes", a->axis, MAX_RANK);
    if (on_has(n, 1) && !on_numbers(n, 1, a->axis, &a->n))
        return false;
    a->is_nothing = a->n <= 0 && on_int(n, "noop_with_empty_axes", 0);
    if (!x->type.rank && a->n == 1 && (a->axis[0] == 0 || a->axis[0] == -1))
        a->n = 0; /* a tensor of rank 0 has no axis */
    if (a->n > 0 || n->failed)
        return !n->failed;
    a->n = x->type.rank;
    for (int i = 0; i < a->n; i++)
        a->axis[i] = i;
    return true;
}

/* Returns the extreme of no elements if a reduced axis is known to be empty, else NULL. */
static Value *extreme_of_none(OnnxNode *n, OpId op, const Value *x, const Axes *a)
{
    bool goes[MAX_RANK] = {false}, any = false;
    Dim dim[MAX_RANK];
    int rank = 0, axis;
    EtcDtype t = x->type.dtype;
    double end = dtype_is_float(t) ? (double)INFINITY : t == ETC_BOOL ? 1 : NAN;
    for (int i = 0; i < a->n; i++) {
        if (!on_axis(n, a->axis[i], x->type.rank, &axis))
            return NULL;
        goes[axis] = true;
        any = any || dim_equal(x->type.dim[axis], DIM(0));
    }
    for (int i = 0; i < x->type.rank; i++)
        if (!goes[i] || a->keeps)
            dim[rank++] = goes[i] ? DIM(1) : x->type.dim[i];
    end = op == OP_AMIN ? end : t == ETC_BOOL ? 0 : -end;
    return any && end == end ? on_full(n, rank, dim, end, t) : NULL;
}

static Value *reduced(OnnxNode *n, OpId op, Value *x, const Axes *a)
{
    if (!x || a->is_nothing || !a->n)
        return x;
    Value *none = op == OP_AMAX || op == OP_AMIN ? extreme_of_none(n, op, x, a) : NULL;
    if (none || n->failed)
        return none;
    if (op == OP_AMAX || op == OP_AMIN)
        return ON_BUILD(n, op, "vIb", x, a->n, a->axis, a->keeps);
    return ON_BUILD(n, op, "vIbt", x, a->n, a->axis, a->keeps, x->type.dtype);
}

/* Returns the mean of integers, which is cut toward 0 as their quotients are. */
static Value *mean_of_integers(OnnxNode *n, Value *x, const Axes *a)
{
    int64_t count = 1;
    for (int i = 0; i < a->n && !a->is_nothing; i++) {
        int axis;
        if (!on_axis(n, a->axis[i], x->type.rank, &axis))
            return NULL;
        Dim d = x->type.dim[axis];
        if (d.expr || d.value < 1 || count > INT32_MAX / d.value) {
            onnx_unsupported(n,
                             "takes the mean of integers along an axis that is symbolic or empty");
            return NULL;
        }
        count *= d.value;
    }
    Value *sum = reduced(n, OP_SUM_DIM, on_cast(n, x, ETC_I64), a);
    Value *by = sum ? on_number(n, (double)count, ETC_I64) : NULL;
    Value *y = by ? ON_GIVEN(n, OP_DIV_TENSOR_MODE, sum->type, "vvs", sum, by, "trunc") : NULL;
    return on_cast(n, y, x->type.dtype);
}

bool onnx_reduce(OnnxNode *n)
{
    Axes a;
    Value *x = on_value(n, 0);
    if (!x || !read_axes(n, x, &a))
        return false;
    if (n->row->op == OP_MEAN_DIM && !dtype_is_float(x->type.dtype))
        return on_define(n, 0, mean_of_integers(n, x, &a));
    return on_define(n, 0, reduced(n, n->row->op, x, &a));
}

bool onnx_reduce_l1(OnnxNode *n)
{
    Axes a;
    Value *x = on_value(n, 0);
    return x && read_axes(n, x, &a) &&
           on_define(n, 0, reduced(n, OP_SUM_DIM, ON_BUILD(n, OP_ABS, "v", x), &a));
}

static Value *sum_of_squares(OnnxNode *n, Value *x, const Axes *a)
{
    return reduced(n, OP_SUM_DIM, ON_BUILD(n, OP_MUL_TENSOR, "vv", x, x), a);
}

bool onnx_reduce_l2(OnnxNode *n)
{
    Axes a;
    Value *x = on_value(n, 0);
    EtcDtype t = x ? x->type.dtype : ETC_F32;
    x = dtype_is_half(t) ? on_cast(n, x, ETC_F32) : x; /* squares fit into f32 */
    Value *sum = x && read_axes(n, x, &a) ? sum_of_squares(n, x, &a) : NULL;
    return sum && on_define(n, 0, on_cast(n, ON_BUILD(n, OP_SQRT, "v", sum), t));
}

bool onnx_reduce_sum_square(OnnxNode *n)
{
    Axes a;
    Value *x = on_value(n, 0);
    return x && read_axes(n, x, &a) && on_define(n, 0, sum_of_squares(n, x, &a));
}

bool onnx_reduce_log_sum(OnnxNode *n)
{
    Axes a;
    Value *x = on_value(n, 0);
    Value *sum = x && read_axes(n, x, &a) ? reduced(n, OP_SUM_DIM, x, &a) : NULL;
    return sum && on_define(n, 0, ON_BUILD(n, OP_LOG, "v", sum));
}

bool onnx_reduce_log_sum_exp(OnnxNode *n)
{
    Axes a, kept;
    Value *x = on_value(n, 0);
    if (!x || !read_axes(n, x, &a))
        return false;
    if (a.is_nothing)
        return on_define(n, 0, x);
    kept = a;
    kept.keeps = true;
    Value *most = reduced(n, OP_AMAX, x, &kept);
    Value *less = most ? ON_BUILD(n, OP_SUB_TENSOR, "vv", x, most) : NULL;
    Value *sum = less ? reduced(n, OP_SUM_DIM, ON_BUILD(n, OP_EXP, "v", less), &a) : NULL;
    Value *log = sum ? ON_BUILD(n, OP_LOG, "v", sum) : NULL;
    Value *last = log ? reduced(n, OP_AMAX, x, &a) : NULL;
    return last && on_define(n, 0, ON_BUILD(n, OP_ADD_TENSOR, "vv", log, last));
}

/* Multiplies along one axis after the other, from the last one. */
bool onnx_reduce_prod(OnnxNode *n)
{
    Axes a;
    bool goes[MAX_RANK] = {false};
    int axis;
    Value *x = on_value(n, 0);
    if (!x || !read_axes(n, x, &a))
        return false;
    int rank = x->type.rank;
    for (int i = 0; i < a.n; i++) {
        if (!on_axis(n, a.axis[i], rank, &axis))
            return false;
        goes[axis] = true;
    }
    EtcDtype t = x->type.dtype;
    for (int i = rank - 1; x && i >= 0 && !a.is_nothing; i--)
        if (goes[i])
            x = ON_BUILD(n, OP_PROD_DIM, "vibt", x, (int64_t)i, a.keeps, t);
    return on_define(n, 0, x);
}

bool onnx_arg_extreme(OnnxNode *n)
{
    int axis;
    Value *x = on_value(n, 0);
    if (!x || !on_axis(n, on_int(n, "axis", 0), x->type.rank, &axis))
        return false;
    int64_t dim = axis;
    bool is_last = on_int(n, "select_last_index", 0);
    Value *from = is_last ? ON_BUILD(n, OP_FLIP, "vI", x, 1, &dim) : x;
    Value *at = from ? ON_BUILD(n, n->row->op, "vib", from, dim, (int)on_int(n, "keepdims", 1)) : NULL;
    if (at && is_last) { /* counted from the end */
        Arg end = {.kind = ARG_INT, .dim = dim_sub(n->in->program, x->type.dim[axis], DIM(1))};
        at = ON_BUILD(n, OP_NEG, "v", at);
        at = at ? ON_BUILD(n, OP_ADD_SCALAR, "va", at, end) : NULL;
    }
    return on_define(n, 0, at);
}

/* Sums along an axis.  An exclusive sum lacks its own element. */
bool onnx_cumsum(OnnxNode *n)
{
    Dim at[MAX_RANK];
    int count, axis;
    Value *x = on_value(n, 0);
    if (!x || !on_dims(n, 1, at, &count) || count != 1 ||
        !on_axis(n, at[0].value, x->type.rank, &axis))
        return false;
    int64_t dim = axis;
    bool is_reverse = on_int(n, "reverse", 0);
    Value *from = is_reverse ? ON_BUILD(n, OP_FLIP, "vI", x, 1, &dim) : x;
    Value *sum = from ? ON_BUILD(n, OP_CUMSUM, "vit", from, dim, x->type.dtype) : NULL;
    if (sum && on_int(n, "exclusive", 0))
        sum = ON_BUILD(n, OP_SUB_TENSOR, "vv", sum, from);
    if (sum && is_reverse)
        sum = ON_BUILD(n, OP_FLIP, "vI", sum, 1, &dim);
    return on_define(n, 0, sum);
}

/* -- products ---------------------------------------------------------------------------------- */

static Value *transposed(OnnxNode *n, Value *v)
{
    static const int64_t swap[2] = {1, 0};
    return v ? ON_BUILD(n, OP_PERMUTE, "vI", v, 2, swap) : NULL;
}

/* Returns the state whose transpose is b, or NULL. */
static Value *weight_of(const Value *b)
{
    Permute p;
    return b->def && permute_read(b->def, &p) && p.rank == 2 && p.axis[0] == 1 && p.x->state ? p.x : NULL;
}

Value *on_matmul(OnnxNode *n, Value *a, Value *b)
{
    if (a && b && a->type.rank >= 2 && weight_of(b))
        return on_binary(n, OP_LINEAR, a, weight_of(b));
    if (a && b && b->state && b->type.rank == 2 && a->type.rank >= 2)
        return on_binary(n, OP_LINEAR, a, transposed(n, b));
    return on_binary(n, OP_MATMUL, a, b);
}

bool onnx_matmul(OnnxNode *n)
{
    Value *a = on_value(n, 0);
    return a && on_define(n, 0, on_matmul(n, a, on_value(n, 1)));
}

static Value *scaled(OnnxNode *n, Value *v, double by)
{
    return !v || by == 1 ? v : ON_BUILD(n, OP_MUL_SCALAR, "vf", v, by);
}

Value *on_gemm(OnnxNode *n)
{
    double alpha = on_float(n, "alpha", 1), beta = on_float(n, "beta", 1);
    Value *a = on_value(n, 0), *b = on_value(n, 1), *c = on_has(n, 2) ? on_value(n, 2) : NULL;
    if (!a || !b || n->failed)
        return NULL;
    if (on_int(n, "transA", 0))
        a = transposed(n, a);
    if (!on_int(n, "transB", 0))
        b = transposed(n, b);
    if (!a || !b)
        return NULL;
    bool is_linear = alpha == 1 && beta == 1 && c && c->type.rank == 1 &&
                     dim_equal(c->type.dim[0], b->type.dim[0]);
    if (is_linear)
        return ON_BUILD(n, OP_LINEAR, "vvv", a, b, c);
    Value *y = scaled(n, ON_BUILD(n, OP_LINEAR, "vv", a, b), alpha);
    c = scaled(n, c, beta);
    return c ? on_binary(n, OP_ADD_TENSOR, y, c) : y;
}

bool onnx_gemm(OnnxNode *n)
{
    return on_define(n, 0, on_gemm(n));
}

/* -- shifts and sums along an axis ------------------------------------------------------------- */

static Value *shifted(OnnxNode *n, OpId op, Value *a, Value *b)
{
    Dim dim[MAX_RANK];
    int rank = a && b ? on_broadcast(n, a->type, b->type, dim) : -1;
    if (rank < 0)
        return NULL;
    Type t = type_tensor(n->in->program, a->type.dtype, rank, dim);
    return ON_GIVEN(n, op, t, "vv", a, b);
}

/* Combines integers bit by bit.  Those of u64 are the same as i64, which kernels take. */
bool onnx_bitwise(OnnxNode *n)
{
    Value *a = on_value(n, 0), *b = on_value(n, 1);
    if (!a || !b)
        return false;
    if (a->type.dtype != ETC_U64)
        return onnx_binary(n);
    Value *y = on_binary(n, n->row->op, on_cast(n, a, ETC_I64), on_cast(n, b, ETC_I64));
    return on_define(n, 0, on_cast(n, y, ETC_U64));
}

bool onnx_bit_shift(OnnxNode *n)
{
    const char *way = on_text(n, "direction", "");
    Value *a = on_value(n, 0), *b = on_value(n, 1);
    if (!a || !b)
        return false;
    if (strcmp(way, "LEFT") != 0 && strcmp(way, "RIGHT") != 0)
        return onnx_wrong(n, "has the direction '%s', expected LEFT or RIGHT", way);
    EtcDtype t = a->type.dtype;
    if (dtype_is_float(t))
        return onnx_unsupported(n, "shifts %s", dtype_name(t));
    if (t == ETC_U32 || t == ETC_U64) {
        a = on_cast(n, a, ETC_I64);
        b = on_cast(n, b, ETC_I64);
    }
    Value *y = shifted(
        n, *way == 'L' ? OP_BITWISE_LEFT_SHIFT_TENSOR : OP_BITWISE_RIGHT_SHIFT_TENSOR, a, b);
    if (t == ETC_U64 && *way == 'R') { /* clears the copies of the sign bit */
        Value *signs = shifted(n, OP_BITWISE_LEFT_SHIFT_TENSOR, on_number(n, -1, ETC_I64),
                               on_scalar(n, OP_ADD_SCALAR, on_unary(n, OP_NEG, b), 63));
        signs = on_binary(n, OP_ADD_TENSOR, signs, signs);
        y = on_binary(n, OP_BITWISE_AND_TENSOR, y, on_unary(n, OP_BITWISE_NOT, signs));
    }
    return on_define(n, 0, on_cast(n, y, t));
}

/* Multiplies along an axis.  Exclusive products begin with 1 and lack the last element. */
bool onnx_cumprod(OnnxNode *n)
{
    Dim at[MAX_RANK], one[MAX_RANK];
    int count, axis;
    Value *x = on_value(n, 0);
    if (!x || !on_dims(n, 1, at, &count))
        return false;
    if (count != 1 || at[0].expr || !on_axis(n, at[0].value, x->type.rank, &axis))
        return onnx_wrong(n, "has an axis that is not known");
    Type t = x->type;
    int64_t dim = axis;
    bool is_reverse = on_int(n, "reverse", 0);
    x = is_reverse ? ON_BUILD(n, OP_FLIP, "vI", x, 1, &dim) : x;
    if (on_int(n, "exclusive", 0)) {
        for (int i = 0; i < t.rank; i++)
            one[i] = i == axis ? DIM(1) : t.dim[i];
        Dim end = dim_sub(n->in->program, t.dim[axis], DIM(1));
        x = on_cat(n, on_full(n, t.rank, one, 1, t.dtype), on_part(n, x, axis, DIM(0), end, 1), axis);
    }
    x = x ? ON_GIVEN(n, OP_CUMPROD, t, "vit", x, dim, t.dtype) : NULL;
    return on_define(n, 0, x && is_reverse ? ON_BUILD(n, OP_FLIP, "vI", x, 1, &dim) : x);
}

/* -- einsum ------------------------------------------------------------------------------------ */

enum { N_LETTERS = 128 };

typedef struct Einsum {
    Dim size[N_LETTERS];
    int uses[N_LETTERS];
    Dim dots[MAX_RANK]; /* the sizes of the ellipsis, the last one first */
    int n_dots;
} Einsum;

/* Reads the letters of one operand and their sizes. */
static bool read_term(OnnxNode *n, Einsum *e, const char *term, int count, const Value *x)
{
    int letters = 0, axis = 0;
    for (int i = 0; i < count; i++)
        letters += term[i] != '.';
    int dots = x->type.rank - letters;
    bool has_dots = letters < count;
    if (dots < 0 || (dots && !has_dots) || count - letters > 3)
        return onnx_wrong(n, "has not as many letters as an operand has axes");
    e->n_dots = dots > e->n_dots ? dots : e->n_dots;
    for (int i = 0; i < count; i++) {
        if (term[i] == '.') {
            i += 2;
            for (int k = 0; k < dots; k++, axis++) {
                Dim *at = &e->dots[dots - 1 - k], d = x->type.dim[axis];
                *at = at->expr || at->value > 1 ? *at : d;
            }
            continue;
        }
        Dim *at = &e->size[(unsigned char)term[i] % N_LETTERS];
        *at = at->expr || at->value > 1 ? *at : x->type.dim[axis];
        e->uses[(unsigned char)term[i] % N_LETTERS]++;
        axis++;
    }
    return true;
}

/* Returns the equation without spaces and with an explicit result. */
static char *full_equation(OnnxNode *n, const char *text)
{
    char *s = arena_bytes(n->in->program->arena, 2 * strlen(text) + N_LETTERS);
    int count = 0, seen[N_LETTERS] = {0};
    bool has_result = strstr(text, "->") != NULL, has_dots = strchr(text, '.') != NULL;
    for (const char *c = text; *c; c++) {
        bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        bool is_dots = !strncmp(c, "...", 3), is_arrow = !strncmp(c, "->", 2);
        if (*c == ' ')
            continue;
        if (!is_letter && *c != ',' && !is_dots && !is_arrow) {
            onnx_wrong(n, "has the equation '%s', expected letters, '...', ',' and '->'", text);
            return NULL;
        }
        seen[(unsigned char)*c % N_LETTERS] += is_letter;
        for (int i = 0; i < (is_dots ? 3 : is_arrow ? 2 : 1); i++)
            s[count++] = c[i];
        c += is_dots ? 2 : is_arrow ? 1 : 0;
    }
    if (!has_result) {
        memcpy(s + count, has_dots ? "->..." : "->", has_dots ? 5 : 2);
        count += has_dots ? 5 : 2;
        for (int c = 'A'; c <= 'z'; c++)
            if (seen[c] == 1)
                s[count++] = (char)c;
    }
    s[count] = 0;
    return s;
}

bool onnx_einsum(OnnxNode *n)
{
    const char *equation = full_equation(n, on_text(n, "equation", "")), *text = equation, *end = NULL;
    Value *x[MAX_RANK];
    Dim dim[MAX_RANK];
    Einsum e = {.n_dots = 0};
    int count = (int)n->node->n_input, rank = 0;
    if (!text || count < 1 || count > MAX_RANK)
        return text && onnx_wrong(n, "has %d operands, expected 1 to 16", count);
    for (int i = 0; i < count; i++) {
        if (!(x[i] = on_value(n, i)))
            return false;
        int length = (int)strcspn(text, ",-");
        if (!read_term(n, &e, text, length, x[i]))
            return false;
        end = text + length;
        if ((*end == ',') != (i < count - 1))
            return onnx_wrong(n, "has not as many terms as operands");
        text = end + 1;
    }
    for (const char *c = end + 2; *c && !n->failed; c++) {
        int more = *c == '.' ? e.n_dots : 1;
        if (rank + more > MAX_RANK || (*c != '.' && !e.uses[(unsigned char)*c % N_LETTERS]))
            return onnx_wrong(n, "gives an axis that no operand has, or more than 16");
        for (int k = 0; *c == '.' && k < more; k++)
            dim[rank + k] = e.dots[more - 1 - k];
        if (*c != '.')
            dim[rank] = e.size[(unsigned char)*c % N_LETTERS];
        rank += more;
        c += *c == '.' ? 2 : 0;
    }
    Type t = type_tensor(n->in->program, x[0]->type.dtype, rank, dim);
    return on_define(n, 0, ON_GIVEN(n, OP_EINSUM, t, "sV", equation, count, x));
}

/* -- norms and gates --------------------------------------------------------------------------- */

/* Defines 1 where the largest element stands first, else 0.  Before opset 13 all axes from `axis`
 * on are one. */
bool onnx_hardmax(OnnxNode *n)
{
    int axis;
    bool is_old = n->in->opset < 13;
    Value *x = on_value(n, 0), *y = x;
    Dim flat[2] = {DIM(1), DIM(1)};
    if (!x || !on_axis(n, on_int(n, "axis", is_old ? 1 : -1), x->type.rank, &axis))
        return false;
    for (int i = 0; i < x->type.rank; i++)
        flat[i >= axis] = dim_mul(n->in->program, flat[i >= axis], x->type.dim[i]);
    if (is_old)
        y = on_view(n, x, 2, flat);
    axis = is_old ? 1 : axis;
    Value *at = y ? ON_BUILD(n, OP_ARGMAX, "vib", y, (int64_t)axis, true) : NULL;
    Value *line = at ? on_arange(n, DIM(0), y->type.dim[axis]) : NULL;
    for (int i = axis + 1; line && i < y->type.rank; i++)
        line = on_insert(n, line, line->type.rank);
    y = on_cast(n, on_binary(n, OP_EQ_TENSOR, at, line), x->type.dtype);
    return on_define(n, 0, is_old ? on_view(n, y, x->type.rank, x->type.dim) : y);
}

/* Divides x by its norm along an axis.  Where the norm is 0, so is the result. */
bool onnx_lp_norm(OnnxNode *n)
{
    int axis;
    int64_t p = on_int(n, "p", 2);
    Value *x = on_value(n, 0);
    if (!x || !on_axis(n, on_int(n, "axis", -1), x->type.rank, &axis))
        return false;
    if (p != 1 && p != 2)
        return onnx_unsupported(n, "takes a norm of order %lld, expected 1 or 2", (long long)p);
    Value *each = p == 1 ? on_unary(n, OP_ABS, x) : on_binary(n, OP_MUL_TENSOR, x, x);
    Value *norm = on_sum(n, OP_SUM_DIM, each, axis, true);
    norm = p == 2 ? on_unary(n, OP_SQRT, norm) : norm;
    Value *is_zero = on_scalar(n, OP_EQ_SCALAR, norm, 0), *none = zero(n, x->type.dtype);
    return on_define(n, 0, on_where(n, is_zero, none, on_binary(n, OP_DIV_TENSOR, x, norm)));
}

/* Defines (x - mean) / (deviation + 1e-9). */
bool onnx_mean_variance(OnnxNode *n)
{
    Axes a = {.n = 3, .axis = {0, 2, 3}, .keeps = true};
    Value *x = on_value(n, 0);
    int given = on_ints(n, "axes", a.axis, MAX_RANK);
    a.n = given < 0 ? 3 : given;
    if (!x || n->failed)
        return false;
    Value *less = on_binary(n, OP_SUB_TENSOR, x, reduced(n, OP_MEAN_DIM, x, &a));
    Value *square = reduced(n, OP_MEAN_DIM, on_binary(n, OP_MUL_TENSOR, less, less), &a);
    Value *by = on_scalar(n, OP_ADD_SCALAR, on_unary(n, OP_SQRT, square), 1e-9);
    return on_define(n, 0, on_binary(n, OP_DIV_TENSOR, less, by));
}

/* Returns x * sigmoid(alpha x). */
static Value *swish(OnnxNode *n, Value *x, double alpha)
{
    if (alpha == 1)
        return on_unary(n, OP_SILU, x);
    return on_binary(n, OP_MUL_TENSOR, x,
                     on_unary(n, OP_SIGMOID, on_scalar(n, OP_MUL_SCALAR, x, alpha)));
}

bool onnx_swish(OnnxNode *n)
{
    return on_define(n, 0, swish(n, on_value(n, 0), on_float(n, "alpha", 1)));
}

bool onnx_swiglu(OnnxNode *n)
{
    Value *gate = on_value(n, 0), *x = on_value(n, 1);
    return on_define(n, 0, on_binary(n, OP_MUL_TENSOR, swish(n, gate, on_float(n, "alpha", 1)), x));
}

bool onnx_shrink(OnnxNode *n)
{
    double edge = on_float(n, "lambd", 0.5), bias = on_float(n, "bias", 0);
    Value *x = on_value(n, 0);
    if (!x)
        return false;
    EtcDtype t = x->type.dtype;
    x = on_cast(n, x, dtype_is_float(t) ? t : ETC_F32);
    Value *low = on_scalar(n, OP_ADD_SCALAR, x, bias), *high = on_scalar(n, OP_SUB_SCALAR, x, bias);
    Value *none = zero(n, x ? x->type.dtype : t);
    Value *y = on_where(n, on_scalar(n, OP_GT_SCALAR, x, edge), high, none);
    y = on_where(n, on_scalar(n, OP_LT_SCALAR, x, -edge), low, y);
    return on_define(n, 0, on_cast(n, y, t));
}

/* Returns the determinant of the rows from `row` on and of the columns that are left.  It is
 * expanded along the first of these rows. */
static Value *determinant(OnnxNode *n, Value *x, int row, const int *column, int count)
{
    int rank = x->type.rank, rest[4];
    assert(count >= 1 && count <= 4);
    Value *sum = NULL;
    for (int i = 0; i < count; i++) {
        Value *line = ON_BUILD(n, OP_SELECT_INT, "vii", x, (int64_t)rank - 2, (int64_t)row);
        Value *v = line ? ON_BUILD(n, OP_SELECT_INT, "vii", line, (int64_t)rank - 2,
                                   (int64_t)column[i])
                        : NULL;
        for (int k = 0; k < count - 1; k++)
            rest[k] = column[k + (k >= i)];
        if (count > 1)
            v = on_binary(n, OP_MUL_TENSOR, v, determinant(n, x, row + 1, rest, count - 1));
        sum = !i ? v : on_binary(n, i % 2 ? OP_SUB_TENSOR : OP_ADD_TENSOR, sum, v);
    }
    return sum;
}

bool onnx_det(OnnxNode *n)
{
    static const int all[4] = {0, 1, 2, 3};
    Value *x = on_value(n, 0);
    if (!x || x->type.rank < 2)
        return x && onnx_wrong(n, "expects square matrices");
    Dim size = x->type.dim[x->type.rank - 1];
    if (!dim_equal(size, x->type.dim[x->type.rank - 2]))
        return onnx_wrong(n, "expects square matrices");
    if (size.expr || size.value < 1 || size.value > 4)
        return onnx_unsupported(n, "takes the determinant of matrices of more than 4 rows");
    return on_define(n, 0, determinant(n, x, 0, all, (int)size.value));
}
