/* etir2pte.c -- what `etc compile TEXT --data DATA -o OUT` does with a planned text, and no more. */
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
    if (argc != 7)
        return 2;
    Source src = {.file = argv[2], .text = (const char *)read_all(a, argv[2], &n), .line = 1};
    Program *p = program_parse(a, &src, &d);
    const uint8_t *data = read_all(a, argv[4], &n);
    if (p && program_read_data(p, data, n, &d) && program_verify(p, &d) &&
        emit_pte(p, a, &out, &stats, &d))
        out_write(&out, argv[6], &d);
    arena_free(a);
    return diag_exit_code(&d);
}
