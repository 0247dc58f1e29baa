/* onnx_index.c -- ONNX operators that gather or scatter elements by indices or by their values. */
#include "compiler/import/onnx.h"
#include <string.h>

/* -- indices ----------------------------------------------------------------------------------- */

/* Returns x[.., at, ..], in which `at` stands in the place of an axis. */
static Value *indexed(OnnxNode *n, Value *x, int axis, Value *at)
{
    Value *list[MAX_RANK] = {NULL};
    list[axis] = at;
    return ON_BUILD(n, OP_INDEX_TENSOR, "vV", x, axis + 1, list);
}

bool onnx_gather(OnnxNode *n)
{
    int axis;
    Value *x = on_value(n, 0);
    const OnnxList *l = on_list(n, 1);
    if (!x || !on_axis(n, on_int(n, "axis", 0), x->type.rank, &axis))
        return false;
    if (l && l->rank == 0 && l->dim && !l->dim[0].expr)
        return on_define(n, 0, ON_BUILD(n, OP_SELECT_INT, "vid", x, (int64_t)axis, l->dim[0]));
    Value *at = on_value(n, 1);
    if (!at)
        return false;
    if (axis == 0 && x->state && x->type.rank == 2 && dtype_is_float(x->type.dtype) && !l)
        return on_define(n, 0, ON_BUILD(n, OP_EMBEDDING, "vv", x, at));
    return on_define(n, 0, indexed(n, x, axis, at));
}

/* Returns whether the indices `at` are results of an operator such as nonzero, perhaps sliced or
 * reshaped.  None of these is below 0. */
static bool is_counted(const Value *at)
{
    const Node *m = at->def;
    for (; m && op_info[m->op].flags & VIEW; m = at->def)
        at = m->in[0];
    if (!m)
        return false;
    bool is_second = m->op == OP_TOPK || m->op == OP_SORT || m->op == OP_SORT_STABLE;
    return is_second ? at == m->out[1]
                     : m->op == OP_ARGMAX || m->op == OP_ARGMIN || m->op == OP_ARGSORT || m->op == OP_NONZERO;
}

/* Adds the size to indices below 0, which count from the end. */
static Value *wrapped(OnnxNode *n, Value *at, Dim size)
{
    if (at && is_counted(at))
        return at;
    Value *below = at ? ON_BUILD(n, OP_LT_SCALAR, "vi", at, (int64_t)0) : NULL;
    Arg most = {.kind = ARG_INT, .dim = size};
    Value *shifted = below ? ON_BUILD(n, OP_ADD_SCALAR, "va", at, most) : NULL;
    return shifted ? ON_BUILD(n, OP_WHERE_SELF, "vvv", below, shifted, at) : NULL;
}

static Value *indices(OnnxNode *n, Value *x, int *axis)
{
    Value *at = on_cast(n, on_value(n, 1), ETC_I64);
    return x && at && on_axis(n, on_int(n, "axis", 0), x->type.rank, axis)
               ? wrapped(n, at, x->type.dim[*axis])
               : NULL;
}

bool onnx_gather_elements(OnnxNode *n)
{
    int axis;
    Value *x = on_value(n, 0), *at = indices(n, x, &axis);
    return at && on_define(n, 0, ON_BUILD(n, OP_GATHER, "viv", x, (int64_t)axis, at));
}

/* Returns torch's name for how elements with the same index are combined. */
static const char *meeting(OnnxNode *n)
{
    static const char *const name[][2] = {{"none", ""}, {"add", "sum"}, {"mul", "prod"}, {"max", "amax"},
                                          {"min", "amin"}};
    const char *how = on_text(n, "reduction", "none");
    for (int i = 0; i < 5; i++)
        if (!strcmp(name[i][0], how))
            return name[i][1];
    onnx_wrong(n, "scatters with reduction '%s'", how);
    return NULL;
}

static Value *scattered(OnnxNode *n, Value *x, int axis, Value *at, Value *from, const char *how)
{
    if (!x || !at || !from || !how)
        return NULL;
    if (!*how || !strcmp(how, "sum"))
        return ON_BUILD(n, *how ? OP_SCATTER_ADD : OP_SCATTER_SRC, "vivv", x, (int64_t)axis, at, from);
    return ON_GIVEN(n, OP_SCATTER_REDUCE_TWO, x->type, "vivvs", x, (int64_t)axis, at, from, how);
}

