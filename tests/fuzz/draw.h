/* draw.h -- the choices of a fuzz target.  They are made from the bytes of its input, which is
 * followed by zeros, or at random, if a mutator has only a seed.  The file also has numbers that
 * are likely to find bugs. */
#ifndef TESTS_FUZZ_DRAW_H
#define TESTS_FUZZ_DRAW_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Draw {
    const uint8_t *at;
    size_t left;
    uint64_t seed; /* 0: bytes alone */
} Draw;

static inline unsigned draw_byte(Draw *d)
{
    if (d->left) {
        d->left--;
        return *d->at++;
    }
    if (!d->seed)
        return 0;
    d->seed = d->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(d->seed >> 56);
}

/* Below n, which is from 1 to 65536; of n up to 256 one byte decides. */
static inline unsigned draw_below(Draw *d, size_t n)
{
    unsigned v = draw_byte(d);
    if (n > 256)
        v |= draw_byte(d) << 8;
    return v % (unsigned)n;
}

#define DRAW_FROM(d, array) ((array)[draw_below((d), sizeof(array) / sizeof *(array))])

/* Mostly a power of two or next to one, where something wraps or ends, else up to 24 bits. */
static inline int64_t draw_int(Draw *d)
{
    unsigned how = draw_byte(d);
    uint64_t v = (uint64_t)draw_byte(d) << 16;
    if (how < 200)
        v = ((uint64_t)1 << draw_below(d, how & 2 ? 8 : 64)) + draw_below(d, 3) - 1;
    else
        v |= draw_below(d, 65536);
    return (int64_t)(how & 1 ? 0 - v : v);
}

static inline double draw_double(Draw *d)
{
    static const double edge[] = {0.0,   -0.0,         1,      -1,      0.5,  2,     1e-45,
                                  127.5, 2147483648.0, 9.3e18, -9.3e18, 1e38, -1e38, 3.5e38,
                                  1e308, -1e308,       1e-310, 1e-8,    1e10, 255,   INFINITY,
                                  NAN,   -INFINITY};
    return DRAW_FROM(d, edge);
}

/* Around the widths of vectors, blocks and tiles; a few are too large for any memory. */
static inline int64_t draw_size(Draw *d)
{
    static const int32_t edge[] = {0,  1,  1,   1,   2,   2,   3,    3,    4,     5,     6,
                                   7,  8,  9,   12,  15,  16,  17,   31,   32,    33,    63,
                                   64, 65, 100, 129, 257, 513, 1000, 1025, 65536, 65537, 1 << 20};
    return draw_below(d, 8) ? DRAW_FROM(d, edge) : draw_int(d) & INT64_MAX;
}

#endif
