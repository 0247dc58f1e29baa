/* fold_batch_norm.c -- folds a batch norm with fixed statistics, or a constant factor or term per
 * channel, into the weights and the bias of the node before it.
 *
 * Stage core, after fold_constants.  norm(conv(x, w) + b) = conv(x, w * f) + (b - mean) * f +
 * beta, where f = gamma / sqrt(var + eps) per channel, computed in float64 and rounded once.  If
 * nobody else reads the storage of a weight, it is scaled in place, in the private mapping of
 * the model's file, so that a large model never has its weights twice; other states over the
 * same bytes are dropped.  A norm after any other node becomes a multiplication and an
 * addition.  (Jacob et al., "Quantization and Training of Neural Networks ...", 2018, section
 * 3.2.) */
#include "passes/internal.h"
#include <math.h>
#include <string.h>

typedef struct Fold {
    Program *p;
    Rewrite r;
    Uses uses;
    bool *shared;  /* by value: it stands for a value that is read more than once */
    int *reads;    /* by storage: how often nodes, outputs and updates of all graphs read it */
    int n_reads;
    bool *spoiled; /* by storage: its bytes were changed in place */
} Fold;

typedef struct Affine { /* y = x * factor + shift, per channel */
    double *factor, *shift;
    const State *like; /* a new bias is named after this state; NULL: nothing is added */
    int64_t n;
    bool is_term; /* each factor is 1 */
} Affine;

/* -- reading --------------------------------------------------------------------------------- */

const float *value_floats(const Value *v, int64_t n)
{
    const bool ok = value_is_known(v) && v->type.dtype == ETC_F32 && (n < 0 || type_numel(v->type) == n);
    return ok ? state_elements(v->state) : NULL;
}

/* Sets *a to the factor and the term of each channel.  Returns false if the norm's parameters
 * are not constants. */
static bool affine_of(const Fold *f, const Node *bn, Affine *a)
{
    const Value *gamma = arg_value(bn, "weight"), *beta = arg_value(bn, "bias");
    double eps;
    const float *mean = value_floats(arg_value(bn, "running_mean"), -1);
    a->n = mean ? type_numel(arg_value(bn, "running_mean")->type) : 0;
    const float *var = value_floats(arg_value(bn, "running_var"), a->n);
    const float *g = value_floats(gamma, a->n), *b = value_floats(beta, a->n);
    if (!mean || !var || (gamma && !g) || (beta && !b) || !arg_number(bn, "eps", &eps))
        return false;
    a->like = (beta ? beta : arg_value(bn, "running_mean"))->state;
    a->is_term = false;
    a->factor = NEW(f->r.tmp, double, a->n + 1);
    a->shift = NEW(f->r.tmp, double, a->n + 1);
    for (int64_t c = 0; c < a->n; c++) {
        a->factor[c] = (g ? g[c] : 1.0) / sqrt(var[c] + eps);
        a->shift[c] = (b ? b[c] : 0.0) - mean[c] * a->factor[c];
    }
    return true;
}

/* -- the op before --------------------------------------------------------------------------- */

/* Returns whether the weight of n has a row or column for each index of this axis of the result. */
static bool target_of(const Node *n, int axis, Weighted *t)
{
    return weighted_read(n, t) && t->y_axis == axis && !t->is_scaled &&
           (!t->w_axis || (t->bias && !t->is_conv));
}

/* Returns whether factors and terms along this axis of x can be folded into the node that
 * computes x.  A value that was made in this walk has no entry in `uses`. */
static bool takes(const Fold *f, const Value *x, int axis, const Affine *a, Weighted *t)
{
    if (x->index >= f->r.first_new || !x->def || !value_is_read_once(&f->uses, x) ||
        f->shared[x->index] || !target_of(x->def, axis, t))
        return false;
    return value_floats(t->w, -1) && (!t->bias || value_floats(t->bias, a->n)) &&
           dim_equal(t->w->type.dim[t->w_axis], DIM(a->n));
}

/* -- scaling --------------------------------------------------------------------------------- */

static void scale_row(float *restrict to, const float *from, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(from[i] * factor);
}

static void scale(float *to, const float *from, int64_t n, const Affine *a, bool channels_last)
{
    int64_t inner = a->n ? n / a->n : 0;
    if (!channels_last) {
        for (int64_t c = 0; c < a->n; c++)
            scale_row(to + c * inner, from + c * inner, inner, a->factor[c]);
        return;
    }
    for (int64_t k = 0; k < inner; k++)
        for (int64_t c = 0; c < a->n; c++)
            to[k * a->n + c] = (float)(from[k * a->n + c] * a->factor[c]);
}

