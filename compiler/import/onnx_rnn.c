/* onnx_rnn.c -- LSTM, GRU and RNN of ONNX as those of torch, whose gates have another order. */
#include "compiler/import/onnx.h"
#include <string.h>

enum { MAX_GATES = 4 };

typedef struct Rnn {
    int gates, dirs;
    const int *order; /* torch's gate i is ONNX's order[i] */
    int64_t hidden;
    bool has_bias, is_batch_first, is_reverse;
    Value *param[2 * 4]; /* of each direction: w_ih, w_hh, b_ih, b_hh */
} Rnn;

/* The rows of one direction's matrix from `first` on, gate by gate in torch's order. */
static Value *ordered(OnnxNode *n, int input, const Rnn *r, int dir, int64_t first)
{
    Value *part[MAX_GATES], *all = on_value(n, input);
    if (!all)
        return NULL;
    if (all->type.rank < 2 || !dim_equal(all->type.dim[0], DIM(r->dirs))) {
        onnx_wrong(n, "has weights of another rank, or of other directions than its own");
        return NULL;
    }
    all = ON_BUILD(n, OP_SELECT_INT, "vii", all, (int64_t)0, (int64_t)dir);
    for (int g = 0; g < r->gates; g++) {
        int64_t from = first + r->order[g] * r->hidden;
        part[g] = all ? ON_BUILD(n, OP_SLICE, "viiii", all, (int64_t)0, from, from + r->hidden,
                                 (int64_t)1)
                      : NULL;
        if (!part[g])
            return NULL;
    }
    return r->gates == 1 ? part[0] : ON_BUILD(n, OP_CAT, "Vi", r->gates, part, (int64_t)0);
}

static bool read_direction(OnnxNode *n, Rnn *r)
{
    const char *d = on_text(n, "direction", "forward");
    r->is_reverse = !strcmp(d, "reverse");
    r->dirs = strcmp(d, "bidirectional") ? 1 : 2;
    r->hidden = on_int(n, "hidden_size", 0);
    r->is_batch_first = on_int(n, "layout", 0);
    r->has_bias = on_has(n, 3);
    if (r->hidden < 1 || r->hidden > 1 << 24)
        return onnx_wrong(n, "has no hidden_size");
    if (on_attribute(n, "clip") || on_int(n, "input_forget", 0))
        return onnx_unsupported(n, "clips its gates, or couples them");
    return !n->failed;
}

/* The functions of the gates have to be those that torch has. */
static bool activations_are(OnnxNode *n, const char *const *want, int count)
{
    const Onnx__Attribute *a = on_attribute(n, "activations");
    for (size_t i = 0; a && i < a->n_strings; i++) {
        const char *is = onnx_text(n->in, a->strings[i]);
        if (!is || strcmp(is, want[i % (size_t)count]) != 0)
            return onnx_unsupported(n, "has the activation '%s', expected '%s'", is ? is : "",
                                    want[i % (size_t)count]);
    }
    return true;
}

static bool read_params(OnnxNode *n, Rnn *r)
{
    for (int d = 0; d < r->dirs; d++) {
        Value **p = r->param + d * (r->has_bias ? 4 : 2);
        p[0] = ordered(n, 1, r, d, 0);
        p[1] = p[0] ? ordered(n, 2, r, d, 0) : NULL;
        if (!p[1])
            return false;
        if (!r->has_bias)
            continue;
        p[2] = ordered(n, 3, r, d, 0);
        p[3] = p[2] ? ordered(n, 3, r, d, r->gates * r->hidden) : NULL;
        if (!p[3])
            return false;
    }
    return true;
}

static Value *swapped(OnnxNode *n, Value *v)
{
    static const int64_t swap[3] = {1, 0, 2};
    return v ? ON_BUILD(n, OP_PERMUTE, "vI", v, 3, swap) : NULL;
}

/* A state at the start, [dirs, batch, hidden]; zeros where none is given. */
static Value *start(OnnxNode *n, const Rnn *r, int input, const Value *x)
{
    if (on_has(n, input))
        return r->is_batch_first ? swapped(n, on_value(n, input)) : on_value(n, input);
    Dim dim[3] = {DIM(r->dirs), x->type.dim[1], DIM(r->hidden)};
    return ON_BUILD(n, OP_FULL, "Dft", 3, dim, 0.0, x->type.dtype);
}

static Value *reversed(OnnxNode *n, const Rnn *r, Value *v)
{
    int64_t axis = 0;
    return !v || !r->is_reverse ? v : ON_BUILD(n, OP_FLIP, "vI", v, 1, &axis);
}

/* [steps, batch, dirs * hidden] ==> [steps, dirs, batch, hidden], or [batch, steps, dirs, hidden] */
static Value *relaid(OnnxNode *n, const Rnn *r, Value *y)
{
    static const int64_t order[4] = {0, 2, 1, 3}, batch_first[4] = {1, 0, 2, 3};
    y = reversed(n, r, y);
    if (!y)
        return NULL;
    Dim dim[4] = {y->type.dim[0], y->type.dim[1], DIM(r->dirs), DIM(r->hidden)};
    y = on_view(n, y, 4, dim);
    return y ? ON_BUILD(n, OP_PERMUTE, "vI", y, 4, r->is_batch_first ? batch_first : order) : NULL;
}

