/* c_index.c -- prints reads and writes by index, sorted rows, sums along an axis and layer norm. */
#include "emit/c_emit.h"
#include <string.h>

/* -- reads and writes by index ----------------------------------------------------------------- */

/* An index tensor.  `limit` and `step` are the size and stride of the axis that it indexes; `lead` is
 * the first of its own axes in the walk. */
typedef struct Index {
    const Value *v;
    Dim limit, step;
    int lead;
} Index;

/* The geometry of an indexed read or write, which is printed as an EtcIndex. */
typedef struct Walk {
    int rank, n;
    bool wraps, is_put;
    Dim dim[MAX_RANK], plain[MAX_RANK], own[MAX_RANK];
    Index of[MAX_RANK];
} Walk;

static void add_index(Walk *w, Type own, const Dim *own_stride, int axis, const Value *v, int lead)
{
    w->of[w->n++] = (Index){v, own.rank ? own.dim[axis] : DIM(1),
                            own.rank ? own_stride[axis] : DIM(0), lead};
}

static void put_dims(Function *f, const Dim *d, int n)
{
    put(&f->body, "{");
    for (int i = 0; i < n; i++) {
        put(&f->body, i ? ", " : "");
        function_dim(f, d[i]);
    }
    put(&f->body, "}");
}

/* Prints an index with its strides along the walk.  The stride of an axis of size 1 is 0. */
static void put_index(Function *f, const Walk *w, const Index *i)
{
    Dim at[MAX_RANK], stride[MAX_RANK];
    Type t = value_type(i->v);
    type_strides(f->e, t, stride);
    for (int k = 0; k < w->rank; k++)
        at[k] = DIM(0);
    for (int k = 0; k < t.rank; k++)
        at[i->lead + k] = dim_equal(t.dim[k], DIM(1)) ? DIM(0) : stride[k];
    put(&f->body, "{%s, %d, ", function_pointer(f, i->v), t.dtype == ETC_I64);
    function_dim(f, i->limit);
    put(&f->body, ", ");
    function_dim(f, i->step);
    put(&f->body, ", ");
    put_dims(f, at, w->rank);
    put(&f->body, "}");
}

static int form_of(EtcDtype t)
{
    bool is_signed = t == ETC_I8 || t == ETC_I16 || t == ETC_I32 || t == ETC_I64;
    return t == ETC_BOOL                                          ? 4
           : t == ETC_BF16                                        ? 3
           : t == ETC_F16 || t == ETC_F32 || t == ETC_F64         ? 2
                                                                  : is_signed;
}

/* Prints the geometry and the call of the core.  `join` says how an element is combined with the
 * one that it is written to; -1: it replaces it. */
static void put_walk(Function *f, const Walk *w, const char *y, const char *x, EtcDtype t,
                     int join)
{
    put(&f->body,
        "    /* rank, indices, bytes; wraps, is_put; sizes; strides; index, is_wide, limit, "
        "step, strides */\n    const EtcIndex g = {%d, %d, %d, %d, %d, ",
        w->rank, w->n, (int)etc_dtype_size((int)t), w->wraps, w->is_put);
    put_dims(f, w->dim, w->rank);
    put(&f->body, ", ");
    put_dims(f, w->plain, w->rank);
    put(&f->body, ", ");
    put_dims(f, w->own, w->rank);
    put(&f->body, ", {");
    for (int i = 0; i < w->n; i++) {
        put(&f->body, i ? ", " : "");
        put_index(f, w, &w->of[i]);
    }
    if (join < 0) {
        put(&f->body, "}};\n    (void)etc_index_nd(%s, %s, &g);\n", y, x);
        return;
    }
    const char *how = names_make(f->names, "", "join");
    put(&f->body, "}};\n    /* sum, product, largest, least; bytes; form */\n");
    put(&f->body, "    const EtcJoin %s = {%d, %d, %d};\n", how, join, (int)etc_dtype_size((int)t),
        form_of(t));
    put(&f->body, "    (void)etc_index_join(%s, %s, &g, &%s);\n", y, x, how);
}

