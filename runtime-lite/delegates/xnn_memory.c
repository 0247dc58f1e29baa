/* xnn_memory.c -- memory for the library.  Large blocks lie in pages of 2 MiB if the system has
 * them: packed weights are written once, and the first touch of each page of 4 KiB would take
 * longer than the packing. */
#include "runtime-lite/delegates/xnn_graph.h"

#include <stdlib.h>
#include <sys/mman.h>

/* From LARGE on, a page of HUGE_PAGE costs less than small ones. */
enum { HUGE_PAGE = 2 << 20, LARGE = 640 << 10, PAGE = 4 << 10 };

/* The system may ignore both hints. */
void etc_xnn_will_write(void *data, size_t n)
{
#ifdef MADV_POPULATE_WRITE
    const uintptr_t from = (uintptr_t)data / PAGE * PAGE;
    (void)madvise((void *)from, (uintptr_t)data + n - from, MADV_POPULATE_WRITE);
#else
    (void)data;
    (void)n;
#endif
}

void etc_xnn_will_read(const void *data, size_t n)
{
#ifdef MADV_POPULATE_READ
    const uintptr_t from = (uintptr_t)data / PAGE * PAGE;
    (void)madvise((void *)from, (uintptr_t)data + n - from, MADV_POPULATE_READ);
#else
    (void)data;
    (void)n;
#endif
}

void *etc_xnn_allocate(size_t align, size_t n)
{
    void *p = NULL;
    const int is_large = (n >= LARGE) && (n <= SIZE_MAX - HUGE_PAGE);
    const size_t large = is_large ? (n + HUGE_PAGE - LARGE) / HUGE_PAGE * HUGE_PAGE : 0;
    if (is_large) {
        align = HUGE_PAGE;
        n = (large > n) ? large : n;
    }
    if (align <= sizeof(void *)) {
        return malloc(n);
    }
    if (posix_memalign(&p, align, n) != 0) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (is_large) {
        (void)madvise(p, large, MADV_HUGEPAGE); /* the system may ignore it */
    }
#endif
    return p;
}