/* Returns the weight times the factors of its channels.  It is written in place only if nothing
 * else reads its storage. */
static Value *scaled_weight(Fold *f, const Value *w, const Affine *a, bool channels_last)
{
    State *s = w->state;
    int64_t n = type_numel(w->type);
    const float *from = state_elements(s);
    float *to = state_elements(s);
    if (s->storage < f->n_reads && f->reads[s->storage] == 1)
        f->spoiled[s->storage] = true, memory_will_change(to, (size_t)n * sizeof *to);
    else
        to = arena_alloc(f->p->arena, (size_t)n + 1, sizeof *to);
    scale(to, from, n, a, channels_last);
    return graph_const_like(f->r.g, s, "", type_plain(s->type), to);
}

static Value *channel_const(Fold *f, const State *like, const double *v, int64_t n, int rank)
{
    Dim dim[MAX_RANK] = {DIM(n)};
    float *data = arena_alloc(f->p->arena, (size_t)n + 1, sizeof *data);
    for (int64_t c = 0; c < n; c++)
        data[c] = (float)v[c];
    for (int i = 1; i < rank; i++)
        dim[i] = DIM(1);
    Type t = type_tensor(f->p, ETC_F32, rank, dim);
    return graph_const_like(f->r.g, like, "", t, data);
}

/* Returns (b - mean) * f + beta.  The result is NULL if there was no bias and nothing is added. */
static Value *new_bias(Fold *f, const Value *b, const Affine *a)
{
    const float *old = b ? value_floats(b, a->n) : NULL;
    if (!b && !a->like)
        return NULL;
    for (int64_t c = 0; old && c < a->n; c++)
        a->shift[c] += old[c] * a->factor[c];
    return channel_const(f, b ? b->state : a->like, a->shift, a->n, 1);
}

/* Gives the product another weight and bias.  If it had no bias it is built anew. */
static bool set_parameters(Fold *f, Node *n, const Weighted *t, Value *w, Value *b)
{
    if (b && !t->bias)
        return rewrite_product(&f->r, n, w, b);
    node_set_in(n, t->w_slot, w);
    if (b)
        node_set_in(n, t->bias_slot, b);
    return true;
}

/* Folds the norm, factor or term into the product that makes x. */
static bool fold_into(Fold *f, Node *n, Value *x, const Weighted *t, const Affine *a)
{
    assert(x->index < f->r.first_new);
    Value *b = new_bias(f, t->bias, a);
    Value *w = a->is_term ? t->w : scaled_weight(f, t->w, a, t->w_axis);
    f->shared[x->index] = !value_is_read_once(&f->uses, n->out[0]);
    return set_parameters(f, x->def, t, w, b) &&
           rewrite_node(&f->r, n, rewrite_current(&f->r, x));
}

/* Replaces the norm by x * factor + shift, with both as tensors of [channels, 1, ...]. */
static bool spell_out(Fold *f, Node *bn, const Affine *a)
{
    Value *x = arg_value(bn, "input");
    const State *like = arg_value(bn, "running_mean")->state;
    int rank = x->type.rank - 1;
    if (rank < 1 || x->type.dtype != ETC_F32)
        return true;
    Value *factor = channel_const(f, like, a->factor, a->n, rank);
    Value *shift = channel_const(f, like, a->shift, a->n, rank);
    Node *m = build(f->r.g, bn, bn->loc, OP_MUL_TENSOR, f->r.d, "vv", x, factor);
    Node *s = m ? build(f->r.g, bn, bn->loc, OP_ADD_TENSOR, f->r.d, "vv", m->out[0], shift) : NULL;
    return s && rewrite_node(&f->r, bn, s->out[0]);
}

/* -- the walk -------------------------------------------------------------------------------- */

static bool only_result_read(const Fold *f, const Node *bn)
{
    for (int i = 1; i < bn->n_out; i++) {
        int v = bn->out[i]->index;
        if (f->uses.first[v + 1] > f->uses.first[v] || f->uses.escapes[v])
            return false;
    }
    return true;
}

