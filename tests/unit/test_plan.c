/* test_plan.c -- tests memory plans and folded weights where a golden text is not enough.
 *
 * Packers are compared with all orders of a few blocks, plans with an evaluation in an arena of
 * signalling NaNs, and folded weights with numbers that torch recorded.  check_plan must find
 * faults that are put into plans. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "passes/internal.h"
#include "ir/eval.h"
#include "ir/session.h"

static uint64_t seed = 7;

static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

enum { N_STATES = 2, STATE_BYTES = N_STATES * 64 };

static Program *parse(Arena *a, const char *text, const Tail *tail, Diag *d)
{
    uint8_t bytes[STATE_BYTES];
    float values[STATE_BYTES / 4];
    for (int i = 0; i < STATE_BYTES / 4; i++)
        values[i] = 0.125f * (float)(i % 17) - 1.0f;
    memcpy(bytes, values, sizeof bytes);
    Source src = {.file = "random", .text = text, .line = 1};
    Program *p = program_parse(a, &src, d);
    cr_assert_not_null(p, "%s", text);
    cr_assert(!p->side_bytes || program_read_data(p, bytes, sizeof bytes, d));
    p->session->tail = tail;
    return p;
}

/* -- packing --------------------------------------------------------------------------------- */

static Blocks random_blocks(Arena *a, int n, int times, int sizes)
{
    Blocks b = {NEW(a, Block, n), n};
    for (int i = 0; i < n; i++) {
        int from = draw(times), to = draw(times);
        b.item[i] = block_make(i, from < to ? from : to, from < to ? to : from, 16 * draw(sizes),
                               a);
    }
    return b;
}

static bool share_time(const Block *a, const Block *b)
{
    return a->start <= b->end && b->start <= a->end;
}

static bool is_sound(Blocks b, int64_t end)
{
    for (int i = 0; i < b.n; i++) {
        const Block *x = &b.item[i];
        if (x->offset < 0 || x->offset + x->bytes > end)
            return false;
        for (int k = 0; k < i; k++) {
            const Block *y = &b.item[k];
            if (share_time(x, y) && x->offset < y->offset + y->bytes &&
                y->offset < x->offset + x->bytes)
                return false;
        }
    }
    return true;
}

/* Lowest fit in every order: one of them is by offset in a best plan, so the least is the best. */
static int64_t best_of_all(Blocks b, bool *placed, int64_t *at, int left, int64_t end)
{
    int64_t best = INT64_MAX;
    if (!left)
        return end;
    for (int i = 0; i < b.n; i++) {
        if (placed[i])
            continue;
        int64_t to = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (int k = 0; k < b.n; k++)
                if (placed[k] && share_time(&b.item[i], &b.item[k]) &&
                    to < at[k] + b.item[k].bytes && at[k] < to + b.item[i].bytes) {
                    to = at[k] + b.item[k].bytes;
                    moved = true;
                }
        }
        placed[i] = true;
        at[i] = to;
        int64_t top = to + b.item[i].bytes;
        int64_t all = best_of_all(b, placed, at, left - 1, top > end ? top : end);
        best = all < best ? all : best;
        placed[i] = false;
    }
    return best;
}

Test(plan, small_cases_are_packed_as_well_as_any_order_can)
{
    for (int round = 0; round < 300; round++) {
        Arena *a = arena_new();
        Blocks b = random_blocks(a, 1 + draw(6), 6, 8);
        bool placed[8] = {false};
        bool least;
        int64_t at[8], bound = blocks_bound(b, a), end = pack(b, bound, &least, a);
        cr_assert(is_sound(b, end), "round %d", round);
        cr_assert_geq(end, bound);
        cr_assert_eq(end, best_of_all(b, placed, at, b.n, 0), "round %d", round);
        cr_assert(least, "round %d", round);
        arena_free(a);
    }
}

Test(plan, large_cases_are_sound_and_near_the_bound)
{
    for (int round = 0; round < 20; round++) {
        Arena *a = arena_new();
        Blocks b = random_blocks(a, 300, 100, 64);
        bool least;
        int64_t bound = blocks_bound(b, a), end = pack(b, bound, &least, a);
        cr_assert(is_sound(b, end), "round %d", round);
        cr_assert_leq(end, bound + bound / 4, "round %d: %ld for %ld", round, (long)end,
                      (long)bound);
        arena_free(a);
    }
}

