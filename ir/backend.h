/* backend.h -- what a backend tells the partitioner: which nodes it computes, at what price, and how
 * a region of them becomes a blob.  A backend is a folder partition/NAME/ with one of these. */
#ifndef ETC_BACKEND_H
#define ETC_BACKEND_H

#include "ir/ir.h"

typedef struct Blob {
    uint8_t *data;
    size_t n;
} Blob;

/* Why a node is not taken: what stands against it, as a clause, and what the model's author can do
 * to make it fit, as an order; NULL: nothing. */
typedef struct Refusal {
    const char *why, *fix;
} Refusal;

struct Backend {
    const char *name; /* of --backend */
    const char *id;   /* what the runtime registers it under */

    bool (*takes)(const Node *n, const Uses *u, Refusal *r); /* whether it computes n */

    /* Seconds n takes: here, and in the kernels that would compute it otherwise. */
    double (*cost)(const Node *n);
    double (*cost_outside)(const Node *n);
    double call_cost;        /* of one call */
    double cost_of_byte;     /* that enters or leaves */

    /* The region `body` as the backend's bytes, in the program's arena.  Weights become states of
     * kind ST_NAMED.  What a profile tells of the blob has handles: nodes of `body`, counted from 0.
     * False: reported. */
    bool (*lower)(Graph *body, Arena *tmp, Diag *d, Blob *out);
};

#endif
