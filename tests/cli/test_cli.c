/* test_cli.c -- tests the command line: help, wrong usage, `etc compile`, the files that a run
 * writes and leaves, and unusual models. */
#include "tests/cli/cli.h"
#include <fcntl.h>

TestSuite(cli, .init = make_folders, .fini = remove_folders);

/* -- help -------------------------------------------------------------------------------------- */

static const char *const command[] = {"compile",   "emit-c",  "run", "bench", "check",
                                      "partition", "inspect", "opt", "ops",   "quantize", "key", "batch",
                                      "doctor", "verify", "gate", "refit"};
enum { N_COMMANDS = sizeof command / sizeof *command };

Test(cli, help_opens_with_an_example)
{
    char line[64], start[64];
    for (int i = 0; i < N_COMMANDS; i++) {
        snprintf(line, sizeof line, "%s --help", command[i]);
        snprintf(start, sizeof start, "example: etc %s", command[i]);
        Result r = ok(line);
        cr_expect_eq(strncmp(r.out, start, strlen(start)), 0, "%s", r.out);
        cr_expect_eq(r.n_err, 0, "%s", r.err);
        snprintf(line, sizeof line, "%s -o x y --nonsense -h", command[i]);
        cr_expect_eq(etc(line).code, 2);
    }
    Result r = ok("--help");
    cr_expect_eq(strncmp(r.out, "example: etc ", 13), 0);
    for (int i = 0; i < N_COMMANDS; i++)
        cr_expect_not_null(strstr(r.out, command[i]));
    cr_expect_eq(strncmp(ok("--version").out, "etc ", 4), 0);
    fails("", 2, "usage: etc COMMAND");
}

/* docs/cli.md names each flag of each command's help. */
Test(cli, help_and_documentation_agree)
{
    size_t n;
    char *docs = slurp(ROOT "/docs/cli.md", &n), line[64];
    int flags = 0;
    for (int i = 0; i < N_COMMANDS; i++) {
        snprintf(line, sizeof line, "etc %s", command[i]);
        cr_expect_not_null(strstr(docs, line), "docs/cli.md: no '%s'", line);
        snprintf(line, sizeof line, "%s --help", command[i]);
        Result r = ok(line);
        for (char *s = r.out; (s = strstr(s, "--")); flags++) {
            char flag[64] = "`";
            strncat(flag, s, strspn(s, "abcdefghijklmnopqrstuvwxyz-"));
            cr_expect_not_null(strstr(docs, flag), "docs/cli.md: no %s of %s", flag, command[i]);
            s += strlen(flag) - 1;
        }
    }
    cr_expect_gt(flags, 60);
}

/* -- wrong usage ------------------------------------------------------------------------------- */

