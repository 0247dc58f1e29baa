/* conformance.c -- checks the contract of ir/backend.h for each backend: xnnpack, and echo, the
 * smallest possible one.
 *
 * A backend gives the same answer about a node whenever it is asked, and a reason if it refuses.  A
 * node that it takes has a cost.  Two compilations give the same bytes.  The file computes the same
 * as without backends.  The passes that the backend wants run only if it is chosen.  Then both
 * backends are used in one file.  The file for XNNPACK is run if the library is installed.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "runtime-lite/delegates/xnnpack.h"
#include "tests/backends/echo/echo.h"
#include "tests/pte_load.h"

enum { MOST_BACKENDS = 2 };

/* -- models ------------------------------------------------------------------------------------ */

static const char *const model[] = {
    /* what either takes whole */
    "param %w = \"w\" : f32[4,3,3,3] in \"-\"+0\n"
    "param %b = \"b\" : f32[4] in \"-\"+432\n"
    "method @forward(%x: f32[1,3,8,6]) {\n"
    "  %c = aten.convolution.default(%x, %w, %b, [2, 1], [1, 1], [1, 1], false, [0, 0], 1)"
    " : f32[1,4,4,6]\n"
    "  %y = aten.add.Tensor(%c, %c, alpha=1) : f32[1,4,4,6]\n"
    "  return %y\n}\n",
    /* something that echo has not, between two regions of it; a result of each is an output */
    "param %w = \"w\" : f32[4,1,3,3] in \"-\"+0\n"
    "param %v = \"v\" : f32[2,4,1,1] in \"-\"+144\n"
    "method @forward(%x: f32[1,4,6,6]) {\n"
    "  %c = aten.convolution.default(%x, %w, none, [1, 1], [2, 2], [2, 2], false, [0, 0], 4)"
    " : f32[1,4,6,6]\n"
    "  %s = aten.sigmoid.default(%c) : f32[1,4,6,6]\n"
    "  %a = aten.add.Tensor(%s, %x, alpha=1) : f32[1,4,6,6]\n"
    "  %d = aten.convolution.default(%a, %v, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)"
    " : f32[1,2,6,6]\n"
    "  return %d, %c\n}\n",
    /* attention, which xnnpack alone takes, and a sum */
    "param %w = \"w\" : f32[24,8] in \"-\"+0\n"
    "method @forward(%x: f32[1,5,8]) {\n"
    "  %l = aten.linear.default(%x, %w, none) : f32[1,5,24]\n"
    "  %v = aten.view.default(%l, [1, 5, 3, 2, 4]) : f32[1,5,3,2,4]\n"
    "  %p = aten.permute.default(%v, [2, 0, 3, 1, 4]) : f32[3,1,2,5,4]\n"
    "  %q = aten.select.int(%p, 0, 0) : f32[1,2,5,4]\n"
    "  %k = aten.select.int(%p, 0, 1) : f32[1,2,5,4]\n"
    "  %u = aten.select.int(%p, 0, 2) : f32[1,2,5,4]\n"
    "  %a = aten.scaled_dot_product_attention.default(%q, %k, %u, none, 0.0, false, scale=none,"
    " enable_gqa=false) : f32[1,2,5,4]\n"
    "  %t = aten.permute.default(%a, [0, 2, 1, 3]) : f32[1,5,2,4]\n"
    "  %m = aten.view.default(%t, [1, 5, 8]) : f32[1,5,8]\n"
    "  %y = aten.add.Tensor(%m, %x, alpha=1) : f32[1,5,8]\n"
    "  return %y\n}\n",
};

enum { N_MODELS = sizeof model / sizeof *model };

static float small(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 16) / 65536.0f - 0.5f;
}

static void fill(Program *p)
{
    uint32_t seed = 1;
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        s->n_bytes = type_bytes(s->type);
        s->data = NEW(p->arena, uint8_t, s->n_bytes + 1);
        for (int64_t k = 0; k < type_numel(s->type); k++)
            ((float *)(void *)s->data)[k] = small(&seed);
    }
}

