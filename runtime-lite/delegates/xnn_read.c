/* xnn_read.c -- an XNNPACK blob to a graph. */
#include "runtime-lite/delegates/xnn_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 1 << 20 };

EtcStatus etc_xnn_fail(EtcError *e, EtcStatus status, const char *what, uint32_t index)
{
    if (e != NULL) {
        e->status = status;
        e->what = what;
        e->name = NULL;
        e->overload = NULL;
        e->index = (index == XNN_NO_ID) ? -1 : (int64_t)index;
    }
    return status;
}

static EtcStatus bad(const XnnRead *r, const char *what, uint32_t index)
{
    return etc_xnn_fail(r->e, ETC_BAD_FILE, what, index);
}

static float as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* -- named data --------------------------------------------------------------------------- */

static int compare_keys(const char *a, uint32_t n_a, const char *b, uint32_t n_b)
{
    int order = memcmp(a, b, (n_a < n_b) ? n_a : n_b);
    return (order != 0) ? order : (n_a > n_b) - (n_a < n_b);
}

static int by_key(const void *a, const void *b)
{
    const EtcNamed *x = a, *y = b;
    return compare_keys(x->key, x->n_key, y->key, y->n_key);
}

EtcStatus etc_xnn_names(const EtcProgram *p, XnnNames *names, EtcError *e)
{
    names->n = etc_program_n_named(p);
    names->row = calloc((size_t)names->n + 1, sizeof *names->row);
    if (names->row == NULL) {
        names->n = 0;
        return etc_xnn_fail(e, ETC_NO_MEMORY, "no memory for the names of data", XNN_NO_ID);
    }
    for (uint32_t i = 0; i < names->n; i++) {
        names->row[i] = etc_program_named(p, i);
    }
    qsort(names->row, names->n, sizeof *names->row, by_key);
    for (uint32_t i = 1; i < names->n; i++) {
        if (by_key(&names->row[i - 1], &names->row[i]) == 0) {
            return etc_xnn_fail(e, ETC_BAD_FILE, "two named data of one key", XNN_NO_ID);
        }
    }
    return ETC_OK;
}

static uint32_t find_key(const XnnNames *names, const char *key, uint32_t n)
{
    uint32_t low = 0, high = names->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int order = compare_keys(names->row[mid].key, names->row[mid].n_key, key, n);
        if (order == 0) {
            return mid;
        }
        low = (order < 0) ? mid + 1 : low;
        high = (order < 0) ? high : mid;
    }
    return XNN_NO_ID;
}

/* -- header ------------------------------------------------------------------------------- */

static uint64_t load(const uint8_t *p, int n)
{
    uint64_t v = 0;
    memcpy(&v, p, (size_t)n);
    return v;
}

static EtcStatus read_header(XnnRead *r, const uint8_t *blob, uint64_t n)
{
    if ((n < XNN_HEADER_BYTES) || (memcmp(blob + XNN_AT_MAGIC, XNN_MAGIC, 4) != 0)) {
        return bad(r, "blob without the header XH00", XNN_NO_ID);
    }
    uint64_t at = load(blob + XNN_AT_GRAPH, 4), size = load(blob + XNN_AT_GRAPH_BYTES, 4);
    uint64_t data_at = load(blob + XNN_AT_DATA, 4), data_size = load(blob + XNN_AT_DATA_BYTES, 8);
    if ((at < XNN_HEADER_BYTES) || (at % 4 != 0) || (at > n) || (size > n - at) || (size < 8) ||
        (size >= INT32_MAX)) {
        return bad(r, "header: graph outside the blob", XNN_NO_ID);
    }
    if ((data_at < at + size) || (data_at > n) || (data_size > n - data_at)) {
        return bad(r, "header: constants outside the blob", XNN_NO_ID);
    }
    r->f.data = blob + at;
    r->f.size = (uint32_t)size;
    r->inline_data = blob + data_at;
    r->inline_bytes = data_size;
    if ((memcmp(r->f.data + 4, XNN_GRAPH_ID, 4) != 0) && (memcmp(r->f.data + 4, "XN00", 4) != 0)) {
        return etc_xnn_fail(r->e, ETC_UNSUPPORTED, "graph of another version than XN01",
                            XNN_NO_ID);
    }
    const char *what = etc_flat_verify(&r->f, etc_xnn_schema, etc_flat_root(&r->f));
    return what ? bad(r, what, XNN_NO_ID) : ETC_OK;
}

