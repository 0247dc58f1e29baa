/* cost.c -- how long a node takes in XNNPACK. */
#include "partition/xnnpack/internal.h"

/* The seconds of a node: a number per node, and a number per byte or multiply-add, whichever its
 * class counts.  tests/bench/fit_costs.py prints such numbers from profiles of 19 models by
 * `etc-xnn bench`, on one x86-64 core with AVX-512.  Estimates were then off by a factor of 1.14 in
 * the median.  The time per node was measured on chains of small nodes in the official runtime,
 * because the library's profile counts in whole microseconds. */
static const struct {
    double node, unit;
} cost_row[N_WORKS] = {
    [WORK_ARITHMETIC] = {0.1e-6, 1.2e-11},
    [WORK_ATTENTION] = {1e-6, 2.6e-11},
    [WORK_CONV] = {1e-6, 1.8e-11},
    [WORK_DEPTHWISE] = {0.7e-6, 5.7e-11},
    [WORK_FUNCTION] = {0.1e-6, 3.8e-11},
    [WORK_MOVE] = {0.1e-6, 1.3e-11},
    [WORK_NORM] = {0.3e-6, 8.4e-11},
    [WORK_PERMUTE] = {0.1e-6, 6e-11},
    [WORK_POOL] = {0.3e-6, 5.6e-11},
    [WORK_PRODUCT] = {0.25e-6, 1.85e-11},
    [WORK_REDUCE] = {0.2e-6, 0.7e-11},
    [WORK_SOFTMAX] = {0.4e-6, 1.6e-10},
    [WORK_VIEW_OR_COPY] = {0.1e-6, 1e-11},
};

double xnn_cost(const Node *n)
{
    Work w = node_work(n);
    return cost_row[w].node + node_units(n) * cost_row[w].unit;
}

/* -- in integers ------------------------------------------------------------------------------- */

/* Returns the time with integers relative to the time with floats.  The numbers come from profiles
 * of two models as floats and as static int8: mobilenetv2 for convolutions, vit_tiny for all other
 * nodes. */
static double part_in_integers(Work w)
{
    switch ((int)w) {
    case WORK_CONV:
        return 0.35;
    case WORK_DEPTHWISE:
        return 0.95;
    case WORK_PRODUCT:
        return 0.3;
    case WORK_REDUCE: case WORK_POOL:
        return 0.7;
    case WORK_MOVE:
        return 0.8;
    case WORK_PERMUTE:
        return 1.9;
    default:
        return 1;
    }
}

double xnn_cost_integers(const Node *n, unsigned spec)
{
    const Work w = node_work(n);
    (void)spec;
    return cost_row[w].node + node_units(n) * cost_row[w].unit * part_in_integers(w);
}

/* Returns the seconds in which v is quantized or dequantized.  If scales are computed at run time,
 * the rows are read once more for them. */
double xnn_cost_convert(const Value *v, unsigned spec)
{
    const double elements = (double)type_numel(v->type);
    const double once = 0.1e-6 + 5 * elements * 1.85e-11;
    return spec & (SPEC_DYNAMIC | SPEC_DYNAMIC_GROUPS) ? 2 * once : once;
}
