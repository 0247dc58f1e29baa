/* pt2_loop.c -- imports scan and map as loops.
 *
 * They run a graph for each part of some tensors along the first axis.  The loop carries the
 * number of the current part, the values that a scan carries, and a tensor for each result of
 * the iterations, into which an iteration writes its rows. */
#include "compiler/import/internal.h"
#include <string.h>

/* The graph's operands are of three kinds: carried by a scan, divided into parts, and others. */
enum { CARRIED, PARTS, WHOLE, N_KINDS };

typedef struct Loop {
    Scope *s;
    Loc loc;
    const Json *graph; /* the as_graph that each iteration runs */
    Value **in[N_KINDS];
    int n[N_KINDS], n_rows; /* n_rows: how many results collect rows of all iterations */
    Dim iterations;
    Graph *test, *body;
    Value **given;  /* inputs of the body, in their order: see n_given() */
    Value **left;   /* the results of an iteration; the first 1 + carried + rows are new values */
    Value **start;  /* the operands of the loop */
} Loop;

static int n_carried(const Loop *l)
{
    return 1 + l->n[CARRIED] + l->n_rows;
}

static int n_given(const Loop *l)
{
    return n_carried(l) + l->n[PARTS] + l->n[WHOLE];
}

static Diag *diag(const Loop *l)
{
    return l->s->in->diag;
}

/* -- what the file says -------------------------------------------------------------------- */

static bool read_list(Loop *l, int kind, const Json *arg)
{
    const Json *list = NULL;
    const char *tag = json_tag(arg, &list);
    bool ok = true;
    l->in[kind] = NEW(l->s->in->tmp, Value *, json_count(list) + 1);
    if (!tag || (strcmp(tag, "as_tensors") != 0 && json_count(list)))
        return diag_unsupported(diag(l), l->loc, "an operand that is not a tensor");
    for (JsonIter it = json_iter(list); json_next(&it);) {
        Value *v = pt2_use(l->s, l->loc, it.value);
        l->in[kind][l->n[kind]++] = v;
        ok = v && ok;
    }
    return ok;
}

static bool read_operands(Loop *l, const Json *inputs, int first)
{
    int kind = first - 1;
    bool ok = true;
    for (JsonIter it = json_iter(inputs); json_next(&it); kind++) {
        const Json *arg = json_get(it.value, "arg"), *content = NULL;
        const char *tag = json_tag(arg, &content);
        if (kind == first - 1)
            l->graph = tag && !strcmp(tag, "as_graph") ? content : NULL;
        else if (kind < N_KINDS)
            ok = read_list(l, kind, arg) && ok;
    }
    return ok && ((l->graph && kind == N_KINDS) ||
                  diag_error(diag(l), l->loc, "is not a graph with %d lists of operands",
                             N_KINDS - first));
}

static bool find_count(Loop *l)
{
    if (!l->n[PARTS])
        return diag_unsupported(diag(l), l->loc, "takes no tensor apart");
    for (int i = 0; i < l->n[PARTS]; i++) {
        Type t = l->in[PARTS][i]->type, first = l->in[PARTS][0]->type;
        if (t.rank < 1 || !dim_equal(t.dim[0], first.dim[0]))
            return diag_error(diag(l), l->loc, "operand %d has not as many parts as the first", i);
    }
    l->iterations = l->in[PARTS][0]->type.dim[0];
    return true;
}

/* -- the graphs ------------------------------------------------------------------------------ */

static Value *result_of(Node *n)
{
    return n ? n->out[0] : NULL;
}

/* Names the newest value of a graph in the way of `build`. */
static Value *named(const Loop *l, const Graph *g, Value *v)
{
    assert(v->index == g->n_values - 1);
    v->name = arena_numbered(g->program->arena, l->loc.node, ".", graph_number(g));
    return v;
}

static Value *value_of(const Loop *l, Graph *g, Type t)
{
    return named(l, g, graph_value(g, NULL, t));
}

/* Returns the current part of x. */
static Value *part_of(const Loop *l, Value *index, Value *x)
{
    Value *rows = result_of(build(l->body, NULL, l->loc, OP_INDEX_SELECT, diag(l), "viv", x,
                                  (int64_t)0, index));
    return rows ? result_of(build(l->body, NULL, l->loc, OP_SQUEEZE_DIM, diag(l), "vi", rows,
                                  (int64_t)0))
                : NULL;
}

/* Returns the tensor of all iterations with y as its current part. */
static Value *with_part(const Loop *l, Value *index, Value *all, Value *y)
{
    Value *row = result_of(build(l->body, NULL, l->loc, OP_UNSQUEEZE, diag(l), "vi", y, (int64_t)0));
    return row ? result_of(build(l->body, NULL, l->loc, OP_INDEX_COPY, diag(l), "vivv", all,
                                 (int64_t)0, index, row))
               : NULL;
}

static Type type_of_all(const Loop *l, Type part)
{
    assert(part.rank >= 0 && part.rank < MAX_RANK);
    Dim dim[MAX_RANK + 1] = {l->iterations};
    for (int i = 0; i < part.rank; i++)
        dim[i + 1] = part.dim[i];
    return type_tensor(l->s->in->program, part.dtype, part.rank + 1, dim);
}

/* Puts the nodes of the graph into the body: its inputs at an iteration are taken from the body's,
 * its results go to y. */
