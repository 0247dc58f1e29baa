/* pack_heads.c -- attention between a split and a merge of heads becomes one node on packed rows.
 *
 * Stage core, where backends are asked: heads of [batch, rows, heads * width] are columns, so a
 * backend that cuts columns needs neither the transposes nor the views around
 * scaled_dot_product_attention.  What nobody takes is spelled out again by decompose.  Each node is
 * looked at once.
 *
 *   q = permute(view(x, [b, s, h, w]), [0, 2, 1, 3])      or, of one product for q, k and v,
 *   q = select(permute(view(x, [b, s, 3, h, w]), [2, 0, 3, 1, 4]), 0, i)
 *   view(permute(sdpa(q, k, v), [0, 2, 1, 3]), [b, s, h * w])
 */
#include "passes/internal.h"

typedef struct Packed {
    Value *x;
    int64_t from, heads, width; /* its columns from .. from + heads * width */
} Packed;

static bool is_permute(const Node *n, int rank, const int64_t *want)
{
    int64_t axis[MAX_RANK];
    if (!n || n->op != OP_PERMUTE || n->in[0]->type.rank != rank ||
        !arg_ints(n, 1, axis, MAX_RANK))
        return false;
    for (int i = 0; i < rank; i++)
        if ((axis[i] < 0 ? axis[i] + rank : axis[i]) != want[i])
            return false;
    return true;
}

static Node *without_copies(const Value *v)
{
    while (v->def && (v->def->op == OP_CLONE || v->def->op == OP_ALIAS))
        v = v->def->in[0];
    return v->def;
}

/* The rows that a view splits the last axis of: [b, s, c] seen as [b, s, ...]. */
static Value *split_rows(const Node *n)
{
    if (!n || n->op != OP_VIEW)
        return NULL;
    const Type in = n->in[0]->type, out = n->out[0]->type;
    return in.rank == 3 && dims_equal(in.dim, out.dim, 2) ? n->in[0] : NULL;
}

static bool set_heads(const Type t, int first, Packed *p)
{
    p->heads = t.dim[first].value;
    p->width = t.dim[first + 1].value;
    return p->x && !t.dim[first].expr && !t.dim[first + 1].expr;
}

static bool read_packed(const Value *v, Packed *p)
{
    static const int64_t swap[] = {0, 2, 1, 3}, unbind[] = {2, 0, 3, 1, 4};
    int64_t axis, at;
    Node *n = without_copies(v);
    *p = (Packed){0};
    if (is_permute(n, 4, swap)) {
        const Node *view = without_copies(n->in[0]);
        p->x = split_rows(view);
        return p->x && set_heads(view->out[0]->type, 2, p);
    }
    if (!n || n->op != OP_SELECT_INT || !arg_int(n, 1, &axis) || axis != 0 ||
        !arg_int(n, 2, &at) || at < 0 || !is_permute(without_copies(n->in[0]), 5, unbind))
        return false;
    const Node *view = without_copies(without_copies(n->in[0])->in[0]);
    p->x = split_rows(view);
    if (!p->x || !set_heads(view->out[0]->type, 3, p))
        return false;
    p->from = at * p->heads * p->width;
    return true;
}

/* The one reader of a value, copies skipped. */
static Node *only_reader(const Uses *u, const Value *v)
{
    for (;;) {
        if (u->first[v->index + 1] - u->first[v->index] != 1 || u->escapes[v->index])
            return NULL;
        Node *n = u->user[u->first[v->index]];
        if (n->op != OP_CLONE && n->op != OP_ALIAS)
            return n;
        v = n->out[0];
    }
}

/* The view that merges the heads again. */
static Node *merge_of(const Uses *u, const Node *sdpa)
{
    static const int64_t swap[] = {0, 2, 1, 3};
    Node *permute = only_reader(u, sdpa->out[0]);
    if (!is_permute(permute, 4, swap))
        return NULL;
    Node *view = only_reader(u, permute->out[0]);
    const Type split = permute->out[0]->type;
    if (!view || view->op != OP_VIEW || view->out[0]->type.rank != 3)
        return NULL;
    return dims_equal(view->out[0]->type.dim, split.dim, 2) ? view : NULL;
}

static Value *columns(Rewrite *r, Node *at, const Packed *p)
{
    int64_t count = p->heads * p->width;
    if (!p->from && dim_equal(p->x->type.dim[2], DIM(count)))
        return p->x;
    Node *s = build(r->g, at, at->loc, OP_SLICE, r->d, "viiii", p->x, (int64_t)2, p->from,
                    p->from + count, (int64_t)1);
    return s ? s->out[0] : NULL;
}

static bool pack_node(Rewrite *r, const Uses *u, Node *sdpa)
{
    Packed q, k, v;
    double scale = 0, dropout = 0;
    Node *merge = merge_of(u, sdpa);
    const Value *mask = arg_value(sdpa, 3);
    if (!merge || (mask && mask->type.dtype != ETC_F32) || !read_packed(arg_value(sdpa, 0), &q) ||
        !read_packed(arg_value(sdpa, 1), &k) || !read_packed(arg_value(sdpa, 2), &v) ||
        q.width != k.width || k.heads != v.heads || q.heads % k.heads ||
        !arg_number(sdpa, 4, &dropout) || dropout != 0)
        return true;
    if (!arg_number(sdpa, 6, &scale))
        scale = 0; /* what the width asks for */
    Value *a = columns(r, sdpa, &q), *b = columns(r, sdpa, &k), *c = columns(r, sdpa, &v);
    Node *n = a && b && c ? build(r->g, sdpa, sdpa->loc, OP_ATTENTION, r->d, "vvvviibf", a, b, c,
                                  arg_value(sdpa, 3), q.heads, k.heads, arg_bool(sdpa, 5), scale)
                          : NULL;
    if (!n)
        return false;
    rewrite_value(r, merge->out[0], n->out[0]);
    return true;
}

bool pass_pack_heads(Graph *g, Arena *tmp, Diag *d)
{
    bool ok = true;
    if (!g->program->n_backends)
        return true;
    Rewrite r = rewrite_start(g, tmp, d);
    Uses u = graph_uses(g, tmp);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        if (n->op == OP_SDPA)
            ok = pack_node(&r, &u, n) && ok;
    }
    rewrite_finish(&r);
    return ok;
}
