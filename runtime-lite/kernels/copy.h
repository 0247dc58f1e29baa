/* copy.h -- copies of elements between two strided layouts: permute, slice, expand, cat, pad. */
#ifndef ETC_COPY_H
#define ETC_COPY_H

#include "runtime-lite/kernels/isa.h"

typedef struct EtcCopy {
    int32_t rank, size;            /* the rank, at least 1; an element's bytes: 1, 2, 4 or 8 */
    int64_t dim[16], y[16], x[16]; /* the sizes, none 0; the strides of y and x in elements */
} EtcCopy;

/* Copies n elements of `size` bytes each.  Both steps are in bytes. */
ETC_INLINE void etc_copy_row(unsigned char *y, const unsigned char *x, int64_t n, int64_t y_step,
                             int64_t x_step, size_t size)
{
    for (int64_t i = 0; i < n; i++) {
        __builtin_memcpy(y + (i * y_step), x + (i * x_step), size);
    }
}

/* Copies rows of n elements of four bytes, at least four, which are adjacent in y; in x they are
 * x_row elements apart.  The last four of a row may overlap those before.  Returns how many rows it
 * copied: whole blocks of four, and none where no vectors are. */
ETC_INLINE int64_t etc_copy_blocks(unsigned char *y, int64_t y_row, const unsigned char *x,
                                   int64_t x_row, int64_t rows, int64_t n)
{
    int64_t i = 0;
    for (; (ETC_REGISTERS > 8) && ((i + 4) <= rows); i += 4) {
        for (int64_t j = 0; j < n; j += 4) {
            const int64_t at = etc_min_i64(j, n - 4);
            etc_transpose4((const float *)(const void *)x + (at * x_row) + i, x_row,
                           (float *)(void *)y + (i * y_row) + at, y_row);
        }
    }
    return i;
}

/* Copies the elements along dimension p and the last dimension.  In x they are adjacent along p
 * and apart along the last dimension.  They are copied in bands of 16 columns, so that the cache
 * lines of x that one row reads are still in the cache for the next rows. */
ETC_INLINE void etc_copy_plane(unsigned char *y, const unsigned char *x, const EtcCopy *g, int32_t p,
                               size_t size)
{
    const int64_t bytes = (int64_t)size, n = g->dim[g->rank - 1], band = 16;
    const int64_t y_step = g->y[g->rank - 1] * bytes, x_step = g->x[g->rank - 1] * bytes;
    for (int64_t j = 0; j < n; j += band) {
        const int64_t some = ((n - j) < band) ? (n - j) : band;
        unsigned char *to = y + (j * y_step);
        const unsigned char *from = x + (j * x_step);
        int64_t i = 0;
        if ((size == 4) && (y_step == 4) && (some >= 4)) {
            i = etc_copy_blocks(to, g->y[p], from, x_step / 4, g->dim[p], some);
        }
        for (; i < g->dim[p]; i++) {
            etc_copy_row(to + (i * g->y[p] * bytes), from + (i * bytes), some, y_step, x_step,
                         size);
        }
    }
}

/* Returns the dimension p that etc_copy_plane is to be called with, or -1 if there is none: x is
 * contiguous along p and not along the last dimension. */
ETC_INLINE int32_t etc_copy_across(const EtcCopy *g)
{
    int32_t p = -1;
    for (int32_t d = 0; d < (g->rank - 1); d++) {
        if ((g->x[d] == 1) && (g->dim[d] > 1) && (g->x[g->rank - 1] > 1)) {
            p = d;
        }
    }
    return p;
}

/* Copies the elements along the last dimension, and along dimension p if p is not -1. */
ETC_INLINE void etc_copy_last(unsigned char *y, const unsigned char *x, const EtcCopy *g, int32_t p,
                              size_t size)
{
    const int32_t in = g->rank - 1;
    const int64_t bytes = (int64_t)size;
    if (p >= 0) {
        etc_copy_plane(y, x, g, p, size);
    } else if ((g->y[in] == 1) && (g->x[in] == 1)) {
        __builtin_memcpy(y, x, (size_t)(g->dim[in] * bytes));
    } else {
        etc_copy_row(y, x, g->dim[in], g->y[in] * bytes, g->x[in] * bytes, size);
    }
}

/* Copies the elements with all indices within g->dim from x to y. */
ETC_OUTLINE void etc_copy_nd(const void *x, void *y, const EtcCopy *g)
{
    const int32_t p = etc_copy_across(g);
    int64_t index[16] = {0}, x_at = 0, y_at = 0;
    for (;;) {
        unsigned char *to = (unsigned char *)y + (y_at * g->size);
        const unsigned char *from = (const unsigned char *)x + (x_at * g->size);
        if (g->size == 4) {
            etc_copy_last(to, from, g, p, 4);
        } else if (g->size == 8) {
            etc_copy_last(to, from, g, p, 8);
        } else {
            etc_copy_last(to, from, g, p, (size_t)g->size);
        }
        int32_t d = g->rank - 2;
        for (; d >= 0; d--) {
            if (d == p) {
                continue;
            }
            x_at += g->x[d];
            y_at += g->y[d];
            index[d]++;
            if (index[d] < g->dim[d]) {
                break;
            }
            x_at -= g->x[d] * g->dim[d];
            y_at -= g->y[d] * g->dim[d];
            index[d] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}

#endif
