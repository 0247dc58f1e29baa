/* onnx_quant.c -- QuantizeLinear and DequantizeLinear as the operators that torch's exports have. */
#include "compiler/import/onnx.h"

typedef struct Range {
    EtcDtype dtype;
    int64_t lo, hi;
} Range;

static bool range_of(OnnxNode *n, EtcDtype t, Range *r)
{
    r->dtype = t;
    r->lo = t == ETC_I8 ? -128 : t == ETC_I16 ? -32768 : 0;
    r->hi = t == ETC_I8 ? 127 : t == ETC_U8 ? 255 : t == ETC_I16 ? 32767 : 65535;
    if (t == ETC_I32) {
        r->lo = INT32_MIN;
        r->hi = INT32_MAX;
    }
    return t == ETC_I8 || t == ETC_U8 || t == ETC_I16 || t == ETC_U16 || t == ETC_I32 ||
           onnx_unsupported(n, "has integers of type %s", dtype_name(t));
}

/* One scale for all elements, known now; false: another form. */
static bool one_scale(OnnxNode *n, double *scale, int64_t *zero)
{
    const OnnxList *s = on_list(n, 1), *z = on_has(n, 2) ? on_list(n, 2) : NULL;
    if (!s || !s->number || s->n != 1 || (on_has(n, 2) && (!z || !z->dim || z->n != 1)))
        return false;
    *scale = s->number[0];
    *zero = z ? z->dim[0].value : 0;
    return true;
}

/* The scales and zero points of channels, as the operators of channels take them. */
static bool channels(OnnxNode *n, const Value *x, Value **scale, Value **zero, int *axis)
{
    Dim dim;
    if (on_int(n, "block_size", 0))
        return onnx_unsupported(n, "has a scale for each block");
    *scale = on_cast(n, on_value(n, 1), ETC_F32);
    if (!*scale)
        return false;
    if ((*scale)->type.rank != 1 || !on_axis(n, on_int(n, "axis", 1), x->type.rank, axis))
        return onnx_unsupported(n, "has scales that are neither one nor one for each channel");
    dim = (*scale)->type.dim[0];
    *zero = on_has(n, 2) ? on_cast(n, on_value(n, 2), ETC_I64)
                         : ON_BUILD(n, OP_FULL, "Dit", 1, &dim, (int64_t)0, ETC_I64);
    return *zero != NULL;
}

bool onnx_quantize(OnnxNode *n)
{
    Range r;
    double scale;
    int64_t zero;
    int axis;
    Value *x = on_cast(n, on_value(n, 0), ETC_F32), *scales, *zeros;
    EtcDtype t = ETC_U8;
    int64_t code = on_int(n, "output_dtype", 0);
    if (!x)
        return false;
    if (on_has(n, 2)) {
        const OnnxConst *c = on_const(n, 2);
        t = c ? c->type.dtype : on_value(n, 2) ? on_value(n, 2)->type.dtype : t;
    } else if (code && !onnx_dtype((int32_t)code, &t)) {
        return onnx_unsupported(n, "gives ONNX's element type %lld", (long long)code);
    }
    if (!range_of(n, t, &r))
        return false;
    if (one_scale(n, &scale, &zero))
        return on_define(n, 0, ON_BUILD(n, OP_QUANTIZE_PER_TENSOR, "vfiiit", x, scale, zero, r.lo, r.hi,
                                        t));
    return channels(n, x, &scales, &zeros, &axis) &&
           on_define(n, 0, ON_BUILD(n, OP_QUANTIZE_PER_CHANNEL, "vvviiit", x, scales, zeros,
                                    (int64_t)axis, r.lo, r.hi, t));
}

/* Integers of 32 bits, as biases are, are multiplied by their scales. */
static bool scaled(OnnxNode *n, Value *x)
{
    Dim dim[MAX_RANK];
    int axis = 0;
    Value *scale = on_value(n, 1), *y = on_cast(n, x, ETC_F32);
    if (!y || !scale)
        return false;
    if (scale->type.rank && !on_axis(n, on_int(n, "axis", 1), x->type.rank, &axis))
        return false;
    for (int i = 0; scale->type.rank && i < x->type.rank - axis; i++)
        dim[i] = i ? DIM(1) : scale->type.dim[0];
    if (scale->type.rank)
        scale = on_view(n, scale, x->type.rank - axis, dim);
    return scale && on_define(n, 0, ON_BUILD(n, OP_MUL_TENSOR, "vv", y, scale));
}

bool onnx_dequantize(OnnxNode *n)
{
    Range r;
    double scale;
    int64_t zero;
    int axis;
    Value *x = on_value(n, 0), *scales, *zeros;
    if (!x || !range_of(n, x->type.dtype, &r))
        return false;
    if (r.dtype == ETC_I32)
        return scaled(n, x);
    if (one_scale(n, &scale, &zero))
        return on_define(n, 0, ON_BUILD(n, OP_DEQUANTIZE_PER_TENSOR, "vfiiit", x, scale, zero, r.lo,
                                        r.hi, r.dtype));
    return channels(n, x, &scales, &zeros, &axis) &&
           on_define(n, 0, ON_BUILD(n, OP_DEQUANTIZE_PER_CHANNEL, "vvviiit", x, scales, zeros,
                                    (int64_t)axis, r.lo, r.hi, r.dtype));
}
