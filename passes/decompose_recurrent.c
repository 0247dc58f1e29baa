/* decompose_recurrent.c -- steps of recurrent layers: products, and what their gates let through. */
#include "passes/decompose.h"

/* x * weight^T + bias, of either side of a cell. */
static Value *gates(Rewrite *r, Node *n, Value *x, int weight, int bias)
{
    Value *w = arg_value(n, weight), *b = arg_value(n, bias);
    Node *made = b ? build(r->g, n, n->loc, OP_LINEAR, r->d, "vvv", x, w, b)
                   : build(r->g, n, n->loc, OP_LINEAR, r->d, "vv", x, w);
    return made ? made->out[0] : NULL;
}

/* The k-th of equal parts of a row, through a curve. */
static Value *gate(Rewrite *r, Node *n, Value *all, Dim size, int k, OpId curve)
{
    Program *p = r->g->program;
    Value *part = build_slice(r, n, all, 1, dim_mul(p, size, DIM(k)), dim_mul(p, size, DIM(k + 1)));
    return part ? build1(r, n, curve, part) : NULL;
}

/* i, f, g, o = x w_ih^T + b_ih + h w_hh^T + b_hh
 * c' = sigmoid(f) * c + sigmoid(i) * tanh(g);  h' = sigmoid(o) * tanh(c') */
bool decomp_lstm_cell(Rewrite *r, Node *n)
{
    Value *h = arg_list_value(n, 1, 0), *c = arg_list_value(n, 1, 1);
    Value *all = build2(r, n, OP_ADD_TENSOR, gates(r, n, n->in[0], 2, 4), gates(r, n, h, 3, 5));
    if (!all)
        return false;
    Dim size = h->type.dim[1];
    Value *kept = build2(r, n, OP_MUL_TENSOR, gate(r, n, all, size, 1, OP_SIGMOID), c);
    Value *added = build2(r, n, OP_MUL_TENSOR, gate(r, n, all, size, 0, OP_SIGMOID),
                          gate(r, n, all, size, 2, OP_TANH));
    c = build2(r, n, OP_ADD_TENSOR, kept, added);
    h = c ? build2(r, n, OP_MUL_TENSOR, gate(r, n, all, size, 3, OP_SIGMOID),
                   build1(r, n, OP_TANH, c))
          : NULL;
    if (!h)
        return false;
    rewrite_result(r, n, 0, h);
    rewrite_result(r, n, 1, c);
    graph_remove(r->g, n);
    return true;
}
