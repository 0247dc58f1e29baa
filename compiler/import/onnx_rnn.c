/* onnx_rnn.c -- reads LSTM, GRU and RNN of ONNX as those of torch, whose gates have another
 * order. */
#include "compiler/import/onnx.h"
#include <assert.h>
#include <string.h>

enum { MAX_GATES = 4 };

typedef struct Rnn {
    int gates, dirs;
    const int *order; /* torch's gate i is ONNX's order[i] */
    int64_t hidden;
    bool has_bias, is_batch_first, is_reverse;
    Value *param[2 * 4]; /* of each direction: w_ih, w_hh, b_ih, b_hh */
} Rnn;

/* Returns the rows of one direction's matrix from `first` on, gate by gate in torch's order. */
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
    return !n->failed;
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

/* Returns a state at the start, [dirs, batch, hidden]; it is zeros if none is given. */
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

/* Rearranges [steps, batch, dirs * hidden] to [steps, dirs, batch, hidden], or to [batch, steps,
 * dirs, hidden] if the batch is first. */
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
    return reversed(n, r, x);
}

static void result_types(OnnxNode *n, const Rnn *r, const Value *x, Type out[3])
{
    Program *p = n->in->program;
    Dim y[3] = {x->type.dim[0], x->type.dim[1], DIM(r->dirs * r->hidden)};
    Dim h[3] = {DIM(r->dirs), x->type.dim[1], DIM(r->hidden)};
    out[0] = type_tensor(p, x->type.dtype, 3, y);
    out[1] = out[2] = type_tensor(p, x->type.dtype, 3, h);
}

/* -- step by step ------------------------------------------------------------------------------ */

enum { MOST_STEPS = 512 };

/* The state of unrolling a recurrent layer that torch's operators cannot express. */
typedef struct Unrolled {
    int gates, dirs, dir;
    int64_t hidden;
    Activation act[3];
    double clip; /* 0: none */
    Value *x;    /* [steps, batch, gates * hidden], the products of inputs */
    Value *w, *b; /* the weights and biases of the states; b may be NULL */
    Value *peep; /* peephole weights of i, o, f, [3 * hidden], or NULL */
    Value *h, *c; /* the states; c may be NULL */
    Value *length; /* the lengths of sequences, [batch, 1]; NULL: all have every step */
    bool is_dynamic; /* products are of bytes with dynamic scales */
    bool is_back;    /* the last step is the first */
} Unrolled;

/* The functions with parameters, the number of these, and their values if they are not given. */
static const struct {
    const char *name;
    int count;
    double a, b;
} parametric[] = {{"LeakyRelu", 1, 0.01, 0}, {"ThresholdedRelu", 1, 1, 0}, {"ScaledTanh", 2, 1, 1},
                  {"HardSigmoid", 2, 0.2, 0.5}, {"Elu", 1, 1, 0}, {"Affine", 2, 1, 0}, {"Clip", 2, 0, 0}};

Value *on_activated(OnnxNode *n, Value *x, const Activation *f)
{
    static const struct {
        const char *name;
        OpId op;
    } row[] = {{"Sigmoid", OP_SIGMOID}, {"Tanh", OP_TANH}, {"Relu", OP_RELU}};
    const char *name = f->name;
    double a = f->a, b = f->b;
    if (!x || !*name)
        return x;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!strcmp(name, row[i].name))
            return on_unary(n, row[i].op, x);
    if (!strcmp(name, "Softsign"))
        return on_binary(n, OP_DIV_TENSOR, x, on_scalar(n, OP_ADD_SCALAR, on_unary(n, OP_ABS, x), 1));
    if (!strcmp(name, "LeakyRelu"))
        return ON_BUILD(n, OP_LEAKY_RELU, "vf", x, a);
    if (!strcmp(name, "Elu"))
        return ON_BUILD(n, OP_ELU, "vf", x, a);
    if (!strcmp(name, "Clip"))
        return ON_BUILD(n, OP_CLAMP, "vff", x, a, b);
    if (!strcmp(name, "ThresholdedRelu"))
        return ON_GIVEN(n, OP_THRESHOLD, x->type, "vff", x, a, 0.0);
    if (!strcmp(name, "Softplus"))
        return on_given(n, OP_SOFTPLUS, x->type, x);
    if (!strcmp(name, "ScaledTanh"))
        return on_scalar(n, OP_MUL_SCALAR, on_unary(n, OP_TANH, on_scalar(n, OP_MUL_SCALAR, x, b)), a);
    bool is_affine = !strcmp(name, "Affine");
    if (is_affine || !strcmp(name, "HardSigmoid")) {
        x = on_scalar(n, OP_ADD_SCALAR, on_scalar(n, OP_MUL_SCALAR, x, a), b);
        return is_affine || !x ? x : ON_BUILD(n, OP_CLAMP, "vff", x, 0.0, 1.0);
    }
    onnx_unsupported(n, "has the activation '%s'", name);
    return NULL;
}

