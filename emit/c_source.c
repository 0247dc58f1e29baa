/* c_source.c -- prints planned programs as C: NAME.c, and all files that belong to it.
 *
 * NAME.c contains, in this order, the kernel text that it needs, the constants, a static
 * function per group, and NAME_run, which is the list of calls.  On x86-64 NAME_avx2.c and
 * NAME_avx512.c include it again for wider vectors; NAME_run chooses one at run time if they are
 * linked in. */
#include "emit/c_emit.h"
#include "ir/escape.h"
#include "ir/session.h"
#include "ir/table.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_ALIGN = 64 };

/* The models of one file.  All have the same options, target and file names. */
typedef struct CSource {
    Emit *model;
    int n;
    Arena *a;
} CSource;

/* -- NAME_run -------------------------------------------------------------------------------- */

static void put_missing(Text *t, const char *name, int64_t align, int *n)
{
    put(t, "%s(%s == NULL)", (*n)++ ? " || " : "", name);
    if (align > 1)
        put(t, " || (((uintptr_t)%s %% %" PRId64 "U) != 0U)", name, align);
}

static void put_pointer_checks(Emit *e, Text *t)
{
    const Graph *g = e->method;
    int n = 0;
    put(t, "    if (");
    for (int i = 0; i < g->n_in + g->n_out; i++) {
        const Value *v = i < g->n_in ? g->in[i] : g->out[i - g->n_in];
        if (port_is_parameter(e, v))
            put_missing(t, i < g->n_in ? e->in_name[i] : e->out_name[i - g->n_in],
                        (int64_t)etc_dtype_size((int)v->type.dtype), &n);
    }
    for (int i = 0; i < e->p->n_syms; i++)
        if (e->size_out[i])
            put_missing(t, e->size_out[i], (int64_t)sizeof(int64_t), &n);
    if (e->state_bytes)
        put_missing(t, "state", POOL_ALIGN, &n);
    for (int i = 0; i < e->n_memories; i++)
        if (e->memory[i].bytes)
            put_missing(t, e->memory[i].name, POOL_ALIGN, &n);
    put(t, "%s) {\n        return 1;\n    }\n", n ? "" : "0");
}

static void put_range_check(Text *t, const char *what, int64_t lo, int64_t hi, int status,
                            int indent)
{
    put(t, "%*sif (", indent, "");
    if (lo != INT64_MIN) {
        put(t, "(%s < ", what);
        put_int(t, lo);
        put(t, ")");
    }
    if (hi != INT64_MAX) {
        put(t, "%s(%s > ", lo != INT64_MIN ? " || " : "", what);
        put_int(t, hi);
        put(t, ")");
    }
    put(t, ") {\n%*sreturn %d;\n%*s}\n", indent + 4, "", status, indent, "");
}

void put_symbol_check(Emit *e, Text *t, int i)
{
    const Symbol *s = e->p->sym[i];
    if (s->lo != INT64_MIN || s->hi != INT64_MAX)
        put_range_check(t, e->symbol[i], s->lo, s->hi, status_of_symbol(e, i), 4);
}

typedef struct Asked {
    const Emit *e;
    const Symbol *last;
    bool has_last, has_item, is_early; /* the guard has `last`; an item; an unread item */
} Asked;

static void ask(const Symbol *s, void *ctx)
{
    Asked *a = ctx;
    bool is_item = a->e->item_of[s->index];
    a->has_last = a->has_last || s == a->last;
    a->has_item = a->has_item || is_item;
    a->is_early = a->is_early || (is_item && !a->e->is_read[s->index]);
}

void put_guard_checks(Emit *e, Text *t, const Symbol *last)
{
    for (int i = 0; i < e->p->n_guards; i++) {
        const Guard *g = &e->p->guard[i];
        Asked a = {.e = e, .last = last};
        Text what = {.a = e->a};
        dim_symbols(g->size, ask, &a);
        bool is_due = last ? a.has_last && !a.is_early : !a.has_item;
        if (!is_due || !g->size.expr || (g->lo == INT64_MIN && g->hi == INT64_MAX))
            continue;
        put_dim(e, &what, g->size);
        put_range_check(t, what.s, g->lo, g->hi, status_of_guard(e, i), 4);
    }
}

