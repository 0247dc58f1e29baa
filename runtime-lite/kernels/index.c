/* index.c -- wrappers of arange, of reads and writes by index, and of sums along an axis. */
#include "runtime-lite/kernels/join.h"
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/cores.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

/* -- arange ------------------------------------------------------------------------------ */

/* Returns how many of start, start + step, ... lie before end.  Returns -1 if the step is 0 or
 * leads away from end, or if the count or the span is too large. */
static int64_t range_count(const EtcScalar *start, const EtcScalar *end, const EtcScalar *step)
{
    int64_t span, n;
    if (start->is_float || end->is_float || step->is_float) {
        const double length = (end->d - start->d) / step->d;
        if (!((length >= 0.0) && (length <= 2147483647.0))) {
            return -1;
        }
        const int64_t whole = (int64_t)length;
        return whole + (((double)whole < length) ? 1 : 0);
    }
    if ((step->i == 0) || __builtin_sub_overflow(end->i, start->i, &span) ||
        ((span != 0) && ((span < 0) != (step->i < 0))) ||
        ((span == INT64_MIN) && (step->i == -1))) {
        return -1;
    }
    n = (span / step->i) + (((span % step->i) != 0) ? 1 : 0);
    return (n <= INT32_MAX) ? n : -1;
}

/* Arguments: start, end, step, out.  Integers are computed in 64 bits, all else in double. */
EtcStatus etc_arange(const EtcCall *c)
{
    EtcScalar start, end, step;
    EtcTensor *y;
    if (!etc_arg_scalar(c, 0, &start) || !etc_arg_scalar(c, 1, &end) ||
        !etc_arg_scalar(c, 2, &step) || !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    const int64_t n = range_count(&start, &end, &step);
    EtcStatus st = (n < 0) ? ETC_BAD_ARG : etc_resize64(y, &n, 1);
    if (st != ETC_OK) {
        return st;
    }
    if (etc_kind((int)y->dtype) == ETC_KIND_NONE) {
        return ETC_UNSUPPORTED;
    }
    for (int64_t i = 0; i < n; i++) {
        if (start.is_float || step.is_float) {
            const double v = start.d + ((double)i * step.d);
            etc_put(ETC_KIND_F64, &v, (int)y->dtype, etc_at(y, i), 1, 1);
        } else {
            const uint64_t v = (uint64_t)start.i + ((uint64_t)i * (uint64_t)step.i);
            etc_put(ETC_KIND_I64, &v, (int)y->dtype, etc_at(y, i), 1, 1);
        }
    }
    return ETC_OK;
}

/* -- reads and writes by index ----------------------------------------------------------- */

/* Returns a walk without indices; its axes are those of the plain tensor, at least one. */
static EtcIndex geometry(const EtcTensor *plain, const EtcTensor *own, int wraps)
{
    EtcIndex g;
    memset(&g, 0, sizeof g);
    g.rank = (plain->rank > 0) ? plain->rank : 1;
    g.size = (int32_t)etc_dtype_size((int)own->dtype);
    g.wraps = wraps;
    g.dim[0] = 1;
    for (int32_t d = 0; d < plain->rank; d++) {
        g.dim[d] = plain->dim[d];
    }
    etc_strides(plain, g.plain);
    return g;
}

/* Adds index t for axis d of `own` to the walk.  The axes of t are those of the walk from `lead`
 * on. */
static void add_index(EtcIndex *g, const EtcTensor *t, int32_t lead, const EtcTensor *own,
                      int32_t d)
{
    int64_t stride[ETC_MAX_RANK], own_stride[ETC_MAX_RANK];
    EtcAxisIndex *a = &g->of[g->n];
    etc_strides(t, stride);
    etc_strides(own, own_stride);
    a->index = t->data;
    a->is_wide = t->dtype == ETC_I64;
    a->limit = (own->rank > 0) ? own->dim[d] : 1;
    a->step = (own->rank > 0) ? own_stride[d] : 0;
    for (int32_t i = 0; i < t->rank; i++) {
        a->at[lead + i] = (t->dim[i] == 1) ? 0 : stride[i];
    }
    g->n++;
}

static int is_index(const EtcTensor *t)
{
    return (t->dtype == ETC_I64) || (t->dtype == ETC_I32);
}

static EtcStatus follow(const EtcTensor *y, const EtcTensor *x, const EtcIndex *g)
{
    if ((g->size == 0) || (y->dtype != x->dtype)) {
        return ETC_BAD_ARG;
    }
    return (etc_index_nd(y->data, x->data, g) != 0) ? ETC_OK : ETC_BAD_ARG;
}

/* Arguments: weight, indices, padding_idx, scale_grad_by_freq, sparse, out. */
EtcStatus etc_embedding(const EtcCall *c)
{
    EtcTensor *w, *t, *y;
    int64_t dim[ETC_MAX_RANK + 1];
    if (!etc_arg_tensor(c, 0, &w) || !etc_arg_tensor(c, 1, &t) || !etc_arg_tensor(c, 5, &y) ||
        (w->rank != 2) || !is_index(t) || ((t->data == NULL) && (etc_numel(t) != 0))) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = 0; d < t->rank; d++) {
        dim[d] = t->dim[d];
    }
    dim[t->rank] = w->dim[1];
    EtcStatus st = etc_resize64(y, dim, t->rank + 1);
    if (st != ETC_OK) {
        return st;
    }
    EtcIndex g = geometry(y, w, 0);
    int64_t stride[ETC_MAX_RANK];
    etc_strides(w, stride);
    g.own[t->rank] = stride[1];
    add_index(&g, t, 0, w, 0);
    return follow(y, w, &g);
}

