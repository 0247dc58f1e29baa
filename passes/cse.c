/* cse.c -- common subexpressions: the same operator on the same operands is computed only once.
 *
 * Stage core or edge.  One walk with a hash table over operator, literals and operands.  Earlier
 * results are final when a node is looked up, so chains of equal nodes are found in the same walk.
 * Constants over the same bytes become one.  Nodes that check, write or hold graphs stay.
 */
#include "ir/table.h"
#include "passes/internal.h"

/* -- what tells nodes and states apart, in words ----------------------------------------------- */

typedef struct Words {
    Arena *arena;
    uint64_t *word;
    size_t n, room;
} Words;

enum { DIM = ARG_GRAPH + 1, EXPR, TYPE, WIDE = 0x80 }; /* kinds of words beside ArgKind */

static void put_word(Words *w, uint64_t word)
{
    if (w->n == w->room) {
        uint64_t *old = w->word;
        w->room = w->room ? 2 * w->room : 64;
        w->word = NEW(w->arena, uint64_t, w->room);
        if (w->n)
            memcpy(w->word, old, w->n * sizeof *old);
    }
    w->word[w->n++] = word;
}

/* Adds a value of a kind: in one word where it fits, else in two. */
static void put(Words *w, unsigned kind, uint64_t v)
{
    bool is_wide = v >> 56;
    put_word(w, is_wide ? kind | WIDE : kind | v << 8);
    if (is_wide)
        put_word(w, v);
}

static void put_text(Words *w, const char *s)
{
    uint64_t word;
    size_t n = strlen(s);
    put(w, ARG_STRING, n);
    for (size_t i = 0; i < n; i += sizeof word) {
        word = 0;
        memcpy(&word, s + i, n - i < sizeof word ? n - i : sizeof word);
        put_word(w, word);
    }
}

/* Adds sizes.  Equal expressions have the same address. */
static void put_dims(Words *w, const Dim *d, int n)
{
    for (int i = 0; i < n; i++)
        put(w, d[i].expr ? EXPR : DIM, d[i].expr ? (uintptr_t)d[i].expr : (uint64_t)d[i].value);
}

static void put_type(Words *w, Type t)
{
    put(w, TYPE, t.is_none ? 0 : 1 + ((uint64_t)t.dtype << 8 | (uint8_t)t.rank));
    put_dims(w, t.dim, t.is_none ? 0 : t.rank);
}

static void put_arg(Words *w, const Node *n, const Arg *a)
{
    uint64_t bits = 0;
    switch (a->kind) {
    case ARG_VALUE:
        put(w, a->kind, (uint64_t)n->in[a->slot]->index);
        break;
    case ARG_INT:
        put_dims(w, &a->dim, 1);
        break;
    case ARG_FLOAT:
        memcpy(&bits, &a->f, sizeof bits);
        put(w, a->kind, bits);
        break;
    case ARG_BOOL:
        put(w, a->kind, a->b);
        break;
    case ARG_DTYPE:
        put(w, a->kind, (uint64_t)a->dtype);
        break;
    case ARG_STRING:
        put_text(w, a->str);
        break;
    case ARG_LIST:
        put(w, a->kind, (uint64_t)a->list.n);
        for (int i = 0; i < a->list.n; i++)
            put_arg(w, n, &a->list.item[i]);
        break;
    default: /* ARG_NONE; nodes with graphs are not merged */
        put(w, a->kind, 0);
        break;
    }
}

static void put_node(Words *w, const Node *n)
{
    put_word(w, (uint64_t)n->op << 32 | (uint32_t)n->n_args);
    if (n->custom)
        put_text(w, n->custom->target);
    for (int i = 0; i < n->n_args; i++)
        put_arg(w, n, &n->arg[i]);
    for (int i = 0; i < n->n_out; i++)
        put_type(w, n->out[i]->type);
    if (n->op == OP_LOCAL_SCALAR_DENSE && n->out[0]->type.dim) /* each defines its own symbol */
        put_dims(w, n->out[0]->type.dim, 1);
}

static void put_state(Words *w, const State *s)
{
    put_word(w, (uint64_t)s->storage);
    put_word(w, (uint64_t)s->offset);
    put_type(w, s->type);
    put_dims(w, s->type.stride, s->type.stride ? s->type.rank : 0);
}

/* Returns the item of these words, which is empty the first time, and takes the words off. */
static TableItem *item_at(Table *t, Words *w)
{
    TableItem *item = table_at_copy(t, w->word, w->n * sizeof *w->word);
    w->n = 0;
    return item;
}

/* -- nodes ------------------------------------------------------------------------------------- */

/* Returns the first node that is equal to n, which may be n itself. */
static Node *find_or_add(Table *t, Words *w, Node *n)
{
    put_node(w, n);
    TableItem *first = item_at(t, w);
    if (!first->ptr)
        first->ptr = n;
    return first->ptr;
}

static bool may_share(const Node *n)
{
    if (!n->n_out || op_mutates(n->op) || op_info[n->op].flags & CHECK)
        return false;
    return !region_next(n, NULL);
}

/* -- constants over the same bytes ----------------------------------------------------------- */

/* Returns whether a state is still one of the program.  A graph remembers values of states that
 * were dropped since. */
static bool is_there(const Program *p, const State *s)
{
    return s->index < p->n_states && p->state[s->index] == s;
}

static void share_states(Rewrite *r, Words *w)
{
    Graph *g = r->g;
    Table seen = {.arena = r->tmp}; /* the keys lead to a Value */
    for (int k = 0; k < g->n_states; k++) {
        Value *v = g->state[k];
        if (v->state->kind == ST_MUTABLE || v->state->kind == ST_BLOB ||
            !is_there(g->program, v->state))
            continue;
        put_state(w, v->state);
        TableItem *first = item_at(&seen, w);
        if (first->ptr)
            rewrite_value(r, v, first->ptr);
        else
            first->ptr = v;
    }
}

bool pass_cse(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    Table t = {.arena = tmp}; /* the keys lead to a Node */
    Words w = {.arena = tmp};
    share_states(&r, &w);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        Node *first = may_share(n) ? find_or_add(&t, &w, n) : n;
        if (first == n)
            continue;
        for (int i = 0; i < n->n_out; i++)
            rewrite_value(&r, n->out[i], first->out[i]);
        graph_remove(g, n);
    }
    rewrite_finish(&r);
    return true;
}
