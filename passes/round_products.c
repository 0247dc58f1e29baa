/* round_products.c -- rounds the operands of products to bfloat16, if --math bf16 asks for it.
 *
 * Stage core, on the way to C:
 *
 *   linear(x, w, bias)  ==>  linear(round(x), round(w), bias)
 *
 * The same holds for mm, addmm, bmm and convolutions, unless a group of a convolution has one input
 * channel.  Constants are rounded here, other operands by a node for each value.  A product of two
 * such floats is exact in f32, and sums are added up as always, so the results are the same on
 * every CPU, unless the tiles of AMX add them up.  Everything else stays f32.  Each node is looked at
 * once. */
#include "passes/internal.h"
#include <string.h>

typedef struct Round {
    Graph *g;
    Diag *d;
    Value **rounded; /* by index of the values that were there before: what was made of it */
    int n;
} Round;

/* Returns the nearest bfloat16, or the even one of two, as the bits of a float. */
static uint32_t nearest(uint32_t u)
{
    bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    return is_nan ? 0x7fc00000u : (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
}

static Value *rounded_constant(const Round *s, const Value *v)
{
    const int64_t n = type_numel(v->type);
    uint8_t *to = arena_alloc(s->g->program->arena, (size_t)n + 1, sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, v->state->data + 4 * i, sizeof u);
        u = nearest(u);
        memcpy(to + 4 * i, &u, sizeof u);
    }
    return graph_const_like(s->g, v->state, "_rounded", v->type, to);
}

static Value *rounded(Round *s, Node *at, Value *v)
{
    assert(v->index < s->n); /* no node that is still to be visited reads what was made here */
    Value **made = &s->rounded[v->index];
    if (!*made)
        *made = value_is_known(v)
                    ? rounded_constant(s, v)
                    : node_result(build(s->g, at, at->loc, OP_ROUND_BFLOAT, s->d, "v", v));
    return *made;
}

/* Returns whether each group of a convolution has one input channel. */
static bool is_depthwise(const Weighted *v)
{
    const Dim d = v->x->type.dim[v->x_axis];
    return v->is_conv && !d.expr && d.value == v->groups;
}

/* Sets the slots of the operands that are multiplied.  Returns whether the node is such a
 * product. */
static bool read_slots(const Node *n, int slot[2])
{
    Weighted v;
    Product p;
    if (product_read(n, &p) && p.is_batch) {
        slot[0] = arg_get(n, "self").slot;
        slot[1] = arg_get(n, "mat2").slot;
        return n->out[0]->type.dtype == ETC_F32;
    }
    if (!weighted_read(n, &v) || n->out[0]->type.dtype != ETC_F32 || is_depthwise(&v))
        return false;
    slot[0] = v.x_slot;
    slot[1] = v.w_slot;
    return true;
}

bool pass_round_products(Graph *g, Arena *tmp, Diag *d)
{
    Round s = {.g = g, .d = d, .rounded = NEW(tmp, Value *, g->n_values + 1), .n = g->n_values};
    int slot[2];
    bool ok = true;
    if (!g->program->session->rounds_products)
        return true;
    for (Node *n = g->first; n; n = n->next) {
        const int count = read_slots(n, slot) ? 2 : 0;
        for (int i = 0; i < count; i++) {
            Value *v = rounded(&s, n, n->in[slot[i]]);
            ok = ok && v;
            if (v)
                node_set_in(n, slot[i], v);
        }
    }
    return ok;
}
