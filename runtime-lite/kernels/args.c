/* args.c -- reading arguments, shapes, walks over strided tensors. */
#include "runtime-lite/kernels/args.h"

/* -- arguments --------------------------------------------------------------------------- */

static const EtcValue *value_at(const EtcCall *c, int32_t i)
{
    return ((i >= 0) && (i < c->n_args)) ? c->arg[i] : NULL;
}

static int is_none(const EtcCall *c, int32_t i)
{
    const EtcValue *v = value_at(c, i);
    return (v != NULL) && (v->tag == ETC_NONE);
}

int etc_arg_tensor(const EtcCall *c, int32_t i, EtcTensor **t)
{
    const EtcValue *v = value_at(c, i);
    if ((v == NULL) || (v->tag != ETC_TENSOR) || (v->as.tensor == NULL)) {
        return 0;
    }
    *t = v->as.tensor;
    if (((*t)->rank < 0) || ((*t)->rank > ETC_MAX_RANK)) {
        return 0;
    }
    for (int32_t d = 0; d < (*t)->rank; d++) {
        if ((*t)->dim[d] < 0) {
            return 0;
        }
    }
    return ((*t)->data != NULL) || (etc_numel(*t) == 0) || (i > 0);
}

int etc_arg_opt_tensor(const EtcCall *c, int32_t i, EtcTensor **t)
{
    *t = NULL;
    return is_none(c, i) || etc_arg_tensor(c, i, t);
}

int etc_arg_int(const EtcCall *c, int32_t i, int64_t *v)
{
    const EtcValue *a = value_at(c, i);
    if ((a == NULL) || (a->tag != ETC_INT)) {
        return 0;
    }
    *v = a->as.i;
    return 1;
}

int etc_arg_opt_int(const EtcCall *c, int32_t i, int64_t *v, int *is_given)
{
    *is_given = !is_none(c, i);
    return !*is_given || etc_arg_int(c, i, v);
}

int etc_arg_bool(const EtcCall *c, int32_t i, int *v)
{
    const EtcValue *a = value_at(c, i);
    if ((a == NULL) || (a->tag != ETC_IS_BOOL)) {
        return 0;
    }
    *v = a->as.b != 0;
    return 1;
}

int etc_arg_scalar(const EtcCall *c, int32_t i, EtcScalar *s)
{
    const EtcValue *a = value_at(c, i);
    if ((a == NULL) || ((a->tag != ETC_DOUBLE) && (a->tag != ETC_INT) && (a->tag != ETC_IS_BOOL))) {
        return 0;
    }
    s->is_float = ETC_BUILD_DOUBLES && (a->tag == ETC_DOUBLE);
    s->is_bool = a->tag == ETC_IS_BOOL;
    if (s->is_float) {
        s->d = a->as.d;
        s->i = (s->d >= 9223372036854775808.0)    ? INT64_MAX
               : (s->d >= -9223372036854775808.0) ? (int64_t)s->d
                                                  : INT64_MIN;
    } else {
        s->i = s->is_bool ? (a->as.b != 0) : a->as.i;
        s->d = (double)s->i;
    }
    return 1;
}

int etc_arg_double(const EtcCall *c, int32_t i, double *v)
{
    EtcScalar s;
    if (!etc_arg_scalar(c, i, &s)) {
        return 0;
    }
    *v = s.d;
    return 1;
}

int etc_arg_opt_scalar(const EtcCall *c, int32_t i, EtcScalar *s)
{
    return is_none(c, i) || etc_arg_scalar(c, i, s);
}

int etc_arg_ints(const EtcCall *c, int32_t i, EtcInts *v)
{
    const EtcValue *a = value_at(c, i);
    v->n = -1;
    if (is_none(c, i)) {
        return 1;
    }
    if ((a == NULL) || (a->tag != ETC_LIST_INT) || (a->as.list.n < 0) ||
        (a->as.list.n > ETC_MAX_RANK)) {
        return 0;
    }
    for (int32_t k = 0; k < a->as.list.n; k++) {
        const EtcValue *item = a->as.list.item[k];
        if ((item == NULL) || (item->tag != ETC_INT)) {
            return 0;
        }
        v->v[k] = item->as.i;
    }
    v->n = a->as.list.n;
    return 1;
}

int etc_arg_opt_doubles(const EtcCall *c, int32_t i, int32_t n, double *v, int *is_given)
{
    const EtcValue *a = value_at(c, i);
    *is_given = !is_none(c, i);
    if (!*is_given) {
        return 1;
    }
    if ((a == NULL) || (a->tag != ETC_LIST_DOUBLE) || (a->as.doubles.n != n)) {
        return 0;
    }
    for (int32_t k = 0; k < n; k++) {
        v[k] = a->as.doubles.item[k];
    }
    return 1;
}

int etc_arg_pair(const EtcCall *c, int32_t i, int64_t lo, int64_t dflt, int64_t v[2])
{
    EtcInts ints;
    if (!etc_arg_ints(c, i, &ints) || (ints.n > 2)) {
        return 0;
    }
    v[0] = (ints.n > 0) ? ints.v[0] : dflt;
    v[1] = (ints.n > 1) ? ints.v[1] : v[0];
    return (v[0] >= lo) && (v[0] <= INT32_MAX) && (v[1] >= lo) && (v[1] <= INT32_MAX);
}

int etc_may_work(const EtcCall *c, int64_t n, int64_t each)
{
    uint64_t work;
    if (c->work == NULL) {
        return 1;
    }
    if (__builtin_mul_overflow((uint64_t)n, (uint64_t)each, &work) ||
        (work > (uint64_t)*c->work)) {
        *c->work = 0;
        return 0;
    }
    *c->work -= (int64_t)work;
    return 1;
}

