/* composite_loop.c -- loops of rules that run with the model: the nodes that a loop's condition and
 * its statements built move into graphs of their own, the test and the body of a while_loop. */
#include "passes/composite.h"

typedef struct Moves {
    Play *p;
    Graph *graph[2];
    int n_carried;
    Value **outer; /* input n_carried + i of both graphs is outer[i] */
    int n;
    Value **inner[2]; /* by index of the values outside: the values inside, or NULL */
} Moves;

static const char *name_of(const Play *p, const Graph *g)
{
    return arena_numbered(g->program->arena, p->n->out[0]->name, ".", graph_number(g));
}

static Value *add_input(const Play *p, Graph *g, Type t)
{
    Value *v = graph_value(g, name_of(p, g), t);
    graph_add_input(g, v);
    return v;
}

/* Returns the value that v is in graph k. */
static Value *twin_of(Moves *m, int k, Value *v)
{
    if (!v || m->inner[k][v->index])
        return v ? m->inner[k][v->index] : NULL;
    if (v->state)
        return graph_state(m->graph[k], v->state);
    PUSH(m->p->r->tmp, m->outer, m->n, v);
    for (int i = 0; i < 2; i++)
        m->inner[i][v->index] = add_input(m->p, m->graph[i], v->type);
    return m->inner[k][v->index];
}

static Arg moved(Moves *m, int k, Node *to, const Node *from, Arg a)
{
    if (a.kind == ARG_VALUE) {
        Arg use = node_use(to, twin_of(m, k, from->in[a.slot]));
        use.key = a.key;
        return use;
    }
    if (a.kind != ARG_LIST)
        return a;
    Arg *item = NEW(to->graph->program->arena, Arg, a.list.n + 1);
    for (int i = 0; i < a.list.n; i++)
        item[i] = moved(m, k, to, from, a.list.item[i]);
    a.list.item = item;
    return a;
}

static void move(Moves *m, int k, const Node *n)
{
    Graph *g = m->graph[k];
    Node *twin = node_like(g, n);
    for (int i = 0; i < n->n_args; i++)
        node_push(twin, moved(m, k, twin, n, n->arg[i]));
    for (int i = 0; i < n->n_out; i++)
        m->inner[k][n->out[i]->index] = node_add_out(twin, name_of(m->p, g), n->out[i]->type);
    graph_append(g, twin);
}

static void move_part(Moves *m, int k, const LoopPart *part, const Node *end)
{
    Graph *outer = m->p->r->g;
    for (Node *n = part->before ? part->before->next : outer->first; n != end; n = n->next)
        move(m, k, n);
    for (int i = 0; i < part->n_out; i++)
        graph_add_output(m->graph[k], twin_of(m, k, part->out[i]));
}

/* Removes the moved nodes from the last to the first, so that users go before what they use. */
static void drop_moved(Graph *g, const Node *before, Node *end)
{
    while (end->prev != before)
        graph_remove(g, end->prev);
}

static void place_loop(Moves *m, Value *const *start)
{
    Play *p = m->p;
    Graph *g = p->r->g;
    Node *n = loop_new(g, p->n->loc, m->graph[0], m->graph[1], start, m->n_carried, m->outer, m->n);
    p->n_results = m->n_carried;
    for (int i = 0; i < m->n_carried; i++)
        p->result[i] = of_value(p, node_add_out(n, name_of(p, g), start[i]->type));
    graph_insert(g, p->n, n);
}

Value *play_carried(Play *p, const Value *like)
{
    return graph_value(p->r->g, name_of(p, p->r->g), like->type);
}

void play_loop(Play *p, const LoopPart *test, const LoopPart *body, Value *const *start)
{
    Graph *g = p->r->g;
    assert(test->n_out == 1 && body->n_out <= MOST_RESULTS);
    if (type_numel(test->out[0]->type) != 1 || test->out[0]->type.dtype != ETC_BOOL)
        play_misfit(p, "has a loop whose condition is not one bool");
    for (int i = 0; i < body->n_out; i++)
        if (!type_equal(start[i]->type, body->out[i]->type))
            play_misfit(p, "carries a tensor whose type or sizes change");
    if (p->failed)
        return;
    Moves m = {.p = p, .n_carried = body->n_out};
    for (int k = 0; k < 2; k++) {
        Value *const *in = k ? body->in : test->in;
        m.graph[k] = graph_new(g->program, NULL);
        m.inner[k] = NEW(p->r->tmp, Value *, g->n_values);
        for (int i = 0; i < m.n_carried; i++)
            m.inner[k][in[i]->index] = add_input(p, m.graph[k], in[i]->type);
    }
    move_part(&m, 0, test, body->before ? body->before->next : g->first);
    move_part(&m, 1, body, p->n);
    drop_moved(g, test->before, p->n);
    place_loop(&m, start);
}
