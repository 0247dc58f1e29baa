/* line.h -- rows of images laid out for vectors: padded, and every stride-th element together.
 *
 * The functions write whole vectors, so there must be room for one more vector behind a line.
 */
#ifndef ETC_LINE_H
#define ETC_LINE_H

#include "runtime-lite/kernels/vec.h"

ETC_INLINE void etc_fill(float *y, int64_t n, float value)
{
    if (n > 0) { /* This is usually all.  Compilers turn the loop into a call. */
        etc_storeu(y, etc_splat(value));
    }
    for (int64_t i = ETC_LANES; i < n; i += ETC_LANES) {
        etc_storeu(y + i, etc_splat(value));
    }
}

/* Copies n floats of x that are `stride` apart to y. */
ETC_INLINE void etc_every(const float *x, int64_t stride, float *y, int64_t n)
{
    if (stride == 1) {
        for (int64_t i = 0; i < n; i += ETC_LANES) {
            etc_storeu(y + i, etc_load(x + i, n - i));
        }
    } else if (stride == 2) {
        const int64_t room = (2 * n) - 1;
        for (int64_t i = 0; i < n; i += ETC_LANES) {
            const EtcF a = etc_load(x + (2 * i), room - (2 * i));
            const EtcF b = etc_load(x + (2 * i) + ETC_LANES, room - (2 * i) - ETC_LANES);
            etc_storeu(y + i, etc_even(a, b));
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            y[i] = x[i * stride];
        }
    }
}

/* Copies n floats like etc_every, with a stride of 1 or 2, and writes zeros behind them up to
 * `columns`. */
ETC_INLINE void etc_every_then_zeros(const float *x, int64_t stride, float *y, int64_t n,
                                     int64_t columns)
{
    const int64_t room = (stride * (n - 1)) + 1;
    for (int64_t i = 0; i < columns; i += ETC_LANES) {
        EtcF v = etc_load(x + (i * stride), room - (i * stride));
        if (stride == 2) {
            v = etc_even(v, etc_load(x + (2 * i) + ETC_LANES, room - (2 * i) - ETC_LANES));
        }
        etc_storeu(y + i, v);
    }
}

/* Writes a line element by element: y[i] = x[(i - from) * stride] for from <= i < to, and `pad` to
 * the other elements up to `columns`. */
ETC_INLINE void etc_line_of_floats(const float *x, int64_t stride, float pad, float *y, int32_t from,
                                   int32_t to, int32_t columns)
{
    const int32_t step = (int32_t)stride;
    float *const begin = y + from, *const end = y + to, *const behind = y + columns;
    for (; y < begin; y++) {
        *y = pad;
    }
    for (; y < end; y++, x += step) {
        *y = *x;
    }
    for (; y < behind; y++) {
        *y = pad;
    }
}

/* Returns n / stride, rounded up.  n is not negative. */
ETC_INLINE int64_t etc_steps_up(int64_t n, int64_t stride)
{
    return (stride == 1) ? n : ((stride == 2) ? ((n + 1) / 2) : ((n + stride - 1) / stride));
}

/* Sets y[i] = x[ix + i * stride] for i < n if that index is in [0, size).  Writes `pad` to the
 * other elements of y up to `columns`. */
ETC_INLINE void etc_line(const float *x, int64_t size, int64_t ix, int64_t stride, float pad,
                         float *y, int64_t n, int64_t columns)
{
    int64_t from = 0, to = 0; /* elements from .. to - 1 of y come from x */
    if (ix < 0) {
        from = etc_min_i64(etc_steps_up(-ix, stride), n);
    }
    if (ix < size) {
        to = etc_min_i64(etc_steps_up(size - ix, stride), n);
    }
    if (from >= to) {
        etc_fill(y, columns, pad);
        return;
    }
    x += ix + (from * stride);
    if (ETC_REGISTERS == 8) {
        etc_line_of_floats(x, stride, pad, y, (int32_t)from, (int32_t)to, (int32_t)columns);
        return;
    }
    if ((pad == 0.0f) && (stride <= 2) && (from <= ETC_LANES)) {
        etc_storeu(y, etc_splat(0.0f));
        etc_every_then_zeros(x, stride, y + from, to - from, columns - from);
        return;
    }
    etc_fill(y, from, pad);
    etc_every(x, stride, y + from, to - from);
    etc_fill(y + to, columns - to, pad);
}

/* Writes rows iy .. iy + rows - 1 of a plane, each as `stride` lines of `line` floats.  Line p
 * holds the elements p, p + stride, p + 2 stride, ... of the padded row.  So tap kx of output ox
 * is element ox + kx dilation / stride of line kx dilation % stride. */
ETC_INLINE void etc_spread_rows(const float *plane, int64_t ih, int64_t iw, int64_t iy,
                                int64_t rows, int64_t stride, int64_t left, float pad, int64_t line,
                                float *to)
{
    const int64_t n = line - (2 * ETC_LANES);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t p = 0; p < stride; p++) {
            float *y = to + (((r * stride) + p) * line);
            if (((iy + r) < 0) || ((iy + r) >= ih)) {
                etc_fill(y, n, pad);
            } else {
                etc_line(plane + ((iy + r) * iw), iw, p - left, stride, pad, y, n, n);
            }
        }
    }
}