static const struct {
    const char *arguments, *message;
} misuse[] = {
    {"comple m.pt2", "unknown command 'comple'; did you mean 'compile'?"},
    {"frobnicate", "unknown command 'frobnicate'\n"},
    {"compile m.pt2 --ouput x", "unknown flag '--ouput'; did you mean '--output'?"},
    {"compile m.pt2 -z", "unknown flag '-z'"},
    {"compile m.pt2 -o x --main", "etc compile takes no flag '--main'"},
    {"compile", "a model is missing; usage: etc compile MODEL -o OUT.pte"},
    {"compile m.pt2", "-o is missing"},
    {"compile a b -o x", "one at a time, not 'a' and 'b'"},
    {"compile '' -o x", "an empty word"},
    {"compile m.pt2 -o", "--output expects a value"},
    {"compile m.pt2 -o --json", "--output expects a value"},
    {"compile m.pt2 -o x --verify=1", "--verify takes no value"},
    {"compile m.pt2 -o x --dim s", "--dim s is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=1..", "--dim s=1.. is not NAME=LO..HI"},
    {"compile m.onnx -o x --bind s", "--bind s is not INPUT=VALUE"},
    {"compile m.pt2 -o x --dim s=..4", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=4..1", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=-1..1", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=1..99999999999999999999", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=1..2x", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim =1..2", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --backend prtable",
     "there is no backend 'prtable'; did you mean 'portable'?"},
    {"compile m.pt2 -o x --require-delegated 101", "expects a percentage from 0 to 100"},
    {"compile m.pt2 -o x --require-delegated all", "expects a percentage from 0 to 100"},
    {"compile m.pt2 -o x --target-runtime new", "expects a version from 1.0.1 on"},
    {"compile m.pt2 -o x --target-runtime 0.7", "expects a version from 1.0.1 on"},
    {"compile m.pt2 -o x --target-runtime 1.2.x", "expects a version from 1.0.1 on"},
    {"compile m.pt2 -o x --dump-ir=dce", "expects after:PASS or all, not 'dce'"},
    {"compile m.pt2 -o x --dump-ir=after:decompos",
     "no pass 'decompos'; did you mean 'decompose'?"},
    {"compile m.pt2 -o - --json", "-o - cannot be combined"},
    {"compile m.pt2 -o - --dump-ir=all", "-o - cannot be combined"},
    {"compile m.pt2 -o x --json --dump-ir=all", "both write to standard output"},
    {"compile m.pt2 -o - -MD", "-MD needs an -o that is a file"},
    {"compile m.pt2 -o x --dump-data x", "'x' is the name of two outputs"},
    {"compile m.pt2 --method a=b -o x", "one or the other"},
    {"compile --method a -o x", "--method a is not NAME=FILE"},
    {"compile --method =a -o x", "--method =a is not NAME=FILE"},
    {"emit-c m.pt2 -o x", "-o expects a name that ends in .c"},
    {"emit-c m.pt2 -o -", "-o expects a name that ends in .c"},
    {"emit-c m.pt2 -o .c", "-o expects a name that ends in .c"},
    {"emit-c m.pt2 -o x.c --bank sram", "expects NAME=SIZE"},
    {"emit-c m.pt2 -o x.c --bank =4K", "is not a name of C"},
    {"emit-c m.pt2 -o x.c --bank 2nd=4K", "is not a name of C"},
    {"emit-c m.pt2 -o x.c --bank while=4K", "is a keyword of C"},
    {"emit-c m.pt2 -o x.c --bank work=4K", "is a variable of NAME_run"},
    {"emit-c m.pt2 -o x.c --bank sram=0", "a size is a number from 1 on"},
    {"emit-c m.pt2 -o x.c --bank sram=4KB", "a size is a number from 1 on"},
    {"emit-c m.pt2 -o x.c --bank flash=1M:constant", "may be followed by :const"},
    {"emit-c m.pt2 -o x.c --bank flash=1M:const,section=", "a section has a name"},
    {"emit-c m.pt2 -o x.c --bank 'flash=1M:const,section=a\"b'", "a section has a name"},
    {"emit-c m.pt2 -o x.c --target generc", "did you mean 'generic'?"},
    {"emit-c m.pt2 -o x.c --target x86-64-v5", "|x86-64-v2|"},
    {"emit-c m.pt2 -o x.c --target hots", "did you mean 'host'?"},
    {"emit-c m.pt2 -o x.c --math strict", "--math expects exact|bf16|fast, not 'strict'"},
    {"emit-c m.pt2 -o x.c --math bf16 --target cortex-m7",
     "--math bf16 is not available for --target cortex-m7"},
    {"emit-c m.pt2 -o x.c --math fast --target rv32imc",
     "--math fast is not available for --target rv32imc"},
    {"run m.pt2 --math bf16", "--math is for emitted C: --target is missing"},
    {"bench m.pt2 --share-io", "--share-io is for emitted C: --target is missing"},
    {"bench m.pt2 --math exact", "etc bench takes no flag '--math'"},
    {"emit-c m.pt2 -o x.c --weights-as aray",
     "expects array|incbin, not 'aray'; did you mean 'array'?"},
    {"emit-c m.pt2 -o x.c --build-files make", "expects cmake|meson|zephyr|arduino, not 'make'"},
    {"emit-c m.pt2 -o 'a b.c' --build-files cmake", "OUT may have letters, digits"},
    {"emit-c m.pt2 -o 'd;/-x.c' --build-files meson", "OUT may have letters, digits"},
    {"emit-c m.pt2 -o test.c --build-files cmake", "'test' is a target that it has already"},
    {"emit-c m.pt2 -o x.c --build-files arduino", "-o expects LIBRARY/src/OUT.c"},
    {"emit-c m.pt2 -o asrc/x.c --build-files arduino", "-o expects LIBRARY/src/OUT.c"},
    {"emit-c m.pt2 -o src/x.c --main --build-files arduino", "a second main function"},
    {"emit-c --model a -o x.c", "--model a is not NAME=FILE"},
    {"emit-c m.pt2 --model a=n.pt2 -o x.c", "MODEL 'm.pt2' and --model: one or the other"},
    {"emit-c --model a=n.pt2 --model A=n.pt2 -o x.c", "names must differ in more than case"},
    {"emit-c --model a-b=n.pt2 -o x.c", "no function can be named a-b_run"},
    {"emit-c --model etc_b=n.pt2 -o x.c", "no function can be named etc_b_run"},
    {"emit-c --model a=n.pt2 --recipe int8 --model b=n.pt2 --calibrate s.npy -o x.c",
     "--calibrate needs a --recipe"},
    {"emit-c --model a=n.pt2 --report x.svg -o x.c", "--report is for one model"},
    {"key emit-c --model a=n.pt2", "etc key is for one model"},
    {"compile m.pt2 -o x --max-drop cosine=0.1", "--max-drop needs a --recipe"},
    {"emit-c m.pt2 -o x.c --labels l.npy", "--labels needs a --recipe"},
    {"compile m.pt2 -o x --input i.npy", "--input needs --verify"},
    {"compile m.pt2 -o x --delegate all", "--delegate needs a --backend"},
    {"compile m.pt2 -o x --bundle ,", "--bundle expects INPUTS[,OUTPUTS], not ','"},
    {"compile m.pt2 -o x --bundle in,", "--bundle expects INPUTS[,OUTPUTS], not 'in,'"},
    {"compile --method a=m.pt2 --bind x=1 -o x", "--bind is for one model"},
    {"gate m.pte --baseline b.json --method a", "--method needs --runs"},
    {"check m.pt2 --tail c --backend xnnpack", "--backend is for a .pte, not for --tail c"},
    {"check m.pt2 --tail c --target-runtime 1.2", "--target-runtime is for a .pte"},
    {"gate m.pte --baseline b.json --threads 2", "--threads needs --runs"},
    {"gate m.pte --baseline - --write-baseline --json", "both write to standard output"},
    {"batch l.yaml --junit -", "both write to standard output"},
    {"batch -", "etc batch reads a file, not standard input"},
    {"inspect --etdump e.etdp --method a", "--method needs --map"},
    {"key", "usage: etc key [compile|emit-c] MODEL"},
    {"check m.pt2 --tail C", "--tail expects pte|c, not 'C'"},
    {"opt m.etir", "--passes is missing"},
    {"opt m.etir --passes=dcee,foldd", "no pass 'dcee'; did you mean 'dce'?"},
    {"opt m.etir --passes=dce,,cse", "no pass ''"},
    {"run", "a model is missing"},
    {"run m.pte --nxt", "did you mean '--next'?"},
};

