/* onnx_flow.c -- reads functions, branches and loops of ONNX.
 *
 * The nodes of a function, of a branch that is known at import, and of a loop with few iterations
 * replace the node.  Any other branch or loop becomes a nested graph of the IR. */
#include "compiler/import/onnx.h"
#include <assert.h>
#include <string.h>

enum { MAX_CALLS = 32, MAX_ITERATIONS = 256, MAX_OUTPUTS = 1024 };

/* -- names ------------------------------------------------------------------------------------- */

/* Returns the elements of a value as a list; NULL: they are not known. */
static const OnnxList *list_of(Onnx *o, OnnxValue *v)
{
    if (!v->list && v->constant)
        v->list = onnx_const_list(o, v->constant);
    return v->list;
}

/* Returns 0 or 1 for a condition that is known, else -1. */
static int truth(Onnx *o, OnnxValue *v)
{
    const OnnxList *l = list_of(o, v);
    return l && l->dim && l->n == 1 && !l->dim[0].expr ? l->dim[0].value != 0 : -1;
}

static bool bind_name(OnnxNode *n, OnnxScope *s, ProtobufCBinaryData text, OnnxValue *v)
{
    const char *name = onnx_text(n->in, text);
    if (!name)
        return false;
    TableItem *at = table_at_text(&s->values, name);
    if (at->ptr)
        return onnx_wrong(n, "has a graph with two inputs or constants of the name '%s'", name);
    at->ptr = v;
    return true;
}

static OnnxValue *found(OnnxNode *n, OnnxScope *s, ProtobufCBinaryData text)
{
    const char *name = onnx_text(n->in, text);
    OnnxValue *v = name ? onnx_find(s, name) : NULL;
    if (v && !v->is_absent)
        return v;
    if (name)
        onnx_wrong(n, "has a graph whose output '%s' no node defines", name);
    return NULL;
}

/* -- graphs ------------------------------------------------------------------------------------ */

/* Reads the nodes of a graph into the current graph; `out` gets its outputs. */
static bool read_nodes(OnnxNode *n, const Onnx__Graph *g, OnnxScope *s, OnnxValue **out)
{
    Onnx *o = n->in;
    if (g->n_sparse_initializer)
        return onnx_unsupported(n, "has a graph with sparse constants");
    if (!onnx_spend(o, g->n_initializer + g->n_output))
        return false;
    for (size_t i = 0; i < g->n_initializer; i++) {
        OnnxValue *v = NEW(o->tmp, OnnxValue, 1);
        *v = (OnnxValue){.constant = onnx_const(o, n->loc, g->initializer[i])};
        if (!v->constant || !bind_name(n, s, g->initializer[i]->name, v))
            return false;
    }
    if (!onnx_nodes(o, s, g->node, g->n_node))
        return false;
    for (size_t i = 0; i < g->n_output; i++)
        if (!(out[i] = found(n, s, g->output[i]->name)))
            return false;
    return true;
}

static const Onnx__Graph *graph_of(OnnxNode *n, const char *name)
{
    const Onnx__Attribute *a = on_attribute(n, name);
    if (a && a->g && a->g->n_output <= MAX_OUTPUTS)
        return a->g;
    onnx_wrong(n, "has no graph '%s', or one of more than 1,024 outputs", name);
    return NULL;
}

/* -- nested graphs ----------------------------------------------------------------------------- */

static bool nested(OnnxNode *n, const char *name, OnnxNested *b)
{
    const Onnx__Graph *g = graph_of(n, name);
    if (!g || g->n_output != n->node->n_output)
        return g && onnx_wrong(n, "has a branch with another number of outputs");
    OnnxValue **out = NEW(n->in->tmp, OnnxValue *, g->n_output + 1);
    onnx_enter(n, b);
    bool ok = read_nodes(n, g, &b->scope, out);
    for (size_t i = 0; ok && i < g->n_output; i++) {
        Value *v = on_tensor(n, "branch", out[i]);
        ok = v != NULL;
        if (ok)
            graph_add_output(b->graph, v);
    }
    onnx_leave(n, b);
    return ok;
}

