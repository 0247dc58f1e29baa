/* test_bench.c -- tests that `etc bench` reports all its measurements and that they are
 * consistent.  No test asserts how long anything takes. */
#include "tests/cli/cli.h"

TestSuite(bench, .init = make_folders, .fini = remove_folders);

static const char model[] =
    "program \"m\" stage core\n"
    "method @forward(%x: f32[1,8,8], %n: i64[3]) {\n"
    "  %a = aten.bmm.default(%x, %x) : f32[1,8,8] from \"net.a\", \"m.py:1\"\n"
    "  %b = aten.erf.default(%a) : f32[1,8,8] from \"net.b\", \"m.py:2\"\n"
    "  %c = aten.add.Tensor(%n, %n, alpha=1) : i64[3]\n"
    "  return %b, %c\n}\n";

static double real(const Json *object, const char *key)
{
    double v = 0;
    cr_assert(json_float(json_get(object, key), &v), "no number '%s'", key);
    return v;
}

static double sum_of(const Json *rows)
{
    double sum = 0;
    for (int i = 0; i < json_count(rows); i++)
        sum += real(item(rows, i), "seconds");
    return sum;
}

Test(bench, json_holds_what_was_measured)
{
    write_text("m.etir", model);
    Result r = ok("bench m.etir --runs 5 --warmup 0 --json");
    const Json *root = json(&r), *times = json_get(root, "run_seconds"),
               *rows = json_get(root, "instructions"), *b = item(rows, 1);
    cr_expect_eq(number(root, "runs"), 5);
    cr_expect_eq(number(root, "warmup"), 0);
    cr_expect_eq(number(root, "threads"), 1);
    cr_expect_str_eq(text(root, "method"), "forward");
    cr_expect(real(root, "load_seconds") > 0 && real(root, "first_run_seconds") > 0);
    cr_expect_leq(real(times, "min"), real(times, "median"));
    cr_expect_leq(real(times, "median"), real(times, "max"));
    cr_expect_eq(json_count(json_get(times, "quartiles")), 2);
    cr_expect_gt(number(json_get(root, "memory"), "arena"), 0);
    cr_expect_eq(json_count(rows), 3);
    cr_expect_str_eq(text(b, "name"), "aten::erf.out");
    cr_expect_str_eq(text(b, "node"), "b");
    cr_expect_str_eq(text(b, "module"), "net.b");
    cr_expect_str_eq(text(b, "source"), "m.py:2");
    cr_expect_eq(number(b, "index"), 1);
    cr_expect_eq(number(b, "calls"), 1);
    cr_expect_eq(number(b, "bytes"), 512);
    cr_expect_eq(number(item(rows, 0), "macs"), 512);
    cr_expect_float_eq(sum_of(rows), real(root, "profile_seconds"), 1e-9);
    expect_files("m.etir ");
}

Test(bench, predictions_come_with_a_backend)
{
    write_text("m.etir", model);
    Result r = ok("bench m.etir --runs 1 --backend xnnpack --json");
    const Json *rows = json_get(json(&r), "instructions");
    for (int i = 0; i < json_count(rows); i++)
        cr_expect_gt(real(item(rows, i), "predicted_seconds"), 0);
    r = ok("bench m.etir --runs 1");
    cr_expect(strstr(r.out, "  b, net.b, m.py:2\n"), "%s", r.out);
    cr_expect(strstr(r.out, " -  aten::erf.out"), "%s", r.out);
}

Test(bench, a_pte_tells_operators)
{
    write_text("m.etir", model);
    ok("compile m.etir -o m.pte -q");
    Result r = ok("bench m.pte --runs 2 --json");
    const Json *rows = json_get(json(&r), "instructions");
    cr_expect_eq(json_count(rows), 3);
    cr_expect_str_eq(text(item(rows, 0), "name"), "aten::bmm.out");
    cr_expect_null(json_string(json_get(item(rows, 0), "node")));
    r = ok("bench m.pte --runs 2 --all");
    const char *first = strstr(r.out, "aten::bmm.out  #0\n");
    cr_expect(first && strstr(first, "aten::erf.out  #1\n"), "%s", r.out);
    r = ok("bench $DATA/mlp_digits/model.pt2 --input $DATA/mlp_digits/input_0.npy --runs 2");
    cr_expect(strstr(r.out, "the median of 2 ("), "%s", r.out);
}

