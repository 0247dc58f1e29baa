/* etc_rt.h -- runtime-lite: loads a .pte, checks everything it reads, runs it; no heap, no stdio,
 * no globals.  It also holds the numbers compiler and runtime share, and the shape of a kernel.
 *
 * Memory.  The caller brings all of it.  The file (mapped or in flash) must outlive the program;
 * nothing is copied out of it but the initial values of mutable buffers.  The way of a call:
 *
 *     EtcProgram p;
 *     EtcError e = {0};
 *     EtcMemory m;
 *     etc_program_open(&p, file, n_bytes, &e);            verifies the file
 *     etc_program_memory(&p, method, &m, &e);             says what the method needs
 *     etc_method_init(&p, method, tables, pools, scratch, &method, &e);
 *     etc_method_set_input(method, 0, &value, &e);
 *     etc_method_run(method, &e);
 *     etc_method_output(method, 0)
 *     etc_method_free(method)                             only where there are delegates
 *
 * Every function that can fail returns an EtcStatus and describes the failure in *e.
 * Emitted C does not include this file.
 */
#ifndef ETC_RT_H
#define ETC_RT_H

#include <stddef.h>
#include <stdint.h>

/* -- data types -------------------------------------------------------------------------- */

/* X(id, number in a .pte, bytes, name in textual IR) */
#define ETC_DTYPES(X)                                                                 \
    X(U8, 0, 1, u8) X(I8, 1, 1, i8) X(I16, 2, 2, i16) X(I32, 3, 4, i32)               \
    X(I64, 4, 8, i64) X(F16, 5, 2, f16) X(F32, 6, 4, f32) X(F64, 7, 8, f64)           \
    X(BOOL, 11, 1, bool) X(BF16, 15, 2, bf16) X(F8E5M2, 23, 1, f8e5m2)                \
    X(F8E4M3FN, 24, 1, f8e4m3fn) X(F8E5M2FNUZ, 25, 1, f8e5m2fnuz)                     \
    X(F8E4M3FNUZ, 26, 1, f8e4m3fnuz) X(U16, 27, 2, u16) X(U32, 28, 4, u32)            \
    X(U64, 29, 8, u64)

typedef enum EtcDtype {
#define X(id, code, size, name) ETC_##id = (code),
    ETC_DTYPES(X)
#undef X
} EtcDtype;

size_t etc_dtype_size(int dtype); /* bytes of one element; 0 for a number that is no dtype */

/* -- status ------------------------------------------------------------------------------ */

typedef enum EtcStatus {
    ETC_OK = 0,
    ETC_BAD_ARG = 1,     /* an argument of a call: kind, dtype, shape, NULL */
    ETC_BAD_FILE = 2,    /* the file contradicts itself or its format */
    ETC_UNSUPPORTED = 3, /* an operator, dtype or delegate this build lacks */
    ETC_NO_MEMORY = 4,   /* the caller's memory is too small or not aligned */
    ETC_LIMIT = 5,       /* more than this runtime takes: instructions in a run, tables, delegates */
    ETC_TOO_MUCH = 6,    /* more element operations in a run than etc_method_limit allows */
    ETC_SINGULAR = 7     /* a matrix has no inverse or factor, in an operator that checks it */
} EtcStatus;

typedef struct EtcError {
    EtcStatus status;
    const char *what;       /* constant text, one clause: "offset past the end of the segment" */
    const char *name;       /* in the file: a method, an operator "aten::add"; else NULL */
    const char *overload;   /* of an operator: "out"; else NULL */
    int64_t index;          /* of the instruction, value, input ... `what` speaks of; -1: none */
} EtcError;

/* -- values ------------------------------------------------------------------------------ */

enum { ETC_MAX_RANK = 16, ETC_MAX_STEPS = 10000000 };

