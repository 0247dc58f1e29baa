/* infer_shape.c -- types of views, copies, joins, fills and reductions. */
#include "ir/internal.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static Program *program_of(const Node *n)
{
    return n->graph->program;
}

/* -- views of the same elements ------------------------------------------------------- */

/* Replaces the one -1 in `size` such that the product is `total`, or checks the product. */
static bool fill_in(const Node *n, Dim total, Dim *size, int count, Diag *d)
{
    Program *p = program_of(n);
    Dim rest = DIM(1);
    int hole = -1;
    for (int i = 0; i < count; i++) {
        if (!dim_equal(size[i], DIM(-1))) {
            rest = dim_mul(p, rest, size[i]);
        } else if (hole >= 0) {
            return diag_error(d, n->loc, "two sizes are -1, expected at most one");
        } else {
            hole = i;
        }
        if (dim_upper(size[i]) < -1)
            return diag_error(d, n->loc, "size %d is %s", i, dim_text(p, size[i]));
    }
    /* if there are no elements, -1 could stand for any size */
    bool fits = hole >= 0 ? dim_at_least(n, rest, DIM(1)) : dims_match(n, total, rest);
    if (fits && hole >= 0) {
        Dim over = dim_mod(p, total, rest);
        size[hole] = dim_floordiv(p, total, rest);
        fits = dim_is_bad(over) || dims_match(n, over, DIM(0));
    }
    return fits || diag_error(d, n->loc, "%s elements do not fit into sizes of product %s",
                              dim_text(p, total), dim_text(p, rest));
}

bool infer_view(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim size[MAX_RANK];
    int count;
    return get_tensor(n, "self", &x, d) && get_sizes(n, 1, size, &count, d) &&
           fill_in(n, dims_product(program_of(n), x.dim, x.rank), size, count, d) &&
           set_tensor(n, out, x.dtype, count, size, d);
}

/* The result lies where x lies, so the upper bounds of their sizes must agree as well. */
bool infer_et_view(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, "self", &x, d) && infer_view(n, out, d) &&
           (type_bytes(x) == type_bytes(out[0]) ||
            diag_error(d, n->loc, "its result has other bounds than self, in whose memory it lies"));
}

/* The number of bytes does not change, so the size of the last axis changes with the size of an
 * element. */
bool infer_view_dtype(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    Program *p = program_of(n);
    if (!get_tensor(n, "self", &x, d))
        return false;
    for (int i = 0; i < x.rank; i++)
        dim[i] = x.dim[i];
    EtcDtype t = dtype_or(n, x.dtype);
    int64_t from = (int64_t)etc_dtype_size((int)x.dtype), to = (int64_t)etc_dtype_size((int)t);
    if (dtype_is_complex(x.dtype) || dtype_is_complex(t))
        return diag_unsupported(d, n->loc,
                                "views %s as %s: use torch.view_as_real or view_as_complex",
                                dtype_name(x.dtype), dtype_name(t));
    if (from != to && x.rank == 0)
        return diag_error(d, n->loc, "views a number of %s as %s, whose sizes differ",
                          dtype_name(x.dtype), dtype_name(t));
    if (from != to) {
        Dim *last = &dim[x.rank - 1], bytes = dim_mul(p, *last, DIM(from));
        if (!dims_match(n, dim_mod(p, bytes, DIM(to)), DIM(0)))
            return diag_error(d, n->loc, "the last axis has %s bytes, expected a multiple of %d",
                              dim_text(p, bytes), (int)to);
        *last = dim_floordiv(p, bytes, DIM(to));
    }
    return set_tensor(n, out, t, x.rank, dim, d);
}

bool infer_flatten(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    int from, to, rank = 0;
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "start_dim", x.rank, &from, d) ||
        !get_axis(n, "end_dim", x.rank, &to, d))
        return false;
    if (from > to)
        return diag_error(d, n->loc, "start_dim %d is after end_dim %d", from, to);
    for (int i = 0; i < from; i++)
        dim[rank++] = x.dim[i];
    dim[rank++] = x.rank ? dims_product(program_of(n), x.dim + from, to - from + 1) : DIM(1);
    for (int i = to + 1; i < x.rank; i++)
        dim[rank++] = x.dim[i];
    return set_tensor(n, out, x.dtype, rank, dim, d);
}

