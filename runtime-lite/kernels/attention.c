/* attention.c -- wrappers of scaled_dot_product_attention and of attention that a model writes out
 * as single ops, in float.  The batch axes broadcast, or the heads are runs of columns. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"

enum { Q, K, V, MASK, BIAS, Y, N_OPERANDS };

typedef struct Heads {
    EtcTensor *t[N_OPERANDS]; /* t[MASK] and t[BIAS] may be NULL */
    int64_t groups;           /* the heads of q that share one head of k and v */
} Heads;

/* Returns the size of axis `i` of an operand, counted from the last; 1 if it has no such axis. */
static int64_t size_at(const EtcTensor *t, int32_t i)
{
    return (i < t->rank) ? t->dim[t->rank - 1 - i] : 1;
}

/* Returns the number of elements before head `index` in operand k.  Entries 2 and on of the index
 * are those of y's batch axes, the last axis first. */
static int64_t head_offset(const Heads *h, int k, const int64_t *index)
{
    const EtcTensor *t = h->t[k];
    int64_t stride = size_at(t, 0) * size_at(t, 1), at = 0;
    for (int32_t i = 2; i < t->rank; i++) {
        int64_t of = index[i];
        of = ((i == 2) && ((k == K) || (k == V))) ? (of / h->groups) : of;
        at += (t->dim[t->rank - 1 - i] == 1) ? 0 : (of * stride);
        stride *= t->dim[t->rank - 1 - i];
    }
    return at;
}

static int fits(const Heads *h, int k, int32_t i)
{
    const int64_t n = size_at(h->t[k], i), want = size_at(h->t[Y], i);
    return (n == 1) || (n == want) || ((i == 2) && ((k == K) || (k == V)) && (h->groups > 1) &&
                                       ((n * h->groups) == want));
}

/* Returns whether `mask`, which is added to the scores, is NULL or broadcasts to their sizes. */
static int adds(const Heads *h, const EtcTensor *mask)
{
    const int64_t rows = size_at(h->t[Q], 1), keys = size_at(h->t[K], 1);
    return (mask == NULL) || (((size_at(mask, 0) == 1) || (size_at(mask, 0) == keys)) &&
                              ((size_at(mask, 1) == 1) || (size_at(mask, 1) == rows)));
}

static int check_heads(const Heads *h)
{
    const EtcTensor *q = h->t[Q], *k = h->t[K], *v = h->t[V], *y = h->t[Y];
    int ok = (size_at(k, 0) == size_at(q, 0)) && (size_at(v, 1) == size_at(k, 1)) &&
             (size_at(y, 1) == size_at(q, 1)) && (size_at(y, 0) == size_at(v, 0));
    for (int n = Q; n <= BIAS; n++) {
        ok = ok && ((h->t[n] == NULL) || (h->t[n]->rank <= y->rank));
        for (int32_t i = 2; ok && (h->t[n] != NULL) && (i < y->rank); i++) {
            ok = fits(h, n, i);
        }
    }
    return ok && adds(h, h->t[MASK]) && adds(h, h->t[BIAS]);
}

/* Resizes y; its batch axes are those of q, k and v, broadcast. */
static EtcStatus resize(const Heads *h)
{
    EtcTensor *y = h->t[Y];
    int64_t dim[ETC_MAX_RANK];
    for (int32_t i = 0; i < y->rank; i++) {
        int64_t *d = &dim[y->rank - 1 - i];
        *d = size_at(h->t[(i == 0) ? V : Q], i);
        for (int k = K; (i >= 2) && (k <= V) && (*d == 1); k++) {
            *d = size_at(h->t[k], i) * ((i == 2) ? h->groups : 1);
        }
    }
    return etc_resize64(y, dim, y->rank);
}

