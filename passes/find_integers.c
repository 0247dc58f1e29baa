/* find_integers.c -- sees weights that are integers times scales as dequantized integers.
 *
 * Stage core, before quantize.  A matrix of bytes that is cast to floats and multiplied by a scale for
 * each index of one axis becomes one dequantize.
 *
 * An exporter may have multiplied such weights out.  Only products are looked at whose other operand
 * is rounded to bytes row by row at run time: their weights were integers, and backends and C multiply
 * integers.  A weight becomes integers of 4 bits with a scale for each run of a row, or of 8 bits
 * with a scale for each row, if these give each element to the last bit.  A scale is searched for
 * among those of which the largest element is a multiple.  A weight that is none ends the search
 * with its first run. */
#include "passes/internal.h"
#include <math.h>
#include <string.h>

enum {
    NEAR = 2, /* a scale is off by so many last places if the element was rounded */
    LEAST = 32, MOST = 256 /* the sizes of runs that are shorter than a row */
};

/* Runs of `size` elements of a matrix, of which each shares a scale, and integers up to `most`. */
typedef struct Runs {
    const float *w;
    int64_t n, size;
    int most;
    int8_t *integer;
    float *scale;
} Runs;

static bool is_multiple(const float *w, int64_t n, float scale, int most, int8_t *to)
{
    for (int64_t i = 0; i < n; i++) {
        float near = w[i] / scale;
        if (!(fabsf(near) <= (float)most + 1))
            return false;
        int q = (int)(near + (near < 0 ? -.5f : .5f));
        float back = (float)q * scale;
        if (q > most || q < -most - 1 || memcmp(&back, &w[i], sizeof back) != 0)
            return false;
        to[i] = (int8_t)q;
    }
    return true;
}

/* Returns whether `top`, the element of run i that is farthest from 0, is k times a scale that
 * fits. */
static bool try_scale(const Runs *r, int64_t i, float top, int k)
{
    uint32_t bits;
    float scale = top / (float)k;
    assert(scale > 0 && i < r->n);
    memcpy(&bits, &scale, sizeof bits);
    for (int off = -NEAR; off <= NEAR; off++) {
        uint32_t other = bits + (uint32_t)off;
        memcpy(&scale, &other, sizeof scale);
        if ((float)k * scale == top &&
            is_multiple(r->w + i * r->size, r->size, scale, r->most, r->integer + i * r->size)) {
            r->scale[i] = scale;
            return true;
        }
    }
    return false;
}

static bool find_scale(const Runs *r, int64_t i)
{
    float top = 0;
    bool found = false;
    for (int64_t k = 0; k < r->size; k++) {
        float v = fabsf(r->w[i * r->size + k]);
        top = v > top ? v : top;
    }
    if (top == 0)
        return is_multiple(r->w + i * r->size, r->size, r->scale[i] = 1, r->most, r->integer + i * r->size);
    for (int k = r->most + 1; isfinite(top) && top >= 0x1p-100f && !found && k > 0; k--)
        found = try_scale(r, i, top, k);
    return found;
}

static bool find_scales(Runs *r, int64_t size, int most, int64_t all)
{
    r->size = size;
    r->n = all / size;
    r->most = most;
    int64_t i = 0;
    while (i < r->n && find_scale(r, i))
        i++;
    return i == r->n;
}

/* Finds runs that share a scale.  It tries few bits before many, and long runs before short
 * ones. */
static bool find_runs(Runs *r, int64_t row, int64_t all)
{
    bool found = find_scales(r, row, 7, all);
    for (int64_t size = MOST; !found && size >= LEAST; size /= 2)
        found = row % size == 0 && row > size && find_scales(r, size, 7, all);
    return found || find_scales(r, row, 127, all);
}

static Value *constant(Rewrite *r, const Value *like, EtcDtype t, int rank, const Dim *dim, void *data)
{
    Program *p = r->g->program;
    Type type = type_tensor(p, t, rank, dim);
    return graph_state(r->g, program_const(p, like->state->name, like->state->fqn, type, data));
}

