/* test_recipe.c -- tests which nodes the rules of a recipe apply to, and the message about a scope
 * that matches no node. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "quant/quant.h"

static const char model[] =
    "program \"m.pt2\" stage core\n"
    "param %w = \"encoder.layers.0.fc1.weight\" : f32[4,4] in \"w\"+0\n"
    "method @forward(%x: f32[2,4]) {\n"
    "  %fc1 = aten.linear.default(%x, %w, none) : f32[2,4] from \"encoder.layers.0.fc1\", \"m.py:1\"\n"
    "  %relu = aten.relu.default(%fc1) : f32[2,4] from \"encoder.layers.0\", \"m.py:2\"\n"
    "  %fc2 = aten.linear.default(%relu, %w, none) : f32[2,4] from \"encoder.layers.01\", \"m.py:3\"\n"
    "  return %fc2\n"
    "}\n";

typedef struct Told {
    Diag d;
    char *text;
    size_t n;
} Told;

static Program *parse(Arena *a, Diag *d)
{
    Source src = {.file = "m.etir", .text = model, .line = 1};
    Program *p = program_parse(a, &src, d);
    cr_assert_not_null(p);
    return p;
}

static const Node *node(const Program *p, int i)
{
    const Node *n = p->method[0]->first;
    while (i--)
        n = n->next;
    return n;
}

static const QuantFormat int8 = {.dtype = ETC_I8, .bits = 8};
static const QuantFormat int4 = {.dtype = ETC_I8, .bits = 4};

/* Bit i: the rule's format is node i's. */
static unsigned matched(const Program *p, QuantRule rule, const Backend *b)
{
    unsigned set = 0;
    rule.has_weight = true;
    rule.weight = int8;
    Recipe r = {.file = "r.yaml", .rule = &rule, .n_rules = 1};
    for (int i = 0; i < 3; i++)
        set |= (unsigned)(recipe_choice(&r, node(p, i), b).weight.bits == 8) << i;
    return set;
}

Test(recipe, a_scope_matches_by_all_its_fields)
{
    static const Backend xnnpack = {.name = "xnnpack"};
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Program *p = parse(a, &d);
    cr_expect_eq(matched(p, (QuantRule){0}, NULL), 7);
    cr_expect_eq(matched(p, (QuantRule){.name = "fc1"}, NULL), 1);
    cr_expect_eq(matched(p, (QuantRule){.name = "fc"}, NULL), 0);
    cr_expect_eq(matched(p, (QuantRule){.name = "fc?"}, NULL), 5);
    cr_expect_eq(matched(p, (QuantRule){.name = "*"}, NULL), 7);
    cr_expect_eq(matched(p, (QuantRule){.name = "*c*2*"}, NULL), 4);
    cr_expect_eq(matched(p, (QuantRule){.op = "aten.linear.default"}, NULL), 5);
    cr_expect_eq(matched(p, (QuantRule){.op = "linear"}, NULL), 5);
    cr_expect_eq(matched(p, (QuantRule){.op = "*.relu.*"}, NULL), 2);
    cr_expect_eq(matched(p, (QuantRule){.op = "lin"}, NULL), 0);
    cr_expect_eq(matched(p, (QuantRule){.module = "encoder.layers.0"}, NULL), 3,
                 "a module and what lies in it, not one whose name goes on");
    cr_expect_eq(matched(p, (QuantRule){.module = "encoder"}, NULL), 7);
    cr_expect_eq(matched(p, (QuantRule){.module = "*.fc1"}, NULL), 1);
    cr_expect_eq(matched(p, (QuantRule){.backend = "xnnpack"}, &xnnpack), 7);
    cr_expect_eq(matched(p, (QuantRule){.backend = "xnnpack"}, NULL), 0);
    cr_expect_eq(matched(p, (QuantRule){.backend = "portable"}, NULL), 7);
    cr_expect_eq(matched(p, (QuantRule){.op = "linear", .name = "*2"}, NULL), 4);
    arena_free(a);
}

