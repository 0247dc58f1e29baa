/* test_cli.c -- the command line from outside: what `etc` prints where, how it ends, what it leaves.
 *
 * Each test runs shell commands in an empty folder of its own, with ETC the binary and DATA
 * tests/data.  Numbers are compared with what torch recorded there. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "compiler/import/internal.h"

static char home[64], logs[64]; /* where commands run; where their outputs go */

static void make_folders(void)
{
    strcpy(home, "/tmp/etc-cli-XXXXXX");
    strcpy(logs, "/tmp/etc-log-XXXXXX");
    cr_assert(mkdtemp(home) && mkdtemp(logs) && chdir(home) == 0);
    setenv("ETC", ETC, 1);
    setenv("DATA", ROOT "/tests/data", 1);
    setenv("ASAN_OPTIONS", "exitcode=99", 1);
    setenv("UBSAN_OPTIONS", "halt_on_error=1:exitcode=99", 1);
}

static void remove_folders(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s' '%s'", home, logs);
    cr_expect(chdir("/") == 0 && system(command) == 0);
}

TestSuite(cli, .init = make_folders, .fini = remove_folders);

/* -- commands and files ------------------------------------------------------------------------ */

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = calloc(1, *n + 1);
    cr_assert_eq(fread(text, 1, *n, f), *n, "%s", path);
    fclose(f);
    return text;
}

typedef struct Result {
    int code;
    char *out, *err;
    size_t n_out, n_err;
} Result;

/* Runs a shell command; what it leaks dies with the test. */
static Result sh(const char *command)
{
    char line[8192], path[128];
    Result r;
    snprintf(line, sizeof line, "exec > %s/out 2> %s/err < /dev/null; %s", logs, logs, command);
    int status = system(line);
    cr_assert(WIFEXITED(status), "%s: killed by signal %d", command, WTERMSIG(status));
    r.code = WEXITSTATUS(status);
    snprintf(path, sizeof path, "%s/out", logs);
    r.out = slurp(path, &r.n_out);
    snprintf(path, sizeof path, "%s/err", logs);
    r.err = slurp(path, &r.n_err);
    cr_assert_null(strstr(r.err, "runtime error:"), "%s: %s", command, r.err);
    cr_assert_null(strstr(r.err, "Sanitizer"), "%s: %s", command, r.err);
    return r;
}

/* The same, of `etc ARGUMENTS`. */
static Result etc(const char *arguments)
{
    char line[8192];
    snprintf(line, sizeof line, "\"$ETC\" %s", arguments);
    return sh(line);
}

/* The run must succeed. */
static Result ok(const char *arguments)
{
    Result r = etc(arguments);
    cr_assert_eq(r.code, 0, "etc %s: exit %d\n%s", arguments, r.code, r.err);
    return r;
}

/* The run must fail so, with a message that holds `text`, and with nothing on standard output. */
static void fails(const char *arguments, int code, const char *text)
{
    Result r = etc(arguments);
    cr_expect_eq(r.code, code, "etc %s: exit %d, expected %d\n%s", arguments, r.code, code, r.err);
    cr_expect_not_null(strstr(r.err, text), "etc %s: no '%s' in\n%s", arguments, text, r.err);
    cr_expect_eq(r.n_out, 0, "etc %s: prints to standard output\n%s", arguments, r.out);
}

/* The names in the folder, hidden ones too, sorted and with a blank behind each. */
static char *listing(void)
{
    struct dirent **entry;
    char *text = calloc(1, 4096);
    int n = scandir(".", &entry, NULL, alphasort);
    for (int i = 0; i < n; i++)
        if (strcmp(entry[i]->d_name, ".") != 0 && strcmp(entry[i]->d_name, "..") != 0) {
            strcat(text, entry[i]->d_name);
            strcat(text, " ");
        }
    return text;
}

static void expect_files(const char *names)
{
    char *got = listing();
    cr_expect_str_eq(got, names, "the folder holds: %s; expected: %s", got, names);
    free(got);
}

static void expect_same(const char *a, const char *b)
{
    size_t n, m;
    char *x = slurp(a, &n), *y = slurp(b, &m);
    cr_expect(n == m && !memcmp(x, y, n), "%s and %s differ", a, b);
}

/* -- JSON -------------------------------------------------------------------------------------- */

static JsonDoc doc;

/* Standard output must be one object with "schema": 1. */
static const Json *json(const Result *r)
{
    static Diag d;
    int64_t schema = 0;
    d.out = stderr;
    size_t n = strlen(r->out);
    cr_assert(n && r->out[n - 1] == '\n' && strlen(r->out) == r->n_out, "no line: %s", r->out);
    cr_assert(json_parse(arena_new(), "stdout", (const uint8_t *)r->out, n, &d, &doc), "%s", r->out);
    cr_assert(json_int(json_get(doc.root, "schema"), &schema) && schema == 1, "%s", r->out);
    return doc.root;
}

static const Json *item(const Json *array, int i)
{
    JsonIter it = json_iter(array);
    for (int k = 0; json_next(&it); k++)
        if (k == i)
            return it.value;
    cr_assert_fail("an array has no item %d", i);
    return NULL;
}

static int64_t number(const Json *object, const char *key)
{
    int64_t v = INT64_MIN;
    cr_assert(json_int(json_get(object, key), &v), "no integer '%s'", key);
    return v;
}

static const char *text(const Json *object, const char *key)
{
    const char *s = json_string(json_get(object, key));
    cr_assert_not_null(s, "no string '%s'", key);
    return s;
}

/* -- tensors ----------------------------------------------------------------------------------- */

/* The elements of a float32 .npy file as numpy writes it; header[] receives its dict. */
static const float *floats(const char *path, char header[256], size_t *n)
{
    size_t size;
    char *bytes = slurp(path, &size);
    cr_assert(size >= 64 && !memcmp(bytes, "\x93NUMPY\1\0", 8), "%s", path);
    size_t len = (size_t)((unsigned char)bytes[8] | (unsigned char)bytes[9] << 8);
    cr_assert(len < 256 && 10 + len <= size && (10 + len) % 64 == 0, "%s", path);
    memcpy(header, bytes + 10, len);
    header[len] = '\0';
    header[strcspn(header, ")")] = '\0'; /* what follows are blanks */
    if (len && header[strlen(header) - 1] == ',')
        header[strlen(header) - 1] = '\0';
    cr_assert_not_null(strstr(header, "<f4"), "%s: %s", path, header);
    *n = (size - 10 - len) / 4;
    float *v = malloc(*n * 4 + 1);
    memcpy(v, bytes + 10 + len, *n * 4);
    free(bytes);
    return v;
}

