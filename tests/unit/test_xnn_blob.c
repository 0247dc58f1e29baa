/* test_xnn_blob.c -- tests the blobs of the XNNPACK backend.  The checked reader of runtime-lite
 * turns each into a text, values first, then nodes, which is compared with the expected one. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "partition/partition.h"
#include "ir/session.h"
#include "passes/passes.h"
#include "runtime-lite/delegates/xnn_graph.h"

enum { MOST_NAMES = 64 };

static const char *const type_name[] = {
    [XNN_F32] = "f32",       [XNN_F16] = "f16",       [XNN_QINT8] = "qint8",
    [XNN_QCINT8] = "qcint8", [XNN_QINT32] = "qint32", [XNN_QCINT32] = "qcint32",
    [XNN_QCINT4] = "qcint4", [XNN_QDINT8] = "qdint8", [XNN_QBINT4] = "qbint4"};

static const char *const kind_name[XNN_KINDS] = {
    [XNN_ADD] = "add", [XNN_FULLY_CONNECTED] = "fully_connected", [XNN_SOFTMAX] = "softmax",
    [XNN_SIGMOID] = "sigmoid", [XNN_TRANSPOSE] = "transpose", [XNN_CLAMP] = "clamp",
    [XNN_CONV] = "conv", [XNN_DIV] = "div", [XNN_RESIZE] = "resize", [XNN_PAD] = "pad",
    [XNN_AVG_POOL] = "avg_pool", [XNN_DEPTHWISE] = "depthwise", [XNN_MAX_POOL] = "max_pool",
    [XNN_MULTIPLY] = "multiply", [XNN_SUBTRACT] = "subtract", [XNN_CONVERT] = "convert",
    [XNN_GLOBAL_POOL] = "global_pool", [XNN_RESHAPE] = "reshape", [XNN_LEAKY_RELU] = "leaky_relu",
    [XNN_SQUARE] = "square", [XNN_ELU] = "elu", [XNN_CONCAT2] = "concat2",
    [XNN_CONCAT3] = "concat3", [XNN_SLICE] = "slice", [XNN_BATCH_MATMUL] = "batch_matmul",
    [XNN_CONV_TRANSPOSE] = "conv_transpose", [XNN_RSQRT] = "rsqrt", [XNN_GELU] = "gelu",
    [XNN_TANH] = "tanh", [XNN_COPY] = "copy"};

/* -- a model's blob -------------------------------------------------------------------------- */

/* Positive numbers, of each state others; integers of four bits. */
static void fill(Program *p)
{
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        s->n_bytes = type_bytes(s->type);
        s->data = NEW(p->arena, uint8_t, s->n_bytes + 1);
        for (int64_t k = 0; k < type_numel(s->type); k++) {
            float f = 0.25f + (float)i + (float)k / 1024;
            uint16_t h = half_of(f);
            if (s->type.dtype == ETC_I8)
                s->data[k] = (uint8_t)((k + i) % 16 - 8);
            else if (s->type.dtype == ETC_F32)
                memcpy(s->data + k * 4, &f, 4);
            else if (s->type.dtype == ETC_F16)
                memcpy(s->data + k * 2, &h, 2);
        }
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const EtcNamed *)a)->key, ((const EtcNamed *)b)->key);
}

static XnnNames names_of(const Program *p, EtcNamed *row)
{
    XnnNames names = {row, 0};
    for (int i = 0; i < p->n_states; i++) {
        const State *s = p->state[i];
        EtcNamed named = {s->fqn, (uint32_t)strlen(s->fqn), state_contents(s, p->arena),
                          (uint64_t)type_bytes(s->type)};
        if (s->kind == ST_NAMED)
            row[names.n++] = named;
    }
    qsort(row, names.n, sizeof *row, by_key);
    return names;
}

static const State *blob_of(const Program *p)
{
    const State *blob = NULL;
    for (int i = 0; i < p->n_states; i++)
        if (p->state[i]->kind == ST_BLOB) {
            cr_assert_null(blob, "several regions");
            blob = p->state[i];
        }
    cr_assert_not_null(blob, "no region");
    return blob;
}

/* -- as text --------------------------------------------------------------------------------- */

static void put_sizes(FILE *out, const XnnShape *s)
{
    for (uint32_t k = 0; k < s->rank; k++)
        fprintf(out, "%s%zu", k ? "," : "[", s->dim[k]);
    fputs("]", out);
}

