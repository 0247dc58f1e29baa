/* emit.h -- writes planned programs: a .pte for the official runtime, or C.
 *
 * A file is a list of pieces that point into the program, its arena and the mapped model, so
 * weights are never copied on their way to the disk.  The pieces are valid as long as the arena
 * and the program. */
#ifndef ETC_EMIT_H
#define ETC_EMIT_H

#include "ir/ir.h"

/* -- files ------------------------------------------------------------------------------- */

/* `n` bytes at `data`, then `zeros` zero bytes.  If `make` is not NULL, it makes the bytes from
 * `data` while the file is written. */
typedef struct OutPiece {
    const void *data;
    int64_t n;
    int64_t zeros;
    MakeBytes *make;
} OutPiece;

typedef struct OutFile {
    OutPiece *piece;
    int n;
} OutFile;

/* Writes a temporary file in the folder of `path` and renames it, so that `path` is either
 * complete or unchanged.  Symbolic links are followed, a device or pipe is written directly, and
 * "-" is stdout. */
MUST_USE bool out_write(const OutFile *f, const char *path, Diag *d);

/* Files that appear together or not at all.  {.arena = a} is an empty batch. */
typedef struct OutBatch {
    Arena *arena;
    struct Outgoing *file;
    int n;
    struct OutSignals *signals; /* out.c: signals that are held until the batch ends */
    bool has_no_locks;          /* out.c: the file system has no locks */
    int n_waits;                /* out.c: how often it waited for another run */
} OutBatch;

/* Adds a file; nothing is written yet.  Pieces and path must outlive the batch.  If this or one
 * of the next functions returns false, which is reported, the caller discards the batch. */
MUST_USE bool out_add(OutBatch *b, const OutFile *f, const char *path, Diag *d);
/* Writes each file to a temporary one in its folder; then writes devices and pipes directly. */
MUST_USE bool out_stage(OutBatch *b, Diag *d);
/* Renames each file to its place and empties the batch.  It waits while another run renames
 * files in one of the folders. */
MUST_USE bool out_commit(OutBatch *b, Diag *d);
void out_discard(OutBatch *b); /* removes what was written and empties the batch */

/* Returns whether a user's function may have this name: an identifier of C that is no keyword,
 * no library function and no name in emitted C.  If not, *why says so. */
bool c_name_is_free(const char *name, const char **why);
/* The same for a bank, whose name is in small letters. */
bool c_bank_is_free(const char *name, const char **why);

/* The key of the named data in which a .pte stores what `etc refit` needs. */
#define PTE_REFIT_KEY "etc.refit"

/* -- .pte -------------------------------------------------------------------------------- */

/* The node that each instruction of a method was made for; NULL: it copies an update. */
typedef struct PteSource {
    const char *method;
    const Node **node;
    int n;
} PteSource;

typedef struct PteStats {
    int64_t file_bytes;
    int64_t flat_bytes;     /* the FlatBuffer and its header */
    int64_t constant_bytes; /* the constant segment, in which equal constants are stored once */
    int n_values, n_instructions, n_operators; /* of all methods */
    PteSource *source;                         /* by method, in the order of the file */
    int n_sources;
} PteStats;

/* Builds the .pte of a planned program of the pte tail.  The FlatBuffer lies in `a`; all other
 * pieces point to the bytes of states.  Reports everything that is wrong before it returns
 * false. */
MUST_USE bool emit_pte(const Program *p, Arena *a, OutFile *out, PteStats *stats, Diag *d);

/* The inputs of a call and its expected outputs. */
typedef struct BundleCase {
    EtcValue *in, *out; /* tensors, ints, doubles and bools */
} BundleCase;

typedef struct Bundle {
    const char *method;
    int n_in, n_out, n;
    BundleCase *item;
} Bundle;

/* Builds a BundledProgram from the n bytes of a .pte, in `a`.  Returns false if that fails,
 * which is reported. */
MUST_USE bool emit_bundle(const Bundle *b, const uint8_t *pte, size_t n, Arena *a, OutFile *out, Diag *d);

/* -- C ------------------------------------------------------------------------------------- */

