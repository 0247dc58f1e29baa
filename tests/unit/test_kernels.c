/* test_kernels.c -- compares kernels with outputs that PyTorch recorded, and their bits on all
 * instruction sets; also calls them with wrong arguments.  ROOT is the source folder. */
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "tests/ops_cases.h"
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>

enum { ARENA = 8 << 20 };

/* -- running a case ------------------------------------------------------------------------- */

/* A case's arguments and fresh outs, ready to be called. */
typedef struct Call {
    EtcCall call;
    EtcValue value[MAX_ARGS + MAX_OUTS];
    EtcValue *arg[MAX_ARGS + MAX_OUTS];
    EtcValue list, *item[MAX_OUTS]; /* the outs, where they are one argument */
    EtcTensor out[MAX_OUTS];
    int32_t dim[MAX_OUTS][ETC_MAX_RANK];
    int n_outs;
} Call;

static int n_passed(const Case *c)
{
    return c->n_args + (outs_are_list(c) ? 1 : c->n_outs);
}

static void call_make(Call *k, const Case *c, const EtcCores *cores, void *scratch)
{
    memset(k, 0, sizeof *k);
    k->n_outs = c->n_outs;
    for (int i = 0; i < c->n_args; i++) {
        k->value[i] = c->value[i];
    }
    for (int i = 0; i < c->n_outs; i++) {
        const EtcTensor *e = &c->out[i].expected;
        k->out[i] = *e;
        k->out[i].dim = k->dim[i];
        k->out[i].data = malloc((size_t)e->capacity + 1);
        memset(k->out[i].data, 0xa5, (size_t)e->capacity + 1);
        for (int32_t d = 0; d < e->rank; d++) {
            k->dim[i][d] = 0; /* to be resized */
        }
        k->value[c->n_args + i].tag = ETC_TENSOR;
        k->value[c->n_args + i].as.tensor = &k->out[i];
    }
    for (int i = 0; i < (c->n_args + c->n_outs); i++) {
        k->arg[i] = &k->value[i];
    }
    if (outs_are_list(c)) {
        memcpy(k->item, k->arg + c->n_args, sizeof k->item);
        k->list.tag = ETC_LIST_TENSOR;
        k->list.as.list.item = k->item;
        k->list.as.list.n = c->n_outs;
        k->arg[c->n_args] = &k->list;
    }
    k->call.arg = k->arg;
    k->call.n_args = n_passed(c);
    k->call.scratch = scratch;
    k->call.cores = cores;
}

static void call_free(Call *k)
{
    for (int i = 0; i < k->n_outs; i++) {
        free(k->out[i].data);
    }
}

static double number(const EtcTensor *t, int64_t i)
{
    double d = 0.0;
    float f;
    int64_t n;
    EtcKind kind = etc_cast_kind((int)t->dtype);
    if (kind == ETC_KIND_F32) {
        return (double)*(const float *)etc_fetch(kind, (int)t->dtype, etc_at(t, i), 1, 1, &f);
    }
    if (kind == ETC_KIND_F64) {
        memcpy(&d, (const char *)t->data + (i * 8), 8);
        return d;
    }
    const int64_t *p = etc_fetch(ETC_KIND_I64, (int)t->dtype, etc_at(t, i), 2, 1, &n);
    return (double)*p;
}

/* Largest error of torch's own float32 answer. */
static double torch_error(const Out *o)
{
    double worst = 0.0;
    for (int64_t i = 0; i < etc_numel(&o->expected); i++) {
        double e = fabs(number(&o->expected, i) - o->exact[i]);
        if ((e > worst) && isfinite(e)) {
            worst = e;
        }
    }
    return worst;
}

static double largest(const EtcTensor *t)
{
    double most = 0.0;
    for (int64_t i = 0; i < etc_numel(t); i++) {
        double v = fabs(number(t, i));
        most = (isfinite(v) && (v > most)) ? v : most;
    }
    return most;
}

/* Integers exactly; double to a few units; float at most twice torch's error and one unit. */
static int is_close(const Out *o, double worst, int64_t i, double got)
{
    double want = number(&o->expected, i);
    if (isnan(want) || isinf(want)) {
        return (isnan(want) && isnan(got)) || (want == got);
    }
    if (o->exact != NULL) {
        double truth = isfinite(o->exact[i]) ? o->exact[i] : want;
        return fabs(got - truth) <= ((2.0 * worst) + (fabs(truth) * 1.2e-7) + 1.5e-45);
    }
    return (o->expected.dtype == ETC_F64) ? (fabs(got - want) <= ((fabs(want) * 2e-15) + worst))
                                          : (got == want);
}

static void check_out(const Case *c, int n, int which, const EtcTensor *got)
{
    const Out *o = &c->out[which];
    double worst = (o->exact != NULL) ? torch_error(o)
                   : c->has_sums      ? (largest(&o->expected) * 1e-15)
                                      : 0.0;
    for (int32_t d = 0; d < got->rank; d++) {
        cr_assert_eq(got->dim[d], o->expected.dim[d], "case %d, %s: out %d has wrong sizes", n,
                     c->key, which);
    }
    for (int64_t i = 0; i < etc_numel(got); i++) {
        cr_assert(is_close(o, worst, i, number(got, i)),
                  "case %d, %s: out %d element %lld is %.9g, torch has %.9g", n, c->key, which,
                  (long long)i, number(got, i), number(&o->expected, i));
    }
}

static void check_same(const Case *c, int n, const char *isa, const EtcTensor *a,
                       const EtcTensor *b)
{
    size_t size = etc_dtype_size((int)a->dtype);
    for (int64_t i = 0; i < etc_numel(a); i++) {
        if (isnan(number(a, i)) && isnan(number(b, i))) {
            continue;
        }
        cr_assert(memcmp(etc_at(a, i), etc_at(b, i), size) == 0,
                  "case %d, %s: element %lld differs on %s: %.9g, %.9g", n, c->key, (long long)i,
                  isa, number(a, i), number(b, i));
    }
}

