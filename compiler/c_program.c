/* c_program.c -- runs the emitted C for `etc verify FILE.c` and `etc run --target`.  The system's C
 * compiler builds it in a temporary folder, with OUT_main.c as the program, which reads and writes
 * .npy files.
 *
 * The compiler and the program get their words as they are, without a shell. */
#define _GNU_SOURCE
#include "compiler/compiler.h"
#include "compiler/run.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct CProgram {
    const Options *o;
    Arena *arena;
    Diag *diag;
    const char *folder, *path; /* the temporary folder, and the program in it */
    const char *source;        /* OUT.c */
    const Program *model;      /* the model that it was emitted from; NULL: the user gave the C */
    const char *outputs;       /* the folder that the last run wrote into */
    Strings word;              /* the words of the next run */
    int n_calls, n_ran, n_runs; /* the calls that are staged, those of the last run, the runs */
};

/* -- processes --------------------------------------------------------------------------------- */

/* Adds the first lines of the messages of a process as notes. */
static void note_lines(CProgram *c, const char *path)
{
    enum { LINES = 12, MOST = 4000 };
    char text[MOST + 1];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, MOST, f) : 0;
    text[n] = '\0';
    char *rest = text, *line;
    for (int i = 0; i < LINES && (line = strsep(&rest, "\n")); i++)
        if (*line)
            diag_note(c->diag, "%s", line);
    if (f)
        fclose(f);
}

static int start(char *const *word, const char *err, pid_t *pid)
{
    posix_spawn_file_actions_t to;
    int code = posix_spawn_file_actions_init(&to);
    if (code)
        return code;
    code = posix_spawn_file_actions_addopen(&to, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!code)
        code = posix_spawn_file_actions_addopen(&to, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!code)
        code = posix_spawn_file_actions_addopen(&to, STDERR_FILENO, err,
                                                O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!code)
        code = posix_spawnp(pid, word[0], &to, NULL, word, environ);
    posix_spawn_file_actions_destroy(&to);
    return code;
}

static bool has_ended_well(CProgram *c, int status, const char *what, const char *err)
{
    const Loc loc = {.file = c->o->model};
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        return true;
    if (WIFSIGNALED(status))
        diag_error(c->diag, loc, "%s was ended by signal %d, %s", what, WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
    else
        diag_error(c->diag, loc, "%s fails with exit code %d", what, WEXITSTATUS(status));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGILL)
        diag_note(c->diag, "this machine lacks instructions that the C was written for");
    note_lines(c, err);
    return false;
}

/* Runs a program, which messages call `what`, to its end; `hint` says what to do if there is
 * none. */
static bool run(CProgram *c, Strings *word, const char *what, const char *hint)
{
    const char *err = arena_printf(c->arena, "%s/messages", c->folder);
    const Loc loc = {.file = c->o->model};
    int status;
    pid_t pid;
    PUSH(c->arena, word->item, word->n, NULL);
    int code = start((char *const *)(uintptr_t)word->item, err, &pid);
    if (code)
        return diag_io(c->diag, loc, "%s, %s, cannot be run: %s%s", what, word->item[0],
                       strerror(code), hint);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return diag_io(c->diag, loc, "%s is lost: %s", what, strerror(errno));
    return has_ended_well(c, status, what, err);
}

static void add(CProgram *c, Strings *word, const char *item)
{
    PUSH(c->arena, word->item, word->n, item);
}

/* -- building ---------------------------------------------------------------------------------- */

/* Adds the words of an environment variable, such as CC="gcc -m32", or those of `otherwise` if
 * it is unset or blank. */
static void add_words(CProgram *c, Strings *word, const char *variable, const char *otherwise)
{
    const char *value = getenv(variable);
    value = value && value[strspn(value, " ")] ? value : otherwise;
    char *rest = arena_str(c->arena, value, strlen(value)), *item;
    while ((item = strsep(&rest, " ")))
        if (*item)
            add(c, word, item);
}

/* Returns a file's name as a path that cannot be taken for a flag. */
static const char *as_path(CProgram *c, const char *name)
{
    return *name == '-' ? arena_printf(c->arena, "./%s", name) : name;
}

static bool compile(CProgram *c)
{
    static const char *const more[] = {"_avx2.c", "_avx512.c", "_vnni.c", "_weights.S",
                                       "_threads.c"};
    const char *file = as_path(c, c->source);
    const char *stem = arena_str(c->arena, file, strlen(file) - 2);
    const char *program = arena_printf(c->arena, "%s_main.c", stem);
    Strings word = {0};
    if (!file_exists(file) || !file_exists(program))
        return diag_io(c->diag, (Loc){.file = file_exists(file) ? program : file},
                       "is not there; etc emit-c --main writes both %s and %s", file, program);
    add_words(c, &word, "CC", "cc");
    add_words(c, &word, "CFLAGS", "-O3");
    add(c, &word, "-o");
    add(c, &word, c->path);
    add(c, &word, file);
    add(c, &word, program);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (file_exists(arena_join(c->arena, stem, more[i])))
            add(c, &word, arena_join(c->arena, stem, more[i]));
    add(c, &word, "-lm");
    return run(c, &word, "the C compiler",
               "; install one, or name yours in the variable CC");
}