static bool check_index(Function *f, const Node *n, const Value *v)
{
    return v->type.dtype == ETC_I64 || v->type.dtype == ETC_I32 ||
           function_refuse(f, n, "expects indices of i64 or i32");
}

/* Returns a walk over the sizes of t, the plain tensor. */
static Walk walk_of(Function *f, Type t)
{
    Walk w = {.rank = t.rank ? t.rank : 1};
    w.dim[0] = DIM(1);
    for (int i = 0; i < w.rank; i++)
        w.plain[i] = w.own[i] = DIM(0);
    for (int i = 0; i < t.rank; i++)
        w.dim[i] = t.dim[i];
    type_strides(f->e, t, w.plain);
    return w;
}

static bool emit_embedding(Function *f, const Node *n)
{
    Dim stride[MAX_RANK];
    const Value *x = arg_value(n, "weight"), *index = arg_value(n, "indices"), *y = n->out[0];
    Type t = value_type(x);
    Walk w = walk_of(f, y->type);
    if (!check_index(f, n, index))
        return false;
    type_strides(f->e, t, stride);
    w.own[y->type.rank - 1] = stride[1];
    add_index(&w, t, stride, 0, index, 0);
    put_walk(f, &w, f->name_of[y->index], function_pointer(f, x), y->type.dtype, -1);
    return true;
}

static bool emit_gather(Function *f, const Node *n)
{
    Dim stride[MAX_RANK];
    int64_t d = 0;
    const Value *x = arg_value(n, "self"), *index = arg_value(n, "index"), *y = n->out[0];
    Type t = value_type(x);
    Walk w = walk_of(f, y->type);
    if (!arg_int(n, "dim", &d) || !check_index(f, n, index))
        return function_refuse(f, n, "expects a plain axis");
    d += d < 0 ? t.rank : 0;
    type_strides(f->e, t, stride);
    for (int i = 0; i < t.rank && t.rank == y->type.rank; i++)
        w.own[i] = i == d ? DIM(0) : stride[i];
    add_index(&w, t, stride, t.rank ? (int)d : 0, index, 0);
    put_walk(f, &w, f->name_of[y->index], function_pointer(f, x), y->type.dtype, -1);
    return true;
}

/* Returns the position of the axes of the indices in the result: that of the indexed axes, or the
 * first if other axes lie between these.  *rank is the rank of the broadcast indices. */
static int index_place(const Node *n, int *rank)
{
    int first = -1, last = -1, count = 0;
    *rank = 0;
    for (int i = 0; i < arg_count(n, "indices"); i++) {
        const Value *v = arg_list_value(n, "indices", i);
        if (!v)
            continue;
        first = first < 0 ? i : first;
        last = i;
        count++;
        *rank = v->type.rank > *rank ? v->type.rank : *rank;
    }
    return count == last - first + 1 ? first : 0;
}

/* Adds the indices of argument 1, and the strides of the axes of `own` that have no index. */
static bool add_indices(Function *f, const Node *n, Walk *w, Type own)
{
    Dim stride[MAX_RANK];
    int rank, at = index_place(n, &rank), axis = 0;
    type_strides(f->e, own, stride);
    for (int i = 0; i < own.rank; i++) {
        const Value *v = i < arg_count(n, "indices") ? arg_list_value(n, "indices", i) : NULL;
        if (!v) {
            axis += axis == at ? rank : 0;
            w->own[axis++] = stride[i];
            continue;
        }
        if (!check_index(f, n, v))
            return false;
        add_index(w, own, stride, i, v, at + rank - v->type.rank);
    }
    w->wraps = true;
    return true;
}

bool emit_index(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = first_operand(n), *y = n->out[0];
    (void)clamp;
    if (n->op == OP_EMBEDDING)
        return emit_embedding(f, n);
    if (n->op == OP_GATHER)
        return emit_gather(f, n);
    Walk w = walk_of(f, y->type);
    if (!add_indices(f, n, &w, value_type(x)))
        return false;
    put_walk(f, &w, f->name_of[y->index], function_pointer(f, x), y->type.dtype, -1);
    return true;
}

/* Prints a copy of x to y.  For dense tensors the code copies nothing if the plan put the result
 * into the bytes of its input. */
