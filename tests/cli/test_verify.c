/* test_verify.c -- tests `etc verify`, and `etc diff` with a .pte, which compare a finished file
 * with a model.  Torch says how many digits the model recognizes (347 of 360); the other numbers
 * are computed by hand. */
#include "tests/cli/cli.h"

TestSuite(verify, .init = make_folders, .fini = remove_folders);

#define PLUS(name, number) \
    "program \"" name "\" stage aten\nmethod @forward(%x: f32[2,4]) {\n" \
    "  %y = aten.mul.Scalar(%x, 1) : f32[2,4]\n" \
    "  %z = aten.add.Scalar(%x, " number ", 1) : f32[2,4]\n  return %y, %z\n}\n"

/* shift.pte adds 1.5 where one.etir adds 1. */
static void make_files(void)
{
    write_text("one.etir", PLUS("one", "1"));
    write_text("shift.etir", PLUS("shift", "1.5"));
    ok("compile one.etir -o one.pte -q");
    ok("compile shift.etir -o shift.pte -q");
    write_images("x.npy", "2, 4", (const float[]){0, 3, -1, 2, 5, 0, 0, 1}, 8);
}

static double real(const Json *object, const char *key)
{
    double v = NAN;
    cr_assert(json_float(json_get(object, key), &v), "no number '%s'", key);
    return v;
}

Test(verify, a_file_is_as_its_model)
{
    make_files();
    Result r = ok("verify one.pte --model one.etir --json");
    cr_expect_str_eq(text(json(&r), "inputs"), "made up");
    r = ok("verify one.pte --model one.etir --input x.npy --next --input x.npy --json");
    const Json *x = json(&r), *out = item(json_get(x, "outputs"), 1);
    cr_expect_eq(number(x, "samples"), 2);
    cr_expect_eq(number(out, "elements"), 16);
    cr_expect_eq(number(out, "differ"), 0);
    cr_expect_eq(number(out, "rows"), 4);
    cr_expect_eq(number(out, "top1_agree"), 4);
    cr_expect_eq(ok("verify one.pte --model one.etir -q").n_out, 0);
}

Test(verify, tells_how_far_a_file_is_off)
{
    make_files();
    Result r = etc("verify shift.pte --model one.etir --input x.npy --json");
    const Json *x = json(&r), *out = item(json_get(x, "outputs"), 1), *at = json_get(x, "first");
    cr_expect_eq(r.code, 5);
    cr_expect_not_null(strstr(r.err, "output 1 of call 0, element 0 is 1.5 instead of 1"), "%s",
                       r.err);
    cr_expect_eq(number(at, "output"), 1);
    cr_expect_eq(real(at, "is"), 1.5);
    cr_expect_eq(real(out, "max_abs"), 0.5);
    /* 10 log10((1+16+0+9+36+1+1+4) / (8 * 0.25)) */
    cr_expect_float_eq(real(out, "sqnr_db"), 15.3148, 1e-3);
    r = etc("verify shift.pte --model one.etir --input x.npy");
    cr_expect_not_null(strstr(r.out, "shift.pte compared with 'one.etir' on 1 sample (--input)"),
                       "%s", r.out);
    cr_expect_not_null(strstr(r.out, "output 1: max abs 0.5"), "%s", r.out);
    cr_expect_not_null(strstr(r.err, "note: a quantized file always differs"), "%s", r.err);
    ok("verify shift.pte --model one.etir --atol 0.6");
}

Test(verify, a_budget_stands_for_tolerances)
{
    make_files();
#define SHIFT "verify shift.pte --model one.etir --input x.npy -q "
    ok(SHIFT "--max-drop max_abs_error=0.5");
    ok(SHIFT "--max-drop max_abs_error:0=0");
    ok(SHIFT "--max-drop sqnr=15");
    ok(SHIFT "--max-drop top1=0");
    fails(SHIFT "--max-drop max_abs_error=0.4", 5, "output 1: max_abs_error is off by 0.5");
    fails(SHIFT "--max-drop sqnr:1=16", 5, "asks for at least 16");
    fails(SHIFT "--max-drop cosine:2=0.1", 1, "has no output 2: they count from 0");
}

/* No measure passes for good because a number is none. */
Test(verify, nan_holds_no_budget)
{
    static const char *const budget[] = {"sqnr=-0", "cosine=0.9", "max_abs_error=1e6"};
    char line[128];
    make_files();
    write_text("nan.etir", PLUS("nan", "nan"));
    ok("compile nan.etir -o nan.pte -q");
    fails("verify nan.pte --model one.etir -q", 5, "is nan");
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "verify nan.pte --model one.etir -q --max-drop %s", budget[i]);
        fails(line, 5, "where --max-drop asks for");
    }
    ok("verify nan.pte --model nan.etir -q");
}

Test(verify, counts_what_labels_say)
{
    sh("mkdir d; cp $DATA/mlp_digits/extra_test_x.npy d/; mkdir c;"
       "cp $DATA/quantized/mlp_digits_calibration.npy c/");
    ok("compile $DATA/mlp_digits/model.pt2 --recipe int8 --calibrate c -o q.pte -q");
#define DIGITS "verify q.pte --model $DATA/mlp_digits/model.pt2 --calibrate d "
    Result r = ok(DIGITS "--labels $DATA/mlp_digits/extra_test_y.npy --max-drop top1=0.02 --json");
    const Json *labels = json_get(json(&r), "labels");
    cr_expect_eq(number(labels, "rows"), 360);
    cr_expect_eq(number(labels, "model"), 347);
    cr_expect_geq(number(labels, "file"), 340);
    fails(DIGITS "-q", 5, "differs from");
    fails("verify q.pte --model $DATA/mlp_digits/model.pt2 --labels $DATA/mlp_digits/extra_test_y.npy -q",
          1, "360 labels for");
}

