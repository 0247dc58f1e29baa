/* prim.h -- the one kernel the executor must know: it points its last argument elsewhere. */
#ifndef ETC_PRIM_H
#define ETC_PRIM_H

#include "runtime-lite/etc_rt.h"

EtcStatus etc_et_view(const EtcCall *c);

#endif
