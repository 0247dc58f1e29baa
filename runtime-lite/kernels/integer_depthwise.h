/* integer_depthwise.h -- convolutions of 8-bit integers with one input channel per group. */
#ifndef ETC_INTEGER_DEPTHWISE_H
#define ETC_INTEGER_DEPTHWISE_H

#include "runtime-lite/kernels/conv.h"
#include "runtime-lite/kernels/integer.h"

/* 1: each pair of bytes can be read as an integer of 16 bits. */
#if defined(__BYTE_ORDER__) && (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define ETC_PICTURE_SECOND 1
#else
#define ETC_PICTURE_SECOND 0
#endif

/* An image of one channel, padded and less its zero point, as sh * sw pictures.  Picture (py, px)
 * has the pixels of rows py, py + sh, ... and columns px, px + sw, ...  Then tap (y, x) of output
 * (oy, ox) is in picture (y % sh, x % sw) at row oy + y / sh, column ox + x / sw.  This offset is
 * the same for all outputs, so that all rows of outputs are computed as one run. */
typedef struct EtcPictures {
    int16_t *data;
    int64_t pitch, size; /* int16 from row to row, from picture to picture */
    int32_t *sums;       /* [output rows][pitch] */
} EtcPictures;

/* Returns the columns of a picture: those of y, and those that the last window needs more. */
ETC_INLINE int64_t etc_picture_pitch(const EtcConv *g)
{
    return g->ow + (((g->kw - 1) * g->dw) / g->sw);
}

/* Returns the number of int16 in the part of a picture that `rows` output rows read, with those
 * that a vector may read or write past its end. */
ETC_INLINE int64_t etc_picture_size(const EtcConv *g, int64_t rows)
{
    const int64_t under = rows + (((g->kh - 1) * g->dh) / g->sh);
    const int64_t n = ((under + 1) * etc_picture_pitch(g)) + etc_max_i64(2 * ETC_LANES, 8);
    return n + (n % 2); /* the sums that follow are aligned to 4 bytes */
}

/* Returns the bytes of all pictures that `rows` output rows read, and of the sums of these rows. */
ETC_INLINE int64_t etc_picture_bytes(const EtcConv *g, int64_t rows)
{
    return (g->sh * g->sw * etc_picture_size(g, rows) * 2) +
           (((rows * etc_picture_pitch(g)) + (2 * ETC_LANES)) * 4);
}

/* Returns whether a group, with one input channel and less than four output channels, is computed
 * from pictures.  At least one output row of them fits into ETC_WORK_BYTES. */
ETC_INLINE int etc_is_integer_depthwise(const EtcConv *g)
{
    return (g->ic == 1) && (g->oc < 4) && (g->kh <= 255) && (g->kw <= 255) && (g->sh <= 8) &&
           (g->sw <= 8) && (etc_picture_pitch(g) < ETC_WORK_BYTES) &&
           (etc_picture_bytes(g, 1) <= ETC_WORK_BYTES);
}

/* Bytes become the int16 of a picture: their sign bits flip, and the zero point is subtracted.
 * `keep` has the bits of the lanes that a run of fewer than eight bytes has; the others become
 * zeros. */
typedef struct EtcToShorts {
    EtcEight keep;
    int16_t flip, zero;
} EtcToShorts;

/* Returns how a run of n bytes is converted, or of eight if n is larger. */
ETC_INLINE EtcToShorts etc_to_shorts(const EtcInteger *q, int64_t n)
{
    const EtcEight lane = {0, 1, 2, 3, 4, 5, 6, 7};
    const int16_t turn = (q->x_is_signed != 0) ? 128 : 0;
    const EtcToShorts f = {(EtcEight)(lane < (int16_t)etc_min_i64(n, 8)), turn,
                           (int16_t)(etc_x_zero(q, 0) + turn)};
    return f;
}

