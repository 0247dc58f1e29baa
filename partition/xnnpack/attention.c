/* attention.c -- lowers scaled dot product attention to products and a softmax.  If the scores of
 * all heads would not stay in cache, it lowers one head after the other.
 *
 * XNNPACK's softmax cannot handle a row without a key.  Pass pack_heads has made sure that every
 * mask leaves at least one key to each row. */
#include "partition/xnnpack/rows.h"
#include <math.h>

enum { CACHE = 1024 * 1024 }; /* the most bytes of scores that are computed at once */

typedef struct Heads {
    uint32_t q, k, v, mask, bias; /* mask, bias XNN_NONE: none */
    int64_t batch, heads, kv_heads, rows, keys, width, value_width;
    double scale, cap; /* cap 0: none */
} Heads;

/* -- masks ----------------------------------------------------------------------------------- */

/* Makes a mask with which query i sees the keys 0 .. i. */
static uint32_t causal_mask(Lower *w, int64_t rows, int64_t keys)
{
    float *data = NEW(w->body->program->arena, float, rows * keys + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < keys; k++)
            data[i * keys + k] = k > i ? -INFINITY : 0;
    return x_numbers(w, "causal", data, 2, (const uint32_t[]){(uint32_t)rows, (uint32_t)keys});
}

/* -- one head, or several at once ------------------------------------------------------------ */

static uint32_t product(Lower *w, uint32_t a, uint32_t b, uint32_t flags)
{
    XValue v = w->x.value[a];
    const XValue *by = &w->x.value[b];
    int columns = by->rank - (flags & FLAG_TRANSPOSE ? 2 : 1);
    v.dim[v.rank - 1] = by->dim[columns];
    v.is_symbolic[v.rank - 1] = by->is_symbolic[columns];
    uint32_t out = x_binary(w, XNN_BATCH_MATMUL, a, b, x_sized(w, &v));
    x_u32(x_producer(w, out), 3, flags);
    return out;
}

static uint32_t plus(Lower *w, uint32_t scores, uint32_t mask)
{
    return mask == XNN_NONE ? scores : x_binary(w, XNN_ADD, scores, mask, x_like(w, scores));
}

/* Computes softmax(cap(q k^T) + bias + mask) v over the last two axes. */
static uint32_t attend(Lower *w, const Heads *h, uint32_t q, uint32_t k, uint32_t v, uint32_t bias,
                       uint32_t mask)
{
    uint32_t scores = product(w, q, k, FLAG_TRANSPOSE);
    if (h->cap != 0) {
        scores = x_unary(w, XNN_TANH, scores, x_like(w, scores));
        scores = x_by_number(w, XNN_MULTIPLY, scores, h->cap);
    }
    scores = plus(w, plus(w, scores, bias), mask);
    scores = x_unary(w, XNN_SOFTMAX, scores, x_like(w, scores));
    return product(w, scores, v, 0);
}

static uint32_t scaled(Lower *w, uint32_t q, double scale)
{
    return scale == 1 ? q : x_by_number(w, XNN_MULTIPLY, q, scale);
}

/* Concatenates the parts along an axis, up to five at a time. */
static uint32_t join(Lower *w, uint32_t *part, int64_t n, int axis)
{
    while (n > 1) {
        int64_t left = 0;
        for (int64_t i = 0, k; i < n; i += k) {
            k = n - i < 5 ? n - i : 5;
            XValue v = w->x.value[part[i]];
            for (int64_t j = 1; j < k; j++)
                v.dim[axis] += w->x.value[part[i + j]].dim[axis];
            uint32_t out = k > 1 ? x_sized(w, &v) : part[i];
            if (k > 1)
                x_concat(w, part + i, (int)k, axis, out);
            part[left++] = out;
        }
        n = left;
    }
    return part[0];
}

/* -- packed rows ----------------------------------------------------------------------------- */

/* The mask leaves a key for every row, because pack_heads has made it so. */
bool xnn_takes_attention(const Node *n, Refusal *r)
{
    const Type q = arg_value(n, "query")->type, k = arg_value(n, "key")->type,
               v = arg_value(n, "value")->type;
    if (q.dim[2].expr || k.dim[2].expr || v.dim[2].expr)
        return xnn_no(r, "its columns are not counted by plain integers",
                      "export with a fixed number of features");
    return !arg_bool(n, "is_causal") || (!q.dim[1].expr && !k.dim[1].expr) ||
           xnn_no(r, "it is causal and its number of rows is known only at run time",
                  "export with the number of rows fixed");
}

