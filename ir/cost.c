/* cost.c -- the cost of a node at the upper bounds of its sizes: multiply-adds, scratch bytes, and
 * seconds in a kernel. */
#include "ir/internal.h"
#include "ir/views.h"

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

/* Returns the number of elements of v for one index of its first axis. */
static int64_t row(const Value *v)
{
    Type t = v->type;
    assert(v->type.rank >= 1);
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

/* Each output is a dot product whose length is the number of columns of the first matrix. */
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

/* Counts the scores of each query with each key, and the products of as many weights with the
 * values. */
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

/* The weights of one filter are used once per output element or, in a transposed convolution, once
 * per input element. */
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
    if (kernel[0] < 1 || kernel[1] < 1) /* a node that no pass has inferred yet */
        return 0;
    return times(numel(n->out[0]), times(kernel[0], kernel[1]));
}

static int64_t graph_cost(const Graph *g)
{
    int64_t sum = 0;
    for (const Node *n = g->first; n; n = n->next)
        sum = plus(sum, node_cost(n));
    return sum;
}

/* Returns the cost of the most expensive nested graph.  A body is the only one, only one of several
 * branches runs, and nobody knows how often a loop runs. */
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

/* -- reads ----------------------------------------------------------------------------- */

/* Adds how many elements of each value, by index, the nodes of a body read.  A product reads an
 * element of both factors for each multiply-add; if a node before the product computes an operand,
 * its own operands are read as often. */
static void count_reads(const Graph *body, int64_t *reads)
{
    for (const Node *n = body->last; n; n = n->prev) {
        int64_t macs = node_cost(n), out = n->n_out ? reads[n->out[0]->index] : 0;
        for (int i = 0; i < n->n_in; i++) {
            int64_t own = numel(n->in[i]);
            int64_t times = macs && i < 2 ? macs : i ? own : out;
            int64_t *to = &reads[n->in[i]->index];
            *to = plus(*to, times > own ? times : own);
        }
    }
}

void node_reads(const Node *n, int64_t *reads, Arena *tmp)
{
    const Graph *body = group_body(n);
    int64_t *inside = body ? NEW(tmp, int64_t, body->n_values + 1) : NULL;
    int64_t macs = body ? 0 : node_cost(n);
    if (body)
        count_reads(body, inside);
    for (int i = 0; i < n->n_in; i++) {
        int64_t own = numel(n->in[i]);
        int64_t times = body && i < body->n_in ? inside[body->in[i]->index]
                        : i < 2                ? macs
                                               : own;
        reads[i] = times > own ? times : own;
    }
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
            int64_t bytes = node_scratch(m);
            most = bytes > most ? bytes : most;
        }
    return most;
}

int64_t scratch_body(const Node *n)
{
    return scratch_branches(n);
}

/* -- seconds ----------------------------------------------------------------------------- */

/* Times of the official runtime's kernels on one x86-64 core with AVX-512.  They were fitted to
 * programs of one operator, which tests/bench/fit_costs.py prints, and are off by a factor of 1.4
 * in the median.  `node` is the least time that a node takes, measured on chains of small ones.
 * Two rows were not fitted: attention is the sum of its products and of softmax at 64 features, and
 * view is a mean of those that copy and those that do not. */
static const struct {
    const char *name;
    bool per_mac; /* else per byte of operands and results */
    double node, unit;
} kernel_row[N_WORKS] = {
    [WORK_ARITHMETIC] = {"arithmetic", false, 0.2e-6, 5.5e-11},
    [WORK_ATTENTION] = {"attention", true, 2e-6, 1e-10},
    [WORK_CONV] = {"conv", true, 1e-6, 6.3e-9},
    [WORK_DEPTHWISE] = {"depthwise", true, 1e-6, 3.4e-9},
    [WORK_FUNCTION] = {"function", false, 0.3e-6, 4e-10},
    [WORK_MOVE] = {"move", false, 0.2e-6, 6.8e-11},
    [WORK_NORM] = {"norm", false, 0.8e-6, 2.6e-10},
    [WORK_PERMUTE] = {"permute", false, 0.2e-6, 6e-10},
    [WORK_POOL] = {"pool", true, 0.3e-6, 1.35e-8},
    [WORK_PRODUCT] = {"product", true, 0.5e-6, 2.8e-11},
    [WORK_REDUCE] = {"reduce", false, 0.3e-6, 1e-10},
    [WORK_SOFTMAX] = {"softmax", false, 0.8e-6, 9.6e-10},
    [WORK_VIEW_OR_COPY] = {"view", false, 0.2e-6, 6.8e-11},
};

/* These call functions of the C library, or evaluate polynomials that take as long. */
static bool is_function(const Node *n)
{
    switch ((int)n->op) {
    case OP_COS: case OP_ELU: case OP_ERF: case OP_EXP: case OP_GELU: case OP_LOG:
    case OP_POW_TENSOR_SCALAR: case OP_RSQRT: case OP_SIGMOID: case OP_SILU: case OP_SIN:
    case OP_TANH:
        return true;
    default:
        return false;
    }
}

static Work window_work(const Node *n)
{
    Conv c;
    return !conv_read(n, &c) ? WORK_POOL : c.groups > 1 ? WORK_DEPTHWISE : WORK_CONV;
}

Work node_work(const Node *n)
{
    switch (node_access(n)) {
    case ACCESS_POINTWISE:
        return node_is_copy(n)  ? WORK_VIEW_OR_COPY
               : is_function(n) ? WORK_FUNCTION
                                : WORK_ARITHMETIC;
    case ACCESS_VIEW: case ACCESS_BITS:
        return WORK_VIEW_OR_COPY;
    case ACCESS_PART: case ACCESS_JOIN: case ACCESS_MOVE: case ACCESS_GATHER:
        return WORK_MOVE;
    case ACCESS_PERMUTE:
        return WORK_PERMUTE;
    case ACCESS_ALONG:
        return n->op == OP__SOFTMAX ? WORK_SOFTMAX : WORK_REDUCE;
    case ACCESS_PRODUCT:
        return WORK_PRODUCT;
    case ACCESS_WINDOW:
        return window_work(n);
    case ACCESS_NORM:
        return WORK_NORM;
    case ACCESS_OPAQUE:
        return n->op == OP_ATTENTION || n->op == OP_SDPA ? WORK_ATTENTION : WORK_ARITHMETIC;
    }
    UNREACHABLE();
}

static double bytes_moved(const Node *n)
{
    double sum = 0;
    for (int i = 0; i < n->n_in; i++)
        sum += (double)type_bytes(n->in[i]->type);
    for (int i = 0; i < n->n_out; i++)
        sum += n->out[i]->type.is_none ? 0 : (double)type_bytes(n->out[i]->type);
    return sum;
}

const char *work_name(Work w)
{
    assert(w < N_WORKS);
    return kernel_row[w].name;
}

double node_units(const Node *n)
{
    return kernel_row[node_work(n)].per_mac ? (double)node_cost(n) : bytes_moved(n);
}

/* A view with static sizes costs nothing. */
double node_seconds(const Node *n)
{
    Work w = node_work(n);
    return n->op == OP_VIEW ? 0 : kernel_row[w].node + node_units(n) * kernel_row[w].unit;
}
