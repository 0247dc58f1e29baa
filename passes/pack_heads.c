/* pack_heads.c -- attention between a split and a merge of heads becomes one node on packed rows.
 *
 * Stage core, before partition.  The heads of [batch, rows, heads * width] are columns, so a
 * backend that can cut columns needs neither the transposes nor the views around
 * scaled_dot_product_attention.  If no backend takes the node, decompose expands it again.  Each
 * node is looked at once.
 *
 *   q = permute(view(x, [b, s, h, w]), [0, 2, 1, 3])      or, of one product for q, k and v,
 *   q = select(permute(view(x, [b, s, 3, h, w]), [2, 0, 3, 1, 4]), 0, i)
 *   view(permute(sdpa(q, k, v), [0, 2, 1, 3]), [b, s, h * w])
 *
 * Masks become tensors that are added to the scores and leave a key for every query.  If the
 * given mask leaves no key for a query, a factor after the node makes its result 0, as sdpa
 * does. */
#include "passes/internal.h"
#include <math.h>
#include <string.h>

typedef struct Packed {
    Value *x;
    int64_t from, heads, width; /* it is the columns from .. from + heads * width - 1 */
} Packed;

static bool is_permute(const Node *n, int rank, const int *want)
{
    Permute p;
    return n && permute_read(n, &p) && p.rank == rank &&
           !memcmp(p.axis, want, (size_t)rank * sizeof *want);
}

static Node *without_copies(const Value *v)
{
    while (v->def && node_is_copy(v->def))
        v = arg_value(v->def, "self");
    return v->def;
}

/* Returns the rows [b, s, c] if n is a view of them that splits the last axis, [b, s, ...]; else
 * NULL. */
static Value *split_rows(const Node *n)
{
    if (!n || !node_is_view(n))
        return NULL;
    const Type in = arg_value(n, "self")->type, out = n->out[0]->type;
    return in.rank == 3 && dims_equal(in.dim, out.dim, 2) ? arg_value(n, "self") : NULL;
}

static bool set_heads(const Type t, int first, Packed *p)
{
    p->heads = t.dim[first].value;
    p->width = t.dim[first + 1].value;
    return p->x && !t.dim[first].expr && !t.dim[first + 1].expr;
}

static bool read_packed(const Value *v, Packed *p)
{
    static const int swap[] = {0, 2, 1, 3}, unbind[] = {2, 0, 3, 1, 4};
    Select part;
    Node *n = without_copies(v);
    *p = (Packed){0};
    if (is_permute(n, 4, swap)) {
        const Node *view = without_copies(arg_value(n, "self"));
        p->x = split_rows(view);
        return p->x && set_heads(view->out[0]->type, 2, p);
    }
    if (!n || !select_read(n, &part) || part.axis != 0 || part.index.expr ||
        !is_permute(without_copies(part.x), 5, unbind))
        return false;
    const Node *view = without_copies(first_operand(without_copies(part.x)));
    p->x = split_rows(view);
    if (!p->x || !set_heads(view->out[0]->type, 3, p))
        return false;
    p->from = part.index.value * p->heads * p->width;
    return true;
}

/* Returns the one reader of a value, behind copies; NULL: there are others. */
static Node *only_reader(const Uses *u, const Value *v)
{
    Node *n = value_reader(u, v);
    while (n && node_is_copy(n))
        n = value_reader(u, n->out[0]);
    return n;
}

/* Returns the view that merges the heads again, or NULL. */
static Node *merge_of(const Uses *u, const Node *sdpa)
{
    static const int swap[] = {0, 2, 1, 3};
    Node *permute = only_reader(u, sdpa->out[0]);
    if (!is_permute(permute, 4, swap))
        return NULL;
    Node *view = only_reader(u, permute->out[0]);
    const Type split = permute->out[0]->type;
    if (!view || !node_is_view(view) || view->out[0]->type.rank != 3)
        return NULL;
    return dims_equal(view->out[0]->type.dim, split.dim, 2) ? view : NULL;
}

static Value *columns(Rewrite *r, Node *at, const Packed *p)
{
    int64_t count = p->heads * p->width;
    if (!p->from && dim_equal(p->x->type.dim[2], DIM(count)))
        return p->x;
    return slice_build(r->g, at, at->loc, p->x, 2, DIM(p->from), DIM(p->from + count), r->d);
}

/* -- masks ----------------------------------------------------------------------------------- */

static const double NEVER = -1e30; /* added to any score, nothing of it is left */

/* Returns whether a mask is the same for all heads. */
static bool is_for_all_heads(const Value *mask)
{
    const Type t = mask->type;
    return t.rank < 3 || (t.rank == 4 && dim_equal(t.dim[1], DIM(1)));
}

static Value *without_heads(Rewrite *r, Node *n, Value *x)
{
    const Dim *d = x ? x->type.dim : NULL;
    return !x || x->type.rank < 4 ? x : build_view(r, n, x, (Dim[]){d[0], d[2], d[3]}, 3);
}

static bool is_key(EtcDtype t, const uint8_t *data, int64_t i)
{
    float f;
    uint16_t h;
    switch (t) {
    case ETC_BOOL:
        return data[i] != 0;
    case ETC_F32:
        memcpy(&f, data + 4 * i, sizeof f);
        return f > -INFINITY;
    case ETC_F16:
        memcpy(&h, data + 2 * i, sizeof h);
        return half_value(h) > -INFINITY;
    default:
        return false;
    }
}

static bool all_keys(const Value *v)
{
    int64_t i = 0, n = value_is_known(v) ? type_numel(v->type) : 0;
    while (i < n && is_key(v->type.dtype, state_elements(v->state), i))
        i++;
    return n && i == n;
}

