/* xnn_node.c -- the nodes of an XNNPACK blob: the schema, the slots of ids for each kind of
 * node, and the checks of a node that need no sizes: ids, order, flags, numbers, datatypes. */
#include "runtime-lite/delegates/xnn_graph.h"

#include <math.h>
#include <string.h>

/* -- schema ------------------------------------------------------------------------------- */

#define S4 ETC_SLOT_SCALAR(4)
#define V4 ETC_SLOT_SCALARS(4)
#define SLOT(id, what) what,
#define SLOTS(id) static const EtcFlatSlot id##_slots[] = {XNN_##id##_SLOTS(SLOT)};
XNN_TABLES(SLOTS)
static const EtcFlatSlot scalars[] = {S4, S4, S4, S4, S4, S4, S4, S4, S4, S4,
                                      S4, S4, S4, S4, S4, S4, S4, S4, S4, S4};
static const EtcFlatSlot one_list[] = {S4, V4, S4, S4, S4};         /* transpose, reshape */
static const EtcFlatSlot paddings[] = {V4, V4, S4, S4, S4, S4};
static const EtcFlatSlot slice_slots[] = {S4, V4, V4, S4, S4, S4};

#define ROW(slots) {(slots), (uint8_t)(sizeof(slots) / sizeof((slots)[0]))}
#define TABLE_ROW(id) ROW(id##_slots),
#define NUMBERS(n) {scalars, (n)}
#define UNARY NUMBERS(3)
#define BINARY NUMBERS(4)
#define POOL NUMBERS(13)
#define CONV NUMBERS(20)
#define CAT NUMBERS(8)
#define ALPHA NUMBERS(4)
const EtcFlatTable etc_xnn_schema[] = {
    XNN_TABLES(TABLE_ROW)
    BINARY, NUMBERS(5), UNARY, UNARY, ROW(one_list), UNARY, CONV, /* add .. conv */
    BINARY, NUMBERS(5), ROW(paddings), POOL, BINARY, CONV, POOL,  /* div .. max_pool */
    BINARY, BINARY, UNARY, UNARY, UNARY, ROW(one_list),           /* multiply .. reshape */
    NUMBERS(10), UNARY, UNARY, UNARY, ALPHA, BINARY, UNARY,       /* argmax_pool .. negate */
    UNARY, ALPHA, UNARY, BINARY, CAT, CAT, CAT, ROW(slice_slots), /* square .. slice */
    NUMBERS(7), BINARY, CAT, CONV, UNARY, UNARY, UNARY,           /* sdpa .. gelu */
    UNARY, UNARY, UNARY, UNARY, UNARY};                           /* tanh .. cos */

/* -- the slots of each kind --------------------------------------------------------------- */

typedef struct Place {
    uint8_t n_fields;       /* scalars from slot 0 on */
    uint8_t n_in, n_out;
    uint8_t in[XNN_INPUTS]; /* slots */
    uint8_t out, flags;     /* slots; that of a second output follows that of the first */
    int8_t number, a, b;    /* the slots of a float and of lists; -1: there is none */
    uint8_t may_lack;       /* the last input may be absent */
} Place;

static const Place unary = {0, 1, 1, {0}, 1, 2, -1, -1, -1, 0};
static const Place binary = {0, 2, 1, {0, 1}, 2, 3, -1, -1, -1, 0};
static const Place fully_connected = {0, 3, 1, {0, 1, 2}, 3, 4, -1, -1, -1, 1};
static const Place transpose = {1, 1, 1, {2}, 3, 4, -1, 1, -1, 0};
static const Place conv = {15, 3, 1, {15, 16, 17}, 18, 19, -1, -1, -1, 1};
static const Place resize = {2, 1, 1, {2}, 3, 4, -1, -1, -1, 0};
static const Place pad = {0, 1, 1, {3}, 4, 5, 2, 0, 1, 0};
static const Place pool = {10, 1, 1, {10}, 11, 12, -1, -1, -1, 0};
static const Place argmax_pool = {6, 1, 2, {6}, 7, 9, -1, -1, -1, 0};
static const Place alpha = {0, 1, 1, {1}, 2, 3, 0, -1, -1, 0};
static const Place slice = {1, 1, 1, {3}, 4, 5, -1, 1, 2, 0};
static const Place concat[] = {{1, 2, 1, {1, 2}, 5, 6, -1, -1, -1, 0},
                               {1, 3, 1, {1, 2, 3}, 5, 6, -1, -1, -1, 0},
                               {1, 4, 1, {1, 2, 3, 4}, 5, 6, -1, -1, -1, 0},
                               {1, 5, 1, {1, 2, 3, 4, 7}, 5, 6, -1, -1, -1, 0}};

