/* run.c -- `etc run`: a .pte in runtime-lite, or a model compiled on the fly. */
#include "compiler/compiler.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Run {
    const Options *o;
    const Program *source; /* NULL where the model is a .pte */
    EtcProgram file;
    const Graph *graph; /* of the method, where there is a source */
    Delegates delegates;
    EtcMethod *method;
    PteMethod says; /* what the file says of it */
    Arena *arena;
    Diag *diag;
} Run;

/* -- the program ------------------------------------------------------------------------------- */

static const uint8_t *compile(Run *r, size_t *n)
{
    OutFile f;
    PteStats stats;
    r->source = model_compile(r->o, TAIL_PTE, r->arena, NULL, r->diag);
    return r->source && emit_pte(r->source, r->arena, &f, &stats, r->diag)
               ? join_pieces(&f, r->arena, n)
               : NULL;
}

static bool load(Run *r)
{
    const Options *o = r->o;
    EtcError e = {.index = -1};
    size_t n;
    ImportKind kind = model_kind(o, r->diag);
    if (kind == IMPORT_PTE && (o->dims.n || o->data || o->weights || o->weights_dir))
        return diag_error(r->diag, (Loc){.file = o->model},
                          "is a .pte: --dim, --data, --weights "
                          "and --weights-dir are for models that are compiled first");
    if (kind == IMPORT_PTE)
        return pte_open(o->model, &r->file, r->diag);
    const uint8_t *bytes = kind == IMPORT_UNKNOWN ? NULL : compile(r, &n);
    return bytes &&
           (!etc_program_open(&r->file, bytes, n, &e) || runtime_failed(o->model, &e, r->diag));
}

static bool report_missing(const Run *r, int32_t method)
{
    const char *name, *overload;
    int32_t k = 0;
    for (; etc_method_missing(&r->file, method, k, &name, &overload); k++)
        diag_unsupported(r->diag, (Loc){.file = r->o->model},
                         "%s%s%s: no such kernel in this build", name, *overload ? "." : "",
                         overload);
    return k == 0;
}

/* The method asked for, "forward", or the only one; -1: reported. */
static int32_t find_method(const Run *r)
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

static const Graph *graph_of(const Run *r, const char *name)
{
    for (int i = 0; r->source && i < r->source->n_methods; i++)
        if (!strcmp(r->source->method[i]->name, name))
            return r->source->method[i];
    return NULL;
}

static bool offer_delegates(Run *r)
{
    int threads = r->o->threads ? atoi(r->o->threads) : 1;
    bool ok = delegates_start(threads, &r->delegates, r->diag);
    etc_program_offer(&r->file, r->delegates.list, r->delegates.n);
    return ok;
}

static bool init(Run *r)
{
    EtcError e = {.index = -1};
    EtcMemory need;
    Arena *a = r->arena;
    int32_t method = find_method(r);
    if (method < 0 || !report_missing(r, method))
        return false;
    r->says = pte_method(&r->file, method, a);
    r->graph = graph_of(r, r->says.name);
    if (etc_program_memory(&r->file, method, &need, &e))
        return runtime_failed(r->o->model, &e, r->diag);
    if (r->says.n_delegates && !offer_delegates(r))
        return false;
    void *pool[sizeof need.pool_bytes / sizeof *need.pool_bytes] = {0};
    for (int32_t i = 0; i < need.n_pools; i++)
        pool[i] = arena_alloc(a, need.pool_bytes[i] + 256, 1); /* large ones are aligned */
    void *tables = arena_alloc(a, need.table_bytes + 256, 1);
    void *scratch = arena_alloc(a, need.scratch_bytes + 256, 1);
    if (!etc_method_init(&r->file, method, tables, pool, scratch, &r->method, &e))
        return true;
    runtime_failed(r->o->model, &e, r->diag);
    if (r->says.n_delegates && !r->delegates.n)
        diag_note(r->diag, "etc-xnn runs what is delegated to XnnpackBackend; ./dev build-xnn makes "
                           "it (docs/runtime.md)");
    return false;
}

/* -- what is called ---------------------------------------------------------------------------- */

typedef struct Call {
    Strings in;
    EtcValue *out;
} Call;

Strings *split_calls(const Options *o, Arena *a, int *n)
{
    Strings *call = NULL;
    *n = 0;
    for (int i = 0, first = 0; i <= o->inputs.n; i++)
        if (i == o->inputs.n || !o->inputs.item[i]) {
            Strings c = {o->inputs.item + first, i - first};
            PUSH(a, call, *n, c);
            first = i + 1;
        }
    return call;
}

