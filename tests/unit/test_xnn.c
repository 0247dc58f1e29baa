/* test_xnn.c -- tests hostile XNNPACK blobs.  Each is a valid graph in which one field was
 * changed.  They are refused before the library sees them, so these tests need no library. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ir/ir.h"
#include "ir/flat.h"
#include "runtime-lite/delegates/xnn_graph.h"

enum { MOST = 12, NONE = -1 };
#define NO XNN_NO_ID

typedef struct Claim { /* a value as the blob has it */
    uint16_t type;
    uint32_t rank, n_dims, dim[8], constant, external, flags, id;
    uint8_t quant; /* of the schema's union; 0: a plain tensor */
    float scale;
    int32_t zero;
    uint32_t channel_dim, scales, n_scales, group;
} Claim;

typedef struct Made { /* a node */
    uint8_t kind;
    uint32_t slot[20];
    int n_slots, list[2]; /* slots that are lists, or NONE */
    uint32_t item[2][8], n[2];
    bool has_range;
    float min, max;
} Made;

typedef struct Spec {
    Claim value[MOST];
    Made node[MOST];
    int n_values, n_nodes;
    uint32_t n_externals;
    const char *key[4];
    uint64_t offset[4], size[4];
    int n_constants;
    uint64_t inline_bytes;
    /* of the header */
    uint32_t flat_at, data_at;
    uint64_t more_data;
    const char *ident, *magic;
} Spec;

/* -- blobs ------------------------------------------------------------------------------------- */

static FlatRef tensor(Flat *f, const Claim *v)
{
    FlatRef dims = flat_vector(f, v->dim, v->n_dims, 4);
    flat_begin(f, 7);
    flat_u16(f, 0, v->type);
    flat_u32(f, 1, v->rank);
    flat_ref(f, 2, dims);
    flat_u32(f, 3, v->constant);
    flat_u32(f, 4, v->external);
    flat_u32(f, 5, v->flags);
    flat_u32(f, 6, v->id);
    return flat_end(f);
}

static FlatRef quant(Flat *f, const Claim *v)
{
    float inline_scale[1] = {v->scale};
    bool lists = v->quant == XNN_PER_CHANNEL || v->quant == XNN_PER_GROUP;
    FlatRef list = lists ? flat_vector(f, inline_scale, v->scales ? 0 : 1, 4) : 0;
    flat_begin(f, 6);
    if (v->quant == XNN_PER_TENSOR) {
        flat_f32(f, 0, v->scale);
        flat_u32(f, 1, (uint32_t)v->zero);
    } else if (v->quant == XNN_PER_TOKEN) {
        flat_u32(f, 0, v->channel_dim);
    } else {
        flat_ref(f, 0, list);
        flat_u32(f, 1, v->channel_dim);
        flat_u32(f, 2, v->quant == XNN_PER_GROUP ? v->group : v->scales);
        if (v->quant == XNN_PER_CHANNEL)
            flat_u32(f, 3, v->n_scales);
        else {
            flat_u32(f, 4, v->scales);
            flat_u32(f, 5, v->n_scales);
        }
    }
    return flat_end(f);
}

static FlatRef value(Flat *f, const Claim *v)
{
    FlatRef plain = tensor(f, v), whole = plain;
    if (v->quant) {
        FlatRef q = quant(f, v);
        flat_begin(f, 3);
        flat_ref(f, 0, plain);
        flat_u8(f, 1, v->quant);
        flat_ref(f, 2, q);
        whole = flat_end(f);
    }
    flat_begin(f, 2);
    flat_u8(f, 0, v->quant ? 2 : 1);
    flat_ref(f, 1, whole);
    return flat_end(f);
}

static FlatRef node(Flat *f, const Made *n)
{
    FlatRef list[2] = {0}, range = 0;
    for (int k = 0; k < 2; k++)
        if (n->list[k] != NONE)
            list[k] = flat_vector(f, n->item[k], n->n[k], 4);
    if (n->has_range) {
        flat_begin(f, 2);
        flat_f32(f, 0, n->min);
        flat_f32(f, 1, n->max);
        range = flat_end(f);
    }
    flat_begin(f, 20);
    for (int i = 0; i < n->n_slots; i++)
        if (i != n->list[0] && i != n->list[1])
            flat_u32(f, i, n->slot[i]);
    for (int k = 0; k < 2; k++)
        if (n->list[k] != NONE)
            flat_ref(f, n->list[k], list[k]);
    FlatRef table = flat_end(f);
    flat_begin(f, 4);
    flat_u8(f, 0, n->kind);
    flat_ref(f, 1, table);
    flat_ref(f, 3, range);
    return flat_end(f);
}

