/* options_agree.c -- which flags of a command need others, and which exclude each other. */
#include "compiler/compiler.h"
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct Check {
    const Options *o;
    Arena *arena;
    Diag *diag;
    const char *name, *use; /* the name and the use of the command */
} Check;

#define usage(p, ...) diag_fault((p)->diag, FAULT_USAGE, (Loc){0}, __VA_ARGS__)

/* Checks the flags and the names of several models for one file. */
static bool models_agree(const Check *p)
{
    const Options *o = p->o;
    const char *one = o->wants_key   ? "etc key"
                      : o->report    ? "--report"
                      : o->dump_ir   ? "--dump-ir"
                      : o->dump_data ? "--dump-data"
                      : o->banks.n   ? "--bank"
                                     : NULL;
    if (o->model)
        return usage(p, "MODEL '%s' and --model: one or the other", o->model);
    if (one)
        return usage(p, "%s is for one model; leave out --model", one);
    for (int i = 0; i < o->n_parts; i++) {
        const char *name = o->part[i].name, *why;
        if (!c_name_is_free(arena_printf(p->arena, "%s_run", name), &why) ||
            !strncasecmp(name, "etc", 3))
            return usage(p, "--model %s=: no function can be named %s_run; choose another name",
                         name, name);
        for (int k = 0; k < i; k++)
            if (!strcasecmp(name, o->part[k].name))
                return usage(p, "--model %s= and --model %s=: names must differ in more than case",
                             o->part[k].name, name);
    }
    return true;
}

static bool has_model(const Check *p)
{
    const Options *o = p->o;
    if (o->part)
        return models_agree(p);
    if (o->command == CMD_OPS || (o->command == CMD_OPT && o->list))
        return true;
    if (o->command == CMD_INSPECT && o->etdump && o->model)
        return usage(p, "FILE '%s' and --etdump: one or the other", o->model);
    if (o->command == CMD_INSPECT && o->etdump)
        return !o->method || o->map || usage(p, "--method needs --map");
    if (o->command == CMD_INSPECT && (o->map || o->method))
        return usage(p, "--%s needs --etdump", o->map ? "map" : "method");
    if (o->model && o->methods.n)
        return usage(p, "MODEL '%s' and --method: one or the other", o->model);
    return o->model || o->models.n || o->methods.n ||
           usage(p, "a model is missing; usage: etc %s %s", p->name, p->use);
}

static bool build_files_fit(const Check *p)
{
    const Options *o = p->o;
    if (!o->build_files || !o->output)
        return true;
    const char *stem = arena_str(p->arena, o->output, strlen(o->output) - 2);
    const char *why = build_files_fault(o->build_files, stem, o->main, p->arena);
    return !why || usage(p, "--build-files %s: %s", o->build_files, why);
}

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

/* Checks that at most one output goes to standard output, and that the others have names that are
 * allowed. */
static bool outputs_agree(const Check *p)
{
    const Options *o = p->o;
    bool to_stdout = is_stdout(o->output);
    size_t n = o->output ? strlen(o->output) : 0;
    if (o->command == CMD_EMIT_C && n && (n < 3 || strcmp(o->output + n - 2, ".c") != 0))
        return usage(p, "emit-c writes several files: -o expects a name that ends in .c");
    if (!build_files_fit(p))
        return false;
    const bool is_pte = o->command == CMD_COMPILE || o->command == CMD_REFIT;
    if (is_pte && to_stdout && isatty(STDOUT_FILENO))
        return usage(p, "-o - would print a .pte to the terminal; send it to a file or a pipe");
    if (is_pte && to_stdout && (o->json || o->dump_ir))
        return usage(p, "-o - cannot be combined with --%s: both write to standard output",
                     o->json ? "json" : "dump-ir");
    if (o->json && o->dump_ir)
        return usage(p, "--json and --dump-ir both write to standard output");
    if (is_stdout(o->junit) || (o->json && o->write_baseline && is_stdout(o->baseline)))
        return usage(p, "--%s - and JSON both write to standard output",
                     o->junit ? "junit" : "baseline");
    if (o->depfile && to_stdout)
        return usage(p, "-MD needs an -o that is a file");
    return true;
}

/* Checks the flags that belong to one model of several. */
static bool model_agrees(const Check *p, const Options *o)
{
    const char *alone = o->calibrate    ? "calibrate"
                        : o->statistics ? "statistics"
                        : o->objective  ? "objective"
                        : o->max_drop   ? "max-drop"
                        : o->labels     ? "labels"
                                        : NULL;
    if (alone && !o->recipe && o->command != CMD_VERIFY)
        return usage(p, "--%s needs a --recipe", alone);
    if (o->inputs.n && !o->verify && (o->command == CMD_COMPILE || o->command == CMD_EMIT_C))
        return usage(p, "--input needs --verify");
    if (o->verify && o->io && strcmp(o->io, "float") != 0)
        return usage(p,
                     "--verify compares with the model's own inputs and outputs: leave out --io");
    if (o->fast_calibrate && !o->calibrate)
        return usage(p, "--fast-calibrate needs --calibrate");
    return true;
}

static bool needs_output(Command c)
{
    return c == CMD_COMPILE || c == CMD_EMIT_C || c == CMD_RUNTIME || c == CMD_REFIT;
}

