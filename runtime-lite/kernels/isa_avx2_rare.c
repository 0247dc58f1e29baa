/* isa_avx2_rare.c -- the table of rare cores for AVX2, and for AVX-512 too; see cores_rare.h. */
#define ETC_ISA_RARE_TABLE const EtcRareCores etc_rare_cores_avx2
#include "runtime-lite/kernels/cores_rare.h"