bool onnx_scatter_elements(OnnxNode *n)
{
    int axis = 0;
    Value *x = on_value(n, 0), *at = indices(n, x, &axis);
    return on_define(n, 0, scattered(n, x, axis, at, on_value(n, 2), meeting(n)));
}

/* Makes an index of each column of `at`, whose columns lie along the last axis.  Returns their
 * number; -1: an error was reported. */
static int columns(OnnxNode *n, Value *at, Value *column[MAX_RANK])
{
    Dim last = at->type.rank ? at->type.dim[at->type.rank - 1] : DIM_BAD;
    if (!at->type.rank || last.expr || last.value < 1 || last.value > MAX_RANK) {
        onnx_unsupported(n, "has indices whose length is not known");
        return -1;
    }
    at = on_cast(n, at, ETC_I64);
    for (int i = 0; i < last.value; i++) {
        column[i] = at ? ON_BUILD(n, OP_SELECT_INT, "vii", at, (int64_t)-1, (int64_t)i) : NULL;
        if (!column[i])
            return -1;
    }
    return (int)last.value;
}

/* Makes the columns of indices for the batch axes, along which an index is its own position. */
static bool batch_columns(OnnxNode *n, const Value *at, Value **column, int count)
{
    int rank = at->type.rank - 1;
    for (int i = 0; i < count; i++) {
        column[i] = on_arange(n, DIM(0), at->type.dim[i]);
        for (int k = i + 1; k < rank; k++)
            column[i] = on_insert(n, column[i], column[i] ? column[i]->type.rank : 0);
        if (!column[i])
            return false;
    }
    return true;
}

bool onnx_gather_nd(OnnxNode *n)
{
    Value *column[2 * MAX_RANK], *x = on_value(n, 0), *at = on_value(n, 1);
    int64_t batch = on_int(n, "batch_dims", 0);
    if (!x || !at)
        return false;
    if (batch < 0 || batch >= at->type.rank || batch >= x->type.rank)
        return onnx_wrong(n, "has %lld axes of a batch, which the operands do not have",
                          (long long)batch);
    if (!batch_columns(n, at, column, (int)batch))
        return false;
    int count = columns(n, at, column + batch);
    if (count > x->type.rank - batch)
        return onnx_wrong(n, "has indices of %d axes, more than the operand", count);
    return count > 0 &&
           on_define(n, 0, ON_BUILD(n, OP_INDEX_TENSOR, "vV", x, count + (int)batch, column));
}

/* Combines rows of x with updates. x is taken for [rows, elements], and the indices count rows. */
static Value *joined_rows(OnnxNode *n, Value *x, Value *const *column, int count, Value *from,
                          const char *how)
{
    Program *p = n->in->program;
    Dim rows = DIM(1), each = DIM(1), all = DIM(1);
    Value *at = NULL;
    for (int i = 0; i < x->type.rank; i++) {
        Dim *d = i < count ? &rows : &each;
        *d = dim_mul(p, *d, x->type.dim[i]);
    }
    for (int i = 0; i < count; i++) {
        Arg size = {.kind = ARG_INT, .dim = x->type.dim[i]};
        Value *k = wrapped(n, column[i], x->type.dim[i]);
        at = at ? ON_BUILD(n, OP_MUL_SCALAR, "va", at, size) : NULL;
        at = i ? on_binary(n, OP_ADD_TENSOR, at, k) : k;
    }
    for (int i = 0; at && i < at->type.rank; i++)
        all = dim_mul(p, all, at->type.dim[i]);
    Dim table[2] = {rows, each}, line[2] = {all, DIM(1)}, spread[2] = {all, each};
    at = on_view(n, at, 2, line);
    at = at ? ON_BUILD(n, OP_EXPAND, "vD", at, 2, spread) : NULL;
    Value *y = scattered(n, on_view(n, x, 2, table), 0, at, on_view(n, from, 2, spread), how);
    return on_view(n, y, x->type.rank, x->type.dim);
}