Test(cli, wrong_usage_is_told_and_does_nothing)
{
    for (size_t i = 0; i < sizeof misuse / sizeof *misuse; i++)
        fails(misuse[i].arguments, 2, misuse[i].message);
    fails("opt m.etir --passes=dce,foldd,csee", 2, "no pass 'csee'"); /* both are told */
    expect_files("");
}

/* -- compile ----------------------------------------------------------------------------------- */

Test(cli, compile_writes_a_pte_and_one_line)
{
    Result r = ok("compile $DATA/add/model.pt2 -o a.pte");
    cr_expect_eq(r.n_out, 0, "%s", r.out);
    cr_expect(!strncmp(r.err, "a.pte: ", 7) && strchr(r.err, '\n') == r.err + r.n_err - 1, "%s",
              r.err);
    expect_files("a.pte ");
    r = ok("compile -q --output=b.pte -- $DATA/add/model.pt2");
    cr_expect_eq(r.n_out + r.n_err, 0, "%s%s", r.out, r.err);
    r = ok("compile $DATA/add/model.pt2 -v -o c.pte");
    cr_expect(strstr(r.err, "import ") && strstr(r.err, "plan_memory ") && strstr(r.err, " ms\n"));
    r = sh("\"$ETC\" compile $DATA/add/model.pt2 -o - > d.pte");
    cr_expect_eq(r.code, 0);
    expect_same("a.pte", "b.pte");
    expect_same("a.pte", "c.pte");
    expect_same("a.pte", "d.pte");
}

/* -v prints how attention was cut and which convolutions run by rows, with sizes and costs. */
Test(cli, verbose_tells_what_was_chosen)
{
    write_text("a.etir", "program \"a\" stage core method @f(%q: f32[3,200,8]) { "
                         "%y = aten.scaled_dot_product_attention.default(%q, %q, %q, none, 0.0, "
                         "true, scale=none, enable_gqa=false) : f32[3,200,8] return %y }");
    Result r = ok("compile a.etir -v -o a.pte");
    cr_expect(strstr(r.err,
                     "tile             y: 3 heads of 200 x 200: 3 pieces of 1 heads, 200 rows; "
                     "scores 480000 -> 160000 bytes, cache 1048576, cost "),
              "%s", r.err);
    write_text("c.etir",
               "program \"c\" stage core method @f(%x: f32[1,4,30,30], %a: f32[40,4,1,1], "
               "%b: f32[4,40,1,1]) { %y = aten.convolution.default(%x, %a, none, [1, 1], "
               "[0, 0], [1, 1], false, [0, 0], 1) : f32[1,40,30,30] %z = "
               "aten.convolution.default(%y, %b, none, [1, 1], [0, 0], [1, 1], false, "
               "[0, 0], 1) : f32[1,4,30,30] return %z }");
    r = ok("emit-c c.etir -v -o c.c");
    cr_expect(strstr(r.err,
                     "group            y .. z: 2 convolutions, 8 rows at a time: 159040 -> 68480 "
                     "bytes at once, 38400 in lines; all else needs 68480\n"),
              "%s", r.err);
}

Test(cli, compile_dry_run_leaves_nothing)
{
    ok("compile $DATA/mlp_digits/model.pt2 --dry-run");
    ok("compile $DATA/mlp_digits/model.pt2 --dry-run -o x.pte -MD --dump-data y");
    ok("emit-c $DATA/mlp_digits/model.pt2 --dry-run -o x.c --main -MD --dump-data y");
    expect_files("");
}

Test(cli, compile_json)
{
    Result r = ok("compile $DATA/mlp_digits/model.pt2 -o m.pte --json");
    const Json *j = json(&r), *method = item(json_get(j, "methods"), 0);
    struct stat st;
    cr_assert_eq(stat("m.pte", &st), 0);
    cr_expect_eq(number(j, "bytes"), st.st_size);
    cr_expect_str_eq(text(j, "output"), "m.pte");
    cr_expect_str_eq(text(item(json_get(j, "files"), 0), "path"), "m.pte");
    cr_expect_str_eq(text(method, "name"), "forward");
    cr_expect_eq(number(method, "arena"), number(j, "arena"));
    cr_expect_geq(number(j, "arena"), number(j, "bound"));
    cr_expect_geq(number(j, "unshared"), number(j, "arena"));
    cr_expect_eq(number(j, "delegated_percent"), 0);
    r = ok("compile $DATA/add/model.pt2 --dry-run --json -q");
    cr_expect_null(json_get(json(&r), "output"));
    cr_expect_eq(json_count(json_get(doc.root, "files")), 0);
    cr_expect_eq(r.n_err, 0);
}

