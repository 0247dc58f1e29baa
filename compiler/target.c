/* target.c -- --target: finds its row; --target-runtime: knows which version of the ExecuTorch runtime
 * has which kernel and which node of XNNPACK. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "runtime-lite/delegates/xnn_schema.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/cpu.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Returns the name of the best set of kernels that this CPU runs, as target_host expects it. */
static const char *host_cores(void)
{
    const char *cores = etc_cores()->name;
    return !strcmp(cores, "avx512") && ETC_CPU_HAS("avx512vnni", AVX512_VNNI) ? "vnni" : cores;
}

const Target *c_target(const Options *o)
{
    struct utsname machine;
    if (!o->target || strcmp(o->target, "host") != 0)
        return o->target ? target_find(o->target) : NULL;
    return uname(&machine) ? NULL : target_host(machine.machine, host_cores());
}

enum { FIRST = RUNTIME_VERSION(1, 0, 1), LAST_PATCH = 999 };

typedef struct KernelRow {
    const char *name;
    int since;
} KernelRow;

static const KernelRow kernel_row[] = {
#define KERNEL(name, major, minor, patch) {name, RUNTIME_VERSION(major, minor, patch)},
#include "compiler/runtime_kernels.def"
};

enum { N_KERNELS = sizeof kernel_row / sizeof *kernel_row };

int runtime_version(const char *text)
{
    int part[3] = {0}, n = 0;
    if (!strcmp(text, "lite"))
        return RUNTIME_LITE;
    for (; n < 3 && isdigit((unsigned char)*text); n++) {
        char *end;
        long v = strtol(text, &end, 10);
        if (v > 999 || (*end && *end != '.'))
            return 0;
        part[n] = (int)v;
        text = end + (*end == '.' && n < 2);
    }
    int version = RUNTIME_VERSION(part[0], part[1], n < 3 ? LAST_PATCH : part[2]);
    return *text || n < 2 || version < FIRST ? 0 : version;
}

int runtime_since_node(int kind)
{
    assert(kind > XNN_NO_KIND && kind < XNN_KINDS);
    switch (kind) {
#define X(id, major, minor, patch) \
    case XNN_##id:                 \
        return RUNTIME_VERSION(major, minor, patch);
        XNN_LATER_NODES(X)
#undef X
    default:
        return FIRST;
    }
}

/* Returns whether the passes must rewrite an operator because the runtime lacks its kernel.
 * Operators whose rewriting unrolls them are exempt, since large matrices are never unrolled, and
 * views, which need no kernel where they share bytes. */
static bool is_lacking(OpId op, int version)
{
    int since = op_info[op].has_out ? runtime_since(op_out(op)) : 0;
    return since > version && !(op_info[op].flags & (UNROLLS | UNROLLS_TINY | VIEW));
}

void target_prepare(const Options *o, Program *p)
{
    if (!o->target_runtime)
        return;
    bool *lacks = NEW(p->arena, bool, N_OPS);
    p->session->runtime = runtime_version(o->target_runtime);
    for (int i = 0; i < N_OPS; i++)
        lacks[i] = is_lacking((OpId)i, p->session->runtime);
    p->session->lacks = lacks;
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
        const char *out = op_out(n->op);
        if (out && !strcmp(out, kernel))
            diag_note(d, "node '%s' (%s)%s%s", n->loc.node ? n->loc.node : "?",
                      node_target(n), n->loc.source ? " from " : "",
                      n->loc.source ? n->loc.source : "");
    }
}

bool custom_registers(const CustomOps *own, const char *kernel)
{
    for (int i = 0; own && i < own->n; i++)
        if (own->item[i]->out && !strcmp(own->item[i]->out, kernel))
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

/* Checks that the runtime has all nodes of XNNPACK that the file needs.  Partition avoids other
 * nodes, but a text may be partitioned already. */
static bool has_all_nodes(const Options *o, const PteMethod *m, Arena *a, Diag *d)
{
    int version = runtime_version(o->target_runtime);
    bool ok = true;
    for (int i = 0; i < m->n_delegates; i++)
        for (int k = 1; m->delegate[i].is_read && k < XNN_KINDS; k++)
            if (m->delegate[i].n_nodes[k] && runtime_since_node(k) > version)
                ok = diag_unsupported(d, (Loc){.file = o->model},
                                      "XNNPACK has node %s from ExecuTorch %s on, not in %s",
                                      xnn_node_name[k], runtime_text(a, runtime_since_node(k)),
                                      o->target_runtime);
    return ok;
}

static bool seen_before(const PteMethod *m, int method, int op)
{
    for (int k = 0; k < method; k++)
        for (int i = 0; i < m[k].n_ops; i++)
            if (!strcmp(m[k].op[i].name, m[method].op[op].name))
                return true;
    return false;
}

/* Returns whether the node is a view that lies in the bytes of its operand, so that nothing calls it. */
static bool is_in_place(const Node *n)
{
    const Value *x = first_operand(n), *y = n->n_out == 1 ? n->out[0] : NULL;
    return op_info[n->op].flags & VIEW && x && y && type_is_static(y->type) && value_lies_within(y, x);
}

/* Warns if only runtime-lite has the kernel of the node.  `seen` has the operators that were
 * handled before. */
static void warn_of_own(const Program *p, const Node *n, bool *seen, Diag *d)
{
    const char *out = op_out(n->op);
    if (seen[n->op] || is_in_place(n))
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
    if (p->session->runtime == RUNTIME_LITE) /* it has all kernels that there are */
        return true;
    const uint8_t *bytes = join_pieces(f, a, &n);
    if (etc_program_open(&file, bytes, n, &e))
        return diag_fault(d, FAULT_BUG, (Loc){.file = p->name}, "the .pte made is refused: %s",
                          e.what);
    int n_methods = etc_program_n_methods(&file), version = runtime_version(o->target_runtime);
    PteMethod *m = NEW(a, PteMethod, n_methods + 1);
    for (int k = 0; k < n_methods; k++) {
        m[k] = pte_method(&file, k, a);
        ok = has_all_nodes(o, &m[k], a, d) && ok;
        for (int i = 0; i < m[k].n_ops; i++) {
            int since = runtime_since(m[k].op[i].name);
            if ((!since || since > version) && !seen_before(m, k, i) &&
                !custom_registers(p->custom, m[k].op[i].name))
                ok = report(o, p, m[k].op[i].name, since, a, d);
        }
    }
    return ok;
}