static void put_checks(Emit *e, Text *t)
{
    put_pointer_checks(e, t);
    for (int i = 0; i < e->p->n_syms; i++)
        if (!e->item_of[i])
            put_symbol_check(e, t, i);
    put_guard_checks(e, t, NULL);
}

/* Returns the attribute of functions that compilers are to optimize for size. */
static const char *cold(const Emit *e)
{
    return e->is_few && e->uses_compact ? "ETC_COLD " : "";
}

static void put_run(Emit *e, Text *t)
{
    put(t, "%sstatic int %s(", cold(e), e->inner);
    put_parameters(e, t);
    put(t, ")\n{\n");
    put_checks(e, t);
    for (int i = 0; i < e->n_memories; i++) {
        const Memory *m = &e->memory[i];
        if (m->is_used)
            put(t, "    uint8_t *const %s = (uint8_t *)%s;\n", m->base, m->name);
        else if (!m->work)
            put(t, "    (void)%s;\n", m->name);
    }
    if (e->uses_kept)
        put(t, "    uint8_t *const kept = (uint8_t *)state;\n");
    if (e->locals.n)
        put_n(t, e->locals.s, e->locals.n);
    if (e->work)
        put(t, "    void *const work = %s;\n", e->work);
    if (e->o->parallel)
        put_workers(e, t);
    put(t, "\n");
    if (e->run.n)
        put_n(t, e->run.s, e->run.n);
    put(t, "    return 0;\n}\n\n");
}

static void put_init_state(Emit *e, Text *t)
{
    put(t, "void %s_init_state(void *state)\n{\n    uint8_t *const kept = (uint8_t *)state;\n",
        e->name);
    for (int i = 0; i < e->p->n_states; i++) {
        const State *s = e->p->state[i];
        if (s->kind != ST_MUTABLE || s->place.pool != POOL_STATE)
            continue;
        put(t, "    for (int64_t i = 0; i < %" PRId64 "; i++) {\n"
            "        ((%s *)(void *)(kept + %" PRId64 "))[i] = ", type_numel(s->type),
            c_type(s->type.dtype), s->place.offset);
        put(t, "%s%s;\n    }\n", e->constant[i] ? e->constant[i] : "0",
            e->constant[i] ? "[i]" : "");
    }
    put(t, "}\n");
}

static void put_declaration(Emit *e, Text *t, const char *suffix)
{
    put(t, "int %s_run%s(", e->name, suffix);
    put_parameters(e, t);
    put(t, ")");
}

static void put_forward(Emit *e, Text *t)
{
    put(t, "    return %s(", e->inner);
    put_arguments(e, t);
    put(t, ");\n}\n");
}

/* Returns " x_avx2.c" and the files of the other variants, with `between` between two of them. */
static const char *variant_files(const Emit *e, const char *between)
{
    const char *s = "";
    for (int i = 0; i < n_targets; i++)
        if (is_variant(e, &target_row[i]))
            s = arena_printf(e->a, "%s%s %s_%s.c", s, *s ? between : "", e->file,
                             target_row[i].cores);
    return s;
}

static void put_variant(Emit *e, Text *t, const Target *of)
{
    put_declaration(e, t, arena_printf(e->a, "_%s", of->cores));
    put(t, "\n    __attribute__((weak));\n");
}

static void put_choice(Emit *e, Text *t, const Target *of)
{
    put(t, "    if ((%s_run_%s != NULL) && %s) {\n        return %s_run_%s(", e->name, of->cores,
        of->test, e->name, of->cores);
    put_arguments(e, t);
    put(t, ");\n    }\n");
}

/* Prints the public function of a file with variants.  It calls the widest variant for this CPU, or
 * the function above.  Variants are weak symbols, so NAME.c can be linked without them. */
static void put_choosing_entry(Emit *e, Text *t)
{
    put(t, "/*%s, where they were linked in. */\n"
        "#if defined(__x86_64__) && defined(__ELF__) && !defined(__AVX512F__) && \\\n"
        "    (__STDC_HOSTED__ == 1)\n#define %s_HAS_VARIANTS 1\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n", variant_files(e, " and"), e->upper);
    for (int i = 0; i < n_targets; i++)
        if (is_variant(e, &target_row[i]))
            put_variant(e, t, &target_row[i]);
    put(t, "#ifdef __cplusplus\n}\n#endif\n#endif\n\n");
    put_declaration(e, t, "");
    put(t, "\n{\n#if defined(%s_HAS_VARIANTS)\n", e->upper);
    for (int i = n_targets - 1; i >= 0; i--)
        if (is_variant(e, &target_row[i]))
            put_choice(e, t, &target_row[i]);
    put(t, "#endif\n");
    put_forward(e, t);
}