/* A key without the number that makes it unique. */
static void put_key(FILE *out, const XnnNames *names, const void *data)
{
    for (uint32_t i = 0; i < names->n; i++)
        if (names->row[i].data == data)
            fprintf(out, " %.*s", (int)strcspn(names->row[i].key, "#"), names->row[i].key);
}

/* The first two elements: where an axis moved, the second tells. */
static void put_start(FILE *out, const XnnValue *v)
{
    bool is_half = v->type == XNN_QCINT4 || v->type == XNN_QBINT4;
    uint64_t size = v->type == XNN_F32 || v->type == XNN_QCINT32 ? 4 : v->type == XNN_F16 ? 2 : 1;
    for (uint64_t k = 0; k < 2 && k * size < v->n_bytes; k++) {
        float f = 0;
        int32_t n = 0;
        uint16_t h = 0;
        memcpy(&f, v->data + k * size, size == 4 ? 4 : 0);
        memcpy(&n, v->data + k * size, size == 4 ? 4 : 0);
        memcpy(&h, v->data + k * size, size == 2 ? 2 : 0);
        fputs(k ? ", " : " = ", out);
        if (v->type == XNN_F32)
            fprintf(out, "%g", (double)f);
        else if (v->type == XNN_F16)
            fprintf(out, "%g", half_value(h));
        else if (is_half)
            fprintf(out, "0x%02x", v->data[k]);
        else
            fprintf(out, "%d", size == 4 ? n : (int8_t)v->data[k]);
    }
}

static void put_value(FILE *out, const XnnValue *v, int i, const XnnNames *names)
{
    fprintf(out, "%d %s", i, type_name[v->type]);
    put_sizes(out, &v->shape);
    if (v->data) {
        put_key(out, names, v->data);
        put_start(out, v);
    }
    if (v->is_input || v->is_output)
        fprintf(out, " %s %u", v->is_input ? "in" : "out", v->external);
    if (v->quant == XNN_PER_TENSOR)
        fprintf(out, " scale %g zero %d", (double)v->scale, v->zero);
    if (v->quant == XNN_PER_TOKEN)
        fprintf(out, " tokens %u", v->n_token_dims);
    if (v->scales) {
        fprintf(out, " by %u of axis %u", v->n_scales, v->channel_dim);
        put_key(out, names, v->scales);
    }
    if (v->group)
        fprintf(out, " group %u", v->group);
    fputs("\n", out);
}

static void put_fields(FILE *out, const XnnNode *n)
{
    uint32_t last = 0;
    for (uint32_t k = 0; k < XNN_FIELDS; k++)
        last = n->field[k] ? k + 1 : last;
    for (uint32_t k = 0; k < last; k++)
        fprintf(out, "%s%u", k ? " " : " (", n->field[k]);
    fputs(last ? ")" : "", out);
    if (n->number != 0)
        fprintf(out, " %g", (double)n->number);
    for (int k = 0; k < 2; k++)
        if ((k ? n->b : n->a).rank) {
            fputs(" ", out);
            put_sizes(out, k ? &n->b : &n->a);
        }
}

static void put_node(FILE *out, const XnnNode *n)
{
    cr_assert_not_null(kind_name[n->kind], "kind %d has no name here", (int)n->kind);
    fprintf(out, "%s", kind_name[n->kind]);
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] == XNN_NO_ID)
            fputs(" -", out);
        else
            fprintf(out, " %u", n->in[k]);
    fprintf(out, " to %u", n->out[0]);
    put_fields(out, n);
    if (n->flags)
        fprintf(out, " flags %u", n->flags);
    if (n->min > -1e30f || n->max < 1e30f)
        fprintf(out, " within %g %g", (double)n->min, (double)n->max);
    fputs("\n", out);
}

/* Readers of others look values up by their numbers as places. */
static void expect_numbers_that_are_places(const uint8_t *blob)
{
    enum { AT_GRAPH = 32 };
    uint32_t size;
    memcpy(&size, blob + XNN_AT_GRAPH_BYTES, sizeof size);
    EtcFlat f = {.data = blob + AT_GRAPH, .size = size};
    EtcFlatVec v = etc_flat_vec(&f, etc_flat_root(&f), XNN_GRAPH_VALUES);
    cr_assert_gt(v.n, 0);
    for (uint32_t i = 0; i < v.n; i++) {
        uint32_t row = etc_flat_item_table(&f, v, i), t = etc_flat_table(&f, row, XNN_VALUE_TABLE);
        if (etc_flat_u8(&f, row, XNN_VALUE_TYPE) == 2)
            t = etc_flat_table(&f, t, XNN_QUANTIZED_TENSOR);
        cr_expect_eq(etc_flat_u32(&f, t, XNN_TENSOR_ID), i);
    }
}

