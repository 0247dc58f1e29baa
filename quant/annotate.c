/* annotate.c -- decides which nodes are computed in integers, and which values share a scale.
 *
 * A node gets what the recipe asks for if the spec of the node allows it.  This is the spec of the
 * first backend that takes the node, else that of the kernels.  With static scales
 *
 *   - convolutions and products with constant weights are always computed in integers;
 *   - sums, products and means of tensors are if all their operands come from integers, so that they
 *     add no rounding to a stream of floats;
 *   - nodes that only move or clamp values are if an operand comes from integers, or if all readers
 *     want them; operands and result share one scale;
 *   - a clamp or an activation function that is the only reader of such a node's result becomes a part
 *     of that node, without a quantize and dequantize between them.
 *     For targets with fixed point, a multiplication by a number so joins a product of matrices.
 *
 * There is one walk forwards, one backwards, and sets of values by union-find: nearly linear. */
#include "quant/internal.h"
#include "ir/session.h"
#include <string.h>

/* -- of operators ------------------------------------------------------------------------------ */

bool is_class(const Node *n, const char *quant)
{
    return !strcmp(op_quant(n->op), quant);
}

bool weights_of(const Node *n, Weighted *v)
{
    if (n->op != OP_EMBEDDING)
        return weighted_read(n, v);
    const Arg table = arg_get(n, "weight");
    assert(table.kind == ARG_VALUE);
    *v = (Weighted){.w = n->in[table.slot], .w_slot = table.slot, .x_slot = -1, .bias_slot = -1,
                    .groups = 1};
    return true;
}

bool is_weight(const Value *v)
{
    return value_is_known(v) && v->type.dtype == ETC_F32 && v->type.rank >= 2 && type_numel(v->type) > 0;
}

static bool is_scaling(const Node *n)
{
    return n->op == OP_MUL_SCALAR || n->op == OP_DIV_SCALAR;
}

/* -- specs of the kernels ---------------------------------------------------------------------- */

/* Returns whether n is one of the nodes that only kernels in fixed point compute in integers:
 * products of two activations, norms, softmax, quotients, and products with known numbers. */
static bool has_fixed_point(const Node *n)
{
    Norm m;
    if (!type_is_static(n->out[0]->type))
        return false;
    if (norm_read(n, &m))
        return m.kind == NORM_LAYER || m.kind == NORM_GROUP;
    if (n->op == OP_BMM)
        return !value_is_fixed(arg_value(n, "self")) && !value_is_fixed(arg_value(n, "mat2"));
    return n->op == OP__SOFTMAX || n->op == OP__LOG_SOFTMAX || n->op == OP_DIV_TENSOR || is_scaling(n);
}

/* Returns the spec of the kernels, which compute with floats between dequantize and quantize.  For
 * targets with fixed point an activation function is a table of bytes and a node of its own. */
static unsigned kernel_spec(const Node *n, bool is_function_of_one)
{
    const bool is_fixed_point = n->graph->program->session->is_fixed_point;
    const unsigned joins = SPEC_CLAMP_JOINS | (is_fixed_point ? 0 : SPEC_CURVE_JOINS);
    const unsigned product = SPEC_STATIC | joins | SPEC_WEIGHT | SPEC_WEIGHT_GROUPS |
                             SPEC_WEIGHT_HALF;
    double pad = 0;
    if (n->op == OP_LINEAR)
        return product | SPEC_DYNAMIC | SPEC_DYNAMIC_GROUPS;
    if (n->op == OP_CONVOLUTION)
        return product;
    if (n->op == OP_MM || n->op == OP_ADDMM)
        return (product & ~(unsigned)SPEC_WEIGHT_GROUPS) | SPEC_DYNAMIC;
    if (n->op == OP_EMBEDDING)
        return SPEC_WEIGHT | SPEC_WEIGHT_GROUPS | SPEC_WEIGHT_HALF;
    if (is_class(n, "binary") && !is_fixed_point &&
        (value_is_fixed(arg_value(n, "self")) || value_is_fixed(n->in[n->n_in - 1])))
        return 0; /* a constant gets no scale */
    if (n->op == OP_CONSTANT_PAD_ND &&
        (!arg_number(n, "value", &pad) || (pad != 0 && !is_fixed_point)))
        return 0; /* the value of the padding need not be an integer */
    if (is_class(n, "binary") || is_class(n, "mean") || (is_fixed_point && n->op == OP_SUM_DIM))
        return SPEC_STATIC | joins;
    if (is_fixed_point && !strcmp(op_c(n->op), "order"))
        return SPEC_STATIC | SPEC_SHARED;
    if (is_function_of_one)
        return SPEC_STATIC;
    if (is_fixed_point && has_fixed_point(n))
        return SPEC_STATIC | (n->op == OP_BMM ? SPEC_SCALE_JOINS : 0);
    if (is_fixed_point && !strcmp(op_c(n->op), "upsample"))
        return SPEC_STATIC | SPEC_SHARED; /* the results are rounded to bytes */
    return is_class(n, "same_scale") || is_class(n, "clamp") ? SPEC_STATIC | SPEC_SHARED : 0;
}

