/* cut.h -- the cheapest cut between a source and a sink: who goes to which of two sides, where each
 * has a price on either and so has what lies between.  All of it lives in the arena.
 */
#ifndef ETC_CUT_H
#define ETC_CUT_H

#include "ir/ir.h"

/* Nodes 0 .. n - 1, and two more. */
typedef struct Cut Cut;
#define CUT_SOURCE(n) (n)
#define CUT_SINK(n) ((n) + 1)
#define CUT_NEVER (INT64_C(1) << 60) /* the price of an edge that no cut may cross */

Cut *cut_new(int n, Arena *a);

/* `there` is paid where `from` is on the source's side and `to` on the sink's, `back` the other way
 * round.  The sum of all prices but CUT_NEVER stays below it. */
void cut_edge(Cut *c, int from, int to, int64_t there, int64_t back);

/* The cheapest sides, of several the one with the most on the sink's; once per cut.  False: more
 * than `steps` edges were looked at. */
bool cut_solve(Cut *c, int64_t steps, bool *is_sink);

#endif