/* Arguments: x, dim, index, sparse_grad, out. */
EtcStatus etc_gather(const EtcCall *c)
{
    EtcTensor *x, *t, *y;
    int64_t dim;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) || !etc_arg_tensor(c, 2, &t) ||
        !etc_arg_tensor(c, 4, &y) || !is_index(t) || ((t->data == NULL) && (etc_numel(t) != 0)) ||
        (etc_max_i64(x->rank, 1) != etc_max_i64(t->rank, 1))) {
        return ETC_BAD_ARG;
    }
    const int32_t d = etc_dim(dim, x->rank);
    for (int32_t i = 0; (i < x->rank) && (i < t->rank); i++) {
        if ((i != d) && (t->dim[i] > x->dim[i])) {
            return ETC_BAD_ARG;
        }
    }
    EtcStatus st = (d < 0) ? ETC_BAD_ARG : etc_resize(y, t->dim, t->rank);
    if (st != ETC_OK) {
        return st;
    }
    EtcIndex g = geometry(y, x, 0);
    if (t->rank == x->rank) {
        etc_strides(x, g.own);
        g.own[d] = 0;
    }
    add_index(&g, t, 0, x, d);
    return follow(y, x, &g);
}

/* Arguments: x, dim, index, out. */
EtcStatus etc_index_select(const EtcCall *c)
{
    EtcTensor *x, *t, *y;
    int64_t dim, size[ETC_MAX_RANK];
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) || !etc_arg_tensor(c, 2, &t) ||
        !etc_arg_tensor(c, 3, &y) || !is_index(t) || (t->rank > 1) ||
        ((t->data == NULL) && (etc_numel(t) != 0))) {
        return ETC_BAD_ARG;
    }
    const int32_t d = etc_dim(dim, x->rank);
    if ((d < 0) || ((x->rank == 0) && (etc_numel(t) != 1))) {
        return ETC_BAD_ARG;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        size[i] = (i == d) ? etc_numel(t) : x->dim[i];
    }
    EtcStatus st = etc_resize64(y, size, x->rank);
    if (st != ETC_OK) {
        return st;
    }
    EtcIndex g = geometry(y, x, 0);
    etc_strides(x, g.own);
    g.own[d] = 0;
    add_index(&g, t, d, x, d);
    return follow(y, x, &g);
}