static bool target_agrees(const Check *p)
{
    const Options *o = p->o;
    if (o->command == CMD_RUN && (o->etdump || o->memory_limit || o->work_limit))
        return usage(p, "--target runs emitted C: --%s is for runtime-lite",
                     o->etdump ? "etdump" : o->memory_limit ? "memory-limit" : "work-limit");
    if (o->command == CMD_BENCH && (o->trace || o->runs || o->inputs.n || o->backend))
        return usage(p, "--target runs nothing: --%s is for runs here",
                     o->trace      ? "trace"
                     : o->runs     ? "runs"
                     : o->inputs.n ? "input"
                                   : "backend");
    return true;
}

/* Checks the flags that `verify`, `refit` and `gate` need, or allow in some combinations. */
static bool command_agrees(const Check *p)
{
    const Options *o = p->o;
    const char *use = p->use, *name = p->name;
    if (o->command == CMD_VERIFY && !o->other)
        return usage(p, "--model is missing; usage: etc %s %s", name, use);
    if (o->command == CMD_REFIT && !o->weights)
        return usage(p, "--weights is missing; usage: etc %s %s", name, use);
    if (o->command == CMD_GATE && !o->baseline)
        return usage(p, "--baseline is missing; usage: etc %s %s", name, use);
    if (o->command == CMD_GATE && o->write_baseline && o->tolerances)
        return usage(p, "--write-baseline compares nothing: --tolerances is too much");
    if (o->command == CMD_GATE && (o->method || o->threads) && !o->runs)
        return usage(p, "--%s needs --runs", o->method ? "method" : "threads");
    if (o->command == CMD_VERIFY && o->calibrate && o->inputs.n)
        return usage(p, "--calibrate and --input: one or the other");
    return true;
}

/* Checks the flags of emitted C that depend on the target. */
static bool c_flags_agree(const Check *p)
{
    const Options *o = p->o;
    const Target *t = c_target(o);
    const bool is_mcu = t && t->mcu;
    if (o->parallel && is_mcu)
        return usage(p, "--parallel: C for --target %s has no threads", o->target);
    if (!o->target &&
        ((o->math && o->command == CMD_RUN) || (o->share_io && o->command == CMD_BENCH)))
        return usage(p, "--%s is for emitted C: --target is missing",
                     o->math ? "math" : "share-io");
    if (o->math && strcmp(o->math, "exact") && is_mcu)
        return usage(p, "--math %s is not available for --target %s", o->math, o->target);
    return true;
}

/* Checks the flags about backends. */
static bool backends_agree(const Check *p)
{
    const Options *o = p->o;
    if (o->command == CMD_PARTITION && !o->backend)
        return usage(p, "--backend is missing; usage: etc %s %s", p->name, p->use);
    if (o->command == CMD_PARTITION && !strcmp(o->backend, "portable"))
        return usage(p, "--backend portable delegates nothing");
    const bool is_c = (o->tail && !strcmp(o->tail, "c")) || (o->command == CMD_QUANTIZE && o->target);
    if (is_c && (o->backend || o->target_runtime))
        return usage(p, "--%s is for a .pte, not for --%s", o->backend ? "backend" : "target-runtime",
                     o->tail ? "tail c" : "target");
    if (is_c && o->tail && strcmp(o->tail, "c") != 0)
        return usage(p, "--target is for C, not for --tail %s", o->tail);
    if (o->delegate && !o->backend)
        return usage(p, "--delegate needs a --backend");
    if (o->simulate && o->require_delegated)
        return usage(p, "--simulate compares chains; --require-delegated needs a single one");
    return true;
}

static bool is_complete(const Check *p)
{
    const Options *o = p->o;
    const char *use = p->use, *name = p->name;
    if (!has_model(p))
        return false;
    if ((o->wants_key || o->command == CMD_BATCH) && is_stdout(o->model))
        return usage(p, "etc %s reads a file, not standard input", name);
    if (!o->wants_key && needs_output(o->command) && !o->output && !o->dry_run)
        return usage(p, "-o is missing; usage: etc %s %s", name, use);
    if (!c_flags_agree(p) || !backends_agree(p))
        return false;
    if (o->command == CMD_QUANTIZE && (!o->recipe || !o->calibrate || !o->statistics))
        return usage(p, "--%s is missing; usage: etc %s %s",
                     !o->recipe      ? "recipe"
                     : !o->calibrate ? "calibrate"
                                     : "statistics",
                     name, use);
    if ((o->bundle || o->binds.n) && o->methods.n)
        return usage(p, "--%s is for one model", o->bundle ? "bundle" : "bind");
    if (o->refittable && (o->methods.n || o->binds.n))
        return usage(p, "--refittable needs one model, without --bind");
    if (o->verbose && o->error_format && strcmp(o->error_format, "human") != 0)
        return usage(p,
                     "--error-format %s cannot be combined with -v: both write to standard error",
                     o->error_format);
    for (int i = 0; i < n_models(o); i++)
        if (!model_agrees(p, options_of_model(o, i)))
            return false;
    if ((o->target && !target_agrees(p)) || !command_agrees(p))
        return false;
    if (o->command == CMD_DIFF && !o->other)
        return usage(p, "two models are expected; usage: etc %s %s", name, use);
    if (o->command == CMD_OPT && !o->passes && !o->list)
        return usage(p, "--passes is missing; usage: etc %s %s", name, use);
    return outputs_agree(p);
}

bool options_agree(const Options *o, const char *name, const char *use, Arena *a, Diag *d)
{
    return is_complete(&(Check){o, a, d, name, use});
}