static void put_whole(Function *f, const Value *x, const Value *y)
{
    Dim x_stride[MAX_RANK], y_stride[MAX_RANK];
    const char *from = function_pointer(f, x), *to = f->name_of[y->index];
    if (c_type_is_dense(f->e, value_type(x)) && c_type_is_dense(f->e, y->type)) {
        put(&f->body, "    if (%s != %s) {\n        __builtin_memcpy(%s, %s, (size_t)(", to, from,
            to, from);
        function_dim(f, c_dims_product(f->e, y->type.dim, y->type.rank));
        put(&f->body, ") * sizeof *%s);\n    }\n", to);
        return;
    }
    type_strides(f->e, value_type(x), x_stride);
    type_strides(f->e, y->type, y_stride);
    put_copy(f, y->type, from, x_stride, to, y_stride);
}

/* Computes the sizes of index(self, indices). */
static bool selected(Function *f, const Node *n, Dim *dim, int *rank)
{
    int own = arg_value(n, "self")->type.rank, index_rank, at = index_place(n, &index_rank),
        axis = 0;
    Dim shape[MAX_RANK];
    for (int k = 0; k < index_rank; k++)
        shape[k] = DIM(1);
    for (int i = 0; i < arg_count(n, "indices"); i++) {
        const Value *v = arg_list_value(n, "indices", i);
        for (int k = 0; v && k < v->type.rank; k++) {
            int to = index_rank - v->type.rank + k;
            shape[to] = dim_equal(shape[to], DIM(1)) ? v->type.dim[k] : shape[to];
        }
    }
    for (int i = 0; i <= own; i++) {
        const Value *v = i < arg_count(n, "indices") ? arg_list_value(n, "indices", i) : NULL;
        for (int k = 0; i == at && k < index_rank && axis < MAX_RANK; k++)
            dim[axis++] = shape[k];
        if (i < own && !v && axis < MAX_RANK)
            dim[axis++] = arg_value(n, "self")->type.dim[i];
    }
    *rank = axis;
    return axis < MAX_RANK || function_refuse(f, n, "has too many axes");
}

/* Prints index_put(self, indices, values, accumulate). */
bool emit_index_put(Function *f, const Node *n, Clamp clamp)
{
    Dim dim[MAX_RANK], stride[MAX_RANK];
    int rank = 0;
    const Value *x = arg_value(n, "self"), *values = arg_value(n, "values"), *y = n->out[0];
    (void)clamp;
    if (!selected(f, n, dim, &rank))
        return false;
    Type t = value_type(values);
    Walk w = walk_of(f, (Type){.rank = rank, .dim = dim, .dtype = t.dtype});
    type_strides(f->e, t, stride);
    for (int i = 0; i < rank; i++) {
        int k = i - (rank - t.rank);
        w.plain[i] = k < 0 || dim_equal(t.dim[k], DIM(1)) ? DIM(0) : stride[k];
    }
    w.is_put = true;
    if (!add_indices(f, n, &w, y->type))
        return false;
    put_whole(f, x, y);
    put_walk(f, &w, f->name_of[y->index], function_pointer(f, values), y->type.dtype,
             arg_bool(n, "accumulate") ? 0 : -1);
    return true;
}

/* -- scatter ----------------------------------------------------------------------------------- */

/* Prints argument `value`, a number, as an array of one element.  Returns its name, or NULL. */
static const char *put_number_array(Function *f, const Node *n, EtcDtype t)
{
    const char *name = names_make(f->names, "", "value");
    double v;
    int64_t i;
    bool is_float = dtype_is_float(t);
    if (!dtype_has_c(t) || !(is_float ? arg_number(n, "value", &v) : arg_int(n, "value", &i))) {
        function_refuse(f, n, "has no C for this value");
        return NULL;
    }
    put(&f->body, "    const %s %s[1] = {(%s)", c_type(t), name, c_type(t));
    if (t == ETC_F32)
        put_float(&f->body, (float)v);
    else if (is_float)
        put_double(&f->body, v);
    else
        put_int(&f->body, t == ETC_BOOL ? i != 0 : i);
    put(&f->body, "};\n");
    return name;
}