/* -- shapes ------------------------------------------------------------------------------ */

int32_t etc_dim(int64_t dim, int32_t rank)
{
    int64_t n = (rank > 0) ? rank : 1;
    return ((dim < -n) || (dim >= n)) ? -1 : (int32_t)((dim < 0) ? (dim + n) : dim);
}

void etc_strides(const EtcTensor *t, int64_t *stride)
{
    int64_t s = 1;
    for (int32_t i = t->rank - 1; i >= 0; i--) {
        int32_t d = (t->order != NULL) ? t->order[i] : i;
        stride[d] = s;
        s *= t->dim[d];
    }
}

int etc_is_plain(const EtcTensor *t)
{
    int64_t stride[ETC_MAX_RANK], s = 1;
    if ((t->order == NULL) || (etc_numel(t) == 0)) {
        return 1;
    }
    etc_strides(t, stride);
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        if ((t->dim[d] != 1) && (stride[d] != s)) {
            return 0;
        }
        s *= t->dim[d];
    }
    return 1;
}

int etc_same_layout(const EtcTensor *a, const EtcTensor *b)
{
    int64_t sa[ETC_MAX_RANK], sb[ETC_MAX_RANK];
    if (a->rank != b->rank) {
        return 0;
    }
    etc_strides(a, sa);
    etc_strides(b, sb);
    for (int32_t d = 0; d < a->rank; d++) {
        if ((a->dim[d] != b->dim[d]) || ((a->dim[d] != 1) && (sa[d] != sb[d]))) {
            return 0;
        }
    }
    return 1;
}

EtcStatus etc_resize64(EtcTensor *t, const int64_t *dim, int32_t rank)
{
    int32_t d32[ETC_MAX_RANK];
    if (rank > ETC_MAX_RANK) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = 0; d < rank; d++) {
        if ((dim[d] < 0) || (dim[d] > INT32_MAX)) {
            return ETC_BAD_ARG;
        }
        d32[d] = (int32_t)dim[d];
    }
    return etc_resize(t, d32, rank);
}

void *etc_at(const EtcTensor *t, int64_t offset)
{
    return (unsigned char *)t->data + (offset * (int64_t)etc_dtype_size((int)t->dtype));
}

/* -- walks ------------------------------------------------------------------------------- */

void etc_walk_init(EtcWalk *w, const EtcTensor *t)
{
    w->rank = t->rank;
    w->n = 1;
    for (int32_t d = 0; d < t->rank; d++) {
        w->dim[d] = t->dim[d];
    }
    etc_strides(t, w->stride[0]);
}

void etc_walk_add(EtcWalk *w, const EtcTensor *t)
{
    int64_t stride[ETC_MAX_RANK];
    int32_t lead = w->rank - t->rank;
    etc_strides(t, stride);
    for (int32_t d = 0; d < w->rank; d++) {
        int is_spread = (d < lead) || ((t->dim[d - lead] == 1) && (w->dim[d] != 1));
        w->stride[w->n][d] = is_spread ? 0 : stride[d - lead];
    }
    w->n++;
}

static void swap_dims(EtcWalk *w, int32_t a, int32_t b)
{
    int64_t t = w->dim[a];
    w->dim[a] = w->dim[b];
    w->dim[b] = t;
    for (int32_t k = 0; k < w->n; k++) {
        t = w->stride[k][a];
        w->stride[k][a] = w->stride[k][b];
        w->stride[k][b] = t;
    }
}

static int can_merge(const EtcWalk *w, int32_t outer, int32_t inner)
{
    for (int32_t k = 0; k < w->n; k++) {
        if (w->stride[k][outer] != (w->stride[k][inner] * w->dim[inner])) {
            return 0;
        }
    }
    return 1;
}

void etc_walk_collapse(EtcWalk *w)
{
    int32_t n = 0;
    for (int32_t d = 0; d < w->rank; d++) { /* dimensions of size 1 are dropped */
        if (w->dim[d] != 1) {
            swap_dims(w, n++, d);
        }
    }
    for (int32_t i = 1; i < n; i++) { /* the rest take the written tensor's memory order */
        for (int32_t j = i; (j > 0) && (w->stride[0][j - 1] < w->stride[0][j]); j--) {
            swap_dims(w, j - 1, j);
        }
    }
    int32_t to = 0;
    for (int32_t d = 1; d < n; d++) {
        if (can_merge(w, to, d)) {
            int64_t outer = w->dim[to];
            swap_dims(w, to, d);
            w->dim[to] *= outer;
        } else {
            swap_dims(w, ++to, d);
        }
    }
    w->rank = (n == 0) ? 1 : (to + 1);
    w->dim[0] = (n == 0) ? 1 : w->dim[0];
    for (int32_t k = 0; k < w->n; k++) {
        w->stride[k][0] = (n == 0) ? 1 : w->stride[k][0];
        w->at[k] = 0;
    }
    for (int32_t d = 0; d < w->rank; d++) {
        w->index[d] = 0;
    }
}

int etc_walk_next(EtcWalk *w)
{
    for (int32_t d = w->rank - 2; d >= 0; d--) {
        w->index[d]++;
        for (int32_t k = 0; k < w->n; k++) {
            w->at[k] += w->stride[k][d];
        }
        if (w->index[d] < w->dim[d]) {
            return 1;
        }
        w->index[d] = 0;
        for (int32_t k = 0; k < w->n; k++) {
            w->at[k] -= w->stride[k][d] * w->dim[d];
        }
    }
    return 0;
}
