/* target.c -- --target-runtime: which version of the ExecuTorch runtime has which kernel. */
#include "compiler/compiler.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define VERSION(major, minor, patch) (((major)*1000 + (minor)) * 1000 + (patch))

enum { FIRST = VERSION(1, 0, 1) };

typedef struct KernelRow {
    const char *name;
    int since;
} KernelRow;

static const KernelRow kernel_row[] = {
#define KERNEL(name, major, minor, patch) {name, VERSION(major, minor, patch)},
#include "compiler/runtime_kernels.def"
};

enum { N_KERNELS = sizeof kernel_row / sizeof *kernel_row };

int runtime_version(const char *text)
{
    int part[3] = {0}, n = 0;
    for (; n < 3 && isdigit((unsigned char)*text); n++) {
        char *end;
        long v = strtol(text, &end, 10);
        if (v > 999 || (*end && *end != '.'))
            return 0;
        part[n] = (int)v;
        text = end + (*end == '.' && n < 2);
    }
    int version = VERSION(part[0], part[1], part[2]);
    return *text || n < 2 || version < FIRST ? 0 : version;
}

const char *runtime_text(Arena *a, int version)
{
    return arena_printf(a, "%d.%d.%d", version / 1000000, version / 1000 % 1000, version % 1000);
}

static int by_name(const void *key, const void *row)
{
    return strcmp(key, ((const KernelRow *)row)->name);
}

int runtime_since(const char *name)
{
    const KernelRow *row = bsearch(name, kernel_row, N_KERNELS, sizeof *kernel_row, by_name);
    return row ? row->since : 0;
}

static void note_nodes(const Graph *g, const char *kernel, Diag *d)
{
    for (const Node *n = NULL; (n = walk_next(g, n));) {
        const char *out = op_info[n->op].out;
        if (out && !strcmp(out, kernel))
            diag_note(d, "node '%s' (%s)%s%s", n->loc.node ? n->loc.node : "?",
                      node_row(n)->target, n->loc.source ? " from " : "",
                      n->loc.source ? n->loc.source : "");
    }
}

bool custom_registers(const CustomOps *own, const char *kernel)
{
    for (int i = 0; own && i < own->n; i++)
        if (own->item[i]->row.out && !strcmp(own->item[i]->row.out, kernel))
            return true;
    return false;
}

static bool report(const Options *o, const Program *p, const char *kernel, int since, Arena *a,
                   Diag *d)
{
    Loc loc = {.file = o->model ? o->model : p->name};
    if (since)
        diag_unsupported(d, loc, "%s: the ExecuTorch runtime has it from %s on, not in %s",
                         kernel, runtime_text(a, since), o->target_runtime);
    else
        diag_unsupported(d, loc,
                         "%s: not among the kernels of the ExecuTorch runtime %s; a library "
                         "beside it would have to bring it",
                         kernel, o->target_runtime);
    for (int i = 0; i < p->n_methods; i++)
        note_nodes(p->method[i], kernel, d);
    return false;
}

static bool seen_before(const PteMethod *m, int method, int op)
{
    for (int k = 0; k < method; k++)
        for (int i = 0; i < m[k].n_ops; i++)
            if (!strcmp(m[k].op[i].name, m[method].op[op].name))
                return true;
    return false;
}

/* Warns of the kernel of the node, if runtime-lite alone brings it; `seen`: its operator was met. */
static void warn_of_own(const Program *p, const Node *n, bool *seen, Diag *d)
{
    const char *out = op_info[n->op].out;
    if (seen[n->op])
        return;
    seen[n->op] = true;
    if (!out || strncmp(out, "aten::", 6) || runtime_since(out))
        return;
    Loc loc = n->loc;
    loc.file = loc.file ? loc.file : p->name;
    diag_warn(d, loc, "%s: runtime-lite has this kernel, the ExecuTorch runtime has not; a library "
                      "beside it would have to bring it", out);
}

static void warn_of_all(const Program *p, Arena *a, Diag *d)
{
    bool *seen = NEW(a, bool, N_OPS);
    for (int i = 0; i < p->n_methods; i++)
        for (const Node *n = NULL; (n = walk_next(p->method[i], n));)
            warn_of_own(p, n, seen, d);
}

bool target_has_operators(const Options *o, const Program *p, const OutFile *f, Arena *a, Diag *d)
{
    EtcProgram file;
    EtcError e = {.index = -1};
    size_t n;
    bool ok = true;
    if (!o->target_runtime) {
        warn_of_all(p, a, d);
        return true;
    }
    const uint8_t *bytes = join_pieces(f, a, &n);
    if (etc_program_open(&file, bytes, n, &e))
        return diag_fault(d, FAULT_BUG, (Loc){.file = p->name}, "the .pte made is refused: %s",
                          e.what);
    int n_methods = etc_program_n_methods(&file), version = runtime_version(o->target_runtime);
    PteMethod *m = NEW(a, PteMethod, n_methods + 1);
    for (int k = 0; k < n_methods; k++) {
        m[k] = pte_method(&file, k, a);
        for (int i = 0; i < m[k].n_ops; i++) {
            int since = runtime_since(m[k].op[i].name);
            if ((!since || since > version) && !seen_before(m, k, i) &&
                !custom_registers(p->custom, m[k].op[i].name))
                ok = report(o, p, m[k].op[i].name, since, a, d);
        }
    }
    return ok;
}