/* -- one compilation --------------------------------------------------------------------------- */

typedef struct Made {
    Arena *arena;
    Program *p;
    Pipeline passes;
    const uint8_t *file;
    size_t n;
} Made;

static Made compiled(int which, const Backend *const *chain, int n)
{
    Diag d = {.out = stderr};
    Made m = {.arena = arena_new()};
    OutFile out;
    PteStats stats;
    char *text = arena_printf(m.arena, "program \"m\" stage core\n%s", model[which]);
    Source src = {.file = "m.etir", .text = text, .line = 1};
    m.p = program_parse(m.arena, &src, &d);
    cr_assert(m.p && program_verify(m.p, &d));
    fill(m.p);
    m.p->session->backend = chain;
    m.p->session->n_backends = n;
    m.p->session->delegate_all = true;
    cr_assert(pipeline_of(m.p, &m.passes, &d));
    cr_assert(passes_run(m.p, m.passes.pass, m.passes.n, (PassOptions){.verify = true}, &d));
    cr_assert(emit_pte(m.p, m.arena, &out, &stats, &d));
    m.file = join_pieces(&out, m.arena, &m.n);
    return m;
}

static bool has_pass(const Made *m, const char *name)
{
    for (int i = 0; i < m->passes.n; i++)
        if (!strcmp(m->passes.pass[i], name))
            return true;
    return false;
}

static bool names(const Made *m, const char *id)
{
    return memmem(m->file, m->n, id, strlen(id)) != NULL;
}

/* -- running ----------------------------------------------------------------------------------- */

typedef struct Result {
    int n;
    float out[512];
} Result;

static void give(Loaded *l, int32_t i, uint32_t *seed)
{
    EtcTensor t = *etc_method_input(l->method, i)->as.tensor;
    t.capacity = etc_numel(&t) * 4;
    t.data = l->input[i] = loaded_memory(64, (size_t)t.capacity + READ_BEHIND);
    for (int64_t k = 0; k < etc_numel(&t); k++)
        ((float *)t.data)[k] = small(seed);
    EtcValue v = {.tag = ETC_TENSOR, .as.tensor = &t};
    cr_assert_eq(etc_method_set_input(l->method, i, &v, &l->e), ETC_OK, "%s", l->e.what);
}

static Result ran(const Made *m, const EtcDelegate *list, int n)
{
    Loaded l;
    Result r = {0};
    uint32_t seed = 7;
    uint8_t *file = loaded_memory(64, m->n);
    memcpy(file, m->file, m->n);
    EtcStatus s = loaded_start_with(&l, file, m->n, 0, list, n, LOADED_MOST);
    cr_assert_eq(s, ETC_OK, "%s", l.e.what);
    for (int32_t i = 0; i < etc_method_n_inputs(l.method); i++)
        give(&l, i, &seed);
    cr_assert_eq(etc_method_run(l.method, &l.e), ETC_OK, "%s", l.e.what);
    for (int32_t i = 0; i < etc_method_n_outputs(l.method); i++) {
        const EtcTensor *t = etc_method_output(l.method, i)->as.tensor;
        cr_assert_leq(r.n + etc_numel(t), 512);
        memcpy(r.out + r.n, t->data, (size_t)etc_numel(t) * 4);
        r.n += (int)etc_numel(t);
    }
    loaded_stop(&l);
    return r;
}

/* By echo, or where the file names XNNPACK by its library, which serves one program at a time; a
 * file is not run where that is not there. */
