/* split_transposed.c -- a transposed convolution becomes a plain one with stride 1, for which C in
 * fixed point has kernels, and nodes that only move bytes.
 *
 * Stage core, before quantize, if there is a recipe.  With stride s, element q * s + r of the
 * result is the sum over j of x[q + j - (k' - 1)] * w[(k' - 1 - j) * s + r], where k' is k / s
 * rounded up and w is 0 beyond k.  That is one convolution with k' taps for each r; together
 * they are one convolution with s times the channels (s * s with two axes).  A view and a
 * permute interleave the results for all r, and a slice removes what the padding removes. */
#include "passes/internal.h"
#include "ir/session.h"

typedef struct Split {
    Rewrite r;
    Conv c;
    int64_t channels;                    /* output channels of all groups */
    int64_t taps[2], phases[2], size[2]; /* k', s and the size of x, per axis */
} Split;

static bool read_split(const Node *n, Split *s)
{
    Conv *c = &s->c;
    if (!conv_read(n, c) || !c->is_transposed || c->axes > 2 || c->x->type.rank != c->axes + 2 ||
        !type_is_static(c->x->type) || !value_floats(c->w, -1) ||
        (c->bias && !value_floats(c->bias, -1)) || c->w->type.dim[0].value % c->groups)
        return false;
    s->channels = c->w->type.dim[1].value * c->groups;
    for (int i = 0; i < c->axes; i++) {
        s->phases[i] = c->stride[i];
        s->taps[i] = (c->kernel[i] + c->stride[i] - 1) / c->stride[i];
        s->size[i] = c->x->type.dim[2 + i].value;
        const int64_t whole = (s->size[i] + s->taps[i] - 1) * c->stride[i];
        if (c->dilation[i] != 1 || c->pad[i] + n->out[0]->type.dim[2 + i].value > whole)
            return false;
    }
    for (int i = c->axes; i < 2; i++)
        s->phases[i] = s->taps[i] = 1;
    return true;
}

/* Returns weights w[(o, ry, rx)][c][jy][jx], made of w[c][o][ky][kx]. */
static Value *split_weight(Split *s, Type t)
{
    Program *p = s->r.g->program;
    const Conv *c = &s->c;
    const float *w = value_floats(c->w, -1);
    const int64_t in = t.dim[1].value, each = s->channels / c->groups,
                  area = s->phases[0] * s->phases[1];
    const int64_t kh = c->kernel[0], kw = c->axes == 2 ? c->kernel[1] : 1;
    float *to = NEW(p->arena, float, type_numel(t));
    for (int64_t i = 0; i < type_numel(t); i++) {
        const int64_t jx = i % s->taps[1], jy = i / s->taps[1] % s->taps[0];
        const int64_t row = i / s->taps[1] / s->taps[0], ci = row % in, m = row / in;
        const int64_t o = m / area, ry = m % area / s->phases[1], rx = m % s->phases[1];
        const int64_t y = (s->taps[0] - 1 - jy) * s->phases[0] + ry;
        const int64_t x = (s->taps[1] - 1 - jx) * s->phases[1] + rx;
        const int64_t from = (o / each * in + ci) * each + o % each;
        to[i] = y < kh && x < kw ? w[(from * kh + y) * kw + x] : 0;
    }
    return graph_const_like(s->r.g, c->w->state, "_split", t, to);
}

static Value *split_bias(Split *s, int64_t channels)
{
    Program *p = s->r.g->program;
    const Value *b = s->c.bias;
    if (!b)
        return NULL;
    Dim dim = DIM(channels);
    float *to = NEW(p->arena, float, channels);
    for (int64_t i = 0; i < channels; i++)
        to[i] = value_floats(b, -1)[i / (channels / s->channels)];
    return graph_const_like(s->r.g, b->state, "_split", type_tensor(p, ETC_F32, 1, &dim), to);
}

/* Builds the convolution of all phases. */
static Value *build_conv(Split *s, Node *n)
{
    const Conv *c = &s->c;
    const int64_t ones[2] = {1, 1}, none[2] = {0, 0}, pad[2] = {s->taps[0] - 1, s->taps[1] - 1};
    const int64_t channels = s->channels * s->phases[0] * s->phases[1];
    Dim dim[4] = {DIM(channels), DIM(c->w->type.dim[0].value / c->groups), DIM(s->taps[0]),
                  DIM(s->taps[1])};
    Type t = type_tensor(s->r.g->program, ETC_F32, 2 + c->axes, dim);
    return node_result(build(s->r.g, n, n->loc, n->op, s->r.d, "vvvIIIbIi", c->x,
                             split_weight(s, t), split_bias(s, channels), c->axes, ones, c->axes,
                             pad, c->axes, ones, false, c->axes, none, c->groups));
}

/* [n, (o, ry, rx), q, r] ==> [n, o, (q, ry), (r, rx)] */
static Value *shuffle(Split *s, Node *n, Value *y)
{
    const int axes = s->c.axes;
    static const int64_t order[2][6] = {{0, 1, 3, 2}, {0, 1, 4, 2, 5, 3}};
    Dim dim[6] = {y->type.dim[0], DIM(s->channels)};
    for (int i = 0; i < axes; i++) {
        dim[2 + i] = DIM(s->phases[i]);
        dim[2 + axes + i] = y->type.dim[2 + i];
    }
    y = build_view(&s->r, n, y, dim, 2 + 2 * axes);
    y = y ? build_permute(&s->r, n, y, order[axes - 1]) : NULL;
    for (int i = 0; i < axes; i++)
        dim[2 + i] = DIM((s->size[i] + s->taps[i] - 1) * s->phases[i]);
    return y ? build_view(&s->r, n, y, dim, 2 + axes) : NULL;
}

/* Removes the borders that the padding removes. */
static Value *crop(Split *s, Node *n, Value *y)
{
    for (int i = 0; y && i < s->c.axes; i++) {
        const int64_t axis = 2 + i, from = s->c.pad[i], step = 1;
        const int64_t to = from + n->out[0]->type.dim[axis].value;
        if (from || to < y->type.dim[axis].value)
            y = node_result(build(s->r.g, n, n->loc, OP_SLICE, s->r.d, "viiii", y, axis, from, to,
                                  step));
    }
    return y;
}

static bool split(Split *s, Node *n)
{
    rewrite_inputs(&s->r, n);
    if (!read_split(n, s))
        return true;
    Value *y = build_conv(s, n);
    y = y ? shuffle(s, n, y) : NULL;
    y = y ? crop(s, n, y) : NULL;
    return y && rewrite_node(&s->r, n, y);
}

bool pass_split_transposed(Graph *g, Arena *tmp, Diag *d)
{
    Split s = {.r = rewrite_start(g, tmp, d)};
    const Session *session = g->program->session;
    bool ok = true;
    for (Node *n = g->first, *next;
         ok && n && session->is_fixed_point && session->quant; n = next) {
        next = n->next;
        ok = split(&s, n);
    }
    rewrite_finish(&s.r);
    return ok;
}
