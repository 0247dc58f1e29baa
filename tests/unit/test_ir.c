/* test_ir.c -- tests the arena, checked arithmetic, diagnostics, the op table, schemas, sizes and
 * the mutators of graphs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ir/ir.h"

/* -- arena, arithmetic ---------------------------------------------------------------- */

Test(arena, memory_is_zeroed_aligned_and_apart)
{
    Arena *a = arena_new();
    unsigned char *p[600];
    size_t size[600];
    for (size_t i = 0; i < 600; i++) {
        size[i] = i % 7 == 6 ? 40000 + i : i * 3 % 700;
        p[i] = arena_alloc(a, size[i], 1);
        cr_assert_eq((uintptr_t)p[i] % (size[i] >= 256 ? 64 : 16), 0);
        for (size_t k = 0; k < size[i]; k++)
            cr_assert_eq(p[i][k], 0);
        memset(p[i], (int)(i % 255 + 1), size[i]);
    }
    for (size_t i = 0; i < 600; i++)
        for (size_t k = 0; k < size[i]; k++)
            cr_assert_eq(p[i][k], i % 255 + 1);
    arena_reset(a);
    cr_assert_not_null(arena_alloc(a, 0, 8));
    arena_free(a);
}

Test(arena, grown_arrays_keep_their_elements)
{
    Arena *a = arena_new();
    int *v = NULL, n = 0;
    for (int i = 0; i < 5000; i++)
        PUSH(a, v, n, i * 3);
    for (int i = 0; i < n; i++)
        cr_assert_eq(v[i], i * 3);
    cr_assert_str_eq(arena_printf(a, "%s-%d", "x", 12345), "x-12345");
    cr_assert_str_eq(arena_numbered(a, "x", "_c", 0), "x_c0");
    cr_assert_str_eq(arena_numbered(a, "", ".", INT32_MAX), ".2147483647");
    cr_assert_str_eq(arena_str(a, "abcdef", 3), "abc");
    arena_free(a);
}

/* Data has blocks of its own, and what comes behind it goes on where the last item ended. */
Test(arena, data_between_items_takes_no_page_of_theirs)
{
    enum { LARGE = 3 << 20, N = 100 };
    Arena *a = arena_new();
    arena_alloc(a, LARGE, 1);
    char *first = arena_alloc(a, 16, 1);
    for (int i = 1; i < N; i++) {
        memset(arena_bytes(a, 100), 1, 100);
        char *item = arena_alloc(a, 16, 1);
        cr_assert_eq(item, first + (16 * i));
    }
    arena_free(a);
}

/* Blocks of two arenas in a third one, the last first given back: then the third has them again. */
Test(arena, arenas_lie_in_what_their_host_has_left)
{
    enum { LARGE = 1 << 20, SMALL = 1 << 10, N = 300 };
    Arena *host = arena_new();
    char *start = arena_bytes(host, LARGE), *end = start + (2 << 20);
    memset(start, 1, LARGE);
    for (int round = 0; round < 3; round++) {
        Arena *a = arena_within(host), *b = arena_within(host);
        char *p[N], *q = arena_alloc(host, SMALL, 1);
        for (int i = 0; i < N; i++) {
            p[i] = arena_alloc(i < N / 2 ? a : b, SMALL, 1);
            for (int k = 0; k < SMALL; k++)
                cr_assert_eq(p[i][k], 0);
            memset(p[i], 2 + i % 2, SMALL);
        }
        for (int i = 0; i < N; i++)
            cr_assert(p[i][0] == 2 + i % 2 && p[i][SMALL - 1] == 2 + i % 2);
        cr_expect(p[0] > q && p[0] < end, "not within");
        cr_expect(p[N - 1] > q && p[N - 1] < p[0], "not within, or not below");
        cr_expect(q[0] == 0 && q[SMALL - 1] == 0 && start[LARGE - 1] == 1);
        arena_free(b);
        arena_free(a);
    }
    arena_free(host);
}

Test(halves, every_one_comes_back_and_what_lies_between_goes_to_the_nearest)
{
    for (unsigned h = 0; h < 0x7c00; h++) {
        double v = half_value((uint16_t)h), next = half_value((uint16_t)(h + 1));
        double middle = h == 0x7bff ? 65520 : (v + next) / 2, little = (middle - v) / 64;
        uint16_t even = (uint16_t)(h + (h & 1));
        cr_assert_eq(half_of((float)v), h);
        cr_assert_eq(half_of(-(float)v), h | 0x8000);
        cr_assert_eq(half_of((float)middle), even, "between %x and the next", h);
        cr_assert_eq(half_of((float)(middle - little)), h, "below the middle of %x", h);
        cr_assert_eq(half_of((float)(middle + little)), h + 1, "above the middle of %x", h);
    }
    cr_expect(isinf(half_value(0xfc00)) && half_value(0xfc00) < 0);
    cr_expect(isnan(half_value(half_of(NAN))));
    cr_expect_eq(bfloat_of(1.0f), 0x3f80);
    cr_expect_eq(bfloat_of(1.00390625f), 0x3f80); /* ties go to the even one */
    cr_expect_eq(bfloat_of(1.01171875f), 0x3f82);
    cr_expect_eq(bfloat_of(-INFINITY), 0xff80);
}