/* Returns number *at of a list of floats and counts *at up; if the list ends before,
 * `otherwise`. */
static double next_of(OnnxNode *n, const char *list, size_t *at, double otherwise)
{
    const Onnx__Attribute *a = on_attribute(n, list);
    return a && *at < a->n_floats ? (double)a->floats[(*at)++] : otherwise;
}

void on_take_parameters(OnnxNode *n, Activation *f, const char *alphas, size_t *alpha, const char *betas,
                        size_t *beta)
{
    for (size_t i = 0; i < sizeof parametric / sizeof *parametric; i++) {
        if (strcmp(f->name, parametric[i].name) != 0)
            continue;
        f->a = next_of(n, alphas, alpha, parametric[i].a);
        f->b = parametric[i].count > 1 ? next_of(n, betas, beta, parametric[i].b) : parametric[i].b;
    }
}

/* Returns rows first .. first + count - 1 of the parameter of this direction. */
static Value *rows_of(OnnxNode *n, const Unrolled *u, int input, int64_t first, int64_t count)
{
    Value *all = on_value(n, input);
    if (!all)
        return NULL;
    if (all->type.rank < 2 || !dim_equal(all->type.dim[0], DIM(u->dirs)) ||
        all->type.dim[1].expr || all->type.dim[1].value < first + count) {
        onnx_wrong(n, "has weights of another rank, or of other directions than its own");
        return NULL;
    }
    all = ON_BUILD(n, OP_SELECT_INT, "vii", all, (int64_t)0, (int64_t)u->dir);
    return on_part(n, all, 0, DIM(first), DIM(first + count), 1);
}

/* Returns the matrix of this direction, [gates * hidden, columns].  The file has its transpose as
 * bytes.  Input `at` has the scale and the next input the zero point: one for the direction, or one
 * for each row. */
static Value *rows_of_bytes(OnnxNode *n, const Unrolled *u, int input, int at)
{
    int64_t rows = u->gates * u->hidden;
    Value *v[3] = {on_value(n, input), on_cast(n, on_value(n, at), ETC_F32),
                   on_cast(n, on_value(n, at + 1), ETC_I64)};
    for (int i = 0; i < 3; i++) {
        int last = v[i] ? v[i]->type.rank - 1 : 0;
        if (!v[i] || (i ? last > 1 : last != 2) || !dim_equal(v[i]->type.dim[0], DIM(u->dirs)) ||
            (last && !dim_equal(v[i]->type.dim[last], DIM(rows)))) {
            onnx_wrong(
                n, "has weights, scales or zero points of another shape than its directions and "
                   "hidden_size ask for");
            return NULL;
        }
        v[i] = ON_BUILD(n, OP_SELECT_INT, "vii", v[i], (int64_t)0, (int64_t)u->dir);
        Dim all = DIM(rows);
        if (v[i] && !v[i]->type.rank)
            v[i] = ON_BUILD(n, OP_EXPAND, "vD", v[i], 1, &all);
        if (!v[i])
            return NULL;
    }
    EtcDtype t = v[0]->type.dtype;
    if (t != ETC_I8 && t != ETC_U8) {
        onnx_unsupported(n, "has weights of type %s", dtype_name(t));
        return NULL;
    }
    static const int64_t swap[2] = {1, 0};
    int64_t least = t == ETC_I8 ? INT8_MIN : 0;
    Value *w = on_permute(n, v[0], swap);
    return w ? ON_BUILD(n, OP_DEQUANTIZE_PER_CHANNEL, "vvviiit", w, v[1], v[2], (int64_t)0, least,
                        least + UINT8_MAX, t)
             : NULL;
}

