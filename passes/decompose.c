/* decompose.c -- composite ops become the closed set of core.
 *
 * Stage aten, after functionalize; leaves core.  A row with `decomp` is rewritten by the function
 * of that name; one flagged KEEP only where the tail does not take it whole: a .pte takes rows with
 * an `out` kernel, emitted C rows with a `c` template.  What a rule builds is visited again; rules
 * only go from an op to simpler ones, so this ends.  Strides end here: a core value is contiguous.
 */
#include "passes/decompose.h"
#include <string.h>

bool done(Rewrite *r, Node *n, const Node *made)
{
    return made && rewrite_node(r, n, made->out[0]);
}

bool decomp_none(Rewrite *r, Node *n)
{
    return diag_fault(r->d, FAULT_BUG, n->loc, "has no decomposition");
}

/* -- identities and views ------------------------------------------------------------------ */

bool decomp_alias(Rewrite *r, Node *n)
{
    return rewrite_node(r, n, n->in[0]);
}

bool decomp_contiguous(Rewrite *r, Node *n)
{
    return rewrite_node(r, n, n->in[0]);
}

bool decomp_dropout(Rewrite *r, Node *n)
{
    double p = 1;
    if (arg_bool(n, 2) && !(arg_number(n, 1, &p) && p == 0))
        return diag_unsupported(r->d, n->loc,
                                "drops elements at random: export the model in eval mode");
    return rewrite_node(r, n, n->in[0]);
}

/* The same elements under the recorded sizes. */
bool decomp_reshape(Rewrite *r, Node *n)
{
    Type t = n->out[0]->type;
    Value *v = build_view(r, n, n->in[0], t.dim, t.rank);
    return v && rewrite_node(r, n, v);
}

bool decomp_flatten(Rewrite *r, Node *n)
{
    return decomp_reshape(r, n);
}

bool decomp_squeeze(Rewrite *r, Node *n)
{
    return decomp_reshape(r, n);
}

/* x.to(its own dtype) ==> x */
bool decomp_to(Rewrite *r, Node *n)
{
    Value *x = build_cast(r, n, n->in[0], n->out[0]->type.dtype);
    return x && rewrite_node(r, n, x);
}

bool decomp_transpose(Rewrite *r, Node *n)
{
    int64_t axis[MAX_RANK], a = 0, b = 1;
    Value *x = n->in[0];
    int rank = x->type.rank;
    if (rank < 2)
        return rewrite_node(r, n, x);
    if (n->op == OP_TRANSPOSE_INT && (!arg_int(n, 1, &a) || !arg_int(n, 2, &b)))
        return diag_error(r->d, n->loc, "its axes are not plain integers");
    if (n->op == OP_MT)
        a = -2, b = -1;
    for (int i = 0; i < rank; i++)
        axis[i] = i;
    a += a < 0 ? rank : 0;
    b += b < 0 ? rank : 0;
    axis[a] = b;
    axis[b] = a;
    Value *v = build_permute(r, n, x, axis);
    return v && rewrite_node(r, n, v);
}

/* -- activations --------------------------------------------------------------------------- */

bool decomp_relu6(Rewrite *r, Node *n)
{
    return done(r, n, build(r->g, n, n->loc, OP_HARDTANH, r->d, "vff", n->in[0], 0.0, 6.0));
}

bool decomp_clamp_min(Rewrite *r, Node *n)
{
    if (n->arg[1].kind == ARG_VALUE)
        return diag_unsupported(r->d, n->loc, "its bound is not a constant");
    return done(r, n, build(r->g, n, n->loc, OP_CLAMP, r->d, "va", n->in[0], n->arg[1]));
}

bool decomp_square(Rewrite *r, Node *n)
{
    Value *x = build_cast(r, n, n->in[0], n->out[0]->type.dtype);
    return as_value(r, n, build2(r, n, OP_MUL_TENSOR, x, x));
}

/* x * sigmoid(x) */
bool decomp_silu(Rewrite *r, Node *n)
{
    Value *x = n->in[0];
    Node *s = build(r->g, n, n->loc, OP_SIGMOID, r->d, "v", x);
    return s && done(r, n, build(r->g, n, n->loc, OP_MUL_TENSOR, r->d, "vv", x, s->out[0]));
}

