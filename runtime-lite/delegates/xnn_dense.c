/* xnn_dense.c -- packs the filters of dense f32 convolutions.  The library packs those with more
 * than one tap one float at a time, and clears all memory before.
 *
 * The layout is that of the library: tiles of some output channels, each with the biases and
 * then, weight by weight, one float per channel.  How many channels a tile has, and whether the
 * layout is this one, depends on the CPU.  So the library first packs two small filters; if
 * their layout is another one, the library packs all filters.  It finds filters that were packed
 * here by the key that it would use itself: sizes, and a checksum of parameters without sizes,
 * which is known from the two small filters.  If the library asks with another key, it packs the
 * filter itself. */
#include "runtime-lite/delegates/xnn_host.h"

#include <math.h>
#include <string.h>

enum {
    AT_ONCE = 16,   /* how many weights of a row are copied together: a cache line */
    ROWS = 4,       /* how many rows are transposed together */
    AHEAD = 32,     /* how many weights ahead are prefetched */
    MOST_TRIED = 72 /* the most output channels of the small filters */
};

/* -- packing -------------------------------------------------------------------------------- */

static void transpose_rows(const float *row, size_t n_weights, size_t tile, size_t k, float *to)
{
    const float *from = row + k;
    for (size_t i = 0; i < ROWS; i++) {
        if (k + AHEAD < n_weights) {
            __builtin_prefetch(from + i * n_weights + AHEAD);
        }
    }
    for (size_t j = 0; j < AT_ONCE; j++) {
        float *at = to + (k + j) * tile;
        at[0] = from[j];
        at[1] = from[j + n_weights];
        at[2] = from[j + 2 * n_weights];
        at[3] = from[j + 3 * n_weights];
    }
}

/* Sets to[k][output] to filter[output][k]. */
static void transpose(const float *filter, size_t n_out, size_t n_weights, size_t tile, float *to)
{
    const size_t rows = n_out / ROWS * ROWS, whole = n_weights / AT_ONCE * AT_ONCE;
    for (size_t k = 0; k < whole; k += AT_ONCE) {
        for (size_t i = 0; i < rows; i += ROWS) {
            transpose_rows(filter + i * n_weights, n_weights, tile, k, to + i);
        }
    }
    for (size_t k = 0; k < n_weights; k++) {
        for (size_t i = (k < whole) ? rows : 0; i < n_out; i++) {
            to[k * tile + i] = filter[i * n_weights + k];
        }
    }
}

/* The sizes of a filter.  The library counts the inputs of one place under the kernel. */
typedef struct Sizes {
    size_t out, in, places;
} Sizes;

static size_t packed_floats(const Sizes *s, size_t tile)
{
    return (s->out + tile - 1) / tile * tile * (s->in * s->places + 1);
}

static void pack(const float *filter, const float *bias, const Sizes *s, size_t tile, float *to)
{
    const size_t n_weights = s->in * s->places;
    for (size_t first = 0; first < s->out; first += tile) {
        const size_t n = (s->out - first < tile) ? s->out - first : tile;
        if (n < tile) {
            memset(to, 0, tile * (n_weights + 1) * sizeof *to);
        }
        for (size_t i = 0; i < n; i++) {
            to[i] = (bias != NULL) ? bias[first + i] : 0.0f;
        }
        transpose(filter + first * n_weights, n, n_weights, tile, to + tile);
        to += tile * (n_weights + 1);
    }
}

/* -- learning the layout -------------------------------------------------------------------- */

enum { MOST_WEIGHTS = 15, MOST_PACKED = 2 * MOST_TRIED * (MOST_WEIGHTS + 1) };

typedef struct Trial { /* a cache for one filter */
    struct xnn_weights_cache_provider provider;
    struct xnn_weights_cache_look_up_key key;
    float filter[MOST_TRIED * MOST_WEIGHTS + XNN_READS_PAST], bias[MOST_TRIED + XNN_READS_PAST];
    float mine[MOST_PACKED];
    float packed[MOST_PACKED] __attribute__((aligned(64))); /* what the library has packed */
} Trial;

