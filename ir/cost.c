/* cost.c -- what a node costs: multiply-adds and scratch bytes, at the sizes' upper bounds. */
#include "ir/internal.h"

static int64_t times(int64_t a, int64_t b)
{
    int64_t c;
    return mul_ok(a, b, &c) ? c : INT64_MAX;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t c;
    return add_ok(a, b, &c) ? c : INT64_MAX;
}

static int64_t numel(const Value *v)
{
    return v ? type_numel(v->type) : 0;
}

/* Elements of v per index of its first axis. */
static int64_t row(const Value *v)
{
    Type t = v->type;
    t.rank -= 1;
    t.dim += 1;
    return type_numel(t);
}

/* -- multiply-adds -------------------------------------------------------------------- */

int64_t cost_none(const Node *n)
{
    (void)n;
    return 0;
}

int64_t cost_input(const Node *n)
{
    return numel(arg_value(n, 0));
}

int64_t cost_output(const Node *n)
{
    return numel(n->out[0]);
}

/* Each output is a dot product as long as the first matrix is wide. */
int64_t cost_mm(const Node *n)
{
    const Value *a = arg_value(n, n->op == OP_ADDMM ? 1 : 0);
    if (!a || a->type.rank < 1)
        return 0;
    return times(numel(n->out[0]), dim_upper(a->type.dim[a->type.rank - 1]));
}

int64_t cost_baddbmm(const Node *n)
{
    const Value *a = arg_value(n, "batch1");
    return a && a->type.rank == 3 ? times(numel(n->out[0]), dim_upper(a->type.dim[2])) : 0;
}

/* Scores of every pair of a query and a key, then as many weights for the values. */
int64_t cost_attention(const Node *n)
{
    const Value *q = arg_value(n, "query"), *k = arg_value(n, "key"), *y = n->out[0];
    if (!q || !k || k->type.rank < 2)
        return 0;
    return times(plus(numel(q), numel(y)), dim_upper(k->type.dim[k->type.rank - 2]));
}

int64_t cost_linear(const Node *n)
{
    return cost_mm(n);
}

/* A filter per output, or where transposed per input. */
int64_t cost_conv(const Node *n)
{
    const Value *x = arg_value(n, "input"), *w = arg_value(n, "weight");
    if (!x || !w || w->type.rank < 1)
        return 0;
    bool transposed = n->op == OP_CONVOLUTION && arg_bool(n, "transposed");
    return times(numel(transposed ? x : n->out[0]), row(w));
}

int64_t cost_pool(const Node *n)
{
    int64_t kernel[2] = {1, 1};
    if (!arg_ints(n, "kernel_size", kernel, 2))
        return INT64_MAX;
    if (arg_count(n, "kernel_size") == 1)
        kernel[1] = kernel[0];
    return times(numel(n->out[0]), times(kernel[0], kernel[1]));
}

static int64_t graph_cost(const Graph *g)
{
    int64_t sum = 0;
    for (const Node *n = g->first; n; n = n->next)
        sum = plus(sum, op_info[n->op].cost(n));
    return sum;
}

/* The dearest of the nested graphs: a body is alone, of branches one runs, of a loop nobody knows
 * how often. */
int64_t cost_branches(const Node *n)
{
    int64_t most = 0;
    for (const Graph *g = NULL; (g = region_next(n, g));) {
        int64_t cost = graph_cost(g);
        most = cost > most ? cost : most;
    }
    return most;
}

int64_t cost_body(const Node *n)
{
    return cost_branches(n);
}

/* -- scratch -------------------------------------------------------------------------- */

int64_t scratch_none(const Node *n)
{
    (void)n;
    return 0;
}

int64_t scratch_block(const Node *n)
{
    (void)n;
    return ETC_SCRATCH_BYTES;
}

int64_t scratch_branches(const Node *n)
{
    int64_t most = 0;
    for (const Graph *g = NULL; (g = region_next(n, g));)
        for (const Node *m = g->first; m; m = m->next) {
            int64_t bytes = op_info[m->op].scratch(m);
            most = bytes > most ? bytes : most;
        }
    return most;
}

int64_t scratch_body(const Node *n)
{
    return scratch_branches(n);
}
