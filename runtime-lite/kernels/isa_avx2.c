/* isa_avx2.c -- the table of cores for AVX2; see cores_table.h. */
#define ETC_ISA_NAME "avx2"
#define ETC_ISA_RARE etc_rare_cores_avx2
#define ETC_ISA_FFT etc_fft_avx2
#define ETC_ISA_TABLE const EtcCores etc_cores_avx2
#define ETC_PADS 0 /* see integer_depthwise.h */
#include "runtime-lite/kernels/cores_table.h"
