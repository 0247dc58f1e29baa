/* test_infer.c -- compares infer rules with the types that torch recorded (tests/ops/infer.etir),
 * and symbolic sizes with plain ones; also tests the messages. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ir/ir.h"

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    fseek(f, 0, SEEK_END);
    size_t n = (size_t)ftell(f);
    char *text = calloc(1, n + 1);
    rewind(f);
    cr_assert_eq(fread(text, 1, n, f), n);
    fclose(f);
    return text;
}

static Program *parse(Arena *a, const char *text, Diag *d)
{
    Source src = {.file = "t.etir", .text = text, .line = 1};
    Program *p = program_parse(a, &src, d);
    cr_assert_not_null(p, "%s", text);
    return p;
}

/* -- against torch -------------------------------------------------------------------- */

Test(infer, types_are_torchs_and_what_torch_refuses_is_refused)
{
    char *text = read_file(ROOT "/tests/ops/infer.etir"), *said = NULL;
    size_t len = 0;
    Arena *a = arena_new();
    Diag loud = {.out = stderr};
    Source src = {.file = "infer.etir", .text = text, .line = 1};
    Program *good = program_parse(a, &src, &loud), *bad = program_parse(a, &src, &loud);
    cr_assert(good && bad && !*src.text);
    cr_assert(graph_infer(good->method[0], &loud));
    int n_good = 0, n_bad = 0;
    for (const Node *n = good->method[0]->first; n; n = n->next)
        n_good++;
    Diag quiet = {.out = open_memstream(&said, &len)};
    for (const Node *n = bad->method[0]->first; n; n = n->next, n_bad++) {
        Type out[8];
        cr_expect_not(op_infer(n->op)(n, out, &quiet), "line %d: %s was accepted", n->loc.line,
                      n->loc.op);
        cr_expect_eq(quiet.n[FAULT_MODEL], n_bad + 1, "line %d: not one message", n->loc.line);
    }
    fclose(quiet.out);
    cr_expect_gt(n_good, 1000);
    cr_expect_gt(n_bad, 500);
    arena_free(a);
    free(said);
    free(text);
}

/* -- symbolic sizes ------------------------------------------------------------------- */

/* Each template's # and $ are sizes of the input: the symbols, then all numbers they may be. */
static const char *const template[] = {
    "aten.add.Tensor(%x, %x, 1)",
    "aten.view.default(%x, [-1])",
    "aten.view.default(%x, [#, -1])",
    "aten.view.default(%x, [2, -1, $])",
    "aten.view.default(%x, [$, 6, #])",
    "aten.flatten.using_ints(%x, 1, -1)",
    "aten.permute.default(%x, [3, 1, 0, 2])",
    "aten.slice.Tensor(%x, 2, 1, 9223372036854775807, 2)",
    "aten.slice.Tensor(%x, 2, -3, -1, 1)",
    "aten.slice.Tensor(%x, 3, 2, 5, 2)",
    "aten.slice.Tensor(%x, 3, 0, #, 1)",
    "aten.cat.default([%x, %x], 2)",
    "aten.constant_pad_nd.default(%x, [1, 2, -1, 0], 0)",
    "aten.expand.default(%x, [-1, -1, #, -1])",
    "aten.sum.dim_IntList(%x, [2], true, none)",
    "aten.conv2d.default(%x, %w, none, [2, 3], [1, 2], [1, 1], 1)",
    "aten.convolution.default(%x, %w, none, [2, 1], [1, 1], [2, 1], true, [1, 0], 1)",
    "aten.max_pool2d.default(%x, [3, 2], [2, 2], [1, 1], [1, 1], true)",
    "aten.max_pool2d.default(%x, [2, 2], [], [1, 0], [1, 1], false)",
    "aten.avg_pool2d.default(%x, [2, 3], [3, 2], [1, 1], true, true, none)",
};

static char *instance(const char *call, const char *n, const char *m)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    const char *head = "program \"s\" stage aten\nsym %n in 3..40\nsym %m in 2..9\n"
                       "method @f(%x: f32[2,3,#,$], %w: f32[3,3,3,3]) {\n  %y = ";
    for (int part = 0; part < 2; part++)
        for (const char *c = part ? call : head; *c; c++)
            if (*c == '#' || *c == '$')
                fputs(*c == '#' ? n : m, f);
            else
                fputc(*c, f);
    fputs(" : f32[]\n  return %y\n}\n", f);
    fclose(f);
    return text;
}

