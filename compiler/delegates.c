/* delegates.c -- the delegates that a program offers to a .pte: none.  A program that has some
 * links another file instead of this one, such as delegates_xnnpack.c. */
#include "compiler/compiler.h"
#include "compiler/run.h"

bool delegates_start(int threads, bool profiles, Delegates *to, Diag *d)
{
    (void)threads, (void)profiles, (void)d;
    *to = (Delegates){0};
    return true;
}

bool delegates_have(const char *id)
{
    (void)id;
    return false;
}

void delegates_stop(const Delegates *d)
{
    (void)d;
}
