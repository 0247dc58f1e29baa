/* c_quantize.c -- prints quantization per tensor, channel and token, with the cores of
 * kernels/quantize.h. */
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
            return function_refuse(f, n, "expects a dense tensor here");
    }
    return true;
}

/* Computes the sizes of x as a tensor [outer, n, inner]. */
static void sizes(Function *f, const QParams *q, Dim *dim)
{
    const Type t = q->x->type;
    /* Along the axes [from, to) each index has its own scale. */
    int from = q->kind == Q_CHANNEL ? q->axis : 0;
    int to = q->kind == Q_CHANNEL ? from + 1 : q->kind == Q_TOKEN ? t.rank - 1 : 0;
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
        return function_refuse(f, n, "expects a known range");
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

/* Returns pointers to the scale and the zero point, and their types.  Numbers are printed as arrays
 * of one element. */
static void points(Function *f, const QParams *q, const char **scale, const char **zero, Type *of)
{
    of[0] = q->scales ? q->scales->type : (Type){.dtype = ETC_F64};
    of[1] = q->zeros ? q->zeros->type : (Type){.dtype = ETC_I64};
    if (q->scales) {
        *scale = function_pointer(f, q->scales);
        *zero = array_or_null(f, q->zeros);
        return;
    }
    *scale = names_make(f->names, "", "scale");
    *zero = names_make(f->names, "", "zero");
    put(&f->body, "    const double %s[1] = {", *scale);
    put_double(&f->body, q->scale);
    put(&f->body, "};\n    const int64_t %s[1] = {", *zero);
    put_int(&f->body, q->zero);
    put(&f->body, "};\n");
}

bool emit_quantize(Function *f, const Node *n, Clamp clamp)
{
    Dim dim[3];
    QParams q;
    Type of[2] = {{0}};
    const char *scale = NULL, *zero = NULL;
    (void)clamp;
    if (!check(f, n))
        return false;
    if (n->op == OP_CHOOSE_QPARAMS || n->op == OP_CHOOSE_QPARAMS_PER_TOKEN)
        return emit_choose(f, n);
    if (!qparams_read(n, &q))
        return function_refuse(f, n, "expects a known scale, zero point and range");
    if (!is_whole(q.dtype) || q.dtype == ETC_I64 ||
        (q.undoes ? n->out[0] : q.x)->type.dtype != ETC_F32)
        return function_refuse(f, n, "has no C for these dtypes");
    points(f, &q, &scale, &zero, of);
    sizes(f, &q, dim);
    put(&f->body,
        "    /* outer, n, inner; range; dtypes of integers, scales, zero points; is_wide, "
        "adds_first */\n    const EtcQuant g = {");
    put_fields(f, dim, 3);
    put_int(&f->body, q.lo);
    put(&f->body, ", ");
    put_int(&f->body, q.hi);
    put(&f->body, ", %d, %d, %d, %d, %d};\n    etc_%s_f32(%s, %s, %s, %s, &g);\n", (int)q.dtype,
        (int)of[0].dtype, (int)of[1].dtype, q.kind != Q_TENSOR && of[0].dtype == ETC_F64,
        q.kind == Q_TOKEN, q.undoes ? "dequantize" : "quantize", f->name_of[n->out[0]->index],
        function_pointer(f, q.x), scale, zero);
    return true;
}
