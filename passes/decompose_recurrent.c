/* decompose_recurrent.c -- steps of recurrent layers:
 * products, and what their gates let through. */
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
    static const OpId curve[4] = {OP_SIGMOID, OP_SIGMOID, OP_TANH, OP_SIGMOID};
    Value *h = arg_list_value(n, 1, 0), *c = arg_list_value(n, 1, 1), *g[4];
    Value *of_input = gates(r, n, n->in[0], 2, 4), *of_state = gates(r, n, h, 3, 5);
    Value *all = build2(r, n, OP_ADD_TENSOR, of_input, of_state);
    for (int k = 0; k < 4; k++)
        g[k] = all ? gate(r, n, all, h->type.dim[1], k, curve[k]) : NULL;
    Value *kept = build2(r, n, OP_MUL_TENSOR, g[1], c);
    Value *added = build2(r, n, OP_MUL_TENSOR, g[0], g[2]);
    c = build2(r, n, OP_ADD_TENSOR, kept, added);
    h = build2(r, n, OP_MUL_TENSOR, g[3], build1(r, n, OP_TANH, c));
    if (!h)
        return false;
    rewrite_result(r, n, 0, h);
    rewrite_result(r, n, 1, c);
    graph_remove(r->g, n);
    return true;
}
