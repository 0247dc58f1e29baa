/* fuzz_full.c -- libFuzzer target: a program as text goes through all passes of a tail and its
 * emitter.  A .pte then runs in runtime-lite.  C is compiled and run for one input in C_EVERY,
 * chosen by a hash of its bytes.
 *
 * The first line of an input says how to compile, as `; full pte xnnpack all recipe=int8`; without
 * such a line the program becomes a .pte.  The mutator changes inputs as programs
 * (program_mutate.h), a few as bytes.  A refusal must be reported as a fault of the model, and what
 * is emitted must be accepted by the runtime.
 *
 *     c           emit C instead of a .pte
 *     xnnpack     delegate to XNNPACK; stand_in.h takes the library's place
 *     all         delegate whatever the backend takes, worth it or not
 *     recipe=NAME quantize by a preset, with two samples of random inputs
 *     wild        weights are any bits instead of small numbers
 *     borrow      a .pte reads its inputs where the caller has them
 *     lite        a .pte calls kernels that only runtime-lite has
 *     check       what is printed after each pass must read back as the same program
 *
 * Environment: C_EVERY (512; 0 for never); CC; PTE_FOLDER, where each .pte is kept; PASSES_REACHED,
 * a file that at the end lists each pass, how often it ran and how often it changed a program.
 *
 * That the target finds anything is shown with -DPLANTED_BUG and another pass dce: it removes a
 * node whose first result nobody reads, even where its second is read. */
#define _GNU_SOURCE
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/run.h"
#include "ir/session.h"
#include "ir/table.h"
#include "tests/fuzz/program_mutate.h"
#include "tests/fuzz/stand_in.h"
#include "tests/pte_load.h"
#include <unistd.h>

#ifdef PLANTED_BUG
#define pass_dce sound_dce
#include "passes/dce.c"
#undef pass_dce

bool pass_dce(Graph *g, Arena *tmp, Diag *d)
{
    bool ok = sound_dce(g, tmp, d);
    const Uses u = graph_uses(g, tmp);
    for (Node *n = g->first; n; n = n->next) {
        int first = n->n_out > 1 ? n->out[0]->index : -1;
        if (first >= 0 && u.first[first] == u.first[first + 1] && !u.escapes[first])
            graph_remove(g, n);
    }
    return ok;
}
#endif

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_WORK = 1 << 18 /* element operations of a call; loops may be endless */ };
enum { MOST_STATE = 1 << 18, MOST_FILE = 4 << 20, MOST_MEMORY = 4 << 20, MAX_PASSES = 64 };
enum { MOST_NODES = 64, MOST_COST = 1 << 22 /* multiply-adds */ };
enum { MOST_HELD = 1 << 14 /* elements of a result; loops over them may be as long */ };

/* -- how -------------------------------------------------------------------------------------- */

typedef struct How {
    bool to_c, xnnpack, all, wild, check, borrow, lite;
    int recipe; /* -1: none */
} How;

static bool says(const char *line, size_t n, const char *word)
{
    const char *at = memmem(line, n, word, strlen(word)), *end = line + n;
    if (!at || at == line || at[-1] != ' ')
        return false;
    return at + strlen(word) == end || at[strlen(word)] == ' ';
}

static How how_of(const char *text)
{
    size_t n = strncmp(text, "; full", 6) ? 0 : strcspn(text, "\n");
    How h = {says(text, n, "c"),     says(text, n, "xnnpack"), says(text, n, "all"),
             says(text, n, "wild"),  says(text, n, "check"),   says(text, n, "borrow"),
             says(text, n, "lite"),  -1};
    for (int i = 0; i < n_recipe_presets; i++) {
        char word[64];
        snprintf(word, sizeof word, "recipe=%s", recipe_preset[i].name);
        h.recipe = says(text, n, word) ? i : h.recipe;
    }
    return h;
}

static void how_print(How h, FILE *f)
{
    fprintf(f, "; full %s%s%s%s%s%s%s", h.to_c ? "c" : "pte", h.xnnpack ? " xnnpack" : "",
            h.all ? " all" : "", h.wild ? " wild" : "", h.check ? " check" : "",
            h.borrow ? " borrow" : "", h.lite ? " lite" : "");
    if (h.recipe >= 0)
        fprintf(f, " recipe=%s", recipe_preset[h.recipe].name);
    fputc('\n', f);
}

