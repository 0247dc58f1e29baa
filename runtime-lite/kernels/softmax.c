/* softmax.c -- wrappers of softmax and log_softmax along any dimension. */
#include "runtime-lite/kernels/fixed_softmax.h"
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"

/* Does what the core of softmax.h does, in double. */
static void softmax_f64(const double *x, double *y, int64_t n, int64_t inner, int is_log)
{
    for (int64_t c = 0; c < inner; c++, x++, y++) {
        double max = -__builtin_inf(), sum = 0.0;
        for (int64_t i = 0; i < n; i++) {
            max = ((max > x[i * inner]) || (max != max)) ? max : x[i * inner];
        }
        for (int64_t i = 0; i < n; i++) {
            sum += etc_exp_f64(x[i * inner] - max);
        }
        const double log_sum = etc_log_f64(sum);
        for (int64_t i = 0; i < n; i++) {
            const double d = x[i * inner] - max;
            y[i * inner] = is_log ? (d - log_sum) : (etc_exp_f64(d) / sum);
        }
    }
}

/* The rows along an axis; each has n elements, `inner` apart. */
typedef struct Rows {
    int64_t outer, n, inner;
} Rows;

static Rows rows_of(const EtcTensor *x, int32_t d)
{
    Rows r = {1, (x->rank > 0) ? x->dim[d] : 1, 1};
    for (int32_t i = 0; i < x->rank; i++) {
        r.outer *= (i < d) ? x->dim[i] : 1;
        r.inner *= (i > d) ? x->dim[i] : 1;
    }
    return r;
}

/* Arguments: x, dim, half_to_float, out. */
static EtcStatus run(const EtcCall *c, int is_log)
{
    EtcTensor *x, *y;
    int64_t dim;
    int half_to_float;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) ||
        !etc_arg_bool(c, 2, &half_to_float) || !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    const int32_t d = etc_dim(dim, x->rank);
    EtcStatus st = (d < 0) ? ETC_BAD_ARG : etc_resize(y, x->dim, x->rank);
    if ((st != ETC_OK) || (x->dtype != y->dtype) || half_to_float) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_float((int)x->dtype) || !etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if (etc_numel(x) == 0) {
        return ETC_OK;
    }
    const Rows r = rows_of(x, d);
    for (int64_t i = 0; i < r.outer; i++) {
        const int64_t at = i * r.n * r.inner;
        if (ETC_HAS(ETC_F64) && (x->dtype == ETC_F64)) {
            softmax_f64((const double *)x->data + at, (double *)y->data + at, r.n, r.inner, is_log);
        } else {
            etc_cores_of(c)->softmax((const float *)x->data + at, (float *)y->data + at, r.n,
                                     r.inner, is_log);
        }
    }
    return ETC_OK;
}

EtcStatus etc_softmax(const EtcCall *c)
{
    return run(c, 0);
}

EtcStatus etc_log_softmax(const EtcCall *c)
{
    return run(c, 1);
}

/* -- of 8-bit integers ------------------------------------------------------------------------- */

static int is_byte(const EtcTensor *t)
{
    return (t->dtype == ETC_I8) || (t->dtype == ETC_U8);
}

/* Sets the table of q.  Returns 0 if it is not as fixed_softmax.h requires for rows of n
 * elements. */
static int table_fits(const EtcTensor *t, int64_t n, EtcByteSoftmax *q)
{
    if ((t->dtype != ETC_I32) || (t->rank != 1) || !etc_is_plain(t) || (t->dim[0] < 1) ||
        (t->dim[0] > 256)) {
        return 0;
    }
    q->table = (const int32_t *)t->data;
    q->count = t->dim[0];
    for (int32_t i = 0; i < q->count; i++) {
        if ((q->table[i] < 0) || (q->table[i] > q->table[0])) {
            return 0;
        }
    }
    return (q->table[0] >= 32768) && (n <= (4294967295 / q->table[0]));
}

/* Reads by, shift, output_zero, quant_min, quant_max and log_by from argument 3 on. */
static int read_points(const EtcCall *c, const EtcTensor *x, const EtcTensor *y, EtcByteSoftmax *q,
                       uint32_t *log_by)
{
    int64_t v[6];
    const int64_t least = (y->dtype == ETC_I8) ? -128 : 0;
    for (int32_t i = 0; i < 6; i++) {
        if (!etc_arg_int(c, 3 + i, &v[i])) {
            return 0;
        }
    }
    q->by = (uint32_t)v[0];
    q->shift = (int32_t)v[1];
    q->zero = (int32_t)v[2];
    q->lo = (int32_t)v[3];
    q->hi = (int32_t)v[4];
    q->x_flip = (x->dtype == ETC_I8) ? 0x80 : 0;
    *log_by = (uint32_t)v[5];
    if (y->dtype == ETC_F32) {
        return v[5] == 0;
    }
    return (v[5] >= 0) && (v[5] < 1048576) && (v[0] >= 0) && (v[0] <= 32768) && (v[1] >= 1) && (v[1] <= 30) && (v[2] >= least) &&
           (v[2] <= (least + 255)) && (v[3] >= least) && (v[3] <= v[4]) && (v[4] <= (least + 255));
}

/* Arguments: x, table, dim, those of read_points, dtype, out. */
EtcStatus etc_integer_softmax(const EtcCall *c)
{
    EtcTensor *x, *table, *y;
    EtcByteSoftmax q;
    uint32_t log_by;
    int64_t dim;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &table) || !etc_arg_int(c, 2, &dim) ||
        !etc_arg_tensor(c, 10, &y) || (etc_dim(dim, x->rank) < 0) || !is_byte(x) ||
        (!is_byte(y) && (y->dtype != ETC_F32)) || !read_points(c, x, y, &q, &log_by) ||
        (etc_resize(y, x->dim, x->rank) != ETC_OK)) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    const Rows r = rows_of(x, etc_dim(dim, x->rank));
    if (!table_fits(table, r.n, &q) || ((log_by != 0) && ((q.table[0] & (q.table[0] - 1)) != 0))) {
        return ETC_BAD_ARG;
    }
    for (int64_t i = 0; (etc_numel(x) > 0) && (i < (r.outer * r.inner)); i++) {
        const int64_t at = ((i / r.inner) * r.n * r.inner) + (i % r.inner);
        const uint8_t *from = (const uint8_t *)x->data + at;
        if (y->dtype == ETC_F32) {
            etc_softmax_i8_f32(from, (float *)y->data + at, (int32_t)r.n, (int32_t)r.inner, &q);
        } else if (log_by != 0) {
            etc_log_softmax_i8(from, (uint8_t *)y->data + at, (int32_t)r.n, (int32_t)r.inner,
                               log_by, &q);
        } else {
            etc_softmax_i8(from, (uint8_t *)y->data + at, (int32_t)r.n, (int32_t)r.inner, &q);
        }
    }
    return ETC_OK;
}