/* Prints the entry of the file for a variant, which includes the file. */
static void put_entry_of_variant(Emit *e, Text *t)
{
    put(t, "#if defined(%s_VARIANT)\n\n#ifdef __cplusplus\nextern \"C\"\n#endif\nint %s_VARIANT(",
        e->upper, e->upper);
    put_parameters(e, t);
    put(t, ");\n\nint %s_VARIANT(", e->upper);
    put_parameters(e, t);
    put(t, ")\n{\n");
    put_forward(e, t);
    put(t, "\n#else\n\n");
}

static void put_entry(Emit *e, Text *t)
{
    if (has_variants(e)) {
        put_entry_of_variant(e, t);
        put_choosing_entry(e, t);
    } else {
        put(t, "%s", cold(e));
        put_declaration(e, t, "");
        put(t, "\n{\n");
        put_forward(e, t);
    }
    if (e->state_bytes) {
        put(t, "\n");
        put_init_state(e, t);
    }
    if (has_variants(e))
        put(t, "\n#endif\n");
}

/* -- instruction sets -------------------------------------------------------------------------- */

/* Prints the pragma for clang.  It sets no macros, so they are set here.  The header of
 * intrinsics is included before the pragma, which must not apply to it. */
static void put_clang_target(Text *t, const Target *of)
{
    put(t, "#elif defined(__clang__)\n%s#include <%s>\n"
        "#pragma clang attribute push(__attribute__((target(\"%s\"))), apply_to = function)\n",
        of->macros, of->header, of->features);
}

static void put_gcc_target(Text *t, const Target *of)
{
    put(t, "#else\n#pragma GCC target(\"%s\")\n",
        of->gcc_features ? of->gcc_features : of->features);
}

/* Prints the start of NAME.c for a target.  It makes the compiler use the instructions of the
 * target, whatever its flags are. */
static void put_target(Text *t, const Target *of)
{
    if (!of->condition)
        return;
    put(t, "#if !(%s)\n#error \"etc: this file is for %s\"\n", of->condition, of->name);
    if (of->features) {
        put_clang_target(t, of);
        put_gcc_target(t, of);
    }
    put(t, "#endif\n\n");
}

static void put_target_end(Text *t, const Target *of)
{
    if (of->features)
        put(t, "\n#if defined(__clang__)\n#pragma clang attribute pop\n#endif\n");
}

/* Prints an include of the file, and the macros that make it define the functions of a variant. */
static void put_variant_names(const CSource *s, Text *t, const char *isa)
{
    for (int i = 0; i < s->n; i++)
        put(t, "#define %s_VARIANT %s_run_%s\n", s->model[i].upper, s->model[i].name, isa);
    put(t, "#include \"%s.c\"\n", c_base_name(s->model->o->stem));
}

/* Writes a file such as NAME_avx2.c: the same source for wider vectors. */
static void emit_variant(const CSource *s, CFiles *out, const Target *of)
{
    Text t = {.a = s->a};
    const char *file = s->model->file, *isa = of->cores;
    put(&t, "/* SPDX-License-Identifier: 0BSD */\n"
        "/* %s.c again, for CPUs with %s; %s_run chooses it at run time.  This file is optional. */\n"
        "#if !defined(__x86_64__) || !defined(__ELF__) || defined(__AVX512F__)\n"
        "typedef int %s_%s_is_empty; /* a file must declare something */\n", file, isa,
        s->n > 1 ? "each" : s->model->name, file, isa);
    put_clang_target(&t, of);
    put_variant_names(s, &t, isa);
    put(&t, "#pragma clang attribute pop\n");
    put_gcc_target(&t, of);
    put_variant_names(s, &t, isa);
    put(&t, "#endif\n");
    c_file(s->a, out, arena_printf(s->a, "_%s.c", isa), &t);
}

