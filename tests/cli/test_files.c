/* test_files.c -- tests the files that a run reads and writes: under any of its names, an output
 * must be neither an input nor another output, and the outputs of several runs must not mix. */
#include "tests/cli/cli.h"
#include <fcntl.h>
#include <signal.h>

TestSuite(files, .init = make_folders, .fini = remove_folders, .timeout = 120);

#define ADD "$DATA/add/model.pt2 "
#define MLP "$DATA/mlp_digits/model.pt2 "
#define SAMPLE "$DATA/quantized/mlp_digits_calibration.npy "
#define UNPACK "python3 -m zipfile -e $DATA/linear/model.pt2 . "

/* -- clashes ----------------------------------------------------------------------------------- */

static const struct {
    const char *make, *arguments;
    int code;          /* 2 where the command line alone shows it */
    const char *names; /* both, as the message has them */
} clash[] = {
    {UNPACK, "compile model -o model/models/model.json", 3, "'model/models/model.json' is read"},
    {UNPACK, "compile model -o model/data/weights/weight_0", 3,
     "'model/data/weights/weight_0' is read"},
    {UNPACK, "compile model -o x --dump-data model/data/weights/weight_0", 3,
     "'model/data/weights/weight_0' is read"},
    {UNPACK, "compile model/models/model.json -o ./model/data/weights/weight_0", 3,
     "'./model/data/weights/weight_0' is the file 'model/data/weights/weight_0'"},
    {UNPACK "; mv model/data d", "compile model --weights-dir d -o d/weights/weight_0", 3,
     "'d/weights/weight_0' is read"},
    {UNPACK "; cp $DATA/linear/model.etir .",
     "compile model.etir --weights model -o model/data/weights/weight_0", 3,
     "'model/data/weights/weight_0' is read"},
    {"cp " ADD "foo.h", "emit-c foo.h -o foo.c", 3, "'foo.h' is read"},
    {"cp " ADD "m; ln m foo.h", "emit-c m -o foo.c", 3, "'foo.h' is the file 'm', which is read"},
    {"cp " ADD "foo_main.c", "emit-c foo_main.c -o foo.c --main", 3, "'foo_main.c' is read"},
    {"cp " MLP "m_weights.S.bin", "emit-c m_weights.S.bin -o m.c --weights-as incbin", 3,
     "'m_weights.S.bin' is read"},
    {"cp " ADD "x.pte.d", "compile x.pte.d -o x.pte -MD", 2, "'x.pte.d' is read"},
    {"cp " ADD "x.d; ln -s x.d x.pte.d", "compile x.d -o x.pte -MD", 2,
     "'x.pte.d' is the file 'x.d', which is read"},
    {"mkdir c; cp " SAMPLE "c/a.npy", "compile " MLP "--recipe int8 --calibrate c -o c/a.npy", 3,
     "'c/a.npy' is read"},
    {"mkdir c; cp " SAMPLE "c/a.npy; ln -s c d",
     "quantize " MLP "--recipe int8 --calibrate c --statistics d/a.npy", 3,
     "'d/a.npy' is the file 'c/a.npy', which is read"},
    {"cp " SAMPLE "s.part.npy; ln s.part.npy s.part",
     "quantize " MLP "--recipe int8 --calibrate s.part.npy --statistics s", 2,
     "'s.part' is the file 's.part.npy'"},
    {"cp $DATA/mlp_digits/input_0.npy output_0.npy",
     "run " MLP "--input output_0.npy --output-dir .", 3,
     "'./output_0.npy' is the file 'output_0.npy', which is read"},
    {"cp " MLP "output_0.npy",
     "run output_0.npy --input $DATA/mlp_digits/input_0.npy --output-dir .", 3,
     "'./output_0.npy' is the file 'output_0.npy', which is read"},
    {"cp $DATA/add/model.etir m", "opt - --passes=dce -o m < m", 2,
     "'m' is the file '/dev/stdin', which is read"},
    {"cp $DATA/linear/input_0.npy l.npy; echo x > l.html; ln l.npy l.json",
     "quantize " MLP "--recipe int8 --calibrate " SAMPLE
     "--max-drop top1=0 --labels l.npy --statistics s --report l.json",
     2, "'l.json' is the file 'l.npy', which is read"},
    {"cp $DATA/linear/input_0.npy x.npy",
     "bench $DATA/linear/model.pt2 --input x.npy --trace x.npy", 2, "'x.npy' is read"},
    {":", "compile none.pt2 -o ./none.pt2", 2, "'./none.pt2' is the file 'none.pt2', which is read"},
    /* two outputs */
    {":", "compile " ADD "-o x --dump-data ./x", 2, "'x' and './x' are the same file"},
    {"mkdir d; ln -s d e", "compile " ADD "-o d/x --dump-data e/x", 2,
     "'d/x' and 'e/x' are the same file"},
    {": > x; ln x y", "compile " ADD "-o x --dump-data y", 2, "'x' and 'y' are the same file"},
    {": > x; ln -s x y.svg", "compile " ADD "-o x --report y.svg", 2,
     "'x' and 'y.svg' are the same file"},
    {":", "compile " ADD "-o x -MD --dump-data x.d", 2, "'x.d' is the name of two outputs"},
    {":", "emit-c " ADD "-o x.c --dump-data x.h", 3, "'x.h' is the name of two outputs"},
    {":", "emit-c " ADD "-o x.c --main --dump-data ./x_main.c", 3,
     "'./x_main.c' and 'x_main.c' are the same file"},
    {":", "quantize " MLP "--recipe int8 --calibrate " SAMPLE
          "--statistics s.json --report ./s.json", 2, "'s.json' and './s.json' are the same file"},
};