static bool inline_graph(Loop *l, Value **y, int n_y)
{
    int first_part = 1 + l->n[CARRIED] + l->n_rows, k = 0;
    Scope inner = {.in = l->s->in,
                   .graph = l->body,
                   .prefix = "",
                   .depth = l->s->depth + 1,
                   .in_autocast = l->s->in_autocast};
    Value **in = NEW(l->s->in->tmp, Value *, n_given(l) + 1);
    for (int i = 0; i < l->n[CARRIED]; i++)
        in[k++] = l->given[1 + i];
    for (int i = 0; i < l->n[PARTS]; i++)
        if (!(in[k++] = part_of(l, l->given[0], l->given[first_part + i])))
            return false;
    for (int i = 0; i < l->n[WHOLE]; i++)
        in[k++] = l->given[first_part + l->n[PARTS] + i];
    return pt2_inline(&inner, l->loc, l->graph, in, k, y, n_y);
}

/* Adds the inputs of the body, except the tensors of all iterations, whose types are known
 * later. */
static void give(Loop *l)
{
    Dim one = DIM(1);
    l->given[0] = value_of(l, l->body, type_tensor(l->s->in->program, ETC_I64, 1, &one));
    int at = 1;
    for (int kind = 0; kind < N_KINDS; kind++) {
        at += kind == PARTS ? l->n_rows : 0;
        for (int i = 0; i < l->n[kind]; i++)
            l->given[at++] = value_of(l, l->body, l->in[kind][i]->type);
    }
}

static bool build_body(Loop *l)
{
    int n_y = l->n[CARRIED] + l->n_rows;
    Value **y = NEW(l->s->in->tmp, Value *, n_y + 1);
    give(l);
    if (!inline_graph(l, y, n_y))
        return false;
    l->left[0] = result_of(build(l->body, NULL, l->loc, OP_ADD_TENSOR, diag(l), "vi", l->given[0],
                                 (int64_t)1));
    for (int i = 0; i < n_y; i++) {
        if (y[i]->type.rank == MAX_RANK || y[i]->type.rank == SCALAR)
            return diag_unsupported(diag(l), l->loc, "result %d of its graph has rank %d", i,
                                    y[i]->type.rank);
        l->left[1 + i] = y[i];
        if (i < l->n[CARRIED])
            continue;
        l->given[1 + i] = value_of(l, l->body, type_of_all(l, y[i]->type));
        l->left[1 + i] = with_part(l, l->given[0], l->given[1 + i], y[i]);
        if (!l->left[1 + i])
            return false;
    }
    for (int i = 0; i < n_given(l); i++)
        graph_add_input(l->body, l->given[i]);
    for (int i = 0; i < n_carried(l); i++)
        graph_add_output(l->body, l->left[i]);
    return l->left[0] != NULL;
}

static bool build_test(Loop *l)
{
    for (int i = 0; i < n_given(l); i++)
        graph_add_input(l->test, value_of(l, l->test, l->given[i]->type));
    Value *more = result_of(build(l->test, NULL, l->loc, OP_LT_SCALAR, diag(l), "vd",
                                  l->test->in[0], l->iterations));
    if (more)
        graph_add_output(l->test, more);
    return more != NULL;
}

/* -- the node -------------------------------------------------------------------------------- */

/* Builds the first operands of the loop: zeros for the number of the part and for the tensors that
 * the iterations fill. */
static bool build_start(Loop *l)
{
    int at = 0;
    for (int i = 0; i < n_carried(l); i++) {
        Type t = l->given[i]->type;
        bool is_given = i && i <= l->n[CARRIED];
        l->start[at++] = is_given ? l->in[CARRIED][i - 1]
                                  : result_of(build(l->s->graph, NULL, l->loc, OP_FULL, diag(l),
                                                    "Dit", t.rank, t.dim, (int64_t)0, t.dtype));
        if (!l->start[at - 1])
            return false;
    }
    for (int kind = PARTS; kind < N_KINDS; kind++)
        for (int i = 0; i < l->n[kind]; i++)
            l->start[at++] = l->in[kind][i];
    return true;
}

static bool build_loop(Loop *l, const Json *outputs)
{
    Node *n = loop_new(l->s->graph, l->loc, l->test, l->body, l->start, n_carried(l),
                       l->start + n_carried(l), n_given(l) - n_carried(l));
    int k = 0;
    named(l, l->s->graph, node_add_out(n, NULL, l->given[0]->type));
    for (JsonIter it = json_iter(outputs); json_next(&it);) {
        const Json *content = NULL;
        const char *tag = json_tag(it.value, &content);
        const char *name = json_string(json_get(content, "name"));
        if (!tag || strcmp(tag, "as_tensor") != 0 || !name)
            return diag_unsupported(diag(l), l->loc, "a result that is not a tensor");
        Value *v = node_add_out(n, pt2_value_name(l->s, name), l->given[++k]->type);
        if (!pt2_define(l->s, l->loc, name, v))
            return false;
    }
    graph_append(l->s->graph, n);
    return true;
}

bool pt2_scan(Scope *s, Loc loc, const Json *node, bool is_map)
{
    Arena *tmp = s->in->tmp;
    const Json *outputs = json_get(node, "outputs");
    Loop l = {.s = s, .loc = loc};
    if (!read_operands(&l, json_get(node, "inputs"), is_map ? PARTS : CARRIED) || !find_count(&l))
        return false;
    l.n_rows = json_count(outputs) - l.n[CARRIED];
    if (l.n_rows < 0)
        return diag_error(s->in->diag, loc, "%d results, but it carries %d tensors",
                          json_count(outputs), l.n[CARRIED]);
    l.given = NEW(tmp, Value *, n_given(&l) + 1);
    l.left = NEW(tmp, Value *, n_carried(&l) + 1);
    l.start = NEW(tmp, Value *, n_given(&l) + 1);
    l.test = graph_new(s->in->program, NULL);
    l.body = graph_new(s->in->program, NULL);
    return build_body(&l) && build_test(&l) && build_start(&l) && build_loop(&l, outputs);
}
