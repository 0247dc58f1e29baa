/* test_doctor.c -- tests `etc doctor`, which lists what a .pte needs of the ExecuTorch runtime.
 * The expected kernels and libraries were taken from the published runtimes. */
#include "tests/cli/cli.h"

TestSuite(doctor, .init = make_folders, .fini = remove_folders);

#define OFFICIAL ROOT "/tests/data/official_pte/"

static const Json *first(const Json *of, const char *list)
{
    return item(json_get(of, list), 0);
}

static void expect_need(const Json *x, const char *cmake, const char *python)
{
    JsonIter it = json_iter(json_get(x, "needs"));
    while (json_next(&it))
        if (!strcmp(text(it.value, "cmake"), cmake)) {
            cr_expect_str_eq(text(it.value, "python"), python);
            return;
        }
    cr_expect_fail("needs no %s", cmake);
}

Test(doctor, reads_every_official_file)
{
    Result r = sh("n=0; for f in $DATA/official_pte/*.pte; do \"$ETC\" doctor $f --json > o || exit 1;"
                  "grep -q '\"refused\": \\[\\]' o || exit 2; n=$((n+1)); done; echo $n");
    cr_assert_eq(r.code, 0, "%s", r.err);
    cr_expect_gt(atoi(r.out), 20);
}

Test(doctor, names_kernels_delegates_libraries_and_memory)
{
    Result r = ok("doctor " OFFICIAL "off_qcx.pte --json");
    const Json *x = json(&r), *m = first(x, "methods"), *k = first(m, "kernels");
    cr_expect_str_eq(text(k, "name"), "aten::mean.out");
    cr_expect_str_eq(text(k, "since"), "1.0.1");
    cr_expect_str_eq(text(k, "cmake"), "portable_ops_lib");
    cr_expect_str_eq(text(first(m, "delegates"), "name"), "XnnpackBackend");
    int64_t pool = 0;
    cr_expect(json_int(item(json_get(json_get(m, "memory"), "pools"), 0), &pool) && pool == 2880);
    expect_need(x, "xnnpack_backend", "executorch.runtime");
    r = ok("doctor " OFFICIAL "off_qcx.pte");
    cr_expect_not_null(strstr(r.out, "pool 1: 2880 bytes"), "%s", r.out);
    cr_expect_not_null(strstr(r.out, "xnnpack_backend"), "%s", r.out);
    cr_expect_not_null(strstr(r.err, "nothing that ExecuTorch 1.4.1 would refuse"), "%s", r.err);
    cr_expect_eq(ok("doctor " OFFICIAL "off_qcx.pte -q").n_err, 0);
}

/* No portable kernel transforms; the Python runtime and one library of CMake have the kernel. */
Test(doctor, names_the_library_of_transforms)
{
    write_text("m.etir", "program \"m\" stage aten\n"
                         "method @forward(%x: f32[2,20]) {\n"
                         "  %a = aten.fft_rfft.default(%x, none, -1, none) : c64[2,11]\n"
                         "  %b = aten.view_as_real.default(%a) : f32[2,11,2]\n"
                         "  return %b\n"
                         "}\n");
    ok("compile m.etir -o m.pte -q");
    Result r = ok("doctor m.pte --json");
    expect_need(json(&r), "optimized_native_cpu_ops_lib", "executorch.runtime");
}

/* The file fails with 0x14 until the import is made. */
Test(doctor, tells_the_import_that_quantized_kernels_want)
{
    sh("mkdir d; cp $DATA/quantized/mlp_digits_calibration.npy d/");
    ok("compile $DATA/mlp_digits/model.pt2 --recipe int8 --calibrate d -o q.pte -q");
    Result r = ok("doctor q.pte --json");
    expect_need(json(&r), "quantized_ops_lib", "executorch.kernels.quantized");
    cr_expect_not_null(strstr(r.err, "slower than no quantization"), "%s", r.err);
    r = ok("doctor q.pte");
    cr_expect_not_null(strstr(r.out, "import executorch.kernels.quantized"), "%s", r.out);
}

Test(doctor, tells_what_an_older_runtime_refuses)
{
    write_text("g.etir", "program \"g\" stage aten\nmethod @forward(%x: f32[1,2,4,4]) {\n"
                         "  %p = aten._adaptive_avg_pool2d.default(%x, [2, 2]) : f32[1,2,2,2]\n"
                         "  return %p\n}\n");
    ok("compile g.etir -o g.pte -q");
    ok("doctor g.pte");
    ok("doctor g.pte --runtime 1.4.1");
    Result r = etc("doctor g.pte --runtime 1.2 --json");
    cr_expect_eq(r.code, 4);
    cr_expect_str_eq(text(first(json(&r), "refused"), "name"), "aten::_adaptive_avg_pool2d.out");
    cr_expect_not_null(strstr(r.err, "from 1.4.1 on"), "%s", r.err);
}

static void put(const char *path, const char *from, const char *to)
{
    size_t n;
    char *data = slurp(path, &n), *at = memmem(data, n, from, strlen(from));
    cr_assert_not_null(at);
    memcpy(at, to, strlen(to));
    FILE *f = fopen("changed.pte", "wb");
    fwrite(data, 1, n, f);
    fclose(f);
}