Test(arithmetic, overflow_is_told)
{
    int64_t v;
    cr_expect(add_ok(INT64_MAX - 1, 1, &v) && v == INT64_MAX);
    cr_expect_not(add_ok(INT64_MAX, 1, &v));
    cr_expect_not(add_ok(INT64_MIN, -1, &v));
    cr_expect(mul_ok(INT64_C(1) << 31, INT64_C(1) << 31, &v) && v == INT64_C(1) << 62);
    cr_expect_not(mul_ok(INT64_C(1) << 32, INT64_C(1) << 31, &v));
    cr_expect_not(mul_ok(INT64_MIN, -1, &v));
    cr_expect_eq(round_up(0, 16), 0);
    cr_expect_eq(round_up(17, 16), 32);
    cr_expect_eq(round_up(32, 16), 32);
}

/* -- diagnostics ---------------------------------------------------------------------- */

Test(diag, messages_name_file_line_node_and_origin)
{
    char *said = NULL;
    size_t len = 0;
    Diag d = {.out = open_memstream(&said, &len)};
    cr_expect_not(diag_error(&d, (Loc){"m.pt2", 0, 0, "c", "aten.conv2d.default", "b.0", "m.py:3"},
                             "bad %d", 7));
    cr_expect_not(diag_unsupported(&d, (Loc){.file = "t.etir", .line = 4}, "x"));
    diag_warn(&d, (Loc){0}, "w");
    diag_note(&d, "n");
    fclose(d.out);
    cr_expect_str_eq(said, "m.pt2: error: node 'c' (aten.conv2d.default): bad 7\n"
                           "  note: module b.0, m.py:3\n"
                           "t.etir:4: error: x\n"
                           "etc: warning: w\n"
                           "  note: n\n");
    free(said);
}

Test(diag, what_nobody_reads_is_counted)
{
    Diag d = {0};
    cr_expect_not(diag_error(&d, (Loc){0}, "x"));
    diag_warn(&d, (Loc){0}, "w");
    diag_note(&d, "n");
    cr_expect_eq(diag_errors(&d), 1);
}

Test(diag, exit_codes_have_one_precedence)
{
    static const struct {
        int n[N_FAULTS];
        int code;
    } row[] = {
        {{0}, 0},
        {{[FAULT_MODEL] = 1}, 1},
        {{[FAULT_UNSUPPORTED] = 2}, 4},
        {{[FAULT_MODEL] = 1, [FAULT_UNSUPPORTED] = 9}, 1},
        {{[FAULT_IO] = 1, [FAULT_MODEL] = 1}, 3},
        {{[FAULT_GATE] = 1}, 5},
        {{[FAULT_GATE] = 1, [FAULT_UNSUPPORTED] = 1}, 4},
        {{[FAULT_BUG] = 1, [FAULT_IO] = 1, [FAULT_MODEL] = 1}, 70},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Diag d = {0};
        memcpy(d.n, row[i].n, sizeof d.n);
        cr_expect_eq(diag_exit_code(&d), row[i].code, "row %zu", i);
    }
}

/* -- op table, schemas ---------------------------------------------------------------- */

Test(ops, rows_are_sorted_found_and_sound)
{
    for (int i = 0; i < N_OPS; i++) {
        const OpInfo *op = &op_info[i];
        const char *target = op_target((OpId)i);
        cr_expect(!i || strcmp(op_target((OpId)(i - 1)), target) < 0, "%s", target);
        cr_expect_eq(op_find(target), (OpId)i, "%s", target);
        cr_expect_not_null(op_infer((OpId)i), "%s", target);
        cr_expect_eq(op_mutates((OpId)i), op->functional != OP_NONE, "%s", target);
        cr_expect(op->functional == OP_NONE || !op_mutates(op->functional), "%s", target);
        cr_expect_eq(op->has_kernel, strcmp(op_kernel((OpId)i), "none") != 0, "%s", target);
    }
    cr_expect_eq(op_find("aten.relu"), OP_NONE);
    cr_expect_eq(op_find(""), OP_NONE);
}