static int place_of(const OnnxNested *b, const Value *v)
{
    for (int i = 0; i < b->scope.n_captured; i++)
        if (b->scope.captured[i] == v)
            return i;
    return -1;
}

/* Makes the inputs of both graphs those that any of them has, in one order, which is returned. */
static Value **joined(Onnx *o, OnnxNested b[2], int *count)
{
    Value **all = NULL;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < b[k].scope.n_captured; i++)
            if (!k || place_of(&b[0], b[1].scope.captured[i]) < 0)
                PUSH(o->tmp, all, *count, b[k].scope.captured[i]);
    for (int k = 0; k < 2; k++) {
        Graph *g = b[k].graph;
        Value **in = NEW(o->program->arena, Value *, *count + 1);
        for (int i = 0; i < *count; i++) {
            int at = place_of(&b[k], all[i]);
            in[i] = at >= 0 ? g->in[at] : graph_value(g, onnx_unique(o, "in"), all[i]->type);
        }
        g->in = in;
        g->n_in = *count;
    }
    return all;
}

/* Gives a node of nested graphs results with the types of outputs first .. first + count - 1 of
 * `of`.  They are outputs 0 .. count - 1 of n. */
static bool give_results(OnnxNode *n, Node *made, const Graph *of, int first, int count)
{
    assert(first >= 0 && first + count <= of->n_out);
    for (int i = 0; i < count; i++) {
        OnnxValue *v = NEW(n->in->tmp, OnnxValue, 1);
        v->value = node_add_out(made, onnx_unique(n->in, n->loc.node), of->out[first + i]->type);
        if (!on_give(n, i, v))
            return false;
    }
    return true;
}

/* -- branches ---------------------------------------------------------------------------------- */

/* Casts v, which decides whether something goes on, to t and makes it a scalar. */
static Value *decider(OnnxNode *n, Value *v, EtcDtype t)
{
    v = on_cast(n, v, t);
    return v && v->type.rank ? on_view(n, v, 0, NULL) : v;
}

static bool agree(OnnxNode *n, const OnnxNested b[2])
{
    for (int i = 0; i < b[0].graph->n_out; i++)
        if (!type_equal(b[0].graph->out[i]->type, b[1].graph->out[i]->type))
            return onnx_unsupported(
                n,
                "has branches whose output %d differs in type or shape, and a condition that is "
                "known only at run time: give the input that decides it with --bind",
                i);
    return true;
}

static bool branch_on(OnnxNode *n, Value *cond)
{
    OnnxNested b[2];
    int count = 0;
    cond = decider(n, cond, ETC_BOOL);
    if (!cond || !nested(n, "then_branch", &b[0]) || !nested(n, "else_branch", &b[1]) || !agree(n, b))
        return false;
    Value **in = joined(n->in, b, &count);
    Node *made = node_new(n->in->graph, OP_COND, n->loc);
    node_push(made, node_use(made, cond));
    for (int k = 0; k < 2; k++)
        node_push(made, (Arg){.kind = ARG_GRAPH, .graph = b[k].graph});
    node_push_list(made, in, count);
    bool ok = give_results(n, made, b[0].graph, 0, b[0].graph->n_out);
    graph_append(n->in->graph, made);
    return ok;
}

bool onnx_choose(OnnxNode *n)
{
    OnnxValue *c = on_input(n, 0);
    if (!c)
        return false;
    int known = truth(n->in, c);
    if (known < 0)
        return branch_on(n, on_value(n, 0));
    const Onnx__Graph *g = graph_of(n, known ? "then_branch" : "else_branch");
    if (!g || g->n_output < n->node->n_output)
        return g && onnx_wrong(n, "has no branch with as many outputs");
    OnnxScope s = onnx_scope_within(n, NULL);
    OnnxValue **out = NEW(n->in->tmp, OnnxValue *, g->n_output + 1);
    if (!read_nodes(n, g, &s, out))
        return false;
    for (size_t i = 0; i < n->node->n_output; i++)
        if (!on_give(n, (int)i, out[i]))
            return false;
    return true;
}

