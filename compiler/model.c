/* model.c -- from a file to a program, and through the passes of a tail. */
#include "compiler/compiler.h"
#include "compiler/import/import.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MAX_TEXT = 1 << 30 };

/* -- textual IR -------------------------------------------------------------------------- */

/* A whole file with a NUL behind it; `-` is standard input. */
static char *slurp(Arena *a, const char *path, size_t *n, Diag *d)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    char *text = NULL, block[65536];
    size_t used = 0, room = 0, got;
    if (!f) {
        diag_io(d, (Loc){.file = path}, "cannot be opened: %s", strerror(errno));
        return NULL;
    }
    while ((got = fread(block, 1, sizeof block, f)) > 0 && used + got < MAX_TEXT) {
        if (used + got >= room) {
            room = 2 * (used + got);
            char *bigger = NEW(a, char, room + 1);
            if (used)
                memcpy(bigger, text, used);
            text = bigger;
        }
        memcpy(text + used, block, got);
        used += got;
    }
    bool ok = !ferror(f) && got == 0;
    if (f != stdin)
        fclose(f);
    if (!ok)
        diag_io(d, (Loc){.file = path}, "cannot be read, or is larger than 1 GiB");
    *n = used;
    return !ok ? NULL : text ? text : arena_str(a, "", 0);
}

static bool load_side_file(Program *p, const Options *o, Arena *a, Diag *d)
{
    size_t n;
    if (!o->data)
        return true;
    char *bytes = slurp(a, o->data, &n, d);
    return bytes && program_read_data(p, (uint8_t *)bytes, (int64_t)n, d);
}

static Program *load_etir(const Options *o, Arena *a, Diag *d)
{
    size_t n;
    char *text = slurp(a, o->model, &n, d);
    if (!text)
        return NULL;
    Source src = {.file = o->model, .text = text, .line = 1};
    if (strlen(text) != n) {
        diag_error(d, (Loc){.file = o->model}, "holds a NUL byte");
        return NULL;
    }
    Program *p = program_parse(a, &src, d);
    return p && program_verify(p, d) && load_side_file(p, o, a, d) ? p : NULL;
}

/* -- bounds ------------------------------------------------------------------------------ */

static bool parse_bound(const char *s, const char **end, int64_t *v)
{
    char *to;
    errno = 0;
    *v = strtoll(s, &to, 10);
    *end = to;
    return to != s && !errno;
}

static Symbol *find_symbol(const Program *p, const char *name, size_t len)
{
    for (int i = 0; i < p->n_syms; i++)
        if (!strncmp(p->sym[i]->name, name, len) && !p->sym[i]->name[len])
            return p->sym[i];
    return NULL;
}

static void list_symbols(const Program *p, Diag *d)
{
    for (int i = 0; i < p->n_syms; i++)
        diag_note(d, "the model has the symbolic size '%s'", p->sym[i]->name);
    if (!p->n_syms)
        diag_note(d, "the model has no symbolic sizes");
}

/* NAME=LO..HI narrows a symbol's range. */
static bool apply_dim(Program *p, const char *text, Diag *d)
{
    Loc loc = {.file = p->name};
    size_t len = strcspn(text, "=");
    const char *s = text + len;
    int64_t lo, hi;
    if (*s != '=' || !parse_bound(s + 1, &s, &lo) || strncmp(s, "..", 2) != 0 ||
        !parse_bound(s + 2, &s, &hi) || *s || lo > hi || lo < 0)
        return diag_error(d, loc, "--dim %s is not NAME=LO..HI", text);
    Symbol *sym = find_symbol(p, text, len);
    if (!sym) {
        diag_error(d, loc, "--dim %s: no such symbolic size", text);
        list_symbols(p, d);
        return false;
    }
    if (lo > sym->hi || hi < sym->lo)
        return diag_error(d, loc, "--dim %s lies outside the exported range %lld..%lld", text,
                          (long long)sym->lo, (long long)sym->hi);
    sym->lo = lo > sym->lo ? lo : sym->lo;
    sym->hi = hi < sym->hi ? hi : sym->hi;
    return true;
}

/* -- loading and compiling ----------------------------------------------------------------- */

