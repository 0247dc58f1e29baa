/* fuse_integers.c -- computes products between dequantize and quantize in integers, for C.
 *
 * Stage core, after pass quantize.  Two walks in the order of the graph look at each node once.
 * The last rule belongs to the second walk, which also gives each pointwise reader a dequantize of
 * its own, so that loops read bytes:
 *
 *   product(dequantize(x), dequantize(w), b)  ==>  etc.integer_*(x, w, b)      floats result
 *   clamp(etc.integer_*(...))                 ==>  the same with the clamp     read once
 *   quantize(etc.integer_*(...))              ==>  the same with integers      read once
 *   mover(dequantize(x))                      ==>  dequantize(mover(x))        per tensor
 *   order(dequantize(x))                  ==>  order(x), dequantized       argmax, max, topk, sort
 *   quantize(dequantize(x))                   ==>  x                           of the same scale
 *   quantize(clamp(dequantize(etc.integer_*)))  ==>  the same with another range   read once
 *   quantize(mean(dequantize(x)))         ==>  etc.integer_avg_pool2d(x)       read once
 *   quantize(sum(dequantize(x)))          ==>  the same with another scale     read once
 *   quantize(softmax(dequantize(x)))      ==>  etc.integer_softmax(x)          read once
 *   quantize(log_softmax(dequantize(x)))  ==>  the same with factors of logarithms   read once
 *   softmax(dequantize(x))                ==>  the same with floats result     otherwise
 *
 * A product is linear, addmm, mm or a convolution.  w is a constant of 8 bits with zero points
 * 0.  x has one scale, known or computed at run time, or for a matrix one per row.  A mean is
 * over the last axes (in fixed point over any axes) or over windows, of known size.  Only
 * products, means and softmax round differently from before.  A softmax is fused only for
 * targets that compute in fixed point.  Dequantize nodes that nobody reads any more are removed
 * by dce. */
#include "passes/internal.h"
#include "ir/eval.h"
#include "ir/session.h"
#include <math.h>
#include <string.h>

/* The most terms of a sum, which must not leave 32 bits (kernels/integer.h), and of a mean's, which
 * is exact as a float. */
enum { MOST_TERMS = 65536, MOST_PIXELS = 65536 };

typedef struct Fuse {
    Rewrite r;
    Uses u;
} Fuse;

/* -- reading --------------------------------------------------------------------------------- */

static bool is_byte(EtcDtype t)
{
    return t == ETC_I8 || t == ETC_U8;
}

static int64_t least_of(EtcDtype t)
{
    return t == ETC_U8 ? 0 : -128;
}

bool read_byte_points(const Node *n, bool undoes, QParams *p)
{
    return n && qparams_read(n, p) && p->kind == Q_TENSOR && !p->scales && p->undoes == undoes &&
           is_byte(p->dtype) && p->scale > 1e-30 && p->scale < 1e30 &&
           p->zero >= least_of(p->dtype) && p->zero <= least_of(p->dtype) + 255;
}

Value *read_dequantize(const Value *v, QParams *p)
{
    return v && v->type.dtype == ETC_F32 && read_byte_points(v->def, true, p) ? p->x : NULL;
}

/* -- weights --------------------------------------------------------------------------------- */

typedef struct Weight {
    const Value *v;     /* integers of 8 bits */
    bool is_transposed; /* [k, channels] */
    int64_t n, k;       /* channels, terms */
    double *scale;      /* per channel */
} Weight;

/* Returns whether n exchanges the rows and columns of a matrix. */
static bool is_transpose(const Node *n, Permute *p)
{
    return n && permute_read(n, p) && p->rank == 2 && permute_swaps_last(p);
}

/* Reads a dequantize by numbers, or by constants for each channel. */
static bool read_fixed(const Value *v, QParams *q)
{
    return v && v->def && qparams_read(v->def, q) && q->undoes &&
           (q->kind == Q_CHANNEL || (q->kind == Q_TENSOR && !q->scales));
}

