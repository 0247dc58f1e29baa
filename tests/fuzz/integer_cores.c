/* integer_cores.c -- the kernels of 8-bit integers for the instruction set of the compiler's flags.
 * CORES is the name of the table, NAME that of the build.
 *
 * With PLANTED_BUG, pixels of a row of stride 2 that lie behind the first vector are those of the
 * first, in weights of quads; only CPUs with VNNI read these so. */
#define ETC_HAS_THEN 1
#define ETC_HAS_QUADS 1
#include "runtime-lite/kernels/vec.h"
#ifdef PLANTED_BUG
#define etc_even(a, b) etc_even(a, a)
#endif
#include "runtime-lite/kernels/integer_conv.h"
#include "tests/fuzz/integer_cores.h"

extern const IntegerCores CORES;

#if defined(ETC_REDUCED_WEIGHTS)
enum { IS_REDUCED = 1 };
#else
enum { IS_REDUCED = 0 };
#endif

const IntegerCores CORES = {NAME, ETC_WORK_BYTES, IS_REDUCED, etc_conv_i8, etc_linear_i8,
                            etc_max_pool_i8, etc_avg_pool_i8};
