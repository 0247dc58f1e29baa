/* copy.c -- wrappers that move elements: views, permutations, slices, cat, pad, casts, full. */
#include "runtime-lite/kernels/copy.h"
#include "runtime-lite/kernels/args.h"
#include "runtime-lite/kernels/kernels.h"
#include <string.h>

/* A strided view of a tensor's elements. */
typedef struct View {
    int32_t rank;
    int dtype;
    unsigned char *data;
    int64_t dim[ETC_MAX_RANK + 1], stride[ETC_MAX_RANK + 1];
} View;

static View view_of(const EtcTensor *t)
{
    View v;
    memset(&v, 0, sizeof v);
    v.rank = t->rank;
    v.dtype = (int)t->dtype;
    v.data = (unsigned char *)t->data;
    for (int32_t d = 0; d < t->rank; d++) {
        v.dim[d] = t->dim[d];
    }
    etc_strides(t, v.stride);
    return v;
}

static void view_advance(View *v, int64_t elements)
{
    v->data += elements * (int64_t)etc_dtype_size(v->dtype);
}

/* Sets w to walk both views, which have y's sizes, in y's memory order and with merged
 * dimensions. */
static void merge(const View *y, const View *x, EtcWalk *w)
{
    w->rank = y->rank;
    w->n = 2;
    for (int32_t d = 0; d < y->rank; d++) {
        w->dim[d] = y->dim[d];
        w->stride[0][d] = y->stride[d];
        w->stride[1][d] = x->stride[d];
    }
    etc_walk_collapse(w);
}

static void copy_same(const View *y, const View *x, const EtcWalk *w)
{
    EtcCopy g;
    memset(&g, 0, sizeof g);
    g.rank = w->rank;
    g.size = (int32_t)etc_dtype_size(y->dtype);
    for (int32_t d = 0; d < w->rank; d++) {
        g.dim[d] = w->dim[d];
        g.y[d] = w->stride[0][d];
        g.x[d] = w->stride[1][d];
    }
    etc_copy_nd(x->data, y->data, &g);
}

/* Converts elements through the kind that holds the source's values exactly.  No kind holds u64; if
 * the result is float, u64 is converted through the kind of the result. */
static void copy_cast(const EtcCall *c, const View *y, const View *x, EtcWalk *w)
{
    enum { CHUNK = 1024 };
    const EtcKind floats = etc_cast_kind(y->dtype);
    const int is_wide = (x->dtype == ETC_U64) &&
                        ((floats == ETC_KIND_F32) || (floats == ETC_KIND_F64));
    const EtcKind kind = (is_wide != 0) ? floats : etc_cast_kind(x->dtype);
    const int64_t y_size = (int64_t)etc_dtype_size(y->dtype);
    const int64_t x_size = (int64_t)etc_dtype_size(x->dtype);
    const int64_t n = w->dim[w->rank - 1];
    const int64_t sy = w->stride[0][w->rank - 1], sx = w->stride[1][w->rank - 1];
    do {
        for (int64_t i = 0; i < n; i += CHUNK) {
            const int64_t m = ((n - i) < CHUNK) ? (n - i) : CHUNK;
            const void *from = x->data + ((w->at[1] + (i * sx)) * x_size);
            void *to = y->data + ((w->at[0] + (i * sy)) * y_size);
            etc_put(kind, etc_fetch(kind, x->dtype, from, sx, m, c->scratch), y->dtype, to, sy, m);
        }
    } while (etc_walk_next(w));
}

/* Copies x to y over y's sizes; x's strides are for these sizes (0 if an axis is broadcast). */
static EtcStatus copy_views(const EtcCall *c, const View *y, const View *x)
{
    EtcWalk w;
    for (int32_t d = 0; d < y->rank; d++) {
        if (y->dim[d] == 0) {
            return ETC_OK;
        }
    }
    if ((y->data == x->data) && (y->dtype == x->dtype) &&
        (memcmp(y->stride, x->stride, sizeof y->stride) == 0)) {
        return ETC_OK;
    }
    if ((etc_dtype_size(y->dtype) == 0) || (etc_dtype_size(x->dtype) == 0)) {
        return ETC_UNSUPPORTED;
    }
    merge(y, x, &w);
    if (y->dtype == x->dtype) {
        copy_same(y, x, &w);
        return ETC_OK;
    }
    if ((etc_cast_kind(y->dtype) == ETC_KIND_NONE) || (etc_cast_kind(x->dtype) == ETC_KIND_NONE)) {
        return ETC_UNSUPPORTED;
    }
    copy_cast(c, y, x, &w);
    return ETC_OK;
}

