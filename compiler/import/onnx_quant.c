/* onnx_quant.c -- reads quantization: QuantizeLinear and DequantizeLinear become the operators of
 * torch's exports; operators on integers become float operators between these. */
#include "compiler/import/onnx.h"
#include <string.h>

typedef struct Range {
    EtcDtype dtype;
    int bits;
    int64_t lo, hi;
} Range;

static bool range_of(OnnxNode *n, EtcDtype t, int bits, Range *r)
{
    int width = bits ? bits : 8 * (int)etc_dtype_size((int)t);
    bool is_signed = t == ETC_I8 || t == ETC_I16 || t == ETC_I32;
    *r = (Range){.dtype = t, .bits = bits};
    if (!is_signed && t != ETC_U8 && t != ETC_U16)
        return onnx_unsupported(n, "has integers of type %s", dtype_name(t));
    r->lo = is_signed ? -((int64_t)1 << (width - 1)) : 0;
    r->hi = r->lo + ((int64_t)1 << width) - 1;
    return true;
}

/* Reads a scale and a zero point that are known and count for all elements; false: they have
 * another form. */
static bool one_scale(OnnxNode *n, int at, double *scale, int64_t *zero)
{
    const OnnxList *s = on_list(n, at), *z = on_has(n, at + 1) ? on_list(n, at + 1) : NULL;
    if (!s || !s->number || s->n != 1 || (on_has(n, at + 1) && (!z || !z->dim || z->n != 1 || z->dim[0].expr)))
        return false;
    *scale = s->number[0];
    *zero = z ? z->dim[0].value : 0;
    return true;
}

/* Returns scales or zero points in a shape that broadcasts over x: there is one, one for each
 * channel, or one for each block. */
static Value *spread(OnnxNode *n, Value *v, const Value *x, int axis, int64_t block)
{
    Dim dim[MAX_RANK + 1];
    Program *p = n->in->program;
    int rank = x->type.rank;
    if (!v || v->type.rank == 0 || (v->type.rank == 1 && dim_equal(v->type.dim[0], DIM(1)) && !block))
        return v && v->type.rank ? on_view(n, v, 0, NULL) : v;
    if (v->type.rank == 1 && !block) {
        for (int i = 0; i < rank; i++)
            dim[i] = i == axis ? v->type.dim[0] : DIM(1);
        return on_view(n, v, rank, dim);
    }
    if (v->type.rank != rank || rank == MAX_RANK) {
        onnx_wrong(n, "has scales that are neither one nor one for each channel or block");
        return NULL;
    }
    if (!block)
        return v;
    v = on_insert(n, v, axis + 1);
    for (int i = 0; v && i <= rank; i++)
        dim[i] = i == axis + 1 ? DIM(block) : v->type.dim[i];
    v = v ? ON_BUILD(n, OP_EXPAND, "vD", v, rank + 1, dim) : NULL;
    for (int i = 0; v && i < rank; i++)
        dim[i] = i == axis ? dim_mul(p, v->type.dim[i], DIM(block)) : v->type.dim[i + (i > axis)];
    v = on_view(n, v, rank, dim);
    return v && !dim_equal(dim[axis], x->type.dim[axis])
               ? on_part(n, v, axis, DIM(0), x->type.dim[axis], 1)
               : v;
}

/* Reads the axis and the block of inputs `at` and at + 1, which only some forms have. */
static bool read_places(OnnxNode *n, const Value *x, int at, int64_t axis, int *place, int64_t *block)
{
    Value *scale = on_value(n, at);
    *block = on_int(n, "block_size", 0);
    *place = 0;
    if (!scale || *block < 0 || *block > INT32_MAX)
        return scale && onnx_wrong(n, "has a block_size out of range");
    bool is_one = scale->type.rank == 0 || (scale->type.rank == 1 && dim_equal(scale->type.dim[0], DIM(1)));
    return (is_one && !*block) || on_axis(n, axis, x->type.rank, place);
}

/* Returns the scales and zero points of channels, as operators per channel take them; false: they
 * have another form. */