static bool define_states(OnnxNode *n, const Rnn *r, const Node *m)
{
    for (int i = 0; i < m->n_out; i++) {
        if (!on_wants(n, i))
            continue;
        Value *v = !i ? relaid(n, r, m->out[0])
                      : r->is_batch_first ? swapped(n, m->out[i]) : m->out[i];
        if (!on_define(n, i, v))
            return false;
    }
    return true;
}

/* Lengths of sequences may be given where all are whole. */
static bool lengths_are_whole(OnnxNode *n, const Value *x)
{
    const OnnxList *l = on_has(n, 4) ? on_list(n, 4) : NULL;
    for (int i = 0; l && l->dim && i < l->n; i++)
        if (!dim_equal(l->dim[i], x->type.dim[0]))
            l = NULL;
    return !on_has(n, 4) || l || onnx_unsupported(n, "has sequences of different lengths");
}

static Value *steps(OnnxNode *n, Rnn *r)
{
    Value *x = on_value(n, 0);
    if (!x)
        return NULL;
    if (x->type.rank != 3) {
        onnx_wrong(n, "has an operand of rank %d, expected 3", x->type.rank);
        return NULL;
    }
    x = r->is_batch_first ? swapped(n, x) : x;
    return x && lengths_are_whole(n, x) ? reversed(n, r, x) : NULL;
}

static void result_types(OnnxNode *n, const Rnn *r, const Value *x, Type out[3])
{
    Program *p = n->in->program;
    Dim y[3] = {x->type.dim[0], x->type.dim[1], DIM(r->dirs * r->hidden)};
    Dim h[3] = {DIM(r->dirs), x->type.dim[1], DIM(r->hidden)};
    out[0] = type_tensor(p, x->type.dtype, 3, y);
    out[1] = out[2] = type_tensor(p, x->type.dtype, 3, h);
}

bool onnx_lstm(OnnxNode *n)
{
    static const int order[MAX_GATES] = {0, 2, 3, 1}; /* i f g o of i o f c */
    static const char *const want[] = {"Sigmoid", "Tanh", "Tanh"};
    Rnn r = {.gates = 4, .order = order};
    Type type[3];
    if (on_has(n, 7))
        return onnx_unsupported(n, "has peepholes");
    if (!read_direction(n, &r) || !activations_are(n, want, 3) || !read_params(n, &r))
        return false;
    Value *x = steps(n, &r), *state[2] = {x ? start(n, &r, 5, x) : NULL};
    state[1] = state[0] ? start(n, &r, 6, x) : NULL;
    if (!state[1])
        return false;
    result_types(n, &r, x, type);
    Node *m = build_given(n->in->graph, NULL, n->loc, n->row->op, type, n->in->diag, "vVVbifbbb", x, 2,
                          state, r.dirs * (r.has_bias ? 4 : 2), r.param, r.has_bias, (int64_t)1, 0.0,
                          false, r.dirs == 2, false);
    return m && define_states(n, &r, m);
}

static bool of_one_state(OnnxNode *n, Rnn *r, OpId op)
{
    Type type[3];
    if (!read_params(n, r))
        return false;
    Value *x = steps(n, r), *state = x ? start(n, r, 5, x) : NULL;
    if (!state)
        return false;
    result_types(n, r, x, type);
    Node *m = build_given(n->in->graph, NULL, n->loc, op, type, n->in->diag, "vvVbifbbb", x, state,
                          r->dirs * (r->has_bias ? 4 : 2), r->param, r->has_bias, (int64_t)1, 0.0,
                          false, r->dirs == 2, false);
    return m && define_states(n, r, m);
}

bool onnx_gru(OnnxNode *n)
{
    static const int order[MAX_GATES] = {1, 0, 2}; /* r z n of z r h */
    static const char *const want[] = {"Sigmoid", "Tanh"};
    Rnn r = {.gates = 3, .order = order};
    if (!on_int(n, "linear_before_reset", 0))
        return onnx_unsupported(n, "resets the state before its product (linear_before_reset = 0)");
    return read_direction(n, &r) && activations_are(n, want, 2) && of_one_state(n, &r, n->row->op);
}

bool onnx_rnn(OnnxNode *n)
{
    static const int order[MAX_GATES] = {0};
    const Onnx__Attribute *a = on_attribute(n, "activations");
    bool is_relu = a && a->n_strings && a->strings[0].len == 4 && !memcmp(a->strings[0].data, "Relu", 4);
    const char *const want[] = {is_relu ? "Relu" : "Tanh"};
    Rnn r = {.gates = 1, .order = order};
    return read_direction(n, &r) && activations_are(n, want, 1) &&
           of_one_state(n, &r, is_relu ? OP_RNN_RELU_INPUT : OP_RNN_TANH_INPUT);
}