/* -- loops that are unrolled ------------------------------------------------------------------- */

typedef struct Loop {
    const Onnx__Graph *body;
    size_t carried, parts, rows; /* how many values, scanned inputs, scanned outputs */
    OnnxValue **now;             /* the carried values after the last iteration */
    Value **row;                 /* the parts of scanned outputs, iteration by iteration */
    int n_rows;
} Loop;

static OnnxValue *known_number(OnnxNode *n, EtcDtype t, int64_t v)
{
    OnnxList *l = on_new_list(n, t, 0, 1);
    OnnxValue *made = NEW(n->in->tmp, OnnxValue, 1);
    l->dim[0] = DIM(v);
    *made = (OnnxValue){.list = l};
    return made;
}

/* Reads one iteration in a scope of its own; `given` are the first inputs of its body.  `first` of
 * its outputs are neither carried nor rows, and are left in `out`. */
static bool iteration(OnnxNode *n, Loop *l, OnnxScope *s, OnnxValue *const *given, size_t n_given,
                 size_t first, OnnxValue **out)
{
    for (size_t i = 0; i < n_given; i++)
        if (!bind_name(n, s, l->body->input[i]->name, given[i]))
            return false;
    if (!read_nodes(n, l->body, s, out))
        return false;
    for (size_t i = 0; i < l->carried; i++)
        l->now[i] = out[first + i];
    for (size_t i = 0; i < l->rows; i++) {
        Value *v = on_tensor(n, "row", out[first + l->carried + i]);
        if (!v)
            return false;
        PUSH(n->in->tmp, l->row, l->n_rows, v);
    }
    return true;
}

/* Joins row k of all iterations along an axis of their own, which becomes axis `axis` of the
 * result; is_back: the last iteration comes first. */
static OnnxValue *stacked(OnnxNode *n, const Loop *l, size_t k, int64_t axis, bool is_back)
{
    int iterations = l->rows ? l->n_rows / (int)l->rows : 0, at;
    Value **part = NEW(n->in->tmp, Value *, iterations + 1);
    OnnxValue *made = NEW(n->in->tmp, OnnxValue, 1);
    for (int i = 0; i < iterations; i++) {
        Value *v = l->row[(size_t)i * l->rows + k];
        if (!on_axis(n, axis, v->type.rank + 1, &at))
            return NULL;
        part[is_back ? iterations - 1 - i : i] = on_insert(n, v, at);
        if (n->failed)
            return NULL;
    }
    if (!iterations) {
        onnx_unsupported(n, "gives rows of a loop without iterations, whose type is unknown");
        return NULL;
    }
    *made = (OnnxValue){.value = on_join(n, iterations, part, at)};
    return made->value ? made : NULL;
}

static bool take_carried(OnnxNode *n, Loop *l, size_t first)
{
    l->now = NEW(n->in->tmp, OnnxValue *, l->carried + 1);
    for (size_t i = 0; i < l->carried; i++)
        if (!(l->now[i] = on_input(n, (int)(first + i))))
            return onnx_wrong(n, "has no initial value for a value that it carries");
    return true;
}

static bool give_carried(OnnxNode *n, const Loop *l)
{
    for (size_t i = 0; i < l->carried; i++)
        if (!on_give(n, (int)i, l->now[i]))
            return false;
    return true;
}

/* -- loops that run ---------------------------------------------------------------------------- */

/* Makes the graph that says whether another iteration follows.  Its inputs are the number of the
 * iteration, whether to go on, and the carried values.  is_told: its last input is the number of
 * iterations. */