/* Converts eight bytes. */
ETC_INLINE void etc_picture_eight(const uint8_t *x, const EtcToShorts *f, int16_t *to)
{
    const EtcEight v = ((etc_widen_eight(x) ^ f->flip) - f->zero) & f->keep;
    __builtin_memcpy(to, &v, sizeof v);
}

/* Converts every second of 16 bytes: the first of each pair if shift is 0, the second if it is
 * 8. */
ETC_INLINE void etc_picture_second(const uint8_t *x, int shift, const EtcToShorts *f, int16_t *to)
{
    EtcEight v;
    __builtin_memcpy(&v, x, sizeof v);
    v = ((((v >> shift) & 0xff) ^ f->flip) - f->zero) & f->keep;
    __builtin_memcpy(to, &v, sizeof v);
}

/* Converts n bytes, n from 1 to 7, that are 1 or 2 apart.  `end` is the end of what can be read of
 * x. */
ETC_INLINE void etc_picture_few(const uint8_t *x, const uint8_t *end, int64_t stride,
                                const EtcToShorts *f, int16_t *to, int64_t n)
{
    uint8_t some[16];
    if ((end - x) < (8 * stride)) {
        __builtin_memset(some, 0, sizeof some);
        etc_byte_copy(x, some, (stride * (n - 1)) + 1);
        x = some;
    }
    if (stride == 1) {
        etc_picture_eight(x, f, to);
    } else {
        etc_picture_second(x, 0, f, to);
    }
}

/* Converts n bytes, `stride` apart.  Up to seven zeros may follow, which belong to the border or
 * are overwritten later. */
ETC_INLINE void etc_picture_run(const uint8_t *x, const uint8_t *end, int64_t stride,
                                const EtcToShorts *f, int16_t *to, int64_t n)
{
    const int64_t most = ETC_PICTURE_SECOND ? 2 : 1;
    int64_t i = 0;
    if ((stride <= most) && (n < 8)) {
        etc_picture_few(x, end, stride, f, to, n);
        return;
    }
    for (; (stride == 1) && ((i + 8) <= n); i += 8) {
        etc_picture_eight(x + i, f, to + i);
    }
    if ((i > 0) && (i < n)) { /* the last eight may overlap those before */
        etc_picture_eight(x + n - 8, f, to + n - 8);
        i = n;
    }
    for (; (most == 2) && (stride == 2) && ((i + 8) < n); i += 8) { /* the 16th byte exists */
        etc_picture_second(x + (2 * i), 0, f, to + i);
    }
    if ((most == 2) && (stride == 2) && (i > 0)) { /* reads from the byte before the last eight */
        etc_picture_second(x + (2 * (n - 8)) - 1, 8, f, to + n - 8);
        return;
    }
    for (; i < n; i++) {
        to[i] = (int16_t)((int16_t)(x[i * stride] ^ f->flip) - f->zero);
    }
}

/* Makes a picture of zeros that of columns px, px + sw, ... of the padded rows iy, iy + sh, ... */
ETC_OUTLINE void etc_picture(const uint8_t *plane, const EtcConv *g, int64_t iy, int64_t px,
                             int64_t rows, const EtcInteger *q, int64_t pitch, int16_t *to)
{
    const int64_t ix = px - g->pw;
    const int64_t left = (ix < 0) ? etc_steps(g->sw - 1 - ix, g->sw) : 0;
    const int64_t above = (iy < 0) ? etc_steps(g->sh - 1 - iy, g->sh) : 0;
    const int64_t right = (ix < g->iw) ? etc_steps(g->iw - ix + g->sw - 1, g->sw) : 0;
    const int64_t under = (iy < g->ih) ? etc_steps(g->ih - iy + g->sh - 1, g->sh) : 0;
    const int64_t n = etc_min_i64(right, pitch) - left, last = etc_min_i64(under, rows);
    const EtcToShorts f = etc_to_shorts(q, n);
    const uint8_t *x = plane + ((iy + (above * g->sh)) * g->iw) + ix + (left * g->sw);
    for (int64_t r = above; (n > 0) && (r < last); r++) {
        etc_picture_run(x, plane + (g->ih * g->iw), g->sw, &f, to + (r * pitch) + left, n);
        x += g->sh * g->iw;
    }
}

