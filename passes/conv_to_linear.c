/* conv_to_linear.c -- a 1x1 convolution whose input is permuted from channels-last becomes a linear
 * layer before that permute, for a .pte.
 *
 * Stage core, pte tail, after partition.  conv(permute(x)) is permute(linear(x)), and each
 * output is the same sum.  The permute moves down through pointwise nodes to the next such
 * convolution, where it disappears.  A pair of convolutions thus needs two copies less, and has
 * rows that tile_rows can cut.  A permute that meets no second convolution costs as much as
 * before. */
#include "passes/internal.h"

static const int64_t to_channels_first[] = {0, 3, 1, 2};

typedef struct Lower {
    Rewrite r;
    Uses uses; /* of the values before this pass */
} Lower;

static bool all_are(const int64_t *v, int64_t want)
{
    return v[0] == want && v[1] == want;
}

/* Returns whether n is a convolution that computes each pixel from all channels of one pixel. */
static bool is_pixelwise(const Node *n, Conv *c)
{
    return conv_read(n, c) && c->axes == 2 && c->x->type.rank == 4 && value_is_fixed(c->w) &&
           !c->w->type.stride && (!c->bias || value_is_fixed(c->bias)) && all_are(c->kernel, 1) &&
           all_are(c->stride, 1) && all_are(c->pad, 0) && !c->is_transposed && c->groups == 1;
}

static bool permutes_so(const Node *n)
{
    Permute p;
    bool ok = permute_read(n, &p) && p.rank == 4;
    for (int i = 0; ok && i < 4; i++)
        ok = p.axis[i] == to_channels_first[i];
    return ok;
}

/* Rewrites the inputs of n.  If n is the only reader of a permute from channels-last, returns
 * the tensor before the permute, else NULL. */
static Value *channels_last(Lower *l, Node *n)
{
    const Value *given = first_operand(n);
    rewrite_inputs(&l->r, n);
    const Value *x = first_operand(n); /* what has replaced it by now */
    bool ok = given && value_is_read_once(&l->uses, given) && x->def && permutes_so(x->def);
    return ok ? arg_value(x->def, "self") : NULL;
}

/* Returns the weight as rows, over the same bytes. */
static Value *flat_weight(Graph *g, const Value *w)
{
    return graph_const_part(g, w, type_tensor(g->program, w->type.dtype, 2, w->type.dim), 0);
}

/* Permutes y, which stands before n, and replaces n's result by that. */
static bool permute_result(Lower *l, Node *n, Node *y)
{
    Value *v = y ? build_permute(&l->r, n, y->out[0], to_channels_first) : NULL;
    return v && rewrite_node(&l->r, n, v);
}

static bool lower_conv(Lower *l, Node *n, const Conv *c, Value *x)
{
    Graph *g = l->r.g;
    return permute_result(l, n, build(g, n, n->loc, OP_LINEAR, l->r.d, "vvv", x,
                                      flat_weight(g, c->w), c->bias));
}

static bool is_elementwise(const Node *n)
{
    return node_is_expression(n) && n->n_in == 1 && n->n_out == 1 &&
           n->out[0]->type.rank == 4;
}

/* f(permute(x)) ==> permute(f(x)) */
static bool sink(Lower *l, Node *n, Value *x)
{
    Graph *g = l->r.g;
    Node *f = node_like(g, n);
    Type t = type_tensor(g->program, n->out[0]->type.dtype, 4, x->type.dim);
    for (int i = 0; i < n->n_args; i++)
        node_push(f, arg_moved(f, n, n->arg[i]));
    node_set_in(f, 0, x);
    const int number = graph_number(g) + 1;
    node_add_out(f, arena_numbered(g->program->arena, n->out[0]->name, ".", number), t);
    graph_insert(g, n, f);
    return permute_result(l, n, f);
}

static bool lower(Lower *l, Node *n)
{
    Conv c;
    Value *x = channels_last(l, n);
    if (!x)
        return true;
    return is_pixelwise(n, &c) ? lower_conv(l, n, &c, x) : !is_elementwise(n) || sink(l, n, x);
}

bool pass_conv_to_linear(Graph *g, Arena *tmp, Diag *d)
{
    Lower l = {rewrite_start(g, tmp, d), graph_uses(g, tmp)};
    bool ok = true;
    for (Node *n = g->first, *next; n && ok; n = next) {
        next = n->next;
        ok = lower(&l, n);
    }
    if (ok)
        rewrite_finish(&l.r);
    return ok;
}
