/* cost.c -- how long a node takes in XNNPACK, and in the official runtime's kernels otherwise. */
#include "partition/xnnpack/internal.h"

typedef enum Work {
    ARITHMETIC, ATTENTION, CONV, DEPTHWISE, FUNCTION, MOVE, NORM, POOL, PRODUCT, REDUCE, SOFTMAX,
    VIEW_OR_COPY
} Work;

typedef struct Cost {
    double node, mac, byte; /* seconds; byte: of operands and results */
} Cost;

static const struct {
    const char *name;
    Cost here, outside;
} cost_row[] = {
    [ARITHMETIC] = {"arithmetic", {1e-6, 0, 0.125e-9}, {1e-6, 0, 1e-9}},
    [ATTENTION] = {"attention", {1e-6, 0.025e-9, 0.125e-9}, {1e-6, 0.12e-9, 1e-9}},
    [CONV] = {"conv", {1e-6, 0.025e-9, 0.125e-9}, {1e-6, 3.3e-9, 1e-9}},
    [DEPTHWISE] = {"depthwise", {1e-6, 0.025e-9, 0.125e-9}, {1e-6, 3.3e-9, 1e-9}},
    [FUNCTION] = {"function", {1e-6, 0, 0.125e-9}, {1e-6, 0, 1e-9}},
    [MOVE] = {"move", {1e-6, 0, 0.125e-9}, {1e-6, 0, 1e-9}},
    [NORM] = {"norm", {1e-6, 0, 0.125e-9}, {1e-6, 0, 1e-9}},
    [POOL] = {"pool", {1e-6, 0.025e-9, 0.125e-9}, {1e-6, 3.3e-9, 1e-9}},
    [PRODUCT] = {"product", {1e-6, 0.025e-9, 0.125e-9}, {1e-6, 0.05e-9, 1e-9}},
    [REDUCE] = {"reduce", {1e-6, 0, 0.125e-9}, {1e-6, 0, 1e-9}},
    [SOFTMAX] = {"softmax", {1e-6, 0, 0.125e-9}, {1e-6, 0, 1e-9}},
    [VIEW_OR_COPY] = {"view", {1e-6, 0, 0}, {1e-6, 0, 1e-9}},
};

static bool is_depthwise(const Node *n)
{
    int64_t groups;
    return arg_int(n, 8, &groups) && groups > 1;
}

static Work work_of(const Node *n)
{
    switch ((int)n->op) {
    case OP_ADDMM: case OP_BADDBMM: case OP_BMM: case OP_LINEAR: case OP_MM:
        return PRODUCT;
    case OP_ATTENTION: case OP_SDPA:
        return ATTENTION;
    case OP_CONVOLUTION:
        return is_depthwise(n) ? DEPTHWISE : CONV;
    case OP_AVG_POOL2D: case OP_MAX_POOL2D: case OP_MAX_POOL2D_WITH_INDICES:
        return POOL;
    case OP_COS: case OP_ELU: case OP_ERF: case OP_EXP: case OP_GELU: case OP_LOG:
    case OP_POW_TENSOR_SCALAR: case OP_RSQRT: case OP_SIGMOID: case OP_SILU: case OP_SIN:
    case OP_TANH:
        return FUNCTION;
    case OP_CAT: case OP_CONSTANT_PAD_ND: case OP_EXPAND: case OP_PERMUTE: case OP_ROLL:
    case OP_SELECT_INT: case OP_SLICE: case OP_UPSAMPLE_BILINEAR2D_VEC:
        return MOVE;
    case OP_GROUP_NORM: case OP_LAYER_NORM: case OP_NATIVE_LAYER_NORM: case OP_RMS_NORM:
        return NORM;
    case OP_AMAX: case OP_MEAN_DIM: case OP_SUM_DIM:
        return REDUCE;
    case OP__SOFTMAX:
        return SOFTMAX;
    case OP_CLONE: case OP_VIEW:
        return VIEW_OR_COPY;
    default:
        return ARITHMETIC;
    }
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

static double seconds(const Node *n, const Cost *c)
{
    return c->node + (double)op_info[n->op].cost(n) * c->mac + bytes_moved(n) * c->byte;
}

const char *xnn_work(const Node *n)
{
    return cost_row[work_of(n)].name;
}

double xnn_cost(const Node *n)
{
    return seconds(n, &cost_row[work_of(n)].here);
}

/* Static views are free. */
double xnn_cost_outside(const Node *n)
{
    return n->op == OP_VIEW ? 0 : seconds(n, &cost_row[work_of(n)].outside);
}
