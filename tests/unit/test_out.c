/* test_out.c -- tests that files are written completely or not at all, also if a signal arrives or
 * the process is killed, and all together, also if another process writes the same files.
 *
 * The functions that create unnamed files and locks are replaced here, in order to simulate file
 * systems that have neither. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "emit/emit.h"
#include "tests/unit/folder.h"

TestSuite(out, .init = enter_folder, .fini = leave_folder, .timeout = 120);

/* -- file systems ------------------------------------------------------------------------------ */

enum { ALL, NO_UNNAMED, NO_LOCKS, NEITHER, N_KINDS };
static int kind;

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if ((flags & O_TMPFILE) == O_TMPFILE && (kind == NO_UNNAMED || kind == NEITHER)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int flock(int fd, int operation)
{
    if (kind == NO_LOCKS || kind == NEITHER) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static bool has_unnamed(void)
{
    int fd = open(".", O_TMPFILE | O_WRONLY, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void touch(const char *name)
{
    close(open(name, O_WRONLY | O_CREAT, 0600));
}

/* -- a write that takes long ------------------------------------------------------------------- */

/* Returns whether the folder has a file whose name begins so. */
static bool has_file(const char *start)
{
    bool has = false;
    DIR *d = opendir(".");
    for (struct dirent *e; (e = readdir(d));)
        has = has || (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                      !strncmp(e->d_name, start, strlen(start)));
    closedir(d);
    return has;
}

/* Writes "big", 64 GiB of zeros: as much as there is before a signal comes. */
static int write_big(int (*prepare)(void))
{
    OutPiece piece = {.data = "", .n = 0, .zeros = (int64_t)64 << 30};
    OutFile f = {&piece, 1};
    Diag d = {.out = fopen("/dev/null", "w")};
    if (prepare && prepare())
        return 9;
    bool ok = out_write(&f, "big", &d);
    return ok ? 0 : diag_exit_code(&d);
}

static void default_signals(void)
{
    static const int sig[] = {SIGHUP, SIGINT, SIGTERM};
    for (int i = 0; i < 3; i++)
        signal(sig[i], SIG_DFL);
}

static pid_t start(int (*prepare)(void))
{
    pid_t child = fork();
    if (!child) {
        default_signals();
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* it would fill the disk if the test ended early */
        _exit(write_big(prepare));
    }
    return child;
}

static int status_of(pid_t child)
{
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* Returns whether a process has a file open in the folder to which it has written. */
static bool is_writing(pid_t child)
{
    char path[64], target[256];
    struct stat st;
    for (int fd = 3; fd < 64; fd++) {
        snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)child, fd);
        ssize_t n = readlink(path, target, sizeof target);
        if (n > (ssize_t)strlen(folder) && !memcmp(target, folder, strlen(folder)) &&
            stat(path, &st) == 0 && st.st_size > 0)
            return true;
    }
    return false;
}

static void wait_for_writing(pid_t child)
{
    for (int i = 0; i < 10000 && !is_writing(child); i++)
        nap();
    cr_assert(is_writing(child), "nothing is written");
}

Test(out, a_signal_leaves_nothing_behind)
{
    static const int sig[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3 * N_KINDS; i++) {
        kind = i / 3;
        pid_t child = start(NULL);
        wait_for_writing(child);
        kill(child, sig[i % 3]);
        int status = status_of(child);
        cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == sig[i % 3], "ends with %x", status);
        cr_expect_not(has_file(""), "signal %d leaves a file", sig[i % 3]);
    }
}

static OutFile one_piece(const char *text, OutPiece *piece)
{
    *piece = (OutPiece){.data = text, .n = (int64_t)strlen(text)};
    return (OutFile){piece, 1};
}

static bool write_text(const char *text, const char *path)
{
    Diag d = {.out = stderr};
    OutPiece piece;
    OutFile f = one_piece(text, &piece);
    return out_write(&f, path, &d);
}

/* Where a file has a name while it is written, the next run in the folder removes it. */
Test(out, a_kill_leaves_nothing_behind)
{
    for (kind = ALL; kind <= NO_UNNAMED; kind++) {
        pid_t child = start(NULL);
        wait_for_writing(child);
        kill(child, SIGKILL);
        cr_expect(WIFSIGNALED(status_of(child)));
        bool is_named = kind == NO_UNNAMED || !has_unnamed();
        cr_expect_eq(has_file(".etc-"), is_named, "kind %d", kind);
        cr_assert(write_text("x", "small"));
        cr_expect_not(has_file(".etc-"), "kind %d", kind);
        cr_expect_not(has_file("big"), "kind %d", kind);
        unlink("small");
    }
}

static int ignore_hangups(void)
{
    return signal(SIGHUP, SIG_IGN) == SIG_ERR;
}

Test(out, what_is_ignored_does_not_end_a_write)
{
    pid_t child = start(ignore_hangups);
    wait_for_writing(child);
    kill(child, SIGHUP);
    nanosleep(&(struct timespec){0, 30000000}, NULL);
    cr_expect_eq(waitpid(child, NULL, WNOHANG), 0, "it has ended");
    kill(child, SIGTERM);
    status_of(child);
    cr_expect_not(has_file(""));
}

static int limit_size(void)
{
    struct rlimit l = {20 << 20, 20 << 20};
    signal(SIGXFSZ, SIG_IGN);
    return setrlimit(RLIMIT_FSIZE, &l);
}

Test(out, a_write_that_fails_midway_leaves_nothing_behind)
{
    for (kind = ALL; kind < N_KINDS; kind++) {
        int status = status_of(start(limit_size));
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 3, "ends with %x", status);
        cr_expect_not(has_file(""));
    }
}

/* The system tells of it where it reads the bytes for a write. */
Test(out, a_mapped_file_that_shrinks_is_told)
{
    char *told = NULL;
    size_t n;
    Diag d = {.out = open_memstream(&told, &n)};
    touch("in");
    cr_assert_eq(truncate("in", 1 << 20), 0);
    int fd = open("in", O_RDONLY);
    void *data = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE, fd, 0);
    cr_assert(data != MAP_FAILED && truncate("in", 0) == 0);
    OutPiece piece = {.data = data, .n = 1 << 20};
    OutFile f = {&piece, 1};
    cr_expect_not(out_write(&f, "out", &d));
    fclose(d.out);
    cr_expect_eq(diag_exit_code(&d), 3);
    cr_expect_str_eq(told, "out: error: cannot write: a file that is read has become shorter\n");
    cr_expect_not(has_file("out") || has_file(".etc-"));
    close(fd);
    free(told);
}

