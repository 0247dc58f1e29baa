/* emit.h -- prints what is planned: a .pte for the official runtime, or C.
 *
 * A file is a list of pieces that point into the program, its arena and the mapped model: weights
 * are never copied on their way to the disk.  The pieces live as long as the arena and the program.
 */
#ifndef ETC_EMIT_H
#define ETC_EMIT_H

#include "ir/ir.h"

/* -- files ------------------------------------------------------------------------------- */

/* `n` bytes at `data`, then `zeros` zero bytes.  Where `make` is not NULL, it writes bytes from ..
 * from + n - 1 of the piece to `to`, as the file is written, and `data` is its argument; from and n
 * are multiples of 4. */
typedef struct OutPiece {
    const void *data;
    int64_t n;
    int64_t zeros;
    void (*make)(const void *data, int64_t from, int64_t n, uint8_t *to);
} OutPiece;

typedef struct OutFile {
    OutPiece *piece;
    int n;
} OutFile;

/* Writes elsewhere in the folder of `path` and renames, so that `path` is whole or as it was; a
 * symbolic link is followed, a device or pipe written as it is, "-" is stdout. */
MUST_USE bool out_write(const OutFile *f, const char *path, Diag *d);

/* Files that appear together or not at all.  {.arena = a} is an empty batch. */
typedef struct OutBatch {
    Arena *arena;
    struct Outgoing *file;
    int n;
    struct OutSignals *signals; /* out.c: those that wait until it is committed or discarded */
    bool has_no_locks;          /* out.c: a file system knows none */
    int n_waits;                /* out.c: for the files of other runs */
} OutBatch;

/* Adds a file, of which nothing is written yet: pieces and path must outlive the batch.  Of this
 * and what follows, false: reported; the caller discards the batch. */
MUST_USE bool out_add(OutBatch *b, const OutFile *f, const char *path, Diag *d);
/* Writes each file whole, in the folder of its path; in the end what is no regular file, as it
 * is. */
MUST_USE bool out_stage(OutBatch *b, Diag *d);
/* Renames each to its place, not while another run does so in one of the folders; empties the
 * batch. */
MUST_USE bool out_commit(OutBatch *b, Diag *d);
void out_discard(OutBatch *b);         /* removes what is written; empties the batch */

/* Whether a user's function may be called so: a name of C that no keyword, library function or text
 * of emitted C has.  False: *why says what is wrong with it. */
bool c_name_is_free(const char *name, const char **why);
/* The same of a bank in small letters. */
bool c_bank_is_free(const char *name, const char **why);

/* The name under which a .pte keeps what `etc refit` wants to know. */
#define PTE_REFIT_KEY "etc.refit"

/* -- .pte -------------------------------------------------------------------------------- */

/* The node that each instruction of a method was made for; NULL: an update's copy. */
typedef struct PteSource {
    const char *method;
    const Node **node;
    int n;
} PteSource;

typedef struct PteStats {
    int64_t file_bytes;
    int64_t flat_bytes;     /* the FlatBuffer and its header */
    int64_t constant_bytes; /* the constant segment; equal constants counted once */
    int n_values, n_instructions, n_operators; /* of all methods */
    PteSource *source; /* by method, in the file's order */
    int n_sources;
} PteStats;

/* Builds the .pte of a planned program of the pte tail: the FlatBuffer in `a`, everything else
 * pointing at the bytes of states.  Reports all faults before it returns false. */
MUST_USE bool emit_pte(const Program *p, Arena *a, OutFile *out, PteStats *stats, Diag *d);

/* Calls of a method, and what each should give. */
typedef struct BundleCase {
    EtcValue *in, *out; /* tensors, ints, doubles and bools */
} BundleCase;

typedef struct Bundle {
    const char *method;
    int n_in, n_out, n;
    BundleCase *item;
} Bundle;

/* Builds a BundledProgram of the n bytes of a .pte, in `a`.  False: reported. */
MUST_USE bool emit_bundle(const Bundle *b, const uint8_t *pte, size_t n, Arena *a, OutFile *out, Diag *d);