/* Sets *scale to the scale of channel i; false: its zero point is not 0, or they are not known. */
static bool scale_of(const QParams *q, int64_t i, double *scale)
{
    const Value *zeros = q->zeros;
    *scale = q->scale;
    if (!q->scales)
        return q->zero == 0;
    if (!value_is_known(q->scales) || (zeros && !value_is_known(zeros)) || i >= type_numel(q->scales->type))
        return false;
    *scale = value_number(q->scales, i);
    return !zeros || (i < type_numel(zeros->type) && value_number(zeros, i) == 0);
}

/* Reads the weight of a product, [channels, ...] or where `by_columns` [k, channels].  False: it is
 * not one of integers with known scales. */
static bool read_weight(const Fuse *f, const Value *v, bool by_columns, Weight *w)
{
    Permute turn;
    QParams q;
    bool turned = by_columns && is_transpose(v->def, &turn);
    v = turned ? turn.x : v;
    if (!read_fixed(v, &q) || v->type.dtype != ETC_F32)
        return false;
    *w = (Weight){.v = q.x, .is_transposed = by_columns && !turned};
    int axis = w->is_transposed ? 1 : 0;
    if ((q.kind == Q_CHANNEL && q.axis != axis) || q.dtype != ETC_I8 || !value_is_known(w->v) ||
        w->v->type.rank < 2)
        return false;
    w->n = w->v->type.dim[axis].value;
    w->k = w->n ? type_numel(w->v->type) / w->n : 0;
    w->scale = NEW(f->r.tmp, double, w->n + 1);
    for (int64_t i = 0; i < w->n; i++)
        if (!scale_of(&q, i, &w->scale[i]))
            return false;
    return w->k > 0 && w->k <= MOST_TERMS;
}

/* Returns the weight with a row for each channel. */
static Value *weight_rows(Fuse *f, const Weight *w)
{
    const int8_t *from = state_elements(w->v->state);
    Program *p = f->r.g->program;
    if (!w->is_transposed)
        return graph_state(f->r.g, w->v->state);
    int8_t *to = arena_bytes(p->arena, (size_t)(w->n * w->k));
    for (int64_t c = 0; c < w->n; c++)
        for (int64_t i = 0; i < w->k; i++)
            to[c * w->k + i] = from[i * w->n + c];
    Dim dim[2] = {DIM(w->n), DIM(w->k)};
    return graph_const_like(f->r.g, w->v->state, "_rows", type_tensor(p, ETC_I8, 2, dim), to);
}

static Value *channel_sums(Fuse *f, const Weight *w, const Value *rows)
{
    Program *p = f->r.g->program;
    Dim dim = DIM(w->n);
    const int8_t *at = state_elements(rows->state);
    int32_t *to = NEW(p->arena, int32_t, w->n);
    for (int64_t c = 0; c < w->n; c++)
        for (int64_t i = 0; i < w->k; i++)
            to[c] += *at++;
    return graph_const_like(f->r.g, w->v->state, "_sums", type_tensor(p, ETC_I32, 1, &dim), to);
}

static Value *channel_scales(Fuse *f, const Weight *w, double by)
{
    Program *p = f->r.g->program;
    Dim dim = DIM(w->n);
    float *to = NEW(p->arena, float, w->n);
    for (int64_t c = 0; c < w->n; c++)
        to[c] = (float)(by * w->scale[c]);
    return graph_const_like(f->r.g, w->v->state, "_scales", type_tensor(p, ETC_F32, 1, &dim), to);
}

/* -- operands -------------------------------------------------------------------------------- */

typedef struct Input {
    Value *x, *scale, *zero; /* scale and zero point if they are computed at run time, else NULL */
    double by;               /* the known scale, or 1 */
    int64_t at;              /* the known zero point */
} Input;

/* Reads the input of a product; `has_rows`: each row may have a scale.  False: it is not
 * dequantized from bytes. */