ETC_INLINE void etc_picture_all(const uint8_t *plane, const EtcConv *g, int64_t oy, int64_t rows,
                                const EtcInteger *q, const EtcPictures *p)
{
    const int64_t under = rows + (((g->kh - 1) * g->dh) / g->sh);
    __builtin_memset(p->data, 0, (size_t)(g->sh * g->sw * p->size) * 2);
    for (int64_t py = 0; py < g->sh; py++) {
        for (int64_t px = 0; px < g->sw; px++) {
            etc_picture(plane, g, (oy * g->sh) + py - g->ph, px, under, q, p->pitch,
                        p->data + (((py * g->sw) + px) * p->size));
        }
    }
}

ETC_INLINE EtcS etc_load_shorts(const int16_t *p)
{
    EtcS v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}

/* Adds the products of a pair of taps to the sums of two vectors of outputs.  The taps read
 * data + offset[0] and data + offset[1]. */
ETC_INLINE void etc_depthwise_pair(const int16_t *data, const int64_t *offset, uint32_t w,
                                   EtcI sum[2])
{
    EtcI low, high;
    const EtcI wv = etc_splat_i32((int32_t)w);
    etc_mix(etc_load_shorts(data + offset[0]), etc_load_shorts(data + offset[1]), &low, &high);
    sum[0] = etc_dot_pairs(sum[0], low, wv);
    sum[1] = etc_dot_pairs(sum[1], high, wv);
}

/* Computes the sums of a run of n outputs.  Each pair of taps has two offsets and a word of two
 * weights. */
ETC_INLINE void etc_depthwise_sums(const int16_t *data, const int64_t *offset, const uint32_t *w,
                                   int pairs, int32_t *sums, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2 * ETC_LANES) {
        EtcI sum[2] = {etc_splat_i32(0), etc_splat_i32(0)};
        for (int t = 0; t < pairs; t++) {
            etc_depthwise_pair(data + i, offset + (2 * (int64_t)t), w[t], sum);
        }
        etc_unmix(sum[0], sum[1], sums + i);
    }
}

/* Does the same for nine taps, whose offsets and weights stay in registers. */
ETC_INLINE void etc_depthwise_nine(const int16_t *data, const int64_t *offset, const uint32_t *w,
                                   int32_t *sums, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2 * ETC_LANES) {
        EtcI sum[2] = {etc_splat_i32(0), etc_splat_i32(0)};
        ETC_UNROLL
        for (int t = 0; t < 5; t++) {
            etc_depthwise_pair(data + i, offset + (2 * (int64_t)t), w[t], sum);
        }
        etc_unmix(sum[0], sum[1], sums + i);
    }
}

/* The number of taps that are computed at a time.  With more taps, the sums are added up.  If the
 * number is odd, the last tap is paired with a tap of weight 0. */
#define ETC_TAPS 32

/* Sets the offsets of taps t .. t + count - 1 for the first output, followed by the first offset
 * again. */
ETC_INLINE void etc_tap_offsets(const EtcConv *g, const EtcPictures *p, int64_t t, int count,
                                int64_t *offset)
{
    for (int k = 0; k < count; k++) {
        const int64_t y = ((t + k) / g->kw) * g->dh, x = ((t + k) % g->kw) * g->dw;
        offset[k] = ((((y % g->sh) * g->sw) + (x % g->sw)) * p->size) + ((y / g->sh) * p->pitch) +
                    (x / g->sw);
    }
    offset[count] = offset[0];
}

