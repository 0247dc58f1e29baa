/* test_batch.c -- tests `etc batch`: which models it compiles and which it skips, that a failure of
 * one model does not affect the others, and that no partly written file is left. */
#include "tests/cli/cli.h"
#include <signal.h>

/* A model of the test's own, samples, and a list of four entries. */
static void make_list(void)
{
    make_folders();
    sh("cp $DATA/mlp_digits/model.pt2 mlp.pt2; cp $DATA/add/model.pt2 add.pt2;"
       "mkdir samples; cp $DATA/quantized/mlp_digits_calibration.npy samples/a.npy");
    write_text("recipe.yaml", "preset: int8\n");
    write_text("l.yaml", "defaults:\n"
                         "  flags: {verify: true}\n"
                         "models:\n"
                         "  - add.pt2\n"
                         "  - model: mlp.pt2\n"
                         "    gates: {target-runtime: \"1.1\"}\n"
                         "  - name: int8\n"
                         "    model: mlp.pt2\n"
                         "    output: small/mlp.pte\n"
                         "    flags: {verify: null, recipe: recipe.yaml, calibrate: samples}\n"
                         "  - name: c\n"
                         "    extends: int8\n"
                         "    command: emit-c\n"
                         "    flags: {main: true, report: c.svg}\n");
}

TestSuite(batch, .init = make_list, .fini = remove_folders, .timeout = 120);

/* The sanitizer reserves more address space than any limit. */
#if defined(__SANITIZE_ADDRESS__)
enum { HAS_LIMITS = 0 };
#elif defined(__has_feature)
enum { HAS_LIMITS = !__has_feature(address_sanitizer) }; /* clang */
#else
enum { HAS_LIMITS = 1 };
#endif

/* -- results ----------------------------------------------------------------------------------- */

/* Line i of standard output, from 0 on. */
static const Json *line(const Result *r, int i)
{
    static Diag d;
    const char *s = r->out;
    d.out = stderr;
    while (i-- > 0) {
        s = strchr(s, '\n');
        cr_assert_not_null(s, "%s", r->out);
        s++;
    }
    cr_assert(json_parse(arena, "stdout", (const uint8_t *)s, strcspn(s, "\n"), &d, &doc), "%s", s);
    return doc.root;
}

/* The status of each entry, by its first letter. */
static void expect_status(const char *arguments, int code, const char *want)
{
    Result r = etc(arguments);
    int n = (int)strlen(want);
    cr_assert_eq(r.code, code, "etc %s: exit %d\n%s%s", arguments, r.code, r.out, r.err);
    for (int i = 0; i < n; i++) {
        const char *s = text(line(&r, i), "status");
        cr_expect(*s == want[i], "etc %s: entry %d is %s, expected %c\n%s", arguments, i, s, want[i],
                  r.err);
    }
    cr_expect_eq(number(json_get(line(&r, n), "summary"), "models"), n);
}

static const char *sums(const char *folder)
{
    return sh(arena_printf(arena, "cd %s && find . -type f ! -name '.etc-batch*' -exec cksum {} + | sort",
                           folder)).out;
}

#define RUN "batch l.yaml -o out -j2 -q"

/* -- what is made ------------------------------------------------------------------------------ */

Test(batch, makes_what_the_commands_make)
{
    Result r = ok(RUN);
    ok("compile mlp.pt2 --recipe recipe.yaml --calibrate samples -o by_hand -q");
    expect_same("out/small/mlp.pte", "by_hand");
    const char *key = ok("key mlp.pt2 --recipe recipe.yaml --calibrate samples").out;
    const Json *int8 = line(&r, 2);
    cr_expect_eq(strncmp(text(int8, "key"), key, 32), 0);
    cr_expect_str_eq(text(int8, "name"), "int8");
    cr_expect_str_eq(text(int8, "output"), "small/mlp.pte");
    cr_expect_gt(number(int8, "bytes"), 1000);
    cr_expect_gt(number(int8, "arena"), 1000);
    cr_expect_eq(sh("cd out && ls -A").code, 0);
    cr_expect_str_eq(sh("cd out && ls").out, "add.pte\nc.c\nc.h\nc.svg\nc_avx2.c\nc_avx512.c\nc_main.c\n"
                                             "c_vnni.c\nmlp.pte\nsmall\n");
}

