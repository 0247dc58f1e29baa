/* c_quantize.c -- quantization per tensor, channel and token: kernels/quantize.h's cores. */
#include "emit/c_emit.h"

static bool is_whole(EtcDtype t)
{
    return t == ETC_U8 || t == ETC_I8 || t == ETC_I16 || t == ETC_I32 || t == ETC_I64;
}

static bool check(Function *f, const Node *n)
{
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        EtcDtype t = v->type.dtype;
        if (t != ETC_F32 && t != ETC_F64 && !is_whole(t))
            return function_refuse(f, n, "has no C for these dtypes");
        if (!c_type_is_dense(f->e, value_type(v)))
            return function_refuse(f, n, "takes no tensor with gaps here");
    }
    return true;
}

/* outer, n and inner of x seen as [outer, n, inner] */
static void sizes(Function *f, const Node *n, Dim *dim)
{
    const Type t = arg_value(n, "input")->type;
    int64_t axis = 0;
    int from = 0, to = 0; /* the axes whose elements have scales of their own */
    if (n->op == OP_QUANTIZE_PER_CHANNEL || n->op == OP_DEQUANTIZE_PER_CHANNEL) {
        arg_int(n, "axis", &axis);
        from = (int)(axis < 0 ? axis + t.rank : axis);
        to = from + 1;
    } else if (n->op == OP_QUANTIZE_PER_TOKEN || n->op == OP_DEQUANTIZE_PER_TOKEN) {
        to = t.rank - 1;
    }
    dim[0] = c_dims_product(f->e, t.dim, from);
    dim[1] = c_dims_product(f->e, t.dim + from, to - from);
    dim[2] = c_dims_product(f->e, t.dim + to, t.rank - to);
}

static bool emit_choose(Function *f, const Node *n)
{
    bool rows = n->op == OP_CHOOSE_QPARAMS_PER_TOKEN;
    const Type t = arg_value(n, "input")->type;
    double eps = 1.1920928955078125e-07;
    int64_t lo = -128, hi = 127;
    if (!rows && (!arg_int(n, "quant_min", &lo) || !arg_int(n, "quant_max", &hi) ||
                  !arg_number(n, "eps", &eps)))
        return function_refuse(f, n, "wants a known range");
    const char *i = names_make(f->names, "", "i"), *x = function_pointer(f, arg_value(n, "input"));
    put(&f->body, "    for (int64_t %s = 0; %s < ", i, i);
    function_dim(f, rows ? c_dims_product(f->e, t.dim, t.rank - 1) : DIM(1));
    put(&f->body, "; %s++) {\n        etc_choose_f32(%s + (%s * ", i, x, i);
    Dim n_each = rows ? size_of(arg_value(n, "input"), -1) : c_dims_product(f->e, t.dim, t.rank);
    function_dim(f, n_each);
    put(&f->body, "), ");
    function_dim(f, n_each);
    put(&f->body, ", ");
    put_int(&f->body, lo);
    put(&f->body, ", ");
    put_int(&f->body, hi);
    put(&f->body, ", ");
    put_float(&f->body, (float)eps);
    put(&f->body, ", %d, %s + %s, %s + %s);\n    }\n", rows, f->name_of[n->out[0]->index], i,
        f->name_of[n->out[1]->index], i);
    return true;
}

/* Scale and zero point as pointers: of numbers, to variables. */
static bool points(Function *f, const Node *n, const char **scale, const char **zero, Type *of)
{
    double by;
    int64_t at;
    const Value *v = arg_value(n, 1), *z = arg_value(n, 2);
    if (v) {
        of[0] = v->type;
        of[1] = z ? z->type : (Type){.dtype = ETC_I64};
        *scale = function_pointer(f, v);
        *zero = array_or_null(f, z);
        return true;
    }
    if (!arg_number(n, "scale", &by) || !arg_int(n, "zero_point", &at))
        return function_refuse(f, n, "wants a known scale and zero point");
    of[0] = (Type){.dtype = ETC_F64};
    of[1] = (Type){.dtype = ETC_I64};
    *scale = names_make(f->names, "", "scale");
    *zero = names_make(f->names, "", "zero");
    put(&f->body, "    const double %s[1] = {", *scale);
    put_double(&f->body, by);
    put(&f->body, "};\n    const int64_t %s[1] = {", *zero);
    put_int(&f->body, at);
    put(&f->body, "};\n");
    return true;
}

bool emit_quantize(Function *f, const Node *n, Clamp clamp)
{
    Dim dim[3];
    Type of[2] = {{0}};
    int64_t lo = 0, hi = 0;
    const char *scale = NULL, *zero = NULL;
    (void)clamp;
    if (!check(f, n))
        return false;
    if (n->op == OP_CHOOSE_QPARAMS || n->op == OP_CHOOSE_QPARAMS_PER_TOKEN)
        return emit_choose(f, n);
    bool channels = n->op == OP_QUANTIZE_PER_CHANNEL || n->op == OP_DEQUANTIZE_PER_CHANNEL;
    bool tokens = n->op == OP_QUANTIZE_PER_TOKEN || n->op == OP_DEQUANTIZE_PER_TOKEN;
    bool undoes = n->out[0]->type.dtype == ETC_F32;
    EtcDtype q = undoes ? arg_value(n, "input")->type.dtype : n->out[0]->type.dtype;
    if (!is_whole(q) || q == ETC_I64 || (!undoes && arg_value(n, "input")->type.dtype != ETC_F32) ||
        !arg_int(n, channels ? 4 : 3, &lo) || !arg_int(n, channels ? 5 : 4, &hi) ||
        !points(f, n, &scale, &zero, of))
        return function_refuse(f, n, "has no C for these dtypes");
    sizes(f, n, dim);
    put(&f->body,
        "    /* outer, n, inner; range; dtypes of integers, scales, zero points; is_wide, "
        "adds_first */\n    const EtcQuant g = {");
    put_fields(f, dim, 3);
    put_int(&f->body, lo);
    put(&f->body, ", ");
    put_int(&f->body, hi);
    put(&f->body, ", %d, %d, %d, %d, %d};\n    etc_%s_f32(%s, %s, %s, %s, &g);\n", (int)q,
        (int)of[0].dtype, (int)of[1].dtype, (channels || tokens) && of[0].dtype == ETC_F64, tokens,
        undoes ? "dequantize" : "quantize", f->name_of[n->out[0]->index],
        function_pointer(f, arg_value(n, "input")), scale, zero);
    return true;
}
