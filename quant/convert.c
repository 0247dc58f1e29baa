/* convert.c -- carries out the decisions of annotate: inserts quantize and dequantize around
 * values, and integer weights with a dequantize, in the forms that PT2E and torchao export.
 *
 *   a value with a known scale     quantize_per_tensor, dequantize_per_tensor
 *   dynamic, a scale per row       choose_qparams_per_token_asymmetric, quantize_per_token,
 *                                  dequantize_per_token
 *   dynamic, one scale             choose_qparams, quantize_per_tensor.tensor, dequantize_ ...
 *   weights                        dequantize_per_channel of i8; with groups, each group is a row
 *   embeddings                     rows of the i8 table are looked up, then dequantized
 *   halves                         _to_copy of f16
 *
 * These nodes compute with floats; a backend that takes such a node computes it in integers. */
#include "quant/internal.h"
#include "ir/session.h"
#include <math.h>
#include <string.h>

/* Products of one weight and one bias, as in the steps of a recurrent layer. */
typedef struct Shared {
    const Node *last; /* the last of them, whose moments count */
    const Value *bias;
    Value *weight, *correct_bias; /* what has been made of both; NULL: nothing yet */
} Shared;

typedef struct Convert {
    const Annotation *a;
    Graph *g;
    Arena *tmp;
    Diag *d;
    /* The values that replace a value, by its index, or NULL: for nodes with static or dynamic
     * scales, and for all other readers. */
    Value **static_of, **dynamic_of, **with;
    Shared **shared; /* by the index of a product's result; NULL: not for fixed point */
    Arena *node;    /* memory for one node */
    Arena *operand; /* memory for `gptq`, the factors of one operand */
    Gptq gptq;
    bool failed;
} Convert;

/* -- building ---------------------------------------------------------------------------------- */

static Value *first(Convert *c, Node *n)
{
    c->failed = c->failed || !n;
    return n ? n->out[0] : NULL;
}

static Loc loc_of(const Value *v)
{
    return v->def ? v->def->loc : (Loc){.node = v->name};
}

/* Returns the node after the one that computes v.  New nodes are inserted before it, so they
 * precede all readers of v. */
static Node *node_after(const Convert *c, const Value *v)
{
    return v->def ? v->def->next : c->g->first;
}

static Value *quantize_static(Convert *c, Value *v, const Point *p)
{
    Node *at = node_after(c, v);
    Value *q = first(c, build(c->g, at, loc_of(v), OP_QUANTIZE_PER_TENSOR, c->d, "vfiiit", v,
                              p->scale, p->zero, (int64_t)-128, (int64_t)127, ETC_I8));
    return q ? first(c, build(c->g, at, loc_of(v), OP_DEQUANTIZE_PER_TENSOR, c->d, "vfiiit", q,
                              p->scale, p->zero, (int64_t)-128, (int64_t)127, ETC_I8))
             : NULL;
}

static Value *quantize_per_token(Convert *c, Value *v)
{
    Node *at = node_after(c, v);
    const int64_t lo = -128, hi = 127;
    Node *of = build(c->g, at, loc_of(v), OP_CHOOSE_QPARAMS_PER_TOKEN, c->d, "vt", v, ETC_I8);
    Value *q = of ? first(c, build(c->g, at, loc_of(v), OP_QUANTIZE_PER_TOKEN, c->d, "vvviit", v,
                                   of->out[0], of->out[1], lo, hi, ETC_I8))
                  : NULL;
    return q ? first(c, build(c->g, at, loc_of(v), OP_DEQUANTIZE_PER_TOKEN, c->d, "vvviitt", q,
                              of->out[0], of->out[1], lo, hi, ETC_I8, ETC_F32))
             : first(c, NULL);
}

static Value *quantize_dynamic(Convert *c, Value *v)
{
    Node *at = node_after(c, v);
    const int64_t lo = -128, hi = 127;
    Node *of = build(c->g, at, loc_of(v), OP_CHOOSE_QPARAMS, c->d, "viift", v, lo, hi, 0x1p-23,
                     ETC_I8);
    Value *q = of ? first(c, build(c->g, at, loc_of(v), OP_QUANTIZE_PER_TENSOR_TENSOR, c->d,
                                   "vvviit", v, of->out[0], of->out[1], lo, hi, ETC_I8))
                  : NULL;
    return q ? first(c, build(c->g, at, loc_of(v), OP_DEQUANTIZE_PER_TENSOR_TENSOR, c->d, "vvviit",
                              q, of->out[0], of->out[1], lo, hi, ETC_I8))
             : first(c, NULL);
}

