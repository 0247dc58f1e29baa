/* pt2_node.c -- one node of a model.json: where it came from, its arguments by schema, its results.
 *
 * Sizes are recorded as expressions, so no node reads the result of a node that computes a size
 * (sym_size, Python's arithmetic).  Such a node is imported, for dce to remove, or left out if it
 * has no row. */
#define _GNU_SOURCE /* memrchr */
#include "compiler/import/internal.h"
#include <string.h>

enum { MAX_ARGS = 64 };

/* -- origin ------------------------------------------------------------------------------ */

const char *import_source(Arena *a, const char *trace)
{
    static const char start[] = "File \"", middle[] = "\", line ";
    const char *frame = NULL, *line = trace ? trace + strlen(trace) : NULL;
    while (line && !frame) { /* a frame is at the start of a line; the innermost comes last */
        const char *before = memrchr(trace, '\n', (size_t)(line - trace));
        const char *s = before ? before + 1 : trace;
        s += strspn(s, " ");
        frame = strncmp(s, start, strlen(start)) ? NULL : s + strlen(start);
        line = before;
    }
    const char *end = frame ? strstr(frame, middle) : NULL;
    if (!end || memchr(frame, '\n', (size_t)(end - frame)))
        return NULL;
    const char *base = end;
    while (base > frame && base[-1] != '/' && base[-1] != '\\')
        base--;
    const char *number = end + strlen(middle);
    const size_t n = (size_t)(end - base), digits = strspn(number, "0123456789");
    char *source = NEW(a, char, n + digits + 2);
    memcpy(source, base, n);
    source[n] = ':';
    memcpy(source + n + 1, number, digits);
    return source;
}

/* Returns "blocks.0.conv" for
 * "...;L__self___blocks_0_conv,L['self'].blocks.0.conv,torch.nn.Conv2d", also if the path reads
 * getattr(L['self'].blocks, '0').conv: its words are joined by dots. */
static const char *module_of(Arena *a, const char *stack)
{
    const char *last = stack ? strrchr(stack, ';') : NULL;
    last = last ? last + 1 : stack;
    const char *path = last ? strchr(last, ',') : NULL, *end = last ? strrchr(last, ',') : NULL;
    if (!path || path == end)
        return NULL;
    char *out = NEW(a, char, end - path + 1), *to = out;
    for (const char *s = path + 1; s < end; s++) {
        if (!strncmp(s, "getattr(", 8))
            s += 7;
        else if (!strchr(".[]()', \"", *s))
            *to++ = *s;
        else if (to > out && to[-1] != '.')
            *to++ = '.';
    }
    *to = '\0';
    while (to > out && to[-1] == '.')
        *--to = '\0';
    size_t self = !strncmp(out, "L.self", 6) && (!out[6] || out[6] == '.') ? 6 + (out[6] == '.')
                                                                           : 0;
    return out + self;
}

static const char *first_output(const Json *node)
{
    const Json *content = NULL;
    for (JsonIter it = json_iter(json_get(node, "outputs")); json_next(&it);)
        if (json_tag(it.value, &content) && json_string(json_get(content, "name")))
            return json_string(json_get(content, "name"));
    return "?";
}

static Loc origin(Scope *s, const Json *node, const char *op)
{
    Pt2 *p = s->in;
    Arena *a = p->program->arena;
    const Json *metadata = json_get(node, "metadata");
    const char *name = json_string(json_get(node, "name"));
    if (!name)
        name = first_output(node);
    return (Loc){.file = p->loc.file,
                 .node = arena_str(a, name, strlen(name)),
                 .op = arena_str(a, op, strlen(op)),
                 .module = module_of(a, json_string(json_get(metadata, "nn_module_stack"))),
                 .source = import_source(a, json_string(json_get(metadata, "stack_trace")))};
}

/* -- arguments --------------------------------------------------------------------------- */

typedef struct Reader {
    Scope *scope;
    Node *node;
    const SchemaArg *want;
} Reader;

typedef bool ReadFn(Reader *r, const Json *v, Arg *out);

static bool bad(Reader *r, const char *what)
{
    return diag_error(r->scope->in->diag, r->node->loc, "argument '%s' is not %s", r->want->name,
                      what);
}

static bool unsupported(Reader *r, const char *what)
{
    return diag_unsupported(r->scope->in->diag, r->node->loc, "argument '%s' is %s", r->want->name,
                            what);
}

static bool read_none(Reader *r, const Json *v, Arg *out)
{
    (void)r, (void)v;
    *out = (Arg){.kind = ARG_NONE};
    return true;
}

static bool read_tensor(Reader *r, const Json *v, Arg *out)
{
    Value *value = pt2_use(r->scope, r->node->loc, v);
    if (value && r->scope->casts)
        value = pt2_cast_operand(r->scope, r->node->loc, value);
    if (value)
        *out = node_use(r->node, value);
    return value != NULL;
}

static bool read_optional_tensor(Reader *r, const Json *v, Arg *out)
{
    const Json *content = NULL;
    const char *tag = json_tag(v, &content);
    if (tag && !strcmp(tag, "as_none"))
        return read_none(r, content, out);
    return tag && !strcmp(tag, "as_tensor") ? read_tensor(r, content, out)
                                            : bad(r, "a tensor or none");
}

