/* backend.c -- XNNPACK, as ExecuTorch's runtimes have it. */
#include "partition/partition.h"
#include "partition/xnnpack/internal.h"

const Backend xnnpack_backend = {
    .name = "xnnpack",
    .id = "XnnpackBackend",
    .takes = xnn_takes,
    .spec = xnn_spec,
    .work = xnn_work,
    .cost = xnn_cost,
    .cost_outside = xnn_cost_outside,
    .cost_integers = xnn_cost_integers,
    .cost_convert = xnn_cost_convert,
    .call_cost = 0.5e-6,
    .cost_of_byte = 2.6e-11,
    .lower = xnn_lower,
};