static const struct {
    const char *word, *name;
    bool is_near;
} near_row[] = {
    {"s13", "s31", true},          {"batch", "s31", false},      {"x", "y", false},
    {"x", "x", true},              {"s7", "s8", true},           {"s7", "t8", false},
    {"x.0", "s31", false},         {"silu", "relu", false},      {"gelu", "relu", true},
    {"hots", "host", true},        {"conv3d", "conv2d", true},   {"norm", "conv", false},
    {"fc10", "fc2", false},        {"backedn", "backend", true}, {"", "s", false},
    {"abcdefghi", "abc", false},   {"abcdefghi", "abcdefxyz", true},
    {"abcdefghijkl", "abcdefghwxyz", false},
};

Test(near, few_edits_for_the_length)
{
    for (size_t i = 0; i < sizeof near_row / sizeof *near_row; i++) {
        Near n = near_word(near_row[i].word);
        near_consider(&n, near_row[i].name);
        cr_expect_eq(n.best != NULL, near_row[i].is_near, "%s, %s", near_row[i].word,
                     near_row[i].name);
    }
}

Test(near, long_names_by_what_lies_between_their_ends)
{
    char long_one[400], other[400];
    memset(long_one, 'm', sizeof long_one);
    long_one[sizeof long_one - 1] = '\0';
    memcpy(other, long_one, sizeof other);
    other[200] = '7';
    Near n = near_word(other);
    cr_expect(near_consider(&n, long_one));
    other[20] = other[370] = '7';
    n = near_word(other);
    cr_expect(!near_consider(&n, long_one), "what lies between is longer than is looked at");
}

Test(near, the_nearest_and_first)
{
    Near n = near_word("layers.7");
    cr_expect(near_consider(&n, "layer.7s"));
    cr_expect(near_consider(&n, "layers.0"));
    cr_expect(!near_consider(&n, "layers.1"));
    cr_expect_str_eq(n.best, "layers.0");
}

Test(near, what_all_operators_share_makes_none_near)
{
    static const struct {
        const char *word, *best;
    } row[] = {{"aten.relu.defualt", "aten.relu.default"}, {"lineer", "linear"},
               {"aten.t.defualt", "aten.t.default"},       {"aten.add.Tensro", "aten.add.Tensor"},
               {"aten.zyx.default", NULL},                 {"nothing like an operator", NULL},
               {"aten.ffo.default", NULL},                 {"mine.relu.default", NULL},
               {"", NULL}};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Near n = near_operator(a, row[i].word);
        cr_expect_eq(!n.best, !row[i].best, "%s: %s", row[i].word, n.best ? n.best : "none");
        if (n.best && row[i].best)
            cr_expect_str_eq(n.best, row[i].best);
    }
    arena_free(a);
}

Test(schema, every_row_parses)
{
    Arena *a = arena_new();
    Program *p = program_new(a, "t");
    for (OpId i = 0; i < N_OPS; i++) {
        const Schema *s = op_schema(p, i);
        bool writes = false;
        cr_expect_gt(s->n_args, 0, "%s", op_target(i));
        for (int k = 0; k < s->n_args; k++) {
            const SchemaArg *arg = &s->arg[k];
            writes = writes || arg->mutates;
            cr_expect_neq(arg->type, SCH_OTHER, "%s: '%s'", op_target(i), arg->text);
            cr_expect_eq(schema_find(s, arg->name, strlen(arg->name)), k, "%s: '%s'",
                         op_target(i), arg->text);
            cr_expect_eq(arg->has_default, strchr(arg->text, '=') != NULL, "%s", arg->text);
        }
        cr_expect_eq(writes, op_mutates(i), "%s", op_target(i));
        cr_expect(op_info[i].inplace < 1u << s->n_args, "%s", op_target(i));
    }
    cr_expect_eq(op_schema(p, OP_ADD_TENSOR), op_schema(p, OP_ADD_TENSOR));
    arena_free(a);
}

static const SchemaArg *row_arg(Program *p, OpId op, const char *name)
{
    const Schema *s = op_schema(p, op);
    int i = schema_find(s, name, strlen(name));
    cr_assert_geq(i, 0, "%s", name);
    return &s->arg[i];
}