/* Makes an integer in the form in which the schema wants a number here. */
static bool number(Reader *r, Dim d, Arg *out)
{
    if (r->want->type != SCH_FLOAT) {
        *out = (Arg){.kind = ARG_INT, .dim = d};
        return true;
    }
    if (d.expr)
        return unsupported(r, "a symbolic size where a float is wanted");
    *out = (Arg){.kind = ARG_FLOAT, .f = (double)d.value};
    return true;
}

static bool read_int(Reader *r, const Json *v, Arg *out)
{
    int64_t i;
    return json_int(v, &i) ? number(r, DIM(i), out) : bad(r, "an integer of 64 bits");
}

static bool read_float(Reader *r, const Json *v, Arg *out)
{
    *out = (Arg){.kind = ARG_FLOAT};
    return json_float(v, &out->f) || bad(r, "a number");
}

static bool read_bool(Reader *r, const Json *v, Arg *out)
{
    *out = (Arg){.kind = ARG_BOOL};
    return json_bool(v, &out->b) || bad(r, "true or false");
}

static bool read_string(Reader *r, const Json *v, Arg *out)
{
    const char *s = json_string(v);
    if (!s)
        return bad(r, "a string");
    *out = (Arg){.kind = ARG_STRING, .str = arena_str(r->scope->in->program->arena, s, strlen(s))};
    return true;
}

static bool read_sym_int(Reader *r, const Json *v, Arg *out)
{
    Scope *s = r->scope;
    const Json *content = NULL;
    const char *tag = json_tag(v, &content), *name = json_string(content);
    if (tag && !strcmp(tag, "as_int"))
        return read_int(r, content, out);
    if (!tag || strcmp(tag, "as_name") != 0 || !name)
        return bad(r, "a size");
    const Name *n = pt2_name(s, r->node->loc, name);
    Dim d;
    if (!n)
        return false;
    if (!n->sym_int)
        return bad(r, "a size but a tensor");
    return pt2_dim(s->in, r->node->loc, n->sym_int, &d) && number(r, d, out);
}

static bool read_sym_bool(Reader *r, const Json *v, Arg *out)
{
    const Json *content = NULL;
    const char *tag = json_tag(v, &content), *text = json_string(content);
    if (tag && !strcmp(tag, "as_bool"))
        return read_bool(r, content, out);
    Name *n = text ? table_find_text(&r->scope->names, text) : NULL;
    if (r->want->type != SCH_TENSOR || !n || !n->sym_bool)
        return unsupported(r, "a symbolic bool");
    Value *value = pt2_truth(r->scope, r->node->loc, n->sym_bool);
    if (value)
        *out = node_use(r->node, value);
    return value != NULL;
}

static bool read_sym_float(Reader *r, const Json *v, Arg *out)
{
    const Json *content = NULL;
    const char *tag = json_tag(v, &content);
    Type other = {.dtype = ETC_F32, .rank = 1};
    if (tag && !strcmp(tag, "as_float"))
        return read_float(r, content, out);
    for (int i = 0; i < r->node->n_in; i++)
        other = r->node->in[i]->type;
    Value *value = r->want->type == SCH_TENSOR
                       ? pt2_float_tensor(r->scope, r->node->loc, v, other)
                       : pt2_float_number(r->scope, r->node->loc, v);
    if (value)
        *out = node_use(r->node, value);
    return value != NULL;
}

/* Reads a complex number in the place of a tensor, as in x * 1j. */
static bool read_complex(Reader *r, const Json *v, Arg *out)
{
    Diag *d = r->scope->in->diag;
    Graph *g = r->scope->graph;
    Loc loc = r->node->loc;
    double part[2];
    Node *made[2];
    if (r->want->type != SCH_TENSOR)
        return unsupported(r, "a complex number: use a tensor instead");
    if (!json_float(json_get(v, "real"), &part[0]) || !json_float(json_get(v, "imag"), &part[1]))
        return bad(r, "a complex number");
    for (int i = 0; i < 2; i++) {
        Arg none = {.kind = ARG_LIST}, number = {.kind = ARG_FLOAT, .f = part[i]};
        made[i] = build(g, NULL, loc, OP_FULL, d, "aat", none, number, ETC_F64);
        if (!made[i])
            return false;
    }
    Node *n = build(g, NULL, loc, OP_COMPLEX, d, "vv", made[0]->out[0], made[1]->out[0]);
    if (n)
        *out = node_use(r->node, n->out[0]);
    return n != NULL;
}

static bool read_dtype(Reader *r, const Json *v, Arg *out)
{
    *out = (Arg){.kind = ARG_DTYPE};
    return pt2_dtype(r->scope->in, r->node->loc, r->want->name, v, &out->dtype);
}

static bool read_name_of(Reader *r, const Json *v, const char *const *name, int n, Arg *out)
{
    int64_t i;
    if (!json_int(v, &i) || i < 1 || i >= n || !name[i])
        return unsupported(r, "a layout or memory format that is not known");
    *out = (Arg){.kind = ARG_STRING, .str = name[i]};
    return true;
}

