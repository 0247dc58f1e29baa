/* test_commands.c -- tests the commands: what they print, and their results on models, compared
 * with those that torch recorded. */
#include "tests/cli/cli.h"

TestSuite(commands, .init = make_folders, .fini = remove_folders);

/* -- run --------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int n_in, n_out;
} model[] = {
    {"add", 2, 1}, {"linear", 1, 1}, {"softmax", 1, 2}, {"mlp_digits", 1, 1}, {"cnn_digits", 1, 1}};

static void inputs_of(size_t i, char *line)
{
    for (int k = 0; k < model[i].n_in; k++)
        sprintf(line + strlen(line), " --input $DATA/%s/input_%d.npy", model[i].name, k);
}

static void expect_outputs(size_t i, const char *folder)
{
    char got[128], want[32];
    for (int k = 0; k < model[i].n_out; k++) {
        snprintf(got, sizeof got, "%s/output_%d.npy", folder, k);
        snprintf(want, sizeof want, "output_%d.npy", k);
        expect_close(got, model[i].name, want);
    }
}

Test(commands, run_gives_what_torch_gave)
{
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        char inputs[512] = "", line[1024];
        inputs_of(i, inputs);
        snprintf(line, sizeof line, "compile $DATA/%s/model.pt2 -o m.pte -q", model[i].name);
        ok(line);
        snprintf(line, sizeof line, "run m.pte %s --output-dir out -q", inputs);
        Result r = ok(line);
        cr_expect_eq(r.n_out + r.n_err, 0, "%s%s", r.out, r.err);
        expect_outputs(i, "out");
        snprintf(line, sizeof line, "run $DATA/%s/model.pt2 %s --output-dir out2", model[i].name,
                 inputs);
        ok(line);
        expect_outputs(i, "out2");
        snprintf(line, sizeof line,
                 "run $DATA/%s/model.etir --weights $DATA/%s/model.pt2 %s "
                 "--output-dir out3",
                 model[i].name, model[i].name, inputs);
        ok(line);
        expect_outputs(i, "out3");
        cr_expect_eq(sh("rm -r out out2 out3").code, 0);
    }
}

Test(commands, inputs_may_be_borrowed)
{
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        char inputs[512] = "", line[1024];
        inputs_of(i, inputs);
        snprintf(line, sizeof line,
                 "compile $DATA/%s/model.pt2 -o m.pte -q --borrow-inputs --dump-ir after:check_plan",
                 model[i].name);
        Result r = ok(line);
        cr_expect(strstr(r.out, " at in:0"), "%s", r.out);
        snprintf(line, sizeof line, "run m.pte %s --output-dir out -q", inputs);
        ok(line);
        expect_outputs(i, "out");
        cr_expect_eq(sh("rm -r out").code, 0);
    }
    fails("emit-c $DATA/add/model.pt2 --borrow-inputs -o m.c", 2, "--borrow-inputs");
}

Test(commands, run_makes_several_calls)
{
    ok("run $DATA/mlp_digits/model.pt2 --input $DATA/mlp_digits/input_0.npy "
       "--next --input $DATA/mlp_digits/case1/input_0.npy "
       "--next --input $DATA/mlp_digits/case2/input_0.npy --output-dir out");
    expect_close("out/0/output_0.npy", "mlp_digits", "output_0.npy");
    expect_close("out/1/output_0.npy", "mlp_digits", "case1/output_0.npy");
    expect_close("out/2/output_0.npy", "mlp_digits", "case2/output_0.npy");
    cr_expect_eq(sh("[ \"$(find out | wc -l)\" = 7 ]").code, 0);
}

static void write_floats(const char *path, int n, const float *v)
{
    char header[120];
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }",
             n);
    FILE *f = fopen(path, "wb");
    fprintf(f, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0, header);
    fwrite(v, 4, (size_t)n, f);
    fclose(f);
}

/* The sum of all inputs so far. */
static const char counter[] = "program \"counter\" stage aten\n"
                              "mutable %total = \"total\" : f32[2] in \"-\"+0\n"
                              "method @forward(%x: f32[2]) {\n"
                              "  %add = aten.add.Tensor(%total, %x, alpha=1) : f32[2]\n"
                              "  update %total = %add\n"
                              "  return %add\n}\n";

Test(commands, run_carries_state_over)
{
    write_text("c.etir", counter);
    write_floats("x.npy", 2, (const float[]){1, -2});
    sh("printf '\\0\\0\\0\\0\\0\\0\\200\\77' > side"); /* 0, 1 */
    Result r = ok("run c.etir --data side --input x.npy --next --input x.npy --next --input x.npy");
    cr_expect_str_eq(r.out, "call 0 output 0: f32[2] 1 -1\ncall 1 output 0: f32[2] 2 -3\n"
                            "call 2 output 0: f32[2] 3 -5\n");
    fails("run c.etir --input x.npy", 1, "give it as --data FILE");
    sh("printf '\\0\\0\\0\\0' > short");
    fails("run c.etir --data short --input x.npy", 1, "past the end of the side file");
}

#define PTE ROOT "/tests/import/pte/"

/* The memory that a file asks for is known before it is taken; a result that is several outputs is
 * held once, and that of the last call not at all. */
Test(commands, run_takes_no_more_memory_than_it_may)
{
    fails("run " PTE "limit_pool.pte", 1, "1125899906842624 bytes for planned memory");
    fails("run " PTE "limit_pool.pte --memory-limit 1023T", 1, "--memory-limit allows");
    fails("bench " PTE "limit_pool.pte", 1, "planned memory");
    fails("run " PTE "limit_pool.pte --memory-limit 2048T", 1, "no memory for 1125899906842624");
    ok("run " PTE "limit_outputs.pte --memory-limit 1500K");
    ok("run " PTE "limit_outputs.pte --next --memory-limit 2500K");
    fails("run " PTE "limit_outputs.pte --next --memory-limit 1500K", 1, "outputs kept");
    fails("run " PTE "limit_outputs.pte --memory-limit 1M", 1, "planned memory");
    fails("run x.pte --memory-limit 0", 2, "--memory-limit expects");
    fails("run x.pte --memory-limit 4GB", 2, "--memory-limit expects");
    fails("run x.pte --work-limit -1", 2, "--work-limit expects");
}

Test(commands, run_works_no_more_than_it_may)
{
    fails("run " PTE "limit_work.pte --work-limit 50M", 1,
          "element operations than the host allows");
    fails("run " PTE "limit_work.pte --work-limit 50M", 1,
          "a call may do 50M; --work-limit N sets another limit");
    fails("bench " PTE "limit_work.pte --work-limit 50M", 1, "a call may do 50M");
    ok("run $DATA/add/model.pt2 --input $DATA/add/input_0.npy --input $DATA/add/input_1.npy "
       "--work-limit 10K");
}

