/* import.h -- readers of model files.  Each returns a Program at stage aten, or reports everything
 * that is wrong with the file.
 *
 * Nothing in a file is trusted: every index, size, offset and name is checked before it is
 * used.  Weights are not copied: their states point into a private writable mapping of the file,
 * which lasts as long as the process, so that passes can change them in place.  Files below 4
 * MiB are read into the arena instead. */
#ifndef ETC_IMPORT_H
#define ETC_IMPORT_H

#include "ir/table.h"

/* -- files: files.c -------------------------------------------------------------------------- */

/* A regular file that a run reads or writes. */
typedef struct File {
    const char *path; /* its name in messages */
    uint64_t inode;
    int64_t size;                 /* in bytes, when it was opened */
    int64_t seconds, nanoseconds; /* the time of its last change when it was opened */
    bool is_read, is_opened, is_written;
    bool is_taken;        /* it is an output, and its content is ready */
    bool is_kept;         /* it is mapped and read until the end, so it must not change */
    struct File *other;   /* the same file under another name that is read too */
    const uint8_t *given; /* bytes that stand for a file of this name, or NULL */
} File;

/* All files of a run.  Files are compared by device and inode, not by name, so that links and other
 * paths cannot make an output of an input, or two outputs of one file. */
typedef struct Files {
    Arena *arena;
    File **file; /* in the order in which they were named */
    int n, n_given;
    Table known;
} Files;

Files *files_new(Arena *a);

/* All functions below that return false, NULL or -1 have reported why. */

/* Announce a file that will be read, or written.  They fail if a file is both read and written, or
 * written twice.  They do not check whether it can be opened; opening it does. */
MUST_USE bool file_will_be_read(Files *f, const char *path, Diag *d);
MUST_USE bool file_will_be_written(Files *f, const char *path, Diag *d);
/* Says that the content of an output is ready; it need not have been announced. */
MUST_USE bool file_take(Files *f, const char *path, Diag *d);

/* Makes file_map return these bytes for that name.  They must outlive the run. */
void file_give(Files *f, const char *path, const uint8_t *data, size_t n);

int file_open(Files *f, const char *path, File **out, Diag *d); /* returns a descriptor, or -1 */
MUST_USE bool file_opened(Files *f, int fd, const char *path, File **out, Diag *d);
/* Reads n bytes from `at` on, which the file had when it was opened. */
MUST_USE bool file_read(int fd, const char *path, void *to, int64_t n, int64_t at, Diag *d);
/* Maps a file read-only until the process ends; *n is 0 for an empty file.  "-" is standard input,
 * which is read once.  A caller that goes on reading the bytes sets is_kept in the result. */
File *file_map(Files *f, const char *path, const uint8_t **data, size_t *n, Diag *d);
/* Reports each file with is_kept that has changed, once. */
void files_check(const Files *f, Diag *d);
bool file_unreadable(const char *path, Diag *d); /* reports the reason in errno; returns false */
bool file_changed(const char *path, Diag *d);    /* reports that it changed; returns false */

/* -- models ---------------------------------------------------------------------------------- */

typedef enum ImportKind {
    IMPORT_UNKNOWN,
    IMPORT_PT2,    /* an archive of torch.export.save */
    IMPORT_FOLDER, /* the folder of an unpacked archive */
    IMPORT_JSON,   /* models/model.json in such a folder */
    IMPORT_ETIR,   /* textual IR */
    IMPORT_PTE,
    IMPORT_ONNX
} ImportKind;

/* A size in an ONNX file that the user sets.  It is named by the file's own name for it, or by
 * INPUT.AXIS, which also works for a size that the file declares. */
typedef struct ImportDim {
    const char *name;
    int64_t lo, hi; /* its range; if they are equal, the size is known */
    bool is_taken;  /* result: the file has such a size */
} ImportDim;

/* An input of an ONNX file that becomes a constant. */
typedef struct ImportBind {
    const char *name;
    const EtcTensor *tensor; /* NULL: its elements are `number` */
    double number;
    bool is_taken; /* result: the file has such an input */
} ImportBind;

