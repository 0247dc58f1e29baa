/* logic.c -- wrappers of comparisons, logical and bitwise ops, where, nonzero and masked_select.
 *
 * Operands are converted to the type that is computed in, which has 64 bits for integers and bool.
 * Results of comparisons, logical and bitwise ops have 64 bits until they are stored.
 */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

enum { CHUNK = 1024 }; /* elements converted at a time */

typedef enum Op {
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    LAND,
    LOR,
    LXOR,
    LNOT,
    BAND,
    BOR,
    BXOR,
    BNOT,
    N_FUNCTIONS
} Op;

/* -- chunks ------------------------------------------------------------------------------ */

typedef void Chunk(const void *a, const void *b, int64_t *y, int64_t n);

#define FUNCTION(name, T, expr)                                                       \
    static void name(const void *pa, const void *pb, int64_t *y, int64_t n)           \
    {                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                             \
            const T a = ((const T *)pa)[i], b = ((const T *)pb)[i];                   \
            (void)b;                                                                  \
            y[i] = (int64_t)(expr);                                                   \
        }                                                                             \
    }
#define TRUTHS(kind, T)                                           \
    FUNCTION(eq_##kind, T, a == b)                                \
    FUNCTION(ne_##kind, T, a != b)                                \
    FUNCTION(lt_##kind, T, a < b)                                 \
    FUNCTION(le_##kind, T, a <= b)                                \
    FUNCTION(gt_##kind, T, a > b)                                 \
    FUNCTION(ge_##kind, T, a >= b)                                \
    FUNCTION(and_##kind, T, (a != (T)0) && (b != (T)0))           \
    FUNCTION(or_##kind, T, (a != (T)0) || (b != (T)0))            \
    FUNCTION(xor_##kind, T, (a != (T)0) != (b != (T)0))           \
    FUNCTION(not_##kind, T, a == (T)0)
#define LIST(kind)                                                                         \
    eq_##kind, ne_##kind, lt_##kind, le_##kind, gt_##kind, ge_##kind, and_##kind, or_##kind, \
        xor_##kind, not_##kind
TRUTHS(f32, float)
TRUTHS(f64, double)
TRUTHS(i64, int64_t)
FUNCTION(bits_and, uint64_t, a & b)
FUNCTION(bits_or, uint64_t, a | b)
FUNCTION(bits_xor, uint64_t, a ^ b)
FUNCTION(bits_not, uint64_t, ~a)

static Chunk *const function_f32[N_FUNCTIONS] = {LIST(f32), NULL, NULL, NULL, NULL};
static Chunk *const function_f64[N_FUNCTIONS] = {LIST(f64), NULL, NULL, NULL, NULL};
static Chunk *const function_i64[N_FUNCTIONS] = {LIST(i64), bits_and, bits_or, bits_xor, bits_not};

/* -- the loop ---------------------------------------------------------------------------- */

typedef struct Job {
    const EtcTensor *a, *b;
    EtcTensor *y;
    int dtype; /* the dtype that is computed in */
    Chunk *fn;
} Job;

/* Broadcasts the sizes in dim with those of t.  Returns 0 if they do not fit. */
static int spread(int64_t *dim, int32_t *rank, const EtcTensor *t)
{
    int64_t both[ETC_MAX_RANK];
    const int32_t n = (*rank > t->rank) ? *rank : t->rank;
    for (int32_t d = 0; d < n; d++) {
        const int32_t iy = d - (n - *rank), it = d - (n - t->rank);
        const int64_t ny = (iy >= 0) ? dim[iy] : 1, nt = (it >= 0) ? t->dim[it] : 1;
        if ((ny != nt) && (ny != 1) && (nt != 1)) {
            return 0;
        }
        both[d] = (ny == 1) ? nt : ny;
    }
    memcpy(dim, both, (size_t)n * sizeof *dim);
    *rank = n;
    return 1;
}

static void run_row(const EtcCall *c, const Job *j, const EtcWalk *w)
{
    const EtcKind kind = etc_kind(j->dtype);
    const int32_t in = w->rank - 1;
    const int64_t n = w->dim[in];
    unsigned char *buf = (unsigned char *)c->scratch;
    int64_t *y = (int64_t *)(void *)(buf + (16 * CHUNK));
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = ((n - i) < CHUNK) ? (n - i) : CHUNK;
        const void *a = etc_fetch(kind, (int)j->a->dtype,
                                  etc_at(j->a, w->at[1] + (i * w->stride[1][in])), w->stride[1][in],
                                  m, buf);
        const void *b = etc_fetch(kind, (int)j->b->dtype,
                                  etc_at(j->b, w->at[2] + (i * w->stride[2][in])), w->stride[2][in],
                                  m, buf + (8 * CHUNK));
        j->fn(a, b, y, m);
        etc_put(ETC_KIND_I64, y, (int)j->y->dtype, etc_at(j->y, w->at[0] + (i * w->stride[0][in])),
                w->stride[0][in], m);
    }
}

/* Computes op of a and b in `dtype` and writes the result to y; a and b broadcast. */
static EtcStatus run(const EtcCall *c, Op op, const EtcTensor *a, const EtcTensor *b, int dtype,
                     EtcTensor *y)
{
    const EtcKind kind = etc_kind(dtype);
    int64_t dim[ETC_MAX_RANK];
    int32_t rank = 0;
    EtcWalk w;
    Job j = {a, b, y, dtype, NULL};
    if ((kind == ETC_KIND_NONE) || (etc_kind((int)a->dtype) == ETC_KIND_NONE) ||
        (etc_kind((int)b->dtype) == ETC_KIND_NONE)) {
        return ETC_UNSUPPORTED;
    }
    j.fn = (kind == ETC_KIND_F32)   ? function_f32[op]
           : (kind == ETC_KIND_F64) ? function_f64[op]
                                    : function_i64[op];
    if ((j.fn == NULL) || (y->dtype != ((op < BAND) ? ETC_BOOL : (EtcDtype)dtype)) ||
        !spread(dim, &rank, a) || !spread(dim, &rank, b)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = etc_resize64(y, dim, rank);
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    etc_walk_init(&w, y);
    etc_walk_add(&w, a);
    etc_walk_add(&w, b);
    etc_walk_collapse(&w);
    do {
        run_row(c, &j, &w);
    } while (etc_walk_next(&w));
    return ETC_OK;
}

/* -- two tensors ------------------------------------------------------------------------- */

/* Arguments: a, b, out. */
static EtcStatus binary(const EtcCall *c, Op op)
{
    EtcTensor *a, *b, *y;
    if (!etc_arg_tensor(c, 0, &a) || !etc_arg_tensor(c, 1, &b) || !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    const int dtype = etc_promote_tensors(a, b);
    return (dtype < 0) ? ETC_UNSUPPORTED : run(c, op, a, b, dtype, y);
}

#define BINARY(name, op)                   \
    EtcStatus etc_##name(const EtcCall *c) \
    {                                      \
        return binary(c, op);              \
    }
BINARY(eq, EQ)
BINARY(ne, NE)
BINARY(lt, LT)
BINARY(le, LE)
BINARY(gt, GT)
BINARY(ge, GE)
BINARY(logical_and, LAND)
BINARY(logical_or, LOR)
BINARY(logical_xor, LXOR)
BINARY(bitwise_and, BAND)
BINARY(bitwise_or, BOR)
BINARY(bitwise_xor, BXOR)

/* -- a tensor and a number --------------------------------------------------------------- */

/* Arguments: a, number, out.  The number is converted to the dtype that is computed in, and may
 * wrap. */
static EtcStatus with_number(const EtcCall *c, Op op)
{
    EtcTensor *a, *y;
    EtcScalar s;
    if (!etc_arg_tensor(c, 0, &a) || !etc_arg_scalar(c, 1, &s) || !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    const int dtype = etc_promote_number((int)a->dtype, &s);
    double room = 0.0;
    EtcTensor b = {0};
    b.dtype = (EtcDtype)dtype;
    b.data = &room;
    if (etc_is_float(dtype)) {
        etc_put(ETC_KIND_F64, &s.d, dtype, &room, 1, 1);
    } else {
        etc_put(ETC_KIND_I64, &s.i, dtype, &room, 1, 1);
    }
    return run(c, op, a, &b, dtype, y);
}

#define WITH_NUMBER(name, op)                       \
    EtcStatus etc_##name##_scalar(const EtcCall *c) \
    {                                               \
        return with_number(c, op);                  \
    }
WITH_NUMBER(eq, EQ)
WITH_NUMBER(ne, NE)
WITH_NUMBER(lt, LT)
WITH_NUMBER(le, LE)
WITH_NUMBER(gt, GT)
WITH_NUMBER(ge, GE)

/* -- one tensor -------------------------------------------------------------------------- */

/* Arguments: a, out. */
static EtcStatus unary(const EtcCall *c, Op op)
{
    EtcTensor *a, *y;
    if (!etc_arg_tensor(c, 0, &a) || !etc_arg_tensor(c, 1, &y)) {
        return ETC_BAD_ARG;
    }
    return run(c, op, a, a, (int)a->dtype, y);
}

EtcStatus etc_logical_not(const EtcCall *c)
{
    return unary(c, LNOT);
}

/* Inverts all bits of integers, and the truth value of bools. */
EtcStatus etc_bitwise_not(const EtcCall *c)
{
    EtcTensor *a;
    const int is_bool = etc_arg_tensor(c, 0, &a) && (a->dtype == ETC_BOOL);
    return unary(c, is_bool ? LNOT : BNOT);
}

/* -- where ------------------------------------------------------------------------------- */

#define CHOOSE(kind, T)                                                                        \
    static void choose_##kind(const uint8_t *p, int64_t step, const void *a, const void *b,    \
                              void *y, int64_t n)                                              \
    {                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                      \
            ((T *)y)[i] = (p[i * step] != 0) ? ((const T *)a)[i] : ((const T *)b)[i];          \
        }                                                                                      \
    }
CHOOSE(f32, float)
CHOOSE(f64, double)
CHOOSE(i64, int64_t)

/* Computes one innermost row of y; w walks y, a, b and the condition. */
static void where_row(const EtcCall *c, const Job *j, const EtcTensor *p, const EtcWalk *w)
{
    const EtcKind kind = etc_cast_kind(j->dtype);
    const int32_t in = w->rank - 1;
    const int64_t n = w->dim[in], sy = w->stride[0][in], sp = w->stride[3][in];
    unsigned char *buf = (unsigned char *)c->scratch;
    const int is_direct = ((int)j->y->dtype == etc_kind_dtype(kind)) && (sy == 1);
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = ((n - i) < CHUNK) ? (n - i) : CHUNK;
        const void *a = etc_fetch(kind, (int)j->a->dtype,
                                  etc_at(j->a, w->at[1] + (i * w->stride[1][in])), w->stride[1][in],
                                  m, buf);
        const void *b = etc_fetch(kind, (int)j->b->dtype,
                                  etc_at(j->b, w->at[2] + (i * w->stride[2][in])), w->stride[2][in],
                                  m, buf + (8 * CHUNK));
        const uint8_t *truth = (const uint8_t *)etc_at(p, w->at[3] + (i * sp));
        void *to = etc_at(j->y, w->at[0] + (i * sy));
        void *y = is_direct ? to : (void *)(buf + (16 * CHUNK));
        if (kind == ETC_KIND_F32) {
            choose_f32(truth, sp, a, b, y, m);
        } else if (kind == ETC_KIND_F64) {
            choose_f64(truth, sp, a, b, y, m);
        } else {
            choose_i64(truth, sp, a, b, y, m);
        }
        if (!is_direct) {
            etc_put(kind, y, (int)j->y->dtype, to, sy, m);
        }
    }
}

/* Arguments: condition, a, b, out. */
EtcStatus etc_where(const EtcCall *c)
{
    EtcTensor *p, *a, *b, *y;
    int64_t dim[ETC_MAX_RANK];
    int32_t rank = 0;
    EtcWalk w;
    if (!etc_arg_tensor(c, 0, &p) || !etc_arg_tensor(c, 1, &a) || !etc_arg_tensor(c, 2, &b) ||
        !etc_arg_tensor(c, 3, &y) || ((p->dtype != ETC_BOOL) && (p->dtype != ETC_U8)) ||
        !spread(dim, &rank, p) || !spread(dim, &rank, a) || !spread(dim, &rank, b)) {
        return ETC_BAD_ARG;
    }
    const Job j = {a, b, y, etc_promote_tensors(a, b), NULL};
    if ((j.dtype < 0) || (etc_cast_kind(j.dtype) == ETC_KIND_NONE) ||
        (etc_cast_kind((int)a->dtype) == ETC_KIND_NONE) ||
        (etc_cast_kind((int)b->dtype) == ETC_KIND_NONE)) {
        return ETC_UNSUPPORTED;
    }
    EtcStatus st = ((int)y->dtype == j.dtype) ? etc_resize64(y, dim, rank) : ETC_BAD_ARG;
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    etc_walk_init(&w, y);
    etc_walk_add(&w, a);
    etc_walk_add(&w, b);
    etc_walk_add(&w, p);
    etc_walk_collapse(&w);
    do {
        where_row(c, &j, p, &w);
    } while (etc_walk_next(&w));
    return ETC_OK;
}

/* -- what is true ------------------------------------------------------------------------ */

/* Returns one number for each of the m elements from `at` on: 0 if the element is true, else 1. */
static const int64_t *untruths(const EtcCall *c, const EtcTensor *x, int64_t at, int64_t m)
{
    const EtcKind kind = etc_cast_kind((int)x->dtype);
    unsigned char *buf = (unsigned char *)c->scratch;
    int64_t *y = (int64_t *)(void *)(buf + (8 * CHUNK));
    const void *a = etc_fetch(kind, (int)x->dtype, etc_at(x, at), 1, m, buf);
    Chunk *const is_false = (kind == ETC_KIND_F32)   ? not_f32
                            : (kind == ETC_KIND_F64) ? not_f64
                                                     : not_i64;
    is_false(a, a, y, m);
    return y;
}

static int64_t count_true(const EtcCall *c, const EtcTensor *x)
{
    const int64_t n = etc_numel(x);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = ((n - i) < CHUNK) ? (n - i) : CHUNK;
        const int64_t *is_false = untruths(c, x, i, m);
        for (int64_t k = 0; k < m; k++) {
            count += (is_false[k] == 0);
        }
    }
    return count;
}

/* Writes the indices of element `at` along all axes to y. */
static void put_place(const EtcTensor *x, int64_t at, int64_t *y)
{
    for (int32_t d = x->rank - 1; d >= 0; d--) {
        y[d] = at % x->dim[d];
        at /= x->dim[d];
    }
}

/* Arguments: x, out.  out gets a row of indices for each element that is not zero. */
EtcStatus etc_nonzero(const EtcCall *c)
{
    EtcTensor *x, *y;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &y) || (y->dtype != ETC_I64)) {
        return ETC_BAD_ARG;
    }
    if ((etc_cast_kind((int)x->dtype) == ETC_KIND_NONE) || !etc_is_plain(x)) {
        return ETC_UNSUPPORTED;
    }
    const int64_t size[2] = {count_true(c, x), x->rank}, n = etc_numel(x);
    const EtcStatus st = etc_resize64(y, size, 2);
    if (st != ETC_OK) {
        return st;
    }
    if (!etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    int64_t *to = (int64_t *)y->data;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = ((n - i) < CHUNK) ? (n - i) : CHUNK;
        const int64_t *is_false = untruths(c, x, i, m);
        for (int64_t k = 0; k < m; k++) {
            if (is_false[k] == 0) {
                put_place(x, i + k, to);
                to += x->rank;
            }
        }
    }
    return ETC_OK;
}

/* Broadcasts the sizes of x and mask into dim, and sets *n to the number of elements.  Returns 0 if
 * the sizes do not fit, and -1 if the number overflows. */
static int spread_mask(const EtcTensor *x, const EtcTensor *mask, int32_t *dim, int32_t *rank,
                       int64_t *n)
{
    int64_t both[ETC_MAX_RANK];
    int is_empty = 0;
    *rank = 0;
    *n = 1;
    if (!spread(both, rank, x) || !spread(both, rank, mask)) {
        return 0;
    }
    for (int32_t d = 0; d < *rank; d++) {
        dim[d] = (int32_t)both[d];
        is_empty = is_empty || (both[d] == 0);
    }
    for (int32_t d = 0; (d < *rank) && !is_empty; d++) {
        if (__builtin_mul_overflow(*n, both[d], n)) {
            return -1;
        }
    }
    *n = is_empty ? 0 : *n;
    return 1;
}

/* Copies the elements that the mask selects to `to`, or only counts them if `to` is NULL.  Returns
 * their number. */
static int64_t select_rows(const EtcTensor *wide, const EtcTensor *x, const EtcTensor *mask,
                           unsigned char *to)
{
    const size_t size = etc_dtype_size((int)x->dtype);
    const uint8_t *const is_in = (const uint8_t *)mask->data;
    int64_t count = 0;
    EtcWalk w;
    etc_walk_init(&w, wide);
    etc_walk_add(&w, x);
    etc_walk_add(&w, mask);
    etc_walk_collapse(&w);
    const int32_t in = w.rank - 1;
    do {
        for (int64_t i = 0; i < w.dim[in]; i++) {
            if (is_in[w.at[2] + (i * w.stride[2][in])] == 0) {
                continue;
            }
            if (to != NULL) {
                memcpy(to + ((size_t)count * size), etc_at(x, w.at[1] + (i * w.stride[1][in])), size);
            }
            count++;
        }
    } while (etc_walk_next(&w));
    return count;
}

/* Arguments: x, mask, out. */
EtcStatus etc_masked_select(const EtcCall *c)
{
    EtcTensor *x, *mask, *y, wide;
    int32_t dim[ETC_MAX_RANK];
    int64_t n;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &mask) || !etc_arg_tensor(c, 2, &y) ||
        (mask->dtype != ETC_BOOL) || (y->dtype != x->dtype)) {
        return ETC_BAD_ARG;
    }
    memset(&wide, 0, sizeof wide);
    wide.dim = dim;
    const int fits = spread_mask(x, mask, dim, &wide.rank, &n);
    if (fits <= 0) {
        return (fits == 0) ? ETC_BAD_ARG : ETC_TOO_MUCH;
    }
    if (((n > etc_numel(x)) || (n > etc_numel(mask))) && !etc_may_work(c, n, 2)) {
        return ETC_TOO_MUCH;
    }
    const int64_t count = (n > 0) ? select_rows(&wide, x, mask, NULL) : 0;
    const EtcStatus st = etc_resize64(y, &count, 1);
    if ((st == ETC_OK) && (count > 0)) {
        (void)select_rows(&wide, x, mask, (unsigned char *)y->data);
    }
    return st;
}
