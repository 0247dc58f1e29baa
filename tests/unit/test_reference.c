/* test_reference.c -- compares kernels with the naive float64 reference on random shapes and
 * options, with every table of cores; and clamps that are fused into products with separate ones.
 */
#include "runtime-lite/etc_rt.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include "tests/reference/reference.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMEL = 1 << 16, ROUNDS = 60 };

/* -- random numbers and tensors ------------------------------------------------------------- */

static uint64_t state = 88172645463325252u; /* one sequence per process: each test is a process */

static uint32_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static int64_t between(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(next() % (uint32_t)(hi - lo + 1));
}

static float *drawn[1024];
static int n_drawn;

static void free_drawn(void)
{
    while (n_drawn > 0) {
        n_drawn--;
        free(drawn[n_drawn]);
    }
}

TestSuite(reference, .fini = free_drawn);

/* They live as long as the test. */
static float *random_floats(int64_t n)
{
    float *p = malloc((size_t)(n + 1) * sizeof *p);
    cr_assert(p && (n_drawn < 1024));
    drawn[n_drawn] = p;
    n_drawn++;
    for (int64_t i = 0; i < n; i++) {
        p[i] = (float)((int32_t)next()) * 0x1p-31f;
    }
    return p;
}

static RefTensor random_tensor(int rank, const int64_t *dim)
{
    RefTensor t = {rank, {0}, NULL};
    memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
    t.data = random_floats(ref_numel(&t));
    return t;
}

/* -- calls ---------------------------------------------------------------------------------- */

typedef struct Args {
    int n;
    EtcValue value[16], item[16][4];
    EtcValue *arg[16], *items[16][4];
    EtcTensor tensor[16];
    int32_t dim[16][REF_MAX_RANK];
} Args;

static EtcValue *add(Args *a, EtcTag tag)
{
    EtcValue *v = &a->value[a->n];
    memset(v, 0, sizeof *v);
    v->tag = tag;
    a->arg[a->n] = v;
    a->n++;
    return v;
}

static void add_tensor(Args *a, const RefTensor *t)
{
    int i = a->n;
    EtcTensor *e = &a->tensor[i];
    memset(e, 0, sizeof *e);
    memcpy(&e->data, &t->data, sizeof e->data); /* inputs are not written */
    e->dtype = ETC_F32;
    e->rank = t->rank;
    e->dim = a->dim[i];
    for (int d = 0; d < t->rank; d++) {
        e->dim[d] = (int32_t)t->dim[d];
    }
    e->capacity = ref_numel(t) * 4;
    add(a, ETC_TENSOR)->as.tensor = e;
}

static void add_out(Args *a, int rank, EtcDtype dtype, void *data)
{
    const RefTensor t = {rank, {0}, NULL};
    int i = a->n;
    add_tensor(a, &t);
    a->tensor[i].data = data;
    a->tensor[i].dtype = dtype;
    a->tensor[i].capacity = MAX_NUMEL * (int64_t)etc_dtype_size((int)dtype);
}

static void add_int(Args *a, int64_t i)
{
    add(a, ETC_INT)->as.i = i;
}
static void add_bool(Args *a, int b)
{
    add(a, ETC_IS_BOOL)->as.b = (uint8_t)b;
}
static void add_double(Args *a, double d)
{
    add(a, ETC_DOUBLE)->as.d = d;
}

static void add_ints(Args *a, int n, const int64_t *v)
{
    int i = a->n;
    EtcValue *list = add(a, ETC_LIST_INT);
    for (int k = 0; k < n; k++) {
        a->item[i][k].tag = ETC_INT;
        a->item[i][k].as.i = v[k];
        a->items[i][k] = &a->item[i][k];
    }
    list->as.list.item = a->items[i];
    list->as.list.n = n;
}

