/* products.c -- the Gram matrix X^T X for GPTQ: sums over samples of the products of each two
 * activations that a row of weights is multiplied with.
 *
 * For a convolution, a row of X is the window at one position of the result: channels times taps,
 * with zeros beyond the border.  For a linear layer, or one tap, it is the channels alone.  Groups
 * are independent of each other.  A group with more than MOST columns is divided into independent
 * parts, so a column takes at most 8 * MOST bytes (16 * MOST for int4).
 *
 * Neighbouring positions are nearly equal, and with many samples a few positions of each are
 * enough: about ROWS per column over all samples, at even distances that begin at another
 * position in each sample.  So the result depends only on the samples and their number. */
#include "quant/internal.h"
#include <string.h>

enum {
    MOST = 768, /* the most columns of a block; twice as many for fewer than 8 bits */
    ROWS = 6,   /* the rows per column; twice as many for fewer than 8 bits */
    BATCH = 32  /* how many rows are summed in floats before they are added to doubles */
};

static int64_t columns(const Window *w)
{
    return w->channels * w->taps;
}

/* Returns the smallest number of equal parts of the channels such that a part has at most `most`
 * columns. */
static int64_t parts_of(int64_t channels, int64_t taps, int64_t most)
{
    int64_t n = 1;
    while (n < channels && (channels % n || channels / n * taps > most))
        n++;
    return n;
}

/* Sets the window of n.  Returns false if no products are computed for n. */
static bool window_of(const Node *n, int bits, Window *w)
{
    const int more = bits < 8 ? 2 : 1;
    Geometry g;
    *w = (Window){.taps = 1, .rows = ROWS * more};
    Weighted v;
    Conv c;
    if (!weighted_read(n, &v) || (v.w_axis && !v.is_conv) || !geometry_of(n, &g) || g.taps > MOST)
        return false;
    if (v.is_conv) {
        if (!conv_read(n, &c))
            return false;
        w->n_axes = c.axes;
        memcpy(w->kernel, c.kernel, sizeof w->kernel);
        memcpy(w->stride, c.stride, sizeof w->stride);
        memcpy(w->padding, c.pad, sizeof w->padding);
        memcpy(w->dilation, c.dilation, sizeof w->dilation);
    }
    w->taps = g.taps;
    const int64_t parts = parts_of(g.channels_of_group, g.taps, MOST * more);
    w->channels = g.channels_of_group / parts;
    w->blocks = g.results / g.results_of_group * parts;
    return true;
}

bool products_fit(const Node *n)
{
    Window w;
    return window_of(n, 8, &w);
}

bool products_ask(Moments *m, const Node *n, int bits, Arena *a)
{
    Window w;
    if (!window_of(n, bits, &w) || w.channels * w.blocks != m->n)
        return false;
    Products **at = &m->products;
    while (*at && memcmp(&(*at)->window, &w, sizeof w) != 0)
        at = &(*at)->next;
    if (!*at) {
        *at = NEW(a, Products, 1);
        **at = (Products){.window = w, .n = columns(&w), .blocks = w.blocks};
    }
    return true;
}

const Products *products_of(const Moments *m, const Node *n, int bits)
{
    Window w;
    if (!m || !m->products || !window_of(n, bits, &w))
        return NULL;
    const Products *p = m->products;
    while (p && memcmp(&p->window, &w, sizeof w) != 0)
        p = p->next;
    return p && p->gram ? p : NULL;
}

int64_t products_count(const Products *p)
{
    return p->blocks * p->n * p->n;
}

/* -- observing --------------------------------------------------------------------------------- */

/* The operand of a sample, [outer, channels, size...], and the positions of the results. */
typedef struct Field {
    const Window *w;
    const float *x;
    int64_t channels, inner, positions; /* the elements of a channel; the positions of an image */
    int64_t size[WINDOW_AXES], out[WINDOW_AXES];
} Field;

static Field field_of(const Moments *m, const Window *w, const EtcTensor *t, int64_t *n)
{
    assert(m->axis + w->n_axes < t->rank);
    Field f = {.w = w, .x = t->data, .channels = m->n, .inner = 1, .positions = 1};
    int64_t outer = 1;
    for (int i = 0; i < m->axis; i++)
        outer *= t->dim[i];
    for (int i = 0; i < w->n_axes; i++) {
        f.size[i] = t->dim[m->axis + 1 + i];
        const int64_t room = f.size[i] + 2 * w->padding[i] - w->dilation[i] * (w->kernel[i] - 1);
        f.out[i] = room < 1 ? 0 : (room - 1) / w->stride[i] + 1;
        f.inner *= f.size[i];
        f.positions *= f.out[i];
    }
    *n = outer * f.positions;
    return f;
}

