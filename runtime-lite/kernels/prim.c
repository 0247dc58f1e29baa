/* prim.c -- arithmetic on ints, doubles and bools, sizes of tensors, et_view, et_copy_index.
 *
 * A result overwrites the last argument if that holds any scalar; it never overwrites a tensor,
 * list or None, so that lists of tensors stay as the loader checked them.  Argument counts are
 * exact.  Integers wrap around, as they do in torch. */
#include "runtime-lite/kernels/kernels.h"
#include "runtime-lite/etc_build.h"

#include <string.h>

/* -- arguments and results --------------------------------------------------------------- */

static int is_scalar(const EtcValue *v)
{
    return (v->tag == ETC_INT) || (v->tag == ETC_DOUBLE) || (v->tag == ETC_IS_BOOL);
}

static EtcStatus give_int(const EtcCall *c, int64_t i)
{
    EtcValue *out = c->arg[c->n_args - 1];
    if (!is_scalar(out)) {
        return ETC_BAD_ARG;
    }
    out->tag = ETC_INT;
    out->as.i = i;
    return ETC_OK;
}

static EtcStatus give_double(const EtcCall *c, double d)
{
    EtcValue *out = c->arg[c->n_args - 1];
    if (!ETC_BUILD_DOUBLES || !is_scalar(out)) {
        return ETC_BUILD_DOUBLES ? ETC_BAD_ARG : ETC_UNSUPPORTED;
    }
    out->tag = ETC_DOUBLE;
    out->as.d = d;
    return ETC_OK;
}

static EtcStatus give_bool(const EtcCall *c, int b)
{
    EtcValue *out = c->arg[c->n_args - 1];
    if (!is_scalar(out)) {
        return ETC_BAD_ARG;
    }
    out->tag = ETC_IS_BOOL;
    out->as.b = b != 0;
    return ETC_OK;
}

static int is_number(const EtcValue *v)
{
    return (v->tag == ETC_INT) || (v->tag == ETC_DOUBLE);
}

static double number(const EtcValue *v)
{
    return (v->tag == ETC_INT) ? (double)v->as.i : v->as.d;
}

static int are_ints(const EtcCall *c, int32_t n_args)
{
    return (c->n_args == n_args) && (c->arg[0]->tag == ETC_INT) &&
           ((n_args == 2) || (c->arg[1]->tag == ETC_INT));
}

static int are_numbers(const EtcCall *c, int32_t n_args)
{
    return ETC_BUILD_DOUBLES && (c->n_args == n_args) && is_number(c->arg[0]) &&
           ((n_args == 2) || is_number(c->arg[1]));
}

/* -- arithmetic -------------------------------------------------------------------------- */

/* Returns u as a two's complement integer, without the undefined overflow of signed types. */
static int64_t wrap(uint64_t u)
{
    int64_t i;
    memcpy(&i, &u, sizeof i);
    return i;
}

#define ARITHMETIC(name, op)                                                                       \
    EtcStatus etc_prim_##name(const EtcCall *c)                                                    \
    {                                                                                              \
        if (are_ints(c, 3)) {                                                                      \
            return give_int(c, wrap((uint64_t)c->arg[0]->as.i op(uint64_t) c->arg[1]->as.i));      \
        }                                                                                          \
        return are_numbers(c, 3) ? give_double(c, number(c->arg[0]) op number(c->arg[1]))          \
                                 : ETC_BAD_ARG;                                                    \
    }
ARITHMETIC(add, +)
ARITHMETIC(sub, -)
ARITHMETIC(mul, *)

static int are_bools(const EtcCall *c)
{
    return (c->n_args == 3) && (c->arg[0]->tag == ETC_IS_BOOL) && (c->arg[1]->tag == ETC_IS_BOOL);
}

#define COMPARE(name, op)                                                                          \
    EtcStatus etc_prim_##name(const EtcCall *c)                                                    \
    {                                                                                              \
        if (are_ints(c, 3)) {                                                                      \
            return give_bool(c, c->arg[0]->as.i op c->arg[1]->as.i);                               \
        }                                                                                          \
        if (are_numbers(c, 3)) {                                                                   \
            return give_bool(c, number(c->arg[0]) op number(c->arg[1]));                           \
        }                                                                                          \
        return are_bools(c) ? give_bool(c, c->arg[0]->as.b op c->arg[1]->as.b) : ETC_BAD_ARG;      \
    }

