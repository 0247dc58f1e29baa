/* integer_panel.h -- packing of pixels of 8-bit images into the columns of a panel. */
#ifndef ETC_INTEGER_PANEL_H
#define ETC_INTEGER_PANEL_H

#include "runtime-lite/kernels/conv.h"
#include "runtime-lite/kernels/integer.h"

/* The width of a tile in vectors; the rows of a tile that is one, two, three, or
 * ETC_INTEGER_NV vectors wide.  (With ETC_DOT_LANES, a vector of each row's weights needs a
 * register, too.) */
#define ETC_INTEGER_NV ((ETC_REGISTERS == 32) ? 4 : 2)
#define ETC_INTEGER_MR1 ((ETC_REGISTERS == 32) ? 12 : 8)
#define ETC_INTEGER_MR2 ((ETC_REGISTERS == 32) ? ((ETC_DOT_LANES != 0) ? 8 : 12) : 4)
#define ETC_INTEGER_MR3 ((ETC_DOT_LANES != 0) ? 4 : 8)
#define ETC_INTEGER_MR (((ETC_REGISTERS == 32) && (ETC_DOT_LANES == 0)) ? 6 : 4)

/* LEAST: the pixels of a panel with many terms.  PANEL: the most pixels of a panel with few terms.
 * RUNS: the most image rows that the pixels of a panel come from.  FEW: the bytes of a panel with
 * few terms.  ROOM: the bytes of `work` that a panel may use.  HALF: the bytes of `work` for the
 * panel if not all terms fit; the sums use the rest. */
#define ETC_INTEGER_LEAST ((ETC_VEC == 64) ? 64 : 48)
#define ETC_INTEGER_PANEL 256
#define ETC_INTEGER_RUNS 64
#define ETC_INTEGER_FEW (ETC_WORK_BYTES / 4)
#define ETC_INTEGER_ROOM (ETC_WORK_BYTES / 8 * 7)
#define ETC_INTEGER_HALF (ETC_WORK_BYTES / 2)

ETC_INLINE EtcU etc_line_lanes(const uint8_t *p)
{
    return (EtcU)etc_widen(etc_load_bytes(p, ETC_LANES));
}

/* Interleaves ETC_TERMS lines of bytes: each word of the result has one pixel's terms.  `flip`
 * flips the bits of each byte. */
ETC_INLINE void etc_interleave(const uint8_t *const line[4], int64_t width, uint8_t flip,
                               uint32_t *to)
{
    int64_t from = 0;
    for (; (ETC_TERMS == 4) && ((from + 16) <= width); from += 16) {
        if (etc_weave(line, from, flip, to) == 0) {
            break;
        }
    }
    for (int64_t i = from; i < width; i += ETC_LANES) {
        EtcU v = etc_line_lanes(line[0] + i) | (etc_line_lanes(line[1] + i) << (32 / ETC_TERMS));
        if (ETC_TERMS == 4) {
            v |= (etc_line_lanes(line[2] + i) << 16) | (etc_line_lanes(line[3] + i) << 24);
        }
        v ^= (uint32_t)flip * ((ETC_TERMS == 4) ? 0x01010101u : 0x00010001u);
        *(EtcIAnywhere *)(void *)(to + i) = (EtcI)v;
    }
}

/* The place of a term: the plane of its channel, and its row and column in the kernel. */
typedef struct EtcTap {
    const uint8_t *plane;
    int64_t ky, kx;
} EtcTap;

ETC_INLINE void etc_tap_next(EtcTap *t, const EtcConv *g)
{
    t->kx++;
    if (t->kx == g->kw) {
        t->kx = 0;
        t->ky++;
    }
    if (t->ky == g->kh) {
        t->ky = 0;
        t->plane += g->x_plane;
    }
}

