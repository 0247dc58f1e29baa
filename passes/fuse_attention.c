/* fuse_attention.c -- replaces attention that a model spells out by one node.
 *
 * Stage core, after constants were folded and dead nodes removed.  The nodes between two products
 * are read backwards:
 *
 *   bmm(softmax(mask(cap(bmm(q, k^T)))), v)  ==>  etc.softmax_attention(q, k, v)
 *
 * cap is c * tanh(s).  mask adds a tensor to the scores, at most twice, or lastly replaces scores
 * by a number where a condition is true.  Products with numbers may be anywhere; they become part
 * of the scale, the cap or the mask.  Views that split or merge batch axes may be anywhere too.  No
 * other node may read the values in between.  The new node computes the same, also for rows without
 * a key, which are NaN.  If the model turns these into 0, as exporters spell
 * scaled_dot_product_attention, the node becomes that operator; a NaN in its operands is then in
 * the result, as in torch.
 *
 *   bmm(where(w != w, 0, w), v)  ==>  scaled_dot_product_attention(q, k, v)   w: softmax, as above
 *
 * or w is the softmax of s, and the condition is max(s) == -inf.
 *
 * Halves are taken only so: this operator computes them in floats and rounds once, where the nodes
 * round at each step.
 *
 * The batch axes of the node are those of the model's views, so that masks broadcast over them;
 * if possible there are two, because backends take no others.  Each node is looked at once. */
#include "passes/internal.h"
#include "ir/backend.h"
#include "ir/eval.h"
#include "ir/session.h"
#include <math.h>

enum { MAX_LEVELS = 12, MAX_BATCH = 4 };

/* The batch axes of the scores in one of the views of the model. */
typedef struct Level {
    const Dim *dim;
    int rank;
} Level;

typedef struct Mask {
    Value *value;
    Level at;
    double factor; /* of the term that is added */
} Mask;

/* One attention, read from its end. */
typedef struct Match {
    Node *softmax, *scores; /* scores: the first product */
    Level level[MAX_LEVELS];
    int n_levels;
    Mask mask[2];           /* the last to come first */
    int n_masks;
    bool is_where, is_inverted; /* mask[0] is a condition; it is true where scores stay */
    const Value *guarded;       /* the weights, if a row of NaNs becomes 0 after them; or NULL */
    const Value *looked_at;     /* the scores, if the condition of that reads them; or NULL */
    double fill, factor, cap;
    EtcDtype dtype; /* of all of it */
} Match;

typedef struct Fuse {
    Rewrite r;
    Uses u;
} Fuse;

/* -- reading --------------------------------------------------------------------------------- */

static void note_level(Match *m, Type t)
{
    if (t.rank >= 2 && t.rank - 2 <= MAX_BATCH && m->n_levels < MAX_LEVELS)
        m->level[m->n_levels++] = (Level){t.dim, t.rank - 2};
}

/* Returns whether n is a copy, or a view that leaves rows and columns as they are. */
static bool keeps_matrix(const Node *n)
{
    Type in, out;
    if (node_is_copy(n))
        return true;
    if (!node_is_view(n))
        return false;
    in = arg_value(n, "self")->type;
    out = n->out[0]->type;
    return in.rank >= 2 && out.rank >= 2 &&
           dims_equal(in.dim + in.rank - 2, out.dim + out.rank - 2, 2);
}

/* Returns whether n exchanges rows and columns, and nothing else. */
static bool swaps_matrix(const Node *n)
{
    Permute p;
    return permute_read(n, &p) && permute_swaps_last(&p);
}

/* Reads an argument that is a number, or a constant of one element. */
static bool read_number(const Node *n, int i, double *v)
{
    const Value *x = arg_value(n, i);
    if (!x)
        return arg_number(n, i, v);
    const bool ok = value_is_known(x) && type_numel(x->type) == 1 &&
                    (x->type.dtype == ETC_F32 || dtype_is_half(x->type.dtype));
    if (ok)
        *v = value_number(x, 0);
    return ok;
}

/* Reads x * number or x / number, and multiplies *factor by the factor. */
static bool read_factor(const Node *n, double *factor)
{
    double by;
    if ((n->op != OP_MUL_SCALAR && n->op != OP_DIV_SCALAR) || !arg_number(n, "other", &by))
        return false;
    by = n->op == OP_MUL_SCALAR ? by : 1 / by;
    if (!isfinite(by) || by == 0)
        return false;
    *factor *= by;
    return true;
}

