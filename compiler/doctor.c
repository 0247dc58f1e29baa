/* doctor.c -- `etc doctor`: prints which kernels and delegates a .pte needs, which library of the
 * ExecuTorch runtime has them, how much memory it takes, and what a version of the runtime would
 * refuse.  The file may come from another compiler, and this build need not be able to run it. */
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "compiler/run.h"
#include "runtime-lite/delegates/xnn_schema.h"
#include <stdlib.h>
#include <string.h>

typedef struct Library {
    const char *name; /* the prefix of its kernels' names, or a delegate's id */
    const char *what, *python, *cmake;
} Library;

static const Library library[] = {
#define LIBRARY(prefix, what, python, cmake) {prefix, what, python, cmake},
#include "compiler/runtime_libraries.def"
};

static const Library delegate[] = {
#define DELEGATE(id, python, cmake) {id, "delegate " id, python, cmake},
#include "compiler/runtime_libraries.def"
};

static const char *const brought[] = {
#define BROUGHT(kernel) kernel,
#include "compiler/runtime_libraries.def"
};

enum {
    N_LIBRARIES = sizeof library / sizeof *library,
    N_DELEGATES = sizeof delegate / sizeof *delegate,
    N_BROUGHT = sizeof brought / sizeof *brought
};

typedef struct RuntimeGap {
    const char *method, *name, *why;
} RuntimeGap;

typedef struct Doctor {
    const Options *o;
    Arena *arena;
    Diag *diag;
    int version;
    const char *runtime; /* the version as text */
    const CustomOps *own;
    Manifest *manifest; /* NULL: none; the runtime is as published */
    EtcProgram file;
    PteMethod *method;
    int n_methods;
    const Library **need;
    int n_needs;
    RuntimeGap *gap;
    int n_gaps;
} Doctor;

/* -- libraries --------------------------------------------------------------------------------- */

static const Library *library_of(const char *kernel)
{
    for (int i = 0; i < N_LIBRARIES; i++)
        if (!strncmp(kernel, library[i].name, strlen(library[i].name)))
            return &library[i];
    return NULL;
}

static const Library *delegate_of(const char *id)
{
    for (int i = 0; i < N_DELEGATES; i++)
        if (!strcmp(id, delegate[i].name))
            return &delegate[i];
    return NULL;
}