const Backend *taker_of(const Node *n, const Uses *u)
{
    const Program *p = n->graph->program;
    Refusal why = {0};
    for (int i = 0; i < p->session->n_backends; i++)
        if (p->session->backend[i]->takes(n, u, &why))
            return p->session->backend[i];
    return NULL;
}

static bool is_f32(const Value *v)
{
    return v->type.dtype == ETC_F32 && v->type.rank >= 0 && !v->type.is_none;
}

static bool is_quantize(const Node *n)
{
    return n && !strncmp(op_target(n->op), "quantized_decomposed.", 21);
}

/* Returns whether there is a quantize or dequantize before or after n.  A model that is already
 * quantized there stays as it is. */
static bool is_quantized(const Node *n, const Uses *u)
{
    for (int i = 0; i < n->n_in; i++)
        if (is_quantize(n->in[i]->def))
            return true;
    const int v = n->out[0]->index;
    for (int i = u->first[v]; i < u->first[v + 1]; i++)
        if (is_quantize(u->user[i]))
            return true;
    return false;
}

static unsigned spec_of(const Annotation *a, const Node *n, const Backend *b)
{
    if (!n->n_out || !is_f32(n->out[0]) || is_quantized(n, &a->uses))
        return 0;
    return !b ? kernel_spec(n, is_function(a, n)) : b->spec ? b->spec(n) : 0;
}

/* -- modes ------------------------------------------------------------------------------------- */

/* Returns whether the weights of n can have groups, which are runs of a row.  Other weights get a
 * scale per result. */
static bool groups_fit(const Node *n, const QuantFormat *f)
{
    Weighted v;
    if (!weights_of(n, &v))
        return false;
    const int64_t row = type_numel(v.w->type) / v.w->type.dim[0].value;
    return !v.w_axis && f->group > 0 && row % f->group == 0;
}

static const QuantFormat per_token = {
    .dtype = ETC_I8, .bits = 8, .granularity = PER_TOKEN, .dynamic = true};

static void choose_weight_mode(NodePlan *p, const Node *n, unsigned spec)
{
    QuantFormat *w = &p->choice.weight, *x = &p->choice.activation;
    if (w->dtype == ETC_F16) {
        p->mode = spec & SPEC_WEIGHT_HALF ? MODE_WEIGHT : MODE_FLOAT;
        return;
    }
    if (w->granularity == PER_GROUP && !groups_fit(n, w)) {
        w->granularity = PER_CHANNEL;
        w->bits = 8;
    }
    const bool groups = w->granularity == PER_GROUP;
    const bool dynamic = spec & (unsigned)(groups ? SPEC_DYNAMIC_GROUPS : SPEC_DYNAMIC);
    const bool alone = spec & (unsigned)(groups ? SPEC_WEIGHT_GROUPS : SPEC_WEIGHT);
    const bool wants = x->dtype == ETC_I8;
    p->mode = dynamic && (wants || !alone) ? MODE_DYNAMIC : alone ? MODE_WEIGHT : MODE_FLOAT;
    if (p->mode == MODE_DYNAMIC && !(wants && x->dynamic))
        *x = per_token;
}

/* Returns the algorithms for which there is enough data.  Files of statistics do not contain
 * what gptq needs.  A build with a budget may use such a file, so layers are judged and built
 * without gptq. */
static unsigned known_algorithms(const QuantJob *job)
{
    const bool is_found = job->keep && statistics_has_budget(job->keep);
    if (job->samples && (job->recipe->metric || is_found))
        return ~(unsigned)ALG_GPTQ;
    if (job->statistics)
        return statistics_has_products(job->statistics) ? ~0u : ~(unsigned)ALG_GPTQ;
    return job->samples ? ~0u : 0;
}

