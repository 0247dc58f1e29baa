/* test_report.c -- compares the report on quantization with sums that are computed here; tests its
 * page and its JSON. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/compiler.h"
#include "compiler/quantize.h"
#include "compiler/import/internal.h"

enum { N = 4 }; /* samples */

static const char before_text[] =
    "program \"<m>.pt2\" stage core\n"
    "param %w = \"fc.weight\" : f32[2,3] in \"-\"+0\n"
    "method @forward(%x: f32[1,3]) {\n"
    "  %fc = aten.linear.default(%x, %w, none) : f32[1,2] from \"net.fc\", \"m.py:1\"\n"
    "  %relu = aten.relu.default(%fc) : f32[1,2] from \"net\", \"m.py:2\"\n"
    "  return %relu\n}\n";

static const char after_text[] =
    "program \"<m>.pt2\" stage core\n"
    "const %q = \"fc.weight_q\" : i8[2,3] in \"-\"+0\n"
    "const %s = \"fc.weight_scale\" : f32[2] in \"-\"+8\n"
    "method @forward(%x: f32[1,3]) {\n"
    "  %fc.1 = quantized_decomposed.dequantize_per_channel.default(%q, %s, none, 0, -8, 7, i8, none) : "
    "f32[2,3]\n"
    "  %fc = aten.linear.default(%x, %fc.1, none) : f32[1,2] from \"net.fc\", \"m.py:1\"\n"
    "  %fc.2 = quantized_decomposed.quantize_per_tensor.default(%fc, 0.5, -28, -128, 127, i8) : "
    "i8[1,2]\n"
    "  %fc.3 = quantized_decomposed.dequantize_per_tensor.default(%fc.2, 0.5, -28, -128, 127, i8, none) "
    ": f32[1,2]\n"
    "  %relu = aten.relu.default(%fc.3) : f32[1,2] from \"net\", \"m.py:2\"\n"
    "  return %relu\n}\n";

static float w[2][3] = {{1, -2, 3}, {2.25f, 4, -1}}; /* 2.25 becomes 2 */
static int8_t w_q[2][3] = {{1, -2, 3}, {2, 4, -1}};
static float scale[2] = {1, 1};
static const float x[N][3] = {{1, 2, 3}, {4, -5, 6}, {30, 1, 20}, {-40, 1, -40}};

static Program *parse(Arena *a, const char *text)
{
    Source src = {.file = "m.etir", .text = text, .line = 1};
    Program *p = program_parse(a, &src, &(Diag){.out = stderr});
    cr_assert_not_null(p);
    return p;
}

static void give(State *s, void *data, int64_t n)
{
    s->data = data;
    s->n_bytes = n;
}

static bool read_sample(void *ctx, int i, Arena *a, EtcTensor **in, int64_t *symbol,
                        const char **name, Diag *d)
{
    (void)symbol, (void)d;
    *name = "sample";
    in[0] = tensor_new(a, ETC_F32, 2, (const int64_t[]){1, 3});
    memcpy(in[0]->data, x[i], sizeof x[i]);
    return i != *(int *)ctx || diag_error(d, (Loc){0}, "refused");
}

static bool measure(Arena *a, QuantReport *r, int refused, Diag *d)
{
    Program *before = parse(a, before_text), *after = parse(a, after_text);
    Samples s = {.n = N, .read = read_sample, .ctx = &refused, .threads = 3};
    give(before->state[0], w, sizeof w);
    give(after->state[0], w_q, sizeof w_q);
    give(after->state[1], scale, sizeof scale);
    *r = (QuantReport){.model = before->name, .recipe = "int4 & more"};
    return report_measure(before->method[0], after->method[0], &s, a, r, d);
}

typedef struct Sums {
    double signal, noise, square, dot, most;
    int clipped;
    float lo, hi;
} Sums;

static void add(Sums *s, double want, double got)
{
    s->signal += want * want;
    s->noise += (got - want) * (got - want);
    s->square += got * got;
    s->dot += want * got;
    s->most = fmax(s->most, fabs(got - want));
    s->lo = fminf(s->lo, (float)want);
    s->hi = fmaxf(s->hi, (float)want);
}