static bool read_layout(Reader *r, const Json *v, Arg *out)
{
    static const char *const name[] = {[7] = "strided"};
    return read_name_of(r, v, name, 8, out);
}

static bool read_memory_format(Reader *r, const Json *v, Arg *out)
{
    static const char *const name[] = {NULL, "contiguous_format", "channels_last",
                                       "channels_last_3d", "preserve_format"};
    return read_name_of(r, v, name, 5, out);
}

/* Takes any device: where the exporting program kept its tensors does not matter here. */
static bool read_device(Reader *r, const Json *v, Arg *out)
{
    (void)r, (void)v;
    *out = (Arg){.kind = ARG_STRING, .str = "cpu"};
    return true;
}

static bool read_graph(Reader *r, const Json *v, Arg *out)
{
    Graph *g = pt2_nested(r->scope, r->node->loc, v);
    *out = (Arg){.kind = ARG_GRAPH, .graph = g};
    return g != NULL;
}

static const struct {
    const char *tag;
    ReadFn *read; /* reads an item; NULL: the tag is known but not supported */
    bool is_list;
} tag_row[] = {
    {"as_tensor", read_tensor, false},
    {"as_int", read_int, false},
    {"as_ints", read_int, true},
    {"as_float", read_float, false},
    {"as_floats", read_float, true},
    {"as_bool", read_bool, false},
    {"as_bools", read_bool, true},
    {"as_none", read_none, false},
    {"as_tensors", read_tensor, true},
    {"as_sym_int", read_sym_int, false},
    {"as_sym_ints", read_sym_int, true},
    {"as_scalar_type", read_dtype, false},
    {"as_string", read_string, false},
    {"as_strings", read_string, true},
    {"as_memory_format", read_memory_format, false},
    {"as_layout", read_layout, false},
    {"as_device", read_device, false},
    {"as_sym_bool", read_sym_bool, false},
    {"as_sym_bools", read_sym_bool, true},
    {"as_sym_float", read_sym_float, false},
    {"as_sym_floats", read_sym_float, true},
    {"as_graph", read_graph, false},
    {"as_optional_tensor", read_optional_tensor, false},
    {"as_optional_tensors", read_optional_tensor, true},
    {"as_custom_obj", NULL, false},
    {"as_operator", NULL, false},
    {"as_complex", read_complex, false},
    {"as_nested_tensors", NULL, false},
    {"as_int_lists", NULL, false},
    {"as_string_to_argument", NULL, false},
    {"as_float_lists", NULL, false},
};
enum { N_TAGS = sizeof tag_row / sizeof *tag_row };

static bool read_list(Reader *r, ReadFn *read, const Json *v, Arg *out)
{
    bool ok = true;
    int n = 0;
    if (!json_is_array(v))
        return bad(r, "a list");
    Arg *item = NEW(r->scope->in->program->arena, Arg, json_count(v) + 1);
    for (JsonIter it = json_iter(v); json_next(&it); n++)
        ok = read(r, it.value, &item[n]) && ok;
    *out = (Arg){.kind = ARG_LIST, .list = {item, n}};
    return ok;
}

static bool argument(Reader *r, const Json *arg, Arg *out)
{
    const Json *content = NULL;
    const char *tag = json_tag(arg, &content);
    if (!tag)
        return bad(r, "an object with one key");
    int row = 0;
    while (row < N_TAGS && strcmp(tag_row[row].tag, tag) != 0)
        row++;
    if (row == N_TAGS || !tag_row[row].read)
        return diag_unsupported(r->scope->in->diag, r->node->loc,
                                "argument '%s' is of the %s kind '%.40s'", r->want->name,
                                row == N_TAGS ? "unknown" : "unsupported", tag);
    if (tag_row[row].is_list)
        return read_list(r, tag_row[row].read, content, out);
    if (!tag_row[row].read(r, content, out))
        return false;
    if (r->want->is_list && out->kind != ARG_NONE) { /* int[2] x=3 means [3, 3] */
        int n = r->want->list_size ? r->want->list_size : 1;
        Arg *item = NEW(r->scope->in->program->arena, Arg, n), one = *out;
        for (int i = 0; i < n; i++)
            item[i] = one;
        *out = (Arg){.kind = ARG_LIST, .list = {item, n}};
    }
    return true;
}

/* The arguments that an `out` overload writes to.  The functional operator does not have them. */
typedef struct Outs {
    const Json *arg[MAX_ARGS];
    int n;
} Outs;

/* Sorts the arguments of the node into the schema's order; those of higher-order operators have
 * no names.  Names that the schema does not have belong to `outs`. */
