/* build.c -- `etc compile`, `etc emit-c` and `etc check`. */
#define _GNU_SOURCE
#include "compiler/compiler.h"
#include "compiler/quantize.h"
#include "compiler/run.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A build and the files that it makes.  No file is moved into its place before the end. */
typedef struct Build {
    const Options *o;
    Program *program;  /* the program of the first model */
    CModel *model;     /* all models, for emit-c; NULL for a .pte */
    Arena *arena;
    Diag *diag;
    CFiles files; /* a file without a path lies at `stem` with its suffix */
    QuantReport *quant; /* NULL: not measured */
    PteStats stats;  /* the numbers of a .pte */
    PlanReport plan; /* the plans of all methods together */
    int64_t constants; /* the bytes of weights, buffers, and data for delegates */
    const char *stem;
    OutBatch out;
    Strings made; /* folders that were not there before */
    double start;
} Build;

/* -- the plan ---------------------------------------------------------------------------------- */

/* Adds the plans of a program's methods to *sum, which holds those of n others.  sizes_alone: no
 * lower bounds are computed. */
static void add_plans(PlanReport *sum, int n, const Program *p, bool sizes_alone, Arena *a)
{
    for (int i = 0; i < p->n_methods; i++) {
        PlanReport r = sizes_alone ? plan_sizes(p->method[i]) : plan_report(p->method[i], a);
        sum->arena += r.arena;
        sum->bound += r.bound;
        sum->naive += r.naive;
        sum->order_free += r.order_free;
        sum->whole += r.whole;
        sum->is_least = (!(n + i) || sum->is_least) && r.is_least;
        sum->n_values += r.n_values;
        sum->scratch = r.scratch > sum->scratch ? r.scratch : sum->scratch;
    }
}

static void print_plan(PlanReport r)
{
    printf("\"arena\": %lld, \"bound\": %lld, \"order_free_bound\": %lld, \"whole_bound\": %lld, "
           "\"unshared\": %lld, \"scratch\": %lld, \"proven_optimal\": %s",
           (long long)r.arena, (long long)r.bound, (long long)r.order_free, (long long)r.whole,
           (long long)r.naive, (long long)r.scratch, r.is_least ? "true" : "false");
}

/* -- files ------------------------------------------------------------------------------------- */

static int64_t file_bytes(const OutFile *f)
{
    int64_t n = 0;
    for (int i = 0; i < f->n; i++)
        n += f->piece[i].n + f->piece[i].zeros;
    return n;
}

static const char *file_path(const Build *b, int i)
{
    const CFile *f = &b->files.file[i];
    return f->path ? f->path : arena_printf(b->arena, "%s%s", b->stem, f->suffix);
}

/* Writes a file's name in the syntax of make, which ninja reads too. */
static void put_name(FILE *f, const char *name)
{
    for (; *name; name++) {
        if (strchr(" \t#\\", *name))
            fputc('\\', f);
        if (*name == '$')
            fputc('$', f);
        fputc(*name, f);
    }
}

static void put_source(FILE *f, const char *path)
{
    fputs(" \\\n ", f);
    put_name(f, path);
}

/* Writes a depfile that names all files that were read. */
static void print_depfile(FILE *f, const Options *o)
{
    put_name(f, o->output);
    fputc(':', f);
    for (int i = 0; i < o->files->n; i++)
        if (o->files->file[i]->is_opened && !o->files->file[i]->given)
            put_source(f, o->files->file[i]->path);
    fputc('\n', f);
}

const char *depfile_path(const Options *o, Arena *a)
{
    return arena_printf(a, "%s.d", o->output);
}

static bool add_depfile(Build *b)
{
    Text t;
    const Options *o = b->o;
    if (!o->depfile)
        return true;
    if (text_open(&t))
        print_depfile(t.f, o);
    return output_text(o, &b->out, &t, depfile_path(o, b->arena), b->diag);
}

