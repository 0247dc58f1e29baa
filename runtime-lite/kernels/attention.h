/* attention.h -- attention of one head: y = softmax(scale q k^T + bias + mask) v.
 *
 * q is multiplied by scale and rounded.  A score s is the dot product of a row of q and a key,
 * summed as in matmul.h, or cap tanh(s) of it.  The bias is added first, then the mask.  The
 * softmax of a row is e^(s - max) / sum; the sum is the one of reduce.h.  An output adds its terms
 * in order of the keys.  A row that sees no key gives zeros, or NaN if is_plain is set.
 *
 * Scores are computed one tile at a time.  A tile has some rows of scores for all keys.  If a
 * single row does not fit, a tile has a block of the keys, and its scores are computed three
 * times: for the maximum, for the sum and for the output.  The tile's size does not affect the
 * result's bits.
 */
#ifndef ETC_ATTENTION_H
#define ETC_ATTENTION_H

#include "runtime-lite/kernels/math.h"
#include "runtime-lite/kernels/matmul.h"
#include "runtime-lite/kernels/reduce.h"

/* The bytes of `work` before the tile; the smallest and the usual number of floats of a tile. */
#define ETC_ATTENTION_PANEL ((ETC_WORK_BYTES < 65536) ? 8192 : 32768)
#define ETC_ATTENTION_LEAST 1024
#define ETC_ATTENTION_ROOM ((ETC_WORK_BYTES - ETC_ATTENTION_PANEL) / 4)

typedef struct EtcAttention {
    int64_t n_q, n_k, d, d_v;            /* queries, keys, floats of a key and of a value */
    int64_t q_row, k_row, v_row, y_row;  /* floats from one row to the next */
    int64_t mask_row, mask_column;       /* strides of the mask; 0: broadcast; a column: 1 or 0 */
    int64_t room;                        /* the floats of a tile */
    float scale;
    int32_t is_causal;                   /* query i sees keys 0 .. i */
    int64_t bias_row, bias_column;       /* strides of the bias, like those of the mask */
    float cap;                           /* the cap of the scores; 0: none */
    float fill;                          /* the score of a key that the mask does not keep */
    int32_t is_plain;                    /* a row that sees no key gives NaN */
} EtcAttention;

/* The mask and the bias; each pointer may be NULL.  `add` is added to the scores.  A score is
 * replaced with `fill` if its entry of `keep` is 0; `keep` is not read if there is an `add`.
 * `bias` is added before the mask is applied. */
typedef struct EtcMask {
    const float *add;
    const uint8_t *keep;
    const float *bias;
} EtcMask;

/* A tile, and pointers to its parts in `work`. */
typedef struct EtcScores {
    float *panel, *part, *max, *s; /* `part`: scaled queries, at most ETC_KB floats of each */
    EtcSum *sum;
    int64_t rows, keys;         /* the most rows and keys that the tile can hold */
    int64_t row, part_row;      /* floats from one row to the next in s and in part */
    int64_t query, n, key, n_key; /* now it holds n rows from `query`, n_key keys from `key` */
} EtcScores;

/* Divides `work` among the parts of a tile, and chooses how many rows and keys the tile holds. */
ETC_INLINE EtcScores etc_scores_plan(const EtcAttention *g, void *work)
{
    EtcScores t;
    t.part_row = ((etc_min_i64(g->d, ETC_KB) + 15) / 16) * 16;
    t.row = ((g->n_k + 15) / 16) * 16;
    const int64_t beside = t.part_row + 32; /* the scaled query, a sum of 16 lanes, a maximum */
    if ((t.row + beside) > g->room) {
        t.row = ((g->room - beside) / ETC_SUM_BLOCK) * ETC_SUM_BLOCK;
    }
    t.keys = t.row;
    t.rows = etc_min_i64(etc_over(g->room, t.row + beside), g->n_q);
    if ((t.rows > 12) && (t.rows < g->n_q)) {
        t.rows = etc_over(t.rows, 12) * 12; /* fills whole register tiles */
    }
    t.panel = (float *)work;
    t.sum = (EtcSum *)(void *)(t.panel + (ETC_ATTENTION_PANEL / 4));
    t.max = (float *)(void *)(t.sum + t.rows);
    t.part = t.max + (16 * t.rows);
    t.s = t.part + (t.rows * t.part_row);
    t.query = 0;
    t.n = 0;
    t.key = 0;
    t.n_key = 0;
    return t;
}

