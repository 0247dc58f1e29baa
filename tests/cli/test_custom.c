/* test_custom.c -- tests a user's own operators: files of --ops that are wrong or hostile, and the
 * same operator in each kind of output. */
#include "tests/cli/cli.h"

TestSuite(custom, .init = make_folders, .fini = remove_folders);

#define SWISH "operators:\n  - schema: \"my::swish(Tensor x, float scale=1.0) -> Tensor\"\n" \
              "    results: [{dtype: dtype(x), sizes: sizes(x)}]\n"
#define COMPOSITE "    composite: |\n      # x sigmoid(scale x)\n      return x * sigmoid(x * scale)\n"

static void write_model(const char *call, const char *type)
{
    char text[1000];
    snprintf(text, sizeof text, "program \"m\" stage aten\nmethod @forward(%%x: f32[2,3]) {\n"
             "  %%y = %s : %s\n  return %%y\n}\n", call, type);
    write_text("m.etir", text);
}

static void write_swish_model(void)
{
    write_model("my.swish.default(%x, 2.0)", "f32[2,3]");
}

/* All of `part`, which ends with NULL, is told of the file o.yaml. */
static void expect_told(const char *ops, const char *const *part)
{
    write_text("o.yaml", ops);
    Result r = etc("check m.etir --ops o.yaml");
    cr_expect_eq(r.code, 1, "exit %d: %s\n%s", r.code, ops, r.err);
    for (; *part; part++)
        cr_expect_not_null(strstr(r.err, *part), "no '%s' in\n%s", *part, r.err);
}

/* An operator my::f(Tensor x) -> Tensor of these sizes and this composite, in either output. */
static void expect_lie(const char *dtype, const char *sizes, const char *composite, const char *told)
{
    static const char *const way[] = {"compile m.etir --ops o.yaml -o a.pte",
                                      "emit-c m.etir --ops o.yaml -o a.c"};
    char ops[1000];
    snprintf(ops, sizeof ops, "operators:\n  - schema: \"my::f(Tensor x) -> Tensor\"\n"
             "    results:\n      - dtype: %s\n        sizes: \"%s\"\n    composite: |\n      %s\n",
             dtype, sizes, composite);
    write_text("o.yaml", ops);
    for (int i = 0; i < 2; i++) {
        Result r = etc(way[i]);
        cr_expect(r.code == 1 || r.code == 4, "%s: exit %d\n%s", composite, r.code, r.err);
        cr_expect_not_null(strstr(r.err, told), "%s: no '%s' in\n%s", composite, told, r.err);
    }
}

/* -- files ------------------------------------------------------------------------------------- */

Test(custom, all_mistakes_of_a_file_are_listed)
{
    static const char *const told[] = {
        "o.yaml:3:13: error: 'schema': aten.relu.default is an operator that etc has",
        "o.yaml:4:13: error: 'schema': the names of aten are torch's",
        "o.yaml:5:13: error: 'schema' of my::a marks an argument or result that is written",
        "o.yaml:6:13: error: 'schema' of my::b has two arguments of one name",
        "o.yaml:7:13: error: 'schema' of my::c has a type that is none of Tensor,",
        "o.yaml:8:13: error: 'schema' does not begin with a name such as mylib::swish",
        "o.yaml:9:13: error: 'schema' of my::d expects arguments in (), ' -> ' and results",
        "o.yaml:10:13: error: 'schema' of my::e returns something that is not a Tensor",
        "o.yaml:11:5: error: 'results' is missing here",
        "o.yaml:11:5: error: says nothing that computes it: composite, kernel or c",
        "o.yaml:12:5: error: there is no key 'shema' here; did you mean 'schema'?",
        "o.yaml:13:5: error: an item must be a map",
        "o.yaml:1:1: error: there is no key 'opers' here; there are operators", NULL};
    write_swish_model();
    expect_told("opers: []\noperators:\n"
                "  - schema: \"aten::relu(Tensor self) -> Tensor\"\n"
                "  - schema: \"aten::mine(Tensor self) -> Tensor\"\n"
                "  - schema: \"my::a(Tensor(a!) x) -> Tensor\"\n"
                "  - schema: \"my::b(Tensor x, int x) -> Tensor\"\n"
                "  - schema: \"my::c(Tensor x, Generator y) -> Tensor\"\n"
                "  - schema: \"my(Tensor x) -> Tensor\"\n"
                "  - schema: \"my::d(Tensor x) Tensor\"\n"
                "  - schema: \"my::e(Tensor x) -> int\"\n"
                "  - schema: \"my::f(Tensor x) -> Tensor\"\n"
                "  - shema: 1\n"
                "  - 3\n",
                told);
}

