/* sink_permutes.c -- permutes move down through nodes that work in any order of axes, to where they
 * undo each other.
 *
 *   permute(f(permute(x, p)), p^-1)  ==>  f(x)
 *
 * Stage core.  Exporters of networks that keep channels last put each convolution between two
 * permutes, with bias, activation and sums outside.  A value is `apart` if it is a permute, or the
 * result of a pointwise node, of a concat, or of a node with an argument `dim`, whose operands are
 * apart by the same permutation p or can be permuted back for nothing.  Values that are apart and
 * meet in nodes form a set.  A set is computed in the order before p if that copies less: a permute
 * at the start of the set is saved if nothing outside reads it, and one that undoes p is saved;
 * a value that something else reads has to be permuted.  Two walks, linear in operands. */
#include "passes/internal.h"
#include <string.h>

static const double CALL = 2048; /* the bytes that are copied in the time of a call; a set gains as much */

typedef struct Apart {
    int set;       /* the index of a value of the same set; its own: it stands for the set */
    Permute p;     /* axis i is axis p.axis[i] in the order before p */
    double gain;   /* of the value that stands for the set: bytes, and calls, that are saved */
    bool is_start; /* it is a permute */
    bool is_last;  /* it lacks axes, and its order is that before p */
    Value *before; /* the same elements in the order before p, once they are made */
} Apart;

typedef struct Sink {
    Rewrite r;
    Uses u;
    Apart **apart; /* by the index of a value before this pass; NULL: it is not apart */
} Sink;

static Apart *apart_of(const Sink *s, const Value *v)
{
    return v && v->index < s->u.n_values ? s->apart[v->index] : NULL;
}

/* Returns the same for an operand, but NULL behind a result that lacks axes: what follows such a
 * result is in no set. */
static Apart *operand_apart(const Sink *s, const Value *v)
{
    Apart *a = apart_of(s, v);
    return a && !a->is_last ? a : NULL;
}

static Apart *set_of(const Sink *s, Apart *a)
{
    while (s->apart[a->set]->set != a->set)
        a->set = s->apart[a->set]->set; /* this halves the way */
    return s->apart[a->set];
}

/* Returns whether permuting t's axes back moves only axes of size 1. */
static bool is_free(Type t, const Permute *p)
{
    int last = -1, pad = p->rank - t.rank;
    int64_t back[MAX_RANK];
    for (int i = 0; i < p->rank; i++)
        back[p->axis[i]] = i;
    for (int i = 0; i < p->rank; i++) {
        int axis = (int)back[i] - pad;
        if (axis < 0 || dim_is_one(t.dim[axis]))
            continue;
        if (axis < last)
            return false;
        last = axis;
    }
    return true;
}

static bool same_order(const Permute *a, const Permute *b)
{
    bool ok = a->rank == b->rank;
    for (int i = 0; ok && i < a->rank; i++)
        ok = a->axis[i] == b->axis[i];
    return ok;
}

static bool undoes(const Permute *b, const Permute *a)
{
    bool ok = a->rank == b->rank;
    for (int i = 0; ok && i < a->rank; i++)
        ok = a->axis[b->axis[i]] == i;
    return ok;
}

/* -- which values are apart -------------------------------------------------------------------- */

/* Lists the axes that n names, each once.  Returns how many; 0: they are not known. */
static int axes_of(const Node *n, int rank, int64_t axis[MAX_RANK])
{
    int arg = access_axes(n), count = arg >= 0 && n->arg[arg].kind == ARG_LIST ? arg_count(n, arg) : 1;
    bool ok = arg >= 0 && (n->arg[arg].kind == ARG_LIST ? arg_ints(n, arg, axis, MAX_RANK)
                                                        : arg_int(n, arg, axis));
    for (int i = 0; ok && i < count; i++)
        axis[i] += axis[i] < 0 ? rank : 0;
    return ok ? count : 0;
}

/* Returns whether the result has the operand's axes, or lacks those that are named and has the rest
 * in the same order. */
