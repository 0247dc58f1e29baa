/* test_recipes.c -- tests recipes, samples and the report on the command line.  If one of them is
 * wrong, a message says why, and nothing is written. */
#include "tests/cli/cli.h"

TestSuite(recipes, .init = make_folders, .fini = remove_folders);

#define MODEL "$DATA/cnn_digits/model.pt2 "
#define SAMPLES "--calibrate $DATA/cnn_digits/extra_test_x.npy "

/* -- recipes ----------------------------------------------------------------------------------- */

Test(recipes, mistakes_are_listed_with_line_and_column)
{
    write_text("r.yaml", "rules:\n"
                         "  - scope: {op: convolutoin}\n"
                         "    weight: int9\n"
                         "  - scope: {name: '*'}\n"
                         "    wieght: int8\n");
    Result r = etc("compile " MODEL "--recipe r.yaml -o a.pte");
    cr_expect_eq(r.code, 1);
    static const char *const told[] = {
        "r.yaml:2:17: error: there is no operator 'convolutoin'; did you mean 'convolution'?",
        "r.yaml:3:13: error: 'weight' must be one of float32, float16, int8, int4, not 'int9'",
        "r.yaml:5:5: error: there is no key 'wieght' here; did you mean 'weight'?"};
    for (int i = 0; i < 3; i++)
        cr_expect_not_null(strstr(r.err, told[i]), "%s", r.err);
    fails("compile " MODEL "--recipe int-8 -o a.pte", 1,
          "there is no recipe 'int-8'; did you mean 'int8'?; the presets are int8, ");
    sh(": > empty.yaml; printf '\\357\\273\\277' > mark.yaml");
    fails("compile " MODEL "--recipe empty.yaml -o a.pte", 1, "empty.yaml: error: is empty");
    fails("compile " MODEL "--recipe mark.yaml -o a.pte", 1, "mark.yaml: error: is empty");
    sh("rm empty.yaml mark.yaml");
    fails("compile " MODEL "--recipe none.yaml -o a.pte", 3, "none.yaml: error: ");
    fails("compile " MODEL "--recipe . -o a.pte", 3, "not a regular file");
    expect_files("r.yaml ");
}

Test(recipes, a_scope_that_matches_nothing_is_an_error)
{
    write_text("r.yaml", "preset: int8-weight\n"
                         "rules:\n"
                         "  - scope: {name: conv2d}\n"
                         "    weight: float32\n"
                         "  - scope: {name: conv3d}\n"
                         "    weight: float32\n"
                         "  - scope: {op: embedding}\n"
                         "    weight: float32\n");
    fails("compile " MODEL "--recipe r.yaml -o a.pte", 1,
          "r.yaml:5:5: error: scope matches nothing: the model has no node 'conv3d'; did you mean "
          "'conv2d'?");
    fails("compile " MODEL "--recipe r.yaml -o a.pte", 1,
          "r.yaml:7:5: error: scope matches nothing: the model has no operator 'embedding'\n");
    expect_files("r.yaml ");
}

/* The node that a rule leaves out keeps its floats. */
Test(recipes, a_scope_decides_for_its_nodes)
{
    ok("compile " MODEL "--recipe int8-weight -o all.pte -q");
    write_text("r.yaml", "preset: int8-weight\n"
                         "rules:\n"
                         "  - scope: {name: conv2d}\n"
                         "    weight: float32\n");
    Result all = ok("compile " MODEL "--recipe int8-weight -o a.pte -q --dump-ir after:quantize");
    Result but = ok("compile " MODEL "--recipe r.yaml -o b.pte -q --dump-ir after:quantize");
    cr_expect_not_null(strstr(all.out, "dequantize_per_channel"));
    cr_expect_not_null(strstr(but.out, "dequantize_per_channel"));
    const char *conv = strstr(but.out, "%batch_norm = aten.convolution.default(");
    cr_assert_not_null(conv, "%s", but.out);
    const char *end = strchr(conv, '\n');
    cr_expect_not_null(memmem(conv, (size_t)(end - conv), "weight", 6), "%.*s", (int)(end - conv),
                       conv);
    cr_expect_null(memmem(conv, (size_t)(end - conv), "%conv2d.", 8), "%.*s", (int)(end - conv),
                   conv);
}

