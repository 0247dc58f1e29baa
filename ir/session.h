/* session.h -- what a compilation is asked to make of a program, and what it found out on the way.
 *
 * Every program has one, made with it in its arena; the driver fills it before the passes run.
 * None of it stands in the textual IR.
 */
#ifndef ETC_SESSION_H
#define ETC_SESSION_H

#include "ir/ir.h"

/* -- tails ------------------------------------------------------------------------------- */

/* A tail: a kind of output, and what that can express.  The rows stand in ir/session.c. */
typedef struct Tail {
    const char *name; /* of --tail */
    const char *what; /* as messages call it: "a .pte" */
    unsigned id;      /* in the identity of statistics: never changes */
    bool (*takes)(const OpInfo *op); /* whole, with a kernel or template of its own */
    bool has_backends;      /* parts of it may be calls of delegates */
    bool is_tiled;          /* composite ops wait at core to be cut (flag CUT) */
    bool has_groups;        /* nodes stand in groups when it is planned, else each calls a kernel */
    bool views_when_run;    /* a view of open sizes is a node that runs, not a name for bytes */
    bool checks_when_run;   /* sizes are checked by nodes, else by code around them */
    bool plans_ports;       /* inputs and outputs of a method have places in the plan */
    bool plans_states;      /* mutable states lie in the plan's first pool, else in one of theirs */
} Tail;

extern const Tail tail_pte, tail_c;
const Tail *tail_find(const char *name); /* of --tail; NULL: the first, a .pte */

/* A version of the ExecuTorch runtime, as a number that grows with it. */
#define RUNTIME_VERSION(major, minor, patch) (((major)*1000 + (minor)) * 1000 + (patch))

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
    const char *name; /* in small letters: a parameter of NAME_run is called so */
    int64_t bytes;
    const char *section; /* of constants: where the linker puts them; NULL: with all others */
} MemoryBank;

typedef struct MemoryBanks { /* the fastest first */
    MemoryBank *item;
    int n;
} MemoryBanks;

struct Session {
    Arena *arena; /* the program's */
    const Tail *tail;
    const struct Backend *const *backend; /* the chain that partition offers nodes to */
    int n_backends;
    bool composes; /* operators of a user's own by their composites, where they have any */
    bool delegate_all; /* what a backend takes it gets, whatever that costs */
    int runtime;       /* the oldest that is to run the .pte, as RUNTIME_VERSION; 0: any */
    const bool *lacks; /* of each OpId, whether that has no kernel of it; NULL: it has all */
    struct PartitionReport *partition; /* what was decided; NULL before */
    struct QuantJob *quant;   /* what pass quantize is to do; NULL: nothing */
    bool shares_io;         /* inputs and outputs of the C lie in its arena, as the plan says */
    MemoryBanks ram;              /* pool k + 1 of a plan is ram.item[k]; none: there is one pool */
    MemoryBanks rom;              /* for constants of the C */
    bool large_first;       /* banks are filled by size, as what is touched most did not fit */
    bool is_fixed_point;    /* the C is for a target that computes with integers in fixed point */
    bool has_io;            /* pass integer_io is to make inputs and outputs of float `io` */
    EtcDtype io;            /* i8 or u8 */
    PortScale *port;        /* those that it made so */
    int n_ports;
    const void *record; /* what the .pte keeps for `etc refit`, and its bytes; NULL: nothing */
    int64_t n_record;
    const char *fast_library; /* that multiplied while ranges were seen; NULL: our kernels did */
    int n_notes;
    const char **note; /* what passes chose and why, for those who ask */
};

Session *session_new(Arena *a); /* towards a .pte, without backends */
bool session_takes(const Session *s, OpId op); /* whole, in what the program is to become */
void session_note(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
