/* launch.c -- runs a command N times on one CPU, and prints the time and memory of each run.
 *
 *     launch CPU N COMMAND ARGUMENT ...
 *
 * It prints one line per run: exit status, wall seconds, CPU seconds, peak kilobytes.  The peak of
 * a child includes the memory of its parent at the fork, so a large process cannot measure a small
 * one; this program is small.  The standard output of the command is discarded.  With CPU -1 the
 * system chooses the CPU.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("launch: sched_setaffinity");
}

static int run_once(char **command)
{
    int status;
    struct rusage use;
    double start = now();
    pid_t pid = fork();
    if (pid < 0) {
        perror("launch: fork");
        return 1;
    }
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        execvp(command[0], command);
        _exit(127);
    }
    if (wait4(pid, &status, 0, &use) != pid) {
        perror("launch: wait4");
        return 1;
    }
    double wall = now() - start;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    printf("%d %.6f %.6f %ld\n", code, wall, seconds_of(use.ru_utime) + seconds_of(use.ru_stime),
           use.ru_maxrss);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: launch CPU N COMMAND ARGUMENT ...\n", stderr);
        return 2;
    }
    int cpu = atoi(argv[1]), n = atoi(argv[2]);
    if (cpu >= 0)
        pin(cpu);
    for (int i = 0; i < n; i++)
        if (run_once(argv + 3) != 0)
            return 1;
    return 0;
}
