/* c_main.c -- writes OUT_main.c: a program that takes the arguments of `etc run` and calls
 * NAME_run.
 *
 * emit/main_program.h is its fixed part.  This file prints the tables of inputs and outputs, and
 * a function that finds each symbol in the sizes of inputs, checks the other sizes, and computes
 * the sizes of outputs. */
#include "emit/c_emit.h"
#include "ir/session.h"
#include "ir/escape.h"
#include <inttypes.h>
#include <string.h>

static const char *npy_type(EtcDtype t)
{
    static const char *const bits[] = {"", "u1", "u2", "", "u4", "", "", "", "u8"};
    switch (t) {
    case ETC_F32:
        return "f4";
    case ETC_F64:
        return "f8";
    case ETC_F16:
        return "f2";
    case ETC_BOOL:
        return "b1";
    case ETC_I8:
        return "i1";
    case ETC_I16:
        return "i2";
    case ETC_I32:
        return "i4";
    case ETC_I64:
        return "i8";
    default: /* numpy has no such dtype, so its raw bits are used */
        return bits[etc_dtype_size((int)t)];
    }
}

/* Returns, as a C string, the text that must follow "value:" for an input that is always the
 * same. */
static const char *literal_text(Arena *a, const Arg *v)
{
    Text t = {.a = a}, number = {.a = a};
    if (v->kind == ARG_STRING)
        put(&number, "\"%s\"", escape(a, ESCAPE_JSON, v->str));
    else if (v->kind == ARG_INT)
        put(&number, "%" PRId64, v->dim.value);
    else if (v->kind == ARG_FLOAT)
        put(&number, "%.17g", v->f);
    else
        put(&number, v->kind == ARG_NONE ? "null" : v->b ? "true" : "false");
    put_string(&t, number.s);
    return t.s;
}

static void put_table(Text *t, const char *kind, Value *const *v, int n)
{
    put(t, "static const Port %s[%d] = {", kind, n ? n : 1);
    for (int i = 0; i < n; i++) {
        put(t, "\n    {\"%s\", \"", c_identifier(t->a, v[i]->name));
        if (port_is_tensor(v[i])) {
            put_type_comment(t, v[i]->type);
            put(t, "\", \"%s\", %d, NULL},", npy_type(v[i]->type.dtype),
                v[i]->type.rank > 0 ? v[i]->type.rank : 0);
        } else
            put(t, "fixed\", NULL, 0, %s},", v[i]->literal ? literal_text(t->a, v[i]->literal) : "NULL");
    }
    put(t, n ? "\n};\n" : "{NULL, NULL, \"u1\", 0, NULL}};\n");
}

/* -- sizes ------------------------------------------------------------------------------------- */

/* Prints the range check of a size that is an element of an input.  The sizes of outputs are
 * computed from it before NAME_run checks it. */
static void put_item_check(Emit *e, Text *t, const Symbol *s)
{
    const char *name = e->symbol[s->index];
    put(t, "    if ((%s < ", name);
    put_int(t, s->lo);
    put(t, ") || (%s > ", name);
    put_int(t, s->hi);
    put(t, ")) {\n        stop_status(%d);\n    }\n", status_of_symbol(e, s->index));
}

static void put_bind(Emit *e, Text *t, bool *is_bound)
{
    const Graph *g = e->method;
    const Symbol *s;
    int64_t scale, offset;
    for (int i = 0; i < g->n_in; i++) {
        for (int k = 0; k < g->in[i]->type.rank; k++) {
            if (!dim_is_linear(g->in[i]->type.dim[k], &s, &scale, &offset) || is_bound[s->index])
                continue;
            is_bound[s->index] = true;
            put(t, "    const int64_t %s = ", e->symbol[s->index]);
            put(t, offset ? "(in[%d].dim[%d] - %" PRId64 ")" : "in[%d].dim[%d]", i, k, offset);
            put(t, scale != 1 ? " / %" PRId64 ";\n" : ";\n", scale);
        }
        for (int k = 0; k < e->p->n_syms; k++)
            if (e->item_of[k] == g->in[i]) {
                is_bound[k] = true;
                put(t, "    const int64_t %s = *(const %s *)in[%d].data;\n", e->symbol[k],
                    c_type(g->in[i]->type.dtype), i);
                put_item_check(e, t, e->p->sym[k]);
            }
    }
}

