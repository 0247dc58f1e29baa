/* read_back.c -- replaces nodes that exporters spell out by torch's operator for them.
 *
 * Stage core, before constants are folded, and after that and dce.  The rules are those of
 * spelled.txt.  A rule is applied if nobody else reads the nodes that its form matches, if its
 * result has the same sizes, and if decompose would leave the operator whole; else expanding it
 * again would gain nothing.  The form of a rule may contain the result of another one, whose
 * readers are those of the value that it replaced.  Each node is looked at once, and each form has
 * a fixed size. */
#include "passes/composite.h"
#include <math.h>
#include <string.h>

enum { MOST_NODES = 32 }; /* the most nodes of a form */

/* These nodes were replaced by rules. */
typedef struct Replaced {
    const Value **item; /* by the index of a result of a rule, from first_new on: the value that it
                           replaced; NULL: it replaced none */
    int n;
    const Node **by; /* by the index of a first result: what stands for its node now, or NULL */
} Replaced;

typedef struct Found {
    Play *p;
    const Uses *u;
    Replaced *replaced;
    const Spelled *rule;
    Arg v[MOST_ARGS]; /* the values of names */
    bool is_set[MOST_ARGS];
    const Node *node[MOST_NODES];
    int n_nodes;
} Found;

static bool fits(Found *m, const Form *f, const Node *n, const Arg *a);

/* -- arguments --------------------------------------------------------------------------------- */

static bool is_near(double a, double b)
{
    return a == b || fabs(a - b) <= 1e-7 * fabs(b);
}

static bool get_number(const Arg *a, double *v)
{
    *v = a->kind == ARG_FLOAT ? a->f : (double)a->dim.value;
    return a->kind == ARG_FLOAT || (a->kind == ARG_INT && !a->dim.expr);
}

static bool same_lists(const Arg *a, const Arg *b);

/* Compares arguments that are no tensors. */
static bool same_args(const Arg *a, const Arg *b)
{
    double x, y;
    if (get_number(a, &x) && get_number(b, &y))
        return x == y;
    if (a->kind != b->kind)
        return false;
    switch ((int)a->kind) {
    case ARG_NONE:
        return true;
    case ARG_INT:
        return dim_equal(a->dim, b->dim);
    case ARG_BOOL:
        return a->b == b->b;
    case ARG_DTYPE:
        return a->dtype == b->dtype;
    case ARG_STRING:
        return !strcmp(a->str, b->str);
    case ARG_LIST:
        return same_lists(a, b);
    default:
        return false;
    }
}

static bool same_lists(const Arg *a, const Arg *b)
{
    bool ok = a->list.n == b->list.n;
    for (int i = 0; ok && i < a->list.n; i++)
        ok = same_args(&a->list.item[i], &b->list.item[i]);
    return ok;
}

static bool holds_only(const Value *x, double v)
{
    const float *f = value_floats(x, -1);
    int64_t i = 0, n = f ? type_numel(x->type) : 0;
    while (i < n && is_near((double)f[i], v))
        i++;
    return n && i == n;
}

static bool is_literal(const Form *f, const Node *n, const Arg *a)
{
    double want, is;
    if (!get_number(&f->literal, &want))
        return same_args(&f->literal, a);
    return a->kind == ARG_VALUE ? holds_only(n->in[a->slot], want)
                                : get_number(a, &is) && is_near(is, want);
}

static bool is_bound(Found *m, int name, const Node *n, const Arg *a)
{
    Value *x = a->kind == ARG_VALUE ? n->in[a->slot] : NULL;
    assert(name < MOST_ARGS && (!x || a->slot < n->n_in));
    if (!m->is_set[name]) {
        m->is_set[name] = true;
        m->v[name] = x ? of_value(m->p, x) : *a;
        m->v[name].key = NULL;
        return true;
    }
    return x || m->v[name].kind == ARG_VALUE ? x == tensor(m->p, m->v[name])
                                             : same_args(&m->v[name], a);
}

/* -- forms ------------------------------------------------------------------------------------- */

