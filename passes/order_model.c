/* order_model.c -- the model of a graph for the order search: how long which bytes are live in an
 * order.
 *
 * A chunk is the memory that one node adds.  Views add nothing, a concat adds what it moves, and
 * results in memory of the caller add nothing.  A chunk is live from its node to the last node
 * that reads a value which covers it.  If a node's row lets it overlay an operand, and the
 * chunks of that operand die there, the node adds nothing while it runs.  Which values share
 * chunks is taken from the given order.  In the end order.c compares the real plans. */
#include "passes/order.h"

typedef struct Build {
    Model *m;
    const Graph *g;
    AliasSets a;
    const Value **value;
    bool *callers;       /* by root */
    bool *is_out;        /* by value */
    int *first, *count;  /* by value: its chunks are `count` items of `chunk`, from `first` on */
    int *chunk, n_chunk, *seen, stamp;
    int64_t room;        /* of all lists; if it is used up, the rest of the graph is left out */
    Arena *tmp;
} Build;

enum { LISTS_PER_VALUE = 16 };

static bool is_tensor(const Value *v)
{
    return v->type.rank != SCALAR && !v->type.is_none;
}

static int add_chunk(Build *b, const Value *v, int64_t bytes)
{
    Model *m = b->m;
    const Value *root = b->value[b->a.root[v->index]];
    bool is_free = b->callers[root->index] || root->state;
    Chunk c = {.bytes = is_free ? 0 : round_up(bytes, PLAN_ALIGN)};
    PUSH(b->tmp, m->chunk, m->n_chunks, c);
    PUSH(b->tmp, b->seen, b->stamp, 0); /* one mark per chunk */
    return m->n_chunks - 1;
}

/* Appends the chunks of x to the list that ends the pool, each once per `mark`. */
static void append(Build *b, const Value *x, int mark)
{
    for (int i = 0; i < b->count[x->index]; i++) {
        int c = b->chunk[b->first[x->index] + i];
        if (b->seen[c] == mark || b->room <= 0)
            continue;
        b->seen[c] = mark;
        b->room--;
        PUSH(b->tmp, b->chunk, b->n_chunk, c);
    }
}

static bool shares(const Build *b, const Value *x, const Value *y)
{
    return b->a.root[x->index] == b->a.root[y->index];
}

/* Defines the chunks of a result: those of operands if it is a view or a concat, and those that it
 * adds. */
static void define(Build *b, const Node *n, const Value *y, int mark)
{
    int64_t added = type_bytes(y->type);
    bool is_view = op_info[n->op].flags & VIEW && n->n_in && shares(b, first_operand(n), y);
    b->first[y->index] = b->n_chunk;
    if (is_view) {
        append(b, first_operand(n), mark);
        added = 0;
    }
    Concat joined;
    for (int i = 0, count = concat_read(n, &joined) ? joined.count : 0; i < count; i++)
        if (shares(b, n->in[i], y)) {
            append(b, n->in[i], mark);
            added -= type_bytes(n->in[i]->type);
        }
    if (added > 0) {
        int c = add_chunk(b, y, added);
        b->m->chunk[c].def = b->m->number[y->index];
        PUSH(b->tmp, b->chunk, b->n_chunk, c);
    }
    b->count[y->index] = b->n_chunk - b->first[y->index];
}

/* Returns whether y may take the chunks of x, which must be all of x.  Those of inputs it may take
 * only where the graph owns them, and y is neither given out nor part of a concat. */
static bool may_take(const Build *b, const Value *x, const Value *y)
{
    int64_t bytes = 0;
    int root = b->a.root[y->index];
    bool is_part = root != y->index && root != b->a.root[x->index];
    for (int i = 0; i < b->count[x->index]; i++) {
        const Chunk *c = &b->m->chunk[b->chunk[b->first[x->index] + i]];
        if (c->def < 0 && (!graph_owns_io(b->g) || b->callers[b->a.root[x->index]] ||
                           b->is_out[y->index] || is_part))
            return false;
        bytes += c->bytes;
    }
    return bytes && bytes == round_up(type_bytes(x->type), PLAN_ALIGN);
}

/* Finds the chunks of the operand that the node may write over. */
static void find_overlaid(const Build *b, const Node *n, Step *s)
{
    for (int i = 0; n->n_out == 1 && i < n->n_in; i++) {
        const Value *x = n->in[i];
        if (!node_may_overlay(n, i) || !may_take(b, x, n->out[0]))
            continue;
        s->first_over = b->first[x->index];
        s->n_over = b->count[x->index];
        return;
    }
}

static void read_node(Build *b, const Node *n, int mark)
{
    Model *m = b->m;
    Step *s = &m->step[m->n_steps++];
    s->first_read = b->n_chunk;
    for (int i = 0; i < n->n_in; i++)
        append(b, n->in[i], mark);
    s->n_reads = b->n_chunk - s->first_read;
    find_overlaid(b, n, s);
    s->first_made = m->n_chunks;
    for (int i = 0; i < n->n_out; i++)
        if (is_tensor(n->out[i]))
            define(b, n, n->out[i], mark + 1 + i);
    s->n_made = m->n_chunks - s->first_made;
}