static void run_head(const EtcCall *c, const Heads *h, const EtcAttention *g, const int64_t *index)
{
    const float *p[V + 1];
    EtcMask mask = {.add = NULL};
    for (int k = Q; k <= V; k++) {
        p[k] = (const float *)h->t[k]->data + head_offset(h, k, index);
    }
    if (h->t[MASK] != NULL) {
        const void *at = etc_at(h->t[MASK], head_offset(h, MASK, index));
        mask.add = (h->t[MASK]->dtype == ETC_F32) ? (const float *)at : NULL;
        mask.keep = (h->t[MASK]->dtype == ETC_F32) ? NULL : (const uint8_t *)at;
    }
    if (h->t[BIAS] != NULL) {
        mask.bias = (const float *)h->t[BIAS]->data + head_offset(h, BIAS, index);
    }
    etc_cores_of(c)->attention(p[Q], p[K], p[V], &mask,
                        (float *)h->t[Y]->data + head_offset(h, Y, index), g, c->scratch);
}

static void run_heads(const EtcCall *c, const Heads *h, const EtcAttention *g)
{
    const EtcTensor *y = h->t[Y];
    int64_t index[ETC_MAX_RANK] = {0};
    int64_t n = (y->rank > 0) ? (etc_numel(y) / (g->n_q * g->d_v)) : 0;
    for (; n > 0; n--) {
        run_head(c, h, g, index);
        for (int32_t i = 2; i < y->rank; i++) {
            index[i]++;
            if (index[i] < y->dim[y->rank - 1 - i]) {
                break;
            }
            index[i] = 0;
        }
    }
}

/* Counts the products of queries and keys, and of weights and values. */
static int may_attend(const EtcCall *c, const Heads *h, const EtcAttention *g)
{
    return etc_may_work(c, etc_numel(h->t[Q]) + etc_numel(h->t[Y]), g->n_k);
}

static EtcStatus check_types(const Heads *h)
{
    for (int k = Q; k < N_OPERANDS; k++) {
        const EtcTensor *t = h->t[k];
        if (t == NULL) {
            continue;
        }
        if ((t->rank < 2) && (k != MASK) && (k != BIAS)) {
            return ETC_BAD_ARG;
        }
        if (!etc_is_plain(t) ||
            ((t->dtype != ETC_F32) && ((k != MASK) || (t->dtype != ETC_BOOL)))) {
            return ETC_UNSUPPORTED;
        }
    }
    return ETC_OK;
}

static void set_steps(const EtcTensor *mask, int64_t *row, int64_t *column)
{
    if (mask != NULL) {
        *column = (size_at(mask, 0) == 1) ? 0 : 1;
        *row = (size_at(mask, 1) == 1) ? 0 : size_at(mask, 0);
    }
}

/* Sets the sizes and steps in `g` from operands that have been checked. */
static void set_geometry(const Heads *h, EtcAttention *g)
{
    const EtcTensor *q = h->t[Q], *k = h->t[K], *v = h->t[V];
    g->n_q = size_at(q, 1);
    g->n_k = size_at(k, 1);
    g->d = size_at(q, 0);
    g->d_v = size_at(v, 0);
    g->q_row = g->d;
    g->k_row = g->d;
    g->v_row = g->d_v;
    g->y_row = g->d_v;
    g->room = ETC_ATTENTION_ROOM;
    set_steps(h->t[MASK], &g->mask_row, &g->mask_column);
    set_steps(h->t[BIAS], &g->bias_row, &g->bias_column);
}

/* Reads and checks arguments 0 to 7, which both kernels have, and the result at argument `out`, and
 * computes all heads. */