static bool match(Scope *s, const Node *n, const Json *inputs, const Json *at[MAX_ARGS], Outs *outs)
{
    const Schema *schema = node_schema(n);
    Diag *d = s->in->diag;
    int position = 0;
    bool ok = true;
    for (JsonIter it = json_iter(inputs); json_next(&it); position++) {
        const char *name = json_string(json_get(it.value, "name"));
        int i = name && *name ? schema_find(schema, name, strlen(name)) : position;
        if (outs && i < 0 && outs->n < MAX_ARGS)
            outs->arg[outs->n++] = json_get(it.value, "arg");
        else if (i < 0 || i >= schema->n_args)
            ok = diag_unsupported(d, n->loc, "argument '%s' is unknown", name ? name : "");
        else if (at[i])
            ok = diag_error(d, n->loc, "argument '%s' is given twice", schema->arg[i].name);
        else if (!(at[i] = json_get(it.value, "arg")))
            ok = pt2_malformed(s->in, it.value, "arg", "an object");
    }
    return ok;
}

static bool arguments(Scope *s, Node *n, const Json *inputs, Outs *outs)
{
    const Schema *schema = node_schema(n);
    const Json *at[MAX_ARGS] = {NULL};
    assert(schema->n_args <= MAX_ARGS);
    if (!match(s, n, inputs, at, outs))
        return false;
    bool ok = true;
    for (int i = 0; i < schema->n_args; i++) {
        Reader r = {s, n, &schema->arg[i]};
        Arg a = schema->arg[i].fallback;
        if (at[i])
            ok = argument(&r, at[i], &a) && ok;
        else if (!schema->arg[i].has_default)
            ok = diag_error(s->in->diag, n->loc, "argument '%s' is missing", schema->arg[i].name);
        node_push(n, a);
    }
    return ok;
}

/* Torch accepts a vector as the weight of a linear layer, whose result then lacks the last axis. */
static Node *with_matrix(Scope *s, Node *n)
{
    Value *weight = n->op == OP_LINEAR ? arg_value(n, "weight") : NULL;
    if (!weight || weight->type.rank != 1 || !arg_value(n, "input"))
        return n;
    Value *input = arg_value(n, "input"), *bias = arg_value(n, "bias");
    Diag *d = s->in->diag;
    Node *product = bias ? build(s->graph, NULL, n->loc, OP_MATMUL, d, "vv", input, weight) : NULL;
    if (bias && !product)
        return n;
    Node *made = node_new(s->graph, bias ? OP_ADD_TENSOR : OP_MATMUL, n->loc);
    node_push(made, node_use(made, bias ? product->out[0] : input));
    node_push(made, node_use(made, bias ? bias : weight));
    if (bias)
        node_push(made, (Arg){.kind = ARG_INT, .dim = DIM(1)});
    return made;
}

/* -- results ----------------------------------------------------------------------------- */

/* Defines a result.  If that fails, its name is marked, so that later uses do not report it
 * again. */
static bool result(Scope *s, Node *n, const Json *tensor)
{
    Pt2 *p = s->in;
    const char *text = json_string(json_get(tensor, "name"));
    Type type;
    if (!text)
        return pt2_malformed(p, tensor, "name", "a string");
    Name *name = pt2_name(s, n->loc, text);
    if (!name)
        return false;
    name->is_broken = true;
    if (!name->meta)
        return diag_error(p->diag, n->loc, "the result '%s' is not a tensor", text);
    if (!pt2_type(p, n->loc, text, name->meta, &type))
        return false;
    name->is_broken = false;
    return pt2_define(s, n->loc, text, node_add_out(n, pt2_value_name(s, text), type));
}

static bool size_result(Scope *s, Node *n, const Json *sym_int)
{
    const char *text = json_string(json_get(sym_int, "as_name"));
    Type type = {.dtype = ETC_I64, .rank = SCALAR};
    Dim d;
    if (!text)
        return diag_unsupported(s->in->diag, n->loc, "a result that is a constant");
    if (n->op == OP_LOCAL_SCALAR_DENSE) { /* the result defines a symbol */
        const Name *name = pt2_name(s, n->loc, text);
        if (!name || !name->sym_int || !pt2_dim(s->in, n->loc, name->sym_int, &d))
            return false;
        type = type_size(s->in->program, d);
    }
    return pt2_define(s, n->loc, text, node_add_out(n, pt2_value_name(s, text), type));
}

static bool no_result(Scope *s, Node *n)
{
    const char *name = arena_printf(s->in->program->arena, "%s%s.%d", s->prefix, n->loc.node,
                                    n->n_out);
    node_add_out(n, name, TYPE_NONE);
    return true;
}

static bool output(Scope *s, Node *n, const Json *arg)
{
    const Json *content = NULL;
    const char *tag = json_tag(arg, &content);
    bool ok = true;
    if (!tag)
        return diag_error(s->in->diag, n->loc, "a result is not an object with one key");
    if (!strcmp(tag, "as_tensor"))
        return result(s, n, content);
    if (!strcmp(tag, "as_sym_int"))
        return size_result(s, n, content);
    if (!strcmp(tag, "as_none"))
        return no_result(s, n);
    if (!strcmp(tag, "as_optional_tensor"))
        return output(s, n, content);
    if (!strcmp(tag, "as_tensors")) {
        for (JsonIter it = json_iter(content); json_next(&it);)
            ok = result(s, n, it.value) && ok;
        return ok;
    }
    return diag_unsupported(s->in->diag, n->loc, "a result of kind '%.40s'", tag);
}

