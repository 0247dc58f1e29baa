/* fold_layer_norm.c -- folds the weight and bias of a layer norm into the products after it, for
 * backends.
 *
 * Stage core, where backends are asked.  Kernels apply weight and bias while they normalize, but a
 * backend passes over the data once more for each.  linear(x * g + b, w, c) = linear(x, w * g, c +
 * w b) if g and b lie along the axis that is summed.  Moves that keep this axis whole may come
 * between, and the product may be a convolution without padding.  Every reader of the norm must be
 * such a product with a weight of its own, else the norm stays as it is.  The new weights are
 * computed in float64 and rounded once.  A move is after at most one norm, so the search is linear.
 */
#include "passes/internal.h"

typedef struct Affine {
    const float *weight, *bias; /* of n numbers each, or NULL: ones, zeros */
    int64_t n;
} Affine;

typedef struct Fold {
    Program *p;
    Rewrite r;
    Uses uses;
    int *reads;        /* by storage */
    const Affine **norm; /* by index of the result of a norm that is folded, or of its product */
    Node **product;    /* the products after the current norm */
    int n_products;
} Fold;

/* -- what is found ----------------------------------------------------------------------------- */

static bool get_parameter(const Value *v, int64_t n, const float **to)
{
    *to = v ? value_floats(v, n) : NULL;
    return !v || *to;
}

/* Reads a layer norm over the last axis alone that has something to fold.  Returns false for any
 * other node. */
static bool norm_of(const Node *n, Affine *to)
{
    Norm v;
    if (!norm_read(n, &v) || v.kind != NORM_LAYER || v.axes != 1 || (!v.weight && !v.bias) ||
        v.x->type.dim[v.x->type.rank - 1].expr)
        return false;
    to->n = v.x->type.dim[v.x->type.rank - 1].value;
    return get_parameter(v.weight, to->n, &to->weight) && get_parameter(v.bias, to->n, &to->bias);
}

static bool is_zero(const Node *n, const char *arg)
{
    int64_t v[MAX_RANK];
    int count = arg_count(n, arg);
    if (!arg_ints(n, arg, v, MAX_RANK))
        return false;
    for (int i = 0; i < count; i++)
        if (v[i])
            return false;
    return true;
}

/* Returns whether n sums along this axis of its first operand. */
static bool is_product(const Fold *f, const Node *n, int axis)
{
    Weighted v;
    return weighted_read(n, &v) && !v.w_axis && v.x_axis == axis && v.groups == 1 &&
           (!v.is_conv || is_zero(n, "padding")) && owns_weights(&v, f->reads);
}

/* Returns whether all readers of v, seen through moves, are products, and lists them. */
static bool find_products(Fold *f, const Value *v, int axis)
{
    int first = f->uses.first[v->index], end = f->uses.first[v->index + 1];
    bool ok = !f->uses.escapes[v->index] && first < end;
    for (int i = first; ok && i < end; i++) {
        Node *n = f->uses.user[i];
        int next = access_axis(n, axis);
        if (next >= 0)
            ok = find_products(f, n->out[0], next);
        else if ((ok = is_product(f, n, axis)))
            PUSH(f->r.tmp, f->product, f->n_products, n);
    }
    return ok;
}

static void find(Fold *f, const Node *n)
{
    Affine norm;
    f->n_products = 0;
    if (!norm_of(n, &norm) || others_are_read(&f->uses, n) ||
        !find_products(f, n->out[0], n->out[0]->type.rank - 1))
        return;
    Affine *kept = NEW(f->r.tmp, Affine, 1);
    *kept = norm;
    f->norm[n->out[0]->index] = kept;
    for (int i = 0; i < f->n_products; i++)
        f->norm[f->product[i]->out[0]->index] = kept;
}

/* -- what is made of it ------------------------------------------------------------------------ */

/* Returns w * g along axis 1. */
static Value *new_weight(Fold *f, const Value *w, const Affine *norm)
{
    int64_t all = type_numel(w->type), inner = all / w->type.dim[0].value / norm->n;
    const float *from = value_floats(w, all);
    float *to = arena_alloc(f->p->arena, (size_t)all + 1, sizeof *to);
    for (int64_t i = 0; i < all; i++)
        to[i] = (float)((double)from[i] * (double)norm->weight[i / inner % norm->n]);
    return graph_const_like(f->r.g, w->state, "", type_plain(w->type), to);
}

/* Returns c + w b. */
static Value *new_bias(Fold *f, const Value *w, const Value *c, const Affine *norm)
{
    Dim rows = w->type.dim[0];
    int64_t inner = type_numel(w->type) / rows.value, space = inner / norm->n;
    const float *weight = value_floats(w, -1), *old = c ? value_floats(c, rows.value) : NULL;
    float *to = arena_alloc(f->p->arena, (size_t)rows.value + 1, sizeof *to);
    for (int64_t o = 0; o < rows.value; o++) {
        double sum = old ? (double)old[o] : 0;
        for (int64_t i = 0; i < inner; i++)
            sum += (double)weight[o * inner + i] * (double)norm->bias[i / space];
        to[o] = (float)sum;
    }
    return graph_const_like(f->r.g, c ? c->state : w->state, "", type_tensor(f->p, ETC_F32, 1, &rows), to);
}

static bool fold_product(Fold *f, Node *n, const Affine *norm)
{
    Value *w = arg_value(n, "weight"), *c = arg_value(n, "bias");
    Value *bias = norm->bias ? new_bias(f, w, c, norm) : c;
    Value *weight = norm->weight ? new_weight(f, w, norm) : w;
    return rewrite_product(&f->r, n, weight, bias);
}

static bool strip_norm(Fold *f, Node *n)
{
    Node *made = n->op == OP_LAYER_NORM
                     ? build(f->r.g, n, n->loc, n->op, f->r.d, "vannaa", arg_value(n, "input"),
                             arg_get(n, "normalized_shape"), arg_get(n, "eps"),
                             arg_get(n, "cudnn_enable"))
                     : build(f->r.g, n, n->loc, n->op, f->r.d, "vanna", arg_value(n, "input"),
                             arg_get(n, "normalized_shape"), arg_get(n, "eps"));
    return made && rewrite_node(&f->r, n, made->out[0]);
}

static bool fold_graph(Fold *f, Graph *g, Arena *tmp, Diag *d)
{
    bool ok = true;
    f->r = rewrite_start(g, tmp, d);
    f->uses = graph_uses(g, tmp);
    f->norm = NEW(tmp, const Affine *, g->n_values + 1);
    for (const Node *n = g->first; n; n = n->next)
        find(f, n);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&f->r, n);
        bool is_new = !n->n_out || n->out[0]->index >= f->r.first_new;
        const Affine *norm = is_new ? NULL : f->norm[n->out[0]->index];
        if (norm)
            ok = (norm_read(n, &(Norm){0}) ? strip_norm(f, n) : fold_product(f, n, norm)) && ok;
    }
    rewrite_finish(&f->r);
    return ok;
}

bool pass_fold_layer_norm(Program *p, Arena *tmp, Diag *d)
{
    Fold f = {.p = p};
    bool ok = true;
    f.reads = storage_reads(p, tmp);
    for (Graph *g = NULL; (g = program_next_own(p, g));)
        ok = fold_graph(&f, g, tmp, d) && ok;
    return ok;
}