/* Returns whether a mask leaves a key for each query.  This is seen in the bytes of a constant, or
 * of both constants from which where() chooses. */
static bool keeps_keys(const Value *mask)
{
    Where c;
    if (mask->def && where_read(mask->def, &c))
        return all_keys(c.yes) && all_keys(c.no);
    int64_t keys = mask->type.rank && !mask->type.dim[mask->type.rank - 1].expr
                       ? mask->type.dim[mask->type.rank - 1].value
                       : 0;
    if (!value_is_known(mask) || keys < 1)
        return false;
    int64_t n = type_numel(mask->type), with = 0;
    const uint8_t *b = state_elements(mask->state);
    for (int64_t i = 0; i < n; i += keys) {
        int64_t k = 0;
        while (k < keys && !is_key(mask->type.dtype, b, i + k))
            k++;
        with += k < keys;
    }
    return with == n / keys;
}

/* Returns a number that is far below all scores, and whose sum with a score is finite. */
static double never(EtcDtype t)
{
    return t == ETC_F16 ? -32768 : NEVER;
}

/* Returns the tensor that is added to the scores for a mask: the mask itself if it leaves a key
 * for each query, else one in which -infinity is replaced by never().  Returns NULL if that
 * fails. */
static Value *added(Rewrite *r, Node *n, Value *mask)
{
    Node *m;
    EtcDtype t = n->out[0]->type.dtype;
    if (mask->type.dtype != ETC_BOOL && keeps_keys(mask))
        return mask;
    if (mask->type.dtype == ETC_BOOL) {
        Value *no = node_result(build(r->g, n, n->loc, OP_LOGICAL_NOT, r->d, "v", mask));
        Value *f = build_cast(r, n, no, t);
        m = f ? build(r->g, n, n->loc, OP_MUL_SCALAR, r->d, "vf", f, never(t)) : NULL;
    } else {
        m = build(r->g, n, n->loc, OP_CLAMP, r->d, "vfn", mask, never(t));
    }
    return node_result(m);
}

/* Returns 1 for each query that has a key, else 0. */
static Value *has_key(Rewrite *r, Node *n, Value *mask)
{
    static const int64_t last = -1;
    Value *any;
    if (mask->type.dtype == ETC_BOOL) {
        any = node_result(build(r->g, n, n->loc, OP_ANY_DIMS, r->d, "vIb", mask, 1, &last, true));
    } else {
        Node *top = build(r->g, n, n->loc, OP_AMAX, r->d, "vIb", mask, 1, &last, true);
        any = top ? node_result(build(r->g, n, n->loc, OP_NE_SCALAR, r->d, "vf", top->out[0],
                                      -(double)INFINITY))
                  : NULL;
    }
    return build_cast(r, n, any, n->out[0]->type.dtype);
}

/* -- the node -------------------------------------------------------------------------------- */

static Value *factored(Rewrite *r, Node *n, Value *y, Value *mask, bool is_packed)
{
    if (!mask || keeps_keys(mask))
        return y;
    Value *has = has_key(r, n, mask);
    has = is_packed ? without_heads(r, n, has) : has;
    return build_pair(r, n, OP_MUL_TENSOR, y, has);
}

/* Rewrites attention to one with a plain mask, which is added to the scores. */
static bool plain_mask(Rewrite *r, Node *n)
{
    Value *mask = arg_value(n, "attn_mask"), *add = added(r, n, mask);
    if (add == mask)
        return true;
    Node *y = add ? build(r->g, n, n->loc, n->op, r->d, "vvvvaaaa", arg_value(n, "query"),
                          arg_value(n, "key"), arg_value(n, "value"), add,
                          arg_get(n, "dropout_p"), arg_get(n, "is_causal"),
                          arg_get(n, "scale"), arg_get(n, "enable_gqa"))
                  : NULL;
    Value *out = y ? factored(r, n, y->out[0], mask, false) : NULL;
    return out && rewrite_node(r, n, out);
}

static bool pack_node(Rewrite *r, const Uses *u, Node *sdpa)
{
    Packed q, k, v;
    double scale = 0, dropout = 0;
    Node *merge = merge_of(u, sdpa);
    Value *mask = arg_value(sdpa, "attn_mask"), *add = NULL;
    if (!merge || (mask && (!is_for_all_heads(mask) || mask->type.rank < 2)) ||
        !read_packed(arg_value(sdpa, "query"), &q) || !read_packed(arg_value(sdpa, "key"), &k) ||
        !read_packed(arg_value(sdpa, "value"), &v) || q.width != k.width || k.heads != v.heads ||
        q.heads % k.heads || !arg_number(sdpa, "dropout_p", &dropout) || dropout != 0)
        return !mask || mask->type.rank < 2 || plain_mask(r, sdpa);
    if (!arg_number(sdpa, "scale", &scale))
        scale = 0; /* 1 / sqrt(width) */
    Value *a = columns(r, sdpa, &q), *b = columns(r, sdpa, &k), *c = columns(r, sdpa, &v);
    if (!a || !b || !c ||
        (mask && !(add = without_heads(r, sdpa, added(r, sdpa, mask)))))
        return false;
    Node *n = build(r->g, sdpa, sdpa->loc, OP_ATTENTION, r->d, "vvvviibf", a, b, c, add, q.heads,
                    k.heads, arg_bool(sdpa, "is_causal"), scale);
    Value *y = n ? factored(r, sdpa, n->out[0], mask, true) : NULL;
    if (y)
        rewrite_value(r, merge->out[0], y);
    return y != NULL;
}

bool pass_pack_heads(Graph *g, Arena *tmp, Diag *d)
{
    bool ok = true;
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