/* Copies x to y, broadcast to y's sizes.  Returns ETC_BAD_ARG if they do not fit. */
static EtcStatus copy_spread(const EtcCall *c, EtcTensor *y, const EtcTensor *x)
{
    View from = view_of(x), to = view_of(y);
    const int32_t lead = y->rank - x->rank;
    if (lead < 0) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = y->rank - 1; d >= 0; d--) {
        const int64_t n = (d >= lead) ? x->dim[d - lead] : 1;
        if ((n != 1) && (n != y->dim[d])) {
            return ETC_BAD_ARG;
        }
        from.stride[d] = ((n == 1) && (y->dim[d] != 1)) ? 0
                         : (d >= lead)                  ? view_of(x).stride[d - lead]
                                                        : 0;
    }
    from.rank = y->rank;
    return copy_views(c, &to, &from);
}

/* -- casts and clones -------------------------------------------------------------------- */

/* Resizes argument `to` to the sizes of argument `from` and copies `from` into it, with the dtype
 * and memory order of `to`. */
static EtcStatus copy_args(const EtcCall *c, int32_t from, int32_t to)
{
    EtcTensor *x, *y;
    if (!etc_arg_tensor(c, from, &x) || !etc_arg_tensor(c, to, &y)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = etc_resize(y, x->dim, x->rank);
    return (st == ETC_OK) ? copy_spread(c, y, x) : st;
}

/* Arguments: x, memory_format, out. */
EtcStatus etc_clone(const EtcCall *c)
{
    return copy_args(c, 0, 2);
}

/* Arguments: x, out. */
EtcStatus etc_alias_copy(const EtcCall *c)
{
    return copy_args(c, 0, 1);
}

/* Arguments: x, non_blocking, memory_format, out. */
EtcStatus etc_to_copy(const EtcCall *c)
{
    return copy_args(c, 0, 3);
}

/* Arguments: x, non_blocking, dim_order, out.  The result has out's memory order, and dim_order
 * must be the same. */
EtcStatus etc_to_dim_order_copy(const EtcCall *c)
{
    EtcInts order;
    EtcTensor *y;
    if (!etc_arg_ints(c, 2, &order) || !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = 0; d < order.n; d++) {
        if ((order.n != y->rank) || (order.v[d] != ((y->order != NULL) ? y->order[d] : d))) {
            return ETC_BAD_ARG;
        }
    }
    return copy_args(c, 0, 3);
}

EtcStatus etc_clone_dim_order(const EtcCall *c)
{
    EtcTensor *x, *y;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 3, &y) || (x->dtype != y->dtype)) {
        return ETC_BAD_ARG;
    }
    return etc_to_dim_order_copy(c);
}

