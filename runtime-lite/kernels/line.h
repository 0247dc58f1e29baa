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
    return (stride == 1) ? n : ((stride == 2) ? ((n + 1) / 2) : etc_over(n + stride - 1, stride));
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

/* -- rows with a border ---------------------------------------------------------------------- */

/* Where the elements of copied rows are: each row is `stride` lines of `line` floats, and `left`
 * floats of border come first in a line.  Line p holds the elements p, p + stride, p + 2 stride, ...
 * of the row. */
typedef struct EtcBorder {
    int64_t stride, line, left;
} EtcBorder;

/* Plans lines for ow outputs that read `reach` columns each, the first of them from column -pad on.
 * A vector may be read from behind the last output, and written behind the last element. */
ETC_INLINE EtcBorder etc_border(int64_t iw, int64_t ow, int64_t reach, int64_t stride, int64_t pad)
{
    const int64_t most = etc_max_i64(etc_steps_up(iw, stride), ow + reach);
    EtcBorder l = {stride, 0, etc_steps_up(pad, stride) + ETC_LANES - 1};
    l.left -= l.left % ETC_LANES;
    l.line = l.left + ((((most + ETC_LANES - 1) / ETC_LANES) + 1) * ETC_LANES);
    return l;
}

/* Returns the floats from the first line of a row to what output 0 reads in `column`, which is
 * negative in the border. */
ETC_INLINE int64_t etc_border_at(const EtcBorder *l, int64_t column)
{
    const int64_t steps =
        (column < 0) ? -etc_steps_up(-column, l->stride) : etc_over(column, l->stride);
    return l->left + steps + ((column - (steps * l->stride)) * l->line);
}

/* Loads n floats, at most a vector of them; the other lanes become `pad`. */
ETC_INLINE EtcF etc_load_or(const float *p, int64_t n, float pad)
{
    const EtcI iota = ETC_IOTA;
    if (n >= ETC_LANES) {
        return etc_loadu(p);
    }
    return etc_select((EtcI)(iota < etc_splat_i32((int32_t)n)), etc_load(p, n), etc_splat(pad));
}

/* 0: vectors are no more than code for their floats, so rows are copied float by float. */
#define ETC_COPIES_VECTORS ETC_PACKS_BYTES

/* Copies rows top .. top + n - 1 of a plane of ih x iw.  The border holds `pad` already.  is_used:
 * lines above and below the plane may hold other rows, and get `pad`. */
ETC_OUTLINE void etc_border_copy(const EtcBorder *l, const float *plane, int64_t ih, int64_t iw,
                                int64_t top, int64_t n, float pad, int is_used, float *to)
{
    const int64_t s = l->stride, next = s * l->line, last = etc_max_i64(iw - ETC_LANES, 0);
    const int64_t above = etc_min_i64(etc_max_i64(-top, 0), n);
    const int64_t below = etc_max_i64(etc_min_i64(ih - top, n), above);
    const float *row = plane + ((top + above) * iw);
    if (is_used != 0) {
        etc_fill(to, above * next, pad);
        etc_fill(to + (below * next), (n - below) * next, pad);
    }
    to += (above * next) + l->left;
    for (int64_t r = above; r < below; r++) {
        int64_t i = 0;
        if ((ETC_COPIES_VECTORS != 0) && (s == 1)) {
            for (; i < last; i += ETC_LANES) {
                etc_storeu(to + i, etc_loadu(row + i));
            }
            etc_storeu(to + last, etc_load_or(row + last, iw, pad)); /* may overlap those before */
        } else if ((ETC_COPIES_VECTORS != 0) && (s == 2)) {
            for (; (i + (2 * ETC_LANES)) <= iw; i += 2 * ETC_LANES) {
                EtcF even, odd;
                etc_load_split(row + i, &even, &odd);
                etc_storeu(to + (i / 2), even);
                etc_storeu(to + l->line + (i / 2), odd);
            }
            if (i < iw) {
                const EtcF a = etc_load_or(row + i, iw - i, pad);
                const EtcF b = etc_load_or(row + i + ETC_LANES, iw - i - ETC_LANES, pad);
                etc_storeu(to + (i / 2), etc_even(a, b));
                etc_storeu(to + l->line + (i / 2), etc_odd(a, b));
            }
        } else {
            float *begin = to;
            for (int64_t p = 0; p < etc_min_i64(s, iw); p++, begin += l->line) {
                float *at = begin;
                for (i = p; i < iw; i += s) {
                    *at = row[i];
                    at++;
                }
            }
        }
        row += iw;
        to += next;
    }
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