static Graph *test_of(OnnxNode *n, const Graph *body, int64_t iterations, bool is_told)
{
    Onnx *o = n->in;
    OnnxNested t;
    onnx_enter(n, &t);
    for (int i = 0; i < body->n_in; i++)
        graph_add_input(t.graph, graph_value(t.graph, onnx_unique(o, "in"), body->in[i]->type));
    Value *at = t.graph->in[0], *last = t.graph->in[body->n_in - 1];
    Value *more = is_told ? on_binary(n, OP_LT_TENSOR, at, last)
                          : ON_BUILD(n, OP_LT_SCALAR, "vd", at, DIM(iterations));
    more = on_binary(n, OP_LOGICAL_AND, more, t.graph->in[1]);
    if (more)
        graph_add_output(t.graph, more);
    onnx_leave(n, &t);
    return more ? t.graph : NULL;
}

static bool read_body(OnnxNode *n, const Loop *l, OnnxNested *b, Value *const *start)
{
    Onnx *o = n->in;
    OnnxValue **out = NEW(o->tmp, OnnxValue *, l->body->n_output + 1);
    for (size_t i = 0; i < l->carried + 2; i++) {
        OnnxValue *v = NEW(o->tmp, OnnxValue, 1);
        v->value = graph_value(b->graph, onnx_unique(o, "carried"), start[i]->type);
        graph_add_input(b->graph, v->value);
        if (!bind_name(n, &b->scope, l->body->input[i]->name, v))
            return false;
    }
    if (!read_nodes(n, l->body, &b->scope, out))
        return false;
    Value *next = on_scalar(n, OP_ADD_SCALAR, b->graph->in[0], 1);
    for (size_t i = 0; next && i < l->carried + 2; i++) {
        Value *v = i ? on_tensor(n, "left", out[i - 1]) : next;
        v = i == 1 ? decider(n, v, ETC_BOOL) : v;
        if (!v)
            return false;
        if (!type_equal(v->type, start[i]->type))
            return onnx_unsupported(
                n, "carries values whose type or shape changes, and its number of iterations is "
                   "above 256 or known only at run time");
        graph_add_output(b->graph, v);
    }
    return next != NULL;
}

/* Makes the node of a loop that runs.  `limit`, unless it is NULL, is the number of iterations.
 * Captured values follow the carried ones, as inputs of both graphs and of the node. */
static bool make_loop_node(OnnxNode *n, Loop *l, int64_t iterations, Value *limit, Value *cond)
{
    Onnx *o = n->in;
    OnnxNested b;
    Value **start = NEW(o->tmp, Value *, l->carried + 3);
    if (l->rows)
        return onnx_unsupported(
            n,
            "collects a row of each iteration, and their number is above 256 or known only at run "
            "time");
    start[0] = on_number(n, 0, ETC_I64);
    start[1] = cond;
    for (size_t i = 0; i < l->carried; i++)
        start[i + 2] = on_tensor(n, "start", l->now[i]);
    if (n->failed)
        return false;
    onnx_enter(n, &b);
    bool ok = read_body(n, l, &b, start);
    onnx_leave(n, &b);
    if (limit) {
        graph_add_input(b.graph, graph_value(b.graph, onnx_unique(o, "limit"), limit->type));
        PUSH(o->tmp, b.scope.captured, b.scope.n_captured, limit);
    }
    Graph *test = ok ? test_of(n, b.graph, iterations, limit != NULL) : NULL;
    if (!test)
        return false;
    Node *made = loop_new(o->graph, n->loc, test, b.graph, start, (int)l->carried + 2, b.scope.captured,
                          b.scope.n_captured);
    for (int i = 0; i < 2; i++)
        node_add_out(made, onnx_unique(o, "iterations"), start[i]->type);
    ok = give_results(n, made, b.graph, 2, (int)l->carried);
    graph_append(o->graph, made);
    return ok;
}

/* -- Loop -------------------------------------------------------------------------------------- */

/* Unrolls the loop while its condition is known.  *left: the condition of an iteration is not
 * known; the nodes that were made are not used then. */