/* Arguments: self, src, non_blocking, out.  out becomes src, broadcast to self's sizes. */
EtcStatus etc_copy(const EtcCall *c)
{
    EtcTensor *self, *src, *y;
    if (!etc_arg_tensor(c, 0, &self) || !etc_arg_tensor(c, 1, &src) || !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = etc_resize(y, self->dim, self->rank);
    return (st == ETC_OK) ? copy_spread(c, y, src) : st;
}

/* Arguments: self, src, non_blocking.  The kernel writes self. */
EtcStatus etc_copy_in_place(const EtcCall *c)
{
    EtcTensor *self, *src;
    if (!etc_arg_tensor(c, 0, &self) || !etc_arg_tensor(c, 1, &src) || (self->is_const != 0)) {
        return ETC_BAD_ARG;
    }
    return copy_spread(c, self, src);
}

/* -- views ------------------------------------------------------------------------------- */

/* Resizes y to the given sizes and copies the elements of x to it in row-major order. */
static EtcStatus copy_bytes(const EtcTensor *x, EtcTensor *y)
{
    if (!etc_is_plain(x) || !etc_is_plain(y)) {
        return ETC_UNSUPPORTED;
    }
    if ((etc_numel(x) != 0) && (x->data != y->data)) {
        memmove(y->data, x->data, (size_t)etc_numel(x) * etc_dtype_size((int)x->dtype));
    }
    return ETC_OK;
}

static EtcStatus copy_flat(const EtcTensor *x, EtcTensor *y, const int64_t *dim, int32_t rank)
{
    EtcStatus st = etc_resize64(y, dim, rank);
    if ((st != ETC_OK) || (x->dtype != y->dtype) || (etc_numel(x) != etc_numel(y))) {
        return ETC_BAD_ARG;
    }
    return copy_bytes(x, y);
}

/* Arguments: x, dtype, out.  The last axis gets as many elements of that dtype as it has bytes
 * for. */
EtcStatus etc_view_copy_dtype(const EtcCall *c)
{
    EtcTensor *x, *y;
    int64_t dtype, dim[ETC_MAX_RANK];
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dtype) || !etc_arg_tensor(c, 2, &y) ||
        (dtype != (int64_t)y->dtype)) {
        return ETC_BAD_ARG;
    }
    int64_t from = (int64_t)etc_dtype_size((int)x->dtype);
    int64_t to = (int64_t)etc_dtype_size((int)y->dtype);
    for (int32_t d = 0; d < x->rank; d++) {
        dim[d] = x->dim[d];
    }
    if (from != to) {
        if ((x->rank == 0) || (((dim[x->rank - 1] * from) % to) != 0)) {
            return ETC_BAD_ARG;
        }
        dim[x->rank - 1] = dim[x->rank - 1] * from / to;
    }
    EtcStatus st = etc_resize64(y, dim, x->rank);
    return (st == ETC_OK) ? copy_bytes(x, y) : st;
}

/* Arguments: x, size with at most one -1, out. */
EtcStatus etc_view_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts size;
    int32_t open = -1;
    int64_t known = 1;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &size) || (size.n < 0) ||
        !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = 0; d < size.n; d++) {
        if ((size.v[d] < -1) || (size.v[d] > INT32_MAX) || ((size.v[d] == -1) && (open >= 0))) {
            return ETC_BAD_ARG;
        }
        if (size.v[d] == -1) {
            open = d;
        } else if ((size.v[d] != 0) && (known > (INT64_MAX / size.v[d]))) {
            return ETC_BAD_ARG;
        } else {
            known *= size.v[d];
        }
    }
    if (open >= 0) {
        if ((known == 0) || ((etc_numel(x) % known) != 0)) {
            return ETC_BAD_ARG;
        }
        size.v[open] = etc_numel(x) / known;
    }
    return copy_flat(x, y, size.v, size.n);
}

/* Arguments: x, dim, out. */
EtcStatus etc_unsqueeze_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    int64_t dim, size[ETC_MAX_RANK + 1];
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) || !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    int32_t at = etc_dim(dim, x->rank + 1);
    if (at < 0) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = 0; d <= x->rank; d++) {
        size[d] = (d == at) ? 1 : x->dim[(d < at) ? d : (d - 1)];
    }
    return copy_flat(x, y, size, x->rank + 1);
}

/* Arguments: x, dims, out.  Those of the dims that have size 1 are removed. */
EtcStatus etc_squeeze_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts dims;
    int64_t size[ETC_MAX_RANK];
    int32_t n = 0;
    uint32_t gone = 0;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &dims) || !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    for (int32_t i = 0; i < dims.n; i++) {
        int32_t d = etc_dim(dims.v[i], x->rank);
        if (d < 0) {
            return ETC_BAD_ARG;
        }
        gone |= 1u << d;
    }
    for (int32_t d = 0; d < x->rank; d++) {
        if ((x->dim[d] != 1) || ((gone & (1u << d)) == 0u)) {
            size[n++] = x->dim[d];
        }
    }
    return copy_flat(x, y, size, n);
}

/* -- strided looks ----------------------------------------------------------------------- */

/* Resizes y to the view's sizes and copies the view into it; the dtypes must be the same. */
static EtcStatus copy_view(const EtcCall *c, EtcTensor *y, const View *x)
{
    EtcStatus st = etc_resize64(y, x->dim, x->rank);
    if (st != ETC_OK) {
        return st;
    }
    if ((int)y->dtype != x->dtype) {
        return ETC_BAD_ARG;
    }
    View to = view_of(y);
    return copy_views(c, &to, x);
}