static EtcStatus run_attention(const EtcCall *c, Heads *h, EtcAttention *g, int32_t out)
{
    EtcScalar scale = {.d = 0.0};
    double dropout = 0.0;
    int is_causal, is_gqa;
    if (!etc_arg_tensor(c, 0, &h->t[Q]) || !etc_arg_tensor(c, 1, &h->t[K]) ||
        !etc_arg_tensor(c, 2, &h->t[V]) || !etc_arg_opt_tensor(c, 3, &h->t[MASK]) ||
        !etc_arg_double(c, 4, &dropout) || !etc_arg_bool(c, 5, &is_causal) ||
        !etc_arg_bool(c, 7, &is_gqa) || !etc_arg_tensor(c, out, &h->t[Y])) {
        return ETC_BAD_ARG;
    }
    if (!etc_arg_scalar(c, 6, &scale)) {
        if ((c->arg[6] == NULL) || (c->arg[6]->tag != ETC_NONE)) {
            return ETC_BAD_ARG;
        }
        scale.d = 1.0 / __builtin_sqrt((double)size_at(h->t[Q], 0));
    }
    EtcStatus st = ((dropout != 0.0) || (is_causal && (h->t[MASK] != NULL))) ? ETC_UNSUPPORTED
                                                                             : check_types(h);
    if (st != ETC_OK) {
        return st;
    }
    if (is_gqa && (size_at(h->t[K], 2) > 0)) {
        h->groups = size_at(h->t[Q], 2) / size_at(h->t[K], 2);
    }
    if ((h->groups < 1) || (resize(h) != ETC_OK) || !check_heads(h)) {
        return ETC_BAD_ARG;
    }
    g->scale = (float)scale.d;
    g->is_causal = is_causal;
    set_geometry(h, g);
    if (!may_attend(c, h, g)) {
        return ETC_TOO_MUCH;
    }
    if (etc_numel(h->t[Y]) > 0) {
        run_heads(c, h, g);
    }
    return ETC_OK;
}

/* Arguments: query[..., L, E], key[..., S, E], value[..., S, Ev], mask[..., L, S] or None,
 * dropout_p = 0, is_causal, scale or None (1 / sqrt E), enable_gqa, out[..., L, Ev]. */
EtcStatus etc_attention(const EtcCall *c)
{
    Heads h = {.groups = 1};
    EtcAttention g = {.fill = -__builtin_inff()};
    return run_attention(c, &h, &g, 8);
}

/* Arguments: those of etc_attention up to enable_gqa, then bias[..., L, S] or None, cap (0: none),
 * fill, out[..., L, Ev].  A query that sees no key gives NaN. */
EtcStatus etc_softmax_attention(const EtcCall *c)
{
    Heads h = {.groups = 1};
    EtcAttention g = {.is_plain = 1};
    double cap, fill;
    if (!etc_arg_opt_tensor(c, 8, &h.t[BIAS]) || !etc_arg_double(c, 9, &cap) ||
        !etc_arg_double(c, 10, &fill)) {
        return ETC_BAD_ARG;
    }
    g.cap = (float)cap;
    g.fill = (float)fill;
    return run_attention(c, &h, &g, 11);
}

/* -- heads side by side ---------------------------------------------------------------------- */

/* Returns whether the mask is NULL or has these sizes; a size of 1 broadcasts. */
static int mask_fits(const EtcTensor *mask, int64_t batch, int64_t rows, int64_t keys)
{
    const int64_t want[3] = {keys, rows, batch};
    int ok = (mask == NULL) || ((mask->rank >= 2) && (mask->rank <= 3));
    for (int32_t i = 0; ok && (mask != NULL) && (i < 3); i++) {
        ok = (size_at(mask, i) == 1) || (size_at(mask, i) == want[i]);
    }
    return ok;
}

static void run_packed(const EtcCall *c, const Heads *h, const EtcAttention *g, int64_t heads)
{
    const EtcTensor *q = h->t[Q], *k = h->t[K], *m = h->t[MASK];
    const int64_t each = ((m == NULL) || (size_at(m, 2) == 1)) ? 0
                                                               : (size_at(m, 0) * size_at(m, 1));
    for (int64_t i = 0; i < (q->dim[0] * heads); i++) {
        const int64_t batch = i / heads, head = i % heads, shared = head / h->groups;
        const float *keys = (const float *)k->data + (batch * g->n_k * g->k_row);
        const float *values = (const float *)h->t[V]->data + (batch * g->n_k * g->v_row);
        EtcMask mask = {.add = (m != NULL) ? ((const float *)m->data + (batch * each)) : NULL};
        etc_cores_of(c)->attention((const float *)q->data + (batch * g->n_q * g->q_row) + (head * g->d),
                            keys + (shared * g->d), values + (shared * g->d_v), &mask,
                            (float *)h->t[Y]->data + (batch * g->n_q * g->y_row) + (head * g->d_v),
                            g, c->scratch);
    }
}