static bool channels(OnnxNode *n, int at, EtcDtype t, Value **scale, Value **zero)
{
    Value *s = on_value(n, at);
    if (!s || s->type.rank != 1 || !s->state || dim_equal(s->type.dim[0], DIM(1)) || t == ETC_U16 ||
        on_int(n, "block_size", 0))
        return false;
    *scale = on_cast(n, s, ETC_F32);
    *zero = on_has(n, at + 1) ? on_cast(n, on_value(n, at + 1), ETC_I64)
                              : on_full(n, 1, s->type.dim, 0, ETC_I64);
    return *scale && *zero;
}

/* Builds clamp(round(x / scale) + zero).  It divides, as the standard says, and does not multiply
 * with an inverse. */
static Value *quantized_plainly(OnnxNode *n, Value *x, int at, const Range *r, int axis, int64_t block)
{
    Value *scale = spread(n, on_cast(n, on_value(n, at), ETC_F32), x, axis, block), *y;
    y = on_unary(n, OP_ROUND, on_binary(n, OP_DIV_TENSOR, x, scale));
    if (on_has(n, at + 1))
        y = on_binary(n, OP_ADD_TENSOR, y,
                      spread(n, on_cast(n, on_value(n, at + 1), ETC_F32), x, axis, block));
    y = y ? ON_BUILD(n, OP_CLAMP, "vff", y, (double)r->lo, (double)r->hi) : NULL;
    return on_cast(n, r->dtype == ETC_U16 ? on_cast(n, y, ETC_I32) : y, r->dtype);
}

/* Quantizes x with the scale in input `at` and the zero point in the input after it. */
static Value *quantized(OnnxNode *n, Value *x, int at, const Range *r, int64_t axis)
{
    double scale;
    int64_t zero, block;
    int place;
    Value *scales, *zeros;
    x = on_cast(n, x, ETC_F32);
    if (!x || !read_places(n, x, at, axis, &place, &block))
        return NULL;
    if (r->dtype != ETC_U16 && !block && one_scale(n, at, &scale, &zero))
        return ON_BUILD(n, OP_QUANTIZE_PER_TENSOR, "vfiiit", x, scale, zero, r->lo, r->hi, r->dtype);
    if (channels(n, at, r->dtype, &scales, &zeros)) {
        scales = on_cast(n, scales, ETC_F64); /* the official kernel takes nothing else */
        return scales ? ON_BUILD(n, OP_QUANTIZE_PER_CHANNEL, "vvviiit", x, scales, zeros,
                                 (int64_t)place, r->lo, r->hi, r->dtype)
                      : NULL;
    }
    return n->failed ? NULL : quantized_plainly(n, x, at, r, place, block);
}

/* Casts x / scale to floats of 8 bits.  The scale is input 1; the zero point is 0. */
static Value *quantized_f8(OnnxNode *n, Value *x, EtcDtype t, int64_t axis)
{
    int place;
    int64_t block;
    if (!x || !read_places(n, x, 1, axis, &place, &block))
        return NULL;
    return on_f8(n, on_binary(n, OP_DIV_TENSOR, x, spread(n, on_value(n, 1), x, place, block)), t);
}

/* Finds the type of integers of input `zero`. */
static bool type_of_zero(OnnxNode *n, int zero, Range *r)
{
    const OnnxConst *c = on_const(n, zero);
    Value *v = c ? NULL : on_value(n, zero);
    return (c || v) && range_of(n, c ? c->type.dtype : v->type.dtype, on_bits(n, zero), r);
}

bool onnx_quantize(OnnxNode *n)
{
    Range r;
    EtcDtype t = ETC_U8;
    int64_t code = on_int(n, "output_dtype", 0);
    if (code < 0 || code > INT32_MAX || (code && !onnx_dtype((int32_t)code, &t)))
        return onnx_unsupported(n, "gives ONNX's element type %lld", (long long)code);
    Value *x = on_value(n, 0), *zero = on_has(n, 2) ? on_value(n, 2) : NULL;
    t = zero ? zero->type.dtype : t;
    if (onnx_is_f8(t))
        return on_define(n, 0, quantized_f8(n, x, t, on_int(n, "axis", 1)));
    if (on_has(n, 2) ? !type_of_zero(n, 2, &r) : !range_of(n, t, onnx_bits((int32_t)code), &r))
        return false;
    return x && on_define_bits(n, 0, quantized(n, x, 1, &r, on_int(n, "axis", 1)), r.bits);
}