static How how_change(How h, Draw *r)
{
    switch (draw_below(r, 10)) {
    case 0:
        h.xnnpack = !h.xnnpack;
        break;
    case 1:
        h.all = !h.all;
        break;
    case 2:
        h.wild = !h.wild;
        break;
    case 3:
        h.check = !h.check;
        break;
    case 4:
        h.borrow = !h.borrow;
        break;
    case 5:
        h.lite = !h.lite;
        break;
    case 6:
    case 7:
        h.recipe = (int)draw_below(r, (size_t)n_recipe_presets + 1) - 1;
        break;
    default:
        h.to_c = !h.to_c;
    }
    return h;
}

/* -- what is kept between inputs ------------------------------------------------------------- */

static FILE *null;                             /* takes what nobody wants to read */
static char folder[] = "/tmp/etc_full_XXXXXX"; /* for C; named by LLVMFuzzerInitialize */
static unsigned long c_every = 512;
static struct {
    const char *name;
    long runs, edits;
} tally[MAX_PASSES];
static unsigned seen_edits; /* of the program whose passes run */

static void on_pass(const char *name, double seconds, void *ctx)
{
    (void)seconds;
    const Program *p = ctx;
    int i = 0;
    while (tally[i].name && strcmp(tally[i].name, name) != 0)
        i++;
    tally[i].name = name;
    tally[i].runs++;
    tally[i].edits += p->edits != seen_edits;
    seen_edits = p->edits;
}

static void write_reached(void)
{
    FILE *f = fopen(getenv("PASSES_REACHED"), "w");
    for (int i = 0; f && i < n_passes; i++) {
        int k = 0;
        while (tally[k].name && strcmp(tally[k].name, pass_info[i].name) != 0)
            k++;
        fprintf(f, "%s %ld %ld\n", pass_info[i].name, tally[k].runs, tally[k].edits);
    }
    if (f)
        fclose(f);
}

static void clean(void)
{
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    null = fopen("/dev/null", "w");
    if (!null || !mkdtemp(folder))
        abort();
    atexit(clean);
    if (getenv("C_EVERY"))
        c_every = strtoul(getenv("C_EVERY"), NULL, 10);
    if (getenv("PASSES_REACHED"))
        atexit(write_reached);
    return 0;
}

/* -- mutation --------------------------------------------------------------------------------- */

/* The changed program as text; NULL where there is no program, or the changed one has no types. */
static char *changed(const char *text, unsigned seed, bool must_have_types, size_t *n)
{
    Draw r = {NULL, 0, (uint64_t)seed << 1 | 1};
    Diag d = {.out = null};
    Arena *a = arena_new();
    Source src = {.file = "fuzz", .text = text, .line = 1};
    Program *p = program_parse(a, &src, &d);
    How h = how_of(text);
    char *to = NULL;
    if (draw_below(&r, 8) == 0)
        h = how_change(h, &r);
    if (p && program_verify(p, &d) && (program_change(p, &r, &d) || !must_have_types)) {
        FILE *f = open_memstream(&to, n);
        how_print(h, f);
        program_print(p, f);
        fclose(f);
    }
    arena_free(a);
    return to;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    char *text = malloc(size + 1), *to = NULL;
    size_t n = 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (unsigned i = 0; i < 4 && !to && seed % 16; i++)
        to = changed(text, seed + i * 7919, i < 3, &n);
    if (to && n <= max_size)
        memcpy(data, to, n);
    else
        n = LLVMFuzzerMutate(data, size, max_size);
    free(text);
    free(to);
    return n;
}

/* -- weights and samples ---------------------------------------------------------------------- */

/* Bytes from the first to the last element of a strided state; -1 where that is too large. */
static int64_t state_bytes(Type t)
{
    int64_t last = 0, step, n = type_bytes(t);
    if (!type_is_static(t) || n > MOST_STATE)
        return -1;
    for (int i = 0; i < t.rank && t.stride; i++)
        if (t.stride[i].expr || t.stride[i].value < 0 || t.dim[i].value < 1 ||
            !mul_ok(t.dim[i].value - 1, t.stride[i].value, &step) || !add_ok(last, step, &last) ||
            last > MOST_STATE)
            return -1;
    int64_t span = (last + 1) * dtype_bytes(t.dtype);
    return t.stride && span > n ? span : n;
}