ETC_INLINE void etc_tap_pairs(const int8_t *w, int count, uint32_t pair[(ETC_TAPS / 2) + 1])
{
    for (int k = 0; k < count; k += 2) {
        pair[k / 2] = (uint32_t)(uint16_t)w[k];
        if ((k + 1) < count) {
            pair[k / 2] |= (uint32_t)(uint16_t)w[k + 1] << 16;
        }
    }
}

/* Computes the sums of a run of n outputs of a channel.  `first` has the offsets of the first
 * ETC_TAPS taps. */
ETC_INLINE void etc_depthwise_channel(const int8_t *w, const EtcConv *g, const EtcPictures *p,
                                      const int64_t *first, int64_t n)
{
    const int64_t taps = g->kh * g->kw;
    int32_t more[2 * ETC_LANES];
    int64_t offset[ETC_TAPS + 1];
    uint32_t pair[(ETC_TAPS / 2) + 1];
    const int count = (int)etc_min_i64(taps, ETC_TAPS);
    etc_tap_pairs(w, count, pair);
    if (count == 9) {
        etc_depthwise_nine(p->data, first, pair, p->sums, n);
    } else {
        etc_depthwise_sums(p->data, first, pair, (count + 1) / 2, p->sums, n);
    }
    for (int64_t t = count; t < taps; t += ETC_TAPS) {
        const int left = (int)etc_min_i64(taps - t, ETC_TAPS);
        etc_tap_offsets(g, p, t, left, offset);
        etc_tap_pairs(w + t, left, pair);
        for (int64_t i = 0; i < n; i += 2 * ETC_LANES) {
            etc_depthwise_sums(p->data + i, offset, pair, (left + 1) / 2, more, 1);
            for (int64_t k = 0; k < (2 * ETC_LANES); k++) {
                p->sums[i + k] += more[k];
            }
        }
    }
}

/* 1: etc_padded_depthwise is the fastest for its kernels.  (With AVX2, runtime-lite gains too little by
 * it for its size.) */
#if !defined(ETC_PADS)
#define ETC_PADS ((ETC_TERMS == 4) || (ETC_DOTS_BOUNDED != 0))
#endif

/* Padded images of one channel, as bytes for etc_dot.  Four taps of a row of the kernel are a word.
 * Several images are written before the first is read, since a load waits for stores that it
 * overlaps in part. */
typedef struct EtcPadded {
    uint8_t *data;        /* [images][size] */
    int64_t before;       /* the bytes of `work` before the images: room for what `then` reads */
    int64_t images, size; /* the images that are written at a time; the bytes of one */
    int64_t pitch;        /* the bytes from row to row */
} EtcPadded;

#define ETC_PADDED_IMAGES 16

/* The most words of a channel's weights that are bounded, in whole vectors.  What is left of each word
 * is so many words behind it. */
#define ETC_TAP_WORDS 16

/* Sets the sizes.  `images` is not positive if not even one image fits into ETC_WORK_BYTES.  A vector
 * may read past the end of the last. */
ETC_INLINE void etc_padded_of(const EtcConv *g, const EtcInteger *q, EtcPadded *p)
{
    p->before = (etc_has_then(q) != 0) ? (g->oh * g->ow * 4) : 0;
    p->pitch = ((g->ow - 1) * g->sw) + g->kw;
    p->size = (((g->oh - 1) * g->sh) + g->kh) * p->pitch;
    p->images = etc_min_i64((ETC_WORK_BYTES - p->before - (3 * ETC_VEC)) / p->size, ETC_PADDED_IMAGES);
}