/* Within 1e-4 of the size of torch's output, and of the same shape. */
static void expect_close(const char *got, const char *model, const char *want)
{
    char path[512], a[256], b[256];
    size_t n, m;
    snprintf(path, sizeof path, ROOT "/tests/data/%s/%s", model, want);
    const float *x = floats(got, a, &n), *y = floats(path, b, &m);
    cr_assert_str_eq(a, b, "%s: header", got);
    cr_assert_eq(n, m);
    for (size_t i = 0; i < n; i++)
        cr_assert(fabs((double)x[i] - (double)y[i]) <= 1e-4 * (1 + fabs((double)y[i])),
                  "%s: element %zu is %g, torch says %g", got, i, (double)x[i], (double)y[i]);
}

/* -- help -------------------------------------------------------------------------------------- */

static const char *const command[] = {"compile", "emit-c", "run", "check", "inspect", "opt", "ops"};
enum { N_COMMANDS = sizeof command / sizeof *command };

Test(cli, help_opens_with_an_example)
{
    char line[64], start[64];
    for (int i = 0; i < N_COMMANDS; i++) {
        snprintf(line, sizeof line, "%s --help", command[i]);
        snprintf(start, sizeof start, "example: etc %s", command[i]);
        Result r = ok(line);
        cr_expect_eq(strncmp(r.out, start, strlen(start)), 0, "%s", r.out);
        cr_expect_eq(r.n_err, 0, "%s", r.err);
        snprintf(line, sizeof line, "%s -o x y --nonsense -h", command[i]);
        cr_expect_eq(etc(line).code, 2);
    }
    Result r = ok("--help");
    cr_expect_eq(strncmp(r.out, "example: etc ", 13), 0);
    for (int i = 0; i < N_COMMANDS; i++)
        cr_expect_not_null(strstr(r.out, command[i]));
    cr_expect_eq(strncmp(ok("--version").out, "etc ", 4), 0);
    fails("", 2, "usage: etc COMMAND");
}

/* docs/cli.md names each flag of each command's help. */
Test(cli, help_and_documentation_agree)
{
    size_t n;
    char *docs = slurp(ROOT "/docs/cli.md", &n), line[64];
    int flags = 0;
    for (int i = 0; i < N_COMMANDS; i++) {
        snprintf(line, sizeof line, "etc %s", command[i]);
        cr_expect_not_null(strstr(docs, line), "docs/cli.md: no '%s'", line);
        snprintf(line, sizeof line, "%s --help", command[i]);
        Result r = ok(line);
        for (char *s = r.out; (s = strstr(s, "--")); flags++) {
            char flag[64] = "`";
            strncat(flag, s, strspn(s, "abcdefghijklmnopqrstuvwxyz-"));
            cr_expect_not_null(strstr(docs, flag), "docs/cli.md: no %s of %s", flag, command[i]);
            s += strlen(flag) - 1;
        }
    }
    cr_expect_gt(flags, 60);
}

/* -- wrong usage ------------------------------------------------------------------------------- */