static bool read_input(const Value *v, bool has_rows, Input *in)
{
    QParams p;
    *in = (Input){.x = read_dequantize(v, &p), .by = 1};
    if (in->x) {
        in->by = p.scale;
        in->at = p.zero;
        return true;
    }
    if (!v->def || v->type.dtype != ETC_F32 || !qparams_read(v->def, &p) || !p.undoes ||
        p.kind == Q_CHANNEL || (p.kind == Q_TOKEN && !has_rows))
        return false;
    *in = (Input){p.x, p.scales, p.zeros, 1, 0};
    in->at = p.dtype == ETC_U8 ? 128 : 0; /* it is not read */
    return is_byte(p.dtype) && in->scale && in->zero &&
           (in->scale->type.dtype == ETC_F32 || in->scale->type.dtype == ETC_F64) &&
           dtype_is_int(in->zero->type.dtype) && in->zero->type.dtype <= ETC_I64;
}

/* Reads a bias of one float per channel, or a constant of integers that is dequantized. */
static bool read_bias(Fuse *f, Value *v, const Weight *w, Value **bias)
{
    *bias = v;
    if (!v)
        return true;
    if (v->type.dtype != ETC_F32 || v->type.rank != 1 || !dim_equal(v->type.dim[0], DIM(w->n)))
        return false;
    QParams q;
    double scale;
    if (!read_fixed(v, &q) || !value_is_known(q.x))
        return true;
    float *to = NEW(f->r.g->program->arena, float, w->n);
    for (int64_t c = 0; c < w->n; c++) {
        if (!scale_of(&q, c, &scale))
            return true; /* it stays as it is */
        to[c] = (float)value_number(q.x, c) * (float)scale;
    }
    *bias = graph_const_like(f->r.g, w->v->state, "_bias", type_plain(v->type), to);
    return true;
}

/* -- products -------------------------------------------------------------------------------- */

/* Builds a product of integers whose result is floats, without a clamp; c is NULL if it is no
 * convolution. */
static Node *build_product(Fuse *f, Node *n, const Conv *c, const Input *in, const Weight *w,
                           Value *bias)
{
    Value *rows = weight_rows(f, w), *sums = channel_sums(f, w, rows);
    Value *scales = channel_scales(f, w, in->by);
    int64_t zero = 0;
    double inf = (double)INFINITY;
    if (c)
        return build(f->r.g, n, n->loc, OP_INTEGER_CONVOLUTION, f->r.d, "vvvIIIivvvviffniiit",
                     in->x, rows, bias, c->axes, c->stride, c->axes, c->pad, c->axes, c->dilation,
                     c->groups, sums, scales, in->scale, in->zero, in->at, -inf, inf, zero, zero,
                     zero, ETC_F32);
    return build(f->r.g, n, n->loc, OP_INTEGER_LINEAR, f->r.d, "vvvvvvviffniiit", in->x, rows, bias,
                 sums, scales, in->scale, in->zero, in->at, -inf, inf, zero, zero, zero, ETC_F32);
}

static bool fuse_product(Fuse *f, Node *n)
{
    Conv c;
    Input in;
    Weight w;
    Weighted v;
    Value *bias;
    if (!weighted_read(n, &v) || v.is_scaled ||
        (v.is_conv && (v.w_axis || v.x->type.rank > 4 || !conv_read(n, &c))) ||
        !read_input(v.x, !v.is_conv, &in) ||
        !read_weight(f, v.w, !v.is_conv && v.w_axis, &w) || !read_bias(f, v.bias, &w, &bias))
        return true;
    Node *y = build_product(f, n, v.is_conv ? &c : NULL, &in, &w, bias);
    return y && rewrite_node(&f->r, n, y->out[0]);
}

/* -- what follows a product ------------------------------------------------------------------ */

/* Returns whether n is a linear layer or convolution of integers: nothing else takes sums of
 * weights. */
static bool is_product(const Node *n)
{
    return n && arg_find(n, "sums") >= 0;
}

static Node *product_of(const Value *v)
{
    return v && v->type.dtype == ETC_F32 && is_product(v->def) ? v->def : NULL;
}

static bool read_clamp(const Node *n, Clamp *c)
{
    return clamp_read(n, c) && c->lo <= c->hi;
}

static void set_number(Node *n, const char *name, double v)
{
    node_set_arg(n, arg_find(n, name), (Arg){.kind = ARG_FLOAT, .f = v});
}