static const Form *part_for(const Form *f, int i, const char *name)
{
    assert(f->kind == FORM_CALL);
    if (i < f->n && (!f->key || !f->key[i]))
        return f->part[i];
    for (int k = 0; f->key && k < f->n; k++)
        if (f->key[k] && !strcmp(f->key[k], name))
            return f->part[k];
    return NULL;
}

static bool fits_call(Found *m, const Form *f, const Node *n)
{
    const Schema *s = node_schema(n);
    for (int i = 0; i < s->n_args; i++) {
        const Form *part = part_for(f, i, s->arg[i].name);
        if (part ? !fits(m, part, n, &n->arg[i]) : !same_args(&s->arg[i].fallback, &n->arg[i]))
            return false;
    }
    return true;
}

static bool fits_sides(Found *m, const Form *f, const Node *n, int first)
{
    return fits(m, f->part[first], n, &n->arg[arg_of(n, "self")]) &&
           fits(m, f->part[1 - first], n, &n->arg[arg_of(n, "other")]);
}

/* Matches a sign; the operands of sums and products may stand in either order. */
static bool fits_sign(Found *m, const Form *f, const Node *n)
{
    double alpha = 1;
    Found before = *m;
    if (arg_find(n, "alpha") >= 0 && (!arg_number(n, "alpha", &alpha) || alpha != 1))
        return false;
    if (fits_sides(m, f, n, 0))
        return true;
    *m = before;
    return sign_commutes(f->index) && fits_sides(m, f, n, 1);
}

static bool is_of(const Form *f, const Node *n)
{
    if (f->kind == FORM_OR)
        return is_of(f->part[0], n) || is_of(f->part[1], n);
    return f->kind == FORM_SIGN ? sign_is(f->index, n->op) : f->op == n->op;
}

static bool fits_node(Found *m, const Form *f, const Node *n);

/* Matches the first of two forms that fits. */
static bool fits_either(Found *m, const Form *f, const Node *n)
{
    Found before = *m;
    if (fits_node(m, f->part[0], n))
        return true;
    *m = before;
    return fits_node(m, f->part[1], n);
}

static bool fits_node(Found *m, const Form *f, const Node *n)
{
    if (f->kind == FORM_OR)
        return fits_either(m, f, n);
    if (m->n_nodes == MOST_NODES || !is_of(f, n))
        return false;
    m->node[m->n_nodes++] = n;
    return f->kind == FORM_SIGN ? fits_sign(m, f, n) : fits_call(m, f, n);
}

static bool fits_list(Found *m, const Form *f, const Node *n, const Arg *a)
{
    bool ok = a->kind == ARG_LIST && a->list.n == f->n;
    for (int i = 0; ok && i < f->n; i++)
        ok = fits(m, f->part[i], n, &a->list.item[i]);
    return ok;
}

/* Returns whether an argument of n has the form, and binds the form's names. */
static bool fits(Found *m, const Form *f, const Node *n, const Arg *a)
{
    const Node *def = a->kind == ARG_VALUE ? n->in[a->slot]->def : NULL;
    switch ((int)f->kind) {
    case FORM_LITERAL:
        return is_literal(f, n, a);
    case FORM_NAME:
        return is_bound(m, f->index, n, a);
    case FORM_LIST:
        return fits_list(m, f, n, a);
    case FORM_ASSIGN:
        return fits(m, f->part[0], n, a) && is_bound(m, f->local[0], n, a);
    default:
        return def && def->out[0] == n->in[a->slot] && fits_node(m, f, def);
    }
}

/* -- what else must hold ----------------------------------------------------------------------- */

/* Computes a - b, or a % b of known numbers. */
static bool size_of_sign(const Found *m, int sign, Dim a, Dim b, Dim *d)
{
    bool is_rest = *sign_text(sign) == '%';
    if (is_rest && (a.expr || b.expr || b.value <= 0))
        return false;
    *d = is_rest ? DIM(a.value % b.value) : dim_sub(m->p->r->g->program, a, b);
    return true;
}