static FlatRef constant(Flat *f, const Spec *s, int i)
{
    FlatRef key = s->key[i] ? flat_string(f, s->key[i]) : 0;
    flat_begin(f, 3);
    flat_u64(f, 0, s->offset[i]);
    flat_u64(f, 1, s->size[i]);
    flat_ref(f, 2, key);
    return flat_end(f);
}

static uint8_t *blob_of(const Spec *s, Arena *a, uint64_t *n_bytes)
{
    FlatRef values[MOST], nodes[MOST], constants[4];
    size_t n;
    Flat *f = flat_new(a);
    for (int i = 0; i < s->n_values; i++)
        values[i] = value(f, &s->value[i]);
    for (int i = 0; i < s->n_nodes; i++)
        nodes[i] = node(f, &s->node[i]);
    for (int i = 0; i < s->n_constants; i++)
        constants[i] = constant(f, s, i);
    FlatRef all_values = flat_refs(f, values, (size_t)s->n_values);
    FlatRef all_nodes = flat_refs(f, nodes, (size_t)s->n_nodes);
    FlatRef all_constants = flat_refs(f, constants, (size_t)s->n_constants);
    flat_begin(f, 9);
    flat_ref(f, 1, all_nodes);
    flat_ref(f, 2, all_values);
    flat_u32(f, 3, s->n_externals);
    flat_ref(f, 8, all_constants);
    const uint8_t *flat = flat_finish(f, flat_end(f), s->ident, &n);
    uint32_t at = 32, data_at = (uint32_t)(32 + (n + 15) / 16 * 16), size = (uint32_t)n;
    uint64_t data = s->inline_bytes + s->more_data;
    *n_bytes = data_at + s->inline_bytes;
    uint8_t *blob = malloc(*n_bytes); /* exact, for a sanitizer */
    memset(blob, 0, *n_bytes);
    memcpy(blob + at, flat, n);
    for (uint64_t i = data_at; i + 4 <= *n_bytes; i += 4)
        memcpy(blob + i, &(float){0.5f}, 4);
    at += s->flat_at;
    data_at += s->data_at;
    memcpy(blob + 4, s->magic, 4);
    memcpy(blob + 10, &at, 4);
    memcpy(blob + 14, &size, 4);
    memcpy(blob + 18, &data_at, 4);
    memcpy(blob + 22, &data, 8);
    return blob;
}

/* -- valid graphs ------------------------------------------------------------------------------ */

static Claim *add_value(Spec *s, uint16_t type, int rank, const uint32_t *dim)
{
    Claim *v = &s->value[s->n_values];
    *v = (Claim){.type = type, .rank = (uint32_t)rank, .n_dims = (uint32_t)rank, .external = NO};
    memcpy(v->dim, dim, (size_t)rank * sizeof *dim);
    v->id = (uint32_t)(10 + 3 * s->n_values++); /* ids need not be places */
    return v;
}

#define DIMS(...) (int)(sizeof((uint32_t[]){__VA_ARGS__}) / 4), (uint32_t[]){__VA_ARGS__}
#define ID(i) (10 + 3 * (uint32_t)(i))

static void add_external(Spec *s, bool is_output, int rank, const uint32_t *dim)
{
    Claim *v = add_value(s, XNN_F32, rank, dim);
    v->external = s->n_externals++;
    v->flags = is_output ? 2 : 1;
}

static Made *add_node(Spec *s, XnnKind kind, int n_slots, const uint32_t *slot)
{
    Made *n = &s->node[s->n_nodes++];
    *n = (Made){.kind = (uint8_t)kind, .n_slots = n_slots, .list = {NONE, NONE}};
    memcpy(n->slot, slot, (size_t)n_slots * sizeof *slot);
    return n;
}

static Spec empty(void)
{
    return (Spec){.n_constants = 1, .ident = "XN01", .magic = "XH00"};
}