Test(custom, kernels_functions_and_results_are_checked)
{
    static const char *const told[] = {
        "o.yaml:3:14: error: there are 2 'results', but the schema of my::a has 1",
        "o.yaml:4:13: error: 'kernel': the names of aten are",
        "o.yaml:5:8: error: 'c': 'int' is a keyword of C",
        "o.yaml:7:15: error: 'sizes' is missing here",
        "o.yaml:7:28: error: there is no key 'size' here; did you mean 'sizes'?",
        "o.yaml:8:13: error: 'kernel' is not a name such as mylib::swish.out",
        "o.yaml:9:8: error: 'c': 'memcpy' may be a function of C's library",
        "o.yaml:10: error: my::b is described a second time, first in o.yaml:6",
        "o.yaml:15:8: error: 'c': Tensor[] y of my::c cannot be handed to a function of C",
        "o.yaml:18:8: error: 'c': my_c computes my::c already", NULL};
    write_swish_model();
    expect_told("operators:\n"
                "  - schema: \"my::a(Tensor x) -> Tensor\"\n"
                "    results: [{dtype: f32, sizes: sizes(x)}, {dtype: f32, sizes: sizes(x)}]\n"
                "    kernel: aten::add.out\n"
                "    c: int\n"
                "  - schema: \"my::b(Tensor x) -> Tensor\"\n"
                "    results: [{dtype: f32, size: sizes(x)}]\n"
                "    kernel: nothing\n"
                "    c: memcpy\n"
                "  - schema: \"my::b(Tensor x) -> Tensor\"\n"
                "    results: [{dtype: f32, sizes: sizes(x)}]\n"
                "    c: my_b\n"
                "  - schema: \"my::c(Tensor x, Tensor[] y) -> Tensor\"\n"
                "    results: [{dtype: f32, sizes: sizes(x)}]\n"
                "    c: my_c\n"
                "  - schema: \"my::d(Tensor x) -> Tensor\"\n"
                "    results: [{dtype: f32, sizes: sizes(x)}]\n"
                "    c: my_c\n",
                told);
}

/* Rules are told with the line that they stand in. */
Test(custom, rules_that_do_not_parse_are_told)
{
    static const char *const told[] = {
        "o.yaml:3: error: 'dtype' of my::swish names f33, which is neither set nor an argument",
        "o.yaml:3: error: 'sizes' of my::swish calls shape, which there is not, before: x)",
        "o.yaml:6: error: 'composite' of my::swish expects ')', before: return y", NULL};
    write_swish_model();
    expect_told("operators:\n  - schema: \"my::swish(Tensor x, float scale=1.0) -> Tensor\"\n"
                "    results: [{dtype: f33, sizes: shape(x)}]\n"
                "    composite: |\n      y = (x * scale\n      return y\n",
                told);
    static const char *const large[] = {"has a number beyond 64 bits, before: 9223372036854775808", NULL};
    expect_told(SWISH "    composite: return x + 9223372036854775808\n", large);
    static const char *const own[] = {"calls swapped, which there is not", NULL};
    expect_told(SWISH "    composite: return swapped(x, 0, 1)\n", own);
    static const char *const out[] = {"names out, which is neither", NULL};
    expect_told(SWISH "    composite: return out\n", out);
    static const char *const endless[] = {"comes back to itself", NULL};
    expect_told("operators:\n  - schema: \"my::a(Tensor x) -> Tensor\"\n"
                "    results: [{dtype: f32, sizes: sizes(x)}]\n    composite: return my.b(x)\n"
                "  - schema: \"my::b(Tensor x) -> Tensor\"\n"
                "    results: [{dtype: f32, sizes: sizes(x)}]\n    composite: return my.a(x)\n",
                endless);
}