Test(schema, defaults_are_pytorchs)
{
    Arena *a = arena_new();
    Program *p = program_new(a, "t");
    Arg v = row_arg(p, OP_MAX_POOL2D, "padding")->fallback;
    cr_expect(v.kind == ARG_LIST && v.list.n == 2 && v.list.item[1].dim.value == 0);
    v = row_arg(p, OP_MAX_POOL2D, "dilation")->fallback;
    cr_expect(v.kind == ARG_LIST && v.list.n == 2 && v.list.item[0].dim.value == 1);
    v = row_arg(p, OP_MAX_POOL2D, "stride")->fallback;
    cr_expect(v.kind == ARG_LIST && v.list.n == 0);
    v = row_arg(p, OP_CONV2D, "stride")->fallback;
    cr_expect(v.kind == ARG_LIST && v.list.n == 2 && v.list.item[1].dim.value == 1);
    cr_expect_eq(row_arg(p, OP_CONV2D, "bias")->fallback.kind, ARG_NONE);
    v = row_arg(p, OP_LEAKY_RELU, "negative_slope")->fallback;
    cr_expect(v.kind == ARG_FLOAT && v.f == 0.01);
    v = row_arg(p, OP_AVG_POOL2D, "count_include_pad")->fallback;
    cr_expect(v.kind == ARG_BOOL && v.b);
    v = row_arg(p, OP_GELU, "approximate")->fallback;
    cr_expect(v.kind == ARG_STRING && !strcmp(v.str, "none"));
    v = row_arg(p, OP_FLATTEN, "end_dim")->fallback;
    cr_expect(v.kind == ARG_INT && v.dim.value == -1);
    v = row_arg(p, OP_CONTIGUOUS, "memory_format")->fallback;
    cr_expect(v.kind == ARG_STRING && !strcmp(v.str, "contiguous_format"));
    v = row_arg(p, OP_AMAX, "dim")->fallback;
    cr_expect(v.kind == ARG_LIST && v.list.n == 0);
    arena_free(a);
}

Test(schema, marks_lists_options_and_outputs_are_read)
{
    Arena *a = arena_new();
    Program *p = program_new(a, "t");
    cr_expect(row_arg(p, OP_ADD__TENSOR, "self")->mutates);
    cr_expect_eq(row_arg(p, OP_VIEW, "self")->alias, 'a');
    cr_expect_not(row_arg(p, OP_VIEW, "self")->mutates);
    const SchemaArg *size = row_arg(p, OP_VIEW, "size");
    cr_expect(size->type == SCH_INT && size->is_list && size->is_sym && !size->is_optional);
    const SchemaArg *dim = row_arg(p, OP_MEAN_DIM, "dim");
    cr_expect(dim->is_list && dim->is_optional && dim->list_size == 1 && !dim->is_sym);
    cr_expect(row_arg(p, OP_ADD_TENSOR, "alpha")->is_keyword);
    cr_expect_not(row_arg(p, OP_ADD_TENSOR, "other")->is_keyword);
    cr_expect_eq(op_schema(p, OP_MAX_POOL2D_WITH_INDICES)->n_outs, 2);
    cr_expect_eq(op_schema(p, OP__ASSERT_TENSOR_METADATA)->n_outs, 0);
    cr_expect_eq(op_schema(p, OP_COND)->n_outs, -1);
    const Schema *full = op_schema(p, OP_FULL), *mean = op_schema(p, OP_MEAN_DIM);
    cr_expect(full->has_options && !schema_is_passed(full, schema_find(full, "dtype", 5)));
    cr_expect(!mean->has_options && schema_is_passed(mean, schema_find(mean, "dtype", 5)));
    arena_free(a);
}

/* -- sizes ---------------------------------------------------------------------------- */

enum { N_SYMS = 4 };

typedef struct Sizes {
    Arena *arena;
    Program *p;
    const Symbol *sym[N_SYMS];
    uint64_t seed;
} Sizes;

static Sizes sizes_new(uint64_t seed)
{
    Sizes s = {.arena = arena_new(), .seed = seed};
    s.p = program_new(s.arena, "sizes");
    s.sym[0] = program_symbol(s.p, "n", 1, 20);
    s.sym[1] = program_symbol(s.p, "m", 0, 7);
    s.sym[2] = program_symbol(s.p, "k", -5, 5);
    s.sym[3] = program_symbol(s.p, "u", 2, INT64_MAX);
    return s;
}

static int64_t pick(Sizes *s, int64_t lo, int64_t hi)
{
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((s->seed >> 33) % (uint64_t)(hi - lo + 1));
}

/* A size and its value at `at`, computed beside it without symint.c; 0: undefined there. */
typedef struct Pair {
    Dim dim;
    int64_t value;
    bool is_defined;
} Pair;

static bool apply(int op, int64_t a, int64_t b, int64_t *v)
{
    switch (op) {
    case 0:
        return add_ok(a, b, v);
    case 1:
        return b != INT64_MIN && add_ok(a, -b, v);
    case 2:
        return mul_ok(a, b, v);
    case 3:
    case 4: {
        if (!b)
            return false;
        int64_t q = a / b, r = a % b;
        if (r && (r < 0) != (b < 0)) {
            q--;
            r += b;
        }
        *v = op == 3 ? q : r;
        return true;
    }
    case 5:
        *v = a > b ? a : b;
        return true;
    default:
        *v = a < b ? a : b;
        return true;
    }
}

typedef Dim DimOp(Program *p, Dim a, Dim b);
static DimOp *const dim_op[] = {dim_add, dim_sub, dim_mul, dim_floordiv, dim_mod, dim_max, dim_min};

