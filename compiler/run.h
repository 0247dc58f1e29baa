/* run.h -- programs that run: a .pte, or emitted C. */
#ifndef ETC_COMPILER_RUN_H
#define ETC_COMPILER_RUN_H

#include "compiler/compiler.h"

/* -- pte_file.c: the contents of a .pte ---------------------------------------------------- */

typedef struct PteOperator {
    const char *name; /* "aten::add.out" */
    int calls;
    bool is_built_in; /* runtime-lite has it */
} PteOperator;

typedef struct PteEnd { /* an input or output of a method */
    const char *kind;   /* "tensor", "int", ... */
    const char *dtype;  /* the three of a tensor */
    int rank;
    const int32_t *dim;
    bool is_dynamic; /* the sizes are upper bounds */
} PteEnd;

/* The blob of a delegate. */
typedef struct PteBlob {
    const char *id; /* the id of the backend */
    uint64_t n_bytes;
    const char *wrong; /* why it could not be read, or NULL; then the fields below are not set */
    bool is_read;      /* it is a blob of XNNPACK, and was read */
    int n_values, n_constants;
    int *n_nodes; /* by XnnKind */
} PteBlob;

typedef struct PteMethod {
    const char *name;
    int n_ops, n_in, n_out, n_delegates, n_pools;
    PteOperator *op;
    PteEnd *in, *out;
    PteBlob *delegate; /* one for each delegate */
    int64_t *pool;     /* the planned bytes of each pool */
    uint32_t dtypes;   /* bit n: a tensor has dtype n */
    bool has_doubles, has_unknown_dtypes;
} PteMethod;

/* Maps and verifies a .pte. */
MUST_USE bool pte_open(Files *files, const char *path, EtcProgram *p, Diag *d);

/* Describes a method.  p must have been opened by etc_program_open, which verifies what is read
 * here. */
PteMethod pte_method(const EtcProgram *p, int32_t method, Arena *a);

extern const char *const xnn_node_name[]; /* by XnnKind */

/* Returns the bytes of a file in one block, aligned to 64. */
const uint8_t *join_pieces(const OutFile *f, Arena *a, size_t *n);

/* -- delegates.c --------------------------------------------------------------------------- */

typedef struct Delegates {
    EtcDelegate list[1];
    int n;
    void *host;
} Delegates;

/* Starts the delegates of this program; with `profiles` they record what they do. */
MUST_USE bool delegates_start(int threads, bool profiles, Delegates *to, Diag *d);
void delegates_stop(const Delegates *d);
bool delegates_have(const char *id); /* this program has the delegate */

/* -- runner.c ------------------------------------------------------------------------------ */

/* Runs a .pte, or a model that is compiled first.  The caller sets .o, .arena and .diag, and the
 * other fields to 0. */
typedef struct Runner {
    const Options *o;
    Arena *arena;
    Diag *diag;
    bool profiles;         /* delegates record what they do */
    const Program *source; /* the compiled model; NULL: the model is a .pte */
    PteStats stats;        /* of the compiled model */
    EtcProgram file;
    const Graph *graph; /* the method of the compiled model, or NULL */
    Delegates delegates;
    EtcMethod *method;
    PteMethod says; /* the method as the file describes it */
    EtcMemory need;
    int64_t most, held; /* the bytes that the program may take, and those that it has taken */
} Runner;

bool runner_load(Runner *r);
bool runner_init(Runner *r); /* call runner_end after it, also if it fails */
void runner_end(Runner *r);  /* afterwards runner_init may be called again */

/* Counts bytes before they are allocated.  Fails if they exceed --memory-limit. */
bool runner_takes(Runner *r, size_t bytes, const char *what);

bool runner_set_input(const Runner *r, int i, const EtcValue *v);
/* Sets the inputs of --input; reports all that are wrong. */
bool runner_set_inputs(const Runner *r, const Strings *in);
bool runner_call(const Runner *r);