/* Returns the name and checksum of every file below. */
static const char *state_of_folder(void)
{
    return sh("find . -type f -exec cksum {} + | sort").out;
}

Test(files, no_output_is_an_input_or_another_output)
{
    for (size_t i = 0; i < sizeof clash / sizeof *clash; i++) {
        cr_assert_eq(sh(clash[i].make).code, 0, "%s", clash[i].make);
        const char *before = state_of_folder();
        fails(clash[i].arguments, clash[i].code, clash[i].names);
        const char *after = state_of_folder();
        cr_expect_str_eq(after, before, "etc %s changed\n%s\nto\n%s", clash[i].arguments, before,
                         after);
        sh("rm -rf ./*");
    }
}

/* Files that are not there yet are told apart by their folders; devices are as many files as one
 * likes. */
Test(files, other_outputs_are_no_clash)
{
    sh("mkdir d");
    ok("compile " ADD "-o x --dump-data d/x --report y.svg -MD -q");
    ok("compile " ADD "-o /dev/null --dump-data /dev/null -q");
    ok("compile " ADD "-o /dev/stdout -q > y");
    expect_same("x", "y");
    ok("compile " ADD "-o x --dump-data d/x --report y.svg -MD -q"); /* all are there */
    ok("compile " ADD "--recipe int8-weight -o int8-weight -q");
    ok("compile " ADD "--recipe int8-weight -o int8-weight -q"); /* the name of a preset reads no file */
    sh("rm int8-weight");
    sh("ln -s x z");
    ok("compile " ADD "-o z -q");
    expect_same("x", "y");
    expect_files("d x x.d y y.svg z ");
}

/* -- depfiles ---------------------------------------------------------------------------------- */

static void expect_depfile(const char *path, const char *want)
{
    size_t n;
    char *got = slurp(path, &n);
    for (char *at = got; (at = strstr(at, ROOT "/tests/data"));) /* shorter */
        memmove(at, at + strlen(ROOT "/tests/"), strlen(at + strlen(ROOT "/tests/")) + 1);
    cr_expect_str_eq(got, want, "%s is\n%s", path, got);
}

Test(files, a_depfile_names_all_that_was_read)
{
    sh(UNPACK "; mkdir c; cp " SAMPLE "c/a.npy; cp " SAMPLE "c/b.npy; echo 'preset: int8' > r.yaml");
    ok("compile model -o l -MD -q");
    expect_depfile("l.d", "l: \\\n model/archive_format \\\n model/archive_version \\\n"
                          " model/byteorder \\\n model/models/model.json \\\n"
                          " model/data/weights/model_weights_config.json \\\n"
                          " model/data/weights/weight_0 \\\n model/data/weights/weight_1\n");
    ok("compile " MLP "--recipe r.yaml --calibrate c -o m -MD -q");
    expect_depfile("m.d", "m: \\\n data/mlp_digits/model.pt2 \\\n r.yaml \\\n c/a.npy \\\n"
                          " c/b.npy\n");
    ok("quantize " MLP "--recipe r.yaml --calibrate c --statistics s -q");
    ok("compile " MLP "--recipe r.yaml --statistics s -o m -MD -q");
    expect_depfile("m.d", "m: \\\n data/mlp_digits/model.pt2 \\\n r.yaml \\\n s\n");
    sh("ln -s $DATA/add/model.pt2 one; ln -s one two");
    ok("compile --method a=one --method b=two -o m -MD -q");
    expect_depfile("m.d", "m: \\\n one \\\n two\n");
    ok("compile " MLP "--verify --input $DATA/mlp_digits/input_0.npy -o m -MD -q");
    expect_depfile("m.d", "m: \\\n data/mlp_digits/model.pt2 \\\n data/mlp_digits/input_0.npy\n");
    ok("compile - --weights model -o l -MD -q < $DATA/linear/model.etir");
    expect_depfile("l.d", "l: \\\n model/data/weights/weight_0 \\\n model/data/weights/weight_1\n");
}

