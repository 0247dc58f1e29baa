/* test_onnx.c -- tests the commands on ONNX files, and compares the results with those of the same
 * models as torch exported them. */
#include "tests/cli/cli.h"

static void make_models(void)
{
    make_folders();
    Result r = sh("python3 " ROOT "/tests/cli/onnx_models.py $DATA");
    cr_assert_eq(r.code, 0, "%s", r.err);
}

TestSuite(onnx, .init = make_models, .fini = remove_folders);

#define MLP "mlp.onnx --dim batch=1..1024 "

Test(onnx, inspect_tells_what_the_file_says)
{
    Result r = ok("inspect about.onnx");
    static const char *const line[] = {"about.onnx: ONNX of IR version 8, by by hand 1.0\n",
                                       "  opset 17 of ai.onnx\n",
                                       "  opset 2 of ai.x\n",
                                       "  input 0: x f32[batch,3,?]\n",
                                       "  input 1: c bool[]\n",
                                       "  input 2: t unsupported type[]\n",
                                       "  output 0: y unsupported type of no rank\n",
                                       "      1 ai.x::Frobnicate (not supported)\n",
                                       "      1 own::Twice\n",
                                       "      2 Add\n",
                                       "      4 Relu\n",
                                       "  external data in w.bin\n",
                                       "  author: some\\x1bone\n"};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        cr_expect_not_null(strstr(r.out, line[i]), "no '%s' in\n%s", line[i], r.out);
}

Test(onnx, inspect_tells_it_as_json)
{
    Result r = ok("inspect about.onnx --json");
    const Json *j = json(&r), *x = item(json_get(j, "inputs"), 0), *ops = json_get(j, "operators");
    cr_expect_str_eq(text(j, "kind"), "onnx");
    cr_expect_eq(number(j, "ir_version"), 8);
    cr_expect_str_eq(text(j, "producer"), "by hand");
    cr_expect_eq(number(item(json_get(j, "opsets"), 1), "version"), 2);
    cr_expect_str_eq(json_string(item(json_get(x, "shape"), 0)), "batch");
    cr_expect_str_eq(text(item(ops, 4), "name"), "Relu");
    cr_expect_eq(number(item(ops, 4), "nodes"), 4);
    bool is_supported = true;
    cr_expect(json_bool(json_get(item(ops, 2), "supported"), &is_supported) && !is_supported);
    cr_expect_str_eq(json_string(item(json_get(j, "external_files"), 0)), "w.bin");
    cr_expect_str_eq(text(item(json_get(j, "metadata"), 0), "value"), "some\x1bone");
    sh("head -c 40 about.onnx > cut.onnx");
    fails("inspect cut.onnx", 1, "is not an ONNX model");
}

Test(onnx, check_says_what_stops_it)
{
    Result r = ok("check linear.onnx");
    cr_expect_not_null(strstr(r.err, "nothing stops a compile to a .pte"), "%s", r.err);
    r = ok("check " MLP "--tail c");
    cr_expect_not_null(strstr(r.err, "nothing stops a compile to C"), "%s", r.err);
    fails("check mlp.onnx", 1, "batch");
    fails("check unknown.onnx --bind c=1", 4, "ai.x::Frobnicate");
    fails("check $DATA/mlp_digits/model.pt2 --bind input=1", 1, "--bind is for an .onnx");
}

Test(onnx, shapes_that_a_file_declares_wrong_are_told)
{
    const char *const said = "node 'y': this output has the shape [2,3,5], and the file declares another one";
    cr_expect_null(strstr(ok("check right.onnx").err, "declares"));
    cr_expect_not_null(strstr(ok("check wrong.onnx").err, said));
    cr_expect_not_null(strstr(ok("compile flat.onnx -o m.pte").err, said));
    cr_expect_null(strstr(ok("check wrong.onnx --dim x.0=4").err, "declares"));
}

Test(onnx, a_newer_version_of_the_format_is_told)
{
    const char *const said = "has the IR version 15, expected up to 14: what is new in it is not read";
    cr_expect_not_null(strstr(ok("check newer.onnx").err, said));
}

Test(onnx, run_gives_what_torch_gave)
{
    ok("run linear.onnx --input $DATA/linear/input_0.npy --output-dir out -q");
    expect_close("out/output_0.npy", "linear", "output_0.npy");
    ok("compile " MLP "-o m.pte -q");
    ok("run m.pte --input $DATA/mlp_digits/input_0.npy --output-dir mlp -q");
    expect_close("mlp/output_0.npy", "mlp_digits", "output_0.npy");
}

Test(onnx, its_words_become_those_of_torch)
{
    Result r = ok("compile spelled.onnx -o m.pte --dump-ir after:canonicalize -q");
    static const char *const line[] = {"aten.mul.Scalar(%x, 2.0)", ", 4.0) : f32[1,4,2,64]",
                                       "aten.sub.Scalar(", "aten.linear.default(", ", %w_c0, none) : f32[1,4,2,65]",
                                       "aten.pixel_shuffle.default(", "aten.reflection_pad2d.default(%e",
                                       ", [0, 2, 1, 0])", "aten.replication_pad2d.default("};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        cr_expect_not_null(strstr(r.out, line[i]), "no '%s' in\n%s", line[i], r.out);
}

Test(onnx, diff_sees_that_it_is_the_export)
{
    ok("diff $DATA/linear/model.pt2 linear.onnx");
    cr_assert_eq(sh("sed 's/\\(.*\\)\\x3e/\\1\\x3f/' linear.onnx > other.onnx").code, 0); /* a weight */
    fails("diff $DATA/linear/model.pt2 other.onnx -q > o", 5, "1 of 1 outputs");
}

Test(onnx, emitted_c_gives_what_torch_gave)
{
    ok("emit-c linear.onnx -o m.c --main -q");
    cr_assert_eq(sh("cc -O1 -o m m.c m_main.c -lm").code, 0);
    cr_assert_eq(sh("./m --input $DATA/linear/input_0.npy --output-dir out").code, 0);
    expect_close("out/output_0.npy", "linear", "output_0.npy");
}

Test(onnx, quantize_sees_ranges_that_compile_takes)
{
    const char *samples = "--recipe int8 --calibrate $DATA/mlp_digits/extra_test_x.npy";
    ok(arena_printf(arena, "quantize " MLP "%s --statistics s.txt -q", samples));
    ok("compile " MLP "--recipe int8 --statistics s.txt -o q.pte -q");
    Result r = ok("inspect q.pte");
    cr_expect_not_null(strstr(r.out, "quantize"), "%s", r.out);
}

/* Weights in a file of their own are part of the model. */
Test(onnx, the_key_holds_external_data)
{
    const char *before = ok("key beside.onnx").out;
    cr_expect_str_eq(before, ok("key beside.onnx").out);
    sh("printf x | dd of=w.bin bs=1 seek=3 conv=notrunc status=none");
    cr_expect_str_neq(before, ok("key beside.onnx").out);
}

Test(onnx, external_data_may_lie_elsewhere)
{
    ok("compile beside.onnx -o a.pte -q");
    cr_assert_eq(sh("mkdir elsewhere && mv w.bin elsewhere").code, 0);
    ok("compile beside.onnx --weights-dir elsewhere -o b.pte -q");
    cr_expect_eq(sh("cmp a.pte b.pte").code, 0);
    fails("compile beside.onnx -o c.pte", 3, "w.bin");
    fails("compile $DATA/mlp_digits/model.pt2 --weights-dir elsewhere -o c.pte", 1,
          "--weights-dir belongs to an unpacked model or an .onnx");
}
