/* report.c -- measures the damage of quantization layer by layer: evaluates a program before and
 * after it on the same samples.
 *
 * A layer is a node with weights, or one whose result or operands became integers.  Its result
 * is compared as its readers get it, after quantize and dequantize.  This includes the noise of
 * all layers before it.  The damage of a layer is its own part: its noise relative to its
 * signal, minus the same ratio of its noisiest operand. */
#include "quant/internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- differences ------------------------------------------------------------------------------ */

void difference_add(Difference *d, const float *want, const float *got, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double w = (double)want[i], g = (double)got[i], e = fabs(g - w);
        d->signal += w * w;
        d->noise += e * e;
        d->most = e > d->most || isnan(e) ? e : d->most;
        d->square += g * g;
        d->dot += w * g;
    }
    d->n += n;
}

int64_t largest_of(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        best = x[k] > x[best] ? k : best;
    return best;
}

double difference_sqnr(const Difference *d)
{
    const double per_e = 4.34294481903251827651; /* 10 / ln 10 */
    if (!(d->noise > 0))
        return isnan(d->noise) ? -HUGE_VAL : HUGE_VAL;
    double ratio = d->signal / d->noise;
    return ratio >= 0x1p-1022 ? per_e * log_of(ratio) : -HUGE_VAL;
}

double difference_cosine(const Difference *d)
{
    if (!(d->signal > 0) || !(d->square > 0))
        return d->signal > 0 || d->square > 0 ? 0 : 1;
    double c = d->dot / sqrt(d->signal * d->square);
    return c > 1 ? 1 : c < -1 ? -1 : c;
}

/* Returns the noise relative to the signal. */
static double noise_of(const Difference *d)
{
    return d->noise > 0 ? d->noise / (d->signal > 0x1p-1022 ? d->signal : 0x1p-1022) : 0;
}

/* -- values by name --------------------------------------------------------------------------- */

typedef struct Names { /* values of a graph by name */
    const Value **value;
    int n;
} Names;

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const Value *const *)a)->name, (*(const Value *const *)b)->name);
}

static Names names_of(const Graph *g, Arena *a)
{
    Names t = {NEW(a, const Value *, g->n_values + 1), 0};
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            t.value[t.n++] = n->out[i];
    if (t.n)
        qsort(t.value, (size_t)t.n, sizeof *t.value, by_name);
    return t;
}

static const Value *value_named(const Names *t, const char *name)
{
    Value key = {.name = name};
    const Value *at = &key;
    const Value **hit = t->n ? bsearch(&at, t->value, (size_t)t->n, sizeof *t->value, by_name)
                             : NULL;
    return hit ? *hit : NULL;
}

static bool is_dequantize(const Node *n)
{
    return n && !strncmp(op_target(n->op), "quantized_decomposed.dequantize", 31);
}

static bool is_quantize(const Node *n)
{
    return n && !strncmp(op_target(n->op), "quantized_decomposed.quantize", 29);
}

/* Returns the node that converts integers or halves to v or to the value that v is a view of.
 * NULL: there is none. */
static const Node *unpacks(const Value *v)
{
    const Node *n = v->def;
    while (n && n->n_in == 1 && op_info[n->op].flags & VIEW)
        n = arg_value(n, "self")->def;
    bool is_half = n && n->op == OP__TO_COPY && arg_value(n, "self")->state;
    return is_dequantize(n) || is_half ? n : NULL;
}

static const Node *user_that(const Uses *u, const Value *v, bool (*is)(const Node *n))
{
    for (int i = u->first[v->index]; i < u->first[v->index + 1]; i++)
        if (is(u->user[i]))
            return u->user[i];
    return NULL;
}

/* -- bytes ------------------------------------------------------------------------------------ */

/* Returns the bytes of a constant.  Integers of 4 bits have a byte each until a backend packs
 * them. */