/* Returns the weight as integers that are dequantized, with the sizes that it had. */
static Value *dequantized(Rewrite *r, Node *at, const Value *w, const Runs *runs)
{
    Dim dim[2] = {DIM(runs->n), DIM(runs->size)};
    QParams q = {.kind = Q_CHANNEL, .undoes = true, .lo = -runs->most - 1, .hi = runs->most, .dtype = ETC_I8};
    q.scales = constant(r, w, ETC_F32, 1, dim, runs->scale);
    Value *y = qparams_build(r->g, at, at->loc, constant(r, w, ETC_I8, 2, dim, runs->integer), &q, r->d);
    return y ? build_view(r, at, y, w->type.dim, w->type.rank) : NULL;
}

static bool is_rounded_by_rows(const Value *x)
{
    QParams q;
    return x->def && qparams_read(x->def, &q) && q.undoes && q.kind == Q_TOKEN;
}

static bool look(Rewrite *r, Node *n)
{
    Weighted v;
    if (!weighted_read(n, &v) || v.is_conv || v.w_axis || v.w->type.rank != 2 || !is_rounded_by_rows(v.x) ||
        !value_floats(v.w, -1) || v.w->type.dim[1].value < 2)
        return true;
    const int64_t all = type_numel(v.w->type), row = v.w->type.dim[1].value;
    Arena *a = r->g->program->arena;
    if (!all)
        return true;
    Runs runs = {.w = value_floats(v.w, -1), .integer = arena_alloc(a, (size_t)all, 1),
                 .scale = NEW(a, float, all / row + all / LEAST)};
    if (!find_runs(&runs, row, all))
        return true;
    Value *w = dequantized(r, n, v.w, &runs);
    if (w)
        node_set_in(n, v.w_slot, w);
    return w != NULL;
}

/* -- integers that a model casts --------------------------------------------------------------- */

/* Returns the axis of w along which s varies, if s broadcasts to w and has only positive numbers; else
 * -1. */
static int axis_of_scales(const Value *s, const Value *w)
{
    const float *scale = value_floats(s, -1);
    int axis = -1;
    for (int i = 0; scale && i < s->type.rank; i++)
        if (s->type.dim[i].value == type_numel(s->type))
            axis = i + w->type.rank - s->type.rank;
    if (axis < 0 || !dim_equal(w->type.dim[axis], DIM(type_numel(s->type))))
        return -1;
    for (int64_t i = 0; i < type_numel(s->type); i++)
        if (!(scale[i] > 0 && isfinite(scale[i])))
            return -1;
    return axis;
}

/* Returns what a node multiplies by s, if that is a constant matrix of bytes as floats; else NULL. */
static Value *bytes_cast(const Node *n, int side)
{
    const Node *cast = n->in[side]->def;
    Value *w = cast && cast->op == OP__TO_COPY ? first_operand(cast) : NULL;
    return w && value_is_const(w) && w->type.dtype == ETC_I8 && w->type.rank == 2 && !w->type.stride ? w : NULL;
}

/* Returns false if an error was reported. */
static bool join_scales(Rewrite *r, Node *n)
{
    for (int side = 0; n->op == OP_MUL_TENSOR && n->out[0]->type.dtype == ETC_F32 && side < 2; side++) {
        Value *w = bytes_cast(n, side), *s = n->in[!side];
        int axis = w ? axis_of_scales(s, w) : -1;
        if (axis < 0 || !dims_equal(n->out[0]->type.dim, w->type.dim, 2))
            continue;
        Dim dim = DIM(type_numel(s->type));
        QParams q = {.kind = Q_CHANNEL, .undoes = true, .lo = -128, .hi = 127, .dtype = ETC_I8, .axis = axis};
        q.scales = constant(r, s, ETC_F32, 1, &dim, s->state->data);
        Value *y = qparams_build(r->g, n, n->loc, w, &q, r->d);
        return y && rewrite_node(r, n, y);
    }
    return true;
}

bool pass_find_integers(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    bool ok = true;
    for (Node *n = g->first, *next; ok && n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        ok = look(&r, n) && join_scales(&r, n);
    }
    rewrite_finish(&r);
    return ok;
}
