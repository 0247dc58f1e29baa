/* runner.c -- makes a program ready to be called, from a .pte or a model that is compiled first;
 * for `run`, `bench` and others. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* -- the program ------------------------------------------------------------------------------- */

static const uint8_t *compile(Runner *r, size_t *n)
{
    OutFile f;
    r->source = model_compile(r->o, &tail_pte, r->arena, NULL, r->diag);
    if (!r->source)
        return NULL;
    bool ok = emit_pte(r->source, r->arena, &f, &r->stats, r->diag) ||
              diag_missing(r->diag, 0, (Loc){.file = r->source->name}, "the emitter of", "a .pte");
    return ok ? join_pieces(&f, r->arena, n) : NULL;
}

bool runner_load(Runner *r)
{
    const Options *o = r->o;
    EtcError e = {.index = -1};
    size_t n;
    ImportKind kind = model_kind(o, r->diag);
    if (kind == IMPORT_PTE && (o->dims.n || o->ops.n || o->data || o->weights || o->weights_dir ||
                               o->backend || o->recipe || o->io))
        return diag_error(r->diag, (Loc){.file = o->model},
                          "is a .pte: --dim, --ops, --data, --weights, --weights-dir, "
                          "--backend, --recipe and --io are for models that are compiled first");
    if (kind == IMPORT_PTE)
        return pte_open(o->files, o->model, &r->file, r->diag);
    const uint8_t *bytes = kind == IMPORT_UNKNOWN ? NULL : compile(r, &n);
    return bytes &&
           (!etc_program_open(&r->file, bytes, n, &e) || runtime_failed(o->model, &e, r->diag));
}

static bool report_missing(const Runner *r, int32_t method)
{
    const char *name, *overload;
    int32_t k = 0;
    for (; etc_method_missing(&r->file, method, k, &name, &overload); k++)
        diag_unsupported(r->diag, (Loc){.file = r->o->model},
                         "%s%s%s: no such kernel in this build", name, *overload ? "." : "",
                         overload);
    bool is_own = false;
    for (int32_t i = 0; etc_method_missing(&r->file, method, i, &name, &overload); i++)
        is_own = is_own || !namespace_is_taken(arena_str(r->arena, name, strcspn(name, ":")));
    if (is_own)
        diag_note(r->diag, "a kernel of your own has to be registered with the runtime that runs "
                           "the file (docs/custom_operators.md); of a model that is compiled on "
                           "the fly, etc runs the composite that --ops has");
    return k == 0;
}

/* Returns the method of --method, or else "forward", or else the only method; -1: an error was
 * reported. */
static int32_t find_method(const Runner *r)
{
    const char *asked = r->o->method, *name = asked ? asked : "forward";
    int32_t n = etc_program_n_methods(&r->file), found = etc_program_find_method(&r->file, name);
    if (found >= 0 || (!asked && n == 1))
        return found < 0 ? 0 : found;
    diag_error(r->diag, (Loc){.file = r->o->model}, "has no method '%s'", name);
    for (int32_t i = 0; i < n; i++)
        diag_note(r->diag, "it has '%s'", etc_program_method_name(&r->file, i));
    return -1;
}

static const Graph *graph_of(const Runner *r, const char *name)
{
    for (int i = 0; r->source && i < r->source->n_methods; i++)
        if (!strcmp(r->source->method[i]->name, name))
            return r->source->method[i];
    return NULL;
}

static bool offer_delegates(Runner *r)
{
    int threads = r->o->threads ? atoi(r->o->threads) : 1;
    bool ok = delegates_start(threads, r->profiles, &r->delegates, r->diag);
    etc_program_offer(&r->file, r->delegates.list, r->delegates.n);
    return ok;
}

/* -- limits ------------------------------------------------------------------------------------ */

/* The limit of element operations per call if --work-limit is not given.  They take minutes,
 * even in vector kernels. */
static const char default_work[] = "10T";

/* Returns the bytes of memory that the machine has, or those that this process may take if they are
 * fewer. */
static int64_t machine_memory(void)
{
    struct rlimit own;
    int64_t pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE), most = INT64_MAX;
    if (pages > 0 && size > 0 && !mul_ok(pages, size, &most))
        most = INT64_MAX;
    if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur < (rlim_t)most)
        most = (int64_t)own.rlim_cur;
    return most;
}

