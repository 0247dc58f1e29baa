/* complex.c -- replaces complex numbers by pairs of floats; a part of pass decompose.
 *
 * A complex value is the result of aten.complex.default on two float tensors, or a constant.  A
 * node with a complex operand or result is rewritten by the rule "complex.<its name>" of
 * composites.txt, which computes with the parts and makes a pair of the results.  After all
 * readers of pairs are rewritten, the pairs are removed: no kernel takes complex numbers. */
#include "passes/composite.h"
#include <string.h>

static bool is_pair(const Node *n)
{
    return n->op == OP_COMPLEX;
}

/* -- what rules ask for ------------------------------------------------------------------------ */

/* Returns the bytes of a complex constant as floats, with real and imaginary parts along a last
 * axis. */
static Value *floats_of(Graph *g, const Value *v)
{
    Program *p = g->program;
    Type t = v->type;
    Dim dim[MAX_RANK], stride[MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        dim[i] = t.dim[i];
        stride[i] = t.stride ? dim_mul(p, DIM(2), t.stride[i]) : DIM(0);
    }
    dim[t.rank] = DIM(2);
    stride[t.rank] = DIM(1);
    Type pair = type_tensor(p, dtype_of_part(t.dtype), t.rank + 1, dim);
    if (t.stride)
        pair.stride = type_tensor(p, pair.dtype, t.rank + 1, stride).dim;
    return graph_const_part(g, v, pair, 0);
}

Arg play_half(Play *p, int64_t which, Arg a)
{
    Value *v = tensor(p, a);
    if (!v || !dtype_is_complex(v->type.dtype))
        return play_misfit(p, "uses a value as a complex number that is not one");
    if (v->def && is_pair(v->def))
        return of_value(p, arg_value(v->def, (int)which));
    if (!v->state) { /* a refused node or input, which is reported elsewhere */
        p->failed = true;
        return (Arg){.kind = ARG_NONE};
    }
    if (!value_is_fixed(v) || v->type.rank == MAX_RANK)
        return play_refuse(p, "reads complex numbers that are kept from call to call: keep their "
                              "torch.view_as_real, and use torch.view_as_complex where they are read");
    Node *n = build(p->r->g, p->n, p->n->loc, OP_SELECT_INT, p->r->d, "vii",
                    floats_of(p->r->g, v), (int64_t)-1, which);
    return of_value(p, n ? n->out[0] : NULL);
}

/* Returns an argument for one half of the node: of a complex tensor its part, of a complex dtype
 * that of its parts, anything else as it is. */
static Arg halved(Play *p, int64_t which, Arg a)
{
    const Value *v = tensor(p, a);
    if (v && dtype_is_complex(v->type.dtype))
        return play_half(p, which, a);
    if (a.kind == ARG_DTYPE)
        a.dtype = dtype_of_part(a.dtype);
    if (a.kind != ARG_LIST)
        return a;
    Arg *item, list = list_new(p, a.list.n, &item);
    for (int i = 0; i < list.list.n; i++)
        item[i] = halved(p, which, a.list.item[i]);
    return list;
}

Arg play_halved(Play *p, int64_t which)
{
    Given g = {.n = p->n->n_args < MOST_ARGS ? p->n->n_args : MOST_ARGS};
    for (int i = 0; i < g.n; i++)
        g.v[i] = halved(p, which, play_argument(p, p->n->arg[i]));
    return p->failed ? (Arg){.kind = ARG_NONE} : play_node(p, p->n->op, &g);
}

/* -- in the walk of decompose ------------------------------------------------------------------ */

/* Returns whether n is aten.complex of two parts with its own sizes. */
bool complex_is_pair(const Node *n)
{
    const Type t = n->out[0]->type;
    for (int i = 0; is_pair(n) && i < 2; i++) {
        const Value *v = arg_value(n, i);
        if (!v || v->type.rank != t.rank || !dims_equal(v->type.dim, t.dim, t.rank))
            return false;
    }
    return is_pair(n);
}

bool rewrite_complex(Rewrite *r, Node *n)
{
    return rule_of(RULE_OF_COMPLEX, n->op) >= 0
               ? rewrite_by_rule(r, n, RULE_OF_COMPLEX)
               : diag_unsupported(r->d, n->loc, "has no form for complex numbers");
}

static bool is_outside(Graph *g, const Value *v, const char *what, Diag *d)
{
    Loc loc = {.file = g->program->name, .node = v->name};
    return dtype_is_complex(v->type.dtype) &&
           !diag_unsupported(d, loc, "is complex, and %s: no kernel takes complex numbers; use "
                             "torch.view_as_real outside and torch.view_as_complex within", what);
}

bool complex_stays_within(Graph *g, Diag *d)
{
    bool ok = true;
    for (int i = 0; i < g->n_in; i++)
        ok = !is_outside(g, g->in[i], "an input", d) && ok;
    for (int i = 0; i < g->n_out; i++)
        ok = !is_outside(g, g->out[i], "an output", d) && ok;
    for (int i = 0; i < g->n_updates; i++)
        ok = !is_outside(g, g->update[i].value, "kept from call to call", d) && ok;
    return ok;
}

void complex_remove(Graph *g)
{
    for (Node *n = g->last, *before; n; n = before) {
        before = n->prev;
        if (is_pair(n))
            graph_remove(g, n);
    }
}
