/* xnn_cpu.c -- instructions that the library is to do without.
 *
 * libXNNPACK of November 2024 computes products of 4-bit weights wrongly where the CPU has AMX
 * (weights with a scale for each channel) or GFNI (one for each group), and sums halves in halves
 * where it has AVX512-FP16, which torch does not.  The library asks libcpuinfo what there is: so
 * it is told that there is less, before it looks for the first time. */
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
