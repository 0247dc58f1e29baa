/* run.c -- `etc run`: a .pte in runtime-lite, or a model compiled on the fly. */
#include "compiler/compiler.h"
#include "compiler/import/import.h"
#include "emit/emit.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Bytes {
    const uint8_t *data;
    size_t n;
} Bytes;

/* -- the program ------------------------------------------------------------------------------- */

bool map_file(const char *path, const uint8_t **data, size_t *n, Diag *d)
{
    struct stat st;
    Loc loc = {.file = path};
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return diag_io(d, loc, "cannot be opened: %s", strerror(errno));
    void *p = fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size
                  ? MAP_FAILED
                  : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return diag_error(d, loc, "is empty or no regular file");
    *data = p;
    *n = (size_t)st.st_size;
    return true;
}

static bool join(const OutFile *f, Arena *a, Bytes *out)
{
    out->n = 0;
    for (int i = 0; i < f->n; i++)
        out->n += (size_t)(f->piece[i].n + f->piece[i].zeros);
    uint8_t *to = NEW(a, uint8_t, out->n < 256 ? 256 : out->n); /* large items are aligned */
    out->data = to;
    for (int i = 0; i < f->n; i++) {
        if (f->piece[i].n)
            memcpy(to, f->piece[i].data, (size_t)f->piece[i].n);
        to += f->piece[i].n + f->piece[i].zeros;
    }
    return true;
}

static bool load(const Options *o, Arena *a, Bytes *out, Diag *d)
{
    OutFile f;
    PteStats stats;
    if (import_kind(o->model, d) == IMPORT_PTE)
        return map_file(o->model, &out->data, &out->n, d);
    if (diag_errors(d))
        return false;
    Program *p = model_compile(o, TAIL_PTE, a, d);
    return p && emit_pte(p, a, &f, &stats, d) && join(&f, a, out);
}

bool runtime_failed(const char *file, const EtcError *e, Diag *d)
{
    Fault fault = e->status == ETC_UNSUPPORTED ? FAULT_UNSUPPORTED : FAULT_MODEL;
    char at[32] = "";
    if (e->index >= 0)
        snprintf(at, sizeof at, " (number %lld)", (long long)e->index);
    return diag_fault(d, fault, (Loc){.file = file}, "%s%s%s%s%s%s", e->name ? e->name : "",
                      e->overload && *e->overload ? "." : "", e->overload ? e->overload : "",
                      e->name ? ": " : "", e->what ? e->what : "fails", at);
}

static bool report_missing(const Options *o, const EtcProgram *p, int32_t method, Diag *d)
{
    const char *name, *overload;
    int32_t k = 0;
    for (; etc_method_missing(p, method, k, &name, &overload); k++)
        diag_unsupported(d, (Loc){.file = o->model}, "%s%s%s: no such kernel in this build", name,
                         *overload ? "." : "", overload);
    return k == 0;
}

static bool init(const Options *o, const EtcProgram *p, Arena *a, EtcMethod **m, Diag *d)
{
    EtcError e = {.index = -1};
    EtcMemory need;
    const char *name = o->method ? o->method : "forward";
    int32_t method = etc_program_find_method(p, name);
    if (method < 0 && !o->method && etc_program_n_methods(p) == 1)
        method = 0;
    if (method < 0)
        return diag_error(d, (Loc){.file = o->model}, "has no method '%s'", name);
    if (!report_missing(o, p, method, d))
        return false;
    if (etc_program_memory(p, method, &need, &e))
        return runtime_failed(o->model, &e, d);
    void *pool[sizeof need.pool_bytes / sizeof *need.pool_bytes] = {0};
    for (int32_t i = 0; i < need.n_pools; i++)
        pool[i] = arena_alloc(a, need.pool_bytes[i] + 256, 1);
    void *tables = arena_alloc(a, need.table_bytes + 256, 1);
    void *scratch = arena_alloc(a, need.scratch_bytes + 256, 1);
    if (etc_method_init(p, method, tables, pool, scratch, m, &e))
        return runtime_failed(o->model, &e, d);
    return true;
}

/* -- calls ------------------------------------------------------------------------------------- */

typedef struct Call {
    int first, n; /* in Options.inputs */
    EtcValue *out;
} Call;

