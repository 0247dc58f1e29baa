/* cut.h -- the minimum cut between a source and a sink: it divides nodes into two sides.  A node
 * costs something on either side, and so does an edge between nodes on different sides.  All
 * memory is the arena's. */
#ifndef ETC_CUT_H
#define ETC_CUT_H

#include "ir/ir.h"

/* A graph with nodes 0 .. n - 1, the source and the sink. */
typedef struct Cut Cut;
#define CUT_SOURCE(n) (n)
#define CUT_SINK(n) ((n) + 1)
#define CUT_NEVER (INT64_C(1) << 60) /* the cost of an edge that no cut may cross */

/* Returns a time as a cost: in picoseconds, from 0 to those of one second. */
int64_t cut_picoseconds(double seconds);

Cut *cut_new(int n, Arena *a);

/* Adds an edge.  It costs `there` if `from` is on the source's side and `to` on the sink's, and
 * `back` in the opposite case.  The sum of all costs, those of CUT_NEVER apart, must be below
 * CUT_NEVER. */
void cut_edge(Cut *c, int from, int to, int64_t there, int64_t back);

/* Computes a minimum cut; of several, the one with the most nodes on the sink's side.  It may be
 * called once per Cut.  Returns false if it had to look at more than `steps` edges. */
bool cut_solve(Cut *c, int64_t steps, bool *is_sink);

#endif
