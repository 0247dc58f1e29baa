/* shrunk.c -- handles files that become shorter while they are mapped.
 *
 * A read after their new end raises SIGBUS.  The handler prints which file it is and ends the
 * process with the exit code of a file that cannot be read.  Nothing has to be cleaned up: a
 * file that is being written has no name yet, or one that the next run removes (emit/out.c).
 * The handler asks the system which file is mapped at the address, so no list of files is kept.
 * It only calls functions that a signal handler may call. */
#define _GNU_SOURCE
#include "compiler/compiler.h"
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LINE = PATH_MAX + 128, EXIT_IO = 3 };

/* Reads a line byte by byte, which is fast enough as it happens once in a process. */
static bool read_line(int fd, char line[MAX_LINE])
{
    size_t n = 0;
    while (n < MAX_LINE - 1 && read(fd, &line[n], 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    return n > 0;
}

static uintptr_t read_hex(const char **s)
{
    uintptr_t v = 0;
    for (; **s; ++*s) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, **s);
        if (!digit)
            break;
        v = 16 * v + (uintptr_t)(digit - digits);
    }
    return v;
}

/* Returns the path of a line "FROM-TO MODE OFFSET DEVICE INODE PATH", if the range holds the
 * address and the line has a path; else NULL. */
static const char *file_in_line(const char *line, uintptr_t address)
{
    uintptr_t from = read_hex(&line);
    line += *line == '-';
    uintptr_t to = read_hex(&line);
    return from <= address && address < to ? strchr(line, '/') : NULL;
}

static void put(const char *s)
{
    if (write(STDERR_FILENO, s, strlen(s)) < 0)
        return; /* the message cannot be printed anywhere */
}

/* Handles SIGBUS.  If the error is not about a mapped file, it restores the default action and
 * returns, so that the error ends the process as usual. */
static void on_bus_error(int sig, siginfo_t *info, void *context)
{
    char line[MAX_LINE];
    const char *file = NULL;
    (void)context;
    int fd = info->si_code == BUS_ADRERR ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1;
    while (fd >= 0 && !file && read_line(fd, line))
        file = file_in_line(line, (uintptr_t)info->si_addr);
    if (!file) {
        signal(sig, SIG_DFL);
        return;
    }
    put(file);
    put(": error: changed while it was read\n");
    _exit(EXIT_IO);
}

void catch_shrunk_files(void)
{
    struct sigaction is = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&is.sa_mask);
    sigaction(SIGBUS, &is, NULL);
}