/* Prints a size and its range as a C string: "2*h, 4 to 64". */
static void put_size_text(Emit *e, Text *t, Dim d)
{
    int64_t lo, hi;
    Text size = {.a = e->a};
    put_dim(e, &size, d);
    dim_range(d, &lo, &hi);
    if (d.expr && hi == INT64_MAX)
        put(&size, ", %" PRId64 " or more", lo);
    else if (d.expr)
        put(&size, ", %" PRId64 " to %" PRId64, lo, hi);
    put_string(t, size.s);
}

static void put_size_checks(Emit *e, Text *t)
{
    const Graph *g = e->method;
    for (int i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i]->type.rank; k++) {
            Dim d = g->in[i]->type.dim[k];
            int64_t lo, hi;
            dim_range(d, &lo, &hi);
            put(t, "    if ((in[%d].dim[%d] != ", i, k);
            put_dim(e, t, d);
            put(t, ")");
            if (d.expr && lo > 0)
                put(t, " || (in[%d].dim[%d] < %" PRId64 ")", i, k, lo);
            if (d.expr && hi != INT64_MAX)
                put(t, " || (in[%d].dim[%d] > %" PRId64 ")", i, k, hi);
            put(t, ") {\n        stop_size(input[%d].name, %d, in[%d].dim[%d], ", i, k, i, k);
            put_size_text(e, t, d);
            put(t, ");\n    }\n");
        }
}

static void put_output_size(Emit *e, Text *t, int i)
{
    const Type *type = &e->method->out[i]->type;
    put(t, "    out[%d].n = 1;\n", i);
    for (int k = 0; k < type->rank; k++) {
        put(t, "    out[%d].dim[%d] = ", i, k);
        put_dim(e, t, type->dim[k]);
        put(t, ";\n    out[%d].n *= out[%d].dim[%d];\n", i, i, k);
    }
}

/* Returns the pointer to a memory: "arena"; if there are banks, "bank[1]". */
static const char *memory_in_main(const Emit *e, const Memory *m)
{
    bool is_bank = e->p->session->ram.n > 0;
    return is_bank ? arena_printf(e->a, "bank[%d]", (int)(m - e->memory)) : m->name;
}

static void put_output_sizes(Emit *e, Text *t, bool is_told)
{
    const Graph *g = e->method;
    for (int i = 0; i < g->n_out; i++) {
        if (!port_is_tensor(g->out[i]))
            continue;
        put_output_size(e, t, i);
        if (port_is_shared(e, g->out[i]))
            put(t, "    out[%d].data = (unsigned char *)%s + %" PRId64 ";\n", i,
                memory_in_main(e, memory_of(e, g->out[i]->place)),
                memory_offset(e, g->out[i]->place));
        else if (!is_told)
            put(t, "    out[%d].data = grab(out[%d].n * item_bytes(&output[%d]));\n", i, i, i);
    }
}

/* Prints variables for the sizes that NAME_run computes, with their upper bounds as first values.
 * Returns whether there are any. */
static bool put_sizes_out(Emit *e, Text *t)
{
    bool any = false;
    for (int i = 0; i < e->p->n_syms; i++) {
        if (!e->size_out[i])
            continue;
        put(t, "    int64_t %s = %" PRId64 ";\n", e->symbol[i], e->p->sym[i]->hi);
        any = true;
    }
    return any;
}

/* Prints a line of a table of texts.  The text may contain names of the user's model, so it is cut
 * to a length and escaped. */
static void put_reason(Text *t, const char *s)
{
    enum { MOST = 400 };
    if (strlen(s) > MOST)
        s = arena_printf(t->a, "%.*s...", MOST, s);
    put(t, "        ");
    put_string(t, escape(t->a, ESCAPE_TERMINAL, s));
    put(t, ",\n");
}

/* Prints the function stop_status(), which has a text for each result of NAME_run except 0. */
static void put_stop_status(Emit *e, Text *t)
{
    put(t, "\nstatic void stop_status(int status)\n{\n"
        "    static const char *const why[] = {\n        \"an argument is missing\",\n");
    for (int i = 0; i < e->p->n_syms; i++) {
        const Symbol *s = e->p->sym[i];
        Text text = {.a = e->a};
        put(&text, "%s is %s %" PRId64, e->symbol[i], s->hi == INT64_MAX ? "below" : "not in",
            s->lo);
        if (s->hi != INT64_MAX)
            put(&text, "..%" PRId64, s->hi);
        put_reason(t, text.s);
    }
    for (int i = 0; i < e->p->n_guards; i++)
        put_reason(t, arena_printf(e->a, "the model was exported for %s", e->p->guard[i].text));
    put(t, "    };\n    if (status != 0) {\n        stop(why[status - 1], \"%s_run\");\n    }\n}\n",
        e->name);
}

