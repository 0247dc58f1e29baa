/* test_mixed.c -- tests `etc quantize` with a budget: which layers stay in floats, and that a file
 * which is compiled with its statistics meets the budget.  Outputs in floats are those of the model
 * before it is quantized. */
#include "tests/cli/cli.h"

TestSuite(mixed, .init = make_folders, .fini = remove_folders);

#define CNN "$DATA/cnn_digits/model.pt2 "
#define SAMPLES "--calibrate $DATA/quantized/cnn_digits_images.npy "

enum { IMAGES = 24, PIXELS = 64, CLASSES = 10 };

/* Runs all samples through the model as it is and through q.pte: outputs go to float/ and out/. */
static void run_both(void)
{
    size_t n;
    char header[256];
    const char *line = "";
    const char *images = arena_printf(arena, "%s/tests/data/quantized/cnn_digits_images.npy", ROOT);
    const float *x = floats(images, header, &n);
    cr_assert_eq(n, IMAGES * PIXELS);
    for (int i = 0; i < IMAGES; i++) {
        write_images(arena_printf(arena, "%d.npy", i), "1, 1, 8, 8", x + i * PIXELS, PIXELS);
        line = arena_printf(arena, "%s%s--input %d.npy", line, i ? " --next " : "", i);
    }
    ok("compile " CNN "-o float.pte -q");
    ok(arena_printf(arena, "run float.pte %s --output-dir float -q", line));
    ok(arena_printf(arena, "run q.pte %s --output-dir out -q", line));
}

static const float *scores(const char *folder, int image)
{
    size_t n;
    char header[256];
    const float *v = floats(arena_printf(arena, "%s/%d/output_0.npy", folder, image), header, &n);
    cr_assert_eq(n, CLASSES);
    return v;
}

static double sqnr_of_outputs(void)
{
    double signal = 0, noise = 0;
    for (int i = 0; i < IMAGES; i++) {
        const float *want = scores("float", i), *got = scores("out", i);
        for (int k = 0; k < CLASSES; k++) {
            const double w = (double)want[k], g = (double)got[k];
            signal += w * w;
            noise += (g - w) * (g - w);
        }
    }
    return 10 * log10(signal / noise);
}

static double largest_error_of_outputs(void)
{
    double most = 0;
    for (int i = 0; i < IMAGES; i++)
        for (int k = 0; k < CLASSES; k++)
            most = fmax(most, fabs((double)scores("out", i)[k] - (double)scores("float", i)[k]));
    return most;
}

static double told(const Result *r, const char *key)
{
    double v = 0;
    cr_assert(json_float(json_get(json(r), key), &v), "%s: %s", key, r->out);
    return v;
}

static double sqnr_told(const Result *r)
{
    return told(r, "sqnr_db");
}

/* -- outputs near those of floats ------------------------------------------------------------- */

/* The recipe that a budget begins with: its builds go by statistics, which have nothing for
 * gptq. */
#define PLAIN "preset: int8\nrules:\n  - {algorithms: [bias_correction], with_samples: []}\n"

/* A recipe can say by hand what was printed of the layers. */
static void expect_one_layer_less_to_be_too_few(double budget)
{
    write_text("plain.yaml", PLAIN);
    write_text("r.yaml", PLAIN
                         "  - scope: {name: conv2d_2}\n"
                         "    activation: float32\n"
                         "    weight: float32\n");
    Result r = ok("quantize " CNN SAMPLES "--recipe r.yaml --statistics less.txt --json -q");
    cr_expect_lt(sqnr_told(&r), budget);
    r = ok("quantize " CNN SAMPLES "--recipe plain.yaml --statistics less.txt --json -q");
    cr_expect_lt(sqnr_told(&r), budget);
}