Test(cli, compile_writes_a_depfile)
{
    size_t n;
    sh("mkdir 'a b'; cp $DATA/add/model.pt2 'a b/m$.pt2'");
    ok("compile 'a b/m$.pt2' -o 'o#.pte' -MD");
    cr_expect_str_eq(slurp("o#.pte.d", &n), "o\\#.pte: \\\n a\\ b/m$$.pt2\n");
    sh("python3 -m zipfile -e $DATA/linear/model.pt2 .; rm -rf out");
    ok("compile model -o l.pte -MD");
    char *d = slurp("l.pte.d", &n);
    cr_expect(strstr(d, " model/models/model.json") && strstr(d, " model/data/weights/weight_0"),
              "%s", d);
    ok("emit-c $DATA/add/model.pt2 -o a.c -MD");
    cr_expect_eq(strncmp(slurp("a.c.d", &n), "a.c: \\\n ", 7), 0);
}

Test(cli, dim_bounds_a_size)
{
    ok("compile $DATA/mlp_digits/model.pt2 -o m.pte --dim s31=2..8 -q");
    Result r = ok("inspect m.pte");
    cr_expect_not_null(strstr(r.out, "input 0: f32[8,64] at most"), "%s", r.out);
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim batch=1..8", 1,
          "--dim batch=1..8: the model has no such symbolic size\n"
          "  note: the model has the symbolic size 's31' (input.0) in 1..1024");
    ok("compile $DATA/mlp_digits/model.pt2 -o m.pte --dim input.0=2..4 -q");
    r = ok("inspect m.pte");
    cr_expect_not_null(strstr(r.out, "input 0: f32[4,64] at most"), "%s", r.out);
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim input.1=1..8", 1,
          "--dim input.1=1..8: the size of this axis is 64, not one that the export left open");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim input.1=65", 1, "the size of this axis is 64");
    ok("compile $DATA/mlp_digits/model.pt2 -o m.pte --dim input.0=2..4 --dim input.1=64 -q"); /* as it is */
    ok("emit-c $DATA/mlp_digits/model.pt2 -o n.c --dim input.0=3 -q"); /* as if exported so */
    sh_ok("grep -q 'f32.3,64.' n.h && ! grep -q 's31' n.h");
    ok("emit-c $DATA/mlp_digits/model.pt2 -o n.c --dim s31=2..8 --dim s31=3..3 -q");
    sh_ok("grep -q 'f32.3,64.' n.h && ! grep -q 's31' n.h && rm n.* n_*");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim input.2=1..8", 1, "no such symbolic size");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim input.-1=1..8", 1, "no such symbolic size");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim input.0=0", 1, "outside the range");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim s31=2000..3000", 1,
          "outside the range");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim s31=1..2000", 1,
          "outside the range");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim s13=1..8", 1,
          "no such symbolic size; did you mean 's31'?");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim x.0=1..8", 1,
          "no such symbolic size\n");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim s31=8..2", 2, "LO <= HI");
    fails("compile $DATA/add/model.pt2 -o n.pte --dim s31=1..2", 1,
          "the model has no symbolic sizes");
    expect_files("m.pte ");
}

Test(cli, require_delegated_is_a_gate)
{
    ok("compile $DATA/add/model.pt2 -o a.pte --require-delegated 0 --backend portable -q");
    fails("compile $DATA/add/model.pt2 -o b.pte --require-delegated 1", 5,
          "0 % of the work is delegated");
    expect_files("a.pte ");
    write_text("mm.etir", "program \"m\" stage aten\nmethod @forward(%x: f64[2,3], %y: f64[3,4]) {\n"
                          "  %p = aten.mm.default(%x, %y) : f64[2,4]\n  return %p\n}\n");
    fails("compile mm.etir -o b.pte --backend xnnpack --require-delegated 50", 5,
          "\n  note: the largest node outside is 'p' (aten.mm.default): ");
}

#define INVERSE(n)                                                                                   \
    "program \"m\" stage aten\nmethod @forward(%x: f32[]) {\n"                                        \
    "  %e = aten.eye.default(" n ", dtype=f32, layout=none, device=none, pin_memory=none)"            \
    " : f32[" n "," n "]\n  %m = aten.mul.Tensor(%e, %x) : f32[" n "," n "]\n"                       \
    "  %y = aten.linalg_inv.default(%m) : f32[" n "," n "]\n  return %y\n}\n"

/* Spelled out, or by a kernel. */
Test(cli, singular_matrices_end_a_run)
{
    static const char *const why[] = {"aten::index.Tensor_out: the kernel refused its arguments",
                                      "a matrix is singular, or not positive definite"};
    for (int i = 0; i < 2; i++) {
        write_text("m.etir", i ? INVERSE("17") : INVERSE("2"));
        Result r = ok("compile m.etir -o m.pte");
        cr_expect_eq(i, strstr(r.err, "warning: node 'y'") && strstr(r.err, "runtime-lite has"));
        ok("run m.pte --input value:2.0");
        fails("run m.pte --input value:0.0", 1, why[i]);
    }
    fails("compile m.etir -o m.pte --target-runtime 1.4.1", 4, "linalg_lu_factor_ex.out: not among");
}

/* The official runtime lacks the kernel of view.dtype, which is called only where bytes move. */
Test(cli, a_view_that_nothing_calls_does_not_warn)
{
    write_text("m.etir", "program \"m\" stage aten\n"
                         "method @forward(%x: f32[2,4]) {\n"
                         "  %a = aten.neg.default(%x) : f32[2,4]\n"
                         "  %b = aten.view.dtype(%a, i64) : i64[2,2]\n"
                         "  %c = aten.flip.default(%b, [1]) : i64[2,2]\n"
                         "  return %c\n"
                         "}\n");
    Result r = ok("compile m.etir -o m.pte");
    cr_expect_null(strstr(r.err, "warning"), "%s", r.err);
}

