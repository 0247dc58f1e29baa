/* test_partition.c -- compares the minimum cut with all possible cuts.  With backends that are made
 * up here it checks that no path leaves a region and enters it again, that regions which do not pay
 * are given back, and that no chain of backends changes a result. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <string.h>
#include "partition/internal.h"
#include "ir/session.h"
#include "passes/passes.h"

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

/* -- cuts ------------------------------------------------------------------------------------ */

enum { MAX_NODES = 9, MAX_EDGES = 40 };

typedef struct Network {
    int n, n_edges;
    struct {
        int from, to;
        int64_t there, back;
    } edge[MAX_EDGES];
} Network;

static Network random_network(uint64_t *seed)
{
    Network w = {.n = 1 + (int)draw(seed, MAX_NODES), .n_edges = 1 + (int)draw(seed, MAX_EDGES)};
    for (int i = 0; i < w.n_edges; i++) {
        w.edge[i].from = (int)draw(seed, (uint64_t)w.n + 2);
        w.edge[i].to = (int)draw(seed, (uint64_t)w.n + 2);
        w.edge[i].there = (int64_t)draw(seed, 20);
        w.edge[i].back = draw(seed, 3) ? 0 : (int64_t)draw(seed, 20);
    }
    return w;
}

/* Bit i of `sink`: node i is on the sink's side. */
static int64_t price_of(const Network *w, unsigned sink)
{
    int64_t sum = 0;
    sink |= 1u << CUT_SINK(w->n);
    for (int i = 0; i < w->n_edges; i++) {
        bool a = sink >> w->edge[i].from & 1, b = sink >> w->edge[i].to & 1;
        sum += !a && b ? w->edge[i].there : a && !b ? w->edge[i].back : 0;
    }
    return sum;
}

Test(cut, is_as_cheap_as_the_cheapest_of_all)
{
    uint64_t seed = 1;
    for (int round = 0; round < 3000; round++) {
        Arena *a = arena_new();
        Network w = random_network(&seed);
        bool side[MAX_NODES + 1];
        unsigned found = 0;
        int64_t least = INT64_MAX;
        Cut *c = cut_new(w.n, a);
        for (int i = 0; i < w.n_edges; i++)
            cut_edge(c, w.edge[i].from, w.edge[i].to, w.edge[i].there, w.edge[i].back);
        cr_assert(cut_solve(c, 1000000, side));
        for (int i = 0; i < w.n; i++)
            found |= (unsigned)side[i] << i;
        int most = 0;
        for (unsigned s = 0; s < 1u << w.n; s++)
            least = price_of(&w, s) < least ? price_of(&w, s) : least;
        for (unsigned s = 0; s < 1u << w.n; s++)
            if (price_of(&w, s) == least && __builtin_popcount(s) > most)
                most = __builtin_popcount(s);
        cr_expect_eq(price_of(&w, found), least, "round %d", round);
        cr_expect_eq(__builtin_popcount(found), most, "round %d: more may go", round);
        arena_free(a);
    }
}

Test(cut, gives_up_past_its_steps)
{
    Arena *a = arena_new();
    bool side[4];
    Cut *c = cut_new(3, a);
    cut_edge(c, CUT_SOURCE(3), 0, 5, 0);
    cut_edge(c, 0, 1, 5, 0);
    cut_edge(c, 1, 2, 5, 0);
    cut_edge(c, 2, CUT_SINK(3), 5, 0);
    cr_expect_not(cut_solve(c, 3, side));
    arena_free(a);
}

/* -- backends of this file ------------------------------------------------------------------- */

static bool takes_half(const Node *n, Refusal *r, unsigned which)
{
    *r = (Refusal){"it is of the other half", "rename it"};
    return n->op == OP_RELU || ((unsigned)n->loc.line & 1) == which;
}

static bool takes_odd(const Node *n, const Uses *u, Refusal *r)
{
    (void)u;
    return takes_half(n, r, 1);
}

static bool takes_even(const Node *n, const Uses *u, Refusal *r)
{
    (void)u;
    return takes_half(n, r, 0);
}

/* Negation gains next to nothing, all else most of its time. */
static double cost(const Node *n)
{
    return node_seconds(n) * (n->op == OP_NEG ? 0.99 : 0.1);
}

static bool lower(Graph *body, Arena *tmp, Diag *d, Blob *out)
{
    (void)tmp, (void)d;
    *out = (Blob){NEW(body->program->arena, uint8_t, 8), 8};
    return true;
}