/* clamp(x + 3, 0, 6) */
static Value *shifted_clamp(Rewrite *r, Node *n)
{
    Node *a = build(r->g, n, n->loc, OP_ADD_SCALAR, r->d, "vf", n->in[0], 3.0);
    Node *c = a ? build(r->g, n, n->loc, OP_HARDTANH, r->d, "vff", a->out[0], 0.0, 6.0) : NULL;
    return c ? c->out[0] : NULL;
}

/* clamp(x + 3, 0, 6) / 6 */
bool decomp_hardsigmoid(Rewrite *r, Node *n)
{
    Value *c = shifted_clamp(r, n);
    return c && done(r, n, build(r->g, n, n->loc, OP_DIV_SCALAR, r->d, "vf", c, 6.0));
}

/* x * clamp(x + 3, 0, 6) / 6 */
bool decomp_hardswish(Rewrite *r, Node *n)
{
    Value *c = shifted_clamp(r, n);
    Node *m = c ? build(r->g, n, n->loc, OP_MUL_TENSOR, r->d, "vv", n->in[0], c) : NULL;
    return m && done(r, n, build(r->g, n, n->loc, OP_DIV_SCALAR, r->d, "vf", m->out[0], 6.0));
}

/* With a dtype, the input is converted first. */
bool decomp_softmax(Rewrite *r, Node *n)
{
    Value *x = n->in[0];
    OpId op = n->op == OP_SOFTMAX_INT ? OP__SOFTMAX : OP__LOG_SOFTMAX;
    if (n->arg[2].kind == ARG_DTYPE && !(x = build_cast(r, n, x, n->arg[2].dtype)))
        return false;
    return done(r, n, build(r->g, n, n->loc, op, r->d, "vab", x, n->arg[1], false));
}

/* -- matrices ------------------------------------------------------------------------------ */

Value *build1(Rewrite *r, Node *n, OpId op, Value *a)
{
    Node *m = a ? build(r->g, n, n->loc, op, r->d, "v", a) : NULL;
    return m ? m->out[0] : NULL;
}

Value *build2(Rewrite *r, Node *n, OpId op, Value *a, Value *b)
{
    Node *m = a && b ? build(r->g, n, n->loc, op, r->d, "vv", a, b) : NULL;
    return m ? m->out[0] : NULL;
}

/* x[..., k] as a matrix of rows of k. */
static Value *as_rows(Rewrite *r, Node *n, Value *x)
{
    Program *p = r->g->program;
    Type t = x->type;
    Dim dim[2] = {DIM(1), t.dim[t.rank - 1]};
    for (int i = 0; i + 1 < t.rank; i++)
        dim[0] = dim_mul(p, dim[0], t.dim[i]);
    return build_view(r, n, x, dim, 2);
}

bool as_recorded(Rewrite *r, Node *n, Value *x)
{
    Type t = n->out[0]->type;
    Value *v = x ? build_view(r, n, x, t.dim, t.rank) : NULL;
    return v && rewrite_node(r, n, v);
}

/* x @ w.T + b */
bool decomp_linear(Rewrite *r, Node *n)
{
    static const int64_t swap[] = {1, 0};
    Value *x = arg_value(n, 0), *w = arg_value(n, 1), *b = arg_value(n, 2);
    if (w->type.rank != 2)
        return diag_unsupported(r->d, n->loc, "its weight has rank %d, expected 2", w->type.rank);
    Value *rows = as_rows(r, n, x), *t = build_permute(r, n, w, swap);
    if (!rows || !t)
        return false;
    if (!b)
        return as_recorded(r, n, build2(r, n, OP_MM, rows, t));
    Node *m = build(r->g, n, n->loc, OP_ADDMM, r->d, "vvv", b, rows, t);
    return m && as_recorded(r, n, m->out[0]);
}

/* The last two axes of t under the batch axes of `like`, as [batch, rows, columns]. */
static Value *as_batch(Rewrite *r, Node *n, Value *x, Type like)
{
    Program *p = r->g->program;
    Dim dim[MAX_RANK], flat[3] = {DIM(1)};
    Type t = x->type;
    int batch = like.rank - 2;
    for (int i = 0; i < batch; i++) {
        dim[i] = like.dim[i];
        flat[0] = dim_mul(p, flat[0], dim[i]);
    }
    for (int i = 0; i < 2; i++)
        dim[batch + i] = flat[1 + i] = t.dim[t.rank - 2 + i];
    if (t.rank != like.rank || !dims_equal(t.dim, dim, batch)) {
        Node *e = build(r->g, n, n->loc, OP_EXPAND, r->d, "vD", x, batch + 2, dim);
        if (!e)
            return NULL;
        x = e->out[0];
    }
    return build_view(r, n, x, flat, 3);
}