/* -- several runs ------------------------------------------------------------------------------ */

#define EMIT(model, to) "\"$ETC\" emit-c $DATA/" model "/model.pt2 -o " to "/m.c --main -q"

Test(files, of_several_runs_one_is_there_in_the_end)
{
    sh("mkdir a b both; " EMIT("add", "a") "; " EMIT("mlp_digits", "b") " --weights-as incbin");
    for (int round = 0; round < 5; round++) {
        sh("for i in 1 2 3 4 5 6 7 8; do " EMIT("add", "both") " & " EMIT("mlp_digits", "both")
           " --weights-as incbin & done; wait");
        Result r = sh("cd both; for of in a b; do cmp -s m.c ../$of/m.c && cmp -s m.h ../$of/m.h "
                      "&& cmp -s m_main.c ../$of/m_main.c && echo all of $of; done; ls -A");
        cr_expect(!strncmp(r.out, "all of", 6), "they are mixed: %s", r.out);
        cr_expect_null(strstr(r.out, ".tmp"), "%s", r.out);
    }
}

/* -- files of a model's folder ----------------------------------------------------------------- */

static const struct {
    const char *make, *arguments, *message;
} hostile[] = {
    {"rm model/data/weights/weight_0; ln -s ../../../secret model/data/weights/weight_0",
     "compile model", "model/data/weights/weight_0: error: is a symbolic link"},
    {"mv model/data/weights/weight_0 model/w; ln -s ../../w model/data/weights/weight_0",
     "compile model", "model/data/weights/weight_0: error: is a symbolic link"},
    {"mv model/data/weights w; ln -s ../../w model/data/weights", "compile model",
     "model/data/weights/model_weights_config.json: error: is a symbolic link, or is reached through one"},
    {"mv model/data d; ln -s ../d model/data", "compile model/models/model.json",
     "model/data/weights/model_weights_config.json: error: is a symbolic link, or is reached through one"},
    {"mv model/data d; mkdir e; ln -s ../d e/data",
     "compile model/models/model.json --weights-dir e", "e/data/weights/"},
    {"mv model/data d; ln -s ../secret d/constants/x; mv d/weights/weight_0 d/w; "
     "ln -s ../w d/weights/weight_0", "compile model --weights-dir d",
     "d/weights/weight_0: error: is a symbolic link"},
    {"mv model/models m; ln -s ../m model/models", "compile model",
     "is a folder without models/NAME.json"},
    {"mv model/models/model.json m; ln -s ../../m model/models/model.json", "compile model",
     "model/models/model.json: error: is a symbolic link"},
    {"rm model/byteorder; ln -s ../secret model/byteorder", "compile model",
     "model/byteorder: error: is a symbolic link"},
    {"rm model/data/weights/weight_0; ln -s ../../../secret model/data/weights/weight_0",
     "compile $DATA/linear/model.etir --weights model", "weight_0: error: is a symbolic link"},
    {"rm model/data/weights/weight_0; mkfifo model/data/weights/weight_0", "compile model",
     "model/data/weights/weight_0: error: is not a regular file"},
    {"rm model/data/weights/weight_0; mkdir model/data/weights/weight_0", "compile model",
     "model/data/weights/weight_0: error: is not a regular file"},
    {"rm model/models/model.json; mkfifo model/models/model.json", "compile model",
     "model/models/model.json: error: is not a regular file"},
    {"rm model/data/weights/weight_0; mknod model/data/weights/weight_0 c 1 5", "compile model",
     "model/data/weights/weight_0: error: "}, /* where devices may be made, or opened */
    {"rm -r model/data/weights; : > model/data/weights", "compile model",
     "model/data/weights/model_weights_config.json: error: cannot be read: Not a directory"},
};

