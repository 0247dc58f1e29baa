/* index.h -- copies of elements at places that index tensors contain: gather, embedding, index,
 * index_put.
 *
 * A loop over the indices within `dim` visits each element of a plain tensor, together with an
 * element of the indexed tensor.  The latter is at its own strides, plus index * step for each
 * indexed axis.
 */
#ifndef ETC_INDEX_H
#define ETC_INDEX_H

#include "runtime-lite/kernels/copy.h"

typedef struct EtcAxisIndex {
    const void *index; /* int64 if is_wide is set, else int32 */
    int32_t is_wide;
    int64_t limit, step; /* the axis' size; its stride in the indexed tensor */
    int64_t at[16];      /* strides of the index tensor for each dimension of the loop */
} EtcAxisIndex;

typedef struct EtcIndex {
    int32_t rank, n, size; /* rank at least 1; n index tensors; an element has 1, 2, 4 or 8 bytes */
    int32_t wraps, is_put; /* negative indices count from the end; the indexed tensor is written */
    int64_t dim[16], plain[16], own[16]; /* sizes; strides of the plain and the indexed tensor */
    EtcAxisIndex of[16];
} EtcIndex;

/* Returns the sum of index * stride over the index tensors, in elements.  The indices are at
 * at[k], `step` elements along the innermost dimension.  An index out of range counts as the
 * nearest one in range and clears *ok. */
ETC_INLINE int64_t etc_index_distance(const EtcIndex *g, const int64_t *at, int64_t step, int *ok)
{
    int64_t sum = 0;
    for (int32_t k = 0; k < g->n; k++) {
        const EtcAxisIndex *a = &g->of[k];
        const int64_t from = at[k] + (step * a->at[g->rank - 1]);
        int64_t i = (a->is_wide != 0) ? ((const int64_t *)a->index)[from]
                                      : (int64_t)((const int32_t *)a->index)[from];
        i = ((i < 0) && (g->wraps != 0) && (i >= -a->limit)) ? (i + a->limit) : i;
        const int64_t near = (i < 0) ? 0 : etc_min_i64(i, a->limit - 1);
        *ok = (near == i) ? *ok : 0;
        sum += near * a->step;
    }
    return sum;
}

ETC_INLINE void etc_index_row(unsigned char *y, const unsigned char *x, int64_t n, int64_t y_step,
                              int64_t x_step, int64_t size)
{
    if ((y_step == size) && (x_step == size)) {
        __builtin_memcpy(y, x, (size_t)(n * size));
    } else if (size == 4) {
        etc_copy_row(y, x, n, y_step, x_step, 4);
    } else if (size == 8) {
        etc_copy_row(y, x, n, y_step, x_step, 8);
    } else {
        etc_copy_row(y, x, n, y_step, x_step, (size_t)size);
    }
}

/* Copies n elements along the innermost dimension.  `plain` and `own` are the places of the first
 * element in the plain and the indexed tensor.  The indices are the same for all n. */
ETC_INLINE void etc_index_run(unsigned char *y, const unsigned char *x, const EtcIndex *g,
                              int64_t plain, int64_t own, int64_t n)
{
    const int64_t size = g->size, plain_step = g->plain[g->rank - 1] * size,
                  own_step = g->own[g->rank - 1] * size;
    if (g->is_put != 0) {
        etc_index_row(y + (own * size), x + (plain * size), n, own_step, plain_step, size);
    } else {
        etc_index_row(y + (plain * size), x + (own * size), n, plain_step, own_step, size);
    }
}

/* Returns 1 if there are elements to copy, 0 if there are none, and -1 if there are some but an
 * indexed axis has size 0.  Clears *is_row if indices change along the innermost dimension. */
ETC_INLINE int etc_index_begin(const EtcIndex *g, int *is_row)
{
    int state = 1;
    for (int32_t k = 0; k < g->n; k++) {
        *is_row = (g->of[k].at[g->rank - 1] != 0) ? 0 : *is_row;
        state = (g->of[k].limit < 1) ? -1 : state;
    }
    for (int32_t d = 0; d < g->rank; d++) {
        state = (g->dim[d] == 0) ? 0 : state;
    }
    return state;
}

/* Advances the loop over all dimensions but the innermost one.  Returns 0 at its end. */
ETC_INLINE int etc_index_next(const EtcIndex *g, int64_t *count, int64_t *at, int64_t *plain,
                              int64_t *own)
{
    for (int32_t d = g->rank - 2; d >= 0; d--) {
        const int64_t step = ((count[d] + 1) < g->dim[d]) ? 1 : (1 - g->dim[d]);
        count[d] += step;
        *plain += g->plain[d] * step;
        *own += g->own[d] * step;
        for (int32_t k = 0; k < g->n; k++) {
            at[k] += g->of[k].at[d] * step;
        }
        if (step == 1) {
            return 1;
        }
    }
    return 0;
}

/* Copies x into y.  The plain tensor is x if g->is_put is set, else y; the other one is indexed.
 * Returns 1, or 0 if an index was out of range. */
ETC_OUTLINE int etc_index_nd(void *y, const void *x, const EtcIndex *g)
{
    const int64_t n = g->dim[g->rank - 1], own_step = g->own[g->rank - 1];
    int64_t count[16] = {0}, at[16] = {0}, plain = 0, own = 0;
    unsigned char *to = (unsigned char *)y;
    const unsigned char *from = (const unsigned char *)x;
    int ok = 1, is_row = 1;
    const int state = etc_index_begin(g, &is_row);
    if (state != 1) {
        return state == 0;
    }
    do {
        if (is_row != 0) {
            etc_index_run(to, from, g, plain, own + etc_index_distance(g, at, 0, &ok), n);
        }
        for (int64_t i = 0; (is_row == 0) && (i < n); i++) {
            const int64_t away = own + (i * own_step) + etc_index_distance(g, at, i, &ok);
            etc_index_run(to, from, g, plain + (i * g->plain[g->rank - 1]), away, 1);
        }
    } while (etc_index_next(g, count, at, &plain, &own));
    return ok;
}

#endif