/* Signals come through again once a batch has ended. */
Test(out, signals_wait_no_longer_than_a_batch)
{
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    OutPiece piece = {.data = "x", .n = 1, .zeros = 1};
    OutFile f = {&piece, 1};
    Diag d = {.out = stderr};
    OutBatch b = {.arena = arena_new()};
    for (int way = 0; way < 2; way++) {
        cr_assert(out_add(&b, &f, "a", &d) && out_add(&b, &f, "b", &d) && out_stage(&b, &d));
        if (way)
            cr_assert(out_commit(&b, &d));
        else
            out_discard(&b);
        sigprocmask(SIG_SETMASK, NULL, &after);
        for (int sig = 1; sig < 32; sig++)
            cr_expect_eq(sigismember(&before, sig), sigismember(&after, sig), "signal %d", sig);
        cr_expect_eq(has_file("a"), way);
        cr_expect_not(has_file(".etc-"));
    }
    arena_free(b.arena);
}

/* -- other runs -------------------------------------------------------------------------------- */

static const char *temp(int number)
{
    static char name[64];
    snprintf(name, sizeof name, ".etc-%ld-%d.tmp", (long)geteuid(), number);
    return name;
}

/* Files are removed that were left by who was killed between naming and renaming; files of others
 * are not touched. */