#define FACTORS                                                                                    \
    "program \"m\" stage aten\nmethod @forward(%x: f32[]) {\n"                                        \
    "  %o = aten.full.default([3, 3], 1.0, dtype=f32, layout=none, device=none, pin_memory=none)"      \
    " : f32[3,3]\n  %e = aten.eye.default(3, dtype=f32, layout=none, device=none, pin_memory=none)"    \
    " : f32[3,3]\n  %m = aten.mul.Tensor(%e, %x) : f32[3,3]\n  %y = aten.add.Tensor(%o, %m, alpha=1) : f32[3,3]\n"

/* Halves on the diagonal and ones beside it: the second step has a negative root. */
Test(cli, no_output_has_numbers_where_a_matrix_is_not_positive_definite)
{
    write_text("e.etir", FACTORS "  %l, %i = aten.linalg_cholesky_ex.default(%y, upper=false, check_errors=false)"
                                 " : f32[3,3], i32[]\n  return %l, %i\n}\n");
    write_text("l.etir", FACTORS "  %l = aten.linalg_cholesky.default(%y, upper=false) : f32[3,3]\n  return %l\n}\n");
    for (int i = 0; i < 2; i++) {
        const char *target = i ? "--target generic" : "";
        Result r = ok(arena_printf(arena, "run e.etir %s --input value:-0.5", target));
        cr_expect(strstr(r.out, "nan") && strstr(r.out, "i32[] 2"), "%s", r.out);
    }
    fails("run l.etir --input value:-0.5", 1, "the kernel refused its arguments");
    cr_expect_not_null(strstr(ok("run l.etir --target generic --input value:-0.5").out, "nan"));
}

#define LATE                                                                              \
    "program \"p\" stage aten\n"                                                             \
    "method @forward(%x: f32[1,2,5,5], %g: f32[1,3,3,2], %n: f32[]) {\n"                   \
    "  %p = aten._adaptive_avg_pool2d.default(%x, [2, 3]) : f32[1,2,2,3] from \"m\", \"n.py:7\"\n" \
    "  %q = aten.grid_sampler_2d.default(%x, %g, 0, 0, false) : f32[1,2,3,3]\n"              \
    "  %s = aten.sin.default(%q) : f32[1,2,3,3]\n"                                         \
    "  %c = aten.cos.default(%s) : f32[1,2,3,3]\n"                                         \
    "  %e = aten.exp.default(%c) : f32[1,2,3,3]\n"                                         \
    "  %v = aten.view.default(%n, [1]) : f32[1]\n"                                        \
    "  %w = aten.mul.Tensor(%e, %v) : f32[1,2,3,3]\n"                                     \
    "  return %p, %c, %v, %w\n}\n"

/* Kernels that came later are replaced by older ones, with the same numbers but for rounding. */
Test(cli, target_runtime_is_done_without_what_it_lacks)
{
    static const char *const flags[] = {"", "--backend xnnpack --delegate all"};
    write_text("p.etir", LATE);
    for (int i = 0; i < 2; i++) {
        ok(arena_printf(arena, "compile p.etir -o new.pte -q %s", flags[i]));
        Result r = etc("doctor new.pte --runtime 1.0.1");
        cr_expect_eq(r.code, 4);
        cr_expect_not_null(strstr(r.err, "grid_sampler_2d.out: the runtime has it from 1.2.0 on"));
        cr_expect_eq(i, strstr(r.err, "node sin: the delegate has it from 1.2.0 on") &&
                            strstr(r.err, "node cos"), "%s", r.err);
        ok(arena_printf(arena, "compile p.etir -o old.pte -q --target-runtime 1.0.1 %s", flags[i]));
        ok("doctor old.pte --runtime 1.0.1");
        r = ok("inspect old.pte");
        cr_expect_eq(i, strstr(r.out, "XnnpackBackend") != NULL, "%s", r.out);
    }
    ok("compile p.etir -o old.pte -q --target-runtime 1.0.1 --verify");
    ok("verify old.pte --model p.etir -q");
    Result r = ok("partition p.etir --backend xnnpack --target-runtime 1.1");
    cr_expect_not_null(strstr(r.out, "of the version in --target-runtime"), "%s", r.out);
    ok("compile p.etir -o a.pte -q --target-runtime 1.2 --backend xnnpack --delegate all");
    ok("doctor a.pte --runtime 1.2");
    r = ok("inspect a.pte");
    cr_expect(strstr(r.out, "grid_sampler_2d.out") && !strstr(r.out, "_adaptive_avg_pool2d.out"));
}

Test(cli, target_runtime_lists_what_it_lacks)
{
    write_text("q.etir", "program \"q\" stage aten\nmethod @forward(%p: f32[1,2]) {\n"
                         "  %q = quantized_decomposed.quantize_per_tensor.default(%p, 0.5, 0, -128, "
                         "127, i8) : i8[1,2]\n  return %q\n}\n");
    fails("compile q.etir -o p.pte --target-runtime 1.2.0", 4, "quantize_per_tensor.out: not among");
    write_text("p.etir", LATE);
    ok("compile p.etir --dry-run -q --dump-ir=after:to_out > planned.etir");
    fails("compile planned.etir -o p.pte --target-runtime 1.1", 4,
          "aten::_adaptive_avg_pool2d.out: the ExecuTorch runtime has it from 1.4.1 on, not in 1.1\n"
          "  note: node 'p' (aten._adaptive_avg_pool2d.default) from n.py:7\n");
    fails("check planned.etir --target-runtime 1.1", 4, "grid_sampler_2d.out");
    expect_files("p.etir planned.etir q.etir ");
    ok("compile $DATA/cnn_digits/model.pt2 -o c.pte --target-runtime 1.0.1 -q");
}

