/* test_emit_c.c -- tests emitted C as text: its files, names and numbers, and what emit-c refuses.
 *
 * tests/emitted/emitted.sh compiles it and runs it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "emit/c_emit.h"
#include "ir/session.h"
#include "passes/passes.h"

static Arena *arena;
static char *messages;
static size_t message_bytes;
static Diag diag;

static void begin(void)
{
    arena = arena_new();
    diag = (Diag){.out = open_memstream(&messages, &message_bytes)};
}

static void end(void)
{
    fclose(diag.out);
    free(messages);
    arena_free(arena);
}

TestSuite(emit_c, .init = begin, .fini = end);

#define LINEAR(n)                                                                    \
    "program \"m.pt2\" stage core\n"                                                 \
    "param %w = \"fc.weight\" : f32[" #n ",4] in \"-\"+0\n"                          \
    "method @forward(%x: f32[1,4]) {\n"                                              \
    "  %fc = aten.linear.default(%x, %w, none) : f32[1," #n "] from \"fc\", \"m.py:1\"\n" \
    "  return %fc\n"                                                                 \
    "}\n"

/* A planned program; all states share `data`. */
static Program *plan(const char *text, uint8_t *data)
{
    static const char *const pass[] = {"group", "order", "alias", "plan_memory", "check_plan"};
    Source src = {.file = "test.etir", .text = text, .line = 1};
    Program *p = program_parse(arena, &src, &diag);
    fflush(diag.out);
    cr_assert_not_null(p, "%s", messages);
    p->session->tail = &tail_c;
    for (int i = 0; data && i < p->n_states; i++) {
        p->state[i]->data = data + p->state[i]->offset;
        p->state[i]->n_bytes = type_bytes(p->state[i]->type);
    }
    bool ok = passes_run(p, pass, sizeof pass / sizeof *pass, (PassOptions){0}, &diag);
    fflush(diag.out);
    cr_assert(ok, "%s", messages);
    return p;
}

static CFiles emit(const char *text, const char *stem, WeightsAs weights, bool main)
{
    CFiles out;
    uint8_t *data = arena_alloc(arena, 1 << 20, 1);
    COptions o = {.stem = stem, .weights = weights, .main = main};
    bool ok = emit_c(&(CModel){.p = plan(text, data)}, 1, &o, arena, &out, &diag);
    fflush(diag.out);
    cr_assert(ok, "%s", messages);
    return out;
}

/* The text of a file, NULL when there is none of that suffix. */
static const char *file_text(const CFiles *files, const char *suffix)
{
    for (int i = 0; i < files->n; i++)
        if (!strcmp(files->file[i].suffix, suffix)) {
            const OutFile *f = &files->file[i].out;
            Text t = {.a = arena};
            for (int k = 0; k < f->n; k++) {
                uint8_t *made = NEW(arena, uint8_t, f->piece[k].n + 1);
                if (f->piece[k].make)
                    f->piece[k].make(f->piece[k].data, 0, f->piece[k].n, made);
                put_n(&t, f->piece[k].make ? (void *)made : f->piece[k].data,
                      (size_t)f->piece[k].n);
            }
            return t.s;
        }
    return NULL;
}

Test(emit_c, stands_alone_and_says_its_licence)
{
    CFiles files = emit(LINEAR(2), "dir/keyword", WEIGHTS_AUTO, true);
    const char *c = file_text(&files, ".c"), *h = file_text(&files, ".h");
    cr_expect_eq(strncmp(c, "/* SPDX-License-Identifier: 0BSD */\n", 36), 0);
    cr_expect_eq(strncmp(h, "/* SPDX-License-Identifier: 0BSD */\n", 36), 0);
    cr_expect_null(strstr(c, "runtime-lite/"));
    cr_expect_null(strstr(c, "emit/"));
    cr_expect_not_null(strstr(c, "#include \"keyword.h\""));
    cr_expect_not_null(strstr(c, "from fc (m.py:1)"));
    cr_expect_not_null(strstr(c, "static const float w_fc_weight[8] = {"));
    cr_expect_not_null(strstr(h, "int keyword_run(const float *x, float *out_fc, void *arena);"),
                       "%s", h);
    cr_expect_not_null(file_text(&files, "_main.c"));
}