/* A vector as one row, or one column. */
static Value *as_matrix(Rewrite *r, Node *n, Value *x, bool row)
{
    if (x->type.rank != 1)
        return x;
    Dim dim[2] = {row ? DIM(1) : x->type.dim[0], row ? x->type.dim[0] : DIM(1)};
    return build_view(r, n, x, dim, 2);
}

/* The batch axes of a @ b, followed by two more. */
static Type batch_of(Program *p, Type a, Type b)
{
    int rank = a.rank > b.rank ? a.rank : b.rank;
    Dim *dim = NEW(p->arena, Dim, rank);
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - a.rank), ib = i - (rank - b.rank);
        Dim da = ia < 0 ? DIM(1) : a.dim[ia], db = ib < 0 ? DIM(1) : b.dim[ib];
        dim[i] = dim_equal(da, DIM(1)) ? db : da;
    }
    return (Type){.rank = rank, .dim = dim};
}

/* Vectors become matrices; a matrix on the right takes all rows at once; else a batch. */
bool decomp_matmul(Rewrite *r, Node *n)
{
    Value *a = as_matrix(r, n, n->in[0], true), *b = as_matrix(r, n, n->in[1], false);
    if (!a || !b)
        return false;
    if (a->type.rank < 2 || b->type.rank < 2)
        return diag_error(r->d, n->loc, "both operands need at least one axis");
    if (b->type.rank == 2)
        return as_recorded(r, n, build2(r, n, OP_MM, as_rows(r, n, a), b));
    Type like = batch_of(r->g->program, a->type, b->type);
    a = as_batch(r, n, a, like);
    b = a ? as_batch(r, n, b, like) : NULL;
    return as_recorded(r, n, build2(r, n, OP_BMM, a, b));
}

/* -- convolutions and pools ---------------------------------------------------------------- */

/* A list argument, one entry per spatial axis; a list of one stands for all. */
static Arg spatial(Program *p, const Node *n, int i, int count)
{
    const Arg *a = &n->arg[i];
    if (a->kind != ARG_LIST || a->list.n != 1 || count == 1)
        return *a;
    Arg *item = NEW(p->arena, Arg, count);
    for (int k = 0; k < count; k++)
        item[k] = a->list.item[0];
    return (Arg){.kind = ARG_LIST, .list = {item, count}};
}

/* What convolution takes beside the tensors. */
typedef struct ConvArgs {
    Arg stride, padding, dilation, output_padding, groups;
    bool transposed;
} ConvArgs;

static Arg repeated(Program *p, int64_t v, int count)
{
    Arg *item = NEW(p->arena, Arg, count + 1);
    for (int k = 0; k < count; k++)
        item[k] = (Arg){.kind = ARG_INT, .dim = DIM(v)};
    return (Arg){.kind = ARG_LIST, .list = {item, count}};
}

/* The forms for one and two axes take an input without batch; convolution does not. */
static bool convolve(Rewrite *r, Node *n, Value *x, const ConvArgs *a)
{
    Value *w = arg_value(n, 1), *b = arg_value(n, 2);
    if (x->type.rank == w->type.rank - 1) {
        Dim dim[MAX_RANK + 1] = {DIM(1)};
        memcpy(dim + 1, x->type.dim, (size_t)x->type.rank * sizeof *dim);
        x = build_view(r, n, x, dim, x->type.rank + 1);
    }
    Node *c = x ? build(r->g, n, n->loc, OP_CONVOLUTION, r->d, "vvvaaabaa", x, w, b, a->stride,
                        a->padding, a->dilation, a->transposed, a->output_padding, a->groups)
                : NULL;
    return c && as_recorded(r, n, c->out[0]);
}

bool decomp_conv(Rewrite *r, Node *n)
{
    Program *p = r->g->program;
    int axes = arg_value(n, 1)->type.rank - 2;
    ConvArgs a = {spatial(p, n, 3, axes), spatial(p, n, 4, axes), spatial(p, n, 5, axes),
                  repeated(p, 0, axes), n->arg[6], false};
    return convolve(r, n, n->in[0], &a);
}

