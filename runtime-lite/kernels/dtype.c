/* dtype.c -- promotion, casts, and moving elements between the stored and the computed type. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/f8.h"
#include "runtime-lite/kernels/half.h"

EtcKind etc_cast_kind(int dtype)
{
    const int is_short = (dtype == ETC_F16) || (dtype == ETC_BF16) || (etc_is_f8(dtype) != 0);
    return is_short ? ETC_KIND_F32 : (dtype == ETC_U64) ? etc_kind(ETC_I64) : etc_kind(dtype);
}

int etc_kind_dtype(EtcKind kind)
{
    return (kind == ETC_KIND_F32) ? ETC_F32 : (kind == ETC_KIND_F64) ? ETC_F64 : ETC_I64;
}

int etc_is_float(int dtype)
{
    return (dtype == ETC_F32) || (dtype == ETC_F64);
}

int etc_is_f8(int dtype)
{
    return (dtype >= ETC_F8E5M2) && (dtype <= ETC_F8E4M3FNUZ);
}

int etc_is_int(int dtype)
{
    return etc_kind(dtype) == ETC_KIND_I64;
}

/* Returns the dtype that comes later in rank_of; u8 and i8 give i16, which holds the values of
 * both. */
int etc_promote(int a, int b)
{
    static const int rank_of[] = {ETC_BOOL, ETC_U8, ETC_I8, ETC_I16, ETC_I32, ETC_I64, ETC_F32,
                                  ETC_F64};
    int ra = -1, rb = -1;
    for (int i = 0; i < 8; i++) {
        ra = (rank_of[i] == a) ? i : ra;
        rb = (rank_of[i] == b) ? i : rb;
    }
    if (a == b) {
        return a;
    }
    if ((ra < 0) || (rb < 0)) {
        return -1;
    }
    int hi = (ra > rb) ? ra : rb, lo = (ra > rb) ? rb : ra;
    return ((hi == 2) && (lo == 1)) ? ETC_I16 : rank_of[hi];
}

static int category(int dtype)
{
    return (dtype == ETC_BOOL) ? 0 : (etc_is_int(dtype) ? 1 : 2);
}

int etc_promote_tensors(const EtcTensor *a, const EtcTensor *b)
{
    int da = (int)a->dtype, db = (int)b->dtype;
    if (((a->rank == 0) != (b->rank == 0)) && (category(da) != category(db))) {
        return (category(da) > category(db)) ? da : db;
    }
    if ((a->rank == 0) != (b->rank == 0)) {
        return (a->rank == 0) ? db : da;
    }
    return etc_promote(da, db);
}

int etc_promote_number(int dtype, const EtcScalar *s)
{
    if (s->is_float) {
        return etc_is_float(dtype) ? dtype : ETC_F32;
    }
    return ((dtype == ETC_BOOL) && !s->is_bool) ? ETC_I64 : dtype;
}

int etc_can_cast(int from, int to)
{
    return !(etc_is_float(from) && !etc_is_float(to)) && !((from != ETC_BOOL) && (to == ETC_BOOL));
}

/* X gets a dtype and its C type. */
#define FLOATS(X) X(ETC_F32, float) X(ETC_F64, double)
#define INTS(X)                                                                          \
    X(ETC_U8, uint8_t) X(ETC_I8, int8_t) X(ETC_I16, int16_t) X(ETC_I32, int32_t)         \
    X(ETC_I64, int64_t) X(ETC_U16, uint16_t) X(ETC_U32, uint32_t)

/* In each function, T is the type that is computed in, and n and stride are those of etc_fetch. */
#define FETCH(dtype, S)                                           \
    case dtype: {                                                 \
        const S *x = (const S *)p;                                \
        for (int64_t i = 0; ETC_HAS(dtype) && (i < n); i++) {     \
            y[i] = (T)x[i * stride];                              \
        }                                                         \
        break;                                                    \
    }
#define FETCH_BOOL                                                \
    case ETC_BOOL: {                                              \
        const uint8_t *x = (const uint8_t *)p;                    \
        for (int64_t i = 0; ETC_HAS(ETC_BOOL) && (i < n); i++) {  \
            y[i] = (T)((x[i * stride] != 0) ? 1 : 0);             \
        }                                                         \
        break;                                                    \
    }
#define PUT(dtype, S, convert)                                    \
    case dtype: {                                                 \
        S *y = (S *)p;                                            \
        for (int64_t i = 0; ETC_HAS(dtype) && (i < n); i++) {     \
            y[i * stride] = (S)convert(x[i]);                     \
        }                                                         \
        break;                                                    \
    }
#define PUT_BOOL                                                  \
    case ETC_BOOL: {                                              \
        uint8_t *y = (uint8_t *)p;                                \
        for (int64_t i = 0; ETC_HAS(ETC_BOOL) && (i < n); i++) {  \
            y[i * stride] = (uint8_t)((x[i] != 0) ? 1 : 0);       \
        }                                                         \
        break;                                                    \
    }
#define PUT_AS_IS(dtype, S) PUT(dtype, S, )
#define PUT_FROM_FLOAT(dtype, S) PUT(dtype, S, to_int)

/* Truncates d.  A value that no int64 holds gives INT64_MIN, as on x86. */
static int64_t to_int(double d)
{
    return ((d >= -9223372036854775808.0) && (d < 9223372036854775808.0)) ? (int64_t)d : INT64_MIN;
}

