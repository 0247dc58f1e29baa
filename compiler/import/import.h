/* import.h -- readers of other people's model files: each gives a Program at stage aten, or reports
 * everything it found wrong.
 *
 * Nothing in a file is trusted: every index, size, offset and name is checked before it is used.
 * Weights are not copied: their states point into a private writable mapping of the file, which
 * stays for the life of the process, so passes may fold into them in place.  (Files below 4 MiB are
 * read into the arena.)
 */
#ifndef ETC_IMPORT_H
#define ETC_IMPORT_H

#include "ir/table.h"

/* -- files: files.c -------------------------------------------------------------------------- */

/* A regular file that a run reads or writes. */
typedef struct File {
    const char *path;             /* as it is called */
    uint64_t inode;
    int64_t size;                 /* bytes when it was opened */
    int64_t seconds, nanoseconds; /* of its last change before that */
    bool is_read, is_opened, is_written;
    bool is_taken; /* there is content to be written */
    bool is_kept;  /* mapped, and read there until the end: it must not change */
    struct File *other; /* the same by another name, which it is read by too */
    const uint8_t *given; /* its bytes, where there is no file of that name */
} File;

/* All of them.  A file counts by device and inode, not by its name, so that no output is an input
 * or another output, be it by a link or another path. */
typedef struct Files {
    Arena *arena;
    File **file; /* in the order in which they came up */
    int n, n_given;
    Table known;
} Files;

Files *files_new(Arena *a);

/* Names a file that is going to be read, or to be written; what cannot be or is no regular file is
 * told by who opens it.  False: it is both, or written twice; reported, as by all of these. */
MUST_USE bool file_will_be_read(Files *f, const char *path, Diag *d);
MUST_USE bool file_will_be_written(Files *f, const char *path, Diag *d);
/* There is content for an output, which may have been named before. */
MUST_USE bool file_take(Files *f, const char *path, Diag *d);

/* From now on file_map gives these bytes, which outlive the run, under that name. */
void file_give(Files *f, const char *path, const uint8_t *data, size_t n);

int file_open(Files *f, const char *path, File **out, Diag *d); /* -1: failed */
MUST_USE bool file_opened(Files *f, int fd, const char *path, File **out, Diag *d);
/* Reads n bytes from `at` on, which were there when the file was opened. */
MUST_USE bool file_read(int fd, const char *path, void *to, int64_t n, int64_t at, Diag *d);
/* Maps a file read-only, for as long as the process lives; an empty one gives n = 0.  Who does not
 * copy the bytes says that they are kept.  NULL: failed. */
File *file_map(Files *f, const char *path, const uint8_t **data, size_t *n, Diag *d);
/* Reports each of those that are kept and have changed, once. */
void files_check(const Files *f, Diag *d);
bool file_unreadable(const char *path, Diag *d); /* says why, by errno; returns false */
bool file_changed(const char *path, Diag *d);    /* as above */

/* -- models ---------------------------------------------------------------------------------- */

typedef enum ImportKind {
    IMPORT_UNKNOWN,
    IMPORT_PT2,    /* archive of torch.export.save */
    IMPORT_FOLDER, /* one that was unpacked */
    IMPORT_JSON,   /* models/model.json in such a folder */
    IMPORT_ETIR,   /* textual IR */
    IMPORT_PTE,
    IMPORT_ONNX
} ImportKind;

/* A size of an ONNX file: by its name there, or INPUT.AXIS, which a size that is declared is too. */
typedef struct ImportDim {
    const char *name;
    int64_t lo, hi; /* the same: the size is known */
    bool is_taken;  /* the file has it */
} ImportDim;

/* An input of an ONNX file that is to be a constant. */
typedef struct ImportBind {
    const char *name;
    const EtcTensor *tensor; /* NULL: `number`, in the input's type */
    double number;
    bool is_taken;
} ImportBind;

