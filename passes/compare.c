/* compare.c -- evaluates a program before and after a pass and compares the results.
 *
 * Every method runs on given or seeded random inputs, with its symbols at their lower bounds and at
 * values between the bounds.  After an EXACT pass all results must have the same bits.  After a
 * pass that is BOUNDED(k) a float result may change by k * (E + u * M).  M is its largest magnitude
 * before the pass, u half a unit in the last place of 1.0.  E is the effect of rounding errors: the
 * largest change of the result if every float input, state and computed value is moved by one unit
 * in the last place, up or down at random.  So E measures how well-conditioned this model is on
 * these inputs, and k how many roundings a pass may make where there was one.  Integers may differ
 * only where the runs for E differ.  A float that is nearly in the middle of two bytes may be
 * rounded to the other one, and fixed point may give it too: a result may also change by as much as
 * it does if each quantized value moves by one step.
 *
 * Exports contain operators without kernels.  The comparison starts after the first pass that
 * leaves none; on_note says what was not compared. */
#include "passes/internal.h"
#include "ir/eval.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { N_CASES = 2, N_SHAKES = 2 };

typedef struct Case {
    int method;
    int64_t *symbol;
    EtcTensor **in;
    bool given, dead; /* dead: even the first program cannot run it */
    int n_out, n_updates;
    EtcTensor **out; /* outputs, then updates; NULL: not evaluated yet */
    double *margin;  /* by result: E + u * M */
    double *step;    /* by result: its change if quantized values move by a step */
} Case;

struct Compare {
    PassOptions opt;
    Arena *arena;            /* cases and inputs */
    Arena *results, *before; /* memory of the results after the pass and before it */
    Case *item;
    int n;
    uint64_t seed;
};

/* -- cases ----------------------------------------------------------------------------------- */

static bool random_inputs(Compare *c, const Program *p, Case *k, int which)
{
    const Graph *g = p->method[k->method];
    k->symbol = NEW(c->arena, int64_t, p->n_syms + 1);
    k->in = NEW(c->arena, EtcTensor *, g->n_in + 1);
    inputs_symbols(p, which, k->symbol);
    return inputs_random(g, k->symbol, &c->seed, c->arena, k->in);
}

static bool given_inputs(Compare *c, const Program *p, Case *k)
{
    const Graph *g = p->method[0];
    k->given = true;
    k->symbol = NEW(c->arena, int64_t, p->n_syms + 1);
    k->in = NEW(c->arena, EtcTensor *, g->n_in + 1);
    for (int i = 0; i < g->n_in; i++)
        k->in[i] = c->opt.verify_in[i];
    inputs_read_symbols(g, k->in, k->symbol);
    return true;
}

Compare *compare_new(Program *p, PassOptions opt)
{
    Arena *a = arena_new();
    Compare *c = NEW(a, Compare, 1);
    *c = (Compare){.opt = opt, .arena = a, .results = arena_new(), .seed = 1};
    c->before = arena_new();
    for (int m = 0; m < p->n_methods; m++)
        for (int which = 0; which < (p->n_syms ? N_CASES : 1); which++) {
            Case k = {.method = m};
            bool given = !m && opt.verify_in;
            if (given ? !which && given_inputs(c, p, &k)
                      : random_inputs(c, p, &k, which))
                PUSH(a, c->item, c->n, k);
        }
    return c;
}

void compare_free(Compare *c)
{
    arena_free(c->results);
    arena_free(c->before);
    arena_free(c->arena);
}

/* -- running --------------------------------------------------------------------------------- */

static const Node *first_without_kernel(const Graph *g)
{
    for (const Node *n = g->first; n; n = n->next)
        if (!eval_can(n))
            return n;
    return NULL;
}

static const State *first_without_bytes(const Graph *g)
{
    for (int i = 0; i < g->n_states; i++)
        if (!g->state[i]->state->data && g->state[i]->state->kind != ST_BLOB)
            return g->state[i]->state;
    return NULL;
}

