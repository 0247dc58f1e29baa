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

static int scale_arg(const Node *n)
{
    return n->op == OP_ATTENTION ? 7 : 6;
}

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
    if (arg_number(n, scale_arg(n), &scale) && (scale != 0 || n->op != OP_ATTENTION))
        return scale;
    Dim width = q.dim[q.rank - 1];
    return width.expr || width.value < heads ? 0 : 1 / sqrt((double)(width.value / heads));
}

static bool is_move(OpId op)
{
    return op == OP_VIEW || op == OP_PERMUTE || op == OP_CLONE || op == OP_ALIAS ||
           op == OP_SLICE || op == OP_SELECT_INT;
}

/* Of which all weights are read by it alone. */
static bool is_product(const Fold *f, const Node *n)
{
    if (n->op != OP_LINEAR && n->op != OP_CONVOLUTION)
        return false;
    const Value *w = arg_value(n, "weight"), *b = arg_value(n, "bias");
    return value_floats(w, -1) && type_numel(w->type) > 0 && f->reads[w->state->storage] == 1 &&
           (!b || value_floats(b, -1));
}

static void find(Fold *f, const Node *n)
{
    const Value *v = arg_value(n, "query");
    double scale = scale_of(n);
    for (;;) {
        int first = f->uses.first[v->index];
        if (!v->def || f->uses.escapes[v->index] || f->uses.first[v->index + 1] != first + 1)
            return;
        if (!is_move(v->def->op))
            break;
        v = arg_value(v->def, "self");
    }
    if (scale == 0 || scale == 1 || !is_product(f, v->def))
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

static bool scale_product(Fold *f, Node *n, double scale)
{
    Value *w = scaled(f, arg_value(n, "weight"), scale), *b = arg_value(n, "bias");
    b = b ? scaled(f, b, scale) : NULL;
    return rewrite_product(&f->r, n, w, b);
}

static bool rescale_attention(Fold *f, Node *n)
{
    Graph *g = f->r.g;
    Diag *d = f->r.d;
    Value *q = arg_value(n, "query"), *k = arg_value(n, "key"), *v = arg_value(n, "value"),
          *m = arg_value(n, "attn_mask");
    const Arg *a = n->arg;
    Arg one = {.kind = ARG_FLOAT, .key = a[scale_arg(n)].key, .f = 1};
    Node *made =
        n->op == OP_ATTENTION
            ? build(g, n, n->loc, n->op, d, "vvvvaaaa", q, k, v, m, a[4], a[5], a[6], one)
        : n->op == OP_SDPA
            ? build(g, n, n->loc, n->op, d, "vvvvaaaa", q, k, v, m, a[4], a[5], one, a[7])
            : build(g, n, n->loc, n->op, d, "vvvvaaaavaa", q, k, v, m, a[4], a[5], one, a[7],
                    arg_value(n, "bias"), a[9], a[10]);
    return made && rewrite_node(&f->r, n, made->out[0]);
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
            ok = (is_attention(n) ? rescale_attention(f, n) : scale_product(f, n, scale)) && ok;
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
    for (Graph *g = NULL; (g = program_next_own(p, g));)
        ok = fold_graph(&f, g, tmp, d) && ok;
    return ok;
}