/* y = relu(x . w + b): x 0, w 1 by key, b 2 in the blob, y 3 */
static Spec linear(void)
{
    Spec s = empty();
    s.key[1] = "w";
    s.size[2] = 12;
    s.n_constants = 3;
    s.inline_bytes = 16;
    add_external(&s, false, DIMS(2, 4));
    add_value(&s, XNN_F32, DIMS(3, 4))->constant = 1;
    add_value(&s, XNN_F32, DIMS(3))->constant = 2;
    add_external(&s, true, DIMS(2, 3));
    Made *n = add_node(&s, XNN_FULLY_CONNECTED, DIMS(ID(0), ID(1), ID(2), ID(3), 0));
    n->has_range = true;
    n->max = INFINITY;
    return s;
}

/* A convolution of 3 x 3, two groups: x 0, filter 1, y 2 */
static Spec conv(void)
{
    Spec s = empty();
    s.key[1] = "w";
    s.n_constants = 2;
    add_external(&s, false, DIMS(1, 5, 5, 4));
    add_value(&s, XNN_F32, DIMS(2, 3, 3, 2))->constant = 1;
    add_external(&s, true, DIMS(1, 3, 3, 2));
    add_node(&s, XNN_CONV,
             DIMS(0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 1, 2, 0, 0, ID(0), ID(1), NO, ID(2), 0));
    return s;
}

static Spec pool(void)
{
    Spec s = empty();
    add_external(&s, false, DIMS(1, 4, 4, 2));
    add_external(&s, true, DIMS(1, 2, 2, 2));
    add_node(&s, XNN_MAX_POOL, DIMS(0, 0, 0, 0, 2, 2, 2, 2, 1, 1, ID(0), ID(1), 0));
    return s;
}

static Spec mean(void)
{
    Spec s = empty();
    add_external(&s, false, DIMS(1, 4, 4, 2));
    add_external(&s, true, DIMS(1, 1, 1, 2));
    add_node(&s, XNN_GLOBAL_POOL, DIMS(ID(0), ID(1), 64));
    return s;
}

/* x 0 [2,3,4], moved to 1 [4,2,3], viewed as 2 [8,3], the first two rows 3 */
static Spec moves(void)
{
    Spec s = empty();
    add_external(&s, false, DIMS(2, 3, 4));
    add_value(&s, XNN_F32, DIMS(4, 2, 3));
    add_value(&s, XNN_F32, DIMS(8, 3));
    add_external(&s, true, DIMS(2, 3));
    Made *n = add_node(&s, XNN_TRANSPOSE, DIMS(3, 0, ID(0), ID(1), 0));
    n->list[0] = 1;
    n->n[0] = 3;
    memcpy(n->item[0], (uint32_t[]){2, 0, 1}, 12);
    n = add_node(&s, XNN_RESHAPE, DIMS(2, 0, ID(1), ID(2), 0));
    n->list[0] = 1;
    n->n[0] = 2;
    memcpy(n->item[0], (uint32_t[]){0, 3}, 8);
    n = add_node(&s, XNN_SLICE, DIMS(2, 0, 0, ID(2), ID(3), 0));
    n->list[0] = 1;
    n->list[1] = 2;
    n->n[0] = n->n[1] = 2;
    memcpy(n->item[1], (uint32_t[]){2, 0}, 8);
    return s;
}

/* x 0, scaled to 8 bits 1, product with w 2, y 3 */
static Spec dynamic(void)
{
    Spec s = empty();
    s.key[1] = "q";
    s.key[2] = "w";
    s.n_constants = 3;
    add_external(&s, false, DIMS(2, 4));
    Claim *v = add_value(&s, XNN_QDINT8, DIMS(2, 4));
    v->quant = XNN_PER_TOKEN;
    v->channel_dim = 1;
    v = add_value(&s, XNN_QCINT8, DIMS(3, 4));
    v->constant = 1;
    v->quant = XNN_PER_CHANNEL;
    v->scales = 2;
    v->n_scales = 3;
    add_external(&s, true, DIMS(2, 3));
    add_node(&s, XNN_CONVERT, DIMS(ID(0), ID(1), 0));
    add_node(&s, XNN_FULLY_CONNECTED, DIMS(ID(1), ID(2), NO, ID(3), 0));
    return s;
}

/* x 0 [2,3] and y 1 [2,3] side by side 2 [4,3], softmax 3 */
static Spec concat(void)
{
    Spec s = empty();
    add_external(&s, false, DIMS(2, 3));
    add_external(&s, false, DIMS(2, 3));
    add_value(&s, XNN_F32, DIMS(4, 3));
    add_external(&s, true, DIMS(4, 3));
    add_node(&s, XNN_CONCAT2, DIMS(0, ID(0), ID(1), NO, NO, ID(2), 0, NO));
    add_node(&s, XNN_SOFTMAX, DIMS(ID(2), ID(3), 0));
    return s;
}