bool onnx_scatter_nd(OnnxNode *n)
{
    Value *column[MAX_RANK], *x = on_value(n, 0), *at = on_value(n, 1), *from = on_value(n, 2);
    const char *how = meeting(n);
    if (!x || !at || !from || !how)
        return false;
    int count = columns(n, at, column);
    if (count > x->type.rank)
        return onnx_wrong(n, "has indices of %d axes, more than the operand", count);
    if (count > 0 && *how && strcmp(how, "sum") != 0)
        return on_define(n, 0, joined_rows(n, x, column, count, from, how));
    return count > 0 && on_define(n, 0, ON_BUILD(n, OP_INDEX_PUT, "vVvb", x, count, column, from,
                                                 (int)(*how != 0)));
}

bool onnx_one_hot(OnnxNode *n)
{
    int axis;
    Dim depth[1], dim[MAX_RANK];
    const OnnxList *l = on_list(n, 1);
    Value *at = on_value(n, 0), *values = on_value(n, 2);
    if (!at || !values || !on_axis(n, on_int(n, "axis", -1), at->type.rank + 1, &axis))
        return false;
    if (!l || l->n != 1 || (l->number && !(l->number[0] >= 0 && l->number[0] < 1e9)))
        return onnx_unsupported(n, "has a depth that is not known");
    depth[0] = l->dim ? l->dim[0] : DIM((int64_t)l->number[0]);
    at = wrapped(n, on_cast(n, at, ETC_I64), depth[0]);
    Value *line = ON_BUILD(n, OP_ARANGE_START_STEP, "idit", (int64_t)0, depth[0], (int64_t)1, ETC_I64);
    if (!at || !line)
        return false;
    for (int i = 0; i <= at->type.rank; i++)
        dim[i] = i == axis ? depth[0] : DIM(1);
    line = on_view(n, line, at->type.rank + 1, dim);
    for (int i = 0; i <= at->type.rank; i++)
        dim[i] = i == axis ? DIM(1) : at->type.dim[i - (i > axis)];
    at = on_view(n, at, at->type.rank + 1, dim);
    Value *is = at && line ? ON_BUILD(n, OP_EQ_TENSOR, "vv", at, line) : NULL;
    Value *off = is ? ON_BUILD(n, OP_SELECT_INT, "vii", values, (int64_t)0, (int64_t)0) : NULL;
    Value *on = off ? ON_BUILD(n, OP_SELECT_INT, "vii", values, (int64_t)0, (int64_t)1) : NULL;
    return on && on_define(n, 0, ON_BUILD(n, OP_WHERE_SELF, "vvv", is, on, off));
}

/* -- gathers along an axis -------------------------------------------------------------------- */

/* Gathers elements of x along an axis by indices that are broadcast over the other axes.  The
 * result has `size` elements along the axis. */
static Value *gathered(OnnxNode *n, Value *x, int axis, Value *at, Dim size)
{
    Dim dim[MAX_RANK];
    for (int i = 0; x && i < x->type.rank; i++)
        dim[i] = i == axis ? size : x->type.dim[i];
    at = x && at ? ON_BUILD(n, OP_EXPAND, "vD", at, x->type.rank, dim) : NULL;
    return at ? ON_BUILD(n, OP_GATHER, "viv", x, (int64_t)axis, at) : NULL;
}

/* Returns a list of numbers as a tensor of `rank` axes, which lie along `axis`; the others have
 * size 1. */
static Value *as_axis(OnnxNode *n, Value *line, int axis, int rank)
{
    Dim dim[MAX_RANK];
    for (int i = 0; line && i < rank; i++)
        dim[i] = i == axis ? line->type.dim[0] : DIM(1);
    return on_view(n, line, rank, dim);
}

/* Reverses the first elements of each sequence, as many as its length. */
bool onnx_reverse_sequence(OnnxNode *n)
{
    int64_t time = on_int(n, "time_axis", 0), batch = on_int(n, "batch_axis", 1);
    Value *x = on_value(n, 0), *length = on_cast(n, on_value(n, 1), ETC_I64);
    if (!x || !length)
        return false;
    int rank = x->type.rank;
    if (time < 0 || batch < 0 || time == batch || time >= rank || batch >= rank ||
        length->type.rank != 1)
        return onnx_wrong(
            n, "expects an axis of time, another of the batch and a length of each sequence");
    Dim size = x->type.dim[time];
    Value *at = as_axis(n, on_arange(n, DIM(0), size), (int)time, rank);
    length = as_axis(n, length, (int)batch, rank);
    Value *back = on_scalar(n, OP_SUB_SCALAR, on_binary(n, OP_SUB_TENSOR, length, at), 1);
    at = on_where(n, on_binary(n, OP_LT_TENSOR, at, length), back, at);
    return on_define(n, 0, gathered(n, x, (int)time, at, size));
}