/* Writes the inside of n padded images; the borders are not changed. */
ETC_OUTLINE void etc_padded_images(const EtcPadded *p, const uint8_t *x, const EtcConv *g,
                                   uint8_t flip, int64_t n)
{
    const int64_t rows = etc_min_i64(g->ih, (p->size / p->pitch) - g->ph);
    const int64_t columns = etc_max_i64(etc_min_i64(g->iw, p->pitch - g->pw), 0);
    const int64_t pitch = p->pitch, iw = g->iw; /* y may be any bytes, so g is read before */
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from = x + (i * g->x_plane);
        uint8_t *to = p->data + (i * p->size) + (g->ph * pitch) + g->pw;
        for (int64_t r = 0; r < rows; r++) {
            etc_byte_flip(from + (r * iw), flip, to + (r * pitch), columns);
        }
    }
}

/* The outputs of one channel are computed from these. */
typedef struct EtcPaddedChannel {
    const uint8_t *data; /* the padded image */
    int64_t pitch, oh, ow;
    const uint32_t *w; /* [kh][words]; if they are bounded, what is left of word i is word ETC_TAP_WORDS + i */
    int32_t start;     /* sums start from it: the correction for the zero point */
    EtcBytesOf bytes;
    float *v; /* if it is not NULL, v is stored there, clamped to lo and hi, and y is not written */
    EtcF lo, hi;
} EtcPaddedChannel;

/* Loads the words of the input row that row k of the kernel reads. */
ETC_INLINE void etc_padded_line(const uint8_t *row, int words, int step, EtcI line[2])
{
    ETC_UNROLL
    for (int t = 0; t < words; t++) {
        line[t] = etc_slide(row + (4 * t), step);
    }
}

/* Computes all outputs of a channel, one vector of columns after the other.  `line` has the input
 * rows that an output reads; those that the next output reads, too, stay in registers. */
ETC_INLINE void etc_padded_channel(const EtcPaddedChannel *c, int kh, int words, int sh, int step,
                                   uint8_t *y)
{
    EtcI line[5][2];
    const EtcBytesOf f = c->bytes;
    const EtcI start = etc_splat_i32(c->start);
    const int64_t pitch = c->pitch, oh = c->oh, ow = c->ow;
    EtcI w[10];
    for (int k = 0; (ETC_REGISTERS == 32) && (k < (kh * words)); k++) {
        w[k] = etc_splat_i32((int32_t)c->w[k]); /* else words of memory become vectors where they are used */
    }
    for (int64_t i = 0; i < ow; i += ETC_LANES) {
        const uint8_t *x = c->data + (i * step);
        const int64_t n = etc_min_i64(ow - i, ETC_LANES);
        ETC_UNROLL
        for (int k = sh; k < kh; k++) {
            etc_padded_line(x + ((k - sh) * pitch), words, step, line[k]);
        }
        for (int64_t oy = 0; oy < oh; oy++) {
            EtcI sum = start;
            ETC_UNROLL
            for (int k = 0; k < kh; k++) {
                if ((k + sh) >= kh) {
                    etc_padded_line(x + (((oy * sh) + k) * pitch), words, step, line[k]);
                }
                ETC_UNROLL
                for (int t = 0; t < words; t++) {
                    line[k][t] = ((k + sh) < kh) ? line[(k + sh) % 5][t] : line[k][t];
                    const int at = (k * words) + t;
                    sum = etc_dot_of(4, sum, line[k][t],
                                     (ETC_REGISTERS == 32) ? w[at] : etc_splat_i32((int32_t)c->w[at]));
                    const uint32_t rest = (ETC_DOTS_BOUNDED != 0) ? c->w[ETC_TAP_WORDS + at] : 0;
                    if (rest != 0) {
                        sum = etc_dot_of(4, sum, line[k][t], etc_splat_i32((int32_t)rest));
                    }
                }
            }
            if ((ETC_HAS_THEN != 0) && (c->v != NULL)) {
                const EtcF v = (__builtin_convertvector(sum, EtcF) * f.scale) + f.bias;
                etc_store(c->v + (oy * ow) + i, n, etc_at_most(etc_at_least(v, c->lo), c->hi));
                continue;
            }
            const EtcI low = etc_integer_low(sum, f.scale, f.bias, f.inverse, f.lo, f.hi);
            etc_store_low(y + (oy * ow) + i, n, low + (int32_t)f.y_zero);
        }
    }
}