static int64_t bytes_of(const State *s, const Node *unpack)
{
    int64_t lo = 0, hi = 0, n = s->n_bytes;
    const Schema *schema = unpack ? op_schema(unpack->graph->program, unpack->op) : NULL;
    int at = schema ? schema_find(schema, "quant_min", 9) : -1;
    bool is_small = at >= 0 && arg_int(unpack, at, &lo) && arg_int(unpack, at + 1, &hi) &&
                    hi - lo < 16 && s->type.dtype == ETC_I8;
    return is_small ? n / 2 + n % 2 : n;
}

/* Returns the bytes of the states that n reads, directly or through a dequantize.  Stores the bytes
 * of each state in seen[], by its index. */
static int64_t bytes_at(const Node *n, int64_t *seen)
{
    int64_t sum = 0;
    for (int i = 0; i < n->n_in; i++) {
        const Node *from = unpacks(n->in[i]);
        Value *const *v = from ? from->in : &n->in[i];
        for (int k = 0; k < (from ? from->n_in : 1); k++)
            if (v[k]->state && v[k]->state->data) {
                int64_t bytes = bytes_of(v[k]->state, from);
                seen[v[k]->state->index] = bytes;
                sum += bytes;
            }
    }
    return sum;
}

static int64_t sum_of(const int64_t *bytes, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += bytes[i];
    return sum;
}

/* -- layers ----------------------------------------------------------------------------------- */

typedef struct Measure {
    const Graph *before, *after;
    Arena *a;
    QuantReport *out;
    int *layer_of, *partner_of; /* by value of `before` and of `after`: its layer, or -1 */
    Observer **seen;            /* by layer */
} Measure;

/* The state of one sample.  It enters the places of the layers one after the other, then that of
 * the outputs. */
typedef struct Pair {
    Measure *m;
    Turn *turn;
    float **kept; /* by layer: its result in floats */
    int64_t *n_kept;
    bool failed;
} Pair;

static const char *weight_format(const Node *n, const Node *from, Arena *a)
{
    int64_t lo = 0, hi = 0;
    const State *s = first_operand(from)->state;
    if (from->op == OP__TO_COPY)
        return "float16";
    int at = schema_find(op_schema(n->graph->program, from->op), "quant_min", 9);
    bool ok = at >= 0 && arg_int(from, at, &lo) && arg_int(from, at + 1, &hi);
    const char *ints = ok && hi - lo < 16 ? "int4" : "int8";
    bool is_view = s->type.rank == 2 && n->n_in > 1 && from->out[0] != arg_value(n, "weight") &&
                   from->op == OP_DEQUANTIZE_PER_CHANNEL;
    return is_view ? arena_printf(a, "%s in groups of %lld", ints, (long long)s->type.dim[1].value)
                   : ints;
}

/* Returns the format of a node: "int8, weights int4 in groups of 32". */
static const char *format_of(const Node *n, const Uses *u, Arena *a)
{
    const char *values = user_that(u, n->out[0], is_quantize) ? "int8" : NULL, *weights = NULL;
    for (int i = 0; i < n->n_in; i++) {
        const Node *from = unpacks(n->in[i]);
        if (!from)
            continue;
        if (first_operand(from)->state)
            weights = weight_format(n, from, a);
        else if (!values || from->op != OP_DEQUANTIZE_PER_TENSOR)
            values = from->op == OP_DEQUANTIZE_PER_TENSOR ? "int8" : "dynamic int8";
    }
    return arena_printf(a, "%s%s%s", values ? values : "float32", weights ? ", weights " : "",
                        weights ? weights : "");
}

static bool is_touched(const Node *n, const Uses *u)
{
    bool is = user_that(u, n->out[0], is_quantize) != NULL;
    for (int i = 0; i < n->n_in && !is; i++)
        is = unpacks(n->in[i]) != NULL;
    return is;
}

/* Returns whether n, a node of the quantized program, is computed in integers: its weights are
 * integers, or all of its operands are. */
static bool is_of_integers(const Node *n)
{
    Weighted v;
    if (weights_of(n, &v))
        return unpacks(v.w) != NULL;
    bool is = n->n_in && (is_class(n, "binary") || is_class(n, "mean") || is_class(n, "clamp") ||
                          is_class(n, "same_scale"));
    for (int i = 0; i < n->n_in && is; i++)
        is = unpacks(n->in[i]) != NULL;
    return is;
}

