/* test_diff.c -- tests `etc diff` on small programs whose differences are computed by hand: a
 * factor of 0.75 in the place of 0.5 changes a value by half of A's value, which is 20 * log10(2) =
 * 6.02 dB less. */
#include "tests/cli/cli.h"

TestSuite(diff, .init = make_folders, .fini = remove_folders);

#define HEAD "program \"a\" stage core\n"
#define HALF                                                                                 \
    HEAD "sym %n in 1..8\n"                                                                  \
         "method @forward(%x: f32[%n,4]) {\n"                                                \
         "  %h = aten.mul.Tensor(%x, 0.5) : f32[%n,4] from \"enc\", \"net.py:3\"\n"          \
         "  %r = aten.relu.default(%h) : f32[%n,4] from \"enc.act\", \"net.py:4\"\n"         \
         "  %y = aten.neg.default(%r) : f32[%n,4]\n"                                         \
         "  return %y\n}\n"

/* a.etir, and b.etir: the same after a sed. */
static void two_texts(const char *a, const char *edit)
{
    char line[256];
    write_text("a.etir", a);
    snprintf(line, sizeof line, "sed '%s' a.etir > b.etir", edit);
    cr_assert_eq(sh(line).code, 0);
}

Test(diff, a_program_is_as_itself)
{
    two_texts(HALF, "");
    Result r = ok("diff a.etir b.etir --atol 0 --rtol 0");
    cr_expect_not_null(strstr(r.err, "0 of 2 outputs"), "%s", r.err); /* two sizes of %n */
    cr_expect_not_null(strstr(r.err, "0 of 6 nodes by name"), "%s", r.err);
    cr_expect_null(strstr(r.out, "relu"), "%s", r.out);
    cr_expect_not_null(strstr(r.out, "output 0"), "%s", r.out);
    r = ok("diff a.etir b.etir --all -q");
    cr_expect_not_null(strstr(r.out, "aten.relu.default, enc.act, net.py:4"), "%s", r.out);
    cr_expect_eq(r.n_err, 0, "%s", r.err);
}

Test(diff, the_first_node_is_named_with_its_source)
{
    two_texts(HALF, "s/0\\.5/0.75/; s/%y/%z/");
    Result r = etc("diff a.etir b.etir");
    cr_expect_eq(r.code, 5, "%d", r.code);
    cr_expect_not_null(strstr(r.err, "first node 'h' (aten.mul.Tensor, enc, net.py:3)"), "%s",
                       r.err);
    cr_expect_not_null(strstr(r.err, "2 of 2 outputs"), "%s", r.err);
    cr_expect_not_null(strstr(r.err, "4 of 4 nodes by name, 2 of 2 by order"), "%s", r.err);
    cr_expect_not_null(strstr(r.out, "y ~ z"), "%s", r.out);
    cr_expect_not_null(strstr(r.out, "6.0 dB"), "%s", r.out);
    ok("diff a.etir b.etir --rtol 0.5");
    fails("diff a.etir b.etir --rtol 0.49 -q --json > o", 5, "first node 'h'");
}

Test(diff, json_holds_every_pair)
{
    two_texts(HALF, "s/0\\.5/0.75/");
    Result r = etc("diff a.etir b.etir --json --rtol 0.1 --atol 0");
    cr_expect_eq(r.code, 5);
    const Json *root = json(&r), *call = item(json_get(root, "calls"), 0);
    bool same = true;
    cr_expect(json_bool(json_get(root, "same"), &same) && !same);
    cr_expect_str_eq(text(root, "first"), "h");
    const Json *h = item(json_get(call, "nodes"), 0), *y = item(json_get(call, "nodes"), 2);
    double v = 0;
    cr_expect_str_eq(text(h, "module"), "enc");
    cr_expect_str_eq(text(h, "source"), "net.py:3");
    cr_expect_str_eq(text(h, "by"), "name");
    cr_expect_str_eq(text(y, "op"), "aten.neg.default");
    cr_expect(json_float(json_get(h, "max_rel"), &v) && fabs(v - 0.5) < 1e-6, "%g", v);
    cr_expect(json_float(json_get(h, "sqnr_db"), &v) && fabs(v - 6.0206) < 1e-3, "%g", v);
    cr_expect(json_bool(json_get(item(json_get(call, "outputs"), 0), "same"), &same) && !same);
}

/* A difference that no output shows is one in a node of that name, and none in a guessed pair. */
Test(diff, only_named_pairs_decide)
{
    const char *text = HEAD "method @forward(%x: f32[4]) {\n"
                            "  %a = aten.mul.Tensor(%x, 2.0) : f32[4]\n"
                            "  %y = aten.sub.Tensor(%a, %a, 1) : f32[4]\n  return %y\n}\n";
    two_texts(text, "s/2\\.0/3.0/");
    fails("diff a.etir b.etir > o", 5, "0 of 1 outputs, 0 of 0 updates, 1 of 2 nodes by name");
    two_texts(text, "s/2\\.0/3.0/; s/%a/%b/g");
    Result r = ok("diff a.etir b.etir");
    cr_expect_not_null(strstr(r.out, "a ~ b"), "%s", r.out);
    cr_expect_not_null(strstr(r.err, "0 of 1 nodes by name, 1 of 1 by order"), "%s", r.err);
}