/* Returns whether a symbol is an element of a tensor that a node computes or a state holds. */
static bool has_own_source(const Emit *e, int symbol)
{
    const Value *v = e->item_of[symbol];
    return v && (v->def || v->state);
}

static void put_shared_inputs(Emit *e, Text *t)
{
    const Graph *g = e->method;
    for (int i = 0; i < g->n_in; i++)
        if (port_is_shared(e, g->in[i]))
            put(t, "    (void)memcpy((unsigned char *)%s + %" PRId64
                ", in[%d].data, (size_t)(in[%d].n * item_bytes(&input[%d])));\n",
                memory_in_main(e, memory_of(e, g->in[i]->place)),
                memory_offset(e, g->in[i]->place), i, i, i);
}

static bool put_call(Emit *e, Text *t)
{
    const Graph *g = e->method;
    bool *is_bound = NEW(e->a, bool, e->p->n_syms + 1), ok = true;
    put_stop_status(e, t);
    put(t, "\nstatic void call(const Tensor *in, Tensor *out, void *state, void *%s)\n{\n",
        e->p->session->ram.n ? "const *bank" : "arena");
    put_bind(e, t, is_bound);
    for (int i = 0; i < e->p->n_syms; i++)
        if (!is_bound[i] && !has_own_source(e, i))
            ok = diag_unsupported(e->d, (Loc){.file = e->p->name},
                                  "emit-c --main cannot find the size '%s' from the inputs",
                                  e->p->sym[i]->name);
    put_size_checks(e, t);
    bool any_told = put_sizes_out(e, t);
    put_output_sizes(e, t, false);
    put_shared_inputs(e, t);
    put(t, "    (void)in;\n    (void)state;\n    stop_status(%s_run(", e->name);
    for (int i = 0; i < g->n_in; i++)
        if (port_is_parameter(e, g->in[i]))
            put(t, "(%s *)in[%d].data, ", c_type(g->in[i]->type.dtype), i);
    for (int i = 0; i < g->n_out; i++)
        if (port_is_parameter(e, g->out[i]))
            put(t, "(%s *)out[%d].data, ", c_type(g->out[i]->type.dtype), i);
    for (int i = 0; i < e->p->n_syms; i++)
        if (!e->item_of[i] || e->size_out[i])
            put(t, "%s%s, ", e->size_out[i] ? "&" : "", e->symbol[i]);
    put(t, "%s", e->state_bytes ? "state, " : "");
    for (int i = 0; i < e->n_memories; i++)
        put(t, "%s%s", i ? ", " : "", memory_in_main(e, &e->memory[i]));
    put(t, e->o->parallel ? ", &threads));\n" : "));\n");
    if (any_told)
        put_output_sizes(e, t, true);
    put(t, "}\n");
    return ok;
}

/* -- main -------------------------------------------------------------------------------------- */