/* Arguments: x, dims, out. */
EtcStatus etc_permute_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts dims;
    uint32_t seen = 0;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &dims) || !etc_arg_tensor(c, 2, &y) ||
        (dims.n != x->rank)) {
        return ETC_BAD_ARG;
    }
    View v = view_of(x), p = v;
    for (int32_t i = 0; i < dims.n; i++) {
        int32_t d = etc_dim(dims.v[i], x->rank);
        if ((d < 0) || ((seen & (1u << d)) != 0u)) {
            return ETC_BAD_ARG;
        }
        seen |= 1u << d;
        p.dim[i] = v.dim[d];
        p.stride[i] = v.stride[d];
    }
    return copy_view(c, y, &p);
}

static EtcStatus transpose(const EtcCall *c, const EtcTensor *x, int32_t a, int32_t b, EtcTensor *y)
{
    View v = view_of(x), t = v;
    if (x->rank > 0) {
        t.dim[a] = v.dim[b];
        t.dim[b] = v.dim[a];
        t.stride[a] = v.stride[b];
        t.stride[b] = v.stride[a];
    }
    return copy_view(c, y, &t);
}

/* Arguments: x, dim0, dim1, out. */
EtcStatus etc_transpose_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    int64_t d0, d1;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &d0) || !etc_arg_int(c, 2, &d1) ||
        !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    int32_t a = etc_dim(d0, x->rank), b = etc_dim(d1, x->rank);
    return ((a < 0) || (b < 0)) ? ETC_BAD_ARG : transpose(c, x, a, b, y);
}

/* Arguments: x of rank 2 or less, out. */
EtcStatus etc_t_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_tensor(c, 1, &y) || (x->rank > 2)) {
        return ETC_BAD_ARG;
    }
    return transpose(c, x, 0, (x->rank == 2) ? 1 : 0, y);
}

/* Arguments: x, size, implicit, out.  A size of -1 keeps x's. */
EtcStatus etc_expand_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts size;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &size) || !etc_arg_tensor(c, 3, &y) ||
        (size.n < x->rank) || (x->dtype != y->dtype)) {
        return ETC_BAD_ARG;
    }
    for (int32_t d = 0; d < size.n; d++) {
        int32_t from = d - (size.n - x->rank);
        if ((size.v[d] == -1) && (from >= 0)) {
            size.v[d] = x->dim[from];
        }
    }
    EtcStatus st = etc_resize64(y, size.v, size.n);
    return (st == ETC_OK) ? copy_spread(c, y, x) : st;
}

/* Arguments: x, repeats, out.  repeats says how often x is repeated along each axis, new leading
 * axes included.  Each axis of the result is two axes of the walk: the number of the copy and the
 * position in it. */
EtcStatus etc_repeat(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts times;
    int64_t size[ETC_MAX_RANK];
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &times) || !etc_arg_tensor(c, 2, &y) ||
        (times.n < x->rank) || (x->dtype != y->dtype)) {
        return ETC_BAD_ARG;
    }
    const int32_t lead = times.n - x->rank;
    for (int32_t d = 0; d < times.n; d++) {
        const int64_t n = (d >= lead) ? x->dim[d - lead] : 1;
        if ((times.v[d] < 0) || (times.v[d] > INT32_MAX)) {
            return ETC_BAD_ARG;
        }
        size[d] = n * times.v[d];
    }
    EtcStatus st = etc_resize64(y, size, times.n);
    if ((st != ETC_OK) || ((2 * times.n) > ETC_MAX_RANK)) {
        return (st != ETC_OK) ? st : ETC_UNSUPPORTED;
    }
    const View all = view_of(y), one = view_of(x);
    View to = all, from = one;
    to.rank = from.rank = 2 * times.n;
    for (int32_t d = 0; d < times.n; d++) {
        const int64_t n = (d >= lead) ? one.dim[d - lead] : 1;
        to.dim[2 * d] = from.dim[2 * d] = times.v[d];
        to.stride[2 * d] = n * all.stride[d];
        from.stride[2 * d] = 0;
        to.dim[(2 * d) + 1] = from.dim[(2 * d) + 1] = n;
        to.stride[(2 * d) + 1] = all.stride[d];
        from.stride[(2 * d) + 1] = (d >= lead) ? one.stride[d - lead] : 0;
    }
    return copy_views(c, &to, &from);
}