/* The second call doubles what the first left: 1, 2, and in B 1, 3. */
Test(diff, state_carries_over)
{
    two_texts(HEAD "mutable %s = \"s\" : f32[1] in \"-\"+0\n"
                   "method @forward(%x: f32[1]) {\n"
                   "  %t = aten.add.Tensor(%s, %s, 1) : f32[1]\n"
                   "  %y = aten.mul.Tensor(%x, %s) : f32[1]\n"
                   "  update %s = %t\n  return %y\n}\n",
              "s/%s, %s, 1/%s, %s, 2/");
    cr_assert_eq(sh("printf '\\0\\0\\200?' > side").code, 0);
    Result r = etc("diff a.etir b.etir --data side --json");
    cr_expect_eq(r.code, 5);
    const Json *call = item(json_get(json(&r), "calls"), 0);
    bool same = false;
    cr_expect(json_bool(json_get(item(json_get(call, "outputs"), 0), "same"), &same) && same);
    cr_expect(json_bool(json_get(item(json_get(call, "updates"), 0), "same"), &same) && !same);
    write_text("x.py", "import numpy\nnumpy.save('x.npy', numpy.ones(1, numpy.float32))\n");
    cr_assert_eq(sh("python3 x.py").code, 0);
    r = etc("diff a.etir b.etir --data side --input x.npy --next --input x.npy --json");
    call = item(json_get(json(&r), "calls"), 1);
    double v = 0;
    const Json *y = item(json_get(call, "outputs"), 0);
    cr_expect(json_float(json_get(y, "max_abs"), &v) && v == 1, "%g", v);
    cr_expect(json_float(json_get(y, "max_rel"), &v) && v == 0.5, "%g", v);
}

Test(diff, an_export_is_as_its_planned_text)
{
    sh("\"$ETC\" compile -q $DATA/cnn_digits/model.pt2 -o a.pte --dump-ir=after:check_plan "
       "--dump-data side > a.etir");
    sh("\"$ETC\" emit-c -q $DATA/cnn_digits/model.pt2 -o c.c --dump-ir=after:check_plan "
       "--dump-data cside > c.etir");
    const char *end = "--weights $DATA/cnn_digits/model.pt2";
    char line[256];
    snprintf(line, sizeof line, "diff $DATA/cnn_digits/model.pt2 a.etir --data side %s", end);
    Result r = ok(line);
    cr_expect_not_null(strstr(r.err, "0 of 8 nodes by name"), "%s", r.err);
    snprintf(line, sizeof line,
             "diff a.etir c.etir --data side --data-b cside %s --atol 0 --rtol 0", end);
    ok(line);
}

/* A plan whose places overlap too long shows in the node that reads what was overwritten. */
Test(diff, a_planned_text_runs_in_its_memory)
{
    two_texts("program \"p\" stage planned\n"
              "method @forward(%x: f32[4] at in:0) pools[32] {\n"
              "  %a = aten.neg.default(%x) : f32[4] at 1:0\n"
              "  %b = aten.abs.default(%x) : f32[4] at 1:16\n"
              "  %y = aten.sub.Tensor(%a, %b, 1) : f32[4] at out:0\n"
              "  return %y\n}\n",
              "s/1:16/1:0/");
    fails("diff a.etir b.etir > o", 5, "first node 'y'");
}

Test(diff, what_cannot_be_compared_is_told)
{
    two_texts(HALF, "s/%n in 1..8/%n in 5..8/");
    fails("diff a.etir b.etir", 1, "is f32[1,4], expected f32[%n,4]");
    two_texts(HALF, "s/return %y/return %y, %r/");
    fails("diff a.etir b.etir", 1, "has 1 outputs, 'b.etir' has 2");
    fails("diff a.etir b.etir --weights-b $DATA/none.pt2", 3, "none.pt2");
    fails("diff $DATA/add/model.pt2 $DATA/add/model.pt2 --data a.etir", 1, "neither model is one");
    fails("diff a.etir", 2, "two models are expected");
    fails("diff a.etir b.etir b.etir", 2, "one at a time");
    fails("diff a.etir b.etir --atol x", 2, "expects a number from 0 on");
    fails("diff a.etir b.etir --rtol=-1", 2, "expects a number from 0 on");
    fails("diff a.etir $DATA/add/model.etir", 1, "inputs");
    fails("diff $DATA/add/model.pt2 x.pte", 3, "x.pte");
}
