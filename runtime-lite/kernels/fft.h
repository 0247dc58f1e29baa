/* fft.h -- discrete Fourier transforms of rows of floats.
 *
 * As many rows as a vector has lanes are transformed at once, one row per lane.  An element is a
 * vector of real parts and a vector of imaginary parts.
 *
 * - Each step has radix 8, 4, 2 or an odd radix.  It reads one buffer and writes the other, and the
 *   results end up in order (Stockham 1966).
 * - A length with a prime factor above 31 is computed as a convolution with a chirp.  The
 *   convolution's length is a power of 2 (Bluestein 1970).
 * - If the rows are few or long, a row is split into a matrix: its columns are transformed, each
 *   element is multiplied by a root of one, and its rows are transformed.  So all lanes are used
 *   (Gentleman and Sande 1966).
 * - A real row of even length is computed as a complex row of half the length, unless it is split.
 * - A backward transform is a forward transform with real and imaginary parts swapped.
 *
 * Roots of one are computed in double and rounded to float.
 */
#ifndef ETC_FFT_H
#define ETC_FFT_H

#include "runtime-lite/kernels/math64.h"

/* A transform along n of a tensor [outer][n][inner] without gaps.  Complex numbers are pairs of
 * floats.  The transform of a real row is determined by its first n / 2 + 1 results, the half;
 * only these are read or written.  Form 3 takes pairs of real numbers a, b to the transforms of
 * a + b and a - b, which is a transform along two axes, n and the pairs. */
typedef struct EtcFft {
    int64_t n, outer, inner;
    int32_t form; /* 0: complex to complex, 1: real numbers to a half, 2: a half to real numbers,
                   * 3: pairs of real numbers to pairs of complex ones, never backward */
    int32_t is_backward; /* the sign of the exponent is plus */
} EtcFft;

/* The plan for one length whose rows are transformed one per lane. */
typedef struct EtcFftLine {
    int64_t n, m; /* the length; the length of the steps: n, or a power of 2 with a chirp */
    int32_t count, radix[24];       /* the number of steps and the radix of each */
    float *root, *chirp, *spectrum; /* m roots; with a chirp: n elements of it, m of its spectrum */
} EtcFftLine;

typedef struct EtcFftPlan {
    int64_t floats;    /* the floats of working memory */
    int64_t lanes;     /* the vectors of a buffer */
    int32_t is_split;  /* a row is a matrix: line[0] for its columns, line[1] for its rows */
    int32_t is_packed; /* a real row is computed as a complex row of half the length */
    EtcFftLine line[2];
    float *a, *b, *turn, *matrix;
    double *low, *high; /* roots: two numbers per entry of low, three per entry of high */
    int64_t n_low, n_high;
    int32_t shift;
} EtcFftPlan;

/* -- plans ----------------------------------------------------------------------------------------
 * A row that is transformed in a lane has at most 4096 elements; the largest radix is 31. */

/* Sets the radices of the steps for length m.  Returns what is left of m: 1, unless m has a prime
 * factor above 31.  Few steps pass over the buffers less often, so 8 goes first; two steps of
 * radix 4 take the place of one of 8 and one of 2. */
ETC_INLINE int64_t etc_fft_radices(EtcFftLine *l, int64_t m)
{
    int64_t rest = m;
    l->m = m;
    l->count = 0;
    for (; ((rest % 8) == 0) && (((rest / 8) % 4) != 2); rest /= 8) {
        l->radix[l->count++] = 8;
    }
    for (; (rest % 4) == 0; rest /= 4) {
        l->radix[l->count++] = 4;
    }
    for (int32_t r = 2; r < 32; r++) {
        for (; etc_rest(rest, r) == 0; rest = etc_over(rest, r)) {
            l->radix[l->count++] = r;
        }
    }
    return rest;
}

/* Plans the steps for length n, or those of the convolution with a chirp if n has a prime factor
 * above 31. */
ETC_OUTLINE void etc_fft_line(EtcFftLine *l, int64_t n)
{
    l->n = n;
    if (etc_fft_radices(l, n) > 1) {
        int64_t m = 1;
        while (m < ((2 * n) - 1)) {
            m *= 2;
        }
        (void)etc_fft_radices(l, m);
    }
}

/* Returns the largest divisor of n that is at most 4096 and at most the square root of n. */
ETC_INLINE int64_t etc_fft_divisor(int64_t n)
{
    int64_t best = 1;
    for (int64_t i = 2; (i <= 4096) && ((i * i) <= n); i++) {
        best = (etc_rest(n, i) == 0) ? i : best;
    }
    return best;
}

/* Plans the transform of `rows` rows of n elements, but sets no pointers.  Returns 1, or 0 if no
 * kernel supports the length. */
ETC_OUTLINE int etc_fft_plan(EtcFftPlan *p, int64_t n, int64_t rows, int32_t form)
{
    const int64_t r = ((n >= 256) && ((rows < 8) || (n > 4096))) ? etc_fft_divisor(n) : 1;
    p->is_split = ((r >= 8) || ((n > 4096) && (r > 1))) ? 1 : 0;
    p->is_packed =
        ((p->is_split == 0) && ((form == 1) || (form == 2)) && ((n % 2) == 0)) ? 1 : 0;
    if ((n < 1) || (n > 16777216) || (etc_over(n, (p->is_split != 0) ? r : 1) > 4096)) {
        return 0;
    }
    etc_fft_line(&p->line[0], (p->is_split != 0) ? r : etc_over(n, 1 + p->is_packed));
    etc_fft_line(&p->line[1], (p->is_split != 0) ? etc_over(n, r) : 1);
    int64_t longest = n;
    for (int i = 0; i < 2; i++) {
        longest = etc_max_i64(longest, etc_max_i64(2 * p->line[i].n, p->line[i].m));
    }
    p->shift = 0;
    while ((((int64_t)1 << p->shift) << p->shift) < longest) {
        p->shift++;
    }
    p->n_low = (int64_t)1 << p->shift;
    p->n_high = (longest >> p->shift) + 1;
    p->lanes = 2 * (etc_max_i64(p->line[0].m, p->line[1].m) + 1);
    p->floats = 16 + (4 * p->n_low) + (6 * p->n_high) + (32 * p->lanes) + (n + 2) +
                ((p->is_split != 0) ? (2 * n) : 0);
    for (int i = 0; i < 2; i++) {
        p->floats += (2 * p->line[i].m) + (2 * (p->line[i].n + p->line[i].m));
    }
    return 1;
}