Test(commands, run_json)
{
    Result r = ok(
        "run $DATA/softmax/model.pt2 --input $DATA/softmax/input_0.npy --output-dir o --json");
    const Json *outputs = json_get(item(json_get(json(&r), "calls"), 0), "outputs");
    cr_expect_eq(json_count(outputs), 2);
    cr_expect_str_eq(text(item(outputs, 1), "file"), "o/output_1.npy");
    cr_expect_str_eq(text(item(outputs, 1), "dtype"), "f32");
    cr_expect_str_eq(text(doc.root, "method"), "forward");
    r = ok("run $DATA/softmax/model.pt2 --input $DATA/softmax/input_0.npy --json -q");
    outputs = json_get(item(json_get(json(&r), "calls"), 0), "outputs");
    cr_expect_null(json_get(item(outputs, 0), "file"));
}

Test(commands, run_names_the_input_that_does_not_fit)
{
    ok("compile $DATA/mlp_digits/model.pt2 -o m.pte -q");
    ok("compile $DATA/add/model.pt2 -o a.pte -q");
    write_floats("x.npy", 2, (const float[]){1, 2});
    fails("run m.pte", 1, "m.pte: error: 0 inputs given, method 'forward' has 1");
    fails("run m.pte --input x.npy --input x.npy", 1, "2 inputs given");
    fails("run m.pte --input x.npy", 1,
          "input 0: is a tensor f32[2], expected a tensor of at most f32[1024,64]");
    fails("run m.pte --input value:3", 1, "input 0: is a tensor f32[], expected");
    fails("run m.pte --input value:null", 1, "input 0: is null, expected a tensor");
    fails("run m.pte --input value:three", 1, "'value:three' is not a JSON number");
    fails("run m.pte --input value:0x3", 1, "is not a JSON number");
    fails(
        "run $DATA/mlp_digits/model.pt2 --dim s31=1..8 --input $DATA/mlp_digits/case2/input_0.npy",
        1, "input 0 ('input'): size 360 at dimension 0 is past its bound 8");
    fails("run a.pte --input $DATA/add/input_1.npy --input x.npy", 1,
          "input 0: is a tensor f32[3,1], expected a tensor f32[2,3,4]");
    fails("run a.pte --input $DATA/add/input_1.npy --input x.npy", 1,
          "input 1: is a tensor f32[2], expected a tensor f32[3,1]");
    fails("run $DATA/linear/model.pt2 --input $DATA/mlp_digits/input_0.npy", 1, " at dimension ");
    fails("run m.pte --method backward", 1, "has no method 'backward'\n  note: it has 'forward'");
    fails("run m.pte --dim s31=1..2 --input x.npy", 1, "is a .pte");
    fails("run m.pte --input $DATA/mlp_digits/extra_test_y.npy", 1, "is a tensor i64[");
    sh("touch file");
    fails("run m.pte --input $DATA/mlp_digits/input_0.npy --output-dir file", 3,
          "file: error: cannot be made a folder");
    fails("run m.pte --input $DATA/mlp_digits/input_0.npy --output-dir no/such", 3,
          "no/such: error: ");
    fails("run $DATA/official_pte/off_clx.pte --input x.npy", 4,
          "XnnpackBackend: delegate that this build lacks");
}

/* -- sizes at entry --------------------------------------------------------------------------- */

static void write_zeros(const char *path, const char *descr, const char *shape, int bytes)
{
    char header[120];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
             descr, shape);
    FILE *f = fopen(path, "wb");
    fprintf(f, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0, header);
    for (int i = 0; i < bytes; i++)
        fputc(0, f);
    fclose(f);
}

static const char sized[] = "program \"sized\" stage core\n"
                            "sym %n in 2..6\nsym %m in 1..9\n"
                            "guard %m-%n in 0.. \"n <= m\"\n"
                            "method @forward(%x: f32[2*%n,3], %y: f32[%n+1,%m]) {\n"
                            "  %a = aten.neg.default(%x) : f32[2*%n,3]\n"
                            "  %b = aten.mul.Tensor(%y, %n*%m) : f32[%n+1,%m]\n"
                            "  %c = etc.constant(floordiv(%m,%n)) : int(floordiv(%m,%n))\n"
                            "  return %a, %b, %c\n}\n";

/* Rows of x, of y and columns of y, and what is said of them; NULL: they are the model's. */
static const struct {
    int x, y, m;
    const char *lite, *c;
} size_row[] = {
    {4, 3, 2, NULL, NULL},
    {12, 7, 9, NULL, NULL},
    {8, 5, 4, NULL, NULL},
    {2, 2, 2, "input 'y' (n+1) must be 3 to 7, not 2",
     "x: dimension 0 is 2, expected (2*n), 4 to 12"},
    {14, 8, 9, "is past its bound", "x: dimension 0 is 14, expected (2*n), 4 to 12"},
    {5, 3, 2, "dimension 0 of input 'x' must be 2*n, not 5",
     "x: dimension 0 is 5, expected (2*n), 4 to 12"},
    {4, 4, 3, "dimension 0 of input 'x' must be 2*n, not 4",
     "y: dimension 0 is 4, expected (n+1), 3 to 7"},
    {4, 3, 10, "is past its bound", "y: dimension 1 is 10, expected m, 1 to 9"},
    {4, 3, 1, "the model was exported for n <= m, not -1", "the model was exported for n <= m"},
};

static void expect_said(Result r, const char *said, const char *how)
{
    cr_expect_eq(r.code, said ? 1 : 0, "%s: exit %d\n%s", how, r.code, r.err);
    cr_expect(!said || strstr(r.err, said), "%s says '%s', expected '%s'", how, r.err, said);
}

Test(commands, sizes_are_checked_at_entry)
{
    write_text("s.etir", sized);
    ok("compile s.etir -o s.pte -q");
    ok("emit-c s.etir -o s.c --main -q");
    cr_assert_eq(sh("cc -O1 -Wall -Wextra -Werror -o s s.c s_main.c -lm").code, 0);
    for (size_t i = 0; i < sizeof size_row / sizeof *size_row; i++) {
        char shape[32];
        snprintf(shape, sizeof shape, "%d, 3", size_row[i].x);
        write_zeros("x.npy", "<f4", shape, size_row[i].x * 12);
        snprintf(shape, sizeof shape, "%d, %d", size_row[i].y, size_row[i].m);
        write_zeros("y.npy", "<f4", shape, size_row[i].y * size_row[i].m * 4);
        expect_said(etc("run s.pte --input x.npy --input y.npy"), size_row[i].lite, ".pte");
        expect_said(etc("run s.etir --input x.npy --input y.npy"), size_row[i].lite, "model");
        expect_said(sh("./s --input x.npy --input y.npy --output-dir o"), size_row[i].c, "C");
    }
    sh("rm -r o");
}

