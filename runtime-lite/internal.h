/* internal.h -- shared by program.c, method.c and executor.c: segments, and the layout of a
 * method in the caller's memory. */
#ifndef ETC_INTERNAL_H
#define ETC_INTERNAL_H

#include "runtime-lite/etc_build.h"
#include "runtime-lite/etc_rt.h"
#include "runtime-lite/pte_schema.h"

/* These slots have the same number in lists of every kind, and in calls of kernels and delegates.
 */
enum { LIST_ITEMS = INT_LIST_ITEMS, CALL_ARGS = KERNEL_ARGS };

/* -- program ----------------------------------------------------------------------------- */

/* Describes a failure in *e, if there is one, and returns `status`. */
EtcStatus etc_fail_text(EtcError *e, EtcStatus status, const char *what, int64_t index);
EtcStatus etc_fail_code(EtcError *e, EtcStatus status, int64_t index);

/* The same, but without the text in a build without texts. */
static inline EtcStatus etc_fail(EtcError *e, EtcStatus status, const char *what, int64_t index)
{
    return ETC_BUILD_TEXT ? etc_fail_text(e, status, what, index) : etc_fail_code(e, status, index);
}

EtcFlat etc_program_flat(const EtcProgram *p);
uint32_t etc_program_plan(const EtcProgram *p, int32_t method); /* 0: no such method */

/* Returns a segment, which etc_program_open has checked; NULL: there is none with this number. */
const uint8_t *etc_program_segment(const EtcProgram *p, uint32_t index, uint64_t *n_bytes);

/* Returns the bytes of constant or initial value `index` >= 1, which are at least n_bytes, or NULL.
 */
const uint8_t *etc_program_constant(const EtcProgram *p, uint32_t index, uint64_t n_bytes);
const uint8_t *etc_program_initial(const EtcProgram *p, uint32_t index, uint64_t n_bytes);

/* -- method ------------------------------------------------------------------------------ */

/* A tensor and its own memory.  Kernels may point the tensor to other memory until the next run. */
typedef struct Slot {
    EtcTensor t; /* first: an EtcTensor of a method is a Slot */
    void *home;
    int64_t home_bytes;
    uint32_t in_file;
    uint8_t is_input;
    uint8_t is_planned;           /* home is in a pool or in the file */
    uint8_t is_const;             /* home is in the file, or the caller's */
    uint8_t is_marked, is_frozen; /* during a call: seen as an argument, its sizes held */
} Slot;

enum { MAX_HOST_OUTS = 16 }; /* the most results of a kernel of the host */

typedef struct Operator {
    const EtcKernelRow *row;
    const char *name, *overload;
    uint8_t is_view; /* et_view points its last argument elsewhere */
    uint8_t is_host; /* a kernel of the host's own */
} Operator;

typedef struct Delegate {
    const EtcDelegate *kind;
    void *state; /* NULL: not yet initialised */
} Delegate;

struct EtcMethod {
    EtcProgram program;
    EtcFlatVec inputs, outputs, chains; /* in the file */
    EtcValue *value;
    Slot *slot;
    Operator *op;
    Delegate *delegate;
    EtcValue **arg;  /* the arguments of the current call */
    EtcValue **item; /* the items of all lists */
    int32_t *dim;    /* the sizes of all tensors whose sizes may change */
    void *scratch;
    const struct EtcCores *cores;
    EtcObserver *observer; /* is called after each instruction; may be NULL */
    void *observer_host;
    int64_t work_limit, work_left; /* element operations of a run; 0: no limit */
    EtcValue none;
    uint32_t plan, n_values, n_slots, n_ops, n_delegates;
};

void etc_name_operator(EtcError *e, const Operator *op);

/* Returns whether elements of x lie in memory in the order of those of y. */
int etc_same_order(const EtcTensor *x, const EtcTensor *y);

/* Returns NULL, or why the tensors of a call may not lie where they lie: a result overlaps another
 * result or an operand, or lies where nothing may be written. */
const char *etc_find_overlap(const EtcCall *c, const EtcKernelRow *row, int at_load);

typedef struct Build { /* a method under construction */
    EtcMethod *m;
    const EtcProgram *p;
    void *const *pools;
    EtcError *e;
    EtcFlat f;
    uint32_t plan, n_slots, n_items, n_dims; /* taken so far */
    uint64_t n_compared;                     /* tensors of calls */
} Build;

EtcStatus etc_build_values(Build *b);
EtcStatus etc_build_ends(Build *b); /* inputs and outputs: after the values */

/* Returns the number of bytes for the sizes of t; -1: it, or a product of some of the sizes,
 * overflows. */
int64_t etc_tensor_bytes(const EtcTensor *t);

#endif