/* Prints scatter(self, dim, index, src or value). */
bool emit_scatter(Function *f, const Node *n, Clamp clamp)
{
    Dim stride[MAX_RANK];
    int64_t d = 0, how = 0;
    const Value *x = arg_value(n, "self"), *index = arg_value(n, "index"), *y = n->out[0];
    const Value *src = n->op == OP_SCATTER_VALUE ? NULL : arg_value(n, "src");
    const char *from = NULL;
    bool joins = n->op == OP_SCATTER_ADD || n->op == OP_SCATTER_JOIN;
    (void)clamp;
    put_whole(f, x, y);
    if (!type_numel(index->type))
        return true;
    if (!arg_int(n, "dim", &d) || !check_index(f, n, index) ||
        (n->op == OP_SCATTER_JOIN && !arg_int(n, "how", &how)) ||
        (!src && !(from = put_number_array(f, n, y->type.dtype))))
        return function_refuse(f, n, "expects a plain axis");
    Walk w = walk_of(f, value_type(index));
    d += d < 0 ? y->type.rank : 0;
    if (src)
        type_strides(f->e, value_type(src), w.plain);
    for (int i = 0; i < w.rank && (!src || src->type.rank < index->type.rank); i++)
        w.plain[i] = DIM(0);
    type_strides(f->e, y->type, stride);
    for (int i = 0; i < index->type.rank && y->type.rank == index->type.rank; i++)
        w.own[i] = i == d ? DIM(0) : stride[i];
    w.is_put = true;
    add_index(&w, y->type, stride, y->type.rank ? (int)d : 0, index, 0);
    put_walk(f, &w, f->name_of[y->index], src ? function_pointer(f, src) : from, y->type.dtype,
             joins ? (int)how : -1);
    return true;
}

/* -- rows in order ----------------------------------------------------------------------------- */

/* Prints an EtcOrder for elements along `axis`, or for all elements if it is -1. */
static void put_order(Function *f, const Node *n, bool least, bool nan_is_first, int axis, Dim k)
{
    const Value *x = arg_value(n, "self");
    EtcDtype t = x->type.dtype;
    int form = form_of(t);
    Dim field[4] = {DIM(1), DIM(1), DIM(1), k};
    static const char *const inf[] = {"0x7c00", "0x7f800000", "INT64_C(0x7ff0000000000000)"};
    for (int i = 0; i < x->type.rank; i++) {
        Dim *to = axis < 0 || i == axis ? &field[1] : i < axis ? &field[0] : &field[2];
        *to = dim_mul(f->e->method->program, *to, x->type.dim[i]);
    }
    put(&f->body,
        "    /* bytes, form; infinity, key of NaN, flip; outer, n, inner, k; topk */\n"
        "    const EtcOrder g = {%d, %d, %s, %s, %d, ",
        (int)etc_dtype_size((int)t), form == 4 ? 0 : form >= 2 ? 2 : form,
        t == ETC_BF16 ? "0x7f80" : t == ETC_F16 ? inf[0] : t == ETC_F32 ? inf[1] : inf[2],
        nan_is_first ? "INT64_MAX" : "INT64_MIN", least ? -1 : 0);
    for (int i = 0; i < 4; i++) {
        put(&f->body, i ? ", " : "");
        function_dim(f, field[i]);
    }
    put(&f->body, ", %d};\n", n->op != OP_TOPK ? 0 : arg_bool(n, "sorted") ? 1 : 2);
}

static const char *result_or_null(Function *f, const Node *n, int i)
{
    return i < n->n_out && !n->out[i]->type.is_none ? f->name_of[n->out[i]->index] : "NULL";
}

/* Sets the scratch in which k of n elements are sorted: a word of 8 bytes for each of the k, or two
 * words if k may be n.  topk needs 4 bytes for each of n, unless it keeps only the first k. */
