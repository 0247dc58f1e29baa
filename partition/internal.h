/* internal.h -- what the files of partition/ share. */
#ifndef ETC_PARTITION_INTERNAL_H
#define ETC_PARTITION_INTERNAL_H

#include "ir/cut.h"
#include "partition/partition.h"

/* -- choose.c ---------------------------------------------------------------------------- */

enum { NOBODY = -1 };

/* A graph whose nodes are given away.  Indices of nodes count in the order of the graph. */
typedef struct Split {
    Graph *g;
    Program *p;
    Arena *tmp;
    Uses uses;
    int n;
    Node **node;
    int *taker; /* by node: backend in the program's chain, or NOBODY */
    int *maker; /* by value index: node, or NOBODY */
    int *level, *region; /* by node; region: or NOBODY */
    int n_regions;
    Refusal *refusal; /* by node, of those nobody takes */
} Split;

extern const Refusal region_refusal; /* of what a backend takes and does not get */
void choose_takers(Split *s);

/* -- extract.c --------------------------------------------------------------------------- */

/* Returns whether v is made of constants alone: each region that reads it takes it along. */
bool value_goes_along(const Value *v);

/* One call of the backend in the place of nodes that stand one behind the other in the graph; they
 * stay, unread once graph_replace has been called with `with` (by value index: what stands for
 * their results).  `inner`: as outline_start has it.  region_of, by value index: the region of the
 * node that makes it.  Returns the graph in the call; NULL: reported. */
const Graph *extract_region(Graph *g, Node **member, int n, const Uses *uses, const int *region_of,
                            const Backend *b, Value **inner, Value **with, Arena *tmp, Diag *d);

#endif