static char *described(const char *body)
{
    static const char *const pass[] = {"partition", "drop_states"};
    static const Backend *const chain[] = {&xnnpack_backend};
    char *text = NULL, *got = NULL, *said = NULL;
    size_t len;
    cr_assert(asprintf(&text, "program \"m.pt2\" stage core\n%s\n", body) > 0);
    FILE *out = open_memstream(&got, &len), *errors = open_memstream(&said, &len);
    Diag d = {.out = errors};
    Arena *a = arena_new();
    Source src = {.file = "m.etir", .text = text, .line = 1};
    Program *p = program_parse(a, &src, &d);
    bool ok = p && program_verify(p, &d);
    if (ok) {
        fill(p);
        p->session->backend = chain;
        p->session->n_backends = 1;
        p->session->delegate_all = true;
        ok = passes_run(p, pass, 2, (PassOptions){0}, &d);
    }
    fclose(errors);
    cr_assert(ok, "%s", said);
    EtcNamed row[MOST_NAMES];
    EtcError e = {.index = -1};
    XnnNames names = names_of(p, row);
    XnnGraph g;
    const State *blob = blob_of(p);
    EtcStatus status = etc_xnn_read(blob->data, (uint64_t)type_bytes(blob->type), &names, &g, &e);
    cr_assert_eq(status, ETC_OK, "%s (%d)", e.what, (int)e.index);
    expect_numbers_that_are_places(blob->data);
    for (uint32_t i = 0; i < g.n_values; i++)
        put_value(out, &g.value[i], (int)i, &names);
    for (uint32_t i = 0; i < g.n_nodes; i++)
        put_node(out, &g.node[i]);
    fclose(out);
    etc_xnn_free(&g);
    arena_free(a);
    free(text);
    free(said);
    return got;
}

#define EXPECT(body, want)                                                                         \
    do {                                                                                           \
        char *got = described(body);                                                               \
        cr_expect_str_eq(got, want, "got\n%s", got);                                               \
        free(got);                                                                                 \
    } while (0)

/* -- floats ---------------------------------------------------------------------------------- */

Test(xnn_blob, linear_and_clamp)
{
    EXPECT("param %w = \"net.w\" : f32[4,8] in \"-\"+0\n"
           "param %b = \"net.b\" : f32[4] in \"-\"+128\n"
           "method @forward(%x: f32[3,8]) {\n"
           "  %y = aten.linear.default(%x, %w, %b) : f32[3,4]\n"
           "  %z = aten.hardtanh.default(%y, -1.0, 2.0) : f32[3,4]\n"
           "  return %z\n}",
           "0 f32[3,8] in 0\n"
           "1 f32[4,8] net.w = 0.25, 0.250977\n"
           "2 f32[3,4] out 1\n"
           "3 f32[4] net.b = 1.25, 1.25098\n"
           "fully_connected 0 1 3 to 2 within -1 2\n");
}

Test(xnn_blob, products_of_columns)
{
    EXPECT("param %w = \"w\" : f32[8,4] in \"-\"+0\n"
           "param %b = \"b\" : f32[4] in \"-\"+128\n"
           "method @forward(%x: f32[3,8]) {\n"
           "  %y = aten.addmm.default(%b, %x, %w, beta=1, alpha=1) : f32[3,4]\n"
           "  return %y\n}",
           "0 f32[3,8] in 0\n"
           "1 f32[8,4] w = 0.25, 0.250977\n"
           "2 f32[3,4] out 1\n"
           "3 f32[4] b = 1.25, 1.25098\n"
           "fully_connected 0 1 3 to 2 flags 1\n");
}

Test(xnn_blob, convolution)
{
    EXPECT("param %w = \"w\" : f32[6,2,3,5] in \"-\"+0\n"
           "param %b = \"b\" : f32[6] in \"-\"+720\n"
           "method @forward(%x: f32[1,4,9,9]) {\n"
           "  %y = aten.convolution.default(%x, %w, %b, [2, 1], [1, 3], [1, 2], false, [0, 0], 2) "
           ": f32[1,6,5,7]\n"
           "  %z = aten.relu.default(%y) : f32[1,6,5,7]\n"
           "  return %z\n}",
           "0 f32[1,4,9,9] in 0\n"
           "1 f32[1,9,9,4]\n"
           "2 f32[6,3,5,2] w = 0.25, 0.264648\n"
           "3 f32[6] b = 1.25, 1.25098\n"
           "4 f32[1,5,7,6]\n"
           "5 f32[1,6,5,7] out 1\n"
           "transpose 0 to 1 (4) [0,2,3,1]\n"
           "conv 1 2 3 to 4 (1 3 1 3 3 5 2 1 1 2 2 3 2) within 0 inf\n"
           "transpose 4 to 5 (4) [0,3,1,2]\n");
}

