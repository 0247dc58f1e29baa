/* internal.h -- shared by the files of partition/. */
#ifndef ETC_PARTITION_INTERNAL_H
#define ETC_PARTITION_INTERNAL_H

#include "ir/cut.h"
#include "partition/partition.h"

/* -- choose.c ---------------------------------------------------------------------------- */

enum { NOBODY = -1 }; /* stands for no node, no region and no backend */

/* A graph whose nodes are assigned to backends.  Node indices count in the order of the graph. */
typedef struct Split {
    Graph *g;
    Program *p;
    Arena *tmp;
    Uses uses;
    int n;
    Node **node;
    int *taker;          /* by node: the index of its backend in the session's chain, or NOBODY */
    int *producer;       /* by value index: the node that computes it, or NOBODY */
    int *level, *region; /* by node; the region may be NOBODY */
    int n_regions;
    Refusal *refusal; /* by node, for those that no backend takes */
} Split;

extern const Refusal region_refusal; /* for a node that a backend takes but does not get */
void choose_takers(Split *s);

/* -- extract.c --------------------------------------------------------------------------- */

/* Returns whether v is computed from constants alone.  Each region that reads it then has a
 * copy. */
bool value_is_from_constants(const Value *v);

/* Makes one call of the backend for neighbouring nodes of the graph.  The nodes stay; nobody
 * reads them after graph_replace was called with `with`.  `inner` is that of outline_start.
 * region_of has, by value index, the region of the node that computes the value.  Returns the
 * graph in the call, or NULL if it fails, which is reported. */
const Graph *extract_region(Graph *g, Node **member, int n, const Uses *uses, const int *region_of,
                            const Backend *b, Value **inner, Value **with, Arena *tmp, Diag *d);

#endif