/* Measures what quantization costs, for the page of --report, if there are samples and a
 * recipe.  An .svg does not show it. */
static bool measure(Build *b)
{
    const Options *o = b->o;
    if (!o->report || ends_in(o->report, ".svg") || !o->calibrate || !o->recipe)
        return true;
    b->quant = NEW(b->arena, QuantReport, 1);
    return quant_remeasure(o, b->program, b->quant, b->arena, b->diag);
}

/* Checks that a file whose name the user did not choose may be written: no file is there, or one
 * that begins as etc writes it for this model.  Another file may be the user's own. */
static bool may_replace(const CFile *file, const char *path, Arena *a, Diag *d)
{
    struct stat st;
    const size_t n = file->first ? strlen(file->first) : 0;
    char *text = arena_bytes(a, n + 1);
    if (!n || stat(path, &st) || !S_ISREG(st.st_mode))
        return true;
    FILE *f = fopen(path, "rb");
    bool is_ours = f && fread(text, 1, n, f) == n && !memcmp(text, file->first, n);
    if (f)
        fclose(f);
    return is_ours || diag_io(d, (Loc){.file = path},
                              "cannot write: it is there already, and not made by etc for this "
                              "model; move it, or give -o a folder of its own");
}

/* Makes the folder of a file whose name the user did not choose. */
static bool make_folder(Build *b, const CFile *file)
{
    const char *slash = file->path ? strrchr(file->path, '/') : NULL;
    if (!slash || slash == file->path)
        return true;
    const char *folder = arena_str(b->arena, file->path, (size_t)(slash - file->path));
    return output_folder(folder, &b->made, b->arena, b->diag);
}

static bool stage_file(Build *b, int i)
{
    const CFile *file = &b->files.file[i];
    const char *path = file_path(b, i);
    return may_replace(file, path, b->arena, b->diag) && make_folder(b, file) &&
           output_file(b->o, &b->out, &file->out, path, b->diag);
}

static bool stage_files(Build *b)
{
    bool ok = measure(b);
    for (int i = 0; i < b->files.n && ok; i++)
        ok = stage_file(b, i);
    if (ok && b->o->report)
        ok = report_add(b->o, b->program, b->quant, &b->out, b->arena, b->diag);
    if (ok && b->o->debug_map)
        ok = debug_map_add(b->o, &b->stats, &b->out, b->arena, b->diag);
    return ok && add_depfile(b) && out_stage(&b->out, b->diag);
}

/* -- the result -------------------------------------------------------------------------------- */

static int64_t all_bytes(const Build *b)
{
    int64_t bytes = 0;
    for (int i = 0; i < b->files.n; i++)
        bytes += file_bytes(&b->files.file[i].out);
    return bytes;
}

/* Prints the banks, if --bank is given. */
static void print_banks(const Build *b)
{
    const CFiles *f = &b->files;
    for (int i = 0; i < f->n_banks; i++)
        printf("%s{\"name\": %s, \"const\": %s, \"size\": %lld, \"bytes\": %lld, "
               "\"values\": %lld}%s", i ? ", " : "\"banks\": [",
               json_text(b->arena, f->bank[i].name), f->bank[i].is_const ? "true" : "false",
               (long long)f->bank[i].size, (long long)f->bank[i].bytes,
               (long long)f->bank[i].values, i == f->n_banks - 1 ? "], " : "");
}

static const Program *program_at(const Build *b, int i)
{
    return b->model ? b->model[i].p : b->program;
}

/* Prints the plan of each method of a program.  n methods were printed before.  `name` is the
 * model's name and stands for the method's; NULL: the method's own name is printed. */
static void print_methods(const Build *b, const Program *p, const char *name, int n)
{
    for (int i = 0; i < p->n_methods; i++) {
        printf("%s{\"name\": %s, ", comma(n + i),
               json_text(b->arena, name ? name : p->method[i]->name));
        PlanReport r = plan_report(p->method[i], b->arena);
        if (b->files.n_models)
            r.scratch = b->files.scratch[n];
        print_plan(r);
        putchar('}');
    }
}

