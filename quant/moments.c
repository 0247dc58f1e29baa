/* moments.c -- moments of the channels of operands over all samples: means, mean squares,
 * largest magnitudes, and for GPTQ the sums of products.c.  Sums are doubles and are added in
 * the order of the samples. */
#include "quant/internal.h"
#include <float.h>
#include <string.h>

static Moments *moments_new(Arena *a, const Value *v, int axis)
{
    assert(axis >= 0 && axis < v->type.rank && !v->type.dim[axis].expr);
    Moments *m = NEW(a, Moments, 1);
    m->name = v->name;
    m->axis = axis;
    m->n = v->type.dim[axis].value;
    m->mean = NEW(a, float, m->n + 1);
    m->square = NEW(a, float, m->n + 1);
    m->magnitude = NEW(a, float, m->n + 1);
    m->sum = NEW(a, double, m->n + 1);
    m->sum_square = NEW(a, double, m->n + 1);
    return m;
}

bool moments_ask(Annotation *a, unsigned algorithms, bool is_before)
{
    bool any = false;
    a->moments = NEW(a->arena, Moments *, a->n_values + 1);
    for (const Node *n = a->g->first; n; n = n->next) {
        Weighted w;
        const NodePlan *p = plan_of(a, n);
        if (!p || p->mode == MODE_FLOAT || !weighted_read(n, &w) || !(p->choice.algorithms & algorithms) ||
            p->choice.weight.dtype != ETC_I8)
            continue;
        const Value *v = w.x;
        const int axis = w.x_axis;
        if (v->type.dim[axis].expr || v->type.dtype != ETC_F32)
            continue;
        Moments **m = &a->moments[v->index];
        *m = *m ? *m : moments_new(a->arena, v, axis);
        (*m)->is_before = is_before;
        if (p->choice.algorithms & algorithms & ALG_GPTQ && (*m)->axis == axis)
            products_ask(*m, n, p->choice.weight.bits, a->arena);
        any = true;
    }
    return any;
}

const Moments *moments_of(const Annotation *a, const Node *n)
{
    Weighted w;
    if (!a->moments || !weighted_read(n, &w) || w.x->index >= a->n_values)
        return NULL;
    const Moments *m = a->moments[w.x->index];
    return m && m->axis == w.x_axis ? m : NULL;
}

/* The sums lie in the arena of the program, because statistics outlive the annotation. */
void moments_begin(const Annotation *a)
{
    for (int v = 0; a->moments && v < a->n_values; v++)
        for (Products *p = a->moments[v] ? a->moments[v]->products : NULL; p; p = p->next)
            p->gram = p->gram ? p->gram : NEW(a->g->program->arena, double, products_count(p));
}

/* The number of lanes in which a channel of n values is summed; compilers turn lanes into vectors.
 */
enum { LANES = 8 };

static void see_channel(Moments *m, const float *x, int64_t c, int64_t n)
{
    double sum[LANES] = {m->sum[c]}, square[LANES] = {m->sum_square[c]};
    float most[LANES] = {m->magnitude[c]};
    for (int64_t i = 0; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const float v = x[i + k], size = v < 0 ? -v : v;
            sum[k] += (double)v;
            square[k] += (double)v * (double)v;
            most[k] = size > most[k] ? size : most[k];
        }
    for (int64_t i = n - n % LANES; i < n; i++) {
        const float v = x[i], size = v < 0 ? -v : v;
        sum[i % LANES] += (double)v;
        square[i % LANES] += (double)v * (double)v;
        most[i % LANES] = size > most[i % LANES] ? size : most[i % LANES];
    }
    for (int k = 1; k < LANES; k++) {
        sum[0] += sum[k];
        square[0] += square[k];
        most[0] = most[k] > most[0] ? most[k] : most[0];
    }
    m->sum[c] = sum[0];
    m->sum_square[c] = square[0];
    m->magnitude[c] = most[0];
}

/* Adds a row that has one value for each channel. */
static void observe_row(Moments *m, const float *x)
{
    for (int64_t c = 0; c < m->n; c++) {
        const float v = x[c], size = v < 0 ? -v : v;
        m->sum[c] += (double)v;
        m->sum_square[c] += (double)v * (double)v;
        m->magnitude[c] = size > m->magnitude[c] ? size : m->magnitude[c];
    }
}

void moments_observe(Moments *m, const EtcTensor *t, int sample, int n_samples, Arena *tmp)
{
    const float *x = t->data;
    int64_t outer = 1, inner = 1;
    assert(m->axis < t->rank && t->dim[m->axis] == m->n && t->dtype == ETC_F32);
    for (int i = 0; i < t->rank; i++) {
        outer *= i < m->axis ? t->dim[i] : 1;
        inner *= i > m->axis ? t->dim[i] : 1;
    }
    for (int64_t k = 0; k < outer; k++) {
        const float *row = x + k * m->n * inner;
        if (inner == 1)
            observe_row(m, row);
        for (int64_t c = 0; inner > 1 && c < m->n; c++)
            see_channel(m, row + c * inner, c, inner);
    }
    for (Products *p = m->products; p; p = p->next)
        products_observe(m, p, t, sample, n_samples, tmp);
    m->count += (double)(outer * inner);
}

static const char *const key_of[2][3] = {{"mean", "square", "most"},
                                      {"mean.before", "square.before", "most.before"}};

