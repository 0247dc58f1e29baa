/* kernels.c -- the table of kernels, and what loader and kernels share about tensors. */
#include "runtime-lite/kernels/kernels.h"

#include <string.h>

static const EtcKernelRow rows[] = {
#define KERNEL(name, function, n_args) {(name), etc_##function, (n_args)},
#include "runtime-lite/kernels/kernels.def"
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

const EtcKernelRow *etc_kernel_at(int32_t i)
{
    return ((i >= 0) && (i < (int32_t)N_ROWS)) ? &rows[i] : NULL;
}

/* Order of name + "." + overload, or name alone, against a row's key. */
static int compare(const char *name, const char *overload, const char *key)
{
    size_t n = strlen(name);
    int order = strncmp(name, key, n);
    if ((order != 0) || (overload[0] == '\0')) {
        return (order != 0) ? order : -(key[n] != '\0');
    }
    return (key[n] != '.') ? '.' - key[n] : strcmp(overload, key + n + 1);
}

const EtcKernelRow *etc_kernel_find(const char *name, const char *overload)
{
    int32_t low = 0, high = (int32_t)N_ROWS;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = compare(name, overload, rows[middle].name);
        if (order == 0) {
            return &rows[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

size_t etc_dtype_size(int dtype)
{
    switch (dtype) {
#define X(id, code, size, name) \
    case (code):                \
        return (size);
        ETC_DTYPES(X)
#undef X
    default:
        return 0;
    }
}

int64_t etc_numel(const EtcTensor *t)
{
    int64_t n = 1;
    for (int32_t i = 0; i < t->rank; i++) {
        n *= t->dim[i];
    }
    return n;
}

/* A product of any of the sizes may be needed, so a size of 0 does not hide a large one. */
static int fits(const EtcTensor *t, const int32_t *dim)
{
    uint64_t most = etc_dtype_size((int)t->dtype), bytes = most;
    for (int32_t i = 0; i < t->rank; i++) {
        uint64_t d = (dim[i] > 0) ? (uint64_t)dim[i] : 1;
        if ((dim[i] < 0) || (most > (uint64_t)INT64_MAX / d)) {
            return 0;
        }
        most *= d;
        bytes *= (uint64_t)dim[i];
    }
    return bytes <= (uint64_t)t->capacity;
}

EtcStatus etc_resize(EtcTensor *t, const int32_t *dim, int32_t rank)
{
    if (t->is_const || (rank != t->rank) || !fits(t, dim)) {
        return ETC_BAD_ARG;
    }
    for (int32_t i = 0; i < rank; i++) {
        if (t->is_static && (t->dim[i] != dim[i])) {
            return ETC_BAD_ARG;
        }
    }
    if (!t->is_static) {
        memmove(t->dim, dim, (size_t)rank * sizeof *dim);
    }
    return ETC_OK;
}

EtcStatus etc_none(const EtcCall *c)
{
    (void)c;
    return ETC_UNSUPPORTED;
}