/* Runs on every table; the float out must have `n` elements near `want`, and the same bits. */
static void check(EtcKernel *kernel, Args *a, int out, const double *want, int64_t n, double bound)
{
    static float first[MAX_NUMEL];
    void *scratch = aligned_alloc(64, ETC_SCRATCH_BYTES);
    for (int t = 0; etc_cores_at(t) != NULL; t++) {
        const EtcCall c = {a->arg, a->n, scratch, etc_cores_at(t), NULL};
        const float *y = a->tensor[out].data;
        cr_assert_eq(kernel(&c), ETC_OK);
        cr_assert_eq(etc_numel(&a->tensor[out]), n);
        for (int64_t i = 0; i < n; i++) {
            cr_assert_leq(fabs((double)y[i] - want[i]), bound, "element %lld: %.9g, not %.9g on %s",
                          (long long)i, (double)y[i], want[i], c.cores->name);
        }
        if (t == 0) {
            memcpy(first, y, (size_t)n * 4);
        }
        cr_assert_eq(memcmp(first, y, (size_t)n * 4), 0, "other bits on %s", c.cores->name);
    }
    free(scratch);
}

static float y[MAX_NUMEL];
static double want[MAX_NUMEL];

/* Rounding error of n terms of size 1, generously. */
static double sum_bound(int64_t n)
{
    return 6e-8 * (double)(n + 8);
}

/* -- products ------------------------------------------------------------------------------- */

Test(reference, linear_and_mm)
{
    for (int round = 0; round < ROUNDS; round++) {
        int64_t m = between(1, 20), n = between(1, 90), k = between(1, 400);
        RefTensor x = random_tensor(3, (int64_t[]){between(1, 2), m, k});
        RefTensor w = random_tensor(2, (int64_t[]){n, k});
        RefTensor b = random_tensor(1, &n);
        Args a = {0};
        add_tensor(&a, &x);
        add_tensor(&a, &w);
        if (round % 2) {
            add_tensor(&a, &b);
        } else {
            add(&a, ETC_NONE);
        }
        add_out(&a, 3, ETC_F32, y);
        ref_linear(&x, &w, round % 2 ? b.data : NULL, want);
        check(etc_linear, &a, 3, want, x.dim[0] * m * n, sum_bound(k));

        RefTensor p = random_tensor(2, (int64_t[]){m, k}), q = random_tensor(2, (int64_t[]){k, n});
        Args mm = {0};
        add_tensor(&mm, &p);
        add_tensor(&mm, &q);
        add_out(&mm, 2, ETC_F32, y);
        ref_mm(&p, &q, want);
        check(etc_mm, &mm, 2, want, m * n, sum_bound(k));
    }
}

static RefConv random_conv(int is_transposed, int64_t groups)
{
    RefConv g = {{between(1, 3), between(1, 3)},
                 {between(0, 3), between(0, 3)},
                 {between(1, 2), between(1, 2)},
                 {0, 0},
                 groups,
                 is_transposed};
    for (int a = 0; is_transposed && (a < 2); a++) {
        g.output_pad[a] = between(0, g.stride[a] - 1);
    }
    return g;
}

static void check_conv(int64_t ic_group, int64_t oc_group, int64_t groups, int is_transposed)
{
    RefConv g = random_conv(is_transposed, groups);
    int64_t ic = ic_group * groups, oc = oc_group * groups, kh = between(1, 5), kw = between(1, 4);
    int64_t h = between(kh * 2, 22), w = between(kw * 2, 40);
    RefTensor x = random_tensor(4, (int64_t[]){between(1, 2), ic, h, w});
    RefTensor weight = random_tensor(
        4, (int64_t[]){is_transposed ? ic : oc, is_transposed ? oc_group : ic_group, kh, kw});
    RefTensor b = random_tensor(1, &oc), shape;
    g.pad[0] = g.pad[0] < kh ? g.pad[0] : 0;
    g.pad[1] = g.pad[1] < kw ? g.pad[1] : 0;
    Args a = {0};
    add_tensor(&a, &x);
    add_tensor(&a, &weight);
    add_tensor(&a, &b);
    add_ints(&a, 2, g.stride);
    add_ints(&a, 2, g.pad);
    add_ints(&a, 2, g.dilation);
    add_bool(&a, is_transposed);
    add_ints(&a, 2, g.output_pad);
    add_int(&a, groups);
    add_out(&a, 4, ETC_F32, y);
    ref_conv(&x, &weight, b.data, &g, &shape, want);
    cr_assert_leq(ref_numel(&shape), MAX_NUMEL);
    check(etc_convolution, &a, 9, want, ref_numel(&shape), sum_bound(ic_group * kh * kw));
}

