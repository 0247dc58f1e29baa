/* pt2_graph.c -- graphs of a model.json: inputs, nodes, outputs, nested graphs.  Each graph has tables
 * of its names. */
#include "compiler/import/internal.h"
#include <string.h>

enum { MAX_DEPTH = 32 }; /* how deep graphs may be nested */

/* -- names ------------------------------------------------------------------------------- */

typedef enum NameKind { NAME_TENSOR, NAME_INT, NAME_FLOAT, NAME_BOOL } NameKind;

static bool add_names(Scope *s, const Json *table, NameKind kind)
{
    Pt2 *p = s->in;
    bool ok = true;
    Name *name = NEW(p->tmp, Name, json_count(table) + 1);
    table_reserve(&s->names, s->names.n + (size_t)json_count(table));
    for (JsonIter it = json_iter(table); json_next(&it); name++) {
        if (!it.key || !pt2_is_name(it.key)) {
            ok = diag_error(p->diag, (Loc){.file = p->doc.file},
                            "%s: '%.40s' is not a name for a value",
                            json_path(&p->doc, table, p->tmp), it.key ? it.key : "");
            continue;
        }
        TableItem *at = table_at_text(&s->names, it.key);
        if (at->ptr) {
            ok = diag_error(p->diag, p->loc, "'%s' has two kinds, of tensor, size, float and bool",
                            it.key);
            continue;
        }
        name->text = it.key;
        name->meta = kind == NAME_TENSOR ? it.value : NULL;
        name->sym_int = kind == NAME_INT ? it.value : NULL;
        name->is_float = kind == NAME_FLOAT;
        name->sym_bool = kind == NAME_BOOL ? it.value : NULL;
        at->ptr = name;
    }
    return ok;
}

static bool open_scope(Scope *s, const Json *graph)
{
    s->names.arena = s->in->batches.arena = s->in->tmp;
    if (!json_is_array(json_get(graph, "nodes")))
        return pt2_malformed(s->in, graph, "nodes", "a list");
    bool ok = add_names(s, json_get(graph, "tensor_values"), NAME_TENSOR);
    ok = add_names(s, json_get(graph, "sym_int_values"), NAME_INT) && ok;
    ok = add_names(s, json_get(graph, "sym_bool_values"), NAME_BOOL) && ok;
    return add_names(s, json_get(graph, "sym_float_values"), NAME_FLOAT) && ok;
}

/* -- states ------------------------------------------------------------------------------ */

static const StateTag state_row[] = {
    {"parameter", "parameter_name", ST_PARAM},
    {"buffer", "buffer_name", ST_BUFFER},
    {"tensor_constant", "tensor_constant_name", ST_CONST},
};

/* Returns the kind of state that an InputSpec of this tag describes; NULL: it describes none. */
static const StateTag *find_state_tag(const char *tag)
{
    for (size_t i = 0; i < sizeof state_row / sizeof *state_row; i++)
        if (!strcmp(state_row[i].tag, tag))
            return &state_row[i];
    return NULL;
}

/* -- inputs ------------------------------------------------------------------------------ */

/* Adds an input of the graph for {"name": ...}. */
static Value *add_input(Scope *s, const Json *argument)
{
    Pt2 *p = s->in;
    const char *text = json_string(json_get(argument, "name"));
    Type type;
    if (!text) {
        pt2_malformed(p, argument, "name", "a string");
        return NULL;
    }
    Name *n = pt2_name(s, p->loc, text);
    if (!n)
        return NULL;
    bool ok = n->meta || diag_error(p->diag, p->loc, "the input '%s' is not a tensor", text);
    if (!ok || !pt2_type(p, p->loc, text, n->meta, &type)) {
        n->is_broken = true;
        return NULL;
    }
    Value *v = graph_value(s->graph, pt2_value_name(s, text), type);
    if (!pt2_define(s, p->loc, text, v))
        return NULL;
    graph_add_input(s->graph, v);
    return v;
}

static bool user_input(Scope *s, const Json *spec, int number)
{
    Pt2 *p = s->in;
    const Json *content = NULL;
    const char *tag = json_tag(json_get(spec, "arg"), &content);
    if (!tag)
        return pt2_malformed(p, spec, "arg", "an object with one key");
    if (!strcmp(tag, "as_tensor"))
        return add_input(s, content) != NULL;
    return pt2_number_input(s, tag, content, number);
}