static const Node *cast_from(const Value *x, EtcDtype t)
{
    const Node *n = x->def;
    return n && n->op == OP__TO_COPY && arg_value(n, "self")->type.dtype == t ? n : NULL;
}

/* Returns x or, if x was cast from i32 to u16, the i32 value, because the official runtime cannot
 * read u16. */
static Value *before_16_bits(Value *x)
{
    double lo, hi;
    const Node *narrow = x->type.dtype == ETC_U16 ? cast_from(x, ETC_I32) : NULL;
    Value *wide = narrow ? arg_value(narrow, "self") : NULL;
    const Node *whole = wide ? cast_from(wide, ETC_F32) : NULL;
    const Node *clamp = whole ? arg_value(whole, "self")->def : NULL;
    return clamp && clamp->op == OP_CLAMP && arg_number(clamp, "min", &lo) && arg_number(clamp, "max", &hi) &&
                   lo >= 0 && hi <= UINT16_MAX
               ? wide
               : x;
}

/* Builds (x - zero) * scale. */
static Value *dequantized_plainly(OnnxNode *n, Value *x, int at, int axis, int64_t block)
{
    Value *scale = spread(n, on_cast(n, on_value(n, at), ETC_F32), x, axis, block);
    bool has_zero = on_has(n, at + 1) && x->type.dtype != ETC_I32;
    x = before_16_bits(x);
    Value *y = on_cast(n, x->type.dtype == ETC_U16 ? on_cast(n, x, ETC_I32) : x, ETC_F32);
    if (has_zero)
        y = on_binary(n, OP_SUB_TENSOR, y,
                      spread(n, on_cast(n, on_value(n, at + 1), ETC_F32), x, axis, block));
    return on_binary(n, OP_MUL_TENSOR, y, scale);
}

/* Returns integers x as floats, with the scale in input `at` and the zero point in the input after
 * it.  Integers of 32 bits, such as biases, are only multiplied by their scales. */
static Value *dequantized(OnnxNode *n, Value *x, int bits, int at, int64_t axis)
{
    Range r;
    double scale;
    int64_t zero, block;
    int place;
    Value *scales, *zeros;
    if (!x || !read_places(n, x, at, axis, &place, &block))
        return NULL;
    if (onnx_is_f8(x->type.dtype)) /* the zero point of floats is 0 */
        return on_binary(n, OP_MUL_TENSOR, on_cast(n, x, ETC_F32),
                         spread(n, on_cast(n, on_value(n, at), ETC_F32), x, place, block));
    if (!range_of(n, x->type.dtype, bits, &r))
        return NULL;
    if (r.dtype == ETC_I32 || r.dtype == ETC_U16)
        return dequantized_plainly(n, x, at, place, block);
    if (!block && one_scale(n, at, &scale, &zero))
        return ON_BUILD(n, OP_DEQUANTIZE_PER_TENSOR, "vfiiit", x, scale, zero, r.lo, r.hi, r.dtype);
    if (channels(n, at, r.dtype, &scales, &zeros))
        return ON_BUILD(n, OP_DEQUANTIZE_PER_CHANNEL, "vvviiit", x, scales, zeros, (int64_t)place, r.lo,
                        r.hi, r.dtype);
    return n->failed ? NULL : dequantized_plainly(n, x, at, place, block);
}

bool onnx_dequantize(OnnxNode *n)
{
    Value *x = on_value(n, 0), *scale = on_value(n, 1);
    return x && scale &&
           on_define(n, 0, on_cast(n, dequantized(n, x, on_bits(n, 0), 1, on_int(n, "axis", 1)),
                                   scale->type.dtype));
}

/* -- operators on integers --------------------------------------------------------------------- */

/* Returns inputs i, i + 1 and i + 2, integers, their scale and their zero point, as floats. */
static Value *operand(OnnxNode *n, int i, int64_t axis)
{
    Value *x = on_value(n, i);
    if (x && on_has(n, i + 1))
        return dequantized(n, x, on_bits(n, i), i + 1, x->type.rank ? axis : 0);
    if (!n->failed)
        onnx_wrong(n, "lacks a scale");
    return NULL;
}

