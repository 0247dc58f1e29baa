/* region.c -- graphs that are nested in nodes: their operands and results, and walks over them. */
#include "ir/ir.h"

bool op_has_regions(OpId op)
{
    return op == OP_COND || op == OP_DELEGATE || op == OP_GROUP || op == OP_WHILE_LOOP;
}

bool op_is_instruction(OpId op)
{
    return op_has_regions(op) || op == OP_CONSTANT || op == OP_CHECK_RANGE;
}

Graph *group_body(const Node *n)
{
    return n->op == OP_GROUP ? arg_get(n, "body").graph : NULL;
}

RegionKind region_kind(const Node *n)
{
    return n->op == OP_COND ? REGION_ONE_OF : n->op == OP_WHILE_LOOP ? REGION_LOOP : REGION_ONCE;
}

bool region_has_places(const Node *n)
{
    return region_kind(n) != REGION_ONCE;
}

Node *loop_new(Graph *g, Loc loc, Graph *test, Graph *body, Value *const *carried, int n_carried,
               Value *const *given, int n_given)
{
    Node *n = node_new(g, OP_WHILE_LOOP, loc);
    node_push(n, (Arg){.kind = ARG_GRAPH, .graph = test});
    node_push(n, (Arg){.kind = ARG_GRAPH, .graph = body});
    node_push_list(n, carried, n_carried);
    node_push_list(n, given, n_given);
    return n;
}

Graph *region_next(const Node *n, const Graph *g)
{
    bool is_after = !g;
    for (int i = 0; op_has_regions(n->op) && i < n->n_args; i++) {
        if (n->arg[i].kind == ARG_GRAPH && is_after)
            return n->arg[i].graph;
        is_after = is_after || (n->arg[i].kind == ARG_GRAPH && n->arg[i].graph == g);
    }
    return NULL;
}

Graph *region_planned(const Node *n, const Graph *g)
{
    return region_has_places(n) ? region_next(n, g) : NULL;
}

/* Returns operand i.  The operands are the schema's lists of tensors, one list after the other. */
static const Arg *operand_arg(const Node *n, int *i)
{
    const Schema *s = node_schema(n);
    for (int k = 0; k < n->n_args && k < s->n_args; k++) {
        if (!s->arg[k].is_list || s->arg[k].type != SCH_TENSOR || n->arg[k].kind != ARG_LIST)
            continue;
        if (*i < n->arg[k].list.n)
            return &n->arg[k].list.item[*i];
        *i -= n->arg[k].list.n;
    }
    return NULL;
}

int region_n_operands(const Node *n)
{
    int past = INT32_MAX;
    return operand_arg(n, &past) ? 0 : INT32_MAX - past;
}

int region_slot(const Node *n, int i)
{
    const Arg *a = operand_arg(n, &i);
    return a && a->kind == ARG_VALUE ? a->slot : -1;
}

Value *region_operand(const Node *n, int i)
{
    int slot = region_slot(n, i);
    return slot >= 0 ? n->in[slot] : NULL;
}

bool region_is_carried(const Node *n, int i)
{
    return region_kind(n) == REGION_LOOP && i < n->n_out;
}

Value *region_input(const Node *n, int i)
{
    return region_is_carried(n, i) ? n->out[i] : region_operand(n, i);
}

bool region_decides(const Node *n, const Graph *g)
{
    return region_kind(n) == REGION_LOOP && g == arg_get(n, "cond_graph").graph;
}

const Node *region_loop(const Graph *g)
{
    const Node *n = g->owner;
    return n && region_kind(n) == REGION_LOOP && !region_decides(n, g) ? n : NULL;
}

int region_n_results(const Node *n, const Graph *g)
{
    assert(g->owner == n);
    return region_decides(n, g) ? 1 : n->n_out;
}

const Graph *graph_method(const Graph *g)
{
    while (g->owner)
        g = g->owner->graph;
    return g;
}

/* -- walks ------------------------------------------------------------------------------------- */

Node *walk_next(const Graph *top, const Node *n)
{
    const Graph *g = NULL;
    if (!n)
        return top->first;
    for (;;) {
        while ((g = region_next(n, g)))
            if (g->first)
                return g->first;
        if (n->next)
            return n->next;
        if (n->graph == top)
            return NULL;
        g = n->graph;
        n = g->owner;
    }
}

/* Returns the first graph nested in g that has no nested graphs itself, or g. */
static Graph *innermost(Graph *g)
{
    for (const Node *n = g->first; n;) {
        Graph *inner = region_next(n, NULL);
        g = inner ? inner : g;
        n = inner ? inner->first : n->next;
    }
    return g;
}

/* Returns the graph that comes after the nested graph g in the order of program_next. */
static Graph *after_nested(const Graph *g)
{
    assert(g->owner);
    Graph *beside = region_next(g->owner, g);
    for (const Node *n = g->owner->next; n && !beside; n = n->next)
        beside = region_next(n, NULL);
    return beside ? innermost(beside) : g->owner->graph;
}

Graph *program_next(const Program *p, const Graph *g)
{
    int i = 0;
    if (g && g->owner)
        return after_nested(g);
    while (g && p->method[i++] != g)
        continue;
    return i < p->n_methods ? innermost(p->method[i]) : NULL;
}

static bool is_delegated(const Graph *g)
{
    while (g->owner && g->owner->op != OP_DELEGATE)
        g = g->owner->graph;
    return g->owner != NULL;
}

Graph *program_next_own(const Program *p, const Graph *g)
{
    Graph *next = program_next(p, g);
    while (next && is_delegated(next))
        next = program_next(p, next);
    return next;
}
