/* c_custom.c -- prints calls of the functions that compute a user's own operators, and their
 * declarations in NAME.h.
 *
 * A tensor is passed as a pointer, its sizes and the number of sizes; results come last.  The
 * declared dtypes are those of the calls, so all calls of one function must agree on them. */
#include "emit/c_emit.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_PORTS = 16 + 8, UNKNOWN = -1 }; /* the most arguments and results of an operator */

struct CustomCall {
    const CustomOp *op;
    int dtype[MOST_PORTS]; /* by port; UNKNOWN: no tensor, or all calls so far omit it */
};

typedef struct Call {
    Function *f;
    const Node *n;
    CustomCall *of;
    Text text; /* its arguments */
    int n_args;
} Call;

/* -- calls ------------------------------------------------------------------------------------- */

static CustomCall *call_of(Emit *e, const CustomOp *op)
{
    for (int i = 0; i < e->n_custom; i++)
        if (e->custom[i]->op == op)
            return e->custom[i];
    CustomCall *c = NEW(e->a, CustomCall, 1);
    c->op = op;
    for (int i = 0; i < MOST_PORTS; i++)
        c->dtype[i] = UNKNOWN;
    PUSH(e->a, e->custom, e->n_custom, c);
    return c;
}

static void put_comma(Call *c)
{
    put(&c->text, c->n_args++ ? ", " : "");
}

static const char *local(Call *c, const char *name, const char *suffix)
{
    return names_make(c->f->names, "", arena_printf(c->f->e->a, "%s%s", name, suffix));
}

/* Prints an array of n numbers, from `dim` or else from `item`, in the function's body.  Returns
 * its name, or "NULL" if n is 0. */
static const char *put_array(Call *c, const char *name, const Arg *item, const Dim *dim, int n)
{
    Text *t = &c->f->body;
    if (!n)
        return "NULL";
    bool is_float = !dim && item->kind == ARG_FLOAT;
    put(t, "    const %s %s[%d] = {", is_float ? "double" : "int64_t", name, n);
    for (int i = 0; i < n; i++) {
        put(t, i ? ", " : "");
        if (is_float)
            put_double(t, item[i].f);
        else
            function_dim(c->f, dim ? dim[i] : item[i].dim);
    }
    put(t, "};\n");
    return name;
}

static const char run_time_number[] =
    "cannot pass a number that is computed at run time to a function";

static bool put_tensor(Call *c, const Value *v, int port, const char *name)
{
    Type t = value_type(v);
    int *known = &c->of->dtype[port];
    if (t.rank == SCALAR || t.is_none)
        return function_refuse(c->f, c->n, run_time_number);
    if (!c_type_is_dense(c->f->e, t))
        return function_refuse(c->f, c->n, "expects a dense tensor here");
    if (*known != UNKNOWN && *known != (int)t.dtype)
        return function_refuse(c->f, c->n,
                               arena_printf(c->f->e->a, "calls %s with '%s' as %s and elsewhere as "
                                            "%s: describe an operator for each",
                                            c->of->op->function, name, dtype_name((EtcDtype)*known),
                                            dtype_name(t.dtype)));
    *known = (int)t.dtype;
    const char *pointer = function_pointer(c->f, v);
    const char *sizes = put_array(c, local(c, name, "_sizes"), NULL, t.dim, t.rank);
    put_comma(c);
    put(&c->text, "%s, %s, %d", pointer, sizes, t.rank);
    return true;
}

static bool put_list(Call *c, const SchemaArg *want, Arg list)
{
    bool is_float = want->type == SCH_FLOAT;
    Arg *item = NEW(c->f->e->a, Arg, list.list.n + 1);
    for (int i = 0; i < list.list.n; i++) {
        item[i] = list.list.item[i];
        if (item[i].kind == ARG_VALUE)
            return function_refuse(c->f, c->n, run_time_number);
        if (item[i].kind == ARG_BOOL)
            item[i] = (Arg){.kind = ARG_INT, .dim = DIM(item[i].b)};
        if (is_float && item[i].kind == ARG_INT)
            item[i] = (Arg){.kind = ARG_FLOAT, .f = (double)item[i].dim.value};
    }
    const char *name = put_array(c, local(c, want->name, "_items"), item, NULL, list.list.n);
    put(&c->text, "%s, %d", name, list.list.n);
    return true;
}

/* Prints an argument that is no tensor: a number, a text or a list. */
static bool put_literal(Call *c, const SchemaArg *want, Arg a)
{
    bool is_int = a.kind == ARG_INT || a.kind == ARG_BOOL;
    bool is_double = want->type == SCH_FLOAT || want->type == SCH_SCALAR;
    Dim d = a.kind == ARG_BOOL ? DIM(a.b) : a.dim;
    put_comma(c);
    if (a.kind == ARG_LIST)
        return put_list(c, want, a);
    if (a.kind == ARG_STRING)
        put_string(&c->text, a.str);
    else if (a.kind == ARG_DTYPE)
        put(&c->text, "%d", (int)a.dtype);
    else if (is_double && (a.kind == ARG_FLOAT || (is_int && !d.expr)))
        put_double(&c->text, a.kind == ARG_FLOAT ? a.f : (double)d.value);
    else if (is_int && !is_double) {
        put_dim(c->f->e, &c->text, d);
        function_note(c->f, d);
    } else
        return function_refuse(c->f, c->n, arena_printf(c->f->e->a, "hands no such '%s' to a "
                                                        "function", want->text));
    return true;
}