/* Defines output 0 as the floats y, quantized with scale `at`. */
static bool define_integers(OnnxNode *n, Value *y, int at, const Value *like)
{
    Range r;
    if (!y || n->failed || (on_has(n, at + 1) ? !type_of_zero(n, at + 1, &r)
                                              : !range_of(n, like->type.dtype, 0, &r)))
        return false;
    return on_define(n, 0, quantized(n, y, at, &r, 1));
}

bool onnx_qlinear_matmul(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    Value *a = operand(n, 0, -2), *b = a ? operand(n, 3, -1) : NULL;
    return b && define_integers(n, on_matmul(n, a, b), 6, x);
}

/* Reads a convolution of integers.  The scale of the bias is the product of both scales.  In ONNX
 * Runtime's own form the channels may be last. */
bool onnx_qlinear_conv(OnnxNode *n)
{
    bool is_last = on_int(n, "channels_last", 0);
    Value *x = on_value(n, 0), *a = operand(n, 0, 1), *filter = a ? operand(n, 3, 0) : NULL;
    a = is_last ? on_channels_first(n, a) : a;
    Value *bias = filter && on_has(n, 8) ? on_cast(n, on_value(n, 8), ETC_F32) : NULL;
    if (bias) {
        Value *scale = on_binary(n, OP_MUL_TENSOR, on_cast(n, on_value(n, 1), ETC_F32),
                                 on_cast(n, on_value(n, 4), ETC_F32));
        bias = on_binary(n, OP_MUL_TENSOR, bias, scale);
    }
    if (!filter || n->failed)
        return false;
    Value *y = on_conv(n, a, filter, bias);
    return define_integers(n, is_last ? on_channels_last(n, y) : y, 6, x);
}

/* A sum of products of bytes is exact in floats up to EXACT; one product is at most MOST_EACH. */
enum { EXACT = 1 << 24, MOST_EACH = 255 * 255 };

/* Returns the integers of input i minus their zero point, input `zero`, as floats. */
static Value *centered(OnnxNode *n, int i, int zero, int axis)
{
    Value *x = on_value(n, i);
    if (!x || (x->type.dtype != ETC_I8 && x->type.dtype != ETC_U8)) {
        if (x)
            onnx_unsupported(n, "has integers of type %s", dtype_name(x->type.dtype));
        return NULL;
    }
    Value *z = on_has(n, zero) ? on_cast(n, on_value(n, zero), ETC_F32) : NULL;
    x = on_cast(n, x, ETC_F32);
    return on_has(n, zero) ? on_binary(n, OP_SUB_TENSOR, x, spread(n, z, x, axis, 0)) : x;
}

/* Returns x minus its zero point as floats: a dequantize with scale 1. */
static Value *plain_floats(OnnxNode *n, Value *x, int zero, int axis)
{
    const OnnxList *l = on_has(n, zero) ? on_list(n, zero) : NULL;
    Value *z = on_has(n, zero) ? on_value(n, zero) : NULL;
    EtcDtype t = x->type.dtype;
    int64_t lo = t == ETC_I8 ? -128 : 0, hi = lo + 255;
    if (n->failed || (t != ETC_I8 && t != ETC_U8)) {
        if (!n->failed)
            onnx_unsupported(n, "has integers of type %s", dtype_name(t));
        return NULL;
    }
    if (!z || (l && l->dim && l->n == 1 && !l->dim[0].expr))
        return ON_BUILD(n, OP_DEQUANTIZE_PER_TENSOR, "vfiiit", x, 1.0, z ? l->dim[0].value : (int64_t)0, lo,
                        hi, t);
    if (z->type.rank == 0 || (z->type.rank == 1 && dim_equal(z->type.dim[0], DIM(1))))
        return ON_BUILD(n, OP_DEQUANTIZE_PER_TENSOR_TENSOR, "vvviit", x, on_number(n, 1, ETC_F64),
                        on_cast(n, on_view(n, z, 0, NULL), ETC_I64), lo, hi, t);
    return on_binary(n, OP_SUB_TENSOR, on_cast(n, x, ETC_F32),
                     spread(n, on_cast(n, z, ETC_F32), x, axis, 0));
}

