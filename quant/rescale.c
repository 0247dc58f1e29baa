/* rescale.c -- makes channels more alike before they are quantized, without changing what the model
 * computes: a channel is divided by s where it is computed, and the weights that read it are
 * multiplied by s.
 *
 *   equalization   s = sqrt(r1 / r2), so that the largest weight that computes a channel and the
 *                  largest that reads it become equal (Nagel et al. 2019, Data-Free Quantization
 *                  Through Weight Equalization and Bias Correction, 4.1)
 *   SmoothQuant    s = sqrt(x / w), x and w being the largest magnitudes of the channel and of the
 *                  weights that read it (Xiao et al. 2023, SmoothQuant, equation 4 with alpha 0.5)
 *   AWQ            s = x^alpha, x being the root mean square of the channel; of five alphas the one
 *                  with which the rounded weights give the smallest error of the results (Lin et al.
 *                  2024, AWQ: Activation-aware Weight Quantization, equations 4 and 5)
 *
 * The value must be computed by a product, a convolution, a norm or a multiplication with one
 * row, with at most a relu after it, and all its readers must be products and convolutions.
 * Powers are computed with square roots alone, which have the same bits everywhere. */
#include "quant/internal.h"
#include <math.h>
#include <string.h>

enum { RESCALES = ALG_EQUALIZATION | ALG_SMOOTHQUANT | ALG_AWQ };

typedef struct Chain {
    Annotation *a;
    Arena *tmp;
    Node *producer; /* the node that computes the value, with in[weight] and in[bias]; -1: none */
    int weight, bias;
    bool is_bare; /* it has no weight yet, which counts as ones */
    const Value *v;
    Node **reader;
    int n_readers;
    int64_t n; /* channels */
    unsigned algorithms;
    QuantFormat format; /* the format of the first reader's weights */
} Chain;

/* -- finding chains ---------------------------------------------------------------------------- */

/* Returns whether v has a multiple of n floats that only one node reads, or was made here. */
static bool is_own(const Annotation *a, const Value *v, int64_t n)
{
    return value_is_known(v) && v->type.dtype == ETC_F32 && type_numel(v->type) % n == 0 &&
           (v->index >= a->n_values || value_is_read_once(&a->uses, v));
}

/* Finds the positions of n's weights and bias; -1: it has none.  Returns false if n makes no
 * channels that can be scaled. */
static bool parameters(Chain *c, Node *n)
{
    Geometry g;
    c->producer = n;
    c->weight = 1;
    c->bias = 2;
    if (n->op == OP_LINEAR || n->op == OP_CONVOLUTION)
        return geometry_of(n, &g) && g.results == c->n;
    if (n->op == OP_MUL_TENSOR) {
        c->weight = arg_value(n, "self")->state ? 0 : 1;
        c->bias = -1;
        const Type t = arg_value(n, c->weight)->type;
        return t.rank >= 1 && dim_equal(t.dim[t.rank - 1], DIM(c->n)) && type_numel(t) == c->n;
    }
    c->weight = 2;
    c->bias = 3;
    return (n->op == OP_LAYER_NORM || n->op == OP_NATIVE_LAYER_NORM) &&
           arg_count(n, "normalized_shape") == 1;
}

/* Returns whether n computes channels that can be scaled.  A norm without weights gets some. */
static bool is_producer(Chain *c, Node *n)
{
    if (!parameters(c, n))
        return false;
    c->is_bare = !arg_value(n, c->weight);
    if (!c->is_bare && !is_own(c->a, arg_value(n, c->weight), c->n))
        return false;
    const Value *bias = c->bias < 0 ? NULL : arg_value(n, c->bias);
    c->bias = bias ? c->bias : -1;
    return !bias || (is_own(c->a, bias, c->n) && type_numel(bias->type) == c->n);
}

static bool is_reader(const Chain *c, const Node *n)
{
    Geometry g;
    return (n->op == OP_LINEAR || n->op == OP_CONVOLUTION) && arg_value(n, "input") == c->v &&
           is_weight(arg_value(n, "weight")) && geometry_of(n, &g) &&
           is_own(c->a, arg_value(n, "weight"), 1);
}