void moments_add(const Annotation *a, Statistics *to)
{
    assert(a->moments);
    for (int v = 0; v < a->n_values; v++) {
        const Moments *m = a->moments[v];
        for (int k = 0; m && k < 3; k++)
            statistics_add(to, key_of[m->is_before][k], m->name, (int)m->n,
                           k == 0 ? m->mean : k == 1 ? m->square : m->magnitude);
    }
}

void moments_end(const Annotation *a, Statistics *to)
{
    for (int v = 0; v < a->n_values; v++) {
        Moments *m = a->moments[v];
        if (!m)
            continue;
        for (int64_t i = 0; m->count > 0 && i < m->n; i++) {
            m->mean[i] = (float)(m->sum[i] / m->count);
            m->square[i] = (float)(m->sum_square[i] / m->count);
        }
        int nth = 0;
        for (const Products *p = m->products; p; p = p->next)
            statistics_keep_products(to, m->name, nth++, p);
    }
    moments_add(a, to);
}

/* -- before their end: sums, sums of squares, largest magnitudes, how many -------------------- */

static const char *part_key(int nth, Arena *a)
{
    return arena_printf(a, "part.products%d", nth);
}

/* Returns the number of elements in the lower triangles, which alone are kept. */
static int n_kept(const Products *p)
{
    return (int)(p->blocks * (p->n * (p->n + 1) / 2));
}

static void keep_products(const Products *p, double *to)
{
    assert(p->gram);
    for (int64_t row = 0; row < p->blocks * p->n; to += row++ % p->n + 1)
        memcpy(to, p->gram + row * p->n, (size_t)(row % p->n + 1) * sizeof *to);
}

static void take_products(const Products *p, const double *from)
{
    assert(p->gram);
    for (int64_t row = 0; row < p->blocks * p->n; from += row++ % p->n + 1)
        memcpy(p->gram + row * p->n, from, (size_t)(row % p->n + 1) * sizeof *from);
}

void moments_keep(const Annotation *a, Statistics *to)
{
    for (int v = 0; v < a->n_values; v++) {
        const Moments *m = a->moments[v];
        if (!m)
            continue;
        double *at = statistics_add_exact(to, "part.moments", m->name, (int)(3 * m->n + 1));
        for (int64_t i = 0; i < m->n; i++) {
            at[i] = m->sum[i];
            at[m->n + i] = m->sum_square[i];
            at[2 * m->n + i] = (double)m->magnitude[i];
        }
        at[3 * m->n] = m->count;
        int nth = 0;
        for (const Products *p = m->products; p; p = p->next)
            keep_products(p, statistics_add_exact(to, part_key(nth++, a->arena), m->name,
                                                  n_kept(p)));
    }
}

static bool take_sums(Moments *m, const double *at)
{
    if (!at)
        return false;
    memcpy(m->sum, at, (size_t)m->n * sizeof *at);
    memcpy(m->sum_square, at + m->n, (size_t)m->n * sizeof *at);
    for (int64_t i = 0; i < m->n; i++) {
        const double v = at[2 * m->n + i];
        if (!(v >= 0 && v <= (double)FLT_MAX))
            return false;
        m->magnitude[i] = (float)v;
    }
    m->count = at[3 * m->n];
    return m->count >= 0;
}

void moments_clear(const Annotation *a)
{
    for (int v = 0; v < a->n_values; v++) {
        Moments *m = a->moments[v];
        if (!m)
            continue;
        memset(m->sum, 0, (size_t)m->n * sizeof *m->sum);
        memset(m->sum_square, 0, (size_t)m->n * sizeof *m->sum_square);
        memset(m->magnitude, 0, (size_t)m->n * sizeof *m->magnitude);
        for (const Products *p = m->products; p; p = p->next)
            if (p->gram)
                memset(p->gram, 0, (size_t)products_count(p) * sizeof *p->gram);
        m->count = 0;
    }
}

bool moments_take(const Annotation *a, const Statistics *from)
{
    bool ok = true;
    for (int v = 0; v < a->n_values && ok; v++) {
        Moments *m = a->moments[v];
        if (!m)
            continue;
        ok = take_sums(m, statistics_get_exact(from, "part.moments", m->name, (int)(3 * m->n + 1)));
        int nth = 0;
        for (const Products *p = m->products; p && ok; p = p->next) {
            const double *at = statistics_get_exact(from, part_key(nth++, a->arena), m->name,
                                                    n_kept(p));
            ok = at != NULL;
            if (at)
                take_products(p, at);
        }
    }
    return ok;
}

static bool take(const Statistics *s, const char *key, const Moments *m, float *to)
{
    const float *v = statistics_get(s, key, m->name, (int)m->n);
    for (int64_t i = 0; v && i < m->n; i++)
        to[i] = v[i];
    return v != NULL;
}

bool moments_read(const Annotation *a, const Statistics *s, Diag *d)
{
    bool ok = true;
    for (int v = 0; v < a->n_values; v++) {
        Moments *m = a->moments[v];
        Loc loc = {.file = statistics_file(s), .node = m ? m->name : NULL};
        if (!m)
            continue;
        int nth = 0;
        for (Products *p = m->products; p; p = p->next)
            if (!(p->gram = statistics_products(s, m->name, nth++, p)))
                ok = diag_error(d, loc, "gptq needs samples (--calibrate): files of statistics "
                                        "leave out the products of channels");
        const char *const *k = key_of[m->is_before];
        if (!take(s, k[0], m, m->mean) || !take(s, k[1], m, m->square) ||
            !take(s, k[2], m, m->magnitude))
            ok = diag_error(d, loc, "has no moments of it: make it with this recipe");
    }
    return ok;
}