static const struct {
    const char *arguments, *message;
} misuse[] = {
    {"comple m.pt2", "unknown command 'comple'; did you mean 'compile'?"},
    {"frobnicate", "unknown command 'frobnicate'\n"},
    {"compile m.pt2 --ouput x", "unknown flag '--ouput'; did you mean '--output'?"},
    {"compile m.pt2 -z", "unknown flag '-z'"},
    {"compile m.pt2 -o x --main", "etc compile takes no flag '--main'"},
    {"compile", "a model is missing; usage: etc compile MODEL -o OUT.pte"},
    {"compile m.pt2", "-o is missing"},
    {"compile a b -o x", "one model at a time; unexpected 'b'"},
    {"compile '' -o x", "an empty word"},
    {"compile m.pt2 -o", "--output wants a value"},
    {"compile m.pt2 -o --json", "--output wants a value"},
    {"compile m.pt2 -o x --verify=1", "--verify takes no value"},
    {"compile m.pt2 -o x --dim s", "--dim s is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=1", "--dim s=1 is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=..4", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=4..1", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=-1..1", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=1..99999999999999999999", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim s=1..2x", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --dim =1..2", "is not NAME=LO..HI"},
    {"compile m.pt2 -o x --backend prtable", "knows portable, not 'prtable'; did you mean 'portable'?"},
    {"compile m.pt2 -o x --require-delegated 101", "wants a percentage from 0 to 100"},
    {"compile m.pt2 -o x --require-delegated all", "wants a percentage from 0 to 100"},
    {"compile m.pt2 -o x --target-runtime new", "wants a version from 1.0.1 on"},
    {"compile m.pt2 -o x --target-runtime 0.7", "wants a version from 1.0.1 on"},
    {"compile m.pt2 -o x --target-runtime 1.2.x", "wants a version from 1.0.1 on"},
    {"compile m.pt2 -o x --dump-ir=dce", "wants after:PASS or all, not 'dce'"},
    {"compile m.pt2 -o x --dump-ir=after:decompos", "no pass 'decompos'; did you mean 'decompose'?"},
    {"compile m.pt2 -o - --json", "-o - leaves no room"},
    {"compile m.pt2 -o - --dump-ir=all", "-o - leaves no room"},
    {"compile m.pt2 -o x --json --dump-ir=all", "both write to standard output"},
    {"compile m.pt2 -o - -MD", "-MD wants an -o that is a file"},
    {"compile m.pt2 -o x --dump-data x", "-o and --dump-data name the same file"},
    {"compile m.pt2 --method a=b -o x", "one or the other"},
    {"compile --method a -o x", "--method a is not NAME=FILE"},
    {"compile --method =a -o x", "--method =a is not NAME=FILE"},
    {"emit-c m.pt2 -o x", "-o wants a name that ends in .c"},
    {"emit-c m.pt2 -o -", "-o wants a name that ends in .c"},
    {"emit-c m.pt2 -o .c", "-o wants a name that ends in .c"},
    {"emit-c m.pt2 -o x.c --target generc", "did you mean 'generic'?"},
    {"emit-c m.pt2 -o x.c --math fast", "--math knows strict, not 'fast'"},
    {"emit-c m.pt2 -o x.c --weights-as aray", "knows array|incbin, not 'aray'; did you mean 'array'?"},
    {"check m.pt2 --tail C", "--tail knows pte|c, not 'C'"},
    {"opt m.etir", "--passes is missing"},
    {"opt m.etir --passes=dcee,foldd", "no pass 'dcee'; did you mean 'dce'?"},
    {"opt m.etir --passes=dce,,cse", "no pass ''"},
    {"run", "a model is missing"},
    {"run m.pte --nxt", "did you mean '--next'?"},
};

Test(cli, wrong_usage_is_told_and_does_nothing)
{
    for (size_t i = 0; i < sizeof misuse / sizeof *misuse; i++)
        fails(misuse[i].arguments, 2, misuse[i].message);
    fails("opt m.etir --passes=dce,foldd,csee", 2, "no pass 'csee'"); /* both are told */
    expect_files("");
}

/* -- compile ----------------------------------------------------------------------------------- */

Test(cli, compile_writes_a_pte_and_one_line)
{
    Result r = ok("compile $DATA/add/model.pt2 -o a.pte");
    cr_expect_eq(r.n_out, 0, "%s", r.out);
    cr_expect(!strncmp(r.err, "a.pte: ", 7) && strchr(r.err, '\n') == r.err + r.n_err - 1,
              "%s", r.err);
    expect_files("a.pte ");
    r = ok("compile -q --output=b.pte -- $DATA/add/model.pt2");
    cr_expect_eq(r.n_out + r.n_err, 0, "%s%s", r.out, r.err);
    r = ok("compile $DATA/add/model.pt2 -v -o c.pte");
    cr_expect(strstr(r.err, "import ") && strstr(r.err, "plan_memory ") && strstr(r.err, " ms\n"));
    r = sh("\"$ETC\" compile $DATA/add/model.pt2 -o - > d.pte");
    cr_expect_eq(r.code, 0);
    expect_same("a.pte", "b.pte");
    expect_same("a.pte", "c.pte");
    expect_same("a.pte", "d.pte");
}

Test(cli, compile_dry_run_leaves_nothing)
{
    ok("compile $DATA/mlp_digits/model.pt2 --dry-run");
    ok("compile $DATA/mlp_digits/model.pt2 --dry-run -o x.pte -MD --dump-data y");
    ok("emit-c $DATA/mlp_digits/model.pt2 --dry-run -o x.c --main -MD --dump-data y");
    expect_files("");
}

Test(cli, compile_json)
{
    Result r = ok("compile $DATA/mlp_digits/model.pt2 -o m.pte --json");
    const Json *j = json(&r), *method = item(json_get(j, "methods"), 0);
    struct stat st;
    cr_assert_eq(stat("m.pte", &st), 0);
    cr_expect_eq(number(j, "bytes"), st.st_size);
    cr_expect_str_eq(text(j, "output"), "m.pte");
    cr_expect_str_eq(text(item(json_get(j, "files"), 0), "path"), "m.pte");
    cr_expect_str_eq(text(method, "name"), "forward");
    cr_expect_eq(number(method, "arena"), number(j, "arena"));
    cr_expect_geq(number(j, "arena"), number(j, "bound"));
    cr_expect_geq(number(j, "unshared"), number(j, "arena"));
    cr_expect_eq(number(j, "delegated_percent"), 0);
    r = ok("compile $DATA/add/model.pt2 --dry-run --json -q");
    cr_expect_null(json_get(json(&r), "output"));
    cr_expect_eq(json_count(json_get(doc.root, "files")), 0);
    cr_expect_eq(r.n_err, 0);
}

Test(cli, compile_writes_a_depfile)
{
    size_t n;
    sh("mkdir 'a b'; cp $DATA/add/model.pt2 'a b/m$.pt2'");
    ok("compile 'a b/m$.pt2' -o 'o#.pte' -MD");
    cr_expect_str_eq(slurp("o#.pte.d", &n), "o\\#.pte: \\\n a\\ b/m$$.pt2\n");
    sh("python3 -m zipfile -e $DATA/linear/model.pt2 .; rm -rf out");
    ok("compile model -o l.pte -MD");
    char *d = slurp("l.pte.d", &n);
    cr_expect(strstr(d, " model/models/model.json") && strstr(d, " model/data/weights/weight_0"), "%s", d);
    ok("emit-c $DATA/add/model.pt2 -o a.c -MD");
    cr_expect_eq(strncmp(slurp("a.c.d", &n), "a.c: \\\n ", 7), 0);
}

Test(cli, dim_bounds_a_size)
{
    ok("compile $DATA/mlp_digits/model.pt2 -o m.pte --dim s31=2..8 -q");
    Result r = ok("inspect m.pte");
    cr_expect_not_null(strstr(r.out, "input 0: f32[8,64] at most"), "%s", r.out);
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim batch=1..8", 1,
          "--dim batch=1..8: the model has no such symbolic size\n"
          "  note: the model has the symbolic size 's31' in 1..1024");
    fails("compile $DATA/mlp_digits/model.pt2 -o n.pte --dim s31=2000..3000", 1, "outside the range");
    fails("compile $DATA/add/model.pt2 -o n.pte --dim s31=1..2", 1, "the model has no symbolic sizes");
    expect_files("m.pte ");
}

Test(cli, require_delegated_is_a_gate)
{
    ok("compile $DATA/add/model.pt2 -o a.pte --require-delegated 0 --backend portable -q");
    fails("compile $DATA/add/model.pt2 -o b.pte --require-delegated 1", 5, "0 % of the work is delegated");
    expect_files("a.pte ");
}

static void write_text(const char *path, const char *content)
{
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(content, f);
    fclose(f);
}

Test(cli, target_runtime_lists_what_it_lacks)
{
    write_text("p.etir", "program \"p\" stage aten\n"
               "method @forward(%x: f32[1,2,4,4]) {\n"
               "  %p = aten._adaptive_avg_pool2d.default(%x, [2, 2]) : f32[1,2,2,2] from \"m\", \"n.py:7\"\n"
               "  %q = quantized_decomposed.quantize_per_tensor.default(%p, 0.5, 0, -128, 127, i8) : i8[1,2,2,2]\n"
               "  return %q\n}\n");
    fails("compile p.etir -o p.pte --target-runtime 1.2.0", 4,
          "aten::_adaptive_avg_pool2d.out: the ExecuTorch runtime has it from 1.4.1 on, not in 1.2.0\n"
          "  note: node 'p' (aten._adaptive_avg_pool2d.default) from n.py:7\n");
    fails("compile p.etir -o p.pte --target-runtime 1.2.0", 4, "quantize_per_tensor.out: not among");
    fails("check p.etir --target-runtime 1.3", 4, "_adaptive_avg_pool2d.out");
    expect_files("p.etir ");
    ok("compile $DATA/cnn_digits/model.pt2 -o c.pte --target-runtime 1.0.1 -q");
}