/* Returns the floats of working memory for `rows` rows, or 0 if no kernel supports the length.  If
 * `rows` is negative, the memory suffices for any number of rows. */
ETC_INLINE int64_t etc_fft_work(int64_t n, int64_t rows, int32_t form)
{
    EtcFftPlan p;
    int64_t most = 0;
    for (int i = 0; i < 2; i++) {
        if (etc_fft_plan(&p, n, (rows < 0) ? (1 + (7 * i)) : rows, form) == 0) {
            return 0;
        }
        most = etc_max_i64(most, p.floats);
    }
    return most;
}

/* -- roots of one ------------------------------------------------------------------------------ */

/* Computes the root e^(-2 pi i k / n), 0 <= k < n, as a product of two entries.  The third number
 * of an entry of `high` is the negated imaginary part, so that both parts are sums.  (gcc 12 fuses
 * the products of a difference that is computed beside a sum, even with contraction off.) */
ETC_INLINE void etc_fft_root(const EtcFftPlan *p, int64_t k, double *re, double *im)
{
    const double *h = p->high + (3 * (k >> p->shift)), *l = p->low + (2 * (k & (p->n_low - 1)));
    *re = (h[0] * l[0]) + (h[2] * l[1]);
    *im = (h[0] * l[1]) + (h[1] * l[0]);
}

ETC_OUTLINE void etc_fft_set_roots(const EtcFftPlan *p, int64_t n)
{
    const double step = -6.283185307179586 / (double)n;
    for (int64_t i = 0; i < p->n_low; i++) {
        p->low[2 * i] = etc_cos_f64(step * (double)i);
        p->low[(2 * i) + 1] = etc_sin_f64(step * (double)i);
    }
    for (int64_t i = 0; (i < p->n_high) && ((i * p->n_low) < n); i++) {
        p->high[3 * i] = etc_cos_f64(step * (double)(i * p->n_low));
        p->high[(3 * i) + 1] = etc_sin_f64(step * (double)(i * p->n_low));
        p->high[(3 * i) + 2] = -p->high[(3 * i) + 1];
    }
}

/* Writes the first `count` of the n roots of one as floats. */
ETC_OUTLINE void etc_fft_table(const EtcFftPlan *p, int64_t n, int64_t count, float *to)
{
    etc_fft_set_roots(p, n);
    for (int64_t i = 0; i < count; i++) {
        double re, im;
        etc_fft_root(p, i, &re, &im);
        to[2 * i] = (float)re;
        to[(2 * i) + 1] = (float)im;
    }
}

/* -- steps ----------------------------------------------------------------------------------------
 * A step reads x and writes y, which have m = radix * rest * s elements.  An element is a vector of
 * real parts and one of imaginary parts.  The real parts begin at float `re` of an element, which
 * is 0, or ETC_LANES for a backward transform. */

ETC_INLINE void etc_fft_put(float *y, EtcF re, EtcF im, EtcF c, EtcF s, int64_t at, int turns)
{
    etc_storeu(y + at, (turns != 0) ? ((re * c) - (im * s)) : re);
    etc_storeu(y + (ETC_LANES - at), (turns != 0) ? ((re * s) + (im * c)) : im);
}

ETC_INLINE void etc_fft_two(const float *x, float *y, const float *w, int64_t s, int64_t far,
                            int64_t re, int turns)
{
    const int64_t im = ETC_LANES - re, z = 2 * ETC_LANES;
    const EtcF c = etc_splat(w[0]), t = etc_splat(w[1]);
    for (int64_t q = 0; q < s; q++) {
        const float *a = x + (q * z), *b = a + (far * z);
        const EtcF ar = etc_loadu(a + re), ai = etc_loadu(a + im);
        const EtcF br = etc_loadu(b + re), bi = etc_loadu(b + im);
        etc_fft_put(y + (q * z), ar + br, ai + bi, c, t, re, 0);
        etc_fft_put(y + ((q + s) * z), ar - br, ai - bi, c, t, re, turns);
    }
}

/* Replaces four complex numbers by their transform.  v has real and imaginary parts in turn. */
ETC_INLINE void etc_fft_quarter(EtcF *v)
{
    const EtcF er = v[0] + v[4], ei = v[1] + v[5], fr = v[0] - v[4], fi = v[1] - v[5];
    const EtcF gr = v[2] + v[6], gi = v[3] + v[7], hr = v[3] - v[7], hi = v[6] - v[2];
    v[0] = er + gr;
    v[1] = ei + gi;
    v[2] = fr + hr;
    v[3] = fi + hi;
    v[4] = er - gr;
    v[5] = ei - gi;
    v[6] = fr - hr;
    v[7] = fi - hi;
}

ETC_INLINE void etc_fft_four(const float *x, float *y, const float *w, int64_t p, int64_t s,
                             int64_t far, int64_t re, int turns)
{
    const int64_t im = ETC_LANES - re, z = 2 * ETC_LANES;
    for (int64_t q = 0; q < s; q++) {
        EtcF v[8];
        ETC_UNROLL
        for (int32_t k = 0; k < 4; k++) {
            v[2 * k] = etc_loadu(x + ((q + (k * far)) * z) + re);
            v[(2 * k) + 1] = etc_loadu(x + ((q + (k * far)) * z) + im);
        }
        etc_fft_quarter(v);
        ETC_UNROLL
        for (int32_t j = 0; j < 4; j++) {
            const float *t = w + (2 * j * p * s);
            etc_fft_put(y + ((q + (j * s)) * z), v[2 * j], v[(2 * j) + 1], etc_splat(t[0]),
                        etc_splat(t[1]), re, (j > 0) && (turns != 0));
        }
    }
}

