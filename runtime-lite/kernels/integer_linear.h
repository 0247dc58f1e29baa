/* integer_linear.h -- linear layers of 8-bit integers: products of rows of x and rows of
 * weights. */
#ifndef ETC_INTEGER_LINEAR_H
#define ETC_INTEGER_LINEAR_H

#include "runtime-lite/kernels/integer.h"

typedef struct EtcIntegerLinear {
    int64_t m, n, k;
} EtcIntegerLinear;

/* The vectors of outputs that one row of x is multiplied for at a time. */
#define ETC_DOT_VECTORS (((ETC_LANES == 4) && (ETC_REGISTERS == 32)) ? 2 : 1)
#define ETC_DOT_WEIGHTS (ETC_DOT_VECTORS * ETC_LANES)

/* Computes the dot products of a row of x with ETC_DOT_WEIGHTS rows of w, one per lane.  The caller
 * repeats the last row of w if there are fewer. */
ETC_INLINE void etc_integer_dots(const uint8_t *x, const int8_t *const w[ETC_DOT_WEIGHTS],
                                 int64_t k, EtcTermBytes flip, EtcI dots[ETC_DOT_VECTORS])
{
    EtcI acc[ETC_DOT_WEIGHTS];
    int64_t i = 0;
    ETC_UNROLL
    for (int c = 0; c < ETC_DOT_WEIGHTS; c++) {
        acc[c] = etc_splat_i32(0);
    }
    for (; (i + ETC_TERM_BYTES) <= k; i += ETC_TERM_BYTES) {
        const EtcI xv = etc_x_terms(etc_term_bytes(x + i, ETC_TERM_BYTES) ^ flip);
        ETC_UNROLL
        for (int c = 0; c < ETC_DOT_WEIGHTS; c++) {
            acc[c] = etc_dot(acc[c], xv, etc_w_terms(etc_term_bytes(w[c] + i, ETC_TERM_BYTES)));
        }
    }
    if (i < k) {
        const EtcI xv = etc_x_terms(etc_term_bytes(x + i, k - i) ^ flip);
        ETC_UNROLL
        for (int c = 0; c < ETC_DOT_WEIGHTS; c++) {
            acc[c] = etc_dot(acc[c], xv, etc_w_terms(etc_term_bytes(w[c] + i, k - i)));
        }
    }
    ETC_UNROLL
    for (int v = 0; v < ETC_DOT_VECTORS; v++) {
        dots[v] = etc_lane_sums(acc + (v * ETC_LANES));
    }
}

/* The sizes of a tile: rows of x, which are multiplied by two outputs' weights at a time; outputs,
 * whose sums are kept; vectors of terms. */
#define ETC_DOT_ROWS ((ETC_LANES > 8) ? 8 : 4)
#define ETC_DOT_OUTPUTS 64
#define ETC_DOT_STEPS 32

typedef struct EtcDots {
    EtcI x[ETC_DOT_ROWS][ETC_DOT_STEPS];
    int32_t sums[ETC_DOT_ROWS][ETC_DOT_OUTPUTS];
} EtcDots;

/* Converts n terms of each row of x for etc_dot, once for all outputs. */
ETC_INLINE void etc_dots_ready(EtcDots *d, const uint8_t *x, int64_t k, int64_t n,
                               EtcTermBytes flip)
{
    for (int r = 0; r < ETC_DOT_ROWS; r++) {
        for (int64_t i = 0; i < n; i += ETC_TERM_BYTES) {
            d->x[r][i / ETC_TERM_BYTES] =
                etc_x_terms(etc_term_bytes(x + (r * k) + i, n - i) ^ flip);
        }
    }
}

