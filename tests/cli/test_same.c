/* test_same.c -- tests that the same input and flags give the same bytes: in another locale, with
 * and without address randomisation, from another folder, under another name and in another
 * environment. */
#include "tests/cli/cli.h"

TestSuite(same, .init = make_folders, .fini = remove_folders);

static const char *const commands[] = {
    "compile -q \"$M/model.pt2\" -o m.pte",
    ("compile -q \"$M/model.pt2\" -o x.pte --backend xnnpack "
     "--recipe int4-group32 --report m.svg"),
    "emit-c -q \"$M/model.pt2\" -o m.c --main",
    "emit-c -q \"$M/model.pt2\" -o \"$PWD/i.c\" --weights-as incbin",
    "opt \"$M/model.pt2\" --passes=resolve_views,functionalize,decompose,canonicalize -o m.etir",
    "run \"$M/model.pt2\" --input \"$M/input_0.npy\" --output-dir m.out -q",
    "inspect \"$M/model.pt2\" --json > m.json",
};
enum { N_COMMANDS_RUN = sizeof commands / sizeof *commands };

static const char *const models[] = {"cnn_digits", "tiny_kws_dscnn", "softmax"};

/* All commands in folder `dir`, each after `before`; one checksum line per file left there. */
static char *sums(const char *dir, const char *before)
{
    char line[2048];
    snprintf(line, sizeof line, "mkdir -p '%s'", dir);
    cr_assert_eq(sh(line).code, 0);
    for (int i = 0; i < N_COMMANDS_RUN; i++) {
        snprintf(line, sizeof line, "cd '%s' && %s \"$ETC\" %s", dir, before, commands[i]);
        Result r = sh(line);
        cr_assert_eq(r.code, 0, "%s: exit %d\n%s", line, r.code, r.err);
    }
    snprintf(line, sizeof line, "cd '%s' && find . -type f | LC_ALL=C sort | xargs cksum", dir);
    return sh(line).out;
}

static void expect_equal(const char *want, const char *dir, const char *before)
{
    char *got = sums(dir, before);
    cr_expect_str_eq(got, want, "%s, %s:\n%sexpected\n%s", dir, before, got, want);
}

static void choose_model(size_t i)
{
    char path[512];
    snprintf(path, sizeof path, ROOT "/tests/data/%s", models[i]);
    setenv("M", path, 1);
}

/* A locale made here, with a comma for the decimal point. */
Test(same, bytes_do_not_depend_on_the_locale)
{
    if (sh("localedef -i de_DE -f ISO-8859-1 \"$PWD/de_DE\"").code != 0)
        cr_skip_test("localedef makes no locale here");
    char german[256];
    snprintf(german, sizeof german, "env LOCPATH=%s LC_ALL=de_DE", home);
    Result r = sh("LOCPATH=$PWD LC_ALL=de_DE locale decimal_point");
    cr_assert_str_eq(r.out, ",\n", "%s", r.err);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        choose_model(i);
        expect_equal(sums("a", "env LC_ALL=C"), "b", german);
        cr_assert_eq(sh("rm -rf a b").code, 0);
    }
}

Test(same, bytes_do_not_depend_on_surroundings)
{
    bool fixed = sh("setarch -R true").code == 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        choose_model(i);
        char *want = sums("a", "env LC_ALL=C");
        cr_assert(strstr(want, "m.pte") && strstr(want, "m.c\n") && strstr(want, "output_0.npy"),
                  "%s", want);
        expect_equal(want, "some/where/else \xc3\xa4", "env");
        expect_equal(want, "c", fixed ? "setarch -R" : "env");
        expect_equal(want, "d",
                     "env -i TZ=Asia/Tokyo HOME=/nowhere TMPDIR=/nowhere NO_COLOR=1 M=\"$M\" "
                     "ASAN_OPTIONS=\"$ASAN_OPTIONS\"");
        cr_assert_eq(sh("rm -rf a c d some").code, 0);
    }
}