/* Moves each float to the next one, towards zero or away from it. */
static void shake_floats(void *data, EtcDtype t, int64_t n, uint64_t *seed)
{
    for (int64_t i = 0; i < n; i++) {
        bool away = inputs_draw(seed) & 1;
        if (t == ETC_F32) {
            float *f = (float *)data + i;
            uint32_t bits;
            memcpy(&bits, f, sizeof bits);
            bits += away || !(bits << 1) ? 1 : UINT32_MAX;
            if (isfinite(*f))
                memcpy(f, &bits, sizeof bits);
        } else if (t == ETC_F64) {
            double *f = (double *)data + i;
            uint64_t bits;
            memcpy(&bits, f, sizeof bits);
            bits += away || !(bits << 1) ? 1 : UINT64_MAX;
            if (isfinite(*f))
                memcpy(f, &bits, sizeof bits);
        }
    }
}

/* Shakes the floats of a result as another rounding would; views and concats round nothing. */
static void shake_result(const Value *v, EtcTensor *t, void *seed)
{
    if (!node_moves(v->def))
        shake_floats(t->data, t->dtype, etc_numel(t), seed);
}

static bool is_quantized(const Value *v, QParams *q)
{
    return (v->type.dtype == ETC_I8 || v->type.dtype == ETC_U8) && qparams_read(v->def, q) &&
           !q->undoes;
}

/* Moves the bytes that a quantize makes by one step, up or down at random, within their range. */
static void step_result(const Value *v, EtcTensor *t, void *seed)
{
    QParams q;
    const bool is_signed = t->dtype == ETC_I8;
    if (!is_quantized(v, &q))
        return;
    assert(q.lo <= q.hi);
    uint8_t *byte = t->data;
    for (int64_t i = 0; i < etc_numel(t); i++) {
        const int64_t is = is_signed ? (int8_t)byte[i] : byte[i];
        const int64_t to = is + (inputs_draw(seed) & 1 ? 1 : -1);
        byte[i] = (uint8_t)(to < q.lo || to > q.hi ? is : to);
    }
}

/* Runs a method of p on inputs.  `shake`, which may be NULL, changes the nodes' results. */
static EtcTensor **run(const Case *k, const Program *p, EtcTensor *const *in, EvalVisit *shake,
                       uint64_t *seed, Arena *a, Diag *d)
{
    const Graph *g = p->method[k->method];
    EtcTensor **out = NEW(a, EtcTensor *, g->n_out + g->n_updates + 1);
    const EvalHow how = {.arena_check = !shake, .visit = shake, .ctx = seed};
    bool ok = eval_watched(g, in, k->symbol, how, a, out,
                           out + g->n_out, d);
    return ok ? out : NULL;
}

/* Runs as `run` does, but says nothing where it cannot be run. */
static EtcTensor **try_run(const Case *k, const Program *p, EtcTensor *const *in, EvalVisit *shake,
                           uint64_t *seed, Arena *a)
{
    return run(k, p, in, shake, seed, a, &(Diag){0});
}