Test(mixed, a_budget_keeps_the_fewest_layers_in_floats)
{
    Result r = ok("quantize " CNN SAMPLES "--recipe int8 --max-drop sqnr=41 --statistics s.txt "
                  "--json");
    const double sqnr = sqnr_told(&r);
    cr_expect_geq(sqnr, 41);
    cr_expect(strstr(r.err, ": 2 of 7 stay in floats\n  conv2d_2: aten.convolution.default in ") &&
                  strstr(r.err, " 3.0, damage ") && strstr(r.err, "\n  conv2d_1: "),
              "%s", r.err);
    expect_one_layer_less_to_be_too_few(41);
    ok("compile " CNN "--recipe int8 --statistics s.txt -o q.pte -q --verify");
    run_both();
    cr_expect(fabs(sqnr_of_outputs() - sqnr) < 1e-4, "%g, not %g", sqnr_of_outputs(), sqnr);
}

Test(mixed, recipes_and_flags_have_the_same_budgets)
{
    write_text("r.yaml", "preset: int8\nbudget: {metric: sqnr, max_drop: 41}\n");
    ok("quantize " CNN SAMPLES "--recipe r.yaml --statistics a.txt -q");
    ok("quantize " CNN SAMPLES "--recipe mixed --max-drop sqnr=41 --statistics b.txt -q");
    expect_same("a.txt", "b.txt");
    ok("compile " CNN "--recipe r.yaml --statistics a.txt -o a.pte -q");
    ok("compile " CNN "--recipe int8 --statistics b.txt -o b.pte -q");
    expect_same("a.pte", "b.pte");
}

Test(mixed, one_command_makes_the_trials_and_the_build)
{
    ok("quantize " CNN SAMPLES "--recipe mixed --max-drop sqnr=41 --statistics s.txt -q");
    ok("compile " CNN "--recipe mixed --statistics s.txt -o two.pte -q");
    Result r = ok("compile " CNN SAMPLES "--recipe mixed --max-drop sqnr=41 -o one.pte");
    cr_expect(strstr(r.err, ": 2 of 7 stay in floats\n"), "%s", r.err);
    expect_same("one.pte", "two.pte");
    ok("quantize " CNN SAMPLES "--recipe mixed --max-drop sqnr=41 --statistics c.txt --tail c -q");
    ok("emit-c " CNN "--recipe mixed --statistics c.txt -o a.c -q");
    sh("mkdir two; mv a.c a.h two");
    ok("emit-c " CNN SAMPLES "--recipe mixed --max-drop sqnr=41 -o a.c -q");
    expect_same("a.c", "two/a.c");
}

Test(mixed, what_keeps_to_a_budget_stays_quantized)
{
    Result r = ok("quantize " CNN SAMPLES "--recipe mixed --statistics s.txt");
    cr_expect(strstr(r.err, ": 0 of 7 stay in floats\n"), "%s", r.err);
    ok("compile " CNN "--recipe mixed --statistics s.txt -o a.pte -q");
    write_text("plain.yaml", PLAIN);
    ok("compile " CNN SAMPLES "--recipe plain.yaml -o b.pte -q");
    expect_same("a.pte", "b.pte");
}

Test(mixed, no_drop_at_all_leaves_everything_in_floats)
{
    Result r = ok("quantize " CNN SAMPLES "--recipe int8-dynamic --max-drop cosine=0 "
                  "--statistics s.txt");
    cr_expect(strstr(r.err, ": 4 of 4 stay in floats\n"), "%s", r.err); /* those with weights */
    ok("compile " CNN "--recipe int8-dynamic --statistics s.txt -o a.pte -q");
    ok("compile " CNN "-o b.pte -q");
    expect_same("a.pte", "b.pte");
}

/* A user of probabilities asks that none of them moves further than that. */
Test(mixed, a_budget_of_the_largest_error)
{
    Result r = ok("quantize " CNN SAMPLES "--recipe int8-weight --statistics s.txt --json -q");
    const double all = told(&r, "max_abs_error"), budget = all / 4;
    r = ok(arena_printf(arena, "quantize " CNN SAMPLES "--recipe int8-weight --max-drop "
                               "max_abs_error=%.9g --statistics s.txt --json", budget));
    cr_expect(strstr(r.err, "max_abs_error: ") && strstr(r.err, " of 4 stay in floats\n") &&
                  !strstr(r.err, ": 0 of") && !strstr(r.err, ": 4 of"), "%s", r.err);
    const double kept = told(&r, "max_abs_error");
    cr_expect(kept > 0 && kept <= budget, "%g of %g", kept, budget);
    ok("compile " CNN "--recipe int8-weight --statistics s.txt -o q.pte -q");
    run_both();
    cr_expect(fabs(largest_error_of_outputs() / kept - 1) < 1e-6, "%g, not %g",
              largest_error_of_outputs(), kept);
}

