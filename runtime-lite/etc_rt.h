/* etc_rt.h -- the interface of runtime-lite, which loads a .pte, checks everything it reads, and
 * runs it.  It uses no heap, no stdio and no global variables.  The header also has the numbers
 * that compiler and runtime share, and the interface of a kernel.
 *
 * Memory.  The caller provides all memory.  The file (mapped or in flash) must outlive the
 * program.  Only the initial values of mutable buffers are copied out of it.  These are the steps:
 *
 *     EtcProgram p;
 *     EtcMethod *m;
 *     EtcMemory need;
 *     EtcError e = {0};
 *     etc_program_open(&p, file, n_bytes, &e);        verifies the file
 *     etc_program_memory(&p, 0, &need, &e);           says what method 0 needs
 *     etc_method_init(&p, 0, tables, pools, scratch, &m, &e);
 *     etc_method_set_input(m, 0, &value, &e);
 *     etc_method_run(m, &e);
 *     etc_method_output(m, 0);
 *     etc_method_free(m);                             needed only if there are delegates
 *
 * Every function that can fail returns an EtcStatus and describes the failure in *e.  Emitted C
 * does not include this file. */
#ifndef ETC_RT_H
#define ETC_RT_H

#include <stddef.h>
#include <stdint.h>

/* -- data types -------------------------------------------------------------------------- */

/* X(id, number in a .pte, bytes, name in textual IR).  C64 is complex: pairs of F32. */
#define ETC_DTYPES(X)                                                                 \
    X(U8, 0, 1, u8) X(I8, 1, 1, i8) X(I16, 2, 2, i16) X(I32, 3, 4, i32)               \
    X(I64, 4, 8, i64) X(F16, 5, 2, f16) X(F32, 6, 4, f32) X(F64, 7, 8, f64)           \
    X(C64, 9, 8, c64) X(BOOL, 11, 1, bool) X(BF16, 15, 2, bf16)                       \
    X(F8E5M2, 23, 1, f8e5m2)                                                          \
    X(F8E4M3FN, 24, 1, f8e4m3fn) X(F8E5M2FNUZ, 25, 1, f8e5m2fnuz)                     \
    X(F8E4M3FNUZ, 26, 1, f8e4m3fnuz) X(U16, 27, 2, u16) X(U32, 28, 4, u32)            \
    X(U64, 29, 8, u64)

typedef enum EtcDtype {
#define X(id, code, size, name) ETC_##id = (code),
    ETC_DTYPES(X)
#undef X
} EtcDtype;

size_t etc_dtype_size(int dtype); /* the bytes of one element; 0: the number is no dtype */

/* -- status ------------------------------------------------------------------------------ */

typedef enum EtcStatus {
    ETC_OK = 0,
    ETC_BAD_ARG = 1,     /* an argument of a call is wrong: its kind, dtype or shape, or NULL */
    ETC_BAD_FILE = 2,    /* the file contradicts itself or its format */
    ETC_UNSUPPORTED = 3, /* this build lacks an operator, dtype or delegate */
    ETC_NO_MEMORY = 4,   /* the caller's memory is too small or not aligned */
    ETC_LIMIT = 5,       /* a limit of this runtime: instructions of a run, tables, delegates */
    ETC_TOO_MUCH = 6,    /* a run needs more element operations than etc_method_limit allows */
    ETC_SINGULAR = 7     /* a matrix has no inverse or no factorization */
} EtcStatus;

typedef struct EtcError {
    EtcStatus status;
    const char *what;     /* a constant text: "offset past the end of the segment" */
    const char *name;     /* a name in the file: a method, an operator "aten::add"; or NULL */
    const char *overload; /* the operator's overload, "out"; or NULL */
    int64_t index;        /* the number of the instruction, value or input that is wrong; or -1 */
} EtcError;

/* -- values ------------------------------------------------------------------------------ */

enum { ETC_MAX_RANK = 16, ETC_MAX_STEPS = 10000000 };

/* A dense tensor.  The runtime guarantees that its bytes fit into int64_t and into `capacity`. */
typedef struct EtcTensor {
    void *data;
    EtcDtype dtype;
    int32_t rank;
    int32_t *dim;         /* the sizes in the model's order; kernels set those of results */
    const uint8_t *order; /* the dimensions in memory, outermost first; NULL: 0, 1, 2 ... */
    int64_t capacity;     /* the bytes at `data` */
    uint8_t is_static;    /* the sizes may not change */
    uint8_t is_const;     /* it lies in the file or belongs to the caller: it may not be a result */
} EtcTensor;

