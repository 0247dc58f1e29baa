/* eval.c -- evaluates a textual program without rewriting it, for comparison with its emitted C.
 *
 *     eval MODEL.etir DATA|- --input FILE.npy ... [--next --input ...] --output-dir DIR
 *
 * It writes the same files as the `main` of the emitted program.  The value of a symbol is read
 * from a dimension that is exactly this symbol. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "compiler/compiler.h"
#include "emit/emit.h"

enum { MAX_FILE = 1 << 20 };

static uint8_t *slurp(Arena *a, const char *path, size_t *n)
{
    uint8_t *s = arena_alloc(a, MAX_FILE, 1);
    FILE *f = fopen(path, "rb");
    *n = f ? fread(s, 1, MAX_FILE - 1, f) : 0;
    if (!f || !*n || fclose(f))
        exit(2);
    return s;
}

static void note(const Symbol *s, void *ctx)
{
    *(const Symbol **)ctx = s;
}

static void find_symbols(const Graph *g, EtcTensor *const *in, int64_t *symbol)
{
    for (int i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i]->type.rank; k++) {
            const Symbol *s = NULL;
            dim_symbols(g->in[i]->type.dim[k], note, &s);
            if (s)
                symbol[s->index] = in[i]->dim[k];
        }
}

/* Hands the states that a call has updated to the next one. */
static void keep(const Graph *g, EtcTensor *const *update)
{
    for (int i = 0; i < g->n_updates; i++) {
        State *s = g->update[i].target->state;
        s->data = update[i]->data;
        s->n_bytes = type_bytes(s->type);
    }
}

static bool call(const Graph *g, EtcTensor **in, const char *dir, Arena *a, Diag *d)
{
    EtcTensor **out = NEW(a, EtcTensor *, g->n_out + 1),
              **update = NEW(a, EtcTensor *, g->n_updates + 1);
    int64_t *symbol = NEW(a, int64_t, g->program->n_syms + 1);
    find_symbols(g, in, symbol);
    if (!eval_graph(g, in, symbol, false, a, out, update, d))
        return false;
    mkdir(dir, 0777);
    for (int i = 0; i < g->n_out; i++) {
        OutFile f = npy_file(a, out[i]);
        if (!out_write(&f, arena_printf(a, "%s/output_%d.npy", dir, i), d))
            return false;
    }
    keep(g, update);
    return true;
}

static bool run(const Graph *g, int argc, char **argv, Arena *a, Diag *d)
{
    EtcTensor **in = NEW(a, EtcTensor *, argc);
    const char *dir = argv[argc - 1];
    int n = 0, calls = 1, number = 0;
    for (int i = 0; i < argc; i++)
        calls += !strcmp(argv[i], "--next");
    mkdir(dir, 0777);
    for (int i = 0; i < argc; i++) {
        bool ends = !strcmp(argv[i], "--next") || !strcmp(argv[i], "--output-dir");
        if (!strcmp(argv[i], "--input") && n < g->n_in)
            in[n] = npy_read(files_new(a), a, argv[i + 1], (int)g->in[n]->type.dtype, d), n++;
        if (!ends)
            continue;
        const char *to = calls > 1 ? arena_printf(a, "%s/%d", dir, number) : dir;
        if (n != g->n_in || diag_errors(d) || !call(g, in, to, a, d))
            return false;
        number++;
        n = 0;
    }
    return number == calls;
}

static bool evaluate(int argc, char **argv, Arena *a, Diag *d)
{
    size_t n;
    Source src = {.file = argv[1], .text = (const char *)slurp(a, argv[1], &n), .line = 1};
    Program *p = program_parse(a, &src, d);
    if (!p || !program_verify(p, d))
        return false;
    if (strcmp(argv[2], "-") != 0) {
        uint8_t *data = slurp(a, argv[2], &n);
        if (!program_read_data(p, data, (int64_t)n, d))
            return false;
    }
    return run(p->method[0], argc - 3, argv + 3, a, d);
}

int main(int argc, char **argv)
{
    Diag d = {.out = stderr};
    if (argc < 5)
        return 2;
    Arena *a = arena_new();
    bool ok = evaluate(argc, argv, a, &d);
    arena_free(a);
    return !ok;
}