Test(cli, methods_of_several_files)
{
    Result r = ok("compile --method mlp=$DATA/mlp_digits/model.pt2 --method sum=$DATA/add/model.pt2 "
                  "--method again=$DATA/mlp_digits/model.pt2 -o m.pte --json -MD");
    cr_expect_eq(json_count(json_get(json(&r), "methods")), 3);
    ok("compile $DATA/mlp_digits/model.pt2 -o one.pte -q");
    struct stat one, all;
    cr_assert(stat("one.pte", &one) == 0 && stat("m.pte", &all) == 0);
    cr_expect_lt(all.st_size, one.st_size + 6000, "equal weights are there once");
    ok("run m.pte --method again --input $DATA/mlp_digits/input_0.npy --output-dir o");
    expect_close("o/output_0.npy", "mlp_digits", "output_0.npy");
    ok("run m.pte --method sum --input $DATA/add/input_0.npy --input $DATA/add/input_1.npy --output-dir p");
    expect_close("p/output_0.npy", "add", "output_0.npy");
    fails("run m.pte --input value:1", 1, "note: it has 'mlp'\n");
    fails("compile --method a=$DATA/add/model.pt2 --method a=$DATA/add/model.pt2 -o x", 1, "called 'a'");
    fails("compile --method a=nowhere.pt2 --method b=none.pt2 -o x", 3, "none.pt2");
}

/* -- outputs are whole or not there ------------------------------------------------------------ */

Test(cli, a_failed_run_leaves_what_was_there)
{
    write_text("out.pte", "kept");
    write_text("out.pte.d", "kept too");
    fails("compile nowhere.pt2 -o out.pte -MD", 3, "nowhere.pt2: error: ");
    fails("compile $DATA/add/model.etir -o no/such/folder.pte", 3, "cannot write: No such file");
    fails("compile $DATA/add/model.pt2 -o /", 3, "it is a folder");
    sh("rm out.pte.d; mkdir out.pte.d"); /* the second file cannot be written */
    fails("compile $DATA/add/model.pt2 -o out.pte -MD", 3, "out.pte.d: error: cannot write");
    size_t n;
    cr_expect_str_eq(slurp("out.pte", &n), "kept");
    Result r = sh("\"$ETC\" compile $DATA/add/model.pt2 -o out.pte --json > /dev/full");
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "standard output cannot be written"), "%s", r.err);
    cr_expect_str_eq(slurp("out.pte", &n), "kept");
    expect_files("out.pte out.pte.d ");
}

Test(cli, a_full_disk_is_an_error_of_writing)
{
    fails("compile $DATA/add/model.pt2 -o /dev/full", 3, "/dev/full: error: cannot write: No space left");
    static const char *const to_full[] = {
        "ops", "--help", "inspect $DATA/add/model.pt2", "opt --list",
        "opt $DATA/add/model.pt2 --passes=dce", "check $DATA/add/model.pt2 --json",
        "compile $DATA/add/model.pt2 -o -", "run $DATA/add/model.pt2 --input $DATA/add/input_0.npy "
        "--input $DATA/add/input_1.npy"};
    for (size_t i = 0; i < sizeof to_full / sizeof *to_full; i++) {
        char line[512];
        snprintf(line, sizeof line, "\"$ETC\" %s > /dev/full", to_full[i]);
        Result r = sh(line);
        cr_expect_eq(r.code, 3, "%s: exit %d", to_full[i], r.code);
        cr_expect_not_null(strstr(r.err, "cannot"), "%s: %s", to_full[i], r.err);
    }
    Result r = sh("\"$ETC\" emit-c $DATA/add/model.pt2 -o a.c --json > /dev/full");
    cr_expect_eq(r.code, 3);
    r = sh("\"$ETC\" run $DATA/linear/model.pt2 --input $DATA/linear/input_0.npy --output-dir d/ --json > /dev/full");
    cr_expect_eq(r.code, 3);
    expect_files("");
}

Test(cli, a_reader_that_went_away_is_an_error_of_writing)
{
    size_t n;
    sh("(sleep 0.3; \"$ETC\" ops; echo $? > code) | true; sleep 0.5; while [ ! -s code ]; do sleep 0.1; done");
    cr_expect_str_eq(slurp("code", &n), "3\n");
}

Test(cli, what_is_read_is_not_written)
{
    sh("cp $DATA/mlp_digits/model.pt2 m.pt2; ln m.pt2 hard.pt2; ln -s m.pt2 soft.pt2; touch side");
    fails("compile m.pt2 -o m.pt2", 2, "'m.pt2' is read, so it is not written");
    fails("compile m.pt2 -o ./hard.pt2", 2, "is not written");
    fails("compile m.pt2 -o soft.pt2", 2, "is not written");
    fails("compile m.pt2 -o x --dump-data m.pt2", 2, "is not written");
    fails("compile --method a=m.pt2 -o m.pt2", 2, "is not written");
    fails("opt m.pt2 --passes=dce -o m.pt2", 2, "is not written");
    fails("compile $DATA/mlp_digits/model.etir --weights m.pt2 --data side -o side", 2, "is not written");
    char want[512];
    snprintf(want, sizeof want, "%s/tests/data/mlp_digits/model.pt2", ROOT);
    expect_same("m.pt2", want);
    expect_files("hard.pt2 m.pt2 side soft.pt2 ");
}

/* As another user where this one may do anything. */
Test(cli, permissions_are_errors_of_files)
{
    const char *as = geteuid() ? "" : "setpriv --reuid=65534 --clear-groups";
    char line[512];
    snprintf(line, sizeof line, "chmod 755 .; %s \"$ETC\" --version", as);
    if (sh(line).code != 0)
        cr_skip_test("no other user can run etc here");
    sh("cp $DATA/add/model.pt2 m.pt2; chmod 000 m.pt2; mkdir locked; chmod 555 locked");
    snprintf(line, sizeof line, "%s \"$ETC\" compile m.pt2 -o /dev/null", as);
    Result r = sh(line);
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "m.pt2: error: Permission denied"), "%s", r.err);
    snprintf(line, sizeof line, "%s \"$ETC\" compile $DATA/add/model.pt2 -o locked/a.pte", as);
    r = sh(line);
    cr_expect_eq(r.code, 3);
    cr_expect_not_null(strstr(r.err, "locked/a.pte: error: cannot write: Permission denied"), "%s", r.err);
    snprintf(line, sizeof line, "%s \"$ETC\" run $DATA/linear/model.pt2 --input "
             "$DATA/linear/input_0.npy --output-dir locked/o", as);
    cr_expect_eq(sh(line).code, 3);
    expect_files("locked m.pt2 ");
    sh("chmod 755 locked");
}

/* -- odd files --------------------------------------------------------------------------------- */

Test(cli, odd_names)
{
    static const char *const name[] = {"a b.pt2", "modèle-日本.pt2", "it's \"q\".pt2", "-dash.pt2", "new\nline.pt2"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        setenv("NAME", name[i], 1);
        cr_assert_eq(sh("cp $DATA/add/model.pt2 \"./$NAME\"").code, 0);
        ok("compile -q --output=\"$NAME.pte\" -- \"$NAME\"");
        Result r = ok("inspect --json -- \"$NAME.pte\"");
        cr_expect_eq(strncmp(text(json(&r), "file"), name[i], strlen(name[i])), 0, "%s", r.out);
    }
    setenv("NAME", "latin\xe9.pt2", 1);
    sh("cp $DATA/add/model.pt2 \"$NAME\"");
    Result r = ok("compile \"$NAME\" -o \"$NAME.pte\" --json");
    cr_expect_str_eq(text(json(&r), "output"), "latin\xef\xbf\xbd.pt2.pte");
    char longest[256];
    memset(longest, 'n', 255);
    longest[255] = '\0';
    setenv("NAME", longest, 1);
    ok("compile $DATA/add/model.pt2 -o \"$NAME\"");
}

