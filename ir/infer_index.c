/* infer_index.c -- types of indexed reads and writes, pieces, repeats, fills and running sums. */
#include "ir/internal.h"
#include <inttypes.h>
#include <string.h>

static Program *program_of(const Node *n)
{
    return n->graph->program;
}

/* -- indices -------------------------------------------------------------------------- */

static bool get_index(const Node *n, const char *name, Type *t, Diag *d)
{
    if (!get_tensor(n, name, t, d))
        return false;
    return t->dtype == ETC_I64 || t->dtype == ETC_I32 ||
           diag_error(d, n->loc, "%s has dtype %s, expected i64 or i32", name,
                      dtype_name(t->dtype));
}

/* Checks that an axis of this size has an element to choose, unless none is chosen. */
static bool has_choice(const Node *n, Dim size, Dim chosen, Diag *d)
{
    Program *p = program_of(n);
    return dim_at_least(n, size, dim_min(p, chosen, DIM(1))) ||
           diag_error(d, n->loc, "chooses %s elements of an axis of size %s", dim_text(p, chosen),
                      dim_text(p, size));
}

static Dim numel(const Node *n, Type t)
{
    return dims_product(program_of(n), t.dim, t.rank);
}

/* The axes that a list of indices selects from, one bit for each, and the sizes that the indices
 * broadcast to. */
typedef struct Indexed {
    unsigned axes;
    Type shape;
} Indexed;

static bool read_indices(const Node *n, Type x, Indexed *s, Diag *d)
{
    int count = arg_count(n, "indices");
    *s = (Indexed){.shape = {.dtype = ETC_I64}};
    if (count > x.rank)
        return diag_error(d, n->loc, "has %d indices for %d axes", count, x.rank);
    for (int i = 0; i < count; i++) {
        const Value *v = arg_list_value(n, "indices", i);
        if (!v)
            continue;
        if (v->type.dtype == ETC_BOOL || v->type.dtype == ETC_U8)
            return diag_unsupported(d, n->loc,
                                    "index %d is a mask: sizes would depend on its elements", i);
        if (v->type.dtype != ETC_I64 && v->type.dtype != ETC_I32)
            return diag_error(d, n->loc, "index %d has dtype %s, expected i64 or i32", i,
                              dtype_name(v->type.dtype));
        if (!broadcast(n, s->shape, v->type, &s->shape, d))
            return false;
        s->axes |= 1u << i;
    }
    for (int i = 0; i < count; i++)
        if (s->axes >> i & 1 && !has_choice(n, x.dim[i], numel(n, s->shape), d))
            return false;
    return s->axes || diag_error(d, n->loc, "has no index");
}

/* The sizes of the indices replace the indexed axes.  If these are not neighbours, they come
 * first. */
static bool indexed_shape(const Node *n, Type x, const Indexed *s, Type *out, Diag *d)
{
    Dim dim[2 * MAX_RANK];
    int rank = 0, first = 0, last = x.rank - 1;
    assert(s->axes && s->axes < 1u << x.rank);
    while (!(s->axes >> first & 1))
        first++;
    while (!(s->axes >> last & 1))
        last--;
    bool is_run = (s->axes >> first) + 1 == 1u << (last - first + 1);
    int at = is_run ? first : 0;
    for (int i = 0; i <= x.rank; i++) {
        if (i == at)
            for (int k = 0; k < s->shape.rank; k++)
                dim[rank++] = s->shape.dim[k];
        if (i < x.rank && !(s->axes >> i & 1))
            dim[rank++] = x.dim[i];
    }
    return set_tensor(n, out, x.dtype, rank, dim, d);
}

bool indices_have_mask(const Node *n)
{
    for (int i = 0; i < arg_count(n, "indices"); i++) {
        const Value *v = arg_list_value(n, "indices", i);
        if (v && (v->type.dtype == ETC_BOOL || v->type.dtype == ETC_U8))
            return true;
    }
    return false;
}

static bool waits_for_mask(const Node *n)
{
    return program_of(n)->stage == STAGE_ATEN && indices_have_mask(n);
}

/* Infers index(self, indices).  At stage aten, the size that a mask of bools selects is the one
 * that the export recorded. */