/* -- weights ----------------------------------------------------------------------------------- */

static Value *constant(Convert *c, const State *like, const char *part, EtcDtype t, int rank,
                       const Dim *dim, void *data)
{
    Program *p = c->g->program;
    State *s = program_const(p, arena_printf(p->arena, "%s%s", like->name, part),
                             arena_printf(p->arena, "%s%s", like->fqn, part),
                             type_tensor(p, t, rank, dim), data);
    return graph_state(c->g, s);
}

/* Returns the mean square of the activations that each weight is multiplied with.  NULL: it is
 * not known or not needed. */
static float *importance(Convert *c, const Node *n, const NodePlan *p)
{
    const Moments *m = moments_of(c->a, n);
    Geometry g;
    if (!m || !(p->choice.algorithms & ALG_SCALE_ESTIMATION) || !geometry_of(n, &g))
        return NULL;
    float *h = NEW(c->node, float, g.results * g.row + 1);
    for (int64_t i = 0; i < g.results * g.row; i++)
        h[i] = m->square[channel_at(&g, i)];
    return h;
}

/* Returns the state of GPTQ for these products, which is kept for the next node: queries, keys and
 * values read one operand.  Weights of few bits have products of their own. */
static const Gptq *gptq_for(Convert *c, const Products *p, int bits)
{
    if (c->gptq.of != p) {
        arena_reset(c->operand);
        c->gptq = gptq_of(p, bits, c->operand);
    }
    return &c->gptq;
}

static Ints integers_of(Convert *c, const Node *n, const NodePlan *p, const Value *w, int axis)
{
    assert(is_weight(w));
    const QuantFormat *f = &p->choice.weight;
    const unsigned algorithms = p->choice.algorithms;
    const float *from = state_elements(w->state), *h = importance(c, n, p);
    const Products *products = products_of(moments_of(c->a, n), n, f->bits);
    Geometry g;
    Ints k = ints_new(f, w, axis, c->g->program->arena);
    k.threads = c->g->program->session->quant->threads;
    ints_set_scales(&k, f, from, h);
    if (h)
        ints_fit_scales(&k, f, from, h);
    else if (algorithms & ALG_HQQ)
        ints_shrink_scales(&k, f, from);
    if (products && (algorithms & ALG_GPTQ) && geometry_of(n, &g))
        gptq_round(&k, from, &g, gptq_for(c, products, f->bits), c->node);
    else
        ints_round(&k, from);
    return k;
}

static void set_bias(Node *n, const Weighted *v, Value *bias)
{
    if (v->bias)
        node_set_in(n, v->bias_slot, bias);
    else
        node_set_arg(n, arg_of(n, "bias"), node_use(n, bias));
}

/* Subtracts from the bias what rounding the weights adds to the mean of each output channel
 * (Nagel et al. 2019, Data-Free Quantization Through Weight Equalization and Bias Correction,
 * 4.2).  The moments are those of `like`. */
static void correct_bias(Convert *c, Node *n, const Node *like, const NodePlan *p, const Weighted *v,
                         const Ints *k)
{
    const Moments *m = moments_of(c->a, like);
    const Value *bias = v->bias, *w = v->w;
    const State *s = bias ? bias->state : w->state;
    Geometry g;
    if (!m || !(p->choice.algorithms & ALG_BIAS_CORRECTION) || !geometry_of(n, &g) ||
        (bias && (!value_is_known(bias) || bias->type.dtype != ETC_F32 || type_numel(bias->type) != g.results)) ||
        (!bias && v->w_axis))
        return;
    const float *from = state_elements(w->state);
    double *sum = NEW(c->node, double, g.results + 1);
    for (int64_t i = 0; i < g.results * g.row; i++) {
        const double kept = (double)k->scale[i / k->inner % k->n] * k->q[i];
        sum[result_at(&g, i)] += (kept - (double)from[i]) * (double)m->mean[channel_at(&g, i)];
    }
    float *to = NEW(c->g->program->arena, float, g.results + 1);
    for (int64_t r = 0; r < g.results; r++)
        to[r] = (float)((bias ? (double)((const float *)state_elements(bias->state))[r] : 0) - sum[r]);
    set_bias(n, v, constant(c, s, bias ? "" : "_bias", ETC_F32, 1, &DIM(g.results), to));
}