Test(xnn_blob, depthwise_convolution)
{
    EXPECT("param %w = \"w\" : f32[8,1,3,3] in \"-\"+0\n"
           "method @forward(%x: f32[1,4,9,9]) {\n"
           "  %y = aten.convolution.default(%x, %w, none, [1, 1], [1, 1], [1, 1], false, "
           "[0, 0], 4) "
           ": f32[1,8,9,9]\n"
           "  return %y\n}",
           "0 f32[1,4,9,9] in 0\n"
           "1 f32[1,9,9,4]\n"
           "2 f32[1,3,3,8] w = 0.25, 0.258789\n"
           "3 f32[1,9,9,8]\n"
           "4 f32[1,8,9,9] out 1\n"
           "transpose 0 to 1 (4) [0,2,3,1]\n"
           "depthwise 1 2 - to 3 (1 1 1 1 3 3 1 1 1 1 1 2 4)\n"
           "transpose 3 to 4 (4) [0,3,1,2]\n");
}

Test(xnn_blob, transposed_convolution)
{
    EXPECT("param %w = \"w\" : f32[4,3,2,2] in \"-\"+0\n"
           "method @forward(%x: f32[1,4,5,5]) {\n"
           "  %y = aten.convolution.default(%x, %w, none, [2, 2], [0, 0], [1, 1], true, [1, 0], 1) "
           ": f32[1,3,11,10]\n"
           "  return %y\n}",
           "0 f32[1,4,5,5] in 0\n"
           "1 f32[1,5,5,4]\n"
           "2 f32[3,2,2,4] w = 0.25, 0.261719\n"
           "3 f32[1,11,10,3]\n"
           "4 f32[1,3,11,10] out 1\n"
           "transpose 0 to 1 (4) [0,2,3,1]\n"
           "conv_transpose 1 2 - to 3 (0 0 0 0 2 2 2 2 1 1 4 3 1 1)\n"
           "transpose 3 to 4 (4) [0,3,1,2]\n");
}

Test(xnn_blob, pools_and_means)
{
    EXPECT("method @forward(%x: f32[1,4,8,8]) {\n"
           "  %p = aten.max_pool2d.default(%x, [2, 2], [2, 2], [0, 0], [1, 1], false) "
           ": f32[1,4,4,4]\n"
           "  %q = aten.avg_pool2d.default(%p, [2, 2], [2, 2], [0, 0], false, false, none) "
           ": f32[1,4,2,2]\n"
           "  %m = aten.mean.dim(%q, [2, 3], true, dtype=none) : f32[1,4,1,1]\n"
           "  return %m\n}",
           "0 f32[1,4,8,8] in 0\n"
           "1 f32[1,8,8,4]\n"
           "2 f32[1,4,4,4]\n"
           "3 f32[1,2,2,4]\n"
           "4 f32[1,1,1,4]\n"
           "5 f32[1,4,1,1] out 1\n"
           "transpose 0 to 1 (4) [0,2,3,1]\n"
           "max_pool 1 to 2 (0 0 0 0 2 2 2 2 1 1)\n"
           "avg_pool 2 to 3 (0 0 0 0 2 2 2 2 1 1)\n"
           "global_pool 3 to 4 flags 64\n"
           "reshape 4 to 5 (4) [1,4,1,1]\n");
}

Test(xnn_blob, attention)
{
    EXPECT("method @forward(%q: f32[1,2,5,8], %k: f32[1,2,7,8], %v: f32[1,2,7,6]) {\n"
           "  %y = aten.scaled_dot_product_attention.default(%q, %k, %v, none, 0.0, "
           "false, scale=0.5, enable_gqa=false) "
           ": f32[1,2,5,6]\n"
           "  return %y\n}",
           "0 f32[1,2,5,8] in 0\n"
           "1 f32[1,2,7,8] in 1\n"
           "2 f32[1,2,7,6] in 2\n"
           "3 f32[1,2,5,8]\n"
           "4 f32[1] number = 0.5\n"
           "5 f32[1,2,5,7]\n"
           "6 f32[1,2,5,7]\n"
           "7 f32[1,2,5,6] out 3\n"
           "multiply 0 4 to 3\n"
           "batch_matmul 3 1 to 5 flags 1\n"
           "softmax 5 to 6\n"
           "batch_matmul 6 2 to 7\n");
}

