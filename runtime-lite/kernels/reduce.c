/* reduce.c -- wrappers of sum, mean, product, amax, amin, any and variance over any dimensions.
 *
 * The terms of an output are taken in row-major order of the reduced dimensions, in chunks of whole
 * blocks of reduce.h.  Contiguous terms are read in place.
 */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

typedef enum Op { SUM, MEAN, AMAX, AMIN, PROD, ANY, VAR } Op; /* ANY: the result is in i64 */

/* The state of one output, in the type that is computed in. */
typedef struct State {
    Op op;
    EtcKind kind;
    int64_t n;
    double less, mean; /* VAR: they are subtracted from the count and from the terms */
    int is_second;     /* VAR: the second pass, which adds squares of (term - mean) */
    EtcSum f32;
    double f64[16];
    uint64_t i64;
    float top;
} State;

/* Returns whether the terms are joined in one number, not in lanes. */
static int is_single(Op op)
{
    return (op == AMAX) || (op == AMIN) || (op == PROD);
}

static void start(State *s)
{
    s->n = 0;
    etc_sum_start(&s->f32);
    memset(s->f64, 0, sizeof s->f64);
    s->i64 = (s->op == AMAX)   ? (uint64_t)INT64_MIN
             : (s->op == AMIN) ? (uint64_t)INT64_MAX
                               : (uint64_t)(s->op == PROD);
    s->f64[0] = (s->op == AMAX)   ? -__builtin_inf()
                : (s->op == AMIN) ? __builtin_inf()
                                  : (double)(s->op == PROD);
    s->top = (float)s->f64[0];
}

static double joined(Op op, double a, double b)
{
    if (op == PROD) {
        return a * b;
    }
    return (((op == AMAX) ? (a > b) : (a < b)) || (a != a)) ? a : b;
}

static void take_f64(State *s, const double *x, int64_t n)
{
    double part[16] = {0.0};
    for (int64_t i = 0; i < n; i++) {
        if (is_single(s->op)) {
            s->f64[0] = joined(s->op, s->f64[0], x[i]);
        } else {
            part[i % 16] += x[i];
        }
    }
    for (int i = 0; !is_single(s->op) && (i < 16); i++) {
        s->f64[i] += part[i];
    }
}

static void take_i64(State *s, const int64_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t y = (int64_t)s->i64;
        if (s->op == PROD) {
            s->i64 *= (uint64_t)x[i];
        } else if (!is_single(s->op)) {
            s->i64 += (uint64_t)x[i];
        } else if ((s->op == AMAX) ? (x[i] > y) : (x[i] < y)) {
            s->i64 = (uint64_t)x[i];
        }
    }
}

static void take_f32(State *s, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        s->top = (s->op == PROD) ? (s->top * x[i]) : (float)joined(s->op, (double)s->top, (double)x[i]);
    }
}

/* Returns the squares of n terms minus the mean; n is at most a block. */
static const void *squares(const EtcCall *c, const State *s, const void *x, int64_t n)
{
    float *f = (float *)c->scratch + (2 * ETC_SUM_BLOCK), mean = (float)s->mean;
    double *d = (double *)c->scratch + ETC_SUM_BLOCK;
    for (int64_t i = 0; i < n; i++) {
        if (s->kind == ETC_KIND_F64) {
            const double v = ((const double *)x)[i] - s->mean;
            d[i] = v * v;
        } else {
            const float v = ((const float *)x)[i] - mean;
            f[i] = v * v;
        }
    }
    return (s->kind == ETC_KIND_F64) ? (const void *)d : (const void *)f;
}

static void take_any(State *s, const void *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int is_set = (s->kind == ETC_KIND_F32)   ? (((const float *)x)[i] != 0.0f)
                           : (s->kind == ETC_KIND_F64) ? (((const double *)x)[i] != 0.0)
                                                       : (((const int64_t *)x)[i] != 0);
        s->i64 = (is_set != 0) ? 1u : s->i64;
    }
}

static void take(const EtcCall *c, State *s, const void *x, int64_t n)
{
    s->n += n;
    if (s->is_second) {
        x = squares(c, s, x, n);
    }
    if (s->op == ANY) {
        take_any(s, x, n);
    } else if (s->kind == ETC_KIND_F64) {
        take_f64(s, (const double *)x, n);
    } else if (s->kind == ETC_KIND_I64) {
        take_i64(s, (const int64_t *)x, n);
    } else if (s->op == AMAX) {
        s->top = etc_cores_of(c)->amax((const float *)x, n, s->top);
    } else if (is_single(s->op)) {
        take_f32(s, (const float *)x, n);
    } else {
        etc_cores_of(c)->sum((const float *)x, n, &s->f32);
    }
}

static double end_f64(double *lane)
{
    for (int w = 8; w > 0; w /= 2) {
        for (int i = 0; i < w; i++) {
            lane[i] += lane[i + w];
        }
    }
    return lane[0];
}