static Pair random_pair(Sizes *s, const int64_t *at, int depth)
{
    if (!depth || !pick(s, 0, 5)) {
        int i = (int)pick(s, 0, N_SYMS + 2);
        if (i < N_SYMS)
            return (Pair){dim_symbol(s->p, s->sym[i]), at[i], true};
        int64_t c = pick(s, -6, 9);
        return (Pair){DIM(c), c, true};
    }
    Pair a = random_pair(s, at, depth - 1), b = random_pair(s, at, depth - 1), r;
    int op = (int)pick(s, 0, 6);
    r.dim = dim_op[op](s->p, a.dim, b.dim);
    r.is_defined = a.is_defined && b.is_defined && apply(op, a.value, b.value, &r.value);
    return r;
}

static char *text_of(Dim d)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    dim_print(d, f);
    fclose(f);
    return text;
}

Test(sizes, algebra_agrees_with_plain_arithmetic)
{
    int n_symbolic = 0, n_plain = 0;
    for (uint64_t round = 0; round < 20000; round++) {
        Sizes s = sizes_new(round);
        int64_t at[N_SYMS] = {pick(&s, 1, 20), pick(&s, 0, 7), pick(&s, -5, 5), pick(&s, 2, 99)}, v,
                lo, hi;
        Pair x = random_pair(&s, at, 4);
        if (!dim_is_bad(x.dim) && x.is_defined) {
            n_symbolic += x.dim.expr != NULL;
            n_plain += x.dim.expr == NULL;
            char *text = text_of(x.dim);
            cr_assert(dim_eval(x.dim, at, &v), "%s", text);
            cr_assert_eq(v, x.value, "%s is %lld, expected %lld (round %d)", text, (long long)v,
                         (long long)x.value, (int)round);
            dim_range(x.dim, &lo, &hi);
            cr_assert(lo <= v && v <= hi, "%s: %lld not in its range %lld..%lld (round %d)", text,
                      (long long)v, (long long)lo, (long long)hi, (int)round);
            free(text);
        }
        arena_free(s.arena);
    }
    cr_expect_gt(n_symbolic, 5000);
    cr_expect_gt(n_plain, 500);
}

Test(sizes, equal_sums_of_products_are_the_same_pointer)
{
    for (uint64_t round = 0; round < 3000; round++) {
        Sizes s = sizes_new(round);
        int64_t at[N_SYMS] = {1, 1, 1, 2};
        Dim a = random_pair(&s, at, 2).dim, b = random_pair(&s, at, 2).dim,
            c = random_pair(&s, at, 2).dim;
        if (!dim_is_bad(a) && !dim_is_bad(b) && !dim_is_bad(c)) {
            Program *p = s.p;
            cr_assert(dim_equal(dim_add(p, a, b), dim_add(p, b, a)));
            cr_assert(dim_equal(dim_mul(p, a, b), dim_mul(p, b, a)));
            cr_assert(dim_equal(dim_sub(p, dim_add(p, a, b), b), a));
            cr_assert(dim_equal(dim_add(p, dim_add(p, a, b), c), dim_add(p, a, dim_add(p, b, c))));
            cr_assert(dim_equal(dim_mul(p, a, dim_add(p, b, c)),
                                dim_add(p, dim_mul(p, a, b), dim_mul(p, a, c))));
            cr_assert(dim_equal(dim_max(p, a, b), dim_max(p, b, a)));
            cr_assert(dim_equal(dim_sub(p, a, a), DIM(0)));
        }
        arena_free(s.arena);
    }
}

/* Where a and b have the same text they are the same pointer, and the text reads back. */
static void check_text(Sizes *s, Dim a, Dim b)
{
    char *x = text_of(a), *y = text_of(b), *said = NULL, program[4096];
    size_t len = 0;
    cr_assert_eq(!strcmp(x, y), dim_equal(a, b), "%s and %s", x, y);
    snprintf(
        program, sizeof program,
        "program \"t\" stage core\nsym %%n in 1..20\nsym %%m in 0..7\n"
        "sym %%k in -5..5\nsym %%u in 2..\nmethod @f(%%x: f32[%.1500s,%.1500s]) {\n  return\n}\n",
        x, y);
    Diag d = {.out = open_memstream(&said, &len)};
    Source src = {.file = "t", .text = program, .line = 1};
    Program *p = program_parse(s->arena, &src, &d);
    if (p)
        program_print(p, d.out);
    fclose(d.out);
    cr_assert_str_eq(said, program);
    free(said);
    free(x);
    free(y);
}