static bool is_compared(const Value *v)
{
    return v->type.dtype == ETC_F32 && v->type.rank >= 0 && !v->type.is_none;
}

static void set_range(LayerReport *l, const Node *quantize)
{
    double scale;
    int64_t zero, lo, hi;
    if (!quantize || quantize->op != OP_QUANTIZE_PER_TENSOR ||
        !arg_number(quantize, "scale", &scale) || !arg_int(quantize, "zero_point", &zero) ||
        !arg_int(quantize, "quant_min", &lo) || !arg_int(quantize, "quant_max", &hi))
        return;
    l->has_range = true;
    l->lo = (float)(((double)lo - (double)zero) * scale);
    l->hi = (float)(((double)hi - (double)zero) * scale);
}

/* Returns the value that other nodes read in the place of v: if v is quantized, the dequantized
 * one.  Sets the range of the layer's integers. */
static const Value *as_read(const Value *v, const Uses *u, LayerReport *l)
{
    const Node *q = user_that(u, v, is_quantize);
    const Node *back = q ? user_that(u, q->out[0], is_dequantize) : NULL;
    set_range(l, q);
    return back ? back->out[0] : v;
}

static void add_layer(Measure *m, const Node *n, const Value *twin, const Uses *u, int64_t *was,
                      int64_t *is)
{
    LayerReport l = {.loc = n->loc, .node = n, .is_quantized = !twin, .kept = "float32"};
    l.bytes_before = l.bytes_after = bytes_at(n, was);
    m->layer_of[n->out[0]->index] = m->out->n_layers;
    if (twin && twin->def) {
        l.kept = format_of(twin->def, u, m->a);
        l.is_quantized = is_of_integers(twin->def);
        l.bytes_after = bytes_at(twin->def, is);
        l.has_partner = is_compared(twin);
        m->partner_of[as_read(twin, u, &l)->index] = m->out->n_layers;
    }
    PUSH(m->a, m->out->layer, m->out->n_layers, l);
}

static void find_layers(Measure *m)
{
    Uses u = graph_uses(m->after, m->a);
    Names names = names_of(m->after, m->a);
    int64_t *was = NEW(m->a, int64_t, m->before->program->n_states + 1);
    int64_t *is = NEW(m->a, int64_t, m->after->program->n_states + 1);
    m->layer_of = NEW(m->a, int, m->before->n_values + 1);
    m->partner_of = NEW(m->a, int, m->after->n_values + 1);
    memset(m->layer_of, -1, (size_t)m->before->n_values * sizeof(int));
    memset(m->partner_of, -1, (size_t)m->after->n_values * sizeof(int));
    for (const Node *n = m->before->first; n; n = n->next) {
        if (!n->n_out || !is_compared(n->out[0]))
            continue;
        const Value *twin = value_named(&names, n->out[0]->name);
        bool is_layer = node_cost(n) > 0 || !twin || is_touched(twin->def, &u);
        if (is_layer)
            add_layer(m, n, twin, &u, was, is);
    }
    for (const Node *n = m->before->first; n; n = n->next)
        bytes_at(n, was);
    for (const Node *n = m->after->first; n; n = n->next)
        bytes_at(n, is);
    m->out->bytes_before = sum_of(was, m->before->program->n_states);
    m->out->bytes_after = sum_of(is, m->after->program->n_states);
    m->seen = NEW(m->a, Observer *, m->out->n_layers + 1);
    for (int i = 0; i < m->out->n_layers; i++)
        m->seen[i] = observer_new(m->a, OBS_MSE, 0, 1);
}

/* -- samples ---------------------------------------------------------------------------------- */

static void keep(const Value *v, EtcTensor *t, void *ctx)
{
    Pair *p = ctx;
    int i = p->m->layer_of[v->index];
    if (i < 0)
        return;
    p->n_kept[i] = etc_numel(t);
    p->kept[i] = NEW(p->turn->tmp, float, p->n_kept[i] + 1);
    if (p->n_kept[i])
        memcpy(p->kept[i], t->data, (size_t)p->n_kept[i] * sizeof(float));
}