/* NAME_run says all that it can know of its arguments. */
Test(commands, emitted_c_says_which_argument_is_wrong)
{
    write_text("s.etir", sized);
    ok("emit-c s.etir -o s.c -q");
    write_text(
        "t.c",
        "#include \"s.h\"\n#include <stdio.h>\n"
        "static float x[128], y[128], a[128], b[128];\nstatic int64_t c;\n"
        "int main(void)\n{\n"
        "    printf(\"%d\", s_run(x, y, a, b, &c, 4, 9, NULL));\n"
        "    printf(\" %d %d\", s_run(NULL, y, a, b, &c, 4, 9, NULL), s_run(x, y, a, b, NULL, 4, 9, NULL));\n"
        "    printf(\" %d\", s_run((const float *)(const void *)((const char *)x + 1), y, a, b, &c, 4, 9, NULL));\n"
        "    printf(\" %d %d\", s_run(x, y, a, b, &c, 1, 9, NULL), s_run(x, y, a, b, &c, 7, 9, NULL));\n"
        "    printf(\" %d %d\", s_run(x, y, a, b, &c, 4, 0, NULL), s_run(x, y, a, b, &c, 4, 10, NULL));\n"
        "    printf(\" %d\", s_run(x, y, a, b, &c, 6, 5, NULL));\n"
        "    printf(\" %d\", s_run(x, y, x, y, &c, 6, 9, NULL)); /* outputs over inputs */\n"
        "    return 0;\n}\n");
    cr_assert_eq(
        sh("cc -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -o t t.c s.c -lm").code,
        0);
    Result r = sh("./t");
    cr_expect_eq(r.code, 0);
    cr_expect_str_eq(r.out, "0 1 1 1 2 2 3 3 4 0");
}

Test(commands, numbers_go_in_and_out)
{
    write_text("n.etir", "program \"n\" stage core\nsym %n in 1..4\n"
               "method @forward(%x: f32[4], %k: i64[], %f: int(3) = 3, %s: none = \"add\") {\n"
               "  %i = aten._local_scalar_dense.default(%k) : int(%n)\n"
               "  %a = aten.slice.Tensor(%x, 0, 0, %n, 1) : f32[%n]\n"
               "  %b = aten.neg.default(%a) : f32[%n]\n"
               "  %c = etc.constant(%n*2) : int(2*%n)\n  %d = etc.constant(0.5) : float\n"
               "  %e = etc.constant(none) : none\n  return %b, %c, %d, %e\n}\n");
    write_floats("x.npy", 4, (const float[]){1, 2, 3, 4});
    ok("compile n.etir -o n.pte -q");
    ok("emit-c n.etir -o n.c --main -q");
    cr_assert_eq(sh("cc -O1 -Wall -Wextra -Werror -o n n.c n_main.c -lm").code, 0);
    Result r = ok(
        "run n.pte --input x.npy --input value:2 --input value:3 --input 'value:\"add\"'");
    cr_expect_str_eq(
        r.out, "output 0: f32[2] -1 -2\noutput 1: i64[] 4\noutput 2: f64[] 0.5\noutput 3: none\n");
    const char *end = " --input value:3 --input 'value:\"add\"' --output-dir o";
    char line[256];
    snprintf(line, sizeof line, "./n --input x.npy --input value:2%s && ls o | tr '\\n' ' '", end);
    cr_expect_str_eq(sh(line).out, "output_0.npy output_1.npy output_2.npy ");
    snprintf(line, sizeof line, "./n --input x.npy --input value:5%s", end);
    expect_said(sh(line), "n is not in 1..4", "C");
    expect_said(
        etc("run n.pte --input x.npy --input value:5 --input value:3 --input 'value:\"add\"'"),
        "the element of 'k' (n) must be 1 to 4, not 5", ".pte");
    expect_said(sh("./n --input x.npy --input value:2 --input value:4 --input 'value:\"add\"'"),
                "f: the export fixed it to another value", "C");
    expect_said(
        etc("run n.pte --input x.npy --input value:2 --input value:4 --input 'value:\"add\"'"),
        "input 2: is a whole number; the export fixed it", ".pte");
    sh("rm -r o");
}

Test(commands, a_number_of_32_bits_is_a_length)
{
    write_text("n.etir", "program \"n\" stage core\nsym %n in 1..4\n"
               "method @forward(%x: f32[4], %k: i32[1]) {\n"
               "  %i = aten._local_scalar_dense.default(%k) : int(%n)\n"
               "  %a = aten.slice.Tensor(%x, 0, 0, %n, 1) : f32[%n]\n"
               "  %b = aten.neg.default(%a) : f32[%n]\n  return %b\n}\n");
    write_floats("x.npy", 4, (const float[]){1, 2, 3, 4});
    sh("python3 -c 'import numpy; numpy.save(\"k.npy\", numpy.array([3], \"i4\"))'");
    cr_expect_str_eq(ok("run n.etir --input x.npy --input k.npy").out, "output 0: f32[3] -1 -2 -3\n");
    ok("emit-c n.etir -o n.c --main -q");
    cr_assert_eq(sh("cc -O1 -Wall -Wextra -Werror -o n n.c n_main.c -lm").code, 0);
    cr_expect_str_eq(sh("./n --input x.npy --input k.npy").out, "output 0: f32[3] -1 -2 -3\n");
}

Test(commands, numbers_become_the_dtype_wanted)
{
    static const struct {
        const char *dtype, *value, *out; /* out NULL: refused */
    } row[] = {
        {"f32", "2.5", "output 0: f32[] 2.5\n"},
        {"f32", "-3", "output 0: f32[] -3\n"},
        {"f32", "NaN", "output 0: f32[] nan\n"},
        {"f64", "-0.5", "output 0: f64[] -0.5\n"},
        {"i64", "-7", "output 0: i64[] -7\n"},
        {"i64", "2.5", NULL},
        {"i64", "1e300", NULL},
        {"i64", "NaN", NULL},
        {"i64", "2.0", "output 0: i64[] 2\n"},
        {"i32", "2147483648", NULL},
        {"i32", "-5", "output 0: i32[] -5\n"},
        {"u8", "255", "output 0: u8[] 255\n"},
        {"u8", "-1", NULL},
        {"i8", "-128", "output 0: i8[] -128\n"},
        {"bool", "true", "output 0: bool[] 1\n"},
        {"bool", "2", NULL},
        {"f16", "1", NULL},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char content[512], line[128];
        snprintf(content, sizeof content,
                 "program \"c\" stage aten\nmethod @forward(%%x: %s[]) {\n"
                 "  %%y = aten.clone.default(%%x, memory_format=none) : %s[]\n  return %%y\n}\n",
                 row[i].dtype, row[i].dtype);
        write_text("c.etir", content);
        snprintf(line, sizeof line, "run c.etir --input value:%s", row[i].value);
        if (row[i].out)
            cr_expect_str_eq(ok(line).out, row[i].out, "%s", line);
        else
            fails(line, 1, "is not a value of dtype");
    }
}

