/* test_gate.c -- tests `etc gate`, which compares the numbers of a .pte with those of an earlier
 * one. */
#include "tests/cli/cli.h"

TestSuite(gate, .init = make_folders, .fini = remove_folders);

/* one.pte, and more.pte with one kernel more; both plan 96 bytes. */
static void make_files(void)
{
    static const char text[] = "program \"p\" stage aten\nmethod @forward(%%x: f32[2,4]) {\n"
                               "  %%a = aten.relu.default(%%x) : f32[2,4]\n%s  return %%%s\n}\n";
    write_text("one.etir", arena_printf(arena, text, "", "a"));
    write_text("more.etir", arena_printf(arena, text, "  %b = aten.tanh.default(%a) : f32[2,4]\n", "b"));
    ok("compile one.etir -o one.pte -q");
    ok("compile more.etir -o more.pte -q");
}

static const Json *find(const Json *x, const char *name)
{
    for (JsonIter it = json_iter(json_get(x, "numbers")); json_next(&it);)
        if (!strcmp(text(it.value, "name"), name))
            return it.value;
    cr_assert_fail("no number %s", name);
    return NULL;
}

Test(gate, a_file_holds_its_own_baseline)
{
    make_files();
    Result r = ok("gate one.pte --baseline b.json --write-baseline --json");
    const Json *x = json(&r);
    cr_expect_not_null(strstr(r.out, "\"was\": null"), "%s", r.out);
    cr_expect_eq(number(find(x, "forward.delegates"), "is"), 0);
    r = ok("gate one.pte --baseline b.json --json");
    x = json(&r);
    cr_expect_eq(number(find(x, "forward.kernel_calls"), "is"), 1);
    cr_expect_eq(number(find(x, "forward.delegated_percent"), "is"), 0);
    cr_expect_eq(number(find(x, "forward.delegates"), "was"), 0);
    struct stat st;
    cr_assert_eq(stat("one.pte", &st), 0);
    cr_expect_eq(number(find(x, "bytes"), "is"), st.st_size);
    sh("cp b.json a.json");
    ok("gate one.pte --baseline b.json --write-baseline -q");
    expect_same("a.json", "b.json");
}

Test(gate, a_baseline_may_come_from_a_pipe)
{
    make_files();
    sh_ok("\"$ETC\" gate one.pte --baseline - --write-baseline -q > b.json");
    sh_ok("cat b.json | \"$ETC\" gate one.pte --baseline -");
    Result r = sh("cat b.json | \"$ETC\" gate more.pte --baseline -");
    cr_expect_eq(r.code, 5);
    fails("gate one.pte --baseline -", 1, "-: error: is empty, expected JSON\n");
    cr_expect_null(strstr(etc("gate one.pte --baseline -").err, "--write-baseline"));
}

Test(gate, names_the_first_number_that_got_worse)
{
    make_files();
    ok("gate one.pte --baseline b.json --write-baseline -q");
    fails("gate more.pte --baseline b.json -q", 5, "more.pte: error: bytes: is ");
    fails("gate more.pte --baseline b.json -q", 5, "note: forward.kernel_calls: is 2, was 1, may be at most 1");
    Result r = etc("gate more.pte --baseline b.json --json");
    cr_expect_eq(r.code, 5);
    cr_expect_str_eq(text(json(&r), "first"), "bytes");
    ok("gate more.pte --baseline m.json --write-baseline -q");
    ok("gate one.pte --baseline m.json");
}

/* A kernel more takes more by the cost model, whatever the machine does. */
Test(gate, holds_time_to_a_budget)
{
    make_files();
    ok("compile one.etir -o one.pte --json > one.json");
    ok("compile more.etir -o more.pte --json > more.json");
    ok("gate one.pte --baseline b.json --write-baseline --compiled one.json --runs 3 -q");
    write_text("t.yaml", "bytes: 100%\nkernel_calls: 9\nseconds: 100000%\n");
    Result r = etc("gate more.pte --baseline b.json --compiled more.json --runs 3 --tolerances t.yaml --json");
    cr_expect_eq(r.code, 5);
    cr_expect_str_eq(text(json(&r), "first"), "predicted_seconds");
    double is = 0, was = 0;
    json_float(json_get(find(json(&r), "seconds"), "is"), &is);
    json_float(json_get(find(json(&r), "seconds"), "was"), &was);
    cr_expect(is > 0 && was > 0 && is < 60);
    write_text("t.yaml", "bytes: 100%\nkernel_calls: 9\nseconds: 100000%\npredicted_seconds: 300%\n");
    ok("gate more.pte --baseline b.json --compiled more.json --runs 3 --tolerances t.yaml");
    fails("gate one.pte --baseline b.json --compiled one.json -q", 5, "(--runs N measures it)");
    fails("gate one.pte --baseline b.json -q", 5, "(--compiled FILE.json adds it)");
    fails("gate one.pte --baseline b.json --compiled b.json -q", 1, "not what etc compile --json writes");
    sh("sed -i 's/\"seconds\": [^ ,]*/\"seconds\": 1e-12/' b.json");
    fails("gate one.pte --baseline b.json --compiled one.json --runs 3 -q", 5, "error: seconds: is ");
}

