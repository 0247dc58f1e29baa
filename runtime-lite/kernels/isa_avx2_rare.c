/* isa_avx2_rare.c -- the table of rare cores for AVX2, and for AVX-512 too; see cores_rare.h. */
#define ETC_ISA_RARE_TABLE const EtcRareCores etc_rare_cores_avx2
#include "runtime-lite/kernels/cores_rare.h"

void etc_fft_avx2(const float *x, float *y, float *work, const EtcFft *g)
{
    etc_fft_f32(x, y, work, g);
}
