/* timing.h -- shared by the benchmarks of inference: tensors as raw bytes in files, and the timed
 * loop.
 *
 * Every benchmark takes SECONDS INPUT ... -- OUTPUT ..., which are files of raw bytes.  It reads
 * the inputs, writes the outputs, and prints one line: number of runs, median, fastest, slowest
 * (seconds of one run). */
#ifndef ETC_BENCH_TIMING_H
#define ETC_BENCH_TIMING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BENCH_MAX_RUNS = 200000, BENCH_MIN_RUNS = 5, BENCH_ALIGN = 64 };

typedef int BenchCall(void *ctx); /* one run; 0 is success */

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void *bench_alloc(size_t n)
{
    void *p = aligned_alloc(BENCH_ALIGN, (n / BENCH_ALIGN + 1) * BENCH_ALIGN);
    if (!p) {
        fputs("bench: no memory\n", stderr);
        exit(1);
    }
    memset(p, 0, n);
    return p;
}

static inline void *bench_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    if (size < 0) {
        perror(path);
        exit(1);
    }
    rewind(f);
    void *p = bench_alloc((size_t)size);
    *n = fread(p, 1, (size_t)size, f);
    fclose(f);
    return p;
}

static inline void bench_write(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static inline int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Calls until `seconds` are over, after one call that is not counted. */
static inline int bench_loop(double seconds, BenchCall *call, void *ctx)
{
    double *took = (double *)bench_alloc(BENCH_MAX_RUNS * sizeof *took);
    int n = 0, status = call(ctx);
    double start = bench_now(), t = start;
    while (status == 0 && n < BENCH_MAX_RUNS && (n < BENCH_MIN_RUNS || t - start < seconds)) {
        status = call(ctx);
        double end = bench_now();
        took[n++] = end - t;
        t = end;
    }
    if (status == 0 && n > 0) {
        qsort(took, (size_t)n, sizeof *took, bench_compare);
        printf("%d %.9f %.9f %.9f\n", n, took[n / 2], took[0], took[n - 1]);
    }
    free(took);
    return status;
}

#endif