void xnn_lower_attention(Lower *w, const Node *n)
{
    const Value *q = arg_value(n, "query"), *k = arg_value(n, "key"), *v = arg_value(n, "value");
    const Value *m = arg_value(n, "attn_mask");
    Heads h = {.q = x_use(w, q, AS_IS), .k = x_use(w, k, AS_IS), .v = x_use(w, v, AS_IS),
               .bias = XNN_NONE, .rows = q->type.dim[1].value, .keys = k->type.dim[1].value};
    arg_int(n, "heads", &h.heads);
    arg_int(n, "kv_heads", &h.kv_heads);
    h.width = q->type.dim[2].value / h.heads;
    h.value_width = v->type.dim[2].value / h.kv_heads;
    if (!arg_number(n, "scale", &h.scale) || h.scale == 0)
        h.scale = 1 / sqrt((double)h.width);
    h.q = scaled(w, h.q, h.scale);
    h.mask = m                          ? x_use(w, m, AS_IS)
             : arg_bool(n, "is_causal") ? causal_mask(w, h.rows, h.keys)
                                        : XNN_NONE;
    uint32_t *part = NEW(w->tmp, uint32_t, h.heads), kh = XNN_NONE, vh = XNN_NONE;
    for (int64_t i = 0; i < h.heads; i++) {
        int64_t group = h.heads / h.kv_heads, at = i / group;
        if (i % group == 0) {
            kh = x_slice(w, h.k, 2, at * h.width, h.width);
            vh = x_slice(w, h.v, 2, at * h.value_width, h.value_width);
        }
        part[i] = attend(w, &h, x_slice(w, h.q, 2, i * h.width, h.width), kh, vh, h.bias,
                         h.mask);
    }
    x_define(w, n->out[0], AS_IS, join(w, part, h.heads, 2));
}

/* -- [batch, heads, rows, width] --------------------------------------------------------------- */

bool xnn_takes_sdpa(const Node *n, Refusal *r)
{
    Attention a;
    bool is_read = attention_read(n, &a);
    if (a.dropout != 0)
        return xnn_no(r, "it drops elements at random", "export the model in eval mode");
    if (!is_read || a.q->type.rank != 4 || a.k->type.rank != 4 || a.v->type.rank != 4 ||
        a.q->type.dim[0].value != a.k->type.dim[0].value ||
        a.q->type.dim[0].value != a.v->type.dim[0].value ||
        a.k->type.dim[1].value != a.v->type.dim[1].value ||
        a.q->type.dim[1].value % a.k->type.dim[1].value)
        return xnn_no(r, "its operands are not of four axes and the same batch",
                      "give query, key and value the form [n, heads, rows, width]");
    return true;
}

static uint32_t head(Lower *w, uint32_t x, int64_t from, int64_t count)
{
    return x_slice(w, x, 1, from, count);
}

/* Returns the mask of some heads. */
static uint32_t mask_of(Lower *w, uint32_t mask, int64_t from, int64_t count)
{
    if (mask == XNN_NONE)
        return mask;
    const XValue *v = &w->x.value[mask];
    bool shared = v->rank < 3 || v->dim[v->rank - 3] == 1;
    return shared ? mask : x_slice(w, mask, v->rank - 3, from, count);
}

void xnn_lower_sdpa(Lower *w, const Node *n)
{
    Attention a;
    attention_read(n, &a);
    const Value *q = a.q, *k = a.k, *v = a.v;
    Heads h = {.q = x_use(w, q, AS_IS), .k = x_use(w, k, AS_IS), .v = x_use(w, v, AS_IS),
               .bias = a.bias ? x_use(w, a.bias, AS_IS) : XNN_NONE,
               .batch = q->type.dim[0].value, .heads = q->type.dim[1].value,
               .kv_heads = k->type.dim[1].value, .rows = q->type.dim[2].value,
               .keys = k->type.dim[2].value, .width = q->type.dim[3].value,
               .value_width = v->type.dim[3].value, .cap = a.cap};
    h.q = scaled(w, h.q, a.scale);
    h.mask = a.mask        ? x_use(w, a.mask, AS_IS)
             : a.is_causal ? causal_mask(w, h.rows, h.keys)
                           : XNN_NONE;
    int64_t bytes = 4 * h.batch * h.heads * h.rows * h.keys;
    if (h.heads == h.kv_heads && bytes <= CACHE) {
        x_define(w, n->out[0], AS_IS, attend(w, &h, h.q, h.k, h.v, h.bias, h.mask));
        return;
    }
    uint32_t *part = NEW(w->tmp, uint32_t, h.heads), kh = XNN_NONE, vh = XNN_NONE;
    for (int64_t i = 0; i < h.heads; i++) {
        int64_t group = h.heads / h.kv_heads;
        if (i % group == 0) {
            kh = head(w, h.k, i / group, 1);
            vh = head(w, h.v, i / group, 1);
        }
        uint32_t its_mask = mask_of(w, h.mask, i, 1), its_bias = mask_of(w, h.bias, i, 1);
        part[i] = attend(w, &h, head(w, h.q, i, 1), kh, vh, its_bias, its_mask);
    }
    x_define(w, n->out[0], AS_IS, join(w, part, h.heads, 1));
}

/* Returns whether attention keeps its parts, because a where masks it or a size is symbolic.  The
 * whole would add its mask, and needs known sizes. */
bool xnn_keeps_parts(const Node *scores, bool is_masked_by_choice, const Node *n)
{
    return is_masked_by_choice || !type_is_static(scores->out[0]->type) ||
           !type_is_static(arg_value(scores, "self")->type) || !type_is_static(n->out[0]->type);
}