static const char main_text[] =
    "\n"
    "static void write_outputs(const Tensor *out, const char *dir, int number, int n_calls)\n"
    "{\n"
    "    char path[4096];\n"
    "    int n = snprintf(path, sizeof path, \"%s\", dir);\n"
    "    if (n_calls > 1) {\n"
    "        n = snprintf(path, sizeof path, \"%s/%d\", dir, number);\n"
    "    }\n"
    "    if ((n < 0) || (n > 4000)) {\n"
    "        stop(\"its name is too long\", dir);\n"
    "        return;\n"
    "    }\n"
    "    make_dir(dir);\n"
    "    make_dir(path);\n"
    "    for (int i = 0; i < N_OUT; i++) {\n"
    "        (void)snprintf(path + n, sizeof path - (size_t)n, \"/output_%d.npy\", i);\n"
    "        if (output[i].type != NULL) {\n"
    "            write_npy(&output[i], &out[i], path);\n"
    "        }\n"
    "    }\n"
    "}\n"
    "\n"
    "static void print_outputs(const Tensor *out, int number, int n_calls)\n"
    "{\n"
    "    for (int i = 0; i < N_OUT; i++) {\n"
    "        if (output[i].type == NULL) {\n"
    "            continue;\n"
    "        }\n"
    "        if (n_calls > 1) {\n"
    "            (void)printf(\"call %d \", number);\n"
    "        }\n"
    "        (void)printf(\"output %d: \", i);\n"
    "        print_tensor(&output[i], &out[i]);\n"
    "    }\n"
    "}\n"
    "\n"
    "/* Prints the flags and inputs, and ends the program. */\n"
    "static void print_help(const char *program)\n"
    "{\n"
    "    (void)printf(\"usage: %s [--input FILE.npy ...] [--next ...] [--output-dir DIR]THREADS_USAGE\\n\"\n"
    "                 \"  --input FILE.npy  the next input; value:NUMBER for a number\\n\"\n"
    "                 \"  --next            another call, whose inputs follow\\n\"\n"
    "                 \"  --output-dir DIR  writes outputs as DIR/output_0.npy ...; else they are printed\\n\",\n"
    "                 program);\n"
    "    for (int i = 0; i < N_IN; i++) {\n"
    "        (void)printf(\"input %d: %s %s\\n\", i, input[i].name, input[i].is);\n"
    "    }\n"
    "    exit(0);\n"
    "}\n"
    "\n"
    "static int is_flag(const char *word, const char *flag)\n"
    "{\n"
    "    return strcmp(word, flag) == 0;\n"
    "}\n"
    "\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "    Tensor in[N_IN + 1], out[N_OUT + 1];\n"
    "    const char *dir = NULL;\n"
    "    int n_calls = 1, number = 0, n_in = 0;\n"
    "    GRAB_MEMORY\n"
    "    (void)memset(in, 0, sizeof in);\n"
    "    (void)memset(out, 0, sizeof out);\n"
    "    for (int i = 1; i < argc; i++) {\n"
    "        n_calls += is_flag(argv[i], \"--next\");\n"
    "        if (is_flag(argv[i], \"--help\")) {\n"
    "            print_help(argv[0]);\n"
    "        }\n"
    "        if (is_flag(argv[i], \"--output-dir\") && ((i + 1) < argc)) {\n"
    "            dir = argv[i + 1];\n"
    "        }START_THREADS\n"
    "    }\n"
    "    INIT_STATE\n"
    "    for (int i = 1; i <= argc; i++) {\n"
    "        if ((i < argc) && is_flag(argv[i], \"--input\") && ((i + 1) < argc)) {\n"
    "            if (n_in == N_IN) {\n"
    "                stop(\"is one input more than the model has\", argv[i + 1]);\n"
    "            }\n"
    "            i++;\n"
    "            in[n_in] = read_input(&input[n_in], argv[i]);\n"
    "            n_in++;\n"
    "        } else if ((i < argc) && is_flag(argv[i], \"--output-dir\") && ((i + 1) < argc)) {\n"
    "            i++;\n"
    "        } else if ((i == argc) || is_flag(argv[i], \"--next\")) {\n"
    "            if (n_in != N_IN) {\n"
    "                stop(\"an input is missing; give each with --input FILE.npy\", argv[0]);\n"
    "            }\n"
    "            call(in, out, state, MEMORY);\n"
    "            if (dir != NULL) {\n"
    "                write_outputs(out, dir, number, n_calls);\n"
    "            } else {\n"
    "                print_outputs(out, number, n_calls);\n"
    "            }\n"
    "            number++;\n"
    "            n_in = 0;\n"
    "        } else TAKE_THREADS{\n"
    "            stop(\"unknown or without a value; known: --input, --next, --output-dir, --helpOTHER_FLAGS\", argv[i]);\n"
    "        }\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static void put_grab(Emit *e, Text *t)
{
    if (!e->p->session->ram.n) {
        put(t, "void *arena = grab_aligned(ARENA_BYTES), *state = grab_aligned(STATE_BYTES);");
        return;
    }
    put(t, "void *state = grab_aligned(STATE_BYTES);\n    void *const bank[] = {");
    for (int i = 0; i < e->n_memories; i++)
        put(t, "%sgrab_aligned(%s_BANK_%s_BYTES)", i ? ",\n                          " : "",
            e->upper, e->memory[i].upper);
    put(t, "};");
}