Test(recipe, the_last_rule_holds_field_by_field)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Program *p = parse(a, &d);
    QuantRule rule[] = {
        {.has_activation = true, .activation = int8, .has_weight = true, .weight = int8},
        {.op = "linear",
         .has_weight = true,
         .weight = int4,
         .has_algorithms = true,
         .algorithms = ALG_GPTQ},
        {.name = "fc2", .has_activation = true, .activation = {.dtype = ETC_F32}},
    };
    Recipe r = {.file = "r.yaml", .rule = rule, .n_rules = 3};
    QuantChoice fc1 = recipe_choice(&r, node(p, 0), NULL),
                relu = recipe_choice(&r, node(p, 1), NULL);
    QuantChoice fc2 = recipe_choice(&r, node(p, 2), NULL);
    cr_expect(fc1.activation.bits == 8 && fc1.weight.bits == 4 && fc1.algorithms == ALG_GPTQ);
    cr_expect(relu.activation.bits == 8 && relu.weight.bits == 8 && !relu.algorithms);
    cr_expect(fc2.activation.dtype == ETC_F32 && fc2.weight.bits == 4);
    r.n_rules = 0;
    cr_expect_eq(recipe_choice(&r, node(p, 0), NULL).weight.dtype, ETC_F32);
    arena_free(a);
}

static char *told_of(QuantRule *rule, int n)
{
    char *text = NULL;
    size_t len = 0;
    Arena *a = arena_new();
    Diag d = {.out = open_memstream(&text, &len)};
    Program *p = parse(a, &d);
    Recipe r = {.file = "r.yaml", .rule = rule, .n_rules = n};
    bool ok = recipe_check_scopes(&r, p, &d);
    fclose(d.out);
    cr_expect_eq(ok, !diag_errors(&d));
    arena_free(a);
    return text;
}

Test(recipe, a_scope_that_matches_nothing_is_told_with_what_comes_near)
{
    QuantRule rule[] = {
        {.line = 2, .column = 5, .name = "fc1"},
        {.line = 4, .column = 5, .name = "fc3"},
        {.line = 6, .column = 5, .op = "lineer"},
        {.line = 8, .column = 5, .op = "aten.relu.defualt"},
        {.line = 10, .column = 5, .module = "encoder.layer.0"},
        {.line = 12, .column = 5, .module = "encoder.layers.7*"},
        {.line = 14, .column = 5, .backend = "xnnpack"},
        {.line = 16, .column = 5, .op = "relu", .name = "fc1"},
        {.line = 18, .column = 5},
        {.line = 0, .op = "embedding"},
    };
    char *text = told_of(rule, 10);
    cr_expect_str_eq(
        text,
        "r.yaml:4:5: error: scope matches nothing: the model has no node 'fc3'; did you mean 'fc1'?\n"
        "r.yaml:6:5: error: scope matches nothing: the model has no operator 'lineer'; did you mean "
        "'linear'?\n"
        "r.yaml:8:5: error: scope matches nothing: the model has no operator 'aten.relu.defualt'; did "
        "you mean 'aten.relu.default'?\n"
        "r.yaml:10:5: error: scope matches nothing: the model has no module 'encoder.layer.0'; did you "
        "mean 'encoder.layers.0'?\n"
        "r.yaml:12:5: error: scope matches nothing: the model has no module 'encoder.layers.7*'; did "
        "you mean 'encoder.layers.0'?\n"
        "r.yaml:14:5: error: scope matches nothing: the model has no node of backend 'xnnpack'\n"
        "r.yaml:16:5: error: scope matches nothing: no node of the model matches all of its fields\n");
    free(text);
}

/* Asks globs for which a regular expression would take ages, and more rules than are each
 * explained. */
Test(recipe, no_glob_takes_long)
{
    enum { LONG = 20000, RULES = 200 };
    char *glob = malloc(LONG + 1);
    for (int i = 0; i < LONG; i++)
        glob[i] = i % 2 ? '*' : 'a';
    strcpy(glob + LONG - 1, "b");
    QuantRule rule[RULES];
    for (int i = 0; i < RULES; i++)
        rule[i] = (QuantRule){
            .line = i + 1, .column = 1, .name = i % 2 ? glob : "*a*a*a*a*a*a*a*a*b"};
    clock_t start = clock();
    char *text = told_of(rule, RULES);
    cr_expect_lt((double)(clock() - start) / CLOCKS_PER_SEC, 2.0);
    cr_expect_not_null(strstr(text, "r.yaml:200:1: error: scope matches nothing\n"));
    free(text);
    free(glob);
}
