/* cores.h -- the dense cores as function pointers, with one table per instruction set.  All tables
 * give the same bits.  cores_table.h builds a table from the core headers with the compiler flags
 * of its instruction set. */
#ifndef ETC_CORES_H
#define ETC_CORES_H

#include "runtime-lite/etc_build.h"
#include "runtime-lite/etc_rt.h"
#include "runtime-lite/kernels/attention.h"
#include "runtime-lite/kernels/conv.h"
#include "runtime-lite/kernels/fft.h"
#include "runtime-lite/kernels/grid.h"
#include "runtime-lite/kernels/group_norm.h"
#include "runtime-lite/kernels/integer_conv.h"
#include "runtime-lite/kernels/integer_linear.h"
#include "runtime-lite/kernels/integer_pool.h"
#include "runtime-lite/kernels/matmul.h"
#include "runtime-lite/kernels/norm.h"
#include "runtime-lite/kernels/packed.h"
#include "runtime-lite/kernels/pointwise.h"
#include "runtime-lite/kernels/pool.h"
#include "runtime-lite/kernels/reduce.h"
#include "runtime-lite/kernels/softmax.h"
#include "runtime-lite/kernels/upsample.h"

typedef enum EtcRow {
#define UNARY(name, expr) ETC_ROW_##name,
#define BINARY UNARY
#include "runtime-lite/kernels/pointwise.def"
    ETC_N_ROWS
} EtcRow;

/* The parameters p, q and r of a row of pointwise.def, in each type. */
typedef struct EtcPqr {
    float f32[3];
    double f64[3];
    int64_t i64[3];
} EtcPqr;

/* Computes n contiguous elements of the type that the row computes in.  A row with one input does
 * not read b. */
typedef void EtcPointwise(const void *a, const void *b, const EtcPqr *s, void *y, int64_t n);

typedef void EtcPackedCore(const float *x, const EtcPackedWeight *w, const float *bias, float *y,
                           const EtcPacked *g, void *work);

/* Cores in which models spend little time.  Vectors wider than those of AVX2 would help them
 * little, so there is no table for these. */
typedef struct EtcRareCores {
    void (*max_pool)(const float *x, float *y, int64_t *where, const EtcPool *g, void *work);
    void (*avg_pool)(const float *x, float *y, const EtcPool *g);
    void (*avg_pool_i8)(const void *x, void *y, const EtcPool *g, const EtcMean *q);
    void (*upsample_nearest)(const float *x, float *y, const EtcUpsample *g, void *work);
    void (*upsample_linear)(const float *x, float *y, const EtcUpsample *g, void *work);
    void (*grid_sample)(const float *x, const float *grid, float *y, const EtcGrid *g);
    void (*cumsum)(const float *x, float *y, int64_t outer, int64_t n, int64_t inner);
    EtcPointwise *pointwise[ETC_N_ROWS]; /* the rows for float that compute in double */
} EtcRareCores;

typedef struct EtcCores {
    const char *name;
    const EtcRareCores *rare;
    EtcPointwise *pointwise[ETC_N_ROWS]; /* the other rows for float */
    void (*matmul)(const float *a, const float *b, const float *bias, float *y, const EtcMatmul *g,
                   void *work);
    EtcPackedCore *packed_i4, *packed_i8, *packed_f16;
    void (*attention)(const float *q, const float *k, const float *v, const EtcMask *mask, float *y,
                      const EtcAttention *g, void *work);
    void (*conv)(const float *x, const float *w, const float *bias, float *y, const EtcConv *g,
                 void *work);
    void (*softmax)(const float *x, float *y, int64_t n, int64_t inner, int is_log);
    void (*sum)(const float *x, int64_t n, EtcSum *s);
    float (*amax)(const float *x, int64_t n, float start);
    void (*scale_shift)(const float *x, float scale, float shift, float *y, int64_t n);
    void (*layer_norm)(const float *x, const float *weight, const float *bias, float eps, float *y,
                       int64_t rows, int64_t n, float *mean, float *rstd);
    void (*group_norm)(const float *x, const float *weight, const float *bias, float *y,
                       float *mean, float *rstd, const EtcGroupNorm *g);
    void (*linear_i8)(const void *x, const int8_t *w, void *y, const EtcIntegerLinear *g,
                      const EtcInteger *q);
    void (*conv_i8)(const void *x, const int8_t *w, void *y, const EtcConv *g, const EtcInteger *q,
                    void *work);
    void (*fft)(const float *x, float *y, float *work, const EtcFft *g);
} EtcCores;

