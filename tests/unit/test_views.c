/* test_views.c -- tests the readers of views on the operators of each class, with arguments left
 * out, lists of one item, axes counted from the end, and symbolic numbers, which some views cannot
 * hold. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "ir/views.h"

static FILE *text;

static const char *name(const Value *v)
{
    return v ? v->name : "none";
}

static void ints(const char *what, const int64_t *v, int n)
{
    fprintf(text, " %s", what);
    for (int i = 0; i < n; i++)
        fprintf(text, "%c%lld", i ? ',' : ' ', (long long)v[i]);
}

static void say_conv(const Conv *c)
{
    fprintf(text, "%s %s %s", name(c->x), name(c->w), name(c->bias));
    ints("kernel", c->kernel, c->axes);
    ints("stride", c->stride, c->axes);
    ints("pad", c->pad, c->axes);
    ints("dilation", c->dilation, c->axes);
    ints("out_pad", c->out_pad, c->axes);
    fprintf(text, " groups %lld%s", (long long)c->groups, c->is_transposed ? " transposed" : "");
}

static bool say_products(const Node *n)
{
    Conv c;
    Product p;
    Attention a;
    if (conv_read(n, &c)) {
        say_conv(&c);
        fprintf(text, " | ");
        conv_as_image(&c);
        say_conv(&c);
    } else if (product_read(n, &p)) {
        fprintf(text, "%s %s %s%s%s %g %g", name(p.x), name(p.w), name(p.bias),
                p.is_rows ? " rows" : "", p.is_batch ? " batch" : "", p.alpha, p.beta);
    } else if (attention_read(n, &a)) {
        fprintf(text, "%s %s %s mask %s bias %s scale %g cap %g fill %g%s%s%s", name(a.q),
                name(a.k), name(a.v), name(a.mask), name(a.bias), a.scale, a.cap, a.fill,
                a.is_causal ? " causal" : "", a.is_shared ? " shared" : "",
                a.is_empty ? " empty" : "");
    } else {
        return false;
    }
    return true;
}

static bool say_windows(const Node *n)
{
    Pool p;
    Reduce r;
    Norm v;
    if (pool_read(n, &p)) {
        fprintf(text, "%s %s", name(p.x), p.is_max ? "max" : "avg");
        ints("kernel", p.kernel, p.axes);
        ints("stride", p.stride, p.axes);
        ints("pad", p.pad, p.axes);
        ints("dilation", p.dilation, p.axes);
        fprintf(text, " by %lld%s%s", (long long)p.divisor, p.rounds_up ? " up" : "",
                p.counts_pad ? " counts" : "");
    } else if (reduce_read(n, &r)) {
        int64_t axis[MAX_RANK];
        int count = reduce_list(&r, axis);
        fprintf(text, "%s", name(r.x));
        ints("over", axis, count);
        fprintf(text, "%s%s", r.keeps ? " keeps" : "", reduce_is_space(&r) ? " space" : "");
    } else if (norm_read(n, &v)) {
        fprintf(text, "%s %s %s kind %d axes %d groups %lld eps %g", name(v.x), name(v.weight),
                name(v.bias), (int)v.kind, v.axes, (long long)v.groups, v.eps);
    } else {
        return false;
    }
    return true;
}

static void say_dim(const char *what, Dim d)
{
    fprintf(text, " %s ", what);
    dim_print(d, text);
}

static bool say_moves(const Node *n)
{
    Slice s;
    Select e;
    Permute p;
    if (slice_read(n, &s)) {
        fprintf(text, "%s axis %d", name(s.x), s.axis);
        say_dim("from", s.start);
        say_dim("to", s.end);
        fprintf(text, " step %lld", (long long)s.step);
    } else if (select_read(n, &e)) {
        fprintf(text, "%s axis %d", name(e.x), e.axis);
        say_dim("at", e.index);
    } else if (permute_read(n, &p)) {
        fprintf(text, "%s", name(p.x));
        for (int i = 0; i < p.rank; i++)
            fprintf(text, " %d", p.axis[i]);
        fprintf(text, "%s", permute_swaps_last(&p) ? " swaps" : "");
    } else {
        return false;
    }
    return true;
}

static bool say_numbers(const Node *n)
{
    static const char *const kind[] = {"tensor", "channel", "token"};
    Clamp c;
    Resize r;
    QParams q;
    if (clamp_read(n, &c)) {
        fprintf(text, "%s %g..%g", name(c.x), c.lo, c.hi);
    } else if (resize_read(n, &r)) {
        fprintf(text, "%s%s%s", name(r.x), r.is_linear ? " linear" : "",
                r.aligns_corners ? " corners" : "");
        fprintf(text, " %g %g", r.factor[0], r.factor[1]);
    } else if (qparams_read(n, &q)) {
        fprintf(text, "%s %s%s scales %s zeros %s %g %lld in %lld..%lld axis %d %s", name(q.x),
                kind[q.kind], q.undoes ? " undone" : "", name(q.scales), name(q.zeros), q.scale,
                (long long)q.zero, (long long)q.lo, (long long)q.hi, q.axis, dtype_name(q.dtype));
    } else {
        return false;
    }
    return true;
}

/* Results are not inferred: a reader sees operands and arguments, and of quantize the dtype. */
static const struct {
    const char *node, *said;
} row[] = {
    /* convolutions */
    {"aten.convolution.default(%x, %w, %b, [2, 3], [1], [1, 1], false, [0, 0], 1)",
     "x w b kernel 3,5 stride 2,3 pad 1,1 dilation 1,1 out_pad 0,0 groups 1 | "
     "x w b kernel 3,5 stride 2,3 pad 1,1 dilation 1,1 out_pad 0,0 groups 1"},
    {"aten.convolution.default(%x, %w, none, [2, 1], [1, 0], [1, 1], true, [1, 0], 1)",
     "x w none kernel 3,5 stride 2,1 pad 1,0 dilation 1,1 out_pad 1,0 groups 1 transposed | "
     "x w none kernel 3,5 stride 2,1 pad 1,0 dilation 1,1 out_pad 1,0 groups 1 transposed"},
    {"aten.convolution.default(%r, %v, none, [2], [1], [4], false, [0], 2)",
     "r v none kernel 7 stride 2 pad 1 dilation 4 out_pad 0 groups 2 | "
     "r v none kernel 1,7 stride 1,2 pad 0,1 dilation 1,4 out_pad 0,0 groups 2"},
    {"aten.conv1d.default(%r, %v, none, [1], [0], [1], 1)",
     "r v none kernel 7 stride 1 pad 0 dilation 1 out_pad 0 groups 1 | "
     "r v none kernel 1,7 stride 1,1 pad 0,0 dilation 1,1 out_pad 0,0 groups 1"},
    {"aten.conv2d.default(%x, %w, %b, [1, 1], [0, 0], [2, 1], 1)",
     "x w b kernel 3,5 stride 1,1 pad 0,0 dilation 2,1 out_pad 0,0 groups 1 | "
     "x w b kernel 3,5 stride 1,1 pad 0,0 dilation 2,1 out_pad 0,0 groups 1"},
    {"aten.conv_transpose2d.input(%x, %w, none, [2, 2], [0, 0], [1, 1], 1, [1, 1])",
     "x w none kernel 3,5 stride 2,2 pad 0,0 dilation 1,1 out_pad 1,1 groups 1 transposed | "
     "x w none kernel 3,5 stride 2,2 pad 0,0 dilation 1,1 out_pad 1,1 groups 1 transposed"},
    {"etc.integer_convolution(%i, %j, none, [1, 1], [2, 2], [1, 1], 4, %b, %b, none, none, 3, "
     "0.0, 1.0, none, 0, 0, 0, f32)",
     "i j none kernel 3,5 stride 1,1 pad 2,2 dilation 1,1 out_pad 0,0 groups 4 | "
     "i j none kernel 3,5 stride 1,1 pad 2,2 dilation 1,1 out_pad 0,0 groups 4"},
    {"aten.convolution.default(%x, %w, none, [%s, 1], [1, 0], [1, 1], false, [0, 0], 1)", NULL},
    {"aten.convolution.default(%x, %o, none, [1, 1], [1, 0], [1, 1], false, [0, 0], 1)",
     "x o none kernel 0,0 stride 1,1 pad 1,0 dilation 1,1 out_pad 0,0 groups 1 | "
     "x o none kernel 0,0 stride 1,1 pad 1,0 dilation 1,1 out_pad 0,0 groups 1"},
    {"aten.convolution.default(%x, %w, none, [1, 1, 1], [1, 0], [1, 1], false, [0, 0], 1)", NULL},
    /* products */
    {"aten.linear.default(%a, %m, none)", "a m none rows 1 1"},
    {"aten.linear.default(%a, %m, %b)", "a m b rows 1 1"},
    {"aten.mm.default(%a, %m)", "a m none 1 1"},
    {"aten.bmm.default(%t, %t)", "t t none batch 1 1"},
    {"aten.addmm.default(%b, %a, %m, beta=1, alpha=1)", "a m b 1 1"},
    {"aten.addmm.default(%b, %a, %m, beta=2, alpha=0.5)", "a m b 0.5 2"},
    {"aten.addmm.default(%b, %a, %m, beta=%s, alpha=1)", NULL},
    {"etc.integer_linear(%i, %j, none, %b, %b, none, none, 3, 0.0, 1.0, none, 0, 0, 0, f32)",
     "i j none rows 1 1"},
    /* attention */
    {"aten.scaled_dot_product_attention.default(%t, %t, %t, none, 0.0, false, scale=none, "
     "enable_gqa=false)",
     "t t t mask none bias none scale 0.5 cap 0 fill -inf empty"},
    {"aten.scaled_dot_product_attention.default(%t, %t, %t, %x, 0.0, true, scale=0.25, "
     "enable_gqa=true)",
     "t t t mask x bias none scale 0.25 cap 0 fill -inf causal shared empty"},
    {"etc.softmax_attention(%t, %t, %t, %x, 0.0, false, 3.0, false, %b, 30.0, -5.0)",
     "t t t mask x bias b scale 3 cap 30 fill -5"},
    {"aten.scaled_dot_product_attention.default(%o, %o, %o, none, 0.0, false, scale=none, "
     "enable_gqa=false)", NULL},
    {"aten.scaled_dot_product_attention.default(%o, %o, %o, none, 0.0, false, scale=1.0, "
     "enable_gqa=false)",
     "o o o mask none bias none scale 1 cap 0 fill -inf empty"},
    /* pools */
    {"aten.max_pool2d.default(%x, [3, 2], [], [0, 0], [1, 1], false)",
     "x max kernel 3,2 stride 3,2 pad 0,0 dilation 1,1 by 0"},
    {"aten.max_pool2d_with_indices.default(%x, [3], [2, 1], [1], [2], true)",
     "x max kernel 3,3 stride 2,1 pad 1,1 dilation 2,2 by 0 up"},
    {"aten.avg_pool2d.default(%x, [2, 2], [], [0, 0], false, true, none)",
     "x avg kernel 2,2 stride 2,2 pad 0,0 dilation 1,1 by 0 counts"},
    {"aten.avg_pool2d.default(%x, [2, 2], [1, 1], [1, 0], true, false, 3)",
     "x avg kernel 2,2 stride 1,1 pad 1,0 dilation 1,1 by 3 up"},
    {"etc.integer_avg_pool2d(%i, [2, 2], [2, 2], [0, 0], false, true, none, 3, 0.5, 0, -128, 127, "
     "i8)",
     "i avg kernel 2,2 stride 2,2 pad 0,0 dilation 1,1 by 0 counts"},
    {"aten.avg_pool2d.default(%x, [2, 2], [%s, 1], [0, 0], false, true, none)", NULL},
    /* reductions */
    {"aten.sum.dim_IntList(%x, none, true, dtype=none)", "x over 0,1,2,3 keeps"},
    {"aten.mean.dim(%x, [-1, 2], false, dtype=none)", "x over 2,3 space"},
    {"aten.amax.default(%x, [], false)", "x over 0,1,2,3"},
    {"aten.any.dims(%x, [1], false)", "x over 1"},
    {"aten.var.correction(%x, [0], correction=0, keepdim=true)", "x over 0 keeps"},
    {"aten.mean.dim(%a, [2], false, dtype=none)", NULL},
    {"aten.amax.default(%n, [0], false)", "n over"},
    /* norms */
    {"aten.layer_norm.default(%x, [4, 5], none, none, 1e-05, true)",
     "x none none kind 0 axes 2 groups 1 eps 1e-05"},
    {"aten.native_layer_norm.default(%x, [5], %b, none, 0.5)",
     "x b none kind 0 axes 1 groups 1 eps 0.5"},
    {"aten.rms_norm.default(%x, [5], none, none)",
     "x none none kind 1 axes 1 groups 1 eps 1.19209e-07"},
    {"aten.rms_norm.default(%x, [5], %b, 0.25)", "x b none kind 1 axes 1 groups 1 eps 0.25"},
    {"aten.group_norm.default(%x, 4, %b, %b, 1e-05, true)",
     "x b b kind 2 axes 0 groups 4 eps 1e-05"},
    {"aten.native_group_norm.default(%x, %b, none, 1, 8, 20, 2, 0.5)",
     "x b none kind 2 axes 0 groups 2 eps 0.5"},
    {"aten._native_batch_norm_legit_no_training.default(%x, none, none, %b, %b, 0.1, 0.5)",
     "x none none kind 3 axes 0 groups 1 eps 0.5"},
    {"aten.native_group_norm.default(%x, %b, none, 1, 8, 20, %s, 0.5)", NULL},
    /* moves */
    {"aten.slice.Tensor(%x, -1, none, none, 1)", "x axis 3 from 0 to 5 step 1"},
    {"aten.slice.Tensor(%x, 2, -3, 9223372036854775807, 2)", "x axis 2 from 1 to 4 step 2"},
    {"aten.slice.Tensor(%x, 2, -9, 99, 1)", "x axis 2 from 0 to 4 step 1"},
    {"aten.slice.Tensor(%o, 2, 1, none, 1)", "o axis 2 from 1 to %s step 1"},
    {"aten.slice.Tensor(%o, 2, 0, %s-4, 1)", NULL},
    {"aten.select.int(%x, -2, -1)", "x axis 2 at 3"},
    {"aten.select.int(%o, 2, -1)", "o axis 2 at %s-1"},
    {"aten.select.int(%x, 0, %s-4)", NULL},
    {"aten.permute.default(%x, [0, -3, -1, -2])", "x 0 1 3 2 swaps"},
    {"aten.permute.default(%x, [0, 2, 3, 1])", "x 0 2 3 1"},
    {"aten.permute.default(%n, [])", "n"},
    {"aten.permute.default(%a, [1, 0])", "a 1 0 swaps"},
    /* pointwise */
    {"aten.relu.default(%x)", "x 0..inf"},
    {"aten.clamp.default(%x, none, none)", "x -inf..inf"},
    {"aten.clamp.default(%x, -1, none)", "x -1..inf"},
    {"aten.clamp.default(%x, none, 0.5)", "x -inf..0.5"},
    {"aten.clamp.default(%x, none, %s)", NULL},
    {"aten.clamp.default(%x, nan, 1)", NULL},
    {"aten.hardtanh.default(%x, -1, 1)", "x -1..1"},
    {"aten.hardtanh.default(%x, 0, 6)", "x 0..6"},
    /* images */
    {"aten.upsample_bilinear2d.vec(%x, [8, 10], true, none)", "x linear corners 0 0"},
    {"aten.upsample_bilinear2d.vec(%x, none, false, [2.0, 3])", "x linear 2 3"},
    {"aten.upsample_nearest2d.vec(%x, none, [2.0, 2.0])", "x 2 2"},
    /* integers */
    {"quantized_decomposed.quantize_per_tensor.default(%x, 0.5, -1, -128, 127, i8)",
     "x tensor scales none zeros none 0.5 -1 in -128..127 axis 0 i8"},
    {"quantized_decomposed.dequantize_per_tensor.default(%i, 0.25, 3, -128, 127, i8, "
     "out_dtype=none)",
     "i tensor undone scales none zeros none 0.25 3 in -128..127 axis 0 i8"},
    {"quantized_decomposed.quantize_per_tensor.tensor(%x, %b, %z, -128, 127, i8)",
     "x tensor scales b zeros z 0 0 in -128..127 axis 0 i8"},
    {"quantized_decomposed.dequantize_per_tensor.tensor(%i, %b, %z, -128, 127, i8, "
     "out_dtype=none)",
     "i tensor undone scales b zeros z 0 0 in -128..127 axis 0 i8"},
    {"quantized_decomposed.quantize_per_channel.default(%x, %b, %z, 1, -128, 127, i8)",
     "x channel scales b zeros z 0 0 in -128..127 axis 1 i8"},
    {"quantized_decomposed.dequantize_per_channel.default(%i, %b, none, -1, -7, 7, i8, "
     "out_dtype=none)",
     "i channel undone scales b zeros none 0 0 in -7..7 axis 3 i8"},
    {"quantized_decomposed.quantize_per_token.default(%x, %b, %z, -128, 127, i8)",
     "x token scales b zeros z 0 0 in -128..127 axis 0 i8"},
    {"quantized_decomposed.dequantize_per_token.default(%i, %b, %z, -128, 127, i8, f32)",
     "i token undone scales b zeros z 0 0 in -128..127 axis 0 i8"},
    {"quantized_decomposed.dequantize_per_channel.default(%i, %b, none, 4, -7, 7, i8, "
     "out_dtype=none)",
     NULL},
    /* of no class */
    {"aten.add.Tensor(%x, %x, alpha=1)", NULL},
    {"aten.clone.default(%x, memory_format=none)", NULL},
};
enum { N_ROWS = sizeof row / sizeof *row };

