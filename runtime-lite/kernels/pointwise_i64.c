/* pointwise_i64.c -- the integer rows of pointwise.def, in 64 bits that wrap. */
#include "runtime-lite/kernels/cores.h"

#define AS_SIGNED(a) ((int64_t)(a))

/* x^p: of a negative p the reciprocal, of which an integer is left for 1 and -1 alone. */
static uint64_t power(uint64_t x, uint64_t p)
{
    if (AS_SIGNED(p) < 0) {
        const uint64_t sign = ((p & 1u) != 0u) ? x : 1u;
        return ((x == 1u) || (AS_SIGNED(x) == -1)) ? sign : 0u;
    }
    uint64_t y = 1;
    for (; p > 0u; p >>= 1) {
        y = ((p & 1u) != 0u) ? (y * x) : y;
        x *= x;
    }
    return y;
}

/* a % p with the sign of p; -1 would trap, and so would 0, which kernels refuse before: but where
 * what they write lies over what they read, it comes again. */
static uint64_t remainder_of(uint64_t a, uint64_t p)
{
    int64_t b = AS_SIGNED(p), r = ((b == 0) || (b == -1)) ? 0 : (AS_SIGNED(a) % b);
    return (uint64_t)(((r != 0) && ((r < 0) != (b < 0))) ? (r + b) : r);
}

/* the same with the sign of a */
static uint64_t left_of(uint64_t a, uint64_t p)
{
    return ((p == 0u) || (AS_SIGNED(p) == -1)) ? 0u : (uint64_t)(AS_SIGNED(a) % AS_SIGNED(p));
}

/* a / p, cut off or rounded down. */
static uint64_t quotient(uint64_t a, uint64_t p)
{
    if (p == 0u) {
        return 0u;
    }
    return (AS_SIGNED(p) == -1) ? (0u - a) : (uint64_t)(AS_SIGNED(a) / AS_SIGNED(p));
}

static uint64_t floor_quotient(uint64_t a, uint64_t p)
{
    const int64_t r = AS_SIGNED(left_of(a, p));
    return quotient(a, p) - (((r != 0) && ((r < 0) != (AS_SIGNED(p) < 0))) ? 1u : 0u);
}

/* Division gives floats: the wrapper promotes, and div is never called here.
 * The names that the rows use, for one unsigned number. */
#define etc_k(d) ((uint64_t)(int64_t)(d))
#define etc_vabs(a) ((AS_SIGNED(a) < 0) ? (0u - (a)) : (a))
#define etc_at_least(a, lo) ((AS_SIGNED(a) < AS_SIGNED(lo)) ? (lo) : (a))
#define etc_at_most(a, hi) ((AS_SIGNED(a) > AS_SIGNED(hi)) ? (hi) : (a))
#define etc_max(a, b) ((AS_SIGNED(a) > AS_SIGNED(b)) ? (a) : (b))
#define etc_min(a, b) ((AS_SIGNED(a) < AS_SIGNED(b)) ? (a) : (b))
#define etc_vceil(a) (a)
#define etc_vfloor(a) (a)
#define etc_vfloordiv(a, p) floor_quotient(a, p)
#define etc_vfmod(a, p) left_of(a, p)
#define etc_vpow(a, p, q) power(a, p)
#define etc_vrem(a, p) remainder_of(a, p)
#define etc_vround(a) (a)
#define etc_vsign(a) ((AS_SIGNED(a) < 0) ? UINT64_MAX : ((a) != 0u))
#define etc_vtrunc(a) (a)
#define etc_vtruncdiv(a, p) quotient(a, p)

#define ROW(name, expr, second)                                                                 \
    static void row_##name(const void *pa, const void *pb, const EtcPqr *s, void *y, int64_t n) \
    {                                                                                           \
        const uint64_t p = (uint64_t)s->i64[0], q = (uint64_t)s->i64[1];                        \
        (void)p;                                                                                \
        (void)q;                                                                                \
        (void)pb;                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                       \
            const uint64_t a = ((const uint64_t *)pa)[i];                                       \
            second;                                                                             \
            ((uint64_t *)y)[i] = (expr);                                                        \
        }                                                                                       \
    }
#define UNARY(name, expr) ROW(name, expr, )
#define BINARY(name, expr) ROW(name, expr, const uint64_t b = ((const uint64_t *)pb)[i])
#define REAL(name, expr)
#define DOUBLE_PAIR REAL
#include "runtime-lite/kernels/pointwise.def"

EtcPointwise *const etc_pointwise_i64[ETC_N_ROWS] = {
#define UNARY(name, expr) row_##name,
#define BINARY UNARY
#define REAL(name, expr) NULL,
#define DOUBLE_PAIR REAL
#include "runtime-lite/kernels/pointwise.def"
};