/* Collects the readers of v and the algorithms that any of them asks for. */
static bool take_readers(Chain *c)
{
    const Uses *u = &c->a->uses;
    const int at = c->v->index;
    if (u->escapes[at])
        return false;
    for (int i = u->first[at]; i < u->first[at + 1]; i++) {
        const NodePlan *p = plan_of(c->a, u->user[i]);
        if (!p || !is_reader(c, u->user[i]))
            return false;
        if (p->mode != MODE_FLOAT && p->choice.weight.dtype == ETC_I8) {
            c->algorithms |= p->choice.algorithms & RESCALES;
            c->format = p->choice.weight;
        }
        PUSH(c->tmp, c->reader, c->n_readers, u->user[i]);
    }
    return c->n_readers > 0 && c->algorithms;
}

/* Finds the chain that ends with v.  In a convolution the channels are another axis than in other
 * nodes. */
static bool chain_of(Annotation *a, const Value *v, Arena *tmp, Chain *c)
{
    *c = (Chain){.a = a, .tmp = tmp, .v = v};
    if (v->type.dtype != ETC_F32 || v->type.rank < 2 || !take_readers(c))
        return false;
    const bool is_image = c->reader[0]->op == OP_CONVOLUTION;
    const Value *made = v->def->op == OP_RELU ? arg_value(v->def, "self") : v;
    const Dim n = v->type.dim[is_image ? 1 : v->type.rank - 1];
    if (!made->def || made != made->def->out[0] || n.expr || n.value < 1 ||
        (made != v && !value_is_read_once(&a->uses, made)) || (made->def->op == OP_CONVOLUTION) != is_image)
        return false;
    for (int i = 1; i < c->n_readers; i++)
        if ((c->reader[i]->op == OP_CONVOLUTION) != is_image)
            return false;
    c->n = n.value;
    return is_producer(c, made->def);
}

/* -- computing factors ------------------------------------------------------------------------- */

static const float *bytes_of(const Value *v)
{
    return state_elements(v->state);
}

/* Returns the largest magnitude, by channel, of the weights that read the channel. */
static float *read_magnitudes(const Chain *c)
{
    float *most = NEW(c->tmp, float, c->n + 1);
    for (int r = 0; r < c->n_readers; r++) {
        Geometry g;
        const float *w = bytes_of(arg_value(c->reader[r], "weight"));
        geometry_of(c->reader[r], &g);
        for (int64_t i = 0; i < g.results * g.row; i++) {
            const float size = w[i] < 0 ? -w[i] : w[i];
            float *to = &most[channel_at(&g, i)];
            *to = size > *to ? size : *to;
        }
    }
    return most;
}

static float *made_magnitudes(const Chain *c)
{
    const Value *v = arg_value(c->producer, c->weight);
    const int64_t row = type_numel(v->type) / c->n;
    float *most = NEW(c->tmp, float, c->n + 1);
    for (int64_t i = 0; i < c->n * row; i++) {
        const float w = bytes_of(v)[i], size = w < 0 ? -w : w;
        most[i / row] = size > most[i / row] ? size : most[i / row];
    }
    return most;
}

/* Sets s to sqrt(a / b), limited to a range; 1 if a channel has no data. */
static void ratios(float *s, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double v = a[i] > 0 && b[i] > 0 ? sqrt((double)a[i] / (double)b[i]) : 1;
        s[i] = (float)(v < 0x1p-10 ? 0x1p-10 : v > 0x1p10 ? 0x1p10 : v);
    }
}

/* Sets s to x^(quarters / 4), scaled so that its smallest and its largest number are inverse to
 * each other. */
static void powers(float *s, const Moments *m, int quarters)
{
    double least = INFINITY, most = 0;
    for (int64_t i = 0; i < m->n; i++) {
        const double x = sqrt((double)m->square[i]), half = sqrt(x), quarter = sqrt(half);
        const double v = quarters == 0 ? 1 : quarters == 1 ? quarter : quarters == 2 ? half
                         : quarters == 3 ? half * quarter : x;
        s[i] = (float)(v > 1e-4 ? v : 1e-4);
        least = (double)s[i] < least ? (double)s[i] : least;
        most = (double)s[i] > most ? (double)s[i] : most;
    }
    for (int64_t i = 0; i < m->n; i++)
        s[i] = (float)((double)s[i] / sqrt(least * most));
}

/* Returns the mean square error of the results if w * s is rounded and channels are divided by
 * s. */