static int by_text(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

static bool is_brought(const char *kernel)
{
    return bsearch(kernel, brought, N_BROUGHT, sizeof *brought, by_text) != NULL;
}

/* Returns why the build that the manifest describes would not find a kernel or a delegate; NULL:
 * it finds it.  A manifest need not name the kernels of the runtime itself. */
static const char *build_refuses(const Doctor *x, const char *name)
{
    const Library *l = library_of(name);
    bool is_inner = l && !strcmp(l->cmake, "executorch");
    return is_inner || manifest_has(x->manifest, name) ? NULL : "--manifest does not list it";
}

/* Returns why the runtime would not find a kernel; NULL: it finds it if the library is linked. */
static const char *kernel_refused(const Doctor *x, const char *kernel)
{
    if (x->manifest && !custom_registers(x->own, kernel))
        return build_refuses(x, kernel);
    int since = runtime_since(kernel);
    if (custom_registers(x->own, kernel) || is_brought(kernel) || (since && since <= x->version))
        return NULL;
    if (since)
        return arena_printf(x->arena, "the runtime has it from %s on",
                            runtime_text(x->arena, since));
    return library_of(kernel) ? "no published library has this kernel"
                              : "no published library has it: it has to be registered (--ops says "
                                "which are)";
}

/* -- what is needed ---------------------------------------------------------------------------- */

static void need(Doctor *x, const Library *l)
{
    assert(l && l->cmake);
    for (int i = 0; i < x->n_needs; i++)
        if (!strcmp(x->need[i]->cmake, l->cmake))
            return;
    PUSH(x->arena, x->need, x->n_needs, l);
}

static void refuse(Doctor *x, const PteMethod *m, const char *name, const char *why)
{
    assert(name && why);
    RuntimeGap r = {m->name, name, why};
    PUSH(x->arena, x->gap, x->n_gaps, r);
}

static void look_at_delegate(Doctor *x, const PteMethod *m, const PteBlob *b)
{
    const Library *l = delegate_of(b->id);
    const char *why = l ? NULL : "no published library has this delegate";
    if (x->manifest)
        why = build_refuses(x, b->id);
    if (why)
        refuse(x, m, b->id, why);
    else if (l)
        need(x, l);
    if (b->wrong)
        refuse(x, m, b->id, b->wrong);
    for (int k = 1; b->is_read && k < XNN_KINDS; k++)
        if (b->n_nodes[k] && runtime_since_node(k) > x->version)
            refuse(x, m, arena_printf(x->arena, "%s's node %s", b->id, xnn_node_name[k]),
                   arena_printf(x->arena, "the delegate has it from %s on",
                                runtime_text(x->arena, runtime_since_node(k))));
}

static void look_at(Doctor *x, const PteMethod *m)
{
    for (int i = 0; i < m->n_ops; i++) {
        const char *name = m->op[i].name, *why = kernel_refused(x, name);
        const Library *l = library_of(name);
        if (why)
            refuse(x, m, name, why);
        else if (l)
            need(x, l);
    }
    for (int i = 0; i < m->n_delegates; i++)
        look_at_delegate(x, m, &m->delegate[i]);
    if (m->has_unknown_dtypes)
        refuse(x, m, "a tensor", "has a dtype that no runtime supports");
}

static bool calls(const PteMethod *m, const char *prefix)
{
    for (int i = 0; i < m->n_ops; i++)
        if (m->op[i].calls && !strncmp(m->op[i].name, prefix, strlen(prefix)))
            return true;
    return false;
}

/* Warns of a method that is quantized and has no delegate: no kernel of the runtime computes in
 * integers by itself. */
static void warn_of_slow(const Doctor *x, const PteMethod *m)
{
    if (!m->n_delegates && calls(m, "quantized_decomposed::dequantize_per") &&
        calls(m, "quantized_decomposed::quantize_per"))
        diag_warn(x->diag, (Loc){.file = x->o->model},
                  "method '%s' is quantized and has no delegate: its kernels compute in floats and "
                  "convert around each, which is slower than no quantization; compile it with "
                  "--backend xnnpack", m->name);
}

/* -- as text ----------------------------------------------------------------------------------- */

static void text_memory(const PteMethod *m, const EtcMemory *need, int64_t blobs)
{
    for (int i = 0; i < m->n_pools; i++)
        printf("  planned memory, pool %d: %lld bytes\n", i + 1, (long long)m->pool[i]);
    if (need)
        printf("  further memory in runtime-lite: tables %zu bytes, scratch %zu bytes\n",
               need->table_bytes, need->scratch_bytes);
    if (blobs)
        printf("  data of delegates: %lld bytes; delegates may keep packed copies of it\n",
               (long long)blobs);
}

static int64_t blob_bytes(const PteMethod *m)
{
    int64_t sum = 0;
    for (int i = 0; i < m->n_delegates; i++)
        sum += (int64_t)m->delegate[i].n_bytes;
    return sum;
}

static void text_method(const Doctor *x, const PteMethod *m, const EtcMemory *need)
{
    say(stdout, "method %s\n", m->name);
    text_memory(m, need, blob_bytes(m));
    for (int i = 0; i < m->n_ops; i++) {
        const Library *l = library_of(m->op[i].name);
        bool is_own = custom_registers(x->own, m->op[i].name);
        say(stdout, "  %5d %-48s %s\n", m->op[i].calls, m->op[i].name,
            kernel_refused(x, m->op[i].name) ? "refused" : is_own ? "your own"
            : l ? l->what : "the build's own");
    }
    for (int i = 0; i < m->n_delegates; i++)
        say(stdout, "  delegate %d: %s, %llu bytes\n", i, m->delegate[i].id,
            (unsigned long long)m->delegate[i].n_bytes);
}

static void text_needs(const Doctor *x)
{
    puts("needs");
    for (int i = 0; i < x->n_needs; i++) {
        const Library *l = x->need[i];
        printf("  %s: CMake target %s", l->what, l->cmake);
        printf(*l->python ? "; Python: import %s\n" : "; not in the Linux wheel\n", l->python);
    }
    if (!x->n_needs)
        puts("  nothing but the runtime");
}

/* -- as JSON ----------------------------------------------------------------------------------- */

static const char *json_or_null(const char *s, Arena *a)
{
    return s && *s ? json_text(a, s) : "null";
}

static void json_brings(const Library *l, Arena *a)
{
    printf("\"library\": %s, ", json_or_null(l ? l->what : NULL, a));
    printf("\"python\": %s, ", json_or_null(l ? l->python : NULL, a));
    printf("\"cmake\": %s}", json_or_null(l ? l->cmake : NULL, a));
}

static void json_memory(const PteMethod *m, const EtcMemory *need)
{
    printf("\"memory\": {\"pools\": [");
    for (int i = 0; i < m->n_pools; i++)
        printf("%s%lld", comma(i), (long long)m->pool[i]);
    printf("], \"delegate_bytes\": %lld, ", (long long)blob_bytes(m));
    if (need)
        printf("\"table_bytes\": %zu, \"scratch_bytes\": %zu}", need->table_bytes,
               need->scratch_bytes);
    else
        printf("\"table_bytes\": null, \"scratch_bytes\": null}");
}

static void json_method(const Doctor *x, const PteMethod *m, const EtcMemory *need)
{
    Arena *a = x->arena;
    printf("{\"name\": %s, ", json_text(a, m->name));
    json_memory(m, need);
    printf(", \"kernels\": [");
    for (int i = 0; i < m->n_ops; i++) {
        int since = runtime_since(m->op[i].name);
        printf("%s{\"name\": %s, \"calls\": %d, \"since\": %s, \"runtime_lite\": %s, ", comma(i),
               json_text(a, m->op[i].name), m->op[i].calls,
               json_or_null(since ? runtime_text(a, since) : NULL, a),
               m->op[i].is_built_in ? "true" : "false");
        json_brings(library_of(m->op[i].name), a);
    }
    printf("], \"delegates\": [");
    for (int i = 0; i < m->n_delegates; i++) {
        printf("%s{\"name\": %s, \"bytes\": %llu, ", comma(i), json_text(a, m->delegate[i].id),
               (unsigned long long)m->delegate[i].n_bytes);
        json_brings(delegate_of(m->delegate[i].id), a);
    }
    printf("]}");
}

static void json_end(const Doctor *x)
{
    Arena *a = x->arena;
    printf("], \"needs\": [");
    for (int i = 0; i < x->n_needs; i++) {
        printf("%s{", comma(i));
        json_brings(x->need[i], a);
    }
    printf("], \"refused\": [");
    for (int i = 0; i < x->n_gaps; i++) {
        const RuntimeGap *r = &x->gap[i];
        printf("%s{\"method\": %s, \"name\": %s, ", comma(i), json_text(a, r->method),
               json_text(a, r->name));
        printf("\"why\": %s}", json_text(a, r->why));
    }
    puts("]}");
}

/* ---------------------------------------------------------------------------------------------- */

static void print_methods(const Doctor *x)
{
    for (int i = 0; i < x->n_methods; i++) {
        EtcMemory memory;
        EtcError e = {.index = -1};
        bool is_known = etc_program_memory(&x->file, i, &memory, &e) == ETC_OK;
        if (x->o->json)
            fputs(comma(i), stdout);
        (x->o->json ? json_method : text_method)(x, &x->method[i], is_known ? &memory : NULL);
    }
}

static void print_all(const Doctor *x)
{
    if (x->o->json)
        printf("{\"schema\": 1, \"file\": %s, \"bytes\": %zu, \"runtime\": %s, \"methods\": [",
               json_text(x->arena, x->o->model), x->file.n_bytes, json_text(x->arena, x->runtime));
    else
        say(stdout, "%s: %zu bytes, for ExecuTorch %s\n", x->o->model, x->file.n_bytes, x->runtime);
    print_methods(x);
    (x->o->json ? json_end : text_needs)(x);
}

static bool conclude(const Doctor *x)
{
    for (int i = 0; i < x->n_gaps; i++) {
        const RuntimeGap *r = &x->gap[i];
        diag_unsupported(x->diag, (Loc){.file = x->o->model},
                         "method '%s': %s%s would refuse %s: %s", r->method,
                         x->manifest ? "this build of ExecuTorch " : "ExecuTorch ", x->runtime,
                         r->name, r->why);
    }
    for (int i = 0; i < x->n_methods; i++)
        warn_of_slow(x, &x->method[i]);
    if (!x->n_gaps && !x->o->quiet)
        say(stderr, "%s: contains nothing that %s%s would refuse\n", x->o->model,
            x->manifest ? "this build of ExecuTorch " : "ExecuTorch ", x->runtime);
    return !x->n_gaps;
}

bool command_doctor(const Options *o, Arena *a, Diag *d)
{
    Doctor x = {.o = o, .arena = a, .diag = d};
    x.runtime = o->target_runtime ? o->target_runtime : RUNTIME_NEWEST;
    x.version = runtime_version(x.runtime);
    ImportKind kind = model_kind(o, d);
    if (kind == IMPORT_UNKNOWN)
        return false;
    if (kind != IMPORT_PTE)
        return diag_error(d, (Loc){.file = o->model}, "is not a .pte; etc compile writes one");
    if (!custom_read(o, a, &x.own, d) || !manifest_read(o, a, &x.manifest, d) ||
        !pte_open(o->files, o->model, &x.file, d))
        return false;
    x.n_methods = etc_program_n_methods(&x.file);
    x.method = NEW(a, PteMethod, x.n_methods + 1);
    for (int i = 0; i < x.n_methods; i++) {
        x.method[i] = pte_method(&x.file, i, a);
        look_at(&x, &x.method[i]);
    }
    print_all(&x);
    if (x.version > runtime_version(RUNTIME_NEWEST))
        diag_warn(d, (Loc){.file = o->model},
                  "etc knows no ExecuTorch after " RUNTIME_NEWEST ", and takes --runtime %s for it",
                  x.runtime);
    return conclude(&x);
}