static void set_int(Node *n, const char *name, int64_t v)
{
    node_set_arg(n, arg_find(n, name), (Arg){.kind = ARG_INT, .dim = DIM(v)});
}

static bool fuse_clamp(Fuse *f, Node *n, Node *product, const Clamp *c)
{
    double had[2] = {0, 0};
    arg_number(product, "lo", &had[0]);
    arg_number(product, "hi", &had[1]);
    if (had[0] != -(double)INFINITY || had[1] != (double)INFINITY)
        return true;
    set_number(product, "lo", c->lo);
    set_number(product, "hi", c->hi);
    return rewrite_node(&f->r, n, product->out[0]);
}

static bool fuse_quantize(Fuse *f, Node *n, Node *product, const QParams *p)
{
    Value *y = product->out[0];
    Type t = y->type;
    set_number(product, "output_scale", p->scale);
    set_int(product, "output_zero", p->zero);
    set_int(product, "quant_min", p->lo);
    set_int(product, "quant_max", p->hi);
    node_set_arg(product, arg_find(product, "dtype"), (Arg){.kind = ARG_DTYPE, .dtype = p->dtype});
    t.dtype = p->dtype;
    value_set_type(y, t);
    return rewrite_node(&f->r, n, y);
}

/* Returns the integer nearest to v, of two the even one; |v| is at most 2^51.  It does not need
 * libm, which would have to be loaded. */
static int64_t nearest(double v)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: sums have no bits below 1 */
    return (int64_t)(v + shift - shift);
}

/* -- movers ---------------------------------------------------------------------------------- */

/* Sets *q to the integer that the number of a border is; in fixed point it is the nearest.  Returns
 * false if it is none. */
static bool read_border(const Node *n, const QParams *p, int64_t *q)
{
    double v = 0;
    if (!arg_number(n, "value", &v))
        return false;
    double at = v / p->scale + (double)p->zero;
    if (n->graph->program->session->is_fixed_point && at > -256 && at < 512)
        at = (double)nearest(at);
    *q = (int64_t)(at >= -256 && at <= 256 ? at : 512);
    return at == (double)*q && *q >= least_of(p->dtype) && *q <= least_of(p->dtype) + 255;
}

/* Returns whether all operands are dequantized with the same qparams.  Constants do not count,
 * because they stay as they are. */
static bool read_operands(const Node *n, QParams *p)
{
    QParams other;
    for (int i = 0; i < n->n_in; i++) {
        const Value *x = read_dequantize(n->in[i], i ? &other : p);
        if (!x || value_is_known(x) || (i && !qparams_equal(p, &other)))
            return false;
    }
    return n->n_in > 0;
}

/* Inserts a copy of n before it, of integers instead of dequantized floats: operands and results. */
static Node *of_integers(Fuse *f, Node *n, EtcDtype dtype)
{
    Graph *g = f->r.g;
    QParams q;
    Node *of = node_like(g, n);
    for (int i = 0; i < n->n_args; i++)
        node_push(of, arg_moved(of, n, n->arg[i]));
    for (int i = 0; i < n->n_in; i++) {
        Value *x = read_dequantize(n->in[i], &q);
        node_set_in(of, i, x ? x : n->in[i]);
    }
    for (int i = 0; i < n->n_out; i++) {
        const int number = graph_number(g) + 1;
        Type t = n->out[i]->type;
        t.dtype = t.dtype == ETC_F32 ? dtype : t.dtype;
        node_add_out(of, arena_numbered(g->program->arena, n->out[i]->name, ".", number), t);
    }
    graph_insert(g, n, of);
    return of;
}

static bool sink_dequantize(Fuse *f, Node *n, const QParams *p)
{
    int64_t border = 0;
    const bool is_padding = n->op == OP_CONSTANT_PAD_ND;
    if (is_padding && !read_border(n, p, &border))
        return true;
    const Node *from = first_operand(n)->def;
    Node *move = of_integers(f, n, p->dtype);
    if (is_padding)
        node_set_arg(move, arg_of(move, "value"), (Arg){.kind = ARG_INT, .dim = DIM(border)});
    Value *y = qparams_build(f->r.g, n, from->loc, move->out[0], p, f->r.d);
    return y && rewrite_node(&f->r, n, y);
}