bool runner_takes(Runner *r, size_t bytes, const char *what)
{
    Loc loc = {.file = r->o->model};
    if ((uint64_t)bytes <= (uint64_t)(r->most - r->held)) {
        r->held += (int64_t)bytes;
        return true;
    }
    return diag_error(r->diag, loc,
                      "method '%s': %zu bytes for %s and %lld bytes before are more than the %lld "
                      "that %s; --memory-limit BYTES sets another limit",
                      r->says.name, bytes, what, (long long)r->held, (long long)r->most,
                      r->o->memory_limit ? "--memory-limit allows" : "this process may have");
}

static bool take_plan(Runner *r)
{
    if (!r->o->memory_limit || !parse_amount(r->o->memory_limit, 1024, &r->most))
        r->most = machine_memory();
    bool ok = runner_takes(r, r->need.table_bytes + r->need.scratch_bytes, "tables and scratch");
    for (int32_t i = 0; i < r->need.n_pools; i++)
        ok = ok && runner_takes(r, r->need.pool_bytes[i], "planned memory");
    return ok;
}

static const char *work_limit(const Runner *r)
{
    return r->o->work_limit ? r->o->work_limit : default_work;
}

static void limit_work(const Runner *r)
{
    int64_t n;
    if (parse_amount(work_limit(r), 1000, &n))
        etc_method_limit(r->method, n);
}

/* ---------------------------------------------------------------------------------------------- */

bool runner_init(Runner *r)
{
    EtcError e = {.index = -1};
    Arena *a = r->arena;
    int32_t method = find_method(r);
    if (method < 0 || !report_missing(r, method))
        return false;
    r->says = pte_method(&r->file, method, a);
    r->graph = graph_of(r, r->says.name);
    if (etc_program_memory(&r->file, method, &r->need, &e))
        return runtime_failed(r->o->model, &e, r->diag);
    if (!take_plan(r))
        return false;
    if (r->says.n_delegates && !offer_delegates(r))
        return false;
    void *pool[sizeof r->need.pool_bytes / sizeof *r->need.pool_bytes] = {0};
    for (int32_t i = 0; i < r->need.n_pools; i++)
        pool[i] = arena_pages(a, r->need.pool_bytes[i]);
    etc_program_zeroed(&r->file);
    void *tables = arena_alloc(a, r->need.table_bytes + 256, 1);
    void *scratch = arena_alloc(a, r->need.scratch_bytes + 256, 1);
    if (!etc_method_init(&r->file, method, tables, pool, scratch, &r->method, &e)) {
        limit_work(r);
        return true;
    }
    runtime_failed(r->o->model, &e, r->diag);
    if (r->says.n_delegates && !r->delegates.n)
        diag_note(r->diag, "etc-xnn runs what is delegated to XnnpackBackend; './dev build-xnn' "
                           "builds it");
    return false;
}

void runner_end(Runner *r)
{
    etc_method_free(r->method);
    delegates_stop(&r->delegates);
    r->method = NULL;
    r->delegates = (Delegates){0};
}

/* -- inputs that do not fit -------------------------------------------------------------------- */

static const char *kind_text(Arena *a, const EtcValue *v)
{
    static const char *const kind[] = {
        [ETC_NONE] = "null",
        [ETC_STRING] = "a string",
        [ETC_DOUBLE] = "a number with a fraction",
        [ETC_INT] = "a whole number",
        [ETC_IS_BOOL] = "true or false",
    };
    if (v->tag == ETC_TENSOR)
        return arena_printf(a, "a tensor %s", tensor_shown(a, v->as.tensor));
    return (size_t)v->tag < sizeof kind / sizeof *kind ? kind[v->tag] : "a list";
}

/* Returns the first dimension that does not fit, or -1. */
static int wrong_dim(const EtcTensor *got, const PteEnd *want)
{
    for (int i = 0; i < got->rank; i++)
        if (want->is_dynamic ? got->dim[i] > want->dim[i] : got->dim[i] != want->dim[i])
            return i;
    return -1;
}

/* Reports an error of runtime-lite about an input in the terms of the command line: which input
 * it is, its type, and the expected type.  The sizes of inputs, or their bounds, come from the
 * .pte. */
