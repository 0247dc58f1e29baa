/* access.c -- how an operator moves data: which elements of its operands an element of its result
 * depends on.  The column `access` of ops.def names the way for each operator; passes that cut,
 * order or move nodes call these functions. */
#include "ir/views.h"
#include <string.h>

Access node_access(const Node *n)
{
    return node_row(n)->access;
}

bool node_moves(const Node *n)
{
    Access a = node_access(n);
    if (a == ACCESS_BITS)
        return false;
    return op_info[n->op].flags & VIEW || a == ACCESS_VIEW || a == ACCESS_PERMUTE ||
           a == ACCESS_PART || a == ACCESS_JOIN || a == ACCESS_MOVE || node_is_copy(n);
}

bool node_is_view(const Node *n)
{
    return node_access(n) == ACCESS_VIEW;
}

bool node_keeps_bytes(const Node *n)
{
    return node_is_view(n) || node_access(n) == ACCESS_BITS;
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

/* Returns the axis of `to` that has the elements of `axis` of `from`; -1: there is none.  Both
 * types describe the same bytes. */
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

/* Returns whether x begins with the axes of y that are cut: their sizes are equal. */
static bool has_leading_axes(const Value *x, const Value *y, RowSplit s)
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

/* Returns whether all axes that the node names come after those that are cut. */
static bool names_later_axes(const Node *n, RowSplit s)
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

static bool permutes_later_axes(const Node *n, RowSplit s)
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
        return cut_if(has_leading_axes(x, y, s) && s.axes < x->type.rank);
    return i == w.bias_slot && w.w_axis ? pointwise_rows(x, y, s) : ROWS_WHOLE;
}

/* Rows are either images, or channels of the result; in the second case the weights are cut too. */
static RowAccess convolution_rows(const Node *n, const Weighted *w, int i, RowSplit s)
{
    const Value *x = w->x, *y = n->out[0];
    if (w->w_axis || s.axes > 2)
        return ROWS_NONE;
    if (s.axes == 1)
        return i ? ROWS_WHOLE : cut_if(has_leading_axes(x, y, s));
    if (s.lead != 1)
        return ROWS_NONE;
    if (i)
        return cut_if(!n->in[i]->type.stride);
    return w->groups == 1 ? ROWS_WHOLE
                          : cut_if(w->groups == y->type.dim[1].value && has_leading_axes(x, y, s));
}

static RowAccess window_rows(const Node *n, int i, RowSplit s)
{
    Weighted w;
    Pool pool;
    if (weighted_read(n, &w))
        return convolution_rows(n, &w, i, s);
    return cut_if(pool_read(n, &pool) && has_leading_axes(n->in[i], n->out[0], s) &&
                  s.axes == s.lead + 1 && s.axes + 2 == n->in[i]->type.rank);
}

