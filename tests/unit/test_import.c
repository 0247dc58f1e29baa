/* test_import.c -- imports archives of torch.export.save: the programs that they become, and the
 * files that are refused. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include "compiler/import/import.h"
#include "compiler/import/internal.h"
#include "ir/escape.h"

#define DATA ROOT "/tests/data/"

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *text = calloc(1, *n + 1);
    cr_assert_eq(fread(text, 1, *n, f), *n);
    fclose(f);
    return text;
}

/* Returns what the import prints: the program, or messages; the caller frees it. */
static char *import_text(const char *path, const ImportOptions *o, int *code)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    Diag d = {.out = out};
    Arena *a = arena_new();
    Program *p = import_pt2(a, path, o, &d);
    if (p)
        program_print(p, out);
    *code = diag_exit_code(&d);
    cr_expect_eq(p == NULL, *code != 0, "%s: no program and no message, or both", path);
    arena_free(a);
    fclose(out);
    return text;
}

/* -- models ------------------------------------------------------------------------------ */

static const char *const model[] = {"add", "linear", "softmax", "mlp_digits", "cnn_digits"};
enum { N_MODELS = sizeof model / sizeof *model };

Test(import, models_become_the_programs_recorded)
{
    for (int i = 0; i < N_MODELS; i++) {
        char path[512], golden[512];
        size_t n;
        int code;
        snprintf(path, sizeof path, DATA "%s/model.pt2", model[i]);
        snprintf(golden, sizeof golden, DATA "%s/model.etir", model[i]);
        char *got = import_text(path, NULL, &code);
        if (getenv("ETC_BLESS")) {
            FILE *f = fopen(golden, "w");
            cr_assert_not_null(f);
            fputs(got, f);
            fclose(f);
        }
        char *want = slurp(golden, &n);
        cr_expect_str_eq(got, want, "%s: got\n%s", path, got);
        free(got);
        free(want);
    }
}

Test(import, printed_programs_parse_to_the_same_text)
{
    for (int i = 0; i < N_MODELS; i++) {
        char golden[512], *got = NULL;
        size_t n, len;
        snprintf(golden, sizeof golden, DATA "%s/model.etir", model[i]);
        char *text = slurp(golden, &n);
        FILE *out = open_memstream(&got, &len);
        Diag d = {.out = out};
        Arena *a = arena_new();
        Source src = {.file = "model.etir", .text = text, .line = 1};
        Program *p = program_parse(a, &src, &d);
        if (p)
            program_print(p, out);
        fclose(out);
        cr_expect_str_eq(got, text, "got\n%s", got);
        arena_free(a);
        free(got);
        free(text);
    }
}

Test(import, weights_are_the_bytes_of_the_mapped_file)
{
    Diag d = {.out = stderr};
    Arena *a = arena_new();
    Program *p = import_pt2(a, DATA "linear/model.pt2", NULL, &d);
    cr_assert_not_null(p);
    size_t n;
    char *file = slurp(DATA "linear/model.pt2", &n);
    for (int i = 0; i < p->n_states; i++) {
        const State *s = p->state[i];
        cr_expect_eq(s->n_bytes, type_bytes(s->type));
        cr_expect_not_null(memmem(file, n, s->data, (size_t)s->n_bytes), "%s", s->name);
        s->data[0] ^= 1; /* private: the file stays as it is */
    }
    size_t again_n;
    char *again = slurp(DATA "linear/model.pt2", &again_n);
    cr_expect(n == again_n && !memcmp(file, again, n));
    free(file);
    free(again);
    arena_free(a);
}

Test(import, kinds_are_told_by_content)
{
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    Files *f = files_new(a);
    cr_expect_eq(import_kind(f, DATA "add/model.pt2", &d), IMPORT_PT2);
    cr_expect_eq(import_kind(f, DATA "add", &d), IMPORT_FOLDER);
    cr_expect_eq(import_kind(f, DATA "add/manifest.json", &d), IMPORT_JSON);
    cr_expect_eq(import_kind(f, DATA "ir_tour.etir", &d), IMPORT_ETIR);
    cr_expect_eq(diag_errors(&d), 0);
    cr_expect_eq(import_kind(f, "/dev/null", &d), IMPORT_UNKNOWN);
    cr_expect_eq(import_kind(f, DATA "no such file", &d), IMPORT_UNKNOWN);
    cr_expect_eq(d.n[FAULT_IO], 2);
    cr_expect_eq(import_kind(f, DATA "add/input_0.npy", &d), IMPORT_UNKNOWN);
    cr_expect_eq(d.n[FAULT_MODEL], 1);
    fclose(d.out);
    arena_free(a);
}