/* -- NAME.c ------------------------------------------------------------------------------------ */

static void put_build(Emit *e, Text *t, const char *weights)
{
    const Target *of = e->target;
    if (of->condition)
        put(t, " *\n *   target     %s: vectors of %d bytes, fused multiply-adds %s\n", of->name,
            of->vector_bytes, of->has_fma ? "by instruction" : "emulated, which is slow");
    if (of->build)
        put(t, " *\n *   target     %s: %s\n", of->name, of->build);
    if (e->o->freestanding)
        put(t, " *\n *   build      cc -O3 -ffreestanding -c %s.c%s\n", e->file, weights);
    else
        put(t, " *\n *   build      cc -O3 %s.c%s%s -lm\n", e->file, variant_files(e, ""), weights);
    if (has_variants(e))
        put(t, " *              or, for one CPU, cc -O3 -march=... %s.c%s -lm; code for x86-64\n"
            " *              without the other files and without -march emulates each fused\n"
            " *              multiply-add, which is slow\n",
            e->file, weights);
}

/* Prints the functions of a model into `code`, and its arrays into `constants`. */
static bool put_model(Emit *e, Text *code, Text *constants, CFiles *out)
{
    if (e->functions.n)
        put_n(code, e->functions.s, e->functions.n);
    put_run(e, code);
    put_entry(e, code);
    return emit_constants(e, constants, out);
}

/* Returns the assembler files: " lib_a_weights.S lib_b_weights.S". */
static const char *weight_files(const CSource *s, const CFiles *out)
{
    const char *files = "";
    for (int i = 0; i < out->n; i++)
        if (c_file_is(&out->file[i], ".S"))
            files = arena_printf(s->a, "%s %s%s", files, s->model->file, out->file[i].suffix);
    return files;
}

/* Prints a macro that kernels read, if it is set. */
static void put_define(Text *t, bool is_set, const char *name, const char *why)
{
    if (is_set)
        put(t, "#define ETC_%s 1 /* %s */\n\n", name, why);
}

/* Returns whether vectors have one lane: where each lane of a vector costs calls of functions.  Kernels of
 * integers need several. */
static bool has_one_lane(const CSource *s)
{
    bool ok = s->model->target->lacks_floats;
    for (int i = 0; i < s->n; i++)
        for (const Node *n = NULL; ok && (n = walk_next(s->model[i].method, n));)
            ok = strncmp(op_c(n->op), "integer", 7) && strncmp(op_c(n->op), "packed", 6);
    return ok;
}

/* Writes NAME.h and NAME.c.  The functions were printed before, because the header contains sizes
 * that follow from them. */
static bool emit_source(const CSource *s, CFiles *out)
{
    Text code = {.a = s->a}, t = {.a = s->a}, constants = {.a = s->a}, about = {.a = s->a};
    Emit *e = s->model;
    for (int i = 0; i < s->n; i++) {
        put(&code, i ? "\n" : "");
        if (!put_model(&e[i], &code, &constants, out))
            return false;
    }
    put_about(e, s->n, &about);
    emit_header(e, s->n, about.s, out);
    put(&t, C_FIRST_LINES "%s.c%s", e->file, about.s);
    put_build(e, &t, weight_files(s, out));
    put(&t, " */\n\n");
    put_include(e, out, &t);
    if (!has_variants(e)) /* an earlier run with the same name may have left files of variants */
        put(&t, "#if !defined(%s_VARIANT) /* a file of another run is empty */\n\n",
            e->upper);
    bool uses_then = false, has_quads = false, has_bytes = false, has_wide_bytes = false;
    for (int i = 0; i < s->n; i++) {
        uses_then |= e[i].uses_then;
        has_quads |= e[i].has_quads;
        has_bytes |= e[i].has_bytes;
        has_wide_bytes |= e[i].has_wide_bytes;
    }
    put_define(&t, e->o->freestanding, "FREESTANDING", "no function of a C library for floats is called");
    put_define(&t, has_one_lane(s), "ONE_LANE", "vectors have one float");
    put_define(&t, uses_then, "HAS_THEN", "cores call functions that make bytes of floats");
    put_define(&t, has_quads, "HAS_QUADS", "weights of convolutions are in quads");
    put_define(&t, has_bytes && !has_wide_bytes, "REDUCED_WEIGHTS", "all 8-bit weights are in -64 .. 64");
    put_target(&t, e->target);
    put_chunks(&t, &code, e->target, e->work_bytes ? e->work_bytes : e->target->work_bytes);
    if (constants.n)
        put_n(&t, constants.s, constants.n);
    put_wrapped(&t, code.s);
    put_target_end(&t, e->target);
    put(&t, has_variants(e) ? "" : "\n#endif\n");
    c_file(s->a, out, ".c", &t);
    return true;
}