/* More pairs than are worth keeping: the sweep alone. */
Test(plan, thousands_in_use_at_once_are_sound)
{
    Arena *a = arena_new();
    Blocks b = random_blocks(a, 4000, 1000, 64);
    bool least;
    int64_t bound = blocks_bound(b, a), end = pack(b, bound, &least, a);
    cr_assert(is_sound(b, end));
    cr_assert_leq(end, 2 * bound);
    arena_free(a);
}

/* -- blocks of several parts ------------------------------------------------------------------- */

/* Parts end one above the other and have times of their own within the block's. */
static Block random_parts(Arena *a, int root, int times)
{
    int n = 1 + draw(4), from = draw(times), length = 1 + draw(times - from);
    Part *part = NEW(a, Part, n);
    int64_t at = 0;
    Block b = {.root = root, .start = times, .end = -1, .part = part, .n_parts = n};
    for (int i = 0; i < n; i++) {
        int start = from + draw(length), end = start + draw(from + length - start);
        part[i] = (Part){start, end, at, at + 16 * (1 + draw(6))};
        at = part[i].hi;
        b.start = start < b.start ? start : b.start;
        b.end = end > b.end ? end : b.end;
    }
    b.bytes = at;
    return b;
}

static bool parts_collide(const Block *a, const Block *b)
{
    for (int i = 0; i < a->n_parts; i++)
        for (int k = 0; k < b->n_parts; k++) {
            const Part *x = &a->part[i], *y = &b->part[k];
            if (x->start <= y->end && y->start <= x->end && a->offset + x->lo < b->offset + y->hi &&
                b->offset + y->lo < a->offset + x->hi)
                return true;
        }
    return false;
}

Test(plan, parts_of_blocks_do_not_collide)
{
    int met = 0;
    for (int round = 0; round < 60; round++) {
        Arena *a = arena_new();
        Blocks b = {NEW(a, Block, 20), 1 + draw(20)};
        bool least;
        for (int i = 0; i < b.n; i++)
            b.item[i] = random_parts(a, i, 20);
        int64_t bound = blocks_bound(b, a), end = pack(b, bound, &least, a);
        cr_assert_geq(end, bound);
        met += end == bound;
        cr_assert(!least || end == bound, "round %d: nothing else proves parts", round);
        for (int i = 0; i < b.n; i++) {
            cr_assert(b.item[i].offset >= 0 && b.item[i].offset + b.item[i].bytes <= end);
            for (int k = 0; k < i; k++)
                cr_assert(!parts_collide(&b.item[i], &b.item[k]), "round %d", round);
        }
        arena_free(a);
    }
    cr_assert_gt(met, 20, "%d", met);
}

/* Two that share bytes but no time: less than one after the other. */
Test(plan, parts_interlock)
{
    Arena *a = arena_new();
    const Part grows[] = {{0, 9, 0, 64}, {5, 9, 64, 128}};
    const Part shrinks[] = {{0, 2, 0, 64}, {0, 9, 64, 128}};
    Block item[] = {{.root = 0, .start = 0, .end = 9, .bytes = 128, .part = grows, .n_parts = 2},
                    {.root = 1, .start = 0, .end = 9, .bytes = 128, .part = shrinks, .n_parts = 2}};
    Blocks b = {item, 2};
    bool least;
    cr_assert_eq(blocks_bound(b, a), 192);
    cr_assert_eq(pack(b, 192, &least, a), 192);
    cr_assert(least);
    arena_free(a);
}

/* -- orders ------------------------------------------------------------------------------------ */