static bool results(Scope *s, Node *n, const Json *outputs)
{
    bool ok = true;
    for (JsonIter it = json_iter(outputs); json_next(&it);)
        ok = output(s, n, it.value) && ok;
    return ok;
}

/* -- higher-order operators ---------------------------------------------------------------- */

static bool same_kind(Type a, Type b)
{
    return a.dtype == b.dtype && a.rank == b.rank;
}

/* Checks that nested graphs have the operands as inputs and the results as outputs, with the
 * same dtypes and ranks. */
static bool check_graphs(Scope *s, const Node *n)
{
    Diag *d = s->in->diag;
    for (const Graph *g = NULL; (g = region_next(n, g));) {
        int n_in = region_n_operands(n), n_out = region_n_results(n, g);
        if (g->n_in != n_in || g->n_out != n_out)
            return diag_error(d, n->loc,
                              "a graph of it has %d inputs and %d outputs, expected %d and %d",
                              g->n_in, g->n_out, n_in, n_out);
        for (int k = 0; k < g->n_in; k++) {
            const Value *v = region_operand(n, k);
            if (v && !same_kind(g->in[k]->type, v->type))
                return diag_error(d, n->loc, "input %d of a graph of it has another dtype or rank",
                                  k);
        }
        for (int k = 0; k < g->n_out && !region_decides(n, g); k++)
            if (!same_kind(g->out[k]->type, n->out[k]->type))
                return diag_error(d, n->loc, "output %d of a graph of it has another dtype or rank",
                                  k);
    }
    return true;
}

/* These operators only run a graph: under a setting of torch, with a name or with hints. */
static const struct {
    const char *target;
    int graph;    /* position of the graph */
    int operands; /* position of its first operand; the others follow, up to the named arguments */
    int enabled;  /* position of a bool that says whether autocast is on, or -1 */
} wrap_row[] = {
    {"higher_order.wrap_with_set_grad_enabled", 1, 2, -1},
    {"higher_order.wrap_with_autocast", 4, 5, 2},
    {"higher_order.invoke_subgraph", 0, 2, -1},
    {"higher_order.hints_wrapper", 0, 1, -1},
};
enum { N_WRAPS = sizeof wrap_row / sizeof *wrap_row };

static int find_wrap(const char *target)
{
    for (int i = 0; i < N_WRAPS; i++)
        if (!strcmp(wrap_row[i].target, target))
            return i;
    return -1;
}

/* Marks the names of a refused node's results, so that their uses are not reported.  Returns
 * false, for callers that end with it. */
static bool break_results(Scope *s, const Json *outputs)
{
    for (JsonIter it = json_iter(outputs); json_next(&it);) {
        const Json *content = NULL;
        const char *name = json_tag(it.value, &content) ? json_string(json_get(content, "name"))
                                                        : NULL;
        Name *n = name ? table_find_text(&s->names, name) : NULL;
        if (n)
            n->is_broken = true;
    }
    return false;
}

/* Defines the results of a node as those of its inlined graph. */
static bool bind_results(Scope *s, Loc loc, const Json *outputs, Value **v)
{
    for (JsonIter it = json_iter(outputs); json_next(&it); v++) {
        const Json *content = NULL;
        const char *tag = json_tag(it.value, &content);
        const char *name = json_string(json_get(content, "name"));
        if (!tag || strcmp(tag, "as_tensor") != 0 || !name)
            return diag_unsupported(s->in->diag, loc, "a result that is not a tensor");
        if (!pt2_define(s, loc, name, *v))
            return false;
    }
    return true;
}

/* Lists the tensors of an argument.  An empty dictionary has none. */
static bool wrapped_operands(Scope *s, Loc loc, const Json *arg, Value ***in, int *n_in)
{
    Pt2 *p = s->in;
    const Json *content = NULL;
    const char *tag = json_tag(arg, &content);
    bool is_list = tag && !strcmp(tag, "as_tensors");
    if (tag && !strcmp(tag, "as_string_to_argument") && !json_count(content))
        return true;
    if (!is_list && (!tag || strcmp(tag, "as_tensor") != 0))
        return diag_unsupported(p->diag, loc, "an operand that is not a tensor");
    JsonIter it = json_iter(content);
    while (!is_list || json_next(&it)) {
        Value *v = pt2_use(s, loc, is_list ? it.value : content);
        if (!v)
            return false;
        PUSH(p->tmp, *in, *n_in, v);
        if (!is_list)
            break;
    }
    return true;
}