static void put_init(Emit *e, Text *t)
{
    if (e->state_bytes)
        put(t, "%s_init_state(state);", e->name);
    else
        put(t, "(void)state;");
}

static void put_threads_flag(Emit *e, Text *t)
{
    if (e->o->parallel)
        put(t, "if ((i < argc) && is_flag(argv[i], \"--threads\") && ((i + 1) < argc)) {\n"
            "            i++;\n        } else ");
}

static void put_threads_usage(Emit *e, Text *t)
{
    put(t, e->o->parallel ? " [--threads N]" : "");
}

static void put_other_flags(Emit *e, Text *t)
{
    put(t, e->o->parallel ? ", --threads" : "");
}

/* Prints the code that starts threads before the first call. */
static void put_start(Emit *e, Text *t)
{
    if (e->o->parallel)
        put(t, "\n        if (is_flag(argv[i], \"--threads\") && ((i + 1) < argc) &&\n"
            "            (%s_threads_start(&threads, (int32_t)strtol(argv[i + 1], NULL, 10)) != 0)) {\n"
            "            stop(\"threads cannot be started\", argv[i + 1]);\n        }", e->file);
}

static void put_memory(Emit *e, Text *t)
{
    put(t, e->p->session->ram.n ? "bank" : "arena");
}

/* Prints main_text.  Code that depends on the model replaces the words of `part` in it. */
static void put_main(Emit *e, Text *t)
{
    static const struct {
        const char *word;
        void (*put)(Emit *e, Text *t);
    } part[] = {{"THREADS_USAGE", put_threads_usage}, {"GRAB_MEMORY", put_grab},
                {"START_THREADS", put_start},         {"INIT_STATE", put_init},
                {"MEMORY", put_memory},               {"TAKE_THREADS", put_threads_flag},
                {"OTHER_FLAGS", put_other_flags}};
    const char *from = main_text;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        const char *at = strstr(from, part[i].word);
        assert(at);
        put_n(t, from, (size_t)(at - from));
        part[i].put(e, t);
        from = at + strlen(part[i].word);
    }
    put(t, "%s", from);
}

/* Prints what follows the fixed part: sizes, tables of inputs and outputs, the call and main. */
static bool put_body(Emit *e, Text *t)
{
    const Graph *g = e->method;
    put(t, "enum { N_IN = %d, N_OUT = %d };\n\n", g->n_in, g->n_out);
    if (!e->p->session->ram.n)
        put(t, "#define ARENA_BYTES %s_ARENA_BYTES\n", e->upper);
    put(t, "#define STATE_BYTES ");
    put(t, e->state_bytes ? "%s_STATE_BYTES\n\n" : "0\n\n", e->upper);
    if (e->o->parallel)
        put(t, "static %s_threads threads;\n\n", e->file);
    put_table(t, "input", g->in, g->n_in);
    put_table(t, "output", g->out, g->n_out);
    if (!put_call(e, t))
        return false;
    put_main(e, t);
    return true;
}

/* Prints the function that refuses a size.  It is called only where an input has an axis. */
static void put_stop_size(Text *t)
{
    put(t, "static void stop_size(const char *name, int axis, int64_t size, const char *want)\n{\n"
        "    (void)fprintf(stderr, \"error: %%s: dimension %%d is %%lld, expected %%s\\n\", name, axis,\n"
        "                  (long long)size, want);\n    exit(1);\n}\n\n");
}

bool emit_main(Emit *e, CFiles *out)
{
    Text t = {.a = e->a}, body = {.a = e->a};
    put(&t, "/* SPDX-License-Identifier: 0BSD */\n#if !defined(_POSIX_C_SOURCE)\n"
        "#define _POSIX_C_SOURCE 200809L\n#endif\n");
    put_include(e, out, &t);
    if (!put_body(e, &body))
        return false;
    if (strstr(body.s, "etc_")) /* sizes may use floordiv, mod, max, min of core.h */
        put_chunks(&t, &body, e->target, e->target->work_bytes);
    put_program(&t, "main_program.h");
    if (strstr(body.s, "stop_size"))
        put_stop_size(&t);
    put_n(&t, body.s, body.n);
    Text wrapped = {.a = e->a};
    put_wrapped(&wrapped, t.s);
    c_file(e->a, out, arena_printf(e->a, "%s_main.c", e->part), &wrapped);
    return true;
}