static void expect_same(const Made *m, int which)
{
    EtcXnnpack *x = names(m, "XnnpackBackend") ? etc_xnnpack_new(1) : NULL;
    EtcDelegate list[MOST_BACKENDS] = {echo_delegate};
    if (!x && names(m, "XnnpackBackend"))
        return;
    if (x)
        list[1] = etc_xnnpack_delegate(x);
    Made plain = compiled(which, NULL, 0);
    Result want = ran(&plain, NULL, 0), got = ran(m, list, x ? 2 : 1);
    etc_xnnpack_free(x);
    cr_assert_eq(got.n, want.n);
    for (int i = 0; i < got.n; i++)
        cr_expect(fabsf(got.out[i] - want.out[i]) <= 1e-5f, "model %d: element %d is %g, not %g",
                  which, i, (double)got.out[i], (double)want.out[i]);
    arena_free(plain.arena);
}

/* -- what each owes ---------------------------------------------------------------------------- */

static const Backend *const subject[MOST_BACKENDS] = {&xnnpack_backend, &echo_backend};
static const Backend *const chain[MOST_BACKENDS] = {&echo_backend, &xnnpack_backend};

Test(backend, says_the_same_twice_and_why_not)
{
    for (int b = 0; b < MOST_BACKENDS; b++)
        for (int k = 0; k < N_MODELS; k++) {
            Made m = compiled(k, NULL, 0);
            const Graph *g = m.p->method[0];
            Uses u = graph_uses(g, m.arena);
            for (const Node *n = g->first; n; n = n->next) {
                Refusal r[2] = {{NULL, NULL}, {NULL, NULL}};
                bool is = subject[b]->takes(n, &u, &r[0]);
                cr_expect_eq(is, subject[b]->takes(n, &u, &r[1]));
                cr_expect(is || r[0].why, "%s refuses %s", subject[b]->name,
                          op_target(n->op));
                cr_expect(!is || (subject[b]->cost(n) > 0 && isfinite(subject[b]->cost(n))));
            }
            arena_free(m.arena);
        }
}

Test(backend, gives_the_same_bytes_twice)
{
    for (int b = 0; b < MOST_BACKENDS; b++)
        for (int k = 0; k < N_MODELS; k++) {
            Made m = compiled(k, &subject[b], 1), again = compiled(k, &subject[b], 1);
            cr_expect(m.n == again.n && !memcmp(m.file, again.file, m.n));
            cr_expect(names(&m, subject[b]->id), "%s got nothing of model %d", subject[b]->name, k);
            arena_free(m.arena);
            arena_free(again.arena);
        }
}

Test(backend, computes_what_the_kernels_compute)
{
    for (int b = 0; b < MOST_BACKENDS; b++)
        for (int k = 0; k < N_MODELS; k++) {
            Made m = compiled(k, &subject[b], 1);
            expect_same(&m, k);
            arena_free(m.arena);
        }
}

Test(backend, has_its_passes_run_where_it_is_chosen)
{
    for (int b = 0; b < MOST_BACKENDS; b++)
        for (int when = 0; when < N_PREPARES; when++) {
            const char *const *want = subject[b]->prepare[when];
            Made none = compiled(0, NULL, 0), one = compiled(0, &subject[b], 1),
                 two = compiled(0, chain, 2);
            for (; want && *want; want++) {
                cr_expect_not(has_pass(&none, *want));
                cr_expect(has_pass(&one, *want) && has_pass(&two, *want), "%s", *want);
            }
            arena_free(none.arena);
            arena_free(one.arena);
            arena_free(two.arena);
        }
}

Test(backend, leaves_what_another_alone_wants)
{
    Made m = compiled(0, &subject[1], 1);
    for (int when = 0; when < N_PREPARES; when++)
        for (const char *const *pass = xnnpack_backend.prepare[when]; pass && *pass; pass++)
            cr_expect_not(has_pass(&m, *pass), "%s", *pass);
    arena_free(m.arena);
}

/* -- two in one file --------------------------------------------------------------------------- */

Test(backends, share_a_file)
{
    for (int k = 1; k < N_MODELS; k++) {
        Made m = compiled(k, chain, 2);
        cr_expect(names(&m, "EchoBackend") && names(&m, "XnnpackBackend"), "model %d", k);
        expect_same(&m, k);
        arena_free(m.arena);
    }
}