/* Arguments: x, size, stride, offset or None, out.  The view must stay within x's elements. */
EtcStatus etc_as_strided_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts size, stride;
    int64_t last = 0;
    int is_given, is_empty = 0;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &size) || !etc_arg_ints(c, 2, &stride) ||
        !etc_arg_opt_int(c, 3, &last, &is_given) || !etc_arg_tensor(c, 4, &y) || (size.n < 0) ||
        (size.n != stride.n) || (last < 0) || (last > INT32_MAX)) {
        return ETC_BAD_ARG;
    }
    if (!etc_is_plain(x)) {
        return ETC_UNSUPPORTED;
    }
    View v = view_of(x);
    const int64_t first = last;
    v.rank = size.n;
    for (int32_t d = 0; d < size.n; d++) {
        if ((size.v[d] < 0) || (size.v[d] > INT32_MAX) || (stride.v[d] < 0) ||
            (stride.v[d] > INT32_MAX)) {
            return ETC_BAD_ARG;
        }
        v.dim[d] = size.v[d];
        v.stride[d] = stride.v[d];
        is_empty = is_empty || (size.v[d] == 0);
        if ((size.v[d] > 1) && __builtin_add_overflow(last, (size.v[d] - 1) * stride.v[d], &last)) {
            return ETC_BAD_ARG;
        }
    }
    if (!is_empty && (last >= etc_numel(x))) {
        return ETC_BAD_ARG;
    }
    view_advance(&v, is_empty ? 0 : first);
    return copy_view(c, y, &v);
}

/* Arguments: x, dim, start, end, step, out.  A negative start or end counts from the end; both are
 * clamped. */
EtcStatus etc_slice_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    int64_t dim, start = 0, end = INT64_MAX, step;
    int is_given;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) ||
        !etc_arg_opt_int(c, 2, &start, &is_given) || !etc_arg_opt_int(c, 3, &end, &is_given) ||
        !etc_arg_int(c, 4, &step) || !etc_arg_tensor(c, 5, &y) || (step < 1) || (x->rank == 0)) {
        return ETC_BAD_ARG;
    }
    int32_t d = etc_dim(dim, x->rank);
    if (d < 0) {
        return ETC_BAD_ARG;
    }
    View v = view_of(x);
    int64_t n = v.dim[d];
    start = (start < 0) ? etc_max_i64(start + n, 0) : etc_min_i64(start, n);
    end = (end < 0) ? (end + n) : etc_min_i64(end, n);
    end = etc_max_i64(end, start);
    v.dim[d] = ((end - start) / step) + ((((end - start) % step) != 0) ? 1 : 0);
    if (v.dim[d] > 0) {
        view_advance(&v, start * v.stride[d]);
        v.stride[d] *= (v.dim[d] > 1) ? step : 1;
    }
    return copy_view(c, y, &v);
}

/* Arguments: x, dim, index, out. */
EtcStatus etc_select_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    int64_t dim, index;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_int(c, 1, &dim) || !etc_arg_int(c, 2, &index) ||
        !etc_arg_tensor(c, 3, &y) || (x->rank == 0)) {
        return ETC_BAD_ARG;
    }
    int32_t d = etc_dim(dim, x->rank);
    if ((d < 0) || (index < -x->dim[d]) || (index >= x->dim[d])) {
        return ETC_BAD_ARG;
    }
    View v = view_of(x);
    view_advance(&v, ((index < 0) ? (index + v.dim[d]) : index) * v.stride[d]);
    for (int32_t i = d; i < (v.rank - 1); i++) {
        v.dim[i] = v.dim[i + 1];
        v.stride[i] = v.stride[i + 1];
    }
    v.rank--;
    return copy_view(c, y, &v);
}

/* -- cat ---------------------------------------------------------------------------------- */

/* Returns whether t is empty and of rank 1.  As in PyTorch, cat skips such a tensor. */
static int is_nothing(const EtcTensor *t)
{
    return (t->rank == 1) && (t->dim[0] == 0);
}

static int list_tensor(const EtcValue *list, int32_t i, EtcTensor **t)
{
    EtcCall one = {.arg = list->as.list.item, .n_args = list->as.list.n};
    return etc_arg_tensor(&one, i, t);
}

