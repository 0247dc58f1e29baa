/* backend.c -- XNNPACK, as ExecuTorch's runtimes have it. */
#include "partition/partition.h"
#include "partition/xnnpack/internal.h"

static const char *const fused[] = {"pack_heads", NULL};
static const char *const simple[] = {"fold_layer_norm", NULL};

const Backend xnnpack_backend = {
    .name = "xnnpack",
    .id = "XnnpackBackend",
    .takes = xnn_takes,
    .prepare = {[PREPARE_FUSED] = fused, [PREPARE_SIMPLE] = simple},
    .keeps_parts = xnn_keeps_parts,
    .spec = xnn_spec,
    .cost = xnn_cost,
    .cost_integers = xnn_cost_integers,
    .cost_convert = xnn_cost_convert,
    .call_cost = 0.5e-6,
    .cost_of_byte = 2.6e-11,
    .lower = xnn_lower,
};
