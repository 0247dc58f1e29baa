/* onnx_scope.c -- the names in an ONNX file, and the values that graphs within graphs see under them.
 *
 * A nested graph of the IR sees nothing from outside: values of outer graphs that its nodes read
 * become its inputs. */
#include "compiler/import/onnx.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

const char *onnx_text(Onnx *o, ProtobufCBinaryData text)
{
    if (text.len && memchr(text.data, 0, text.len)) {
        diag_error(o->diag, o->loc, "a text has a NUL");
        return NULL;
    }
    return arena_str(o->program->arena, (const char *)text.data, text.len);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const char *onnx_name(Arena *a, const char *text)
{
    enum { MOST = 60 };
    size_t n = strlen(text);
    n = n > MOST ? MOST : n;
    char *name = arena_printf(a, "%s%.*s", n && is_letter(*text) ? "" : "v", (int)n, text);
    for (char *s = name; *s; s++)
        if (!is_letter(*s) && !is_digit(*s))
            *s = '_';
    return name;
}

/* The item of a stem in the table is the number that is tried for its next name. */
const char *onnx_unique(Onnx *o, const char *text)
{
    Arena *a = o->program->arena;
    const char *stem = onnx_name(a, text), *name = stem;
    int64_t i = table_at_text(&o->taken, stem)->number;
    for (; i && (name == stem || table_has(&o->taken, name, strlen(name))); i++)
        name = arena_printf(a, "%s_%" PRId64, stem, i + 1);
    if (i)
        table_at_text(&o->taken, name)->number = 1;
    table_at_text(&o->taken, stem)->number = i ? i : 1;
    return name;
}

bool onnx_is_default(ProtobufCBinaryData domain)
{
    return !domain.len || (domain.len == 7 && !memcmp(domain.data, "ai.onnx", 7));
}

/* -- scopes ------------------------------------------------------------------------------------ */

/* Returns the graph's own value for one of an outer graph.  The first time, it becomes an input of
 * the graph. */
static Value *taken(OnnxScope *s, const char *name, Value *outer)
{
    Onnx *o = s->in;
    for (int i = 0; i < s->n_captured; i++)
        if (s->captured[i] == outer)
            return s->within[i];
    Value *v = graph_value(s->graph, onnx_unique(o, name), outer->type);
    graph_add_input(s->graph, v);
    PUSH(o->tmp, s->captured, s->n_captured, outer);
    PUSH(o->tmp, s->within, s->n_within, v);
    return v;
}

/* Returns a value of an outer graph as one of the nested graph that the scope is of. */
static OnnxValue *inner_value(OnnxScope *s, const char *name, const OnnxValue *outer)
{
    assert(s->graph && !outer->is_absent);
    Arena *a = s->in->tmp;
    OnnxValue *v = NEW(a, OnnxValue, 1);
    *v = *outer;
    v->value = NULL;
    if (outer->sequence) {
        OnnxSequence *items = NEW(a, OnnxSequence, 1);
        *items = (OnnxSequence){.n = outer->sequence->n,
                                .item = NEW(a, OnnxValue *, outer->sequence->n + 1)};
        for (int i = 0; i < items->n; i++)
            items->item[i] = inner_value(s, name, outer->sequence->item[i]);
        v->sequence = items;
    } else if (outer->value && outer->value->state) {
        v->value = graph_state(s->graph, outer->value->state);
    } else if (!outer->constant && !outer->list && !outer->is_none) {
        v->value = taken(s, name, outer->value);
    }
    return v;
}

static OnnxValue *captured(OnnxScope *s, const char *name, const OnnxValue *outer)
{
    OnnxValue *v = inner_value(s, name, outer);
    table_at_text(&s->values, name)->ptr = v;
    return v;
}

OnnxValue *onnx_find(OnnxScope *s, const char *name)
{
    if (!s)
        return NULL;
    OnnxValue *v = table_find_text(&s->values, name);
    if (v || !(v = onnx_find(s->outer, name)) || !s->graph || v->is_absent)
        return v;
    return captured(s, name, v);
}

OnnxScope onnx_scope_within(OnnxNode *n, Graph *graph)
{
    return (OnnxScope){.in = n->in, .outer = n->scope, .graph = graph,
                       .values = {.arena = n->in->tmp}};
}

void onnx_enter(OnnxNode *n, OnnxNested *b)
{
    b->outer = n->in->graph;
    b->graph = graph_new(n->in->program, NULL);
    b->scope = onnx_scope_within(n, b->graph);
    n->in->graph = b->graph;
}

void onnx_leave(OnnxNode *n, const OnnxNested *b)
{
    assert(n->in->graph == b->graph);
    n->in->graph = b->outer;
}