/* runtime-lite has kernels for whole operators that a .pte for all runtimes spells out. */
Test(cli, target_runtime_lite_calls_its_own_kernels)
{
    write_text("p.etir", "program \"p\" stage aten\nmethod @forward(%x: f32[1,2,4,6]) {\n"
                         "  %h = aten.hardswish.default(%x) : f32[1,2,4,6] from \"h\", \"n.py:2\"\n"
                         "  %p = aten.max_pool2d.default(%h, [2, 2], [], [0, 0], [1, 1], false) : f32[1,2,2,3]\n"
                         "  %s, %i = aten.sort.stable(%p, stable=true, dim=-1, descending=false) : f32[1,2,2,3], i64[1,2,2,3]\n"
                         "  return %s, %i\n}\n");
    ok("compile p.etir -o all.pte -q");
    ok("doctor all.pte");
    ok("compile p.etir -o own.pte -q --target-runtime lite --verify");
    ok("verify own.pte --model p.etir -q");
    Result r = etc("doctor own.pte");
    cr_expect_eq(r.code, 4);
    cr_expect(strstr(r.err, "aten::hardswish.out") && strstr(r.err, "etc::max_pool2d.out") &&
              strstr(r.err, "aten::sort.values_stable"), "%s", r.err);
    ok("compile p.etir --dry-run -q --target-runtime lite --dump-ir=after:to_out > planned.etir");
    ok("compile planned.etir -o again.pte -q --target-runtime lite");
    fails("compile planned.etir -o no.pte", 4, "'h' (aten.hardswish.default): the .pte runtime has no kernel");
    fails("doctor own.pte --runtime lite", 2, "expects a version from 1.0.1 on");
    expect_files("again.pte all.pte own.pte p.etir planned.etir ");
}

Test(cli, methods_of_several_files)
{
    Result r = ok(
        "compile --method mlp=$DATA/mlp_digits/model.pt2 --method sum=$DATA/add/model.pt2 "
        "--method again=$DATA/mlp_digits/model.pt2 -o m.pte --json -MD");
    cr_expect_eq(json_count(json_get(json(&r), "methods")), 3);
    ok("compile $DATA/mlp_digits/model.pt2 -o one.pte -q");
    struct stat one, all;
    cr_assert(stat("one.pte", &one) == 0 && stat("m.pte", &all) == 0);
    cr_expect_lt(all.st_size, one.st_size + 6000, "equal weights are there once");
    ok("run m.pte --method again --input $DATA/mlp_digits/input_0.npy --output-dir o");
    expect_close("o/output_0.npy", "mlp_digits", "output_0.npy");
    ok("run m.pte --method sum --input $DATA/add/input_0.npy --input $DATA/add/input_1.npy --output-dir p");
    expect_close("p/output_0.npy", "add", "output_0.npy");
    fails("run m.pte --input value:1", 1, "note: it has 'mlp'\n");
    fails("compile --method a=$DATA/add/model.pt2 --method a=$DATA/add/model.pt2 -o x", 1,
          "called 'a'");
    fails("compile --method a=nowhere.pt2 --method b=none.pt2 -o x", 3, "none.pt2");
}

/* -- outputs are whole or not there ------------------------------------------------------------ */

Test(cli, a_failed_run_leaves_what_was_there)
{
    write_text("out.pte", "kept");
    write_text("out.pte.d", "kept too");
    fails("compile nowhere.pt2 -o out.pte -MD", 3, "nowhere.pt2: error: ");
    fails("compile $DATA/add/model.etir -o no/such/folder.pte", 3, "cannot write: No such file");
    fails("compile $DATA/add/model.pt2 -o /", 3, "it is a folder");
    sh("rm out.pte.d; mkdir out.pte.d"); /* the second file cannot be written */
    fails("compile $DATA/add/model.pt2 -o out.pte -MD", 3, "out.pte.d: error: cannot write");
    size_t n;
    cr_expect_str_eq(slurp("out.pte", &n), "kept");
    Result r = sh("\"$ETC\" compile $DATA/add/model.pt2 -o out.pte --json > /dev/full");
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "standard output cannot be written"), "%s", r.err);
    cr_expect_str_eq(slurp("out.pte", &n), "kept");
    expect_files("out.pte out.pte.d ");
}

Test(cli, a_full_disk_is_an_error_of_writing)
{
    fails("compile $DATA/add/model.pt2 -o /dev/full", 3,
          "/dev/full: error: cannot write: No space left");
    static const char *const to_full[] = {"ops",
                                          "--help",
                                          "inspect $DATA/add/model.pt2",
                                          "opt --list",
                                          "opt $DATA/add/model.pt2 --passes=dce",
                                          "check $DATA/add/model.pt2 --json",
                                          "compile $DATA/add/model.pt2 -o -",
                                          ("run $DATA/add/model.pt2 --input $DATA/add/input_0.npy "
                                           "--input $DATA/add/input_1.npy")};
    for (size_t i = 0; i < sizeof to_full / sizeof *to_full; i++) {
        char line[512];
        snprintf(line, sizeof line, "\"$ETC\" %s > /dev/full", to_full[i]);
        Result r = sh(line);
        cr_expect_eq(r.code, 3, "%s: exit %d", to_full[i], r.code);
        cr_expect_not_null(strstr(r.err, "cannot"), "%s: %s", to_full[i], r.err);
    }
    Result r = sh("\"$ETC\" emit-c $DATA/add/model.pt2 -o a.c --json > /dev/full");
    cr_expect_eq(r.code, 3);
    r = sh(
        "\"$ETC\" run $DATA/linear/model.pt2 --input $DATA/linear/input_0.npy --output-dir d/ --json > /dev/full");
    cr_expect_eq(r.code, 3);
    expect_files("");
}