static void print_json(const Build *b, PlanReport total, double seconds)
{
    const Program *p = b->program;
    double predicted = 0;
    for (int i = 0; i < n_models(b->o); i++)
        predicted += predicted_seconds(program_at(b, i));
    printf("{\"schema\": 1, \"output\": %s, \"bytes\": %lld, ",
           b->o->dry_run ? "null" : json_text(b->arena, b->o->output), (long long)all_bytes(b));
    print_plan(total);
    if (p->session->fast_library)
        printf(", \"fast_calibrate\": %s", json_text(b->arena, p->session->fast_library));
    if (b->quant && b->quant->outputs.n)
        printf(", \"cosine\": %.9g", difference_cosine(&b->quant->outputs));
    printf(", \"delegated_percent\": %.6g, \"predicted_seconds\": %.6g, \"seconds\": %.6f, "
           "\"files\": [",
           partition_percent(p->session->partition), predicted, seconds);
    for (int i = 0; !b->o->dry_run && i < b->files.n; i++)
        printf("%s{\"path\": %s, \"bytes\": %lld}", comma(i), json_text(b->arena, file_path(b, i)),
               (long long)file_bytes(&b->files.file[i].out));
    printf("], ");
    print_banks(b);
    printf("\"methods\": [");
    for (int i = 0; i < n_models(b->o); i++)
        print_methods(b, program_at(b, i), options_of_model(b->o, i)->name, i);
    puts("]}");
}

/* Prints the result in words, for new users; -v adds how good the plan is.  The memory that a
 * delegate needs beyond its data is known only at run time. */
static void print_line(const Build *b, PlanReport r, double seconds)
{
    const char *file = b->o->dry_run ? "(dry run)" : b->o->output;
    partition_line(b->program, file, b->arena);
    say(stderr,
        "%s: %lld bytes; needs %lld bytes of memory to run: %lld of planned values, %lld of "
        "scratch, %lld of constants; took %.1f ms\n",
        file, (long long)all_bytes(b), (long long)(r.arena + r.scratch + b->constants),
        (long long)r.arena, (long long)r.scratch, (long long)b->constants, seconds * 1e3);
    if (b->o->math && !strcmp(b->o->math, "fast"))
        say(stderr, "  %d convolution%s by Winograd's transforms\n", b->files.n_fast,
            b->files.n_fast == 1 ? "" : "s");
    for (int i = 0; i < b->files.n_banks; i++)
        say(stderr, "  bank %s: %lld of %lld bytes\n", b->files.bank[i].name,
            (long long)b->files.bank[i].bytes, (long long)b->files.bank[i].size);
    if (b->o->verbose)
        fprintf(stderr,
                "  arena %lld: %s; lower bound %lld for this order, %lld for any; %.4g %% "
                "delegated\n",
                (long long)r.arena, r.is_least ? "proven optimal" : "not proven optimal",
                (long long)r.bound, (long long)r.order_free,
                partition_percent(b->program->session->partition));
}

/* Stages all files, prints the result, then moves the files into place.  If this fails, removes
 * the folders that were made. */
static bool deliver(Build *b, bool ok)
{
    ok = ok && (b->o->dry_run || stage_files(b));
    if (ok) {
        double seconds = seconds_now() - b->start;
        if (b->o->json)
            print_json(b, b->plan, seconds);
        ok = finish_files(b->o, &b->out, b->diag);
        if (ok && !b->o->quiet)
            print_line(b, b->plan, seconds);
    }
    out_discard(&b->out);
    if (!ok)
        remove_folders(&b->made);
    return ok;
}

/* -- tails ------------------------------------------------------------------------------------- */

static Build build_new(const Options *o, Arena *a, Diag *d)
{
    return (Build){.o = o,
                   .arena = a,
                   .diag = d,
                   .out = {.arena = a},
                   .start = seconds_now(),
                   .stem = o->output ? o->output : "model"};
}