static bool state_input(Scope *s, const StateTag *tag, const Json *spec)
{
    Pt2 *p = s->in;
    const char *text = json_string(json_get(json_get(spec, "arg"), "name"));
    if (!text)
        return pt2_malformed(p, spec, "arg", "a name");
    Name *n = pt2_name(s, p->loc, text);
    if (!n)
        return false;
    if (n->spec || n->value || !n->meta)
        return diag_error(p->diag, p->loc, "the input '%s' is defined twice or no tensor", text);
    n->spec = spec;
    n->tag = tag;
    return true;
}

static bool constant_input(Scope *s, const Json *spec, int number)
{
    Pt2 *p = s->in;
    const Json *content = NULL;
    const char *text = json_string(json_get(spec, "name"));
    const char *tag = json_tag(json_get(spec, "value"), &content);
    if (!text || !tag)
        return diag_error(p->diag, p->loc, "input %d of the model is not described", number);
    return pt2_constant_input(s, text, tag, content);
}

static bool one_input(Scope *s, const Json *spec, int *n_user)
{
    Pt2 *p = s->in;
    const Json *content = NULL;
    const char *tag = json_tag(spec, &content);
    if (!tag)
        return diag_error(p->diag, p->loc, "%s is not an object with one key",
                          json_path(&p->doc, spec, p->tmp));
    if (!strcmp(tag, "user_input"))
        return user_input(s, content, (*n_user)++);
    const StateTag *state = find_state_tag(tag);
    if (state)
        return state_input(s, state, content);
    if (!strcmp(tag, "constant_input"))
        return constant_input(s, content, (*n_user)++);
    if (!strcmp(tag, "token")) /* it orders effects, and no node is read that has one */
        return true;
    return diag_unsupported(p->diag, p->loc, "an input of kind '%s'", tag);
}

static bool inputs(Scope *s, const Json *graph, const Json *specs)
{
    Pt2 *p = s->in;
    bool ok = true;
    int n_user = 0;
    if (json_count(json_get(graph, "inputs")) != json_count(specs))
        ok = diag_error(p->diag, p->loc, "the graph has %d inputs, its signature %d",
                        json_count(json_get(graph, "inputs")), json_count(specs));
    for (JsonIter it = json_iter(specs); json_next(&it);)
        ok = one_input(s, it.value, &n_user) && ok;
    return ok;
}

static bool nodes(Scope *s, const Json *graph)
{
    bool ok = true;
    for (JsonIter it = json_iter(json_get(graph, "nodes")); json_next(&it);)
        ok = pt2_node(s, it.value) && ok;
    return ok;
}

/* -- outputs ----------------------------------------------------------------------------- */

typedef struct Signature {
    const Json *input_specs;
    Table states; /* "buffer:FQN" -> Name; filled when it is first needed */
} Signature;

/* Returns the text "TAG:FQN" of a state's spec; NULL: it is no state. */
static const char *state_key(Pt2 *p, const Json *spec, const Json **content)
{
    const char *tag = json_tag(spec, content);
    const StateTag *state = tag ? find_state_tag(tag) : NULL;
    const char *fqn = state ? json_string(json_get(*content, state->fqn)) : NULL;
    return fqn ? arena_printf(p->tmp, "%s:%s", tag, fqn) : NULL;
}

static Name *find_state(Scope *s, Signature *sig, const char *tag, const char *fqn)
{
    if (!sig->states.arena) {
        sig->states.arena = s->in->tmp;
        for (JsonIter it = json_iter(sig->input_specs); json_next(&it);) {
            const Json *content = NULL;
            const char *key = state_key(s->in, it.value, &content);
            const char *name = json_string(json_get(json_get(content, "arg"), "name"));
            if (key && name)
                table_at_text(&sig->states, key)->ptr = table_find_text(&s->names, name);
        }
    }
    return table_find_text(&sig->states, arena_printf(s->in->tmp, "%s:%s", tag, fqn));
}