/* -- all files --------------------------------------------------------------------------------- */

/* Takes the names of parameters and variables that NAME_run has only for banks. */
static void take_banks(const Emit *e, NameSet *names)
{
    const MemoryBanks *ram = &e->p->session->ram;
    for (int i = 0; i < ram->n; i++) {
        names_take(names, ram->item[i].name);
        names_take(names, arena_printf(e->a, "pool_%s", ram->item[i].name));
    }
}

static void name_ports(Emit *e)
{
    const Graph *g = e->method;
    NameSet *names = e->run_names = c_scope(e);
    static const char *const ours[] = {"state", "arena", "pool", "kept", "work", "i"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        names_take(names, ours[i]);
    take_part_names(e, names);
    take_banks(e, names);
    e->in_name = NEW(e->a, const char *, g->n_in + 1);
    e->out_name = NEW(e->a, const char *, g->n_out + 1);
    for (int i = 0; i < e->p->n_syms; i++)
        names_take(names, e->symbol[i]);
    for (int i = 0; i < g->n_in; i++)
        e->in_name[i] = names_make(names, "", g->in[i]->name);
    for (int i = 0; i < g->n_out; i++)
        e->out_name[i] = names_make(names, "out_", g->out[i]->name);
    for (int i = 0; i < e->p->n_syms; i++)
        if (e->size_out[i])
            e->size_out[i] = names_make(names, "n_", e->p->sym[i]->name);
}

const char *const c_own_names[] = {"at",    "filled", "g",   "max",  "part", "scale",
                                   "shift", "stage",  "sum", "weight", "work", "q", NULL};

/* Names the symbols.  A symbol has the same name everywhere, so no function and no OUT_main.c may
 * declare this name. */
static void name_symbols(Emit *e)
{
    static const char *const ours[] = {"state", "arena",     "pool",        "kept",   "i",
                                       "in",    "out",       "input",       "output", "call",
                                       "stop",  "stop_size", "stop_status", "why",    "status",
                                       "grab",  "item_bytes"};
    NameSet *names = c_scope(e);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        names_take(names, ours[i]);
    for (int i = 0; c_own_names[i]; i++)
        names_take(names, c_own_names[i]);
    take_part_names(e, names);
    take_banks(e, names);
    e->symbol = NEW(e->a, const char *, e->p->n_syms + 1);
    for (int i = 0; i < e->p->n_syms; i++)
        e->symbol[i] = names_make(names, "", e->p->sym[i]->name);
}

static bool check_program(Emit *e)
{
    const Graph *g = e->method;
    Loc loc = {.file = e->p->name};
    bool ok = true;
    const char *stem = c_base_name(e->o->stem);
    if (e->p->session->ram.n && e->p->session->ram.n != g->n_pools)
        ok = diag_error(e->d, loc, "is planned for %d banks, and --bank names %d", g->n_pools,
                        e->p->session->ram.n);
    if (strpbrk(stem, "\"\\") || escape(e->a, ESCAPE_TERMINAL, stem) != stem)
        ok = diag_error(e->d, (Loc){0}, "emit-c: no #include can name '%s.h'; choose another name",
                        stem);
    for (int i = 0; i < g->n_in; i++)
        if (port_is_tensor(g->in[i]) && g->in[i]->type.rank == SCALAR)
            ok = diag_unsupported(e->d, loc, "emit-c: input '%s' is not a tensor", g->in[i]->name);
    return ok;
}

static void put_updates(Emit *e)
{
    for (int i = 0; i < e->method->n_updates; i++) {
        const Value *to = e->method->update[i].target;
        Value at = *to;
        at.place = value_place(to);
        put_move(e, e->method->update[i].value, &at, 4);
    }
}

/* Notes a size of an output that NAME_run computes.  It does not return elements of inputs, which
 * the caller can read itself. */
static void note_size_out(const Symbol *s, void *ctx)
{
    Emit *e = ctx;
    const Value *v = e->item_of[s->index];
    if (v && (v->def || v->state))
        e->size_out[s->index] = s->name;
}

static void find_told(Emit *e)
{
    e->size_out = NEW(e->a, const char *, e->p->n_syms + 1);
    for (int i = 0; i < e->method->n_out; i++)
        for (int k = 0; k < e->method->out[i]->type.rank; k++)
            dim_symbols(e->method->out[i]->type.dim[k], note_size_out, e);
}

/* Finds the symbols that the run reads from a tensor, such as an element of an input.  They are no
 * parameters. */
static void find_items(Emit *e)
{
    const Symbol *s;
    int64_t scale, offset;
    e->item_of = NEW(e->a, const Value *, e->p->n_syms + 1);
    e->is_read = NEW(e->a, bool, e->p->n_syms + 1);
    for (const Node *n = e->method->first; n; n = n->next)
        if (n->op == OP_LOCAL_SCALAR_DENSE && n->out[0]->type.dim &&
            dim_is_linear(*n->out[0]->type.dim, &s, &scale, &offset) && scale == 1 && !offset &&
            !e->item_of[s->index])
            e->item_of[s->index] = arg_value(n, "self");
}

/* Prints the code that writes outputs that are numbers. */
static bool put_numbers(Emit *e)
{
    bool ok = true;
    for (int i = 0; i < e->method->n_out; i++) {
        const Value *v = e->method->out[i];
        if (v->type.rank != SCALAR || v->type.is_none)
            continue;
        put(&e->run, "    *%s = ", e->out_name[i]);
        ok = put_scalar_of(e, &e->run, v) && ok;
        put(&e->run, ";\n");
    }
    return ok;
}

static int *count_readers(const Program *p, Arena *a)
{
    int *count = NEW(a, int, p->n_storages + 1);
    for (const Graph *g = NULL; (g = program_next(p, g));) {
        for (const Node *n = g->first; n; n = n->next)
            for (int i = 0; i < n->n_in; i++)
                if (value_is_fixed(n->in[i]))
                    count[n->in[i]->state->storage]++;
        for (int i = 0; i < g->n_out; i++)
            if (g->out[i]->state)
                count[g->out[i]->state->storage]++;
    }
    return count;
}

/* The multiply-adds of a program for which a microcontroller computes floats by compact.h, and is optimized
 * for size.  Its loops take 17 instructions for each where the other kernels take 3 to 7, and a thirtieth of
 * the memory for code. */
enum { FEW_MACS = 1 << 14 };

static bool has_few_products(const Program *p)
{
    int64_t macs = 0;
    for (const Node *n = p->method[0]->first; n; n = n->next) {
        const int64_t more = node_cost(n);
        if (more > FEW_MACS - macs || n->op == OP_WHILE_LOOP) /* nobody knows how often it runs */
            return false;
        macs += more;
    }
    return true;
}

/* Returns whether the elements of each tensor can be counted with 31 bits, as compact.h does. */
static bool has_small_tensors(const Emit *e)
{
    bool ok = true;
    for (int i = 0; ok && i < e->method->n_values; i++)
        ok = !e->value[i] || e->value[i]->type.is_none || type_numel(e->value[i]->type) <= INT32_MAX;
    return ok;
}

/* Finds out whether products of floats are computed by compact.h.  Where functions compute floats, the time
 * that other kernels save is small beside that of these. */
static void choose_products(Emit *e)
{
    const bool can_be = e->target->mcu && !e->o->parallel && !e->p->n_syms;
    e->is_few = can_be && has_few_products(e->p);
    e->is_compact = e->is_few || (can_be && e->target->lacks_floats && has_small_tensors(e));
}

static Emit emit_new(const CModel *m, const COptions *o, Arena *a, Diag *d)
{
    const Program *p = m->p;
    Emit e = {.p = p, .o = o, .a = a, .d = d, .method = p->method[0], .bound = m->bound,
              .target = o->target ? o->target : target_row, .file = c_model_name(a, o->stem),
              .part = m->name ? arena_printf(a, "_%s", m->name) : "",
              .functions = {.a = a}, .locals = {.a = a}, .run = {.a = a}};
    e.name = m->name ? m->name : e.file;
    e.upper = c_upper(a, e.name);
    e.constant = NEW(a, const char *, p->n_states + 1);
    e.reads = NEW(a, int64_t, p->n_states + 1);
    e.n_readers = count_readers(p, a);
    e.of_storage = NEW(a, const State *, p->n_storages + 1);
    e.local = NEW(a, const char *, e.method->n_values + 1);
    e.value = graph_values(e.method, a);
    e.graph = e.method;
    choose_products(&e);
    assert(p->stage == STAGE_PLANNED);
    return e;
}

/* Prints the functions of a model into e->functions, and their calls into e->run. */
static bool emit_model(Emit *e)
{
    if (!check_program(e))
        return false;
    name_symbols(e);
    find_items(e);
    find_told(e);
    name_ports(e);
    memory_lay_out(e);
    emit_lifetimes(e);
    parts_start(e);
    bool ok = emit_graph(e, e->method, 4);
    if (ok)
        put_updates(e);
    return ok && put_numbers(e);
}

/* Places the scratch of each model.  All get the largest size, because the kernels of a file
 * may use the same scratch, whichever model calls them. */
static void lay_out_scratch(const CSource *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->n; i++)
        most = s->model[i].work_bytes > most ? s->model[i].work_bytes : most;
    for (int i = 0; i < s->n; i++) {
        Emit *e = &s->model[i];
        e->work_bytes = most;
        const int64_t each = most + round_up(e->lines_bytes, WORK_ALIGN);
        const int64_t all = e->uses_parts ? e->o->parallel * round_up(each, WORK_ALIGN) : each;
        e->scratch_bytes = e->uses_work ? all : 0;
        e->work = memory_take_work(e);
    }
}