bool infer_unflatten(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim size[MAX_RANK], dim[2 * MAX_RANK];
    int axis, count, rank = 0;
    if (!get_rank(n, "self", 1, MAX_RANK, &x, d) || !get_axis(n, "dim", x.rank, &axis, d) ||
        !get_sizes(n, "sizes", size, &count, d))
        return false;
    if (!count)
        return diag_error(d, n->loc, "sizes is empty");
    if (!fill_in(n, x.dim[axis], size, count, d))
        return false;
    for (int i = 0; i < axis; i++)
        dim[rank++] = x.dim[i];
    for (int i = 0; i < count; i++)
        dim[rank++] = size[i];
    for (int i = axis + 1; i < x.rank; i++)
        dim[rank++] = x.dim[i];
    return set_tensor(n, out, x.dtype, rank, dim, d);
}

/* Sets *axes to the axes that argument `i`, an int or a list, names: one bit per axis.  No axis may
 * occur twice. */
static bool get_axes(const Node *n, int i, int rank, unsigned *axes, Diag *d)
{
    int count = n->arg[i].kind == ARG_LIST ? n->arg[i].list.n : 1, axis;
    int64_t v[MAX_RANK];
    *axes = 0;
    if (n->arg[i].kind == ARG_LIST ? !arg_ints(n, i, v, MAX_RANK) : !arg_int(n, i, v))
        return diag_error(d, n->loc, "%s is not a list of axes", arg_name(n, i));
    for (int k = 0; k < count; k++) {
        if (!wrap_axis(n, v[k], rank, &axis, d))
            return false;
        if (*axes >> axis & 1)
            return diag_error(d, n->loc, "axis %d appears twice in %s", axis, arg_name(n, i));
        *axes |= 1u << axis;
    }
    return true;
}

bool infer_squeeze(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    unsigned axes = ~0u;
    int rank = 0;
    if (!get_tensor(n, "self", &x, d) || (n->n_args > 1 && !get_axes(n, 1, x.rank, &axes, d)))
        return false;
    for (int i = 0; i < x.rank; i++)
        if (!(axes >> i & 1) || !dim_is_one(x.dim[i]))
            dim[rank++] = x.dim[i];
    return set_tensor(n, out, x.dtype, rank, dim, d);
}

bool infer_unsqueeze(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK + 1];
    int axis;
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "dim", x.rank + 1, &axis, d))
        return false;
    for (int i = 0; i <= x.rank; i++)
        dim[i] = i == axis ? DIM(1) : x.dim[i - (i > axis)];
    return set_tensor(n, out, x.dtype, x.rank + 1, dim, d);
}

/* -- views in another order, views of some elements ----------------------------------- */

