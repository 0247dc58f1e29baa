/* test_backends.c -- tests --backend: the output of `etc partition`, the summary line of `compile`,
 * and --require-delegated. */
#include "tests/cli/cli.h"

TestSuite(backends, .init = make_folders, .fini = remove_folders);

/* A product, an operator that XNNPACK lacks, and a product of what came before both. */
static void write_model(void)
{
    write_text("m.etir",
               "program \"m\" stage core\n"
               "method @forward(%x: f32[1,256,256], %y: f32[4]) {\n"
               "  %a = aten.bmm.default(%x, %x) : f32[1,256,256] from \"net.a\", \"m.py:1\"\n"
               "  %b = aten.erf.default(%a) : f32[1,256,256] from \"net.b\", \"m.py:2\"\n"
               "  %c = aten.bmm.default(%b, %a) : f32[1,256,256] from \"net.c\", \"m.py:3\"\n"
               "  %d = aten.gelu.default(%y, approximate=\"tanh\") : f32[4]\n"
               "  return %c, %d\n}\n");
}

Test(backends, partition_tells_regions_and_what_stays)
{
    write_model();
    Result r = ok("partition m.etir --backend xnnpack");
    cr_expect(strstr(r.out, "region 0: xnnpack in @forward, 1 nodes, 16777216 multiply-adds\n"
                            "  nodes    1 x aten.bmm.default\n"
                            "  inputs   %x: f32[1,256,256], 262144 bytes\n"
                            "  outputs  %a: f32[1,256,256], 262144 bytes\n"
                            "  border   524288 bytes"),
              "%s", r.out);
    cr_expect(strstr(r.out, "region 1: ") && !strstr(r.out, "region 2: "), "%s", r.out);
    cr_expect(strstr(r.out, "outside: b (aten.erf.default) in @forward, net.b, m.py:2\n"
                            "  because  XNNPACK has no such operation\n"),
              "%s", r.out);
    cr_expect(strstr(r.out, "in all: 2 of 4 nodes, 100 % of multiply-adds"), "%s", r.out);
    expect_files("m.etir ");
}

Test(backends, partition_json)
{
    write_model();
    Result r = ok("partition m.etir --backend xnnpack --json");
    const Json *root = json(&r), *region = item(json_get(root, "regions"), 1);
    const Json *out = item(json_get(root, "rejected"), 0);
    cr_expect_eq(number(root, "schema"), 1);
    cr_expect_eq(json_count(json_get(root, "regions")), 2);
    cr_expect_eq(number(root, "nodes"), 4);
    cr_expect_eq(number(root, "delegated_nodes"), 2);
    cr_expect_eq(number(root, "delegated_macs"), 2 * 16777216);
    cr_expect_eq(json_count(json_get(root, "rejected")), 2);
    cr_expect_eq(number(region, "border_bytes"), 3 * 262144);
    cr_expect_eq(json_count(json_get(region, "inputs")), 2);
    cr_expect_str_eq(text(item(json_get(region, "inputs"), 1), "name"), "a");
    cr_expect_str_eq(text(item(json_get(region, "operators"), 0), "name"), "aten.bmm.default");
    cr_expect_str_eq(text(out, "node"), "b");
    cr_expect_str_eq(text(out, "source"), "m.py:2");
    cr_expect_str_eq(text(out, "why"), "XNNPACK has no such operation");
}

Test(backends, simulate_compares_chains)
{
    write_model();
    Result r = ok("partition m.etir --backend xnnpack --simulate --json");
    const Json *chains = json_get(json(&r), "chains");
    cr_expect_eq(json_count(chains), 2);
    cr_expect_str_eq(text(item(chains, 0), "backends"), "none");
    cr_expect_eq(number(item(chains, 0), "delegated_nodes"), 0);
    cr_expect_str_eq(text(item(chains, 1), "backends"), "xnnpack");
    cr_expect_eq(number(item(chains, 1), "delegated_nodes"), 2);
    r = ok("partition m.etir --backend xnnpack --simulate");
    cr_expect(strstr(r.out, "none ") && strstr(r.out, "xnnpack "), "%s", r.out);
    expect_files("m.etir ");
}

