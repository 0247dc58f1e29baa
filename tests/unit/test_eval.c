/* test_eval.c -- evaluates small graphs, unplanned and in the memory of right and wrong plans.  The
 * expected numbers are torch's. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ir/eval.h"

enum { MAX_OUT = 4 };

typedef struct Result {
    Arena *arena;
    bool ok;
    char *said;
    EtcTensor *out[MAX_OUT], *update[MAX_OUT];
} Result;

/* Inputs are 1, 2, 3 ... in f32 or i64, true in bool; states hold 10, 11, 12 ... */
static void count_up(EtcTensor *t, int from)
{
    for (int64_t i = 0, n = etc_numel(t); i < n; i++)
        switch (t->dtype) {
        case ETC_F32:
            ((float *)t->data)[i] = (float)(from + i);
            break;
        case ETC_I64:
            ((int64_t *)t->data)[i] = from + i;
            break;
        case ETC_I8:
            ((int8_t *)t->data)[i] = (int8_t)(from + i);
            break;
        default:
            ((uint8_t *)t->data)[i] = from == 1;
        }
}

static EtcTensor *filled(Arena *a, Type t, const int64_t *symbol, int from)
{
    int64_t dim[MAX_RANK], v;
    for (int i = 0; i < t.rank; i++) {
        cr_assert(dim_eval(t.dim[i], symbol, &v));
        dim[i] = v;
    }
    EtcTensor *x = tensor_new(a, t.dtype, t.rank < 0 ? 0 : t.rank, dim);
    count_up(x, from);
    return x;
}

static Result eval(const char *text, int64_t n, bool arena_check)
{
    Result r = {.arena = arena_new()};
    size_t len = 0;
    Diag d = {.out = open_memstream(&r.said, &len)};
    Source src = {.file = "t", .text = text, .line = 1};
    Program *p = program_parse(r.arena, &src, &d);
    EtcTensor *in[8] = {0};
    const int64_t symbol[1] = {n};
    if (p && program_verify(p, &d) && graph_infer(p->method[0], &d)) {
        Graph *g = p->method[0];
        for (int i = 0; i < g->n_in; i++)
            in[i] = filled(r.arena, g->in[i]->type, symbol, 1);
        for (int i = 0; i < p->n_states; i++) {
            EtcTensor *t = filled(r.arena, p->state[i]->type, symbol, 10);
            p->state[i]->data = t->data;
            p->state[i]->n_bytes = t->capacity;
        }
        r.ok = eval_graph(g, in, symbol, arena_check, r.arena, r.out, r.update, &d);
    }
    fclose(d.out);
    return r;
}

static void done(Result r)
{
    arena_free(r.arena);
    free(r.said);
}

static bool holds(const EtcTensor *t, int n, const float *want)
{
    if (!t || t->dtype != ETC_F32 || etc_numel(t) != n)
        return false;
    for (int i = 0; i < n; i++)
        if (!(fabsf(((const float *)t->data)[i] - want[i]) <= 1e-6f * fabsf(want[i])))
            return false;
    return true;
}