static const Place *place_of(XnnKind kind)
{
    switch ((int)kind) {
    case XNN_ADD: case XNN_DIV: case XNN_MINIMUM: case XNN_MULTIPLY: case XNN_SUBTRACT:
    case XNN_MAXIMUM: case XNN_PRELU: case XNN_BATCH_MATMUL:
        return &binary;
    case XNN_FULLY_CONNECTED:
        return &fully_connected;
    case XNN_TRANSPOSE: case XNN_RESHAPE:
        return &transpose;
    case XNN_CONV: case XNN_DEPTHWISE: case XNN_CONV_TRANSPOSE:
        return &conv;
    case XNN_RESIZE:
        return &resize;
    case XNN_PAD:
        return &pad;
    case XNN_AVG_POOL: case XNN_MAX_POOL:
        return &pool;
    case XNN_ARGMAX_POOL:
        return &argmax_pool;
    case XNN_LEAKY_RELU: case XNN_ELU:
        return &alpha;
    case XNN_SLICE:
        return &slice;
    case XNN_CONCAT2: case XNN_CONCAT3: case XNN_CONCAT4:
        return &concat[kind - XNN_CONCAT2];
    case XNN_CONCAT5:
        return &concat[3];
    case XNN_SDPA:
        return NULL;
    default:
        return &unary;
    }
}

/* -- reading ------------------------------------------------------------------------------ */

static EtcStatus bad(const XnnRead *r, const char *what, uint32_t node)
{
    return etc_xnn_fail(r->e, ETC_BAD_FILE, what, node);
}

static uint32_t find_value(const XnnRead *r, uint32_t id)
{
    uint32_t low = 0, high = r->g->n_values;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (r->id[mid].id == id) {
            return r->id[mid].place;
        }
        low = (r->id[mid].id < id) ? mid + 1 : low;
        high = (r->id[mid].id < id) ? high : mid;
    }
    return XNN_NO_ID;
}

