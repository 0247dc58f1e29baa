/* test_messages.c -- tests --error-format, which prints the same messages for people, as JSON, for
 * GitHub and as SARIF. */
#include "tests/cli/cli.h"

TestSuite(messages, .init = make_folders, .fini = remove_folders);

/* Two operators that there are not, one with a line of source, and a name to be escaped. */
#define NAME "a,b:100%.etir"

static void make_model(void)
{
    write_text(NAME, "program \"m\" stage aten\n"
                     "method @forward(%x: f32[2]) {\n"
                     "  %a = aten.relu.default(%y) : f32[2]\n"
                     "  return %a\n}\n");
}

static Result told(const char *format, int code)
{
    char line[256];
    make_model();
    snprintf(line, sizeof line, "check '%s' --error-format %s", NAME, format);
    Result r = etc(line);
    cr_assert_eq(r.code, code, "%s: exit %d\n%s", line, r.code, r.err);
    cr_assert_eq(r.n_out, 0);
    return r;
}

/* Standard error must be JSON: a line, or all. */
static const Json *parsed(const char *s, size_t n)
{
    static Diag d;
    d.out = stderr;
    cr_assert(json_parse(arena, "stderr", (const uint8_t *)s, n, &d, &doc), "%s", s);
    return doc.root;
}

Test(messages, people_read_them_as_ever)
{
    cr_expect_not_null(strstr(told("human", 1).err, NAME ":3:"));
    make_model();
    cr_expect_str_eq(told("human", 1).err, etc("check '" NAME "'").err);
}

Test(messages, json_is_an_object_a_line)
{
    Result r = told("json", 1);
    const Json *m = parsed(r.err, strcspn(r.err, "\n"));
    cr_expect_str_eq(text(m, "kind"), "error");
    cr_expect_str_eq(text(m, "fault"), "model");
    cr_expect_str_eq(text(m, "file"), NAME);
    cr_expect_eq(number(m, "line"), 3);
    cr_expect_not_null(strstr(text(m, "message"), "%y"), "%s", r.err);
}

Test(messages, github_commands_escape_what_ends_them)
{
    Result r = told("github", 1);
    cr_expect_not_null(strstr(r.err, "::error title=etc,file=a%2Cb%3A100%25.etir,line=3::"), "%s",
                       r.err);
    cr_expect_not_null(strstr(r.err, "%25y"), "%s", r.err);
}

Test(messages, sarif_is_one_document)
{
    Result r = told("sarif", 1);
    const Json *run = item(json_get(parsed(r.err, r.n_err), "runs"), 0);
    const Json *m = item(json_get(run, "results"), 0);
    const Json *at = json_get(item(json_get(m, "locations"), 0), "physicalLocation");
    cr_expect_str_eq(text(m, "level"), "error");
    cr_expect_str_eq(text(json_get(at, "artifactLocation"), "uri"), "a%2Cb%3A100%25.etir");
    cr_expect_eq(number(json_get(at, "region"), "startLine"), 3);
    cr_expect_str_eq(text(json_get(json_get(run, "tool"), "driver"), "name") , "etc");
}

Test(messages, notes_belong_to_the_message_before)
{
    Result r = etc("check $DATA/add/model.pt2 --dim q=1..2 --error-format sarif");
    const Json *results = json_get(item(json_get(parsed(r.err, r.n_err), "runs"), 0), "results");
    cr_expect_eq(json_count(results), 1);
    const char *t = text(json_get(item(results, 0), "message"), "text");
    cr_expect_not_null(strstr(t, "\nthe model has"), "%s", t);
}

Test(messages, success_says_nothing_but_sarif_is_whole)
{
    cr_expect_eq(ok("check $DATA/add/model.pt2 --error-format json").n_err, 0);
    cr_expect_eq(ok("check $DATA/add/model.pt2 --error-format github").n_err, 0);
    Result r = ok("check $DATA/add/model.pt2 --error-format sarif");
    cr_expect_not_null(parsed(r.err, r.n_err));
}

Test(messages, wrong_usage_is_a_message)
{
    Result r = etc("compile --nonsense --error-format=json");
    cr_expect_eq(r.code, 2);
    cr_expect_str_eq(text(parsed(r.err, r.n_err - 1), "fault"), "usage");
    fails("check x --error-format xml", 2, "--error-format expects human|json|github|sarif, not 'xml'");
    fails("check x -v --error-format json", 2, "cannot be combined");
}