bool infer_index(const Node *n, Type *out, Diag *d)
{
    Type x;
    Indexed s;
    if (waits_for_mask(n) && n->n_out)
        return infer_given(n, out, d);
    return get_tensor(n, "self", &x, d) && read_indices(n, x, &s, d) &&
           indexed_shape(n, x, &s, out, d);
}

/* Infers index_put(self, indices, values, accumulate). */
bool infer_index_put(const Node *n, Type *out, Diag *d)
{
    Type x, values;
    Indexed s;
    if (!get_tensor(n, "self", &x, d) || !get_tensor(n, "values", &values, d))
        return false;
    if (waits_for_mask(n)) /* only decompose knows how many elements a mask selects */
        return values.dtype == x.dtype
                   ? set_tensor(n, out, x.dtype, x.rank, x.dim, d)
                   : diag_error(d, n->loc, "values have dtype %s, expected %s",
                                dtype_name(values.dtype), dtype_name(x.dtype));
    if (!read_indices(n, x, &s, d) || !indexed_shape(n, x, &s, out, d) ||
        !expands_to(n, values, *out, d))
        return false;
    if (values.dtype != x.dtype)
        return diag_error(d, n->loc, "values have dtype %s, expected %s", dtype_name(values.dtype),
                          dtype_name(x.dtype));
    return set_tensor(n, out, x.dtype, x.rank, x.dim, d);
}

/* Infers index_select(self, dim, index).  The index is a vector; for a self of rank 0 it has one
 * element. */
bool infer_index_select(const Node *n, Type *out, Diag *d)
{
    Type x, index;
    Dim dim[MAX_RANK];
    int axis;
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "dim", x.rank, &axis, d) ||
        !get_index(n, "index", &index, d))
        return false;
    if (index.rank > 1)
        return diag_error(d, n->loc, "index has rank %d, expected at most 1", index.rank);
    if (!x.rank && index.rank && !dims_agree(n, index.dim[0], DIM(1)))
        return diag_error(d, n->loc, "index has %s elements, expected 1 for a self of rank 0",
                          dim_text(program_of(n), index.dim[0]));
    if (!x.rank)
        return set_tensor(n, out, x.dtype, 0, NULL, d);
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    dim[axis] = index.rank ? index.dim[0] : DIM(1);
    return has_choice(n, x.dim[axis], dim[axis], d) &&
           set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* Infers gather(self, dim, index).  The index has the sizes of the result, and except on the axis
 * `dim` none of them is above self's.  An index without elements may have any dtype and rank. */
bool infer_gather(const Node *n, Type *out, Diag *d)
{
    Type x, index;
    int axis;
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "dim", x.rank, &axis, d) ||
        !get_tensor(n, "index", &index, d))
        return false;
    if (!type_numel(index))
        return set_tensor(n, out, x.dtype, index.rank, index.dim, d);
    if (!get_index(n, "index", &index, d))
        return false;
    if ((index.rank ? index.rank : 1) != (x.rank ? x.rank : 1))
        return diag_error(d, n->loc, "index has rank %d, expected %d", index.rank, x.rank);
    for (int i = 0; i < x.rank && i < index.rank; i++) {
        if (i != axis && !dim_at_least(n, x.dim[i], index.dim[i]))
            return diag_error(d, n->loc, "index has size %s on axis %d, expected at most %s",
                              dim_text(program_of(n), index.dim[i]), i,
                              dim_text(program_of(n), x.dim[i]));
    }
    return (!x.rank || has_choice(n, x.dim[axis], numel(n, index), d)) &&
           set_tensor(n, out, x.dtype, index.rank, index.dim, d);
}

/* Infers scatter(self, dim, index, src or a number).  The index has the rank of self.  None of its
 * sizes is above src's, nor, except on the axis, above self's. */
