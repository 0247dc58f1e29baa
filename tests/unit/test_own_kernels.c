/* test_own_kernels.c -- tests kernels that a host registers with runtime-lite: they are found by
 * name, get their arguments, and may write only the memory that they were given. */
#include <criterion/criterion.h>
#include <math.h>
#include "compiler/compiler.h"
#include "compiler/config.h"
#include "tests/pte_load.h"

static const char ops[] =
    "operators:\n  - schema: \"my::swish(Tensor x, float scale=1.0) -> Tensor\"\n"
    "    results: [{dtype: dtype(x), sizes: sizes(x)}]\n    kernel: my::swish.out\n";

/* The sizes of input and result may be open. */
static const char model[] = "program \"m\" stage aten\n%smethod @forward(%%x: f32[%s,3]) {\n"
                            "  %%y = my.swish.default(%%x, 2.0) : f32[%s,3]\n  return %%y\n}\n";

typedef struct Made {
    Arena *a;
    uint8_t *file;
    size_t n;
} Made;

static Made make(bool is_open)
{
    Made m = {.a = arena_new()};
    Diag d = {.out = stderr};
    OutFile f;
    PteStats stats = {0};
    Pipeline all;
    CustomOps *custom = custom_ops_new(m.a);
    cr_assert(custom_parse("o.yaml", (const uint8_t *)ops, strlen(ops), custom, &d));
    const char *size = is_open ? "%s" : "2";
    Source src = {.file = "m", .line = 1, .custom = custom,
                  .text = arena_printf(m.a, model, is_open ? "sym %s in 1..4\n" : "", size, size)};
    Program *p = program_parse(m.a, &src, &d);
    cr_assert(p && program_guard(p, &d) && pipeline_of(p, &all, &d));
    cr_assert(passes_run(p, all.pass, all.n, (PassOptions){.dump = NULL}, &d));
    cr_assert(emit_pte(p, m.a, &f, &stats, &d));
    for (int i = 0; i < f.n; i++)
        m.n += (size_t)(f.piece[i].n + f.piece[i].zeros);
    cr_assert(!posix_memalign((void **)&m.file, 16, m.n));
    for (int i = 0, at = 0; i < f.n; at += (int)(f.piece[i].n + f.piece[i].zeros), i++) {
        memset(m.file + at, 0, (size_t)(f.piece[i].n + f.piece[i].zeros));
        memcpy(m.file + at, f.piece[i].data, (size_t)f.piece[i].n);
    }
    return m;
}

/* -- kernels ----------------------------------------------------------------------------------- */

static EtcStatus swish(const EtcCall *c)
{
    const EtcTensor *x = c->arg[0]->as.tensor;
    EtcTensor *y = c->arg[2]->as.tensor;
    if (c->arg[0]->tag != ETC_TENSOR || c->arg[1]->tag != ETC_DOUBLE || x->dtype != ETC_F32 ||
        y->dtype != ETC_F32 || etc_resize(y, x->dim, x->rank))
        return ETC_BAD_ARG;
    for (int64_t i = 0; i < etc_numel(x); i++) {
        float v = ((const float *)x->data)[i];
        ((float *)y->data)[i] = v / (1.0f + expf(-v * (float)c->arg[1]->as.d));
    }
    return ETC_OK;
}

static EtcStatus refuses(const EtcCall *c)
{
    (void)c;
    return ETC_UNSUPPORTED;
}

static EtcStatus grows(const EtcCall *c)
{
    c->arg[2]->as.tensor->dim[0] = 1000;
    return ETC_OK;
}

static EtcStatus moves(const EtcCall *c)
{
    c->arg[2]->as.tensor->data = c->scratch;
    return ETC_OK;
}

static EtcStatus retypes(const EtcCall *c)
{
    c->arg[2]->as.tensor->dtype = ETC_F64;
    return ETC_OK;
}

static EtcKernelRow row(EtcKernel *run)
{
    return (EtcKernelRow){"my::swish.out", run, 3, 2, 1, 0};
}