Test(reference, convolution)
{
    for (int round = 0; round < ROUNDS; round++) {
        int64_t oc = between(1, 20);
        check_conv(between(1, 30), oc, 1, 0);
        int64_t groups = between(2, 4);
        oc = between(1, 5);
        check_conv(between(1, 4), oc, groups, 0);
        groups = between(1, 9);
        check_conv(1, between(1, 4), groups, 0);
        groups = between(1, 2);
        oc = between(1, 5);
        check_conv(between(1, 6), oc, groups, 1);
    }
}

/* -- pools ---------------------------------------------------------------------------------- */

static void add_window(Args *a, const RefTensor *x, const RefPool *g)
{
    memset(a, 0, sizeof *a);
    add_tensor(a, x);
    add_ints(a, 2, g->kernel);
    add_ints(a, 2, g->stride);
    add_ints(a, 2, g->pad);
}

Test(reference, pools)
{
    static int64_t where[MAX_NUMEL], want_where[MAX_NUMEL];
    for (int round = 0; round < 4 * ROUNDS; round++) {
        RefPool g = {{between(1, 5), between(1, 5)},
                     {between(1, 3), between(1, 3)},
                     {0, 0},
                     {1, 1},
                     between(-2, 3),
                     (int)between(0, 1),
                     (int)between(0, 1)};
        RefTensor x = random_tensor(4, (int64_t[]){between(1, 2), between(1, 3), between(10, 20),
                                                   between(10, 40)}),
                  shape;
        Args a;
        float *pixel = random_floats(ref_numel(&x));
        for (int64_t i = 0; i < ref_numel(&x); i++) { /* so coarse that maxima are often equal */
            pixel[i] = floorf(pixel[i] * 3.0f);
        }
        x.data = (round % 2) ? pixel : x.data;
        g.pad[0] = between(0, g.kernel[0] / 2);
        g.pad[1] = between(0, g.kernel[1] / 2);
        add_window(&a, &x, &g);
        add_bool(&a, g.ceil_mode);
        add_bool(&a, g.count_pad);
        if (g.divisor) {
            add_int(&a, g.divisor);
        } else {
            add(&a, ETC_NONE);
        }
        add_out(&a, 4, ETC_F32, y);
        ref_avg_pool(&x, &g, &shape, want);
        check(etc_avg_pool2d, &a, 7, want, ref_numel(&shape), 2e-5);

        g.dilation[0] = between(1, 2);
        g.dilation[1] = between(1, 2);
        add_window(&a, &x, &g);
        add_ints(&a, 2, g.dilation);
        add_bool(&a, g.ceil_mode);
        add_out(&a, 4, ETC_F32, y);
        add_out(&a, 4, ETC_I64, where);
        ref_max_pool(&x, &g, &shape, want, want_where);
        check(etc_max_pool2d_with_indices, &a, 6, want, ref_numel(&shape), 0.0);
        cr_assert_eq(memcmp(where, want_where, (size_t)ref_numel(&shape) * 8), 0);

        int64_t size[2] = {between(1, 12), between(1, 12)};
        memset(&a, 0, sizeof a);
        add_tensor(&a, &x);
        add_ints(&a, 2, size);
        add_out(&a, 4, ETC_F32, y);
        ref_adaptive_avg_pool(&x, size[0], size[1], want);
        check(etc_adaptive_avg_pool2d, &a, 2, want, x.dim[0] * x.dim[1] * size[0] * size[1], 2e-5);
    }
}

/* -- along dimensions ----------------------------------------------------------------------- */

static RefTensor random_shape(int rank, int64_t most)
{
    int64_t dim[REF_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        dim[d] = between(1, most);
    }
    return random_tensor(rank, dim);
}

Test(reference, softmax)
{
    for (int round = 0; round < ROUNDS; round++) {
        RefTensor x = random_shape((int)between(1, 4), round % 8 ? 9 : 15);
        int64_t dim = between(-x.rank, x.rank - 1);
        for (int is_log = 0; is_log < 2; is_log++) {
            Args a = {0};
            add_tensor(&a, &x);
            add_int(&a, dim);
            add_bool(&a, 0);
            add_out(&a, x.rank, ETC_F32, y);
            ref_softmax(&x, (int)(dim < 0 ? dim + x.rank : dim), is_log, want);
            check(is_log ? etc_log_softmax : etc_softmax, &a, 3, want, ref_numel(&x), 1e-6);
        }
    }
}