Test(out, what_a_kill_left_is_removed)
{
    for (kind = ALL; kind <= NO_UNNAMED; kind++) {
        for (int i = 0; i < 5; i++)
            touch(temp(i));
        touch(".etc-x-0.tmp");
        cr_assert(write_text("x", "a"));
        cr_expect_not(has_file(temp(0)) || has_file(temp(1)) || has_file(temp(4)), "kind %d", kind);
        cr_expect(has_file("a") && has_file(".etc-x-0.tmp"), "kind %d", kind);
        unlink("a");
        unlink(".etc-x-0.tmp");
    }
}

/* A process that has number 0 locked until it is told to end. */
static pid_t start_owner(int *end)
{
    int ready[2], go[2];
    char c = 0;
    cr_assert(pipe(ready) == 0 && pipe(go) == 0);
    pid_t child = fork();
    if (!child) {
        close(go[1]);
        int fd = open(temp(0), O_WRONLY | O_CREAT, 0600);
        bool ok = fd >= 0 && flock(fd, LOCK_EX) == 0 && write(ready[1], &c, 1) == 1;
        ok = ok && read(go[0], &c, 1) == 0; /* until that end is closed */
        _exit(ok && unlink(temp(0)) == 0 ? 0 : 1);
    }
    cr_assert(read(ready[0], &c, 1) == 1);
    close(ready[0]), close(ready[1]), close(go[0]);
    *end = go[1];
    return child;
}

static pid_t start_writer(int owners_end)
{
    pid_t child = fork();
    if (!child) {
        close(owners_end);
        default_signals();
        _exit(write_text("x", "a") ? 0 : 3);
    }
    return child;
}

static void expect_waiting(pid_t writer)
{
    for (int i = 0; i < 50; i++)
        nap();
    cr_expect_eq(waitpid(writer, NULL, WNOHANG), 0, "does not wait");
    cr_expect(has_file(temp(0)) && !has_file("a"));
}

Test(out, a_run_waits_for_another_that_writes_there)
{
    for (kind = ALL; kind <= NO_UNNAMED; kind++) {
        int end;
        pid_t owner = start_owner(&end), writer = start_writer(end);
        expect_waiting(writer);
        close(end);
        cr_expect_eq(status_of(owner), 0, "its file was taken");
        cr_expect_eq(status_of(writer), 0);
        cr_expect(has_file("a") && !has_file(".etc-"));
        unlink("a");
    }
}

Test(out, waiting_can_be_interrupted)
{
    for (kind = ALL; kind <= NO_UNNAMED; kind++) {
        int end;
        pid_t owner = start_owner(&end), writer = start_writer(end);
        expect_waiting(writer);
        kill(writer, SIGTERM);
        int status = status_of(writer);
        cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "ends with %x", status);
        close(end);
        cr_expect_eq(status_of(owner), 0, "its file was taken");
        cr_expect_not(has_file(""));
    }
}

enum { N_FILES = 12, N_RUNS = 6, N_ROUNDS = 8 };

/* In a folder called one or two, or by way of the other. */
static const char *name_file(Arena *a, int i, bool by_the_other)
{
    return arena_printf(a, "%s%s/f%d", by_the_other ? i % 2 ? "two/../" : "one/../" : "",
                        i % 2 ? "one" : "two", i);
}

/* Each file says who wrote it.  `jumbled`: in another order and by other paths. */
static bool write_all(const char *who, bool is_jumbled)
{
    Diag d = {.out = stderr};
    OutPiece piece;
    OutFile f = one_piece(who, &piece);
    OutBatch b = {.arena = arena_new()};
    bool ok = true;
    for (int i = 0; i < N_FILES && ok; i++) {
        int k = is_jumbled ? N_FILES - 1 - i : i;
        ok = out_add(&b, &f, name_file(b.arena, k, is_jumbled), &d);
    }
    ok = ok && out_stage(&b, &d) && out_commit(&b, &d);
    out_discard(&b);
    arena_free(b.arena);
    return ok;
}