static bool wrapped(Scope *s, int row, Loc loc, const Json *node)
{
    Pt2 *p = s->in;
    const Json *inputs = json_get(node, "inputs"), *outputs = json_get(node, "outputs");
    const Json *graph = NULL, *content = NULL;
    Value **in = NULL, **out = NEW(p->tmp, Value *, json_count(outputs) + 1);
    bool in_autocast = s->in_autocast, was = s->in_autocast;
    int n = 0, n_in = 0;
    for (JsonIter it = json_iter(inputs); json_next(&it); n++) {
        const Json *arg = json_get(it.value, "arg");
        const char *tag = json_tag(arg, &content);
        const char *name = json_string(json_get(it.value, "name"));
        if (n == wrap_row[row].enabled && !json_bool(content, &in_autocast))
            return diag_error(p->diag, loc, "does not say whether it is enabled");
        if (n == wrap_row[row].graph)
            graph = tag && !strcmp(tag, "as_graph") ? content : NULL;
        if (n >= wrap_row[row].operands && !(name && *name) &&
            !wrapped_operands(s, loc, arg, &in, &n_in))
            return false;
    }
    if (!graph)
        return diag_error(p->diag, loc, "has no graph");
    s->in_autocast = in_autocast;
    bool ok = pt2_inline(s, loc, graph, in, n_in, out, json_count(outputs));
    s->in_autocast = was;
    return ok && bind_results(s, loc, outputs, out);
}

/* -- out overloads ------------------------------------------------------------------------ */

/* Returns the operator whose results an `out` overload writes to its last arguments: the row whose
 * kernel has this name, or else the row with the name without "out". */