/* -- the test ---------------------------------------------------------------------------------- */

static _Alignas(16) float weights[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                         1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* The number of nodes that are left, too. */
static EtcStatus read_nodes(const Spec *s, uint32_t *n_nodes, EtcError *e)
{
    EtcNamed row[] = {{"q", 1, (const uint8_t *)weights, 12},
                      {"short", 5, (const uint8_t *)weights, 11},
                      {"w", 1, (const uint8_t *)weights, 36 * 4},
                      {"x", 1, (const uint8_t *)weights + 2, 36 * 4}};
    XnnNames names = {row, 4};
    XnnGraph g;
    uint64_t n;
    Arena *a = arena_new();
    uint8_t *blob = blob_of(s, a, &n);
    *e = (EtcError){.index = -1};
    EtcStatus status = etc_xnn_read(blob, n, &names, &g, e);
    *n_nodes = g.n_nodes;
    etc_xnn_free(&g);
    free(blob);
    arena_free(a);
    return status;
}

static EtcStatus read_spec(const Spec *s, EtcError *e)
{
    uint32_t n_nodes;
    return read_nodes(s, &n_nodes, e);
}

typedef Spec MakeFn(void);

/* Filters in f32 are what the library has for convolutions of f16. */
static Spec conv_of_halves(void)
{
    Spec s = conv();
    s.value[0].type = s.value[2].type = XNN_F16;
    return s;
}

Test(xnn, valid_graphs)
{
    MakeFn *const make[] = {linear, conv, conv_of_halves, pool, mean, moves, dynamic, concat};
    for (size_t i = 0; i < sizeof make / sizeof *make; i++) {
        Spec s = make[i]();
        EtcError e;
        cr_expect_eq(read_spec(&s, &e), ETC_OK, "graph %zu: %s (%d)", i, e.what, (int)e.index);
    }
}

/* Its mean is NaN, so a call with such an input is no fault of the file. */
Test(xnn, image_without_elements)
{
    XnnNames none = {NULL, 0};
    XnnGraph g;
    EtcError e = {.index = -1};
    Spec s = mean();
    uint64_t n;
    Arena *a = arena_new();
    uint8_t *blob = blob_of(&s, a, &n);
    cr_assert_eq(etc_xnn_read(blob, n, &none, &g, &e), ETC_OK);
    XnnShape shape[2] = {{.rank = 4, .dim = {1, 0, 4, 2}}};
    cr_expect_eq(etc_xnn_infer(&g, shape, &e), ETC_OK, "%s", e.what);
    cr_expect_eq(shape[1].dim[1], 1);
    etc_xnn_free(&g);
    free(blob);
    arena_free(a);
}

/* The last abs reads the one before it, and nobody reads the last. */
Test(xnn, what_no_output_needs_is_left_out)
{
    Spec s = linear();
    EtcError e;
    uint32_t n_nodes = 0;
    for (int i = 0; i < 3; i++) {
        Claim *y = add_value(&s, XNN_F32, DIMS(s.value[3].dim[0], s.value[3].dim[1]));
        add_node(&s, XNN_ABS, 3, (uint32_t[]){i ? y->id - 3 : ID(3), y->id, 0});
    }
    cr_expect_eq(read_nodes(&s, &n_nodes, &e), ETC_OK, "%s (%d)", e.what, (int)e.index);
    cr_expect_eq(n_nodes, 1);
}

static int n_cases;

static void expect_refused(const Spec *s, EtcStatus status, const char *what, const char *change)
{
    EtcError e;
    EtcStatus got = read_spec(s, &e);
    n_cases++;
    cr_expect(got == status && e.what && strstr(e.what, what), "%s: %d, '%s'; expected '%s'",
              change, got, e.what ? e.what : "", what);
}

/* One graph, one change, what is said of it. */
#define REFUSED(make, change, what) REFUSED_AS(ETC_BAD_FILE, make, change, what)
#define REFUSED_AS(status, make, change, what)                                                     \
    do {                                                                                           \
        Spec s = make();                                                                           \
        change;                                                                                    \
        expect_refused(&s, status, what, #make ": " #change);                                      \
    } while (0)

Test(xnn, headers)
{
    REFUSED(linear, s.magic = "XH01", "without the header");
    REFUSED_AS(ETC_UNSUPPORTED, linear, s.ident = "XN02", "another version");
    REFUSED(linear, s.flat_at = 1u << 20, "graph outside");
    REFUSED(linear, s.flat_at = UINT32_MAX - 32, "graph outside");
    REFUSED(linear, s.flat_at = 2, "graph outside");
    REFUSED(linear, s.data_at = 1u << 20, "constants outside");
    REFUSED(linear, s.data_at = (uint32_t)-64, "constants outside");
    REFUSED(linear, s.more_data = 1, "constants outside");
    REFUSED(linear, s.more_data = UINT64_MAX / 2, "constants outside");
    cr_expect_eq(n_cases, 9);
}

Test(xnn, values)
{
    REFUSED(linear, s.value[0].n_dims = 1, "number of dimensions differs");
    REFUSED(linear, s.value[0].rank = 3, "number of dimensions differs");
    REFUSED(linear, (s.value[0].rank = s.value[0].n_dims = 7), "more than 6");
    REFUSED(linear, s.value[0].rank = UINT32_MAX, "more than 6");
    REFUSED(linear, s.value[1].id = ID(0), "two values of one id");
    REFUSED(linear, s.value[1].id = NO, "without an id");
    REFUSED(linear, s.value[0].dim[0] = 0, "without elements");
    REFUSED(linear, (s.value[0].dim[0] = s.value[0].dim[1] = UINT32_MAX), "too large");
    REFUSED(linear, s.value[0].type = 0, "datatype out of range");
    REFUSED(linear, s.value[0].type = 99, "datatype out of range");
    REFUSED_AS(ETC_UNSUPPORTED, linear, s.value[0].type = XNN_PFP32, "datatype that this build");
    REFUSED(linear, s.value[0].type = XNN_QINT8, "contradict");
    cr_expect_eq(n_cases, 12);
}

Test(xnn, externals)
{
    REFUSED(linear, s.value[0].flags = 3, "neither input nor output");
    REFUSED(linear, s.value[0].flags = 4, "neither input nor output");
    REFUSED(linear, s.value[0].flags = 0, "without a flag");
    REFUSED(linear, s.value[0].external = NO, "without an argument");
    REFUSED(linear, s.value[0].external = 2, "out of range");
    REFUSED(linear, s.value[0].external = 1, "two values for one argument");
    REFUSED(linear, s.value[0].constant = 1, "constant");
    REFUSED(linear, s.n_externals = 5000, "too many arguments");
    REFUSED(linear, s.value[3].flags = 1, "makes an input");
    REFUSED(linear, s.n_nodes = 0, "no node makes");
    cr_expect_eq(n_cases, 10);
}

Test(xnn, constants)
{
    REFUSED(linear, s.value[1].constant = 3, "not listed");
    REFUSED(linear, s.value[1].constant = UINT32_MAX, "not listed");
    REFUSED(linear, s.key[1] = "absent", "that the program lacks");
    REFUSED(linear, s.key[1] = "short", "shorter than");
    REFUSED(linear, s.key[1] = "x", "misaligned");
    REFUSED(linear, s.offset[2] = 8, "past the end of the blob");
    REFUSED(linear, s.offset[2] = UINT64_MAX, "past the end of the blob");
    REFUSED(linear, s.size[2] = UINT64_MAX, "past the end of the blob");
    REFUSED(linear, s.size[2] = 8, "shorter than");
    REFUSED(linear, s.offset[2] = 2, "misaligned");
    cr_expect_eq(n_cases, 10);
}

Test(xnn, quantization)
{
    REFUSED(dynamic, s.value[2].n_scales = 2, "one scale for each");
    REFUSED(dynamic, s.value[2].n_scales = 4, "one scale for each");
    REFUSED(dynamic, s.value[2].scales = 0, "one scale for each");
    REFUSED(dynamic, s.value[2].scales = 9, "not listed");
    REFUSED(dynamic, s.value[2].channel_dim = 2, "of no channel");
    REFUSED(dynamic, s.key[2] = "short", "fewer scales");
    REFUSED(dynamic, s.value[2].constant = 0, "of no constant");
    REFUSED(dynamic, s.value[2].quant = XNN_PER_TENSOR, "no scale of its own");
    REFUSED(dynamic, s.value[2].quant = XNN_PER_GROUP, "no 4-bit matrix");
    REFUSED(dynamic, s.value[1].channel_dim = 0, "per token");
    REFUSED(dynamic, s.value[1].channel_dim = 3, "per token");
    REFUSED(dynamic, s.value[1].channel_dim = 2, "does not read");
    REFUSED(dynamic, (s.value[1].type = XNN_QINT8, s.value[1].quant = XNN_PER_TENSOR),
            "out of range");
    REFUSED(dynamic, (s.value[1].type = XNN_QINT8, s.value[1].quant = XNN_PER_TENSOR,
                      s.value[1].scale = 1, s.value[1].zero = 128), "out of range");
    REFUSED(dynamic, (s.value[1].type = XNN_QINT8, s.value[1].quant = XNN_PER_TENSOR,
                      s.value[1].scale = NAN), "out of range");
    REFUSED(dynamic, (s.value[2].type = XNN_QBINT4, s.value[2].quant = XNN_PER_GROUP,
                      s.value[2].group = 32), "groups that are not a multiple");
    REFUSED(dynamic, (s.value[2].type = XNN_QBINT4, s.value[2].quant = XNN_PER_GROUP),
            "groups that");
    cr_expect_eq(n_cases, 17);
}

Test(xnn, order_of_nodes)
{
    REFUSED(linear, s.node[0].slot[0] = 1, "an id that no value has");
    REFUSED(linear, s.node[0].slot[0] = NO, "an id that no value has");
    REFUSED(linear, s.node[0].slot[3] = NO, "an id that no value has");
    REFUSED(linear, s.node[0].slot[3] = ID(1), "makes an input, a constant");
    REFUSED(linear, s.node[0].slot[3] = ID(0), "makes an input, a constant");
    REFUSED(linear, s.node[0].slot[0] = ID(3), "no node before it makes");
    REFUSED(concat, s.node[1].slot[1] = ID(2), "what another makes");
    REFUSED(concat, s.node[0].slot[1] = ID(3), "no node before it makes");
    REFUSED(linear, s.node[0].kind = 0, "FlatBuffer");
    REFUSED(linear, s.node[0].kind = 48, "FlatBuffer");
    REFUSED_AS(ETC_UNSUPPORTED, linear, s.node[0].kind = XNN_SDPA, "kind of node");
    REFUSED_AS(ETC_UNSUPPORTED, linear, s.node[0].slot[4] = 4, "unknown flag");
    REFUSED(linear, s.node[0].min = NAN, "range of a node");
    REFUSED(linear, s.node[0].max = -1, "range of a node");
    REFUSED(linear, (s.value[2].constant = 0, s.value[2].external = 2, s.value[2].flags = 1,
                     s.n_externals = 3), "not constants");
    REFUSED_AS(ETC_UNSUPPORTED, linear, s.value[3].type = XNN_F16, "datatypes that this kind");
    REFUSED_AS(ETC_UNSUPPORTED, dynamic, s.value[3].type = XNN_INT32, "datatypes that this kind");
    REFUSED_AS(ETC_UNSUPPORTED, conv,
               (s.value[0].type = s.value[1].type = s.value[2].type = XNN_F16),
               "datatypes that this kind");
    cr_expect_eq(n_cases, 18);
}

Test(xnn, sizes)
{
    REFUSED(linear, s.value[0].dim[1] = 5, "weights do not fit");
    REFUSED(linear, s.node[0].slot[4] = 1, "weights do not fit");
    REFUSED(linear, s.value[2].dim[0] = 2, "bias or scales");
    REFUSED(linear, s.value[3].dim[1] = 4, "differ from what its node makes");
    REFUSED(conv, s.node[0].slot[F_STRIDE_H] = 0, "of 0");
    REFUSED(conv, s.node[0].slot[F_DILATION_W] = 0, "of 0");
    REFUSED(conv, s.node[0].slot[F_KERNEL_H] = 0, "of 0");
    REFUSED(conv, s.node[0].slot[F_GROUPS] = 0, "of 0");
    REFUSED(conv, s.node[0].slot[F_GROUPS] = 3, "channels of the input");
    REFUSED(conv, s.node[0].slot[F_GROUP_OUT] = 2, "filter does not have");
    REFUSED(conv, s.node[0].slot[F_KERNEL_W] = 2, "filter does not have");
    REFUSED(conv, s.node[0].slot[F_TOP] = UINT32_MAX, "too large");
    REFUSED(conv, s.node[0].slot[F_DILATION_H] = 9, "larger than the padded");
    REFUSED(conv, s.node[0].kind = XNN_DEPTHWISE, "filter does not have");
    REFUSED(conv, (s.node[0].kind = XNN_CONV_TRANSPOSE, s.node[0].slot[F_ADJUST_H] = 1),
            "adjustment");
    REFUSED(pool, s.node[0].slot[F_KERNEL_H] = 0, "of 0");
    REFUSED(pool, s.node[0].slot[F_STRIDE_W] = 0, "of 0");
    REFUSED(pool, s.node[0].slot[F_LEFT] = 2, "padding as large");
    REFUSED(pool, s.node[0].slot[F_KERNEL_H] = 5, "larger than the padded");
    REFUSED(moves, s.node[0].item[0][0] = 3, "not a permutation");
    REFUSED(moves, s.node[0].item[0][0] = 0, "not a permutation");
    REFUSED(moves, s.node[0].n[0] = 2, "permutation of another rank");
    REFUSED(moves, s.node[0].slot[0] = 2, "permutation of another rank");
    REFUSED(moves, s.node[0].n[0] = 7, "more than 6 sizes");
    REFUSED(moves, s.node[1].item[0][1] = 0, "more than one size left open");
    REFUSED(moves, s.node[1].item[0][1] = 5, "as many elements");
    REFUSED(moves, s.node[1].slot[0] = 3, "number of dimensions");
    REFUSED(moves, s.node[2].item[0][0] = 7, "slice past the end");
    REFUSED(moves, s.node[2].item[0][0] = UINT32_MAX, "slice past the end");
    REFUSED(moves, s.node[2].n[1] = 1, "slice of another rank");
    REFUSED(concat, s.node[0].slot[0] = 2, "axis out of range");
    REFUSED(concat, s.node[0].slot[0] = UINT32_MAX, "axis out of range");
    REFUSED(concat, s.value[1].dim[1] = 4, "other sizes");
    cr_expect_eq(n_cases, 33);
}

Test(xnn, named_data_of_one_key)
{
    XnnNames names;
    EtcError e;
    uint64_t n;
    Arena *a = arena_new();
    Flat *f = flat_new(a);
    FlatRef row[2];
    for (int i = 0; i < 2; i++) {
        FlatRef key = flat_string(f, "twin");
        flat_begin(f, 2);
        flat_ref(f, 0, key);
        row[i] = flat_end(f);
    }
    flat_begin(f, 2);
    FlatRef segment = flat_end(f);
    FlatRef segments = flat_refs(f, &segment, 1), named = flat_refs(f, row, 2);
    flat_begin(f, 8);
    flat_ref(f, 4, segments);
    flat_ref(f, 7, named);
    size_t size;
    const uint8_t *flat = flat_finish(f, flat_end(f), "ET12", &size);
    n = size;
    EtcProgram p = {.file = flat, .n_bytes = n, .flat_bytes = n};
    memcpy(&p.root, flat, 4);
    cr_expect_eq(etc_xnn_names(&p, &names, &e), ETC_BAD_FILE);
    cr_expect(e.what && strstr(e.what, "of one key"));
    free(names.row);
    arena_free(a);
}

/* -- profiles ---------------------------------------------------------------------------------- */

/* A clamp went into the convolution before it; a reciprocal square root has a name of its own. */
Test(xnn, operations_are_nodes_in_order)
{
    XnnNode node[] = {{.kind = XNN_CONV}, {.kind = XNN_CLAMP}, {.kind = XNN_DEPTHWISE},
                      {.kind = XNN_RSQRT}, {.kind = XNN_CONCAT2}, {.kind = XNN_FULLY_CONNECTED}};
    XnnGraph g = {.node = node, .n_nodes = 6};
    const char *const name[] = {"Convolution (NHWC, F32) IGEMM", "Convolution (NHWC, F32) DWConv",
                                "Reciprocal Square Root (NC)", "Unheard Of (NC)",
                                "Dynamic Fully Connected (NC, F32)", "Copy (NC, X32)"};
    const uint32_t want[] = {0, 2, 3, NO, 5, NO};
    uint32_t got[6];
    etc_xnn_match(&g, name, 6, got);
    for (int i = 0; i < 6; i++)
        cr_expect_eq(got[i], want[i], "operation %d is node %u", i, got[i]);
}