/* -- folders ----------------------------------------------------------------------------- */

static char folder[] = "/tmp/etc_import_XXXXXX";

static void run(const char *command)
{
    cr_assert_eq(system(command), 0, "%s", command);
}

static void make_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    run(command);
}

/* The program's text behind its first line, which names the file. */
static const char *body(const char *text)
{
    return strchr(text, '\n');
}

static void expect_same(const char *path, const ImportOptions *o, const char *want)
{
    int code;
    char *got = import_text(path, o, &code);
    cr_expect_eq(code, 0, "%s", got);
    cr_expect_str_eq(body(got), body(want), "%s: got\n%s", path, got);
    free(got);
}

Test(import, unpacked_folders_give_the_same_program, .init = make_folder, .fini = remove_folder)
{
    char path[512], data[512], command[1024];
    size_t n;
    char *want = slurp(DATA "mlp_digits/model.etir", &n);
    snprintf(command, sizeof command,
             "cd '%s' && python3 -m zipfile -e " DATA "mlp_digits/model.pt2 .", folder);
    run(command);
    expect_same(folder, NULL, want); /* the model lies in its only folder */
    snprintf(command, sizeof command,
             "cd '%s' && mkdir alone && cp model/models/model.json alone", folder);
    run(command);
    snprintf(path, sizeof path, "%s/model", folder);
    expect_same(path, NULL, want);
    snprintf(path, sizeof path, "%s/model/models/model.json", folder);
    expect_same(path, NULL, want);
    snprintf(path, sizeof path, "%s/alone/model.json", folder);
    snprintf(data, sizeof data, "%s/model/data", folder);
    expect_same(path, &(ImportOptions){.weights_dir = data}, want);
    snprintf(data, sizeof data, "%s/model", folder);
    expect_same(path, &(ImportOptions){.weights_dir = data}, want);
    int code;
    char *got = import_text(path, NULL, &code);
    cr_expect_eq(code, 3, "%s", got); /* no weights beside it */
    free(got);
    free(want);
}

/* -- hostile files ----------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__)
enum { CHECKS_MEMORY = 0 };
#elif defined(__has_feature)
enum { CHECKS_MEMORY = !__has_feature(address_sanitizer) }; /* clang */
#else
enum { CHECKS_MEMORY = 1 };
#endif