Test(xnn_blob, layer_norm)
{
    EXPECT("param %w = \"w\" : f32[8] in \"-\"+0\n"
           "param %b = \"b\" : f32[8] in \"-\"+32\n"
           "method @forward(%x: f32[3,8]) {\n"
           "  %y = aten.layer_norm.default(%x, [8], %w, %b, 0.001, false) : f32[3,8]\n"
           "  return %y\n}",
           "0 f32[3,8] in 0\n"
           "1 f32[1,8] filled = 0.125, 0.125\n"
           "2 f32[3,1]\n"
           "3 f32[3,8]\n"
           "4 f32[3,8]\n"
           "5 f32[1,8] filled = 0.125, 0.125\n"
           "6 f32[3,1]\n"
           "7 f32[3,1]\n"
           "8 f32[1] number = 0.001\n"
           "9 f32[3,1]\n"
           "10 f32[3,8]\n"
           "11 f32[3,8]\n"
           "12 f32[8] w = 0.25, 0.250977\n"
           "13 f32[3,8] out 1\n"
           "14 f32[8] b = 1.25, 1.25098\n"
           "fully_connected 0 1 - to 2\n"
           "subtract 0 2 to 3\n"
           "square 3 to 4\n"
           "fully_connected 4 5 - to 6\n"
           "add 6 8 to 7\n"
           "rsqrt 7 to 9\n"
           "multiply 3 9 to 10\n"
           "multiply 10 12 to 11\n"
           "add 11 14 to 13\n");
}

Test(xnn_blob, moves)
{
    EXPECT("method @forward(%x: f32[2,3,4], %y: f32[2,3,4]) {\n"
           "  %c = aten.cat.default([%x, %y], 1) : f32[2,6,4]\n"
           "  %p = aten.permute.default(%c, [2, 0, 1]) : f32[4,2,6]\n"
           "  %s = aten.slice.Tensor(%p, 2, 1, 5, 1) : f32[4,2,4]\n"
           "  %d = aten.constant_pad_nd.default(%s, [1, 2], 0.5) : f32[4,2,7]\n"
           "  %v = aten.view.default(%d, [8, 7]) : f32[8,7]\n"
           "  return %v\n}",
           "0 f32[2,3,4] in 0\n"
           "1 f32[2,3,4] in 1\n"
           "2 f32[2,6,4]\n"
           "3 f32[4,2,6]\n"
           "4 f32[4,2,4]\n"
           "5 f32[4,2,7]\n"
           "6 f32[8,7] out 2\n"
           "concat2 0 1 to 2 (1)\n"
           "transpose 2 to 3 (3) [2,0,1]\n"
           "slice 3 to 4 (3) [0,0,1] [4,2,4]\n"
           "pad 4 to 5 0.5 [0,0,1] [0,0,2]\n"
           "reshape 5 to 6 (2) [8,7]\n");
}

/* Two transposes that undo each other leave a value that nobody needs. */
Test(xnn_blob, what_nobody_needs_has_no_number)
{
    EXPECT("method @forward(%x: f32[2,3]) {\n"
           "  %a = aten.permute.default(%x, [1, 0]) : f32[3,2]\n"
           "  %b = aten.permute.default(%a, [1, 0]) : f32[2,3]\n"
           "  %c = aten.sigmoid.default(%b) : f32[2,3]\n"
           "  return %c\n"
           "}",
           "0 f32[2,3] in 0\n"
           "1 f32[2,3]\n"
           "2 f32[2,3] out 1\n"
           "transpose 0 to 1 (2) [0,1]\n"
           "sigmoid 1 to 2\n");
}

Test(xnn_blob, functions_of_one_number)
{
    EXPECT("method @forward(%x: f32[2,8]) {\n"
           "  %a = aten.leaky_relu.default(%x, 0.125) : f32[2,8]\n"
           "  %b = aten.elu.default(%a, 1.0, 1.0, 1.0) : f32[2,8]\n"
           "  %c = aten.silu.default(%b) : f32[2,8]\n"
           "  %d = aten._softmax.default(%c, -1, false) : f32[2,8]\n"
           "  return %d\n}",
           "0 f32[2,8] in 0\n"
           "1 f32[2,8]\n"
           "2 f32[2,8]\n"
           "3 f32[2,8]\n"
           "4 f32[2,8]\n"
           "5 f32[2,8] out 1\n"
           "leaky_relu 0 to 1 0.125\n"
           "elu 1 to 2 1\n"
           "sigmoid 2 to 3\n"
           "multiply 2 3 to 4\n"
           "softmax 4 to 5\n");
}

