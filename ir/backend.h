/* backend.h -- what a backend tells the partitioner: which nodes it computes, at what price, and
 * how a region of them becomes a blob.  A backend is a folder partition/NAME/ with one of these. */
#ifndef ETC_BACKEND_H
#define ETC_BACKEND_H

#include "ir/ir.h"

/* Where in the pipeline passes may be put in that a backend alone wants, all at stage core:
 * attention that a model spells out is one node; and norms and constants are folded. */
typedef enum Prepare { PREPARE_FUSED, PREPARE_SIMPLE, N_PREPARES } Prepare;

typedef struct Blob {
    uint8_t *data;
    size_t n;
} Blob;

/* Why a node is not taken: what stands against it, as a clause, and what the model's author can do
 * to make it fit, as an order; NULL: nothing. */
typedef struct Refusal {
    const char *why, *fix;
} Refusal;

/* How a node may be computed with integers; a set of bits.  quant/ asks a backend for it. */
typedef enum Spec {
    SPEC_STATIC = 1 << 0,  /* i8 operands and result, one scale each known beforehand; weights i8,
                              symmetric, a scale per tensor or result */
    SPEC_SHARED = 1 << 1,  /* the same, where operands and result have one scale in common */
    SPEC_DYNAMIC = 1 << 2, /* operands that become i8 when it runs, such weights */
    SPEC_DYNAMIC_GROUPS = 1 << 3, /* the same, and i4 weights with a scale per group along rows */
    SPEC_WEIGHT = 1 << 4,         /* floats, and weights that are kept as such integers */
    SPEC_WEIGHT_GROUPS = 1 << 5,
    SPEC_WEIGHT_HALF = 1 << 6,  /* kept as f16 */
    SPEC_CLAMP_JOINS = 1 << 7,  /* a clamp that alone reads it is part of it */
    SPEC_CURVE_JOINS = 1 << 8,  /* so is any function of one number: gelu, sigmoid, ... */
} Spec;

typedef struct Backend {
    const char *name; /* of --backend */
    const char *id;   /* what the runtime registers it under */

    bool (*takes)(const Node *n, const Uses *u, Refusal *r); /* whether it computes n */

    /* Passes that make programs fit it, each list NULL or ended by NULL: the pipeline runs them
     * where this backend is chosen. */
    const char *const *prepare[N_PREPARES];
    /* Returns whether the parts of attention that a model spells out stay as they are, since the
     * backend takes the parts and not the whole: softmax is taken of `scores`, which are masked by
     * a choice or not, and n is the product with the values.  NULL: never. */
    bool (*keeps_parts)(const Node *scores, bool is_masked_by_choice, const Node *n);

    unsigned (*spec)(const Node *n); /* bits of Spec; of a node that it takes; NULL: none */

    /* Seconds n takes here; node_seconds() is what it takes in a kernel. */
    double (*cost)(const Node *n);
    /* Seconds that n takes with integers as one bit of Spec says, and those that quantizing v or
     * dequantizing it takes.  NULL: the backend is no faster with integers. */
    double (*cost_integers)(const Node *n, unsigned spec);
    double (*cost_convert)(const Value *v, unsigned spec);
    double call_cost;        /* of one call */
    double cost_of_byte;     /* that enters or leaves */

    /* The region `body` as the backend's bytes, in the program's arena.  Weights become states
     * of kind ST_NAMED.  What a profile tells of the blob has handles: nodes of `body`, counted
     * from 0.  False: reported. */
    bool (*lower)(Graph *body, Arena *tmp, Diag *d, Blob *out);
} Backend;

#endif
