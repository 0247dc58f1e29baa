/* etir2pte.c -- a planned program's text and its side file to a .pte: etir2pte TEXT DATA OUT. */
#include "emit/emit.h"
#include <stdlib.h>

static uint8_t *read_all(Arena *a, const char *path, int64_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        exit(3);
    *n = ftell(f);
    rewind(f);
    uint8_t *text = NEW(a, uint8_t, *n + 1);
    if (fread(text, 1, (size_t)*n, f) != (size_t)*n)
        exit(3);
    fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    Diag d = {.out = stderr};
    Arena *a = arena_new();
    PteStats stats;
    OutFile out;
    int64_t n;
    if (argc != 4)
        return 2;
    Source src = {.file = argv[1], .text = (const char *)read_all(a, argv[1], &n), .line = 1};
    Program *p = program_parse(a, &src, &d);
    const uint8_t *data = read_all(a, argv[2], &n);
    if (!p || !program_read_data(p, data, n, &d) || !program_verify(p, &d) ||
        !emit_pte(p, a, &out, &stats, &d) || !out_write(&out, argv[3], &d))
        return diag_exit_code(&d);
    printf("file %lld flat %lld constants %lld values %d instructions %d operators %d\n",
           (long long)stats.file_bytes, (long long)stats.flat_bytes,
           (long long)stats.constant_bytes, stats.n_values, stats.n_instructions,
           stats.n_operators);
    arena_free(a);
    return 0;
}