static const char head[] =
    "program \"t\" stage core\nsym %s in 1..8\nmethod @forward(%x: f32[2,8,4,5], %w: f32[6,8,3,5], "
    "%b: f32[6], %r: f32[2,8,9], %v: f32[6,4,7], %i: i8[2,8,4,5], %j: i8[6,2,3,5], "
    "%a: f32[3,4], %m: f32[4,4], %t: f32[2,3,4], %o: f32[2,8,%s,%s], %n: f32[], %z: i64[6]) {\n";

static const Node *node_of(Arena *a, const char *node, Diag *d)
{
    bool quantizes = strstr(node, ".quantize_") != NULL, is_pair = strstr(node, "indices") != NULL;
    bool is_triple = strstr(node, "native_") != NULL;
    const char *more = is_triple ? ", %y1, %y2" : is_pair ? ", %y1" : "";
    const char *types = is_triple ? ", none, none" : is_pair ? ", i64[2]" : "";
    Source src = {.file = "t.etir", .line = 1};
    src.text = arena_printf(a, "%s  %%y%s = %s : %s[2]%s\n  return %%y\n}\n", head, more, node,
                            quantizes ? "i8" : "f32", types);
    Program *p = program_parse(a, &src, d);
    cr_assert(p && schema_check(p->method[0]->first, d), "%s", node);
    return p->method[0]->first;
}

Test(views, readers_say_what_arguments_mean)
{
    Diag loud = {.out = stderr};
    for (int i = 0; i < N_ROWS; i++) {
        Arena *a = arena_new();
        char *said = NULL;
        size_t n = 0;
        const Node *node = node_of(a, row[i].node, &loud);
        text = open_memstream(&said, &n);
        bool is_read = say_products(node) || say_windows(node) || say_moves(node) ||
                       say_numbers(node);
        fclose(text);
        cr_expect_eq(is_read, row[i].said != NULL, "%s: %s", row[i].node, said);
        if (is_read && row[i].said)
            cr_expect_str_eq(said, row[i].said, "%s\n  says   %s\n  wanted %s", row[i].node, said,
                             row[i].said);
        free(said);
        arena_free(a);
    }
}