/* Sets the sizes of the result, and *at to the axis.  Returns 0 if the tensors do not fit
 * together. */
static int cat_shape(const EtcValue *list, int64_t dim, int32_t *at, EtcInts *size)
{
    int64_t total = 0;
    size->n = -1;
    for (int32_t i = 0; i < list->as.list.n; i++) {
        EtcTensor *t;
        if (!list_tensor(list, i, &t)) {
            return 0;
        }
        if (is_nothing(t)) {
            continue;
        }
        if (size->n < 0) {
            size->n = t->rank;
            *at = etc_dim(dim, t->rank);
            if ((t->rank == 0) || (*at < 0)) {
                return 0;
            }
            for (int32_t d = 0; d < t->rank; d++) {
                size->v[d] = t->dim[d];
            }
        }
        for (int32_t d = 0; d < t->rank; d++) {
            if ((t->rank != size->n) || ((d != *at) && (t->dim[d] != size->v[d]))) {
                return 0;
            }
        }
        total += t->dim[*at];
    }
    if (size->n < 0) {
        size->n = 1;
        *at = 0;
    }
    size->v[*at] = total;
    return list->as.list.n > 0;
}

/* Arguments: tensors, dim, out. */
EtcStatus etc_cat(const EtcCall *c)
{
    EtcTensor *y, *t;
    EtcInts size;
    int64_t dim, done = 0;
    int32_t at = 0;
    if (!etc_arg_int(c, 1, &dim) || !etc_arg_tensor(c, 2, &y) || (c->arg[0] == NULL) ||
        (c->arg[0]->tag != ETC_LIST_TENSOR) || !cat_shape(c->arg[0], dim, &at, &size)) {
        return ETC_BAD_ARG;
    }
    EtcStatus st = etc_resize64(y, size.v, size.n);
    for (int32_t i = 0; (st == ETC_OK) && (i < c->arg[0]->as.list.n); i++) {
        if (!list_tensor(c->arg[0], i, &t) || !etc_can_cast((int)t->dtype, (int)y->dtype)) {
            return ETC_BAD_ARG;
        }
        if (is_nothing(t)) {
            continue;
        }
        View to = view_of(y), from = view_of(t);
        view_advance(&to, done * to.stride[at]);
        to.dim[at] = t->dim[at];
        done += t->dim[at];
        st = copy_views(c, &to, &from);
    }
    return st;
}

/* Arguments: x, sizes, dim, outs.  The outs become consecutive parts of x along dim. */
EtcStatus etc_split_with_sizes_copy(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts size;
    int64_t dim, done = 0;
    const EtcValue *outs = (c->n_args > 3) ? c->arg[3] : NULL;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &size) || !etc_arg_int(c, 2, &dim) ||
        (outs == NULL) || (outs->tag != ETC_LIST_TENSOR) || (outs->as.list.n != size.n)) {
        return ETC_BAD_ARG;
    }
    int32_t d = etc_dim(dim, x->rank);
    EtcStatus st = ((d < 0) || (x->rank == 0)) ? ETC_BAD_ARG : ETC_OK;
    for (int32_t i = 0; (st == ETC_OK) && (i < size.n); i++) {
        View v = view_of(x);
        if (!list_tensor(outs, i, &y) || (size.v[i] < 0) || (size.v[i] > (v.dim[d] - done))) {
            return ETC_BAD_ARG;
        }
        v.dim[d] = size.v[i];
        if (size.v[i] > 0) {
            view_advance(&v, done * v.stride[d]);
        }
        done += size.v[i];
        st = copy_view(c, y, &v);
    }
    return ((st == ETC_OK) && (done != x->dim[d])) ? ETC_BAD_ARG : st;
}

/* -- pad and full ------------------------------------------------------------------------- */

static EtcStatus fill(const EtcCall *c, EtcTensor *y, const EtcScalar *s)
{
    const EtcKind kind = etc_cast_kind((int)y->dtype);
    if (kind == ETC_KIND_NONE) {
        return ETC_UNSUPPORTED;
    }
    float f = (float)s->d;
    const void *from = (kind == ETC_KIND_F32)   ? (const void *)&f
                       : (kind == ETC_KIND_F64) ? (const void *)&s->d
                                                : (const void *)&s->i;
    if (etc_numel(y) > 0) {
        etc_put(kind, from, (int)y->dtype, c->scratch, 1, 1);
        View to = view_of(y), one = to;
        one.data = (unsigned char *)c->scratch;
        memset(one.stride, 0, sizeof one.stride);
        return copy_views(c, &to, &one);
    }
    return ETC_OK;
}