/* n nodes that grow, shrink, join, overlay or copy what came before. */
static char *random_dag(int n)
{
    char *text = NULL;
    size_t len = 0;
    int size[32] = {16 + 16 * draw(4)};
    FILE *f = open_memstream(&text, &len);
    fprintf(f, "program \"dag\" stage core\nmethod @forward(%%v0: f32[%d]) {\n", size[0]);
    for (int i = 1; i <= n; i++) {
        int back = i < 6 ? i : 6, x = i - 1 - draw(back), y = i - 1 - draw(back);
        int grow = 16 * (1 + draw(5));
        size[i] = size[x];
        switch (draw(4)) {
        case 0:
            size[i] = size[x] + grow;
            fprintf(f, "  %%v%d = aten.constant_pad_nd.default(%%v%d, [0, %d], 0.0) : f32[%d]\n", i,
                    x, grow, size[i]);
            break;
        case 1:
            size[i] = 1;
            fprintf(f, "  %%v%d = aten.sum.dim_IntList(%%v%d, [0], true, dtype=none) : f32[1]\n", i,
                    x);
            break;
        case 2:
            size[i] = size[x] + size[y];
            fprintf(f, "  %%v%d = aten.cat.default([%%v%d, %%v%d], 0) : f32[%d]\n", i, x, y,
                    size[i]);
            break;
        default:
            fprintf(f, "  %%v%d = aten.exp.default(%%v%d) : f32[%d]\n", i, x, size[i]);
        }
    }
    fprintf(f, "  return %%v%d, %%v%d\n}\n", n, n - 1);
    fclose(f);
    return text;
}

static int64_t peak_of(const Graph *g, Arena *a)
{
    return blocks_bound(blocks_of(g, alias_sets(g, a), a), a);
}

typedef struct Orders {
    Graph *g;
    Node **given, **order;
    bool *done; /* by value */
    int n;
    int64_t best;
} Orders;

static bool is_ready(const Orders *o, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->def && !o->done[n->in[i]->index])
            return false;
    return true;
}

static void try_all(Orders *o, int depth)
{
    if (depth == o->n) {
        Arena *a = arena_new();
        graph_reorder(o->g, o->order, o->n);
        int64_t peak = peak_of(o->g, a);
        o->best = peak < o->best ? peak : o->best;
        arena_free(a);
        return;
    }
    for (int i = 0; i < o->n; i++) {
        Node *n = o->given[i];
        if (o->done[n->out[0]->index] || !is_ready(o, n))
            continue;
        o->done[n->out[0]->index] = true;
        o->order[depth] = n;
        try_all(o, depth + 1);
        o->done[n->out[0]->index] = false;
    }
}

static int64_t best_of_all_orders(Graph *g, Arena *a)
{
    Orders o = {.g = g, .given = NEW(a, Node *, 32), .order = NEW(a, Node *, 32),
                .done = NEW(a, bool, g->n_values + 1), .best = INT64_MAX};
    for (Node *n = g->first; n; n = n->next)
        o.given[o.n++] = n;
    try_all(&o, 0);
    return o.best;
}

static void order_and_compare(int n, bool exhaustive, int *lower, int *best)
{
    Arena *a = arena_new(), *tmp = arena_new();
    Diag d = {.out = stderr};
    char *text = random_dag(n);
    Program *p = parse(a, text, draw(2) ? &tail_c : &tail_pte, &d);
    cr_assert(pass_dce(p->method[0], tmp, &d));
    int64_t given = peak_of(p->method[0], a);
    cr_assert(pass_order(p->method[0], tmp, &d));
    cr_assert(program_verify(p, &d), "%s", text);
    int64_t got = peak_of(p->method[0], a);
    cr_assert_leq(got, given, "%s", text);
    *lower += got < given;
    if (exhaustive) {
        int64_t least = best_of_all_orders(p->method[0], a);
        cr_assert_geq(got, least);
        *best += got == least;
    }
    free(text);
    arena_free(tmp);
    arena_free(a);
}

Test(plan, orders_of_small_graphs_are_best)
{
    int lower = 0, best = 0;
    for (int round = 0; round < 200; round++)
        order_and_compare(3 + draw(5), true, &lower, &best);
    cr_assert_gt(lower, 20, "%d", lower);
    cr_assert_eq(best, 200, "%d of 200", best);
}

Test(plan, orders_are_never_worse)
{
    int lower = 0, best = 0;
    for (int round = 0; round < 100; round++)
        order_and_compare(30, false, &lower, &best);
    cr_assert_gt(lower, 20, "%d", lower);
}

/* -- random programs --------------------------------------------------------------------------- */

