/* fuzz_json.c -- libFuzzer target: imports any bytes as a model.json, with weights that never
 * change.
 *
 *     src="compiler/import/[a-z]*.c ir/[a-z]*.c runtime-lite/kernels/[a-z]*.c \
 *         tests/fuzz/fuzz_json.c"
 *     clang-14 -g -O1 -std=c11 -D_DEFAULT_SOURCE -I. -isystem build/deps/usr/include \
 *         -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined $src -lyyjson -lz -lm
 *     python3 tests/import/make_hostile.py --seeds seeds
 *     ./fuzz_json -max_total_time=60 -dict=tests/fuzz/json.dict corpus seeds/json
 *
 * To see that the target finds bugs, build it with -DPLANTED_BUG and without
 * compiler/import/pt2_type.c: numbers of sizes are then cut to two bits, so that the check of the
 * rank never fails, and the target finds a write past an array of sizes. */
#define _GNU_SOURCE
#include "compiler/import/internal.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef PLANTED_BUG
#define json_count(v) (json_count(v) & 3)
#include "compiler/import/pt2_type.c"
#undef json_count
#endif

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* -- mutation: values are repeated, replaced and deleted whole, so that programs stay JSON ----- */

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Where the value at s[at] ends: behind its bracket or quote, or before the next separator. */
static size_t value_end(const uint8_t *s, size_t size, size_t at)
{
    int depth = 0;
    bool in_string = false;
    for (size_t i = at; i < size; i++) {
        if (s[i] == '\\' && in_string)
            i++;
        else if (s[i] == '"')
            in_string = !in_string;
        else if (!in_string)
            depth += (s[i] == '{' || s[i] == '[') - (s[i] == '}' || s[i] == ']');
        if (!in_string && (depth < 0 || (!depth && (s[i] == ',' || s[i] == ':'))))
            return i;
        if (!in_string && !depth && (s[i] == '"' || s[i] == '}' || s[i] == ']'))
            return i + 1;
    }
    return size;
}

/* A value or key somewhere. */
static size_t random_value(const uint8_t *s, size_t size, unsigned *state)
{
    for (size_t i = next_random(state) % size + 1; i < size; i++)
        if (strchr("[,:{", s[i - 1]) && s[i - 1])
            return i;
    return 0;
}

static size_t splice(uint8_t *data, size_t size, size_t max_size, size_t at, size_t end,
                     const uint8_t *with, size_t n)
{
    if (size - (end - at) + n > max_size)
        return size;
    memmove(data + at + n, data + end, size - end);
    memcpy(data + at, with, n);
    return size - (end - at) + n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    enum { MAX_COPY = 4096 };
    uint8_t copy[MAX_COPY];
    unsigned kind = size < 2 ? 0 : next_random(&seed) % 6;
    if (kind < 3)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t at = random_value(data, size, &seed), end = value_end(data, size, at);
    size_t from = kind == 3 ? at : random_value(data, size, &seed);
    size_t n = value_end(data, size, from) - from;
    if (kind == 5) /* with the comma behind it */
        return splice(data, size, max_size, at, end + (end < size && data[end] == ','), copy, 0);
    if (n + 1 > MAX_COPY)
        return size;
    memcpy(copy, data + from, n);
    if (kind == 4)
        return splice(data, size, max_size, at, end, copy, n);
    copy[n++] = ',';
    for (unsigned i = next_random(&seed) % 8 + 1; i; i--)
        size = splice(data, size, max_size, at, at, copy, n);
    return size;
}

/* -- the target ---------------------------------------------------------------------------- */

static char folder[] = "/tmp/etc_fuzz_XXXXXX"; /* named by LLVMFuzzerInitialize */

static void write_file(const char *name, const void *data, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f))
        abort();
}

static void make(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (mkdir(path, 0700))
        abort();
}

static void clean(void)
{
    static const char *const name[] = {"data/weights/weight_0",
                                       "data/weights/model_weights_config.json",
                                       "data/constants/model_constants_config.json",
                                       "data/weights",
                                       "data/constants",
                                       "data",
                                       ""};
    char path[256];
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        remove(path);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char weights[] =
        "{\"config\":{\"w\":{\"path_name\":\"weight_0\",\"is_param\":true,\"use_pickle\":false,"
        "\"tensor_meta\":{\"dtype\":7,\"sizes\":[{\"as_int\":2},{\"as_int\":3}],"
        "\"strides\":[{\"as_int\":3},{\"as_int\":1}],\"storage_offset\":{\"as_int\":0},"
        "\"layout\":7}}}}";
    static const char constants[] = "{\"config\":{}}";
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    (void)argc, (void)argv;
    if (!mkdtemp(folder))
        abort();
    make("data");
    make("data/weights");
    make("data/constants");
    write_file("data/weights/weight_0", values, sizeof values);
    write_file("data/weights/model_weights_config.json", weights, strlen(weights));
    write_file("data/constants/model_constants_config.json", constants, strlen(constants));
    atexit(clean);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Diag d = {.out = fopen("/dev/null", "w")};
    Arena *a = arena_new();
    uint8_t *copy = malloc(size + !size);
    memcpy(copy, data, size);
    Program *p = import_json_bytes(a, "fuzz.json", copy, size, folder, &d);
    if (!p == !diag_errors(&d)) /* one or the other */
        __builtin_trap();
    if (p)
        program_print(p, d.out);
    fclose(d.out);
    arena_free(a);
    free(copy);
    return 0;
}
