/* cse.c -- common subexpressions: the same op on the same operands is computed once.
 *
 * Stage core or edge.  One walk with a hash table over op, literals and operands; earlier results
 * are final when a node is looked up, so chains of equal nodes fall in the same walk.  Constants
 * over the same bytes are one.  Nodes that check, write or hold graphs stay.
 */
#include "passes/internal.h"
#include <string.h>

typedef struct Table {
    Node **node; /* open addressing, at most half full */
    uint32_t mask;
} Table;

static uint32_t mix(uint32_t h, uint64_t v)
{
    h = (h ^ (uint32_t)v) * 16777619u;
    return (h ^ (uint32_t)(v >> 32)) * 16777619u;
}

static uint32_t hash_arg(const Node *n, const Arg *a, uint32_t h)
{
    uint64_t bits = 0;
    h = mix(h, (uint64_t)a->kind);
    switch (a->kind) {
    case ARG_VALUE:
        return mix(h, (uint64_t)n->in[a->slot]->index);
    case ARG_INT:
        return mix(h, a->dim.expr ? 1u : (uint64_t)a->dim.value); /* not by address */
    case ARG_FLOAT:
        memcpy(&bits, &a->f, sizeof bits);
        return mix(h, bits);
    case ARG_BOOL:
        return mix(h, a->b);
    case ARG_DTYPE:
        return mix(h, (uint64_t)a->dtype);
    case ARG_STRING:
        return mix(h, text_hash(a->str, strlen(a->str)));
    case ARG_LIST:
        for (int i = 0; i < a->list.n; i++)
            h = hash_arg(n, &a->list.item[i], h);
        return mix(h, (uint64_t)a->list.n);
    default:
        return h;
    }
}

static uint32_t hash_node(const Node *n)
{
    uint32_t h = mix(2166136261u, (uint64_t)n->op);
    for (int i = 0; i < n->n_args; i++)
        h = hash_arg(n, &n->arg[i], h);
    return h ^ h >> 15;
}

static bool args_equal(const Node *m, const Arg *a, const Node *n, const Arg *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ARG_VALUE:
        return m->in[a->slot] == n->in[b->slot];
    case ARG_INT:
        return dim_equal(a->dim, b->dim);
    case ARG_FLOAT:
        return !memcmp(&a->f, &b->f, sizeof a->f);
    case ARG_BOOL:
        return a->b == b->b;
    case ARG_DTYPE:
        return a->dtype == b->dtype;
    case ARG_STRING:
        return !strcmp(a->str, b->str);
    case ARG_LIST:
        if (a->list.n != b->list.n)
            return false;
        for (int i = 0; i < a->list.n; i++)
            if (!args_equal(m, &a->list.item[i], n, &b->list.item[i]))
                return false;
        return true;
    default:
        return a->kind == ARG_NONE;
    }
}

static bool nodes_equal(const Node *m, const Node *n)
{
    if (m->op != n->op || m->n_args != n->n_args || m->n_out != n->n_out)
        return false;
    for (int i = 0; i < n->n_args; i++)
        if (!args_equal(m, &m->arg[i], n, &n->arg[i]))
            return false;
    for (int i = 0; i < n->n_out; i++)
        if (!type_equal(m->out[i]->type, n->out[i]->type))
            return false;
    return true;
}

/* The first equal node, which may be n itself. */
static Node *find_or_add(Table *t, Node *n)
{
    uint32_t i = hash_node(n) & t->mask;
    while (t->node[i] && !nodes_equal(t->node[i], n))
        i = (i + 1) & t->mask;
    if (!t->node[i])
        t->node[i] = n;
    return t->node[i];
}

static bool may_share(const Node *n)
{
    if (!n->n_out || op_mutates(n->op) || op_info[n->op].flags & CHECK)
        return false;
    for (int i = 0; i < n->n_args; i++)
        if (n->arg[i].kind == ARG_GRAPH)
            return false;
    return true;
}

/* -- constants over the same bytes ----------------------------------------------------------- */

static uint32_t hash_state(const State *s)
{
    return mix(mix(2166136261u, (uint64_t)s->storage), (uint64_t)s->offset);
}

static bool states_equal(const State *a, const State *b)
{
    return a->storage == b->storage && a->offset == b->offset && type_same(a->type, b->type) &&
           !strcmp(a->file, b->file);
}

/* A graph remembers values of states that were dropped since. */
static bool is_there(const Program *p, const State *s)
{
    return s->index < p->n_states && p->state[s->index] == s;
}

static void share_states(Rewrite *r, uint32_t mask)
{
    Graph *g = r->g;
    Value **seen = NEW(r->tmp, Value *, mask + 1);
    for (int k = 0; k < g->n_states; k++) {
        Value *v = g->state[k];
        if (v->state->kind == ST_MUTABLE || v->state->kind == ST_BLOB ||
            !is_there(g->program, v->state))
            continue;
        uint32_t i = hash_state(v->state) & mask;
        while (seen[i] && !states_equal(seen[i]->state, v->state))
            i = (i + 1) & mask;
        if (seen[i])
            rewrite_value(r, v, seen[i]);
        else
            seen[i] = v;
    }
}

static uint32_t mask_for(int n)
{
    uint32_t size = 16;
    while (size < 2 * (uint32_t)n + 2)
        size *= 2;
    return size - 1;
}

bool pass_cse(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    int count = 0;
    for (const Node *n = g->first; n; n = n->next)
        count++;
    Table t = {.mask = mask_for(count)};
    t.node = NEW(tmp, Node *, t.mask + 1);
    share_states(&r, mask_for(g->n_states));
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        Node *first = may_share(n) ? find_or_add(&t, n) : n;
        if (first == n)
            continue;
        for (int i = 0; i < n->n_out; i++)
            rewrite_value(&r, n->out[i], first->out[i]);
        graph_remove(g, n);
    }
    rewrite_finish(&r);
    return true;
}
