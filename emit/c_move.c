/* c_move.c -- prints operators that only move or fill: copies of views, concat, pad, full,
 * casts. */
#include "emit/c_emit.h"
#include <math.h>
#include <string.h>

static Dim mul(Function *f, Dim a, Dim b)
{
    return dim_mul(f->e->method->program, a, b);
}

static Dim add(Function *f, Dim a, Dim b)
{
    return dim_add(f->e->method->program, a, b);
}

/* Returns the axis of argument `dim`, counted from 0. */
static int axis(const Node *n, int rank)
{
    int64_t d = 0;
    arg_int(n, "dim", &d);
    return (int)(d < 0 ? d + rank : d);
}

/* Prints a copy of x to y that reads x with other strides, from element `start` on. */
static bool copy_as(Function *f, const Node *n, Dim start, const Dim *x_stride)
{
    Dim y_stride[MAX_RANK];
    const Value *y = n->out[0];
    type_strides(f->e, y->type, y_stride);
    const char *x = offset_by(f, function_pointer(f, arg_value(n, "self")), start);
    put_copy(f, y->type, x, x_stride, f->name_of[y->index], y_stride);
    return true;
}

bool emit_view(Function *f, const Node *n, Clamp clamp)
{
    Dim stride[MAX_RANK];
    Type t = n->out[0]->type;
    (void)clamp;
    if (!c_type_is_dense(f->e, value_type(arg_value(n, "self"))))
        return function_refuse(f, n, "cannot reshape a tensor with gaps");
    t.stride = NULL;
    type_strides(f->e, t, stride);
    return copy_as(f, n, DIM(0), stride);
}

/* Prints a copy of the bytes of a tensor, which are elements of another dtype then. */
bool emit_bits(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    (void)clamp;
    if (!c_type_is_dense(f->e, value_type(x)) || !c_type_is_dense(f->e, y->type))
        return function_refuse(f, n, "cannot reinterpret a tensor with gaps");
    put(&f->body, "    __builtin_memcpy(%s, %s, (size_t)(", f->name_of[y->index],
        function_pointer(f, x));
    function_dim(f, c_dims_product(f->e, y->type.dim, y->type.rank));
    put(&f->body, ") * sizeof *%s);\n", f->name_of[y->index]);
    return true;
}

bool emit_permute(Function *f, const Node *n, Clamp clamp)
{
    Dim from[MAX_RANK], stride[MAX_RANK];
    int64_t order[MAX_RANK];
    int rank = arg_value(n, "self")->type.rank;
    (void)clamp;
    if (!arg_ints(n, "dims", order, MAX_RANK))
        return function_refuse(f, n, "expects a constant permutation");
    type_strides(f->e, value_type(arg_value(n, "self")), from);
    for (int i = 0; i < rank; i++)
        stride[i] = from[order[i] < 0 ? order[i] + rank : order[i]];
    return copy_as(f, n, DIM(0), stride);
}

bool emit_expand(Function *f, const Node *n, Clamp clamp)
{
    Nest nest = nest_new(f->e, n->out[0]->type, 1);
    (void)clamp;
    nest_operand(f->e, &nest, 0, value_type(arg_value(n, "self")));
    return copy_as(f, n, DIM(0), nest.stride[0]);
}

/* Returns an index of either sign as the element that it counts: at + size where it is negative. */
static Dim counted_from_0(Function *f, Dim at, Dim size)
{
    Program *p = f->e->method->program;
    Dim is_negative = dim_min(p, dim_max(p, dim_sub(p, DIM(0), at), DIM(0)), DIM(1));
    return add(f, at, mul(f, size, is_negative));
}

static bool emit_select(Function *f, const Node *n)
{
    Dim from[MAX_RANK], stride[MAX_RANK], at;
    Type t = value_type(arg_value(n, "self"));
    int d = axis(n, t.rank), k = 0;
    if (!arg_dim(n, "index", &at))
        return function_refuse(f, n, "expects the index as a number");
    at = counted_from_0(f, at, t.dim[d]);
    type_strides(f->e, t, from);
    for (int i = 0; i < t.rank; i++)
        if (i != d)
            stride[k++] = from[i];
    return copy_as(f, n, mul(f, at, from[d]), stride);
}

/* Prints slice(self, dim, start, end, step).  The end is not read, because the size of the
 * result is known. */
bool emit_slice(Function *f, const Node *n, Clamp clamp)
{
    Dim stride[MAX_RANK], start = DIM(0), step = DIM(1);
    Program *p = f->e->method->program;
    Type t = value_type(arg_value(n, "self"));
    (void)clamp;
    if (n->op == OP_SELECT_INT)
        return emit_select(f, n);
    int d = axis(n, t.rank);
    if ((arg_get(n, "start").kind != ARG_NONE && !arg_dim(n, "start", &start)) ||
        !arg_dim(n, "step", &step))
        return function_refuse(f, n, "expects its bounds as numbers");
    if (dim_upper(start) < 0)
        start = dim_max(p, add(f, t.dim[d], start), DIM(0));
    start = dim_min(p, start, t.dim[d]);
    type_strides(f->e, t, stride);
    start = mul(f, start, stride[d]);
    stride[d] = mul(f, stride[d], step);
    return copy_as(f, n, start, stride);
}

