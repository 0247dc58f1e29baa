/* isa_base.c -- see cores_table.h. */
#define ETC_ISA_NAME "base"
#define ETC_ISA_TABLE const EtcCores etc_cores_base
#include "runtime-lite/kernels/cores_table.h"