Test(reference, reductions)
{
    for (int round = 0; round < ROUNDS; round++) {
        RefTensor x = round % 5 ? random_shape((int)between(1, 4), 12)
                                : random_tensor(2, (int64_t[]){2, between(500, 5000)});
        int64_t dims[4], n_dims = 0, count = 1;
        unsigned bits = (unsigned)between(1, (1 << x.rank) - 1);
        for (int d = 0; d < x.rank; d++) {
            if (bits >> d & 1u) {
                dims[n_dims++] = d - (round % 2 ? x.rank : 0);
                count *= x.dim[d];
            }
        }
        for (int op = REF_SUM; op <= REF_AMAX; op++) {
            static EtcKernel *const kernel[3] = {etc_sum, etc_mean, etc_amax};
            Args a = {0};
            add_tensor(&a, &x);
            add_ints(&a, (int)n_dims, dims);
            add_bool(&a, 1);
            if (op != REF_AMAX) {
                add(&a, ETC_NONE);
            }
            add_out(&a, x.rank, ETC_F32, y);
            ref_reduce((RefReduce)op, &x, bits, want);
            check(kernel[op], &a, a.n - 1, want, ref_numel(&x) / count,
                  op == REF_SUM    ? sum_bound(count)
                  : op == REF_MEAN ? 1e-6
                                   : 0.0);
        }
    }
}

Test(reference, batch_norm)
{
    for (int round = 0; round < ROUNDS; round++) {
        static float empty[2][MAX_NUMEL];
        RefTensor x = random_shape((int)between(2, 4), 12), p[4];
        Args a = {0};
        add_tensor(&a, &x);
        for (int i = 0; i < 4; i++) {
            p[i] = random_tensor(1, &x.dim[1]);
        }
        float *var = random_floats(x.dim[1]);
        for (int64_t c = 0; c < x.dim[1]; c++) {
            var[c] = 0.5f + fabsf(var[c]);
        }
        p[3].data = var;
        for (int i = 0; i < 4; i++) {
            add_tensor(&a, &p[i]);
        }
        add_double(&a, 0.1);
        add_double(&a, 1e-3);
        add_out(&a, x.rank, ETC_F32, y);
        add_out(&a, 1, ETC_F32, empty[0]);
        add_out(&a, 1, ETC_F32, empty[1]);
        ref_batch_norm(&x, p[0].data, p[1].data, p[2].data, var, 1e-3, want);
        check(etc_native_batch_norm, &a, 7, want, ref_numel(&x), 2e-6);
    }
}

/* -- pointwise ------------------------------------------------------------------------------ */

static double f_add(double a, double b)
{
    return a + b;
}
static double f_sub(double a, double b)
{
    return a - b;
}
static double f_mul(double a, double b)
{
    return a * b;
}
static double f_div(double a, double b)
{
    return a / b;
}
static double f_max(double a, double b)
{
    return fmax(a, b);
}
static double f_min(double a, double b)
{
    return fmin(a, b);
}

Test(reference, broadcasts)
{
    static const struct {
        EtcKernel *kernel;
        RefBinary *f;
        int has_alpha;
    } ops[] = {{etc_add, f_add, 1}, {etc_sub, f_sub, 1},     {etc_mul, f_mul, 0},
               {etc_div, f_div, 0}, {etc_maximum, f_max, 0}, {etc_minimum, f_min, 0}};
    for (int round = 0; round < 4 * ROUNDS; round++) {
        RefTensor full = random_shape((int)between(0, 4), 13), t[2], shape;
        for (int i = 0; i < 2; i++) { /* drop leading dimensions, spread others */
            int from = (int)between(0, full.rank);
            int64_t dim[REF_MAX_RANK];
            for (int d = from; d < full.rank; d++) {
                dim[d - from] = between(0, 2) ? full.dim[d] : 1;
            }
            t[i] = random_tensor(full.rank - from, dim);
        }
        for (size_t o = 0; o < (sizeof ops / sizeof ops[0]); o++) {
            Args a = {0};
            add_tensor(&a, &t[0]);
            add_tensor(&a, &t[1]);
            if (ops[o].has_alpha) {
                add_int(&a, 1);
            }
            ref_binary(ops[o].f, &t[0], &t[1], &shape, want);
            add_out(&a, shape.rank, ETC_F32, y);
            double top = 1.0;
            for (int64_t i = 0; i < ref_numel(&shape); i++) {
                top = fmax(top, fabs(want[i]));
            }
            check(ops[o].kernel, &a, a.n - 1, want, ref_numel(&shape), top * 1.2e-7);
        }
    }
}