COMPARE(eq, ==)
COMPARE(gt, >)
COMPARE(lt, <)
COMPARE(ge, >=)
COMPARE(le, <=)

/* Returns a / b.  INT64_MIN / -1, which would trap, wraps around. */
static int64_t quotient(int64_t a, int64_t b)
{
    return (b == -1) ? wrap(0 - (uint64_t)a) : a / b;
}

/* Rounds to zero despite its name, as the official runtime does. */
EtcStatus etc_prim_floordiv_int(const EtcCall *c)
{
    if (!are_ints(c, 3) || (c->arg[1]->as.i == 0)) {
        return ETC_BAD_ARG;
    }
    return give_int(c, quotient(c->arg[0]->as.i, c->arg[1]->as.i));
}

/* Returns the exact remainder of a / b, with the sign of a.  t is |b| times a power of two, and is
 * halved down to |b|. */
static double remainder_of(double a, double b)
{
    double x = (a < 0) ? -a : a, y = (b < 0) ? -b : b, t = y;
    if (y > x) {
        return a;
    }
    while (t <= x * 0.5) {
        t *= 2;
    }
    for (; t >= y; t *= 0.5) {
        x -= (x >= t) ? t : 0;
    }
    return (a < 0) ? -x : x;
}

static double floor_of(double d)
{
    if (!((d > -4503599627370496.0) && (d < 4503599627370496.0))) {
        return d; /* numbers from 2^52 on are whole; NaN stays NaN */
    }
    double t = (double)(int64_t)d;
    return (t > d) ? t - 1 : t;
}

/* Divides two doubles as Python's floor division does.  A divisor of zero gives an infinity with
 * a's sign. */
static double floordiv(double a, double b)
{
    double zero = 0.0;
    if (b == 0) {
        return ((a < 0) ? -1.0 : 1.0) / zero;
    }
    if ((a - a != 0) || (b - b != 0)) { /* a or b is infinite or NaN */
        return floor_of(a / b);
    }
    double r = remainder_of(a, b), q = (a - r) / b;
    q -= ((r != 0) && ((r < 0) != (b < 0))) ? 1 : 0;
    double whole = floor_of(q); /* q is whole but for the rounding of the division */
    return whole + ((q - whole > 0.5) ? 1 : 0);
}

EtcStatus etc_prim_floordiv(const EtcCall *c)
{
    if (are_ints(c, 3)) {
        int64_t a = c->arg[0]->as.i, b = c->arg[1]->as.i;
        if (b == 0) {
            return ETC_BAD_ARG;
        }
        int is_below = (b != -1) && (a % b != 0) && ((a < 0) != (b < 0));
        return give_int(c, quotient(a, b) - is_below);
    }
    return are_numbers(c, 3) ? give_double(c, floordiv(number(c->arg[0]), number(c->arg[1])))
                             : ETC_BAD_ARG;
}

EtcStatus etc_prim_truediv(const EtcCall *c)
{
    return are_numbers(c, 3) ? give_double(c, number(c->arg[0]) / number(c->arg[1])) : ETC_BAD_ARG;
}

EtcStatus etc_prim_mod(const EtcCall *c) /* computes C's %, with the sign of the first operand */
{
    if (!are_ints(c, 3) || (c->arg[1]->as.i == 0)) {
        return ETC_BAD_ARG;
    }
    return give_int(c, (c->arg[1]->as.i == -1) ? 0 : c->arg[0]->as.i % c->arg[1]->as.i);
}

EtcStatus etc_prim_max(const EtcCall *c)
{
    if (!are_ints(c, 3)) {
        return ETC_BAD_ARG;
    }
    int64_t a = c->arg[0]->as.i, b = c->arg[1]->as.i;
    return give_int(c, (a > b) ? a : b);
}

EtcStatus etc_prim_min(const EtcCall *c)
{
    if (!are_ints(c, 3)) {
        return ETC_BAD_ARG;
    }
    int64_t a = c->arg[0]->as.i, b = c->arg[1]->as.i;
    return give_int(c, (a < b) ? a : b);
}

EtcStatus etc_prim_neg(const EtcCall *c)
{
    if (are_ints(c, 2)) {
        return give_int(c, wrap(0 - (uint64_t)c->arg[0]->as.i));
    }
    return are_numbers(c, 2) ? give_double(c, -c->arg[0]->as.d) : ETC_BAD_ARG;
}

/* -- conversions ------------------------------------------------------------------------- */