/* The elements of x that a list of indices selects.  Each index is a tensor or None. */
typedef struct Picked {
    const EtcTensor *of[ETC_MAX_RANK]; /* the index of each axis of x; NULL: the whole axis */
    int64_t shape[ETC_MAX_RANK];       /* the broadcast sizes of the indices */
    int32_t rank, at;                  /* the shape's rank; the result's axis where it starts */
    int64_t dim[ETC_MAX_RANK];         /* the sizes of the result */
    int32_t n;
    int32_t axis[ETC_MAX_RANK]; /* for each axis of x without index, the result's axis */
} Picked;

static int broadcast_into(int64_t *dim, int32_t *rank, const EtcTensor *t)
{
    const int32_t n = (*rank > t->rank) ? *rank : t->rank;
    int64_t both[ETC_MAX_RANK];
    for (int32_t d = 0; d < n; d++) {
        const int32_t iy = d - (n - *rank), it = d - (n - t->rank);
        const int64_t ny = (iy >= 0) ? dim[iy] : 1, nt = (it >= 0) ? t->dim[it] : 1;
        if ((ny != nt) && (ny != 1) && (nt != 1)) {
            return 0;
        }
        both[d] = (ny == 1) ? nt : ny;
    }
    memcpy(dim, both, (size_t)n * sizeof *dim);
    *rank = n;
    return 1;
}

/* Reads the list at argument i into p->of, and sets the broadcast shape of the indices. */
static EtcStatus read_indices(const EtcCall *c, int32_t i, const EtcTensor *x, Picked *p)
{
    const EtcValue *list = (i < c->n_args) ? c->arg[i] : NULL;
    int any = 0;
    memset(p, 0, sizeof *p);
    if ((list == NULL) || ((list->tag != ETC_LIST_OPT_TENSOR) && (list->tag != ETC_LIST_TENSOR)) ||
        (list->as.list.n > x->rank)) {
        return ETC_BAD_ARG;
    }
    EtcCall items = {.arg = list->as.list.item, .n_args = list->as.list.n};
    for (int32_t d = 0; d < list->as.list.n; d++) {
        EtcTensor *t;
        if (!etc_arg_opt_tensor(&items, d, &t)) {
            return ETC_BAD_ARG;
        }
        if (t == NULL) {
            continue;
        }
        if ((t->dtype == ETC_BOOL) || (t->dtype == ETC_U8)) {
            return ETC_UNSUPPORTED;
        }
        if (!is_index(t) || ((t->data == NULL) && (etc_numel(t) != 0)) ||
            !broadcast_into(p->shape, &p->rank, t)) {
            return ETC_BAD_ARG;
        }
        p->of[d] = t;
        any = 1;
    }
    return any ? ETC_OK : ETC_BAD_ARG;
}

/* Sets the sizes of the result.  The shape of the indices replaces the indexed axes; if axes
 * without index lie between them, it comes first.  Returns 0 if the rank is too large. */
static int result_shape(const EtcTensor *x, Picked *p)
{
    int32_t first = 0, last = x->rank - 1, n_picked = 0;
    while (p->of[first] == NULL) {
        first++;
    }
    while (p->of[last] == NULL) {
        last--;
    }
    for (int32_t d = first; d <= last; d++) {
        n_picked += (p->of[d] != NULL) ? 1 : 0;
    }
    p->at = (n_picked == (last - first + 1)) ? first : 0;
    if ((x->rank - n_picked + p->rank) > ETC_MAX_RANK) {
        return 0;
    }
    for (int32_t d = 0; d <= x->rank; d++) {
        for (int32_t k = 0; (d == p->at) && (k < p->rank); k++) {
            p->dim[p->n++] = p->shape[k];
        }
        if ((d < x->rank) && (p->of[d] == NULL)) {
            p->axis[d] = p->n;
            p->dim[p->n++] = x->dim[d];
        }
    }
    return 1;
}