static bool unroll(OnnxNode *n, Loop *l, int64_t iterations, bool *left)
{
    Onnx *o = n->in;
    OnnxValue **given = NEW(o->tmp, OnnxValue *, l->carried + 2);
    OnnxValue **out = NEW(o->tmp, OnnxValue *, l->body->n_output + 1);
    int more = 1;
    for (int64_t i = 0; i < iterations && more; i++) {
        given[0] = known_number(n, ETC_I64, i);
        given[1] = known_number(n, ETC_BOOL, 1);
        memcpy(given + 2, l->now, l->carried * sizeof *given);
        OnnxScope s = onnx_scope_within(n, NULL);
        if (!iteration(n, l, &s, given, l->carried + 2, 1, out))
            return false;
        more = truth(o, out[0]);
        *left = more < 0 || (more && i == MAX_ITERATIONS - 1 && iterations > MAX_ITERATIONS);
        if (*left)
            return true;
    }
    return true;
}

/* Returns the carried values as tensors: those with which a running loop begins, or those that a
 * iteration leaves. */
static Value **carried_values(OnnxNode *n, const Loop *l)
{
    Value **v = NEW(n->in->tmp, Value *, l->carried + 1);
    for (size_t i = 0; i < l->carried; i++)
        v[i] = on_tensor(n, "carried", l->now[i]);
    return n->failed ? NULL : v;
}

/* Reads an iteration as the body of a loop that runs. */
static bool iteration_within(OnnxNode *n, OnnxRowLoop *t, OnnxScope *s, OnnxValue **given,
                             size_t n_given, size_t first, OnnxValue **out)
{
    Loop *l = t->of;
    l->n_rows = 0;
    if (!iteration(n, l, s, given, n_given, first, out))
        return false;
    Value **left = carried_values(n, l);
    for (size_t i = 0; left && i < l->carried; i++)
        t->carried[i] = left[i];
    for (size_t i = 0; i < l->rows; i++)
        t->row[i] = l->row[i];
    return left != NULL;
}

static OnnxValue *named(OnnxNode *n, Value *v)
{
    OnnxValue *made = NEW(n->in->tmp, OnnxValue, 1);
    n->failed = n->failed || !v;
    made->value = v;
    return made;
}

static bool loop_iteration(OnnxNode *n, OnnxRowLoop *t, OnnxScope *s, Value *at)
{
    const Loop *l = t->of;
    OnnxValue **given = NEW(n->in->tmp, OnnxValue *, l->carried + 2);
    OnnxValue **out = NEW(n->in->tmp, OnnxValue *, l->body->n_output + 1);
    given[0] = named(n, on_view(n, at, 0, NULL));
    given[1] = known_number(n, ETC_BOOL, 1);
    for (size_t i = 0; i < l->carried; i++)
        given[i + 2] = named(n, t->carried[i]);
    return !n->failed && iteration_within(n, t, s, given, l->carried + 2, 1, out) &&
           (truth(n->in, out[0]) == 1 ||
            onnx_unsupported(
                n, "collects a row of each iteration, and their number is known only at run time"));
}

/* Makes a loop that collects rows. */
static bool run_rows(OnnxNode *n, Loop *l, OnnxRowLoop *t)
{
    t->carried = carried_values(n, l);
    t->n_carried = (int)l->carried;
    t->n_rows = (int)l->rows;
    t->row = NEW(n->in->tmp, Value *, l->rows + 1);
    t->of = l;
    if (!t->carried || !on_row_loop(n, t))
        return false;
    for (size_t i = 0; i < l->carried; i++)
        l->now[i] = named(n, t->carried[i]);
    return true;
}

static bool run_loop(OnnxNode *n, Loop *l, Dim iterations)
{
    OnnxRowLoop t = {.iterations = iterations, .iteration = loop_iteration};
    if (!run_rows(n, l, &t))
        return false;
    for (size_t i = 0; i < l->rows && l->carried + i < n->node->n_output; i++)
        if (!on_define(n, (int)(l->carried + i), t.row[i]))
            return false;
    return give_carried(n, l);
}