/* Loads with these kernels; the status of init, or of a run. */
static EtcStatus run(Loaded *l, const Made *m, const EtcKernelRow *list, int32_t n)
{
    memset(l, 0, sizeof *l);
    l->file = m->file;
    l->e.index = -1;
    l->most = LOADED_MOST;
    cr_assert(!etc_program_open(&l->program, m->file, m->n, &l->e), "%s", l->e.what);
    etc_program_kernels(&l->program, list, n);
    cr_assert(!etc_program_memory(&l->program, 0, &l->memory, &l->e));
    l->tables = loaded_memory(16, l->memory.table_bytes);
    l->scratch = loaded_memory(64, l->memory.scratch_bytes);
    for (int32_t i = 0; i < l->memory.n_pools; i++)
        l->pool[i] = loaded_memory(64, l->memory.pool_bytes[i]);
    EtcStatus s = etc_method_init(&l->program, 0, l->tables, l->pool, l->scratch, &l->method, &l->e);
    return s ? s : loaded_run_at(l, SIZES_SHOWN, 7);
}

static void stop(Loaded *l, Made *m)
{
    arena_free(m->a);
    loaded_stop(l);
}

/* ---------------------------------------------------------------------------------------------- */

Test(own_kernels, are_called_by_name)
{
    for (int is_open = 0; is_open < 2; is_open++) {
        Loaded l;
        Made m = make(is_open);
        EtcKernelRow list[] = {{"my::other.out", refuses, 3, 2, 1, 0}, row(swish)};
        cr_assert_eq(run(&l, &m, list, 2), ETC_OK, "%s", l.e.what);
        const EtcTensor *x = etc_method_input(l.method, 0)->as.tensor;
        const EtcTensor *y = etc_method_output(l.method, 0)->as.tensor;
        cr_expect(y->dim[0] == (is_open ? 4 : 2) && y->dim[1] == 3);
        for (int64_t i = 0; i < etc_numel(y); i++) {
            float v = ((const float *)x->data)[i], want = v / (1 + expf(-2 * v));
            float got = ((const float *)y->data)[i];
            cr_expect((isnan(want) && isnan(got)) || fabsf(got - want) <= 1e-6f * fabsf(want) ||
                      got == want, "%g: %g, not %g", v, got, want);
        }
        stop(&l, &m);
    }
}

Test(own_kernels, that_are_missing_are_named)
{
    Loaded l;
    Made m = make(false);
    const char *name = NULL, *overload = NULL;
    cr_expect_eq(run(&l, &m, NULL, 0), ETC_UNSUPPORTED);
    cr_expect_str_eq(l.e.name, "my::swish");
    cr_expect(etc_method_missing(&l.program, 0, 0, &name, &overload));
    cr_expect_str_eq(overload, "out");
    EtcKernelRow list[] = {row(swish)};
    etc_program_kernels(&l.program, list, 1);
    cr_expect_not(etc_method_missing(&l.program, 0, 0, &name, &overload));
    stop(&l, &m);
}

Test(own_kernels, rows_that_contradict_themselves_are_refused)
{
    const EtcKernelRow bad[] = {{"my::swish.out", NULL, 3, 2, 1, 0},
                                {"my::swish.out", swish, 3, 3, 1, 0},
                                {"my::swish.out", swish, 3, -1, 1, 0},
                                {"my::swish.out", swish, 30, 2, 17, 0}};
    for (int i = 0; i < 4; i++) {
        Loaded l;
        Made m = make(false);
        cr_expect_eq(run(&l, &m, &bad[i], 1), ETC_BAD_ARG, "%d: %s", i, l.e.what);
        cr_expect_str_eq(l.e.name, "my::swish");
        stop(&l, &m);
    }
    Loaded l;
    Made m = make(false);
    const EtcKernelRow longer = {"my::swish.out", swish, 9, 2, 1, 0};
    cr_expect_eq(run(&l, &m, &longer, 1), ETC_BAD_FILE, "%s", l.e.what);
    stop(&l, &m);
}

/* Nobody behind the kernel sees what it left. */
Test(own_kernels, that_break_a_result_end_the_run)
{
    EtcKernel *const bad[] = {refuses, grows, moves, retypes};
    for (int i = 0; i < 4; i++) {
        Loaded l;
        Made m = make(true);
        const EtcKernelRow list[] = {row(bad[i])};
        cr_expect_eq(run(&l, &m, list, 1), i ? ETC_BAD_ARG : ETC_UNSUPPORTED, "%d: %s", i, l.e.what);
        cr_expect_str_eq(l.e.name, "my::swish");
        const EtcTensor *y = etc_method_output(l.method, 0)->as.tensor;
        cr_expect(y->dtype == ETC_F32 && etc_numel(y) * 4 <= y->capacity, "%d", i);
        stop(&l, &m);
    }
}
