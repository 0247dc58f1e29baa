/* test_silent.c -- tests that a function which fails without a message is reported by name, and
 * that the run then counts as failed. */
#include "tests/cli/cli.h"

TestSuite(silent, .init = make_folders, .fini = remove_folders);

static const struct {
    const char *part, *arguments, *message;
} row[] = {
    {"import_pt2", "compile $M -o x.pte", "the importer of '"},
    {"schema_check", "check $DATA/linear/model.etir", "the check of stage 'aten' failed"},
    {"infer_linear", "check $M", "the infer rule of 'aten.linear.default' failed"},
    {"pass_dce", "compile $M -o x.pte", "pass 'dce' failed"},
    {"pass_dce", "check --tail c $M", "pass 'dce' failed"},
    {"emit_pte", "compile $M -o x.pte", "the emitter of 'a .pte' failed"},
    {"emit_pte", "run $M --input $DATA/linear/input_0.npy", "the emitter of 'a .pte' failed"},
    {"emit_c", "emit-c $M -o x.c", "the emitter of 'C' failed"},
    {"command_inspect", "inspect $M", "the command 'inspect' failed"},
};

Test(silent, a_failure_without_a_reason_is_told_by_name)
{
    char line[256];
    setenv("M", ROOT "/tests/data/linear/model.pt2", 1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        setenv("SILENT", row[i].part, 1);
        snprintf(line, sizeof line, "\"$ETC\" %s", row[i].arguments);
        Result r = sh(line);
        cr_expect_eq(r.code, 70, "%s: exit %d\n%s", row[i].part, r.code, r.err);
        cr_expect_not_null(strstr(r.err, row[i].message), "%s: %s", row[i].part, r.err);
        cr_expect_not_null(strstr(r.err, "without a reason: this is a fault of etc"), "%s", r.err);
        cr_expect_eq(r.n_out, 0, "%s", r.out);
    }
    setenv("SILENT", "", 1);
    ok("compile -q $M -o x.pte");
    expect_files("x.pte ");
}
