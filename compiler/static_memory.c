/* static_memory.c -- malloc of etc-static, which replaces the one of its C library.
 *
 * The C library gives freed pages back to the system, and asks for them again.  In a small model,
 * new pages cost more than all work on their contents.  So this malloc keeps freed memory: it has a
 * list of free slots for each size, with four sizes from one power of two to the next.  Slots are
 * never split or merged, because arenas ask for few sizes.  Large memory is mapped by itself and
 * given back. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, LARGE = 16 * MIB, LEAST = 64, N_LISTS = 4 * 20 };

/* It lies before each piece that is handed out. */
typedef struct Head {
    char *slot;
    size_t size; /* the bytes of the slot */
} Head;

_Static_assert(sizeof(Head) == 16, "pieces are aligned to 16 bytes");

typedef struct Free { /* the first bytes of a slot that was freed */
    struct Free *next;
} Free;

static struct {
    atomic_flag is_taken;
    char *unused, *end; /* the unused part of the memory that was mapped last */
    Free *freed[N_LISTS];
} heap = {.is_taken = ATOMIC_FLAG_INIT};

static void take(void)
{
    while (atomic_flag_test_and_set_explicit(&heap.is_taken, memory_order_acquire))
        sched_yield();
}

static void give(void)
{
    atomic_flag_clear_explicit(&heap.is_taken, memory_order_release);
}

/* Rounds `size` up to that of a slot and returns its list. */
static int list_of(size_t *size)
{
    size_t n = *size < LEAST ? LEAST : *size;
    int power = 63 - __builtin_clzll(n);
    size_t step = (size_t)1 << (power - 2);
    *size = (n + step - 1) / step * step;
    return 4 * (power - 6) + (int)((*size - ((size_t)1 << power)) / step);
}

static char *map(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Returns memory that was never used.  If the rest of the last mapping is too small, it is lost. */
static char *unused(size_t size)
{
    if (size > (size_t)(heap.end - heap.unused)) {
        size_t more = size > MIB ? size : MIB;
        char *at = map(more);
        if (!at)
            return NULL;
        heap.unused = at;
        heap.end = at + more;
    }
    char *slot = heap.unused;
    heap.unused += size;
    return slot;
}

static char *slot_for(size_t *size)
{
    if (*size >= LARGE)
        return map(*size);
    const int list = list_of(size);
    take();
    Free *freed = heap.freed[list];
    if (freed)
        heap.freed[list] = freed->next;
    char *slot = freed ? (char *)freed : unused(*size);
    give();
    return slot;
}

void *aligned_alloc(size_t align, size_t n)
{
    size_t size = n + align + sizeof(Head);
    char *slot = n < SIZE_MAX / 2 && align < SIZE_MAX / 4 ? slot_for(&size) : NULL;
    if (!slot) {
        errno = ENOMEM;
        return NULL;
    }
    char *piece = slot + sizeof(Head);
    piece += -(uintptr_t)piece & (align - 1);
    ((Head *)(void *)piece)[-1] = (Head){.slot = slot, .size = size};
    return piece;
}

void *malloc(size_t n)
{
    return aligned_alloc(sizeof(Head), n);
}

void free(void *piece)
{
    if (!piece)
        return;
    Head h = ((Head *)piece)[-1];
    if (h.size >= LARGE) {
        munmap(h.slot, h.size);
        return;
    }
    const int list = list_of(&h.size);
    take();
    Free *freed = (void *)h.slot;
    freed->next = heap.freed[list];
    heap.freed[list] = freed;
    give();
}

void *calloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        bytes = SIZE_MAX;
    /* This is not malloc, because compilers turn malloc with memset into a call of calloc. */
    void *piece = aligned_alloc(sizeof(Head), bytes);
    return piece ? memset(piece, 0, bytes) : NULL;
}

void *realloc(void *piece, size_t n)
{
    if (!piece)
        return malloc(n);
    const Head h = ((Head *)piece)[-1];
    const size_t room = h.size - (size_t)((char *)piece - h.slot);
    if (n <= room)
        return piece;
    void *more = malloc(n);
    if (more) {
        memcpy(more, piece, room);
        free(piece);
    }
    return more;
}