/* -- floats of 16 bits ------------------------------------------------------------------------ */

Test(xnn_blob, halves)
{
    EXPECT("param %w = \"w\" : f16[4,8] in \"-\"+0\n"
           "param %b = \"b\" : f16[4] in \"-\"+64\n"
           "method @forward(%x: f16[3,8]) {\n"
           "  %y = aten.linear.default(%x, %w, %b) : f16[3,4]\n"
           "  %z = aten.mul.Scalar(%y, 0.125) : f16[3,4]\n"
           "  return %z\n}",
           "0 f16[3,8] in 0\n"
           "1 f16[4,8] w = 0.25, 0.250977\n"
           "2 f16[3,4]\n"
           "3 f16[4] b = 1.25, 1.25098\n"
           "4 f16[1] number = 0.125\n"
           "5 f16[3,4] out 1\n"
           "fully_connected 0 1 3 to 2\n"
           "multiply 2 4 to 5\n");
}

/* XNNPACK takes filters and biases of such convolutions in f32. */
Test(xnn_blob, convolution_of_halves)
{
    EXPECT("param %w = \"w\" : f16[6,4,1,3] in \"-\"+0\n"
           "param %b = \"b\" : f16[6] in \"-\"+144\n"
           "method @forward(%x: f16[1,4,5,5]) {\n"
           "  %y = aten.convolution.default(%x, %w, %b, [1, 1], [0, 1], [1, 1], false, [0, 0], 1) "
           ": f16[1,6,5,5]\n"
           "  return %y\n}",
           "0 f16[1,4,5,5] in 0\n"
           "1 f16[1,5,5,4]\n"
           "2 f32[6,1,3,4] w = 0.25, 0.25293\n"
           "3 f32[6] b = 1.25, 1.25098\n"
           "4 f16[1,5,5,6]\n"
           "5 f16[1,6,5,5] out 1\n"
           "transpose 0 to 1 (4) [0,2,3,1]\n"
           "conv 1 2 3 to 4 (0 1 0 1 1 3 1 1 1 1 4 6 1)\n"
           "transpose 4 to 5 (4) [0,3,1,2]\n");
}

/* -- integers -------------------------------------------------------------------------------- */

#define QUANTIZE(to, x, type, point)                                                               \
    "  %q" to " = quantized_decomposed.quantize_per_tensor.default(%" x ", " point                 \
    ", -128, 127, i8) : i8" type "\n"                                                              \
    "  %" to " = quantized_decomposed.dequantize_per_tensor.default(%q" to ", " point              \
    ", -128, 127, i8, out_dtype=none) : f32" type "\n"
#define WEIGHT(w, type, limits)                                                                    \
    "  %f" w " = quantized_decomposed.dequantize_per_channel.default(%" w ", %" w                  \
    "s, none, 0, " limits ", i8, none) : f32" type "\n"
#define TOKENS(to, x, type, scales)                                                                \
    "  %" to "s, %" to "z = quantized_decomposed.choose_qparams_per_token_asymmetric.default(%" x  \
    ", i8) : f64" scales ", i64" scales "\n"                                                       \
    "  %" to "q = quantized_decomposed.quantize_per_token.default(%" x ", %" to "s, %" to          \
    "z, -128, 127, i8) : i8" type "\n"                                                             \
    "  %" to " = quantized_decomposed.dequantize_per_token.default(%" to "q, %" to "s, %" to       \
    "z, -128, 127, i8, f32) : f32" type "\n"