static bool read_scores(const Fuse *f, Match *m, const Value *v);

static bool add_mask(Match *m, Value *mask, Type scores)
{
    if (m->n_masks == 2 || m->cap != 0 || !mask || mask->type.rank > scores.rank)
        return false;
    m->mask[m->n_masks++] = (Mask){mask, {scores.dim, scores.rank - 2}, m->factor};
    return true;
}

/* Reads where(mask, scores, number) or where(mask, number, scores). */
static bool read_fill(const Fuse *f, Match *m, const Node *n)
{
    for (int i = 1; i <= 2; i++) {
        const Value *x = arg_value(n, i);
        if (!x || !read_number(n, 3 - i, &m->fill) || !type_equal(x->type, n->out[0]->type))
            continue;
        m->is_where = true;
        m->is_inverted = i == 2;
        m->fill *= m->factor;
        return !m->n_masks && add_mask(m, arg_value(n, "condition"), x->type) &&
               read_scores(f, m, x);
    }
    return false;
}

/* Reads scores + mask or mask + scores. */
static bool read_sum(const Fuse *f, Match *m, const Node *n)
{
    double alpha = 0;
    if (n->n_in != 2 || !arg_number(n, "alpha", &alpha) || alpha != 1)
        return false;
    for (int i = 0; i < 2; i++) {
        Match with = *m;
        if (n->in[1 - i]->type.dtype == n->out[0]->type.dtype &&
            type_equal(n->in[i]->type, n->out[0]->type) &&
            add_mask(&with, n->in[1 - i], n->in[i]->type) && read_scores(f, &with, n->in[i])) {
            *m = with;
            return true;
        }
    }
    return false;
}

/* Walks back from the operand of softmax to the product of queries and keys. */
static bool read_scores(const Fuse *f, Match *m, const Value *v)
{
    Where c;
    for (; (v == m->looked_at || value_is_read_once(&f->u, v)) && v->def;
         v = arg_value(v->def, "self")) {
        Node *n = v->def;
        note_level(m, v->type);
        if (n->op == OP_ADD_TENSOR)
            return read_sum(f, m, n);
        if (where_read(n, &c))
            return read_fill(f, m, n);
        if (n->op == OP_BMM) {
            m->scores = n;
            return true;
        }
        if (n->op == OP_TANH && m->cap == 0) {
            m->cap = m->factor;
            m->factor = 1;
        } else if (!keeps_matrix(n) && !read_factor(n, &m->factor)) {
            return false;
        }
    }
    return false;
}

/* Returns whether nodes other than a and b read v. */
static bool has_other_readers(const Fuse *f, const Value *v, const Node *a, const Node *b)
{
    if (v->index >= f->r.first_new || f->u.escapes[v->index])
        return true;
    for (int i = f->u.first[v->index]; i < f->u.first[v->index + 1]; i++)
        if (f->u.user[i] != a && f->u.user[i] != b)
            return true;
    return false;
}

/* Returns the s of max(s) == -inf, along its rows, if w is softmax(s) and nobody else reads s. */
static const Value *masked_rows(const Fuse *f, const Node *condition, const Value *w)
{
    double low;
    Reduce r;
    const Value *most = condition->op == OP_EQ_SCALAR ? arg_value(condition, "self") : NULL;
    if (!most || !arg_number(condition, "other", &low) || low != -INFINITY || !most->def ||
        most->def->op != OP_AMAX || !reduce_read(most->def, &r) || !r.keeps || !r.x->type.rank ||
        r.axes != 1u << (r.x->type.rank - 1) || !w->def || w->def->op != OP__SOFTMAX ||
        first_operand(w->def) != r.x || has_other_readers(f, r.x, most->def, w->def))
        return NULL;
    return r.x;
}

/* Returns the w of where(w != w, 0, w), or of its other form, if nobody else reads it; NULL: n is no
 * such guard. */