/* Returns the columns of x that belong to gate g. */
static Value *gate(OnnxNode *n, const Unrolled *u, Value *x, int g)
{
    assert(g >= 0 && u->hidden >= 0);
    int axis = x ? x->type.rank - 1 : 0;
    return on_part(n, x, axis, DIM(g * u->hidden), DIM((g + 1) * u->hidden), 1);
}

static Value *clipped(OnnxNode *n, const Unrolled *u, Value *x)
{
    return !x || u->clip == 0 ? x : ON_BUILD(n, OP_CLAMP, "vff", x, -u->clip, u->clip);
}

static Value *linear(OnnxNode *n, Value *x, Value *w, Value *b)
{
    return x && w ? ON_BUILD(n, OP_LINEAR, "vvv", x, w, b) : NULL;
}

/* Returns x plus the product of state h and the rows of gates first .. first + count - 1, with
 * their bias.  x may be NULL. */
static Value *with_state(OnnxNode *n, const Unrolled *u, Value *x, Value *h, int first, int count)
{
    Dim from = DIM(first * u->hidden), to = DIM((first + count) * u->hidden);
    Value *b = u->b ? on_part(n, u->b, 0, from, to, 1) : NULL;
    h = u->is_dynamic ? on_rounded(n, h) : h;
    Value *y = linear(n, h, on_part(n, u->w, 0, from, to, 1), b);
    return x ? on_binary(n, OP_ADD_TENSOR, x, y) : y;
}

/* Adds the peephole term of gate g. */
static Value *peeped(OnnxNode *n, const Unrolled *u, Value *x, int g, Value *c)
{
    return u->peep ? on_binary(n, OP_ADD_TENSOR, x, on_binary(n, OP_MUL_TENSOR, gate(n, u, u->peep, g), c))
                   : x;
}

/* Builds a step of an LSTM, whose gates are i, o, f, c. */
static bool lstm_step(OnnxNode *n, const Unrolled *u, Value *x, Value **h, Value **c)
{
    Value *all = with_state(n, u, x, *h, 0, 4);
    Value *i = on_activated(n, clipped(n, u, peeped(n, u, gate(n, u, all, 0), 0, *c)), &u->act[0]);
    Value *f = on_activated(n, clipped(n, u, peeped(n, u, gate(n, u, all, 2), 2, *c)), &u->act[0]);
    Value *new = on_activated(n, clipped(n, u, gate(n, u, all, 3)), &u->act[1]);
    if (i && on_int(n, "input_forget", 0))
        f = on_scalar(n, OP_ADD_SCALAR, on_unary(n, OP_NEG, i), 1);
    *c = on_binary(n, OP_ADD_TENSOR, on_binary(n, OP_MUL_TENSOR, f, *c),
                   on_binary(n, OP_MUL_TENSOR, i, new));
    Value *o = on_activated(n, clipped(n, u, peeped(n, u, gate(n, u, all, 1), 1, *c)), &u->act[0]);
    *h = on_binary(n, OP_MUL_TENSOR, o, on_activated(n, *c, &u->act[2]));
    return *h && *c;
}

/* Builds a step of a GRU, whose gates are z, r, h.  The reset is applied before the product of the
 * state, or after it. */