static Value *weight_of_channels(Convert *c, Node *n, const Value *w, const Ints *k, int axis)
{
    assert(k->n == w->type.dim[axis].value);
    Value *q = constant(c, w->state, "_q", ETC_I8, w->type.rank, w->type.dim, k->q);
    Value *scale = constant(c, w->state, "_scale", ETC_F32, 1, &DIM(k->n), k->scale);
    return first(c, build(c->g, n, n->loc, OP_DEQUANTIZE_PER_CHANNEL, c->d, "vvniiit", q, scale,
                          (int64_t)axis, (int64_t)k->lo, (int64_t)k->hi, ETC_I8));
}

/* Groups are the rows of a matrix.  After dequantize they are viewed with the weight's sizes. */
static Value *weight_of_groups(Convert *c, Node *n, const Value *w, const Ints *k)
{
    const Dim dim[2] = {DIM(k->n), DIM(k->inner)};
    Value *q = constant(c, w->state, "_q", ETC_I8, 2, dim, k->q);
    Value *scale = constant(c, w->state, "_scale", ETC_F32, 1, dim, k->scale);
    Value *f = first(c, build(c->g, n, n->loc, OP_DEQUANTIZE_PER_CHANNEL, c->d, "vvniiit", q, scale,
                              (int64_t)0, (int64_t)k->lo, (int64_t)k->hi, ETC_I8));
    return f ? first(c, build(c->g, n, n->loc, OP_VIEW, c->d, "vD", f, w->type.rank, w->type.dim))
             : NULL;
}

/* Returns v as f16; a finite number that is too large becomes the largest one. */
static uint16_t bounded_half(float v)
{
    uint16_t h = half_of(v);
    return (h & 0x7fff) == 0x7c00 && isfinite(v) ? (uint16_t)(h - 1) : h;
}

static Value *weight_of_halves(Convert *c, Node *n, const Value *w)
{
    const int64_t all = type_numel(w->type);
    const float *from = state_elements(w->state);
    uint16_t *h = NEW(c->g->program->arena, uint16_t, all + 1);
    for (int64_t i = 0; i < all; i++)
        h[i] = bounded_half(from[i]);
    Value *v = constant(c, w->state, "_half", ETC_F16, w->type.rank, w->type.dim, h);
    Node *made = build(c->g, n, n->loc, OP__TO_COPY, c->d, "vt", v, ETC_F32);
    return first(c, made);
}

/* -- tables ------------------------------------------------------------------------------------ */

static Value *looked_up(Convert *c, Node *n, Value *table)
{
    int64_t padding = -1;
    arg_int(n, "padding_idx", &padding);
    return first(c, build(c->g, n, n->loc, OP_EMBEDDING, c->d, "vvi", table,
                          arg_value(n, "indices"), padding));
}

static Value *as_floats(Convert *c, Node *n, Value *v)
{
    return v ? first(c, build(c->g, n, n->loc, OP__TO_COPY, c->d, "vt", v, ETC_F32)) : NULL;
}

static Value *viewed(Convert *c, Node *n, Value *v, int rank, const Dim *dim)
{
    return v ? first(c, build(c->g, n, n->loc, OP_VIEW, c->d, "vD", v, rank, dim)) : NULL;
}

static Value *product(Convert *c, Node *n, Value *x, Value *y)
{
    return x && y ? first(c, build(c->g, n, n->loc, OP_MUL_TENSOR, c->d, "vv", x, y)) : NULL;
}

