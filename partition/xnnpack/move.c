/* move.c -- XNNPACK nodes for operators that only move elements. */
#include "partition/xnnpack/rows.h"

/* -- moves ----------------------------------------------------------------------------------- */

bool xnn_takes_view(const Node *n, Refusal *r)
{
    return xnn_symbolic_sizes(n->out[0]->type, 0) < 2 ||
           xnn_no(r, "two or more of its sizes are known only at run time; XNNPACK can find one",
                  "export with all sizes but one fixed");
}

void xnn_lower_view(Lower *w, const Node *n)
{
    x_define_reshaped(w, n->out[0], x_use(w, arg_value(n, "self"), AS_IS));
}

void xnn_lower_clone(Lower *w, const Node *n)
{
    for (int l = 0; l < 2; l++)
        if (x_has(w, arg_value(n, "self"), (Layout)l))
            x_define(w, n->out[0], (Layout)l, x_use(w, arg_value(n, "self"), (Layout)l));
    if (arg_value(n, "self")->state)
        x_define(w, n->out[0], AS_IS, x_use(w, arg_value(n, "self"), AS_IS));
}

bool xnn_takes_clone(const Node *n, Refusal *r)
{
    return !value_is_known(arg_value(n, "self")) || xnn_no(r, "it copies a constant", NULL);
}

/* Lowers a permute.  A permute to channels-last or back needs no node if the value exists in that
 * layout. */
void xnn_lower_permute(Lower *w, const Node *n)
{
    int64_t dim[XNN_MAX_RANK];
    int axis[XNN_MAX_RANK], last[XNN_MAX_RANK], rank = arg_value(n, "self")->type.rank;
    arg_ints(n, "dims", dim, XNN_MAX_RANK);
    for (int i = 0; i < rank; i++)
        axis[i] = (int)(dim[i] < 0 ? dim[i] + rank : dim[i]);
    axes_of(rank, CHANNELS_LAST, last);
    bool to_last = rank >= 3, from_last = rank >= 3;
    for (int i = 0; i < rank; i++) {
        to_last = to_last && axis[i] == last[i];
        from_last = from_last && axis[last[i]] == i;
    }
    if (to_last)
        x_define(w, n->out[0], AS_IS, x_use(w, arg_value(n, "self"), CHANNELS_LAST));
    else if (from_last)
        x_define(w, n->out[0], CHANNELS_LAST, x_use(w, arg_value(n, "self"), AS_IS));
    else
        x_define(w, n->out[0], AS_IS, x_transpose(w, x_use(w, arg_value(n, "self"), AS_IS), axis));
}

static int place_of_axis(int rank, int axis, Layout l)
{
    int axes[XNN_MAX_RANK], at = 0;
    axes_of(rank, l, axes);
    while (axes[at] != axis)
        at++;
    return at;
}

void x_concat(Lower *w, const uint32_t *in, int n, int axis, uint32_t out)
{
    static const XnnKind kind[] = {XNN_CONCAT2, XNN_CONCAT3, XNN_CONCAT4, XNN_CONCAT5};
    static const int slot[] = {1, 2, 3, 4, 7};
    XNode *x = x_node(w, kind[n - 2], out);
    x_u32(x, 0, (uint32_t)axis);
    for (int i = 0; i < 5; i++)
        x_id(x, slot[i], i < n ? in[i] : XNN_NONE);
    x_id(x, 5, out);
}

/* Concatenates up to five operands at a time, from the left. */
void xnn_lower_cat(Lower *w, const Node *n)
{
    int count = arg_count(n, "tensors"), rank = n->out[0]->type.rank;
    Layout l = x_layout(w, n);
    int axis = place_of_axis(rank, (int)xnn_axis(n, "dim", rank), l);
    uint32_t part[5] = {x_use(w, arg_list_value(n, "tensors", 0), l)};
    for (int i = 1; i < count;) {
        int k = 1;
        XValue sum = w->x.value[part[0]];
        for (; k < 5 && i < count; k++, i++) {
            part[k] = x_use(w, arg_list_value(n, "tensors", i), l);
            sum.dim[axis] += w->x.value[part[k]].dim[axis];
        }
        uint32_t out = i == count ? x_result(w, n->out[0], l) : x_sized(w, &sum);
        x_concat(w, part, k, axis, out);
        part[0] = out;
    }
}

bool xnn_takes_cat(const Node *n, Refusal *r)
{
    for (int i = 0; i < arg_count(n, "tensors"); i++)
        if (arg_list_value(n, "tensors", i)->type.rank != n->out[0]->type.rank)
            return xnn_no(r, "its operands are of different ranks", "drop empty operands");
    return arg_count(n, "tensors") > 1 || xnn_no(r, "it joins fewer than two tensors", NULL);
}