Test(doctor, tells_what_no_runtime_has)
{
    put(OFFICIAL "off_qcx.pte", "XnnpackBackend", "YnnpackBackend");
    Result r = etc("doctor changed.pte");
    cr_expect_eq(r.code, 4);
    cr_expect_not_null(strstr(r.err, "refuse YnnpackBackend"), "%s", r.err);
    put(OFFICIAL "off_add.pte", "aten::add", "mine::add");
    r = etc("doctor changed.pte");
    cr_expect_eq(r.code, 4);
    cr_expect_not_null(strstr(r.err, "mine::add.out"), "%s", r.err);
    cr_expect_not_null(strstr(r.err, "--ops"), "%s", r.err);
}

Test(doctor, says_which_versions_it_does_not_know)
{
    const char *unknown = "knows no ExecuTorch after 1.4.1";
    cr_expect_not_null(strstr(ok("doctor " OFFICIAL "off_add.pte --runtime 9.9").err, unknown));
    cr_expect_null(strstr(ok("doctor " OFFICIAL "off_add.pte --runtime 1.3").err, unknown));
}

Test(doctor, refuses_what_is_no_pte)
{
    fails("doctor $DATA/add/model.pt2", 1, "is not a .pte");
    fails("doctor " OFFICIAL "off_add.pte --runtime 0.7", 2, "a version from 1.0.1 on");
    write_text("short.pte", "12345678ET12");
    fails("doctor short.pte", 1, "short.pte");
}

/* -- the build that a manifest describes ------------------------------------------------------- */

#define MEANS "m.etir"

static void write_means(void)
{
    write_text(MEANS, "program \"m\" stage aten\nmethod @forward(%x: f32[2,3]) {\n"
                      "  %m = aten.mean.dim(%x, [1], false, none) : f32[2]\n"
                      "  %y = aten.exp.default(%m) : f32[2]\n  return %y\n}\n");
    ok("compile m.etir -o m.pte -q");
}

/* As gen_oplist of ExecuTorch 1.4.1 wrote it of off_qcx.pte, but for the path. */
#define SELECTED                                                                  \
    "build_features: []\ncustom_classes: []\net_kernel_metadata:\n"               \
    "  aten::mean.out:\n  - v1/6;0,1,2,3|6;0,1|6;0,1\n"                            \
    "include_all_non_op_selectives: false\ninclude_all_operators: false\n"         \
    "kernel_metadata: {}\noperators:\n  aten::mean.out:\n    debug_info:\n"        \
    "    - m.pte\n    include_all_overloads: false\n    is_root_operator: true\n"  \
    "    is_used_for_training: true\n"

Test(doctor, holds_a_file_against_a_manifest)
{
    static const char *const whole[] = {
        "operators: [aten::mean.out, 'aten::exp.out']\n", "- aten::exp.out\n- aten::mean.out\n",
        "# kernels\naten::exp.out\naten::mean.out # the second\n", "include_all_operators: true\n"};
    write_means();
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        write_text("manifest.yaml", whole[i]);
        ok("doctor m.pte --manifest manifest.yaml");
    }
    write_text("manifest.yaml", SELECTED);
    Result r = etc("doctor m.pte --manifest manifest.yaml --json");
    cr_expect_eq(r.code, 4);
    cr_expect_eq(json_count(json_get(json(&r), "refused")), 1);
    cr_expect_str_eq(text(first(json(&r), "refused"), "name"), "aten::exp.out");
    cr_expect_str_eq(text(first(json(&r), "refused"), "why"), "--manifest does not list it");
    write_text("more.txt", "aten::exp.out\n");
    ok("doctor m.pte --manifest manifest.yaml --manifest more.txt");
}

static void refused(const char *command, const char *why)
{
    Result r = etc(command);
    cr_expect_eq(r.code, 4);
    cr_expect_not_null(strstr(r.err, why), "%s", r.err);
}

Test(doctor, asks_a_manifest_for_delegates)
{
    write_text("selected.yaml", SELECTED);
    write_text("delegates.txt", "XnnpackBackend\n");
    refused("doctor " OFFICIAL "off_qcx.pte --manifest selected.yaml",
            "refuse XnnpackBackend: --manifest does not list it");
    ok("doctor " OFFICIAL "off_qcx.pte --manifest selected.yaml --manifest delegates.txt");
    write_text("all.yaml", "include_all_operators: true\ndelegates: []\n");
    refused("doctor " OFFICIAL "off_qcx.pte --manifest all.yaml", "refuse XnnpackBackend");
}

Test(doctor, tells_what_is_wrong_with_a_manifest)
{
    static const char *const wrong[][2] = {
        {"operators: [XnnpackBackend]\n", "x.yaml:1:13: error: 'XnnpackBackend' is not a name of"},
        {"delegates: ['aten::exp.out']\n", "'aten::exp.out' is not a name of a delegate"},
        {"operators: {aten::exp.out: {}\n", "x.yaml:2"},
        {"operator: []\n", "did you mean 'operators'"},
        {"delegates: {XnnpackBackend: 1}\n", "a list of names"},
        {"include_all_operators: maybe\n", "neither true nor false"},
        {"- [aten::exp.out]\n", "a name"},
        {"a: &x 1\nb: *x\n", "x.yaml:1"},
    };
    write_means();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text("x.yaml", wrong[i][0]);
        fails("doctor m.pte --manifest x.yaml", 1, wrong[i][1]);
    }
    fails("doctor m.pte --manifest none.yaml", 3, "none.yaml");
}
