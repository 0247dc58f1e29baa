/* pointwise_i64.c -- the integer rows of pointwise.def, in 64 bits that wrap. */
#include "runtime-lite/kernels/cores.h"

#define AS_SIGNED(a) ((int64_t)(a))

/* Returns x^p; the wrapper refuses a negative p. */
static uint64_t power(uint64_t x, uint64_t p)
{
    uint64_t y = 1;
    for (; p > 0u; p >>= 1) {
        y = ((p & 1u) != 0u) ? (y * x) : y;
        x *= x;
    }
    return y;
}

/* Returns x^p.  If p is negative, this is the integer part of the reciprocal, which is 0 unless
 * x is 1 or -1. */
static uint64_t any_power(uint64_t x, uint64_t p)
{
    const uint64_t sign = ((p & 1u) != 0u) ? x : 1u;
    if (AS_SIGNED(p) < 0) {
        return ((x == 1u) || (AS_SIGNED(x) == -1)) ? sign : 0u;
    }
    return power(x, p);
}

/* Returns a % p with the sign of p.  The wrapper refuses a p of 0; a division by -1 would trap. */
static uint64_t remainder_of(uint64_t a, uint64_t p)
{
    int64_t b = AS_SIGNED(p), r = (b == -1) ? 0 : (AS_SIGNED(a) % b);
    return (uint64_t)(((r != 0) && ((r < 0) != (b < 0))) ? (r + b) : r);
}

/* Returns a % p with the sign of a. */
static uint64_t left_of(uint64_t a, uint64_t p)
{
    return (AS_SIGNED(p) == -1) ? 0u : (uint64_t)(AS_SIGNED(a) % AS_SIGNED(p));
}

/* Returns a / p, rounded toward 0; floor_quotient rounds down. */
static uint64_t quotient(uint64_t a, uint64_t p)
{
    return (AS_SIGNED(p) == -1) ? (0u - a) : (uint64_t)(AS_SIGNED(a) / AS_SIGNED(p));
}

static uint64_t floor_quotient(uint64_t a, uint64_t p)
{
    const int64_t r = AS_SIGNED(left_of(a, p));
    return quotient(a, p) - (((r != 0) && ((r < 0) != (AS_SIGNED(p) < 0))) ? 1u : 0u);
}

/* These names are what the rows use, for one unsigned number.  There is none for div, which gives
 * floats: its wrapper promotes integers. */
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
#define etc_vdivisor(b) ((b) + (((b) == 0u) ? 1u : 0u)) /* y may overlap b and set it to 0 */
#define etc_vpow(a, p, q) power(a, p)
#define etc_vpower(a, p) any_power(a, p)
#define etc_vrem(a, p) remainder_of(a, p)
#define etc_vround(a) (a)
#define etc_vsign(a) ((AS_SIGNED(a) < 0) ? UINT64_MAX : ((a) != 0u))
#define etc_vtrunc(a) (a)
#define etc_vtruncdiv(a, p) quotient(a, p)

#define ROW(name, expr, second)                                                                 \
    void etc_row_i64_##name(const void *pa, const void *pb, const EtcPqr *s, void *y, int64_t n) \
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