Test(files, of_a_models_folder_are_read_where_they_lie)
{
    char line[512];
    setenv("LOGS", logs, 1);
    sh(UNPACK "; mv model $LOGS");
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        sh("cp -r $LOGS/model .; head -c 512 /dev/zero | tr '\\0' s > secret");
        if (sh(hostile[i].make).code == 0) {
            snprintf(line, sizeof line, "%s -o x.pte", hostile[i].arguments);
            fails(line, strstr(hostile[i].message, "without") ? 1 : 3, hostile[i].message);
            cr_expect_neq(access("x.pte", F_OK), 0);
        }
        sh("rm -rf ./*");
    }
}

/* A path that the user names may be a link. */
Test(files, a_models_folder_may_be_reached_by_a_link)
{
    sh(UNPACK "; ln -s model m; mkdir n; ln -s ../model/models/model.json n/model.json; "
       "ln -s model/data d; ln -s $DATA/linear/model.pt2 z");
    ok("compile model -o a -q");
    ok("compile m -o b -q");
    expect_same("a", "b");
    ok("compile m/models/model.json -o b -q");
    expect_same("a", "b");
    ok("compile n/model.json --weights-dir d -o b -q");
    expect_same("a", "b");
    ok("compile n/model.json --weights-dir m -o b -q");
    expect_same("a", "b");
    ok("compile z -o b -q");
    expect_same("a", "b");
}

/* -- files that change while they are read ----------------------------------------------------- */

static pid_t start(const char *arguments, int out)
{
    char line[2048];
    snprintf(line, sizeof line, "exec \"$ETC\" %s 2> %s/err < /dev/null", arguments, logs);
    pid_t child = fork();
    if (!child) {
        dup2(out, STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", line, NULL);
        _exit(127);
    }
    return child;
}

static void expect_changed(pid_t child, const char *arguments, const char *file)
{
    int status;
    size_t n;
    char path[128], message[256];
    snprintf(path, sizeof path, "%s/err", logs);
    snprintf(message, sizeof message, "%s: error: changed while it was read\n", file);
    cr_assert_eq(waitpid(child, &status, 0), child);
    char *told = slurp(path, &n);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 3, "etc %s ends with %x: %s", arguments,
              status, told);
    cr_expect_not_null(strstr(told, message), "etc %s: no '%s' in\n%s", arguments, message, told);
}

/* Once something is printed all is read, and as long as nobody takes the rest the run stands still. */
static void change_while_it_prints(const char *arguments, const char *change, const char *file)
{
    char text[4096];
    int out[2];
    cr_assert(pipe(out) == 0 && fcntl(out[1], F_SETPIPE_SZ, 4096) > 0);
    pid_t child = start(arguments, out[1]);
    close(out[1]);
    cr_assert_eq(read(out[0], text, 1), 1, "nothing is printed");
    cr_assert_eq(system(change), 0, "%s", change);
    while (read(out[0], text, sizeof text) > 0)
        continue;
    close(out[0]);
    expect_changed(child, arguments, file);
}

/* A model with a weight that is large enough to be mapped. */
#define MAPPED                                                                         \
    "python3 -m zipfile -e " MLP ".; cd */data/weights; truncate -s 5M weight_0; "     \
    "touch -d '1 hour ago' weight_0"
#define WEIGHT "model/data/weights/weight_0"
#define PAD "import zipfile; zipfile.ZipFile('m.pt2', 'a').writestr('model/pad', bytes(5 << 20))"

static const struct {
    const char *make, *arguments, *change, *file;
} change[] = {
    {MAPPED, "compile model --dump-ir=all -o x", "truncate -s 0 " WEIGHT, WEIGHT},
    {MAPPED, "emit-c model --dump-ir=all -o x.c", "truncate -s 4096 " WEIGHT, WEIGHT},
    {MAPPED, "compile $DATA/mlp_digits/model.etir --weights model --dump-ir=all -o x",
     "truncate -s 0 " WEIGHT, WEIGHT},
    {MAPPED, "opt model --passes=cse,dce,cse,dce,cse,dce,cse,dce,cse,dce --dump-ir=all -o x",
     "truncate -s 0 " WEIGHT, WEIGHT},
    /* in the last page zeros stand for what is gone */
    {MAPPED, "compile model --dump-ir=all -o x", "truncate -s -9 " WEIGHT, WEIGHT},
    {MAPPED, "compile model --dump-ir=all -o x",
     "printf x | dd of=" WEIGHT " conv=notrunc bs=1 seek=9 2> /dev/null", WEIGHT},
    {"cp " MLP "m.pt2; python3 -c \"" PAD "\"", "compile m.pt2 --dump-ir=all -o x",
     "truncate -s 99 m.pt2", "m.pt2"},
};