/* A CPU that C is written for: a row of emit/target.c. */
typedef struct Target {
    const char *name;         /* the name for --target */
    const char *machine;      /* the name of such machines in uname(2); NULL: any machine */
    const char *condition;    /* an #if condition: the compiler makes code for them; NULL: always */
    const char *features;     /* the instructions that code uses, in the form of target(); NULL:
                              those that the compiler's flags allow */
    const char *gcc_features; /* the same for GCC alone, if it differs; else NULL */
    const char *macros;       /* lines that define what clang would define for these features */
    const char *header;       /* the header of their intrinsics; NULL: there are no features */
    const char *isa;          /* X of runtime-lite/kernels/isa_X.h; NULL: by the compiler's flags */
    const char *cores;        /* what target_host calls the cores of such a CPU, and the suffix
                              of the file if it is a variant; NULL: there is none */
    const char *test;         /* an expression of C: the CPU has the features; NULL: the row
                              is no variant of files for any CPU */
    const char *mcu;   /* X of kernels/mcu_X.h, whose products of integers end in fixed point;
                              NULL: they end in floats */
    const char *build; /* the command of a compiler for it; NULL: cc without flags */
    int vector_bytes;
    bool only_for_bytes; /* the row is a variant only of models that multiply 8-bit integers or bfloat16 */
    int quad_channels;   /* weights of convolutions are in quads if this divides the input channels;
                            0: never */
    bool lacks_floats;  /* it has no instructions for floats: functions of the compiler compute them */
    bool has_fma;       /* it has fused multiply-adds, which are emulated otherwise */
    bool has_variants;  /* files for CPUs with wider vectors (the rows with a `test`) are added */
    int64_t work_bytes; /* the most scratch memory of kernels */
} Target;

/* The first row is generic.  Rows with wider vectors come after those with narrower ones. */
extern const Target target_row[];
extern const int n_targets;
const Target *target_find(const char *name); /* NULL: there is none of this name */
/* Returns the row for a machine (its name in uname) and its best cores: those of runtime-lite by
 * name, or "vnni" if it has AVX-512 with VNNI.  Else it returns generic. */
const Target *target_host(const char *machine, const char *cores);

typedef enum WeightsAs { WEIGHTS_AUTO, WEIGHTS_ARRAY, WEIGHTS_INCBIN } WeightsAs;

typedef struct COptions {
    const char *stem;        /* OUT of OUT.c; files and functions are named after it */
    bool main;               /* write OUT_main.c too */
    bool forecasts;          /* list the functions and what each costs: CFiles.layer */
    bool is_fast;            /* --math fast: convolutions may use Winograd's transforms */
    bool freestanding;       /* the C calls only what a C compiler itself calls; no variants */
    int parallel;            /* the most parts of a node that may run at once; 0: none */
    WeightsAs weights;       /* WEIGHTS_AUTO: arrays below 256 KiB, else incbin */
    const Target *target;    /* NULL: generic */
    const char *build_files; /* cmake, meson, zephyr or arduino: write its files too; NULL: none */
} COptions;

typedef struct CFile {
    const char *suffix; /* what follows the stem: ".c", ".h", "_weights.S" */
    const char *path;   /* the whole path, if it does not begin with the stem; else NULL */
    const char *first;  /* with `path`: an existing file is replaced only if it begins with this */
    OutFile out;
} CFile;

/* A bank of the device, and what the model needs of it. */
typedef struct CBank {
    const char *name, *section; /* `section` of constants may be NULL */
    bool is_const;
    int64_t size, bytes, values; /* its size, the bytes needed, and those for values */
    const char **missed;         /* texts: the values that do not fit */
    int n_missed;
} CBank;

/* A function of the C, and what it costs on a microcontroller. */
typedef struct CLayer {
    const char *function, *kernel; /* "node_relu"; what takes most of its time, or "" */
    Loc loc;
    const char *op;
    /* The multiply-adds of the model, and what the forecast counts: multiply-adds with those that
     * fill up blocks, elements that are gathered for them or read, elements of the result, and
     * rows of the result. */
    double macs, steps, terms, outputs, rows;
    int64_t flash, ram;          /* the constants that no function before it reads; the bytes of
                                    memory that are live while it runs */
    int stack;                   /* of a call of the model that ends in it; 0: it is not known */
    double instructions, cycles; /* below 0: no row of the table is for it */
} CLayer;

typedef struct CFiles {
    CFile *file;
    int n;
    CLayer *layer; /* of a target in fixed point, in the order of the calls, for one model */
    int n_layers;
    CBank *bank; /* those of --bank, banks of constants last; the caller checks that all fit */
    int n_banks;
    int64_t *scratch;  /* by model: the bytes of its memory that hold no values, but scratch */
    int n_models;
    int64_t all_scratch;
    uint32_t header;   /* a digest of NAME.h, which the other files check */
    int64_t constants; /* the bytes of weights and of the initial values of states */
    int code;          /* about the bytes of code of NAME.c on a microcontroller; 0: it is not known */
    int n_fast;        /* the convolutions that use Winograd's transforms */
} CFiles;

/* One of the models of a file. */
typedef struct CModel {
    const Program *p;
    const char *name; /* NAME of NAME_run; NULL: it is that of the file */
    int64_t bound;    /* the most bytes that are live at once, for the header's comment */
} CModel;

/* Prints planned programs of the c tail; docs/emitted_c.md describes the files.  Pieces point
 * into `a` and to the weights of the programs.  Reports every node without C before it returns
 * false. */
MUST_USE bool emit_c(const CModel *model, int n, const COptions *o, Arena *a, CFiles *out, Diag *d);
/* Returns why files for this build system cannot be written beside OUT.c, or NULL. */
const char *build_files_fault(const char *system, const char *stem, bool main, Arena *a);

#endif