/* Gives all models one set of names for their functions and arrays. */
static void share_names(const CSource *s)
{
    NameSet *names = names_new(s->a);
    for (int i = 0; i < s->n; i++)
        take_names(&s->model[i], names);
    for (int i = 0; i < s->n; i++) {
        s->model[i].names = names;
        s->model[i].inner = s->n > 1 ? names_make(names, "run_", s->model[i].name) : "run";
    }
}

static bool emit_files(const CSource *s, CFiles *out)
{
    Emit *e = s->model;
    if (!emit_source(s, out))
        return false;
    for (int i = 0; i < s->n; i++)
        memory_tell(&e[i], out);
    const int run = stack_of_run(e);
    for (int i = 0; i < e->n_layers; i++)
        e->layer[i].stack = run && e->layer[i].stack >= 0 ? run + e->layer[i].stack : 0;
    out->code = code_bytes(e, s->n);
    out->layer = e->layer;
    out->n_layers = s->n == 1 ? e->n_layers : 0;
    for (int i = 0; i < n_targets; i++)
        if (is_variant(e, &target_row[i]))
            emit_variant(s, out, &target_row[i]);
    if (e->o->parallel)
        emit_threads(e, out);
    for (int i = 0; i < s->n && e->o->main; i++)
        if (!emit_main(&e[i], out))
            return false;
    if (e->o->build_files)
        emit_build_files(e, s->n, out);
    return true;
}

bool emit_c(const CModel *model, int n, const COptions *o, Arena *a, CFiles *out, Diag *d)
{
    CSource s = {.model = NEW(a, Emit, n), .n = n, .a = a};
    bool ok = true, for_bytes = false;
    *out = (CFiles){.scratch = NEW(a, int64_t, n)};
    for (int i = 0; i < n; i++) {
        if (model[i].p->n_methods != 1)
            return diag_unsupported(d, (Loc){.file = model[i].p->name},
                                    "emit-c takes one method, the model has %d",
                                    model[i].p->n_methods);
        s.model[i] = emit_new(&model[i], o, a, d);
        for_bytes = for_bytes || program_multiplies_bytes(model[i].p);
    }
    for (int i = 0; i < n; i++)
        s.model[i].multiplies_bytes = for_bytes;
    share_names(&s);
    for (int i = 0; i < n; i++)
        ok = emit_model(&s.model[i]) && ok;
    if (!ok)
        return false;
    lay_out_scratch(&s);
    return emit_files(&s, out);
}