static bool gru_step(OnnxNode *n, const Unrolled *u, Value *x, Value **h)
{
    Value *both = with_state(n, u, on_part(n, x, 1, DIM(0), DIM(2 * u->hidden), 1), *h, 0, 2);
    Value *z = on_activated(n, clipped(n, u, gate(n, u, both, 0)), &u->act[0]);
    Value *r = on_activated(n, clipped(n, u, gate(n, u, both, 1)), &u->act[0]), *new;
    if (on_int(n, "linear_before_reset", 0))
        new = on_binary(n, OP_ADD_TENSOR, gate(n, u, x, 2),
                        on_binary(n, OP_MUL_TENSOR, r, with_state(n, u, NULL, *h, 2, 1)));
    else
        new = with_state(n, u, gate(n, u, x, 2), on_binary(n, OP_MUL_TENSOR, r, *h), 2, 1);
    new = on_activated(n, clipped(n, u, new), &u->act[1]);
    Value *less = on_binary(n, OP_SUB_TENSOR, *h, new);
    *h = on_binary(n, OP_ADD_TENSOR, new, on_binary(n, OP_MUL_TENSOR, z, less));
    return *h != NULL;
}

static bool rnn_step(OnnxNode *n, const Unrolled *u, Value *x, Value **h)
{
    *h = on_activated(n, clipped(n, u, with_state(n, u, x, *h, 0, 1)), &u->act[0]);
    return *h != NULL;
}

/* Builds a step; x has its products with the inputs.  After the end of a sequence, where `lives` is
 * false, its states do not change and its results are 0. */
static Value *step(OnnxNode *n, Unrolled *u, Value *x, Value *lives)
{
    Value *h = u->h, *c = u->c;
    bool ok = x && (u->gates == 4   ? lstm_step(n, u, x, &h, &c)
                    : u->gates == 3 ? gru_step(n, u, x, &h)
                                    : rnn_step(n, u, x, &h));
    Value *y = ok ? h : NULL;
    if (ok && u->length) {
        h = on_where(n, lives, h, u->h);
        c = c ? on_where(n, lives, c, u->c) : NULL;
        y = on_where(n, lives, y, on_number(n, 0, y->type.dtype));
    }
    u->h = h;
    u->c = c;
    return y;
}

/* Reads the parameters and states of one direction. */
static bool read_unrolled(OnnxNode *n, Unrolled *u, Value *x, bool is_batch_first)
{
    int64_t rows = u->gates * u->hidden;
    bool has_bias = on_has(n, 3), is_bound = u->gates != 3;
    Value *b = has_bias ? rows_of(n, u, 3, 0, rows) : NULL;
    Value *rb = has_bias && b ? rows_of(n, u, 3, rows, rows) : NULL;
    if (is_bound && rb) /* the sum of both is one bias */
        b = on_binary(n, OP_ADD_TENSOR, b, rb);
    u->b = is_bound ? NULL : rb;
    u->x = u->is_dynamic ? linear(n, on_rounded(n, x), rows_of_bytes(n, u, 1, 8), b)
                         : linear(n, x, rows_of(n, u, 1, 0, rows), b);
    if (u->x)
        u->w = u->is_dynamic ? rows_of_bytes(n, u, 2, 10) : rows_of(n, u, 2, 0, rows);
    u->peep = u->gates == 4 && on_has(n, 7) ? rows_of(n, u, 7, 0, 3 * u->hidden) : NULL;
    Dim dim[2] = {x->type.dim[1], DIM(u->hidden)};
    for (int i = 0; u->w && i < (u->gates == 4 ? 2 : 1); i++) {
        Value *v = on_has(n, 5 + i) ? on_value(n, 5 + i) : NULL;
        v = is_batch_first && v ? swapped(n, v) : v;
        v = v ? ON_BUILD(n, OP_SELECT_INT, "vii", v, (int64_t)0, (int64_t)u->dir)
              : on_full(n, 2, dim, 0, x->type.dtype);
        *(i ? &u->c : &u->h) = v;
    }
    return u->w && !n->failed;
}

/* Reads the names of the activations of a direction.  Their parameters follow those of the
 * directions before. */
static bool name_activations(OnnxNode *n, Unrolled *u)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const Onnx__Attribute *a = on_attribute(n, "activations");
    size_t count = u->gates == 4 ? 3 : u->gates == 3 ? 2 : 1, alpha = 0, beta = 0;
    for (size_t at = 0; at < count * (size_t)(u->dir + 1); at++) {
        Activation *f = &u->act[at % count];
        f->name = usual[count == 1 ? 1 : at % count];
        if (a && at < a->n_strings && !(f->name = onnx_text(n->in, a->strings[at])))
            return false;
        on_take_parameters(n, f, "activation_alpha", &alpha, "activation_beta", &beta);
    }
    return true;
}

