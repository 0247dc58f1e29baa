/* extract.c -- nodes of a graph become the body of a call of a backend. */
#include "partition/internal.h"

/* Returns whether v is computed from constants alone, such as a weight that is stored as integers.
 * fold_constants has left these nodes, so that the weights stay small until they are read. */
bool value_is_from_constants(const Value *v)
{
    const Node *n = v->def;
    if (!n || !n->n_in || n->n_out != 1 || !type_is_static(v->type) ||
        (n->op != OP_DEQUANTIZE_PER_CHANNEL && n->op != OP_DEQUANTIZE_PER_TENSOR &&
         n->op != OP_DEQUANTIZE_PER_TENSOR_TENSOR && n->op != OP__TO_COPY && n->op != OP_VIEW))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (!value_is_known(n->in[i]) && !value_is_from_constants(n->in[i]))
            return false;
    return true;
}

typedef struct Members {
    Node **item;
    int n;
} Members;

/* Adds a node, and before it the constant nodes that it reads; `seen` marks those. */
static void add_member(Members *m, Node *n, Value **seen, Arena *tmp)
{
    for (int i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        if (!seen[v->index] && value_is_from_constants(v)) {
            seen[v->index] = v;
            add_member(m, v->def, seen, tmp);
        }
    }
    PUSH(tmp, m->item, m->n, n);
}

/* Returns the nodes and the constant nodes that they read.  Uses `inner` to mark values, and
 * removes the marks again. */
static Members with_weights(Node **member, int n, Value **inner, Arena *tmp)
{
    Members all = {NULL, 0};
    for (int i = 0; i < n; i++)
        add_member(&all, member[i], inner, tmp);
    for (int i = 0; i < all.n; i++)
        inner[all.item[i]->out[0]->index] = NULL;
    return all;
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
    assert(blob.data && blob.n);
    Dim n = DIM((int64_t)blob.n);
    Type t = type_tensor(p, ETC_U8, 1, &n);
    int64_t at = p->side_bytes;
    p->side_bytes = round_up(at + (int64_t)blob.n, 16);
    const char *name = program_name(p, arena_numbered(p->arena, b->name, "_", p->n_ids));
    return program_state(p, ST_BLOB, name, b->id, t, "-", at, blob.data, (int64_t)blob.n);
}

static void add_results(Outline *o, const Node *n, const Uses *uses, const int *region_of,
                        Value **with)
{
    for (int i = 0; i < n->n_out; i++)
        if (is_read_outside(n->out[i], region_of[n->out[i]->index], uses, region_of))
            outline_result(o, n->out[i], with);
}

const Graph *extract_region(Graph *g, Node **member, int n, const Uses *uses, const int *region_of,
                            const Backend *b, Value **inner, Value **with, Arena *tmp, Diag *d)
{
    Blob blob;
    Node *call = node_new(g, OP_DELEGATE, member[0]->loc);
    Arg first = node_use(call, member[0]->out[0]); /* until there is a blob */
    Members all = with_weights(member, n, inner, tmp);
    Outline o = outline_start(call, all.item, all.n, inner);
    assert(n > 0);
    for (int i = 0; i < n; i++)
        add_results(&o, member[i], uses, region_of, with);
    outline_end(&o, all.item, all.n);
    if (!b->lower(o.body, tmp, d, &blob))
        return NULL;
    node_set_in(call, first.slot, graph_state(g, blob_state(g->program, b, blob)));
    node_push(call, first);
    node_push(call, outline_operands(&o));
    node_push(call, (Arg){.kind = ARG_GRAPH, .key = "body", .graph = o.body});
    graph_insert(g, member[0], call);
    return o.body;
}