/* A program of 4x4 tensors: pointwise ops, softmax, permutations, views, rows, joins, updates. */
static char *random_program(int n)
{
    static const char *const unary[] = {"exp", "relu", "neg", "sigmoid"};
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    fprintf(f, "program \"random\" stage core\n");
    for (int i = 0; i < N_STATES; i++)
        fprintf(f, "mutable %%s%d = \"s%d\" : f32[4,4] in \"-\"+%d\n", i, i, 64 * i);
    fprintf(f, "method @forward(%%v0: f32[4,4], %%v1: f32[4,4]) {\n");
    for (int i = 2; i < n; i++) {
        char x[16], y[16];
        snprintf(x, sizeof x, draw(8) ? "v%d" : "s%d", 0);
        snprintf(x, sizeof x, draw(8) ? "v%d" : "s%d", x[0] == 'v' ? draw(i) : draw(N_STATES));
        snprintf(y, sizeof y, "v%d", draw(i));
        if (x[0] == 's')
            x[1] = (char)('0' + draw(N_STATES)), x[2] = '\0';
        switch (draw(9)) {
        case 0:
            fprintf(f, "  %%v%d = aten._softmax.default(%%%s, 1, false) : f32[4,4]\n", i, x);
            break;
        case 1:
            fprintf(f, "  %%v%d = aten.permute.default(%%%s, [1, 0]) : f32[4,4]\n", i, x);
            break;
        case 2:
            fprintf(f, "  %%f%d = aten.view.default(%%%s, [16]) : f32[16]\n", i, x);
            fprintf(f, "  %%g%d = aten.neg.default(%%f%d) : f32[16]\n", i, i);
            fprintf(f, "  %%v%d = aten.view.default(%%g%d, [4, 4]) : f32[4,4]\n", i, i);
            break;
        case 3:
            fprintf(f, "  %%a%d = aten.slice.Tensor(%%%s, 0, 0, 2, 1) : f32[2,4]\n", i, x);
            fprintf(f, "  %%b%d = aten.slice.Tensor(%%%s, 0, 2, 4, 1) : f32[2,4]\n", i, y);
            fprintf(f, "  %%v%d = aten.cat.default([%%b%d, %%a%d], 0) : f32[4,4]\n", i, i, i);
            break;
        case 7: /* parts that nodes write; one of them twice */
            fprintf(f, "  %%c%d = aten.select.int(%%%s, 0, %d) : f32[4]\n", i, x, draw(4));
            fprintf(f, "  %%d%d = aten.exp.default(%%c%d) : f32[4]\n", i, i);
            fprintf(f, "  %%e%d = aten.sum.dim_IntList(%%%s, [0], false, dtype=none) : f32[4]\n", i,
                    y);
            fprintf(f, "  %%h%d = aten.cat.default([%%d%d, %%e%d], 0) : f32[8]\n", i, i, i);
            fprintf(f, "  %%k%d = aten.cat.default([%%h%d, %%e%d, %%%c%d], 0) : f32[16]\n", i, i,
                    i, draw(2) ? 'd' : 'c', i);
            fprintf(f, "  %%v%d = aten.view.default(%%k%d, [4, 4]) : f32[4,4]\n", i, i);
            break;
        case 4:
            fprintf(f, "  %%r%d = aten.select.int(%%%s, 0, %d) : f32[4]\n", i, x, draw(4));
            fprintf(f, "  %%v%d = aten.mul.Tensor(%%%s, %%r%d) : f32[4,4]\n", i, y, i);
            break;
        case 5:
        case 6:
            fprintf(f, "  %%v%d = aten.add.Tensor(%%%s, %%%s, 1) : f32[4,4]\n", i, x, y);
            break;
        default:
            fprintf(f, "  %%v%d = aten.%s.default(%%%s) : f32[4,4]\n", i, unary[draw(4)], x);
        }
    }
    for (int i = 0; i < N_STATES; i++)
        fprintf(f, "  update %%s%d = %%v%d\n", i, draw(n));
    fprintf(f, "  return %%v%d, %%v%d, %%v%d\n}\n", n - 1, draw(n), draw(n));
    fclose(f);
    return text;
}

static const char *const pte_pass[] = {"canonicalize", "cse", "dce", "to_edge", "lower_symint",
                                       "to_out", "order", "alias", "plan_memory", "check_plan"};
static const char *const c_pass[] = {"canonicalize", "cse", "dce", "group", "order", "alias",
                                     "plan_memory", "check_plan"};

