/* test_disks.c -- tests files that cannot be read or written: on file systems that are read-only or
 * full, and in folders of other users.  The message must name the file, the exit code must be 3,
 * and no partly written file may be left. */
#include "tests/cli/cli.h"

TestSuite(disks, .init = make_folders, .fini = remove_folders, .timeout = 300);

#define ADD "$DATA/add/model.pt2 "
#define MLP "$DATA/mlp_digits/model.pt2 "
#define SAMPLE "$DATA/quantized/mlp_digits_calibration.npy "
#define INT8 "--recipe int8 --calibrate " SAMPLE
#define INPUT "--input $DATA/mlp_digits/input_0.npy "

/* Runs etc with a file system on "disk", and lists what is there in the end. */
static Result on_disk(const char *options, const char *arguments)
{
    char line[1024];
    snprintf(line, sizeof line,
             "unshare -m sh -c 'mount -t tmpfs -o %s none disk && { \"$ETC\" %s; code=$?; "
             "ls -A disk; exit $code; }'", options, arguments);
    return sh(line);
}

/* For commands that need files: those of an earlier run, and a list. */
static void make_files(void)
{
    if (sh("mkdir disk && unshare -m mount -t tmpfs none disk").code != 0)
        cr_skip_test("no file system can be mounted here");
    ok("compile " MLP "-o m.pte --refittable -q");
    sh("echo \"models: [$DATA/add/model.pt2]\" > l.yaml; mkdir out");
}

/* As many bytes, and as many files, as do not suffice. */
Test(disks, that_are_full_or_closed_hold_nothing)
{
    char options[32];
    make_files();
    Result r = on_disk("ro", "compile " ADD "-o disk/x");
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "disk/x: error: cannot write: Read-only file system"), "%s",
                       r.err);
    r = on_disk("size=64k", "emit-c " MLP "-o disk/x.c --main");
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "error: cannot write: No space left"), "%s", r.err);
    cr_expect_str_empty(r.out);
    for (int n = 2; n < 24 && r.code; n++) {
        snprintf(options, sizeof options, "nr_inodes=%d", n);
        r = on_disk(options, "emit-c " ADD "-o disk/x.c --main -q");
        cr_expect(r.code == 3 ? !r.n_out && strstr(r.err, "cannot write: No space left") : !r.code,
                  "%s: exit %d\n%s%s", options, r.code, r.out, r.err);
    }
    cr_expect_str_eq(r.out, "x.c\nx.h\nx_avx2.c\nx_avx512.c\nx_main.c\n");
}

/* Each kind of output of each command; the names that "disk" holds where there is room. */
static const struct {
    const char *arguments, *all;
} output[] = {
    {"compile " MLP "-o disk/x -MD", "x\nx.d\n"},
    {"compile " MLP "-o disk/x --report disk/r.html --debug-map disk/m.json",
     "m.json\nr.html\nx\n"},
    {"compile $DATA/cnn_digits/model.pt2 -o disk/x --dump-data disk/d", "d\nx\n"},
    {"compile " MLP "-o disk/x --bundle " SAMPLE, "x\n"},
    {"emit-c " MLP "-o disk/x.c --main --weights-as incbin -MD",
     "x.c\nx.c.d\nx.h\nx_avx2.c\nx_avx512.c\nx_main.c\nx_weights.S\nx_weights.S.bin\n"},
    {"emit-c " ADD "-o x.c --report disk/r.svg", "r.svg\n"},
    {"quantize " MLP INT8 " --statistics disk/s --report disk/r.json", "r.json\ns\n"},
    {"refit m.pte --weights " MLP "-o disk/n.pte", "n.pte\n"},
    {"run " MLP INPUT "--output-dir disk/o --etdump disk/e", "e\no\n"},
    {"runtime m.pte -o disk/rt", "rt\n"},
    {"runtime m.pte -o disk", "CMakeLists.txt\nMakefile\nmeson.build\nruntime-lite\n"},
    {"gate m.pte --baseline disk/b.json --write-baseline", "b.json\n"},
    {"bench m.pte --runs 1 --trace disk/t.json", "t.json\n"},
    {"opt " ADD "--passes=dce -o disk/x.etir", "x.etir\n"},
    {"batch l.yaml -o disk/out", "out\n"},
    {"batch l.yaml -o out --junit disk/j.xml", "j.xml\n"},
    {"batch l.yaml -o out --report disk/b.html", "b.html\n"},
    {"batch l.yaml -o out --ninja disk/b.ninja", "b.ninja\n"},
};

