/* silent.c -- replaces parts of `etc` by functions that fail without a message if the environment
 * variable SILENT names them.  The linker puts them in the place of the real ones: --wrap in
 * meson.build. */
#include "compiler/compiler.h"
#include <stdlib.h>
#include <string.h>

static bool is_silent(const char *part)
{
    const char *name = getenv("SILENT");
    return name && !strcmp(name, part);
}

#define SILENT(type, part, parameters, arguments)                     \
    type __real_##part parameters;                                    \
    type __wrap_##part parameters;                                    \
    type __wrap_##part parameters                                     \
    {                                                                 \
        return is_silent(#part) ? 0 : __real_##part arguments;        \
    }

SILENT(Program *, import_pt2, (Arena *a, const char *path, const ImportOptions *o, Diag *d),
       (a, path, o, d))
SILENT(bool, schema_check, (const Node *n, Diag *d), (n, d))
SILENT(bool, infer_linear, (const Node *n, Type *out, Diag *d), (n, out, d))
SILENT(bool, pass_dce, (Graph *g, Arena *tmp, Diag *d), (g, tmp, d))
SILENT(bool, emit_pte, (const Program *p, Arena *a, OutFile *out, PteStats *stats, Diag *d),
       (p, a, out, stats, d))
SILENT(bool, emit_c, (const CModel *m, int n, const COptions *o, Arena *a, CFiles *out, Diag *d),
       (m, n, o, a, out, d))
SILENT(bool, command_inspect, (const Options *o, Arena *a, Diag *d), (o, a, d))
