/* product.c -- XNNPACK nodes of matrix products, and of sums along rows, which are products with a
 * row of equal numbers: means, layer norm. */
#include "partition/xnnpack/rows.h"
#include <math.h>
#include <string.h>

/* -- products -------------------------------------------------------------------------------- */

bool xnn_takes_linear(const Node *n, Refusal *r)
{
    Weighted v;
    if (!weighted_read(n, &v) || !xnn_is_weight(v.w))
        return xnn_no(r, "its weight is not a constant",
                      "make the weight a parameter or buffer that calls do not write");
    const Value *b = v.bias;
    if (b && (!xnn_is_weight(b) || b->type.rank != 1 || xnn_size(b, 0) != xnn_size(v.w, v.w_axis)))
        return xnn_no(r, "its bias is not a constant of one number per result",
                      "make the bias a parameter of one number per result, or add it afterwards");
    return !v.is_scaled || xnn_no(r, "alpha or beta is not 1",
                                  "scale the weight and bias beforehand");
}

static void fully_connected(Lower *w, uint32_t in, uint32_t filter, uint32_t bias, uint32_t out,
                            uint32_t flags)
{
    XNode *x = x_node(w, XNN_FULLY_CONNECTED, out);
    x_id(x, 0, in);
    x_id(x, 1, filter);
    x_id(x, 2, bias);
    x_id(x, 3, out);
    x_u32(x, 4, flags);
    x_range(x, -INFINITY, INFINITY);
}

void xnn_lower_linear(Lower *w, const Node *n)
{
    Weighted v;
    weighted_read(n, &v);
    const Value *b = v.w, *bias = v.bias;
    uint32_t in = x_use(w, v.x, AS_IS), flags = v.w_axis ? FLAG_TRANSPOSE : 0;
    uint32_t dim[2] = {(uint32_t)xnn_size(b, 0), (uint32_t)xnn_size(b, 1)};
    XWeight k = x_weight(w, b, in, true, v.w_axis);
    if (!x_is_real(k.dtype) && flags) {
        k.data = x_permuted(w, k.data, k.size, 2, dim, (const int[]){1, 0});
        dim[0] = (uint32_t)xnn_size(b, 1);
        dim[1] = (uint32_t)xnn_size(b, 0);
        flags = 0;
    }
    uint32_t filter = value_is_known(b) ? x_packed(w, b) : x_weight_value(w, &k, 2, dim, 0);
    uint32_t out = x_result(w, n->out[0], AS_IS);
    /* With float operands and integer weights, XNNPACK multiplies the bias by the weights'
     * scales. */
    bool is_apart = bias && w->x.value[in].dtype == XNN_F32 && w->x.value[filter].dtype != XNN_F32;
    uint32_t sum = is_apart ? x_like(w, out) : out;
    fully_connected(w, in, filter, is_apart ? XNN_NONE : x_bias(w, bias, in, filter), sum, flags);
    if (is_apart)
        x_binary(w, XNN_ADD, sum, x_use(w, bias, AS_IS), out);
}

/* XNNPACK's product of matrices fails if one of them has no row or no column. */
bool xnn_takes_bmm(const Node *n, Refusal *r)
{
    const Type a = arg_value(n, "self")->type, b = arg_value(n, "mat2")->type;
    const Dim size[] = {a.dim[1], a.dim[2], b.dim[2]};
    for (int i = 0; i < 3; i++) {
        int64_t lo, hi;
        dim_range(size[i], &lo, &hi);
        if (lo < 1)
            return xnn_no(r, "a matrix may have no rows or no columns", "export with sizes of at least 1");
    }
    return true;
}

void xnn_lower_bmm(Lower *w, const Node *n)
{
    uint32_t a = x_use(w, arg_value(n, "self"), AS_IS), b = x_use(w, arg_value(n, "mat2"), AS_IS);
    x_binary(w, XNN_BATCH_MATMUL, a, b, x_result(w, n->out[0], AS_IS));
}

/* -- means ----------------------------------------------------------------------------------- */

bool xnn_is_mean_of_space(const Node *n)
{
    Reduce r;
    return n->op == OP_MEAN_DIM && reduce_read(n, &r) && reduce_is_space(&r);
}

/* A mean is a product with a constant, except one over the space of images, for which XNNPACK has a
 * node. */
bool xnn_takes_mean(const Node *n, Refusal *r)
{
    Reduce sums;
    if (xnn_is_mean_of_space(n))
        return true;
    return (reduce_read(n, &sums) && sums.axes && !xnn_symbolic_sizes(sums.x->type, 1) &&
            !(sums.axes & 1 && sums.x->type.dim[0].expr)) ||
           xnn_no(r,
                  "it normalizes no axes, or axes of symbolic sizes, or such axes come before them",
                  "name the axes, and export with all sizes but the first fixed");
}

/* Multiplies each row by a vector whose elements are all `factor`: [..., n] becomes [..., 1]. */
static uint32_t row_sums(Lower *w, uint32_t in, double factor)
{
    XValue v = w->x.value[in];
    uint32_t filter = x_filled(w, factor, 2, (const uint32_t[]){1, v.dim[v.rank - 1]});
    v.dim[v.rank - 1] = 1;
    uint32_t out = x_sized(w, &v);
    fully_connected(w, in, filter, XNN_NONE, out, 0);
    return out;
}

