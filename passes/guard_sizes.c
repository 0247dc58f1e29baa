/* guard_sizes.c -- what the nodes take for granted of symbolic sizes becomes guards.
 *
 * Any stage before lower_symint, which leaves numbers in the place of sizes; leaves nodes as they
 * are.  A model as it was loaded has its guards (program_guard); those of nodes that passes made
 * since follow here, before check_sizes or C checks them all.
 */
#include "passes/internal.h"

bool pass_guard_sizes(Program *p, Arena *tmp, Diag *d)
{
    (void)tmp;
    return !p->n_syms || program_guard(p, d);
}