static inline EtcPointwise *etc_row_f32(const EtcCores *cores, EtcRow at)
{
    return (cores->pointwise[at] != NULL) ? cores->pointwise[at] : cores->rare->pointwise[at];
}

/* The functions that the tables hold of a row.  A file may leave some of them unused. */
#define ETC_ISA_LOCAL static __attribute__((unused))
#define ETC_RUN_UNARY(name, expr)                                                             \
    ETC_ISA_LOCAL void run_##name(const void *a, const void *b, const EtcPqr *s, void *y,     \
                                  int64_t n)                                                  \
    {                                                                                         \
        (void)b;                                                                              \
        etc_##name##_f32((const float *)a, s->f32[0], s->f32[1], s->f32[2], (float *)y, n);   \
    }
#define ETC_RUN_BINARY(name, expr)                                                            \
    ETC_ISA_LOCAL void run_##name(const void *a, const void *b, const EtcPqr *s, void *y,     \
                                  int64_t n)                                                  \
    {                                                                                         \
        etc_##name##_f32((const float *)a, (const float *)b, s->f32[0], s->f32[1], s->f32[2], \
                         (float *)y, n);                                                      \
    }

/* The rows for double and, if there is one, for int64. */
#define REAL(name, expr) EtcPointwise etc_row_f64_##name;
#define DOUBLE_PAIR REAL
#define UNARY(name, expr) EtcPointwise etc_row_f64_##name, etc_row_i64_##name;
#define BINARY UNARY
#include "runtime-lite/kernels/pointwise.def"

/* The tables, one for each isa_*.c.  Those of wider vectors exist only on x86-64. */
extern const EtcCores etc_cores_base, etc_cores_avx2, etc_cores_avx512;
extern const EtcRareCores etc_rare_cores_base, etc_rare_cores_avx2;
void etc_fft_avx2(const float *x, float *y, float *work, const EtcFft *g);
void etc_fft_avx512(const float *x, float *y, float *work, const EtcFft *g);

/* Returns the i-th table that this CPU can run, from the plainest on, or NULL after the last. */
const EtcCores *etc_cores_at(int i);

/* Returns the cores that a call uses.  In a build for one instruction set, each file that uses the
 * table defines it, so that the compiler can remove the cores that the file does not call. */
#if ETC_BUILD_ONE_ISA
#define ETC_ISA_NAME "one"
#define ETC_ISA_RARE etc_rare_cores_here
#define ETC_ISA_FFT etc_fft_f32
#define ETC_ISA_RARE_TABLE static const EtcRareCores etc_rare_cores_here
#include "runtime-lite/kernels/cores_rare.h"
#define ETC_ISA_TABLE static const EtcCores etc_cores_here
#include "runtime-lite/kernels/cores_table.h"
#define ETC_CORES_OF(c) ((void)(c), &etc_cores_here)
#define ETC_RARE_CORES_OF(c) ((void)(c), &etc_rare_cores_here)
#else
#define ETC_CORES_OF(c) ((c)->cores)
#define ETC_RARE_CORES_OF(c) ((c)->cores->rare)
#endif

static inline const EtcCores *etc_cores_of(const EtcCall *c)
{
    return ETC_CORES_OF(c);
}

static inline const EtcRareCores *etc_rare_cores_of(const EtcCall *c)
{
    return ETC_RARE_CORES_OF(c);
}

#endif