static Call *split_calls(const Options *o, Arena *a, int *n)
{
    Call *call = NULL;
    *n = 0;
    for (int i = 0, first = 0; i <= o->inputs.n; i++)
        if (i == o->inputs.n || !o->inputs.item[i]) {
            Call c = {.first = first, .n = i - first};
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

static bool run_call(const Options *o, EtcMethod *m, Call *c, Arena *a, Diag *d)
{
    EtcError e = {.index = -1};
    Loc loc = {.file = o->model};
    if (c->n != etc_method_n_inputs(m))
        return diag_error(d, loc, "%d inputs given, the method has %d", c->n,
                          (int)etc_method_n_inputs(m));
    for (int i = 0; i < c->n; i++) {
        EtcValue v;
        if (!input_read(a, o->inputs.item[c->first + i], etc_method_input(m, i), &v, d))
            return false;
        if (etc_method_set_input(m, i, &v, &e))
            return runtime_failed(o->model, &e, d);
    }
    if (etc_method_run(m, &e))
        return runtime_failed(o->model, &e, d);
    c->out = NEW(a, EtcValue, etc_method_n_outputs(m) + 1);
    for (int i = 0; i < etc_method_n_outputs(m); i++)
        c->out[i] = keep(a, etc_method_output(m, i));
    return true;
}

/* -- results ----------------------------------------------------------------------------------- */

static bool make_dir(const char *path, Diag *d)
{
    return !mkdir(path, 0777) || errno == EEXIST ||
           diag_io(d, (Loc){.file = path}, "cannot be made: %s", strerror(errno));
}

static bool as_tensor(Arena *a, const EtcValue *v, const EtcTensor **t)
{
    EtcTensor *made;
    if (v->tag == ETC_TENSOR) {
        *t = v->as.tensor;
        return true;
    }
    if (v->tag != ETC_INT && v->tag != ETC_DOUBLE && v->tag != ETC_IS_BOOL)
        return false;
    made = tensor_new(a, v->tag == ETC_INT ? ETC_I64 : v->tag == ETC_DOUBLE ? ETC_F64 : ETC_BOOL, 0,
                      NULL);
    memcpy(made->data, v->tag == ETC_IS_BOOL ? (const void *)&v->as.b : (const void *)&v->as.i,
           v->tag == ETC_IS_BOOL ? 1 : 8);
    *t = made;
    return true;
}

static bool write_outputs(const char *dir, const EtcValue *out, int n, Arena *a, Strings *done,
                          Diag *d)
{
    const EtcTensor *t;
    if (!make_dir(dir, d))
        return false;
    for (int i = 0; i < n; i++) {
        const char *path = arena_printf(a, "%s/output_%d.npy", dir, i);
        if (!as_tensor(a, &out[i], &t))
            continue;
        if (!npy_write(path, t, d))
            return false;
        PUSH(a, done->item, done->n, path);
    }
    return true;
}

static void print_tensor(const EtcTensor *t)
{
    int64_t n = etc_numel(t);
    printf("%s[", dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        printf("%s%d", i ? "," : "", (int)t->dim[i]);
    fputs("]", stdout);
    for (int64_t i = 0; i < n && i < 16; i++) {
        if (t->dtype == ETC_F32)
            printf(" %.9g", (double)((const float *)t->data)[i]);
        else if (t->dtype == ETC_I64)
            printf(" %lld", (long long)((const int64_t *)t->data)[i]);
        else if (t->dtype == ETC_F64)
            printf(" %.17g", ((const double *)t->data)[i]);
        else if (t->dtype == ETC_I32)
            printf(" %d", (int)((const int32_t *)t->data)[i]);
        else if (t->dtype == ETC_BOOL || t->dtype == ETC_U8)
            printf(" %d", (int)((const uint8_t *)t->data)[i]);
    }
    puts(n > 16 ? " ..." : "");
}

static void print_outputs(const EtcValue *out, int n, Arena *a)
{
    const EtcTensor *t;
    for (int i = 0; i < n; i++) {
        printf("output %d: ", i);
        if (as_tensor(a, &out[i], &t))
            print_tensor(t);
        else
            puts(out[i].tag == ETC_STRING ? out[i].as.str.text : "none");
    }
}

static void give_results(const Options *o, const Call *call, int n_calls, int n_out, Arena *a,
                         Diag *d)
{
    Strings done = {0};
    bool ok = !o->output_dir || make_dir(o->output_dir, d);
    for (int k = 0; k < n_calls && ok; k++) {
        const char *dir = n_calls > 1 ? arena_printf(a, "%s/%d", o->output_dir, k) : o->output_dir;
        if (o->output_dir)
            ok = write_outputs(dir, call[k].out, n_out, a, &done, d);
        else if (!o->quiet)
            print_outputs(call[k].out, n_out, a);
    }
    for (int i = 0; !ok && i < done.n; i++)
        remove(done.item[i]);
    if (ok && o->json)
        printf("{\"schema\": 1, \"calls\": %d, \"outputs\": %d}\n", n_calls, n_out);
}

void command_run(const Options *o, Arena *a, Diag *d)
{
    Bytes file;
    EtcProgram p;
    EtcMethod *m;
    EtcError e = {.index = -1};
    int n_calls;
    if (!load(o, a, &file, d))
        return;
    if (etc_program_open(&p, file.data, file.n, &e)) {
        runtime_failed(o->model, &e, d);
        return;
    }
    if (!init(o, &p, a, &m, d))
        return;
    Call *call = split_calls(o, a, &n_calls);
    for (int k = 0; k < n_calls; k++)
        if (!run_call(o, m, &call[k], a, d))
            return;
    give_results(o, call, n_calls, etc_method_n_outputs(m), a, d);
}