/* Texts that a parser by recursion, or a player of loops, might take as deep as they are. */
Test(custom, deep_texts_are_refused)
{
    enum { TIMES = 100000 };
    static const char *const part[] = {"(", "-", "not ", "x[", "x + ", "relu(", "x ? "};
    write_swish_model();
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        size_t n = strlen(part[i]);
        char *text = NEW(arena, char, 300 + TIMES * n), *to = text;
        to += sprintf(to, "%s    composite: |\n      return ", SWISH);
        for (int k = 0; k < TIMES; k++, to += n)
            memcpy(to, part[i], n);
        write_text("o.yaml", text);
        fails("check m.etir --ops o.yaml", 1, "'composite' of my::swish is nested too deep");
    }
    write_text("o.yaml", SWISH "    composite: return \"x\n");
    fails("check m.etir --ops o.yaml", 1, "has a text without its end");
}

/* -- lies -------------------------------------------------------------------------------------- */

Test(custom, what_is_declared_is_held_against_the_export_and_the_composite)
{
    write_model("my.f.default(%x)", "f32[2,3]");
    expect_lie("f32", "[3, 2]", "return view(x, [3, 2])",
               "output %y is recorded as f32[2,3], but is f32[3,2]");
    expect_lie("i64", "sizes(x)", "return x", "is recorded as f32[2,3], but is i64[2,3]");
    expect_lie("f32", "sizes(x)", "return view(x, [3, 2])",
               "gives f32[3,2] as result 0, which is declared as f32[2,3]");
    expect_lie("f32", "sizes(x)", "return x > 0", "gives bool as result 0, which is declared as f32");
    expect_lie("f32", "[size(x, 0) - 5, 3]", "return x", "a size below 0 or past 64 bits");
    expect_lie("f32", "[size(x, 0) * 999999999999999999 * 99999, 3]", "return x",
               "a size below 0 or past 64 bits");
    expect_lie("f32", "[for i in 0..17: 1]", "return x",
               "does not give a list of at most 16 sizes");
    expect_lie("f32", "sizes(relu(x))", "return x", "computes with tensors");
    expect_lie("f32", "3", "return x", "does not give a list");
    expect_lie("sizes(x)", "sizes(x)", "return x", "gives no dtype");
    expect_lie("c64", "sizes(x)", "return x", "is declared as complex");
    expect_lie("f32", "sizes(x)", "y = x", "has a part that returns nothing");
    expect_lie("f32", "sizes(x)", "return matmul(x, x)", "in the composite of my::f, o.yaml:2");
    expect_lie("f32", "sizes(x)", "return relu(x, 3)", "with arguments it has not");
    expect_lie("f32", "sizes(x)", "for i in 0..1000000000 { x = x + 1 } return x",
               "its sizes are too large for the rule");
    expect_lie("f32", "sizes(x)", "l = [1] for i in 0..100000 { l = [l] } return cat(l)",
               "lists in lists that are nested too deep");
    expect_files("m.etir o.yaml ");
}

/* -- outputs ----------------------------------------------------------------------------------- */

Test(custom, a_model_with_an_operator_of_ones_own_wants_its_file)
{
    write_swish_model();
    fails("compile m.etir -o a.pte", 4, "unknown operator; --ops FILE describes operators of your own");
    write_text("o.yaml", SWISH COMPOSITE);
    ok("compile m.etir --ops o.yaml -o a.pte -q --check-ir --verify -MD");
    cr_expect_not_null(strstr(sh("cat a.pte.d").out, "o.yaml"));
    ok("check m.etir --ops o.yaml --tail c");
    cr_expect_not_null(strstr(ok("ops --ops o.yaml my.").out, "my.swish.default"));
    fails("compile m.etir --ops none.yaml -o b.pte", 3, "none.yaml: error: ");
    fails("compile m.etir --ops o.yaml -o o.yaml", 2, "is read, so it is not written");
}

