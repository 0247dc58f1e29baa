/* cores.c -- the tables of cores that this CPU can run. */
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/etc_rt.h"
#include "runtime-lite/kernels/cpu.h"


const EtcCores *etc_cores_at(int i)
{
    const EtcCores *runs[3] = {&etc_cores_base, NULL, NULL};
    int n = 1;
#if defined(ETC_HAS_X86_ISAS)
    if (ETC_CPU_HAS("avx2", AVX2) && ETC_CPU_HAS("fma", FMA)) {
        runs[n++] = &etc_cores_avx2;
        if (ETC_CPU_HAS("avx512f", AVX512F) && ETC_CPU_HAS("avx512vl", AVX512VL) &&
            ETC_CPU_HAS("avx512bw", AVX512BW) && ETC_CPU_HAS("avx512dq", AVX512DQ)) {
            runs[n++] = &etc_cores_avx512;
        }
    }
#endif
    return ((i >= 0) && (i < n)) ? runs[i] : NULL;
}

const EtcCores *etc_cores(void)
{
    const EtcCores *best = etc_cores_at(0);
    for (int i = 1; etc_cores_at(i) != NULL; i++) {
        best = etc_cores_at(i);
    }
    return best;
}