Test(gate, tolerances_are_numbers_or_percentages)
{
    make_files();
    ok("gate one.pte --baseline b.json --write-baseline -q");
    write_text("t.yaml", "bytes: 200%\narena: 1000\nkernel_calls: 0\nforward.kernel_calls: 1\n");
    ok("gate more.pte --baseline b.json --tolerances t.yaml");
    write_text("t.yaml", "forward.kernel_calls: 0\nbytes: 200%\narena: 1000\nkernel_calls: 1\n");
    fails("gate more.pte --baseline b.json --tolerances t.yaml -q", 5, "error: forward.kernel_calls");
    write_text("t.yaml", "bites: 1\n");
    fails("gate one.pte --baseline b.json --tolerances t.yaml", 1, "did you mean 'bytes'");
    write_text("t.yaml", "bytes: few\narena: [1]\n");
    fails("gate one.pte --baseline b.json --tolerances t.yaml", 1, "a number or a percentage");
}

Test(gate, delegation_of_official_files)
{
    ok("gate $DATA/official_pte/off_qcx.pte --baseline b.json --write-baseline -q");
    Result r = ok("gate $DATA/official_pte/off_qcx.pte --baseline b.json --json");
    cr_expect_eq(number(find(json(&r), "forward.delegates"), "is"), 2);
    r = ok("inspect $DATA/official_pte/off_qcx.pte --json");
    const Json *m = item(json_get(json(&r), "methods"), 0);
    int64_t nodes = 0, n;
    for (JsonIter it = json_iter(json_get(m, "blobs")); json_next(&it);)
        for (JsonIter of = json_iter(json_get(it.value, "nodes")); json_next(&of);)
            nodes += json_int(of.value, &n) ? n : 0;
    r = ok("gate $DATA/official_pte/off_qcx.pte --baseline b.json --json");
    double percent = 0;
    cr_assert(json_float(json_get(find(json(&r), "forward.delegated_percent"), "is"), &percent));
    cr_expect_float_eq(percent, 100.0 * (double)nodes / (double)(nodes + 1), 1e-9);
}

Test(gate, accuracy_is_what_verify_told)
{
    make_files();
    sh("\"$ETC\" verify one.pte --model one.etir --json > v.json");
    ok("gate one.pte --baseline b.json --write-baseline -q --verified v.json");
    ok("gate one.pte --baseline b.json --verified v.json");
    fails("gate one.pte --baseline b.json -q", 5, "is not known any more (--verified");
    sh("\"$ETC\" verify one.pte --model more.etir --json > w.json");
    fails("gate one.pte --baseline b.json --verified w.json -q", 5, "error: output_0.max_abs");
    write_text("labels.json", "{\"outputs\": [], \"labels\": {\"rows\": 4, \"model\": 4, \"file\": 3}}");
    Result r = etc("gate one.pte --baseline b.json --verified labels.json --json");
    double share = 0;
    cr_assert(json_float(json_get(find(json(&r), "accuracy"), "is"), &share));
    cr_expect_eq(share, 0.75);
}

Test(gate, refuses_what_it_cannot_read)
{
    make_files();
    fails("gate one.pte", 2, "--baseline is missing");
    fails("gate one.etir --baseline b.json", 1, "is not a .pte");
    fails("gate one.pte --baseline none.json", 3, "none.json");
    fails("gate one.pte --baseline none.json", 3, "note: --write-baseline makes it");
    write_text("b.json", "{\"numbers\": {\"bytes\": \"many\"}}");
    fails("gate one.pte --baseline b.json", 1, "'bytes' is not a number");
    write_text("b.json", "{\"schema\": 1}");
    fails("gate one.pte --baseline b.json", 1, "has no 'numbers'");
    write_text("b.json", "{\"numbers\": {\"bytes\": 1");
    fails("gate one.pte --baseline b.json", 1, "b.json");
    fails("gate one.pte --baseline one.pte --write-baseline", 3, "one.pte");
    fails("gate one.pte --baseline b.json --write-baseline --tolerances t.yaml", 2, "compares nothing");
}