/* Computes four of eight results, so that the numbers fit into 16 registers.  The even results are
 * the transform of the sums of elements k and k + 4, the odd ones that of their differences times
 * the powers of e^(-pi i / 4).  Result j is multiplied by w[j * by]. */
ETC_INLINE void etc_fft_half_of_eight(const float *x, float *y, const float *w, int64_t by,
                                      int64_t s, int64_t far, int64_t re, int odd, int turns)
{
    const int64_t im = ETC_LANES - re, z = 2 * ETC_LANES;
    const EtcF root = etc_splat(0.70710678f);
    EtcF v[8];
    ETC_UNROLL
    for (int32_t k = 0; k < 4; k++) {
        const float *a = x + (k * far * z), *b = a + (4 * far * z);
        const EtcF ar = etc_loadu(a + re), ai = etc_loadu(a + im);
        const EtcF br = etc_loadu(b + re), bi = etc_loadu(b + im);
        v[2 * k] = (odd != 0) ? (ar - br) : (ar + br);
        v[(2 * k) + 1] = (odd != 0) ? (ai - bi) : (ai + bi);
    }
    if (odd != 0) {
        const EtcF r1 = v[2], r2 = v[4], r3 = v[6];
        v[2] = (r1 + v[3]) * root;
        v[3] = (v[3] - r1) * root;
        v[4] = v[5];
        v[5] = -r2;
        v[6] = (v[7] - r3) * root;
        v[7] = -(v[7] + r3) * root;
    }
    etc_fft_quarter(v);
    ETC_UNROLL
    for (int32_t i = 0; i < 4; i++) {
        const int64_t j = (2 * i) + odd;
        const float *t = w + (j * by);
        etc_fft_put(y + (j * s * z), v[2 * i], v[(2 * i) + 1], etc_splat(t[0]), etc_splat(t[1]), re,
                    (j > 0) && (turns != 0));
    }
}

ETC_INLINE void etc_fft_eight(const float *x, float *y, const float *w, int64_t p, int64_t s,
                              int64_t far, int64_t re, int turns)
{
    for (int64_t q = 0; q < s; q++) {
        const float *from = x + (2 * ETC_LANES * q);
        float *to = y + (2 * ETC_LANES * q);
        etc_fft_half_of_eight(from, to, w, 2 * p * s, s, far, re, 0, turns);
        etc_fft_half_of_eight(from, to, w, 2 * p * s, s, far, re, 1, turns);
    }
}

/* Does the part of a step of odd radix r.  Results j and r - j are computed from the sums and
 * differences of elements k and r - k. */
ETC_INLINE void etc_fft_odd(const float *x, float *y, const float *w, int64_t m, int64_t p,
                            int64_t s, int64_t re, int32_t r)
{
    const int64_t im = ETC_LANES - re, z = 2 * ETC_LANES, apart = etc_over(m, r), far = apart * z;
    const int32_t half = r / 2;
    EtcF sr[16], si[16], dr[16], di[16];
    for (int64_t q = 0; q < s; q++) {
        const float *from = x + (q * z);
        float *to = y + (q * z);
        const EtcF ar = etc_loadu(from + re), ai = etc_loadu(from + im);
        EtcF all_r = ar, all_i = ai;
        for (int32_t k = 1; k <= half; k++) {
            const float *b = from + (k * far), *c = from + ((r - k) * far);
            const EtcF br = etc_loadu(b + re), bi = etc_loadu(b + im);
            const EtcF cr = etc_loadu(c + re), ci = etc_loadu(c + im);
            sr[k] = br + cr;
            si[k] = bi + ci;
            dr[k] = br - cr;
            di[k] = bi - ci;
            all_r += sr[k];
            all_i += si[k];
        }
        etc_fft_put(to, all_r, all_i, ar, ai, re, 0);
        for (int32_t j = 1; j <= half; j++) {
            EtcF er = ar, ei = ai, ox = etc_splat(0.0f), oy = ox;
            for (int32_t k = 1; k <= half; k++) {
                const float *t = w + (2 * apart * ((j * k) % r));
                const EtcF c = etc_splat(t[0]), u = etc_splat(t[1]);
                er += sr[k] * c;
                ei += si[k] * c;
                ox += dr[k] * u;
                oy += di[k] * u;
            }
            const float *wj = w + (2 * j * p * s), *wr = w + (2 * (r - j) * p * s);
            etc_fft_put(to + (j * s * z), er - oy, ei + ox, etc_splat(wj[0]), etc_splat(wj[1]), re,
                        1);
            etc_fft_put(to + ((r - j) * s * z), er + oy, ei - ox, etc_splat(wr[0]),
                        etc_splat(wr[1]), re, 1);
        }
    }
}

ETC_OUTLINE void etc_fft_step(const float *x, float *y, const float *w, int64_t m, int64_t s,
                              int64_t re, int32_t r)
{
    const int64_t rest = etc_over(m, r * s), far = rest * s, z = 2 * ETC_LANES;
    for (int64_t p = 0; p < rest; p++) {
        const float *from = x + (p * s * z);
        float *to = y + (r * p * s * z);
        if ((r == 8) && (p == 0)) {
            etc_fft_eight(from, to, w, p, s, far, re, 0);
        } else if (r == 8) {
            etc_fft_eight(from, to, w, p, s, far, re, 1);
        } else if (r == 4) {
            if (p == 0) {
                etc_fft_four(from, to, w, p, s, far, re, 0);
            } else {
                etc_fft_four(from, to, w, p, s, far, re, 1);
            }
        } else if (r == 2) {
            etc_fft_two(from, to, w + (2 * p * s), s, far, re, 1);
        } else if (r == 3) {
            etc_fft_odd(from, to, w, m, p, s, re, 3);
        } else if (r == 5) {
            etc_fft_odd(from, to, w, m, p, s, re, 5);
        } else {
            etc_fft_odd(from, to, w, m, p, s, re, r);
        }
    }
}

