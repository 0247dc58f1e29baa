/* test_same.c -- the same input and flags give the same bytes: under another locale, with and
 * without address randomisation, from another folder to another name, in another environment. */
#include "tests/cli/cli.h"
#include <locale.h>

TestSuite(same, .init = make_folders, .fini = remove_folders);

static const char *const commands[] = {
    "compile -q \"$M/model.pt2\" -o %s.pte",
    "emit-c -q \"$M/model.pt2\" -o %s.c --main",
    "opt \"$M/model.pt2\" --passes=resolve_views,functionalize,decompose,canonicalize -o %s.etir",
    "run \"$M/model.pt2\" --input \"$M/input_0.npy\" --output-dir %s.out -q",
    "inspect \"$M/model.pt2\" --json > %s.json",
};
enum { N_COMMANDS_RUN = sizeof commands / sizeof *commands };

static const char *const models[] = {"cnn_digits", "tiny_kws_dscnn", "softmax"};

/* A locale with a comma for the decimal point where the machine has one. */
static const char *other_locale(void)
{
    static const char *const name[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (setlocale(LC_ALL, name[i])) {
            setlocale(LC_ALL, "C");
            return name[i];
        }
    return "C.UTF-8";
}

/* All commands in folder `dir`, each after `before`; one checksum line per file left there. */
static char *sums(const char *dir, const char *before)
{
    char line[2048];
    snprintf(line, sizeof line, "mkdir -p '%s'", dir);
    cr_assert_eq(sh(line).code, 0);
    for (int i = 0; i < N_COMMANDS_RUN; i++) {
        char command[512];
        snprintf(command, sizeof command, commands[i], "m");
        snprintf(line, sizeof line, "cd '%s' && %s \"$ETC\" %s", dir, before, command);
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

Test(same, bytes_do_not_depend_on_surroundings)
{
    char locale[128];
    snprintf(locale, sizeof locale, "env LC_ALL=%s LANG=%s", other_locale(), other_locale());
    bool fixed = sh("setarch -R true").code == 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[512];
        snprintf(path, sizeof path, ROOT "/tests/data/%s", models[i]);
        setenv("M", path, 1);
        char *want = sums("a", "env LC_ALL=C");
        cr_assert(strstr(want, "m.pte") && strstr(want, "m.c\n") && strstr(want, "output_0.npy"),
                  "%s", want);
        expect_equal(want, "b", locale);
        expect_equal(want, "some/where/else \xc3\xa4", "env");
        expect_equal(want, "c", fixed ? "setarch -R" : "env");
        expect_equal(want, "d",
                     "env -i TZ=Asia/Tokyo HOME=/nowhere TMPDIR=/nowhere NO_COLOR=1 M=\"$M\"");
        cr_assert_eq(sh("rm -rf a b c d some").code, 0);
    }
}
