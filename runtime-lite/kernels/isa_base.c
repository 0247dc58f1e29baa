/* isa_base.c -- see cores_table.h. */
#include "runtime-lite/kernels/core.h"

/* Beside tables of wider vectors this one serves old CPUs alone: it had better be small. */
#if defined(ETC_HAS_X86_ISAS)
#undef ETC_INLINE
#define ETC_INLINE static inline __attribute__((unused))
#endif

#define ETC_ISA_NAME "base"
#define ETC_ISA_TABLE const EtcCores etc_cores_base
#include "runtime-lite/kernels/cores_table.h"