static void use_words(Function *f, Dim n, Dim k, bool is_topk)
{
    enum { LONGEST = 4096 }; /* as in kernels/order.h */
    int64_t least, longest, most, any, room = f->e->target->work_bytes;
    dim_range(n, &least, &longest);
    dim_range(k, &any, &most);
    int64_t words = most < room / 8 ? most * (most < least ? 1 : 2) : room / 8;
    bool keeps_all = is_topk && least <= LONGEST && least / 64 < most;
    int64_t places = !keeps_all ? 0 : longest < LONGEST ? longest : LONGEST;
    if (words < (places + 1) / 2)
        words = (places + 1) / 2;
    int64_t bytes = (words + 7) / 8 * 64;
    f->uses_work = true;
    f->work_bytes = bytes < room ? bytes : room;
}

bool emit_order(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "self");
    int64_t d = 0;
    bool is_place = n->op == OP_ARGMAX || n->op == OP_ARGMIN,
         is_row = n->op == OP_TOPK || n->op == OP_SORT_STABLE;
    bool least = n->op == OP_TOPK          ? !arg_bool(n, "largest")
                 : n->op == OP_SORT_STABLE ? !arg_bool(n, "descending")
                                           : n->op == OP_ARGMIN || n->op == OP_MIN_DIM ||
                                                 n->op == OP_MIN;
    int at = arg_find(n, "dim");
    bool is_all = at < 0 || n->arg[at].kind == ARG_NONE;
    (void)clamp;
    if (!is_all && !arg_int(n, at, &d))
        return function_refuse(f, n, "expects a plain axis");
    for (int i = 0; i <= n->n_out; i++)
        if (!c_type_is_dense(f->e, i < n->n_out ? n->out[i]->type : value_type(x)))
            return function_refuse(f, n, "expects a dense tensor here");
    if (!type_numel(n->out[0]->type)) {
        put(&f->body, "    (void)%s;\n", f->name_of[n->out[0]->index]);
        return true;
    }
    d += d < 0 ? x->type.rank : 0;
    Dim k = !is_row ? DIM(1) : n->out[0]->type.rank ? n->out[0]->type.dim[d] : DIM(1);
    put_order(f, n, least, !is_row || !least, is_all ? -1 : (int)d, k);
    put(&f->body, "    %s(%s, ", is_row ? "etc_order_top" : "etc_order_best",
        function_pointer(f, x));
    put(&f->body, "%s, %s, %s&g);\n", is_place ? "NULL" : result_or_null(f, n, 0),
        result_or_null(f, n, is_place ? 0 : 1), is_row ? "work, " : "");
    if (is_row)
        use_words(f, x->type.rank ? x->type.dim[d] : DIM(1), k, n->op == OP_TOPK);
    return true;
}

/* -- sums along an axis ------------------------------------------------------------------------ */

/* Prints the cumsum of dense floats along axis d as a call of the core. */
static void put_float_sums(Function *f, const Node *n, int64_t d)
{
    const Value *x = arg_value(n, "self");
    int rank = x->type.rank;
    assert(d >= 0 && d < rank);
    put(&f->body, "    etc_cumsum_f32(%s, %s, ", function_pointer(f, x),
        f->name_of[n->out[0]->index]);
    function_dim(f, c_dims_product(f->e, x->type.dim, (int)d));
    put(&f->body, ", ");
    function_dim(f, x->type.dim[d]);
    put(&f->body, ", ");
    function_dim(f, c_dims_product(f->e, x->type.dim + d + 1, rank - (int)d - 1));
    put(&f->body, ");\n");
}

/* Prints the cumsum along axis d as loops.  Floats are summed in double, and other elements in 64
 * bits that wrap. */
