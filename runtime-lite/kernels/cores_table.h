/* cores_table.h -- the table of cores of one instruction set: ETC_ISA_TABLE declares it, and
 * ETC_ISA_NAME is the set's name.  Each isa_*.c includes it once; meson.build compiles that file
 * with the set's flags.  In a build for one instruction set, cores.h includes it. */
#include "runtime-lite/kernels/cores.h"

#define ISA_LOCAL static __attribute__((unused))

#define UNARY(name, expr)                                                                     \
    ISA_LOCAL void run_##name(const void *a, const void *b, const EtcPqr *s, void *y,         \
                              int64_t n)                                                      \
    {                                                                                         \
        (void)b;                                                                              \
        etc_##name##_f32((const float *)a, s->f32[0], s->f32[1], s->f32[2], (float *)y, n);   \
    }
#define BINARY(name, expr)                                                                    \
    ISA_LOCAL void run_##name(const void *a, const void *b, const EtcPqr *s, void *y,         \
                              int64_t n)                                                      \
    {                                                                                         \
        etc_##name##_f32((const float *)a, (const float *)b, s->f32[0], s->f32[1], s->f32[2], \
                         (float *)y, n);                                                      \
    }
#include "runtime-lite/kernels/pointwise.def"

ISA_LOCAL void scale_shift(const float *x, float scale, float shift, float *y, int64_t n)
{
    etc_scale_shift_f32(x, scale, shift, y, n);
}

ETC_ISA_TABLE = {
    ETC_ISA_NAME,
    {
#define UNARY(name, expr) run_##name,
#define BINARY UNARY
#include "runtime-lite/kernels/pointwise.def"
    },
    etc_matmul_f32,
    etc_packed_i4,
    etc_packed_i8,
    etc_packed_f16,
    etc_attention_f32,
    etc_conv_f32,
    etc_max_pool_f32,
    etc_max_pool_i8,
    etc_avg_pool_f32,
    etc_avg_pool_i8,
    etc_softmax_f32,
    etc_sum_f32,
    etc_amax_f32,
    scale_shift,
    etc_layer_norm_f32,
    etc_group_norm_f32,
    etc_upsample_nearest_f32,
    etc_upsample_linear_f32,
    etc_grid_sample_f32,
    etc_cumsum_f32,
    etc_fft_f32,
    etc_linear_i8,
    etc_conv_i8,
};