/* The write fails when most of the file is there. */
Test(cli, a_write_that_fails_midway_leaves_nothing)
{
    Result r = sh("ulimit -f 8; exec \"$ETC\" compile $DATA/cnn_digits/model.pt2 -o out.pte");
    cr_expect_eq(r.code, 3, "exit %d: %s", r.code, r.err);
    cr_expect_not_null(strstr(r.err, "out.pte: error: cannot write: File too large"), "%s", r.err);
    expect_files("");
    if (sh("mkdir disk && unshare -m mount -t tmpfs -o size=12k none disk").code == 0) {
        r = sh("unshare -m sh -c 'mount -t tmpfs -o size=12k none disk; \"$ETC\" compile "
               "$DATA/cnn_digits/model.pt2 -o disk/out.pte; code=$?; ls -A disk; exit $code'");
        cr_expect_eq(r.code, 3, "exit %d: %s", r.code, r.err);
        cr_expect_not_null(strstr(r.err, "cannot write: No space left"), "%s", r.err);
        cr_expect_str_empty(r.out);
    }
}

Test(cli, a_pipe_without_a_reader_is_an_error_of_writing)
{
    size_t n;
    sh("(sleep 0.3; \"$ETC\" compile $DATA/cnn_digits/model.pt2 -o -; echo $? > code) | true; "
       "while [ ! -s code ]; do sleep 0.1; done");
    cr_expect_str_eq(slurp("code", &n), "3\n");
    expect_files("code ");
}

Test(cli, a_pte_does_not_go_to_a_terminal)
{
    char line[512];
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) || unlockpt(terminal))
        cr_skip_test("no terminals here");
    snprintf(line, sizeof line, "\"$ETC\" compile $DATA/add/model.pt2 -o - > %s",
             ptsname(terminal));
    Result r = sh(line);
    cr_expect_eq(r.code, 2, "exit %d", r.code);
    cr_expect_not_null(strstr(r.err, "-o - would print a .pte to the terminal"), "%s", r.err);
    snprintf(line, sizeof line, "\"$ETC\" opt $DATA/add/model.pt2 --passes=dce > %s",
             ptsname(terminal));
    cr_expect_eq(sh(line).code, 0, "a text may");
    close(terminal);
}

Test(cli, a_reader_that_went_away_is_an_error_of_writing)
{
    size_t n;
    sh("(sleep 0.3; \"$ETC\" ops; echo $? > code) | true; sleep 0.5; while [ ! -s code ]; do sleep 0.1; done");
    cr_expect_str_eq(slurp("code", &n), "3\n");
}

Test(cli, what_is_read_is_not_written)
{
    sh("cp $DATA/mlp_digits/model.pt2 m.pt2; ln m.pt2 hard.pt2; ln -s m.pt2 soft.pt2; touch side");
    fails("compile m.pt2 -o m.pt2", 2, "'m.pt2' is read, so it is not written");
    fails("compile m.pt2 -o ./hard.pt2", 2, "is not written");
    fails("compile m.pt2 -o soft.pt2", 2, "is not written");
    fails("compile m.pt2 -o x --dump-data m.pt2", 2, "is not written");
    fails("compile --method a=m.pt2 -o m.pt2", 2, "is not written");
    fails("opt m.pt2 --passes=dce -o m.pt2", 2, "is not written");
    sh("echo 'preset: fp16' > r.yaml; cp $DATA/mlp_digits/input_0.npy x.npy");
    fails("compile m.pt2 --recipe r.yaml -o r.yaml", 2, "'r.yaml' is read");
    fails("compile m.pt2 --recipe int8 --calibrate x.npy -o x.npy", 2, "'x.npy' is read");
    fails("compile m.pt2 --recipe int8 --statistics side -o side", 2, "'side' is read");
    fails("quantize m.pt2 --recipe r.yaml --calibrate x.npy --statistics r.yaml", 2, "is read");
    fails("quantize m.pt2 --recipe int8 --calibrate x.npy --statistics x.npy", 2, "is read");
    fails("quantize m.pt2 --recipe int8 --calibrate x.npy --statistics m.pt2", 2, "is read");
    sh("rm r.yaml x.npy");
    fails("compile $DATA/mlp_digits/model.etir --weights m.pt2 --data side -o side", 2,
          "is not written");
    char want[512];
    snprintf(want, sizeof want, "%s/tests/data/mlp_digits/model.pt2", ROOT);
    expect_same("m.pt2", want);
    expect_files("hard.pt2 m.pt2 side soft.pt2 ");
}