static bool fold_norm(Fold *f, Node *n)
{
    Weighted t;
    Affine a;
    if (!only_result_read(f, n) || !affine_of(f, n, &a))
        return true;
    Value *x = arg_value(n, "input");
    return takes(f, x, 1, &a, &t) ? fold_into(f, n, x, &t, &a) : spell_out(f, n, &a);
}

/* Reads k as a factor or term for each index of one axis of x.  Returns the axis; -1: k is no such
 * constant. */
static int axis_of(const Fold *f, const Value *x, const Value *k, bool is_term, Affine *a)
{
    const float *v = value_floats(k, -1);
    int axis = -1, behind = x->type.rank - k->type.rank;
    a->n = v ? type_numel(k->type) : 0;
    for (int i = 0; i < k->type.rank && a->n > 1; i++)
        if (k->type.dim[i].value == a->n)
            axis = behind + i;
    if (axis < 0 || !dim_equal(x->type.dim[axis], DIM(a->n)))
        return -1;
    a->like = is_term ? k->state : NULL;
    a->is_term = is_term;
    a->factor = NEW(f->r.tmp, double, a->n + 1);
    a->shift = NEW(f->r.tmp, double, a->n + 1);
    for (int64_t c = 0; c < a->n; c++) {
        a->factor[c] = is_term ? 1 : v[c];
        a->shift[c] = is_term ? v[c] : 0;
    }
    return axis;
}

/* Folds product * constant and product + constant. */
static bool fold_constant(Fold *f, Node *n)
{
    Weighted t;
    Affine a;
    double alpha = 1;
    bool is_term = n->op == OP_ADD_TENSOR;
    if (n->n_in != 2 || (is_term && (!arg_number(n, "alpha", &alpha) || alpha != 1)))
        return true;
    for (int i = 0; i < 2; i++) {
        Value *x = n->in[i];
        if (x->type.rank != n->out[0]->type.rank || n->in[1 - i]->type.rank > x->type.rank)
            continue;
        int axis = axis_of(f, x, n->in[1 - i], is_term, &a);
        if (axis >= 0 && takes(f, x, axis, &a, &t))
            return fold_into(f, n, x, &t, &a);
    }
    return true;
}

static bool fold_graph(Fold *f, Graph *g, Arena *tmp, Diag *d)
{
    bool ok = true;
    f->r = rewrite_start(g, tmp, d);
    f->uses = graph_uses(g, tmp);
    f->shared = NEW(tmp, bool, g->n_values + 1);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&f->r, n);
        if (n->op == OP__NATIVE_BATCH_NORM)
            ok = fold_norm(f, n) && ok;
        else if (n->op == OP_MUL_TENSOR || n->op == OP_ADD_TENSOR)
            ok = fold_constant(f, n) && ok;
    }
    rewrite_finish(&f->r);
    return ok;
}

static void count_reads(const Graph *g, int *reads)
{
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]->state)
                reads[n->in[i]->state->storage]++;
    for (int i = 0; i < g->n_out; i++)
        if (g->out[i]->state)
            reads[g->out[i]->state->storage]++;
    for (int i = 0; i < g->n_updates; i++) {
        if (g->update[i].target->state)
            reads[g->update[i].target->state->storage]++;
        if (g->update[i].value->state)
            reads[g->update[i].value->state->storage]++;
    }
}

int *storage_reads(const Program *p, Arena *tmp)
{
    int *reads = NEW(tmp, int, p->n_storages + 1);
    for (const Graph *g = NULL; (g = program_next(p, g));)
        count_reads(g, reads);
    return reads;
}

static void drop_spoiled(Fold *f, Arena *tmp)
{
    bool *keep = NEW(tmp, bool, f->p->n_states + 1);
    for (int i = 0; i < f->p->n_states; i++) {
        int storage = f->p->state[i]->storage;
        keep[i] = storage >= f->n_reads || !f->spoiled[storage];
    }
    program_keep_states(f->p, keep);
}

bool pass_fold_batch_norm(Program *p, Arena *tmp, Diag *d)
{
    Fold f = {.p = p, .n_reads = p->n_storages};
    bool ok = true;
    f.reads = storage_reads(p, tmp);
    f.spoiled = NEW(tmp, bool, p->n_storages + 1);
    for (Graph *g = NULL; (g = program_next_own(p, g));)
        ok = fold_graph(&f, g, tmp, d) && ok;
    drop_spoiled(&f, tmp);
    return ok;
}