ETC_OUTLINE void etc_padded_three(const EtcPaddedChannel *c, uint8_t *y)
{
    etc_padded_channel(c, 3, 1, 1, 1, y);
}

ETC_OUTLINE void etc_padded_three_by_two(const EtcPaddedChannel *c, uint8_t *y)
{
    etc_padded_channel(c, 3, 1, 2, 2, y);
}

ETC_OUTLINE void etc_padded_five(const EtcPaddedChannel *c, uint8_t *y)
{
    etc_padded_channel(c, 5, 2, 1, 1, y);
}

ETC_OUTLINE void etc_padded_five_by_two(const EtcPaddedChannel *c, uint8_t *y)
{
    etc_padded_channel(c, 5, 2, 2, 2, y);
}

/* Computes all outputs of a channel. */
typedef void (*EtcPaddedKernel)(const EtcPaddedChannel *c, uint8_t *y);

/* Returns the code for the geometry's kernel, in which weights and input rows are in registers, or
 * NULL.  By bounded weights a kernel of 3x3 that moves by one column is slower than pictures. */
ETC_INLINE EtcPaddedKernel etc_padded_kernel(const EtcConv *g)
{
    if ((g->kh != g->kw) || (g->sh != g->sw) || (g->dh != 1) || (g->dw != 1) || (g->sw > 2)) {
        return NULL;
    }
    if (g->kw == 3) {
        if (g->sw == 1) {
            return (ETC_DOTS_BOUNDED != 0) ? NULL : etc_padded_three;
        }
        return etc_padded_three_by_two;
    }
    if (g->kw == 5) {
        return (g->sw == 1) ? etc_padded_five : etc_padded_five_by_two;
    }
    return NULL;
}

/* Returns whether etc_padded_depthwise can convolve all groups. */
ETC_INLINE int etc_is_padded(const EtcConv *g, const EtcInteger *q)
{
    EtcPadded p;
    if (((q->is_float != 0) && (etc_has_then(q) == 0)) || (etc_padded_kernel(g) == NULL) ||
        (g->oh > ETC_WORK_BYTES) || (g->ow > ETC_WORK_BYTES)) {
        return 0;
    }
    etc_padded_of(g, q, &p);
    return (p.images > 0) && (etc_are_numbers(q, 0, g->groups * g->oc) != 0);
}

/* Sets a word for each four taps of a row; taps that the kernel does not have get weight 0. */
ETC_INLINE void etc_padded_words(const int8_t *w, const EtcConv *g, uint32_t *word)
{
    for (int64_t y = 0; y < g->kh; y++) {
        for (int64_t x = 0; x < g->kw; x += 4) {
            uint32_t v = 0;
            for (int64_t k = x; k < etc_min_i64(x + 4, g->kw); k++) {
                v |= (uint32_t)(uint8_t)w[(y * g->kw) + k] << (8 * (k - x));
            }
            *word++ = v;
        }
    }
}

