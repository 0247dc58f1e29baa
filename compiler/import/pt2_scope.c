/* pt2_scope.c -- the names of a graph of a model.json, and what they stand for.
 *
 * A parameter, buffer or constant becomes a state when the first node reads it.  Those that nobody
 * reads are dropped, and their bytes are never touched. */
#include "compiler/import/internal.h"
#include <string.h>

Name *pt2_name(Scope *s, Loc loc, const char *text)
{
    Name *n = table_find_text(&s->names, text);
    if (!n)
        diag_error(s->in->diag, loc, "the value '%.60s' is nowhere described", text);
    return n;
}

const char *pt2_value_name(Scope *s, const char *text)
{
    Arena *a = s->in->program->arena;
    if (*s->prefix)
        return arena_join(a, s->prefix, text);
    /* Sizes and values share one name space of the textual IR.  No name of torch has a '.'. */
    return arena_join(a, text, table_find_text(&s->in->symbols, text) ? "." : "");
}

bool pt2_define(Scope *s, Loc loc, const char *text, Value *v)
{
    Name *n = pt2_name(s, loc, text);
    if (!n)
        return false;
    if (n->value || n->spec)
        return diag_error(s->in->diag, loc, "the value '%s' is defined twice", text);
    n->value = v;
    return true;
}

Value *pt2_state(Scope *s, Loc loc, Name *n)
{
    Pt2 *p = s->in;
    const char *fqn = json_string(json_get(n->spec, n->tag->fqn));
    bool is_persistent = true;
    Type type;
    json_bool(json_get(n->spec, "persistent"), &is_persistent);
    n->is_broken = true;
    if (!fqn) {
        pt2_malformed(p, n->spec, n->tag->fqn, "a string");
        return NULL;
    }
    if (!pt2_type(p, loc, n->text, n->meta, &type))
        return NULL;
    State *state = weights_state(
        p, n->tag->kind, n->tag->kind == ST_CONST || !is_persistent, NULL, fqn, type);
    if (!state)
        return NULL;
    n->is_broken = false;
    state->name = pt2_unique(p, n->text, state);
    return n->value = graph_state(s->graph, state);
}

Value *pt2_use(Scope *s, Loc loc, const Json *argument)
{
    const char *text = json_string(json_get(argument, "name"));
    if (!text) {
        pt2_malformed(s->in, argument, "name", "a string");
        return NULL;
    }
    Name *n = pt2_name(s, loc, text);
    if (!n || n->is_broken)
        return NULL;
    if (!n->value && n->spec)
        return pt2_state(s, loc, n);
    if (!n->value)
        diag_error(s->in->diag, loc, "the value '%s' is used before it is defined", text);
    if (!s->in->may_batch && pt2_is_batched(s->in, n->value)) {
        pt2_refuse_batch(s->in, loc);
        return NULL;
    }
    return n->value;
}