/* Computes sums of so few terms at a time that floats hold them, and adds these as integers. */
bool onnx_matmul_integer(OnnxNode *n)
{
    enum { MOST_CHUNKS = 128 };
    Value *a = on_value(n, 0), *b = on_value(n, 1), *sum = NULL;
    if (!a || !b || !a->type.rank || !b->type.rank)
        return a && b && onnx_wrong(n, "has an operand of rank 0");
    int last = a->type.rank - 1, row = b->type.rank > 1 ? b->type.rank - 2 : 0;
    int64_t each = EXACT / MOST_EACH;
    Dim terms = a->type.dim[last];
    if (terms.expr || terms.value > MOST_CHUNKS * each)
        return onnx_unsupported(
            n, "sums more than 33,024 products, or a number known only at run time");
    for (int64_t k = 0; k < terms.value || !sum; k += each) {
        int64_t end = k + each < terms.value ? k + each : terms.value;
        bool is_all = k == 0 && end == terms.value;
        Value *p = is_all ? a : on_part(n, a, last, DIM(k), DIM(end), 1);
        Value *q = is_all ? b : on_part(n, b, row, DIM(k), DIM(end), 1);
        p = p ? plain_floats(n, p, 2, last ? last - 1 : 0) : NULL;
        q = p && q ? plain_floats(n, q, 3, b->type.rank - 1) : NULL;
        Value *part = on_cast(n, on_matmul(n, p, q), ETC_I32);
        sum = k ? on_binary(n, OP_ADD_TENSOR, sum, part) : part;
        if (!sum)
            return false;
    }
    return on_define(n, 0, sum);
}

/* Reads a convolution of integers without scales.  Padding has the value of the zero point, so it
 * adds nothing. */
bool onnx_conv_integer(OnnxNode *n)
{
    int64_t terms = 1;
    Value *x = centered(n, 0, 2, 1), *filter = x ? centered(n, 1, 3, 0) : NULL;
    for (int i = 1; filter && i < filter->type.rank; i++) {
        Dim d = filter->type.dim[i];
        terms = d.expr || d.value > EXACT ? EXACT : terms * d.value;
        terms = terms > EXACT ? EXACT : terms;
    }
    if (filter && terms > EXACT / MOST_EACH) { /* floats of 64 bits hold them */
        x = on_cast(n, x, ETC_F64);
        filter = on_cast(n, filter, ETC_F64);
    }
    return filter && on_define(n, 0, on_cast(n, on_conv(n, x, filter, NULL), ETC_I32));
}

/* Multiplies integers of 16 bits as floats of 64 bits, which hold the sums. */
bool onnx_matmul_integer16(OnnxNode *n)
{
    Value *a = on_cast(n, on_value(n, 0), ETC_F64), *b = on_cast(n, on_value(n, 1), ETC_F64);
    return a && b && on_define(n, 0, on_cast(n, on_matmul(n, a, b), ETC_I32));
}

/* Quantizes x with a scale and a zero point computed from its elements; 0 is representable. */
bool onnx_quantize_dynamically(OnnxNode *n)
{
    Value *end[2] = {NULL}, *x = on_value(n, 0), *scale, *zero, *y;
    int64_t axis[MAX_RANK];
    for (int i = 0; x && i < x->type.rank; i++)
        axis[i] = i;
    for (int i = 0; x && i < 2; i++) {
        end[i] = ON_BUILD(n, i ? OP_AMAX : OP_AMIN, "vIb", x, x->type.rank, axis, false);
        end[i] = on_binary(n, i ? OP_MAXIMUM : OP_MINIMUM, end[i], on_number(n, 0, x->type.dtype));
    }
    scale = on_scalar(n, OP_DIV_SCALAR, on_binary(n, OP_SUB_TENSOR, end[1], end[0]), 255);
    scale = x ? on_where(n, on_scalar(n, OP_EQ_SCALAR, scale, 0), on_number(n, 1, x->type.dtype), scale) : NULL;
    zero = on_unary(n, OP_ROUND, on_binary(n, OP_DIV_TENSOR, on_unary(n, OP_NEG, end[0]), scale));
    zero = zero ? ON_BUILD(n, OP_CLAMP, "vff", zero, 0.0, 255.0) : NULL;
    y = on_binary(n, OP_ADD_TENSOR, on_unary(n, OP_ROUND, on_binary(n, OP_DIV_TENSOR, x, scale)), zero);
    y = y ? on_cast(n, ON_BUILD(n, OP_CLAMP, "vff", y, 0.0, 255.0), ETC_U8) : NULL;
    return on_define(n, 0, y) && on_define(n, 1, scale) && on_define(n, 2, on_cast(n, zero, ETC_U8));
}

