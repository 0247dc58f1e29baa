/* find_integers.c -- sees weights that are integers times scales as dequantized integers.
 *
 * Stage core, before quantize.  A matrix of bytes that is cast to floats and multiplied by a scale for
 * each index of one axis becomes one dequantize.  Dequantized integers of 8 bits lose their zero points, if
 * the differences fit into i8, because kernels multiply such integers alone.  If they do not fit, and the
 * other operand of a linear layer is rounded to bytes at run time, the sums of its rows make up for them.
 * For C, those of its windows do so for a convolution; backends and kernels of a .pte take floats there.
 *
 * An exporter may have multiplied such weights out.  Only products are looked at whose other operand
 * is rounded to bytes row by row at run time: their weights were integers, and backends and C multiply
 * integers.  A weight becomes integers of 4 bits with a scale for each run of a row, or of 8 bits
 * with a scale for each row, if these give each element to the last bit.  A scale is searched for
 * among those of which the largest element is a multiple.  A weight that is none ends the search
 * with its first run. */
#include "passes/internal.h"
#include "ir/eval.h"
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
    return graph_const_like(r->g, like->state, "", type_tensor(r->g->program, t, rank, dim), data);
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
    return value_is_known(w) && w->type.dtype == ETC_I8 && w->type.rank == 2 ? w : NULL;
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

/* -- zero points ------------------------------------------------------------------------------- */

/* A constant of integers with n zero points.  That of element e is zero[e / inner % n]. */
typedef struct Points {
    QParams q;
    int64_t n, inner, *zero;
} Points;

/* Reads a dequantize of a constant that is not of i8 without zero points. */
static bool read_points(const Node *n, Points *p, Arena *tmp)
{
    QParams *q = &p->q;
    if (!qparams_read(n, q) || !q->undoes || q->kind == Q_TOKEN || (q->kind == Q_TENSOR && q->scales) ||
        n->out[0]->type.dtype != ETC_F32 || !value_is_known(q->x) || q->x->type.rank < 2 ||
        (q->dtype != ETC_U8 && q->dtype != ETC_I8))
        return false;
    const bool by_channel = q->kind == Q_CHANNEL;
    p->n = by_channel ? q->x->type.dim[q->axis].value : 1;
    p->inner = 1;
    for (int i = q->axis + 1; i < q->x->type.rank; i++)
        p->inner *= q->x->type.dim[i].value;
    p->zero = NEW(tmp, int64_t, p->n + 1);
    bool any = q->dtype == ETC_U8;
    const Value *z = q->zeros;
    if (z && (!value_is_known(z) || !dtype_is_int(z->type.dtype) || type_numel(z->type) != p->n))
        return false;
    for (int64_t i = 0; i < p->n; i++) {
        p->zero[i] = z ? (int64_t)value_number(z, i) : q->zero;
        any = any || p->zero[i];
    }
    return any;
}

/* Returns the integers less their zero points.  NULL: some do not fit into i8, or they fit into 4
 * bits only as they are. */
static int8_t *centered(const Points *p, Arena *a)
{
    const uint8_t *from = state_elements(p->q.x->state);
    const int64_t n = type_numel(p->q.x->type);
    int64_t lo = INT8_MAX, hi = INT8_MIN, least = lo, most = UINT8_MAX;
    int8_t *to = arena_alloc(a, (size_t)n + 1, 1);
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = p->q.dtype == ETC_U8 ? from[i] : (int8_t)from[i], c = v - p->zero[i / p->inner % p->n];
        if (c < INT8_MIN || c > INT8_MAX)
            return NULL;
        to[i] = (int8_t)c;
        least = i && least < v ? least : v;
        most = i && most > v ? most : v;
        lo = c < lo ? c : lo;
        hi = c > hi ? c : hi;
    }
    return least >= -8 && most <= 15 && (lo < -8 || hi > 7) ? NULL : to;
}

/* Returns the weight dequantized from these integers, which have no zero points. */
static Value *dequantized_plainly(Rewrite *r, Node *at, const Points *p, int8_t *integers)
{
    const Value *w = p->q.x;
    QParams q = {.kind = p->q.kind, .undoes = true, .axis = p->q.axis, .scales = p->q.scales, .scale = p->q.scale,
                 .lo = INT8_MIN, .hi = INT8_MAX, .dtype = ETC_I8};
    return qparams_build(r->g, at, at->loc, constant(r, w, ETC_I8, w->type.rank, w->type.dim, integers), &q, r->d);
}

/* dequantize(constant with zero points) ==> the same of i8 without.  Returns false if an error was
 * reported. */
