/* test_key.c -- tests `etc key`: keys are equal if the outputs are, and differ if anything differs
 * that may change an output.  Each flag of compile and emit-c is tested. */
#include "tests/cli/cli.h"

TestSuite(key, .init = make_folders, .fini = remove_folders, .timeout = 120);

#define MLP "$DATA/mlp_digits/model.pt2 "
#define SAMPLE "$DATA/quantized/mlp_digits_calibration.npy "

static const char *key(const char *arguments)
{
    char line[1024];
    snprintf(line, sizeof line, "key %s", arguments);
    Result r = ok(line);
    cr_assert(r.n_out == 33 && strspn(r.out, "0123456789abcdef") == 32, "%s: %s", arguments, r.out);
    cr_assert_eq(r.n_err, 0, "%s", r.err);
    return r.out;
}

static void expect_keys(const char *a, const char *b, bool same)
{
    const char *x = key(a), *y = key(b);
    cr_expect_eq(!strcmp(x, y), same, "etc key %s\netc key %s\nare %s: %s", a, b,
                 same ? "not the same" : "the same", x);
}

/* -- flags ------------------------------------------------------------------------------------- */

static const struct {
    const char *flag, *first, *then; /* beside MODEL and int8 with samples */
    bool changes;
} flag[] = {
    {"output", "", "-o x.c", true}, /* C is named after it; of a .pte not, see below */
    {"method", "", "", false},      /* below */
    {"dim", "--dim input.0=1..16", "--dim input.0=1..8", true},
    {"bind", "", "", false}, /* below */
    {"weights-dir", "", "", false},
    {"weights", "", "", false},
    {"data", "", "", false},
    {"ops", "", "--ops ops.yaml", true},
    {"backend", "", "--backend xnnpack", true},
    {"recipe", "", "--recipe int8-weight", true},
    {"calibrate", "", "--calibrate half.npy", true},
    {"statistics", "", "--statistics s.txt", true},
    {"objective", "--objective size", "--objective latency", true},
    {"io", "", "--io int8", true},
    {"bank", "--bank a=1M", "--bank a=2M", true},
    {"share-io", "", "--share-io", true},
    {"fast-calibrate", "", "", false}, /* wants OpenBLAS */
    {"max-drop", "", "--max-drop sqnr=30", true},
    {"labels", "--max-drop top1=0.5 --labels labels.npy",
     "--max-drop top1=0.5 --labels more.npy", true},
    {"bundle", "", "--bundle half.npy", true},
    {"borrow-inputs", "", "--borrow-inputs", true},
    {"refittable", "", "--refittable", true},
    {"delegate", "--backend xnnpack", "--backend xnnpack --delegate all", true},
    {"require-delegated", "", "--require-delegated 10", true},
    {"target-runtime", "", "--target-runtime 1.1", true},
    {"target", "", "--target x86-64-v3", true},
    {"weights-as", "--weights-as array", "--weights-as incbin", true},
    {"main", "", "--main", true},
    {"freestanding", "", "--freestanding", true},
    {"parallel", "", "--parallel 2", true},
    {"math", "--math fast", "--math bf16", true},
    {"model", "", "", false}, /* a key is one model's */
    {"build-files", "--build-files cmake", "--build-files meson", true},
    {"verify", "", "--verify", true}, /* it may fail */
    {"check-ir", "", "--check-ir", true},
    {"dump-ir", "", "--dump-ir all", false},
    {"dump-data", "", "--dump-data side", true}, /* one output more */
    {"dry-run", "", "--dry-run", false},
    {"report", "--report a.svg", "--report a.html", true},
    {"debug-map", "", "--debug-map map.json", true},
    {"depfile", "-o a.c", "-o a.c -MD", true},
    {"input", "--verify", "--verify --input half.npy", false},
    {"threads", "", "--threads 2", false},
    {"error-format", "", "--error-format json", false},
    {"json", "", "--json -q", false},
    {"quiet", "", "-q", false},
    {"verbose", "", "-v -q", false},
};

static void make_files(void)
{
    write_text("ops.yaml", "operators:\n  - schema: \"mine::twice(Tensor x) -> Tensor\"\n"
                           "    results:\n      - {dtype: dtype(x), sizes: sizes(x)}\n"
                           "    composite: \"return x + x\"\n");
    sh("cp " SAMPLE "half.npy; printf '\\1\\2' | dd of=half.npy bs=1 seek=200 conv=notrunc status=none");
    sh("cp $DATA/cnn_digits/extra_test_y.npy labels.npy; cp labels.npy more.npy; echo >> more.npy");
    ok("quantize " MLP "--recipe int8 --calibrate " SAMPLE "--statistics s.txt -q");
}

static bool is_tested(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
        if (strlen(flag[i].flag) == n && !strncmp(flag[i].flag, name, n))
            return true;
    return false;
}

/* Returns whether the command has the flag. */
static bool expect_flag(const char *command, size_t i)
{
    char help[64], name[64], a[512], b[512];
    snprintf(help, sizeof help, "%s --help", command);
    snprintf(name, sizeof name, " --%s ", flag[i].flag);
    if (!strstr(ok(help).out, name))
        return false;
    const char *form = "%s " MLP "--recipe int8 --calibrate " SAMPLE "%s";
    snprintf(a, sizeof a, form, command, flag[i].first);
    snprintf(b, sizeof b, form, command, flag[i].then);
    if (*flag[i].then && !strstr(flag[i].then, "-v") && !strstr(flag[i].then, "--json"))
        expect_keys(a, b, !(flag[i].changes &&
                            (strcmp(flag[i].flag, "output") || !strcmp(command, "emit-c"))));
    return true;
}