static void run_case(Case *c, int n, void *scratch)
{
    EtcKernel *run = find_kernel(c->key);
    cr_assert_not_null(run, "no kernel %s", c->key);
    Call first, k;
    call_make(&first, c, etc_cores_at(0), scratch);
    EtcStatus st = run(&first.call);
    cr_assert_eq(st, ETC_OK, "case %d, %s: status %d", n, c->key, (int)st);
    for (int i = 0; i < c->n_outs; i++) {
        check_out(c, n, i, &first.out[i]);
    }
    for (int t = 1; etc_cores_at(t) != NULL; t++) {
        call_make(&k, c, etc_cores_at(t), scratch);
        cr_assert_eq(run(&k.call), ETC_OK);
        for (int i = 0; i < c->n_outs; i++) {
            check_same(c, n, etc_cores_at(t)->name, &first.out[i], &k.out[i]);
        }
        call_free(&k);
    }
    call_free(&first);
}

/* Calls visit(case, number, data) for each case of a family; returns how many. */
typedef void Visit(Case *c, int n, void *data);

static int each_case(const char *family, Visit *visit, void *data)
{
    static unsigned char file[ARENA], arena[ARENA];
    char path[512];
    snprintf(path, sizeof path, "%s/tests/ops/%s.bin", ROOT, family);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "no %s", path);
    size_t n = fread(file, 1, sizeof file, f);
    fclose(f);
    cr_assert((n > 8) && (memcmp(file, "ETCOPS1\n", 8) == 0));
    Reader r = {file + 8, file + n, arena, 0, ARENA, 0};
    while (r.at < r.end) {
        Case c;
        get_case(&r, &c);
        c.has_sums = strcmp(family, "wide") == 0;
        visit(&c, r.n - 1, data);
        free_case(&c);
    }
    return r.n;
}

static void run_family(const char *family, int at_least)
{
    void *scratch = aligned_alloc(64, ETC_SCRATCH_BYTES);
    cr_assert_geq(each_case(family, run_case, scratch), at_least);
    free(scratch);
}

static const char *const families[] = {"pointwise", "matmul", "conv", "pool",
                                       "softmax",   "reduce", "norm", "copy",
                                       "logic",     "index",  "attention", "layer_norm", "image",
                                       "remainder", "lists", "quant", "integer", "exported",
                                       "shorts", "official", "packed_linear",
                                       "softmax_attention", "wide", "borders", "fills", "added",
                                       "arithmetic", "order", "counted", "sampled", "linalg", "unsigned",
                                       "rounded", "narrow", "alike", "whole"};
enum { N_FAMILIES = (int)(sizeof families / sizeof families[0]) };

Test(kernels, pointwise)
{
    run_family("pointwise", 600);
}
Test(kernels, arithmetic)
{
    run_family("arithmetic", 600);
}
Test(kernels, remainder)
{
    run_family("remainder", 50);
}
Test(kernels, official)
{
    run_family("official", 230);
}
Test(kernels, quant)
{
    run_family("quant", 400);
}
Test(kernels, integer)
{
    run_family("integer", 152);
}
Test(kernels, wide)
{
    run_family("wide", 500);
}
Test(kernels, borders)
{
    run_family("borders", 15);
}
Test(kernels, fills)
{
    run_family("fills", 60);
}
Test(kernels, added)
{
    run_family("added", 130);
}
Test(kernels, narrow)
{
    run_family("narrow", 12);
}
Test(kernels, alike)
{
    run_family("alike", 156);
}
Test(kernels, whole)
{
    run_family("whole", 50);
}
Test(kernels, matmul)
{
    run_family("matmul", 40);
}
Test(kernels, conv)
{
    run_family("conv", 30);
}
Test(kernels, pool)
{
    run_family("pool", 100);
}
Test(kernels, attention)
{
    run_family("attention", 30);
}

Test(kernels, softmax_attention)
{
    run_family("softmax_attention", 18);
}

Test(kernels, rounded)
{
    run_family("rounded", 6);
}

Test(kernels, packed_linear)
{
    run_family("packed_linear", 40);
}

/* One weight of column c and term i, its byte or half in blocks, and what it is as a float. */
static float put_packed(unsigned char *w, int bits, int64_t k, int64_t c, int64_t i, int q)
{
    const int64_t rows = (bits == 4) ? ((k + 1) / 2) : k;
    const int64_t at = ((((c / 16) * rows) + ((bits == 4) ? (i / 2) : i)) * 16) + (c % 16);
    if (bits == 16) {
        const unsigned all = 0xbfff; /* but the largest, and NaN */
        const uint16_t h = (uint16_t)(((unsigned)q * 2654435u) & all);
        memcpy(w + (2 * at), &h, 2);
        return etc_from_half(h);
    }
    if (bits == 8) {
        w[at] = (unsigned char)q;
        return (float)(int8_t)q;
    }
    w[at] = (unsigned char)(w[at] | ((q & 15) << ((i % 2) * 4)));
    return (float)((q & 7) - (q & 8));
}