/* Transforms the m elements at a.  b is a buffer of the same size.  Returns a or b, whichever has
 * the results. */
ETC_INLINE float *etc_fft_steps(const EtcFftLine *l, float *a, float *b, int64_t re)
{
    int64_t s = 1;
    float *x = a, *y = b;
    for (int32_t i = 0; i < l->count; i++) {
        float *const t = x;
        etc_fft_step(x, y, l->root, l->m, s, re, l->radix[i]);
        s *= l->radix[i];
        x = y;
        y = t;
    }
    return x;
}

/* Multiplies elements 0 .. n - 1 of x by the complex numbers w. */
ETC_OUTLINE void etc_fft_times(float *x, const float *w, int64_t n, int64_t re)
{
    for (int64_t i = 0; i < n; i++) {
        float *at = x + (2 * ETC_LANES * i);
        etc_fft_put(at, etc_loadu(at + re), etc_loadu(at + (ETC_LANES - re)),
                    etc_splat(w[2 * i]), etc_splat(w[(2 * i) + 1]), re, 1);
    }
}

/* Sets elements from .. to - 1 of x to 0. */
ETC_INLINE void etc_fft_clear(float *x, int64_t from, int64_t to)
{
    for (int64_t i = 2 * from; i < (2 * to); i++) {
        etc_storeu(x + (ETC_LANES * i), etc_splat(0.0f));
    }
}

/* Transforms the rows in the lanes of a; b is the second buffer.  Returns the buffer with the
 * results.  re: the place of the real part in an element, 0, or ETC_LANES for a backward
 * transform. */
ETC_OUTLINE float *etc_fft_lanes(const EtcFftLine *l, float *a, float *b, int64_t re)
{
    if (l->m == l->n) {
        return etc_fft_steps(l, a, b, re);
    }
    etc_fft_times(a, l->chirp, l->n, re);
    etc_fft_clear(a, l->n, l->m);
    float *y = etc_fft_steps(l, a, b, re);
    etc_fft_times(y, l->spectrum, l->m, re);
    y = etc_fft_steps(l, y, (y == a) ? b : a, ETC_LANES - re);
    etc_fft_times(y, l->chirp, l->n, re);
    return y;
}

/* Sets the chirp, e^(-pi i k^2 / n), and the spectrum, which is the transform of the chirp's
 * conjugate divided by m. */
ETC_OUTLINE void etc_fft_set_chirp(const EtcFftPlan *p, const EtcFftLine *l)
{
    const float scale = 1.0f / (float)l->m;
    etc_fft_set_roots(p, 2 * l->n);
    etc_fft_clear(p->a, 0, l->m);
    for (int64_t k = 0; k < l->n; k++) {
        double re, im;
        etc_fft_root(p, etc_rest(k * k, 2 * l->n), &re, &im);
        l->chirp[2 * k] = (float)re;
        l->chirp[(2 * k) + 1] = (float)im;
        for (int i = 0; i < 2; i++) {
            float *at = p->a + (2 * ETC_LANES * (((i == 0) || (k == 0)) ? k : (l->m - k)));
            etc_storeu(at, etc_splat((float)re));
            etc_storeu(at + ETC_LANES, etc_splat((float)-im));
        }
    }
    const float *y = etc_fft_steps(l, p->a, p->b, 0);
    for (int64_t k = 0; k < l->m; k++) {
        l->spectrum[2 * k] = y[2 * ETC_LANES * k] * scale;
        l->spectrum[(2 * k) + 1] = y[(2 * ETC_LANES * k) + ETC_LANES] * scale;
    }
}

/* -- lanes filled and emptied --------------------------------------------------------------------
 * Lane i of vector (k * pair) + c is x[at[i] + (k * step) + c], for n elements k of `pair` floats.
 */

/* Returns whether the elements of the lanes are adjacent in memory. */
ETC_INLINE int etc_fft_beside(const int64_t *at, int64_t pair)
{
    int is = 1;
    for (int i = 1; i < ETC_LANES; i++) {
        is = (at[i] == (at[0] + (i * pair))) ? is : 0;
    }
    return is;
}

/* Fills the lanes at `to` from x. */
ETC_OUTLINE void etc_fft_fill(const float *x, const int64_t *at, int64_t step, int64_t pair,
                              int64_t n, float *to)
{
    int64_t k = 0;
    for (; (step == pair) && ((k + ETC_LANES) <= (n * pair)); k += ETC_LANES) {
        EtcF t[ETC_LANES];
        ETC_UNROLL
        for (int i = 0; i < ETC_LANES; i++) {
            t[i] = etc_loadu(x + at[i] + k);
        }
        etc_transpose(t);
        ETC_UNROLL
        for (int i = 0; i < ETC_LANES; i++) {
            etc_storeu(to + ((k + i) * ETC_LANES), t[i]);
        }
    }
    for (; (step == 2) && (pair == 1) && ((k + ETC_LANES) < n); k += ETC_LANES) {
        EtcF t[ETC_LANES];
        ETC_UNROLL
        for (int i = 0; i < ETC_LANES; i++) {
            const float *from = x + at[i] + (2 * k);
            t[i] = etc_even(etc_loadu(from), etc_loadu(from + ETC_LANES));
        }
        etc_transpose(t);
        ETC_UNROLL
        for (int i = 0; i < ETC_LANES; i++) {
            etc_storeu(to + ((k + i) * ETC_LANES), t[i]);
        }
    }
    if ((step != pair) && (pair == 2) && (etc_fft_beside(at, 2) != 0)) {
        for (; k < (2 * n); k += 2) {
            const float *from = x + at[0] + ((k / 2) * step);
            const EtcF a = etc_loadu(from), b = etc_loadu(from + ETC_LANES);
            etc_storeu(to + (k * ETC_LANES), etc_even(a, b));
            etc_storeu(to + ((k + 1) * ETC_LANES), etc_odd(a, b));
        }
    }
    if ((step != pair) && (pair == 1) && (etc_fft_beside(at, 1) != 0)) {
        for (; k < n; k++) {
            etc_storeu(to + (k * ETC_LANES), etc_loadu(x + at[0] + (k * step)));
        }
    }
    for (; k < (n * pair); k++) {
        for (int i = 0; i < ETC_LANES; i++) {
            to[(k * ETC_LANES) + i] = x[at[i] + (etc_over(k, pair) * step) + etc_rest(k, pair)];
        }
    }
}