/* A dense tensor; sizes were checked so that numel * element size fits in int64_t and capacity. */
typedef struct EtcTensor {
    void *data;
    EtcDtype dtype;
    int32_t rank;
    int32_t *dim;         /* sizes, outermost first in the model's order; kernels resize outs */
    const uint8_t *order; /* dimensions from outermost to innermost in memory; NULL: 0, 1, 2 ... */
    int64_t capacity;     /* bytes at `data` */
    uint8_t is_static;    /* sizes may not change */
    uint8_t is_const;     /* in the file, or the caller's: etc_resize refuses it as an out */
} EtcTensor;

/* The numbers are those of the official runtime's EValue tags. */
typedef enum EtcTag {
    ETC_NONE = 0,
    ETC_TENSOR = 1,
    ETC_STRING = 2,
    ETC_DOUBLE = 3,
    ETC_INT = 4,
    ETC_IS_BOOL = 5,
    ETC_LIST_BOOL = 6,
    ETC_LIST_DOUBLE = 7,
    ETC_LIST_INT = 8,
    ETC_LIST_TENSOR = 9,
    ETC_LIST_OPT_TENSOR = 11
} EtcTag;

typedef struct EtcValue EtcValue;
struct EtcValue {
    EtcTag tag;
    union {
        EtcTensor *tensor;
        int64_t i;
        double d;
        uint8_t b;
        struct {
            const char *text; /* NUL-terminated */
            int32_t n;        /* bytes without the NUL */
        } str;
        struct { /* LIST_INT: INT values, read anew at each call; LIST_*TENSOR: TENSOR or NONE */
            EtcValue *const *item;
            int32_t n;
        } list;
        struct {
            const double *item;
            int32_t n;
        } doubles;
        struct {
            const uint8_t *item; /* 0 or 1 */
            int32_t n;
        } bools;
    } as;
};

int64_t etc_numel(const EtcTensor *t);

/* Gives an out tensor its sizes.  ETC_BAD_ARG when it is static and they differ, when the rank
 * differs, when the bytes exceed its capacity, or when it is a constant. */
EtcStatus etc_resize(EtcTensor *t, const int32_t *dim, int32_t rank);

/* -- kernels ----------------------------------------------------------------------------- */

struct EtcCores; /* kernels/cores.h: dense cores built for one instruction set */

enum { ETC_SCRATCH_BYTES = 64 * 1024 }; /* what a kernel may use beside its arguments, at most */
enum { ETC_PACKED_COLUMNS = 16 };       /* of a block of packed weights: kernels/packed.h */

/* One call of a kernel.  arg[]: the arguments of the `out` overload's schema in its order, then
 * the out tensors; a row without `out` takes the functional schema's.  TensorOptions (dtype,
 * layout, device and pin_memory where the schema has all four) are left out, as torch does.
 * n_args may be larger: a .pte appends a return slot.  A kernel checks counts, tags, dtypes and
 * shapes itself, resizes its outs, then runs a core.  Outs lie apart from each other, and from
 * inputs but where the row's `inplace` allows; a kernel counts on that for its numbers, never for
 * the bounds of what it reads and writes: it follows nothing unchecked that it wrote. */
typedef struct EtcCall {
    EtcValue *const *arg;
    int32_t n_args;
    void *scratch; /* ETC_SCRATCH_BYTES, 64-byte aligned */
    const struct EtcCores *cores;
    int64_t *work; /* element operations left; NULL: any number */
} EtcCall;

typedef EtcStatus EtcKernel(const EtcCall *c);

typedef struct EtcKernelRow {
    const char *name; /* "aten::add.out", the official runtime's key */
    EtcKernel *run;
    int32_t n_args; /* with outs, without return slot: what a KernelCall must bring at least */
    int32_t first_out, n_outs; /* arguments that are tensors, or one list of tensors, it writes */
    uint32_t inplace;          /* bit i: the first out may lie exactly where argument i does */
} EtcKernelRow;

