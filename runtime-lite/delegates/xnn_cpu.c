/* xnn_cpu.c -- hides instructions of the CPU from the library.
 *
 * libXNNPACK of November 2024 computes products of 4-bit weights wrongly if the CPU has AMX
 * (weights with a scale per channel) or GFNI (a scale per group).  If it has AVX512-FP16, the
 * library accumulates halves in f16, which torch does not.  The library asks libcpuinfo for the
 * features, so this changes the answer before the library asks for the first time. */
#include "runtime-lite/delegates/xnn_host.h"

#ifdef ETC_CPUINFO
#include <cpuinfo.h>
#endif

void etc_xnn_choose_cpu(void)
{
#if defined(ETC_CPUINFO) && CPUINFO_ARCH_X86_64
    if (cpuinfo_initialize()) {
        cpuinfo_isa.amx_tile = cpuinfo_isa.amx_int8 = false;
        cpuinfo_isa.amx_bf16 = cpuinfo_isa.amx_fp16 = false;
        cpuinfo_isa.gfni = false;
        cpuinfo_isa.avx512fp16 = false;
    }
#endif
}
