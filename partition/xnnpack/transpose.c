/* transpose.c -- merges two transposes that have at most a reshape between them, and removes the
 * nodes that are then unused.
 *
 * Axes that the reshape splits and joins are cut into factors such that each factor lies in one
 * axis before it and in one axis after it.  Both transposes then only order factors. */
#include "partition/xnnpack/lower.h"

enum { MOST_FACTORS = 2 * XNN_MAX_RANK };

typedef struct Factors {
    int n, before[MOST_FACTORS], after[MOST_FACTORS]; /* the axis before and after the reshape */
    uint32_t size[MOST_FACTORS];
} Factors;

/* A transpose of `rank` axes of the given sizes. */
typedef struct Permutation {
    int rank, axis[MOST_FACTORS];
    uint32_t dim[MOST_FACTORS];
} Permutation;

static XValue permuted(const XValue *v, const int *axis)
{
    XValue to = *v;
    for (int i = 0; i < v->rank; i++) {
        to.dim[i] = v->dim[axis[i]];
        to.is_symbolic[i] = v->is_symbolic[axis[i]];
    }
    return to;
}

static uint32_t transpose(Lower *w, uint32_t in, const int *axis)
{
    XValue to = permuted(&w->x.value[in], axis);
    uint32_t perm[XNN_MAX_RANK], out = x_sized(w, &to);
    for (int i = 0; i < to.rank; i++)
        perm[i] = (uint32_t)axis[i];
    XNode *n = x_node(w, XNN_TRANSPOSE, out);
    x_u32(n, 0, (uint32_t)to.rank);
    x_dims(n, 1, perm, to.rank);
    x_id(n, 2, in);
    x_id(n, 3, out);
    return out;
}

/* Copies by a transpose that changes nothing, because older runtimes have no node that copies. */
uint32_t x_copy(Lower *w, uint32_t in)
{
    int axis[XNN_MAX_RANK];
    for (int i = 0; i < XNN_MAX_RANK; i++)
        axis[i] = i;
    return transpose(w, in, axis);
}

/* -- merging --------------------------------------------------------------------------------- */

static bool is_plain(const XValue *v)
{
    bool is = x_is_real(v->dtype) && v->quant == XNN_PLAIN;
    for (int i = 0; i < v->rank; i++)
        is = is && !v->is_symbolic[i];
    return is;
}

static bool find_factors(const XValue *a, const XValue *b, Factors *f)
{
    uint32_t left = 1, right = 1; /* the factors of axes i - 1 and k - 1 that are not listed yet */
    f->n = 0;
    for (int i = 0, k = 0;;) {
        while (left == 1 && i < a->rank)
            left = a->dim[i++];
        while (right == 1 && k < b->rank)
            right = b->dim[k++];
        if (left == 1 || right == 1)
            return left == right;
        uint32_t size = left < right ? left : right;
        if (!size || left % size || right % size)
            return false;
        assert(f->n < MOST_FACTORS);
        f->size[f->n] = size;
        f->before[f->n] = i - 1;
        f->after[f->n++] = k - 1;
        left /= size;
        right /= size;
    }
}

/* Sets to[] to the factors, in the order of the axes that `axis` lists. */
static void order_factors(const Factors *f, const int *axis_of, const int *axis, int rank, int *to)
{
    int n = 0;
    for (int i = 0; i < rank; i++)
        for (int k = 0; k < f->n; k++)
            if (axis_of[k] == axis[i])
                to[n++] = k;
}

/* Makes one axis of factors that are neighbours both in the source and in an axis of the result. */
static void join_neighbours(const Factors *f, const int *from, const int *to, Permutation *t)
{
    int place[MOST_FACTORS], first[MOST_FACTORS];
    uint32_t size[MOST_FACTORS];
    t->rank = 0;
    for (int i = 0; i < f->n; i++)
        place[from[i]] = i;
    for (int i = 0; i < f->n; i++) {
        int k = to[i];
        if (i && place[k] == place[to[i - 1]] + 1 && f->after[k] == f->after[to[i - 1]]) {
            size[t->rank - 1] *= f->size[k];
        } else {
            first[t->rank] = place[k];
            size[t->rank++] = f->size[k];
        }
    }
    for (int i = 0; i < t->rank; i++) {
        t->axis[i] = 0;
        for (int k = 0; k < t->rank; k++)
            t->axis[i] += first[k] < first[i];
        t->dim[t->axis[i]] = size[i];
    }
}