Test(bench, open_sizes_are_at_their_upper_bounds)
{
    write_text("d.etir", "program \"d\" stage core\nsym %s in 2..9\n"
                         "method @forward(%x: f32[%s,4]) {\n"
                         "  %y = aten.erf.default(%x) : f32[%s,4]\n  return %y\n}\n");
    Result r = ok("bench d.etir --runs 1 --dim s=2..6 --json");
    const Json *rows = json_get(json(&r), "instructions"), *last = NULL;
    for (int i = 0; i < json_count(rows); i++)
        last = item(rows, i);
    cr_expect_eq(number(last, "bytes"), 2 * 6 * 4 * 4);
    cr_expect_str_eq(r.err, "d.etir: runs with the largest sizes: x [6,4]; --dim and --input set others\n");
    cr_expect_str_eq(ok("bench d.etir --runs 1 -q").err, "");
}

Test(bench, trace_is_json)
{
    size_t n;
    JsonDoc trace;
    Diag d = {.out = stderr};
    write_text("m.etir", model);
    ok("bench m.etir --runs 3 --trace t.json");
    const char *bytes = slurp("t.json", &n);
    cr_assert(json_parse(arena, "t.json", (const uint8_t *)bytes, n, &d, &trace));
    const Json *events = json_get(trace.root, "traceEvents");
    cr_assert_eq(json_count(events), 4);
    const Json *b = item(events, 2);
    cr_expect_str_eq(text(b, "name"), "aten::erf.out");
    cr_expect_str_eq(text(b, "ph"), "X");
    cr_expect_str_eq(text(json_get(b, "args"), "source"), "m.py:2");
    cr_expect_leq(real(item(events, 1), "ts") + real(item(events, 1), "dur"),
                  real(b, "ts") + 0.01);
    expect_files("m.etir t.json ");
}

Test(bench, forecasts_add_up)
{
    const char *command = "bench $DATA/cnn_digits/model.pt2 --recipe int8 --calibrate "
                          "$DATA/quantized/cnn_digits_calibration.npy --target cortex-m4";
    Result r = ok(arena_printf(arena, "%s --json", command));
    const Json *root = json(&r), *layers = json_get(root, "layers");
    double instructions = 0, flash = 0, most = 0;
    for (int i = 0; i < json_count(layers); i++) {
        const Json *l = item(layers, i);
        instructions += real(l, "instructions");
        flash += real(l, "flash");
        most = fmax(most, real(l, "ram"));
        cr_expect_gt(real(l, "steps"), 0);
    }
    cr_expect_gt(json_count(layers), 3);
    cr_expect_eq(number(root, "without_forecast"), 0);
    cr_expect_float_eq(instructions, real(root, "instructions"), json_count(layers));
    cr_expect_float_eq(real(root, "cycles"), 1.2 * instructions, 2 * json_count(layers));
    cr_expect(flash == real(root, "flash") && most == real(root, "ram"));
    cr_expect_gt(number(root, "code"), 2000);
    cr_expect_gt(number(root, "stack"), 200);
    const char *text = ok(command).out;
    cr_expect(strstr(text, "etc_mcu_"));
    cr_expect(strstr(text, " of code, about"));
    expect_files("");
}

Test(bench, wrong_use_is_told)
{
    write_text("m.etir", model);
    fails("bench m.etir --target cortex-m4 --runs 3", 2, "--runs is for runs here");
    fails("bench m.etir --target x86-64-v3", 4, "no table of instructions for --target x86-64-v3");
    ok("compile m.etir -o m.pte -q");
    fails("bench", 2, "a model is missing; usage: etc bench MODEL");
    fails("bench m.etir --runs 0", 2, "--runs expects a number from 1 to 100000, not '0'");
    fails("bench m.etir --warmup=-1", 2, "--warmup expects a number from 0");
    fails("bench m.etir --threads 0", 2, "--threads expects");
    fails("bench m.etir --trace m.etir", 2, "'m.etir' is read, so it is not written");
    fails("bench m.pte --backend xnnpack", 1, "are for models that are compiled first");
    fails("bench m.etir --input value:1", 1, "1 input given, method 'forward' has 2");
    fails("bench m.etir --input value:1 --input value:2", 1, "input 0 ('x')");
    fails("bench none.pte", 3, "none.pte");
    fails("bench m.etir --trace no/t.json", 3, "no/t.json");
    expect_files("m.etir m.pte ");
}