static void add_to_layer(const Pair *p, int i, const EtcTensor *t)
{
    LayerReport *l = &p->m->out->layer[i];
    const float *want = p->kept[i];
    int64_t bad;
    difference_add(&l->error, want, t->data, p->n_kept[i]);
    for (int64_t k = 0; l->has_range && k < p->n_kept[i]; k++)
        l->n_clipped += want[k] < l->lo || want[k] > l->hi;
    observer_add(p->m->seen[i], want, p->n_kept[i], 1, &bad);
}

static void compare(const Value *v, EtcTensor *t, void *ctx)
{
    Pair *p = ctx;
    int i = p->m->partner_of[v->index];
    if (i < 0 || p->failed)
        return;
    p->failed = !turn_enter(p->turn, i, p->turn->nth);
    if (p->failed)
        return;
    if (p->kept[i] && p->n_kept[i] == etc_numel(t))
        add_to_layer(p, i, t);
    turn_leave(p->turn, i);
}

/* Counts the rows of t whose largest element is where the labels from row `first` on say. */
static int64_t count_right(const QuantReport *r, const EtcTensor *t, int64_t first)
{
    const int64_t n = t->dim[t->rank - 1], rows = n ? etc_numel(t) / n : 0;
    const float *x = t->data;
    int64_t right = 0;
    for (int64_t i = 0; i < rows && first + i < r->n_labels; i++)
        right += largest_of(x + i * n, n) == r->label[first + i];
    return right;
}

static bool score(QuantReport *r, const EtcTensor *before, const EtcTensor *after, Diag *d)
{
    if (before->dtype != ETC_F32 || after->dtype != ETC_F32 || !before->rank || !after->rank)
        return diag_error(d, (Loc){.file = r->model}, "its first output has no scores to judge");
    r->right[0] += count_right(r, before, r->n_rows);
    r->right[1] += count_right(r, after, r->n_rows);
    const int64_t n = before->dim[before->rank - 1];
    r->n_rows += n ? etc_numel(before) / n : 0;
    return true;
}

static bool add_outputs(QuantReport *r, int n, EtcTensor **want, EtcTensor **got, Diag *d)
{
    for (int i = 0; i < n; i++)
        if (want[i]->dtype == ETC_F32 && etc_numel(want[i]) == etc_numel(got[i])) {
            difference_add(&r->outputs, want[i]->data, got[i]->data, etc_numel(want[i]));
            difference_add(&r->output[i], want[i]->data, got[i]->data, etc_numel(want[i]));
        }
    return !r->label || !n || score(r, want[0], got[0], d);
}

static bool run_sample(void *ctx, Turn *t, EtcTensor **in, int64_t *symbol)
{
    Measure *m = ctx;
    const int n_layers = m->out->n_layers, n_out = m->before->n_out;
    const Graph *const side[2] = {m->before, m->after};
    EtcTensor **out[2];
    Pair p = {m, t, NEW(t->tmp, float *, n_layers + 1), NEW(t->tmp, int64_t, n_layers + 1), false};
    for (int i = 0; i < 2; i++) {
        EtcTensor **update = NEW(t->tmp, EtcTensor *, side[i]->n_updates + 1);
        out[i] = NEW(t->tmp, EtcTensor *, side[i]->n_out + 1);
        if (!eval_watched(side[i], in, symbol, (EvalHow){.visit = i ? compare : keep, .ctx = &p, .tmp = t->eval},
                          t->tmp, out[i], update, t->diag))
            return false;
    }
    if (p.failed || !turn_enter(t, n_layers, t->nth))
        return false;
    const bool ok = add_outputs(m->out, n_out, out[0], out[1], t->diag);
    turn_leave(t, n_layers);
    return ok;
}

/* -- damage ----------------------------------------------------------------------------------- */

