/* index.c -- indices made and followed. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/kernels.h"

/* -- arange ------------------------------------------------------------------------------ */

/* How many of start, start + step, ... lie before end; -1 where nobody can say. */
static int64_t range_count(const EtcScalar *start, const EtcScalar *end, const EtcScalar *step)
{
    int64_t span, n;
    if (start->is_float || end->is_float || step->is_float) {
        const double length = (end->d - start->d) / step->d;
        const double up = (length <= 2147483647.0) ? (double)(int64_t)length : length;
        const double most = (up < length) ? (up + 1.0) : up;
        return ((length >= 0.0) && (most <= 2147483647.0)) ? (int64_t)most : -1;
    }
    if ((step->i == 0) || __builtin_sub_overflow(end->i, start->i, &span) ||
        ((span != 0) && ((span < 0) != (step->i < 0))) ||
        ((span == INT64_MIN) && (step->i == -1))) {
        return -1;
    }
    n = (span / step->i) + (((span % step->i) != 0) ? 1 : 0);
    return (n <= INT32_MAX) ? n : -1;
}

/* start, end, step, out: integers exactly, all else in double */
EtcStatus etc_arange(const EtcCall *c)
{
    EtcScalar start, end, step;
    EtcTensor *y;
    if (!etc_arg_scalar(c, 0, &start) || !etc_arg_scalar(c, 1, &end) ||
        !etc_arg_scalar(c, 2, &step) || !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    const int64_t n = range_count(&start, &end, &step);
    EtcStatus st = (n < 0) ? ETC_BAD_ARG : etc_resize64(y, &n, 1);
    if (st != ETC_OK) {
        return st;
    }
    if (etc_kind((int)y->dtype) == ETC_KIND_NONE) {
        return ETC_UNSUPPORTED;
    }
    for (int64_t i = 0; i < n; i++) {
        if (start.is_float || step.is_float) {
            const double v = start.d + ((double)i * step.d);
            etc_put(ETC_KIND_F64, &v, (int)y->dtype, etc_at(y, i), 1, 1);
        } else {
            const uint64_t v = (uint64_t)start.i + ((uint64_t)i * (uint64_t)step.i);
            etc_put(ETC_KIND_I64, &v, (int)y->dtype, etc_at(y, i), 1, 1);
        }
    }
    return ETC_OK;
}