Test(backends, compile_tells_in_a_line_who_takes_what)
{
    write_model();
    Result r = ok("compile m.etir -o m.pte --backend xnnpack");
    cr_expect(strstr(r.err, "m.pte: 2 regions, 2 of 4 nodes, 100 % of multiply-adds; slowest "
                            "outside: aten.erf.default, 1 node, about "),
              "%s", r.err);
    r = ok("compile m.etir -o m.pte --backend xnnpack -q");
    cr_expect_str_empty(r.err);
    r = ok("compile m.etir -o m.pte");
    cr_expect_null(strstr(r.err, "region"), "%s", r.err);
    r = ok("inspect m.pte");
    cr_expect_null(strstr(r.out, "XnnpackBackend"), "%s", r.out);
    r = ok("compile m.etir -o x.pte --backend xnnpack --verify --check-ir -v");
    cr_expect(strstr(r.err, "is compared from here on") && !strstr(r.err, "is not evaluated"), "%s",
              r.err);
    r = ok("inspect x.pte");
    cr_expect_not_null(strstr(r.out, "XnnpackBackend"), "%s", r.out);
}

Test(backends, inspect_tells_what_a_blob_holds)
{
    write_text("m.etir", "program \"m\" stage core\nmethod @forward(%x: f32[2,3]) {\n"
                         "  %y = aten.tanh.default(%x) : f32[2,3]\n"
                         "  %z = aten.add.Tensor(%y, %x, 1) : f32[2,3]\n"
                         "  %w = aten.tanh.default(%z) : f32[2,3]\n  return %w\n}\n");
    ok("compile m.etir -o m.pte --backend xnnpack");
    Result r = ok("inspect m.pte");
    cr_expect(strstr(r.out, "delegate 0: XnnpackBackend, ") && strstr(r.out, " bytes:\n") &&
                  strstr(r.out, "      1 add\n") && strstr(r.out, "      2 tanh\n"),
              "%s", r.out);
    r = ok("inspect m.pte --json");
    cr_expect(strstr(r.out, "\"wrong\": null, \"values\": 4, \"constants\": 0, "
                            "\"nodes\": {\"add\": 1, \"tanh\": 2}"),
              "%s", r.out);
    ok("compile m.etir -o m.pte --backend xnnpack");
    sh("sed -i s/XN01/XN02/ m.pte");
    r = ok("inspect m.pte");
    cr_expect(strstr(r.out, ", not readable: "), "%s", r.out);
}

Test(backends, all_that_fits_goes_where_it_is_asked_for)
{
    write_text("s.etir", "program \"s\" stage core\nmethod @forward(%x: f32[4]) {\n"
                         "  %y = aten.relu.default(%x) : f32[4]\n  return %y\n}\n");
    Result r = ok("partition s.etir --backend xnnpack");
    cr_expect(strstr(r.out, "because  its region would cost more than it saves"), "%s", r.out);
    r = ok("partition s.etir --backend xnnpack --delegate all");
    cr_expect(strstr(r.out, "in all: 1 of 1 nodes"), "%s", r.out);
    r = ok("partition s.etir --backend xnnpack --delegate worth");
    cr_expect(strstr(r.out, "in all: 0 of 1 nodes"), "%s", r.out);
}

/* XNNPACK has no tensors without elements, and a size may be zero at each call. */
Test(backends, rows_of_which_there_are_none_stay)
{
    write_text("m.etir",
               "program \"m\" stage core\n"
               "sym %n in 0..0\n"
               "method @forward(%x: f32[%n,32]) {\n"
               "  %s, %z = quantized_decomposed.choose_qparams_per_token_asymmetric.default(%x, "
               "i8) : f64[%n,1], i64[%n,1]\n"
               "  %q = quantized_decomposed.quantize_per_token.default(%x, %s, %z, -128, 127, i8) "
               ": i8[%n,32]\n"
               "  %f = quantized_decomposed.dequantize_per_token.default(%q, %s, %z, -128, 127, "
               "i8, f32) : f32[%n,32]\n"
               "  %k = aten.full.default([8,32], 1, dtype=i8, layout=none, device=none, "
               "pin_memory=none) : i8[8,32]\n"
               "  %w = quantized_decomposed.dequantize_per_tensor.default(%k, 0.5, 0, -128, 127, "
               "i8, none) : f32[8,32]\n"
               "  %y = aten.linear.default(%f, %w, none) : f32[%n,8]\n"
               "  return %y\n}\n");
    Result r = ok("partition m.etir --backend xnnpack --delegate all");
    cr_expect(strstr(r.out, "in all: 0 of "), "%s", r.out);
}