/* kernels/kernels.def, sorted by name. NULL when this build has none of that name.
 * name and overload as a .pte holds them; "" for no overload. */
const EtcKernelRow *etc_kernel_find(const char *name, const char *overload);
const EtcKernelRow *etc_kernel_at(int32_t i); /* NULL past the last */

const struct EtcCores *etc_cores(void); /* the best that this CPU runs; all give the same bits */

/* -- delegates --------------------------------------------------------------------------- */

typedef struct EtcProgram EtcProgram;

typedef struct EtcBlob { /* what a file says of one delegate; lies in the file */
    const EtcProgram *program; /* during init only; for its named data */
    const uint8_t *data;       /* not checked; aligned to 4 bytes */
    uint64_t n_bytes;
} EtcBlob;

typedef struct EtcPart { /* what a delegate did within its last run */
    const char *name;    /* of the operation, in the delegate's words; lives as long as it */
    int64_t handle;      /* the blob's debug_handle of the node it came from; -1: not known */
    int64_t nanoseconds;
} EtcPart;

/* One that runs parts of a method, brought by the host.  It may allocate: the core does not.  What
 * fails says in *e why; the core adds the delegate's id. */
typedef struct EtcDelegate {
    const char *id; /* as a .pte names it: "XnnpackBackend" */
    void *host;     /* passed to init */
    EtcStatus (*init)(void *host, const EtcBlob *blob, void **state, EtcError *e);
    /* The values of one call.  Tensors have memory for their sizes; run resizes its outs. */
    EtcStatus (*run)(void *state, EtcValue *const *arg, int32_t n_args, EtcError *e);
    void (*free)(void *state);
    /* Either may be NULL.  The operations of the last run, in order: how many, and the first
     * `room` of them; none where the host asked for no profile.  Bytes of weights as it keeps
     * them. */
    int32_t (*parts)(void *state, EtcPart *to, int32_t room);
    int64_t (*held_bytes)(const void *state);
} EtcDelegate;

/* -- programs ---------------------------------------------------------------------------- */

/* Opaque; here only so that a caller can hold one without a heap. */
struct EtcProgram {
    const uint8_t *file;
    size_t n_bytes;
    size_t flat_bytes;   /* of the FlatBuffer, from byte 0 */
    size_t segment_base; /* 0: none */
    uint32_t root;       /* offset of the root table */
    const EtcDelegate *delegate; /* etc_program_offer's */
    int32_t n_delegates;
    const EtcKernelRow *kernel; /* etc_program_kernels' */
    int32_t n_kernels;
    uint8_t has_zero_pools; /* etc_program_zeroed's */
};

typedef struct EtcMemory {
    size_t table_bytes;    /* values, tensors, instructions; alignment 16 */
    int32_t n_pools;       /* planned pools 1 .. n_pools */
    size_t pool_bytes[16]; /* by pool - 1; alignment 64; with delegates, some more than planned */
    size_t scratch_bytes;  /* alignment 64 */
} EtcMemory;

typedef struct EtcMethod EtcMethod; /* lies at the start of `tables` */

/* Verifies header, FlatBuffer (bounds, alignment, depth 64, 1,000,000 tables, UTF-8 not needed,
 * strings with NUL), segments.  `file` must be 16-byte aligned. */
EtcStatus etc_program_open(EtcProgram *p, const void *file, size_t n_bytes, EtcError *e);

/* Delegates for the methods that are initialised from now on; the list must outlive them. */
void etc_program_offer(EtcProgram *p, const EtcDelegate *list, int32_t n);

/* Kernels of the host's own, for operators that this build lacks, in methods that are initialised
 * from now on; the list must outlive them.  A kernel finds its arguments as EtcCall tells, checks
 * them itself and gives its outs their sizes by etc_resize.  A row that contradicts itself, or
 * writes more than 16 arguments, init refuses with ETC_BAD_ARG; a result that is more than its
 * memory holds, or of another dtype or place than before, ends the run. */