static EtcValue keep(Arena *a, const EtcValue *v)
{
    EtcValue copy = *v;
    int64_t dim[ETC_MAX_RANK];
    if (v->tag != ETC_TENSOR)
        return copy;
    const EtcTensor *t = v->as.tensor;
    for (int i = 0; i < t->rank; i++)
        dim[i] = t->dim[i];
    copy.as.tensor = tensor_new(a, t->dtype, t->rank, dim);
    size_t bytes = (size_t)etc_numel(t) * etc_dtype_size((int)t->dtype);
    if (bytes)
        memcpy(copy.as.tensor->data, t->data, bytes);
    return copy;
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

/* The dimension that is at fault, or -1. */
static int wrong_dim(const EtcTensor *got, const PteEnd *want)
{
    for (int i = 0; i < got->rank; i++)
        if (want->is_dynamic ? got->dim[i] > want->dim[i] : got->dim[i] != want->dim[i])
            return i;
    return -1;
}

/* Says what runtime-lite found wrong in the terms of the command line: which input, what it is,
 * what it had to be.  A .pte says of its inputs sizes or bounds, so these are looked up there. */
static bool misfit(const Run *r, int i, const EtcValue *got, const EtcError *e)
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
        return diag_error(r->diag, loc, "%s: is %s, expected a tensor %s%s", name,
                          kind_text(a, got), most, expected);
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

/* All inputs that do not fit are reported. */
static bool set_inputs(const Run *r, const Call *c)
{
    bool ok = true;
    for (int i = 0; i < c->in.n; i++) {
        EtcValue v;
        EtcError e = {.index = -1};
        const char *text = c->in.item[i];
        if (!input_read(r->arena, text, etc_method_input(r->method, i), &v, r->diag))
            ok = false;
        else if (etc_method_set_input(r->method, i, &v, &e))
            ok = misfit(r, i, &v, &e);
    }
    return ok;
}

/* A failure without an operator's name is a check of a size. */
static bool run_failed(const Run *r, const EtcError *e)
{
    if (e->status != ETC_BAD_ARG || e->name)
        return runtime_failed(r->o->model, e, r->diag);
    return diag_error(r->diag, (Loc){.file = r->o->model}, "%s, not %lld", e->what,
                      (long long)e->index);
}

static bool run_call(const Run *r, Call *c)
{
    EtcError e = {.index = -1};
    int n_out = etc_method_n_outputs(r->method);
    if (c->in.n != etc_method_n_inputs(r->method))
        return diag_error(r->diag, (Loc){.file = r->o->model},
                          "%d input%s given, method '%s' has %d", c->in.n, c->in.n == 1 ? "" : "s",
                          r->says.name, r->says.n_in);
    if (!set_inputs(r, c))
        return false;
    if (etc_method_run(r->method, &e))
        return run_failed(r, &e);
    c->out = NEW(r->arena, EtcValue, n_out + 1);
    for (int i = 0; i < n_out; i++)
        c->out[i] = keep(r->arena, etc_method_output(r->method, i));
    return true;
}

/* -- results ----------------------------------------------------------------------------------- */

/* NULL for what no .npy file holds: a string, none, a list. */
static const EtcTensor *as_tensor(Arena *a, const EtcValue *v)
{
    if (v->tag == ETC_TENSOR)
        return v->as.tensor;
    if (v->tag != ETC_INT && v->tag != ETC_DOUBLE && v->tag != ETC_IS_BOOL)
        return NULL;
    EtcDtype dtype = v->tag == ETC_INT ? ETC_I64 : v->tag == ETC_DOUBLE ? ETC_F64 : ETC_BOOL;
    EtcTensor *t = tensor_new(a, dtype, 0, NULL);
    memcpy(t->data, &v->as, etc_dtype_size((int)dtype)); /* all members start at its first byte */
    return t;
}

/* Folders that this run made, to be removed if it fails. */
static bool make_dir(const char *path, Strings *made, Arena *a, Diag *d)
{
    struct stat st;
    if (mkdir(path, 0777) == 0) {
        PUSH(a, made->item, made->n, path);
        return true;
    }
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return true;
    return diag_io(d, (Loc){.file = path}, "cannot be made a folder: %s", strerror(errno));
}

static const char *dir_of(const Run *r, int call, int n_calls)
{
    return n_calls > 1 ? arena_printf(r->arena, "%s/%d", r->o->output_dir, call) : r->o->output_dir;
}

static const char *path_of(const Run *r, int call, int n_calls, int i)
{
    return arena_printf(r->arena, "%s/output_%d.npy", dir_of(r, call, n_calls), i);
}

static bool stage_outputs(const Run *r, const Call *call, int n_calls, OutBatch *b, Strings *made)
{
    int n_out = etc_method_n_outputs(r->method);
    bool ok = make_dir(r->o->output_dir, made, r->arena, r->diag);
    for (int k = 0; k < n_calls && ok; k++) {
        ok = make_dir(dir_of(r, k, n_calls), made, r->arena, r->diag);
        for (int i = 0; i < n_out && ok; i++) {
            const EtcTensor *t = as_tensor(r->arena, &call[k].out[i]);
            OutFile f = t ? npy_file(r->arena, t) : (OutFile){0};
            ok = !t || out_stage(b, &f, path_of(r, k, n_calls, i), r->diag);
        }
    }
    return ok;
}

static void print_element(const EtcTensor *t, int64_t i)
{
    const uint8_t *at = (const uint8_t *)t->data + (size_t)i * etc_dtype_size((int)t->dtype);
    float f;
    double g;
    int64_t whole = 0;
    size_t size = etc_dtype_size((int)t->dtype);
    switch (t->dtype) {
    case ETC_F32:
        memcpy(&f, at, sizeof f);
        printf(" %.9g", (double)f);
        return;
    case ETC_F64:
        memcpy(&g, at, sizeof g);
        printf(" %.17g", g);
        return;
    case ETC_I8:
    case ETC_I16:
    case ETC_I32:
        memcpy(&whole, at, size);
        whole = (int64_t)((uint64_t)whole << (64 - 8 * size)) >> (64 - 8 * size);
        printf(" %lld", (long long)whole);
        return;
    default:
        memcpy(&whole, at, size);
        if (t->dtype == ETC_I64)
            printf(" %lld", (long long)whole);
        else if (dtype_is_float(t->dtype))
            printf(" 0x%0*llx", (int)(2 * size), (unsigned long long)whole);
        else
            printf(" %llu", (unsigned long long)whole);
    }
}

static void print_value(const Run *r, const EtcValue *v)
{
    enum { MOST = 16 };
    const EtcTensor *t = as_tensor(r->arena, v);
    if (!t) {
        puts(v->tag == ETC_STRING ? v->as.str.text : v->tag == ETC_NONE ? "none" : "a list");
        return;
    }
    int64_t n = etc_numel(t);
    fputs(tensor_shown(r->arena, t), stdout);
    for (int64_t i = 0; i < n && i < MOST; i++)
        print_element(t, i);
    puts(n > MOST ? " ..." : "");
}

static void print_outputs(const Run *r, const Call *call, int n_calls)
{
    for (int k = 0; k < n_calls; k++)
        for (int i = 0; i < etc_method_n_outputs(r->method); i++) {
            if (n_calls > 1)
                printf("call %d ", k);
            printf("output %d: ", i);
            print_value(r, &call[k].out[i]);
        }
}

static void json_output(const Run *r, const EtcValue *v, const char *path)
{
    const EtcTensor *t = as_tensor(r->arena, v);
    if (!t) {
        printf("{\"dtype\": null, \"shape\": null, \"file\": null}");
        return;
    }
    printf("{\"dtype\": \"%s\", \"shape\": [", dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        printf("%s%d", comma(i), (int)t->dim[i]);
    printf("], \"file\": %s}", path ? json_text(r->arena, path) : "null");
}

static void print_json(const Run *r, const Call *call, int n_calls)
{
    printf("{\"schema\": 1, \"model\": %s, \"method\": %s, \"calls\": [",
           json_text(r->arena, r->o->model), json_text(r->arena, r->says.name));
    for (int k = 0; k < n_calls; k++) {
        printf("%s{\"outputs\": [", comma(k));
        for (int i = 0; i < etc_method_n_outputs(r->method); i++) {
            fputs(comma(i), stdout);
            json_output(r, &call[k].out[i], r->o->output_dir ? path_of(r, k, n_calls, i) : NULL);
        }
        printf("]}");
    }
    puts("]}");
}

static void give_results(const Run *r, const Call *call, int n_calls)
{
    OutBatch b = {.arena = r->arena};
    Strings made = {0};
    bool ok = !r->o->output_dir || stage_outputs(r, call, n_calls, &b, &made);
    if (ok && r->o->json)
        print_json(r, call, n_calls);
    else if (ok && !r->o->output_dir)
        print_outputs(r, call, n_calls);
    ok = ok && finish_files(&b, r->diag);
    out_discard(&b);
    if (ok && r->o->output_dir && !r->o->quiet)
        fprintf(stderr, "%s: %d output%s of %d call%s\n", r->o->output_dir, r->says.n_out,
                r->says.n_out == 1 ? "" : "s", n_calls, n_calls == 1 ? "" : "s");
    while (!ok && made.n > 0)
        rmdir(made.item[--made.n]); /* stays if others put something there */
}

static void run_calls(const Run *r)
{
    int n_calls;
    const Strings *in = split_calls(r->o, r->arena, &n_calls);
    Call *call = NEW(r->arena, Call, n_calls);
    double start = seconds_now();
    for (int k = 0; k < n_calls; k++) {
        call[k].in = in[k];
        if (!run_call(r, &call[k]))
            return;
    }
    if (r->o->verbose)
        fprintf(stderr, "  %d call%s %21.3f ms\n", n_calls, n_calls == 1 ? " " : "s",
                (seconds_now() - start) * 1e3);
    give_results(r, call, n_calls);
}

void command_run(const Options *o, Arena *a, Diag *d)
{
    Run r = {.o = o, .arena = a, .diag = d};
    if (load(&r) && init(&r))
        run_calls(&r);
    etc_method_free(r.method);
    delegates_stop(&r.delegates);
}