/* If the file needs XNNPACK and this program does not have it, replaces the process by etc-xnn,
 * which lies beside this program or in PATH.  Returns if that is not necessary or fails. */
void runner_become_xnn(const EtcProgram *file, const Options *o, Arena *a);

/* -- bench.c --------------------------------------------------------------------------------- */

/* Measures the median of --runs calls of a .pte. */
MUST_USE bool bench_median(const Options *o, Arena *a, Diag *d, double *seconds);

/* -- diff.c: for verify too ------------------------------------------------------------------ */

bool numbers_agree(double a, double b, double atol, double rtol); /* |a - b| <= atol + rtol |a| */
bool tensors_match(const EtcTensor *a, const EtcTensor *b);       /* they have the same sizes */
Graph *method_asked(const Options *o, const Program *p, Diag *d); /* the method of --method */
MUST_USE bool graph_can_run(const Graph *g, Diag *d);             /* the evaluator can run it */

/* -- c_program.c: emitted C, built and called ------------------------------------------------- */

typedef struct CProgram CProgram;

/* Builds FILE.c of the command line and the files that emit-c wrote beside it with $CC and $CFLAGS
 * in a temporary folder.  With --target it first compiles the model to C there. */
CProgram *c_program_build(const Options *o, Arena *a, Diag *d);
const Graph *c_program_method(const CProgram *c); /* the planned graph; only with --target */
void c_program_end(CProgram *c);                  /* removes the folder; c may be NULL */
/* Records a call of g's method.  c_program_run then makes all recorded calls in one process. */
MUST_USE bool c_program_stage(CProgram *c, const Graph *g, EtcTensor *const *in);
void c_program_stage_words(CProgram *c, const Strings *in); /* the same, with values of --input */
MUST_USE bool c_program_run(CProgram *c);
/* Returns an output of a call of the last run. */
const EtcTensor *c_program_output(const CProgram *c, int call, int output, int dtype, Arena *a);

/* -- debug_map.c --------------------------------------------------------------------------- */

typedef struct DebugNode { /* a text is NULL if it is not known */
    const char *node, *op, *module, *source;
} DebugNode;

typedef struct DebugInstruction {
    DebugNode node, *part; /* part: the nodes in the region of a delegate */
    int n_parts;
} DebugInstruction;

typedef struct DebugMap { /* the instructions of one method */
    DebugInstruction *item;
    int n;
} DebugMap;

/* Adds the file of --debug-map for a .pte that was emitted. */
MUST_USE bool debug_map_add(const Options *o, const PteStats *s, OutBatch *out, Arena *a, Diag *d);
/* Reads the method of --method from the file of --map. */
MUST_USE bool debug_map_read(const Options *o, DebugMap *out, Arena *a, Diag *d);

/* -- etdump.c ------------------------------------------------------------------------------ */

typedef struct EtEvent {         /* all events of one name at one instruction */
    const char *name, *delegate; /* delegate: the delegate's name for the event, or NULL */
    int32_t instruction, number; /* number: the delegate's id of the event; -1: none */
    int64_t calls;
    uint64_t ticks, least, most; /* the sum, and the extremes of one call */
} EtEvent;

typedef struct EtDump {
    int n_runs, n;
    EtEvent *event; /* sorted by instruction */
} EtDump;

/* Reads an ETDump at an address that is a multiple of 8.  Returns NULL, or what is wrong with
 * it. */
const char *etdump_read(const uint8_t *data, size_t n, Arena *a, EtDump *out);
MUST_USE bool etdump_inspect(const Options *o, Arena *a, Diag *d); /* `etc inspect` of an ETDump */

typedef struct EtRecord EtRecord;

EtRecord *etdump_start(Runner *r); /* records the method of an initialised runner */
void etdump_begin(EtRecord *x);    /* call it before each call of the method, */
void etdump_end_call(EtRecord *x); /* and this one after it */
/* Adds the file of --etdump. */
MUST_USE bool etdump_add(EtRecord *x, OutBatch *out, Diag *d);

#endif