static EtcStatus check_packed(const Heads *h, int64_t heads, int64_t kv_heads)
{
    EtcStatus st = check_types(h);
    if (st != ETC_OK) {
        return st;
    }
    const EtcTensor *q = h->t[Q], *k = h->t[K], *v = h->t[V];
    if ((q->rank != 3) || (k->rank != 3) || (v->rank != 3) || (heads < 1) || (kv_heads < 1) ||
        ((heads % kv_heads) != 0) || ((q->dim[2] % heads) != 0) || ((k->dim[2] % kv_heads) != 0) ||
        ((v->dim[2] % kv_heads) != 0) || (k->dim[0] != q->dim[0]) || (v->dim[0] != q->dim[0]) ||
        (v->dim[1] != k->dim[1]) || ((q->dim[2] / heads) != (k->dim[2] / kv_heads)) ||
        !mask_fits(h->t[MASK], q->dim[0], q->dim[1], k->dim[1])) {
        return ETC_BAD_ARG;
    }
    return ((h->t[MASK] != NULL) && (h->t[MASK]->dtype != ETC_F32)) ? ETC_UNSUPPORTED : ETC_OK;
}

/* Arguments: query[b, L, heads * E], key[b, S, kv_heads * E], value[b, S, kv_heads * Ev],
 * mask[.., L, S] or None, heads, kv_heads, is_causal, scale (0: 1 / sqrt E),
 * out[b, L, heads * Ev]. */
EtcStatus etc_packed_attention(const EtcCall *c)
{
    Heads h = {.groups = 1};
    int64_t heads, kv_heads;
    double scale;
    int is_causal;
    if (!etc_arg_tensor(c, 0, &h.t[Q]) || !etc_arg_tensor(c, 1, &h.t[K]) ||
        !etc_arg_tensor(c, 2, &h.t[V]) || !etc_arg_opt_tensor(c, 3, &h.t[MASK]) ||
        !etc_arg_int(c, 4, &heads) || !etc_arg_int(c, 5, &kv_heads) ||
        !etc_arg_bool(c, 6, &is_causal) || !etc_arg_double(c, 7, &scale) ||
        !etc_arg_tensor(c, 8, &h.t[Y])) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = check_packed(&h, heads, kv_heads);
    if (st != ETC_OK) {
        return st;
    }
    const EtcTensor *q = h.t[Q], *k = h.t[K], *v = h.t[V], *m = h.t[MASK];
    const int64_t d_v = v->dim[2] / kv_heads, dim[3] = {q->dim[0], q->dim[1], heads * d_v};
    EtcAttention g = {.n_q = q->dim[1], .n_k = k->dim[1], .d = q->dim[2] / heads, .d_v = d_v,
                      .q_row = q->dim[2], .k_row = k->dim[2], .v_row = v->dim[2], .y_row = dim[2],
                      .room = ETC_ATTENTION_ROOM, .scale = (float)scale, .is_causal = is_causal};
    g.scale = (scale != 0.0) ? g.scale : (float)(1.0 / __builtin_sqrt((double)g.d));
    set_steps(m, &g.mask_row, &g.mask_column);
    h.groups = heads / kv_heads;
    st = etc_resize64(h.t[Y], dim, 3);
    if ((st == ETC_OK) && !may_attend(c, &h, &g)) {
        return ETC_TOO_MUCH;
    }
    if ((st == ETC_OK) && (etc_numel(h.t[Y]) > 0)) {
        run_packed(c, &h, &g, heads);
    }
    return st;
}
