/* infer_nn.c -- types of products, convolutions, pools, norms, softmax. */
#include "ir/internal.h"
#include "ir/views.h"
#include <inttypes.h>
#include <string.h>

static Program *program_of(const Node *n)
{
    return n->graph->program;
}

static bool same_dtype(const Node *n, Type a, Type b, Diag *d)
{
    return b.is_none || a.dtype == b.dtype ||
           diag_error(d, n->loc, "operands have dtypes %s and %s, expected equal ones",
                      dtype_name(a.dtype), dtype_name(b.dtype));
}

static bool same_size(const Node *n, const char *what, Dim a, const char *other, Dim b, Diag *d)
{
    return dims_match(n, a, b) ||
           diag_error(d, n->loc, "%s has size %s, expected %s of %s", what,
                      dim_text(program_of(n), a), dim_text(program_of(n), b), other);
}

/* -- products ------------------------------------------------------------------------- */

static bool product(const Node *n, Type a, Type b, Type *out, Diag *d)
{
    Dim dim[2] = {a.dim[0], b.dim[1]};
    return same_dtype(n, a, b, d) &&
           same_size(n, "the second matrix", b.dim[0], "the first one's columns", a.dim[1], d) &&
           set_tensor(n, out, a.dtype, 2, dim, d);
}

bool infer_mm(const Node *n, Type *out, Diag *d)
{
    Type a, b;
    return get_rank(n, "self", 2, 2, &a, d) && get_rank(n, "mat2", 2, 2, &b, d) &&
           product(n, a, b, out, d);
}

bool infer_addmm(const Node *n, Type *out, Diag *d)
{
    Type bias, a, b;
    return get_rank(n, "self", 0, 2, &bias, d) && get_rank(n, "mat1", 2, 2, &a, d) &&
           get_rank(n, "mat2", 2, 2, &b, d) && product(n, a, b, out, d) &&
           same_dtype(n, *out, bias, d) && expands_to(n, bias, *out, d);
}

bool infer_bmm(const Node *n, Type *out, Diag *d)
{
    Type a, b;
    if (!get_rank(n, "self", 3, 3, &a, d) || !get_rank(n, "mat2", 3, 3, &b, d))
        return false;
    Dim dim[3] = {a.dim[0], a.dim[1], b.dim[2]};
    return same_dtype(n, a, b, d) &&
           same_size(n, "the second batch", b.dim[0], "the first batch", a.dim[0], d) &&
           same_size(n, "the second matrix", b.dim[1], "the first one's columns", a.dim[2], d) &&
           set_tensor(n, out, a.dtype, 3, dim, d);
}

bool infer_baddbmm(const Node *n, Type *out, Diag *d)
{
    Type self, a, b;
    if (!get_tensor(n, "self", &self, d) || !get_rank(n, "batch1", 3, 3, &a, d) ||
        !get_rank(n, "batch2", 3, 3, &b, d))
        return false;
    Dim dim[3] = {a.dim[0], a.dim[1], b.dim[2]};
    return same_dtype(n, a, b, d) && same_dtype(n, a, self, d) &&
           same_size(n, "the second batch", b.dim[0], "the first batch", a.dim[0], d) &&
           same_size(n, "the second matrix", b.dim[1], "the first one's columns", a.dim[2], d) &&
           set_tensor(n, out, a.dtype, 3, dim, d) && expands_to(n, self, *out, d);
}

/* A vector on the left counts as a row, one on the right as a column.  The result lacks their axis
 * of size 1. */
bool infer_matmul(const Node *n, Type *out, Diag *d)
{
    Type a, b, batch;
    Dim dim[MAX_RANK + 2];
    if (!get_rank(n, "self", 1, MAX_RANK, &a, d) || !get_rank(n, "other", 1, MAX_RANK, &b, d) ||
        !same_dtype(n, a, b, d))
        return false;
    Dim inner = b.dim[b.rank > 1 ? b.rank - 2 : 0];
    if (!same_size(n, "the second matrix", inner, "the first one's columns", a.dim[a.rank - 1], d))
        return false;
    Type a_batch = {.dtype = a.dtype, .rank = a.rank > 2 ? a.rank - 2 : 0, .dim = a.dim};
    Type b_batch = {.dtype = b.dtype, .rank = b.rank > 2 ? b.rank - 2 : 0, .dim = b.dim};
    if (!broadcast(n, a_batch, b_batch, &batch, d))
        return false;
    int rank = batch.rank;
    memcpy(dim, batch.dim, (size_t)rank * sizeof *dim);
    if (a.rank > 1)
        dim[rank++] = a.dim[a.rank - 2];
    if (b.rank > 1)
        dim[rank++] = b.dim[b.rank - 1];
    return set_tensor(n, out, a.dtype, rank, dim, d);
}