static int by_damage(const void *a, const void *b)
{
    const LayerReport *x = *(LayerReport *const *)a, *y = *(LayerReport *const *)b;
    if (x->damage != y->damage)
        return x->damage < y->damage ? 1 : -1;
    return (x > y) - (x < y); /* in the order of the program */
}

static void rank_layers(Measure *m)
{
    double *noise = NEW(m->a, double, m->before->n_values + 1); /* by value: the noise that it has */
    for (const Node *n = m->before->first; n; n = n->next) {
        double most = 0;
        for (int i = 0; i < n->n_in; i++)
            most = noise[n->in[i]->index] > most ? noise[n->in[i]->index] : most;
        LayerReport *l = n->n_out && m->layer_of[n->out[0]->index] >= 0
                             ? &m->out->layer[m->layer_of[n->out[0]->index]]
                             : NULL;
        double own = l && l->error.n ? noise_of(&l->error) : most;
        if (l)
            l->damage = own > most ? own - most : 0;
        for (int i = 0; i < n->n_out; i++)
            noise[n->out[i]->index] = own;
    }
    LayerReport **order = NEW(m->a, LayerReport *, m->out->n_layers + 1);
    for (int i = 0; i < m->out->n_layers; i++)
        order[i] = &m->out->layer[i];
    if (m->out->n_layers)
        qsort(order, (size_t)m->out->n_layers, sizeof *order, by_damage);
    for (int i = 0; i < m->out->n_layers; i++)
        order[i]->rank = i + 1;
}

bool report_measure(const Graph *before, const Graph *after, const Samples *s, Arena *a,
                    QuantReport *out, Diag *d)
{
    Measure m = {.before = before, .after = after, .a = a, .out = out};
    out->n_outputs = before->n_out;
    out->output = NEW(a, Difference, before->n_out + 1);
    bool ok = before->n_in == after->n_in && before->n_out == after->n_out;
    if (!ok)
        diag_fault(d, FAULT_BUG, (Loc){.file = out->model}, "the quantized model has other inputs");
    else
        find_layers(&m);
    const SampleRun run = {.samples = s,
                           .graph = before,
                           .beside = after,
                           .n_places = out->n_layers + 1,
                           .run = run_sample,
                           .ctx = &m};
    ok = ok && samples_run(&run, &out->n_samples, d);
    for (int i = 0; i < out->n_layers && ok; i++) {
        LayerReport *l = &out->layer[i];
        observer_bars(m.seen[i], 0, REPORT_BARS, l->bar, &l->seen_lo, &l->seen_hi);
    }
    if (ok)
        rank_layers(&m);
    return ok;
}

/* -- the worst -------------------------------------------------------------------------------- */

static int by_sum(const void *a, const void *b)
{
    const LayerDamage *x = a, *y = b;
    if (x->damage != y->damage)
        return x->damage < y->damage ? 1 : -1;
    return (x->layer > y->layer) - (x->layer < y->layer);
}

LayerDamage *report_worst(const QuantReport *r, int *n, Arena *a)
{
    LayerDamage *own = NEW(a, LayerDamage, r->n_layers + 1);
    const int n_values = r->n_layers ? r->layer[0].node->graph->n_values : 0;
    int *owner = NEW(a, int, n_values + 1); /* by value: 1 + the index of its layer, or 0 */
    for (int i = 0; i < r->n_layers; i++) {
        const Node *node = r->layer[i].node;
        const bool follows = node->n_in && (is_class(node, "clamp") || is_class(node, "lut"));
        const int of = follows ? owner[arg_value(node, "self")->index] : 0;
        owner[node->out[0]->index] = of ? of : i + 1;
        own[i] = (LayerDamage){i, of || !r->layer[i].is_quantized ? -1 : r->layer[i].damage};
        if (of && own[of - 1].damage >= 0)
            own[of - 1].damage += r->layer[i].damage;
    }
    if (r->n_layers)
        qsort(own, (size_t)r->n_layers, sizeof *own, by_sum);
    for (*n = 0; *n < r->n_layers && own[*n].damage >= 0;)
        ++*n;
    return own;
}