/* Computes a size, rank or count of elements; false: the form is none. */
static bool size_of(const Found *m, const Form *f, Dim *d)
{
    Dim a, b = DIM(0);
    if (f->kind == FORM_LITERAL || f->kind == FORM_NAME) {
        const Arg *v = f->kind == FORM_NAME ? &m->v[f->index] : &f->literal;
        *d = v->dim;
        return v->kind == ARG_INT;
    }
    if (f->kind == FORM_SIGN)
        return size_of(m, f->part[0], &a) && size_of(m, f->part[1], &b) &&
               size_of_sign(m, f->index, a, b, d);
    assert(f->kind == FORM_CALL && f->part[0]->kind == FORM_NAME);
    const Value *x = tensor(m->p, m->v[f->part[0]->index]);
    if (!x || (f->n > 1 && (!size_of(m, f->part[1], &b) || b.expr)))
        return false;
    int64_t axis = b.value < 0 ? b.value + x->type.rank : b.value;
    *d = !strcmp(f->name, "rank")    ? DIM(x->type.rank)
         : !strcmp(f->name, "numel") ? dims_numel(m->p->r->g->program, x->type)
         : axis >= 0 && axis < x->type.rank ? x->type.dim[axis]
                                            : DIM(-1);
    return f->n < 2 || (axis >= 0 && axis < x->type.rank);
}

static bool holds(const Found *m, const Form *f)
{
    Dim a, b;
    assert(f->n == 2);
    if (f->kind == FORM_AND)
        return holds(m, f->part[0]) && holds(m, f->part[1]);
    return size_of(m, f->part[0], &a) && size_of(m, f->part[1], &b) && dim_equal(a, b);
}

/* Returns the value whose readers v has, or NULL if they are not known. */
static const Value *value_read(const Found *m, const Value *v)
{
    int i = v->index - m->p->r->first_new;
    return i < 0 ? v : i < m->replaced->n ? m->replaced->item[i] : NULL;
}

static void note_replaced(const Found *m, const Value *made, const Value *replaced)
{
    int i = made->index - m->p->r->first_new;
    while (m->replaced->n <= i)
        PUSH(m->p->r->tmp, m->replaced->item, m->replaced->n, NULL);
    m->replaced->item[i] = replaced;
    for (int k = 0; k < m->n_nodes; k++)
        if (m->node[k]->out[0]->index < m->u->n_values)
            m->replaced->by[m->node[k]->out[0]->index] = made->def;
}

static bool is_matched(const Found *m, const Node *n)
{
    const Node *by = n->n_out && n->out[0]->index < m->u->n_values
                         ? m->replaced->by[n->out[0]->index]
                         : NULL;
    for (int i = 0; i < m->n_nodes; i++)
        if (m->node[i] == (by ? by : n))
            return true;
    return false;
}

/* Returns whether all matched nodes except the first are read only by matched nodes. */
static bool is_closed(const Found *m)
{
    for (int i = 1; i < m->n_nodes; i++) {
        const Value *result = m->node[i]->out[0], *read = value_read(m, result);
        if (!read || m->u->escapes[read->index] ||
            (read == result && others_are_read(m->u, m->node[i])))
            return false;
        for (int k = m->u->first[read->index]; k < m->u->first[read->index + 1]; k++)
            if (!is_matched(m, m->u->user[k]))
                return false;
    }
    return true;
}

/* -- the walk ---------------------------------------------------------------------------------- */

/* Returns the first result of these forms that has n's type and that decompose leaves whole, or
 * NULL. */
static Value *result_of(Found *m, const Node *n, const Form *f)
{
    if (f->kind == FORM_OR) {
        Value *first = result_of(m, n, f->part[0]);
        return first ? first : result_of(m, n, f->part[1]);
    }
    Given g = {.n = m->rule->to.n_locals};
    RuleBody body = m->rule->to;
    assert(g.n <= MOST_ARGS && n->n_out == 1);
    memcpy(g.v, m->v, sizeof *g.v * (size_t)g.n);
    body.form = f;
    Value *y = tensor(m->p, play_given(m->p, &body, &g));
    if (!y || (type_equal(y->type, n->out[0]->type) && node_stays_whole(y->def)))
        return y;
    graph_remove(m->p->r->g, y->def);
    return NULL;
}

