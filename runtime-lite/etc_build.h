/* etc_build.h -- what a build of runtime-lite contains in addition to the rows of
 * kernels/kernels.def: everything, or what some files need if `etc runtime` has written the
 * numbers. */
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

/* Returns whether this build has tensors of a dtype. */
#define ETC_HAS(dtype) (((ETC_BUILD_DTYPES >> (dtype)) & 1u) != 0u)

/* The text of an error that a function returns; in a build without texts it is "", not NULL. */
#define ETC_TEXT(text) (ETC_BUILD_TEXT ? (text) : "")

#endif