Test(batch, makes_the_same_bytes_however_many_at_once)
{
    ok("batch l.yaml -o one -j1 -q");
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    ok("batch l.yaml -o two -j 2 -q");
    sh("sed -i s/one/two/ one/*.S two/*.S 2> /dev/null");
    cr_expect_str_eq(sums("one"), sums("two"));
}

Test(batch, paths_count_from_the_list)
{
    sh("mkdir in; mv l.yaml *.pt2 samples recipe.yaml in");
    expect_status("batch in/l.yaml -q", 0, "wwww");
    cr_expect(access("in/small/mlp.pte", F_OK) == 0);
    expect_status("batch in/l.yaml -o out -q --junit j.xml", 0, "wwww");
    cr_expect(access("out/small/mlp.pte", F_OK) == 0 && access("j.xml", F_OK) == 0);
}

/* -- what is not made again -------------------------------------------------------------------- */

Test(batch, a_second_run_does_nothing)
{
    expect_status(RUN, 0, "wwww");
    const char *before = sh("find out -type f -exec stat -c '%n %Y %i' {} + | sort | grep -v state").out;
    expect_status(RUN, 0, "uuuu");
    const char *after = sh("find out -type f -exec stat -c '%n %Y %i' {} + | sort | grep -v state").out;
    cr_expect_eq(strlen(before), strlen(after));
    sh("cp -r out kept; rm -r out; cp -r kept out; sleep 0.1; touch *.pt2 samples/*");
    expect_status(RUN, 0, "uuuu"); /* other times and inodes, the same contents */
    sh("mv out out2");
    expect_status("batch l.yaml -o out2 -q", 0, "uuuu");
}

Test(batch, a_change_redoes_what_it_touches)
{
    expect_status(RUN, 0, "wwww");
    write_text("recipe.yaml", "preset: int8\n# other\n");
    expect_status(RUN, 0, "uuww");
    sh("cp $DATA/mlp_digits/input_0.npy samples/b.npy");
    expect_status(RUN, 0, "uuww");
    sh("rm samples/b.npy");
    expect_status(RUN, 0, "uuww");
    sh("cp mlp.pt2 add.pt2");
    expect_status(RUN, 0, "wuuu");
    sh("rm out/c.h; printf x >> out/mlp.pte");
    expect_status(RUN, 0, "uwuw");
    sh("printf x | dd of=out/mlp.pte bs=1 seek=100 conv=notrunc status=none");
    expect_status(RUN, 0, "uwuu");
    sh("sed -i 's/\"1.1\"/\"1.2\"/' l.yaml");
    expect_status(RUN, 0, "uwuu");
    expect_status(RUN, 0, "uuuu");
}

/* The state is anybody's: it may cost work, never an output. */
Test(batch, a_hostile_state_only_costs_work)
{
    static const char *const bad[] = {
        "", "{", "[]", "{\"schema\": 1}", "{\"entries\": 3}", "\xff\xfe",
        "{\"etc\": \"x\", \"entries\": [{\"name\": \"add\"}]}",
    };
    ok(RUN);
    const char *want = sums("out");
    size_t n;
    char *state = slurp("out/.etc-batch-l.yaml.json", &n);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("out/.etc-batch-l.yaml.json", bad[i]);
        expect_status(RUN, 0, "wwww");
        cr_expect_str_eq(sums("out"), want);
    }
    for (size_t cut = 1; cut < n; cut += n / 7) {
        write_text("out/.etc-batch-l.yaml.json", arena_str(arena, state, cut));
        Result r = ok(RUN);
        cr_expect_eq(number(json_get(line(&r, 4), "summary"), "failed"), 0);
        cr_expect_str_eq(sums("out"), want);
    }
    static const char *const turn[] = {"s/, [0-9]*, / , -1, /g", "s/\\[\"/[[\"/g",
                                       "s/: \"[0-9a-f]*\"/: \"..\\/..\\/x\"/g", "s/\"add\"/null/",
                                       "s/add.pt2/\\/etc\\/passwd/g", "s/[0-9]/9/g"};
    for (size_t i = 0; i < sizeof turn / sizeof *turn; i++) {
        write_text("out/.etc-batch-l.yaml.json", state);
        sh(arena_printf(arena, "sed -i '%s' out/.etc-batch-l.yaml.json", turn[i]));
        ok(RUN);
        cr_expect_str_eq(sums("out"), want, "%s", turn[i]);
    }
}