#define WANT(...)                                                          \
    (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (const float[]) \
    {                                                                      \
        __VA_ARGS__                                                        \
    }

static void expect_out(const char *text, bool arena_check, int n, const float *want)
{
    Result r = eval(text, 2, arena_check);
    cr_expect(r.ok, "%s\n%s", text, r.said);
    cr_expect(holds(r.out[0], n, want), "wrong result of\n%s", text);
    done(r);
}

static void expect_refusal(const char *text, bool arena_check, const char *want)
{
    Result r = eval(text, 2, arena_check);
    cr_expect(!r.ok && strstr(r.said, want), "%s\nsaid: %s\nwant: %s", text, r.said, want);
    done(r);
}

/* -- unplanned ------------------------------------------------------------------------ */

#define CORE(body) "program \"e\" stage core sym %n in 1..4\n" body

Test(eval, numbers_stand_where_tensors_may)
{
    expect_out(CORE("method @f(%x: f32[%n,2]) { %a = aten.add.Tensor(%x, 0.5, 2) : f32[%n,2] "
                    "%b = aten.mul.Tensor(3, %a) : f32[%n,2] return %b }"),
               false, WANT(6, 9, 12, 15));
    expect_out(CORE("method @f(%x: i64[3]) { %a = aten.div.Tensor(%x, 2) : f32[3] return %a }"),
               false, WANT(0.5f, 1, 1.5f));
    expect_out(CORE("method @f(%x: f32[2]) { %k = etc.constant(1e+20) : float "
                    "%a = aten.mul.Scalar(%x, %k) : f32[2] return %a }"),
               false, WANT(1e20f, 2e20f));
    expect_out(CORE("method @f(%x: f32[3]) { %a = aten.lt.Tensor(%x, 3) : bool[3] "
                    "%b = aten.gt.Tensor(%x, 1.5) : bool[3] "
                    "%c = aten.add.Tensor(%x, %a, 1) : f32[3] %d = aten.add.Tensor(%c, %b, 1) : f32[3] return %d }"),
               false, WANT(2, 4, 4));
}

Test(eval, sizes_are_read_at_the_symbols)
{
    const char *text = CORE("method @f(%x: f32[%n,2]) { %s = aten.sym_size.int(%x, 0) : int "
                            "%v = aten.view.default(%x, [%s, 2]) : f32[%n,2] "
                            "%y = aten.view.default(%v, [2*%n]) : f32[2*%n] return %y }");
    for (int64_t n = 1; n <= 4; n++) {
        Result r = eval(text, n, false);
        cr_expect(r.ok, "%s", r.said);
        cr_expect(r.ok && etc_numel(r.out[0]) == 2 * n && r.out[0]->rank == 1);
        done(r);
    }
}

Test(eval, lists_dtypes_none_and_several_outputs)
{
    expect_out(CORE("method @f(%x: f32[1,2], %z: f32[1,1]) { "
                    "%y = aten.cat.default([%x, %z, %x], -1) : f32[1,5] return %y }"),
               false, WANT(1, 2, 1, 1, 2));
    expect_out(
        CORE("method @f(%x: f32[2,3]) { %m = aten.mean.dim(%x, [0, -1], true, none) : f32[1,1] "
             "%y = aten._to_copy.default(%m, f32, none, none, none, false, none) : f32[1,1] "
             "return %y }"),
        false, WANT(3.5f));
    expect_out(
        CORE("method @f(%x: f32[1,1,2,2]) { %y, %i = aten.max_pool2d_with_indices.default(%x, "
             "[2, 2], [], [0, 0], [1, 1], false) : f32[1,1,1,1], i64[1,1,1,1] "
             "%j = aten.add.Tensor(%y, %i, 1) : f32[1,1,1,1] return %j }"),
        false, WANT(7));
    expect_out(
        CORE("method @f(%x: f32[2,2]) { %y = aten.full.default([2, 2], 1.5, f32, none, none, none) "
             ": f32[2,2] %a = aten.add.Tensor(%x, %y, 1) : f32[2,2] return %a }"),
        false, WANT(2.5f, 3.5f, 4.5f, 5.5f));
}

Test(eval, results_that_torch_left_out_are_written_all_the_same)
{
    expect_out(
        CORE("method @f(%x: f32[1,1,2,2]) { %y, %i = aten.max_pool2d_with_indices.default(%x, "
             "[2, 2], [], [0, 0], [1, 1], false) : f32[1,1,1,1], none return %y }"),
        false, WANT(4));
}

Test(eval, states_are_read_and_updates_given)
{
    Result r = eval(CORE("param %w = \"w\" : f32[2,2] strides [1,2] in \"w\"+0\n"
                         "mutable %c = \"c\" : f32[2] in \"c\"+0\n"
                         "method @f(%x: f32[2,2]) { %y = aten.add.Tensor(%x, %w, 1) : f32[2,2] "
                         "%d = aten.add.Tensor(%c, 1, 1) : f32[2] update %c = %d return %y, %c }"),
                    1, false);
    cr_expect(r.ok, "%s", r.said);
    cr_expect(r.ok && holds(r.out[0], WANT(11, 14, 14, 17)), "the weight is stored transposed");
    cr_expect(r.ok && holds(r.out[1], WANT(10, 11)), "the old value is returned");
    cr_expect(r.ok && holds(r.update[0], WANT(11, 12)));
    done(r);
}

#define BRANCHES                                                            \
    "graph (%t: f32[2]) { %u = aten.neg.default(%t) : f32[2] return %u }, " \
    "graph (%t: f32[2]) { %u = aten.add.Tensor(%t, %t, 1) : f32[2] return %u }"

Test(eval, nested_graphs_run)
{
    expect_out(CORE("method @f(%p: bool[], %x: f32[2]) { %y = higher_order.cond(%p, " BRANCHES
                    ", [%x]) : f32[2] return %y }"),
               false, WANT(-1, -2));
    expect_out(CORE("buffer %p = \"p\" : bool[] in \"p\"+0\n"
                    "method @f(%x: f32[2]) { %y = higher_order.cond(%p, " BRANCHES
                    ", [%x]) : f32[2] return %y }"),
               false, WANT(2, 4));
    expect_out(
        CORE("blob %b = \"Backend\" : u8[4] in \"-\"+0\nparam %w = \"w\" : f32[2] in \"w\"+0\n"
             "method @f(%x: f32[2]) { %y = etc.delegate(%b, [%x], body=graph (%x: f32[2]) { "
             "%u = aten.mul.Tensor(%x, %w) : f32[2] return %u }) : f32[2] return %y }"),
        false, WANT(10, 22));
    expect_refusal(
        CORE("blob %b = \"Backend\" : u8[4] in \"-\"+0\n"
             "method @f(%x: f32[2]) { %y = etc.delegate(%b, [%x], body=none) : f32[2] return %y }"),
        false, "cannot be evaluated: it has no kernel");
}

#define LOOP(limit, step)                                                                  \
    "%i, %y = higher_order.while_loop(graph (%i: i64[], %y: f32[2], %x: f32[2]) { "        \
    "%p = aten.lt.Scalar(%i, " limit ") : bool[] return %p }, "                            \
    "graph (%i: i64[], %y: f32[2], %x: f32[2]) { "                                         \
    "%j = aten.add.Tensor(%i, " step ", 1) : i64[] "                                       \
    "%z = aten.add.Tensor(%y, %x, 1) : f32[2] return %j, %z }, [%n, %x], [%x]) : "         \
    "i64[], f32[2] return %y }"

Test(eval, loops_end)
{
    expect_out(CORE("method @f(%x: f32[2]) { %n = aten.full.default([], 0, dtype=i64, "
                    "layout=none, device=none, pin_memory=none) : i64[] " LOOP("3", "1")),
               false, WANT(4, 8));
    expect_out(CORE("method @f(%x: f32[2]) { %n = aten.full.default([], 3, dtype=i64, "
                    "layout=none, device=none, pin_memory=none) : i64[] " LOOP("3", "1")),
               false, WANT(1, 2));
    expect_refusal(CORE("method @f(%x: f32[2]) { %n = aten.full.default([], 0, dtype=i64, "
                        "layout=none, device=none, pin_memory=none) : i64[] " LOOP("3", "0")),
                   false, "its loop does not end in time");
}

Test(eval, what_cannot_run_is_refused)
{
    expect_refusal(
        "program \"e\" stage aten method @f(%x: f32[2]) { %y = aten.relu6.default(%x) : f32[2] "
        "return %y }",
        false, "cannot be evaluated: it has no kernel");
    expect_refusal(CORE("method @f(%x: f32[2]) { %y = aten.expand.default(%x, [4000000000, 2], "
                        "implicit=false) : f32[4000000000,2] return %y }"),
                   false, "not within 0 to 2^31-1");
}

Test(eval, nodes_tell_whether_they_can)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Source src = {
        .file = "t",
        .line = 1,
        .text =
            "program \"e\" stage aten method @f(%p: bool[], %x: f32[2]) {\n"
            "  %a = aten.relu.default(%x) : f32[2]\n  %b = aten.relu6.default(%a) : f32[2]\n"
            "  %c = higher_order.cond(%p, " BRANCHES ", [%x]) : f32[2]\n"
            "  %e = higher_order.cond(%p, graph (%t: f32[2]) { %u = aten.relu6.default(%t) : f32[2] "
            "return %u },"
            " graph (%t: f32[2]) { return %t }, [%x]) : f32[2]\n  return %e }"};
    Program *p = program_parse(a, &src, &d);
    cr_assert_not_null(p);
    const bool want[] = {true, false, true, false};
    int i = 0;
    for (const Node *n = p->method[0]->first; n; n = n->next, i++)
        cr_expect_eq(eval_can(n), want[i], "%s", n->out[0]->name);
    int64_t two = 2;
    EtcTensor *x = tensor_new(a, ETC_F32, 1, &two), *out;
    ((float *)x->data)[0] = -1;
    ((float *)x->data)[1] = 3;
    cr_assert(eval_node(p->method[0]->first, &x, NULL, a, &out, &d));
    cr_expect(holds(out, WANT(0, 3)));
    arena_free(a);
}