static void add_indices(EtcIndex *g, const EtcTensor *x, const Picked *p)
{
    int64_t stride[ETC_MAX_RANK];
    etc_strides(x, stride);
    for (int32_t d = 0; d < x->rank; d++) {
        if (p->of[d] != NULL) {
            add_index(g, p->of[d], p->at + p->rank - p->of[d]->rank, x, d);
        } else {
            g->own[p->axis[d]] = stride[d];
        }
    }
}

/* Arguments: x, indices, out. */
EtcStatus etc_index(const EtcCall *c)
{
    EtcTensor *x, *y;
    Picked p;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = read_indices(c, 1, x, &p);
    if (st != ETC_OK) {
        return st;
    }
    st = result_shape(x, &p) ? etc_resize64(y, p.dim, p.n) : ETC_BAD_ARG;
    if (st != ETC_OK) {
        return st;
    }
    EtcIndex g = geometry(y, x, 1);
    add_indices(&g, x, &p);
    return follow(y, x, &g);
}

/* Sets the walk's axes to those of the selected elements, with `values` broadcast to them.  Returns
 * 0 if the values do not fit. */
static int spread_values(EtcIndex *g, const Picked *p, const EtcTensor *values)
{
    int64_t stride[ETC_MAX_RANK];
    const int32_t lead = p->n - values->rank;
    etc_strides(values, stride);
    g->rank = (p->n > 0) ? p->n : 1;
    g->dim[0] = 1;
    for (int32_t d = 0; d < p->n; d++) {
        const int64_t n = (d >= lead) ? values->dim[d - lead] : 1;
        if ((n != 1) && (n != p->dim[d])) {
            return 0;
        }
        g->dim[d] = p->dim[d];
        g->plain[d] = (n == 1) ? 0 : stride[d - lead];
    }
    return lead >= 0;
}

/* Sets how elements of a dtype are joined by `op`.  Returns 0 if the dtype is not supported. */
static int joined_by(int dtype, int32_t op, EtcJoin *j)
{
    const int is_signed = (dtype == ETC_I8) || (dtype == ETC_I16) || (dtype == ETC_I32) ||
                          (dtype == ETC_I64);
    j->op = op;
    j->size = (int32_t)etc_dtype_size(dtype);
    j->form = (dtype == ETC_BOOL)                             ? 4
              : (dtype == ETC_BF16)                           ? 3
              : ((dtype == ETC_F16) || etc_is_float(dtype)) ? 2
                                                              : is_signed;
    return (etc_cast_kind(dtype) != ETC_KIND_NONE) && (etc_is_f8(dtype) == 0) && (dtype != ETC_U64);
}

/* Resizes y to x's sizes and copies x into it. */
static EtcStatus begin_with(const EtcTensor *x, EtcTensor *y)
{
    EtcStatus st = etc_resize(y, x->dim, x->rank);
    if (st != ETC_OK) {
        return st;
    }
    if (!etc_same_layout(x, y)) {
        return ETC_UNSUPPORTED;
    }
    if ((x->data != y->data) && (etc_numel(x) != 0)) {
        memmove(y->data, x->data, (size_t)etc_numel(x) * etc_dtype_size((int)x->dtype));
    }
    return ETC_OK;
}

/* Arguments: x, indices, values, accumulate, out.  out becomes x; then the values are written or,
 * with accumulate, added to its selected elements. */
EtcStatus etc_index_put(const EtcCall *c)
{
    EtcTensor *x, *values, *y;
    Picked p;
    int adds;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 2, &values) ||
        !etc_arg_bool(c, 3, &adds) || !etc_arg_tensor(c, 4, &y) || (x->dtype != y->dtype) ||
        (values->dtype != x->dtype) || ((values->data == NULL) && (etc_numel(values) != 0))) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = read_indices(c, 1, x, &p);
    if (st != ETC_OK) {
        return st;
    }
    EtcJoin j;
    if (!joined_by((int)x->dtype, 0, &j) && adds) {
        return ETC_UNSUPPORTED;
    }
    st = result_shape(x, &p) ? begin_with(x, y) : ETC_BAD_ARG;
    if (st != ETC_OK) {
        return st;
    }
    EtcIndex g = geometry(y, y, 1);
    memset(g.dim, 0, sizeof g.dim);
    memset(g.plain, 0, sizeof g.plain);
    g.is_put = 1;
    if (!spread_values(&g, &p, values)) {
        return ETC_BAD_ARG;
    }
    add_indices(&g, y, &p);
    if (adds) {
        return (etc_index_join(y->data, values->data, &g, &j) != 0) ? ETC_OK : ETC_BAD_ARG;
    }
    return follow(y, values, &g);
}