/* -- what goes wrong alone --------------------------------------------------------------------- */

Test(batch, a_failed_model_stops_no_other)
{
    write_text("m.yaml", "models:\n  a: {model: none.pt2}\n  b: {model: mlp.pt2, gates: {require-delegated: 99}}\n"
                         "  d: {model: mlp.pt2, flags: {recipe: int9}}\n  e: {model: mlp.pt2}\n  f: {model: none.pt2}\n");
    Result r = etc("batch m.yaml -o out -q");
    cr_assert(r.code == 3, "exit %d\n%s", r.code, r.err);
    cr_expect_str_eq(text(line(&r, 0), "status"), "failed");
    cr_expect_eq(number(line(&r, 0), "exit"), 3);
    cr_expect_str_eq(text(item(json_get(line(&r, 0), "diagnostics"), 0), "file"), "none.pt2");
    cr_expect_eq(number(line(&r, 1), "exit"), 5);
    cr_expect_str_neq(text(line(&r, 2), "status"), "written");
    cr_expect_str_eq(text(line(&r, 3), "status"), "written");
    const Json *causes = json_get(json_get(line(&r, 5), "summary"), "causes");
    cr_expect_eq(number(item(causes, 0), "models"), 2);
    cr_expect_not_null(strstr(text(item(causes, 0), "cause"), "No such file"));
    cr_expect_str_eq(sh("cd out && ls -A | grep -v state").out, ".etc-batch-m.yaml.json\ne.pte\n");
    write_text("none.pt2", "");
    r = etc("batch m.yaml -o out -q");
    cr_expect_str_eq(text(line(&r, 3), "status"), "unchanged");
    cr_expect_str_eq(text(line(&r, 4), "status"), "failed");
}

Test(batch, memory_has_a_limit_of_its_own)
{
    if (!HAS_LIMITS)
        cr_skip_test("the sanitizer takes more");
    sh("python3 -c \"import numpy as n; n.savez('big.npz', input=n.zeros((400, 1024, 64), n.float32))\"");
    write_text("m.yaml", "models:\n  d: {model: mlp.pt2, memory: 50M, flags: {recipe: int8, calibrate: big.npz}}\n"
                         "  e: {model: mlp.pt2}\n");
    expect_status("batch m.yaml -o out -q", 1, "fw");
    write_text("m.yaml", "models: [{model: mlp.pt2, memory: 1K}]\n"); /* not even the file can be mapped */
    Result r = etc("batch m.yaml -o out -q");
    cr_expect_eq(r.code, 1);
    cr_expect_not_null(strstr(r.err, "mlp.pt2: error: no memory to read it"), "%s", r.err);
}

Test(batch, its_state_is_no_other_output)
{
    fails("batch l.yaml -o out --junit out/.etc-batch-l.yaml.json", 3, ".etc-batch-l.yaml.json");
    Result r = ok("batch l.yaml -o out -q --ninja -");
    cr_expect_not_null(strstr(r.out, "rule"), "%s", r.out);
}

Test(batch, a_key_that_is_there_twice_is_one_error)
{
    write_text("m.yaml", "models:\n  a: mlp.pt2\n  a: add.pt2\n");
    Result r = etc("batch m.yaml -o out");
    cr_expect_str_eq(r.err, "m.yaml:3:3: error: 'a' appears here a second time, first in line 2\n");
}

Test(batch, operators_are_counted_by_models)
{
    sh("python3 " ROOT "/tests/cli/onnx_models.py $DATA; cp unknown.onnx again.onnx");
    write_text("m.yaml", "defaults: {flags: {dim: batch=1..4}}\nmodels: [unknown.onnx, again.onnx]\n");
    Result r = etc("batch m.yaml -o out");
    cr_expect_eq(r.code, 4, "%s", r.err);
    const Json *cause = item(json_get(json_get(line(&r, 2), "summary"), "causes"), 0);
    cr_expect_str_eq(text(cause, "cause"), "ai.x::Frobnicate");
    cr_expect_eq(number(cause, "models"), 2);
    cr_expect_not_null(strstr(r.err, "2 models: not supported: ai.x::Frobnicate (unknown, again)"), "%s",
                       r.err);
}