static OpId functional_of(Arena *tmp, const char *target)
{
    static const char aten[] = "aten.";
    static const char *const odd[][2] = {{"aten.div.out_mode", "aten.div.Tensor_mode"},
                                         {"aten.sort.values", "aten.sort.default"},
                                         {"aten.sort.values_stable", "aten.sort.stable"}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (!strcmp(target, odd[i][0]))
            return op_find(odd[i][1]);
    size_t start = strlen(aten), n = strlen(target);
    if (n < start + 4 || strncmp(target, aten, start) != 0)
        return OP_NONE;
    const char *kernel = arena_printf(tmp, "aten::%s", target + start);
    for (OpId i = 0; i < N_OPS; i++)
        if (op_out(i) && !strcmp(op_out(i), kernel))
            return i;
    const char *end = target + n - 4;
    int length = (int)(n - 4);
    return !strcmp(end, "_out")   ? op_find(arena_str(tmp, target, n - 4))
           : !strcmp(end, ".out") ? op_find(arena_printf(tmp, "%.*s.default", length, target))
                                  : OP_NONE;
}

/* Writes a result of n to the argument `arg`; the model's name of the result then means that
 * argument. */
static bool write_out(Scope *s, Node *n, const Json *arg, const Json *output)
{
    Pt2 *p = s->in;
    const Json *content = NULL, *to = NULL;
    const char *tag = json_tag(output, &content);
    const char *text = tag && !strcmp(tag, "as_tensor") ? json_string(json_get(content, "name"))
                                                        : NULL;
    const char *kind = json_tag(arg, &to);
    Name *name = text ? pt2_name(s, n->loc, text) : NULL;
    Value *v = name && kind && !strcmp(kind, "as_tensor") ? pt2_use(s, n->loc, to) : NULL;
    Type type;
    if (!v || !name->meta)
        return diag_unsupported(p->diag, n->loc, "a result that is not a tensor");
    if (!pt2_type(p, n->loc, text, name->meta, &type))
        return false;
    if (v->type.rank != type.rank || !dims_equal(v->type.dim, type.dim, type.rank))
        return diag_unsupported(p->diag, n->loc,
                                "resizes the tensor of out=: give it the sizes of the result");
    Node *copy = node_new(s->graph, OP_COPY_, n->loc);
    const char *result = arena_printf(p->program->arena, "%s.result", pt2_value_name(s, text));
    node_push(copy, node_use(copy, v));
    node_push(copy, node_use(copy, node_add_out(n, result, type)));
    node_push(copy, (Arg){.kind = ARG_BOOL});
    graph_append(s->graph, copy);
    return pt2_define(s, n->loc, text, node_add_out(copy, pt2_value_name(s, text), type));
}

/* Reads torch.add(x, y, out=z) as the sum and a copy of it to z. */
static bool out_node(Scope *s, OpId op, Loc loc, const Json *node)
{
    const Json *outputs = json_get(node, "outputs");
    Node *n = node_new(s->graph, op, loc);
    Outs outs = {.n = 0};
    bool ok = arguments(s, n, json_get(node, "inputs"), &outs);
    if (ok && outs.n != (int)json_count(outputs))
        ok = diag_unsupported(s->in->diag, loc, "has %d tensors for out=, and %d results", outs.n,
                              (int)json_count(outputs));
    JsonIter it = json_iter(outputs);
    if (ok)
        graph_append(s->graph, n);
    for (int i = 0; ok && json_next(&it); i++)
        ok = write_out(s, n, outs.arg[i], it.value);
    int dtype = schema_find(node_schema(n), "dtype", strlen("dtype"));
    if (ok && dtype >= 0 && n->arg[dtype].kind == ARG_NONE) /* torch takes the dtype of out= */
        node_set_arg(n, dtype, (Arg){.kind = ARG_DTYPE, .dtype = n->out[0]->type.dtype});
    if (!ok)
        break_results(s, outputs);
    return ok && schema_check(n, s->in->diag);
}

/* -- nodes ------------------------------------------------------------------------------- */

/* Returns whether a target computes or checks sizes and dtypes, or asserts a tensor's element.  Its
 * result is known or not needed. */
static bool is_about_sizes(const char *target)
{
    static const char *const prefix[] = {"_operator.", "math.", "torch.sym_",
                                         "aten._assert_async.", "aten._assert_scalar.",
                                         "aten.sym_constrain_range",
                                         "aten.sym_numel.", "aten.sym_stride.",
                                         "aten.sym_storage_offset.", "aten.promote_types."};
    for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
        if (!strncmp(target, prefix[i], strlen(prefix[i])))
            return true;
    return false;
}

/* Returns whether a node reads a bool for torch._check of a tensor.  Any other use of such a bool
 * is refused. */
static bool is_check(OpId op, const Json *node)
{
    const Json *content = NULL;
    JsonIter it = json_iter(json_get(node, "outputs"));
    const char *tag = json_next(&it) ? json_tag(it.value, &content) : NULL;
    return op == OP_LOCAL_SCALAR_DENSE && tag && !strcmp(tag, "as_sym_bool");
}

/* Returns whether a node only asserts something, in an order that tokens give. */
static bool is_ordered_check(const char *target, const Json *node)
{
    static const char check[] = "torch.ops.aten._linalg_check_errors.";
    JsonIter it = json_iter(json_get(node, "inputs")); /* the token, the operator, its operands */
    if (strcmp(target, "higher_order.with_effects") != 0 || !json_next(&it) || !json_next(&it))
        return false;
    const char *op = json_string(json_get(json_get(it.value, "arg"), "as_operator"));
    return op && !strncmp(op, check, strlen(check));
}

/* Returns the symbolic float that a node computes, or NULL. */
static Name *float_result(Scope *s, const Json *node)
{
    const Json *content = NULL;
    JsonIter it = json_iter(json_get(node, "outputs"));
    const char *tag = json_next(&it) ? json_tag(it.value, &content) : NULL;
    const char *text = tag && !strcmp(tag, "as_sym_float")
                           ? json_string(json_get(content, "as_name"))
                           : NULL;
    Name *n = text ? table_find_text(&s->names, text) : NULL;
    return n && n->is_float ? n : NULL;
}

/* Returns the name of another overload of the same operator, or NULL. */
static const char *other_overload(const char *target)
{
    const char *dot = strrchr(target, '.');
    size_t len = dot ? (size_t)(dot + 1 - target) : 0;
    for (OpId i = 0; len && i < N_OPS; i++)
        if (!strncmp(op_target(i), target, len))
            return op_target(i);
    return NULL;
}

typedef enum MarkOfVmap { MARK_NONE, MARK_EMPTY, MARK_TENSOR } MarkOfVmap;

/* Returns what a node marks of torch.vmap: MARK_EMPTY is a mark without a tensor, which adds
 * nothing to the other marks. */
static MarkOfVmap mark_of_vmap(const char *target)
{
    static const char module[] = "torch._functorch.predispatch.";
    if (strncmp(target, module, strlen(module)) != 0)
        return MARK_NONE;
    target += strlen(module);
    if (!strcmp(target, "_add_batch_dim") || !strcmp(target, "_remove_batch_dim"))
        return MARK_TENSOR;
    return !strcmp(target, "lazy_load_decompositions") ||
                   !strcmp(target, "_vmap_increment_nesting") ||
                   !strcmp(target, "_vmap_decrement_nesting")
               ? MARK_EMPTY
               : MARK_NONE;
}

static bool draws_numbers(const char *op)
{
    static const char *const stem[] = {"rand", "randn", "randint", "randperm", "rand_like",
                                       "randn_like", "randint_like", "bernoulli", "multinomial",
                                       "normal", "log_normal", "uniform", "exponential",
                                       "geometric", "cauchy", "random", "poisson",
                                       "rrelu_with_noise", "native_dropout"};
    return pt2_has_stem(op, stem, sizeof stem / sizeof *stem);
}

static const char *why_unknown(const Scope *s, const char *op)
{
    if (draws_numbers(op))
        return "draws random numbers: make them an input of the model, or export it in eval mode";
    const char *other = other_overload(op);
    size_t n = strcspn(op, ".");
    if (!other && op[n] && !namespace_is_taken(arena_str(s->in->tmp, op, n)))
        return "the operator is not supported; if it is one of your own, --ops FILE says what it "
               "computes, or what does";
    return other ? arena_printf(s->in->tmp, "the operator is not supported, only its overload '%s'",
                                other)
                 : "the operator is not supported";
}

/* Records an operator that is not supported.  It is reported when the graph has been read, with
 * the number of nodes that call it. */
static bool unknown(Scope *s, Loc loc)
{
    Pt2 *p = s->in;
    TableItem *item = table_at_text(&p->missing_of, loc.op);
    MissingOp *op = item->ptr;
    if (!op) {
        item->ptr = op = NEW(p->tmp, MissingOp, 1);
        *op = (MissingOp){.first = loc, .why = why_unknown(s, loc.op)};
        PUSH(p->tmp, p->missing, p->n_missing, op);
    }
    op->n++;
    return false;
}

void pt2_report_missing(Pt2 *p)
{
    for (int i = 0; i < p->n_missing; i++) {
        const MissingOp *op = p->missing[i];
        if (op->n > 1)
            diag_unsupported(p->diag, op->first, "%s; %d nodes have it, of which this is the first",
                             op->why, op->n);
        else
            diag_unsupported(p->diag, op->first, "%s", op->why);
    }
    p->n_missing = 0;
    p->missing_of = (Table){.arena = p->tmp};
}

/* Returns the target of a node, without "torch.ops."; NULL: an error was reported. */
static const char *target_of(Scope *s, const Json *node)
{
    static const char ops[] = "torch.ops.";
    const char *target = json_string(json_get(node, "target"));
    if (!target)
        pt2_malformed(s->in, node, "target", "a string");
    return target && !strncmp(target, ops, strlen(ops)) ? target + strlen(ops) : target;
}

static bool is_scan(const char *target)
{
    return !strcmp(target, "higher_order.map_impl") || !strcmp(target, "higher_order.scan");
}

static bool higher_order(Scope *s, Loc loc, const char *target, const Json *node)
{
    if (is_scan(target))
        return pt2_scan(s, loc, node, !strcmp(target, "higher_order.map_impl"));
    return wrapped(s, find_wrap(target), loc, node);
}

/* Reads the arguments and results of n, and appends it to the graph. */
static bool call(Scope *s, Node *n, Loc loc, const Json *inputs, const Json *outputs)
{
    s->in->may_batch = pt2_may_batch(n->op);
    s->casts = s->in_autocast && pt2_autocasts(s, loc, outputs, &s->operands);
    bool ok = n->op == OP_NONE ? unknown(s, loc) : arguments(s, n, inputs, NULL);
    s->in->may_batch = s->casts = false;
    if (ok && n->op == OP__ASSERT_TENSOR_METADATA && pt2_is_batched(s->in, n->in[0]))
        return true; /* it checks the sizes of one element, but here the value has all */
    if (ok && pt2_is_mixed_norm(n) && !pt2_needs_elements(s->in, n))
        return pt2_mixed_norm(s, n, outputs) || break_results(s, outputs);
    if (ok)
        n = with_matrix(s, n);
    ok = results(s, n, outputs) && ok;
    if (ok && pt2_needs_elements(s->in, n))
        return pt2_each_element(s, n);
    ok = ok && pt2_batch(s, n) && schema_check(n, s->in->diag) && check_graphs(s, n);
    if (ok) {
        pt2_torch_numbers(n);
        pt2_torch_sizes(s->in->program, n);
        graph_append(s->graph, n);
    }
    return ok;
}

/* Reads a node that has results: of torch.vmap, a higher-order operator, an `out` overload, or a
 * call of the operator `op` or `custom`. */
static bool node_with_results(Scope *s, const char *target, OpId op, const CustomOp *custom,
                              const Json *node)
{
    const Json *inputs = json_get(node, "inputs"), *outputs = json_get(node, "outputs");
    const Loc loc = origin(s, node, target);
    const bool is_unknown = op == OP_NONE && !custom;
    if (!custom && mark_of_vmap(target) == MARK_TENSOR)
        return pt2_vmap_mark(s, loc, target, node) || break_results(s, outputs);
    if (is_scan(target) || find_wrap(target) >= 0)
        return higher_order(s, loc, target, node) || break_results(s, outputs);
    const OpId functional = is_unknown ? functional_of(s->in->tmp, target) : OP_NONE;
    if (functional != OP_NONE)
        return out_node(s, functional, loc, node);
    const Json *number = op == OP_NONE ? NULL : pt2_symbolic_float(inputs);
    if (number && pt2_fills(op))
        return pt2_filled(s, loc, number, outputs) || break_results(s, outputs);
    op = number ? pt2_with_tensors(s->in->tmp, op) : op;
    Node *n = custom ? node_new_custom(s->graph, custom, loc) : node_new(s->graph, op, loc);
    return call(s, n, loc, inputs, outputs);
}

bool pt2_node(Scope *s, const Json *node)
{
    const char *target = target_of(s, node);
    if (!target)
        return false;
    OpId op = op_find(strcmp(target, "aten.item.default") ? target
                                                          : op_target(OP_LOCAL_SCALAR_DENSE));
    const CustomOp *custom = op == OP_NONE ? custom_ops_find(s->in->program->custom, target) : NULL;
    op = custom || op == OP_CUSTOM ? OP_NONE : op; /* no export contains etc's own OP_CUSTOM */
    const bool is_size = is_about_sizes(target);
    Name *real = op == OP_LOCAL_SCALAR_DENSE || is_size ? float_result(s, node) : NULL;
    if (real)
        return pt2_float_node(s, origin(s, node, target), target, json_get(node, "inputs"), real);
    const bool is_empty = is_size || mark_of_vmap(target) == MARK_EMPTY;
    if ((op == OP_NONE && !custom && is_empty) || is_check(op, node))
        return true;
    if (is_ordered_check(target, node)) {
        diag_warn(s->in->diag, origin(s, node, target),
                  "asserts that no matrix is singular, which is not checked at run time");
        return true;
    }
    return node_with_results(s, target, op, custom, node);
}