typedef struct ImportOptions {
    Files *files;            /* records what is read; may be NULL */
    const char *weights_dir; /* of the data of an unpacked model or .onnx; NULL: beside it */
    Program *into;           /* the program that gets the method; NULL: a new one is made */
    ImportKind kind;         /* the result of import_kind, or IMPORT_UNKNOWN */
    const char *as;          /* the method's name; NULL: its name in the file */
    const CustomOps *custom; /* the operators of --ops, or NULL */
    ImportDim *dim;          /* ranges of sizes; for a .pt2 only of symbols that have one value */
    ImportBind *bind;        /* only for ONNX files */
    int n_dims, n_binds;
} ImportOptions;

/* Returns the kind of the file `path`: by its first bytes, or by its name if these say nothing.
 * Reports a file that cannot be read or is of no such kind, and returns IMPORT_UNKNOWN. */
ImportKind import_kind(Files *files, const char *path, Diag *d);

/* Imports an archive that torch.export.save of torch 2.5 or later wrote, a folder it was unpacked
 * into, or a file models/NAME.json in such a folder.  `o` may be NULL.  Returns NULL if that fails,
 * which is reported; so do all functions below. */
MUST_USE Program *import_pt2(Arena *a, const char *path, const ImportOptions *o, Diag *d);

/* Imports n bytes of an archive in memory.  `data` is changed, and the program points into it, so it
 * must outlive the program. */
MUST_USE Program *import_pt2_bytes(Arena *a, const char *name, uint8_t *data, size_t n, Diag *d);

/* Imports n bytes of a model.json whose unpacked folder is `dir`. */
MUST_USE Program *import_json_bytes(Arena *a, const char *name, const uint8_t *data, size_t n,
                                    const char *dir, Diag *d);

/* Imports an ONNX model.  Its external data must lie beneath its folder.  `o` may be NULL. */
MUST_USE Program *import_onnx(Arena *a, const char *path, const ImportOptions *o, Diag *d);

/* The same for n bytes in memory, into which the program points.  `path` gives the name and the
 * folder. */
MUST_USE Program *import_onnx_bytes(Arena *a, const char *path, const uint8_t *data, size_t n,
                                    const ImportOptions *o, Diag *d);

/* -- the contents of an ONNX file, for `etc inspect` ------------------------------------------ */

typedef struct OnnxSize {
    int64_t value;    /* -1: the file gives no number */
    const char *name; /* may be NULL */
} OnnxSize;

/* An input or an output. */
typedef struct OnnxEnd {
    const char *name, *dtype; /* dtype is NULL if it is no tensor or its dtype is unknown to etc */
    int rank;                 /* -1: the file does not say */
    OnnxSize *size;
} OnnxEnd;

typedef struct OnnxOperator {
    const char *name; /* "Conv", "com.microsoft::Gelu" */
    int nodes;        /* how many nodes call it, also in nested graphs and functions */
    bool is_supported;
} OnnxOperator;

typedef struct OnnxPair {
    const char *key, *value;
    int64_t number; /* the version of an opset */
} OnnxPair;

typedef struct OnnxAbout {
    int64_t ir_version;
    const char *producer, *producer_version; /* "" if the file does not say */
    OnnxPair *opset, *metadata;
    OnnxEnd *in, *out;
    OnnxOperator *op;
    const char **file; /* the files with external data, which are not opened */
    int n_opsets, n_metadata, n_in, n_out, n_ops, n_files;
} OnnxAbout;

/* Reads an ONNX file, which need not be one that can be imported. */
MUST_USE bool onnx_about(Arena *a, Files *files, const char *path, OnnxAbout *out, Diag *d);

/* -- weights by name: safetensors.c --------------------------------------------------------- */

/* Gives states of a parsed textual program their bytes from a safetensors file: those under the
 * state's name, with the same dtype and sizes.  States that share a storage need only one of their
 * names.  Reports every state that the file does not fit. */
MUST_USE bool import_safetensors(Program *p, const char *path, Files *files, Diag *d);

/* The same for n bytes in memory, into which the program points. */
MUST_USE bool import_safetensors_bytes(Program *p, const char *name, uint8_t *data, size_t n,
                                       Diag *d);

/* -- weights of textual programs -------------------------------------------------------------- */

/* Gives states of a parsed textual program their bytes from the members of an archive that the text
 * names.  `path` is the archive, a folder it was unpacked into, or its model.json. */
MUST_USE bool import_weights(Program *p, const char *path, const ImportOptions *o, Diag *d);

#endif