static const struct {
    const char *make, *name;
    int code;
    const char *message;
} odd[] = {
    {"true", "missing.pt2", 3, "No such file"},
    {": > empty.pt2", "empty.pt2", 1, "empty.pt2: error: "},
    {": > empty.etir", "empty.etir", 1, "empty.etir:1: error: "},
    {": > empty.json", "empty.json", 1, "empty.json"},
    {": > empty", "empty", 1, "is none of .pt2"},
    {"mkdir folder", "folder", 1, "folder: error: "},
    {"mkfifo pipe.pt2", "pipe.pt2", 3, "not a regular file"},
    {"true", "/dev/zero", 3, "not a regular file"},
    {"ln -s loop loop", "loop", 3, "loop: error: "},
    {"printf 'program\\0' > nul.etir", "nul.etir", 1, "holds a NUL byte"},
    {"truncate -s 1T sparse.etir", "sparse.etir", 1, "holds a NUL byte"},
    {"truncate -s 300M sparse.pt2", "sparse.pt2", 1, "sparse.pt2: error: "},
    {"echo hello > hello.txt", "hello.txt", 1, "is none of .pt2"},
    {"cp $DATA/official_pte/off_add.pte x.pte", "x.pte", 1, "already compiled"},
    {"echo x > m.onnx", "m.onnx", 4, "ONNX"},
};

Test(cli, odd_models)
{
    char line[512];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        cr_assert_eq(sh(odd[i].make).code, 0, "%s", odd[i].make);
        snprintf(line, sizeof line, "compile %s -o never.pte", odd[i].name);
        fails(line, odd[i].code, odd[i].message);
        snprintf(line, sizeof line, "check %s", odd[i].name);
        fails(line, odd[i].code, odd[i].message);
        cr_expect_eq(access("never.pte", F_OK), -1);
    }
    fails("run empty", 1, "is none of");
    sh(": > e.pte; mkfifo p.npy; cp $DATA/official_pte/off_add.pte a.pte; truncate -s 1T s.pte");
    fails("run e.pte", 1, "e.pte: error: is empty");
    fails("inspect e.pte", 1, "e.pte: error: is empty");
    fails("run s.pte", 1, "s.pte: error: not an ExecuTorch program");
    fails("run a.pte --input p.npy --input p.npy", 3, "p.npy: error: is not a regular file");
    fails("run a.pte --input . --input none.npy", 3, "none.npy: error: cannot be opened");
    fails("run a.pte --input e.pte --input e.pte", 1, "is not a .npy file");
    fails("compile $DATA/add/model.etir --data . -o x", 3, "is not a regular file");
}

/* -- run --------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int n_in, n_out;
} model[] = {{"add", 2, 1}, {"linear", 1, 1}, {"softmax", 1, 2}, {"mlp_digits", 1, 1}, {"cnn_digits", 1, 1}};

static void inputs_of(size_t i, char *line)
{
    for (int k = 0; k < model[i].n_in; k++)
        sprintf(line + strlen(line), " --input $DATA/%s/input_%d.npy", model[i].name, k);
}

static void expect_outputs(size_t i, const char *folder)
{
    char got[128], want[32];
    for (int k = 0; k < model[i].n_out; k++) {
        snprintf(got, sizeof got, "%s/output_%d.npy", folder, k);
        snprintf(want, sizeof want, "output_%d.npy", k);
        expect_close(got, model[i].name, want);
    }
}

Test(cli, run_gives_what_torch_gave)
{
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        char inputs[512] = "", line[1024];
        inputs_of(i, inputs);
        snprintf(line, sizeof line, "compile $DATA/%s/model.pt2 -o m.pte -q", model[i].name);
        ok(line);
        snprintf(line, sizeof line, "run m.pte %s --output-dir out -q", inputs);
        Result r = ok(line);
        cr_expect_eq(r.n_out + r.n_err, 0, "%s%s", r.out, r.err);
        expect_outputs(i, "out");
        snprintf(line, sizeof line, "run $DATA/%s/model.pt2 %s --output-dir out2", model[i].name, inputs);
        ok(line);
        expect_outputs(i, "out2");
        snprintf(line, sizeof line, "run $DATA/%s/model.etir --weights $DATA/%s/model.pt2 %s "
                 "--output-dir out3", model[i].name, model[i].name, inputs);
        ok(line);
        expect_outputs(i, "out3");
        cr_expect_eq(sh("rm -r out out2 out3").code, 0);
    }
}

Test(cli, run_makes_several_calls)
{
    ok("run $DATA/mlp_digits/model.pt2 --input $DATA/mlp_digits/input_0.npy "
       "--next --input $DATA/mlp_digits/case1/input_0.npy "
       "--next --input $DATA/mlp_digits/case2/input_0.npy --output-dir out");
    expect_close("out/0/output_0.npy", "mlp_digits", "output_0.npy");
    expect_close("out/1/output_0.npy", "mlp_digits", "case1/output_0.npy");
    expect_close("out/2/output_0.npy", "mlp_digits", "case2/output_0.npy");
    cr_expect_eq(sh("[ \"$(find out | wc -l)\" = 7 ]").code, 0);
}

static void write_floats(const char *path, int n, const float *v)
{
    char header[120];
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", n);
    FILE *f = fopen(path, "wb");
    fprintf(f, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0, header);
    fwrite(v, 4, (size_t)n, f);
    fclose(f);
}

/* The sum of all inputs so far. */
static const char counter[] = "program \"counter\" stage aten\n"
                              "mutable %total = \"total\" : f32[2] in \"-\"+0\n"
                              "method @forward(%x: f32[2]) {\n"
                              "  %add = aten.add.Tensor(%total, %x, alpha=1) : f32[2]\n"
                              "  update %total = %add\n"
                              "  return %add\n}\n";

Test(cli, run_carries_state_over)
{
    write_text("c.etir", counter);
    write_floats("x.npy", 2, (const float[]){1, -2});
    sh("printf '\\0\\0\\0\\0\\0\\0\\200\\77' > side"); /* 0, 1 */
    Result r = ok("run c.etir --data side --input x.npy --next --input x.npy --next --input x.npy");
    cr_expect_str_eq(r.out, "call 0 output 0: f32[2] 1 -1\ncall 1 output 0: f32[2] 2 -3\n"
                            "call 2 output 0: f32[2] 3 -5\n");
    fails("run c.etir --input x.npy", 1, "give it as --data FILE");
    sh("printf '\\0\\0\\0\\0' > short");
    fails("run c.etir --data short --input x.npy", 1, "past the end of the side file");
}