static bool misfit(const Runner *r, int i, const EtcValue *got, const EtcError *e)
{
    Arena *a = r->arena;
    const PteEnd *want = &r->says.in[i];
    Loc loc = {.file = r->o->model};
    const char *name = r->graph && i < r->graph->n_in
                           ? arena_printf(a, "input %d ('%s')", i, r->graph->in[i]->name)
                           : arena_printf(a, "input %d", i);
    const EtcTensor *t = got->tag == ETC_TENSOR ? got->as.tensor : NULL;
    if (strcmp(want->kind, "tensor") != 0)
        return diag_error(r->diag, loc, "%s: is %s; the export fixed it to another value (%s)",
                          name, kind_text(a, got), want->kind);
    EtcTensor like = {.rank = want->rank, .dim = (int32_t *)(uintptr_t)want->dim};
    like.dtype = etc_method_input(r->method, i)->as.tensor->dtype;
    const char *expected = tensor_shown(a, &like), *most = want->is_dynamic ? "at most " : "";
    if (!t || t->dtype != like.dtype || t->rank != like.rank)
        return diag_error(r->diag, loc, "%s: is %s, expected a tensor %s%s%s", name,
                          kind_text(a, got), want->is_dynamic ? "of " : "", most, expected);
    int k = wrong_dim(t, want);
    if (k < 0)
        return diag_error(r->diag, loc, "%s: %s, expected %s%s", name, e->what, most, expected);
    if (want->is_dynamic)
        return diag_error(r->diag, loc,
                          "%s: size %d at dimension %d is past its bound %d (expected "
                          "at most %s)",
                          name, (int)t->dim[k], k, (int)want->dim[k], expected);
    return diag_error(r->diag, loc, "%s: size %d at dimension %d, expected %d (a tensor %s)", name,
                      (int)t->dim[k], k, (int)want->dim[k], expected);
}

/* -- calls ------------------------------------------------------------------------------------- */

bool runner_set_input(const Runner *r, int i, const EtcValue *v)
{
    EtcError e = {.index = -1};
    return !etc_method_set_input(r->method, i, v, &e) || misfit(r, i, v, &e);
}

bool runner_set_inputs(const Runner *r, const Strings *in)
{
    bool ok = true;
    if (in->n != etc_method_n_inputs(r->method))
        return diag_error(r->diag, (Loc){.file = r->o->model},
                          "%d input%s given, method '%s' has %d", in->n, in->n == 1 ? "" : "s",
                          r->says.name, r->says.n_in);
    for (int i = 0; i < in->n; i++) {
        EtcValue v;
        const EtcValue *like = etc_method_input(r->method, i);
        ok = input_read(r->o->files, r->arena, in->item[i], like, &v, r->diag) &&
             runner_set_input(r, i, &v) && ok;
    }
    return ok;
}

/* Runs the method once.  A failure without the name of an operator is a failed check of a size. */
bool runner_call(const Runner *r)
{
    EtcError e = {.index = -1};
    if (!etc_method_run(r->method, &e))
        return true;
    if (e.status == ETC_BAD_ARG && !e.name)
        return diag_error(r->diag, (Loc){.file = r->o->model}, "%s, not %lld", e.what,
                          (long long)e.index);
    runtime_failed(r->o->model, &e, r->diag);
    if (e.status == ETC_TOO_MUCH)
        diag_note(r->diag, "a call may do %s; --work-limit N sets another limit", work_limit(r));
    return false;
}

/* -- etc-xnn ----------------------------------------------------------------------------------- */

/* Returns whether the file needs XNNPACK and this program does not have it. */
static bool wants_other(const EtcProgram *file, Arena *a)
{
    int n = etc_program_n_methods(file);
    for (int i = 0; i < n; i++) {
        PteMethod m = pte_method(file, i, a);
        for (int k = 0; k < m.n_delegates; k++)
            if (!strcmp(m.delegate[k].id, "XnnpackBackend"))
                return !delegates_have("XnnpackBackend");
    }
    return false;
}

/* If this program was started as "etc-xnn" already, it does not start itself again. */
void runner_become_xnn(const EtcProgram *file, const Options *o, Arena *a)
{
    static const char name[] = "etc-xnn";
    if (!wants_other(file, a))
        return;
    char *self = realpath("/proc/self/exe", NULL);
    const char *slash = self ? strrchr(self, '/') : NULL;
    if (slash && strcmp(o->argv[0], name) != 0) {
        o->argv[0] = (char *)(uintptr_t)name;
        execv(arena_printf(a, "%.*s/%s", (int)(slash - self), self, name), o->argv);
        execvp(name, o->argv);
    }
    free(self);
}
