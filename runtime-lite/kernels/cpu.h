/* cpu.h -- what this CPU can do.  glibc knows since the program was loaded; libgcc would find out
 * anew at every start, by instructions that a virtual machine traps one by one. */
#ifndef ETC_CPU_H
#define ETC_CPU_H

#if defined(__x86_64__) && defined(__has_include)
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define ETC_CPU_HAS(name, NAME) CPU_FEATURE_ACTIVE(NAME)
#endif
#endif

/* name as GCC spells the feature, NAME as glibc does. */
#if !defined(ETC_CPU_HAS)
#define ETC_CPU_HAS(name, NAME) __builtin_cpu_supports(name)
#endif

#endif
