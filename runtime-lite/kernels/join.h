/* join.h -- joins elements, one after the other, with the elements of a tensor that indices name.
 *
 * To join is to add, to multiply or to take the larger or the smaller.  An element may be named
 * several times.  Each result is rounded to the stored type. */
#ifndef ETC_JOIN_H
#define ETC_JOIN_H

#include "runtime-lite/kernels/half.h"
#include "runtime-lite/kernels/index.h"

typedef struct EtcJoin {
    int32_t op;         /* 0: sum, 1: product, 2: largest, 3: least */
    int32_t size, form; /* bytes; form 0: unsigned, 1: signed, 2: float, 3: bfloat16, 4: bool */
} EtcJoin;

ETC_INLINE double etc_join_floats(double a, double b, int32_t op)
{
    if (op == 0) {
        return a + b;
    }
    if (op == 1) {
        return a * b;
    }
    if (a != a) {
        return a;
    }
    return ((op == 2) ? (a > b) : (a < b)) ? a : b;
}

ETC_INLINE int64_t etc_join_ints(int64_t a, int64_t b, int32_t op)
{
    if (op == 0) {
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
    if (op == 1) {
        return (int64_t)((uint64_t)a * (uint64_t)b);
    }
    return ((op == 2) ? (a > b) : (a < b)) ? a : b;
}

ETC_INLINE double etc_join_float(const unsigned char *p, const EtcJoin *j)
{
    double d = 0.0;
    float f;
    uint16_t h;
    if (j->size == 8) {
        __builtin_memcpy(&d, p, sizeof d);
    } else if (j->size == 4) {
        __builtin_memcpy(&f, p, sizeof f);
        d = (double)f;
    } else {
        __builtin_memcpy(&h, p, sizeof h);
        d = (double)((j->form == 3) ? etc_from_bfloat(h) : etc_from_half(h));
    }
    return d;
}

ETC_INLINE void etc_join_put_float(unsigned char *p, double d, const EtcJoin *j)
{
    if (j->size == 8) {
        __builtin_memcpy(p, &d, sizeof d);
    } else if (j->size == 4) {
        const float f = (float)d;
        __builtin_memcpy(p, &f, sizeof f);
    } else {
        const uint16_t h = (uint16_t)((j->form == 3) ? etc_to_bfloat((float)d)
                                                     : etc_to_half((float)d));
        __builtin_memcpy(p, &h, sizeof h);
    }
}

/* Returns the integer of `size` bytes at p, in the CPU's byte order. */
ETC_INLINE int64_t etc_join_int(const unsigned char *p, const EtcJoin *j)
{
    int32_t w;
    int16_t h;
    int64_t v;
    if (j->size == 8) {
        __builtin_memcpy(&v, p, sizeof v);
        return v;
    }
    if (j->size == 4) {
        __builtin_memcpy(&w, p, sizeof w);
        return (j->form == 0) ? (int64_t)(uint32_t)w : (int64_t)w;
    }
    if (j->size == 2) {
        __builtin_memcpy(&h, p, sizeof h);
        return (j->form == 0) ? (int64_t)(uint16_t)h : (int64_t)h;
    }
    return ((j->form == 1) && (p[0] > 127u)) ? ((int64_t)p[0] - 256) : (int64_t)p[0];
}

ETC_INLINE void etc_join_put_int(unsigned char *p, int64_t v, const EtcJoin *j)
{
    const uint32_t w = (uint32_t)v;
    const uint16_t h = (uint16_t)v;
    if (j->size == 8) {
        __builtin_memcpy(p, &v, sizeof v);
    } else if (j->size == 4) {
        __builtin_memcpy(p, &w, sizeof w);
    } else if (j->size == 2) {
        __builtin_memcpy(p, &h, sizeof h);
    } else {
        p[0] = (unsigned char)((j->form == 4) ? (v != 0) : v);
    }
}

ETC_INLINE void etc_join_one(unsigned char *y, const unsigned char *x, const EtcJoin *j)
{
    if ((j->form == 2) || (j->form == 3)) {
        const double d = etc_join_floats(etc_join_float(y, j), etc_join_float(x, j), j->op);
        etc_join_put_float(y, d, j);
    } else {
        etc_join_put_int(y, etc_join_ints(etc_join_int(y, j), etc_join_int(x, j), j->op), j);
    }
}

/* Adds n floats `plain` apart to those that indices `apart` apart name, each `own` further on and
 * `step` for an index.  Returns 1, or 0 if an index is out of range. */
ETC_INLINE int etc_join_sums(float *y, const float *x, const int64_t *index, int64_t n, int64_t limit,
                             int32_t wraps, int64_t plain, int64_t apart, int64_t own, int64_t step)
{
    int ok = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t named = index[i * apart];
        const int64_t k = ((named < 0) && (wraps != 0) && (named >= -limit)) ? (named + limit)
                                                                             : named;
        const int64_t near = (k < 0) ? 0 : etc_min_i64(k, limit - 1);
        ok = (near == k) ? ok : 0;
        y[(i * own) + (near * step)] += x[i * plain];
    }
    return ok;
}

/* Adds the floats along the innermost axis, for a single index of int64.  Returns 1, or 0 if an index
 * is out of range. */
ETC_INLINE int etc_join_row(float *y, const float *x, const EtcIndex *g, int64_t at)
{
    const EtcAxisIndex *a = &g->of[0];
    const int32_t in = g->rank - 1;
    const int64_t *index = (const int64_t *)a->index + at;
    const int64_t n = g->dim[in], apart = a->at[in], own = g->own[in], plain = g->plain[in];
    if ((plain == 1) && (apart == 1) && (own == 0) && (a->step == 1)) { /* a row of its own */
        return etc_join_sums(y, x, index, n, a->limit, g->wraps, 1, 1, 0, 1);
    }
    return etc_join_sums(y, x, index, n, a->limit, g->wraps, plain, apart, own, a->step);
}

/* Joins each element of the plain tensor x with the element of y that g's indices name, and writes
 * the result to y.  Returns 1, or 0 if an index is out of range. */
ETC_INLINE int etc_index_join(void *y, const void *x, const EtcIndex *g, const EtcJoin *j)
{
    const int32_t in = g->rank - 1;
    int64_t count[16] = {0}, at[16] = {0}, plain = 0, own = 0;
    int ok = 1, is_row = 1;
    const int state = etc_index_begin(g, &is_row);
    if (state != 1) {
        return state == 0;
    }
    do {
        unsigned char *to = (unsigned char *)y + (own * j->size);
        const unsigned char *from = (const unsigned char *)x + (plain * j->size);
        if ((g->n == 1) && (g->of[0].is_wide != 0) && (j->op == 0) && (j->size == 4) &&
            (j->form == 2)) {
            ok &= etc_join_row((float *)y + own, (const float *)x + plain, g, at[0]);
            continue;
        }
        for (int64_t i = 0; i < g->dim[in]; i++) {
            const int64_t place = (i * g->own[in]) + etc_index_distance(g, at, i, &ok);
            etc_join_one(to + (place * j->size), from + (i * g->plain[in] * j->size), j);
        }
    } while (etc_index_next(g, count, at, &plain, &own));
    return ok;
}

#endif