/* If y holds bools, sets s->i to whether the number is not 0. */
static void to_bool(const EtcTensor *y, EtcScalar *s)
{
    if (y->dtype == ETC_BOOL) {
        s->i = s->d != 0.0;
    }
}

/* Arguments: size, value, out. */
EtcStatus etc_full(const EtcCall *c)
{
    EtcInts size;
    EtcScalar s;
    EtcTensor *y;
    if (!etc_arg_ints(c, 0, &size) || (size.n < 0) || !etc_arg_scalar(c, 1, &s) ||
        !etc_arg_tensor(c, 2, &y)) {
        return ETC_BAD_ARG;
    }
    to_bool(y, &s);
    EtcStatus st = etc_resize64(y, size.v, size.n);
    return (st == ETC_OK) ? fill(c, y, &s) : st;
}

/* Arguments: value, out. */
EtcStatus etc_scalar_tensor(const EtcCall *c)
{
    EtcScalar s;
    EtcTensor *y;
    if (!etc_arg_scalar(c, 0, &s) || !etc_arg_tensor(c, 1, &y)) {
        return ETC_BAD_ARG;
    }
    to_bool(y, &s);
    EtcStatus st = etc_resize64(y, NULL, 0);
    return (st == ETC_OK) ? fill(c, y, &s) : st;
}

/* Arguments: x, value, memory_format, out. */
EtcStatus etc_full_like(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcScalar s;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_scalar(c, 1, &s) || !etc_arg_tensor(c, 3, &y)) {
        return ETC_BAD_ARG;
    }
    to_bool(y, &s);
    EtcStatus st = etc_resize(y, x->dim, x->rank);
    return (st == ETC_OK) ? fill(c, y, &s) : st;
}

/* Arguments: x, pad (last dimension first: before, after), value, out.  A negative pad cuts. */
EtcStatus etc_constant_pad_nd(const EtcCall *c)
{
    EtcTensor *x, *y;
    EtcInts pad;
    EtcScalar s;
    if (!etc_arg_tensor(c, 0, &x) || !etc_arg_ints(c, 1, &pad) || (pad.n < 0) ||
        ((pad.n % 2) != 0) || ((pad.n / 2) > x->rank) || !etc_arg_scalar(c, 2, &s) ||
        !etc_arg_tensor(c, 3, &y) || (x->dtype != y->dtype)) {
        return ETC_BAD_ARG;
    }
    View from = view_of(x);
    int64_t size[ETC_MAX_RANK], skip[ETC_MAX_RANK];
    for (int32_t d = 0; d < x->rank; d++) {
        int32_t i = 2 * (x->rank - 1 - d);
        int64_t before = (i < pad.n) ? pad.v[i] : 0, after = (i < pad.n) ? pad.v[i + 1] : 0;
        if ((before > INT32_MAX) || (before < -INT32_MAX) || (after > INT32_MAX) ||
            (after < -INT32_MAX)) {
            return ETC_BAD_ARG;
        }
        size[d] = from.dim[d] + before + after;
        skip[d] = etc_max_i64(before, 0);
        int64_t cut = etc_max_i64(-before, 0);
        from.dim[d] = etc_max_i64(from.dim[d] - cut - etc_max_i64(-after, 0), 0);
        if (from.dim[d] > 0) {
            view_advance(&from, cut * from.stride[d]);
        }
    }
    to_bool(y, &s);
    EtcStatus st = etc_resize64(y, size, x->rank);
    st = (st == ETC_OK) ? fill(c, y, &s) : st;
    if ((st != ETC_OK) || (etc_numel(y) == 0)) {
        return st;
    }
    View to = view_of(y);
    for (int32_t d = 0; d < x->rank; d++) {
        view_advance(&to, skip[d] * to.stride[d]);
        to.dim[d] = from.dim[d];
    }
    return copy_views(c, &to, &from);
}