Test(batch, tells_services)
{
    write_text("m.yaml", "models:\n  \"a<b|c\": {model: none.pt2, output: x}\n  e: {model: mlp.pt2}\n");
    setenv("GITHUB_STEP_SUMMARY", "table.md", 1);
    cr_expect_eq(etc("batch m.yaml -o out -q --junit j.xml --error-format github").code, 3);
    unsetenv("GITHUB_STEP_SUMMARY");
    size_t n;
    const char *xml = slurp("j.xml", &n), *table = slurp("table.md", &n);
    cr_expect_not_null(strstr(xml, "tests=\"2\" failures=\"1\" errors=\"0\""), "%s", xml);
    cr_expect_not_null(strstr(xml, "name=\"a&#60;b|c\""), "%s", xml);
    cr_expect_eq(sh("python3 -c \"import xml.dom.minidom as m; m.parse('j.xml')\"").code, 0);
    cr_expect_not_null(strstr(table, "| a&#60;b&#124;c | failed |"), "%s", table);
    cr_expect_not_null(strstr(table, "| e | written |"), "%s", table);
    Result r = etc("batch m.yaml -o out --error-format github");
    cr_expect_eq(strncmp(r.err, "::error title=etc,file=none.pt2::", 33), 0, "%s", r.err);
}

/* -- wrong lists ------------------------------------------------------------------------------- */

static const struct {
    const char *list, *message;
} wrong[] = {
    {"models: [mlp.pt2, {name: x, model: add.pt2, output: mlp.pte}]",
     "the entries 'mlp' and 'x' have one output, 'mlp.pte'"},
    {"models: [mlp.pt2, {name: x, model: add.pt2, command: emit-c, output: mlp.c}, "
     "{name: y, model: add.pt2, output: mlp.h}]",
     "mlp.h' is the name of two outputs"},
    {"models: {a: {model: mlp.pt2, flags: {data: out/d/x}}, b: {model: add.pt2, output: d/x}}",
     "the file 'out/d/x', which is read"},
    {"models: {b: {model: add.pt2, output: d/x}, a: {model: mlp.pt2, flags: {data: out/d/x}}}",
     "the file 'out/d/x', which is read"},
    {"models: [mlp.pt2, mlp.pt2]", "a second entry is called 'mlp', the first is in line 1"},
    {"extends: w.yaml\nmodels: [mlp.pt2]", "extends itself: 'w.yaml' -> 'w.yaml'"},
    {"extends: v.yaml", "extends itself: 'w.yaml' -> 'v.yaml' -> 'w.yaml'"},
    {"models: {a: {extends: b}, b: {extends: c}, c: {extends: a, model: mlp.pt2}}",
     "extends itself: 'a' -> 'b' -> 'c' -> 'a'"},
    {"models: {a: {model: mlp.pt2, extends: none}}", "there is no entry 'none' to extend"},
    {"models: {a: {flags: {main: true}}}", "'a' has no 'model', and no entry extends it"},
    {"models: {a: {model: mlp.pt2, output: ../x}}",
     "'../x' is not a path beneath the output folder"},
    {"models: {a: {model: mlp.pt2, output: /tmp/x}}", "is not a path beneath"},
    {"models: {a: {model: mlp.pt2, modle: x}}",
     "there is no key 'modle' here; did you mean 'model'?"},
    {"models: {a: {model: mlp.pt2, flags: {backedn: xnnpack}}}", "did you mean '--backend'?"},
    {"models: {a: {model: mlp.pt2, flags: {verify: yes}}}", "--verify takes no value"},
    {"models: {a: {model: mlp.pt2, flags: {quiet: true}}}",
     "'quiet' is not a flag that an entry may set"},
    {"models: {a: {model: mlp.pt2, command: run}}", "the command is compile or emit-c, not 'run'"},
    {"models: {a: {model: mlp.pt2, memory: much}}", "'memory' is a number of bytes"},
    {"models: []", "there are no models in it"},
    {"models: &a [*a]", "anchors are not read"},
    {"models: [!!python/object mlp.pt2]", "tags are not read"},
    {"models:\n\t- mlp.pt2", "is not YAML"},
    {"extends: none.yaml", "none.yaml: error: cannot be read"},
};