static void mean_of_space(Lower *w, const Node *n)
{
    uint32_t in = x_use(w, arg_value(n, "self"), CHANNELS_LAST);
    XValue v = w->x.value[in];
    v.dim[1] = v.dim[2] = 1;
    v.is_symbolic[1] = v.is_symbolic[2] = false;
    uint32_t out = x_sized(w, &v);
    XNode *x = x_node(w, XNN_GLOBAL_POOL, out);
    x_id(x, 0, in);
    x_id(x, 1, out);
    x_u32(x, 2, FLAG_KEEP_DIMS);
    x_range(x, -INFINITY, INFINITY);
    if (arg_bool(n, "keepdim"))
        x_define(w, n->out[0], CHANNELS_LAST, out);
    else
        x_define_reshaped(w, n->out[0], out);
}

/* Returns the operand with the summed axes merged into the last one.  Axes that lie elsewhere are
 * moved there. */
static uint32_t as_rows(Lower *w, const Node *n)
{
    Reduce r;
    bool is_moved = false;
    reduce_read(n, &r);
    int axis[XNN_MAX_RANK], rank = r.x->type.rank, kept = 0, at = 0;
    for (unsigned pass = 0; pass < 2; pass++)
        for (int i = 0; i < rank; i++)
            if ((r.axes >> i & 1) == pass)
                axis[at++] = i;
    for (int i = 0; i < rank; i++) {
        kept += !(r.axes >> i & 1);
        is_moved = is_moved || axis[i] != i;
    }
    uint32_t in = x_use(w, r.x, AS_IS);
    in = is_moved ? x_transpose(w, in, axis) : in;
    XValue rows = w->x.value[in];
    for (int i = kept + 1; i < rank; i++)
        rows.dim[kept] *= rows.dim[i];
    rows.rank = kept + 1;
    if (!kept) { /* a product wants rows */
        rows.dim[1] = rows.dim[0];
        rows.dim[0] = 1;
        rows.rank = 2;
    }
    return x_reshape(w, in, &rows);
}

void xnn_lower_mean(Lower *w, const Node *n)
{
    if (xnn_is_mean_of_space(n)) {
        mean_of_space(w, n);
        return;
    }
    uint32_t in = as_rows(w, n);
    double count = w->x.value[in].dim[w->x.value[in].rank - 1];
    x_define_reshaped(w, n->out[0], row_sums(w, in, n->op == OP_SUM_DIM ? 1 : 1 / count));
}

/* -- layer norm ------------------------------------------------------------------------------ */

bool xnn_takes_layer_norm(const Node *n, Refusal *r)
{
    Norm v;
    bool is_read = norm_read(n, &v);
    if ((v.weight && !value_is_known(v.weight)) || (v.bias && !value_is_known(v.bias)))
        return xnn_no(r, "its weight or bias is not a constant",
                      "make both parameters or buffers that calls do not write");
    return (is_read && v.axes == 1 && !v.x->type.dim[v.x->type.rank - 1].expr) ||
           xnn_no(r, "it is not over the last axis alone, of known size",
                  "normalize over the last axis alone, of a fixed size");
}

/* Returns x combined with a parameter; x itself if the parameter is NULL. */
static uint32_t by_parameter(Lower *w, XnnKind kind, uint32_t x, const Value *parameter)
{
    if (!parameter)
        return x;
    uint32_t out = x_like(w, x);
    return x_binary(w, kind, x, x_use(w, parameter, AS_IS), out);
}

/* Computes (x - mean) / sqrt(mean((x - mean)^2) + eps) * weight + bias for each row. */
void xnn_lower_layer_norm(Lower *w, const Node *n)
{
    Norm v;
    norm_read(n, &v);
    double count = (double)xnn_size(v.x, -1);
    uint32_t in = x_use(w, v.x, AS_IS), mean = row_sums(w, in, 1 / count);
    uint32_t x = x_binary(w, XNN_SUBTRACT, in, mean, x_like(w, in));
    uint32_t var = row_sums(w, x_unary(w, XNN_SQUARE, x, x_like(w, in)), 1 / count);
    var = x_by_number(w, XNN_ADD, var, v.eps);
    uint32_t y = x_unary(w, XNN_RSQRT, var, x_like(w, var));
    y = x_binary(w, XNN_MULTIPLY, x, y, x_like(w, in));
    y = by_parameter(w, XNN_MULTIPLY, y, v.weight);
    y = by_parameter(w, XNN_ADD, y, v.bias);
    x_define(w, n->out[0], AS_IS, y);
}

/* -- softmax --------------------------------------------------------------------------------- */

/* XNNPACK computes a softmax along the last axis.  If that is not the axis of the node in either
 * layout, axes are exchanged. */
void xnn_lower_softmax(Lower *w, const Node *n)
{
    int rank = arg_value(n, "self")->type.rank, at = (int)xnn_axis(n, "dim", rank),
        axis[XNN_MAX_RANK];
    Layout l = rank > 2 && at == 1 ? CHANNELS_LAST : AS_IS;
    bool is_last = at == rank - 1 || l == CHANNELS_LAST;
    for (int i = 0; i < rank; i++)
        axis[i] = i == at ? rank - 1 : i == rank - 1 ? at : i;
    uint32_t in = x_use(w, arg_value(n, "self"), l);
    in = is_last ? in : x_transpose(w, in, axis);
    uint32_t out = x_unary(w, XNN_SOFTMAX, in, x_like(w, in));
    x_define(w, n->out[0], l, is_last ? out : x_transpose(w, out, axis));
}