/* -- concat ---------------------------------------------------------------------------------- */

/* Returns whether the plan has already put an input into its part of the result. */
static bool is_in_place(Emit *e, const Node *n, const Value *in, Dim before)
{
    const Value *out = n->out[0];
    Dim have[MAX_RANK], want[MAX_RANK];
    int64_t size = (int64_t)etc_dtype_size((int)out->type.dtype);
    if (before.expr || !place_is_alias(in, out, before.value * size))
        return false;
    type_strides(e, in->type, have);
    type_strides(e, out->type, want);
    for (int i = 0; i < in->type.rank; i++)
        if (!(in->type.dim[i].expr == NULL && in->type.dim[i].value == 1) &&
            !dim_equal(have[i], want[i]))
            return false;
    return true;
}

ConcatMoves concat_moves(Emit *e, const Node *n)
{
    Dim at = DIM(0);
    ConcatMoves c = {.at = NEW(e->a, Dim, n->n_in + 1), .moves = NEW(e->a, bool, n->n_in + 1)};
    int d = axis(n, n->out[0]->type.rank);
    type_strides(e, n->out[0]->type, c.stride);
    for (int i = 0; i < n->n_in; i++) {
        const Value *x = n->in[i];
        c.at[i] = at;
        c.moves[i] = x->type.rank != n->out[0]->type.rank || !is_in_place(e, n, x, at);
        c.any_moves = c.any_moves || c.moves[i];
        if (x->type.rank == n->out[0]->type.rank)
            at = dim_add(e->method->program, at,
                         dim_mul(e->method->program, x->type.dim[d], c.stride[d]));
    }
    return c;
}

bool emit_cat(Function *f, const Node *n, Clamp clamp)
{
    Dim x_stride[MAX_RANK];
    const Value *y = n->out[0];
    ConcatMoves c = concat_moves(f->e, n);
    (void)clamp;
    for (int k = 0; k < n->n_in; k++) {
        const Value *x = n->in[k];
        if (x->type.rank != y->type.rank || x->type.dtype != y->type.dtype)
            return function_refuse(f, n, "expects tensors of one dtype and rank");
        if (!c.moves[k])
            continue;
        type_strides(f->e, value_type(x), x_stride);
        put_copy(f, x->type, function_pointer(f, x), x_stride,
                 offset_by(f, f->name_of[y->index], c.at[k]), c.stride);
    }
    return true;
}

/* -- fill ------------------------------------------------------------------------------------ */

static bool is_f8(EtcDtype t)
{
    return dtype_is_float(t) && etc_dtype_size((int)t) == 1;
}

static const char *half_name(EtcDtype t) /* as half.h and f8.h name it; NULL: another dtype */
{
    return t == ETC_F16 ? "half" : t == ETC_BF16 ? "bfloat" : is_f8(t) ? dtype_name(t) : NULL;
}

/* Returns whether there is C for casts and fills with elements of this dtype. */
static bool has_cast(EtcDtype t)
{
    return dtype_has_c(t) || half_name(t);
}

/* Returns an integer as C converts it to the dtype. */
static int64_t narrow(EtcDtype t, int64_t v)
{
    switch (t) {
    case ETC_U8:
        return (uint8_t)v;
    case ETC_I8:
        return (int8_t)v;
    case ETC_U16:
        return (uint16_t)v;
    case ETC_I16:
        return (int16_t)v;
    case ETC_U32:
        return (uint32_t)v;
    case ETC_I32:
        return (int32_t)v;
    default:
        return v;
    }
}

/* Prints the number of argument `value`, converted to the dtype. */
static void put_filling(Function *f, EtcDtype to, const Node *n, int value)
{
    double number = 0;
    int64_t integer = 0;
    Dim size;
    bool is_int = arg_int(n, value, &integer);
    arg_number(n, value, &number);
    if (arg_dim(n, value, &size) && size.expr) {
        put(&f->body, to == ETC_BOOL ? "(uint8_t)(0 != " : "(%s)", c_type(to));
        function_dim(f, size);
        put(&f->body, to == ETC_BOOL ? ")" : "");
    } else if (is_f8(to)) {
        put(&f->body, "etc_to_%s(", half_name(to));
        put_float(&f->body, (float)number);
        put(&f->body, ")");
    } else if (half_name(to)) {
        put(&f->body, "%uu",
            (unsigned)(to == ETC_F16 ? half_of((float)number) : bfloat_of((float)number)));
    } else if (to == ETC_F32) {
        put_float(&f->body, (float)number);
    } else if (to == ETC_F64) {
        put_double(&f->body, number);
    } else if (to == ETC_BOOL) {
        put(&f->body, "%d", number != 0);
    } else {
        put_int(&f->body, narrow(to, is_int ? integer : (int64_t)number));
    }
}