static bool replace(Found *m, Node *n)
{
    Value *y = result_of(m, n, m->rule->to.form);
    if (!y)
        return !m->p->failed;
    note_replaced(m, y, n->out[0]);
    return rewrite_node(m->p->r, n, y);
}

typedef struct Rules {
    const Spelled **rule;
    int n;
    Replaced replaced;
} Rules;

/* Returns whether an operator takes what a form computes with: of integers, torch has the formulas of
 * floats but not their operators. */
static bool takes_operands(const Found *m, const Node *n)
{
    bool ok = true;
    for (int i = 0; n->out[0]->type.dtype != ETC_BOOL && i < MOST_ARGS; i++)
        ok = ok && (!m->is_set[i] || m->v[i].kind != ARG_VALUE ||
                    dtype_is_float(tensor(m->p, m->v[i])->type.dtype));
    return ok;
}

static bool look(Rewrite *r, const Uses *u, Rules *rules, Node *n)
{
    for (int i = 0; i < rules->n; i++) {
        const Spelled *rule = rules->rule[i];
        if (!is_of(rule->from, n))
            continue;
        Play p = {.r = r, .n = n, .rule = rule->name};
        Found m = {.p = &p, .u = u, .replaced = &rules->replaced, .rule = rule};
        if (fits_node(&m, rule->from, n) && is_closed(&m) && takes_operands(&m, n) &&
            (!rule->condition || holds(&m, rule->condition)))
            return replace(&m, n);
    }
    return true;
}

/* Marks the operators that a rule gives.  Returns whether one is new. */
static bool note_results(const Form *f, bool *has)
{
    if (f->kind == FORM_OR) {
        bool is_new = note_results(f->part[0], has);
        return note_results(f->part[1], has) || is_new;
    }
    bool is_new = f->kind == FORM_CALL && !has[f->op];
    if (is_new)
        has[f->op] = true;
    return is_new;
}

/* Adds the rules of operators that the graph or a result of these rules has. */
static bool find_rules(const Graph *g, Arena *tmp, Rules *to, Diag *d)
{
    bool *has = NEW(tmp, bool, N_OPS + 1), *is_in = NEW(tmp, bool, spelled.n + 1);
    for (const Node *n = g->first; n; n = n->next)
        has[n->op] = true;
    for (int i = 0; i < spelled.n; i++) {
        if (is_in[i] || !has[spelled.row[i].of])
            continue;
        const Spelled *rule = spelled_rule(g->program, i, d);
        if (!rule)
            return false;
        PUSH(tmp, to->rule, to->n, rule);
        is_in[i] = true;
        if (note_results(rule->to.form, has))
            i = -1; /* rules that stand before this one may be of its result */
    }
    return true;
}

/* Returns whether a node computes floats or bools, or halves from nothing but these.  What is read
 * back computes halves in floats and rounds once, where the form rounds at each step. */
static bool has_types(const Node *n)
{
    EtcDtype t = n->n_out == 1 ? n->out[0]->type.dtype : ETC_I64;
    for (int i = 0; dtype_is_half(t) && i < n->n_in; i++)
        if (n->in[i]->type.dtype != t)
            return false;
    return t == ETC_F32 || t == ETC_BOOL || dtype_is_half(t);
}

bool pass_read_back(Graph *g, Arena *tmp, Diag *d)
{
    Rules rules = {0};
    bool ok = find_rules(g, tmp, &rules, d);
    if (!ok || !rules.n)
        return ok;
    Rewrite r = rewrite_start(g, tmp, d);
    Uses u = graph_uses(g, tmp);
    rules.replaced.by = NEW(tmp, const Node *, u.n_values + 1);
    for (Node *n = g->first, *next; ok && n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        if (has_types(n))
            ok = look(&r, &u, &rules, n);
    }
    rewrite_finish(&r);
    return ok;
}