/* Finds a transpose of *source that equals the transpose of `in` by `axis`, if `in` is a
 * transpose of *source or a reshape of one.  Returns false if it is not, or if their axes have
 * no common factors. */
static bool find_merged(Lower *w, uint32_t in, const int *axis, uint32_t *source, Permutation *t)
{
    Factors f;
    int inverse[XNN_MAX_RANK], from[MOST_FACTORS], to[MOST_FACTORS];
    const XNode *n = x_producer(w, in);
    uint32_t mid = n && n->kind == XNN_RESHAPE ? n->field[2].u : in;
    n = x_producer(w, mid);
    if (!n || n->kind != XNN_TRANSPOSE)
        return false;
    *source = n->field[2].u;
    const XValue *v = &w->x.value[*source];
    if (!is_plain(v) || !is_plain(&w->x.value[mid]) || !is_plain(&w->x.value[in]) ||
        !find_factors(&w->x.value[mid], &w->x.value[in], &f))
        return false;
    for (int i = 0; i < v->rank; i++)
        inverse[n->field[1].dim[i]] = i;
    order_factors(&f, f.before, inverse, v->rank, from);
    order_factors(&f, f.after, axis, w->x.value[in].rank, to);
    join_neighbours(&f, from, to, t);
    return t->rank && t->rank <= XNN_MAX_RANK;
}

uint32_t x_transpose(Lower *w, uint32_t in, const int *axis)
{
    Permutation t;
    uint32_t source;
    if (!find_merged(w, in, axis, &source, &t))
        return transpose(w, in, axis);
    XValue to = permuted(&w->x.value[in], axis), rows = w->x.value[source];
    rows.rank = t.rank;
    for (int i = 0; i < t.rank; i++) {
        rows.dim[i] = t.dim[i];
        rows.is_symbolic[i] = false;
    }
    uint32_t out = x_reshape(w, source, &rows);
    return x_reshape(w, t.rank > 1 ? transpose(w, out, t.axis) : out, &to);
}

/* -- unused nodes ---------------------------------------------------------------------------- */

/* Renumbers the used values without gaps, in their order, because some readers of such files take
 * the number of a value as its position. */
static void renumber(Lower *w, const bool *is_used)
{
    XGraph *x = &w->x;
    uint32_t *to = NEW(w->tmp, uint32_t, x->n_values + 1), n = 0;
    for (int i = 0; i < x->n_values; i++) {
        to[i] = n;
        if (is_used[i])
            x->value[n++] = x->value[i];
    }
    x->n_values = (int)n;
    for (int i = 0; i < x->n_nodes; i++) {
        XNode *at = &x->node[i];
        at->output = to[at->output];
        for (int k = 0; k < at->n_fields; k++)
            if (at->field[k].type == X_ID && at->field[k].u != XNN_NONE)
                at->field[k].u = to[at->field[k].u];
    }
}

void x_sweep(Lower *w)
{
    XGraph *x = &w->x;
    bool *is_used = NEW(w->tmp, bool, x->n_values + 1);
    for (int i = 0; i < x->n_values; i++)
        is_used[i] = x->value[i].flags != 0;
    int kept = x->n_nodes;
    for (int i = x->n_nodes - 1; i >= 0; i--) {
        const XNode *n = &x->node[i];
        if (!is_used[n->output])
            continue;
        for (int k = 0; k < n->n_fields; k++)
            if (n->field[k].type == X_ID && n->field[k].u != XNN_NONE)
                is_used[n->field[k].u] = true;
        x->node[--kept] = *n;
    }
    x->n_nodes -= kept;
    x->node += kept;
    renumber(w, is_used);
}