Test(batch, wrong_lists_are_refused_before_anything_runs)
{
    write_text("v.yaml", "extends: w.yaml\n");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text("w.yaml", wrong[i].list);
        Result r = etc("batch w.yaml -o out");
        cr_expect(r.code == 1 || r.code == 2 || r.code == 3, "%s: exit %d", wrong[i].list, r.code);
        cr_expect_not_null(strstr(r.err, wrong[i].message), "%s: no '%s' in\n%s", wrong[i].list,
                           wrong[i].message, r.err);
        cr_expect_eq(r.n_out, 0);
        cr_expect(access("out", F_OK) != 0, "%s: leaves a folder", wrong[i].list);
    }
    fails("batch none.yaml", 3, "none.yaml");
    fails("batch l.yaml -j 0", 2, "--jobs expects a number");
}

/* Entries that extend each other in layers: 2^40 paths, and a long chain. */
Test(batch, layers_cost_no_more_than_their_text)
{
    FILE *f = fopen("w.yaml", "w");
    fputs("models:\n  e0: {model: mlp.pt2}\n", f);
    for (int i = 1; i < 40; i++)
        fprintf(f, "  e%d: {extends: [e%d, e%d]}\n", i, i - 1, i - 1);
    fclose(f);
    ok("batch w.yaml -o out -q");
    f = fopen("w.yaml", "w");
    fputs("models:\n", f);
    for (int i = 0; i < 5000; i++)
        fprintf(f, "  e%d: {extends: e%d}\n", i, i + 1);
    fclose(f);
    fails("batch w.yaml -o out2 -q", 1, "extends more than 64 others");
}

/* -- nothing half-written ---------------------------------------------------------------------- */

Test(batch, full_disks_leave_nothing)
{
    Result r = sh("ulimit -f 8; \"$ETC\" batch l.yaml -o out -q");
    cr_expect_eq(r.code, 3, "%s", r.err);
    cr_expect_not_null(strstr(r.err, "cannot write"), "%s", r.err);
    cr_expect_str_eq(sh("find out -name '.etc-*tmp'").out, "");
    cr_expect(access("out/mlp.pte", F_OK) != 0);
    expect_status(RUN, 0, "uwww"); /* the small one was made */
    fails("batch l.yaml -o /proc/none", 3, "cannot be made a folder");
}

enum { LONG = 30 };

