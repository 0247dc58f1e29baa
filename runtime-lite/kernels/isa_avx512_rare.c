/* isa_avx512_rare.c -- the rare core that gains from AVX-512; see cores_table.h. */
#include "runtime-lite/kernels/cores.h"

void etc_fft_avx512(const float *x, float *y, float *work, const EtcFft *g)
{
    etc_fft_f32(x, y, work, g);
}
