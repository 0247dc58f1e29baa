/* backend.c -- the compiler's part of echo: the nodes that it takes, their cost, and the bytes of a
 * region. */
#include "tests/backends/echo/echo.h"
#include "ir/views.h"
#include <assert.h>
#include <string.h>

static bool no(Refusal *r, const char *why)
{
    *r = (Refusal){why, NULL};
    return false;
}

static bool is_plain(const Value *v)
{
    return v && v->type.dtype == ETC_F32 && v->type.rank != SCALAR && !v->type.stride &&
           type_is_static(v->type);
}

static bool is_weight(const Value *v)
{
    return is_plain(v) && value_is_known(v);
}

/* -- what it takes --------------------------------------------------------------------------- */

static bool takes_add(const Node *n, Refusal *r)
{
    const Value *a = arg_value(n, "self"), *b = arg_value(n, "other");
    double alpha = 1;
    if (!is_plain(a) || !is_plain(b) || a->state || b->state || !type_equal(a->type, b->type))
        return no(r, "its operands are not computed floats of one size");
    return (arg_number(n, "alpha", &alpha) && alpha == 1) || no(r, "it scales an operand");
}

static bool takes_conv(const Node *n, Refusal *r)
{
    Conv c;
    if (!conv_read(n, &c) || c.axes != 2 || c.is_transposed)
        return no(r, "it is not a convolution of images");
    if (!is_plain(c.x) || c.x->state)
        return no(r, "its input is not a computed float");
    return (is_weight(c.w) && (!c.bias || is_weight(c.bias))) || no(r, "its weights are computed");
}

static bool takes(const Node *n, const Uses *u, Refusal *r)
{
    (void)u;
    return n->op == OP_ADD_TENSOR    ? takes_add(n, r)
           : n->op == OP_CONVOLUTION ? takes_conv(n, r)
                                     : no(r, "it is not a convolution or sum");
}

static double cost(const Node *n)
{
    return node_seconds(n) / 4;
}

/* -- its bytes ------------------------------------------------------------------------------- */

typedef struct Writer {
    Arena *arena;
    uint32_t *word;
    int n, n_values, *id; /* by value index of the body */
} Writer;

static void put(Writer *w, int64_t word)
{
    PUSH(w->arena, w->word, w->n, (uint32_t)word);
}

static void put_two(Writer *w, const int64_t *v)
{
    put(w, v[0]);
    put(w, v[1]);
}

static void put_floats(Writer *w, const Value *v)
{
    for (int64_t i = 0; v && i < type_numel(v->type); i++) {
        uint32_t bits;
        memcpy(&bits, v->state->data + 4 * i, sizeof bits);
        put(w, bits);
    }
}

static void put_conv(Writer *w, const Node *n)
{
    Conv c;
    bool is_conv = conv_read(n, &c);
    const Dim *x = c.x->type.dim, *y = n->out[0]->type.dim;
    assert(is_conv);
    (void)is_conv;
    put(w, ECHO_CONV);
    put(w, w->n_values);
    put(w, w->id[c.x->index]);
    put(w, x[0].value);
    put(w, x[1].value);
    put(w, y[1].value);
    put(w, c.groups);
    put(w, c.bias != NULL);
    put_two(w, (int64_t[]){x[2].value, x[3].value});
    put_two(w, (int64_t[]){y[2].value, y[3].value});
    put_two(w, c.kernel);
    put_two(w, c.stride);
    put_two(w, c.pad);
    put_two(w, c.dilation);
    put_floats(w, c.w);
    put_floats(w, c.bias);
}

static void put_add(Writer *w, const Node *n)
{
    put(w, ECHO_ADD);
    put(w, w->n_values);
    put(w, w->id[arg_value(n, "self")->index]);
    put(w, w->id[arg_value(n, "other")->index]);
    put(w, type_numel(n->out[0]->type));
}

static bool lower(Graph *body, Arena *tmp, Diag *d, Blob *out)
{
    Writer w = {.arena = body->program->arena, .id = NEW(tmp, int, body->n_values + 1)};
    int n_nodes = 0, header = body->n_in;
    for (const Node *n = body->first; n; n = n->next, n_nodes++)
        w.id[n->out[0]->index] = header++;
    for (int i = 0; i < body->n_in; i++)
        w.id[body->in[i]->index] = i;
    put(&w, ECHO_MAGIC);
    put(&w, header);
    put(&w, body->n_in);
    put(&w, body->n_out);
    put(&w, n_nodes);
    for (int i = 0; i < body->n_out; i++)
        put(&w, w.id[body->out[i]->index]);
    w.n_values = body->n_in;
    for (const Node *n = body->first; n; n = n->next, w.n_values++) {
        if (n->op == OP_CONVOLUTION)
            put_conv(&w, n);
        else if (n->op == OP_ADD_TENSOR)
            put_add(&w, n);
        else
            return diag_unsupported(d, n->loc, "echo was given what it does not take");
    }
    *out = (Blob){(uint8_t *)w.word, (size_t)w.n * 4};
    return true;
}

const Backend echo_backend = {
    .name = "echo",
    .id = "EchoBackend",
    .takes = takes,
    .cost = cost,
    .call_cost = 1e-7,
    .cost_of_byte = 1e-12,
    .lower = lower,
};