Program *model_load(const Options *o, Arena *a, Diag *d)
{
    ImportOptions import = {.weights_dir = o->weights_dir};
    ImportKind kind = import_kind(o->model, d);
    Program *p = NULL;
    bool ok = true;
    switch (kind) {
    case IMPORT_PT2:
    case IMPORT_FOLDER:
    case IMPORT_JSON:
        p = import_pt2(a, o->model, &import, d);
        break;
    case IMPORT_ETIR:
        p = load_etir(o, a, d);
        break;
    case IMPORT_PTE:
        diag_error(d, (Loc){.file = o->model}, "is a .pte, which is already compiled");
        break;
    case IMPORT_ONNX:
        diag_unsupported(d, (Loc){.file = o->model}, "ONNX models are not read yet");
        break;
    default:
        if (!diag_errors(d))
            diag_error(d, (Loc){.file = o->model},
                       "is neither a torch.export archive, a folder or model.json of one, nor .etir");
    }
    for (int i = 0; p && i < o->dims.n; i++)
        ok = apply_dim(p, o->dims.item[i], d) && ok;
    return ok ? p : NULL;
}

static void print_pass(const char *name, double seconds, void *ctx)
{
    fprintf(ctx, "  %-16s %9.3f ms\n", name, seconds * 1e3);
}

static void print_note(const char *name, const char *why, void *ctx)
{
    fprintf(ctx, "  %-16s %s\n", name, why);
}

static bool dump_pass(const Options *o, const char **pass, Diag *d)
{
    *pass = o->dump_ir;
    if (!o->dump_ir || !strcmp(o->dump_ir, "all"))
        return true;
    if (strncmp(o->dump_ir, "after:", 6) != 0)
        return diag_error(d, (Loc){0}, "--dump-ir wants after:PASS or all");
    *pass = o->dump_ir + 6;
    for (int i = 0; i < n_passes; i++)
        if (!strcmp(*pass, pass_info[i].name))
            return true;
    return !strcmp(*pass, "all") ||
           diag_error(d, (Loc){0}, "--dump-ir: no pass '%s'; etc opt --list names them", *pass);
}

static bool read_verify_inputs(const Options *o, const Program *p, Arena *a, PassOptions *opt,
                               Diag *d)
{
    const Graph *g = p->n_methods ? p->method[0] : NULL;
    if (!o->verify || !o->inputs.n)
        return true;
    if (!g || o->inputs.n != g->n_in)
        return diag_error(d, (Loc){.file = p->name}, "%d inputs given, the model has %d",
                          o->inputs.n, g ? g->n_in : 0);
    EtcTensor **in = NEW(a, EtcTensor *, g->n_in);
    for (int i = 0; i < g->n_in; i++) {
        in[i] = npy_read(a, o->inputs.item[i], (int)g->in[i]->type.dtype, d);
        if (!in[i])
            return false;
    }
    opt->verify_in = in;
    return true;
}

static bool write_side_file(const Options *o, const Program *p, Diag *d)
{
    if (!o->dump_data)
        return true;
    FILE *f = fopen(o->dump_data, "wb");
    if (!f)
        return diag_io(d, (Loc){.file = o->dump_data}, "cannot be written: %s", strerror(errno));
    program_write_data(p, f);
    bool ok = !ferror(f);
    ok = fclose(f) == 0 && ok;
    if (!ok)
        remove(o->dump_data);
    return ok || diag_io(d, (Loc){.file = o->dump_data}, "cannot be written: %s", strerror(errno));
}

bool model_run_passes(const Options *o, Program *p, const char *const *pass, int n, Arena *a,
                      Diag *d)
{
    PassOptions opt = {.dump_to = stdout, .check_ir = o->check_ir, .verify = o->verify};
    if (o->verbose) {
        opt.on_pass = print_pass;
        opt.on_note = print_note;
        opt.ctx = stderr;
    }
    return dump_pass(o, &opt.dump, d) && read_verify_inputs(o, p, a, &opt, d) &&
           passes_run(p, pass, n, opt, d) && write_side_file(o, p, d);
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Program *model_compile(const Options *o, Tail tail, Arena *a, Diag *d)
{
    double start = seconds_now();
    Program *p = model_load(o, a, d);
    if (!p)
        return NULL;
    if (o->verbose)
        print_pass("import", seconds_now() - start, stderr);
    p->tail = tail;
    Pipeline all = pipeline_of(tail, p->stage);
    return model_run_passes(o, p, all.pass, all.n, a, d) ? p : NULL;
}