Test(sizes, text_is_canonical_and_reads_back)
{
    int n = 0;
    for (uint64_t round = 0; round < 3000; round++) {
        Sizes s = sizes_new(round);
        int64_t at[N_SYMS] = {1, 1, 1, 2};
        Dim a = random_pair(&s, at, 3).dim, b = random_pair(&s, at, 3).dim;
        if (!dim_is_bad(a) && !dim_is_bad(b)) {
            check_text(&s, a, b);
            n++;
        }
        arena_free(s.arena);
    }
    cr_expect_gt(n, 1000);
}

Test(sizes, quotients_of_quotients_and_extremes_of_multiples_are_seen_through)
{
    Sizes s = sizes_new(1);
    Program *p = s.p;
    Dim n = dim_symbol(p, s.sym[0]), k = dim_symbol(p, s.sym[2]), twice = dim_mul(p, n, DIM(2));
    Dim half = dim_floordiv(p, k, DIM(2));
    cr_expect(dim_equal(dim_floordiv(p, half, DIM(3)), dim_floordiv(p, k, DIM(6))));
    cr_expect(dim_equal(dim_floordiv(p, dim_add(p, half, DIM(1)), DIM(3)),
                        dim_floordiv(p, dim_add(p, k, DIM(2)), DIM(6))));
    cr_expect(dim_equal(dim_min(p, n, twice), n) && dim_equal(dim_max(p, n, twice), twice));
    cr_expect(dim_equal(dim_min(p, dim_add(p, k, DIM(1)), k), k));
    arena_free(s.arena);
}

/* n in 1..20, u in 2..; (n + -n % 8) // 8 is the number of blocks of 8. */
Test(sizes, padded_sizes_divide_into_blocks)
{
    Sizes s = sizes_new(1);
    Program *p = s.p;
    Dim n = dim_symbol(p, s.sym[0]), u = dim_symbol(p, s.sym[3]), zero = DIM(0), eight = DIM(8);
    Dim rest = dim_mod(p, dim_sub(p, eight, dim_mod(p, u, eight)), eight);
    cr_expect(dim_equal(rest, dim_mod(p, dim_sub(p, zero, u), eight)));
    Dim padded = dim_add(p, u, rest), blocks = dim_floordiv(p, padded, eight);
    cr_expect(dim_equal(blocks, dim_floordiv(p, dim_add(p, u, DIM(7)), eight)));
    cr_expect(dim_equal(dim_expand(p, padded), dim_mul(p, blocks, eight)));
    cr_expect(dim_equal(dim_mod(p, padded, eight), zero));
    cr_expect(dim_equal(dim_floordiv(p, padded, blocks), eight));
    cr_expect(dim_equal(dim_floordiv(p, dim_mul(p, padded, n), dim_mul(p, blocks, n)), eight));
    cr_expect(dim_equal(dim_sub(p, padded, u), rest));
    Dim few = dim_add(p, n, DIM(20)); /* 21..40 */
    cr_expect(dim_equal(dim_floordiv(p, dim_sub(p, zero, few), DIM(64)), DIM(-1)));
    cr_expect(dim_equal(dim_mod(p, dim_sub(p, zero, few), DIM(64)), dim_sub(p, DIM(64), few)));
    arena_free(s.arena);
}

Test(sizes, overflow_division_by_zero_and_weight_are_bad)
{
    Sizes s = sizes_new(1);
    Program *p = s.p;
    Dim n = dim_symbol(p, s.sym[0]), m = dim_symbol(p, s.sym[1]), big = DIM(INT64_MAX), v;
    cr_expect(dim_is_bad(dim_add(p, big, DIM(1))));
    cr_expect(dim_is_bad(dim_mul(p, dim_mul(p, n, big), DIM(2))));
    cr_expect(dim_is_bad(dim_add(p, dim_add(p, n, big), DIM(1))));
    cr_expect(dim_is_bad(dim_floordiv(p, n, DIM(0))));
    cr_expect(dim_is_bad(dim_mod(p, n, DIM(0))));
    cr_expect(dim_is_bad(dim_floordiv(p, n, m)));
    cr_expect(dim_is_bad(dim_floordiv(p, DIM(INT64_MIN + 1), DIM_BAD)));
    cr_expect(dim_is_bad(dim_add(p, DIM_BAD, n)) && dim_is_bad(dim_max(p, n, DIM_BAD)));
    cr_expect(dim_equal(dim_floordiv(p, dim_mul(p, m, DIM(12)), dim_mul(p, m, DIM(4))), DIM(3)));
    v = dim_max(p, n, dim_symbol(p, s.sym[2]));
    for (int i = 0; i < 1000 && !dim_is_bad(v); i++)
        v = dim_floordiv(p, dim_add(p, dim_max(p, v, m), DIM(i)), n);
    cr_expect(dim_is_bad(v));
    Dim twice = n; /* shares half of itself at each step: 2^i atoms */
    int64_t lo, hi;
    for (int i = 0; i < 100 && !dim_is_bad(twice); i++) {
        twice = dim_add(p, twice, dim_max(p, dim_sub(p, twice, DIM(i + 2)), m));
        dim_range(twice, &lo, &hi);
    }
    cr_expect(dim_is_bad(twice));
    for (int64_t i = 0; i < 100 && !dim_is_bad(n); i++)
        n = dim_mul(p, n, dim_add(p, n, DIM(i)));
    cr_expect(dim_is_bad(n));
    arena_free(s.arena);
}

