/* c_logic.c -- prints comparisons, logical and bitwise operators, where, any, sums of integers and
 * arange, element by element. */
#include "emit/c_emit.h"
#include <string.h>

/* -- comparisons ----------------------------------------------------------------------------- */

/* Returns the C type in which operands are compared, as the kernels choose it. */
static const char *computed_in(EtcDtype t)
{
    return t == ETC_F32 ? "float" : t == ETC_F64 ? "double" : "int64_t";
}

static EtcDtype wider(EtcDtype a, EtcDtype b)
{
    if (a == ETC_F64 || b == ETC_F64)
        return ETC_F64;
    return a == ETC_F32 || b == ETC_F32 ? ETC_F32 : ETC_I64;
}

/* Returns the dtype in which the operands are compared.  A number, or a tensor of rank 0 beside
 * another tensor, matters only if it is a float and the tensor is not. */
static EtcDtype common(const Node *n)
{
    Type a = arg_value(n, "self")->type;
    if (n->n_args < 2)
        return wider(a.dtype, ETC_I64);
    if (arg_get(n, "other").kind != ARG_VALUE)
        return arg_get(n, "other").kind == ARG_FLOAT && !dtype_is_float(a.dtype) ? ETC_F32
                                                                       : wider(a.dtype, ETC_I64);
    Type b = arg_value(n, "other")->type;
    bool same_kind = dtype_is_float(a.dtype) == dtype_is_float(b.dtype);
    if (!a.rank != !b.rank && same_kind)
        return wider(a.rank ? a.dtype : b.dtype, ETC_I64);
    return wider(a.dtype, b.dtype);
}

static const char *relation(const Node *n)
{
    static const struct {
        const char *kernel, *text;
    } row[] = {{"eq", " == "}, {"ne", " != "}, {"lt", " < "}, {"le", " <= "}, {"gt", " > "},
               {"ge", " >= "}, {"logical_and", " && "}, {"logical_or", " || "},
               {"logical_xor", " != "}, {"bitwise_and", " & "}, {"bitwise_or", " | "},
               {"bitwise_xor", " ^ "}};
    const char *kernel = op_kernel(n->op);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        size_t len = strlen(row[i].kernel);
        if (!strncmp(kernel, row[i].kernel, len) &&
            (!kernel[len] || !strcmp(kernel + len, "_scalar")))
            return row[i].text;
    }
    return NULL;
}

typedef struct Each {
    Function *f;
    const Node *n;
    Nest nest; /* the tensors among the operands, then the result */
    const char *index[MAX_LOOPS];
    int indent;
} Each;

static bool each_open(Each *e, Function *f, const Node *n)
{
    const Value *y = n->out[0];
    bool ok = dtype_has_c(y->type.dtype);
    *e = (Each){.f = f, .n = n, .nest = nest_new(f->e, y->type, n->n_in + 1)};
    for (int i = 0; i < n->n_in; i++) {
        ok = ok && dtype_has_c(n->in[i]->type.dtype);
        nest_operand(f->e, &e->nest, i, value_type(n->in[i]));
    }
    nest_operand(f->e, &e->nest, n->n_in, y->type);
    nest_collapse(f->e, &e->nest);
    if (!ok)
        return function_refuse(f, n, "has no C for these dtypes");
    e->indent = nest_open(f, &e->nest, e->nest.rank, e->index);
    return true;
}

static void put_result(Each *e)
{
    const char *y = e->f->name_of[e->n->out[0]->index];
    put(&e->f->body, "%*s*(", e->indent, "");
    nest_address(e->f, &e->nest, e->n->n_in, y, e->nest.rank, e->index);
    put(&e->f->body, ") = ");
}

/* Prints "((float)(*(x + i)))"; for a bool, "((int64_t)(*(x + i) != 0))". */
static void put_operand(Each *e, int slot, const char *type)
{
    const Value *v = e->n->in[slot];
    put(&e->f->body, "((%s)(*(", type);
    nest_address(e->f, &e->nest, slot, function_pointer(e->f, v), e->nest.rank, e->index);
    put(&e->f->body, v->type.dtype == ETC_BOOL ? ") != 0))" : ")))");
}