/* Checks that the C for --target can be compiled on this machine.  Only the run shows whether
 * the CPU has the instructions. */
static bool is_for_here(const Options *o, Diag *d)
{
    struct utsname here;
    const Target *t = c_target(o);
    if (!t || !t->machine || uname(&here) || !strcmp(t->machine, here.machine))
        return true;
    return diag_unsupported(d, (Loc){.file = o->model},
                            "C for --target %s can only be compiled and run on %s, and this is %s; "
                            "`etc emit-c --main` writes a program to run there",
                            t->name, t->machine, here.machine);
}

/* Writes the C of the model into the folder. */
static bool emit(CProgram *c)
{
    Options to = *c->o;
    to.output = c->source = arena_printf(c->arena, "%s/model.c", c->folder);
    to.main = to.quiet = true;
    to.json = false;
    c->model = build_c_program(&to, c->arena, c->diag);
    return c->model != NULL;
}

CProgram *c_program_build(const Options *o, Arena *a, Diag *d)
{
    const char *under = getenv("TMPDIR");
    CProgram *c = NEW(a, CProgram, 1);
    *c = (CProgram){.o = o, .arena = a, .diag = d, .source = o->model};
    char *folder = arena_printf(a, "%s/etc-c-XXXXXX", under && *under ? under : "/tmp");
    if (o->target && !is_for_here(o, d))
        return NULL;
    if (!mkdtemp(folder)) {
        diag_io(d, (Loc){.file = folder}, "cannot be made a folder: %s", strerror(errno));
        return NULL;
    }
    c->folder = folder;
    c->path = arena_printf(a, "%s/program", folder);
    if ((!o->target || emit(c)) && compile(c))
        return c;
    c_program_end(c);
    return NULL;
}

const Graph *c_program_method(const CProgram *c)
{
    assert(c->model && c->model->n_methods == 1);
    return c->model->method[0];
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void c_program_end(CProgram *c)
{
    if (c)
        nftw(c->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* -- calls ------------------------------------------------------------------------------------- */

static const char *literal_text(Arena *a, const Arg *v)
{
    if (v->kind == ARG_INT)
        return arena_printf(a, "%" PRId64, v->dim.value);
    if (v->kind == ARG_FLOAT)
        return arena_printf(a, "%.17g", v->f);
    if (v->kind == ARG_STRING)
        return arena_printf(a, "\"%s\"", escape(a, ESCAPE_JSON, v->str));
    return v->kind == ARG_NONE ? "null" : v->b ? "true" : "false";
}

static void begin_call(CProgram *c)
{
    add(c, &c->word, c->n_calls++ ? "--next" : c->path);
}

void c_program_stage_words(CProgram *c, const Strings *in)
{
    begin_call(c);
    for (int i = 0; i < in->n; i++) {
        add(c, &c->word, "--input");
        add(c, &c->word, in->item[i]);
    }
}

bool c_program_stage(CProgram *c, const Graph *g, EtcTensor *const *in)
{
    bool ok = true;
    begin_call(c);
    for (int i = 0; i < g->n_in && ok; i++) {
        add(c, &c->word, "--input");
        const Arg *fixed = g->in[i]->literal;
        if (fixed) {
            add(c, &c->word, arena_join(c->arena, "value:", literal_text(c->arena, fixed)));
            continue;
        }
        assert(in[i]);
        const char *path = arena_printf(c->arena, "%s/in_%d_%d.npy", c->folder, c->n_calls - 1, i);
        OutFile f = npy_file(c->arena, in[i]);
        ok = out_write(&f, path, c->diag);
        add(c, &c->word, path);
    }
    return ok;
}

bool c_program_run(CProgram *c)
{
    assert(c->n_calls > 0);
    c->outputs = arena_printf(c->arena, "%s/out_%d", c->folder, c->n_runs++);
    add(c, &c->word, "--output-dir");
    add(c, &c->word, c->outputs);
    bool ok = run(c, &c->word, "the program", "");
    c->word = (Strings){0};
    c->n_ran = c->n_calls;
    c->n_calls = 0;
    return ok;
}

const EtcTensor *c_program_output(const CProgram *c, int call, int output, int dtype, Arena *a)
{
    assert(call < c->n_ran);
    const char *folder = c->n_ran > 1 ? arena_printf(a, "%s/%d", c->outputs, call) : c->outputs;
    return npy_read(c->o->files, a, arena_printf(a, "%s/output_%d.npy", folder, output), dtype,
                    c->diag);
}