static const Backend odd = {.name = "odd",
                            .id = "Odd",
                            .takes = takes_odd,
                            .cost = cost,
                            .call_cost = 4e-8,
                            .cost_of_byte = 2e-11,
                            .lower = lower};
static const Backend even = {.name = "even",
                             .id = "Even",
                             .takes = takes_even,
                             .cost = cost,
                             .call_cost = 4e-8,
                             .cost_of_byte = 2e-11,
                             .lower = lower};

/* -- programs ---------------------------------------------------------------------------------- */

/* n nodes of one or two operands among the values before; the line of a node is its number. */
static char *random_program(uint64_t *seed, int n)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    fprintf(f, "program \"r\" stage core\nmethod @forward(%%v0: f32[4], %%v1: f32[4]) {\n");
    for (int i = 2; i < n + 2; i++) {
        int a = (int)draw(seed, (uint64_t)i), b = (int)draw(seed, (uint64_t)i);
        const char *unary = draw(seed, 2) ? "aten.relu.default" : "aten.neg.default";
        if (draw(seed, 2))
            fprintf(f, "%%v%d = %s(%%v%d) : f32[4]\n", i, unary, a);
        else
            fprintf(f, "%%v%d = aten.mul.Tensor(%%v%d, %%v%d) : f32[4]\n", i, a, b);
    }
    fprintf(f, "return %%v%d, %%v%d\n}\n", n + 1, n / 2 + 1);
    fclose(f);
    return text;
}

static Program *parsed(Arena *a, const char *text, Diag *d)
{
    Source src = {.file = "r.etir", .text = text, .line = 1};
    Program *p = program_parse(a, &src, d);
    cr_assert_not_null(p);
    p->session->tail = &tail_pte;
    return p;
}

static const Backend *const both[] = {&odd, &even};

/* Verified and compared by evaluation after the pass; an order of nodes exists, so no path leaves a
 * region and enters it again: its call could stand nowhere. */
Test(partition, random_graphs_keep_their_results)
{
    uint64_t seed = 7;
    const char *pass[] = {"partition"};
    int n_regions = 0, n_rejected = 0;
    for (int round = 0; round < 300; round++) {
        Arena *a = arena_new();
        Diag d = {.out = stderr};
        char *text = random_program(&seed, 1 + (int)draw(&seed, 40));
        Program *p = parsed(a, text, &d);
        p->session->backend = both;
        p->session->n_backends = 1 + round % 2;
        PassOptions opt = {.check_ir = true, .verify = true};
        cr_expect(passes_run(p, pass, 1, opt, &d), "%s", text);
        const PartitionReport *r = p->session->partition;
        cr_expect_eq(r->n_taken + r->n_rejected, r->n_nodes, "each node once");
        for (int i = 0; i < r->n_regions; i++)
            cr_expect_lt(r->region[i].seconds, r->region[i].seconds_outside);
        for (int i = 0; i < r->n_rejected; i++)
            cr_expect_not_null(r->rejected[i].refusal.why);
        n_regions += r->n_regions;
        n_rejected += r->n_rejected;
        free(text);
        arena_free(a);
    }
    cr_expect_gt(n_regions, 300);
    cr_expect_gt(n_rejected, 300);
}

Test(partition, a_chain_says_why_by_the_name_of_each_backend)
{
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Program *p = parsed(a,
                        "program \"r\" stage core\nmethod @forward(%x: f32[4]) {\n"
                        "  %y = aten.neg.default(%x) : f32[4]\n  return %y\n}\n",
                        &d);
    const char *pass[] = {"partition"};
    p->session->backend = both;
    p->session->n_backends = 2;
    cr_assert(passes_run(p, pass, 1, (PassOptions){0}, &d));
    cr_assert_eq(p->session->partition->n_rejected, 1);
    cr_expect_str_eq(
        p->session->partition->rejected[0].refusal.why,
        "odd: its region would cost more than it saves; even: it is of the other half");
    arena_free(a);
}

/* tests/bench measures how long it takes. */
Test(partition, thirty_thousand_nodes_are_partitioned)
{
    uint64_t seed = 3;
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    char *text = random_program(&seed, 32000);
    Program *p = parsed(a, text, &d);
    const char *pass[] = {"partition"};
    p->session->backend = both;
    p->session->n_backends = 2;
    cr_assert(passes_run(p, pass, 1, (PassOptions){0}, &d));
    cr_expect(program_verify(p, &d));
    cr_expect_gt(p->session->partition->n_regions, 1);
    free(text);
    arena_free(a);
}