static void put_sums(Function *f, const Node *n, int64_t d)
{
    const char *index[MAX_LOOPS];
    const Value *x = arg_value(n, "self"), *y = n->out[0];
    const Type t = value_type(x);
    Dim x_step = DIM(0), y_step = DIM(0), count = DIM(1);
    Nest nest = nest_new(f->e, y->type, 2);
    nest_operand(f->e, &nest, 0, t);
    nest_operand(f->e, &nest, 1, y->type);
    if (t.rank) {
        count = nest.size[d];
        x_step = nest.stride[0][d];
        y_step = nest.stride[1][d];
        nest.size[d] = DIM(1);
    }
    nest_collapse(f->e, &nest);
    bool is_float = dtype_is_float(y->type.dtype);
    int in = nest_open(f, &nest, nest.rank, index);
    const char *i = names_make(f->names, "", "s");
    const char *type = is_float ? "double" : "uint64_t";
    put(&f->body, "%*s%s sum = 0;\n%*sfor (int64_t %s = 0; %s < ", in, "", type, in, "", i, i);
    function_dim(f, count);
    put(&f->body, "; %s++) {\n%*ssum += (%s)(*(", i, in + 4, "", type);
    nest_address(f, &nest, 0, function_pointer(f, x), nest.rank, index);
    put(&f->body, " + (%s * ", i);
    function_dim(f, x_step);
    put(&f->body, "))%s);\n%*s*(", t.dtype == ETC_BOOL ? " != 0" : "", in + 4, "");
    nest_address(f, &nest, 1, f->name_of[y->index], nest.rank, index);
    put(&f->body, " + (%s * ", i);
    function_dim(f, y_step);
    put(&f->body, y->type.dtype == ETC_BOOL ? ")) = (%s)(sum != 0);\n" : ")) = (%s)sum;\n",
        c_type(y->type.dtype));
    put(&f->body, "%*s}\n", in, "");
    nest_close(f, nest.rank);
}

/* Prints cumsum(self, dim). */
bool emit_cumsum(Function *f, const Node *n, Clamp clamp)
{
    int64_t d = 0;
    const Type t = value_type(arg_value(n, "self")), y = n->out[0]->type;
    (void)clamp;
    if (!dtype_has_c(t.dtype) || !dtype_has_c(y.dtype) || !arg_int(n, "dim", &d) ||
        (dtype_is_float(t.dtype) && !dtype_is_float(y.dtype)))
        return function_refuse(f, n, "has no C for these dtypes");
    d += d < 0 ? t.rank : 0;
    if (t.rank && t.dtype == ETC_F32 && y.dtype == ETC_F32 && c_type_is_dense(f->e, t) &&
        c_type_is_dense(f->e, y))
        put_float_sums(f, n, d);
    else
        put_sums(f, n, d);
    return true;
}

/* -- layer norm -------------------------------------------------------------------------------- */

static const char *pointer_or_null(Function *f, const Value *v)
{
    return v ? function_pointer(f, v) : "NULL";
}

/* Returns the array of result i, the mean or the inverse deviation, which only the native form has;
 * "NULL" if torch left it out. */
static const char *statistic(Function *f, const Node *n, int i)
{
    return i < n->n_out && !n->out[i]->type.is_none ? f->name_of[n->out[i]->index] : "NULL";
}

/* Prints layer_norm(input, normalized_shape, weight, bias, eps). */
bool emit_layer_norm(Function *f, const Node *n, Clamp clamp)
{
    const Value *x = arg_value(n, "input"), *y = n->out[0];
    int axes = arg_count(n, "normalized_shape");
    double eps = 0;
    (void)clamp;
    for (int i = 0; i <= n->n_in; i++) {
        const Value *v = i < n->n_in ? n->in[i] : y;
        if (v->type.dtype != ETC_F32 || !c_type_is_dense(f->e, value_type(v)))
            return function_refuse(f, n, "has C for dense float32 only");
    }
    if (!arg_number(n, "eps", &eps))
        return function_refuse(f, n, "expects a number as eps");
    const char *from = function_pointer(f, x);
    const char *weight = pointer_or_null(f, arg_value(n, "weight"));
    const char *bias = pointer_or_null(f, arg_value(n, "bias"));
    put(&f->body, "    etc_layer_norm_f32(%s, %s, %s, ", from, weight, bias);
    put_float(&f->body, (float)eps);
    put(&f->body, ", %s, ", f->name_of[y->index]);
    function_dim(f, c_dims_product(f->e, x->type.dim, x->type.rank - axes));
    put(&f->body, ", ");
    function_dim(f, c_dims_product(f->e, x->type.dim + x->type.rank - axes, axes));
    put(&f->body, ", %s, %s);\n", statistic(f, n, 1), statistic(f, n, 2));
    return true;
}
