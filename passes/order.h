/* order.h -- shared by the files of the order search: a graph as steps
 * that make and read chunks of bytes (order_model.c), an order to begin
 * with (order_greedy.c) and the search in windows of one (order_window.c). */
#ifndef ETC_PASSES_ORDER_H
#define ETC_PASSES_ORDER_H

#include "passes/internal.h"

typedef struct Chunk {
    int64_t bytes;
    int def;     /* step that makes it; -1: an input */
    int readers; /* steps */
    bool kept;   /* read after the last step */
} Chunk;

typedef struct Step {        /* a node, by its place in the given order */
    int first_read, n_reads; /* read[...]: chunks, each once */
    int first_made, n_made;  /* numbers of chunks */
    int first_over, n_over;  /* read[...]: the chunks it may write over if all of them die here */
} Step;

typedef struct Model {
    const int *number; /* by value: the step that defines it; -1: none */
    Step *step;
    int n_steps;
    Chunk *chunk;
    int n_chunks;
    int *read;
} Model;

/* False: too many chunks for their values, `m` says less than is true. */
bool model_of(const Graph *g, const int *number, int n, Model *m, Arena *tmp);

/* Bytes in use while each step of an order runs; returns the most. */
int64_t model_play(const Model *m, const int *order, int64_t *at, Arena *tmp);

/* A lower bound on the peak of every order: the bytes of the step that reads and makes most. */
int64_t model_floor(const Model *m);

/* All steps, each time the one after which least lives: order_greedy.c. */
void order_greedily(const Graph *g, const Model *m, Node *const *node, int *order, Arena *tmp);

/* Moves steps of `order` within windows until its peak is as low as `*work` allows.  node: by step
 * number, with operands' steps through m->number. */
void order_windows(const Model *m, Node *const *node, int *order, int64_t *work, Arena *tmp);

#endif