Test(xnn_blob, static_convolution)
{
    EXPECT("buffer %w = \"w\" : i8[6,4,1,1] in \"-\"+0\n"
           "buffer %ws = \"ws\" : f32[6] in \"-\"+32\n"
           "buffer %b = \"b\" : f32[6] in \"-\"+64\n"
           "method @forward(%x: f32[1,4,3,3]) {\n" QUANTIZE("a", "x", "[1,4,3,3]", "0.5, 3")
           WEIGHT("w", "[6,4,1,1]", "-127, 127")
           "  %c = aten.convolution.default(%a, %fw, %b, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) "
           ": f32[1,6,3,3]\n"
           "  %r = aten.relu.default(%c) : f32[1,6,3,3]\n" QUANTIZE("o", "r", "[1,6,3,3]",
                                                                    "0.25, -128")
           "  return %o\n}",
           "0 f32[1,4,3,3] in 0\n"
           "1 qint8[1,4,3,3] scale 0.5 zero 3\n"
           "2 qint8[1,3,3,4] scale 0.5 zero 3\n"
           "3 qcint8[6,1,1,4] w = -8, -7 by 6 of axis 0 w.scale\n"
           "4 qcint32[6] b = 4, 4 by 6 of axis 0 b.scale\n"
           "5 qint8[1,3,3,6] scale 0.25 zero -128\n"
           "6 qint8[1,6,3,3] scale 0.25 zero -128\n"
           "7 f32[1,6,3,3] out 1\n"
           "convert 0 to 1\n"
           "transpose 1 to 2 (4) [0,2,3,1]\n"
           "conv 2 3 4 to 5 (0 0 0 0 1 1 1 1 1 1 4 6 1) within 0 inf\n"
           "transpose 5 to 6 (4) [0,3,1,2]\n"
           "convert 6 to 7\n");
}

Test(xnn_blob, static_depthwise_and_sum)
{
    EXPECT("buffer %w = \"w\" : i8[4,1,3,3] in \"-\"+0\n"
           "buffer %ws = \"ws\" : f32[4] in \"-\"+64\n"
           "method @forward(%x: f32[1,4,3,3]) {\n" QUANTIZE("a", "x", "[1,4,3,3]", "0.5, 3")
           WEIGHT("w", "[4,1,3,3]", "-127, 127")
           "  %c = aten.convolution.default(%a, %fw, none, [1, 1], [1, 1], [1, 1], false, "
           "[0, 0], 4) "
           ": f32[1,4,3,3]\n" QUANTIZE("e", "c", "[1,4,3,3]", "1.0, 0")
           "  %s = aten.add.Tensor(%e, %a, 1) "
           ": f32[1,4,3,3]\n" QUANTIZE("o", "s", "[1,4,3,3]", "0.25, -5")
           "  return %o\n}",
           "0 f32[1,4,3,3] in 0\n"
           "1 qint8[1,4,3,3] scale 0.5 zero 3\n"
           "2 qint8[1,3,3,4] scale 0.5 zero 3\n"
           "3 qcint8[1,3,3,4] w = -8, 1 by 4 of axis 3 w.scale\n"
           "4 qint8[1,3,3,4] scale 1 zero 0\n"
           "5 qint8[1,3,3,4] scale 0.25 zero -5\n"
           "6 qint8[1,4,3,3] scale 0.25 zero -5\n"
           "7 f32[1,4,3,3] out 1\n"
           "convert 0 to 1\n"
           "transpose 1 to 2 (4) [0,2,3,1]\n"
           "depthwise 2 3 - to 4 (1 1 1 1 3 3 1 1 1 1 1 1 4)\n"
           "add 4 2 to 5\n"
           "transpose 5 to 6 (4) [0,3,1,2]\n"
           "convert 6 to 7\n");
}

Test(xnn_blob, means_of_other_axes_are_floats)
{
    EXPECT("method @forward(%x: f32[1,4,3,2]) {\n" QUANTIZE("a", "x", "[1,4,3,2]", "0.5, 3")
           "  %m = aten.mean.dim(%a, [-1, 1], false, dtype=none) : f32[1,3]\n" QUANTIZE(
               "o", "m", "[1,3]", "0.25, -5") "  return %o\n}",
           "0 f32[1,4,3,2] in 0\n"
           "1 qint8[1,4,3,2] scale 0.5 zero 3\n"
           "2 f32[1,4,3,2]\n"
           "3 f32[1,3,4,2]\n"
           "4 f32[1,3,8]\n"
           "5 f32[1,8] filled = 0.125, 0.125\n"
           "6 f32[1,3,1]\n"
           "7 f32[1,3]\n"
           "8 qint8[1,3] scale 0.25 zero -5\n"
           "9 f32[1,3] out 1\n"
           "convert 0 to 1\n"
           "convert 1 to 2\n"
           "transpose 2 to 3 (4) [0,2,1,3]\n"
           "reshape 3 to 4 (3) [1,3,8]\n"
           "fully_connected 4 5 - to 6\n"
           "reshape 6 to 7 (2) [1,3]\n"
           "convert 7 to 8\n"
           "convert 8 to 9\n");
}