bool infer_scatter(const Node *n, Type *out, Diag *d)
{
    Type x, index, src;
    int axis, at = arg_find(n, "src");
    Program *p = program_of(n);
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "dim", x.rank, &axis, d) ||
        !get_tensor(n, "index", &index, d) || (at >= 0 && !get_tensor(n, at, &src, d)))
        return false;
    if (at < 0)
        src = (Type){.rank = index.rank, .dim = index.dim, .dtype = x.dtype};
    if (src.dtype != x.dtype)
        return diag_error(d, n->loc, "src has dtype %s, expected %s", dtype_name(src.dtype),
                          dtype_name(x.dtype));
    if (!type_numel(index))
        return set_tensor(n, out, x.dtype, x.rank, x.dim, d);
    if (!get_index(n, "index", &index, d))
        return false;
    if ((index.rank ? index.rank : 1) != (x.rank ? x.rank : 1) ||
        (src.rank ? src.rank : 1) != (x.rank ? x.rank : 1))
        return diag_error(d, n->loc, "index has rank %d and src %d, expected %d", index.rank,
                          src.rank, x.rank);
    for (int i = 0; i < (index.rank ? index.rank : 1); i++) {
        Dim size = index.rank ? index.dim[i] : DIM(1);
        Dim most = x.rank ? x.dim[i] : DIM(1), there = src.rank ? src.dim[i] : DIM(1);
        if (!dim_at_least(n, there, size) || (i != axis && !dim_at_least(n, most, size)))
            return diag_error(d, n->loc, "index has size %s on axis %d, expected at most %s",
                              dim_text(p, size), i,
                              dim_text(p, i != axis ? dim_min(p, most, there) : there));
    }
    return (!x.rank || has_choice(n, x.dim[axis], numel(n, index), d)) &&
           set_tensor(n, out, x.dtype, x.rank, x.dim, d);
}

/* Infers index_copy(self, dim, index, source).  Except on the axis, source has the sizes of self.
 */
bool infer_index_copy(const Node *n, Type *out, Diag *d)
{
    Type x, index, source;
    int axis;
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "dim", x.rank, &axis, d) ||
        !get_index(n, "index", &index, d) || !get_tensor(n, "source", &source, d))
        return false;
    if (index.rank > 1)
        return diag_error(d, n->loc, "index has rank %d, expected at most 1", index.rank);
    if (source.rank && source.rank != x.rank)
        return diag_error(d, n->loc, "source has rank %d, expected %d", source.rank, x.rank);
    Dim count = index.rank ? index.dim[0] : DIM(1);
    if (x.rank && !has_choice(n, x.dim[axis], count, d))
        return false;
    bool fits = source.dtype == x.dtype &&
                (source.rank || (x.rank <= 1 && dims_match(n, count, DIM(1))));
    for (int i = 0; fits && i < source.rank; i++)
        fits = dims_match(n, source.dim[i], i == axis ? count : x.dim[i]);
    return fits ? set_tensor(n, out, x.dtype, x.rank, x.dim, d)
                : diag_error(d, n->loc, "cannot copy %s into %s of %s along axis %d",
                             type_text(program_of(n), source), dim_text(program_of(n), count),
                             type_text(program_of(n), x), axis);
}

bool infer_embedding(const Node *n, Type *out, Diag *d)
{
    Type w, index;
    Dim dim[MAX_RANK + 1];
    if (!get_rank(n, "weight", 2, 2, &w, d) || !get_index(n, "indices", &index, d))
        return false;
    for (int i = 0; i < index.rank; i++)
        dim[i] = index.dim[i];
    dim[index.rank] = w.dim[1];
    return has_choice(n, w.dim[0], numel(n, index), d) &&
           set_tensor(n, out, w.dtype, index.rank + 1, dim, d);
}

/* Infers a lookup of rows of integers as floats.  Two integers of 4 bits share a byte. */
bool infer_table(const Node *n, Type *out, Diag *d)
{
    Type w, scale, zero, index;
    Dim dim[MAX_RANK + 1];
    bool is_short = n->op == OP_EMBEDDING_4BIT;
    if (!get_rank(n, "weight", 2, 2, &w, d) || !get_rank(n, "weight_scales", 1, 2, &scale, d) ||
        !get_optional(n, "weight_zero_points", &zero, d) || !get_index(n, "indices", &index, d))
        return false;
    if (w.dtype != ETC_U8 && (is_short || w.dtype != ETC_I8))
        return diag_error(d, n->loc, "its table has dtype %s", dtype_name(w.dtype));
    Dim columns = dim_mul(program_of(n), w.dim[1], DIM(is_short ? 2 : 1));
    Dim groups = scale.rank > 1 ? scale.dim[1] : DIM(1);
    if (!dims_agree(n, scale.dim[0], w.dim[0]) || groups.expr ||
        !dim_divides(n, groups.value, columns))
        return diag_error(d, n->loc, "scales are not of the table's rows");
    if (!zero.is_none && (zero.rank != scale.rank || !expands_to(n, scale, zero, d) ||
                          !expands_to(n, zero, scale, d)))
        return diag_error(d, n->loc, "zero points are not of the table's rows");
    if (!check_qparams(n, 1, w.dtype, d))
        return false;
    for (int i = 0; i < index.rank; i++)
        dim[i] = index.dim[i];
    dim[index.rank] = columns;
    return has_choice(n, w.dim[0], numel(n, index), d) &&
           set_tensor(n, out, scale.dtype, index.rank + 1, dim, d);
}