/* -- samples ----------------------------------------------------------------------------------- */

Test(recipes, samples_that_do_not_fit_are_told_before_anything_runs)
{
    sh("mkdir set empty; cp $DATA/cnn_digits/input_0.npy set/0.npy; cp $DATA/add/input_0.npy "
       "set/1.npy; head -c 90 set/0.npy > set/2.npy");
    Result r = etc("compile " MODEL "--recipe int8 --calibrate set -o a.pte");
    cr_expect_eq(r.code, 1);
    cr_expect_not_null(strstr(r.err, "set/1.npy: error: is f32["), "%s", r.err);
    cr_expect_not_null(strstr(r.err, "set/2.npy: error: ends within its"), "%s", r.err);
    cr_expect_null(strstr(r.err, "set/0.npy"), "%s", r.err);
    fails("compile " MODEL "--recipe int8 --calibrate empty -o a.pte", 1, "contains no samples");
    fails("compile " MODEL "--recipe int8 --calibrate none -o a.pte", 3, "none: error: cannot be");
    fails("compile $DATA/add/model.pt2 --recipe int8 --calibrate set -o a.pte", 1,
          "is one array, the model has 2 inputs: give a .npz");
    expect_files("empty set ");
}

/* -- the report -------------------------------------------------------------------------------- */

Test(recipes, the_report_ranks_layers)
{
    Result r = ok("quantize " MODEL SAMPLES
                  "--recipe int8 --statistics s.txt --report r.html --json");
    const Json *root = json(&r), *layers = json_get(root, "layers");
    double sqnr, cosine;
    cr_expect_eq(number(root, "samples"), 360);
    cr_expect(json_float(json_get(root, "sqnr_db"), &sqnr) && sqnr > 25 && sqnr < 80, "%g", sqnr);
    cr_expect(json_float(json_get(root, "cosine"), &cosine) && cosine > 0.99);
    cr_expect_lt(number(root, "bytes_after") * 3, number(root, "bytes_before"));
    int n = json_count(layers), n_ranked = 0;
    cr_assert_geq(n, 4);
    for (int i = 0; i < n; i++) {
        cr_expect_not_null(json_string(json_get(item(layers, i), "source")));
        for (int k = 0; k < n; k++)
            n_ranked += number(item(layers, k), "rank") == i + 1;
    }
    cr_expect_eq(n_ranked, n);
    size_t len;
    char *page = slurp("r.html", &len);
    cr_expect_not_null(strstr(page, "<b>conv2d_1</b>"));
    cr_expect_null(strstr(page, "http"));
    ok("quantize " MODEL SAMPLES "--recipe int8 --statistics s.txt --report r.json -q");
    cr_expect_str_eq(slurp("r.json", &len), r.out);
    ok("quantize " MODEL SAMPLES "--recipe int4-group32 --statistics s.txt --report r.html -q");
    expect_files("r.html r.json s.txt ");
}

Test(recipes, a_report_that_cannot_be_written_leaves_no_statistics)
{
    fails("quantize " MODEL SAMPLES "--recipe int8 --statistics s.txt --report no/r.html", 3,
          "no/r.html: error: cannot write");
    fails("quantize " MODEL SAMPLES "--recipe int8 --statistics s.txt --report r.txt", 2,
          "ends in .html or .json");
    fails("quantize " MODEL SAMPLES "--recipe int8 --statistics s.json --report s.json", 2,
          "is the name of two outputs");
    sh("cp $DATA/cnn_digits/input_0.npy x.html");
    fails("quantize " MODEL "--calibrate x.html --recipe int8 --statistics s --report x.html", 2,
          "'x.html' is read");
    expect_files("x.html ");
}