Test(files, that_change_while_they_are_read_are_told)
{
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        cr_assert_eq(sh(change[i].make).code, 0, "%s", change[i].make);
        const char *before = listing();
        change_while_it_prints(change[i].arguments, change[i].change, change[i].file);
        expect_files(before);
        sh("rm -rf ./*");
    }
}

/* Another file in its place is no change of the one that is read. */
Test(files, that_are_replaced_are_read_as_they_were)
{
    char text[4096];
    int out[2], status;
    sh(MAPPED);
    ok("compile model -o want -q");
    cr_assert(pipe(out) == 0 && fcntl(out[1], F_SETPIPE_SZ, 4096) > 0);
    pid_t child = start("compile model --dump-ir=all -o x -q", out[1]);
    close(out[1]);
    cr_assert_eq(read(out[0], text, 1), 1, "nothing is printed");
    cr_assert_eq(system("echo other > new; mv new " WEIGHT), 0);
    while (read(out[0], text, sizeof text) > 0)
        continue;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    expect_same("x", "want");
}

static bool has_mapped(pid_t child, const char *file)
{
    char path[64], line[8192];
    bool has = false;
    snprintf(path, sizeof path, "/proc/%ld/maps", (long)child);
    FILE *f = fopen(path, "r");
    while (f && !has && fgets(line, sizeof line, f))
        has = strstr(line, file) != NULL;
    if (f)
        fclose(f);
    return has;
}

Test(files, a_pte_that_shrinks_while_it_runs_is_told)
{
    enum { N = 512 * 2048, CALLS = 50 };
    char arguments[2048] = "run big.pte --output-dir o --input x.npy";
    float *x = NEW(arena, float, N);
    write_text("big.etir",
               "program \"big\" stage core\nconst %w = \"w\" : f32[2048,2048] in \"-\"+0\n"
               "method @forward(%x: f32[512,2048]) {\n"
               "  %y = aten.mm.default(%x, %w) : f32[512,2048]\n  return %y\n}\n");
    sh("head -c 16777216 /dev/zero > side");
    write_images("x.npy", "512, 2048", x, N);
    ok("compile big.etir --data side -o big.pte -q");
    for (int i = 0; i < CALLS; i++)
        strcat(arguments, " --next --input x.npy");
    pid_t child = start(arguments, STDERR_FILENO);
    for (int i = 0; i < 20000 && !has_mapped(child, "/big.pte"); i++)
        usleep(500);
    kill(child, SIGSTOP);
    cr_assert(has_mapped(child, "/big.pte"));
    cr_assert_eq(truncate("big.pte", 4096), 0);
    kill(child, SIGCONT);
    expect_changed(child, arguments, "big.pte");
    expect_files("big.etir big.pte side x.npy ");
}

/* -- outputs that cannot be written ------------------------------------------------------------ */

#define MADE "$DATA/cnn_digits/model.pt2 " /* the compiler makes weights of it */
#define RUN "run $DATA/linear/model.pt2 --input $DATA/linear/input_0.npy --output-dir "
#define QUANTIZE "quantize " MLP "--recipe int8 --calibrate " SAMPLE "--statistics "