static bool infer_first_node(Arena *a, const char *text, Type *out, Diag *d)
{
    const Node *n = parse(a, text, d)->method[0]->first;
    return op_infer(n->op)(n, out, d);
}

static void check_template(const char *call, Diag *quiet)
{
    Arena *a = arena_new();
    Diag loud = {.out = stderr};
    char *symbolic = instance(call, "%n", "%m");
    Type want, got;
    cr_assert(infer_first_node(a, symbolic, &got, &loud), "%s", call);
    for (int64_t n = 3; n <= 40; n++)
        for (int64_t m = 2; m <= 9; m++) {
            char n_text[8], m_text[8];
            snprintf(n_text, sizeof n_text, "%d", (int)n);
            snprintf(m_text, sizeof m_text, "%d", (int)m);
            char *plain = instance(call, n_text, m_text);
            bool ok = infer_first_node(a, plain, &want, quiet);
            free(plain);
            if (!ok) /* the input is too small for this window */
                continue;
            cr_assert_eq(got.rank, want.rank);
            for (int i = 0; i < want.rank; i++) {
                int64_t v, symbol[2] = {n, m};
                cr_assert(dim_eval(got.dim[i], symbol, &v));
                cr_assert_eq(v, want.dim[i].value, "%s: size %d at %d, %d is %d, expected %d", call,
                             i, (int)n, (int)m, (int)v, (int)want.dim[i].value);
            }
        }
    free(symbolic);
    arena_free(a);
}

Test(infer, symbolic_sizes_are_the_plain_ones)
{
    char *said = NULL;
    size_t len = 0;
    Diag quiet = {.out = open_memstream(&said, &len)};
    for (size_t i = 0; i < sizeof template / sizeof *template; i++)
        check_template(template[i], &quiet);
    fclose(quiet.out);
    free(said);
}

/* -- recorded types ------------------------------------------------------------------- */

static char *infer_message(const char *body, bool *ok)
{
    char text[1024], *said = NULL;
    size_t len = 0;
    Diag d = {.out = open_memstream(&said, &len)};
    Arena *a = arena_new();
    snprintf(text, sizeof text,
             "program \"m\" stage core sym %%n in 2..8 sym %%m in 9..16 "
             "method @f(%%x: f32[%%n,4], %%z: f32[%%m,4], %%p: bool[]) { %s }",
             body);
    *ok = graph_infer(parse(a, text, &d)->method[0], &d);
    fclose(d.out);
    arena_free(a);
    return said;
}

static void expect_refusal(const char *body, const char *want)
{
    bool ok;
    char *said = infer_message(body, &ok);
    cr_expect(!ok && strstr(said, want), "%s\nsaid: %s\nwant: %s", body, said, want);
    free(said);
}

Test(infer, differing_records_are_named_with_both_types)
{
    expect_refusal("%y = aten.relu.default(%x) : f32[%n,5] return %y",
                   "output %y is recorded as f32[%n,5], but is f32[%n,4]");
    expect_refusal("%y = aten.relu.default(%x) : f16[%n,4] return %y",
                   "output %y is recorded as f16[%n,4], but is f32[%n,4]");
    expect_refusal("%y = aten.relu.default(%x) : f32[%m,4] return %y",
                   "output %y is recorded as f32[%m,4], but is f32[%n,4]");
    expect_refusal("%y = aten.add.Tensor(%x, %z, 1) : f32[%n,4] return %y",
                   "cannot broadcast f32[%n,4] with f32[%m,4]");
}

