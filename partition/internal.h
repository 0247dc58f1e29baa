/* internal.h -- what partition.c and extract.c share. */
#ifndef ETC_PARTITION_INTERNAL_H
#define ETC_PARTITION_INTERNAL_H

#include "partition/partition.h"

/* One call of the backend in the place of nodes that stand one behind the other in the graph; they
 * stay, unread once graph_replace has been called with `with` (by value index: what stands for
 * their results).  region_of, by value index: the region of the node that makes it.  False:
 * reported. */
/* Whether v is made of constants alone: whoever reads it takes it along. */
bool value_goes_along(const Value *v);

bool extract_region(Graph *g, Node **member, int n, const Uses *uses, const int *region_of,
                    const Backend *b, Value **with, Arena *tmp, Diag *d);

#endif
