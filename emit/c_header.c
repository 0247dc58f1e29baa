/* c_header.c -- prints NAME.h, and the comment at the top of NAME.h and NAME.c: what NAME_run takes
 * and returns, and how much memory it needs. */
#include "emit/c_emit.h"
#include "ir/session.h"
#include "ir/table.h"
#include <inttypes.h>
#include <string.h>

/* -- parameters of NAME_run ------------------------------------------------------------------ */

static bool is_updated(const Graph *g, const Value *v)
{
    for (int i = 0; i < g->n_updates; i++)
        if (g->update[i].target == v)
            return true;
    return false;
}

static const char *comma(int *n)
{
    return (*n)++ ? ", " : "";
}

bool port_is_tensor(const Value *v)
{
    return !v->literal && !v->type.is_none;
}

bool port_is_shared(const Emit *e, const Value *v)
{
    return e->p->session->shares_io && port_is_tensor(v) && v->type.rank != SCALAR;
}

bool port_is_parameter(const Emit *e, const Value *v)
{
    return port_is_tensor(v) && !port_is_shared(e, v);
}

void put_parameters(Emit *e, Text *t)
{
    const Graph *g = e->method;
    int n = 0;
    for (int i = 0; i < g->n_in; i++)
        if (port_is_parameter(e, g->in[i]))
            put(t, "%s%s%s *%s", comma(&n), is_updated(g, g->in[i]) ? "" : "const ",
                c_type(g->in[i]->type.dtype), e->in_name[i]);
    for (int i = 0; i < g->n_out; i++)
        if (port_is_parameter(e, g->out[i]))
            put(t, "%s%s *%s", comma(&n), c_type(g->out[i]->type.dtype), e->out_name[i]);
    for (int i = 0; i < e->p->n_syms; i++)
        if (!e->item_of[i])
            put(t, "%sint64_t %s", comma(&n), e->symbol[i]);
        else if (e->size_out[i])
            put(t, "%sint64_t *%s", comma(&n), e->size_out[i]);
    if (e->state_bytes)
        put(t, "%svoid *state", comma(&n));
    for (int i = 0; i < e->n_memories; i++)
        put(t, "%svoid *%s", comma(&n), e->memory[i].name);
    if (e->o->parallel)
        put(t, "%sconst %s_threads *threads", comma(&n), e->file);
}

void put_arguments(Emit *e, Text *t)
{
    const Graph *g = e->method;
    int n = 0;
    for (int i = 0; i < g->n_in; i++)
        if (port_is_parameter(e, g->in[i]))
            put(t, "%s%s", comma(&n), e->in_name[i]);
    for (int i = 0; i < g->n_out; i++)
        if (port_is_parameter(e, g->out[i]))
            put(t, "%s%s", comma(&n), e->out_name[i]);
    for (int i = 0; i < e->p->n_syms; i++)
        if (!e->item_of[i] || e->size_out[i])
            put(t, "%s%s", comma(&n), e->size_out[i] ? e->size_out[i] : e->symbol[i]);
    if (e->state_bytes)
        put(t, "%sstate", comma(&n));
    for (int i = 0; i < e->n_memories; i++)
        put(t, "%s%s", comma(&n), e->memory[i].name);
    if (e->o->parallel)
        put(t, "%sthreads", comma(&n));
}

/* -- results of NAME_run --------------------------------------------------------------------- */

int status_of_symbol(const Emit *e, int i)
{
    assert(i >= 0 && i < e->p->n_syms);
    (void)e;
    return 2 + i;
}

int status_of_guard(const Emit *e, int i)
{
    assert(i >= 0 && i < e->p->n_guards);
    return 2 + e->p->n_syms + i;
}

/* Prints "dimension 0 of x" for each size of an input that is the symbol or linear in it, and the
 * tensor whose element it is. */
static void put_uses(Emit *e, Text *t, const Symbol *symbol)
{
    const Graph *g = e->method;
    const Symbol *of;
    int64_t scale, offset;
    int n = 0;
    for (int i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i]->type.rank; k++)
            if (dim_is_linear(g->in[i]->type.dim[k], &of, &scale, &offset) && of == symbol)
                put(t, "%sdimension %d of %s", n++ ? ", " : ": ", k, e->in_name[i]);
    if (e->item_of[symbol->index])
        put(t, ": the element of %s", e->item_of[symbol->index]->name);
}

