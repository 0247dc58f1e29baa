/* cost.c -- how long a node takes in XNNPACK, and in the official runtime's kernels otherwise. */
#include "partition/xnnpack/internal.h"

typedef enum Work {
    ARITHMETIC, ATTENTION, CONV, DEPTHWISE, FUNCTION, MOVE, NORM, PERMUTE, POOL, PRODUCT, REDUCE,
    SOFTMAX, VIEW_OR_COPY
} Work;

typedef enum Unit { PER_BYTE, PER_MAC } Unit; /* byte: of operands and results */

/* All that is known of costs, in seconds.  tests/bench/fit_costs.py prints such numbers: per byte and
 * multiply-add `here` from the profiles of 19 models by etc-xnn bench, `outside` from programs of one
 * operator in the official runtime, on one x86-64 core with AVX-512.  Estimates were then off by a
 * factor of 1.14 in the median inside, by 1.4 outside.  What a node takes at least is what chains of
 * small ones took in the official runtime; the library's own whole microseconds do not tell.  Not
 * fitted: attention outside, the sum of its products and of softmax at 64 features, and view, a
 * mean of those that copy and those that do not. */
static const struct {
    const char *name;
    Unit unit;
    struct {
        double node, unit;
    } here, outside;
} cost_row[] = {
    [ARITHMETIC] = {"arithmetic", PER_BYTE, {0.1e-6, 1.2e-11}, {0.2e-6, 5.5e-11}},
    [ATTENTION] = {"attention", PER_MAC, {1e-6, 2.6e-11}, {2e-6, 1e-10}},
    [CONV] = {"conv", PER_MAC, {1e-6, 1.8e-11}, {1e-6, 6.3e-9}},
    [DEPTHWISE] = {"depthwise", PER_MAC, {0.7e-6, 5.7e-11}, {1e-6, 3.4e-9}},
    [FUNCTION] = {"function", PER_BYTE, {0.1e-6, 3.8e-11}, {0.3e-6, 4e-10}},
    [MOVE] = {"move", PER_BYTE, {0.1e-6, 1.3e-11}, {0.2e-6, 6.8e-11}},
    [NORM] = {"norm", PER_BYTE, {0.3e-6, 8.4e-11}, {0.8e-6, 2.6e-10}},
    [PERMUTE] = {"permute", PER_BYTE, {0.1e-6, 6e-11}, {0.2e-6, 6e-10}},
    [POOL] = {"pool", PER_MAC, {0.3e-6, 5.6e-11}, {0.3e-6, 1.35e-8}},
    [PRODUCT] = {"product", PER_MAC, {0.25e-6, 1.85e-11}, {0.5e-6, 2.8e-11}},
    [REDUCE] = {"reduce", PER_BYTE, {0.2e-6, 0.7e-11}, {0.3e-6, 1e-10}},
    [SOFTMAX] = {"softmax", PER_BYTE, {0.4e-6, 1.6e-10}, {0.8e-6, 9.6e-10}},
    [VIEW_OR_COPY] = {"view", PER_BYTE, {0.1e-6, 1e-11}, {0.2e-6, 6.8e-11}},
};

static bool is_depthwise(const Node *n)
{
    int64_t groups;
    return arg_int(n, "groups", &groups) && groups > 1;
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
    case OP_CAT: case OP_CONSTANT_PAD_ND: case OP_EXPAND: case OP_ROLL: case OP_SELECT_INT:
    case OP_SLICE: case OP_UPSAMPLE_BILINEAR2D_VEC:
        return MOVE;
    case OP_PERMUTE: case OP_TRANSPOSE_INT:
        return PERMUTE;
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

static double units(const Node *n, Work w)
{
    return cost_row[w].unit == PER_MAC ? (double)op_info[n->op].cost(n) : bytes_moved(n);
}

const char *xnn_work(const Node *n)
{
    return cost_row[work_of(n)].name;
}

double xnn_cost(const Node *n)
{
    Work w = work_of(n);
    return cost_row[w].here.node + units(n, w) * cost_row[w].here.unit;
}

/* Static views are free. */
double xnn_cost_outside(const Node *n)
{
    Work w = work_of(n);
    return n->op == OP_VIEW ? 0 : cost_row[w].outside.node + units(n, w) * cost_row[w].outside.unit;
}

/* -- in integers ------------------------------------------------------------------------------- */

/* Parts of what floats take, as the profiles of two models by etc-xnn bench have them, as floats and
 * as static int8: mobilenetv2 for convolutions, vit_tiny for all else. */
static double part_in_integers(Work w)
{
    switch ((int)w) {
    case CONV:
        return 0.35;
    case DEPTHWISE:
        return 0.95;
    case PRODUCT:
        return 0.3;
    case REDUCE: case POOL:
        return 0.7;
    case MOVE:
        return 0.8;
    case PERMUTE:
        return 1.9;
    default:
        return 1;
    }
}

double xnn_cost_integers(const Node *n, unsigned spec)
{
    const Work w = work_of(n);
    (void)spec;
    return cost_row[w].here.node + units(n, w) * cost_row[w].here.unit * part_in_integers(w);
}

/* Floats one way, bytes the other; scales found at run time take a look at the rows before. */
double xnn_cost_convert(const Value *v, unsigned spec)
{
    const double elements = (double)type_numel(v->type);
    const double once = 0.1e-6 + 5 * elements * 1.85e-11;
    return spec & (SPEC_DYNAMIC | SPEC_DYNAMIC_GROUPS) ? 2 * once : once;
}
