/* diag.h -- messages in the user's terms: errors, warnings and notes, and the exit code that follows. */
#ifndef ETC_IR_DIAG_H
#define ETC_IR_DIAG_H

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>

/* Marks a function that reports an error before it returns false or NULL.  Its caller must look at
 * the result, because there is none to go on with after a failure. */
#define MUST_USE __attribute__((warn_unused_result))

/* A place in the user's model.  Unknown parts are NULL or 0. */
typedef struct Loc {
    const char *file;   /* "mnv3.pt2" or "dce.etir" */
    int line, column;   /* in a text file, counted from 1; else 0 */
    const char *node;   /* "conv2d_3" */
    const char *op;     /* "aten.conv2d.default" */
    const char *module; /* "blocks.0.conv" */
    const char *source; /* "model.py:12": from the export */
} Loc;

/* The kind of an error.  It decides the exit code: FAULT_MODEL 1, FAULT_USAGE 2, FAULT_IO 3,
 * FAULT_UNSUPPORTED 4, FAULT_GATE 5, FAULT_BUG 70. */
typedef enum Fault {
    FAULT_MODEL,
    FAULT_IO,
    FAULT_UNSUPPORTED,
    FAULT_GATE,
    FAULT_BUG,
    FAULT_USAGE,
    N_FAULTS
} Fault;

extern const char *const fault_name[N_FAULTS]; /* "model", "io", ... */

typedef struct Diag {
    FILE *out;       /* NULL: errors are only counted */
    bool is_json;    /* each message is a line of JSON; else it is a text for people */
    int n[N_FAULTS]; /* how many errors of each kind were reported */
} Diag;

/* Each reports one error and returns false, so a caller may write `return diag_error(...)`. */
bool diag_error(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool diag_unsupported(Diag *d, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool diag_io(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool diag_fault(Diag *d, Fault f, Loc loc, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_note(Diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void diag_warn(Diag *d, Loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Checks that a function which returned false has reported why.  `before` is the number of errors
 * before the call: if it has not grown, this reports a bug of etc and names the function (its
 * `kind`, such as "pass", and its `name`).  Returns false. */
bool diag_missing(Diag *d, int before, Loc loc, const char *kind, const char *name);
int diag_errors(const Diag *d);    /* the number of errors of all kinds */
int diag_exit_code(const Diag *d); /* the first of 70, 2, 3, 1, 4, 5 that occurred; 0: no error */

#define MESSAGE_ERROR "error"
#define MESSAGE_BUG "internal error"
#define MESSAGE_WARNING "warning"
#define MESSAGE_NOTE "note" /* adds to the message before it */

typedef struct Message {
    const char *kind; /* one of the four above */
    Fault fault;      /* N_FAULTS: it is no error */
    Loc loc;
    const char *text;
} Message;

void message_put(FILE *out, const Message *m);      /* as text for people */
void message_put_json(FILE *out, const Message *m); /* as one line; docs/cli.md lists its fields */

/* Marks code that no program and no file can reach.  It prints its source line and aborts. */
#ifdef NDEBUG
#define UNREACHABLE() __builtin_unreachable()
#else
#define UNREACHABLE() reached(__FILE__, __LINE__)
#endif
_Noreturn void reached(const char *file, int line);

#endif
