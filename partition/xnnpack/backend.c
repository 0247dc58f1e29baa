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
    .call_cost = 5e-6,
    .cost_of_byte = 1 / 20e9,
    .lower = xnn_lower,
};
