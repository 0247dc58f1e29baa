/* split_linear.c -- computes each part of a linear layer's result by a linear layer of its own, for
 * a .pte: for example query, key and value that are one product, or gates and what they multiply.
 *
 * Stage core, pte tail, before partition, since backends copy slices too.  Parts are slices of
 * the last axis, or selects from a view that splits this axis, before or after a permute.  The
 * whole result then never exists, and no slice is copied.  Rows of the weight are contiguous, so
 * no weight is copied either.  Each output is the same sum.  Linear: the users of each value are
 * visited once. */
#include "passes/internal.h"

enum { MOST_PARTS = 16 };

typedef struct LinearPart {
    Node *node; /* the slice or select that it replaces */
    int64_t from, to;
} LinearPart;

typedef struct Split {
    Graph *g;
    Rewrite r;
    Uses uses;
    Node **dead;
    int n_dead;
} Split;

typedef struct Match {
    Node *linear, *view, *permute; /* the last two: or NULL */
    LinearPart part[MOST_PARTS];
    int n;
} Match;

/* -- what is found --------------------------------------------------------------------------- */

static int count_users(const Split *s, const Value *v)
{
    return s->uses.escapes[v->index] ? 0 : s->uses.first[v->index + 1] - s->uses.first[v->index];
}

static Node *user(const Split *s, const Value *v, int i)
{
    return s->uses.user[s->uses.first[v->index] + i];
}

/* Reads the indices that a slice or select takes of an axis, counted from 0. */
static bool read_range(const Node *n, bool drops, int axis, int64_t *from, int64_t *to)
{
    Narrow p;
    if (!narrow_read(n, &p) || p.drops != drops || p.axis != axis || p.start.expr || p.count.expr ||
        p.x->type.dim[axis].expr || p.count.value < 1)
        return false;
    *from = p.start.value;
    *to = *from + p.count.value;
    return true;
}

/* Returns whether all users of v take different indices of this axis, each `width` rows of the
 * weight.  With `drops` they are selects, else slices. */
static bool find_parts(const Split *s, const Value *v, bool drops, int axis, int64_t width, Match *m)
{
    int n = count_users(s, v);
    if (n < 2 || n > MOST_PARTS)
        return false;
    for (m->n = 0; m->n < n; m->n++) {
        LinearPart *p = &m->part[m->n];
        p->node = user(s, v, m->n);
        if (!read_range(p->node, drops, axis, &p->from, &p->to))
            return false;
        p->from *= width;
        p->to *= width;
        for (int i = 0; i < m->n; i++)
            if (p->from < m->part[i].to && m->part[i].from < p->to)
                return false;
    }
    return true;
}

/* Returns whether a view shows y as [rows ..., parts, ...]. */
static bool splits_last(const Value *y, const Node *view)
{
    int last = y->type.rank - 1;
    const Type t = view->out[0]->type;
    return t.rank > last + 1 && dims_equal(t.dim, y->type.dim, last) && !t.dim[last].expr &&
           t.dim[last].value > 1;
}

static bool read_weights(const Node *n)
{
    const Value *w = arg_value(n, "weight"), *b = arg_value(n, "bias");
    return value_is_fixed(w) && !w->type.stride && (!b || (value_is_fixed(b) && !b->type.stride));
}

static bool match(const Split *s, Node *n, Match *m)
{
    *m = (Match){.linear = n};
    if (n->op != OP_LINEAR || n->out[0]->index >= s->r.first_new || !read_weights(n))
        return false;
    const Value *y = n->out[0];
    Permute turn;
    int last = y->type.rank - 1;
    if (find_parts(s, y, false, last, 1, m))
        return true;
    m->view = value_reader(&s->uses, y);
    if (!m->view || !node_is_view(m->view) || !splits_last(y, m->view))
        return false;
    const Value *v = m->view->out[0];
    int64_t width = arg_value(n, "weight")->type.dim[0].value / v->type.dim[last].value;
    if (find_parts(s, v, true, last, width, m))
        return true;
    m->permute = value_reader(&s->uses, v);
    return m->permute && permute_read(m->permute, &turn) && turn.axis[0] == last &&
           find_parts(s, m->permute->out[0], true, 0, width, m);
}

/* -- parts ----------------------------------------------------------------------------------- */

/* Returns rows [from, to) of a weight, over the same bytes. */
static Value *weight_rows(Graph *g, const Value *w, int64_t from, int64_t to)
{
    Dim dim[MAX_RANK] = {DIM(to - from)};
    for (int i = 1; i < w->type.rank; i++)
        dim[i] = w->type.dim[i];
    Type t = type_tensor(g->program, w->type.dtype, w->type.rank, dim);
    return graph_const_part(g, w, t, type_bytes(w->type) / w->type.dim[0].value * from);
}

/* Builds, for one part, the view from which parts are taken. */
static Value *part_view(Split *s, const Match *m, Value *y)
{
    Type t = m->view->out[0]->type;
    Dim dim[MAX_RANK];
    int last = m->linear->out[0]->type.rank - 1, rank = 0;
    for (int i = 0; i < t.rank; i++)
        if (i != last)
            dim[rank++] = t.dim[i];
    return build_view(&s->r, m->linear, y, dim, rank);
}

static Value *part_permute(Split *s, const Match *m, Value *y)
{
    Permute turn;
    int64_t axis[MAX_RANK];
    int last = m->linear->out[0]->type.rank - 1;
    permute_read(m->permute, &turn);
    for (int i = 1; i <= y->type.rank; i++) /* axis[0] is the one that is gone */
        axis[i - 1] = turn.axis[i] - (turn.axis[i] > last);
    return build_permute(&s->r, m->linear, y, axis);
}

static bool make_part(Split *s, const Match *m, const LinearPart *part)
{
    Node *of = m->linear;
    Value *w = weight_rows(s->g, arg_value(of, "weight"), part->from, part->to);
    Value *b = arg_value(of, "bias");
    b = b ? weight_rows(s->g, b, part->from, part->to) : NULL;
    Node *n = build(s->g, of, of->loc, OP_LINEAR, s->r.d, "vvv", arg_value(of, "input"), w, b);
    Value *y = n ? n->out[0] : NULL;
    if (y && m->view)
        y = part_view(s, m, y);
    if (y && m->permute)
        y = part_permute(s, m, y);
    if (!y)
        return false;
    rewrite_result(&s->r, part->node, 0, y);
    PUSH(s->r.tmp, s->dead, s->n_dead, part->node);
    return true;
}

static bool split(Split *s, const Match *m)
{
    for (int i = 0; i < m->n; i++)
        if (!make_part(s, m, &m->part[i]))
            return false;
    Node *whole[] = {m->permute, m->view, m->linear};
    for (int i = 0; i < 3; i++)
        if (whole[i])
            PUSH(s->r.tmp, s->dead, s->n_dead, whole[i]);
    return true;
}

bool pass_split_linear(Graph *g, Arena *tmp, Diag *d)
{
    g->whole = g->name ? graph_whole_bound(g, tmp) : 0; /* this is the first pass that cuts */
    Split s = {.g = g, .r = rewrite_start(g, tmp, d), .uses = graph_uses(g, tmp)};
    for (Node *n = g->first; n; n = n->next) {
        Match m;
        rewrite_inputs(&s.r, n);
        if (match(&s, n, &m) && !split(&s, &m))
            return false;
    }
    for (int i = 0; i < s.n_dead; i++)
        graph_remove(g, s.dead[i]);
    rewrite_finish(&s.r);
    return true;
}
