/* test_quantizing.c -- tests --recipe, --calibrate, --statistics and `etc quantize`, and compares
 * the models with those that torch computes with the same scales (tests/data/quantized/record.py).
 */
#include "tests/cli/cli.h"

TestSuite(quantizing, .init = make_folders, .fini = remove_folders);

static const float *data(const char *name, size_t *n)
{
    char header[256];
    return floats(arena_printf(arena, "%s/tests/data/%s", ROOT, name), header, n);
}

/* -- beside torch ------------------------------------------------------------------------------ */

enum { IMAGES = 24, PIXELS = 64, CLASSES = 10 };

static const char *as_inputs(const char *model)
{
    size_t n;
    const float *x = data(arena_printf(arena, "quantized/%s_images.npy", model), &n);
    const char *line = "";
    cr_assert_eq(n, IMAGES * PIXELS);
    for (int i = 0; i < IMAGES; i++) {
        write_images(arena_printf(arena, "%d.npy", i), *model == 'm' ? "1, 64" : "1, 1, 8, 8",
                     x + i * PIXELS, PIXELS);
        line = arena_printf(arena, "%s%s--input %d.npy", line, i ? " --next " : "", i);
    }
    return line;
}

static void expect_what_torch_has(const char *model, const char *recipe)
{
    size_t n, m;
    char header[256];
    const float *want = data(arena_printf(arena, "quantized/%s_%s.npy", model, recipe), &n);
    cr_assert_eq(n, IMAGES * CLASSES);
    for (int i = 0; i < IMAGES; i++) {
        const float *got = floats(arena_printf(arena, "out/%d/output_0.npy", i), header, &m);
        cr_assert_eq(m, CLASSES);
        for (int k = 0; k < CLASSES; k++) /* steps of the result are over 0.05 */
            cr_expect(fabs((double)got[k] - (double)want[i * CLASSES + k]) < 1e-4,
                      "%s, %s: image %d, class %d: %g, torch has %g", model, recipe, i, k,
                      (double)got[k], (double)want[i * CLASSES + k]);
    }
}

Test(quantizing, results_are_those_of_torch)
{
    static const char *const model[] = {"mlp_digits", "cnn_digits"};
    static const char *const recipe[][2] = {
        {"int8", "$DATA/quantized/int8.yaml"},
        {"int8-dynamic", "int8-dynamic"},
        {"int8-weight", "int8-weight"},
        {"int4-group32", "$DATA/quantized/int4-group32.yaml"}};
    for (int m = 0; m < 2; m++) {
        const char *inputs = as_inputs(model[m]);
        for (int i = 0; i < 4; i++) {
            ok(arena_printf(arena, "compile $DATA/%s/model.pt2 -q --recipe %s%s -o q.pte --verify",
                            model[m], recipe[i][1],
                            i ? ""
                              : arena_printf(arena, " --calibrate $DATA/%s/extra_test_x.npy",
                                             model[m])));
            ok(arena_printf(arena, "run q.pte %s --output-dir out -q", inputs));
            expect_what_torch_has(model[m], recipe[i][0]);
            sh("rm -r out");
        }
    }
}

Test(quantizing, reduced_weights_are_in_a_range_that_c_knows)
{
    static const struct {
        const char *recipe;
        bool is_reduced;
    } row[] = {{"int8-reduced --calibrate $DATA/cnn_digits/extra_test_x.npy", true},
               {"int8 --calibrate $DATA/cnn_digits/extra_test_x.npy", false}};
    for (int i = 0; i < 2; i++) {
        ok(arena_printf(arena, "emit-c $DATA/cnn_digits/model.pt2 -q --target x86-64-v3 --recipe %s -o m.c",
                        row[i].recipe));
        sh(row[i].is_reduced ? "grep -q '^#define ETC_REDUCED_WEIGHTS 1' m.c"
                             : "! grep -q '^#define ETC_REDUCED_WEIGHTS 1' m.c");
    }
}

/* -- statistics -------------------------------------------------------------------------------- */

#define MLP "$DATA/mlp_digits/model.pt2 --recipe int8 "
#define KNOWN "$DATA/mlp_digits/model.pt2 --recipe $DATA/quantized/int8.yaml "
#define SAMPLES "--calibrate $DATA/mlp_digits/extra_test_x.npy "
#define VWW_MODEL "$DATA/tiny_vww_mobilenet/model.pt2 "

