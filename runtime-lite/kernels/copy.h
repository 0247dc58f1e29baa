/* copy.h -- elements moved between two strided layouts: permute, slice, expand, cat, pad. */
#ifndef ETC_COPY_H
#define ETC_COPY_H

#include "runtime-lite/kernels/core.h"

typedef struct EtcCopy {
    int32_t rank, size;            /* rank at least 1; bytes of an element: 1, 2, 4 or 8 */
    int64_t dim[16], y[16], x[16]; /* sizes, none 0; strides of y and x in elements */
} EtcCopy;

ETC_INLINE void etc_copy_row(unsigned char *y, const unsigned char *x, int64_t n, int64_t y_step,
                             int64_t x_step, size_t size)
{
    for (int64_t i = 0; i < n; i++) {
        __builtin_memcpy(y + (i * y_step), x + (i * x_step), size);
    }
}

/* The index of each element runs over dim, the last dimension fastest. */
ETC_OUTLINE void etc_copy_nd(const void *x, void *y, const EtcCopy *g)
{
    const int32_t in = g->rank - 1;
    const int64_t n = g->dim[in], size = g->size, y_step = g->y[in] * size,
                  x_step = g->x[in] * size;
    int64_t index[16] = {0}, x_at = 0, y_at = 0;
    for (;;) {
        unsigned char *to = (unsigned char *)y + (y_at * size);
        const unsigned char *from = (const unsigned char *)x + (x_at * size);
        if ((y_step == size) && (x_step == size)) {
            __builtin_memcpy(to, from, (size_t)(n * size));
        } else if (size == 4) {
            etc_copy_row(to, from, n, y_step, x_step, 4);
        } else if (size == 8) {
            etc_copy_row(to, from, n, y_step, x_step, 8);
        } else {
            etc_copy_row(to, from, n, y_step, x_step, (size_t)size);
        }
        int32_t d = in - 1;
        for (; d >= 0; d--) {
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
