/* xnn_cache.c -- the weights that the library has packed, shared by the delegates of a program.
 * The library finds them by their address and a weak checksum of the node's parameters.
 * xnn_pack.c decides which nodes may share. */
#include "runtime-lite/delegates/xnn_host.h"

#include <stdlib.h>
#include <string.h>

enum { PACKED_ALIGN = 64, FIRST_BLOCK = 64 << 10, HUGE_PAGE = 2 << 20, LARGE = HUGE_PAGE / 2 };

static XnnPacked **list_of(XnnCache *c, const struct xnn_weights_cache_look_up_key *key)
{
    return &c->packed[((uintptr_t)key->kernel / 64 ^ key->seed) % XNN_PACKED_LISTS];
}

static size_t find(XnnCache *c, const struct xnn_weights_cache_look_up_key *key)
{
    const XnnPacked *first = c->is_sharing ? *list_of(c, key) : NULL;
    for (const XnnPacked *p = first; p != NULL; p = p->next) {
        if ((p->key.seed == key->seed) && (p->key.kernel == key->kernel) &&
            (p->key.bias == key->bias)) {
            return p->number;
        }
    }
    return SIZE_MAX;
}

static size_t look_up(void *context, const struct xnn_weights_cache_look_up_key *key)
{
    XnnCache *c = context;
    pthread_mutex_lock(&c->lock);
    const size_t found = find(c, key);
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* Makes a block for at least n bytes, in large pages if it fills half of one.  The memory of a
 * small block is mapped at once, because the first touch of a page costs more than packing its
 * weights. */
static XnnBlock *block_new(XnnCache *c, size_t n)
{
    XnnBlock *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return NULL;
    }
    b->n_bytes = (n > FIRST_BLOCK) ? n : FIRST_BLOCK;
    if (b->n_bytes >= LARGE) {
        b->n_bytes = (b->n_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    }
    b->data = etc_xnn_allocate(PACKED_ALIGN, b->n_bytes);
    if (b->data == NULL) {
        free(b);
        return NULL;
    }
    if (b->n_bytes < LARGE) {
        etc_xnn_will_write(b->data, b->n_bytes);
    }
    b->next = c->blocks;
    c->blocks = b;
    return b;
}

/* A graph's packed weights take as many bytes as its filters and biases, and some more for whole
 * tiles. */
void etc_xnn_cache_expect(XnnCache *c, uint64_t n)
{
    const XnnBlock *b = c->blocks;
    if ((n > 0) && (n < SIZE_MAX / 4) && ((b == NULL) || (n > b->n_bytes - b->used))) {
        (void)block_new(c, (size_t)(n + n / 8)); /* if this fails, each node allocates its own */
    }
}

/* Returns memory that lives as long as the host. */
static void *packed_memory(XnnCache *c, size_t n)
{
    XnnBlock *b = c->blocks;
    if (n > SIZE_MAX / 4) {
        return NULL;
    }
    n = (n + XNN_READS_PAST + PACKED_ALIGN - 1) / PACKED_ALIGN * PACKED_ALIGN;
    if ((b == NULL) || (n > b->n_bytes - b->used)) {
        const size_t more = (b == NULL) ? 0 : b->n_bytes / 4;
        b = block_new(c, (n > more) ? n : more);
    }
    if (b == NULL) {
        return NULL;
    }
    b->used += n;
    return b->data + b->used - n;
}

static void *reserve(XnnCache *c, size_t n)
{
    const size_t k = c->n_packed;
    XnnPacked **at = (k & (k - 1)) ? c->at : realloc(c->at, (k ? 2 * k : 1) * sizeof *at);
    XnnPacked *p = calloc(1, sizeof *p);
    c->at = at ? at : c->at;
    if ((at != NULL) && (p != NULL)) {
        p->data = packed_memory(c, n);
    }
    if ((at == NULL) || (p == NULL) || (p->data == NULL)) {
        free(p);
        return NULL;
    }
    p->number = k;
    c->n_bytes += n;
    c->at[c->n_packed++] = p;
    return p->data;
}

/* Returns memory for packed weights, which the library then passes to look_up_or_insert. */
static void *reserve_space(void *context, size_t n)
{
    XnnCache *c = context;
    pthread_mutex_lock(&c->lock);
    void *p = reserve(c, n);
    pthread_mutex_unlock(&c->lock);
    return p;
}

/* Finds the weights for which memory was reserved.  Only other threads can have reserved memory
 * since then, so they are among the last. */
static XnnPacked *reserved(const XnnCache *c, const void *data)
{
    for (size_t i = c->n_packed; i-- > 0;) {
        if (c->at[i]->data == data) {
            return c->at[i];
        }
    }
    return NULL;
}

static void enter(XnnCache *c, XnnPacked *p, const struct xnn_weights_cache_look_up_key *key)
{
    XnnPacked **list = list_of(c, key);
    p->key = *key;
    p->next = *list;
    *list = p;
}

void *etc_xnn_cache_add(XnnCache *c, const struct xnn_weights_cache_look_up_key *key, size_t n)
{
    pthread_mutex_lock(&c->lock);
    void *p = reserve(c, n);
    if (p != NULL) {
        enter(c, c->at[c->n_packed - 1], key);
    }
    pthread_mutex_unlock(&c->lock);
    return p;
}

/* The library also calls this, without data, for weights that it has found.  Some operators look
 * for their weights only here. */
static size_t look_up_or_insert(void *context, const struct xnn_weights_cache_look_up_key *key,
                                void *data, size_t n)
{
    XnnCache *c = context;
    (void)n;
    pthread_mutex_lock(&c->lock);
    size_t number = find(c, key);
    XnnPacked *p = (number == SIZE_MAX) ? reserved(c, data) : NULL;
    if (p != NULL) {
        number = p->number;
    }
    if ((p != NULL) && c->is_sharing) {
        enter(c, p, key);
    }
    pthread_mutex_unlock(&c->lock);
    return number;
}

static bool is_finalized(void *context)
{
    return !((const XnnCache *)context)->is_packing;
}

static void *offset_to_addr(void *context, size_t offset)
{
    XnnCache *c = context;
    pthread_mutex_lock(&c->lock);
    void *data = (offset < c->n_packed) ? c->at[offset]->data : NULL;
    pthread_mutex_unlock(&c->lock);
    return data;
}

static enum xnn_status delete_cache(void *context)
{
    (void)context;
    return xnn_status_success;
}

int etc_xnn_cache_start(XnnCache *c)
{
    const struct xnn_weights_cache_provider provider = {
        c, look_up, reserve_space, look_up_or_insert, is_finalized, offset_to_addr, delete_cache};
    c->provider = provider;
    return pthread_mutex_init(&c->lock, NULL) == 0;
}

void etc_xnn_cache_free(XnnCache *c)
{
    for (size_t i = 0; i < c->n_packed; i++) {
        free(c->at[i]);
    }
    free(c->at);
    while (c->blocks != NULL) {
        XnnBlock *b = c->blocks;
        c->blocks = b->next;
        free(b->data);
        free(b);
    }
    pthread_mutex_destroy(&c->lock);
}
