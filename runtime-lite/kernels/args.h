/* args.h -- functions that the kernels' wrappers share: reading arguments, shapes, walks over
 * strided tensors, dtypes.
 *
 * The readers return 1, or 0 if the argument is missing or of another kind; the wrapper then
 * returns ETC_BAD_ARG.  Nothing here is part of emitted C. */
#ifndef ETC_ARGS_H
#define ETC_ARGS_H

#include "runtime-lite/etc_build.h"
#include "runtime-lite/etc_rt.h"

/* -- arguments --------------------------------------------------------------------------- */

typedef struct EtcScalar {
    int is_float, is_bool;
    double d; /* d and i both hold the number; i saturates */
    int64_t i;
} EtcScalar;

typedef struct EtcInts {
    int32_t n; /* -1: the argument was None */
    int64_t v[ETC_MAX_RANK];
} EtcInts;

int etc_arg_tensor(const EtcCall *c, int32_t i, EtcTensor **t);
int etc_arg_opt_tensor(const EtcCall *c, int32_t i, EtcTensor **t); /* None: *t is NULL */
int etc_arg_int(const EtcCall *c, int32_t i, int64_t *v);
int etc_arg_opt_int(const EtcCall *c, int32_t i, int64_t *v, int *is_given);
int etc_arg_bool(const EtcCall *c, int32_t i, int *v);
int etc_arg_double(const EtcCall *c, int32_t i, double *v); /* accepts an int or bool too */
int etc_arg_scalar(const EtcCall *c, int32_t i, EtcScalar *s);
int etc_arg_opt_scalar(const EtcCall *c, int32_t i, EtcScalar *s); /* None: *s is unchanged */
int etc_arg_ints(const EtcCall *c, int32_t i, EtcInts *v); /* accepts None too: n is -1 */

/* Reads a list of exactly n doubles, or None. */
int etc_arg_opt_doubles(const EtcCall *c, int32_t i, int32_t n, double *v, int *is_given);

/* Counts n times `each` element operations as work.  Returns 0 if this exceeds the work that the
 * call may do; the kernel then returns ETC_TOO_MUCH.  Only kernels whose work exceeds the number
 * of elements of their tensors call it. */
int etc_may_work(const EtcCall *c, int64_t n, int64_t each);

/* Reads a list of at most two ints as a pair.  A single int counts twice; an empty list or None
 * gives `dflt` twice.  The ints must be from `lo` to INT32_MAX. */
int etc_arg_pair(const EtcCall *c, int32_t i, int64_t lo, int64_t dflt, int64_t v[2]);

/* -- shapes ------------------------------------------------------------------------------ */

/* Returns dim as an index from 0, or -1 if it is out of range.  A negative dim counts from the
 * end; rank 0 counts as 1. */
int32_t etc_dim(int64_t dim, int32_t rank);
int etc_is_plain(const EtcTensor *t);                        /* t is row-major without gaps */
int etc_same_layout(const EtcTensor *a, const EtcTensor *b); /* same sizes and memory order */
void etc_strides(const EtcTensor *t, int64_t *stride);       /* sets strides in elements */

/* Does the same as etc_resize for sizes of 64 bits.  Returns ETC_BAD_ARG also if a size is negative
 * or too large. */
EtcStatus etc_resize64(EtcTensor *t, const int64_t *dim, int32_t rank);

/* -- walks ------------------------------------------------------------------------------- */

enum { ETC_WALK = 4 };

/* A walk over up to four tensors together.  Strides are in elements.  Adjacent dimensions are
 * merged if the strides of all tensors allow it, so that the innermost one is as long as
 * possible. */
typedef struct EtcWalk {
    int32_t rank, n; /* n: the number of tensors, of which the first is written */
    int64_t dim[ETC_MAX_RANK];
    int64_t stride[ETC_WALK][ETC_MAX_RANK];
    int64_t index[ETC_MAX_RANK];
    int64_t at[ETC_WALK]; /* the offsets of the current innermost row */
} EtcWalk;

/* Starts a walk over t's sizes, with t as its first tensor. */
void etc_walk_init(EtcWalk *w, const EtcTensor *t);
void etc_walk_add(EtcWalk *w, const EtcTensor *t); /* t is broadcast; its sizes must allow it */
void etc_walk_collapse(EtcWalk *w);                /* merges dimensions, after the last add */
int etc_walk_next(EtcWalk *w);                     /* returns 0 after the last innermost row */

/* -- dtypes ------------------------------------------------------------------------------ */

/* The types that kernels compute in.  Integers and bool use 64 bits; results wrap to the width
 * that is stored. */
typedef enum EtcKind { ETC_KIND_NONE, ETC_KIND_F32, ETC_KIND_F64, ETC_KIND_I64 } EtcKind;

/* The dtypes of integers and bool, and whether this build has any of them. */
#define ETC_INTS                                                                              \
    ((1u << ETC_U8) | (1u << ETC_I8) | (1u << ETC_I16) | (1u << ETC_I32) | (1u << ETC_I64) |  \
     (1u << ETC_BOOL) | (1u << ETC_U16) | (1u << ETC_U32))
#define ETC_HAS_INTS ((ETC_BUILD_DTYPES & ETC_INTS) != 0u)
#define ETC_HAS_WIDE (ETC_HAS(ETC_F64) || ETC_HAS_INTS) /* whether wide.h is needed */

/* Returns the kind in which kernels compute with a dtype, or ETC_KIND_NONE if no kernel computes
 * with it.  (It is defined in the header so that the compiler can remove code for kinds that this
 * build does not have.) */
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

EtcKind etc_cast_kind(int dtype); /* a kind that can hold the dtype: F32 for short floats */
int etc_is_f8(int dtype);
int etc_kind_dtype(EtcKind kind);
int etc_is_float(int dtype);
int etc_is_int(int dtype);          /* true for bool too */
int etc_promote(int a, int b);      /* as torch.promote_types; -1 for dtypes not known here */
/* Return the dtype of a result as PyTorch's result_type does.  A tensor without dimensions counts
 * only by its category (bool, int or float).  So does a number: it turns an int tensor into float,
 * but never a float tensor into double. */
int etc_promote_tensors(const EtcTensor *a, const EtcTensor *b);
int etc_promote_number(int dtype, const EtcScalar *s);
int etc_can_cast(int from, int to); /* whether PyTorch stores a result of `from` as `to` */

/* etc_fetch_... returns n elements from p, `stride` elements apart, converted to a kind.  It
 * returns p itself if nothing has to be converted; otherwise it writes the elements into buf,
 * which has 8 n bytes.  etc_put_... converts n results x and stores them in the same way. */
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

/* Returns the address of the element of t at `offset` elements. */
void *etc_at(const EtcTensor *t, int64_t offset);

#endif