static bool drop_zeros(Rewrite *r, Node *n)
{
    Points p;
    int8_t *integers = read_points(n, &p, r->tmp) ? centered(&p, r->g->program->arena) : NULL;
    Value *y = integers ? dequantized_plainly(r, n, &p, integers) : NULL;
    return !integers || (y && rewrite_node(r, n, y));
}

/* Moves the zero points to the middle of the integers.  Returns what this adds to each of n rows of a
 * product, for a sum of 1; NULL: the scales are not known. */
static float *move_zeros(Points *p, int64_t n, Arena *a)
{
    const Value *s = p->q.scales;
    const int64_t middle = p->q.dtype == ETC_U8 ? 128 : 0;
    if (s && (!value_is_known(s) || type_numel(s->type) != p->n))
        return NULL;
    float *by = NEW(a, float, n + 1);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = p->n > 1 ? i : 0;
        by[i] = (float)((double)(middle - p->zero[at]) * (s ? value_number(s, at) : p->q.scale));
    }
    for (int64_t i = 0; i < p->n; i++)
        p->zero[i] = middle;
    return by;
}

/* Builds the sums of what each result of the product n sums, as a product of integers.  Its weight has type t. */
static Value *sums_of_terms(Rewrite *r, Node *n, Type t, const Value *like)
{
    Dim dim[MAX_RANK];
    const int64_t count = type_numel(t) / t.dim[0].value;
    const QParams q = {.undoes = true, .scale = 1, .lo = INT8_MIN, .hi = INT8_MAX, .dtype = ETC_I8};
    int8_t *ones = arena_alloc(r->g->program->arena, (size_t)count + 1, 1);
    memset(ones, 1, (size_t)count);
    memcpy(dim, t.dim, (size_t)t.rank * sizeof *dim);
    dim[0] = DIM(1);
    Value *w = qparams_build(r->g, n, n->loc, constant(r, like, ETC_I8, t.rank, dim, ones), &q, r->d);
    return w ? build_weighted(r, n, w, NULL) : NULL;
}

/* Returns whether n is a product of what is rounded to bytes at run time and a dequantized weight, which
 * this tail computes in integers. */
static bool is_rounded_product(const Node *n, Weighted *v)
{
    QParams q;
    return weighted_read(n, v) && !v->w_axis && v->groups == 1 &&
           (v->is_conv ? n->graph->program->session->tail->has_groups : v->w->type.rank == 2) &&
           type_is_static(v->w->type) && type_numel(v->w->type) > 0 && v->w->def && v->x->def &&
           qparams_read(v->x->def, &q) && q.undoes && q.scales && q.kind != Q_CHANNEL;
}

/* linear(x, dequantize(w, zeros), b) ==> linear(x, dequantize(w), b) + linear(x, ones) * constants, if x is
 * rounded to bytes at run time; a convolution likewise.  Returns false if an error was reported. */
static bool split_zeros(Rewrite *r, Node *n)
{
    Points p;
    Weighted v;
    Dim dim[MAX_RANK];
    Arena *a = r->g->program->arena;
    if (!is_rounded_product(n, &v) || !read_points(v.w->def, &p, r->tmp) || (p.n > 1 && p.q.axis))
        return true;
    const int rank = v.w->type.rank;
    for (int i = 0; i < rank; i++)
        dim[i] = i ? DIM(1) : v.w->type.dim[0];
    float *by = move_zeros(&p, dim[0].value, a);
    int8_t *integers = by ? centered(&p, a) : NULL;
    if (!integers)
        return true;
    Value *w = dequantized_plainly(r, n, &p, integers), *sum = sums_of_terms(r, n, v.w->type, p.q.x);
    Value *more = sum ? build_pair(r, n, OP_MUL_TENSOR, sum, constant(r, p.q.x, ETC_F32, rank - 1, dim, by)) : NULL;
    Value *y = w && more ? build_pair(r, n, OP_ADD_TENSOR, build_weighted(r, n, w, v.bias), more) : NULL;
    return y && rewrite_node(r, n, y);
}

bool pass_find_integers(Graph *g, Arena *tmp, Diag *d)
{
    Rewrite r = rewrite_start(g, tmp, d);
    bool ok = true;
    for (Node *n = g->first, *next; ok && n; n = next) {
        next = n->next;
        rewrite_inputs(&r, n);
        ok = look(&r, n) && join_scales(&r, n) && drop_zeros(&r, n) && split_zeros(&r, n);
    }
    rewrite_finish(&r);
    return ok;
}
