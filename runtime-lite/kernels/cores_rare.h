/* cores_rare.h -- the table of rare cores of one instruction set, which ETC_ISA_RARE_TABLE declares.
 * Files and cores.h include it as they include cores_table.h. */
#include "runtime-lite/kernels/cores.h"

#define UNARY(name, expr)
#define BINARY UNARY
#define DOUBLE ETC_RUN_UNARY
#define DOUBLE_PAIR ETC_RUN_BINARY
#include "runtime-lite/kernels/pointwise.def"

ETC_ISA_RARE_TABLE = {
    etc_max_pool_f32,
    etc_avg_pool_f32,
    etc_avg_pool_i8,
    etc_upsample_nearest_f32,
    etc_upsample_linear_f32,
    etc_grid_sample_f32,
    etc_cumsum_f32,
    {
#define UNARY(name, expr) NULL,
#define BINARY UNARY
#define DOUBLE(name, expr) run_##name,
#define DOUBLE_PAIR DOUBLE
#include "runtime-lite/kernels/pointwise.def"
    },
};