/* Batches print a line for each model in any case; folders that they made stay. */
Test(disks, of_each_kind_of_output_have_all_or_nothing)
{
    make_files();
    for (size_t i = 0; i < sizeof output / sizeof *output; i++) {
        const char *arguments = output[i].arguments;
        Result r = on_disk("ro", arguments);
        cr_expect_eq(r.code, 3, "etc %s: exit %d\n%s", arguments, r.code, r.err);
        cr_expect_not_null(strstr(r.err, "Read-only file system"), "etc %s: %s", arguments, r.err);
        cr_expect_not_null(strstr(r.err, "disk"), "etc %s: no name in %s", arguments, r.err);
        r = on_disk("nr_inodes=1", arguments);
        cr_expect_eq(r.code, 3, "etc %s: exit %d\n%s", arguments, r.code, r.err);
        cr_expect_not_null(strstr(r.err, "No space left"), "etc %s: %s", arguments, r.err);
        cr_expect(strstr(arguments, "batch") || !r.n_out, "etc %s: left %s", arguments, r.out);
        r = on_disk("size=4k", arguments);
        if (r.code) {
            cr_expect_eq(r.code, 3, "etc %s: exit %d\n%s", arguments, r.code, r.err);
            cr_expect(strstr(arguments, "batch") || !r.n_out, "etc %s: left %s", arguments, r.out);
        }
        r = on_disk("size=8m", arguments);
        cr_expect_eq(r.code, 0, "etc %s: exit %d\n%s", arguments, r.code, r.err);
        cr_expect_not_null(strstr(r.out, output[i].all), "etc %s: %s", arguments, r.out);
    }
}

/* The C compiler finds no room, and nothing of it is left. */
Test(disks, may_hold_the_temporary_folder)
{
    make_files();
    ok("emit-c " ADD "-o a.c --main -q");
    setenv("TMPDIR", "disk", 1);
    Result r = on_disk("ro", "verify a.c --model " ADD);
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "Read-only file system"), "%s", r.err);
    r = on_disk("size=16k", "verify a.c --model " ADD);
    cr_expect_eq(r.code, 1);
    cr_expect_not_null(strstr(r.err, "the C compiler fails"), "%s", r.err);
    cr_expect_str_empty(r.out);
}

/* -- files of others --------------------------------------------------------------------------- */

/* Runs a command as a user who owns nothing, whom permissions hold; writes to "theirs". */
static Result as_other(const char *arguments)
{
    char line[1024];
    snprintf(line, sizeof line, "setpriv --reuid=65534 --clear-groups \"$ETC\" %s", arguments);
    return sh(line);
}

static void need_other_user(void)
{
    if (geteuid() || as_other("--version").code != 0)
        cr_skip_test("no other user can run etc here");
    sh_ok("chmod 755 .; mkdir theirs; chmod 1777 theirs");
}

Test(disks, files_of_others_are_not_replaced)
{
    const char *arguments = "emit-c " ADD "-o theirs/x.c";
    need_other_user();
    sh_ok("echo kept > theirs/x.h");
    Result r = as_other(arguments);
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "theirs/x.h: error: cannot write: it is another user's"), "%s",
                       r.err);
    cr_expect_str_eq(sh("ls -A theirs; cat theirs/x.h").out, "x.h\nkept\n");
    sh_ok("chown 65534 theirs/x.h");
    cr_expect_eq(as_other(arguments).code, 0);
}