static RowAccess norm_rows(const Node *n, int i, RowSplit s)
{
    Norm norm;
    if (!norm_read(n, &norm) || norm.kind != NORM_LAYER)
        return ROWS_NONE;
    return i ? ROWS_WHOLE
             : cut_if(has_leading_axes(norm.x, n->out[0], s) &&
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
        return cut_if(has_leading_axes(x, y, s) && names_later_axes(n, s));
    case ACCESS_PERMUTE:
        return cut_if(has_leading_axes(x, y, s) && permutes_later_axes(n, s));
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

/* -- ranges along any axis --------------------------------------------------------------------- */

static bool has_one(const Value *v)
{
    bool yes = true;
    for (int i = 0; i < v->type.rank; i++)
        yes = yes && dim_equal(v->type.dim[i], DIM(1));
    return yes;
}

/* Returns the axis of x, which is broadcast to y, for `axis` of y. */
static int pointwise_range(const Value *x, const Value *y, int axis)
{
    const int k = axis - (y->type.rank - x->type.rank);
    return k < 0 || dim_equal(x->type.dim[k], DIM(1)) ? AXIS_WHOLE : k;
}

static int moved_range(const Node *n, int axis)
{
    for (int k = 0; k < first_operand(n)->type.rank; k++)
        if (access_axis(n, k) == axis)
            return k;
    return AXIS_NONE;
}

static int joined_range(const Node *n, const Value *x, int axis)
{
    Concat c;
    bool ok = concat_read(n, &c) && c.axis != axis && x->type.rank == n->out[0]->type.rank;
    return ok ? axis : AXIS_NONE;
}

/* A softmax keeps all axes; a reduction leaves some out. */
static int along_range(const Node *n, int axis)
{
    Reduce r;
    int64_t dim;
    const int rank = n->out[0]->type.rank;
    if (n->op == OP__SOFTMAX || n->op == OP__LOG_SOFTMAX)
        return arg_int(n, "dim", &dim) && dim + (dim < 0 ? rank : 0) != axis ? axis : AXIS_NONE;
    if (!reduce_read(n, &r))
        return AXIS_NONE;
    for (int i = 0, k = 0; i < r.x->type.rank; i++) {
        bool goes = r.axes >> i & 1;
        if (k == axis && !goes)
            return i;
        k += !goes || r.keeps;
    }
    return AXIS_NONE;
}

/* The operands are x, the weight, and others such as a bias.  Of these, a constant has a number for
 * each column, and any other value has a number for each row. */
static int product_range(const Node *n, const Value *v, int axis)
{
    Product p;
    const Value *y = n->out[0];
    const Value *x = product_read(n, &p) ? p.x : arg_value(n, "input");
    const bool is_column = axis == y->type.rank - 1;
    if ((is_column && !p.x) || x == p.w)
        return AXIS_NONE;
    if (v == x)
        return is_column ? AXIS_WHOLE : axis;
    if (p.x && v == p.w)
        return is_column ? (p.is_rows ? 0 : v->type.rank - 1) : p.is_batch && !axis ? 0 : AXIS_WHOLE;
    return v->state && !is_column ? AXIS_WHOLE : pointwise_range(v, y, axis);
}

/* Axis 0 counts images, axis 1 channels, axis 2 the rows of an image.  An output channel needs all
 * input channels, or those of its group. */
static int convolution_range(const Conv *c, const Value *v, const Value *y, int axis)
{
    if (axis == 0 && c->x != c->w)
        return v == c->x ? 0 : AXIS_WHOLE;
    if (c->is_transposed || c->x == c->w || axis > 2 || (axis == 2 && y->type.rank != 4))
        return AXIS_NONE;
    if (axis == 2)
        return v == c->x ? AXIS_AROUND : AXIS_WHOLE;
    if (v == c->x && c->groups == 1)
        return AXIS_WHOLE;
    if (c->groups > 1 && !dim_equal(y->type.dim[1], DIM(c->groups)))
        return AXIS_NONE;
    if (v == c->x)
        return dim_equal(v->type.dim[1], DIM(c->groups)) ? 1 : AXIS_NONE;
    return has_one(v) ? AXIS_WHOLE : 0;
}

static int window_range(const Node *n, const Value *v, int axis)
{
    Conv c;
    Pool p;
    if (conv_read(n, &c))
        return convolution_range(&c, v, n->out[0], axis);
    return pool_read(n, &p) && axis < n->out[0]->type.rank - p.axes ? axis : AXIS_NONE;
}

static int norm_range(const Node *n, const Value *v, int axis)
{
    Norm norm;
    if (!norm_read(n, &norm) || norm.kind == NORM_BATCH)
        return AXIS_NONE;
    bool is_row = norm.kind == NORM_GROUP ? axis == 0 : axis < norm.x->type.rank - norm.axes;
    return !is_row ? AXIS_NONE : v == norm.x ? axis : AXIS_WHOLE;
}

/* The axis counts heads, or queries.  Queries cannot be cut if the mask is causal, because a cut
 * changes their numbers. */
static int attention_range(const Node *n, const Value *v, int axis)
{
    Attention a;
    const Value *y = n->out[0];
    const int query = y->type.rank - 2;
    if (!attention_read(n, &a) || axis > query)
        return AXIS_NONE;
    if (axis == query && (a.is_causal || a.q == a.k || a.q == a.v))
        return AXIS_NONE;
    return axis == query && (v == a.k || v == a.v) ? AXIS_WHOLE : pointwise_range(v, y, axis);
}

static int range_of(const Node *n, const Value *v, int axis)
{
    switch (node_access(n)) {
    case ACCESS_POINTWISE:
        return node_is_pointwise(n) ? pointwise_range(v, n->out[0], axis) : AXIS_NONE;
    case ACCESS_VIEW: case ACCESS_PERMUTE: case ACCESS_PART: case ACCESS_MOVE:
        return moved_range(n, axis);
    case ACCESS_JOIN:
        return joined_range(n, v, axis);
    case ACCESS_ALONG:
        return along_range(n, axis);
    case ACCESS_PRODUCT:
        return product_range(n, v, axis);
    case ACCESS_WINDOW:
        return window_range(n, v, axis);
    case ACCESS_NORM:
        return norm_range(n, v, axis);
    default:
        return attention_range(n, v, axis);
    }
}

int access_range(const Node *n, int i, int axis)
{
    assert(i < n->n_in && axis >= 0 && axis < n->out[0]->type.rank);
    const Value *v = n->in[i];
    const int k = v->type.rank == SCALAR ? AXIS_NONE : range_of(n, v, axis);
    if (k < 0)
        return k;
    bool is_same = k < v->type.rank && dim_equal(v->type.dim[k], n->out[0]->type.dim[axis]);
    return is_same ? k : AXIS_NONE;
}