/* Finds or sorts the greatest integers instead of floats: scales are positive, so the order and what is
 * equal stay. */
static bool order_integers(Fuse *f, Node *n, const QParams *p)
{
    Node *of = of_integers(f, n, p->dtype);
    for (int i = 0; i < n->n_out; i++) {
        Value *y = of->out[i];
        if (n->out[i]->type.dtype == ETC_F32 &&
            !(y = qparams_build(f->r.g, n, n->loc, y, p, f->r.d)))
            return false;
        rewrite_result(&f->r, n, i, y);
    }
    graph_remove(f->r.g, n);
    return true;
}

/* -- means ----------------------------------------------------------------------------------- */

/* A mean as an average pool: its windows, and x and the result as images. */
typedef struct Mean {
    const Node *node;
    Value *x;
    Dim image[4];
    bool is_sum;    /* it is not divided by the number of elements */
    bool is_viewed; /* x must be viewed as `image` first, and the result as the node's result */
    bool is_turned; /* before that, x must be permuted to the order of `axis` */
    int64_t axis[MAX_RANK];
    Pool of;
} Mean;

static bool sizes_known(Type t, int from)
{
    for (int i = from; i < t.rank; i++)
        if (t.dim[i].expr || t.dim[i].value < 1)
            return false;
    return true;
}

/* Returns the number of axes whose mean it is; these are the last axes of x, or of x permuted so.
 * 0: it is no such mean. */
static int last_axes(Mean *m)
{
    Reduce r;
    int64_t axis[MAX_RANK];
    if (!reduce_read(m->node, &r) || m->node->out[0]->type.dtype != ETC_F32)
        return 0;
    const int count = reduce_list(&r, axis), rank = r.x->type.rank;
    m->is_turned = r.axes != (1u << rank) - (1u << (rank - count));
    for (int i = 0, stays = 0, goes = rank - count; i < rank; i++)
        m->axis[r.axes >> i & 1 ? goes++ : stays++] = i;
    return m->is_turned && !m->node->graph->program->session->is_fixed_point ? 0 : count;
}

/* Reads a mean over axes: x is viewed as [1, rows, 1, row], and one window takes a whole row. */
static bool read_axes(const Fuse *f, Mean *m)
{
    const Type t = m->x->type;
    Program *p = f->r.g->program;
    Dim dim[MAX_RANK];
    int axes = last_axes(m);
    if (!axes || !type_is_dense(p, t) || !sizes_known(t, m->is_turned ? 0 : t.rank - axes))
        return false;
    for (int i = 0; i < t.rank; i++)
        dim[i] = t.dim[m->axis[i]];
    Type rows = t, row = t;
    rows.rank = t.rank - axes;
    rows.dim = dim;
    row.rank = axes;
    row.dim = dim + rows.rank;
    m->image[0] = m->image[2] = DIM(1);
    m->image[1] = dims_numel(p, rows);
    m->image[3] = dims_numel(p, row);
    m->is_viewed = true;
    m->of.kernel[0] = 1;
    m->of.kernel[1] = m->image[3].value;
    memcpy(m->of.stride, m->of.kernel, sizeof m->of.stride);
    return m->of.kernel[1] > 0;
}

/* Reads an adaptive pool whose windows are alike, because the sizes of x are multiples of those of
 * the result. */
static bool read_adaptive(Mean *m)
{
    const Type x = m->x->type, y = m->node->out[0]->type;
    if (!sizes_known(x, x.rank - 2) || !sizes_known(y, y.rank - 2))
        return false;
    for (int i = 0; i < 2; i++) {
        int64_t in = x.dim[x.rank - 2 + i].value, out = y.dim[y.rank - 2 + i].value;
        m->of.kernel[i] = m->of.stride[i] = in / out;
        if (in % out)
            return false;
    }
    return true;
}

