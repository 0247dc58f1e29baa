/* isa_avx512.c -- the table of cores for AVX-512; see cores_table.h. */
#define ETC_ISA_NAME "avx512"
#define ETC_ISA_RARE etc_rare_cores_avx2
#define ETC_ISA_FFT etc_fft_avx512
#define ETC_ISA_TABLE const EtcCores etc_cores_avx512
#include "runtime-lite/kernels/cores_table.h"
