/* lower_symint.c -- replaces symbolic sizes in arguments by values that kernels can read.
 *
 * Stage edge, pte tail.  A symbolic size of a view or an expand becomes -1 if that is unambiguous.
 * Other symbolic sizes are computed from sizes of the inputs (sizes.c).  It is one walk; nodes
 * without symbolic arguments are not changed. */
#include "passes/internal.h"

/* -- minus one ------------------------------------------------------------------------------- */

static bool is_size_of(Type t, Dim d)
{
    for (int i = 0; i < t.rank; i++)
        if (dim_equal(t.dim[i], d))
            return true;
    return false;
}

static bool may_be_empty(Dim d)
{
    int64_t lo, hi;
    dim_range(d, &lo, &hi);
    return lo <= 0;
}

/* Returns the open size that is left to the kernel: the one that no operand has, else the last; -1:
 * there is none.  The kernel divides by the other sizes, so one that may be 0 has to be left, and
 * two of these are too many. */
static int hole_of(const Node *n, const Dim *dim, int count)
{
    int hole = -1, n_empty = 0;
    bool found = false;
    for (int i = 0; i < count; i++) {
        bool is_empty = may_be_empty(dim[i]);
        n_empty += is_empty;
        if (n_empty > 1 || (is_empty && !dim[i].expr))
            return -1;
        if (!dim[i].expr || (found && !is_empty) || (n_empty && !is_empty))
            continue;
        hole = i;
        found = !is_size_of(arg_value(n, "self")->type, dim[i]);
    }
    return hole;
}

static void open_view(Node *n)
{
    Dim dim[MAX_RANK];
    int count = arg_count(n, "size");
    if (!arg_dims(n, "size", dim, MAX_RANK))
        return;
    int hole = hole_of(n, dim, count);
    if (hole < 0)
        return;
    dim[hole] = DIM(-1);
    node_set_arg(n, arg_of(n, "size"), arg_dim_list(n->graph->program, dim, count));
}

/* Replaces open sizes of an expand that its operand has too by -1, which keeps them. */
static void open_expand(Node *n)
{
    Dim dim[MAX_RANK];
    Type x = arg_value(n, "self")->type;
    int count = arg_count(n, "size"), lead = count - x.rank;
    if (!arg_dims(n, "size", dim, MAX_RANK))
        return;
    for (int i = lead; i < count; i++)
        if (dim[i].expr && dim_equal(dim[i], x.dim[i - lead]))
            dim[i] = DIM(-1);
    node_set_arg(n, arg_of(n, "size"), arg_dim_list(n->graph->program, dim, count));
}

static void open_slice(Node *n)
{
    int64_t axis;
    Dim end;
    Type x = arg_value(n, "self")->type;
    if (arg_int(n, "dim", &axis) && arg_dim(n, "end", &end) && end.expr &&
        dim_equal(end, x.dim[axis]))
        node_set_arg(n, arg_of(n, "end"), (Arg){.kind = ARG_INT, .dim = DIM(INT64_MAX)});
}

/* -- sizes computed at run time ---------------------------------------------------------------- */

typedef struct Reader {
    Sizes *sizes;
    Node *from, *to; /* the node and its replacement */
} Reader;

static Arg lowered(Reader *s, Arg a)
{
    if (a.kind == ARG_LIST) {
        Arg *item = NEW(s->to->graph->program->arena, Arg, a.list.n ? a.list.n : 1);
        for (int i = 0; i < a.list.n; i++)
            item[i] = lowered(s, a.list.item[i]);
        a.list.item = item;
        return a;
    }
    bool open = a.kind == ARG_INT && a.dim.expr;
    if (!open && a.kind != ARG_VALUE)
        return a;
    Arg use = node_use(s->to, open ? sizes_value(s->sizes, s->from, a.dim) : s->from->in[a.slot]);
    use.key = a.key;
    return use;
}

/* Replaces a constant that is a size by the value of that size. */
static bool lower_constant(Rewrite *r, Sizes *sizes, Node *n)
{
    Value *v = sizes_value(sizes, n, arg_get(n, "value").dim);
    if (v)
        rewrite_value(r, n->out[0], v);
    return v != NULL;
}

static bool lower(Rewrite *r, Sizes *sizes, Node *n)
{
    int errors = diag_errors(r->d);
    if (node_is_view(n))
        open_view(n);
    else if (n->op == OP_EXPAND)
        open_expand(n);
    else if (n->op == OP_SLICE)
        open_slice(n);
    if (!node_reads_symbols(n))
        return true;
    if (n->op == OP_CONSTANT)
        return lower_constant(r, sizes, n);
    Reader s = {sizes, n, node_like(r->g, n)};
    for (int i = 0; i < n->n_args; i++)
        node_push(s.to, lowered(&s, n->arg[i]));
    for (int i = 0; i < n->n_out; i++)
        rewrite_value(r, n->out[i], node_add_out(s.to, n->out[i]->name, n->out[i]->type));
    graph_insert(r->g, n, s.to);
    graph_remove(r->g, n);
    return diag_errors(r->d) == errors;
}

bool pass_lower_symint(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    Sizes *sizes = sizes_new(g, tmp, d);
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        if (node_reads_symbols(n))
            ok = lower(&r, sizes, n) && ok;
        for (int i = 0; i < n->n_out; i++)
            sizes_learn(sizes, n->out[i]);
    }
    rewrite_finish(&r);
    return ok;
}
