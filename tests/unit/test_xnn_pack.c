/* test_xnn_pack.c -- compares the keys and bytes of filters that are packed here with those that
 * libXNNPACK packs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "runtime-lite/delegates/xnn_host.h"

typedef struct Case {
    uint32_t out, in, kernel_h, kernel_w, stride, pad;
    bool has_bias, is_ours; /* ours: packed here, if the library packs tiles at all */
} Case;

static const Case cases[] = {
    {64, 64, 3, 3, 1, 1, true, true},    {96, 32, 5, 3, 2, 2, true, true},
    {71, 40, 3, 3, 1, 1, true, true},    {130, 33, 1, 5, 1, 0, true, true},
    {67, 300, 2, 1, 1, 0, false, true},  {512, 7, 3, 3, 1, 0, false, true},
    {256, 128, 1, 1, 1, 0, true, false}, {3, 700, 3, 3, 1, 1, true, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

typedef struct Made { /* a convolution as a blob would tell it */
    float *data;      /* filter, then bias, then what may be read behind */
    size_t n_filter, n_bytes;
    XnnGraph graph;
    XnnValue value[4];
    XnnNode node;
    EtcNamed name[2];
} Made;

static XnnValue value_new(uint32_t rank, const size_t *dim)
{
    XnnValue v = {.type = XNN_F32, .key = XNN_NO_ID, .external = XNN_NO_ID};
    v.shape.rank = rank;
    memcpy(v.shape.dim, dim, rank * sizeof *dim);
    v.n_bytes = (uint64_t)etc_xnn_count(&v.shape) * sizeof(float);
    return v;
}

static void constant(Made *m, uint32_t place, const float *data)
{
    m->value[place].data = (const uint8_t *)data;
    m->value[place].key = place - 1;
    m->name[place - 1].data = (const uint8_t *)data;
}

static Made *made_new(const Case *c)
{
    Made *m = calloc(1, sizeof *m);
    const size_t side = 9, in[] = {1, side, side, c->in},
                 filter[] = {c->out, c->kernel_h, c->kernel_w, c->in}, bias[] = {c->out},
                 out[] = {1, (side + 2 * c->pad - c->kernel_h) / c->stride + 1,
                          (side + 2 * c->pad - c->kernel_w) / c->stride + 1, c->out};
    m->value[0] = value_new(4, in);
    m->value[1] = value_new(4, filter);
    m->value[2] = value_new(1, bias);
    m->value[3] = value_new(4, out);
    m->value[0].is_input = m->value[3].is_output = 1;
    m->value[0].external = 0;
    m->value[3].external = 1;
    m->n_filter = m->value[1].n_bytes / sizeof(float);
    m->n_bytes = m->value[1].n_bytes + m->value[2].n_bytes + XNN_READS_PAST;
    m->data = malloc(m->n_bytes);
    for (size_t i = 0; i < m->n_bytes / sizeof(float); i++)
        m->data[i] = (float)(i % 65537) - 1000.0f;
    constant(m, 1, m->data);
    if (c->has_bias)
        constant(m, 2, m->data + m->n_filter);
    const uint32_t fields[] = {c->pad, c->pad, c->pad, c->pad, c->kernel_h, c->kernel_w, c->stride,
                               c->stride, 1, 1, c->in, c->out, 1};
    m->node = (XnnNode){.kind = XNN_CONV, .in = {0, 1, c->has_bias ? 2 : XNN_NO_ID}, .out = {3},
                        .n_in = 3, .n_out = 1, .min = -INFINITY, .max = INFINITY};
    memcpy(m->node.field, fields, sizeof fields);
    m->graph = (XnnGraph){.value = m->value, .node = &m->node, .n_values = 4, .n_nodes = 1,
                          .n_externals = 2};
    return m;
}

static void made_free(Made *m)
{
    free(m->data);
    free(m);
}

/* A host that has packed the case: with two threads the library does it ahead too. */
static EtcXnnpack *packed(const Made *m, bool is_ours, int n_threads)
{
    EtcXnnpack *x = etc_xnnpack_new(n_threads);
    cr_assert_not_null(x);
    x->file = (const uint8_t *)m->data;
    x->file_bytes = m->n_bytes;
    x->first = calloc(2, sizeof *x->first);
    x->use = calloc(2, sizeof *x->use);
    x->first[1] = 1;
    x->dense.is_known = !is_ours;
    cr_assert(etc_xnn_pack(x, &m->graph));
    return x;
}

/* The bytes are those of all outputs there are: what stands for others in a last tile is open. */
static void compare(const Case *c, const Made *m, const EtcXnnpack *ours, const EtcXnnpack *its)
{
    const size_t tile = ours->dense.tile, n_rows = m->n_filter / c->out + 1;
    const XnnPacked *a = ours->cache.at[0], *b = its->cache.at[0];
    cr_assert_eq(a->key.seed, b->key.seed, "%x, %x", a->key.seed, b->key.seed);
    cr_assert_eq(a->key.kernel, b->key.kernel);
    cr_assert_eq(a->key.bias, b->key.bias);
    for (size_t first = 0, at = 0; first < c->out; first += tile)
        for (size_t row = 0; row < n_rows; row++, at += tile) {
            const size_t n = (c->out - first < tile) ? c->out - first : tile;
            cr_assert_arr_eq((const float *)a->data + at, (const float *)b->data + at,
                             n * sizeof(float), "%u outputs, tile at %zu, row %zu", c->out, first,
                             row);
        }
}

Test(xnn_pack, as_the_library_does)
{
    for (int k = 0; k < N_CASES; k++) {
        const Case *c = &cases[k];
        Made *m = made_new(c);
        EtcXnnpack *ours = packed(m, true, 1), *its = packed(m, false, 2);
        const bool has_tiles = ours->dense.tile > 0;
        cr_assert_eq(its->cache.n_packed, 1, "case %d: the library packed nothing", k);
        cr_assert_eq(ours->cache.n_packed, (size_t)(c->is_ours && has_tiles), "case %d", k);
        if (c->is_ours && has_tiles)
            compare(c, m, ours, its);
        etc_xnnpack_free(ours);
        etc_xnnpack_free(its);
        made_free(m);
    }
}

/* Nodes are packed ahead by all threads: each filter once, and by one of the two. */
Test(xnn_pack, once_by_two_threads)
{
    for (int k = 0; k < N_CASES; k++) {
        Made *m = made_new(&cases[k]);
        EtcXnnpack *x = packed(m, true, 2);
        cr_assert_eq(x->cache.n_packed, 1, "case %d: packed %zu times", k, x->cache.n_packed);
        etc_xnnpack_free(x);
        made_free(m);
    }
}

#if defined(__x86_64__)
/* Elsewhere it depends on the CPU's maker too. */
Test(xnn_pack, tiles_where_known)
{
    EtcXnnpack *x = etc_xnnpack_new(1);
    Made *m = made_new(&cases[0]);
    const uint32_t node = 0;
    etc_xnn_dense_learn(x, &m->graph, &node, 1);
    cr_assert(x->dense.is_known);
    if (__builtin_cpu_supports("avx512f"))
        cr_assert_gt(x->dense.tile, 0);
    else
        cr_skip_test("no AVX-512");
    made_free(m);
    etc_xnnpack_free(x);
}
#endif