Test(cli, run_json)
{
    Result r = ok("run $DATA/softmax/model.pt2 --input $DATA/softmax/input_0.npy --output-dir o --json");
    const Json *outputs = json_get(item(json_get(json(&r), "calls"), 0), "outputs");
    cr_expect_eq(json_count(outputs), 2);
    cr_expect_str_eq(text(item(outputs, 1), "file"), "o/output_1.npy");
    cr_expect_str_eq(text(item(outputs, 1), "dtype"), "f32");
    cr_expect_str_eq(text(doc.root, "method"), "forward");
    r = ok("run $DATA/softmax/model.pt2 --input $DATA/softmax/input_0.npy --json -q");
    outputs = json_get(item(json_get(json(&r), "calls"), 0), "outputs");
    cr_expect_null(json_get(item(outputs, 0), "file"));
}

Test(cli, run_names_the_input_that_does_not_fit)
{
    ok("compile $DATA/mlp_digits/model.pt2 -o m.pte -q");
    ok("compile $DATA/add/model.pt2 -o a.pte -q");
    write_floats("x.npy", 2, (const float[]){1, 2});
    fails("run m.pte", 1, "m.pte: error: 0 inputs given, method 'forward' has 1");
    fails("run m.pte --input x.npy --input x.npy", 1, "2 inputs given");
    fails("run m.pte --input x.npy", 1, "input 0: is a tensor f32[2], expected a tensor at most f32[1024,64]");
    fails("run m.pte --input value:3", 1, "input 0: is a tensor f32[], expected");
    fails("run m.pte --input value:null", 1, "input 0: is null, expected a tensor");
    fails("run m.pte --input value:three", 1, "'value:three' is no JSON number");
    fails("run m.pte --input value:0x3", 1, "is no JSON number");
    fails("run $DATA/mlp_digits/model.pt2 --dim s31=1..8 --input $DATA/mlp_digits/case2/input_0.npy", 1,
          "input 0 ('input'): size 360 at dimension 0 is past its bound 8");
    fails("run a.pte --input $DATA/add/input_1.npy --input x.npy", 1,
          "input 0: is a tensor f32[3,1], expected a tensor f32[2,3,4]");
    fails("run a.pte --input $DATA/add/input_1.npy --input x.npy", 1,
          "input 1: is a tensor f32[2], expected a tensor f32[3,1]");
    fails("run $DATA/linear/model.pt2 --input $DATA/mlp_digits/input_0.npy", 1, " at dimension ");
    fails("run m.pte --method backward", 1, "has no method 'backward'\n  note: it has 'forward'");
    fails("run m.pte --dim s31=1..2 --input x.npy", 1, "is a .pte");
    fails("run m.pte --input $DATA/mlp_digits/extra_test_y.npy", 1, "is a tensor i64[");
    sh("touch file");
    fails("run m.pte --input $DATA/mlp_digits/input_0.npy --output-dir file", 3, "file: error: cannot be made a folder");
    fails("run m.pte --input $DATA/mlp_digits/input_0.npy --output-dir no/such", 3, "no/such: error: ");
    fails("run $DATA/official_pte/off_clx.pte --input x.npy", 4, "XnnpackBackend: delegate that this build lacks");
}

Test(cli, numbers_become_the_dtype_wanted)
{
    static const struct {
        const char *dtype, *value, *out; /* out NULL: refused */
    } row[] = {
        {"f32", "2.5", "output 0: f32[] 2.5\n"},  {"f32", "-3", "output 0: f32[] -3\n"},
        {"f32", "NaN", "output 0: f32[] nan\n"},  {"f64", "-0.5", "output 0: f64[] -0.5\n"},
        {"i64", "-7", "output 0: i64[] -7\n"},    {"i64", "2.5", NULL},
        {"i64", "1e300", NULL},                   {"i64", "NaN", NULL},
        {"i64", "2.0", "output 0: i64[] 2\n"},    {"i32", "2147483648", NULL},
        {"i32", "-5", "output 0: i32[] -5\n"},    {"u8", "255", "output 0: u8[] 255\n"},
        {"u8", "-1", NULL},                       {"i8", "-128", "output 0: i8[] -128\n"},
        {"bool", "true", "output 0: bool[] 1\n"}, {"bool", "2", NULL},
        {"f16", "1", NULL},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char content[512], line[128];
        snprintf(content, sizeof content, "program \"c\" stage aten\nmethod @forward(%%x: %s[]) {\n"
                 "  %%y = aten.clone.default(%%x, memory_format=none) : %s[]\n  return %%y\n}\n", row[i].dtype, row[i].dtype);
        write_text("c.etir", content);
        snprintf(line, sizeof line, "run c.etir --input value:%s", row[i].value);
        if (row[i].out)
            cr_expect_str_eq(ok(line).out, row[i].out, "%s", line);
        else
            fails(line, 1, "is no value of dtype");
    }
}

/* -- folders ----------------------------------------------------------------------------------- */

Test(cli, unpacked_models_give_the_same_file)
{
    cr_assert_eq(sh("python3 -m zipfile -e $DATA/mlp_digits/model.pt2 . && mkdir alone && "
                    "cp model/models/model.json alone").code, 0);
    ok("compile $DATA/mlp_digits/model.pt2 -o a.pte -q");
    ok("compile model -o b.pte -q");
    ok("compile model/models/model.json -o c.pte -q");
    ok("compile alone/model.json --weights-dir model -o d.pte -q");
    ok("compile alone/model.json --weights-dir model/data -o e.pte -q");
    ok("compile $DATA/mlp_digits/model.etir --weights model -o f.pte -q");
    ok("compile $DATA/mlp_digits/model.etir --weights model/models/model.json -o g.pte -q");
    ok("compile - --weights $DATA/mlp_digits/model.pt2 -o h.pte -q < $DATA/mlp_digits/model.etir");
    for (const char *s = "bcdefgh"; *s; s++)
        expect_same("a.pte", (char[]){*s, '.', 'p', 't', 'e', '\0'});
    fails("compile alone/model.json -o x.pte", 3, "error: ");
    fails("compile $DATA/mlp_digits/model.etir -o x.pte", 1, "give it as --weights FILE.pt2");
    fails("compile $DATA/mlp_digits/model.etir --weights $DATA/add/model.pt2 -o x.pte", 1,
          "has no 'data/weights/weight_5'");
    fails("compile $DATA/mlp_digits/model.etir --weights a.pte -o x.pte", 1, "is no archive with weights");
    fails("compile $DATA/mlp_digits/model.pt2 --weights a.pte -o x.pte", 1, "belong to an .etir");
}

