/* onnx_row_loop.c -- makes loops of as many iterations as an axis has elements, each of which adds a row
 * to some tensors: those of Loop and Scan, and of recurrent layers. */
#include "compiler/import/onnx.h"
#include <string.h>

/* Makes a value of graph g for each of `given`, with its type.  They are no inputs of g yet. */
static Value **inputs_like(Onnx *o, Graph *g, Value *const *given, int count)
{
    Value **in = NEW(o->tmp, Value *, count + 1);
    for (int i = 0; i < count; i++)
        in[i] = graph_value(g, onnx_unique(o, "in"), given[i]->type);
    return in;
}

/* Adds the row of an iteration, at place `at`, to the rows of all iterations.  *all is the input of
 * the body that has these, *left the output. */
static bool collect(OnnxNode *n, const OnnxRowLoop *t, Value *at, Value *row, Value **all,
                    Value **left)
{
    Dim dim[MAX_RANK + 1] = {t->iterations};
    for (int i = 0; i < row->type.rank; i++)
        dim[i + 1] = row->type.dim[i];
    int rank = row->type.rank + 1;
    row = on_insert(n, row, 0);
    if (!row)
        return false;
    *all = graph_value(n->in->graph, onnx_unique(n->in, "rows"),
                       type_tensor(n->in->program, row->type.dtype, rank, dim));
    *left = ON_BUILD(n, OP_INDEX_COPY, "vivv", *all, (int64_t)0, at, row);
    return *left != NULL;
}

/* Reads one iteration as the body.  Its inputs are the number of the iteration, the carried values,
 * the rows, the values that it reads, and the captured values of outer graphs. */
static bool build_body(OnnxNode *n, OnnxRowLoop *t, OnnxNested *b)
{
    Onnx *o = n->in;
    Dim one = DIM(1);
    int n_given = t->n_carried + t->n_rows + t->n_whole, k = 0;
    Value *at = graph_value(b->graph, onnx_unique(o, "at"), type_tensor(o->program, ETC_I64, 1, &one));
    Value **carried = inputs_like(o, b->graph, t->carried, t->n_carried);
    Value **all = NEW(o->tmp, Value *, t->n_rows + 1), **left = NEW(o->tmp, Value *, t->n_rows + 1);
    t->whole = inputs_like(o, b->graph, t->whole, t->n_whole);
    t->carried = NEW(o->tmp, Value *, t->n_carried + 1);
    memcpy(t->carried, carried, (size_t)t->n_carried * sizeof *carried);
    if (!t->iteration(n, t, &b->scope, at))
        return false;
    for (int i = 0; i < t->n_carried; i++)
        if (!type_equal(t->carried[i]->type, carried[i]->type))
            return onnx_unsupported(n, "carries values whose type or shape changes");
    for (int i = 0; i < t->n_rows; i++)
        if (!collect(n, t, at, t->row[i], &all[i], &left[i]))
            return false;
    Value *next = on_scalar(n, OP_ADD_SCALAR, at, 1);
    if (!next)
        return false;
    Value **in = NEW(o->program->arena, Value *, n_given + b->scope.n_captured + 1);
    in[k++] = at;
    for (int i = 0; i < t->n_carried; i++)
        in[k++] = carried[i];
    for (int i = 0; i < t->n_rows; i++)
        in[k++] = all[i];
    for (int i = 0; i < t->n_whole; i++)
        in[k++] = t->whole[i];
    for (int i = 0; i < b->scope.n_captured; i++)
        in[k++] = b->scope.within[i];
    b->graph->in = in;
    b->graph->n_in = k;
    graph_add_output(b->graph, next);
    for (int i = 0; i < t->n_carried; i++)
        graph_add_output(b->graph, t->carried[i]);
    for (int i = 0; i < t->n_rows; i++)
        graph_add_output(b->graph, left[i]);
    return true;
}

static Graph *test_of_count(OnnxNode *n, const Graph *body, Dim iterations)
{
    OnnxNested t;
    onnx_enter(n, &t);
    for (int i = 0; i < body->n_in; i++)
        graph_add_input(t.graph, graph_value(t.graph, onnx_unique(n->in, "in"), body->in[i]->type));
    Value *more = ON_BUILD(n, OP_LT_SCALAR, "vd", t.graph->in[0], iterations);
    if (more)
        graph_add_output(t.graph, more);
    onnx_leave(n, &t);
    return more ? t.graph : NULL;
}

Value *on_from_end(OnnxNode *n, const OnnxRowLoop *t, Value *at)
{
    Arg last = {.kind = ARG_INT, .dim = dim_sub(n->in->program, t->iterations, DIM(1))};
    at = on_unary(n, OP_NEG, at);
    return at ? ON_BUILD(n, OP_ADD_SCALAR, "va", at, last) : NULL;
}

bool on_row_loop(OnnxNode *n, OnnxRowLoop *t)
{
    Onnx *o = n->in;
    OnnxNested b;
    int n_carried = 1 + t->n_carried + t->n_rows;
    Value **start = NEW(o->tmp, Value *, n_carried), **whole = t->whole, **given = NULL;
    memcpy(start + 1, t->carried, (size_t)t->n_carried * sizeof *start);
    onnx_enter(n, &b);
    bool ok = build_body(n, t, &b);
    onnx_leave(n, &b);
    Graph *test = ok ? test_of_count(n, b.graph, t->iterations) : NULL;
    if (!test)
        return false;
    for (int i = 0; i < n_carried; i++) {
        Type is = b.graph->in[i]->type;
        if (!i || i > t->n_carried)
            start[i] = on_full(n, is.rank, is.dim, 0, is.dtype);
        if (!start[i])
            return false;
    }
    int n_given = t->n_whole + b.scope.n_captured;
    given = NEW(o->tmp, Value *, n_given + 1);
    for (int i = 0; i < n_given; i++)
        given[i] = i < t->n_whole ? whole[i] : b.scope.captured[i - t->n_whole];
    Node *made = loop_new(o->graph, n->loc, test, b.graph, start, n_carried, given, n_given);
    for (int i = 0; i < n_carried; i++) {
        Value *v = node_add_out(made, onnx_unique(o, n->loc.node), b.graph->in[i]->type);
        if (i && i <= t->n_carried)
            t->carried[i - 1] = v;
        else if (i)
            t->row[i - 1 - t->n_carried] = v;
    }
    graph_append(o->graph, made);
    return true;
}