typedef struct ImportOptions {
    Files *files;            /* NULL: of no interest */
    const char *weights_dir; /* where an unpacked model's "data" lies; NULL: beside the JSON */
    Program *into;           /* receives the method; NULL: a new program */
    ImportKind kind;         /* what import_kind says of the file; IMPORT_UNKNOWN: is asked */
    const char *as;          /* the method's name; NULL: what the file calls it */
    const CustomOps *custom; /* operators that the model may have beside ours; or NULL */
    ImportDim *dim;          /* of ONNX files alone, as the next */
    ImportBind *bind;
    int n_dims, n_binds;
} ImportOptions;

/* Returns the kind of the file `path`, by its first bytes, or by its name where these say nothing.
 * IMPORT_UNKNOWN: it cannot be read or is none of these; reported. */
ImportKind import_kind(Files *files, const char *path, Diag *d);

/* Reads an archive written by torch.export.save of torch 2.5 or later, a folder it was unpacked
 * into, or the models/NAME.json in such a folder.  `o` may be NULL.  NULL: reported. */
MUST_USE Program *import_pt2(Arena *a, const char *path, const ImportOptions *o, Diag *d);

/* Imports from n bytes of an archive in memory.  `data` is changed, and the program points into it,
 * so it must outlive the program. */
MUST_USE Program *import_pt2_bytes(Arena *a, const char *name, uint8_t *data, size_t n, Diag *d);

/* Imports from n bytes of a model.json whose unpacked folder is `dir`. */
MUST_USE Program *import_json_bytes(Arena *a, const char *name, const uint8_t *data, size_t n,
                                    const char *dir, Diag *d);

/* Reads an ONNX model; its external data lie beneath its folder.  `o` may be NULL.  NULL: reported. */
MUST_USE Program *import_onnx(Arena *a, const char *path, const ImportOptions *o, Diag *d);

/* The same from n bytes, into which the program points.  `path` tells the name and the folder. */
MUST_USE Program *import_onnx_bytes(Arena *a, const char *path, const uint8_t *data, size_t n,
                                    const ImportOptions *o, Diag *d);

/* -- what an ONNX file says of itself --------------------------------------------------------- */

typedef struct OnnxSize {
    int64_t value;    /* -1: open */
    const char *name; /* NULL: it has none */
} OnnxSize;

typedef struct OnnxEnd {
    const char *name, *dtype; /* dtype NULL: no tensor, or of elements that no program has */
    int rank;                 /* -1: not said */
    OnnxSize *size;
} OnnxEnd;

typedef struct OnnxOperator {
    const char *name; /* "Conv", "com.microsoft::Gelu" */
    int nodes;        /* in inner graphs and functions too */
    bool is_supported;
} OnnxOperator;

typedef struct OnnxPair {
    const char *key, *value;
    int64_t number; /* of an opset */
} OnnxPair;

typedef struct OnnxAbout {
    int64_t ir_version;
    const char *producer, *producer_version; /* "" where the file does not tell */
    OnnxPair *opset, *metadata;
    OnnxEnd *in, *out;
    OnnxOperator *op;
    const char **file; /* that external data lie in; not opened */
    int n_opsets, n_metadata, n_in, n_out, n_ops, n_files;
} OnnxAbout;

/* Reads an ONNX file that need not be one that can be imported. */
MUST_USE bool onnx_about(Arena *a, Files *files, const char *path, OnnxAbout *out, Diag *d);

/* -- weights by name: safetensors.c --------------------------------------------------------- */

/* Gives the states of a parsed text that have no bytes yet those that a safetensors file has under
 * their names, of the same dtype and sizes.  States of one storage share its bytes: one of their
 * names is enough.  What does not agree is listed.  False: reported. */
MUST_USE bool import_safetensors(Program *p, const char *path, Files *files, Diag *d);

/* The same from n bytes, into which the program points. */
MUST_USE bool import_safetensors_bytes(Program *p, const char *name, uint8_t *data, size_t n, Diag *d);

/* -- weights of texts ------------------------------------------------------------------------- */

/* Gives the states of a parsed text the bytes that it says lie in members of an archive: `path` is
 * that archive, a folder it was unpacked into, or its model.json.  False: reported. */
MUST_USE bool import_weights(Program *p, const char *path, const ImportOptions *o, Diag *d);

#endif