/* Returns the value that a mutation writes: that of a state, or of an input with this name. */
static Value *mutated(Scope *s, Signature *sig, const char *tag, const char *target)
{
    if (!strcmp(tag, "user_input_mutation")) {
        Name *n = table_find_text(&s->names, target);
        return n ? n->value : NULL;
    }
    Name *n = find_state(s, sig, !strcmp(tag, "buffer_mutation") ? "buffer" : "parameter", target);
    if (!n)
        return NULL;
    Value *v = n->value ? n->value : pt2_state(s, s->in->loc, n);
    if (v)
        v->state->kind = ST_MUTABLE;
    return v;
}

static bool mutation(Scope *s, Signature *sig, const char *tag, const char *key, const Json *spec)
{
    Pt2 *p = s->in;
    const char *target = json_string(json_get(spec, key));
    Value *v = pt2_use(s, p->loc, json_get(spec, "arg"));
    if (!target)
        return pt2_malformed(p, spec, key, "a string");
    if (!v)
        return false;
    Value *to = mutated(s, sig, tag, target);
    if (!to)
        return diag_error(p->diag, p->loc, "nothing that can be written is called '%s'", target);
    if (!type_equal(v->type, to->type))
        return diag_error(p->diag, p->loc, "the value '%s' written to '%s' has another type",
                          v->name, target);
    graph_add_update(s->graph, to, v);
    return true;
}

static bool user_output(Scope *s, const Json *arg, int number)
{
    Pt2 *p = s->in;
    const Json *content = NULL;
    const char *tag = json_tag(arg, &content);
    if (!tag)
        return diag_error(p->diag, p->loc, "output %d of the model is not described", number);
    if (strcmp(tag, "as_tensor") != 0)
        return pt2_number_output(s, tag, content, number);
    Value *v = pt2_use(s, p->loc, content);
    if (v)
        graph_add_output(s->graph, v);
    return v != NULL;
}

static bool one_output(Scope *s, Signature *sig, const Json *spec, int *n_user)
{
    static const struct {
        const char *tag, *key;
    } row[] = {{"buffer_mutation", "buffer_name"},
               {"parameter_mutation", "parameter_name"},
               {"user_input_mutation", "user_input_name"}};
    Pt2 *p = s->in;
    const Json *content = NULL;
    const char *tag = json_tag(spec, &content);
    if (!tag)
        return diag_error(p->diag, p->loc, "%s is not an object with one key",
                          json_path(&p->doc, spec, p->tmp));
    if (!strcmp(tag, "user_output"))
        return user_output(s, json_get(content, "arg"), (*n_user)++);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!strcmp(tag, row[i].tag))
            return mutation(s, sig, tag, row[i].key, content);
    if (!strcmp(tag, "token"))
        return true;
    return diag_unsupported(p->diag, p->loc, "an output of kind '%s'", tag);
}

static bool outputs(Scope *s, const Json *graph, const Json *signature)
{
    Pt2 *p = s->in;
    const Json *specs = json_get(signature, "output_specs");
    Signature sig = {.input_specs = json_get(signature, "input_specs")};
    bool ok = true;
    int n_user = 0;
    if (json_count(json_get(graph, "outputs")) != json_count(specs))
        ok = diag_error(p->diag, p->loc, "the graph has %d outputs, its signature %d",
                        json_count(json_get(graph, "outputs")), json_count(specs));
    for (JsonIter it = json_iter(specs); json_next(&it);)
        ok = one_output(s, &sig, it.value, &n_user) && ok;
    return ok;
}

/* -- methods and nested graphs ------------------------------------------------------------- */

bool pt2_method(Pt2 *p)
{
    Program *program = p->program;
    const Json *module = json_get(p->doc.root, "graph_module"), *graph = json_get(module, "graph");
    const Json *signature = json_get(module, "signature");
    const char *name = p->as ? p->as : !strcmp(p->method, "model") ? "forward" : p->method;
    for (int i = 0; i < program->n_methods; i++)
        if (!strcmp(program->method[i]->name, name))
            return diag_error(p->diag, p->loc, "two methods are called '%s'", name);
    Graph *g = graph_new(program, arena_str(program->arena, name, strlen(name)));
    PUSH(program->arena, program->method, program->n_methods, g);
    Scope s = {.in = p, .graph = g, .prefix = ""};
    bool ok = open_scope(&s, graph) && inputs(&s, graph, json_get(signature, "input_specs"));
    if (ok)
        pt2_guards(&s, json_get(p->doc.root, "guards_code"));
    ok = ok && nodes(&s, graph) && outputs(&s, graph, signature);
    pt2_report_missing(p);
    return ok;
}