static bool give_loop(OnnxNode *n, const Loop *l)
{
    for (size_t i = 0; i < l->rows && l->carried + i < n->node->n_output; i++)
        if (on_wants(n, (int)(l->carried + i)) &&
            !on_give(n, (int)(l->carried + i), stacked(n, l, i, 0, false)))
            return false;
    return give_carried(n, l);
}

bool onnx_loop(OnnxNode *n)
{
    Onnx *o = n->in;
    Loop l = {.body = graph_of(n, "body")};
    OnnxValue *count = on_input(n, 0), *cond = on_input(n, 1);
    const OnnxList *limit = count ? list_of(o, count) : NULL;
    bool left = false;
    if (!l.body || n->failed)
        return false;
    if (l.body->n_input < 2 || l.body->n_output + 1 < l.body->n_input ||
        n->node->n_input < l.body->n_input || n->node->n_output > l.body->n_output - 1)
        return onnx_wrong(n, "has another number of inputs or outputs than its body");
    bool is_known = !count || (limit && limit->dim && limit->n == 1 && !limit->dim[0].expr);
    l.carried = l.body->n_input - 2;
    l.rows = l.body->n_output - 1 - l.carried;
    int64_t iterations = count && is_known ? limit->dim[0].value : INT64_MAX;
    int more = cond ? truth(o, cond) : 1;
    if (!take_carried(n, &l, 2))
        return false;
    OnnxValue **start = NEW(o->tmp, OnnxValue *, l.carried + 1);
    memcpy(start, l.now, l.carried * sizeof *start);
    bool is_plain = more == 0 || (more > 0 && is_known);
    if (is_plain && !unroll(n, &l, more ? iterations : 0, &left))
        return false;
    if (is_plain && !left)
        return give_loop(n, &l);
    memcpy(l.now, start, l.carried * sizeof *start);
    if (l.rows && more > 0 && limit && limit->dim && limit->n == 1)
        return run_loop(n, &l, limit->dim[0]);
    Value *go = more > 0 ? on_number(n, 1, ETC_BOOL) : decider(n, on_value(n, 1), ETC_BOOL);
    Value *last = is_known ? NULL : decider(n, on_value(n, 0), ETC_I64);
    return go && (is_known || last) && make_loop_node(n, &l, iterations, last, go);
}

/* -- Scan -------------------------------------------------------------------------------------- */

static int64_t number_in(OnnxNode *n, const char *name, size_t i)
{
    const Onnx__Attribute *a = on_attribute(n, name);
    return a && i < a->n_ints ? a->ints[i] : 0;
}

/* Returns what an iteration sees of scanned input k: number `at` of its axis, or the number that
 * `index`, a tensor of one element, says if it is not NULL. */
static OnnxValue *scanned(OnnxNode *n, size_t k, Value *x, int64_t at, Value *index)
{
    int axis;
    if (!on_axis(n, number_in(n, "scan_input_axes", k), x->type.rank, &axis))
        return NULL;
    if (!index)
        return named(n, ON_BUILD(n, OP_SELECT_INT, "vii", x, (int64_t)axis, at));
    x = ON_BUILD(n, OP_INDEX_SELECT, "viv", x, (int64_t)axis, index);
    return named(n, x ? ON_BUILD(n, OP_SQUEEZE_DIM, "vi", x, (int64_t)axis) : NULL);
}

/* Sets the number of iterations, which is the size of each scanned axis. */
static bool count_parts(OnnxNode *n, const Loop *l, Dim *iterations)
{
    for (size_t i = 0; i < l->parts; i++) {
        int axis;
        Value *x = on_value(n, (int)(l->carried + i));
        if (!x || !on_axis(n, number_in(n, "scan_input_axes", i), x->type.rank, &axis))
            return false;
        if (i && !dim_equal(x->type.dim[axis], *iterations))
            return onnx_unsupported(n, "scans axes of several sizes");
        *iterations = x->type.dim[axis];
    }
    return true;
}