/* Returns whether `calibrate` found that static scales are too coarse for n. */
static bool is_found_dynamic(const Node *n, const QuantJob *job)
{
    const Statistics *s = job->statistics ? job->statistics : job->dynamic;
    return s && statistics_is_dynamic(s, n->out[0]->name);
}

/* Chooses the mode of a node by itself.  The two walks below may change MODE_STATIC to MODE_FLOAT,
 * because static scales only pay if the neighbours are integers too. */
static NodePlan choose_mode(const Node *n, const QuantJob *job, const Backend *b, unsigned spec)
{
    NodePlan p = {.choice = recipe_choice(job->recipe, n, b)};
    Weighted v;
    const bool multiplies = weights_of(n, &v), has_weight = multiplies && is_weight(v.w);
    QuantFormat *x = &p.choice.activation;
    const QuantFormat *w = &p.choice.weight;
    p.choice.algorithms |= p.choice.with_samples & known_algorithms(job);
    if (job->is_nested)
        p.choice.algorithms = 0;
    if (x->may_be_dynamic && is_found_dynamic(n, job))
        *x = per_token;
    const bool is_static =
        !job->is_nested && x->dtype == ETC_I8 && !x->dynamic && (spec & SPEC_STATIC);
    const bool wants_groups = w->granularity == PER_GROUP;
    if (!has_weight)
        p.mode = !multiplies && is_static ? MODE_STATIC : MODE_FLOAT;
    else if (is_static && w->dtype == ETC_I8 && w->granularity != PER_GROUP) {
        p.mode = MODE_STATIC;
        p.may_be_dynamic = x->may_be_dynamic && spec & SPEC_DYNAMIC;
    } else if (w->dtype == ETC_I8 || w->dtype == ETC_F16)
        choose_weight_mode(&p, n, spec);
    p.is_left = has_weight && w->dtype != ETC_F32 && p.mode == MODE_FLOAT;
    p.is_coarser = has_weight && wants_groups && w->granularity != PER_GROUP && !p.is_left;
    return p;
}

/* -- the walks --------------------------------------------------------------------------------- */

NodePlan *plan_of(const Annotation *a, const Node *n)
{
    return n && n->n_out && n->out[0]->index < a->n_values ? &a->plan[n->out[0]->index] : NULL;
}

/* Returns whether v is an input that the caller gives as integers, or the node that makes it computes it
 * in integers. */
static bool comes_of_integers(const Annotation *a, const Value *v)
{
    const NodePlan *p = plan_of(a, v->def);
    if (!v->def)
        return !v->state && a->g->program->session->has_io;
    return p && v == v->def->out[0] && p->mode == MODE_STATIC && !p->tail;
}

/* Joins n with the clamp or activation function that is the only reader of its result.  The value
 * between them then needs no scale. */
static void join(Annotation *a, const Node *n, unsigned spec)
{
    NodePlan *p = plan_of(a, n), *next;
    const Node *t = value_reader(&a->uses, n->out[0]);
    const bool joins = t && t->n_out && ((spec & SPEC_CLAMP_JOINS && is_class(t, "clamp")) ||
                                         (spec & SPEC_CURVE_JOINS && is_class(t, "lut")) ||
                                         (spec & SPEC_SCALE_JOINS && is_scaling(t)));
    if (!joins || arg_value(t, "self") != n->out[0] || t->n_in != 1 || !(next = plan_of(a, t)) ||
        next->choice.activation.dtype != ETC_I8 || !is_f32(t->out[0]))
        return;
    p->tail = t;
    next->head = n;
    next->mode = MODE_STATIC;
}

/* Returns whether no reader of a value computes with floats in any case. */
static bool suits_readers(const Annotation *a, const Value *v)
{
    bool ok = true;
    for (int i = a->uses.first[v->index]; ok && i < a->uses.first[v->index + 1]; i++) {
        const NodePlan *p = plan_of(a, a->uses.user[i]);
        ok = p && p->mode == MODE_STATIC;
    }
    return ok;
}