/* Sets at[] to where the taps of a position lie in a channel; -1: beyond it. */
static void taps_of(const Field *f, int64_t position, int64_t *at)
{
    const Window *w = f->w;
    int64_t first[WINDOW_AXES];
    for (int i = (int)w->n_axes - 1; i >= 0; i--) {
        first[i] = position % f->out[i] * w->stride[i] - w->padding[i];
        position /= f->out[i];
    }
    for (int64_t k = 0; k < w->taps; k++) {
        int64_t rest = k, step = 1, to = 0;
        for (int i = (int)w->n_axes - 1; i >= 0; i--) {
            const int64_t c = first[i] + rest % w->kernel[i] * w->dilation[i];
            to = to < 0 || c < 0 || c >= f->size[i] ? -1 : to + c * step;
            rest /= w->kernel[i];
            step *= f->size[i];
        }
        at[k] = to;
    }
}

/* Writes row r of the columns of all blocks; the row of block b begins at row[b * BATCH * n]. */
static void unfold(const Field *f, const Products *p, int64_t position, int64_t *at, float *row)
{
    const Window *w = f->w;
    const float *x = f->x + position / f->positions * f->channels * f->inner;
    taps_of(f, position % f->positions, at);
    for (int64_t b = 0; b < p->blocks; b++, row += BATCH * p->n)
        for (int64_t c = 0; c < w->channels; c++, x += f->inner)
            for (int64_t k = 0; k < w->taps; k++)
                row[c * w->taps + k] = at[k] < 0 ? 0 : x[at[k]];
}

enum { TALL = 4, WIDE = 8 };

/* Adds the products of columns i to i + TALL with columns j to j + WIDE, summed as floats over a
 * few rows. */
static void add_tile(double *gram, const float *x, int64_t n, int rows, int64_t i, int64_t j)
{
    float sum[TALL][WIDE] = {{0}};
    for (int r = 0; r < rows; r++)
        for (int a = 0; a < TALL; a++)
            for (int b = 0; b < WIDE; b++)
                sum[a][b] += x[r * n + i + a] * x[r * n + j + b];
    for (int a = 0; a < TALL; a++)
        for (int b = 0; b < WIDE; b++)
            gram[(i + a) * n + j + b] += (double)sum[a][b];
}

static void add_edge(double *gram, const float *x, int64_t n, int rows, int64_t i, int64_t j)
{
    float sum = 0;
    for (int r = 0; r < rows; r++)
        sum += x[r * n + i] * x[r * n + j];
    gram[i * n + j] += (double)sum;
}

/* Adds rows to the lower triangle; tiles on the diagonal are computed whole. */
static void add_rows(double *gram, const float *x, int64_t n, int rows)
{
    int64_t i = 0;
    for (; i + TALL <= n; i += TALL) {
        int64_t j = 0;
        for (; j < i + TALL && j + WIDE <= n; j += WIDE)
            add_tile(gram, x, n, rows, i, j);
        for (; j < i + TALL; j++)
            for (int a = 0; a < TALL; a++)
                add_edge(gram, x, n, rows, i + a, j);
    }
    for (; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            add_edge(gram, x, n, rows, i, j);
}

/* Returns how many of a sample's positions are taken. */
static int64_t rows_of(const Products *p, int64_t positions, int n_samples)
{
    const int64_t want = (p->window.rows * p->n + n_samples - 1) / n_samples;
    return want < positions ? want : positions;
}

/* Returns a fraction that differs from sample to sample.  Multiples of the golden ratio are spread
 * evenly over [0, 1). */
static double start_of(int sample)
{
    const uint32_t bits = (uint32_t)sample * 2654435769u;
    return bits / 4294967296.0;
}

void products_observe(const Moments *m, Products *p, const EtcTensor *t, int sample, int n_samples,
                      Arena *tmp)
{
    int64_t positions;
    const Field f = field_of(m, &p->window, t, &positions);
    const int64_t n = rows_of(p, positions, n_samples);
    float *x = NEW(tmp, float, p->blocks * BATCH * p->n + 1);
    int64_t *at = NEW(tmp, int64_t, p->window.taps + 1);
    assert(p->gram && n_samples > 0);
    for (int64_t first = 0; first < n; first += BATCH) {
        const int rows = (int)(n - first < BATCH ? n - first : BATCH);
        for (int r = 0; r < rows; r++) {
            const double place = ((double)(first + r) + start_of(sample)) / (double)n;
            int64_t position = n == positions ? first + r : (int64_t)(place * (double)positions);
            position = position < positions ? position : positions - 1;
            unfold(&f, p, position, at, x + r * p->n);
        }
        for (int64_t b = 0; b < p->blocks; b++)
            add_rows(p->gram + b * p->n * p->n, x + b * BATCH * p->n, p->n, rows);
    }
}
