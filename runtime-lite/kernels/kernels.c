/* kernels.c -- the table of kernels, and functions that kernels use. */
#include "runtime-lite/kernels/kernels.h"

enum { SELF = -1 };

static const EtcKernelRow rows[] = {
#define KERNEL(name, function, n_args, n_outs, inplace)                             \
    {name, etc_##function, n_args, (n_outs == SELF) ? 0 : ((n_args) - (n_outs)),     \
     (n_outs == SELF) ? 1 : (n_outs), inplace},
#include "runtime-lite/kernels/kernels.def"
    {NULL, NULL, 0, 0, 0, 0}, /* a build may have no kernels */
};

enum { N_ROWS = (int)(sizeof rows / sizeof rows[0]) - 1 };

const EtcKernelRow *etc_kernel_at(int32_t i)
{
    return ((i >= 0) && (i < N_ROWS)) ? &rows[i] : NULL;
}

int etc_compare_text(const char *a, const char *b)
{
    while ((*a != '\0') && (*a == *b)) {
        a++;
        b++;
    }
    return (int)(unsigned char)*a - (int)(unsigned char)*b;
}

/* Compares "name.overload", or "name" if the overload is empty, with a key, as etc_compare_text
 * does. */
static int compare(const char *name, const char *overload, const char *key)
{
    while ((*name != '\0') && (*name == *key)) {
        name++;
        key++;
    }
    if ((*name != '\0') || (*overload == '\0')) {
        return (int)(unsigned char)*name - (int)(unsigned char)*key;
    }
    if (*key != '.') {
        return (int)'.' - (int)(unsigned char)*key;
    }
    return etc_compare_text(overload, key + 1);
}

const EtcKernelRow *etc_kernel_find(const char *name, const char *overload)
{
    int32_t lo = 0, hi = N_ROWS;
    while (lo < hi) {
        int32_t mid = (lo + hi) / 2;
        int order = compare(name, overload, rows[mid].name);
        if (order == 0) {
            return &rows[mid];
        }
        if (order < 0) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return NULL;
}

const EtcKernelRow *etc_kernel_among(const EtcKernelRow *list, int32_t n, const char *name,
                                     const char *overload)
{
    for (int32_t i = 0; i < n; i++) {
        if ((list[i].name != NULL) && (compare(name, overload, list[i].name) == 0)) {
            return &list[i];
        }
    }
    return NULL;
}

size_t etc_dtype_size(int dtype)
{
    switch (dtype) {
#define X(id, code, size, name) \
    case ETC_##id:              \
        return size;
        ETC_DTYPES(X)
#undef X
    default:
        return 0;
    }
}

/* Returns n times d, or INT64_MAX if the product is larger. */
static int64_t times(int64_t n, int32_t d)
{
    uint64_t product;
    int is_past = __builtin_mul_overflow((uint64_t)n, (uint64_t)d, &product);
    return (is_past || (product > INT64_MAX)) ? INT64_MAX : (int64_t)product;
}

int64_t etc_numel(const EtcTensor *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == 0) {
            return 0;
        }
        n = times(n, t->dim[i]);
    }
    return n;
}

int64_t etc_bytes(EtcDtype dtype, const int32_t *dim, int32_t rank)
{
    int64_t most = (int64_t)etc_dtype_size((int)dtype), bytes = most;
    for (int32_t i = 0; i < rank; i++) {
        most = times(most, (dim[i] > 0) ? dim[i] : 1);
        bytes = (dim[i] == 0) ? 0 : times(bytes, dim[i]);
        if ((dim[i] < 0) || (most == INT64_MAX)) {
            return -1;
        }
    }
    return bytes;
}

static int fits(const EtcTensor *t, const int32_t *dim)
{
    int64_t bytes = etc_bytes(t->dtype, dim, t->rank);
    return (bytes >= 0) && (bytes <= t->capacity);
}

EtcStatus etc_resize(EtcTensor *t, const int32_t *dim, int32_t rank)
{
    int is_same = rank == t->rank;
    for (int32_t i = 0; is_same && (i < rank); i++) {
        is_same = dim[i] == t->dim[i];
    }
    if (t->is_const != 0) {
        return ETC_BAD_ARG;
    }
    if (is_same) {
        return ETC_OK;
    }
    if ((rank != t->rank) || (t->is_static != 0) || !fits(t, dim)) {
        return ETC_BAD_ARG;
    }
    for (int32_t i = 0; i < rank; i++) {
        t->dim[i] = dim[i];
    }
    return ETC_OK;
}

EtcStatus etc_none(const EtcCall *c)
{
    (void)c;
    return ETC_UNSUPPORTED;
}
