/* cores.c -- which tables of cores this CPU runs. */
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/etc_rt.h"

extern const EtcCores etc_cores_base;
#if defined(ETC_HAS_X86_ISAS)
extern const EtcCores etc_cores_avx2, etc_cores_avx512;
#endif

const EtcCores *etc_cores_at(int i)
{
    const EtcCores *runs[3] = {&etc_cores_base, NULL, NULL};
    int n = 1;
#if defined(ETC_HAS_X86_ISAS)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        runs[n++] = &etc_cores_avx2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
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
