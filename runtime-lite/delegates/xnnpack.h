/* xnnpack.h -- the XNNPACK delegate of a hosted runtime-lite.
 *
 *     EtcXnnpack *x = etc_xnnpack_new(2);
 *     EtcDelegate d = etc_xnnpack_delegate(x);
 *     etc_program_offer(&program, &d, 1);         before etc_method_init
 *     ...                                         etc_method_free of each method
 *     etc_xnnpack_free(x);
 *
 * One serves the methods of one program: its delegates share packed weights by key, intermediate
 * memory and threads.  Not for several threads at once. */
#ifndef ETC_DELEGATES_XNNPACK_H
#define ETC_DELEGATES_XNNPACK_H

#include "runtime-lite/etc_rt.h"

typedef struct EtcXnnpack EtcXnnpack;

EtcXnnpack *etc_xnnpack_new(int n_threads); /* NULL: no memory, or a CPU that XNNPACK refuses */
void etc_xnnpack_profile(EtcXnnpack *x); /* what is initialised from now on tells its operations */
EtcDelegate etc_xnnpack_delegate(EtcXnnpack *x);
void etc_xnnpack_free(EtcXnnpack *x);

#endif