static void finish(State *s, EtcTensor *y, int64_t at)
{
    const double count = (double)s->n - s->less, by = (count > 0.0) ? count : 0.0;
    const int is_divided = (s->op == MEAN) || (s->op == VAR);
    const float f = is_single(s->op) ? s->top
                    : is_divided     ? (etc_sum_end(&s->f32) / (float)by)
                                     : etc_sum_end(&s->f32);
    const double d = is_single(s->op) ? s->f64[0]
                     : is_divided     ? (end_f64(s->f64) / by)
                                      : end_f64(s->f64);
    const void *from = (s->kind == ETC_KIND_F32)   ? (const void *)&f
                       : (s->kind == ETC_KIND_F64) ? (const void *)&d
                                                   : (const void *)&s->i64;
    if (s->op == ANY) {
        etc_put(ETC_KIND_I64, &s->i64, (int)y->dtype, etc_at(y, at), 1, 1);
        return;
    }
    etc_put(s->kind, from, (int)y->dtype, etc_at(y, at), 1, 1);
}

/* Takes all terms of the output whose first term is at `base`; w walks the reduced dimensions. */
static void gather(const EtcCall *c, State *s, const EtcTensor *x, int64_t base, EtcWalk w)
{
    enum { CHUNK = ETC_SUM_BLOCK };
    const int64_t n = w.dim[w.rank - 1], step = w.stride[0][w.rank - 1];
    const int64_t size = (s->kind == ETC_KIND_F32) ? 4 : 8;
    unsigned char *buf = (unsigned char *)c->scratch;
    int64_t fill = 0;
    if ((w.rank == 1) && (step == 1) && ((int)x->dtype == etc_kind_dtype(s->kind))) {
        for (int64_t i = 0; i < n; i += CHUNK) {
            take(c, s, etc_at(x, base + i), etc_min_i64(n - i, CHUNK));
        }
        return;
    }
    do {
        for (int64_t i = 0; i < n;) {
            const int64_t m = etc_min_i64(n - i, CHUNK - fill);
            unsigned char *to = buf + (fill * size);
            const void *from = etc_at(x, base + w.at[0] + (i * step));
            const void *got = etc_fetch(s->kind, (int)x->dtype, from, step, m, to);
            if (got != (const void *)to) {
                memcpy(to, got, (size_t)(m * size));
            }
            fill += m;
            i += m;
            if (fill == CHUNK) {
                take(c, s, buf, fill);
                fill = 0;
            }
        }
    } while (etc_walk_next(&w));
    take(c, s, buf, fill);
}

/* Sets the bits of the dimensions that are reduced; None and an empty list mean all.  Returns 0 if
 * a dimension is out of range or named twice. */
static int reduced(const EtcInts *dims, int32_t rank, uint32_t *bits)
{
    *bits = 0;
    for (int32_t i = 0; i < dims->n; i++) {
        int32_t d = etc_dim(dims->v[i], rank);
        if ((d < 0) || ((*bits & (1u << d)) != 0u)) {
            return 0;
        }
        *bits |= 1u << d;
    }
    if (dims->n <= 0) {
        *bits = (1u << rank) - 1u;
    }
    return 1;
}

/* Splits x's dimensions into those kept, whose walk visits the outputs, and those reduced.  Resizes
 * y. */
static EtcStatus split(const EtcTensor *x, uint32_t bits, int keep, EtcTensor *y, EtcWalk *outer,
                       EtcWalk *inner)
{
    int64_t stride[ETC_MAX_RANK], size[ETC_MAX_RANK];
    int32_t n = 0;
    memset(outer, 0, sizeof *outer);
    memset(inner, 0, sizeof *inner);
    outer->n = 1;
    inner->n = 1;
    etc_strides(x, stride);
    for (int32_t d = 0; d < x->rank; d++) {
        const int is_out = (bits & (1u << d)) != 0u;
        EtcWalk *w = is_out ? inner : outer;
        w->dim[w->rank] = x->dim[d];
        w->stride[0][w->rank] = stride[d];
        w->rank++;
        if (!is_out || keep) {
            size[n++] = is_out ? 1 : x->dim[d];
        }
    }
    etc_walk_collapse(outer);
    etc_walk_collapse(inner);
    return etc_resize64(y, size, n);
}

/* Runs the first pass of a variance, which computes the mean of all terms. */
static void find_mean(const EtcCall *c, State *s, const EtcTensor *x, int64_t base,
                      const EtcWalk *inner)
{
    s->is_second = 0;
    start(s);
    gather(c, s, x, base, *inner);
    s->mean = (s->kind == ETC_KIND_F64) ? (end_f64(s->f64) / (double)s->n)
                                        : (double)(etc_sum_end(&s->f32) / (float)s->n);
    s->is_second = 1;
}

