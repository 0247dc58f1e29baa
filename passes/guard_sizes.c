/* guard_sizes.c -- makes guards of what the nodes assume about symbolic sizes.
 *
 * Any stage before lower_symint, which replaces sizes by computed numbers.  It changes no node.
 * The guards of the model itself were made when it was loaded (program_guard).  This pass adds
 * those of nodes that passes have made since, before check_sizes or emitted C checks them all. */
#include "passes/internal.h"

bool pass_guard_sizes(Program *p, Arena *tmp, Diag *d)
{
    (void)tmp;
    return !p->n_syms || program_guard(p, d);
}
