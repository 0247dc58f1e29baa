/* outline.c -- moves nodes of a graph into the body of one node, which replaces them. */
#include "ir/ir.h"

/* Returns what v is inside the body.  The body reads constant states itself; every other value
 * becomes an input. */
static Value *inner_value(Outline *o, Value *v)
{
    if (o->inner[v->index])
        return o->inner[v->index];
    if (value_is_fixed(v))
        return graph_state(o->body, v->state);
    Value *in = graph_value(o->body, v->name, v->type);
    graph_add_input(o->body, in);
    o->operand[o->n++] = node_use(o->call, v);
    return o->inner[v->index] = in;
}

static Arg copy_arg(Outline *o, const Node *from, Node *to, Arg a)
{
    if (a.kind == ARG_VALUE) {
        Arg use = node_use(to, inner_value(o, from->in[a.slot]));
        use.key = a.key;
        return use;
    }
    if (a.kind == ARG_LIST) {
        Arg *item = NEW(o->body->program->arena, Arg, a.list.n ? a.list.n : 1);
        for (int i = 0; i < a.list.n; i++)
            item[i] = copy_arg(o, from, to, a.list.item[i]);
        a.list.item = item;
    }
    return a;
}

static void copy_node(Outline *o, const Node *from)
{
    Node *to = node_like(o->body, from);
    for (int i = 0; i < from->n_args; i++)
        node_push(to, copy_arg(o, from, to, from->arg[i]));
    for (int i = 0; i < from->n_out; i++)
        o->inner[from->out[i]->index] = node_add_out(to, from->out[i]->name, from->out[i]->type);
    graph_append(o->body, to);
}

Outline outline_start(Node *call, Node *const *member, int n, Value **inner)
{
    Program *p = call->graph->program;
    int most = 0;
    for (int i = 0; i < n; i++)
        most += member[i]->n_in;
    Outline o = {graph_new(p, NULL), call, inner, NEW(p->arena, Arg, most + 1), 0};
    for (int i = 0; i < n; i++)
        copy_node(&o, member[i]);
    return o;
}

void outline_result(Outline *o, const Value *v, Value **with)
{
    assert(o->inner[v->index]); /* a node of the body computes it */
    graph_add_output(o->body, o->inner[v->index]);
    with[v->index] = node_add_out(o->call, v->name, v->type);
}

Arg outline_operands(const Outline *o)
{
    return (Arg){.kind = ARG_LIST, .list = {o->operand, o->n}};
}

void outline_end(Outline *o, Node *const *member, int n)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < member[i]->n_in; k++)
            o->inner[member[i]->in[k]->index] = NULL;
        for (int k = 0; k < member[i]->n_out; k++)
            o->inner[member[i]->out[k]->index] = NULL;
    }
}
