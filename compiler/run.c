/* run.c -- `etc run`: runs a .pte in runtime-lite, or a model that it compiles first.  With
 * --target it runs the C that `etc emit-c` writes. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- outputs ----------------------------------------------------------------------------------- */

typedef struct Call {
    Strings in;
    EtcValue *out; /* copies of the outputs; for the last call, those of the method itself */
} Call;

Strings *split_calls(const Options *o, Arena *a, int *n)
{
    Strings *call = NULL;
    *n = 0;
    for (int i = 0, first = 0; i <= o->inputs.n; i++)
        if (i == o->inputs.n || !o->inputs.item[i]) {
            Strings c = {i > first ? o->inputs.item + first : NULL, i - first};
            PUSH(a, call, *n, c);
            first = i + 1;
        }
    return call;
}

/* Copies a value, so that the next call does not change it. */
static bool keep(Runner *r, const EtcValue *v, EtcValue *copy)
{
    int64_t dim[ETC_MAX_RANK];
    *copy = *v;
    if (v->tag != ETC_TENSOR)
        return true;
    const EtcTensor *t = v->as.tensor;
    for (int i = 0; i < t->rank; i++)
        dim[i] = t->dim[i];
    size_t bytes = (size_t)etc_numel(t) * etc_dtype_size((int)t->dtype);
    if (!runner_takes(r, bytes, "outputs kept for the end"))
        return false;
    copy->as.tensor = tensor_new(r->arena, t->dtype, t->rank, dim);
    if (bytes)
        memcpy(copy->as.tensor->data, t->data, bytes);
    return true;
}

/* Copies all outputs.  If a value is several outputs, it is copied once. */
static bool keep_all(Runner *r, EtcValue *out, int n)
{
    const EtcValue *first = n ? etc_method_output(r->method, 0) : NULL, *last = first;
    for (int i = 0; i < n; i++) {
        const EtcValue *v = etc_method_output(r->method, i);
        first = v < first ? v : first;
        last = v > last ? v : last;
    }
    const EtcValue **copy = NEW(r->arena, const EtcValue *, n ? last - first + 1 : 0);
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        const EtcValue *v = etc_method_output(r->method, i);
        if (copy[v - first])
            out[i] = *copy[v - first];
        else
            ok = keep(r, v, &out[i]);
        copy[v - first] = &out[i];
    }
    return ok;
}

/* -- calls ------------------------------------------------------------------------------------- */

static bool run_call(Runner *r, EtRecord *record, Call *c, bool is_last)
{
    int n_out = etc_method_n_outputs(r->method);
    if (!runner_set_inputs(r, &c->in))
        return false;
    if (record)
        etdump_begin(record);
    if (!runner_call(r))
        return false;
    if (record)
        etdump_end_call(record);
    c->out = NEW(r->arena, EtcValue, n_out + 1);
    for (int i = 0; i < n_out && is_last; i++)
        c->out[i] = *etc_method_output(r->method, i);
    return is_last || keep_all(r, c->out, n_out);
}

/* -- results ----------------------------------------------------------------------------------- */

const EtcTensor *value_tensor(Arena *a, const EtcValue *v)
{
    if (v->tag == ETC_TENSOR)
        return v->as.tensor;
    if (v->tag != ETC_INT && v->tag != ETC_DOUBLE && v->tag != ETC_IS_BOOL)
        return NULL;
    EtcDtype dtype = v->tag == ETC_INT ? ETC_I64 : v->tag == ETC_DOUBLE ? ETC_F64 : ETC_BOOL;
    EtcTensor *t = tensor_new(a, dtype, 0, NULL);
    memcpy(t->data, &v->as, etc_dtype_size((int)dtype)); /* all members start at byte 0 of `as` */
    return t;
}

static const char *dir_of(const Runner *r, int call, int n_calls)
{
    return n_calls > 1 ? arena_printf(r->arena, "%s/%d", r->o->output_dir, call) : r->o->output_dir;
}

static const char *path_of(const Runner *r, int call, int n_calls, int i)
{
    return arena_printf(r->arena, "%s/output_%d.npy", dir_of(r, call, n_calls), i);
}

