/* packed.h -- matmul whose weights stay integers or halves: y = clamp(bias + x w, lo, hi).
 *
 * Weights are stored in blocks of ETC_PACKED columns, [n / 16][k][16]; zeros fill the last block.
 * Two integers of 4 bits share a byte: the low half is term 2i of a column, and the high half is
 * term 2i + 1.  Scales and zero points are stored likewise, as [n / 16][k / group][16].  A weight
 * is (q - zero) * scale, rounded to float.  Sums are those of matmul.h: they start from 0 or from
 * the bias, and add their terms in order of k by fused multiply-add.  So the results are the same
 * bits as those of a product whose weights were converted to floats before.
 *
 * If x has one row and etc_fma is not emulated, weights are converted in registers; else into
 * panels of ETC_KB rows in `work`. */
#ifndef ETC_PACKED_H
#define ETC_PACKED_H

#include "runtime-lite/kernels/half.h"
#include "runtime-lite/kernels/tile.h"

#define ETC_PACKED 16

typedef struct EtcPacked {
    int64_t m, n, k;
    int64_t group; /* terms that share a scale: a divisor of k; even or k if weights have 4 bits */
    float lo, hi;  /* -infinity and infinity: there is no clamp */
} EtcPacked;

typedef struct EtcPackedWeight {
    const void *w;
    const float *scale; /* not read if the weights are halves */
    const int8_t *zero; /* NULL: all zero points are 0; not read if the weights are halves */
} EtcPackedWeight;

ETC_INLINE EtcF etc_float_of(EtcI v)
{
    return __builtin_convertvector(v, EtcF);
}

/* Returns the position of column j in [n / 16][rows][16]. */
ETC_INLINE int64_t etc_packed_at(int64_t rows, int64_t j)
{
    return ((j / ETC_PACKED) * rows * ETC_PACKED) + (j % ETC_PACKED);
}

/* Converts the vector at `at` of weights [n / 16][rows][16] to floats in row[0].  Weights of 4 bits
 * give two rows: row[1] is the next one.  `bits` is a constant after inlining. */
ETC_INLINE void etc_packed_rows(const void *w, int64_t at, int bits, EtcF scale, EtcI zero,
                                EtcF row[2])
{
    if (bits == 16) {
        row[0] = etc_widen_half((const uint16_t *)w + at);
    } else {
        const EtcI q = etc_widen_i8((const int8_t *)w + at);
        row[0] = etc_float_of(((bits == 4) ? ((q << 28) >> 28) : q) - zero) * scale;
        if (bits == 4) {
            row[1] = etc_float_of((q >> 4) - zero) * scale;
        }
    }
}

ETC_INLINE EtcF etc_packed_scale(const EtcPackedWeight *w, int64_t at, int bits)
{
    return (bits == 16) ? etc_splat(1.0f) : etc_loadu(w->scale + at);
}

ETC_INLINE EtcI etc_packed_zero(const EtcPackedWeight *w, int64_t at, int bits)
{
    return ((bits == 16) || (w->zero == NULL)) ? etc_splat_i32(0) : etc_widen_i8(w->zero + at);
}

/* Converts terms k0 .. k0 + k - 1 of columns j .. j + width - 1 to floats in panel[k][width]. */
ETC_INLINE void etc_unpack(const EtcPackedWeight *w, const EtcPacked *g, int64_t j, int64_t k0,
                           int64_t k, float *panel, int64_t width, int bits)
{
    const int64_t per = (bits == 4) ? 2 : 1, rows = (g->k + per - 1) / per;
    for (int64_t c = 0; c < width; c += ETC_LANES) {
        const int64_t column = etc_packed_at(rows, j + c);
        const int64_t point = etc_packed_at(g->k / g->group, j + c);
        for (int64_t i = k0; i < (k0 + k);) {
            const int64_t at = point + ((i / g->group) * ETC_PACKED);
            const int64_t end = etc_min_i64(k0 + k, ((i / g->group) + 1) * g->group);
            const EtcF scale = etc_packed_scale(w, at, bits);
            const EtcI zero = etc_packed_zero(w, at, bits);
            for (; i < end; i += per) {
                EtcF row[2];
                float *to = panel + ((i - k0) * width) + c;
                etc_packed_rows(w->w, column + ((i / per) * ETC_PACKED), bits, scale, zero, row);
                etc_storeu(to, row[0]);
                if ((bits == 4) && ((i + 1) < end)) {
                    etc_storeu(to + width, row[1]);
                }
            }
        }
    }
}