/* Adds a vector of terms to the sums of two outputs for each row. */
ETC_INLINE void etc_dots_step(const EtcI *x, const int8_t *w0, const int8_t *w1, EtcI acc[16])
{
    const EtcI v0 = etc_w_terms(etc_term_bytes(w0, ETC_TERM_BYTES));
    const EtcI v1 = etc_w_terms(etc_term_bytes(w1, ETC_TERM_BYTES));
    ETC_UNROLL
    for (int r = 0; r < ETC_DOT_ROWS; r++) {
        const EtcI xv = x[r * ETC_DOT_STEPS];
        acc[2 * r] = etc_dot(acc[2 * r], xv, v0);
        acc[(2 * r) + 1] = etc_dot(acc[(2 * r) + 1], xv, v1);
    }
}

/* Adds n terms to the sums of outputs c and c + 1.  (If it is inlined, gcc 12 spills some of the
 * accumulators.) */
ETC_OUTLINE void etc_dots_pair(EtcDots *d, const int8_t *w0, const int8_t *w1, int64_t n, int64_t c)
{
    EtcI acc[16];
    const EtcI *x = d->x[0], *end = x + (n / ETC_TERM_BYTES);
    int64_t left = n % ETC_TERM_BYTES;
    const EtcTermBytes last[2] = {etc_term_bytes(w0 + (n - left), left),
                                  etc_term_bytes(w1 + (n - left), left)};
    ETC_UNROLL
    for (int r = 0; r < (2 * ETC_DOT_ROWS); r++) {
        acc[r] = etc_splat_i32(0);
    }
    for (;;) { /* twice if a rest fills no vector; with a second loop body gcc 12 would spill */
        for (; x < end; x++) {
            etc_dots_step(x, w0, w1, acc);
            w0 += ETC_TERM_BYTES;
            w1 += ETC_TERM_BYTES;
        }
        if (left == 0) {
            break;
        }
        w0 = (const int8_t *)&last[0];
        w1 = (const int8_t *)&last[1];
        end++;
        left = 0;
    }
    ETC_UNROLL
    for (int r = 0; r < (2 * ETC_DOT_ROWS); r += ETC_LANES) {
        const EtcI v = etc_lane_sums(acc + r);
        ETC_UNROLL
        for (int l = 0; l < ETC_LANES; l += 2) {
            d->sums[(r + l) / 2][c] += v[l];
            d->sums[(r + l) / 2][c + 1] += v[l + 1];
        }
    }
}

/* The zero point of a row of x, after x is shifted, and its scale. */
typedef struct EtcRowOf {
    EtcU zero;
    EtcF scale;
} EtcRowOf;

ETC_INLINE EtcRowOf etc_row_of(const EtcInteger *q, int64_t i)
{
    const EtcRowOf of = {(EtcU)etc_splat_i32(etc_x_zero(q, i) + etc_x_shift(q)),
                         etc_splat(etc_x_scale(q, i))};
    return of;
}

/* Converts the dot products of outputs j and on, at most a vector of them, and stores them at y[at]
 * and on. */
ETC_INLINE void etc_linear_put(EtcI dots, void *y, int64_t at, const EtcIntegerLinear *g,
                               const EtcInteger *q, const EtcFinish *f, const EtcRowOf *of,
                               int64_t j)
{
    const int64_t left = g->n - j;
    const EtcU sums = (EtcU)etc_load_ints(q->sums + j, left);
    const EtcF scales = etc_load(q->scales + j, left);
    const EtcF bias = (q->bias != NULL) ? etc_load(q->bias + j, left) : etc_splat(0.0f);
    etc_integer_put((EtcI)((EtcU)dots - (of->zero * sums)), of->scale * scales, bias, y,
                    at, left, f);
}