/* -- products of what is quantized at run time ------------------------------------------------- */

/* Returns x rounded to bytes by one scale, chosen at run time, in the form of torch's exports.  Of
 * the standard's definition it differs in that u8 is i8, and that it multiplies with an inverse. */
Value *on_rounded(OnnxNode *n, Value *x)
{
    const int64_t lo = -128, hi = 127;
    const Node *c = x ? build(n->in->graph, NULL, n->loc, OP_CHOOSE_QPARAMS, n->in->diag, "viift", x, lo, hi,
                              0x1p-126, ETC_I8)
                      : NULL;
    n->failed |= !c;
    x = c ? ON_BUILD(n, OP_QUANTIZE_PER_TENSOR_TENSOR, "vvviit", x, c->out[0], c->out[1], lo, hi, ETC_I8) : NULL;
    return x ? ON_BUILD(n, OP_DEQUANTIZE_PER_TENSOR_TENSOR, "vvviit", x, c->out[0], c->out[1], lo, hi, ETC_I8)
             : NULL;
}

/* Returns the product of x, rounded at run time, and the integers of a weight.  Inputs 0 to 3 are x,
 * the weight, its scale and its zero point; the attributes are those of a convolution if it is one. */
static Value *rounded_product(OnnxNode *n, bool is_conv)
{
    static const int64_t swap[2] = {1, 0};
    Value *x = on_value(n, 0), *w = x ? on_value(n, 1) : NULL;
    const bool is_linear = w && w->state && w->type.rank == 2 && x->type.rank > 1;
    w = w ? dequantized(n, w, 0, 2, is_conv ? 0 : -1) : NULL;
    Value *a = w ? on_rounded(n, x) : NULL;
    if (!a || is_conv)
        return a ? on_conv(n, a, w, NULL) : NULL;
    return is_linear ? on_binary(n, OP_LINEAR, a, on_permute(n, w, swap)) : on_matmul(n, a, w);
}

static bool is_named(ProtobufCBinaryData text, ProtobufCBinaryData other)
{
    return text.len == other.len && !memcmp(text.data, other.data, text.len);
}

static bool has_output(const Onnx__Node *node, ProtobufCBinaryData text)
{
    for (size_t i = 0; i < node->n_output; i++)
        if (is_named(node->output[i], text))
            return true;
    return false;
}

/* Returns the node of operator `op` in the graph of n that defines this name; NULL: there is none.  A value that
 * a loop carries has another name there. */
static const Onnx__Node *maker(OnnxNode *n, ProtobufCBinaryData text, const char *op)
{
    const char *name = text.len ? onnx_text(n->in, text) : NULL;
    const OnnxValue *v = name ? onnx_find(n->scope, name) : NULL;
    const Onnx__Node *by = v && v->scope == n->scope ? v->by : NULL;
    return by && has_output(by, text) && onnx_is_default(by->domain) && by->op_type.len == strlen(op) &&
                   !memcmp(by->op_type.data, op, by->op_type.len)
               ? by
               : NULL;
}

/* Returns the node that quantizes at run time to these bytes with this zero point; NULL: there is
 * none. */
static const Onnx__Node *rounding_of(OnnxNode *n, ProtobufCBinaryData bytes, ProtobufCBinaryData zero)
{
    const Onnx__Node *d = maker(n, bytes, "DynamicQuantizeLinear");
    return d && d->n_input == 1 && d->n_output == 3 && is_named(d->output[0], bytes) && is_named(d->output[2], zero)
               ? d
               : NULL;
}

/* Returns the product of integers whose floats input `side` of n is; NULL: it is none of a value
 * that is quantized at run time. */
static const Onnx__Node *product_of(OnnxNode *n, int side, const Onnx__Node **rounding)
{
    const Onnx__Node *cast = maker(n, n->node->input[side], "Cast"), *p;
    if (!cast || cast->n_input != 1)
        return NULL;
    p = maker(n, cast->input[0], "MatMulInteger");
    p = p ? p : maker(n, cast->input[0], "ConvInteger");
    *rounding = p && p->n_input > 2 ? rounding_of(n, p->input[0], p->input[2]) : NULL;
    return *rounding ? p : NULL;
}