/* -- C ------------------------------------------------------------------------------------- */

/* A CPU that C is written for: a row of emit/target.c. */
typedef struct Target {
    const char *name;      /* of --target */
    const char *machine;   /* its name in uname(2); NULL: any */
    const char *condition; /* of #if, where a compiler makes code for such machines; NULL: any */
    const char *features;  /* that code is made with, as GCC's and clang's target() spell them; NULL:
                              those of the compiler's flags */
    const char *gcc_features; /* as GCC alone spells them; NULL: there is no difference */
    const char *macros;    /* what clang would define for them on its command line: lines of text */
    const char *header;    /* of the intrinsics that code may call; NULL where there are no features */
    const char *isa;       /* X of runtime-lite/kernels/isa_X.h; NULL: that of the compiler's flags */
    const char *cores;     /* the table of cores in runtime-lite that has these features, and the
                              suffix of its file where it is a variant; NULL: there is none */
    const char *test;      /* an expression of C, whether the CPU at run time has them; NULL: it is
                              no variant of a file for any CPU */
    const char *mcu;       /* X of kernels/mcu_X.h, for products of integers in fixed point; NULL: these
                              end in floats */
    const char *build;     /* how a compiler for it is called; NULL: cc, without a flag */
    int vector_bytes;
    bool has_fma;       /* an instruction for fused multiply-add, which is emulated otherwise */
    bool has_variants;  /* files for CPUs with wider vectors go with it: all rows with a test */
    int64_t work_bytes; /* working memory of kernels, at most */
} Target;

extern const Target target_row[]; /* the first is generic; wider vectors behind narrower ones */
extern const int n_targets;
const Target *target_find(const char *name); /* NULL: there is none of that name */
/* The row for a machine of that name whose best table of cores goes by the other; else generic. */
const Target *target_host(const char *machine, const char *cores);

typedef enum WeightsAs { WEIGHTS_AUTO, WEIGHTS_ARRAY, WEIGHTS_INCBIN } WeightsAs;

typedef struct COptions {
    const char *stem;  /* OUT of OUT.c as the user gave it; names files and functions */
    bool main;         /* also OUT_main.c */
    WeightsAs weights; /* WEIGHTS_AUTO: arrays below 256 KiB, else incbin */
    const Target *target; /* NULL: generic */
    const char *build_files; /* cmake, meson, zephyr or arduino: also for this one; NULL: none */
} COptions;

typedef struct CFile {
    const char *suffix; /* ".c", ".h", "_weights.S" ... after the stem */
    const char *path;   /* the whole of it, where the name does not come from the stem; else NULL */
    const char *first;  /* with `path`: one that is there already is replaced only if it begins so */
    OutFile out;
} CFile;

/* What a bank of the device has and the model takes of it. */
typedef struct CBank {
    const char *name, *section; /* section of constants: as it was given */
    bool is_const;
    int64_t size, bytes, values; /* bytes of it; wanted, maybe more; and those that hold values */
    const char **missed;         /* what does not fit, as texts */
    int n_missed;
} CBank;

typedef struct CFiles {
    CFile *file;
    int n;
    CBank *bank; /* as --bank gives them, those of constants last; the caller checks their room */
    int n_banks;
    int64_t scratch; /* bytes of the arena that kernels work in */
} CFiles;

/* One of the models of a file. */
typedef struct CModel {
    const Program *p;
    const char *name; /* NAME of NAME_run; NULL: the file's */
    int64_t bound;    /* bytes live at once, which no plan goes below: for the header's comment */
} CModel;

/* Prints planned programs of the c tail; docs/emitted_c.md says what the files hold.  Pieces
 * point into `a` and the programs' weights.  Reports every node it has no C for. */
MUST_USE bool emit_c(const CModel *model, int n, const COptions *o, Arena *a, CFiles *out, Diag *d);
/* What stands against files for a build system beside OUT.c; NULL: nothing. */
const char *build_files_fault(const char *system, const char *stem, bool main, Arena *a);

#endif