static bool decide(const Annotation *a, const Node *n, unsigned spec)
{
    Weighted v;
    int from = 0, all = 0;
    bool reads_input = false;
    for (int i = 0; i < n->n_in; i++) {
        if (value_is_fixed(n->in[i]) || !is_f32(n->in[i]))
            continue;
        all++;
        from += comes_of_integers(a, n->in[i]);
        reads_input = reads_input || (!n->in[i]->def && comes_of_integers(a, n->in[i]));
    }
    if (weights_of(n, &v))
        return all > 0;
    const bool has_io = a->g->program->session->has_io;
    if ((n->op == OP__SOFTMAX || (n->op == OP__LOG_SOFTMAX && !has_io)) &&
        a->uses.escapes[n->out[0]->index])
        return false; /* a result of the model keeps its floats */
    if (reads_input && !suits_readers(a, n->out[0]))
        return false;
    return spec & SPEC_SHARED ? from > 0 : all > 0 && from == all;
}

static bool all_want_integers(const Annotation *a, const Node *n)
{
    const int v = n->out[0]->index;
    return a->uses.first[v + 1] > a->uses.first[v] && !a->uses.escapes[v] &&
           suits_readers(a, n->out[0]);
}

/* -- points ------------------------------------------------------------------------------------ */

static int root(int *of, int i)
{
    while (of[i] != i)
        i = of[i] = of[of[i]];
    return i;
}

static bool has_point(const Node *n, int in)
{
    return !value_is_fixed(n->in[in]) && is_f32(n->in[in]) && n->in[in]->type.rank >= 0;
}

/* Makes a point for the set of values that v belongs to, unless the set has one. */
static void need_point(Annotation *a, int *set, const Value *v, const NodePlan *p)
{
    assert(p->mode == MODE_STATIC);
    const int r = root(set, v->index);
    if (a->point[r] >= 0)
        return;
    Point *made = NEW(a->arena, Point, 1);
    made->name = v->name;
    made->format = p->choice.activation;
    a->point[r] = a->n_points;
    PUSH(a->arena, a->points, a->n_points, made);
}

static bool is_inner(const Annotation *a, const Value *v)
{
    const NodePlan *p = plan_of(a, v->def);
    return p && p->is_inner;
}

static void unite(int *set, const Value *u, const Value *v)
{
    set[root(set, u->index)] = root(set, v->index);
}

/* Products with the same weights are the steps of a recurrent layer, or branches that are alike.  They get
 * one scale for their operands and one for their results, and so do the nodes behind them, as long as these
 * have the same operators: kernels in fixed point keep scales with weights and tables. */
static void join_steps(const Annotation *a, int *set)
{
    const Node **last = NEW(a->arena, const Node *, a->n_values + 1); /* by weight: its last product */
    Weighted v, u;
    for (const Node *n = a->g->first; n; n = n->next) {
        const NodePlan *p = plan_of(a, n);
        if (!p || p->mode != MODE_STATIC || !weighted_read(n, &v) || v.x_slot < 0)
            continue;
        const Node *m = last[v.w->index], *other = n;
        last[v.w->index] = n;
        if (!m || !weighted_read(m, &u))
            continue;
        unite(set, v.x, u.x);
        for (const Node *const end = n; m != end && other && m->op == other->op;
             m = m->next, other = other->next)
            if (plan_of(a, m))
                unite(set, m->out[0], other->out[0]);
    }
}

static void make_points(Annotation *a, const unsigned *spec)
{
    int *set = NEW(a->arena, int, a->n_values + 1);
    for (int i = 0; i < a->n_values; i++)
        set[i] = i;
    for (const Node *n = a->g->first; n; n = n->next) {
        const NodePlan *p = plan_of(a, n);
        bool shares = p && p->mode == MODE_STATIC && !p->head &&
                      (spec[n->out[0]->index] & SPEC_SHARED);
        for (int i = 0; shares && i < n->n_in; i++)
            if (has_point(n, i))
                set[root(set, n->in[i]->index)] = root(set, n->out[0]->index);
    }
    if (a->g->program->session->is_fixed_point)
        join_steps(a, set);
    for (const Node *n = a->g->first; n; n = n->next) {
        const NodePlan *p = plan_of(a, n);
        if (!p || p->mode != MODE_STATIC)
            continue;
        for (int i = 0; !p->head && i < n->n_in; i++)
            if (has_point(n, i) && !is_inner(a, n->in[i]))
                need_point(a, set, n->in[i], p);
        if (!p->tail)
            need_point(a, set, n->out[0], p);
    }
    for (int i = 0; i < a->n_values; i++)
        a->point[i] = a->point[root(set, i)];
}