/* -- types, graphs -------------------------------------------------------------------- */

Test(types, bytes_saturate)
{
    Sizes s = sizes_new(1);
    Dim huge[2] = {DIM(INT64_C(1) << 40), DIM(INT64_C(1) << 40)}, open = dim_symbol(s.p, s.sym[3]);
    Dim none[3] = {huge[0], huge[1], DIM(0)};
    cr_expect_eq(type_bytes(type_tensor(s.p, ETC_F32, 2, huge)), INT64_MAX);
    cr_expect_eq(type_bytes(type_tensor(s.p, ETC_F32, 1, &open)), INT64_MAX);
    cr_expect_eq(type_bytes(type_tensor(s.p, ETC_F32, 3, none)), 0);
    cr_expect_eq(
        type_bytes(type_tensor(s.p, ETC_BF16, 1, &(Dim){.expr = dim_symbol(s.p, s.sym[0]).expr})),
        40);
    cr_expect_eq(type_numel(type_tensor(s.p, ETC_F32, 0, NULL)), 1);
    arena_free(s.arena);
}

Test(graph, build_fills_defaults_infers_and_names)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Program *p = program_new(a, "b");
    Graph *g = graph_new(p, "f");
    Dim dim[4] = {DIM(1), DIM(3), DIM(8), DIM(8)};
    Value *x = graph_value(g, "x", type_tensor(p, ETC_F32, 4, dim));
    graph_add_input(g, x);
    int64_t kernel[2] = {2, 2};
    Node *pool = build(g, NULL, (Loc){.node = "pool"}, OP_MAX_POOL2D, &d, "vI", x, 2, kernel);
    cr_assert_not_null(pool);
    cr_expect_eq(pool->n_args, 6);
    cr_expect_eq(pool->out[0]->type.dim[3].value, 4);
    Node *add = build(g, pool, (Loc){0}, OP_ADD_TENSOR, &d, "vi", x, (int64_t)1);
    cr_assert_not_null(add);
    node_set_in(pool, 0, add->out[0]);
    cr_expect_eq(g->first, add);
    cr_expect_eq(g->last, pool);
    unsigned edits = p->edits;
    graph_add_output(g, pool->out[0]);
    cr_expect_neq(p->edits, edits);
    p->method = &g;
    p->n_methods = 1;
    cr_expect(program_verify(p, &d));
    arena_free(a);
}

/* A letter that build() does not know is our mistake. */
Test(graph, what_no_file_can_cause_aborts_with_its_place)
{
#ifdef NDEBUG
    cr_skip_test("assertions were left out of this build");
#endif
    char said[256] = "";
    int end[2], status;
    cr_assert_eq(pipe(end), 0);
    pid_t child = fork();
    if (!child) {
        Diag d = {.out = stderr};
        dup2(end[1], STDERR_FILENO);
        build(graph_new(program_new(arena_new(), "g"), "f"), NULL, (Loc){0}, OP_NEG, &d, "?");
        _exit(0);
    }
    close(end[1]);
    cr_assert_gt(read(end[0], said, sizeof said - 1), 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "ends with %x", status);
    cr_expect(strstr(said, "ir/graph.c:") && strstr(said, "report it"), "%s", said);
}

Test(graph, replace_follows_chains)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Source src = {
        .file = "t",
        .line = 1,
        .text =
            "program \"t\" stage core method @f(%x: f32[2]) {\n"
            "  %a = aten.relu.default(%x) : f32[2]\n  %b = aten.clone.default(%a, none) : f32[2]\n"
            "  %c = aten.clone.default(%b, none) : f32[2]\n  %e = aten.neg.default(%c) : f32[2]\n"
            "  return %c, %e }"};
    Program *p = program_parse(a, &src, &d);
    cr_assert_not_null(p);
    Graph *g = p->method[0];
    Node *n[4] = {g->first, g->first->next, g->first->next->next, g->last};
    Value **with = NEW(a, Value *, g->n_values);
    with[n[1]->out[0]->index] = n[0]->out[0];
    with[n[2]->out[0]->index] = n[1]->out[0];
    graph_replace(g, with);
    cr_expect_eq(n[3]->in[0], n[0]->out[0]);
    cr_expect_eq(g->out[0], n[0]->out[0]);
    cr_expect_eq(g->out[1], n[3]->out[0]);
    Uses u = graph_uses(g, a);
    int at = n[0]->out[0]->index;
    cr_expect_eq(u.first[at + 1] - u.first[at], 3);
    cr_expect(u.escapes[at]);
    graph_remove(g, n[2]);
    graph_remove(g, n[1]);
    cr_expect(n[0]->next == n[3] && n[3]->prev == n[0]);
    arena_free(a);
}