static bool scan_iteration(OnnxNode *n, Loop *l, int64_t i, int64_t iterations, OnnxValue **given,
                      OnnxValue **out)
{
    OnnxScope s = onnx_scope_within(n, NULL);
    memcpy(given, l->now, l->carried * sizeof *given);
    for (size_t k = 0; k < l->parts; k++) {
        int64_t at = number_in(n, "scan_input_directions", k) ? iterations - 1 - i : i;
        given[l->carried + k] = scanned(n, k, on_value(n, (int)(l->carried + k)), at, NULL);
        if (n->failed)
            return false;
    }
    return iteration(n, l, &s, given, l->carried + l->parts, 0, out);
}

static bool running_scan_iteration(OnnxNode *n, OnnxRowLoop *t, OnnxScope *s, Value *at)
{
    const Loop *l = t->of;
    OnnxValue **given = NEW(n->in->tmp, OnnxValue *, l->carried + l->parts + 1);
    OnnxValue **out = NEW(n->in->tmp, OnnxValue *, l->body->n_output + 1);
    for (size_t i = 0; i < l->carried; i++)
        given[i] = named(n, t->carried[i]);
    for (size_t k = 0; k < l->parts; k++) {
        bool is_back = number_in(n, "scan_input_directions", k);
        Value *place = is_back ? on_from_end(n, t, at) : at;
        if (!place || !(given[l->carried + k] = scanned(n, k, t->whole[k], 0, place)))
            return false;
    }
    return !n->failed && iteration_within(n, t, s, given, l->carried + l->parts, 0, out);
}

/* Moves the rows of a running scan to the axis, and into the order, that the node asks for. */
static Value *in_place(OnnxNode *n, Value *rows, size_t k)
{
    int64_t first = 0, order[MAX_RANK];
    int axis;
    if (number_in(n, "scan_output_directions", k))
        rows = ON_BUILD(n, OP_FLIP, "vI", rows, 1, &first);
    if (!rows || !on_axis(n, number_in(n, "scan_output_axes", k), rows->type.rank, &axis))
        return NULL;
    for (int i = 0; i < rows->type.rank; i++)
        order[i] = i == axis ? 0 : i < axis ? i + 1 : i;
    return axis ? on_permute(n, rows, order) : rows;
}

static bool run_scan(OnnxNode *n, Loop *l, Dim iterations)
{
    OnnxRowLoop t = {.iterations = iterations, .n_whole = (int)l->parts,
                     .iteration = running_scan_iteration};
    t.whole = NEW(n->in->tmp, Value *, l->parts + 1);
    for (size_t i = 0; i < l->parts; i++)
        t.whole[i] = on_value(n, (int)(l->carried + i));
    if (!run_rows(n, l, &t))
        return false;
    for (size_t i = 0; i < l->rows && l->carried + i < n->node->n_output; i++)
        if (!on_define(n, (int)(l->carried + i), in_place(n, t.row[i], i)))
            return false;
    return give_carried(n, l);
}