/* Returns x, which d rounds, times the weight of p, a product of integers, by these scales. */
static Value *product_like(OnnxNode *n, const Onnx__Node *d, const Onnx__Node *p, ProtobufCBinaryData scale, size_t zero)
{
    ProtobufCBinaryData input[4] = {d->input[0], p->input[1], scale, {0, NULL}};
    if (zero < p->n_input)
        input[3] = p->input[zero];
    Onnx__Node made = *p;
    made.n_input = 4;
    made.input = input;
    OnnxNode of = *n;
    of.node = &made;
    Value *y = rounded_product(&of, made.op_type.data[0] == 'C');
    n->failed |= of.failed;
    return y;
}

/* Returns a product of integers as floats, times (scale of its input * scale of its weight); NULL: n is
 * something else, or an error was reported. */
static Value *scaled_product(OnnxNode *n, int side)
{
    const Onnx__Node *d, *p = product_of(n, side, &d), *by = p ? maker(n, n->node->input[!side], "Mul") : NULL;
    Value *sums = by ? on_value(n, side) : NULL, *scales = sums ? on_value(n, !side) : NULL;
    if (!scales || by->n_input != 2 || sums->type.dtype != ETC_F32 || scales->type.dtype != ETC_F32 ||
        scales->type.rank > 1 || sums->type.rank < 2 || (scales->type.rank && p->op_type.data[0] == 'C'))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (is_named(by->input[i], d->output[1]))
            return product_like(n, d, p, by->input[!i], 3);
    return NULL;
}

bool onnx_mul(OnnxNode *n)
{
    Value *y = NULL;
    for (int i = 0; n->node->n_input == 2 && !y && !n->failed && i < 2; i++)
        y = scaled_product(n, i);
    return y ? on_define(n, 0, y) : !n->failed && onnx_binary(n);
}

/* -- com.microsoft ----------------------------------------------------------------------------- */

bool onnx_qlinear_binary(OnnxNode *n)
{
    Value *x = on_value(n, 0), *a = operand(n, 0, 1), *b = a ? operand(n, 3, 1) : NULL;
    return b && define_integers(n, on_binary(n, n->row->op, a, b), 6, x);
}

bool onnx_qlinear_unary(OnnxNode *n)
{
    Value *x = on_value(n, 0), *a = operand(n, 0, 1);
    return a && define_integers(n, on_unary(n, n->row->op, a), 3, x);
}

bool onnx_qlinear_leaky_relu(OnnxNode *n)
{
    Value *x = on_value(n, 0), *a = operand(n, 0, 1);
    return a && define_integers(n, ON_BUILD(n, OP_LEAKY_RELU, "vf", a, on_float(n, "alpha", 0.01)), 3, x);
}

bool onnx_qlinear_global_pool(OnnxNode *n)
{
    int64_t axis[MAX_RANK];
    Value *x = on_value(n, 0), *a = operand(n, 0, 1);
    int first = on_int(n, "channels_last", 0) ? 1 : 2;
    for (int i = 0; a && i < a->type.rank - 2; i++)
        axis[i] = first + i;
    return a && define_integers(n, ON_BUILD(n, OP_MEAN_DIM, "vIb", a, a->type.rank - 2, axis, true), 3, x);
}

bool onnx_qlinear_average_pool(OnnxNode *n)
{
    bool is_last = on_int(n, "channels_last", 0);
    Value *x = on_value(n, 0), *a = operand(n, 0, 1);
    Value *y = on_average_pool(n, is_last ? on_channels_first(n, a) : a);
    return define_integers(n, is_last ? on_channels_last(n, y) : y, 3, x);
}

bool onnx_qlinear_where(OnnxNode *n)
{
    Value *c = on_value(n, 0), *a = operand(n, 1, 1), *b = a ? operand(n, 4, 1) : NULL;
    return b && define_integers(n, on_where(n, c, a, b), 7, on_value(n, 1));
}

bool onnx_qlinear_softmax(OnnxNode *n)
{
    int axis;
    Value *x = on_value(n, 0), *a = operand(n, 0, 1);
    if (!a || !on_axis(n, on_int(n, "axis", -1), a->type.rank, &axis))
        return false;
    if (on_int(n, "opset", 13) < 13 && axis != a->type.rank - 1)
        return onnx_unsupported(n, "takes several axes as one");
    return define_integers(n, ON_BUILD(n, OP__SOFTMAX, "vib", a, (int64_t)axis, false), 3, x);
}