/* Compiles the model with one tail and fills `files`.  Returns false if an error was reported. */
typedef bool BuildFn(Build *b);

static bool bundle(const Build *b, OutFile *f)
{
    Bundle cases;
    size_t n;
    if (!b->o->bundle)
        return true;
    if (!bundle_make(b->o, b->arena, &cases, b->diag))
        return false;
    const uint8_t *pte = join_pieces(f, b->arena, &n);
    return emit_bundle(&cases, pte, n, b->arena, f, b->diag);
}

/* Builds a .pte, which is the only file and has no suffix. */
static bool build_pte(Build *b)
{
    b->files.file = NEW(b->arena, CFile, 1);
    b->files.file->suffix = "";
    b->files.n = 1;
    b->program = b->program
                     ? model_compile_loaded(b->o, b->program, &tail_pte, b->arena, &b->out, b->diag)
                     : model_compile(b->o, &tail_pte, b->arena, &b->out, b->diag);
    OutFile *f = &b->files.file->out;
    if (!b->program)
        return false;
    add_plans(&b->plan, 0, b->program, !b->o->json && !b->o->verbose, b->arena);
    bool ok = emit_pte(b->program, b->arena, f, &b->stats, b->diag) ||
              diag_missing(b->diag, 0, (Loc){.file = b->program->name}, "the emitter of", "a .pte");
    b->constants = b->stats.file_bytes - b->stats.flat_bytes;
    return ok && target_has_operators(b->o, b->program, f, b->arena, b->diag) && bundle(b, f);
}

static WeightsAs weights_as(const Options *o)
{
    if (!o->weights_as)
        return WEIGHTS_AUTO;
    return strcmp(o->weights_as, "array") ? WEIGHTS_INCBIN : WEIGHTS_ARRAY;
}

static bool compile_model(Build *b, int i)
{
    const Options *o = options_of_model(b->o, i);
    Program *p = model_compile(o, &tail_c, b->arena, &b->out, b->diag);
    if (!p)
        return false;
    b->model[i] = (CModel){.p = p, .name = o->name};
    b->program = b->program ? b->program : p;
    return true;
}

static bool compile_models(Build *b)
{
    bool ok = true;
    b->model = NEW(b->arena, CModel, n_models(b->o));
    for (int i = 0; i < n_models(b->o); i++)
        ok = compile_model(b, i) && ok;
    return ok;
}

static bool emit_planned(Build *b, COptions *c)
{
    const int n = n_models(b->o);
    b->plan = (PlanReport){0};
    for (int i = 0; i < n; i++) {
        const int64_t others = b->plan.bound;
        add_plans(&b->plan, i, b->model[i].p, false, b->arena);
        b->model[i].bound = b->plan.bound - others;
    }
    b->files = (CFiles){0};
    return emit_c(b->model, n, c, b->arena, &b->files, b->diag) ||
           diag_missing(b->diag, 0, (Loc){.file = b->program->name}, "the emitter of", "C");
}

static bool plan_again(Build *b, COptions *c, bool large_first)
{
    Arena *tmp = arena_new();
    b->program->session->large_first = large_first;
    bool ok = pass_plan_memory(b->program, tmp, b->diag) &&
              pass_check_plan(b->program, tmp, b->diag);
    arena_free(tmp);
    return ok && emit_planned(b, c);
}

/* If banks are too small, plans again with the banks filled in the other order, and keeps the
 * plan that lacks fewer bytes. */
static bool fill_otherwise(Build *b, COptions *c)
{
    const int64_t missing = banks_missing(&b->files);
    if (!missing || b->program->session->ram.n < 2)
        return true;
    return plan_again(b, c, true) &&
           (banks_missing(&b->files) < missing || plan_again(b, c, false));
}