/* The two layers, all of whose numbers are exact. */
static void expected(Sums *fc, Sums *relu)
{
    *fc = *relu = (Sums){.lo = 1e9f, .hi = -1e9f};
    for (int i = 0; i < N; i++)
        for (int j = 0; j < 2; j++) {
            double want = 0, got = 0;
            for (int k = 0; k < 3; k++) {
                want += (double)w[j][k] * (double)x[i][k];
                got += (double)w_q[j][k] * (double)x[i][k];
            }
            fc->clipped += want < -50 || want > 77.5;
            got = fmin(fmax(got, -50), 77.5);
            add(fc, want, got);
            add(relu, fmax(want, 0), fmax(got, 0));
        }
}

static void expect_layer(const LayerReport *l, const Sums *s, const char *node)
{
    cr_expect_str_eq(l->loc.node, node);
    cr_expect_eq(l->error.n, 2 * N);
    cr_expect_float_eq(difference_sqnr(&l->error), 10 * log10(s->signal / s->noise), 1e-9, "%s",
                       node);
    cr_expect_float_eq(difference_cosine(&l->error), s->dot / sqrt(s->signal * s->square), 1e-12);
    cr_expect(s->most > 0 && l->error.most == s->most, "%s: %g, not %g", node, l->error.most,
              s->most);
    cr_expect(l->seen_lo == s->lo && l->seen_hi == s->hi, "%s: %g %g", node, (double)l->seen_lo,
              (double)l->seen_hi);
    uint64_t n = 0;
    for (int i = 0; i < REPORT_BARS; i++)
        n += l->bar[i];
    cr_expect_eq(n, 2 * N);
}

Test(report, layers_are_compared_as_their_readers_see_them)
{
    Arena *a = arena_new();
    QuantReport r;
    Sums fc, relu;
    Diag d = {.out = stderr};
    cr_assert(measure(a, &r, -1, &d));
    expected(&fc, &relu);
    cr_assert_gt(fc.clipped, 1);
    cr_assert_eq(r.n_layers, 2);
    expect_layer(&r.layer[0], &fc, "fc");
    expect_layer(&r.layer[1], &relu, "relu");
    const LayerReport *l = &r.layer[0];
    cr_expect_str_eq(l->kept, "int8, weights int4");
    cr_expect(l->has_range && l->lo == -50 && l->hi == 77.5f);
    cr_expect_eq(l->n_clipped, fc.clipped);
    cr_expect(l->bytes_before == 24 && l->bytes_after == 3 + 8);
    cr_expect(r.bytes_before == 24 && r.bytes_after == 11);
    cr_expect_not(r.layer[1].has_range);
    double own = fc.noise / fc.signal, next = relu.noise / relu.signal;
    cr_expect_float_eq(l->damage, own, 1e-12);
    cr_expect_float_eq(r.layer[1].damage, next > own ? next - own : 0, 1e-12);
    cr_expect_eq(l->rank, l->damage >= r.layer[1].damage ? 1 : 2);
    cr_expect_eq(l->rank + r.layer[1].rank, 3);
    cr_expect_float_eq(r.outputs.noise, relu.noise, 1e-9);
    arena_free(a);
}

Test(report, a_sample_that_cannot_be_read_ends_it)
{
    Arena *a = arena_new();
    QuantReport r;
    Diag d = {.out = fopen("/dev/null", "w")};
    cr_expect_not(measure(a, &r, 2, &d));
    cr_expect_eq(diag_errors(&d), 1);
    fclose(d.out);
    arena_free(a);
}