/* Returns whether v is a mean of windows of integers, and reads it. */
static bool read_mean(const Fuse *f, const Value *v, QParams *from, Mean *m)
{
    const Node *n = v->def;
    int64_t size;
    if (!n || n->n_in < 1)
        return false;
    *m = (Mean){.node = n, .x = read_dequantize(first_operand(n), from),
                .of = {.counts_pad = true}, .is_sum = n->op == OP_SUM_DIM};
    if (!m->x || value_is_known(m->x))
        return false;
    bool ok = n->op == OP_MEAN_DIM || m->is_sum    ? read_axes(f, m)
              : n->op == OP__ADAPTIVE_AVG_POOL2D ? read_adaptive(m)
              : pool_read(n, &m->of) && !m->of.is_max;
    return ok && mul_ok(m->of.kernel[0], m->of.kernel[1], &size) && size <= MOST_PIXELS;
}

static bool fuse_mean(Fuse *f, Node *n, const Mean *m, const QParams *from, const QParams *to)
{
    Graph *g = f->r.g;
    const Pool *w = &m->of;
    Arg none = {.kind = ARG_NONE}, divisor = {.kind = ARG_INT, .dim = DIM(w->divisor)};
    Value *x = m->is_turned ? build_permute(&f->r, n, m->x, m->axis) : m->x;
    x = x && m->is_viewed ? build_view(&f->r, n, x, m->image, 4) : x;
    const double terms = m->is_sum ? (double)w->kernel[1] : 1;
    if (!x)
        return false;
    Node *y = build(g, n, m->node->loc, OP_INTEGER_AVG_POOL2D, f->r.d, "vIIIbbaifiiit", x, 2,
                    w->kernel, 2, w->stride, 2, w->pad, w->rounds_up, w->counts_pad,
                    w->divisor ? divisor : none, from->zero, from->scale * terms / to->scale, to->zero,
                    to->lo, to->hi, to->dtype);
    if (!y)
        return false;
    Type t = n->out[0]->type;
    Value *v = m->is_viewed ? build_view(&f->r, n, y->out[0], t.dim, t.rank) : y->out[0];
    return v && rewrite_node(&f->r, n, v);
}

/* -- the walk -------------------------------------------------------------------------------- */

/* Returns whether the range is all of the dtype. */
static bool is_whole(const QParams *p)
{
    return p->lo == least_of(p->dtype) && p->hi == p->lo + 255;
}

/* -- softmax --------------------------------------------------------------------------------- */

/* Returns e^(-d * scale) for d = 0, 1 ..., up to the last above 0, as integers of so few bits that
 * a row of them has a sum below 2^32. */
static Value *powers(Fuse *f, const Node *n, double scale, int64_t row)
{
    enum { COUNT = 256, BITS = 30 };
    Program *p = f->r.g->program;
    int32_t *to = NEW(p->arena, int32_t, COUNT);
    int bits = BITS, count = 0;
    while (row << bits >= INT64_C(1) << 32)
        bits--;
    for (; count < COUNT; count++) {
        to[count] = (int32_t)nearest(exact_exp(-scale * count) * (double)(INT64_C(1) << bits));
        if (!to[count])
            break;
    }
    Dim dim = DIM(count);
    const char *name = arena_printf(p->arena, "%s_powers", n->out[0]->name);
    return graph_state(f->r.g, program_const(p, name, "", type_tensor(p, ETC_I32, 1, &dim), to));
}

/* Returns the length of the rows that a softmax is of; 0: it is not known, or too large. */
static int64_t row_of(const Node *softmax, Type t, int64_t *dim)
{
    if (!arg_int(softmax, "dim", dim) || !type_is_static(t) || !t.rank)
        return 0;
    const int64_t row = t.dim[*dim < 0 ? *dim + t.rank : *dim].value;
    return row <= 65536 ? row : 0;
}

/* Factors of a softmax, see kernels/fixed_softmax.h; log_by is 0 or of a log_softmax. */
typedef struct ShareFactors {
    int64_t by, shift, log_by;
} ShareFactors;

