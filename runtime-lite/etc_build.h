/* etc_build.h -- what a build of runtime-lite has beyond the rows of kernels/kernels.def:
 * everything, or, where `etc runtime` wrote the numbers, what some files need. */
#ifndef ETC_BUILD_H
#define ETC_BUILD_H

#define ETC_BUILD_DTYPES 0xffffffffu /* bit n: tensors of dtype n, in a .pte's numbers */
#define ETC_BUILD_DOUBLES 1          /* files may hold doubles, and kernels make some */
#define ETC_BUILD_HOST_KERNELS 1     /* operators may be the host's: etc_program_kernels */
#define ETC_BUILD_DELEGATES 1        /* parts of a file may be a delegate's */
#define ETC_BUILD_ONE_ISA 0          /* cores for the compiler's flags alone, not for every CPU */

#if !defined(ETC_BUILD_TEXT)
#define ETC_BUILD_TEXT 1 /* EtcError.what says what is wrong; else it is empty */
#endif

/* Whether there may be tensors of a dtype that etc_rt.h knows. */
#define ETC_HAS(dtype) (((ETC_BUILD_DTYPES >> (dtype)) & 1u) != 0u)

/* What is wrong, where a function returns that; not NULL in a build without texts either. */
#define ETC_TEXT(text) (ETC_BUILD_TEXT ? (text) : "")

#endif