/* Joins integers.  The scale and the zero point of the result are inputs 0 and 1. */
bool onnx_qlinear_concat(OnnxNode *n)
{
    int axis, count = ((int)n->node->n_input - 2) / 3;
    Range r;
    Value **part = NEW(n->in->tmp, Value *, count + 1);
    if (count < 1 || !type_of_zero(n, 1, &r))
        return !n->failed && onnx_wrong(n, "joins nothing");
    for (int i = 0; i < count; i++)
        if (!(part[i] = operand(n, 2 + 3 * i, 1)))
            return false;
    if (!on_axis(n, on_int(n, "axis", 1), part[0]->type.rank, &axis))
        return false;
    return on_define(n, 0, quantized(n, ON_BUILD(n, OP_CAT, "Vi", count, part, (int64_t)axis), 0, &r, 1));
}

static Value *turned(OnnxNode *n, Value *x)
{
    static const int64_t swap[2] = {1, 0};
    if (x && x->type.rank != 2) {
        onnx_wrong(n, "has an operand of rank %d, expected 2", x->type.rank);
        return NULL;
    }
    return on_permute(n, x, swap);
}

/* Reads a product of integers.  The bias is in units of both scales and alpha.  Without a scale of
 * the result, this is floats. */
bool onnx_qgemm(OnnxNode *n)
{
    double alpha = on_float(n, "alpha", 1);
    bool turns_b = on_int(n, "transB", 0);
    Value *x = on_value(n, 0), *a = operand(n, 0, 1), *b = a ? operand(n, 3, turns_b ? 0 : 1) : NULL;
    if (!b)
        return false;
    a = on_int(n, "transA", 0) ? turned(n, a) : a;
    b = turns_b ? turned(n, b) : b;
    Value *y = on_matmul(n, a, b);
    if (on_has(n, 6)) {
        Value *scale = on_binary(n, OP_MUL_TENSOR, on_value(n, 1), on_value(n, 4));
        y = on_binary(n, OP_ADD_TENSOR, y, on_binary(n, OP_MUL_TENSOR,
                                                     on_cast(n, on_value(n, 6), ETC_F32), scale));
    }
    y = alpha == 1 ? y : on_scalar(n, OP_MUL_SCALAR, y, alpha);
    return on_has(n, 7) ? define_integers(n, y, 7, x) : on_define(n, 0, y);
}

static Value *biased(OnnxNode *n, Value *y, int bias)
{
    return on_has(n, bias) ? on_binary(n, OP_ADD_TENSOR, y, on_value(n, bias)) : y;
}

Value *on_dequantized(OnnxNode *n, int i, int at, int zero)
{
    Value *scale = on_cast(n, on_value(n, at), ETC_F32), *w = on_value(n, i);
    Value *f = scale && w && w->type.rank ? centered(n, i, zero, w->type.rank - 1) : NULL;
    return f ? on_binary(n, OP_MUL_TENSOR, f, spread(n, scale, f, f->type.rank - 1, 0)) : NULL;
}

bool onnx_matmul_integer_to_float(OnnxNode *n)
{
    const Onnx__Node *p = n->node, *d = p->n_input > 4 ? rounding_of(n, p->input[0], p->input[4]) : NULL;
    if (d && is_named(p->input[2], d->output[1]))
        return on_define(n, 0, biased(n, product_like(n, d, p, p->input[3], 5), 6));
    Value *x = on_value(n, 0);
    Value *a = x && x->type.rank > 1 ? centered(n, 0, 4, x->type.rank - 2) : NULL;
    Value *by = a ? spread(n, on_value(n, 2), a, a->type.rank - 2, 0) : NULL;
    Value *w = by ? on_dequantized(n, 1, 3, 5) : NULL;
    return w && on_define(n, 0, biased(n, on_matmul(n, on_binary(n, OP_MUL_TENSOR, a, by), w), 6));
}

bool onnx_dynamic_matmul(OnnxNode *n)
{
    return on_define(n, 0, biased(n, rounded_product(n, false), 4));
}