/* -- scatter ----------------------------------------------------------------------------- */

/* Copies x to y, and then writes `src` to the elements of y that index t names along `dim`.  The
 * sizes of src are at least those of the index.  If j is NULL, src may be one element; else the
 * elements of y are joined with those of src. */
static EtcStatus scatter(const EtcCall *c, const EtcTensor *src, const EtcJoin *j, int32_t out)
{
    EtcTensor *x, *t, *y;
    int64_t dim;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) || !etc_arg_tensor(c, 2, &t) ||
        !etc_arg_tensor(c, out, &y) || (x->dtype != y->dtype) || (src->dtype != x->dtype)) {
        return ETC_BAD_ARG;
    }
    const int32_t d = etc_dim(dim, x->rank);
    EtcStatus st = (d < 0) ? ETC_BAD_ARG : begin_with(x, y);
    if ((st != ETC_OK) || (etc_numel(t) == 0)) {
        return st;
    }
    const int is_one = (j == NULL) && (src->rank == 0);
    if (!is_index(t) || (t->data == NULL) || (etc_max_i64(x->rank, 1) != etc_max_i64(t->rank, 1)) ||
        (!is_one && (etc_max_i64(src->rank, 1) != etc_max_i64(t->rank, 1))) ||
        (src->data == NULL)) {
        return ETC_BAD_ARG;
    }
    for (int32_t i = 0; i < etc_max_i64(t->rank, 1); i++) {
        const int64_t n = (t->rank > 0) ? t->dim[i] : 1, most = (x->rank > 0) ? x->dim[i] : 1;
        const int64_t there = (src->rank > 0) ? src->dim[i] : 1;
        if (((i != d) && (n > most)) || (!is_one && (n > there))) {
            return ETC_BAD_ARG;
        }
    }
    EtcIndex g = geometry(t, y, 0);
    g.is_put = 1;
    memset(g.plain, 0, sizeof g.plain);
    etc_strides(src, g.plain);
    if (t->rank == x->rank) {
        etc_strides(y, g.own);
        g.own[d] = 0;
    }
    add_index(&g, t, 0, y, d);
    if (j == NULL) {
        return follow(y, src, &g);
    }
    return (etc_index_join(y->data, src->data, &g, j) != 0) ? ETC_OK : ETC_BAD_ARG;
}

/* Arguments: x, dim, index, src, out. */
EtcStatus etc_scatter_src(const EtcCall *c)
{
    EtcTensor *src;
    return etc_arg_tensor(c, 3, &src) ? scatter(c, src, NULL, 4) : ETC_BAD_ARG;
}

/* Arguments: x, dim, index, value, out. */
EtcStatus etc_scatter_value(const EtcCall *c)
{
    EtcTensor *x, one;
    EtcScalar v;
    uint64_t number = 0;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_scalar(c, 3, &v)) {
        return ETC_BAD_ARG;
    }
    memset(&one, 0, sizeof one);
    one.dtype = x->dtype;
    one.data = &number;
    if (v.is_float) {
        etc_put(ETC_KIND_F64, &v.d, (int)x->dtype, &number, 1, 1);
    } else {
        etc_put(ETC_KIND_I64, &v.i, (int)x->dtype, &number, 1, 1);
    }
    return (etc_cast_kind((int)x->dtype) != ETC_KIND_NONE) ? scatter(c, &one, NULL, 4)
                                                            : ETC_UNSUPPORTED;
}

