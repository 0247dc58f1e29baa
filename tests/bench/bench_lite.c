/* bench_lite.c -- times a .pte in runtime-lite.  The arguments after MODEL.pte are those of
 * timing.h. An input may end in :2x3, which gives its sizes if the program allows several. */
#define _POSIX_C_SOURCE 200809L
#include "runtime-lite/etc_rt.h"
#include "tests/bench/timing.h"

enum { MAX_TENSORS = 64 };

typedef struct Input {
    EtcValue value;
    EtcTensor tensor;
    int32_t dim[ETC_MAX_RANK];
} Input;

typedef struct Run {
    EtcMethod *method;
    Input in[MAX_TENSORS];
    int n_in;
} Run;

static int fail(const char *where, const EtcError *e)
{
    fprintf(stderr, "bench_lite: %s: %s %s\n", where, e->name ? e->name : "",
            e->what ? e->what : "");
    return 1;
}

static int open_method(const char *path, EtcMethod **method)
{
    EtcProgram *program = bench_alloc(sizeof *program); /* lives as long as the method */
    EtcError e = {.index = -1};
    EtcMemory need;
    void *pool[16] = {0};
    size_t n;
    const void *file = bench_read(path, &n);
    if (etc_program_open(program, file, n, &e) || etc_program_memory(program, 0, &need, &e))
        return fail(path, &e);
    for (int i = 0; i < need.n_pools; i++)
        pool[i] = bench_alloc(need.pool_bytes[i]);
    if (etc_method_init(program, 0, bench_alloc(need.table_bytes), pool,
                        bench_alloc(need.scratch_bytes), method, &e))
        return fail(path, &e);
    return 0;
}

/* "file" or "file:2x3" */
static void load_input(Input *in, const EtcValue *like, char *text)
{
    char *sizes = strrchr(text, ':');
    size_t n;
    in->tensor = *like->as.tensor;
    in->tensor.order = NULL;
    for (int i = 0; i < in->tensor.rank; i++)
        in->dim[i] = like->as.tensor->dim[i];
    for (int i = 0; sizes && i < in->tensor.rank; i++)
        in->dim[i] = (int32_t)strtol(sizes + 1, &sizes, 10);
    if (strrchr(text, ':'))
        *strrchr(text, ':') = '\0';
    in->tensor.dim = in->dim;
    in->tensor.data = bench_read(text, &n);
    in->tensor.capacity = (int64_t)n;
    in->value.tag = ETC_TENSOR;
    in->value.as.tensor = &in->tensor;
}

static int run(void *ctx)
{
    Run *r = ctx;
    EtcError e = {.index = -1};
    for (int i = 0; i < r->n_in; i++)
        if (etc_method_set_input(r->method, i, &r->in[i].value, &e))
            return fail("input", &e);
    return etc_method_run(r->method, &e) ? fail("run", &e) : 0;
}

int main(int argc, char **argv)
{
    Run *r = bench_alloc(sizeof *r);
    int i = 3;
    if (argc < 4 || open_method(argv[1], &r->method) != 0)
        return 1;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++, r->n_in++) {
        const EtcValue *like = r->n_in < etc_method_n_inputs(r->method) && r->n_in < MAX_TENSORS
                                   ? etc_method_input(r->method, r->n_in)
                                   : NULL;
        if (!like || like->tag != ETC_TENSOR)
            return fputs("bench_lite: more inputs than tensors to set\n", stderr), 1;
        load_input(&r->in[r->n_in], like, argv[i]);
    }
    if (bench_loop(strtod(argv[2], NULL), run, r) != 0)
        return 1;
    for (int k = 0; ++i < argc; k++) {
        const EtcTensor *t = etc_method_output(r->method, k)->as.tensor;
        bench_write(argv[i], t->data, (size_t)etc_numel(t) * etc_dtype_size((int)t->dtype));
    }
    return 0;
}