/* -- texts ------------------------------------------------------------------------------------- */

Test(cli, a_dumped_program_compiles_to_the_same_bytes)
{
    static const char *const stop[] = {"resolve_views", "decompose", "canonicalize", "fold_batch_norm",
                                       "drop_states", "to_edge", "to_out", "order", "plan_memory", "check_plan"};
    ok("compile $DATA/cnn_digits/model.pt2 -o direct.pte -q");
    for (size_t i = 0; i < sizeof stop / sizeof *stop; i++) {
        char line[512];
        snprintf(line, sizeof line, "compile $DATA/cnn_digits/model.pt2 -o a.pte --dump-ir=after:%s "
                 "--dump-data side -q > x.etir", stop[i]);
        ok(line);
        expect_same("direct.pte", "a.pte");
        ok("compile x.etir --data side --weights $DATA/cnn_digits/model.pt2 -o b.pte");
        expect_same("direct.pte", "b.pte");
        size_t n;
        cr_expect_eq(strncmp(slurp("x.etir", &n), "; after ", 8), 0);
    }
}

Test(cli, dump_ir_all_prints_every_stage)
{
    Result r = sh("\"$ETC\" compile $DATA/add/model.pt2 -o a.pte --dump-ir=all -q");
    static const char *const want[] = {"; after resolve_views", "stage core", "stage edge", "stage planned"};
    for (size_t i = 0; i < 4; i++)
        cr_expect_not_null(strstr(r.out, want[i]), "no %s", want[i]);
    cr_assert_eq(sh("\"$ETC\" compile $DATA/add/model.pt2 -o a.pte --dump-ir=all -q > all.etir").code, 0);
    r = ok("compile all.etir -o b.pte -q");
    cr_expect_not_null(strstr(r.err, "another program follows; the first is taken"), "%s", r.err);
    expect_same("a.pte", "b.pte");
}

Test(cli, a_stage_leads_to_one_tail)
{
    ok("emit-c $DATA/linear/model.pt2 --dry-run -q --dump-ir=after:group > g.etir");
    fails("compile g.etir --weights $DATA/linear/model.pt2 -o x.pte", 1, "is at stage grouped of the way to C");
    ok("compile $DATA/linear/model.pt2 --dry-run -q --dump-ir=after:to_edge > e.etir");
    fails("emit-c e.etir --weights $DATA/linear/model.pt2 -o x.c", 1, "is at stage edge of the way to a .pte");
    ok("compile $DATA/linear/model.pt2 --dry-run -q --dump-ir=after:plan_memory > p.etir");
    fails("emit-c p.etir --weights $DATA/linear/model.pt2 -o x.c", 1, "is at stage planned of the way to a .pte");
}

Test(cli, opt_runs_passes)
{
    write_text("d.etir", "program \"d\" stage core\nmethod @forward(%x: f32[2]) {\n"
               "  %a = aten.relu.default(%x) : f32[2]\n  %b = aten.relu.default(%a) : f32[2]\n"
               "  %c = aten.relu.default(%x) : f32[2]\n  return %a\n}\n");
    const char *want = "program \"d\" stage core\nmethod @forward(%x: f32[2]) {\n"
                       "  %a = aten.relu.default(%x) : f32[2]\n  return %a\n}\n";
    cr_expect_str_eq(ok("opt d.etir --passes=dce").out, want);
    cr_expect_str_eq(ok("opt - --passes=cse,dce -o - < d.etir").out, want);
    Result r = ok("opt d.etir --passes=dce -o e.etir");
    size_t n;
    cr_expect_eq(r.n_out, 0);
    cr_expect_str_eq(slurp("e.etir", &n), want);
    r = ok("opt d.etir --passes dce --json");
    cr_expect_str_eq(text(json(&r), "text"), want);
    cr_expect_str_eq(text(doc.root, "stage"), "core");
    r = ok("opt $DATA/mlp_digits/model.pt2 --passes=resolve_views,functionalize,decompose --dim s31=1..4");
    cr_expect(strstr(r.out, "stage core\nsym %s31 in 1..4\n") && !strstr(r.out, "dropout"), "%s", r.out);
    ok("opt $DATA/cnn_digits/model.pt2 --passes=decompose,canonicalize,fold_constants,fold_batch_norm "
       "--dump-data side -o c.etir");
    r = ok("opt c.etir --passes=cse,dce,drop_states --tail pte");
    cr_expect_not_null(strstr(r.out, "stage core"));
    fails("opt $DATA/mlp_digits/model.pt2 --passes=dce,plan_memory", 1,
          "pass 'plan_memory' wants a program that is past stage aten: run decompose before it");
    fails("opt d.etir --passes=dce -o /dev/full", 3, "cannot write");
}

Test(cli, opt_lists_passes)
{
    Result r = ok("opt --list");
    cr_expect(strstr(r.out, "dce ") && strstr(r.out, "plan_memory ") && strstr(r.out, "bounded(8)"));
    r = ok("opt --list --json");
    const Json *passes = json_get(json(&r), "passes");
    cr_expect_geq(json_count(passes), 16);
    cr_expect_str_eq(text(item(passes, 0), "name"), "resolve_views");
    cr_expect_str_eq(text(item(passes, 0), "exactness"), "exact");
}

/* -- ops, inspect, check ----------------------------------------------------------------------- */

Test(cli, ops_is_the_support_matrix)
{
    Result r = ok("ops");
    cr_expect(strstr(r.out, "aten.add.Tensor ") && strstr(r.out, "aten.linear.default "));
    r = ok("ops linear.d");
    cr_expect(strstr(r.out, "aten.linear.default ") && !strstr(r.out, "aten.add.Tensor"), "%s", r.out);
    r = ok("ops linear.default --json");
    const Json *op = item(json_get(json(&r), "operators"), 0);
    cr_expect_str_eq(text(op, "name"), "aten.linear.default");
    cr_expect_str_eq(text(op, "pte"), "yes");
    cr_expect_str_eq(text(op, "c"), "yes");
    cr_expect_str_eq(text(op, "runtime_lite"), "yes");
    fails("ops linaer", 1, "no operator's name holds 'linaer'; did you mean 'linear'?");
    fails("ops aten.linear.defalt", 1, "did you mean 'aten.linear.default'?");
    fails("ops --json zzzzzzzzzzzz", 1, "no operator's name holds 'zzzzzzzzzzzz'\n");
}

