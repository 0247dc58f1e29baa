/* xnn_memory.c -- memory for the library.  What is large lies in pages of 2 MiB where the system
 * has them: packed weights are written once, and then the first touch of each page of 4 KiB takes
 * longer than the packing. */
#include "runtime-lite/delegates/xnn_graph.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20, LARGE = 1 << 20 };

void *etc_xnn_allocate(size_t align, size_t n)
{
    void *p = NULL;
    const int is_large = (n >= LARGE) && (n <= SIZE_MAX - HUGE_PAGE);
    if (is_large) {
        align = HUGE_PAGE;
        n = (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    }
    if (align <= sizeof(void *)) {
        return malloc(n);
    }
    if (posix_memalign(&p, align, n) != 0) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (is_large) {
        (void)madvise(p, n, MADV_HUGEPAGE); /* a wish */
    }
#endif
    return p;
}