static void fill_state(State *s, bool wild, uint64_t *seed)
{
    /* Kernels know no complex dtype: these are pairs of parts. */
    EtcDtype dtype = dtype_of_part(s->type.dtype);
    int32_t n = (int32_t)(s->n_bytes / dtype_bytes(dtype));
    EtcTensor t = {.data = s->data, .dtype = dtype, .rank = 1, .dim = &n};
    if (!wild || t.dtype == ETC_BOOL)
        inputs_fill(&t, seed);
    else
        for (int64_t i = 0; i < s->n_bytes; i++)
            s->data[i] = (uint8_t)inputs_draw(seed);
}

static bool fill_states(Program *p, bool wild, Diag *d)
{
    uint64_t seed = 1;
    int64_t left = MOST_STATE;
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        s->n_bytes = state_bytes(s->type);
        if (s->n_bytes < 0 || s->n_bytes > left)
            return diag_error(d, (Loc){0}, "too large to be worth a try");
        left -= s->n_bytes;
        s->data = arena_bytes(p->arena, (size_t)s->n_bytes);
        fill_state(s, wild, &seed);
    }
    return true;
}

static bool read_sample(void *ctx, int i, Arena *a, EtcTensor **in, int64_t *symbol,
                        const char **name, Diag *d)
{
    const Program *p = ctx;
    uint64_t seed = 1 + (uint64_t)i;
    *name = "random";
    inputs_symbols(p, i, symbol);
    return inputs_random(p->method[0], symbol, &seed, a, in) ||
           diag_error(d, (Loc){0}, "no such inputs");
}

static bool prepare_quant(Program *p, int recipe, Diag *d)
{
    QuantJob *job = NEW(p->arena, QuantJob, 1);
    Recipe *r = NEW(p->arena, Recipe, 1);
    Samples *samples = NEW(p->arena, Samples, 1);
    *samples = (Samples){.n = 2, .read = read_sample, .ctx = p, .threads = 1};
    *job = (QuantJob){.recipe = r, .samples = samples};
    p->session->quant = job;
    if (!recipe_read(NULL, recipe_preset[recipe].name, p->arena, r, d))
        return false;
    for (int i = 0; i < r->n_rules; i++) /* a search would take longer than all else */
        if (r->rule[i].activation.observer == OBS_MSE)
            r->rule[i].activation.observer = OBS_MINMAX;
    return true;
}

/* -- C ---------------------------------------------------------------------------------------- */

static bool is_due(const char *text)
{
    static const uint64_t secret[2] = {0};
    return c_every && table_hash(secret, text, strlen(text)) % c_every == 0;
}

static char *put_file(const OutFile *f, Arena *a, const char *name)
{
    char *path = arena_printf(a, "%s/%s", folder, name);
    if (!out_write(f, path, &(Diag){.out = stderr}))
        abort();
    return path;
}

/* Command-line arguments with random inputs; NULL where an input is no tensor. */
static const char *put_inputs(const Graph *g, Arena *a)
{
    int64_t *symbol = NEW(a, int64_t, g->program->n_syms + 1);
    EtcTensor **in = NEW(a, EtcTensor *, g->n_in + 1);
    uint64_t seed = 1;
    const char *all = "";
    inputs_symbols(g->program, 1, symbol);
    if (!inputs_random(g, symbol, &seed, a, in))
        return NULL;
    for (int i = 0; i < g->n_in; i++) {
        if (g->in[i]->literal || g->in[i]->type.rank == SCALAR)
            return NULL;
        OutFile f = npy_file(a, in[i]);
        all = arena_printf(a, "%s --input %s", all, put_file(&f, a, arena_printf(a, "%d.npy", i)));
    }
    return all;
}

/* The C must compile without warnings, and the program must end with 0, or 1 where it refuses; or it
 * has a loop that is endless. */