static double f_exp(double a, const double *p)
{
    return exp(a * p[0]);
}
static double f_gelu(double a, const double *p)
{
    (void)p;
    return 0.5 * a * (1.0 + erf(a / sqrt(2.0)));
}

Test(reference, unary)
{
    const double one = 1.0;
    for (int round = 0; round < ROUNDS; round++) {
        RefTensor x = random_shape((int)between(0, 4), 13);
        Args a = {0};
        add_tensor(&a, &x);
        add_out(&a, x.rank, ETC_F32, y);
        ref_unary(f_exp, &x, &one, want);
        check(etc_exp, &a, 1, want, ref_numel(&x), 3e-7);
        memset(&a, 0, sizeof a);
        add_tensor(&a, &x);
        EtcValue *how = add(&a, ETC_STRING);
        how->as.str.text = "none";
        how->as.str.n = 4;
        add_out(&a, x.rank, ETC_F32, y);
        ref_unary(f_gelu, &x, NULL, want);
        check(etc_gelu, &a, 2, want, ref_numel(&x), 2e-7);
    }
}

/* -- fused clamps --------------------------------------------------------------------------- */

/* A product that clamps gives the bits of one that does not, clamped after; NaN and -0 stay. */
static void check_clamp(const float *plain, const float *fused, int64_t n, float lo, float hi,
                        const EtcCores *cores)
{
    EtcPqr s;
    float *after = malloc((size_t)n * 4);
    memset(&s, 0, sizeof s);
    s.f32[0] = lo;
    s.f32[1] = hi;
    cores->pointwise[ETC_ROW_hardtanh](plain, NULL, &s, after, n);
    for (int64_t i = 0; i < n; i++) {
        cr_assert((memcmp(&after[i], &fused[i], 4) == 0) || (isnan(after[i]) && isnan(fused[i])),
                  "%.9g clamps to %.9g, fused to %.9g on %s", (double)plain[i], (double)after[i],
                  (double)fused[i], cores->name);
    }
    free(after);
}

Test(reference, fused_clamps)
{
    static float fused[MAX_NUMEL];
    void *work = aligned_alloc(64, ETC_SCRATCH_BYTES);
    float *x = random_floats(8192), *w = random_floats(8192);
    const EtcConv shapes[2] = {{1, 1, 7, 15, 17, 9, 15, 17, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0},
                               {1, 9, 1, 15, 17, 1, 15, 17, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}};
    x[40] = NAN;
    x[400] = INFINITY;
    for (int t = 0; etc_cores_at(t) != NULL; t++) {
        const EtcCores *cores = etc_cores_at(t);
        for (int i = 0; i < 2; i++) {
            EtcConv g = shapes[i];
            g.lo = -INFINITY;
            g.hi = INFINITY;
            cores->conv(x, w, NULL, y, &g, work);
            g.lo = 0.0f;
            g.hi = 0.5f;
            cores->conv(x, w, NULL, fused, &g, work);
            check_clamp(y, fused, 9 * 15 * 17, 0.0f, 0.5f, cores);
        }
        EtcMatmul m = {11, 37, 200, 200, 200, -INFINITY, INFINITY, 1, 0};
        cores->matmul(x, w, NULL, y, &m, work);
        m.lo = -0.25f;
        m.hi = 0.25f;
        cores->matmul(x, w, NULL, fused, &m, work);
        check_clamp(y, fused, 11 * 37, -0.25f, 0.25f, cores);
    }
    free(work);
}