/* Gives the integer part of a double as an int; refuses a double that no int64 holds. */
static EtcStatus give_whole(const EtcCall *c, double d)
{
    int fits = (d >= -9223372036854775808.0) && (d < 9223372036854775808.0);
    return fits ? give_int(c, (int64_t)d) : ETC_BAD_ARG;
}

static int is_double(const EtcCall *c)
{
    return (c->n_args == 2) && (c->arg[0]->tag == ETC_DOUBLE);
}

EtcStatus etc_prim_ceil(const EtcCall *c)
{
    return is_double(c) ? give_whole(c, -floor_of(-c->arg[0]->as.d)) : ETC_BAD_ARG;
}

EtcStatus etc_prim_trunc(const EtcCall *c)
{
    return is_double(c) ? give_whole(c, c->arg[0]->as.d) : ETC_BAD_ARG;
}

EtcStatus etc_prim_round(const EtcCall *c) /* rounds halves to even */
{
    if (!is_double(c)) {
        return ETC_BAD_ARG;
    }
    double d = c->arg[0]->as.d, below = floor_of(d), part = d - below;
    int is_odd = floor_of(below * 0.5) * 2 != below;
    return give_whole(c, below + (((part > 0.5) || ((part == 0.5) && is_odd)) ? 1 : 0));
}

EtcStatus etc_prim_float(const EtcCall *c)
{
    return are_numbers(c, 2) ? give_double(c, number(c->arg[0])) : ETC_BAD_ARG;
}

EtcStatus etc_prim_int(const EtcCall *c)
{
    if (are_ints(c, 2)) {
        return give_int(c, c->arg[0]->as.i);
    }
    return etc_prim_trunc(c);
}

EtcStatus etc_prim_not(const EtcCall *c)
{
    int is_bool = (c->n_args == 2) && (c->arg[0]->tag == ETC_IS_BOOL);
    return is_bool ? give_bool(c, !c->arg[0]->as.b) : ETC_BAD_ARG;
}

EtcStatus etc_prim_ite(const EtcCall *c)
{
    if ((c->n_args != 4) || (c->arg[0]->tag != ETC_IS_BOOL) || !is_scalar(c->arg[3])) {
        return ETC_BAD_ARG;
    }
    const EtcValue *v = c->arg[0]->as.b ? c->arg[1] : c->arg[2];
    if (!is_scalar(v)) {
        return ETC_BAD_ARG;
    }
    *c->arg[3] = *v;
    return ETC_OK;
}

/* -- tensors ----------------------------------------------------------------------------- */

EtcStatus etc_sym_size(const EtcCall *c)
{
    if ((c->n_args != 3) || (c->arg[0]->tag != ETC_TENSOR) || (c->arg[1]->tag != ETC_INT)) {
        return ETC_BAD_ARG;
    }
    const EtcTensor *t = c->arg[0]->as.tensor;
    int64_t d = c->arg[1]->as.i;
    if ((d < -t->rank) || (d >= t->rank)) {
        return ETC_BAD_ARG;
    }
    return give_int(c, t->dim[(d < 0) ? d + t->rank : d]);
}

EtcStatus etc_sym_numel(const EtcCall *c)
{
    if ((c->n_args != 2) || (c->arg[0]->tag != ETC_TENSOR)) {
        return ETC_BAD_ARG;
    }
    return give_int(c, etc_numel(c->arg[0]->as.tensor));
}

#define LOAD(type) (memcpy(&x.as_##type, t->data, sizeof x.as_##type), x.as_##type)

EtcStatus etc_local_scalar_dense(const EtcCall *c)
{
    union {
        uint8_t as_u8;
        int8_t as_i8;
        int16_t as_i16;
        int32_t as_i32;
        int64_t as_i64;
        float as_f32;
        double as_f64;
    } x;
    const EtcTensor *t = c->arg[0]->as.tensor;
    if ((c->n_args != 2) || (c->arg[0]->tag != ETC_TENSOR) || (etc_numel(t) != 1)) {
        return ETC_BAD_ARG;
    }
    switch (t->dtype) {
    case ETC_U8:
        return give_int(c, LOAD(u8));
    case ETC_I8:
        return give_int(c, LOAD(i8));
    case ETC_I16:
        return give_int(c, LOAD(i16));
    case ETC_I32:
        return give_int(c, LOAD(i32));
    case ETC_I64:
        return give_int(c, LOAD(i64));
    case ETC_F32:
        return give_double(c, (double)LOAD(f32));
    case ETC_F64:
        return give_double(c, LOAD(f64));
    case ETC_BOOL:
        return give_bool(c, LOAD(u8));
    case ETC_F16:
    case ETC_BF16:
    case ETC_F8E5M2:
    case ETC_F8E4M3FN:
    case ETC_F8E5M2FNUZ:
    case ETC_F8E4M3FNUZ:
    case ETC_U16:
    case ETC_U32:
    case ETC_U64:
    default:
        return ETC_UNSUPPORTED;
    }
}