static Value *joined(OnnxNode *n, Value *const *part, int count, int axis)
{
    return count == 1 ? part[0] : ON_BUILD(n, OP_CAT, "Vi", count, part, (int64_t)axis);
}

static bool define_layout(OnnxNode *n, int i, Value *const *part, int dirs, bool is_batch_first)
{
    static const int64_t steps[4] = {2, 0, 1, 3};
    Value *v = joined(n, part, dirs, i ? 0 : 1);
    if (is_batch_first && v)
        v = i ? swapped(n, v) : on_permute(n, v, steps);
    return on_define(n, i, v);
}

/* Returns the results of all steps, [steps, batch, hidden].  The steps are unrolled. */
static Value *each_step(OnnxNode *n, Unrolled *u, int64_t steps)
{
    Value *y[MOST_STEPS];
    assert(steps > 0 && steps <= MOST_STEPS);
    for (int64_t s = 0; s < steps; s++) {
        int64_t t = u->is_back ? steps - 1 - s : s;
        Value *x = u->x ? ON_BUILD(n, OP_SELECT_INT, "vii", u->x, (int64_t)0, t) : NULL;
        Value *lives = u->length ? on_scalar(n, OP_GT_SCALAR, u->length, (double)t) : NULL;
        y[t] = on_insert(n, step(n, u, x, lives), 0);
        if (!y[t])
            return NULL;
    }
    return joined(n, y, (int)steps, 0);
}

static bool layer_step(OnnxNode *n, OnnxRowLoop *t, OnnxScope *scope, Value *at)
{
    Unrolled u = *(const Unrolled *)t->of;
    Value **whole[] = {&u.x, &u.w, &u.b, &u.peep, &u.length};
    (void)scope;
    for (int i = 0, k = 0; i < 5; i++)
        if (*whole[i])
            *whole[i] = t->whole[k++];
    u.h = t->carried[0];
    u.c = t->n_carried > 1 ? t->carried[1] : NULL;
    at = u.is_back ? on_from_end(n, t, at) : at;
    Value *x = at ? ON_BUILD(n, OP_INDEX_SELECT, "viv", u.x, (int64_t)0, at) : NULL;
    x = x ? ON_BUILD(n, OP_SQUEEZE_DIM, "vi", x, (int64_t)0) : NULL;
    t->row[0] = step(n, &u, x, u.length ? on_binary(n, OP_GT_TENSOR, u.length, at) : NULL);
    t->carried[0] = u.h;
    if (u.c)
        t->carried[1] = u.c;
    return t->row[0] != NULL;
}

/* Returns the same results by a loop that runs. */
static Value *all_steps(OnnxNode *n, Unrolled *u, Dim steps)
{
    Value *given[] = {u->x, u->w, u->b, u->peep, u->length}, *whole[5], *carried[] = {u->h, u->c}, *y;
    OnnxRowLoop t = {.iterations = steps, .n_carried = u->c ? 2 : 1, .n_rows = 1, .carried = carried,
                     .whole = whole, .row = &y, .iteration = layer_step, .of = u};
    int64_t axis = 0;
    for (int i = 0; i < 5; i++)
        if (given[i])
            whole[t.n_whole++] = given[i];
    if (!on_row_loop(n, &t))
        return NULL;
    u->h = t.carried[0];
    u->c = u->c ? t.carried[1] : NULL;
    return u->is_back ? ON_BUILD(n, OP_FLIP, "vI", y, 1, &axis) : y;
}