Test(quantizing, statistics_stand_for_samples)
{
    Result r = ok("quantize " KNOWN SAMPLES "--statistics s.txt");
    cr_expect(strstr(r.err, "s.txt: ") && strstr(r.err, "over 1 sample"), "%s", r.err);
    ok("compile " KNOWN SAMPLES "-o a.pte -q");
    ok("compile " KNOWN "--statistics s.txt -o b.pte -q");
    expect_same("a.pte", "b.pte");
    ok("quantize " KNOWN SAMPLES "--statistics t.txt -q");
    expect_same("s.txt", "t.txt");
    ok("emit-c " KNOWN SAMPLES "-o m.c -q");
    sh("mv m.c with_samples.c");
    ok("quantize " KNOWN SAMPLES "--tail c --statistics c.txt -q");
    ok("emit-c " KNOWN "--statistics c.txt -o m.c -q");
    expect_same("m.c", "with_samples.c");
#define MCU "--target cortex-m4 --io int8 "
    ok("emit-c " KNOWN SAMPLES MCU "-o m.c -q");
    sh("mv m.c with_samples.c");
    ok("quantize " KNOWN SAMPLES MCU "--statistics c.txt -q");
    ok("emit-c " KNOWN MCU "--statistics c.txt -o m.c -q");
    expect_same("m.c", "with_samples.c");
}

/* With gptq, which they leave out, and say so. */
Test(quantizing, statistics_have_no_products)
{
    ok("quantize " MLP SAMPLES "--statistics s.txt -q");
    Result r = ok("compile " MLP "--statistics s.txt -o a.pte -q");
    cr_expect(strstr(r.err, "s.txt: warning: has no products of operands: ") &&
                  strstr(r.err, "without gptq, for which a compile needs samples (--calibrate)"),
              "%s", r.err);
    r = ok("compile " MLP SAMPLES "-o b.pte -q");
    cr_expect_str_eq(r.err, "");
    cr_expect_eq(sh("cmp -s a.pte b.pte").code, 1);
}

Test(quantizing, weights_that_get_something_else_are_named)
{
    static const char coarser[] = "int4-group32: warning: weights become int8 with a scale per "
                                  "output channel where their rows cannot be divided into such "
                                  "groups: conv2d, conv2d_1\n";
    static const char left[] = "int8-weight: warning: weights stay floats where the backend or "
                               "kernel of a node cannot compute with such integers: conv2d, "
                               "conv2d_1, conv2d_2, "
                               "conv2d_3, conv2d_4, conv2d_5 and 21 more\n";
    Result r = ok("compile $DATA/cnn_digits/model.pt2 --recipe int4-group32 -o a.pte -q");
    cr_expect_str_eq(r.err, coarser);
    r = ok("compile " VWW_MODEL "--recipe int8-weight --backend xnnpack -o a.pte -q");
    cr_expect_str_eq(r.err, left);
    r = ok("compile " VWW_MODEL "--recipe int8-weight -o a.pte -q");
    cr_expect_str_eq(r.err, "");
}

Test(quantizing, statistics_of_something_else_are_refused)
{
    ok("quantize " MLP SAMPLES "--statistics s.txt -q");
    fails("compile $DATA/cnn_digits/model.pt2 --recipe int8 --statistics s.txt -o a.pte", 1,
          "s.txt: error: was made of another model than");
    fails("compile $DATA/mlp_digits/model.pt2 --recipe $DATA/quantized/int8.yaml "
          "--statistics s.txt -o a.pte",
          1, "has no 'range.minmax' of it: make it with this recipe");
    sh("head -c 200 s.txt > cut.txt; echo hello > other.txt; : > empty.txt;"
       "sed 's/^range/range x/' s.txt > n.txt; sed 's/^\\(range.*\\)$/\\1\\n\\1/' s.txt > twice.txt");
    fails("compile " MLP "--statistics cut.txt -o a.pte", 1, "cut.txt:");
    fails("compile " MLP "--statistics other.txt -o a.pte", 1, "is not a file of statistics");
    fails("compile " MLP "--statistics empty.txt -o a.pte", 1, "is not a file of statistics");
    fails("compile " MLP "--statistics n.txt -o a.pte", 1, "is not a line KEY N V1 ... VN NAME");
    fails("compile " MLP "--statistics twice.txt -o a.pte", 1, "appears twice");
    fails("compile " MLP "--statistics none.txt -o a.pte", 3, "none.txt");
    expect_files("cut.txt empty.txt n.txt other.txt s.txt twice.txt ");
}

/* -- threads and pieces ------------------------------------------------------------------------ */

