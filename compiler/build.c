/* build.c -- `etc compile`, `etc emit-c` and `etc check`. */
#include "compiler/compiler.h"
#include "emit/emit.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- what was asked for ---------------------------------------------------------------------- */

static bool one_of(const char *flag, const char *value, const char *only, Diag *d)
{
    if (!value || !strcmp(value, only))
        return true;
    return diag_unsupported(d, (Loc){0}, "%s %s is not built in; this build knows: %s", flag, value,
                            only);
}

/* Until a backend is built in, nothing is delegated. */
static bool gate_delegated(const Options *o, Diag *d)
{
    char *end;
    if (!o->require_delegated)
        return true;
    double percent = strtod(o->require_delegated, &end);
    if (*end || !(percent >= 0 && percent <= 100))
        return diag_error(d, (Loc){0}, "--require-delegated wants a percentage");
    return percent <= 0 || diag_fault(d, FAULT_GATE, (Loc){.file = o->model},
                                      "0 %% of the work is delegated, %g %% required", percent);
}

/* -- the plan ---------------------------------------------------------------------------------- */

static PlanReport total_plan(const Program *p, Arena *a)
{
    PlanReport sum = {0};
    for (int i = 0; i < p->n_methods; i++) {
        PlanReport r = plan_report(p->method[i], a);
        sum.arena += r.arena;
        sum.bound += r.bound;
        sum.naive += r.naive;
        sum.order_free += r.order_free;
        sum.n_values += r.n_values;
        sum.scratch = r.scratch > sum.scratch ? r.scratch : sum.scratch;
    }
    return sum;
}

static void print_summary(const Options *o, int64_t bytes, PlanReport r, double seconds, Arena *a)
{
    double ratio = r.bound ? (double)r.arena / (double)r.bound : 1;
    if (o->json)
        printf("{\"schema\": 1, \"output\": %s, \"bytes\": %lld, \"arena\": %lld, "
               "\"bound\": %lld, \"order_free_bound\": %lld, \"unshared\": %lld, "
               "\"scratch\": %lld, \"delegated_percent\": 0, \"seconds\": %.6f}\n",
               json_text(a, o->output ? o->output : ""), (long long)bytes, (long long)r.arena,
               (long long)r.bound, (long long)r.order_free, (long long)r.naive,
               (long long)r.scratch, seconds);
    if (!o->quiet)
        fprintf(stderr, "%s: %lld bytes, arena %lld (lower bound %lld, ratio %.3f), scratch %lld, "
                "0 %% delegated, %.1f ms\n", o->output ? o->output : "(dry run)", (long long)bytes,
                (long long)r.arena, (long long)r.bound, ratio, (long long)r.scratch,
                seconds * 1e3);
}

static int64_t file_bytes(const OutFile *f)
{
    int64_t n = 0;
    for (int i = 0; i < f->n; i++)
        n += f->piece[i].n + f->piece[i].zeros;
    return n;
}

/* -- files ------------------------------------------------------------------------------------- */

/* OUT.d beside OUT: "OUT: MODEL", for make and ninja. */
static bool write_depfile(const Options *o, Arena *a, Diag *d)
{
    if (!o->depfile || !strcmp(o->output, "-"))
        return true;
    const char *text = arena_printf(a, "%s: %s\n", o->output, o->model);
    OutPiece piece = {text, (int64_t)strlen(text), 0};
    OutFile f = {&piece, 1};
    return out_write(&f, arena_printf(a, "%s.d", o->output), d);
}

/* -- commands ---------------------------------------------------------------------------------- */

void command_compile(const Options *o, Arena *a, Diag *d)
{
    double start = seconds_now();
    PteStats stats = {0};
    OutFile f = {0};
    if (!one_of("--backend", o->backend, "portable", d))
        return;
    Program *p = model_compile(o, TAIL_PTE, a, d);
    if (!p || !emit_pte(p, a, &f, &stats, d) || !gate_delegated(o, d))
        return;
    if (!o->dry_run && (!out_write(&f, o->output, d) || !write_depfile(o, a, d)))
        return;
    print_summary(o, file_bytes(&f), total_plan(p, a), seconds_now() - start, a);
}

static bool weights_as(const Options *o, WeightsAs *out, Diag *d)
{
    *out = WEIGHTS_AUTO;
    if (!o->weights_as)
        return true;
    *out = !strcmp(o->weights_as, "array") ? WEIGHTS_ARRAY : WEIGHTS_INCBIN;
    return *out == WEIGHTS_ARRAY || !strcmp(o->weights_as, "incbin") ||
           diag_error(d, (Loc){0}, "--weights-as wants array or incbin");
}

/* OUT.c without its ending: what the names of the other files start with. */
static const char *stem_of(const char *path, Arena *a)
{
    size_t n = strlen(path);
    return arena_str(a, path, n > 2 && !strcmp(path + n - 2, ".c") ? n - 2 : n);
}

static bool write_c_files(const char *stem, const CFiles *files, Arena *a, Diag *d)
{
    for (int i = 0; i < files->n; i++)
        if (!out_write(&files->file[i].out, arena_printf(a, "%s%s", stem, files->file[i].suffix),
                       d)) {
            while (i-- > 0)
                remove(arena_printf(a, "%s%s", stem, files->file[i].suffix));
            return false;
        }
    return true;
}

void command_emit_c(const Options *o, Arena *a, Diag *d)
{
    double start = seconds_now();
    const char *stem = stem_of(o->output ? o->output : "model", a);
    COptions c = {.stem = stem, .main = o->main};
    CFiles files = {0};
    if (!one_of("--target", o->target, "generic", d) || !one_of("--math", o->math, "strict", d) ||
        !weights_as(o, &c.weights, d))
        return;
    if (o->output && !strcmp(o->output, "-")) {
        diag_error(d, (Loc){0}, "emit-c writes several files and so needs a name, not -");
        return;
    }
    Program *p = model_compile(o, TAIL_C, a, d);
    if (!p)
        return;
    PlanReport plan = total_plan(p, a);
    c.bound = plan.bound;
    if (!emit_c(p, &c, a, &files, d))
        return;
    plan.scratch = files.scratch;
    if (!o->dry_run && (!write_c_files(stem, &files, a, d) || !write_depfile(o, a, d)))
        return;
    int64_t bytes = 0;
    for (int i = 0; i < files.n; i++)
        bytes += file_bytes(&files.file[i].out);
    print_summary(o, bytes, plan, seconds_now() - start, a);
}

void command_check(const Options *o, Arena *a, Diag *d)
{
    bool is_c = o->tail && !strcmp(o->tail, "c");
    OutFile f;
    PteStats stats;
    CFiles files;
    COptions c = {.stem = "model"};
    if (o->tail && !is_c && strcmp(o->tail, "pte") != 0) {
        diag_error(d, (Loc){0}, "--tail wants pte or c");
        return;
    }
    if (!one_of("--backend", o->backend, "portable", d))
        return;
    Program *p = model_compile(o, is_c ? TAIL_C : TAIL_PTE, a, d);
    bool ok = p && (is_c ? emit_c(p, &c, a, &files, d) : emit_pte(p, a, &f, &stats, d));
    if (o->json)
        printf("{\"schema\": 1, \"model\": %s, \"ok\": %s, \"errors\": %d}\n", json_text(a, o->model),
               ok ? "true" : "false", diag_errors(d));
    else if (ok && !o->quiet)
        fprintf(stderr, "%s: nothing stops a compile to %s\n", o->model, is_c ? "C" : ".pte");
}