/* -- constants ---------------------------------------------------------------------------- */

/* Finds the bytes of row `index` of the constants, and how many there are. */
static EtcStatus find_data(const XnnRead *r, uint32_t index, uint32_t i, const uint8_t **data,
                           uint64_t *n_bytes, uint32_t *key)
{
    if (index >= r->constants.n) {
        return bad(r, "constant that is not listed", i);
    }
    uint32_t row = etc_flat_item_table(&r->f, r->constants, index), n;
    const char *name = etc_flat_string(&r->f, row, XNN_CONSTANT_KEY, &n);
    *key = XNN_NO_ID;
    if ((name != NULL) && (n > 0)) {
        *key = find_key(r->names, name, n);
        if (*key == XNN_NO_ID) {
            return bad(r, "named data that the program lacks", i);
        }
        *data = r->names->row[*key].data;
        *n_bytes = r->names->row[*key].n_bytes;
        return ETC_OK;
    }
    uint64_t offset = etc_flat_u64(&r->f, row, XNN_CONSTANT_OFFSET);
    uint64_t size = etc_flat_u64(&r->f, row, XNN_CONSTANT_SIZE);
    if ((offset > r->inline_bytes) || (size > r->inline_bytes - offset)) {
        return bad(r, "constant past the end of the blob", i);
    }
    *data = r->inline_data + offset;
    *n_bytes = size;
    r->g->has_inline = 1;
    return ETC_OK;
}

static size_t element_bytes(XnnType t)
{
    return ((t == XNN_F32) || (t == XNN_QINT32) || (t == XNN_QCINT32) || (t == XNN_INT32)) ? 4
           : (t == XNN_F16)                                                                ? 2
                                                                                           : 1;
}

int64_t etc_xnn_count(const XnnShape *s)
{
    const uint64_t most = (uint64_t)1 << 40;
    uint64_t n = 1, bound = 1; /* a size of 0 counts as 1, or it could hide a large one */
    for (uint32_t k = 0; k < s->rank; k++) {
        uint64_t d = s->dim[k] ? s->dim[k] : 1;
        if (bound > most / d) {
            return -1;
        }
        bound *= d;
        n *= s->dim[k];
    }
    return (int64_t)n;
}

static uint64_t data_bytes(const XnnValue *v)
{
    uint64_t n = (uint64_t)etc_xnn_count(&v->shape);
    if ((v->type != XNN_QCINT4) && (v->type != XNN_QBINT4)) {
        return n * element_bytes(v->type);
    }
    uint64_t last = v->shape.rank ? v->shape.dim[v->shape.rank - 1] : 1; /* two to a byte */
    return last ? n / last * ((last + 1) / 2) : 0;
}

static EtcStatus read_data(const XnnRead *r, uint32_t tensor, XnnValue *v, uint32_t i)
{
    uint32_t index = etc_flat_u32(&r->f, tensor, XNN_TENSOR_CONSTANT);
    uint64_t there = 0;
    v->key = XNN_NO_ID;
    if (index == 0) {
        return ETC_OK;
    }
    EtcStatus status = find_data(r, index, i, &v->data, &there, &v->key);
    if (status != ETC_OK) {
        return status;
    }
    v->n_bytes = data_bytes(v);
    if (v->n_bytes > there) {
        return bad(r, "constant shorter than its sizes ask for", i);
    }
    if ((v->n_bytes == 0) || ((uintptr_t)v->data % element_bytes(v->type) != 0)) {
        return bad(r, "constant that is empty or misaligned", i);
    }
    return ETC_OK;
}

/* -- quantization ------------------------------------------------------------------------- */

static int is_scale(float s)
{
    return isnormal(s) && (s > 0);
}

static int are_scales(const uint8_t *data, uint32_t n, int is_bf16)
{
    for (uint32_t k = 0; k < n; k++) {
        uint32_t bits = is_bf16 ? (uint32_t)load(data + (size_t)2 * k, 2) << 16
                                : (uint32_t)load(data + (size_t)4 * k, 4);
        if (!is_scale(as_float(bits))) {
            return 0;
        }
    }
    return 1;
}