/* A network with an answer and a state has a budget for the answer. */
static void write_two_heads(void)
{
    write_text("m.etir", "program \"m\" stage core\n"
                         "const %w = \"w\" : f32[2,2] in \"-\"+0\n"
                         "const %v = \"v\" : f32[2,2] in \"-\"+16\n"
                         "method @forward(%x: f32[1,2]) {\n"
                         "  %l = aten.linear.default(%x, %w, none) : f32[1,2]\n"
                         "  %k = aten.linear.default(%x, %v, none) : f32[1,2]\n"
                         "  return %l, %k\n}\n");
    write_images("side", "4, 2", (const float[]){1.003f, 1, -1, 1, 100, 30.2f, -100, 50.2f}, 8);
    sh("tail -c 32 side > data");
    write_images("x.npy", "1, 2", (const float[]){1, 2}, 2);
}

#define HEADS "quantize m.etir --data data --recipe int8-weight --calibrate x.npy --statistics s.txt "

Test(mixed, a_budget_of_one_output)
{
    write_two_heads();
    Result r = ok(HEADS "--max-drop max_abs_error=0.01");
    cr_expect(strstr(r.err, "max_abs_error: ") && strstr(r.err, ": 1 of 2 stay in floats\n  k: "),
              "%s", r.err);
    r = ok(HEADS "--max-drop max_abs_error:0=0.01 --json");
    cr_expect(strstr(r.err, "max_abs_error:0: ") && strstr(r.err, ": 0 of 2 stay in floats\n"), "%s",
              r.err);
    const Json *each = json_get(json(&r), "outputs");
    cr_assert_eq(json_count(each), 2);
    JsonIter it = json_iter(each);
    double error[2];
    for (int i = 0; json_next(&it) && i < 2; i++)
        cr_assert(json_float(json_get(it.value, "max_abs_error"), &error[i]));
    cr_expect(error[0] > 0 && error[0] < 0.01 && error[1] > 0.01, "%g %g", error[0], error[1]);
    cr_expect_eq(told(&r, "max_abs_error"), error[1]);
    fails(HEADS "--max-drop cosine:2=0.01", 1, "has no output 2: they count from 0, and their number is 2");
    write_text("r.yaml", "preset: int8-weight\n"
                         "budget: {metric: max_abs_error, max_drop: 0.01, output: 1}\n");
    r = ok("quantize m.etir --data data --recipe r.yaml --calibrate x.npy --statistics s.txt");
    cr_expect(strstr(r.err, "max_abs_error:1: ") && strstr(r.err, ": 1 of 2 stay in floats\n"), "%s",
              r.err);
}

/* Rounding with gptq takes the samples, and what a search found comes from its file. */
Test(mixed, a_budget_with_samples_for_the_build)
{
    write_two_heads();
    write_text("r.yaml", "preset: int8-weight\nrules:\n  - {algorithms: [gptq]}\n");
    Result r = ok("quantize " CNN SAMPLES "--recipe r.yaml --max-drop sqnr=48 --statistics s.txt "
                  "--json");
    cr_expect(strstr(r.err, " of 4 stay in floats\n") && !strstr(r.err, ": 0 of"), "%s", r.err);
    fails("compile " CNN "--recipe r.yaml --statistics s.txt -o q.pte", 1, "gptq needs samples");
    ok("compile " CNN SAMPLES "--recipe r.yaml --statistics s.txt -o q.pte -q");
    run_both();
    cr_expect(fabs(sqnr_of_outputs() - sqnr_told(&r)) < 1e-4, "%g, not %g", sqnr_of_outputs(),
              sqnr_told(&r));
    fails("compile m.etir --data data --calibrate x.npy --recipe r.yaml --statistics s.txt -o a.pte",
          1, "was made of another model");
}

/* -- answers as right as those of floats ------------------------------------------------------ */