/* -- states ---------------------------------------------------------------------------------- */

static void add_one(const void *data, int64_t from, int64_t n, uint8_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)(((const uint8_t *)data)[from + i] + 1);
}

/* Bytes that are made when they are written are compared by what they are made from. */
Test(states, named_ones_are_shared_if_their_bytes_are_the_same)
{
    static const uint8_t one[8] = {1, 2, 3, 4, 5, 6, 7, 8}, again[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    Arena *a = arena_new();
    Program *p = program_new(a, "p");
    Type t = type_tensor(p, ETC_U8, 1, &DIM(8));
    State *made = program_named_made(p, "w", "w", t, one, 8, add_one);
    cr_expect_eq(program_named_made(p, "v", "v", t, again, 8, add_one), made);
    State *plain = program_named(p, "w", "w", t, one);
    cr_expect_neq(plain, made);
    cr_expect_str_neq(plain->fqn, made->fqn);
    cr_expect_eq(state_contents(plain, a), one);
    cr_expect_null(made->data);
    const uint8_t *bytes = state_contents(made, a);
    for (int i = 0; i < 8; i++)
        cr_expect_eq(bytes[i], i + 2);
    arena_free(a);
}

/* -- nested graphs ---------------------------------------------------------------------- */

static Program *nested_program(Arena *a, Diag *d)
{
    Source src = {
        .file = "t", .line = 1, .text =
        "program \"n\" stage core method @f(%p: bool[], %x: f32[2]) {\n"
        "  %a = aten.neg.default(%x) : f32[2]\n"
        "  %b = higher_order.cond(%p, graph (%p: bool[], %x: f32[2]) {\n"
        "    %c = aten.exp.default(%x) : f32[2]\n"
        "    %d = higher_order.while_loop(graph (%x: f32[2], %p: bool[]) { return %p },\n"
        "      graph (%x: f32[2], %p: bool[]) { %e = aten.sin.default(%x) : f32[2] return %e },\n"
        "      [%c], [%p]) : f32[2]\n"
        "    return %d\n"
        "  }, graph (%p: bool[], %x: f32[2]) { return %x }, [%p, %x]) : f32[2]\n"
        "  %g = aten.cos.default(%b) : f32[2]\n"
        "  return %g\n}\n"
        "method @g(%x: f32[2]) { %h = aten.exp.default(%x) : f32[2] return %h }\n"};
    Program *p = program_parse(a, &src, d);
    cr_assert_not_null(p);
    return p;
}

Test(regions, walks_visit_every_graph_and_node_once)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Program *p = nested_program(a, &d);
    char names[100] = "", graphs[200] = "";
    for (const Node *n = NULL; (n = walk_next(p->method[0], n));)
        strcat(names, n->out[0]->name);
    cr_expect_str_eq(names, "abcdeg");
    for (const Graph *g = NULL; (g = program_next(p, g));) { /* by what they return */
        strcat(graphs, g->name ? g->name : g->out[0]->name);
        strcat(graphs, " ");
    }
    cr_expect_str_eq(graphs, "p e d x f g ");
    Graph *inner = region_next(p->method[0]->first->next, NULL);
    names[0] = '\0';
    for (const Node *n = NULL; (n = walk_next(inner, n));)
        strcat(names, n->out[0]->name);
    cr_expect_str_eq(names, "cde");
    arena_free(a);
}

Test(regions, a_loop_carries_its_results)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    const Node *cond = nested_program(a, &d)->method[0]->first->next;
    const Node *loop = region_next(cond, NULL)->last;
    const Graph *test = region_next(loop, NULL), *body = region_next(loop, test);
    cr_expect(region_kind(cond) == REGION_ONE_OF && region_kind(loop) == REGION_LOOP);
    cr_expect_eq(region_n_operands(loop), 2);
    cr_expect_str_eq(region_operand(loop, 0)->name, "c");
    cr_expect_str_eq(region_input(loop, 0)->name, "d");
    cr_expect_str_eq(region_input(loop, 1)->name, "p");
    cr_expect_null(region_operand(loop, 2));
    cr_expect_str_eq(region_input(cond, 1)->name, "x");
    cr_expect(region_decides(loop, test) && !region_decides(loop, body));
    cr_expect(region_loop(body) == loop && !region_loop(test) && !region_loop(cond->graph));
    cr_expect(region_n_results(loop, test) == 1 && region_n_results(loop, body) == 1);
    arena_free(a);
}