Point *point_of(const Annotation *a, const Value *v)
{
    return v->index < a->n_values && a->point[v->index] >= 0 ? a->points[a->point[v->index]] : NULL;
}

/* -- the whole graph --------------------------------------------------------------------------- */

/* Returns whether the search for the fewest float layers has decided that n stays float. */
static bool stays_in_floats(const Node *n, const QuantJob *job)
{
    const Statistics *keep = job->keep ? job->keep : job->statistics;
    return keep && statistics_keeps(keep, n->out[0]->name);
}

static void choose_modes(Annotation *a, const QuantJob *job, unsigned *spec, const bool *refused)
{
    const NodePlan floats = {.choice = {{.dtype = ETC_F32}, {.dtype = ETC_F32}, 0, 0}};
    for (const Node *n = a->g->first; n; n = n->next) {
        NodePlan *p = plan_of(a, n);
        const Backend *b = p ? taker_of(n, &a->uses) : NULL;
        if (!p)
            continue;
        const int v = n->out[0]->index;
        spec[v] = spec_of(a, n, b);
        *p = refused[v] || stays_in_floats(n, job) ? floats : choose_mode(n, job, b, spec[v]);
        p->is_left = p->is_left && !is_quantized(n, &a->uses);
    }
}

void annotation_record(const Annotation *a, const QuantJob *job)
{
    for (const Node *n = a->g->first; n; n = n->next) {
        const NodePlan *p = plan_of(a, n);
        if (p && stays_in_floats(n, job))
            statistics_keep(job->seen, n->out[0]->name);
    }
}

/* Walks forwards and changes nodes to MODE_FLOAT whose operands do not come from integers.  `wants`
 * marks these nodes. */
static void decide_all(Annotation *a, const unsigned *spec, bool *wants)
{
    for (const Node *n = a->g->first; n; n = n->next) {
        NodePlan *p = plan_of(a, n);
        if (!p || p->head || p->mode != MODE_STATIC)
            continue;
        const int v = n->out[0]->index;
        wants[v] = !decide(a, n, spec[v]);
        p->mode = wants[v] ? MODE_FLOAT : MODE_STATIC;
        if (!wants[v] && !is_function(a, n))
            join(a, n, spec[v]);
    }
}

/* The values of a slice may have a much smaller range than those of its operand.  So floats are
 * sliced before they are quantized. */
static bool is_part(const Node *n)
{
    return n->op == OP_SLICE || n->op == OP_SELECT_INT;
}

/* Walks backwards.  A node that only moves values is computed in integers after all if none of its
 * readers needs floats. */
static void spread(Annotation *a, const unsigned *spec, const bool *wants)
{
    for (const Node *n = a->g->last; n; n = n->prev) {
        NodePlan *p = plan_of(a, n);
        if (p && wants[n->out[0]->index] && spec[n->out[0]->index] & SPEC_SHARED &&
            !is_part(n) && all_want_integers(a, n))
            p->mode = MODE_STATIC;
    }
}

static void annotate_once(Annotation *a, const QuantJob *job, const bool *refused)
{
    unsigned *spec = NEW(a->arena, unsigned, a->n_values + 1);
    bool *wants = NEW(a->arena, bool, a->n_values + 1);
    a->plan = NEW(a->arena, NodePlan, a->n_values + 1);
    a->point = NEW(a->arena, int, a->n_values + 1);
    a->points = NULL;
    if (a->g->program->session->is_fixed_point)
        functions_find(a);
    a->n_points = 0;
    for (int i = 0; i < a->n_values; i++)
        a->point[i] = -1;
    choose_modes(a, job, spec, refused);
    decide_all(a, spec, wants);
    spread(a, spec, wants);
    functions_merge(a);
    make_points(a, spec);
}

/* Annotates again as long as there are nodes that gain no time by integers.  These stay in floats,
 * and so do nodes that are in integers only because of them. */
Annotation annotate(Graph *g, const QuantJob *job, Arena *arena)
{
    Annotation a = {.g = g, .arena = arena, .uses = graph_uses(g, arena), .n_values = g->n_values};
    bool *refused = NEW(arena, bool, g->n_values + 1);
    annotate_once(&a, job, refused);
    while (job->recipe->for_latency && latency_refuse(&a, refused))
        annotate_once(&a, job, refused);
    return a;
}