/* Loads ETC_LANES vectors and transposes them: t[i] is what lane i has. */
ETC_INLINE void etc_fft_turn(const float *from, EtcF *t)
{
    ETC_UNROLL
    for (int i = 0; i < ETC_LANES; i++) {
        t[i] = etc_loadu(from + (i * ETC_LANES));
    }
    etc_transpose(t);
}

/* Writes the pairs of v, `step` floats apart. */
ETC_INLINE void etc_fft_spread(EtcF v, float *y, int64_t step)
{
    float row[ETC_LANES];
    etc_storeu(row, v);
    for (int64_t k = 0; k < (ETC_LANES / 2); k++) {
        y[k * step] = row[2 * k];
        y[(k * step) + 1] = row[(2 * k) + 1];
    }
}

/* Writes n elements of `pair` floats, 2 or 4, whose lanes are beside each other in y. */
ETC_INLINE void etc_fft_beside_empty(const float *from, int64_t step, int pair, int64_t n, float *y)
{
    for (int64_t k = 0; k < n; k++) {
        EtcF v[4];
        ETC_UNROLL
        for (int i = 0; i < pair; i++) {
            v[i] = etc_loadu(from + (((k * pair) + i) * ETC_LANES));
        }
        etc_to_rows(v, pair);
        ETC_UNROLL
        for (int i = 0; i < pair; i++) {
            etc_storeu(y + (k * step) + (i * ETC_LANES), v[i]);
        }
    }
}

/* Writes the first `lanes` lanes of the n elements at `from` into y. */
ETC_OUTLINE void etc_fft_empty(const float *from, const int64_t *at, int64_t step, int64_t pair,
                               int64_t n, int64_t lanes, float *y)
{
    enum { RUN = 4 }; /* vectors of a row written at once, as rows may share sets of the cache */
    int64_t k = 0;
    for (; (step == pair) && ((k + (RUN * ETC_LANES)) <= (n * pair)); k += RUN * ETC_LANES) {
        EtcF t[RUN][ETC_LANES];
        for (int j = 0; j < RUN; j++) {
            etc_fft_turn(from + ((k + (j * ETC_LANES)) * ETC_LANES), t[j]);
        }
        for (int i = 0; i < lanes; i++) {
            for (int j = 0; j < RUN; j++) {
                etc_storeu(y + at[i] + k + (j * ETC_LANES), t[j][i]);
            }
        }
    }
    if ((step != pair) && (pair > 1) && (lanes == ETC_LANES) && (etc_fft_beside(at, pair) != 0)) {
        if (pair == 2) {
            etc_fft_beside_empty(from, step, 2, n, y + at[0]);
        } else {
            etc_fft_beside_empty(from, step, 4, n, y + at[0]);
        }
        k = n * pair;
    }
    for (; ((step == pair) || (pair == 2)) && ((k + ETC_LANES) <= (n * pair)); k += ETC_LANES) {
        EtcF t[ETC_LANES];
        etc_fft_turn(from + (k * ETC_LANES), t);
        for (int i = 0; i < lanes; i++) {
            if (step == pair) {
                etc_storeu(y + at[i] + k, t[i]);
            } else {
                etc_fft_spread(t[i], y + at[i] + ((k / 2) * step), step);
            }
        }
    }
    if ((step != pair) && (pair == 1) && (lanes == ETC_LANES) && (etc_fft_beside(at, 1) != 0)) {
        for (; k < n; k++) {
            etc_storeu(y + at[0] + (k * step), etc_loadu(from + (k * ETC_LANES)));
        }
    }
    for (; k < (n * pair); k++) {
        for (int i = 0; i < lanes; i++) {
            y[at[i] + (etc_over(k, pair) * step) + etc_rest(k, pair)] = from[(k * ETC_LANES) + i];
        }
    }
}

/* Converts n real elements at x to complex elements at y. */
ETC_OUTLINE void etc_fft_widen(const float *x, float *y, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        etc_storeu(y + (2 * ETC_LANES * k), etc_loadu(x + (ETC_LANES * k)));
        etc_storeu(y + (2 * ETC_LANES * k) + ETC_LANES, etc_splat(0.0f));
    }
}

/* Moves the real parts of n complex elements together, into the first half of their memory. */
ETC_INLINE void etc_fft_narrow(float *x, int64_t n)
{
    for (int64_t k = 1; k < n; k++) {
        etc_storeu(x + (ETC_LANES * k), etc_loadu(x + (2 * ETC_LANES * k)));
    }
}

/* -- real rows --------------------------------------------------------------------------------- */

/* Computes even = (a + conj(b)) * by and odd = (a - conj(b)) * by from two elements. */
ETC_INLINE void etc_fft_halves(const float *a, const float *b, EtcF by, EtcF *even, EtcF *odd)
{
    const EtcF ar = etc_loadu(a), ai = etc_loadu(a + ETC_LANES);
    const EtcF br = etc_loadu(b), bi = etc_loadu(b + ETC_LANES);
    even[0] = (ar + br) * by;
    even[1] = (ai - bi) * by;
    odd[0] = (ar - br) * by;
    odd[1] = (ai + bi) * by;
}