Test(report, differences_at_their_ends)
{
    const float zero[2] = {0}, one[2] = {1, -1}, tiny[2] = {0x1p-149f, 0};
    Difference d = {0};
    difference_add(&d, zero, zero, 2);
    cr_expect(isinf(difference_sqnr(&d)) && difference_cosine(&d) == 1);
    difference_add(&d, zero, one, 2);
    cr_expect(difference_sqnr(&d) < 0 && difference_cosine(&d) == 0);
    d = (Difference){0};
    difference_add(&d, tiny, one, 2);
    cr_expect_float_eq(difference_sqnr(&d), 10 * log10(ldexp(1, -298) / 2), 1e-6);
    d = (Difference){0};
    difference_add(&d, one, one, 2);
    cr_expect(isinf(difference_sqnr(&d)) && difference_sqnr(&d) > 0 && difference_cosine(&d) == 1);
    cr_expect_eq(d.most, 0);
    difference_add(&d, one, (const float[]){-1, -1}, 2);
    difference_add(&d, one, zero, 2);
    cr_expect_eq(d.most, 2);
    difference_add(&d, one, (const float[]){NAN, 9}, 2);
    cr_expect(isnan(d.most), "%g: no error is as bad as one that is none", d.most);
}

static char *printed(void (*print)(const QuantReport *, Arena *, FILE *), Arena *a)
{
    QuantReport r;
    char *text = NULL;
    size_t n = 0;
    cr_assert(measure(a, &r, -1, &(Diag){.out = stderr}));
    FILE *f = open_memstream(&text, &n);
    print(&r, a, f);
    fclose(f);
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

Test(report, the_page_needs_nothing_but_itself)
{
    static const char *const none[] = {"http",    "<script", "src=", "href=", "url(",
                                       "@import", "<m>",     "nan",  "inf"};
    Arena *a = arena_new();
    char *page = printed(quant_report_html, a);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_expect_null(strstr(page, none[i]), "'%s' in\n%s", none[i], page);
    cr_expect_not_null(strstr(page, "&#60;m&#62;.pt2"));
    cr_expect_not_null(strstr(page, "recipe int4 &#38; more"));
    cr_expect_not_null(strstr(page, "net.fc, m.py:1"));
    cr_expect_eq(count(page, "<svg"), 2);
    cr_expect_eq(count(page, "class=\"kept\""), 1);
    static const char *const pairs[] = {"table", "tr",    "svg",  "div",
                                        "span",  "style", "body", "html"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char end[16];
        snprintf(end, sizeof end, "</%s>", pairs[i]);
        int n = count(page, end);
        snprintf(end, sizeof end, "<%s>", pairs[i]);
        int plain = count(page, end);
        snprintf(end, sizeof end, "<%s ", pairs[i]);
        cr_expect_eq(n, plain + count(page, end), "%s", pairs[i]);
    }
    free(page);
    arena_free(a);
}

Test(report, json_says_the_same)
{
    Arena *a = arena_new();
    char *text = printed(quant_report_json, a);
    JsonDoc doc;
    int64_t v;
    double f;
    QuantReport r;
    cr_assert(measure(a, &r, -1, &(Diag){.out = stderr}));
    cr_assert(
        json_parse(a, "report", (const uint8_t *)text, strlen(text), &(Diag){.out = stderr}, &doc));
    cr_expect(json_int(json_get(doc.root, "schema"), &v) && v == 1);
    cr_expect(json_int(json_get(doc.root, "samples"), &v) && v == N);
    cr_expect_str_eq(json_string(json_get(doc.root, "recipe")), "int4 & more");
    const Json *layers = json_get(doc.root, "layers");
    cr_assert_eq(json_count(layers), 2);
    JsonIter it = json_iter(layers);
    for (int i = 0; json_next(&it); i++) {
        const LayerReport *l = &r.layer[i];
        cr_expect_str_eq(json_string(json_get(it.value, "node")), l->loc.node);
        cr_expect_str_eq(json_string(json_get(it.value, "source")), l->loc.source);
        cr_expect(json_int(json_get(it.value, "rank"), &v) && v == l->rank);
        cr_expect(json_float(json_get(it.value, "sqnr_db"), &f) &&
                  fabs(f - difference_sqnr(&l->error)) < 1e-6);
        cr_expect(json_float(json_get(it.value, "max_abs_error"), &f) &&
                  fabs(f / l->error.most - 1) < 1e-8);
        cr_expect_eq(json_count(json_get(it.value, "bars")), REPORT_BARS);
        cr_expect_eq(json_count(json_get(it.value, "range")), l->has_range ? 2 : 0);
    }
    free(text);
    arena_free(a);
}