/* Reads a whole layer whose steps are unrolled, or run as a loop. */
static bool unrolled(OnnxNode *n, int gates, bool is_dynamic)
{
    Rnn r = {.gates = gates};
    Value *x = on_value(n, 0), *out[3][2];
    if (!x || x->type.rank != 3)
        return x && onnx_wrong(n, "has an operand of rank %d, expected 3", x->type.rank);
    if (!read_direction(n, &r))
        return false;
    x = r.is_batch_first ? swapped(n, x) : x;
    Dim steps = x ? x->type.dim[0] : DIM_BAD;
    if (!steps.expr && steps.value < 1)
        return x && onnx_unsupported(n, "has no steps");
    bool is_long = steps.expr || steps.value > MOST_STEPS;
    Value *length = on_has(n, 4) ? on_cast(n, on_value(n, 4), ETC_I64) : NULL;
    length = length ? on_insert(n, length, 1) : NULL;
    for (int d = 0; d < r.dirs; d++) {
        Unrolled u = {.gates = gates, .dirs = r.dirs, .dir = d, .hidden = r.hidden, .length = length,
                      .clip = on_float(n, "clip", 0), .is_dynamic = is_dynamic,
                      .is_back = r.is_reverse || d == 1};
        if (!name_activations(n, &u) || !read_unrolled(n, &u, x, r.is_batch_first))
            return false;
        Value *y = is_long ? all_steps(n, &u, steps) : each_step(n, &u, steps.value);
        if (!y)
            return false;
        out[0][d] = on_insert(n, y, 1);
        out[1][d] = on_insert(n, u.h, 0);
        out[2][d] = u.c ? on_insert(n, u.c, 0) : NULL;
    }
    for (int i = 0; i < (gates == 4 ? 3 : 2); i++)
        if (on_wants(n, i) && !define_layout(n, i, out[i], r.dirs, r.is_batch_first))
            return false;
    return true;
}

/* Returns whether sequences may have different lengths. */
static bool has_lengths(OnnxNode *n)
{
    Value *x = on_value(n, 0);
    const OnnxList *l = on_has(n, 4) ? on_list(n, 4) : NULL;
    Dim steps = x && x->type.rank == 3 ? x->type.dim[on_int(n, "layout", 0) ? 1 : 0] : DIM_BAD;
    for (int i = 0; l && l->dim && i < l->n; i++)
        if (!dim_equal(l->dim[i], steps))
            return true;
    return on_has(n, 4) && !(l && l->dim);
}

/* Returns whether torch's operators cannot express the activation functions. */
static bool is_apart(OnnxNode *n, const char *const *want, int count)
{
    const Onnx__Attribute *a = on_attribute(n, "activations");
    for (size_t i = 0; a && i < a->n_strings; i++) {
        const char *is = onnx_text(n->in, a->strings[i]);
        if (is && strcmp(is, want[i % (size_t)count]) != 0)
            return true;
    }
    return on_attribute(n, "clip") || on_int(n, "input_forget", 0) || has_lengths(n);
}

bool onnx_lstm(OnnxNode *n)
{
    static const int order[MAX_GATES] = {0, 2, 3, 1}; /* i f g o of i o f c */
    static const char *const want[] = {"Sigmoid", "Tanh", "Tanh"};
    Rnn r = {.gates = 4, .order = order};
    Type type[3];
    if (on_has(n, 7) || is_apart(n, want, 3))
        return unrolled(n, 4, false);
    if (!read_direction(n, &r) || !read_params(n, &r))
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

bool onnx_dynamic_lstm(OnnxNode *n)
{
    return unrolled(n, 4, true);
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
    if (!on_int(n, "linear_before_reset", 0) || is_apart(n, want, 2))
        return unrolled(n, 3, false);
    return read_direction(n, &r) && of_one_state(n, &r, n->row->op);
}

bool onnx_rnn(OnnxNode *n)
{
    static const int order[MAX_GATES] = {0};
    const Onnx__Attribute *a = on_attribute(n, "activations");
    bool is_relu = a && a->n_strings && a->strings[0].len == 4 && !memcmp(a->strings[0].data, "Relu", 4);
    const char *const want[] = {is_relu ? "Relu" : "Tanh"};
    Rnn r = {.gates = 1, .order = order};
    if (is_apart(n, want, 1))
        return unrolled(n, 1, false);
    return read_direction(n, &r) &&
           of_one_state(n, &r, is_relu ? OP_RNN_RELU_INPUT : OP_RNN_TANH_INPUT);
}