/* Computes outputs j .. j + n - 1 of ETC_DOT_ROWS rows from row i on. */
ETC_INLINE void etc_linear_tile(const uint8_t *x, const int8_t *w, void *y,
                                const EtcIntegerLinear *g, const EtcInteger *q, const EtcFinish *f,
                                EtcTermBytes flip, int64_t i, int64_t j, int64_t n)
{
    const int64_t most = ETC_DOT_STEPS * ETC_TERM_BYTES;
    EtcDots d;
    __builtin_memset(d.sums, 0, sizeof d.sums);
    for (int64_t k = 0; k < g->k; k += most) {
        const int64_t terms = etc_min_i64(g->k - k, most);
        etc_dots_ready(&d, x + (i * g->k) + k, g->k, terms, flip);
        for (int64_t c = 0; c < n; c += 2) { /* if n is odd, the last output is used twice */
            etc_dots_pair(&d, w + ((j + c) * g->k) + k,
                          w + (etc_min_i64(j + c + 1, g->n - 1) * g->k) + k, terms, c);
        }
    }
    for (int64_t r = 0; r < ETC_DOT_ROWS; r++) {
        const EtcRowOf of = etc_row_of(q, i + r);
        const int64_t at = ((i + r) * g->n) + j;
        float v[ETC_DOT_OUTPUTS];
        const int has_then = etc_has_then(q);
        for (int64_t c = 0; c < n; c += ETC_LANES) {
            etc_linear_put(*(const EtcIAnywhere *)&d.sums[r][c], (has_then != 0) ? v : y,
                           (has_then != 0) ? c : (at + c), g, q, f, &of, j + c);
        }
        if (has_then != 0) {
            q->then(v, (uint8_t *)y + at, n);
        }
    }
}

/* Computes rows `from` and on, fewer than ETC_DOT_ROWS, one at a time. */
ETC_INLINE void etc_linear_rows(const uint8_t *x, const int8_t *w, void *y,
                                const EtcIntegerLinear *g, const EtcInteger *q, const EtcFinish *f,
                                EtcTermBytes flip, int64_t from)
{
    EtcRowOf of[ETC_DOT_ROWS];
    for (int64_t i = from; i < g->m; i++) {
        of[i - from] = etc_row_of(q, i);
    }
    for (int64_t j = 0; (from < g->m) && (j < g->n); j += ETC_DOT_WEIGHTS) {
        const int8_t *row[ETC_DOT_WEIGHTS];
        const int64_t last = g->n - 1 - j;
        ETC_UNROLL
        for (int c = 0; c < ETC_DOT_WEIGHTS; c++) {
            row[c] = w + (etc_min_i64(c, last) * g->k);
        }
        for (int64_t i = from; i < g->m; i++) {
            EtcI dots[ETC_DOT_VECTORS];
            float v[ETC_DOT_WEIGHTS];
            const int64_t at = (i * g->n) + j;
            const int has_then = etc_has_then(q);
            etc_integer_dots(x + (i * g->k), row, g->k, flip, dots);
            ETC_UNROLL
            for (int64_t c = 0; c < ETC_DOT_WEIGHTS; c += ETC_LANES) {
                if (c <= last) {
                    etc_linear_put(dots[c / ETC_LANES], (has_then != 0) ? v : y,
                                   (has_then != 0) ? c : (at + c), g, q, f, &of[i - from], j + c);
                }
            }
            if (has_then != 0) {
                q->then(v, (uint8_t *)y + at, etc_min_i64(last + 1, ETC_DOT_WEIGHTS));
            }
        }
        w += ETC_DOT_WEIGHTS * g->k;
    }
}

/* Computes y[m][n] from x[m][k] and w[n][k]. */
ETC_OUTLINE void etc_linear_i8(const void *x, const int8_t *w, void *y, const EtcIntegerLinear *g,
                               const EtcInteger *given)
{
    const EtcInteger q = *given;
    const int64_t tiles = (g->m / ETC_DOT_ROWS) * ETC_DOT_ROWS;
    EtcTermBytes flip;
    EtcFinish f;
    etc_finish(&q, &f);
    __builtin_memset(&flip, etc_x_flip(&q), sizeof flip);
    for (int64_t j = 0; j < g->n; j += ETC_DOT_OUTPUTS) {
        const int64_t n = etc_min_i64(g->n - j, ETC_DOT_OUTPUTS);
        for (int64_t i = 0; i < tiles; i += ETC_DOT_ROWS) {
            etc_linear_tile((const uint8_t *)x, w, y, g, &q, &f, flip, i, j, n);
        }
    }
    etc_linear_rows((const uint8_t *)x, w, y, g, &q, &f, flip, tiles);
}

#endif