static bool add_outputs(const Runner *r, const Call *call, int n_calls, OutBatch *b,
                        Strings *made)
{
    int n_out = r->says.n_out;
    bool ok = output_folder(r->o->output_dir, made, r->arena, r->diag);
    for (int k = 0; k < n_calls && ok; k++) {
        ok = output_folder(dir_of(r, k, n_calls), made, r->arena, r->diag);
        for (int i = 0; i < n_out && ok; i++) {
            const EtcTensor *t = value_tensor(r->arena, &call[k].out[i]);
            OutFile f = t ? npy_file(r->arena, t) : (OutFile){0};
            ok = !t || output_file(r->o, b, &f, path_of(r, k, n_calls, i), r->diag);
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

static void print_value(const Runner *r, const EtcValue *v)
{
    enum { MOST = 16 };
    const EtcTensor *t = value_tensor(r->arena, v);
    if (!t) {
        say(stdout, "%s\n",
            v->tag == ETC_STRING ? v->as.str.text : v->tag == ETC_NONE ? "none" : "a list");
        return;
    }
    int64_t n = etc_numel(t);
    fputs(tensor_shown(r->arena, t), stdout);
    for (int64_t i = 0; i < n && i < MOST; i++)
        print_element(t, i);
    puts(n > MOST ? " ..." : "");
}

static void print_outputs(const Runner *r, const Call *call, int n_calls)
{
    for (int k = 0; k < n_calls; k++)
        for (int i = 0; i < r->says.n_out; i++) {
            if (n_calls > 1)
                printf("call %d ", k);
            printf("output %d: ", i);
            print_value(r, &call[k].out[i]);
        }
}

static void json_output(const Runner *r, const EtcValue *v, const char *path)
{
    const EtcTensor *t = value_tensor(r->arena, v);
    if (!t) {
        printf("{\"dtype\": null, \"shape\": null, \"file\": null}");
        return;
    }
    printf("{\"dtype\": \"%s\", \"shape\": [", dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        printf("%s%d", comma(i), (int)t->dim[i]);
    printf("], \"file\": %s}", path ? json_text(r->arena, path) : "null");
}

static void print_json(const Runner *r, const Call *call, int n_calls)
{
    printf("{\"schema\": 1, \"model\": %s, \"method\": %s, \"calls\": [",
           json_text(r->arena, r->o->model), json_text(r->arena, r->says.name));
    for (int k = 0; k < n_calls; k++) {
        printf("%s{\"outputs\": [", comma(k));
        for (int i = 0; i < r->says.n_out; i++) {
            fputs(comma(i), stdout);
            json_output(r, &call[k].out[i], r->o->output_dir ? path_of(r, k, n_calls, i) : NULL);
        }
        printf("]}");
    }
    puts("]}");
}

static bool give_results(const Runner *r, EtRecord *record, const Call *call, int n_calls)
{
    OutBatch b = {.arena = r->arena};
    Strings made = {0};
    bool ok = (!record || etdump_add(record, &b, r->diag)) &&
              (!r->o->output_dir || add_outputs(r, call, n_calls, &b, &made)) &&
              out_stage(&b, r->diag);
    if (ok && r->o->json)
        print_json(r, call, n_calls);
    else if (ok && !r->o->output_dir)
        print_outputs(r, call, n_calls);
    ok = ok && finish_files(r->o, &b, r->diag);
    out_discard(&b);
    if (ok && r->o->output_dir && !r->o->quiet)
        say(stderr, "%s: %d output%s of %d call%s\n", r->o->output_dir, r->says.n_out,
                r->says.n_out == 1 ? "" : "s", n_calls, n_calls == 1 ? "" : "s");
    if (!ok)
        remove_folders(&made);
    return ok;
}

static bool run_calls(Runner *r)
{
    int n_calls;
    const Strings *in = split_calls(r->o, r->arena, &n_calls);
    Call *call = NEW(r->arena, Call, n_calls);
    EtRecord *record = r->o->etdump ? etdump_start(r) : NULL;
    double start = seconds_now();
    for (int k = 0; k < n_calls; k++) {
        call[k].in = in[k];
        if (!run_call(r, record, &call[k], k + 1 == n_calls))
            return false;
    }
    if (r->o->verbose)
        fprintf(stderr, "  %d call%s %21.3f ms\n", n_calls, n_calls == 1 ? " " : "s",
                (seconds_now() - start) * 1e3);
    return give_results(r, record, call, n_calls);
}

/* -- emitted C --------------------------------------------------------------------------------- */

/* Checks the inputs of a call here, because their names are known here. */
static bool inputs_fit(const Runner *r, const Graph *g, const Strings *in)
{
    EtcTensor *t;
    bool ok = true;
    if (in->n != g->n_in)
        return diag_error(r->diag, (Loc){.file = r->o->model}, "%d input%s given, it has %d", in->n,
                          in->n == 1 ? "" : "s", g->n_in);
    for (int i = 0; i < g->n_in; i++)
        ok = (g->in[i]->literal || model_input(r->o, in->item[i], g, i, r->arena, &t, r->diag)) && ok;
    return ok;
}

static bool read_outputs(const Runner *r, const CProgram *c, const Graph *g, int k, Call *call)
{
    call->out = NEW(r->arena, EtcValue, g->n_out + 1);
    for (int i = 0; i < g->n_out; i++) {
        const Value *v = g->out[i];
        if (v->literal || v->type.is_none)
            continue;
        const EtcTensor *t = c_program_output(c, k, i, (int)v->type.dtype, r->arena);
        if (!t)
            return false;
        call->out[i] = (EtcValue){.tag = ETC_TENSOR, .as.tensor = (EtcTensor *)(uintptr_t)t};
    }
    return true;
}

static bool run_c(Runner *r, CProgram *c)
{
    const Graph *g = c_program_method(c);
    int n_calls;
    Strings *in = split_calls(r->o, r->arena, &n_calls);
    Call *call = NEW(r->arena, Call, n_calls);
    bool ok = true;
    r->says = (PteMethod){.name = g->name, .n_in = g->n_in, .n_out = g->n_out};
    for (int k = 0; k < n_calls; k++)
        ok = inputs_fit(r, g, &in[k]) && ok;
    for (int k = 0; k < n_calls && ok; k++)
        c_program_stage_words(c, &in[k]);
    ok = ok && c_program_run(c);
    for (int k = 0; k < n_calls && ok; k++)
        ok = read_outputs(r, c, g, k, &call[k]);
    return ok && give_results(r, NULL, call, n_calls);
}

static bool run_target(Runner *r)
{
    ImportKind kind = model_kind(r->o, r->diag);
    if (kind == IMPORT_PTE)
        return diag_error(r->diag, (Loc){.file = r->o->model},
                          "is a .pte: --target is for models that are compiled to C");
    CProgram *c = kind == IMPORT_UNKNOWN ? NULL : c_program_build(r->o, r->arena, r->diag);
    bool ok = c && run_c(r, c);
    c_program_end(c);
    return ok;
}

/* ---------------------------------------------------------------------------------------------- */

bool command_run(const Options *o, Arena *a, Diag *d)
{
    Runner r = {.o = o, .arena = a, .diag = d, .profiles = o->etdump != NULL};
    if (o->target)
        return run_target(&r);
    bool ok = runner_load(&r) && runner_init(&r) && run_calls(&r);
    runner_end(&r);
    return ok;
}