/* The same operator, composed and written out by hand. */
Test(custom, a_composite_is_what_it_says)
{
    write_swish_model();
    write_text("o.yaml", SWISH COMPOSITE);
    ok("compile m.etir --ops o.yaml -o a.pte -q");
    write_text("h.etir", "program \"m\" stage aten\nmethod @forward(%x: f32[2,3]) {\n"
                         "  %a = aten.mul.Tensor(%x, 2.0) : f32[2,3]\n"
                         "  %b = aten.sigmoid.default(%a) : f32[2,3]\n"
                         "  %y = aten.mul.Tensor(%x, %b) : f32[2,3]\n  return %y\n}\n");
    ok("compile h.etir -o h.pte -q");
    write_images("x.npy", "2, 3", (const float[]){-2, -1, 0, 1, 2, 3}, 6);
    Result a = ok("run a.pte --input x.npy"), h = ok("run h.pte --input x.npy");
    cr_expect_str_eq(a.out, h.out);
    Result fly = ok("run m.etir --ops o.yaml --input x.npy");
    cr_expect_str_eq(fly.out, h.out);
}

Test(custom, a_kernel_is_called_by_its_name)
{
    write_swish_model();
    write_text("o.yaml", SWISH "    kernel: my::swish.out\n");
    ok("compile m.etir --ops o.yaml -o a.pte -q --target-runtime 1.4");
    cr_expect_not_null(strstr(ok("inspect a.pte").out, "my::swish.out (this build lacks it)"));
    write_images("x.npy", "2, 3", (const float[]){-2, -1, 0, 1, 2, 3}, 6);
    fails("run a.pte --input x.npy", 4, "a kernel of your own has to be registered");
    fails("run m.etir --ops o.yaml --input x.npy", 4, "a kernel of your own has to be registered");
    fails("emit-c m.etir --ops o.yaml -o a.c", 4,
          "o.yaml:2: my::swish has no 'c' and no composite, one of which has to compute it here");
    write_text("o.yaml", SWISH COMPOSITE "    kernel: my::swish.out\n");
    ok("run m.etir --ops o.yaml --input x.npy");
}

static const char harness[] =
    "#include \"a.h\"\n#include <math.h>\n#include <stdio.h>\n"
    "void my_swish(const float *x, const int64_t *x_sizes, int32_t x_rank, double scale, float *out,\n"
    "              const int64_t *out_sizes, int32_t out_rank)\n{\n"
    "    int64_t n = x_rank == 2 && out_rank == 2 ? x_sizes[0] * out_sizes[1] : 0;\n"
    "    for (int64_t i = 0; i < n; i++)\n"
    "        out[i] = x[i] / (1.0f + expf(-x[i] * (float)scale));\n}\n"
    "int main(void)\n{\n    float x[6] = {-2, -1, 0, 1, 2, 3}, y[6];\n"
    "    if (a_run(x, y, NULL))\n        return 1;\n"
    "    for (int i = 0; i < 6; i++)\n"
    "        if (fabsf(y[i] - x[i] / (1 + expf(-2 * x[i]))) > 1e-6f)\n            return 2;\n"
    "    return 0;\n}\n";

Test(custom, a_function_is_declared_and_called)
{
    write_swish_model();
    write_text("o.yaml", SWISH "    c: my_swish\n");
    ok("emit-c m.etir --ops o.yaml -o a.c -q");
    cr_expect_not_null(strstr(sh("cat a.h").out, "void my_swish(const float *x, const int64_t *x_sizes"));
    write_text("h.c", harness);
    Result r = sh("cc -std=c99 -Wall -Wextra -Werror -Wconversion -Wshadow -O1 a.c h.c -lm -o h && ./h");
    cr_expect_eq(r.code, 0, "%s", r.err);
    fails("compile m.etir --ops o.yaml -o a.pte", 4, "has no 'kernel' and no composite");
    fails("emit-c m.etir --ops o.yaml -o my_swish_run.c --ops o.yaml", 1, "a second time");
}

/* One function cannot take two dtypes. */
Test(custom, calls_of_a_function_agree_on_dtypes)
{
    write_text("o.yaml", SWISH "    c: my_swish\n");
    write_text("m.etir", "program \"m\" stage aten\nmethod @forward(%x: f32[2], %z: f64[2]) {\n"
                         "  %y = my.swish.default(%x, 2.0) : f32[2]\n"
                         "  %w = my.swish.default(%z, 2.0) : f64[2]\n  return %y, %w\n}\n");
    fails("emit-c m.etir --ops o.yaml -o a.c", 4,
          "calls my_swish with 'x' as f32 and elsewhere as f64");
}