#define VWW VWW_MODEL "--recipe int8 --calibrate x.npy "
#define VWW_KNOWN VWW_MODEL "--recipe $DATA/quantized/int8.yaml "
#define VWW_NOISE VWW_KNOWN "--calibrate x.npy "

static void write_noise(const char *path, int n)
{
    enum { PIXELS_OF_VWW = 3 * 96 * 96 };
    float *x = NEW(arena, float, n * PIXELS_OF_VWW);
    uint32_t seed = 1;
    for (int i = 0; i < n * PIXELS_OF_VWW; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(seed >> 8) / 16777216.0f;
    }
    write_images(path, arena_printf(arena, "%d, 3, 96, 96", n), x, (size_t)n * PIXELS_OF_VWW);
}

Test(quantizing, threads_change_nothing)
{
    write_noise("x.npy", 12);
    ok("quantize " VWW "--statistics a.txt --report a.json -q --threads 1");
    ok("quantize " VWW "--statistics b.txt --report b.json -q --threads 7");
    ok("quantize " VWW "--statistics c.txt --report c.json -q");
    expect_same("a.txt", "b.txt");
    expect_same("a.json", "b.json");
    expect_same("a.txt", "c.txt");
    ok("compile " VWW "-o a.pte -q --threads 1");
    ok("compile " VWW "-o b.pte -q --threads 7");
    expect_same("a.pte", "b.pte");
    fails("quantize " VWW "--statistics a.txt --threads 0", 2, "a number from 1 to 1024");
}

/* Everything that comes of it says so. */
Test(quantizing, what_a_library_multiplied_says_so)
{
    write_noise("x.npy", 3);
    Result r = etc("quantize " VWW_NOISE "--statistics s.txt --report s.html --json --fast-calibrate");
    if (r.code && strstr(r.err, "install libopenblas0-pthread or libopenblas0-serial"))
        cr_skip_test("OpenBLAS is not installed");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_expect(strstr(text(json(&r), "fast_calibrate"), "OpenBLAS"));
    ok("quantize " VWW_NOISE "--statistics t.txt -q --fast-calibrate --threads 3");
    expect_same("s.txt", "t.txt");
    r = ok("compile " VWW_NOISE "-o a.pte -q --json --fast-calibrate");
    cr_expect(strstr(text(json(&r), "fast_calibrate"), "OpenBLAS"));
    ok("compile " VWW_KNOWN "--statistics s.txt -o b.pte -q");
    expect_same("a.pte", "b.pte");
    ok("run a.pte --input $DATA/tiny_vww_mobilenet/input_0.npy -q");
    ok("emit-c " VWW_NOISE "-o m.c -q --fast-calibrate");
    sh("grep -c OpenBLAS s.txt s.html a.pte m.c m.h > n");
    size_t n;
    cr_expect_str_eq(slurp("n", &n), "s.txt:1\ns.html:1\na.pte:1\nm.c:1\nm.h:1\n");
    ok("compile " VWW_NOISE "-o c.pte -q");
    cr_expect_eq(sh("grep -q OpenBLAS c.pte").code, 1);
    fails("compile " VWW_KNOWN "--statistics s.txt -o b.pte "
          "--fast-calibrate",
          2, "--fast-calibrate needs --calibrate");
}

/* Ends a run in its midst; it may be too early for anything to be kept, but not too late. */
Test(quantizing, a_run_that_is_ended_goes_on)
{
    static const char *const signal_of[] = {"INT", "TERM"};
#ifdef __SANITIZE_ADDRESS__
    write_noise("x.npy", 40); /* which take as long */
#else
    write_noise("x.npy", 400);
#endif
    ok("quantize " VWW "--statistics want.txt -q");
    for (int i = 0; i < 2; i++) {
        for (double delay = 0.1; delay < 4 && access("got.txt.part", F_OK) != 0; delay *= 1.5) {
            Result r = sh(arena_printf(arena,
                                       "timeout --preserve-status -s %s %g "
                                       "\"$ETC\" quantize " VWW "--statistics got.txt",
                                       signal_of[i], delay));
            cr_assert(r.code > 128, "exit %d\n%s", r.code, r.err);
        }
        expect_files("got.txt.part want.txt x.npy ");
        Result r = ok("quantize " VWW "--statistics got.txt");
        cr_expect(strstr(r.err, "got.txt.part: continued after "), "%s", r.err);
        expect_same("want.txt", "got.txt");
        expect_files("got.txt want.txt x.npy ");
        sh("mv got.txt got.txt.part; touch x.npy");
        r = ok("quantize " VWW "--statistics got.txt");
        cr_expect(strstr(r.err, "got.txt.part: is not of this model, recipe and samples"), "%s",
                  r.err);
        expect_same("want.txt", "got.txt");
        sh("rm got.txt");
    }
}