bool decomp_conv_transpose(Rewrite *r, Node *n)
{
    Program *p = r->g->program;
    int axes = arg_value(n, 1)->type.rank - 2;
    ConvArgs a = {spatial(p, n, 3, axes), spatial(p, n, 4, axes), spatial(p, n, 7, axes),
                  spatial(p, n, 5, axes), n->arg[6], true};
    return convolve(r, n, n->in[0], &a);
}

/* "same" adds dilation * (kernel - 1) zeros per axis, the odd one behind.  The convolution pads
 * both sides alike; where that does not do, all zeros are written by a node of their own. */
bool decomp_conv_padding(Rewrite *r, Node *n)
{
    Program *p = r->g->program;
    const Type w = arg_value(n, 1)->type;
    int axes = w.rank - 2;
    int64_t dilation[MAX_RANK], pad[2 * MAX_RANK] = {0};
    Arg spread = spatial(p, n, 5, axes), *half = NEW(p->arena, Arg, axes + 1);
    bool is_odd = false, is_same = !strcmp(n->arg[4].str, "same");
    for (int i = 0; i < axes; i++) {
        dilation[i] = spread.list.item[i].dim.value;
        int64_t total = is_same ? dilation[i] * (w.dim[2 + i].value - 1) : 0;
        pad[2 * (axes - 1 - i)] = total / 2;
        pad[2 * (axes - 1 - i) + 1] = total - total / 2;
        half[i] = (Arg){.kind = ARG_INT, .dim = DIM(total / 2)};
        is_odd = is_odd || total % 2;
    }
    ConvArgs a = {spatial(p, n, 3, axes), {.kind = ARG_LIST, .list = {half, axes}}, spread,
                  repeated(p, 0, axes), n->arg[6], false};
    if (!is_odd)
        return convolve(r, n, n->in[0], &a);
    Node *padded = build(r->g, n, n->loc, OP_CONSTANT_PAD_ND, r->d, "vIi", n->in[0], 2 * axes, pad,
                         (int64_t)0);
    a.padding = repeated(p, 0, axes);
    return padded && convolve(r, n, padded->out[0], &a);
}

bool decomp_batch_norm(Rewrite *r, Node *n)
{
    if (arg_bool(n, 5))
        return diag_unsupported(r->d, n->loc, "batch norm in training mode would change its "
                                              "running statistics: export the model in eval mode");
    if (!arg_value(n, 3) || !arg_value(n, 4))
        return diag_unsupported(r->d, n->loc, "batch norm without running statistics");
    if (n->in[0]->type.rank < 2) /* torch takes it where there is no element */
        return rewrite_node(r, n, n->in[0]);
    return done(r, n, build(r->g, n, n->loc, OP__NATIVE_BATCH_NORM, r->d, "vvvvvaa",
                            arg_value(n, 0), arg_value(n, 1), arg_value(n, 2), arg_value(n, 3),
                            arg_value(n, 4), n->arg[6], n->arg[7]));
}

bool decomp_max_pool2d(Rewrite *r, Node *n)
{
    return done(r, n, build(r->g, n, n->loc, OP_MAX_POOL2D_WITH_INDICES, r->d, "vaaaaa", n->in[0],
                            n->arg[1], n->arg[2], n->arg[3], n->arg[4], n->arg[5]));
}

/* One output per plane is a mean; equal windows are an average pool; else windows vary. */
bool decomp_adaptive_avg_pool2d(Rewrite *r, Node *n)
{
    static const int64_t plane[] = {-2, -1};
    Value *x = n->in[0];
    Type t = x->type, y = n->out[0]->type;
    int64_t kernel[2];
    bool divides = true;
    for (int i = 0; i < 2; i++) {
        Dim in = t.dim[t.rank - 2 + i], out = y.dim[y.rank - 2 + i];
        divides = divides && !in.expr && !out.expr && out.value > 0 && in.value % out.value == 0;
        kernel[i] = divides ? in.value / out.value : 0;
    }
    if (dims_equal(t.dim, y.dim, t.rank))
        return rewrite_node(r, n, x);
    if (dim_equal(y.dim[y.rank - 2], DIM(1)) && dim_equal(y.dim[y.rank - 1], DIM(1)))
        return done(r, n, build(r->g, n, n->loc, OP_MEAN_DIM, r->d, "vIb", x, 2, plane, true));
    if (divides)
        return done(r, n, build(r->g, n, n->loc, OP_AVG_POOL2D, r->d, "vII", x, 2, kernel, 2,
                                kernel));
    return done(r, n, build(r->g, n, n->loc, OP__ADAPTIVE_AVG_POOL2D, r->d, "va", x, n->arg[1]));
}