/* Replaces elements of a cache by an update.  They begin at a place that each item of the batch
 * has. */
bool onnx_tensor_scatter(OnnxNode *n)
{
    int axis;
    Value *x = on_value(n, 0), *from = on_value(n, 1);
    const char *mode = on_text(n, "mode", "linear");
    Value *start = on_has(n, 2) ? on_cast(n, on_value(n, 2), ETC_I64) : NULL;
    if (!x || !from || n->failed || !on_axis(n, on_int(n, "axis", -2), x->type.rank, &axis))
        return false;
    int rank = x->type.rank;
    if (axis == 0 || from->type.rank != rank || (start && start->type.rank != 1))
        return onnx_wrong(
            n, "expects a cache and an update of one rank and a place for each of the batch");
    Dim size = x->type.dim[axis], count = from->type.dim[axis];
    Arg most = {.kind = ARG_INT, .dim = size}, end = {.kind = ARG_INT, .dim = count};
    Value *at = as_axis(n, on_arange(n, DIM(0), size), axis, rank);
    if (start)
        at = on_binary(n, OP_SUB_TENSOR, at, as_axis(n, start, 0, rank));
    if (at && !strcmp(mode, "circular"))
        at = ON_BUILD(n, OP_REMAINDER_SCALAR, "va", at, most);
    else if (strcmp(mode, "linear") != 0)
        return onnx_wrong(n, "has the mode '%s', expected linear or circular", mode);
    Value *is_new = on_binary(n, OP_LOGICAL_AND, on_scalar(n, OP_GE_SCALAR, at, 0),
                              at ? ON_BUILD(n, OP_LT_SCALAR, "va", at, end) : NULL);
    Value *safe = on_where(n, is_new, at, on_number(n, 0, ETC_I64));
    return on_define(n, 0, on_where(n, is_new, gathered(n, from, axis, safe, size), x));
}

/* -- results of data-dependent size ------------------------------------------------------------ */

Dim on_new_size(OnnxNode *n, Dim most, int64_t least)
{
    int64_t lo, hi;
    dim_range(most, &lo, &hi);
    return onnx_symbol(n->in, "count", least, hi);
}

/* Returns the indices of the elements that are not 0, [count, rank]. */
static Value *places_of(OnnxNode *n, Value *x)
{
    if (!x)
        return NULL;
    Dim dim[2] = {on_new_size(n, on_numel(n, x), 0), DIM(x->type.rank)};
    return on_given(n, OP_NONZERO, type_tensor(n->in->program, ETC_I64, 2, dim), x);
}

bool onnx_nonzero(OnnxNode *n)
{
    static const int64_t swap[2] = {1, 0};
    return on_define(n, 0, on_permute(n, places_of(n, on_value(n, 0)), swap));
}

/* Selects the slices whose bool is set. */
bool onnx_compress(OnnxNode *n)
{
    int axis = 0;
    Value *x = on_value(n, 0), *keep = x ? on_value(n, 1) : NULL;
    if (!keep || keep->type.rank != 1)
        return keep && onnx_wrong(n, "has a condition of rank %d, expected 1", keep->type.rank);
    Dim all = on_numel(n, x);
    if (!on_attribute(n, "axis"))
        x = on_view(n, x, 1, &all);
    if (!x || !on_axis(n, on_int(n, "axis", 0), x->type.rank, &axis))
        return false;
    Dim size = x->type.dim[axis], given = keep->type.dim[0];
    if (!size.expr && !given.expr && given.value > size.value)
        return onnx_wrong(n, "has a condition longer than its axis");
    Value *at = places_of(n, keep);
    at = at ? on_view(n, at, 1, at->type.dim) : NULL;
    return at && on_define(n, 0, ON_BUILD(n, OP_INDEX_SELECT, "viv", x, (int64_t)axis, at));
}

/* Returns the first position of each of `count` kinds among `size` elements; `kind` has their
 * kinds. */