/* Returns the "graph" of an as_graph argument. */
static const Json *enter(Scope *s, Loc loc, const Json *as_graph)
{
    const Json *graph = json_get(as_graph, "graph");
    if (s->depth >= MAX_DEPTH) {
        diag_error(s->in->diag, loc, "more than %d graphs inside each other", MAX_DEPTH);
        return NULL;
    }
    if (!json_is_object(graph))
        pt2_malformed(s->in, as_graph, "graph", "an object");
    return json_is_object(graph) ? graph : NULL;
}

/* Returns the tensor argument of an input or output of a nested graph; others are refused. */
static const Json *tensor_only(Scope *s, Loc loc, const char *what, const Json *arg)
{
    const Json *content = NULL;
    const char *tag = json_tag(arg, &content);
    if (tag && !strcmp(tag, "as_tensor"))
        return content;
    diag_unsupported(s->in->diag, loc, "a nested graph has an %s that is not a tensor but %s", what,
                     tag ? tag : "nothing known");
    return NULL;
}

Graph *pt2_nested(Scope *outer, Loc loc, const Json *as_graph)
{
    Pt2 *p = outer->in;
    const Json *graph = enter(outer, loc, as_graph), *tensor;
    Scope s = {.in = p,
               .prefix = "",
               .depth = outer->depth + 1,
               .in_autocast = outer->in_autocast};
    if (!graph || !open_scope(&s, graph))
        return NULL;
    s.graph = graph_new(p->program, NULL);
    bool ok = true;
    for (JsonIter it = json_iter(json_get(graph, "inputs")); json_next(&it);)
        ok = (tensor = tensor_only(&s, loc, "input", it.value)) && add_input(&s, tensor) && ok;
    ok = ok && nodes(&s, graph);
    for (JsonIter it = json_iter(json_get(graph, "outputs")); ok && json_next(&it);) {
        Value *v = (tensor = tensor_only(&s, loc, "output", it.value)) ? pt2_use(&s, loc, tensor)
                                                                       : NULL;
        ok = v != NULL;
        if (ok)
            graph_add_output(s.graph, v);
    }
    return ok ? s.graph : NULL;
}

bool pt2_inline(Scope *outer, Loc loc, const Json *as_graph, Value **in, int n_in, Value **out,
                int n_out)
{
    Pt2 *p = outer->in;
    const Json *graph = enter(outer, loc, as_graph), *tensor;
    Scope s = {.in = p,
               .graph = outer->graph,
               .depth = outer->depth + 1,
               .in_autocast = outer->in_autocast,
               .prefix = arena_printf(p->tmp, "%s%s.", outer->prefix, loc.node)};
    if (!graph || !open_scope(&s, graph))
        return false;
    const Json *graph_in = json_get(graph, "inputs"), *graph_out = json_get(graph, "outputs");
    if (json_count(graph_in) != n_in || json_count(graph_out) != n_out)
        return diag_error(p->diag, loc,
                          "its graph has %d inputs and %d outputs, expected %d and %d",
                          json_count(graph_in), json_count(graph_out), n_in, n_out);
    for (JsonIter it = json_iter(graph_in); json_next(&it);) {
        tensor = tensor_only(&s, loc, "input", it.value);
        const char *name = json_string(json_get(tensor, "name"));
        if (!tensor || !pt2_define(&s, loc, name ? name : "", *in++))
            return false;
    }
    if (!nodes(&s, graph))
        return false;
    for (JsonIter it = json_iter(graph_out); json_next(&it); out++) {
        tensor = tensor_only(&s, loc, "output", it.value);
        if (!tensor || !(*out = pt2_use(&s, loc, tensor)))
            return false;
    }
    return true;
}