/* The labels of the samples, which are the first test images. */
static void write_labels(const char *path)
{
    size_t n;
    const char *all = arena_printf(arena, "%s/tests/data/cnn_digits/extra_test_y.npy", ROOT);
    const char *y = slurp(all, &n);
    FILE *f = fopen(path, "wb");
    fprintf(f, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0,
            "{'descr': '<i8', 'fortran_order': False, 'shape': (24,), }");
    fwrite(y + 128, 8, IMAGES, f);
    fclose(f);
}

static int count_right(const char *folder)
{
    size_t n;
    const char *y = slurp("y.npy", &n);
    int right = 0;
    for (int i = 0; i < IMAGES; i++) {
        const float *v = scores(folder, i);
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            best = v[k] > v[best] ? k : best;
        right += y[128 + 8 * i] == best;
    }
    return right;
}

/* Ranges of the middle fifth clip most of what there is to tell digits by. */
Test(mixed, a_budget_of_answers)
{
    write_text("r.yaml", "rules:\n"
                         "  - activation: {dtype: int8, observer: percentile, percentile: 60}\n"
                         "    weight: int8\n");
    write_labels("y.npy");
    ok("compile " CNN SAMPLES "--recipe r.yaml -o q.pte -q");
    run_both();
    const int right = count_right("float");
    cr_expect_lt(count_right("out"), right - 2);
    ok("quantize " CNN SAMPLES "--recipe r.yaml --labels y.npy --max-drop top1=0.05 "
       "--statistics s.txt -q");
    ok("compile " CNN "--recipe r.yaml --statistics s.txt -o q.pte -q");
    sh("rm -r out float");
    run_both();
    cr_expect_geq(count_right("out"), right - 1); /* of 24 */
}

/* -- mistakes --------------------------------------------------------------------------------- */

Test(mixed, budgets_that_are_none)
{
#define FLAGS "quantize " CNN SAMPLES "--recipe int8 --statistics s.txt "
    fails(FLAGS "--max-drop sqrn=41", 2,
          "--max-drop expects top1=, cosine=, sqnr= or max_abs_error= ");
    fails(FLAGS "--max-drop cosine=-1", 2, "not 'cosine=-1'");
    fails(FLAGS "--max-drop cosine=", 2, "not 'cosine='");
    fails(FLAGS "--max-drop cosine", 2, "not 'cosine'");
    fails(FLAGS "--max-drop sqnr=nan", 2, "not 'sqnr=nan'");
    fails(FLAGS "--max-drop cosine=2e6", 2, "not 'cosine=2e6'");
    fails(FLAGS "--max-drop cosine:=1", 2, "not 'cosine:=1'");
    fails(FLAGS "--max-drop cosine:-1=1", 2, "not 'cosine:-1=1'");
    fails(FLAGS "--max-drop cosine:1", 2, "not 'cosine:1'");
    fails(FLAGS "--max-drop top1:1=0", 2, "not 'top1:1=0'");
    expect_files("");
}

Test(mixed, labels_must_fit)
{
    write_images("five.npy", "5", (const float[]){1, 2, 3, 4, 5}, 5);
    fails(FLAGS "--max-drop top1=0 --labels $DATA/cnn_digits/extra_test_y.npy", 1,
          "360 labels for 24 rows");
    fails(FLAGS "--max-drop top1=0", 1, "a budget of top1 needs --labels");
    fails(FLAGS "--max-drop top1=0 --labels five.npy", 1, "is f32[5]: labels are i64[N]");
    fails(FLAGS "--max-drop top1=0 --labels none.npy", 3, "none.npy");
    fails(FLAGS "--max-drop sqnr=9 --labels five.npy", 1, "labels are for a budget of top1");
    fails(FLAGS "--labels five.npy", 1, "labels are for a budget of top1");
    expect_files("five.npy ");
}

Test(mixed, builds_want_a_search_that_was_made)
{
    fails("compile " CNN "--recipe mixed -o a.pte", 1, "has a budget, which needs samples");
    ok("quantize " CNN SAMPLES "--recipe int8 --statistics s.txt -q");
    fails("compile " CNN "--recipe mixed --statistics s.txt -o a.pte", 1, "has a budget");
    expect_files("s.txt ");
}