static const struct {
    const char *make, *arguments, *message;
} unwritable[] = {
    {"mkdir x.h", "emit-c " ADD "-o x.c --main", "x.h: error: cannot write: it is a folder"},
    {"mkdir x_main.c", "emit-c " ADD "-o x.c --main", "x_main.c: error: cannot write: it is a"},
    {"mkdir x.d", "compile " ADD "-o x -MD", "x.d: error: cannot write: it is a folder"},
    {"mkdir s", "compile " MADE "-o x --dump-data s", "s: error: cannot write: it is a folder"},
    {"mkdir r.svg", "compile " ADD "-o x --report r.svg", "r.svg: error: cannot write: it is a"},
    {"mkdir x", "opt " ADD "--passes=dce -o x", "x: error: cannot write: it is a folder"},
    {"mkdir s", QUANTIZE "s", "s: error: cannot write: it is a folder"},
    {"mkdir r.json", QUANTIZE "s --report r.json", "r.json: error: cannot write: it is a folder"},
    {"mkdir t", "bench $DATA/linear/model.pt2 --runs 1 --trace t", "t: error: cannot write: it is"},
    {"mkdir -p o/output_0.npy", RUN "o", "o/output_0.npy: error: cannot write: it is a folder"},
    {": > o", RUN "o", "o: error: cannot be made a folder"},
    {":", RUN "o/o", "o/o: error: cannot be made a folder: No such file or directory"},
    {": > f", "compile " ADD "-o f/x", "f/x: error: cannot write: Not a directory"},
    {":", "compile " ADD "-o x --dump-data no/s", "no/s: error: cannot write: No such file or"},
    {":", "compile " MADE "-o x --dump-data /dev/full", "/dev/full: error: cannot write: No space"},
    {"ln -s /dev/full x.h", "emit-c " ADD "-o x.c", "x.h: error: cannot write: No space left"},
    {"mkdir out; ln -s /dev/full out/output_0.npy", RUN "out", "cannot write: No space left"},
    {"ln -s /dev/full s", QUANTIZE "s --report r.json", "s: error: cannot write: No space left"},
    {"ln -s x x", "compile " ADD "-o x/y", "x/y: error: cannot write: Too many levels"},
    {"mkdir r.html", "compile " ADD "-o x --report r.html", "r.html: error: cannot write: it is a"},
    {"mkdir m", "compile " ADD "-o x --debug-map m", "m: error: cannot write: it is a folder"},
    {"ln -s /dev/full m", "compile " ADD "-o x --debug-map m", "m: error: cannot write: No space"},
    {"mkdir e", RUN "out --etdump e", "e: error: cannot write: it is a folder"},
    {"ln -s /dev/full e", RUN "out --etdump e", "e: error: cannot write: No space left"},
    {"\"$ETC\" compile " ADD "-o a -q && mkdir b", "gate a --baseline b --write-baseline",
     "b: error: cannot write: it is a folder"},
    {"\"$ETC\" compile " ADD "-o a -q && ln -s /dev/full b", "gate a --baseline b --write-baseline",
     "b: error: cannot write: No space left"},
};

Test(files, that_cannot_be_written_leave_no_others)
{
    char line[1024];
    for (size_t i = 0; i < sizeof unwritable / sizeof *unwritable; i++) {
        cr_assert_eq(sh(unwritable[i].make).code, 0, "%s", unwritable[i].make);
        const char *before = listing();
        fails(unwritable[i].arguments, 3, unwritable[i].message);
        snprintf(line, sizeof line, "%s --json", unwritable[i].arguments);
        fails(line, 3, unwritable[i].message);
        expect_files(before);
        sh("rm -rf ./*");
    }
}

/* -- what went wrong without a word ------------------------------------------------------------- */

/* A program is wrong in a way that a check may see without a word. */
Test(files, are_there_where_a_run_ends_well)
{
    static const char *const how[] = {"compile m --data d -o x", "emit-c m --data d -o x.c",
                                      "check m --data d", "run m --data d --input x.npy",
                                      "compile m --data d --dry-run"};
    write_text("m", "program \"m\" stage core\nsym %s in 1..9\n"
                    "const %w = \"w_q\" : u8[2,32,16] in \"-\"+0\n"
                    "const %c = \"w_s\" : f32[2,2,16] in \"-\"+1024\n"
                    "method @forward(%x: u16[%s,64]) {\n"
                    "  %l = etc.packed_linear(%x, %w, %c, none, none, %s) : f32[%s,24]\n"
                    "  return %l\n}\n");
    sh("head -c 1280 /dev/zero > d");
    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        Result r = etc(how[i]);
        cr_expect_neq(r.code, 0, "etc %s ends well", how[i]);
        cr_expect_not_null(strstr(r.err, "error: "), "etc %s says '%s'", how[i], r.err);
        expect_files("d m ");
    }
    Result r = etc("check m --data d --json");
    cr_expect_eq(number(json(&r), "exit"), r.code);
    cr_expect_gt(number(doc.root, "errors"), 0);
}