static bool keeps_axes(const Node *n, const Permute *p)
{
    int64_t axis[MAX_RANK];
    int rank = n->out[0]->type.rank, count = axes_of(n, p->rank, axis), last = -1;
    bool drops[MAX_RANK] = {false};
    for (int i = 0; i < count; i++)
        drops[axis[i]] = true;
    if (!count || rank == p->rank)
        return count;
    for (int i = 0; i < p->rank; i++)
        if (!drops[i] && p->axis[i] < last)
            return false;
        else if (!drops[i])
            last = p->axis[i];
    return rank == p->rank - count;
}

/* Returns whether an operand that is not apart can be permuted back for nothing. */
static bool comes_back(const Value *v, const Permute *p, bool is_pointwise)
{
    Type t = v->type;
    return t.rank >= 0 && t.rank <= p->rank &&
           (value_is_known(v) || (is_pointwise && is_free(t, p)));
}

/* Returns an operand that is apart like the result of n would be, or NULL. */
static Apart *like_operands(const Sink *s, const Node *n)
{
    Apart *found = NULL;
    bool is_pointwise = node_access(n) == ACCESS_POINTWISE;
    if (n->n_out != 1 || (!is_pointwise && !access_names_axes(n)))
        return NULL;
    for (int i = 0; i < n->n_in; i++) {
        Apart *a = operand_apart(s, n->in[i]);
        if (a && found && !same_order(&a->p, &found->p))
            return NULL;
        found = a ? a : found;
    }
    for (int i = 0; found && i < n->n_in; i++)
        if (!operand_apart(s, n->in[i]) && !comes_back(n->in[i], &found->p, is_pointwise))
            return NULL;
    if (!found || (is_pointwise && n->out[0]->type.rank != found->p.rank))
        return NULL;
    return is_pointwise || keeps_axes(n, &found->p) ? found : NULL;
}

static Apart *note(Sink *s, const Value *v, const Permute *p)
{
    Apart *a = NEW(s->r.tmp, Apart, 1);
    *a = (Apart){.set = v->index, .p = *p};
    return s->apart[v->index] = a;
}

static void note_node(Sink *s, const Node *n)
{
    Permute p;
    if (permute_read(n, &p)) {
        const Apart *x = operand_apart(s, p.x);
        if (!(x && undoes(&p, &x->p)) && !value_is_known(p.x) && p.rank)
            note(s, n->out[0], &p)->is_start = true;
        return;
    }
    const Apart *like = like_operands(s, n);
    if (!like)
        return;
    Apart *a = note(s, n->out[0], &like->p);
    a->is_last = n->out[0]->type.rank != like->p.rank;
    for (int i = 0; i < n->n_in; i++)
        if (operand_apart(s, n->in[i]))
            set_of(s, operand_apart(s, n->in[i]))->set = n->out[0]->index;
}

/* -- what a set gains -------------------------------------------------------------------------- */

/* Returns whether a node outside the set reads the value as it is.  Permutes of it do not: two
 * permutes become one. */
static bool is_read(const Sink *s, const Value *v)
{
    const Apart *a = s->apart[v->index];
    for (int k = s->u.first[v->index]; k < s->u.first[v->index + 1]; k++) {
        Permute p;
        const Node *user = s->u.user[k];
        const Apart *by = user->n_out ? apart_of(s, user->out[0]) : NULL;
        if (!permute_read(user, &p) && (!by || by->is_start || a->is_last))
            return true;
    }
    return s->u.escapes[v->index];
}

static void count_gain(Sink *s, const Node *n)
{
    Permute p;
    const Value *y = n->out[0];
    Apart *a = apart_of(s, y), *x = permute_read(n, &p) ? operand_apart(s, p.x) : NULL;
    double bytes = (double)type_bytes(y->type) + CALL;
    if (x && undoes(&p, &x->p))
        set_of(s, x)->gain += bytes;
    if (!a || a->is_last || is_free(y->type, &a->p))
        return;
    if (a->is_start != is_read(s, y))
        set_of(s, a)->gain += a->is_start ? bytes : -bytes;
}

/* -- rewriting --------------------------------------------------------------------------------- */

