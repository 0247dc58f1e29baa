/* extract.c -- nodes of a graph become the body of a call of a backend. */
#include "partition/internal.h"

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

static void add_results(Outline *o, const Node *n, const Uses *uses, const int *region_of,
                        Value **with)
{
    for (int i = 0; i < n->n_out; i++)
        if (is_read_outside(n->out[i], region_of[n->out[i]->index], uses, region_of))
            outline_result(o, n->out[i], with);
}

bool extract_region(Graph *g, Node **member, int n, const Uses *uses, const int *region_of,
                    const Backend *b, Value **inner, Value **with, Arena *tmp, Diag *d)
{
    Blob blob;
    Node *call = node_new(g, OP_DELEGATE, member[0]->loc);
    Arg first = node_use(call, member[0]->out[0]); /* until there is a blob */
    Outline o = outline_start(call, member, n, inner);
    for (int i = 0; i < n; i++)
        add_results(&o, member[i], uses, region_of, with);
    outline_end(&o, member, n);
    if (!b->lower(o.body, tmp, d, &blob))
        return false;
    node_set_in(call, first.slot, graph_state(g, blob_state(g->program, b, blob)));
    node_push(call, first);
    node_push(call, outline_operands(&o));
    node_push(call, (Arg){.kind = ARG_GRAPH, .key = "body", .graph = o.body});
    graph_insert(g, member[0], call);
    return true;
}