static float read_float(const EtcFlat *f, uint32_t table, int slot)
{
    uint32_t bits = etc_flat_u32(f, table, slot);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static EtcStatus read_list(const XnnRead *r, uint32_t table, int slot, XnnShape *to, uint32_t node)
{
    if (slot < 0) {
        return ETC_OK;
    }
    EtcFlatVec list = etc_flat_vec(&r->f, table, slot);
    if (list.n > XNN_RANK) {
        return bad(r, "list of more than 6 sizes", node);
    }
    to->rank = list.n;
    for (uint32_t k = 0; k < list.n; k++) {
        to->dim[k] = (uint32_t)etc_flat_item_i32(list, k);
    }
    return ETC_OK;
}

static EtcStatus read_inputs(const XnnRead *r, uint32_t table, const Place *p, XnnNode *n,
                             uint32_t node)
{
    for (uint32_t k = 0; k < p->n_in; k++) {
        uint32_t id = etc_flat_u32(&r->f, table, p->in[k]);
        n->in[k] = find_value(r, id);
        if ((id == XNN_NO_ID) && p->may_lack && (k + 1 == p->n_in)) {
            continue;
        }
        if (n->in[k] == XNN_NO_ID) {
            return bad(r, "node reads an id that no value has", node);
        }
        const XnnValue *v = &r->g->value[n->in[k]];
        if (!v->is_input && (v->data == NULL) && !v->is_made) {
            return bad(r, "node reads a value that no node before it makes", node);
        }
    }
    return ETC_OK;
}

static EtcStatus read_outputs(const XnnRead *r, uint32_t table, const Place *p, XnnNode *n,
                              uint32_t node)
{
    for (uint32_t k = 0; k < p->n_out; k++) {
        n->out[k] = find_value(r, etc_flat_u32(&r->f, table, p->out + (int)k));
        if (n->out[k] == XNN_NO_ID) {
            return bad(r, "node makes an id that no value has", node);
        }
        XnnValue *v = &r->g->value[n->out[k]];
        if (v->is_input || (v->data != NULL) || v->is_made) {
            return bad(r, "node makes an input, a constant, or what another makes", node);
        }
        v->is_made = 1;
    }
    return ETC_OK;
}

static EtcStatus check_flags(const XnnRead *r, const XnnNode *n, uint32_t node)
{
    uint32_t may = 0;
    if ((n->kind == XNN_FULLY_CONNECTED) || (n->kind == XNN_BATCH_MATMUL)) {
        may = FLAG_TRANSPOSE;
    } else if (n->kind == XNN_RESIZE) {
        may = FLAG_ALIGN_CORNERS;
    } else if ((n->kind == XNN_GLOBAL_POOL) || (n->kind == XNN_AVG_POOL) ||
               (n->kind == XNN_MAX_POOL)) {
        may = FLAG_KEEP_DIMS;
    }
    return (n->flags & ~may) ? etc_xnn_fail(r->e, ETC_UNSUPPORTED, "unknown flag of a node", node)
                             : ETC_OK;
}

static EtcStatus read_range(const XnnRead *r, uint32_t row, XnnNode *n, uint32_t node)
{
    uint32_t range = etc_flat_table(&r->f, row, 3);
    n->min = range ? read_float(&r->f, range, 0) : -INFINITY;
    n->max = range ? read_float(&r->f, range, 1) : INFINITY;
    if (!(n->min <= n->max) || (n->min == INFINITY) || (n->max == -INFINITY)) {
        return bad(r, "range of a node is empty or not a number", node);
    }
    return isnan(n->number) ? bad(r, "number of a node is not a number", node) : ETC_OK;
}

EtcStatus etc_xnn_read_node(const XnnRead *r, uint32_t row, uint32_t i)
{
    XnnNode *n = &r->g->node[i];
    uint32_t table = etc_flat_table(&r->f, row, 1);
    n->kind = (XnnKind)etc_flat_u8(&r->f, row, 0);
    n->handle = etc_flat_u32(&r->f, row, 2);
    const Place *p = place_of(n->kind);
    if ((n->kind == 0) || (table == 0)) {
        return bad(r, "node without a kind", i);
    }
    if (p == NULL) {
        return etc_xnn_fail(r->e, ETC_UNSUPPORTED, "kind of node that this build lacks", i);
    }
    n->n_in = p->n_in;
    n->n_out = p->n_out;
    n->flags = etc_flat_u32(&r->f, table, p->flags);
    n->number = (p->number < 0) ? 0 : read_float(&r->f, table, p->number);
    for (int k = 0; k < p->n_fields; k++) {
        n->field[k] = etc_flat_u32(&r->f, table, k);
    }
    EtcStatus status = read_list(r, table, p->a, &n->a, i);
    status = (status == ETC_OK) ? read_list(r, table, p->b, &n->b, i) : status;
    status = (status == ETC_OK) ? read_inputs(r, table, p, n, i) : status;
    status = (status == ETC_OK) ? read_outputs(r, table, p, n, i) : status;
    status = (status == ETC_OK) ? check_flags(r, n, i) : status;
    status = (status == ETC_OK) ? read_range(r, row, n, i) : status;
    return (status == ETC_OK) ? etc_xnn_check_types(r->g, i, r->e) : status;
}

/* -- datatypes ---------------------------------------------------------------------------- */

static XnnType type_of(const XnnGraph *g, uint32_t value)
{
    return (value == XNN_NO_ID) ? 0 : g->value[value].type;
}

static int is_float(XnnType t)
{
    return (t == XNN_F32) || (t == XNN_F16);
}

static int is_static8(XnnType t)
{
    return (t == XNN_QINT8) || (t == XNN_QUINT8);
}

/* Returns whether a product may have these datatypes: the weights must fit the activations, and the
 * bias both. */
static int is_product(XnnKind kind, XnnType in, XnnType filter, XnnType bias, XnnType out)
{
    const int is_fc = kind == XNN_FULLY_CONNECTED;
    if (is_fc && (in == XNN_F32) && ((filter == XNN_QCINT8) || (filter == XNN_QCINT4))) {
        return (out == in) && ((bias == 0) || (bias == in));
    }
    if (is_float(in)) {
        const int is_half = is_fc && (filter == XNN_F16); /* else filters are f32, with f16 too */
        return ((filter == XNN_F32) || (is_half && (in == filter))) && (out == in) &&
               ((bias == 0) || (bias == filter));
    }
    if (in == XNN_QINT8) {
        XnnType wanted = (filter == XNN_QCINT8) ? XNN_QCINT32 : XNN_QINT32;
        return ((filter == XNN_QCINT8) || (filter == XNN_QINT8)) && (out == in) &&
               ((bias == 0) || (bias == wanted));
    }
    return (in == XNN_QDINT8) && (kind != XNN_DEPTHWISE) && is_float(out) &&
           ((filter == XNN_QCINT8) ||
            (is_fc && ((filter == XNN_QCINT4) || (filter == XNN_QBINT4)))) &&
           ((bias == 0) || (bias == XNN_F32));
}

static int is_conversion(XnnType in, XnnType out)
{
    return (is_float(in) && (is_float(out) || is_static8(out) || (out == XNN_QDINT8))) ||
           (is_static8(in) && (is_float(out) || (in == out)));
}

static int are_types(const XnnGraph *g, const XnnNode *n)
{
    XnnType first = type_of(g, n->in[0]), out = type_of(g, n->out[0]);
    const int is_weighted = (n->kind == XNN_FULLY_CONNECTED) || (n->kind == XNN_CONV) ||
                            (n->kind == XNN_DEPTHWISE) || (n->kind == XNN_CONV_TRANSPOSE);
    if (is_weighted) {
        return is_product(n->kind, first, type_of(g, n->in[1]), type_of(g, n->in[2]), out);
    }
    if (n->kind == XNN_CONVERT) {
        return is_conversion(first, out);
    }
    if (n->kind == XNN_ARGMAX_POOL) {
        return (first == XNN_F32) && (out == first) && (type_of(g, n->out[1]) == XNN_INT32);
    }
    for (uint32_t k = 1; k < n->n_in; k++) {
        if (type_of(g, n->in[k]) != first) {
            return 0;
        }
    }
    return (first == out) && (is_float(first) || is_static8(first));
}

/* Checks that filters and biases of convolutions and quantized products, and slopes, are constants.
 */
static int are_constants(const XnnGraph *g, const XnnNode *n)
{
    const int is_conv = (n->kind == XNN_CONV) || (n->kind == XNN_DEPTHWISE) ||
                        (n->kind == XNN_CONV_TRANSPOSE);
    int must = is_conv;
    if (n->kind == XNN_FULLY_CONNECTED) {
        must = g->value[n->in[1]].data || (type_of(g, n->in[1]) != type_of(g, n->in[0]));
    }
    for (uint32_t k = 1; must && (k < n->n_in); k++) {
        if ((n->in[k] != XNN_NO_ID) && (g->value[n->in[k]].data == NULL)) {
            return 0;
        }
    }
    return 1;
}

static int same_scale(const XnnValue *a, const XnnValue *b)
{
    return (memcmp(&a->scale, &b->scale, sizeof a->scale) == 0) && (a->zero == b->zero);
}

/* Returns whether a node that only moves or clamps elements keeps their scale. */
static int are_scales(const XnnGraph *g, const XnnNode *n)
{
    const int moves = (n->kind == XNN_TRANSPOSE) || (n->kind == XNN_RESHAPE) ||
                      (n->kind == XNN_SLICE) || (n->kind == XNN_MAX_POOL) || (n->kind == XNN_PAD) ||
                      (n->kind == XNN_COPY) || (n->kind == XNN_RESIZE) || (n->kind == XNN_CLAMP);
    return !moves || same_scale(&g->value[n->in[0]], &g->value[n->out[0]]);
}

/* The library has a scale for each row of a product, for each image of a convolution. */
static int are_tokens(const XnnGraph *g, const XnnNode *n)
{
    const XnnValue *in = &g->value[n->in[0]];
    return (in->type != XNN_QDINT8) ||
           (in->n_token_dims == ((n->kind == XNN_FULLY_CONNECTED) ? 1 : 3));
}

EtcStatus etc_xnn_check_types(const XnnGraph *g, uint32_t node, EtcError *e)
{
    const XnnNode *n = &g->node[node];
    if (!are_types(g, n)) {
        return etc_xnn_fail(e, ETC_UNSUPPORTED, "datatypes that this kind of node does not take",
                            node);
    }
    if (!are_constants(g, n)) {
        return etc_xnn_fail(e, ETC_BAD_FILE, "weights that are not constants", node);
    }
    if (!are_tokens(g, n)) {
        return etc_xnn_fail(e, ETC_BAD_FILE, "scales per token that the node does not read", node);
    }
    if (!are_scales(g, n)) {
        return etc_xnn_fail(e, ETC_BAD_FILE, "node that moves elements changes their scale", node);
    }
    return ETC_OK;
}
