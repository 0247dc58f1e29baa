/* backend.c -- XNNPACK, as ExecuTorch's runtimes have it. */
#include "partition/partition.h"
#include "partition/xnnpack/internal.h"

/* Measured on one x86-64 core with AVX-512; only their ratios decide. */
static const double MACS_PER_SECOND = 40e9, BYTES_PER_SECOND = 8e9, NODE = 1e-6;
static const double PORTABLE_MACS_PER_SECOND = 0.3e9, PORTABLE_BYTES_PER_SECOND = 1e9,
                    BLAS_MACS_PER_SECOND = 20e9;

static double bytes_moved(const Node *n)
{
    double sum = 0;
    for (int i = 0; i < n->n_in; i++)
        sum += (double)type_bytes(n->in[i]->type);
    for (int i = 0; i < n->n_out; i++)
        sum += n->out[i]->type.is_none ? 0 : (double)type_bytes(n->out[i]->type);
    return sum;
}

static double macs(const Node *n)
{
    return (double)op_info[n->op].cost(n);
}

/* A view is a node that finds its bytes in place. */
static double cost(const Node *n)
{
    if (n->op == OP_VIEW || n->op == OP_CLONE)
        return NODE;
    return NODE + macs(n) / MACS_PER_SECOND + bytes_moved(n) / BYTES_PER_SECOND;
}

/* The official runtime's matrix products go through a BLAS; static views are free. */
static double cost_outside(const Node *n)
{
    bool is_product = n->op == OP_LINEAR || n->op == OP_BMM || n->op == OP_MM;
    if (n->op == OP_VIEW)
        return 0;
    return NODE + macs(n) / (is_product ? BLAS_MACS_PER_SECOND : PORTABLE_MACS_PER_SECOND) +
           bytes_moved(n) / PORTABLE_BYTES_PER_SECOND;
}

const Backend xnnpack_backend = {
    .name = "xnnpack",
    .id = "XnnpackBackend",
    .takes = xnn_takes,
    .spec = xnn_spec,
    .cost = cost,
    .cost_outside = cost_outside,
    .call_cost = 5e-6,
    .cost_of_byte = 1 / 20e9,
    .lower = xnn_lower,
};