bool onnx_scan(OnnxNode *n)
{
    Onnx *o = n->in;
    Loop l = {.body = graph_of(n, "body")};
    int64_t parts = on_int(n, "num_scan_inputs", 0);
    Dim iterations;
    if (!l.body)
        return false;
    if (parts < 1 || (size_t)parts > n->node->n_input || l.body->n_input != n->node->n_input)
        return onnx_wrong(n, "has another number of inputs than its body, or scans none");
    l.parts = (size_t)parts;
    l.carried = l.body->n_input - l.parts;
    if (l.body->n_output < l.carried || n->node->n_output > l.body->n_output)
        return onnx_wrong(n, "has another number of outputs than its body");
    l.rows = l.body->n_output - l.carried;
    if (!take_carried(n, &l, 0) || !count_parts(n, &l, &iterations))
        return false;
    if (iterations.expr || iterations.value > MAX_ITERATIONS)
        return run_scan(n, &l, iterations);
    OnnxValue **given = NEW(o->tmp, OnnxValue *, l.body->n_input + 1);
    OnnxValue **out = NEW(o->tmp, OnnxValue *, l.body->n_output + 1);
    for (int64_t i = 0; i < iterations.value; i++)
        if (!scan_iteration(n, &l, i, iterations.value, given, out))
            return false;
    for (size_t i = 0; i < l.rows && l.carried + i < n->node->n_output; i++)
        if (on_wants(n, (int)(l.carried + i)) &&
            !on_give(n, (int)(l.carried + i), stacked(n, &l, i, number_in(n, "scan_output_axes", i),
                                            number_in(n, "scan_output_directions", i))))
            return false;
    return give_carried(n, &l);
}

/* -- functions --------------------------------------------------------------------------------- */

static const char *function_key(Onnx *o, ProtobufCBinaryData domain, ProtobufCBinaryData name,
                                ProtobufCBinaryData overload)
{
    const char *d = onnx_text(o, domain), *n = onnx_text(o, name), *v = onnx_text(o, overload);
    return d && n && v ? arena_printf(o->tmp, "%s\n%s\n%s", d, n, v) : NULL;
}

bool onnx_functions(Onnx *o)
{
    for (size_t i = 0; i < o->model->n_functions; i++) {
        Onnx__Function *f = o->model->functions[i];
        const char *key = function_key(o, f->domain, f->name, f->overload);
        TableItem *at = key ? table_at_text(&o->functions, key) : NULL;
        if (!at || at->ptr)
            return at && diag_error(o->diag, o->loc, "has two functions of one name");
        at->ptr = f;
    }
    return true;
}

const Onnx__Function *onnx_function(Onnx *o, const Onnx__Node *node)
{
    const char *key = o->functions.n ? function_key(o, node->domain, node->op_type, node->overload)
                                     : NULL;
    return key ? table_find_text(&o->functions, key) : NULL;
}

int64_t onnx_opset_of(const Onnx *o, const Onnx__Function *f)
{
    for (size_t i = 0; i < f->n_opset_import; i++)
        if (onnx_is_default(f->opset_import[i]->domain))
            return f->opset_import[i]->version;
    return o->opset;
}

bool onnx_call(OnnxNode *n, const Onnx__Function *f)
{
    Onnx *o = n->in;
    OnnxScope s = {.in = o, .values = {.arena = o->tmp}, .call = n, .function = f};
    int64_t opset = o->opset;
    if (!onnx_spend(o, f->n_input + f->n_attribute_proto))
        return false;
    if (o->n_calls == MAX_CALLS)
        return onnx_wrong(n, "calls a function within 32 others: functions nest too deep, or call each "
                             "other in a circle");
    if (n->node->n_input > f->n_input || n->node->n_output > f->n_output)
        return onnx_wrong(n, "has more inputs or outputs than the function that it calls");
    for (size_t i = 0; i < f->n_input; i++) {
        OnnxValue *v = on_input(n, (int)i);
        if (!v) {
            v = NEW(o->tmp, OnnxValue, 1);
            *v = (OnnxValue){.is_absent = true};
            s.lacks = true;
        }
        if (n->failed || !bind_name(n, &s, f->input[i], v))
            return false;
    }
    o->opset = onnx_opset_of(o, f);
    o->n_calls++;
    bool ok = onnx_opset_is_read(o) && onnx_nodes(o, &s, f->node, f->n_node);
    o->n_calls--;
    o->opset = opset;
    for (size_t i = 0; ok && i < n->node->n_output; i++)
        ok = !n->node->output[i].len || on_give(n, (int)i, found(n, &s, f->output[i]));
    return ok;
}