static EtcStatus scatter_joined(const EtcCall *c, int32_t op, int32_t out)
{
    EtcTensor *src;
    EtcJoin j;
    if (!etc_arg_tensor(c, 3, &src)) {
        return ETC_BAD_ARG;
    }
    return joined_by((int)src->dtype, op, &j) ? scatter(c, src, &j, out) : ETC_UNSUPPORTED;
}

/* Arguments: x, dim, index, src, out. */
EtcStatus etc_scatter_add(const EtcCall *c)
{
    return scatter_joined(c, 0, 4);
}

/* Arguments: x, dim, index, src, op (0: sum, 1: product, 2: largest, 3: least), out. */
EtcStatus etc_scatter_join(const EtcCall *c)
{
    int64_t op;
    if (!etc_arg_int(c, 4, &op) || (op < 0) || (op > 3)) {
        return ETC_BAD_ARG;
    }
    return scatter_joined(c, (int32_t)op, 5);
}

/* -- sums along an axis ------------------------------------------------------------------ */

/* Writes the running sums of n elements of x, from `from` on and `step` apart, to the same
 * positions of y.  It adds in double or in 64-bit integers. */
static void run_sum(const EtcCall *c, EtcKind kind, const EtcTensor *x, EtcTensor *y, int64_t from,
                    int64_t n, int64_t step)
{
    enum { CHUNK = 1024 };
    double *d = (double *)c->scratch;
    uint64_t *u = (uint64_t *)c->scratch;
    double sum = 0.0;
    uint64_t count = 0u;
    for (int64_t i = 0; i < n; i += CHUNK) {
        const int64_t m = ((n - i) < CHUNK) ? (n - i) : CHUNK;
        const void *got = etc_fetch(kind, (int)x->dtype, etc_at(x, from + (i * step)), step, m,
                                    c->scratch);
        for (int64_t k = 0; k < m; k++) {
            if (kind == ETC_KIND_F64) {
                sum += ((const double *)got)[k];
                d[k] = sum;
            } else {
                count += ((const uint64_t *)got)[k];
                u[k] = count;
            }
        }
        etc_put(kind, c->scratch, (int)y->dtype, etc_at(y, from + (i * step)), step, m);
    }
}

/* Arguments: x, dim, dtype, out. */
EtcStatus etc_cumsum(const EtcCall *c)
{
    EtcTensor *x, *y;
    int64_t dim, dtype, outer = 1, inner = 1;
    int is_given;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) ||
        !etc_arg_opt_int(c, 2, &dtype, &is_given) || !etc_arg_tensor(c, 3, &y) ||
        (is_given && (dtype != (int64_t)y->dtype))) {
        return ETC_BAD_ARG;
    }
    const int32_t axis = etc_dim(dim, x->rank);
    EtcStatus st = (axis < 0) ? ETC_BAD_ARG : etc_resize(y, x->dim, x->rank);
    if (st != ETC_OK) {
        return st;
    }
    if ((etc_kind((int)x->dtype) == ETC_KIND_NONE) || (etc_kind((int)y->dtype) == ETC_KIND_NONE) ||
        !etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    const EtcKind kind = etc_is_float((int)y->dtype) ? ETC_KIND_F64 : ETC_KIND_I64;
    if (etc_is_float((int)x->dtype) && (kind == ETC_KIND_I64)) {
        return ETC_UNSUPPORTED;
    }
    for (int32_t i = 0; i < x->rank; i++) {
        outer *= (i < axis) ? x->dim[i] : 1;
        inner *= (i > axis) ? x->dim[i] : 1;
    }
    const int64_t n = (x->rank > 0) ? x->dim[axis] : 1;
    if ((x->dtype == ETC_F32) && (y->dtype == ETC_F32)) {
        etc_rare_cores_of(c)->cumsum((const float *)x->data, (float *)y->data, outer, n, inner);
        return ETC_OK;
    }
    for (int64_t i = 0; (etc_numel(x) > 0) && (i < (outer * inner)); i++) {
        run_sum(c, kind, x, y, ((i / inner) * n * inner) + (i % inner), n, inner);
    }
    return ETC_OK;
}