Test(xnn_blob, linears_of_tokens)
{
    EXPECT("buffer %w = \"w\" : i8[5,32] in \"-\"+0\n"
           "buffer %ws = \"ws\" : f32[5] in \"-\"+160\n"
           "buffer %b = \"b\" : f32[5] in \"-\"+192\n"
           "method @forward(%x: f32[2,32]) {\n" TOKENS("a", "x", "[2,32]", "[2,1]")
           WEIGHT("w", "[5,32]", "-128, 127")
           "  %y = aten.linear.default(%a, %fw, %b) : f32[2,5]\n"
           "  return %y\n}",
           "0 f32[2,32] in 0\n"
           "1 qdint8[2,32] tokens 1\n"
           "2 qcint8[5,32] w = -8, -7 by 5 of axis 0 w.scale\n"
           "3 f32[2,5] out 1\n"
           "4 f32[5] b = 2.25, 2.25098\n"
           "convert 0 to 1\n"
           "fully_connected 1 2 4 to 3\n");
}

Test(xnn_blob, four_bits_per_channel)
{
    EXPECT("buffer %w = \"w\" : i8[6,32] in \"-\"+0\n"
           "buffer %ws = \"ws\" : f32[6] in \"-\"+192\n"
           "buffer %b = \"b\" : f32[6] in \"-\"+224\n"
           "buffer %v = \"v\" : i8[3,6] in \"-\"+256\n"
           "buffer %vs = \"vs\" : f32[3] in \"-\"+288\n"
           "buffer %c = \"c\" : f32[3] in \"-\"+304\n"
           "method @forward(%x: f32[2,32]) {\n" TOKENS("a", "x", "[2,32]", "[2,1]")
           WEIGHT("w", "[6,32]", "-8, 7")
           "  %y = aten.linear.default(%a, %fw, %b) : f32[2,6]\n" WEIGHT("v", "[3,6]", "-8, 7")
           "  %z = aten.linear.default(%y, %fv, %c) : f32[2,3]\n"
           "  return %z\n}",
           "0 f32[2,32] in 0\n"
           "1 qdint8[2,32] tokens 1\n"
           "2 qcint4[6,32] w = 0x10, 0x32 by 6 of axis 0 w.scale\n"
           "3 f32[2,6]\n"
           "4 f32[6] b = 2.25, 2.25098\n"
           "5 qcint4[3,6] v = 0x43, 0x65 by 3 of axis 0 v.scale\n"
           "6 f32[2,3] out 1\n"
           "7 f32[2,3]\n"
           "8 f32[3] c = 5.25, 5.25098\n"
           "convert 0 to 1\n"
           "fully_connected 1 2 4 to 3\n"
           "fully_connected 3 5 - to 7\n"
           "add 7 8 to 6\n");
}

Test(xnn_blob, four_bits_of_odd_rows_are_eight)
{
    EXPECT("buffer %w = \"w\" : i8[3,7] in \"-\"+0\n"
           "buffer %ws = \"ws\" : f32[3] in \"-\"+32\n"
           "method @forward(%x: f32[2,7]) {\n" WEIGHT("w", "[3,7]", "-8, 7")
           "  %y = aten.linear.default(%x, %fw, none) : f32[2,3]\n"
           "  return %y\n}",
           "0 f32[2,7] in 0\n"
           "1 qcint8[3,7] w = -8, -7 by 3 of axis 0 w.scale\n"
           "2 f32[2,3] out 1\n"
           "fully_connected 0 1 - to 2\n");
}

Test(xnn_blob, four_bits_per_group)
{
    EXPECT("buffer %w = \"w\" : i8[6,64] in \"-\"+0\n"
           "buffer %g = \"g\" : i8[12,32] in \"-\"+0\n"
           "buffer %gs = \"gs\" : f32[12] in \"-\"+384\n"
           "method @forward(%x: f32[2,64]) {\n" TOKENS("a", "x", "[2,64]", "[2,1]")
           WEIGHT("g", "[12,32]", "-8, 7")
           "  %v = aten.view.default(%fg, [6, 64]) : f32[6,64]\n"
           "  %y = aten.linear.default(%a, %v, none) : f32[2,6]\n"
           "  return %y\n}",
           "0 f32[2,64] in 0\n"
           "1 qdint8[2,64] tokens 1\n"
           "2 qbint4[6,64] g = 0x21, 0x43 by 12 of axis 0 g.scale group 32\n"
           "3 f32[2,6] out 1\n"
           "convert 0 to 1\n"
           "fully_connected 1 2 - to 3\n");
}
