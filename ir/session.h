/* session.h -- the settings of a compilation, and its results that are no part of the program.
 *
 * Every program has a session, which is made with it in its arena.  The driver fills it before
 * the passes run.  The textual IR contains none of it. */
#ifndef ETC_SESSION_H
#define ETC_SESSION_H

#include "ir/ir.h"

/* -- tails ------------------------------------------------------------------------------- */

/* A tail: a kind of output and its capabilities.  The rows are in ir/session.c. */
typedef struct Tail {
    const char *name;                /* the name for --tail */
    const char *what;                /* its name in messages: "a .pte" */
    unsigned id;                     /* a part of the identity of statistics; never changes */
    /* Returns whether it has a kernel or template for the whole operator. */
    bool (*takes)(const Session *s, const OpInfo *op);
    bool has_backends;               /* regions can be calls of delegates */
    bool is_tiled;        /* operators with the flag CUT stay whole at core until they are cut */
    bool has_groups;      /* a planned program has groups; else each node calls a kernel */
    bool views_when_run;  /* a view with symbolic sizes is a node that runs */
    bool checks_when_run; /* sizes are checked by nodes; else by code around them */
    bool plans_ports;     /* inputs and outputs of a method have places in the plan */
    bool plans_states;    /* mutable states lie in pool 1; else in a memory of their own */
} Tail;

extern const Tail tail_pte, tail_c;
const Tail *tail_find(const char *name); /* name NULL: the first one, a .pte */

/* A version of the ExecuTorch runtime as a number; later versions have larger numbers. */
#define RUNTIME_VERSION(major, minor, patch) (((major)*1000 + (minor)) * 1000 + (patch))
/* The number of runtime-lite, which has the kernels of all of them, and those of rows with LITE. */
#define RUNTIME_LITE INT32_MAX

/* -- sessions ------------------------------------------------------------------------------ */

struct Backend;         /* ir/backend.h */
struct PartitionReport; /* partition/partition.h */
struct QuantJob;        /* quant/quant.h */

/* An input or output that became integers: real = (q - zero) * scale. */
typedef struct PortScale {
    const Graph *method;
    int index;
    bool is_output;
    double scale;
    int64_t zero;
} PortScale;

/* A memory of the device that C is written for. */
typedef struct MemoryBank {
    const char *name; /* in small letters; it is also the parameter of NAME_run */
    int64_t bytes;
    const char *section; /* the linker's section for constants; NULL: that of all constants */
} MemoryBank;

typedef struct MemoryBanks { /* the fastest first */
    MemoryBank *item;
    int n;
} MemoryBanks;

struct Session {
    Arena *arena; /* that of the program */
    const Tail *tail;
    const struct Backend *const *backend; /* the chain of backends, in the order of --backend */
    int n_backends;
    bool composes;     /* operators of --ops are replaced by their composites, if they have one */
    bool delegate_all; /* a backend gets everything that it takes, whatever the cost */
    int runtime; /* the oldest runtime that must run the .pte, as RUNTIME_VERSION, or RUNTIME_LITE; 0: any */
    const bool *lacks; /* by OpId: this runtime has no kernel for it; NULL: it has all kernels */
    struct PartitionReport *partition; /* result: the decisions; NULL before pass partition */
    struct QuantJob *quant;            /* the job of pass quantize; NULL: there is none */
    bool borrows_inputs; /* --borrow-inputs: the .pte reads inputs in the caller's memory */
    bool shares_io;      /* --share-io: inputs and outputs of the C lie in its arena */
    MemoryBanks ram;     /* pool k + 1 of a plan is ram.item[k]; none: there is one pool */
    MemoryBanks rom;     /* banks for constants of the C */
    bool large_first;    /* banks are filled with the largest values first */
    bool rounds_products; /* --math bf16: products of floats round their operands to bfloat16 */
    bool is_fixed_point; /* the C is for a target whose integers end in fixed point */
    bool has_io;         /* pass integer_io makes float inputs and outputs integers of `io` */
    EtcDtype io;         /* i8 or u8 */
    PortScale *port;     /* result: the inputs and outputs that became integers */
    int n_ports;
    const void *record; /* the bytes that the .pte stores for `etc refit`; NULL: none */
    int64_t n_record;
    const char *fast_library; /* the library that multiplied in calibration; NULL: our kernels */
    int n_notes;
    const char **note; /* what passes chose and why */
};

Session *session_new(Arena *a);                /* for a .pte without backends */
bool session_takes(const Session *s, OpId op); /* the tail takes the whole operator */
/* Returns whether there is a kernel that the .pte may call for the whole operator. */
bool session_calls(const Session *s, const OpInfo *op);
void session_note(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
