/* batch.h -- keys of commands, and lists of them that run together. */
#ifndef ETC_COMPILER_BATCH_H
#define ETC_COMPILER_BATCH_H

#include "compiler/compiler.h"

/* -- digest.c ------------------------------------------------------------------------------ */

typedef struct Digest {
    char hex[33];
} Digest;

Digest digest_bytes(const void *data, size_t n);
/* Computes the digest of a file, and returns the opened file in *is. */
MUST_USE bool digest_file(Files *files, const char *path, Digest *out, File **is, Diag *d);

/* -- key.c --------------------------------------------------------------------------------- */

typedef struct KeyFile {
    const char *path;
    File *file;
    Digest digest;
    bool counts; /* the output depends on its contents */
} KeyFile;

typedef struct ContentKey {
    Digest digest;
    const char *text; /* the digest's text, with a line for each thing that counts */
    KeyFile *file;    /* all files that were read */
    int n_files;
} ContentKey;

/* Computes the key of a command whose files have all been opened. */
MUST_USE bool key_of(const Options *o, Arena *a, ContentKey *k, Diag *d);

/* -- batch_list.c, batch_state.c, batch.c, batch_report.c ----------------------------------- */

typedef struct BatchFile {
    const char *path; /* the path of an output starts at the output folder */
    int64_t size, seconds, nanoseconds, inode;
    Digest digest; /* for a folder, the digest of the names in it */
} BatchFile;

typedef struct BatchRecord { /* what the last successful run of an entry read and wrote */
    const char *name;
    Digest words, key;
    int64_t bytes, arena;
    double delegated, predicted, cosine; /* percent, seconds, of outputs; NAN: not known */
    BatchFile *in, *out;
    int n_in, n_out;
} BatchRecord;

typedef enum BatchStatus {
    BATCH_WAITING,
    BATCH_WRITTEN,
    BATCH_UNCHANGED,
    BATCH_FAILED,
    BATCH_CRASHED
} BatchStatus;

typedef struct BatchEntry {
    const char *name;
    Loc loc; /* its place in the list */
    Command command;
    const char *folder, *output, *path; /* "/out/", the output in the list, and both joined */
    Strings words, plain; /* the command's words without -o; plain: without the output folder */
    Digest words_digest;
    int64_t memory; /* the most bytes that its process may take; 0: no limit */
    Options options;
    BatchRecord *known; /* the record of the same command; NULL: none */
    BatchStatus status;
    int code; /* the exit code of its process */
    double seconds;
    Message *message;
    int n_messages;
} BatchEntry;

typedef struct Batch {
    const char *list;
    BatchEntry *entry;
    int n;
    double seconds;
} Batch;

/* Adds the entries of a list and of the lists that it extends.  Reports all mistakes. */
MUST_USE bool batch_read(Files *files, const char *path, const char *folder, Arena *a, Batch *out,
                         Diag *d);

/* Both return whether the files of a record are as they were.  The first compares times only; the
 * second reads the files whose times differ. */
bool record_is_untouched(const BatchRecord *r, const char *folder, Arena *a);
bool record_is_same(BatchRecord *r, const char *folder, Arena *a);
MUST_USE bool record_make(const Options *o, const char *folder, BatchRecord *r, Arena *a, Diag *d);
void record_put(const BatchRecord *r, Arena *a, FILE *out);
bool record_read(const struct Json *v, Arena *a, BatchRecord *r);

/* Sets `known` of the entries whose commands have not changed. */
void state_read(const char *path, Batch *b, Arena *a, Diag *d);
MUST_USE bool state_write(const char *path, const Batch *b, Diag *d);

void batch_put_line(const BatchEntry *e, Arena *a, FILE *out);
/* Writes the list as a file for ninja. */
MUST_USE bool batch_ninja(const Batch *b, const char *path, Arena *a, Diag *d);
/* Prints the summary, and writes the files of --junit and --report, and those that the environment
 * asks for.  Paths are absolute, or NULL. */
MUST_USE bool batch_report(const Batch *b, const char *junit, const char *page, bool prints_summary,
                           Arena *a, Diag *d);

/* -- batch_page.c -------------------------------------------------------------------------- */

typedef struct Cause {
    const char *text;
    Fault fault;
    Strings models; /* the models that it stops, each once */
} Cause;

typedef struct Causes {
    Arena *arena;
    Table by_text;
    Cause **item; /* sorted by the number of models, largest first */
    int n;
} Causes;

extern const char *const batch_status_name[];
/* Writes the page of --report to an absolute path. */
MUST_USE bool batch_page(const Batch *b, const Causes *c, const char *totals, const char *path,
                         Arena *a, Diag *d);

#endif