static const Value *guarded(const Fuse *f, Match *m, const Node *n)
{
    double zero;
    Where c;
    if (!where_read(n, &c) || !c.no || !c.condition->def || !read_number(n, arg_of(n, "self"), &zero) ||
        zero != 0 || !type_equal(c.no->type, n->out[0]->type))
        return NULL;
    const Node *is_nan = c.condition->def;
    if (is_nan->op == OP_NE_TENSOR && arg_value(is_nan, "self") == c.no &&
        arg_value(is_nan, "other") == c.no)
        return has_other_readers(f, c.no, n, is_nan) ? NULL : c.no;
    m->looked_at = masked_rows(f, is_nan, c.no);
    return m->looked_at && !has_other_readers(f, c.no, n, n) ? c.no : NULL;
}

/* Walks back from an operand of the second product to a softmax along its rows. */
static bool read_weights(const Fuse *f, Match *m, const Value *v, bool is_swapped)
{
    int64_t axis;
    Where c;
    for (const Value *x; v->def && (v == m->guarded || value_is_read_once(&f->u, v)); v = x) {
        Node *n = v->def;
        note_level(m, v->type);
        if (where_read(n, &c)) {
            x = m->guarded = guarded(f, m, n);
            if (!x)
                return false;
            continue;
        }
        m->softmax = n;
        if (n->op == OP__SOFTMAX)
            return !is_swapped && arg_int(n, "dim", &axis) && axis == v->type.rank - 1 &&
                   v->type.dtype == m->dtype && arg_value(n, "self")->type.dtype == m->dtype;
        if (swaps_matrix(n))
            is_swapped = !is_swapped;
        else if (!keeps_matrix(n))
            return false;
        x = arg_value(n, "self");
    }
    return false;
}

/* Returns whether the guard against rows of NaN leaves what scaled_dot_product_attention computes.
 * That has one mask, and gives 0 where all of the mask is -inf. */
static bool suits_guard(const Match *m)
{
    return m->n_masks < 2 && m->cap == 0 && (!m->is_where || m->fill == -INFINITY);
}

static bool read_attention(const Fuse *f, Match *m, const Value *weights, bool is_swapped)
{
    *m = (Match){.fill = -INFINITY, .factor = 1, .dtype = weights->type.dtype};
    return read_weights(f, m, weights, is_swapped) &&
           read_scores(f, m, arg_value(m->softmax, "self")) &&
           (!m->guarded || suits_guard(m));
}

/* -- batch axes ------------------------------------------------------------------------------ */

/* Computes the sizes that a mask of some batch axes has under others.  These differ in a run of
 * axes, of which the mask must have all or none. */
static bool mask_under(const Mask *m, Level to, Dim *out)
{
    const Dim *d = m->at.dim;
    Dim size[MAX_RANK];
    int first = 0, end = m->at.rank, end_to = to.rank, rank = m->value->type.rank;
    bool has_all = true, has_none = true;
    for (int i = 0; i < end; i++) {
        int at = i + rank - 2 - m->at.rank;
        size[i] = at >= 0 ? m->value->type.dim[at] : DIM(1);
    }
    while (end && end_to && dim_equal(d[end - 1], to.dim[end_to - 1]))
        out[--end_to] = size[--end];
    for (; first < end && first < end_to && dim_equal(d[first], to.dim[first]); first++)
        out[first] = size[first];
    for (int i = first; i < end; i++) {
        has_all = has_all && dim_equal(size[i], d[i]);
        has_none = has_none && dim_equal(size[i], DIM(1));
    }
    for (int i = first; i < end_to; i++)
        out[i] = has_none ? DIM(1) : to.dim[i];
    return has_all || has_none;
}

static bool suits(const Match *m, Level to)
{
    Dim size[MAX_RANK];
    for (int i = 0; i < m->n_masks; i++)
        if (!mask_under(&m->mask[i], to, size))
            return false;
    return true;
}

/* Chooses the batch axes: two, if some two will do, else more, else those that were there and one
 * more. */
static bool choose_level(const Match *m, Dim pair[2], Level *to)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->n_levels; i++)
            if ((m->level[i].rank == 2) == (pass == 0) && m->level[i].rank >= 2 &&
                suits(m, m->level[i])) {
                *to = m->level[i];
                return true;
            }
    pair[0] = m->scores->out[0]->type.dim[0];
    pair[1] = DIM(1);
    *to = (Level){pair, 2};
    return suits(m, *to);
}