/* -- folders ----------------------------------------------------------------------------------- */

/* b.pte, c.pte, ..: one for each letter. */
static void expect_all_same(const char *letters)
{
    for (const char *s = letters; *s; s++)
        expect_same("a.pte", (char[]){*s, '.', 'p', 't', 'e', '\0'});
}

Test(commands, unpacked_models_give_the_same_file)
{
    cr_assert_eq(sh("python3 -m zipfile -e $DATA/mlp_digits/model.pt2 . && mkdir alone && "
                    "cp model/models/model.json alone")
                     .code,
                 0);
    ok("compile $DATA/mlp_digits/model.pt2 -o a.pte -q");
    ok("compile model -o b.pte -q");
    ok("compile model/models/model.json -o c.pte -q");
    ok("compile alone/model.json --weights-dir model -o d.pte -q");
    ok("compile alone/model.json --weights-dir model/data -o e.pte -q");
    ok("compile $DATA/mlp_digits/model.etir --weights model -o f.pte -q");
    ok("compile $DATA/mlp_digits/model.etir --weights model/models/model.json -o g.pte -q");
    ok("compile - --weights $DATA/mlp_digits/model.pt2 -o h.pte -q < $DATA/mlp_digits/model.etir");
    expect_all_same("bcdefgh");
    fails("compile alone/model.json -o x.pte", 3, "error: ");
    fails("compile $DATA/mlp_digits/model.etir -o x.pte", 1, "give it as --weights FILE.pt2");
    fails("compile $DATA/mlp_digits/model.etir --weights $DATA/add/model.pt2 -o x.pte", 1,
          "has no 'data/weights/weight_5'");
    fails("compile $DATA/mlp_digits/model.etir --weights a.pte -o x.pte", 1,
          "is not an archive with weights");
    fails("compile $DATA/mlp_digits/model.pt2 --weights a.pte -o x.pte", 1, "belong to an .etir");
}

/* With weights that are pickled, in an archive within the archive. */
Test(commands, older_exports_give_the_same_file)
{
    cr_assert_eq(sh("python3 " ROOT "/tests/import/make_old.py $DATA/mlp_digits/model.pt2 . && mkdir o && "
                    "python3 -m zipfile -e 28.pt2 o && python3 -m zipfile -e 27.pt2 p")
                     .code,
                 0);
    ok("compile $DATA/mlp_digits/model.pt2 -o a.pte -q");
    ok("compile 27.pt2 -o b.pte -q");
    ok("compile 28.pt2 -o c.pte -q");
    ok("compile o/model -o d.pte -q");
    ok("compile p -o e.pte -q");
    ok("opt 28.pt2 --passes=dce -o x.etir -q");
    ok("compile x.etir --weights 27.pt2 -o f.pte -q");
    ok("compile x.etir --weights o/model -o g.pte -q");
    expect_all_same("bcdefg");
    fails("compile x.etir --weights $DATA/mlp_digits/model.pt2 -o y.pte", 1,
          "has no 'data/weights/weights.model.0'");
}

/* The sizes of the line that tells of success. */
static void expect_sizes(const char *line, const char *says)
{
    long long file, all, planned, scratch, constants;
    Result r = ok(line);
    const char *at = strstr(r.err, says);
    cr_assert_not_null(at, "%s", r.err);
    int n = sscanf(at + strlen(says),
                   " %lld bytes; needs %lld bytes of memory to run: %lld of planned values, "
                   "%lld of scratch, %lld of constants; took ",
                   &file, &all, &planned, &scratch, &constants);
    cr_assert_eq(n, 5, "%s", at);
    cr_expect_eq(all, planned + scratch + constants, "%s", at);
    cr_expect(constants > 0 && constants < file && planned > 0, "%s", at);
}

Test(commands, success_tells_what_a_run_needs)
{
    expect_sizes("compile $DATA/mlp_digits/model.pt2 -o m.pte", "m.pte:");
    expect_sizes("compile $DATA/mlp_digits/model.pt2 -o m.pte --backend xnnpack",
                 "multiply-adds\nm.pte:");
    expect_sizes("emit-c $DATA/mlp_digits/model.pt2 -o m.c", "m.c:");
    cr_expect_null(strstr(ok("compile $DATA/add/model.pt2 -o m.pte").err, "bound"));
    cr_expect_not_null(strstr(ok("compile $DATA/add/model.pt2 -o m.pte -v").err, "lower bound"));
}