uint32_t x_slice(Lower *w, uint32_t in, int axis, int64_t from, int64_t n)
{
    XValue v = w->x.value[in];
    uint32_t at[XNN_MAX_RANK] = {0};
    at[axis] = (uint32_t)from;
    v.dim[axis] = (uint32_t)n;
    uint32_t out = x_sized(w, &v);
    XNode *x = x_node(w, XNN_SLICE, out);
    for (int i = 0; i < v.rank; i++)
        v.dim[i] = v.is_symbolic[i] ? 0 : v.dim[i]; /* 0: the size follows from the others */
    x_u32(x, 0, (uint32_t)v.rank);
    x_dims(x, 1, at, v.rank);
    x_dims(x, 2, v.dim, v.rank);
    x_id(x, 3, in);
    x_id(x, 4, out);
    return out;
}

/* Returns whether the axis that is cut has a known size, since the blob has fixed bounds.  If
 * not, *r says why. */
static bool cuts_known_size(const Node *n, Refusal *r)
{
    return !arg_value(n, "self")
                ->type.dim[xnn_axis(n, "dim", arg_value(n, "self")->type.rank)]
                .expr ||
           xnn_no(r, "it cuts an axis whose size is known only at run time",
                  "export with this size fixed");
}

bool xnn_takes_slice(const Node *n, Refusal *r)
{
    int64_t v;
    if (!arg_int(n, "step", &v) || v != 1 ||
        (arg_get(n, "start").kind != ARG_NONE && !arg_int(n, "start", &v)))
        return xnn_no(r, "its step is not 1", "slice without steps");
    if (n->out[0]->type.dim[xnn_axis(n, "dim", arg_value(n, "self")->type.rank)].expr)
        return xnn_no(r, "its bounds are known only at run time", "slice to a size that is fixed");
    return cuts_known_size(n, r);
}

void xnn_lower_slice(Lower *w, const Node *n)
{
    int rank = arg_value(n, "self")->type.rank, axis = (int)xnn_axis(n, "dim", rank);
    int64_t from = 0, size_in = xnn_size(arg_value(n, "self"), axis);
    Layout l = x_layout(w, n);
    arg_int(n, "start", &from);
    from += from < 0 ? size_in : 0;
    from = from < 0 ? 0 : from > size_in ? size_in : from;
    uint32_t in = x_use(w, arg_value(n, "self"), l);
    x_define(w, n->out[0], l,
             x_slice(w, in, place_of_axis(rank, axis, l), from, xnn_size(n->out[0], axis)));
}

bool xnn_takes_roll(const Node *n, Refusal *r)
{
    int64_t by[XNN_MAX_RANK], axis[XNN_MAX_RANK];
    int rank = arg_value(n, "self")->type.rank, count = arg_count(n, "dims");
    if (!arg_ints(n, "shifts", by, XNN_MAX_RANK) || !arg_ints(n, "dims", axis, XNN_MAX_RANK) ||
        count != arg_count(n, "shifts"))
        return xnn_no(r, "its shifts are not known", "use shifts that are constants of the model");
    for (int i = 0; i < count; i++)
        if (arg_value(n, "self")->type.dim[axis[i] < 0 ? axis[i] + rank : axis[i]].expr)
            return xnn_no(r, "it moves along an axis whose size is known only at run time",
                          "export with this size fixed");
    return true;
}

/* Rolls `in` along an axis: the last `by` elements come first. */
static uint32_t rolled(Lower *w, uint32_t in, int axis, int64_t by)
{
    int64_t size = w->x.value[in].dim[axis];
    by = (by % size + size) % size;
    if (!by)
        return in;
    uint32_t part[2] = {x_slice(w, in, axis, size - by, by), x_slice(w, in, axis, 0, size - by)};
    uint32_t out = x_like(w, in);
    x_concat(w, part, 2, axis, out);
    return out;
}

void xnn_lower_roll(Lower *w, const Node *n)
{
    int64_t by[XNN_MAX_RANK], axis[XNN_MAX_RANK];
    int rank = arg_value(n, "self")->type.rank;
    Layout l = x_layout(w, n);
    uint32_t x = x_use(w, arg_value(n, "self"), l);
    arg_ints(n, "shifts", by, XNN_MAX_RANK);
    arg_ints(n, "dims", axis, XNN_MAX_RANK);
    for (int i = 0; i < arg_count(n, "shifts"); i++)
        x = rolled(w, x, place_of_axis(rank, (int)(axis[i] < 0 ? axis[i] + rank : axis[i]), l),
                   by[i]);
    x_define(w, n->out[0], l, x);
}

bool xnn_takes_select(const Node *n, Refusal *r)
{
    int64_t v;
    if (!arg_int(n, "index", &v))
        return xnn_no(r, "its index is not known", "use an index that is a constant of the model");
    return cuts_known_size(n, r);
}