/* Converts z, the transform of 2 m real numbers taken as m complex ones, to the half of their real
 * transform: m + 1 results at y, k and m - k at once.  `sign` multiplies the imaginary parts. */
ETC_OUTLINE void etc_fft_unpack(const float *z, float *y, const float *turn, int64_t m, float sign)
{
    const EtcF by = etc_splat(0.5f), is = etc_splat(sign);
    for (int64_t k = 0; k <= (m - k); k++) {
        EtcF e[2], o[2];
        const EtcF c = etc_splat(turn[2 * k]), s = etc_splat(turn[(2 * k) + 1]);
        const float *a = z + (2 * ETC_LANES * k);
        const float *b = (k > 0) ? (z + (2 * ETC_LANES * (m - k))) : z;
        float *to = y + (2 * ETC_LANES * k), *far = y + (2 * ETC_LANES * (m - k));
        etc_fft_halves(a, b, by, e, o);
        const EtcF tr = (o[1] * c) + (o[0] * s), ti = (o[1] * s) - (o[0] * c); /* -i w o */
        etc_storeu(far, e[0] - tr);
        etc_storeu(far + ETC_LANES, (ti - e[1]) * is);
        etc_storeu(to, e[0] + tr);
        etc_storeu(to + ETC_LANES, (e[1] + ti) * is);
    }
}

/* Converts x, the half of a transform of 2 m real numbers, to m complex numbers z, whose backward
 * transform is the real numbers in pairs.  `sign` multiplies the imaginary parts of x. */
ETC_OUTLINE void etc_fft_pack(float *x, float *z, const float *turn, int64_t m, float sign)
{
    const EtcF one = etc_splat(1.0f), is = etc_splat(sign);
    etc_storeu(x + ETC_LANES, etc_splat(0.0f));
    etc_storeu(x + (2 * ETC_LANES * m) + ETC_LANES, etc_splat(0.0f));
    for (int64_t k = 0; k < m; k++) {
        EtcF e[2], o[2];
        const EtcF c = etc_splat(turn[2 * k]), s = -etc_splat(turn[(2 * k) + 1]);
        etc_fft_halves(x + (2 * ETC_LANES * k), x + (2 * ETC_LANES * (m - k)), one, e, o);
        e[1] *= is;
        o[1] *= is;
        float *to = z + (2 * ETC_LANES * k); /* becomes e + i w o */
        etc_storeu(to, e[0] - ((o[0] * s) + (o[1] * c)));
        etc_storeu(to + ETC_LANES, e[1] + ((o[0] * c) - (o[1] * s)));
    }
}

/* Completes a half x to all n results, at y.  Each part of an element has `lanes` floats; elements
 * are `step` floats apart in x and `to` floats apart in y.  `sign` multiplies the imaginary
 * parts. */
ETC_OUTLINE void etc_fft_mirror(const float *x, int64_t step, float *y, int64_t to, int64_t n,
                               float sign, int64_t lanes)
{
    for (int64_t k = 0; k < n; k++) {
        const int is_past = k > (n / 2);
        const int64_t of = is_past ? (n - k) : k;
        const float by = ((k == 0) || ((2 * k) == n)) ? 0.0f : (is_past ? -sign : sign);
        for (int64_t i = 0; i < lanes; i++) {
            y[(k * to) + i] = x[(of * step) + i];
            y[(k * to) + lanes + i] = (by < 0.0f)   ? -x[(of * step) + lanes + i]
                                      : (by > 0.0f) ? x[(of * step) + lanes + i]
                                                    : 0.0f;
        }
    }
}

/* -- pairs of real rows ------------------------------------------------------------------------ */

/* Converts n elements a, b at x to a + b, a - b. */
ETC_INLINE void etc_fft_sums(float *x, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        float *at = x + (2 * ETC_LANES * k);
        const EtcF a = etc_loadu(at), b = etc_loadu(at + ETC_LANES);
        etc_storeu(at, a + b);
        etc_storeu(at + ETC_LANES, a - b);
    }
}

/* Writes elements from .. to - 1 of the transforms of s and d at y, four vectors each.  z is the
 * transform of s + i d, which has n elements. */
ETC_OUTLINE void etc_fft_apart(const float *z, float *y, int64_t n, int64_t from, int64_t to)
{
    const EtcF by = etc_splat(0.5f);
    for (int64_t k = from; k < to; k++) {
        const float *a = z + (2 * ETC_LANES * k), *b = z + (2 * ETC_LANES * ((k > 0) ? (n - k) : 0));
        float *at = y + (4 * ETC_LANES * (k - from));
        EtcF s[2], d[2];
        etc_fft_halves(a, b, by, s, d);
        etc_storeu(at, s[0]);
        etc_storeu(at + ETC_LANES, s[1]);
        etc_storeu(at + (2 * ETC_LANES), d[1]);
        etc_storeu(at + (3 * ETC_LANES), -d[0]);
    }
}

/* Does the same for one row, whose z is in the first two of the four floats of each element of y.
 * Elements are `step` floats apart. */
ETC_INLINE void etc_fft_apart_row(float *y, int64_t n, int64_t step)
{
    for (int64_t k = 0; k <= (n - k); k++) {
        const int64_t far = (k > 0) ? (n - k) : 0;
        float *a = y + (k * step), *b = y + (far * step);
        const float s0 = (a[0] + b[0]) * 0.5f, s1 = (a[1] - b[1]) * 0.5f;
        const float d0 = (a[1] + b[1]) * 0.5f, d1 = (a[0] - b[0]) * 0.5f;
        b[0] = s0;
        b[1] = -s1;
        b[2] = d0;
        b[3] = d1;
        a[0] = s0;
        a[1] = s1;
        a[2] = d0;
        a[3] = -d1;
    }
}