/* Does what etc_integer_depthwise does, for groups that etc_is_padded accepts. */
ETC_INLINE void etc_padded_depthwise(const uint8_t *x, const int8_t *w, uint8_t *y,
                                     const EtcConv *g, const EtcInteger *q, void *work)
{
    uint32_t word[(ETC_DOTS_BOUNDED != 0) ? (2 * ETC_TAP_WORDS) : 10];
    EtcPadded p;
    const EtcPaddedKernel kernel = etc_padded_kernel(g);
    const uint8_t flip = etc_x_flip(q);
    const uint32_t zero = (uint32_t)(etc_x_zero(q, 0) + etc_x_shift(q));
    const int64_t all = g->n * g->groups;
#if ETC_DOTS_BOUNDED == 1
    __builtin_memset(word, 0, sizeof word);
#endif
    etc_padded_of(g, q, &p);
    p.data = (uint8_t *)work + p.before;
    float *v = (p.before > 0) ? (float *)work : NULL;
    EtcPaddedChannel c = {NULL, p.pitch, g->oh, g->ow, word, 0, {{0}, {0}, {0}, {0}, {0}, 0},
                          v, etc_splat(q->lo), etc_splat(q->hi)};
    __builtin_memset(p.data, (uint8_t)etc_x_zero(q, 0) ^ flip, (size_t)(p.images * p.size));
    for (int64_t i = 0; i < all; i += p.images) {
        const int64_t n = etc_min_i64(p.images, all - i);
        etc_padded_images(&p, x + (i * g->x_plane), g, flip, n);
        for (int64_t k = 0; k < (n * g->oc); k++) {
            const int64_t at = (i * g->oc) + k, channel = at % (g->groups * g->oc);
            c.data = p.data + ((k / g->oc) * p.size);
            c.start = (int32_t)(0u - (zero * (uint32_t)q->sums[channel]));
            (void)etc_bytes_of(q, etc_x_scale(q, 0), channel, &c.bytes);
            etc_padded_words(w + (channel * g->kh * g->kw), g, word);
#if ETC_DOTS_BOUNDED == 1
            for (int b = 0; b < ETC_TAP_WORDS; b += ETC_LANES) {
                EtcI rest;
                const EtcI bounded = etc_bound(*(const EtcIAnywhere *)(const void *)&word[b], &rest);
                *(EtcIAnywhere *)(void *)&word[b] = bounded;
                *(EtcIAnywhere *)(void *)&word[ETC_TAP_WORDS + b] = rest;
            }
#endif
            kernel(&c, y + (at * g->y_plane));
            if (etc_has_then(q) != 0) {
                q->then(v, y + (at * g->y_plane), g->oh * g->ow);
            }
        }
    }
}

/* Convolves all images and groups; each group has one input channel. */
ETC_INLINE void etc_integer_depthwise(const uint8_t *x, const int8_t *w, void *y, const EtcConv *g,
                                      const EtcInteger *q, void *work)
{
    EtcPictures p = {(int16_t *)work, etc_picture_pitch(g), 0, NULL};
    int64_t offset[ETC_TAPS + 1], band = g->oh;
    if (ETC_PADS && (etc_is_padded(g, q) != 0)) {
        etc_padded_depthwise(x, w, (uint8_t *)y, g, q, work);
        return;
    }
    while ((band > 1) && (etc_picture_bytes(g, band) > ETC_WORK_BYTES)) {
        band = (band + 1) / 2;
    }
    for (int64_t oy = 0; oy < g->oh; oy += band) {
        const int64_t rows = etc_min_i64(band, g->oh - oy);
        p.size = etc_picture_size(g, rows);
        p.sums = (int32_t *)(void *)(p.data + (g->sh * g->sw * p.size));
        etc_tap_offsets(g, &p, 0, (int)etc_min_i64(g->kh * g->kw, ETC_TAPS), offset);
        for (int64_t i = 0; i < (g->n * g->groups); i++) {
            const int64_t channel = (i % g->groups) * g->oc;
            etc_picture_all(x + (i * g->x_plane), g, oy, rows, q, &p);
            for (int64_t c = 0; c < g->oc; c++) {
                etc_depthwise_channel(w + ((channel + c) * g->kh * g->kw), g, &p, offset,
                                      rows * p.pitch);
                const EtcSums done = {p.sums,
                                      rows,
                                      g->ow,
                                      p.pitch,
                                      channel + c,
                                      0,
                                      (((i * g->oc) + c) * g->y_plane) + (oy * g->ow),
                                      g->ow};
                etc_integer_short_rows(&done, p.sums, y, q);
            }
        }
    }
}

#endif
