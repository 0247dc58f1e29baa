/* parts.h -- a piece of work that is split into parts, which may run at once.
 *
 * Each part computes some neighbouring rows of a result, in working memory of its own.
 */
#ifndef ETC_PARTS_H
#define ETC_PARTS_H

#include "runtime-lite/kernels/matmul.h"

/* A call that is split: `run` computes rows first .. first + rows - 1. */
typedef struct EtcCall {
    void (*run)(const struct EtcCall *call, int64_t first, int64_t rows, void *work);
    const void *const *in;
    void *const *out;
    const int64_t *size;
    int64_t rows;  /* of the whole result */
    int64_t grain; /* each part begins at a multiple of it */
} EtcCall;

/* Runs parts: run(pool, part, argument, n) calls part(argument, i) for i = 0 .. n - 1. */
typedef struct EtcWorkers {
    void (*run)(void *pool, void (*part)(void *argument, int32_t i), void *argument, int32_t n);
    void *pool;
    int32_t n;     /* the number of parts */
    uint8_t *work; /* the working memory of part 0; NULL: there is none */
    int64_t bytes; /* from the working memory of a part to that of the next */
} EtcWorkers;

typedef struct EtcSplit {
    const EtcCall *call;
    const EtcWorkers *workers;
    int32_t n;
} EtcSplit;

/* Computes part i of n, whose sizes differ by one grain at most. */
ETC_INLINE void etc_part(void *argument, int32_t i)
{
    const EtcSplit *s = (const EtcSplit *)argument;
    const EtcCall *c = s->call;
    const int64_t pieces = (c->rows / c->grain) + (((c->rows % c->grain) != 0) ? 1 : 0);
    const int64_t each = pieces / s->n, more = pieces % s->n;
    const int64_t from = ((i * each) + etc_min_i64(i, more)) * c->grain;
    const int64_t to = from + ((each + ((i < more) ? 1 : 0)) * c->grain);
    const int64_t rows = etc_min_i64(to, c->rows) - from;
    uint8_t *work = (s->workers->work != NULL) ? (s->workers->work + (i * s->workers->bytes)) : NULL;
    if (rows > 0) {
        c->run(c, from, rows, work);
    }
}

/* Computes all rows of a call in w->n parts, which w->run may run at once.  One part runs on this
 * thread. */
ETC_OUTLINE void etc_split(const EtcWorkers *w, const EtcCall *call)
{
    EtcSplit s = {call, w, w->n};
    if (w->n > 1) {
        w->run(w->pool, etc_part, &s, w->n);
    } else {
        etc_part(&s, 0);
    }
}

/* The rows, columns and terms that are multiplied together stay in the second-level cache. */
#define ETC_ROWS_NEAR 96
#define ETC_COLUMNS_NEAR 256
#define ETC_TERMS_NEAR 512

/* The terms that are added to a sum before it is stored; see ETC_KB.  With 16 registers, a block of b
 * has few columns, so that twice as many of its rows stay in the first-level cache. */
#define ETC_BLOCK_TERMS ((ETC_REGISTERS == 16) ? (2 * ETC_KB) : ETC_KB)

/* Adds terms from .. to - 1 to n columns of sums. */
ETC_INLINE void etc_matmul_near(const EtcBlock *block, const EtcMatmul *g, int64_t n, int64_t from,
                                int64_t to)
{
    EtcBlock t = *block;
    for (int64_t j = 0; j < n; j += t.n) {
        t.n = etc_min_i64(n - j, ETC_BLOCK_PANEL);
        t.c = block->c + j;
        t.bias = (block->bias != NULL) ? (block->bias + j) : NULL;
        t.start = block->start;
        int64_t k = from;
        do { /* The loop runs once even if k is 0. */
            t.k = etc_min_i64(to - k, ETC_BLOCK_TERMS);
            t.a = block->a + (k * t.a_step);
            t.b = block->b + ((j / ETC_TOGETHER) * t.b_next) + (k * ETC_TOGETHER) +
                  (j % ETC_TOGETHER);
            t.is_last = (k + t.k) == g->k;
            etc_block_before(&t, ((k + t.k) < to)
                                     ? (t.k * ETC_TOGETHER)
                                     : (((t.n / ETC_TOGETHER) * t.b_next) - ((k - from) * ETC_TOGETHER)));
            t.start = ETC_FROM_C;
            k += t.k;
        } while (k < to);
    }
}

/* Computes what etc_matmul_f32 does, for some columns of y, whose rows are y_row floats apart.  b
 * is in blocks.  The terms of a row of a are a_step floats apart. */
ETC_OUTLINE void etc_matmul_steps(const float *a, int64_t a_step, const float *b, const float *bias,
                                  float *y, const EtcMatmul *g, int64_t y_row)
{
    EtcBlock t = {a, b, y, bias, g->m, 0, 0, g->a_row, ETC_TOGETHER, y_row, a_step, g->lo, g->hi,
                  ETC_FROM_ZERO, 0, ETC_TOGETHER * g->k};
    for (int64_t j = 0; j < g->n; j += ETC_COLUMNS_NEAR) {
        const int64_t n = etc_min_i64(g->n - j, ETC_COLUMNS_NEAR);
        int64_t k = 0;
        t.b = b + (j * g->k);
        t.bias = (bias != NULL) ? (bias + j) : NULL;
        t.start = (g->from_y != 0) ? ETC_FROM_C
                                   : ((bias != NULL) ? ETC_FROM_COLUMN : ETC_FROM_ZERO);
        do { /* The loop runs once even if k is 0. */
            const int64_t to = etc_min_i64(k + ETC_TERMS_NEAR, g->k);
            for (int64_t i = 0; i < g->m; i += t.m) {
                t.m = etc_min_i64(g->m - i, ETC_ROWS_NEAR);
                t.a = a + (i * g->a_row);
                t.c = y + (i * y_row) + j;
                etc_matmul_near(&t, g, n, k, to);
            }
            t.start = ETC_FROM_C;
            k = to;
        } while (k < g->k);
    }
}

/* Computes the same for terms without gaps. */
ETC_OUTLINE void etc_matmul_part(const float *a, const float *b, const float *bias, float *y,
                                 const EtcMatmul *g, int64_t y_row)
{
    etc_matmul_steps(a, 1, b, bias, y, g, y_row);
}

#endif