/* Computes y with weights that are converted to floats in `panel`, ETC_KB rows at a time. */
ETC_INLINE void etc_packed_panels(const float *x, const EtcPackedWeight *w, const float *bias,
                                  float *y, const EtcPacked *g, float *panel, int bits)
{
    EtcBlock t = {x, panel, y, bias, g->m, 0, 0, g->k, 0, g->n, 1, g->lo, g->hi, ETC_FROM_ZERO, 0,
                  ETC_TOGETHER};
    for (int64_t j = 0; j < g->n; j += t.n) {
        t.n = etc_panel(g->n - j);
        t.b_row = ((t.n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
        t.c = y + j;
        t.bias = (bias != NULL) ? (bias + j) : NULL;
        t.start = (bias != NULL) ? ETC_FROM_COLUMN : ETC_FROM_ZERO;
        int64_t k = 0;
        do { /* The loop runs once even if k is 0. */
            t.k = etc_min_i64(g->k - k, ETC_KB);
            t.a = x + k;
            t.is_last = (k + t.k) == g->k;
            etc_unpack(w, g, j, k, t.k, panel, t.b_row, bits);
            etc_block(&t);
            t.start = ETC_FROM_C;
            k += t.k;
        } while (k < g->k);
    }
}

/* Computes nv vectors of columns of y, from column j on, for one row of x.  nv is a constant after
 * inlining. */
ETC_INLINE void etc_packed_columns(const float *x, const EtcPackedWeight *w, const float *bias,
                                   float *y, const EtcPacked *g, int64_t j, int nv, int bits)
{
    const int64_t per = (bits == 4) ? 2 : 1, rows = (g->k + per - 1) / per;
    EtcF acc[4], scale[4];
    EtcI zero[4];
    int64_t column[4], point[4];
    ETC_UNROLL
    for (int v = 0; v < nv; v++) {
        const int64_t c = j + (v * ETC_LANES);
        acc[v] = (bias != NULL) ? etc_load(bias + c, g->n - c) : etc_splat(0.0f);
        column[v] = etc_packed_at(rows, c);
        point[v] = etc_packed_at(g->k / g->group, c);
    }
    for (int64_t i = 0; i < g->k;) {
        const int64_t end = i + g->group;
        ETC_UNROLL
        for (int v = 0; v < nv; v++) {
            scale[v] = etc_packed_scale(w, point[v], bits);
            zero[v] = etc_packed_zero(w, point[v], bits);
            point[v] += ETC_PACKED;
        }
        for (; i < end; i += per) {
            const int has_next = (bits == 4) && ((i + 1) < end);
            const EtcF first = etc_splat(x[i]), next = etc_splat(has_next ? x[i + 1] : 0.0f);
            const int64_t at = (i / per) * ETC_PACKED;
            ETC_UNROLL
            for (int v = 0; v < nv; v++) {
                EtcF row[2];
                etc_packed_rows(w->w, column[v] + at, bits, scale[v], zero[v], row);
                acc[v] = etc_fma(first, row[0], acc[v]);
                if (has_next) {
                    acc[v] = etc_fma(next, row[1], acc[v]);
                }
            }
        }
    }
    ETC_UNROLL
    for (int v = 0; v < nv; v++) {
        const int64_t c = j + (v * ETC_LANES);
        acc[v] = etc_at_most(etc_at_least(acc[v], etc_splat(g->lo)), etc_splat(g->hi));
        etc_store(y + c, g->n - c, acc[v]);
    }
}

/* Computes y for one row of x, with weights that are converted in registers. */
ETC_INLINE void etc_packed_row(const float *x, const EtcPackedWeight *w, const float *bias,
                               float *y, const EtcPacked *g, int bits)
{
    int64_t j = 0;
    for (; (j + (3 * ETC_LANES)) < g->n; j += 4 * ETC_LANES) {
        etc_packed_columns(x, w, bias, y, g, j, 4, bits);
    }
    for (; j < g->n; j += ETC_LANES) {
        etc_packed_columns(x, w, bias, y, g, j, 1, bits);
    }
}

ETC_INLINE void etc_packed(const float *x, const EtcPackedWeight *w, const float *bias, float *y,
                           const EtcPacked *g, void *work, int bits)
{
    if ((g->m == 1) && (ETC_FMA_BY_DOUBLE == 0)) {
        etc_packed_row(x, w, bias, y, g, bits);
        return;
    }
    etc_packed_panels(x, w, bias, y, g, (float *)work, bits);
}

/* Computes y = clamp(bias + x w, lo, hi) with weights of 4 bits.  work: ETC_WORK_BYTES. */
ETC_OUTLINE void etc_packed_i4(const float *x, const EtcPackedWeight *w, const float *bias,
                               float *y, const EtcPacked *g, void *work)
{
    etc_packed(x, w, bias, y, g, work, 4);
}

/* Computes the same with weights of 8 bits. */
ETC_OUTLINE void etc_packed_i8(const float *x, const EtcPackedWeight *w, const float *bias,
                               float *y, const EtcPacked *g, void *work)
{
    etc_packed(x, w, bias, y, g, work, 8);
}

/* Computes the same with weights that are halves. */
ETC_OUTLINE void etc_packed_f16(const float *x, const EtcPackedWeight *w, const float *bias,
                                float *y, const EtcPacked *g, void *work)
{
    etc_packed(x, w, bias, y, g, work, 16);
}

#endif