Test(verify, state_goes_on)
{
    write_text("c.etir", "program \"c\" stage aten\n"
                         "mutable %total = \"total\" : f32[2] in \"-\"+0\n"
                         "method @forward(%x: f32[2]) {\n"
                         "  %add = aten.add.Tensor(%total, %x, alpha=1) : f32[2]\n"
                         "  update %total = %add\n  return %add\n}\n");
    sh("printf '\\0\\0\\0\\0\\0\\0\\200\\77' > side");
    write_images("v.npy", "2,", (const float[]){1, -2}, 2);
    ok("compile c.etir --data side -o c.pte -q");
    ok("verify c.pte --model c.etir --data side --input v.npy --next --input v.npy");
}

/* -- emitted C --------------------------------------------------------------------------------- */

static void prepare_c(void)
{
    watch_builds();
    make_files();
    ok("emit-c one.etir -o one.c --main -q");
    ok("emit-c shift.etir -o shift.c --main -q");
}

Test(verify, c_is_as_its_model)
{
    prepare_c();
    ok("verify one.c --model one.etir -q");
    Result r = ok("verify one.c --model one.etir --input x.npy --next --input x.npy --json");
    const Json *out = item(json_get(json(&r), "outputs"), 1);
    cr_expect_eq(number(json(&r), "samples"), 2);
    cr_expect_eq(number(out, "elements"), 16);
    cr_expect_eq(number(out, "differ"), 0);
    r = etc("verify shift.c --model one.etir --input x.npy --json");
    cr_expect_eq(r.code, 5);
    cr_expect_not_null(strstr(r.err, "output 1 of call 0, element 0 is 1.5 instead of 1"), "%s",
                       r.err);
    no_folder_is_left();
}

/* More samples than one run of the program takes; the weights are a file of their own. */
Test(verify, c_runs_all_samples)
{
    prepare_c();
    ok("emit-c $DATA/cnn_digits/model.pt2 -o m.c --main -q --weights-as incbin");
    sh("mkdir d && cp $DATA/cnn_digits/extra_test_x.npy d/");
    Result r = ok("verify m.c --model $DATA/cnn_digits/model.pt2 --calibrate d --json");
    cr_expect_eq(number(json(&r), "samples"), 360);
    cr_expect_eq(number(item(json_get(json(&r), "outputs"), 0), "top1_agree"), 360);
    no_folder_is_left();
}

Test(verify, c_keeps_state_and_takes_numbers)
{
    prepare_c();
    make_counter();
    ok("emit-c c.etir --data side -o c.c --main -q");
    ok("verify c.c --model c.etir --data side -q");
    Result r = ok("verify c.c --model c.etir --data side --input v.npy --input value:3 --input w.npy "
                  "--next --input v.npy --input value:3 --input v.npy --json");
    cr_expect_eq(number(item(json_get(json(&r), "outputs"), 1), "elements"), 5);
}

Test(verify, tells_what_stops_c)
{
    prepare_c();
    fails("verify none.c --model one.etir", 3, "emit-c --main writes both");
    sh("rm shift_main.c");
    fails("verify shift.c --model one.etir", 3, "shift_main.c: error: is not there");
    setenv("CC", "no-such-compiler -x", 1);
    fails("verify one.c --model one.etir", 3, "no-such-compiler, cannot be run");
    unsetenv("CC");
    setenv("CFLAGS", "-Dfloat=oops", 1);
    fails("verify one.c --model one.etir", 1, "the C compiler fails with exit code 1\n  note: ");
    setenv("CFLAGS", "-O0", 1);
    fails("verify one.c --model $DATA/mlp_digits/model.pt2", 1, "the program fails with exit code 1");
    sh("echo '__attribute__((constructor)) static void stop_it(void) { abort(); }' >> one_main.c");
    fails("verify one.c --model one.etir", 1, "the program was ended by signal 6");
    sh("echo '__attribute__((constructor)) static void first(void) { (void)kill(getpid(), 4); }' "
       "> x && cat one_main.c >> x && (echo '#define _GNU_SOURCE'; echo '#include <signal.h>'; "
       "echo '#include <unistd.h>'; cat x) > one_main.c");
    fails("verify one.c --model one.etir", 1, "this machine lacks instructions");
    setenv("TMPDIR", "/nowhere", 1);
    fails("verify one.c --model one.etir", 3, "cannot be made a folder");
    no_folder_is_left();
}

Test(verify, diff_takes_a_pte)
{
    make_files();
    Result r = ok("diff one.etir one.pte --json");
    cr_expect_str_eq(text(json(&r), "file"), "one.pte");
    ok("diff one.pte one.etir");
    cr_expect_eq(etc("diff one.etir shift.pte").code, 5);
    fails("diff one.pte shift.pte", 1, "one has to be a model");
}

Test(verify, refuses_what_does_not_belong_together)
{
    make_files();
    fails("verify one.pte", 2, "--model is missing");
    fails("verify one.pte --model one.etir --input x.npy --calibrate d", 2, "one or the other");
    fails("verify one.etir --model one.etir", 1, "is neither .pte nor .c");
    fails("verify one.pte --model one.pte", 1, "already compiled");
    fails("verify one.pte --model $DATA/add/model.pt2", 1, "inputs: 1, outputs: 2, where '");
    fails("verify one.pte --model none.pt2", 3, "none.pt2");
    write_images("y.npy", "3, 4", (const float[12]){0}, 12);
    fails("verify one.pte --model one.etir --input y.npy", 1, "expected f32[2,4]");
}