/* -- planned -------------------------------------------------------------------------- */

#define PLANNED(body) "program \"e\" stage planned sym %n in 1..4\n" body

Test(planned, a_sound_plan_gives_the_right_result)
{
    /* in place over the input, whose last reader it is; then over the dead */
    expect_out(PLANNED("method @f(%x: f32[%n,2] at 1:0) pools [64] { "
                       "%a = aten.neg.default(%x) : f32[%n,2] at 1:0 "
                       "%b = aten.mul.Scalar(%a, 2) : f32[%n,2] at 1:32 "
                       "%c = aten.add.Tensor(%b, %b, 1) : f32[%n,2] at 1:0 return %c }"),
               true, WANT(-4, -8, -12, -16));
}

Test(planned, a_value_read_after_its_bytes_were_given_away_is_seen)
{
    /* %a dies nowhere: %b overwrites it before %c reads it */
    Result r = eval(PLANNED("method @f(%x: f32[2] at 1:0) pools [64] { "
                            "%a = aten.neg.default(%x) : f32[2] at 1:16 "
                            "%b = aten.mul.Scalar(%x, 5) : f32[2] at 1:16 "
                            "%c = aten.add.Tensor(%a, %b, 1) : f32[2] at 1:32 return %c }"),
                    1, true);
    cr_expect(r.ok && !holds(r.out[0], WANT(4, 8)));
    done(r);
}