bool infer_permute(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    unsigned axes;
    int axis;
    int64_t v[MAX_RANK];
    if (!get_tensor(n, "self", &x, d) || !get_axes(n, 1, x.rank, &axes, d))
        return false;
    if (arg_count(n, "dims") != x.rank || !arg_ints(n, "dims", v, MAX_RANK))
        return diag_error(d, n->loc, "dims has %d items, expected %d", arg_count(n, "dims"),
                          x.rank);
    for (int i = 0; i < x.rank; i++) {
        if (!wrap_axis(n, v[i], x.rank, &axis, d))
            return false;
        dim[i] = x.dim[axis];
    }
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* t swaps the two axes of a matrix and leaves lower ranks alone. */
bool infer_transpose(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    int a = 0, b = 1;
    if (n->op == OP_MT) {
        if (!get_rank(n, "self", 2, MAX_RANK, &x, d))
            return false;
        a = x.rank - 2;
        b = x.rank - 1;
    } else if (n->n_args == 1 ? !get_rank(n, "self", 0, 2, &x, d)
                       : !get_tensor(n, "self", &x, d) || !get_axis(n, "dim0", x.rank, &a, d) ||
                             !get_axis(n, "dim1", x.rank, &b, d))
        return false;
    for (int i = 0; i < x.rank; i++)
        dim[i] = x.dim[i];
    if (x.rank > 1) {
        dim[a] = x.dim[b];
        dim[b] = x.dim[a];
    }
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

bool infer_expand(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim size[MAX_RANK];
    int count;
    if (!get_tensor(n, "self", &x, d) || !get_sizes(n, "size", size, &count, d))
        return false;
    if (count < x.rank)
        return diag_error(d, n->loc, "size has %d items, expected at least %d", count, x.rank);
    for (int i = 0; i < count; i++) {
        int from = i - (count - x.rank);
        if (from >= 0 && dim_equal(size[i], DIM(-1)))
            size[i] = x.dim[from];
        if (from >= 0 && !dim_is_one(x.dim[from]) && !dims_agree(n, x.dim[from], size[i]))
            return diag_error(d, n->loc, "cannot expand size %s of axis %d to %s",
                              dim_text(program_of(n), x.dim[from]), from,
                              dim_text(program_of(n), size[i]));
    }
    return set_tensor(n, out, x.dtype, count, size, d);
}

/* Checks the argument `index`, which counts from the end if it is negative. */
static bool check_index(const Node *n, Dim size, Diag *d)
{
    Program *p = program_of(n);
    Dim index;
    return get_size(n, "index", &index, d) &&
           ((dim_at_least(n, dim_sub(p, size, DIM(1)), index) &&
             dim_at_least(n, dim_add(p, size, index), DIM(0))) ||
            diag_error(d, n->loc, "index %s is out of range for size %s", dim_text(p, index),
                       dim_text(p, size)));
}

/* Reads x, and its sizes without the axis that the node selects along. */
static bool select_sizes(const Node *n, Type *x, Dim *dim, Diag *d)
{
    int axis;
    if (!get_rank(n, "self", 1, MAX_RANK, x, d) || !get_axis(n, "dim", x->rank, &axis, d) ||
        !check_index(n, x->dim[axis], d))
        return false;
    for (int i = 0; i + 1 < x->rank; i++)
        dim[i] = x->dim[i + (i >= axis)];
    return true;
}

bool infer_select(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    return select_sizes(n, &x, dim, d) && set_tensor(n, out, x.dtype, x.rank - 1, dim, d);
}

/* Reads a bound of a slice and moves it into 0 .. size.  A negative bound counts from the end. */
static bool get_bound(const Node *n, int i, Dim size, Dim otherwise, Dim *v, Diag *d)
{
    Program *p = program_of(n);
    int64_t lo, hi;
    *v = otherwise;
    if (n->arg[i].kind == ARG_NONE)
        return true;
    if (!get_size(n, i, v, d))
        return false;
    dim_range(*v, &lo, &hi);
    if (lo < 0 && hi >= 0)
        return diag_error(d, n->loc, "%s is %s, whose sign is not known", arg_name(n, i),
                          dim_text(p, *v));
    if (lo == INT64_MAX) /* Python's "to the end" */
        *v = size;
    else
        *v = lo < 0 ? dim_max(p, dim_add(p, size, *v), DIM(0)) : dim_min(p, *v, size);
    return true;
}

/* Infers narrow, which takes `length` elements of an axis. */
bool infer_narrow(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK], start, length;
    int axis;
    if (!get_rank(n, "self", 1, MAX_RANK, &x, d) || !get_axis(n, "dim", x.rank, &axis, d) ||
        !get_size(n, "start", &start, d) || !get_size(n, "length", &length, d))
        return false;
    Program *p = program_of(n);
    Dim size = x.dim[axis], from = dim_upper(start) < 0 ? dim_add(p, size, start) : start;
    if (!dim_at_least(n, size, start) || !dim_at_least(n, dim_add(p, size, start), DIM(0)))
        return diag_error(d, n->loc, "start %s is out of range for size %s", dim_text(p, start),
                          dim_text(p, size));
    if (!dim_at_least(n, length, DIM(0)) || !dim_at_least(n, size, dim_add(p, from, length)))
        return diag_error(d, n->loc, "length %s does not fit into size %s", dim_text(p, length),
                          dim_text(p, size));
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    dim[axis] = length;
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* Computes the sizes of a slice, whose arguments at, at + 1, ... are axis, start, end and step. */
static bool slice_sizes(const Node *n, int at, Type x, Dim *dim, Diag *d)
{
    Program *p = program_of(n);
    Dim start, end;
    int axis;
    int64_t step;
    if (!get_axis(n, at, x.rank, &axis, d) ||
        !get_bound(n, at + 1, x.dim[axis], DIM(0), &start, d) ||
        !get_bound(n, at + 2, x.dim[axis], x.dim[axis], &end, d) || !get_int(n, at + 3, &step, d))
        return false;
    if (step < 1)
        return diag_error(d, n->loc, "step is %" PRId64 ", expected at least 1", step);
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    /* ceil(length / step), which cannot overflow as length + step - 1 could */
    Dim length = dim_max(p, dim_sub(p, end, start), DIM(0));
    dim[axis] = dim_sub(p, DIM(0), dim_floordiv(p, dim_sub(p, DIM(0), length), DIM(step)));
    return true;
}

bool infer_slice(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    return get_rank(n, "self", 1, MAX_RANK, &x, d) && slice_sizes(n, 1, x, dim, d) &&
           set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* Infers x with a part of these sizes replaced by `src`. */
static bool scattered(const Node *n, Type x, int rank, const Dim *dim, Type *out, Diag *d)
{
    Type src;
    if (!get_rank(n, "src", rank, rank, &src, d))
        return false;
    for (int i = 0; i < rank; i++)
        if (!dims_match(n, src.dim[i], dim[i]))
            return diag_error(d, n->loc, "src has size %s on axis %d, expected %s",
                              dim_text(program_of(n), src.dim[i]), i,
                              dim_text(program_of(n), dim[i]));
    return set_tensor(n, out, x.dtype, x.rank, x.dim, d);
}

/* Infers slice_scatter(self, src, dim, start, end, step). */
bool infer_slice_scatter(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    return get_rank(n, "self", 1, MAX_RANK, &x, d) && slice_sizes(n, 2, x, dim, d) &&
           scattered(n, x, x.rank, dim, out, d);
}

/* Infers select_scatter(self, src, dim, index). */
bool infer_select_scatter(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    return select_sizes(n, &x, dim, d) && scattered(n, x, x.rank - 1, dim, out, d);
}

/* -- joins and borders ---------------------------------------------------------------- */

/* Returns whether torch.cat leaves out a tensor, as it does with those of shape [0]. */
static bool is_void(Type t)
{
    return t.rank == 1 && dim_equal(t.dim[0], DIM(0));
}

static bool cat_one(const Node *n, Type *sum, Dim *dim, Type t, int axis, Diag *d)
{
    Program *p = program_of(n);
    bool ok = t.rank == sum->rank;
    for (int i = 0; ok && i < t.rank; i++)
        ok = i == axis || dims_match(n, t.dim[i], sum->dim[i]);
    if (!ok)
        return diag_error(d, n->loc, "cannot concatenate %s with %s along axis %d",
                          type_text(p, *sum), type_text(p, t), axis);
    dim[axis] = dim_add(p, dim[axis], t.dim[axis]);
    return true;
}

bool infer_cat(const Node *n, Type *out, Diag *d)
{
    Type first = {.rank = 1, .dim = &DIM(0)};
    Dim dim[MAX_RANK];
    int axis, dtype = DTYPE_NONE, count = arg_count(n, "tensors");
    if (!count)
        return diag_error(d, n->loc, "tensors is empty");
    for (int i = 0; i < count; i++) {
        const Value *v = arg_list_value(n, "tensors", i);
        if (!v || v->type.is_none || v->type.rank < 1)
            return diag_error(d, n->loc, "tensor %d of the list has no axis to join", i);
        dtype = promote(dtype, (int)v->type.dtype);
        if (is_void(first) && !is_void(v->type))
            first = v->type;
    }
    if (dtype < 0)
        return diag_error(d, n->loc, "its operands have no common dtype");
    if (!get_axis(n, "dim", first.rank, &axis, d))
        return false;
    memcpy(dim, first.dim, (size_t)first.rank * sizeof *dim);
    dim[axis] = DIM(0);
    for (int i = 0; i < count; i++) {
        Type t = arg_list_value(n, "tensors", i)->type;
        if (!is_void(t) && !cat_one(n, &first, dim, t, axis, d))
            return false;
    }
    return set_tensor(n, out, (EtcDtype)dtype, first.rank, dim, d);
}

/* Negative padding is applied first, as in torch, so the axis must have as many elements as are cut
 * off. */
static bool pad_axis(const Node *n, Dim before, Dim after, Dim *size, int axis, Diag *d)
{
    Program *p = program_of(n);
    Dim cut = dim_add(p, dim_min(p, before, DIM(0)), dim_min(p, after, DIM(0)));
    if (!dim_at_least(n, dim_add(p, *size, cut), DIM(0)))
        return diag_error(d, n->loc, "pad cuts %s off axis %d of size %s",
                          dim_text(p, dim_sub(p, DIM(0), cut)), axis, dim_text(p, *size));
    *size = dim_add(p, dim_add(p, *size, before), after);
    return true;
}

bool infer_pad(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    int count = arg_count(n, "pad");
    if (!get_tensor(n, "self", &x, d))
        return false;
    if (count % 2 || count > 2 * x.rank)
        return diag_error(d, n->loc, "pad has %d items, expected pairs for at most %d axes", count,
                          x.rank);
    for (int i = 0; i < x.rank; i++)
        dim[i] = x.dim[i];
    for (int k = 0; k < count; k++)
        if (arg_get(n, "pad").list.item[k].kind != ARG_INT)
            return diag_error(d, n->loc, "item %d of pad is not an integer", k);
    for (int k = 0; k < count; k += 2) {
        const Arg *a = &n->arg[arg_of(n, "pad")].list.item[k];
        int axis = x.rank - 1 - k / 2;
        if (!pad_axis(n, a[0].dim, a[1].dim, &dim[axis], axis, d))
            return false;
    }
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* -- fills and copies ----------------------------------------------------------------- */

bool infer_full(const Node *n, Type *out, Diag *d)
{
    Dim size[MAX_RANK];
    int count;
    static const int value = 1;
    int dtype = promote_args(n, &value, 1);
    return get_sizes(n, "size", size, &count, d) &&
           set_tensor(n, out, dtype_or(n, dtype < 0 ? ETC_F32 : (EtcDtype)dtype), count, size, d);
}

bool infer_full_like(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, "self", &x, d) &&
           set_tensor(n, out, dtype_or(n, x.dtype), x.rank, x.dim, d);
}

/* Computes ceil((end - start) / step).  Plain numbers are computed in double, as torch does. */
static bool arange_count(const Node *n, const int at[3], Dim *count, Diag *d)
{
    Program *p = program_of(n);
    double v[3] = {0, 0, 1};
    Dim size[3] = {DIM(0), DIM(0), DIM(1)};
    bool is_int = true;
    for (int i = 0; i < 3; i++) {
        is_int = is_int && (at[i] < 0 || n->arg[at[i]].kind == ARG_INT ||
                            n->arg[at[i]].kind == ARG_VALUE);
        if (at[i] >= 0 && !arg_number(n, at[i], &v[i]) && !get_size(n, at[i], &size[i], d))
            return false;
        if (at[i] >= 0 && is_int && !get_size(n, at[i], &size[i], d))
            return false;
    }
    int64_t least, most;
    dim_range(size[2], &least, &most);
    if (is_int && (least > 0 || most < 0)) {
        bool is_down = most < 0;
        Dim span = is_down ? dim_sub(p, size[1], size[0]) : dim_sub(p, size[0], size[1]);
        Dim step = is_down ? dim_sub(p, DIM(0), size[2]) : size[2];
        if (!span.expr && span.value > 0)
            return diag_error(d, n->loc, "steps away from its end");
        *count = dim_max(p, dim_sub(p, DIM(0), dim_floordiv(p, span, step)), DIM(0));
        return true;
    }
    double length = is_int ? -1 : ceil((v[1] - v[0]) / v[2]);
    if (!(length >= 0 && length < 9e18))
        return diag_error(d, n->loc, "has no length known before the call");
    *count = DIM((int64_t)length);
    return true;
}

/* Infers arange(end), arange(start, end) and arange(start, end, step). */
bool infer_arange(const Node *n, Type *out, Diag *d)
{
    int n_numbers = arg_find(n, "start") < 0 ? 1 : arg_find(n, "step") < 0 ? 2 : 3;
    int at[3] = {n_numbers > 1 ? 0 : -1, n_numbers > 1 ? 1 : 0, n_numbers > 2 ? 2 : -1};
    static const int all[] = {0, 1, 2};
    Dim count;
    int dtype = promote_args(n, all, n_numbers);
    return arange_count(n, at, &count, d) &&
           set_tensor(n, out, dtype_or(n, dtype < 0 ? ETC_I64 : (EtcDtype)dtype), 1, &count, d);
}

bool infer_to_copy(const Node *n, Type *out, Diag *d)
{
    return infer_full_like(n, out, d);
}

bool infer_sym_size(const Node *n, Type *out, Diag *d)
{
    Type x;
    int axis;
    if (!get_rank(n, "self", 1, MAX_RANK, &x, d) || !get_axis(n, "dim", x.rank, &axis, d))
        return false;
    *out = type_size(program_of(n), x.dim[axis]);
    return true;
}

/* Infers item, the only element of a tensor as a Python number. */
bool infer_item(const Node *n, Type *out, Diag *d)
{
    Type x;
    if (!get_tensor(n, "self", &x, d))
        return false;
    for (int i = 0; i < x.rank; i++)
        if (!dims_match(n, x.dim[i], DIM(1)))
            return diag_error(d, n->loc, "%s has more than one element", arg_name(n, 0));
    EtcDtype t = dtype_is_float(x.dtype) ? ETC_F64 : x.dtype == ETC_BOOL ? ETC_BOOL : ETC_I64;
    *out = (Type){.dtype = t, .rank = SCALAR};
    return true;
}

static bool number_type(const Node *n, int i, Type *out)
{
    const Value *v = arg_value(n, i);
    ArgKind kind = n->arg[i].kind;
    Dim d;
    *out = (Type){.dtype = ETC_I64, .rank = SCALAR};
    if (v)
        *out = v->type;
    else if (kind == ARG_NONE)
        *out = TYPE_NONE;
    else if (kind != ARG_INT)
        out->dtype = kind == ARG_BOOL ? ETC_BOOL : ETC_F64;
    if (out->rank == SCALAR && out->dtype == ETC_I64 && !out->dim && is_size(n, i, &d))
        *out = type_size(program_of(n), d);
    return out->is_none || out->rank == SCALAR;
}

/* Infers etc.constant, whose result is its argument. */
bool infer_constant(const Node *n, Type *out, Diag *d)
{
    return number_type(n, 0, out) ||
           diag_error(d, n->loc, "%s is a tensor, expected a number", arg_name(n, 0));
}

/* Returns the size that a prim op computes from two known sizes; DIM_BAD: the op computes none. */
static Dim computed(Program *p, OpId op, Dim a, Dim b)
{
    switch (op) {
    case OP_PRIM_ADD:
        return dim_add(p, a, b);
    case OP_PRIM_SUB:
        return dim_sub(p, a, b);
    case OP_PRIM_MUL:
        return dim_mul(p, a, b);
    case OP_PRIM_FLOORDIV:
        return dim_floordiv(p, a, b);
    case OP_PRIM_MAX:
        return dim_max(p, a, b);
    case OP_PRIM_MIN:
        return dim_min(p, a, b);
    default:
        return DIM_BAD;
    }
}

/* Infers arithmetic on two numbers.  The result is an int if both are. */
bool infer_number(const Node *n, Type *out, Diag *d)
{
    Program *p = program_of(n);
    Type a, b;
    if (!number_type(n, 0, &a) || !number_type(n, 1, &b) || a.is_none || b.is_none)
        return diag_error(d, n->loc, "its arguments are not numbers");
    bool is_int = a.dtype == ETC_I64 && b.dtype == ETC_I64;
    *out = (Type){.dtype = is_int ? ETC_I64 : ETC_F64, .rank = SCALAR};
    Dim known = is_int && a.dim && b.dim ? computed(p, n->op, *a.dim, *b.dim) : DIM_BAD;
    if (!dim_is_bad(known))
        *out = type_size(p, known);
    return true;
}

/* -- reductions ----------------------------------------------------------------------- */

/* Returns 1 if the operator takes the largest of something, -1 if it takes the least, else 0. */
static int is_extreme(OpId op)
{
    return op == OP_AMAX || op == OP_ARGMAX || op == OP_MAX || op == OP_MAX_DIM   ? 1
           : op == OP_AMIN || op == OP_ARGMIN || op == OP_MIN || op == OP_MIN_DIM ? -1
                                                                                  : 0;
}

/* Sets the result of a reduction.  Without axes, or with an empty list, it reduces all axes. */
static bool reduced(const Node *n, Type x, EtcDtype dtype, Type *out, Diag *d)
{
    int at = arg_find(n, "dim"), keep = arg_find(n, "keepdim"), rank = 0;
    unsigned axes = ~0u;
    Dim dim[MAX_RANK];
    if (at >= 0 && n->arg[at].kind != ARG_NONE &&
        (n->arg[at].kind != ARG_LIST || n->arg[at].list.n) && !get_axes(n, at, x.rank, &axes, d))
        return false;
    for (int i = 0; i < x.rank; i++)
        if (!(axes >> i & 1))
            dim[rank++] = x.dim[i];
        else if (is_extreme(n->op) && !dim_at_least(n, x.dim[i], DIM(1)))
            return diag_error(d, n->loc, "axis %d is empty: it has no %s", i,
                              is_extreme(n->op) > 0 ? "maximum" : "minimum");
        else if (keep >= 0 && arg_bool(n, keep))
            dim[rank++] = DIM(1);
    return set_tensor(n, out, dtype, rank, dim, d);
}

/* The sum of integers or bools is i64.  A maximum keeps its dtype. */
bool infer_reduce(const Node *n, Type *out, Diag *d)
{
    Type x;
    if (!get_tensor(n, "self", &x, d))
        return false;
    bool sums = arg_find(n, "dtype") >= 0 && !dtype_is_float(x.dtype) && !dtype_is_complex(x.dtype);
    return reduced(n, x, dtype_or(n, sums ? ETC_I64 : x.dtype), out, d);
}

bool infer_reduce_float(const Node *n, Type *out, Diag *d)
{
    Type x;
    if (!get_tensor(n, "self", &x, d))
        return false;
    EtcDtype dtype = dtype_or(n, x.dtype);
    if (!dtype_is_float(dtype))
        return diag_error(d, n->loc, "mean of dtype %s, expected a floating-point one",
                          dtype_name(dtype));
    return reduced(n, x, dtype, out, d);
}

/* Infers any and all.  Their result is u8 for u8, else bool. */
bool infer_any(const Node *n, Type *out, Diag *d)
{
    Type x;
    return get_tensor(n, "self", &x, d) &&
           reduced(n, x, x.dtype == ETC_U8 ? ETC_U8 : ETC_BOOL, out, d);
}

/* Infers the largest or the least element, its index, or both. */
bool infer_order(const Node *n, Type *out, Diag *d)
{
    Type x;
    bool is_place = n->op == OP_ARGMAX || n->op == OP_ARGMIN;
    return get_tensor(n, "self", &x, d) && reduced(n, x, is_place ? ETC_I64 : x.dtype, out, d) &&
           (n->n_out < 2 || reduced(n, x, ETC_I64, &out[1], d));
}

/* Sets both results to x's type with `size` along the axis. */
static bool ordered(const Node *n, Type x, int axis, Dim size, Type *out, Diag *d)
{
    Dim dim[MAX_RANK];
    for (int i = 0; i < x.rank; i++)
        dim[i] = i == axis ? size : x.dim[i];
    return set_tensor(n, &out[0], x.dtype, x.rank, dim, d) &&
           set_tensor(n, &out[1], ETC_I64, x.rank, dim, d);
}

bool infer_topk(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim k;
    int axis;
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "dim", x.rank, &axis, d) ||
        !get_size(n, "k", &k, d))
        return false;
    Dim most = x.rank ? x.dim[axis] : DIM(1);
    if (!dim_at_least(n, most, k) || !dim_at_least(n, k, DIM(0)))
        return diag_error(d, n->loc, "k is %s, expected 0 to %s",
                          dim_text(n->graph->program, k), dim_text(n->graph->program, most));
    return ordered(n, x, axis, k, out, d);
}

bool infer_sort(const Node *n, Type *out, Diag *d)
{
    Type x;
    int axis;
    return get_tensor(n, "self", &x, d) && get_axis(n, "dim", x.rank, &axis, d) &&
           ordered(n, x, axis, x.rank ? x.dim[axis] : DIM(1), out, d);
}
