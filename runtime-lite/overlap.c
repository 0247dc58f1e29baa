/* overlap.c -- checks that the results of a call overlap nothing else that it is given.
 *
 * The file decides where tensors lie, and a kernel whose result covers an argument would read
 * its own output.  So every call is checked twice: at load, with the upper bounds of sizes and
 * the planned places; and before it runs, because et_view, moves and inputs that are not planned
 * bring tensors to other places. */
#include "runtime-lite/internal.h"

/* Returns the number of tensors of an argument: 1, the number of items of a list, or 0. */
static int32_t n_items(const EtcValue *v)
{
    int is_list = (v->tag == ETC_LIST_TENSOR) || (v->tag == ETC_LIST_OPT_TENSOR);
    return (v->tag == ETC_TENSOR) ? 1 : (is_list ? v->as.list.n : 0);
}

static const EtcTensor *item_of(const EtcValue *v, int32_t i)
{
    v = (v->tag == ETC_TENSOR) ? v : v->as.list.item[i];
    return (v->tag == ETC_TENSOR) ? v->as.tensor : NULL;
}

/* Returns whether x and y share bytes.  A tensor that is read counts by its sizes; one that is
 * written counts by all of its memory, as it takes its sizes later. */
static int overlaps(const EtcTensor *x, const EtcTensor *y)
{
    uint64_t x_at = (uintptr_t)x->data, y_at = (uintptr_t)y->data;
    int64_t bytes = etc_tensor_bytes(x);
    uint64_t n = (uint64_t)(((bytes >= 0) && (bytes < x->capacity)) ? bytes : x->capacity);
    return (n > 0) && (x_at < y_at + (uint64_t)y->capacity) && (y_at < x_at + n);
}

int etc_same_order(const EtcTensor *x, const EtcTensor *y)
{
    if (x->rank != y->rank) {
        return (x->order == NULL) && (y->order == NULL);
    }
    for (int32_t d = 0; d < x->rank; d++) {
        if ((x->order ? x->order[d] : d) != (y->order ? y->order[d] : d)) {
            return 0;
        }
    }
    return 1;
}

/* Returns whether the elements of x and y correspond and lie at the same bytes.  Their sizes may
 * differ, as those of a view do.  At a call, sizes of y that may change are those of the call
 * before; the kernel gives y as many elements as x has, or refuses. */
static int lies_alike(const EtcTensor *x, const EtcTensor *y, int at_load)
{
    int is_known = at_load || y->is_static;
    return (x->data == y->data) && etc_same_order(x, y) &&
           (etc_dtype_size((int)x->dtype) == etc_dtype_size((int)y->dtype)) &&
           (!is_known || (etc_tensor_bytes(x) == etc_tensor_bytes(y)));
}

/* Compares result y, item `item` of argument k, with the tensors of argument i. */
static const char *compare(const EtcCall *c, const EtcKernelRow *row, int32_t k, int32_t item,
                           int32_t i, int at_load)
{
    const EtcTensor *y = item_of(c->arg[k], item);
    int is_out = (i >= row->first_out) && (i < row->first_out + row->n_outs);
    int may_cover = (k == row->first_out) && (i < 32) && ((row->inplace >> i) & 1u);
    for (int32_t n = n_items(c->arg[i]); n-- > 0;) {
        const EtcTensor *x = item_of(c->arg[i], n);
        if ((x == NULL) || ((i == k) && (n == item)) || !overlaps(x, y)) {
            continue;
        }
        if (is_out) {
            return ETC_TEXT("two results of an operator share memory");
        }
        if (!may_cover || !lies_alike(x, y, at_load)) {
            return ETC_TEXT("result lies over an argument that the operator reads");
        }
    }
    return NULL;
}

const char *etc_find_overlap(const EtcCall *c, const EtcKernelRow *row, int at_load)
{
    const char *what = NULL;
    for (int32_t k = row->first_out; k < row->first_out + row->n_outs; k++) {
        int32_t n = n_items(c->arg[k]);
        if (n > ETC_MAX_RANK) { /* no kernel takes as many, and pairs of them are compared */
            return ETC_TEXT("more than 16 results in a list");
        }
        for (int32_t item = 0; item < n; item++) {
            const EtcTensor *y = item_of(c->arg[k], item);
            if ((y != NULL) && y->is_const) {
                return ETC_TEXT("operator writes to a constant or to an input of the caller");
            }
            for (int32_t i = 0; (y != NULL) && (what == NULL) && (i < row->n_args); i++) {
                what = compare(c, row, k, item, i, at_load);
            }
        }
    }
    return what;
}