static size_t look_up(void *context, const struct xnn_weights_cache_look_up_key *key)
{
    ((Trial *)context)->key = *key;
    return SIZE_MAX;
}

static void *reserve_space(void *context, size_t n)
{
    Trial *t = context;
    return (n <= sizeof t->packed) ? t->packed : NULL;
}

static size_t insert(void *context, const struct xnn_weights_cache_look_up_key *key, void *data,
                     size_t n)
{
    (void)context;
    (void)key;
    (void)data;
    (void)n;
    return 0;
}

static bool is_finalized(void *context)
{
    (void)context;
    return false;
}

static void *address(void *context, size_t offset)
{
    (void)offset;
    return ((Trial *)context)->packed;
}

static enum xnn_status delete_cache(void *context)
{
    (void)context;
    return xnn_status_success;
}

static enum xnn_status define_trial(xnn_subgraph_t g, const Trial *t, const Sizes *s)
{
    const size_t image[] = {1, 1, s->places, s->in}, filter[] = {s->out, 1, s->places, s->in},
                 out[] = {1, 1, 1, s->out};
    const size_t *dim[] = {image, filter, &s->out, out};
    const void *data[] = {NULL, t->filter, t->bias, NULL};
    const uint32_t external[] = {0, XNN_INVALID_VALUE_ID, XNN_INVALID_VALUE_ID, 1},
                   flags[] = {XNN_VALUE_FLAG_EXTERNAL_INPUT, 0, 0, XNN_VALUE_FLAG_EXTERNAL_OUTPUT};
    uint32_t id[4];
    for (int k = 0; k < 4; k++) {
        const enum xnn_status x =
            xnn_define_tensor_value(g, xnn_datatype_fp32, (k == 2) ? 1 : 4, dim[k], data[k],
                                    external[k], flags[k], &id[k]);
        if (x != xnn_status_success) {
            return x;
        }
    }
    return xnn_define_convolution_2d(g, 0, 0, 0, 0, 1, (uint32_t)s->places, 1, 1, 1, 1, 1, s->in,
                                     s->out, -INFINITY, INFINITY, id[0], id[1], id[2], id[3], 0);
}

static int run_trial(EtcXnnpack *x, Trial *t, const Sizes *s)
{
    const struct xnn_weights_cache_provider provider = {
        t, look_up, reserve_space, insert, is_finalized, address, delete_cache};
    xnn_subgraph_t g = NULL;
    xnn_runtime_t runtime = NULL;
    t->provider = provider;
    for (size_t i = 0; i < s->out; i++) {
        t->bias[i] = -1.0f - (float)i;
    }
    for (size_t i = 0; i < s->out * s->in * s->places; i++) {
        t->filter[i] = 1.0f + (float)i;
    }
    if (xnn_create_subgraph(2, 0, &g) != xnn_status_success) {
        return 0;
    }
    if (define_trial(g, t, s) == xnn_status_success) {
        (void)xnn_create_runtime_v4(g, &t->provider, x->workspace, NULL, 0, &runtime);
    }
    xnn_delete_subgraph(g);
    const int ok = runtime != NULL;
    if (ok) {
        xnn_delete_runtime(runtime);
    }
    return ok;
}

/* Returns whether two packed filters are equal, except for unused channels of the last tile. */
static int are_equal(const float *a, const float *b, const Sizes *s, size_t tile)
{
    const size_t n_rows = s->in * s->places + 1;
    for (size_t i = 0; i < packed_floats(s, tile); i++) {
        const size_t output = i / (tile * n_rows) * tile + i % tile;
        if ((output < s->out) && (a[i] != b[i])) {
            return 0;
        }
    }
    return 1;
}

/* Returns the outputs of a tile, and sets the key without its sizes; 0: the library packs in
 * another way. */
