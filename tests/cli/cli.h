/* cli.h -- runs commands for the tests of the command line, in an empty folder for each test, and
 * checks what they print, their exit codes and the files that they leave.  ETC is the program, DATA
 * is tests/data. */
#ifndef ETC_TESTS_CLI_H
#define ETC_TESTS_CLI_H

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
static Arena *arena;            /* what a test reads lives as long as the test */
static JsonDoc doc;             /* the last one */

static inline void make_folders(void)
{
    strcpy(home, "/tmp/etc-cli-XXXXXX");
    strcpy(logs, "/tmp/etc-log-XXXXXX");
    cr_assert(mkdtemp(home) && mkdtemp(logs) && chdir(home) == 0);
    arena = arena_new();
    setenv("ETC", ETC, 1);
    setenv("DATA", ROOT "/tests/data", 1);
    setenv("ASAN_OPTIONS", "exitcode=99:detect_stack_use_after_return=0", 1);
    setenv("UBSAN_OPTIONS", "halt_on_error=1:exitcode=99", 1);
}

static inline void remove_folders(void)
{
    char command[256];
    arena_free(arena);
    snprintf(command, sizeof command, "rm -rf '%s' '%s'", home, logs);
    cr_expect(chdir("/") == 0 && system(command) == 0);
}

/* -- commands and files ------------------------------------------------------------------------ */

static inline char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = NEW(arena, char, *n + 1);
    cr_assert_eq(fread(text, 1, *n, f), *n, "%s", path);
    fclose(f);
    return text;
}

typedef struct Result {
    int code;
    char *out, *err;
    size_t n_out, n_err;
} Result;

/* Runs a shell command. */
static inline Result sh(const char *command)
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

/* The same of a command that has to succeed. */
static inline void sh_ok(const char *command)
{
    Result r = sh(command);
    cr_assert_eq(r.code, 0, "%s: exit %d\n%s%s", command, r.code, r.out, r.err);
}

/* The same, of `etc ARGUMENTS`. */
static inline Result etc(const char *arguments)
{
    char line[4096];
    snprintf(line, sizeof line, "\"$ETC\" %s", arguments);
    return sh(line);
}

/* The run must succeed. */
static inline Result ok(const char *arguments)
{
    Result r = etc(arguments);
    cr_assert_eq(r.code, 0, "etc %s: exit %d\n%s", arguments, r.code, r.err);
    return r;
}

/* The run must fail so, with a message that holds `text`, and with nothing on standard output. */
static inline void fails(const char *arguments, int code, const char *text)
{
    Result r = etc(arguments);
    cr_expect_eq(r.code, code, "etc %s: exit %d, expected %d\n%s", arguments, r.code, code, r.err);
    cr_expect_not_null(strstr(r.err, text), "etc %s: no '%s' in\n%s", arguments, text, r.err);
    cr_expect_eq(r.n_out, 0, "etc %s: prints to standard output\n%s", arguments, r.out);
}

/* The names in the folder, hidden ones too, sorted and with a blank behind each. */
static inline char *listing(void)
{
    struct dirent **entry;
    char *text = NEW(arena, char, 4096);
    int n = scandir(".", &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (strcmp(entry[i]->d_name, ".") != 0 && strcmp(entry[i]->d_name, "..") != 0) {
            strcat(text, entry[i]->d_name);
            strcat(text, " ");
        }
        free(entry[i]);
    }
    free(entry);
    return text;
}

static inline void expect_files(const char *names)
{
    char *got = listing();
    cr_expect_str_eq(got, names, "the folder holds: %s; expected: %s", got, names);
}

static inline void expect_same(const char *a, const char *b)
{
    size_t n, m;
    char *x = slurp(a, &n), *y = slurp(b, &m);
    cr_expect(n == m && !memcmp(x, y, n), "%s and %s differ", a, b);
}

/* -- JSON -------------------------------------------------------------------------------------- */

/* Standard output must be one object with "schema": 1. */
static inline const Json *json(const Result *r)
{
    static Diag d;
    int64_t schema = 0;
    d.out = stderr;
    size_t n = strlen(r->out);
    cr_assert(n && r->out[n - 1] == '\n' && strlen(r->out) == r->n_out, "no line: %s", r->out);
    cr_assert(json_parse(arena, "stdout", (const uint8_t *)r->out, n, &d, &doc), "%s", r->out);
    cr_assert(json_int(json_get(doc.root, "schema"), &schema) && schema == 1, "%s", r->out);
    return doc.root;
}

static inline const Json *item(const Json *array, int i)
{
    JsonIter it = json_iter(array);
    for (int k = 0; json_next(&it); k++)
        if (k == i)
            return it.value;
    cr_assert_fail("an array has no item %d", i);
    return NULL;
}

static inline int64_t number(const Json *object, const char *key)
{
    int64_t v = INT64_MIN;
    cr_assert(json_int(json_get(object, key), &v), "no integer '%s'", key);
    return v;
}

static inline const char *text(const Json *object, const char *key)
{
    const char *s = json_string(json_get(object, key));
    cr_assert_not_null(s, "no string '%s'", key);
    return s;
}

/* -- tensors ----------------------------------------------------------------------------------- */

/* The elements of a float32 .npy file as numpy writes it; header[] receives its dict. */
static inline const float *floats(const char *path, char header[256], size_t *n)
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
    float *v = NEW(arena, float, *n + 1);
    memcpy(v, bytes + 10 + len, *n * 4);
    return v;
}

/* A .npy of f32[shape]. */
static inline void write_images(const char *path, const char *shape, const float *v, size_t n)
{
    char header[120];
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }",
             shape);
    FILE *f = fopen(path, "wb");
    fprintf(f, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, 0, 118, 0, header);
    fwrite(v, sizeof *v, n, f);
    fclose(f);
}

/* -- emitted C that etc builds --------------------------------------------------------------- */

/* A build without optimization is fast; temporary folders lie where the test can see them. */
static inline void watch_builds(void)
{
    setenv("CFLAGS", "-O0", 1);
    sh_ok("mkdir tmp");
    setenv("TMPDIR", "tmp", 1);
}

static inline void no_folder_is_left(void)
{
    sh_ok("test -z \"$(ls -A tmp)\"");
}

/* Within 1e-4 of the size of torch's output, and of the same shape. */
static inline void expect_close(const char *got, const char *model, const char *want)
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

static inline void write_text(const char *path, const char *content)
{
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(content, f);
    fclose(f);
}

/* c.etir, whose weights are in `side`: it has a state, an input that is always 3 and a size. */
static inline void make_counter(void)
{
    write_text("c.etir", "program \"c\" stage aten\n"
                         "sym %s in 1..8\n"
                         "mutable %total = \"total\" : f32[2] in \"-\"+0\n"
                         "method @forward(%x: f32[2], %k: int(3) = 3, %y: f32[%s]) {\n"
                         "  %add = aten.add.Tensor(%total, %x, alpha=1) : f32[2]\n"
                         "  %z = aten.mul.Scalar(%y, 2) : f32[%s]\n"
                         "  update %total = %add\n  return %add, %z\n}\n");
    sh("printf '\\0\\0\\0\\0\\0\\0\\200\\77' > side");
    write_images("v.npy", "2,", (const float[]){1, -2}, 2);
    write_images("w.npy", "3,", (const float[]){1, -2, 4}, 3);
}

#endif
