/* decompose_index.c -- pieces, repeats, writes into parts, indices along one axis, fills. */
#include "passes/decompose.h"
#include <string.h>

static Value *first(const Node *n)
{
    return n ? n->out[0] : NULL;
}

static int64_t wrapped(int64_t axis, int rank)
{
    return axis < 0 ? axis + rank : axis;
}

static bool get_axis(Rewrite *r, const Node *n, int i, int rank, int64_t *axis)
{
    if (!arg_int(n, i, axis))
        return diag_error(r->d, n->loc, "its axis is not a plain integer");
    *axis = wrapped(*axis, rank);
    return true;
}

/* -- pieces and joins ---------------------------------------------------------------------- */

bool decomp_split(Rewrite *r, Node *n)
{
    return rewrite_pieces(r, n);
}

/* The tensors with an axis of 1 more, joined. */
bool decomp_stack(Rewrite *r, Node *n)
{
    int count = arg_count(n, 0);
    int64_t axis;
    Value **part = NEW(r->tmp, Value *, count);
    if (!get_axis(r, n, 1, n->out[0]->type.rank, &axis))
        return false;
    for (int i = 0; i < count; i++) {
        Value *x = arg_list_value(n, 0, i);
        if (!(part[i] = first(build(r->g, n, n->loc, OP_UNSQUEEZE, r->d, "vi", x, axis))))
            return false;
    }
    return done(r, n, build(r->g, n, n->loc, OP_CAT, r->d, "Vi", count, part, axis));
}

bool decomp_concat(Rewrite *r, Node *n)
{
    return done(r, n, build(r->g, n, n->loc, OP_CAT, r->d, "Va", n->n_in, n->in, n->arg[1]));
}

static Value *slice(Rewrite *r, Node *n, Value *x, int64_t axis, Dim from, Dim to)
{
    return first(build(r->g, n, n->loc, OP_SLICE, r->d, "viddi", x, axis, from, to, (int64_t)1));
}

/* x with [start, end) of an axis replaced by src. */
static bool replace_range(Rewrite *r, Node *n, Value *src, int64_t axis, Dim start, Dim end)
{
    Value *x = n->in[0], *part[3];
    Dim size = x->type.dim[axis];
    int count = 0;
    if (!dim_equal(start, DIM(0)) && !(part[count++] = slice(r, n, x, axis, DIM(0), start)))
        return false;
    part[count++] = src;
    if (!dim_equal(end, size) && !(part[count++] = slice(r, n, x, axis, end, size)))
        return false;
    if (count == 1)
        return rewrite_node(r, n, src);
    return done(r, n, build(r->g, n, n->loc, OP_CAT, r->d, "Vi", count, part, axis));
}

/* A bound counted from the end where negative, moved into 0
 * .. size; false where its sign is open. */
static bool get_bound(const Node *n, int i, Dim size, Dim otherwise, Dim *v)
{
    Program *p = n->graph->program;
    int64_t lo, hi;
    *v = otherwise;
    if (n->arg[i].kind == ARG_NONE)
        return true;
    if (!arg_dim(n, i, v))
        return false;
    dim_range(*v, &lo, &hi);
    if (lo < 0 && hi >= 0)
        return false;
    *v = lo == INT64_MAX ? size
         : lo < 0        ? dim_max(p, dim_add(p, size, *v), DIM(0))
                         : dim_min(p, *v, size);
    return true;
}

bool decomp_slice_scatter(Rewrite *r, Node *n)
{
    int64_t axis, step;
    Dim start, end;
    Value *x = n->in[0], *src = n->in[1];
    if (!get_axis(r, n, 2, x->type.rank, &axis))
        return false;
    Dim size = x->type.dim[axis];
    if (!arg_int(n, 5, &step) || step != 1 || !get_bound(n, 3, size, DIM(0), &start) ||
        !get_bound(n, 4, size, size, &end))
        return diag_unsupported(r->d, n->loc, "its step is not 1, or its bounds may be of either "
                                              "sign");
    return replace_range(r, n, src, axis, start, end);
}

bool decomp_select_scatter(Rewrite *r, Node *n)
{
    int64_t axis;
    Dim at;
    Value *x = n->in[0];
    if (!get_axis(r, n, 2, x->type.rank, &axis))
        return false;
    if (!get_bound(n, 3, x->type.dim[axis], DIM(0), &at))
        return diag_unsupported(r->d, n->loc, "its index may be of either sign");
    Value *src = first(build(r->g, n, n->loc, OP_UNSQUEEZE, r->d, "vi", n->in[1], axis));
    return src && replace_range(r, n, src, axis, at, dim_add(r->g->program, at, DIM(1)));
}