static void put_number(Function *f, const Arg *a, EtcDtype t)
{
    if (a->kind == ARG_INT && a->dim.expr) {
        put(&f->body, "(%s)(", computed_in(t));
        function_dim(f, a->dim);
        put(&f->body, ")");
        return;
    }
    double v = a->kind == ARG_FLOAT ? a->f : a->kind == ARG_BOOL ? a->b : (double)a->dim.value;
    if (t == ETC_F32)
        put_float(&f->body, (float)v);
    else if (t == ETC_F64)
        put_double(&f->body, v);
    else
        put_int(&f->body, a->kind == ARG_INT ? a->dim.value : (int64_t)v);
}

static bool is_number(const Arg *a)
{
    return a->kind == ARG_FLOAT || a->kind == ARG_BOOL || a->kind == ARG_INT;
}

static void put_pair(Each *e, const char *relation, EtcDtype t)
{
    bool is_truth = !strncmp(op_kernel(e->n->op), "logical", 7);
    const char *type = computed_in(t), *zero = is_truth ? " != 0" : "";
    const Arg other = arg_get(e->n, "other");
    /* "0 + x": compilers warn of a comparison that no number of a narrow type passes. */
    put(&e->f->body, t == ETC_I64 && other.kind != ARG_VALUE ? "(0 + " : "(");
    put_operand(e, 0, type);
    put(&e->f->body, "%s)%s(", zero, relation);
    if (other.kind == ARG_VALUE) {
        put_operand(e, other.slot, type);
    } else if (t == ETC_I64 &&
               dtype_is_int(arg_value(e->n, "self")->type.dtype)) { /* the number may wrap */
        put(&e->f->body, "(int64_t)(%s)", c_type(arg_value(e->n, "self")->type.dtype));
        put_number(e->f, &other, t);
    } else {
        put_number(e->f, &other, t);
    }
    put(&e->f->body, "%s)", zero);
}

bool emit_compare(Function *f, const Node *n, Clamp clamp)
{
    Each e;
    EtcDtype t = common(n), to = n->out[0]->type.dtype;
    bool is_not = n->op == OP_LOGICAL_NOT || (n->op == OP_BITWISE_NOT && to == ETC_BOOL);
    (void)clamp;
    if (n->n_args > 1 && arg_get(n, "other").kind != ARG_VALUE &&
        !is_number(&n->arg[arg_of(n, "other")]))
        return function_refuse(f, n, "expects a number to compare with");
    if (!each_open(&e, f, n))
        return false;
    put_result(&e);
    put(&f->body, "(%s)(", c_type(to));
    if (n->n_args > 1) {
        put_pair(&e, relation(n), t);
    } else {
        put(&f->body, is_not ? "" : "~");
        put_operand(&e, 0, computed_in(t));
        put(&f->body, is_not ? " == 0" : "");
    }
    put(&f->body, ");\n");
    nest_close(f, e.nest.rank);
    return true;
}

/* -- where ----------------------------------------------------------------------------------- */

/* Prints argument i, converted to the dtype of the result. */
static void put_choice(Each *e, int i)
{
    EtcDtype to = e->n->out[0]->type.dtype;
    const Arg *a = &e->n->arg[i];
    if (a->kind != ARG_VALUE) {
        put(&e->f->body, "(%s)(", c_type(to));
        put_number(e->f, a, dtype_is_float(to) ? to : ETC_I64);
        put(&e->f->body, to == ETC_BOOL ? " != 0)" : ")");
    } else if (to == ETC_BOOL) {
        put_operand(e, a->slot, "uint8_t");
    } else {
        put_operand(e, a->slot, c_type(to));
    }
}

bool emit_where(Function *f, const Node *n, Clamp clamp)
{
    Each e;
    (void)clamp;
    for (int i = 1; i <= 2; i++)
        if (n->arg[i].kind != ARG_VALUE && !is_number(&n->arg[i]))
            return function_refuse(f, n, "expects numbers or tensors");
    if (!each_open(&e, f, n))
        return false;
    put_result(&e);
    put(&f->body, "(*(");
    nest_address(f, &e.nest, arg_get(n, "condition").slot,
                 function_pointer(f, n->in[arg_get(n, "condition").slot]), e.nest.rank,
                 e.index);
    put(&f->body, ") != 0) ? ");
    put_choice(&e, 1);
    put(&f->body, " : ");
    put_choice(&e, 2);
    put(&f->body, ";\n");
    nest_close(f, e.nest.rank);
    return true;
}