static void run_c(const Graph *g, const CFiles *files, Arena *a)
{
    const char *sources = "", *inputs = put_inputs(g, a), *cc = getenv("CC");
    for (int i = 0; i < files->n; i++) {
        const char *suffix = files->file[i].suffix;
        const char *path = put_file(&files->file[i].out, a, arena_printf(a, "m%s", suffix));
        if (!strcmp(suffix, ".c") || !strcmp(suffix, "_main.c"))
            sources = arena_printf(a, "%s %s", sources, path);
    }
    char *command = arena_printf(
        a,
        "cd %s && %s -std=c99 -g -O0 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion "
        "-Wshadow -Wcast-qual -Werror -fsanitize=address,undefined -fno-sanitize-recover=all"
        " -o m%s -lm > log 2>&1 || exit 2; export ASAN_OPTIONS=exitcode=9:detect_leaks=0; %s timeout 10 ./m%s "
        "--output-dir out >> log 2>&1; s=$?; { [ $s -le 1 ] || [ $s -eq 124 ]; } && rm -rf ./*",
        folder, cc ? cc : "cc", sources, inputs ? "" : ": ", inputs ? inputs : "");
    int status = system(command);
    if (status) {
        fprintf(stderr, "%s\nthe C, or what runs of it, is at fault: see %s\n", command, folder);
        __builtin_trap();
    }
}

/* -- a .pte ----------------------------------------------------------------------------------- */

static bool has_blobs(const Program *p)
{
    for (int i = 0; i < p->n_states; i++)
        if (p->state[i]->kind == ST_BLOB || p->state[i]->kind == ST_NAMED)
            return true;
    return false;
}

/* A file that is bad, or needs what the runtime lacks, is the compiler's fault. */
static void check_status(const Loaded *l, EtcStatus s, bool is_loading)
{
    if (s != ETC_BAD_FILE && !(is_loading && s && s != ETC_NO_MEMORY))
        return;
    fprintf(stderr, "runtime-lite: status %d: %s (%s, %lld)\n", (int)s, l->e.what,
            l->e.name ? l->e.name : "", (long long)l->e.index);
    __builtin_trap();
}

/* One call with inputs of sizes that the symbols allow; guards may still refuse them. */
static EtcStatus call(Loaded *l, const Graph *g, int which, Arena *a)
{
    int64_t *symbol = NEW(a, int64_t, g->program->n_syms + 1);
    EtcTensor **in = NEW(a, EtcTensor *, g->n_in + 1);
    uint64_t seed = 1 + (uint64_t)which;
    inputs_symbols(g->program, which, symbol);
    if (!inputs_random(g, symbol, &seed, a, in))
        return ETC_BAD_ARG;
    for (int i = 0; i < g->n_in; i++) {
        const EtcValue *is = etc_method_input(l->method, i);
        EtcValue v = {.tag = ETC_TENSOR, .as.tensor = in[i]};
        EtcStatus s = etc_method_set_input(l->method, i, is->tag == ETC_TENSOR ? &v : is, &l->e);
        if (s)
            return s;
    }
    return etc_method_run(l->method, &l->e);
}

static void keep_pte(const OutFile *f, Arena *a)
{
    static int n;
    const char *path = arena_printf(a, "%s/%d.pte", getenv("PTE_FOLDER"), n++);
    if (!out_write(f, path, &(Diag){.out = stderr}))
        abort();
}

static void run_pte(const Graph *g, const OutFile *f, Arena *a)
{
    Loaded l;
    size_t n = 0;
    const uint8_t *bytes = join_pieces(f, a, &n);
    if (n > MOST_FILE)
        return;
    if (getenv("PTE_FOLDER"))
        keep_pte(f, a);
    uint8_t *file = loaded_memory(16, n);
    memcpy(file, bytes, n);
    EtcStatus s = loaded_start_with(&l, file, n, 0, &stand_in, 1, MOST_MEMORY);
    check_status(&l, s, true);
    if (!s)
        etc_method_limit(l.method, MOST_WORK);
    for (int k = 0; !s && k < 2; k++) {
        s = call(&l, g, k, a);
        check_status(&l, s, false);
    }
    loaded_stop(&l);
}

/* -- one input -------------------------------------------------------------------------------- */

