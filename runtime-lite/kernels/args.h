/* args.h -- shared by the wrappers of kernels: reading arguments, shapes, walks over strided
 * tensors, dtypes.
 *
 * Readers return 1, or 0 if the argument is missing or of another kind; the wrapper then returns
 * ETC_BAD_ARG.  Nothing here is part of emitted C. */
#ifndef ETC_ARGS_H
#define ETC_ARGS_H

#include "runtime-lite/etc_build.h"
#include "runtime-lite/etc_rt.h"

/* -- arguments --------------------------------------------------------------------------- */

typedef struct EtcScalar {
    int is_float, is_bool;
    double d; /* the number in both forms; i saturates */
    int64_t i;
} EtcScalar;

typedef struct EtcInts {
    int32_t n; /* -1: the argument was None */
    int64_t v[ETC_MAX_RANK];
} EtcInts;

int etc_arg_tensor(const EtcCall *c, int32_t i, EtcTensor **t);
int etc_arg_opt_tensor(const EtcCall *c, int32_t i, EtcTensor **t); /* NULL for None */
int etc_arg_int(const EtcCall *c, int32_t i, int64_t *v);
int etc_arg_opt_int(const EtcCall *c, int32_t i, int64_t *v, int *is_given);
int etc_arg_bool(const EtcCall *c, int32_t i, int *v);
int etc_arg_double(const EtcCall *c, int32_t i, double *v); /* an int serves too */
int etc_arg_scalar(const EtcCall *c, int32_t i, EtcScalar *s);
int etc_arg_opt_scalar(const EtcCall *c, int32_t i, EtcScalar *s); /* None: as it was */
int etc_arg_ints(const EtcCall *c, int32_t i, EtcInts *v); /* None too: n is -1 */

/* Exactly n doubles, or None. */
int etc_arg_opt_doubles(const EtcCall *c, int32_t i, int32_t n, double *v, int *is_given);

/* Counts n times `each` element operations as work.  Returns 0 if the call may not do so much;
 * the kernel then returns ETC_TOO_MUCH.  Only kernels call it whose work exceeds the elements of
 * their tensors. */
int etc_may_work(const EtcCall *c, int64_t n, int64_t each);

/* A list of one or two ints as a pair; the default where it is empty or None. */
int etc_arg_pair(const EtcCall *c, int32_t i, int64_t lo, int64_t dflt, int64_t v[2]);

/* -- shapes ------------------------------------------------------------------------------ */

/* A negative dim counts from the end; rank 0 counts as 1.  -1 when out of range. */
int32_t etc_dim(int64_t dim, int32_t rank);
int etc_is_plain(const EtcTensor *t);                        /* row-major without gaps */
int etc_same_layout(const EtcTensor *a, const EtcTensor *b); /* sizes and memory order */
void etc_strides(const EtcTensor *t, int64_t *stride);       /* in elements */

/* The same as etc_resize for sizes of 64 bits; ETC_BAD_ARG also if one is negative or too large. */
EtcStatus etc_resize64(EtcTensor *t, const int64_t *dim, int32_t rank);

/* -- walks ------------------------------------------------------------------------------- */

enum { ETC_WALK = 4 };

/* Up to four tensors walked together; strides are in elements.  Dimensions merge where all
 * tensors allow, so that the innermost is as long as can be. */
typedef struct EtcWalk {
    int32_t rank, n; /* n tensors; the first is the one written */
    int64_t dim[ETC_MAX_RANK];
    int64_t stride[ETC_WALK][ETC_MAX_RANK];
    int64_t index[ETC_MAX_RANK];
    int64_t at[ETC_WALK]; /* offsets of the current innermost row */
} EtcWalk;

/* Over t's sizes, with t as first tensor. */
void etc_walk_init(EtcWalk *w, const EtcTensor *t);
void etc_walk_add(EtcWalk *w, const EtcTensor *t); /* broadcast: its sizes must fit */
void etc_walk_collapse(EtcWalk *w);                /* after the last add; starts the walk */
int etc_walk_next(EtcWalk *w);                     /* 0 after the last innermost row */

/* -- dtypes ------------------------------------------------------------------------------ */