/* -- any, products, extremes, sums of integers ------------------------------------------------- */

/* Marks the axes of argument `dim`, which is one axis or a list; all axes if it names none. */
static bool get_axes(const Node *n, int rank, bool *goes)
{
    int64_t list[MAX_RANK];
    int at = arg_find(n, "dim"), count = at < 0 || n->arg[at].kind != ARG_LIST ? 0 : arg_count(n, at);
    if (count && !arg_ints(n, at, list, MAX_RANK))
        return false;
    if (at >= 0 && n->arg[at].kind == ARG_INT) {
        count = 1;
        if (!arg_int(n, at, list))
            return false;
    }
    for (int i = 0; i < rank; i++)
        goes[i] = !count;
    for (int i = 0; i < count && rank; i++)
        goes[list[i] < 0 ? list[i] + rank : list[i]] = true;
    return true;
}

static void put_place(Function *f, const Nest *nest, int k, const char *pointer,
                      const char *const *index)
{
    put(&f->body, "*(");
    nest_address(f, nest, k, pointer, nest->rank, index);
    put(&f->body, ")");
}

/* Prints the value from which results start: for maxima the least value of the dtype, for minima
 * the greatest, for products 1, else 0. */
static void put_start(Function *f, const Node *n)
{
    EtcDtype t = n->out[0]->type.dtype;
    bool is_signed = t == ETC_I8 || t == ETC_I16 || t == ETC_I32 || t == ETC_I64;
    int bits = 8 * (int)etc_dtype_size((int)t);
    bool is_max = n->op == OP_AMAX, is_min = n->op == OP_AMIN;
    if ((is_max || is_min) && dtype_is_float(t))
        put(&f->body, "%s__builtin_inf%s()", is_max ? "-" : "", t == ETC_F32 ? "f" : "");
    else if (is_max && is_signed)
        put_int(&f->body, bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1)));
    else if (is_min)
        put_int(&f->body, t == ETC_BOOL ? 1
                          : bits == 64  ? INT64_MAX
                                        : ((int64_t)1 << (bits - is_signed)) - 1);
    else
        put(&f->body, n->op == OP_PROD || n->op == OP_PROD_DIM ? "1" : "0");
}

/* Prints y = (type)((work)y sign (work)x).  Integers wrap. */
static void put_arithmetic(Function *f, const Node *n, const Nest *all, const char *const *index,
                           int indent, char sign)
{
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    Text *t = &f->body;
    bool is_bool = x->type.dtype == ETC_BOOL;
    const char *work = dtype_is_float(y->type.dtype) ? c_type(y->type.dtype) : "uint64_t";
    put(t, "%*s", indent, "");
    put_place(f, all, 1, f->name_of[y->index], index);
    put(t, " = (%s)((%s)", c_type(y->type.dtype), work);
    put_place(f, all, 1, f->name_of[y->index], index);
    put(t, is_bool ? " %c (%s)(" : " %c (%s)", sign, work);
    put_place(f, all, 0, function_pointer(f, x), index);
    put(t, is_bool ? " != 0));\n" : ");\n");
}

/* Prints code that combines the element at x with its result at y.  A NaN remains the result. */
static void put_join(Function *f, const Node *n, const Nest *all, const char *const *index,
                     int indent)
{
    const char *x = function_pointer(f, arg_value(n, "self")), *y = f->name_of[n->out[0]->index];
    bool is_extreme = n->op == OP_AMAX || n->op == OP_AMIN;
    Text *t = &f->body;
    if (n->op == OP_SUM_DIM || n->op == OP_MEAN_DIM || n->op == OP_PROD || n->op == OP_PROD_DIM) {
        put_arithmetic(f, n, all, index, indent, n->op == OP_SUM_DIM || n->op == OP_MEAN_DIM ? '+' : '*');
        return;
    }
    put(t, "%*sif (", indent, "");
    put_place(f, all, 0, x, index);
    put(t, n->op == OP_AMAX ? " > " : n->op == OP_AMIN ? " < " : " != 0");
    if (is_extreme)
        put_place(f, all, 1, y, index);
    if (is_extreme && dtype_is_float(n->out[0]->type.dtype)) {
        put(t, " || ");
        put_place(f, all, 0, x, index);
        put(t, " != ");
        put_place(f, all, 0, x, index);
    }
    put(t, ") {\n%*s", indent + 4, "");
    put_place(f, all, 1, y, index);
    put(t, " = ");
    if (is_extreme)
        put_place(f, all, 0, x, index);
    put(t, is_extreme ? ";\n%*s}\n" : "1;\n%*s}\n", indent, "");
}