static void note(const Compare *c, const char *pass, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void note(const Compare *c, const char *pass, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    if (!c->opt.on_note)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->opt.on_note(pass, text, c->opt.ctx);
}

/* Returns whether every node has a kernel and every state its bytes; notes which one has not. */
static bool can_run(const Compare *c, const Graph *g, const char *pass)
{
    const Node *n = first_without_kernel(g);
    const State *s = first_without_bytes(g);
    if (n)
        note(c, pass, "@%s is not evaluated: node '%s' (%s) has no kernel", g->name,
             n->loc.node ? n->loc.node : "?", node_target(n));
    else if (s)
        note(c, pass, "@%s is not evaluated: the bytes of '%s' are not available", g->name, s->fqn);
    return !n && !s;
}

/* -- margins --------------------------------------------------------------------------------- */

static EtcTensor *shaken(const EtcTensor *t, Arena *a, uint64_t *seed)
{
    int64_t dim[MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dim[i] = t->dim[i];
    EtcTensor *copy = tensor_new(a, t->dtype, t->rank, dim);
    memcpy(copy->data, t->data, (size_t)etc_numel(t) * etc_dtype_size((int)t->dtype));
    shake_floats(copy->data, t->dtype, etc_numel(t), seed);
    return copy;
}

/* Points every state at shaken bytes; returns the old ones. */
static uint8_t **shake_states(const Program *p, Arena *a, uint64_t *seed)
{
    uint8_t **old = NEW(a, uint8_t *, p->n_states + 1);
    for (int i = 0; i < p->n_states; i++) {
        State *s = p->state[i];
        old[i] = s->data;
        if (!s->data || (s->type.dtype != ETC_F32 && s->type.dtype != ETC_F64))
            continue;
        s->data = arena_alloc(a, (size_t)s->n_bytes + 1, 1);
        memcpy(s->data, old[i], (size_t)s->n_bytes);
        shake_floats(s->data, s->type.dtype,
                     s->n_bytes / (int64_t)etc_dtype_size((int)s->type.dtype), seed);
    }
    return old;
}

static double largest_difference(const EtcTensor *a, const EtcTensor *b)
{
    double most = 0;
    for (int64_t i = 0; i < etc_numel(a); i++) {
        double d = fabs(tensor_number(a, i) - tensor_number(b, i));
        most = d > most ? d : most;
    }
    return most;
}

static double magnitude(const EtcTensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < etc_numel(t); i++) {
        double d = fabs(tensor_number(t, i));
        most = d > most && isfinite(d) ? d : most;
    }
    return most;
}

static double unit_of(EtcDtype t)
{
    return t == ETC_F64 ? 0x1p-53 : t == ETC_BF16 ? 0x1p-8 : t == ETC_F16 ? 0x1p-11
         : t == ETC_F32 ? 0x1p-24 : 0;
}

static void measure(Compare *c, const Program *p, Case *k)
{
    Arena *a = arena_new();
    int n = k->n_out + k->n_updates, n_in = p->method[k->method]->n_in;
    k->margin = NEW(c->results, double, n + 1);
    for (int i = 0; i < n; i++)
        k->margin[i] = unit_of(k->out[i]->dtype) * magnitude(k->out[i]);
    for (int shake = 0; shake < N_SHAKES; shake++) {
        EtcTensor **in = NEW(a, EtcTensor *, n_in + 1);
        for (int i = 0; i < n_in; i++)
            in[i] = shaken(k->in[i], a, &c->seed);
        uint8_t **old = shake_states(p, a, &c->seed);
        EtcTensor **out = try_run(k, p, in, shake_result, &c->seed, a);
        for (int i = 0; i < p->n_states; i++)
            p->state[i]->data = old[i];
        for (int i = 0; out && i < n; i++) {
            double most = largest_difference(k->out[i], out[i]);
            double least = unit_of(k->out[i]->dtype) * magnitude(k->out[i]);
            k->margin[i] = most + least > k->margin[i] ? most + least : k->margin[i];
        }
    }
    arena_free(a);
}

static bool has_quantized(const Graph *g)
{
    QParams q;
    for (const Node *n = g->first; n; n = n->next)
        if (n->n_out && is_quantized(n->out[0], &q))
            return true;
    return false;
}

static void measure_steps(Compare *c, const Program *p, Case *k)
{
    Arena *a = arena_new();
    const int n = k->n_out + k->n_updates;
    const bool has_steps = has_quantized(p->method[k->method]);
    assert(k->out && n >= 0);
    k->step = NEW(c->results, double, n + 1);
    for (int shake = 0; has_steps && shake < N_SHAKES; shake++) {
        EtcTensor **out = try_run(k, p, k->in, step_result, &c->seed, a);
        for (int i = 0; out && i < n; i++) {
            const double most = largest_difference(k->out[i], out[i]);
            k->step[i] = most > k->step[i] ? most : k->step[i];
        }
    }
    arena_free(a);
}

bool compare_before(Compare *c, const Program *p, double k)
{
    for (int i = 0; i < c->n && k > 0; i++)
        if (c->item[i].out) {
            measure(c, p, &c->item[i]);
            measure_steps(c, p, &c->item[i]);
        }
    return true;
}

/* -- comparing ------------------------------------------------------------------------------- */

static bool same_shape(const EtcTensor *a, const EtcTensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim);
}

