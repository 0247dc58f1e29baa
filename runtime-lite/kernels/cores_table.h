/* cores_table.h -- the table of cores of one instruction set: ETC_ISA_TABLE declares it,
 * ETC_ISA_NAME is the set's name, ETC_ISA_RARE its table of rare cores, and ETC_ISA_FFT its Fourier
 * transform, which is compiled like rare cores but gains from AVX-512.  Each isa_*.c includes it
 * once; meson.build compiles that file with the set's flags.  In a build for one instruction set,
 * cores.h includes it. */
#include "runtime-lite/kernels/cores.h"

#define UNARY ETC_RUN_UNARY
#define BINARY ETC_RUN_BINARY
#define DOUBLE(name, expr)
#define DOUBLE_PAIR DOUBLE
#include "runtime-lite/kernels/pointwise.def"

ETC_ISA_LOCAL void scale_shift(const float *x, float scale, float shift, float *y, int64_t n)
{
    etc_scale_shift_f32(x, scale, shift, y, n);
}

ETC_ISA_TABLE = {
    ETC_ISA_NAME,
    &ETC_ISA_RARE,
    {
#define UNARY(name, expr) run_##name,
#define BINARY UNARY
#define DOUBLE(name, expr) NULL,
#define DOUBLE_PAIR DOUBLE
#include "runtime-lite/kernels/pointwise.def"
    },
    etc_matmul_f32,
    etc_packed_i4,
    etc_packed_i8,
    etc_packed_f16,
    etc_attention_f32,
    etc_conv_f32,
    etc_softmax_f32,
    etc_sum_f32,
    etc_amax_f32,
    scale_shift,
    etc_layer_norm_f32,
    etc_group_norm_f32,
    etc_linear_i8,
    etc_conv_i8,
    ETC_ISA_FFT,
};