Test(emit_c, the_same_program_gives_the_same_text)
{
    CFiles a = emit(LINEAR(2), "m", WEIGHTS_AUTO, true),
           b = emit(LINEAR(2), "m", WEIGHTS_AUTO, true);
    cr_assert_eq(a.n, b.n);
    for (int i = 0; i < a.n; i++)
        cr_expect_str_eq(file_text(&a, a.file[i].suffix), file_text(&b, b.file[i].suffix));
}

Test(emit_c, pastes_only_the_kernels_it_calls)
{
    CFiles files = emit(LINEAR(2), "m", WEIGHTS_AUTO, false);
    const char *c = file_text(&files, ".c");
    cr_expect_not_null(strstr(c, "etc_matmul_f32("));
    cr_expect_null(strstr(c, "etc_conv_f32("));
    cr_expect_null(strstr(c, "etc_vexp("));
}

Test(emit_c, large_weights_go_into_a_blob)
{
    CFiles small = emit(LINEAR(16368), "m", WEIGHTS_AUTO, false);
    CFiles large = emit(LINEAR(16384), "m", WEIGHTS_AUTO, false);
    CFiles asked = emit(LINEAR(16384), "m", WEIGHTS_ARRAY, false);
    cr_expect_null(file_text(&small, "_weights.S"));
    cr_expect_not_null(file_text(&large, "_weights.S"));
    cr_expect_not_null(file_text(&large, "_weights.S.bin"));
    cr_expect_null(file_text(&asked, "_weights.S"));
}

Test(emit_c, the_blob_points_at_the_weights_and_names_its_file)
{
    uint8_t *data = arena_alloc(arena, 1 << 20, 1);
    COptions o = {.stem = "out/a\"b", .weights = WEIGHTS_INCBIN};
    CFiles files;
    cr_assert_not(emit_c(&(CModel){.p = plan(LINEAR(2), data)}, 1, &o, arena, &files, &diag));
    o.stem = "o\"ut/ab";
    cr_assert(emit_c(&(CModel){.p = plan(LINEAR(2), data)}, 1, &o, arena, &files, &diag));
    const char *assembly = file_text(&files, "_weights.S");
    cr_expect_not_null(strstr(assembly, "    .incbin \"\\file\\().bin\"\n"), "%s", assembly);
    cr_expect_not_null(strstr(assembly, "    ab_weights_bytes __FILE__\n"), "%s", assembly);
    cr_expect_null(strstr(assembly, "ut/"), "it tells where it was written: %s", assembly);
    for (int i = 0; i < files.n; i++)
        if (!strcmp(files.file[i].suffix, "_weights.S.bin")) {
            cr_assert_eq(files.file[i].out.n, 1);
            cr_expect_eq(files.file[i].out.piece[0].data, data);
            cr_expect_eq(files.file[i].out.piece[0].n + files.file[i].out.piece[0].zeros, 64);
        }
}

Test(emit_c, bytes_that_are_not_at_hand_are_named)
{
    COptions o = {.stem = "m"};
    CFiles files;
    cr_expect_not(emit_c(&(CModel){.p = plan(LINEAR(2), NULL)}, 1, &o, arena, &files, &diag));
    fflush(diag.out);
    cr_expect_not_null(strstr(messages, "fc.weight"), "%s", messages);
}