static double error_of(const Chain *c, const Node *n, const float *s, const Moments *m)
{
    Geometry g;
    const Value *v = arg_value(n, "weight");
    const float *w = bytes_of(v);
    Arena *a = arena_new();
    Ints k = ints_new(&c->format, v, 0, a);
    double sum = 0;
    geometry_of(n, &g);
    float *scaled = NEW(a, float, g.results * g.row + 1);
    for (int64_t i = 0; i < g.results * g.row; i++)
        scaled[i] = w[i] * s[channel_at(&g, i)];
    ints_set_scales(&k, &c->format, scaled, NULL);
    ints_round(&k, scaled);
    for (int64_t i = 0; i < g.results * g.row; i++) {
        const int64_t at = channel_at(&g, i);
        const double e = (double)k.scale[i / k.inner % k.n] * k.q[i] - (double)scaled[i];
        sum += e * e / ((double)s[at] * (double)s[at]) * (double)m->square[at];
    }
    arena_free(a);
    return sum;
}

static void best_powers(const Chain *c, const Moments *m, float *s)
{
    double least = INFINITY;
    float *now = NEW(c->tmp, float, c->n + 1);
    for (int quarters = 0; quarters <= 4; quarters++) {
        double e = 0;
        powers(now, m, quarters);
        for (int r = 0; r < c->n_readers; r++)
            e += error_of(c, c->reader[r], now, m);
        if (e < least) {
            least = e;
            memcpy(s, now, (size_t)c->n * sizeof *s);
        }
    }
}

/* -- rescaling --------------------------------------------------------------------------------- */

static void replace(const Node *n, int arg, float *data)
{
    const Value *v = arg_value(n, arg);
    Graph *g = n->graph;
    assert(v && v->state);
    node_set_in((Node *)n, n->arg[arg].slot, graph_const_like(g, v->state, "", v->type, data));
}

static void divide(const Chain *c, int arg, const float *s)
{
    const Value *v = arg_value(c->producer, arg);
    const int64_t all = type_numel(v->type), row = all / c->n;
    float *to = NEW(c->producer->graph->program->arena, float, all + 1);
    assert(all % c->n == 0);
    for (int64_t i = 0; i < all; i++)
        to[i] = bytes_of(v)[i] / s[i / row];
    replace(c->producer, arg, to);
}

static void give_weight(const Chain *c, const float *s)
{
    Graph *g = c->producer->graph;
    const State *like = arg_value(c->reader[0], "weight")->state;
    float *to = NEW(g->program->arena, float, c->n + 1);
    for (int64_t i = 0; i < c->n; i++)
        to[i] = 1 / s[i];
    const Type t = type_tensor(g->program, ETC_F32, 1, &DIM(c->n));
    const char *name = arena_printf(g->program->arena, "%s_norm", like->name);
    const char *fqn = arena_printf(g->program->arena, "%s_norm", like->fqn);
    State *made = program_const(g->program, name, fqn, t, to);
    node_set_arg(c->producer, c->weight, node_use(c->producer, graph_state(g, made)));
}

static void apply(const Chain *c, const float *s)
{
    if (c->is_bare)
        give_weight(c, s);
    else
        divide(c, c->weight, s);
    if (c->bias >= 0)
        divide(c, c->bias, s);
    for (int r = 0; r < c->n_readers; r++) {
        Geometry g;
        const Value *v = arg_value(c->reader[r], "weight");
        geometry_of(c->reader[r], &g);
        const int64_t count = g.results * g.row;
        float *to = NEW(c->producer->graph->program->arena, float, count + 1);
        for (int64_t i = 0; i < count; i++)
            to[i] = bytes_of(v)[i] * s[channel_at(&g, i)];
        replace(c->reader[r], 1, to);
    }
}

static void rescale(Chain *c)
{
    assert(c->n_readers > 0 && c->n > 0);
    const Moments *m = moments_of(c->a, c->reader[0]);
    const bool is_product = c->producer->op == OP_LINEAR || c->producer->op == OP_CONVOLUTION;
    float *s = NEW(c->tmp, float, c->n + 1);
    if (c->algorithms & ALG_EQUALIZATION && is_product) {
        ratios(s, made_magnitudes(c), read_magnitudes(c), c->n);
        apply(c, s);
    } else if (m && c->algorithms & ALG_SMOOTHQUANT) {
        ratios(s, m->magnitude, read_magnitudes(c), c->n);
        apply(c, s);
    } else if (m && c->algorithms & ALG_AWQ) {
        best_powers(c, m, s);
        apply(c, s);
    }
}

void rescale_all(Annotation *a)
{
    Arena *tmp = arena_new();
    for (Node *n = a->g->first; n; n = n->next) {
        Chain c;
        if (n->n_out && n->out[0]->index < a->n_values && chain_of(a, n->out[0], tmp, &c))
            rescale(&c);
        arena_reset(tmp);
    }
    arena_free(tmp);
}