/* -- the rest ------------------------------------------------------------------------------ */

/* mean(x), sum(x) ==> over all axes */
bool decomp_mean_default(Rewrite *r, Node *n)
{
    OpId op = n->op == OP_SUM_DEFAULT ? OP_SUM_DIM : OP_MEAN_DIM;
    int64_t axis[MAX_RANK];
    Value *x = n->in[0];
    for (int i = 0; i < x->type.rank; i++)
        axis[i] = i;
    return done(r, n, build(r->g, n, n->loc, op, r->d, "vIba", x, x->type.rank, axis, false,
                            n->arg[1]));
}

/* narrow(x, dim, start, length) ==> x[start : start + length] */
bool decomp_narrow(Rewrite *r, Node *n)
{
    Program *p = r->g->program;
    Value *x = n->in[0];
    int64_t axis, lo, hi;
    Dim start, length;
    if (!arg_int(n, 1, &axis) || !arg_dim(n, 2, &start) || !arg_dim(n, 3, &length))
        return diag_unsupported(r->d, n->loc, "its bounds are not known before the call");
    axis += axis < 0 ? x->type.rank : 0;
    dim_range(start, &lo, &hi);
    if (hi < 0)
        start = dim_add(p, x->type.dim[axis], start);
    else if (lo < 0)
        return diag_unsupported(r->d, n->loc, "its start may be of either sign");
    return done(r, n, build(r->g, n, n->loc, OP_SLICE, r->d, "viddi", x, axis, start,
                            dim_add(p, start, length), (int64_t)1));
}

/* -- checks -------------------------------------------------------------------------------- */

/* Whether the recorded type proves what aten._assert_tensor_metadata asserts. */
static bool is_proven(const Node *n)
{
    Dim size[MAX_RANK];
    Type t = n->in[0]->type;
    if (n->arg[3].kind == ARG_DTYPE && n->arg[3].dtype != t.dtype)
        return false;
    if (n->arg[1].kind != ARG_LIST)
        return true;
    return arg_dims(n, 1, size, MAX_RANK) && arg_count(n, 1) == t.rank &&
           dims_equal(size, t.dim, t.rank);
}

static bool drop_check(Rewrite *r, Node *n)
{
    if (n->op == OP__ASSERT_TENSOR_METADATA && !is_proven(n))
        return diag_error(r->d, n->loc, "asserts a dtype or size that its input does not have");
    graph_remove(r->g, n);
    return true;
}

/* -- the walk ------------------------------------------------------------------------------ */

static DecompFn *const decomposition[N_OPS] = {
#define OP(id, target, out, schema, flags, functional, inplace, infer, decomp, kernel, expr, c,  \
           cost, scratch, quant)                                                                 \
    [OP_##id] = decomp_##decomp,
#include "ir/ops.def"
};

static bool is_taken(const Program *p, OpId op)
{
    const OpInfo *row = &op_info[op];
    bool waits = p->stage == STAGE_ATEN && (row->flags & CUT || p->n_backends);
    return p->tail == TAIL_PTE ? row->out != NULL || waits : strcmp(row->c, "none") != 0;
}

static bool is_composite(const Program *p, OpId op)
{
    const OpInfo *row = &op_info[op];
    return row->has_decomp && !(row->flags & KEEP && is_taken(p, op));
}

static void drop_strides(Graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        value_set_type(g->in[i], type_plain(g->in[i]->type));
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            value_set_type(n->out[i], type_plain(n->out[i]->type));
}

static bool decompose_graph(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        Node *before = n->prev;
        next = n->next;
        rewrite_inputs(&r, n);
        if (op_info[n->op].flags & CHECK) {
            ok = drop_check(&r, n) && ok;
        } else if (is_composite(g->program, n->op)) {
            bool is_wide = op_info[n->op].flags & WIDENS && node_has_halves(n);
            bool made = is_wide ? rewrite_widened(&r, n, NULL) : decomposition[n->op](&r, n);
            ok = made && ok;
            if (made) /* look at what was built in its place */
                next = before ? before->next : g->first;
        }
    }
    rewrite_finish(&r);
    drop_strides(g);
    return ok;
}

bool pass_decompose(Program *p, Arena *tmp, Diag *d)
{
    if (!each_graph(p, decompose_graph, tmp, d))
        return false;
    p->stage = STAGE_CORE;
    p->edits++;
    return true;
}