/* The rows of a matrix product for a Cortex-M need memory that lies behind the values. */
Test(commands, scratch_is_what_the_arena_holds_beside_values)
{
    ok("emit-c $DATA/tiny_kws_dscnn/model.pt2 --recipe int8 --calibrate $DATA/tiny_kws_dscnn/input_0.npy "
       "--target cortex-m4 -o kws.c --json > told");
    size_t n;
    const char *told = slurp("told", &n), *of_method = strstr(told, "\"methods\": ");
    const char *macro = strstr(slurp("kws.h", &n), "#define KWS_ARENA_BYTES ");
    cr_assert(of_method && macro);
    const long long values = atoll(strstr(told, "\"arena\": ") + 9);
    const long long scratch = atoll(strstr(told, "\"scratch\": ") + 11);
    cr_expect(scratch > 0 && values + scratch == atoll(macro + 24), "%s", told);
    cr_expect_eq(scratch, atoll(strstr(of_method, "\"scratch\": ") + 11), "%s", told);
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* 2,000 nodes: each has its row, forty of them before the fold; the picture grows with them. */
Test(commands, page_holds_thousands_of_nodes)
{
    size_t n;
    cr_assert_eq(sh("{ echo 'program \"<i>\" stage aten'; echo 'method @forward(%v0: f32[8,64]) {';"
                    "i=0; while [ $i -lt 2000 ]; do op=relu; [ $((i % 2)) = 0 ] || op=tanh;"
                    "echo \"  %v$((i+1)) = aten.$op.default(%v$i) : f32[8,64] from \\\"m\\\", "
                    "\\\"<b>.py:$i\\\"\"; i=$((i+1)); done; echo '  return %v2000'; echo '}'; } > big.etir")
                     .code, 0);
    ok("compile big.etir -o big.pte --report big.html -q");
    const char *page = slurp("big.html", &n);
    const char *told = strstr(page, "by time</h2>\n<p>");
    int layers = told ? atoi(strstr(told, "<p>") + 3) : 0; /* a few are run in pieces */
    cr_expect(layers >= 2000 && layers < 2100);
    cr_expect_eq(count_of(page, "<div class=\"time\""), layers);
    cr_expect_not_null(strstr(page, arena_printf(arena, "<summary>%d more</summary>", layers - 40)));
    cr_expect_not_null(strstr(page, arena_printf(arena, "width=\"%d\"", 2 * layers + 292)));
    cr_expect(!strstr(page, "<script") && !strstr(page, "<b>.py") && !strstr(page, "<i>"));
    cr_expect_eq(count_of(page, "http"), 1); /* the name of SVG's namespace */
    cr_expect_lt(n, 2000000);
}

/* Where samples are at hand, what quantization costs is told as etc quantize tells it. */
Test(commands, page_tells_layers_backends_and_damage)
{
    size_t n;
    double cosine = 0, as_quantize = 1;
    sh("mkdir d && cp $DATA/quantized/cnn_digits_calibration.npy d/");
    Result r = ok("compile $DATA/cnn_digits/model.pt2 -o q.pte --backend xnnpack --recipe int8 --calibrate d "
                  "--report q.html --json");
    json_float(json_get(json(&r), "cosine"), &cosine);
    r = ok("quantize $DATA/cnn_digits/model.pt2 --backend xnnpack --recipe int8 --calibrate d "
           "--statistics s --json");
    json_float(json_get(json(&r), "cosine"), &as_quantize);
    cr_expect_eq(cosine, as_quantize);
    const char *page = slurp("q.html", &n);
    static const char *const part[] = {"<h2>Memory", "<h2>Backends", "<h2>Layers by time",
                                       "<h2>Layers by size", "<h2>Quantization", "class=\"damage\""};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        cr_expect_not_null(strstr(page, part[i]), "no %s", part[i]);
}

Test(commands, report_draws_the_plan)
{
    Result r = ok("compile $DATA/mlp_digits/model.pt2 -o a.pte --report a.svg --json");
    ok("compile $DATA/mlp_digits/model.pt2 -o b.pte --report b.svg -q");
    ok("emit-c $DATA/mlp_digits/model.pt2 -o m.c --report m.html -q");
    expect_same("a.svg", "b.svg");
    cr_expect_not_null(json_get(json(&r), "proven_optimal"));
    cr_expect_eq(sh("python3 -c \"import xml.dom.minidom as m; d = m.parse('a.svg'); "
                    "t = [e.firstChild.data for e in d.getElementsByTagName('title')]; "
                    "assert len(t) > 3 and any('aten.' in x and 'bytes at' in x for x in t), t\"")
                     .code,
                 0);
    cr_expect_eq(sh("grep -q '<svg' m.html && grep -q '</html>' m.html").code, 0);
    fails("compile $DATA/mlp_digits/model.pt2 -o a.pte --report a.png", 2, "ends in .html or .svg");
    fails("compile $DATA/mlp_digits/model.pt2 -o x.svg --report x.svg", 2,
          "'x.svg' is the name of two outputs");
}

/* -- texts ------------------------------------------------------------------------------------- */

Test(commands, a_dumped_program_compiles_to_the_same_bytes)
{
    static const char *const stop[] = {
        "resolve_views", "decompose", "canonicalize", "fold_batch_norm", "drop_states",
        "to_edge",       "to_out",    "order",        "plan_memory",     "check_plan"};
    ok("compile $DATA/cnn_digits/model.pt2 -o direct.pte -q");
    for (size_t i = 0; i < sizeof stop / sizeof *stop; i++) {
        char line[512];
        snprintf(line, sizeof line,
                 "compile $DATA/cnn_digits/model.pt2 -o a.pte --dump-ir=after:%s "
                 "--dump-data side -q > x.etir",
                 stop[i]);
        ok(line);
        expect_same("direct.pte", "a.pte");
        ok("compile x.etir --data side --weights $DATA/cnn_digits/model.pt2 -o b.pte");
        expect_same("direct.pte", "b.pte");
        size_t n;
        cr_expect_eq(strncmp(slurp("x.etir", &n), "; after ", 8), 0);
    }
}

/* %c is folded away after the text that names it was
 * printed; its bytes are at hand all the same. */
Test(commands, bytes_that_a_later_pass_drops_are_dumped)
{
    write_text("c.etir", "program \"c\" stage aten\nconst %c = \"c\" : f32[2] in \"-\"+0\n"
                         "method @forward(%x: f32[2]) {\n"
                         "  %n = aten.neg.default(%c) : f32[2]\n"
                         "  %y = aten.add.Tensor(%x, %n, alpha=1) : f32[2]\n  return %y\n}\n");
    sh("printf '\\0\\0\\200\\77\\0\\0\\0\\100' > ones"); /* 1, 2 */
    write_floats("x.npy", 2, (const float[]){10, 10});
    ok("compile c.etir --data ones -o a.pte -q");
    ok("compile c.etir --data ones -o b.pte -q --dump-ir=after:resolve_views --dump-data side > d.etir");
    ok("compile d.etir --data side -o c.pte -q");
    expect_same("a.pte", "c.pte");
    ok("compile c.etir --data ones -o b.pte -q --dump-ir=all --dump-data side2 > d.etir");
    ok("compile d.etir --data side2 -o c.pte -q");
    expect_same("a.pte", "c.pte");
    cr_expect_str_eq(ok("run c.pte --input x.npy").out, "output 0: f32[2] 9 8\n");
}

Test(commands, a_text_names_a_part_of_a_member)
{
    static const char form[] =
        "program \"c\" stage aten\nparam %%w = \"w\" : %s in \"weight_0\"+%s\n"
        "method @forward(%%x: %s) {\n"
        "  %%y = aten.add.Tensor(%%x, %%w, alpha=1) : %s\n  return %%y\n}\n";
    static const struct {
        const char *type, *offset, *message; /* NULL: accepted */
    } row[] = {
        {"f32[3]", "256", NULL},
        {"f32[3]", "16372", NULL},
        {"f32[3]", "16376", "'w' reaches beyond the 16384 bytes of its file"},
        {"f32[3]", "258", "starts within an element"},
        {"f32[3]", "9223372036854775804", "reaches beyond"},
        {"f32[2147483647,3]", "0", "reaches beyond"},
    };
    cr_assert_eq(sh("python3 -m zipfile -e $DATA/mlp_digits/model.pt2 .").code, 0);
    write_floats("x.npy", 3, (const float[]){0, 0, 0});
    size_t n, m;
    char header[256];
    const char *weights = slurp("model/data/weights/weight_0", &n);
    cr_assert_eq(n, 16384);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *type = row[i].type;
        write_text("w.etir", arena_printf(arena, form, type, row[i].offset, type, type));
        if (row[i].message) {
            fails("run w.etir --weights $DATA/mlp_digits/model.pt2 --input x.npy", 1,
                  row[i].message);
            continue;
        }
        ok("run w.etir --weights $DATA/mlp_digits/model.pt2 --input x.npy --output-dir o");
        cr_expect_eq(
            memcmp(floats("o/output_0.npy", header, &m), weights + atoi(row[i].offset), 12), 0);
    }
}