static bool build_c(Build *b)
{
    size_t n = strlen(b->stem);
    if (n > 2 && !strcmp(b->stem + n - 2, ".c"))
        b->stem = arena_str(b->arena, b->stem, n - 2);
    COptions c = {.stem = b->stem, .main = b->o->main, .weights = weights_as(b->o),
                  .freestanding = b->o->freestanding, .forecasts = b->o->command == CMD_BENCH,
                  .is_fast = b->o->math && !strcmp(b->o->math, "fast"),
                  .target = c_target(b->o), .build_files = b->o->build_files,
                  .parallel = b->o->parallel ? atoi(b->o->parallel) : 0};
    if (!compile_models(b))
        return false;
    bool ok = emit_planned(b, &c) && fill_otherwise(b, &c) &&
              banks_suffice(&b->files, b->program, b->diag);
    b->plan.scratch = b->files.all_scratch;
    b->constants = b->files.constants;
    return ok;
}

static const struct {
    const Tail *tail;
    BuildFn *build;
} output_row[] = {{&tail_pte, build_pte}, {&tail_c, build_c}};

static BuildFn *builder_of(const Tail *tail)
{
    int i = 0;
    while (output_row[i].tail != tail)
        i++;
    return output_row[i].build;
}

/* -- commands ---------------------------------------------------------------------------------- */

bool command_compile(const Options *o, Arena *a, Diag *d)
{
    Build b = build_new(o, a, d);
    return deliver(&b, build_pte(&b) && partition_gate(o, b.program, d));
}

bool build_loaded(const Options *o, Program *p, bool (*agrees)(const OutFile *f, void *ctx),
                  void *ctx, Arena *a, Diag *d)
{
    Build b = build_new(o, a, d);
    b.program = p;
    return deliver(&b, build_pte(&b) && agrees(&b.files.file->out, ctx));
}

const Program *build_c_program(const Options *o, Arena *a, Diag *d)
{
    Build b = build_new(o, a, d);
    return deliver(&b, build_c(&b)) ? b.program : NULL;
}

bool build_c_layers(const Options *o, Arena *a, CFiles *files, Diag *d)
{
    Build b = build_new(o, a, d);
    bool ok = build_c(&b);
    out_discard(&b.out);
    *files = b.files;
    return ok;
}

bool command_emit_c(const Options *o, Arena *a, Diag *d)
{
    return build_c_program(o, a, d) != NULL;
}

static void print_messages(const char *text, bool is_json, Arena *a)
{
    for (int i = 0; *text; i++) {
        size_t n = strcspn(text, "\n");
        const char *line = arena_str(a, text, n);
        printf("%s%s", comma(i), is_json ? line : json_text(a, line));
        text += n + (text[n] == '\n');
    }
}

/* Compiles the model with the tail but writes no files.  Messages go to standard error and, with
 * --json, also into the result. */
bool command_check(const Options *o, Arena *a, Diag *d)
{
    const Tail *tail = tail_find(o->tail);
    Build b = build_new(o, a, d);
    char *text = NULL;
    size_t n = 0;
    FILE *err = d->out, *kept = o->json ? open_memstream(&text, &n) : NULL;
    if (kept)
        d->out = kept;
    bool ok = builder_of(tail)(&b) ||
              diag_missing(d, 0, (Loc){.file = o->model}, "the command", "check");
    d->out = err;
    if (kept && fclose(kept) == 0) {
        if (err)
            fputs(text, err);
        printf("{\"schema\": 1, \"model\": %s, \"tail\": \"%s\", \"ok\": %s, \"exit\": %d, "
               "\"errors\": %d, \"messages\": [",
               json_text(a, o->model), tail->name, ok ? "true" : "false", diag_exit_code(d),
               diag_errors(d));
        print_messages(text, d->is_json, a);
        puts("]}");
    }
    free(text);
    if (ok && !o->quiet)
        say(stderr, "%s: nothing stops a compile to %s\n", o->model, tail->what);
    return ok;
}