/* Copies one term of the pixels in the runs. */
ETC_INLINE void etc_byte_taps(const EtcTap *t, const EtcConv *g, const EtcRun *run, int n_runs,
                              uint8_t pad, uint8_t *line)
{
    for (int r = 0; r < n_runs; r++) {
        const int64_t iy = run[r].iy + (t->ky * g->dh);
        const int is_inside = (iy >= 0) && (iy < g->ih);
        etc_byte_line(is_inside ? (t->plane + (iy * g->iw)) : t->plane, is_inside ? g->iw : 0,
                      run[r].ix + (t->kx * g->dw), g->sw, pad, line + run[r].column, run[r].n);
    }
}

/* Copies one term of n pixels, which begin at the first run, if x and y have equally wide rows and
 * the stride is 1.  Then the pixels are one run of x, apart from columns outside its rows. */
ETC_INLINE void etc_byte_shift(const EtcTap *t, const EtcConv *g, const EtcRun *run, int64_t n,
                               uint8_t pad, uint8_t *line)
{
    const int64_t dx = (t->kx * g->dw) - g->pw;
    const int64_t at = ((run->iy + (t->ky * g->dh)) * g->iw) + run->ix + (t->kx * g->dw);
    const int64_t from = etc_min_i64(etc_max_i64(-at, 0), n);
    const int64_t to = etc_min_i64(etc_max_i64((g->ih * g->iw) - at, from), n);
    etc_byte_fill(line, pad, from);
    etc_byte_copy(t->plane + at + from, line + from, to - from);
    etc_byte_fill(line + to, pad, n - to);
    const int64_t first = etc_max_i64((dx < 0) ? 0 : (g->iw - dx), 0);
    const int64_t last = etc_min_i64((dx < 0) ? -dx : g->iw, g->iw);
    for (int64_t column = first; column < last; column++) {
        const int64_t i = column - (run->ix + g->pw);
        for (int64_t c = (i < 0) ? (i + g->iw) : i; c < n; c += g->iw) {
            line[c] = pad;
        }
    }
}

/* Packs terms k0 .. k0 + n_k - 1 of pixels j .. j + n - 1 into the panel. */
ETC_OUTLINE void etc_integer_pack(const uint8_t *x, const EtcConv *g, int64_t k0, int64_t n_k,
                                  int64_t j, int64_t n, const EtcInteger *q, uint32_t *panel)
{
    uint8_t bytes[4][ETC_INTEGER_PANEL];
    const uint8_t *line[4];
    EtcRun run[ETC_INTEGER_RUNS];
    const int64_t width = ((n + ETC_LANES - 1) / ETC_LANES) * ETC_LANES;
    const uint8_t pad = (uint8_t)etc_x_zero(q, 0), flip = etc_x_flip(q);
    const int is_1x1 = ((g->kh * g->kw) == 1) && (g->sh == 1) && (g->sw == 1) && (g->ph == 0) &&
                       (g->pw == 0);
    const int is_even = (g->sh == 1) && (g->sw == 1) && (g->ow == g->iw);
    const int n_runs = is_1x1 ? 0 : etc_runs(g, j, n, width, run);
    for (int t = 0; t < ETC_TERMS; t++) { /* zeros fill up the last vector */
        __builtin_memset(bytes[t] + width - ETC_LANES, 0, ETC_LANES);
    }
    EtcTap tap = {x + ((k0 / (g->kw * g->kh)) * g->x_plane), (k0 / g->kw) % g->kh, k0 % g->kw};
    for (int64_t k = 0; k < n_k; k += ETC_TERMS) {
        for (int64_t t = 0; t < ETC_TERMS; t++) {
            line[t] = bytes[t];
            if ((k + t) >= n_k) { /* w is 0 there */
                __builtin_memset(bytes[t], 0, (size_t)width);
                continue;
            }
            if (is_1x1 && (n == width)) {
                line[t] = tap.plane + j;
            } else if (is_1x1) {
                etc_byte_copy(tap.plane + j, bytes[t], n);
            } else if (is_even) {
                etc_byte_shift(&tap, g, run, n, pad, bytes[t]);
            } else {
                etc_byte_taps(&tap, g, run, n_runs, pad, bytes[t]);
            }
            etc_tap_next(&tap, g);
        }
        etc_interleave(line, width, flip, panel + ((k / ETC_TERMS) * width));
    }
}

#endif