Test(quantizing, the_report_tells_weights_that_are_halves)
{
    ok("quantize $DATA/mlp_digits/model.pt2 --recipe fp16 -q --statistics s --report r.html "
       "--calibrate $DATA/quantized/mlp_digits_calibration.npy");
    sh_ok("grep -q 'weights float16' r.html");
}

/* -- integers at the interface ------------------------------------------------------------------ */

#define KWS "$DATA/tiny_kws_dscnn"
#define KWS_INT8 KWS "/model.pt2 -q --recipe int8 --calibrate " KWS "/input_0.npy "
#define IO "python3 " ROOT "/tests/cli/integer_io.py "

Test(quantizing, inputs_and_outputs_are_integers_where_asked)
{
    static const char *const dtype[] = {"int8", "uint8"}, *const target[] = {"generic",
                                                                             "cortex-m4"};
    for (int i = 0; i < 2; i++) {
        const char *io = dtype[i];
        for (int t = 0; t < 2; t++) {
            ok(arena_printf(arena, "emit-c " KWS_INT8 "--main --io %s --target %s -o m.c", io,
                            target[t]));
            sh_ok(
                "cc -std=c99 -O0 -Wall -Wextra -Werror m.c m_main.c $(ls m_weights.S 2>/dev/null) -lm -o m");
            sh_ok(arena_printf(arena, IO "quantize m.h %s " KWS "/input_0.npy x.npy", io));
            sh_ok("./m --input x.npy --output-dir out && " IO "compare m.h out/output_0.npy " KWS
               "/output_0.npy 1.5");
            sh("rm -r out m.c m_main.c");
        }
        ok(arena_printf(arena, "compile " KWS_INT8 "--io %s -o m.pte", io));
        ok("run m.pte --input x.npy --output-dir out -q");
        sh_ok(IO "compare m.h out/output_0.npy " KWS "/output_0.npy 1.5 && rm -r out");
    }
}

Test(quantizing, a_port_without_a_range_stays_float)
{
    Result r = ok("emit-c $DATA/tiny_ad_autoencoder/model.pt2 --recipe int8 --calibrate "
                  "$DATA/tiny_ad_autoencoder/input_0.npy --dim x.0=1 --io int8 -q -o m.c");
    cr_expect_not_null(
        strstr(r.err, "warning: node 'mean' (aten.mean.dim): --io: output 1 stays float"), "%s",
        r.err);
    fails("compile $DATA/mlp_digits/model.pt2 --io int8 -o m.pte", 1,
          "--io: no input and no output is quantized: give a --recipe");
    fails("compile " KWS_INT8 "--io int8 --verify -o m.pte", 2, "leave out --io");
}

/* An export may list ranges of sizes that its graph does not have any more. */
Test(quantizing, sizes_that_nothing_names_are_none)
{
    ok("emit-c " ROOT "/tests/mcu/gates/model.pt2 -q --main -o m.c");
    sh_ok(
        "grep -qx 'int m_run(const float \\*x, float \\*out_softmax, float \\*out_sigmoid_1, void \\*arena);' m.h");
}

/* -- mistakes ---------------------------------------------------------------------------------- */

Test(quantizing, flags_must_agree)
{
    fails("quantize $DATA/add/model.pt2", 2, "--recipe is missing");
    fails("quantize $DATA/add/model.pt2 --recipe int8", 2, "--calibrate is missing");
    fails("quantize " KNOWN SAMPLES "--statistics s --target cortex-m4 --tail pte", 2,
          "--target is for C, not for --tail pte");
    fails("quantize " KNOWN SAMPLES "--statistics s --target cortex-m4 --backend xnnpack", 2,
          "--backend is for a .pte, not for --target");
    fails("compile $DATA/add/model.pt2 -o a.pte --calibrate x", 2, "--calibrate needs a --recipe");
    fails("compile " MLP "-o a.pte", 1, "needs static scales: give samples");
    expect_files("");
}

