/* order.h -- shared by the files of the order search: a graph as steps that make and read chunks of
 * bytes (order_model.c), a first order (order_greedy.c), and the search in windows of an order
 * (order_window.c). */
#ifndef ETC_PASSES_ORDER_H
#define ETC_PASSES_ORDER_H

#include "passes/internal.h"

typedef struct Chunk {
    int64_t bytes;
    int def;     /* the step that makes it; -1: an input */
    int readers; /* the number of steps that read it */
    bool kept;   /* it is read after the last step */
} Chunk;

typedef struct Step {        /* a node; steps are numbered in the given order */
    int first_read, n_reads; /* the chunks that it reads, in read[]; each once */
    int first_made, n_made;  /* the chunks that it makes */
    int first_over, n_over;  /* in read[]: those it may overwrite if all of them die here */
} Step;

typedef struct Model {
    const int *number; /* by value index: the step that computes it; -1: none */
    Step *step;
    int n_steps;
    Chunk *chunk;
    int n_chunks;
    int *read;
} Model;

/* Makes the model of a graph.  Returns false if values have too many chunks; the model then lacks
 * some. */
bool model_of(const Graph *g, const int *number, int n, Model *m, Arena *tmp);

/* Sets at[] to the bytes in use while each step of an order runs.  Returns the most. */
int64_t model_play(const Model *m, const int *order, int64_t *at, Arena *tmp);

/* Returns a lower bound for the peak of any order: the most bytes that one step reads and makes. */
int64_t model_floor(const Model *m);

/* order_greedy.c: orders the steps, always taking the one after which the fewest bytes are live. */
void order_greedily(const Graph *g, const Model *m, Node *const *node, int *order, Arena *tmp);

/* Reorders `order` in windows until its peak is as low as the limit *work allows.  `node` has the
 * nodes by the number of their step. */
void order_windows(const Model *m, Node *const *node, int *order, int64_t *work, Arena *tmp);

#endif
