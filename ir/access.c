/* access.c -- how an operator moves data: which elements of its operands an element of its result
 * depends on.  Column `access` of ops.def; passes that cut, order or move nodes ask here. */
#include "ir/views.h"
#include <string.h>

Access node_access(const Node *n)
{
    return node_row(n)->access;
}

bool node_moves(const Node *n)
{
    Access a = node_access(n);
    return op_info[n->op].flags & VIEW || a == ACCESS_VIEW || a == ACCESS_PERMUTE ||
           a == ACCESS_PART || a == ACCESS_JOIN || a == ACCESS_MOVE || node_is_copy(n);
}

bool node_is_view(const Node *n)
{
    return node_access(n) == ACCESS_VIEW;
}

bool node_is_copy(const Node *n)
{
    return n->op == OP_CLONE || n->op == OP_ALIAS;
}

bool node_scales_bytes(const Node *n)
{
    int64_t zero;
    bool undoes = n->op == OP_DEQUANTIZE_PER_TENSOR;
    if ((!undoes && n->op != OP_QUANTIZE_PER_TENSOR) || !arg_int(n, "zero_point", &zero))
        return false;
    EtcDtype real = (undoes ? n->out : n->in)[0]->type.dtype;
    EtcDtype whole = (undoes ? n->in : n->out)[0]->type.dtype;
    return real == ETC_F32 && (whole == ETC_I8 || whole == ETC_U8) && zero >= -128 && zero <= 255;
}

bool node_is_expression(const Node *n)
{
    return strcmp(op_expr(n->op), "none") != 0;
}

bool node_is_pointwise(const Node *n)
{
    return node_is_expression(n) || node_scales_bytes(n);
}

/* -- axes -------------------------------------------------------------------------------------- */

bool access_names_axes(const Node *n)
{
    Access a = node_access(n);
    return a == ACCESS_ALONG || a == ACCESS_PART || a == ACCESS_JOIN;
}

int access_axes(const Node *n)
{
    Permute p;
    return access_names_axes(n)  ? arg_of(n, "dim")
           : permute_read(n, &p) ? arg_of(n, "dims")
                                 : -1;
}

/* Returns the axis of `to` that has the elements of `axis`, both types being of the same bytes, or
 * -1. */
static int axis_of_view(Program *p, Type from, int axis, Type to)
{
    Dim inner = DIM(1), seen = DIM(1);
    for (int i = axis + 1; i < from.rank; i++)
        inner = dim_mul(p, inner, from.dim[i]);
    for (int i = to.rank - 1; i >= 0; i--) {
        if (dim_equal(seen, inner) && dim_equal(to.dim[i], from.dim[axis]))
            return i;
        seen = dim_mul(p, seen, to.dim[i]);
    }
    return -1;
}

static int axis_of_permute(const Permute *p, int axis)
{
    for (int i = 0; i < p->rank; i++)
        if (p->axis[i] == axis)
            return i;
    return -1;
}

static int axis_of_roll(const Node *n, int axis)
{
    int64_t along[MAX_RANK];
    int count = arg_count(n, "dims"), rank = n->out[0]->type.rank;
    if (!count || !arg_ints(n, "dims", along, MAX_RANK))
        return -1;
    for (int i = 0; i < count; i++)
        if ((along[i] < 0 ? along[i] + rank : along[i]) == axis)
            return -1;
    return axis;
}

static int axis_of_part(const Node *n, int axis)
{
    int64_t along, rank = arg_value(n, "self")->type.rank;
    if (!arg_int(n, "dim", &along))
        return -1;
    along += along < 0 ? rank : 0;
    if (along == axis)
        return -1;
    return n->out[0]->type.rank < rank ? axis - (along < axis) : axis;
}

int access_axis(const Node *n, int axis)
{
    Permute p;
    switch (node_access(n)) {
    case ACCESS_VIEW:
        return axis_of_view(n->graph->program, first_operand(n)->type, axis, n->out[0]->type);
    case ACCESS_PERMUTE:
        return permute_read(n, &p) ? axis_of_permute(&p, axis) : -1;
    case ACCESS_PART:
        return axis_of_part(n, axis);
    case ACCESS_MOVE:
        return n->op == OP_ROLL ? axis_of_roll(n, axis) : -1;
    default:
        return node_is_copy(n) ? axis : -1;
    }
}

int64_t access_window(int64_t rows, int64_t kernel, int64_t stride, int64_t dilation)
{
    return (rows - 1) * stride + (kernel - 1) * dilation + 1;
}

/* -- rows -------------------------------------------------------------------------------------- */

bool rows_split(Type t, int64_t rows, RowSplit *s)
{
    int64_t product = 1;
    assert(rows > 0);
    *s = (RowSplit){0, 0, 0};
    if (t.rank < 1 || t.is_none || t.stride || !type_is_static(t) || !type_numel(t))
        return false;
    for (int i = 0; i < t.rank; i++) {
        s->lead = product == 1 ? i : 0;
        if (!mul_ok(product, t.dim[i].value, &product) || product % rows)
            continue;
        *s = (RowSplit){i + 1, s->lead, product / rows};
        return true;
    }
    return false;
}