/* As another user where this one may do anything. */
Test(cli, permissions_are_errors_of_files)
{
    const char *as = geteuid() ? "" : "setpriv --reuid=65534 --clear-groups";
    char line[512];
    snprintf(line, sizeof line, "chmod 755 .; %s \"$ETC\" --version", as);
    if (sh(line).code != 0)
        cr_skip_test("no other user can run etc here");
    sh("cp $DATA/add/model.pt2 m.pt2; chmod 000 m.pt2; mkdir locked; chmod 555 locked");
    snprintf(line, sizeof line, "%s \"$ETC\" compile m.pt2 -o /dev/null", as);
    Result r = sh(line);
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "m.pt2: error: cannot be read: Permission denied"), "%s", r.err);
    snprintf(line, sizeof line, "%s \"$ETC\" compile $DATA/add/model.pt2 -o locked/a.pte", as);
    r = sh(line);
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "locked/a.pte: error: cannot write: Permission denied"), "%s",
                       r.err);
    snprintf(line, sizeof line,
             "%s \"$ETC\" run $DATA/linear/model.pt2 --input "
             "$DATA/linear/input_0.npy --output-dir locked/o",
             as);
    cr_expect_eq(sh(line).code, 3);
    expect_files("locked m.pt2 ");
    sh("chmod 755 locked");
}

/* -- odd files --------------------------------------------------------------------------------- */

Test(cli, odd_names)
{
    static const char *const name[] = {"a b.pt2", "modèle-日本.pt2", "it's \"q\".pt2", "-dash.pt2",
                                       "new\nline.pt2"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        setenv("NAME", name[i], 1);
        cr_assert_eq(sh("cp $DATA/add/model.pt2 \"./$NAME\"").code, 0);
        ok("compile -q --output=\"$NAME.pte\" -- \"$NAME\"");
        Result r = ok("inspect --json -- \"$NAME.pte\"");
        cr_expect_eq(strncmp(text(json(&r), "file"), name[i], strlen(name[i])), 0, "%s", r.out);
    }
    setenv("NAME", "latin\xe9.pt2", 1);
    sh("cp $DATA/add/model.pt2 \"$NAME\"");
    Result r = ok("compile \"$NAME\" -o \"$NAME.pte\" --json");
    cr_expect_str_eq(text(json(&r), "output"), "latin\xef\xbf\xbd.pt2.pte");
    char longest[256];
    memset(longest, 'n', 255);
    longest[255] = '\0';
    setenv("NAME", longest, 1);
    ok("compile $DATA/add/model.pt2 -o \"$NAME\"");
}

static const struct {
    const char *make, *name;
    int code;
    const char *message;
} odd[] = {
    {"true", "missing.pt2", 3, "No such file"},
    {": > empty.pt2", "empty.pt2", 1, "empty.pt2: error: "},
    {": > empty.etir", "empty.etir", 1, "empty.etir:1: error: "},
    {": > empty.json", "empty.json", 1, "empty.json"},
    {": > empty", "empty", 1, "is not a .pt2"},
    {"mkdir folder", "folder", 1,
     "folder: error: is a folder without models/NAME.json: give a .pt2, or the "},
    {"mkfifo pipe.pt2", "pipe.pt2", 3, "not a regular file"},
    {"true", "/dev/zero", 3, "not a regular file"},
    {"ln -s loop loop", "loop", 3, "loop: error: "},
    {"printf 'program\\0' > nul.etir", "nul.etir", 1, "contains a NUL byte"},
    {"truncate -s 1T sparse.etir", "sparse.etir", 1, "contains a NUL byte"},
    {"truncate -s 300M sparse.pt2", "sparse.pt2", 1, "sparse.pt2: error: "},
    {"echo hello > hello.txt", "hello.txt", 1, "is not a .pt2"},
    {"cp $DATA/official_pte/off_add.pte x.pte", "x.pte", 1, "already compiled"},
    {"echo x > m.onnx", "m.onnx", 1, "is not an ONNX model: it has no graph"},
    {"printf '\\24\\0\\0\\0BP08\\0\\0' > bundle", "bundle", 1, "is a bundle, for ExecuTorch's"},
    {"cp $DATA/etdump/small.etdp .", "small.etdp", 1, "is a profile: etc inspect --etdump"},
    {"cp $DATA/etdump/small_sized.etdp .", "small_sized.etdp", 1, "is a profile: etc"},
};

Test(cli, odd_models)
{
    char line[512];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        cr_assert_eq(sh(odd[i].make).code, 0, "%s", odd[i].make);
        snprintf(line, sizeof line, "compile %s -o never.pte", odd[i].name);
        fails(line, odd[i].code, odd[i].message);
        snprintf(line, sizeof line, "check %s", odd[i].name);
        fails(line, odd[i].code, odd[i].message);
        cr_expect_eq(access("never.pte", F_OK), -1);
    }
    fails("run empty", 1, "is not a .pt2");
    sh(": > e.pte; mkfifo p.npy; cp $DATA/official_pte/off_add.pte a.pte; truncate -s 1T s.pte");
    fails("run e.pte", 1, "e.pte: error: is empty");
    fails("inspect e.pte", 1, "e.pte: error: is empty");
    fails("run s.pte", 1, "s.pte: error: not an ExecuTorch program");
    fails("run a.pte --input p.npy --input p.npy", 3, "p.npy: error: is not a regular file");
    fails("run a.pte --input . --input none.npy", 3, "none.npy: error: cannot be read");
    fails("run a.pte --input e.pte --input e.pte", 1, "is not a .npy file");
    fails("compile $DATA/add/model.etir --data . -o x", 3, "is not a regular file");
}