Test(cli, inspect_reads_every_kind)
{
    ok("compile $DATA/mlp_digits/model.pt2 -o m.pte -q");
    cr_assert_eq(sh("python3 -m zipfile -e $DATA/mlp_digits/model.pt2 .").code, 0);
    static const char *const program[] = {"$DATA/mlp_digits/model.pt2", "$DATA/mlp_digits/model.etir",
                                          "model", "model/models/model.json", "- < $DATA/mlp_digits/model.etir"};
    for (size_t i = 0; i < sizeof program / sizeof *program; i++) {
        char line[256];
        snprintf(line, sizeof line, "inspect %s", program[i]);
        Result r = ok(line);
        cr_expect(strstr(r.out, "3 aten.linear.default") && strstr(r.out, "input 0: input f32[%s31,64]"), "%s", r.out);
        snprintf(line, sizeof line, "inspect --json %s", program[i]);
        r = ok(line);
        const Json *j = json(&r), *method = item(json_get(j, "methods"), 0);
        cr_expect_str_eq(text(j, "kind"), "program");
        cr_expect_str_eq(text(j, "stage"), "aten");
        cr_expect_eq(number(j, "state_bytes"), 26280);
        cr_expect_eq(number(item(json_get(j, "symbols"), 0), "hi"), 1024);
        cr_expect_eq(number(method, "nodes"), 6);
        cr_expect_str_eq(json_string(item(json_get(item(json_get(method, "inputs"), 0), "shape"), 0)), "s31");
    }
    Result r = ok("inspect m.pte");
    cr_expect(strstr(r.out, "3 aten::linear.out\n") && strstr(r.out, "method forward: arena "), "%s", r.out);
    r = ok("inspect m.pte --json");
    const Json *method = item(json_get(json(&r), "methods"), 0);
    cr_expect_str_eq(text(doc.root, "kind"), "pte");
    cr_expect_str_eq(text(item(json_get(method, "inputs"), 0), "dtype"), "f32");
    cr_expect_eq(number(item(json_get(method, "operators"), 0), "calls"), 3);
    r = ok("inspect $DATA/official_pte/off_miscx.pte");
    cr_expect_not_null(strstr(r.out, "delegate 1: XnnpackBackend"), "%s", r.out);
    r = ok("inspect $DATA/official_pte/off_idx.pte --json");
    cr_expect_not_null(strstr(r.out, "\"aten::topk.values\""), "%s", r.out);
}

Test(cli, check_lists_everything_and_exits_as_compile_would)
{
    Result r = ok("check $DATA/mlp_digits/model.pt2");
    cr_expect(r.n_out == 0 && strstr(r.err, "nothing stops a compile to .pte"), "%s", r.err);
    r = ok("check $DATA/mlp_digits/model.pt2 --tail c");
    cr_expect_not_null(strstr(r.err, "nothing stops a compile to C"), "%s", r.err);
    r = ok("check $DATA/mlp_digits/model.pt2 --json -q");
    cr_expect_eq(r.n_err, 0);
    cr_expect_str_eq(text(json(&r), "tail"), "pte");
    cr_expect_eq(number(doc.root, "errors"), 0);
    static const char *const each[] = {"node 'a' (mine.first.default)", "note: module blocks.0.conv, net.py:12",
                                       "node 'b' (mine.second.default)", "dtype complex64"};
    for (size_t i = 0; i < 4; i++) {
        fails("check " ROOT "/tests/import/many_errors.json", 4, each[i]);
        fails("compile -o x " ROOT "/tests/import/many_errors.json", 4, each[i]);
        fails("emit-c -o x.c " ROOT "/tests/import/many_errors.json", 4, each[i]);
    }
    r = etc("check --json " ROOT "/tests/import/many_errors.json");
    cr_expect_eq(r.code, 4);
    const Json *j = json(&r);
    cr_expect_eq(number(j, "exit"), 4);
    cr_expect_eq(number(j, "errors"), 3);
    cr_expect_geq(json_count(json_get(j, "messages")), 4);
    expect_files("");
}

/* -- emit-c ------------------------------------------------------------------------------------ */

Test(cli, emitted_c_gives_what_torch_gave)
{
    static const char *const how[] = {"", "--weights-as array", "--weights-as incbin"};
    for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
        char line[1024];
        snprintf(line, sizeof line, "emit-c $DATA/%s/model.pt2 -o m.c --main --target generic --math strict %s",
                 model[i].name, how[i % 3]);
        Result r = ok(line);
        cr_expect_eq(r.n_out, 0);
        cr_assert_eq(sh("cc -O1 -o m m*.c $(ls m_weights.S 2> /dev/null) -lm").code, 0, "%s", model[i].name);
        strcpy(line, "./m");
        inputs_of(i, line);
        strcat(line, " --output-dir out");
        cr_assert_eq(sh(line).code, 0, "%s", line);
        expect_outputs(i, "out");
        sh("rm -r m* out");
    }
    expect_files("");
}

Test(cli, emit_c_json_names_its_files)
{
    Result r = ok("emit-c $DATA/linear/model.pt2 -o m.c --main --json");
    const Json *files = json_get(json(&r), "files");
    char want[256] = "";
    for (int i = 0; i < json_count(files); i++) {
        struct stat st;
        cr_assert_eq(stat(text(item(files, i), "path"), &st), 0);
        cr_expect_eq(number(item(files, i), "bytes"), st.st_size);
    }
    char *got = listing();
    cr_expect(strstr(got, "m.c ") && strstr(got, "m.h ") && strstr(got, "m_main.c "), "%s%s", got, want);
}

/* -- what they share --------------------------------------------------------------------------- */

Test(cli, verify_takes_inputs)
{
    ok("compile $DATA/mlp_digits/model.pt2 -o a.pte --verify --check-ir");
    ok("compile $DATA/mlp_digits/model.pt2 -o b.pte --verify --input $DATA/mlp_digits/input_0.npy");
    expect_same("a.pte", "b.pte");
    fails("compile $DATA/mlp_digits/model.pt2 -o c.pte --verify --input none.npy", 3, "none.npy");
    fails("compile $DATA/add/model.pt2 -o c.pte --verify --input $DATA/add/input_0.npy", 1,
          "1 inputs given, the model has 2");
}

Test(cli, faults_have_their_exit_codes)
{
    static const struct {
        Fault fault;
        int code;
    } row[] = {{FAULT_MODEL, 1}, {FAULT_IO, 3}, {FAULT_UNSUPPORTED, 4}, {FAULT_GATE, 5}, {FAULT_BUG, 70}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Diag d = {.out = fopen("/dev/null", "w")};
        diag_fault(&d, row[i].fault, (Loc){0}, "x");
        cr_expect_eq(diag_exit_code(&d), row[i].code);
        diag_unsupported(&d, (Loc){0}, "x");
        diag_error(&d, (Loc){0}, "x");
        cr_expect_eq(diag_exit_code(&d), row[i].code == 70 || row[i].code == 3 ? row[i].code : 1);
    }
}