/* Returns c, an operand of a node in the set, in the order before p. */
static Value *permuted_back(Sink *s, Node *n, Value *c, const Permute *p)
{
    Dim dim[MAX_RANK];
    int64_t axis[MAX_RANK];
    int pad = p->rank - c->type.rank;
    if (type_numel(c->type) == 1)
        return c;
    for (int i = 0; i < p->rank; i++) {
        dim[i] = i < pad ? DIM(1) : c->type.dim[i - pad];
        axis[p->axis[i]] = i;
    }
    Value *v = pad ? build_view(&s->r, n, c, dim, p->rank) : c;
    return v ? build_permute(&s->r, n, v, axis) : NULL;
}

static void set_axes(Node *f, const Node *n, const Permute *p)
{
    int64_t axis[MAX_RANK];
    int count = axes_of(n, p->rank, axis), arg = access_axes(n);
    for (int i = 0; i < count; i++)
        axis[i] = p->axis[axis[i]];
    node_set_arg(f, arg, n->arg[arg].kind == ARG_LIST
                             ? arg_int_list(n->graph->program, axis, count)
                             : (Arg){.kind = ARG_INT, .dim = DIM(axis[0])});
}

static Type type_before(const Apart *a, Type t, Program *p)
{
    Dim dim[MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dim[a->is_last ? i : a->p.axis[i]] = t.dim[i];
    return type_tensor(p, t.dtype, t.rank, dim);
}

/* Builds n on operands in the order before p.  `in` are n's operands before this pass. */
static Value *build_before(Sink *s, Node *n, Value *const *in, const Apart *a)
{
    Graph *g = s->r.g;
    Node *f = node_like(g, n);
    for (int i = 0; i < n->n_args; i++)
        node_push(f, arg_moved(f, n, n->arg[i]));
    for (int i = 0; i < n->n_in; i++) {
        const Apart *x = operand_apart(s, in[i]);
        Value *v = x ? x->before : permuted_back(s, n, n->in[i], &a->p);
        if (!v)
            return NULL;
        node_set_in(f, i, v);
    }
    if (access_names_axes(n))
        set_axes(f, n, &a->p);
    node_add_out(f, arena_numbered(g->program->arena, n->out[0]->name, ".", graph_number(g) + 1),
                 type_before(a, n->out[0]->type, g->program));
    graph_insert(g, n, f);
    return f->out[0];
}

static bool rewrite_apart(Sink *s, Node *n, Apart *a)
{
    int64_t axis[MAX_RANK];
    Value **in = NEW(s->r.tmp, Value *, n->n_in + 1);
    memcpy(in, n->in, sizeof *in * (size_t)n->n_in);
    rewrite_inputs(&s->r, n);
    if (a->is_start) {
        a->before = first_operand(n);
        return true;
    }
    a->before = build_before(s, n, in, a);
    for (int i = 0; i < a->p.rank; i++)
        axis[i] = a->p.axis[i];
    Value *y = !a->before || a->is_last ? a->before : build_permute(&s->r, n, a->before, axis);
    return y && rewrite_node(&s->r, n, y);
}

static bool rewrite(Sink *s, Node *n)
{
    Permute p;
    Apart *a = n->n_out ? apart_of(s, n->out[0]) : NULL;
    const Apart *x = permute_read(n, &p) ? operand_apart(s, p.x) : NULL;
    if (a && set_of(s, a)->gain >= CALL)
        return rewrite_apart(s, n, a);
    rewrite_inputs(&s->r, n);
    return !x || !x->before || !undoes(&p, &x->p) || rewrite_node(&s->r, n, x->before);
}

bool pass_sink_permutes(Graph *g, Arena *tmp, Diag *d)
{
    Sink s = {.r = rewrite_start(g, tmp, d), .u = graph_uses(g, tmp)};
    s.apart = NEW(tmp, Apart *, s.u.n_values + 1);
    bool ok = true;
    for (const Node *n = g->first; n; n = n->next)
        note_node(&s, n);
    for (const Node *n = g->first; n; n = n->next)
        if (n->n_out)
            count_gain(&s, n);
    for (Node *n = g->first, *next; n && ok; n = next) {
        next = n->next;
        ok = rewrite(&s, n);
    }
    if (ok)
        rewrite_finish(&s.r);
    return ok;
}
