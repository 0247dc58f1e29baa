/* fuzz_lists.c -- libFuzzer target: reads any bytes as one of three YAML files: a list of `etc
 * batch`, a manifest of `etc doctor`, or tolerances of `etc gate`.  The first byte says which.
 *
 * To see that the target finds bugs, build it with -DPLANTED_BUG and without compiler/manifest.c:
 * the length of a name is then not used, and the target finds a read past the name. */
#define _GNU_SOURCE
#include "compiler/batch.h"
#include "compiler/compiler.h"
#include "compiler/config.h"
#include <stdlib.h>
#include <string.h>

/* Every file holds the bytes at hand: lists that extend others meet them again. */
static const uint8_t *given;
static size_t n_given;

static bool take_given(const uint8_t **data, size_t *n)
{
    *data = given;
    *n = n_given;
    return true;
}

#define file_map(files, path, data, n, d) ((void)(files), (void)(path), take_given(data, n))
#include "compiler/batch_list.c"
#define find find_number
#define unknown unknown_number
#define add add_number
#include "compiler/gate.c"
#undef find
#undef unknown
#undef add

#ifdef PLANTED_BUG
#undef file_map
#define strlen(s) ((strlen)(s) + ((strlen)(s) > 40 ? 4096 : 0))
#define Reader ManifestReader
#define add manifest_add
#define read_map manifest_map
#include "compiler/manifest.c"
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_list(Arena *a, Diag *d)
{
    Batch b = {.list = "l.yaml"};
    if (batch_read(files_new(a), "l.yaml", "/out/", a, &b, d) != !diag_errors(d))
        __builtin_trap();
    for (int i = 0; !diag_errors(d) && i < b.n; i++)
        if (!b.entry[i].name || !b.entry[i].output || strncmp(b.entry[i].path, "/out/", 5) != 0)
            __builtin_trap();
}

static void read_manifest(Arena *a, Diag *d)
{
    Manifest m = {.names.arena = a};
    if (manifest_parse("m.yaml", given, n_given, &m, d) != !diag_errors(d))
        __builtin_trap();
    manifest_has(&m, "aten::add.out");
}

static void read_slacks(Arena *a, Diag *d)
{
    Options o = {.tolerances = "t.yaml", .files = files_new(a)};
    Gate g = {.o = &o, .arena = a, .diag = d};
    static const char *const kind[] = {"bytes", "arena", "seconds"};
    for (int i = 0; i < 3; i++)
        add_is(&g, i == 1 ? "forward" : "", kind[i], 10);
    if (read_tolerances(&g) != !diag_errors(d))
        __builtin_trap();
    for (int i = 0; i < g.n; i++)
        if (!(g.number[i].slack >= 0) || isinf(g.number[i].slack))
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    given = data + 1;
    n_given = size - 1;
    if (*data % 3 == 0)
        read_list(a, &d);
    else if (*data % 3 == 1)
        read_manifest(a, &d);
    else
        read_slacks(a, &d);
    fclose(d.out);
    arena_free(a);
    return 0;
}