/* -- pieces --------------------------------------------------------------------------- */

bool infer_unbind(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK];
    int axis;
    if (!get_rank(n, "self", 1, MAX_RANK, &x, d) || !get_axis(n, "dim", x.rank, &axis, d))
        return false;
    if (!dims_match(n, x.dim[axis], DIM(n->n_out)))
        return diag_error(d, n->loc, "gives %d results for size %s", n->n_out,
                          dim_text(program_of(n), x.dim[axis]));
    for (int i = 0; i + 1 < x.rank; i++)
        dim[i] = x.dim[i + (i >= axis)];
    for (int i = 0; i < n->n_out; i++)
        if (!set_tensor(n, &out[i], x.dtype, x.rank - 1, dim, d))
            return false;
    return true;
}

/* Computes the size of piece i along its axis: it is listed, or pieces are equal and the last
 * one has the rest. */
static bool piece_size(const Node *n, int i, Dim whole, Dim *size, Diag *d)
{
    Program *p = program_of(n);
    Dim part, listed[1024];
    if (n->arg[1].kind == ARG_LIST) {
        if (arg_count(n, "split_sizes") != n->n_out || n->n_out > 1024 ||
            !arg_dims(n, "split_sizes", listed, 1024))
            return diag_error(d, n->loc, "split sizes are not one integer per result");
        *size = listed[i];
        return true;
    }
    if (!get_size(n, 1, &part, d))
        return false;
    if (part.expr || part.value < 1)
        return diag_error(d, n->loc, "%s is not a positive integer", arg_name(n, 1));
    if (n->op == OP_CHUNK) /* ceil(whole / chunks) */
        part = dim_sub(p, DIM(0), dim_floordiv(p, dim_sub(p, DIM(0), whole), part));
    Dim before = dim_mul(p, part, DIM(i));
    *size = i + 1 < n->n_out ? part : dim_sub(p, whole, before);
    return i + 1 < n->n_out ||
           (dim_at_least(n, part, *size) &&
            (!i || dim_at_least(n, *size, dim_min(p, part, DIM(1))))) ||
           diag_error(d, n->loc, "gives %d results for size %s", n->n_out, dim_text(p, whole));
}

bool infer_split(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim dim[MAX_RANK], sum = DIM(0);
    int axis;
    if (!get_rank(n, "self", 1, MAX_RANK, &x, d) || !get_axis(n, "dim", x.rank, &axis, d))
        return false;
    for (int i = 0; i < n->n_out; i++) {
        memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
        if (!piece_size(n, i, x.dim[axis], &dim[axis], d) ||
            !set_tensor(n, &out[i], x.dtype, x.rank, dim, d))
            return false;
        sum = dim_add(program_of(n), sum, dim[axis]);
    }
    return dims_match(n, sum, x.dim[axis]) ||
           diag_error(d, n->loc, "splits size %s into pieces of %s in all",
                      dim_text(program_of(n), x.dim[axis]), dim_text(program_of(n), sum));
}

bool infer_stack(const Node *n, Type *out, Diag *d)
{
    const Value *first = arg_list_value(n, "tensors", 0);
    Dim dim[MAX_RANK + 1];
    int axis, dtype = DTYPE_NONE, count = arg_count(n, "tensors");
    if (!first)
        return diag_error(d, n->loc, "tensors is empty");
    if (!get_axis(n, "dim", first->type.rank + 1, &axis, d))
        return false;
    for (int k = 0; k < count; k++) {
        const Value *v = arg_list_value(n, "tensors", k);
        bool fits = v && v->type.rank == first->type.rank;
        for (int i = 0; fits && i < v->type.rank; i++)
            fits = dims_agree(n, v->type.dim[i], first->type.dim[i]);
        if (!fits)
            return diag_error(d, n->loc, "tensor %d of the list has another shape", k);
        dtype = promote(dtype, (int)v->type.dtype);
    }
    if (dtype < 0)
        return diag_error(d, n->loc, "its operands have no common dtype");
    for (int i = 0; i <= first->type.rank; i++)
        dim[i] = i == axis ? DIM(count) : first->type.dim[i - (i > axis)];
    return set_tensor(n, out, (EtcDtype)dtype, first->type.rank + 1, dim, d);
}