void xnn_lower_select(Lower *w, const Node *n)
{
    int rank = arg_value(n, "self")->type.rank, axis = (int)xnn_axis(n, "dim", rank);
    int64_t at = xnn_axis(n, "index", (int)xnn_size(arg_value(n, "self"), axis));
    x_define_reshaped(w, n->out[0], x_slice(w, x_use(w, arg_value(n, "self"), AS_IS), axis, at, 1));
}

bool xnn_takes_expand(const Node *n, Refusal *r)
{
    const Type in = arg_value(n, "self")->type, out = n->out[0]->type;
    for (int i = 0; i < out.rank; i++) {
        int from = i - (out.rank - in.rank);
        bool repeats = from < 0 || !dim_equal(in.dim[from], out.dim[i]);
        if (repeats && out.dim[i].expr)
            return xnn_no(r, "its number of repeats is known only at run time",
                          "export with this size fixed");
    }
    return xnn_takes_clone(n, r);
}

/* Repeats x along axes.  XNNPACK's products broadcast, and x * 1 is x.  Axes are repeated one
 * after the other, from the last one on, so that the constants of ones are small. */
uint32_t x_repeated(Lower *w, uint32_t in, const XValue *to, const uint32_t *times)
{
    XValue v = *to;
    for (int i = 0; i < v.rank; i++)
        v.dim[i] = times[i] > 1 ? 1 : v.dim[i];
    for (int i = v.rank - 1; i >= 0; i--) {
        uint32_t dim[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1};
        if (times[i] == 1)
            continue;
        v.dim[i] = to->dim[i];
        dim[i] = times[i];
        uint32_t out = x_sized(w, &v);
        in = x_binary(w, XNN_MULTIPLY, in, x_filled(w, 1, v.rank, dim), out);
    }
    return in;
}

void xnn_lower_expand(Lower *w, const Node *n)
{
    const Type from = arg_value(n, "self")->type, to = n->out[0]->type;
    Layout l = from.rank == to.rank ? x_layout(w, n) : AS_IS;
    uint32_t in = x_use(w, arg_value(n, "self"), l), times[XNN_MAX_RANK];
    XValue sizes = x_sizes(to, l);
    int lead = to.rank - from.rank, more = 0, axis[XNN_MAX_RANK];
    axes_of(to.rank, l, axis);
    for (int i = 0; i < to.rank; i++) {
        bool is_same = axis[i] >= lead && dim_equal(from.dim[axis[i] - lead], to.dim[axis[i]]);
        times[i] = is_same ? 1 : sizes.dim[i];
        more += times[i] != 1;
    }
    if (more)
        x_define(w, n->out[0], l, x_repeated(w, in, &sizes, times));
    else
        x_define(w, n->out[0], l, x_reshape(w, in, &sizes));
}

uint32_t x_padded(Lower *w, uint32_t in, const uint32_t *before, const uint32_t *after, double with)
{
    XValue v = w->x.value[in];
    for (int i = 0; i < v.rank; i++)
        v.dim[i] += before[i] + after[i];
    uint32_t out = x_sized(w, &v);
    XNode *x = x_node(w, XNN_PAD, out);
    x_dims(x, 0, before, v.rank);
    x_dims(x, 1, after, v.rank);
    x_f32(x, 2, with);
    x_id(x, 3, in);
    x_id(x, 4, out);
    return out;
}

bool xnn_takes_pad(const Node *n, Refusal *r)
{
    int64_t v[2 * XNN_MAX_RANK];
    if (!arg_ints(n, "pad", v, 2 * XNN_MAX_RANK))
        return xnn_no(r, "its padding is not known", "use a padding of plain integers");
    for (int i = 0; i < arg_count(n, "pad"); i++)
        if (v[i] < 0)
            return xnn_no(r, "its padding is negative", "slice instead");
    return true;
}

void xnn_lower_pad(Lower *w, const Node *n)
{
    int64_t v[2 * XNN_MAX_RANK];
    double with = 0;
    int rank = arg_value(n, "self")->type.rank;
    uint32_t before[XNN_MAX_RANK] = {0}, after[XNN_MAX_RANK] = {0};
    Layout l = x_layout(w, n);
    arg_ints(n, "pad", v, 2 * XNN_MAX_RANK);
    arg_number(n, "value", &with);
    for (int i = 0; i < arg_count(n, "pad") / 2; i++) {
        int at = place_of_axis(rank, rank - 1 - i, l);
        before[at] = (uint32_t)v[2 * i];
        after[at] = (uint32_t)v[2 * i + 1];
    }
    x_define(w, n->out[0], l, x_padded(w, x_use(w, arg_value(n, "self"), l), before, after, with));
}

