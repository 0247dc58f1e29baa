/* test_hostile.c -- tests names of files, weights, modules, methods and operators that contain
 * control characters.  Wherever etc prints them, the only control character in the output is the
 * line feed. */
#include "tests/cli/cli.h"
#include "ir/escape.h"

TestSuite(hostile, .init = make_folders, .fini = remove_folders);

/* Clears the screen, sets a title, returns, turns the line round; as C1 controls too. */
#define BAD "\\x1b[2J\\x1b]0;t\\x07\\x0d\\xc2\\x9b2J\\x9b2J\\xe2\\x80\\xae<b>\\\"\\x0a*/ #"
#define BAD_FILE "h\033[2J\a\r\x9b\xe2\x80\xae<b>'\".etir"

static const char model[] =
    "program \"" BAD "\" stage core\n"
    "sym %n in 1..9\n"
    "guard 2*%n in ..18 \"" BAD "\"\n"
    "const %w = \"" BAD "\" : f32[3,3] in \"-\"+0\n"
    "method @forward(%x: f32[%n,3], %s: none = \"" BAD "\") {\n"
    "  %y = aten.linear.default(%x, %w, none) : f32[%n,3] from \"" BAD "\", \"" BAD "\"\n"
    "  %z = aten.erf.default(%y) : f32[%n,3] from \"" BAD "\", \"" BAD "\"\n"
    "  return %z\n}\n";

/* Each line is as it would be shown. */
static void expect_plain(const char *what, const char *text, size_t n)
{
    cr_expect_eq(strlen(text), n, "%s: a NUL", what);
    for (char *copy = arena_str(arena, text, n), *line = strtok(copy, "\n"); line;
         line = strtok(NULL, "\n"))
        cr_expect_str_eq(escape(arena, ESCAPE_TERMINAL, line), line, "%s prints raw: %s", what,
                         escape(arena, ESCAPE_TERMINAL, line));
}

static Result plain(int code, const char *arguments)
{
    Result r = etc(arguments);
    cr_expect_eq(r.code, code, "etc %s: exit %d\n%s", arguments, r.code, r.err);
    expect_plain(arguments, r.out, r.n_out);
    expect_plain(arguments, r.err, r.n_err);
    return r;
}

static void expect_plain_file(const char *path)
{
    size_t n;
    const char *text = slurp(path, &n);
    cr_expect_gt(n, 100, "%s", path);
    expect_plain(path, text, n);
}

static void write_model(void)
{
    write_text(BAD_FILE, model);
    write_text("d", "every byte of a weight is one of these 36 .");
}

static const Json *plain_json(const char *arguments)
{
    Result r = plain(0, arguments);
    return json(&r);
}

Test(hostile, names_of_a_model_are_printed_plain)
{
    write_model();
    Result r = plain(0, "inspect h*.etir");
    cr_expect_not_null(strstr(r.out, "h\\x1b[2J\\x07\\x0d\\x9b\\u202e<b>"), "%s", r.out);
    plain(0, "check h*.etir --data d");
    plain(0, "compile h*.etir --data d -o m.pte -v --dump-ir all --report r.html");
    plain(0, "compile h*.etir --data d -o m.pte --report r.svg");
    plain(0, "partition h*.etir --data d --backend xnnpack -v");
    sh("cp h*.etir m2.etir");
    plain(0, "diff h*.etir m2.etir --data d --all");
    plain(0, "opt h*.etir --passes=cse");
    plain(0, "bench m.pte --runs 1 --warmup 0");
    plain(0, "bench h*.etir --data d --runs 1 --warmup 0 --all");
    expect_plain_file("r.html");
    expect_plain_file("r.svg");
}

Test(hostile, json_holds_names_as_they_are)
{
    const char *bad = "\033[2J\033]0;t\a\r\xc2\x9b" "2J\xef\xbf\xbd" "2J\xe2\x80\xae<b>\"\n*/ #";
    write_model();
    plain_json("inspect h*.etir --json");
    plain_json("check h*.etir --data d --json");
    plain_json("compile h*.etir --data d -o m.pte --json");
    const Json *j = plain_json("partition h*.etir --data d --backend xnnpack --json");
    cr_expect_str_eq(text(item(json_get(j, "rejected"), 0), "module"), bad);
}

Test(hostile, emitted_c_is_ascii)
{
    size_t n;
    write_model();
    plain(0, "emit-c h*.etir --data d -o m.c --main");
    cr_assert_eq(sh("cc -std=c99 -Wall -Wextra -Wpedantic -Werror -o m m.c m_main.c -lm").code, 0);
    cr_expect_eq(sh("cat m.c m.h m_main.c > all").code, 0);
    for (const char *c = slurp("all", &n); *c; c++)
        cr_assert(*c == '\n' || (*c >= ' ' && *c < 127), "emitted C holds %.40s", c);
}

Test(hostile, messages_are_plain)
{
    write_model();
    write_text("bad.etir", "program \"m\" stage core\nmethod @f(%x: f32[2]) {\n"
                           "  %y = aten.neg.default(%x) \033[2J\xc2\x9b : f32[2]\n  return %y\n}\n");
    plain(1, "check h*.etir"); /* names the bytes that are not at hand */
    plain(1, "check bad.etir");
    plain(3, "inspect \"$(printf 'no\\033[2J\\202')\"");
    plain(2, "inspect \"$(printf -- '--no\\033[2J\\202')\"");
    plain(3, "compile h*.etir --data d -o \"$(printf 'no\\033[2J/m.pte')\"");
    plain(1, "run h*.etir --data d --input \"$(printf 'value:\\033[2J')\"");
}

/* Puts `to` in the place of the first `from` of a file; both are of one length. */
static void patch(const char *path, const char *from, const char *to)
{
    size_t n, len = strlen(from);
    char *bytes = slurp(path, &n), *at = memmem(bytes, n, from, len);
    cr_assert(at && strlen(to) == len, "%s has no '%s'", path, from);
    memcpy(at, to, len);
    FILE *f = fopen(path, "wb");
    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

Test(hostile, names_of_a_pte_are_printed_plain)
{
    ok("compile $DATA/add/model.pt2 -o m.pte -q");
    patch("m.pte", "aten::add", "\033[2J\a\xc2\x9b\xe2\x80");
    patch("m.pte", "forward", "\xe2\x80\xae\r\n\033c");
    plain(0, "inspect m.pte");
    plain_json("inspect m.pte --json");
    Result r = plain(4, "run m.pte --input $DATA/add/input_0.npy --input $DATA/add/input_1.npy");
    cr_expect_not_null(strstr(r.err, "\\x1b[2J\\x07\\u009b\\xe2\\x80.out"), "%s", r.err);
    plain(1, "run m.pte --method x");
}