Test(backends, half_floats_go_but_for_what_loses_more)
{
    write_text("h.etir", "program \"h\" stage core\n"
                         "method @forward(%x: f16[4,8], %y: f32[4,8]) {\n"
                         "  %a = aten.relu.default(%x) : f16[4,8]\n"
                         "  %b = aten.gelu.default(%a, approximate=\"none\") : f16[4,8]\n"
                         "  %c = aten.mul.Scalar(%b, 1e-06) : f16[4,8]\n"
                         "  %d = aten.clamp.default(%c, 1.0, 1.0001) : f16[4,8]\n"
                         "  %e = aten.mean.dim(%d, [1], true, dtype=none) : f16[4,1]\n"
                         "  %f = aten.mul.Tensor(%e, %y) : f32[4,8]\n"
                         "  %g = aten.mul.Scalar(%d, 0.001) : f16[4,8]\n"
                         "  return %f, %g\n}\n");
    Result r = ok("partition h.etir --backend xnnpack --delegate all");
    cr_expect(strstr(r.out, "in all: 2 of 7 nodes"), "%s", r.out);
    cr_expect(strstr(r.out, "outside: b (aten.gelu.default) in @forward\n"
                            "  because  XNNPACK has no such operation in f16, or one less exact"),
              "%s", r.out);
    cr_expect(strstr(r.out, "outside: c (aten.mul.Scalar) in @forward\n"
                            "  because  one of its numbers is too large or too small for f16"),
              "%s", r.out);
    cr_expect(strstr(r.out, "because  its limits are the same in f16"), "%s", r.out);
    cr_expect(strstr(r.out, "outside: e (aten.mean.dim) in @forward\n"
                            "  because  XNNPACK has no such operation in f16"),
              "%s", r.out);
    cr_expect(strstr(r.out, "outside: f (aten.mul.Tensor) in @forward\n"
                            "  because  its operands are not all f32, or all f16"),
              "%s", r.out);
}

Test(backends, require_delegated_is_a_gate)
{
    write_model();
    ok("compile m.etir -o a.pte --backend xnnpack --require-delegated 100 -q");
    ok("partition m.etir --backend xnnpack --require-delegated 100 -q");
    write_text("s.etir", "program \"s\" stage core\nmethod @forward(%x: f32[1,4,4]) {\n"
                         "  %y = aten.bmm.default(%x, %x) : f32[1,4,4]\n  return %y\n}\n");
    fails("compile s.etir -o b.pte --backend xnnpack --require-delegated 1", 5,
          "0 % of the work is delegated, 1 % required");
    fails("partition s.etir --backend xnnpack --require-delegated 1", 5, "0 % of the work");
    expect_files("a.pte m.etir s.etir ");
}

Test(backends, wrong_use_is_told)
{
    write_model();
    fails("partition m.etir", 2, "--backend is missing; usage: etc partition MODEL");
    fails("partition m.etir --backend portable", 2, "--backend portable delegates nothing");
    fails("partition m.etir --backend xnnpak", 2,
          "there is no backend 'xnnpak'; did you mean 'xnnpack'?");
    fails("partition m.etir --backend xnnpack --delegate some", 2, "--delegate expects worth|all");
    fails("partition m.etir --backend xnnpack --simulate --require-delegated 5", 2, "--simulate");
    write_text("p.etir", "program \"p\" stage edge\nmethod @forward(%x: f32[4]) {\n"
                         "  %y = aten.relu.default(%x) : f32[4]\n  return %y\n}\n");
    fails("partition p.etir --backend xnnpack", 1,
          "is at stage edge: backends choose nodes at core");
}