/* Ranges of two sizes may meet where the sizes cannot. */
Test(infer, sizes_that_never_fit_are_refused)
{
    expect_refusal("%y = aten.constant_pad_nd.default(%x, [0, 0, 1, 0], 0) : f32[%n+1,4] "
                   "%w = aten.add.Tensor(%x, %y, 1) : f32[%n,4] return %w",
                   "cannot broadcast f32[%n,4] with f32[%n+1,4]");
    expect_refusal("%y = aten.view.default(%x, [%n, 8]) : f32[%n,8] return %y",
                   "4*%n elements do not fit into sizes of product 8*%n");
    expect_refusal("%y = aten.select.int(%x, 0, %n) : f32[4] return %y",
                   "index %n is out of range for size %n");
    expect_refusal("%y = aten.slice.Tensor(%x, 0, 0, 1, 1) : f32[%n,4] return %y",
                   "output %y is recorded as f32[%n,4], but is f32[1,4]");
    expect_refusal("%y = aten.constant_pad_nd.default(%x, [-6, 8], 0) : f32[%n,6] return %y",
                   "pad cuts 6 off axis 1 of size 4");
}

#define TRANSFORM(size, dim) \
    "%q = aten.full.default([" size "], 0, dtype=f32, layout=none, device=none, " \
    "pin_memory=none) : f32[" size "] " \
    "%y, %w = etc.fft_r2c(%q, [" dim "], 0, true) : f32[1], f32[1] return %y"

/* A real transform along two axes takes pairs. */
Test(infer, a_transform_has_the_axes_that_its_kernel_takes)
{
    static const char none[] = "expects an axis, or one and that of pairs, known sizes, no norm "
                               "and one side";
    expect_refusal(TRANSFORM("4,2", "0, 0"), none);
    expect_refusal(TRANSFORM("4,2", "1, 0"), none);
    expect_refusal(TRANSFORM("4,2", "1, 1"), none);
    expect_refusal(TRANSFORM("4,2", "2"), none);
    expect_refusal("%y, %w = etc.fft_r2c(%x, [0], 0, true) : f32[1], f32[1] return %y", none);
    expect_refusal(TRANSFORM("4,3", "0, 1"), "expects rows of 4 floats or pairs of them");
}

Test(infer, parts_fit_where_they_are_written)
{
    expect_refusal("%y = aten.slice_scatter.default(%x, %z, 0, 0, 2, 1) : f32[%n,4] return %y",
                   "src has size %m on axis 0, expected 2");
    expect_refusal("%y = aten.select_scatter.default(%x, %x, 0, 1) : f32[%n,4] return %y",
                   "src has rank 2, expected 1");
    expect_refusal("%o = aten.full.default([0], 0, dtype=f32, layout=none, device=none, "
                   "pin_memory=none) : f32[0] "
                   "%i = aten.full.default([], 0, dtype=i64, layout=none, device=none, "
                   "pin_memory=none) : i64[] "
                   "%y = aten.scatter_add.default(%o, 0, %i, %o) : f32[0] return %y",
                   "index has size 1 on axis 0, expected at most 0");
    expect_refusal("%i = aten.full.default([3], 0, dtype=i64, layout=none, device=none, "
                   "pin_memory=none) : i64[3] "
                   "%y = aten.index_copy.default(%x, 0, %i, %z) : f32[%n,4] return %y",
                   "cannot copy f32[%m,4] into 3 of f32[%n,4] along axis 0");
    expect_refusal("%y = aten.index_copy.default(%x, 9223372036854775807, %x, %z) : f32[%n,4] "
                   "return %y",
                   "axis 9223372036854775807 is out of range, expected -2 to 1");
    expect_refusal("%y = aten.neg.default(%z) : f32[%m,4] update %x = %y return",
                   "update of %x, f32[%n,4], with %y, f32[%m,4]");
}

Test(infer, an_int_is_what_its_node_says)
{
    expect_refusal("%k = aten.sym_size.int(%x, 0) : int(%m) return %k",
                   "output %k is recorded as int(%m), but is int(%n)");
    expect_refusal("%k = aten.sym_size.int(%x, 0) : int "
                   "%l = executorch_prim.mul.Scalar(%k, 2) : int(%n) return %l",
                   "output %l is recorded as int(%n), but is int(2*%n)");
    expect_refusal("%k = aten.sym_size.int(%x, 0) : int "
                   "%l = executorch_prim.floordiv.Scalar(%k, 0) : int(%n) return %l",
                   "output %l is recorded as int(%n), which nothing determines");
}