static RowAccess cut_if(bool yes)
{
    return yes ? ROWS_CUT : ROWS_NONE;
}

/* The first sizes of x are those of y. */
static bool starts_alike(const Value *x, const Value *y, RowSplit s)
{
    return !x->type.stride && type_is_static(x->type) && x->type.rank >= s.axes &&
           dims_equal(x->type.dim, y->type.dim, s.axes);
}

static RowAccess pointwise_rows(const Value *x, const Value *y, RowSplit s)
{
    int missing = y->type.rank - x->type.rank;
    bool is_cut = !x->type.stride, is_whole = true;
    if (missing < 0 || !type_is_static(x->type))
        return ROWS_NONE;
    for (int i = 0; i < s.axes; i++) {
        Dim d = i < missing ? DIM(1) : x->type.dim[i - missing];
        is_cut = is_cut && dim_equal(d, y->type.dim[i]);
        is_whole = is_whole && dim_equal(d, DIM(1));
    }
    return is_whole ? ROWS_WHOLE : cut_if(is_cut && missing < s.axes);
}

/* Returns whether all axes that the node names come after the first ones, which are cut. */
static bool axes_behind(const Node *n, RowSplit s)
{
    int64_t axis[MAX_RANK] = {0};
    int arg = access_axes(n);
    bool is_list = n->arg[arg].kind == ARG_LIST;
    int count = is_list ? arg_count(n, arg) : 1, rank = first_operand(n)->type.rank;
    if (!count || !(is_list ? arg_ints(n, arg, axis, MAX_RANK) : arg_int(n, arg, axis)))
        return false;
    for (int i = 0; i < count; i++)
        if (axis[i] + (axis[i] < 0 ? rank : 0) < s.axes)
            return false;
    return true;
}

static bool permutes_behind(const Node *n, RowSplit s)
{
    Permute p;
    bool ok = permute_read(n, &p);
    for (int i = 0; ok && i < s.axes; i++)
        ok = p.axis[i] == i;
    return ok;
}

static RowAccess product_rows(const Node *n, int i, RowSplit s)
{
    const Value *x = n->in[i], *y = n->out[0];
    Weighted w;
    if (!weighted_read(n, &w))
        return cut_if(n->op == OP_BMM && s.axes == 1);
    if (i == w.x_slot)
        return cut_if(starts_alike(x, y, s) && s.axes < x->type.rank);
    return i == w.bias_slot && w.w_axis ? pointwise_rows(x, y, s) : ROWS_WHOLE;
}

/* Images are cut up, or the channels of a result and with them the weights. */
static RowAccess convolution_rows(const Node *n, const Weighted *w, int i, RowSplit s)
{
    const Value *x = w->x, *y = n->out[0];
    if (w->w_axis || s.axes > 2)
        return ROWS_NONE;
    if (s.axes == 1)
        return i ? ROWS_WHOLE : cut_if(starts_alike(x, y, s));
    if (s.lead != 1)
        return ROWS_NONE;
    if (i)
        return cut_if(!n->in[i]->type.stride);
    return w->groups == 1 ? ROWS_WHOLE
                          : cut_if(w->groups == y->type.dim[1].value && starts_alike(x, y, s));
}

static RowAccess window_rows(const Node *n, int i, RowSplit s)
{
    Weighted w;
    Pool pool;
    if (weighted_read(n, &w))
        return convolution_rows(n, &w, i, s);
    return cut_if(pool_read(n, &pool) && starts_alike(n->in[i], n->out[0], s) &&
                  s.axes == s.lead + 1 && s.axes + 2 == n->in[i]->type.rank);
}

static RowAccess norm_rows(const Node *n, int i, RowSplit s)
{
    Norm norm;
    if (!norm_read(n, &norm) || norm.kind != NORM_LAYER)
        return ROWS_NONE;
    return i ? ROWS_WHOLE
             : cut_if(starts_alike(norm.x, n->out[0], s) &&
                      s.axes + norm.axes <= norm.x->type.rank);
}

RowAccess access_rows(const Node *n, int i, RowSplit s)
{
    const Value *x = n->in[i], *y = n->out[0];
    switch (node_access(n)) {
    case ACCESS_VIEW:
        return ROWS_CUT;
    case ACCESS_POINTWISE:
        return pointwise_rows(x, y, s);
    case ACCESS_ALONG: case ACCESS_PART: case ACCESS_JOIN:
        return cut_if(starts_alike(x, y, s) && axes_behind(n, s));
    case ACCESS_PERMUTE:
        return cut_if(starts_alike(x, y, s) && permutes_behind(n, s));
    case ACCESS_PRODUCT:
        return product_rows(n, i, s);
    case ACCESS_WINDOW:
        return window_rows(n, i, s);
    case ACCESS_NORM:
        return norm_rows(n, i, s);
    default:
        return ROWS_NONE;
    }
}