bool infer_linear(const Node *n, Type *out, Diag *d)
{
    Type x, w, bias;
    Dim dim[MAX_RANK];
    if (!get_rank(n, "input", 1, MAX_RANK, &x, d) || !get_rank(n, "weight", 2, 2, &w, d) ||
        !get_optional(n, "bias", &bias, d) || !same_dtype(n, x, w, d) ||
        !same_dtype(n, x, bias, d) ||
        !same_size(n, "input's last axis", x.dim[x.rank - 1], "weight", w.dim[1], d))
        return false;
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    dim[x.rank - 1] = w.dim[0];
    return (bias.is_none || (get_rank(n, "bias", 1, 1, &bias, d) &&
                             same_size(n, "bias", bias.dim[0], "weight", w.dim[0], d))) &&
           set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* Checks that an operand is [blocks of columns][rows][PACKED_COLUMNS]. */
static bool is_packed(const Node *n, const char *what, Type t, EtcDtype dtype, int64_t columns,
                      int64_t rows, Diag *d)
{
    const int64_t want[3] = {(columns + ETC_PACKED_COLUMNS - 1) / ETC_PACKED_COLUMNS, rows,
                             ETC_PACKED_COLUMNS};
    bool ok = t.rank == 3 && t.dtype == dtype;
    for (int i = 0; ok && i < 3; i++)
        ok = dim_equal(t.dim[i], DIM(want[i]));
    return ok || diag_error(d, n->loc, "%s: expected %s[%" PRId64 ",%" PRId64 ",%" PRId64 "]", what,
                            dtype_name(dtype), want[0], want[1], want[2]);
}

static bool packed_points(const Node *n, Type scale, Type zero, int64_t columns, int64_t k, bool is_i4,
                          Diag *d)
{
    int64_t groups = scale.rank == 3 && !scale.dim[1].expr ? scale.dim[1].value : 0;
    if (groups < 1 || k % groups || (is_i4 && groups > 1 && k / groups % 2))
        return diag_error(d, n->loc, "scales do not divide %" PRId64 " terms evenly", k);
    return is_packed(n, "scales", scale, ETC_F32, columns, groups, d) &&
           (zero.is_none || is_packed(n, "zero points", zero, ETC_I8, columns, groups, d));
}

/* Infers a product as infer_linear does, but with a weight in the layout of kernels/packed.h. */
bool infer_packed_linear(const Node *n, Type *out, Diag *d)
{
    Type x, w, scale, zero, bias;
    Dim dim[MAX_RANK];
    int64_t columns = 0;
    if (!get_rank(n, "input", 1, MAX_RANK, &x, d) || !get_rank(n, "weight", 3, 3, &w, d) ||
        !get_optional(n, "scales", &scale, d) || !get_optional(n, "zero_points", &zero, d) ||
        !get_optional(n, "bias", &bias, d) || !same_dtype(n, x, bias, d) || !get_int(n, "columns", &columns, d))
        return false;
    bool is_i4 = w.dtype == ETC_U8, is_half = w.dtype == ETC_F16;
    Dim k = x.dim[x.rank - 1];
    if (x.dtype != ETC_F32 || k.expr || k.value < 1 || columns < 0 ||
        (!is_i4 && !is_half && w.dtype != ETC_I8) || is_half != scale.is_none ||
        (is_half && !zero.is_none))
        return diag_error(d, n->loc, "has no such kind of input, weight and scales");
    if (!is_packed(n, "weight", w, w.dtype, columns, is_i4 ? (k.value + 1) / 2 : k.value, d) ||
        (!is_half && !packed_points(n, scale, zero, columns, k.value, is_i4, d)))
        return false;
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    dim[x.rank - 1] = DIM(columns);
    return (bias.is_none || (get_rank(n, "bias", 1, 1, &bias, d) &&
                             same_size(n, "bias", bias.dim[0], "result", DIM(columns), d))) &&
           set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* Checks a weight and a bias that compute four gates, each of the size of the state. */
static bool check_gates(const Node *n, int weight, int bias, Type x, Type state, Diag *d)
{
    Type w, b;
    Dim size = dim_mul(program_of(n), DIM(4), state.dim[1]);
    return get_rank(n, weight, 2, 2, &w, d) && get_optional(n, bias, &b, d) &&
           same_dtype(n, x, w, d) && same_dtype(n, x, b, d) &&
           same_size(n, arg_name(n, weight), w.dim[0], "the four gates", size, d) &&
           same_size(n, arg_name(n, weight), w.dim[1], "what it multiplies", x.dim[1], d) &&
           (b.is_none || (get_rank(n, bias, 1, 1, &b, d) &&
                          same_size(n, arg_name(n, bias), b.dim[0], "the four gates", size, d)));
}

/* Infers lstm_cell(input, [h, c], w_ih, w_hh, b_ih, b_hh), which gives the next h and c. */
bool infer_lstm_cell(const Node *n, Type *out, Diag *d)
{
    Type x;
    const Value *h = arg_list_value(n, "hx", 0), *c = arg_list_value(n, "hx", 1);
    if (!get_rank(n, "input", 2, 2, &x, d))
        return false;
    if (arg_count(n, "hx") != 2 || !h || !c || h->type.rank != 2 || c->type.rank != 2)
        return diag_error(d, n->loc, "hx is not two matrices");
    return same_dtype(n, x, h->type, d) && same_dtype(n, x, c->type, d) &&
           same_size(n, "hx", h->type.dim[0], "input", x.dim[0], d) &&
           same_size(n, "hx", c->type.dim[0], "input", x.dim[0], d) &&
           same_size(n, "the second of hx", c->type.dim[1], "the first", h->type.dim[1], d) &&
           check_gates(n, 2, 4, x, h->type, d) && check_gates(n, 3, 5, h->type, h->type, d) &&
           set_tensor(n, &out[0], x.dtype, 2, h->type.dim, d) &&
           set_tensor(n, &out[1], x.dtype, 2, h->type.dim, d);
}

static Type leading(Type t, int without)
{
    t.rank -= without;
    return t;
}

/* Checks that the heads of query come in equal groups, each of which shares one head of key and
 * value. */
static bool check_groups(const Node *n, Type q, Type k, Type v, Diag *d)
{
    if (!arg_bool(n, "enable_gqa") || q.rank < 3 || q.rank != k.rank || q.rank != v.rank)
        return !arg_bool(n, "enable_gqa") ||
               diag_error(d, n->loc, "shares heads of fewer than three axes");
    Program *p = program_of(n);
    for (int i = 0; i < q.rank - 2; i++) {
        bool is_head = i == q.rank - 3;
        if (!same_size(n, "value", v.dim[i], "key's batch", k.dim[i], d) ||
            (!is_head && !same_size(n, "key", k.dim[i], "query's batch", q.dim[i], d)))
            return false;
    }
    Dim left = dim_mod(p, q.dim[q.rank - 3], k.dim[q.rank - 3]);
    return dims_agree(n, left, DIM(0)) ||
           diag_error(d, n->loc, "the heads of query are not a multiple of those of key");
}

/* The batch axes of query, key and value broadcast, except that several heads of query may share
 * one head of key and value. */
bool infer_attention(const Node *n, Type *out, Diag *d)
{
    Type q, k, v, mask, batch;
    Dim dim[MAX_RANK];
    if (!get_rank(n, "query", 2, MAX_RANK, &q, d) || !get_rank(n, "key", 2, MAX_RANK, &k, d) ||
        !get_rank(n, "value", 2, MAX_RANK, &v, d) || !get_optional(n, "attn_mask", &mask, d) ||
        !same_dtype(n, q, k, d) || !same_dtype(n, q, v, d))
        return false;
    if (!mask.is_none && mask.dtype != ETC_BOOL && mask.dtype != q.dtype)
        return diag_error(d, n->loc, "attn_mask has dtype %s, expected bool or %s",
                          dtype_name(mask.dtype), dtype_name(q.dtype));
    if (!mask.is_none && arg_bool(n, "is_causal"))
        return diag_error(d, n->loc, "has both attn_mask and is_causal");
    if (!same_size(n, "key", k.dim[k.rank - 1], "query's last axis", q.dim[q.rank - 1], d) ||
        !same_size(n, "value", v.dim[v.rank - 2], "key's positions", k.dim[k.rank - 2], d))
        return false;
    batch = leading(q, 2);
    if (!check_groups(n, q, k, v, d) ||
        (!arg_bool(n, "enable_gqa") && (!broadcast(n, batch, leading(k, 2), &batch, d) ||
                             !broadcast(n, batch, leading(v, 2), &batch, d))))
        return false;
    memcpy(dim, batch.dim, (size_t)batch.rank * sizeof *dim);
    dim[batch.rank] = q.dim[q.rank - 2];
    dim[batch.rank + 1] = k.dim[k.rank - 2];
    Type scores = {.dtype = q.dtype, .rank = batch.rank + 2, .dim = dim};
    if (!mask.is_none && !expands_to(n, mask, scores, d))
        return false;
    dim[batch.rank + 1] = v.dim[v.rank - 1];
    return set_tensor(n, out, q.dtype, batch.rank + 2, dim, d);
}

/* Infers attention as above, with a bias that broadcasts to the scores. */
bool infer_softmax_attention(const Node *n, Type *out, Diag *d)
{
    Type k, bias;
    Dim dim[MAX_RANK];
    if (!infer_attention(n, out, d) || !get_rank(n, "key", 2, MAX_RANK, &k, d) ||
        !get_optional(n, "bias", &bias, d))
        return false;
    memcpy(dim, out->dim, (size_t)out->rank * sizeof *dim);
    dim[out->rank - 1] = k.dim[k.rank - 2];
    Type scores = {.dtype = out->dtype, .rank = out->rank, .dim = dim};
    return bias.is_none || (same_dtype(n, k, bias, d) && expands_to(n, bias, scores, d));
}

/* Heads are runs of columns: query is [batch, rows, heads * width]. */
bool infer_packed_attention(const Node *n, Type *out, Diag *d)
{
    Program *p = program_of(n);
    Type q, k, v, mask;
    int64_t heads = 0, kv_heads = 0;
    Dim dim[3];
    if (!get_rank(n, "query", 3, 3, &q, d) || !get_rank(n, "key", 3, 3, &k, d) ||
        !get_rank(n, "value", 3, 3, &v, d) || !get_optional(n, "attn_mask", &mask, d) ||
        !same_dtype(n, q, k, d) || !same_dtype(n, q, v, d))
        return false;
    arg_int(n, "heads", &heads);
    arg_int(n, "kv_heads", &kv_heads);
    if (heads < 1 || kv_heads < 1 || v.dim[2].expr || v.dim[2].value % kv_heads)
        return diag_error(d, n->loc, "its columns are not divided evenly by its heads");
    Dim scores[3] = {q.dim[0], q.dim[1], k.dim[1]};
    Type all = {.dtype = q.dtype, .rank = 3, .dim = scores};
    if (!same_size(n, "key", k.dim[0], "query's batch", q.dim[0], d) ||
        !same_size(n, "value", v.dim[0], "query's batch", q.dim[0], d) ||
        !same_size(n, "value", v.dim[1], "key's positions", k.dim[1], d) ||
        !same_size(n, "key", dim_mul(p, k.dim[2], DIM(heads)), "query's columns and key's heads",
                   dim_mul(p, q.dim[2], DIM(kv_heads)), d) ||
        (!mask.is_none && !expands_to(n, mask, all, d)))
        return false;
    memcpy(dim, q.dim, sizeof dim);
    dim[2] = DIM(v.dim[2].value / kv_heads * heads);
    return set_tensor(n, out, q.dtype, 3, dim, d);
}

/* -- convolution ---------------------------------------------------------------------- */

/* Reads the operands, of which all have one dtype, and the number of axes. */
static bool conv_tensors(const Node *n, Conv *c, Diag *d)
{
    Type x, w, bias;
    if (!get_tensor(n, "input", &x, d) || !get_rank(n, "weight", 3, 2 + VIEW_AXES, &w, d) ||
        !get_optional(n, "bias", &bias, d))
        return false;
    c->x = arg_value(n, "input");
    c->w = arg_value(n, "weight");
    c->bias = bias.is_none ? NULL : arg_value(n, "bias");
    c->axes = w.rank - 2;
    return same_dtype(n, x, w, d) && same_dtype(n, x, bias, d);
}

/* Returns whether the input is padded so that sizes do not change. */
static bool is_same(const Node *n)
{
    const Arg padding = arg_get(n, "padding");
    return padding.kind == ARG_STRING && !strcmp(padding.str, "same");
}

static bool conv_geometry(const Node *n, Conv *c, int groups, Diag *d)
{
    if (!get_ints(n, "stride", c->axes, 1, c->stride, d) ||
        !get_ints(n, "padding", c->axes, 0, c->pad, d) ||
        !get_ints(n, "dilation", c->axes, 1, c->dilation, d) ||
        !get_int(n, groups, &c->groups, d))
        return false;
    return c->groups > 0 ||
           diag_error(d, n->loc, "groups is %" PRId64 ", expected at least 1", c->groups);
}

/* Checks the channels of input, weight and bias against the groups, and sets *out to the channels
 * of the result. */
static bool conv_channels(const Node *n, const Conv *c, Dim in, Dim *out, Diag *d)
{
    Program *p = program_of(n);
    Dim groups = DIM(c->groups), per_group = dim_mul(p, c->w->type.dim[1], groups);
    Dim divided = c->w->type.dim[0]; /* output channels; if transposed, input channels */
    if (!dim_equal(dim_mod(p, divided, groups), DIM(0)))
        return diag_error(d, n->loc, "groups %" PRId64 " do not divide %s channels of weight",
                          c->groups, dim_text(p, divided));
    *out = c->is_transposed ? per_group : divided;
    if (!same_size(n, "axis of input's channels", in, "weight and groups",
                   c->is_transposed ? divided : per_group, d))
        return false;
    if (!c->bias)
        return true;
    if (c->bias->type.rank != 1)
        return diag_error(d, n->loc, "bias has rank %d, expected 1", c->bias->type.rank);
    return same_size(n, "bias", c->bias->type.dim[0], "output's channels", *out, d);
}

/* Returns floor((in + 2 padding - reach) / stride) + 1, where reach is dilation * (kernel - 1) + 1.
 */
static Dim window(Program *p, Dim in, Dim reach, int64_t padding, int64_t stride)
{
    Dim free = dim_sub(p, dim_add(p, in, dim_mul(p, DIM(2), DIM(padding))), reach);
    return dim_add(p, dim_floordiv(p, free, DIM(stride)), DIM(1));
}

static Dim reach_of(Program *p, Dim kernel, int64_t dilation)
{
    return dim_add(p, dim_mul(p, DIM(dilation), dim_sub(p, kernel, DIM(1))), DIM(1));
}

/* Returns (in - 1) * stride - 2 padding + reach + output_padding. */
static Dim unwindow(Program *p, const Conv *c, int i, Dim in, Dim reach)
{
    Dim v = dim_mul(p, dim_sub(p, in, DIM(1)), DIM(c->stride[i]));
    v = dim_sub(p, v, dim_mul(p, DIM(2), DIM(c->pad[i])));
    return dim_add(p, dim_add(p, v, reach), DIM(c->out_pad[i]));
}

static bool conv_axis(const Node *n, const Conv *c, int i, Dim in, Dim *out, Diag *d)
{
    Program *p = program_of(n);
    Dim kernel = c->w->type.dim[2 + i], reach = reach_of(p, kernel, c->dilation[i]);
    if (!dim_at_least(n, kernel, DIM(1)))
        return diag_error(d, n->loc, "kernel has size %s, expected at least 1",
                          dim_text(p, kernel));
    *out = in;
    if (is_same(n))
        return true;
    if (!dim_at_least(n, in, DIM(1)))
        return diag_error(d, n->loc, "axis %d of the input's pixels is empty", i);
    Dim padded = dim_add(p, in, dim_mul(p, DIM(2), DIM(c->pad[i])));
    *out = c->is_transposed ? unwindow(p, c, i, in, reach)
                         : window(p, in, reach, c->pad[i], c->stride[i]);
    bool fits = c->is_transposed ? dim_at_least(n, *out, DIM(1)) : dim_at_least(n, padded, reach);
    if (!fits && !dim_is_bad(*out))
        return diag_error(d, n->loc,
                          "kernel reaches over %s, more than the padded input of size %s",
                          dim_text(p, reach), dim_text(p, in));
    return true;
}

/* Sets the shape of the result.  Unless `batched` is set, the input may lack the batch axis. */
static bool conv_shape(const Node *n, const Conv *c, bool batched, Type *out, Diag *d)
{
    Dim dim[VIEW_AXES + 2];
    int rank = c->x->type.rank, first = rank - c->axes; /* spatial axis */
    if (rank != c->axes + 2 && (batched || rank != c->axes + 1))
        return diag_error(d, n->loc, "input has rank %d, expected %d", rank, c->axes + 2);
    if (!conv_channels(n, c, c->x->type.dim[first - 1], &dim[first - 1], d))
        return false;
    if (first == 2)
        dim[0] = c->x->type.dim[0];
    for (int i = 0; i < c->axes; i++)
        if (!conv_axis(n, c, i, c->x->type.dim[first + i], &dim[first + i], d))
            return false;
    return set_tensor(n, out, c->x->type.dtype, rank, dim, d);
}

/* Infers conv1d and conv2d.  The lists of the row tell the number of axes. */
bool infer_conv(const Node *n, Type *out, Diag *d)
{
    Conv c = {0};
    if (!conv_tensors(n, &c, d))
        return false;
    int axes = op_schema(program_of(n), n->op)->arg[3].list_size;
    if (c.axes != axes)
        return diag_error(d, n->loc, "weight has rank %d, expected %d", c.axes + 2, axes + 2);
    return conv_geometry(n, &c, 6, d) && conv_shape(n, &c, false, out, d);
}

bool infer_convolution(const Node *n, Type *out, Diag *d)
{
    Conv c = {.is_transposed = arg_bool(n, "transposed")};
    if (!conv_tensors(n, &c, d) || !conv_geometry(n, &c, 8, d) ||
        !get_ints(n, "output_padding", c.axes, 0, c.out_pad, d))
        return false;
    for (int i = 0; c.is_transposed && i < c.axes; i++)
        if (c.out_pad[i] >= c.stride[i] && c.out_pad[i] >= c.dilation[i])
            return diag_error(
                d, n->loc, "output_padding is %" PRId64 ", expected less than stride or dilation",
                c.out_pad[i]);
    return conv_shape(n, &c, true, out, d);
}

/* Infers a convolution of integers: neither its bias nor its result has the input's dtype. */
bool infer_integer_convolution(const Node *n, Type *out, Diag *d)
{
    Conv c = {0};
    Type x, w;
    EtcDtype dtype;
    if (!get_rank(n, "input", 3, 4, &x, d) || !get_rank(n, "weight", x.rank, x.rank, &w, d))
        return false;
    c.x = arg_value(n, "input");
    c.w = arg_value(n, "weight");
    c.axes = w.rank - 2;
    Dim k = dims_product(program_of(n), w.dim + 1, w.rank - 1);
    if (!conv_geometry(n, &c, 6, d) || !check_integers(n, w.dim[0], k, &dtype, d) ||
        !conv_shape(n, &c, true, out, d))
        return false;
    out->dtype = dtype;
    return true;
}

/* Infers conv_transpose1d and conv_transpose2d, where output_padding and groups come before
 * dilation. */
bool infer_conv_transpose(const Node *n, Type *out, Diag *d)
{
    Conv c = {.is_transposed = true};
    if (!conv_tensors(n, &c, d) || !get_ints(n, "stride", c.axes, 1, c.stride, d) ||
        !get_ints(n, "padding", c.axes, 0, c.pad, d) ||
        !get_ints(n, "output_padding", c.axes, 0, c.out_pad, d) ||
        !get_int(n, "groups", &c.groups, d) ||
        !get_ints(n, "dilation", c.axes, 1, c.dilation, d))
        return false;
    if (c.groups < 1)
        return diag_error(d, n->loc, "groups is %" PRId64 ", expected at least 1", c.groups);
    return conv_shape(n, &c, false, out, d);
}

/* Infers conv1d and conv2d with padding "valid", which means none, or "same", which keeps the
 * sizes. */
bool infer_conv_padding(const Node *n, Type *out, Diag *d)
{
    Conv c = {0};
    const Arg padding = arg_get(n, "padding");
    if (!is_same(n) && (padding.kind != ARG_STRING || strcmp(padding.str, "valid") != 0))
        return diag_error(d, n->loc, "padding is neither \"valid\" nor \"same\"");
    if (!conv_tensors(n, &c, d) || !get_ints(n, "stride", c.axes, 1, c.stride, d) ||
        !get_ints(n, "dilation", c.axes, 1, c.dilation, d) ||
        !get_int(n, "groups", &c.groups, d))
        return false;
    if (c.groups < 1)
        return diag_error(d, n->loc, "groups is %" PRId64 ", expected at least 1", c.groups);
    for (int i = 0; is_same(n) && i < c.axes; i++)
        if (c.stride[i] != 1)
            return diag_error(d, n->loc, "padding \"same\" expects stride 1");
    return conv_shape(n, &c, false, out, d);
}

/* -- pools ---------------------------------------------------------------------------- */

/* Returns the number of axes that are pooled, 1 or 2, which the lists of the row tell. */
static int pool_axes(const Node *n)
{
    return op_schema(program_of(n), n->op)->arg[1].list_size;
}

/* Reads kernel_size, stride and padding from arguments 1, 2 and 3.  Without a stride, the stride is
 * the kernel's size. */
static bool pool_geometry(const Node *n, Pool *p, int dilation, int ceil, Diag *d)
{
    int axes = p->axes = pool_axes(n);
    p->dilation[0] = p->dilation[1] = 1;
    p->rounds_up = arg_bool(n, ceil);
    if (!get_ints(n, "kernel_size", axes, 1, p->kernel, d) ||
        !get_ints(n, "padding", axes, 0, p->pad, d) ||
        (dilation && !get_ints(n, dilation, axes, 1, p->dilation, d)))
        return false;
    memcpy(p->stride, p->kernel, sizeof p->stride);
    if (arg_count(n, "stride") && !get_ints(n, "stride", axes, 1, p->stride, d))
        return false;
    for (int i = 0; i < axes; i++) {
        int64_t reach;
        if (!mul_ok(p->kernel[i] - 1, p->dilation[i], &reach) || reach == INT64_MAX)
            return diag_error(d, n->loc, "kernel_size times dilation does not fit in 64 bits");
        if (p->pad[i] > (reach + 1) / 2)
            return diag_error(d, n->loc,
                              "padding is %" PRId64 ", expected at most half the kernel, %" PRId64,
                              p->pad[i], (reach + 1) / 2);
    }
    return true;
}

/* With ceil_mode there is a further window only if it starts inside the input or its left padding.
 */
static Dim pool_axis(Program *p, const Pool *g, int i, Dim in)
{
    Dim reach = reach_of(p, DIM(g->kernel[i]), g->dilation[i]);
    if (!g->rounds_up)
        return window(p, in, reach, g->pad[i], g->stride[i]);
    Dim out = window(p, dim_add(p, in, DIM(g->stride[i] - 1)), reach, g->pad[i], g->stride[i]);
    Dim last = dim_add(p, in, DIM(g->pad[i] - 1));
    return dim_min(p, out, dim_add(p, dim_floordiv(p, last, DIM(g->stride[i])), DIM(1)));
}

static bool pool_shape(const Node *n, const Pool *g, Type *out, Diag *d)
{
    Type x;
    Dim dim[4];
    if (!get_rank(n, 0, g->axes + 1, g->axes + 2, &x, d))
        return false;
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    for (int i = 0; i < g->axes; i++) {
        int axis = x.rank - g->axes + i;
        dim[axis] = pool_axis(program_of(n), g, i, x.dim[axis]);
        if (!dim_at_least(n, x.dim[axis], DIM(1)))
            return diag_error(d, n->loc, "axis %d of the input is empty", axis);
        if (!dim_is_bad(dim[axis]) && !dim_at_least(n, dim[axis], DIM(1)))
            return diag_error(d, n->loc, "input of size %s is too small for a window of %" PRId64,
                              dim_text(program_of(n), x.dim[axis]), g->kernel[i]);
    }
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

bool infer_max_pool(const Node *n, Type *out, Diag *d)
{
    Pool g;
    if (!pool_geometry(n, &g, 4, 5, d) || !pool_shape(n, &g, out, d))
        return false;
    if (n->n_out > 1) {
        out[1] = out[0];
        out[1].dtype = ETC_I64;
    }
    return true;
}

bool infer_avg_pool(const Node *n, Type *out, Diag *d)
{
    Pool g;
    int64_t divisor;
    if (n->n_args > 6 && arg_int(n, "divisor_override", &divisor) && !divisor)
        return diag_error(d, n->loc, "divisor_override is 0");
    return pool_geometry(n, &g, 0, 4, d) && pool_shape(n, &g, out, d);
}

bool infer_adaptive_pool(const Node *n, Type *out, Diag *d)
{
    Type x;
    Dim size[MAX_RANK], dim[4];
    int count;
    int axes = pool_axes(n);
    if (!get_rank(n, "self", axes + 1, axes + 2, &x, d) ||
        !get_sizes(n, "output_size", size, &count, d))
        return false;
    if (count != axes)
        return diag_error(d, n->loc, "output_size has %d items, expected %d", count, axes);
    for (int i = x.rank - axes; i < x.rank; i++)
        if (!dim_at_least(n, x.dim[i], DIM(1)))
            return diag_error(d, n->loc, "axis %d of the input is empty", i);
    memcpy(dim, x.dim, (size_t)x.rank * sizeof *dim);
    memcpy(dim + x.rank - axes, size, (size_t)axes * sizeof *dim);
    return set_tensor(n, out, x.dtype, x.rank, dim, d);
}

/* -- norms, softmax ------------------------------------------------------------------- */

/* Mean and inverse deviation are empty unless the norm is in training mode. */
bool infer_batch_norm3(const Node *n, Type *out, Diag *d)
{
    Type x, t;
    if (!get_rank(n, "input", 2, MAX_RANK, &x, d))
        return false;
    for (int i = 1; i <= 4; i++) {
        if (!get_optional(n, i, &t, d) || (!t.is_none && !get_rank(n, i, 1, 1, &t, d)))
            return false;
        if (!t.is_none && !same_size(n, arg_name(n, i), t.dim[0], "input's channels", x.dim[1], d))
            return false;
    }
    if (!set_tensor(n, out, x.dtype, x.rank, x.dim, d))
        return false;
    for (int i = 1; i < n->n_out; i++)
        if (!set_tensor(n, &out[i], x.dtype, 1, &DIM(0), d))
            return false;
    return true;
}

/* Infers layer_norm and rms_norm: (input, normalized_shape, weight, bias, ...).  The native form
 * also gives the mean and the inverse deviation of each row. */
bool infer_layer_norm(const Node *n, Type *out, Diag *d)
{
    Type x, t;
    Dim size[MAX_RANK], dim[MAX_RANK];
    int count;
    if (!get_tensor(n, "input", &x, d) || !get_sizes(n, "normalized_shape", size, &count, d))
        return false;
    if (!count || count > x.rank)
        return diag_error(d, n->loc, "normalized_shape has %d items, expected 1 to %d", count,
                          x.rank);
    const Dim *rows = x.dim + x.rank - count;
    for (int i = 0; i < count; i++)
        if (!same_size(n, "normalized_shape", size[i], "input's last axes", rows[i], d))
            return false;
    for (int i = 2; i <= 3 && op_schema(program_of(n), n->op)->arg[i].type == SCH_TENSOR; i++) {
        if (!get_optional(n, i, &t, d) || !same_dtype(n, x, t, d))
            return false;
        for (int k = 0; !t.is_none && k < count; k++)
            if (t.rank != count || !dims_agree(n, t.dim[k], size[k]))
                return diag_error(d, n->loc, "%s has not the sizes of normalized_shape",
                                  arg_name(n, i));
    }
    for (int i = 0; i < x.rank; i++)
        dim[i] = i < x.rank - count ? x.dim[i] : DIM(1);
    for (int i = 1; i < n->n_out; i++)
        if (!set_tensor(n, &out[i], x.dtype, x.rank, dim, d))
            return false;
    return set_tensor(n, out, x.dtype, x.rank, x.dim, d);
}

/* Infers softmax(self, dim, half_to_float) or softmax(self, dim, dtype). */
bool infer_softmax(const Node *n, Type *out, Diag *d)
{
    Type x;
    int axis;
    if (!get_tensor(n, "self", &x, d) || !get_axis(n, "dim", x.rank, &axis, d))
        return false;
    EtcDtype dtype = arg_bool(n, "half_to_float") ? ETC_F32 : dtype_or(n, x.dtype);
    if (!dtype_is_float(dtype))
        return diag_error(d, n->loc, "softmax of dtype %s, expected a floating-point one",
                          dtype_name(dtype));
    return set_tensor(n, out, dtype, x.rank, x.dim, d);
}
