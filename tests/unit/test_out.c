/* test_out.c -- files that are written whole or not at all, also when a signal comes. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "emit/emit.h"
#include "tests/unit/folder.h"

TestSuite(out, .init = enter_folder, .fini = leave_folder);

/* Whether the folder has a file whose name begins so. */
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
    OutPiece piece = {"", 0, (int64_t)64 << 30};
    OutFile f = {&piece, 1};
    Diag d = {.out = fopen("/dev/null", "w")};
    if (prepare && prepare())
        return 9;
    bool ok = out_write(&f, "big", &d);
    return ok ? 0 : diag_exit_code(&d);
}

static pid_t start(int (*prepare)(void))
{
    pid_t child = fork();
    if (!child) {
        static const int sig[] = {SIGHUP, SIGINT, SIGTERM};
        for (int i = 0; i < 3; i++)
            signal(sig[i], SIG_DFL);
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

static void wait_for_writing(void)
{
    for (int i = 0; i < 2000 && !has_file(".etc-"); i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    cr_assert(has_file(".etc-"), "nothing is written");
}

Test(out, a_signal_leaves_nothing_behind)
{
    static const int sig[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < 3; i++) {
        pid_t child = start(NULL);
        wait_for_writing();
        kill(child, sig[i]);
        int status = status_of(child);
        cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == sig[i], "ends with %x", status);
        cr_expect_not(has_file(""), "signal %d leaves a file", sig[i]);
    }
}

static int ignore_hangups(void)
{
    return signal(SIGHUP, SIG_IGN) == SIG_ERR;
}

Test(out, what_is_ignored_does_not_end_a_write)
{
    pid_t child = start(ignore_hangups);
    wait_for_writing();
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
    int status = status_of(start(limit_size));
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 3, "ends with %x", status);
    cr_expect_not(has_file(""));
}

/* Signals come through again once a batch has ended. */
Test(out, signals_wait_no_longer_than_a_batch)
{
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    OutPiece piece = {"x", 1, 1};
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
