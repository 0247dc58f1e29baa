/* fuzz_data.c -- libFuzzer target: reads any bytes as samples of a model's inputs: as a .npz if
 * they begin as an archive does, else as a .npy.  All samples are read.
 *
 * It is linked with everything of `etc` except main.c.  Checksums are taken to be 0, here and in
 * the seeds, so that changed bytes get past them.  To see that the target finds bugs, build it with
 * -DPLANTED_BUG and without compiler/npy.c: bounds in that file are then checked with sums of 8
 * bits, and the target finds a read past a header or an array. */
#define _GNU_SOURCE
#include "compiler/compiler.h"
#include "compiler/import/internal.h"
#include <stdlib.h>
#include <string.h>

#ifdef PLANTED_BUG
#define fits(at, n, limit) ((uint8_t)((at) + (n)) <= (limit))
#include "compiler/npy.c"
#endif

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

uint32_t crc32_of(const uint8_t *data, size_t n)
{
    (void)data, (void)n;
    return 0;
}

static char folder[] = "/tmp/etc_fuzz_XXXXXX"; /* named by LLVMFuzzerInitialize */

static void write_file(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(name, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f))
        abort();
}

static void clean(void)
{
    static const char *const name[] = {"/x.npy", "/x.npz", ""};
    char path[64];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", folder, name[i]);
        remove(path);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!mkdtemp(folder))
        abort();
    atexit(clean);
    return 0;
}

static Program *model(Arena *a, bool is_archive)
{
    static const char one[] =
        "program \"m\" stage core\nmethod @f(%x: f32[1,3]) {\n  return %x\n}\n",
                      two[] = "program \"m\" stage core\nsym %b in 1..8\n"
                              "method @f(%x: f32[%b,3], %m: bool[2]) {\n  return %x\n}\n";
    Source src = {.file = "m", .text = is_archive ? two : one, .line = 1};
    return program_parse(a, &src, &(Diag){.out = stderr});
}

/* A bad claim shows as a report. */
static unsigned sum_of(const EtcTensor *t)
{
    unsigned sum = 0;
    size_t n = (size_t)etc_numel(t) * etc_dtype_size((int)t->dtype);
    for (size_t i = 0; i < n; i++)
        sum += ((const uint8_t *)t->data)[i];
    return sum;
}

static void read_samples(const Samples *s, Diag *d)
{
    Arena *a = arena_new();
    for (int i = 0; i < s->n && i < 50; i++) {
        EtcTensor *in[2];
        int64_t symbol[1];
        const char *name;
        int before = diag_errors(d);
        bool ok = s->read(s->ctx, i, a, in, symbol, &name, d);
        if (ok != (diag_errors(d) == before)) /* one or the other */
            __builtin_trap();
        volatile unsigned sum = ok ? sum_of(in[0]) : 0;
        (void)sum;
        arena_reset(a);
    }
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    bool is_archive = size > 1 && !memcmp(data, "PK", 2);
    char path[64];
    snprintf(path, sizeof path, "%s/x.%s", folder, is_archive ? "npz" : "npy");
    write_file(path, data, size);
    Data *samples = data_open(files_new(a), path, model(a, is_archive)->method[0], a, &d);
    if (!samples == !diag_errors(&d)) /* one or the other */
        __builtin_trap();
    if (samples) {
        Samples s = data_samples(samples);
        read_samples(&s, &d);
    }
    data_close(samples);
    fclose(d.out);
    arena_free(a);
    return 0;
}