static bool plan(Program *p, bool verify, Diag *d)
{
    PassOptions opt = {.verify = verify, .check_ir = verify};
    return p->session->tail == &tail_pte
               ? passes_run(p, pte_pass, sizeof pte_pass / sizeof *pte_pass, opt, d)
               : passes_run(p, c_pass, sizeof c_pass / sizeof *c_pass, opt, d);
}

Test(plan, random_programs_compute_the_same_when_planned)
{
    for (int round = 0; round < 200; round++) {
        Arena *a = arena_new();
        Diag d = {.out = stderr};
        char *text = random_program(4 + draw(24));
        Program *p = parse(a, text, round % 2 ? &tail_c : &tail_pte, &d);
        MemoryBank bank[] = {{.name = "fast", .bytes = 1 + draw(512)},
                             {.name = "slow", .bytes = 1 + draw(512)},
                             {.name = "far", .bytes = 1 << 20}};
        if (round % 4 == 3)
            p->session->ram = (MemoryBanks){bank, 1 + draw(3)};
        p->session->large_first = round % 8 == 3;
        cr_assert(plan(p, true, &d), "round %d:\n%s", round, text);
        for (int i = 0; i < p->session->ram.n - 1; i++)
            cr_assert_leq(p->method[0]->pool[i], bank[i].bytes);
        PlanReport r = plan_report(p->method[0], a);
        cr_assert_leq(r.bound, r.arena, "round %d:\n%s", round, text);
        cr_assert_leq(r.order_free, r.bound);
        free(text);
        arena_free(a);
    }
}

/* -- check_plan is sound ----------------------------------------------------------------------- */

static Value *random_result(Graph *g)
{
    int n = 0, k;
    for (const Node *m = g->first; m; m = m->next)
        n++;
    k = draw(n);
    Node *m = g->first;
    while (k--)
        m = m->next;
    return m->out[0];
}

static bool gives_the_same(const Graph *g, EtcTensor *const *in, EtcTensor **want, Arena *a)
{
    int n = g->n_out + g->n_updates;
    EtcTensor **out = NEW(a, EtcTensor *, n + 1);
    int64_t symbol[1] = {0};
    Diag d = {.out = stderr};
    cr_assert(eval_graph(g, in, symbol, true, a, out, out + g->n_out, &d));
    for (int i = 0; i < n; i++)
        if (memcmp(out[i]->data, want[i]->data, 64) != 0)
            return false;
    return true;
}

/* A result is moved to a random place.  Whatever check_plan lets pass must still compute the same;
 * and it must not refuse everything. */
Test(plan, what_check_plan_accepts_computes_the_same)
{
    int accepted = 0, refused = 0;
    for (int round = 0; round < 400; round++) {
        Arena *a = arena_new();
        char *text = random_program(4 + draw(12)), *said = NULL;
        size_t len = 0;
        Diag d = {.out = open_memstream(&said, &len)};
        Program *p = parse(a, text, &tail_pte, &d);
        cr_assert(plan(p, false, &d), "%s", said);
        Graph *g = p->method[0];
        EtcTensor *in[2], **want = NEW(a, EtcTensor *, g->n_out + g->n_updates + 1);
        for (int i = 0; i < 2; i++) {
            in[i] = tensor_new(a, ETC_F32, 2, (const int64_t[]){4, 4});
            for (int k = 0; k < 16; k++)
                ((float *)in[i]->data)[k] = (float)(draw(1000) - 500) / 250.0f;
        }
        int64_t symbol[1] = {0};
        cr_assert(eval_graph(g, in, symbol, true, a, want, want + g->n_out, &d));
        Value *v = random_result(g);
        g->pool[0] += 256; /* room where nothing lies */
        int64_t room = g->pool[0] - type_bytes(v->type);
        value_set_place(v, (Place){1, 16 * draw((int)(room / 16) + 1)});
        if (pass_check_plan(p, a, &d)) {
            accepted++;
            cr_assert(gives_the_same(g, in, want, a), "round %d, %%%s:\n%s", round, v->name, text);
        } else {
            refused++;
        }
        fclose(d.out);
        free(said);
        free(text);
        arena_free(a);
    }
    cr_assert_gt(accepted, 40);
    cr_assert_gt(refused, 40);
}