/* The bits of a product with weights that were made floats before, on every instruction set. */
Test(kernels, packed_products)
{
    enum { N = 45, K = 156, M = 5 };
    static float x[M * K], bias[N], b[N * K], y[2][M * N], scale[3 * 156 * 16];
    static int8_t zero[3 * 156 * 16];
    static unsigned char w[3 * 16 * K * 2];
    static _Alignas(64) unsigned char work[ETC_WORK_BYTES];
    const int64_t groups[4] = {1, 3, 6, 78};
    for (int i = 0; i < (M * K); i++) {
        x[i] = sinf((float)i) * 3.0f;
        bias[i % N] = cosf((float)i);
    }
    for (int i = 0; i < (3 * 156 * 16); i++) {
        scale[i] = cosf((float)i * 0.3f);
        zero[i] = (int8_t)((i % 23) - 11);
    }
    for (int t = 0; t < (3 * 4); t++) {
        const int bits = 4 << (t / 4);
        const int64_t n_groups = (bits == 16) ? 1 : groups[t % 4];
        memset(w, 0, sizeof w);
        for (int64_t c = 0; c < N; c++) {
            for (int64_t i = 0; i < K; i++) {
                const int64_t at = ((((c / 16) * n_groups) + (i / (K / n_groups))) * 16) + (c % 16);
                const float q = put_packed(w, bits, K, c, i, (int)((c * 31) + (i * 17)));
                b[(c * K) + i] = (bits == 16) ? q : ((q - (float)zero[at]) * scale[at]);
            }
        }
        for (int which = 0; etc_cores_at(which) != NULL; which++) {
            const EtcCores *cores = etc_cores_at(which);
            for (int64_t m = 1; m <= M; m += 2) {
                const EtcMatmul f = {m, N, K, K, K, -20.0f, 30.0f, 1, 0};
                const EtcPacked g = {m, N, K, K / n_groups, -20.0f, 30.0f};
                const EtcPackedWeight weight = {w, scale, zero};
                EtcPackedCore *run = (bits == 4)   ? cores->packed_i4
                                     : (bits == 8) ? cores->packed_i8
                                                   : cores->packed_f16;
                cores->matmul(x, b, bias, y[0], &f, work);
                run(x, &weight, bias, y[1], &g, work);
                cr_assert(memcmp(y[0], y[1], (size_t)m * N * 4) == 0, "%s, %d bits, %lld groups",
                          cores->name, bits, (long long)n_groups);
            }
        }
    }
}

/* However small the tile, the same bits: rows one by one, keys in blocks. */
Test(kernels, attention_tiles)
{
    enum { N_Q = 29, N_K = 1300, D = 5, N_ROOMS = 4 };
    static float q[N_Q * D], k[N_K * D], v[N_K * D], add[N_K], y[2][N_Q * D];
    static _Alignas(64) unsigned char work[ETC_ATTENTION_PANEL + 4 * 60000];
    const int64_t room[N_ROOMS] = {60000, 9000, 2000, ETC_ATTENTION_LEAST};
    const EtcMask mask = {add, NULL, add};
    for (int i = 0; i < N_K * D; i++) {
        k[i] = sinf((float)i);
        v[i] = cosf((float)i * 0.7f);
        q[i % (N_Q * D)] = sinf((float)i * 0.3f) * 3.0f;
        add[i % N_K] = cosf((float)i);
    }
    for (int causal = 0; causal < 2; causal++) {
        for (int i = 0; i < N_ROOMS; i++) {
            const EtcAttention g = {N_Q, N_K, D, D, D, D, D, D, 0, 1, room[i], 0.4f, causal,
                                    0, 1, 3.0f, 0, 0};
            etc_cores()->attention(q, k, v, &mask, y[i > 0], &g, work);
            cr_assert(memcmp(y[0], y[i > 0], sizeof y[0]) == 0, "room %lld, causal %d",
                      (long long)room[i], causal);
        }
    }
}
Test(kernels, softmax)
{
    run_family("softmax", 20);
}
Test(kernels, reduce)
{
    run_family("reduce", 100);
}
Test(kernels, norm)
{
    run_family("norm", 10);
}
Test(kernels, copy)
{
    run_family("copy", 200);
}
Test(kernels, image)
{
    run_family("image", 150);
}

/* -- the table ------------------------------------------------------------------------------ */

Test(kernels, rows_are_sorted_and_found)
{
    for (int32_t i = 0; etc_kernel_at(i) != NULL; i++) {
        const EtcKernelRow *row = etc_kernel_at(i);
        char name[80];
        if (i > 0) {
            cr_assert_lt(strcmp(etc_kernel_at(i - 1)->name, row->name), 0, "%s", row->name);
        }
        snprintf(name, sizeof name, "%s", row->name);
        char *dot = strrchr(name, '.');
        if (dot != NULL) {
            *dot = '\0';
        }
        cr_assert_eq(etc_kernel_find(name, (dot != NULL) ? (dot + 1) : ""), row, "%s", row->name);
    }
    cr_assert_null(etc_kernel_at(-1));
    cr_assert_null(etc_kernel_find("aten::add", "nothing"));
    cr_assert_null(etc_kernel_find("aten::add", ""));
    cr_assert_null(etc_kernel_find("", ""));
    cr_assert_null(etc_kernel_find("zzz", "out"));
}

static void mark(Case *c, int n, void *data)
{
    int *seen = data;
    (void)n;
    for (int32_t i = 0; etc_kernel_at(i) != NULL; i++) {
        if (strcmp(etc_kernel_at(i)->name, c->key) == 0) {
            seen[i] = 1;
            cr_assert_eq(etc_kernel_at(i)->n_args, n_passed(c), "%s", c->key);
        }
    }
}

/* Returns whether the kernel handles no tensor's elements: such kernels have tests of their own. */
static int is_prim(const char *name)
{
    return (strncmp(name, "executorch_prim::", 17) == 0) ||
           (strncmp(name, "aten::sym_", 10) == 0) ||
           (strcmp(name, "aten::_local_scalar_dense") == 0) || (strcmp(name, "aten::copy_") == 0);
}

Test(kernels, logic)
{
    run_family("logic", 1000);
}