/* Multiplies each group of a row by its scale: x [.., groups * group] by [.., groups]. */
static Value *scaled_groups(Convert *c, Node *n, Value *x, Value *scale, int64_t groups)
{
    const Type t = n->out[0]->type;
    Dim dim[MAX_RANK + 1];
    assert(groups > 1);
    if (t.rank >= MAX_RANK)
        return first(c, NULL);
    memcpy(dim, t.dim, (size_t)t.rank * sizeof *dim);
    dim[t.rank] = DIM(t.dim[t.rank - 1].value / groups);
    dim[t.rank - 1] = DIM(groups);
    x = viewed(c, n, x, t.rank + 1, dim);
    dim[t.rank] = DIM(1);
    return viewed(c, n, product(c, n, x, viewed(c, n, scale, t.rank + 1, dim)), t.rank, t.dim);
}

/* Looks up rows of the table as integers, and converts only these rows to floats. */
static Value *rows_of_table(Convert *c, Node *n, const NodePlan *p)
{
    const Value *w = arg_value(n, "weight");
    const Ints k = integers_of(c, n, p, w, 0);
    const int64_t rows = w->type.dim[0].value, groups = k.n / rows;
    const Dim dim[2] = {DIM(rows), DIM(groups)};
    Value *q = constant(c, w->state, "_q", ETC_I8, 2, w->type.dim, k.q);
    Value *scale = constant(c, w->state, "_scale", ETC_F32, 2, dim, k.scale);
    Value *x = as_floats(c, n, looked_up(c, n, q)), *s = looked_up(c, n, scale);
    return groups == 1 ? product(c, n, x, s) : scaled_groups(c, n, x, s, groups);
}