/* Computes y = x * scale for m rows of n floats.  Rows are x_row and y_row floats apart. */
ETC_INLINE void etc_scale_rows(const float *x, int64_t x_row, float *y, int64_t y_row, int64_t m,
                               int64_t n, float scale)
{
    const EtcF by = etc_splat(scale);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j += ETC_LANES) {
            const EtcF v = etc_load(x + (i * x_row) + j, n - j);
            etc_store(y + (i * y_row) + j, n - j, v * by);
        }
    }
}

/* Computes the tile's scores: s = scale q k^T. */
ETC_INLINE void etc_scores_product(const EtcAttention *g, const float *q, const float *k,
                                   EtcScores *t)
{
    const float inf = __builtin_inff();
    EtcBlock b = {t->part, t->panel, t->s, NULL, t->n, 0, 0, t->part_row, 0, t->row, 1, -inf,
                  inf, ETC_FROM_ZERO, 0, ETC_TOGETHER};
    int64_t from = 0;
    do { /* runs once even if d is 0 */
        b.k = etc_min_i64(g->d - from, ETC_KB);
        b.is_last = (from + b.k) == g->d;
        etc_scale_rows(q + (t->query * g->q_row) + from, g->q_row, t->part, t->part_row, t->n, b.k,
                       g->scale);
        for (int64_t j = 0; j < t->n_key; j += b.n) {
            b.n = etc_panel(t->n_key - j);
            b.b_row = ((b.n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
            b.c = t->s + j;
            etc_pack_columns(k + ((t->key + j) * g->k_row) + from, g->k_row, b.k, b.n, t->panel,
                             b.b_row);
            etc_block(&b);
        }
        b.start = ETC_FROM_C;
        from += b.k;
    } while (from < g->d);
}

/* Adds n floats of `add`, or its first float if `column` is 0, to the scores s. */
ETC_INLINE void etc_scores_add(const float *add, int64_t column, float *s, int64_t n)
{
    for (int64_t j = 0; j < n; j += ETC_LANES) {
        const EtcF m = (column != 0) ? etc_load(add + j, n - j) : etc_splat(add[0]);
        etc_store(s + j, n - j, etc_load(s + j, n - j) + m);
    }
}

/* Replaces the n scores s with cap tanh(s). */
ETC_INLINE void etc_scores_cap(float cap, float *s, int64_t n)
{
    for (int64_t j = 0; j < n; j += ETC_LANES) {
        etc_store(s + j, n - j, etc_vtanh(etc_load(s + j, n - j)) * etc_splat(cap));
    }
}

/* Applies cap, bias and mask to the scores of row i of the tile.  If attention is causal, the
 * scores of keys after the query become -inf. */
ETC_INLINE void etc_scores_mask(const EtcAttention *g, const EtcMask *mask, const EtcScores *t,
                                int64_t i, float *s)
{
    const float inf = __builtin_inff();
    const int64_t query = t->query + i;
    const int64_t at = (query * g->mask_row) + (t->key * g->mask_column);
    if (g->cap != 0.0f) {
        etc_scores_cap(g->cap, s, t->n_key);
    }
    if (mask->bias != NULL) {
        etc_scores_add(mask->bias + (query * g->bias_row) + (t->key * g->bias_column),
                       g->bias_column, s, t->n_key);
    }
    if (mask->add != NULL) {
        etc_scores_add(mask->add + at, g->mask_column, s, t->n_key);
    } else if (mask->keep != NULL) {
        const uint8_t *keep = mask->keep + at;
        for (int64_t j = 0; j < t->n_key; j++) {
            s[j] = (keep[j * g->mask_column] != 0u) ? s[j] : g->fill;
        }
    }
    for (int64_t j = etc_max_i64(((t->query + i) - t->key) + 1, 0);
         (g->is_causal != 0) && (j < t->n_key); j++) {
        s[j] = -inf;
    }
}

/* Computes the tile's scores, with bias and mask. */
ETC_INLINE void etc_scores(const EtcAttention *g, const EtcMask *mask, const float *q,
                           const float *k, EtcScores *t)
{
    etc_scores_product(g, q, k, t);
    for (int64_t i = 0; i < t->n; i++) {
        etc_scores_mask(g, mask, t, i, t->s + (i * t->row));
    }
}

/* Returns e^x for the difference x of a score and the maximum of its row, or 0 if that is less than
 * 2^-100.  (If a product is subnormal, CPUs take a hundred times as long.) */
ETC_INLINE EtcF etc_score_exp(EtcF x)
{
    const EtcF e = etc_exp_normal(etc_at_least(x, etc_k(-70.0)), 0.0);
    return etc_select((EtcI)(e < etc_k(7.8886090522101181e-31)), etc_splat(0.0f), e);
}

/* Replaces the n scores s with e^(s - max).  In a row that sees no key they become 0, or NaN if
 * is_plain is set. */
ETC_INLINE void etc_scores_exp(float *s, int64_t n, float max, int32_t is_plain)
{
    const EtcF top = etc_splat(max);
    const EtcI none = (EtcI)(top == etc_splat((is_plain != 0) ? __builtin_nanf("")
                                                              : -__builtin_inff()));
    for (int64_t j = 0; j < n; j += ETC_LANES) {
        const EtcF e = etc_score_exp(etc_load(s + j, n - j) - top);
        etc_store(s + j, n - j, etc_select(none, etc_splat(0.0f), e));
    }
}

/* Divides n scores by their sum.  A step by the remainder rounds a product with the reciprocal
 * (Markstein). */
ETC_INLINE void etc_scores_divide(float *s, int64_t n, float sum)
{
    const EtcF by = etc_splat((sum == 0.0f) ? 1.0f : sum); /* 0: the row sees no key */
#if defined(ETC_WIDE_FMA) && !defined(ETC_ISA_TABLE)
    const EtcF once = etc_k(1.0) / by;
    for (int64_t j = 0; j < n; j += ETC_LANES) {
        const EtcF v = etc_load(s + j, n - j), q = v * once;
        etc_store(s + j, n - j, etc_fma(etc_fma(-q, by, v), once, q));
    }
#else
    for (int64_t j = 0; j < n; j += ETC_LANES) {
        etc_store(s + j, n - j, etc_load(s + j, n - j) / by);
    }
#endif
}

/* Replaces n16 scores, a multiple of 16, with e^(s - top).  Returns their sum. */
ETC_INLINE float etc_scores_exp_sum(float *s, int64_t n16, float top)
{
    EtcF all[16 / ETC_LANES] = {0};
    EtcSum sum;
    for (int64_t from = 0; from < n16; from += ETC_SUM_BLOCK) {
        const int64_t to = etc_min_i64(n16, from + ETC_SUM_BLOCK);
        EtcF part[16 / ETC_LANES] = {0};
        for (int64_t j = from; j < to; j += 16) {
            ETC_UNROLL
            for (int v = 0; v < (16 / ETC_LANES); v++) {
                float *at = s + j + (v * ETC_LANES);
                const EtcF e = etc_score_exp(etc_loadu(at) - etc_splat(top));
                etc_storeu(at, e);
                part[v] += e;
            }
        }
        ETC_UNROLL
        for (int v = 0; v < (16 / ETC_LANES); v++) {
            all[v] += part[v];
        }
    }
    for (int v = 0; v < (16 / ETC_LANES); v++) {
        etc_storeu(sum.lane + (v * ETC_LANES), all[v]);
    }
    return etc_sum_end(&sum);
}

/* Returns the largest of n16 scores, a multiple of 16.  It may leave out NaN. */
ETC_INLINE float etc_scores_max(const float *s, int64_t n16)
{
    EtcF most = etc_splat(-__builtin_inff());
    for (int64_t j = 0; j < n16; j += ETC_LANES) {
        most = etc_at_least(etc_loadu(s + j), most);
    }
    ETC_UNROLL
    for (int i = 1; i < ETC_LANES; i *= 2) {
        most = etc_at_least(etc_even(most, most), etc_odd(most, most));
    }
    return most[0];
}

/* Computes the softmax of a row of n scores. */
ETC_OUTLINE void etc_scores_softmax(float *s, int64_t n, int32_t is_plain)
{
    const int64_t n16 = ((n + 15) / 16) * 16;
    const EtcI iota = ETC_IOTA;
    for (int64_t j = n16 - 16; (n < n16) && (j < n16); j += ETC_LANES) {
        const EtcI is_score = (EtcI)(iota < etc_splat_i32((int32_t)(n - j)));
        etc_storeu(s + j, etc_select(is_score, etc_load(s + j, n - j), etc_splat(-__builtin_inff())));
    }
    const float top = etc_scores_max(s, n16);
    if (top > -__builtin_inff()) { /* NaN among the scores makes the sum NaN */
        etc_scores_divide(s, n16, etc_scores_exp_sum(s, n16, top));
        return;
    }
    const int sees_none = (etc_amax_f32(s, n, top) == top) && (is_plain == 0);
    for (int64_t j = 0; j < n; j += ETC_LANES) {
        etc_storeu(s + j, etc_splat(sees_none ? 0.0f : __builtin_nanf("")));
    }
}

/* Computes y = s v for the first block of keys and y += s v for the others. */
ETC_INLINE void etc_scores_value(const EtcAttention *g, const float *v, float *y, EtcScores *t)
{
    const float inf = __builtin_inff();
    EtcBlock b = {NULL, NULL, NULL, NULL, t->n, 0, 0, t->row, 0, g->y_row, 1, -inf, inf,
                  (t->key == 0) ? ETC_FROM_ZERO : ETC_FROM_C, 0, ETC_TOGETHER};
    int64_t from = 0;
    do { /* runs once even if there are no keys */
        b.k = etc_min_i64(t->n_key - from, ETC_KB);
        b.a = t->s + from;
        for (int64_t j = 0; j < g->d_v; j += b.n) {
            const float *at = v + ((t->key + from) * g->v_row) + j;
            b.n = etc_panel(g->d_v - j);
            b.b = at;
            b.b_row = g->v_row;
            b.c = y + (t->query * g->y_row) + j;
            if ((b.n % ETC_LANES) != 0) { /* etc_block reads whole vectors */
                b.b = t->panel;
                b.b_row = ((b.n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
                etc_pack_rows(at, g->v_row, b.k, b.n, t->panel, b.b_row);
            }
            etc_block(&b);
        }
        b.start = ETC_FROM_C;
        from += b.k;
    } while (from < t->n_key);
}

/* The steps, each over all keys: one if a tile holds them, else the rows' maxima, sums and output. */
typedef enum EtcStep { ETC_STEP_WHOLE, ETC_STEP_MAX, ETC_STEP_SUM, ETC_STEP_VALUE } EtcStep;

/* Does one step for row i of the tile. */
ETC_INLINE void etc_attention_row(const EtcAttention *g, EtcScores *t, EtcStep step, int64_t i)
{
    float *s = t->s + (i * t->row);
    if (step == ETC_STEP_WHOLE) {
        etc_scores_softmax(s, t->n_key, g->is_plain);
        return;
    }
    if (step == ETC_STEP_MAX) {
        t->max[i] = etc_amax_f32(s, t->n_key, t->max[i]);
        return;
    }
    etc_scores_exp(s, t->n_key, t->max[i], g->is_plain);
    if (step == ETC_STEP_SUM) {
        etc_sum_f32(s, t->n_key, &t->sum[i]);
    } else {
        etc_scores_divide(s, t->n_key, etc_sum_end(&t->sum[i]));
    }
}

/* Does one step over keys 0 .. seen - 1. */
ETC_INLINE void etc_attention_step(const EtcAttention *g, const EtcMask *mask, const float *q,
                                   const float *k, const float *v, float *y, EtcScores *t,
                                   EtcStep step, int64_t seen)
{
    t->key = 0;
    do { /* runs once even if there are no keys */
        t->n_key = etc_min_i64(seen - t->key, t->keys);
        etc_scores(g, mask, q, k, t);
        for (int64_t i = 0; i < t->n; i++) {
            etc_attention_row(g, t, step, i);
        }
        if ((step == ETC_STEP_WHOLE) || (step == ETC_STEP_VALUE)) {
            etc_scores_value(g, v, y, t);
        }
        t->key += t->n_key;
    } while (t->key < seen);
}

/* Computes y[n_q][d_v] from q[n_q][d], k[n_k][d] and v[n_k][d_v], whose rows may have gaps between
 * them.  y overlaps no operand.  work: ETC_ATTENTION_PANEL bytes and g->room floats. */
ETC_OUTLINE void etc_attention_f32(const float *q, const float *k, const float *v,
                                   const EtcMask *mask, float *y, const EtcAttention *g, void *work)
{
    EtcScores t = etc_scores_plan(g, work);
    for (; t.query < g->n_q; t.query += t.n) {
        t.n = etc_min_i64(g->n_q - t.query, t.rows);
        const int64_t seen = (g->is_causal != 0) ? etc_min_i64(g->n_k, t.query + t.n) : g->n_k;
        const int is_whole = seen <= t.keys;
        for (int64_t i = 0; i < t.n; i++) {
            t.max[i] = -__builtin_inff();
            etc_sum_start(&t.sum[i]);
        }
        int step = (int)(is_whole ? ETC_STEP_WHOLE : ETC_STEP_MAX);
        const int last = (int)(is_whole ? ETC_STEP_WHOLE : ETC_STEP_VALUE);
        for (; step <= last; step++) {
            etc_attention_step(g, mask, q, k, v, y, &t, (EtcStep)step, seen);
        }
    }
}

#endif