/* Returns x under other batch axes. */
static Value *under(Fuse *f, Node *at, Value *x, Level to)
{
    Dim dim[MAX_RANK];
    Type t = x->type;
    for (int i = 0; i < to.rank; i++)
        dim[i] = to.dim[i];
    dim[to.rank] = t.dim[t.rank - 2];
    dim[to.rank + 1] = t.dim[t.rank - 1];
    if (t.rank == to.rank + 2 && dims_equal(t.dim, dim, t.rank))
        return x;
    return build_view(&f->r, at, x, dim, to.rank + 2);
}

static Value *swapped(Fuse *f, Node *at, Value *x)
{
    int64_t axis[MAX_RANK];
    int rank = x ? x->type.rank : 0;
    for (int i = 0; i < rank; i++)
        axis[i] = i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i;
    return x ? build_permute(&f->r, at, x, axis) : NULL;
}

/* -- operands -------------------------------------------------------------------------------- */

typedef struct Operand {
    Value *x;
    bool is_swapped;
} Operand;

/* Returns an operand of a product without the views and transposes before it and, if they may
 * become part of the scale, without products with numbers. */
static Operand read_operand(Value *v, double *factor)
{
    Operand o = {v, false};
    while (o.x->def) {
        const Node *n = o.x->def;
        if (swaps_matrix(n))
            o.is_swapped = !o.is_swapped;
        else if (!keeps_matrix(n) && (!factor || !read_factor(n, factor)))
            break;
        o.x = arg_value(n, "self");
    }
    return o;
}

static Value *operand(Fuse *f, Node *at, Operand o, Level to)
{
    Value *x = under(f, at, o.x, to);
    return o.is_swapped ? swapped(f, at, x) : x;
}

/* Returns the h heads of an operand whose heads [.., h, 1, rows, width] are repeated to [.., h, g,
 * rows, width] before their batch axes are merged.  NULL: they are not repeated. */
static Value *shared_heads(const Operand *o, Level to)
{
    const Node *n = o->x->def;
    if (!n || n->op != OP_EXPAND || o->is_swapped || n->out[0]->type.rank != to.rank + 3)
        return NULL;
    const Type in = arg_value(n, "self")->type, out = n->out[0]->type;
    const Dim *h = in.dim + to.rank - 1, *all = &to.dim[to.rank - 1], *g = out.dim + to.rank;
    if (in.rank != out.rank || h[0].expr || all->expr || g->expr || !dim_equal(h[1], DIM(1)) ||
        h[0].value * g->value != all->value || !dims_equal(in.dim, out.dim, to.rank) ||
        !dims_equal(in.dim, to.dim, to.rank - 1) || !dims_equal(h + 2, g + 1, 2))
        return NULL;
    return arg_value(n, "self");
}

/* Builds key and value.  If both are repeated they have fewer heads than the query. */
static bool keys_and_values(Fuse *f, Node *at, Operand k, Operand v, Level to, Value *out[2])
{
    Dim fewer[MAX_RANK];
    Value *one = shared_heads(&k, to), *other = shared_heads(&v, to);
    bool is_shared = one && other && dim_equal(one->type.dim[to.rank - 1],
                                               other->type.dim[to.rank - 1]);
    if (is_shared) {
        for (int i = 0; i < to.rank; i++)
            fewer[i] = one->type.dim[i];
        to.dim = fewer;
        k.x = one;
        v.x = other;
    }
    out[0] = operand(f, at, k, to);
    out[1] = operand(f, at, v, to);
    return is_shared;
}

/* -- the node -------------------------------------------------------------------------------- */

/* Builds the i-th mask as the node reads it; *out is NULL if there is none. */
static bool build_mask(Fuse *f, Node *at, const Match *m, int i, Level to, Value **out)
{
    const Mask *mask = &m->mask[i];
    Dim dim[MAX_RANK];
    *out = NULL;
    if (i >= m->n_masks)
        return true;
    Value *x = mask->value;
    int rank = x->type.rank;
    if (to.rank != mask->at.rank || !dims_equal(to.dim, mask->at.dim, to.rank)) {
        mask_under(mask, to, dim);
        for (int k = 1; k <= 2; k++)
            dim[to.rank + 2 - k] = rank >= k ? x->type.dim[rank - k] : DIM(1);
        x = build_view(&f->r, at, x, dim, to.rank + 2);
    }
    if (x && i == 0 && m->is_inverted)
        x = node_result(build(f->r.g, at, at->loc, OP_LOGICAL_NOT, f->r.d, "v", x));
    else if (x && mask->factor != 1 && !(i == 0 && m->is_where))
        x = node_result(build(f->r.g, at, at->loc, OP_MUL_SCALAR, f->r.d, "vf", x, mask->factor));
    *out = x;
    return x != NULL;
}