Test(commands, dump_ir_all_prints_every_stage)
{
    Result r = sh("\"$ETC\" compile $DATA/add/model.pt2 -o a.pte --dump-ir=all -q");
    static const char *const want[] = {"; after resolve_views", "stage core", "stage edge",
                                       "stage planned"};
    for (size_t i = 0; i < 4; i++)
        cr_expect_not_null(strstr(r.out, want[i]), "no %s", want[i]);
    cr_assert_eq(
        sh("\"$ETC\" compile $DATA/add/model.pt2 -o a.pte --dump-ir=all -q > all.etir").code, 0);
    r = ok("compile all.etir -o b.pte -q");
    cr_expect_not_null(strstr(r.err, "another program follows; the first is taken"), "%s", r.err);
    expect_same("a.pte", "b.pte");
}

Test(commands, a_stage_leads_to_one_tail)
{
    ok("emit-c $DATA/linear/model.pt2 --dry-run -q --dump-ir=after:group > g.etir");
    fails("compile g.etir --weights $DATA/linear/model.pt2 -o x.pte", 1,
          "is at stage grouped of the way to C");
    ok("compile $DATA/linear/model.pt2 --dry-run -q --dump-ir=after:to_edge > e.etir");
    fails("emit-c e.etir --weights $DATA/linear/model.pt2 -o x.c", 1,
          "is at stage edge of the way to a .pte");
    ok("compile $DATA/linear/model.pt2 --dry-run -q --dump-ir=after:plan_memory > p.etir");
    fails("emit-c p.etir --weights $DATA/linear/model.pt2 -o x.c", 1,
          "is at stage planned of the way to a .pte");
}

Test(commands, opt_runs_passes)
{
    write_text("d.etir",
               "program \"d\" stage core\nmethod @forward(%x: f32[2]) {\n"
               "  %a = aten.relu.default(%x) : f32[2]\n  %b = aten.relu.default(%a) : f32[2]\n"
               "  %c = aten.relu.default(%x) : f32[2]\n  return %a\n}\n");
    const char *want = "program \"d\" stage core\nmethod @forward(%x: f32[2]) {\n"
                       "  %a = aten.relu.default(%x) : f32[2]\n  return %a\n}\n";
    cr_expect_str_eq(ok("opt d.etir --passes=dce").out, want);
    cr_expect_str_eq(ok("opt - --passes=cse,dce -o - < d.etir").out, want);
    Result r = ok("opt d.etir --passes=dce -o e.etir");
    size_t n;
    cr_expect_eq(r.n_out, 0);
    cr_expect_str_eq(slurp("e.etir", &n), want);
    r = ok("opt d.etir --passes dce --json");
    cr_expect_str_eq(text(json(&r), "text"), want);
    cr_expect_str_eq(text(doc.root, "stage"), "core");
    r = ok(
        "opt $DATA/mlp_digits/model.pt2 --passes=resolve_views,functionalize,decompose --dim s31=1..4");
    cr_expect(strstr(r.out, "stage core\nsym %s31 in 1..4\n") && !strstr(r.out, "dropout"), "%s",
              r.out);
    ok("opt $DATA/cnn_digits/model.pt2 --passes=decompose,canonicalize,fold_constants,fold_batch_norm "
       "--dump-data side -o c.etir");
    r = ok("opt c.etir --passes=cse,dce,drop_states --tail pte");
    cr_expect_not_null(strstr(r.out, "stage core"));
    fails("opt $DATA/mlp_digits/model.pt2 --passes=dce,plan_memory", 1,
          "pass 'plan_memory' needs a program that is past stage aten: run decompose before it");
    fails("opt d.etir --passes=dce -o /dev/full", 3, "cannot write");
}

Test(commands, opt_lists_passes)
{
    Result r = ok("opt --list");
    cr_expect(strstr(r.out, "dce ") && strstr(r.out, "plan_memory ") &&
              strstr(r.out, "bounded(8)"));
    r = ok("opt --list --json");
    const Json *passes = json_get(json(&r), "passes");
    cr_expect_geq(json_count(passes), 16);
    cr_expect_str_eq(text(item(passes, 0), "name"), "resolve_views");
    cr_expect_str_eq(text(item(passes, 0), "exactness"), "exact");
}

/* -- ops, inspect, check ----------------------------------------------------------------------- */

Test(commands, ops_is_the_support_matrix)
{
    Result r = ok("ops");
    cr_expect(strstr(r.out, "aten.add.Tensor ") && strstr(r.out, "aten.linear.default "));
    r = ok("ops linear.d");
    cr_expect(strstr(r.out, "aten.linear.default ") && !strstr(r.out, "aten.add.Tensor"), "%s",
              r.out);
    r = ok("ops aten.linear.default --json");
    const Json *op = item(json_get(json(&r), "operators"), 0);
    cr_expect_str_eq(text(op, "name"), "aten.linear.default");
    cr_expect_str_eq(text(op, "pte"), "yes");
    cr_expect_str_eq(text(op, "c"), "yes");
    cr_expect_str_eq(text(op, "runtime_lite"), "yes");
    fails("ops lineer", 1, "no operator's name contains 'lineer'; did you mean 'linear'?");
    fails("ops aten.linear.defalt", 1, "did you mean 'aten.linear.default'?");
    fails("ops --json zzzzzzzzzzzz", 1, "no operator's name contains 'zzzzzzzzzzzz'\n");
}