static void put_status(Emit *e, Text *t)
{
    put(t, "\n/* Returns 0, or\n *   1  an argument is missing or misaligned\n");
    for (int i = 0; i < e->p->n_syms; i++) {
        const Symbol *s = e->p->sym[i];
        put(t, " *   %d  %s is %s %" PRId64, status_of_symbol(e, i), e->symbol[i],
            s->hi == INT64_MAX ? "below" : "not in", s->lo);
        if (s->hi != INT64_MAX)
            put(t, "..%" PRId64, s->hi);
        put_uses(e, t, s);
        put(t, "\n");
    }
    for (int i = 0; i < e->p->n_guards; i++) {
        put(t, " *   %d  the model was exported for ", status_of_guard(e, i));
        put_comment(t, e->p->guard[i].text);
        put(t, "\n");
    }
    put(t, " */\n");
}

/* -- NAME.h ---------------------------------------------------------------------------------- */

static int longest_name(const Emit *e)
{
    size_t most = 0;
    const Graph *g = e->method;
    for (int i = 0; i < g->n_in + g->n_out + e->p->n_syms; i++) {
        int k = i - g->n_in;
        const char *name = k < 0          ? e->in_name[i]
                           : k < g->n_out ? e->out_name[k]
                                          : e->symbol[k - g->n_out];
        most = strlen(name) > most ? strlen(name) : most;
    }
    return (int)most;
}

/* Returns how the integers of a port represent real numbers; NULL: they do not. */
static const PortScale *port_scale(const Emit *e, bool is_output, int i)
{
    const Session *s = e->p->session;
    for (int k = 0; k < s->n_ports; k++)
        if (s->port[k].method == e->method && s->port[k].is_output == is_output &&
            s->port[k].index == i)
            return &s->port[k];
    return NULL;
}

static void put_port(Emit *e, Text *t, bool is_output, int i, int width)
{
    const char *name = is_output ? e->out_name[i] : e->in_name[i];
    const Value *v = is_output ? e->method->out[i] : e->method->in[i];
    const PortScale *q = port_scale(e, is_output, i);
    put(t, " *   %-9s  %-*s  ", is_output ? "output" : "input", width, name);
    put_type_comment(t, v->type);
    if (q)
        put(t, ", (q - %" PRId64 ") * %.9g", q->zero, (double)(float)q->scale);
    if (port_is_shared(e, v))
        put_memory_comment(e, t, v);
    put(t, "\n");
}

const char *c_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_library(Text *t, const char *library)
{
    put(t, " * The ranges of values were measured with ");
    put_comment(t, library);
    put(t, ";\n * another machine may measure other ranges.\n *\n");
}

static void put_ports(Emit *e, Text *t)
{
    const Graph *g = e->method;
    int width = longest_name(e);
    put(t, " *\n");
    for (int i = 0; i < g->n_in; i++)
        if (port_is_tensor(g->in[i]))
            put_port(e, t, false, i, width);
    for (int i = 0; i < g->n_out; i++)
        if (port_is_tensor(g->out[i]))
            put_port(e, t, true, i, width);
    for (int i = 0; i < e->p->n_syms; i++) {
        const Symbol *s = e->p->sym[i];
        if (e->item_of[i] && !e->size_out[i])
            continue;
        put(t, " *   %-9s  %-*s  %" PRId64 " to ", e->size_out[i] ? "size out" : "size", width,
            e->size_out[i] ? e->size_out[i] : e->symbol[i], s->lo);
        if (s->hi != INT64_MAX)
            put(t, "%" PRId64 "\n", s->hi);
        else
            put(t, "any\n");
    }
}

/* Prints the offset of a port.  The name of the macro contains the bank, so code that was
 * written for another bank does not compile. */
static void put_offset(Emit *e, Text *t, const char *port, const Value *v)
{
    bool is_bank = e->p->session->ram.n > 0;
    put(t, "#define %s_OFFSET%s%s %" PRId64 "\n", port, is_bank ? "_IN_" : "",
        is_bank ? memory_of(e, v->place)->upper : "", memory_offset(e, v->place));
}