Test(kernels, index)
{
    run_family("index", 150);
}

Test(kernels, layer_norm)
{
    run_family("layer_norm", 49);
}

Test(kernels, order)
{
    run_family("order", 300);
}

Test(kernels, sampled)
{
    run_family("sampled", 48);
}
Test(kernels, counted)
{
    run_family("counted", 100);
}

Test(kernels, linalg)
{
    run_family("linalg", 100);
}

Test(kernels, lists)
{
    run_family("lists", 40);
}

Test(kernels, what_the_official_exporter_calls)
{
    run_family("exported", 30);
}

Test(kernels, short_floats)
{
    run_family("shorts", 30);
}

Test(kernels, casts_of_u64)
{
    run_family("unsigned", 10);
}

Test(kernels, every_row_has_a_recorded_case)
{
    int seen[512] = {0};
    for (int i = 0; i < N_FAMILIES; i++) {
        each_case(families[i], mark, seen);
    }
    for (int32_t i = 0; etc_kernel_at(i) != NULL; i++) {
        const char *name = etc_kernel_at(i)->name;
        cr_assert(seen[i] || is_prim(name), "%s has no recorded case", name);
    }
}

/* -- wrong arguments ------------------------------------------------------------------------ */

static const double wild[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300, 0.0};
enum { N_WILD = (int)(sizeof wild / sizeof wild[0]) };
static const int64_t extremes[] = {INT64_MIN, INT64_MAX, -1, 0, 1, 3, INT32_MAX, INT64_C(1) << 40};
enum { N_EXTREMES = (int)(sizeof extremes / sizeof extremes[0]) };

/* The argument i as something else, variant v; 0 past the last variant. */
static int spoil(Call *k, int i, int v, EtcValue *room, EtcValue **items)
{
    static const EtcTag tags[] = {ETC_NONE,     ETC_INT,         ETC_DOUBLE, ETC_IS_BOOL,
                                  ETC_LIST_INT, ETC_LIST_TENSOR, ETC_TENSOR, ETC_STRING};
    EtcValue *a = k->arg[i];
    if (v < 8) {
        memset(room, 0, sizeof *room);
        room->tag = tags[v];
        k->arg[i] = room;
        return 1;
    }
    v -= 8;
    if (a->tag == ETC_INT) {
        *room = *a;
        room->as.i = (v < N_EXTREMES) ? extremes[v] : 0;
        k->arg[i] = room;
        return v < N_EXTREMES;
    }
    if (a->tag == ETC_DOUBLE) {
        *room = *a;
        room->as.d = (v < N_WILD) ? wild[v] : 0.0;
        k->arg[i] = room;
        return v < N_WILD;
    }
    if ((a->tag == ETC_LIST_INT) && (a->as.list.n > 0)) {
        const int item = v / N_EXTREMES;
        if (item >= a->as.list.n) {
            return 0;
        }
        memcpy(items, a->as.list.item, sizeof *items * (size_t)a->as.list.n);
        room[1].tag = ETC_INT;
        room[1].as.i = extremes[v % N_EXTREMES];
        items[item] = &room[1];
        room[0] = *a;
        room[0].as.list.item = items;
        k->arg[i] = room;
        return 1;
    }
    return 0;
}

/* Whatever is wrong, a call returns; short ones and outs too small for the result are refused. */
static void abuse(Case *c, int n, void *scratch)
{
    EtcKernel *run = find_kernel(c->key);
    cr_assert_not_null(run, "no kernel %s", c->key);
    EtcValue room[2], *items[32];
    Call k;
    for (int short_by = 1; short_by <= n_passed(c); short_by++) {
        call_make(&k, c, etc_cores(), scratch);
        k.call.n_args -= short_by;
        cr_assert_eq(run(&k.call), ETC_BAD_ARG, "case %d, %s, %d arguments short", n, c->key,
                     short_by);
        call_free(&k);
    }
    for (int i = 0; i < n_passed(c); i++) {
        for (int v = 0;; v++) {
            call_make(&k, c, etc_cores(), scratch);
            int more = spoil(&k, i, v, room, items);
            EtcStatus st = more ? run(&k.call) : ETC_OK;
            call_free(&k);
            cr_assert((st == ETC_OK) || (st == ETC_BAD_ARG) || (st == ETC_UNSUPPORTED));
            if (!more) {
                break;
            }
        }
    }
    call_make(&k, c, etc_cores(), scratch);
    const int is_odd = (k.out[0].rank > 0) && (etc_numel(&c->out[0].expected) > 0);
    k.out[0].is_static = 1; /* with sizes that differ */
    cr_assert(!is_odd || (run(&k.call) == ETC_BAD_ARG), "case %d, %s", n, c->key);
    k.out[0].is_static = 0;
    k.out[0].capacity -= 1;
    cr_assert(!is_odd || (run(&k.call) == ETC_BAD_ARG), "case %d, %s", n, c->key);
    call_free(&k);
}

Test(kernels, wrong_arguments_are_refused)
{
    void *scratch = aligned_alloc(64, ETC_SCRATCH_BYTES);
    for (int i = 0; i < N_FAMILIES; i++) {
        each_case(families[i], abuse, scratch);
    }
    free(scratch);
}

/* No channels are divided by any number of groups. */
static void many_groups(Case *c, int n, void *scratch)
{
    Call k;
    EtcTensor w;
    int32_t dim[ETC_MAX_RANK];
    if (strcmp(c->key, "integer_convolution") != 0) {
        return;
    }
    call_make(&k, c, etc_cores(), scratch);
    w = *k.value[1].as.tensor;
    memcpy(dim, w.dim, sizeof *dim * (size_t)w.rank);
    dim[0] = 0;
    w.dim = dim;
    k.value[1].as.tensor = &w;
    k.value[6].as.i = INT64_MAX - 1;
    cr_assert_eq(find_kernel(c->key)(&k.call), ETC_BAD_ARG, "case %d", n);
    call_free(&k);
}