static EtcStatus run(const EtcCall *c, Op op, double less, const EtcTensor *x, const EtcInts *dims,
                     int keep, EtcTensor *y)
{
    EtcWalk outer, inner;
    State s;
    uint32_t bits;
    if (!reduced(dims, x->rank, &bits)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = split(x, bits, keep, y, &outer, &inner);
    if (st != ETC_OK) {
        return st;
    }
    s.op = op;
    s.less = less;
    s.is_second = 0;
    s.kind = etc_kind((int)((op == ANY) ? x->dtype : y->dtype));
    if ((s.kind == ETC_KIND_NONE) || (etc_kind((int)x->dtype) == ETC_KIND_NONE) ||
        !etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if ((op == ANY) ? ((y->dtype != ETC_BOOL) && (y->dtype != ETC_U8))
                    : (etc_is_float((int)x->dtype) && !etc_is_float((int)y->dtype))) {
        return ETC_BAD_ARG;
    }
    if ((((op == MEAN) || (op == VAR)) && (s.kind == ETC_KIND_I64)) ||
        (((op == AMAX) || (op == AMIN)) && (x->dtype != y->dtype))) {
        return ETC_BAD_ARG;
    }
    if (etc_numel(y) == 0) {
        return ETC_OK;
    }
    if ((etc_numel(x) == 0) && ((op == AMAX) || (op == AMIN))) {
        return ETC_BAD_ARG;
    }
    int64_t at = 0;
    do {
        const int64_t n = outer.dim[outer.rank - 1], step = outer.stride[0][outer.rank - 1];
        for (int64_t i = 0; i < n; i++) {
            const int64_t base = outer.at[0] + (i * step);
            if ((op == VAR) && (etc_numel(x) > 0)) {
                find_mean(c, &s, x, base, &inner);
            }
            start(&s);
            if (etc_numel(x) > 0) {
                gather(c, &s, x, base, inner);
            }
            finish(&s, y, at++);
        }
    } while (etc_walk_next(&outer));
    return ETC_OK;
}

/* Arguments: x, dims, keepdim, dtype, out. */
static EtcStatus sum_or_mean(const EtcCall *c, Op op)
{
    EtcTensor *x, *y;
    EtcInts dims;
    int64_t dtype;
    int keep, is_given;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &dims) || !etc_arg_bool(c, 2, &keep) ||
        !etc_arg_opt_int(c, 3, &dtype, &is_given) || !etc_arg_tensor(c, 4, &y) ||
        (is_given && (dtype != (int64_t)y->dtype))) {
        return ETC_BAD_ARG;
    }
    return run(c, op, 0.0, x, &dims, keep, y);
}

EtcStatus etc_sum(const EtcCall *c)
{
    return sum_or_mean(c, SUM);
}

EtcStatus etc_mean(const EtcCall *c)
{
    return sum_or_mean(c, MEAN);
}

/* Arguments: x, dims, keepdim, out. */
static EtcStatus amax_or_any(const EtcCall *c, Op op)
{
    EtcTensor *x, *y;
    EtcInts dims;
    int keep;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &dims) || !etc_arg_bool(c, 2, &keep) ||
        !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    return run(c, op, 0.0, x, &dims, keep, y);
}

EtcStatus etc_any(const EtcCall *c)
{
    return amax_or_any(c, ANY);
}

/* Arguments: x, dim, keepdim, out. */
EtcStatus etc_any_dim(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts dims = {.n = 1};
    int keep;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dims.v[0]) || !etc_arg_bool(c, 2, &keep) ||
        !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    return run(c, ANY, 0.0, x, &dims, keep, y);
}

EtcStatus etc_amax(const EtcCall *c)
{
    return amax_or_any(c, AMAX);
}

EtcStatus etc_amin(const EtcCall *c)
{
    return amax_or_any(c, AMIN);
}

/* Arguments: x, dtype, out. */
EtcStatus etc_prod(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts all = {.n = -1};
    int64_t dtype;
    int is_given;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_opt_int(c, 1, &dtype, &is_given) ||
        !etc_arg_tensor(c, 2, &y) || (is_given && (dtype != (int64_t)y->dtype))) {
        return ETC_BAD_ARG;
    }
    return run(c, PROD, 0.0, x, &all, 0, y);
}

/* Arguments: x, dim, keepdim, dtype, out. */
EtcStatus etc_prod_dim(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts dims = {.n = 1};
    int64_t dtype;
    int keep, is_given;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dims.v[0]) || !etc_arg_bool(c, 2, &keep) ||
        !etc_arg_opt_int(c, 3, &dtype, &is_given) || !etc_arg_tensor(c, 4, &y) ||
        (is_given && (dtype != (int64_t)y->dtype))) {
        return ETC_BAD_ARG;
    }
    return run(c, PROD, 0.0, x, &dims, keep, y);
}

/* Arguments: x, dims, correction or None (1), keepdim, out. */
EtcStatus etc_var(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts dims;
    EtcScalar less;
    int keep;
    less.d = 1.0;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &dims) ||
        !etc_arg_opt_scalar(c, 2, &less) || !etc_arg_bool(c, 3, &keep) ||
        !etc_arg_tensor(c, 4, &y) || (x->dtype != y->dtype)) {
        return ETC_BAD_ARG;
    }
    return run(c, VAR, less.d, x, &dims, keep, y);
}
