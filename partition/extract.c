/* extract.c -- nodes of a graph become the body of a call of a backend. */
#include "partition/internal.h"
#include <string.h>

typedef struct Extract {
    Graph *body;
    Node *call;
    Value **inner; /* the body's value of an outer one, by the outer one's index */
    Arg *operand;
    int n;
} Extract;

/* Weights in integers stay small until they are read; fold_constants left these. */
bool value_goes_along(const Value *v)
{
    const Node *n = v->def;
    if (!n || !n->n_in || n->n_out != 1 ||
        (n->op != OP_DEQUANTIZE_PER_CHANNEL && n->op != OP_DEQUANTIZE_PER_TENSOR &&
         n->op != OP_DEQUANTIZE_PER_TENSOR_TENSOR && n->op != OP__TO_COPY && n->op != OP_VIEW))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const State *s = n->in[i]->state;
        if (s ? s->kind == ST_MUTABLE || s->kind == ST_BLOB || !s->data || n->in[i]->type.stride
              : !value_goes_along(n->in[i]))
            return false;
    }
    return true;
}

static void copy_node(Extract *e, const Node *from);

/* Constant states are seen from everywhere, what is made of them is made in the body; all else it
 * reads is its input. */
static Value *inner_value(Extract *e, Value *v)
{
    if (e->inner[v->index])
        return e->inner[v->index];
    if (v->state && v->state->kind != ST_MUTABLE)
        return graph_state(e->body, v->state);
    if (value_goes_along(v)) {
        copy_node(e, v->def);
        return e->inner[v->index];
    }
    Value *in = graph_value(e->body, v->name, v->type);
    graph_add_input(e->body, in);
    e->operand[e->n++] = node_use(e->call, v);
    return e->inner[v->index] = in;
}

static Arg copy_arg(Extract *e, const Node *from, Node *to, Arg a)
{
    if (a.kind == ARG_VALUE) {
        Arg use = node_use(to, inner_value(e, from->in[a.slot]));
        use.key = a.key;
        return use;
    }
    if (a.kind == ARG_LIST) {
        Arg *item = NEW(e->body->program->arena, Arg, a.list.n ? a.list.n : 1);
        for (int i = 0; i < a.list.n; i++)
            item[i] = copy_arg(e, from, to, a.list.item[i]);
        a.list.item = item;
    }
    return a;
}

static void copy_node(Extract *e, const Node *from)
{
    Node *to = node_new(e->body, from->op, from->loc);
    for (int i = 0; i < from->n_args; i++)
        node_push(to, copy_arg(e, from, to, from->arg[i]));
    for (int i = 0; i < from->n_out; i++)
        e->inner[from->out[i]->index] = node_add_out(to, from->out[i]->name, from->out[i]->type);
    graph_append(e->body, to);
}

static bool is_read_outside(const Value *v, int region, const Uses *u, const int *region_of)
{
    if (u->escapes[v->index])
        return true;
    for (int i = u->first[v->index]; i < u->first[v->index + 1]; i++) {
        const Node *user = u->user[i];
        if (!user->n_out || region_of[user->out[0]->index] != region)
            return true;
    }
    return false;
}

static State *blob_state(Program *p, const Backend *b, Blob blob)
{
    Dim n = DIM((int64_t)blob.n);
    Type t = type_tensor(p, ETC_U8, 1, &n);
    int64_t at = p->side_bytes;
    p->side_bytes = round_up(at + (int64_t)blob.n, 16);
    const char *name = arena_printf(p->arena, "%s_%d", b->name, p->n_ids);
    return program_state(p, ST_BLOB, name, b->id, t, "-", at, blob.data, (int64_t)blob.n);
}

static void add_results(Extract *e, const Node *n, const Uses *uses, const int *region_of,
                        Value **with)
{
    for (int i = 0; i < n->n_out; i++) {
        Value *v = n->out[i];
        if (!is_read_outside(v, region_of[v->index], uses, region_of))
            continue;
        graph_add_output(e->body, e->inner[v->index]);
        with[v->index] = node_add_out(e->call, v->name, v->type);
    }
}

bool extract_region(Graph *g, Node **member, int n, const Uses *uses, const int *region_of,
                    const Backend *b, Value **with, Arena *tmp, Diag *d)
{
    int n_in = 0;
    Blob blob;
    for (int i = 0; i < n; i++)
        n_in += member[i]->n_in;
    Extract e = {graph_new(g->program, NULL), node_new(g, OP_DELEGATE, member[0]->loc),
                 NEW(tmp, Value *, g->n_values + 1), NEW(g->program->arena, Arg, n_in + 1), 0};
    Arg first = node_use(e.call, member[0]->out[0]); /* until there is a blob */
    for (int i = 0; i < n; i++)
        copy_node(&e, member[i]);
    for (int i = 0; i < n; i++)
        add_results(&e, member[i], uses, region_of, with);
    if (!b->lower(e.body, tmp, d, &blob))
        return false;
    node_set_in(e.call, first.slot, graph_state(g, blob_state(g->program, b, blob)));
    node_push(e.call, first);
    node_push(e.call, (Arg){.kind = ARG_LIST, .list = {e.operand, e.n}});
    node_push(e.call, (Arg){.kind = ARG_GRAPH, .key = "body", .graph = e.body});
    graph_insert(g, member[0], e.call);
    return true;
}