Test(planned, aliases_are_taken_at_their_word)
{
    /* a view inside its base's bytes costs nothing, so a wrong offset shows */
    Result r = eval(PLANNED("method @f(%x: f32[4] at 1:0) pools [64] { "
                            "%a = aten.neg.default(%x) : f32[4] at 1:16 "
                            "%v = aten.slice.Tensor(%a, 0, 0, 2, 1) : f32[2] at 1:24 "
                            "%c = aten.neg.default(%v) : f32[2] at 1:32 return %c }"),
                    1, true);
    cr_expect(r.ok && holds(r.out[0], WANT(3, 4)));
    done(r);
    /* an operand that claims its part of the rows, but lies there densely: nobody wrote row 1 */
    r = eval(PLANNED("method @f(%x: f32[2,1] at 1:0) pools [64] { "
                     "%y = aten.cat.default([%x, %x], 1) : f32[2,2] at 1:0 return %y }"),
             1, true);
    cr_expect(r.ok && isnan(((float *)r.out[0]->data)[2]));
    done(r);
    /* an operand that lies in the result, but where another one belongs, is moved */
    expect_out(PLANNED("method @f(%x: f32[2] at 1:0) pools [64] { "
                       "%y = aten.cat.default([%x, %x], 0) : f32[4] at 1:0 return %y }"),
               true, WANT(1, 2, 1, 2));
}

Test(planned, dead_bytes_are_poisoned_but_not_those_shared_with_the_living)
{
    /* %v lives on in the bytes of %a after %a died; %x is dead, and NaN, when %y has its place */
    expect_out(PLANNED("method @f(%x: f32[4] at 1:0) pools [64] { "
                       "%a = aten.neg.default(%x) : f32[4] at 1:16 "
                       "%v = aten.view.default(%a, [2, 2]) : f32[2,2] at 1:16 "
                       "%y = aten.mul.Scalar(%v, 3) : f32[2,2] at 1:0 return %y }"),
               true, WANT(-3, -6, -9, -12));
    expect_out(PLANNED("method @f(%x: f32[4] at 1:0) pools [64] { "
                       "%v = aten.slice.Tensor(%x, 0, 2, 4, 1) : f32[2] at 1:8 "
                       "%a = aten.neg.default(%v) : f32[2] at 1:32 "
                       "%y = aten.add.Tensor(%a, %v, 3) : f32[2] at 1:48 return %y }"),
               true, WANT(6, 8));
}

Test(planned, what_a_dead_value_left_behind_is_nan)
{
    /* the first half of %y's row 1, which %x does not fill, lies where %a was, which died at %b */
    Result r = eval(PLANNED("method @f(%x: f32[2,2] at 1:0) pools [64] { "
                            "%a = aten.neg.default(%x) : f32[2,2] at 1:16 "
                            "%b = aten.neg.default(%a) : f32[2,2] at 1:48 "
                            "%y = aten.cat.default([%x, %x], 1) : f32[2,4] at 1:0 return %y, %b }"),
                    1, true);
    cr_assert(r.ok, "%s", r.said);
    for (int i = 0; i < 8; i++)
        cr_expect_eq(isnan(((float *)r.out[0]->data)[i]) != 0, i == 4 || i == 5);
    cr_expect(holds(r.out[1], WANT(1, 2, 3, 4)));
    done(r);
}

