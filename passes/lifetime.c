/* lifetime.c -- from alias sets to blocks of memory and the times they are in use. */
#include "passes/internal.h"
#include <stdlib.h>

const Value **graph_values(const Graph *g, Arena *tmp)
{
    const Value **v = NEW(tmp, const Value *, g->n_values + 1);
    for (int i = 0; i < g->n_in; i++)
        v[g->in[i]->index] = g->in[i];
    for (int i = 0; i < g->n_states; i++)
        v[g->state[i]->index] = g->state[i];
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            v[n->out[i]->index] = n->out[i];
    return v;
}

static void stretch(Block *b, int from, int to)
{
    b->start = from < b->start ? from : b->start;
    b->end = to > b->end ? to : b->end;
}

/* The c tail keeps inputs, outputs and states in memory of the caller. */
static void mark_callers(const Graph *g, AliasSets a, bool *callers)
{
    for (int i = 0; i < g->n_states; i++)
        callers[g->state[i]->index] = g->state[i]->state->kind != ST_MUTABLE;
    if (g->program->tail == TAIL_PTE)
        return;
    for (int i = 0; i < g->n_states; i++)
        callers[g->state[i]->index] = true;
    for (int i = 0; i < g->n_in; i++)
        callers[g->in[i]->index] = true;
    for (int i = 0; i < g->n_out; i++)
        callers[a.root[g->out[i]->index]] = true;
}

static int64_t bytes_of(const Value *v)
{
    int64_t n = type_bytes(v->type);
    return n == INT64_MAX ? n : round_up(n, PLAN_ALIGN);
}

Blocks blocks_of(const Graph *g, AliasSets a, Arena *tmp)
{
    const Value **value = graph_values(g, tmp);
    Block *of = NEW(tmp, Block, g->n_values + 1);
    bool *callers = NEW(tmp, bool, g->n_values + 1), *pinned = pinned_values(g, tmp);
    int time = 0;
    Blocks b = {0};
    for (int i = 0; i < g->n_values; i++)
        of[i] = (Block){.root = i, .start = INT32_MAX, .end = -1};
    for (int i = 0; i < g->n_in; i++)
        stretch(&of[g->in[i]->index], 0, 0);
    for (const Node *n = g->first; n; n = n->next) {
        time++;
        for (int i = 0; i < n->n_in; i++)
            stretch(&of[a.root[n->in[i]->index]], time, time);
        for (int i = 0; i < n->n_out; i++)
            stretch(&of[a.root[n->out[i]->index]], time, time);
    }
    for (int i = 0; i < g->n_out; i++)
        stretch(&of[a.root[g->out[i]->index]], time + 1, time + 1);
    for (int i = 0; i < g->n_updates; i++)
        stretch(&of[a.root[g->update[i].value->index]], time + 1, time + 1);
    mark_callers(g, a, callers);
    for (int i = 0; i < g->n_values; i++) {
        if (pinned[i])
            stretch(&of[i], 0, time + 1);
        if (!value[i] || a.root[i] != i || callers[i] || of[i].end < 0 ||
            value[i]->type.rank == SCALAR || value[i]->type.is_none)
            continue;
        of[i].bytes = bytes_of(value[i]);
        PUSH(tmp, b.item, b.n, of[i]);
    }
    return b;
}

int64_t blocks_bound(Blocks b, Arena *tmp)
{
    int end = 0;
    for (int i = 0; i < b.n; i++)
        end = b.item[i].end > end ? b.item[i].end : end;
    int64_t *change = NEW(tmp, int64_t, end + 2), sum = 0, most = 0;
    for (int i = 0; i < b.n; i++) {
        change[b.item[i].start] += b.item[i].bytes;
        change[b.item[i].end + 1] -= b.item[i].bytes;
    }
    for (int t = 0; t <= end; t++) {
        sum += change[t];
        most = sum > most ? sum : most;
    }
    return most;
}
