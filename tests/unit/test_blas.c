/* test_blas.c -- compares products by OpenBLAS with those of our kernels.  They may differ by
 * rounding only. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ir/eval.h"

static const struct {
    const char *x, *w, *call; /* types of x and w; what is done with them and %b: f32[32] */
} case_of[] = {
    {"f32[2,16,9,11]", "f32[32,16,3,3]", "convolution(%x, %w, %b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) : f32[2,32,9,11]"},
    {"f32[2,16,9,11]", "f32[32,16,3,3]", "convolution(%x, %w, none, [2, 1], [0, 2], [1, 2], false, [0, 0], 1) : f32[2,32,4,11]"},
    {"f32[3,16,9,11]", "f32[32,16,1,1]", "convolution(%x, %w, %b, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) : f32[3,32,9,11]"},
    {"f32[1,16,9,11]", "f32[32,16,1,1]", "convolution(%x, %w, %b, [2, 2], [0, 0], [1, 1], false, [0, 0], 1) : f32[1,32,5,6]"},
    {"f32[2,16,9,11]", "f32[32,4,5,3]", "convolution(%x, %w, %b, [1, 2], [2, 1], [1, 1], false, [0, 0], 4) : f32[2,32,9,6]"},
    {"f32[1,32,9,11]", "f32[32,1,3,3]", "convolution(%x, %w, %b, [1, 1], [1, 1], [1, 1], false, [0, 0], 32) : f32[1,32,9,11]"},
    {"f32[1,16,5,6]", "f32[16,32,3,3]", "convolution(%x, %w, %b, [2, 2], [1, 1], [1, 1], true, [1, 1], 1) : f32[1,32,10,12]"},
    {"f32[2,16,40]", "f32[32,16,5]", "convolution(%x, %w, %b, [1], [2], [1], false, [0], 1) : f32[2,32,40]"},
    {"f32[1,16,300,300]", "f32[32,16,3,3]", "convolution(%x, %w, %b, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) : f32[1,32,300,300]"},
    {"f32[2,5,24]", "f32[32,24]", "linear(%x, %w, %b) : f32[2,5,32]"},
    {"f32[2,5,24]", "f32[32,24]", "linear(%x, %w, none) : f32[2,5,32]"},
    {"f32[7,24]", "f32[24,32]", "mm(%x, %w) : f32[7,32]"},
    {"f32[3,7,24]", "f32[3,24,32]", "bmm(%x, %w) : f32[3,7,32]"},
    {"f32[7,24]", "f32[24,32]", "addmm(%b, %x, %w, 1, 1) : f32[7,32]"},
};

static Program *program(Arena *a, int i)
{
    Diag d = {.out = stderr};
    Source s = {.file = "blas", .line = 1, .text =
                arena_printf(a,
                             "program \"m\" stage core\nmethod @forward(%%x: %s, %%w: %s, "
                             "%%b: f32[32]) {\n  %%y = aten.%.*s.default%s\n  return %%y\n}\n",
                             case_of[i].x, case_of[i].w, (int)strcspn(case_of[i].call, "("),
                             case_of[i].call, strchr(case_of[i].call, '('))};
    Program *p = program_parse(a, &s, &d);
    cr_assert(p && graph_infer(p->method[0], &d), "case %d", i);
    return p;
}

static EtcTensor *result(const Program *p, EtcTensor **in, const Blas *blas, Arena *a)
{
    Diag d = {.out = stderr};
    EtcTensor *out, *update;
    cr_assert(eval_watched(p->method[0], in, NULL, (EvalHow){.blas = blas}, a, &out, &update, &d));
    return out;
}

Test(blas, products_are_those_of_our_kernels)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    const Blas *blas = blas_open(a, &d);
    uint32_t seed = 1;
    int n_other = 0;
    if (!blas)
        cr_skip_test("OpenBLAS is not installed");
    cr_expect(strstr(blas_name(blas), "OpenBLAS"));
    for (int i = 0; i < (int)(sizeof case_of / sizeof *case_of); i++) {
        Program *p = program(a, i);
        EtcTensor *in[3];
        for (int k = 0; k < 3; k++) {
            const Type t = p->method[0]->in[k]->type;
            int64_t dim[MAX_RANK];
            for (int j = 0; j < t.rank; j++)
                dim[j] = t.dim[j].value;
            in[k] = tensor_new(a, ETC_F32, t.rank, dim);
            for (int64_t j = 0; j < etc_numel(in[k]); j++) {
                seed = seed * 1664525 + 1013904223;
                ((float *)in[k]->data)[j] = (float)(seed >> 8) / 8388608.0f - 1;
            }
        }
        const EtcTensor *want = result(p, in, NULL, a), *got = result(p, in, blas, a);
        for (int64_t j = 0; j < etc_numel(want); j++) {
            const double w = tensor_number(want, j), g = tensor_number(got, j);
            cr_assert(fabs(w - g) < 1e-4, "case %d, element %lld: %g, ours %g", i, (long long)j, g,
                      w);
        }
        n_other += memcmp(want->data, got->data, (size_t)etc_numel(want) * sizeof(float)) != 0;
    }
    cr_expect(n_other > 3, "the library did none of it");
    arena_free(a);
}