void etc_program_kernels(EtcProgram *p, const EtcKernelRow *list, int32_t n);

/* The pools of methods that are initialised from now on are zero already, as the system's fresh
 * pages are: initialising does not touch what it has no value for. */
void etc_program_zeroed(EtcProgram *p);

/* Data that a file keeps by name: entry i < n.  Names may be equal and hold NULs; both that and
 * what the bytes mean is the reader's to check. */
typedef struct EtcNamed {
    const char *key;
    uint32_t n_key;
    const uint8_t *data;
    uint64_t n_bytes;
} EtcNamed;

uint32_t etc_program_n_named(const EtcProgram *p);
EtcNamed etc_program_named(const EtcProgram *p, uint32_t i);

int32_t etc_program_n_methods(const EtcProgram *p);
const char *etc_program_method_name(const EtcProgram *p, int32_t method);
int32_t etc_program_find_method(const EtcProgram *p, const char *name); /* -1: none */

EtcStatus etc_program_memory(const EtcProgram *p, int32_t method, EtcMemory *m, EtcError *e);

/* Builds the method in `tables`; checks every value, tensor, instruction and operator.  pools[i]
 * is pool i + 1.  Mutable buffers get their initial value, others zero.  All operators that are
 * missing are counted; e names the first, and `etc_method_missing` lists them beforehand. */
EtcStatus etc_method_init(const EtcProgram *p, int32_t method, void *tables, void *const *pools,
                          void *scratch, EtcMethod **out, EtcError *e);

/* The k-th operator of the method that this build lacks, as "name" and "overload"; 0 past the
 * last. */
int etc_method_missing(const EtcProgram *p, int32_t method, int32_t k, const char **name,
                       const char **overload);

int32_t etc_method_n_inputs(const EtcMethod *m);
int32_t etc_method_n_outputs(const EtcMethod *m);
const EtcValue *etc_method_input(const EtcMethod *m, int32_t i);  /* type, and sizes or bounds */
const EtcValue *etc_method_output(const EtcMethod *m, int32_t i); /* after a run */

/* Copies a tensor into planned memory; where none is planned the caller's data itself is read,
 * never written, and must outlive the runs and lie outside the pools.  Other kinds must equal what
 * the file holds.  A dimension past its bound is refused, by name of the input's number. */
EtcStatus etc_method_set_input(EtcMethod *m, int32_t i, const EtcValue *v, EtcError *e);
EtcStatus etc_method_run(EtcMethod *m, EtcError *e);

/* How many element operations a run may take from now on; 0: any number.  An operator or delegate
 * counts the elements of all tensors that it is given, products, convolutions, pools and rankings
 * also what they multiply, add or compare, and each instruction counts one; what a delegate
 * computes within does not count.  A run that needs more ends with ETC_TOO_MUCH, before the operator that
 * does, or behind one that does no more than go through its tensors. */
void etc_method_limit(EtcMethod *m, int64_t work);

/* -- profiles */

typedef struct EtcExecuted { /* an instruction that was executed */
    uint32_t index;      /* in the method, its chains one behind the other */
    const char *name, *overload; /* of the operator; a delegate's id; NULL: a jump, move or free */
    int32_t delegate;            /* that it called, else -1 */
} EtcExecuted;

/* From now on `told` is called after each instruction; NULL ends that. */
typedef void EtcObserver(void *host, const EtcExecuted *step);
void etc_method_observe(EtcMethod *m, EtcObserver *told, void *host);

int32_t etc_method_n_delegates(const EtcMethod *m);
/* EtcDelegate's of the same names; 0 where it has none. */
int32_t etc_method_parts(const EtcMethod *m, int32_t delegate, EtcPart *to, int32_t room);
int64_t etc_method_held_bytes(const EtcMethod *m, int32_t delegate);

void etc_method_free(EtcMethod *m); /* ends its delegates; the memory stays the caller's */

#endif