/* -- repeats -------------------------------------------------------------------------- */

bool infer_repeat(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim by[MAX_RANK];
    int count;
    if (!get_tensor(n, "self", &x, d) || !get_sizes(n, "repeats", by, &count, d))
        return false;
    if (count < x.rank)
        return diag_error(d, n->loc, "repeats has %d items, expected at least %d", count, x.rank);
    for (int i = count - x.rank, k = 0; i < count; i++, k++)
        by[i] = dim_mul(program_of(n), by[i], x.dim[k]);
    return set_tensor(n, out, x.dtype, count, by, d);
}

/* Infers repeat_interleave(self, repeats, dim).  Without dim it repeats the elements of the whole
 * tensor as one row. */
bool infer_repeat_interleave(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim by, dim[MAX_RANK];
    int axis = 0;
    Program *p = program_of(n);
    if (!get_tensor(n, "self", &x, d) || !get_size(n, "repeats", &by, d))
        return false;
    if (arg_get(n, "dim").kind == ARG_NONE) {
        dim[0] = dim_mul(p, dims_product(p, x.dim, x.rank), by);
        return set_tensor(n, out, x.dtype, 1, dim, d);
    }
    if (x.rank < 1 || !get_axis(n, "dim", x.rank, &axis, d))
        return x.rank >= 1 ? false : diag_error(d, n->loc, "self has no axis");
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    dim[axis] = dim_mul(p, dim[axis], by);
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

bool infer_type_as(const Node *n, Type *out, Diag *d)
{
    Type x, other;
    return get_tensor(n, "self", &x, d) && get_tensor(n, "other", &other, d) &&
           set_tensor(n, out, other.dtype, x.rank, x.dim, d);
}

/* -- fills ---------------------------------------------------------------------------- */

/* Infers a tensor of the given sizes.  Without an argument `dtype` it has the dtype of self or, if
 * there is no self, torch's default. */
bool infer_new(const Node *n, Type *out, Diag *d)
{
    Dim size[MAX_RANK];
    int count, self = arg_find(n, "self");
    Type x = {.dtype = ETC_F32};
    return (self < 0 || get_tensor(n, self, &x, d)) &&
           get_sizes(n, arg_find(n, "size"), size, &count, d) &&
           set_tensor(n, out, dtype_or(n, x.dtype), count, size, d);
}

bool infer_scalar_tensor(const Node *n, Type *out, Diag *d)
{
    return set_tensor(n, out, dtype_or(n, ETC_F32), 0, NULL, d);
}

bool infer_masked_fill(const Node *n, Type *out, Diag *d)
{
    Type x, mask;
    if (!get_tensor(n, "self", &x, d) || !get_tensor(n, "mask", &mask, d))
        return false;
    if (mask.dtype != ETC_BOOL)
        return diag_error(d, n->loc, "mask has dtype %s, expected bool", dtype_name(mask.dtype));
    return broadcast(n, x, mask, out, d);
}

/* -- along an axis -------------------------------------------------------------------- */

/* Infers diff.  Each round makes the axis one element shorter. */
bool infer_diff(const Node *n, Type *out, Diag *d)
{
    Type x, end;
    Dim dim[MAX_RANK];
    int64_t rounds;
    int axis;
    Program *p = program_of(n);
    if (!get_rank(n, "self", 1, MAX_RANK, &x, d) || !get_int(n, "n", &rounds, d) ||
        !get_axis(n, "dim", x.rank, &axis, d))
        return false;
    if (rounds < 0)
        return diag_error(d, n->loc, "n is %" PRId64 ", expected at least 0", rounds);
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    for (int i = 3; i <= 4; i++) {
        if (!get_optional(n, i, &end, d))
            return false;
        if (!end.is_none && end.rank != x.rank)
            return diag_error(d, n->loc, "%s has rank %d, expected %d", arg_name(n, i), end.rank,
                              x.rank);
        for (int k = 0; !end.is_none && k < x.rank; k++)
            if (k != axis && !dims_match(n, end.dim[k], x.dim[k]))
                return diag_error(d, n->loc, "%s has size %s on axis %d, expected %s",
                                  arg_name(n, i), dim_text(p, end.dim[k]), k,
                                  dim_text(p, x.dim[k]));
        if (!end.is_none && rounds) /* without any round torch returns self */
            dim[axis] = dim_add(p, dim[axis], end.dim[axis]);
    }
    dim[axis] = dim_max(p, dim_sub(p, dim[axis], DIM(rounds)), DIM(0));
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

static bool set_transform(const Node *n, Type *out, Type x, int axis, int64_t length, int64_t form,
                          Diag *d)
{
    Dim dim[MAX_RANK], rows = DIM(1);
    int64_t half = length / 2 + 1, read = form == 2 ? half : length;
    if (form < 0 || form > 3 || x.dtype != ETC_F32 || !dims_match(n, x.dim[axis], DIM(read)) ||
        (form != 1 && !dim_equal(x.dim[x.rank - 1], DIM(2))))
        return diag_error(d, n->loc, "expects rows of %" PRId64 " floats or pairs of them", read);
    for (int i = 0; i < x.rank; i++) {
        dim[i] = i == axis ? DIM(form == 1 ? half : length) : x.dim[i];
        rows = i == axis || i == x.rank - (form != 1) ? rows
                                                      : dim_mul(program_of(n), rows, x.dim[i]);
    }
    dim[x.rank] = DIM(2);
    Dim work = DIM(eval_fft_work(length, rows.expr ? -1 : rows.value, form));
    if (!work.value)
        return diag_error(d, n->loc, "has no kernel for %" PRId64 " elements", length);
    return set_tensor(n, &out[0], ETC_F32, x.rank + (int)(form % 2) - (form == 2), dim, d) &&
           set_tensor(n, &out[1], ETC_F32, 1, &work, d);
}

/* Infers a transform of rows along an axis.  Complex numbers are pairs along a further last axis.
 * The second result is working memory.  Form 0 is complex to complex, form 1 takes n real numbers
 * to the first n / 2 + 1 complex ones, and form 2 is the way back. */
bool infer_fft(const Node *n, Type *out, Diag *d)
{
    Type x;
    int64_t form, length;
    int axis;
    return get_int(n, "form", &form, d) && get_int(n, "n", &length, d) &&
           get_rank(n, "self", form == 1 ? 1 : 2, MAX_RANK - 1, &x, d) &&
           get_axis(n, "dim", x.rank - (form != 1), &axis, d) &&
           (form != 3 || diag_error(d, n->loc, "has no form 3")) &&
           set_transform(n, out, x, axis, length, form, d);
}

/* Infers a transform with the arguments of aten._fft_r2c: form 1 along one axis, and form 3 along
 * an axis and the last one, of pairs.  A .pte has its result as two tensors, pairs and complex, and a
 * run would resize one of them, so all sizes are known. */
bool infer_fft_r2c(const Node *n, Type *out, Diag *d)
{
    Type x;
    int64_t axis[2] = {0, -1}, norm;
    bool is_both = arg_count(n, "dim") == 2;
    if (!get_rank(n, "self", 1 + is_both, MAX_RANK - 1, &x, d) ||
        !get_ints(n, "dim", 1 + is_both, 0, axis, d) || !get_int(n, "normalization", &norm, d))
        return false;
    if (axis[0] < 0 || axis[0] >= x.rank - is_both || (is_both && axis[1] != x.rank - 1) || norm ||
        !arg_bool(n, "onesided") || !type_is_static(x))
        return diag_error(d, n->loc, "expects an axis, or one and that of pairs, known sizes, no norm "
                                     "and one side");
    return set_transform(n, out, x, (int)axis[0], x.dim[axis[0]].value, is_both ? 3 : 1, d);
}

/* Sums of integers and bools are i64. */
bool infer_cumsum(const Node *n, Type *out, Diag *d)
{
    Type x;
    int axis;
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "dim", x.rank, &axis, d))
        return false;
    return set_tensor(n, out, dtype_or(n, dtype_is_float(x.dtype) ? x.dtype : ETC_I64), x.rank,
                      x.dim, d);
}