Test(key, each_flag_counts_or_is_known_not_to)
{
    static const char *const command[] = {"compile", "emit-c"};
    make_files();
    for (int c = 0; c < 2; c++) {
        char line[64];
        snprintf(line, sizeof line, "%s --help", command[c]);
        char *help = ok(line).out;
        for (char *s = help; (s = strstr(s, " --")); s++) {
            size_t n = strspn(s + 3, "abcdefghijklmnopqrstuvwxyz-");
            cr_expect(is_tested(s + 3, n), "etc %s --%.*s: is it in the key?", command[c], (int)n,
                      s + 3);
        }
    }
    for (size_t i = 0; i < sizeof flag / sizeof *flag; i++) {
        bool here = expect_flag("compile", i), there = expect_flag("emit-c", i);
        cr_expect(here || there, "nobody takes --%s", flag[i].flag);
    }
}

Test(key, order_of_flags_does_not_count)
{
    expect_keys(MLP "--backend xnnpack --recipe int8 --calibrate " SAMPLE "-o x",
                "compile --calibrate=" SAMPLE "-o y --recipe int8 " MLP "--backend xnnpack", true);
    expect_keys(MLP, "compile " MLP, true);
    expect_keys(MLP, "emit-c " MLP, false);
}

/* -- files ------------------------------------------------------------------------------------- */

Test(key, files_count_by_content_and_not_by_place)
{
    sh("cp " MLP "a.pt2; mkdir d; cp " MLP "d/b.pt2; cp $DATA/add/model.pt2 c.pt2");
    expect_keys("a.pt2", "d/b.pt2", true);
    expect_keys("emit-c a.pt2", "emit-c d/b.pt2", false); /* C names the model */
    expect_keys("emit-c a.pt2 -o x.c", "emit-c a.pt2 -o d/x.c --weights-as incbin", false);
    expect_keys("emit-c a.pt2 -o x.c --weights-as incbin",
                "emit-c a.pt2 -o d/x.c --weights-as incbin", true);
    expect_keys("emit-c a.pt2 -o x.c -MD", "emit-c a.pt2 -o d/x.c -MD", false);
    expect_keys("a.pt2", "c.pt2", false);
    sh("mkdir s t; cp " SAMPLE "s/x.npy; cp " SAMPLE "t/x.npy; cp a.pt2 e.pt2");
    expect_keys("a.pt2 --recipe int8 --calibrate s", "e.pt2 --recipe int8 --calibrate t", true);
    expect_keys("a.pt2 --recipe int8 --calibrate s", "a.pt2 --recipe int8 --calibrate s/", true);
    sh("mv t/x.npy t/y.npy"); /* names say whose samples they are */
    expect_keys("a.pt2 --recipe int8 --calibrate s", "a.pt2 --recipe int8 --calibrate t", false);
}

Test(key, a_recipe_counts_by_what_it_says)
{
    write_text("a.yaml", "preset: int8\n");
    write_text("b.yaml", "preset: int8\n");
    write_text("c.yaml", "preset: int8\nobjective: latency\n");
    const char *form = MLP "--calibrate " SAMPLE "--recipe ";
    char a[512], b[512], c[512];
    snprintf(a, sizeof a, "%sa.yaml", form);
    snprintf(b, sizeof b, "%sb.yaml", form);
    snprintf(c, sizeof c, "%sc.yaml", form);
    expect_keys(a, b, true);
    expect_keys(a, c, false);
    const char *piped = arena_printf(arena, "\"$ETC\" key %s- < ", form);
    const char *of_a = sh(arena_printf(arena, "%sa.yaml", piped)).out;
    cr_expect_eq(strlen(of_a), 33, "%s", of_a);
    cr_expect_str_eq(sh(arena_printf(arena, "%sb.yaml", piped)).out, of_a);
    cr_expect_str_neq(sh(arena_printf(arena, "%sc.yaml", piped)).out, of_a);
}

Test(key, a_folder_counts_by_its_members)
{
    sh("python3 -m zipfile -e $DATA/linear/model.pt2 .");
    const char *before = key("model");
    sh("printf x | dd of=model/data/weights/weight_0 bs=1 seek=3 conv=notrunc status=none");
    cr_expect_str_neq(before, key("model"));
}

Test(key, methods_count_with_their_names)
{
    sh("cp $DATA/add/model.pt2 a; cp $DATA/linear/model.pt2 b");
    expect_keys("--method x=a --method y=b", "--method x=b --method y=a", false);
    expect_keys("--method x=a --method y=b --method z=a", "--method x=a --method y=b --method z=b",
                false);
}

Test(key, names_what_counts)
{
    Result r = ok("key " MLP "--json");
    const Json *j = json(&r);
    cr_expect_eq(strlen(text(j, "key")), 32);
    cr_expect_eq(strlen(text(j, "sources")), 32);
    cr_expect_eq(strlen(text(item(json_get(j, "files"), 0), "digest")), 32);
    r = ok("key " MLP "-v --backend xnnpack");
    cr_expect_not_null(strstr(r.err, "backend xnnpack\n"), "%s", r.err);
}

Test(key, wants_what_a_compile_wants)
{
    fails("key none.pt2", 3, "none.pt2");
    fails("key - < /dev/null", 2, "etc key reads a file, not standard input");
    fails("key", 2, "a model is missing");
    fails("key emit-c " MLP "--backend xnnpack", 2, "takes no flag '--backend'");
    fails("key " MLP "--recipe int8 --calibrate none", 3, "none");
}

Test(key, is_the_same_in_another_locale)
{
    const char *c = key(MLP "--recipe int8 --calibrate " SAMPLE);
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    cr_expect_str_eq(c, key(MLP "--recipe int8 --calibrate " SAMPLE));
}