/* -- folding ----------------------------------------------------------------------------------- */

static Value *state_of(Graph *g, const char *name, Type t, float *data, int64_t n)
{
    State *s = program_state(g->program, ST_PARAM, name, name, t, name, 0, (uint8_t *)data, 4 * n);
    return graph_state(g, s);
}

/* Recorded with torch 2.13: (w.double() * f).float() and ((cb - m).double() * f + b).float(), where
 * f = g.double() / sqrt(v.double() + 1e-5), seed 3. */
static const float w0[8] = {0x1.9b4700p-1f, 0x1.660f0cp-3f, 0x1.6c744cp-4f, -0x1.3a3940p-1f,
                            0x1.7a539ep-5f, -0x1.5e463cp+0f, 0x1.599850p-2f, 0x1.02d87ep+0f};
static const float want_w[8] = {0x1.bb5eeep-1f, 0x1.81ffdap-3f, 0x1.88e4dcp-4f, -0x1.52be60p-1f,
                                0x1.47b80ap-4f, -0x1.2f6b4ap+1f, 0x1.2b5d9cp-1f, 0x1.c070f0p+0f};
static const float want_b[2] = {0x1.8a1746p+0f, 0x1.22ca92p-2f};

static void fold_and_compare(bool shared)
{
    static float g[2] = {0x1.59e8eep-1f, 0x1.72fda6p+0f}, b[2] = {0x1.d5883ep-4f, -0x1.43aba6p-1f};
    static float m[2] = {-0x1.ce0bccp-1f, -0x1.37a2d6p-1f}, v[2] = {0x1.922baap-2f, 0x1.663ee8p-1f};
    static float cb[2] = {0x1.ad47a8p-2f, -0x1.471554p-4f};
    static const int64_t one[2] = {1, 1}, zero[2] = {0, 0};
    float w[8];
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Program *p = program_new(a, "fold");
    Graph *graph = graph_new(p, "forward");
    PUSH(a, p->method, p->n_methods, graph);
    p->stage = STAGE_CORE;
    memcpy(w, w0, sizeof w);
    Dim two[1] = {DIM(2)}, filter[4] = {DIM(2), DIM(2), DIM(1), DIM(2)};
    Dim image[4] = {DIM(1), DIM(2), DIM(3), DIM(3)};
    Type t = type_tensor(p, ETC_F32, 1, two);
    Value *x = graph_value(graph, "x", type_tensor(p, ETC_F32, 4, image));
    graph_add_input(graph, x);
    Value *weight = state_of(graph, "w", type_tensor(p, ETC_F32, 4, filter), w, 8);
    Node *c = build(graph, NULL, (Loc){.node = "c"}, OP_CONVOLUTION, &d, "vvvIIIbIi", x, weight,
                    state_of(graph, "cb", t, cb, 2), 2, one, 2, zero, 2, one, 0, 2, zero,
                    (int64_t)1);
    Node *n = build(graph, NULL, (Loc){.node = "n"}, OP__NATIVE_BATCH_NORM, &d, "vvvvvff",
                    c->out[0], state_of(graph, "g", t, g, 2), state_of(graph, "b", t, b, 2),
                    state_of(graph, "m", t, m, 2), state_of(graph, "v", t, v, 2), 0.1, 1e-5);
    graph_add_output(graph, n->out[0]);
    if (shared)
        graph_add_output(graph, weight);
    const char *const pass[] = {"fold_batch_norm"};
    cr_assert(passes_run(p, pass, 1, (PassOptions){.verify = true}, &d));
    cr_assert_eq(graph->first, graph->last, "one convolution is left");
    const State *new_w = arg_value(graph->first, 1)->state;
    const State *new_b = arg_value(graph->first, 2)->state;
    cr_expect_eq((void *)new_w->data == (void *)w, !shared, "in place unless shared");
    cr_expect_arr_eq(new_w->data, want_w, sizeof want_w);
    cr_expect_arr_eq(new_b->data, want_b, sizeof want_b);
    cr_expect_eq(!memcmp(w, w0, sizeof w), shared, "a weight that is read elsewhere stays");
    for (int i = 0; i < p->n_states; i++)
        cr_expect(shared || strcmp(p->state[i]->name, "w") != 0, "the old weight is gone");
    arena_free(a);
}

