/* backend.h -- the contract between a backend and the partitioner: which nodes the backend
 * computes, how long they take, and how a region of nodes becomes its bytes.  A backend is a
 * folder partition/NAME/ with one Backend struct. */
#ifndef ETC_BACKEND_H
#define ETC_BACKEND_H

#include "ir/ir.h"

/* The two places of the pipeline, both at stage core, where passes of a backend can run: after
 * fuse_attention (attention that a model spells out is one node), and after constants and batch
 * norms were folded. */
typedef enum Prepare { PREPARE_FUSED, PREPARE_SIMPLE, N_PREPARES } Prepare;

typedef struct Blob {
    uint8_t *data;
    size_t n;
} Blob;

/* The reason why a node is refused, for the report.  `why` is a clause ("its kernel has 4 axes").
 * `fix` is an order to the model's author that would make the node fit, or NULL. */
typedef struct Refusal {
    const char *why, *fix;
} Refusal;

/* The ways to compute a node with integers, as a set of bits.  quant/ asks a backend for them. */
typedef enum Spec {
    SPEC_STATIC = 1 << 0,  /* i8 operands and result, each with one scale that is known beforehand;
                              symmetric i8 weights with a scale per tensor or output channel */
    SPEC_SHARED = 1 << 1,  /* the same, and operands and result must have the same scale */
    SPEC_DYNAMIC = 1 << 2, /* operands that are quantized to i8 at run time; weights as above */
    SPEC_DYNAMIC_GROUPS = 1 << 3, /* the same with i4 weights, a scale per group of a row */
    SPEC_WEIGHT = 1 << 4,         /* float arithmetic; weights are stored as i8 */
    SPEC_WEIGHT_GROUPS = 1 << 5,  /* float arithmetic; weights are stored as i4 in groups */
    SPEC_WEIGHT_HALF = 1 << 6,    /* float arithmetic; weights are stored as f16 */
    SPEC_CLAMP_JOINS = 1 << 7,    /* if a clamp is the only reader of the node, it is part of it */
    SPEC_CURVE_JOINS = 1 << 8,    /* so is any function of one number, such as gelu or sigmoid */
    SPEC_SCALE_JOINS = 1 << 9,    /* so is a multiplication or division by a number */
} Spec;

typedef struct Backend {
    const char *name; /* the name for --backend */
    const char *id;   /* the id under which the runtime registers the delegate */

    /* Returns whether the backend computes n.  If not, it sets *r to static texts. */
    bool (*takes)(const Node *n, const Uses *u, Refusal *r);

    /* Names of passes that the pipeline runs at these places if this backend is chosen.  Each list
     * is NULL or ends with NULL. */
    const char *const *prepare[N_PREPARES];
    /* Returns whether attention that a model spells out shall keep its parts, because the
     * backend takes the parts but not the whole.  `scores` is the operand of softmax, which a
     * where may have masked, and n is the product with the values.  NULL: never. */
    bool (*keeps_parts)(const Node *scores, bool is_masked_by_choice, const Node *n);

    unsigned (*spec)(const Node *n); /* the bits of Spec for a node that it takes; may be NULL */

    /* Estimates the seconds that n takes here; node_seconds() estimates those of the kernel. */
    double (*cost)(const Node *n);
    /* Estimate the seconds that n takes with integers in the way of one bit of Spec, and those
     * that it takes to quantize or dequantize v.  NULL: the backend is not faster with integers. */
    double (*cost_integers)(const Node *n, unsigned spec);
    double (*cost_convert)(const Value *v, unsigned spec);
    double call_cost;    /* seconds for one call */
    double cost_of_byte; /* seconds for each byte that enters or leaves a call */

    /* Writes the region `body` as bytes of the backend, in the program's arena.  Weights become
     * states of kind ST_NAMED.  A profile of the blob refers to nodes of `body` by their number,
     * counted from 0.  Returns false if it fails, which is reported. */
    bool (*lower)(Graph *body, Arena *tmp, Diag *d, Blob *out);
} Backend;

#endif