/* Puts a softmax of bytes in n's place. */
static bool put_softmax(Fuse *f, Node *n, const Node *softmax, Value *x, double scale,
                        const QParams *to, ShareFactors by)
{
    int64_t dim;
    const int64_t row = row_of(softmax, x->type, &dim);
    Node *y = build(f->r.g, n, softmax->loc, OP_INTEGER_SOFTMAX, f->r.d, "vviiiiiiit", x,
                    powers(f, n, scale, row), dim, by.by, by.shift, to->zero, to->lo, to->hi, by.log_by,
                    to->dtype);
    return y && rewrite_node(&f->r, n, y->out[0]);
}

/* Returns the factors of results in steps of `step`; a shift of 0: they do not fit. */
static ShareFactors factors_of_shares(double step)
{
    int shift = 30;
    while (shift > 0 && (double)(INT64_C(1) << shift) / 65536 / step > 32768)
        shift--;
    return (ShareFactors){nearest((double)(INT64_C(1) << shift) / 65536 / step), shift, 0};
}

static ShareFactors factors_of_logs(double scale, double step)
{
    const double ln2 = 0.69314718055994531;
    int shift = 15;
    while (shift > 0 && (scale / step * (double)(1 << shift) > 32767 ||
                         ln2 / step * (double)(1 << shift) > 1048575))
        shift--;
    const double one = (double)(1 << shift) / step;
    return (ShareFactors){shift ? nearest(scale * one) : 0, shift, shift ? nearest(ln2 * one) : 0};
}

static bool is_log_softmax(const Node *n)
{
    return n->op == OP__LOG_SOFTMAX;
}

static bool fuse_softmax(Fuse *f, Node *n, const Node *softmax, Value *x, const QParams *from,
                         const QParams *to)
{
    int64_t dim;
    const ShareFactors by = is_log_softmax(softmax) ? factors_of_logs(from->scale, to->scale)
                                                    : factors_of_shares(to->scale);
    if (row_of(softmax, x->type, &dim) < 1 || by.shift < 1)
        return true;
    return put_softmax(f, n, softmax, x, from->scale, to, by);
}

static bool is_softmax(const Fuse *f, const Node *n)
{
    return f->r.g->program->session->is_fixed_point && n && !strcmp(op_c(n->op), "softmax");
}

/* Fuses a softmax of bytes whose floats are read, unless a quantize alone reads them: that one is
 * for look_quantize. */
static bool look_softmax(Fuse *f, Node *n)
{
    QParams from, to;
    int64_t dim;
    const QParams floats = {.scale = 1, .dtype = ETC_F32};
    Value *x = read_dequantize(arg_value(n, "self"), &from), *v = n->out[0];
    const Node *user = value_reader(&f->u, v);
    if (!x || is_log_softmax(n) || (user && read_byte_points(user, false, &to)) || row_of(n, x->type, &dim) < 1)
        return true;
    return put_softmax(f, n, n, x, from.scale, &floats, (ShareFactors){.shift = 1});
}

/* Returns the softmax or log_softmax of bytes that n, a quantize, alone reads; else NULL. */
static const Node *softmax_of(const Fuse *f, const Value *given, const QParams *to, Value **x,
                              QParams *from)
{
    const Node *s = to->x->def;
    if (!is_softmax(f, s) || !value_is_read_once(&f->u, given))
        return NULL;
    *x = read_dequantize(arg_value(s, "self"), from);
    return *x ? s : NULL;
}

static bool look_quantize(Fuse *f, Node *n, const Value *given)
{
    QParams to, from;
    Mean mean;
    if (!read_byte_points(n, false, &to) || to.x->type.dtype != ETC_F32)
        return true;
    Node *product = product_of(to.x);
    if (product && value_is_read_once(&f->u, given))
        return fuse_quantize(f, n, product, &to);
    if (value_is_read_once(&f->u, given) && read_mean(f, to.x, &from, &mean))
        return fuse_mean(f, n, &mean, &from, &to);
    Value *x;
    const Node *softmax = softmax_of(f, given, &to, &x, &from);
    if (softmax)
        return fuse_softmax(f, n, softmax, x, &from, &to);
    x = read_dequantize(to.x, &from);
    return !x || !is_whole(&to) || !qparams_equal(&to, &from) || rewrite_node(&f->r, n, x);
}