/* Prints loops that fill y with argument `value`. */
static bool put_fill(Function *f, const Node *n, const Value *y, int value)
{
    EtcDtype to = y->type.dtype;
    double number;
    Dim size;
    bool is_size = arg_dim(n, value, &size);
    if (!has_cast(to))
        return function_refuse(f, n, "has no C for this dtype");
    if ((!is_size && !arg_number(n, value, &number)) || (is_size && size.expr && half_name(to)))
        return function_refuse(f, n, "expects a number to fill with");
    if (!dtype_is_float(to) && !is_size && !(number >= -9e18 && number <= 9e18))
        return function_refuse(f, n, "expects a number that its dtype holds");
    const char *index[MAX_LOOPS];
    Nest nest = nest_new(f->e, y->type, 1);
    nest_operand(f->e, &nest, 0, y->type);
    nest_collapse(f->e, &nest);
    int indent = nest_open(f, &nest, nest.rank, index);
    put(&f->body, "%*s*(", indent, "");
    nest_address(f, &nest, 0, f->name_of[y->index], nest.rank, index);
    put(&f->body, ") = ");
    put_filling(f, to, n, value);
    put(&f->body, ";\n");
    nest_close(f, nest.rank);
    return true;
}

bool emit_full(Function *f, const Node *n, Clamp clamp)
{
    (void)clamp;
    return put_fill(f, n, n->out[0], 1);
}

/* Prints constant_pad_nd(self, pad, value).  The pads are pairs, from the last dimension on; a
 * negative pad crops. */
bool emit_pad(Function *f, const Node *n, Clamp clamp)
{
    Dim x_stride[MAX_RANK], y_stride[MAX_RANK], dim[MAX_RANK], pad[2 * MAX_RANK];
    Dim from = DIM(0), to = DIM(0);
    Program *p = f->e->method->program;
    Type t = value_type(arg_value(n, "self"));
    const Value *y = n->out[0];
    (void)clamp;
    if (!arg_dims(n, "pad", pad, 2 * MAX_RANK))
        return function_refuse(f, n, "expects padding that follows from sizes");
    if (!put_fill(f, n, y, 2))
        return false;
    type_strides(f->e, t, x_stride);
    type_strides(f->e, y->type, y_stride);
    memcpy(dim, t.dim, (size_t)t.rank * sizeof *dim);
    for (int i = 0; i < arg_count(n, "pad") / 2; i++) {
        int d = t.rank - 1 - i;
        Dim crop = dim_max(p, dim_sub(p, DIM(0), pad[2 * i]), DIM(0));
        Dim cut = dim_add(p, crop, dim_max(p, dim_sub(p, DIM(0), pad[2 * i + 1]), DIM(0)));
        from = add(f, from, mul(f, x_stride[d], crop));
        to = add(f, to, mul(f, y_stride[d], dim_max(p, pad[2 * i], DIM(0))));
        dim[d] = dim_sub(p, dim[d], cut);
    }
    t.dim = dim;
    put_copy(f, t, offset_by(f, function_pointer(f, arg_value(n, "self")), from), x_stride,
             offset_by(f, f->name_of[y->index], to), y_stride);
    return true;
}

/* -- casts ----------------------------------------------------------------------------------- */

/* Prints the start of an expression that casts an element.  The address of the element and three
 * closing parentheses must follow. */
static void put_cast(Text *t, EtcDtype from, EtcDtype to)
{
    if (half_name(to))
        put(t, "etc_to_%s((float)", half_name(to));
    else if (to == ETC_BOOL)
        put(t, "(uint8_t)(0 != ");
    else if (dtype_is_float(from) && dtype_is_int(to))
        put(t, "(%s)etc_trunc_f64((double)", c_type(to));
    else
        put(t, "(%s)(", c_type(to));
    put(t, half_name(from) ? "etc_from_%s(*(" : "(*(", half_name(from));
}

bool emit_cast(Function *f, const Node *n, Clamp clamp)
{
    const char *index[MAX_LOOPS];
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    EtcDtype from = x->type.dtype, to = y->type.dtype;
    (void)clamp;
    bool is_wide = to == ETC_U64 && dtype_is_float(from);
    if ((!has_cast(from) && from != ETC_U64) || (!has_cast(to) && to != ETC_U64) || is_wide)
        return function_refuse(f, n, "has no C for casts between these dtypes");
    Nest nest = nest_new(f->e, y->type, 2);
    nest_operand(f->e, &nest, 0, value_type(x));
    nest_operand(f->e, &nest, 1, y->type);
    nest_collapse(f->e, &nest);
    int indent = nest_open(f, &nest, nest.rank, index);
    put(&f->body, "%*s*(", indent, "");
    nest_address(f, &nest, 1, f->name_of[y->index], nest.rank, index);
    put(&f->body, ") = ");
    put_cast(&f->body, from, to);
    nest_address(f, &nest, 0, function_pointer(f, x), nest.rank, index);
    put(&f->body, ")));\n");
    nest_close(f, nest.rank);
    return true;
}