static bool is_sound(const Program *p, Diag *d)
{
    bool ok = program_verify(p, d);
    for (int i = 0; i < p->n_methods && ok; i++)
        ok = graph_infer(p->method[i], d);
    return ok;
}

/* Sizes without a bound are given small ones. */
static bool is_large(Type t)
{
    int64_t n = 1;
    for (int i = 0; i < t.rank; i++) {
        int64_t most = dim_upper(t.dim[i]);
        if (most != INT64_MAX && (!mul_ok(n, most, &n) || n > MOST_HELD))
            return true;
    }
    return false;
}

/* Large programs are left out: in the same time many small ones find more.  So are large results of
 * those that are calibrated, which hold each of them and may compute it in a loop. */
static bool is_small(const Graph *g, How h, Diag *d)
{
    int n = 0;
    int64_t cost = 0;
    for (const Node *x = g->first; x; x = x->next, n++) {
        if (!add_ok(cost, node_cost(x), &cost) || cost > MOST_COST)
            return diag_error(d, x->loc, "too much to be worth a try");
        for (int i = 0; i < x->n_out && h.recipe >= 0; i++)
            if (is_large(x->out[i]->type))
                return diag_error(d, x->loc, "too large to be worth a try");
    }
    return n <= MOST_NODES || diag_error(d, (Loc){0}, "more nodes than are worth a try");
}

static bool compile(Program *p, How h, Diag *d)
{
    Pipeline all;
    PassOptions opt = {.check_ir = h.check, .on_pass = on_pass, .ctx = p};
    const Backend **chain = NEW(p->arena, const Backend *, 1);
    chain[0] = &xnnpack_backend;
    p->session->tail = h.to_c ? &tail_c : &tail_pte;
    p->session->backend = chain;
    p->session->n_backends = h.xnnpack && !h.to_c;
    p->session->delegate_all = h.all;
    p->session->borrows_inputs = h.borrow && !h.to_c;
    p->session->runtime = h.lite && !h.to_c ? RUNTIME_LITE : 0;
    if (!fill_states(p, h.wild, d) || !is_sound(p, d) || !pipeline_of(p, &all, d))
        return false;
    if (p->n_methods &&
        (!is_small(p->method[0], h, d) || (h.recipe >= 0 && !prepare_quant(p, h.recipe, d))))
        return false;
    seen_edits = p->edits;
    return passes_run(p, all.pass, all.n, opt, d);
}

static bool emit_and_run(Program *p, How h, const char *text, bool is_of_text, Diag *d)
{
    Arena *a = p->arena;
    OutFile f;
    PteStats stats;
    CFiles files;
    COptions opt = {.stem = "m", .main = true, .weights = WEIGHTS_ARRAY};
    if (h.to_c ? !emit_c(&(CModel){.p = p}, 1, &opt, a, &files, d) : !emit_pte(p, a, &f, &stats, d))
        return false;
    if (!p->n_methods)
        return true;
    if (h.to_c && is_due(text))
        run_c(p->method[0], &files, a);
    if (!h.to_c && !is_of_text) /* bytes of a blob of the text's own are noise */
        run_pte(p->method[0], &f, a);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *message = NULL;
    size_t n_message = 0;
    memcpy(text, data, size);
    text[size] = '\0';
    Diag d = {.out = open_memstream(&message, &n_message)};
    Arena *a = arena_new();
    Source src = {.file = "fuzz", .text = text, .line = 1};
    Program *p = program_parse(a, &src, &d);
    if (p && p->stage == STAGE_PLANNED) /* its faults would be reported as those of a pass */
        p = diag_error(&d, (Loc){0}, "nothing is left to do") ? p : NULL;
    How h = how_of(text);
    bool is_of_text = p && has_blobs(p);
    bool ok = p && compile(p, h, &d) && emit_and_run(p, h, text, is_of_text, &d);
    fflush(d.out);
    if (d.n[FAULT_BUG] || ok != !diag_errors(&d)) {
        fprintf(stderr, "%s%s\n", message, ok ? "errors, but a program" : "");
        __builtin_trap();
    }
    fclose(d.out);
    free(message);
    arena_free(a);
    free(text);
    return 0;
}