static size_t tile_of(EtcXnnpack *x, Trial *t, const Sizes *s, uint32_t *seed)
{
    size_t tile = 0;
    memset(t, 0, sizeof *t);
    if (!run_trial(x, t, s)) {
        return 0;
    }
    while ((tile < s->out) && (t->packed[tile] == t->bias[tile])) {
        tile++;
    }
    if ((tile == 0) || (tile == s->out) || (packed_floats(s, tile) > MOST_PACKED)) {
        return 0;
    }
    pack(t->filter, t->bias, s, tile, t->mine);
    *seed = t->key.seed ^ (uint32_t)(s->out ^ s->in);
    return are_equal(t->mine, t->packed, s, tile) ? tile : 0;
}

/* Learns the layout from two small filters.  The second one has other sizes and does not fill its
 * last tile. */
static void learn_layout(EtcXnnpack *x)
{
    const Sizes first = {MOST_TRIED - 8, 3, 3}, second = {MOST_TRIED - 1, 5, 3};
    Trial t;
    uint32_t seed = 0;
    const size_t tile = tile_of(x, &t, &first, &x->dense.seed);
    x->dense.is_known = 1;
    if ((tile > 0) && (tile_of(x, &t, &second, &seed) == tile) && (seed == x->dense.seed)) {
        x->dense.tile = (uint32_t)tile;
    }
}

/* -- filters of a graph ----------------------------------------------------------------------- */

static int is_plain(const XnnGraph *g, uint32_t place)
{
    return (g->value[place].type == XNN_F32) && (g->value[place].quant == XNN_PLAIN);
}

/* Returns whether a filter has more than one point.  The library packs other filters well. */
static int is_dense(const XnnGraph *g, const XnnNode *n)
{
    const uint32_t bias = n->in[2];
    return (n->kind == XNN_CONV) && (n->field[F_GROUPS] == 1) &&
           ((n->field[F_KERNEL_H] | n->field[F_KERNEL_W]) != 1) && is_plain(g, n->in[0]) &&
           is_plain(g, n->in[1]) && is_plain(g, n->out[0]) && (g->value[n->in[1]].data != NULL) &&
           ((bias == XNN_NO_ID) || (is_plain(g, bias) && (g->value[bias].data != NULL)));
}

void etc_xnn_dense_learn(EtcXnnpack *x, const XnnGraph *g, const uint32_t *node, uint32_t n_nodes)
{
    for (uint32_t i = 0; (i < n_nodes) && !x->dense.is_known; i++) {
        if (is_dense(g, &g->node[node[i]])) {
            learn_layout(x);
        }
    }
}

/* Packs the filter of a node.  Returns 0 if the library must pack it, for example because it has
 * fewer outputs than a tile, which the library packs in another way. */
int etc_xnn_dense_pack(EtcXnnpack *x, const XnnGraph *g, const XnnNode *n)
{
    const size_t tile = x->dense.tile;
    if ((tile == 0) || !is_dense(g, n)) {
        return 0;
    }
    const XnnValue *filter = &g->value[n->in[1]];
    const size_t *dim = filter->shape.dim;
    const int has_bias = n->in[2] != XNN_NO_ID;
    const Sizes s = {dim[0], dim[3], dim[1] * dim[2]};
    struct xnn_weights_cache_look_up_key key;
    memset(&key, 0, sizeof key);
    key.seed = x->dense.seed ^ (uint32_t)(s.out ^ s.in);
    key.kernel = etc_xnn_readable(x, filter);
    key.bias = has_bias ? etc_xnn_readable(x, &g->value[n->in[2]]) : NULL;
    if ((s.out < tile) || (key.kernel == NULL) || (has_bias && (key.bias == NULL))) {
        return 0;
    }
    float *to = etc_xnn_cache_add(&x->cache, &key, packed_floats(&s, tile) * sizeof *to);
    if (to != NULL) {
        pack(key.kernel, key.bias, &s, tile, to);
    }
    return to != NULL;
}