Test(kernels, groups_of_no_channels_are_refused)
{
    void *scratch = aligned_alloc(64, ETC_SCRATCH_BYTES);
    each_case("integer", many_groups, scratch);
    free(scratch);
}

/* Kernels of products, called when no work is left. */
static void work_none(Case *c, int n, void *scratch)
{
    static const char *const key[] = {"integer_linear", "integer_convolution", "integer_avg_pool2d",
                                      "integer_matmul", "packed_linear", "etc::softmax_attention.out",
                                      "etc::attention.out"};
    const EtcTensor *w = c->value[1].tag == ETC_TENSOR ? c->value[1].as.tensor : NULL;
    int64_t left = 0;
    Call k;
    size_t at = 0;
    while (at < sizeof key / sizeof *key && strcmp(c->key, key[at]) != 0)
        at++;
    if (at == sizeof key / sizeof *key || etc_numel(&c->out[0].expected) == 0 || (w && etc_numel(w) == 0))
        return;
    call_make(&k, c, etc_cores(), scratch);
    k.call.work = &left;
    cr_assert_eq(find_kernel(c->key)(&k.call), ETC_TOO_MUCH, "case %d, %s", n, c->key);
    call_free(&k);
}

Test(kernels, products_count_as_work)
{
    void *scratch = aligned_alloc(64, ETC_SCRATCH_BYTES);
    for (int i = 0; i < N_FAMILIES; i++) {
        each_case(families[i], work_none, scratch);
    }
    free(scratch);
}

/* -- results over operands ------------------------------------------------------------------- */

static const EtcKernelRow *row_of(const Case *c)
{
    for (int32_t i = 0; etc_kernel_at(i) != NULL; i++) {
        if (strcmp(etc_kernel_at(i)->name, c->key) == 0) {
            return etc_kernel_at(i);
        }
    }
    return NULL;
}

static int lies_like(const EtcTensor *x, const EtcTensor *y)
{
    int alike = (x->rank == y->rank) && (x->capacity == y->capacity) &&
                (etc_dtype_size((int)x->dtype) == etc_dtype_size((int)y->dtype));
    for (int32_t d = 0; alike && (d < x->rank); d++) {
        alike = (x->dim[d] == y->dim[d]) &&
                ((x->order ? x->order[d] : d) == (y->order ? y->order[d] : d));
    }
    return alike;
}

/* The first result written over argument i, where the row allows it. */
static void run_in_place(const Case *c, int n, int i, void *scratch)
{
    Call k;
    call_make(&k, c, etc_cores(), scratch);
    EtcTensor x = *k.arg[i]->as.tensor, *y = &k.out[0];
    EtcValue v = {.tag = ETC_TENSOR, .as.tensor = &x};
    memcpy(y->data, x.data, (size_t)x.capacity);
    x.data = y->data;
    k.arg[i] = &v;
    cr_assert_eq(find_kernel(c->key)(&k.call), ETC_OK, "case %d, %s", n, c->key);
    for (int out = 0; out < c->n_outs; out++) {
        check_out(c, n, out, &k.out[out]);
    }
    call_free(&k);
}

static void run_all_in_place(Case *c, int n, void *data)
{
    void **scratch_and_count = data;
    const EtcKernelRow *row = row_of(c);
    for (int i = 0; (row != NULL) && (i < c->n_args); i++) {
        if ((((row->inplace >> i) & 1u) != 0u) && (c->value[i].tag == ETC_TENSOR) &&
            lies_like(c->value[i].as.tensor, &c->out[0].expected)) {
            run_in_place(c, n, i, scratch_and_count[0]);
            ++*(int *)scratch_and_count[1];
        }
    }
}

Test(kernels, results_over_operands_are_the_same)
{
    int count = 0;
    void *data[2] = {aligned_alloc(64, ETC_SCRATCH_BYTES), &count};
    for (int i = 0; i < N_FAMILIES; i++) {
        each_case(families[i], run_all_in_place, data);
    }
    cr_assert_gt(count, 500);
    free(data[0]);
}

/* -- results over what kernels follow --------------------------------------------------------- */

/* Result `out` and the tensor of argument `other`, which lies `at` bytes before it, in one block:
 * the numbers are anybody's, but nothing outside is read or written. */
static void run_over(Case *c, int out, int other, int64_t at, void *scratch)
{
    Call k;
    call_make(&k, c, etc_cores(), scratch);
    EtcTensor *y = &k.out[out], x = *k.arg[other]->as.tensor;
    EtcValue v = {.tag = ETC_TENSOR, .as.tensor = &x};
    void *mine = y->data;
    const int64_t bytes = at + ((x.capacity > y->capacity) ? x.capacity : y->capacity);
    unsigned char *block = malloc((size_t)bytes + 1);
    memset(block, 0xa5, (size_t)bytes + 1);
    memcpy(block, x.data, (size_t)x.capacity);
    x.data = block;
    y->data = block + at;
    k.arg[other] = &v;
    EtcStatus st = find_kernel(c->key)(&k.call);
    cr_assert((st == ETC_OK) || (st == ETC_BAD_ARG) || (st == ETC_UNSUPPORTED));
    y->data = mine;
    call_free(&k);
    free(block);
}

/* Returns whether argument i is another result or a tensor of indices. */
static int is_followed(const Case *c, int out, int i)
{
    const EtcDtype y = c->out[out].expected.dtype;
    if (i >= c->n_args) {
        return i != (c->n_args + out);
    }
    const EtcValue *v = &c->value[i];
    return (i > 0) && (v->tag == ETC_TENSOR) && (v->as.tensor->dtype != y) &&
           ((v->as.tensor->dtype == ETC_I64) || (v->as.tensor->dtype == ETC_I32));
}