Test(fold, a_weight_of_its_own_is_scaled_in_place)
{
    fold_and_compare(false);
}

Test(fold, a_weight_read_elsewhere_is_copied)
{
    fold_and_compare(true);
}

Test(fold, strided_weights_become_row_major)
{
    float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const float want[6] = {1, 3, 5, 2, 4, 6}; /* data[1:].as_strided((2, 3), (1, 2)) */
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Program *p = program_new(a, "strides");
    Graph *g = graph_new(p, "forward");
    PUSH(a, p->method, p->n_methods, g);
    p->stage = STAGE_CORE;
    Dim dim[2] = {DIM(2), DIM(3)};
    static const Dim stride[2] = {{NULL, 1}, {NULL, 2}};
    Type t = type_tensor(p, ETC_F32, 2, dim);
    t.stride = stride;
    Value *x = graph_value(g, "x", type_tensor(p, ETC_F32, 2, dim));
    graph_add_input(g, x);
    Node *n = build(g, NULL, (Loc){.node = "y"}, OP_ADD_TENSOR, &d, "vv", x,
                    state_of(g, "w", t, data + 1, 7));
    graph_add_output(g, n->out[0]);
    const char *const pass[] = {"fold_constants", "drop_states"};
    cr_assert(passes_run(p, pass, 2, (PassOptions){.verify = true}, &d));
    cr_assert_eq(p->n_states, 1);
    cr_assert_null(p->state[0]->type.stride);
    cr_expect_arr_eq(p->state[0]->data, want, sizeof want);
    arena_free(a);
}

/* -- comparing finds what a pass breaks -------------------------------------------------------- */

Test(compare, a_changed_result_is_reported)
{
    char *said = NULL;
    size_t len = 0;
    Diag d = {.out = open_memstream(&said, &len)};
    Arena *a = arena_new();
    Source src = {.file = "broken", .line = 1,
                  .text = "program \"broken\" stage core\nmethod @forward(%x: f32[4]) {\n"
                          "  %y = aten.exp.default(%x) : f32[4]\n  return %y\n}\n"};
    Program *p = program_parse(a, &src, &d);
    Compare *c = compare_new(p, (PassOptions){.verify = true});
    cr_assert(compare_after(c, p, "import", 0, &d));
    cr_expect(compare_after(c, p, "nothing", 0, &d));
    node_set_op(p->method[0]->first, OP_SIN);
    cr_expect_not(compare_after(c, p, "vandal", 0, &d));
    compare_free(c);
    fclose(d.out);
    cr_expect_not_null(strstr(said, "pass 'vandal' changes output 0"), "%s", said);
    cr_expect_eq(d.n[FAULT_BUG], 1);
    free(said);
    arena_free(a);
}

/* -- size -------------------------------------------------------------------------------------- */

/* tests/bench/scale.py measures how long it takes. */
Test(plan, a_chain_of_32000_nodes_goes_through_every_pass)
{
    enum { N = 32000 };
    static const char *const pass[] = {
        "resolve_views", "functionalize", "decompose", "canonicalize", "fold_constants",
        "fold_batch_norm", "canonicalize", "cse", "dce", "drop_states", "to_edge", "lower_symint",
        "to_out", "order", "alias", "plan_memory", "check_plan"};
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    fprintf(f, "program \"chain\" stage aten\nmethod @forward(%%x: f32[4,8]) {\n"
               "  %%v0 = aten.neg.default(%%x) : f32[4,8]\n");
    for (int i = 0; i < N / 2; i++)
        fprintf(f, "  %%w%d = aten.relu_.default(%%v%d) : f32[4,8]\n"
                   "  %%v%d = aten.exp.default(%%w%d) : f32[4,8]\n", i, i, i + 1, i);
    fprintf(f, "  return %%v%d\n}\n", N / 2);
    fclose(f);
    Arena *a = arena_new();
    Diag d = {.out = stderr};
    Source src = {.file = "chain", .text = text, .line = 1};
    Program *p = program_parse(a, &src, &d);
    cr_assert(passes_run(p, pass, sizeof pass / sizeof *pass, (PassOptions){0}, &d));
    cr_expect_eq(p->method[0]->pool[0], 256);
    arena_free(a);
    free(text);
}