static void keep(Build *b, const Value *v)
{
    for (int i = 0; i < b->count[v->index]; i++)
        b->m->chunk[b->chunk[b->first[v->index] + i]].kept = true;
}

static void mark_callers(Build *b)
{
    const Graph *g = b->g;
    const bool *borrowed = borrowed_inputs(g, b->tmp);
    for (int i = 0; i < g->n_in; i++)
        b->callers[g->in[i]->index] = !graph_owns_io(g) || borrowed[g->in[i]->index];
    for (int i = 0; i < g->n_out && !graph_owns_io(g); i++)
        b->callers[b->a.root[g->out[i]->index]] = true;
    for (int i = 0; i < g->n_out; i++)
        b->is_out[g->out[i]->index] = true;
}

static void define_inputs(Build *b)
{
    for (int i = 0; i < b->g->n_in; i++) {
        const Value *v = b->g->in[i];
        b->first[v->index] = b->n_chunk;
        if (!is_tensor(v))
            continue;
        int c = add_chunk(b, v, type_bytes(v->type));
        b->m->chunk[c].def = -1;
        PUSH(b->tmp, b->chunk, b->n_chunk, c);
        b->count[v->index] = 1;
    }
}

static void count_readers(Model *m)
{
    for (int k = 0; k < m->n_steps; k++)
        for (int i = 0; i < m->step[k].n_reads; i++)
            m->chunk[m->read[m->step[k].first_read + i]].readers++;
}

bool model_of(const Graph *g, const int *number, int n, Model *m, Arena *tmp)
{
    size_t values = (size_t)g->n_values + 1;
    Build b = {.m = m, .g = g, .a = alias_sets(g, tmp), .value = graph_values(g, tmp), .tmp = tmp,
               .callers = NEW(tmp, bool, values), .is_out = NEW(tmp, bool, values),
               .first = NEW(tmp, int, values), .count = NEW(tmp, int, values),
               .room = (int64_t)LISTS_PER_VALUE * g->n_values + 100000};
    int mark = 1;
    *m = (Model){.number = number, .step = NEW(tmp, Step, n + 1)};
    mark_callers(&b);
    define_inputs(&b);
    for (const Node *node = g->first; node; node = node->next) {
        read_node(&b, node, mark);
        mark += 1 + node->n_out;
    }
    for (int i = 0; i < g->n_out; i++)
        keep(&b, g->out[i]);
    for (int i = 0; i < g->n_updates; i++) {
        keep(&b, g->update[i].value);
        keep(&b, g->update[i].target);
    }
    m->read = b.chunk;
    count_readers(m);
    return b.room > 0;
}

static bool dies(const Model *m, const Step *s, const int *left)
{
    for (int k = s->first_over; k < s->first_over + s->n_over; k++)
        if (left[m->read[k]] != 1 || m->chunk[m->read[k]].kept)
            return false;
    return s->n_over > 0;
}

int64_t model_play(const Model *m, const int *order, int64_t *at, Arena *tmp)
{
    int *left = NEW(tmp, int, m->n_chunks + 1);
    int64_t live = 0, most = 0;
    for (int c = 0; c < m->n_chunks; c++) {
        left[c] = m->chunk[c].readers;
        live += m->chunk[c].def < 0 ? m->chunk[c].bytes : 0;
    }
    for (int i = 0; i < m->n_steps; i++) {
        const Step *s = &m->step[order[i]];
        int64_t made = 0, freed = 0;
        bool over = dies(m, s, left);
        for (int k = s->first_made; k < s->first_made + s->n_made; k++) {
            made += m->chunk[k].bytes;
            freed += left[k] || m->chunk[k].kept ? 0 : m->chunk[k].bytes;
        }
        for (int k = s->first_read; k < s->first_read + s->n_reads; k++) {
            int c = m->read[k];
            left[c]--;
            freed += left[c] || m->chunk[c].kept ? 0 : m->chunk[c].bytes;
        }
        at[i] = live + (over ? 0 : made);
        live += made - freed;
        most = at[i] > most ? at[i] : most;
    }
    return most;
}

int64_t model_floor(const Model *m)
{
    int64_t most = 0;
    for (const Step *s = m->step; s < m->step + m->n_steps; s++) {
        int64_t sum = 0;
        for (int k = s->first_made; !s->n_over && k < s->first_made + s->n_made; k++)
            sum += m->chunk[k].bytes;
        for (int k = s->first_read; k < s->first_read + s->n_reads; k++)
            sum += m->chunk[m->read[k]].bytes;
        most = sum > most ? sum : most;
    }
    return most;
}