Test(planned, values_of_a_branch_die_with_it)
{
    /* %y, a branch's %v until the branch returned, is dead when %q claims its bytes */
    Result r = eval(
        "program \"e\" stage planned\nmethod @f(%p: bool[] at 1:64, %x: f32[2,2] at 1:16) "
        "pools [80] { %y = higher_order.cond(%p, graph (%t: f32[2,2] at 1:16) { "
        "%v = aten.neg.default(%t) : f32[2,2] at 1:32 return %v }, "
        "graph (%t: f32[2,2] at 1:16) { return %t }, [%x]) : f32[2,2] at 1:32 "
        "%z = aten.neg.default(%y) : f32[2,2] at 1:0 "
        "%q = aten.cat.default([%x, %x], 1) : f32[2,4] at 1:16 return %q, %z }",
        1, true);
    cr_assert(r.ok, "%s", r.said);
    for (int i = 0; i < 8; i++)
        cr_expect_eq(isnan(((float *)r.out[0]->data)[i]) != 0, i == 4 || i == 5);
    cr_expect(holds(r.out[1], WANT(1, 2, 3, 4)));
    done(r);
}

Test(planned, parts_of_a_concat_are_written_in_place)
{
    /* one half in place with strides, the other moved */
    expect_out(
        PLANNED(
            "method @f(%x: f32[2,2] at in:0) pools [64] { "
            "%a = etc.group([%x], anchor=\"none\", tile=[], body=graph (%x: f32[2,2]) { "
            "%s = aten.neg.default(%x) : f32[2,2] return %s }) : f32[2,2] strides [4,1] at 1:8 "
            "%y = aten.cat.default([%x, %a], 1) : f32[2,4] at 1:0 "
            "%z = aten.neg.default(%y) : f32[2,4] at out:0 return %z }"),
        true, WANT(-1, -2, 1, 2, -3, -4, 3, 4));
}

Test(planned, states_lie_at_their_places_and_updates_go_there)
{
    const char *const place[] = {"1:16", "1:32"}; /* straight into the state, or moved at the end */
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(
            text, sizeof text,
            "program \"e\" stage planned\nmutable %%c = \"c\" : f32[2] at 1:16 in \"c\"+0\n"
            "method @f(%%x: f32[2] at 1:0) pools [64] { %%d = aten.add.Tensor(%%c, %%x, 1) : f32[2] at %s "
            "%%y = aten.neg.default(%%d) : f32[2] at 1:48 update %%c = %%d return %%y }",
            place[i]);
        Result r = eval(text, 1, true);
        cr_expect(r.ok, "%s", r.said);
        cr_expect(r.ok && holds(r.out[0], WANT(-11, -13)));
        cr_expect(r.ok && holds(r.update[0], WANT(11, 13)));
        done(r);
    }
}

Test(planned, branches_share_the_pools)
{
    const char *text =
        "program \"e\" stage planned buffer %%p = \"p\" : bool[] in \"p\"+0\n"
        "method @f(%%x: f32[2] at 1:0) pools [96] { %%k = aten.mul.Scalar(%%x, 7) : f32[2] at 1:64 "
        "%%y = higher_order.cond(%%p, graph (%%t: f32[2] at 1:0) { return %%t }, "
        "graph (%%t: f32[2] at 1:0) { %%u = aten.neg.default(%%t) : f32[2] at 1:%d "
        "%%v = aten.mul.Scalar(%%u, 2) : f32[2] at 1:32 return %%v }, [%%x]) : f32[2] at 1:32 "
        "%%z = aten.add.Tensor(%%y, %%k, 1) : f32[2] at 1:48 return %%z }";
    char good[768], bad[768];
    snprintf(good, sizeof good, text, 16);
    snprintf(bad, sizeof bad, text, 64);
    expect_out(good, true, WANT(5, 10));
    Result r = eval(bad, 1, true);
    cr_expect(r.ok && !holds(r.out[0], WANT(5, 10)),
              "a branch that overwrites %%k outside is seen");
    done(r);
}