static void run_over_all(Case *c, int n, void *data)
{
    void **scratch_and_count = data;
    (void)n;
    for (int out = 0; (out < c->n_outs) && !outs_are_list(c); out++) {
        for (int i = 0; i < (c->n_args + c->n_outs); i++) {
            for (int64_t at = 0; is_followed(c, out, i) && (at <= 24); at += 8) {
                run_over(c, out, i, at, scratch_and_count[0]);
                ++*(int *)scratch_and_count[1];
            }
        }
    }
}

Test(kernels, nothing_written_is_trusted)
{
    int count = 0;
    void *data[2] = {aligned_alloc(64, ETC_SCRATCH_BYTES), &count};
    for (int i = 0; i < N_FAMILIES; i++) {
        each_case(families[i], run_over_all, data);
    }
    cr_assert_gt(count, 1000);
    free(data[0]);
}

/* Many rows of nothing take no time. */
Test(kernels, empty_tensors_take_no_time, .timeout = 60)
{
    int32_t dim[2][5] = {{1 << 20, 1 << 20, 1 << 10, 1, 0}, {1 << 20, 1 << 20, 1 << 10, 1, 0}};
    int32_t one[1] = {1};
    float scale = 0.5f, nothing = 0.0f;
    int64_t zero = 0;
    EtcTensor x = {.data = &nothing, .dtype = ETC_F32, .rank = 5, .dim = dim[0]};
    EtcTensor y = {.data = &nothing, .dtype = ETC_I8, .rank = 5, .dim = dim[1]};
    EtcTensor s = {.data = &scale, .dtype = ETC_F32, .rank = 1, .dim = one, .capacity = 4};
    EtcTensor z = {.data = &zero, .dtype = ETC_I64, .rank = 1, .dim = one, .capacity = 8};
    EtcValue v[8] = {{.tag = ETC_TENSOR, .as.tensor = &x}, {.tag = ETC_TENSOR, .as.tensor = &s},
                     {.tag = ETC_TENSOR, .as.tensor = &z}, {.tag = ETC_INT, .as.i = 3},
                     {.tag = ETC_INT, .as.i = -128},       {.tag = ETC_INT, .as.i = 127},
                     {.tag = ETC_INT, .as.i = ETC_I8},     {.tag = ETC_TENSOR, .as.tensor = &y}};
    EtcValue *arg[8];
    for (int i = 0; i < 8; i++) {
        arg[i] = &v[i];
    }
    const EtcCall c = {.arg = arg, .n_args = 8};
    cr_expect_eq(etc_quantize_per_channel(&c), ETC_OK);
}

/* A single index names one element, which a source without elements does not have. */
Test(kernels, a_single_index_needs_an_element)
{
    int32_t three[1] = {3}, none[1] = {0}, out[1] = {0};
    float number[3] = {0}, result[3];
    int64_t index = 1;
    EtcTensor x = {.data = number, .dtype = ETC_F32, .rank = 1, .dim = three, .capacity = 12};
    EtcTensor at = {.data = &index, .dtype = ETC_I64, .capacity = 8};
    EtcTensor src = {.data = number, .dtype = ETC_F32, .rank = 1, .dim = none};
    EtcTensor y = {.data = result, .dtype = ETC_F32, .rank = 1, .dim = out, .capacity = 12};
    EtcValue v[5] = {{.tag = ETC_TENSOR, .as.tensor = &x}, {.tag = ETC_INT},
                     {.tag = ETC_TENSOR, .as.tensor = &at}, {.tag = ETC_TENSOR, .as.tensor = &src},
                     {.tag = ETC_TENSOR, .as.tensor = &y}};
    EtcValue *arg[5] = {&v[0], &v[1], &v[2], &v[3], &v[4]};
    const EtcCall c = {.arg = arg, .n_args = 5};
    cr_expect_eq(etc_scatter_src(&c), ETC_BAD_ARG);
    cr_expect_eq(etc_scatter_add(&c), ETC_BAD_ARG);
    src.rank = 0;
    cr_expect_eq(etc_scatter_add(&c), ETC_OK);
}

/* -- Fourier transforms ------------------------------------------------------------------------ */

enum { FLOATS = 1 << 18 };

typedef struct Transform {
    int n, outer, inner, form, back;
    float x[FLOATS], y[FLOATS], work[FLOATS];
} Transform;

/* The call; y becomes what it gives. */
static EtcStatus transform(Transform *t, const EtcCores *cores, int work)
{
    const int half = (t->n / 2) + 1;
    int32_t x_dim[4] = {t->outer, (t->form == 2) ? half : t->n, t->inner, 2};
    int32_t y_dim[4] = {t->outer, (t->form == 1) ? half : t->n, t->inner, 2}, w_dim[1] = {work};
    EtcTensor x = {.data = t->x, .dtype = ETC_F32, .rank = (t->form == 1) ? 3 : 4, .dim = x_dim};
    EtcTensor y = {.data = t->y, .dtype = ETC_F32, .rank = (t->form == 2) ? 3 : 4, .dim = y_dim,
                   .capacity = sizeof t->y};
    EtcTensor w = {.data = t->work, .dtype = ETC_F32, .rank = 1, .dim = w_dim,
                   .capacity = sizeof t->work};
    EtcValue v[7] = {{.tag = ETC_TENSOR, .as.tensor = &x}, {.tag = ETC_INT, .as.i = 1},
                     {.tag = ETC_INT, .as.i = t->n},       {.tag = ETC_INT, .as.i = t->form},
                     {.tag = ETC_IS_BOOL, .as.b = t->back != 0},
                     {.tag = ETC_TENSOR, .as.tensor = &y}, {.tag = ETC_TENSOR, .as.tensor = &w}};
    EtcValue *arg[7];
    for (int i = 0; i < 7; i++) {
        arg[i] = &v[i];
    }
    const EtcCall c = {.arg = arg, .n_args = 7, .cores = cores};
    return etc_fft(&c);
}

