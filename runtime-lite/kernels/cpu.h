/* cpu.h -- tests for features of this CPU.  glibc read the features when the program was
 * loaded.  libgcc would read them again at each start, with instructions that a virtual machine
 * traps. */
#ifndef ETC_CPU_H
#define ETC_CPU_H

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define ETC_CPU_HAS(name, NAME) etc_cpu_is_active(x86_cpu_##NAME)

/* Returns whether a feature is active.  (It replaces glibc's macro, which shifts a 1 into the sign
 * bit of an int.) */
static inline int etc_cpu_is_active(unsigned feature)
{
    const struct cpuid_feature *leaf = __x86_get_cpuid_feature_leaf(feature / 128u);
    return (int)((leaf->active_array[(feature % 128u) / 32u] >> (feature % 32u)) & 1u);
}
#endif
#endif

/* `name` is GCC's name of the feature, NAME is glibc's. */
#if !defined(ETC_CPU_HAS)
#define ETC_CPU_HAS(name, NAME) __builtin_cpu_supports(name)
#endif

#endif