static pid_t start_run(int number)
{
    pid_t child = fork();
    if (!child) {
        bool ok = true;
        char who[16];
        snprintf(who, sizeof who, "%d", number);
        for (int i = 0; i < N_ROUNDS && ok; i++)
            ok = write_all(who, number % 2);
        _exit(ok ? 0 : 3);
    }
    return child;
}

static void expect_one_writer(void)
{
    char first[16] = "", is[16];
    Arena *a = arena_new();
    for (int i = 0; i < N_FILES; i++) {
        const char *name = name_file(a, i, false);
        FILE *f = fopen(name, "r");
        cr_assert(f && fgets(is, sizeof is, f), "%s", name);
        fclose(f);
        if (!i)
            memcpy(first, is, sizeof first);
        cr_expect_str_eq(is, first, "%s is of another run, kind %d", name, kind);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(chdir(i ? "../two" : "one"), 0);
        cr_expect_not(has_file(".etc-"));
    }
    cr_assert_eq(chdir(".."), 0);
    arena_free(a);
}

Test(out, files_of_several_runs_do_not_mix)
{
    cr_assert(mkdir("one", 0700) == 0 && mkdir("two", 0700) == 0);
    for (kind = ALL; kind <= NO_UNNAMED; kind++)
        for (int round = 0; round < 5; round++) {
            pid_t run[N_RUNS];
            for (int i = 0; i < N_RUNS; i++)
                run[i] = start_run(i);
            for (int i = 0; i < N_RUNS; i++)
                cr_expect_eq(status_of(run[i]), 0);
            expect_one_writer();
        }
}

/* Some of them are killed; who comes last finds and leaves all in order. */
Test(out, files_of_runs_do_not_mix_where_some_are_killed)
{
    cr_assert(mkdir("one", 0700) == 0 && mkdir("two", 0700) == 0);
    for (int round = 0; round < 12; round++) {
        pid_t run[N_RUNS];
        kind = round % 2;
        for (int i = 0; i < N_RUNS; i++)
            run[i] = start_run(i);
        for (int i = 0; i < N_RUNS / 2; i++) {
            nap();
            kill(run[i], SIGKILL);
        }
        for (int i = 0; i < N_RUNS; i++) {
            int status = status_of(run[i]);
            cr_expect(!status || (i < N_RUNS / 2 && WIFSIGNALED(status)), "ends with %x", status);
        }
        cr_assert(write_all("last", false));
        expect_one_writer();
    }
}

/* Nobody waits there, but each one's files are whole, and none is left. */
Test(out, where_files_cannot_be_locked_runs_still_write)
{
    cr_assert(mkdir("one", 0700) == 0 && mkdir("two", 0700) == 0);
    for (kind = NO_LOCKS; kind <= NEITHER; kind++) {
        pid_t run[N_RUNS];
        for (int i = 0; i < N_RUNS; i++)
            run[i] = start_run(i);
        for (int i = 0; i < N_RUNS; i++)
            cr_expect_eq(status_of(run[i]), 0);
        cr_assert(write_all("last", true));
        expect_one_writer();
    }
}

/* More files than the process may have open, at first. */
Test(out, many_files_at_once)
{
    enum { N = 300 };
    struct rlimit r;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = 64;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
    for (kind = ALL; kind <= NO_UNNAMED; kind++) {
        Diag d = {.out = stderr};
        OutPiece piece;
        OutFile f = one_piece("x", &piece);
        OutBatch b = {.arena = arena_new()};
        for (int i = 0; i < N; i++)
            cr_assert(out_add(&b, &f, arena_printf(b.arena, "f%d", i), &d));
        cr_expect(out_stage(&b, &d) && out_commit(&b, &d));
        arena_free(b.arena);
        cr_expect(has_file("f299") && !has_file(".etc-"));
    }
}