/* The types kernels compute in.  Integers and bool use 64 bits and wrap to the width stored. */
typedef enum EtcKind { ETC_KIND_NONE, ETC_KIND_F32, ETC_KIND_F64, ETC_KIND_I64 } EtcKind;

/* The dtypes of integers and bool, and whether this build has any of them. */
#define ETC_INTS                                                                              \
    ((1u << ETC_U8) | (1u << ETC_I8) | (1u << ETC_I16) | (1u << ETC_I32) | (1u << ETC_I64) |  \
     (1u << ETC_BOOL) | (1u << ETC_U16) | (1u << ETC_U32))
#define ETC_HAS_INTS ((ETC_BUILD_DTYPES & ETC_INTS) != 0u)
#define ETC_HAS_WIDE (ETC_HAS(ETC_F64) || ETC_HAS_INTS) /* what wide.h computes */

/* Returns the kind to compute a dtype in; ETC_KIND_NONE: no kernel computes with it.  (It is
 * defined in the header so that the compiler can remove code for kinds that this build does not
 * have.) */
static inline EtcKind etc_kind(int dtype)
{
    if (dtype == ETC_F32) {
        return ETC_HAS(ETC_F32) ? ETC_KIND_F32 : ETC_KIND_NONE;
    }
    if (dtype == ETC_F64) {
        return ETC_HAS(ETC_F64) ? ETC_KIND_F64 : ETC_KIND_NONE;
    }
    return (ETC_HAS_INTS && (dtype >= 0) && (dtype < 32) && (((ETC_INTS >> dtype) & 1u) != 0u))
               ? ETC_KIND_I64
               : ETC_KIND_NONE;
}

EtcKind etc_cast_kind(int dtype); /* a kind that holds its elements; F32 also for 8 and 16 bits */
int etc_is_f8(int dtype);
int etc_kind_dtype(EtcKind kind);
int etc_is_float(int dtype);
int etc_is_int(int dtype);          /* with bool */
int etc_promote(int a, int b);      /* torch.promote_types; -1 for dtypes not known here */
/* PyTorch's result_type: a tensor without dimensions counts only by its category.  So does a
 * number: it makes an int tensor float, never a float one double. */
int etc_promote_tensors(const EtcTensor *a, const EtcTensor *b);
int etc_promote_number(int dtype, const EtcScalar *s);
int etc_can_cast(int from, int to); /* whether PyTorch would store such a result */

/* n elements from p, `stride` elements apart, as `kind`; a result that needs no change is p
 * itself, others go to buf (8 n bytes). */
const void *etc_fetch_f32(int dtype, const void *p, int64_t stride, int64_t n, void *buf);
const void *etc_fetch_f64(int dtype, const void *p, int64_t stride, int64_t n, void *buf);
const void *etc_fetch_i64(int dtype, const void *p, int64_t stride, int64_t n, void *buf);
void etc_put_f32(const float *x, int dtype, void *p, int64_t stride, int64_t n);
void etc_put_f64(const double *x, int dtype, void *p, int64_t stride, int64_t n);
void etc_put_i64(const int64_t *x, int dtype, void *p, int64_t stride, int64_t n);

static inline const void *etc_fetch(EtcKind kind, int dtype, const void *p, int64_t stride,
                                    int64_t n, void *buf)
{
    return (kind == ETC_KIND_F32)   ? etc_fetch_f32(dtype, p, stride, n, buf)
           : (kind == ETC_KIND_F64) ? etc_fetch_f64(dtype, p, stride, n, buf)
           : (kind == ETC_KIND_I64) ? etc_fetch_i64(dtype, p, stride, n, buf)
                                    : buf;
}

static inline void etc_put(EtcKind kind, const void *buf, int dtype, void *p, int64_t stride,
                           int64_t n)
{
    if (kind == ETC_KIND_F32) {
        etc_put_f32((const float *)buf, dtype, p, stride, n);
    } else if (kind == ETC_KIND_F64) {
        etc_put_f64((const double *)buf, dtype, p, stride, n);
    } else if (kind == ETC_KIND_I64) {
        etc_put_i64((const int64_t *)buf, dtype, p, stride, n);
    }
}

/* `offset` elements of `dtype` after p */
void *etc_at(const EtcTensor *t, int64_t offset);

#endif