/* Writes the sizes of a view of n elements, of which one may be -1, into dim.  Returns 0 if they do
 * not fit. */
static int view_sizes(const EtcValue *list, int64_t n, int32_t *dim)
{
    int32_t open = -1;
    int64_t known = 1;
    for (int32_t k = 0; k < list->as.list.n; k++) {
        const EtcValue *v = list->as.list.item[k];
        int is_open = (v->tag == ETC_INT) && (v->as.i == -1) && (open < 0);
        if (!is_open && ((v->tag != ETC_INT) || (v->as.i < 0) || (v->as.i > INT32_MAX))) {
            return 0;
        }
        open = is_open ? k : open;
        dim[k] = (int32_t)v->as.i;
        if (!is_open && (known > INT64_MAX / (v->as.i + 1))) {
            return 0;
        }
        known *= is_open ? 1 : v->as.i;
    }
    if (open < 0) {
        return known == n;
    }
    if ((known == 0) || (n % known != 0) || (n / known > INT32_MAX)) {
        return 0;
    }
    dim[open] = (int32_t)(n / known);
    return 1;
}

/* Arguments: self, sizes, out.  out takes self's memory, and keeps it until the next run at
 * most. */
EtcStatus etc_et_view(const EtcCall *c)
{
    int32_t dim[ETC_MAX_RANK];
    if ((c->n_args != 3) || (c->arg[0]->tag != ETC_TENSOR) || (c->arg[1]->tag != ETC_LIST_INT) ||
        (c->arg[2]->tag != ETC_TENSOR) || (c->arg[1]->as.list.n > ETC_MAX_RANK)) {
        return ETC_BAD_ARG;
    }
    const EtcTensor *self = c->arg[0]->as.tensor;
    EtcTensor *out = c->arg[2]->as.tensor;
    if ((self->dtype != out->dtype) || !view_sizes(c->arg[1], etc_numel(self), dim)) {
        return ETC_BAD_ARG;
    }
    EtcTensor moved = *out;
    moved.data = self->data;
    moved.capacity = self->capacity;
    moved.is_const = 0; /* only its sizes change here */
    EtcStatus status = etc_resize(&moved, dim, c->arg[1]->as.list.n);
    if (status == ETC_OK) {
        moved.is_const = self->is_const;
        *out = moved;
    }
    return status;
}

/* Arguments: to, from, i.  Sets to[i] = from and resizes `to` to i + 1 rows, so that it grows by
 * one row with each iteration of a loop. */
EtcStatus etc_et_copy_index(const EtcCall *c)
{
    int32_t dim[ETC_MAX_RANK];
    if ((c->n_args != 3) || (c->arg[0]->tag != ETC_TENSOR) || (c->arg[1]->tag != ETC_TENSOR) ||
        (c->arg[2]->tag != ETC_INT)) {
        return ETC_BAD_ARG;
    }
    EtcTensor *to = c->arg[0]->as.tensor;
    const EtcTensor *from = c->arg[1]->as.tensor;
    int64_t i = c->arg[2]->as.i;
    if ((to->dtype != from->dtype) || (to->rank != from->rank + 1) || (i < 0) || (i >= INT32_MAX)) {
        return ETC_BAD_ARG;
    }
    dim[0] = (int32_t)i + 1;
    for (int32_t k = 0; k < from->rank; k++) {
        dim[k + 1] = from->dim[k];
        if (to->dim[k + 1] != from->dim[k]) {
            return ETC_BAD_ARG;
        }
    }
    EtcStatus status = etc_resize(to, dim, to->rank);
    if (status == ETC_OK) {
        size_t bytes = (size_t)etc_numel(from) * etc_dtype_size((int)from->dtype);
        memmove((uint8_t *)to->data + (size_t)i * bytes, from->data, bytes);
    }
    return status;
}