/* -- repeats ------------------------------------------------------------------------------- */

/* x of sizes [.., d, ..] as [.., r, d, ..] where `before`, else [.., d, r, ..], then as recorded;
 * by[i] is r, none where 1. */
static bool repeat(Rewrite *r, Node *n, Value *x, const Dim *by, bool before)
{
    Dim from[2 * MAX_RANK], to[2 * MAX_RANK];
    Type t = x->type, y = n->out[0]->type;
    int rank = 0, lead = y.rank - t.rank;
    for (int i = 0; i < y.rank; i++) {
        Dim size = i < lead ? DIM(1) : t.dim[i - lead];
        bool repeats = !dim_equal(by[i], DIM(1));
        for (int k = 0; k < 2; k++) {
            bool is_new = before ? !k : k;
            if (is_new && !repeats)
                continue;
            from[rank] = is_new ? DIM(1) : size;
            to[rank++] = is_new ? by[i] : size;
        }
    }
    if (rank > MAX_RANK)
        return diag_unsupported(r->d, n->loc, "repeats too many axes");
    x = build_view(r, n, x, from, rank);
    x = x ? first(build(r->g, n, n->loc, OP_EXPAND, r->d, "vD", x, rank, to)) : NULL;
    x = x ? build_view(r, n, x, y.dim, y.rank) : NULL;
    return x && rewrite_node(r, n, x);
}

bool decomp_repeat(Rewrite *r, Node *n)
{
    Dim by[MAX_RANK];
    if (!arg_dims(n, 1, by, MAX_RANK))
        return diag_unsupported(r->d, n->loc, "its repeats are not known before the call");
    return repeat(r, n, n->in[0], by, true);
}

bool decomp_repeat_interleave(Rewrite *r, Node *n)
{
    Dim by[MAX_RANK], flat;
    int64_t axis = 0;
    Value *x = n->in[0];
    if (n->arg[2].kind == ARG_NONE) {
        flat = dims_numel(r->g->program, x->type);
        x = build_view(r, n, x, &flat, 1);
    } else if (!get_axis(r, n, 2, x->type.rank, &axis)) {
        return false;
    }
    for (int i = 0; x && i < x->type.rank; i++)
        by[i] = DIM(1);
    if (x && !arg_dim(n, 1, &by[axis]))
        return diag_unsupported(r->d, n->loc, "its repeats are not known before the call");
    return x && repeat(r, n, x, by, false);
}

/* -- indices along one axis ---------------------------------------------------------------- */

/* An index of rank 0 as one of one element. */
static Value *as_vector(Rewrite *r, Node *n, Value *index)
{
    Dim one = DIM(1);
    return index->type.rank ? index : build_view(r, n, index, &one, 1);
}

bool decomp_index_select(Rewrite *r, Node *n)
{
    int64_t axis;
    Value *x = n->in[0], *index = as_vector(r, n, n->in[1]);
    if (!x->type.rank)
        return rewrite_node(r, n, x);
    return index && get_axis(r, n, 1, x->type.rank, &axis) &&
           done(r, n, build_index(r, n, x, axis, index, NULL));
}

/* index_copy(self, dim, index, source) */
bool decomp_index_copy(Rewrite *r, Node *n)
{
    int64_t axis;
    Value *x = n->in[0], *index = as_vector(r, n, n->in[1]);
    if (!x->type.rank)
        return rewrite_node(r, n, n->in[2]);
    return index && get_axis(r, n, 1, x->type.rank, &axis) &&
           done(r, n, build_index(r, n, x, axis, index, n->in[2]));
}

/* -- fills --------------------------------------------------------------------------------- */

/* zeros, ones, full in their many forms: sizes and dtype are recorded */
bool decomp_filled(Rewrite *r, Node *n)
{
    Type t = n->out[0]->type;
    bool is_one = n->op == OP_ONES || n->op == OP_NEW_ONES || n->op == OP_ONES_LIKE;
    Arg value = {.kind = ARG_INT, .dim = DIM(is_one)};
    if (n->op == OP_NEW_FULL)
        value = n->arg[2];
    if (n->op == OP_FILL_SCALAR)
        value = n->arg[1];
    if (n->op == OP_SCALAR_TENSOR)
        value = n->arg[0];
    if (value.kind == ARG_VALUE)
        return diag_unsupported(r->d, n->loc, "fills with a value that is not a constant");
    return done(r, n, build(r->g, n, n->loc, OP_FULL, r->d, "Dat", t.rank, t.dim, value, t.dtype));
}