/* Returns the floats of a line of etc_spread_rows.  It has the whole vectors that the taps of ow
 * outputs reach; these are written.  Two more vectors follow, because lanes behind the last
 * output may read them and copies may end in them. */
ETC_INLINE int64_t etc_spread_line(int64_t ow, int64_t kw, int64_t stride, int64_t dilation)
{
    const int64_t reach = ow + (((kw - 1) * dilation) / stride);
    return (((reach + ETC_LANES - 1) / ETC_LANES) + 2) * ETC_LANES;
}

/* -- rows of bytes --------------------------------------------------------------------------- */

/* Copies n bytes and flips the bits of each that `flip` has.  A call of memcpy is slow for few bytes,
 * and compilers turn a loop over bytes into such a call. */
ETC_INLINE void etc_byte_flip(const uint8_t *x, uint8_t flip, uint8_t *y, int64_t n)
{
    const uint64_t all = flip * 0x0101010101010101u;
    uint64_t a, b;
    if (n >= 16) { /* the last 16 bytes may overlap those before */
        for (int64_t i = 0; i < n; i += 16) {
            const int64_t at = etc_min_i64(i, n - 16);
            __builtin_memcpy(&a, x + at, 8);
            __builtin_memcpy(&b, x + at + 8, 8);
            a ^= all;
            b ^= all;
            __builtin_memcpy(y + at, &a, 8);
            __builtin_memcpy(y + at + 8, &b, 8);
        }
    } else if (n >= 8) {
        __builtin_memcpy(&a, x, 8);
        __builtin_memcpy(&b, x + n - 8, 8);
        a ^= all;
        b ^= all;
        __builtin_memcpy(y, &a, 8);
        __builtin_memcpy(y + n - 8, &b, 8);
    } else if (n >= 4) {
        uint32_t first, last;
        __builtin_memcpy(&first, x, 4);
        __builtin_memcpy(&last, x + n - 4, 4);
        first ^= (uint32_t)all;
        last ^= (uint32_t)all;
        __builtin_memcpy(y, &first, 4);
        __builtin_memcpy(y + n - 4, &last, 4);
    } else {
        for (int64_t i = 0; i < n; i++) {
            y[i] = x[i] ^ flip;
        }
    }
}

/* Copies n bytes.  A call of memcpy is slow for few bytes, and compilers turn a loop over bytes
 * into such a call. */
ETC_INLINE void etc_byte_copy(const uint8_t *x, uint8_t *y, int64_t n)
{
    if (n >= 16) { /* the last 16 bytes may overlap those before */
        for (int64_t i = 0; i < (n - 16); i += 16) {
            __builtin_memcpy(y + i, x + i, 16);
        }
        __builtin_memcpy(y + n - 16, x + n - 16, 16);
    } else if (n >= 8) {
        __builtin_memcpy(y, x, 8);
        __builtin_memcpy(y + n - 8, x + n - 8, 8);
    } else if (n >= 4) {
        __builtin_memcpy(y, x, 4);
        __builtin_memcpy(y + n - 4, x + n - 4, 4);
    } else if (n > 0) {
        y[0] = x[0];
        y[n / 2] = x[n / 2];
        y[n - 1] = x[n - 1];
    }
}

/* Sets n bytes to v, without a call of memset for few bytes. */
ETC_INLINE void etc_byte_fill(uint8_t *y, uint8_t v, int64_t n)
{
    if (n >= 4) {
        __builtin_memset(y, v, (size_t)n);
    } else if (n > 0) {
        y[0] = v;
        y[n / 2] = v;
        y[n - 1] = v;
    }
}

/* Copies n bytes that are `stride` apart. */
ETC_INLINE void etc_byte_every(const uint8_t *x, int64_t stride, uint8_t *y, int64_t n)
{
    int64_t i = 0;
    if (stride == 1) {
        etc_byte_copy(x, y, n);
        return;
    }
    if ((ETC_PACKS_BYTES != 0) && (stride == 2) && (n >= 8)) {
        for (; i < (n - 8); i += 8) {
            etc_every_second(x + (2 * i), y + i);
        }
        i = n - 8; /* the last eight may overlap those before */
        etc_every_second(x + (2 * i), y + i);
        return;
    }
    for (; i < n; i++) {
        y[i] = x[i * stride];
    }
}

/* Copies n bytes of a row, `stride` apart, from column ix on.  Columns outside [0, size) give
 * `pad`. */
ETC_INLINE void etc_byte_line(const uint8_t *x, int64_t size, int64_t ix, int64_t stride,
                              uint8_t pad, uint8_t *y, int64_t n)
{
    int64_t from = 0, to = 0; /* the bytes that are inside the row */
    if (ix < 0) {
        from = etc_min_i64(etc_steps(stride - 1 - ix, stride), n);
    }
    if (ix < size) {
        to = etc_min_i64(etc_steps(size - ix + stride - 1, stride), n);
    }
    to = etc_max_i64(from, to);
    etc_byte_fill(y, pad, from);
    if (to > from) {
        etc_byte_every(x + ix + (from * stride), stride, y + from, to - from);
    }
    etc_byte_fill(y + to, pad, n - to);
}

#endif