/* Converts inline float scales of groups to bf16, rounded to nearest even. */
static const void *to_bf16(const uint8_t *data, uint32_t n, XnnValue *v)
{
    uint16_t *to = calloc((size_t)n + XNN_READS_PAST, sizeof *to);
    for (uint32_t k = 0; (to != NULL) && (k < n); k++) {
        uint32_t bits = (uint32_t)load(data + (size_t)4 * k, 4);
        to[k] = (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
    }
    v->own = (float *)(void *)to;
    return to;
}

/* Reads scales.  `slot` has the number of the buffer, and the next slot the number of scales; slot
 * 0 has the vector of inline scales. */
static EtcStatus read_scales(const XnnRead *r, uint32_t table, int slot, XnnValue *v, uint32_t i)
{
    int is_group = v->quant == XNN_PER_GROUP;
    uint32_t buffer = etc_flat_u32(&r->f, table, slot), key;
    EtcFlatVec list = etc_flat_vec(&r->f, table, XNN_CHANNEL_SCALES);
    const uint8_t *data = list.item;
    uint32_t n = list.n;
    if (buffer != 0) {
        uint64_t there = 0;
        n = etc_flat_u32(&r->f, table, slot + 1);
        EtcStatus status = find_data(r, buffer, i, &data, &there, &key);
        if (status != ETC_OK) {
            return status;
        }
        if ((uint64_t)n * (is_group ? 2 : 4) > there) {
            return bad(r, "fewer scales than announced", i);
        }
        if ((uintptr_t)data % (is_group ? 2 : 4) != 0) {
            return bad(r, "scales are misaligned", i);
        }
    }
    if ((data == NULL) || (n != v->n_scales)) {
        return bad(r, "not one scale for each channel or group", i);
    }
    if (!are_scales(data, n, is_group && (buffer != 0))) {
        return bad(r, "scale that is not positive and normal", i);
    }
    v->scales = (is_group && (buffer == 0)) ? to_bf16(data, n, v) : data;
    return v->scales ? ETC_OK : etc_xnn_fail(r->e, ETC_NO_MEMORY, "no memory for scales", i);
}

static EtcStatus read_per_tensor(const XnnRead *r, uint32_t table, XnnValue *v, uint32_t i)
{
    int64_t low = (v->type == XNN_QINT8) ? -128 : 0, high = (v->type == XNN_QINT8) ? 127 : 255;
    v->scale = as_float(etc_flat_u32(&r->f, table, XNN_WHOLE_SCALE));
    v->zero = etc_flat_i32(&r->f, table, XNN_WHOLE_ZERO);
    if ((v->type != XNN_QINT8) && (v->type != XNN_QUINT8) && (v->type != XNN_QINT32)) {
        return bad(r, "datatype that has no scale of its own", i);
    }
    if (v->type == XNN_QINT32) {
        high = 0;
    }
    if (!is_scale(v->scale) || (v->zero < low) || (v->zero > high)) {
        return bad(r, "scale or zero point out of range", i);
    }
    return ETC_OK;
}

static EtcStatus read_per_channel(const XnnRead *r, uint32_t table, XnnValue *v, uint32_t i)
{
    v->channel_dim = etc_flat_u32(&r->f, table, XNN_CHANNEL_AXIS);
    if ((v->type != XNN_QCINT8) && (v->type != XNN_QCINT4) && (v->type != XNN_QCINT32)) {
        return bad(r, "datatype that has no scale per channel", i);
    }
    if ((v->channel_dim >= v->shape.rank) || (v->data == NULL)) {
        return bad(r, "scales per channel of no channel, or of no constant", i);
    }
    v->zero = (v->type == XNN_QCINT4) ? 8 : 0;
    v->n_scales = (uint32_t)v->shape.dim[v->channel_dim];
    return read_scales(r, table, XNN_CHANNEL_CONSTANT, v, i);
}

static EtcStatus read_per_group(const XnnRead *r, uint32_t table, XnnValue *v, uint32_t i)
{
    int32_t group = etc_flat_i32(&r->f, table, XNN_GROUP_SIZE);
    v->channel_dim = etc_flat_u32(&r->f, table, XNN_GROUP_AXIS);
    if ((v->type != XNN_QBINT4) || (v->shape.rank != 2) || (v->channel_dim != 0) ||
        (v->data == NULL)) {
        return bad(r, "scales per group of no 4-bit matrix", i);
    }
    if ((group < 32) || (group % 32 != 0) || (v->shape.dim[1] % (size_t)group != 0)) {
        return bad(r, "groups that are not a multiple of 32 or do not divide the row", i);
    }
    v->zero = 8;
    v->group = (uint32_t)group;
    if (etc_xnn_count(&v->shape) / group > (int64_t)INT32_MAX) {
        return bad(r, "too many groups", i);
    }
    v->n_scales = (uint32_t)(v->shape.dim[0] * (v->shape.dim[1] / v->group));
    return read_scales(r, table, XNN_GROUP_CONSTANT, v, i);
}

static EtcStatus read_per_token(const XnnRead *r, uint32_t table, XnnValue *v, uint32_t i)
{
    v->n_token_dims = etc_flat_u32(&r->f, table, XNN_TOKEN_AXES);
    if ((v->type != XNN_QDINT8) || (v->data != NULL) || (v->n_token_dims < 1) ||
        (v->n_token_dims > v->shape.rank)) {
        return bad(r, "scales per token of no such value", i);
    }
    return ETC_OK;
}

static EtcStatus read_quant(const XnnRead *r, uint32_t quantized, XnnValue *v, uint32_t i)
{
    uint32_t table = etc_flat_table(&r->f, quantized, XNN_QUANTIZED_TABLE);
    v->quant = (XnnQuant)etc_flat_u8(&r->f, quantized, XNN_QUANTIZED_TYPE);
    switch (v->quant) {
    case XNN_PER_CHANNEL:
        return read_per_channel(r, table, v, i);
    case XNN_PER_TENSOR:
        return read_per_tensor(r, table, v, i);
    case XNN_PER_TOKEN:
        return read_per_token(r, table, v, i);
    case XNN_PER_GROUP:
        return read_per_group(r, table, v, i);
    case XNN_PLAIN:
    default:
        return bad(r, "quantized value without parameters", i);
    }
}

/* -- values ------------------------------------------------------------------------------- */

static EtcStatus read_sizes(const XnnRead *r, uint32_t tensor, XnnValue *v, uint32_t i)
{
    EtcFlatVec dims = etc_flat_vec(&r->f, tensor, XNN_TENSOR_DIMS);
    v->shape.rank = etc_flat_u32(&r->f, tensor, XNN_TENSOR_RANK);
    if (v->shape.rank > XNN_RANK) {
        return bad(r, "value of more than 6 dimensions", i);
    }
    if (dims.n != v->shape.rank) {
        return bad(r, "number of dimensions differs from that of the sizes", i);
    }
    for (uint32_t k = 0; k < dims.n; k++) {
        v->shape.dim[k] = (uint32_t)etc_flat_item_i32(dims, k);
        if (v->shape.dim[k] == 0) {
            return bad(r, "value without elements", i);
        }
    }
    return (etc_xnn_count(&v->shape) < 0) ? bad(r, "sizes of a value are too large", i) : ETC_OK;
}

static EtcStatus read_external(const XnnRead *r, uint32_t tensor, XnnValue *v, uint32_t i)
{
    uint32_t flags = etc_flat_u32(&r->f, tensor, XNN_TENSOR_FLAGS);
    v->external = etc_flat_u32(&r->f, tensor, XNN_TENSOR_EXTERNAL);
    if (flags > XNN_IS_OUTPUT) {
        return bad(r, "flags of a value are neither input nor output", i);
    }
    if ((v->external == XNN_NO_ID) != (flags == 0)) {
        return bad(r, "argument without a flag, or a flag without an argument", i);
    }
    v->is_input = flags == XNN_IS_INPUT;
    v->is_output = flags == XNN_IS_OUTPUT;
    if (flags == 0) {
        return ETC_OK;
    }
    if (v->external >= r->g->n_externals) {
        return bad(r, "number of an argument out of range", i);
    }
    if (r->g->external[v->external] != XNN_NO_ID) {
        return bad(r, "two values for one argument", i);
    }
    const int is_plain = (v->quant == XNN_PLAIN) || (v->type == XNN_QINT8) ||
                         (v->type == XNN_QUINT8);
    if ((v->data != NULL) || !is_plain) {
        return bad(r, "argument that is a constant, or has several scales", i);
    }
    r->g->external[v->external] = i;
    return ETC_OK;
}

static EtcStatus read_type(const XnnRead *r, uint32_t tensor, XnnValue *v, uint32_t i)
{
    v->type = (XnnType)etc_flat_scalar(&r->f, tensor, XNN_TENSOR_TYPE, 2);
    if ((v->type < XNN_F32) || (v->type > XNN_BF16)) {
        return bad(r, "datatype out of range", i);
    }
    if ((v->type == XNN_QPINT8) || (v->type == XNN_PFP32) || (v->type == XNN_BF16)) {
        return etc_xnn_fail(r->e, ETC_UNSUPPORTED, "datatype that this build lacks", i);
    }
    return ETC_OK;
}

static EtcStatus read_value(const XnnRead *r, uint32_t row, uint32_t i)
{
    XnnValue *v = &r->g->value[i];
    uint8_t type = etc_flat_u8(&r->f, row, XNN_VALUE_TYPE);
    uint32_t tensor = etc_flat_table(&r->f, row, XNN_VALUE_TABLE), quantized = 0;
    if (type == 2) {
        quantized = tensor;
        tensor = etc_flat_table(&r->f, quantized, XNN_QUANTIZED_TENSOR);
    }
    if ((type == 0) || (tensor == 0)) {
        return bad(r, "value without a tensor", i);
    }
    r->id[i].id = etc_flat_u32(&r->f, tensor, XNN_TENSOR_ID);
    r->id[i].place = i;
    EtcStatus status = read_type(r, tensor, v, i);
    status = (status == ETC_OK) ? read_sizes(r, tensor, v, i) : status;
    status = (status == ETC_OK) ? read_data(r, tensor, v, i) : status;
    if (status == ETC_OK) {
        int is_plain = (v->type == XNN_F32) || (v->type == XNN_F16) || (v->type == XNN_INT32);
        if (is_plain != (quantized == 0)) {
            return bad(r, "datatype and quantization contradict each other", i);
        }
        status = quantized ? read_quant(r, quantized, v, i) : ETC_OK;
    }
    return (status == ETC_OK) ? read_external(r, tensor, v, i) : status;
}

static int by_id(const void *a, const void *b)
{
    const XnnId *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static EtcStatus sort_ids(const XnnRead *r)
{
    qsort(r->id, r->g->n_values, sizeof *r->id, by_id);
    for (uint32_t i = 0; i < r->g->n_values; i++) {
        if (r->id[i].id == XNN_NO_ID) {
            return bad(r, "value without an id", r->id[i].place);
        }
        if ((i > 0) && (r->id[i].id == r->id[i - 1].id)) {
            return bad(r, "two values of one id", r->id[i].place);
        }
    }
    return ETC_OK;
}

/* -- graph -------------------------------------------------------------------------------- */

static EtcStatus allocate(XnnRead *r, EtcFlatVec values, EtcFlatVec nodes, uint32_t root)
{
    XnnGraph *g = r->g;
    g->n_externals = etc_flat_u32(&r->f, root, XNN_GRAPH_EXTERNALS);
    if ((values.item == NULL) || (nodes.item == NULL)) {
        return bad(r, "graph without values or nodes", XNN_NO_ID);
    }
    if ((g->n_externals > XNN_MOST_EXTERNALS) || (values.n > MOST_VALUES)) {
        return bad(r, "too many arguments or values", XNN_NO_ID);
    }
    g->value = calloc((size_t)values.n + 1, sizeof *g->value);
    g->node = calloc((size_t)nodes.n + 1, sizeof *g->node);
    g->external = calloc((size_t)g->n_externals + 1, sizeof *g->external);
    r->id = calloc((size_t)values.n + 1, sizeof *r->id);
    if (!g->value || !g->node || !g->external || !r->id) {
        return etc_xnn_fail(r->e, ETC_NO_MEMORY, "no memory for the graph", XNN_NO_ID);
    }
    memset(g->external, 0xFF, (size_t)g->n_externals * sizeof *g->external);
    g->n_values = values.n;
    g->n_nodes = nodes.n;
    return ETC_OK;
}

/* Checks that a node computes every output, and that the sizes which follow from those of the
 * inputs are the declared ones. */
static EtcStatus check_whole(const XnnRead *r)
{
    XnnGraph *g = r->g;
    XnnShape *shape = calloc((size_t)g->n_values + 1, sizeof *shape);
    if (shape == NULL) {
        return etc_xnn_fail(r->e, ETC_NO_MEMORY, "no memory for the graph", XNN_NO_ID);
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        shape[i] = g->value[i].shape;
    }
    EtcStatus status = etc_xnn_infer(g, shape, r->e);
    for (uint32_t i = 0; (status == ETC_OK) && (i < g->n_values); i++) {
        const XnnValue *v = &g->value[i];
        if (v->is_output && !v->is_made) {
            status = bad(r, "output that no node makes", i);
        } else if (!etc_xnn_same(&shape[i], &v->shape)) {
            status = bad(r, "sizes of a value differ from what its node makes", i);
        }
    }
    free(shape);
    return status;
}

/* Returns 1 if outputs need one of the node's results. */
static int is_needed(const XnnNode *n, const uint8_t *needed)
{
    int is = 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        is |= needed[n->out[k]];
    }
    return is;
}

/* libXNNPACK drops a node whose result nobody reads, and then aborts at the node before it if
 * nobody else reads that one.  Therefore such nodes are dropped here.  Nodes come after those that
 * they read. */
static EtcStatus drop_unneeded(const XnnRead *r)
{
    XnnGraph *g = r->g;
    uint32_t n = 0;
    uint8_t *needed = calloc((size_t)g->n_values + 1, 1);
    if (needed == NULL) {
        return etc_xnn_fail(r->e, ETC_NO_MEMORY, "no memory for the graph", XNN_NO_ID);
    }
    for (uint32_t i = 0; i < g->n_values; i++) {
        needed[i] = g->value[i].is_output;
    }
    for (uint32_t i = g->n_nodes; i > 0; i--) {
        const XnnNode *node = &g->node[i - 1];
        for (uint32_t k = 0; is_needed(node, needed) && (k < node->n_in); k++) {
            if (node->in[k] != XNN_NO_ID) {
                needed[node->in[k]] = 1;
            }
        }
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (is_needed(&g->node[i], needed)) {
            g->node[n] = g->node[i];
            n++;
        }
    }
    g->n_nodes = n;
    free(needed);
    return ETC_OK;
}

static EtcStatus read_graph(XnnRead *r)
{
    uint32_t root = etc_flat_root(&r->f);
    EtcFlatVec values = etc_flat_vec(&r->f, root, XNN_GRAPH_VALUES);
    EtcFlatVec nodes = etc_flat_vec(&r->f, root, XNN_GRAPH_NODES);
    r->constants = etc_flat_vec(&r->f, root, XNN_GRAPH_CONSTANTS);
    EtcStatus status = allocate(r, values, nodes, root);
    for (uint32_t i = 0; (status == ETC_OK) && (i < values.n); i++) {
        status = read_value(r, etc_flat_item_table(&r->f, values, i), i);
    }
    status = (status == ETC_OK) ? sort_ids(r) : status;
    for (uint32_t i = 0; (status == ETC_OK) && (i < nodes.n); i++) {
        status = etc_xnn_read_node(r, etc_flat_item_table(&r->f, nodes, i), i);
    }
    status = (status == ETC_OK) ? check_whole(r) : status;
    return (status == ETC_OK) ? drop_unneeded(r) : status;
}

EtcStatus etc_xnn_read(const uint8_t *blob, uint64_t n_bytes, const XnnNames *names, XnnGraph *g,
                       EtcError *e)
{
    XnnRead r;
    memset(&r, 0, sizeof r);
    memset(g, 0, sizeof *g);
    r.names = names;
    r.g = g;
    r.e = e;
    EtcStatus status = read_header(&r, blob, n_bytes);
    status = (status == ETC_OK) ? read_graph(&r) : status;
    free(r.id);
    return status;
}

void etc_xnn_free(XnnGraph *g)
{
    for (uint32_t i = 0; i < g->n_values; i++) {
        free(g->value[i].own);
    }
    free(g->value);
    free(g->node);
    free(g->external);
    memset(g, 0, sizeof *g);
}