/* Replaces a mask that is added as where(c, 0, -inf) by c. */
static void read_choice(Match *m)
{
    double key, other;
    Where c;
    const Node *n = m->n_masks && !m->is_where ? m->mask[0].value->def : NULL;
    if (!n || !where_read(n, &c) || !read_number(n, arg_of(n, "self"), &key) || key != 0 ||
        !read_number(n, arg_of(n, "other"), &other) || other != -INFINITY ||
        m->mask[0].factor <= 0 || c.condition->type.rank != n->out[0]->type.rank ||
        !dims_equal(c.condition->type.dim, n->out[0]->type.dim, c.condition->type.rank))
        return;
    m->mask[0].value = c.condition;
    m->is_where = true;
}

/* Returns whether this is scaled_dot_product_attention: a query without a key gives 0, or there
 * is no such query. */
static bool is_torchs(const Match *m)
{
    return m->guarded || (!m->n_masks && m->cap == 0);
}

static bool fuse(Fuse *f, Node *n, Match *m, Value *values, bool is_swapped)
{
    Dim pair[2];
    Level to;
    Value *kv[2];
    if (m->guarded)
        read_choice(m);
    Operand q = read_operand(arg_value(m->scores, "self"), &m->factor);
    Operand k = read_operand(arg_value(m->scores, "mat2"), &m->factor);
    Operand v = read_operand(values, NULL);
    k.is_swapped = !k.is_swapped;
    v.is_swapped = v.is_swapped != is_swapped;
    if (!choose_level(m, pair, &to))
        return true;
    Attention a = {.scale = m->factor, .cap = m->cap, .fill = m->fill};
    a.is_empty = is_torchs(m);
    a.is_shared = keys_and_values(f, n, k, v, to, kv);
    a.q = operand(f, n, q, to);
    a.k = kv[0];
    a.v = kv[1];
    if (!a.q || !a.k || !a.v || !build_mask(f, n, m, 0, to, &a.mask) ||
        !build_mask(f, n, m, 1, to, &a.bias))
        return false;
    Value *y = node_result(attention_build(f->r.g, n, n->loc, &a, f->r.d));
    y = y && is_swapped ? swapped(f, n, y) : y;
    y = y ? build_view(&f->r, n, y, n->out[0]->type.dim, n->out[0]->type.rank) : NULL;
    return y && rewrite_node(&f->r, n, y);
}

/* Returns whether a backend takes the attention in parts alone. */
static bool is_kept(const Match *m, const Node *n)
{
    const Session *s = n->graph->program->session;
    for (int i = 0; i < s->n_backends; i++)
        if (s->backend[i]->keeps_parts && s->backend[i]->keeps_parts(m->scores, m->is_where, n))
            return true;
    return false;
}

/* Returns whether the scores have more bytes than the result.  Symbolic sizes count with their
 * upper bounds. */
static bool saves_memory(const Match *m, const Node *n)
{
    return type_numel(m->scores->out[0]->type) > type_numel(n->out[0]->type);
}

static bool look(Fuse *f, Node *n)
{
    Match m;
    EtcDtype t = n->out[0]->type.dtype;
    if (t != ETC_F32 && !dtype_is_half(t))
        return true;
    bool is_swapped = !read_attention(f, &m, arg_value(n, "self"), false);
    if (is_swapped && !read_attention(f, &m, arg_value(n, "mat2"), true))
        return true;
    if (t != ETC_F32 && !m.guarded)
        return true;
    bool pays = saves_memory(&m, n) || (is_torchs(&m) && n->graph->program->session->n_backends);
    if (!m.guarded && (!pays || is_kept(&m, n)))
        return true;
    return fuse(f, n, &m, n->in[is_swapped ? 0 : 1], is_swapped);
}

bool pass_fuse_attention(Graph *g, Arena *tmp, Diag *d)
{
    Fuse f = {rewrite_start(g, tmp, d), graph_uses(g, tmp)};
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&f.r, n);
        if (n->op == OP_BMM && !g->program->session->is_fixed_point)
            ok = look(&f, n) && ok;
    }
    rewrite_finish(&f.r);
    return ok;
}