/* Prints the division of each sum in y by the number of its elements. */
static void put_quotients(Function *f, const Value *y, const Nest *start, Dim count)
{
    const char *index[MAX_LOOPS];
    int indent = nest_open(f, start, start->rank, index);
    put(&f->body, "%*s", indent, "");
    put_place(f, start, 0, f->name_of[y->index], index);
    put(&f->body, " /= (double)");
    function_dim(f, count);
    put(&f->body, ";\n");
    nest_close(f, start->rank);
}

/* Prints a loop that sets all results to the same value, then one that combines each element
 * with its result.  The order of the elements does not matter for these operators. */
bool emit_any(Function *f, const Node *n, Clamp clamp)
{
    const char *index[MAX_LOOPS];
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    bool goes[MAX_RANK], keepdim = arg_find(n, "keepdim") >= 0 && arg_bool(n, "keepdim");
    Dim stride[MAX_RANK], count = DIM(1);
    (void)clamp;
    if (!dtype_has_c(x->type.dtype) || !get_axes(n, x->type.rank, goes))
        return function_refuse(f, n, "has no C for this dtype");
    Nest start = nest_new(f->e, y->type, 1), all = nest_new(f->e, x->type, 2);
    nest_operand(f->e, &start, 0, y->type);
    nest_operand(f->e, &all, 0, value_type(x));
    type_strides(f->e, y->type, stride);
    for (int i = 0, k = 0; i < x->type.rank; i++) {
        all.stride[1][i] = goes[i] ? DIM(0) : stride[k];
        count = goes[i] ? dim_mul(f->e->method->program, count, x->type.dim[i]) : count;
        k += !goes[i] || keepdim;
    }
    nest_collapse(f->e, &start);
    nest_collapse(f->e, &all);
    int indent = nest_open(f, &start, start.rank, index);
    put(&f->body, "%*s", indent, "");
    put_place(f, &start, 0, f->name_of[y->index], index);
    put(&f->body, " = ");
    put_start(f, n);
    put(&f->body, ";\n");
    nest_close(f, start.rank);
    indent = nest_open(f, &all, all.rank, index);
    put_join(f, n, &all, index, indent);
    nest_close(f, all.rank);
    if (n->op == OP_MEAN_DIM)
        put_quotients(f, y, &start, count);
    return true;
}

/* -- arange ---------------------------------------------------------------------------------- */

/* Prints arange(start, end, step).  The end is not read, because the size of the result is
 * known. */
bool emit_arange(Function *f, const Node *n, Clamp clamp)
{
    Each e;
    double start, step;
    Dim from = DIM(0), by = DIM(0);
    EtcDtype to = n->out[0]->type.dtype;
    (void)clamp;
    bool is_float = arg_get(n, "start").kind == ARG_FLOAT ||
                    arg_get(n, "step").kind == ARG_FLOAT;
    if (is_float ? !arg_number(n, "start", &start) || !arg_number(n, "step", &step)
                 : !arg_dim(n, "start", &from) || !arg_dim(n, "step", &by))
        return function_refuse(f, n, "expects numbers as bounds");
    if (!each_open(&e, f, n))
        return false;
    put_result(&e);
    put(&f->body, "(%s)(", c_type(to));
    if (is_float) {
        put_double(&f->body, start);
        put(&f->body, " + ((double)%s * ", e.index[0]);
        put_double(&f->body, step);
    } else {
        function_dim(f, from);
        put(&f->body, " + (%s * ", e.index[0]);
        function_dim(f, by);
    }
    put(&f->body, "));\n");
    nest_close(f, e.nest.rank);
    return true;
}