/* Truncates a value from 2^63 to below 2^64; converts all others as to_int does. */
static uint64_t to_uint(double d)
{
    const double half = 9223372036854775808.0;
    return ((d >= half) && (d < (2.0 * half))) ? ((uint64_t)(d - half) + ((uint64_t)1 << 63))
                                               : (uint64_t)to_int(d);
}

#define FETCH_SHORT(dtype, convert)                               \
    case dtype: {                                                 \
        const uint16_t *x = (const uint16_t *)p;                  \
        for (int64_t i = 0; ETC_HAS(dtype) && (i < n); i++) {     \
            y[i] = convert(x[i * stride]);                        \
        }                                                         \
        break;                                                    \
    }
#define PUT_SHORTS                                                \
    PUT(ETC_F16, uint16_t, TO_HALF) PUT(ETC_BF16, uint16_t, TO_BFLOAT) \
    PUT_F8(ETC_F8E5M2) PUT_F8(ETC_F8E4M3FN) PUT_F8(ETC_F8E5M2FNUZ) PUT_F8(ETC_F8E4M3FNUZ)
#define TO_HALF(v) etc_to_half((float)(v))
#define TO_BFLOAT(v) etc_to_bfloat((float)(v))
#define PUT_F8(dtype)                                             \
    case dtype: {                                                 \
        uint8_t *y = (uint8_t *)p;                                \
        for (int64_t i = 0; ETC_HAS(dtype) && (i < n); i++) {     \
            y[i * stride] = to_f8(dtype, (float)x[i]);            \
        }                                                         \
        break;                                                    \
    }
#define FETCH_F8(dtype)                                           \
    case dtype: {                                                 \
        const uint8_t *x = (const uint8_t *)p;                    \
        for (int64_t i = 0; ETC_HAS(dtype) && (i < n); i++) {     \
            y[i] = (T)from_f8(dtype, x[i * stride]);              \
        }                                                         \
        break;                                                    \
    }

static uint32_t f8_digits(int dtype)
{
    return ((dtype == ETC_F8E5M2) || (dtype == ETC_F8E5M2FNUZ)) ? 2u : 3u;
}

static uint32_t is_fnuz(int dtype)
{
    return ((dtype == ETC_F8E5M2FNUZ) || (dtype == ETC_F8E4M3FNUZ)) ? 1u : 0u;
}

static float from_f8(int dtype, uint8_t b)
{
    return etc_from_f8(b, f8_digits(dtype), is_fnuz(dtype));
}

static uint8_t to_f8(int dtype, float x)
{
    return etc_to_f8(x, f8_digits(dtype), is_fnuz(dtype));
}

const void *etc_fetch_f32(int dtype, const void *p, int64_t stride, int64_t n, void *buf)
{
    typedef float T;
    T *y = (T *)buf;
    if ((stride == 1) && (dtype == ETC_F32)) {
        return p;
    }
    switch (dtype) {
        FLOATS(FETCH) INTS(FETCH) FETCH(ETC_U64, uint64_t) FETCH_BOOL
        FETCH_SHORT(ETC_F16, etc_from_half) FETCH_SHORT(ETC_BF16, etc_from_bfloat)
        FETCH_F8(ETC_F8E5M2) FETCH_F8(ETC_F8E4M3FN)
        FETCH_F8(ETC_F8E5M2FNUZ) FETCH_F8(ETC_F8E4M3FNUZ)
    default:
        break;
    }
    return buf;
}

const void *etc_fetch_f64(int dtype, const void *p, int64_t stride, int64_t n, void *buf)
{
    typedef double T;
    T *y = (T *)buf;
    if ((stride == 1) && (dtype == ETC_F64)) {
        return p;
    }
    switch (dtype) {
        FLOATS(FETCH) INTS(FETCH) FETCH(ETC_U64, uint64_t) FETCH_BOOL
        FETCH_SHORT(ETC_F16, etc_from_half) FETCH_SHORT(ETC_BF16, etc_from_bfloat)
        FETCH_F8(ETC_F8E5M2) FETCH_F8(ETC_F8E4M3FN)
        FETCH_F8(ETC_F8E5M2FNUZ) FETCH_F8(ETC_F8E4M3FNUZ)
    default:
        break;
    }
    return buf;
}

const void *etc_fetch_i64(int dtype, const void *p, int64_t stride, int64_t n, void *buf)
{
    typedef int64_t T;
    T *y = (T *)buf;
    if ((stride == 1) && (dtype == ETC_I64)) {
        return p;
    }
    switch (dtype) {
        INTS(FETCH) FETCH(ETC_U64, uint64_t) FETCH_BOOL
    default:
        break;
    }
    return buf;
}

void etc_put_f32(const float *x, int dtype, void *p, int64_t stride, int64_t n)
{
    switch (dtype) {
        FLOATS(PUT_AS_IS) INTS(PUT_FROM_FLOAT) PUT(ETC_U64, uint64_t, to_uint) PUT_BOOL PUT_SHORTS
    default:
        break;
    }
}

void etc_put_f64(const double *x, int dtype, void *p, int64_t stride, int64_t n)
{
    switch (dtype) {
        FLOATS(PUT_AS_IS) INTS(PUT_FROM_FLOAT) PUT(ETC_U64, uint64_t, to_uint) PUT_BOOL PUT_SHORTS
    default:
        break;
    }
}

void etc_put_i64(const int64_t *x, int dtype, void *p, int64_t stride, int64_t n)
{
    switch (dtype) {
        FLOATS(PUT_AS_IS) INTS(PUT_AS_IS) PUT_AS_IS(ETC_U64, uint64_t) PUT_BOOL PUT_SHORTS
    default:
        break;
    }
}