/* So many heads of %x. */
#define HEADS(n, name) "%" name " = aten.expand.default(%x, [" n ", -1, -1]) : f32[" n ",%n,4] "
#define ATTEND(mask, gqa)                                                          \
    "%y = aten.scaled_dot_product_attention.default(%q, %k, %v, " mask ", 0.0, false, " \
    "scale=none, enable_gqa=" gqa ") : f32[6,%n,4] return %y"

/* -- scales and zero points ------------------------------------------------------------ */

#define PER_TENSOR(scale, zero, dtype, lo, hi)                                             \
    "%y = quantized_decomposed.quantize_per_tensor.default(%x, " scale ", " zero ", " lo ", " \
    hi ", " dtype ") : " dtype "[%n,4] return %y"

Test(infer, scales_are_positive_and_zero_points_are_integers_of_the_dtype)
{
    bool ok;
    expect_refusal(PER_TENSOR("0.0", "0", "i8", "-128", "127"),
                   "node 'y' (quantized_decomposed.quantize_per_tensor.default): scale has the "
                   "value 0, expected one above 0 and finite");
    expect_refusal(PER_TENSOR("-0.5", "0", "i8", "-128", "127"), "scale has the value -0.5");
    expect_refusal(PER_TENSOR("inf", "0", "i8", "-128", "127"), "scale has the value inf");
    expect_refusal(PER_TENSOR("nan", "0", "i8", "-128", "127"), "scale has the value nan");
    expect_refusal(PER_TENSOR("0.5", "128", "i8", "-128", "127"),
                   "zero_point has the value 128, which no i8 holds");
    expect_refusal(PER_TENSOR("0.5", "-1", "u8", "0", "255"), "the value -1, which no u8 holds");
    expect_refusal(PER_TENSOR("0.5", "9223372036854775807", "i32", "-2147483648", "2147483647"),
                   "which no i32 holds");
    free(infer_message(PER_TENSOR("1e-45", "255", "u8", "0", "127"), &ok));
    cr_expect(ok);
}

/* Returns the message about three channels whose scales and zero points lie at odd places of a
 * file. */
static char *channels_message(const float scale[3], const int64_t zero[3], bool *ok)
{
    static const char text[] =
        "program \"m\" stage core const %s = \"s\" : f32[3] in \"-\"+2 "
        "const %z = \"z\" : i64[3] in \"-\"+15 method @f(%x: u8[2,3]) { %y = "
        "quantized_decomposed.dequantize_per_channel.default(%x, %s, %z, 1, 0, 255, u8, "
        "out_dtype=none) : f32[2,3] return %y }";
    char *said = NULL;
    uint8_t bytes[48] = {0};
    size_t len = 0;
    Diag d = {.out = open_memstream(&said, &len)};
    Arena *a = arena_new();
    Program *p = parse(a, text, &d);
    memcpy(bytes + 2, scale, 12);
    memcpy(bytes + 15, zero, 24);
    *ok = program_read_data(p, bytes, sizeof bytes, &d) && graph_infer(p->method[0], &d);
    fclose(d.out);
    arena_free(a);
    return said;
}