/* A command and its message: of a file, a sample among others, a folder, a link to itself. */
static const char *const unreadable[][2] = {
    {"compile shut -o theirs/x", "shut: error: cannot be read: Permission denied"},
    {"compile " MLP "--recipe shut -o theirs/x", "shut: error: cannot be read: Perm"},
    {"compile " MLP "--recipe int8 --calibrate samples -o theirs/x", "samples/b.npy: error: canno"},
    {"compile " MLP "--recipe int8 --calibrate closed -o theirs/x", "closed: error: cannot be rea"},
    {"compile " MLP "--recipe int8 --statistics shut -o theirs/x", "shut: error: cannot be read: "},
    {"compile " MLP "--ops shut -o theirs/x", "shut: error: cannot be read: Permission denied"},
    {"compile model -o theirs/x", "model/data/weights/weight_0: error: cannot be read: Permission"},
    {"compile loop -o theirs/x", "loop: error: cannot be read: Too many levels of symbolic links"},
    {"compile " MLP "-o closed/x", "closed/x: error: cannot write: Permission denied"},
    {"run " MLP "--input shut --output-dir theirs/o", "shut: error: cannot be read: Permission"},
    {"run " MLP INPUT "--output-dir o", "o: error: cannot be made a folder: Permission denied"},
    {"runtime shut -o theirs/r", "shut: error: cannot be read: Permission denied"},
    {"refit shut --weights " MLP "-o theirs/x", "shut: error: cannot be read: Permission denied"},
    {"refit m.pte --weights shut -o theirs/x", "shut: error: cannot be read: Permission denied"},
    {"verify m.pte --model shut", "shut: error: cannot be read: Permission denied"},
    {"gate m.pte --baseline shut", "shut: error: cannot be read: Permission denied"},
    {"doctor m.pte --manifest shut", "shut: error: cannot be read: Permission denied"},
    {"key shut", "shut: error: cannot be read: Permission denied"},
    {"batch shut -o theirs/o", "shut: error: cannot be read: Permission denied"},
    {"batch l.yaml -o closed/o", "closed/o: error: cannot be made a folder: Permission denied"},
};

Test(disks, files_that_cannot_be_read_are_named)
{
    need_other_user();
    ok("compile " MLP "-o m.pte --refittable -q");
    sh_ok("cp m.pte shut; mkdir samples closed;"
          "cp " SAMPLE "samples/a.npy; cp " SAMPLE "samples/b.npy;"
          "ln -s loop loop; python3 -m zipfile -e $DATA/linear/model.pt2 .;"
          "chmod 600 shut samples/b.npy model/data/weights/weight_0; chmod 700 closed;"
          "echo 'models: [shut]' > l.yaml");
    for (size_t i = 0; i < sizeof unreadable / sizeof *unreadable; i++) {
        Result r = as_other(unreadable[i][0]);
        cr_expect_eq(r.code, 3, "etc %s: exit %d", unreadable[i][0], r.code);
        cr_expect_not_null(strstr(r.err, unreadable[i][1]), "etc %s: no '%s' in\n%s",
                           unreadable[i][0], unreadable[i][1], r.err);
        cr_expect_str_empty(sh("ls -A theirs").out, "etc %s", unreadable[i][0]);
    }
}

/* One entry that cannot be read does not stop the others. */
Test(disks, a_batch_goes_on_behind_files_that_cannot_be_read)
{
    need_other_user();
    sh_ok("cp $DATA/add/model.pt2 add.pt2; cp add.pt2 shut.pt2; chmod 600 shut.pt2;"
          "echo 'models: [shut.pt2, add.pt2, none.pt2]' > l.yaml");
    Result r = as_other("batch l.yaml -o theirs/o");
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "shut.pt2: error: cannot be read: Permission"), "%s", r.err);
    cr_expect_not_null(strstr(r.err, "none.pt2: error: cannot be read: No such file"), "%s", r.err);
    cr_expect_str_eq(sh("ls theirs/o").out, "add.pte\n");
    cr_expect_not_null(strstr(r.err, "3 models: 1 written, 0 unchanged, 2 failed"), "%s", r.err);
    sh_ok("echo 'models: [add.pt2]' > l.yaml");
    r = as_other("batch l.yaml -o theirs/o");
    cr_expect_not_null(strstr(r.err, "1 model: 0 written, 1 unchanged, 0 failed"), "%s", r.err);
}