/* -- rows -------------------------------------------------------------------------------------- */

/* Sets at[i] to the place of row `row` + i in a tensor whose rows have n elements of `pair` floats.
 * Lanes past the last row get the last row's place. */
ETC_OUTLINE void etc_fft_places(const EtcFft *g, int64_t row, int64_t n, int64_t pair, int64_t *at)
{
    for (int i = 0; i < ETC_LANES; i++) {
        const int64_t r = etc_min_i64(row + i, (g->outer * g->inner) - 1);
        at[i] = ((etc_over(r, g->inner) * n * g->inner) + etc_rest(r, g->inner)) * pair;
    }
}

/* Transforms rows row .. row + ETC_LANES - 1 of the tensor, one per lane. */
ETC_INLINE void etc_fft_group(const float *x, float *y, const EtcFft *g, const EtcFftPlan *p,
                              int64_t row)
{
    const int64_t half = (g->n / 2) + 1, x_pair = (g->form == 1) ? 1 : 2,
                  y_pair = (g->form == 3) ? 4 : ((g->form == 2) ? 1 : 2),
                  x_n = (g->form == 2) ? half : g->n,
                  y_n = (g->form == 1) ? half : g->n;
    const int64_t lanes = etc_min_i64(ETC_LANES, (g->outer * g->inner) - row);
    const int64_t back = ((g->form == 0) ? (g->is_backward != 0) : (g->form == 2)) ? ETC_LANES : 0;
    const float sign = ((g->form != 0) && ((g->is_backward != 0) != (g->form == 2))) ? -1.0f : 1.0f;
    int64_t at[ETC_LANES];
    float *a = p->a, *b = p->b;
    etc_fft_places(g, row, x_n, x_pair, at);
    etc_fft_fill(x, at, g->inner * x_pair, x_pair, x_n, a);
    if ((g->form == 1) && (p->is_packed == 0)) {
        etc_fft_widen(a, b, g->n);
        a = p->b;
        b = p->a;
    } else if (g->form == 2) {
        if (p->is_packed != 0) {
            etc_fft_pack(a, b, p->turn, g->n / 2, sign);
        } else {
            etc_fft_mirror(a, 2 * ETC_LANES, b, 2 * ETC_LANES, g->n, sign, ETC_LANES);
        }
        a = p->b;
        b = p->a;
    } else if (g->form == 3) {
        etc_fft_sums(a, g->n);
    } else {
        /* the elements need no conversion */
    }
    float *z = etc_fft_lanes(&p->line[0], a, b, back);
    if ((g->form == 1) && (p->is_packed != 0)) {
        float *to = (z == a) ? b : a;
        etc_fft_unpack(z, to, p->turn, g->n / 2, sign);
        z = to;
    } else if ((g->form == 1) && (sign < 0.0f)) {
        for (int64_t k = 0; k < half; k++) {
            float *im = z + (2 * ETC_LANES * k) + ETC_LANES;
            etc_storeu(im, -etc_loadu(im));
        }
    } else if ((g->form == 2) && (p->is_packed == 0)) {
        etc_fft_narrow(z, g->n);
    } else {
        /* the results need no conversion */
    }
    etc_fft_places(g, row, y_n, y_pair, at);
    if (g->form != 3) {
        etc_fft_empty(z, at, g->inner * y_pair, y_pair, y_n, lanes, y);
        return;
    }
    const int64_t part = (g->n + 1) / 2; /* of the results, which the other buffer has room for */
    for (int64_t k = 0; k < g->n; k += part) {
        const int64_t end = etc_min_i64(k + part, g->n);
        float *to = (z == p->a) ? p->b : p->a;
        etc_fft_apart(z, to, g->n, k, end);
        etc_fft_empty(to, at, g->inner * 4, 4, end - k, lanes, y + (k * g->inner * 4));
    }
}

/* -- a row of its own -------------------------------------------------------------------------- */

/* Multiplies element k of the column in lane i by the root of index k (column + i). */
ETC_INLINE void etc_fft_turns(float *z, const EtcFftPlan *p, int64_t column, int64_t re)
{
    for (int64_t k = 1; k < p->line[0].n; k++) {
        float c[ETC_LANES], s[ETC_LANES];
        for (int i = 0; i < ETC_LANES; i++) {
            double cd, sd;
            etc_fft_root(p, k * etc_min_i64(column + i, p->line[1].n - 1), &cd, &sd);
            c[i] = (float)cd;
            s[i] = (float)sd;
        }
        float *at = z + (2 * ETC_LANES * k);
        etc_fft_put(at, etc_loadu(at + re), etc_loadu(at + (ETC_LANES - re)), etc_loadu(c),
                    etc_loadu(s), re, 1);
    }
}

/* Sets the places of lines first, first + 1, ... of `count`, which are `apart` floats apart.  Lanes
 * past the last line get its place. */
ETC_OUTLINE void etc_fft_line_places(int64_t first, int64_t count, int64_t apart, int64_t *at)
{
    for (int i = 0; i < ETC_LANES; i++) {
        at[i] = etc_min_i64(first + i, count - 1) * apart;
    }
}

/* Transforms the columns of x, whose elements have `pair` floats, multiplies the results by their
 * roots, and writes them into p->matrix. */
ETC_INLINE void etc_fft_columns(const float *x, int64_t step, int64_t pair, const EtcFftPlan *p,
                                int64_t re)
{
    const int64_t n1 = p->line[0].n, n2 = p->line[1].n;
    int64_t at[ETC_LANES];
    for (int64_t c = 0; c < n2; c += ETC_LANES) {
        float *a = p->a, *b = p->b;
        etc_fft_line_places(c, n2, step, at);
        etc_fft_fill(x, at, n2 * step, pair, n1, a);
        if (pair == 1) {
            etc_fft_widen(a, b, n1);
            a = p->b;
            b = p->a;
        }
        float *z = etc_fft_lanes(&p->line[0], a, b, re);
        etc_fft_turns(z, p, c, re);
        etc_fft_line_places(c, n2, 2, at);
        etc_fft_empty(z, at, 2 * n2, 2, n1, etc_min_i64(ETC_LANES, n2 - c), p->matrix);
    }
}

