/* xnn_host.h -- shared by the files that see the library: xnnpack.c (loading, running),
 * xnn_define.c (graph to library), xnn_pack.c and xnn_dense.c (weights ahead of their graph),
 * xnn_cache.c (packed weights). */
#ifndef ETC_DELEGATES_XNN_HOST_H
#define ETC_DELEGATES_XNN_HOST_H

#include "runtime-lite/delegates/xnn_graph.h"
#include "runtime-lite/delegates/xnnpack.h"

#include <pthread.h>

#include <pthreadpool.h>
#include <xnnpack.h>

typedef struct XnnUse { /* everything that the packing of a filter depends on */
    uint32_t kind, flags, field[XNN_FIELDS], type[4], bias, group, is_set;
    uint32_t rank;
    size_t dim[XNN_RANK];
    float scale[3];
    int32_t zero[3];
    const void *scales;
} XnnUse;

typedef struct XnnCopy { /* a constant at the very end of the file */
    struct XnnCopy *next;
    const uint8_t *of;
    uint64_t n_bytes;
    uint8_t *data;
} XnnCopy;

/* -- packed weights, by the address of what was packed -------------------------------------- */

enum { XNN_PACKED_LISTS = 1024 };

typedef struct XnnPacked { /* weights as the library packed them */
    struct XnnPacked *next;
    struct xnn_weights_cache_look_up_key key;
    void *data;
    size_t number; /* in `at` */
} XnnPacked;

typedef struct XnnBlock { /* memory for packed weights */
    struct XnnBlock *next;
    uint8_t *data;
    size_t n_bytes, used;
} XnnBlock;

typedef struct XnnCache {
    struct xnn_weights_cache_provider provider;
    pthread_mutex_t lock; /* guards all fields below while threads pack */
    XnnPacked *packed[XNN_PACKED_LISTS];
    XnnPacked **at; /* all packed weights; the library's offsets are indices here */
    size_t n_packed;
    XnnBlock *blocks; /* the current one first */
    uint64_t n_bytes;
    uint8_t is_packing; /* else packed weights are only read */
    uint8_t is_sharing; /* while packing: by key, with others */
} XnnCache;

int etc_xnn_cache_start(XnnCache *c);
void etc_xnn_cache_expect(XnnCache *c, uint64_t n); /* about so many bytes come next */
/* Returns memory for weights with that key, which the caller packs; NULL: there is none. */
void *etc_xnn_cache_add(XnnCache *c, const struct xnn_weights_cache_look_up_key *key, size_t n);
void etc_xnn_cache_free(XnnCache *c);

/* -- graph to library ------------------------------------------------------------------------- */

typedef struct XnnDense { /* how the library packs dense f32 filters of more than one point */
    uint32_t tile;        /* outputs side by side; 0: in another way, or not known */
    uint32_t seed;        /* the part of its keys that does not depend on sizes */
    uint8_t is_known;
} XnnDense;

struct EtcXnnpack {
    const uint8_t *file; /* the file of the program that uses it; NULL: none yet */
    size_t file_bytes;
    XnnNames names;
    uint32_t *first; /* by row of names: the first row with the same address */
    XnnUse *use;     /* by row of names, for such first rows */
    XnnCopy *copies;
    XnnCache cache;
    XnnDense dense;
    xnn_workspace_t workspace;
    pthreadpool_t pool; /* NULL: the caller's thread alone */
    uint32_t n_threads;
    uint8_t is_profiling;
};

typedef struct XnnDraft { /* a subgraph while it is built */
    EtcXnnpack *host;
    const XnnGraph *graph;
    xnn_subgraph_t subgraph;
    uint32_t *id; /* the library's, by place */
} XnnDraft;

/* v is the graph's value at that place, or one like it. */
enum xnn_status etc_xnn_define_value(const XnnDraft *d, uint32_t place, const XnnValue *v);
enum xnn_status etc_xnn_define_node(const XnnDraft *d, uint32_t i);

/* Returns the bytes of a constant as the library may read them.  NULL: there is no memory. */
const void *etc_xnn_readable(EtcXnnpack *x, const XnnValue *v);

/* The first learns the layout for these nodes.  The second packs a node's filter, if it can;
 * several threads may call it. */
void etc_xnn_dense_learn(EtcXnnpack *x, const XnnGraph *g, const uint32_t *node, uint32_t n_nodes);
int etc_xnn_dense_pack(EtcXnnpack *x, const XnnGraph *g, const XnnNode *n);

/* Packs a graph's weights by all threads, before it is built.  Whether they are shared. */
int etc_xnn_pack(EtcXnnpack *x, const XnnGraph *g);

/* -- xnn_cpu.c ---------------------------------------------------------------------------- */

/* Must be called before the library is initialized. */
void etc_xnn_choose_cpu(void);

#endif