static bool put_argument(Call *c, const SchemaArg *want, int i)
{
    const Value *v = arg_value(c->n, i);
    if (want->type != SCH_TENSOR)
        return put_literal(c, want, c->n->arg[i]);
    if (v && !v->type.is_none)
        return put_tensor(c, v, i, want->name);
    if (c->n->arg[i].kind != ARG_NONE && !v)
        return function_refuse(c->f, c->n, "cannot pass a number as a tensor to a function");
    put_comma(c);
    put(&c->text, "NULL, NULL, 0");
    return true;
}

static bool is_name_of(const Emit *e, const char *function)
{
    size_t n = strlen(e->name);
    const char *rest = function + n + 1;
    return !strncmp(function, e->name, n) && function[n] == '_' &&
           (!strncmp(rest, "run", 3) || !strcmp(rest, "init_state") || !strcmp(rest, "weights"));
}

bool emit_custom(Function *f, const Node *n, Clamp clamp)
{
    Call c = {.f = f, .n = n, .of = call_of(f->e, n->custom), .text = {.a = f->e->a}};
    const Schema *s = n->custom->schema;
    bool ok = true;
    (void)clamp;
    if (is_name_of(f->e, n->custom->function))
        return function_refuse(f, n, arena_printf(f->e->a, "writes a function %s of its own: "
                                                  "choose another name for yours or for the file",
                                                  n->custom->function));
    for (int i = 0; ok && i < s->n_args; i++)
        ok = put_argument(&c, &s->arg[i], i);
    for (int i = 0; ok && i < n->n_out; i++)
        ok = put_tensor(&c, n->out[i], s->n_args + i, "out");
    put(&f->body, "    %s(%s);\n", n->custom->function, c.text.s ? c.text.s : "");
    return ok;
}

/* -- declarations ------------------------------------------------------------------------------ */

static void put_port(Text *t, NameSet *names, const CustomCall *c, int port, const char *name,
                     bool is_result)
{
    const char *type = c->dtype[port] == UNKNOWN ? "void" : c_type((EtcDtype)c->dtype[port]);
    const char *own = names_make(names, "", name);
    const char *sizes = names_make(names, "", arena_printf(t->a, "%s_sizes", own));
    const char *rank = names_make(names, "", arena_printf(t->a, "%s_rank", own));
    put(t, "%s%s *%s, const int64_t *%s, int32_t %s", is_result ? "" : "const ", type, own,
        sizes, rank);
}

static void put_parameter(Text *t, NameSet *names, const SchemaArg *arg)
{
    static const char *const type[] = {[SCH_SCALAR] = "double ", [SCH_INT] = "int64_t ",
                                       [SCH_FLOAT] = "double ",  [SCH_BOOL] = "int32_t ",
                                       [SCH_STR] = "const char *", [SCH_DTYPE] = "int32_t "};
    const char *own = names_make(names, "", arg->name);
    if (arg->is_list)
        put(t, "const %s*%s, int32_t %s", type[arg->type], own,
            names_make(names, "", arena_printf(t->a, "%s_count", own)));
    else
        put(t, "%s%s", type[arg->type], own);
}

static void put_declaration(Text *t, NameSet *names, const CustomCall *c)
{
    const Schema *s = c->op->schema;
    put(t, "\n/* %s */\nvoid %s(", c->op->name, c->op->function);
    for (int i = 0; i < s->n_args; i++) {
        put(t, i ? ", " : "");
        if (s->arg[i].type == SCH_TENSOR)
            put_port(t, names, c, i, s->arg[i].name, false);
        else
            put_parameter(t, names, &s->arg[i]);
    }
    for (int i = 0; i < s->n_outs; i++) {
        put(t, i || s->n_args ? ", " : "");
        const char *name = s->n_outs > 1 ? arena_printf(t->a, "out_%d", i) : "out";
        put_port(t, names, c, s->n_args + i, name, true);
    }
    put(t, ");\n");
}

void put_custom(Emit *e, Text *t)
{
    if (e->n_custom)
        put(t, "\n/* Your own operators, whose functions you write.  A tensor is passed as its dense\n"
            " * elements, its sizes and its rank.  Results come last, and the function writes all\n"
            " * elements of each.  An argument that is left out is NULL. */\n");
    for (int i = 0; i < e->n_custom; i++)
        put_declaration(t, c_scope(e), e->custom[i]);
}