static Value *first_places(OnnxNode *n, Value *kind, Dim size, Dim count)
{
    Arg most = {.kind = ARG_INT, .dim = size};
    Value *none = ON_BUILD(n, OP_FULL, "Dat", 1, &count, most, ETC_I64);
    Value *at = on_arange(n, DIM(0), size);
    return none && kind && at ? ON_GIVEN(n, OP_SCATTER_REDUCE_TWO, none->type, "vivvs", none, (int64_t)0,
                                         kind, at, "amin")
                              : NULL;
}

/* Sorts the kinds by their first positions and renumbers them. */
static bool in_order(OnnxNode *n, int axis, Value *out[4])
{
    Type t = out[1]->type;
    Value *order = ON_GIVEN(n, OP_ARGSORT, t, "vib", out[1], (int64_t)0, false);
    Value *place = order ? ON_GIVEN(n, OP_ARGSORT, t, "vib", order, (int64_t)0, false) : NULL;
    if (!place)
        return false;
    for (int i = 0; i < 4; i++)
        out[i] = i == 2 ? ON_BUILD(n, OP_INDEX_SELECT, "viv", place, (int64_t)0, out[2])
                        : ON_BUILD(n, OP_INDEX_SELECT, "viv", out[i], i ? (int64_t)0 : (int64_t)axis, order);
    return !n->failed;
}

bool onnx_unique_elements(OnnxNode *n)
{
    int axis = 0;
    Dim dim[MAX_RANK];
    Type type[3];
    Program *p = n->in->program;
    Value *x = on_value(n, 0), *out[4];
    Dim all = x ? on_numel(n, x) : DIM(0);
    if (x && !on_attribute(n, "axis"))
        x = on_view(n, x, 1, &all);
    if (!x || !on_axis(n, on_int(n, "axis", 0), x->type.rank, &axis))
        return false;
    Dim size = x->type.dim[axis], count = on_new_size(n, size, 1);
    for (int i = 0; i < x->type.rank; i++)
        dim[i] = i == axis ? count : x->type.dim[i];
    type[0] = type_tensor(p, x->type.dtype, x->type.rank, dim);
    type[1] = type_tensor(p, ETC_I64, 1, &size);
    type[2] = type_tensor(p, ETC_I64, 1, &count);
    Node *m = build_given(n->in->graph, NULL, n->loc, OP_UNIQUE_DIM, type, n->in->diag, "vibbb", x,
                          (int64_t)axis, true, true, true);
    if (!m)
        return false;
    out[0] = m->out[0];
    out[2] = m->out[1];
    out[3] = m->out[2];
    out[1] = first_places(n, out[2], size, count);
    if (!out[1] || (!on_int(n, "sorted", 1) && !in_order(n, axis, out)))
        return false;
    for (int i = 0; i < 4; i++)
        if (!on_define(n, i, out[i]))
            return false;
    return true;
}

/* Defines the k largest or smallest elements and their places.  Until opset 9, k is an attribute.
 * Of equal elements the first ones are wanted, which a stable sort finds, but not topk. */
bool onnx_topk(OnnxNode *n)
{
    Dim k[MAX_RANK] = {DIM(on_int(n, "k", 0))};
    int count = 1, axis;
    Value *x = on_value(n, 0);
    if (!x || (n->in->opset >= 10 && !on_dims(n, 1, k, &count)) ||
        !on_axis(n, on_int(n, "axis", -1), x->type.rank, &axis))
        return false;
    if (count != 1)
        return onnx_wrong(n, "has %d numbers as k, expected 1", count);
    int64_t least, most, fewest, highest;
    dim_range(dim_sub(n->in->program, x->type.dim[axis], k[0]), &least, &most);
    dim_range(k[0], &fewest, &highest);
    if (most < 0 || highest < 0)
        return onnx_wrong(n, "wants %s of %s elements", dim_text(n->in->program, k[0]),
                          dim_text(n->in->program, x->type.dim[axis]));
    Node *m = build(n->in->graph, NULL, n->loc, OP_SORT_STABLE, n->in->diag, "vbib", x, 1,
                    (int64_t)axis, (int)on_int(n, "largest", 1));
    /* An index behind the axis ends the run, where a part would be shorter. */
    Value *at = m && least < 0 ? on_arange(n, DIM(0), k[0]) : NULL;
    for (int i = 0; m && i < 2; i++)
        if (!on_define(n, i, at ? indexed(n, m->out[i], axis, at)
                                : on_part(n, m->out[i], axis, DIM(0), k[0], 1)))
            return false;
    return m && (at || least >= 0);
}