/* Returns the first element that differs by more than it may, or -1. */
static int64_t first_fault(const EtcTensor *a, const EtcTensor *b, double most)
{
    size_t size = etc_dtype_size((int)a->dtype);
    for (int64_t i = 0; i < etc_numel(a); i++) {
        const uint8_t *x = (const uint8_t *)a->data + (size_t)i * size;
        const uint8_t *y = (const uint8_t *)b->data + (size_t)i * size;
        if (!memcmp(x, y, size))
            continue;
        double v = tensor_number(a, i), w = tensor_number(b, i);
        if (!(most > 0 && ((isnan(v) && isnan(w)) || fabs(v - w) <= most)))
            return i;
    }
    return -1;
}

static bool compare_result(const Compare *c, const Case *k, const Graph *g, int i,
                           const EtcTensor *now, const char *pass, double bound, Diag *d)
{
    const EtcTensor *was = k->out[i];
    bool is_out = i < g->n_out;
    const char *what = is_out ? "output" : "update";
    const Value *v = is_out ? g->out[i] : g->update[i - g->n_out].target;
    Loc loc = {.file = g->program->name, .node = v->name};
    double most = bound > 0 ? bound * k->margin[i] + k->step[i] : 0;
    (void)c;
    if (!same_shape(was, now))
        return diag_fault(d, FAULT_BUG, loc, "pass '%s' changes the dtype or sizes of %s %d of @%s",
                          pass, what, is_out ? i : i - g->n_out, g->name);
    int64_t at = first_fault(was, now, most);
    if (at < 0)
        return true;
    return diag_fault(d, FAULT_BUG, loc,
                      "pass '%s' changes %s %d of @%s: element %" PRId64 " was %.9g, is %.9g, may "
                      "differ by %.3g", pass, what, is_out ? i : i - g->n_out, g->name, at,
                      tensor_number(was, at), tensor_number(now, at), most);
}

static bool compare_case(Compare *c, Case *k, const Program *p, const char *pass, double bound,
                         Diag *d)
{
    const Graph *g = p->method[k->method];
    bool ok = true;
    if (k->dead || !can_run(c, g, pass)) {
        k->out = NULL;
        return true;
    }
    bool first = !k->out;
    EtcTensor **out = first ? try_run(k, p, k->in, NULL, NULL, c->results)
                            : run(k, p, k->in, NULL, NULL, c->results, d);
    if (!out && !first)
        return diag_fault(d, FAULT_BUG, (Loc){.file = p->name},
                          "after pass '%s' @%s cannot be evaluated any more", pass, g->name);
    if (!out && k->given)
        return diag_error(d, (Loc){.file = p->name}, "@%s cannot be evaluated on the given inputs",
                          g->name);
    if (!out) {
        k->dead = true;
        note(c, pass, "@%s cannot be evaluated on these inputs", g->name);
        return true;
    }
    if (first)
        note(c, pass, "@%s is compared from here on", g->name);
    else if (k->n_out != g->n_out || k->n_updates != g->n_updates)
        ok = diag_fault(d, FAULT_BUG, (Loc){.file = p->name},
                        "pass '%s' changes how many outputs or updates @%s has", pass, g->name);
    else
        for (int i = 0; i < g->n_out + g->n_updates; i++)
            ok = compare_result(c, k, g, i, out[i], pass, bound, d) && ok;
    k->out = out;
    k->n_out = g->n_out;
    k->n_updates = g->n_updates;
    return ok;
}

bool compare_after(Compare *c, const Program *p, const char *pass, double k, Diag *d)
{
    bool ok = true;
    Arena *old = c->before;
    c->before = c->results;
    c->results = old;
    for (int i = 0; k < 0 && i < c->n; i++)
        c->item[i].out = NULL; /* what follows is compared with what it leaves */
    if (k < 0 && c->opt.on_note)
        c->opt.on_note(pass, "not compared: it changes results, as it was asked to", c->opt.ctx);
    for (int i = 0; i < c->n; i++)
        ok = compare_case(c, &c->item[i], p, pass, k, d) && ok;
    arena_reset(c->before);
    return ok;
}
