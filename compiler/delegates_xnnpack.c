/* delegates_xnnpack.c -- the delegates of etc-xnn: XNNPACK. */
#include "compiler/compiler.h"
#include "compiler/run.h"
#include "runtime-lite/delegates/xnnpack.h"
#include <string.h>

bool delegates_start(int threads, bool profiles, Delegates *to, Diag *d)
{
    EtcXnnpack *x = etc_xnnpack_new(threads);
    *to = (Delegates){.host = x};
    if (!x)
        return diag_unsupported(d, (Loc){0}, "libXNNPACK does not start on this CPU");
    if (profiles)
        etc_xnnpack_profile(x);
    to->list[to->n++] = etc_xnnpack_delegate(x);
    return true;
}

bool delegates_have(const char *id)
{
    return !strcmp(id, "XnnpackBackend");
}

void delegates_stop(const Delegates *d)
{
    etc_xnnpack_free(d->host);
}
