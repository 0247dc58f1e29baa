/* integer_cores.h -- the kernels of 8-bit integers, compiled once for each instruction set, for
 * fuzz_integer.c.  Some builds have another size of working memory than a .pte's, as emitted C has. */
#ifndef TESTS_FUZZ_INTEGER_CORES_H
#define TESTS_FUZZ_INTEGER_CORES_H

#if !defined(ETC_HAS_THEN)
#define ETC_HAS_THEN 1
#define ETC_HAS_QUADS 1
#endif
#include "runtime-lite/kernels/conv_geometry.h"
#include "runtime-lite/kernels/integer_linear.h"
#include "runtime-lite/kernels/integer_pool.h"

typedef struct IntegerCores {
    const char *name;
    size_t work_bytes;
    int is_reduced; /* convolutions and linear layers have weights in -64 .. 64 */
    void (*conv)(const void *x, const int8_t *w, void *y, const EtcConv *g, const EtcInteger *q,
                 void *work);
    void (*linear)(const void *x, const int8_t *w, void *y, const EtcIntegerLinear *g,
                   const EtcInteger *q);
    void (*max_pool)(const void *x, void *y, int is_signed, const EtcPool *g);
    void (*avg_pool)(const void *x, void *y, const EtcPool *g, const EtcMean *q);
} IntegerCores;

#endif