/* The kinds of values; the numbers are those of the official runtime's EValue tags. */
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
        struct { /* LIST_INT: values INT, which a run may change; LIST_*TENSOR: TENSOR or NONE */
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

/* Sets the sizes of a result.  Returns ETC_BAD_ARG if it is static and they differ, if the rank
 * differs, if the bytes exceed its capacity, or if it is a constant. */
EtcStatus etc_resize(EtcTensor *t, const int32_t *dim, int32_t rank);

/* -- kernels ----------------------------------------------------------------------------- */

struct EtcCores; /* kernels/cores.h: dense cores built for one instruction set */

enum { ETC_SCRATCH_BYTES = 64 * 1024 }; /* the scratch memory of a kernel */
enum { ETC_PACKED_COLUMNS = 16 };       /* the columns of a block of packed weights: packed.h */

/* One call of a kernel.  arg[] has the arguments of the `out` overload's schema in its order, then
 * the results, which are tensors.  (For a row without `out`, it has those of the functional
 * schema.) If the schema has all four of dtype, layout, device and pin_memory, they are left out.
 * n_args may be one larger: a .pte appends a return slot.
 *
 * A kernel checks counts, tags, dtypes and shapes itself, resizes its results, then runs a
 * core.  Results do not overlap each other, nor inputs except where the row's `inplace` allows
 * it.  A kernel may rely on this for the numbers that it computes, but not for memory safety: it
 * checks every index again that it reads back from memory which it has written. */
typedef struct EtcCall {
    EtcValue *const *arg;
    int32_t n_args;
    void *scratch; /* ETC_SCRATCH_BYTES, aligned to 64 bytes */
    const struct EtcCores *cores;
    int64_t *work; /* how many element operations are left; NULL: there is no limit */
} EtcCall;

typedef EtcStatus EtcKernel(const EtcCall *c);

typedef struct EtcKernelRow {
    const char *name; /* "aten::add.out", the key in the official runtime */
    EtcKernel *run;
    int32_t n_args; /* the least number of arguments, with results, without the return slot */
    int32_t first_out, n_outs; /* the results: n_outs tensors, or one list of tensors */
    uint32_t inplace;          /* bit i: the first result may lie exactly where argument i lies */
} EtcKernelRow;

/* Finds a kernel by its name and overload in a .pte ("" is no overload).  Returns NULL if this
 * build has none.  The rows of kernels/kernels.def are sorted by name. */
const EtcKernelRow *etc_kernel_find(const char *name, const char *overload);
const EtcKernelRow *etc_kernel_at(int32_t i); /* NULL: there are fewer */

/* Returns the cores for the best instruction set of this CPU.  All give the same bits. */
const struct EtcCores *etc_cores(void);

/* -- delegates --------------------------------------------------------------------------- */

typedef struct EtcProgram EtcProgram;

typedef struct EtcBlob {       /* the bytes in the file that a delegate is initialised with */
    const EtcProgram *program; /* for its named data; valid only during init */
    const uint8_t *data;       /* not checked; aligned to 4 bytes */
    uint64_t n_bytes;
} EtcBlob;

typedef struct EtcPart { /* an operation of a delegate in its last run */
    const char *name;    /* the delegate's name for it; valid as long as the delegate */
    int64_t handle;      /* the debug_handle of its node in the blob; -1: unknown */
    int64_t nanoseconds;
} EtcPart;

/* A delegate, which runs parts of a method.  The host provides it.  It may allocate memory, unlike
 * the core.  If a function fails, it describes why in *e; the core adds the delegate's id. */
typedef struct EtcDelegate {
    const char *id; /* its name in a .pte: "XnnpackBackend" */
    void *host;     /* passed to init */
    EtcStatus (*init)(void *host, const EtcBlob *blob, void **state, EtcError *e);
    /* Runs one call with these values.  Tensors have memory for their sizes; run resizes
     * results. */
    EtcStatus (*run)(void *state, EtcValue *const *arg, int32_t n_args, EtcError *e);
    void (*free)(void *state);
    /* Writes the operations of the last run, at most `room` of them, in their order, and returns
     * how many there were: 0 if the host wants no profile.  May be NULL. */
    int32_t (*parts)(void *state, EtcPart *to, int32_t room);
    /* Returns the bytes of the weights that the delegate keeps.  May be NULL. */
    int64_t (*held_bytes)(const void *state);
} EtcDelegate;

/* -- programs ---------------------------------------------------------------------------- */

/* Opaque.  It is defined here only so that a caller can have one without a heap. */
struct EtcProgram {
    const uint8_t *file;
    size_t n_bytes;
    size_t flat_bytes;           /* of the FlatBuffer, which starts at byte 0 */
    size_t segment_base;         /* 0: there are no segments */
    uint32_t root;               /* the offset of the root table */
    const EtcDelegate *delegate; /* set by etc_program_offer */
    int32_t n_delegates;
    const EtcKernelRow *kernel; /* set by etc_program_kernels */
    int32_t n_kernels;
    uint8_t has_zero_pools; /* set by etc_program_zeroed */
};

/* The memory that a method needs. */
typedef struct EtcMemory {
    size_t table_bytes;    /* values, tensors, instructions; aligned to 16 */
    int32_t n_pools;       /* the planned pools have the numbers 1 .. n_pools */
    size_t pool_bytes[16]; /* by pool - 1; aligned to 64; with delegates larger than planned */
    size_t scratch_bytes;  /* aligned to 64 */
} EtcMemory;

typedef struct EtcMethod EtcMethod; /* lies at the start of `tables` */

/* Verifies the header, the FlatBuffer and the segments.  The FlatBuffer may have tables 64 deep and
 * 1,000,000 tables; its strings need not be UTF-8.  `file` must be aligned to 16 bytes. */
EtcStatus etc_program_open(EtcProgram *p, const void *file, size_t n_bytes, EtcError *e);

/* Sets the delegates for methods that are initialised later.  The list must outlive them. */
void etc_program_offer(EtcProgram *p, const EtcDelegate *list, int32_t n);

/* Sets kernels of the host for operators that this build lacks, in methods that are initialised
 * later.  The list must outlive them.  EtcCall says how a kernel gets its arguments; it checks
 * them itself and sets the sizes of its results with etc_resize.  etc_method_init refuses a row
 * that contradicts itself or writes more than 16 arguments (ETC_BAD_ARG).  A run ends if a
 * kernel leaves a result larger than its memory, or with another dtype or place. */
void etc_program_kernels(EtcProgram *p, const EtcKernelRow *list, int32_t n);

/* Says that the pools of methods that are initialised later are zero, as fresh pages of the system
 * are.  Initialising them then touches only what has an initial value. */
void etc_program_zeroed(EtcProgram *p);

/* Data that a file has under a name.  Keys may be equal and may contain NULs.  A reader of the data
 * checks that, and the meaning of the bytes. */
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
int32_t etc_program_find_method(const EtcProgram *p, const char *name); /* -1: there is none */

EtcStatus etc_program_memory(const EtcProgram *p, int32_t method, EtcMemory *m, EtcError *e);

/* Builds the method in `tables` and checks every value, tensor, instruction and operator.  pools[i]
 * is pool i + 1.  Mutable buffers get their initial values, all others zero.  If operators are
 * missing, *e names the first and counts them; etc_method_missing lists them all. */
EtcStatus etc_method_init(const EtcProgram *p, int32_t method, void *tables, void *const *pools,
                          void *scratch, EtcMethod **out, EtcError *e);

/* Gets the name and overload of operator k, counted from 0, among those that this build lacks.
 * Returns 0 if there are not that many. */
int etc_method_missing(const EtcProgram *p, int32_t method, int32_t k, const char **name,
                       const char **overload);

int32_t etc_method_n_inputs(const EtcMethod *m);
int32_t etc_method_n_outputs(const EtcMethod *m);
const EtcValue *etc_method_input(const EtcMethod *m, int32_t i);  /* type and sizes or bounds */
const EtcValue *etc_method_output(const EtcMethod *m, int32_t i); /* valid after a run */

/* Sets input i.  If the input has planned memory, the tensor is copied there.  If not, runs read
 * the caller's data, which must outlive them and lie outside the pools; they never write it.  A
 * value that is no tensor must equal the one in the file.  A size above its bound is refused. */
EtcStatus etc_method_set_input(EtcMethod *m, int32_t i, const EtcValue *v, EtcError *e);
EtcStatus etc_method_run(EtcMethod *m, EtcError *e);

/* Limits the element operations of later runs; 0: no limit.  An operator or delegate counts the
 * elements of all its tensors; products, convolutions, pools and sorting also count what they
 * multiply, add or compare; each instruction counts one.  What a delegate computes inside does not
 * count.  A run that needs more ends with ETC_TOO_MUCH. */
void etc_method_limit(EtcMethod *m, int64_t work);

/* -- profiles ---------------------------------------------------------------------------- */

typedef struct EtcExecuted {     /* an instruction that was executed */
    uint32_t index;              /* in the method; its chains are counted one after the other */
    const char *name, *overload; /* the operator, or a delegate's id; NULL: a jump, move or free */
    int32_t delegate;            /* the number of the delegate that was called, or -1 */
} EtcExecuted;

/* Calls `observer` after each instruction of later runs; NULL ends the calls. */
typedef void EtcObserver(void *host, const EtcExecuted *step);
void etc_method_observe(EtcMethod *m, EtcObserver *observer, void *host);

int32_t etc_method_n_delegates(const EtcMethod *m);
/* These call the functions of EtcDelegate; 0 if the delegate has none. */
int32_t etc_method_parts(const EtcMethod *m, int32_t delegate, EtcPart *to, int32_t room);
int64_t etc_method_held_bytes(const EtcMethod *m, int32_t delegate);

void etc_method_free(EtcMethod *m); /* frees its delegates; the memory belongs to the caller */

#endif