/* Imports in a child, so that a crash is one case's and memory can be measured. */
static int import_in_child(const char *path, char *text, size_t size, struct rusage *used)
{
    int pipe_fd[2], status;
    cr_assert_eq(pipe(pipe_fd), 0);
    pid_t child = fork();
    if (!child) {
        Diag d = {.out = fdopen(pipe_fd[1], "w")};
        Arena *a = arena_new();
        Program *p = import_pt2(a, path, NULL, &d);
        if (p && strstr(path, "/28_")) /* breaks what types say of each other */
            p = program_verify(p, &d) && graph_infer(p->method[0], &d) ? p : NULL;
        if (p)
            program_print(p, d.out);
        fflush(d.out);
        _exit(!p == !diag_exit_code(&d) ? 99 : diag_exit_code(&d));
    }
    close(pipe_fd[1]);
    size_t n = 0;
    ssize_t got;
    char spill[4096];
    while ((got = n + 1 < size ? read(pipe_fd[0], text + n, size - 1 - n)
                               : read(pipe_fd[0], spill, sizeof spill)) > 0)
        n += n + 1 < size ? (size_t)got : 0;
    text[n] = '\0';
    close(pipe_fd[0]);
    wait4(child, &status, 0, used);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_hostile(const char *name, int want, const char *message)
{
    char path[512], text[8192];
    struct rusage used;
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert_eq(stat(path, &s), 0);
    int code = import_in_child(path, text, sizeof text, &used);
    cr_expect_eq(code, want, "%s: exit code %d, expected %d: %s", name, code, want, text);
    cr_expect(strstr(text, message) != NULL, "%s: no '%s' in: %s", name, message, text);
    if (!CHECKS_MEMORY)
        return;
    cr_expect_lt(used.ru_maxrss, 64 * 1024 + 2 * s.st_size / 1024, "%s: %ld kB", name,
                 used.ru_maxrss);
    cr_expect_lt(used.ru_utime.tv_sec + used.ru_stime.tv_sec, 2, "%s: seconds", name);
}

Test(import, hostile_files_are_refused_with_a_reason, .init = make_folder, .fini = remove_folder)
{
    char command[1024], line[1024], name[256], message[512];
    int code, n_cases = 0;
    snprintf(command, sizeof command, "python3 " ROOT "/tests/import/make_hostile.py '%s'", folder);
    run(command);
    snprintf(command, sizeof command, "%s/list.txt", folder);
    FILE *list = fopen(command, "r");
    cr_assert_not_null(list);
    for (; fgets(line, sizeof line, list); n_cases++) {
        message[0] = '\0';
        cr_assert_geq(sscanf(line, "%255[^\t]\t%d\t%511[^\n]", name, &code, message), 2);
        check_hostile(name, code, message);
    }
    fclose(list);
    cr_expect_gt(n_cases, 150);
}

Test(import, tied_weights_share_a_storage, .init = make_folder, .fini = remove_folder)
{
    char command[1024], path[512];
    snprintf(command, sizeof command, "python3 " ROOT "/tests/import/make_hostile.py '%s'", folder);
    run(command);
    snprintf(path, sizeof path, "%s/19_tied.pt2", folder);
    Diag d = {.out = stderr};
    Arena *a = arena_new();
    Program *p = import_pt2(a, path, NULL, &d);
    cr_assert_not_null(p);
    cr_assert_eq(p->n_states, 2);
    cr_expect_eq(p->state[0]->storage, p->state[1]->storage);
    cr_expect_eq(p->state[0]->data, p->state[1]->data);
    arena_free(a);
}

/* Every prefix of an archive, in a block of exactly its size. */
Test(import, archives_cut_off_anywhere_are_refused)
{
    size_t n;
    char *file = slurp(DATA "add/model.pt2", &n);
    FILE *null = fopen("/dev/null", "w");
    for (size_t len = 0; len < n; len++) {
        Diag d = {.out = null};
        Arena *a = arena_new();
        uint8_t *cut = malloc(len + !len);
        memcpy(cut, file, len);
        cr_expect_null(import_pt2_bytes(a, "cut.pt2", cut, len, &d), "%zu bytes", len);
        cr_expect_eq(diag_errors(&d), 1);
        cr_expect_eq(diag_exit_code(&d), 1);
        arena_free(a);
        free(cut);
    }
    Diag d = {.out = null};
    Arena *a = arena_new();
    cr_expect_not_null(import_pt2_bytes(a, "whole.pt2", (uint8_t *)file, n, &d));
    arena_free(a);
    fclose(null);
    free(file);
}

/* Every byte of an archive changed: whatever is read is covered by a check. */
Test(import, archives_with_one_byte_changed_are_refused_or_the_same)
{
    size_t n;
    int code;
    char *file = slurp(DATA "linear/model.pt2", &n);
    char *want = import_text(DATA "linear/model.pt2", NULL, &code);
    uint8_t *changed = malloc(n);
    int n_same = 0;
    for (size_t i = 0; i < n; i++) {
        char *got = NULL;
        size_t got_n;
        FILE *out = open_memstream(&got, &got_n);
        Diag d = {.out = out};
        Arena *a = arena_new();
        memcpy(changed, file, n);
        changed[i] ^= 0x41;
        Program *p = import_pt2_bytes(a, "model.pt2", changed, n, &d);
        if (p)
            program_print(p, out);
        fclose(out);
        cr_expect_eq(p == NULL, diag_errors(&d) > 0);
        cr_expect(!p || !strcmp(body(got), body(want)), "byte %zu: %s", i, got);
        n_same += p != NULL;
        arena_free(a);
        free(got);
    }
    cr_expect_gt(n_same, 0); /* times, unread members, what the format ignores */
    free(changed);
    free(want);
    free(file);
}

/* -- errors are listed together ----------------------------------------------------------- */

Test(import, everything_wrong_is_listed_with_its_place)
{
    size_t n;
    char *json = slurp(ROOT "/tests/import/many_errors.json", &n);
    char *text = NULL;
    FILE *out = open_memstream(&text, &n);
    Diag d = {.out = out};
    Arena *a = arena_new();
    cr_expect_null(import_json_bytes(a, "model.json", (uint8_t *)json, n, "/nowhere", &d));
    fclose(out);
    cr_expect_str_eq(
        text,
        "model.json: error: node 'c' (aten.relu.default): 'c' has dtype complex32\n"
        "model.json: error: node 'a' (mine.first.default): the operator is not "
        "supported; if it is one of your own, --ops FILE says what it computes, or what does; "
        "2 nodes have it, of which this is the first\n"
        "  note: module blocks.0.conv, net.py:12\n"
        "model.json: error: node 'b' (mine.second.default): the operator is not "
        "supported; if it is one of your own, --ops FILE says what it computes, or what does\n",
        "got\n%s", text);
    cr_expect_eq(d.n[FAULT_UNSUPPORTED], 3);
    arena_free(a);
    free(json);
    free(text);
}

/* -- parts ------------------------------------------------------------------------------- */

Test(import, checksums_are_zlibs)
{
    enum { N = 1000 };
    static uint8_t data[N + 16];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i * 7 + i / 3);
    for (size_t start = 0; start < 16; start++)
        for (size_t n = 0; n <= N; n++)
            cr_expect_eq(crc32_of(data + start, n), crc32_z(0, data + start, n), "%zu+%zu", start,
                         n);
}