Test(emit_c, any_file_name_gives_an_identifier)
{
    static const char *const stem[] = {"int", "9lives", "_x", "", "a-b.c", "x/\xc3\xa9t\xc3\xa9",
                                       "etc", "../up", "ETC_core"};
    for (size_t i = 0; i < sizeof stem / sizeof *stem; i++) {
        const char *name = c_model_name(arena, stem[i]);
        cr_expect(name[0] >= 'A' && name[0] <= 'z' && name[0] != '_', "%s gives %s", stem[i], name);
        cr_expect_eq(
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
            strlen(name), "%s gives %s", stem[i], name);
        cr_expect_neq(strncmp(name, "etc", 3), 0);
    }
}

Test(emit_c, names_are_unique_and_no_keywords)
{
    NameSet *s = names_new(arena);
    cr_expect_str_eq(names_make(s, "", "x"), "x");
    cr_expect_str_neq(names_make(s, "", "x"), "x");
    cr_expect_str_neq(names_make(s, "", "while"), "while");
    cr_expect_str_neq(names_make(s, "", "linux"), "linux");
    cr_expect_str_neq(names_make(s, "", "int8_t"), "int8_t");
    cr_expect_str_eq(names_make(s, "w_", "while"), "w_while");
    cr_expect_str_neq(names_make(s, "", "a.b"), names_make(s, "", "a_b"));
}

/* The model's own names stand where the next ones of x would be tried, one after the other. */
Test(emit_c, names_that_are_in_the_way_are_tried_once)
{
    enum { N = 30000 };
    NameSet *s = names_new(arena);
    for (int i = 0; i < N; i++)
        names_take(s, arena_printf(arena, "x_%d", N + i));
    cr_assert_str_eq(names_make(s, "", "x"), "x");
    for (int i = 0; i < N; i++)
        cr_assert_str_eq(names_make(s, "", "x"), arena_printf(arena, "x_%d", 2 * N + i));
}

Test(emit_c, many_equal_names_stay_linear)
{
    NameSet *s = names_new(arena);
    const char *last = "";
    for (int i = 0; i < 50000; i++) {
        const char *name = names_make(s, "", "relu");
        cr_assert_str_neq(name, last);
        last = name;
    }
}

Test(emit_c, comments_cannot_end_early)
{
    Text t = {.a = arena};
    put_comment(&t, "a*/b/*c\n#include \"x\" ?\?/ \\ \xe2\x80\xae end");
    cr_expect_null(strstr(t.s, "*/"));
    cr_expect_null(strstr(t.s, "/*"));
    cr_expect_null(strpbrk(t.s, "\n\\?"));
    cr_expect_null(strchr(t.s, '\xe2'));
}

Test(emit_c, weights_read_back_bit_for_bit)
{
    for (uint64_t u = 0; u < 0x7f800000u; u += 65521) {
        Text t = {.a = arena}, k = {.a = arena};
        uint32_t bits = (uint32_t)u | (u & 1 ? 0x80000000u : 0);
        float f, back;
        memcpy(&f, &bits, sizeof f);
        put_weight(&t, f);
        put_float(&k, f);
        back = strtof(t.s, NULL);
        cr_assert_eq(memcmp(&f, &back, sizeof f), 0, "%s", t.s);
        back = strtof(k.s, NULL);
        cr_assert_eq(memcmp(&f, &back, sizeof f), 0, "%s", k.s);
        cr_assert(strchr(t.s, '.') || strchr(t.s, 'e'), "%s", t.s);
        if (u % (65521 * 64) == 0)
            arena_reset(arena);
    }
}

Test(emit_c, odd_numbers_have_a_spelling)
{
    Text t = {.a = arena};
    put_float(&t, NAN);
    put(&t, " ");
    put_weight(&t, -INFINITY);
    put(&t, " ");
    put_double(&t, 0.1);
    put(&t, " ");
    put_int(&t, INT64_MIN);
    put(&t, " ");
    put_weight(&t, -0.0f);
    cr_expect_str_eq(t.s, "__builtin_nanf(\"\") -__builtin_inff() 0.1 "
                          "(-INT64_C(9223372036854775807) - 1) -0.0f");
}