Test(commands, inspect_reads_every_kind)
{
    ok("compile $DATA/mlp_digits/model.pt2 -o m.pte -q");
    cr_assert_eq(sh("python3 -m zipfile -e $DATA/mlp_digits/model.pt2 .").code, 0);
    static const char *const program[] = {
        "$DATA/mlp_digits/model.pt2", "$DATA/mlp_digits/model.etir", "model",
        "model/models/model.json", "- < $DATA/mlp_digits/model.etir"};
    for (size_t i = 0; i < sizeof program / sizeof *program; i++) {
        char line[256];
        snprintf(line, sizeof line, "inspect %s", program[i]);
        Result r = ok(line);
        cr_expect(strstr(r.out, "3 aten.linear.default") &&
                      strstr(r.out, "input 0: input f32[%s31,64]"),
                  "%s", r.out);
        snprintf(line, sizeof line, "inspect --json %s", program[i]);
        r = ok(line);
        const Json *j = json(&r), *method = item(json_get(j, "methods"), 0);
        cr_expect_str_eq(text(j, "kind"), "program");
        cr_expect_str_eq(text(j, "stage"), "aten");
        cr_expect_eq(number(j, "state_bytes"), 26280);
        cr_expect_eq(number(item(json_get(j, "symbols"), 0), "hi"), 1024);
        cr_expect_eq(number(method, "nodes"), 6);
        cr_expect_str_eq(
            json_string(item(json_get(item(json_get(method, "inputs"), 0), "shape"), 0)), "s31");
    }
    Result r = ok("inspect m.pte");
    cr_expect(strstr(r.out, "3 aten::linear.out\n") && strstr(r.out, "method forward: arena "),
              "%s", r.out);
    r = ok("inspect m.pte --json");
    const Json *method = item(json_get(json(&r), "methods"), 0);
    cr_expect_str_eq(text(doc.root, "kind"), "pte");
    cr_expect_str_eq(text(item(json_get(method, "inputs"), 0), "dtype"), "f32");
    cr_expect_eq(number(item(json_get(method, "operators"), 5), "calls"), 3);
    r = ok("inspect $DATA/official_pte/off_miscx.pte");
    cr_expect_not_null(strstr(r.out, "delegate 1: XnnpackBackend"), "%s", r.out);
    r = ok("inspect $DATA/official_pte/off_idx.pte --json");
    cr_expect_not_null(strstr(r.out, "\"aten::topk.values\""), "%s", r.out);
}

Test(commands, check_lists_everything_and_exits_as_compile_would)
{
    Result r = ok("check $DATA/mlp_digits/model.pt2");
    cr_expect(r.n_out == 0 && strstr(r.err, "nothing stops a compile to a .pte"), "%s", r.err);
    r = ok("check $DATA/mlp_digits/model.pt2 --tail c");
    cr_expect_not_null(strstr(r.err, "nothing stops a compile to C"), "%s", r.err);
    r = ok("check $DATA/mlp_digits/model.pt2 --json -q");
    cr_expect_eq(r.n_err, 0);
    cr_expect_str_eq(text(json(&r), "tail"), "pte");
    cr_expect_eq(number(doc.root, "errors"), 0);
    static const char *const each[] = {"node 'a' (mine.first.default)",
                                       "note: module blocks.0.conv, net.py:12",
                                       "node 'b' (mine.second.default)", "dtype complex32"};
    for (size_t i = 0; i < 4; i++) {
        fails("check " ROOT "/tests/import/many_errors.json", 4, each[i]);
        fails("compile -o x " ROOT "/tests/import/many_errors.json", 4, each[i]);
        fails("emit-c -o x.c " ROOT "/tests/import/many_errors.json", 4, each[i]);
    }
    r = etc("check --json " ROOT "/tests/import/many_errors.json");
    cr_expect_eq(r.code, 4);
    const Json *j = json(&r);
    cr_expect_eq(number(j, "exit"), 4);
    cr_expect_eq(number(j, "errors"), 3);
    cr_expect_geq(json_count(json_get(j, "messages")), 4);
    expect_files("");
}

/* -- emit-c ------------------------------------------------------------------------------------ */

static void expect_emitted(size_t i, const char *flags)
{
    char line[1024];
    snprintf(line, sizeof line, "emit-c $DATA/%s/model.pt2 -o m.c --main --target generic %s",
             model[i].name, flags);
    Result r = ok(line);
    cr_expect_eq(r.n_out, 0);
    cr_assert_eq(sh("cc -O1 -o m m*.c $(ls m_weights.S 2> /dev/null) -lm").code, 0, "%s",
                 model[i].name);
    strcpy(line, "./m");
    inputs_of(i, line);
    strcat(line, " --output-dir out");
    cr_assert_eq(sh(line).code, 0, "%s", line);
    expect_outputs(i, "out");
}

Test(commands, emitted_c_gives_what_torch_gave)
{
    static const char *const how[] = {"", "--weights-as array", "--weights-as incbin"};
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        expect_emitted(i, how[i % 3]);
        sh("rm -r m* out");
    }
    expect_files("");
}

Test(commands, inputs_and_outputs_may_share_the_arena)
{
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        expect_emitted(i, "--share-io");
        sh_ok("grep -qx 'int m_run(.*void \\*arena);' m.h && ! grep 'm_run(const' m.h");
        sh_ok(
            "grep -q '^#define M_INPUT_0_OFFSET [0-9]*$' m.h && grep -q '^#define M_OUTPUT_0_OFFSET' m.h");
        sh("rm -r m* out");
    }
    fails("compile $DATA/add/model.pt2 --share-io -o m.pte", 2, "--share-io");
}

/* Two banks: the first takes what it holds, the arguments are called so, torch's outputs. */
Test(commands, values_lie_in_banks)
{
    expect_emitted(4, "--bank FAST=4K --bank slow=1M");
    sh_ok("grep -q 'm_run(const float \\*[a-z_0-9]*, float \\*[a-z_0-9]*,.* void \\*fast, void \\*slow);' "
          "m.h");
    sh_ok("grep -q '^#define M_BANK_SLOW_BYTES [1-9]' m.h && ! grep ARENA m.h");
    sh_ok("test $(sed -n 's/^#define M_BANK_FAST_BYTES //p' m.h) -le 4096");
}

/* Emits with a last bank that is too small, and returns the size that the message names; one byte
 * less is refused. */
static long least_of_last_bank(const char *command)
{
    char line[512];
    snprintf(line, sizeof line, "%s --bank slow=64", command);
    Result r = etc(line);
    cr_expect_eq(r.code, 1);
    cr_expect(strstr(r.err, "error: bank 'slow' has 64 bytes but needs "), "%s", r.err);
    cr_expect(strstr(r.err, "note: does not fit: working memory of kernels, "), "%s", r.err);
    const char *at = strstr(r.err, "--bank slow=");
    cr_assert_not_null(at, "%s", r.err);
    const long least = strtol(at + strlen("--bank slow="), NULL, 10);
    snprintf(line, sizeof line, "%s --bank slow=%ld --dry-run", command, least);
    ok(line);
    snprintf(line, sizeof line, "%s --bank slow=%ld --dry-run", command, least - 1);
    fails(line, 1, "would fit");
    return least;
}

Test(commands, banks_that_are_too_small_are_refused)
{
    least_of_last_bank("emit-c $DATA/cnn_digits/model.pt2 -o m.c --bank fast=4K");
    fails("emit-c $DATA/cnn_digits/model.pt2 -o m.c --bank fast=4K --bank slow=64", 1,
          "note: bank 'fast' has 4096 bytes and needs ");
    fails("emit-c $DATA/cnn_digits/model.pt2 -o m.c --bank rom=64:const", 1,
          "bank 'rom' has 64 bytes but needs ");
    fails("emit-c $DATA/cnn_digits/model.pt2 -o m.c --bank a=1M --bank A=2M", 2, "names 'a' twice");
    fails("emit-c $DATA/cnn_digits/model.pt2 -o m.c --bank r=1M:const --weights-as incbin", 2,
          "goes into no bank");
    expect_files("");
}