static Value *halves_of_table(Convert *c, Node *n)
{
    Value *w = weight_of_halves(c, n, arg_value(n, "weight"));
    Node *cast = w ? w->def : NULL;
    Value *v = cast ? as_floats(c, n, looked_up(c, n, arg_value(cast, "self"))) : NULL;
    if (cast)
        graph_remove(c->g, cast);
    return v;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static bool same_choice(const NodePlan *p, const NodePlan *q)
{
    const QuantFormat *f = &p->choice.weight, *g = &q->choice.weight;
    return f->dtype == g->dtype && f->bits == g->bits && f->granularity == g->granularity &&
           f->group == g->group && p->choice.algorithms == q->choice.algorithms;
}

/* For targets with fixed point, finds the products that read one weight and one bias, and want the same
 * of it.  Weights that the algorithms have scaled are not shared. */
static void find_shared(Convert *c)
{
    const int n_values = c->a->n_values;
    Shared **first = NEW(c->tmp, Shared *, n_values + 1); /* by weight */
    Weighted v;
    c->shared = NEW(c->tmp, Shared *, n_values + 1);
    for (const Node *n = c->g->first; c->g->program->session->is_fixed_point && n; n = n->next) {
        const NodePlan *p = plan_of(c->a, n);
        if (!p || p->mode != MODE_STATIC || !weighted_read(n, &v) || v.w->index >= n_values)
            continue;
        Shared *s = first[v.w->index];
        if (!s) {
            s = first[v.w->index] = NEW(c->tmp, Shared, 1);
            *s = (Shared){.last = n, .bias = v.bias};
        }
        if (n->op == s->last->op && v.bias == s->bias && same_choice(p, plan_of(c->a, s->last))) {
            s->last = n;
            c->shared[n->out[0]->index] = s;
        }
    }
}

/* Gives n what an earlier product has made of its weight and bias. */
static void take_shared(const Shared *s, Node *n, const Weighted *v)
{
    node_set_in(n, v->w_slot, s->weight);
    if (s->correct_bias && s->correct_bias != s->bias)
        set_bias(n, v, s->correct_bias);
}

static void set_weight(Convert *c, Node *n, const NodePlan *p, const Weighted *v)
{
    const QuantFormat *f = &p->choice.weight;
    const Value *w = v->w;
    Shared *s = c->shared[n->out[0]->index];
    const Node *like = s ? s->last : n;
    Value *made;
    assert(p->mode != MODE_FLOAT);
    if (s && s->weight) {
        take_shared(s, n, v);
        return;
    }
    if (f->dtype == ETC_F16) {
        made = weight_of_halves(c, n, w);
    } else {
        const Ints k = integers_of(c, like, p, w, v->w_axis);
        correct_bias(c, n, like, p, v, &k);
        made = f->granularity == PER_GROUP ? weight_of_groups(c, n, w, &k)
                                           : weight_of_channels(c, n, w, &k, v->w_axis);
    }
    if (made)
        node_set_in(n, v->w_slot, made);
    if (s) {
        s->weight = made;
        s->correct_bias = arg_value(n, "bias");
    }
}

static Value *read_static(Convert *c, Value *v)
{
    const Point *p = point_of(c->a, v);
    if (!p)
        return v;
    if (!c->static_of[v->index])
        c->static_of[v->index] = quantize_static(c, v, p);
    return c->static_of[v->index];
}

static Value *read_dynamic(Convert *c, Value *v, const QuantFormat *f)
{
    Value *from = c->with[v->index] ? c->with[v->index] : v;
    if (!c->dynamic_of[v->index])
        c->dynamic_of[v->index] = f->granularity == PER_TOKEN ? quantize_per_token(c, from)
                                                              : quantize_dynamic(c, from);
    return c->dynamic_of[v->index];
}

static void convert_node(Convert *c, Node *n, const NodePlan *p)
{
    Value *v = NULL;
    Weighted w;
    const bool is_product = weighted_read(n, &w);
    if (is_product)
        set_weight(c, n, p, &w); /* it reads moments of the operands, which are replaced below */
    for (int i = 0; p->mode == MODE_STATIC && !p->head && i < n->n_in; i++)
        if ((v = read_static(c, n->in[i])))
            node_set_in(n, i, v);
    if (p->mode == MODE_DYNAMIC && is_product &&
        (v = read_dynamic(c, w.x, &p->choice.activation)))
        node_set_in(n, w.x_slot, v);
    if (n->op == OP_EMBEDDING)
        c->with[n->out[0]->index] = p->choice.weight.dtype == ETC_F16 ? halves_of_table(c, n)
                                                                      : rows_of_table(c, n, p);
}

/* Makes all readers of an integer node's result read its dequantized integers.  Readers of other
 * values go on reading floats. */
static void set_results(Convert *c)
{
    for (Node *n = c->g->first; n; n = n->next) {
        const NodePlan *p = plan_of(c->a, n);
        if (p && p->mode == MODE_STATIC && !p->tail && point_of(c->a, n->out[0]))
            c->with[n->out[0]->index] = read_static(c, n->out[0]);
    }
}

/* Replaces the operands of all nodes except those quantize nodes that were made for them. */
static void replace_reads(Convert *c)
{
    Value **with = NEW(c->tmp, Value *, c->g->n_values + 1);
    memcpy(with, c->with, (size_t)c->a->n_values * sizeof *with);
    Value **read = NEW(c->tmp, Value *, c->a->n_values + 1);
    for (int i = 0; i < c->a->n_values; i++)
        read[i] = c->static_of[i] ? arg_value(first_operand(c->static_of[i]->def)->def, "input")
                                  : NULL;
    graph_replace(c->g, with);
    for (int i = 0; i < c->a->n_values; i++)
        if (read[i] && with[i] == c->static_of[i])
            node_set_in(arg_value(c->static_of[i]->def, "input")->def, 0, read[i]);
}

bool convert(const Annotation *a, Arena *tmp, Diag *d)
{
    Convert c = {.a = a, .g = a->g, .tmp = tmp, .node = arena_new(), .operand = arena_new(),
                 .d = d};
    c.with = NEW(tmp, Value *, a->n_values + 1);
    c.static_of = NEW(tmp, Value *, a->n_values + 1);
    c.dynamic_of = NEW(tmp, Value *, a->n_values + 1);
    find_shared(&c);
    set_results(&c);
    for (Node *n = a->g->first, *next; n; n = next) {
        next = n->next;
        const NodePlan *p = plan_of(a, n);
        if (p && p->mode != MODE_FLOAT)
            convert_node(&c, n, p);
        arena_reset(c.node);
    }
    arena_free(c.operand);
    arena_free(c.node);
    if (!c.failed)
        replace_reads(&c);
    return !c.failed;
}