/* Element k of row (o, i), as a complex number: of a half also what it tells. */
static double complex input_of(const Transform *t, int o, int k, int i)
{
    const int n = (t->form == 2) ? ((t->n / 2) + 1) : t->n, of = (k < n) ? k : (t->n - k);
    const float *at = t->x + ((((o * n) + of) * t->inner) + i) * ((t->form == 1) ? 1 : 2);
    const double im = (t->form == 1) ? 0.0 : at[1];
    return at[0] + (((k < n) ? im : -im) * I);
}

/* Compares row (o, i) with the sums that define it. */
static void check_transform(const Transform *t, int o, int i)
{
    const int n = (t->form == 1) ? ((t->n / 2) + 1) : t->n;
    for (int k = 0; k < n; k++) {
        double complex sum = 0.0;
        for (int j = 0; j < t->n; j++) {
            const double turn = (2.0 * M_PI * (double)((j * k) % t->n)) / t->n;
            sum += input_of(t, o, j, i) * cexp(((t->back != 0) ? turn : -turn) * I);
        }
        const float *at = t->y + ((((o * n) + k) * t->inner) + i) * ((t->form == 2) ? 1 : 2);
        const double off = cabs((at[0] + (((t->form == 2) ? cimag(sum) : at[1]) * I)) - sum);
        cr_assert_lt(off, 1e-6 * t->n, "%d x %d x %d, form %d: element %d is off by %g", t->outer,
                     t->n, t->inner, t->form, k, off);
    }
}

/* The same by every instruction set, and with no more working memory than the compiler plans. */
static void run_transform(Transform *t)
{
    const int floats = (int)etc_fft_work(t->n, t->outer * t->inner, t->form);
    static float first[FLOATS];
    cr_assert(floats > 0 && floats < FLOATS);
    cr_assert_eq(transform(t, etc_cores(), floats - 1), ETC_NO_MEMORY);
    for (int i = 0; etc_cores_at(i) != NULL; i++) {
        memset(t->y, 0, sizeof t->y);
        t->work[floats] = 7.0f;
        cr_assert_eq(transform(t, etc_cores_at(i), floats), ETC_OK);
        cr_assert_eq(t->work[floats], 7.0f);
        cr_assert((i == 0) || !memcmp(t->y, first, sizeof first), "%d: %s", t->n,
                  etc_cores_at(i)->name);
        memcpy(first, t->y, sizeof first);
    }
    for (int row = 0; row < (t->outer * t->inner); row += 3) {
        check_transform(t, row / t->inner, row % t->inner);
    }
}

Test(kernels, transforms_of_any_number_of_rows_have_their_memory)
{
    cr_expect_gt(etc_fft_work(8, INT64_MAX, 0), 0);
    cr_expect_geq(etc_fft_work(8, -1, 0), etc_fft_work(8, INT64_MAX, 0));
}

Test(kernels, transforms_are_the_sums_that_define_them)
{
    static const int length[] = {1, 2, 3, 7, 12, 37, 45, 64, 74, 256, 300, 518};
    static const int rows[][2] = {{1, 1}, {3, 1}, {18, 1}, {1, 5}, {2, 17}};
    Transform *t = malloc(sizeof *t);
    for (int i = 0; i < FLOATS; i++) {
        t->x[i] = (float)(((i * 7919) % 2003) - 1001) / 1001.0f;
    }
    for (size_t i = 0; i < (sizeof length / sizeof *length); i++) {
        for (int k = 0; k < (5 * 6); k++) {
            t->n = length[i];
            t->outer = rows[k % 5][0];
            t->inner = rows[k % 5][1];
            t->form = k / 10;
            t->back = (k / 5) % 2;
            run_transform(t);
        }
    }
    free(t);
}

/* The transform of t->x by the kernel of a .pte, as complex numbers or as pairs of floats. */
static EtcStatus transform_real(Transform *t, int rank, int is_complex, int work, int64_t norm)
{
    int32_t x_dim[3] = {t->outer, t->n, t->inner}, w_dim[1] = {work};
    int32_t y_dim[4] = {t->outer, (t->n / 2) + 1, t->inner, 2};
    EtcTensor x = {.data = t->x, .dtype = ETC_F32, .rank = rank, .dim = x_dim};
    EtcTensor y = {.data = t->y, .dtype = (is_complex != 0) ? ETC_C64 : ETC_F32,
                   .rank = 4 - is_complex, .dim = y_dim, .capacity = sizeof t->y};
    EtcTensor w = {.data = t->work, .dtype = ETC_F32, .rank = 1, .dim = w_dim};
    EtcValue axis = {.tag = ETC_INT, .as.i = (rank > 0) ? 1 : 0}, *list[1] = {&axis};
    EtcValue v[6] = {{.tag = ETC_TENSOR, .as.tensor = &x},
                     {.tag = ETC_LIST_INT, .as.list = {.item = list, .n = 1}},
                     {.tag = ETC_INT, .as.i = norm}, {.tag = ETC_IS_BOOL, .as.b = 1},
                     {.tag = ETC_TENSOR, .as.tensor = &y}, {.tag = ETC_TENSOR, .as.tensor = &w}};
    EtcValue *arg[6] = {&v[0], &v[1], &v[2], &v[3], &v[4], &v[5]};
    const EtcCall c = {.arg = arg, .n_args = 6, .cores = etc_cores()};
    return etc_fft_r2c(&c);
}