/* A list of n entries, each of which takes a while, in a process that is started here. */
static pid_t start_long(int n)
{
    sh("python3 -c \"import numpy as n; n.save('long.npy', n.zeros((400, 1024, 64), n.float32))\"");
    FILE *f = fopen("m.yaml", "w");
    fputs("defaults: {flags: {recipe: int8, calibrate: long.npy}}\nmodels:\n", f);
    for (int i = 0; i < n; i++)
        fprintf(f, "  e%d: {model: mlp.pt2}\n", i);
    fclose(f);
    pid_t p = fork();
    if (!p) {
        signal(SIGINT, SIG_DFL);
        if (!freopen("log", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(98);
        execl(ETC, ETC, "batch", "m.yaml", "-o", "out", "-j2", "-q", (char *)NULL);
        _exit(99);
    }
    usleep(700000);
    return p;
}

/* The batch is asked to end, or killed, long before its models are made. */
static void interrupt_it(int sig)
{
    int status;
    pid_t p = start_long(LONG);
    cr_assert(kill(p, sig) == 0 && waitpid(p, &status, 0) == p);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == sig, "status %x", status);
    usleep(500000); /* what runs when the batch is killed is told by the kernel */
    cr_expect_str_eq(sh("find out -name '.etc-*tmp'").out, "");
    cr_expect(access(arena_printf(arena, "out/e%d.pte", LONG - 1), F_OK) != 0);
    ok("compile mlp.pt2 --recipe int8 --calibrate long.npy -o by_hand -q");
    for (int i = 0; i < LONG; i++) {
        const char *path = arena_printf(arena, "out/e%d.pte", i);
        if (access(path, F_OK) == 0)
            expect_same(path, "by_hand");
    }
}

Test(batch, an_interrupt_leaves_nothing)
{
    interrupt_it(SIGINT);
}

Test(batch, a_kill_leaves_nothing)
{
    interrupt_it(SIGKILL);
}

/* One process of the batch is killed: that entry alone fails. */
Test(batch, a_crash_is_told_and_stops_no_other)
{
    int status;
    pid_t p = start_long(5);
    cr_assert_eq(sh(arena_printf(arena, "set -- $(cat /proc/%d/task/%d/children); kill -9 $1", (int)p,
                                 (int)p)).code, 0);
    cr_assert(waitpid(p, &status, 0) == p && WIFEXITED(status));
    cr_expect_eq(WEXITSTATUS(status), 70);
    size_t n;
    const char *log = slurp("log", &n);
    cr_expect_not_null(strstr(log, "ended by signal 9"), "%s", log);
    cr_expect_not_null(strstr(log, "\"written\": 4, \"unchanged\": 0, \"failed\": 0, \"crashed\": 1"), "%s",
                       log);
}

/* -- docs/nightly.md --------------------------------------------------------------------------- */

/* Writes block number n of a language to a file. */
static void block(const char *language, int n, const char *path)
{
    Result r = sh(arena_printf(
        arena, "awk -v n=%d '/^```%s$/ {f = ++k == n; next} /^```$/ {f = 0} f' " ROOT "/docs/nightly.md > %s",
        n, language, path));
    cr_assert(r.code == 0 && sh(arena_printf(arena, "test -s %s", path)).code == 0);
}

static void make_documented_files(void)
{
    sh("mkdir vision; cp mlp.pt2 keyword.pt2; cp mlp.pt2 vision/detector.pt2; cp mlp.pt2 large.pt2; mv samples vision");
}

Test(batch, the_documented_list_runs)
{
    make_documented_files();
    block("yaml", 1, "nightly.yaml");
    write_text("team.yaml", "defaults: {flags: {backend: xnnpack}}\n");
    sh(HAS_LIMITS ? ":" : "sed -i '/memory:/d' nightly.yaml");
    expect_status("batch nightly.yaml -o out -q", 0, "wwww");
    cr_expect(access("out/vision/detector.pte", F_OK) == 0);
    cr_expect(access("out/detector-c_main.c", F_OK) == 0);
    expect_status("batch nightly.yaml -o out -q", 0, "uuuu");
}

Test(batch, the_documented_ninja_file_runs)
{
    make_documented_files();
    block("ninja", 1, "build.ninja");
    sh("ln -s \"$ETC\" etc; mkdir out");
    Result r = sh("PATH=$PWD:$PATH ninja");
    cr_assert_eq(r.code, 0, "%s%s", r.out, r.err);
    cr_expect(access("out/detector.pte", F_OK) == 0);
    cr_expect_not_null(strstr(sh("PATH=$PWD:$PATH ninja").out, "no work to do"));
    sh("sleep 0.1; cp $DATA/add/model.pt2 keyword.pt2");
    r = sh("PATH=$PWD:$PATH ninja");
    cr_expect_not_null(strstr(r.out, "[1/1]"), "%s", r.out);
}

/* Names that the shell and ninja read otherwise. */
Test(batch, ninja_does_what_the_batch_does)
{
    sh("mv mlp.pt2 \"m p:\\$x.pt2\"; mkdir w; ln -s \"$ETC\" etc");
    write_text("l.yaml", "models:\n  - {name: a, model: \"m p:$x.pt2\", output: \"d e/a$.pte\"}\n"
                         "  - {name: c, extends: a, command: emit-c, flags: {main: true}}\n"
                         "  - {name: b, model: \"m p:$x.pt2\", flags: {recipe: int8, calibrate: samples}}\n");
    expect_status("batch l.yaml -o one -q", 0, "www");
    Result r = ok("batch l.yaml -o two --ninja w/build.ninja");
    cr_expect_eq(r.n_out, 0);
    r = sh("PATH=$PWD:$PATH ninja -f w/build.ninja");
    cr_assert_eq(r.code, 0, "%s%s", r.out, r.err);
    sh("rm -f */*.d */*/*.d");
    cr_expect_str_eq(sums("one"), sums("two"));
    cr_expect_not_null(strstr(sh("PATH=$PWD:$PATH ninja -f w/build.ninja").out, "no work to do"));
    sh("sleep 0.1; cp samples/a.npy samples/b.npy");
    cr_expect_not_null(strstr(sh("PATH=$PWD:$PATH ninja -f w/build.ninja").out, "[1/1]"));
}

/* A row that depends on the machine is not taken for done. */
Test(batch, a_library_of_the_machine_is_asked_again)
{
    if (etc("compile mlp.pt2 --recipe int8 --calibrate samples --fast-calibrate -q -o x").code != 0)
        cr_skip_test("no OpenBLAS");
    write_text("m.yaml", "models:\n  a: {model: mlp.pt2, command: emit-c, flags: {target: host}}\n"
                         "  b: {model: mlp.pt2, flags: {recipe: int8, calibrate: samples, "
                         "fast-calibrate: true}}\n");
    expect_status("batch m.yaml -o out -q", 0, "ww");
    expect_status("batch m.yaml -o out -q", 0, "uw");
}

/* Lists with bytes of other places in them: read or refused, never worse. */
Test(batch, damaged_lists_are_read_or_refused)
{
    size_t n;
    const char *list = slurp("l.yaml", &n);
    unsigned seed = 1;
    for (int i = 0; i < 150; i++) {
        char *bad = arena_str(arena, list, n);
        for (int k = 0; k < 1 + i % 4; k++) {
            seed = seed * 1664525 + 1013904223;
            size_t to = (seed >> 8) % n;
            seed = seed * 1664525 + 1013904223;
            bad[to] = i % 3 ? list[(seed >> 8) % n] : (char)(1 + (seed >> 9) % 255);
        }
        write_text("bad.yaml", bad);
        int code = etc("batch bad.yaml -o bad --ninja bad.ninja").code;
        cr_expect(code >= 0 && code <= 4, "exit %d\n%s", code, bad);
    }
}

/* -- the page ---------------------------------------------------------------------------------- */

Test(batch, a_page_tells_of_all_models)
{
    size_t n;
    write_text("bad.etir", "program \"b\" stage aten\nmethod @forward(%x: f32[2]) {\n"
                           "  %y = aten.none_such.default(%x) : f32[2]\n  return %y\n}\n");
    write_text("l.yaml", "models:\n"
                         "  - {name: good, model: $DATA, flags: {report: pages/a b.html}}\n"
                         "  - {name: \"<bad>\", model: bad.etir}\n"
                         "  - {name: worse, model: bad.etir}\n");
    sh("sed -i \"s#\\$DATA#$DATA/mlp_digits/model.pt2#\" l.yaml; mkdir sum");
    cr_expect_eq(etc("batch l.yaml -o out --report sum/all.html").code, 4);
    const char *page = slurp("sum/all.html", &n);
    cr_expect_not_null(strstr(page, "<a href=\"../out/pages/a%20b.html\">good</a>"), "%s", page);
    cr_expect_not_null(strstr(page, "<td class=\"n\">2</td><td>not supported</td><td>aten.none_such"));
    cr_expect_not_null(strstr(page, "<b>&#60;bad&#62;</b>"));
    cr_expect_null(strstr(page, "<bad"));
    cr_expect_not_null(strstr(page, "3 models: 1 written, 0 unchanged, 2 failed"));
    slurp("out/pages/a b.html", &n);
    cr_expect_eq(etc("batch l.yaml -o out --report sum/all.html").code, 4);
    page = slurp("sum/all.html", &n);
    cr_expect_not_null(strstr(page, "<td>unchanged</td>"));
    cr_expect_not_null(strstr(page, "<td class=\"n\">0 %</td>")); /* delegated, as remembered */
    fails("batch l.yaml -o out --report all.txt", 2, "ends in .html");
}
