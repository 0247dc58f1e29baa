/* fold_scale.c -- the scale of attention goes into the product of its queries, for backends.
 *
 * Stage core, where backends are asked: kernels scale on their way, a backend takes a pass over the
 * queries for it.  Between the product, whose weights and result nobody else reads, and attention
 * stand at most moves.  Computed in float64 and rounded once.  Each move is behind one product at
 * most, so the search is linear.
 */
#include "passes/internal.h"
#include <math.h>

typedef struct Fold {
    Program *p;
    Rewrite r;
    Uses uses;
    int *reads;    /* by storage */
    double *scale; /* by index of a product's or attention's result: what it folds; 0: nothing */
} Fold;

static bool is_attention(const Node *n)
{
    return n->op == OP_ATTENTION || n->op == OP_SDPA || n->op == OP_SOFTMAX_ATTENTION;
}

static double scale_of(const Node *n)
{
    double scale = 0;
    int64_t heads = 1;
    const Type q = arg_value(n, "query")->type;
    if (n->op == OP_ATTENTION)
        arg_int(n, "heads", &heads);
    if (arg_number(n, "scale", &scale) && (scale != 0 || n->op != OP_ATTENTION))
        return scale;
    Dim width = q.dim[q.rank - 1];
    return width.expr || width.value < heads ? 0 : 1 / sqrt((double)(width.value / heads));
}

static void find(Fold *f, const Node *n)
{
    const Value *v = arg_value(n, "query");
    double scale = scale_of(n);
    for (;;) {
        int first = f->uses.first[v->index];
        if (!v->def || f->uses.escapes[v->index] || f->uses.first[v->index + 1] != first + 1)
            return;
        if (!node_moves(v->def) || v->def->n_in != 1)
            break;
        v = first_operand(v->def);
    }
    Weighted w;
    if (scale == 0 || scale == 1 || !weighted_read(v->def, &w) || (w.w_axis && !w.is_conv) ||
        !owns_weights(&w, f->reads))
        return;
    f->scale[v->index] = f->scale[n->out[0]->index] = scale;
}

static Value *scaled(Fold *f, const Value *v, double scale)
{
    const float *from = value_floats(v, -1);
    int64_t n = type_numel(v->type);
    float *to = arena_alloc(f->p->arena, (size_t)n + 1, sizeof *to);
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((double)from[i] * scale);
    State *s = program_const(f->p, v->state->name, v->state->fqn, type_plain(v->type), to);
    return graph_state(f->r.g, s);
}

static bool set_scale(Fold *f, Node *n, double scale)
{
    if (is_attention(n)) {
        node_set_arg(n, arg_of(n, "scale"), (Arg){.kind = ARG_FLOAT, .f = 1});
        return true;
    }
    Value *w = scaled(f, arg_value(n, "weight"), scale), *b = arg_value(n, "bias");
    b = b ? scaled(f, b, scale) : NULL;
    return rewrite_product(&f->r, n, w, b);
}

static bool fold_graph(Fold *f, Graph *g, Arena *tmp, Diag *d)
{
    bool ok = true;
    f->r = rewrite_start(g, tmp, d);
    f->uses = graph_uses(g, tmp);
    f->scale = NEW(tmp, double, g->n_values + 1);
    for (const Node *n = g->first; n; n = n->next)
        if (is_attention(n))
            find(f, n);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&f->r, n);
        int at = n->n_out ? n->out[0]->index : f->r.first_new;
        double scale = at < f->r.first_new ? f->scale[at] : 0;
        if (scale != 0)
            ok = set_scale(f, n, scale) && ok;
    }
    rewrite_finish(&f->r);
    return ok;
}

bool pass_fold_scale(Program *p, Arena *tmp, Diag *d)
{
    Fold f = {.p = p};
    bool ok = true;
    if (!p->n_backends)
        return true;
    f.reads = storage_reads(p, tmp);
    for (int i = 0; i < p->n_methods; i++)
        ok = fold_graph(&f, p->method[i], tmp, d) && ok;
    return ok;
}