Test(import, utf8_is_told_from_what_is_not)
{
    static const char *const good[] = {
        "", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"};
    static const char *const bad[] = {"\x80",         "\xc0\x80",         "\xc3",
                                      "\xe0\x80\x80", "\xed\xa0\x80",     "\xf4\x90\x80\x80",
                                      "\xff",         "\xf0\x80\x80\x80", "\xe2\x82"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        cr_expect(is_utf8(good[i], strlen(good[i])), "%zu", i);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_not(is_utf8(bad[i], strlen(bad[i])), "%zu", i);
}

/* -- ONNX ----------------------------------------------------------------------------------- */

/* A field of less than 16,384 bytes; returns its end. */
static uint8_t *put_field(uint8_t *to, int number, const void *data, size_t n)
{
    to[0] = (uint8_t)(number << 3 | 2);
    to[1] = (uint8_t)(n & 127) | 128;
    to[2] = (uint8_t)(n >> 7);
    memcpy(to + 3, data, n);
    return to + 3 + n;
}

/* y = relu(w) of 16 floats; the number of bytes. */
static size_t put_onnx(uint8_t *to, const float w[16])
{
    uint8_t part[3][256], *end;
    memcpy(part[0], "\x08\x02\x08\x02\x08\x04\x10\x01", 8); /* [2, 2, 4] of floats */
    end = put_field(put_field(part[0] + 8, 8, "w", 1), 9, w, 16 * sizeof *w);
    uint8_t *graph = put_field(part[2], 5, part[0], (size_t)(end - part[0]));
    end = put_field(put_field(put_field(part[1], 1, "w", 1), 2, "y", 1), 4, "Relu", 4);
    graph = put_field(graph, 1, part[1], (size_t)(end - part[1]));
    end = put_field(part[1], 1, "y", 1);
    graph = put_field(graph, 12, part[1], (size_t)(end - part[1]));
    end = put_field(put_field(to, 7, part[2], (size_t)(graph - part[2])), 8, "\x10\x11", 2);
    return (size_t)(end - to);
}

Test(import, weights_of_onnx_stay_where_they_lie_until_elements_are_read)
{
    static uint8_t file[512 + 4];
    float w[16];
    int n_moved = 0;
    for (int i = 0; i < 16; i++)
        w[i] = (float)i - 8;
    for (int shift = 0; shift < 4; shift++) {
        Diag d = {.out = stderr};
        Arena *a = arena_new();
        size_t n = put_onnx(file + shift, w);
        Program *p = import_onnx_bytes(a, "w.onnx", file + shift, n, NULL, &d);
        cr_assert(p && p->n_states == 1, "shift %d", shift);
        State *s = p->state[0];
        const uint8_t *at = s->data;
        cr_expect(at >= file + shift && at + sizeof w <= file + shift + n, "shift %d", shift);
        program_align(p);
        const float *got = state_elements(s);
        cr_expect_eq((uintptr_t)got % sizeof *got, 0, "shift %d", shift);
        cr_expect_arr_eq(got, w, sizeof w, "shift %d", shift);
        cr_expect_eq((uintptr_t)at % sizeof *got != 0, (const uint8_t *)got != at, "shift %d", shift);
        n_moved += (const uint8_t *)got != at;
        arena_free(a);
    }
    cr_expect_eq(n_moved, 3);
}