Test(infer, scales_of_channels_are_looked_at_where_they_are_known)
{
    static const struct {
        float scale[3];
        int64_t zero[3];
        const char *said; /* NULL: nothing */
    } row[] = {{{0.5f, 1e-45f, 3e38f}, {0, 128, 255}, NULL},
               {{0.5f, 0, 1}, {0}, "scales has the value 0"},
               {{1, 1, -1}, {0}, "scales has the value -1"},
               {{1, INFINITY, 1}, {0}, "scales has the value inf"},
               {{NAN, 1, 1}, {0}, "scales has the value nan"},
               {{1, 1, 1}, {0, 0, 256}, "zero_points has the value 256, which no u8 holds"},
               {{1, 1, 1}, {0, -1, 0}, "zero_points has the value -1, which no u8 holds"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        bool ok;
        char *said = channels_message(row[i].scale, row[i].zero, &ok);
        cr_expect_eq(ok, !row[i].said, "row %zu: %s", i, said);
        cr_expect(!row[i].said || strstr(said, row[i].said), "row %zu: %s", i, said);
        free(said);
    }
}

Test(infer, qparams_of_blocks_are_tensors)
{
    expect_refusal("%q = torchao.quantize_affine.default(%x, [1, 4], 0.5, none, i8) : i8[%n,4] return %q",
                   "scale is not a tensor");
    expect_refusal("%s = aten.amax.default(%x, [1], true) : f32[%n,1] %q = "
                   "torchao.quantize_affine.default(%x, [1, 4], %s, 0, i8) : i8[%n,4] return %q",
                   "zero_point is not a tensor");
}

/* -- more messages --------------------------------------------------------------------- */

Test(infer, attention_wants_masks_and_heads_that_fit)
{
    expect_refusal(HEADS("6", "q") HEADS("6", "k") HEADS("6", "v") ATTEND("%z", "false"),
                   "cannot broadcast f32[%m,4] to f32[6,%n,%n]");
    expect_refusal(HEADS("6", "q") HEADS("3", "k") HEADS("3", "v") ATTEND("none", "false"),
                   "cannot broadcast f32[6] with f32[3]");
    expect_refusal(HEADS("6", "q") HEADS("6", "k") HEADS("3", "v") ATTEND("none", "false"),
                   "cannot broadcast f32[6] with f32[3]");
    expect_refusal(HEADS("6", "q") HEADS("4", "k") HEADS("4", "v") ATTEND("none", "true"),
                   "the heads of query are not a multiple of those of key");
    expect_refusal(HEADS("6", "q") HEADS("3", "k") HEADS("2", "v") ATTEND("none", "true"),
                   "value has size 2, expected 3 of key's batch");
}

Test(infer, no_operator_writes_a_number)
{
    expect_refusal("%k = aten.sym_size.int(%x, 0) : int(%n) %y, %a, %b, %c = "
                   "aten._batch_norm_with_update.default(%x, none, none, %k, %k, 0.1, 1e-05) : "
                   "f32[%n,4], f32[4], f32[4], f32[4] return %y",
                   "running_mean is not a tensor");
}

Test(infer, a_view_in_place_has_the_bounds_of_its_input)
{
    expect_refusal("%y = executorch_prim.et_view.default(%x, [12]) : f32[12] return %y",
                   "its result has other bounds than self, in whose memory it lies");
}

Test(infer, a_group_norm_has_no_number_as_bias)
{
    expect_refusal("%y = aten.group_norm.default(%x, 2, none, 0, 1e-05, true) : f32[%n,4] return %y",
                   "bias is not a tensor");
}

Test(infer, a_packed_weight_has_columns_that_are_known)
{
    expect_refusal("%w = aten.expand.default(%x, [1, -1, -1]) : f32[1,%n,4] "
                   "%y = etc.packed_linear(%x, %w, none, none, none, %n) : f32[%n,%n] return %y",
                   "columns is not a plain integer");
}

Test(infer, a_packed_weight_of_halves_has_no_zero_points)
{
    expect_refusal("%h = aten._to_copy.default(%x, dtype=f16) : f16[%n,4] "
                   "%w = aten.expand.default(%h, [1, -1, -1]) : f16[1,%n,4] "
                   "%y = etc.packed_linear(%x, %w, none, 2, none, 16) : f32[%n,16] return %y",
                   "zero_points is not a tensor");
    expect_refusal("%h = aten._to_copy.default(%x, dtype=f16) : f16[%n,4] "
                   "%w = aten.expand.default(%h, [1, -1, -1]) : f16[1,%n,4] "
                   "%y = etc.packed_linear(%x, %w, none, %x, none, 16) : f32[%n,16] return %y",
                   "has no such kind of input, weight and scales");
}

Test(infer, overlapping_symbolic_records_are_kept)
{
    bool ok;
    char *said = infer_message(
        "%y = aten.slice.Tensor(%x, 0, 1, 9, 1) : f32[max(%n-1,1),4] return %y", &ok);
    cr_expect(ok, "%s", said);
    free(said);
}

#define TURN "higher_order.while_loop(graph (%t: f32[%n,4], %p: bool[]) { return %p }, " \
             "graph (%t: f32[%n,4], %p: bool[]) { "

Test(infer, what_a_loop_carries_keeps_its_type)
{
    expect_refusal("%y = " TURN "%u = aten.gt.Scalar(%t, 0) : bool[%n,4] return %u }, [%x], [%p]) "
                   ": f32[%n,4] return %y",
                   "output 0 of the nested graph is bool[%n,4], expected f32[%n,4]");
    expect_refusal("%y = " TURN "return %t }, [%x], [%p]) : f32[%n,5] return %y",
                   "result 0 is f32[%n,5], but its carried input is f32[%n,4]");
    expect_refusal("%q = aten.gt.Scalar(%x, 0) : bool[%n,4] "
                   "%y = higher_order.while_loop(graph (%t: f32[%n,4], %q: bool[%n,4]) { "
                   "return %q }, graph (%t: f32[%n,4], %q: bool[%n,4]) { return %t }, [%x], [%q]) "
                   ": f32[%n,4] return %y",
                   "what cond_graph returns has more than one element");
}

Test(infer, nested_graphs_take_and_give_what_their_node_says)
{
    expect_refusal("%y = higher_order.cond(%p, graph (%t: f32[%n,3]) { return %t }, "
                   "graph (%t: f32[%n,4]) { return %t }, [%x]) : f32[%n,4] return %y",
                   "input 0 of the nested graph is f32[%n,3], expected f32[%n,4]");
    expect_refusal(
        "%y = higher_order.cond(%p, graph (%t: f32[%n,4]) { return %t }, "
        "graph (%t: f32[%n,4]) { %u = aten.relu.default(%t) : f32[%n,1] return %t }, [%x]) "
        ": f32[%n,4] return %y",
        "output %u is recorded as");
}

/* -- costs ---------------------------------------------------------------------------- */

static void expect_cost(const char *node, int64_t macs, int64_t scratch)
{
    char text[1024];
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    snprintf(text, sizeof text,
             "program \"c\" stage grouped sym %%n in 1..4 sym %%u in 1..\n"
             "method @f(%%p: bool[], %%x: f32[%%n,4,8,8], %%w: f32[6,2,3,3], %%t: f32[4,6,3,3], "
             "%%a: f32[%%n,5], %%b: f32[5,7], %%o: f32[%%u,5]) { %s return }",
             node);
    const Node *n = parse(a, text, &d)->method[0]->first;
    cr_expect_eq(node_cost(n), macs, "%s costs %lld", node,
                 (long long)node_cost(n));
    cr_expect_eq(node_scratch(n), scratch, "%s", node);
    arena_free(a);
}

Test(cost, multiply_adds_and_scratch_are_at_the_upper_bounds)
{
    expect_cost(
        "%y = aten.convolution.default(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 2) "
        ": f32[%n,6,8,8]",
        4 * 6 * 64 * 2 * 9, ETC_SCRATCH_BYTES);
    expect_cost(
        "%y = aten.convolution.default(%x, %t, none, [1, 1], [0, 0], [1, 1], true, [0, 0], 1) "
        ": f32[%n,6,10,10]",
        4 * 4 * 64 * 6 * 9, ETC_SCRATCH_BYTES);
    expect_cost("%y = aten.mm.default(%a, %b) : f32[%n,7]", 4 * 7 * 5, ETC_SCRATCH_BYTES);
    expect_cost("%y = aten.addmm.default(%b, %a, %b, 1, 1) : f32[%n,7]", 4 * 7 * 5,
                ETC_SCRATCH_BYTES);
    expect_cost("%y = aten.mm.default(%o, %b) : f32[%u,7]", INT64_MAX, ETC_SCRATCH_BYTES);
    expect_cost(
        "%y = aten.avg_pool2d.default(%x, [2], [], [0, 0], false, true, none) : f32[%n,4,4,4]",
        4 * 4 * 16 * 4, 0);
    expect_cost("%y = aten._softmax.default(%a, 1, false) : f32[%n,5]", 20, 0);
    expect_cost("%y = aten.neg.default(%a) : f32[%n,5]", 0, 0);
    expect_cost(
        "%y = higher_order.cond(%p, graph (%a: f32[%n,5]) { %s = aten._softmax.default(%a, 1, "
        "false) : f32[%n,5] return %s }, graph (%a: f32[%n,5]) { %m = aten.mm.default(%a, %a) : "
        "f32[%n,5] return %m }, [%a]) : f32[%n,5]",
        100, ETC_SCRATCH_BYTES);
}