Test(kernels, a_real_transform_of_a_pte_writes_complex_numbers_as_pairs)
{
    Transform *t = calloc(1, sizeof *t);
    cr_assert_not_null(t);
    t->outer = 3;
    t->n = 20;
    t->inner = 2;
    t->form = 1;
    for (int i = 0; i < (3 * 20 * 2); i++) {
        t->x[i] = (float)((i * 29) % 17) - 8.0f;
    }
    const int floats = (int)etc_fft_work(20, 6, 1);
    for (int is_complex = 0; is_complex < 2; is_complex++) {
        memset(t->y, 0, sizeof t->y);
        cr_assert_eq(transform_real(t, 3, is_complex, floats - 1, 0), ETC_NO_MEMORY);
        cr_assert_eq(transform_real(t, 3, is_complex, floats, 1), ETC_UNSUPPORTED);
        cr_assert_eq(transform_real(t, 3, is_complex, floats, 0), ETC_OK);
        cr_assert_eq(transform_real(t, 0, is_complex, floats, 0), ETC_BAD_ARG);
        for (int row = 0; row < 6; row++) {
            check_transform(t, row / 2, row % 2);
        }
    }
    free(t);
}

/* Transforms pairs along axis 1 and their own axis, as a .pte calls it. */
static EtcStatus transform_pairs(Transform *t, const EtcCores *cores, int last, int work)
{
    int32_t x_dim[4] = {t->outer, t->n, t->inner, last}, w_dim[1] = {work};
    int32_t y_dim[5] = {t->outer, t->n, t->inner, 2, 2};
    EtcTensor x = {.data = t->x, .dtype = ETC_F32, .rank = 4, .dim = x_dim};
    EtcTensor y = {.data = t->y, .dtype = ETC_F32, .rank = 5, .dim = y_dim, .capacity = sizeof t->y};
    EtcTensor w = {.data = t->work, .dtype = ETC_F32, .rank = 1, .dim = w_dim};
    EtcValue axis[2] = {{.tag = ETC_INT, .as.i = 1}, {.tag = ETC_INT, .as.i = 3}};
    EtcValue *list[2] = {&axis[0], &axis[1]};
    EtcValue v[6] = {{.tag = ETC_TENSOR, .as.tensor = &x},
                     {.tag = ETC_LIST_INT, .as.list = {.item = list, .n = 2}},
                     {.tag = ETC_INT, .as.i = 0}, {.tag = ETC_IS_BOOL, .as.b = 1},
                     {.tag = ETC_TENSOR, .as.tensor = &y}, {.tag = ETC_TENSOR, .as.tensor = &w}};
    EtcValue *arg[6] = {&v[0], &v[1], &v[2], &v[3], &v[4], &v[5]};
    const EtcCall c = {.arg = arg, .n_args = 6, .cores = cores};
    return etc_fft_r2c(&c);
}

/* Compares row (o, i) of the transforms of a + b and a - b with the sums that define them. */
static void check_pairs(const Transform *t, int o, int i)
{
    for (int k = 0; k < (2 * t->n); k++) {
        const int is_less = k % 2;
        double complex sum = 0.0;
        for (int j = 0; j < t->n; j++) {
            const double complex x = input_of(t, o, j, i);
            const double of = creal(x) + ((is_less != 0) ? -cimag(x) : cimag(x));
            sum += of * cexp(-((2.0 * M_PI * (double)((j * (k / 2)) % t->n)) / t->n) * I);
        }
        const float *at = t->y + (((((o * t->n) + (k / 2)) * t->inner) + i) * 4) + (2 * is_less);
        cr_assert_lt(cabs((at[0] + (at[1] * I)) - sum), 2e-6 * t->n, "%d: element %d", t->n, k);
    }
}

Test(kernels, a_real_transform_of_pairs_gives_those_of_sums_and_differences)
{
    static const int length[] = {1, 2, 7, 37, 64, 75, 256, 300};
    static const int rows[][2] = {{1, 1}, {3, 1}, {18, 1}, {1, 5}, {2, 17}};
    static float first[FLOATS];
    Transform *t = calloc(1, sizeof *t);
    cr_assert_not_null(t);
    for (int i = 0; i < FLOATS; i++) {
        t->x[i] = (float)(((i * 7919) % 2003) - 1001) / 1001.0f;
    }
    for (int i = 0; i < (8 * 5); i++) {
        t->n = length[i / 5];
        t->outer = rows[i % 5][0];
        t->inner = rows[i % 5][1];
        const int floats = (int)etc_fft_work(t->n, t->outer * t->inner, 3);
        cr_assert_eq(transform_pairs(t, etc_cores(), 2, floats - 1), ETC_NO_MEMORY);
        cr_assert_eq(transform_pairs(t, etc_cores(), 3, floats), ETC_UNSUPPORTED);
        for (int k = 0; etc_cores_at(k) != NULL; k++) {
            memset(t->y, 0, sizeof t->y);
            t->work[floats] = 7.0f;
            cr_assert_eq(transform_pairs(t, etc_cores_at(k), 2, floats), ETC_OK);
            cr_assert_eq(t->work[floats], 7.0f);
            cr_assert((k == 0) || !memcmp(t->y, first, sizeof first), "%d", t->n);
            memcpy(first, t->y, sizeof first);
        }
        for (int row = 0; row < (t->outer * t->inner); row += 3) {
            check_pairs(t, row / t->inner, row % t->inner);
        }
    }
    free(t);
}

Test(kernels, none_refuses)
{
    EtcCall c = {NULL, 0, NULL, NULL, NULL};
    cr_assert_eq(etc_none(&c), ETC_UNSUPPORTED);
}
