/* fuzz_statistics.c -- libFuzzer target: reads any bytes as a file of statistics.  Statistics that
 * are read, written and read again must give the same text.  If they hold the state of the observer
 * `p` of a run that was stopped, that state must be refused, or the observer must be able to
 * continue from it.
 *
 * It is linked with everything of `etc` except main.c.  To see that the target finds bugs, build it
 * with -DPLANTED_BUG and without quant/statistics.c: the text is then read without a NUL at its
 * end. */
#define _POSIX_C_SOURCE 200809L
#include "quant/internal.h"
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED_BUG
#define arena_str(a, s, n) ((n) > 40 ? (char *)(uintptr_t)(s) : arena_str(a, s, n))
#include "quant/statistics.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const Statistics *s, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    if (!f)
        abort();
    statistics_write(s, f);
    fclose(f);
    return text;
}

static void go_on(const Statistics *s, ObserverKind kind, Arena *a)
{
    static const float x[] = {-3e38f, -1, 0, 1e-30f, 2, 3e38f};
    Observer *o = observer_new(a, kind, 99, 1);
    const double *v = statistics_get_exact(s, "part.point", "p", observer_size(o));
    int64_t bad;
    float lo, hi;
    if (!v || !observer_take(o, v))
        return;
    observer_range(o, 0, -128, 127, false, &lo, &hi);
    for (int i = 1; i <= 6; i++)
        if (!observer_add(o, x, i, 1, &bad))
            __builtin_trap();
    observer_range(o, 0, -128, 127, true, &lo, &hi);
    if (!(lo <= 0 && hi >= 0))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    const Statistics *s = statistics_read(a, "fuzz", (const char *)data, size, &d);
    if (!s != (diag_errors(&d) > 0)) /* one or the other */
        __builtin_trap();
    if (s) {
        size_t n, m;
        char *first = written(s, &n), *second = NULL;
        s = statistics_read(a, "again", first, n, &d);
        second = s ? written(s, &m) : NULL;
        if (!second || n != m || memcmp(first, second, n) != 0)
            __builtin_trap();
        free(first);
        free(second);
        for (int kind = OBS_MINMAX; s && kind <= OBS_PERCENTILE; kind++)
            go_on(s, (ObserverKind)kind, a);
    }
    fclose(d.out);
    arena_free(a);
    return 0;
}