/* Ranges of nothing: weights and samples that are always 0. */
Test(quantizing, channels_of_zeros_have_a_scale)
{
    static const char *const recipe[] = {"int8", "int8-dynamic", "int8-weight",
                                         "$DATA/quantized/int4-group32.yaml"};
    static const float zeros[64] = {0};
    write_images("x.npy", "1, 64", zeros, 64);
    write_text("m.etir", "program \"m\" stage core\n"
                         "const %w = \"w\" : f32[4,64] in \"-\"+0\n"
                         "method @forward(%x: f32[1,64]) {\n"
                         "  %l = aten.linear.default(%x, %w, none) : f32[1,4]\n"
                         "  return %l\n}\n");
    sh("head -c 1024 /dev/zero > side");
    for (int i = 0; i < 4; i++) {
        char header[256];
        size_t n;
        ok(arena_printf(arena, "compile m.etir --data side -q --recipe %s%s -o q.pte --verify",
                        recipe[i], i ? "" : " --calibrate x.npy"));
        ok("run q.pte --input x.npy --output-dir out -q");
        const float *y = floats("out/output_0.npy", header, &n);
        for (size_t k = 0; k < n; k++)
            cr_expect(y[k] == 0, "%s: %g", recipe[i], (double)y[k]);
        cr_expect_eq(n, 4);
    }
}

/* The loop multiplies x twice by 2: weights of integers hold that exactly. */
Test(quantizing, bodies_of_loops_have_scales_found_at_run_time)
{
    static const float x[] = {1, -2, 127, 4}, w[] = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2};
    static const char *const recipe[] = {"int8 --calibrate x.npy", "int8-dynamic", "int8-weight"};
    write_images("x.npy", "1, 4", x, 4);
    write_text("m.etir", "program \"m\" stage core\n"
                         "const %w = \"w\" : f32[4,4] in \"-\"+0\n"
                         "const %z = \"z\" : i64[] in \"-\"+64\n"
                         "method @forward(%x: f32[1,4]) {\n"
                         "  %i, %y = higher_order.while_loop(graph (%k: i64[], %a: f32[1,4]) {\n"
                         "    %c = aten.lt.Scalar(%k, 2) : bool[]\n"
                         "    return %c\n"
                         "  }, graph (%k: i64[], %a: f32[1,4]) {\n"
                         "    %n = aten.add.Scalar(%k, 1, 1) : i64[]\n"
                         "    %l = aten.linear.default(%a, %w, none) : f32[1,4]\n"
                         "    return %n, %l\n"
                         "  }, [%z, %x], []) : i64[], f32[1,4]\n"
                         "  return %y\n}\n");
    write_images("w.npy", "4, 4", w, 16);
    sh("tail -c 64 w.npy > side; head -c 8 /dev/zero >> side");
    for (int i = 0; i < 3; i++) {
        char header[256];
        size_t n;
        ok(arena_printf(arena, "compile m.etir --data side -q --recipe %s -o q.pte --verify", recipe[i]));
        Result r = ok("inspect q.pte");
        cr_expect_not_null(strstr(r.out, "1 quantized_decomposed::dequantize_per_channel"), "%s", r.out);
        cr_expect_eq(!strstr(r.out, "quantize_per_token"), i == 2, "%s", r.out);
        ok("run q.pte --input x.npy --output-dir out -q");
        const float *y = floats("out/output_0.npy", header, &n);
        cr_assert_eq(n, 4);
        for (size_t k = 0; k < n; k++)
            cr_expect(fabs((double)y[k] - 4 * (double)x[k]) < 4, "%s: %g", recipe[i], (double)y[k]);
    }
}

/* An overflow within the model is found at the node where it happens. */
Test(quantizing, an_infinity_is_told_with_sample_and_node)
{
    static const float big[] = {200, 1};
    write_images("x.npy", "1, 2", big, 2);
    write_text("m.etir", "program \"m\" stage core\n"
                         "const %w = \"w\" : f32[2,2] in \"-\"+0\n"
                         "method @forward(%x: f32[1,2]) {\n"
                         "  %e = aten.exp.default(%x) : f32[1,2] from \"net\", \"m.py:1\"\n"
                         "  %l = aten.linear.default(%e, %w, none) : f32[1,2]\n"
                         "  return %l\n}\n");
    sh("head -c 16 /dev/zero > side");
    fails("compile m.etir --data side --recipe int8 --calibrate x.npy -o a.pte", 1,
          "infinity at element 0 of its result");
    fails("compile m.etir --data side --recipe int8 --calibrate x.npy -o a.pte", 1, "node 'e'");
    fails("compile m.etir --data side --recipe int8 --calibrate x.npy -o a.pte", 1,
          "sample 'x.npy");
}