/* Prints the macros of a model.  Bytes are those at the upper bounds of sizes, for callers with
 * static memory. */
static void put_sizes(Emit *e, Text *t)
{
    const Graph *g = e->method;
    put_memory_macros(e, t);
    if (e->state_bytes)
        put(t, "#define %s_STATE_BYTES %" PRId64 "\n", e->upper, e->state_bytes);
    for (int i = 0; i < g->n_in + g->n_out; i++) {
        bool is_in = i < g->n_in;
        const Value *v = is_in ? g->in[i] : g->out[i - g->n_in];
        int at = is_in ? i : i - g->n_in;
        int64_t n = type_bytes(v->type);
        const char *port = arena_printf(e->a, "%s_%s_%d", e->upper, is_in ? "INPUT" : "OUTPUT", at);
        const PortScale *q = port_scale(e, !is_in, at);
        if (n != INT64_MAX && port_is_tensor(v))
            put(t, "#define %s_BYTES %" PRId64 "\n", port, n);
        if (port_is_shared(e, v))
            put_offset(e, t, port, v);
        if (q) {
            put(t, "#define %s_SCALE ", port);
            put_float(t, (float)q->scale);
            put(t, "\n#define %s_ZERO (%" PRId64 ")\n", port, q->zero);
        }
    }
}

void put_about(Emit *e, int n, Text *t)
{
    const char *library = NULL;
    put(t, " -- made by etc from ");
    for (int i = 0; i < n; i++) {
        put(t, i ? ", " : "");
        put_comment(t, c_base_name(e[i].p->name));
        library = library ? library : e[i].p->session->fast_library;
    }
    put(t, "; do not edit.\n *\n");
    if (library)
        put_library(t, library);
    put(t,
        " * Everyone may use, copy, change and pass on this file for any purpose, without condition\n"
        " * and without warranty.\n");
    for (int i = 0; i < n; i++) {
        if (n > 1)
            put(t, " *\n * %s_run\n", e[i].name);
        put_ports(&e[i], t);
        put_memory_needs(&e[i], t);
    }
    const int code = code_bytes(e, n);
    if (code)
        put(t, "%s *   code       about %d bytes, so compiled, without functions of the C library\n",
            n > 1 ? " *\n" : "", code);
    if (e->o->freestanding)
        put(t, " *\n *   needs      memcpy, memmove, memset and memcmp, which compilers call on their own,\n"
            " *              and functions of the compiler's library (libgcc, compiler-rt) where the CPU\n"
            " *              has no instruction\n");
}

static void put_interface(Emit *e, Text *t)
{
    put_sizes(e, t);
    put_custom(e, t);
    if (e->state_bytes)
        put(t, "\n/* Writes the values that the model's buffers have before the first run. */\n"
            "void %s_init_state(void *state);\n", e->name);
    put_status(e, t);
    put(t, "int %s_run(", e->name);
    put_parameters(e, t);
    put(t, ");\n\n");
}

void emit_header(Emit *e, int n, const char *about, CFiles *out)
{
    Text body = {.a = e->a}, t = {.a = e->a};
    const char *guard = c_upper(e->a, e->file);
    put(&body, "#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    if (e->o->parallel)
        put_threads_type(e, &body);
    for (int i = 0; i < n; i++)
        put_interface(&e[i], &body);
    put(&body, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    const uint64_t no_secret[2] = {0};
    out->header = (uint32_t)table_hash(no_secret, body.s, body.n);
    put(&t, C_FIRST_LINES "%s.h%s */\n#ifndef %s_H\n#define %s_H 0x%" PRIx32 "U\n\n",
        e->file, about, guard, guard, out->header);
    put_wrapped(&t, body.s);
    c_file(e->a, out, ".h", &t);
}

void put_include(const Emit *e, const CFiles *out, Text *t)
{
    const char *guard = c_upper(e->a, e->file), *header = c_base_name(e->o->stem);
    put(t, "#include \"%s.h\"\n#if %s_H != 0x%" PRIx32 "U\n"
        "#error \"%s.h was not written with this file: take both from one run of etc\"\n#endif\n\n",
        header, guard, out->header, header);
}