/* The operand of the product is read most, but a bank of just 1 KiB holds a large value only if it
 * holds nothing else: that is tried if the other bank has no room for the large one. */
Test(commands, the_largest_values_may_be_placed_first)
{
    write_text("s.etir", "program \"m\" stage core\n"
                         "method @forward(%x: f32[16,16], %w: f32[16,16]) {\n"
                         "  %b = aten._softmax.default(%x, 1, false) : f32[16,16]\n"
                         "  %s = aten.sum.dim_IntList(%b, [0], true, dtype=f32) : f32[1,16]\n"
                         "  %h = aten.linear.default(%s, %w, none) : f32[1,16]\n"
                         "  %e = aten._softmax.default(%h, 1, false) : f32[1,16]\n"
                         "  %m = aten.mul.Tensor(%b, %e) : f32[16,16]\n"
                         "  %d = aten._softmax.default(%m, 1, false) : f32[16,16]\n"
                         "  return %d\n}\n");
    const long least = least_of_last_bank("emit-c s.etir -o m.c --share-io --bank fast=1K");
    char line[256];
    ok("emit-c s.etir -o m.c --share-io --bank fast=1K --bank slow=1M");
    snprintf(line, sizeof line, "test $(sed -n 's/^#define M_BANK_SLOW_BYTES //p' m.h) -gt %ld",
             least);
    sh_ok(line);
}

Test(commands, constants_lie_in_sections)
{
    expect_emitted(4, "--bank flash=2K:const --bank ext=1M:const,section=.ext");
    sh_ok("grep -q '^static const float w_.*__attribute__((section(\".ext\"), aligned(16))) = {$' m.c");
    sh_ok("grep -q '^static const float w_[a-z0-9_]*\\[[0-9]*\\] = {$' m.c");
    Result r = ok("emit-c $DATA/cnn_digits/model.pt2 -o m.c --json --bank fast=1M --bank "
                  "ext=1M:const,section=.ext");
    const Json *bank = json_get(json(&r), "banks");
    cr_assert_eq(json_count(bank), 2);
    cr_expect_str_eq(text(item(bank, 1), "name"), "ext");
    cr_expect_eq(number(item(bank, 0), "size"), 1 << 20);
    cr_expect_gt(number(item(bank, 1), "bytes"), 0);
}

Test(commands, emit_c_json_names_its_files)
{
    Result r = ok("emit-c $DATA/linear/model.pt2 -o m.c --main --json");
    const Json *files = json_get(json(&r), "files");
    char want[256] = "";
    for (int i = 0; i < json_count(files); i++) {
        struct stat st;
        cr_assert_eq(stat(text(item(files, i), "path"), &st), 0);
        cr_expect_eq(number(item(files, i), "bytes"), st.st_size);
    }
    char *got = listing();
    cr_expect(strstr(got, "m.c ") && strstr(got, "m.h ") && strstr(got, "m_main.c "), "%s%s", got,
              want);
}

/* -- what they share --------------------------------------------------------------------------- */

Test(commands, verify_takes_inputs)
{
    ok("compile $DATA/mlp_digits/model.pt2 -o a.pte --verify --check-ir");
    ok("compile $DATA/mlp_digits/model.pt2 -o b.pte --verify --input $DATA/mlp_digits/input_0.npy");
    expect_same("a.pte", "b.pte");
    fails("compile $DATA/mlp_digits/model.pt2 -o c.pte --verify --input none.npy", 3, "none.npy");
    fails("compile $DATA/add/model.pt2 -o c.pte --verify --input $DATA/add/input_0.npy", 1,
          "1 inputs given, the model has 2");
    fails("compile $DATA/mlp_digits/model.pt2 -o c.pte --verify --input $DATA/add/input_0.npy", 1,
          "input 0 ('input'): is f32[2,3,4], expected f32[%s31,64]");
    fails("compile $DATA/mlp_digits/model.pt2 -o c.pte --verify --dim s31=1..4 --input "
          "$DATA/mlp_digits/input_0.npy",
          1, "input 0 ('input'): is f32[8,64], expected");
}

/* The inputs on which passes are verified lie within the ranges of sizes. */
Test(commands, verify_keeps_to_the_ranges_of_sizes)
{
    write_text("s.etir", "program \"m\" stage core\nsym %b in 0..0\nsym %n in 2..32\n"
                         "method @forward(%x: f32[%b,2*%n], %y: f32[%n+1,3]) {\n"
                         "  %c = aten.full.default([%n, %b], %b*%n-2*%b, dtype=f32, layout=none, "
                         "device=none, pin_memory=none) : f32[%n,%b]\n"
                         "  %d = aten.neg.default(%y) : f32[%n+1,3]\n  return %c, %d\n}\n");
    ok("compile s.etir -o s.pte --verify --check-ir");
    ok("emit-c s.etir -o s.c --verify --check-ir");
}

/* A size without a bound is told before anything is evaluated. */
Test(commands, verify_wants_bounds_first)
{
    write_text("s.etir", "program \"m\" stage aten\nsym %n in 2..\nmethod @forward(%x: f32[%n]) {\n"
                         "  %r = aten.relu.default(%x) : f32[%n]\n  return %r\n}\n");
    Result r = etc("compile s.etir -o s.pte --verify -v");
    cr_expect_eq(r.code, 1);
    cr_expect_not_null(strstr(r.err, "size %n (x.0) has no upper bound"), "%s", r.err);
    cr_expect_null(strstr(r.err, "canonicalize"), "%s", r.err);
    ok("opt s.etir --passes=canonicalize --verify -o o.etir");
}

Test(commands, faults_have_their_exit_codes)
{
    static const struct {
        Fault fault;
        int code;
    } row[] = {
        {FAULT_MODEL, 1}, {FAULT_IO, 3}, {FAULT_UNSUPPORTED, 4}, {FAULT_GATE, 5}, {FAULT_BUG, 70}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Diag d = {.out = fopen("/dev/null", "w")};
        diag_fault(&d, row[i].fault, (Loc){0}, "x");
        cr_expect_eq(diag_exit_code(&d), row[i].code);
        diag_unsupported(&d, (Loc){0}, "x");
        diag_error(&d, (Loc){0}, "x");
        cr_expect_eq(diag_exit_code(&d), row[i].code == 70 || row[i].code == 3 ? row[i].code : 1);
    }
}