/* Transforms the rows of p->matrix and writes the first `count` results into y, `step` floats
 * apart. */
ETC_INLINE void etc_fft_rows(float *y, int64_t step, int64_t pair, int64_t count,
                             const EtcFftPlan *p, int64_t re)
{
    const int64_t n1 = p->line[0].n, n2 = p->line[1].n;
    int64_t at[ETC_LANES];
    for (int64_t r = 0; r < n1; r += ETC_LANES) {
        const int64_t lanes = etc_min_i64(ETC_LANES, n1 - r);
        etc_fft_line_places(r, n1, 2 * n2, at);
        etc_fft_fill(p->matrix, at, 2, 2, n2, p->a);
        float *z = etc_fft_lanes(&p->line[1], p->a, p->b, re);
        if (pair == 1) {
            etc_fft_narrow(z, n2);
        }
        etc_fft_line_places(r, n1, step, at);
        for (int64_t k = 0, many = 1; many > 0; k += many) { /* many: elements with equal `kept` */
            const int64_t kept = etc_min_i64(lanes, count - r - (k * n1));
            many = (kept < lanes) ? 1 : (etc_over(count - r - lanes, n1) + 1 - k);
            many = ((kept <= 0) || (k >= n2)) ? 0 : many;
            etc_fft_empty(z + (k * pair * ETC_LANES), at, n1 * step, pair, many, kept,
                          y + (k * n1 * step));
        }
    }
}

/* Transforms one row of the tensor, which is split into a matrix. */
ETC_INLINE void etc_fft_one(const float *x, float *y, const EtcFft *g, const EtcFftPlan *p,
                            int64_t row)
{
    const int64_t half = (g->n / 2) + 1, x_pair = (g->form == 1) ? 1 : 2,
                  y_pair = (g->form == 3) ? 4 : ((g->form == 2) ? 1 : 2),
                  x_n = (g->form == 2) ? half : g->n,
                  y_n = (g->form == 1) ? half : g->n;
    const int64_t re = (g->is_backward != 0) ? ETC_LANES : 0;
    const int64_t block = etc_over(row, g->inner) * g->inner, column = etc_rest(row, g->inner);
    const float *from = x + (((block * x_n) + column) * x_pair);
    float *to = y + (((block * y_n) + column) * y_pair);
    if (g->form == 2) {
        etc_fft_mirror(from, 2 * g->inner, p->matrix, 2, g->n, 1.0f, 1);
        etc_fft_columns(p->matrix, 2, 2, p, re);
    } else if (g->form == 3) {
        for (int64_t k = 0; k < g->n; k++) {
            const float a = from[2 * k * g->inner], b = from[(2 * k * g->inner) + 1];
            p->matrix[2 * k] = a + b;
            p->matrix[(2 * k) + 1] = a - b;
        }
        etc_fft_columns(p->matrix, 2, 2, p, re);
    } else {
        etc_fft_columns(from, g->inner * x_pair, x_pair, p, re);
    }
    etc_fft_rows(to, g->inner * y_pair, etc_min_i64(y_pair, 2), y_n, p, re);
    if (g->form == 3) {
        etc_fft_apart_row(to, g->n, g->inner * 4);
    }
}

/* -- whole tensors ----------------------------------------------------------------------------- */

/* Returns the start of *work, and moves *work n floats on. */
ETC_INLINE float *etc_fft_take(float **work, int64_t n)
{
    float *at = *work;
    *work += n;
    return at;
}

/* Divides `work` among the plan's arrays and fills the tables. */
ETC_INLINE void etc_fft_begin(EtcFftPlan *p, const EtcFft *g, float *work)
{
    float *at = work + (((64u - ((uintptr_t)work % 64u)) % 64u) / 4u);
    p->a = etc_fft_take(&at, 16 * p->lanes);
    p->b = etc_fft_take(&at, 16 * p->lanes);
    p->low = (double *)(void *)etc_fft_take(&at, 4 * p->n_low);
    p->high = (double *)(void *)etc_fft_take(&at, 6 * p->n_high);
    p->turn = etc_fft_take(&at, g->n + 2);
    p->matrix = etc_fft_take(&at, (p->is_split != 0) ? (2 * g->n) : 0);
    for (int i = 0; i < 2; i++) {
        EtcFftLine *l = &p->line[i];
        l->root = etc_fft_take(&at, 2 * l->m);
        l->chirp = etc_fft_take(&at, 2 * l->n);
        l->spectrum = etc_fft_take(&at, 2 * l->m);
        etc_fft_table(p, l->m, l->m, l->root);
        if (l->m != l->n) {
            etc_fft_set_chirp(p, l);
        }
    }
    if (p->is_packed != 0) {
        etc_fft_table(p, g->n, (g->n / 2) + 1, p->turn);
    }
    if (p->is_split != 0) {
        etc_fft_set_roots(p, g->n);
    }
}

/* Transforms x into y, which must not overlap.  `work` has as many floats as etc_fft_work
 * returns. */
ETC_OUTLINE void etc_fft_f32(const float *x, float *y, float *work, const EtcFft *g)
{
    EtcFftPlan p;
    const int64_t rows = g->outer * g->inner;
    if ((rows < 1) || (etc_fft_plan(&p, g->n, rows, g->form) == 0)) {
        return;
    }
    etc_fft_begin(&p, g, work);
    for (int64_t row = 0; row < rows; row += (p.is_split != 0) ? 1 : ETC_LANES) {
        if (p.is_split != 0) {
            etc_fft_one(x, y, g, &p, row);
        } else {
            etc_fft_group(x, y, g, &p, row);
        }
    }
}

#endif