static bool look(Fuse *f, Node *n)
{
    QParams p;
    Clamp c;
    const Value *given = first_operand(n);
    rewrite_inputs(&f->r, n);
    if (read_byte_points(n, false, &p))
        return look_quantize(f, n, given);
    Node *product = n->n_in == 1 ? product_of(first_operand(n)) : NULL;
    if (product && value_is_read_once(&f->u, given) && read_clamp(n, &c))
        return fuse_clamp(f, n, product, &c);
    if (is_softmax(f, n))
        return look_softmax(f, n);
    if (!strcmp(op_c(n->op), "order"))
        return !read_dequantize(first_operand(n), &p) || order_integers(f, n, &p);
    if (node_keeps_floats(n))
        return !read_operands(n, &p) || sink_dequantize(f, n, &p);
    return fuse_product(f, n);
}

/* -- the second walk -------------------------------------------------------------------------- */

/* Returns the integer to which a number is quantized. */
static int64_t quantized(double v, const QParams *p)
{
    float by = (float)v * (float)(1 / p->scale);
    double lo = (double)(p->lo - p->zero), hi = (double)(p->hi - p->zero);
    double at = by > lo ? (double)by : lo;
    return nearest(at < hi ? at : hi) + p->zero;
}

static bool narrow(Fuse *f, Node *n, Node *product, const QParams *p, const Clamp *c)
{
    int64_t least = quantized(c->lo, p), most = quantized(c->hi, p), had[2];
    if (!arg_int(product, "quant_min", &had[0]) ||
        !arg_int(product, "quant_max", &had[1]) || least > had[1] ||
        most < had[0])
        return true;
    set_int(product, "quant_min", least > had[0] ? least : had[0]);
    set_int(product, "quant_max", most < had[1] ? most : had[1]);
    return rewrite_node(&f->r, n, product->out[0]);
}

/* quantize(clamp(dequantize(product))) of one scale ==> the product with another range */
static bool look_range(Fuse *f, Node *n)
{
    QParams to, from;
    Clamp c;
    if (!read_byte_points(n, false, &to) || !is_whole(&to) || !to.x->def ||
        !value_is_read_once(&f->u, to.x) || !read_clamp(to.x->def, &c) || !value_is_read_once(&f->u, c.x))
        return true;
    Value *y = read_dequantize(c.x, &from);
    bool fits = y && is_product(y->def) && value_is_read_once(&f->u, y) &&
                qparams_equal(&to, &from);
    return !fits || narrow(f, n, y->def, &to, &c);
}

/* Gives a loop that is to read bytes a dequantize of its own if another node reads the floats
 * too. */
static bool own_dequantize(Fuse *f, Node *n)
{
    QParams p;
    for (int i = 0; i < n->n_in; i++) {
        Value *v = n->in[i], *x = read_dequantize(v, &p);
        if (!x || value_is_read_once(&f->u, v) || value_is_known(x))
            continue;
        Value *own = qparams_build(f->r.g, n, v->def->loc, x, &p, f->r.d);
        if (!own)
            return false;
        node_set_in(n, i, own);
    }
    return true;
}

static bool look_again(Fuse *f, Node *n)
{
    rewrite_inputs(&f->r, n);
    if (!look_range(f, n))
        return false;
    return !n->n_in || !node_is_pointwise(n) || own_dequantize(f, n);
}

static bool walk(Graph *g, Arena *tmp, Diag *d, bool visit(Fuse *f, Node *n))
{
    Fuse f = {rewrite_start(g, tmp, d), graph_uses(g, tmp)};
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        ok = visit(&f, n) && ok;
    }
    rewrite_finish(&f.r);
    return ok;
}

bool pass_fuse_integers(Graph *g, Arena *tmp, Diag *d)
{
    return walk(g, tmp, d, look) && walk(g, tmp, d, look_again);
}
