/* test_bundle.c -- tests --bundle: which files it takes and which it refuses.
 * tests/conformance/bundle.py gives the results to the official verifier. */
#include "tests/cli/cli.h"

TestSuite(bundle, .init = make_folders, .fini = remove_folders);

#define MLP "$DATA/mlp_digits/model.pt2 "
#define INPUT "$DATA/mlp_digits/input_0.npy"

/* out/output_0.npy: what torch gave for that input. */
static void make_outputs(void)
{
    cr_assert_eq(sh("mkdir out && cp $DATA/mlp_digits/output_0.npy out").code, 0);
}

Test(bundle, holds_the_pte_where_readers_want_it)
{
    size_t n, n_pte;
    make_outputs();
    ok("compile " MLP "-o m.pte -q --backend xnnpack");
    ok("compile " MLP "-o m.bpte -q --backend xnnpack --bundle " INPUT ",out");
    char *bundle = slurp("m.bpte", &n), *pte = slurp("m.pte", &n_pte);
    char *at = memmem(bundle, n, pte, n_pte);
    cr_assert_not_null(at);
    cr_expect_eq((at - bundle) % 32, 0);
    cr_expect_eq(memcmp(bundle + 4, "BP08", 4), 0);
    char header[256];
    size_t n_out;
    const float *want = floats("out/output_0.npy", header, &n_out);
    at = memmem(bundle, n, want, n_out * sizeof *want);
    cr_assert_not_null(at, "torch's output is not in it");
    cr_expect_eq((at - bundle) % 16, 0);
    ok("compile " MLP "-o again.bpte -q --backend xnnpack --bundle " INPUT ",out");
    expect_same("again.bpte", "m.bpte");
    Result r = ok("compile " MLP "-o m.bpte --bundle " INPUT " --json");
    cr_expect_geq(number(json(&r), "bytes"), (int64_t)n_pte);
}

static const struct {
    const char *make, *arguments;
    int code;
    const char *message;
} bad[] = {
    {"rm out/output_0.npy", MLP "--bundle " INPUT ",out", 3,
     "out/output_0.npy: error: cannot be read"},
    {"true", MLP "--bundle " INPUT ",none", 3, "none/output_0.npy: error: cannot be read"},
    {"true", MLP "--bundle none,out", 3, "none: error: "},
    {"cp $DATA/add/output_0.npy out", MLP "--bundle " INPUT ",out", 1,
     "out/output_0.npy: error: is f32["},
    {"mkdir in; cp " INPUT " in/0.npy; cp " INPUT " in/1.npy", MLP "--bundle in,out", 3,
     "out/0/output_0.npy: error: cannot be read"},
    {"true", MLP "--bundle $DATA/cnn_digits/input_0.npy,out", 1, "input_0.npy: error: "},
    {"true", "--method a=" MLP "--bundle " INPUT, 2, "--bundle is for one model"},
    {"cp " INPUT " x.pte", MLP "--bundle x.pte", 2, "'x.pte' is read, so it is not written"},
    {"true", "s.etir --bundle pair.npy", 4,
     "node 's': --bundle: this input is neither a tensor nor a number"},
    {"true", "k.etir --bundle pair.npy", 4,
     "the verifier compares tensors alone, and output 1 is none"},
};

#define GRAPH(more, out) \
    "program \"p\" stage aten\nmethod @forward(%x: f32[2]" more ") {\n" \
    "  %y = aten.relu.default(%x) : f32[2]\n  return %y" out "\n}\n"

/* Graphs with inputs and outputs that are no tensors, and a sample of two numbers. */
static void make_graphs(void)
{
    write_text("s.etir", GRAPH(", %s: none = \"a\"", ""));
    write_text("k.etir", GRAPH(", %k: int(3) = 3", ", %k"));
    write_text("n.etir", GRAPH(", %k: int(3) = 3, %f: float = -0.5, %t: bool = true", ""));
    Result r = sh("python3 -c 'h = \"{\\\"descr\\\": \\\"<f4\\\", \\\"fortran_order\\\": False, \\\"shape\\\": (2,), }\"\n"
                  "h += \" \" * (117 - len(h)) + \"\\n\"\n"
                  "open(\"pair.npy\", \"wb\").write(b\"\\x93NUMPY\\1\\0\\x76\\0\" + h.encode() + bytes(8))'");
    cr_assert_eq(r.code, 0, "%s", r.err);
}

Test(bundle, inputs_that_are_fixed_go_with_it)
{
    size_t n;
    const double half = -0.5;
    make_graphs();
    ok("compile n.etir -o n.bpte -q --bundle pair.npy");
    char *bundle = slurp("n.bpte", &n);
    cr_expect_not_null(memmem(bundle, n, &half, sizeof half));
}

Test(bundle, what_does_not_fit_is_refused)
{
    make_graphs();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        make_outputs();
        cr_assert_eq(sh(bad[i].make).code, 0, "%s", bad[i].make);
        char line[512];
        snprintf(line, sizeof line, "compile -o x.pte %s", bad[i].arguments);
        fails(line, bad[i].code, bad[i].message);
        sh("rm -rf out in; cmp -s x.pte $DATA/mlp_digits/input_0.npy && rm x.pte");
        cr_expect_neq(sh("test -e x.pte").code, 0, "%s", bad[i].arguments);
    }
}

Test(bundle, its_files_count_for_the_key)
{
    make_outputs();
    sh("cp " INPUT " a.npy; mkdir more && cp $DATA/mlp_digits/output_0.npy more");
    const char *without = ok("key " MLP).out, *with = ok("key " MLP "--bundle a.npy,out").out;
    const char *same = ok("key " MLP "--bundle " INPUT ",more").out;
    const char *less = ok("key " MLP "--bundle a.npy").out;
    cr_expect_str_neq(without, with);
    cr_expect_str_neq(less, with);
    cr_expect_str_eq(same, with);
    cr_assert_eq(sh("python3 -c 'p = \"out/output_0.npy\"; b = bytearray(open(p, \"rb\").read()); b[-1] ^= 1; "
                    "open(p, \"wb\").write(b)'").code, 0);
    cr_expect_str_neq(ok("key " MLP "--bundle a.npy,out").out, with);
}
