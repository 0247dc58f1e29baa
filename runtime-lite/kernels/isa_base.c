/* isa_base.c -- see isa.h. */
#define ETC_ISA_NAME "base"
#define ETC_ISA_TABLE const EtcCores etc_cores_base
#include "runtime-lite/kernels/isa.h"
