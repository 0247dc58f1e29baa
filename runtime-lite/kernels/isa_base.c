/* isa_base.c -- the tables of cores for the base instruction set; see cores_table.h. */
#include "runtime-lite/kernels/core.h"

/* A build that also has tables for wider vectors uses this one on old CPUs only, so it is kept
 * small. */
#if defined(ETC_HAS_X86_ISAS)
#undef ETC_INLINE
#define ETC_INLINE static inline __attribute__((unused))
#endif

#define ETC_ISA_RARE_TABLE const EtcRareCores etc_rare_cores_base
#include "runtime-lite/kernels/cores_rare.h"

#define ETC_ISA_NAME "base"
#define ETC_ISA_RARE etc_rare_cores_base
#define ETC_ISA_FFT etc_fft_f32
#define ETC_ISA_TABLE const EtcCores etc_cores_base
#include "runtime-lite/kernels/cores_table.h"
