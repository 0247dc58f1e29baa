/* xnn_graph.h -- the graph of an XNNPACK blob after everything in it was checked.  It is shared
 * by xnn_read.c (bytes to graph), xnn_node.c (nodes), xnn_shape.c (sizes) and the files that use
 * the library.  It allocates memory.  Nothing here needs the library. */
#ifndef ETC_DELEGATES_XNN_GRAPH_H
#define ETC_DELEGATES_XNN_GRAPH_H

#include "runtime-lite/delegates/xnn_schema.h"
#include "runtime-lite/etc_rt.h"

enum {
    XNN_RANK = 6,
    XNN_INPUTS = 5,
    XNN_FIELDS = 15,           /* scalars of a node, but ids and flags */
    XNN_MOST_EXTERNALS = 4096, /* the limit of the official runtime */
    XNN_READS_PAST = 16        /* how many bytes the library may read after a tensor */
};
#define XNN_NO_ID UINT32_MAX

typedef struct XnnShape {
    uint32_t rank;
    size_t dim[XNN_RANK];
} XnnShape;

typedef struct XnnValue {
    XnnShape shape; /* as declared; upper bounds if sizes change from call to call */
    XnnType type;
    XnnQuant quant;
    const uint8_t *data; /* the data of a constant, else NULL */
    uint64_t n_bytes;    /* the bytes of data that the sizes need */
    uint32_t key;        /* its row in the program's named data; XNN_NO_ID: it is in the blob */
    uint32_t external;   /* the position among a call's arguments, or XNN_NO_ID */
    uint8_t is_input, is_output, is_made;
    float scale;
    int32_t zero;
    const void *scales; /* f32 per channel, bf16 per group */
    uint32_t n_scales, channel_dim, group, n_token_dims;
    float *own; /* scales converted from the blob; freed with the graph */
} XnnValue;

typedef struct XnnNode {
    XnnKind kind;
    uint32_t in[XNN_INPUTS]; /* values, by their place in the blob; XNN_NO_ID: none */
    uint32_t out[2];
    uint32_t n_in, n_out, flags;
    uint32_t handle; /* debug_handle: the node of the model it came from, as the exporter counts */
    uint32_t field[XNN_FIELDS];
    float number; /* slope, alpha, padding */
    float min, max;
    XnnShape a, b; /* permutation, new shape; paddings before and behind; offsets and sizes */
} XnnNode;

typedef struct XnnGraph {
    XnnValue *value;
    XnnNode *node;
    uint32_t n_values, n_nodes, n_externals;
    uint32_t *external; /* value of each argument; XNN_NO_ID: not used */
    uint8_t has_inline; /* constants in the blob: not to be shared by key */
} XnnGraph;

/* A program's named data by key, for all its delegates. */
typedef struct XnnNames {
    EtcNamed *row; /* sorted */
    uint32_t n;
} XnnNames;

EtcStatus etc_xnn_names(const EtcProgram *p, XnnNames *names, EtcError *e); /* row is malloc's */

/* Reads the graph of a blob and checks all of it.  If it is wrong, `index` in *e is that of the
 * value or node.  Data stays where it lies.  In either case the caller frees the graph with
 * etc_xnn_free. */
EtcStatus etc_xnn_read(const uint8_t *blob, uint64_t n_bytes, const XnnNames *names, XnnGraph *g,
                       EtcError *e);
void etc_xnn_free(XnnGraph *g);

/* -- between the files -------------------------------------------------------------------- */

EtcStatus etc_xnn_fail(EtcError *e, EtcStatus status, const char *what, uint32_t index);

/* The position of the value with an id in the blob. */
typedef struct XnnId {
    uint32_t id, place;
} XnnId;

typedef struct XnnRead {
    EtcFlat f;
    const uint8_t *inline_data;
    uint64_t inline_bytes;
    const XnnNames *names;
    EtcFlatVec constants;
    XnnGraph *g;
    XnnId *id; /* sorted */
    EtcError *e;
} XnnRead;

EtcStatus etc_xnn_read_node(const XnnRead *r, uint32_t table, uint32_t i);
EtcStatus etc_xnn_check_types(const XnnGraph *g, uint32_t node, EtcError *e);
extern const EtcFlatTable etc_xnn_schema[]; /* rows: the graph first */

/* Computes the sizes of all values, by their position, from those of inputs and constants, which
 * `shape` has already.  Refuses sizes that a node cannot take. */
EtcStatus etc_xnn_infer(const XnnGraph *g, XnnShape *shape, EtcError *e);

/* Allocates memory that free() frees; NULL: there is none.  `align` is a power of two and a
 * multiple of the size of a pointer. */
void *etc_xnn_allocate(size_t align, size_t n);

/* These map all pages that will be read or written at once, which costs less than a fault for each
 * page. */
void etc_xnn_will_read(const void *data, size_t n);
void etc_xnn_will_write(void *data, size_t n);

/* Finds the node of each operation of the library's profile, by the operation's name.
 * Operations are in the order of nodes; a node that the library has fused into another has
 * none.  XNN_NO_ID: it is unknown. */
void etc_xnn_match(const XnnGraph *g, const char *const *name, uint32_t n, uint32_t *node);

int64_t etc_xnn_count(const XnnShape *s); /* elements; -1: more than a tensor may have */
int etc_xnn_same(const XnnShape *a, const XnnShape *b);

#endif
